package outbound_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
)

// What a failure says about a second try: whether anything was sent, whether it
// is of the passing kind, and whether the caller may repeat the request.
func TestWhatAFailureMeans(t *testing.T) {
	w := newWorld(t)
	w.raw("http://cut.example.com:80", func(net.Conn) {})
	w.raw("http://half.example.com:80", func(c net.Conn) {
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc")
	})
	w.raw("http://garbage.example.com:80", func(c net.Conn) { _, _ = io.WriteString(c, "hello\r\n\r\n") })
	w.names["none.example.com"] = []netip.Addr{netip.MustParseAddr("93.184.216.99")} // nobody listens
	w.names["private.example.com"] = []netip.Addr{netip.MustParseAddr("10.0.0.1")}
	closing, err := net.Listen("tcp", "127.0.0.1:0") // a TLS handshake that is cut
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	t.Cleanup(func() { _ = closing.Close(); wg.Wait() })
	wg.Go(func() {
		for {
			c, err := closing.Accept()
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, 1))
			_ = c.Close()
		}
	})
	w.route("handshake.example.com", "443", closing.Addr().String())
	o := w.options()
	o.Lookup = func(ctx context.Context, host string) ([]netip.Addr, error) {
		if host == "silent.example.com" {
			return nil, &net.DNSError{Err: "server misbehaving", Name: host, IsTemporary: true}
		}
		return w.lookup(ctx, host)
	}
	c := outbound.New(outbound.Policy{AllowHTTP: true}, o)
	t.Cleanup(c.Close)
	for url, want := range map[string]struct {
		code                         fault.Code
		unsent, passing, post, keyed bool // post, keyed: retryable for a POST, for one that is marked repeatable
	}{
		"http://none.example.com/":       {"UPSTREAM_CONNECT", true, true, true, true},
		"https://handshake.example.com/": {"UPSTREAM_CONNECT", true, true, true, true},
		"http://cut.example.com/":        {"UPSTREAM_CONNECT", false, true, false, true},
		"http://half.example.com/":       {"RESPONSE_INCOMPLETE", false, true, false, true},
		"http://silent.example.com/":     {"UPSTREAM_DNS", true, true, true, true},
		"http://nowhere.example.com/":    {"UPSTREAM_DNS", true, false, true, true},
		"http://private.example.com/":    {"POLICY_PRIVATE_ADDRESS", true, false, false, false},
		"http://garbage.example.com/":    {"UPSTREAM_PROTOCOL", false, false, false, false},
		"ftp://cut.example.com/":         {"POLICY_SCHEME", false, false, false, false}, // refused before there is anything to send
	} {
		for _, repeatable := range []bool{false, true} {
			r := outbound.NewRequest("POST", mustURL(t, url), []byte(`{}`))
			r.Repeatable = repeatable
			_, err := c.Send(t.Context(), r)
			f := fault.From(err)
			retryable := want.post
			if repeatable {
				retryable = want.keyed
			}
			if f.Code != want.code || outbound.Unsent(err) != want.unsent || outbound.Passing(err) != want.passing || f.Retryable != retryable {
				t.Errorf("%s (repeatable %v): %+v, unsent %v, passing %v", url, repeatable, f, outbound.Unsent(err), outbound.Passing(err))
			}
		}
	}
	if outbound.Unsent(nil) || outbound.Passing(nil) || outbound.Passing(errors.New("x")) {
		t.Error("what is no failure of Send means nothing")
	}
}

// On a kept-alive connection that ends after the request was read, net/http
// repeats a GET by itself, and with an Idempotency-Key any method. Here no write
// is ever repeated that way, whatever it carries.
func TestNoSilentRepetition(t *testing.T) {
	for name, c := range map[string]struct {
		method, header, body string
		mutating             bool
		want                 int64 // requests that the server read
	}{
		"a read, which shows that the server provokes it": {"GET", "", "", false, 2},
		"POST":                       {"POST", "", `{}`, false, 1},
		"POST with a key":            {"POST", "Idempotency-Key", `{}`, false, 1},
		"POST with the other key":    {"POST", "X-Idempotency-Key", `{}`, false, 1},
		"POST without a body":        {"POST", "Idempotency-Key", "", false, 1},
		"DELETE without a body":      {"DELETE", "X-Idempotency-Key", "", false, 1},
		"PUT":                        {"PUT", "", `{}`, false, 1},
		"GET that changes something": {"GET", "", "", true, 1},
		"the same with a body":       {"GET", "", `{}`, true, 1},
		"the same with a key":        {"GET", "Idempotency-Key", "", true, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			var writes, keys atomic.Int64
			w := &pipeWorld{}
			w.answer = func(n int, r *http.Request, conn net.Conn) bool {
				if r.URL.Path == "/warm" {
					return say(0)(n, r, conn)
				}
				writes.Add(1)
				if c.header != "" && r.Header.Get(c.header) == "k" {
					keys.Add(1)
				}
				return false // read, and not answered
			}
			client := w.pipes(t, outbound.Policy{})
			if _, err := client.Send(t.Context(), request(here, "/warm")); err != nil {
				t.Fatal(err)
			}
			r := request(here, "/x")
			r.Method, r.Mutating = c.method, c.mutating
			if c.body != "" {
				r.Body = []byte(c.body)
			}
			if c.header != "" {
				r.Header.Set(c.header, "k")
			}
			_, err := client.Send(t.Context(), r)
			wantFault(t, err, "UPSTREAM_CONNECT", "before it answered")
			if n := writes.Load(); n != c.want || c.header != "" && keys.Load() != n {
				t.Errorf("%s: read %d times (%d with its key), want %d", name, n, keys.Load(), c.want)
			}
			if n := len(w.seen) - 1; int64(n) != c.want { // the first one is of /warm
				t.Errorf("%s: %d exchanges were reported, want one for each of %d", name, n, c.want)
			}
		})
	}
}

// Each request that the library repeats has its place in the report: when it
// was sent, how long it took and how it ended.
func TestRepetitionsAreReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &pipeWorld{}
		w.answer = func(n int, r *http.Request, conn net.Conn) bool {
			if n == 2 { // the kept-alive connection ends a while after the request
				time.Sleep(3 * time.Second)
				return false
			}
			return say(time.Second)(n, r, conn)
		}
		client := w.pipes(t, outbound.Policy{})
		for range 2 {
			if _, err := client.Send(t.Context(), request(here, "/x")); err != nil {
				t.Fatal(err)
			}
		}
		type line struct {
			at, took time.Duration
			status   int
			err      fault.Code
		}
		var got []line
		for _, x := range w.seen {
			got = append(got, line{x.Start.Sub(w.start), x.Duration, x.Status, x.Err})
		}
		want := []line{{0, time.Second, 200, ""}, {time.Second, 3 * time.Second, 0, "UPSTREAM_CONNECT"}, {4 * time.Second, time.Second, 200, ""}}
		if !slices.Equal(got, want) {
			t.Errorf("reported %v, want %v", got, want)
		}
	})
}

// A write that answered 303 is done. Whatever then becomes of the page behind
// it, the caller must not repeat the request, unless that is harmless.
func TestFailureBehindARedirectedWrite(t *testing.T) {
	for _, lost := range []string{"cut", "unreachable", "stall"} {
		for _, repeatable := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				to := "http://" + here + "/page"
				if lost == "unreachable" {
					to = "http://nowhere.example.com/page"
				}
				w := &pipeWorld{answer: func(_ int, r *http.Request, c net.Conn) bool {
					switch {
					case r.Method == "POST":
						_, err := io.WriteString(c, "HTTP/1.1 303 See Other\r\nContent-Length: 0\r\nLocation: "+to+"\r\n\r\n")
						return err == nil
					case lost == "stall":
						_, _ = bufio.NewReader(c).ReadByte() // until the client gives up
					}
					return false
				}}
				c := w.pipes(t, outbound.Policy{})
				r := request(here, "/")
				r.Method, r.Body, r.Repeatable, r.Timeout = "POST", []byte(`{}`), repeatable, 5*time.Second
				_, err := c.Send(t.Context(), r)
				f := fault.From(err)
				if f.Retryable != repeatable || outbound.Unsent(err) {
					t.Errorf("%s, repeatable %v: %+v", lost, repeatable, f)
				}
				if !repeatable && f.Hint[:41] != "The write may have been applied: check be" {
					t.Errorf("%s: %s", lost, f.Hint)
				}
			})
		}
	}
}
