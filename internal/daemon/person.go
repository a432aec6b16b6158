package daemon

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"slices"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/audit"
	"github.com/hyperbolic-gateway/hb-rest/internal/control"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/store"
	"github.com/hyperbolic-gateway/hb-rest/internal/wrapper"
)

// person is the daemon as the control socket shows it: the same use cases,
// done by a human, and those that only a human has.
type person struct {
	*Daemon
	stop func() // asks the process to end
}

// Change is the bridge's, with another author.
func (p person) Change(ctx context.Context, r *api.ChangeRequest) (*api.ChangeResult, error) {
	return p.change(ctx, r, audit.AuthorHuman)
}

// Apply saves many documents, all or nothing. Every problem of every document
// is named before anything is written.
func (p person) Apply(ctx context.Context, r *control.ApplyRequest) (*control.ApplyResult, error) {
	_, done, err := p.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	ws := make([]*wrapper.Wrapper, 0, len(r.Documents))
	warnings := make([][]api.Warning, 0, len(r.Documents))
	var problems []fault.Detail
	seen := map[string][32]byte{}
	origins := map[string]store.Origin{}
	for _, doc := range r.Documents {
		w, warns, err := parse(doc.Wrapper)
		var f *fault.Error
		switch {
		case errors.As(err, &f):
			for _, d := range f.Details {
				d.Field = doc.Source + ": " + d.Field
				problems = append(problems, d)
			}
			continue
		case err != nil:
			return nil, err
		}
		if digest, err := hex.DecodeString(doc.Seen); err == nil && len(digest) == 32 {
			seen[w.ID] = [32]byte(digest)
		}
		if o := doc.Origin; o != nil {
			origins[w.ID] = store.Origin{Kind: o.Kind, Source: o.Source, Title: o.Title, Operation: o.Operation}
		}
		ws, warnings = append(ws, w), append(warnings, append(warns, p.refusedNow(w)...))
	}
	if len(problems) > 0 {
		return nil, fault.New("WRAPPER_INVALID", "nothing was saved: %s: %s", problems[0].Field, problems[0].Message).With(fault.Details(problems))
	}
	by := p.by(audit.AuthorHuman)
	save := func() ([]store.Change, uint64, error) { return by.ApplySeen(ws, seen, r.DryRun) }
	if len(origins) > 0 {
		save = func() ([]store.Change, uint64, error) { return by.ApplyImported(ws, origins, r.DryRun) }
	}
	changes, rev, err := save()
	if err != nil {
		return nil, err
	}
	out := &control.ApplyResult{OK: true, DryRun: r.DryRun, Revision: rev}
	for i, c := range changes {
		out.Changes = append(out.Changes, control.ApplyChange{
			Source: r.Documents[i].Source, ID: c.ID, Action: c.Action, Before: c.Before, After: c.After, Warnings: warnings[i],
		})
		if r.DryRun || c.Action == "unchanged" {
			continue
		}
		words := audit.ActionWrapperCreated
		if c.Action == "updated" {
			words = audit.ActionWrapperUpdated
		}
		p.changed(ctx, action{words, audit.AuthorHuman}, c.ID)
	}
	return out, nil
}

// Expose turns a wrapper into a tool of its own, or back.
func (p person) Expose(ctx context.Context, r *control.ExposeRequest) (*control.ExposeResult, error) {
	_, done, err := p.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	rev, err := p.by(audit.AuthorHuman).SetExposure(r.ID, !r.Hide, r.Priority)
	if err != nil {
		return nil, err
	}
	words := audit.ActionWrapperExposed
	if r.Hide {
		words = audit.ActionWrapperHidden
	}
	p.changed(ctx, action{words, audit.AuthorHuman}, r.ID)
	out := &control.ExposeResult{OK: true, ID: r.ID, Exposed: !r.Hide, Revision: rev}
	entries := p.store.List()
	if i := slices.IndexFunc(entries, func(e store.Entry) bool { return e.ID == r.ID }); i >= 0 && !r.Hide {
		out.Tool, out.Priority = entries[i].Tool, entries[i].Priority
		out.Quarantined = wrapper.Portable(entries[i].Wrapper)
	}
	out.Rank = 1 + slices.IndexFunc(ranked(entries), func(e store.Entry) bool { return e.ID == r.ID })
	return out, nil
}

// ranked is the wrappers that can be tools, those that a capped client sees
// first. Quarantined ones take no place.
func ranked(entries []store.Entry) []store.Entry {
	out := slices.DeleteFunc(slices.Clone(entries), func(e store.Entry) bool {
		return e.Wrapper == nil || !e.Wrapper.ExposeAsTool || wrapper.Portable(e.Wrapper) != ""
	})
	slices.SortStableFunc(out, func(a, b store.Entry) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.ID, b.ID))
	})
	return out
}

// Reload reads the store again.
func (p person) Reload(context.Context) (*control.ReloadResult, error) {
	rev, err := p.store.Reload()
	if err != nil {
		return nil, err
	}
	return &control.ReloadResult{OK: true, Revision: rev, Wrappers: p.store.Len(), Damaged: p.store.Damaged()}, nil
}

// Stop ends the daemon in order; it returns before the end.
func (p person) Stop(context.Context) error {
	p.log.Info("asked to stop")
	p.stop()
	return nil
}
