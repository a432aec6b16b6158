package schema

import (
	"encoding/json"
	"math/big"

	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// Limits of a schema. They keep the cost of a check, and of a tool list that
// carries the schema, small; real input schemas stay far below them.
const (
	MaxDepth      = 16  // schemas inside each other, the root counting as one
	MaxProperties = 200 // properties in the whole schema
	MaxEnum       = 100 // values of one enum
	MaxPattern    = 512 // bytes of one pattern
	MaxName       = 100 // characters of a property's name
)

// A Schema is an admitted schema of arguments: always an object at its root.
// Make one with Parse or Empty; it is immutable afterwards and safe for
// concurrent use.
type Schema struct {
	root  *node
	judge judge
}

// A node is one admitted schema.
type node struct {
	types        []string // nil: any; else one type, or one type and "null"
	description  string
	props        []property
	required     []string
	closed       bool // additionalProperties: false
	items        *node
	enum         []recipe.Value
	enumNumbers  map[string]bool // valueKey of the numbers in enum
	enumCode     string          // detail code when the value is none of enum; "" is ENUM
	def          recipe.Value
	hasDef       bool
	min, max     *bound
	minLen       *int // characters
	maxLen       *int
	minItems     *int
	maxItems     *int
	pattern      *pattern
	doc          recipe.Object // what the author wrote, without what was dropped
	defaultsFill bool          // this node, or one below it, has a default to fill
}

type property struct {
	name string
	node *node
}

// A bound is a minimum or maximum: as written, and exact.
type bound struct {
	text json.Number
	rat  *big.Rat
}

func (n *node) prop(name string) *node {
	for i := range n.props {
		if n.props[i].name == name {
			return n.props[i].node
		}
	}
	return nil
}

func (n *node) allows(typ string) bool {
	if n.types == nil {
		return true
	}
	for _, t := range n.types {
		if t == typ || t == "number" && typ == "integer" {
			return true
		}
	}
	return false
}

// Empty is the schema of a wrapper without inputSchema: an object with no
// declared property. Arguments given all the same are accepted with a warning.
func Empty() *Schema {
	s, _ := Parse(recipe.Object{
		{Key: "type", Value: "object"},
		{Key: "properties", Value: recipe.Object{}},
	}, "")
	return s
}

// Document returns the schema as its author wrote it, in the author's order,
// without the keywords that were dropped. Parse of it gives the same schema.
func (s *Schema) Document() recipe.Object { return s.root.doc }

// Published returns the schema as a tool carries it: the properties member is
// always present and every array has items, because clients refuse a whole
// tool list without them.
func (s *Schema) Published() recipe.Object { return s.root.publish(true) }

func (n *node) publish(root bool) recipe.Object {
	out := make(recipe.Object, 0, len(n.doc)+1)
	hasProps, hasItems := false, false
	for _, m := range n.doc {
		switch m.Key {
		case "properties":
			hasProps = true
			props := make(recipe.Object, len(n.props))
			for i, p := range n.props {
				props[i] = recipe.Member{Key: p.name, Value: p.node.publish(false)}
			}
			m.Value = props
		case "items":
			hasItems = true
			m.Value = n.items.publish(false)
		}
		out = append(out, m)
	}
	if root && !hasProps {
		out = append(out, recipe.Member{Key: "properties", Value: recipe.Object{}})
	}
	if n.types != nil && n.allows("array") && !hasItems {
		out = append(out, recipe.Member{Key: "items", Value: recipe.Object{}})
	}
	return out
}

// Required returns the names of the arguments that a caller must give, in the
// order of the schema's required list: those with a default are not among them.
func (s *Schema) Required() []string {
	var out []string
	for _, name := range s.root.required {
		if p := s.root.prop(name); p == nil || !p.hasDef {
			out = append(out, name)
		}
	}
	return out
}

// A Property is one declared argument.
type Property struct {
	Name        string
	Types       []string // nil: any; else one type, and "null" after it when null is allowed
	ItemTypes   []string // of an array's items; nil: any
	Description string
	Default     recipe.Value
	HasDefault  bool
	Required    bool // listed in required
}

// Properties returns the declared arguments in the order of the schema.
func (s *Schema) Properties() []Property {
	out := make([]Property, len(s.root.props))
	for i, p := range s.root.props {
		out[i] = s.describe(p)
	}
	return out
}

// Property returns one declared argument.
func (s *Schema) Property(name string) (Property, bool) {
	for _, p := range s.root.props {
		if p.name == name {
			return s.describe(p), true
		}
	}
	return Property{}, false
}

func (s *Schema) describe(p property) Property {
	out := Property{
		Name:        p.name,
		Types:       p.node.types,
		Description: p.node.description,
		Default:     p.node.def,
		HasDefault:  p.node.hasDef,
	}
	if p.node.items != nil {
		out.ItemTypes = p.node.items.types
	}
	for _, name := range s.root.required {
		out.Required = out.Required || name == p.name
	}
	return out
}

// With returns a copy of s with one more optional argument, a string that is
// one of values and defaults to the first. A value outside them is a problem
// with the given detail code. The caller makes sure that s has no argument of
// that name and that values are not more than MaxEnum.
func (s *Schema) With(name, description, code string, values []string) *Schema {
	enum := make(recipe.Array, len(values))
	for i, v := range values {
		enum[i] = v
	}
	added := &node{
		types: []string{"string"}, description: description,
		enum: enum, enumCode: code, def: values[0], hasDef: true, defaultsFill: true,
		doc: recipe.Object{
			{Key: "type", Value: "string"},
			{Key: "enum", Value: enum},
			{Key: "default", Value: values[0]},
			{Key: "description", Value: description},
		},
	}
	root := *s.root
	root.defaultsFill = true
	root.props = append(append([]property(nil), s.root.props...), property{name, added})
	root.doc = nil
	shown := false
	member := recipe.Member{Key: name, Value: added.doc}
	for _, m := range s.root.doc {
		if old, ok := m.Value.(recipe.Object); ok && m.Key == "properties" {
			m.Value = append(append(recipe.Object(nil), old...), member)
			shown = true
		}
		root.doc = append(root.doc, m)
	}
	if !shown {
		root.doc = append(root.doc, recipe.Member{Key: "properties", Value: recipe.Object{member}})
	}
	out := &Schema{root: &root}
	// The judge sees no enum, so adding a plain string cannot make it fail.
	out.judge, _ = newJudge(&root)
	return out
}
