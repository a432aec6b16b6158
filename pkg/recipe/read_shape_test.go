package recipe

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// shaped is a recipe of a shape, with fields.
func shapedRecipe(t testing.TB, sel string, shape Shape, header string, fields ...string) *Recipe {
	r := list(t, sel, fields...)
	r.Shape = shape
	switch header {
	case "":
	case "first":
		r.Header.First = true
	default:
		r.Header.Path = path(t, header)
	}
	return r
}

func keysOf(p *Page) string {
	var keys []string
	for i := range p.Built() {
		keys = append(keys, p.Key(i))
	}
	return strings.Join(keys, "|")
}

func TestReadShapes(t *testing.T) {
	const (
		notObject  = `select gave an array, shape "columns" needs an object of arrays`
		noArrays   = `select gave an object without arrays, shape "columns" needs an object of arrays`
		notEntries = `select gave a string, shape "entries" needs an object`
	)
	tests := []struct {
		name, sel   string
		shape       Shape
		header      string
		body        string
		items       int
		built, keys string // at most 3
		list        bool
		note        string
	}{
		{name: "entries", sel: "$", shape: Entries, body: `{"AD":{"n":1},"AE":{"n":2},"AF":{"n":3},"AG":4}`, items: 4, built: `{"n":1} {"n":2} {"n":3}`, keys: "AD|AE|AF"},
		{name: "entries of scalars", sel: "$.rates", shape: Entries, body: `{"rates":{"AUD":1.50,"BGN":null}}`, items: 2, built: `1.50 null`, keys: "AUD|BGN"},
		{name: "entries with a doubled key", sel: "$", shape: Entries, body: `{"a":1,"b":2,"a":3}`, items: 2, built: `2 3`, keys: "b|a"},
		{name: "entries with an escaped key", sel: "$", shape: Entries, body: `{"\u0061":1,"":2}`, items: 2, built: `1 2`, keys: "a|"},
		{name: "entries of several objects", sel: "$[*].m", shape: Entries, body: `[{"m":{"a":1}},{"m":null},{"m":{"a":2,"b":3}}]`, items: 3, built: `1 2 3`, keys: "a|a|b"},
		{name: "entries of a list", sel: "$", shape: Entries, body: `[{"n":1},{"n":2}]`, items: 2, built: `{"n":1} {"n":2}`, keys: "0|1", list: true},
		{name: "entries of an empty list", sel: "$", shape: Entries, body: `[]`, list: true},
		{name: "entries of a text", sel: "$", shape: Entries, body: `"x"`, note: notEntries},
		{name: "entries of null", sel: "$.m", shape: Entries, body: `{"m":null}`},
		{name: "entries of nothing", sel: "$.m", shape: Entries, body: `{"m":{}}`},
		{name: "entries replaced by a later member", sel: "$.m", shape: Entries, body: `{"m":{"a":1,"b":2},"m":{"c":3}}`, items: 1, built: `3`, keys: "c"},
		{name: "an unfit value replaced by a later member", sel: "$.m", shape: Entries, body: `{"m":"x","m":{"c":3}}`, items: 1, built: `3`, keys: "c"},

		{name: "columns", sel: "$.h", shape: Columns, body: `{"h":{"t":["a","b"],"x":[1,2]}}`, items: 2, built: `{"t":"a","x":1} {"t":"b","x":2}`},
		{name: "columns, a short one", sel: "$", shape: Columns, body: `{"t":["a","b","c","d"],"x":[1]}`, items: 4, built: `{"t":"a","x":1} {"t":"b"} {"t":"c"}`},
		{name: "columns, members that are not arrays", sel: "$", shape: Columns, body: `{"u":{"t":"s"},"t":["a","b"],"z":null}`, items: 2, built: `{"u":{"t":"s"},"t":"a","z":null} {"u":{"t":"s"},"t":"b","z":null}`},
		{name: "columns, a doubled one", sel: "$", shape: Columns, body: `{"t":["a","b"],"x":[1],"t":["c"]}`, items: 1, built: `{"x":1,"t":"c"}`},
		{name: "columns, empty ones", sel: "$", shape: Columns, body: `{"t":[],"x":[]}`},
		{name: "columns without arrays", sel: "$", shape: Columns, body: `{"t":1}`, note: noArrays},
		{name: "columns of an array", sel: "$", shape: Columns, body: `[[1],[2]]`, note: notObject},
		{name: "columns of several objects", sel: "$[*]", shape: Columns, body: `[{"t":[1,2]},{"t":[3]},7]`, items: 3, built: `{"t":1} {"t":2} {"t":3}`, note: `select gave a number, shape "columns" needs an object of arrays`},

		{name: "matrix without header", sel: "$.d", shape: Matrix, body: `{"d":[["a",1],["b",2]]}`, items: 2, built: `["a",1] ["b",2]`, list: true},
		{name: "matrix with names first", sel: "$", shape: Matrix, header: "first", body: `[["n","v"],["a",1],["b",2,3],["c"],["d",4]]`, items: 4, built: `{"n":"a","v":1} {"n":"b","v":2,"":3} {"n":"c"}`, list: true},
		{name: "matrix with a star and names first", sel: "$.d[*]", shape: Matrix, header: "first", body: `{"d":[["n"],["a"],["b"]]}`, items: 2, built: `{"n":"a"} {"n":"b"}`},
		{name: "several matrices with names first", sel: "$[*].d", shape: Matrix, header: "first", body: `[{"d":[["n"],["a"]]},{"d":[["m"],["b"],["c"],["e"]]}]`, items: 4, built: `{"n":"a"} {"m":"b"} {"m":"c"}`, list: true},
		{name: "matrix with only names", sel: "$", shape: Matrix, header: "first", body: `[["n","v"]]`, list: true},
		{name: "matrix with nothing", sel: "$", shape: Matrix, header: "first", body: `[]`, list: true},
		{name: "matrix of objects", sel: "$", shape: Matrix, header: "first", body: `[{"a":1},{"a":2},{"a":3},{"a":4}]`, items: 4, built: `{"a":1} {"a":2} {"a":3}`, list: true, note: "the first row is no list of names"},
		{name: "one row that is no list", sel: "$", shape: Matrix, header: "first", body: `{"a":1}`, items: 1, built: `{"a":1}`, note: "the first row is no list of names"},
		{
			name: "matrix with names elsewhere", sel: "$.data", shape: Matrix, header: "$.meta.view.columns[*].name",
			body:  `{"meta":{"view":{"columns":[{"name":"id"},{"x":1},{"name":"id"},{"name":"ok"}]}},"data":[[1,2,3,4],null,[5]]}`,
			items: 3, built: `{"id":1,"":2,"id 2":3,"ok":4} null {"id":5}`, list: true,
		},
		{name: "matrix with a list of names", sel: "$.data", shape: Matrix, header: "$.names", body: `{"data":[[1,2]],"names":["a",2]}`, items: 1, built: `{"a":1,"2":2}`, list: true},
		{name: "matrix with a starred list of names", sel: "$.data[*]", shape: Matrix, header: "$.names[*]", body: `{"data":[[1,2]],"names":["a",null]}`, items: 1, built: `{"a":1,"":2}`},
		{name: "matrix with picked names", sel: "$.data", shape: Matrix, header: "$.names[1:]", body: `{"data":[[1,2]],"names":["x","a","b"]}`, items: 1, built: `{"a":1,"b":2}`, list: true},
		{name: "matrix with filtered names", sel: "$.data", shape: Matrix, header: "$.c[?@.show==true].n", body: `{"data":[[1,2]],"c":[{"n":"x"},{"show":true,"n":"a"},{"show":true,"n":"b"}]}`, items: 1, built: `{"a":1,"b":2}`, list: true},
		{name: "matrix without the names", sel: "$.data", shape: Matrix, header: "$.names", body: `{"data":[[1,2]]}`, items: 1, built: `[1,2]`, list: true, note: "header matched no names"},

		{name: "list of one element", sel: "$", shape: List, body: `[{"a":1}]`, items: 1, built: `{"a":1}`, list: true},
		{name: "one object", sel: "$", shape: List, body: `{"a":1}`, items: 1, built: `{"a":1}`},
		{name: "empty list", sel: "$.a", shape: List, body: `{"a":[]}`, list: true},
		{name: "a list replaced by a later object", sel: "$.a.b", shape: List, body: `{"a":{"b":1}}`, items: 1, built: `1`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := shapedRecipe(t, tt.sel, tt.shape, tt.header, "@")
			got, err := r.Read([]byte(tt.body), 3, nil)
			if err != nil {
				t.Fatal(err)
			}
			whole, err := r.readWhole([]byte(tt.body), 3, nil, r.readPaths())
			if err != nil {
				t.Fatal(err)
			}
			keys := tt.keys
			if keys == "" && tt.built != "" {
				keys = strings.Repeat("|", len(got.Built())-1)
			}
			star := strings.Contains(tt.sel, "*")
			for name, p := range map[string]*Page{"read": got, "decoded whole": whole} {
				if p.Items() != tt.items {
					t.Errorf("%s: items = %d, want %d", name, p.Items(), tt.items)
				}
				if b := strings.Join(texts(p.Built()), " "); b != tt.built {
					t.Errorf("%s: built %s, want %s", name, b, tt.built)
				}
				if k := keysOf(p); k != keys {
					t.Errorf("%s: keys %s, want %s", name, k, keys)
				}
				if p.IsList() != (tt.list || star) {
					t.Errorf("%s: IsList() = %v", name, p.IsList())
				}
				if n := strings.Join(p.Warnings(), "; "); n != tt.note {
					t.Errorf("%s: warnings %q, want %q", name, n, tt.note)
				}
			}
		})
	}
}

// A repeated name of a cell gets " 2", " 3" and never a name that is there.
func TestCellNames(t *testing.T) {
	for _, tt := range []struct {
		header string
		n      int
		want   []string
	}{
		{`["a","b","a","a"]`, 4, []string{"a", "b", "a 2", "a 3"}},
		{`["a","a 2","a","a 2"]`, 4, []string{"a", "a 2", "a 3", "a 2 2"}},
		{`["a","a","a 2"]`, 3, []string{"a", "a 3", "a 2"}},
		{`[null,"",{},1.50,true]`, 5, []string{"", " 2", " 3", "1.50", "true"}},
		{`["a"]`, 3, []string{"a", "", " 2"}},
	} {
		if d := cmp.Diff(tt.want, cellNames(decode(t, tt.header).(Array), tt.n)); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.header, d)
		}
	}
}

// Only what the paths reach is built, in every shape; $ paths work beside.
func TestReadShapesKeep(t *testing.T) {
	for _, tt := range []struct {
		sel    string
		shape  Shape
		header string
		body   string
		want   string
	}{
		{"$.m", Entries, "", `{"m":{"k":{"a":1,"b":2}},"total":7}`, `{"a":1}`},
		{"$.m", Columns, "", `{"m":{"b":[1],"a":[2],"c":3},"total":7}`, `{"a":2}`},
		{"$.m", Matrix, "first", `{"m":[["b","a"],[1,2]],"total":7}`, `{"a":2}`},
		{"$.m", Matrix, "$.n", `{"m":[[1,2]],"n":["b","a"],"total":7}`, `{"a":2}`},
	} {
		r := shapedRecipe(t, tt.sel, tt.shape, tt.header, "a", "#index", "$.total", "$.n")
		p, err := r.Read([]byte(tt.body), 3, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(texts(p.Built()), " "); got != tt.want {
			t.Errorf("%s: built %s, want %s", tt.shape, got, tt.want)
		}
		if got := string(Encode(p.Lookup(path(t, "$.total")))); got != "7" {
			t.Errorf("%s: $.total is %s", tt.shape, got)
		}
		if got, want := string(Encode(p.Lookup(path(t, "$.n")))), map[bool]string{true: `["b","a"]`, false: "null"}[tt.header == "$.n"]; got != want {
			t.Errorf("%s: $.n is %s, want %s", tt.shape, got, want)
		}
	}
}

func TestReadShapesScrub(t *testing.T) {
	scrub := func(s string) string { return strings.ReplaceAll(s, "s3-cret", "[hidden]") }
	for _, tt := range []struct {
		shape  Shape
		header string
		body   string
		want   string
	}{
		{Entries, "", `{"s3-cret":{"s3\u002dcret":"s3-cret"}}`, `[hidden] {"[hidden]":"[hidden]"}`},
		{Columns, "", `{"s3-cret":["s3\u002dcret"],"s3-cret!":"s3-cret"}`, ` {"[hidden]":"[hidden]","[hidden]!":"[hidden]"}`},
		{Matrix, "first", `[["s3-cret","b"],["s3-cret",1]]`, ` {"[hidden]":"[hidden]","b":1}`},
		{Matrix, "$[0]", `[["s3-cret","b"]]`, ` {"[hidden]":"[hidden]","b":"b"}`},
	} {
		for _, sel := range []string{"$", "$[?@.x==1]"} { // the second only to decode whole
			r := shapedRecipe(t, "$", tt.shape, tt.header, "@")
			p, err := r.Read([]byte(tt.body), 3, scrub)
			if sel != "$" {
				p, err = r.readWhole([]byte(tt.body), 3, scrub, r.readPaths())
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := p.Key(0) + " " + string(Encode(p.Built()[0])); got != tt.want {
				t.Errorf("%s: %s, want %s", tt.shape, got, tt.want)
			}
		}
	}
}

// Values that shape columns repeats do not multiply what a body holds.
func TestReadColumnsBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"t":[` + strings.Repeat("1,", 999) + `1]`)
	for i := range 20_000 {
		fmt.Fprintf(&b, `,"k%d":1`, i)
	}
	b.WriteString("}")
	p, err := shapedRecipe(t, "$", Columns, "", "@").Read([]byte(b.String()), 1000, nil)
	if err != nil {
		t.Fatal(err)
	}
	if p.Items() != 1000 || len(p.Built()) != 4 { // 4 items of 20001 members
		t.Errorf("%d items, %d built", p.Items(), len(p.Built()))
	}
}

// Rows with more cells than the header has names cost little.
func TestReadWideRows(t *testing.T) {
	row := "[" + strings.Repeat("1,", 50_000) + "1]"
	p, err := shapedRecipe(t, "$", Matrix, "first", "@").Read([]byte(`[[],`+row+`]`), 3, nil)
	if err != nil {
		t.Fatal(err)
	}
	o := p.Built()[0].(Object)
	if len(o) != 50_001 || o[0].Key != "" || o[50_000].Key != " 50001" {
		t.Errorf("%d cells, the last is %q", len(o), o[len(o)-1].Key)
	}
}

// One scan and a whole decode agree in every shape.
func TestReadShapesAgreeWithWholeDecode(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	selects := []string{"$", "$.a", "$.a[*]", "$[*]", "$[0]", "$.a.b", "$.a[*].b", "$[*][*]", "$.b[0]", "$[:2].b"}
	looks := []string{"$.a", "$.a[*]", "$[-1]", "$.a[-1].b", "$.a[?@.b==1]", "$.c"}
	headers := []string{"", "first", "$.a", "$.a[*]", "$[*].b", "$.b[*].a", "$[0]", "$.c[1:]"}
	shapes := []Shape{List, Entries, Columns, Matrix}
	for range 10_000 {
		body := Encode(randomValue(rng, 4))
		shape, header := shapes[rng.IntN(4)], ""
		if shape == Matrix {
			header = headers[rng.IntN(len(headers))]
		}
		var fields []string
		if rng.IntN(2) == 0 {
			fields = looks
		}
		r := shapedRecipe(t, selects[rng.IntN(len(selects))], shape, header, fields...)
		r.Record = []Binding{{"all", path(t, "@")}}
		max := rng.IntN(4)
		got, err := r.Read(body, max, nil)
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		want, err := r.readWhole(body, max, nil, r.readPaths())
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		say := func(p *Page) string {
			return fmt.Sprint(p.items, texts(p.built), p.keys, p.list, p.notes)
		}
		if say(got) != say(want) {
			t.Fatalf("shape %s, header %q, select %s of %s, max %d:\n got %s\nwant %s", shape, header, r.Select, body, max, say(got), say(want))
		}
		for _, s := range fields {
			p := path(t, s)
			if !cmp.Equal(texts(got.LookupAll(p)), texts(want.LookupAll(p))) {
				t.Fatalf("%s of %s: got %v, want %v", p, body, texts(got.LookupAll(p)), texts(want.LookupAll(p)))
			}
		}
	}
}
