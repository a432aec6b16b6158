package recipe

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestCutChars(t *testing.T) {
	family := "👩\u200d👩\u200d👧\u200d👦" // seven code points, one character
	for _, c := range []struct {
		in   string
		n    int
		want string
		cut  bool
	}{
		{"abc", 3, "abc", false},
		{"abcd", 3, "abc", true},
		{"äöü", 3, "äöü", false},
		{"äöüß", 3, "äöü", true},
		{"😀😀", 2, "😀😀", false},
		{"😀😀😀", 2, "😀😀", true},
		{"a" + family, 8, "a" + family, false},
		{"a" + family, 7, "a", true},
		{"a" + family + "b", 8, "a" + family, true},
		{family + "b", 3, "", true},
		{"ae\u0301b", 2, "a", true},
		{"ae\u0301b", 3, "ae\u0301", true},
		{"❤\ufe0fx", 1, "", true},
		{"❤\ufe0fx", 2, "❤\ufe0f", true},
		{"👍🏽x", 1, "", true},
		{"🇳🇴🇸🇪🇩🇰", 2, "🇳🇴", true},
		{"🇳🇴🇸🇪🇩🇰", 3, "🇳🇴", true},
		{"🇳🇴🇸🇪🇩🇰", 4, "🇳🇴🇸🇪", true},
		{"1\ufe0f\u20e32", 2, "", true},
		{"1\ufe0f\u20e32", 3, "1\ufe0f\u20e3", true},
		{"\u1112\u1161\u11ab\u1100", 2, "", true},
		{"\u1112\u1161\u11ab\u1100", 3, "\u1112\u1161\u11ab", true},
		{"a\r\nb", 2, "a", true},
		{"", 5, "", false},
	} {
		got, cut := cutChars(c.in, c.n)
		if got != c.want || cut != c.cut {
			t.Errorf("%q at %d is %q, %v; want %q, %v", c.in, c.n, got, cut, c.want, c.cut)
		}
	}
}

func TestCutMarkdown(t *testing.T) {
	for _, c := range []struct {
		name, in string
		n        int
		want     string
	}{
		{"whole", "abcdef", 6, "abcdef"},
		{"text", "abcdef", 5, "abcd…"},
		{"emoji", "ab😀😀", 3, "ab…"},
		{"joined emoji", "ab👩\u200d👩\u200d👧cd", 5, "ab…"},
		{"escape", `ab\*cdef`, 5, `ab\*…`},
		{"inside an escape", `abc\*def`, 5, `abc…`},
		{"code span", "ab `code` cd", 8, "ab…"},
		{"code span with ticks", "ab ``co`de`` cd", 9, "ab…"},
		{"link", "ab [text](https://example.com) cd", 20, "ab…"},
		{"after a link", "[a](http://b.c) long text", 20, "[a](http://b.c) lon…"},
		{"link with brackets", `ab [a\]b](https://e.com/%28) cd`, 15, "ab…"},
		{"bold", "a **label:** b", 8, "a…"},
		{"entity", "ab &amp; cd", 6, "ab…"},
		{"fence", "a\n```json\n{\"abc\": 1}\n```\nb", 20, "a\n```json\n{\"abc…\n```"},
		{"fence without room", "a\n```json\n{\"abc\": 1}\n```\nb", 12, "a…"},
		{"after a fence", "```\na\n```\nbcdef", 13, "```\na\n```\nbc…"},
		{"table row", "a\n\n| b |\n| --- |\n| cc |\n| dd |", 27, "a\n\n| b |\n| --- |\n| cc |\n…"},
		{"line", "abc\ndef", 5, "abc…"},
		{"nothing fits", "`code`", 3, "…"},
	} {
		got, cut := cutMarkdown(c.in, c.n)
		if got != c.want || cut != (c.in != c.want) {
			t.Errorf("%s: %q at %d is %q, %v; want %q", c.name, c.in, c.n, got, cut, c.want)
		}
		if utf8.RuneCountInString(got) > c.n {
			t.Errorf("%s: %d characters, at most %d", c.name, utf8.RuneCountInString(got), c.n)
		}
	}
}

// Whatever is cut, and wherever, is within the limit, is UTF-8, starts like
// the original and leaves no fence open.
func TestCutMarkdownEverywhere(t *testing.T) {
	s := "## T\n\nx [a](https://e.com/(b)) `c` **d** \\* 👩\u200d👧\n```go\nx := 1\n```\n| a |\n| - |\n| b |\n\n- e\n  - f &amp; g"
	for n := 1; n <= utf8.RuneCountInString(s); n++ {
		got, _ := cutMarkdown(s, n)
		if utf8.RuneCountInString(got) > n || !utf8.ValidString(got) {
			t.Fatalf("at %d: %q", n, got)
		}
		if strings.Count(got, "```")%2 != 0 {
			t.Fatalf("at %d a fence is open: %q", n, got)
		}
		if head, _, _ := strings.Cut(got, ellipsis); !strings.HasPrefix(s, strings.TrimRight(head, "\n")) {
			t.Fatalf("at %d: %q is no start of it", n, got)
		}
	}
}
