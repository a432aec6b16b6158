package bridge_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/bridge"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/token"
)

// testToken is the bridge token of these tests.
var testToken = strings.Repeat("0123456789abcdef", 4)

// A fake is a backend that writes down what it is asked and answers the same
// things always. Ids that start with "!" choose a failure.
type fake struct {
	mu       sync.Mutex
	calls    []string
	revision int               // how often Revision was asked
	hold     chan struct{}     // Run waits for it, or for the caller to go
	arrived  chan struct{}     // Run says so here before it waits
	gone     chan error        // what ended that wait
	manifest *api.Manifest     // nil: one wrapper
	secrets  *api.SecretList   // nil: unavailable
	plan     *api.TestResult   // nil: a plan
	document json.RawMessage   // nil: a small one
	run      *api.RunResult    // nil: one record
	derive   *api.DeriveResult // nil: one field
	change   *api.ChangeResult // nil: a saved one
}

func (f *fake) note(name string, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, name+" "+string(text))
}

// asked returns the calls so far, Revision included.
func (f *fake) asked() (calls []string, revision int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.calls...), f.revision
}

func (f *fake) Status(context.Context) (*api.Status, error) {
	f.note("Status", nil)
	return &api.Status{
		OK: true, Version: "1.2.3", PID: 4321, Address: "127.0.0.1:4111", Home: "/home/ada/.local/state/hbrestd",
		TokenFile: "/home/ada/.local/state/hbrestd/wrap/token", StartedAt: "2026-11-30T08:00:00Z", Wrappers: 2, Revision: 7, CallTimeout: 50000,
	}, nil
}

func (f *fake) Manifest(_ context.Context, after uint64) (*api.Manifest, error) {
	f.note("Manifest", after)
	if f.manifest != nil {
		return f.manifest, nil
	}
	return &api.Manifest{Revision: 7, Wrappers: []api.ManifestEntry{{
		ID: "city.weather", Name: "Weather", Method: "GET",
		Host: "api.example.com", Required: []string{"city"},
	}}}, nil
}

func (f *fake) Select(ctx context.Context, q *api.ManifestQuery) (*api.Manifest, error) {
	f.note("Select", q)
	return &api.Manifest{Revision: 7, Total: 3, Matched: 1, Mark: "era.7", Since: q.Since, Removed: []string{"gone"}}, nil
}

func (f *fake) Wrapper(_ context.Context, id string) (json.RawMessage, error) {
	f.note("Wrapper", id)
	if id == "missing" {
		return nil, fault.New("WRAPPER_NOT_FOUND", "no wrapper %q", id).With(fault.Field("id"))
	}
	if f.document != nil {
		return f.document, nil
	}
	return json.RawMessage(`{"schemaVersion":1,"id":"city.weather","name":"<Weather>","big":9007199254740993}`), nil
}

func (f *fake) Secrets(context.Context) (*api.SecretList, error) {
	f.note("Secrets", nil)
	if f.secrets != nil {
		return f.secrets, nil
	}
	return &api.SecretList{Reason: "credentials are not built yet"}, nil
}

func (f *fake) Audit(_ context.Context, limit int) (*api.AuditPage, error) {
	f.note("Audit", limit)
	return &api.AuditPage{Rows: []api.AuditRow{{
		Seq: 12, Time: "2026-11-30T12:00:00.123Z", Kind: "run", Call: "0123456789abcdef", Wrapper: "city.weather",
		Method: "GET", Host: "api.example.com", Status: 200, Bytes: 512, DurationMs: 42,
	}}, Next: 12}, nil
}

func (f *fake) Recall(_ context.Context, q *api.RecallRequest) (*api.RecallResult, error) {
	f.note("Recall", q)
	switch q.Query {
	case "!busy":
		return nil, fault.New("CORTEX_TIMEOUT", "time ran out while searching the index")
	case "nothing":
		return &api.RecallResult{OK: true, Note: "the index is empty"}, nil
	}
	return &api.RecallResult{OK: true, Documents: []api.RecallDocument{{
		Wrapper: "city.weather", Key: "oslo", Title: "Oslo & <b>", URL: "https://api.example.com/w?city=Oslo&days=3",
		ReadAt: "2026-11-30T08:00:00Z", Age: 3600, Heading: "Wind > Gusts", Snippet: "up to **14 m/s**", Score: 1.5,
	}}}, nil
}

func (f *fake) Run(ctx context.Context, q *api.RunRequest) (*api.RunResult, error) {
	f.note("Run", q)
	if f.hold != nil {
		close(f.arrived)
		select {
		case <-f.hold:
		case <-ctx.Done():
			f.gone <- ctx.Err()
			return nil, ctx.Err()
		}
	}
	switch q.ID {
	case "!limited":
		e := fault.New("UPSTREAM_RATE_LIMITED", "the API answered 429: slow down").With(fault.Status(429), fault.RetryAfter(4200*time.Millisecond))
		return nil, &api.CallError{
			Err: e, Wrapper: &api.WrapperRef{ID: "city.weather", Name: "Weather"},
			Request: &api.Request{Method: "GET", URL: "https://api.example.com/w?city=Oslo", Headers: json.RawMessage(`{}`)}, Duration: 184 * time.Millisecond,
		}
	case "!args":
		return nil, fault.New("ARGS_INVALID", "args.city: is required").With(fault.Details([]fault.Detail{
			{Field: "args.city", Code: "REQUIRED", Message: "is required"}, {Field: "args.days", Code: "TYPE", Message: "must be integer", Hint: "Send 3."},
		}))
	case "!plain":
		return nil, errors.New("open /secret/path: permission denied")
	case "!panic":
		panic("a bug with a secret in it")
	case "!badanswer":
		return &api.RunResult{OK: true, Records: json.RawMessage(`[broken`)}, nil
	case "!badrequest":
		return nil, &api.CallError{Err: fault.New("UPSTREAM_DNS", "no such host"), Request: &api.Request{Headers: json.RawMessage(`{broken`)}}
	}
	if f.run != nil {
		return f.run, nil
	}
	status, md := 200, "| City |\n| --- |\n| Oslo & <b> |\n"
	return &api.RunResult{
		OK: true, Status: &status, DurationMs: 42, Wrapper: api.WrapperRef{ID: q.ID, Name: "Weather"}, Markdown: &md,
		Records: json.RawMessage(`[{"id":9007199254740993,"price":30.00}]`), Meta: api.Meta{Mode: "table", Selected: 1, Rendered: 1},
	}, nil
}

func (f *fake) Test(_ context.Context, q *api.TestRequest) (*api.TestResult, error) {
	f.note("Test", q)
	if f.plan != nil {
		return f.plan, nil
	}
	return &api.TestResult{Plan: &api.Plan{
		OK: true, DryRun: true, Wrapper: api.WrapperRef{ID: "city.weather", Name: "Weather"}, Args: json.RawMessage(`{"city":"Oslo"}`),
		Request: api.Request{Method: "GET", URL: "https://api.example.com/w?city=Oslo&q=<a>", Headers: json.RawMessage(`{}`)},
	}}, nil
}

func (f *fake) Derive(_ context.Context, q *api.DeriveRequest) (*api.DeriveResult, error) {
	f.note("Derive", q)
	if f.derive != nil {
		return f.derive, nil
	}
	return &api.DeriveResult{OK: true, Source: "sample", Recipe: json.RawMessage(`{"schemaVersion":1,"select":"$"}`)}, nil
}

func (f *fake) Change(_ context.Context, q *api.ChangeRequest) (*api.ChangeResult, error) {
	f.note("Change", q)
	if f.change != nil {
		return f.change, nil
	}
	return &api.ChangeResult{OK: true, ID: "city.weather", Wrapper: q.Wrapper, Revision: 8}, nil
}

func (f *fake) Revision() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.revision++
	return 7
}

// A served bridge listens on a free loopback port.
type served struct {
	backend *fake
	holder  *token.Holder
	addr    string
	port    string
	log     *syncBuffer
}

func serve(t testing.TB, f *fake) *served {
	t.Helper()
	return serveOn(t, f, "127.0.0.1:0")
}

func serveOn(t testing.TB, f *fake, addr string) *served {
	t.Helper()
	return serveWith(t, f, addr, func(*http.Server) {})
}

func serveWith(t testing.TB, f *fake, addr string, change func(*http.Server)) *served {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	s := &served{backend: f, holder: &token.Holder{}, addr: l.Addr().String(), log: &syncBuffer{}}
	_, s.port, _ = net.SplitHostPort(s.addr)
	s.holder.Set(testToken)
	srv := bridge.Server(bridge.New(f, s.holder, bridge.Options{
		Version: "1.2.3",
		Log:     slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}))
	change(srv)
	done := make(chan struct{})
	go func() { defer close(done); _ = srv.Serve(l) }()
	t.Cleanup(func() { srv.Close(); <-done })
	return s
}

// raw sends bytes on a new connection and returns the one answer to them.
func (s *served) raw(t testing.TB, request string) (*http.Response, string) {
	t.Helper()
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	// The peer may refuse, and close, before it has read everything.
	go func() { _, _ = io.WriteString(conn, request) }()
	method, _, _ := strings.Cut(request, " ")
	resp, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		t.Fatalf("%.200q: %v", request, err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(b)
}

// call is a well-behaved request with the token.
func (s *served) call(t testing.TB, method, target, body string) (*http.Response, string) {
	t.Helper()
	return s.raw(t, s.request(method, target, body))
}

func (s *served) request(method, target, body string) string {
	ct := ""
	if body != "" || method == "POST" {
		ct = fmt.Sprintf("Content-Type: application/json\r\nContent-Length: %d\r\n", len(body))
	}
	return fmt.Sprintf("%s %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n%s\r\n%s", method, target, s.addr, testToken, ct, body)
}

// decodeError reads an error body, unknown members refused.
func decodeError(t testing.TB, body string) api.Error {
	t.Helper()
	var e api.Error
	d := json.NewDecoder(strings.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&e); err != nil {
		t.Fatalf("not an error body: %v\n%s", err, body)
	}
	return e
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
