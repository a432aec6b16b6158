package daemon_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/control"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
)

func orders(name, more string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"schemaVersion":1,"id":"orders","name":%q,"request":{"method":"GET","url":"https://api.example.com/orders"}%s}`, name, more))
}

// Who made a version is known from where it came in; a rollback is a version by
// a person, and undoes a removal.
func TestHistoryAndRollback(t *testing.T) {
	w := newWorld(t, nil, outbound.Options{})
	person := control.NewClient(w.cfg.ControlSocket, control.ClientOptions{})
	ctx := t.Context()
	human := func(action string, doc json.RawMessage) {
		t.Helper()
		q := &api.ChangeRequest{Action: action, Wrapper: doc}
		if doc == nil {
			q.ID = "orders"
		}
		if _, err := person.Change(ctx, q); err != nil {
			t.Fatal(err)
		}
	}
	agent := func(action string, doc json.RawMessage) {
		t.Helper()
		q := &api.ChangeRequest{Action: action, Wrapper: doc}
		if doc == nil {
			q.ID = "orders"
		}
		if _, err := w.d.Change(ctx, q); err != nil { // what the bridge's handler calls
			t.Fatal(err)
		}
	}
	rollback := func(version uint64, dry bool) *control.RollbackResult {
		t.Helper()
		r, err := person.Rollback(ctx, &control.RollbackRequest{ID: "orders", Version: version, DryRun: dry})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	brief := func() string {
		t.Helper()
		h, err := person.History(ctx, "orders")
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, v := range h.Versions {
			if v.Time == "" || v.Wrapper != nil {
				t.Errorf("version %d: %+v", v.Version, v)
			}
			s := fmt.Sprintf("%d %s %s", v.Version, v.Author, v.Action)
			if v.Current {
				s += " current"
			}
			out = append(out, s)
		}
		if !h.Saved {
			out = append(out, "gone")
		}
		if h.Saved != (h.Until == "") {
			t.Errorf("saved %t, until %q", h.Saved, h.Until)
		}
		return strings.Join(out, ", ")
	}
	human("create", orders("one", `,"exposeAsTool":true`))
	agent("update", orders("two", ""))
	if _, err := person.Apply(ctx, &control.ApplyRequest{Documents: []control.ApplyDocument{{Source: "-", Wrapper: orders("three", "")}}}); err != nil {
		t.Fatal(err)
	}
	agent("delete", nil)
	want := "1 human saved, 2 agent saved, 3 human saved, 4 agent removed"
	if got := brief(); got != want+", gone" {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if r, err := person.Removed(ctx); err != nil || len(r.Removed) != 1 || r.Removed[0].ID != "orders" || r.Removed[0].Until == "" {
		t.Errorf("removed: %v, %v", r, err)
	}

	dry := rollback(1, true)
	if got := brief(); got != want+", gone" || dry.Action != "created" || !dry.DryRun || !dry.Exposed {
		t.Errorf("a dry run: %s, %+v", got, dry)
	}
	r := rollback(1, false)
	if r.Action != "created" || r.Tool != "wrap_orders" || !r.Exposed || r.Before != nil || !bytes.Contains(r.After, []byte(`"one"`)) {
		t.Errorf("%+v", r)
	}
	if w, err := person.Wrapper(ctx, "orders"); err != nil || !bytes.Equal(w, r.After) {
		t.Errorf("stored: %s, %v", w, err)
	}
	if r := rollback(1, false); r.Action != "unchanged" || r.After != nil {
		t.Errorf("the same again: %+v", r)
	}
	if r := rollback(2, false); r.Action != "updated" || r.Exposed || !bytes.Contains(r.Before, []byte(`"one"`)) {
		t.Errorf("%+v", r)
	}
	want += ", 5 human saved, 6 human saved current"
	if got := brief(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	v, err := person.Version(ctx, "orders", 3)
	if err != nil || !bytes.Contains(v.Wrapper, []byte(`"three"`)) || v.Author != "human" {
		t.Errorf("%+v, %v", v, err)
	}

	fails := func(id string, version uint64, code fault.Code) {
		t.Helper()
		_, err := person.Rollback(ctx, &control.RollbackRequest{ID: id, Version: version})
		if !fault.Is(err, code) {
			t.Errorf("rollback %s %d: %v, want %s", id, version, err, code)
		}
	}
	fails("orders", 4, "BAD_REQUEST") // the removal
	fails("orders", 7, "VERSION_NOT_FOUND")
	fails("nothing", 1, "WRAPPER_NOT_FOUND")
	// Another wrapper has taken the id, in other letters.
	agent("delete", nil)
	if _, err := person.Change(ctx, &api.ChangeRequest{Action: "create", Wrapper: bytes.Replace(orders("x", ""), []byte(`"orders"`), []byte(`"Orders"`), 1)}); err != nil {
		t.Fatal(err)
	}
	fails("orders", 1, "WRAPPER_EXISTS")

	page, err := person.Audit(ctx, 100)
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for _, row := range page.Rows {
		if row.Wrapper == "orders" {
			rows = append(rows, row.Action+" "+row.Author)
		}
	}
	trail := []string{
		"wrapper created human", "wrapper updated agent", "wrapper updated human", "wrapper deleted agent",
		"wrapper created human", "wrapper updated human", "wrapper deleted agent",
	}
	if diff := cmp.Diff(trail, rows); diff != "" {
		t.Errorf("trail (-want +got):\n%s", diff)
	}
}

// An edit that was begun on another version is refused, over the socket too.
func TestApplyOfAnOldVersion(t *testing.T) {
	w := newWorld(t, nil, outbound.Options{})
	person := control.NewClient(w.cfg.ControlSocket, control.ClientOptions{})
	ctx := t.Context()
	r, err := person.Change(ctx, &api.ChangeRequest{Action: "create", Wrapper: orders("one", "")})
	if err != nil {
		t.Fatal(err)
	}
	h, err := person.History(ctx, "orders")
	if err != nil {
		t.Fatal(err)
	}
	q := &control.ApplyRequest{Documents: []control.ApplyDocument{{Source: "-", Wrapper: orders("two", ""), Seen: h.Versions[0].SHA256}}}
	if got, err := person.Apply(ctx, q); err != nil || got.Changes[0].Action != "updated" || !bytes.Equal(got.Changes[0].Before, r.Wrapper) {
		t.Errorf("%v, %v", got, err)
	}
	q.Documents[0].Wrapper = orders("three", "")
	_, err = person.Apply(ctx, q)
	var f *fault.Error
	if !errors.As(err, &f) || f.Code != "WRAPPER_CHANGED" || f.Hint == "" {
		t.Errorf("%v, want WRAPPER_CHANGED", err)
	}
}

// Lint says of each wrapper what is missing, and of writes whether a person is
// asked.
func TestLint(t *testing.T) {
	w := newWorld(t, nil, outbound.Options{})
	person := control.NewClient(w.cfg.ControlSocket, control.ClientOptions{})
	ctx := t.Context()
	careful := newWorld(t, map[string]string{"HB_WRAP_APPROVAL": "first"}, outbound.Options{})
	for _, doc := range []string{
		`{"schemaVersion":1,"id":"good","description":"Gives one thing.","request":{"url":"https://api.example.com/x"},"response":{"schemaVersion":1,"fields":{"A":"a"}}}`,
		`{"schemaVersion":1,"id":"make","description":"Makes one.","request":{"method":"POST","url":"https://api.example.com/x"},"response":{"schemaVersion":1,"fields":{"A":"a"}}}`,
		`{"schemaVersion":1,"id":"plain","request":{"url":"http://api.example.com/x"}}`,
	} {
		if _, err := person.Change(ctx, &api.ChangeRequest{Action: "create", Wrapper: json.RawMessage(doc)}); err != nil {
			t.Fatal(err)
		}
		careful.create(doc)
	}
	brief := func(id string) string {
		t.Helper()
		r, err := person.Lint(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, l := range r.Wrappers {
			s := l.ID + ":" + l.Problem
			for _, w := range l.Warnings {
				if w.Message == "" || w.Hint == "" || w.Field == "" {
					t.Errorf("without words: %+v", w)
				}
				s += " " + w.Code
			}
			out = append(out, s)
		}
		return strings.Join(out, "; ")
	}
	if got, want := brief(""), "good:; make: WRITES_UNASKED; plain: NO_DESCRIPTION NO_FIELDS POLICY_SCHEME"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	set := func(wrapper, policy string) {
		t.Helper()
		if _, err := person.SetApprovalPolicy(ctx, &control.ApprovalPolicyChange{Wrapper: wrapper, Policy: policy}); err != nil {
			t.Fatal(err)
		}
	}
	for _, policy := range []string{"first", "always", "off"} { // off: said of this version
		set("make", policy)
		if got := brief("make"); got != "make:" {
			t.Errorf("policy %s: %s", policy, got)
		}
	}
	set("make", "default")
	if got := brief("make"); got != "make: WRITES_UNASKED" {
		t.Errorf("without a policy: %s", got)
	}
	person = control.NewClient(careful.cfg.ControlSocket, control.ClientOptions{})
	if got := brief("make"); got != "make:" {
		t.Errorf("where everything is asked about: %s", got)
	}
	if _, err := person.Lint(ctx, "nothing"); !fault.Is(err, "WRAPPER_NOT_FOUND") {
		t.Errorf("%v", err)
	}
}
