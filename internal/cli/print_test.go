package cli

import (
	"bytes"
	"strings"
	"testing"
)

func TestTameWriter(t *testing.T) {
	in := "ok\ttab\nline\r\x1b[31mred\x1b]0;title\x07\x00\x7f é ß \u0085\u009b31m \u00a0 日本 \u2028|\xc2"
	want := "ok\ttab\nline[31mred]0;title é ß 31m \u00a0 日本 \u2028|"
	for size := 1; size <= len(in); size++ {
		var b bytes.Buffer
		w := &tameWriter{w: &b}
		for rest := in; rest != ""; {
			n := min(size, len(rest))
			if got, err := w.Write([]byte(rest[:n])); err != nil || got != n {
				t.Fatalf("wrote %d of %d: %v", got, n, err)
			}
			rest = rest[n:]
		}
		if b.String() != want {
			t.Fatalf("in pieces of %d: %q, want %q", size, b.String(), want)
		}
	}
}

func TestTable(t *testing.T) {
	tb := table{header: []string{"ID", "HOST", "TEXT"}}
	tb.add("a", "api.example.com", "a long text without an end")
	tb.add("bb", "", "x\ny\x1bz\tw")
	for _, tc := range []struct {
		width int
		want  string
	}{
		{100, "ID  HOST             TEXT\na   api.example.com  a long text without an end\nbb  -                x yz w\n"},
		{47, "ID  HOST             TEXT\na   api.example.com  a long text without an end\nbb  -                x yz w\n"},
		{46, "ID  HOST             TEXT\na   api.example.com  a long text without an e…\nbb  -                x yz w\n"},
		{30, "ID  HOST          TEXT\na   api.example…  a long text…\nbb  -             x yz w\n"},
		{1, "ID  HOST      TEXT\na   api.exa…  a long …\nbb  -         x yz w\n"},
	} {
		if got := aligned(tb, tc.width, true); got != tc.want {
			t.Errorf("width %d:\n%s\nwant:\n%s", tc.width, got, tc.want)
		}
	}
	if got, want := separated(tb.rows), "a\tapi.example.com\ta long text without an end\nbb\t\tx yz w\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	var none table
	if got := aligned(none, 80, true) + separated(none.rows); strings.TrimSpace(got) != "" {
		t.Errorf("an empty table: %q", got)
	}
}

func TestLineDiff(t *testing.T) {
	lines := func(s string) string { return strings.ReplaceAll(s, " ", "\n") + "\n" }
	for _, tc := range []struct{ before, after, want string }{
		{"a b", "a b", ""},
		{"a b c d e f g", "a b c X e f g", "  b\n  c\n- d\n+ X\n  e\n  f\n"},
		{"a b c d e f g h i j", "A b c d e f g h i J", "- a\n+ A\n  b\n  c\n  ...\n  h\n  i\n- j\n+ J\n"},
		{"a b c", "a c", "  a\n- b\n  c\n"},
		{"a c", "a b c", "  a\n+ b\n  c\n"},
		{"a b c", "x y", "- a\n- b\n- c\n+ x\n+ y\n"},
		{"a b a b", "b a b a", "- a\n  b\n  a\n  b\n+ a\n"},
	} {
		if got := lineDiff(lines(tc.before), lines(tc.after)); got != tc.want {
			t.Errorf("%s -> %s:\n%swant:\n%s", tc.before, tc.after, got, tc.want)
		}
	}
	if got := lineDiff("", "a\nb\n") + lineDiff("a\nb", "") + lineDiff("\n", "a\n"); got != "+ a\n+ b\n- a\n- b\n- \n+ a\n" {
		t.Errorf("from and to nothing: %q", got)
	}
	many := func(n int) string { return strings.Repeat("x\n", n) }
	if got := strings.Count(lineDiff("y\n", many(79)), "\n"); got != 80 {
		t.Errorf("80 lines are %d", got)
	}
	if got := lineDiff("y\n", many(80)); strings.Count(got, "\n") != 81 || strings.Contains(got, "...") {
		t.Errorf("81 lines: one line that is cut is no gain:\n%s", got)
	}
	if got := lineDiff("y\n", many(81)); strings.Count(got, "\n") != 81 || !strings.HasSuffix(got, "\n  ... and 2 more lines\n") {
		t.Errorf("82 lines:\n%s", got)
	}
	var a, b strings.Builder
	for i := range 5000 {
		a.WriteString(strings.Repeat("a", i%50) + "\n")
		b.WriteString(strings.Repeat("b", i%50+1) + "\n")
	}
	if got := lineDiff(a.String(), b.String()); strings.Count(got, "\n") != 81 { // more work than the table is made for
		t.Errorf("%d lines", strings.Count(got, "\n"))
	}
}

func TestPretty(t *testing.T) {
	for in, want := range map[string]string{
		`{"b":1.0,"a":{"<&>":"é\u00e9"},"e":[],"o":{}}`: "{\n  \"b\": 1.0,\n  \"a\": {\n    \"<&>\": \"é\\u00e9\"\n  },\n  \"e\": [],\n  \"o\": {}\n}\n",
		"not JSON": "not JSON",
		" 1\n":     "1\n",
	} {
		if got := pretty([]byte(in)); got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
}
