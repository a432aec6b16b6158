package client_test

import (
	"bufio"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/client"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/token"
)

// raw is a scripted daemon that proves itself and then hands the connection,
// once the header of a call has come and its body has not been read, to answer;
// with false the connection ends.
func raw(t *testing.T, h *home, answer func(n int64, c *net.TCPConn, r *bufio.Reader, req *http.Request) bool) *scripted {
	t.Helper()
	h.renew()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &scripted{addr: l.Addr().String()}
	local := l.Addr().(*net.TCPAddr).AddrPort()
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.conns.Add(1)
			wg.Go(func() {
				defer c.Close()
				_ = c.SetDeadline(time.Now().Add(20 * time.Second))
				r := bufio.NewReader(c)
				for {
					req, err := http.ReadRequest(r)
					if err != nil {
						return
					}
					if req.URL.Path == "/hello" {
						nonce, _ := hex.DecodeString(req.URL.Query().Get("nonce"))
						ok(c, helloBody(api.Proof(h.holder.Current(), local, nonce)))
						continue
					}
					if !answer(s.requests.Add(1), c.(*net.TCPConn), r, req) {
						return
					}
				}
			})
		}
	})
	t.Cleanup(func() { l.Close(); wg.Wait() })
	h.addr = s.addr
	return s
}

func echo(n string) string {
	return fmt.Sprintf(`{"ok":true,"status":200,"durationMs":1,"wrapper":{"id":%q,"name":"A"},"records":[],"meta":{"mode":"table","selected":0,"rendered":0,"truncated":false}}`, n)
}

// However an answer is framed, a call gets its own answer or an error, never
// that of another.
func TestFramesStayApart(t *testing.T) {
	frames := map[string]struct {
		write func(c net.Conn, body string) bool
		fails bool // of a write; a read may be lucky the second time
	}{
		"plain": {func(c net.Conn, b string) bool { ok(c, b); return true }, false},
		"chunked": {func(c net.Conn, b string) bool {
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\nX-T: 1\r\n\r\n", len(b), b)
			return true
		}, false},
		"drips": {func(c net.Conn, b string) bool {
			for _, x := range []byte(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(b), b)) {
				_, _ = c.Write([]byte{x})
			}
			return true
		}, false},
		"http/1.0": {func(c net.Conn, b string) bool {
			fmt.Fprintf(c, "HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n%s", b)
			return false
		}, false},
		"1.0 length": {func(c net.Conn, b string) bool {
			fmt.Fprintf(c, "HTTP/1.0 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(b), b)
			return true
		}, false},
		"closes": {func(c net.Conn, b string) bool {
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n%s", b)
			return false
		}, false},
		"says close": {func(c net.Conn, b string) bool {
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", len(b), b)
			return true
		}, false},
		"too short": {func(c net.Conn, b string) bool {
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(b), b+echo("next"))
			return true
		}, false},
		"too long": {func(c net.Conn, b string) bool {
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(b)+5, b)
			return false
		}, true},
		"two answers": {func(c net.Conn, b string) bool {
			x := echo("next")
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%sHTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(b), b, len(x), x)
			return true
		}, false},
		"chunked and a second": {func(c net.Conn, b string) bool {
			// In one write, as "two answers": what comes only after the next call was
			// begun looks like the answer to that one, whoever reads it.
			x := echo("next")
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\nHTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(b), b, len(x), x)
			return true
		}, false},
		"chunks unended": {func(c net.Conn, b string) bool {
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", len(b), b)
			return false
		}, true},
		"100 first": {func(c net.Conn, b string) bool { fmt.Fprint(c, "HTTP/1.1 100 Continue\r\n\r\n"); ok(c, b); return true }, true},
		"103 first": {func(c net.Conn, b string) bool {
			fmt.Fprint(c, "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n")
			ok(c, b)
			return true
		}, true},
		"101": {func(c net.Conn, b string) bool {
			fmt.Fprint(c, "HTTP/1.1 101 Switching\r\n\r\n")
			ok(c, b)
			return true
		}, true},
		"204": {func(c net.Conn, b string) bool {
			fmt.Fprint(c, "HTTP/1.1 204 No\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n")
			return true
		}, true},
		"304 with a body": {func(c net.Conn, b string) bool {
			fmt.Fprintf(c, "HTTP/1.1 304 No\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(b), b)
			return true
		}, true},
		"two lengths": {func(c net.Conn, b string) bool {
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\nContent-Length: 3\r\n\r\n%s", len(b), b)
			return true
		}, true},
		"length, chunked": {func(c net.Conn, b string) bool {
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(b), b)
			return true
		}, false},
		"garbage":     {func(c net.Conn, b string) bool { fmt.Fprint(c, "\x16\x03\x01garbage\r\n\r\n"); return true }, true},
		"empty lines": {func(c net.Conn, b string) bool { fmt.Fprint(c, "\r\n\r\n"); ok(c, b); return true }, true},
		"negative": {func(c net.Conn, b string) bool {
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: -5\r\n\r\n%s", b)
			return true
		}, true},
		"endless header": {func(c net.Conn, b string) bool {
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nX: %s\r\n\r\n", strings.Repeat("x", 70<<10))
			return true
		}, true},
	}
	for name, f := range frames {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHome(t)
			s := raw(t, h, func(n int64, c *net.TCPConn, _ *bufio.Reader, req *http.Request) bool {
				var q api.RunRequest
				if json.NewDecoder(req.Body).Decode(&q) != nil || q.ID == "" {
					return f.write(c, `{"ok":true,"version":"1"}`)
				}
				_, _ = io.Copy(io.Discard, req.Body)
				return f.write(c, echo(q.ID))
			})
			c := h.clientWith(func(o *client.Options) { o.Timeout = 3 * time.Second })
			for i := range 40 {
				if i%3 == 2 {
					_, _ = c.Status(t.Context())
					continue
				}
				before, id := s.requests.Load(), fmt.Sprintf("w%d", i)
				r, err := c.Run(t.Context(), &api.RunRequest{ID: id})
				if got := s.requests.Load() - before; got != 1 {
					t.Fatalf("a write was sent %d times (%v)", got, err)
				}
				if (err != nil) != f.fails {
					t.Fatalf("call %d: %v", i, err)
				}
				if err == nil && r.Wrapper.ID != id {
					t.Fatalf("call %s has the answer of %s", id, r.Wrapper.ID)
				}
				if err != nil && code(t, err) == "BRIDGE_UNREACHABLE" && err.(*fault.Error).Retryable {
					t.Fatalf("a write that arrived is called retryable: %v", err)
				}
			}
		})
	}
}

// A refusal that comes before a large body was read reaches the caller.
func TestEarlyAnswerOfALargeCall(t *testing.T) {
	big := json.RawMessage(`{"x":"` + strings.Repeat("x", api.MaxBody-1000) + `"}`)
	busy := `{"ok":false,"code":"BUSY","status":null,"field":null,"retryable":true,"hint":"h","message":"busy","details":[]}`
	ends := map[string]func(c *net.TCPConn){
		"closed late": func(c *net.TCPConn) { _ = c.CloseWrite(); time.Sleep(200 * time.Millisecond) }, // as net/http does
		"never read":  func(*net.TCPConn) { time.Sleep(4 * time.Second) },
	}
	if runtime.GOOS == "linux" { // other systems drop what had come when a connection is reset
		ends["closed at once"] = func(*net.TCPConn) {}
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHome(t)
			s := raw(t, h, func(n int64, c *net.TCPConn, _ *bufio.Reader, _ *http.Request) bool {
				fmt.Fprintf(c, "HTTP/1.1 429 Too Many\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", len(busy), busy)
				end(c)
				return false
			})
			c := h.client()
			for range 3 {
				begin := time.Now()
				before := s.requests.Load()
				_, err := c.Run(t.Context(), &api.RunRequest{ID: "a", Args: big})
				if code(t, err) != "BUSY" {
					t.Errorf("%v after %s", err, time.Since(begin))
				}
				if d := time.Since(begin); d > 3*time.Second {
					t.Errorf("it took %s", d)
				}
				if got := s.requests.Load() - before; got != 1 {
					t.Errorf("sent %d times", got)
				}
			}
		})
	}
}

// The real bridge refuses a large call with an old token, and takes it with the
// new one.
func TestLargeCallWithAnOldToken(t *testing.T) {
	h := newHome(t)
	h.start()
	c := h.client()
	if _, err := c.Status(t.Context()); err != nil {
		t.Fatal(err)
	}
	big := json.RawMessage(`{"x":"` + strings.Repeat("x", api.MaxBody-1000) + `"}`)
	for range 4 {
		next := token.New()
		h.holder.Set(next) // the file is renewed only after the call has begun
		var written sync.WaitGroup
		written.Go(func() {
			time.Sleep(20 * time.Millisecond)
			_ = token.Write(h.file, next)
		})
		before := h.backend.runs.Load()
		_, err := c.Run(t.Context(), &api.RunRequest{ID: "a", Args: big})
		if err != nil && code(t, err) != "UNAUTHORIZED" {
			t.Errorf("%v %v", err, err.(*fault.Error).Hint)
		}
		if got := h.backend.runs.Load() - before; (err == nil) != (got == 1) || got > 1 {
			t.Errorf("%d runs, %v", got, err)
		}
		written.Wait()
	}
}

// A call whose caller has gone is not sent.
func TestCancelledBeforeItIsSent(t *testing.T) {
	h := newHome(t)
	h.start()
	c := h.client()
	if _, err := c.Status(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 300 {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := c.Run(ctx, &api.RunRequest{ID: "a"}); code(t, err) != "CALL_CANCELLED" {
			t.Fatal(err)
		}
	}
	time.Sleep(50 * time.Millisecond)
	if n := h.backend.runs.Load(); n != 0 {
		t.Errorf("%d calls of a caller that had gone were carried out", n)
	}
}

// Calls that are cancelled at every moment leave nothing for others: each call
// gets its own answer, none is carried out twice, and nothing piles up.
func TestCancelledCallsLeaveNothing(t *testing.T) {
	h := newHome(t)
	h.start()
	c := h.client()
	goroutines, files := runtime.NumGoroutine(), descriptors(t)
	var sent, done, cancelled atomic.Int64
	var wg sync.WaitGroup
	const callers, each = 16, 1250
	for i := range callers {
		wg.Go(func() {
			for j := range each {
				ctx, cancel := context.WithCancel(t.Context())
				if j%2 == 0 {
					timer := time.AfterFunc(time.Duration(j*37%1500)*time.Microsecond, cancel)
					defer timer.Stop()
				}
				args := fmt.Sprintf(`{"n":%d}`, i*each+j)
				sent.Add(1)
				r, err := c.Run(ctx, &api.RunRequest{ID: "a", Args: json.RawMessage(args)})
				cancel()
				switch {
				case err == nil && string(r.Records) != "["+args+"]":
					t.Errorf("%s: %s", args, r.Records)
				case err == nil:
					done.Add(1)
				case code(t, err) == "CALL_CANCELLED" && j%2 == 0:
					cancelled.Add(1)
				default:
					t.Errorf("%s: %v", args, err)
				}
			}
		})
	}
	wg.Wait()
	if n := h.backend.runs.Load(); n < done.Load() || n > sent.Load() {
		t.Errorf("%d runs of %d calls, %d answered", n, sent.Load(), done.Load())
	}
	t.Logf("%d calls, %d answered, %d cancelled, %d runs, %d connections", sent.Load(), done.Load(), cancelled.Load(), h.backend.runs.Load(), h.opened.Load())
	c.Close()
	for range 100 {
		if runtime.NumGoroutine() <= goroutines+2 && descriptors(t) <= files {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("goroutines %d -> %d, descriptors %d -> %d", goroutines, runtime.NumGoroutine(), files, descriptors(t))
}

func descriptors(t *testing.T) int {
	d, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(d)
}

// A call that its caller gives up costs its own connection and no other: each
// new one says hello first.
func TestCancelledCallKeepsTheOthers(t *testing.T) {
	if !client.CanPeek {
		t.Skip("here nobody knows which connections are still good, and all are closed")
	}
	h := newHome(t)
	arrived, release := make(chan struct{}), make(chan struct{})
	s := raw(t, h, func(_ int64, c *net.TCPConn, r *bufio.Reader, req *http.Request) bool {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return false
		}
		if !strings.Contains(string(body), `"at once"`) {
			arrived <- struct{}{}
		}
		if strings.Contains(string(body), `"never"`) {
			_, _ = r.ReadByte() // until the caller has gone
			return false
		}
		if strings.Contains(string(body), `"together"`) {
			<-release
		}
		ok(c, echo("a"))
		return true
	})
	c := h.client()
	var together sync.WaitGroup
	for range 2 {
		together.Go(func() {
			if _, err := c.Run(t.Context(), &api.RunRequest{ID: "together"}); err != nil {
				t.Error(err)
			}
		})
	}
	<-arrived
	<-arrived
	close(release)
	together.Wait()

	ctx, cancel := context.WithCancel(t.Context())
	given := make(chan error, 1)
	go func() {
		_, err := c.Run(ctx, &api.RunRequest{ID: "never"})
		given <- err
	}()
	<-arrived
	cancel()
	if err := <-given; code(t, err) != "CALL_CANCELLED" {
		t.Errorf("%v", err)
	}
	if _, err := c.Run(t.Context(), &api.RunRequest{ID: "at once"}); err != nil {
		t.Fatal(err)
	}
	if n := s.conns.Load(); n != 2 {
		t.Errorf("%d connections were made, want 2", n)
	}
}
