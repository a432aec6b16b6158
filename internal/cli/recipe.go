package cli

import (
	"encoding/json"
	"slices"

	"github.com/spf13/cobra"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/redact"
	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

func (a *app) recipeCommand() *cobra.Command {
	return noun(&cobra.Command{
		Use:   "recipe",
		Short: "Check and draft recipes; no daemon is needed",
		Long: `A recipe says what to show of a JSON answer; docs/recipe-format.md describes it.
These commands work on files alone: nothing is sent, and no daemon is asked.`,
		Example: "  hbrestd recipe derive answer.json > recipe.json\n  hbrestd recipe test recipe.json answer.json",
	}, a.recipeTestCommand(), a.recipeDeriveCommand())
}

type recipeOptions struct {
	app       *app
	file      string
	samples   []string // of test: one for each page of an answer
	name      string
	maxFields int
	format    string
	json      bool
}

func (a *app) recipeTestCommand() *cobra.Command {
	o := &recipeOptions{app: a}
	cmd := &cobra.Command{
		Use:   "test RECIPE [ANSWER...]",
		Short: "Check a recipe, and render answers with it",
		Long: `Checks a recipe and names everything that is wrong in it. With answers it prints
what an agent would see; several answers are the pages of one list. RECIPE may
be a whole wrapper document, whose recipe is then used. "-" is stdin.
Exit code 6: the recipe, or an answer, is not valid.`,
		Example: "  hbrestd recipe test recipe.json\n  curl -s https://api.example.com/orders | hbrestd recipe test orders.json -",
		Args:    takes(1, -1, "the file of a recipe"),
		RunE: func(_ *cobra.Command, args []string) error {
			o.file, o.samples = args[0], args[1:]
			return o.test()
		},
	}
	cmd.Flags().StringVar(&o.format, "format", api.FormatMarkdown, "what to print: `markdown|json|both`")
	oneOf(cmd, "format", formats...)
	cmd.Flags().StringVar(&o.name, "name", "", "the heading when the recipe has no title")
	addJSON(cmd, &o.json)
	return cmd
}

func (o *recipeOptions) test() error {
	if !slices.Contains(formats, o.format) {
		return usage("--format is %q; use markdown, json or both", o.format)
	}
	if stdins(append([]string{o.file}, o.samples...)...) > 1 {
		return usage("stdin (-) can be read once only")
	}
	rec, name, err := o.readRecipe()
	if err != nil {
		return err
	}
	if o.name != "" {
		name = o.name
	}
	if len(o.samples) == 0 {
		if o.json {
			return o.app.printJSON(struct {
				OK bool `json:"ok"`
			}{true})
		}
		return o.app.print("the recipe is valid\n")
	}
	var pages []*recipe.Page
	for _, sample := range o.samples {
		data, err := o.app.readInput(sample)
		if err != nil {
			return err
		}
		page, err := rec.Read(data, rec.Limits.MaxItems, nil)
		if err != nil {
			if _, err := decodeText(sample, data); err != nil {
				return err
			}
			return fault.New("SAMPLE_INVALID", "%s: %v", sample, err)
		}
		pages = append(pages, page)
	}
	return o.print(rec.Render(pages, recipe.RenderOptions{Name: name}))
}

// readRecipe reads and checks the recipe, and gives the name of the wrapper
// that it stands in.
func (o *recipeOptions) readRecipe() (*recipe.Recipe, string, error) {
	data, err := o.app.readInput(o.file)
	if err != nil {
		return nil, "", err
	}
	doc, err := decodeText(o.file, data)
	if err != nil {
		return nil, "", err
	}
	name := ""
	if whole, ok := doc.(recipe.Object); ok {
		if _, isWrapper := whole.Get("request"); isWrapper {
			name, _ = member(whole, "name").(string)
			if doc, ok = whole.Get("response"); !ok {
				return recipe.Plain(), name, nil
			}
		}
	}
	options := recipe.ParseOptions{CredentialName: func(name string) bool {
		return redact.CredentialQuery(name) || redact.CredentialHeader(name)
	}}
	rec, report := options.Parse(doc)
	for _, w := range report.Warnings {
		o.app.warnings("", []api.Warning{{Field: w.Field, Code: w.Code, Message: w.Message, Hint: w.Hint}})
	}
	if rec != nil {
		return rec, name, nil
	}
	details := make([]fault.Detail, 0, len(report.Problems))
	for _, p := range report.Problems {
		details = append(details, fault.Detail{Field: p.Field, Code: fault.Code(p.Code), Message: p.Message, Hint: p.Hint})
	}
	return nil, "", fault.New("WRAPPER_INVALID", "%s: the recipe has %s", o.file, plural(len(details), "problem", "problems")).
		With(fault.Details(details), fault.Hint("docs/recipe-format.md describes each key."))
}

func (o *recipeOptions) print(r *recipe.Result) error {
	records := make(recipe.Array, 0, len(r.Records))
	records = append(records, r.Records...)
	m := r.Meta
	shown := m.Shown
	out := &api.RunResult{
		OK: true, Markdown: &r.Markdown, Records: json.RawMessage(recipe.Encode(records)),
		Meta: api.Meta{
			Mode: string(m.Mode), Selected: m.Selected, Rendered: m.Rendered, Truncated: m.Truncated, Reason: m.Reason,
			Shown: &shown, EmptyFields: m.EmptyFields, Warnings: m.Warnings,
		},
	}
	if !o.json {
		return o.app.printResult(out, o.format, 0)
	}
	return o.app.printJSON(struct {
		OK       bool            `json:"ok"`
		Markdown string          `json:"markdown"`
		Records  json.RawMessage `json:"records"`
		Meta     api.Meta        `json:"meta"`
	}{true, r.Markdown, out.Records, out.Meta})
}

func (a *app) recipeDeriveCommand() *cobra.Command {
	o := &recipeOptions{app: a}
	cmd := &cobra.Command{
		Use:   "derive ANSWER",
		Short: "Draft a recipe from an answer",
		Long: `Drafts a recipe from one real answer, in a file or on stdin (-): it finds the
list, picks what a person would look at first, and gives it labels and formats.
Members that look like credentials are left out.`,
		Example: "  hbrestd recipe derive answer.json --name Orders > recipe.json\n  curl -s https://api.example.com/orders | hbrestd recipe derive -",
		Args:    takes(1, 1, "the file of an answer"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.file = args[0]
			if cmd.Flags().Changed("max-fields") && (o.maxFields < 1 || o.maxFields > 20) {
				return usage("--max-fields is %d, not a whole number from 1 to 20", o.maxFields)
			}
			return o.derive()
		},
	}
	cmd.Flags().StringVar(&o.name, "name", "", "the recipe's title")
	cmd.Flags().IntVar(&o.maxFields, "max-fields", 0, "at most this many columns or lines, 1 to 20")
	addJSON(cmd, &o.json)
	return cmd
}

func (o *recipeOptions) derive() error {
	data, err := o.app.readInput(o.file)
	if err != nil {
		return err
	}
	v, err := decodeText(o.file, data)
	if err != nil {
		return err
	}
	rec, notes := recipe.Derive(v, recipe.DeriveOptions{MaxFields: o.maxFields, Name: o.name, Skip: redact.CredentialKey})
	if rec == nil {
		why := "there is nothing to show in it"
		for _, n := range notes {
			if n.Code != "paging_hint" {
				why = n.Message
			}
		}
		return fault.New("DERIVE_NOTHING", "no recipe could be made of %s: %s", o.file, why)
	}
	doc := recipe.Encode(rec.Document())
	out := &api.DeriveResult{OK: true, Source: o.file, Recipe: doc}
	for _, n := range notes {
		if n.Code == "paging_hint" {
			out.Hints = &api.DeriveHints{Pagination: json.RawMessage(n.Message)}
			continue
		}
		out.Warnings = append(out.Warnings, n.Message)
	}
	if o.json {
		return o.app.printJSON(out)
	}
	if err := o.app.print(pretty(doc)); err != nil {
		return err
	}
	for _, w := range out.Warnings {
		o.app.warn("%s", w)
	}
	if out.Hints != nil {
		o.app.say("the list seems to have pages; if the names are right, add \"pagination\": %s", compactJSON(out.Hints.Pagination))
	}
	return nil
}
