package schema

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// maxShown is how much of a value or a name a message may carry.
const maxShown = 80

// typeOf names the JSON type of a value; a number without a fraction is an
// integer.
func typeOf(v recipe.Value) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case json.Number:
		if bounded(v) && whole(v) {
			return "integer"
		}
		return "number"
	case string:
		return "string"
	case recipe.Array:
		return "array"
	}
	return "object"
}

// typesText is "string", or "string or null"; "any JSON value" when any goes.
func typesText(types []string) string {
	if types == nil {
		return "any JSON value"
	}
	return strings.Join(types, " or ")
}

// clip makes a text fit for a message: one line, at most maxShown characters.
func clip(s string) string {
	if len(s) <= maxShown && plainASCII(s) { // nearly always
		return s
	}
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, s)
	if utf8.RuneCountInString(s) <= maxShown {
		return s
	}
	return string([]rune(s)[:maxShown-1]) + "…"
}

func plainASCII(s string) bool {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] > 0x7e {
			return false
		}
	}
	return true
}

// at appends a key that may come from anywhere to a dotted place.
func at(field, key string) string { return recipe.FieldPath(field, clip(key)) }

// shown is a value for a message, cut at maxShown characters.
func shown(v recipe.Value) string { return clip(string(recipe.Encode(v))) }

// list writes at most 20 texts after each other.
func list(texts []string) string {
	const most = 20
	if len(texts) <= most {
		return strings.Join(texts, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(texts[:most], ", "), len(texts)-most)
}

// count is "1 item" or "2 items".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Near returns the name among names that name is most likely a misspelling
// of, or "" when none is near: at most one letter in three is off and never
// more than two; case and the separators _ - . do not count.
func Near(name string, names []string) string {
	if len(name) > maxShown {
		return ""
	}
	best, least := "", min(2, utf8.RuneCountInString(name)/3)+1
	for _, n := range names {
		if len(n) > maxShown {
			continue
		}
		if d := distance(fold(name), fold(n)); d < least {
			best, least = n, d
		}
	}
	return best
}

var joiners = strings.NewReplacer("_", "", "-", "", ".", "")

// fold lowers case and drops the separators that people vary.
func fold(s string) []rune {
	return []rune(joiners.Replace(strings.ToLower(s)))
}

// distance counts insertions, deletions, replacements and swaps of neighbours
// between two short texts (optimal string alignment).
func distance(a, b []rune) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

// didYouMean is a hint, or "".
func didYouMean(name string, names []string) string {
	if n := Near(name, names); n != "" {
		return fmt.Sprintf("did you mean %q?", n)
	}
	return ""
}
