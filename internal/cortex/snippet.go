package cortex

import (
	"strings"
	"unicode/utf8"
)

// Characters of a snippet, and how many of them stand before the first match
// at most. Marks and escapes come on top.
const (
	snippetSize = 240
	snippetLead = 60
)

// A span is a marked part of a text.
type span struct {
	start, end int // bytes
	unit       int // of the question
}

// snippet is the part of a chunk's text with the most words of the question,
// as one line of Markdown in which only the marks of the found words act.
func snippet(text string, m marks) string {
	text = strings.Join(strings.Fields(text), " ")
	spans := m.find(text)
	from, to := window(text, spans)
	var b strings.Builder
	if from > 0 {
		b.WriteString("… ")
	}
	at := from
	for _, s := range spans {
		if s.start < from || s.end > to {
			continue
		}
		escape(&b, text, at, s.start)
		b.WriteString("**")
		escape(&b, text, s.start, s.end)
		b.WriteString("**")
		at = s.end
	}
	escape(&b, text, at, to)
	if to < len(text) {
		b.WriteString(" …")
	}
	return b.String()
}

// find returns the words of text that the question asks for, in order.
func (m marks) find(text string) []span {
	var out []span
	add := func(start, end, unit int) {
		if n := len(out); n > 0 && (out[n-1].end > start || out[n-1].end == start && out[n-1].unit == unit) { // pairs of one run
			out[n-1].end = max(out[n-1].end, end)
			return
		}
		out = append(out, span{start, end, unit})
	}
	wordsOf(text, func(w word) bool {
		written := text[w.start:w.end]
		if w.unspaced {
			for i := range written {
				_, n1 := utf8.DecodeRuneInString(written[i:])
				_, n2 := utf8.DecodeRuneInString(written[i+n1:])
				if u, ok := m.pairs[fold(written[i:i+n1+n2])]; ok {
					add(w.start+i, w.start+i+n1+n2, u)
				} else if u, ok := m.pairs[fold(written[i:i+n1])]; ok {
					add(w.start+i, w.start+i+n1, u)
				}
			}
			return true
		}
		if u, ok := m.word(written); ok {
			add(w.start, w.end, u)
		}
		return true
	})
	return out
}

func (m marks) word(written string) (unit int, ok bool) {
	f := fold(written)
	for _, form := range append([]string{f, stem(f)}, parts(written)...) {
		if u, ok := m.words[form]; ok {
			return u, true
		}
		if u, ok := m.words[stem(form)]; ok {
			return u, true
		}
	}
	return 0, m.inside != "" && strings.Contains(f, m.inside)
}

// window chooses the part of text with the most different units, then the most
// spans, then the earliest.
func window(text string, spans []span) (from, to int) {
	best, bestScore := 0, -1
	for i := range spans {
		units, n := map[int]bool{}, 0
		for _, s := range spans[i:] {
			if s.end-spans[i].start > snippetSize-snippetLead {
				break // in bytes: near enough to choose by
			}
			units[s.unit] = true
			n++
		}
		if score := 100*len(units) + min(n, 99); score > bestScore {
			best, bestScore = i, score
		}
	}
	if len(spans) > 0 {
		from = back(text, spans[best].start, snippetLead)
	}
	to = forth(text, from, snippetSize)
	if to == len(text) {
		from = min(from, back(text, to, snippetSize))
	}
	return from, to
}

// back is the start of a word at most n characters before byte i.
func back(text string, i, n int) int {
	at := i
	for ; n > 0 && at > 0; n-- {
		_, size := utf8.DecodeLastRuneInString(text[:at])
		at -= size
	}
	if at == 0 {
		return 0
	}
	if sp := strings.IndexByte(text[at:i], ' '); sp >= 0 {
		return at + sp + 1
	}
	for at < i && joins(text, at) {
		_, size := utf8.DecodeRuneInString(text[at:])
		at += size
	}
	return at
}

// forth is the end of a word at most n characters after byte i.
func forth(text string, i, n int) int {
	at := i
	for ; n > 0 && at < len(text); n-- {
		_, size := utf8.DecodeRuneInString(text[at:])
		at += size
	}
	if at == len(text) {
		return at
	}
	if sp := strings.LastIndexByte(text[i:at], ' '); sp > (at-i)/2 {
		return i + sp
	}
	for at > i && joins(text, at) {
		_, size := utf8.DecodeLastRuneInString(text[:at])
		at -= size
	}
	return at
}

// escape writes text[from:to] so that nothing in it acts as Markdown inside a
// line. An underscore between letters does not act and stays readable.
func escape(b *strings.Builder, text string, from, to int) {
	for i := from; i < to; i++ {
		c := text[i]
		switch {
		case strings.IndexByte("\\`*[]<>|~&", c) >= 0,
			c == '_' && !(i > 0 && isAlnum(text[i-1]) && i+1 < len(text) && isAlnum(text[i+1])),
			// The first character could make the line a heading, a list or a quotation.
			b.Len() == 0 && strings.IndexByte("#-+=>", c) >= 0,
			i > 0 && (c == '.' || c == ')') && isNumber(b.String()):
			b.WriteByte('\\')
		}
		b.WriteByte(c)
	}
}

func isAlnum(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c >= utf8.RuneSelf
}

// isNumber reports whether s is all digits and could begin a numbered list.
func isNumber(s string) bool {
	return s != "" && len(s) <= 9 && strings.Trim(s, "0123456789") == ""
}
