package recipe

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
)

func TestParseTemplate(t *testing.T) {
	tpl, err := ParseTemplate("a {{b.c}} {{ $.d | date }} {{field: Unit price }}{{e['}}']}} {f} }} {{field:X}}")
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, p := range tpl.Paths() {
		paths = append(paths, p.String())
	}
	if want := []string{"b.c", "$.d", "e['}}']"}; !reflect.DeepEqual(paths, want) {
		t.Errorf("paths %q, want %q", paths, want)
	}
	if got, want := tpl.FieldLabels(), []string{"Unit price", "X"}; !reflect.DeepEqual(got, want) {
		t.Errorf("labels %q, want %q", got, want)
	}
	if got, want := tpl.String(), "a {{b.c}} {{ $.d | date }} {{field: Unit price }}{{e['}}']}} {f} }} {{field:X}}"; got != want {
		t.Errorf("String() = %q, want %q", got, want)
	}
}

func TestParseTemplateRefuses(t *testing.T) {
	for _, c := range []struct {
		in      string
		offset  int
		message string // part of it
	}{
		{"a {{b", 3, "without '}}'"},
		{"{{}}", 3, "without a path"},
		{"é {{ }}", 5, "without a path"},
		{"{{a b}}", 3, ""},
		{"{{a[}}", 3, ""},
		{"{{a..b}}", 3, ""},
		{"{{a|money}}", 5, `unknown format "money"`},
		{"{{a|}}", 5, `unknown format ""`},
		{"{{a|date|text}}", 5, `unknown format "date|text"`},
		{"{{field:}}", 3, "without a label"},
		{"{{a['}}", 3, ""},
		{strings.Repeat("{{a}}", 101), 501, "more than 100 placeholders"},
		{strings.Repeat("ä", 10001), 10001, "10001 characters"},
	} {
		_, err := ParseTemplate(c.in)
		var te *TemplateError
		if !errors.As(err, &te) {
			t.Errorf("%.40q: %v, want a TemplateError", c.in, err)
			continue
		}
		if te.Offset != c.offset || !strings.Contains(te.Message, c.message) {
			t.Errorf("%.40q: %+v, want offset %d and %q", c.in, *te, c.offset, c.message)
		}
	}
	for _, ok := range []string{"", "no holes", strings.Repeat("{{a}}", 100), strings.Repeat("ä", 10000)} {
		if _, err := ParseTemplate(ok); err != nil {
			t.Errorf("%.20q: %v", ok, err)
		}
	}
}

func TestTemplateRender(t *testing.T) {
	item := Object{
		{"title", "A *b* {{c}} #"},
		{"n", json.Number("30.00")},
		{"id", json.Number("9007199254740993")},
		{"when", json.Number("1765233417")},
		{"tags", Array{"x_", "y"}},
		{"o", Object{{"k", "a`b"}}},
		{"lines", "- one\n# two"},
		{"url", "https://e.com/a(b)"},
		{"js", "javascript:alert(1)"},
		{"quote", `"><img src=x onerror=alert(1)>`},
		{"paren", "a) ![x](http://evil.example"},
		{"ticks", "a`b ```c"},
		{"bang", "wow!"},
		{"empty", ""},
		{"null", nil},
		{"pipe", "a|b\nc"},
		{"one", json.Number("1")},
		{"dot", ". x"},
		{"minus", json.Number("-5")},
	}
	root := Object{{"total", json.Number("3")}}
	for _, c := range []struct{ in, want string }{
		{"{{title}}", `A \*b\* {{c}} #`},
		{"**{{n}}** {{id}}", "**30.00** 9007199254740993"},
		{"{{when|date}} {{when|datetime}} {{when}}", "2025-12-08 2025-12-08 22:36:57 UTC 1765233417"},
		{"{{tags}} {{o}}", "x\\_, y ``{\"k\":\"a`b\"}``"},
		{"{{$.total}} of {{$.missing}}.", "3 of ."},
		{"{{empty}}{{null}}{{nothing}}", ""},
		{"{{field:Label}}", ""},
		{"{{#index}}", ""}, // a template alone has no place in a list
		{"{{lines}}", "\\- one\n\\# two"},
		{"> {{lines}}", "> \\- one\n\\# two"},
		{"Text {{lines}}", "Text - one\n\\# two"},
		{"## {{lines}}", "## - one # two"},
		{"| {{pipe}} |", `| a\|b c |`},
		{"{{minus}} {{one}}", "-5 1"},
		{"{{one}}{{dot}}", `1\. x`},
		{"{{one}}{{one}}{{dot}}", `11\. x`},
		{"[t]({{url}})", "[t](https://e.com/a%28b%29)"},
		{"[t]({{js}})", "[t](javascript%3Aalert%281%29)"},
		{"[t](https://e.com/{{paren}})", "[t](https://e.com/a%29%20![x]%28http://evil.example)"},
		{"<{{js}}>", `\<javascript:alert(1)>`},
		{`<a title="{{quote}}">`, `<a title="%22%3E%3Cimg%20src=x%20onerror=alert%281%29%3E">`},
		{"`{{ticks}}`", "`a'b '''c`"},
		{"```json\n{{ticks}}\n{{o}}\n```\n{{title}}", "```json\na`b '''c\n{\"k\":\"a`b\"}\n```\nA \\*b\\* {{c}} #"},
		{"{{bang}}[t](http://a.b)", `wow\![t](http://a.b)`},
		{"{{bang}} [t](http://a.b)", "wow! [t](http://a.b)"},
		{"a < {{n}} > b", "a < 30.00 > b"},
	} {
		tpl, err := ParseTemplate(c.in)
		if err != nil {
			t.Errorf("%q: %v", c.in, err)
			continue
		}
		if got := tpl.Render(item, root); got != c.want {
			t.Errorf("%q gives %q, want %q", c.in, got, c.want)
		}
	}
}

// TestMarksAroundNothing: emphasis and code around an empty value are left out;
// "****" on a line of its own would be a rule.
func TestMarksAroundNothing(t *testing.T) {
	for in, want := range map[string]string{
		"**{{a}}**":                  "",
		"x **{{a}}** y":              "x  y",
		"x *{{a}}*, _{{a}}_":         "x , ",
		"***{{a}}***":                "",
		"~~{{a}}~~ `{{a}}`":          " ",
		"``{{a}}``":                  "",
		"**{{b}}** `{{b}}`":          "**v** `v`",
		"**{{a}}*":                   "***",
		"**{{a}}{{b}}**":             "**v**",
		"**x {{a}}**":                "**x **",
		`\*{{a}}*`:                   `\**`,
		"{{a}}**":                    "**",
		"```\n*{{a}}*\n```":          "```\n**\n```",
		"[x](https://e.com/_{{a}}_)": "[x](https://e.com/__)",
	} {
		tpl, err := ParseTemplate(in)
		if err != nil {
			t.Fatal(err)
		}
		item := Object{{Key: "b", Value: "v"}}
		if got := tpl.Render(item, item); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
