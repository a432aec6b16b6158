package daemon_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/config"
	"github.com/hyperbolic-gateway/hb-rest/internal/daemon"
	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
	"github.com/hyperbolic-gateway/hb-rest/internal/token"
)

// TestMain names a proxy in the environment, as many machines do. Every test of
// this package passes only when nothing asks it: nothing listens there, and a
// dial to it would show in the tests that count dials.
func TestMain(m *testing.M) {
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"} {
		if err := os.Setenv(name, "http://127.0.0.1:9"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// A world is a real daemon on a free port with a home of its own, and a caller
// that speaks to it as curl does.
type world struct {
	t       *testing.T
	cfg     config.Daemon
	options daemon.Options
	d       *daemon.Daemon
	log     *journal
	tok     string
	http    *http.Client
}

// private are the settings of a daemon that may call this machine.
var private = map[string]string{"HB_WRAP_ALLOW_PRIVATE": "1"}

// newWorld starts a daemon with these settings; it is stopped with the test.
func newWorld(t *testing.T, settings map[string]string, seams outbound.Options) *world {
	t.Helper()
	env := map[string]string{"HB_WRAP_HOME": filepath.Join(t.TempDir(), "home"), "HB_WRAP_ADDR": "127.0.0.1:0"}
	for k, v := range settings {
		env[k] = v
	}
	cfg, _, err := config.LoadDaemon(func(name string) (string, bool) { v, ok := env[name]; return v, ok }, "linux")
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, cfg: cfg, log: &journal{}, http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}}
	w.options = daemon.Options{
		Config: cfg, Version: "1.2.3", Outbound: seams,
		Log: slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	w.start()
	t.Cleanup(func() {
		w.http.CloseIdleConnections()
		if w.d != nil {
			w.stop()
		}
	})
	return w
}

// start starts the daemon (again).
func (w *world) start() {
	w.t.Helper()
	d, err := daemon.Start(context.Background(), w.options)
	if err != nil {
		w.t.Fatalf("the daemon did not start: %v", err)
	}
	w.d = d
	if w.tok, err = token.Read(w.cfg.TokenPath); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) stop() {
	w.t.Helper()
	d := w.d
	w.d = nil
	if err := d.Stop(context.Background()); err != nil {
		w.t.Errorf("stop: %v", err)
	}
}

// A journal is what the daemon has logged.
type journal struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.String()
}

// An answer is what the bridge said: the union of a result, a plan and an error.
type answer struct {
	HTTP int    `json:"-"`
	Raw  string `json:"-"` // the body as it came

	OK           bool            `json:"ok"`
	Code         string          `json:"code"`
	Status       *int            `json:"status"`
	Field        string          `json:"field"`
	Retryable    bool            `json:"retryable"`
	Hint         string          `json:"hint"`
	Message      string          `json:"message"`
	RetryAfterMs int64           `json:"retryAfterMs"`
	Details      []api.Detail    `json:"details"`
	Markdown     string          `json:"markdown"`
	Records      json.RawMessage `json:"records"`
	Meta         api.Meta        `json:"meta"`
	Request      *api.Request    `json:"request"`
	Refused      []api.Refusal   `json:"refused"`
	Warnings     []api.Warning   `json:"warnings"`
	Args         json.RawMessage `json:"args"`
	DurationMs   int64           `json:"durationMs"`
	Revision     uint64          `json:"revision"`
}

// status is the upstream's status; 0 if there was none.
func (a *answer) status() int {
	if a.Status == nil {
		return 0
	}
	return *a.Status
}

// post sends a body to a route with the token.
func (w *world) post(path, body string) *answer {
	w.t.Helper()
	a, err := w.send(path, body)
	if err != nil {
		w.t.Fatalf("POST %s: %v", path, err)
	}
	return a
}

// send is post for goroutines.
func (w *world) send(path, body string) (*answer, error) {
	req, err := http.NewRequest(http.MethodPost, "http://"+w.d.Addr()+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+w.tok)
	req.Header.Set("Content-Type", "application/json")
	return w.do(req)
}

func (w *world) do(req *http.Request) (*answer, error) {
	resp, err := w.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	a := &answer{HTTP: resp.StatusCode, Raw: string(raw)}
	if err := json.Unmarshal(raw, a); err != nil {
		return nil, fmt.Errorf("status %d, not JSON: %w: %.200s", resp.StatusCode, err, raw)
	}
	return a, nil
}

// create saves a wrapper, which must work.
func (w *world) create(doc string) {
	w.t.Helper()
	if a := w.change("create", doc); !a.OK {
		w.t.Fatalf("create: %s", a.Raw)
	}
}

func (w *world) change(action, doc string) *answer {
	w.t.Helper()
	return w.post("/wrap/wrappers", `{"action":"`+action+`","wrapper":`+doc+`}`)
}

// run runs a saved wrapper with these arguments.
func (w *world) run(id, args string) *answer {
	w.t.Helper()
	return w.post("/wrap/run", `{"id":"`+id+`","args":`+args+`}`)
}

// once saves a document under its id, runs it and deletes it again.
func (w *world) once(id, doc, args string) *answer {
	w.t.Helper()
	w.create(doc)
	a := w.run(id, args)
	if d := w.post("/wrap/wrappers", `{"action":"delete","id":"`+id+`"}`); !d.OK {
		w.t.Errorf("delete %s: %s", id, d.Raw)
	}
	return a
}

// get makes the document of a GET wrapper without a recipe.
func get(id, url string) string {
	return fmt.Sprintf(`{"schemaVersion":1,"id":%q,"name":%q,"request":{"method":"GET","url":%q}}`, id, id, url)
}

// A trap is a listener that nothing may ever reach.
type trap struct {
	net.Listener
	hits atomic.Int64
}

func newTrap(t *testing.T) *trap {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	tr := &trap{Listener: l}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			tr.hits.Add(1)
			_ = c.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-ended })
	return tr
}

func (tr *trap) port() int { return tr.Addr().(*net.TCPAddr).Port }

// silent fails the test if anything has connected.
func (tr *trap) silent(t *testing.T, what string) {
	t.Helper()
	if n := tr.hits.Swap(0); n != 0 {
		t.Errorf("%s: %d connections were made, want none", what, n)
	}
}

// within fails the test when f takes longer.
func within(t *testing.T, limit time.Duration, what string, f func()) {
	t.Helper()
	start := time.Now()
	f()
	if took := time.Since(start); took > limit {
		t.Errorf("%s took %v, want at most %v", what, took.Round(time.Millisecond), limit)
	}
}
