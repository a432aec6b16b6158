package recipe

import "strings"

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
