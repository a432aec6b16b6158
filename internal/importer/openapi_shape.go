package importer

import (
	"encoding/json"
	"math/big"
	"slices"

	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// A bound is a schema as it stands in the document, and the references that
// were followed on the way to it.
type bound struct {
	v  recipe.Value
	at *chain
	// alts, when set, are alternatives of which one holds; v means nothing then.
	alts [][]bound
}

// A chain is the references followed so far, the last one first.
type chain struct {
	ref string
	up  *chain
}

func (c *chain) holds(ref string) bool {
	for ; c != nil; c = c.up {
		if c.ref == ref {
			return true
		}
	}
	return false
}

// A shape is a schema without $ref, allOf, oneOf and anyOf: what their parts
// say together, as far as that can be said.
type shape struct {
	types    []string // without null; none: any value
	nullable bool
	never    bool // nothing fits
	cut      bool // a reference leads back to itself here
	name     string
	props    []prop
	required []string
	open     bool    // says itself that it takes members beyond props
	closed   bool    // takes none
	items    []bound // all of which hold; nil: any
	words    recipe.Object
	enum     recipe.Array // nil: none
	lost     []string     // keywords that are not carried over
	forms    []string     // alternatives that were put into one
}

type prop struct {
	name   string
	bounds []bound // all of which hold
}

// carried are keywords that stay as they are unless another part is stricter.
var carried = []string{
	"title", "description", "format", "default", "example", "examples", "deprecated", "pattern",
	"minLength", "maxLength", "minItems", "maxItems", "minimum", "maximum", "readOnly", "writeOnly",
}

// unchecked are keywords that narrow values in ways that the input schema has
// no words for. The API itself checks them.
var unchecked = []string{
	"multipleOf", "uniqueItems", "not", "if", "patternProperties", "propertyNames", "minProperties", "maxProperties",
	"dependencies", "dependentRequired", "dependentSchemas", "contains", "prefixItems", "unevaluatedProperties", "unevaluatedItems",
}

// A reader of schemas has a budget: a document of a few lines can describe a
// tree without end.
type schemaReader struct {
	d      *document
	budget int
}

const schemaBudget = 8000 // shapes for one operation; GitHub's largest needs 1 100

func (r *schemaReader) shape(bounds ...bound) (*shape, error) {
	if r.budget--; r.budget < 0 {
		return &shape{cut: true}, nil
	}
	out := &shape{}
	for i, b := range bounds {
		part, err := r.one(b)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			out = part
			continue
		}
		out.merge(part)
	}
	return out, nil
}

func (r *schemaReader) one(b bound) (*shape, error) {
	if b.alts != nil {
		return r.oneOf(b.alts)
	}
	switch v := b.v.(type) {
	case bool:
		return &shape{never: !v}, nil
	case recipe.Object:
		if ref, ok := get(v, "$ref").(string); ok {
			return r.referred(v, ref, b.at)
		}
		return r.plain(v, b.at)
	}
	return &shape{}, nil
}

// referred reads a schema with $ref. From 3.1 on the members beside it count;
// before, a description, a default and nullable beside it are what authors
// mean anyway.
func (r *schemaReader) referred(v recipe.Object, ref string, at *chain) (*shape, error) {
	var beside recipe.Object
	for _, m := range v {
		switch m.Key {
		case "$ref", "allOf", "oneOf", "anyOf":
		case "description", "default", "example", "examples", "deprecated", "nullable", "x-nullable", "readOnly", "writeOnly":
			beside = append(beside, m)
		default:
			if r.d.version >= v31 {
				beside = append(beside, m)
			}
		}
	}
	if r.d.version >= v31 {
		for _, key := range []string{"allOf", "oneOf", "anyOf"} {
			if has(v, key) {
				beside = append(beside, recipe.Member{Key: key, Value: get(v, key)})
			}
		}
	}
	var target *shape
	if at.holds(ref) {
		// Only the outermost type is safe to say.
		target = &shape{cut: true, name: refName(ref)}
		if end, _, err := r.d.deref(v); err == nil {
			target.types, target.nullable = types(end)
			if len(target.types) == 0 && has(end, "properties") {
				target.types = []string{"object"}
			}
		}
	} else {
		end, err := r.d.lookup(ref)
		if err != nil {
			return nil, err
		}
		if target, err = r.shape(bound{v: end, at: &chain{ref, at}}); err != nil {
			return nil, err
		}
		if target.name == "" {
			target.name = refName(ref)
		}
	}
	if len(beside) == 0 {
		return target, nil
	}
	out, err := r.plain(beside, at)
	if err != nil {
		return nil, err
	}
	out.merge(target)
	out.name = target.name
	return out, nil
}

// plain reads a schema that has no $ref itself.
func (r *schemaReader) plain(v recipe.Object, at *chain) (*shape, error) {
	s := &shape{}
	s.types, s.nullable = types(v)
	for _, key := range carried {
		if m, ok := v.Get(key); ok && m != nil {
			s.words = append(s.words, recipe.Member{Key: key, Value: m})
		}
	}
	for _, key := range unchecked {
		if m := get(v, key); m != nil && m != false {
			s.lost = append(s.lost, key)
		}
	}
	s.exclusive(v)
	if list, ok := get(v, "enum").(recipe.Array); ok {
		s.enum = slices.Clone(list)
	}
	if c, ok := v.Get("const"); ok {
		s.enum = recipe.Array{c}
	}
	for _, m := range object(v, "properties") {
		s.props = append(s.props, prop{m.Key, []bound{{v: m.Value, at: at}}})
	}
	for _, m := range array(v, "required") {
		if name, ok := m.(string); ok && !slices.Contains(s.required, name) {
			s.required = append(s.required, name)
		}
	}
	switch a := get(v, "additionalProperties").(type) {
	case bool:
		s.open, s.closed = a, !a
	case recipe.Object:
		s.open = true
	}
	if get(v, "unevaluatedProperties") == false {
		s.closed = true
	}
	if items, ok := v.Get("items"); ok && items != nil {
		if _, tuple := items.(recipe.Array); !tuple {
			s.items = []bound{{v: items, at: at}}
		}
	}
	if err := r.combined(s, v, at); err != nil {
		return nil, err
	}
	s.infer()
	return s, nil
}

// combined adds what allOf, oneOf and anyOf say.
func (r *schemaReader) combined(s *shape, v recipe.Object, at *chain) error {
	parts := array(v, "allOf")
	for _, e := range parts {
		part, err := r.shape(bound{v: e, at: at})
		if err != nil {
			return err
		}
		if s.name == "" && len(parts) == 1 {
			s.name = part.name
		}
		// A part that forbids other members would forbid those of its siblings.
		if part.closed && (len(parts) > 1 || len(s.props) > 0) {
			part.closed = false
			part.lost = append(part.lost, "additionalProperties")
		}
		s.merge(part)
	}
	for _, key := range []string{"oneOf", "anyOf"} {
		list := array(v, key)
		if len(list) == 0 {
			continue
		}
		alts := make([][]bound, len(list))
		for i, e := range list {
			alts[i] = []bound{{v: e, at: at}}
		}
		part, err := r.oneOf(alts)
		if err != nil {
			return err
		}
		s.merge(part)
		s.discriminate(v, list)
	}
	return nil
}

// undeclared adds the members that are required and nowhere described: they
// have to be sent all the same. A closed object cannot have them, whatever its
// document says.
func (s *shape) undeclared() {
	for _, n := range s.required {
		switch {
		case slices.ContainsFunc(s.props, func(p prop) bool { return p.name == n }):
		case s.closed:
			s.lost = append(s.lost, "required")
		default:
			s.props = append(s.props, prop{n, []bound{{}}})
		}
	}
}

// discriminate lists the values of the member that tells alternatives apart:
// those of the mapping, else the names of the schemas.
func (s *shape) discriminate(v recipe.Object, alts recipe.Array) {
	d := object(v, "discriminator")
	name := text(d, "propertyName")
	i := slices.IndexFunc(s.props, func(p prop) bool { return p.name == name })
	if i < 0 {
		return
	}
	var values recipe.Array
	for _, m := range object(d, "mapping") {
		values = append(values, m.Key)
	}
	if len(values) == 0 {
		for _, a := range alts {
			ref := text(a, "$ref")
			if ref == "" {
				return
			}
			values = append(values, refName(ref))
		}
	}
	said := recipe.Object{{Key: "type", Value: "string"}, {Key: "enum", Value: values}}
	s.props[i].bounds = append(slices.Clone(s.props[i].bounds), bound{v: said})
}

// oneOf puts alternatives into one shape that lets each of them through.
func (r *schemaReader) oneOf(alts [][]bound) (*shape, error) {
	var parts []*shape
	nullable := false
	for _, a := range alts {
		part, err := r.shape(a...)
		if err != nil {
			return nil, err
		}
		switch {
		case part.never:
		case isNull(part):
			nullable = true
		default:
			parts = append(parts, part)
		}
	}
	if len(parts) == 0 {
		return &shape{nullable: nullable, never: !nullable}, nil
	}
	if len(parts) == 1 {
		parts[0].nullable = parts[0].nullable || nullable
		return parts[0], nil
	}
	return union(parts, nullable), nil
}

func isNull(s *shape) bool {
	return typeWord(s) == "null" || len(s.enum) == 1 && s.enum[0] == nil ||
		s.nullable && len(s.types) == 0 && s.props == nil && len(s.words) == 0 // {"nullable": true} among alternatives
}

// exclusive turns an exclusive bound of whole numbers into an inclusive one,
// and leaves out one of other numbers.
func (s *shape) exclusive(v recipe.Object) {
	for _, x := range []struct {
		key, bound string
		step       int64
	}{{"exclusiveMinimum", "minimum", 1}, {"exclusiveMaximum", "maximum", -1}} {
		raw, ok := v.Get(x.key)
		if !ok || raw == nil || raw == false {
			continue
		}
		limit := raw
		if raw == true { // 2.0 and 3.0: a flag beside the bound
			limit = get(v, x.bound)
			s.words = slices.DeleteFunc(s.words, func(m recipe.Member) bool { return m.Key == x.bound })
		}
		n := number(limit)
		if n == nil || !n.IsInt() || len(s.types) != 1 || s.types[0] != "integer" {
			s.lost = append(s.lost, x.key)
			continue
		}
		s.word(x.bound, json.Number(new(big.Int).Add(n.Num(), big.NewInt(x.step)).String()))
	}
}

// number is the exact value of a number of an ordinary length, nil for
// everything else.
func number(v recipe.Value) *big.Rat {
	n, ok := v.(json.Number)
	if !ok || !ordinary(n) {
		return nil
	}
	r, ok := new(big.Rat).SetString(string(n))
	if !ok {
		return nil
	}
	return r
}

// infer names the type that the keywords mean when none is written.
func (s *shape) infer() {
	if len(s.types) == 1 && s.types[0] == "array" && len(s.enum) > 0 && scalars(s.enum) {
		// An enum beside the list that is meant for its items.
		s.items = append(slices.Clone(s.items), bound{v: recipe.Object{{Key: "enum", Value: s.enum}}})
		s.enum = nil
	}
	if len(s.types) > 0 {
		return
	}
	switch {
	case len(s.props) > 0 || s.open && s.items == nil && s.enum == nil:
		s.types = []string{"object"}
	case s.items != nil:
		s.types = []string{"array"}
	case has(s.words, "pattern") || has(s.words, "minLength") || has(s.words, "maxLength"):
		s.types = []string{"string"}
	case has(s.words, "minimum") || has(s.words, "maximum"):
		s.types = []string{"number"}
	case len(s.enum) > 0:
		kind := ""
		for _, e := range s.enum {
			switch k := kindOf(e); {
			case e == nil:
			case kind == "":
				kind = k
			case kind != k:
				return
			}
		}
		if kind != "" {
			s.types = []string{kind}
		}
	}
}

func scalars(list recipe.Array) bool {
	return !slices.ContainsFunc(list, func(e recipe.Value) bool { return e == nil || !isScalar(e) })
}

// types reads type and every spelling of "or null". Names that JSON Schema
// does not have say nothing.
func types(v recipe.Value) (names []string, nullable bool) {
	nullable = flag(v, "nullable") || flag(v, "x-nullable")
	list, ok := get(v, "type").(recipe.Array)
	if !ok {
		list = recipe.Array{get(v, "type")}
	}
	for _, e := range list {
		name, _ := e.(string)
		switch name {
		case "null":
			nullable = true
		case "object", "array", "string", "number", "integer", "boolean":
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		case "file": // 2.0
			names = append(names, "file")
		}
	}
	if hasNil(array(v, "enum")) {
		nullable = true
	}
	if len(names) == 0 && nullable && slices.Contains(list, recipe.Value("null")) {
		return []string{"null"}, false
	}
	return names, nullable
}

func hasNil(list recipe.Array) bool {
	for _, e := range list {
		if e == nil {
			return true
		}
	}
	return false
}

func kindOf(v recipe.Value) string {
	switch n := v.(type) {
	case string:
		return "string"
	case bool:
		return "boolean"
	case json.Number:
		if r := number(n); r != nil && r.IsInt() {
			return "integer"
		}
		return "number"
	case recipe.Array:
		return "array"
	case recipe.Object:
		return "object"
	}
	return "null"
}

// same compares small values as text: numbers by their digits.
func same(a, b recipe.Value) bool {
	switch a.(type) {
	case recipe.Object, recipe.Array:
		return false
	}
	switch b.(type) {
	case recipe.Object, recipe.Array:
		return false
	}
	return a == b
}
