package recipe_test

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// cells takes a table row apart at its unescaped pipes. It knows nothing of
// how rows are written but what the rules of tables say.
func cells(t *testing.T, row string) []string {
	t.Helper()
	if strings.ContainsAny(row, "\n\r\v\f\u0085\u2028\u2029") {
		t.Fatalf("row with a line break: %q", row)
	}
	var out []string
	start := -1
	for i := 0; i < len(row); i++ {
		switch row[i] {
		case '\\':
			i++
		case '|':
			if start >= 0 {
				out = append(out, strings.Trim(row[start:i], " "))
			}
			start = i + 1
		}
	}
	if start != len(row) || !strings.HasPrefix(row, "|") {
		t.Fatalf("row does not start and end with a pipe: %q", row)
	}
	return out
}

// unescape undoes backslash escapes the way a reader of Markdown does, and
// fails on anything that would act: markup that is not escaped.
func unescape(t *testing.T, cell string) string {
	t.Helper()
	var b strings.Builder
	for i := 0; i < len(cell); i++ {
		c := cell[i]
		if c == '\\' && i+1 < len(cell) && cell[i+1] < 0x80 && strings.IndexByte("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", cell[i+1]) >= 0 {
			i++
			b.WriteByte(cell[i])
			continue
		}
		if strings.IndexByte("\\`*[]<>|", c) >= 0 || strings.HasPrefix(cell[i:], "~~") {
			t.Fatalf("%q acts in the cell %q", c, cell)
		}
		if c == '_' {
			before, _ := utf8.DecodeLastRuneInString(cell[:i])
			after, _ := utf8.DecodeRuneInString(cell[i+1:])
			word := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
			if !word(before) || !word(after) {
				t.Fatalf("an underscore acts in the cell %q", cell)
			}
		}
		b.WriteByte(c)
	}
	return b.String()
}

// visible is what a person should see of a text in one line, from the rules.
func visible(s string) string {
	var b strings.Builder
	inBreak := false
	for _, r := range strings.ToValidUTF8(s, "\ufffd") {
		lineBreak := r >= '\n' && r <= '\r' || r == 0x85 || r == 0x2028 || r == 0x2029
		switch {
		case lineBreak && !inBreak:
			b.WriteByte(' ')
		case lineBreak:
		case r == '\t':
			b.WriteRune(r)
		case r < 0x20 || r >= 0x7f && r <= 0x9f || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 ||
			r >= 0xe0000 && r <= 0xe007f || r == 0xfeff:
			continue // hidden, and nothing between two line breaks either
		default:
			b.WriteRune(r)
		}
		inBreak = lineBreak
	}
	return strings.Trim(b.String(), " \t")
}

// A table of hostile strings has as many rows as items, as many cells in each
// as columns, and every cell reads as the string.
func TestNaughtyStrings(t *testing.T) {
	body, err := os.ReadFile("testdata/corpus/edge-naughty-strings.json")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Items []struct {
			ID   json.Number
			Text string
		}
	}
	if err := json.Unmarshal(body, &doc); err != nil {
		t.Fatal(err)
	}
	r := parse(t, `{"schemaVersion":1,"select":"$.items","mode":"table","fields":{"Id":"id","Text":{"path":"text","maxChars":20000},"Code":{"path":"text","format":"code"},"Link":{"path":"text","format":"link"}},"record":{"id":"id"},"limits":{"maxItems":1000,"maxChars":200000}}`)
	res := render(t, r, "Naughty", string(body))
	rows := strings.Split(res.Markdown, "\n")[4:]
	if len(rows) != len(doc.Items) || len(rows) != 462 {
		t.Fatalf("%d rows for %d items, want 462", len(rows), len(doc.Items))
	}
	for i, row := range rows {
		c := cells(t, row)
		if len(c) != 4 {
			t.Fatalf("%d cells in %q", len(c), row)
		}
		if c[0] != string(doc.Items[i].ID) {
			t.Errorf("row %d starts with %q", i, c[0])
		}
		if got, want := unescape(t, c[1]), visible(doc.Items[i].Text); got != want {
			t.Errorf("row %d reads %q, want %q", i, got, want)
		}
	}
	// In a document no line of a value begins anything.
	r = parse(t, `{"schemaVersion":1,"select":"$.items","mode":"documents","template":"{{text}}","limits":{"maxItems":1000,"maxChars":200000}}`)
	for _, d := range render(t, r, "Naughty", string(body)).Documents {
		for line := range strings.Lines(d.Markdown) {
			if begins(line) {
				t.Errorf("a value begins a block: %q", line)
			}
		}
	}
}

// begins reports whether a line of Markdown starts a block: a heading, a list
// item, a quotation, a fence, a table, a rule, an indented code block.
func begins(line string) bool {
	text := strings.TrimLeft(line, " ")
	if len(line)-len(text) > 3 || strings.HasPrefix(text, "\t") {
		return strings.TrimSpace(text) != ""
	}
	text = strings.TrimRight(text, "\n") + " "
	number := strings.TrimLeft(text, "0123456789")
	switch {
	case text[0] == '#', text[0] == '>', text[0] == '|', text[0] == '=', text[0] == '<',
		strings.HasPrefix(text, "```"), strings.HasPrefix(text, "~~~"), strings.HasPrefix(text, "--"):
		return true
	case strings.IndexByte("-+*", text[0]) >= 0:
		return text[1] == ' ' || text[1] == '\t'
	case len(number) < len(text) && len(text)-len(number) <= 9: // CommonMark 5.2: at most nine digits number an item
		return strings.HasPrefix(number, ". ") || strings.HasPrefix(number, ") ") || strings.HasPrefix(number, ".\t") || strings.HasPrefix(number, ")\t")
	}
	return false
}

// Case R-15: a cell holds one line whatever the value holds.
func TestR15CellContent(t *testing.T) {
	r := parse(t, `{"schemaVersion":1,"mode":"table","fields":{"A":"a","B":"b"}}`)
	for _, c := range []struct{ value, cell string }{
		{"a|b", `a\|b`},
		{"a\nb", "a b"},
		{"a\r\nb", "a b"},
		{"a\rb", "a b"},
		{"<script>alert(1)</script>", `\<script\>alert(1)\</script\>`},
		{`a\b`, `a\\b`},
		{`a\`, `a\\`},
		{"`", "\\`"},
		{"cus_123", "cus_123"},
		{"{{b}}", "{{b}}"},
	} {
		body, err := json.Marshal([]map[string]string{{"a": c.value, "b": "end"}})
		if err != nil {
			t.Fatal(err)
		}
		want := "| A | B |\n| --- | --- |\n| " + c.cell + " | end |"
		if res := render(t, r, "", string(body)); res.Markdown != want {
			t.Errorf("%q gives\n%s\nwant\n%s", c.value, res.Markdown, want)
		}
	}
}

// A lone surrogate is U+FFFD, a pair is a character.
func TestSurrogates(t *testing.T) {
	r := parse(t, `{"schemaVersion":1,"mode":"table","fields":{"N":"name"}}`)
	res := render(t, r, "", `[{"name":"high \ud83d alone"},{"name":"swapped \udc00\ud800"},{"name":"ok \ud83d\ude00"}]`)
	want := "| N |\n| --- |\n| high \ufffd alone |\n| swapped \ufffd\ufffd |\n| ok 😀 |"
	if res.Markdown != want {
		t.Errorf("got\n%s\nwant\n%s", res.Markdown, want)
	}
}

// Case R-20: one object renders as one row of the recipe for a list, and its
// records are a list too.
func TestR20RootArrayAndObject(t *testing.T) {
	r := parse(t, `{"schemaVersion":1,"mode":"table","fields":{"A":"a"}}`)
	for _, body := range []string{`[{"a":1}]`, `{"a":1}`} {
		if res := render(t, r, "", body); res.Markdown != "| A |\n| --- |\n| 1 |" || records(res) != `[{"A":1}]` {
			t.Errorf("%s gives\n%s\n%s", body, res.Markdown, records(res))
		}
	}
}

// Case R-18: seconds and milliseconds are told apart for each value, what is no
// date stays as it is, and records keep what the API sent.
func TestR18EpochDates(t *testing.T) {
	r := parse(t, `{"schemaVersion":1,"mode":"table","fields":{"D":{"path":"d","format":"date"}}}`)
	res := render(t, r, "", `[{"d":1765233417},{"d":1765233417000},{"d":-1},{"d":0},{"d":"2025-12-08T22:36:57Z"},{"d":"n/a"}]`)
	want := "| D |\n| --- |\n| 2025-12-08 |\n| 2025-12-08 |\n| -1 |\n| 1970-01-01 |\n| 2025-12-08 |\n| n/a |"
	if res.Markdown != want {
		t.Errorf("got\n%s\nwant\n%s", res.Markdown, want)
	}
	if got, want := records(res), `[{"D":1765233417},{"D":1765233417000},{"D":-1},{"D":0},{"D":"2025-12-08T22:36:57Z"},{"D":"n/a"}]`; got != want {
		t.Errorf("records %s, want %s", got, want)
	}
}

func TestFieldOptions(t *testing.T) {
	for _, c := range []struct {
		name, field, value string
		cell               string
		line               string // in a document; "": like the cell
	}{
		{"prefix and suffix", `"prefix":"$","suffix":" a_b","format":"number"`, `5`, "$5 a_b", ""},
		{"no affixes without a value", `"prefix":"$","suffix":" EUR"`, `null`, "", ""},
		{"no affixes for an empty string", `"prefix":"$","suffix":" EUR"`, `""`, "", ""},
		{"affixes are escaped", `"prefix":"*|","suffix":"<b>"`, `"x"`, `\*\|x\<b\>`, ""},
		{"affixes of another kind of value", `"suffix":" °C","format":"number"`, `"n/a"`, "n/a °C", ""},
		{"default", `"default":"—"`, `null`, "—", ""},
		{"default for an empty string", `"default":"*none*"`, `""`, `\*none\*`, ""},
		{"default for invisible text", `"default":"none"`, `"\u0000\u202e"`, "none", ""},
		{"no default for false", `"default":"none"`, `false`, "false", ""},
		{"no default for 0", `"default":"none"`, `0`, "0", ""},
		{"maxChars at", `"maxChars":3`, `"abc"`, "abc", ""},
		{"maxChars over", `"maxChars":3`, `"abcd"`, "abc…", ""},
		{"maxChars and an escape", `"maxChars":3`, `"a*bc"`, `a\*b…`, ""},
		{"maxChars of code", `"maxChars":3,"format":"code"`, `"abcd"`, "`abc…`", ""},
		{"maxChars of a link is for its text", `"maxChars":7,"format":"link"`, `"https://example.com/long"`, "[https:/…](https://example.com/long)", ""},
		{"boolean", `"format":"boolean"`, `true`, "yes", ""},
		{"boolean false", `"format":"boolean"`, `false`, "no", ""},
		{"boolean text", `"format":"boolean"`, `"true"`, "yes", ""},
		{"boolean 0", `"format":"boolean"`, `0`, "no", ""},
		{"boolean 2", `"format":"boolean"`, `2`, "2", ""},
		{"boolean labels", `"format":"boolean","true":"on_","false":"off"`, `1`, `on\_`, ""},
		{"integer", `"format":"integer"`, `2.5`, "3", ""},
		{"number options", `"format":"number","decimals":2,"group":true,"scale":0.01`, `123456789`, "1,234,567.89", ""},
		{"date unit", `"format":"date","unit":"ms"`, `1765233417`, "1970-01-21", ""},
		{"link", `"format":"link"`, `"mailto:a@example.com"`, "[mailto:a@example.com](mailto:a@example.com)", ""},
		{"link without a scheme", `"format":"link"`, `"/a/b_"`, `/a/b\_`, ""},
		{"link with a script", `"format":"link"`, `"javascript:alert(1)"`, "javascript:alert(1)", ""},
		{"link of a number", `"format":"link"`, `5`, "5", ""},
		{"code in a document", `"format":"code"`, `"a|b\nc"`, "`a\\|b c`", "`a|b c`"},
		{"json", `"format":"json"`, `{"a":[1.50,null]}`, "`{\"a\":[1.50,null]}`", ""},
		{"json of a string", `"format":"json"`, `"x"`, "`\"x\"`", ""},
		{"currency", `"format":"currency","currency":"USD"`, `499.00`, "499.00 USD", ""},
		{"currency from the item", `"format":"currency","currency":"@.z","decimals":2,"scale":0.01,"group":true`, `123456`, "1,234.56 z", ""},
		{"currency in small letters", `"format":"currency","currency":"eur"`, `"19.90"`, "19.90 EUR", ""},
		{"currency with a missing code", `"format":"currency","currency":"@.none"`, `5`, "5", ""},
		{"currency without a code", `"format":"currency"`, `5.50`, "5.50", ""},
		{"currency of a text", `"format":"currency","currency":"USD"`, `"1,234.50"`, "1,234.50", ""},
		{"currency between affixes", `"format":"currency","currency":"USD","prefix":"~","suffix":"!"`, `5`, "~5 USD!", ""},
		{"percent", `"format":"percent"`, `12.50`, "12.50 %", ""},
		{"percent of a ratio", `"format":"percent","scale":100,"decimals":1`, `0.12345`, "12.3 %", ""},
		{"percent of a text", `"format":"percent"`, `"n/a"`, "n/a", ""},
		{"bytes", `"format":"bytes"`, `4449`, "4.3 KiB", ""},
		{"bytes below", `"format":"bytes"`, `1023`, "1023 B", ""},
		{"bytes at", `"format":"bytes"`, `"1024"`, "1.0 KiB", ""},
		{"bytes of a text", `"format":"bytes"`, `"4 KB"`, "4 KB", ""},
		{"image", `"format":"image"`, `"https://example.com/a b.png"`, "[image](https://example.com/a%20b.png)", ""},
		{"image with a text", `"format":"image","text":"z"`, `"https://example.com/a.png"`, "[z](https://example.com/a.png)", ""},
		{"image of data", `"format":"image"`, `"data:image/png;base64,AA=="`, "data:image/png;base64,AA==", ""},
		{"image is never shown", `"format":"image","prefix":"!"`, `"https://e.com/"`, `\![image](https://e.com/)`, ""},
		{"html", `"format":"html"`, `"<p>a &lt;b&gt;</p><p>c<br>d</p><script>x</script>"`, `a \<b\> c d`, "a \\<b\\>\n\n  c\n  d"},
		{"html of a number", `"format":"html"`, `5`, "5", ""},
		{"markdown", `"format":"markdown"`, `"**b** <i> ![x](https://e.com/)"`, `\*\*b\*\* \<i\> \!\[x\](https://e.com/)`, `**b** \<i> [x](https://e.com/)`},
		{"markdown lines", `"format":"markdown"`, `"# h\n- i"`, `# h - i`, "\n\n  #### h\n  - i"},
		{"markdown of a number", `"format":"markdown"`, `5`, "5", ""},
		{"list each currency", `"format":"list","each":"bytes"`, `[1,2048]`, "1 B, 2.0 KiB", ""},
		{"json takes no suffix", `"suffix":"!"`, `{"a":1}`, "`{\"a\":1}`", ""},
		{"auto list", `"path":"v"`, `["a",1,true,null,""]`, "a, 1, true", ""},
		{"auto json", `"path":"v"`, `[1,{"a":2}]`, "`[1,{\"a\":2}]`", ""},
		{"empty list", `"default":"none"`, `[]`, "none", ""},
		{"empty object", `"default":"none"`, `{}`, "`{}`", ""},
		{"list of one", `"format":"list","prefix":"<","suffix":">"`, `["a"]`, `\<a\>`, ""},
		{"list of several takes no affixes", `"format":"list","prefix":"<","suffix":">"`, `["a","b"]`, "a, b", ""},
		{"list of a scalar", `"format":"list"`, `"a"`, "a", ""},
		{"list with a join", `"format":"list","join":" | "`, `["a","b"]`, `a \| b`, "a \\| b"},
		{"list on lines", `"format":"list","join":"\n"`, `["a","- b"]`, "a - b", "\n  - a\n  - \\- b"},
		{"list item", `"format":"list","item":"n"`, `[{"n":"a"},{"x":1},{"n":"b"}]`, "a, b", ""},
		{"list of objects", `"format":"list"`, `[{"n":1}]`, "`{\"n\":1}`", ""},
		{"list each", `"format":"list","each":"date"`, `["2026-01-31T10:00:00Z",0]`, "2026-01-31, 1970-01-01", ""},
		{"list each link", `"format":"list","each":"link"`, `["https://a.example","b"]`, "[https://a.example](https://a.example), b", ""},
		{"ten elements", `"format":"list"`, `[1,2,3,4,5,6,7,8,9,10]`, "1, 2, 3, 4, 5, 6, 7, 8, 9, 10", ""},
		{"eleven elements", `"format":"list"`, `[1,2,3,4,5,6,7,8,9,10,11]`, "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, … +1 more", ""},
		{"maxItems", `"format":"list","maxItems":2`, `[1,2,null,3,4]`, "1, 2, … +2 more", ""},
		{"list maxChars at", `"format":"list","maxChars":6`, `["ab","cd"]`, "ab, cd", ""},
		{"list maxChars over", `"format":"list","maxChars":5`, `["ab","cd"]`, "ab, c…", ""},
		{"list without room", `"format":"list","maxChars":4`, `["ab","cd","ef"]`, "ab, …", ""},
		{"text of an object", `"format":"text"`, `{"a":"*"}`, `{"a":"\*"}`, ""},
		{"text lines", `"format":"text"`, `"a\n# b"`, "a # b", "a\n  \\# b"},
	} {
		field := c.field
		if !strings.Contains(field, `"path"`) {
			field = `"path":"v",` + field
		}
		doc := `{"schemaVersion":1,"mode":"%s","fields":{"F":{` + field + `},"Z":"z"}}`
		body := `{"v":` + c.value + `,"z":"z"}`
		table := render(t, parse(t, fmt.Sprintf(doc, "table")), "", body).Markdown
		if want := strings.ReplaceAll("| F | Z |\n| --- | --- |\n| "+c.cell+" | z |", "|  |", "| |"); table != want {
			t.Errorf("%s in a table:\n%s\nwant\n%s", c.name, table, want)
		}
		line := c.line
		if line == "" {
			line = c.cell
		}
		if line != "" && line[0] != '\n' {
			line = " " + line
		}
		document := render(t, parse(t, fmt.Sprintf(doc, "document")), "", body).Markdown
		if want := "- **F:**" + line + "\n- **Z:** z"; document != want {
			t.Errorf("%s in a document:\n%s\nwant\n%s", c.name, document, want)
		}
	}
}

// Work is bounded by what is shown: behind the elements that are looked at the
// rest of a list counts as it is, and long texts are read only as far as they
// can be seen.
func TestLongValues(t *testing.T) {
	r := parse(t, `{"schemaVersion":1,"mode":"document","fields":{"L":{"path":"l"},"N":{"path":"n","format":"number"},"T":{"path":"t","maxChars":3},"U":{"path":"u","format":"link"}},"record":{"x":"x"}}`)
	list := strings.TrimSuffix(strings.Repeat("1,", 2000), ",")
	res := render(t, r, "", `{"l":[`+list+`],"n":`+strings.Repeat("7", 1<<17)+`,"t":"`+strings.Repeat("é", 1<<17)+`","u":"https://example.com/`+strings.Repeat("a", 4000)+`"}`)
	want := "- **L:** 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, … +1990 more\n- **N:** " + strings.Repeat("7", 2000) +
		"…\n- **T:** ééé…\n- **U:** https://example.com/" + strings.Repeat("a", 1980) + "…"
	if res.Markdown != want {
		t.Errorf("got %.300q", res.Markdown)
	}
}

// A path that can give several values gives a list, or the one there is.
func TestMultiPaths(t *testing.T) {
	r := parse(t, `{"schemaVersion":1,"mode":"table","fields":{"Auto":"t[*].n","List":{"path":"t[*].n","format":"list"}},"record":{"n":"t[*].n","x":"x"}}`)
	res := render(t, r, "", `[{"t":[{"n":1},{"m":2},{"n":3}]},{"t":[{"n":1}]},{"t":[]}]`)
	if want := "| Auto | List |\n| --- | --- |\n| 1, 3 | 1, 3 |\n| 1 | 1 |\n| | |"; res.Markdown != want {
		t.Errorf("got\n%s\nwant\n%s", res.Markdown, want)
	}
	if got, want := records(res), `[{"n":[1,3],"x":null},{"n":1,"x":null},{"n":null,"x":null}]`; got != want {
		t.Errorf("records %s, want %s", got, want)
	}
	r = parse(t, `{"schemaVersion":1,"mode":"table","fields":{"Auto":"t[*].n","List":{"path":"t[*].n","format":"list"}}}`)
	if got, want := records(render(t, r, "", `[{"t":[{"n":1}]}]`)), `[{"Auto":1,"List":[1]}]`; got != want {
		t.Errorf("records %s, want %s", got, want)
	}
}

func many(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,{"n":%d,"s":"%s"}`, i, strings.Repeat("x", 20))
	}
	return "[" + strings.TrimPrefix(b.String(), ",") + "]"
}

func TestMaxItems(t *testing.T) {
	r := parse(t, `{"schemaVersion":1,"mode":"table","fields":{"N":"n"},"limits":{"maxItems":3}}`)
	for n, want := range map[int]recipe.Meta{
		3: {Mode: "table", Selected: 3, Rendered: 3, Shown: 3},
		4: {Mode: "table", Selected: 4, Rendered: 3, Shown: 3, Truncated: true, Reason: "items"},
	} {
		if res := render(t, r, "", many(n)); !reflect.DeepEqual(res.Meta, want) || len(res.Records) != 3 {
			t.Errorf("%d items: %+v and %d records, want %+v", n, res.Meta, len(res.Records), want)
		}
	}
}

func TestMaxCharsOfATable(t *testing.T) {
	doc := `{"schemaVersion":1,"mode":"table","fields":{"N":"n","S":"s"},"limits":{"maxChars":%d}}`
	// "## T\n\n" 6, header 9, line 14 with its break, a row 29 with its break
	at := 6 + 9 + 14 + 7*29
	for _, c := range []struct{ chars, shown int }{{at, 7}, {at - 1, 6}, {at + 28, 7}} {
		res := render(t, parse(t, fmt.Sprintf(doc, c.chars)), "T", many(9))
		want := recipe.Meta{Mode: "table", Selected: 9, Rendered: 9, Shown: c.shown, Truncated: true, Reason: "chars"}
		if !reflect.DeepEqual(res.Meta, want) || len(res.Records) != 9 {
			t.Errorf("%d: %+v and %d records, want %+v and 9", c.chars, res.Meta, len(res.Records), want)
		}
		if n := utf8.RuneCountInString(res.Markdown); n > c.chars {
			t.Errorf("%d characters, at most %d", n, c.chars)
		}
		if rows := strings.Count(res.Markdown, "\n") - 3; rows != c.shown {
			t.Errorf("%d rows, want %d:\n%s", rows, c.shown, res.Markdown)
		}
	}
}

// Case R-12: a cut never goes through a character, in a document, a cell or a
// title, and meta says that something was cut.
func TestR12CutInsideACharacter(t *testing.T) {
	r := parse(t, `{"schemaVersion":1,"mode":"documents","title":"{{s}}","fields":{"S":{"path":"s","maxChars":3},"C":{"path":"s","format":"code","maxChars":3}},"record":{"s":"s"},"limits":{"maxChars":200}}`)
	for lead := range 4 { // every place in the four bytes
		s := strings.Repeat("a", lead) + strings.Repeat("😀", 300)
		res := render(t, r, "", `{"s":"`+s+`"}`)
		if !utf8.ValidString(res.Markdown) || strings.ContainsRune(res.Markdown, utf8.RuneError) || utf8.RuneCountInString(res.Markdown) > 200 {
			t.Errorf("%d: %q", lead, res.Markdown)
		}
		if !res.Meta.Truncated || res.Meta.Reason != "chars" {
			t.Errorf("%d: %+v", lead, res.Meta)
		}
		want := string([]rune(s)[:3]) + "…"
		if md := res.Documents[0].Markdown; md != "- **S:** "+want+"\n- **C:** `"+want+"`" {
			t.Errorf("%d: %q", lead, md)
		}
		if got := records(res); got != `[{"s":"`+s+`"}]` {
			t.Errorf("%d: a record was cut: %.60s", lead, got)
		}
	}
}

// A single document is cut inside, between characters, and says so.
func TestMaxCharsOfADocument(t *testing.T) {
	r := parse(t, `{"schemaVersion":1,"mode":"document","template":"{{s}}","limits":{"maxChars":200}}`)
	for n, cut := range map[int]bool{200: false, 201: true} {
		res := render(t, r, "", `{"s":"`+strings.Repeat("😀", n)+`"}`)
		want := strings.Repeat("😀", n)
		if cut {
			want = strings.Repeat("😀", 199) + "…"
		}
		if res.Markdown != want || res.Meta.Truncated != cut || res.Meta.Shown != 1 {
			t.Errorf("%d: %d characters, %+v", n, utf8.RuneCountInString(res.Markdown), res.Meta)
		}
		if !utf8.ValidString(res.Markdown) {
			t.Errorf("%d: not UTF-8", n)
		}
	}
}

// Documents are shown whole or not at all, but the first one is cut.
func TestMaxCharsOfDocuments(t *testing.T) {
	r := parse(t, `{"schemaVersion":1,"select":"$","mode":"documents","title":"{{n}}","template":"{{s}}","limits":{"maxChars":200}}`)
	body := `[{"n":1,"s":"` + strings.Repeat("a", 100) + `"},{"n":2,"s":"` + strings.Repeat("b", 100) + `"},{"n":3,"s":"c"}]`
	res := render(t, r, "", body)
	if want := "### 1\n\n" + strings.Repeat("a", 100); res.Markdown != want {
		t.Errorf("got %q, want %q", res.Markdown, want)
	}
	if m := res.Meta; m.Shown != 1 || m.Rendered != 3 || m.Reason != "chars" || len(res.Documents) != 3 {
		t.Errorf("%+v, %d documents", m, len(res.Documents))
	}
	res = render(t, r, "", `[{"n":1,"s":"`+strings.Repeat("a", 300)+`"},{"n":2,"s":"b"}]`)
	if want := "### 1\n\n" + strings.Repeat("a", 192) + "…"; res.Markdown != want {
		t.Errorf("got %q, want %q", res.Markdown, want)
	}
	if m := res.Meta; m.Shown != 1 || m.Rendered != 2 || m.Reason != "chars" {
		t.Errorf("%+v", m)
	}
}

// Records of at most 80 000 bytes of compact JSON are returned.
func TestRecordBytes(t *testing.T) {
	r := parse(t, `{"schemaVersion":1,"mode":"table","fields":{"N":"n"},"record":{"n":"n","s":"s"},"limits":{"maxItems":2}}`)
	item := func(total int) string { // of an array of one
		return `{"n":1,"s":"` + strings.Repeat("x", total-len(`[{"n":1,"s":""}]`)) + `"}`
	}
	for _, c := range []struct {
		name, body string
		records    int
		want       recipe.Meta
	}{
		{"at", `[` + item(80000) + `]`, 1, recipe.Meta{Mode: "table", Selected: 1, Rendered: 1, Shown: 1}},
		{"two at", `[` + item(40000) + `,` + item(40001) + `]`, 2, recipe.Meta{Mode: "table", Selected: 2, Rendered: 2, Shown: 2}},
		{
			"two over", `[` + item(40000) + `,` + item(40002) + `]`, 1,
			recipe.Meta{Mode: "table", Selected: 2, Rendered: 1, Shown: 1, Truncated: true, Reason: "bytes"},
		},
		{
			"over and more items", `[` + item(40000) + `,` + item(40002) + `,1]`, 1,
			recipe.Meta{Mode: "table", Selected: 3, Rendered: 1, Shown: 1, Truncated: true, Reason: "bytes"},
		},
		{
			"the first alone over", `[` + item(80001) + `]`, 0,
			recipe.Meta{
				Mode: "table", Selected: 1, Rendered: 0, Shown: 1, Truncated: true, Reason: "bytes",
				Warnings: []string{"the first record alone is larger than 80000 bytes"},
			},
		},
	} {
		res := render(t, r, "", c.body)
		if !reflect.DeepEqual(res.Meta, c.want) || len(res.Records) != c.records {
			t.Errorf("%s: %+v and %d records, want %+v and %d", c.name, res.Meta, len(res.Records), c.want, c.records)
		}
		if n := len(records(res)); n > 80000 {
			t.Errorf("%s: %d bytes of records", c.name, n)
		}
		if !strings.Contains(res.Markdown, "| 1 |") {
			t.Errorf("%s: the first item is not shown:\n%s", c.name, res.Markdown)
		}
	}
}

func TestTitles(t *testing.T) {
	long := strings.Repeat("ab ", 100)
	for _, c := range []struct{ name, doc, handed, body, want string }{
		{"name", `"mode":"document","fields":{"A":"a"}`, "a*b\n#", `{"a":1}`, "## a\\*b \\#\n\n- **A:** 1"},
		{"none", `"mode":"document","fields":{"A":"a"}`, "", `{"a":1}`, "- **A:** 1"},
		{"title", `"mode":"document","title":"*{{a}}* {{b}}","fields":{"A":"a"}`, "n", `{"a":"1*"}`, "## *1\\**\n\n- **A:** 1\\*"},
		{"empty title", `"mode":"document","title":"{{b}}","fields":{"A":"a"}`, "n", `{"a":1}`, "## n\n\n- **A:** 1"},
		{"lines in a title", `"mode":"document","title":"{{a}}","fields":{"B":"b"}`, "n", `{"a":"x\n# y"}`, "## x # y\n\n- **B:**"},
		{
			"long title", `"mode":"document","title":"{{a}}","fields":{"B":"b"}`, "n", `{"a":"` + long + `"}`,
			"## " + long[:200] + "…\n\n- **B:**",
		},
		{
			"title of a table", `"mode":"table","title":"All {{$.n}}","select":"$.i","fields":{"A":"a"}`, "n", `{"n":3,"i":[{"a":1}]}`,
			"## All 3\n\n| A |\n| --- |\n| 1 |",
		},
		{
			"documents", `"mode":"documents","title":"{{a}}","fields":{"A":"a"}`, "n", `[{"a":"x"},{"a":null}]`,
			"## n\n\n### x\n\n- **A:** x\n\n### Item 2\n\n- **A:**",
		},
		{"labels", `"mode":"table","fields":{"a|b*":"a"}`, "", `[{"a":1}]`, "| a\\|b\\* |\n| --- |\n| 1 |"},
	} {
		res := render(t, parse(t, `{"schemaVersion":1,`+c.doc+`}`), c.handed, c.body)
		if res.Markdown != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, res.Markdown, c.want)
		}
	}
}

// Nothing at all, half-made pages and a recipe without limits give a result.
func TestRenderIsTotal(t *testing.T) {
	for _, r := range []*recipe.Recipe{{}, {Mode: recipe.Document}, {Mode: recipe.Documents}, recipe.Plain()} {
		for _, pages := range [][]*recipe.Page{nil, {nil}, {{}}, {nil, {}}} {
			if res := r.Render(pages, recipe.RenderOptions{}); res.Markdown != "No items." || len(res.Records) != 0 {
				t.Errorf("%s: %q, %d records", r.Mode, res.Markdown, len(res.Records))
			}
		}
	}
}

func TestPlain(t *testing.T) {
	for _, c := range []struct{ body, markdown, records string }{
		{`{"a":30.00,"b":"x|y"}`, "{\"a\":30.00,\"b\":\"x|y\"}", `[{"a":30.00,"b":"x|y"}]`},
		{`[{"a":1},{"a":9007199254740993}]`, `[{"a":1},{"a":9007199254740993}]`, `[{"a":1},{"a":9007199254740993}]`},
		{`"a\n` + "```" + `"`, "\"a\\n```\"", "[\"a\\n```\"]"},
		{`5`, `5`, `[5]`},
	} {
		r := recipe.Plain()
		res := render(t, r, "N", c.body)
		if want := "## N\n\n```json\n" + c.markdown + "\n```"; res.Markdown != want || records(res) != c.records {
			t.Errorf("%s gives\n%s\n%s\nwant\n%s\n%s", c.body, res.Markdown, records(res), want, c.records)
		}
	}
	for _, body := range []string{`null`, `[]`} {
		if res := render(t, recipe.Plain(), "N", body); res.Markdown != "## N\n\nNo items." || records(res) != "[]" {
			t.Errorf("%s gives\n%s\n%s", body, res.Markdown, records(res))
		}
	}
	res := render(t, recipe.Plain(), "", `{"a":"`+strings.Repeat("é", 30000)+`"}`)
	if n := utf8.RuneCountInString(res.Markdown); n != 20000 || !strings.HasSuffix(res.Markdown, "é…\n```") {
		t.Errorf("%d characters, ending %q", n, res.Markdown[len(res.Markdown)-20:])
	}
	if !res.Meta.Truncated || res.Meta.Reason != "chars" || len(res.Records) != 1 {
		t.Errorf("%+v", res.Meta)
	}
}
