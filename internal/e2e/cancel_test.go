//go:build unix

package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
)

// A wire is a hb-rest that is spoken to line by line.
type wire struct {
	t    *testing.T
	in   io.WriteCloser
	out  *bufio.Scanner
	next int
}

func newWire(t *testing.T, p *process, home string) *wire {
	t.Helper()
	dir, err := build()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(dir, "hb-rest"))
	cmd.Env = []string{"HOME=" + home, "HB_WRAP_TOKEN_FILE=" + filepath.Join(home, "wrap", "token"), "HB_WRAP_URL=" + p.url, "HB_WRAP_MAX_TOOLS=0"}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	w := &wire{t: t, in: in, out: bufio.NewScanner(out)}
	w.wait(w.request("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}`))
	w.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return w
}

func (w *wire) say(line string) {
	w.t.Helper()
	if _, err := io.WriteString(w.in, line+"\n"); err != nil {
		w.t.Fatal(err)
	}
}

// request sends a request and returns its id.
func (w *wire) request(method, params string) int {
	w.t.Helper()
	w.next++
	w.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, w.next, method, params))
	return w.next
}

func (w *wire) call(id string) int {
	w.t.Helper()
	return w.request("tools/call", fmt.Sprintf(`{"name":"wrap_run","arguments":{"id":%q}}`, id))
}

func (w *wire) cancel(request int) {
	w.t.Helper()
	w.say(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d,"reason":"the user pressed escape"}}`, request))
}

// wait reads until the answer to a request; others and notices go by.
func (w *wire) wait(request int) string {
	w.t.Helper()
	for w.out.Scan() {
		var m struct{ ID int }
		if json.Unmarshal(w.out.Bytes(), &m) == nil && m.ID == request {
			return w.out.Text()
		}
	}
	w.t.Fatalf("no answer to %d: %v", request, w.out.Err())
	return ""
}

// A client that cancels a tool call ends the request at the API, whatever stage
// it is in: waiting for the answer, half-way through it, or in the pause before
// another try. The session and other calls go on.
func TestCancelReachesTheAPI(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	arrived, gone := make(chan string, 9), make(chan string, 9)
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/limited":
			w.Header().Set("Retry-After", "20")
			w.WriteHeader(http.StatusTooManyRequests)
			arrived <- r.URL.Path
			return
		case "/half":
			_, _ = io.WriteString(w, `{"n":`)
			_ = http.NewResponseController(w).Flush()
		case "/quick":
			_, _ = io.WriteString(w, `{"n":1}`)
			return
		}
		arrived <- r.URL.Path
		<-r.Context().Done()
		gone <- r.URL.Path
	}))
	t.Cleanup(up.Close)
	p := startDaemon(t, home, "HB_WRAP_ALLOW_PRIVATE=1")
	for _, id := range []string{"stall", "half", "limited", "quick"} {
		doc := fmt.Sprintf(`{"schemaVersion":1,"id":%q,"request":{"method":"GET","url":"%s/%s"}}`, id, up.URL, id)
		if _, err := p.client.Change(t.Context(), &api.ChangeRequest{Action: "create", Wrapper: []byte(doc)}); err != nil {
			t.Fatal(err)
		}
	}
	w := newWire(t, p, home)
	next := func(c chan string, want string) {
		t.Helper()
		select {
		case got := <-c:
			if got != want {
				t.Errorf("%s, want %s", got, want)
			}
		case <-time.After(5 * time.Second):
			t.Fatalf("no sign of %s", want)
		}
	}
	for _, id := range []string{"stall", "half"} {
		call := w.call(id)
		next(arrived, "/"+id)
		begin := time.Now()
		w.cancel(call)
		next(gone, "/"+id)
		if took := time.Since(begin); took > time.Second {
			t.Errorf("%s: the API noticed after %v", id, took)
		}
	}
	call := w.call("limited")
	next(arrived, "/limited")
	w.cancel(call)
	if answer := w.wait(w.call("quick")); !strings.Contains(answer, `\"n\":1`) {
		t.Errorf("after it: %s", answer)
	}
	// The daemon stops at once when nothing is under way: no pause is slept out.
	begin := time.Now()
	stop(t, p)
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("hbrestd took %v to stop", took)
	}
	if len(arrived) > 0 {
		t.Error("the cancelled call was tried again")
	}
}

// A fickle API breaks connections, before or after it has read the request.
type fickle struct {
	mu   sync.Mutex // guards the rest
	keys []string   // Idempotency-Key of each request that was read to its end
}

// newFickle serves until the test ends. mode: "before" closes after a few bytes
// of the header, "after" when all is read, "half" within the answer.
func newFickle(t *testing.T, mode string) (*fickle, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &fickle{}
	var wg sync.WaitGroup
	t.Cleanup(func() { _ = l.Close(); wg.Wait() })
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { f.serve(c.(*net.TCPConn), mode) })
		}
	})
	return f, "http://" + l.Addr().String()
}

func (f *fickle) serve(c *net.TCPConn, mode string) {
	defer c.Close()
	_ = c.SetLinger(0) // closing is a reset
	if mode == "before" {
		_, _ = io.ReadFull(c, make([]byte, 5))
		return
	}
	r, err := http.ReadRequest(bufio.NewReader(c))
	if err != nil {
		return
	}
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return
	}
	f.mu.Lock()
	f.keys = append(f.keys, r.Header.Get("Idempotency-Key"))
	f.mu.Unlock()
	if mode == "half" {
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{\"n\"")
	}
}

// Whatever an API does to the connection: a write without a key reaches it once
// at most, one with a key three times at most and with the same key, a read and
// an idempotent write three times. Each try has its own two-sided audit row.
func TestTriesAndTheirRows(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	p := startDaemon(t, home, "HB_WRAP_ALLOW_PRIVATE=1")
	var wg sync.WaitGroup
	type seen struct {
		what  string
		api   *fickle
		tries int // that the API reads
		rows  int
	}
	var all []seen
	for _, mode := range []string{"before", "after", "half"} {
		for _, c := range []struct {
			name, method, key string
			tries             int
		}{{"get", "GET", "", 3}, {"put", "PUT", "", 3}, {"post", "POST", "", 1}, {"patch", "PATCH", "", 1}, {"keyed", "POST", `,"idempotencyKey":{"header":"Idempotency-Key"}`, 3}} {
			f, url := newFickle(t, mode)
			id := mode + "." + c.name
			body := ""
			if c.method != "GET" {
				body = `,"body":{"n":1}`
			}
			doc := fmt.Sprintf(`{"schemaVersion":1,"id":%q,"request":{"method":%q,"url":"%s/"%s%s}}`, id, c.method, url, body, c.key)
			if _, err := p.client.Change(t.Context(), &api.ChangeRequest{Action: "create", Wrapper: []byte(doc)}); err != nil {
				t.Fatal(err)
			}
			s := seen{id, f, c.tries, c.tries}
			if mode == "before" {
				s.tries = 0
			}
			all = append(all, s)
			wg.Go(func() {
				if r, err := p.client.Run(t.Context(), &api.RunRequest{ID: id}); err == nil {
					t.Errorf("%s: %+v", id, r)
				}
			})
		}
	}
	wg.Wait()
	rows := map[string][]string{}
	for _, r := range auditRows(t, home, 0) {
		if r.Kind == "run" {
			rows[r.Wrapper] = append(rows[r.Wrapper], strings.Join(strings.Split(r.Call, "-")[1:], "-")+" "+r.Error)
		}
	}
	for _, s := range all {
		s.api.mu.Lock()
		keys := s.api.keys
		s.api.mu.Unlock()
		if len(keys) != s.tries || len(slices.Compact(slices.Clone(keys))) > 1 || strings.HasSuffix(s.what, "keyed") == slices.Contains(keys, "") && len(keys) > 0 {
			t.Errorf("%s: read %d times with keys %q, want %d", s.what, len(keys), keys, s.tries)
		}
		code := "UPSTREAM_CONNECT"
		if strings.HasPrefix(s.what, "half") {
			code = "RESPONSE_INCOMPLETE"
		}
		want := []string{" " + code, "try2 " + code, "try3 " + code}[:s.rows]
		if got := rows[s.what]; !slices.Equal(got, want) {
			t.Errorf("%s: audit rows %q, want %q", s.what, got, want)
		}
	}
	if log := p.stderr.String(); bytes.Contains([]byte(log), []byte("level=ERROR")) {
		t.Errorf("the log:\n%s", log)
	}
}
