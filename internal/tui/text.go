package tui

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/hyperbolic-gateway/hb-rest/internal/control"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// clean makes one line of printable text: nothing in it can steer a terminal.
func clean(s string) string { return fault.Shorten(s, math.MaxInt) }

func cleaned(lines []string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = clean(l)
	}
	return out
}

// cleanLines is clean for a text of several lines.
func cleanLines(s string) []string {
	lines := strings.Split(strings.TrimRight(strings.ReplaceAll(s, "\r\n", "\n"), "\n"), "\n")
	for i, l := range lines {
		lines[i] = clean(strings.ReplaceAll(l, "\t", "    "))
	}
	return lines
}

// exactLines is exact for a text of several lines.
func exactLines(s string) []string {
	lines := strings.Split(strings.TrimSuffix(s, "\n"), "\n")
	for i, l := range lines {
		lines[i] = control.Visible(l)
	}
	return lines
}

// cut shortens a line to width columns.
func cut(s string, width int) string { return ansi.Truncate(s, max(width, 0), "…") }

// pad makes a line width columns long.
func pad(s string, width int) string {
	s = cut(s, width)
	return s + strings.Repeat(" ", max(0, width-ansi.StringWidth(s)))
}

// wrap breaks lines at spaces, or within what is longer than a line, and indents
// the parts that follow as far as the line itself, or as what stands behind a
// name (see facts): no part of a text from outside begins a line of ours. The
// text has no looks.
func wrap(lines []string, width int) []string {
	var out []string
	for _, l := range lines {
		if ansi.StringWidth(l) <= width {
			out = append(out, l)
			continue
		}
		first := hanging(l, width/2)
		head, indent := l[:first], strings.Repeat(" ", first)
		for rest := l[first:]; rest != ""; head = indent {
			part := ansi.Truncate(rest, width-first, "")
			if part == "" { // no room for one character
				break
			}
			if len(part) < len(rest) && rest[len(part)] != ' ' {
				if i := strings.LastIndexByte(part, ' '); i > 0 {
					part = part[:i]
				}
			}
			out = append(out, head+strings.TrimRight(part, " "))
			rest = strings.TrimLeft(rest[len(part):], " ")
		}
	}
	return out
}

// hanging is where the text of a line begins: behind its blanks, or behind a
// name and two blanks.
func hanging(l string, most int) int {
	at := len(l) - len(strings.TrimLeft(l, " "))
	if at == 0 {
		if i := strings.Index(l, "  "); i > 0 && i < factName {
			at = len(l) - len(strings.TrimLeft(l[i:], " "))
		}
	}
	return min(at, most)
}

// factName is the longest name of a fact.
const factName = 16

// facts are lines of a name and what it is.
func facts(rows [][2]string) []string {
	widest := 0
	for _, r := range rows {
		widest = max(widest, len(r[0]))
	}
	var lines []string
	for _, r := range rows {
		lines = append(lines, strings.TrimRight(pad(r[0], widest+2)+r[1], " "))
	}
	return lines
}

// pretty is JSON as people read it; other text comes back as it is.
func pretty(doc []byte) string {
	var b bytes.Buffer
	if json.Indent(&b, bytes.TrimSpace(doc), "", "  ") != nil {
		return string(doc)
	}
	return b.String()
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

func day(at string) string { return clean(at[:min(len(at), len("2006-01-02"))]) }

// clock is the time of day of an RFC 3339 moment, where the person is.
func (m *model) clock(moment string) string { return m.local(moment, "15:04:05") }

func (m *model) local(moment, layout string) string {
	at, err := time.Parse(time.RFC3339, moment)
	if err != nil {
		return clean(moment)
	}
	return at.In(m.o.Now().Location()).Format(layout)
}

// The looks. Nothing is said by a colour alone: the program's output drops
// colours where NO_COLOR asks for it.

func bold(s string) string    { return ansi.Style{}.Bold().Styled(s) }
func faint(s string) string   { return ansi.Style{}.Faint().Styled(s) }
func reverse(s string) string { return ansi.Style{}.Reverse(true).Styled(s) }
func green(s string) string   { return ansi.Style{}.ForegroundColor(ansi.Green).Styled(s) }
func yellow(s string) string  { return ansi.Style{}.ForegroundColor(ansi.Yellow).Styled(s) }
func red(s string) string     { return ansi.Style{}.ForegroundColor(ansi.Red).Styled(s) }
func plain(s string) string   { return s }
