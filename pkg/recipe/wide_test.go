package recipe

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// repeated is open, n parts with commas between them, and end.
func repeated(open string, n int, part func(i int) string, end string) []byte {
	b := []byte(open)
	for i := range n {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, part(i)...)
	}
	return append(b, end...)
}

func always(s string) func(int) string { return func(int) string { return s } }

// Without a recipe only what can be shown is built, so that an answer at the
// limit of 5 MB costs what it shows; what is shown is the same. The body itself
// is not counted, of which there is one for each call anyway.
func TestWideBodies(t *testing.T) {
	fields := linesRecipe(t, `{"schemaVersion":1,"fields":{"A":"a","B":"b"}}`)
	for name, c := range map[string]struct {
		r    *Recipe
		body []byte
	}{
		"one key, no recipe":            {Plain(), repeated("{", 700_000, always(`"a":1`), "}")},
		"different keys, no recipe":     {Plain(), repeated("{", 400_000, func(i int) string { return fmt.Sprintf(`"%d":1`, i) }, "}")},
		"a long list inside, no recipe": {Plain(), repeated(`{"a":[`, 2_000_000, always("1"), "]}")},
		"empty lists inside, no recipe": {Plain(), repeated(`{"a":[`, 1_400_000, always("[]"), "]}")},
		"wide items, no recipe":         {Plain(), repeated("[", 100, always(string(repeated("{", 7_000, always(`"a":1`), "}"))), "]")},
		"one key, with a recipe":        {fields, repeated("{", 700_000, always(`"a":1`), "}")},
		"two keys, with a recipe":       {fields, repeated("[", 2, always(string(repeated("{", 170_000, always(`"a":1,"b":2`), "}"))), "]")},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		p, err := c.r.Read(c.body, c.r.Limits.MaxItems, nil)
		if err != nil {
			t.Fatal(err)
		}
		res := c.r.Render([]*Page{p}, RenderOptions{Name: "X"})
		runtime.ReadMemStats(&after)
		if got := (after.TotalAlloc - before.TotalAlloc) >> 20; got > 30 {
			t.Errorf("%s: %d MiB were allocated", name, got)
		}
		if res.Meta.Shown == 0 {
			t.Errorf("%s: %+v", name, res.Meta)
		}
	}
}

// Around every limit a body without a recipe looks as if all of it had been
// built.
func TestPlainBudget(t *testing.T) {
	r := Plain()
	const fences = 12 // characters around it
	const text, records = 16*(defaultMaxChars-fences) + 256, maxRecordBytes
	item := func(n int) string { return `{"k":"` + strings.Repeat("x", n) + `"}` }
	var bodies [][]byte
	for _, around := range []int{records, text} {
		for d := -24; d <= 4; d += 2 {
			n := around + d
			bodies = append(bodies,
				[]byte(item(n)),
				[]byte(`[`+item(n)+`,{"a":1}]`),
				[]byte(`{"a":[`+item(n)+`],"b":{"c":null,"d":true}}`),
				[]byte(`[[],`+item(n/2)+`,`+item(n-n/2)+`,{"z":[1]}]`),
				repeated("{", n/6, always(`"a":1`), "}"),
				repeated("[[", n/2, always("1"), "]]"),
				repeated("[{\"a\":[", n/3, always("{}"), "]},7]"),
				repeated("[", 60, always(item(n/60)), "]"),
				// Nothing of k is shown, and it counts all the same.
				[]byte(`{"j":"`+strings.Repeat("x", n%3)+`","k":"`+strings.Repeat("\u202e", n/3)+`","z":[1]}`),
				[]byte(`[{"k":"`+strings.Repeat("\u202e", n/3)+`"},`+item(n/3)+`,{"z":[1]},`+item(n)+`]`),
			)
		}
	}
	for _, body := range bodies {
		p, err := r.Read(body, r.Limits.MaxItems, nil)
		if err != nil {
			t.Fatal(err)
		}
		whole, err := r.readWhole(body, r.Limits.MaxItems, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, want := r.Render([]*Page{p}, RenderOptions{}), r.Render([]*Page{whole}, RenderOptions{})
		if got.Markdown != want.Markdown || !cmp.Equal(got.Meta, want.Meta) || !bytes.Equal(Encode(Array(got.Records)), Encode(Array(want.Records))) {
			t.Errorf("%.30s… of %d bytes: %+v, want %+v, the same text %v", body, len(body), got.Meta, want.Meta, got.Markdown == want.Markdown)
		}
	}
	// What is left out is checked like the rest.
	for _, bad := range []string{`}`, `"a":}`, `"a":[1,]}`, `"a":"\u12"}`, `"a"}`, `"a":[` + strings.Repeat("[", 200) + strings.Repeat("]", 201) + "}"} {
		body := append(repeated("{", text, always(`"a":1`), ","), bad...)
		_, err := r.Read(body, r.Limits.MaxItems, nil)
		_, want := Decode(body, DecodeLimits{})
		if want == nil || !cmp.Equal(err, want) {
			t.Errorf("%.20s: %v, want %v", bad, err, want)
		}
	}
}
