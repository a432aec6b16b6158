package bridge

import (
	"bytes"
	"encoding/json"
	"testing"
	"unicode/utf8"
)

// FuzzBody: what is accepted is one JSON object in valid UTF-8 whose members
// are all known, each once, with the bytes that came; what encoding/json
// refuses is refused. Nothing panics.
func FuzzBody(f *testing.F) {
	for _, s := range []string{
		`{"id":"a","args":{"n":9007199254740993}}`, `{"id":"a","id":"b"}`, `{"id":1,}`, `{}`, `[]`, ``, `{"id":"\ud800"}`, `{"format":"both","max_pages":2.0,"maxPages":2}`,
		"\xef\xbb\xbf{}", `{"dryRun":true} x`, `{"args":{"a":1,"a":2}}`, `{"id":null,"sample":null}`, "{\"id\":\"\xff\"}", `{"x":1}`,
	} {
		f.Add([]byte(s))
	}
	known := []string{"id", "args", "format", "max_pages", "maxPages", "dryRun", "sample"}
	f.Fuzz(func(t *testing.T, data []byte) {
		b, err := parseBody(data, known...)
		if err != nil {
			return
		}
		if !json.Valid(data) || !utf8.Valid(data) || bytes.TrimLeft(data, " \t\r\n")[0] != '{' {
			t.Fatalf("accepted %q", data)
		}
		got := map[string]string{}
		d := json.NewDecoder(bytes.NewReader(data))
		if _, err := d.Token(); err != nil {
			t.Fatal(err)
		}
		for d.More() {
			name, err := d.Token()
			if err != nil {
				t.Fatal(err)
			}
			var v json.RawMessage
			if err := d.Decode(&v); err != nil {
				t.Fatal(err)
			}
			if _, twice := got[name.(string)]; twice {
				t.Fatalf("accepted a member twice: %q", data)
			}
			got[name.(string)] = string(v)
		}
		if len(got) != len(b.members) {
			t.Fatalf("%q: read %d members of %d", data, len(b.members), len(got))
		}
		for name, v := range got {
			if string(b.members[name]) != v {
				t.Fatalf("%q: member %q is %q, want %q", data, name, b.members[name], v)
			}
		}
		// The readers take any value without a panic.
		b.text("id")
		b.object("args")
		b.flag("dryRun")
		b.format()
		b.whole("max_pages", "maxPages", 25, "MAX_PAGES_INVALID")
	})
}
