package wrapper

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseTemplate(t *testing.T) {
	for _, tt := range []struct {
		text  string
		parts []part
		err   string
	}{
		{"", nil, ""},
		{"plain } { }}", []part{{text: "plain } { }}"}}, ""},
		{"{{a}}", []part{{name: "a"}}, ""},
		{"{{ a }}", []part{{name: "a"}}, ""},
		{"x{{a}}{{b|raw}}y", []part{{text: "x"}, {name: "a"}, {name: "b", raw: true}, {text: "y"}}, ""},
		{"{{a | raw}}", []part{{name: "a", raw: true}}, ""},
		{"{{customer id.x-y}}", []part{{name: "customer id.x-y"}}, ""},
		{"{{a}}}", []part{{name: "a"}, {text: "}"}}, ""},
		{"{{a", nil, `a placeholder is not closed: "{{a"`},
		{"{{}}", nil, `a placeholder without a name: "{{}}"`},
		{"{{|raw}}", nil, `a placeholder without a name: "{{|raw}}"`},
		{"{{{a}}}", nil, `a brace inside a placeholder: "{{{a"`},
		{"{{a|json}}", nil, `unknown modifier "json"; the only one is raw`},
		{"{{a|}}", nil, `unknown modifier ""; the only one is raw`},
		{"{{" + strings.Repeat("é", 100), nil, `a placeholder is not closed: "{{` + strings.Repeat("é", 37) + `…"`},
	} {
		got, err := parseTemplate(tt.text)
		message := ""
		if err != nil {
			message = err.Error()
		}
		if message != tt.err {
			t.Errorf("%q: error %q, want %q", tt.text, message, tt.err)
		}
		if diff := cmp.Diff(tt.parts, got.parts, cmp.AllowUnexported(part{})); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt.text, diff)
		}
	}
}

func TestEscape(t *testing.T) {
	// RFC 3986 section 2.3: only these stay.
	const stay = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
	if got := escape(stay); got != stay {
		t.Errorf("%s", got)
	}
	if got, want := escape(" !\"#$%&'()*+,/:;<=>?@[\\]^`{|}\x00\x7fé😀"), "%20%21%22%23%24%25%26%27%28%29%2A%2B%2C%2F%3A%3B%3C%3D%3E%3F%40%5B%5C%5D%5E%60%7B%7C%7D%00%7F%C3%A9%F0%9F%98%80"; got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}

// FuzzTemplate holds for any text: it is refused, or its parts put together
// are the text again, and no literal part holds an opening.
func FuzzTemplate(f *testing.F) {
	for _, s := range []string{"", "a{{b}}c", "{{a|raw}}", "{{{a}}}", "{{a", "}}{{", "{{ a }} {{b | raw }}", "{{{{a}}}}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		tpl, err := parseTemplate(s)
		if err != nil {
			return
		}
		rest := tpl.String()
		for _, p := range tpl.parts {
			if p.name == "" {
				if strings.Contains(p.text, "{{") || !strings.HasPrefix(rest, p.text) {
					t.Fatalf("%q: %+v", s, tpl.parts)
				}
				rest = rest[len(p.text):]
				continue
			}
			inner, after, ok := strings.Cut(strings.TrimPrefix(rest, "{{"), "}}")
			if !ok || !strings.Contains(inner, p.name) || strings.Contains(inner, "|") != p.raw {
				t.Fatalf("%q: %+v", s, tpl.parts)
			}
			rest = after
		}
		if rest != "" || tpl.source != s {
			t.Fatalf("%q: %q is left", s, rest)
		}
	})
}
