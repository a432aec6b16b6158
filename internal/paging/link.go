package paging

import "strings"

// A link is one member of a Link header, RFC 8288 section 3.
type link struct {
	target  string
	rel     string // of several only the first counts
	results string // Sentry: "false" on a link to a page without items
	anchor  string // not empty: a link of another resource
}

// linkTarget finds the first link with a relation in the lines of a Link
// header. Empty is none; so is a link that says it has no results.
func linkTarget(lines []string, rel string) string {
	for _, s := range lines {
		for s != "" {
			var l link
			l, s = cutLink(s)
			if l.target == "" && l.rel == "" || l.anchor != "" || !l.is(rel) {
				continue
			}
			if strings.EqualFold(strings.TrimSpace(l.results), "false") {
				return ""
			}
			return l.target
		}
	}
	return ""
}

// is compares relations without case, RFC 8288 section 2.1.1 and 2.1.2.
func (l link) is(rel string) bool {
	for r := range strings.FieldsSeq(l.rel) {
		if strings.EqualFold(r, rel) {
			return true
		}
	}
	return false
}

const blank = " \t"

// cutLink takes the first link off s. What is not a link is passed over up to
// the next comma, so that one broken link does not hide the others.
func cutLink(s string) (l link, rest string) {
	s = strings.TrimLeft(s, blank+",")
	if !strings.HasPrefix(s, "<") {
		i := strings.IndexByte(s, ',')
		if i < 0 {
			return l, ""
		}
		return l, s[i+1:]
	}
	i := strings.IndexByte(s, '>')
	if i < 0 {
		return l, ""
	}
	l.target, s = strings.Trim(s[1:i], blank), s[i+1:]
	related := false
	for s = strings.TrimLeft(s, blank); s != "" && s[0] != ','; s = strings.TrimLeft(s, blank) {
		var name, value string
		name, value, s = cutParam(strings.TrimPrefix(s, ";"))
		switch name {
		case "rel":
			if !related {
				l.rel, related = value, true
			}
		case "results":
			l.results = value
		case "anchor":
			l.anchor = value
		}
	}
	return l, s
}

// cutParam takes one parameter off s, up to the semicolon or comma behind it:
// name, name=token or name="quoted text".
func cutParam(s string) (name, value, rest string) {
	end := strings.IndexAny(s, "=;,")
	if end < 0 {
		end = len(s)
	}
	name, s = strings.ToLower(strings.Trim(s[:end], blank)), s[end:]
	if !strings.HasPrefix(s, "=") {
		return name, "", s
	}
	s = strings.TrimLeft(s[1:], blank)
	quoted := strings.HasPrefix(s, `"`)
	if quoted {
		value, s = cutQuoted(s[1:])
	}
	end = strings.IndexAny(s, ";,")
	if end < 0 {
		end = len(s)
	}
	if !quoted { // behind a closing quote there is nothing to read
		value = strings.Trim(s[:end], blank)
	}
	return name, value, s[end:]
}

// cutQuoted reads a quoted string behind its opening quote, RFC 9110 section
// 5.6.4. A missing closing quote is read as if it stood at the end.
func cutQuoted(s string) (value, rest string) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '"':
			return b.String(), s[i+1:]
		case s[i] == '\\' && i+1 < len(s):
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String(), ""
}
