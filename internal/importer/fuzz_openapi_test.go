package importer_test

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/hyperbolic-gateway/hb-rest/internal/importer"
	"github.com/hyperbolic-gateway/hb-rest/internal/wrapper"
)

// FuzzOpenAPI holds that no text makes the importer panic or run away, that
// each draft is a wrapper, and that the same text gives the same result.
func FuzzOpenAPI(f *testing.F) {
	files, _ := filepath.Glob("testdata/requests/*.txtar")
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(txtar.Parse(data).Files[0].Data)
	}
	for _, s := range []string{
		`{"openapi":"3.1.0","servers":[{"url":"https://a.b"}],"paths":{"/x":{"get":{"parameters":[{"name":"a","in":"query","schema":{"$ref":"#/components/schemas/A"}}]}}},"components":{"schemas":{"A":{"allOf":[{"$ref":"#/components/schemas/A"}]}}}}`,
		`{"openapi":"3.0.0","servers":[{"url":"https://a.b"}],"paths":{"/x":{"$ref":"#/paths/~1x"}}}`,
		"openapi: 3.0.0\nservers: [{url: https://a.b}]\nx: &x {a: 1, <<: {b: 2}}\npaths: {/x: {get: {responses: {200: {description: *x}}}}}\n",
		"swagger: '2.0'\nhost: a.b\npaths:\n  /{a}/{b}:\n    post: {parameters: [{in: body, schema: true}]}\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 64<<10 {
			return
		}
		r, err := importer.OpenAPI(data, importer.Options{BaseURL: "https://api.example.com"})
		if err != nil {
			return
		}
		for _, d := range r.Drafts {
			w, report := wrapper.Parse(d.Document)
			if w == nil {
				t.Fatalf("%s: %v", d.Operation, report.Problems)
			}
			if w.ID != d.ID {
				t.Fatalf("id %q of the draft is %q in its document", d.ID, w.ID)
			}
		}
		again, err := importer.OpenAPI(data, importer.Options{BaseURL: "https://api.example.com"})
		if err != nil || len(again.Drafts) != len(r.Drafts) || len(again.Refused) != len(r.Refused) {
			t.Fatal("another result the second time")
		}
		for i := range r.Drafts {
			if string(r.Drafts[i].Document) != string(again.Drafts[i].Document) {
				t.Fatalf("%s differs the second time", r.Drafts[i].Operation)
			}
		}
	})
}
