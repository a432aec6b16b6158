package recipe

import (
	"slices"
	"strings"
)

// Names are what Narrow takes: the labels of the fields, then the keys of the
// record that are no labels. There are none when the recipe names nothing, as
// with Plain or a template alone; then Narrow takes paths.
func (r *Recipe) Names() []string {
	var names []string
	for i := range r.Fields {
		names = append(names, r.Fields[i].Label)
	}
	for i := range r.Record {
		if !slices.Contains(names, r.Record[i].Key) {
			names = append(names, r.Record[i].Key)
		}
	}
	return names
}

// Narrow is the recipe for a reader who wants less: only the named columns and
// record keys, in the order named, and at most maxItems items; no names and 0
// leave either as it is. It never shows more than r: a larger maxItems changes
// nothing.
//
// A name is a label, a record key, or one of both in other letter case. What it
// stands for is shown in the Markdown and in the records, with the format, the
// label and the key that r has for it. A recipe that names nothing takes paths
// instead, such as user.login. In the modes document and documents the named
// fields are a list in the place of the template; titles stay.
//
// unknown are the names that r does not know; then the recipe is nil. The
// result is to be read and rendered with, not to be saved.
func (r *Recipe) Narrow(names []string, maxItems int) (narrow *Recipe, unknown []string) {
	out := *r
	if maxItems > 0 {
		out.Limits.MaxItems = min(r.Limits.MaxItems, maxItems)
	}
	if len(names) == 0 { // the same paths, so the same plan
		return &out, nil
	}
	out.Fields, out.Record, out.Body = nil, nil, nil
	out.all = r.Fields
	if r.plain {
		out.plain, out.Mode = false, Table
	}
	for _, name := range names {
		f, b, ok := r.named(name)
		if !ok {
			unknown = append(unknown, name)
			continue
		}
		if !slices.ContainsFunc(out.Fields, func(have Field) bool { return have.Label == f.Label }) {
			out.Fields = append(out.Fields, f)
		}
		if !slices.ContainsFunc(out.Record, func(have Binding) bool { return have.Key == b.Key }) {
			out.Record = append(out.Record, b)
		}
	}
	if unknown != nil {
		return nil, unknown
	}
	out.plan = out.prepare()
	return &out, nil
}

// named finds what a name stands for: its column and its record key.
func (r *Recipe) named(name string) (Field, Binding, bool) {
	if len(r.Fields) == 0 && len(r.Record) == 0 {
		p, err := ParsePath(name)
		return Field{Label: name, Path: p, Format: Format{Decimals: -1}}, Binding{name, p}, err == nil
	}
	for _, same := range []func(a, b string) bool{func(a, b string) bool { return a == b }, strings.EqualFold} {
		label := slices.IndexFunc(r.Fields, func(f Field) bool { return same(f.Label, name) })
		key := slices.IndexFunc(r.Record, func(b Binding) bool { return same(b.Key, name) })
		switch {
		case label >= 0 && key >= 0:
			return r.Fields[label], r.Record[key], true
		case label >= 0:
			f := r.Fields[label]
			if i := slices.IndexFunc(r.Record, func(b Binding) bool { return sameValue(b.Path, f.Path) }); i >= 0 {
				return f, r.Record[i], true
			}
			return f, Binding{f.Label, f.Path}, true
		case key >= 0:
			b := r.Record[key]
			if i := slices.IndexFunc(r.Fields, func(f Field) bool { return sameValue(f.Path, b.Path) }); i >= 0 {
				return r.Fields[i], b, true
			}
			return Field{Label: b.Key, Path: b.Path, Format: Format{Decimals: -1}}, b, true
		}
	}
	return Field{}, Binding{}, false
}

// sameValue reports whether two paths lead to the same values of an item.
func sameValue(a, b Path) bool { return a.root == b.root && a.same(b) }

// labelled are the fields that {{field:Label}} may name.
func (r *Recipe) labelled() []Field {
	if r.all != nil {
		return r.all
	}
	return r.Fields
}
