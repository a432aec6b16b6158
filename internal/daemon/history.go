package daemon

import (
	"cmp"
	"context"
	"crypto/sha256"
	"slices"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/approval"
	"github.com/hyperbolic-gateway/hb-rest/internal/audit"
	"github.com/hyperbolic-gateway/hb-rest/internal/control"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/store"
	"github.com/hyperbolic-gateway/hb-rest/internal/wrapper"
)

// by is the store for the changes of one author.
func (d *Daemon) by(a audit.Author) store.Editor { return d.store.By(store.Author(a)) }

// History lists the versions of a wrapper that are kept.
func (p person) History(_ context.Context, id string) (*control.WrapperHistory, error) {
	versions, err := p.store.History(id)
	if err != nil {
		return nil, err
	}
	out := &control.WrapperHistory{ID: id}
	for _, v := range versions {
		out.Versions = append(out.Versions, shownVersion(v))
		out.Saved = out.Saved || v.Current
	}
	for _, r := range p.store.RemovedWrappers() {
		if r.ID == id {
			out.Until = moment(r.Until)
		}
	}
	// A wrapper whose record is damaged is there, and no version is current.
	out.Saved = out.Saved || out.Until == "" && p.has(id)
	return out, nil
}

// has reports whether there is a wrapper of this id, damaged or not.
func (d *Daemon) has(id string) bool {
	_, err := d.store.Get(id)
	return !fault.Is(err, "WRAPPER_NOT_FOUND")
}

func shownVersion(v store.Version) control.WrapperVersion {
	out := control.WrapperVersion{
		Version: v.Number, Time: moment(v.Time), Author: string(v.Author), Action: "saved", Current: v.Current, Bytes: len(v.Doc), Problem: v.Damaged,
	}
	switch {
	case v.Damaged != "":
		out.Action = "damaged"
	case v.Removed():
		out.Action = "removed"
	default:
		out.SHA256 = control.Digest(sha256.Sum256(v.Doc))
	}
	return out
}

// moment is a time on the wire; "" when it is not known.
func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// Removed lists the wrappers that a rollback can bring back.
func (p person) Removed(context.Context) (*control.RemovedWrappers, error) {
	out := &control.RemovedWrappers{}
	for _, r := range p.store.RemovedWrappers() {
		out.Removed = append(out.Removed, control.RemovedWrapper{ID: r.ID, Time: moment(r.Time), Until: moment(r.Until)})
	}
	return out, nil
}

// Version is one version with its document.
func (p person) Version(_ context.Context, id string, number uint64) (*control.WrapperVersion, error) {
	v, err := p.store.VersionOf(id, number)
	if err != nil {
		return nil, err
	}
	out := shownVersion(v)
	out.Wrapper = v.Doc
	return &out, nil
}

// Rollback saves the document of an earlier version again. It passes the checks
// of any document, which may be stricter than when the version was saved.
func (p person) Rollback(ctx context.Context, r *control.RollbackRequest) (*control.RollbackResult, error) {
	_, done, err := p.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	v, err := p.store.VersionOf(r.ID, r.Version)
	if err != nil {
		return nil, err
	}
	if v.Removed() {
		return nil, fault.New("BAD_REQUEST", "version %d of wrapper %q is its removal, and has no document", r.Version, r.ID).
			With(fault.Field("version"), fault.Hint("Take an earlier version, or remove the wrapper with `hbrestd wrapper rm`."))
	}
	w, warnings, err := parse(v.Doc)
	if err != nil {
		return nil, err
	}
	changes, rev, err := p.by(audit.AuthorHuman).Apply([]*wrapper.Wrapper{w}, r.DryRun)
	if err != nil {
		return nil, err
	}
	c := changes[0]
	out := &control.RollbackResult{
		OK: true, DryRun: r.DryRun, ID: w.ID, Version: r.Version, Action: c.Action, Before: c.Before, After: c.After,
		Exposed: w.ExposeAsTool, Trusted: p.store.Trusts(w.Digest()), Warnings: append(warnings, p.refusedNow(w)...), Revision: rev,
	}
	if w.ExposeAsTool {
		out.Quarantined = wrapper.Portable(w)
		for _, e := range p.store.List() {
			if e.ID == w.ID {
				out.Tool = e.Tool
			}
		}
	}
	if r.DryRun || c.Action == store.Unchanged {
		return out, nil
	}
	words := audit.ActionWrapperUpdated
	if c.Action == store.Created {
		words = audit.ActionWrapperCreated
	}
	p.changed(ctx, action{words, audit.AuthorHuman}, w.ID)
	p.log.Info("wrapper rolled back", "id", w.ID, "version", r.Version, "revision", rev)
	return out, nil
}

// Lint looks for what is allowed in a saved wrapper and yet most likely not
// meant; "" is all of them.
func (p person) Lint(_ context.Context, id string) (*control.LintReport, error) {
	if id != "" {
		if _, err := p.store.Get(id); fault.Is(err, "WRAPPER_NOT_FOUND") {
			return nil, err
		}
	}
	out := &control.LintReport{}
	for _, e := range p.store.List() {
		if id != "" && e.ID != id {
			continue
		}
		l := control.LintedWrapper{ID: e.ID, Problem: e.Damaged}
		if e.Wrapper != nil {
			l.Warnings = append(warningsOf(wrapper.Review(e.Wrapper)), p.refusedNow(e.Wrapper)...)
			l.Warnings = append(l.Warnings, p.unasked(e.Wrapper)...)
		}
		out.Wrappers = append(out.Wrappers, l)
	}
	slices.SortFunc(out.Wrappers, func(a, b control.LintedWrapper) int { return cmp.Compare(a.ID, b.ID) })
	return out, nil
}

// unasked warns of writes that no person is asked about, unless one has said so.
func (d *Daemon) unasked(w *wrapper.Wrapper) []api.Warning {
	if !w.Writes() || d.store.Trusts(w.Digest()) || d.policyFor(w.ID, w.Digest()) != approval.Off {
		return nil
	}
	if own, ok := d.store.ApprovalPolicyOf(w.ID); ok && own.Doc == w.Digest() {
		return nil // off, and said of this very version
	}
	return []api.Warning{{
		Field: "wrapper.request.method", Code: "WRITES_UNASKED", Message: "an agent can send its writes without a person being asked",
		Hint: "`hbrestd approval policy " + w.ID + " first` asks once for each version; `" + w.ID + " off` says that this is meant",
	}}
}
