package recipe

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/golden"
)

// deriveSample reads a sample.
func deriveSample(t testing.TB, text string) Value {
	t.Helper()
	v, err := Decode([]byte(text), DecodeLimits{})
	if err != nil {
		t.Fatalf("decoding the sample: %v", err)
	}
	return v
}

// outline writes a derived recipe the way the cases in testdata/derive do.
func outline(r *Recipe, notes []Note) string {
	var b strings.Builder
	if r == nil {
		b.WriteString("nothing\n")
	} else {
		fmt.Fprintf(&b, "%s %s\n", r.Mode, r.Select)
		if r.Shape != List {
			fmt.Fprintf(&b, "shape: %s\n", r.Shape)
		}
		if h := r.Header; h.First || !h.Path.IsZero() {
			fmt.Fprintf(&b, "header: %v %s\n", h.First, h.Path)
		}
		if r.Title != nil {
			fmt.Fprintf(&b, "title: %s\n", r.Title.String())
		}
		for _, f := range r.Fields {
			fmt.Fprintf(&b, "%s: %s", f.Label, f.Path)
			if f.Format.Kind != KindAuto {
				fmt.Fprintf(&b, " (%s)", f.Format.Kind)
			}
			if t := f.Format; t.Suffix+t.Join+t.Currency != "" {
				fmt.Fprintf(&b, " [%s]", t.Suffix+t.Join+t.Currency)
			}
			b.WriteByte('\n')
		}
		var keys []string
		for _, k := range r.Record {
			keys = append(keys, k.Key)
		}
		fmt.Fprintf(&b, "record: %s\n", strings.Join(keys, ", "))
	}
	for _, n := range notes {
		fmt.Fprintf(&b, "note %s", n.Code)
		if n.Code != "looks_like_error" {
			fmt.Fprintf(&b, ": %s", n.Message)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// Each case holds an answer (input.json), what a person would expect to find
// in the recipe (person: mode and select, then one path in a line, "not" and a
// path for what must not be there; written by hand for a reader of the answer)
// and the whole outline.
func TestDeriveCases(t *testing.T) {
	golden.Run(t, "testdata/derive/*.txtar", []string{"input.json", "options.json", "person"}, []string{"outline"}, func(t *testing.T, c *golden.Case) {
		v := deriveSample(t, string(c.Input("input.json")))
		var o DeriveOptions
		if c.Has("options.json") {
			if err := json.Unmarshal(c.Input("options.json"), &o); err != nil {
				t.Fatal(err)
			}
		}
		r, notes := Derive(v, o)
		checkPerson(t, r, string(c.Input("person")))
		c.Want("outline", outline(r, notes))
		if r != nil {
			checkDerived(t, v, r)
		}
	})
}

func checkPerson(t *testing.T, r *Recipe, person string) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(person), "\n")
	if lines[0] == "nothing" {
		if r != nil {
			t.Errorf("a person would keep nothing, got %s %s", r.Mode, r.Select)
		}
		return
	}
	if r == nil {
		t.Fatalf("a person would keep %s, got nothing", lines[0])
	}
	if got := fmt.Sprintf("%s %s", r.Mode, r.Select); got != lines[0] {
		t.Errorf("a person would keep %s, got %s", lines[0], got)
	}
	var paths []string
	for _, f := range r.Fields {
		paths = append(paths, f.Path.String())
	}
	for _, want := range lines[1:] {
		if unwanted, ok := strings.CutPrefix(want, "not "); ok {
			if slices.Contains(paths, unwanted) {
				t.Errorf("column %s is not worth showing", unwanted)
			}
		} else if !slices.Contains(paths, want) {
			t.Errorf("column %s is missing, there are %s", want, strings.Join(paths, ", "))
		}
	}
}

// checkDerived holds what every derived recipe must keep.
func checkDerived(t *testing.T, v Value, r *Recipe) {
	t.Helper()
	doc := r.Document()
	again, report := Parse(doc)
	if !report.OK() {
		t.Fatalf("Parse refuses the derived recipe %s: %v", Encode(doc), report.Problems)
	}
	if got, want := string(Encode(again.Document())), string(Encode(doc)); got != want {
		t.Errorf("parsed again it is %s, was %s", got, want)
	}
	if len(report.Warnings) > 0 {
		t.Errorf("Parse warns about the derived recipe: %v", report.Warnings)
	}
	if len(r.Fields) == 0 || len(r.Fields) > deriveMaxFields {
		t.Errorf("%d fields", len(r.Fields))
	}
	page, err := r.Read(Encode(v), 50, nil)
	if err != nil {
		t.Fatalf("reading the sample with its own recipe: %v", err)
	}
	res := r.Render([]*Page{page}, RenderOptions{Name: "x"})
	if res.Meta.Selected == 0 {
		t.Errorf("the derived recipe selects nothing of its own sample: %s", Encode(doc))
	}
	if len(res.Meta.EmptyFields) > 0 {
		t.Errorf("columns without a value in the sample: %v", res.Meta.EmptyFields)
	}
}

func TestDeriveIsDeterministic(t *testing.T) {
	v := deriveSample(t, `{"status":"ok","data":{"total":2,"items":[
		{"id":1,"name":"a","tags":["x"],"owner":{"login":"l","id":7},"price":"1.50","created_at":"2026-01-02T03:04:05Z"},
		{"id":2,"size":3,"name":"b","ok":true,"updated":"2026-01-02","url":"https://example.com/2"}]},"next":null,"previous":null}`)
	first, notes := Derive(v, DeriveOptions{Name: "n"})
	want := outline(first, notes)
	for range 100 {
		r, notes := Derive(v, DeriveOptions{Name: "n"})
		if got := outline(r, notes); got != want {
			t.Fatalf("another recipe from the same sample:\n%s", cmp.Diff(want, got))
		}
	}
}

func TestDeriveMaxFields(t *testing.T) {
	var members, list []string
	for i := range 60 {
		members = append(members, fmt.Sprintf(`"field%c%c":"text %d"`, 'a'+i/26, 'a'+i%26, i))
	}
	object := "{" + `"id":1,"name":"n",` + strings.Join(members, ",") + "}"
	list = append(list, object, object)
	for _, tt := range []struct {
		sample    string
		max, want int
	}{
		{"[" + strings.Join(list, ",") + "]", 0, 8},
		{object, 0, 12},
		{object, 1, 1},
		{object, 20, 20},
		{object, 21, 20},
		{object, -3, 1},
	} {
		r, _ := Derive(deriveSample(t, tt.sample), DeriveOptions{MaxFields: tt.max})
		if r == nil || len(r.Fields) != tt.want {
			t.Errorf("MaxFields %d: got %s", tt.max, outline(r, nil))
		}
	}
}

func TestDeriveTitle(t *testing.T) {
	for name, want := range map[string]string{
		"Open issues":                  "Open issues",
		"  two\nlines\x00 ":            "two lines",
		"a {{id}} b":                   "a { {id}} b",
		"{{{{":                         "{ { { {",
		strings.Repeat("é", 201):       strings.Repeat("é", 200),
		strings.Repeat("{", 200):       strings.TrimSpace(strings.Repeat("{ ", 100)),
		"\u2028":                       "",
		"":                             "",
		"ends with {":                  "ends with {",
		"} and }} and {{path|number}}": "} and }} and { {path|number}}",
	} {
		r, _ := Derive(deriveSample(t, `{"items":[{"id":1,"path":2}]}`), DeriveOptions{Name: name})
		if r == nil {
			t.Errorf("%q: nothing derived", name)
			continue
		}
		got := ""
		if r.Title != nil {
			got = r.Title.String()
			if len(r.Title.Paths()) > 0 {
				t.Errorf("%q became a placeholder: %q", name, got)
			}
		}
		if got != want {
			t.Errorf("%q became title %q, want %q", name, got, want)
		}
	}
}

// No key that names a credential is shown, at any depth, whoever says so.
func TestDeriveNeverShowsCredentials(t *testing.T) {
	v := deriveSample(t, `{"users":[{"id":1,"name":"a","password":"p","apiKey":"k","api_key":"k","accessToken":"t","token":"t",
		"Authorization":"x","set-cookie":"c","ssn":"1","client_secret":"s","cardNumber":"4","private_key":"x","session_id":"q",
		"bank":{"iban":"DE","name":"Bank","cardNumber":"4","value":1},"card":{"number":"4","name":"A"},"auth":{"name":"basic"},
		"credentials":[{"name":"c"}],"tokens":["t1","t2"],"cookies":["a"],"total_tokens":12,"keyboard":"qwerty","author":"x","shoe":"44"}]}`)
	r, _ := Derive(v, DeriveOptions{MaxFields: 20, Skip: func(key string) bool { return key == "shoe" }})
	want := `table $.users
ID: id
Name: name
Total tokens: total_tokens (number)
Keyboard: keyboard
Author: author
record: id, name, total_tokens, keyboard, author
`
	if got := outline(r, nil); got != want {
		t.Errorf("-want +got:\n%s", cmp.Diff(want, got))
	}
	for sample, want := range map[string]string{
		`{"tokens":[{"id":1,"name":"ci","value":"abc","key":"k"}]}`:                            "id, name",
		`{"id":1,"name":"n","tokens":{"access":"abc","used":5},"a":2}`:                         "id, name, used, a",
		`[{"id":1,"key":"sk_live_0123456789abcdef","jwt2":"eyJhbGciOi.eyJzdWIi.c2ln"}]`:        "id",
		`[{"id":1,"note":"ghp_0123456789abcdefghij"}]`:                                         "id",
		`{"data":{"12":"ghp_0123456789abcdefghij","13":"b","14":"c"}}`:                         "13, 14",
		`[{"id":1,"key":"PROJ-1"}]`:                                                            "key, id",
		`[{"id":1,"header":"Bearer 0123456789abcdef"}]`:                                        "id",
		`[["id","password","n"],[1,"p",2],[3,"q",4]]`:                                          "id, n",
		`{"columns":["id","api_key"],"rows":[[1,"p"],[2,"q"]]}`:                                "id",
		`{"t":[1,2],"secret":["a","b"],"v":[3,4]}`:                                             "t, v",
		`{"a1":{"n":1,"token":"x"},"b2":{"n":2,"token":"y"},"c3":{"n":3,"token":"z"}}`:         "key, n",
		`[[1,"ghp_0123456789abcdefghij"],[2,"ghp_0123456789abcdefghik"]]`:                      "column 1",
		`[{"id":"1","type":"p","p":{"rich_text":[{"plain_text":"Bearer 0123456789abcdef"}]}}]`: "id, type",
		`[{"id":"1","total":"1.50","currency":"EUR","token":"x"}]`:                             "id, total, currency",
		`[{"id":1,"note":"Basic income for all of us"}]`:                                       "id, note",
	} {
		r, notes := Derive(deriveSample(t, sample), DeriveOptions{})
		if got := outline(r, notes); !strings.Contains(got, "record: "+want+"\n") {
			t.Errorf("%s: want the record %s, got %s", sample, want, got)
		}
	}
	for _, sample := range []string{
		`{"secrets":[{"name":"n","value":"v"},{"name":"m","value":"w"}]}`,
		`{"tokens":["a","b"]}`,
		`{"data":{"token":{"id":1,"name":"n","value":"v"}}}`,
		`{"password":"p"}`,
		`[{"password":"p"}]`,
		`{"tokens":{"1":{"value":"a"},"2":{"value":"b"},"3":{"value":"c"}}}`,
		`["sk_live_0123456789abcdef","sk_live_0123456789abcdeg"]`,
	} {
		if r, notes := Derive(deriveSample(t, sample), DeriveOptions{}); r != nil {
			t.Errorf("%s gave %s", sample, outline(r, notes))
		}
	}
	if r, _ := Derive(deriveSample(t, `{"items":[{"id":1}]}`), DeriveOptions{Skip: func(string) bool { return true }}); r != nil {
		t.Errorf("a Skip that skips everything left %s", outline(r, nil))
	}
}

// Keys that need brackets, repeat each other or are too long.
func TestDeriveOddKeys(t *testing.T) {
	long := strings.Repeat("k", 100)
	huge := strings.Repeat("h", 5000)
	v := deriveSample(t, `[{"":"x","a.b":"x","it's":"x","@odata.name":"x","back\\slash":"x","tab\tkey":"x","#key":"x","$":"x","@":"x","*":"x",
		"x y":"x","X_y":"x","x-y":"x","Größe":"x","1st":"x","--":"x","`+long+`":"x","`+huge+`":"x"}]`)
	r, notes := Derive(v, DeriveOptions{MaxFields: 20})
	want := `table $
Key: ['#key']
Value: ['']
A b: ['a.b']
It s: ['it\'s']
Odata name: ['@odata.name']
Back slash: ['back\\slash']
Tab key: ['tab\u0009key']
$: ['$']
@: ['@']
*: ['*']
X y: ['x y']
X y 2: X_y
X y 3: x-y
Größe: Größe
1st: ['1st']
--: ['--']
` + "K" + long[:79] + ": " + long + `
record: #key, value, a.b, it's, @odata.name, back\slash, tab key, $, @, *, x y, X_y, x-y, Größe, 1st, --, ` + long[:80] + "\n"
	if got := outline(r, notes); got != want {
		t.Errorf("-want +got:\n%s", cmp.Diff(want, got))
	}
	checkDerived(t, v, r)
}

// A hostile sample costs little and never gives a recipe that Parse refuses.
func TestDeriveHostile(t *testing.T) {
	deep := strings.Repeat(`{"data":`, 150) + "1" + strings.Repeat("}", 150)
	var wide []string
	for i := range 20000 {
		wide = append(wide, fmt.Sprintf(`"k%d":{"a":[{"b":%d}]}`, i, i))
	}
	for _, sample := range map[string]string{
		"deep objects":   deep,
		"deep arrays":    strings.Repeat("[", 150) + strings.Repeat("]", 150),
		"wide":           "{" + strings.Join(wide, ",") + "}",
		"wide item":      "[{" + strings.Join(wide, ",") + "}]",
		"long key":       `{"` + strings.Repeat("a", 100000) + `":[{"id":1}]}`,
		"long text":      `{"items":[{"id":1,"name":"` + strings.Repeat("x", 1<<20) + `"}]}`,
		"doubled":        `{"items":[{"id":1}],"items":{"a":1}}`,
		"nulls":          `[null,null]`,
		"empty objects":  `[{},{},{}]`,
		"nested nothing": `{"data":{"items":[{}]}}`,
	} {
		v := deriveSample(t, sample)
		r, _ := Derive(v, DeriveOptions{})
		if r != nil {
			checkDerived(t, v, r)
		}
	}
}

func TestDeriveNothing(t *testing.T) {
	for sample, note := range map[string]string{
		`null`:                                 "",
		`{}`:                                   "",
		`[]`:                                   "empty_list",
		`{"items":[]}`:                         "empty_list",
		`[null]`:                               "",
		`[{}]`:                                 "",
		`{"a":null}`:                           "",
		`[{"a":{}},1,2]`:                       "-",
		`[[],[]]`:                              "",
		`{"tokens":{"1":"a","2":"b","3":"c"}}`: "",
		`{"1":"sk_live_0123456789abcdef"}`:     "",
	} {
		r, notes := Derive(deriveSample(t, sample), DeriveOptions{})
		if note == "-" { // a mixed list shows its values
			if r == nil || r.Fields[0].Path.String() != "@" {
				t.Errorf("%s gave %s", sample, outline(r, notes))
			}
			continue
		}
		code := ""
		if len(notes) > 0 {
			code = notes[0].Code
		}
		if r != nil || code != note {
			t.Errorf("%s gave %s", sample, outline(r, notes))
		}
	}
}

func TestLabelOf(t *testing.T) {
	for key, want := range map[string]string{
		"created_at": "Created at", "createdAt": "Created at", "ID": "ID", "html_url": "HTML URL", "objectID": "Object ID",
		"HTTPStatus": "HTTP status", "@type": "Type", "dist-tags": "Dist tags", "temperature_2m": "Temperature 2m", "DOI": "DOI",
		"FIRST_NAME": "First name", "hydra:member": "Hydra member", "été": "Été", "sku": "SKU", "is_active": "Is active",
		"__name__": "Name", "名前": "名前", "...": "...", " ": "Value", "1. open": "Open", "2.5 x": "2 5 x",
	} {
		if got := labelOf(key); got != want {
			t.Errorf("labelOf(%q) = %q, want %q", key, got, want)
		}
	}
}

func TestDateKind(t *testing.T) {
	for _, tt := range []struct {
		key, values string
		want        Kind
	}{
		{"born", `["1845-03-27","0000-00-00"]`, KindDate},
		{"year", `["1880-01-01T00:00:00.000Z"]`, KindDate},
		{"x", `["2026-01-31T10:15:00+01:00"]`, KindDateTime},
		{"x", `["2026-01-31 10:15"]`, KindDateTime},
		{"x", `["2026-01-31","2026-01-31T10:15:00Z"]`, KindDateTime},
		{"x", `["Fri, 24 May 2019 17:44:46 +0000"]`, KindDateTime},
		{"x", `["Thu Apr 06 15:28:43 +0000 2017"]`, KindDateTime},
		{"x", `["1996-5-30"]`, ""},
		{"x", `["2026-01-31","soon"]`, ""},
		{"x", `["2026-01-31x"]`, ""},
		{"created", `[1765233417]`, KindDateTime},
		{"updated", `[1765233417000]`, KindDateTime},
		{"timestamp", `["1765233417"]`, KindDateTime},
		{"views", `[1765233417]`, ""},
		{"created", `[176523341]`, ""},
		{"created", `[9999999999]`, ""},
		{"time", `[17]`, ""},
	} {
		a, _ := deriveSample(t, tt.values).(Array)
		if got := dateKind(tt.key, a); got != tt.want {
			t.Errorf("%s %s: %q, want %q", tt.key, tt.values, got, tt.want)
		}
	}
}

// FuzzDerive: whatever the sample, a derived recipe is valid, shows something
// of its sample, and comes out the same twice.
func FuzzDerive(f *testing.F) {
	for _, s := range []string{
		`{"items":[{"id":1,"a.b":"x"}],"next":"/x"}`, `[{"page":1},[{"id":1}]]`, `{"error":{"code":1}}`, `["a","b"]`, `"x"`, `3`,
		`{"data":{"children":[{"data":{"title":"t","created":1765233417}}]}}`, `{"a":[{"id":1,"b":[{"c":1}]}]}`,
		`{"id":1,"name":"n","x":{"y":{"z":1},"name":""},"l":[1,null,"a"],"m":[{"name":"q"}]}`, `[{"v":[1765233417,"1"]}]`,
		`{"rates":{"EUR":1.5,"USD":2}}`, `{"a":{"1":{"x":"<b>y</b>"},"2":{"x":"z"}}}`, `{"values":[["a","b"],[1,"2"]]}`, `{"prices":[[1711843200000,1.5]]}`,
		`{"columns":[{"name":"a"},{"name":"a"}],"rows":[[1,{"b":2}]]}`, `{"h":{"t":[1,2],"x":[3,4]},"h_units":{"x":"°C"}}`,
		`[{"id":1,"total":1.5,"currency":"EUR","size":3,"sha":"x","a_percent":1}]`, `[{"type":"p","p":{"rich_text":[{"plain_text":"x"}]},"issued":{"date-parts":[[2005]]}}]`,
		`{"_embedded":{"o":[{"_links":{"self":{"href":"/1"}},"n":1}]}}`,
	} {
		f.Add([]byte(s), 0)
	}
	f.Fuzz(func(t *testing.T, data []byte, most int) {
		v, err := Decode(data, DecodeLimits{})
		if err != nil {
			return
		}
		o := DeriveOptions{MaxFields: most, Name: string(data)}
		r, notes := Derive(v, o)
		again, notesAgain := Derive(v, o)
		if outline(r, notes) != outline(again, notesAgain) {
			t.Fatal("two recipes from one sample")
		}
		// What Derive drafts must be what Parse takes: nothing is lost there.
		d := &deriver{opts: o}
		found := d.find(v)
		if found.what == foundNothing {
			return
		}
		if cols := d.columns(found); len(cols) > 0 {
			if _, report := Parse(d.document(found, cols)); !report.OK() {
				t.Fatalf("Parse refuses %s: %v", Encode(d.document(found, cols)), report.Problems)
			}
			checkDerived(t, v, r)
		}
	})
}

// BenchmarkDerive: a short list, and the largest object an answer may hold.
func BenchmarkDerive(b *testing.B) {
	var wide strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&wide, `,"key%d":{"a":[{"b":%d}]}`, i, i)
	}
	for name, sample := range map[string]string{
		"list": `{"items":[{"id":1,"name":"a","price":1.5,"created_at":"2026-01-02T03:04:05Z","owner":{"login":"x"}}]}`,
		"wide": `{"x":1` + wide.String() + `}`,
		"item": `[{"x":1` + wide.String() + `}]`,
	} {
		v := deriveSample(b, sample)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Derive(v, DeriveOptions{})
			}
		})
	}
}

// Whoever derives from one order and gets its lines has to know that the order
// itself is not shown. A list that says how to get more of it belongs to
// nothing else.
func TestDeriveOwner(t *testing.T) {
	const note = `owner_left_out: this shows the list at $.lines alone, not the id beside it; to show the one thing that the list is part of, write "select":"$","mode":"document" and its paths`
	for _, tt := range []struct{ sample, want string }{
		{`{"id":9007199254741993,"status":"new","customer":{"name":"Ada"},"lines":[{"sku":"a","qty":2}]}`, note},
		{`{"id":9007199254741993,"skip":0,"limit":1,"total":2,"lines":[{"sku":"a","qty":2}]}`, `paging_hint: {"type":"offset","offsetParam":"skip","limitParam":"limit","pageSize":1,"total":"$.total"}`},
		{`{"id":1,"jsonrpc":"2.0","result":[{"sku":"a","qty":2}]}`, ""},
		{`{"id":null,"lines":[{"sku":"a","qty":2}]}`, ""},
		{`{"lines":[{"id":1,"qty":2}]}`, ""},
		{`[{"id":1,"qty":2}]`, ""},
	} {
		_, notes := Derive(deriveSample(t, tt.sample), DeriveOptions{})
		var got []string
		for _, n := range notes {
			got = append(got, n.Code+": "+n.Message)
		}
		if strings.Join(got, "\n") != tt.want {
			t.Errorf("%s\n got %q\nwant %q", tt.sample, got, tt.want)
		}
	}
}
