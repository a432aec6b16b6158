// Package hostname is the one room for host names: every part that validates a
// wrapper, dials, binds a credential, pages or imports asks it for the
// canonical form of a host and for the origin of a URL. Two parts that differed
// by one rule would send a credential to a host it is not bound to.
//
// It never resolves a name, never judges where an address lies (internal/outbound
// does) and never touches the network. Start with [Canonical].
package hostname

import (
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/idna"
	"golang.org/x/net/publicsuffix"
)

// Limits of RFC 1035 section 2.3.4 for a name without its last dot.
const (
	MaxName  = 253 // bytes of a whole name
	MaxLabel = 63  // bytes between two dots
)

// An Error says why a text is not a host, a port or an origin. Its text is one
// sentence without a final period, fit for an agent or a person.
type Error struct {
	Host   string // what was given, shortened
	Reason string // completes "host "x" …"
}

// Error is the sentence: the host as given and the reason.
func (e *Error) Error() string { return fmt.Sprintf("host %q %s", e.Host, e.Reason) }

func bad(host, reason string) *Error {
	const most = 80 // characters shown; a longer host is hostile or a mistake
	if r := []rune(host); len(r) > most {
		host = string(r[:most-1]) + "…"
	}
	return &Error{Host: host, Reason: reason}
}

// Canonical returns the one form in which a host is compared, resolved, sent and
// bound: a name in ASCII (IDNA lookup profile) and lower case without a trailing
// dot, or an address literal as net/netip writes it, IPv6 without brackets.
//
// It refuses, with an *[Error], what different resolvers read differently: empty
// text, user information, a port, zone identifiers, percent signs, empty or
// overlong labels, and names whose last label is a number ("127.1",
// "2130706433", "0x7f.1") unless the whole is a plain dotted quad. A name may
// have underscores: real hosts do.
func Canonical(host string) (string, error) {
	if host == "" {
		return "", bad(host, "is empty")
	}
	if strings.HasPrefix(host, "[") || strings.Contains(host, ":") {
		return canonicalIPv6(host)
	}
	if i := strings.IndexAny(host, "@/\\?#%"); i >= 0 {
		return "", bad(host, fmt.Sprintf("has %q, which does not belong in a host name", host[i]))
	}
	name, err := toASCII(host)
	if err != nil {
		return "", err
	}
	name = strings.TrimSuffix(name, ".")
	if err := checkName(host, name); err != nil {
		return "", err
	}
	if endsInNumber(name) {
		// netip accepts four plain decimal numbers only: no octal, no hex, no short forms.
		a, err := netip.ParseAddr(name)
		if err != nil {
			return "", bad(host, "is a number that some systems read as an address; write a name or four decimal numbers")
		}
		return a.String(), nil
	}
	return name, nil
}

func canonicalIPv6(host string) (string, error) {
	text := host
	if strings.HasPrefix(text, "[") {
		if !strings.HasSuffix(text, "]") {
			return "", bad(host, "has an opening bracket without a closing one at its end")
		}
		text = text[1 : len(text)-1]
	}
	a, err := netip.ParseAddr(text)
	switch {
	case strings.Contains(text, "%"):
		return "", bad(host, "has a zone identifier, which only means something on one machine")
	case err != nil || !a.Is6():
		return "", bad(host, "is not a host name, and not an IPv6 address either")
	}
	return a.String(), nil
}

// toASCII maps a name to lower-case ASCII. Names that are ASCII already and hold
// no punycode skip IDNA, whose hyphen and underscore rules refuse hosts in use.
func toASCII(host string) (string, error) {
	lower := strings.ToLower(host)
	if isASCII(host) && !strings.HasPrefix(lower, "xn--") && !strings.Contains(lower, ".xn--") {
		return lower, nil
	}
	name, err := idna.Lookup.ToASCII(host)
	if err != nil {
		return "", bad(host, "is not a valid international name")
	}
	// A mapping may itself yield punycode text; only a fixed point is canonical.
	again, err := idna.Lookup.ToASCII(name)
	if err != nil || again != name {
		return "", bad(host, "is not a valid international name")
	}
	return strings.ToLower(name), nil
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// checkName looks at an ASCII, lower-case name without its trailing dot. host is
// the original, for the message.
func checkName(host, name string) error {
	if len(name) > MaxName {
		return bad(host, fmt.Sprintf("is longer than %d bytes", MaxName))
	}
	for label := range strings.SplitSeq(name, ".") {
		switch {
		case label == "":
			return bad(host, "has an empty label (two dots in a row, or a dot at the start)")
		case len(label) > MaxLabel:
			return bad(host, fmt.Sprintf("has a label longer than %d bytes", MaxLabel))
		case label[0] == '-' || label[len(label)-1] == '-':
			return bad(host, "has a label that begins or ends with a hyphen")
		}
		for i := range len(label) {
			c := label[i]
			if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_') {
				return bad(host, fmt.Sprintf("has %q, which does not belong in a host name", c))
			}
		}
	}
	return nil
}

// endsInNumber is the rule of the WHATWG URL standard ("ends in a number
// checker"), widened to every last label that begins with 0x: no such
// top-level domain exists, and C resolvers read some of them as numbers.
func endsInNumber(name string) bool {
	last := name[strings.LastIndexByte(name, '.')+1:]
	if strings.HasPrefix(last, "0x") {
		return true
	}
	return strings.Trim(last, "0123456789") == ""
}

// FromURL returns the canonical host of u and its port in plain decimal, the
// scheme's own one (80, 443) filled in; port is "" for a scheme that has none
// here. Errors are *[Error]: a bad host, user information, a port outside 1-65535.
func FromURL(u *url.URL) (host, port string, err error) {
	if u == nil {
		return "", "", bad("", "is empty")
	}
	if u.User != nil || strings.Contains(u.Host, "@") {
		// The text before the @ may be a password, so it is not shown.
		return "", "", bad(u.Hostname(), "has user information before it; credentials do not belong in a URL")
	}
	name, port, ok := split(u.Host)
	if !ok {
		return "", "", bad(u.Host, "is not a name or a bracketed IPv6 address with an optional port")
	}
	host, err = Canonical(name)
	if err != nil {
		return "", "", err
	}
	if port == "" {
		switch strings.ToLower(u.Scheme) {
		case "http":
			port = "80"
		case "https":
			port = "443"
		}
		return host, port, nil
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return "", "", bad(host, "has a port that is not a number from 1 to 65535")
	}
	return host, strconv.FormatUint(n, 10), nil
}

// split takes host[:port] apart and keeps the brackets of an IPv6 literal.
// url.URL's own methods are lenient with hand-made values such as "::1:80".
func split(hostport string) (host, port string, ok bool) {
	end := strings.LastIndexByte(hostport, ']') + 1
	if (end > 0) != strings.HasPrefix(hostport, "[") {
		return "", "", false
	}
	rest := hostport[end:]
	if end == 0 {
		end = strings.IndexByte(hostport, ':')
		if end < 0 {
			return hostport, "", true
		}
		rest = hostport[end:]
	}
	if rest != "" && (rest[0] != ':' || strings.Contains(rest[1:], ":")) {
		return "", "", false
	}
	return hostport[:end], strings.TrimPrefix(rest, ":"), true
}

// Origin returns scheme://host:port of an http or https URL in canonical form,
// the default port written out, so that two origins are the same exactly when
// the strings are. Errors are *[Error].
func Origin(u *url.URL) (string, error) {
	host, port, err := FromURL(u)
	if err != nil {
		return "", err
	}
	scheme := strings.ToLower(u.Scheme)
	if scheme != "http" && scheme != "https" {
		return "", bad(host, "has no origin: the scheme is not http or https")
	}
	return scheme + "://" + Join(host, port), nil
}

// Site is the registrable domain of a canonical host by the public suffix list:
// "example.co.uk" for "api.example.co.uk". Addresses, single labels and public
// suffixes are their own site.
func Site(host string) string {
	if _, err := netip.ParseAddr(host); err == nil {
		return host
	}
	site, err := publicsuffix.EffectiveTLDPlusOne(host)
	if err != nil {
		return host
	}
	return site
}

// Join writes a canonical host and a port as host:port, an IPv6 literal in
// brackets. With an empty port it is the host alone, as it stands in a URL.
func Join(host, port string) string {
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if port == "" {
		return host
	}
	return host + ":" + port
}

// SameOrigin reports whether a and b are http or https URLs with the same
// scheme, canonical host and port. A URL without an origin is never the same,
// not even as itself.
func SameOrigin(a, b *url.URL) bool {
	x, err := Origin(a)
	if err != nil {
		return false
	}
	y, err := Origin(b)
	return err == nil && x == y
}
