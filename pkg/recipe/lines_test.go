package recipe

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func linesRecipe(t testing.TB, doc string) *Recipe {
	t.Helper()
	v, err := Decode([]byte(doc), DecodeLimits{})
	if err != nil {
		t.Fatal(err)
	}
	r, report := Parse(v)
	if r == nil {
		t.Fatalf("%s: %v", doc, report)
	}
	return r
}

const watch = `{"id":1,"type":"ADDED","object":{"name":"a"}}` + "\n" + `{"id":2,"type":"MODIFIED","object":{"name":"b|c"}}` + "\n\n" + `{"id":3,"type":"DELETED","object":null}` + "\n"

// Lines are what an array of them would be.
func TestReadLines(t *testing.T) {
	array := func(lines ...string) string { return "[" + strings.Join(lines, ",") + "]" }
	big := `{"id":9007199254740993,"n":1.10}`
	for name, c := range map[string]struct {
		body string
		sep  byte
		same string // the array that this stands for
	}{
		"corpus":            {watch, '\n', array(`{"id":1,"type":"ADDED","object":{"name":"a"}}`, `{"id":2,"type":"MODIFIED","object":{"name":"b|c"}}`, `{"id":3,"type":"DELETED","object":null}`)},
		"one":               {`{"id":1}`, '\n', array(`{"id":1}`)},
		"exact numbers":     {big + "\n" + big, '\n', array(big, big)},
		"no last line feed": {"{\"id\":1}\n{\"id\":2}", '\n', array(`{"id":1}`, `{"id":2}`)},
		"CR LF":             {"{\"id\":1}\r\n\r\n{\"id\":2}\r\n", '\n', array(`{"id":1}`, `{"id":2}`)},
		"blank first":       {"\n \t\n{\"id\":1}", '\n', array(`{"id":1}`)},
		"byte order mark":   {"\ufeff{\"id\":1}\n{\"id\":2}", '\n', array(`{"id":1}`, `{"id":2}`)},
		"all kinds":         {"1\n\"a\"\nnull\ntrue\n[1,2]\n{}\n", '\n', array(`1`, `"a"`, `null`, `true`, `[1,2]`, `{}`)},
		"sequence":          {"\x1e{\"id\":1}\n\x1e{\"id\":2}\n", RecordSeparator, array(`{"id":1}`, `{"id":2}`)},
		"over lines":        {"\x1e{\n \"id\":1\n}\n\x1e\x1e{\"id\":2}", RecordSeparator, array(`{"id":1}`, `{"id":2}`)},
	} {
		for _, doc := range []string{
			`{"schemaVersion":1,"select":"$","mode":"table","fields":{"ID":"id","N":"n","Object":"object"}}`,
			`{"schemaVersion":1,"select":"$","mode":"table","fields":{"ID":"id","Name":"object.name"}}`,
			`{"schemaVersion":1,"select":"$[*].object","mode":"table","fields":{"ID":"id","N":"n","Object":"object"}}`,
			`{"schemaVersion":1,"select":"$[-1]","mode":"table","fields":{"ID":"id","N":"n","Object":"object"}}`,
			`{"schemaVersion":1,"select":"$[?@.type=='DELETED']","mode":"table","fields":{"ID":"id","N":"n","Object":"object"}}`,
			`{"schemaVersion":1,"select":"$","mode":"table","fields":{"ID":"id","N":"n","Object":"object"},"record":{"first":"$[0].id","last":"$[-1].id","all":"$"}}`,
			`{"schemaVersion":1,"select":"$","shape":"entries","mode":"table","fields":{"ID":"id","N":"n","Object":"object"}}`,
			`{"schemaVersion":1,"select":"$","shape":"columns","mode":"table","fields":{"ID":"id","N":"n","Object":"object"}}`,
			`{"schemaVersion":1,"select":"$.items","mode":"table","fields":{"ID":"id","N":"n","Object":"object"}}`,
		} {
			r := linesRecipe(t, doc)
			for _, scrub := range []func(string) string{nil, func(s string) string { return strings.ReplaceAll(s, "a", "*") }} {
				for _, room := range []int{0, 1, 100} {
					want, err := r.Read([]byte(c.same), room, scrub)
					if err != nil {
						t.Fatal(err)
					}
					got, err := r.ReadLines([]byte(c.body), c.sep, room, scrub)
					if err != nil {
						t.Errorf("%s, %s: %v", name, doc, err)
						continue
					}
					whole, err := r.readLinesWhole([]byte(c.body), c.sep, room, scrub, r.readPaths())
					if err != nil {
						t.Errorf("%s, %s: whole: %v", name, doc, err)
						continue
					}
					for way, p := range map[string]*Page{"scan": got, "whole": whole} {
						if d := cmp.Diff(pageOf(r, want), pageOf(r, p)); d != "" {
							t.Errorf("%s, %s, %s, room for %d: %s", name, doc, way, room, d)
						}
					}
				}
			}
		}
	}
}

// pageOf is what a page shows and knows.
func pageOf(r *Recipe, p *Page) string {
	s := fmt.Sprintf("%d items, %d built, list %v, %q, %q\n", p.Items(), len(p.Built()), p.IsList(), p.keys, p.Warnings())
	for _, f := range p.found {
		s += f.path.text + " " + string(Encode(Array(f.values))) + "\n"
	}
	res := r.Render([]*Page{p}, RenderOptions{})
	return s + string(Encode(Array(res.Records))) + "\n" + res.Markdown
}

// Each way in which lines can be wrong names the line, and nothing is shown.
func TestReadLinesErrors(t *testing.T) {
	r := linesRecipe(t, `{"schemaVersion":1,"select":"$","mode":"table","fields":{"ID":"id","N":"n","Object":"object"}}`)
	for name, c := range map[string]struct {
		body string
		sep  byte
		want DecodeError
	}{
		"not JSON":        {"{\"id\":1}\n\nsorry\n{\"id\":2}\n", '\n', DecodeError{Kind: "syntax", Offset: 10, Message: "line 3: invalid character 's' at start of value"}},
		"cut last line":   {"{\"id\":1}\n{\"id\":2", '\n', DecodeError{Kind: "syntax", Offset: 16, Message: "line 2: the text ends too early"}},
		"cut, line feed":  {"{\"id\":1}\n{\"id\":2\n", '\n', DecodeError{Kind: "syntax", Offset: 16, Message: "line 2: the value is cut"}},
		"cut inside":      {"{\"id\":1,\n{\"id\":2}\n", '\n', DecodeError{Kind: "syntax", Offset: 8, Message: "line 1: the value is cut"}},
		"two lines as 1":  {"{\"id\":1,\n\"b\":2}\n", '\n', DecodeError{Kind: "syntax", Offset: 8, Message: "line 1: the value is cut"}},
		"cut text":        {"{\"id\":\"a\n\"}", '\n', DecodeError{Kind: "syntax", Offset: 8, Message: "line 1: invalid character '\\n' in string (expecting non-control character)"}},
		"two in a line":   {"1\n{\"id\":1} {\"id\":2}\n", '\n', DecodeError{Kind: "syntax", Offset: 11, Message: "line 2: more than one value"}},
		"no space":        {"{\"id\":1}{\"id\":2}", '\n', DecodeError{Kind: "syntax", Offset: 8, Message: "line 1: more than one value"}},
		"commas":          {"{\"id\":1},\n{\"id\":2},\n", '\n', DecodeError{Kind: "syntax", Offset: 8, Message: "line 1: more than one value"}},
		"separator alone": {"\x1e{\"id\":1}\n{\"id\":2}\n", RecordSeparator, DecodeError{Kind: "syntax", Offset: 10, Message: "record 1: more than one value"}},
		"cut record":      {"\x1e{\"id\":\x1e{\"id\":2}\n", RecordSeparator, DecodeError{Kind: "syntax", Offset: 7, Message: "record 1: the value is cut"}},
		"not a sequence":  {"\x1e{\"id\":1}\n", '\n', DecodeError{Kind: "syntax", Offset: 0, Message: "line 1: invalid character '\\x1e' at start of value"}},
		"not UTF-8":       {"{\"id\":1}\n\"\xff\"", '\n', DecodeError{Kind: "utf8", Offset: 10, Message: "invalid UTF-8"}},
	} {
		_, err := r.ReadLines([]byte(c.body), c.sep, 100, nil)
		var d *DecodeError
		if !errors.As(err, &d) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(&c.want, d); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if _, err := r.readLinesWhole([]byte(c.body), c.sep, 100, nil, nil); cmp.Diff(error(&c.want), err) != "" {
			t.Errorf("%s: whole: %v", name, err)
		}
	}
}

// No line is an empty list, in whatever way.
func TestReadLinesOfNothing(t *testing.T) {
	r := linesRecipe(t, `{"schemaVersion":1,"select":"$","mode":"table","fields":{"ID":"id","N":"n","Object":"object"}}`)
	for _, c := range []struct {
		body string
		sep  byte
	}{{"", '\n'}, {"\n", '\n'}, {" \r\n\r\n", '\n'}, {"\ufeff\n", '\n'}, {"\x1e", RecordSeparator}, {"\n\x1e\n", RecordSeparator}} {
		p, err := r.ReadLines([]byte(c.body), c.sep, 100, nil)
		if err != nil || p.Items() != 0 || !p.IsList() {
			t.Errorf("%q: %+v %v", c.body, p, err)
		}
	}
}

// The cap on items counts lines as it counts elements, at it and one over; and
// 200 levels are allowed in each.
func TestReadLinesLimits(t *testing.T) {
	r := linesRecipe(t, `{"schemaVersion":1,"select":"$","mode":"table","fields":{"ID":"id","N":"n","Object":"object"}}`)
	for _, n := range []int{20, 21, 50_000} {
		p, err := r.ReadLines([]byte(strings.Repeat("{\"id\":1}\n", n)), '\n', 20, nil)
		if err != nil || p.Items() != n || len(p.Built()) != 20 {
			t.Errorf("%d lines: %d items, %d built, %v", n, p.Items(), len(p.Built()), err)
		}
	}
	deep := func(n int) []byte { return []byte("1\n" + strings.Repeat("[", n) + strings.Repeat("]", n) + "\n") }
	if _, err := r.ReadLines(deep(200), '\n', 20, nil); err != nil {
		t.Error(err)
	}
	var d *DecodeError
	if _, err := r.ReadLines(deep(201), '\n', 20, nil); !errors.As(err, &d) || d.Kind != "depth" {
		t.Error(err)
	}
}

// Whatever comes, reading lines in one scan and as a whole agree.
func FuzzReadLines(f *testing.F) {
	f.Add([]byte(watch), true)
	f.Add([]byte("\x1e{\"id\":1}\n\x1e{\"id\":{\"a\":[1,2]}}"), false)
	f.Add([]byte("1 2\n{\"a\":\n1}"), true)
	var recipes []*Recipe
	for _, doc := range []string{
		`{"schemaVersion":1,"select":"$","mode":"table","fields":{"ID":"id","N":"n","Object":"object"}}`,
		`{"schemaVersion":1,"select":"$[*].object","mode":"table","fields":{"Name":"name","Of":"$[0].id"}}`,
		`{"schemaVersion":1,"select":"$","shape":"entries","mode":"table","fields":{"ID":"id","N":"n","Object":"object"}}`,
	} {
		recipes = append(recipes, linesRecipe(f, doc))
	}
	f.Fuzz(func(t *testing.T, body []byte, lines bool) {
		sep := byte('\n')
		if !lines {
			sep = RecordSeparator
		}
		for _, r := range recipes {
			p, err := r.ReadLines(body, sep, 3, nil)
			w, werr := r.readLinesWhole(body, sep, 3, nil, r.readPaths())
			var d *DecodeError
			if errors.As(werr, &d) && d.Kind == "empty" && err == nil {
				continue
			}
			if (err == nil) != (werr == nil) {
				t.Fatalf("%q: %v, whole %v", body, err, werr)
			}
			if err == nil && pageOf(r, p) != pageOf(r, w) {
				t.Fatalf("%q:\n%s%s", body, pageOf(r, p), pageOf(r, w))
			}
		}
	})
}

// A list of 1 MB as lines costs what it costs as an array (BenchmarkRead).
func BenchmarkReadLines(b *testing.B) {
	line := `{"id":123456,"name":"some item","price":12.50,"tags":["a","b"],"nested":{"x":1,"y":"two"}}`
	n := 1_000_000 / len(line)
	lines := []byte(strings.Repeat(line+"\n", n))
	array := []byte("[" + strings.Repeat(line+",", n-1) + line + "]")
	r := linesRecipe(b, `{"schemaVersion":1,"select":"$","mode":"table","fields":{"ID":"id","Name":"name"}}`)
	b.Run("lines", func(b *testing.B) {
		b.SetBytes(int64(len(lines)))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := r.ReadLines(lines, '\n', 20, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("array", func(b *testing.B) {
		b.SetBytes(int64(len(array)))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := r.Read(array, 20, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
}
