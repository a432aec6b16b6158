package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/client"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/token"
)

// Each method brings the right value back, numbers with their digits.
func TestCalls(t *testing.T) {
	h := newHome(t)
	h.backend.revision.Store(41)
	h.start()
	c := h.client()
	ctx := t.Context()
	if c.Revision() != 0 || c.ServerVersion() != "" || c.Skew() != "" {
		t.Errorf("before the first call: %d %q %q", c.Revision(), c.ServerVersion(), c.Skew())
	}
	check := func(name string, got any, err error, want any) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
	st, err := c.Status(ctx)
	check("Status", st, err, &api.Status{OK: true, Version: "1.0.0", PID: 1, Wrappers: 2})
	m, err := c.Manifest(ctx, 0)
	check("Manifest", m, err, &api.Manifest{Revision: 41, Wrappers: []api.ManifestEntry{{ID: "a", Name: "A", Method: "GET", Host: "h", Required: []string{"q"}}}})
	doc, err := c.Wrapper(ctx, "a&b=c d/é")
	check("Wrapper", string(doc), err, "{\"id\":\"a\\u0026b=c d/é\"}")
	s, err := c.Secrets(ctx)
	check("Secrets", s, err, &api.SecretList{Secrets: []api.Secret{}, Reason: "not built"})
	three := 3
	run, err := c.Run(ctx, &api.RunRequest{ID: "a", Args: json.RawMessage(`{"id":9007199254740993,"p":30.00,"s":"<&>"}`), MaxPages: &three})
	status := 200
	check("Run", run, err, &api.RunResult{
		OK: true, Status: &status, Wrapper: api.WrapperRef{ID: "a", Name: "A"},
		Records: json.RawMessage(`[{"id":9007199254740993,"p":30.00,"s":"<&>"}]`),
	})
	plan, err := c.Test(ctx, &api.TestRequest{ID: "a", Args: json.RawMessage(`{"x":1.0}`)})
	check("Test", plan, err, &api.TestResult{Plan: &api.Plan{
		OK: true, DryRun: true, Wrapper: api.WrapperRef{ID: "a"}, Args: json.RawMessage(`{"x":1.0}`),
		Request: api.Request{Method: "GET", URL: "https://a.example", Headers: json.RawMessage(`{}`)},
	}})
	no, md := false, "live"
	live, err := c.Test(ctx, &api.TestRequest{ID: "a", DryRun: &no})
	check("Test live", live, err, &api.TestResult{Run: &api.RunResult{OK: true, Markdown: &md, Wrapper: api.WrapperRef{ID: "a"}}})
	d, err := c.Derive(ctx, &api.DeriveRequest{Sample: json.RawMessage(`[30.00]`)})
	check("Derive", d, err, &api.DeriveResult{OK: true, Source: "sample", Recipe: json.RawMessage(`[30.00]`)})
	ch, err := c.Change(ctx, &api.ChangeRequest{Action: "create", ID: "a", Wrapper: json.RawMessage(`{"n":1e2}`)})
	check("Change", ch, err, &api.ChangeResult{OK: true, ID: "a", Wrapper: json.RawMessage(`{"n":1e2}`), Revision: 42})
	if c.Revision() != 42 || c.ServerVersion() != "1.0.0" || c.Skew() != "" {
		t.Errorf("after: %d %q %q", c.Revision(), c.ServerVersion(), c.Skew())
	}
	if n := h.opened.Load(); n != 1 && client.CanPeek {
		t.Errorf("%d connections for calls one after the other, want 1", n)
	}
}

func TestSkew(t *testing.T) {
	h := newHome(t)
	h.start()
	c := h.clientWith(func(o *client.Options) { o.Version = "0.9.0" })
	if _, err := c.Status(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := "hb-rest is version 0.9.0, but hbrestd is 1.0.0: update both to the same version, then restart both"; c.Skew() != want {
		t.Errorf("%q, want %q", c.Skew(), want)
	}
}

// A failure comes back as the fault that the daemon made, with the rest of its
// body within reach.
func TestFailures(t *testing.T) {
	h := newHome(t)
	h.start()
	c := h.client()
	made := fault.New("UPSTREAM_RATE_LIMITED", "the API answered 429: slow down").With(fault.Status(429), fault.Field("upstream:email"),
		fault.RetryAfter(5*time.Second), fault.Hint("Wait 5 s."), fault.Retryable(true))
	request := &api.Request{Method: "GET", URL: "https://a.example/x", Headers: json.RawMessage(`{}`)}
	h.backend.fail = &api.CallError{Err: made, Wrapper: &api.WrapperRef{ID: "a", Name: "A"}, Request: request, Duration: 184 * time.Millisecond}
	_, err := c.Run(t.Context(), &api.RunRequest{ID: "a"})
	got, ok := err.(*fault.Error)
	if !ok {
		t.Fatalf("%T %v", err, err)
	}
	type plain struct {
		Code                 fault.Code
		Message, Field, Hint string
		Status               int
		Retryable            bool
		RetryAfter           time.Duration
		Details              []fault.Detail
	}
	flat := func(e *fault.Error) plain {
		return plain{e.Code, e.Message, e.Field, e.Hint, e.Status, e.Retryable, e.RetryAfter, append([]fault.Detail{}, e.Details...)}
	}
	if d := cmp.Diff(flat(made), flat(got)); d != "" {
		t.Errorf("fault (-want +got):\n%s", d)
	}
	var f *client.Failure
	if !errors.As(err, &f) {
		t.Fatal("no *client.Failure within")
	}
	if d := cmp.Diff([]any{200, &api.WrapperRef{ID: "a", Name: "A"}, request, int64(184)}, []any{f.HTTP, f.API.Wrapper, f.API.Request, f.API.DurationMs}); d != "" {
		t.Errorf("failure (-want +got):\n%s", d)
	}

	invalid := fault.New("ARGS_INVALID", "two problems").With(fault.Details([]fault.Detail{{Field: "args.a", Code: "TYPE", Message: "m", Hint: "h"}, {Field: "args.b", Code: "REQUIRED", Message: "n"}}))
	h.backend.fail = invalid
	_, err = c.Run(t.Context(), &api.RunRequest{ID: "a"})
	if got, ok := err.(*fault.Error); !ok || cmp.Diff(flat(invalid), flat(got)) != "" {
		t.Errorf("%v", cmp.Diff(invalid, err))
	}
	if !errors.As(err, &f) || f.HTTP != 422 {
		t.Errorf("HTTP status %d, want 422", f.HTTP)
	}
}

// What cannot be sent is refused here.
func TestUnsendable(t *testing.T) {
	h := newHome(t)
	h.start()
	c := h.client()
	if _, err := c.Run(t.Context(), &api.RunRequest{ID: "a", Args: json.RawMessage(`{broken`)}); code(t, err) != "BAD_JSON" {
		t.Error(err)
	}
	sample := func(n int) json.RawMessage { return json.RawMessage(`"` + strings.Repeat("x", n-2) + `"`) }
	over := len(`{"sample":}`) + 1 // and the newline
	if _, err := c.Derive(t.Context(), &api.DeriveRequest{Sample: sample(api.MaxBody - over)}); err != nil {
		t.Errorf("at the limit: %v", err)
	}
	if _, err := c.Derive(t.Context(), &api.DeriveRequest{Sample: sample(api.MaxBody - over + 1)}); code(t, err) != "BODY_TOO_LARGE" {
		t.Errorf("one over: %v", err)
	}
}

func TestBridgeURLs(t *testing.T) {
	h := newHome(t)
	good := []string{"http://127.0.0.1:1", "http://127.0.0.1:1/", "http://[::1]:1", "http://127.0.0.2:1"}
	bad := []string{
		"http://localhost:4111", "https://127.0.0.1:4111", "http://10.0.0.1:4111", "http://example.com", "http://127.0.0.1:0", "http://127.0.0.1:99999",
		"http://user:pw@127.0.0.1:4111", "http://127.0.0.1:4111/wrap", "http://127.0.0.1:4111?x=1", "http://127.0.0.1:4111#x", "unix:///run/x.sock", "//127.0.0.1:4111",
		"http://[::ffff:127.0.0.1]:4111", "http://0.0.0.0:4111", "http://[::]:4111", "http://127.1:4111", "http://[fe80::1%25lo]:4111",
	}
	try := func(u *url.URL) error {
		c := h.clientWith(func(o *client.Options) { o.URL = u })
		_, err := c.Status(t.Context())
		return err
	}
	for _, s := range good {
		u, err := url.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		if err := try(u); code(t, err) != "TOKEN_FILE_MISSING" { // the URL was no obstacle
			t.Errorf("%s: %v", s, err)
		}
	}
	for _, s := range bad {
		u, err := url.Parse(s)
		if err != nil {
			continue // nobody can hand it over
		}
		err = try(u)
		if code(t, err) != "BRIDGE_UNREACHABLE" || strings.Contains(err.Error(), "pw") || err.(*fault.Error).Retryable {
			t.Errorf("%s: %v", s, err)
		}
	}
	if err := try(nil); code(t, err) != "BRIDGE_UNREACHABLE" {
		t.Errorf("no URL: %v", err)
	}
}

// A daemon that is not there is named with its address and the command that
// starts it; once it is there, the same client works.
func TestDaemonDown(t *testing.T) {
	h := newHome(t)
	h.start()
	h.stop()
	c := h.client()
	for range 2 {
		_, err := c.Run(t.Context(), &api.RunRequest{ID: "a"})
		if code(t, err) != "BRIDGE_UNREACHABLE" || !strings.Contains(err.Error(), h.addr) {
			t.Errorf("%v", err)
		}
		if f := err.(*fault.Error); !strings.Contains(f.Hint, "`hbrestd run`") || !f.Retryable {
			t.Errorf("hint %q, retryable %v", f.Hint, f.Retryable)
		}
	}
	h.start()
	if _, err := c.Run(t.Context(), &api.RunRequest{ID: "a"}); err != nil {
		t.Errorf("after the start: %v", err)
	}
	if n := h.backend.runs.Load(); n != 1 {
		t.Errorf("%d runs, want 1", n)
	}
}

// The first candidate that exists is read; one that exists but is unsafe is an
// error and not a reason to look further.
func TestTokenFiles(t *testing.T) {
	h := newHome(t)
	h.start()
	missing := filepath.Join(t.TempDir(), "none", "token")
	unsafe := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(unsafe, []byte(token.New()), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(unsafe, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		files []string
		want  string // a part of the error; empty: works
	}{
		{[]string{h.file}, ""},
		{[]string{missing, h.file}, ""},
		{[]string{h.file, unsafe}, ""},
		{[]string{missing}, missing},
		{[]string{missing, missing + "2"}, missing + " or " + missing + "2"},
		{[]string{unsafe, h.file}, unsafe},
		{nil, "no token file is configured"},
	} {
		_, err := h.clientWith(func(o *client.Options) { o.TokenFiles = tt.files }).Status(t.Context())
		if tt.want == "" {
			if err != nil {
				t.Errorf("%v: %v", tt.files, err)
			}
			continue
		}
		if code(t, err) != "TOKEN_FILE_MISSING" || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: %v", tt.files, err)
		}
	}
}

// What is said about a token file that does not serve is what mends it, for the
// caller of a tool and for a person at `hbrestd status` alike.
func TestTokenFileWords(t *testing.T) {
	here, other := newHome(t), newHome(t)
	here.start()
	other.renew()
	none := filepath.Join(t.TempDir(), "it's not", "token")
	open := filepath.Join(t.TempDir(), "it's open")
	link := filepath.Join(t.TempDir(), "link")
	if err := os.WriteFile(open, []byte(token.New()), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(here.file, link); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name          string
		files         []string
		code          fault.Code
		message, hint string
		unixOnly      bool
	}{
		{
			"of another home",
			[]string{other.file},
			"BRIDGE_BAD_ANSWER",
			"what answers on " + here.addr + " does not know the token in " + other.file +
				": the file is of another home or an earlier start, or another program holds the port",
			"Give HB_WRAP_HOME or HB_WRAP_TOKEN_FILE the value that the running hbrestd goes by, or choose another port: HB_WRAP_ADDR for hbrestd, HB_WRAP_URL for hb-rest.", false,
		},
		{
			"none",
			[]string{none},
			"TOKEN_FILE_MISSING",
			"hbrestd is not running, or keeps its token elsewhere: no token file at " + none,
			"Start it with `hbrestd service start` or `hbrestd run`, then repeat the call. If it runs, set HB_WRAP_HOME or HB_WRAP_TOKEN_FILE as it has them; `hbrestd paths` prints the places.", false,
		},
		{
			"none of two",
			[]string{none, none + "2"},
			"TOKEN_FILE_MISSING",
			"hbrestd is not running, or keeps its token elsewhere: no token file at " + none + " or " + none + "2",
			"Start it with `hbrestd service start` or `hbrestd run`, then repeat the call. If it runs, set HB_WRAP_HOME or HB_WRAP_TOKEN_FILE as it has them; `hbrestd paths` prints the places.", false,
		},
		{
			"open to others",
			[]string{open},
			"TOKEN_FILE_MISSING",
			"the token file " + open + " cannot be used: the mode of the file is 0644, which lets other users in; make it 600 with chmod",
			"Run chmod 600 '" + strings.ReplaceAll(open, "'", `'\''`) + "', then repeat the call.", true,
		},
		{
			"a link",
			[]string{link},
			"TOKEN_FILE_MISSING",
			"the token file " + link + " cannot be used: it is a symbolic link, which is never followed",
			"Point HB_WRAP_TOKEN_FILE at the file itself (`hbrestd paths` prints it), or restart hbrestd, which writes it anew.", false,
		},
	} {
		if tt.unixOnly && runtime.GOOS == "windows" {
			continue // files have no mode bits there
		}
		_, err := here.clientWith(func(o *client.Options) { o.TokenFiles = tt.files }).Status(t.Context())
		f := fault.From(err)
		if f.Code != tt.code || f.Message != fault.Shorten(tt.message, fault.MaxMessage) || f.Hint != tt.hint {
			t.Errorf("%s: %s\n%s\n%s", tt.name, f.Code, f.Message, f.Hint)
		}
		if strings.Contains(f.Hint, "hbrestd status") {
			t.Errorf("%s: status sends its reader to status: %s", tt.name, f.Hint)
		}
	}
}

// A path too long to show is shown from its end, and the reason after it stays.
func TestLongTokenPath(t *testing.T) {
	h := newHome(t)
	h.start()
	long := filepath.Join(t.TempDir(), strings.Repeat("d", 200), strings.Repeat("e", 200), "wrap", "token")
	if err := os.MkdirAll(filepath.Dir(long), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := token.Write(long, token.New()); err != nil {
		t.Fatal(err)
	}
	_, err := h.clientWith(func(o *client.Options) { o.TokenFiles = []string{long} }).Status(t.Context())
	if f := fault.From(err); f.Code != "BRIDGE_BAD_ANSWER" || !strings.Contains(f.Message, "e"+filepath.Join("/wrap", "token")+": the file is") || !strings.HasSuffix(f.Message, "another program holds the port") {
		t.Errorf("%v", f)
	}
	_, err = h.clientWith(func(o *client.Options) { o.TokenFiles = []string{long + "1", long + "2"} }).Status(t.Context())
	if f := fault.From(err); f.Code != "TOKEN_FILE_MISSING" || !strings.Contains(f.Message, "token1 or …") || !strings.HasSuffix(f.Message, "token2") {
		t.Errorf("%v", f)
	}
}

// In the first two seconds of the process a daemon that is being started is
// waited for: no token file yet, or nobody listening yet.
func TestStartTogether(t *testing.T) {
	for _, fileFirst := range []bool{false, true} {
		h := newHome(t)
		h.addr = closedAddr(t)
		if fileFirst { // of an earlier start
			if err := token.Write(h.file, token.New()); err != nil {
				t.Fatal(err)
			}
		}
		started := time.Now()
		var looks atomic.Int64
		c := h.clientWith(func(o *client.Options) {
			o.Started = started
			o.Now = func() time.Time {
				if looks.Add(1) == 3 { // the client has found nothing twice
					h.start()
				}
				return started.Add(time.Second)
			}
		})
		if _, err := c.Run(t.Context(), &api.RunRequest{ID: "a"}); err != nil {
			t.Errorf("file first %v: %v", fileFirst, err)
		}
		if n := h.backend.runs.Load(); n != 1 {
			t.Errorf("file first %v: %d runs, want 1", fileFirst, n)
		}
	}
}

// At two seconds the waiting ends.
func TestStartGraceEnds(t *testing.T) {
	h := newHome(t)
	h.addr = closedAddr(t)
	started := time.Now()
	var looks atomic.Int64
	c := h.clientWith(func(o *client.Options) {
		o.Started = started
		o.Now = func() time.Time { // 1.9 s, then 2.0 s after the start
			return started.Add(1800*time.Millisecond + time.Duration(looks.Add(1))*100*time.Millisecond)
		}
	})
	if _, err := c.Status(t.Context()); code(t, err) != "TOKEN_FILE_MISSING" {
		t.Errorf("%v", err)
	}
	if looks.Load() != 2 {
		t.Errorf("looked %d times, want 2", looks.Load())
	}
	// The call's own time can be over first; the reason is still told.
	c = h.clientWith(func(o *client.Options) { o.Started = time.Now(); o.Timeout = 100 * time.Millisecond })
	if _, err := c.Status(t.Context()); code(t, err) != "TOKEN_FILE_MISSING" {
		t.Errorf("%v", err)
	}
}

// A caller that cancels, or whose time is over, ends the work in the daemon.
func TestCancelAndTimeout(t *testing.T) {
	for _, tt := range []struct {
		name    string
		want    fault.Code
		timeout time.Duration
		ctx     func(context.Context) (context.Context, context.CancelFunc)
		cancel  bool
	}{
		{"cancelled", "CALL_CANCELLED", time.Minute, context.WithCancel, true},
		{"own limit", "BRIDGE_TIMEOUT", 150 * time.Millisecond, context.WithCancel, false},
		{"caller's limit", "BRIDGE_TIMEOUT", time.Minute, func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 150*time.Millisecond)
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHome(t)
			h.backend.arrived, h.backend.gone = make(chan struct{}), make(chan error, 1)
			h.start()
			c := h.clientWith(func(o *client.Options) { o.Timeout = tt.timeout })
			ctx, cancel := tt.ctx(t.Context())
			defer cancel()
			done := make(chan error, 1)
			go func() { _, err := c.Run(ctx, &api.RunRequest{ID: "a"}); done <- err }()
			<-h.backend.arrived
			if tt.cancel {
				cancel()
			}
			err := <-done
			if code(t, err) != tt.want {
				t.Errorf("%v, want %s", err, tt.want)
			}
			if tt.want == "BRIDGE_TIMEOUT" && err.(*fault.Error).Retryable {
				t.Error("a run that may still have its effect is called retryable")
			}
			select {
			case <-h.backend.gone:
			case <-time.After(10 * time.Second):
				t.Error("the daemon was not told")
			}
			if n := h.backend.runs.Load(); n != 1 {
				t.Errorf("%d runs, want 1", n)
			}
		})
	}
}

// Many callers at once share the client.
func TestConcurrentCalls(t *testing.T) {
	h := newHome(t)
	h.start()
	c := h.client()
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for j := range 25 {
				args := fmt.Sprintf(`{"n":%d}`, i*1000+j)
				r, err := c.Run(t.Context(), &api.RunRequest{ID: "a", Args: json.RawMessage(args)})
				if err != nil || string(r.Records) != "["+args+"]" {
					t.Errorf("%s: %v %v", args, r, err)
					return
				}
			}
		})
	}
	wg.Wait()
	if n := h.backend.runs.Load(); n != 16*25 {
		t.Errorf("%d runs, want %d", n, 16*25)
	}
}

// IPv6 loopback works the same way.
func TestIPv6(t *testing.T) {
	if l, err := net.Listen("tcp", "[::1]:0"); err != nil {
		t.Skip("this machine has no IPv6 loopback:", err)
	} else {
		l.Close()
	}
	h := newHome(t)
	h.addr = "[::1]:0"
	h.start()
	if _, err := h.client().Status(t.Context()); err != nil {
		t.Error(err)
	}
}

func BenchmarkRoundTrip(b *testing.B) {
	h := newHome(b)
	h.start()
	c := h.client()
	q := &api.RunRequest{ID: "a", Args: json.RawMessage(`{"q":"` + strings.Repeat("x", 1000) + `"}`)}
	if _, err := c.Run(b.Context(), q); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Run(b.Context(), q); err != nil {
			b.Fatal(err)
		}
	}
}
