package recipe_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// benchmarkRender renders rows items, which all look alike, under a recipe
// that is handed in.
func benchmarkRender(b *testing.B, doc string, rows int) {
	v, err := recipe.Decode([]byte(doc), recipe.DecodeLimits{})
	if err != nil {
		b.Fatal(err)
	}
	r, report := recipe.Parse(v)
	if !report.OK() {
		b.Fatal(report.Problems)
	}
	page, err := r.Read([]byte(benchBody(rows)), rows, nil)
	if err != nil {
		b.Fatal(err)
	}
	pages := []*recipe.Page{page}
	b.ReportAllocs()
	for b.Loop() {
		if res := r.Render(pages, recipe.RenderOptions{Name: "Items"}); res.Meta.Shown != rows {
			b.Fatal(res.Meta)
		}
	}
}

// benchBody has rows items that look alike.
func benchBody(rows int) string {
	var body strings.Builder
	for i := range rows {
		fmt.Fprintf(&body, `,{"id":%d,"title":"Item number %d with_a_name","status":"open","price":%d.5,"created":"2026-01-31T10:15:00Z","updated":1765233417,"active":true,"url":"https://example.com/items/%d","tags":["a","b","c"],"owner":{"name":"cus_%d"},"html":"<p>Some <b>text</b> &amp; more</p>","text":"# Title\n\nSome *text*\n\n- a\n- b"}`, i, i, i, i, i)
	}
	return `{"items":[` + body.String()[1:] + `]}`
}

// The floor of rendering: the same values written between pipes by encoding/json
// and append, with nothing escaped, formatted, counted or cut.
func BenchmarkRenderFloor(b *testing.B) {
	var doc struct{ Items []map[string]any }
	d := json.NewDecoder(strings.NewReader(benchBody(50)))
	d.UseNumber()
	if err := d.Decode(&doc); err != nil {
		b.Fatal(err)
	}
	names := []string{"id", "title", "status", "price", "created", "updated", "active", "url", "tags", "owner"}
	b.ReportAllocs()
	for b.Loop() {
		var out []byte
		for _, item := range doc.Items {
			for _, name := range names {
				out = append(out, "| "...)
				switch v := item[name].(type) {
				case string:
					out = append(out, v...)
				case json.Number:
					out = append(out, v...)
				default:
					text, err := json.Marshal(v)
					if err != nil {
						b.Fatal(err)
					}
					out = append(out, text...)
				}
				out = append(out, ' ')
			}
			out = append(out, "|\n"...)
		}
		if len(out) < 1000 {
			b.Fatal(len(out))
		}
	}
}

// Ten columns of all ordinary formats.
const tenColumns = `{"schemaVersion":1,"select":"$.items","mode":"table","fields":{
	"Id":"id","Title":"title","Status":"status","Price":{"path":"price","format":"number","decimals":2},
	"Created":{"path":"created","format":"date"},"Updated":{"path":"updated","format":"datetime"},
	"Active":{"path":"active","format":"boolean"},"Url":{"path":"url","format":"link"},
	"Tags":{"path":"tags","format":"list"},"Owner":"owner.name"},"record":{"id":"id","title":"title"},"limits":{"maxItems":1000,"maxChars":200000}}`

// The size of an ordinary answer, and of a full one.
func BenchmarkRenderTable(b *testing.B) {
	for _, rows := range []int{10, 50} {
		b.Run(fmt.Sprintf("%dx10", rows), func(b *testing.B) { benchmarkRender(b, tenColumns, rows) })
	}
}

// Ten rows of five columns of text, what a list in a conversation has.
func BenchmarkRenderTexts(b *testing.B) {
	benchmarkRender(b, `{"schemaVersion":1,"select":"$.items","fields":{"Id":"id","Title":"title","Status":"status","Price":"price","Owner":"owner.name"}}`, 10)
}

// Ten documents with HTML and Markdown in them.
func BenchmarkRenderDocuments(b *testing.B) {
	benchmarkRender(b, `{"schemaVersion":1,"select":"$.items","mode":"documents","title":"{{title}}","fields":{
		"Page":{"path":"html","format":"html"},"Text":{"path":"text","format":"markdown"},"Price":{"path":"price","format":"currency","currency":"EUR"}}}`, 10)
}
