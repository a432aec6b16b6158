package recipe

import (
	"strings"
	"testing"
	"time"
)

func TestPassInline(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"plain *text* with `code` and cus_123", "plain *text* with `code` and cus_123"},
		{"[l](https://e.com/a_(b) \"t\")", "[l](https://e.com/a_(b) \"t\")"},
		{"[l](HTTP://e.com) [m](mailto:a@e.com)", "[l](HTTP://e.com) [m](mailto:a@e.com)"},
		{"[l](docs/a.md) [m](#part) [n](?q=1)", "[l](docs/a.md) [m](#part) [n](?q=1)"},
		{"[l](javascript:x)", `[l]\(javascript:x)`},
		{"[l]( <java\tscript:x>)", `[l]\( \<java` + "\t" + `script:x>)`},
		{"[l](java\\script:x)", `[l]\(java\script:x)`},
		{"[l](javascript&#58;x)", `[l]\(javascript&#58;x)`},
		{"[l](ftp://e.com)", `[l]\(ftp://e.com)`},
		{"[l](", `[l]\(`},
		{"[l]: https://e.com", `[l]\: https://e.com`},
		{"![i](https://e.com/i.png)", "[i](https://e.com/i.png)"},
		{"![](https://e.com/i.png)", "[image](https://e.com/i.png)"},
		{"![i](data:x)", `[i]\(data:x)`},
		{"a!!![i](u.png)", `a!\![i](u.png)`},
		{"\\![i](u.png)", `\![i](u.png)`},
		{"![i][r]", "[i][r]"},
		{"[![b](https://e.com/b.svg)](https://e.com)", "[b](https://e.com)"},
		{"[![](https://e.com/b.svg) x](https://e.com)", "[image x](https://e.com)"},
		{"<b>x</b> <!-- c --> <https://e.com> <javascript:x> a < b", `\<b>x\</b> \<!-- c --> <https://e.com> \<javascript:x> a \< b`},
		{"`a", "\\`a"},
		{"``a` b``", "``a` b``"},
		{"`a` `b", "`a` \\`b"},
		{"`<b> ![x](y)`", "`<b> ![x](y)`"},
		{"\\`<b>`", "\\`\\<b>\\`"},
		{"a|b `c|d`", "a\\|b \\`c\\|d\\`"},
		{"end\\", `end\\`},
		{"end\\\\", `end\\`},
		{strings.Repeat("`", maxTicks) + "a" + strings.Repeat("`", maxTicks), strings.Repeat("`", maxTicks) + "a" + strings.Repeat("`", maxTicks)},
		{strings.Repeat("`", maxTicks+1) + "a" + strings.Repeat("`", maxTicks+1), strings.Repeat("\\`", maxTicks+1) + "a" + strings.Repeat("\\`", maxTicks+1)},
	} {
		if got := passInline(c.in); got != c.want {
			t.Errorf("%q became %q, want %q", c.in, got, c.want)
		}
	}
}

func TestPassMarkdown(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"headings", "# a\n## b #\n#### d\n###### f\n####### no\n#no", "#### a\n##### b #\n###### d\n###### f\n####### no\n#no"},
		{"underlined headings", "A\n===\nB\n---\ntext", "#### A\n##### B\ntext"},
		{"an underline below two lines", "a\nb\n---\nc\n===", "a\nb\n***\nc\n\\==="},
		{"a rule", "a\n\n---\nb", "a\n\n---\nb"},
		{"headings in lists and quotations", "> # a\n- ## b\n1. > ### c", "> #### a\n- ##### b\n1. > ###### c"},
		{"code", "```go\n# x <b>\n```\n# y", "```go\n# x <b>\n```\n#### y"},
		{"open code", "~~~\n<b>", "~~~\n<b>\n~~~"},
		{"a longer end", "```\na\n`````\n<b>", "```\na\n```\n\\<b>"},
		{"no end of another kind", "````\n```\n~~~\n````", "````\n```\n~~~\n````"},
		{"code in a list", "- a\n  ```\n  x\n y\nz\n  ```", "- a\n  ```\n  x\n  y\n  z\n  ```"},
		{"code in a deep list", "1. a\n    ```\n    x\n    ```", "1. a\n\n    ```\n    x\n    ```"},
		{"code in a quotation", "> ```\n> <b>\n<i>", "> ```\n> <b>\n> ```\n\\<i>"},
		{"code by indentation", "a\n\n    <b>\n\n      c\nd", "a\n\n```\n<b>\n\n  c\n```\nd"},
		{"code by indentation with a fence in it", "a\n\n    ```\n    b", "a\n\n````\n```\nb\n````"},
		{"an indented line of a paragraph", "a\n    b <i>", "a\n    b \\<i>"},
		{"a table", "| a | `b|c` |\n| - | - |\n| 1 | 2 |", "| a | \\`b|c\\` |\n| - | - |\n| 1 | 2 |"},
		{"code with a pipe where there is no table", "`a|b`\nc", "`a|b`\nc"},
		{"breaks", "a\\\nb  \nc", "a  \nb  \nc"},
		{"tabs", "-\ta\n\t# b", "-\ta\n    #### b"},
	} {
		if got := passMarkdown(c.in, false); got != c.want {
			t.Errorf("%s: %q became\n%s\nwant\n%s", c.name, c.in, got, c.want)
		}
	}
	if got, want := passMarkdown("===\na", true), "\\===\na"; got != want {
		t.Errorf("behind a line: %q, want %q", got, want)
	}
}

// Work grows with the length of a value, whatever is in it: with the square of
// it, each of these would take minutes.
func TestHostileMarkdownIsReadOnce(t *testing.T) {
	start := time.Now()
	const n = 400_000
	var ticks strings.Builder
	for i := 1; ticks.Len() < n; i++ {
		ticks.WriteString(strings.Repeat("`", i) + " ")
	}
	for _, s := range []string{
		strings.Repeat("[", n), strings.Repeat("![", n/2), strings.Repeat("](", n/2), strings.Repeat("[](", n/3), strings.Repeat("[a]", n/3), strings.Repeat("](a", n/3),
		strings.Repeat("<", n), strings.Repeat("<a", n/2), strings.Repeat("*", n), strings.Repeat("* ", n/2), strings.Repeat("*a", n/2), strings.Repeat("&", n), strings.Repeat("~a", n/2),
		strings.Repeat("> ", n/2), strings.Repeat("- ", n/2), strings.Repeat("`a", n/2), ticks.String(), strings.Repeat("\\", n), strings.Repeat("[![a](", n/6),
		strings.Repeat("```\n", n/4), strings.Repeat("a\n", n/2), strings.Repeat("    a\n\n", n/7), strings.Repeat("> ```\n", n/6), strings.Repeat("!", n), strings.Repeat("1. ", n/3),
	} {
		f := Format{Kind: KindMarkdown, MaxChars: 20_000, Decimals: -1}
		it := &itemView{value: s, index: -1}
		var w formatter
		if out := w.appendValue(nil, s, &f, it, place{multi: true, start: true}); len(out) == 0 {
			t.Errorf("%.20q shows nothing", s)
		}
		cutMarkdown(s, 200_000)
		htmlText(s, 20_000)
	}
	if d := time.Since(start); d > 20*time.Second {
		t.Errorf("took %s", d)
	}
}
