package recipe

import (
	"bytes"
	"fmt"
	"runtime"
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

// scanFloor is what any reader of this kind must do: find $.items, read five
// members of the first most items and count the rest. It checks less than
// Read does: no depth, no byte order mark, no UTF-8 beforehand.
func scanFloor(b testing.TB, body []byte, most int) (rows [][5][]byte, n int) {
	d := jsontext.NewDecoder(bytes.NewBuffer(body), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	next := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	token := func() {
		_, err := d.ReadToken()
		next(err)
	}
	columns := [5]string{"id", "name", "price", "stock", "created_at"}
	token()
	for d.PeekKind() != '}' {
		name, err := d.ReadValue()
		next(err)
		if string(name) != `"items"` {
			next(d.SkipValue())
			continue
		}
		token()
		for ; d.PeekKind() != ']'; n++ {
			if n >= most {
				next(d.SkipValue())
				continue
			}
			var row [5][]byte
			token()
			for d.PeekKind() != '}' {
				k, err := d.ReadValue()
				next(err)
				col := -1
				for c, name := range columns {
					if string(k[1:len(k)-1]) == name {
						col = c
					}
				}
				if col < 0 {
					next(d.SkipValue())
					continue
				}
				v, err := d.ReadValue()
				next(err)
				row[col] = append(row[col], v...)
			}
			token()
			rows = append(rows, row)
		}
		token()
	}
	return rows, n
}

// BenchmarkRead takes 50 rows of five fields and the number of items out of
// 5 MB. floor is the least a reader must do; Read may take twice as long.
func BenchmarkRead(b *testing.B) {
	body := bigList()
	b.Run("floor", func(b *testing.B) {
		b.SetBytes(int64(len(body)))
		b.ReportAllocs()
		for b.Loop() {
			if rows, n := scanFloor(b, body, 50); n < 1000 || len(rows) != 50 {
				b.Fatal(n)
			}
		}
	})
	five := []string{"id", "name", "price", "stock", "created_at"}
	entries := list(b, "$", five...)
	entries.Shape, entries.Select = Entries, path(b, "$.items")
	for _, bm := range []struct {
		name   string
		recipe *Recipe
	}{
		{"rows", list(b, "$.items", five...)},
		{"totals", list(b, "$.items", append(five[:5:5], "$.total", "$.items[-1].id")...)},
		{"raw", list(b, "$.items", "@")},
		{"entries", entries},
	} {
		b.Run(bm.name, func(b *testing.B) { benchmarkRead(b, bm.recipe, body) })
	}
}

func benchmarkRead(b *testing.B, r *Recipe, body []byte) {
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		p, err := r.Read(body, 50, nil)
		if err != nil || p.Items() < 1000 || len(p.Built()) != 50 {
			b.Fatal(err, p.Items())
		}
	}
}

// bigColumns holds the same amount as parallel arrays, bigMatrix as rows with
// the names elsewhere.
func bigColumns() []byte {
	var b strings.Builder
	b.WriteString(`{"hourly_units":{"time":"iso8601"},"hourly":{`)
	for c, name := range []string{"time", "temperature", "humidity", "pressure", "wind"} {
		if c > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%q:[", name)
		for i := range 100_000 {
			if i > 0 {
				b.WriteByte(',')
			}
			if c == 0 {
				fmt.Fprintf(&b, `"2026-01-31T%02d:%02d"`, i/60%24, i%60)
			} else {
				fmt.Fprintf(&b, "%d.%d", i%1000, i%10)
			}
		}
		b.WriteByte(']')
	}
	b.WriteString("}}")
	return []byte(b.String())
}

func bigMatrix() []byte {
	var b strings.Builder
	b.WriteString(`{"data":[`)
	for i := 0; b.Len() < 5_000_000; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `["row-%d",%d,"A text of some length for row %d",%d.25,null,true,"2026-01-31T10:15:00Z"]`, i, i, i, i%100)
	}
	b.WriteString(`],"meta":{"columns":[`)
	for i := range 7 {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"name":"c%d","type":"text"}`, i)
	}
	b.WriteString("]}}")
	return []byte(b.String())
}

// BenchmarkReadWhole: recipes that need more than the list. tree is the floor,
// one ordered tree of the body; each may take half as long again.
func BenchmarkReadWhole(b *testing.B) {
	shaped := func(sel string, shape Shape, header string, fields ...string) *Recipe {
		return shapedRecipe(b, sel, shape, header, fields...)
	}
	for _, bm := range []struct {
		name    string
		body    []byte
		recipes map[string]*Recipe
	}{
		{"list", bigList(), map[string]*Recipe{
			"filter":  list(b, "$.items[?@.stock==5]", "id", "name"),
			"roots":   list(b, "$.items", "id", "$.items[*].name", "$.items[3:]", "$.total"),
			"body":    list(b, "$.items", "id", "$"),
			"reverse": list(b, "$.items[-50:]", "id", "name"),
		}},
		{"columns", bigColumns(), map[string]*Recipe{
			"columns": shaped("$.hourly", Columns, "", "time", "temperature", "wind"),
			"root":    shaped("$.hourly", Columns, "", "time", "$.hourly.wind[-1]"),
		}},
		{"matrix", bigMatrix(), map[string]*Recipe{
			"matrix": shaped("$.data", Matrix, "$.meta.columns[*].name", "c0", "c2"),
			"first":  shaped("$.data", Matrix, "first", "@"),
		}},
	} {
		b.Run(bm.name+"/tree", func(b *testing.B) {
			b.SetBytes(int64(len(bm.body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Decode(bm.body, DecodeLimits{}); err != nil {
					b.Fatal(err)
				}
			}
		})
		for name, r := range bm.recipes {
			b.Run(bm.name+"/"+name, func(b *testing.B) {
				b.SetBytes(int64(len(bm.body)))
				b.ReportAllocs()
				for b.Loop() {
					if p, err := r.Read(bm.body, 50, nil); err != nil || p.Items() == 0 {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// The rows that Read gives are those of the floor, and reading 50 of them
// costs less than 4 MB.
func TestReadIsCheap(t *testing.T) {
	body := bigList()
	r := list(t, "$.items", "id", "name", "price", "stock", "created_at")
	rows, n := scanFloor(t, body, 50)
	p, err := r.Read(body, 50, nil)
	if err != nil || p.Items() != n || len(p.Built()) != len(rows) {
		t.Fatalf("%d items, the floor finds %d (%v)", p.Items(), n, err)
	}
	for i, row := range rows {
		o := p.Built()[i].(Object)
		for j := range row {
			if got := string(Encode(o[j].Value)); got != string(row[j]) {
				t.Errorf("row %d: %s, the floor finds %s", i, got, row[j])
			}
		}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := r.Read(body, 50, nil); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 4<<20 {
		t.Errorf("%d bytes allocated, at most 4 MiB are allowed", got)
	}
}
