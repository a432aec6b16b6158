package outbound_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
)

// A connection that is never made, or never gets through its handshake, ends
// with the request it was for, and in any case after ten seconds. Nothing of it
// is left: the bubble ends only when its goroutines have.
func TestSilentConnection(t *testing.T) {
	block := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	silent := func(context.Context, netip.AddrPort) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() { _, _ = io.Copy(io.Discard, theirs); _ = theirs.Close() }()
		return ours, nil
	}
	for name, c := range map[string]struct {
		scheme, host string
		options      outbound.Options
		limit        time.Duration
		end, part    string
	}{
		"handshake, short":  {"https", here, outbound.Options{DialAddr: silent}, time.Second, "1s", "could not be reached within 1s"},
		"handshake, long":   {"https", here, outbound.Options{DialAddr: silent}, time.Minute, "10s", "did not finish the TLS handshake within 10s"},
		"handshake, caller": {"https", here, outbound.Options{DialAddr: silent}, 30 * time.Second, "3s", ""},
		"connect, short":    {"http", here, outbound.Options{DialAddr: func(ctx context.Context, _ netip.AddrPort) (net.Conn, error) { return nil, block(ctx) }}, time.Second, "1s", "could not be reached within 1s"},
		"connect, long":     {"http", here, outbound.Options{DialAddr: func(ctx context.Context, _ netip.AddrPort) (net.Conn, error) { return nil, block(ctx) }}, time.Minute, "10s", "could not be reached within 10s"},
		"connect, caller":   {"http", here, outbound.Options{DialAddr: func(ctx context.Context, _ netip.AddrPort) (net.Conn, error) { return nil, block(ctx) }}, 30 * time.Second, "3s", ""},
		"lookup, short":     {"https", "a.example.com", outbound.Options{Lookup: func(ctx context.Context, _ string) ([]netip.Addr, error) { return nil, block(ctx) }}, time.Second, "1s", "could not be reached within 1s"},
		"lookup, caller":    {"https", "a.example.com", outbound.Options{Lookup: func(ctx context.Context, _ string) ([]netip.Addr, error) { return nil, block(ctx) }}, 30 * time.Second, "3s", ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c.options.Interfaces = func() []netip.Addr { return nil }
				client := outbound.New(outbound.Policy{AllowHTTP: true}, c.options)
				ctx := context.Background()
				if c.part == "" {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, 3*time.Second)
					defer cancel()
				}
				begin := time.Now()
				r := outbound.NewRequest("POST", &url.URL{Scheme: c.scheme, Host: c.host, Path: "/"}, []byte("x"))
				r.Timeout = c.limit
				_, err := client.Send(ctx, r)
				if took := time.Since(begin).String(); took != c.end {
					t.Errorf("it took %s, want %s", took, c.end)
				}
				if c.part == "" {
					if !errors.Is(err, context.DeadlineExceeded) {
						t.Error(err)
					}
				} else if f := wantFault(t, err, "UPSTREAM_TIMEOUT", c.part); !f.Retryable {
					t.Error("not retryable although nothing was sent")
				}
				synctest.Wait() // and no clock moves after that
				if took := time.Since(begin).String(); took != c.end {
					t.Errorf("something went on until %s", took)
				}
			})
		})
	}
}

// The end of the request that made an HTTP/2 connection does not touch the
// others on it.
func TestSharedConnectionStays(t *testing.T) {
	w := newWorld(t)
	key, crt := w.cert("api.example.com", []string{"api.example.com"}, time.Now().Add(-time.Hour), time.Now().Add(time.Hour), false)
	inside, first := make(chan struct{}, 2), make(chan struct{})
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		inside <- struct{}{}
		select {
		case <-first:
			_, _ = io.WriteString(rw, r.Proto)
		case <-r.Context().Done():
		}
	}))
	s.Config.ErrorLog = discardLog
	s.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{crt.Raw}, PrivateKey: key}}}
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	w.route("api.example.com", "443", s.Listener.Addr().String())
	c := w.client(outbound.Policy{})
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := c.Send(ctx, outbound.NewRequest("GET", mustURL(t, origin0+"/"), nil)); err != context.Canceled {
			t.Error(err)
		}
		close(first)
	})
	<-inside
	wg.Go(func() {
		if resp, err := get(t, c, origin0+"/"); err != nil || string(resp.Body) != "HTTP/2.0" {
			t.Error(resp, err)
		}
	})
	<-inside
	cancel()
	wg.Wait()
	if dials, _ := w.counts(); dials != 1 {
		t.Errorf("%d dials", dials)
	}
}
