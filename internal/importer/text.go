package importer

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Lengths of texts for a model, in characters. Every session pays for every
// description of every tool.
const (
	wrapperText  = 300 // a draft's description
	argumentText = 200 // an argument's
	memberText   = 120 // of what lies inside an argument
	nameText     = 80  // a draft's name
	maxSource    = 8 << 10
)

var (
	htmlTag     = regexp.MustCompile(`<!--[\s\S]*?-->|</?[A-Za-z][^<>]*>`)
	image       = regexp.MustCompile(`!\[([^\]\n]*)\]\([^()\n]*\)`)
	link        = regexp.MustCompile(`\[([^\]\n]+)\](?:\([^()\n]*\)|\[[^\]\n]*\])`)
	fence       = regexp.MustCompile("(?s)(?:```|~~~)[^\n]*\n.*?(?:```|~~~|$)")
	tableLine   = regexp.MustCompile(`(?m)^\s*\|.*$`)
	heading     = regexp.MustCompile(`(?m)^\s*#{1,6}\s+.*$`)
	bullet      = regexp.MustCompile(`(?m)^\s*(?:[-*+]|\d+[.)])\s+`)
	htmlEscapes = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&quot;", `"`, "&#39;", "'", "&nbsp;", " ", "&amp;", "&")
	sentenceEnd = regexp.MustCompile(`[.!?][)"']?\s+[A-Z0-9("'` + "`" + `]`)
)

// plain takes the markup of HTML and Markdown out of a text and writes it in
// one line: what a model reads is words, and every character costs.
func plain(s string) string {
	if len(s) > maxSource {
		s = strings.ToValidUTF8(s[:maxSource], "")
	}
	s = fence.ReplaceAllString(s, " ")
	s = htmlTag.ReplaceAllString(s, " ")
	s = image.ReplaceAllString(s, "$1")
	s = link.ReplaceAllString(s, "$1")
	s = tableLine.ReplaceAllString(s, " ")
	s = heading.ReplaceAllString(s, " ")
	s = bullet.ReplaceAllString(s, "")
	s = strings.ReplaceAll(s, "**", "")
	s = strings.ReplaceAll(s, "`", "")
	s = htmlEscapes.Replace(s)
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == utf8.RuneError || unicode.Is(unicode.Cf, r) {
			return ' '
		}
		return r
	}, s)
	return cleanText(strings.Join(strings.Fields(s), " "))
}

// brief is the first sentences of a text without markup that fit into limit
// characters, or its beginning with "…".
func brief(s string, limit int) string {
	s = plain(s)
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	runes := []rune(s)
	head := string(runes[:limit])
	if ends := sentenceEnd.FindAllStringIndex(string(runes[:min(len(runes), limit+2)]), -1); len(ends) > 0 {
		// An abbreviation near the beginning is no sentence worth keeping.
		if end := ends[len(ends)-1][0] + 1; end >= limit/4 && end <= len(head) {
			return head[:end]
		}
	}
	head = string(runes[:limit-1])
	if i := strings.LastIndexByte(head, ' '); i > limit/2 {
		head = head[:i]
	}
	return strings.TrimRight(head, " ,;:(-") + "…"
}

// sentence ends a text with a full stop.
func sentence(s string) string {
	if s == "" || strings.HasSuffix(s, ".") || strings.HasSuffix(s, "…") || strings.HasSuffix(s, "!") || strings.HasSuffix(s, "?") {
		return s
	}
	return strings.TrimRight(s, ":;,") + "."
}

// join puts sentences behind each other.
func join(parts ...string) string {
	var out []string
	for _, p := range parts {
		if p != "" {
			out = append(out, p)
		}
	}
	for i := range out[:max(len(out)-1, 0)] {
		out[i] = sentence(out[i])
	}
	return strings.Join(out, " ")
}
