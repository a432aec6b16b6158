package outbound_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
)

// A world is a small internet on loopback: names with public addresses, behind
// which real servers listen. A dial to an address that has no server is counted
// as a trap.
type world struct {
	t      testing.TB
	roots  *x509.CertPool
	caKey  *ecdsa.PrivateKey
	ca     *x509.Certificate
	mu     sync.Mutex // guards the rest
	names  map[string][]netip.Addr
	routes map[netip.AddrPort]string // public address to listener
	dials  []netip.AddrPort
	traps  int
	seen   []outbound.Exchange
	last   byte
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, names: map[string][]netip.Addr{}, routes: map[netip.AddrPort]string{}, roots: x509.NewCertPool()}
	w.caKey, w.ca = w.cert("test root", nil, time.Now().Add(-time.Hour), time.Now().Add(time.Hour), true)
	w.roots.AddCert(w.ca)
	return w
}

func (w *world) cert(cn string, names []string, from, to time.Time, isCA bool) (*ecdsa.PrivateKey, *x509.Certificate) {
	w.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		w.t.Fatal(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: cn}, NotBefore: from, NotAfter: to,
		IsCA: isCA, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, n := range names {
		if a := net.ParseIP(n); a != nil {
			tmpl.IPAddresses = append(tmpl.IPAddresses, a)
			continue
		}
		tmpl.DNSNames = append(tmpl.DNSNames, n)
	}
	parent, parentKey := tmpl, key
	if !isCA {
		parent, parentKey = w.ca, w.caKey
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, parent, &key.PublicKey, parentKey)
	if err != nil {
		w.t.Fatal(err)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		w.t.Fatal(err)
	}
	return key, c
}

// serve puts a handler behind an origin such as "https://api.example.com" or
// "http://api.example.com:8080". The name gets a public address of its own on
// first use.
func (w *world) serve(origin string, handler http.Handler) *httptest.Server {
	w.t.Helper()
	return w.serveTLS(origin, handler, nil)
}

func (w *world) serveTLS(origin string, handler http.Handler, cert *tls.Certificate) *httptest.Server {
	w.t.Helper()
	u := mustURL(w.t, origin)
	s := httptest.NewUnstartedServer(handler)
	s.Config.ErrorLog = discardLog
	port := u.Port()
	if u.Scheme == "https" {
		if cert == nil {
			key, c := w.cert(u.Hostname(), []string{u.Hostname()}, time.Now().Add(-time.Hour), time.Now().Add(time.Hour), false)
			cert = &tls.Certificate{Certificate: [][]byte{c.Raw}, PrivateKey: key}
		}
		s.TLS = &tls.Config{Certificates: []tls.Certificate{*cert}}
		s.StartTLS()
		if port == "" {
			port = "443"
		}
	} else {
		s.Start()
		if port == "" {
			port = "80"
		}
	}
	w.t.Cleanup(s.Close)
	w.route(u.Hostname(), port, s.Listener.Addr().String())
	return s
}

func (w *world) route(host, port, listener string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	a, err := netip.ParseAddr(host)
	if err != nil {
		if w.names[host] == nil {
			w.last++
			w.names[host] = []netip.Addr{netip.AddrFrom4([4]byte{93, 184, 216, w.last})}
		}
		a = w.names[host][0]
	}
	w.routes[netip.MustParseAddrPort(net.JoinHostPort(a.String(), port))] = listener
}

func (w *world) lookup(_ context.Context, host string) ([]netip.Addr, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if a := w.names[host]; a != nil {
		return a, nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}

func (w *world) dial(ctx context.Context, ap netip.AddrPort) (net.Conn, error) {
	w.mu.Lock()
	w.dials = append(w.dials, ap)
	to := w.routes[ap]
	if to == "" {
		w.traps++
	}
	w.mu.Unlock()
	if to == "" {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", to)
}

func (w *world) options() outbound.Options {
	return outbound.Options{
		Lookup: w.lookup, DialAddr: w.dial, UserAgent: "hb-rest/test",
		Interfaces: func() []netip.Addr { return nil },
		TLS:        &tls.Config{RootCAs: w.roots},
		Observe: func(_ context.Context, x outbound.Exchange) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.seen = append(w.seen, x)
		},
	}
}

func (w *world) client(p outbound.Policy) *outbound.Client {
	w.t.Helper()
	c := outbound.New(p, w.options())
	w.t.Cleanup(c.Close)
	return c
}

func (w *world) counts() (dials, traps int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.dials), w.traps
}

// exchanges returns what was observed, with the times taken out.
func (w *world) exchanges() []outbound.Exchange {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := append([]outbound.Exchange(nil), w.seen...)
	for i := range out {
		out[i].Start, out[i].Duration = time.Time{}, 0
	}
	return out
}

func mustURL(t testing.TB, s string) *url.URL {
	t.Helper()
	u, err := url.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func get(t testing.TB, c *outbound.Client, rawurl string) (*outbound.Response, error) {
	t.Helper()
	return c.Send(context.Background(), outbound.NewRequest("GET", mustURL(t, rawurl), nil))
}

// wantFault checks the code and a part of the message, and returns the fault.
func wantFault(t testing.TB, err error, code fault.Code, part string) *fault.Error {
	t.Helper()
	var f *fault.Error
	if !errors.As(err, &f) || f.Code != code || !strings.Contains(f.Message, part) {
		t.Fatalf("got %v, want %s about %q", err, code, part)
		return nil
	}
	return f
}

func code(err error) fault.Code {
	var f *fault.Error
	if errors.As(err, &f) {
		return f.Code
	}
	if err != nil {
		return fault.Code(fmt.Sprintf("not a fault: %v", err))
	}
	return ""
}
