package cortex

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// Nothing that somebody writes is an error of syntax, and what is found is
// marked and harmless.
func FuzzSearch(f *testing.F) {
	for _, s := range []string{
		`plain words`, `"a phrase" word`, `un"balanced`, `AND OR NOT`, `NEAR(a b)`, `a* ^b c:d`, `title:x`, `{a b}: c`, `-minus +plus`, `(((`, `""`, `'`, `";DROP TABLE pages`,
		"nul\x00byte", "\xff\xfe", "東京 a", "東", "𞤀𞤣", "e\u0301", "👩‍👩‍👧", "_", "__ a_", "½ ² ①", "ก็", "हिन्दी", strings.Repeat("a ", 100), strings.Repeat("a.", 100), "的东西 'x'", "a\u00adb", "ǅ ŉ ſ ẞ",
	} {
		f.Add(s)
	}
	x := Open(filepath.Join(f.TempDir(), "cortex.db"), Options{})
	f.Cleanup(func() { _ = x.Close() })
	f.Fuzz(func(t *testing.T, s string) {
		page := Page{Wrapper: "fuzz", Key: "1", Title: clip(s, 100), Text: s + "\n\n# a\n\n" + s + " NEAR word"}
		if _, err := x.Add(context.Background(), []Page{page}); err != nil {
			t.Fatalf("Add: %v", err)
		}
		hits, err := x.Search(context.Background(), Query{Text: s})
		if err != nil {
			if len(parse(s).units) > 0 {
				t.Fatalf("Search: %v", err)
			}
			return
		}
		for _, h := range hits {
			if !utf8.ValidString(h.Snippet) || strings.ContainsAny(h.Snippet, "\n\x00") {
				t.Errorf("snippet %q", h.Snippet)
			}
			if bare := strings.NewReplacer(`\\`, "", `\*`, "", `\<`, "", "\\`", "", `\[`, "").Replace(h.Snippet); strings.ContainsAny(strings.ReplaceAll(bare, "**", ""), "*<`[") {
				t.Errorf("something acts in the snippet %q", h.Snippet)
			}
		}
	})
}

// Chunks hold every word of a page, in order, and keep their size.
func FuzzSplit(f *testing.F) {
	for _, s := range []string{"# a\n\nb", "```\nx\n```", "| a |\n| - |\n| b |", strings.Repeat("word ", 500), strings.Repeat("字", 4000), "~~~\n\n# x\n~~~ y"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		cs := split(clean(s))
		for _, c := range cs {
			if n := utf8.RuneCountInString(c.text); n > maxChunk || !utf8.ValidString(c.text) {
				t.Errorf("a chunk of %d characters", n)
			}
		}
		if len(cs) == 0 {
			t.Error("no chunk")
		}
	})
}
