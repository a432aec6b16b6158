package recipe

import (
	"strings"
	"testing"
)

func TestClean(t *testing.T) {
	for _, c := range []struct{ in, line, lines string }{
		{"plain", "plain", "plain"},
		{"  outer  ", "outer", "outer"},
		{"a\tb", "a\tb", "a\tb"},
		{"a\nb", "a b", "a\nb"},
		{"a\r\nb", "a b", "a\nb"},
		{"a\rb", "a b", "a\nb"},
		{"a\u0085b", "a b", "a\nb"},
		{"a\u2028b\u2029c", "a b c", "a\nb\nc"},
		{"a\vb\fc", "a b c", "a\nb\nc"},
		{"a\n\r\n\rb", "a b", "a\n\n\nb"},
		{"\n\na\n\n", "a", "a"},
		{"a\x00b\x1b[31mc\x07", "ab[31mc", "ab[31mc"},
		{"a\u0090\x7fb", "ab", "ab"},
		{"a\u202eb\u2066c\u2069", "abc", "abc"},
		{"a\U000e0041b", "ab", "ab"},
		{"\ufeffa\ufeffb", "ab", "ab"},
		{"\ufffd kept", "\ufffd kept", "\ufffd kept"},
		{"bad\xffbyte", "bad\ufffdbyte", "bad\ufffdbyte"},
		{"👩\u200d👩\u200d👧", "👩\u200d👩\u200d👧", "👩\u200d👩\u200d👧"},
		{"می\u200cخواهم", "می\u200cخواهم", "می\u200cخواهم"},
		{"שלום", "שלום", "שלום"},
		{"e\u0301", "e\u0301", "e\u0301"},
	} {
		if got := clean(c.in, false); got != c.line {
			t.Errorf("%q on one line is %q, want %q", c.in, got, c.line)
		}
		if got := clean(c.in, true); got != c.lines {
			t.Errorf("%q on lines is %q, want %q", c.in, got, c.lines)
		}
	}
}

func TestAppendText(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"plain text, with 50% (of it)!", "plain text, with 50% (of it)!"},
		{`a\b`, `a\\b`},
		{"a`b`", "a\\`b\\`"},
		{"*a* **b**", `\*a\* \*\*b\*\*`},
		{"[a](b)", `\[a\](b)`},
		{"![a](b)", `\!\[a\](b)`},
		{"a! [b]", `a! \[b\]`},
		{"<script>", `\<script\>`},
		{"a|b", `a\|b`},
		{`a\|b`, `a\\\|b`},
		{"~/a ~~b~~ ~~~", `~/a \~\~b\~\~ \~\~\~`},
		{"~a~ 5~6 ~7", `~a\~ 5\~6 ~7`},
		{"~/a ~/b https://e.com/~c", "~/a ~/b https://e.com/~c"},
		{"5~10", "5~10"},
		{"cus_123 snake_case_name", "cus_123 snake_case_name"},
		{"_a_ a__b _", `\_a\_ a\_\_b \_`},
		{"é_è 1_2", "é_è 1_2"},
		{"AT&T a&b; &amp; &#38; &#x26; &;", `AT&T a&b; \&amp; \&#38; \&#x26; &;`},
		{"&copy", "&copy"},
		{"{{path}} {{$.secret}}", "{{path}} {{$.secret}}"},
	} {
		if got := string(appendText(nil, c.in, "", false, 0)); got != c.want {
			t.Errorf("%q became %q, want %q", c.in, got, c.want)
		}
	}
}

func TestAppendTextLines(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"# a", `\# a`},
		{"#5", `\#5`},
		{"- a", `\- a`},
		{"-5", "-5"},
		{"+47 1", "+47 1"},
		{"+ a", `\+ a`},
		{"---", `\---`},
		{"===", `\===`},
		{"a\n:-", "a\n..\\:-"},
		{":)", ":)"},
		{"1. a", `1\. a`},
		{"1) a", `1\) a`},
		{"1.5", "1.5"},
		{"1.", `1\.`},
		{"1234567890. a", "1234567890. a"},
		{"> a", `\> a`},
		{"```go", "\\`\\`\\`go"},
		{"~~~", `\~\~\~`},
		{"    code", "   code"},
		{"\tcode", "   code"},
		{"   three", "   three"},
		{"a\n# b\n\n- c\n    d\n1. e", "a\n..\\# b\n\n..\\- c\n..   d\n..1\\. e"},
		{"a\n   \nb", "a\n\n..b"},
		{"a  \nb", "a\n..b"},
		{"| a | b |\n| --- |", "\\| a \\| b \\|\n..\\| --- \\|"},
	} {
		if got := string(appendText(nil, c.in, "..", true, 0)); got != c.want {
			t.Errorf("%q became %q, want %q", c.in, got, c.want)
		}
	}
}

func TestAppendHeading(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"C#", "C#"},
		{"C #", `C \#`},
		{"C ##", `C \##`},
		{"##", `\##`},
		{"# a", `\# a`},
		{"a # b", "a # b"},
	} {
		if got := string(appendHeading(nil, c.in)); got != c.want {
			t.Errorf("%q became %q, want %q", c.in, got, c.want)
		}
	}
}

func TestAppendCode(t *testing.T) {
	for _, c := range []struct{ in, cell, document string }{
		{"a", "`a`", "`a`"},
		{"a|b", "`a\\|b`", "`a|b`"},
		{`a\b`, "`a\\b`", "`a\\b`"},
		{`a\|b`, `a\\\|b`, "`a\\|b`"},
		{"a`b", "``a`b``", "``a`b``"},
		{"`a", "`` `a ``", "`` `a ``"},
		{"a``b`", "``` a``b` ```", "``` a``b` ```"},
		{" a ", "`  a  `", "`  a  `"},
		{" a", "` a`", "` a`"},
		{" ", "` `", "` `"},
		{"", "", ""},
	} {
		if got := string(appendCode(nil, c.in, true)); got != c.cell {
			t.Errorf("%q in a cell is %q, want %q", c.in, got, c.cell)
		}
		if got := string(appendCode(nil, c.in, false)); got != c.document {
			t.Errorf("%q in a document is %q, want %q", c.in, got, c.document)
		}
	}
}

func TestLinkable(t *testing.T) {
	long := "https://example.com/" + strings.Repeat("a", maxLinkURL-len("https://example.com/"))
	for u, want := range map[string]bool{
		"https://example.com":      true,
		"http://example.com/a b":   true,
		"HTTPS://EXAMPLE.COM/":     true,
		"mailto:a@example.com":     true,
		long:                       true,
		long + "a":                 false,
		"mailto:":                  false,
		"https://":                 false,
		"https:///path":            false,
		"https:example.com":        false,
		"javascript:alert(1)":      false,
		"JavaScript:alert(1)":      false,
		"data:text/html,x":         false,
		"vbscript:x":               false,
		"file:///etc/passwd":       false,
		"ftp://example.com":        false,
		"//example.com/a":          false,
		"/a/b":                     false,
		"?page=2":                  false,
		"example.com":              false,
		"":                         false,
		"java\nscript:alert(1)":    false,
		"ht\ttps://example.com":    false,
		"\x01https://example.com/": false,
	} {
		if got := linkable(u); got != want {
			t.Errorf("linkable(%.60q) = %v, want %v", u, got, want)
		}
	}
}

func TestAppendURL(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"https://example.com/a?b=c&d=e#f", "https://example.com/a?b=c&d=e#f"},
		{"https://example.com/a b", "https://example.com/a%20b"},
		{"https://example.com/(a)<b>|c", "https://example.com/%28a%29%3Cb%3E%7Cc"},
		{"https://example.com/a%20b", "https://example.com/a%20b"},
		{"https://example.com/\n\t\x00", "https://example.com/%0A%09%00"},
		{"https://example.com/`\\\"'", "https://example.com/%60%5C%22%27"},
		{"https://example.com/é", "https://example.com/é"},
		{"https://example.com/\u202e\u00a0\u2028", "https://example.com/%E2%80%AE%C2%A0%E2%80%A8"},
		{"https://example.com/?a&copy;", "https://example.com/?a&amp;copy;"},
		{"https://example.com/\xff", "https://example.com/%FF"},
	} {
		if got := string(appendURL(nil, c.in, false)); got != c.want {
			t.Errorf("%q became %q, want %q", c.in, got, c.want)
		}
	}
}
