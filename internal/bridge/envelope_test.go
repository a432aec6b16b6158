package bridge

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
)

// standard is v as encoding/json writes it, which encodeRun must match.
func standard(t testing.TB, v any) string {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Results with every member there and not there, and with texts of all kinds,
// are written as encoding/json does.
func TestRunIsEncodedAsStandard(t *testing.T) {
	texts := []string{"", "plain", "a\nb\tc\r\b\f", "\x00\x1f\x7f", `"q" \ /`, "<b>&amp;</b>", "ü 漢 🙂", "\u2028\u2029", "\xff\xc3", "a\xe2\x80", "\ufffd", strings.Repeat("x\n", 500)}
	r := rand.New(rand.NewPCG(1, 2))
	text := func() string { return texts[r.IntN(len(texts))] }
	some := func(f func()) {
		if r.IntN(2) == 0 {
			f()
		}
	}
	list := func() []string {
		if r.IntN(2) == 0 {
			return []string{}
		}
		return []string{text(), text()}
	}
	n, total := 7, int64(1)<<62
	for range 3000 {
		v := &api.RunResult{DurationMs: r.Int64() - r.Int64(), Wrapper: api.WrapperRef{ID: text(), Name: text()}}
		v.Meta = api.Meta{Mode: text(), Selected: r.IntN(1e6), Rendered: r.IntN(100)}
		some(func() { v.OK = true })
		some(func() { v.Status = &n })
		some(func() { s := text(); v.Markdown = &s })
		some(func() { v.Records = json.RawMessage(`[{"a":1.50,"b":"<\u2028>"}]`) })
		some(func() { v.Meta.Truncated, v.Meta.Reason, v.Meta.Shown = true, text(), &n })
		some(func() { v.Meta.EmptyFields, v.Meta.Warnings = list(), list() })
		some(func() {
			v.Paging = &api.Paging{Pages: 2, Total: &total, Stopped: text(), Error: &api.Short{Code: "C", Message: text()}}
		})
		some(func() { v.Indexed = &api.Indexed{Documents: 3, Skipped: text()} })
		some(func() {
			v.Request = &api.Request{Method: text(), URL: text(), FinalURL: text(), BodyType: text()}
			some(func() { v.Request.Headers = json.RawMessage(`{"Accept":"application/json"}`) })
			some(func() { v.Request.Body = json.RawMessage("{ \"a\" : [1, 2] }") })
		})
		some(func() { v.Warnings = []api.Warning{{Field: text(), Code: "W", Message: text()}} })
		got, err := encode(v)
		if err != nil {
			t.Fatal(err)
		}
		if want := standard(t, v); string(got) != want {
			t.Fatalf("got  %s\nwant %s", got, want)
		}
	}
	// What cannot be encoded is an error, as it is there.
	if _, err := encode(&api.RunResult{Request: &api.Request{Body: json.RawMessage("{")}}); err == nil {
		t.Error("a body that is no JSON was encoded")
	}
}

func FuzzQuoted(f *testing.F) {
	for _, s := range []string{"", "a\"b", "\u2028", "\xff", "\x00", "<&>"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if got, want := string(appendQuoted(nil, s))+"\n", standard(t, s); got != want {
			t.Errorf("%q: got %s, want %s", s, got, want)
		}
	})
}

func BenchmarkEncodeRun(b *testing.B) {
	n, md := 200, strings.Repeat("- **Label:** some value\n", 20)
	v := &api.RunResult{
		OK: true, Status: &n, Markdown: &md, Records: json.RawMessage(`[{"Label":"some value"}]`), Meta: api.Meta{Mode: "document", Selected: 1, Rendered: 1},
		Request: &api.Request{Method: "GET", URL: "https://api.example.com/", Headers: json.RawMessage(`{"Accept":"application/json"}`)},
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := encode(v); err != nil {
			b.Fatal(err)
		}
	}
}
