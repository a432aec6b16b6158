package recipe

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// ellipsis marks what was cut.
const ellipsis = "…"

// cutChars shortens s to at most n characters, counted as code points, and
// never inside what a person sees as one character. cut says that something
// is missing; the caller adds the ellipsis.
func cutChars(s string, n int) (head string, cut bool) {
	if len(s) <= n { // no character is shorter than a byte
		return s, false
	}
	at := 0
	for ; n > 0 && at < len(s); n-- {
		_, size := utf8.DecodeRuneInString(s[at:])
		at += size
	}
	if at == len(s) {
		return s, false
	}
	for at > 0 && !betweenChars(s, at) {
		_, size := utf8.DecodeLastRuneInString(s[:at])
		at -= size
	}
	return s[:at], true
}

// betweenChars reports whether s can be cut at the byte offset at without
// taking a visible character apart. It keeps together: line ends, combining
// marks and variation selectors, joiner sequences, skin tones, pairs of
// regional indicators (flags), tag sequences and Hangul syllables.
func betweenChars(s string, at int) bool {
	if at <= 0 || at >= len(s) {
		return true
	}
	if s[at] < utf8.RuneSelf && s[at-1] < utf8.RuneSelf {
		return s[at-1] != '\r' || s[at] != '\n'
	}
	before, _ := utf8.DecodeLastRuneInString(s[:at])
	after, _ := utf8.DecodeRuneInString(s[at:])
	switch {
	case extends(after), before == 0x200d: // zero-width joiner
		return false
	case isRegional(before) && isRegional(after):
		n := 0
		for rest := s[:at]; ; n++ {
			r, size := utf8.DecodeLastRuneInString(rest)
			if !isRegional(r) {
				break
			}
			rest = rest[:len(rest)-size]
		}
		return n%2 == 0
	}
	return !joinsHangul(before, after)
}

// extends reports whether r belongs to the character before it.
func extends(r rune) bool {
	if r < 0x300 {
		return false
	}
	return r == 0x200c || r == 0x200d || r >= 0x1f3fb && r <= 0x1f3ff || r >= 0xe0020 && r <= 0xe007f ||
		unicode.In(r, unicode.Mn, unicode.Me, unicode.Mc)
}

func isRegional(r rune) bool { return r >= 0x1f1e6 && r <= 0x1f1ff }

// joinsHangul reports whether two jamo, or a syllable and a jamo, form one
// syllable block (rules GB6 to GB8 of Unicode Annex 29).
func joinsHangul(a, b rune) bool {
	lead := a >= 0x1100 && a <= 0x115f || a >= 0xa960 && a <= 0xa97c
	vowel := func(r rune) bool { return r >= 0x1160 && r <= 0x11a7 || r >= 0xd7b0 && r <= 0xd7c6 }
	tail := func(r rune) bool { return r >= 0x11a8 && r <= 0x11ff || r >= 0xd7cb && r <= 0xd7fb }
	syllable := func(r rune) bool { return r >= 0xac00 && r <= 0xd7a3 }
	open := syllable(a) && (a-0xac00)%28 == 0
	switch {
	case lead:
		return vowel(b) || syllable(b) || b >= 0x1100 && b <= 0x115f || b >= 0xa960 && b <= 0xa97c
	case vowel(a) || open:
		return vowel(b) || tail(b)
	case tail(a) || syllable(a):
		return tail(b)
	}
	return false
}

// atMost is the start of s that is worth looking at for n characters: work
// stays bounded by what is shown, not by what a server sends. The factor
// leaves room for characters that clean will drop.
func atMost(s string, n int) string {
	limit := textBytes(n)
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}

// textBytes is how many bytes are worth looking at for n characters.
func textBytes(n int) int { return 16*max(n, 0) + 256 }

// cutMarkdown shortens finished Markdown to at most n characters, the ellipsis
// included. It cuts between lines of a table, never inside a link, a code
// span, bold text, an escape or a visible character, and closes a code block
// it cuts into.
func cutMarkdown(s string, n int) (short string, cut bool) {
	if len(s) <= n || utf8.RuneCountInString(s) <= n {
		return s, false
	}
	c := markdownCutter{s: s, left: n - 1, pairsAt: -1}
	c.run()
	short = strings.TrimRight(s[:c.safe], " \t\n")
	switch {
	case c.fence != "":
		short = s[:c.safe] + ellipsis + "\n" + c.lead + c.fence
	case c.ownLine && short != "":
		short += "\n" + ellipsis
	default:
		short += ellipsis
	}
	return short, true
}

// A markdownCutter walks Markdown and remembers the last place it could be
// cut at, with room for what the cut needs behind it.
type markdownCutter struct {
	s       string
	left    int    // characters that may still be taken
	at      int    // bytes taken
	open    string // fence of the code block the walk is in
	lead    string // what stands before that fence: spaces, marks of quotations
	safe    int    // the last good cut
	fence   string // fence to close after that cut; "": none
	pairs   []int  // of the brackets in a line: where the label ends that starts there; 0: nowhere
	pairsAt int    // the line of pairs; -1: none yet
	ownLine bool   // the cut is after a table row, a code block or a rule: the mark goes on a line of its own
}

func (c *markdownCutter) run() {
	for c.at < len(c.s) {
		if !c.line(c.lineEnd(c.at)) {
			return
		}
	}
}

// lineEnd is where the line that starts at from ends.
func (c *markdownCutter) lineEnd(from int) int {
	if end := strings.IndexByte(c.s[from:], '\n'); end >= 0 {
		return from + end
	}
	return len(c.s)
}

// line walks one line that ends before end, and its line break.
func (c *markdownCutter) line(end int) bool {
	text := strings.TrimLeft(c.s[c.at:end], " >")
	lead := c.s[c.at : end-len(text)]
	fence := fenceOf(text)
	switch {
	case c.open != "" && fence != "" && strings.HasPrefix(fence, c.open) && strings.Trim(text, fence[:1]+" \t") == "":
		c.open = ""
		return c.take(end) && c.newline(end, true)
	case c.open != "":
		at := c.at
		for i := 0; i < len(c.lead) && at < end && c.s[at] == c.lead[i]; i++ {
			at++ // what keeps the line in the block
		}
		return c.take(at) && c.chars(end, false) && c.newline(end, false)
	case fence != "":
		if !c.take(end) {
			return false
		}
		c.open, c.lead = fence, lead
		return c.newline(end, false)
	case strings.HasPrefix(text, "|"):
		if rule := c.lineEnd(min(end+1, len(c.s))); isTableRule(c.s[end:rule]) {
			end = rule // a head is nothing without it
		}
		return c.take(end) && c.newline(end, true)
	case strings.Trim(text, " \t") == "":
		return c.take(min(end+1, len(c.s))) // no better a place than the end of the line before
	case strings.Trim(text, "-=*_ \t") == "": // a rule
		return c.take(end) && c.newline(end, true)
	}
	marks := c.at + blockMarks(c.s[c.at:end])
	marks += headingMark(c.s[marks:end])
	marks += len(c.s[marks:end]) - len(strings.TrimLeft(c.s[marks:end], " \t"))
	return c.take(marks) && c.chars(end, true) && c.newline(end, false)
}

// take moves over text that must not be cut.
func (c *markdownCutter) take(end int) bool {
	c.left -= utf8.RuneCountInString(c.s[c.at:end])
	c.at = end
	return c.left >= 0
}

// newline marks the end of a line as a good place and moves over the break.
func (c *markdownCutter) newline(end int, ownLine bool) bool {
	c.mark(ownLine)
	if end < len(c.s) {
		return c.take(end + 1)
	}
	return true
}

func (c *markdownCutter) mark(ownLine bool) {
	room := 0
	if ownLine {
		room = 1
	}
	if c.open != "" {
		room = len(c.lead) + len(c.open) + 1
	}
	if c.left >= room {
		c.safe, c.fence, c.ownLine = c.at, c.open, ownLine
	}
}

// chars moves over a line of text; with inline, whole constructs at a time.
func (c *markdownCutter) chars(end int, inline bool) bool {
	for c.at < end {
		n := 1
		switch b := c.s[c.at]; {
		case !inline:
		case b == '[', b == '!' && c.at+1 < end && c.s[c.at+1] == '[':
			n = c.linkLen(end)
		default:
			n = inlineLen(c.s[c.at:end])
		}
		if n == 1 {
			for n = runeLen(c.s[c.at:]); c.at+n < end && !betweenChars(c.s, c.at+n); {
				n += runeLen(c.s[c.at+n:])
			}
		}
		if !c.take(c.at + n) {
			return false
		}
		c.mark(false)
	}
	return true
}

func runeLen(s string) int {
	_, n := utf8.DecodeRuneInString(s)
	return n
}

// fenceOf returns the fence a line starts with: three or more backticks or
// tildes; "" if there is none.
func fenceOf(line string) string {
	if line == "" || line[0] != '`' && line[0] != '~' {
		return ""
	}
	n := len(line) - len(strings.TrimLeft(line, line[:1]))
	if n < 3 || line[0] == '`' && strings.Contains(line[n:], "`") {
		return ""
	}
	return line[:n]
}

// inlineLen is the length of the construct s starts with that must stay whole:
// an escape, a code span, a link, an autolink or tag, bold text. 1 stands for
// none.
func inlineLen(s string) int {
	switch s[0] {
	case '\\':
		if len(s) > 1 && s[1] < utf8.RuneSelf {
			return 2
		}
	case '`':
		n := len(s) - len(strings.TrimLeft(s, "`"))
		for at := n; at < len(s); {
			i := strings.Index(s[at:], s[:n])
			if i < 0 {
				return n
			}
			run := len(s[at+i:]) - len(strings.TrimLeft(s[at+i:], "`"))
			if run == n {
				return at + i + n
			}
			at += i + run
		}
		return n
	case '<':
		if len(s) > 1 && opensTag(s[1]) {
			if i := strings.IndexByte(s[:min(len(s), maxTargetBytes)], '>'); i > 0 {
				return i + 1
			}
		}
	case '*', '_', '~':
		return emphasisLen(s)
	case '&':
		if isEntity(s) {
			return strings.IndexByte(s, ';') + 1
		}
	}
	return 1
}

// maxWholeEmphasis bounds what is kept whole between the marks of emphasis: a
// mark without its end does less harm than a long text that is missing.
const maxWholeEmphasis = 300

// emphasisLen is the length of the emphasis s starts with, or of its mark.
func emphasisLen(s string) int {
	n := len(s) - len(strings.TrimLeft(s, s[:1]))
	for i := n; i < min(len(s), maxWholeEmphasis); i++ {
		switch {
		case s[i] == '\\':
			i++
		case s[i] == s[0] && strings.HasPrefix(s[i:], s[:n]):
			return i + n
		}
	}
	return n
}

// linkLen is the length of the link or image at c.at in the line that ends
// before end, or 1.
func (c *markdownCutter) linkLen(end int) int {
	if c.pairsAt < 0 || c.at >= c.pairsAt+len(c.pairs) {
		c.pairsAt, c.pairs = c.at, matchBrackets(c.pairs[:0], c.s[c.at:end])
	}
	open := c.at
	if c.s[open] == '!' {
		open++
	}
	label := c.pairs[open-c.pairsAt]
	if label == 0 || label == len(c.pairs) || c.s[c.pairsAt+label] != '(' || c.pairs[label] == 0 {
		return 1
	}
	return c.pairsAt + c.pairs[label] - c.at
}

// matchBrackets finds for each opening bracket and parenthesis of a line the
// place behind its partner; 0: it has none. Each byte is looked at once,
// however they nest.
func matchBrackets(pairs []int, line string) []int {
	var brackets, parens []int
	for i := 0; i < len(line); i++ {
		pairs = append(pairs, 0)
		switch line[i] {
		case '\\':
			if i+1 < len(line) {
				pairs = append(pairs, 0)
				i++
			}
		case '[':
			brackets = append(brackets, i)
		case ']':
			brackets = closePair(pairs, brackets, i)
		case '(':
			parens = append(parens, i)
		case ')':
			parens = closePair(pairs, parens, i)
		}
	}
	return pairs
}

func closePair(pairs, open []int, at int) []int {
	n := len(open)
	if n == 0 {
		return open
	}
	pairs[open[n-1]] = at + 1
	return open[:n-1]
}
