package outbound_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
	"github.com/hyperbolic-gateway/hb-rest/internal/soak"
)

// raw serves every connection with f after reading a request's header.
func (w *world) raw(origin string, f func(net.Conn)) {
	w.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	var wg sync.WaitGroup
	w.t.Cleanup(func() { _ = l.Close(); wg.Wait() })
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer c.Close()
				if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
					f(c)
				}
			})
		}
	})
	u := mustURL(w.t, origin)
	w.route(u.Hostname(), u.Port(), l.Addr().String())
}

// Each way an exchange can fail has one code, and is retryable only if nothing
// can happen twice.
func TestFailures(t *testing.T) {
	say := func(text string) func(net.Conn) {
		return func(c net.Conn) { _, _ = io.WriteString(c, text) }
	}
	for name, c := range map[string]struct {
		serve        func(net.Conn)
		code         fault.Code
		part         string
		retry        bool // a GET
		retryOfWrite bool
	}{
		"closed at once":         {say(""), "UPSTREAM_CONNECT", "before it answered", true, false},
		"closed in the header":   {say("HTTP/1.1 200 OK\r\nContent-Type: x\r\n"), "UPSTREAM_CONNECT", "before it answered", true, false},
		"not HTTP":               {say("SSH-2.0-OpenSSH_9.2p1\r\n\r\n"), "UPSTREAM_PROTOCOL", "did not answer in HTTP", false, false},
		"bad status line":        {say("HTTP/1.1 abc\r\n\r\n"), "UPSTREAM_PROTOCOL", "did not answer in HTTP", false, false},
		"bad header line":        {say("HTTP/1.1 200 OK\r\nno colon here\r\n\r\n"), "UPSTREAM_PROTOCOL", "did not answer in HTTP", false, false},
		"two lengths":            {say("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"), "UPSTREAM_PROTOCOL", "", false, false},
		"huge header":            {say("HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 1<<20+8192) + "\r\n\r\n"), "UPSTREAM_PROTOCOL", "1048576", false, false},
		"switching protocols":    {say("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n"), "UPSTREAM_PROTOCOL", "another protocol", false, false},
		"short body":             {say("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"), "RESPONSE_INCOMPLETE", "stopped", true, false},
		"short chunk":            {say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab"), "RESPONSE_INCOMPLETE", "stopped", true, false},
		"no last chunk":          {say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n"), "RESPONSE_INCOMPLETE", "stopped", true, false},
		"bad chunk length":       {say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nab\r\n"), "UPSTREAM_PROTOCOL", "chunks", false, false},
		"endless chunk line":     {say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;" + strings.Repeat("x", 8192)), "UPSTREAM_PROTOCOL", "chunks", false, false},
		"chunk line at its end":  {say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;" + strings.Repeat("x", 4095) + "\r\nab\r\n0\r\n\r\n"), "UPSTREAM_PROTOCOL", "chunks", false, false},
		"bare LF in chunks":      {say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\nab\r\n0\r\n\r\n"), "UPSTREAM_PROTOCOL", "chunks", false, false},
		"bad trailer":            {say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\nno colon\r\n\r\n"), "UPSTREAM_PROTOCOL", "the end of the answer", false, false},
		"huge trailer":           {say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\nX: " + strings.Repeat("x", 8192) + "\r\n\r\n"), "UPSTREAM_PROTOCOL", "the end of the answer", false, false},
		"half a trailer":         {say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\nX: y"), "UPSTREAM_PROTOCOL", "the end of the answer", false, false},
		"no end of the trailer":  {say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n"), "RESPONSE_INCOMPLETE", "stopped", true, false},
		"gzip cut by connection": {say("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 99\r\n\r\n\x1f\x8b\x08\x00\x00"), "RESPONSE_INCOMPLETE", "stopped", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.raw("http://api.example.com:8080", c.serve)
			cl := w.client(outbound.Policy{AllowHTTP: true})
			for _, method := range []string{"GET", "POST"} {
				_, err := cl.Send(context.Background(), outbound.NewRequest(method, mustURL(t, "http://api.example.com:8080/"), nil))
				f := wantFault(t, err, c.code, c.part)
				want := c.retry
				if method == "POST" {
					want = c.retryOfWrite
				}
				if f.Retryable != want {
					t.Errorf("%s: retryable is %v: %v", method, f.Retryable, f)
				}
				if strings.Contains(f.Message, "SSH") || strings.Contains(f.Message, "colon") {
					t.Errorf("the answer's own text is in %q", f.Message)
				}
			}
		})
	}
}

// The header of an answer may have 1 MiB, status line and last empty line
// included, and not a byte more.
func TestHeaderCap(t *testing.T) {
	const limit = 1 << 20
	for n, want := range map[int]fault.Code{limit: "", limit + 1: "UPSTREAM_PROTOCOL"} {
		head, tail := "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX: ", "\r\n\r\n"
		text := head + strings.Repeat("x", n-len(head)-len(tail)) + tail + "{}"
		w := newWorld(t)
		w.raw("http://api.example.com:8080", func(c net.Conn) { _, _ = io.WriteString(c, text) })
		resp, err := get(t, w.client(outbound.Policy{AllowHTTP: true}), "http://api.example.com:8080/")
		if code(err) != want || err == nil && string(resp.Body) != "{}" {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

func TestRefusedConnection(t *testing.T) {
	w := newWorld(t)
	w.route("api.example.com", "443", "127.0.0.1:1") // nothing listens there
	for _, method := range []string{"GET", "POST"} {
		_, err := w.client(outbound.Policy{}).Send(context.Background(), outbound.NewRequest(method, mustURL(t, origin0+"/"), nil))
		if f := wantFault(t, err, "UPSTREAM_CONNECT", "api.example.com"); !f.Retryable {
			t.Errorf("%s: not retryable although nothing was sent", method)
		}
	}
}

func TestTLSFailures(t *testing.T) {
	w := newWorld(t)
	now := time.Now()
	stranger := newWorld(t)
	h := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	cert := func(by *world, name string, from, to time.Time) *tls.Certificate {
		key, c := by.cert(name, []string{name}, from, to, false)
		return &tls.Certificate{Certificate: [][]byte{c.Raw}, PrivateKey: key}
	}
	w.serveTLS("https://old.example.com", h, cert(w, "old.example.com", now.Add(-48*time.Hour), now.Add(-24*time.Hour)))
	w.serveTLS("https://early.example.com", h, cert(w, "early.example.com", now.Add(24*time.Hour), now.Add(48*time.Hour)))
	w.serveTLS("https://wrong.example.com", h, cert(w, "right.example.com", now.Add(-time.Hour), now.Add(time.Hour)))
	w.serveTLS("https://stranger.example.com", h, cert(stranger, "stranger.example.com", now.Add(-time.Hour), now.Add(time.Hour)))
	plain := w.serve("http://plain.example.com", h)
	w.route("plain.example.com", "443", plain.Listener.Addr().String())
	ancient := w.serve("https://ancient.example.com", h)
	ancient.TLS.MaxVersion = tls.VersionTLS11
	c := w.client(outbound.Policy{})
	for host, want := range map[string]struct {
		code fault.Code
		part string
	}{
		"old":      {"UPSTREAM_TLS", "expired on " + now.Add(-24*time.Hour).UTC().Format(time.DateOnly)},
		"early":    {"UPSTREAM_TLS", "not valid before " + now.Add(24*time.Hour).UTC().Format(time.DateOnly)},
		"wrong":    {"UPSTREAM_TLS", "another host (right.example.com)"},
		"stranger": {"UPSTREAM_TLS", "unknown issuer (CN=test root)"},
		"ancient":  {"UPSTREAM_TLS", "handshake with ancient.example.com failed"},
		"plain":    {"UPSTREAM_PROTOCOL", "plain http"},
	} {
		if f := wantFault(t, second(get(t, c, "https://"+host+".example.com/")), want.code, want.part); f.Retryable {
			t.Errorf("%s is retryable", host)
		}
	}
	// Garbage instead of a handshake.
	w.names["garbage.example.com"] = nil
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		if c, err := l.Accept(); err == nil {
			_, _ = io.WriteString(c, "220 mail.example.com ESMTP\r\n")
			_, _ = io.Copy(io.Discard, c)
			_ = c.Close()
		}
	}()
	w.route("garbage.example.com", "443", l.Addr().String())
	wantFault(t, second(get(t, c, "https://garbage.example.com/")), "UPSTREAM_PROTOCOL", "does not speak TLS")
}

// D31 and promise 23: one byte a second, or nothing at all, ends at the timeout:
// at most half a second after it. A short run drips faster, to see that bytes that
// come do not put the end off.
func TestTimeouts(t *testing.T) {
	limit, pace := soak.Time(300*time.Millisecond, 5*time.Second), soak.Time(50*time.Millisecond, time.Second)
	var slowest time.Duration
	ways := 0
	drip := func(c net.Conn, head string) {
		_, _ = io.WriteString(c, head)
		tick := time.NewTicker(pace) // the pace of the drip is the point here
		defer tick.Stop()
		for range tick.C {
			if _, err := io.WriteString(c, "x"); err != nil {
				return
			}
		}
	}
	for name, c := range map[string]struct {
		serve func(net.Conn)
		part  string
	}{
		"silence":     {func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }, "did not answer completely within " + limit.String()},
		"header drip": {func(c net.Conn) { drip(c, "HTTP/1.1 200 OK\r\nX: ") }, "did not answer completely"},
		"body drip":   {func(c net.Conn) { drip(c, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n") }, "did not answer completely"},
		"endless 1xx": {func(c net.Conn) { drip(c, "HTTP/1.1 103 Early\r\n\r\n") }, "did not answer completely"},
		"redirect drip": {func(c net.Conn) {
			drip(c, "HTTP/1.1 302 Found\r\nLocation: /x\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n\r\n")
		}, "within 300ms"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.raw("http://api.example.com:8080", c.serve)
			cl := w.client(outbound.Policy{AllowHTTP: true})
			limit := limit
			if name == "redirect drip" { // with more time it ends before, at the sixth redirect
				limit = 300 * time.Millisecond
			}
			for _, method := range []string{"GET", "POST"} {
				if name == "redirect drip" && method == "POST" {
					continue
				}
				r := outbound.NewRequest(method, mustURL(t, "http://api.example.com:8080/"), nil)
				r.Timeout = limit
				begin := time.Now()
				_, err := cl.Send(context.Background(), r)
				took := time.Since(begin)
				f := wantFault(t, err, "UPSTREAM_TIMEOUT", c.part)
				ways, slowest = ways+1, max(slowest, took-limit)
				if f.Retryable != (method == "GET") || took < limit || took > limit+500*time.Millisecond {
					t.Errorf("%s: retryable %v after %s", method, f.Retryable, took)
				}
			}
		})
	}
	soak.Measured(t, "%d calls of APIs that say nothing, or one byte each %v, with a timeout of %v: the latest ended %v after it", ways, pace, limit, slowest.Round(time.Millisecond))
}

// Promise 23: headers without end, as fast as they are taken: they are refused at
// 1 MiB, before the timeout, and cost little memory.
func TestEndlessHeader(t *testing.T) {
	var most uint64
	var slowest time.Duration
	for name, line := range map[string]string{"many lines": "X: y\r\n", "one line": strings.Repeat("x", 1000), "long lines": "X: " + strings.Repeat("y", 1000) + "\r\n"} {
		w := newWorld(t)
		var sent atomic.Int64
		w.raw("http://api.example.com:8080", func(c net.Conn) {
			b := bufio.NewWriterSize(c, 32<<10)
			_, err := io.WriteString(b, "HTTP/1.1 200 OK\r\nX: ")
			for ; err == nil && sent.Load() < 1<<30; sent.Add(int64(len(line))) {
				_, err = io.WriteString(b, line)
			}
		})
		c := w.client(outbound.Policy{AllowHTTP: true})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		begin := time.Now()
		r := outbound.NewRequest("GET", mustURL(t, "http://api.example.com:8080/"), nil)
		r.Timeout = 10 * time.Second
		_, err := c.Send(context.Background(), r)
		took := time.Since(begin)
		runtime.ReadMemStats(&after)
		wantFault(t, err, "UPSTREAM_PROTOCOL", "larger than 1048576 bytes")
		allocated := after.TotalAlloc - before.TotalAlloc
		if allocated > 64<<20 || took > r.Timeout {
			t.Errorf("%s: %d MiB allocated in %v", name, allocated>>20, took)
		}
		most, slowest = max(most, allocated), max(slowest, took)
	}
	soak.Measured(t, "headers without end, of 3 kinds: refused at 1 MiB, at most %d MiB allocated, the slowest after %v", most>>20, slowest.Round(time.Millisecond))
}

// A write that never left may be repeated.
func TestTimeoutBeforeSending(t *testing.T) {
	w := newWorld(t)
	w.route("api.example.com", "443", "127.0.0.1:1")
	o := w.options()
	o.DialAddr = func(ctx context.Context, _ netip.AddrPort) (net.Conn, error) {
		<-ctx.Done() // the end of the request ends its dial too
		return nil, ctx.Err()
	}
	r := outbound.NewRequest("POST", mustURL(t, origin0+"/"), []byte("x"))
	r.Timeout = 100 * time.Millisecond
	_, err := outbound.New(outbound.Policy{}, o).Send(context.Background(), r)
	if f := wantFault(t, err, "UPSTREAM_TIMEOUT", "could not be reached within 100ms"); !f.Retryable {
		t.Error("not retryable although nothing was sent")
	}
}

// The timeout a request may ask for is bounded by the policy, and has a default.
func TestTimeoutBounds(t *testing.T) {
	w := newWorld(t)
	var left time.Duration
	o := w.options()
	o.Intent = func(ctx context.Context, _ outbound.Exchange) error {
		end, _ := ctx.Deadline()
		left = time.Until(end)
		return fault.New("AUDIT_FAILED", "stop here")
	}
	c := outbound.New(outbound.Policy{}, o)
	for asked, want := range map[time.Duration]time.Duration{0: 15 * time.Second, time.Minute: time.Minute, time.Minute + 1: time.Minute, time.Hour: time.Minute, -1: 15 * time.Second} {
		r := outbound.NewRequest("GET", mustURL(t, origin0+"/"), nil)
		r.Timeout, r.Durable = asked, true
		_, err := c.Send(context.Background(), r)
		wantFault(t, err, "AUDIT_FAILED", "")
		if left > want || left < want-5*time.Second {
			t.Errorf("asked for %s, got %s, want %s", asked, left, want)
		}
	}
}
