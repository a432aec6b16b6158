package control_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/control"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// A fake is a backend that writes down what it is asked and answers the same
// things always. Ids that start with "!" choose a failure.
type fake struct {
	mu      sync.Mutex
	calls   []string
	empty   bool          // lists are nil
	arrived chan struct{} // a waiting call says so here; nil: nothing waits
	hold    chan struct{} // Run with the id "!hold" waits for it, whatever its context
	gone    chan error    // what ended a wait
	stop    func()        // what Stop does
	values  [][]byte      // of every PutSecret, not copied
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

func (f *fake) asked() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.calls...)
}

// wait blocks until the context ends, when the fake is to wait at all.
func (f *fake) wait(ctx context.Context) error {
	if f.arrived == nil {
		return nil
	}
	f.arrived <- struct{}{}
	<-ctx.Done()
	if f.gone != nil {
		f.gone <- ctx.Err()
	}
	return ctx.Err()
}

var theStatus = api.Status{
	OK: true, Version: "1.2.3", PID: 4321, Address: "127.0.0.1:4111", Home: "/home/ada/.local/state/hbrestd",
	TokenFile: "/home/ada/.local/state/hbrestd/wrap/token", StartedAt: "2026-11-30T08:00:00Z", Wrappers: 2, Revision: 7, CallTimeout: 50000,
}

func (f *fake) Status(context.Context) (*api.Status, error) {
	f.note("Status", nil)
	s := theStatus
	return &s, nil
}

func (f *fake) Manifest(ctx context.Context, after uint64) (*api.Manifest, error) {
	f.note("Manifest", after)
	if after > 0 {
		if err := f.wait(ctx); err != nil {
			return nil, err
		}
	}
	if f.empty {
		return &api.Manifest{Revision: 7}, nil
	}
	return &api.Manifest{Revision: 7, Wrappers: []api.ManifestEntry{{ID: "city.weather", Name: "Weather", Method: "GET", Host: "api.example.com"}}}, nil
}

const theDocument = `{"schemaVersion":1,"id":"city.weather","name":"<Weather> & more","big":9007199254740993,"price":30.00}`

func (f *fake) Wrapper(_ context.Context, id string) (json.RawMessage, error) {
	f.note("Wrapper", id)
	if id == "missing" {
		return nil, fault.New("WRAPPER_NOT_FOUND", "no wrapper %q", id).With(fault.Field("id"))
	}
	return json.RawMessage(theDocument), nil
}

func (f *fake) Secrets(context.Context) (*api.SecretList, error) {
	f.note("Secrets", nil)
	if f.empty {
		return &api.SecretList{Reason: "none"}, nil
	}
	return &api.SecretList{Available: true, Secrets: []api.Secret{{Name: "orders-key", Headers: []string{"Authorization"}, AllowedHosts: []string{"api.example.com"}}}}, nil
}

func theRun() *api.RunResult {
	status, md := 200, "| City |\n| --- |\n| Oslo & <b> |\n"
	return &api.RunResult{
		OK: true, Status: &status, DurationMs: 42, Wrapper: api.WrapperRef{ID: "city.weather", Name: "Weather"}, Markdown: &md,
		Records: json.RawMessage(`[{"id":9007199254740993,"price":30.00}]`), Meta: api.Meta{Mode: "table", Selected: 1, Rendered: 1},
	}
}

var errLimited = fault.New("UPSTREAM_RATE_LIMITED", "the API answered 429: slow down").With(fault.Status(429), fault.RetryAfter(4200*time.Millisecond))

func (f *fake) Run(ctx context.Context, q *api.RunRequest) (*api.RunResult, error) {
	f.note("Run", q)
	switch q.ID {
	case "!wait":
		if err := f.wait(ctx); err != nil {
			return nil, err
		}
	case "!hold":
		f.arrived <- struct{}{}
		<-f.hold
		f.gone <- ctx.Err()
	case "!limited":
		return nil, &api.CallError{
			Err: errLimited, Wrapper: &api.WrapperRef{ID: "city.weather", Name: "Weather"},
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
	}
	return theRun(), nil
}

func thePlan() *api.Plan {
	return &api.Plan{
		OK: true, DryRun: true, Wrapper: api.WrapperRef{ID: "city.weather", Name: "Weather"}, Args: json.RawMessage(`{"city":"Oslo"}`),
		Request: api.Request{Method: "GET", URL: "https://api.example.com/w?city=Oslo&q=<a>", Headers: json.RawMessage(`{}`)},
	}
}

func (f *fake) Test(_ context.Context, q *api.TestRequest) (*api.TestResult, error) {
	f.note("Test", q)
	if q.DryRun != nil && !*q.DryRun {
		return &api.TestResult{Run: theRun()}, nil
	}
	return &api.TestResult{Plan: thePlan()}, nil
}

func (f *fake) Derive(_ context.Context, q *api.DeriveRequest) (*api.DeriveResult, error) {
	f.note("Derive", q)
	return &api.DeriveResult{OK: true, Source: "sample", Recipe: json.RawMessage(`{"schemaVersion":1,"select":"$"}`)}, nil
}

func (f *fake) Change(_ context.Context, q *api.ChangeRequest) (*api.ChangeResult, error) {
	f.note("Change", q)
	return &api.ChangeResult{OK: true, ID: "city.weather", Wrapper: q.Wrapper, Revision: 8}, nil
}

func (f *fake) rows() *api.AuditPage {
	if f.empty {
		return &api.AuditPage{Next: 12}
	}
	return &api.AuditPage{Next: 12, Rows: []api.AuditRow{{
		Seq: 11, Time: "2026-11-30T08:00:00.123Z", Kind: "run", Wrapper: "city.weather", Method: "GET",
		Host: "api.example.com", Status: 200, Bytes: 512, DurationMs: 42,
	}}}
}

func (f *fake) Audit(_ context.Context, limit int) (*api.AuditPage, error) {
	f.note("Audit", limit)
	return f.rows(), nil
}

func (f *fake) AuditFollow(ctx context.Context, after uint64, limit int) (*api.AuditPage, error) {
	f.note("AuditFollow", []any{after, limit})
	if err := f.wait(ctx); err != nil {
		return nil, err
	}
	return f.rows(), nil
}

func (f *fake) Apply(_ context.Context, q *control.ApplyRequest) (*control.ApplyResult, error) {
	if len(q.Documents) > 10 || len(q.Documents[0].Wrapper) > 1<<20 {
		f.note("Apply", len(q.Documents))
	} else {
		f.note("Apply", q)
	}
	if f.empty {
		return &control.ApplyResult{OK: true, Revision: 9}, nil
	}
	return &control.ApplyResult{OK: true, DryRun: q.DryRun, Revision: 9, Changes: []control.ApplyChange{
		{Source: q.Documents[0].Source, ID: "city.weather", Action: "created", After: json.RawMessage(theDocument)},
	}}, nil
}

func (f *fake) Fetch(_ context.Context, q *control.FetchRequest) (*control.FetchResult, error) {
	f.note("Fetch", q)
	return &control.FetchResult{OK: true, Body: []byte("openapi: 3.0.0\n")}, nil
}

func (f *fake) Origins(context.Context) (*control.OriginList, error) {
	f.note("Origins", nil)
	if f.empty {
		return &control.OriginList{}, nil
	}
	return &control.OriginList{Origins: []control.ImportedWrapper{{
		ID: "a", ImportOrigin: control.ImportOrigin{Kind: "openapi", Source: "/home/ada/shop.yaml", Title: "Shop", Operation: "GET /a"}, SHA256: "ab", Edited: true,
	}}}, nil
}

func (f *fake) Recall(_ context.Context, q *api.RecallRequest) (*api.RecallResult, error) {
	f.note("Recall", q)
	if f.empty {
		return &api.RecallResult{OK: true, Note: "the index is empty"}, nil
	}
	return &api.RecallResult{OK: true, Documents: []api.RecallDocument{{
		Wrapper: "city.weather", Key: "oslo", Title: "Oslo & <b>", URL: "https://api.example.com/w?a=1&b=2", ReadAt: "2026-11-30T08:00:00Z", Age: 60, Snippet: "**wind**", Score: 1.5,
	}}}, nil
}

func (f *fake) CortexStats(context.Context) (*control.CortexStats, error) {
	f.note("CortexStats", nil)
	if f.empty {
		return &control.CortexStats{Path: "/home/ada/cortex.db", MaxBytes: 200_000_000}, nil
	}
	return &control.CortexStats{
		Path: "/home/ada/cortex.db", Documents: 2, Chunks: 3, Bytes: 4096, MaxBytes: 200_000_000, Oldest: "2026-11-29T08:00:00Z", Newest: "2026-11-30T08:00:00Z",
		Wrappers: []control.CortexWrapper{{Wrapper: "city.weather", Documents: 2, Newest: "2026-11-30T08:00:00Z", Saved: true}}, Recovered: "r",
	}, nil
}

func (f *fake) CortexForget(_ context.Context, q *control.CortexForget) (*control.CortexChange, error) {
	f.note("CortexForget", q)
	return &control.CortexChange{OK: true, Documents: 2}, nil
}

func (f *fake) CortexRebuild(context.Context) (*control.CortexChange, error) {
	f.note("CortexRebuild", nil)
	return &control.CortexChange{OK: true, Documents: 2}, nil
}

func (f *fake) Backup(_ context.Context, q *control.BackupRequest) (*control.BackupResult, error) {
	f.note("Backup", q)
	return &control.BackupResult{OK: true, Dir: q.Dir, Backup: control.Backup{
		Format: 1, Version: "1.2.3", Time: "2026-12-01T08:00:00Z", Revision: 7, Wrappers: 2, Credentials: 1, Key: "keyring", AuditRows: 3, AuditHead: "3:ab12",
	}}, nil
}

func (f *fake) History(_ context.Context, id string) (*control.WrapperHistory, error) {
	f.note("History", id)
	if f.empty {
		return &control.WrapperHistory{ID: id}, nil
	}
	return &control.WrapperHistory{ID: id, Until: "2026-12-31T08:00:00Z", Versions: []control.WrapperVersion{
		{Version: 3, Time: "2026-12-01T08:00:00Z", Author: "agent", Action: "saved", Bytes: 120, SHA256: "ab12"},
		{Version: 4, Action: "damaged", Problem: "its checksum does not match"},
	}}, nil
}

func (f *fake) Removed(context.Context) (*control.RemovedWrappers, error) {
	f.note("Removed", nil)
	if f.empty {
		return &control.RemovedWrappers{}, nil
	}
	return &control.RemovedWrappers{Removed: []control.RemovedWrapper{{ID: "old", Time: "2026-12-01T08:00:00Z", Until: "2026-12-31T08:00:00Z"}}}, nil
}

func (f *fake) Version(_ context.Context, id string, version uint64) (*control.WrapperVersion, error) {
	f.note("Version", []any{id, version})
	return &control.WrapperVersion{Version: version, Author: "human", Action: "saved", Current: true, Bytes: 2, Wrapper: json.RawMessage(theDocument)}, nil
}

func (f *fake) Rollback(_ context.Context, q *control.RollbackRequest) (*control.RollbackResult, error) {
	f.note("Rollback", q)
	return &control.RollbackResult{
		OK: true, DryRun: q.DryRun, ID: q.ID, Version: q.Version, Action: "created", After: json.RawMessage(theDocument),
		Exposed: true, Tool: "orders", Revision: 8,
	}, nil
}

func (f *fake) Lint(_ context.Context, id string) (*control.LintReport, error) {
	f.note("Lint", id)
	if f.empty {
		return &control.LintReport{}, nil
	}
	return &control.LintReport{Wrappers: []control.LintedWrapper{{ID: "a", Problem: "its record is damaged"}, {ID: "b", Warnings: []api.Warning{{Field: "wrapper.description", Code: "NO_DESCRIPTION", Message: "m", Hint: "h"}}}}}, nil
}

func (f *fake) Expose(_ context.Context, q *control.ExposeRequest) (*control.ExposeResult, error) {
	f.note("Expose", q)
	return &control.ExposeResult{OK: true, ID: q.ID, Exposed: true, Tool: "wrap_city_weather", Priority: 500, Rank: 1, Revision: 10}, nil
}

func (f *fake) rules() *control.AllowList {
	if f.empty {
		return &control.AllowList{}
	}
	return &control.AllowList{Rules: []control.AllowRule{{Host: "nas.local", Port: "8443"}, {Host: "printer", HTTP: true}}}
}

func (f *fake) Allowed(context.Context) (*control.AllowList, error) {
	f.note("Allowed", nil)
	return f.rules(), nil
}

func (f *fake) Allow(_ context.Context, q *control.AllowRule) (*control.AllowList, error) {
	f.note("Allow", q)
	return f.rules(), nil
}

func (f *fake) Disallow(_ context.Context, q *control.AllowRule) (*control.AllowList, error) {
	f.note("Disallow", q)
	return f.rules(), nil
}

func (f *fake) list() *control.SettingList {
	if f.empty {
		return &control.SettingList{}
	}
	return &control.SettingList{Settings: []control.Setting{{Name: "allow-private", Value: "false", Origin: "default", Default: "false", Variable: "HB_WRAP_ALLOW_PRIVATE"}}}
}

func (f *fake) Settings(context.Context) (*control.SettingList, error) {
	f.note("Settings", nil)
	return f.list(), nil
}

func (f *fake) SetSetting(_ context.Context, q *control.SettingChange) (*control.SettingList, error) {
	f.note("SetSetting", q)
	return f.list(), nil
}

func (f *fake) AuditVerify(_ context.Context, q *control.AuditVerifyRequest) (*control.AuditReport, error) {
	f.note("AuditVerify", q)
	return &control.AuditReport{OK: false, Rows: 3, First: 1, Head: "3:ab", BadSeq: 2, Problem: "row 2 was changed"}, nil
}

func (f *fake) AuditHead(context.Context) (*control.AuditHead, error) {
	f.note("AuditHead", nil)
	return &control.AuditHead{Seq: 3, Hash: "ab", Head: "3:ab"}, nil
}

var theSecret = control.SecretInfo{
	Name: "orders-key", Kind: "oauth2", Headers: []control.SecretHeader{{Name: "Authorization", Prefix: "Bearer "}},
	AllowedHosts: []string{"api.example.com"}, Updated: "2026-11-30T08:00:00Z", UsedBy: []string{"orders.list"},
	OAuth: &control.SecretOAuth{TokenURL: "https://login.example.com/token?a=1&b=<2>", ClientID: "c", Scope: "s", Audience: "a", AuthStyle: "body"},
}

func (f *fake) SecretState(context.Context) (*control.SecretState, error) {
	f.note("SecretState", nil)
	if f.empty {
		return &control.SecretState{State: "none", Reason: "r", Fix: "f", Detail: "d"}, nil
	}
	return &control.SecretState{State: "ready", Secrets: []control.SecretInfo{theSecret}}, nil
}

func (f *fake) secretResult() *control.SecretResult {
	if f.empty {
		return &control.SecretResult{OK: true, Secret: &control.SecretInfo{Name: "n", Kind: "static"}}
	}
	return &control.SecretResult{OK: true, Secret: &theSecret}
}

func (f *fake) CheckSecret(_ context.Context, q *control.SecretPut) (*control.SecretResult, error) {
	f.note("CheckSecret", q)
	return f.secretResult(), nil
}

func (f *fake) PutSecret(_ context.Context, q *control.SecretPut) (*control.SecretResult, error) {
	f.note("PutSecret", q)
	f.mu.Lock()
	f.values = append(f.values, q.Values...)
	f.mu.Unlock()
	if q.Name == "!ask" && len(q.Confirm) == 0 {
		return &control.SecretResult{Confirm: "token-host", Message: "the token endpoint is elsewhere"}, nil
	}
	return f.secretResult(), nil
}

func (f *fake) BindSecret(_ context.Context, q *control.SecretBind) (*control.SecretResult, error) {
	f.note("BindSecret", q)
	return f.secretResult(), nil
}

func (f *fake) DeleteSecret(_ context.Context, q *control.SecretName) (*control.SecretResult, error) {
	f.note("DeleteSecret", q)
	return &control.SecretResult{OK: true}, nil
}

func (f *fake) TestSecret(_ context.Context, q *control.SecretTest) (*api.RunResult, error) {
	f.note("TestSecret", q)
	return theRun(), nil
}

func (f *fake) Approvals(_ context.Context, after uint64) (*control.ApprovalList, error) {
	f.note("Approvals", after)
	return &control.ApprovalList{Revision: 3, Approvals: []control.Approval{theApproval()}}, nil
}

func (f *fake) Approval(_ context.Context, id string) (*control.Approval, error) {
	f.note("Approval", id)
	a := theApproval()
	return &a, nil
}

func (f *fake) Answer(_ context.Context, q *control.ApprovalAnswer) (*control.Approval, error) {
	f.note("Answer", q)
	a := theApproval()
	a.State = "allowed"
	return &a, nil
}

func (f *fake) ApprovalPolicies(context.Context) (*control.ApprovalPolicies, error) {
	f.note("ApprovalPolicies", nil)
	return &control.ApprovalPolicies{Policy: "off", Origin: "default", Variable: "HB_WRAP_APPROVAL"}, nil
}

func (f *fake) SetApprovalPolicy(_ context.Context, q *control.ApprovalPolicyChange) (*control.ApprovalPolicies, error) {
	f.note("SetApprovalPolicy", q)
	return &control.ApprovalPolicies{
		Policy: "first", Origin: "stored", Variable: "HB_WRAP_APPROVAL",
		Wrappers: []control.WrapperApproval{{Wrapper: "orders", Policy: "always", Holds: "always", Trusted: true}},
	}, nil
}

// theApproval is a question with everything set.
func theApproval() control.Approval {
	return control.Approval{
		ID: "0123456789abcdef0123456789abcdef", State: "pending", Policy: "always", Wrapper: "orders", Name: "Orders", Version: "saved", Document: "ab12",
		Method: "POST", URL: "https://api.example.com/orders?a=<b>", Headers: []string{"Accept: application/json"}, Body: "{\"n\":12345678901234567890}",
		BodyType: "text", Credential: "orders-key", Pages: 1, Asked: "2026-12-01T08:00:00Z", Expires: "2026-12-01T08:10:00Z", Waiting: 1,
	}
}

func (f *fake) Reload(context.Context) (*control.ReloadResult, error) {
	f.note("Reload", nil)
	return &control.ReloadResult{OK: true, Revision: 11, Wrappers: 2}, nil
}

func (f *fake) Stop(context.Context) error {
	f.note("Stop", nil)
	if f.stop != nil {
		f.stop()
	}
	return nil
}

// A served control socket.
type served struct {
	path string
	log  *syncBuffer
	stop func() error // ends Serve and returns its error; safe to call twice
}

func serve(t testing.TB, f *fake) *served { return serveAt(t, f, socketPath(t), 0) }

func serveAt(t testing.TB, f *fake, path string, grace time.Duration) *served {
	t.Helper()
	return serveOn(t, f, &f.stop, path, grace)
}

func serveBackend(t testing.TB, b control.Backend) *served {
	t.Helper()
	return serveOn(t, b, new(func()), socketPath(t), 0)
}

func serveOn(t testing.TB, b control.Backend, atStop *func(), path string, grace time.Duration) *served {
	t.Helper()
	l, err := control.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	s := &served{path: path, log: &syncBuffer{}}
	ctx, cancel := context.WithCancel(context.Background())
	if *atStop == nil {
		*atStop = cancel
	}
	done := make(chan error, 1)
	go func() {
		done <- control.Serve(ctx, l, b, control.Options{
			Version: "1.2.3", Grace: grace,
			Log: slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		})
	}()
	s.stop = sync.OnceValue(func() error { cancel(); return <-done })
	t.Cleanup(func() { _ = s.stop() })
	return s
}

// socketPath is a short path in a folder that does not exist yet.
func socketPath(t testing.TB) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		return `\\.\pipe\hbrestd-test-` + filepath.Base(t.TempDir())
	}
	base, err := os.MkdirTemp("/tmp", "hbc")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	return filepath.Join(base, "d", "control.sock")
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

// decodeError reads an error body, unknown members refused.
func decodeError(t testing.TB, body string) api.Error {
	t.Helper()
	var e api.Error
	d := json.NewDecoder(bytes.NewReader([]byte(body)))
	d.DisallowUnknownFields()
	if err := d.Decode(&e); err != nil {
		t.Fatalf("not an error body: %v\n%s", err, body)
	}
	return e
}
