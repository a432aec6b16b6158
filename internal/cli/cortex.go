package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/control"
)

type cortexOptions struct {
	app     *app
	query   string
	wrapper string
	since   string
	before  string
	limit   int
	all     bool
	yes     bool
	json    bool
}

func (a *app) cortexCommand() *cobra.Command {
	return noun(&cobra.Command{
		Use:   "cortex",
		Short: "Search and forget what wrappers have read",
		Long: `What a wrapper reads is kept in an index on this machine when its recipe has
"index": "cortex", so that it can be found again without calling the API:
docs/cortex.md. Agents search it with the tool recall_memory.`,
		Example: "  hbrestd cortex search refund limit\n  hbrestd cortex stats\n  hbrestd cortex forget --wrapper handbook.pages",
	}, a.cortexSearchCommand(), a.cortexStatsCommand(), a.cortexForgetCommand(), a.cortexRebuildCommand())
}

func (a *app) cortexSearchCommand() *cobra.Command {
	o := &cortexOptions{app: a}
	cmd := &cobra.Command{
		Use:   "search WORD...",
		Short: "Search what wrappers have read, best first",
		Long: `Searches in plain words. "Quoted words" must stand together; the shell needs
quotes around them: hbrestd cortex search '"refund limit" spain'. Nothing is
called. --since takes a day (2026-11-30), a time (2026-11-30T08:00:00Z) or an
age (12h, 7d, 4w).

For a program the columns are: title, wrapper, time it was read, URL, headings,
passage.`,
		Example: "  hbrestd cortex search refund limit\n  hbrestd cortex search invoice 2026 --wrapper billing.list --since 30d --json",
		Args:    takes(1, -1, "what to search for"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.query = strings.Join(args, " ")
			return o.search(cmd.Context())
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().StringVar(&o.wrapper, "wrapper", "", "only what the wrapper with this `ID` read")
	cmd.Flags().StringVar(&o.since, "since", "", "only what was read since: a day, a time or an age (`WHEN`)")
	cmd.Flags().IntVarP(&o.limit, "limit", "n", api.RecallDefault, "how many documents, at most "+strconv.Itoa(api.RecallMost))
	addJSON(cmd, &o.json)
	return cmd
}

func (o *cortexOptions) search(ctx context.Context) error {
	if o.limit < 1 || o.limit > api.RecallMost {
		return usage("--limit is %d, not a whole number from 1 to %d", o.limit, api.RecallMost)
	}
	d, err := o.app.daemon()
	if err != nil {
		return err
	}
	r, err := d.Recall(ctx, &api.RecallRequest{Query: o.query, Wrapper: o.wrapper, Since: o.since, Limit: o.limit})
	if err != nil {
		return err
	}
	if o.json {
		return o.app.printJSON(r)
	}
	if len(r.Documents) == 0 {
		if r.Note == "" {
			r.Note = "nothing found"
		}
		o.app.say("%s", r.Note)
		return nil
	}
	if o.app.width() == 0 {
		var rows [][]string
		for _, f := range r.Documents {
			rows = append(rows, []string{f.Title, f.Wrapper, f.ReadAt, f.URL, f.Heading, f.Snippet})
		}
		return o.app.print(separated(rows))
	}
	var b strings.Builder
	for i, f := range r.Documents {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%s\n  %s, read %s\n", clean(f.Title), clean(f.Wrapper), f.AgeText())
		if f.URL != "" {
			fmt.Fprintf(&b, "  %s\n", clean(f.URL))
		}
		if f.Heading != "" && f.Heading != f.Title {
			fmt.Fprintf(&b, "  %s\n", clean(f.Heading))
		}
		fmt.Fprintf(&b, "  %s\n", clean(f.Snippet))
	}
	return o.app.print(b.String())
}

func (a *app) cortexStatsCommand() *cobra.Command {
	o := &cortexOptions{app: a}
	cmd := &cobra.Command{
		Use:   "stats",
		Short: "Show what the index holds, and of which wrappers",
		Long: `Shows the size of the index, its limit (the setting cortex-max-mb), and how many
documents of which wrapper it holds. A wrapper that was removed leaves what it
has read.

For a program there is a line for each wrapper: id, documents, time of the
newest, "saved" or "removed".`,
		Example: "  hbrestd cortex stats\n  hbrestd cortex stats --json",
		Args:    takes(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.stats(cmd.Context()) },
	}
	addJSON(cmd, &o.json)
	return cmd
}

func (o *cortexOptions) stats(ctx context.Context) error {
	d, err := o.app.daemon()
	if err != nil {
		return err
	}
	s, err := d.CortexStats(ctx)
	if err != nil {
		return err
	}
	if o.json {
		return o.app.printJSON(s)
	}
	if s.Recovered != "" {
		o.app.warn("%s", s.Recovered)
	}
	t := table{header: []string{"WRAPPER", "DOCUMENTS", "NEWEST", "STATE"}}
	for _, w := range s.Wrappers {
		t.add(w.Wrapper, strconv.Itoa(w.Documents), w.Newest, map[bool]string{true: "saved", false: "removed"}[w.Saved])
	}
	if o.app.width() == 0 {
		return o.app.print(separated(t.rows))
	}
	rows := [][2]string{
		{"documents", fmt.Sprintf("%d, in %d parts", s.Documents, s.Chunks)},
		{"size", fmt.Sprintf("%s of at most %s", megabytes(s.Bytes), megabytes(s.MaxBytes))},
	}
	if s.Documents > 0 {
		rows = append(rows, [2]string{"read", "from " + s.Oldest + " to " + s.Newest})
	}
	text := facts(append(rows, [2]string{"file", s.Path}))
	if len(t.rows) > 0 {
		text += "\n" + aligned(t, o.app.width(), true)
	}
	return o.app.print(text)
}

// megabytes is a size as people read it.
func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }

func (a *app) cortexForgetCommand() *cobra.Command {
	o := &cortexOptions{app: a}
	cmd := &cobra.Command{
		Use:   "forget",
		Short: "Take documents out of the index",
		Long: `Takes out what one wrapper has read, what was read before some time, what fits
both, or everything. On a terminal it asks first. What is forgotten is
overwritten in the file; it can be read again from the API.

--before takes a day (2026-11-30), a time (2026-11-30T08:00:00Z) or an age (12h,
7d, 4w): "--before 30d" forgets what was last read more than 30 days ago.`,
		Example: "  hbrestd cortex forget --wrapper handbook.pages\n  hbrestd cortex forget --before 30d\n  hbrestd cortex forget --all --yes",
		Args:    takes(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.forget(cmd.Context()) },
	}
	cmd.Flags().StringVar(&o.wrapper, "wrapper", "", "what the wrapper with this `ID` has read; it need not exist any more")
	cmd.Flags().StringVar(&o.before, "before", "", "what was read before: a day, a time or an age (`WHEN`)")
	cmd.Flags().BoolVar(&o.all, "all", false, "everything, damaged files that were kept included")
	cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	addJSON(cmd, &o.json)
	return cmd
}

func (o *cortexOptions) forget(ctx context.Context) error {
	some := o.wrapper != "" || o.before != ""
	switch {
	case some && o.all:
		return usage("--all forgets everything; leave it out, or --wrapper and --before")
	case !some && !o.all:
		return usage("nothing says what to forget: --wrapper ID, --before WHEN or --all")
	}
	d, err := o.app.daemon()
	if err != nil {
		return err
	}
	if !o.yes {
		if err := o.app.confirm(ctx, "Forget "+o.meant()+"?"); err != nil {
			return err
		}
	}
	r, err := d.CortexForget(ctx, &control.CortexForget{Wrapper: o.wrapper, Before: o.before, All: o.all})
	if err != nil {
		return err
	}
	if o.json {
		return o.app.printJSON(r)
	}
	return o.app.print("forgot " + counted(r.Documents, "document", "documents") + "\n")
}

// meant is what forget is about, in words.
func (o *cortexOptions) meant() string {
	what := "everything that wrappers have read"
	if o.wrapper != "" {
		what = "what " + o.wrapper + " has read"
	}
	if o.before != "" {
		what += " before " + o.before
	}
	return what
}

func (a *app) cortexRebuildCommand() *cobra.Command {
	o := &cortexOptions{app: a}
	cmd := &cobra.Command{
		Use:   "rebuild",
		Short: "Write the index anew from what can be read of it",
		Long: `Writes the file of the index anew, which gives back room that is lost in it and
mends what can be mended. Runs of wrappers go on meanwhile; what they read in
that time may not be indexed.`,
		Example: "  hbrestd cortex rebuild",
		Args:    takes(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.rebuild(cmd.Context()) },
	}
	addJSON(cmd, &o.json)
	return cmd
}

func (o *cortexOptions) rebuild(ctx context.Context) error {
	d, err := o.app.daemon()
	if err != nil {
		return err
	}
	r, err := d.CortexRebuild(ctx)
	if err != nil {
		return err
	}
	if o.json {
		return o.app.printJSON(r)
	}
	return o.app.print("the index has " + counted(r.Documents, "document", "documents") + "\n")
}

// forgetWrappers takes what removed wrappers have read out of the index, or
// says how that is done. A removal that is done is not undone by a failure here.
func (a *app) forgetWrappers(ctx context.Context, d control.Backend, ids []string, forget bool) error {
	if forget {
		for _, id := range ids {
			if _, err := d.CortexForget(ctx, &control.CortexForget{Wrapper: id}); err != nil {
				a.warn("%s was removed, but what it has read was not forgotten", id)
				return err
			}
		}
		return nil
	}
	s, err := d.CortexStats(ctx)
	if err != nil {
		return nil
	}
	left := map[string]int{}
	for _, w := range s.Wrappers {
		left[w.Wrapper] = w.Documents
	}
	for _, id := range ids {
		if n := left[id]; n > 0 {
			a.say("%s that %s has read can still be found; `hbrestd cortex forget --wrapper %s` forgets them", counted(n, "document", "documents"), id, id)
		}
	}
	return nil
}
