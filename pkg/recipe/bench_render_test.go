package recipe_test

import (
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
	var body strings.Builder
	for i := range rows {
		fmt.Fprintf(&body, `,{"id":%d,"title":"Item number %d with_a_name","status":"open","price":%d.5,"created":"2026-01-31T10:15:00Z","updated":1765233417,"active":true,"url":"https://example.com/items/%d","tags":["a","b","c"],"owner":{"name":"cus_%d"},"html":"<p>Some <b>text</b> &amp; more</p>","text":"# Title\n\nSome *text*\n\n- a\n- b"}`, i, i, i, i, i)
	}
	page, err := r.Read([]byte(`{"items":[`+body.String()[1:]+`]}`), rows, nil)
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
