//go:build unix

package e2e

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/flate"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/andybalholm/brotli"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/client"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/soak"
)

// A rude server does to each connection what its script says.
type rude struct {
	net.Listener
	conns, read atomic.Int64 // connections; requests that were read to their last byte
	mu          sync.Mutex   // guards open
	open        map[net.Conn]bool
}

func newRude(t *testing.T, script func(*rude, *net.TCPConn)) *rude {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &rude{Listener: l, open: map[net.Conn]bool{}}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			r.conns.Add(1)
			r.mu.Lock()
			r.open[c] = true
			r.mu.Unlock()
			wg.Go(func() {
				defer c.Close()
				script(r, c.(*net.TCPConn))
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		r.mu.Lock()
		for c := range r.open {
			_ = c.Close()
		}
		r.mu.Unlock()
		wg.Wait()
	})
	return r
}

// take reads a whole request.
func (r *rude) take(c net.Conn) bool {
	req, err := http.ReadRequest(bufio.NewReader(c))
	if err != nil {
		return false
	}
	if _, err := io.Copy(io.Discard, req.Body); err != nil {
		return false
	}
	r.read.Add(1)
	return true
}

// say is a script that reads the request, sends text, and closes.
func say(text string) func(*rude, *net.TCPConn) {
	return func(r *rude, c *net.TCPConn) {
		if r.take(c) {
			_, _ = io.WriteString(c, text)
		}
	}
}

// hold is say without the close: the caller has to leave.
func hold(text string) func(*rude, *net.TCPConn) {
	return func(r *rude, c *net.TCPConn) {
		if r.take(c) {
			_, _ = io.WriteString(c, text)
			_, _ = io.Copy(io.Discard, c)
		}
	}
}

// flood sends head, and then more without end, a pause between the pieces.
func flood(head, more string, pause time.Duration) func(*rude, *net.TCPConn) {
	return func(r *rude, c *net.TCPConn) {
		if !r.take(c) {
			return
		}
		_, err := io.WriteString(c, head)
		for err == nil {
			_, err = io.WriteString(c, more)
			if pause > 0 {
				time.Sleep(pause) // the pace is what is tested
			}
		}
	}
}

// silentHandshake says nothing, and never leaves by itself.
func silentHandshake(_ *rude, c *net.TCPConn) { _, _ = io.Copy(io.Discard, c) }

// reset ends a connection with RST.
func reset(c *net.TCPConn) {
	_ = c.SetLinger(0)
	_ = c.Close()
}

// bomb is a gzip stream of some megabyte that becomes 1 GiB of JSON text: one
// deflated MiB, which no other part refers to, a thousand times.
func bomb(t *testing.T) []byte {
	t.Helper()
	var part bytes.Buffer
	z, err := flate.NewWriter(&part, flate.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	deflated := func(text []byte) []byte {
		part.Reset()
		z.Reset(&part)
		if _, err := z.Write(text); err != nil {
			t.Fatal(err)
		}
		if err := z.Flush(); err != nil {
			t.Fatal(err)
		}
		return bytes.Clone(part.Bytes())
	}
	out := []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 255}
	out = append(out, deflated([]byte(`["`))...)
	out = append(out, bytes.Repeat(deflated(bytes.Repeat([]byte("a"), 1<<20)), 1024)...)
	out = append(out, 1, 0, 0, 255, 255)           // an empty last block
	out = binary.LittleEndian.AppendUint64(out, 0) // no checksum fits: nobody should get there
	return out
}

// zipped compresses once more.
func zipped(t *testing.T, data []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := z.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// zstdBomb is a zstd frame with this window, a power of two, of blocks that say
// "128 KiB of this letter": 1 GiB of JSON text in 32 kB.
func zstdBomb(window int) []byte {
	out := []byte{0x28, 0xb5, 0x2f, 0xfd, 0, byte(bits.TrailingZeros(uint(window))-10) << 3}
	block := func(last, kind, size int, data string) {
		head := last | kind<<1 | size<<3
		out = append(append(out, byte(head), byte(head>>8), byte(head>>16)), data...)
	}
	const raw, repeated = 0, 1
	block(0, raw, 2, `["`)
	for range 8192 {
		block(0, repeated, 128<<10, "a")
	}
	block(1, raw, 2, `"]`)
	return out
}

func brotlied(t *testing.T, data []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	z := brotli.NewWriterLevel(&out, 1)
	if _, err := z.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func brotliBomb(t *testing.T) []byte {
	t.Helper()
	return brotlied(t, append([]byte(`["`), bytes.Repeat([]byte("a"), 128<<20)...))
}

func encoded(coding string, data []byte) func(*rude, *net.TCPConn) {
	return say(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: %s\r\nContent-Length: %d\r\n\r\n%s", coding, len(data), data))
}

// A breakdown is one way in which an API fails, and what a caller is told of it.
type breakdown struct {
	name       string
	scheme     string // https, or empty: http
	script     func(*rude, *net.TCPConn)
	code       string
	status     int
	get, write bool // retryable
	reads      int  // how often a write is read whole: once, unless nothing reads
	early      bool // it may happen before anything was written: then a write is tried again too
}

const (
	okHead   = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
	jsonText = `{"a":1}`
	limit    = 1500 * time.Millisecond
)

// breakdowns is written by hand from docs/errors.md.
func breakdowns(t *testing.T) []breakdown {
	big := bomb(t)
	twice := zipped(t, big)
	if len(big) < 900_000 || len(big) > 1_200_000 || len(twice) > 12_000 {
		t.Fatalf("the bombs have %d and %d bytes, want about 1 MB and 10 kB", len(big), len(twice))
	}
	return []breakdown{
		{name: "refused", code: "UPSTREAM_CONNECT", get: true, write: true},
		{name: "reset before the request was read", script: func(_ *rude, c *net.TCPConn) { reset(c) }, code: "UPSTREAM_CONNECT", get: true, early: true},
		{"reset in the request", "", func(_ *rude, c *net.TCPConn) { _, _ = c.Read(make([]byte, 20)); reset(c) }, "UPSTREAM_CONNECT", 0, true, false, 0, false},
		{"reset after the request was read", "", func(r *rude, c *net.TCPConn) { r.take(c); reset(c) }, "UPSTREAM_CONNECT", 0, true, false, 1, false},
		{"closed after the request was read", "", say(""), "UPSTREAM_CONNECT", 0, true, false, 1, false},
		{"closed in the header", "", say(okHead), "UPSTREAM_CONNECT", 0, true, false, 1, false},
		{"reset in the body", "", func(r *rude, c *net.TCPConn) {
			if r.take(c) {
				_, _ = io.WriteString(c, okHead+"Content-Length: 100\r\n\r\n"+jsonText)
			}
			reset(c)
		}, "", 0, true, false, 1, false}, // the reset may overtake the answer: UPSTREAM_CONNECT or RESPONSE_INCOMPLETE
		{"half a body", "", say(okHead + "Content-Length: 14\r\n\r\n" + jsonText), "RESPONSE_INCOMPLETE", 200, true, false, 1, false},
		{"half a chunk", "", say(okHead + "Transfer-Encoding: chunked\r\n\r\nff\r\n" + jsonText), "RESPONSE_INCOMPLETE", 200, true, false, 1, false},
		{"no last chunk", "", say(okHead + "Transfer-Encoding: chunked\r\n\r\n7\r\n" + jsonText + "\r\n"), "RESPONSE_INCOMPLETE", 200, true, false, 1, false},
		{"half a gzip", "", encoded("gzip", zipped(t, []byte(strings.Repeat(jsonText, 9)))[:20]), "RESPONSE_INCOMPLETE", 200, true, false, 1, false},

		{"silence", "", hold(""), "UPSTREAM_TIMEOUT", 0, true, false, 1, false},
		{"stall in the status line", "", hold("HTTP/1.1 2"), "UPSTREAM_TIMEOUT", 0, true, false, 1, false},
		{"stall after the headers", "", hold(okHead + "Content-Length: 7\r\n\r\n"), "UPSTREAM_TIMEOUT", 0, true, false, 1, false},
		{"stall in the body", "", hold(okHead + "Content-Length: 7\r\n\r\n{\"a\""), "UPSTREAM_TIMEOUT", 0, true, false, 1, false},
		{"a body without length or end", "", hold(okHead + "\r\n" + jsonText), "UPSTREAM_TIMEOUT", 0, true, false, 1, false},
		{"stall in a gzip", "", hold(okHead + "Content-Encoding: gzip\r\n\r\n\x1f\x8b\x08\x00\x00"), "UPSTREAM_TIMEOUT", 0, true, false, 1, false},
		{"one byte a second", "", flood(okHead+"Content-Length: 60\r\n\r\n", " ", time.Second), "UPSTREAM_TIMEOUT", 0, true, false, 1, false},
		{"one byte of the header a second", "", flood("HTTP/1.1 200 OK\r\nX: ", "x", time.Second), "UPSTREAM_TIMEOUT", 0, true, false, 1, false},
		{"an early hint a second", "", flood("", "HTTP/1.1 103 Early Hints\r\n\r\n", time.Second), "UPSTREAM_TIMEOUT", 0, true, false, 1, false},
		{"a silent handshake", "https", silentHandshake, "UPSTREAM_TIMEOUT", 0, true, true, 0, false},

		{"a header line without end", "", flood("HTTP/1.1 200 OK\r\nX: ", strings.Repeat("x", 64<<10), 0), "UPSTREAM_PROTOCOL", 0, false, false, 1, false},
		{"header lines without end", "", flood("HTTP/1.1 200 OK\r\n", strings.Repeat("X-A: b\r\n", 1<<12), 0), "UPSTREAM_PROTOCOL", 0, false, false, 1, false},
		{"early hints without end", "", flood("", strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", 100), 0), "UPSTREAM_PROTOCOL", 0, false, false, 1, false},
		{"continue without end", "", flood("", strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", 100), 0), "UPSTREAM_PROTOCOL", 0, false, false, 1, false},
		{"a status line without end", "", flood("HTTP/1.1 200 ", strings.Repeat("O", 64<<10), 0), "UPSTREAM_PROTOCOL", 0, false, false, 1, false},
		{"noise without end", "", flood("", strings.Repeat("\x00\xff\x7f!", 16<<10), 0), "UPSTREAM_PROTOCOL", 0, false, false, 1, false},
		{"a page in HTTP/0.9", "", say("<html><body>It works</body></html>\r\n"), "UPSTREAM_PROTOCOL", 0, false, false, 1, false},
		{"another protocol's greeting", "", say("220 mail.example.com ESMTP\r\n"), "UPSTREAM_PROTOCOL", 0, false, false, 1, false},
		{"switching protocols", "", hold("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"), "UPSTREAM_PROTOCOL", 101, false, false, 1, false},
		{"two lengths", "", say(okHead + "Content-Length: 7\r\nContent-Length: 8\r\n\r\n" + jsonText), "UPSTREAM_PROTOCOL", 0, false, false, 1, false},
		{"a length below nothing", "", say(okHead + "Content-Length: -7\r\n\r\n" + jsonText), "UPSTREAM_PROTOCOL", 0, false, false, 1, false},
		{"a length that cuts", "", say(okHead + "Content-Length: 4\r\n\r\n" + jsonText), "RESPONSE_NOT_JSON", 200, false, false, 1, false},
		{"a length past the limit", "", hold(okHead + "Content-Length: 5242881\r\n\r\n" + jsonText), "RESPONSE_TOO_LARGE", 200, false, false, 1, false},
		{"a chunk extension without end", "", flood(okHead+"Transfer-Encoding: chunked\r\n\r\n7;", strings.Repeat("x", 4096), 0), "UPSTREAM_PROTOCOL", 200, false, false, 1, false},
		{"chunk extensions without end", "", flood(okHead+"Transfer-Encoding: chunked\r\n\r\n", strings.Repeat("1;"+strings.Repeat("x", 2000)+"\r\n \r\n", 16), 0), "UPSTREAM_PROTOCOL", 200, false, false, 1, false},
		{"a chunk longer than it says", "", say(okHead + "Transfer-Encoding: chunked\r\n\r\n3\r\n" + jsonText + "\r\n0\r\n\r\n"), "UPSTREAM_PROTOCOL", 200, false, false, 1, false},
		{"a trailer that is none", "", say(okHead + "Transfer-Encoding: chunked\r\n\r\n7\r\n" + jsonText + "\r\n0\r\nno colon\r\n\r\n"), "UPSTREAM_PROTOCOL", 200, false, false, 1, false},
		{"a trailer without end", "", flood(okHead+"Transfer-Encoding: chunked\r\n\r\n7\r\n"+jsonText+"\r\n0\r\n", strings.Repeat("X-A: b\r\n", 1<<12), 0), "UPSTREAM_PROTOCOL", 200, false, false, 1, false},
		{"no end behind the last chunk", "", say(okHead + "Transfer-Encoding: chunked\r\n\r\n7\r\n" + jsonText + "\r\n0\r\n"), "RESPONSE_INCOMPLETE", 200, true, false, 1, false},

		{"half a body of a 500", "", say("HTTP/1.1 500 Internal Server Error\r\nContent-Length: 99\r\n\r\n" + jsonText), "UPSTREAM_SERVER_ERROR", 500, true, false, 1, false},
		{"no gzip with a 404", "", say("HTTP/1.1 404 Not Found\r\nContent-Encoding: gzip\r\nContent-Length: 7\r\n\r\n" + jsonText), "UPSTREAM_NOT_FOUND", 404, false, false, 1, false},
		{"a body without end of a 401", "", flood("HTTP/1.1 401 Unauthorized\r\n\r\n", strings.Repeat("no ", 32<<10), 0), "AUTH_REQUIRED", 401, false, false, 1, false},
		{"a gzip of 1 GiB with a 403", "", say(fmt.Sprintf("HTTP/1.1 403 Forbidden\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s", len(big), big)), "UPSTREAM_FORBIDDEN", 403, false, false, 1, false},
		{"a slow body of a 429", "", flood("HTTP/1.1 429 Too Many Requests\r\nRetry-After: 3600\r\nContent-Length: 99\r\n\r\n", " ", time.Second), "UPSTREAM_RATE_LIMITED", 429, true, true, 1, false},
		{"chunks that are none", "", say(okHead + "Transfer-Encoding: chunked\r\n\r\nzz\r\n" + jsonText + "\r\n0\r\n\r\n"), "UPSTREAM_PROTOCOL", 200, false, false, 1, false},
		{"a chunk of 2^64 bytes", "", say(okHead + "Transfer-Encoding: chunked\r\n\r\n10000000000000000\r\n" + jsonText), "UPSTREAM_PROTOCOL", 200, false, false, 1, false},
		{"plain text where https was asked for", "https", func(_ *rude, c *net.TCPConn) { _, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n") }, "UPSTREAM_PROTOCOL", 0, false, false, 0, false},
		{"a TLS alert where http was asked for", "", say("\x15\x03\x01\x00\x02\x02\x28"), "UPSTREAM_PROTOCOL", 0, false, false, 1, false},

		{"a body without end", "", flood(okHead+"\r\n[1", strings.Repeat(",1", 32<<10), 0), "RESPONSE_TOO_LARGE", 200, false, false, 1, false},
		{"chunks without end", "", flood(okHead+"Transfer-Encoding: chunked\r\n\r\n", strings.Repeat("1000\r\n"+strings.Repeat(" ", 4096)+"\r\n", 16), 0), "RESPONSE_TOO_LARGE", 200, false, false, 1, false},
		{"1 MB of gzip that becomes 1 GiB", "", encoded("gzip", big), "RESPONSE_TOO_LARGE", 200, false, false, 1, false},
		{"10 kB through two encodings that becomes 1 GiB", "", encoded("gzip, gzip", twice), "RESPONSE_TOO_LARGE", 200, false, false, 1, false},
		{"32 kB of zstd that becomes 1 GiB", "", encoded("zstd", zstdBomb(8<<20)), "RESPONSE_TOO_LARGE", 200, false, false, 1, false},
		{"a small answer in br that becomes 128 MiB", "", encoded("br", brotliBomb(t)), "RESPONSE_TOO_LARGE", 200, false, false, 1, false},
		{"zstd in br", "", encoded("zstd, br", brotlied(t, zstdBomb(8<<20))), "RESPONSE_TOO_LARGE", 200, false, false, 1, false},
		{"a window of 1 GiB", "", encoded("zstd", zstdBomb(1<<30)), "RESPONSE_ENCODING", 200, false, false, 1, false},
		{"empty gzip members without end", "", flood(okHead+"Content-Encoding: gzip\r\n\r\n", strings.Repeat(string(zipped(t, nil)), 1000), 0), "RESPONSE_TOO_LARGE", 200, false, false, 1, false},
	}
}

// Whatever the wire does, a call ends at most half a second after its limit
// with the code of its cause, memory stays bounded, nothing is left open, and a
// write that may have arrived is never sent again.
func TestBrokenConnections(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	d := &desk{t, home, startDaemon(t, home, "HB_WRAP_ALLOW_PRIVATE=1")}
	calm := newSite(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, jsonText) }))
	d.save("calm", `{"method":"GET","url":"`+calm.URL+`"}`, "")
	d.must("calm", 0)
	fds := descriptors(d.cmd.Process.Pid) - 1
	d.client.Close() // the one less
	settle(t, "open descriptors", fds, func() int { return descriptors(d.cmd.Process.Pid) })
	u, err := url.Parse(d.url)
	if err != nil {
		t.Fatal(err)
	}
	caller := client.New(client.Options{URL: u, TokenFiles: []string{filepath.Join(home, "wrap", "token")}, Started: time.Unix(0, 0)})

	fresh := resident(t, d.cmd.Process.Pid, true)
	var mu sync.Mutex              // guards the rest
	sent := map[string]breakdown{} // the writes, by wrapper
	var slowest time.Duration
	var most int64 // bytes that the daemon grew by in one case
	check := func(i int, b breakdown, method string, alone bool) {
		r := newRude(t, b.script)
		if b.script == nil {
			_ = r.Close() // and nothing listens there any more
		}
		what, id, body := b.name+", "+method, fmt.Sprintf("%s.%d", strings.ToLower(method), i), ""
		if method == "POST" {
			body = `,"body":{"order":1}`
		}
		request := fmt.Sprintf(`{"method":%q,"url":"%s://%s/","timeoutMs":%d%s}`, method, cmp.Or(b.scheme, "http"), r.Addr(), limit.Milliseconds(), body)
		if _, err := d.change(id, request, ""); err != nil {
			t.Errorf("%s: %v", what, err)
			return
		}
		var before, grown int64
		if alone {
			before = resident(t, d.cmd.Process.Pid, true)
		}
		begin := time.Now()
		_, err := caller.Run(t.Context(), &api.RunRequest{ID: id})
		took := time.Since(begin)
		if alone {
			peak := resident(t, d.cmd.Process.Pid, false)
			grown = peak - before
			if all := peak - fresh; all > 64<<20 {
				t.Errorf("%s: the daemon has grown by %d MiB since the first case", what, all>>20)
			}
		}
		var f *fault.Error
		if !errors.As(err, &f) {
			t.Errorf("%s: %v", what, err)
			return
		}
		retryable := b.get
		if method == "POST" {
			retryable = b.write
		}
		if method == "POST" && b.early {
			retryable = f.Retryable // whether the reset came before anything was written is up to the system
		}
		code, status := b.code, b.status
		if code == "" && (f.Code == "UPSTREAM_CONNECT" || f.Code == "RESPONSE_INCOMPLETE") {
			code, status = string(f.Code), f.Status
		}
		if string(f.Code) != code || f.Status != status || f.Retryable != retryable {
			t.Errorf("%s: %s, status %d, retryable %v: %s\nwant %s, status %d, retryable %v", what, f.Code, f.Status, f.Retryable, f.Message, code, status, retryable)
		}
		if took > limit+500*time.Millisecond || code == "UPSTREAM_TIMEOUT" && took < limit {
			t.Errorf("%s: it took %v", what, took.Round(time.Millisecond))
		}
		if grown > 64<<20 {
			t.Errorf("%s: the daemon grew by %d MiB", what, grown>>20)
		}
		mu.Lock()
		slowest, most = max(slowest, took), max(most, grown)
		mu.Unlock()
		if n := r.conns.Load(); n > 3 {
			t.Errorf("%s: %d connections, want three tries at most", what, n)
		}
		if method == "POST" {
			if n := r.read.Load(); n != int64(b.reads) {
				t.Errorf("%s: the write arrived %d times, want %d", what, n, b.reads)
			}
			if n := r.conns.Load(); n > 1 && !retryable && !b.early {
				t.Errorf("%s: %d connections", what, n)
			}
			mu.Lock()
			b.write = retryable
			sent[id] = b
			mu.Unlock()
		}
		if testing.Verbose() {
			t.Logf("%-60s %-20s %6d ms %4d MiB %d connections", what, f.Code, took.Milliseconds(), grown>>20, r.conns.Load())
		}
	}
	// What has to wait waits together; the rest is alone with the memory.
	var waiting sync.WaitGroup
	all := breakdowns(t)
	before := resident(t, d.cmd.Process.Pid, true)
	for i, b := range all {
		if b.code == "UPSTREAM_TIMEOUT" {
			for _, method := range []string{"GET", "POST"} {
				waiting.Go(func() { check(i, b, method, false) })
			}
		}
	}
	waiting.Wait()
	if grown := resident(t, d.cmd.Process.Pid, false) - before; grown > 64<<20 {
		t.Errorf("the daemon grew by %d MiB while it waited", grown>>20)
	}
	for i, b := range all {
		if b.code != "UPSTREAM_TIMEOUT" {
			check(i, b, "GET", true)
			check(i, b, "POST", true)
		}
	}
	rows := map[string][]api.AuditRow{}
	for _, row := range auditRows(t, home, 0) {
		if row.Kind == "run" {
			rows[row.Wrapper] = append(rows[row.Wrapper], row)
		}
	}
	for id, b := range sent {
		got := rows[id]
		if len(got) != 1 && !b.write && !b.early || len(got) == 0 {
			t.Errorf("%s: %d rows of one write: %+v", b.name, len(got), got)
			continue
		}
		for _, row := range got {
			if row.Method != "POST" || row.Outcome != "" || row.Error != b.code && b.code != "" {
				t.Errorf("%s: row %+v", b.name, row)
			}
		}
	}
	d.must("calm", 0) // as if nothing had been
	caller.Close()
	d.client.Close()
	settle(t, "open descriptors", fds, func() int { return descriptors(d.cmd.Process.Pid) })

	// A twin that has seen only the calm API has as many goroutines.
	calmHome := filepath.Join(t.TempDir(), "home")
	twin := &desk{t, calmHome, startDaemon(t, calmHome, "HB_WRAP_ALLOW_PRIVATE=1")}
	twin.save("calm", `{"method":"GET","url":"`+calm.URL+`"}`, "")
	twin.must("calm", 0)
	want, got := goroutines(t, twin.process), goroutines(t, d.process)
	for origin, n := range got {
		if n > want[origin] {
			t.Errorf("%d goroutines are left, %d in a calm daemon: started by %s", n, want[origin], origin)
		}
	}
	if len(want) < 3 {
		t.Errorf("only %d kinds of goroutines were seen: %v", len(want), want)
	}
	soak.Measured(t, "%d ways to break a connection, read and write: the slowest %v with a limit of %v, the daemon grew by %d MiB at most", len(all), slowest.Round(time.Millisecond), limit, most>>20)
}

// settle waits until a count has come back to where it was.
func settle(t *testing.T, what string, want int, count func() int) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		n := count()
		if n <= want {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("%d %s, want %d as before", n, what, want)
			return
		}
	}
}

// descriptors counts the open files of a process; 0 where the system does not
// say.
func descriptors(pid int) int {
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return 0
	}
	return len(files)
}

// resident is the memory of a process, in bytes: with now, what it is at this
// moment, which also begins a new peak; else the peak since then. It is 0 where
// the system does not say.
func resident(t *testing.T, pid int, now bool) int64 {
	t.Helper()
	if runtime.GOOS != "linux" {
		return 0
	}
	name := "VmHWM"
	if now {
		name = "VmRSS"
		if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(name + `:\s+(\d+) kB`).FindSubmatch(text)
	if m == nil {
		t.Fatalf("no %s in\n%s", name, text)
	}
	kb, err := strconv.ParseInt(string(m[1]), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kb << 10
}

var createdBy = regexp.MustCompile(`(?m)^created by (\S+)`)

// goroutines ends a process with SIGQUIT and counts its goroutines by what
// started them.
func goroutines(t *testing.T, p *process) map[string]int {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	_ = p.wait()
	found := map[string]int{}
	for _, m := range createdBy.FindAllStringSubmatch(p.stderr.String(), -1) {
		if !strings.HasPrefix(m[1], "runtime.") {
			found[m[1]]++
		}
	}
	return found
}

// The second request on a kept-alive connection is where a client is tempted to
// send again by itself: a write is not, whether the server closed the connection
// before it came or broke it after.
func TestBrokenKeptConnection(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	answer := "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 7\r\n\r\n" + jsonText
	for name, end := range map[string]func(*net.TCPConn){"reset": reset, "close": func(c *net.TCPConn) { _ = c.Close() }} {
		for _, method := range []string{"POST", "PATCH"} {
			var served atomic.Int64
			r := newRude(t, func(r *rude, c *net.TCPConn) {
				for r.take(c) {
					if served.Add(1) > 1 {
						end(c)
						return
					}
					_, _ = io.WriteString(c, answer)
				}
			})
			id := name + "." + method
			d.save(id, fmt.Sprintf(`{"method":%q,"url":"http://%s/","headers":{"Idempotency-Key":"k"},"body":{"order":1}}`, method, r.Addr()), "")
			d.must(id, 0)
			var f *fault.Error
			if _, err := d.run(id, 0); !errors.As(err, &f) || f.Code != "UPSTREAM_CONNECT" || f.Retryable {
				t.Errorf("%s: %v", id, err)
			}
			if n := r.read.Load(); n != 2 {
				t.Errorf("%s: two writes arrived as %d", id, n)
			}
			if n := len(d.rows(id, 2)); n != 2 {
				t.Errorf("%s: %d rows", id, n)
			}
		}
	}
}
