package schema

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// Validate fills defaults into args and checks the result. Fields of problems
// and warnings start with "args", as in args.items[0].qty; at most
// recipe.MaxProblems of each are listed, in the order of the arguments, missing
// ones first.
//
// A default is filled in where an object is given and the member is missing,
// at the root and below it; a missing object is not invented, and an explicit
// null is a value. Nothing is converted. Without problems filled is what a
// request is built from: the members given, in their order, then the filled
// ones in the order of the schema.
func (s *Schema) Validate(args recipe.Object) (filled recipe.Object, warnings, problems []recipe.Problem) {
	c := checker{}
	f := filler{left: maxFilled}
	filled, _ = f.fill(s.root, args).(recipe.Object)
	if f.left < 0 {
		c.problem("args", "TOO_MANY", "", "the defaults would add more than %d values", maxFilled)
		return args, nil, c.problems
	}
	costly := 0
	eachNumber(filled, "args", func(field string, n json.Number) {
		switch {
		case !bounded(n):
			c.problem(field, "RANGE", "", "a number can have %d characters and an exponent up to %d", MaxDigits, MaxExponent)
		case exponent(n) > cheapExponent || exponent(n) < -cheapExponent:
			if costly++; costly == maxCostly+1 {
				c.problem(field, "TOO_MANY", "", "more than %d numbers with an exponent above %d", maxCostly, cheapExponent)
			}
		}
	})
	if len(c.problems) > 0 {
		return filled, nil, c.problems
	}
	c.value(s.root, filled, "args")
	if len(c.problems) == 0 && !s.judge.accepts(filled) {
		c.problem("args", "TYPE", "wrap_get or `hbrestd wrapper show` shows the schema", "the arguments do not fit the input schema")
	}
	return filled, c.warnings, c.problems
}

// Bounds of what a megabyte of arguments can make the check do.
const (
	maxFilled = 100_000 // defaults filled in: a schema may have 200, an array many objects
	maxCostly = 1000    // numbers like 1e300: each costs microseconds, not nanoseconds
)

// A filler fills defaults in; left falls below zero when there are too many.
type filler struct{ left int }

// fill returns v with the defaults of n filled in. v itself is not changed.
func (f *filler) fill(n *node, v recipe.Value) recipe.Value {
	if n == nil || !n.defaultsFill || f.left < 0 {
		return v
	}
	switch v := v.(type) {
	case recipe.Object:
		out := make(recipe.Object, len(v))
		for i, m := range v {
			out[i] = recipe.Member{Key: m.Key, Value: f.fill(n.prop(m.Key), m.Value)}
		}
		for _, p := range n.props {
			if !p.node.hasDef {
				continue
			}
			if _, ok := v.Get(p.name); ok {
				continue
			}
			if f.left--; f.left < 0 {
				return v
			}
			out = append(out, recipe.Member{Key: p.name, Value: f.fill(p.node, p.node.def)})
		}
		return out
	case recipe.Array:
		if n.items == nil || !n.items.defaultsFill {
			return v
		}
		out := make(recipe.Array, len(v))
		for i, e := range v {
			out[i] = f.fill(n.items, e)
		}
		return out
	}
	return v
}

// eachNumber calls f for every number inside v with its place.
func eachNumber(v recipe.Value, field string, f func(field string, n json.Number)) {
	switch v := v.(type) {
	case json.Number:
		f(field, v)
	case recipe.Array:
		for i, e := range v {
			if compound(e) { // spares the text of the place
				eachNumber(e, fmt.Sprintf("%s[%d]", field, i), f)
			}
		}
	case recipe.Object:
		for _, m := range v {
			if compound(m.Value) {
				eachNumber(m.Value, at(field, m.Key), f)
			}
		}
	}
}

// compound reports whether v is a number or may hold one.
func compound(v recipe.Value) bool {
	switch v.(type) {
	case json.Number, recipe.Array, recipe.Object:
		return true
	}
	return false
}

// A checker collects the problems of one set of arguments.
type checker struct {
	warnings, problems []recipe.Problem

	work int // states times characters of the patterns matched so far
}

func (c *checker) problem(field, code, hint, format string, args ...any) {
	if len(c.problems) < recipe.MaxProblems {
		c.problems = append(c.problems, recipe.Problem{Field: field, Code: code, Message: fmt.Sprintf(format, args...), Hint: hint})
	}
}

func (c *checker) full() bool { return len(c.problems) >= recipe.MaxProblems }

// value checks one value; numbers in it are bounded.
func (c *checker) value(n *node, v recipe.Value, field string) {
	typ := typeOf(v)
	if !n.allows(typ) {
		c.wrongType(n, v, typ, field)
		return
	}
	switch v := v.(type) {
	case string:
		c.text(n, v, field)
	case json.Number:
		c.number(n, v, field)
	case recipe.Array:
		c.array(n, v, field)
	case recipe.Object:
		c.object(n, v, field)
	}
	if n.enum != nil && !n.inEnum(v) {
		c.notInEnum(n, v, field)
	}
}

func (c *checker) wrongType(n *node, v recipe.Value, typ, field string) {
	if v == nil {
		c.problem(field, "NULL_NOT_ALLOWED", "leave it out, or give a value", "null is not allowed, expected %s", typesText(n.types))
		return
	}
	if typ == "number" && n.types[0] == "integer" {
		c.problem(field, "TYPE", "", "expected %s, got a number with a fraction", typesText(n.types))
		return
	}
	c.problem(field, "TYPE", typeHint(n.types[0], v), "expected %s, got %s", typesText(n.types), typ)
}

// typeHint knows the usual slips of a model: a value in quotes, and the reverse.
func typeHint(want string, v recipe.Value) string {
	s, isText := v.(string)
	switch {
	case !isText && want == "string":
		switch v.(type) {
		case json.Number, bool:
			return "put the value in quotes"
		}
	case !isText && want == "array":
		return "put the value in square brackets"
	case isText && want == "array" && strings.HasPrefix(strings.TrimSpace(s), "["):
		return "send the array itself, not a string that holds it"
	case isText && want == "object" && strings.HasPrefix(strings.TrimSpace(s), "{"):
		return "send the object itself, not a string that holds it"
	case isText && (want == "integer" || want == "number") && len(s) <= MaxDigits:
		if inside, err := recipe.Decode([]byte(s), recipe.DecodeLimits{}); err == nil {
			if _, ok := inside.(json.Number); ok {
				return "send the number without quotes"
			}
		}
	case isText && want == "boolean" && (s == "true" || s == "false"):
		return "send true or false without quotes"
	}
	return ""
}

func (c *checker) text(n *node, s, field string) {
	size := utf8.RuneCountInString(s)
	if n.minLen != nil && size < *n.minLen {
		c.problem(field, "TOO_SHORT", "", "must have at least %s, has %d", count(*n.minLen, "character"), size)
	}
	if n.maxLen != nil && size > *n.maxLen {
		c.problem(field, "TOO_LONG", "", "can have at most %s, has %d", count(*n.maxLen, "character"), size)
		return // a pattern would only cost time
	}
	if n.pattern != nil && !c.matches(n.pattern, s, field) {
		c.problem(field, "PATTERN", "", "must match the pattern %s", clip(n.pattern.re.String()))
	}
}

func (c *checker) number(n *node, v json.Number, field string) {
	if n.min == nil && n.max == nil {
		return
	}
	r := rat(v)
	if n.min != nil && r.Cmp(n.min.rat) < 0 {
		c.problem(field, "RANGE", "", "must be at least %s", n.min.text)
	}
	if n.max != nil && r.Cmp(n.max.rat) > 0 {
		c.problem(field, "RANGE", "", "must be at most %s", n.max.text)
	}
}

func (c *checker) array(n *node, v recipe.Array, field string) {
	if n.minItems != nil && len(v) < *n.minItems {
		c.problem(field, "TOO_FEW", "", "must have at least %s, has %d", count(*n.minItems, "item"), len(v))
	}
	if n.maxItems != nil && len(v) > *n.maxItems {
		c.problem(field, "TOO_MANY", "", "can have at most %s, has %d", count(*n.maxItems, "item"), len(v))
	}
	if n.items == nil {
		return
	}
	for i, e := range v {
		if c.full() {
			return
		}
		c.value(n.items, e, fmt.Sprintf("%s[%d]", field, i))
	}
}

func (c *checker) object(n *node, v recipe.Object, field string) {
	for _, name := range n.required {
		if _, ok := v.Get(name); !ok {
			c.missing(n.prop(name), at(field, name))
		}
	}
	for _, m := range v {
		if c.full() {
			return
		}
		p := n.prop(m.Key)
		if p != nil {
			c.value(p, m.Value, at(field, m.Key))
			continue
		}
		if n.closed {
			c.problem(at(field, m.Key), "UNKNOWN_FIELD", didYouMean(m.Key, n.names()), "%s", n.unknown(field))
			continue
		}
		// An object without declared members is free-form below the root.
		if (len(n.props) > 0 || field == "args") && len(c.warnings) < recipe.MaxProblems {
			c.warnings = append(c.warnings, recipe.Problem{
				Field: at(field, m.Key), Code: "UNKNOWN_FIELD",
				Hint: didYouMean(m.Key, n.names()), Message: n.unknown(field),
			})
		}
	}
}

// unknown words an unknown member.
func (n *node) unknown(field string) string {
	what := "member"
	if field == "args" {
		what = "argument"
	}
	if len(n.props) == 0 {
		return fmt.Sprintf("unknown %s; none is accepted", what)
	}
	names := n.names()
	for i := range names {
		names[i] = clip(names[i])
	}
	return fmt.Sprintf("unknown %s; accepted: %s", what, list(names))
}

func (c *checker) missing(p *node, field string) {
	wants := typesText(p.types)
	if p.description != "" {
		wants += ": " + clip(p.description)
	}
	c.problem(field, "REQUIRED", "", "is required (%s)", wants)
}

func (c *checker) notInEnum(n *node, v recipe.Value, field string) {
	if c.full() {
		return
	}
	texts := make([]string, len(n.enum))
	for i, e := range n.enum {
		texts[i] = shown(e)
	}
	code := n.enumCode
	if code == "" {
		code = "ENUM"
	}
	hint := ""
	if s, ok := v.(string); ok {
		var names []string
		for _, e := range n.enum {
			if name, ok := e.(string); ok {
				names = append(names, name)
			}
		}
		hint = didYouMean(s, names)
	}
	c.problem(field, code, hint, "must be one of %s", list(texts))
}

func (n *node) inEnum(v recipe.Value) bool {
	if number, ok := v.(json.Number); ok {
		return n.enumNumbers[valueKey(number)]
	}
	for _, e := range n.enum {
		if equal(e, v) {
			return true
		}
	}
	return false
}
