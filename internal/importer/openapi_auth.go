package importer

import (
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/hyperbolic-gateway/hb-rest/internal/hostname"
	"github.com/hyperbolic-gateway/hb-rest/internal/redact"
	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// schemes are the security schemes of a document.
type schemes struct {
	list recipe.Object
	// several is set when credentials need the scheme's name to be told apart.
	several bool
}

// A way is one way to be let in: the parts of one security requirement.
type way struct {
	kind     string // static, basic, oauth2
	headers  []credentialHeader
	name     string // of the schemes
	tokenURL string
	scopes   []string
	later    bool // works, but a person has to get the token elsewhere
	note     string
}

type credentialHeader struct{ name, prefix string }

func (im *openAPI) security() {
	s := &schemes{list: object(object(im.root, "components"), "securitySchemes")}
	if im.version == v2 {
		s.list = object(im.root, "securityDefinitions")
	}
	s.several = len(s.list) > 1
	im.schemes = s
}

// credentials decides how the operation is let in. Parameters that carry a
// credential are taken out.
func (op *operation) credentials(params []*param) error {
	requirements, own := get(op.op, "security").(recipe.Array)
	if !own {
		requirements = array(op.root, "security")
	}
	var ways []*way
	var why error
	open := len(requirements) == 0
	for _, r := range requirements {
		o, ok := r.(recipe.Object)
		if !ok {
			continue
		}
		if len(o) == 0 {
			open = true
			continue
		}
		w, err := op.way(o)
		switch {
		case err != nil:
			why = err
		case w == nil: // not defined
			open = true
		default:
			ways = append(ways, w)
		}
	}
	var chosen *way
	for _, w := range ways {
		if chosen == nil || chosen.later && !w.later {
			chosen = w
		}
	}
	if chosen == nil && !open && why != nil {
		return why
	}
	chosen, required := op.credentialParams(params, chosen)
	if chosen == nil {
		return nil
	}
	if chosen.note != "" {
		op.notes.add("%s", chosen.note)
	}
	op.secret = op.suggest(chosen)
	if open && !required {
		op.notes.add("it works without a credential; with one, set request.auth to %q", op.secret.Name)
		return nil
	}
	op.auth = op.secret.Name
	return nil
}

// credentialParams takes the header parameters out that are credentials: they
// become part of the way in, or its whole.
func (op *operation) credentialParams(params []*param, w *way) (out *way, required bool) {
	for _, p := range params {
		lower := strings.ToLower(p.name)
		if p.in != "header" || !redact.CredentialHeader(p.name) || !headerName.MatchString(p.name) || slices.Contains(connection, lower) || strings.HasPrefix(lower, "proxy-") || lower == "cookie" {
			continue
		}
		if lower == "authorization" && op.version != v2 {
			p.handled = true // the specification says to ignore it
			continue
		}
		if w != nil && slices.ContainsFunc(w.headers, func(h credentialHeader) bool { return strings.EqualFold(h.name, p.name) }) {
			p.handled = true
			op.drop("header %s of %s", p.name, op.title())
			continue
		}
		if !p.required && w != nil {
			continue // left out as an optional one
		}
		if w != nil && (w.kind != "static" || len(w.headers) >= 4) {
			continue // refused as a required one
		}
		h := credentialHeader{name: p.name}
		if lower == "authorization" {
			h.prefix = "Bearer "
		}
		p.handled = true
		op.drop("header %s of %s", p.name, op.title())
		required = required || p.required
		if w == nil {
			w = &way{kind: "static", headers: []credentialHeader{h}}
			continue
		}
		both := *w
		both.headers = append(slices.Clone(w.headers), h)
		w = &both
	}
	return w, required
}

// way reads one security requirement, all of whose schemes are needed. It is
// nil without an error when the document does not define one of them.
func (op *operation) way(requirement recipe.Object) (*way, error) {
	var out *way
	var names []string
	for _, m := range requirement {
		v, _, err := op.deref(get(op.schemes.list, m.Key))
		scheme, ok := v.(recipe.Object)
		if err != nil || !ok {
			op.notes.add("it needs the credential %s, which the document does not define: set request.auth", cut(cleanText(m.Key), 40))
			return nil, nil
		}
		w, err := op.scheme(m.Key, scheme, m.Value)
		if err != nil {
			return nil, err
		}
		names = append(names, m.Key)
		switch {
		case out == nil:
			out = w
		case out.kind == "static" && w.kind == "static" && len(out.headers)+len(w.headers) <= 4:
			out.headers = append(out.headers, w.headers...)
			out.later = out.later || w.later
			out.note = join(out.note, w.note)
		default:
			return nil, refuse("AUTH_COMBINED", "it needs %s together, which one credential cannot hold", cut(strings.Join(names, " and "), 80))
		}
	}
	out.name = strings.Join(names, "-")
	return out, nil
}

var headerName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,100}$`)

func (op *operation) scheme(name string, s recipe.Object, scopes recipe.Value) (*way, error) {
	kind := text(s, "type")
	if op.version == v2 && kind == "basic" {
		kind, s = "http", recipe.Object{{Key: "scheme", Value: "basic"}}
	}
	bearer := []credentialHeader{{"Authorization", "Bearer "}}
	switch kind {
	case "apiKey":
		return apiKey(name, s)
	case "http":
		switch strings.ToLower(text(s, "scheme")) {
		case "bearer":
			return &way{kind: "static", headers: bearer}, nil
		case "basic":
			return &way{kind: "basic", headers: []credentialHeader{{"Authorization", "Basic "}}}, nil
		}
		return nil, refuse("AUTH_SCHEME", "the HTTP authentication scheme %s is not supported", cut(cleanText(text(s, "scheme")), 40))
	case "oauth2":
		if w := op.clientCredentials(s, scopes); w != nil {
			return w, nil
		}
		return &way{kind: "static", headers: bearer, later: true, note: "its token comes from a person's login (OAuth2), which is made elsewhere; it is not renewed"}, nil
	case "openIdConnect":
		return &way{kind: "static", headers: bearer, later: true, note: "its token comes from OpenID Connect, which is made elsewhere; it is not renewed"}, nil
	}
	return nil, refuse("AUTH_SCHEME", "the security scheme %s (%s) is not supported", cut(cleanText(name), 40), cut(cleanText(kind), 40))
}

func apiKey(name string, s recipe.Object) (*way, error) {
	key := text(s, "name")
	switch text(s, "in") {
	case "header":
		if !headerName.MatchString(key) {
			return nil, refuse("AUTH_SCHEME", "the security scheme %s names no usable header", cut(cleanText(name), 40))
		}
		w := &way{kind: "static", headers: []credentialHeader{{key, ""}}}
		if strings.EqualFold(key, "Authorization") {
			w.note = "what stands before the value in Authorization is not said; where the API wants a word there, add it: --header Authorization:WORD"
		}
		return w, nil
	case "query":
		return nil, refuse("CREDENTIAL_QUERY", "its credential goes into the address (%s), where it would be logged; that is not supported", cut(cleanText(key), 40))
	case "cookie":
		return nil, refuse("CREDENTIAL_COOKIE", "its credential is a cookie (%s), which is not supported", cut(cleanText(key), 40))
	}
	return nil, refuse("AUTH_SCHEME", "the security scheme %s does not say where its key goes", cut(cleanText(name), 40))
}

// clientCredentials is the flow that needs no person, nil when there is none.
func (op *operation) clientCredentials(s recipe.Object, scopes recipe.Value) *way {
	address := ""
	if op.version == v2 {
		if text(s, "flow") == "application" {
			address = text(s, "tokenUrl")
		}
	} else {
		address = text(object(object(s, "flows"), "clientCredentials"), "tokenUrl")
	}
	u, err := url.Parse(address)
	if address == "" || err != nil {
		return nil
	}
	if !u.IsAbs() && op.server.address != "" {
		if base, err := url.Parse(op.server.address + "/"); err == nil {
			u = base.ResolveReference(u)
		}
	}
	if u.Scheme != "https" && u.Scheme != "http" || u.User != nil || u.RawQuery != "" && redact.Query(u.RawQuery) != u.RawQuery {
		return nil
	}
	w := &way{
		kind: "oauth2", headers: []credentialHeader{{"Authorization", "Bearer "}}, tokenURL: u.String(),
		note: "whether the token endpoint takes the client id in the form or by Basic is not said; --auth-style body or basic",
	}
	for _, e := range arrayOf(scopes) {
		if scope, ok := e.(string); ok && len(w.scopes) < 20 {
			w.scopes = append(w.scopes, cleanText(scope))
		}
	}
	return w
}

func arrayOf(v recipe.Value) recipe.Array {
	a, _ := v.(recipe.Array)
	return a
}

// suggest makes the suggestion of a credential. Its command has the hosts of
// the whole document once all drafts are there.
func (op *operation) suggest(w *way) *Secret {
	s := &Secret{
		Name: op.secretName(w), Hosts: []string{op.server.host}, Kind: w.kind,
		Header: w.headers[0].name, Prefix: w.headers[0].prefix,
	}
	s.Command = s.command(w.headers, w.tokenURL, w.scopes)
	return s
}

// secretName is the prefix, else the name of the site; with the scheme's where
// there are several.
func (op *operation) secretName(w *way) string {
	base := slug(op.options.Prefix)
	if base == "" {
		site, _, _ := strings.Cut(hostname.Site(op.server.host), ".")
		if base = slug(site); base == "" || strings.Trim(base, "0123456789-.") == "" {
			base = "api"
		}
	}
	if part := slug(w.name); op.schemes.several && part != "" {
		base += "-" + part
	}
	return fitID(base)
}

// command is the line that stores the credential. It asks for the value.
func (s *Secret) command(headers []credentialHeader, tokenURL string, scopes []string) string {
	parts := []string{"hbrestd", "secret", "set", s.Name}
	for _, h := range s.Hosts {
		parts = append(parts, "--host", shellWord(h))
	}
	switch s.Kind {
	case "basic":
		parts = append(parts, "--basic")
	case "oauth2":
		parts = append(parts, "--oauth2", "--token-url", shellWord(tokenURL), "--client-id", "CLIENT_ID")
		if len(scopes) > 0 {
			parts = append(parts, "--scope", shellWord(strings.Join(scopes, " ")))
		}
		parts = append(parts, "--auth-style", "basic")
	default:
		if len(headers) == 1 && headers[0] == (credentialHeader{"Authorization", "Bearer "}) {
			break // what it does by itself
		}
		for _, h := range headers {
			word := h.name
			if p := strings.TrimSpace(h.prefix); p != "" {
				word += ":" + p
			}
			parts = append(parts, "--header", shellWord(word))
		}
	}
	return strings.Join(parts, " ")
}

// shellWord quotes a word for a POSIX shell where it needs that.
func shellWord(s string) string {
	if s != "" && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_./:@%+,=") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// bindHosts gives every suggestion of one name the hosts of all of them: one
// credential serves the document.
func (im *openAPI) bindHosts() {
	hosts := map[string][]string{}
	for _, d := range im.result.Drafts {
		if d.Secret != nil && !slices.Contains(hosts[d.Secret.Name], d.Secret.Hosts[0]) {
			hosts[d.Secret.Name] = append(hosts[d.Secret.Name], d.Secret.Hosts[0])
		}
	}
	for _, d := range im.result.Drafts {
		if d.Secret == nil || len(hosts[d.Secret.Name]) == 1 {
			continue
		}
		all := hosts[d.Secret.Name]
		var words []string
		for _, h := range all {
			words = append(words, "--host "+shellWord(h))
		}
		d.Secret.Command = strings.Replace(d.Secret.Command, "--host "+shellWord(d.Secret.Hosts[0]), strings.Join(words, " "), 1)
		d.Secret.Hosts = slices.Clone(all)
	}
}
