package tui

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// A row of a list.
type row struct {
	id    string
	cells []string
	look  func(string) string // nil: plain
}

// A list is a table of which one row is chosen. It stays on the same id when
// its rows change.
type list struct {
	header []string
	rows   []row
	at     int
	top    int    // the first row shown
	tail   bool   // the choice goes with the end as long as it is there
	want   string // the id to choose as soon as it is there
}

// set takes new rows, and what would steer a terminal out of their cells.
func (l *list) set(rows []row) {
	for _, r := range rows {
		for i, c := range r.cells {
			r.cells[i] = clean(c)
		}
	}
	id, atEnd := l.id(), l.at >= len(l.rows)-1
	l.rows = rows
	if l.tail && atEnd {
		l.at = len(rows) - 1
	} else if i := slices.IndexFunc(rows, func(r row) bool { return r.id == id }); i >= 0 {
		l.at = i
	}
	l.at = max(0, min(l.at, len(rows)-1))
	l.choose(l.want)
}

// id is the chosen row's; "" when there is none.
func (l *list) id() string {
	if l.at < 0 || l.at >= len(l.rows) {
		return ""
	}
	return l.rows[l.at].id
}

// choose chooses a row, now or when it comes.
func (l *list) choose(id string) {
	if l.want = id; id == "" {
		return
	}
	if i := slices.IndexFunc(l.rows, func(r row) bool { return r.id == id }); i >= 0 {
		l.at, l.want = i, ""
	}
}

// key moves the choice, and reports whether it knows the key.
func (l *list) key(k tea.KeyPressMsg, page int) bool {
	to, ok := moved(k.String(), l.at, page, len(l.rows)-1)
	if ok {
		l.at, l.want = max(0, min(to, len(l.rows)-1)), ""
	}
	return ok
}

// moved is where a key moves a place to, of which the last one is last.
func moved(key string, at, page, last int) (int, bool) {
	switch key {
	case "up", "k":
		return at - 1, true
	case "down", "j":
		return at + 1, true
	case "pgup", "ctrl+b":
		return at - page, true
	case "pgdown", "ctrl+f", "space":
		return at + page, true
	case "home", "g":
		return 0, true
	case "end", "G":
		return last, true
	}
	return at, false
}

// narrow is how far a column is cut to fit the screen.
const narrow = 8

// lines draws the heading and as many rows as height has room for.
func (l *list) lines(width, height int) []string {
	sizes := make([]int, len(l.header))
	cells := make([][]string, 0, len(l.rows)+1)
	cells = append(cells, l.header)
	for _, r := range l.rows {
		cells = append(cells, r.cells)
	}
	for _, line := range cells {
		for i, c := range line {
			sizes[i] = max(sizes[i], ansi.StringWidth(c), 1)
		}
	}
	fit(sizes, width-2)
	draw := func(line []string) string {
		var b strings.Builder
		for i, c := range line {
			if c == "" {
				c = "-"
			}
			b.WriteString(pad(c, sizes[i]))
			if i < len(line)-1 {
				b.WriteString("  ")
			}
		}
		return b.String()
	}
	out := []string{faint("  " + cut(draw(l.header), width-2))}
	room := max(height-1, 1)
	l.top = max(0, min(l.top, len(l.rows)-room))
	l.top = min(l.top, l.at)
	l.top = max(l.top, l.at-room+1)
	for i := l.top; i < len(l.rows) && i < l.top+room; i++ {
		line := cut(draw(l.rows[i].cells), width-2)
		switch {
		case i == l.at:
			line = reverse("> " + pad(line, width-2))
		case l.rows[i].look != nil:
			line = "  " + l.rows[i].look(line)
		default:
			line = "  " + line
		}
		out = append(out, line)
	}
	return out
}

// fit takes from the widest column until all fit into width. The first stays
// whole as long as the others can give: it is the name that a command needs.
func fit(sizes []int, width int) {
	over := 2*(len(sizes)-1) - width
	for _, n := range sizes {
		over += n
	}
	for ; over > 0 && len(sizes) > 1; over-- {
		widest := 1
		for i := 2; i < len(sizes); i++ {
			if sizes[i] >= sizes[widest] {
				widest = i
			}
		}
		if sizes[widest] <= narrow {
			sizes[0] = max(narrow, sizes[0]-over)
			return
		}
		sizes[widest]--
	}
}
