package recipe

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func edge(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "edge", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// What a person expects of each odd body: the items of $.items and the names
// in them, or the kind and place of the error.
func TestReadEdgeBodies(t *testing.T) {
	tests := []struct {
		file, sel string
		items     int
		names     []string // of the first items
		kind      string
		offset    int64
	}{
		{file: "bom", sel: "$.items", items: 2, names: []string{`"first field must be readable although the body starts with a BOM"`, `"second"`}},
		{file: "duplicate-keys", sel: "$.items", items: 1, names: []string{`"which items wins?"`}},
		{file: "lone-surrogate", sel: "$.items", items: 4, names: []string{"\"high \ufffd alone\"", "\"low \ufffd alone\"", "\"swapped \ufffd\ufffd\"", `"ok 😀"`}},
		{file: "heterogeneous", sel: "$", items: 7, names: []string{`"three"`, `{"en":"five","fr":"cinq"}`}},
		{file: "many-items", sel: "$.items", items: 137, names: []string{`"Item 001"`, `"Item 002"`, `"Item 003"`, `"Item 004"`, `"Item 005"`, `"Item 006"`, `"Item 007"`}},
		{file: "empty-list", sel: "$.items", items: 0},
		{file: "empty-object", sel: "$.items", items: 0},
		{file: "empty-object", sel: "$", items: 1},
		{file: "top-null", sel: "$", items: 0},
		{file: "top-string", sel: "$", items: 1},
		{file: "top-string", sel: "$.items", items: 0},
		{file: "truncated", sel: "$.items", kind: "syntax", offset: 42},
		{file: "nan", sel: "$.items", kind: "syntax", offset: 26},
		{file: "utf16", sel: "$.items", kind: "utf8", offset: 0},
		{file: "ndjson", sel: "$", kind: "trailing", offset: 46},
	}
	for _, tt := range tests {
		t.Run(tt.file+" "+tt.sel, func(t *testing.T) {
			p, err := list(t, tt.sel, "name").Read(edge(t, tt.file), 7, nil)
			if tt.kind != "" {
				var e *DecodeError
				if !errors.As(err, &e) || e.Kind != tt.kind || e.Offset != tt.offset {
					t.Fatalf("error %#v, want %s at %d", err, tt.kind, tt.offset)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, item := range p.Built() {
				if v, ok := path(t, "name").First(item); ok {
					names = append(names, string(Encode(v)))
				}
			}
			if p.Items() != tt.items || !cmp.Equal(names, tt.names) {
				t.Errorf("%d items, names %v\nwant %d, %v", p.Items(), names, tt.items, tt.names)
			}
		})
	}
}

// The tokens of a body, read by another decoder, are those of what Encode
// writes: every digit, string and member in its place.
func TestDecodeAndEncodeKeepEveryToken(t *testing.T) {
	files, err := filepath.Glob("testdata/edge/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	tokens := func(b []byte) (all []json.Token) {
		d := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(b, bom)))
		d.UseNumber()
		for {
			tok, err := d.Token()
			if errors.Is(err, io.EOF) {
				return all
			}
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, tok)
		}
	}
	bodies := [][]byte{
		[]byte(`{"id":9007199254740993,"price":30.00,"n":[1e400,-0,-0.0,1E+2,1e-08,12345678901234567890.123456789012345678901234567890,0.10]}`),
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Decode(b, DecodeLimits{}); err == nil { // the others are for the test above
			bodies = append(bodies, b)
		}
	}
	if len(bodies) != 10 {
		t.Errorf("%d bodies, want 10", len(bodies))
	}
	for _, b := range bodies {
		if d := cmp.Diff(tokens(b), tokens(Encode(decode(t, string(b))))); d != "" {
			t.Errorf("%s\n-source +encoded:\n%s", clip(string(b)), d)
		}
	}
}
