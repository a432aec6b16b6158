package tui

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/control"
)

// maxSample bounds a sample's file, in bytes: an answer may have 5 MB.
const maxSample = 5 << 20

// A subject is what is tried: a saved wrapper, or a document that is not saved.
type subject struct {
	id  string
	doc json.RawMessage // nil: the saved one
}

func (s subject) request() *api.TestRequest {
	if s.doc != nil {
		return &api.TestRequest{Wrapper: s.doc}
	}
	return &api.TestRequest{ID: s.id}
}

func (m *model) tryWrapper(id string) tea.Cmd {
	return m.do("reading "+id, func(ctx context.Context) then {
		doc, err := m.o.Backend.Wrapper(ctx, id)
		return func(m *model) tea.Cmd {
			if err != nil {
				m.fail(err)
				return nil
			}
			return m.try(subject{id: id}, doc)
		}
	})
}

// try shows the exact request of a call, after it has asked for the arguments
// that the document takes.
func (m *model) try(s subject, doc json.RawMessage) tea.Cmd {
	ms, err := parseMembers(doc)
	if err != nil {
		m.fail(err)
		return nil
	}
	var in struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
	}
	_ = json.Unmarshal(ms.get("inputSchema"), &in)
	if len(in.Properties) == 0 {
		return m.dryRun(s, nil, nil)
	}
	var args members
	for _, name := range in.Required {
		args.set(name, "")
	}
	names := make([]string, 0, len(in.Properties))
	for name := range in.Properties {
		names = append(names, name)
	}
	slices.Sort(names)
	m.push(&form{
		name: "Dry run of " + s.id, saves: "dry run",
		fields: []*field{
			text("args", "Arguments", string(args.bytes()), clean("A JSON object with: "+strings.Join(names, ", ")+". Nothing is sent.")),
			action("Dry run", "Shows the exact request. Nothing is sent.", func(m *model, f *form) tea.Cmd { return f.save(m, f) }),
		},
		save: func(m *model, f *form) tea.Cmd {
			args := json.RawMessage(f.value("args"))
			if _, err := parseMembers(args); err != nil {
				f.problems = []string{"the arguments must be one JSON object, as {\"city\": \"Oslo\"}"}
				return nil
			}
			f.problems = nil
			return m.dryRun(s, args, f)
		},
	})
	return nil
}

// dryRun shows a plan; what is wrong with the arguments is shown in f.
func (m *model) dryRun(s subject, args json.RawMessage, f *form) tea.Cmd {
	q := s.request()
	q.Args = args
	return m.do("planning the call", func(ctx context.Context) then {
		r, err := m.o.Backend.Test(ctx, q)
		return func(m *model) tea.Cmd {
			switch {
			case err != nil && f != nil && m.open(f):
				f.problems = shortProblems(err)
			case err != nil:
				m.fail(err)
			case r.Plan != nil:
				m.push(newPager("Dry run of "+s.id+": nothing was sent", planLines(r.Plan)))
			}
			return nil
		}
	})
}

// shortProblems are an error's problems and hint, for the foot of a form.
func shortProblems(err error) []string {
	e := faultOf(err)
	var out []string
	for _, d := range e.Details {
		text := d.Message
		if d.Field != "" && !strings.HasPrefix(text, d.Field) {
			text = d.Field + ": " + text
		}
		out = append(out, clean(text))
	}
	if len(out) == 0 {
		out = append(out, clean(string(e.Code)+": "+e.Message))
	}
	if e.Hint != "" {
		out = append(out, clean(e.Hint))
	}
	return out
}

func planLines(p *api.Plan) []string {
	rows := [][2]string{{"writes", yesNo(p.Mutating)}, {"credential", "none"}}
	if p.Secret != "" {
		rows[1][1] = clean(p.Secret)
	}
	if p.MaxPages > 1 {
		rows = append(rows, [2]string{"requests", fmt.Sprintf("up to %d, a page each; the first is shown", p.MaxPages)})
	}
	lines := append(facts(rows), "")
	lines = append(lines, requestLines(&p.Request)...)
	for _, r := range p.Refused {
		lines = append(lines, "", clean("would be refused: "+r.Code+": "+r.Message))
		if r.Hint != "" {
			lines = append(lines, "    "+clean(r.Hint))
		}
	}
	return append(lines, warningLines(p.Warnings)...)
}

func requestLines(r *api.Request) []string {
	lines := []string{"  " + control.Visible(r.Method+" "+r.URL)}
	if hs, err := parseMembers(r.Headers); err == nil {
		for _, h := range hs {
			lines = append(lines, "  "+control.Visible(h.key+": "+hs.text(h.key)))
		}
	}
	if len(r.Body) == 0 {
		return lines
	}
	body := pretty(r.Body)
	if s := ""; r.BodyType != "" && json.Unmarshal(r.Body, &s) == nil {
		body = s
	}
	lines = append(lines, "")
	for _, l := range exactLines(body) {
		lines = append(lines, "  "+l)
	}
	return lines
}

func warningLines(ws []api.Warning) []string {
	var lines []string
	for _, w := range ws {
		s := w.Message
		if w.Field != "" {
			s = w.Field + ": " + s
		}
		if w.Hint != "" {
			s += " (" + w.Hint + ")"
		}
		lines = append(lines, clean("warning: "+s))
	}
	if len(lines) > 0 {
		lines = append([]string{""}, lines...)
	}
	return lines
}

func (m *model) sampleWrapper(id string) tea.Cmd { return m.sample(subject{id: id}) }

// sample asks for an answer of the API and shows how it would look.
func (m *model) sample(s subject) tea.Cmd {
	f := &form{name: "How an answer of the API looks with " + s.id, saves: "show"}
	f.save = func(m *model, f *form) tea.Cmd {
		data, err := readSample(f.value("file"))
		if err != nil {
			f.problems = []string{clean(err.Error())}
			return nil
		}
		f.problems = nil
		return m.renderSample(s, data)
	}
	f.fields = []*field{
		text("file", "File", "", "A file with an answer of the API, as it came. Nothing is sent."),
		action("Show it", "Renders the file with the wrapper's recipe. Nothing is sent.", func(m *model, f *form) tea.Cmd { return f.save(m, f) }),
		action("Paste the answer in the editor", "Opens your editor on an empty file.", func(m *model, _ *form) tea.Cmd {
			return m.edit("sample.json", nil, func(m *model, data []byte) tea.Cmd {
				if len(data) == 0 {
					m.say("the file is empty; nothing to show")
					return nil
				}
				return m.renderSample(s, data)
			})
		}),
	}
	m.push(f)
	return nil
}

func readSample(path string) ([]byte, error) {
	if path == "" {
		return nil, fmt.Errorf("name a file, or paste the answer in the editor")
	}
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			path = home + "/" + rest
		}
	}
	st, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading the sample: %w", err)
	case !st.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a file", path)
	case st.Size() > maxSample:
		return nil, fmt.Errorf("%s has more than %d MiB", path, maxSample>>20)
	}
	return os.ReadFile(path)
}

func (m *model) renderSample(s subject, data []byte) tea.Cmd {
	q := s.request()
	if q.Sample = data; !json.Valid(data) {
		q.Sample = encode(string(data))
	}
	return m.do("rendering the sample", func(ctx context.Context) then {
		r, err := m.o.Backend.Test(ctx, q)
		return func(m *model) tea.Cmd {
			switch {
			case err != nil:
				m.fail(err)
			case r.Run != nil:
				m.push(newPager("A sample with "+s.id+": nothing was sent", resultLines(r.Run)))
			}
			return nil
		}
	})
}

// resultLines are an answer as an agent reads it, and what there is to say of it.
func resultLines(r *api.RunResult) []string {
	var lines []string
	if r.Markdown != nil {
		lines = append(lines, cleanLines(*r.Markdown)...)
	}
	lines = append(lines, "")
	if r.Status != nil {
		lines = append(lines, fmt.Sprintf("status %d after %d ms", *r.Status, r.DurationMs))
	}
	note := fmt.Sprintf("%s, %d shown", plural(r.Meta.Selected, "item", "items"), r.Meta.Rendered)
	if r.Meta.Truncated {
		note += ", cut: " + r.Meta.Reason
	}
	lines = append(lines, clean(note))
	if len(r.Meta.EmptyFields) > 0 {
		lines = append(lines, clean("empty in every item: "+strings.Join(r.Meta.EmptyFields, ", ")))
	}
	for _, w := range r.Meta.Warnings {
		lines = append(lines, clean("warning: "+w))
	}
	return append(lines, warningLines(r.Warnings)...)
}
