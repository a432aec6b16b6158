package outbound

import (
	"net/netip"
	"net/url"
	"strings"
	"sync"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/hostname"
)

// urlField is where the fault of a refused URL sits for the agent.
const urlField = "wrapper.request.url"

// A target is a URL that has passed everything that needs no network.
type target struct {
	url *url.URL // what is sent: canonical host, legal bytes only
	spot
}

// A spot is where a request goes: all of a target but path and query.
type spot struct {
	scheme, host, port string // canonical
	authority          string // the host as it stands in a Host header
	origin             string
}

func defaultPort(scheme string) string {
	if scheme == "http" {
		return "80"
	}
	return "443"
}

// CheckURL judges a URL without any network access, as a dry run does: scheme,
// host, user information, port, size, and the address if the host is one. It
// returns nil or a *fault.Error with POLICY_SCHEME, POLICY_URL,
// POLICY_PRIVATE_ADDRESS or POLICY_REQUEST_TOO_LARGE.
func (p Policy) CheckURL(u *url.URL) error {
	_, err := p.target(u)
	return err
}

func (p Policy) target(u *url.URL) (*target, error) {
	t, err := p.spot(u)
	if err != nil {
		return nil, err
	}
	sent, err := sendable(u, t.authority)
	if err != nil {
		return nil, err
	}
	return &target{sent, t}, p.checkLiteral(t.scheme, t.host, t.port)
}

// spot judges a URL without its path and query, and without looking whether its
// host is an address.
func (p Policy) spot(u *url.URL) (t spot, err error) {
	if u == nil {
		return spot{}, badURL("the URL is empty")
	}
	t.scheme = strings.ToLower(u.Scheme)
	if t.scheme != "http" && t.scheme != "https" {
		return spot{}, fault.New("POLICY_SCHEME", "the scheme %q is not http or https", fault.Shorten(u.Scheme, 20)).
			With(fault.Field(urlField), fault.Hint("Use https."))
	}
	if t.host, t.port, err = hostname.FromURL(u); err != nil {
		return spot{}, badURL("%s", err).With(fault.Cause(err))
	}
	if badPorts[t.port] {
		return spot{}, badURL("port %s belongs to another protocol and is closed to http, in browsers too", t.port)
	}
	if t.scheme == "http" && !p.httpAllowed(t.host, t.port) {
		return spot{}, fault.New("POLICY_SCHEME", "plain http to %s is not allowed", t.host).
			With(fault.Field(urlField), fault.Hint("%s", httpHint(t.host, t.port)))
	}
	full := hostname.Join(t.host, t.port)
	t.authority, t.origin = full, t.scheme+"://"+full
	if t.port == defaultPort(t.scheme) {
		t.authority = hostname.Join(t.host, "")
	}
	return t, nil
}

// maxSpots bounds what a client remembers; a person calls a few APIs at a time.
const maxSpots = 64

// spots are the places that a client's policy has let pass. What passes depends
// on the policy and the written scheme and host alone, and a client's policy
// never changes. The addresses of a name are judged at each dial all the same.
type spots struct {
	mu    sync.RWMutex
	known map[[2]string]spot // by scheme and host as they are written
}

// target is Policy.target for a client.
func (c *Client) target(u *url.URL) (*target, error) {
	if u == nil || u.User != nil {
		return c.policy.target(u)
	}
	key := [2]string{u.Scheme, u.Host}
	c.spots.mu.RLock()
	known, ok := c.spots.known[key]
	c.spots.mu.RUnlock()
	if ok {
		sent, err := sendable(u, known.authority)
		if err != nil {
			return nil, err
		}
		return &target{sent, known}, nil
	}
	t, err := c.policy.target(u)
	if err != nil {
		return t, err
	}
	c.spots.mu.Lock()
	defer c.spots.mu.Unlock()
	if len(c.spots.known) >= maxSpots || c.spots.known == nil {
		c.spots.known = make(map[[2]string]spot)
	}
	c.spots.known[key] = t.spot
	return t, nil
}

// CheckURL is Policy.CheckURL of the client's policy.
func (c *Client) CheckURL(u *url.URL) error {
	_, err := c.target(u)
	return err
}

// checkLiteral judges hosts that need no resolver: addresses, and the names
// that RFC 6761 reserves for this machine.
func (p Policy) checkLiteral(scheme, host, port string) error {
	shown := port
	if port == defaultPort(scheme) {
		shown = ""
	}
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		if p.AllowPrivate || p.allowed(host, port) != nil {
			return nil
		}
		return refusePrivate(host, shown, "", "this machine (RFC 6761)")
	}
	a, err := netip.ParseAddr(host)
	if err != nil {
		return nil // a name; the dialer judges its addresses
	}
	if p.allowed(host, port) != nil {
		p.AllowPrivate = true
	}
	return p.checkAddr(a, shown)
}

// allowed finds the entry of the allow list for a canonical host and port.
func (p Policy) allowed(host, port string) *HostPort {
	for i, a := range p.Allowed {
		if c, err := hostname.Canonical(a.Host); err == nil && c == host && (a.Port == "" || a.Port == port) {
			return &p.Allowed[i]
		}
	}
	return nil
}

func (p Policy) httpAllowed(host, port string) bool {
	if p.AllowHTTP || p.AllowPrivate {
		return true
	}
	a := p.allowed(host, port)
	return a != nil && a.HTTP
}

// sendable copies u with the canonical host and without the fragment. The path
// and the query keep their spelling; only bytes that must not stand in a request
// line (spaces, quotes, anything beyond ASCII) are percent-encoded, as browsers
// do. Control characters are refused: they never come from an honest template.
func sendable(u *url.URL, authority string) (*url.URL, error) {
	c := *u
	c.Scheme, c.Host = strings.ToLower(u.Scheme), authority
	c.User, c.Fragment, c.RawFragment = nil, "", ""
	for _, s := range []string{u.RawQuery, u.Opaque} {
		if strings.ContainsFunc(s, func(r rune) bool { return r < 0x20 || r == 0x7f }) {
			return nil, badURL("the URL has a control character")
		}
	}
	if c.Opaque != "" && (c.Opaque[0] != '/' || strings.HasPrefix(c.Opaque, "//")) {
		return nil, badURL("the URL has no path that begins with one slash")
	}
	if c.Opaque == "" && c.Path != "" && c.Path[0] != '/' {
		return nil, badURL("the URL's path does not begin with a slash")
	}
	c.RawQuery, c.Opaque = encodeIllegal(c.RawQuery), encodeIllegal(c.Opaque)
	if n := len(c.Scheme) + len("://") + len(authority) + len(c.RequestURI()); n > MaxURL {
		return nil, fault.New("POLICY_REQUEST_TOO_LARGE", "the URL has %d bytes; at most %d are sent", n, MaxURL).With(fault.Field(urlField))
	}
	return &c, nil
}

// encodeIllegal percent-encodes what RFC 3986 does not allow in a path or query
// and what would break a request line, and leaves escapes as they are.
func encodeIllegal(s string) string {
	illegal := func(c byte) bool { return c <= ' ' || c >= 0x7f || c == '"' || c == '<' || c == '>' || c == '#' }
	first := 0
	for first < len(s) && !illegal(s[first]) {
		first++
	}
	if first == len(s) {
		return s
	}
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; illegal(c) {
			const hex = "0123456789ABCDEF"
			b.WriteString(string([]byte{'%', hex[c>>4], hex[c&15]}))
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func badURL(format string, args ...any) *fault.Error {
	return fault.New("POLICY_URL", format, args...).With(fault.Field(urlField))
}

// badPorts is the "bad port" list of the WHATWG Fetch standard (port 0 is no
// port for hostname): other protocols whose servers a request could confuse.
var badPorts = func() map[string]bool {
	m := make(map[string]bool)
	for _, p := range strings.Fields(`1 7 9 11 13 15 17 19 20 21 22 23 25 37 42 43 53 69 77 79 87 95
		101 102 103 104 109 110 111 113 115 117 119 123 135 137 139 143 161 179 389 427 465
		512 513 514 515 526 530 531 532 540 548 554 556 563 587 601 636 989 990 993 995
		1719 1720 1723 2049 3659 4045 4190 5060 5061 6000 6566 6665 6666 6667 6668 6669 6679 6697 10080`) {
		m[p] = true
	}
	return m
}()
