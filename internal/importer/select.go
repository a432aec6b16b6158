package importer

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"unicode"
)

// keep reports whether the options let an operation in. names are what a
// pattern of Only may match: its id, its operationId, its "METHOD /path".
func (o Options) keep(method string, tags []string, names ...string) bool {
	fold := func(list []string, x string) bool {
		return slices.ContainsFunc(list, func(s string) bool { return strings.EqualFold(strings.TrimSpace(s), x) })
	}
	if len(o.Methods) > 0 && !fold(o.Methods, method) {
		return false
	}
	if len(o.Tags) > 0 && !slices.ContainsFunc(tags, func(t string) bool { return fold(o.Tags, t) }) {
		return false
	}
	return len(o.Only) == 0 || slices.ContainsFunc(o.Only, func(p string) bool {
		return slices.ContainsFunc(names, func(n string) bool { return Match(p, n) })
	})
}

// Match reports whether name fits pattern as a whole, case aside: "*" stands
// for any text, slashes and dots included, "?" for one character, everything
// else for itself.
func Match(pattern, name string) bool {
	p, n := []rune(strings.ToLower(pattern)), []rune(strings.ToLower(name))
	pi, ni, star, mark := 0, 0, -1, 0
	for ni < len(n) {
		switch {
		case pi < len(p) && p[pi] == '*':
			star, mark = pi, ni
			pi++
		case pi < len(p) && (p[pi] == '?' || p[pi] == n[ni]):
			pi, ni = pi+1, ni+1
		case star >= 0: // the last star takes one more
			mark++
			pi, ni = star+1, mark
		default:
			return false
		}
	}
	for pi < len(p) && p[pi] == '*' {
		pi++
	}
	return pi == len(p)
}

// Lengths of what importers make. An id may have 100 characters, but ids are
// typed, and stand in front of every line of a list.
const (
	maxID       = 64
	maxArgument = 64 // the Anthropic API refuses longer names of arguments
)

// slug writes a name as the part of an id: "repos/listForUser" becomes
// "repos.list-for-user". It is empty when the name has no letter or digit of
// ASCII. The same name always gives the same slug.
func slug(name string) string {
	runes := []rune(name)
	var b strings.Builder
	gap := byte(0) // the separator that is due before the next character
	for i, r := range runes {
		switch {
		case r == '/' || r == '.' || r == ':':
			gap = '.'
			continue
		case r >= unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r):
			if r != '\'' {
				gap = max(gap, '-')
			}
			continue
		}
		if gap == 0 && i > 0 && unicode.IsUpper(r) {
			before := runes[i-1]
			word := unicode.IsLower(before) || unicode.IsDigit(before)
			// The last capital of several begins a word: getHTTPServer.
			last := unicode.IsUpper(before) && i+1 < len(runes) && unicode.IsLower(runes[i+1])
			if word || last {
				gap = '-'
			}
		}
		if gap != 0 && b.Len() > 0 {
			b.WriteByte(gap)
		}
		gap = 0
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// fitID cuts an id that is too long and marks the cut with a part of its hash,
// so that two that begin alike stay apart.
func fitID(id string) string {
	if len(id) <= maxID {
		return id
	}
	return strings.TrimRight(id[:maxID-7], "-._") + "-" + hash6(id)
}

func hash6(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:3])
}

// pathSlug is the id of an operation that has no name: "get-pets-id-photos".
func pathSlug(method, path string) string {
	s := slug(strings.ReplaceAll(path, "/", "-"))
	if s == "" {
		s = "root"
	}
	return strings.ToLower(method) + "-" + s
}

// prefixed puts the prefix of the options before an id.
func (o Options) prefixed(id string) string {
	if p := slug(o.Prefix); p != "" {
		return p + "." + id
	}
	return id
}

// argumentName makes a name that every client takes for an argument out of the
// API's own: letters, digits, "_" and "-".
func argumentName(name string) string {
	var b strings.Builder
	gap := false
	for _, r := range name {
		if r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' || r == '-') {
			if gap && b.Len() > 0 {
				b.WriteByte('_')
			}
			gap = false
			b.WriteRune(r)
			continue
		}
		gap = true
	}
	s := b.String()
	if s == "" || s == "__proto__" {
		s = "value"
	}
	if len(s) > maxArgument {
		s = s[:maxArgument-7] + "_" + hash6(s)
	}
	return s
}
