package importer

import (
	"cmp"
	"slices"

	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// union lets everything through that one of the parts lets through.
func union(parts []*shape, nullable bool) *shape {
	u := &shape{nullable: nullable, types: slices.Clone(parts[0].types), enum: slices.Clone(parts[0].enum)}
	u.required = slices.Clone(parts[0].required)
	enums := true
	seen := map[string]int{}
	var items [][]bound
	anyType := false
	for i, p := range parts {
		u.nullable = u.nullable || p.nullable
		u.cut = u.cut || p.cut
		u.open = u.open || p.open
		u.forms = append(u.forms, cmp.Or(p.name, text(p.words, "title"), typeWord(p)))
		enums = enums && p.enum != nil
		anyType = anyType || len(p.types) == 0
		if i > 0 {
			for _, t := range p.types {
				if !slices.Contains(u.types, t) {
					u.types = append(u.types, t)
				}
			}
			for _, e := range p.enum {
				if !slices.ContainsFunc(u.enum, func(o recipe.Value) bool { return same(o, e) }) {
					u.enum = append(u.enum, e)
				}
			}
			u.required = slices.DeleteFunc(u.required, func(n string) bool { return !slices.Contains(p.required, n) })
		}
		for _, q := range p.props {
			at, ok := seen[q.name]
			if !ok {
				seen[q.name] = len(u.props)
				u.props = append(u.props, prop{q.name, []bound{{alts: [][]bound{q.bounds}}}})
				continue
			}
			b := &u.props[at].bounds[0]
			b.alts = append(b.alts, q.bounds)
		}
		items = append(items, p.items)
	}
	if anyType {
		u.types = nil
	}
	if i := slices.Index(u.types, "integer"); i >= 0 && slices.Contains(u.types, "number") {
		u.types = slices.Delete(u.types, i, i+1)
	}
	if !enums {
		u.enum = nil
	}
	if !slices.ContainsFunc(items, func(b []bound) bool { return b == nil }) {
		u.items = []bound{{alts: items}}
	}
	u.words = commonWords(parts)
	return u
}

// commonWords are the keywords on which all parts agree.
func commonWords(parts []*shape) recipe.Object {
	var out recipe.Object
	for _, m := range parts[0].words {
		if m.Key == "description" || m.Key == "title" {
			continue
		}
		if !slices.ContainsFunc(parts[1:], func(p *shape) bool { return !same(get(p.words, m.Key), m.Value) }) {
			out = append(out, m)
		}
	}
	// An example of one form is an example of the whole.
	for _, p := range parts {
		if e := get(p.words, "example"); e != nil && !has(out, "example") {
			out = append(out, recipe.Member{Key: "example", Value: e})
		}
	}
	return out
}

func typeWord(s *shape) string {
	if len(s.types) == 1 {
		return s.types[0]
	}
	return ""
}

// merge adds part to s: both hold. Where words for the reader differ, those
// of s stay.
func (s *shape) merge(part *shape) {
	switch {
	case len(s.types) == 0:
		s.types = part.types
	case len(part.types) > 0:
		both := slices.DeleteFunc(slices.Clone(s.types), func(t string) bool {
			return !slices.Contains(part.types, t) && (t != "integer" || !slices.Contains(part.types, "number"))
		})
		if len(both) == 0 && slices.Contains(part.types, "integer") && slices.Contains(s.types, "number") {
			both = []string{"integer"}
		}
		if len(both) == 0 { // the document contradicts itself
			s.lost = append(s.lost, "type")
		}
		s.types = both
	}
	s.nullable = s.nullable || part.nullable
	s.never = s.never || part.never
	s.cut = s.cut || part.cut
	s.open = s.open || part.open
	s.closed = s.closed || part.closed
	s.forms = append(s.forms, part.forms...)
	for _, l := range part.lost {
		if !slices.Contains(s.lost, l) {
			s.lost = append(s.lost, l)
		}
	}
	for _, p := range part.props {
		if i := slices.IndexFunc(s.props, func(have prop) bool { return have.name == p.name }); i >= 0 {
			s.props[i].bounds = append(slices.Clone(s.props[i].bounds), p.bounds...)
			continue
		}
		s.props = append(s.props, p)
	}
	for _, n := range part.required {
		if !slices.Contains(s.required, n) {
			s.required = append(s.required, n)
		}
	}
	s.items = append(slices.Clone(s.items), part.items...)
	switch {
	case s.enum == nil:
		s.enum = part.enum
	case part.enum != nil:
		s.enum = slices.DeleteFunc(slices.Clone(s.enum), func(e recipe.Value) bool {
			return !slices.ContainsFunc(part.enum, func(o recipe.Value) bool { return same(o, e) })
		})
	}
	for _, m := range part.words {
		s.word(m.Key, m.Value)
	}
}

// word adds a keyword; of two bounds the stricter one stays.
func (s *shape) word(key string, v recipe.Value) {
	i := slices.IndexFunc(s.words, func(m recipe.Member) bool { return m.Key == key })
	if i < 0 {
		s.words = append(s.words, recipe.Member{Key: key, Value: v})
		return
	}
	a, b := number(s.words[i].Value), number(v)
	if a == nil || b == nil {
		return
	}
	switch key {
	case "minimum", "minLength", "minItems":
		if b.Cmp(a) > 0 {
			s.words[i].Value = v
		}
	case "maximum", "maxLength", "maxItems":
		if b.Cmp(a) < 0 {
			s.words[i].Value = v
		}
	}
}
