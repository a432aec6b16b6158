package cortex

import (
	"html"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// plainLine is one line of Markdown as a reader sees it, near enough for
// words: escapes, emphasis and entities are undone, of a link its text and its
// address are kept.
func plainLine(s string) string {
	if !strings.ContainsAny(s, "\\*`[&<|") {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '\\':
			if i+1 < len(s) && isPunct(s[i+1]) {
				i++
			}
			b.WriteByte(s[i])
		case '*', '`':
			if c == '*' && i > 0 && s[i-1] == ' ' && i+1 < len(s) && s[i+1] == ' ' {
				b.WriteByte(c) // a lone star is a sign
			}
		case '|':
			b.WriteString("|")
		case '[':
		case ']':
			if i+1 < len(s) && s[i+1] == '(' {
				b.WriteByte(' ')
			}
		case '<':
			if end := strings.IndexByte(s[i:], '>'); end > 0 && isBreakTag(s[i:i+end+1]) {
				b.WriteByte(' ')
				i += end
				continue
			}
			b.WriteByte(c)
		default:
			b.WriteByte(c)
		}
	}
	if out := b.String(); strings.Contains(out, "&") {
		return html.UnescapeString(out)
	}
	return b.String()
}

func isBreakTag(s string) bool {
	switch strings.ToLower(strings.ReplaceAll(s, " ", "")) {
	case "<br>", "<br/>":
		return true
	}
	return false
}

func isPunct(c byte) bool {
	return c >= '!' && c <= '/' || c >= ':' && c <= '@' || c >= '[' && c <= '`' || c >= '{' && c <= '~'
}

// clean makes s fit for the file and for showing: UTF-8, no control characters
// except line breaks.
func clean(s string) string {
	ok := true
	for i := 0; i < len(s) && ok; i++ {
		ok = s[i] >= ' ' && s[i] < 0x7f || s[i] == '\n'
	}
	if ok {
		return s
	}
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n':
			return r
		case r == '\t':
			return ' '
		case r == '\r', r == '\u0085', r == '\u2028', r == '\u2029':
			return '\n'
		case unicode.IsControl(r), r >= '\u202a' && r <= '\u202e', r >= '\u2066' && r <= '\u2069', r == '\ufeff', r >= 0xe0000 && r <= 0xe007f:
			return -1
		}
		return r
	}, s)
}

// clip cuts s to at most n bytes and never inside a character.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// unspaced reports whether r belongs to a script that is written without
// spaces between words, or with long words of many parts (Hangul).
func unspaced(r rune) bool {
	if r < 0xe00 {
		return false
	}
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar) ||
		r == 'ー' || r == '々'
}

// isWord reports whether r belongs to a word: the letters, marks and digits of
// unicode61, and the underscore.
func isWord(r rune) bool {
	if r < utf8.RuneSelf {
		return r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
	}
	return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r)
}

// fold is how a word is compared: without case, accents and width, as
// unicode61 with remove_diacritics 2 does it. The marks of other scripts, such
// as the two dots that make が of か, are no accents.
func fold(s string) string {
	ascii := true
	for i := 0; i < len(s) && ascii; i++ {
		ascii = s[i] < utf8.RuneSelf
	}
	if ascii {
		return strings.ToLower(s)
	}
	var b strings.Builder
	for _, r := range norm.NFKD.String(s) {
		if r < 0x300 || r > 0x36f {
			b.WriteRune(unicode.ToLower(r))
		}
	}
	return norm.NFC.String(b.String())
}

// A word is a run of word characters of one kind in a text.
type word struct {
	start, end int  // bytes
	unspaced   bool // of a script without spaces: pairs of characters are searched, not words
}

// wordsOf calls f for each word of s in order until f says false.
func wordsOf(s string, f func(word) bool) {
	w := word{start: -1}
	for i, r := range s {
		in := isWord(r)
		u := in && unspaced(r)
		if w.start >= 0 && in && u != w.unspaced && unicode.IsMark(r) {
			continue // a mark stays with its letter
		}
		if w.start >= 0 && (!in || u != w.unspaced) {
			w.end = i
			if !f(w) {
				return
			}
			w.start = -1
		}
		if in && w.start < 0 {
			w = word{start: i, unspaced: u}
		}
	}
	if w.start >= 0 {
		w.end = len(s)
		f(w)
	}
}

// pairs are the overlapping pairs of characters of a run without spaces, and
// its last character, so that each character begins one: 東京都 is 東京, 京都
// and 都.
func pairs(run string) []string {
	rs := []rune(fold(run))
	out := make([]string, 0, len(rs))
	for i := range rs {
		out = append(out, string(rs[i:min(i+2, len(rs))]))
	}
	return out
}

// parts are the pieces of an identifier, folded: snake_case, camelCase, and
// letters beside digits. A word of one piece has none.
func parts(w string) []string {
	var cuts []int
	rs := []rune(w)
	for i := 1; i < len(rs); i++ {
		a, b := rs[i-1], rs[i]
		switch {
		case a == '_' || b == '_',
			unicode.IsLower(a) && unicode.IsUpper(b),
			unicode.IsLetter(a) && unicode.IsDigit(b), unicode.IsDigit(a) && unicode.IsLetter(b),
			// HTTPServer is HTTP and Server.
			unicode.IsUpper(a) && unicode.IsUpper(b) && i+1 < len(rs) && unicode.IsLower(rs[i+1]):
			cuts = append(cuts, i)
		}
	}
	if cuts == nil {
		return nil
	}
	var out []string
	from := 0
	for _, c := range append(cuts, len(rs)) {
		if p := strings.Trim(string(rs[from:c]), "_"); p != "" {
			out = append(out, fold(p))
		}
		from = c
	}
	if len(out) == 1 && out[0] == fold(w) {
		return nil
	}
	return out
}

// stem cuts the commonest endings of English, and of German and the Romance
// languages where they are alike, from a folded word. It is no grammar: what
// it must do is to give the forms of one word the same result.
func stem(w string) string {
	if len(w) < 4 || strings.ContainsFunc(w, func(r rune) bool { return !unicode.IsLetter(r) }) {
		return w
	}
	s := w
	switch {
	case strings.HasSuffix(s, "ies") && len(s) > 5:
		s = s[:len(s)-3] + "y"
	case strings.HasSuffix(s, "ss"), strings.HasSuffix(s, "us"), strings.HasSuffix(s, "is"):
	case strings.HasSuffix(s, "s"):
		s = s[:len(s)-1]
	}
	for _, end := range []string{"ing", "ed", "en"} {
		rest, ok := strings.CutSuffix(s, end)
		if !ok || len(rest) < 3 || !strings.ContainsAny(rest, "aeiouy") || end == "en" && len(rest) < 4 {
			continue
		}
		if n := len(rest); rest[n-1] == rest[n-2] && !strings.ContainsRune("lsz", rune(rest[n-1])) && n > 3 {
			rest = rest[:n-1] // stopped, stop
		}
		s = rest
		break
	}
	if rest, ok := strings.CutSuffix(s, "e"); ok && len(rest) >= 3 {
		s = rest
	}
	return s
}

// indexed is what the full-text table gets of one text: the text with the runs
// of scripts without spaces as pairs.
func indexed(s string) string {
	s = norm.NFKC.String(s)
	if !strings.ContainsFunc(s, unspaced) {
		return s
	}
	var b strings.Builder
	b.Grow(2 * len(s))
	from := 0
	wordsOf(s, func(w word) bool {
		if w.unspaced {
			b.WriteString(s[from:w.start])
			for _, p := range pairs(s[w.start:w.end]) {
				b.WriteByte(' ')
				b.WriteString(p)
			}
			b.WriteByte(' ')
			from = w.end
		}
		return true
	})
	b.WriteString(s[from:])
	return b.String()
}

// extras are the other forms of the words of texts, each once and in order:
// parts of identifiers, and stems.
func extras(texts ...string) string {
	seen := map[string]bool{}
	var out []string
	add := func(s string) {
		if !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	for _, t := range texts {
		t = norm.NFKC.String(t)
		wordsOf(t, func(w word) bool {
			if w.unspaced {
				return true
			}
			whole := t[w.start:w.end]
			f := fold(whole)
			if s := stem(f); s != f {
				add(s)
			}
			for _, p := range parts(whole) {
				add(p)
				if s := stem(p); s != p {
					add(s)
				}
			}
			return true
		})
	}
	return strings.Join(out, " ")
}

// unique keeps the first of equal strings.
func unique(ss []string) []string {
	var out []string
	for _, s := range ss {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}
