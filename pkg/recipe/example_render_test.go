package recipe_test

import (
	"fmt"

	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// read parses a recipe and reads an answer with it.
func read(doc, body string) (*recipe.Recipe, *recipe.Page, error) {
	v, err := recipe.Decode([]byte(doc), recipe.DecodeLimits{})
	if err != nil {
		return nil, nil, err
	}
	r, report := recipe.Parse(v)
	if !report.OK() {
		return nil, nil, fmt.Errorf("%s: %s", report.Problems[0].Field, report.Problems[0].Message)
	}
	page, err := r.Read([]byte(body), r.Limits.MaxItems, nil)
	return r, page, err
}

// From a recipe and an answer come Markdown to read and records to use.
func ExampleRecipe_Render() {
	r, page, err := read(`{
		"schemaVersion": 1,
		"select": "$.products",
		"fields": {
			"Name": "title",
			"Price": {"path": "price", "format": "currency", "currency": "@.currency", "decimals": 2}
		},
		"record": {"id": "id", "price": "price"},
		"limits": {"maxItems": 2}
	}`, `{"products": [
		{"id": 9007199254740993, "title": "Phone", "price": 499, "currency": "usd"},
		{"id": 2, "title": "Case | black", "price": 30.005, "currency": "EUR"},
		{"id": 3, "title": "Cable"}
	]}`)
	if err != nil {
		fmt.Println(err)
		return
	}
	res := r.Render([]*recipe.Page{page}, recipe.RenderOptions{Name: "Product search"})
	fmt.Println(res.Markdown)
	fmt.Println()
	fmt.Println(string(recipe.Encode(recipe.Array(res.Records))))
	fmt.Printf("%d of %d items, cut by %s\n", res.Meta.Shown, res.Meta.Selected, res.Meta.Reason)
	// Output:
	// ## Product search
	//
	// | Name | Price |
	// | --- | --- |
	// | Phone | 499.00 USD |
	// | Case \| black | 30.01 EUR |
	//
	// [{"id":9007199254740993,"price":499},{"id":2,"price":30.005}]
	// 2 of 3 items, cut by items
}

// A map of an API becomes a table with its names.
func ExampleRecipe_Render_entries() {
	r, page, err := read(`{
		"schemaVersion": 1,
		"shape": "entries",
		"fields": {"Code": "#key", "Name": "name", "Languages": "languages"}
	}`, `{"NO": {"name": "Norway", "languages": ["no", "nb", "nn"]}, "IS": {"name": "Iceland", "languages": ["is"]}}`)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.Render([]*recipe.Page{page}, recipe.RenderOptions{}).Markdown)
	// Output:
	// | Code | Name | Languages |
	// | --- | --- | --- |
	// | NO | Norway | no, nb, nn |
	// | IS | Iceland | is |
}

// What a server writes stays inside its value: its headings go down, its tags
// are text, its images are links, and its open code block is closed.
func ExampleRecipe_Render_documents() {
	r, page, err := read(`{
		"schemaVersion": 1,
		"select": "$.issues",
		"mode": "documents",
		"title": "#{{number}} {{title}}",
		"template": "{{body|markdown}}\n\n*{{user.login}}*"
	}`, "{\"issues\": [{\"number\": 1, \"title\": \"Crash on *start*\", \"user\": {\"login\": \"mona_l\"},"+
		"\"body\": \"# Log\\n![shot](https://example.com/s.png) <b>now</b>\\n```\\npanic: <nil>\"}]}")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, d := range r.Render([]*recipe.Page{page}, recipe.RenderOptions{}).Documents {
		fmt.Println(d.Title)
		fmt.Println()
		fmt.Println(d.Markdown)
	}
	// Output:
	// #1 Crash on *start*
	//
	// #### Log
	// [shot](https://example.com/s.png) \<b>now\</b>
	// ```
	// panic: <nil>
	// ```
	//
	// *mona_l*
}

// A template can be used by itself.
func ExampleTemplate_Render() {
	t, err := recipe.ParseTemplate("**{{name}}** since {{since|date}}: [page](https://example.com/{{id}})")
	if err != nil {
		fmt.Println(err)
		return
	}
	item, err := recipe.Decode([]byte(`{"name": "A (new) <thing>", "since": 1765233417, "id": "a b"}`), recipe.DecodeLimits{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(t.Render(item, nil))

	_, err = recipe.ParseTemplate("{{name|money}}")
	fmt.Println(err)
	// Output:
	// **A (new) \<thing\>** since 2025-12-08: [page](https://example.com/a%20b)
	// character 8: unknown format "money"
}
