package recipe

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// bigList is a list of about 5 MB of products of 1.5 KB each, the most that
// one answer may have.
func bigList() []byte {
	var b strings.Builder
	b.WriteString(`{"total":3400,"items":[`)
	for i := 0; b.Len() < 5_000_000; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"id":%d,"name":"Item %d","description":%q,"price":%d.50,"stock":%d,"rating":4.%d,"tags":["a","b","c"],"created_at":"2026-01-31T10:15:00Z"`,
			9007199254740993+int64(i)*2, i, strings.Repeat("It is light and it lasts. ", 8), i%1000, i%77, i%10)
		b.WriteString(`,"dimensions":{"width":12.5,"height":30.00,"depth":1.25},"reviews":[`)
		for k := range 3 {
			if k > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, `{"rating":%d,"comment":%q,"date":"2026-01-31T10:15:00Z","reviewer":{"name":"Reviewer %d","id":%d}}`,
				k, strings.Repeat("Arrived on time, would buy again. ", 6), k, i)
		}
		fmt.Fprintf(&b, `],"images":["https://cdn.example.com/products/%d/1.webp","https://cdn.example.com/products/%d/2.webp"]}`, i, i)
	}
	b.WriteString(`]}`)
	return []byte(b.String())
}

// The floor: what the scanner takes for every token, with nothing done.
func BenchmarkReadFloor(b *testing.B) {
	body := bigList()
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		d := jsontext.NewDecoder(bytes.NewBuffer(body), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
		for {
			if _, err := d.ReadToken(); err == io.EOF {
				break
			} else if err != nil {
				b.Fatal(err)
			}
		}
	}
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
