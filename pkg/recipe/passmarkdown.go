package recipe

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// A value of format markdown is the server's Markdown. It keeps its headings,
// lists, emphasis, tables, code and links, and nothing else: what could act, or
// reach out of the value, is made text. The rewriting works line by line and
// never trusts its own idea of the structure further than it has written that
// structure down itself: a code block is only believed where its fences, as
// they are written here, are fences for every reader.

// headingShift is what a heading of a value goes down: the result's heading
// has two number signs, a document's three.
const headingShift = 3

// passMarkdown makes a clean Markdown text of several lines safe. Every code
// block in it is closed. filled says that it follows a line that is not blank.
func passMarkdown(s string, filled bool) string {
	p := passer{lines: strings.Split(s, "\n"), filled: filled}
	for _, l := range p.lines {
		if isTableRule(l) {
			p.tables = true
		}
	}
	for p.at < len(p.lines) {
		p.line()
	}
	return string(closeEscape(bytes.TrimRight(p.out, "\n")))
}

type passer struct {
	lines  []string
	at     int
	out    []byte
	tables bool // a line may begin a table
	inList bool // an indented line may belong to a list
	filled bool // the line before is not blank
}

// write ends a line of the result.
func (p *passer) write(parts ...string) {
	for _, s := range parts {
		p.out = append(p.out, s...)
	}
	p.out = append(p.out, '\n')
}

func (p *passer) line() {
	line := expandTabs(p.lines[p.at])
	body := strings.TrimLeft(line, " ")
	indent := len(line) - len(body)
	quote := quoteMark(line)
	inner := strings.TrimLeft(line[len(quote):], " ")
	switch {
	case body == "":
		p.write()
		p.filled = false
		p.at++
		return
	case indent >= 4 && !p.inList && !p.filled:
		p.indented()
		return
	case fenceOf(inner) != "" && (quote == "" || len(line)-len(quote)-len(inner) < 4):
		p.fence(quote, line[len(quote):])
		return
	case p.filled && isUnderline(strings.TrimLeft(line, " >\t")):
		p.underline(line)
		p.at++
		return
	case !p.filled && indent < 4 && p.heading(body):
		return
	}
	marker := listMark(body)
	switch {
	case marker > 0:
		p.inList = true
	case indent == 0 && !p.filled:
		p.inList = false
	}
	p.at++
	p.filled = true
	// Marks of quotations and lists stay; a heading may stand behind them.
	lead := blockMarks(line)
	p.out = append(p.out, line[:lead]...)
	rest := line[lead:]
	if n := headingMark(rest); n > 0 {
		p.out = append(p.out, strings.Repeat("#", min(n+headingShift, 6))...)
		rest = rest[n:]
	}
	p.out = appendPassed(p.out, rest, p.tables, false)
	if n := len(p.out); n > 0 && p.out[n-1] == '\\' && !escaped(p.out, n-1) {
		p.hardBreak()
	}
	p.out = append(p.out, '\n')
}

// hardBreak writes the backslash at the end of a line, which breaks it there,
// as two spaces: not every reader finds an escape that starts the next line
// behind such a backslash. Where spaces could make a mark of the line, the
// backslash becomes text.
func (p *passer) hardBreak() {
	n := len(p.out) - 1
	last, _ := utf8.DecodeLastRune(p.out[:n])
	if isWordRune(last) || strings.ContainsRune(",;!?", last) {
		p.out = append(p.out[:n], "  "...)
		return
	}
	p.out = append(p.out, '\\')
}

// underline writes a line of dashes or equal signs so that it makes no heading
// of the line before.
func (p *passer) underline(line string) {
	text := strings.TrimLeft(line, " >\t")
	p.out = append(p.out, line[:len(line)-len(text)]...)
	text = strings.TrimRight(text, " \t")
	if len(text) >= 3 && text[0] == '-' {
		p.write("***") // what it is where there is no paragraph before: a rule
		return
	}
	p.write("\\", text)
}

// heading writes a line and the underline behind it as a heading, if that is
// what they are.
func (p *passer) heading(body string) bool {
	if p.at+1 == len(p.lines) || blockMarks(body) > 0 || isUnderline(body) || headingMark(body) > 0 {
		return false
	}
	next := expandTabs(p.lines[p.at+1])
	under := strings.TrimLeft(next, " ")
	if len(next)-len(under) > 3 || !isUnderline(under) {
		return false
	}
	level := 1
	if under[0] == '-' {
		level = 2
	}
	p.out = append(p.out, strings.Repeat("#", level+headingShift)...)
	p.out = append(p.out, ' ')
	p.out = closeHeading(appendPassed(p.out, body, p.tables, false), 0)
	p.out = append(p.out, '\n')
	p.at += 2
	p.filled, p.inList = false, false
	return true
}

// blockMarks is the length of the marks of quotations and lists that a line
// starts with, the spaces around them included.
func blockMarks(line string) int {
	n := 0
	for n < len(line) {
		if line[n] == '>' || line[n] == ' ' || line[n] == '\t' {
			n++
			continue
		}
		mark := listMark(line[n:])
		if mark == 0 {
			break
		}
		n += mark
	}
	return n
}

// fence copies a code block. Its lines get at least the indentation of the
// opening fence, so that the block is one for every reader, in a list item or
// not, and it is always closed in the same way.
func (p *passer) fence(quote, opening string) {
	if strings.HasSuffix(quote, ">") {
		quote += " "
	}
	open := strings.TrimLeft(opening, " ")
	indent := opening[:len(opening)-len(open)]
	fence := fenceOf(open)
	if len(indent) >= 4 && p.filled {
		p.write(quote) // not part of the paragraph before
	}
	p.write(quote, indent, open)
	for p.at++; p.at < len(p.lines); p.at++ {
		line := p.lines[p.at]
		if indent != "" || quote != "" {
			line = expandTabs(line)
		}
		if quote != "" {
			q := quoteMark(line)
			if q == "" {
				break
			}
			line = line[len(q):]
		}
		text := strings.Trim(line, " \t")
		if strings.HasPrefix(text, fence) && strings.Trim(text, fence[:1]) == "" {
			p.at++
			break
		}
		if text == "" {
			p.write(strings.TrimRight(quote, " "))
			continue
		}
		if have := len(line) - len(strings.TrimLeft(line, " ")); have < len(indent) {
			line = indent[have:] + line
		}
		p.write(quote, line)
	}
	p.write(quote, indent, fence)
	p.filled = true
}

// indented writes a block that is code by its indentation as a fenced one.
func (p *passer) indented() {
	var code []string
	for ; p.at < len(p.lines); p.at++ {
		line := expandTabs(p.lines[p.at])
		if strings.TrimLeft(line, " ") == "" {
			code = append(code, "")
			continue
		}
		if !strings.HasPrefix(line, "    ") {
			break
		}
		code = append(code, line[4:])
	}
	blank := 0
	for code[len(code)-1] == "" {
		code = code[:len(code)-1]
		blank++
	}
	fence := "```"
	for _, l := range code {
		if f := fenceOf(strings.TrimLeft(l, " ")); f != "" && f[0] == '`' && len(f) >= len(fence) {
			fence = f + "`"
		}
	}
	p.write(fence)
	for _, l := range code {
		p.write(l)
	}
	p.write(fence)
	for range blank {
		p.write()
	}
	p.filled = blank == 0
}

// expandTabs turns the tabs of the indentation into spaces: how far a tab
// reaches depends on where the value is put.
func expandTabs(line string) string {
	text := strings.TrimLeft(line, " \t")
	lead := line[:len(line)-len(text)]
	if strings.IndexByte(lead, '\t') < 0 {
		return line
	}
	n := 0
	for i := range len(lead) {
		if n++; lead[i] == '\t' {
			n = (n + 3) / 4 * 4
		}
	}
	return strings.Repeat(" ", n) + text
}

// quoteMark is the mark of a quotation that a line starts with, with its
// space.
func quoteMark(line string) string {
	body := strings.TrimLeft(line, " ")
	n := len(line) - len(body)
	if n > 3 || body == "" || body[0] != '>' {
		return ""
	}
	if n++; n < len(line) && line[n] == ' ' {
		n++
	}
	return line[:n]
}

// listMark is the length of the list mark a text starts with, with one space
// behind it.
func listMark(s string) int {
	n := 0
	switch {
	case s == "":
		return 0
	case s[0] == '-' || s[0] == '+' || s[0] == '*':
		n = 1
	case asciiDigit(s[0]):
		if n = digitsOf(s); n > 9 || n == len(s) || s[n] != '.' && s[n] != ')' {
			return 0
		}
		n++
	default:
		return 0
	}
	if n == len(s) {
		return n
	}
	if s[n] != ' ' && s[n] != '\t' {
		return 0
	}
	return n + 1
}

// headingMark is the number of number signs of the heading a text starts with.
func headingMark(s string) int {
	n := 0
	for n < len(s) && s[n] == '#' {
		n++
	}
	if n > 6 || n < len(s) && s[n] != ' ' && s[n] != '\t' {
		return 0
	}
	return n
}

// isUnderline reports whether a line could make a heading of the one before.
func isUnderline(s string) bool {
	s = strings.Trim(s, " \t")
	return s != "" && (strings.Trim(s, "-") == "" || strings.Trim(s, "=") == "")
}

// isTableRule reports whether a line could be the second line of a table.
func isTableRule(s string) bool {
	return strings.IndexByte(s, '-') >= 0 && strings.Trim(s, "|-: \t\n>*+0123456789.)") == ""
}
