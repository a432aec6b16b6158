package tui

import (
	"strings"

	tea "charm.land/bubbletea/v2"
)

// A filter keeps the rows that have every typed word, whatever their case.
type filter struct {
	in input
	on bool // the person types into it
}

// key takes a key while the filter is typed, or the one that begins it. It
// reports whether it took it.
func (f *filter) key(k tea.KeyPressMsg) bool {
	name := k.String()
	if !f.on {
		switch {
		case name == "/":
			f.on = true
			return true
		case name == "esc" && f.in.value() != "":
			f.in.set("")
			return true
		}
		return false
	}
	switch name {
	case "enter", "down", "up", "tab":
		f.on = false
	case "esc":
		f.on = false
		f.in.set("")
	default:
		f.in.key(k)
	}
	return true
}

func (f *filter) keeps(cells ...string) bool {
	text := strings.ToLower(strings.Join(cells, " "))
	for _, word := range strings.Fields(strings.ToLower(f.in.value())) {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}

// line draws the filter, when there is one.
func (f *filter) line(width int) (string, *tea.Position, bool) {
	if !f.on && f.in.value() == "" {
		return "", nil, false
	}
	const label = "Filter: "
	text, at := f.in.view(width - len(label) - 1)
	if !f.on {
		return label + text, nil, true
	}
	return label + text, &tea.Position{X: len(label) + at}, true
}
