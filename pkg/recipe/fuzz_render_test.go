package recipe_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// Any JSON body under a documents or document recipe keeps the caps and leaves
// no code block open.
func FuzzRenderDocuments(f *testing.F) {
	f.Add(`[{"a":"x\ny","b":["1",{"c":"` + "`" + `"}],"c":"https://e.com/)"},{"a":"# h"}]`)
	f.Add(`{"a":"` + strings.Repeat("[*", 300) + `"}`)
	f.Add(`{"a":"` + strings.Repeat("👩‍👧", 90) + `","b":null}`)
	f.Add(`[null,{"a":1,"b":[[1],2]},"` + "```" + `"]`)
	var recipes []*recipe.Recipe
	for _, doc := range []string{
		`"mode":"documents","title":"{{a}}","fields":{"A":"a","B":{"path":"b","format":"list","join":"\n"},"C":{"path":"c","format":"link","text":"a"}}`,
		`"mode":"documents","title":"{{a}} {{c|link}}","template":"{{a}}\n` + "```" + `\n{{b|json}}\n` + "```" + `\n| {{a}} |\n[x]({{c}}) **{{b}}**"`,
		`"mode":"document","title":"{{a}}","fields":{"A":"a","B":{"path":"b","format":"code"},"C":{"path":"c","format":"json"}}`,
		`"mode":"document","title":"{{a|html}}","fields":{"A":{"path":"a","format":"markdown"},"B":{"path":"a","format":"html"},"C":{"path":"c","format":"image"}}`,
		`"mode":"documents","shape":"entries","title":"{{#key}}","template":"{{@|markdown}}{{a|markdown}} > {{b|html}}"`,
	} {
		v, err := recipe.Decode([]byte(`{"schemaVersion":1,"limits":{"maxItems":5,"maxChars":200},`+doc+`}`), recipe.DecodeLimits{})
		if err != nil {
			f.Fatal(err)
		}
		r, report := recipe.Parse(v)
		if !report.OK() {
			f.Fatal(report.Problems)
		}
		recipes = append(recipes, r)
	}
	f.Fuzz(func(t *testing.T, body string) {
		for _, r := range recipes {
			page, err := r.Read([]byte(body), 5, nil)
			if err != nil {
				return
			}
			res := r.Render([]*recipe.Page{page}, recipe.RenderOptions{Name: "N"})
			if n := utf8.RuneCountInString(res.Markdown); n > 200 || !utf8.ValidString(res.Markdown) {
				t.Fatalf("%d characters, at most 200: %q", n, res.Markdown)
			}
			if openFence(res.Markdown) {
				t.Fatalf("a code block is open: %q", res.Markdown)
			}
			if len(res.Records) != res.Meta.Rendered {
				t.Fatalf("%d records, %+v", len(res.Records), res.Meta)
			}
			for _, d := range res.Documents {
				if strings.ContainsAny(d.Title, "\r\n") || utf8.RuneCountInString(d.Title) > 201 {
					t.Fatalf("title %q", d.Title)
				}
			}
		}
	})
}

// openFence reports whether a fence of backticks at the start of a line is not
// closed (CommonMark 4.5): one opens with three or more and no backtick behind
// them, and closes with as many or more alone.
func openFence(markdown string) bool {
	open := 0
	for line := range strings.Lines(markdown) {
		rest := strings.TrimLeft(line, "`")
		n, info := len(line)-len(rest), strings.TrimSpace(rest)
		switch {
		case n < 3:
		case open == 0 && !strings.Contains(info, "`"):
			open = n
		case open > 0 && n >= open && info == "":
			open = 0
		}
	}
	return open > 0
}

// Any JSON body under a table recipe gives a table: as many rows as shown, as
// many cells in each as columns, within the caps, and records of the same
// number.
func FuzzRender(f *testing.F) {
	for _, s := range []string{
		`[{"a":"x|y\\|z` + "`" + `","b":1e400,"c":"2026-01-31","d":["a","|"],"e":"https://e.com/|"}]`,
		`[{"a":"\ud83d","b":"-0.0","c":1765233417,"d":{"x":"\\|"},"e":"mailto:x|y"},null,5,[]]`,
		`{"a":"a\nb\r\u2028c"}`, `null`, `[]`, `"x"`, `[[1,2],[3]]`,
		`[{"a":"👩‍👩‍👧👩‍👩‍👧","d":["🇳🇴🇸🇪"]}]`,
	} {
		f.Add(s)
	}
	v, err := recipe.Decode([]byte(`{"schemaVersion":1,"mode":"table","title":"{{$.a}}","limits":{"maxItems":5,"maxChars":400},"fields":{
		"A":{"path":"a","maxChars":7,"prefix":"<","suffix":"|"},
		"B":{"path":"b","format":"number","decimals":2,"group":true,"scale":0.01},
		"C":{"path":"c","format":"datetime"},
		"D":{"path":"d","format":"list","join":"|","maxItems":2,"default":"*"},
		"E":{"path":"e","format":"link","text":"a"},
		"F":{"path":"a","format":"code"},
		"G":{"path":"@","format":"json"},
		"H":{"path":"a","format":"html"},
		"I":{"path":"e","format":"image","text":"a"},
		"J":{"path":"b","format":"bytes"},
		"K":{"path":"b","format":"currency","currency":"@.a"},
		"L":{"path":"b","format":"percent","scale":1e2},
		"M":{"path":"a","format":"markdown"}}}`), recipe.DecodeLimits{})
	if err != nil {
		f.Fatal(err)
	}
	table, report := recipe.Parse(v)
	if !report.OK() {
		f.Fatal(report.Problems)
	}
	f.Fuzz(func(t *testing.T, body string) {
		page, err := table.Read([]byte(body), 5, nil)
		if err != nil {
			return
		}
		res := table.Render([]*recipe.Page{page}, recipe.RenderOptions{Name: "N"})
		if !utf8.ValidString(res.Markdown) {
			t.Fatalf("not UTF-8: %q", res.Markdown)
		}
		if n := utf8.RuneCountInString(res.Markdown); n > 400 {
			t.Fatalf("%d characters, at most 400", n)
		}
		if len(res.Records) != res.Meta.Rendered || res.Meta.Shown > res.Meta.Rendered && res.Meta.Rendered > 0 {
			t.Fatalf("%d records, %+v", len(res.Records), res.Meta)
		}
		rows := 0
		for line := range strings.Lines(res.Markdown) {
			line = strings.TrimSuffix(line, "\n")
			if strings.HasPrefix(line, "|") {
				rows++
				if n := len(cells(t, line)); n != 13 {
					t.Fatalf("%d cells, want 13: %q", n, line)
				}
			} else if line != "" && !strings.HasPrefix(line, "## ") && line != "No items." {
				t.Fatalf("a line that is no row: %q", line)
			}
		}
		if rows > 0 && rows-2 != res.Meta.Shown {
			t.Fatalf("%d rows, %+v", rows-2, res.Meta)
		}
	})
}

// A template that parses renders any value without a failure, gives back its
// text, and a value in it never begins a block.
func FuzzTemplate(f *testing.F) {
	for _, s := range []string{"{{a}}", "x {{a|date}} y", "{{field:A}}", "[t]({{a}})", "<{{a}}>", "{{a|markdown}} x", "> {{a|markdown}}", "{{a|html}}{{a|code}}", "!{{a|image}}[x]{{a|bytes}}", "`{{a}}`", "```\n{{a}}\n```", "| {{a}} |", "{{a['}}']}}", "{{", "![{{a}}](x)"} {
		f.Add(s, "v # `a` |\n- x\n```\n1. ")
	}
	f.Fuzz(func(t *testing.T, template, value string) {
		tpl, err := recipe.ParseTemplate(template)
		if err != nil {
			return
		}
		if tpl.String() != template {
			t.Fatalf("%q gives back %q", template, tpl.String())
		}
		got := tpl.Render(recipe.Object{{"a", value}}, recipe.Object{{"b", value}})
		if utf8.ValidString(template) && !utf8.ValidString(got) {
			t.Fatalf("not UTF-8: %q", got)
		}
		one, err := recipe.ParseTemplate("{{a}}")
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(one.Render(recipe.Object{{"a", value}}, nil)) {
			if begins(line) {
				t.Fatalf("%q begins a block in %q", value, line)
			}
		}
	})
}

// The server's Markdown, whatever it is, stays inside its value.
func FuzzMarkdownValue(f *testing.F) {
	for _, s := range []string{
		"# h\n\ntext **b** [l](https://e.com) ![i](https://e.com/i.png)\n\n- a\n  ```go\n  x\n  ```\n- b\n\n> q\n> ```\n> c\n\n| a | b |\n| - | - |\n| `c` | d |",
		"Title\n===\n\nOther\n---\n\n    code\n\n1. a\n    ```\n    x\n    ```\n[r]: http://e.com\n<b>x</b> <https://e.com>",
		"~~~\nopen", "- a\n  ```\nb\n", "[![b](http://e.com/i)](http://e.com) \\", "a\n-\n\t# x", "[a]( <java\tscript:x>)", "`a | ![b](http://e.com) `\n| - | - |",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) { checkMarkdownValue(t, s) })
}
