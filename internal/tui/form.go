package tui

import (
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// A form is a screen of fields, one of which has the focus. It is our own
// because huh's fields run programs of their own (an editor, the clipboard), and
// its plain prompts do not end with the input.
type form struct {
	name     string
	fields   []*field
	at       int
	top      int
	problems []string // of the last try to save; clean
	changed  bool
	save     func(m *model, f *form) tea.Cmd
	saves    string // what saving is called
}

// A field is a line of text, a choice among a few words, a fixed text, or, with
// do, something to do.
type field struct {
	name    string
	label   string
	hint    string // shown while it has the focus
	in      input
	choices []choice // nil: a text
	chosen  int
	fixed   bool
	do      func(m *model, f *form) tea.Cmd // on enter
	enter   func(m *model, f *form) (cmd tea.Cmd, took bool)
	hidden  func(f *form) bool
	touched func(f *form) // after each change of its text
}

type choice struct{ value, label string }

func (f *form) field(name string) *field {
	for _, d := range f.fields {
		if d.name == name {
			return d
		}
	}
	return nil
}

// value is a field's text, or the value chosen.
func (f *form) value(name string) string {
	d := f.field(name)
	switch {
	case d == nil:
		return ""
	case d.choices != nil:
		return d.choices[d.chosen].value
	}
	return d.in.value()
}

func text(name, label, value, hint string) *field {
	d := &field{name: name, label: label, hint: hint}
	d.in.set(value)
	return d
}

func pick(name, label, value, hint string, choices ...choice) *field {
	d := &field{name: name, label: label, hint: hint, choices: choices}
	d.choose(value)
	return d
}

func action(label, hint string, do func(m *model, f *form) tea.Cmd) *field {
	return &field{label: label, hint: hint, do: do}
}

func (d *field) choose(value string) {
	for i, c := range d.choices {
		if c.value == value {
			d.chosen = i
		}
	}
}

func (d *field) isText() bool { return d.choices == nil && !d.fixed && d.do == nil }

// focusable lists the fields that can have the focus.
func (f *form) focusable() []int {
	var out []int
	for i, d := range f.fields {
		if !d.fixed && (d.hidden == nil || !d.hidden(f)) {
			out = append(out, i)
		}
	}
	return out
}

// step moves the focus by n fields.
func (f *form) step(n int) {
	can := f.focusable()
	for i, at := range can {
		if at >= f.at {
			f.at = can[max(0, min(i+n, len(can)-1))]
			return
		}
	}
	f.at = can[len(can)-1]
}

func (f *form) focused() *field {
	f.step(0)
	return f.fields[f.at]
}

func (f *form) key(m *model, k tea.KeyPressMsg) tea.Cmd {
	d, name := f.focused(), k.String()
	switch name {
	case "esc":
		if f.changed {
			m.ask(func(m *model) tea.Cmd { m.close(f); return nil }, "Leave without saving what you have changed?")
			return nil
		}
		m.close(f)
		return nil
	case "ctrl+s":
		return f.save(m, f)
	case "tab", "down":
		f.step(1)
		return nil
	case "shift+tab", "up":
		f.step(-1)
		return nil
	case "enter":
		if d.do != nil {
			return d.do(m, f)
		}
		if d.enter != nil {
			if cmd, took := d.enter(m, f); took {
				return cmd
			}
		}
		if can := f.focusable(); f.at == can[len(can)-1] {
			return f.save(m, f)
		}
		f.step(1)
		return nil
	}
	switch {
	case d.choices != nil:
		was := d.chosen
		switch n := len(d.choices); name {
		case "right", "space", "l":
			d.chosen = (d.chosen + 1) % n
		case "left", "h":
			d.chosen = (d.chosen + n - 1) % n
		}
		f.changed = f.changed || was != d.chosen
	case d.isText():
		was := string(d.in.text)
		d.in.key(k)
		f.edited(d, was)
	}
	return nil
}

func (f *form) edited(d *field, was string) {
	if string(d.in.text) == was {
		return
	}
	f.changed = true
	if d.touched != nil {
		d.touched(f)
	}
}

func (f *form) paste(m *model, s string) {
	d := f.focused()
	if !d.isText() {
		return
	}
	was := string(d.in.text)
	if !d.in.add(s) {
		m.warn("what was pasted was too long and has been cut")
	}
	f.edited(d, was)
}

// labelWidth is the width of the names of fields.
const labelWidth = 15

func (f *form) lines(_ *model, width, height int) ([]string, *tea.Position) {
	focused := f.focused()
	var body []string
	var cursor *tea.Position
	line := 0
	for _, d := range f.fields {
		if d.hidden != nil && d.hidden(f) {
			continue
		}
		mark := "  "
		if d == focused {
			mark, line = "> ", len(body)
		}
		room := width - len(mark) - labelWidth
		switch {
		case d.do != nil:
			s := "[ " + d.label + " ]"
			if d == focused {
				s = reverse(s)
			}
			body = append(body, mark+s)
			continue
		case d.choices != nil:
			s := clean(d.choices[d.chosen].label)
			if d == focused {
				s = reverse("< " + cut(s, room-4) + " >")
			}
			body = append(body, mark+pad(d.label, labelWidth)+s)
		case d.fixed:
			body = append(body, mark+pad(d.label, labelWidth)+faint(cut(string(d.in.text), room)))
		default:
			s, at := d.in.view(room - 1)
			if d == focused {
				cursor = &tea.Position{X: len(mark) + labelWidth + at}
				s += strings.Repeat("_", max(0, min(30, room-1)-ansi.StringWidth(s)))
			}
			body = append(body, mark+pad(d.label, labelWidth)+s)
		}
	}
	foot := []string{""}
	if focused.hint != "" {
		foot = append(foot, wrap([]string{clean(focused.hint)}, width)...)
	}
	for _, p := range wrap(cleaned(f.problems), width) {
		foot = append(foot, red(p))
	}
	out := []string{bold(cut(clean(f.name), width)), ""}
	foot = foot[:min(len(foot), height/2)]
	room := max(height-len(out)-len(foot), 1)
	f.top = max(0, min(f.top, len(body)-room))
	f.top = max(min(f.top, line), line-room+1)
	if cursor != nil {
		cursor.Y = len(out) + line - f.top
	}
	out = append(out, body[f.top:min(len(body), f.top+room)]...)
	return append(out, foot...), cursor
}

func (f *form) keys(*model) string {
	d := f.focused()
	keys := "tab next  "
	switch {
	case d.do != nil:
		keys += "enter do it  "
	case d.choices != nil:
		keys += "←→ choose  "
	}
	saves := f.saves
	if saves == "" {
		saves = "save"
	}
	return keys + "ctrl+s " + saves + "  esc leave"
}

func (f *form) typing() bool { return true }
