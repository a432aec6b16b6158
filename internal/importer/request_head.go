package importer

import (
	"encoding/base64"
	"net/url"
	"slices"
	"strings"

	"github.com/hyperbolic-gateway/hb-rest/internal/redact"
	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// connectionHeaders belong to the connection: whoever sends makes them.
var connectionHeaders = []string{
	"content-length", "connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade", "expect", "accept-encoding",
	"proxy-connection", "http2-settings",
}

// browserHeaders are what a browser adds by itself and an API does not need.
// Beside them stand those that begin with "sec-", and those of tracing.
var browserHeaders = []string{
	"user-agent", "origin", "referer", "accept-language", "cache-control", "pragma", "dnt", "upgrade-insecure-requests", "priority",
	"if-none-match", "if-modified-since", "if-match", "if-unmodified-since", "save-data", "x-client-data", "viewport-width", "downlink", "rtt", "ect",
	"traceparent", "tracestate", "baggage", "sentry-trace", "newrelic", "b3", "x-request-id", "x-amzn-trace-id",
}

func browserHeader(name string) bool {
	return strings.HasPrefix(name, "sec-") || strings.HasPrefix(name, "x-datadog-") || strings.HasPrefix(name, "x-b3-") || slices.Contains(browserHeaders, name)
}

// headersAndCredentials takes out of the headers what is a credential and what
// nobody asked for.
func (rec *recorded) headersAndCredentials() {
	s := rec.sent
	authorized := slices.ContainsFunc(s.headers, func(h header) bool { return strings.EqualFold(h.name, "Authorization") })
	for _, user := range []string{rec.raw.user, s.user} {
		if user != "" {
			rec.basicUser(user, !authorized)
		}
	}
	noisy := rec.run.noisy || slices.ContainsFunc(s.headers, func(h header) bool { return strings.HasPrefix(strings.ToLower(h.name), "sec-") })
	var kept []header
	var left []string
	for _, h := range s.headers {
		lower := strings.ToLower(h.name)
		switch {
		case strings.HasPrefix(h.name, ":"): // HTTP/2 writes the request line so
		case lower == "cookie":
			rec.cookies(h.value)
		case lower == "authorization":
			rec.authorization(h.value)
		case strings.HasPrefix(lower, "proxy-"):
			rec.credential(h.value)
			rec.drop("header %s of %s", h.name, rec.title())
		case rec.credentialHeader(h):
		case slices.Contains(connectionHeaders, lower):
			if !noisy && lower != "content-length" && lower != "accept-encoding" {
				rec.notes.add("header %s is left out: it belongs to the connection", h.name)
			}
		case lower == "host":
			if !strings.EqualFold(h.value, rec.raw.authority) && s.err == nil {
				s.err = refuse("HOST", "it sets the header Host to another host than the URL's")
			}
		case noisy && browserHeader(lower):
			if !rec.run.noisy {
				left = append(left, h.name)
			}
		case lower == "content-type":
			rec.media = h.value
		default:
			kept = append(kept, h)
		}
	}
	if len(left) > 0 {
		rec.notes.add("headers that a browser adds are left out: %s", cut(strings.Join(left, ", "), 200))
	}
	s.headers = kept
}

// credentialHeader takes a header out that is a credential by its name, by the
// shape of its value or by the name of what stands in it.
func (rec *recorded) credentialHeader(h header) bool {
	variable := ""
	for _, m := range anyHole.FindAllStringSubmatch(h.value, -1) {
		if redact.CredentialKey(m[1]) || redact.CredentialHeader(m[1]) {
			variable = m[1]
		}
	}
	if !redact.CredentialHeader(h.name) && variable == "" && cleanText(h.value) == h.value {
		return false
	}
	rec.credential(h.value)
	rec.drop("header %s of %s", h.name, rec.title())
	if lower := strings.ToLower(h.name); strings.Contains(lower, "csrf") || strings.Contains(lower, "xsrf") || strings.HasPrefix(lower, "set-cookie") {
		rec.notes.add("header %s, which belongs to a session, is left out", h.name)
		return true
	}
	prefix, value := "", h.value
	if word, rest, ok := strings.Cut(h.value, " "); ok && schemeWord(word) {
		prefix, value = word+" ", rest
		rec.credential(value)
	}
	rec.from(h.name, value)
	rec.addWay(&way{kind: "static", headers: []credentialHeader{{h.name, prefix}}})
	return true
}

// from notes the variable that a credential came from.
func (rec *recorded) from(place, value string) {
	if m := anyHole.FindStringSubmatch(value); m != nil && clean("", m[1]) {
		rec.notes.add("the value of %s came from %s", place, cut(m[1], 40))
	}
}

// addWay puts one more credential to those that the request needs.
func (rec *recorded) addWay(w *way) {
	s := rec.sent
	switch {
	case s.auth == nil:
		s.auth = w
	case s.auth.kind == "static" && w.kind == "static":
		for _, h := range w.headers {
			if !slices.ContainsFunc(s.auth.headers, func(x credentialHeader) bool { return strings.EqualFold(x.name, h.name) }) {
				both := *s.auth
				both.headers = append(slices.Clone(both.headers), h)
				s.auth = &both
			}
		}
		if len(s.auth.headers) > 4 && s.err == nil {
			s.err = refuse("AUTH_COMBINED", "it needs more than four credentials, which one credential cannot hold")
		}
	case s.auth.headers[0].name == "Authorization" && w.headers[0].name == "Authorization":
		// The same place: one of them is sent, and the source says which first.
	case s.err == nil:
		s.err = refuse("AUTH_COMBINED", "it needs %s and a user with a password together, which one credential cannot hold", w.headers[0].name)
	}
}

func schemeWord(word string) bool {
	return word != "" && len(word) <= 20 && strings.Trim(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-") == ""
}

func (rec *recorded) authorization(value string) {
	rec.credential(value)
	rec.drop("header Authorization of %s", rec.title())
	word, rest, ok := strings.Cut(value, " ")
	rest = strings.TrimSpace(rest)
	if !ok || !schemeWord(word) {
		word, rest = "", value
	}
	rec.credential(rest)
	switch strings.ToLower(word) {
	case "basic":
		if plain, err := base64.StdEncoding.DecodeString(rest); err == nil {
			rec.userAndPassword(string(plain))
		}
		rec.from("header Authorization", rest)
		rec.addWay(&way{kind: "basic", headers: []credentialHeader{{"Authorization", "Basic "}}})
	case "digest", "negotiate", "ntlm", "hawk", "aws4-hmac-sha256", "oauth", "signature", "mac":
		if rec.sent.err == nil {
			rec.sent.err = refuse("AUTH_SCHEME", "its authentication (%s) signs each request, which is not supported", word)
		}
	default:
		prefix := ""
		if word != "" {
			prefix = word + " "
			if strings.EqualFold(word, "bearer") {
				prefix = "Bearer "
			}
		}
		rec.from("header Authorization", rest)
		rec.addWay(&way{kind: "static", headers: []credentialHeader{{"Authorization", prefix}}})
	}
}

// basicUser takes user and password, as in -u and in an address.
func (rec *recorded) basicUser(user string, counts bool) {
	for _, u := range []func(string) (string, error){url.PathUnescape, func(s string) (string, error) { return s, nil }} {
		if plain, err := u(user); err == nil {
			rec.userAndPassword(plain)
			rec.credential(base64.StdEncoding.EncodeToString([]byte(plain)))
		}
	}
	rec.drop("user part of %s", rec.title())
	if !counts {
		return // a header Authorization is sent in its place
	}
	rec.from("the user part", user)
	rec.addWay(&way{kind: "basic", headers: []credentialHeader{{"Authorization", "Basic "}}})
}

// userAndPassword remembers the password, or the user where that is the
// secret: with many APIs the password is empty.
func (rec *recorded) userAndPassword(s string) {
	user, password, _ := strings.Cut(s, ":")
	if len(password) < redact.MinSecret || cleanText(user) != user {
		rec.credential(user)
	}
	rec.credential(password)
}

func (rec *recorded) cookies(value string) {
	for _, c := range strings.Split(value, ";") {
		_, v, ok := strings.Cut(c, "=")
		if !ok {
			v = c
		}
		if len(strings.TrimSpace(v)) >= 12 { // shorter ones are words such as "dark"
			rec.credential(v)
		}
	}
	rec.credential(value)
	rec.drop("header Cookie of %s", rec.title())
	rec.notes.add("its cookies are left out: an API that needs a session will refuse it")
}

// headerTemplates makes the headers of the template.
func (rec *recorded) headerTemplates() error {
	for _, h := range rec.sent.headers {
		if !headerName.MatchString(h.name) && strings.Trim(h.name, "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
			return refuse("HEADER_INVALID", "it has a header whose name cannot be sent")
		}
		if slices.ContainsFunc(rec.headers, func(m recipe.Member) bool { return strings.EqualFold(m.Key, h.name) }) {
			return refuse("HEADER_REPEATED", "it sends the header %s twice, which cannot be sent", h.name)
		}
		if strings.EqualFold(h.name, "Accept") && (h.value == "application/json" || rec.run.noisy && (strings.Contains(h.value, "*/*") || strings.Contains(h.value, "application/json"))) {
			continue // what is asked for anyhow
		}
		if name, ok := placeholder(h.value, false); ok {
			h.value = holeText(name)
		}
		t, err := rec.template(h.value, "header", true)
		if err != nil {
			return err
		}
		rec.headers = append(rec.headers, recipe.Member{Key: h.name, Value: t})
	}
	return nil
}

// suggestion is the credential that a person has to store. Two of one name are
// the same one; another one gets another name.
func (rec *recorded) suggestion(w *way) *Secret {
	if w.note != "" {
		rec.notes.add("%s", w.note)
	}
	secret := rec.suggest(w)
	what := sprintf("%s %q %s", w.kind, w.headers, w.tokenURL)
	base := secret.Name
	for i := 2; rec.run.names[secret.Name] != "" && rec.run.names[secret.Name] != what; i++ {
		secret.Name = fitID(sprintf("%s-%d", base, i))
	}
	rec.run.names[secret.Name] = what
	secret.Command = secret.command(w.headers, w.tokenURL, w.scopes)
	return secret
}
