package schema

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// Parse admits a schema, or names every keyword and value that it cannot
// admit. field is the place of the schema in its document, such as
// "wrapper.inputSchema", and starts the field of each problem. The Schema is
// nil when the report has problems.
func Parse(doc recipe.Value, field string) (*Schema, recipe.Report) {
	g := &gate{}
	root := g.node(doc, field, 1)
	if root != nil && (len(root.types) != 1 || root.types[0] != "object") && g.report.OK() {
		g.problem(recipe.FieldPath(field, "type"), "SCHEMA_TYPE", `write "type": "object"`,
			"the schema of the arguments describes an object")
	}
	if !g.report.OK() {
		return nil, g.report
	}
	judge, err := newJudge(root)
	if err != nil {
		// Not known to happen; a schema that our own reading admits and the
		// library does not is refused rather than trusted.
		g.problem(field, "SCHEMA_KEYWORD", "simplify the schema", "the schema cannot be compiled")
		return nil, g.report
	}
	return &Schema{root: root, judge: judge}, g.report
}

type gate struct {
	report recipe.Report
	props  int
	states int // of all patterns
	work   int // of matching the defaults against them
}

func (g *gate) problem(field, code, hint, format string, args ...any) {
	if len(g.report.Problems) < recipe.MaxProblems {
		g.report.Problems = append(g.report.Problems, recipe.Problem{Field: field, Code: code, Message: fmt.Sprintf(format, args...), Hint: hint})
	}
}

func (g *gate) warn(field, code, hint, format string, args ...any) {
	if len(g.report.Warnings) < recipe.MaxProblems {
		g.report.Warnings = append(g.report.Warnings, recipe.Problem{Field: field, Code: code, Message: fmt.Sprintf(format, args...), Hint: hint})
	}
}

// full reports whether nothing more will be listed. Looking for near names is
// not free, so a loop that makes hints asks first.
func (g *gate) full() bool { return len(g.report.Problems) >= recipe.MaxProblems }

// refused says what to write instead of a keyword that is not admitted.
var refused = map[string]string{
	"$ref":                  "write the schema that it points to in its place",
	"$defs":                 "write each schema in the place where it is used",
	"definitions":           "write each schema in the place where it is used",
	"oneOf":                 "describe one shape, or leave type out to accept any value",
	"anyOf":                 `describe one shape, or leave type out to accept any value; for "or null" write "type": ["string", "null"]`,
	"allOf":                 "write the parts as one schema",
	"not":                   "leave it out",
	"if":                    "leave it out",
	"then":                  "leave it out",
	"else":                  "leave it out",
	"const":                 "write an enum with one value",
	"nullable":              `write "type": ["string", "null"]`,
	"example":               "write examples, an array",
	"exclusiveMinimum":      "write minimum",
	"exclusiveMaximum":      "write maximum",
	"multipleOf":            "say it in description",
	"uniqueItems":           "say it in description",
	"prefixItems":           "write one schema for all items",
	"contains":              "say it in description",
	"patternProperties":     "declare the properties by name",
	"propertyNames":         "declare the properties by name",
	"minProperties":         "write required",
	"maxProperties":         "declare the properties by name",
	"dependencies":          "say it in description",
	"dependentRequired":     "say it in description",
	"readOnly":              "leave it out",
	"writeOnly":             "leave it out",
	"$comment":              "write description",
	"additionalItems":       "write one schema for all items",
	"unevaluatedItems":      "leave it out",
	"unevaluatedProperties": "leave it out",
}

// admitted are the keywords that a schema may hold, for hints.
var admitted = []string{
	"type", "properties", "required", "items", "default", "enum", "minimum", "maximum",
	"minLength", "maxLength", "minItems", "maxItems", "pattern", "additionalProperties",
	"title", "description", "examples", "deprecated", "format",
}

// node admits one schema; nil when there is nothing to go on with.
func (g *gate) node(v recipe.Value, field string, depth int) *node {
	obj, ok := v.(recipe.Object)
	if !ok {
		g.problem(field, "SCHEMA_TYPE", `write an object such as {"type": "string"}`, "expected a schema object, got %s", typeOf(v))
		return nil
	}
	if depth > MaxDepth {
		g.problem(field, "SCHEMA_TOO_DEEP", "make the input flatter", "more than %d schemas inside each other", MaxDepth)
		return nil
	}
	if _, ok := obj.Get("$ref"); ok { // nothing beside it has a meaning of its own
		g.refuse(field, "$ref")
		return nil
	}
	n := &node{}
	before := len(g.report.Problems)
	if t, ok := obj.Get("type"); ok {
		n.types = g.types(t, recipe.FieldPath(field, "type"))
	}
	untypable := len(g.report.Problems) > before
	for _, m := range obj {
		if g.member(n, m, field, depth, untypable) {
			n.doc = append(n.doc, m)
		}
	}
	if len(g.report.Problems) == before {
		g.agree(n, field)
	}
	if len(g.report.Problems) == before {
		g.fits(n, field)
	}
	// The documents below were normalised on their own.
	for i, m := range n.doc {
		switch {
		case m.Key == "type" && len(n.types) == 1:
			n.doc[i].Value = n.types[0]
		case m.Key == "items" && n.items != nil:
			n.doc[i].Value = n.items.doc
		case m.Key == "properties":
			props := make(recipe.Object, len(n.props))
			for k, p := range n.props {
				props[k] = recipe.Member{Key: p.name, Value: p.node.doc}
			}
			n.doc[i].Value = props
		}
	}
	if n.doc == nil {
		n.doc = recipe.Object{}
	}
	return n
}

func (g *gate) refuse(field, keyword string) {
	if g.full() {
		return
	}
	hint, known := refused[keyword]
	if !known {
		hint = didYouMean(keyword, admitted)
	}
	if hint == "" {
		hint = "leave it out"
	}
	g.problem(at(field, keyword), "SCHEMA_KEYWORD", hint, "keyword %q is not supported", clip(keyword))
}

// types reads "string", ["string"] or ["string", "null"].
func (g *gate) types(v recipe.Value, field string) []string {
	names := []string{}
	switch v := v.(type) {
	case string:
		names = append(names, v)
	case recipe.Array:
		for _, e := range v {
			s, ok := e.(string)
			if !ok {
				g.problem(field, "SCHEMA_TYPE", `write "string", or ["string", "null"]`, "a type is a name, got %s", typeOf(e))
				return nil
			}
			names = append(names, s)
		}
	default:
		g.problem(field, "SCHEMA_TYPE", `write "string", or ["string", "null"]`, "expected the name of a type, got %s", typeOf(v))
		return nil
	}
	var main string
	null := 0
	for _, name := range names {
		switch name {
		case "null":
			null++
		case "object", "array", "string", "number", "integer", "boolean":
			if main != "" {
				g.problem(field, "SCHEMA_TYPE", "keep one type, or leave type out to accept any value", "a list may hold one type and null")
				return nil
			}
			main = name
		default:
			known := []string{"object", "array", "string", "number", "integer", "boolean", "null"}
			g.problem(field, "SCHEMA_TYPE", "use one of "+strings.Join(known, ", "), "unknown type %q", clip(name))
			return nil
		}
	}
	switch {
	case null > 1 || len(names) == 0:
		g.problem(field, "SCHEMA_TYPE", `write "string", or ["string", "null"]`, "a list may hold one type and null")
		return nil
	case main == "":
		return []string{"null"}
	case null == 1:
		return []string{main, "null"}
	}
	return []string{main}
}

// needs says to which type a keyword belongs.
var needs = map[string][]string{
	"properties": {"object"}, "required": {"object"}, "additionalProperties": {"object"},
	"items": {"array"}, "minItems": {"array"}, "maxItems": {"array"},
	"minLength": {"string"}, "maxLength": {"string"}, "pattern": {"string"},
	"minimum": {"number", "integer"}, "maximum": {"number", "integer"},
}

// member admits one keyword and reports whether it stays in the document.
func (g *gate) member(n *node, m recipe.Member, field string, depth int, untypable bool) bool {
	here := at(field, m.Key)
	if _, flag := m.Value.(bool); flag && m.Key == "required" && depth > 1 && !slices.Contains(n.types, "object") {
		g.warn(here, "SCHEMA_KEYWORD", requiredHint(field), "dropped: required is a list of names, in the object that has the property")
		return false
	}
	if types := needs[m.Key]; types != nil && !untypable {
		if n.types == nil {
			g.problem(here, "SCHEMA_TYPE", fmt.Sprintf("add \"type\": %q", types[0]),
				"%s needs a type beside it, or values of other types pass unchecked", m.Key)
			return false
		}
		if n.types[0] != types[0] && n.types[0] != types[len(types)-1] {
			g.warn(here, "SCHEMA_KEYWORD", "", "dropped: %s means nothing for type %s", m.Key, n.types[0])
			return false
		}
	}
	switch m.Key {
	case "type": // read before
	case "$schema", "$id":
		g.warn(here, "SCHEMA_KEYWORD", "", "dropped: %s is not used", m.Key)
		return false
	case "additionalProperties":
		switch m.Value {
		case true:
			g.warn(here, "SCHEMA_KEYWORD", "", "dropped: unknown arguments are accepted with a warning anyway")
			return false
		case false:
			n.closed = true
		default:
			g.problem(here, "SCHEMA_KEYWORD", "write false, or leave it out", "additionalProperties can only be false")
		}
	case "properties":
		g.properties(n, m.Value, here, depth)
	case "required":
		g.required(n, m.Value, here)
	case "items":
		n.items = g.node(m.Value, here, depth+1)
	case "enum":
		g.enum(n, m.Value, here)
	case "default":
		if depth == 1 {
			g.warn(here, "SCHEMA_KEYWORD", "give the properties their defaults", "dropped: the arguments as a whole have no default")
			return false
		}
		n.def, n.hasDef = m.Value, true
		g.numbers(m.Value, here)
	case "minimum":
		n.min = g.bound(m.Value, here)
	case "maximum":
		n.max = g.bound(m.Value, here)
	case "minLength":
		n.minLen = g.size(m.Value, here)
	case "maxLength":
		n.maxLen = g.size(m.Value, here)
	case "minItems":
		n.minItems = g.size(m.Value, here)
	case "maxItems":
		n.maxItems = g.size(m.Value, here)
	case "pattern":
		g.pattern(n, m.Value, here)
	case "title", "description", "format":
		s, ok := m.Value.(string)
		if !ok {
			g.problem(here, "TYPE", "", "expected string, got %s", typeOf(m.Value))
		}
		if m.Key == "description" {
			n.description = s
		}
	case "examples":
		if _, ok := m.Value.(recipe.Array); !ok {
			g.problem(here, "TYPE", "write an array of examples", "expected array, got %s", typeOf(m.Value))
		}
	case "deprecated":
		if _, ok := m.Value.(bool); !ok {
			g.problem(here, "TYPE", "", "expected boolean, got %s", typeOf(m.Value))
		}
	default:
		if _, isSchema := m.Value.(recipe.Object); isSchema && depth == 1 && refused[m.Key] == "" && Near(m.Key, admitted) == "" {
			g.problem(here, "SCHEMA_KEYWORD", fmt.Sprintf(`write "properties": {%q: {…}}`, clip(m.Key)), "keyword %q is not supported", clip(m.Key))
			break
		}
		g.refuse(field, m.Key)
	}
	return true
}

func (g *gate) properties(n *node, v recipe.Value, field string, depth int) {
	obj, ok := v.(recipe.Object)
	if !ok {
		g.problem(field, "TYPE", `write an object by name, such as {"q": {"type": "string"}}`, "expected object, got %s", typeOf(v))
		return
	}
	for _, m := range obj {
		here := at(field, m.Key)
		if g.props++; g.props == MaxProperties+1 {
			g.problem(here, "TOO_MANY", "make the input smaller", "more than %d properties in the schema", MaxProperties)
		}
		if g.props > MaxProperties {
			return
		}
		switch {
		case m.Key == "":
			g.problem(here, "PATTERN", "", "a property's name cannot be empty")
			continue
		case utf8.RuneCountInString(m.Key) > MaxName:
			g.problem(here, "TOO_LONG", "", "a property's name can have %d characters", MaxName)
			continue
		case strings.ContainsFunc(m.Key, unicode.IsControl):
			g.problem(here, "CONTROL_CHARACTER", "", "a property's name cannot have control characters")
			continue
		case n.prop(m.Key) != nil:
			g.problem(here, "DUPLICATE", "", "property %q is declared twice", clip(m.Key))
			continue
		}
		if child := g.node(m.Value, here, depth+1); child != nil {
			n.props = append(n.props, property{m.Key, child})
		}
	}
}

func (g *gate) required(n *node, v recipe.Value, field string) {
	names, ok := v.(recipe.Array)
	if !ok {
		hint := `write an array of names beside properties, such as ["q"]`
		if _, flag := v.(bool); flag {
			hint = requiredHint(strings.TrimSuffix(field, ".required"))
		}
		g.problem(field, "TYPE", hint, "expected array, got %s", typeOf(v))
		return
	}
	seen := map[string]bool{}
	for i, e := range names {
		here := fmt.Sprintf("%s[%d]", field, i)
		name, ok := e.(string)
		if !ok {
			g.problem(here, "TYPE", "", "expected string, got %s", typeOf(e))
			continue
		}
		if seen[name] {
			g.problem(here, "DUPLICATE", "", "%q is listed twice", clip(name))
			continue
		}
		seen[name] = true
		n.required = append(n.required, name)
	}
}

// lastProperty is the name of the property that a place ends with.
var lastProperty = regexp.MustCompile(`\.properties\.([A-Za-z_][A-Za-z0-9_-]*)$`)

// requiredHint is for "required": true in a property, the way of draft 3 and
// of OpenAPI's parameters.
func requiredHint(field string) string {
	name := "q"
	if m := lastProperty.FindStringSubmatch(field); m != nil {
		name = m[1]
	}
	return fmt.Sprintf(`write "required": [%q] in the object's own schema, beside properties`, name)
}

func (g *gate) enum(n *node, v recipe.Value, field string) {
	values, ok := v.(recipe.Array)
	switch {
	case !ok:
		g.problem(field, "TYPE", "write an array of the allowed values", "expected array, got %s", typeOf(v))
		return
	case len(values) == 0:
		g.problem(field, "TOO_FEW", "list the allowed values", "an enum without values accepts nothing")
		return
	case len(values) > MaxEnum:
		g.problem(field, "TOO_MANY", "say in description which values are allowed", "an enum can have %d values, this one has %d", MaxEnum, len(values))
		return
	}
	n.enumNumbers = map[string]bool{}
	for i, e := range values {
		here := fmt.Sprintf("%s[%d]", field, i)
		if !g.numbers(e, here) {
			continue
		}
		if n.types != nil && !n.allows(typeOf(e)) {
			g.problem(here, "SCHEMA_TYPE", "", "the value is %s, but the type is %s", typeOf(e), typesText(n.types))
		}
		if n.inEnum(e) {
			g.problem(here, "DUPLICATE", "", "the value is listed twice")
		}
		n.enum = append(n.enum, e)
		if number, ok := e.(json.Number); ok {
			n.enumNumbers[valueKey(number)] = true
		}
	}
}

// numbers refuses numbers whose exact value would be costly.
func (g *gate) numbers(v recipe.Value, field string) bool {
	ok := true
	eachNumber(v, field, func(field string, n json.Number) {
		if !bounded(n) {
			ok = false
			g.problem(field, "RANGE", "", "a number can have %d characters and an exponent up to %d", MaxDigits, MaxExponent)
		}
	})
	return ok
}

func (g *gate) bound(v recipe.Value, field string) *bound {
	n, ok := v.(json.Number)
	if !ok {
		g.problem(field, "TYPE", "", "expected number, got %s", typeOf(v))
		return nil
	}
	if !g.numbers(n, field) {
		return nil
	}
	return &bound{n, rat(n)}
}

// size reads a count of characters or items.
func (g *gate) size(v recipe.Value, field string) *int {
	n, ok := v.(json.Number)
	if !ok {
		g.problem(field, "TYPE", "", "expected integer, got %s", typeOf(v))
		return nil
	}
	i, err := strconv.ParseUint(string(n), 10, 31)
	if err != nil {
		g.problem(field, "RANGE", "", "expected a whole number from 0 to %d", 1<<31-1)
		return nil
	}
	size := int(i)
	return &size
}

func (g *gate) pattern(n *node, v recipe.Value, field string) {
	s, ok := v.(string)
	if !ok {
		g.problem(field, "TYPE", "", "expected string, got %s", typeOf(v))
		return
	}
	if len(s) > MaxPattern {
		g.problem(field, "TOO_LONG", "", "a pattern can have %d bytes, this one has %d", MaxPattern, len(s))
		return
	}
	states, ok := patternStates(s)
	if g.states += states; ok && (states > MaxStates || g.states > MaxSchemaStates) {
		const hint = "repeat less, such as {1,100} instead of {1,1000}, or bound the length with maxLength"
		if states > MaxStates {
			g.problem(field, "PATTERN_INVALID", hint, "with its repetitions written out the pattern has more than %d states", MaxStates)
		} else {
			g.problem(field, "PATTERN_INVALID", hint, "the patterns of the schema have together more than %d states", MaxSchemaStates)
		}
		return
	}
	re, err := regexp.Compile(s)
	if !ok || err != nil {
		g.problem(field, "PATTERN_INVALID", "use RE2 syntax: no lookahead, no look-behind, no back-references, \\x{00e9} instead of \\u00e9",
			"not a regular expression in RE2 syntax")
		return
	}
	n.pattern = &pattern{re, states}
}

// agree checks the keywords of one schema against each other.
func (g *gate) agree(n *node, field string) {
	if n.min != nil && n.max != nil && n.min.rat.Cmp(n.max.rat) > 0 {
		g.problem(recipe.FieldPath(field, "minimum"), "RANGE", "", "minimum is above maximum")
	}
	if n.minLen != nil && n.maxLen != nil && *n.minLen > *n.maxLen {
		g.problem(recipe.FieldPath(field, "minLength"), "RANGE", "", "minLength is above maxLength")
	}
	if n.minItems != nil && n.maxItems != nil && *n.minItems > *n.maxItems {
		g.problem(recipe.FieldPath(field, "minItems"), "RANGE", "", "minItems is above maxItems")
	}
	names := n.names()
	for i, r := range n.required {
		if !g.full() && n.prop(r) == nil {
			g.problem(fmt.Sprintf("%s[%d]", recipe.FieldPath(field, "required"), i), "UNKNOWN_FIELD", didYouMean(r, names),
				"%q is not one of the properties", clip(r))
		}
	}
}

func (n *node) names() []string {
	out := make([]string, len(n.props))
	for i, p := range n.props {
		out[i] = p.name
	}
	return out
}

// fits checks that the default fits its own schema, and notes where defaults
// are, so that filling visits nothing else.
func (g *gate) fits(n *node, field string) {
	for _, p := range n.props {
		n.defaultsFill = n.defaultsFill || p.node.hasDef || p.node.defaultsFill
	}
	n.defaultsFill = n.defaultsFill || n.items != nil && n.items.defaultsFill
	if !n.hasDef {
		return
	}
	c, f := checker{work: g.work}, filler{left: maxFilled}
	c.value(n, f.fill(n, n.def), recipe.FieldPath(field, "default"))
	g.work = c.work
	for _, p := range c.problems {
		g.problem(p.Field, "SCHEMA_DEFAULT", p.Hint, "the default does not fit: %s", p.Message)
	}
}
