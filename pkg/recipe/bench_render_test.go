package recipe_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// Fifty rows of ten columns, the ordinary size of an answer.
func BenchmarkRenderTable(b *testing.B) {
	v, err := recipe.Decode([]byte(`{"schemaVersion":1,"select":"$.items","mode":"table","fields":{
		"Id":"id","Title":"title","Status":"status","Price":{"path":"price","format":"number","decimals":2},
		"Created":{"path":"created","format":"date"},"Updated":{"path":"updated","format":"datetime"},
		"Active":{"path":"active","format":"boolean"},"Url":{"path":"url","format":"link"},
		"Tags":{"path":"tags","format":"list"},"Owner":"owner.name"},"record":{"id":"id","title":"title"}}`), recipe.DecodeLimits{})
	if err != nil {
		b.Fatal(err)
	}
	r, report := recipe.Parse(v)
	if !report.OK() {
		b.Fatal(report.Problems)
	}
	var body strings.Builder
	for i := range 50 {
		fmt.Fprintf(&body, `,{"id":%d,"title":"Item number %d with_a_name","status":"open","price":%d.5,"created":"2026-01-31T10:15:00Z","updated":1765233417,"active":true,"url":"https://example.com/items/%d","tags":["a","b","c"],"owner":{"name":"cus_%d"}}`, i, i, i, i, i)
	}
	page, err := r.Read([]byte(`{"items":[`+body.String()[1:]+`]}`), 50, nil)
	if err != nil {
		b.Fatal(err)
	}
	pages := []*recipe.Page{page}
	b.ReportAllocs()
	for b.Loop() {
		if res := r.Render(pages, recipe.RenderOptions{Name: "Items"}); res.Meta.Shown != 50 {
			b.Fatal(res.Meta)
		}
	}
}
