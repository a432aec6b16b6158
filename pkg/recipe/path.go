package recipe

import (
	"encoding/json"
	"strconv"
	"strings"
)

// A Path says where values are in a JSON value: a small subset of RFC 9535
// and three conveniences (paths relative to an item, wider names, #key and
// #index). Make one with ParsePath. The zero Path names nothing. A Path is
// immutable; compare two with Equal.
type Path struct {
	text     string
	root     bool // starts with $, or stands where a path without root means the body
	segments []segment
	special  string
}

// A step is the kind of a segment.
type step byte

const (
	stepName   step = iota // .name, ['name']
	stepIndex              // [0], [-1]
	stepAll                // [*]
	stepSlice              // [1:3]
	stepFilter             // [?@.name=='x']
)

type segment struct {
	step    step
	name    string // of stepName, and of the member a stepFilter looks at
	index   int    // of stepIndex; the start of stepSlice
	end     int    // of stepSlice
	hasFrom bool   // stepSlice names its start
	hasTo   bool   // stepSlice names its end
	literal Value  // of stepFilter: string, json.Number, bool or nil
}

// String gives the path as it was written.
func (p Path) String() string { return p.text }

// IsZero reports whether p is the zero Path.
func (p Path) IsZero() bool { return p.text == "" }

// FromRoot reports whether p starts at the whole body ($) and not at the item.
func (p Path) FromRoot() bool { return p.root }

// Special is "#key" or "#index" for the paths of that name, else "". Resolve
// finds nothing for them: they are facts about an item, not in it.
func (p Path) Special() string { return p.special }

// Multi reports whether p may give several values: it has a [*], a slice or a
// filter.
func (p Path) Multi() bool {
	for i := range p.segments {
		if s := p.segments[i].step; s != stepName && s != stepIndex {
			return true
		}
	}
	return false
}

// Equal reports whether p and q are written alike and mean the same.
func (p Path) Equal(q Path) bool { return p.text == q.text && p.root == q.root }

// same reports whether p and q lead to the same values, however written.
func (p Path) same(q Path) bool {
	if p.special != q.special || len(p.segments) != len(q.segments) {
		return false
	}
	for i := range p.segments {
		if p.segments[i] != q.segments[i] {
			return false
		}
	}
	return true
}

// fromBody gives p with the body as its start, keeping its text: pagination
// paths may leave out the $.
func (p Path) fromBody() Path {
	p.root = true
	return p
}

// Resolve gives the values p leads to in v, in document order; none is a
// missing value. v stands for the item and, when p starts with $, for the
// body. Of duplicate members the last counts.
func (p Path) Resolve(v Value) []Value {
	if p.IsZero() || p.special != "" {
		return nil
	}
	return resolve(nil, v, p.segments)
}

// First gives the first value p leads to in v, without building a list. False
// means that there is none.
func (p Path) First(v Value) (Value, bool) {
	if p.IsZero() || p.special != "" {
		return nil, false
	}
	for i := range p.segments {
		s := &p.segments[i]
		var ok bool
		switch s.step {
		case stepName:
			v, ok = member(v, s.name)
		case stepIndex:
			v, ok = element(v, s.index)
		default:
			if all := resolve(nil, v, p.segments[i:]); len(all) > 0 {
				return all[0], true
			}
		}
		if !ok {
			return nil, false
		}
	}
	return v, true
}

func resolve(out []Value, v Value, segs []segment) []Value {
	for i := range segs {
		s := &segs[i]
		var ok bool
		switch s.step {
		case stepName:
			v, ok = member(v, s.name)
		case stepIndex:
			v, ok = element(v, s.index)
		default:
			for _, child := range children(v, s) {
				out = resolve(out, child, segs[i+1:])
			}
		}
		if !ok {
			return out
		}
	}
	return append(out, v)
}

func member(v Value, name string) (Value, bool) {
	o, ok := v.(Object)
	if !ok {
		return nil, false
	}
	return o.Get(name)
}

func element(v Value, i int) (Value, bool) {
	a, ok := v.(Array)
	if !ok {
		return nil, false
	}
	if i < 0 {
		i += len(a)
	}
	if i < 0 || i >= len(a) {
		return nil, false
	}
	return a[i], true
}

// children are the values one [*], slice or filter selects from v.
func children(v Value, s *segment) []Value {
	var all []Value
	switch v := v.(type) {
	case Array:
		all = v
	case Object:
		if s.step != stepSlice {
			all = v.values()
		}
	}
	switch s.step {
	case stepSlice:
		from, to := s.bounds(len(all))
		return all[from:to]
	case stepFilter:
		var out []Value
		for _, e := range all {
			if got, ok := member(e, s.name); ok && equal(got, s.literal) {
				out = append(out, e)
			}
		}
		return out
	}
	return all
}

// values are the members' values, of members with one name only the last.
func (o Object) values() []Value {
	out := make([]Value, 0, len(o))
	if len(o) <= 16 {
		for i := range o {
			if !hasKey(o[i+1:], o[i].Key) {
				out = append(out, o[i].Value)
			}
		}
		return out
	}
	last := make(map[string]int, len(o))
	for i := range o {
		last[o[i].Key] = i
	}
	for i := range o {
		if last[o[i].Key] == i {
			out = append(out, o[i].Value)
		}
	}
	return out
}

// bounds are the first element a slice takes from n elements and the one
// after its last.
func (s *segment) bounds(n int) (from, to int) {
	to = n
	if s.hasFrom {
		from = within(s.index, n)
	}
	if s.hasTo {
		to = within(s.end, n)
	}
	return min(from, to), to
}

func within(i, n int) int {
	if i < 0 {
		i += n
	}
	return max(0, min(i, n))
}

// equal compares a scalar with a literal: numbers by value (1 is 1.0 is 1e0),
// everything else by kind and content.
func equal(v, literal Value) bool {
	switch l := literal.(type) {
	case nil:
		return v == nil
	case bool:
		b, ok := v.(bool)
		return ok && b == l
	case string:
		s, ok := v.(string)
		return ok && s == l
	case json.Number:
		n, ok := v.(json.Number)
		return ok && sameNumber(string(n), string(l))
	}
	return false
}

// sameNumber compares two JSON numbers exactly, however they are written.
func sameNumber(a, b string) bool {
	if a == b {
		return true
	}
	x, xok := magnitude(a)
	y, yok := magnitude(b)
	return xok && yok && x == y
}

// A number is 0.digits times ten to the exp, digits without zeros at its ends.
type number struct {
	negative bool
	digits   string
	exp      int64
}

// magnitude takes a JSON number apart. It says no to an exponent that does
// not fit an int64; such numbers are alike only when they are written alike.
func magnitude(s string) (number, bool) {
	var n number
	s, n.negative = strings.CutPrefix(s, "-")
	mantissa, exp := s, int64(0)
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		var err error
		if exp, err = strconv.ParseInt(strings.TrimPrefix(s[i+1:], "+"), 10, 64); err != nil || exp > 1<<60 || exp < -1<<60 {
			return n, false
		}
		mantissa = s[:i]
	}
	whole, frac, _ := strings.Cut(mantissa, ".")
	digits := whole + frac
	n.exp = exp + int64(len(whole))
	trimmed := strings.TrimLeft(digits, "0")
	n.exp -= int64(len(digits) - len(trimmed))
	n.digits = strings.TrimRight(trimmed, "0")
	if n.digits == "" {
		return number{}, true // 0 is -0 is 0e9
	}
	return n, true
}
