package wrapper_test

import (
	"os"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/hyperbolic-gateway/hb-rest/internal/wrapper"
)

func seedOrder(b *testing.B) (doc, args []byte) {
	b.Helper()
	data, err := os.ReadFile("testdata/golden/seed_order_create.txtar")
	if err != nil {
		b.Fatal(err)
	}
	files := txtar.Parse(data).Files
	return files[0].Data, files[1].Data
}

func BenchmarkBuild(b *testing.B) {
	doc, args := seedOrder(b)
	w := parse(b, string(doc))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := w.Build(args); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkParse is the cost of a save, and of each wrapper at start.
func BenchmarkParse(b *testing.B) {
	doc, _ := seedOrder(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, report := wrapper.Parse(doc); !report.OK() {
			b.Fatal(report.Problems)
		}
	}
}
