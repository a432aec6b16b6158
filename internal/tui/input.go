package tui

import (
	"strings"
	"unicode"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// maxTyped bounds a typed line, in characters: a URL may have 16 KiB.
const maxTyped = 20_000

// An input is one line that a person types. It is our own because bubbles'
// runs programs to reach the clipboard; a terminal pastes by itself.
type input struct {
	text []rune
	at   int
}

func (in *input) set(s string) { in.text = []rune(clean(s)); in.at = len(in.text) }

func (in *input) value() string { return strings.TrimSpace(string(in.text)) }

// add types s at the cursor, without what is not printable. It reports whether
// all of it had room.
func (in *input) add(s string) bool {
	var typed []rune
	for _, r := range clean(s) {
		if !unicode.IsControl(r) {
			typed = append(typed, r)
		}
	}
	whole := len(in.text)+len(typed) <= maxTyped
	if !whole {
		typed = typed[:max(0, maxTyped-len(in.text))]
	}
	in.text = append(in.text[:in.at:in.at], append(typed, in.text[in.at:]...)...)
	in.at += len(typed)
	return whole
}

// key edits the line, and reports whether it knows the key.
func (in *input) key(k tea.KeyPressMsg) bool {
	switch k.String() {
	case "left", "ctrl+b":
		in.at = max(0, in.at-1)
	case "right", "ctrl+f":
		in.at = min(len(in.text), in.at+1)
	case "home", "ctrl+a":
		in.at = 0
	case "end", "ctrl+e":
		in.at = len(in.text)
	case "backspace", "ctrl+h":
		if in.at > 0 {
			in.drop(in.at-1, in.at)
		}
	case "delete":
		if in.at < len(in.text) {
			in.drop(in.at, in.at+1)
		}
	case "ctrl+u":
		in.drop(0, in.at)
	case "ctrl+k":
		in.drop(in.at, len(in.text))
	case "ctrl+w", "alt+backspace":
		from := in.at
		for from > 0 && in.text[from-1] == ' ' {
			from--
		}
		for from > 0 && in.text[from-1] != ' ' {
			from--
		}
		in.drop(from, in.at)
	default:
		if k.Text == "" || k.Mod&^tea.ModShift != 0 {
			return false
		}
		in.add(k.Text)
	}
	return true
}

func (in *input) drop(from, to int) {
	in.text = append(in.text[:from:from], in.text[to:]...)
	in.at = from
}

// view is the part of the line around the cursor that fits into width, and the
// column of the cursor in it.
func (in *input) view(width int) (line string, cursor int) {
	from, to := in.at, in.at
	for from > 0 && cursor+runeWidth(in.text[from-1]) < width {
		from--
		cursor += runeWidth(in.text[from])
	}
	for w := cursor; to < len(in.text) && w+runeWidth(in.text[to]) <= width; to++ {
		w += runeWidth(in.text[to])
	}
	return string(in.text[from:to]), cursor
}

func runeWidth(r rune) int { return ansi.StringWidth(string(r)) }
