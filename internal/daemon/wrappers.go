package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/audit"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/store"
	"github.com/hyperbolic-gateway/hb-rest/internal/wrapper"
	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// Revision is the store's change counter.
func (d *Daemon) Revision() uint64 { return d.store.Revision() }

// Status is what `hbrestd status` and GET /wrap/status show.
func (d *Daemon) Status(context.Context) (*api.Status, error) {
	st := d.state.Load()
	policy := st.policy()
	return &api.Status{
		OK: true, Version: d.version, PID: os.Getpid(), Address: d.Addr(), Home: d.given.Home, TokenFile: d.given.TokenPath,
		StartedAt: d.started.UTC().Format(time.RFC3339), Wrappers: d.store.Len(), Damaged: d.store.Damaged(),
		Revision: d.store.Revision(), AllowPrivate: policy.AllowPrivate, AllowHTTP: policy.AllowHTTP,
		CallTimeout: st.cfg.CallTimeout.Milliseconds(), Notes: d.notes(),
	}, nil
}

// notes are what a person should know and would otherwise find in the log only.
func (d *Daemon) notes() []string {
	out := d.store.Unreadable()
	for _, s := range []string{d.store.Recovered(), d.auditFile.Recovered(), d.audit.Trouble(), d.questions()} {
		if s != "" {
			out = append(out, s)
		}
	}
	return out
}

// Manifest lists the wrappers. With the current revision it waits for the next
// one, for at most followPatience.
func (d *Daemon) Manifest(ctx context.Context, after uint64) (*api.Manifest, error) {
	return d.Select(ctx, &api.ManifestQuery{After: after})
}

// Select is Manifest of some of the wrappers. Only what is listed is made: with
// ten thousand wrappers the whole list is megabytes, for every caller.
func (d *Daemon) Select(ctx context.Context, q *api.ManifestQuery) (*api.Manifest, error) {
	if q.After != 0 && !d.strange(q.Since) {
		wait, cancel := d.patience(ctx)
		d.store.WaitRevision(wait, q.After)
		cancel()
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	// The revision and the mark are read first: with a change in between, the
	// list is newer than they say, and whoever waits behind it looks again. The
	// other way round the change would be missed.
	m := &api.Manifest{Revision: d.store.Revision(), Wrappers: []api.ManifestEntry{}}
	if q.Chooses() {
		m.Total = d.store.Len()
	}
	if q.Tools {
		m.Mark = d.store.Mark()
		if ids, known := d.store.ChangedSince(q.Since); known {
			m.Since = q.Since
			d.changedTools(m, ids)
			return m, nil
		}
	}
	entries, now := d.store.List(), d.now()
	if !q.Chooses() {
		m.Wrappers = make([]api.ManifestEntry, 0, len(entries))
	}
	for _, e := range entries {
		if q.Tools && !inToolList(e.Wrapper) || q.Query != "" && !found(e, q.Query) {
			continue
		}
		if q.Limit != 0 || q.Query != "" {
			m.Matched++
		}
		if q.Limit == 0 || len(m.Wrappers) < q.Limit {
			m.Wrappers = append(m.Wrappers, manifestEntry(e, now))
		}
	}
	return m, nil
}

// strange reports whether a caller's mark is not known here. Its list may be
// another one although the revision is the same: a store that was put back from
// a copy goes through the same numbers again.
func (d *Daemon) strange(since string) bool {
	if since == "" {
		return false
	}
	_, known := d.store.ChangedSince(since)
	return !known
}

// changedTools puts into m what became of the wrappers ids in a tool list.
func (d *Daemon) changedTools(m *api.Manifest, ids []string) {
	now, there := d.now(), map[string]bool{}
	for _, e := range d.store.Some(ids) {
		if inToolList(e.Wrapper) {
			m.Wrappers = append(m.Wrappers, manifestEntry(e, now))
			there[e.ID] = true
		}
	}
	m.Removed = slices.DeleteFunc(ids, func(id string) bool { return there[id] })
}

// inToolList reports whether a wrapper changes what tools a client is shown.
func inToolList(w *wrapper.Wrapper) bool {
	return w != nil && (w.ExposeAsTool || w.Response != nil && w.Response.Index != "")
}

func found(e store.Entry, query string) bool {
	if e.Wrapper == nil {
		return api.Finds(query, e.ID)
	}
	return api.Finds(query, e.ID, e.Wrapper.Name, e.Wrapper.Description, e.Wrapper.Host())
}

func manifestEntry(e store.Entry, now time.Time) api.ManifestEntry {
	if e.Wrapper == nil {
		return api.ManifestEntry{ID: e.ID, Damaged: e.Damaged, Required: []string{}}
	}
	w := e.Wrapper
	out := api.ManifestEntry{
		ID: w.ID, Name: w.Name, Description: w.Description, Method: w.Request.Method, Host: w.Host(),
		Required: w.Input.Required(), Secret: w.Request.Auth, Mutating: w.Mutating, ExposeAsTool: w.ExposeAsTool,
	}
	if out.Required == nil {
		out.Required = []string{}
	}
	if len(w.Request.Methods) > 1 {
		out.Methods = w.Request.Methods
	}
	if w.ExposeAsTool {
		out.Tool, out.Priority = e.Tool, e.Priority
		out.InputSchema, out.Quarantined = wrapper.Published(w)
	}
	if !e.Verified.IsZero() {
		out.Verified = e.Verified.UTC().Format(time.RFC3339)
		out.Stale = stale(e.Verified, now)
	}
	out.Drift = drift(e.Fields)
	if w.Response != nil {
		out.Index = w.Response.Index
	}
	return out
}

// Wrapper is one document as stored.
func (d *Daemon) Wrapper(_ context.Context, id string) (json.RawMessage, error) {
	w, err := d.store.Get(id)
	if err != nil {
		return nil, err
	}
	return w.Document(), nil
}

// Change creates, updates, deletes or reads a wrapper for an agent.
func (d *Daemon) Change(ctx context.Context, r *api.ChangeRequest) (*api.ChangeResult, error) {
	return d.change(ctx, r, audit.AuthorAgent)
}

func (d *Daemon) change(ctx context.Context, r *api.ChangeRequest, author audit.Author) (*api.ChangeResult, error) {
	_, done, err := d.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	switch r.Action {
	case "get":
		w, err := d.store.Get(r.ID)
		if err != nil {
			return nil, err
		}
		return &api.ChangeResult{OK: true, ID: w.ID, Wrapper: w.Document(), Revision: d.store.Revision()}, nil
	case "delete":
		rev, err := d.by(author).Delete(r.ID)
		if err != nil {
			return nil, err
		}
		d.changed(ctx, action{audit.ActionWrapperDeleted, author}, r.ID)
		d.log.Info("wrapper deleted", "id", r.ID, "revision", rev)
		return &api.ChangeResult{OK: true, ID: r.ID, Revision: rev}, nil
	}
	w, warnings, err := parse(r.Wrapper)
	if err != nil {
		return nil, err
	}
	if r.ID != "" && r.ID != w.ID {
		return nil, fault.OneProblem("BAD_REQUEST", "ID_INVALID", "body.id", "is %q, but the wrapper's own id is %q", r.ID, w.ID)
	}
	by := d.by(author)
	save, words := by.Create, audit.ActionWrapperCreated
	if r.Action == "update" {
		save, words = by.Update, audit.ActionWrapperUpdated
	}
	rev, err := save(w)
	if err != nil {
		return nil, err
	}
	d.changed(ctx, action{words, author}, w.ID)
	d.log.Info("wrapper saved", "id", w.ID, "action", r.Action, "revision", rev)
	return &api.ChangeResult{OK: true, ID: w.ID, Wrapper: w.Document(), Revision: rev, Warnings: append(warnings, d.refusedNow(w)...)}, nil
}

// refusedNow warns of what every run of a wrapper would meet, so that a person
// hears of it while the wrapper is made.
func (d *Daemon) refusedNow(w *wrapper.Wrapper) []api.Warning {
	f := d.state.Load().exec.Refused(w)
	if f == nil {
		return nil
	}
	return []api.Warning{{Field: f.Field, Code: string(f.Code), Message: "would be refused now: " + f.Message, Hint: f.Hint}}
}

// parse turns a document into a wrapper, or all its problems into one fault.
func parse(doc []byte) (*wrapper.Wrapper, []api.Warning, error) {
	w, report := wrapper.Parse(doc)
	if !report.OK() {
		f := documentFault("WRAPPER_INVALID", "the wrapper", report.Problems)
		return nil, nil, &api.CallError{Err: f, Warnings: warningsOf(report.Warnings)}
	}
	return w, append(warningsOf(report.Warnings), warningsOf(wrapper.Lint(w))...), nil
}

// documentFault lists every problem in details and the first few in the message.
func documentFault(code fault.Code, what string, problems []recipe.Problem) *fault.Error {
	details := make([]fault.Detail, 0, len(problems))
	var first []string
	for i, p := range problems {
		details = append(details, fault.Detail{Field: p.Field, Code: fault.Code(p.Code), Message: p.Message, Hint: p.Hint})
		if i < 2 {
			first = append(first, p.Field+": "+p.Message)
		}
	}
	count := "1 problem"
	if len(problems) != 1 {
		count = fmt.Sprintf("%d problems", len(problems))
	}
	return fault.New(code, "%s has %s: %s", what, count, strings.Join(first, "; ")).With(fault.Details(details))
}

func warningsOf(ps []recipe.Problem) []api.Warning {
	var ws []api.Warning
	for _, p := range ps {
		ws = append(ws, api.Warning{Field: p.Field, Code: p.Code, Message: p.Message, Hint: p.Hint})
	}
	return ws
}
