package outbound_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
)

// A refusal that a person can lift names the command for this very host, and
// the switch that is right for it; one that nobody can lift names neither.
func TestRefusalHints(t *testing.T) {
	const (
		httpPublic  = "Use https, or allow plain http: `hbrestd allow add HOST --http`, or start hbrestd with HB_WRAP_ALLOW_HTTP=1."
		httpPrivate = "For a host of your own: `hbrestd allow add HOST --http`, or start hbrestd with HB_WRAP_ALLOW_PRIVATE=1. Else use https."
		private     = "For a host of your own: `hbrestd allow add HOST`, or start hbrestd with HB_WRAP_ALLOW_PRIVATE=1. Else use a public one."
		never       = "Use a public host; no setting opens this address."
		longName    = "a-name-of-many-letters.a-name-of-many-letters.a-name-of-many-letters.example.com"
		onlyHTTP    = "Use https."
	)
	plain := outbound.Policy{AllowHTTP: true}
	for _, c := range []struct {
		p              outbound.Policy
		url, host, say string
	}{
		{url: "http://api.example.com/x", host: "api.example.com", say: httpPublic},
		{url: "http://api.example.com:8080/", host: "api.example.com:8080", say: httpPublic},
		{url: "http://8.8.8.8/", host: "8.8.8.8", say: httpPublic},
		{url: "http://localhost:3000/", host: "localhost:3000", say: httpPrivate},
		{url: "http://app.localhost/", host: "app.localhost", say: httpPrivate},
		{url: "http://127.0.0.1:8080/", host: "127.0.0.1:8080", say: httpPrivate},
		{url: "http://[::1]:8080/", host: "[::1]:8080", say: httpPrivate},
		{url: "http://[fd00::5]/", host: "[fd00::5]", say: httpPrivate},
		{url: "http://192.168.1.9/", host: "192.168.1.9", say: httpPrivate},
		{url: "http://nas/", host: "nas", say: httpPrivate},
		{url: "http://printer.local/", host: "printer.local", say: httpPrivate},
		{url: "http://nas.home.arpa:5000/", host: "nas.home.arpa:5000", say: httpPrivate},
		{url: "http://wiki.internal/", host: "wiki.internal", say: httpPrivate},
		{url: "http://169.254.169.254/latest", say: never},
		{url: "http://" + longName + "/", host: "HOST[:PORT]", say: httpPublic},
		{url: "ftp://api.example.com/", say: onlyHTTP},
		{url: "https://localhost:3000/", host: "localhost:3000", say: private},
		{url: "https://10.1.2.3/", host: "10.1.2.3", say: private},
		{url: "https://[::1]/", host: "[::1]", say: private},
		{url: "https://169.254.169.254/", say: never},
		{p: plain, url: "http://10.1.2.3:81/", host: "10.1.2.3:81", say: private},
		{p: outbound.Policy{AllowPrivate: true}, url: "http://169.254.169.254/", say: never},
		{p: outbound.Policy{Allowed: []outbound.HostPort{{Host: "nas.internal"}}}, url: "http://nas.internal/", host: "nas.internal", say: httpPrivate},
	} {
		f := fault.From(c.p.CheckURL(mustURL(t, c.url)))
		if f == nil {
			t.Errorf("%s: not refused", c.url)
			continue
		}
		if want := strings.ReplaceAll(c.say, "HOST", c.host); f.Hint != want {
			t.Errorf("%s: %s: %s\nwant %s", c.url, f.Code, f.Hint, want)
		}
		if n := utf8.RuneCountInString(f.Hint); n > fault.MaxHint {
			t.Errorf("%s: %d characters", c.url, n)
		}
	}
}

// The refusal of a resolved address names the host that was asked for.
func TestRefusalHintOfAName(t *testing.T) {
	w := newWorld(t)
	w.names["nas.example.com"] = []netip.Addr{netip.MustParseAddr("192.168.7.7")}
	w.names["meta.example.com"] = []netip.Addr{netip.MustParseAddr("169.254.169.254")}
	c := w.client(outbound.Policy{})
	_, err := get(t, c, "https://nas.example.com:8443/")
	if f := wantFault(t, err, "POLICY_PRIVATE_ADDRESS", "nas.example.com"); !strings.Contains(f.Hint, "`hbrestd allow add nas.example.com:8443`") || !strings.Contains(f.Hint, "HB_WRAP_ALLOW_PRIVATE=1") {
		t.Error(f.Hint)
	}
	_, err = get(t, c, "https://meta.example.com/")
	if f := wantFault(t, err, "POLICY_PRIVATE_ADDRESS", "meta.example.com"); strings.Contains(f.Hint, "hbrestd") || strings.Contains(f.Hint, "HB_WRAP") {
		t.Error(f.Hint)
	}
}

// A refused redirect does not tell anybody to put the refused place into the
// wrapper, nor to open it.
func TestRefusedRedirectHint(t *testing.T) {
	w := newWorld(t)
	w.serve(origin0, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		to := "https://10.0.0.1/"
		if r.URL.Path == "/plain" {
			to = "http://api.example.com/"
		}
		http.Redirect(rw, r, to, http.StatusFound)
	}))
	for _, path := range []string{"/private", "/plain"} {
		_, err := get(t, w.client(outbound.Policy{}), origin0+path)
		if f := wantFault(t, err, "POLICY_REDIRECT", "redirect refused"); strings.Contains(f.Hint, "final URL") || strings.Contains(f.Hint, "allow add") {
			t.Errorf("%s: %s", path, f.Hint)
		}
	}
}

// What is said after a failure fits the method: a read is not told about
// writes, and a write that may have arrived is not told to repeat itself.
func TestHintsByMethod(t *testing.T) {
	release := make(chan struct{})
	for name, serve := range map[string]func(net.Conn){
		"UPSTREAM_TIMEOUT":    func(net.Conn) { <-release },
		"UPSTREAM_CONNECT":    func(net.Conn) {},
		"RESPONSE_INCOMPLETE": func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc") },
	} {
		w := newWorld(t)
		w.raw("http://api.example.com:8080", serve)
		t.Cleanup(func() { // before the server's own, which waits for its connections
			if name == "UPSTREAM_TIMEOUT" {
				close(release)
			}
		})
		c := w.client(outbound.Policy{AllowHTTP: true})
		for _, method := range []string{"GET", "POST"} {
			r := outbound.NewRequest(method, mustURL(t, "http://api.example.com:8080/"), nil)
			r.Timeout = 200 * time.Millisecond
			if name != "UPSTREAM_TIMEOUT" {
				r.Timeout = 10 * time.Second
			}
			_, err := c.Send(context.Background(), r)
			f := wantFault(t, err, fault.Code(name), "")
			write := strings.Contains(f.Hint, "write")
			if write != (method == "POST") || (method == "POST") != strings.Contains(f.Hint, "check") && name != "UPSTREAM_CONNECT" {
				t.Errorf("%s %s: %s", name, method, f.Hint)
			}
			if name == "UPSTREAM_TIMEOUT" && (!strings.Contains(f.Hint, "request.timeoutMs") || !strings.Contains(f.Hint, "60000")) {
				t.Errorf("%s: %s", method, f.Hint)
			}
		}
	}
}

// A request that has all the time there is gets no advice to ask for more.
func TestTimeoutHintAtTheLimit(t *testing.T) {
	w := newWorld(t)
	release := make(chan struct{})
	w.raw("http://api.example.com:8080", func(net.Conn) { <-release })
	t.Cleanup(func() { close(release) }) // before the server's own, which waits for its connections
	c := w.client(outbound.Policy{AllowHTTP: true, MaxTimeout: 100 * time.Millisecond})
	r := outbound.NewRequest("GET", mustURL(t, "http://api.example.com:8080/"), nil)
	r.Timeout = time.Hour
	_, err := c.Send(context.Background(), r)
	if f := wantFault(t, err, "UPSTREAM_TIMEOUT", "100ms"); strings.Contains(f.Hint, "timeoutMs") || f.Hint == "" {
		t.Error(f.Hint)
	}
}
