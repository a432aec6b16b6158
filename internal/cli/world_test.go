package cli

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/config"
	"github.com/hyperbolic-gateway/hb-rest/internal/control"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// A fake is a daemon behind a real control socket: it keeps documents and
// writes down what it is asked to do; the rest are answers that a test sets.
type fake struct {
	mu       sync.Mutex
	docs     map[string]json.RawMessage // compact
	entries  []api.ManifestEntry        // the manifest; nil: made from docs
	calls    []string                   // changes and calls, not reads
	rules    []control.AllowRule
	settings []control.Setting

	run                func(*api.RunRequest) (*api.RunResult, error)
	test               func(*api.TestRequest) (*api.TestResult, error)
	expose             func(*control.ExposeRequest) (*control.ExposeResult, error)
	audit              func(limit int) (*api.AuditPage, error)
	follow             func(ctx context.Context, after uint64) (*api.AuditPage, error)
	report             control.AuditReport
	fail               error         // of every call
	started            chan struct{} // Manifest says so here and then waits for its end; nil: it does not
	version            string        // of the daemon
	warn               []api.Warning // of each change of an apply
	secrets            control.SecretState
	ask                string // what to confirm before a credential is saved
	failCheck, failPut error

	questions []control.Approval
	policies  control.ApprovalPolicies

	recalled api.RecallResult
	cortex   control.CortexStats

	history  *control.WrapperHistory // with documents
	removed  control.RemovedWrappers
	rollback control.RollbackResult
	lint     control.LintReport

	origins []control.ImportedWrapper
	applied *control.ApplyRequest // the last one
	backup  *control.BackupResult
	fetch   func(*control.FetchRequest) (*control.FetchResult, error)
}

func (f *fake) note(name string, v any) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, name+" "+strings.TrimSpace(b.String()))
}

func (f *fake) asked() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string{}, f.calls...)
}

func (f *fake) Status(context.Context) (*api.Status, error) {
	if f.fail != nil {
		return nil, f.fail
	}
	return &api.Status{
		OK: true, Version: f.version, PID: 4321, Address: "127.0.0.1:4111", Home: "/home/ada/.local/state/hbrestd",
		TokenFile: "/home/ada/.local/state/hbrestd/wrap/token", StartedAt: "2026-11-30T08:00:00Z", Wrappers: 12, Damaged: 1,
		Revision: 7, AllowHTTP: true, CallTimeout: 50000,
	}, nil
}

func (f *fake) Manifest(ctx context.Context, _ uint64) (*api.Manifest, error) {
	if f.fail != nil {
		return nil, f.fail
	}
	if f.started != nil {
		f.started <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	}
	m := &api.Manifest{Revision: 7, Wrappers: f.entries}
	if m.Wrappers == nil {
		for _, id := range f.ids() {
			m.Wrappers = append(m.Wrappers, api.ManifestEntry{ID: id, Name: "Name of " + id, Method: "GET", Host: "api.example.com"})
		}
	}
	return m, nil
}

func (f *fake) ids() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var ids []string
	for id := range f.docs {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

func (f *fake) Wrapper(_ context.Context, id string) (json.RawMessage, error) {
	if f.fail != nil {
		return nil, f.fail
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if doc, ok := f.docs[id]; ok {
		return doc, nil
	}
	return nil, fault.New("WRAPPER_NOT_FOUND", "no wrapper %q; near: orders.list", id).With(fault.Field("id"))
}

func (f *fake) Secrets(context.Context) (*api.SecretList, error) {
	l := &api.SecretList{Available: true}
	for _, s := range f.secrets.Secrets {
		l.Secrets = append(l.Secrets, api.Secret{Name: s.Name, AllowedHosts: s.AllowedHosts})
	}
	return l, f.fail
}

func (f *fake) SecretState(context.Context) (*control.SecretState, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	st := f.secrets
	if st.State == "" {
		st.State = "ready"
	}
	return &st, f.fail
}

// CheckSecret is asked before each PutSecret, and noted only when it refuses or asks.
func (f *fake) CheckSecret(_ context.Context, q *control.SecretPut) (*control.SecretResult, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failCheck != nil {
		return nil, f.failCheck
	}
	s := saved(q)
	if f.ask != "" && !slices.Contains(q.Confirm, "token-host") {
		return &control.SecretResult{Confirm: "token-host", Message: f.ask, Secret: s}, nil
	}
	return &control.SecretResult{OK: true, Secret: s}, nil
}

func (f *fake) PutSecret(_ context.Context, q *control.SecretPut) (*control.SecretResult, error) {
	f.note("put", q)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failPut != nil {
		return nil, f.failPut
	}
	if f.ask != "" && !slices.Contains(q.Confirm, "token-host") {
		return &control.SecretResult{Confirm: "token-host", Message: f.ask}, nil
	}
	return &control.SecretResult{OK: true, Secret: saved(q)}, nil
}

// saved is q as a daemon would keep it.
func saved(q *control.SecretPut) *control.SecretInfo {
	s := control.SecretInfo{Name: q.Name, Kind: q.Kind, Headers: q.Headers, OAuth: q.OAuth}
	for _, h := range q.AllowedHosts {
		s.AllowedHosts = append(s.AllowedHosts, strings.ToLower(h))
	}
	switch {
	case q.Kind == "oauth2" && q.Headers == nil:
		s.Headers = []control.SecretHeader{{Name: "Authorization", Prefix: "Bearer "}}
	case q.Kind == "basic":
		s.Headers = []control.SecretHeader{{Name: "Authorization", Prefix: "Basic "}}
	}
	return &s
}

func (f *fake) BindSecret(_ context.Context, q *control.SecretBind) (*control.SecretResult, error) {
	f.note("bind", q)
	if f.fail != nil {
		return nil, f.fail
	}
	if f.ask != "" && !slices.Contains(q.Confirm, "token-host") {
		return &control.SecretResult{Confirm: "token-host", Message: f.ask}, nil
	}
	s := find(&f.secrets, q.Name)
	if s == nil {
		return nil, fault.New("SECRET_NOT_FOUND", "no credential %q", q.Name).With(fault.Field("name"))
	}
	bound := *s
	bound.AllowedHosts = nil
	for _, h := range append(slices.Clone(s.AllowedHosts), q.Add...) {
		if !slices.Contains(q.Remove, h) {
			bound.AllowedHosts = append(bound.AllowedHosts, h)
		}
	}
	return &control.SecretResult{OK: true, Secret: &bound}, nil
}

func (f *fake) DeleteSecret(_ context.Context, q *control.SecretName) (*control.SecretResult, error) {
	f.note("delete", q)
	return &control.SecretResult{OK: true}, f.fail
}

func (f *fake) TestSecret(_ context.Context, q *control.SecretTest) (*api.RunResult, error) {
	f.note("try", q)
	if f.fail != nil {
		return nil, f.fail
	}
	return f.run(nil)
}

func (f *fake) Approvals(context.Context, uint64) (*control.ApprovalList, error) {
	return &control.ApprovalList{Revision: 1, Approvals: f.questions}, f.fail
}

func (f *fake) Approval(_ context.Context, id string) (*control.Approval, error) {
	if f.fail != nil {
		return nil, f.fail
	}
	for _, q := range f.questions {
		if q.ID == id {
			return &q, nil
		}
	}
	return nil, fault.New("APPROVAL_NOT_FOUND", "there is no question %q", id).With(fault.Field("id"))
}

func (f *fake) Answer(ctx context.Context, q *control.ApprovalAnswer) (*control.Approval, error) {
	f.note("answer", q)
	a, err := f.Approval(ctx, q.ID)
	if err == nil {
		a.State = map[string]string{"allow": "allowed", "trust": "allowed", "deny": "denied"}[q.Answer]
	}
	return a, err
}

func (f *fake) ApprovalPolicies(context.Context) (*control.ApprovalPolicies, error) {
	p := f.policies
	return &p, f.fail
}

func (f *fake) SetApprovalPolicy(_ context.Context, q *control.ApprovalPolicyChange) (*control.ApprovalPolicies, error) {
	f.note("policy", q)
	p := f.policies
	return &p, f.fail
}

func (f *fake) Run(_ context.Context, q *api.RunRequest) (*api.RunResult, error) {
	f.note("run", q)
	if f.fail != nil {
		return nil, f.fail
	}
	return f.run(q)
}

func (f *fake) Test(_ context.Context, q *api.TestRequest) (*api.TestResult, error) {
	f.note("test", q)
	if f.fail != nil {
		return nil, f.fail
	}
	return f.test(q)
}

func (f *fake) Derive(context.Context, *api.DeriveRequest) (*api.DeriveResult, error) {
	return nil, f.fail
}

func (f *fake) Change(_ context.Context, q *api.ChangeRequest) (*api.ChangeResult, error) {
	f.note("change", q)
	if f.fail != nil {
		return nil, f.fail
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if q.Action != "create" {
		delete(f.docs, q.ID)
		return &api.ChangeResult{OK: true, ID: q.ID, Revision: 8}, nil
	}
	var doc struct{ ID string }
	if err := json.Unmarshal(q.Wrapper, &doc); err != nil || doc.ID == "" {
		return nil, fault.New("WRAPPER_INVALID", "1 problem").With(fault.Details([]fault.Detail{{Field: "wrapper.id", Code: "REQUIRED", Message: "is missing", Hint: "Give it an id."}}))
	}
	if f.docs[doc.ID] != nil {
		return nil, fault.New("WRAPPER_EXISTS", "there is a wrapper with the id %q already", doc.ID).With(fault.Field("id"))
	}
	f.docs[doc.ID] = q.Wrapper
	return &api.ChangeResult{OK: true, ID: doc.ID, Wrapper: q.Wrapper, Revision: 8, Warnings: f.warn}, nil
}

// Apply saves objects that have an id. Its words about others name their source.
func (f *fake) Apply(_ context.Context, q *control.ApplyRequest) (*control.ApplyResult, error) {
	if f.fail != nil {
		return nil, f.fail
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.applied = q
	f.calls = append(f.calls, fmt.Sprintf("apply %d dry=%t", len(q.Documents), q.DryRun))
	r := &control.ApplyResult{OK: true, DryRun: q.DryRun, Revision: 9}
	var problems []fault.Detail
	for _, d := range q.Documents {
		var doc struct{ ID string }
		if err := json.Unmarshal(d.Wrapper, &doc); err != nil || doc.ID == "" {
			problems = append(problems, fault.Detail{Field: d.Source + ": wrapper.id", Code: "REQUIRED", Message: "is missing", Hint: "Give it an id."})
			continue
		}
		if d.Seen != "" && d.Seen != control.Digest(sha256.Sum256(f.docs[doc.ID])) {
			return nil, fault.New("WRAPPER_CHANGED", "wrapper %q was changed meanwhile", doc.ID).With(fault.Field("id"))
		}
		c := control.ApplyChange{Source: d.Source, ID: doc.ID, Action: "created", After: d.Wrapper, Warnings: f.warn}
		switch before, ok := f.docs[doc.ID]; {
		case ok && bytes.Equal(before, d.Wrapper):
			c.Action, c.After = "unchanged", nil
		case ok:
			c.Action, c.Before = "updated", before
		}
		r.Changes = append(r.Changes, c)
	}
	if len(problems) > 0 {
		return nil, fault.New("WRAPPER_INVALID", "%d documents are not valid", len(problems)).With(fault.Details(problems))
	}
	for _, c := range r.Changes {
		if !q.DryRun && c.After != nil {
			f.docs[c.ID] = c.After
		}
	}
	return r, nil
}

func (f *fake) Fetch(_ context.Context, q *control.FetchRequest) (*control.FetchResult, error) {
	f.note("fetch", q)
	if f.fail != nil {
		return nil, f.fail
	}
	return f.fetch(q)
}

func (f *fake) Origins(context.Context) (*control.OriginList, error) {
	return &control.OriginList{Origins: f.origins}, f.fail
}

func (f *fake) Recall(_ context.Context, q *api.RecallRequest) (*api.RecallResult, error) {
	f.note("recall", q)
	return &f.recalled, f.fail
}

func (f *fake) CortexStats(context.Context) (*control.CortexStats, error) {
	return &f.cortex, f.fail
}

func (f *fake) CortexForget(_ context.Context, q *control.CortexForget) (*control.CortexChange, error) {
	f.note("forget", q)
	return &control.CortexChange{OK: true, Documents: f.cortex.Documents}, f.fail
}

func (f *fake) CortexRebuild(context.Context) (*control.CortexChange, error) {
	f.note("rebuild", nil)
	return &control.CortexChange{OK: true, Documents: f.cortex.Documents}, f.fail
}

func (f *fake) History(_ context.Context, id string) (*control.WrapperHistory, error) {
	if f.fail != nil {
		return nil, f.fail
	}
	if f.history == nil {
		return nil, fault.New("WRAPPER_NOT_FOUND", "no wrapper has the id %q", id).With(fault.Field("id"))
	}
	h := *f.history
	h.Versions = nil
	for _, v := range f.history.Versions {
		v.Wrapper = nil
		h.Versions = append(h.Versions, v)
	}
	return &h, nil
}

func (f *fake) Removed(context.Context) (*control.RemovedWrappers, error) {
	return &f.removed, f.fail
}

func (f *fake) Version(_ context.Context, id string, version uint64) (*control.WrapperVersion, error) {
	for _, v := range f.history.Versions {
		if v.Version == version {
			return &v, f.fail
		}
	}
	return nil, fault.New("VERSION_NOT_FOUND", "wrapper %q has no version %d", id, version).With(fault.Field("version"))
}

func (f *fake) Rollback(_ context.Context, q *control.RollbackRequest) (*control.RollbackResult, error) {
	f.note("rollback", q)
	r := f.rollback
	r.DryRun = q.DryRun
	return &r, f.fail
}

func (f *fake) Lint(_ context.Context, id string) (*control.LintReport, error) {
	f.note("lint", id)
	return &f.lint, f.fail
}

func (f *fake) Expose(_ context.Context, q *control.ExposeRequest) (*control.ExposeResult, error) {
	f.note("expose", q)
	if f.fail != nil {
		return nil, f.fail
	}
	return f.expose(q)
}

func (f *fake) Allowed(context.Context) (*control.AllowList, error) {
	return &control.AllowList{Rules: f.rules}, f.fail
}

func (f *fake) Allow(_ context.Context, q *control.AllowRule) (*control.AllowList, error) {
	f.note("allow", q)
	return &control.AllowList{Rules: append(f.rules, *q)}, f.fail
}

func (f *fake) Disallow(_ context.Context, q *control.AllowRule) (*control.AllowList, error) {
	f.note("disallow", q)
	return &control.AllowList{Rules: f.rules}, f.fail
}

func (f *fake) Settings(context.Context) (*control.SettingList, error) {
	return &control.SettingList{Settings: f.settings}, f.fail
}

func (f *fake) SetSetting(_ context.Context, q *control.SettingChange) (*control.SettingList, error) {
	f.note("set", q)
	l := slices.Clone(f.settings)
	for i := range l {
		if l[i].Name == q.Name && !q.Unset {
			l[i].Stored = q.Value
			l[i].Pending = l[i].NeedsStart
			if !l[i].NeedsStart && l[i].Origin != "environment" {
				l[i].Value, l[i].Origin = q.Value, "stored"
			}
		}
	}
	return &control.SettingList{Settings: l}, f.fail
}

func (f *fake) Audit(_ context.Context, limit int) (*api.AuditPage, error) {
	if f.fail != nil {
		return nil, f.fail
	}
	return f.audit(limit)
}

func (f *fake) AuditFollow(ctx context.Context, after uint64, _ int) (*api.AuditPage, error) {
	return f.follow(ctx, after)
}

func (f *fake) AuditVerify(_ context.Context, q *control.AuditVerifyRequest) (*control.AuditReport, error) {
	f.note("verify", q)
	return &f.report, f.fail
}

func (f *fake) AuditHead(context.Context) (*control.AuditHead, error) {
	return &control.AuditHead{Seq: 12, Hash: "ab12", Head: "12:ab12"}, f.fail
}

func (f *fake) Backup(_ context.Context, q *control.BackupRequest) (*control.BackupResult, error) {
	f.note("backup", q)
	return f.backup, f.fail
}

func (f *fake) Reload(context.Context) (*control.ReloadResult, error) { return nil, f.fail }
func (f *fake) Stop(context.Context) error                            { return f.fail }

// A world is a home with or without a daemon, and a person at a command line.
type world struct {
	t        *testing.T
	home     string
	env      map[string]string
	width    int    // of the terminal; 0: stdout is none
	person   bool   // somebody can answer
	stdin    string // of the next command
	stdout   io.Writer
	version  build
	ctx      context.Context
	tty      string // the device of the terminal; "": there is none
	shutdown func()
}

// newWorld serves f on the control socket; nil: no daemon runs.
func newWorld(t *testing.T, f *fake) *world {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the paths of these tests are those of unix")
	}
	home, err := os.MkdirTemp("/tmp", "hbcli") // short, for the socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	w := &world{
		t: t, home: home, env: map[string]string{"HB_WRAP_HOME": home, "HOME": filepath.Join(home, "user")},
		version: build{Version: "1.2.3", Go: "go1.26.8", Platform: "linux/amd64"}, ctx: context.Background(),
	}
	if f == nil {
		return w
	}
	if f.version == "" {
		f.version = "1.2.3"
	}
	l, err := control.Listen(filepath.Join(home, "control.sock"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- control.Serve(ctx, l, f, control.Options{Version: f.version}) }()
	w.shutdown = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the control socket: %v", err)
		}
	})
	t.Cleanup(w.shutdown)
	return w
}

func (w *world) lookup() config.Env {
	return func(name string) (string, bool) { v, ok := w.env[name]; return v, ok }
}

func (w *world) app(stdout, stderr io.Writer) *app {
	return &app{
		env: w.lookup(), goos: "linux", version: w.version, stdin: strings.NewReader(w.stdin), stdout: stdout, stderr: stderr,
		width:       func() int { return w.width },
		interactive: func() bool { return w.person },
		connect:     func(path string, o control.ClientOptions) control.Backend { return control.NewClient(path, o) },
		openTerminal: func() (*console, error) {
			f, err := os.OpenFile(w.tty, os.O_RDWR, 0)
			if err != nil {
				return nil, errors.New("there is no terminal")
			}
			return &console{in: f, out: f}, nil
		},
		environ: func() []string {
			var list []string
			for name, v := range w.env {
				list = append(list, name+"="+v)
			}
			return list
		},
	}
}

// A said is all that a command line says.
type said struct {
	Exit        int
	Out, ErrOut string
}

func (w *world) hb(args ...string) said {
	w.t.Helper()
	var out, errOut bytes.Buffer
	stdout := io.Writer(&out)
	if w.stdout != nil {
		stdout = w.stdout
	}
	exit := w.app(stdout, &errOut).run(w.ctx, args)
	text := func(b bytes.Buffer) string { return strings.ReplaceAll(b.String(), w.home, "HOME") }
	return said{exit, text(out), text(errOut)}
}

// file writes a file into the home and gives its path.
func (w *world) file(name, content string) string {
	w.t.Helper()
	p := filepath.Join(w.home, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(content), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return p
}

func ptr[T any](v T) *T { return &v }
