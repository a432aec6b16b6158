package tui

import (
	"fmt"

	tea "charm.land/bubbletea/v2"
)

// A pager is a text that can be longer than the screen.
type pager struct {
	name   string
	text   []string
	top    int
	page   int // the lines shown last
	total  int
	read   bool                              // its end has been shown
	does   map[string]func(m *model) tea.Cmd // further keys
	doKeys string                            // what they are, for the foot
}

func newPager(name string, text []string) *pager { return &pager{name: name, text: text} }

func (p *pager) key(m *model, k tea.KeyPressMsg) tea.Cmd {
	name := k.String()
	if do := p.does[name]; do != nil {
		return do(m)
	}
	if to, ok := moved(name, p.top, max(p.page-1, 1), p.total); ok {
		p.top = max(0, min(to, p.total-p.page))
		return nil
	}
	switch name {
	case "esc", "q", "backspace", "left":
		m.close(p)
	}
	return nil
}

func (p *pager) lines(_ *model, width, height int) ([]string, *tea.Position) {
	text := wrap(cleaned(p.text), width-1)
	p.page, p.total = height-2, len(text)
	p.top = max(0, min(p.top, p.total-p.page))
	end := min(p.top+p.page, p.total)
	p.read = p.read || end == p.total
	where := ""
	if p.total > p.page {
		where = fmt.Sprintf("  (lines %d-%d of %d)", p.top+1, end, p.total)
	}
	out := []string{bold(cut(clean(p.name), width-len(where))) + faint(where), ""}
	return append(out, text[p.top:end]...), nil
}

func (p *pager) keys(*model) string {
	keys := "esc back"
	if p.total > p.page {
		keys = "↑↓ scroll  " + keys
	}
	if p.doKeys != "" {
		keys = p.doKeys + "  " + keys
	}
	return keys + "  ? help"
}

func (p *pager) typing() bool         { return false }
func (p *pager) paste(*model, string) {}

// A question is answered with yes or no. Only y is yes.
type question struct {
	text []string
	yes  func(m *model) tea.Cmd
	no   func(m *model) tea.Cmd // nil: nothing
}

// ask puts a question before the person.
func (m *model) ask(yes func(m *model) tea.Cmd, lines ...string) {
	m.push(&question{text: lines, yes: yes})
}

func (q *question) key(m *model, k tea.KeyPressMsg) tea.Cmd {
	switch k.String() {
	case "y", "Y":
		m.close(q)
		return q.yes(m)
	case "n", "N", "esc", "enter", "q":
		m.close(q)
		if q.no != nil {
			return q.no(m)
		}
		m.say("nothing was changed")
	}
	return nil
}

func (q *question) lines(_ *model, width, _ int) ([]string, *tea.Position) {
	out := []string{""}
	for _, l := range wrap(cleaned(q.text), width-4) {
		out = append(out, "  "+l)
	}
	return append(out, "", "  "+bold("y")+" yes    "+bold("n")+" no"), nil
}

func (q *question) keys(*model) string   { return "y yes  n no" }
func (q *question) typing() bool         { return false }
func (q *question) paste(*model, string) {}
