package wrapper

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/hyperbolic-gateway/hb-rest/internal/hostname"
	"github.com/hyperbolic-gateway/hb-rest/internal/redact"
)

// A urlTemplate is a compiled request.url. Its literal parts are sent byte for
// byte, which is why only characters are admitted that need no escaping.
type urlTemplate struct {
	scheme string
	host   string // canonical, with the port when it is not the scheme's own
	path   Template
	pairs  []urlPair // of the query, as written between "&"
	query  bool      // the template has a "?"
}

// A urlPair is one piece of the URL's own query: literal, or "key=" and a value
// with placeholders.
type urlPair struct {
	literal string // the whole piece, when value is empty
	key     string // with its "="
	value   Template
}

const urlField = "wrapper.request.url"

// url compiles request.url.
func (c *checker) url(s string) *urlTemplate {
	if len(s) > MaxURL {
		c.problem(urlField, "TOO_LONG", "", "a URL can have %d bytes, this one has %d", MaxURL, len(s))
		return nil
	}
	scheme, rest, ok := strings.Cut(s, "://")
	if placeholderBefore(s, scheme, rest, ok) {
		c.problem(urlField, "PLACEHOLDER_IN_HOST", "write scheme, host and port out; make one wrapper for each host",
			"scheme, host and port cannot come from arguments")
		return nil
	}
	if !ok {
		if i := strings.IndexByte(s, ':'); i > 0 && !strings.ContainsAny(s[:i], "/?.") {
			c.problem(urlField, "URL_SCHEME", "use https://", "the URL must begin with https:// or http://")
			return nil
		}
		c.problem(urlField, "URL_INVALID", "write it in full, such as https://api.example.com/v1/items", "the URL must be absolute")
		return nil
	}
	u := &urlTemplate{scheme: strings.ToLower(scheme)}
	if u.scheme != "https" && u.scheme != "http" {
		c.problem(urlField, "URL_SCHEME", "use https://", "the URL must begin with https:// or http://")
		return nil
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	authority, rest := rest[:end], rest[end:]
	if !c.authority(u, authority) {
		return nil
	}
	if strings.Contains(rest, "#") {
		c.problem(urlField, "URL_INVALID", "leave the part from # on out; write %23 for the character", "a fragment (#…) is never sent")
		return nil
	}
	path, query, has := cutOutside(rest)
	u.query = has
	before := len(c.report.Problems)
	u.path, _ = c.template(path, urlField, func(Template) place { return inPath })
	for _, p := range u.path.parts {
		c.urlLiteral(p.text, pathByte, "path")
	}
	c.urlQuery(u, query)
	if len(c.report.Problems) > before {
		return nil
	}
	return u
}

// placeholderBefore reports whether a placeholder begins before the path.
func placeholderBefore(s, scheme, rest string, absolute bool) bool {
	if !absolute {
		return strings.HasPrefix(s, "{{")
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	return strings.Contains(scheme, "{{") || strings.Contains(rest[:end], "{{")
}

// cutOutside cuts at the first "?" that is not inside a placeholder.
func cutOutside(s string) (before, after string, found bool) {
	for i := 0; i < len(s); i++ {
		if strings.HasPrefix(s[i:], "{{") {
			if n := strings.Index(s[i:], "}}"); n > 0 {
				i += n + 1
			}
			continue
		}
		if s[i] == '?' {
			return s[:i], s[i+1:], true
		}
	}
	return s, "", false
}

// authority checks user information, host and port.
func (c *checker) authority(u *urlTemplate, authority string) bool {
	if strings.Contains(authority, "@") {
		c.problem(urlField, "URL_USERINFO", "take user and password out of the URL; a person stores them as a credential and request.auth names it",
			"a URL cannot carry user information")
		return false
	}
	parsed := &url.URL{Scheme: u.scheme, Host: authority}
	host, port, err := hostname.FromURL(parsed)
	if err != nil {
		hint := ""
		if strings.ContainsAny(authority, "{}<>$") {
			hint = "write scheme, host and port out; make one wrapper for each host"
		}
		c.problem(urlField, "URL_INVALID", hint, "%s", err)
		return false
	}
	if u.scheme == "https" && port == "443" || u.scheme == "http" && port == "80" {
		port = ""
	}
	u.host = hostname.Join(host, port)
	return true
}

// urlLiteral refuses what net/url or a server would rewrite.
func (c *checker) urlLiteral(s string, admitted func(byte) bool, what string) {
	for i := 0; i < len(s); i++ {
		switch b := s[i]; {
		case b == '%':
			if i+2 >= len(s) || !isHex(s[i+1]) || !isHex(s[i+2]) {
				c.problem(urlField, "URL_INVALID", "write %25 for a percent sign", "a %% in the %s is not followed by two hexadecimal digits", what)
				return
			}
			i += 2
		case !admitted(b):
			r := []rune(s[i:])[0]
			hint := inPlace(s[i:])
			if hint == "" {
				hint = "write " + escape(string(r))
			}
			c.problem(urlField, "URL_INVALID", hint, "the %s holds %s, which must be percent-encoded", what, strconv.QuoteRuneToASCII(r))
			return
		}
	}
}

// pathByte is RFC 3986 pchar, "/" and the brackets that net/url leaves alone.
func pathByte(b byte) bool {
	return unreserved(b) || strings.IndexByte("/:@!$&'()*+,;=[]", b) >= 0
}

// queryByte is every visible ASCII character that neither ends the query nor
// is refused by common servers.
func queryByte(b byte) bool { return b > 0x20 && b < 0x7f && strings.IndexByte(`"<>\#`, b) < 0 }

func unreserved(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || strings.IndexByte("-._~", b) >= 0
}

func isHex(b byte) bool {
	return b >= '0' && b <= '9' || b >= 'a' && b <= 'f' || b >= 'A' && b <= 'F'
}

// urlQuery compiles the query that is written in the URL.
func (c *checker) urlQuery(u *urlTemplate, query string) {
	for i, piece := range splitPairs(query) {
		if i == 0 && piece == "" && query == "" {
			return
		}
		key, value, has := strings.Cut(piece, "=")
		if strings.Contains(key, "{{") {
			c.problem(urlField, "PLACEHOLDER_SYNTAX", "write the name out", "the name of a query parameter cannot come from an argument")
			continue
		}
		c.credentialKey(urlField, piece)
		t, ok := c.template(value, urlField, queryPlace)
		if !ok {
			continue
		}
		c.urlLiteral(key, queryByte, "query")
		for _, p := range t.parts {
			c.urlLiteral(p.text, queryByte, "query")
		}
		if !has || t.literal() {
			u.pairs = append(u.pairs, urlPair{literal: piece})
			continue
		}
		u.pairs = append(u.pairs, urlPair{key: key + "=", value: t})
	}
}

// splitPairs splits at every "&" outside placeholders.
func splitPairs(query string) []string {
	var out []string
	start := 0
	for i := 0; i < len(query); i++ {
		if strings.HasPrefix(query[i:], "{{") {
			if n := strings.Index(query[i:], "}}"); n > 0 {
				i += n + 1
			}
			continue
		}
		if query[i] == '&' {
			out = append(out, query[start:i])
			start = i + 1
		}
	}
	return append(out, query[start:])
}

func queryPlace(t Template) place {
	if _, ok := t.whole(); ok {
		return inQueryWhole
	}
	return inQueryText
}

// credentialKey refuses credential-shaped names in the URL's query, also those
// that a server splitting at ";" would see.
func (c *checker) credentialKey(field, piece string) {
	pairs := []string{piece}
	if strings.Contains(piece, ";") {
		pairs = append(pairs, strings.Split(piece, ";")...)
	}
	for _, pair := range pairs {
		name, value, _ := strings.Cut(pair, "=")
		if decoded, err := url.QueryUnescape(name); err == nil {
			name = decoded
		}
		if strings.Contains(value, "{{") { // what an argument brings is not in the document
			value = ""
		}
		if redact.CredentialPair(name, value) {
			c.credentialQuery(field, name)
			return
		}
	}
}

func (c *checker) credentialQuery(field, name string) {
	c.problem(field, "CREDENTIAL_QUERY", "a person stores the credential, and request.auth names it",
		"query parameter %q looks like a credential", oneLine(name))
}

// escape percent-encodes every byte that is not unreserved in RFC 3986; a space
// becomes %20.
func escape(s string) string {
	for i := range len(s) {
		if !stays[s[i]] {
			return string(appendEscaped(make([]byte, 0, len(s)+len(s)/2), s))
		}
	}
	return s
}

// stays marks the unreserved bytes.
var stays = func() (t [256]bool) {
	for i := range t {
		t[i] = unreserved(byte(i))
	}
	return t
}()

func appendEscaped(dst []byte, s string) []byte {
	const digits = "0123456789ABCDEF"
	from := 0
	for i := range len(s) {
		if stays[s[i]] {
			continue
		}
		dst = append(dst, s[from:i]...)
		dst = append(dst, '%', digits[s[i]>>4], digits[s[i]&15])
		from = i + 1
	}
	return append(dst, s[from:]...)
}
