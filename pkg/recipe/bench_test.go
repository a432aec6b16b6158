package recipe

import (
	"fmt"
	"strings"
	"testing"
)

// bigList is an array of about 5 MB with items like those of a real service.
func bigList() []byte {
	var b strings.Builder
	b.WriteString(`{"total":3400,"items":[`)
	for i := 0; b.Len() < 5_000_000; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"id":%d,"name":"Item %d","price":%d.50,"stock":%d,"description":%q,"tags":["a","b","c"],"created_at":"2026-01-31T10:15:00Z"`,
			9007199254740993+i*2, i, i%1000, i%77, strings.Repeat("some words about it, ", 20))
		for k := range 40 {
			fmt.Fprintf(&b, `,"member_%d":{"k":%d,"v":"text"}`, k, k*i)
		}
		b.WriteByte('}')
	}
	b.WriteString(`]}`)
	return []byte(b.String())
}

func BenchmarkRead(b *testing.B) {
	body := bigList()
	for name, fields := range map[string][]string{
		"plain":  {"id", "name", "price", "stock", "created_at"},
		"totals": {"id", "name", "price", "stock", "created_at", "$.total", "$.items[-1].id"},
		"raw":    {"@"},
	} {
		b.Run(name, func(b *testing.B) {
			r := list(b, "$.items", fields...)
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				p, err := r.Read(body, 50, nil)
				if err != nil || p.Items() < 1000 || len(p.Built()) != 50 {
					b.Fatal(err, p.Items())
				}
			}
		})
	}
}
