package schema

import (
	"regexp"
	"regexp/syntax"
	"unicode/utf8"
)

// Matching in RE2 is linear in the text, but with a factor: each character may
// visit every state of the pattern, which costs 10 to 20 ns a state (measured,
// Go 1.26). A pattern of 22 bytes can have thousands of states, so both its
// states and the product with the text are bounded. A whole call stays below
// 100 ms with these figures.
const (
	MaxStates       = 2500      // of one pattern: what {1,1000} of one character makes, and some
	MaxSchemaStates = 20_000    // of all patterns of a schema
	maxPatternWork  = 3_000_000 // states times characters, in one check of arguments
)

// A pattern is a compiled pattern and the bound of its states.
type pattern struct {
	re     *regexp.Regexp
	states int
}

// longest is the number of characters a value can have for the pattern.
func (p *pattern) longest() int { return maxPatternWork/p.states - 1 }

// patternStates bounds the states of s from above, without compiling it: that
// may already take a hundred megabytes. ok is false when s is no pattern.
func patternStates(s string) (states int, ok bool) {
	re, err := syntax.Parse(s, syntax.Perl)
	if err != nil {
		return 0, false
	}
	return min(statesOf(re), 1<<30) + 2, true // the start and the match
}

// statesOf counts the states of one expression, as regexp/syntax compiles it:
// counted repetitions are written out. The parser bounds the nesting, and the
// product of nested counts to 1000.
func statesOf(re *syntax.Regexp) int {
	n := 0
	for _, sub := range re.Sub {
		n += statesOf(sub)
	}
	switch re.Op {
	case syntax.OpLiteral:
		return max(len(re.Rune), 1)
	case syntax.OpCharClass:
		return 1 + len(re.Rune)/512 // letters of all scripts take three times as long
	case syntax.OpCapture:
		return n + 2
	case syntax.OpAlternate:
		return n + len(re.Sub)
	case syntax.OpConcat:
		return n
	case syntax.OpRepeat:
		optional := max(re.Max, re.Min, 1) - re.Min // one state more for each
		return n*(re.Min+optional) + optional + 2
	case syntax.OpStar:
		return n + 2
	}
	return n + 1
}

// matches reports whether s fits the pattern of n, within what is left of the
// work of this check; without enough left it is a problem of its own.
func (c *checker) matches(p *pattern, s, field string) (ok bool) {
	size := utf8.RuneCountInString(s)
	switch work := p.states * (size + 1); {
	case size > p.longest():
		c.problem(field, "TOO_LONG", "", "with this pattern a value can have at most %d characters, has %d", p.longest(), size)
		return true
	case c.work+work > maxPatternWork:
		c.problem(field, "TOO_LONG", "send less at once", "the values up to here are together too long for their patterns")
		return true
	default:
		c.work += work
	}
	return p.re.MatchString(s)
}
