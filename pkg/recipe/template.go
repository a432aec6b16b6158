package recipe

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Limits of a template.
const (
	maxTemplateChars        = 10_000
	maxTemplatePlaceholders = 100
)

// A Template is Markdown of the recipe's author with placeholders that are
// filled once from an item: {{path}}, {{path|format}} and {{field:Label}}. Make
// one with ParseTemplate; it is immutable and safe for concurrent use.
type Template struct {
	source string
	parts  []templatePart
}

// A templatePart is either a stretch of the author's text or one placeholder.
type templatePart struct {
	text   string // the author's Markdown; "" for a placeholder
	hole   bool
	path   Path   // of {{path}} and {{path|format}}
	label  string // of {{field:Label}}; "" otherwise
	format Kind
	spot   templateSpot
	row    bool   // in a table row of the author
	after  string // in an address: what the author has behind it there
}

// A templateSpot says what the author's text around a placeholder makes of it,
// because a value that is harmless in a paragraph may not be so elsewhere.
type templateSpot uint8

const (
	spotText  templateSpot = iota // running text, may have several lines
	spotLine                      // a heading or a table row of the author: one line
	spotURL                       // in a link destination, an autolink or a tag
	spotCode                      // in a code span of the author
	spotFence                     // in a fenced code block of the author
)

// A TemplateError says where a template is wrong.
type TemplateError struct {
	Offset  int // the character, counted from 1
	Message string
}

// Error is the place and the message.
func (e *TemplateError) Error() string {
	return fmt.Sprintf("character %d: %s", e.Offset, e.Message)
}

// ParseTemplate reads a template of at most 10 000 characters and 100
// placeholders. An error is a *TemplateError. Whether a {{field:Label}} names
// a field that exists is for the caller to check, with FieldLabels.
func ParseTemplate(s string) (*Template, error) {
	if n := utf8.RuneCountInString(s); n > maxTemplateChars {
		return nil, &TemplateError{Offset: maxTemplateChars + 1, Message: fmt.Sprintf("template has %d characters, at most %d", n, maxTemplateChars)}
	}
	t := &Template{source: s}
	var scan spotScanner
	holes := 0
	for at := 0; at < len(s); {
		open := strings.Index(s[at:], "{{")
		if open < 0 {
			t.parts = append(t.parts, templatePart{text: s[at:]})
			break
		}
		open += at
		if open > at {
			t.parts = append(t.parts, templatePart{text: s[at:open]})
			scan.text(s[at:open])
		}
		fail := func(offset int, format string, args ...any) error {
			return &TemplateError{Offset: utf8.RuneCountInString(s[:offset]) + 1, Message: fmt.Sprintf(format, args...)}
		}
		end := placeholderEnd(s, open+2)
		if end < 0 {
			return nil, fail(open, "'{{' without '}}'")
		}
		if holes++; holes > maxTemplatePlaceholders {
			return nil, fail(open, "more than %d placeholders", maxTemplatePlaceholders)
		}
		part, offset, message := parsePlaceholder(s[open+2 : end])
		if message != "" {
			return nil, fail(open+2+offset, "%s", message)
		}
		part.spot, part.row = scan.hole(), scan.lineStart == '|'
		t.parts = append(t.parts, part)
		at = end + 2
	}
	for i := range t.parts {
		if t.parts[i].spot == spotURL {
			t.parts[i].after = t.afterHole(i)
		}
	}
	return t, nil
}

// afterHole is the author's text behind placeholder i up to the end of the
// address; "{" stands for each further placeholder.
func (t *Template) afterHole(i int) string {
	var after string
	for _, p := range t.parts[i+1:] {
		if p.hole {
			after += "{"
			continue
		}
		if end := strings.IndexAny(p.text, ")> \t\n\"'"); end >= 0 {
			return after + p.text[:end]
		}
		after += p.text
	}
	return after
}

// placeholderEnd finds the "}}" that closes a placeholder whose inside starts
// at from, skipping what stands in quotes behind a bracket; -1 means none.
func placeholderEnd(s string, from int) int {
	if strings.HasPrefix(strings.TrimLeft(s[from:], " \t"), "field:") {
		if i := strings.Index(s[from:], "}}"); i >= 0 {
			return from + i
		}
		return -1
	}
	quoted := outsideQuotes(s[from:], func(rest string) bool { return strings.HasPrefix(rest, "}}") })
	if quoted >= 0 {
		return from + quoted
	}
	// An unclosed quote hides every end; the nearest one gives the better message.
	if i := strings.Index(s[from:], "}}"); i >= 0 {
		return from + i
	}
	return -1
}

// outsideQuotes returns the first offset of s at which found is true, not
// looking inside quotes that follow a '[' or the '==' of a filter.
func outsideQuotes(s string, found func(rest string) bool) int {
	for i := 0; i < len(s); i++ {
		if found(s[i:]) {
			return i
		}
		q := s[i]
		if (q != '\'' && q != '"') || i == 0 || (s[i-1] != '[' && s[i-1] != '=') {
			continue
		}
		for i++; i < len(s) && s[i] != q; i++ {
			if s[i] == '\\' {
				i++
			}
		}
	}
	return -1
}

// parsePlaceholder reads what stands between {{ and }}. A message that is not
// empty says what is wrong at the returned byte offset.
func parsePlaceholder(s string) (part templatePart, offset int, message string) {
	lead := len(s) - len(strings.TrimLeft(s, " \t"))
	body := strings.TrimSpace(s)
	if body == "" {
		return part, 0, "placeholder without a path"
	}
	part.hole = true
	if label, ok := strings.CutPrefix(body, "field:"); ok {
		if part.label = strings.TrimSpace(label); part.label == "" {
			return part, lead, "'field:' without a label"
		}
		return part, 0, ""
	}
	if bar := outsideQuotes(body, func(rest string) bool { return rest[0] == '|' }); bar >= 0 {
		name := strings.TrimSpace(body[bar+1:])
		at := lead + bar + 1
		if part.format = Kind(name); !slices.Contains(kinds[:], part.format) {
			return part, at, fmt.Sprintf("unknown format %q", name)
		}
		body = strings.TrimSpace(body[:bar])
	}
	path, err := ParsePath(body)
	if err != nil {
		return part, lead, err.Error()
	}
	part.path = path
	return part, 0, ""
}

// A spotScanner follows the author's text to tell what kind of place each
// placeholder stands in.
type spotScanner struct {
	fence     string // of the code block the text is in
	lineStart byte   // first character of the line that is not a space; 0: none yet
	ticks     int    // backticks that close the code span the text is in; 0: none
	closer    byte   // what ends a link destination or a tag; 0: in none
	prev      byte
}

func (c *spotScanner) text(s string) {
	for i := 0; i < len(s); i++ {
		b := s[i]
		if b == '\n' {
			*c = spotScanner{fence: c.fence, ticks: c.ticks}
			continue
		}
		if c.lineStart == 0 && b != ' ' && b != '\t' {
			c.lineStart = b
			if n := c.fenceLine(s[i:]); n > 0 {
				i += n - 1
				continue
			}
		}
		switch {
		case c.fence != "":
		case b == '`' && (c.prev != '\\' || c.ticks > 0):
			n := len(s[i:]) - len(strings.TrimLeft(s[i:], "`"))
			if c.ticks == 0 {
				c.ticks = n
			} else if c.ticks == n {
				c.ticks = 0
			}
			i += n - 1
		case c.ticks > 0:
		case c.prev == '\\':
			b = 0 // an escaped character means nothing
		case c.closer != 0:
			if b == c.closer {
				c.closer = 0
			}
		case b == '(' && c.prev == ']':
			c.closer = ')'
		case b == '<' && (i+1 == len(s) || opensTag(s[i+1])):
			c.closer = '>'
		}
		c.prev = b
	}
}

// fenceLine opens or closes a code block where a line starts with a fence, and
// returns the length of that line.
func (c *spotScanner) fenceLine(s string) int {
	line, _, _ := strings.Cut(s, "\n")
	fence := fenceOf(line)
	switch {
	case fence == "" || c.ticks > 0:
		return 0
	case c.fence == "":
		c.fence = fence
	case strings.HasPrefix(fence, c.fence) && strings.TrimRight(line, " \t") == fence:
		c.fence = ""
	}
	return len(line)
}

// opensTag reports whether a '<' before b can start a tag or an autolink.
func opensTag(b byte) bool {
	return b == '/' || b == '!' || b == '?' || asciiLetter(b)
}

// hole returns the place of a placeholder that comes now.
func (c *spotScanner) hole() templateSpot {
	if c.lineStart == 0 {
		c.lineStart = '{'
	}
	c.prev = 0
	switch {
	case c.fence != "":
		return spotFence
	case c.ticks > 0:
		return spotCode
	case c.closer != 0:
		return spotURL
	case c.lineStart == '|' || c.lineStart == '#':
		return spotLine
	}
	return spotText
}

// String returns the template as its author wrote it.
func (t *Template) String() string { return t.source }

// Paths returns the paths of the placeholders in order, without those that a
// {{field:Label}} stands for.
func (t *Template) Paths() []Path {
	var paths []Path
	for i := range t.parts {
		if t.parts[i].hole && t.parts[i].label == "" {
			paths = append(paths, t.parts[i].path)
		}
	}
	return paths
}

// FieldLabels returns the labels of the {{field:Label}} placeholders in order.
func (t *Template) FieldLabels() []string {
	var labels []string
	for i := range t.parts {
		if t.parts[i].label != "" {
			labels = append(labels, t.parts[i].label)
		}
	}
	return labels
}
