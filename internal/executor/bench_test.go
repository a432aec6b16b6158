package executor_test

import (
	"context"
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/internal/executor"
	"github.com/hyperbolic-gateway/hb-rest/internal/wrapper"
)

// One call whose API answers at once: what the executor itself adds.
func BenchmarkRun(b *testing.B) {
	e, sent := answering(200, nil, `{"id":1}`)
	w, report := wrapper.Parse([]byte(doc("GET")))
	if !report.OK() {
		b.Fatal(report.Problems)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := e.Run(context.Background(), w, executor.Options{Call: "c"}); err != nil {
			b.Fatal(err)
		}
		*sent = (*sent)[:0]
	}
}
