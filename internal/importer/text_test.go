package importer

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestBrief(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text, want string
		limit            int
	}{
		{"short", "List pets.", "List pets.", 20},
		{"at the limit", strings.Repeat("é", 20), strings.Repeat("é", 20), 20},
		{"one over it", strings.Repeat("é", 21), strings.Repeat("é", 19) + "…", 20},
		{"sentences that fit", "First one here. Second one is longer.", "First one here.", 30},
		{"no end of a sentence", "one two three four five six", "one two three…", 18},
		{"an abbreviation", "E.g. This is a rather long sentence without an end", "E.g. This is a rather long…", 30},
		{"HTML", "<p>Get &quot;it&quot; <a href='x'>here</a>.</p><!-- x -->", `Get "it" here .`, 99},
		{"Markdown", "# Head\n\nA **bold** [link](https://x.example.com), `code`\n\n| a | b |\n|---|---|\n\n```js\nx()\n```\n\n* one\n* two", "A bold link, code one two", 99},
		{"controls", "a\x00b\u202ec\u200bd\te", "a b c d e", 99},
		{"comparison is no tag", "a < b and c > d", "a < b and c > d", 99},
	} {
		if got := brief(c.text, c.limit); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
		if n := utf8.RuneCountInString(brief(c.text, c.limit)); n > c.limit {
			t.Errorf("%s: %d characters", c.name, n)
		}
	}
}

func TestCleanText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Send Authorization: Bearer abcdef0123456789xyz": "Send Authorization: [redacted]",
		"https://ada:pa55word@example.com/x":             "https://[redacted]@example.com/x",
		"GET /x?api_key=abc&page=2":                      "GET /x?api_key=[redacted]&page=2",
		`{"client_secret": "hunter2hunter2"}`:            `{"client_secret": "[redacted]"}`,
		"key sk_live_abcdef123456 here":                  "key [redacted] here",
		"AKIAIOSFODNN7EXAMPLE":                           "[redacted]",
		// Words of ordinary documents.
		"secret_scanning_push_protection":          "secret_scanning_push_protection",
		"Basic internationalization of texts":      "Basic internationalization of texts",
		"The token is in the Authorization header": "The token is in the Authorization header",
		"?page=2&per_page=100":                     "?page=2&per_page=100",
		"page_token=abcdefgh12345678":              "page_token=abcdefgh12345678",
		"mail ada@example.com":                     "mail ada@example.com",
	} {
		if got := cleanText(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestMatch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"", "", true},
		{"", "a", false},
		{"*", "", true},
		{"a*c", "abbc", true},
		{"a*c", "ab", false},
		{"*a*b", "xaab", true},
		{"GET /*", "get /pets/{id}", true},
		{"?", "é", true},
		{"?", "", false},
		{strings.Repeat("*a", 50) + "b", strings.Repeat("a", 5000), false}, // not in exponential time
	} {
		if got := Match(c.pattern, c.name); got != c.want {
			t.Errorf("%.20q %.20q: %v", c.pattern, c.name, got)
		}
	}
}

func TestArgumentName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"id": "id", "X-Trace-Id": "X-Trace-Id", "filter[color]": "filter_color", "ids[]": "ids", "$top": "top", "a.b": "a_b",
		"größe": "gr_e", "日本": "value", "": "value", "__proto__": "value",
		strings.Repeat("a", 64): strings.Repeat("a", 64),
		strings.Repeat("a", 65): strings.Repeat("a", 57) + "_635361",
	} {
		if got := argumentName(name); got != want || len(got) > 64 {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}
