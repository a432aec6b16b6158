package recipe_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// narrowed reads and renders a body with less of a recipe; recipe "" is Plain.
func narrowed(t *testing.T, doc, body string, names []string, maxItems int) *recipe.Result {
	t.Helper()
	r := recipe.Plain()
	if doc != "" {
		v, err := recipe.Decode([]byte(doc), recipe.DecodeLimits{})
		if err != nil {
			t.Fatal(err)
		}
		var report recipe.Report
		if r, report = recipe.Parse(v); !report.OK() {
			t.Fatal(report.Problems)
		}
	}
	n, unknown := r.Narrow(names, maxItems)
	if n == nil {
		t.Fatalf("unknown: %q", unknown)
	}
	page, err := n.Read([]byte(body), n.Limits.MaxItems, nil)
	if err != nil {
		t.Fatal(err)
	}
	return n.Render([]*recipe.Page{page}, recipe.RenderOptions{Name: "W"})
}

const (
	shop = `{"schemaVersion":1,"select":"$.products[*]","mode":"table","title":"Of {{$.seller}}",
		"fields":{"Name":"title","Price":{"path":"price","format":"number","suffix":" EUR"},"Seller":"$.seller"},
		"record":{"id":"id","title":"title","price":"price"},"limits":{"maxItems":3}}`
	products = `{"seller":"S","products":[{"id":9007199254740993,"title":"A","price":1.50},{"id":2,"title":"B","price":20},{"id":3,"title":"C","price":3},{"id":4,"title":"D","price":4}]}`
)

// TestNarrow: what a reader who names fields is shown, and that a name means
// the same whichever of its two spellings is used.
func TestNarrow(t *testing.T) {
	const issue = `{"title":"T1","body":"long","user":{"login":"ann"},"n":9007199254740993}`
	listOf := func(mode, template string) string {
		return `{"schemaVersion":1,"select":"$","mode":"` + mode + `","title":"{{field:Name}}!",` + template + `"fields":{"Name":"title","By":"user.login","No":{"path":"n","format":"integer"}}}`
	}
	tests := []struct {
		name, recipe, body string
		fields             []string
		markdown, records  string
	}{
		{
			"labels, in the order named", shop, products,
			[]string{"Price", "Name"},
			"## Of S\n\n| Price | Name |\n| --- | --- |\n| 1.50 EUR | A |\n| 20 EUR | B |\n| 3 EUR | C |",
			`[{"price":1.50,"title":"A"},{"price":20,"title":"B"},{"price":3,"title":"C"}]`,
		},
		{
			"a key brings its column, with label and format", shop, products,
			[]string{"price"},
			"## Of S\n\n| Price |\n| --- |\n| 1.50 EUR |\n| 20 EUR |\n| 3 EUR |",
			`[{"price":1.50},{"price":20},{"price":3}]`,
		},
		{
			"a key without a column becomes one", shop, products,
			[]string{"id"},
			"## Of S\n\n| id |\n| --- |\n| 9007199254740993 |\n| 2 |\n| 3 |",
			`[{"id":9007199254740993},{"id":2},{"id":3}]`,
		},
		{
			"a label without a key becomes one", shop, products,
			[]string{"Seller"},
			"## Of S\n\n| Seller |\n| --- |\n| S |\n| S |\n| S |",
			`[{"Seller":"S"},{"Seller":"S"},{"Seller":"S"}]`,
		},
		{
			"other letter case, and twice", shop, products,
			[]string{"TITLE", "Name", "title"},
			"## Of S\n\n| Name |\n| --- |\n| A |\n| B |\n| C |",
			`[{"title":"A"},{"title":"B"},{"title":"C"}]`,
		},
		{
			"a label and a key of one name", `{"schemaVersion":1,"select":"$[*]","mode":"table","fields":{"id":"a"},"record":{"id":"b"}}`, `[{"a":1,"b":2}]`,
			[]string{"id"},
			"## W\n\n| id |\n| --- |\n| 1 |", `[{"id":2}]`,
		},
		{
			"the exact name wins", `{"schemaVersion":1,"select":"$[*]","mode":"table","fields":{"ID":"a","id":"b"}}`, `[{"a":1,"b":2}]`,
			[]string{"id"},
			"## W\n\n| id |\n| --- |\n| 2 |", `[{"id":2}]`,
		},
		{"document", listOf("document", ""), issue, []string{"By"}, "## T1!\n\n- **By:** ann", `[{"By":"ann"}]`},
		{"a template gives way, a title stays", listOf("document", `"template":"by {{user.login}}",`), issue, []string{"No"}, "## T1!\n\n- **No:** 9007199254740993", `[{"No":9007199254740993}]`},
		{
			"documents", listOf("documents", `"template":"{{body}}",`), `[` + issue + `]`,
			[]string{"By"},
			"## W\n\n### T1!\n\n- **By:** ann", `[{"By":"ann"}]`,
		},
		{
			"nothing named takes paths", `{"schemaVersion":1,"mode":"documents","select":"$","title":"{{title}}","template":"{{body}}"}`, `[` + issue + `]`,
			[]string{"user.login", "n"},
			"## W\n\n### T1\n\n- **user.login:** ann\n- **n:** 9007199254740993", `[{"user.login":"ann","n":9007199254740993}]`,
		},
		{
			"no recipe, a list", "", `[` + issue + `,{"title":"T2"}]`,
			[]string{"title", "user.login"},
			"## W\n\n| title | user.login |\n| --- | --- |\n| T1 | ann |\n| T2 | |", `[{"title":"T1","user.login":"ann"},{"title":"T2","user.login":null}]`,
		},
		{"no recipe, one object", "", issue, []string{"n"}, "## W\n\n| n |\n| --- |\n| 9007199254740993 |", `[{"n":9007199254740993}]`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			res := narrowed(t, tt.recipe, tt.body, tt.fields, 0)
			if d := cmp.Diff(tt.markdown, res.Markdown); d != "" {
				t.Errorf("markdown (-want +got)\n%s", d)
			}
			records := make(recipe.Array, len(res.Records))
			copy(records, res.Records)
			if d := cmp.Diff(tt.records, string(recipe.Encode(records))); d != "" {
				t.Errorf("records (-want +got)\n%s", d)
			}
		})
	}
}

// TestNarrowItems: at the recipe's limit, below and above it.
func TestNarrowItems(t *testing.T) {
	for _, tt := range []struct {
		ask, rendered int
	}{{0, 3}, {1, 1}, {2, 2}, {3, 3}, {4, 3}, {1000, 3}} {
		res := narrowed(t, shop, products, nil, tt.ask)
		want := recipe.Meta{Mode: recipe.Table, Selected: 4, Rendered: tt.rendered, Shown: tt.rendered, Truncated: true, Reason: "items"}
		if d := cmp.Diff(want, res.Meta); d != "" {
			t.Errorf("max_items %d (-want +got)\n%s", tt.ask, d)
		}
		if got := strings.Count(res.Markdown, "\n| ") - 2; got != tt.rendered { // less the head and its rule
			t.Errorf("max_items %d: %d rows\n%s", tt.ask, got, res.Markdown)
		}
	}
	if res := narrowed(t, "", "[1,2,3]", nil, 2); res.Markdown != "## W\n\n```json\n[1,2]\n```" {
		t.Errorf("no recipe: %q", res.Markdown)
	}
}

// TestNarrowUnknown: every name that is not there is told, and which are.
func TestNarrowUnknown(t *testing.T) {
	v, err := recipe.Decode([]byte(shop), recipe.DecodeLimits{})
	if err != nil {
		t.Fatal(err)
	}
	r, _ := recipe.Parse(v)
	if d := cmp.Diff([]string{"Name", "Price", "Seller", "id", "title", "price"}, r.Names()); d != "" {
		t.Error(d)
	}
	n, unknown := r.Narrow([]string{"Name", "colour", "", "seller.name"}, 1)
	if d := cmp.Diff([]string{"colour", "", "seller.name"}, unknown); d != "" || n != nil {
		t.Errorf("%s %v", d, n)
	}
	if names := recipe.Plain().Names(); names != nil {
		t.Errorf("of no recipe: %q", names)
	}
	if _, unknown := recipe.Plain().Narrow([]string{"a[", "b"}, 0); len(unknown) != 1 || unknown[0] != "a[" {
		t.Errorf("of no recipe: %q", unknown)
	}
	if r.Limits.MaxItems != 3 || len(r.Fields) != 3 || len(r.Record) != 3 {
		t.Error("the recipe itself has changed")
	}
}
