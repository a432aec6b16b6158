package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hyperbolic-gateway/hb-rest/internal/control"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

type pastOptions struct {
	app      *app
	id       string
	versions []uint64
	yes      bool
	dryRun   bool
	json     bool
}

func (a *app) wrapperHistoryCommand() *cobra.Command {
	o := &pastOptions{app: a}
	cmd := &cobra.Command{
		Use:   "history [ID]",
		Short: "List the versions of a wrapper, or the wrappers that were removed",
		Long: `Lists what a wrapper was after each of its last 20 changes, the newest last: when,
and whether a person (human) saved it or an agent did. The newest version by a
person is kept even when an agent has made 20 since. A removal is a version too;
the versions of a removed wrapper are kept for 30 days. Without an id it lists
the wrappers that were removed and can be brought back.`,
		Example: "  hbrestd wrapper history orders.list\n  hbrestd wrapper history",
		Args:    takes(0, 1, "the id of a wrapper"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return o.removed(cmd.Context())
			}
			o.id = args[0]
			return o.history(cmd.Context())
		},
		ValidArgsFunction: a.completeIDs(1),
	}
	addJSON(cmd, &o.json)
	return cmd
}

func (o *pastOptions) history(ctx context.Context) error {
	d, err := o.app.daemon()
	if err != nil {
		return err
	}
	h, err := d.History(ctx, o.id)
	if err != nil {
		return err
	}
	if o.json {
		return o.app.printJSON(h)
	}
	t := table{header: []string{"VERSION", "TIME", "BY", "BYTES", "WHAT"}}
	last := uint64(0) // with a document
	for _, v := range h.Versions {
		size := ""
		if v.Action == "saved" {
			size, last = strconv.Itoa(v.Bytes), v.Version
		}
		t.add(strconv.FormatUint(v.Version, 10), v.Time, v.Author, size, versionWord(v))
	}
	if err := o.app.printTable(t); err != nil {
		return err
	}
	if !h.Saved && last > 0 {
		o.app.say("%s was removed; `hbrestd wrapper rollback %s %d` brings it back, until %s", h.ID, h.ID, last, h.Until)
	}
	return nil
}

func versionWord(v control.WrapperVersion) string {
	switch {
	case v.Problem != "":
		return "cannot be read: " + v.Problem
	case v.Current:
		return v.Action + ", current"
	}
	return v.Action
}

func (o *pastOptions) removed(ctx context.Context) error {
	d, err := o.app.daemon()
	if err != nil {
		return err
	}
	r, err := d.Removed(ctx)
	if err != nil {
		return err
	}
	if o.json {
		return o.app.printJSON(r)
	}
	if len(r.Removed) == 0 {
		o.app.say("no wrapper was removed in the last 30 days")
		return nil
	}
	t := table{header: []string{"ID", "REMOVED", "KEPT UNTIL"}}
	for _, w := range r.Removed {
		t.add(w.ID, w.Time, w.Until)
	}
	return o.app.printTable(t)
}

func (a *app) wrapperDiffCommand() *cobra.Command {
	o := &pastOptions{app: a}
	cmd := &cobra.Command{
		Use:   "diff ID [A] [B]",
		Short: "Show what changed between two versions of a wrapper",
		Long: `Shows what changed from version A to version B, as a unified diff of the indented
documents. Without B it is the newest version; without A the one before it.
"hbrestd wrapper history ID" lists the versions.`,
		Example: "  hbrestd wrapper diff orders.list\n  hbrestd wrapper diff orders.list 3\n  hbrestd wrapper diff orders.list 3 5",
		Args:    takes(1, 3, "the id of a wrapper"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.read(args); err != nil {
				return err
			}
			return o.diff(cmd.Context())
		},
		ValidArgsFunction: a.completeIDs(1),
	}
	addJSON(cmd, &o.json)
	return cmd
}

// read takes an id and versions.
func (o *pastOptions) read(args []string) error {
	o.id = args[0]
	for _, arg := range args[1:] {
		n, err := strconv.ParseUint(arg, 10, 64)
		if err != nil || n == 0 {
			return usage("%q is no version: a whole number from 1, as `hbrestd wrapper history %s` lists them", arg, o.id)
		}
		o.versions = append(o.versions, n)
	}
	return nil
}

// A versionDiff is the answer of `wrapper diff --json`.
type versionDiff struct {
	ID   string                 `json:"id"`
	From control.WrapperVersion `json:"from"`
	To   control.WrapperVersion `json:"to"`
	Diff string                 `json:"diff"` // unified; empty: the same
}

func (o *pastOptions) diff(ctx context.Context) error {
	d, err := o.app.daemon()
	if err != nil {
		return err
	}
	if err := o.complete(ctx, d); err != nil {
		return err
	}
	r := versionDiff{ID: o.id}
	for i, into := range []*control.WrapperVersion{&r.From, &r.To} {
		v, err := d.Version(ctx, o.id, o.versions[i])
		if err != nil {
			return err
		}
		*into = *v
	}
	r.Diff = unified(versionName(o.id, r.From), versionName(o.id, r.To), readable(r.From.Wrapper), readable(r.To.Wrapper))
	if o.json {
		r.From.Wrapper, r.To.Wrapper = nil, nil
		return o.app.printJSON(r)
	}
	if r.Diff == "" {
		o.app.say("versions %d and %d of %s are the same", r.From.Version, r.To.Version, o.id)
		return nil
	}
	return o.app.print(r.Diff)
}

// complete adds the versions that were not named: the newest, and the one before.
func (o *pastOptions) complete(ctx context.Context, d control.Backend) error {
	if len(o.versions) == 2 {
		return nil
	}
	h, err := d.History(ctx, o.id)
	if err != nil {
		return err
	}
	n := len(h.Versions)
	if len(o.versions) == 0 {
		if n < 2 {
			return fault.New("VERSION_NOT_FOUND", "wrapper %q has one version only, and nothing to compare it with", o.id).
				With(fault.Hint("`hbrestd wrapper show %s` prints it.", o.id))
		}
		o.versions = []uint64{h.Versions[n-2].Version}
	}
	newest := o.versions[0]
	if n > 0 {
		newest = h.Versions[n-1].Version
	}
	o.versions = append(o.versions, newest)
	return nil
}

func versionName(id string, v control.WrapperVersion) string {
	name := fmt.Sprintf("%s version %d", id, v.Version)
	if v.Time != "" {
		name += " " + v.Time
	}
	if v.Author != "" {
		name += " " + v.Author
	}
	return name
}

// readable is pretty, and nothing for a version without a document.
func readable(doc json.RawMessage) string {
	if len(doc) == 0 {
		return ""
	}
	return pretty(doc)
}

func (a *app) wrapperRollbackCommand() *cobra.Command {
	o := &pastOptions{app: a}
	cmd := &cobra.Command{
		Use:   "rollback ID VERSION",
		Short: "Save an earlier version of a wrapper again",
		Long: `Saves an earlier version of a wrapper again, which makes a new version: a rollback
can be rolled back. It also brings a removed wrapper back, for 30 days after its
removal; a tool may then have another name, and has the priority 0. What changes
is shown; on a terminal it asks first.

The document is checked like any other. Rules may have become stricter since.`,
		Example: "  hbrestd wrapper rollback orders.list 3\n  hbrestd wrapper rollback orders.list 3 --dry-run",
		Args:    takes(2, 2, "the id of a wrapper, or a version,"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.read(args); err != nil {
				return err
			}
			return o.rollback(cmd.Context())
		},
		ValidArgsFunction: a.completeIDs(1),
	}
	cmd.Flags().BoolVarP(&o.dryRun, "dry-run", "n", false, "show what would change, and save nothing")
	cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	addJSON(cmd, &o.json)
	return cmd
}

func (o *pastOptions) rollback(ctx context.Context) error {
	d, err := o.app.daemon()
	if err != nil {
		return err
	}
	q := &control.RollbackRequest{ID: o.id, Version: o.versions[0], DryRun: o.dryRun}
	if !o.yes && !o.dryRun && !o.json && o.app.interactive() {
		q.DryRun = true
		preview, err := d.Rollback(ctx, q)
		if err != nil {
			return err
		}
		if err := o.show(preview); err != nil || preview.Action == "unchanged" {
			return err
		}
		if err := o.app.confirm(ctx, "Save?"); err != nil {
			return err
		}
		q.DryRun = false
		r, err := d.Rollback(ctx, q)
		if err != nil {
			return err
		}
		if err := o.app.print("saved\n"); err != nil {
			return err
		}
		o.consequences(r)
		return nil
	}
	r, err := d.Rollback(ctx, q)
	if err != nil {
		return err
	}
	if o.json {
		return o.app.printJSON(r)
	}
	if err := o.show(r); err != nil {
		return err
	}
	if r.Action != "unchanged" && !r.DryRun {
		o.consequences(r)
	}
	return nil
}

// show prints what a rollback changes.
func (o *pastOptions) show(r *control.RollbackResult) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%-9s  %s  (version %d)", clean(r.Action), clean(r.ID), r.Version)
	if r.DryRun && r.Action != "unchanged" {
		b.WriteString("; nothing is saved yet")
	}
	b.WriteByte('\n')
	if r.Action == "updated" {
		b.WriteString(indent(lineDiff(readable(r.Before), pretty(r.After)), "    "))
	}
	if err := o.app.print(b.String()); err != nil {
		return err
	}
	o.app.warnings(r.ID, r.Warnings)
	return nil
}

// consequences says what a rollback did beside the document.
func (o *pastOptions) consequences(r *control.RollbackResult) {
	var before struct {
		Exposed bool `json:"exposeAsTool"`
	}
	_ = json.Unmarshal(r.Before, &before) // nothing, for a wrapper that was brought back
	switch {
	case r.Exposed && r.Quarantined != "":
		o.app.warn("no client is shown the tool %s: %s", r.Tool, r.Quarantined)
	case r.Exposed && r.Action == "created":
		o.app.say("MCP clients see it as the tool %s, with the priority 0", r.Tool)
	case r.Exposed && !before.Exposed:
		o.app.say("MCP clients see it as the tool %s", r.Tool)
	case !r.Exposed && before.Exposed:
		o.app.say("it is no tool of its own any more; `hbrestd wrapper expose %s` makes it one", r.ID)
	}
	if r.Trusted {
		o.app.warn("this version was trusted with --trust, and is again: its writes ask nobody; `hbrestd approval policy %s default` takes that back", r.ID)
	}
}
