package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/config"
	"github.com/hyperbolic-gateway/hb-rest/internal/control"
)

func (a *app) wrapperCommand() *cobra.Command {
	return noun(&cobra.Command{
		Use:   "wrapper",
		Short: "List, save, run and remove wrappers",
		Long: `A wrapper is a JSON document that names one HTTP request and says how its answer
becomes readable; docs/wrapper-format.md describes it. "new" and "edit" open one
in your editor. To work on many with your own tools, export them, change the
files, and apply them again.`,
		Example: "  hbrestd wrapper list\n  hbrestd wrapper export --dir wrappers\n  hbrestd wrapper apply wrappers",
	}, a.wrapperListCommand(), a.wrapperShowCommand(), a.wrapperApplyCommand(), a.wrapperExportCommand(), a.wrapperRmCommand(),
		a.wrapperRunCommand(), a.wrapperTestCommand(), a.wrapperExposeCommand(), a.wrapperHideCommand(),
		a.wrapperNewCommand(), a.wrapperEditCommand(), a.wrapperLintCommand(), a.wrapperHistoryCommand(), a.wrapperDiffCommand(), a.wrapperRollbackCommand())
}

type wrapperOptions struct {
	app      *app
	ids      []string
	yes      bool
	forget   bool
	dryRun   bool
	hide     bool
	priority *int
	json     bool
}

func (a *app) wrapperListCommand() *cobra.Command {
	o := &wrapperOptions{app: a}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the saved wrappers",
		Long: `Lists the saved wrappers. NEEDS are the required arguments. TOOL is the name
under which MCP clients see a wrapper as a tool of its own, "hidden" when they
reach it through wrap_run alone, or why it is not shown. VERIFIED is when it
last worked, "(stale)" behind it when that is more than 30 days ago. DRIFT, when
any wrapper has it, names fields that had values and have none any more.`,
		Example: "  hbrestd wrapper list\n  hbrestd wrapper list --json",
		Args:    takes(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.list(cmd.Context()) },
	}
	addJSON(cmd, &o.json)
	return cmd
}

func (o *wrapperOptions) list(ctx context.Context) error {
	d, err := o.app.daemon()
	if err != nil {
		return err
	}
	m, err := d.Manifest(ctx, 0)
	if err != nil {
		return err
	}
	if o.json {
		return o.app.printJSON(m)
	}
	if len(m.Wrappers) == 0 {
		o.app.say("no wrapper is saved; `hbrestd wrapper apply FILE` saves one")
		return nil
	}
	ranks := m.ToolRanks()
	t := table{header: []string{"ID", "METHOD", "HOST", "NEEDS", "SECRET", "TOOL", "VERIFIED"}}
	drifts := slices.ContainsFunc(m.Wrappers, func(w api.ManifestEntry) bool { return len(w.Drift) > 0 })
	if drifts {
		t.header = append(t.header, "DRIFT")
	}
	for _, w := range m.Wrappers {
		method := w.Method
		if len(w.Methods) > 1 {
			method = strings.Join(w.Methods, "/")
		}
		cells := []string{w.ID, method, w.Host, strings.Join(w.Required, ", "), w.Secret, toolCell(w, ranks[w.ID]), verifiedCell(w)}
		if drifts {
			cells = append(cells, w.DriftNote())
		}
		t.add(cells...)
	}
	return o.app.printTable(t)
}

func verifiedCell(w api.ManifestEntry) string {
	if w.Stale {
		return w.Verified + " (stale)"
	}
	return w.Verified
}

func toolCell(w api.ManifestEntry, rank int) string {
	switch {
	case w.Damaged != "":
		return "damaged: " + w.Damaged
	case !w.ExposeAsTool:
		return "hidden"
	case w.Quarantined != "":
		return "quarantined: " + w.Quarantined
	case rank > config.DefaultMaxTools:
		return fmt.Sprintf("%s (rank %d, clients show %d)", w.Tool, rank, config.DefaultMaxTools)
	}
	return w.Tool
}

func (a *app) wrapperShowCommand() *cobra.Command {
	o := &wrapperOptions{app: a}
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Print a wrapper's document",
		Long: `Prints a wrapper's document, indented; with --json on one line. On stderr it says
when the wrapper has not worked for more than 30 days, and which of its fields
had values and have none any more.`,
		Example: "  hbrestd wrapper show orders.list",
		Args:    takes(1, 1, "the id of a wrapper"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.ids = args
			return o.show(cmd.Context())
		},
		ValidArgsFunction: a.completeIDs(1),
	}
	addJSON(cmd, &o.json)
	return cmd
}

func (o *wrapperOptions) show(ctx context.Context) error {
	d, err := o.app.daemon()
	if err != nil {
		return err
	}
	doc, err := d.Wrapper(ctx, o.ids[0])
	if err != nil {
		return err
	}
	m, err := d.Manifest(ctx, 0)
	if err != nil {
		return err
	}
	for _, w := range m.Wrappers {
		if w.ID != o.ids[0] {
			continue
		}
		if w.Stale {
			o.app.warn("%s", w.VerifiedNote())
		}
		if drift := w.DriftNote(); drift != "" {
			o.app.warn("%s; has the API changed?", drift)
		}
	}
	if o.json {
		return o.app.print(strings.TrimSpace(string(doc)) + "\n")
	}
	return o.app.print(pretty(doc))
}

func (a *app) wrapperRmCommand() *cobra.Command {
	o := &wrapperOptions{app: a}
	cmd := &cobra.Command{
		Use:   "rm ID...",
		Short: "Remove wrappers",
		Long: `Removes wrappers. On a terminal it asks first. When one of the ids does not
exist, nothing is removed. "hbrestd wrapper history" lists what was removed, and
"hbrestd wrapper rollback" brings it back, for 30 days. What it has read stays in
the index, if its recipe has "index": "cortex", unless --forget is given.`,
		Example: "  hbrestd wrapper rm orders.old\n  hbrestd wrapper rm orders.a orders.b --yes",
		Args:    takes(1, -1, "the id of a wrapper"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.ids = args
			return o.rm(cmd.Context())
		},
		ValidArgsFunction: a.completeIDs(-1),
	}
	cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	cmd.Flags().BoolVarP(&o.dryRun, "dry-run", "n", false, "say what would be removed, and remove nothing")
	cmd.Flags().BoolVar(&o.forget, "forget", false, "take what they have read out of the index too")
	addJSON(cmd, &o.json)
	return cmd
}

// A removal is the answer of `wrapper rm --json`.
type removal struct {
	OK      bool     `json:"ok"`
	DryRun  bool     `json:"dryRun"`
	Removed []string `json:"removed"`
}

func (o *wrapperOptions) rm(ctx context.Context) error {
	d, err := o.app.daemon()
	if err != nil {
		return err
	}
	ids, err := existing(ctx, d, o.ids)
	if err != nil {
		return err
	}
	if !o.yes && !o.dryRun {
		what := "Remove " + strings.Join(ids, ", ") + "?"
		if n := len(ids); n > 5 {
			what = fmt.Sprintf("Remove %d wrappers, from %s to %s?", n, ids[0], ids[n-1])
		}
		if err := o.app.confirm(ctx, what); err != nil {
			return err
		}
	}
	r := removal{OK: true, DryRun: o.dryRun, Removed: []string{}}
	word := "removed"
	if o.dryRun {
		word = "would remove"
	}
	for _, id := range ids {
		if !o.dryRun {
			if _, err := d.Change(ctx, &api.ChangeRequest{Action: "delete", ID: id}); err != nil {
				return err
			}
		}
		r.Removed = append(r.Removed, id)
		if !o.json {
			if err := o.app.print(word + " " + clean(id) + "\n"); err != nil {
				return err
			}
		}
	}
	if o.json {
		if err := o.app.printJSON(r); err != nil {
			return err
		}
	}
	if o.dryRun {
		return nil
	}
	return o.app.forgetWrappers(ctx, d, ids, o.forget)
}

// existing gives each id once; the first that does not exist is an error.
func existing(ctx context.Context, d control.Backend, ids []string) ([]string, error) {
	m, err := d.Manifest(ctx, 0)
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, w := range m.Wrappers {
		known[w.ID] = true
	}
	var once []string
	for _, id := range ids {
		if !known[id] {
			if _, err := d.Wrapper(ctx, id); err != nil { // the daemon names near ids
				return nil, err
			}
		}
		if !slices.Contains(once, id) {
			once = append(once, id)
		}
	}
	return once, nil
}

func (a *app) wrapperExposeCommand() *cobra.Command {
	o := &wrapperOptions{app: a}
	var priority int
	cmd := &cobra.Command{
		Use:   "expose ID",
		Short: "Show a wrapper to MCP clients as a tool of its own",
		Long: fmt.Sprintf(`Shows a wrapper to MCP clients as a tool of its own, with a name that it keeps.
Clients get at most %d such tools (HB_WRAP_MAX_TOOLS of hb-rest): those of the
highest priority, then by id. The others are reached through wrap_run.`, config.DefaultMaxTools),
		Example: "  hbrestd wrapper expose orders.list\n  hbrestd wrapper expose orders.list --priority 900",
		Args:    takes(1, 1, "the id of a wrapper"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.ids = args
			if cmd.Flags().Changed("priority") {
				if priority < 0 || priority > 1000 {
					return usage("--priority is %d, not a whole number from 0 to 1000", priority)
				}
				o.priority = &priority
			}
			return o.expose(cmd.Context())
		},
		ValidArgsFunction: a.completeIDs(1),
	}
	cmd.Flags().IntVar(&priority, "priority", 0, "0 to 1000, higher first; as it was when not given")
	addJSON(cmd, &o.json)
	return cmd
}

func (a *app) wrapperHideCommand() *cobra.Command {
	o := &wrapperOptions{app: a, hide: true}
	cmd := &cobra.Command{
		Use:     "hide ID",
		Short:   "Take a wrapper's own tool away; wrap_run still reaches it",
		Example: "  hbrestd wrapper hide orders.list",
		Args:    takes(1, 1, "the id of a wrapper"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.ids = args
			return o.expose(cmd.Context())
		},
		ValidArgsFunction: a.completeIDs(1),
	}
	addJSON(cmd, &o.json)
	return cmd
}

func (o *wrapperOptions) expose(ctx context.Context) error {
	d, err := o.app.daemon()
	if err != nil {
		return err
	}
	r, err := d.Expose(ctx, &control.ExposeRequest{ID: o.ids[0], Hide: o.hide, Priority: o.priority})
	if err != nil {
		return err
	}
	if o.json {
		return o.app.printJSON(r)
	}
	if !r.Exposed {
		return o.app.print(clean(r.ID) + " is hidden\n")
	}
	rank := "not shown"
	if r.Rank > 0 {
		rank = fmt.Sprintf("rank %d", r.Rank)
	}
	if err := o.app.print(fmt.Sprintf("%s is the tool %s, priority %d, %s\n", clean(r.ID), clean(r.Tool), r.Priority, rank)); err != nil {
		return err
	}
	switch {
	case r.Quarantined != "":
		o.app.warn("no client is shown this tool: %s", r.Quarantined)
	case r.Rank > config.DefaultMaxTools:
		o.app.warn("clients show the first %d tools, so not this one; give it a higher --priority, or hide others", config.DefaultMaxTools)
	}
	return nil
}

// warnings prints what is suspicious in an accepted document.
func (a *app) warnings(source string, ws []api.Warning) {
	for _, w := range ws {
		text := w.Message
		if w.Field != "" {
			text = w.Field + ": " + text
		}
		if source != "" {
			text = source + ": " + text
		}
		if w.Hint != "" {
			text += " (" + w.Hint + ")"
		}
		a.warn("%s", text)
	}
}

// compactJSON is JSON without white space, every other byte as it came.
func compactJSON(raw json.RawMessage) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(raw) != nil {
		return string(raw)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
