package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

var formats = []string{api.FormatMarkdown, api.FormatJSON, api.FormatBoth}

type runOptions struct {
	app      *app
	id       string
	file     string // wrapper test: an unsaved document
	sample   string // wrapper test: a file with an answer to render
	live     bool   // wrapper test: send it
	args     argFlags
	format   string
	maxPages int
	maxItems int
	fields   []string
	json     bool
}

// A scope is how much of an answer is asked for.
type scope struct {
	format   string
	maxPages *int
	maxItems *int
	fields   []string
}

func (o *runOptions) addFlags(cmd *cobra.Command) {
	o.args.add(cmd)
	cmd.Flags().StringVar(&o.format, "format", "", "what to print: `markdown|json|both` (markdown)")
	oneOf(cmd, "format", formats...)
	cmd.Flags().IntVar(&o.maxPages, "max-pages", 0, "read at most this many pages, 1 to 25; as the recipe says when not given")
	cmd.Flags().IntVar(&o.maxItems, "max-items", 0, "show at most this many items, 1 to 1000; never more than the recipe says")
	cmd.Flags().StringSliceVar(&o.fields, "fields", nil, "show only these columns or record keys, `A,B`, in this order")
	addJSON(cmd, &o.json)
}

// check reads what the flags mean.
func (o *runOptions) check(cmd *cobra.Command) (s scope, err error) {
	if o.format != "" && !slices.Contains(formats, o.format) {
		return s, usage("--format is %q; use markdown, json or both", o.format)
	}
	for _, n := range []struct {
		flag  string
		value *int
		most  int
		asked **int
	}{{"max-pages", &o.maxPages, api.MaxPagesCap, &s.maxPages}, {"max-items", &o.maxItems, api.MaxItemsCap, &s.maxItems}} {
		if !cmd.Flags().Changed(n.flag) {
			continue
		}
		if *n.value < 1 || *n.value > n.most {
			return s, usage("--%s is %d, not a whole number from 1 to %d", n.flag, *n.value, n.most)
		}
		*n.asked = n.value
	}
	if cmd.Flags().Changed("fields") && len(o.fields) == 0 {
		return s, usage("--fields names no field")
	}
	if o.format == "" && !o.json {
		o.format = api.FormatMarkdown
	}
	s.format, s.fields = o.format, o.fields
	return s, nil
}

func (a *app) wrapperRunCommand() *cobra.Command {
	o := &runOptions{app: a}
	cmd := &cobra.Command{
		Use:   "run ID",
		Short: "Call a wrapper and print its answer",
		Long: `Calls a wrapper, as an agent would, and prints its answer: Markdown, the records
as JSON, or both. With --json it prints everything that is known of the call.

--arg NAME=VALUE sets one argument. The value becomes a number, true, false,
null, an array or an object when it is written like one and the wrapper's input
schema does not say that the argument is a string. An argument that is an array
may be given several times, once for each element. --args takes all arguments
as one JSON object; an --arg of the same name wins.`,
		Example: `  hbrestd wrapper run orders.list
  hbrestd wrapper run orders.list --arg status=open --arg limit=5 --format json
  hbrestd wrapper run orders.list --fields Number,Total --max-items 5
  echo '{"city":"Oslo"}' | hbrestd wrapper run weather --args -`,
		Args: takes(1, 1, "the id of a wrapper"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.id = args[0]
			return o.run(cmd)
		},
		ValidArgsFunction: a.completeIDs(1),
	}
	o.addFlags(cmd)
	return cmd
}

func (o *runOptions) run(cmd *cobra.Command) error {
	ctx := cmd.Context()
	s, err := o.check(cmd)
	if err != nil {
		return err
	}
	d, err := o.app.daemon()
	if err != nil {
		return err
	}
	args, err := o.args.build(o.app, func() (json.RawMessage, error) { return d.Wrapper(ctx, o.id) })
	if err != nil {
		return err
	}
	r, err := d.Run(ctx, &api.RunRequest{ID: o.id, Args: args, Format: s.format, MaxPages: s.maxPages, MaxItems: s.maxItems, Fields: s.fields})
	if err != nil {
		return err
	}
	return o.print(r)
}

func (a *app) wrapperTestCommand() *cobra.Command {
	o := &runOptions{app: a}
	cmd := &cobra.Command{
		Use:   "test ID | test --file FILE",
		Short: "Show the exact request of a call without sending it, or render a sample",
		Long: `Shows the request that a call would send, and sends nothing. When policy or a
missing credential would stop the call, it says so and exits as the call would.
With --sample it renders an answer from a file instead, and with --live it does
send the request. --file takes a document that is not saved yet.`,
		Example: `  hbrestd wrapper test orders.list --arg status=open
  hbrestd wrapper test --file orders.json --sample answer.json`,
		Args: takes(0, 1, "the id of a wrapper"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				o.id = args[0]
			}
			return o.test(cmd)
		},
		ValidArgsFunction: a.completeIDs(1),
	}
	cmd.Flags().StringVarP(&o.file, "file", "f", "", "test the document in this `file` (- is stdin) instead of a saved wrapper")
	cmd.Flags().StringVar(&o.sample, "sample", "", "render the answer in this `file` (- is stdin)")
	cmd.Flags().BoolVar(&o.live, "live", false, "send the request")
	o.addFlags(cmd)
	return cmd
}

func (o *runOptions) test(cmd *cobra.Command) error {
	ctx := cmd.Context()
	s, err := o.check(cmd)
	if err != nil {
		return err
	}
	switch {
	case (o.id == "") == (o.file == ""):
		return usage("give the id of a wrapper, or --file with a document")
	case o.live && o.sample != "":
		return usage("--live and --sample do not go together")
	}
	q := &api.TestRequest{ID: o.id, Format: s.format, MaxPages: s.maxPages, MaxItems: s.maxItems, Fields: s.fields}
	if err := o.readTest(q); err != nil {
		return err
	}
	d, err := o.app.daemon()
	if err != nil {
		return err
	}
	q.Args, err = o.args.build(o.app, func() (json.RawMessage, error) {
		if q.Wrapper != nil {
			return q.Wrapper, nil
		}
		return d.Wrapper(ctx, o.id)
	})
	if err != nil {
		return err
	}
	if o.live {
		q.DryRun = new(bool)
	}
	r, err := d.Test(ctx, q)
	switch {
	case err != nil:
		return err
	case r.Plan != nil:
		return o.printPlan(r.Plan)
	case r.Run == nil:
		return errors.New("the daemon answered neither a plan nor a result")
	}
	return o.print(r.Run)
}

// readTest reads the files of a test.
func (o *runOptions) readTest(q *api.TestRequest) error {
	if stdins(o.file, o.sample, o.args.whole) > 1 {
		return usage("stdin (-) can be read once only")
	}
	if o.file != "" {
		docs, problems, err := o.app.readDocuments([]string{o.file})
		switch {
		case err != nil:
			return err
		case len(problems) > 0:
			return fault.New("BAD_JSON", "%s: %s", problems[0].Field, problems[0].Message).With(fault.Field(problems[0].Field), fault.Hint("Give one wrapper document."))
		case len(docs) != 1:
			return usage("%s holds %d documents; test one", o.file, len(docs))
		}
		q.Wrapper = docs[0].Wrapper
	}
	if o.sample == "" {
		return nil
	}
	data, err := o.app.readInput(o.sample)
	if err != nil {
		return err
	}
	v, err := decodeText(o.sample, data)
	if err != nil {
		return err
	}
	q.Sample = recipe.Encode(v)
	return nil
}

// print writes a result: the answer to stdout, what there is to say about it to
// stderr.
func (o *runOptions) print(r *api.RunResult) error {
	if o.json {
		return o.app.printJSON(r)
	}
	return o.app.printResult(r, o.format, o.maxItems)
}

// printResult prints a result; maxItems is what the command line asked for, 0
// for nothing.
func (a *app) printResult(r *api.RunResult, format string, maxItems int) error {
	var b strings.Builder
	if r.Markdown != nil && format != api.FormatJSON {
		b.WriteString(strings.TrimRight(*r.Markdown, "\n") + "\n")
	}
	if format != api.FormatMarkdown {
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(pretty(r.Records))
	}
	if err := a.print(b.String()); err != nil {
		return err
	}
	for _, note := range resultNotes(r, maxItems) {
		a.say("%s", note)
	}
	a.warnings("", r.Warnings)
	return nil
}

// resultNotes say how much of the data a result is, and what looks wrong.
func resultNotes(r *api.RunResult, maxItems int) []string {
	var notes []string
	m := r.Meta
	shown := m.Rendered
	if m.Shown != nil {
		shown = *m.Shown
	}
	if p := r.Paging; p != nil {
		note := fmt.Sprintf("%s read", plural(p.Pages, "page", "pages"))
		if p.More {
			note += ", there are more (" + strings.ReplaceAll(p.Stopped, "_", " ") + ")"
		}
		if p.Error != nil {
			note += fmt.Sprintf("; page %d failed: %s %s", p.Pages+1, p.Error.Code, p.Error.Message)
			if p.Error.RetryAfterMs > 0 {
				note += fmt.Sprintf(" (try again after %d s)", (p.Error.RetryAfterMs+999)/1000)
			}
		}
		notes = append(notes, strings.TrimSpace(note))
	}
	onPages := m.Reason == "items" && shown == m.Selected // what is missing was not read, as the line before says
	if m.Truncated && !onPages || shown < m.Selected {
		note := fmt.Sprintf("showing %d of %d items", shown, m.Selected)
		if m.Reason == "items" && maxItems > 0 && maxItems <= m.Rendered {
			note += ", cut by --max-items"
		} else if m.Reason != "" {
			note += ", cut by the recipe's limit of " + m.Reason
		}
		notes = append(notes, note)
	}
	if len(m.EmptyFields) > 0 {
		notes = append(notes, "empty in every item: "+strings.Join(m.EmptyFields, ", "))
	}
	if x := r.Indexed; x != nil {
		switch {
		case x.Skipped != "":
			notes = append(notes, "not indexed: "+x.Skipped)
		case x.Documents > 0 || x.Error == nil:
			notes = append(notes, "indexed "+counted(x.Documents, "doc", "docs"))
		}
		if x.Error != nil {
			notes = append(notes, fmt.Sprintf("index failed: %s %s", x.Error.Code, x.Error.Message))
		}
	}
	return append(notes, m.Warnings...)
}

// printPlan writes a request as it would be sent, and what would stop it.
func (o *runOptions) printPlan(p *api.Plan) error {
	if o.json {
		if err := o.app.printJSON(p); err != nil {
			return err
		}
	} else {
		if err := o.app.print(requestText(&p.Request)); err != nil {
			return err
		}
		if p.Secret != "" {
			o.app.say("the credential %s would be added", p.Secret)
		}
		if p.Mutating {
			o.app.say("this call counts as a write")
		}
		o.app.warnings("", p.Warnings)
	}
	if len(p.Refused) == 0 {
		return nil
	}
	first := p.Refused[0]
	e := fault.New(fault.Code(first.Code), "a real call would be refused: %s", first.Message).With(fault.Field(first.Field))
	if first.Hint != "" {
		e = e.With(fault.Hint("%s", first.Hint))
	}
	for _, r := range p.Refused[1:] {
		e.Details = append(e.Details, fault.Detail{Field: r.Field, Code: fault.Code(r.Code), Message: r.Message, Hint: r.Hint})
	}
	return e
}

// requestText is a request as HTTP writes it, but with the whole URL.
func requestText(r *api.Request) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n", clean(r.Method), clean(r.URL))
	if v, err := recipe.Decode(r.Headers, recipe.DecodeLimits{}); err == nil {
		headers, _ := v.(recipe.Object)
		for _, h := range headers {
			fmt.Fprintf(&b, "%s: %s\n", clean(h.Key), clean(plain(h.Value)))
		}
	}
	if len(r.Body) > 0 {
		v, err := recipe.Decode(r.Body, recipe.DecodeLimits{})
		if s, isText := v.(string); err == nil && isText && r.BodyType != "" { // a JSON text is sent with its quotes
			fmt.Fprintf(&b, "\n%s\n", s)
		} else {
			fmt.Fprintf(&b, "\n%s\n", compactJSON(r.Body))
		}
	}
	return b.String()
}

func plain(v recipe.Value) string {
	if s, ok := v.(string); ok {
		return s
	}
	return string(recipe.Encode(v))
}

// argFlags are the arguments of a call, as flags.
type argFlags struct {
	pairs []string // NAME=VALUE
	whole string   // JSON, "@file" or "-"
}

func (f *argFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringArrayVarP(&f.pairs, "arg", "a", nil, "an argument, `NAME=VALUE`; may be given several times")
	cmd.Flags().StringVar(&f.whole, "args", "", "all arguments as a JSON object, `JSON|@FILE|-`")
}

// build makes the arguments of a call; nil is none. document is asked for the
// wrapper only when its input schema is needed.
func (f *argFlags) build(a *app, document func() (json.RawMessage, error)) (json.RawMessage, error) {
	if f.whole == "" && len(f.pairs) == 0 {
		return nil, nil
	}
	args, err := f.readWhole(a)
	if err != nil {
		return nil, err
	}
	if len(f.pairs) == 0 {
		return json.RawMessage(recipe.Encode(args)), nil
	}
	doc, err := document()
	if err != nil {
		return nil, err
	}
	types := argTypes(doc)
	given := map[string]int{} // name: place in args of what --arg gave
	for _, pair := range f.pairs {
		name, text, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return nil, usage("--arg %q is not NAME=VALUE", pair)
		}
		t := types[name]
		at, again := given[name]
		switch {
		case again && !t.list:
			return nil, usage("the argument %q is given twice, and is not an array", name)
		case again:
			args[at].Value = append(args[at].Value.(recipe.Array), t.element(text)...)
		default:
			args = slices.DeleteFunc(args, func(m recipe.Member) bool { return m.Key == name })
			for n := range given {
				given[n] = slices.IndexFunc(args, func(m recipe.Member) bool { return m.Key == n })
			}
			given[name] = len(args)
			args = append(args, recipe.Member{Key: name, Value: t.value(text)})
		}
	}
	return json.RawMessage(recipe.Encode(args)), nil
}

// readWhole reads the value of --args.
func (f *argFlags) readWhole(a *app) (recipe.Object, error) {
	name, text := "--args", []byte(f.whole)
	var err error
	switch file, isFile := strings.CutPrefix(f.whole, "@"); {
	case f.whole == "":
		return recipe.Object{}, nil
	case f.whole == "-":
		name = "stdin"
		text, err = a.readInput("-")
	case isFile:
		name = file
		text, err = a.readInput(file)
	}
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("--args: %w", err)
		}
		return nil, err
	}
	v, err := decodeText(name, text)
	if err != nil {
		return nil, err
	}
	o, ok := v.(recipe.Object)
	if !ok {
		return nil, fault.New("ARGS_INVALID", "%s is not a JSON object", name).With(fault.Hint(`Write {"name": value}.`))
	}
	return o, nil
}

// An argType is what a schema says of an argument, as far as it matters for
// reading words of a command line.
type argType struct {
	text bool     // it is a string
	list bool     // it is an array
	item *argType // of its elements
}

// argTypes reads the input schema of a wrapper's document. What it does not
// understand is left for the daemon to judge.
func argTypes(doc json.RawMessage) map[string]argType {
	types := map[string]argType{}
	v, err := recipe.Decode(doc, recipe.DecodeLimits{})
	if err != nil {
		return types
	}
	properties, _ := member(member(v, "inputSchema"), "properties").(recipe.Object)
	for _, p := range properties {
		types[p.Key] = typeOf(p.Value, 0)
	}
	return types
}

func typeOf(schema recipe.Value, depth int) argType {
	var t argType
	names, several := member(schema, "type").(recipe.Array)
	if !several {
		names = recipe.Array{member(schema, "type")}
	}
	t.text, t.list = slices.Contains(names, recipe.Value("string")), slices.Contains(names, recipe.Value("array"))
	if t.list && depth < 2 {
		item := typeOf(member(schema, "items"), depth+1)
		t.item = &item
	}
	return t
}

func member(v recipe.Value, key string) recipe.Value {
	o, _ := v.(recipe.Object)
	m, _ := o.Get(key)
	return m
}

// value reads a word as what the schema wants; a word that does not look like
// it stays a string, for the daemon to judge.
func (t argType) value(word string) recipe.Value {
	if t.list {
		return recipe.Array(t.element(word))
	}
	if t.text {
		return word
	}
	v, err := recipe.Decode([]byte(word), recipe.DecodeLimits{})
	if _, quoted := v.(string); err != nil || quoted {
		return word
	}
	return v
}

// element reads a word as one element of an array, or as an array of them.
func (t argType) element(word string) []recipe.Value {
	if v, err := recipe.Decode([]byte(word), recipe.DecodeLimits{}); err == nil {
		if list, ok := v.(recipe.Array); ok {
			return list
		}
	}
	item := argType{}
	if t.item != nil {
		item = *t.item
	}
	return []recipe.Value{item.value(word)}
}
