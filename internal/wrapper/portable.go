package wrapper

import (
	"encoding/json"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strings"

	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// One tool with a schema that a client does not like can take all its other
// tools away. So a client is shown a cleaned copy of the input schema: what the
// strictest known client takes, with the rest said in words. The daemon goes on
// to check arguments against the author's schema, which stays as it was.

// maxPublished is how many bytes the published schema of a tool may have:
// every client pays for it in every session, and the tool list of 200 such
// tools must fit into one message.
const maxPublished = 32 << 10

// Published is the input schema of w as a client is shown it: an object with
// properties, in the author's order; each array with items that say something;
// one type for each value, never null; enums of texts only; patterns that
// JavaScript reads as this package does; the formats date, date-time, uri and
// email; nothing required that has a default; no $-keywords, no combinators and
// no boolean in the place of a schema. What is left out is said in descriptions.
//
// A wrapper whose schema some client refuses however it is cleaned, and with it
// the whole tool list, has none and cannot be a tool of its own: then reason,
// one line, says why.
func Published(w *Wrapper) (schema []byte, reason string) {
	in := w.EffectiveSchema()
	if bad := badKeys(in, inputField); len(bad) > 0 {
		return nil, bad[0].Message
	}
	schema = recipe.Encode((&cleaner{}).node(in, inputField))
	if reason = tooLong(schema); reason != "" {
		return nil, reason
	}
	return schema, ""
}

// Portable is the reason why a wrapper cannot be a tool of its own, as Published
// gives it; empty when it can.
func Portable(w *Wrapper) (reason string) {
	_, reason = Published(w)
	return reason
}

func tooLong(schema []byte) string {
	if n := len(schema); n > maxPublished {
		return fmt.Sprintf("the schema has %d bytes, a tool's can have %d", n, maxPublished)
	}
	return ""
}

const inputField = "wrapper.inputSchema"

// A cleaner makes the published copy of a schema and notes what an author
// could do better.
type cleaner struct{ notes []recipe.Problem }

func (c *cleaner) note(field, hint, format string, args ...any) {
	add(&c.notes, recipe.Problem{Field: field, Code: "TOOL_PORTABILITY", Message: fmt.Sprintf(format, args...), Hint: hint})
}

// node cleans one schema. in was admitted by the gate of package schema.
func (c *cleaner) node(in recipe.Object, field string) recipe.Object {
	kind, nullable := oneType(in)
	onlyNull := kind == "" && nullable
	var words []string // what keywords would have said
	say := func(format string, args ...any) { words = append(words, fmt.Sprintf(format, args...)) }
	out := make(recipe.Object, 0, len(in))
	keep := func(key string, v recipe.Value) { out = append(out, recipe.Member{Key: key, Value: v}) }
	for _, m := range in {
		switch m.Key {
		case "type":
			if kind != "" {
				keep("type", kind)
			}
		case "properties":
			props, _ := m.Value.(recipe.Object)
			clean := make(recipe.Object, len(props))
			for i, p := range props {
				child, _ := p.Value.(recipe.Object)
				clean[i] = recipe.Member{Key: p.Key, Value: c.node(child, at(at(field, "properties"), p.Key))}
			}
			keep("properties", clean)
		case "required":
			if names := withoutDefault(m.Value, in); len(names) > 0 {
				keep("required", names)
			}
		case "items":
			child, _ := m.Value.(recipe.Object)
			keep("items", c.node(child, at(field, "items")))
		case "enum":
			values, texts := enumValues(m.Value)
			all, _ := m.Value.(recipe.Array)
			nullable = nullable || len(values) < len(all)
			if kind == "" {
				if common := commonType(values); common != "" {
					keep("type", common)
				}
			}
			c.rounded(at(field, "enum"), values...)
			switch {
			case texts:
				keep("enum", values)
			case len(values) > 0:
				say("One of: %s.", listed(values, recipe.MaxProblems))
				c.note(at(field, "enum"), "make it an enum of strings, or live with words",
					"Gemini clients refuse an enum with other values than texts; tools show it in the description instead")
			}
		case "default":
			c.rounded(at(field, m.Key), m.Value)
			if m.Value != nil {
				keep("default", m.Value)
			}
		case "pattern":
			p, _ := m.Value.(string)
			if portablePattern(p) {
				keep("pattern", p)
				break
			}
			say("Must match %s (RE2).", p)
			c.note(at(field, "pattern"), "use what RE2 and ECMAScript both have",
				"JavaScript clients refuse this pattern or read it otherwise; tools show it in the description instead")
		case "format":
			switch f, _ := m.Value.(string); f {
			case "date", "date-time", "uri", "email":
				keep("format", f)
			case "":
			default:
				say("Format: %s.", f)
			}
		case "examples":
			if values, _ := m.Value.(recipe.Array); len(values) > 0 {
				say("For example: %s.", listed(values, 3))
			}
		case "deprecated":
			if m.Value == true {
				say("Deprecated.")
			}
		case "minimum", "maximum":
			c.rounded(at(field, m.Key), m.Value)
			keep(m.Key, m.Value)
		case "title", "description", "minLength", "maxLength", "minItems", "maxItems", "additionalProperties":
			keep(m.Key, m.Value)
		}
	}
	switch {
	case onlyNull:
		say("Always null.")
	case nullable:
		say("May be null.")
	}
	return described(out, words)
}

// rounded notes a whole number that JavaScript holds as another: a client's
// model would be shown, and send, that one.
func (c *cleaner) rounded(field string, values ...recipe.Value) {
	for _, v := range values {
		n, ok := v.(json.Number)
		if !ok {
			continue
		}
		exact, ok := new(big.Int).SetString(string(n), 10)
		if !ok || exact.BitLen() <= 53 {
			continue
		}
		if f, _ := new(big.Float).SetInt(exact).Float64(); big.NewFloat(f).Cmp(new(big.Float).SetInt(exact)) != 0 {
			c.note(field, "declare the argument as a string, which keeps every digit", "JavaScript clients round %s", cut(string(n), 40))
			return
		}
	}
}

// described adds words to a schema's description, and gives one to a schema
// that says nothing: some clients take an empty schema for a missing one.
func described(out recipe.Object, words []string) recipe.Object {
	if len(out) == 0 && len(words) == 0 {
		words = []string{"Any JSON value."}
	}
	if len(words) == 0 {
		return out
	}
	text := strings.Join(words, " ")
	for i, m := range out {
		if s, _ := m.Value.(string); m.Key == "description" && strings.TrimSpace(s) != "" {
			s = strings.TrimRight(s, " \n")
			if !strings.HasSuffix(s, ".") {
				s += "."
			}
			out[i].Value = s + " " + text
			return out
		}
	}
	out = slices.DeleteFunc(out, func(m recipe.Member) bool { return m.Key == "description" })
	return append(out, recipe.Member{Key: "description", Value: text})
}

// oneType is the type of a schema without null; "" for any, or for null alone.
func oneType(in recipe.Object) (kind string, nullable bool) {
	v, _ := in.Get("type")
	names, ok := v.(recipe.Array)
	if !ok {
		names = recipe.Array{v}
	}
	for _, n := range names {
		switch n, _ := n.(string); n {
		case "null":
			nullable = true
		default:
			kind = n
		}
	}
	return kind, nullable
}

// withoutDefault are the required names whose property has no default: the
// daemon fills those in.
func withoutDefault(required recipe.Value, in recipe.Object) recipe.Array {
	names, _ := required.(recipe.Array)
	v, _ := in.Get("properties")
	props, _ := v.(recipe.Object)
	var out recipe.Array
	for _, n := range names {
		name, _ := n.(string)
		p, _ := props.Get(name)
		schema, _ := p.(recipe.Object)
		if _, filled := schema.Get("default"); !filled {
			out = append(out, n)
		}
	}
	return out
}

// enumValues are the values but null; texts is whether each is a text with
// something in it.
func enumValues(v recipe.Value) (values recipe.Array, texts bool) {
	all, _ := v.(recipe.Array)
	texts = true
	for _, e := range all {
		if e == nil {
			continue
		}
		s, ok := e.(string)
		texts = texts && ok && s != ""
		values = append(values, e)
	}
	return values, texts && len(values) > 0
}

// commonType is the type of all values; "" when they differ.
func commonType(values recipe.Array) string {
	common := ""
	for i, v := range values {
		t := typeOf(v)
		if i > 0 && t != common || t == "array" { // an array would need items
			return ""
		}
		common = t
	}
	return common
}

// listed writes at most n values, each cut at 60 characters.
func listed(values recipe.Array, n int) string {
	var out []string
	for i, v := range values {
		if i == n {
			return strings.Join(out, ", ") + fmt.Sprintf(" and %d more", len(values)-n)
		}
		out = append(out, cut(string(recipe.Encode(v)), 60))
	}
	return strings.Join(out, ", ")
}

// portableKey is what the Anthropic API takes as the name of a property.
var portableKey = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)

// badKeys are the properties whose names some client refuses. A name cannot be
// cleaned: it is the argument.
func badKeys(in recipe.Object, field string) []recipe.Problem {
	var out []recipe.Problem
	for _, m := range in {
		child, _ := m.Value.(recipe.Object)
		switch m.Key {
		case "items":
			out = append(out, badKeys(child, at(field, "items"))...)
		case "properties":
			for _, p := range child {
				here := at(at(field, "properties"), p.Key)
				problem := recipe.Problem{Field: here, Code: "TOOL_QUARANTINED", Hint: "rename the argument; wrap_run takes it as it is"}
				switch {
				case p.Key == "__proto__":
					problem.Message = "JavaScript clients lose an argument called __proto__"
				case !portableKey.MatchString(p.Key):
					problem.Message = fmt.Sprintf("the Anthropic API refuses the argument name %q: letters, digits, _ - and . only, at most 64", cut(oneLine(p.Key), 30))
				}
				if problem.Message != "" {
					out = append(out, problem)
				}
				grandchild, _ := p.Value.(recipe.Object)
				out = append(out, badKeys(grandchild, here)...)
			}
		}
	}
	return out
}

// portablePattern reports whether a pattern, which is RE2 already, is read by
// ECMAScript without an error and in the same way, both with the flag u and
// without: clients differ in that.
func portablePattern(p string) bool {
	s := patternScanner{rest: []rune(p)}
	for len(s.rest) > 0 {
		if !s.step() {
			return false
		}
	}
	return true
}

// A patternScanner walks over a valid RE2 pattern.
type patternScanner struct {
	rest      []rune
	assertion bool // the last piece was ^, $, \b or \B, which ECMAScript does not repeat
}

// patternQuantifier is {2}, {2,} or {2,3}; RE2 reads other braces as text.
var patternQuantifier = regexp.MustCompile(`^\{[0-9]+(,[0-9]*)?\}`)

// groupStart is what may follow "(?" in both dialects.
var groupStart = regexp.MustCompile(`^\(\?(:|<[A-Za-z_][A-Za-z0-9_]*>)`)

// simpleEscapes mean the same in both dialects, and in a class too.
const simpleEscapes = `dDwWsSfnrtv^$\.*+?()[]{}|/`

func (s *patternScanner) step() bool {
	r, was := s.rest[0], s.assertion
	s.assertion = false
	switch {
	case r > 0xffff: // two characters without the flag u
		return false
	case r == '\\':
		if len(s.rest) > 1 && (s.rest[1] == 'b' || s.rest[1] == 'B') {
			s.assertion = true
			s.rest = s.rest[2:]
			return true
		}
		return s.escape("")
	case r == '[':
		return s.class()
	case r == '^' || r == '$':
		s.assertion = true
	case r == ']' || r == '}':
		return false // text in RE2, an error with the flag u
	case r == '*' || r == '+' || r == '?':
		if was {
			return false
		}
	case r == '{':
		q := patternQuantifier.FindString(string(s.rest))
		if q == "" || was {
			return false
		}
		s.rest = s.rest[len(q):]
		return true
	case r == '(' && len(s.rest) > 1 && s.rest[1] == '?':
		g := groupStart.FindString(string(s.rest))
		if g == "" {
			return false
		}
		s.rest = s.rest[len(g):]
		return true
	}
	s.rest = s.rest[1:]
	return true
}

// escape reads a backslash and what belongs to it; more are further characters
// that may follow it.
func (s *patternScanner) escape(more string) bool {
	switch {
	case len(s.rest) < 2:
		return false
	case s.rest[1] == 'x':
		if len(s.rest) < 4 || !hexDigit(s.rest[2]) || !hexDigit(s.rest[3]) {
			return false
		}
		s.rest = s.rest[4:]
		return true
	case !strings.ContainsRune(simpleEscapes+more, s.rest[1]):
		return false
	}
	s.rest = s.rest[2:]
	return true
}

func hexDigit(r rune) bool {
	return r >= '0' && r <= '9' || r >= 'a' && r <= 'f' || r >= 'A' && r <= 'F'
}

// class reads [...].
func (s *patternScanner) class() bool {
	s.rest = s.rest[1:]
	if len(s.rest) > 0 && s.rest[0] == '^' {
		s.rest = s.rest[1:]
	}
	if len(s.rest) > 0 && s.rest[0] == ']' {
		return false // text in RE2, the end of an empty class in ECMAScript
	}
	for set := false; len(s.rest) > 0; {
		switch r := s.rest[0]; {
		case r > 0xffff:
			return false
		case r == ']':
			s.rest = s.rest[1:]
			return true
		case r == '[' && len(s.rest) > 1 && s.rest[1] == ':':
			return false // [:alpha:]
		case r == '-' && set && len(s.rest) > 1 && s.rest[1] != ']':
			return false // \w-x is no range, which the flag u forbids
		case r == '\\':
			set = len(s.rest) > 1 && strings.ContainsRune("dDwWsS", s.rest[1])
			if !s.escape("-") {
				return false
			}
		default:
			set = false
			s.rest = s.rest[1:]
		}
	}
	return false
}

// measure returns how many schemas of in are inside each other, and how many
// properties they have together.
func measure(in recipe.Object) (depth, count int) {
	for _, m := range in {
		child, _ := m.Value.(recipe.Object)
		switch m.Key {
		case "items":
			d, n := measure(child)
			depth, count = max(depth, d), count+n
		case "properties":
			count += len(child)
			for _, p := range child {
				grandchild, _ := p.Value.(recipe.Object)
				d, n := measure(grandchild)
				depth, count = max(depth, d), count+n
			}
		}
	}
	return depth + 1, count
}
