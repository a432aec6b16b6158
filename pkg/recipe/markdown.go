package recipe

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Values become Markdown in three steps, in this order and once each: clean
// drops what must not be shown, cutChars shortens, and an append function
// escapes. Nothing that was escaped is ever cut or escaped again.

// clean drops control characters, bidirectional overrides, invisible tag
// characters and byte order marks, replaces what is not UTF-8 by U+FFFD, and
// trims. With multi, line breaks of every kind become "\n"; without, a run of
// them becomes one space. A clean string is returned as it is.
func clean(s string, multi bool) string {
	s = strings.Trim(s, " \t\r\n")
	if isClean(s, multi) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case isLineBreak(r):
			i += breakLen(s[i:])
			if !multi {
				for i < len(s) && breakLen(s[i:]) > 0 {
					i += breakLen(s[i:])
				}
				b.WriteByte(' ')
				continue
			}
			b.WriteByte('\n')
			continue
		case isHidden(r):
		default:
			b.WriteRune(r) // a byte that is not UTF-8 decodes to U+FFFD
		}
		i += n
	}
	return strings.Trim(b.String(), " \t\n")
}

func isClean(s string, multi bool) bool {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c >= utf8.RuneSelf:
			return isCleanUnicode(s[i:], multi)
		case c >= ' ' && c != 0x7f, c == '\t', c == '\n' && multi:
		default:
			return false
		}
	}
	return true
}

func isCleanUnicode(s string, multi bool) bool {
	for i, r := range s {
		if r == '\n' && multi {
			continue
		}
		if isLineBreak(r) || isHidden(r) {
			return false
		}
		if r == utf8.RuneError {
			if _, n := utf8.DecodeRuneInString(s[i:]); n == 1 {
				return false
			}
		}
	}
	return true
}

// isLineBreak reports whether r ends a line for anyone.
func isLineBreak(r rune) bool {
	return r >= '\n' && r <= '\r' || r == 0x85 || r == 0x2028 || r == 0x2029
}

// breakLen is the length in bytes of the line break s starts with, or 0.
func breakLen(s string) int {
	if strings.HasPrefix(s, "\r\n") {
		return 2
	}
	if r, n := utf8.DecodeRuneInString(s); isLineBreak(r) {
		return n
	}
	return 0
}

// isHidden reports whether r is dropped: controls other than tab, explicit
// bidirectional formatting, tag characters, and the byte order mark. Joiners,
// combining marks and right-to-left letters are not hidden.
func isHidden(r rune) bool {
	switch {
	case r < ' ':
		return r != '\t'
	case r < 0x7f:
		return false
	case r <= 0x9f, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0xfeff:
		return true
	}
	return r >= 0xe0000 && r <= 0xe007f
}

// plainByte marks the ASCII bytes that never need a second look inside a line.
var plainByte = func() (t [256]bool) {
	for i := range t {
		t[i] = true
	}
	for _, c := range "\\`*[]<>|~!&_\n" {
		t[c] = false
	}
	return t
}()

// appendText escapes clean text for running Markdown, so that a reader of the
// Markdown sees s and nothing of s acts. indent goes before every line but the
// first; atStart says that the first line starts at the start of a line too.
// dst[base:] is what stands before s in the same paragraph or cell.
func appendText(dst []byte, s, indent string, atStart bool, base int) []byte {
	if atStart {
		dst, s = appendLineStart(dst, s)
	}
	from := 0
	for i := 0; i < len(s); i++ {
		if plainByte[s[i]] {
			continue
		}
		switch c := s[i]; c {
		case '\n':
			dst = append(dst, strings.TrimRight(s[from:i], " \t")...)
			dst = append(dst, '\n')
			rest := s[i+1:]
			for {
				line, after, more := strings.Cut(rest, "\n")
				if !more || strings.Trim(line, " \t") != "" {
					break
				}
				dst, rest = append(dst, '\n'), after
			}
			dst = append(dst, indent...)
			dst, s = appendLineStart(dst, rest)
			from, i = 0, -1
			continue
		case '~':
			if !strikes(dst[base:], s, from, i) {
				continue
			}
		case '!':
			if i+1 >= len(s) || s[i+1] != '[' {
				continue
			}
		case '&':
			if !isEntity(s[i:]) {
				continue
			}
		case '_':
			if insideWord(s, i) {
				continue
			}
		}
		dst = append(dst, s[from:i]...)
		dst = append(dst, '\\')
		from = i
	}
	return append(dst, s[from:]...)
}

// appendLineStart writes what needs care at the start of a line and returns
// the rest of s. Indentation is cut to three spaces: four would start a code
// block, and there is no way to escape a space.
func appendLineStart(dst []byte, s string) ([]byte, string) {
	body := strings.TrimLeft(s, " \t")
	lead := s[:len(s)-len(body)]
	if len(lead) > 3 || strings.Contains(lead, "\t") {
		lead = "   "
	}
	if body == "" || body[0] == '\n' {
		return dst, body
	}
	dst = append(dst, lead...)
	switch c := body[0]; {
	case c == '#' || c == '=', c == ':' && (len(body) == 1 || strings.IndexByte("- \t\n", body[1]) >= 0):
		// ":-" under a line makes a table of it.
		return append(dst, '\\', c), body[1:]
	case c == '-' || c == '+':
		// -5 and +47 are no list items; "- 5" and "---" are, or draw a line.
		if len(body) > 1 && (asciiDigit(body[1]) || body[1] == '.') {
			return append(dst, c), body[1:]
		}
		return append(dst, '\\', c), body[1:]
	case asciiDigit(c):
		n := 1
		for n < len(body) && asciiDigit(body[n]) {
			n++
		}
		if n <= 9 && n < len(body) && (body[n] == '.' || body[n] == ')') &&
			(n+1 == len(body) || strings.IndexByte(" \t\n", body[n+1]) >= 0) {
			dst = append(dst, body[:n]...)
			return append(dst, '\\', body[n]), body[n+1:]
		}
	}
	return dst, body
}

func asciiDigit(c byte) bool { return c >= '0' && c <= '9' }

func asciiLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// strikes reports whether the tilde s[i] can strike text out: two of them, or
// one behind another that stands where the end of a deletion can. A lone tilde
// stays, as in ~/notes and https://example.com/~user. s[from:i] is not yet in
// before.
func strikes(before []byte, s string, from, i int) bool {
	if i > 0 && s[i-1] == '~' || i+1 < len(s) && s[i+1] == '~' {
		return true
	}
	if bytes.IndexByte(before, '~') < 0 && strings.IndexByte(s[from:i], '~') < 0 {
		return false
	}
	last, _ := utf8.DecodeLastRuneInString(s[:i])
	if i == 0 {
		last, _ = utf8.DecodeLastRune(before)
	}
	next, _ := utf8.DecodeRuneInString(s[i+1:])
	return !unicode.IsSpace(last) && (!isMark(last) || i+1 == len(s) || unicode.IsSpace(next) || isMark(next))
}

func isMark(r rune) bool { return unicode.IsPunct(r) || unicode.IsSymbol(r) }

// insideWord reports whether s[i] stands between two letters or digits, where
// an underscore means nothing and cus_123 stays copyable.
func insideWord(s string, i int) bool {
	before, _ := utf8.DecodeLastRuneInString(s[:i])
	after, _ := utf8.DecodeRuneInString(s[i+1:])
	return i > 0 && i+1 < len(s) && isWordRune(before) && isWordRune(after)
}

func isWordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// isEntity reports whether s starts with something that reads as a character
// reference: &name; &#123; &#x1F;
func isEntity(s string) bool {
	end := strings.IndexByte(s[:min(len(s), 36)], ';')
	if end < 2 {
		return false
	}
	name := s[1:end]
	if name[0] != '#' {
		return len(name) > 1 && asciiLetter(name[0]) && isAll(name, func(c byte) bool { return asciiLetter(c) || asciiDigit(c) })
	}
	if name = name[1:]; name == "" {
		return false
	}
	if name[0]|0x20 == 'x' {
		name = name[1:]
		return name != "" && isAll(name, func(c byte) bool { return asciiDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'f' })
	}
	return isAll(name, asciiDigit)
}

func isAll(s string, is func(byte) bool) bool {
	for i := 0; i < len(s); i++ {
		if !is(s[i]) {
			return false
		}
	}
	return true
}

// appendHeading escapes a clean one-line text for a heading, whose trailing
// number signs would otherwise be dropped by a reader.
func appendHeading(dst []byte, s string) []byte {
	start := len(dst)
	return closeHeading(appendText(dst, s, "", true, start), start)
}

// closeHeading escapes the closing number signs of the heading that starts at
// dst[start:].
func closeHeading(dst []byte, start int) []byte {
	n := len(dst)
	for n > start && dst[n-1] == '#' {
		n--
	}
	if n == len(dst) || n > start && dst[n-1] != ' ' && dst[n-1] != '\t' {
		return dst
	}
	dst = append(dst, 0)
	copy(dst[n+1:], dst[n:])
	dst[n] = '\\'
	return dst
}

// appendCode writes clean one-line text as a code span, with a fence longer
// than any run of backticks inside. In a table a pipe is escaped, which tables
// undo before they read the code; a backslash before a pipe cannot be written
// in a code span there, and such text is escaped instead.
func appendCode(dst []byte, s string, table bool) []byte {
	if s == "" {
		return dst
	}
	if table && strings.Contains(s, `\|`) {
		return appendText(dst, s, "", false, len(dst))
	}
	fence, run := 0, 0
	for i := 0; i < len(s); i++ {
		if s[i] != '`' {
			run = 0
			continue
		}
		run++
		fence = max(fence, run)
	}
	fence++
	// A reader takes one space away at both ends if both are there.
	pad := s[0] == '`' || s[len(s)-1] == '`' || s[0] == ' ' && s[len(s)-1] == ' ' && strings.Trim(s, " ") != ""
	dst = appendRepeated(dst, '`', fence)
	if pad {
		dst = append(dst, ' ')
	}
	if table && strings.Contains(s, "|") {
		for i := 0; i < len(s); i++ {
			if s[i] == '|' {
				dst = append(dst, '\\')
			}
			dst = append(dst, s[i])
		}
	} else {
		dst = append(dst, s...)
	}
	if pad {
		dst = append(dst, ' ')
	}
	return appendRepeated(dst, '`', fence)
}

func appendRepeated(dst []byte, c byte, n int) []byte {
	for range n {
		dst = append(dst, c)
	}
	return dst
}

// maxLinkURL bounds the URL of a link: nothing can be cut out of a URL, so a
// longer one is shown as text, which can.
const maxLinkURL = 2048

// linkable reports whether a trimmed text can become the target of a link:
// http, https with a host, or mailto.
func linkable(u string) bool {
	if len(u) > maxLinkURL {
		return false
	}
	scheme, rest, ok := strings.Cut(u, ":")
	if !ok {
		return false
	}
	switch {
	case strings.EqualFold(scheme, "http"), strings.EqualFold(scheme, "https"):
		host, ok := strings.CutPrefix(rest, "//")
		return ok && host != "" && strings.IndexByte(`/?#\`, host[0]) < 0
	case strings.EqualFold(scheme, "mailto"):
		return rest != ""
	}
	return false
}

// appendURL writes u so that it cannot leave a link destination, an autolink
// or an attribute: everything that could end one, and everything that cannot
// be seen, is percent-escaped. What reads as a character reference is written
// as one reference to "&" and a text, unless literal says that references mean
// nothing there.
func appendURL(dst []byte, u string, literal bool) []byte {
	const hex = "0123456789ABCDEF"
	for i := 0; i < len(u); {
		r, n := utf8.DecodeRuneInString(u[i:])
		hide := r < ' ' || r < utf8.RuneSelf && strings.IndexByte(" ()<>|\\`\"'\x7f", byte(r)) >= 0 ||
			r >= utf8.RuneSelf && (isHidden(r) || isLineBreak(r) || unicode.IsSpace(r) || !unicode.IsGraphic(r)) ||
			r == utf8.RuneError && n == 1
		if !hide {
			if dst = append(dst, u[i:i+n]...); r == '&' && !literal && isEntity(u[i:]) {
				dst = append(dst, "amp;"...)
			}
			i += n
			continue
		}
		for _, c := range []byte(u[i : i+n]) {
			dst = append(dst, '%', hex[c>>4], hex[c&15])
		}
		i += n
	}
	return dst
}
