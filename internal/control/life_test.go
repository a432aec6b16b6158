//go:build unix

package control_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/control"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// patience is for what should take milliseconds.
const patience = 20 * time.Second

func within[T any](t testing.TB, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("%s did not happen", what)
		panic("unreachable")
	}
}

// later runs f and hands out its error.
func later(f func() error) <-chan error {
	c := make(chan error, 1)
	go func() { c <- f() }()
	return c
}

// The three calls that can wait, and one that runs for long.
func waitingCalls(c *control.Client) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"manifest": func(ctx context.Context) error { _, err := c.Manifest(ctx, 7); return err },
		"follow":   func(ctx context.Context) error { _, err := c.AuditFollow(ctx, 11, 0); return err },
		"run":      func(ctx context.Context) error { _, err := c.Run(ctx, &api.RunRequest{ID: "!wait"}); return err },
	}
}

// A caller that goes away ends the backend's work at once.
func TestCancelReachesTheBackend(t *testing.T) {
	f := &fake{arrived: make(chan struct{}), gone: make(chan error, 1)}
	s := serve(t, f)
	for name, call := range waitingCalls(control.NewClient(s.path, control.ClientOptions{})) {
		ctx, cancel := context.WithCancel(context.Background())
		done := later(func() error { return call(ctx) })
		within(t, f.arrived, name)
		cancel()
		if err := within(t, done, name+"'s return"); !fault.Is(err, "CALL_CANCELLED") {
			t.Errorf("%s: %v", name, err)
		}
		if err := within(t, f.gone, name+"'s end"); err != context.Canceled {
			t.Errorf("%s: the backend saw %v", name, err)
		}
	}
}

// A client's own limit says so, and for a call that may have been carried out
// that it must not be repeated blindly.
func TestClientTimeouts(t *testing.T) {
	f := &fake{arrived: make(chan struct{}, 9), gone: make(chan error, 9)}
	s := serve(t, f)
	for name, call := range waitingCalls(control.NewClient(s.path, control.ClientOptions{Timeout: 100 * time.Millisecond})) {
		err := call(context.Background())
		e := fault.From(err)
		if e.Code != "BRIDGE_TIMEOUT" || e.Retryable != (name != "run") || !strings.Contains(e.Message, "the daemon at "+s.path+" did not answer in 100ms") {
			t.Errorf("%s: %+v", name, e)
		}
		within(t, f.gone, name+"'s end")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	_, err := control.NewClient(s.path, control.ClientOptions{}).AuditFollow(ctx, 1, 1)
	if !fault.Is(err, "BRIDGE_TIMEOUT") || !strings.Contains(err.Error(), "in the caller's time") {
		t.Errorf("the caller's deadline: %v", err)
	}
}

// Stopping ends what waits for news, and connections that say nothing or only
// half of it, in well under a second.
func TestStopIsQuick(t *testing.T) {
	f := &fake{arrived: make(chan struct{}), gone: make(chan error, 2)}
	s := serve(t, f)
	c := control.NewClient(s.path, control.ClientOptions{})
	var waits []<-chan error
	for name, call := range waitingCalls(c) {
		if name == "run" {
			continue
		}
		waits = append(waits, later(func() error { return call(context.Background()) }))
		within(t, f.arrived, name)
	}
	var open []net.Conn
	for _, said := range []string{"", "", "GET /con", "POST /control/apply HTTP/1.1\r\nHost: hbrestd\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{"} {
		conn, err := net.Dial("unix", s.path)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, said); err != nil {
			t.Fatal(err)
		}
		open = append(open, conn)
	}
	// An answered call shows that the server has seen the connections before it.
	if _, err := c.AuditHead(context.Background()); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := s.stop(); err != nil {
		t.Errorf("Serve: %v", err)
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("stopping took %v", took)
	}
	for _, w := range waits {
		if err := within(t, w, "a waiting call's end"); !fault.Is(err, "SHUTTING_DOWN") {
			t.Errorf("a waiting call: %v", err)
		}
	}
	for i, conn := range open {
		_ = conn.SetReadDeadline(time.Now().Add(patience))
		if b, err := io.ReadAll(conn); err != nil && os.IsTimeout(err) {
			t.Errorf("connection %d is still open: %q", i, b)
		}
	}
	if _, err := os.Lstat(s.path); !os.IsNotExist(err) {
		t.Errorf("the socket is still there: %v", err)
	}
	if _, err := c.AuditHead(context.Background()); !fault.Is(err, "BRIDGE_UNREACHABLE") {
		t.Errorf("after the stop: %v", err)
	}
}

// A running call may finish; nobody new gets in meanwhile.
func TestStopLetsRunningCallsFinish(t *testing.T) {
	f := &fake{arrived: make(chan struct{}), hold: make(chan struct{}), gone: make(chan error, 1)}
	s := serve(t, f)
	c := control.NewClient(s.path, control.ClientOptions{})
	running := later(func() error { _, err := c.Run(context.Background(), &api.RunRequest{ID: "!hold"}); return err })
	within(t, f.arrived, "the call")
	if err := c.Stop(context.Background()); err != nil { // as `hbrestd` would
		t.Fatal(err)
	}
	stopped := later(s.stop)
	for deadline := time.Now().Add(patience); ; runtime.Gosched() {
		_, err := c.AuditHead(context.Background())
		if fault.Is(err, "BRIDGE_UNREACHABLE") {
			break
		}
		if err != nil && !fault.Is(err, "SHUTTING_DOWN") || time.Now().After(deadline) {
			t.Fatalf("during the stop: %v", err)
		}
	}
	select {
	case err := <-stopped:
		t.Fatalf("Serve returned with a call running: %v", err)
	default:
	}
	close(f.hold)
	if err := within(t, running, "the call's end"); err != nil {
		t.Errorf("the running call: %v", err)
	}
	if err := within(t, f.gone, "the call's end"); err != nil {
		t.Errorf("its context had ended: %v", err)
	}
	if err := within(t, stopped, "the stop"); err != nil {
		t.Errorf("Serve: %v", err)
	}
}

// A call that outlives the grace is cut off: its context ends, and Serve waits
// for it.
func TestStopCutsOff(t *testing.T) {
	f := &fake{arrived: make(chan struct{}), gone: make(chan error, 1)}
	s := serveAt(t, f, socketPath(t), 50*time.Millisecond)
	c := control.NewClient(s.path, control.ClientOptions{Timeout: patience})
	running := later(func() error { _, err := c.Run(context.Background(), &api.RunRequest{ID: "!wait"}); return err })
	within(t, f.arrived, "the call")
	if err := s.stop(); err != nil {
		t.Errorf("Serve: %v", err)
	}
	select {
	case err := <-f.gone:
		if err != context.Canceled {
			t.Errorf("the backend saw %v", err)
		}
	default:
		t.Error("Serve did not wait for the call")
	}
	if err := within(t, running, "the call's end"); err == nil || fault.From(err).Retryable {
		t.Errorf("the call: %+v", err)
	}
	if !strings.Contains(s.log.String(), "calls were cut off at stop") {
		t.Error("the log does not say so")
	}
}

// A listener that fails is an error of Serve, and everything is closed.
func TestServeFails(t *testing.T) {
	path := socketPath(t)
	l := listen(t, path)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	err := control.Serve(context.Background(), l, &fake{}, control.Options{})
	if err == nil || !strings.Contains(err.Error(), "the control socket stopped") {
		t.Errorf("Serve on a closed listener: %v", err)
	}
}

// Many at once, among some that connect and say nothing.
func TestManyClients(t *testing.T) {
	f := &fake{}
	s := serve(t, f)
	for range 20 {
		conn, err := net.Dial("unix", s.path)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	began := time.Now()
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			c := control.NewClient(s.path, control.ClientOptions{Timeout: patience})
			for j := range 5 {
				id := fmt.Sprintf("w%d.%d", i, j)
				got, err := c.Expose(context.Background(), &control.ExposeRequest{ID: id})
				if err != nil || got.ID != id {
					t.Errorf("%s: %v %v", id, got, err)
				}
			}
		})
	}
	wg.Wait()
	if took := time.Since(began); took > 5*time.Second { // less than the silent ones are given
		t.Errorf("500 calls took %v", took)
	}
	if n := len(f.asked()); n != 500 {
		t.Errorf("the backend was asked %d times, want 500", n)
	}
}

// One that says nothing is closed after five seconds.
func TestSilentConnectionsEnd(t *testing.T) {
	t.Parallel()
	s := serve(t, &fake{})
	var wg sync.WaitGroup
	for _, said := range []string{"", "GET /control/status HTTP/1.1\r\nHost: hb"} {
		wg.Go(func() {
			conn, err := net.Dial("unix", s.path)
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			began := time.Now()
			_ = conn.SetReadDeadline(began.Add(patience))
			if _, err := io.WriteString(conn, said); err != nil {
				t.Error(err)
			}
			if _, err := io.Copy(io.Discard, conn); err != nil {
				t.Error(err)
			}
			if took := time.Since(began); took < 4*time.Second || took > 8*time.Second {
				t.Errorf("%q: closed after %v, want 5 s", said, took)
			}
		})
	}
	wg.Wait()
}

// Nothing is left behind by any of it.
func TestNoGoroutinesStay(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 3 {
		f := &fake{arrived: make(chan struct{}), gone: make(chan error, 99)}
		s := serve(t, f)
		c := control.NewClient(s.path, control.ClientOptions{})
		for range 20 {
			if _, err := c.Status(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
		for _, call := range waitingCalls(c) {
			ctx, cancel := context.WithCancel(context.Background())
			done := later(func() error { return call(ctx) })
			within(t, f.arrived, "a call")
			cancel()
			within(t, done, "its end")
		}
		waits := later(func() error { _, err := c.AuditFollow(context.Background(), 1, 1); return err })
		within(t, f.arrived, "a call")
		silent, err := net.Dial("unix", s.path)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.stop(); err != nil {
			t.Error(err)
		}
		within(t, waits, "its end")
		silent.Close()
	}
	// Connections' goroutines end a moment after their calls.
	for deadline := time.Now().Add(patience); runtime.NumGoroutine() > before; runtime.Gosched() {
		if time.Now().After(deadline) {
			buf := make([]byte, 1<<20)
			t.Fatalf("%d goroutines before, %d after:\n%s", before, runtime.NumGoroutine(), buf[:runtime.Stack(buf, true)])
		}
	}
}

// What is not the daemon, or breaks off, is told apart.
func TestClientAgainstOthers(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
	for _, tc := range []struct {
		name, answer  string
		code          fault.Code
		says          string
		lookIsRetried bool
	}{
		{"closes at once", "", "BRIDGE_UNREACHABLE", "closed the connection before it answered", true},
		{"breaks off", ok + "Content-Length: 99\r\n\r\n{\"se", "BRIDGE_UNREACHABLE", "closed the connection", true},
		{"not HTTP", "220 mail ready\r\n", "BRIDGE_UNREACHABLE", "closed the connection", true},
		{"a page", "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\nhi", "BRIDGE_BAD_ANSWER", "status 200 without JSON", false},
		{"no content", "HTTP/1.1 204 No Content\r\n\r\n", "BRIDGE_BAD_ANSWER", "status 204 without JSON", false},
		{"a redirect", "HTTP/1.1 302 Found\r\nLocation: http://example.com/\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}", "BRIDGE_BAD_ANSWER", "status 302 without an error code", false},
		{"no code", "HTTP/1.1 500 X\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}", "BRIDGE_BAD_ANSWER", "status 500 without an error code", false},
		{"not JSON", ok + "Content-Length: 2\r\n\r\n{]", "BRIDGE_BAD_ANSWER", "cannot be read", false},
		{"wrong shape", ok + "Content-Length: 10\r\n\r\n{\"seq\":\"x\"", "BRIDGE_BAD_ANSWER", "cannot be read", false},
	} {
		path := socketPath(t)
		l := listen(t, path)
		requests := make(chan int, 8)
		served := later(func() error {
			for {
				conn, err := l.Accept()
				if err != nil {
					return nil
				}
				buf := make([]byte, 4096)
				n, _ := conn.Read(buf)
				requests <- n
				_, _ = io.WriteString(conn, tc.answer)
				conn.Close()
			}
		})
		c := control.NewClient(path, control.ClientOptions{Timeout: patience})
		_, err := c.AuditHead(context.Background())
		if e := fault.From(err); err == nil || e.Code != tc.code || !strings.Contains(e.Message, tc.says) || e.Retryable != tc.lookIsRetried {
			t.Errorf("%s: %v, want %s %q", tc.name, err, tc.code, tc.says)
		}
		_, err = c.Reload(context.Background())
		if e := fault.From(err); err == nil || e.Code != tc.code || e.Retryable {
			t.Errorf("%s, a change: %v, retryable %v", tc.name, err, e.Retryable)
		}
		if n := len(requests); n != 2 {
			t.Errorf("%s: %d requests for two calls", tc.name, n)
		}
		l.Close()
		within(t, served, "the end")
	}
}

// One connection may carry several requests, as curl does it.
func TestKeepAlive(t *testing.T) {
	f := &fake{}
	s := serve(t, f)
	dials := 0
	tr := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		dials++
		return net.Dial("unix", s.path)
	}}
	defer tr.CloseIdleConnections()
	for range 3 {
		resp, err := (&http.Client{Transport: tr}).Get("http://hbrestd/control/audit/head")
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(resp.Body); err != nil || string(b) != `{"seq":3,"hash":"ab","head":"3:ab"}`+"\n" {
			t.Errorf("%q %v", b, err)
		}
		resp.Body.Close()
	}
	if dials != 1 {
		t.Errorf("%d connections for three requests", dials)
	}
}
