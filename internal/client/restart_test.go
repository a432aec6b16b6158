package client_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/client"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/token"
)

// M-09: a daemon restart between two calls is invisible, for reads and for
// writes, and no write happens twice.
func TestRestartBetweenCalls(t *testing.T) {
	t.Run("peeking", func(t *testing.T) { restarts(t, func(*client.Client) {}) })
	t.Run("not peeking", func(t *testing.T) { restarts(t, (*client.Client).DoNotPeek) })
}

func restarts(t *testing.T, change func(*client.Client)) {
	h := newHome(t)
	h.start()
	c := h.client()
	change(c)
	for i := range 60 {
		args := fmt.Sprintf(`{"n":%d}`, i)
		if r, err := c.Run(t.Context(), &api.RunRequest{ID: "a", Args: json.RawMessage(args)}); err != nil || string(r.Records) != "["+args+"]" {
			t.Fatalf("run %d: %v %v", i, r, err)
		}
		h.stop()
		h.start()
		if i%2 == 0 { // every other time the first call after it is a read
			if _, err := c.Status(t.Context()); err != nil {
				t.Fatalf("status %d: %v", i, err)
			}
		}
	}
	if n := h.backend.runs.Load(); n != 60 {
		t.Errorf("%d runs, want 60", n)
	}
}

// Where a kept connection cannot be asked whether it is gone, each write has its
// own, proven like the others; reads share one.
func TestWritesWithoutPeeking(t *testing.T) {
	h := newHome(t)
	h.start()
	c := h.client()
	c.DoNotPeek()
	for range 3 {
		if _, err := c.Status(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Run(t.Context(), &api.RunRequest{ID: "a"}); err != nil {
			t.Fatal(err)
		}
	}
	if n := h.opened.Load(); n != 4 {
		t.Errorf("%d connections, want 1 for the reads and 3 for the writes", n)
	}
}

// A new token closes what was proven under the old one.
func TestRotationClosesOldConnections(t *testing.T) {
	h := newHome(t)
	closed := make(chan struct{}, 16)
	h.watch = func(_ net.Conn, s http.ConnState) {
		if s == http.StateClosed {
			closed <- struct{}{}
		}
	}
	h.start()
	c := h.client()
	for i := range 5 {
		if _, err := c.Status(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := h.opened.Load(); got != int64(i+1) {
			t.Fatalf("%d connections after %d tokens", got, i+1)
		}
		h.renew()
		if _, err := c.Run(t.Context(), &api.RunRequest{ID: "a"}); err != nil {
			t.Fatal(err)
		}
		select {
		case <-closed:
		case <-time.After(10 * time.Second):
			t.Fatal("the connection of the old token stays open")
		}
	}
}

// A scripted daemon proves itself and then does what a test says, one function
// a request; it counts what it was sent.
type scripted struct {
	addr     string
	requests atomic.Int64
	conns    atomic.Int64
}

func script(t *testing.T, h *home, answer func(n int64, c net.Conn, req *http.Request, body []byte)) *scripted {
	t.Helper()
	return raw(t, h, func(n int64, c *net.TCPConn, _ *bufio.Reader, req *http.Request) bool {
		body, err := io.ReadAll(req.Body)
		if err == nil {
			answer(n, c, req, body)
		}
		return err == nil
	})
}

// A daemon that dies in the middle of a call: a read is sent once more, a write
// is not, and its error says that it may have been carried out.
func TestDaemonDiesDuringACall(t *testing.T) {
	no, yes := false, true
	run := &api.RunRequest{ID: "a"}
	calls := []struct {
		name  string
		call  func(c *client.Client) error
		sent  int64
		retry bool
	}{
		{"status", func(c *client.Client) error { _, err := c.Status(t.Context()); return err }, 2, true},
		{"run", func(c *client.Client) error { _, err := c.Run(t.Context(), run); return err }, 1, false},
		{"dry run", func(c *client.Client) error {
			_, err := c.Test(t.Context(), &api.TestRequest{ID: "a", DryRun: &yes})
			return err
		}, 2, true},
		{"test by default", func(c *client.Client) error { _, err := c.Test(t.Context(), &api.TestRequest{ID: "a"}); return err }, 2, true},
		{"sample", func(c *client.Client) error {
			_, err := c.Test(t.Context(), &api.TestRequest{ID: "a", DryRun: &no, Sample: json.RawMessage(`1`)})
			return err
		}, 2, true},
		{"live test", func(c *client.Client) error {
			_, err := c.Test(t.Context(), &api.TestRequest{ID: "a", DryRun: &no, Sample: json.RawMessage(`null`)})
			return err
		}, 1, false},
		{"derive", func(c *client.Client) error { _, err := c.Derive(t.Context(), &api.DeriveRequest{}); return err }, 2, true},
		{"create", func(c *client.Client) error {
			_, err := c.Change(t.Context(), &api.ChangeRequest{Action: "create"})
			return err
		}, 1, false},
		{"get", func(c *client.Client) error {
			_, err := c.Change(t.Context(), &api.ChangeRequest{Action: "get"})
			return err
		}, 2, true},
	}
	ends := map[string]func(c net.Conn){
		"closes":      func(c net.Conn) { c.Close() },
		"resets":      func(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0); c.Close() },
		"half answer": func(c net.Conn) { fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Le"); c.Close() },
		"half body": func(c net.Conn) {
			fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"ok\":")
			c.Close()
		},
	}
	for end, do := range ends {
		for _, reused := range []bool{false, true} {
			for _, tt := range calls {
				t.Run(fmt.Sprintf("%s/%s/reused %v", end, tt.name, reused), func(t *testing.T) {
					h := newHome(t)
					dying := !reused
					s := script(t, h, func(n int64, c net.Conn, _ *http.Request, _ []byte) {
						if dying {
							do(c)
							return
						}
						ok(c, `{"ok":true}`)
					})
					c := h.client()
					if reused {
						if _, err := c.Status(t.Context()); err != nil {
							t.Fatal(err)
						}
						dying = true
						s.requests.Store(0)
					}
					err := tt.call(c)
					if code(t, err) != "BRIDGE_UNREACHABLE" || err.(*fault.Error).Retryable != tt.retry {
						t.Errorf("%v, retryable %v", err, err.(*fault.Error).Retryable)
					}
					if hint := err.(*fault.Error).Hint; !tt.retry && !strings.Contains(hint, "may have been carried out") {
						t.Errorf("hint %q", hint)
					}
					// net/http itself repeats a read on a connection that it had kept.
					if got := s.requests.Load(); got < tt.sent || got > tt.sent+1 || !tt.retry && got != 1 {
						t.Errorf("sent %d times, want %d", got, tt.sent)
					}
				})
			}
		}
	}
}

// A kept connection that the daemon has closed is noticed before the call is
// written, however soon the call comes after.
func TestKeptConnectionWasClosed(t *testing.T) {
	for name, end := range map[string]func(c *net.TCPConn){
		"closed": func(c *net.TCPConn) { c.Close() },
		"reset":  func(c *net.TCPConn) { _ = c.SetLinger(0); c.Close() },
		"junk": func(c *net.TCPConn) {
			fmt.Fprint(c, "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n")
			c.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHome(t)
			closed := make(chan struct{})
			s := script(t, h, func(n int64, c net.Conn, _ *http.Request, _ []byte) {
				ok(c, `{"ok":true}`)
				if n%2 == 1 {
					end(c.(*net.TCPConn))
					closed <- struct{}{}
				}
			})
			c := h.client()
			for i := range 100 {
				if _, err := c.Status(t.Context()); err != nil && name != "reset" { // a reset may overtake the answer before it
					t.Fatal(err)
				}
				<-closed
				before := s.requests.Load()
				if before%2 == 0 {
					t.Fatalf("%d requests", before)
				}
				if _, err := c.Run(t.Context(), &api.RunRequest{ID: "a"}); err != nil {
					t.Fatalf("round %d: %v", i, err)
				}
				if got := s.requests.Load() - before; got != 1 {
					t.Fatalf("round %d: the write was sent %d times", i, got)
				}
			}
		})
	}
}

// The daemon has a newer token than the file had a moment ago, on a connection
// that is already proven: refused once, read again, accepted.
func TestUnauthorizedReadsTheTokenAgain(t *testing.T) {
	h := newHome(t)
	var old string
	rotate := false
	s := script(t, h, func(_ int64, c net.Conn, req *http.Request, _ []byte) {
		if rotate {
			rotate = false
			h.renew()
		}
		if req.Header.Get("Authorization") != "Bearer "+h.holder.Current() {
			b := `{"ok":false,"code":"UNAUTHORIZED","status":null,"field":null,"retryable":false,"hint":"h","message":"m","details":[]}`
			fmt.Fprintf(c, "HTTP/1.1 401 Unauthorized\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(b), b)
			return
		}
		ok(c, `{"ok":true}`)
	})
	c := h.client()
	if _, err := c.Status(t.Context()); err != nil {
		t.Fatal(err)
	}
	old, rotate = h.holder.Current(), true
	s.requests.Store(0)
	if _, err := c.Run(t.Context(), &api.RunRequest{ID: "a"}); err != nil {
		t.Errorf("%v", err)
	}
	if n := s.requests.Load(); n != 2 {
		t.Errorf("sent %d times, want 2", n)
	}
	// When the file does not change, it is not tried again.
	if _, err := c.Status(t.Context()); err != nil {
		t.Fatal(err)
	}
	fileToken := h.holder.Current()
	h.holder.Set(old)
	s.requests.Store(0)
	_, err := c.Run(t.Context(), &api.RunRequest{ID: "a"})
	if code(t, err) != "UNAUTHORIZED" || s.requests.Load() != 1 {
		t.Errorf("%v after %d requests", err, s.requests.Load())
	}
	if got, _ := token.Read(h.file); got != fileToken {
		t.Error("the token file changed")
	}
}

// Answers of a proven daemon that are not the bridge's.
func TestBadAnswers(t *testing.T) {
	for name, raw := range map[string]string{
		"html":          "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>",
		"no type":       "HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n{\"ok\":true}",
		"not json":      "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 5\r\n\r\n{\"ok\"",
		"wrong shape":   "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 12\r\n\r\n{\"ok\":\"yes\"}",
		"null":          "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 4\r\n\r\nnull",
		"error unnamed": "HTTP/1.1 500 Oops\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
		"ok but 500":    "HTTP/1.1 500 Oops\r\nContent-Type: application/json\r\nContent-Length: 23\r\n\r\n{\"ok\":true,\"code\":\"XX\"}",
		"redirect":      "HTTP/1.1 307 Away\r\nLocation: http://127.0.0.1:1/\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
		"empty":         "HTTP/1.1 204 None\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			h := newHome(t)
			s := script(t, h, func(_ int64, c net.Conn, _ *http.Request, _ []byte) { _, _ = io.WriteString(c, raw) })
			_, err := h.client().Run(t.Context(), &api.RunRequest{ID: "a"})
			if code(t, err) != "BRIDGE_BAD_ANSWER" || s.requests.Load() != 1 {
				t.Errorf("%v after %d requests", err, s.requests.Load())
			}
			if strings.Contains(err.Error(), "another program") {
				t.Errorf("it has proven itself: %v", err)
			}
		})
	}
}

// What is sent: the token, the version, no encoding that would be undone behind
// our back, and the members of the request.
func TestRequestOnTheWire(t *testing.T) {
	h := newHome(t)
	type seen struct {
		Line, Body string
		Header     http.Header
	}
	var got seen
	script(t, h, func(_ int64, c net.Conn, req *http.Request, body []byte) {
		got = seen{req.Method + " " + req.RequestURI + " " + req.Host, string(body), req.Header}
		ok(c, `{"ok":true}`)
	})
	if _, err := h.client().Run(t.Context(), &api.RunRequest{ID: "a", Args: json.RawMessage(`{"n":9007199254740993,"s":"<é>"}`), Format: "both"}); err != nil {
		t.Fatal(err)
	}
	want := seen{"POST /wrap/run " + h.addr, `{"id":"a","args":{"n":9007199254740993,"s":"<é>"},"format":"both"}` + "\n", http.Header{
		"Authorization": {"Bearer " + h.holder.Current()}, "X-Hb-Version": {"1.0.0"}, "Accept": {"application/json"},
		"Content-Type": {"application/json"}, "Content-Length": {fmt.Sprint(len(got.Body))},
	}}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("\n got %v\nwant %v", got, want)
	}
}

// An answer of exactly the limit is taken, one byte more is not.
func TestAnswerLimit(t *testing.T) {
	h := newHome(t)
	size := client.MaxAnswer
	script(t, h, func(_ int64, c net.Conn, _ *http.Request, _ []byte) {
		fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n\"", size)
		chunk := strings.Repeat("x", 1<<20)
		for left := size - 2; left > 0; left -= min(left, len(chunk)) {
			if _, err := io.WriteString(c, chunk[:min(left, len(chunk))]); err != nil {
				return
			}
		}
		_, _ = io.WriteString(c, "\"")
	})
	c := h.client()
	if doc, err := c.Wrapper(t.Context(), "a"); err != nil || len(doc) != size {
		t.Errorf("at the limit: %d bytes, %v", len(doc), err)
	}
	size++
	if _, err := c.Wrapper(t.Context(), "a"); code(t, err) != "BRIDGE_BAD_ANSWER" || !strings.Contains(err.Error(), "over 64 MiB") {
		t.Errorf("one over: %v", err)
	}
}
