package recipe

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func path(t testing.TB, s string) Path {
	t.Helper()
	p, err := ParsePath(s)
	if err != nil {
		t.Fatalf("ParsePath(%q): %v", s, err)
	}
	return p
}

// list is a recipe with a select path, one field and some $ fields.
func list(t testing.TB, sel string, fields ...string) *Recipe {
	r := &Recipe{SchemaVersion: 1, Select: path(t, sel), Shape: List, Mode: Table}
	for i, f := range fields {
		r.Fields = append(r.Fields, Field{Label: fmt.Sprint("F", i), Path: path(t, f)})
	}
	return r
}

func texts(vs []Value) []string {
	out := []string{}
	for _, v := range vs {
		out = append(out, string(Encode(v)))
	}
	return out
}

func TestReadItems(t *testing.T) {
	tests := []struct {
		name, sel, body string
		items           int
		built           []string // at most 3
	}{
		{"name of a list", "$.items", `{"items":[1,2],"x":3}`, 2, []string{`1`, `2`}},
		{"star of a list", "$.items[*]", `{"items":[1,2],"x":3}`, 2, []string{`1`, `2`}},
		{"root list", "$", `[1,2,3,4,5]`, 5, []string{`1`, `2`, `3`}},
		{"root object is one item", "$", `{"a":1}`, 1, []string{`{"a":1}`}},
		{"root scalar is one item", "$", `"x"`, 1, []string{`"x"`}},
		{"root null is nothing", "$", `null`, 0, []string{}},
		{"index expands", "$[1]", `[{"page":1},[{"a":1},{"a":2}]]`, 2, []string{`{"a":1}`, `{"a":2}`}},
		{"missing is nothing", "$.nope", `{"a":1}`, 0, []string{}},
		{"null is nothing", "$.a", `{"a":null}`, 0, []string{}},
		{"null elements count", "$.a", `{"a":[null,1]}`, 2, []string{`null`, `1`}},
		{"null elements count after a star", "$.a[*]", `{"a":[null,1]}`, 2, []string{`null`, `1`}},
		{"single object is one item", "$.a", `{"a":{"b":1}}`, 1, []string{`{"b":1}`}},
		{"nested lists flatten by name", "$.s[*].d", `{"s":[{"d":[1,2]},{"d":[3]},{"x":0},{"d":null},{"d":{"o":1}}]}`, 4, []string{`1`, `2`, `3`}},
		{"nested lists flatten by star", "$.s[*].d[*]", `{"s":[{"d":[1,2]},{"d":[3]}]}`, 3, []string{`1`, `2`, `3`}},
		{"rows of a matrix stay", "$.data[*]", `{"data":[[1,2],[3,4]]}`, 2, []string{`[1,2]`, `[3,4]`}},
		{"star on an object", "$.m[*]", `{"m":{"a":1,"b":[2]}}`, 2, []string{`1`, `[2]`}},
		{"star on an object with a duplicate", "$.m[*]", `{"m":{"a":1,"b":[2],"a":3}}`, 2, []string{`[2]`, `3`}},
		{"the last duplicate wins", "$.items", `{"items":[1,2,3],"n":2,"items":[9]}`, 1, []string{`9`}},
		{"the last duplicate wins though it is no list", "$.a.b", `{"a":{"b":[1,2]},"a":{"c":1}}`, 0, []string{}},
		{"slice", "$[1:3]", `[0,[1],2,3]`, 2, []string{`[1]`, `2`}},
		{"slice from the end", "$[-2:]", `[0,1,2,3]`, 2, []string{`2`, `3`}},
		{"last element expands", "$[-1]", `[[0],[1,2]]`, 2, []string{`1`, `2`}},
		{"filter", "$.l[?@.rel=='next'].u", `{"l":[{"rel":"self","u":1},{"rel":"next","u":2}]}`, 1, []string{`2`}},
		{"escaped key", `$['a b\u00e9']`, `{"a\u0020b\u00e9":[1]}`, 1, []string{`1`}},
		{"empty list", "$.items", `{"items":[]}`, 0, []string{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := list(t, tt.sel, "@")
			p, err := r.Read([]byte(tt.body), 3, nil)
			if err != nil {
				t.Fatal(err)
			}
			if p.Items() != tt.items {
				t.Errorf("items = %d, want %d", p.Items(), tt.items)
			}
			if d := cmp.Diff(tt.built, texts(p.Built())); d != "" {
				t.Errorf("built (-want +got):\n%s", d)
			}
			whole, err := r.readWhole([]byte(tt.body), 3, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			if whole.Items() != tt.items || !cmp.Equal(tt.built, texts(whole.Built())) {
				t.Errorf("decoded whole: %d items, %v", whole.Items(), texts(whole.Built()))
			}
		})
	}
}

func TestReadLookups(t *testing.T) {
	body := `{"meta":{"total":2,"next":null},"items":[{"id":1,"tags":["a"]},{"id":2,"tags":["b","c"]}],"l":[{"r":"x","u":1},{"r":"n","u":2}],"meta":{"total":3}}`
	tests := []struct {
		path string
		want []string
	}{
		{"$.meta.total", []string{`3`}},
		{"$.meta", []string{`{"total":3}`}},
		{"$.meta.next", []string{}}, // stood in the first meta only
		{"$.items[0].id", []string{`1`}},
		{"$.items[-1].id", []string{`2`}},
		{"$.items[-2].id", []string{`1`}},
		{"$.items[*].tags[*]", []string{`"a"`, `"b"`, `"c"`}},
		{"$.items[1:].id", []string{`2`}},
		{"$.l[?@.r=='n'].u", []string{`2`}},
		{"$.nope", []string{}},
		{"$", []string{string(Encode(decode(t, body)))}},
	}
	var all []string
	for _, tt := range tests {
		all = append(all, tt.path)
	}
	for _, sel := range []string{"$.items", "$", "$.items[?@.id==1]", "$.meta.total"} {
		t.Run(sel, func(t *testing.T) {
			r := list(t, sel, append([]string{"id"}, all...)...)
			p, err := r.Read([]byte(body), 50, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, tt := range tests {
				if d := cmp.Diff(tt.want, texts(p.LookupAll(path(t, tt.path)))); d != "" {
					t.Errorf("%s (-want +got):\n%s", tt.path, d)
				}
			}
		})
	}
}

func TestReadLookupOfAnUnknownPath(t *testing.T) {
	p, err := list(t, "$", "a").Read([]byte(`{"a":1,"b":2}`), 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Lookup(path(t, "$.b")); got != nil {
		t.Errorf("a path that is not the recipe's gives %v", got)
	}
	if got := new(Page).Items() + len(new(Page).Built()); got != 0 {
		t.Errorf("the zero Page has items")
	}
}

// What a recipe cannot show is not built.
func TestReadKeepsWhatPathsReach(t *testing.T) {
	body := `[{"a":1,"b":{"c":2,"d":3},"x":4,"a\u0062":5}]`
	for fields, want := range map[string]string{
		"a":        `{"a":1}`,
		"b.c":      `{"b":{"c":2,"d":3}}`,
		"ab":       `{"ab":5}`,
		"$[0].x":   `{}`,
		"@":        `{"a":1,"b":{"c":2,"d":3},"x":4,"ab":5}`,
		"[*]":      `{"a":1,"b":{"c":2,"d":3},"x":4,"ab":5}`,
		"#index":   `{}`,
		"@.x":      `{"x":4}`,
		"['a'][0]": `{"a":1}`,
	} {
		p, err := list(t, "$", fields).Read([]byte(body), 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(Encode(p.Built()[0])); got != want {
			t.Errorf("field %s: built %s, want %s", fields, got, want)
		}
	}
}

func TestReadScrubs(t *testing.T) {
	scrub := func(s string) string { return strings.ReplaceAll(s, "s3-cret", "[hidden]") }
	body := `{"s3-cret":"s3\u002dcret","items":[{"a":"x s3-cret","s3\u002dcret":1}],"l":[{"r":"s3-cret","u":"s3-cret!"}]}`
	for _, sel := range []string{"$.items", "$.items[-1:]"} {
		r := list(t, sel, "@", "$.l[?@.r=='s3-cret'].u", "$")
		p, err := r.Read([]byte(body), 5, scrub)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := string(Encode(p.Built()[0])), `{"a":"x [hidden]","[hidden]":1}`; got != want {
			t.Errorf("%s: built %s, want %s", sel, got, want)
		}
		if got := p.Lookup(path(t, "$.l[?@.r=='s3-cret'].u")); got != "[hidden]!" {
			t.Errorf("%s: lookup gives %v", sel, got)
		}
		if got := string(Encode(p.Lookup(path(t, "$")))); strings.Contains(got, "s3-cret") {
			t.Errorf("%s: the body still holds it: %s", sel, got)
		}
	}
}

func TestReadErrors(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	tests := []struct {
		name, body, kind string
		offset           int64
	}{
		{"empty", "", "empty", 0},
		{"only space", " \n", "empty", 2},
		{"trailing", `{"items":[]} x`, "trailing", 13},
		{"two documents", "{\"a\":1}\n{\"a\":2}\n", "trailing", 8},
		{"truncated in what is skipped", `{"x":[1,`, "syntax", 8},
		{"broken in what is skipped", `{"x":[1,,2],"items":[]}`, "syntax", 8},
		{"broken behind the cap", `{"items":[1,2,3,4,nul]}`, "syntax", 21},
		{"not UTF-8 in what is skipped", "{\"x\":\"\xff\"}", "utf8", 6},
		{"not JSON", "<html>", "syntax", 0},
		{"an object for a name in an item", `{"items":[{{`, "syntax", 11},
		{"an object for a name in what is skipped", `{"x":[{{`, "syntax", 7},
		{"an object for a name on the way", `{{`, "syntax", 1},
		{"a list for a name on the way", `{"a":1,[`, "syntax", 7},
		{"too deep in what is skipped", `{"x":` + deep(200) + `}`, "depth", 204},
		{"too deep in an item", `{"items":[` + deep(199) + `]}`, "depth", 208},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := list(t, "$.items", "@").Read([]byte(tt.body), 2, nil)
			var e *DecodeError
			if !errors.As(err, &e) {
				t.Fatalf("error = %v, want a DecodeError", err)
			}
			if e.Kind != tt.kind || e.Offset != tt.offset {
				t.Errorf("kind %q offset %d, want %q %d (%v)", e.Kind, e.Offset, tt.kind, tt.offset, err)
			}
		})
	}
	for _, body := range []string{`{"x":` + deep(199) + `}`, `{"items":[` + deep(198) + `]}`, deep(200)} {
		if _, err := list(t, "$.items", "@").Read([]byte(body), 2, nil); err != nil {
			t.Errorf("200 levels: %v", err)
		}
	}
}

// One scan and a whole decode must agree on every body and path.
func TestReadAgreesWithWholeDecode(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	selects := []string{"$", "$.a", "$.a[*]", "$[*]", "$[0]", "$.a.b", "$.a[*].b", "$[*][*]", "$[*].a", "$.b[0]", "$.a[1:2]", "$[:2].b", "$[*].a[*]"}
	looks := []string{"$", "$.a", "$.a.b", "$.a[*]", "$[-1]", "$.a[-1].b", "$.b[0]", "$[*].a", "$.a[-1][-1]", "$.a[?@.b==1]", "$[1:]", "$[*][*].a"}
	for range 8_000 {
		body := Encode(randomValue(rng, 4))
		r := list(t, selects[rng.IntN(len(selects))], looks...)
		r.Record = []Binding{{"all", path(t, "@")}}
		max := rng.IntN(4)
		got, err := r.Read(body, max, nil)
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		want, err := r.readWhole(body, max, nil, r.rootPaths())
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		if got.items != want.items || !cmp.Equal(texts(got.built), texts(want.built)) {
			t.Fatalf("select %s of %s, max %d:\n got %d %v\nwant %d %v", r.Select, body, max, got.items, texts(got.built), want.items, texts(want.built))
		}
		for _, s := range looks {
			p := path(t, s)
			if !cmp.Equal(texts(got.LookupAll(p)), texts(want.LookupAll(p))) {
				t.Fatalf("%s of %s (select %s): got %v, want %v", p, body, r.Select, texts(got.LookupAll(p)), texts(want.LookupAll(p)))
			}
		}
	}
}

// randomValue makes small values with few names, so that paths often match and
// names are often doubled.
func randomValue(rng *rand.Rand, depth int) Value {
	if depth == 0 || rng.IntN(6) == 0 {
		return []Value{nil, true, "x", number1}[rng.IntN(4)]
	}
	n := rng.IntN(4)
	if rng.IntN(2) == 0 {
		a := Array{}
		for range n {
			a = append(a, randomValue(rng, depth-1))
		}
		return a
	}
	o := Object{}
	for range n {
		o = append(o, Member{[]string{"a", "b", "c"}[rng.IntN(3)], randomValue(rng, depth-1)})
	}
	return o
}

// At most 63 $ paths fit into one scan; with more the body is decoded whole,
// and nothing else changes.
func TestReadManyRootPaths(t *testing.T) {
	for _, n := range []int{62, 63, 64, 100} {
		var body strings.Builder
		var fields []string
		for i := range n {
			fmt.Fprintf(&body, `"k%d":%d,`, i, i)
			fields = append(fields, fmt.Sprintf("$.k%d", i))
		}
		p, err := list(t, "$.items", fields...).Read([]byte("{"+body.String()+`"items":[1,2]}`), 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		if p.Items() != 2 || len(p.Built()) != 1 {
			t.Errorf("%d paths: %d items, %d built", n, p.Items(), len(p.Built()))
		}
		for i, f := range fields {
			if got := p.Lookup(path(t, f)); got != json.Number(fmt.Sprint(i)) {
				t.Errorf("%d paths: %s gives %v", n, f, got)
			}
		}
	}
}
