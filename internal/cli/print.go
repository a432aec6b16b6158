package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// The rules of everything that is printed: the answer goes to stdout and
// everything else to stderr, with the program's name before it; nothing is
// coloured; a table is for a person on a terminal and tab-separated, without a
// heading, for a program; what came from outside cannot steer the terminal.

// print writes the answer, or a part of it.
func (a *app) print(s string) error {
	if _, err := io.WriteString(a.stdout, s); err != nil {
		return fmt.Errorf("writing the answer: %w", err)
	}
	return nil
}

// say tells the person something that is not the answer.
func (a *app) say(format string, args ...any) {
	fmt.Fprintf(a.stderr, "hbrestd: %s\n", clean(fmt.Sprintf(format, args...)))
}

func (a *app) warn(format string, args ...any) { a.say("warning: "+format, args...) }

// addJSON adds the flag that makes stdout, and errors on stderr, JSON.
func addJSON(cmd *cobra.Command, v *bool) {
	cmd.Flags().BoolVar(v, "json", false, "print JSON")
}

// printJSON writes v, indented. Characters and digits stay as they are.
func (a *app) printJSON(v any) error {
	text, err := jsonText(v)
	if err != nil {
		return err
	}
	return a.print(text)
}

func jsonText(v any) (string, error) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return "", fmt.Errorf("writing JSON: %w", err)
	}
	return b.String(), nil
}

// pretty is a document as people and git like it: two spaces, members in their
// order, a final newline. Text that is not JSON comes back as it is.
func pretty(doc []byte) string {
	var b bytes.Buffer
	if json.Indent(&b, bytes.TrimSpace(doc), "", "  ") != nil {
		return string(doc)
	}
	b.WriteByte('\n')
	return b.String()
}

// clean makes one line of printable text.
func clean(s string) string { return fault.Shorten(s, math.MaxInt) }

// A table has one heading for each column.
type table struct {
	header []string
	rows   [][]string
	least  []int // the smallest width of a column; nil: what the cells need
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// narrow is how far a column is cut to fit the terminal.
const narrow = 8

// printTable writes a table for a terminal, or its rows for a program.
func (a *app) printTable(t table) error {
	width := a.width()
	if width == 0 {
		return a.print(separated(t.rows))
	}
	return a.print(aligned(t, width, true))
}

// separated is one line for each row, with tabs between cells.
func separated(rows [][]string) string {
	var b strings.Builder
	for _, row := range rows {
		for i, cell := range row {
			if i > 0 {
				b.WriteByte('\t')
			}
			b.WriteString(clean(cell))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// aligned is a table whose lines have at most width characters, as long as no
// column has to be narrower than narrow.
func aligned(t table, width int, heading bool) string {
	lines := make([][]string, 0, len(t.rows)+1)
	lines = append(lines, t.header)
	for _, row := range t.rows {
		line := make([]string, len(row))
		for i, cell := range row {
			if line[i] = clean(cell); line[i] == "" {
				line[i] = "-"
			}
		}
		lines = append(lines, line)
	}
	sizes := make([]int, len(t.header))
	copy(sizes, t.least)
	for _, line := range lines {
		for i, cell := range line {
			sizes[i] = max(sizes[i], utf8.RuneCountInString(cell))
		}
	}
	fit(sizes, width)
	if !heading {
		lines = lines[1:]
	}
	var b strings.Builder
	for _, line := range lines {
		var text strings.Builder
		for i, cell := range line {
			cell = fault.Shorten(cell, sizes[i])
			text.WriteString(cell)
			text.WriteString(strings.Repeat(" ", sizes[i]-utf8.RuneCountInString(cell)+2))
		}
		b.WriteString(strings.TrimRight(text.String(), " "))
		b.WriteByte('\n')
	}
	return b.String()
}

// fit takes from the widest column until all fit into width, with two spaces
// between them. The first column stays whole: it is the name that the next
// command needs.
func fit(sizes []int, width int) {
	over := 2*(len(sizes)-1) - width
	for _, n := range sizes {
		over += n
	}
	for ; over > 0 && len(sizes) > 1; over-- {
		widest := 1
		for i := 2; i < len(sizes); i++ {
			if sizes[i] >= sizes[widest] { // of equals the last: the first tell more
				widest = i
			}
		}
		if sizes[widest] <= narrow {
			return
		}
		sizes[widest]--
	}
}

// A tameWriter goes before a terminal. It takes out what would steer it: an API
// or a document must not be able to move the cursor, or to type for the person.
type tameWriter struct {
	w    io.Writer
	held bool // the first byte of a two-byte control character may have come
}

// Write writes p without control characters other than tab and newline.
func (t *tameWriter) Write(p []byte) (int, error) {
	out := make([]byte, 0, len(p)+1)
	for _, c := range p {
		if t.held {
			t.held = false
			if c >= 0x80 && c < 0xa0 { // U+0080 to U+009F
				continue
			}
			out = append(out, 0xc2)
		}
		switch {
		case c == 0xc2:
			t.held = true
		case c < 0x20 && c != '\n' && c != '\t', c == 0x7f:
		default:
			out = append(out, c)
		}
	}
	if len(out) == 0 {
		return len(p), nil
	}
	if _, err := t.w.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}
