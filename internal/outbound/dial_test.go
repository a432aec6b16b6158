package outbound_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
	"github.com/hyperbolic-gateway/hb-rest/internal/soak"
)

var (
	publicA = netip.MustParseAddr("93.184.216.200")
	inner   = netip.MustParseAddr("127.0.0.1")
)

// D09 and promise 2: a name that changes its answer on every query never leads
// to an inner address. Keep-alive is off by a new client per call.
func TestRebinding(t *testing.T) {
	w := newWorld(t)
	s := w.serve("https://flip.example.com", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	w.route(publicA.String(), "443", s.Listener.Addr().String())
	var queries atomic.Int64
	o := w.options()
	o.Lookup = func(context.Context, string) ([]netip.Addr, error) {
		if queries.Add(1)%2 == 1 {
			return []netip.Addr{publicA}, nil
		}
		return []netip.Addr{inner}, nil
	}
	good, refused := 0, 0
	const flips = 1000
	for range flips {
		c := outbound.New(outbound.Policy{}, o)
		_, err := get(t, c, "https://flip.example.com/")
		switch code(err) {
		case "":
			good++
		case "POLICY_PRIVATE_ADDRESS":
			refused++
		default:
			t.Fatal(err)
		}
		c.Close()
	}
	dials, traps := w.counts()
	if good != flips/2 || refused != flips/2 || dials != flips/2 || traps != 0 || queries.Load() != flips {
		t.Errorf("good %d, refused %d, dials %d, traps %d, queries %d", good, refused, dials, traps, queries.Load())
	}
	soak.Measured(t, "%d flips of a name between a public and an inner address: %d calls reached the public one, %d were refused, %d dials elsewhere", flips, good, refused, traps)
}

// D08 and promise 2: one bad answer among good ones refuses all, in any order.
func TestMixedAnswers(t *testing.T) {
	w := newWorld(t)
	answers := [][]netip.Addr{
		{publicA, inner},
		{inner, publicA},
		{publicA, netip.MustParseAddr("10.0.0.1")},
		{publicA, netip.MustParseAddr("::ffff:10.0.0.1")},
		{netip.MustParseAddr("2606:4700::1"), netip.MustParseAddr("fe80::1%eth0")},
		{publicA, publicA, publicA, netip.MustParseAddr("169.254.169.254")},
	}
	for range 20 { // more answers than are ever dialled are still all checked
		answers[5] = append([]netip.Addr{netip.AddrFrom4([4]byte{93, 184, 217, byte(len(answers[5]))})}, answers[5]...)
	}
	var n atomic.Int64
	o := w.options()
	o.Lookup = func(context.Context, string) ([]netip.Addr, error) {
		return answers[int(n.Add(1))%len(answers)], nil
	}
	c := outbound.New(outbound.Policy{}, o)
	defer c.Close()
	refused := 0
	for range 1000 {
		if _, err := get(t, c, "https://mixed.example.com/"); code(err) != "POLICY_PRIVATE_ADDRESS" {
			t.Fatal(err)
		}
		refused++
	}
	dials, _ := w.counts()
	if dials != 0 || n.Load() != 1000 {
		t.Errorf("%d dials, %d queries", dials, n.Load())
	}
	soak.Measured(t, "%d answers with one inner address among public ones: %d refused, %d dials", n.Load(), refused, dials)
}

// Promise 4: two clients with different policies never share a connection.
func TestPoliciesDoNotCross(t *testing.T) {
	w := newWorld(t)
	var hits atomic.Int64
	w.names["inner.example.com"] = []netip.Addr{inner}
	w.serve("https://inner.example.com", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	strict, open := w.client(outbound.Policy{}), w.client(outbound.Policy{AllowPrivate: true})
	listed := w.client(outbound.Policy{Allowed: []outbound.HostPort{{Host: "inner.example.com", Port: "443"}}})
	for i := range 500 {
		permissive := open
		if i%2 == 0 {
			permissive = listed
		}
		if _, err := get(t, permissive, "https://inner.example.com/"); err != nil {
			t.Fatal(err)
		}
		if _, err := get(t, strict, "https://inner.example.com/"); code(err) != "POLICY_PRIVATE_ADDRESS" {
			t.Fatal(err)
		}
	}
	if hits.Load() != 500 {
		t.Errorf("%d hits", hits.Load())
	}
	dials, traps := w.counts()
	if dials > 2 || traps != 0 { // the two that may, once each: their connections are kept, which is what strict could take
		t.Errorf("%d dials, %d traps", dials, traps)
	}
	soak.Measured(t, "500 calls that may reach an inner address and 500 that may not, in turn, with %d connections kept open: %d crossings", dials, hits.Load()-500)
}

// The daemon's own port is closed under every switch, on every local address;
// the machine's own public address counts as private.
func TestOwnAddresses(t *testing.T) {
	w := newWorld(t)
	own := netip.MustParseAddr("93.184.216.99")
	o := w.options()
	o.Interfaces = func() []netip.Addr { return []netip.Addr{inner, own} }
	o.Self = func() []netip.AddrPort { return []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:4111")} }
	all := outbound.Policy{AllowPrivate: true, Allowed: []outbound.HostPort{{Host: "127.0.0.1", HTTP: true}, {Host: own.String(), HTTP: true}}}
	for _, c := range []struct {
		p    outbound.Policy
		url  string
		want string
	}{
		{all, "http://127.0.0.1:4111/", "POLICY_PRIVATE_ADDRESS"},
		{all, "http://127.0.0.2:4111/", "POLICY_PRIVATE_ADDRESS"},
		{all, "http://[::1]:4111/", "POLICY_PRIVATE_ADDRESS"},
		{all, "http://[::ffff:127.0.0.1]:4111/", "POLICY_PRIVATE_ADDRESS"},
		{all, "http://93.184.216.99:4111/", "POLICY_PRIVATE_ADDRESS"},
		{all, "http://10.0.0.5:4111/", "UPSTREAM_CONNECT"},
		{all, "http://127.0.0.1:4112/", "UPSTREAM_CONNECT"},
		{all, "http://93.184.216.99/", "UPSTREAM_CONNECT"},
		{outbound.Policy{}, "https://93.184.216.99/", "POLICY_PRIVATE_ADDRESS"},
		{outbound.Policy{}, "https://93.184.216.98/", "UPSTREAM_CONNECT"},
	} {
		cl := outbound.New(c.p, o)
		if _, err := get(t, cl, c.url); string(code(err)) != c.want {
			t.Errorf("%s: %v, want %s", c.url, err, c.want)
		}
	}
}

// With the real dialer and resolver: loopback is reached with the switch and
// refused without, by literal and by name.
func TestRealDialer(t *testing.T) {
	w := newWorld(t)
	s := w.serve("http://127.0.0.1:80", http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(204) }))
	open, strict := outbound.New(outbound.Policy{AllowPrivate: true}, outbound.Options{}), outbound.New(outbound.Policy{AllowHTTP: true}, outbound.Options{})
	defer open.Close()
	if resp, err := get(t, open, s.URL); err != nil || resp.Status != 204 {
		t.Error(resp, err)
	}
	if _, err := get(t, strict, s.URL); code(err) != "POLICY_PRIVATE_ADDRESS" {
		t.Error(err)
	}
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	o := outbound.Options{Lookup: func(context.Context, string) ([]netip.Addr, error) { return []netip.Addr{inner}, nil }}
	if _, err := get(t, outbound.New(outbound.Policy{AllowHTTP: true}, o), "http://a.example:"+port+"/"); code(err) != "POLICY_PRIVATE_ADDRESS" {
		t.Error(err)
	}
	named := outbound.New(outbound.Policy{Allowed: []outbound.HostPort{{Host: "a.example", Port: port, HTTP: true}}}, o)
	defer named.Close()
	if resp, err := get(t, named, "http://a.example:"+port+"/"); err != nil || resp.Status != 204 {
		t.Error(resp, err)
	}
	// The allow list goes by name: another name for the same address stays closed.
	if _, err := get(t, named, "http://b.example:"+port+"/"); code(err) != "POLICY_SCHEME" {
		t.Error(err)
	}
	if _, err := get(t, named, "https://b.example:"+port+"/"); code(err) != "POLICY_PRIVATE_ADDRESS" {
		t.Error(err)
	}
}

// D10: proxy variables change nothing.
func TestNoProxy(t *testing.T) {
	for _, name := range []string{"HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy", "ALL_PROXY"} {
		t.Setenv(name, "http://127.0.0.1:9")
	}
	w := newWorld(t)
	w.serve("https://api.example.com", http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(204) }))
	if resp, err := get(t, w.client(outbound.Policy{}), "https://api.example.com/"); err != nil || resp.Status != 204 {
		t.Error(resp, err)
	}
	if _, traps := w.counts(); traps != 0 {
		t.Error("something else was dialled")
	}
}

// A dead or slow address does not stop a name that has a living one.
func TestSeveralAddresses(t *testing.T) {
	w := newWorld(t)
	s := w.serve("https://many.example.com", http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(204) }))
	slow := netip.MustParseAddr("2606:4700::1")
	w.names["many.example.com"] = []netip.Addr{netip.MustParseAddr("93.184.216.150"), slow, publicA}
	w.route(publicA.String(), "443", s.Listener.Addr().String())
	o := w.options()
	var mu sync.Mutex
	cancelled := make(chan struct{})
	o.DialAddr = func(ctx context.Context, ap netip.AddrPort) (net.Conn, error) {
		if ap.Addr() == slow {
			<-ctx.Done() // a black hole
			close(cancelled)
			return nil, ctx.Err()
		}
		mu.Lock()
		defer mu.Unlock()
		return w.dial(ctx, ap)
	}
	c := outbound.New(outbound.Policy{}, o)
	defer c.Close()
	begin := time.Now()
	if resp, err := get(t, c, "https://many.example.com/"); err != nil || resp.Status != 204 {
		t.Fatal(resp, err)
	}
	<-cancelled
	if d := time.Since(begin); d > 5*time.Second {
		t.Errorf("took %s", d)
	}
}

func TestDNSFailures(t *testing.T) {
	w := newWorld(t)
	f := wantFault(t, second(get(t, w.client(outbound.Policy{}), "https://nowhere.example.com/")), "UPSTREAM_DNS", "nowhere.example.com was not found")
	if !f.Retryable {
		t.Error("not retryable")
	}
	o := w.options()
	o.Lookup = func(context.Context, string) ([]netip.Addr, error) { return nil, errors.New("server misbehaving") }
	wantFault(t, second(get(t, outbound.New(outbound.Policy{}, o), "https://a.example.com/")), "UPSTREAM_DNS", "could not be resolved")
	o.Lookup = func(context.Context, string) ([]netip.Addr, error) { return nil, nil }
	wantFault(t, second(get(t, outbound.New(outbound.Policy{}, o), "https://a.example.com/")), "UPSTREAM_DNS", "could not be resolved")
}

func second(_ *outbound.Response, err error) error { return err }
