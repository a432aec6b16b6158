package secrets

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/hostname"
	"github.com/hyperbolic-gateway/hb-rest/internal/redact"
)

// Bounds of a credential.
const (
	MaxHeaders = 4        // some APIs want a key and an application's id; nobody was seen to want more than three
	MaxHosts   = 20       // a credential for more hosts than that is several credentials
	MinValue   = 8        // characters; shorter ones cannot be found in answers without wrecking honest data
	MaxValue   = 16 << 10 // bytes; the largest header block that common servers take
	maxPrefix  = 64       // bytes
	maxText    = 2048     // bytes of a token URL, client id, scope or audience
)

// A Kind says what a credential's values are and how they are sent.
type Kind string

const (
	Static Kind = "static" // one value for each header
	Basic  Kind = "basic"  // user and password, sent as RFC 7617 says
	OAuth2 Kind = "oauth2" // the client secret of a client-credentials grant; what is sent is a minted token
)

// An AuthStyle says how a client shows itself to a token endpoint. It is always
// chosen: guessing sends the secret twice.
type AuthStyle string

const (
	StyleBody  AuthStyle = "body"  // client_id and client_secret in the form
	StyleBasic AuthStyle = "basic" // in the Authorization header
)

// A HeaderValue names a header and the text before the value in it: "Authorization", "Bearer ".
type HeaderValue struct {
	Name   string `json:"name"`
	Prefix string `json:"prefix"`
}

// OAuthMeta is everything about a token endpoint but the client secret.
type OAuthMeta struct {
	TokenURL  string    `json:"tokenUrl"` // absolute, http or https; the outbound policy decides which may be called
	ClientID  string    `json:"clientId"`
	Scope     string    `json:"scope"`    // "": not sent
	Audience  string    `json:"audience"` // "": not sent
	AuthStyle AuthStyle `json:"authStyle"`
}

// Meta is what anybody may know of a credential. All of it but Updated, Seal and
// Problem is bound to the sealed value.
type Meta struct {
	Name         string
	Kind         Kind
	Headers      []HeaderValue // Basic: left empty; OAuth2: empty means Authorization with "Bearer "
	AllowedHosts []string      // canonical (internal/hostname), at most MaxHosts
	OAuth        *OAuthMeta    // of an OAuth2 credential only
	Updated      time.Time     // set by Put
	Seal         string        // set by List and Find: another one after each Put; tells nothing of the value
	Problem      string        // set by List and Find when the record cannot be read; then only Name is known
}

// namePattern is the form of request.auth in a wrapper.
var namePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

// reserved are headers that decide what a request is or where it goes. As a
// credential they could reach another tenant of a shared front end.
var reserved = []string{
	"host", "content-length", "content-type", "content-encoding", "transfer-encoding", "connection", "keep-alive", "te", "trailer",
	"upgrade", "expect", "accept", "range", "x-http-method-override", "x-http-method", "x-method-override", "x-original-url", "x-rewrite-url",
}

// A checker collects the problems of a Meta and its values.
type checker struct{ details []fault.Detail }

func (c *checker) add(field string, code fault.Code, format string, args ...any) {
	c.details = append(c.details, fault.Detail{Field: field, Code: code, Message: fault.Shorten(fmt.Sprintf(format, args...), fault.MaxMessage)})
}

// err is SECRET_INVALID with every problem, or nil.
func (c *checker) err() error {
	if len(c.details) == 0 {
		return nil
	}
	first := c.details[0]
	return fail("SECRET_INVALID", "%s: %s", first.Field, first.Message).With(fault.Details(c.details))
}

// normalise checks m and returns it in the form that is stored.
func (c *checker) normalise(m Meta) Meta {
	if !namePattern.MatchString(m.Name) {
		c.add("name", "PATTERN", "a name is a letter or digit and up to 99 more letters, digits, dots, hyphens and underscores")
	}
	m.AllowedHosts = c.hosts(m.AllowedHosts)
	m.Headers = slices.Clone(m.Headers)
	if m.Kind != OAuth2 && m.OAuth != nil {
		c.add("oauth", "NOT_SUPPORTED", "only a credential of kind oauth2 has a token endpoint")
	}
	switch m.Kind {
	case Static:
		c.headers(m.Headers, MaxHeaders)
	case Basic:
		if len(m.Headers) > 1 || len(m.Headers) == 1 && !strings.EqualFold(m.Headers[0].Name, "Authorization") {
			c.add("headers", "NOT_SUPPORTED", "Basic is always sent in the Authorization header")
		}
		m.Headers = []HeaderValue{{"Authorization", "Basic "}}
	case OAuth2:
		if len(m.Headers) == 0 {
			m.Headers = []HeaderValue{{"Authorization", "Bearer "}}
		}
		c.headers(m.Headers, 1)
		m.OAuth = c.oauth(m.OAuth)
	default:
		c.add("kind", "ENUM", "the kind is static, basic or oauth2")
	}
	return m
}

func (c *checker) hosts(hosts []string) []string {
	var out []string
	for i, h := range hosts {
		name, err := hostname.Canonical(h)
		switch {
		case strings.Contains(h, "*"):
			c.add(fmt.Sprintf("allowedHosts[%d]", i), "PATTERN", "a wildcard would cover hosts that nobody named; list each host")
		case err != nil:
			c.add(fmt.Sprintf("allowedHosts[%d]", i), "URL_INVALID", "%v; write the host alone, without scheme, port or path", err)
		case !slices.Contains(out, name):
			out = append(out, name)
		}
	}
	switch {
	case len(hosts) == 0:
		c.add("allowedHosts", "TOO_FEW", "name at least one host that may be sent the credential")
	case len(out) > MaxHosts:
		c.add("allowedHosts", "TOO_MANY", "at most %d hosts", MaxHosts)
	}
	return out
}

func (c *checker) headers(hs []HeaderValue, most int) {
	if len(hs) < 1 || len(hs) > most {
		c.add("headers", "RANGE", "a credential of this kind has 1 to %d headers", most)
	}
	for i, h := range hs {
		field := fmt.Sprintf("headers[%d]", i)
		lower := strings.ToLower(h.Name)
		switch {
		case !isToken(h.Name) || len(h.Name) > maxPrefix:
			c.add(field, "HEADER_INVALID", "this is not a header's name")
		case slices.Contains(reserved, lower) || strings.HasPrefix(lower, "proxy-") || strings.HasPrefix(lower, "sec-"):
			c.add(field, "HEADER_INVALID", "the header %s cannot carry a credential", h.Name)
		case slices.ContainsFunc(hs[:i], func(o HeaderValue) bool { return strings.EqualFold(o.Name, h.Name) }):
			c.add(field, "DUPLICATE", "the header %s is there twice", h.Name)
		case len(h.Prefix) > maxPrefix || strings.ContainsFunc(h.Prefix, func(r rune) bool { return r < ' ' || r > '~' }):
			c.add(field, "HEADER_INVALID", "the prefix is at most %d printable ASCII characters", maxPrefix)
		}
	}
}

func (c *checker) oauth(o *OAuthMeta) *OAuthMeta {
	if o == nil {
		c.add("oauth", "REQUIRED", "an oauth2 credential needs a token URL, a client id and an auth style")
		return nil
	}
	out := *o
	c.tokenURL(o.TokenURL)
	if o.ClientID == "" {
		c.add("oauth.clientId", "REQUIRED", "the client id is missing")
	}
	for field, s := range map[string]string{"oauth.clientId": o.ClientID, "oauth.scope": o.Scope, "oauth.audience": o.Audience} {
		if len(s) > maxText || !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl) {
			c.add(field, "PATTERN", "at most %d bytes of text without control characters", maxText)
		}
	}
	if o.AuthStyle != StyleBody && o.AuthStyle != StyleBasic {
		c.add("oauth.authStyle", "ENUM", "choose body or basic; the provider's documentation says which")
	}
	return &out
}

func (c *checker) tokenURL(text string) {
	const field = "oauth.tokenUrl"
	u, err := url.Parse(text)
	switch {
	case err != nil || len(text) > maxText || u.Opaque != "" || u.Scheme != "https" && u.Scheme != "http":
		c.add(field, "URL_INVALID", "the token URL is an absolute https address of at most %d bytes", maxText)
		return
	case u.User != nil:
		c.add(field, "URL_USERINFO", "the token URL must not hold a user or password")
		return
	case u.Fragment != "" || strings.Contains(text, "#"):
		c.add(field, "URL_INVALID", "the token URL must not have a fragment")
		return
	}
	if _, _, err := hostname.FromURL(u); err != nil {
		c.add(field, "URL_INVALID", "%v", err)
	}
	for key, values := range u.Query() {
		if slices.ContainsFunc(values, func(v string) bool { return redact.CredentialPair(key, v) }) {
			c.add(field, "CREDENTIAL_QUERY", "the query key %s looks like a credential; the client secret is stored apart", key)
		}
	}
}

// values checks one value for each place of m; kept marks those that stay as
// they are sealed.
func (c *checker) values(m Meta, values [][]byte) {
	for i, v := range values {
		if v == nil {
			continue
		}
		field := fmt.Sprintf("value[%d]", i)
		switch {
		case len(v) > MaxValue:
			c.add(field, "TOO_LONG", "a value is at most %d KiB", MaxValue>>10)
		case !utf8.Valid(v):
			c.add(field, "PATTERN", "a value is UTF-8 text")
		case strings.ContainsAny(string(v), "\r\n\u2028\u2029"):
			c.add(field, "CONTROL_CHARACTER", "a value has no line breaks; was more than the value pasted?")
		case strings.ContainsFunc(string(v), unicode.IsControl):
			c.add(field, "CONTROL_CHARACTER", "a value has no control characters")
		default:
			c.shape(m, i, string(v), values)
		}
	}
}

// shape holds what depends on the kind.
func (c *checker) shape(m Meta, i int, v string, values [][]byte) {
	field := fmt.Sprintf("value[%d]", i)
	n := utf8.RuneCountInString(v)
	short := func() {
		c.add(field, "TOO_SHORT", "a value under %d characters cannot be kept out of answers without hiding honest text", MinValue)
	}
	switch m.Kind {
	case Basic:
		switch {
		case i == 0 && strings.Contains(v, ":"):
			c.add(field, "PATTERN", "a user name for Basic has no colon")
		case i == 0 && n == 0:
			c.add(field, "REQUIRED", "the user name is missing")
		// Some APIs take a key as the user and nothing, or an x, as the password.
		case i == 1 && n < MinValue && (n > 1 || values[0] == nil || utf8.RuneCount(values[0]) < MinValue):
			short()
		}
	case Static:
		h := m.Headers[min(i, len(m.Headers)-1)]
		switch word := strings.TrimSpace(h.Prefix); {
		case n < MinValue:
			short()
		case strings.TrimSpace(v) != v:
			c.add(field, "PATTERN", "the value begins or ends with a space; servers drop those")
		case strings.ContainsFunc(v, func(r rune) bool { return r > '~' }):
			c.add(field, "PATTERN", "a header's value is printable ASCII")
		case word != "" && len(v) > len(word) && strings.EqualFold(v[:len(word)+1], word+" "):
			c.add(field, "DUPLICATE", "the value begins with the prefix %s, which is sent anyway; leave it out", word)
		}
	default:
		if n < MinValue {
			short()
		}
	}
}

// places is how many values a credential of m has.
func (m *Meta) places() int {
	switch m.Kind {
	case Static:
		return len(m.Headers)
	case Basic:
		return 2
	}
	return 1
}

// isToken is RFC 9110's form of a header's name.
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0) {
			return false
		}
	}
	return s != ""
}
