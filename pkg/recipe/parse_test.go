package recipe

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/golden"
)

// credentialName stands for the word list of the wrapper package.
func credentialName(name string) bool {
	n := strings.ToLower(name)
	return strings.Contains(n, "token") || n == "authorization" || n == "set-cookie"
}

func parseDoc(t testing.TB, doc []byte) (*Recipe, Report) {
	t.Helper()
	v, err := Decode(doc, DecodeLimits{})
	if err != nil {
		t.Fatal(err)
	}
	r, report := ParseOptions{CredentialName: credentialName}.Parse(v)
	if (r == nil) == report.OK() {
		t.Fatalf("recipe is nil: %v, report is OK: %v", r == nil, report.OK())
	}
	return r, report
}

func problemLines(ps []Problem) string {
	var b strings.Builder
	for _, p := range ps {
		fmt.Fprintf(&b, "%s %s: %s", p.Field, p.Code, p.Message)
		if p.Hint != "" {
			fmt.Fprintf(&b, " [%s]", p.Hint)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func TestParseGolden(t *testing.T) {
	golden.Run(t, "testdata/golden-parse/*.txtar", []string{"recipe.json"}, []string{"problems", "warnings", "document.json"}, func(t *testing.T, c *golden.Case) {
		r, report := parseDoc(t, c.Input("recipe.json"))
		if c.Has("problems") || !report.OK() {
			c.Want("problems", problemLines(report.Problems))
		}
		if c.Has("warnings") || len(report.Warnings) > 0 {
			c.Want("warnings", problemLines(report.Warnings))
		}
		if c.Has("document.json") || report.OK() && r == nil {
			c.Want("document.json", string(Encode(r.Document())))
		}
		if r != nil {
			checkDocument(t, r)
		}
	})
}

// checkDocument parses the document of a recipe and wants the same recipe.
func checkDocument(t *testing.T, r *Recipe) {
	t.Helper()
	doc := Encode(r.Document())
	again, report := parseDoc(t, doc)
	if !report.OK() {
		t.Fatalf("the recipe's own document has problems:\n%s%s", doc, problemLines(report.Problems))
	}
	if !reflect.DeepEqual(r, again) {
		t.Errorf("Parse(r.Document()) differs from r:\n%s\n%s", doc, Encode(again.Document()))
	}
}

// The examples of the format's page and of the README, with what they mean in Go.
func TestParseMeaning(t *testing.T) {
	r, report := parseDoc(t, []byte(`{
		"schemaVersion": 1, "select": "$.current", "mode": "document",
		"record": {"city": "location.name", "updated": "last_updated"},
		"fields": {"City": "location.name", "Temperature": {"path": "temp_c", "format": "number", "suffix": " °C"}}}`))
	if !report.OK() {
		t.Fatal(problemLines(report.Problems))
	}
	want := &Recipe{
		SchemaVersion: 1, Select: path(t, "$.current"), Shape: List, Mode: Document,
		Fields: []Field{
			{"City", path(t, "location.name"), Format{Decimals: -1}},
			{"Temperature", path(t, "temp_c"), Format{Kind: KindNumber, Suffix: " °C", Decimals: -1}},
		},
		Record: []Binding{{"city", path(t, "location.name")}, {"updated", path(t, "last_updated")}},
		Limits: Limits{MaxItems: 50, MaxChars: 20000},
	}
	want.plan = want.prepare()
	if !reflect.DeepEqual(r, want) {
		t.Errorf("got %+v\nwant %+v", r, want)
	}
}

func TestParsePaginationMeaning(t *testing.T) {
	body := func(s string) *Source { return &Source{Path: path(t, s).fromBody()} }
	tests := []struct {
		doc  string
		want Pagination
	}{
		{
			`{"type":"offset","limitParam":"limit","offsetParam":"skip","pageSize":10,"hasMore":"total"}`,
			Pagination{Type: "offset", MaxPages: 10, LimitParam: "limit", OffsetParam: "skip", PageSize: 10, HasMore: body("total"), HasMoreWhen: true, Step: "items", In: "query"},
		},
		{
			`{"type":"cursor","next":"$.data[-1].id","cursorParam":"starting_after","hasMore":"has_more","limitParam":"limit","pageSize":100}`,
			Pagination{Type: "cursor", MaxPages: 10, Next: body("$.data[-1].id"), CursorParam: "starting_after", HasMore: body("has_more"), HasMoreWhen: true, LimitParam: "limit", PageSize: 100, In: "query"},
		},
		{
			`{"type":"offset","offsetParam":"page","limitParam":"per_page","pageSize":100,"start":1,"step":"page"}`,
			Pagination{Type: "offset", MaxPages: 10, OffsetParam: "page", LimitParam: "per_page", PageSize: 100, Start: 1, Step: "page", HasMoreWhen: true, In: "query"},
		},
		{
			`{"type":"link","nextUrl":"header:Link"}`,
			Pagination{Type: "link", MaxPages: 10, NextURL: &Source{Header: "Link"}, Rel: "next", HasMoreWhen: true},
		},
		{
			`{"type":"link","nextUrl":"$['@odata.nextLink']","total":"$['@odata.count']"}`,
			Pagination{Type: "link", MaxPages: 10, NextURL: body("$['@odata.nextLink']"), Total: body("$['@odata.count']"), Rel: "next", HasMoreWhen: true},
		},
		{
			`{"type":"link","nextUrl":"$.link[?@.relation=='next'].url","maxPages":25,"rel":"next-page"}`,
			Pagination{Type: "link", MaxPages: 25, NextURL: body("$.link[?@.relation=='next'].url"), Rel: "next-page", HasMoreWhen: true},
		},
		{
			`{"type":"cursor","next":"continue","cursorParam":"*"}`,
			Pagination{Type: "cursor", MaxPages: 10, Next: body("continue"), CursorParam: "*", HasMoreWhen: true, In: "query"},
		},
		{
			`{"type":"cursor","next":"LastEvaluatedKey","cursorParam":"ExclusiveStartKey","in":"body"}`,
			Pagination{Type: "cursor", MaxPages: 10, Next: body("LastEvaluatedKey"), CursorParam: "ExclusiveStartKey", In: "body", HasMoreWhen: true},
		},
		{
			`{"type":"cursor","next":"n","cursorParam":"variables.after","in":"body","hasMore":"done","hasMoreWhen":false}`,
			Pagination{Type: "cursor", MaxPages: 10, Next: body("n"), CursorParam: "variables.after", In: "body", HasMore: body("done")},
		},
		{`{"type":"none"}`, Pagination{Type: "none"}},
		{`{}`, Pagination{Type: "none"}},
	}
	for _, tt := range tests {
		r, report := parseDoc(t, []byte(`{"schemaVersion":1,"mode":"table","fields":{"A":"a"},"pagination":`+tt.doc+`}`))
		if !report.OK() {
			t.Errorf("%s:\n%s", tt.doc, problemLines(report.Problems))
			continue
		}
		if !reflect.DeepEqual(r.Pagination, tt.want) {
			t.Errorf("%s:\n got %+v\nwant %+v", tt.doc, r.Pagination, tt.want)
		}
		if got := r.Pagination.Paged(); got != (tt.want.Type != "none") {
			t.Errorf("%s: paged is %v", tt.doc, got)
		}
		checkDocument(t, r)
	}
}

// Every bound, at it and one over.
func TestParseLimits(t *testing.T) {
	chars := func(n int) string { return `"` + strings.Repeat("ä", n) + `"` }
	entries := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"k%d":"a"`, i)
		}
		return "{" + b.String()[1:] + "}"
	}
	field := func(format, key, v string) string {
		return fmt.Sprintf(`"fields":{"A":{"path":"a","format":%q,%q:%s}}`, format, key, v)
	}
	offset := func(key, v string) string {
		o := map[string]string{"type": `"offset"`, "offsetParam": `"o"`, "pageSize": "1"}
		o[key] = v
		s := ""
		for k, v := range o {
			s += fmt.Sprintf(",%q:%s", k, v)
		}
		return `"fields":{"A":"a"},"pagination":{` + s[1:] + `}`
	}
	const f = "response.fields.A."
	tests := []struct{ good, bad, field, code string }{
		{`"fields":{"A":"a"},"limits":{"maxItems":1}`, `"fields":{"A":"a"},"limits":{"maxItems":0}`, "response.limits.maxItems", "LIMIT_RANGE"},
		{`"fields":{"A":"a"},"limits":{"maxItems":1000}`, `"fields":{"A":"a"},"limits":{"maxItems":1001}`, "response.limits.maxItems", "LIMIT_RANGE"},
		{`"fields":{"A":"a"},"limits":{"maxChars":200}`, `"fields":{"A":"a"},"limits":{"maxChars":199}`, "response.limits.maxChars", "LIMIT_RANGE"},
		{`"fields":{"A":"a"},"limits":{"maxChars":200000}`, `"fields":{"A":"a"},"limits":{"maxChars":200001}`, "response.limits.maxChars", "LIMIT_RANGE"},
		{`"fields":{"A":"a"},"limits":{"maxItems":2e1}`, `"fields":{"A":"a"},"limits":{"maxItems":99999999999999999999}`, "response.limits.maxItems", "LIMIT_RANGE"},
		{`"fields":{"A":"a"},"limits":{"maxItems":20.0}`, `"fields":{"A":"a"},"limits":{"maxItems":20.5}`, "response.limits.maxItems", "TYPE"},
		{`"fields":` + entries(50), `"fields":` + entries(51), "response.fields", "TOO_MANY"},
		{`"fields":` + entries(1), `"fields":{}`, "response.fields", "TOO_FEW"},
		{`"fields":{"A":"a"},"record":` + entries(50), `"fields":{"A":"a"},"record":` + entries(51), "response.record", "TOO_MANY"},
		{`"fields":{"A":"a"},"record":` + entries(1), `"fields":{"A":"a"},"record":{}`, "response.record", "TOO_FEW"},
		{`"fields":{` + chars(80) + `:"a"}`, `"fields":{` + chars(81) + `:"a"}`, "response.fields." + strings.Repeat("ä", 81), "TOO_LONG"},
		{`"fields":{"A":"a"}`, `"fields":{"":"a"}`, "response.fields['']", "TOO_SHORT"},
		{`"fields":{"A":"` + strings.Repeat("a", 512) + `"}`, `"fields":{"A":"` + strings.Repeat("a", 513) + `"}`, "response.fields.A", "PATH_TOO_LONG"},
		{`"fields":{"A":"a` + strings.Repeat(".a", 63) + `"}`, `"fields":{"A":"a` + strings.Repeat(".a", 64) + `"}`, "response.fields.A", "PATH_TOO_LONG"},
		{field("number", "suffix", chars(20)), field("number", "suffix", chars(21)), f + "suffix", "OPTION_VALUE"},
		{field("text", "prefix", chars(20)), field("text", "prefix", chars(21)), f + "prefix", "OPTION_VALUE"},
		{field("text", "default", chars(200)), field("text", "default", chars(201)), f + "default", "OPTION_VALUE"},
		{field("text", "maxChars", "1"), field("text", "maxChars", "0"), f + "maxChars", "OPTION_VALUE"},
		{field("text", "maxChars", "20000"), field("text", "maxChars", "20001"), f + "maxChars", "OPTION_VALUE"},
		{field("number", "decimals", "0"), field("number", "decimals", "-1"), f + "decimals", "OPTION_VALUE"},
		{field("number", "decimals", "12"), field("number", "decimals", "13"), f + "decimals", "OPTION_VALUE"},
		{field("integer", "scale", "1e-20"), field("integer", "scale", "1e-21"), f + "scale", "OPTION_VALUE"},
		{field("number", "scale", "-0.01"), field("number", "scale", "0.00"), f + "scale", "OPTION_VALUE"},
		{field("number", "scale", "9e19"), field("number", "scale", "1e20"), f + "scale", "OPTION_VALUE"},
		{field("number", "scale", "0."+strings.Repeat("1", 28)), field("number", "scale", "0."+strings.Repeat("1", 29)), f + "scale", "OPTION_VALUE"},
		{field("boolean", "true", chars(80)), field("boolean", "true", chars(81)), f + "true", "OPTION_VALUE"},
		{field("boolean", "false", chars(1)), field("boolean", "false", chars(0)), f + "false", "OPTION_VALUE"},
		{field("list", "join", chars(10)), field("list", "join", chars(11)), f + "join", "OPTION_VALUE"},
		{field("list", "join", chars(1)), field("list", "join", chars(0)), f + "join", "OPTION_VALUE"},
		{field("list", "maxItems", "1"), field("list", "maxItems", "0"), f + "maxItems", "OPTION_VALUE"},
		{field("list", "maxItems", "1000"), field("list", "maxItems", "1001"), f + "maxItems", "OPTION_VALUE"},
		{offset("maxPages", "1"), offset("maxPages", "0"), "response.pagination.maxPages", "RANGE"},
		{offset("maxPages", "25"), offset("maxPages", "26"), "response.pagination.maxPages", "RANGE"},
		{offset("pageSize", "1"), offset("pageSize", "0"), "response.pagination.pageSize", "RANGE"},
		{offset("pageSize", "1000"), offset("pageSize", "1001"), "response.pagination.pageSize", "RANGE"},
		{offset("start", "0"), offset("start", "-1"), "response.pagination.start", "RANGE"},
		{offset("start", "1000000000"), offset("start", "1000000001"), "response.pagination.start", "RANGE"},
		{offset("offsetParam", chars(80)), offset("offsetParam", chars(81)), "response.pagination.offsetParam", "PAGING_KEY"},
		{offset("offsetParam", chars(1)), offset("offsetParam", chars(0)), "response.pagination.offsetParam", "PAGING_KEY"},
	}
	for _, tt := range tests {
		const head = `{"schemaVersion":1,"mode":"table",`
		if r, report := parseDoc(t, []byte(head+tt.good+"}")); !report.OK() {
			t.Errorf("%s:\n%s", clip(tt.good), problemLines(report.Problems))
		} else {
			checkDocument(t, r)
		}
		_, report := parseDoc(t, []byte(head+tt.bad+"}"))
		if len(report.Problems) != 1 || report.Problems[0].Field != tt.field || report.Problems[0].Code != tt.code {
			t.Errorf("%s: want one problem %s %s, got:\n%s", tt.bad, tt.field, tt.code, problemLines(report.Problems))
		}
	}
}

// Every option with every format: admitted exactly where the format's page
// says so, whether or not the format is rendered yet.
func TestParseOptionsOfFormats(t *testing.T) {
	values := map[string]string{
		"prefix": `"x"`, "suffix": `"x"`, "default": `"x"`, "maxChars": `5`, "decimals": `2`,
		"scale": `0.01`, "group": `true`, "currency": `"USD"`, "unit": `"ms"`, "true": `"on"`, "false": `"off"`,
		"text": `"a"`, "join": `"; "`, "item": `"a"`, "each": `"number"`, "maxItems": `3`,
	}
	for option, of := range map[string]string{
		"prefix":   "auto text number integer currency percent bytes boolean date datetime link image code list html markdown",
		"suffix":   "auto text number integer currency percent bytes boolean date datetime link image code list html markdown",
		"default":  "auto text number integer currency percent bytes boolean date datetime link image code list json html markdown",
		"maxChars": "auto text number integer currency percent bytes boolean date datetime link image code list json html markdown",
		"decimals": "number currency percent",
		"scale":    "number currency percent integer",
		"group":    "number integer currency",
		"currency": "currency",
		"unit":     "date datetime",
		"true":     "boolean",
		"false":    "boolean",
		"text":     "link image",
		"join":     "list",
		"item":     "list",
		"each":     "list",
		"maxItems": "list",
	} {
		for _, k := range append([]Kind{"auto"}, kinds[:]...) {
			format := fmt.Sprintf(`"format":%q,`, k)
			if k == "auto" {
				format = ""
			}
			r, report := parseDoc(t, []byte(fmt.Sprintf(`{"schemaVersion":1,"mode":"document","fields":{"A":{"path":"a",%s%q:%s}}}`, format, option, values[option])))
			admitted := true
			for _, p := range report.Problems {
				switch p.Code {
				case "OPTION_NOT_FOR_FORMAT":
					admitted = false
					if p.Field != "response.fields.A."+option {
						t.Errorf("%s of %s: field is %s", option, k, p.Field)
					}
				default:
					t.Errorf("%s of %s: %v", option, k, p)
				}
			}
			if want := strings.Contains(" "+of+" ", " "+string(k)+" "); admitted != want {
				t.Errorf("option %s with format %s: admitted %v, want %v", option, k, admitted, want)
			}
			if r != nil {
				checkDocument(t, r)
			}
		}
	}
}

// Every key of pagination with every type.
func TestParsePagingKeysOfTypes(t *testing.T) {
	base := map[string]string{
		"none":   `"type":"none"`,
		"offset": `"type":"offset","offsetParam":"o","pageSize":5`,
		"cursor": `"type":"cursor","next":"n","cursorParam":"c"`,
		"link":   `"type":"link","nextUrl":"n"`,
	}
	values := map[string]string{
		"maxPages": `3`, "limitParam": `"l"`, "pageSize": `5`, "offsetParam": `"o"`, "start": `1`, "step": `"page"`,
		"total": `"header:X-Total"`, "hasMore": `"more"`, "next": `"n"`, "cursorParam": `"c"`, "in": `"body"`, "nextUrl": `"n"`, "rel": `"more"`,
	}
	for key, of := range map[string]string{
		"maxPages": "none offset cursor link", "limitParam": "none offset cursor link", "pageSize": "none offset cursor link",
		"offsetParam": "offset", "start": "offset", "step": "offset", "total": "none offset cursor link", "hasMore": "none offset cursor link",
		"next": "cursor", "cursorParam": "cursor", "in": "offset cursor", "nextUrl": "link", "rel": "link",
	} {
		for typ, members := range base {
			doc := members
			if !strings.Contains(members, `"`+key+`"`) {
				doc += fmt.Sprintf(",%q:%s", key, values[key])
			}
			if key == "limitParam" && !strings.Contains(doc, "pageSize") {
				doc += `,"pageSize":5`
			}
			_, report := parseDoc(t, []byte(`{"schemaVersion":1,"mode":"table","fields":{"A":"a"},"pagination":{`+doc+`}}`))
			admitted := report.OK()
			if !admitted && (len(report.Problems) != 1 || report.Problems[0].Code != "PAGING_KEY" || report.Problems[0].Field != "response.pagination."+key) {
				t.Errorf("%s: %s", doc, problemLines(report.Problems))
			}
			if want := strings.Contains(" "+of+" ", " "+typ+" "); admitted != want {
				t.Errorf("key %s of type %s: admitted %v, want %v", key, typ, admitted, want)
			}
		}
	}
}

func TestParseReportsAtMostFifty(t *testing.T) {
	doc := func(unknown, fields int) []byte {
		var b strings.Builder
		b.WriteString(`{"schemaVersion":1,"mode":"table","fields":{`)
		for i := range fields {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, `"F%d":{"path":"","x":1}`, i)
		}
		b.WriteString(`}`)
		for i := range unknown {
			fmt.Fprintf(&b, `,"u%d":1`, i)
		}
		return []byte(b.String() + "}")
	}
	for _, n := range []int{25, 26, 50} {
		_, report := parseDoc(t, doc(2*n, n)) // two problems a field
		if got, want := len(report.Problems), min(2*n, MaxProblems); got != want {
			t.Errorf("%d problems are reported as %d, want %d", 2*n, got, want)
		}
		if got, want := len(report.Warnings), min(2*n, MaxProblems); got != want {
			t.Errorf("%d warnings are reported as %d, want %d", 2*n, got, want)
		}
	}
}

// Any document at all gives a report, and a document that is accepted comes
// back equal through Document.
func TestParseOfRandomDocuments(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	accepted := 0
	for range 20_000 {
		r, report := ParseOptions{CredentialName: credentialName}.Parse(randomRecipe(rng))
		for _, p := range report.Problems {
			if !strings.HasPrefix(p.Field, "response") || p.Code == "" || p.Message == "" {
				t.Fatalf("a problem without place, code or message: %+v", p)
			}
		}
		if r != nil {
			accepted++
			checkDocument(t, r)
		}
	}
	if accepted < 100 {
		t.Errorf("only %d of the random documents were accepted, the test shows little", accepted)
	}
}

func pick(rng *rand.Rand, from ...Value) Value { return from[rng.IntN(len(from))] }

func randomRecipe(rng *rand.Rand) Value {
	maybe := func(o *Object, key string, share int, v Value) {
		if rng.IntN(share) == 0 {
			o.add(key, v)
		}
	}
	p := func() Value {
		return pick(rng, "a", "a.b", "$.a", "[0]", "['x y']", "tags[*]", "#index", "@", "l[?@.n=='x'].v", "@type")
	}
	num := func(s ...string) Value { return json.Number(s[rng.IntN(len(s))]) }
	field := func() Value {
		if rng.IntN(3) == 0 {
			return p()
		}
		o := Object{{"path", p()}}
		k := string(kinds[rng.IntN(len(kinds))])
		maybe(&o, "format", 2, k)
		for _, m := range (Object{
			{"prefix", "p "},
			{"suffix", " s"},
			{"default", "-"},
			{"maxChars", num("1", "20")},
			{"decimals", num("0", "2")},
			{"scale", num("100", "0.01", "1e-2")},
			{"group", true},
			{"currency", pick(rng, "USD", "@.currency", "$.c")},
			{"unit", pick(rng, "s", "ms")},
			{"true", "on"},
			{"false", "off"},
			{"text", p()},
			{"join", "; "},
			{"item", pick(rng, "a", "a.b", "@")},
			{"each", pick(rng, "number", "date")},
			{"maxItems", num("3")},
		}) {
			of := optionKinds(m.Key)
			if of == nil && k != "json" || len(o) > 1 && o[1].Key == "format" && contains(of, Kind(k)) {
				maybe(&o, m.Key, 2, m.Value)
			}
		}
		return o
	}
	o := Object{{"schemaVersion", number1}}
	maybe(&o, "select", 2, pick(rng, "$", "$.a", "$.items[*]", "$[1]"))
	mode := pick(rng, "table", "document", "documents").(string)
	o.add("mode", mode)
	maybe(&o, "title", 3, pick(rng, "Things", "{{name}}", "a {{field:F0}}"))
	if mode != "table" {
		maybe(&o, "template", 2, pick(rng, "{{a}} and {{b|number}}", "", "text"))
	}
	fields := Object{}
	for i := range 1 + rng.IntN(3) {
		fields.add(fmt.Sprint("F", i), field())
	}
	maybe(&o, "shape", 5, "list")
	o.add("fields", fields)
	maybe(&o, "record", 3, Object{{"id", p()}, {"the name", p()}})
	maybe(&o, "error", 4, pick(rng, "$.error", "$.errors[0].message"))
	maybe(&o, "limits", 3, Object{{"maxItems", num("1", "50", "1000")}})
	if mode != "document" {
		maybe(&o, "pagination", 3, pick(rng, Object{{"type", "none"}}, Object{},
			Object{{"type", "link"}, {"nextUrl", pick(rng, "next", "header:Link", "$.next")}, {"maxPages", num("1", "10", "25")}},
			Object{{"type", "offset"}, {"offsetParam", "o"}, {"pageSize", num("10")}, {"hasMore", "m"}, {"hasMoreWhen", pick(rng, true, false)}},
			Object{{"type", "cursor"}, {"next", "n"}, {"cursorParam", pick(rng, "c", "*")}, {"in", pick(rng, "query", "body", "header")}}))
	}
	maybe(&o, "index", 4, "cortex")
	maybe(&o, "extra", 9, nil)
	return o
}

func contains(ks []Kind, k Kind) bool {
	for _, x := range ks {
		if x == k {
			return true
		}
	}
	return false
}

func TestSuggest(t *testing.T) {
	tests := []struct{ word, want string }{
		{"feilds", `did you mean "fields"?`},
		{"Fields", `did you mean "fields"?`},
		{"field", `did you mean "fields"?`},
		{"pagintion", `did you mean "pagination"?`},
		{"colour", "known are " + strings.Join(topKeys[:], ", ")},
		{strings.Repeat("x", 10_000), "known are " + strings.Join(topKeys[:], ", ")},
	}
	for _, tt := range tests {
		if d := cmp.Diff(tt.want, suggest(tt.word, topKeys[:])); d != "" {
			t.Errorf("%s: %s", clip(tt.word), d)
		}
	}
}
