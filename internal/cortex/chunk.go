package cortex

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Characters of a chunk. It is closed at the first paragraph that would bring
// it above targetChunk, and nothing in it is longer than maxChunk.
const (
	targetChunk = 1200
	maxChunk    = 1500
)

// A chunk is a piece of a page that is found and shown on its own.
type chunk struct {
	heading string // the headings above it, outermost first, separated by " > "
	text    string // plain text
}

// split cuts a page's Markdown at headings and paragraphs. A paragraph that is
// too long is cut at a line, a sentence or a space, in this order, and never
// inside a character; a table that is cut gets its column names again. There
// is always at least one chunk, and at most maxChunks; what is beyond is left
// out.
func split(md string) []chunk {
	s := splitter{}
	var para []string
	fence := ""
	flush := func() {
		s.paragraph(para)
		para = nil
	}
	for line := range strings.SplitSeq(md, "\n") {
		bare := strings.TrimLeft(line, " ")
		if fence != "" {
			if strings.HasPrefix(bare, fence) {
				fence = ""
			} else {
				para = append(para, line)
			}
			continue
		}
		if fence = fenceOf(bare); fence != "" {
			continue
		}
		if level, text := headingOf(bare); level > 0 && len(line)-len(bare) < 4 {
			flush()
			s.head(level, plainLine(text))
			continue
		}
		if strings.TrimSpace(line) == "" {
			flush()
			continue
		}
		para = append(para, plainLine(strings.TrimRight(line, " ")))
	}
	flush()
	s.close()
	if len(s.out) == 0 {
		s.out = []chunk{{heading: s.path()}}
	}
	return s.out[:min(len(s.out), maxChunks)]
}

// fenceOf is the mark of a code block that the line opens, or "".
func fenceOf(line string) string {
	for _, c := range []string{"`", "~"} {
		n := len(line) - len(strings.TrimLeft(line, c))
		if n >= 3 && !strings.Contains(line[n:], c) {
			return line[:n]
		}
	}
	return ""
}

// headingOf is the level and text of an ATX heading; level 0 if it is none.
func headingOf(line string) (level int, text string) {
	rest := strings.TrimLeft(line, "#")
	level = len(line) - len(rest)
	if level == 0 || level > 6 || rest != "" && rest[0] != ' ' {
		return 0, ""
	}
	rest = strings.TrimSpace(rest)
	if bare := strings.TrimRight(rest, "#"); bare == "" || strings.HasSuffix(bare, " ") {
		rest = strings.TrimSpace(bare) // ## so written ##
	}
	return level, rest
}

type splitter struct {
	heads [6]string // by level; "" for none
	buf   []string  // paragraphs of the open chunk
	size  int       // characters of buf
	out   []chunk
}

func (s *splitter) path() string {
	var p []string
	for _, h := range s.heads {
		if h != "" {
			p = append(p, h)
		}
	}
	return strings.Join(p, " > ")
}

func (s *splitter) head(level int, text string) {
	s.close()
	s.heads[level-1] = clip(text, 300)
	for i := level; i < len(s.heads); i++ {
		s.heads[i] = ""
	}
}

// close ends the open chunk.
func (s *splitter) close() {
	if len(s.buf) > 0 {
		s.out = append(s.out, chunk{s.path(), strings.Join(s.buf, "\n\n")})
		s.buf, s.size = nil, 0
	}
}

func (s *splitter) paragraph(lines []string) {
	if len(lines) == 0 {
		return
	}
	names := ""
	if len(lines) > 2 && isDelimiterRow(lines[1]) {
		if names = lines[0]; utf8.RuneCountInString(names) > maxChunk/3 {
			names = ""
		}
		lines = append(lines[:1:1], lines[2:]...)
	}
	text := strings.Join(lines, "\n")
	n := utf8.RuneCountInString(text)
	if s.size > 0 && s.size+2+n > targetChunk {
		s.close()
	}
	if n <= maxChunk {
		s.add(text, n)
		return
	}
	room := maxChunk
	for text != "" {
		piece := text[:cut(text, room)]
		text = strings.TrimLeft(text[len(piece):], " \n")
		if room < maxChunk {
			piece = names + "\n" + piece
		} else if names != "" {
			room -= utf8.RuneCountInString(names) + 1
		}
		piece = strings.TrimRight(piece, " \n")
		s.add(piece, utf8.RuneCountInString(piece))
		if text != "" {
			s.close()
		}
	}
}

func (s *splitter) add(text string, n int) {
	if len(s.buf) > 0 {
		s.size += 2
	}
	s.buf = append(s.buf, text)
	s.size += n
}

// isDelimiterRow reports whether line is the second of a table.
func isDelimiterRow(line string) bool {
	return strings.Contains(line, "-") && strings.Contains(line, "|") && strings.Trim(line, "|-: ") == ""
}

// cut is the number of bytes of the longest good beginning of s with at most n
// characters: to the end of a line, else of a sentence, else of a word, each
// only in the second half, else of a character.
func cut(s string, n int) int {
	end, half, count := len(s), 0, 0
	for i := range s {
		if count == n/2 {
			half = i
		}
		if count == n {
			end = i
			break
		}
		count++
	}
	if end == len(s) {
		return end
	}
	if i := strings.LastIndexByte(s[half:end], '\n'); i >= 0 {
		return half + i + 1
	}
	if i := lastSentence(s[half:end]); i > 0 {
		return half + i
	}
	if i := strings.LastIndexByte(s[half:end], ' '); i >= 0 {
		return half + i + 1
	}
	for end > half && joins(s, end) {
		_, size := utf8.DecodeLastRuneInString(s[:end])
		end -= size
	}
	return end
}

// lastSentence is where the last sentence that ends in s ends, or 0.
func lastSentence(s string) int {
	found := 0
	for i, r := range s {
		after := i + utf8.RuneLen(r)
		switch r {
		case '。', '！', '？', '．':
			found = after
		case '.', '!', '?', ';':
			if after < len(s) && s[after] == ' ' {
				found = after + 1
			}
		}
	}
	return found
}

// joins reports whether what stands before and after byte i of s is one
// character for a reader: a mark, a joined or a modified sign.
func joins(s string, i int) bool {
	after, _ := utf8.DecodeRuneInString(s[i:])
	before, _ := utf8.DecodeLastRuneInString(s[:i])
	const joiner = '\u200d'
	return unicode.IsMark(after) || after == joiner || before == joiner ||
		after >= 0x1f3fb && after <= 0x1f3ff || // colour of skin
		isFlag(after) && oddFlags(s[:i])
}

// oddFlags reports whether s ends with half a flag: two signs make one.
func oddFlags(s string) bool {
	odd := false
	for {
		r, size := utf8.DecodeLastRuneInString(s)
		if !isFlag(r) {
			return odd
		}
		odd, s = !odd, s[:len(s)-size]
	}
}

func isFlag(r rune) bool { return r >= 0x1f1e6 && r <= 0x1f1ff }
