package schema_test

import (
	"bytes"
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/internal/schema"
	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// FuzzSchema holds, for any schema and any arguments: no panic; a schema has
// problems or is there; its document is admitted again, without warnings, as
// the same document; filled arguments of a valid call are valid and stay as
// they are.
func FuzzSchema(f *testing.F) {
	for _, s := range []string{
		`{"type":"object","properties":{"a":{"type":["string","null"],"enum":["x",null],"default":"x"},"n":{"type":"number","minimum":1}},"required":["n"],"additionalProperties":false}`,
		`{"type":"object","properties":{"o":{"type":"object","properties":{"d":{"default":1}},"default":{}},"l":{"type":"array","items":{"pattern":"^a","type":"string"}}}}`,
		`{"$ref":"#"}`, `{"type":"object","properties":{"$ref":{},"$id":{"type":"string"}},"$schema":"x"}`, `[]`,
	} {
		for _, a := range []string{`{"n":1}`, `{"o":{},"l":["ab"]}`, `{"n":4E9999999}`, `{"a":null,"n":1.0e2}`, `{"a":1,"a":2}`, `null`} {
			f.Add([]byte(s), []byte(a))
		}
	}
	f.Fuzz(func(t *testing.T, text, args []byte) {
		doc, err := recipe.Decode(text, recipe.DecodeLimits{})
		if err != nil {
			return
		}
		s, report := schema.Parse(doc, "s")
		if (s == nil) == report.OK() {
			t.Fatalf("schema %v, problems %v", s, report.Problems)
		}
		if s == nil {
			return
		}
		again, report := schema.Parse(s.Document(), "s")
		if !report.OK() || len(report.Warnings) > 0 || !bytes.Equal(recipe.Encode(again.Document()), recipe.Encode(s.Document())) {
			t.Fatalf("document %s: %+v", recipe.Encode(s.Document()), report)
		}
		a, err := schema.DecodeArgs(args)
		if err != nil {
			return
		}
		filled, _, problems := s.Validate(a)
		if len(problems) > 0 {
			for _, p := range problems {
				if p.Field == "args" && p.Message == "the arguments do not fit the input schema" {
					t.Fatalf("the walk and the library differ: %s with %s", text, args)
				}
			}
			return
		}
		refilled, _, problems := s.Validate(filled)
		if len(problems) > 0 || !bytes.Equal(recipe.Encode(refilled), recipe.Encode(filled)) {
			t.Fatalf("%s becomes %s, which becomes %s", recipe.Encode(a), recipe.Encode(filled), recipe.Encode(refilled))
		}
	})
}
