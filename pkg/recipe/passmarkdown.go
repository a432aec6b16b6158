package recipe

import (
	"bytes"
	"slices"
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

// passInline makes one line safe for running text.
func passInline(s string) string {
	return string(closeEscape(appendPassed(nil, s, true, true)))
}

// closeEscape escapes a backslash at the end, which would escape what comes
// behind the value.
func closeEscape(b []byte) []byte {
	if n := len(b); n > 0 && b[n-1] == '\\' && !escaped(b, n-1) {
		b = append(b, '\\')
	}
	return b
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

// appendPassed writes one line of the server's Markdown without its block
// marks: tags are text, images are links, links lead where links may lead, and
// every code span is closed. In tables a pipe ends a code span; with noPipes
// there are none.
func appendPassed(dst []byte, s string, tables, noPipes bool) []byte {
	start, depth := len(dst), 0
	var unclosed [maxTicks + 1]bool // runs of so many backticks have no end from here on
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '\\':
			dst = append(dst, c)
			if i+1 < len(s) && strings.IndexByte("\\`<[]!|", s[i+1]) >= 0 {
				i++
				dst = append(dst, s[i])
			}
			continue
		case '|':
			if noPipes {
				dst = append(dst, '\\')
			}
		case '`':
			n := tickRun(s[i:])
			end := -1
			if n <= maxTicks && !unclosed[n] {
				end = closingTicks(s[i+n:], n)
				unclosed[n] = end < 0
			}
			if end >= 0 {
				code := s[i : i+n+end+n]
				if !tables || strings.IndexByte(code, '|') < 0 {
					dst = append(dst, code...)
					i += len(code) - 1
					continue
				}
			}
			for range n {
				dst = append(dst, '\\', '`')
			}
			i += n - 1
			continue
		case '<':
			if n := autolinkLen(s[i:]); n > 0 {
				dst = append(dst, s[i:i+n]...)
				i += n - 1
				continue
			}
			dst = append(dst, '\\')
		case '!':
			if i+1 == len(s) || s[i+1] != '[' {
				break
			}
			if n := len(dst); n > start && dst[n-1] == '!' && !escaped(dst[start:], n-1-start) {
				dst = append(dst[:n-1], `\!`...)
			}
			if alt, n := imageIn(s[i:]); depth > 0 && n > 0 {
				// A link cannot be in a link: only its text stays.
				dst = append(dst, alt...)
				i += n - 1
			} else if strings.HasPrefix(s[i:], "![]") {
				dst = append(dst, "[image]"...)
				dst, i = appendAfterLabel(dst, s, i+2)
			}
			continue
		case '[':
			depth++
		case ']':
			depth = max(depth-1, 0)
			dst = append(dst, c)
			dst, i = appendAfterLabel(dst, s, i)
			continue
		}
		dst = append(dst, s[i])
	}
	return dst
}

// appendAfterLabel looks behind the bracket s[i] that closes a label and
// escapes what would make a link to a place that links may not lead to, or the
// definition of a link elsewhere.
func appendAfterLabel(dst []byte, s string, i int) ([]byte, int) {
	if i+1 >= len(s) {
		return dst, i
	}
	switch s[i+1] {
	case '(':
		if !safeTarget(s[i+2:]) {
			dst = append(dst, '\\')
		}
		return append(dst, '('), i + 1
	case ':':
		return append(dst, `\:`...), i + 1
	}
	return dst, i
}

// imageIn takes apart a plain image that s starts with: its text, and its
// length.
func imageIn(s string) (alt string, n int) {
	s = s[:min(len(s), maxLinkURL)]
	end := strings.IndexByte(s, ']')
	if end < 0 || strings.ContainsAny(s[2:end], "[`<\\!&") {
		return "", 0
	}
	target := targetLen(s[end+1:])
	if target == 0 {
		return "", 0
	}
	if alt = s[2:end]; alt == "" {
		alt = "image"
	}
	return alt, end + 1 + target
}

// maxTargetBytes bounds how far the end of a link is looked for: an address has
// at most three bytes for each of its own here, and the rest is a title.
const maxTargetBytes = 4 * maxLinkURL

// targetLen is the length of the link target in parentheses that s starts
// with, or 0.
func targetLen(s string) int {
	if s == "" || s[0] != '(' {
		return 0
	}
	parens := 1
	for i := 1; i < min(len(s), maxTargetBytes); i++ {
		switch s[i] {
		case '\\':
			i++
		case '(':
			parens++
		case ')':
			if parens--; parens == 0 {
				return i + 1
			}
		}
	}
	return 0
}

// escaped reports whether b[i] has a backslash before it that counts.
func escaped(b []byte, i int) bool {
	n := 0
	for i--; i >= 0 && b[i] == '\\'; i-- {
		n++
	}
	return n%2 == 1
}

// maxTicks is the longest run of backticks that can start a code span here:
// each length is looked for once in a line.
const maxTicks = 64

func tickRun(s string) int { return len(s) - len(strings.TrimLeft(s, "`")) }

// closingTicks finds the run of n backticks that closes a code span.
func closingTicks(s string, n int) int {
	for at := 0; at < len(s); {
		i := strings.IndexByte(s[at:], '`')
		if i < 0 {
			return -1
		}
		at += i
		run := tickRun(s[at:])
		if run == n {
			return at
		}
		at += run
	}
	return -1
}

// autolinkLen is the length of <https://…> that s starts with, or 0.
func autolinkLen(s string) int {
	end := strings.IndexAny(s[1:min(len(s), maxLinkURL+2)], "<> \t|`\\")
	if end < 0 || s[1+end] != '>' || !linkable(s[1:1+end]) {
		return 0
	}
	return end + 2
}

// maxSchemeBytes bounds how far a scheme is looked for.
const maxSchemeBytes = 64

// safeTarget reports whether the link destination that s starts with has a
// scheme that links may have, or none.
func safeTarget(s string) bool {
	s = strings.TrimLeft(s, " \t")
	s = strings.TrimPrefix(s, "<")
	for i := 0; i < min(len(s), maxSchemeBytes); i++ {
		switch c := s[i]; {
		case c == ':':
			switch strings.ToLower(s[:i]) {
			case "http", "https", "mailto":
				return true
			}
			return false
		case c == '/' || c == '?' || c == '#' || c == ')' || c == '>':
			return true // no scheme
		case c == '&' || c == '\\' || c == '\t' || c == '<' || c == '(':
			return false // what it spells is not plain to see
		case c == ' ':
			return i > 0 && strings.IndexByte(s[i:], ')') >= 0
		}
	}
	return false
}

// appendMarkdown writes a value of format markdown. A single line goes where it
// stands; everything else is a block of its own, behind a blank line unless it
// stands at the start of one.
func (w *formatter) appendMarkdown(dst []byte, s string, f *Format, limit int, pl place) []byte {
	short := atMost(s, limit)
	more := len(short) < len(s)
	text, cut := cutChars(clean(short, true), limit+maxTargetBytes)
	if text == "" {
		return appendWrapped(dst, piece{}, f, true, pl)
	}
	more = more || cut
	if strings.IndexByte(text, '\n') < 0 && !startsBlock(text) {
		md, cut := cutMarkdown(passInline(text), limit+1) // the mark of a cut does not count
		if more && !cut {
			md += ellipsis
		}
		return w.appendInline(dst, md, f, pl)
	}
	lead := w.openBlock(&dst, pl)
	above := dst[:len(dst)-len(lead)]
	filled := len(above) > pl.base && !bytes.HasSuffix(above, []byte("\n\n")) && pl.indent == ""
	md, cut := cutMarkdown(passMarkdown(text, filled), limit+1)
	if more && !cut {
		md += "\n\n" + ellipsis
	}
	for i, line := range strings.Split(md, "\n") {
		if i > 0 {
			dst = append(dst, '\n')
			if line == "" {
				dst = append(dst, strings.TrimRight(lead, " ")...)
				continue
			}
			dst = append(dst, lead...)
		}
		dst = append(dst, line...)
	}
	w.block, w.nested = pl.indent == "", lead != ""
	return dst
}

// appendInline writes a line of Markdown between prefix and suffix.
func (w *formatter) appendInline(dst []byte, md string, f *Format, pl place) []byte {
	if f.Prefix != "" {
		dst = appendPiece(dst, piece{kind: pieceText, text: cleanEdge(f.Prefix)}, pl)
	}
	at := len(dst)
	if dst = append(dst, md...); f.Prefix != "" {
		dst = joinSafely(dst, 0, at, true)
	}
	if f.Suffix != "" {
		pl.start = false
		at = len(dst)
		dst = appendPiece(dst, piece{kind: pieceText, text: cleanEdge(f.Suffix)}, pl)
		if at < len(dst) {
			dst = joinSafely(dst, 0, at, true)
		}
	}
	return dst
}

// openBlock goes to where a block can stand and returns what each of its lines
// but the first needs before it.
func (w *formatter) openBlock(dst *[]byte, pl place) string {
	d := *dst
	if pl.indent != "" {
		*dst = append(append(trimSpaces(d), "\n\n"...), pl.indent...)
		return pl.indent
	}
	from := max(bytes.LastIndexByte(d, '\n')+1, pl.base)
	marks := string(d[from:])
	if marks == "" {
		return ""
	}
	if blockMarks(marks) < len(marks) || marks[len(marks)-1] != ' ' && marks[len(marks)-1] != '>' {
		*dst = append(trimSpaces(d), "\n\n"...)
		return ""
	}
	lead := []byte(marks)
	for i, c := range lead {
		if c != '>' {
			lead[i] = ' '
		}
	}
	if from > pl.base && !bytes.HasSuffix(d[:from], []byte("\n\n")) && strings.IndexByte(marks, '>') < 0 {
		// Without a blank line before it, it might be more of a paragraph.
		*dst = slices.Insert(d, from, '\n')
	}
	return string(lead)
}

// startsBlock reports whether a line is more than text of a paragraph.
func startsBlock(line string) bool {
	return blockMarks(line) > 0 || headingMark(line) > 0 || fenceOf(line) != "" || isUnderline(line) || isTableRule(line)
}
