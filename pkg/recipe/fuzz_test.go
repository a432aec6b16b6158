package recipe

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"unicode/utf8"
)

// FuzzDecode: what Decode accepts is JSON to another decoder, it survives a
// second round unchanged, and Read agrees with Decode on what is an error.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{`{"a":[1,2.50,null],"a":"\ud800"}`, "\ufeff[]", nested(201), `{"items":[{"id":1}]}`, "\xff", "1 2", `"\u0000"`, ``, "[{{"} {
		f.Add([]byte(s))
	}
	sel, _ := ParsePath("$.items")
	field, _ := ParsePath("id")
	total, _ := ParsePath("$.total")
	r := &Recipe{Select: sel, Mode: Table, Fields: []Field{{Label: "ID", Path: field}, {Label: "Total", Path: total}}}
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := Decode(data, DecodeLimits{})
		p, readErr := r.Read(data, 2, nil)
		if (err == nil) != (readErr == nil) {
			t.Fatalf("Decode: %v, Read: %v", err, readErr)
		}
		if err != nil {
			var a, b *DecodeError
			if !errors.As(err, &a) || !errors.As(readErr, &b) || a.Kind != b.Kind || a.Offset != b.Offset {
				t.Fatalf("Decode: %#v, Read: %#v", err, readErr)
			}
			if a.Offset < 0 || a.Offset > int64(len(data)) {
				t.Fatalf("offset %d of %d bytes", a.Offset, len(data))
			}
			return
		}
		if !json.Valid(bytes.TrimPrefix(data, bom)) {
			t.Fatalf("accepted, but it is no JSON")
		}
		out := Encode(v)
		again, err := Decode(out, DecodeLimits{})
		if err != nil || !reflect.DeepEqual(v, again) || !utf8.Valid(out) {
			t.Fatalf("%s became %v (%v)", out, again, err)
		}
		want, err := r.readWhole(data, 2, nil, r.rootPaths())
		if err != nil || p.Items() != want.Items() || len(p.Built()) != len(want.Built()) {
			t.Fatalf("%d items, decoded whole %d (%v)", p.Items(), want.Items(), err)
		}
	})
}

// FuzzPath: a path that is read gives itself back and resolves without end or
// panic; an error points into the text.
func FuzzPath(f *testing.F) {
	for _, s := range []string{"$.a[*].b", "a['x\\u0041']", "[?@.a=='b'].c", "#key", "[-1:2]", "@", "$", "a..b", "é.ü", `["\ud83d\ude00"]`} {
		f.Add(s)
	}
	doc, err := Decode([]byte(`{"a":[{"a":"b","c":1},{"b":[1,2,3]}],"x":{"a":null}}`), DecodeLimits{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := ParsePath(s)
		if err != nil {
			var e *PathError
			if !errors.As(err, &e) || e.Message == "" || e.Code == "" || e.Offset < 1 || e.Offset > utf8.RuneCountInString(s)+1 {
				t.Fatalf("%#v", err)
			}
			return
		}
		if p.String() != s || p.IsZero() {
			t.Fatalf("%q reads back as %q", s, p)
		}
		all := p.Resolve(doc)
		first, ok := p.First(doc)
		if ok != (len(all) > 0) || ok && !reflect.DeepEqual(first, all[0]) {
			t.Fatalf("First %v %v, Resolve %v", first, ok, all)
		}
		if !p.Multi() && len(all) > 1 {
			t.Fatalf("%s gives %d values", s, len(all))
		}
	})
}

// FuzzRecipeParse: any document gives a report; one that is accepted comes
// back equal through Document.
func FuzzRecipeParse(f *testing.F) {
	for _, s := range []string{
		`{"schemaVersion":1,"fields":{"A":"a"}}`,
		`{"schemaVersion":1,"mode":"document","template":"{{a|number}}","title":"{{field:B}}","fields":{"B":{"path":"b","format":"list","item":"x","each":"date"}}}`,
		`{"schemaVersion":1,"fields":{"A":{"path":"$.a[?@.b==1]","scale":1e-2,"format":"number"}},"pagination":{"type":"cursor","next":"header:X","cursorParam":"*"}}`,
		`{"schemaVersion":1,"shape":"matrix","header":"$.n[*].a","fields":{"A":{"path":"[0]","format":"currency","currency":"@.c","group":true}}}`,
		`{"schemaVersion":1,"shape":"entries","title":"{{#key}} {{$.a}}","fields":{"A":"#key"}}`,
		`{"schemaVersion":1,"fields":{"A":"a","A":"b"},"limits":{"maxItems":1e3}}`, `[]`, `{"mode":null}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := Decode(data, DecodeLimits{})
		if err != nil {
			return
		}
		r, report := Parse(v)
		if (r == nil) == report.OK() || len(report.Problems) > MaxProblems || len(report.Warnings) > MaxProblems {
			t.Fatalf("recipe %v, report %+v", r, report)
		}
		if r == nil {
			return
		}
		doc := r.Document()
		again, report := Parse(doc)
		if !report.OK() || !reflect.DeepEqual(r, again) {
			t.Fatalf("%s\n%+v", Encode(doc), report.Problems)
		}
	})
}

// FuzzRead: one scan finds what a whole decode finds, whatever the body, the
// paths and the shape.
func FuzzRead(f *testing.F) {
	for i, s := range []string{
		`{"a":{"x":[1,2],"y":3}}`, `[["n","v"],["a",1]]`, `{"a":[[1,2]],"n":["x","x"]}`, `{"a":[{"b":1}],"a":{}}`, `{"a":{"k":{"b":1},"k":2}}`, `[1,[2]]`, `null`,
	} {
		f.Add([]byte(s), "$.a", "$.n", i, 2)
	}
	f.Fuzz(func(t *testing.T, body []byte, sel, other string, shape, most int) {
		r := &Recipe{SchemaVersion: 1, Mode: Table, Fields: []Field{{Label: "All"}, {Label: "Other"}}, Shape: []Shape{List, Entries, Columns, Matrix}[shape&3]}
		var err error
		if r.Select, err = ParsePath(sel); err != nil || !r.Select.FromRoot() {
			return
		}
		p, err := ParsePath(other)
		if err != nil {
			return
		}
		r.Fields[0].Path, _ = ParsePath("@")
		r.Fields[1].Path = p
		if r.Shape == Matrix {
			switch shape >> 2 & 3 {
			case 1:
				r.Header.First = true
			case 2:
				if p.FromRoot() {
					r.Header.Path = p
				}
			}
		}
		most &= 7
		got, err := r.Read(body, most, nil)
		want, wholeErr := r.readWhole(body, most, nil, r.readPaths())
		if (err == nil) != (wholeErr == nil) {
			t.Fatalf("Read: %v, decoded whole: %v", err, wholeErr)
		}
		if err != nil {
			return
		}
		if len(got.built) > most || got.items < len(got.built) {
			t.Fatalf("%d items, %d built, at most %d", got.items, len(got.built), most)
		}
		say := func(p *Page) string { return fmt.Sprint(p.items, texts(p.built), p.keys, p.list, p.notes) }
		if say(got) != say(want) {
			t.Fatalf("shape %s, select %s, header %v, of %q\n got %s\nwant %s", r.Shape, sel, r.Header, body, say(got), say(want))
		}
		if !reflect.DeepEqual(texts(got.LookupAll(p)), texts(want.LookupAll(p))) {
			t.Fatalf("%s: got %v, want %v", p, texts(got.LookupAll(p)), texts(want.LookupAll(p)))
		}
	})
}
