package importer

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/redact"
	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// A hole is a place in a text that its source leaves open: a shell variable, a
// Postman variable, a placeholder. In texts it is written as its name between
// two characters of the private use area, which no request that can be sent
// holds. A bare hole is one in JSON outside of quotes: it may become a number.
const (
	holeOpen  = '\ue000'
	holeClose = '\ue001'
	holeBare  = '\ue002' // opens a bare one
	holeMarks = "\ue000\ue001\ue002"
)

var anyHole = regexp.MustCompile("[\ue000\ue002]([^\ue000-\ue002]*)\ue001")

func holeText(name string) string { return string(holeOpen) + name + string(holeClose) }

// A hole says what is known about the value that belongs into it.
type hole struct {
	value string // what the source puts in by itself
	known bool   // value is given
	about string
	from  string // the API's or the document's own name, for the argument
}

type header struct{ name, value string }

// A sent is one request as its source sends it. Texts may have holes.
type sent struct {
	method      string
	address     string // absolute
	headers     []header
	body        string
	hasBody     bool
	plusIsSpace bool // the query was written as a form: + and %20 are the same
	bodyIsForm  bool // body is a form whatever the headers say, and its Content-Type is sent
	name, about string
	tags        []string
	holes       map[string]hole
	queryAbout  map[string]string  // descriptions of query parameters
	varying     map[string]varying // query parameters with more than one value
	answer      recipe.Value       // what came back; nil: not known
	auth        *way               // beside the headers
	user        string             // "user:password", not escaped
	removed     []string           // headers that the source takes out, in small letters
	notes       []string
	err         error // it cannot be sent, and why
}

// A varying query parameter was seen with more than one value, or not always.
type varying struct {
	always bool
	values []string // raw
}

// A recording is one run of Curl, Postman or HAR. It shares the drafting of
// wrappers with OpenAPI.
type recording struct {
	*openAPI
	// noisy leaves out the headers that every browser adds.
	noisy  bool
	known  map[string]bool   // values, once each
	values [][]byte          // of credentials that were found; looked for at the end
	names  map[string]string // credentials' names, and what each is
}

func newRecording(o Options, title string) *recording {
	return &recording{
		openAPI: &openAPI{document: &document{}, options: o, result: &Result{Title: title}, schemes: &schemes{}},
		names:   map[string]string{},
		known:   map[string]bool{},
	}
}

// A recorded is one request on its way to a draft.
type recorded struct {
	*operation
	run   *recording
	sent  *sent
	raw   urlParts
	path  string // of the template
	query string // raw query of the template; "" when op.query has it

	holeArgs map[string]string // placeholders by the hole's name
	bare     map[string]bool   // holes outside of quotes in JSON
	media    string            // Content-Type as the source sends it
}

// drafts makes everything of the requests and returns the result.
func (r *recording) drafts(list []*sent) (*Result, error) {
	if r.options.BaseURL != "" {
		s, why := parseServer(r.options.BaseURL)
		if why != "" {
			return nil, fault.New("IMPORT_INVALID", "the base URL %s", why).With(fault.Hint("Pass --base-url https://HOST/PATH."))
		}
		r.server = s
	}
	var ops []*operation
	var all []*recorded
	for _, s := range list {
		rec := r.prepare(s)
		all = append(all, rec)
		ops = append(ops, rec.operation)
	}
	r.name(ops)
	taken := map[string]bool{}
	for _, rec := range all {
		id := rec.id
		for i := 2; taken[strings.ToLower(rec.id)]; i++ {
			rec.id = fitID(sprintf("%s-%d", id, i))
		}
		taken[strings.ToLower(rec.id)] = true
		if !r.options.keep(rec.method, rec.tags, rec.id, rec.operationID, rec.operation.path, rec.title()) {
			continue
		}
		d, err := rec.draft()
		if err != nil {
			r.refuse(rec.title(), err)
			continue
		}
		r.result.Drafts = append(r.result.Drafts, *d)
	}
	r.bindHosts()
	return r.swept(), nil
}

// prepare reads the address, which names the request.
func (r *recording) prepare(s *sent) *recorded {
	op := &operation{
		openAPI: r.openAPI, method: s.method, path: "/", operationID: brief(s.name, nameText), tags: s.tags,
		op: recipe.Object{{Key: "summary", Value: s.name}, {Key: "description", Value: s.about}},
	}
	rec := &recorded{operation: op, run: r, sent: s}
	for _, n := range s.notes {
		op.notes.add("%s", n)
	}
	if s.name == "" && s.about == "" {
		op.op = recipe.Object{}
	}
	var err error
	rec.raw, err = splitURL(s.address)
	if err == nil {
		err = rec.segments()
	}
	if webhook.MatchString(strings.ToLower(rec.raw.authority) + rec.raw.path) {
		parts := strings.Split(rec.raw.path, "/")
		rec.credential(parts[len(parts)-1])
		rec.operation.path = "/" + redact.Mask
		err = refuse("CREDENTIAL_PATH", "its address is a webhook's, which is a credential as a whole; that is not supported")
	}
	if s.err == nil {
		s.err = err
	}
	if s.name == "" && s.about == "" && rec.raw.authority != "" && !anyHole.MatchString(rec.raw.authority) {
		op.op = recipe.Object{
			{Key: "summary", Value: op.title()},
			{Key: "description", Value: op.title() + " of " + rec.raw.authority},
		}
	}
	return rec
}

func (rec *recorded) draft() (*Draft, error) {
	s := rec.sent
	// Credentials first: they are looked for in all that follows, and named
	// even when the request is refused.
	rec.headersAndCredentials()
	if s.err != nil {
		var r *refusal
		if errors.As(s.err, &r) && r.code == "CREDENTIAL_PATH" {
			rec.drop("path of %s", rec.title())
		}
		return nil, s.err
	}
	switch rec.method {
	case "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE":
	default:
		return nil, refuse("METHOD", "the method %s cannot be sent; GET, HEAD, POST, PUT, PATCH and DELETE can", cut(cleanText(rec.method), 20))
	}
	var err error
	if rec.operation.server, err = rec.serverOf(); err != nil {
		return nil, err
	}
	if err := rec.bareHoles(); err != nil {
		return nil, err
	}
	if err := rec.queryOf(); err != nil {
		return nil, err
	}
	if err := rec.headerTemplates(); err != nil {
		return nil, err
	}
	if err := rec.bodyOf(); err != nil {
		return nil, err
	}
	if s.auth != nil {
		rec.secret = rec.suggestion(s.auth)
		rec.auth = rec.secret.Name
	}
	address := rec.operation.server.address + rec.path
	if rec.query != "" {
		address += "?" + rec.query
	}
	d, err := rec.finish(address, rec.recipeOf())
	if err != nil {
		return nil, err
	}
	if err := rec.verify(d); err != nil {
		return nil, err
	}
	return d, nil
}

// A urlParts is an absolute URL in parts, each as written.
type urlParts struct {
	scheme, user, authority, path, query string
	hasQuery                             bool
}

func splitURL(address string) (u urlParts, err error) {
	address, _, _ = strings.Cut(address, "#")
	for _, r := range address {
		if r <= ' ' || r == 0x7f {
			return u, refuse("URL_INVALID", "the URL has a space or a control character in it; write %%20 for a space")
		}
		if r > 0x7e && !strings.ContainsRune(holeMarks, r) {
			return u, refuse("URL_INVALID", "the URL has a character in it that is not ASCII; write it percent-encoded")
		}
	}
	scheme, rest, ok := strings.Cut(address, "://")
	if !ok {
		return u, refuse("SERVER", "it does not say where the API is; --base-url does")
	}
	u.scheme = strings.ToLower(scheme)
	end := strings.IndexAny(rest, "/?")
	if end < 0 {
		end = len(rest)
	}
	u.authority, rest = rest[:end], rest[end:]
	if i := strings.LastIndexByte(u.authority, '@'); i >= 0 {
		u.user, u.authority = u.authority[:i], u.authority[i+1:]
	}
	u.path, u.query, u.hasQuery = strings.Cut(rest, "?")
	if u.path == "" {
		u.path = "/"
	}
	return u, nil
}

// placeholderHost is a host that its reader is to fill in.
var placeholderHost = regexp.MustCompile(`(?i)(^|[.-])(your|my)[-_]?(company|domain|subdomain|site|store|shop|instance|tenant|org|organization|account|host|server|workspace|team)([.-]|$)|[<>{}$]|your_|_`)

func (rec *recorded) serverOf() (server, error) {
	if rec.openAPI.server.address != "" {
		return rec.openAPI.server, nil
	}
	u := rec.raw
	switch {
	case u.scheme != "http" && u.scheme != "https" && !anyHole.MatchString(u.scheme):
		return server{}, refuse("SCHEME", "the URL begins with %s://; http and https can be sent", cut(cleanText(u.scheme), 20))
	case anyHole.MatchString(u.scheme) || anyHole.MatchString(u.authority) || placeholderHost.MatchString(u.authority):
		return server{}, refuse("SERVER", "its host is a placeholder; --base-url says which one is meant")
	}
	s, why := parseServer(u.scheme + "://" + u.authority)
	if why != "" {
		return s, refuse("SERVER", "its server %s", why)
	}
	if u.scheme == "http" {
		rec.notes.add("it is sent by plain http, which a person has to allow; --base-url https://%s chooses https", u.authority)
	}
	return s, nil
}

// segments makes the path of the template, and the one that names the
// operation.
func (rec *recorded) segments() error {
	parts := strings.Split(rec.raw.path, "/")
	shown := slices.Clone(parts)
	var bad error
	for i, part := range parts {
		t, title, err := rec.segment(part)
		parts[i], shown[i] = t, title
		if err != nil && bad == nil {
			bad = err
		}
	}
	rec.path = strings.Join(parts, "/")
	rec.operation.path = strings.Join(shown, "/")
	return bad
}

var (
	dotSegment = regexp.MustCompile(`(?i)^(\.|%2e){1,2}$`)
	// colonName is a part of a path as routers and Postman write placeholders.
	colonName = regexp.MustCompile(`^:([A-Za-z_][A-Za-z0-9_-]*)$`)
	// An angle or a brace around a name, or a name that tells its reader what
	// to put there.
	bracedName = regexp.MustCompile(`^(?:\{([A-Za-z_][A-Za-z0-9_.-]*)\}|%7[Bb]([A-Za-z_][A-Za-z0-9_.-]*)%7[Dd]|<([A-Za-z_][A-Za-z0-9_. -]*)>|%3[Cc]([A-Za-z_][A-Za-z0-9_.-]*)%3[Ee])$`)
	yourName   = regexp.MustCompile(`^(?:YOUR|MY|INSERT|REPLACE|ENTER|SOME)[_-]([A-Z0-9_-]*[A-Z0-9])$|^((?:[A-Z][A-Z0-9]*_)+(?:ID|NAME|KEY|SLUG|NUMBER|UUID|GUID|SID|CODE|DATE|TOKEN|EMAIL|HERE))$|^(?i:(?:your|insert)[-_]((?:[a-z0-9]+[-_])*(?:id|name|key|slug|number|uuid|token|email|here)))$`)
)

// placeholder is the name in a text that is obviously one to be replaced.
func placeholder(s string, inPath bool) (name string, ok bool) {
	if inPath {
		if m := colonName.FindStringSubmatch(s); m != nil {
			return m[1], true
		}
	}
	if m := bracedName.FindStringSubmatch(s); m != nil {
		return strings.Join(m[1:], ""), true
	}
	if m := yourName.FindStringSubmatch(s); m != nil {
		return strings.ToLower(strings.Join(m[1:], "")), true
	}
	return "", false
}

func (rec *recorded) segment(part string) (template, title string, err error) {
	if name, ok := placeholder(part, true); ok {
		part = holeText(name)
		if rec.sent.holes == nil {
			rec.sent.holes = map[string]hole{}
		}
		if _, known := rec.sent.holes[name]; !known {
			rec.sent.holes[name] = hole{}
		}
	}
	plainPart := anyHole.ReplaceAllString(part, "x")
	switch {
	case cleanText(plainPart) != plainPart || credentialSegment.MatchString(plainPart):
		rec.credential(plainPart)
		return "", redact.Mask, refuse("CREDENTIAL_PATH", "a part of its path looks like a credential, which would be stored and logged with the address; that is not supported")
	case dotSegment.MatchString(part):
		return part, part, refuse("DOT_SEGMENT", "its path has a segment of dots, which is not sent")
	case strings.Contains(part, "{{"):
		return part, part, refuse("TEMPLATE_TEXT", "its path has {{ in it, which has a meaning of its own here")
	}
	t, err := rec.template(part, "path", true)
	title = anyHole.ReplaceAllStringFunc(part, func(m string) string { return "{" + argumentName(anyHole.FindStringSubmatch(m)[1]) + "}" })
	if h := anyHole.FindStringSubmatch(part); h != nil && err == nil && redact.CredentialKey(h[1]) {
		err = refuse("CREDENTIAL_PATH", "the credential %s stands in its path, which is stored and logged; that is not supported", cut(cleanText(h[1]), 40))
	}
	return t, title, err
}

// webhook is an address that lets in whoever knows it.
var webhook = regexp.MustCompile(`^(hooks\.slack\.com/(services|workflows|triggers)/.|discord(app)?\.com/api/webhooks/[0-9]+/.|[a-z0-9.-]*\.webhook\.office\.com/webhook|hooks\.zapier\.com/hooks/catch/.|maker\.ifttt\.com/trigger/.*/with/key/.)`)

// credentialSegment is what Telegram has in its paths.
var credentialSegment = regexp.MustCompile(`^bot[0-9]{6,}:[A-Za-z0-9_-]{20,}$`)

// template writes a text with holes as a template and makes their arguments.
func (rec *recorded) template(s, place string, required bool) (string, error) {
	literal := anyHole.ReplaceAllString(s, "")
	if strings.Contains(literal, "{{") {
		return "", refuse("TEMPLATE_TEXT", "its %s has {{ in it, which has a meaning of its own here", place)
	}
	return anyHole.ReplaceAllStringFunc(s, func(m string) string {
		return rec.holeArg(anyHole.FindStringSubmatch(m)[1], place, required, strings.HasPrefix(m, string(holeBare)))
	}), nil
}

// holeArg is the placeholder of a hole; one hole is one argument wherever it
// stands.
func (rec *recorded) holeArg(name, place string, required, bare bool) string {
	if rec.holeArgs == nil {
		rec.holeArgs = map[string]string{}
	}
	if at, ok := rec.holeArgs[name]; ok {
		return at
	}
	h := rec.sent.holes[name]
	bare = bare || rec.bare[name]
	schema := recipe.Object{}
	value := recipe.Value(h.value)
	switch {
	case bare && h.known:
		if v, err := recipe.Decode([]byte(h.value), recipe.DecodeLimits{}); err == nil {
			value = v
			if t := jsonType(v); t != "" {
				schema = append(schema, recipe.Member{Key: "type", Value: t})
			}
		} else {
			h.known = false
		}
	case !bare:
		schema = append(schema, recipe.Member{Key: "type", Value: "string"})
	}
	if h.about != "" {
		schema = append(schema, recipe.Member{Key: "description", Value: brief(h.about, argumentText)})
	}
	if h.known && !redact.CredentialKey(name) && clean("", value) {
		schema = append(schema, recipe.Member{Key: "default", Value: value})
		required = false
	} else if h.known {
		rec.credential(h.value)
		rec.drop("value of %s of %s", cut(cleanText(name), 40), rec.title())
		required = true
	}
	label := name
	if h.from != "" {
		label = h.from
	}
	at := rec.args.add(label, place, schema, required)
	rec.holeArgs[name] = at
	return at
}

// valueArg makes an argument whose default is what the source sends.
func (rec *recorded) valueArg(name, place string, value recipe.Value, kind, about string) string {
	schema := recipe.Object{}
	if kind != "" {
		schema = append(schema, recipe.Member{Key: "type", Value: kind})
	}
	if about = brief(about, argumentText); about != "" {
		schema = append(schema, recipe.Member{Key: "description", Value: about})
	}
	return rec.args.add(name, place, append(schema, recipe.Member{Key: "default", Value: value}), false)
}

// openArg makes an argument that its caller has to fill.
func (rec *recorded) openArg(name, place, kind, about string, required bool) string {
	schema := recipe.Object{{Key: "type", Value: kind}}
	if about = brief(about, argumentText); about != "" {
		schema = append(schema, recipe.Member{Key: "description", Value: about})
	}
	return rec.args.add(name, place, schema, required)
}

// recipeOf derives a recipe from the answer that the source holds. Only what
// says by itself where the next page is makes pagination.
func (rec *recorded) recipeOf() recipe.Object {
	r, _, hints := derived(rec.sent.answer)
	if r == nil {
		rec.notes.add("what the answer looks like is not known: the recipe is missing, and `hbrestd recipe derive` makes one from an answer")
		return nil
	}
	doc := r.Document()
	if rec.method != "GET" || r.Mode == "document" {
		return doc
	}
	var hint recipe.Object
	for _, n := range hints {
		if n.Code == "paging_hint" {
			v, _ := recipe.Decode([]byte(n.Message), recipe.DecodeLimits{})
			hint, _ = v.(recipe.Object)
		}
	}
	plan := recipe.Object(nil)
	switch text(hint, "type") {
	case "link":
		plan = hint
	case "cursor":
		plan = rec.cursorPaging(hint)
	}
	if plan != nil {
		with := append(slices.Clone(doc), recipe.Member{Key: "pagination", Value: plan})
		if _, report := recipe.Parse(with); report.OK() {
			rec.notes.add("further pages are read by themselves (%s)", text(plan, "type"))
			return with
		}
	}
	return doc
}

// swept looks for the values of all credentials in the whole result, in every
// spelling a request can have them in. What holds one is refused or masked.
func (r *recording) swept() *Result {
	out := r.result
	s := newSweeper(r.values, everything(out))
	slugs := r.slugs()
	var kept []Draft
	for _, d := range out.Drafts {
		if s.String(string(d.Document)) != string(d.Document) || slices.ContainsFunc(slugs, func(x string) bool { return strings.Contains(d.ID, x) }) || d.Secret != nil && s.String(d.Secret.Command) != d.Secret.Command {
			out.Refused = append(out.Refused, Refusal{s.String(d.Operation), "the value of a credential stands in other places of it too", "CREDENTIAL_ELSEWHERE"})
			continue
		}
		d.Operation = s.String(d.Operation)
		for _, list := range [][]string{d.Notes, d.Tags} {
			for i := range list {
				list[i] = s.String(list[i])
			}
		}
		kept = append(kept, d)
	}
	out.Drafts = kept
	for i, f := range out.Refused {
		out.Refused[i].Operation, out.Refused[i].Reason = s.String(f.Operation), s.String(f.Reason)
	}
	for _, list := range [][]string{out.Dropped, out.Notes} {
		for i := range list {
			list[i] = s.String(list[i])
		}
	}
	out.Title = s.String(out.Title)
	return out
}

// A sweeper takes many values out of texts. One scrubber is made for a few;
// its cost grows with the square of their number.
type sweeper []*redact.Scrubber

// newSweeper keeps the scrubbers that find something in text.
func newSweeper(values [][]byte, text string) sweeper {
	var s sweeper
	for part := range slices.Chunk(values, 50) {
		if x := redact.NewScrubber(part...); x.String(text) != text {
			s = append(s, x)
		}
	}
	return s
}

// everything is all texts of a result.
func everything(r *Result) string {
	var b strings.Builder
	b.WriteString(r.Title + "\n" + strings.Join(r.Dropped, "\n") + "\n" + strings.Join(r.Notes, "\n"))
	for _, d := range r.Drafts {
		b.WriteString("\n" + string(d.Document) + "\n" + d.Operation + "\n" + strings.Join(d.Notes, "\n") + "\n" + strings.Join(d.Tags, "\n"))
		if d.Secret != nil {
			b.WriteString("\n" + d.Secret.Command)
		}
	}
	for _, f := range r.Refused {
		b.WriteString("\n" + f.Operation + "\n" + f.Reason)
	}
	return b.String()
}

func (s sweeper) String(text string) string {
	for _, x := range s {
		text = x.String(text)
	}
	return text
}

// slugs are the letters of credentials as an id would have them.
func (r *recording) slugs() []string {
	var out []string
	for _, v := range r.values {
		if s := slug(string(v)); len(s) >= redact.MinSecret {
			out = append(out, s)
		}
	}
	return out
}

// credential remembers values that must not be anywhere in the result.
func (r *recording) credential(values ...string) {
	for _, v := range values {
		for _, part := range anyHole.Split(v, -1) {
			if part = strings.TrimSpace(part); part != "" && !isPlaceholder(part) && !exampleWords(part) {
				if !r.known[part] {
					r.known[part] = true
					r.values = append(r.values, []byte(part))
				}
			}
		}
	}
}

// exampleWords reports whether a value is made of the words that stand in
// documentation in place of one. They would be found everywhere.
func exampleWords(s string) bool {
	words := strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return strings.ContainsRune("-_ :.<>[]{}$", r) })
	return !slices.ContainsFunc(words, func(w string) bool {
		return !slices.Contains([]string{
			"a", "access", "admin", "api", "apikey", "auth", "authorization", "basic", "bearer", "client", "credential", "credentials", "example", "given",
			"here", "id", "insert", "jwt", "key", "login", "my", "oauth", "pass", "password", "placeholder", "secret", "session", "some", "string",
			"test", "the", "token", "user", "username", "value", "xxx", "xxxx", "xxxxx", "xxxxxxxx", "your",
		}, w)
	})
}

func (rec *recorded) credential(values ...string) { rec.run.credential(values...) }

// invalid is the error of a text that is not what it should be.
func invalid(format string, args ...any) error { return fault.New("IMPORT_INVALID", format, args...) }

// readJSON reads what must be JSON. Errors say the place, never what stands
// there.
func readJSON(data []byte, what string) (recipe.Object, error) {
	if len(data) > MaxSource {
		return nil, invalid("the %s has %d bytes, at most %d are read", what, len(data), MaxSource)
	}
	v, err := recipe.Decode(data, recipe.DecodeLimits{Depth: maxNesting})
	if err != nil {
		var bad *recipe.DecodeError
		if errors.As(err, &bad) {
			return nil, invalid("the %s is no JSON: %s", what, bad)
		}
		return nil, invalid("the %s is no JSON", what)
	}
	o, ok := v.(recipe.Object)
	if !ok {
		return nil, invalid("the %s is no object", what)
	}
	return o, nil
}
