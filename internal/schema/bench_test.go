package schema_test

import (
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/internal/schema"
)

func BenchmarkValidate(b *testing.B) {
	s := parse(b, `{"type":"object","properties":{"customer_id":{"type":"string"},"items":{"type":"array","items":{"type":"object","properties":{"sku":{"type":"string"},"qty":{"type":"integer","minimum":1}},"required":["sku","qty"]}},"note":{"type":"string"}},"required":["customer_id","items"],"additionalProperties":false}`)
	raw := []byte(`{"customer_id":"cus_123","items":[{"sku":"A-1","qty":2}],"note":"gift"}`)
	b.ReportAllocs()
	for b.Loop() {
		args, err := schema.DecodeArgs(raw)
		if err != nil {
			b.Fatal(err)
		}
		if _, _, problems := s.Validate(args); len(problems) > 0 {
			b.Fatal(problems)
		}
	}
}

// BenchmarkGate measures admitting and compiling a schema, once per save and
// per wrapper at start.
func BenchmarkGate(b *testing.B) {
	doc := decode(b, `{"type":"object","properties":{"query":{"type":"string","minLength":1},"limit":{"type":"integer","minimum":1,"maximum":50,"default":10}},"required":["query"],"additionalProperties":false}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, report := schema.Parse(doc, "s"); !report.OK() {
			b.Fatal(report.Problems)
		}
	}
}
