package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hyperbolic-gateway/hb-rest/internal/control"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

type applyOptions struct {
	app    *app
	names  []string // files, folders, "-"
	yes    bool
	dryRun bool
	json   bool
}

func (a *app) wrapperApplyCommand() *cobra.Command {
	o := &applyOptions{app: a}
	cmd := &cobra.Command{
		Use:   "apply FILE|FOLDER|-...",
		Short: "Save wrappers from files, folders or stdin: all of them, or none",
		Long: `Saves wrappers: creates those that are new and updates those whose document
changed. A file holds one document, an array of documents, or several one after
another; of a folder every .json file is read, not those in folders inside; "-"
is stdin. What changes is shown. Everything that is wrong in any document is
reported at once, and then nothing is saved.

On a terminal it asks before it saves; a script is not asked. Wrappers that are
saved but not named stay as they are. What "wrapper export" wrote changes
nothing when it is applied again.`,
		Example: "  hbrestd wrapper apply weather.json\n  hbrestd wrapper apply wrappers --dry-run\n  hbrestd wrapper export | ssh elsewhere hbrestd wrapper apply -",
		Args:    takes(1, -1, "a file, a folder or - for stdin"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.names = args
			return o.run(cmd.Context())
		},
	}
	cmd.Flags().BoolVarP(&o.dryRun, "dry-run", "n", false, "show what would change, and save nothing")
	cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	addJSON(cmd, &o.json)
	return cmd
}

func (o *applyOptions) run(ctx context.Context) error {
	docs, problems, err := o.app.readDocuments(o.names)
	if err != nil {
		return err
	}
	d, err := o.app.daemon()
	if err != nil {
		return err
	}
	if len(problems) > 0 {
		return unreadable(ctx, d, docs, problems)
	}
	q := &control.ApplyRequest{Documents: docs, DryRun: o.dryRun}
	if o.asks() {
		q.DryRun = true
		preview, err := d.Apply(ctx, q)
		if err != nil {
			return err
		}
		if err := o.show(preview); err != nil {
			return err
		}
		if counted := countChanges(preview); counted.created+counted.updated == 0 {
			return nil
		}
		if err := o.app.confirm(ctx, "Save?"); err != nil {
			return err
		}
		q.DryRun = false
		if _, err := d.Apply(ctx, q); err != nil {
			return err
		}
		return o.app.print("saved\n")
	}
	r, err := d.Apply(ctx, q)
	if err != nil {
		return err
	}
	if o.json {
		return o.app.printJSON(r)
	}
	return o.show(r)
}

// asks reports whether a person is to confirm what is shown. Somebody who typed
// the documents into stdin has said enough.
func (o *applyOptions) asks() bool {
	return !o.yes && !o.dryRun && !o.json && o.app.interactive() && !slices.Contains(o.names, "-")
}

// unreadable is the error for texts that are not JSON. The documents that could
// be read are checked too, when the daemon can, so that everything is said at
// once.
func unreadable(ctx context.Context, d control.Backend, docs []control.ApplyDocument, problems []fault.Detail) error {
	n := len(problems)
	if len(docs) > 0 {
		if _, err := d.Apply(ctx, &control.ApplyRequest{Documents: docs, DryRun: true}); err != nil {
			problems = append(problems, fault.From(err).Details...)
		}
	}
	if len(problems) == 1 {
		return fault.New("BAD_JSON", "%s: %s", problems[0].Field, problems[0].Message).
			With(fault.Details(problems), fault.Hint("Nothing was saved. Mend the text at that line and column."))
	}
	return fault.New("BAD_JSON", "%s not JSON, nothing was saved", plural(n, "file is", "files are")).
		With(fault.Details(problems), fault.Hint("Mend each, then apply them again."))
}

type changeCount struct{ created, updated, unchanged int }

func countChanges(r *control.ApplyResult) changeCount {
	var c changeCount
	for _, ch := range r.Changes {
		switch ch.Action {
		case "created":
			c.created++
		case "updated":
			c.updated++
		default:
			c.unchanged++
		}
	}
	return c
}

// show prints one line for each document, what changes below it, and the sum.
func (o *applyOptions) show(r *control.ApplyResult) error {
	var b strings.Builder
	for _, c := range r.Changes {
		fmt.Fprintf(&b, "%-9s  %s", clean(c.Action), clean(c.ID))
		if c.Source != "" {
			fmt.Fprintf(&b, "  (%s)", clean(c.Source))
		}
		b.WriteByte('\n')
		if c.Action == "updated" {
			b.WriteString(indent(lineDiff(pretty(c.Before), pretty(c.After)), "    "))
		}
	}
	n := countChanges(r)
	fmt.Fprintf(&b, "%d created, %d updated, %d unchanged", n.created, n.updated, n.unchanged)
	if r.DryRun {
		b.WriteString("; nothing is saved yet")
	}
	b.WriteByte('\n')
	if err := o.app.print(b.String()); err != nil {
		return err
	}
	for _, c := range r.Changes {
		o.app.warnings(c.ID, c.Warnings)
	}
	return nil
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
