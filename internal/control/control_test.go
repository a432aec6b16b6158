package control_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/control"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

func ptr[T any](v T) *T { return &v }

// Every method of the client reaches the backend's own with the same request,
// and brings the same result back.
func TestEveryCallArrives(t *testing.T) {
	f := &fake{}
	s := serve(t, f)
	c := control.NewClient(s.path, control.ClientOptions{Version: "1.2.3", Timeout: 20 * time.Second})
	ctx := context.Background()
	doc := json.RawMessage(theDocument)
	run := &api.RunRequest{ID: "city.weather", Args: json.RawMessage(`{"n":9007199254740993,"s":"<&>"}`), Format: "both", MaxPages: ptr(25)}
	test := &api.TestRequest{Wrapper: doc, Sample: json.RawMessage(`"[1]"`)}
	live := &api.TestRequest{ID: "city.weather", DryRun: ptr(false), MaxPages: ptr(1)}
	derive := &api.DeriveRequest{Sample: json.RawMessage(`[{"a":1.0}]`), Name: "N", MaxFields: ptr(20)}
	change := &api.ChangeRequest{Action: "create", Wrapper: doc}
	apply := &control.ApplyRequest{DryRun: true, Documents: []control.ApplyDocument{{Source: "orders.json", Wrapper: doc}, {Source: "-", Wrapper: json.RawMessage(`[1]`)}}}
	expose := &control.ExposeRequest{ID: "city.weather", Priority: ptr(0)}
	rule := &control.AllowRule{Host: "nas.local", Port: "8443", HTTP: true}
	setting := &control.SettingChange{Name: "allow-private", Value: "true"}
	verify := &control.AuditVerifyRequest{Head: "3:ab"}
	put := &control.SecretPut{
		Name: "orders-key", Kind: "oauth2", Headers: []control.SecretHeader{{Name: "Authorization", Prefix: "<Bearer> "}}, AllowedHosts: []string{"api.example.com", "*.example.org"},
		OAuth:  &control.SecretOAuth{TokenURL: "https://login.example.com/token", ClientID: "c&d", Scope: "s", Audience: "a", AuthStyle: "basic"},
		Values: [][]byte{[]byte("s3cr\x00t\xff<&>\n"), nil, {}}, Create: true, Confirm: []string{"token-host"}, Stdin: true,
	}
	bind := &control.SecretBind{Name: "orders-key", Add: []string{"api.example.com"}, Remove: []string{"old.example.com"}, Confirm: []string{"token-host"}}
	name := &control.SecretName{Name: "orders-key"}
	try := &control.SecretTest{Name: "orders-key", Wrapper: "orders.list"}

	for _, tc := range []struct {
		asked string // as the fake notes it
		call  func() (any, error)
		want  func() (any, error) // the fake's own answer
	}{
		{`Status null`, func() (any, error) { return c.Status(ctx) }, func() (any, error) { return f.Status(ctx) }},
		{`Manifest 0`, func() (any, error) { return c.Manifest(ctx, 0) }, func() (any, error) {
			m, err := f.Manifest(ctx, 0)
			m.Wrappers[0].Required = []string{} // a list is never null on the wire
			return m, err
		}},
		{`Manifest 18446744073709551615`, func() (any, error) { m, err := c.Manifest(ctx, 1<<64-1); return m.Revision, err }, func() (any, error) { return uint64(7), nil }},
		{`Wrapper "a b\u0026c"`, func() (any, error) { return c.Wrapper(ctx, "a b&c") }, func() (any, error) { return f.Wrapper(ctx, "a b&c") }},
		{`Secrets null`, func() (any, error) { return c.Secrets(ctx) }, func() (any, error) { return f.Secrets(ctx) }},
		{note("Run", run), func() (any, error) { return c.Run(ctx, run) }, func() (any, error) { return f.Run(ctx, run) }},
		{note("Test", test), func() (any, error) { return c.Test(ctx, test) }, func() (any, error) { return f.Test(ctx, test) }},
		{note("Test", live), func() (any, error) { return c.Test(ctx, live) }, func() (any, error) { return f.Test(ctx, live) }},
		{note("Derive", derive), func() (any, error) { return c.Derive(ctx, derive) }, func() (any, error) { return f.Derive(ctx, derive) }},
		{note("Change", change), func() (any, error) { return c.Change(ctx, change) }, func() (any, error) { return f.Change(ctx, change) }},
		{`Audit 0`, func() (any, error) { return c.Audit(ctx, 0) }, func() (any, error) { return f.Audit(ctx, 0) }},
		{`Audit 1000`, func() (any, error) { return c.Audit(ctx, 1000) }, func() (any, error) { return f.Audit(ctx, 1000) }},
		{note("Apply", apply), func() (any, error) { return c.Apply(ctx, apply) }, func() (any, error) { return f.Apply(ctx, apply) }},
		{note("Expose", expose), func() (any, error) { return c.Expose(ctx, expose) }, func() (any, error) { return f.Expose(ctx, expose) }},
		{`Allowed null`, func() (any, error) { return c.Allowed(ctx) }, func() (any, error) { return f.Allowed(ctx) }},
		{note("Allow", rule), func() (any, error) { return c.Allow(ctx, rule) }, func() (any, error) { return f.Allow(ctx, rule) }},
		{note("Disallow", rule), func() (any, error) { return c.Disallow(ctx, rule) }, func() (any, error) { return f.Disallow(ctx, rule) }},
		{`Settings null`, func() (any, error) { return c.Settings(ctx) }, func() (any, error) { return f.Settings(ctx) }},
		{note("SetSetting", setting), func() (any, error) { return c.SetSetting(ctx, setting) }, func() (any, error) { return f.SetSetting(ctx, setting) }},
		{`AuditFollow [11,50]`, func() (any, error) { return c.AuditFollow(ctx, 11, 50) }, func() (any, error) { return f.AuditFollow(ctx, 11, 50) }},
		{note("AuditVerify", verify), func() (any, error) { return c.AuditVerify(ctx, verify) }, func() (any, error) { return f.AuditVerify(ctx, verify) }},
		{`AuditHead null`, func() (any, error) { return c.AuditHead(ctx) }, func() (any, error) { return f.AuditHead(ctx) }},
		{`SecretState null`, func() (any, error) { return c.SecretState(ctx) }, func() (any, error) { return f.SecretState(ctx) }},
		{note("PutSecret", put), func() (any, error) { return c.PutSecret(ctx, put) }, func() (any, error) { return f.PutSecret(ctx, put) }},
		{note("BindSecret", bind), func() (any, error) { return c.BindSecret(ctx, bind) }, func() (any, error) { return f.BindSecret(ctx, bind) }},
		{note("DeleteSecret", name), func() (any, error) { return c.DeleteSecret(ctx, name) }, func() (any, error) { return f.DeleteSecret(ctx, name) }},
		{note("TestSecret", try), func() (any, error) { return c.TestSecret(ctx, try) }, func() (any, error) { return f.TestSecret(ctx, try) }},
		{`Reload null`, func() (any, error) { return c.Reload(ctx) }, func() (any, error) { return f.Reload(ctx) }},
		{`Stop null`, func() (any, error) { return nil, c.Stop(ctx) }, func() (any, error) { return nil, nil }},
	} {
		before := len(f.asked())
		got, err := tc.call()
		if err != nil {
			t.Errorf("%s: %v", tc.asked, err)
			continue
		}
		if calls := f.asked()[before:]; len(calls) != 1 || calls[0] != tc.asked {
			t.Errorf("the backend was asked %q, want %q once", calls, tc.asked)
		}
		want, _ := tc.want()
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", tc.asked, d)
		}
	}
	if v := c.ServerVersion(); v != "1.2.3" {
		t.Errorf("the daemon's version is %q", v)
	}
	if err := s.stop(); err != nil {
		t.Errorf("Serve: %v", err)
	}
}

func note(name string, v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return name + " " + string(text)
}

// Faults come back whole, and what no one may see does not.
func TestFaultsComeBack(t *testing.T) {
	f := &fake{}
	s := serve(t, f)
	c := control.NewClient(s.path, control.ClientOptions{Timeout: 20 * time.Second})
	ctx := context.Background()

	_, err := c.Run(ctx, &api.RunRequest{ID: "!limited"})
	var call *api.CallError
	if !errors.As(err, &call) {
		t.Fatalf("%v is no CallError", err)
	}
	want := &api.CallError{
		Wrapper: &api.WrapperRef{ID: "city.weather", Name: "Weather"}, Duration: 184 * time.Millisecond,
		Request: &api.Request{Method: "GET", URL: "https://api.example.com/w?city=Oslo", Headers: json.RawMessage(`{}`)},
	}
	got := *call
	got.Err = nil
	if d := cmp.Diff(want, &got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	mustBe(t, err, errLimited)

	_, err = c.Run(ctx, &api.RunRequest{ID: "!args"})
	_, wantErr := f.Run(ctx, &api.RunRequest{ID: "!args"})
	mustBe(t, err, fault.From(wantErr))
	_, err = c.Wrapper(ctx, "missing")
	_, wantErr = f.Wrapper(ctx, "missing")
	mustBe(t, err, fault.From(wantErr))

	for _, id := range []string{"!plain", "!panic", "!badanswer"} {
		_, err := c.Run(ctx, &api.RunRequest{ID: id})
		e := fault.From(err)
		logID := strings.TrimPrefix(e.Message, "internal fault ")
		if e.Code != "INTERNAL" || len(logID) != 12 || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", id, err)
		}
		if !strings.Contains(s.log.String(), "id="+logID) {
			t.Errorf("%s: the log has no line with %s", id, logID)
		}
	}
}

func mustBe(t *testing.T, err error, want *fault.Error) {
	t.Helper()
	got := *fault.From(err)
	if d := cmp.Diff(strip(want), strip(&got)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// strip is a fault without its unexported cause.
func strip(e *fault.Error) map[string]any {
	return map[string]any{
		"code": e.Code, "message": e.Message, "field": e.Field, "status": e.Status, "hint": e.Hint,
		"retryable": e.Retryable, "after": e.RetryAfter, "details": append([]fault.Detail{}, e.Details...),
	}
}
