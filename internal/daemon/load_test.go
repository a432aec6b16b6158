package daemon_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/client"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
	"github.com/hyperbolic-gateway/hb-rest/internal/shim"
)

// An agent is an MCP client with a shim of its own in front of the daemon.
type agent struct {
	t       *testing.T
	session *mcp.ClientSession
}

// agent starts a shim that looks for the daemon at addr.
func (w *world) agent(addr string) *agent {
	w.t.Helper()
	u, err := url.Parse("http://" + addr)
	if err != nil {
		w.t.Fatal(err)
	}
	// A shim that has been running for long does not wait for a daemon that is away.
	bridge := client.New(client.Options{URL: u, TokenFiles: []string{w.cfg.TokenPath}, Version: "1.2.3", Started: time.Unix(0, 0)})
	ours, theirs := mcp.NewInMemoryTransports()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = shim.New(shim.Options{Client: bridge, Version: "1.2.3"}).Run(ctx, theirs)
	}()
	s, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(ctx, ours, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = s.Close(); cancel(); <-ended; bridge.Close() })
	return &agent{w.t, s}
}

// call returns the text that a model would see and whether it is an error.
func (a *agent) call(tool, args string) (text string, failed bool, err error) {
	r, err := a.session.CallTool(context.Background(), &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(args)})
	if err != nil {
		return "", false, err
	}
	for _, c := range r.Content {
		if tc, ok := c.(*mcp.TextContent); ok {
			text += tc.Text
		}
	}
	return text, r.IsError, nil
}

func (a *agent) must(tool, args string) string {
	a.t.Helper()
	text, failed, err := a.call(tool, args)
	if err != nil || failed {
		a.t.Fatalf("%s %s: %v %s", tool, args, err, text)
	}
	return text
}

// mirror answers with the number that it was asked for.
func mirror(t *testing.T) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"items":[{"n":%s,"text":"number %s"}]}`, r.URL.Query().Get("n"), r.URL.Query().Get("n"))
	}))
	t.Cleanup(s.Close)
	return s
}

func mirrorDoc(base string) string {
	return `{"schemaVersion":1,"id":"mirror","name":"Mirror","request":{"method":"GET","url":"` + base + `/","query":{"n":"{{n}}"}},
	 "inputSchema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]},
	 "response":{"schemaVersion":1,"select":"$.items","mode":"table","fields":{"N":"n","Text":"text"},"record":{"n":"n"}}}`
}

// 64 callers at once, 20 runs each, while a 65th writes: every answer belongs
// to its question.
func TestManyCallers(t *testing.T) {
	t.Parallel()
	up := mirror(t)
	w := newWorld(t, private, outbound.Options{})
	w.create(mirrorDoc(up.URL))
	const base = 9007199254740993 // past what a float can count
	var wg sync.WaitGroup
	var wrong atomic.Int64
	complain := func(format string, args ...any) {
		if wrong.Add(1) <= 5 {
			t.Errorf(format, args...)
		}
	}
	for caller := range 64 {
		wg.Go(func() {
			for i := range 20 {
				n := base + caller*1000 + i
				a, err := w.send("/wrap/run", fmt.Sprintf(`{"id":"mirror","args":{"n":%d}}`, n))
				want := fmt.Sprintf("## Mirror\n\n| N | Text |\n| --- | --- |\n| %d | number %d |", n, n)
				if err != nil || !a.OK || string(a.Records) != fmt.Sprintf(`[{"n":%d}]`, n) || a.Markdown != want {
					complain("caller %d, run %d: %v %+v", caller, i, err, a)
				}
			}
		})
	}
	wg.Go(func() {
		for i := range 20 {
			doc := get(fmt.Sprintf("other.%d", i), "https://api.example.com/")
			if a, err := w.send("/wrap/wrappers", `{"action":"create","wrapper":`+doc+`}`); err != nil || !a.OK {
				complain("create %d: %v %+v", i, err, a)
			}
		}
	})
	wg.Wait()
	if n := wrong.Load(); n > 0 {
		t.Fatalf("%d answers were wrong", n)
	}
}

// Ten clients of one person, each with its own shim.
func TestTenShims(t *testing.T) {
	t.Parallel()
	up := mirror(t)
	w := newWorld(t, private, outbound.Options{})
	agents := make([]*agent, 10)
	for i := range agents {
		agents[i] = w.agent(w.d.Addr())
	}
	agents[0].must("wrap_create", `{"wrapper":`+mirrorDoc(up.URL)+`}`)
	var wg sync.WaitGroup
	for i, a := range agents {
		wg.Go(func() {
			for k := range 10 {
				n := 9007199254740993 + i*100 + k
				text, failed, err := a.call("wrap_run", fmt.Sprintf(`{"id":"mirror","args":{"n":%d},"format":"json"}`, n))
				if want := fmt.Sprintf(`[{"n":%d}]`, n); err != nil || failed || text != want {
					t.Errorf("shim %d, call %d: %v %q, want %s", i, k, err, text, want)
				}
			}
		})
	}
	wg.Wait()
}

// A restart of the daemon between two calls is invisible, three times over, and
// a call while it is away says how to start it.
func TestRestartUnderALiveShim(t *testing.T) {
	t.Parallel()
	up := mirror(t)
	w := newWorld(t, private, outbound.Options{})
	addr := w.d.Addr()
	w.options.Config.Addr = addr // a real daemon keeps its port too
	a := w.agent(addr)
	a.must("wrap_create", `{"wrapper":`+mirrorDoc(up.URL)+`}`)
	for i := range 3 {
		old := w.tok
		w.stop()
		if i == 0 {
			text, failed, err := a.call("wrap_list", `{}`)
			if err != nil || !failed || !strings.Contains(text, "BRIDGE_UNREACHABLE") || !strings.Contains(text, "`hbrestd run`") {
				t.Errorf("while it is away: %v %v %s", err, failed, text)
			}
		}
		w.start()
		if w.tok == old {
			t.Error("the token stayed the same")
		}
		if got := a.must("wrap_run", `{"id":"mirror","args":{"n":7},"format":"json"}`); got != `[{"n":7}]` {
			t.Errorf("after restart %d: %s", i, got)
		}
	}
}

// A call that is in flight when the daemon is told to stop is answered; one
// that comes after is told why not.
func TestStopAnswersTheCallInFlight(t *testing.T) {
	t.Parallel()
	arrived, release := make(chan struct{}), make(chan struct{})
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(arrived)
		<-release
		fmt.Fprint(w, `{"done":true}`)
	}))
	t.Cleanup(up.Close)
	w := newWorld(t, private, outbound.Options{})
	w.create(get("slow", up.URL))
	type result struct {
		a   *answer
		err error
	}
	got := make(chan result, 1)
	addr := w.d.Addr()
	go func() {
		a, err := w.send("/wrap/run", `{"id":"slow"}`)
		got <- result{a, err}
	}()
	<-arrived
	stopped := make(chan error, 1)
	d := w.d
	go func() { stopped <- d.Stop(context.Background()) }()
	// The stop has begun when a new caller no longer gets in.
	for {
		_, err := http.Get("http://" + addr + "/hello")
		if err != nil {
			break
		}
	}
	close(release)
	r := <-got
	if r.err != nil || !r.a.OK || string(r.a.Records) != `[{"done":true}]` {
		t.Errorf("the call in flight: %v %+v", r.err, r.a)
	}
	if err := <-stopped; err != nil {
		t.Errorf("stop: %v", err)
	}
	w.d = nil
}

// A call that would go on for ever is cut at ten seconds, with a clean error at
// the caller, and the store can be opened again.
func TestStopCutsACallThatHangs(t *testing.T) {
	t.Parallel()
	arrived := make(chan struct{})
	up := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-r.Context().Done()
	}))
	t.Cleanup(up.Close)
	w := newWorld(t, private, outbound.Options{})
	w.create(`{"schemaVersion":1,"id":"hang","name":"H","request":{"method":"GET","url":"` + up.URL + `","timeoutMs":45000}}`)
	u, _ := url.Parse("http://" + w.d.Addr())
	bridge := client.New(client.Options{URL: u, TokenFiles: []string{w.cfg.TokenPath}})
	t.Cleanup(bridge.Close)
	failed := make(chan error, 1)
	go func() {
		_, err := bridge.Run(context.Background(), &api.RunRequest{ID: "hang"})
		failed <- err
	}()
	<-arrived
	start := time.Now()
	d := w.d
	w.d = nil
	err := d.Stop(context.Background())
	if took := time.Since(start); took < 9*time.Second || took > 11*time.Second {
		t.Errorf("the stop took %v, want about 10 s", took)
	}
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("stop: %v", err)
	}
	select {
	case err := <-failed:
		// It may have been carried out, so nobody is invited to repeat it blindly.
		if f := fault.From(err); f == nil || f.Code != "BRIDGE_UNREACHABLE" || f.Retryable || !strings.Contains(f.Hint, "check before you repeat it") {
			t.Errorf("the caller of the call that hangs got %v", err)
		}
	case <-time.After(2 * time.Second):
		t.Error("the caller still waits")
	}
	w.start()
}
