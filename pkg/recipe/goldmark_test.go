package recipe_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	goldhtml "github.com/yuin/goldmark/renderer/html"
	"golang.org/x/net/html"

	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// The properties here are checked by readers of Markdown and HTML that know
// nothing of this package: what goes in is what a person sees, and no value
// does anything.

// reader lets everything act that Markdown can make act.
var reader = goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithRendererOptions(goldhtml.WithUnsafe()))

// page is what a person's viewer makes of Markdown.
func page(t testing.TB, md string) *html.Node {
	t.Helper()
	var out bytes.Buffer
	if err := reader.Convert([]byte(md), &out); err != nil {
		t.Fatal(err)
	}
	doc, err := html.Parse(&out)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// elements gives the elements of a name in document order.
func elements(n *html.Node, name string) []*html.Node {
	var all []*html.Node
	for d := range n.Descendants() {
		if d.Type == html.ElementNode && d.Data == name {
			all = append(all, d)
		}
	}
	return all
}

// textOf is the text in a node.
func textOf(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return b.String()
}

// only fails when a page has an element or a comment that is not allowed.
func only(t testing.TB, md string, n *html.Node, allowed ...string) {
	t.Helper()
	allowed = append(allowed, "html", "head", "body")
	for d := range n.Descendants() {
		switch d.Type {
		case html.CommentNode, html.DoctypeNode, html.RawNode:
			t.Fatalf("%q has a comment in\n%s", d.Data, md)
		case html.ElementNode:
			if !slices.Contains(allowed, d.Data) {
				t.Fatalf("a value makes a %s element in\n%s", d.Data, md)
			}
		}
	}
}

func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func words(s string) string { return strings.Join(strings.Fields(s), " ") }

// nasty makes texts out of what means something in Markdown, HTML, URLs or
// Unicode.
type nasty struct{ *rand.Rand }

var nastyParts = []string{
	"a", "b1", "word", " ", "  ", "\t", "\n", "\n\n", "\r\n", "\u2028", "|", "||", `\`, `\\`, `\|`, "`", "``", "```", "~", "~~", "~~~",
	"*", "**", "_", "__", "#", "# ", "## ", ">", "> ", "- ", "+ ", "-", "---", "===", "=", "1. ", "2) ", "0", "99", ".", ":", ":-", "| --- |", "| - | - |",
	"[", "]", "](", ")", "(", "![", "!", "[x]: http://e.com", "[x]", "[^1]", "[ ] ", "<", ">", "<b>", "</b>", "<script>", "<!--", "-->", "<?", "<!x", "<http://e.com>",
	"&", "&amp;", "&#60;", "&lt;", "&copy", ";", "http://e.com/x_y", "www.e.com", "a@e.com", "javascript:x", "mailto:a@e.com", "https://e.com/~u",
	"{{a}}", "{{", "}}", "é", "日本", "😀", "👩\u200d👧", "e\u0301", "\u00a0", "\u200b", "\u202e", "\ufeff", "\x00", "\x1b", "    ", "     code", "\tcode", "$x$", "H~2~O", "'", "\"", "/", "%20", "+1", "-5", "…",
}

func (n nasty) text() string {
	var b strings.Builder
	for range 1 + n.IntN(9) {
		b.WriteString(nastyParts[n.IntN(len(nastyParts))])
	}
	return b.String()
}

func quoteJSON(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// naughty are the hostile strings of the corpus.
func naughty(t testing.TB) []string {
	t.Helper()
	body, err := os.ReadFile("testdata/corpus/edge-naughty-strings.json")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct{ Items []struct{ Text string } }
	if err := json.Unmarshal(body, &doc); err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, i := range doc.Items {
		all = append(all, i.Text)
	}
	return all
}

// hostile gives every string of the corpus and many made ones.
func hostile(t testing.TB, made int) []string {
	all := naughty(t)
	n := nasty{rand.New(rand.NewPCG(4, 2026))}
	for range made {
		all = append(all, n.text())
	}
	return all
}

// Every row of a table has a cell for each field after a reader took it apart,
// and every cell of text or code reads as the value.
func TestTableReadsAsItsValues(t *testing.T) {
	r := parse(t, `{"schemaVersion":1,"fields":{
		"a|b*":{"path":"v","maxChars":20000},
		"Code":{"path":"v","format":"code","maxChars":20000},
		"Link":{"path":"v","format":"link","maxChars":20000},
		"List":{"path":"l","format":"list","join":"; ","maxChars":20000},
		"Around":{"path":"v","prefix":"!","suffix":"*","maxChars":20000},
		"Labelled":{"path":"u","format":"link","text":"v","maxChars":20000}},
		"record":{"v":"v"},"limits":{"maxItems":1000,"maxChars":200000}}`)
	for chunk := range slices.Chunk(hostile(t, 1500), 100) {
		var items []string
		for _, s := range chunk {
			q := quoteJSON(s)
			items = append(items, `{"v":`+q+`,"l":["x",`+q+`],"u":"https://example.com/p"}`)
		}
		res := render(t, r, "", "["+strings.Join(items, ",")+"]")
		doc := page(t, res.Markdown)
		only(t, res.Markdown, doc, "table", "thead", "tbody", "tr", "th", "td", "a", "code")
		if n := len(elements(doc, "table")); n != 1 {
			t.Fatalf("%d tables in\n%s", n, res.Markdown)
		}
		rows := elements(doc, "tr")
		if len(rows) != len(chunk)+1 {
			t.Fatalf("%d rows, want %d:\n%s", len(rows), len(chunk)+1, res.Markdown)
		}
		if got := textOf(elements(rows[0], "th")[0]); got != "a|b*" {
			t.Errorf("the label reads %q", got)
		}
		lines := strings.Split(res.Markdown, "\n")
		for i, row := range rows[1:] {
			cells := elements(row, "td")
			if len(cells) != 6 {
				t.Fatalf("%d cells, want 6: %s", len(cells), lines[i+2])
			}
			want := visible(chunk[i])
			around := want
			if want != "" {
				around = "!" + want + "*"
			}
			list := "x; " + want
			if want == "" {
				list = "x"
			}
			label := want
			if want == "" {
				label = "https://example.com/p"
			}
			for j, want := range []string{want, want, want, list, around, label} {
				if got := textOf(cells[j]); strings.Trim(got, " \t") != strings.Trim(want, " \t") {
					t.Errorf("cell %d reads %q, want %q, of %s", j, got, want, lines[i+2])
				}
			}
			a := elements(cells[5], "a")
			if len(a) == 0 || attr(a[0], "href") != "https://example.com/p" {
				t.Errorf("the link leads elsewhere: %s", lines[i+2])
			}
		}
	}
}

// A document's lines, titles, code and lists read as the values, each in its
// place.
func TestDocumentReadsAsItsValues(t *testing.T) {
	r := parse(t, `{"schemaVersion":1,"mode":"documents","title":"{{v}}","fields":{
		"T":{"path":"v","maxChars":20000},
		"C":{"path":"v","format":"code","maxChars":20000},
		"L":{"path":"l","format":"list","join":"\n","maxChars":20000},
		"H":{"path":"h","format":"html","maxChars":20000},
		"E":"e"},"record":{"v":"v"},"limits":{"maxItems":1000,"maxChars":200000}}`)
	for chunk := range slices.Chunk(hostile(t, 1500), 100) {
		var items []string
		for _, s := range chunk {
			items = append(items, `{"v":`+quoteJSON(s)+`,"l":["x",`+quoteJSON(s)+`],"h":`+quoteJSON("<i>"+html.EscapeString(s)+"</i>")+`,"e":"end"}`)
		}
		res := render(t, r, "", "["+strings.Join(items, ",")+"]")
		if len(res.Documents) != len(chunk) || res.Meta.Shown != len(chunk) {
			t.Fatalf("%d documents, %+v", len(res.Documents), res.Meta)
		}
		doc := page(t, res.Markdown)
		headings := elements(doc, "h3")
		if len(headings) != len(chunk) {
			t.Fatalf("%d headings, want %d", len(headings), len(chunk))
		}
		for i, d := range res.Documents {
			want := visible(chunk[i])
			if got := textOf(headings[i]); strings.TrimSpace(want) != "" && strings.Trim(got, " \t") != want && len(want) < 200 {
				t.Errorf("the heading reads %q, want %q", got, want)
			}
			own := page(t, d.Markdown)
			only(t, d.Markdown, own, "ul", "li", "p", "strong", "code", "a")
			lists := elements(own, "ul")
			if len(lists) == 0 {
				t.Fatalf("no list in\n%s", d.Markdown)
			}
			var lines []*html.Node
			for c := range lists[0].ChildNodes() {
				if c.Type == html.ElementNode {
					lines = append(lines, c)
				}
			}
			if len(lines) != 5 {
				t.Fatalf("%d lines, want 5:\n%s", len(lines), d.Markdown)
			}
			listed := "L: x " + want
			for j, want := range []string{"T: " + want, "C: " + want, listed, "H: " + want, "E: end"} {
				if got := words(textOf(lines[j])); got != words(want) {
					t.Errorf("line %d reads %q, want %q, in\n%s", j, got, words(want), d.Markdown)
				}
			}
		}
	}
}

// A link leads to the value's address, whatever is in it.
func TestLinksLeadWhereTheValueSays(t *testing.T) {
	r := parse(t, `{"schemaVersion":1,"fields":{"L":{"path":"v","format":"link"},"I":{"path":"v","format":"image"}},"record":{"v":"v"}}`)
	doc := parse(t, `{"schemaVersion":1,"mode":"document","template":"[t]({{v}}) <{{v}}> {{v|link}}"}`)
	for _, s := range hostile(t, 2000) {
		s = "https://example.com/" + strings.ReplaceAll(s, "%", "")
		res := render(t, r, "", `[{"v":`+quoteJSON(s)+`}]`)
		md := render(t, doc, "", `[{"v":`+quoteJSON(s)+`}]`)
		links := append(elements(page(t, res.Markdown), "a"), elements(page(t, md.Markdown), "a")...)
		if len(links) < 4 {
			t.Fatalf("%d links in\n%s\n%s", len(links), res.Markdown, md.Markdown)
		}
		want := strings.Trim(s, " \t\r\n")
		for _, a := range links[:3] {
			if got, err := url.PathUnescape(attr(a, "href")); err != nil || got != strings.ToValidUTF8(want, "\ufffd") {
				t.Errorf("%q leads to %q, %v\n%s\n%s", want, got, err, res.Markdown, md.Markdown)
			}
		}
	}
}

// No value makes a link to anywhere but http, https and mail, or an image,
// wherever the author puts it.
func TestTemplatesLetNoValueAct(t *testing.T) {
	values := append(hostile(t, 300), "javascript:alert(1)", "java", "script:alert(1)", "javascript&#58;alert(1)", "javascript&#58", ";alert(1)",
		"(javascript:alert(1))", ": javascript:alert(1)", "[x](javascript:alert(1))", "![x](http://e.com)", "<img src=x onerror=alert(1)>", "&colon;alert(1)")
	n := nasty{rand.New(rand.NewPCG(7, 2026))}
	templates := []string{
		"[t]({{a}})", "[t]({{a}}{{b}})", "[t](<{{a}}{{b}}>)", "<{{a}}>", "[t]{{a}}", "[{{a}}]{{b}}", "!{{a}}", "!{{u|link}}", "{{a}}[t](http://a.example)",
		"\\{{a}}", "{{a}}{{b}}", "> {{a}}\n> {{b}}", "- {{a}}\n- {{b}}", "| {{a}} | {{b}} |", "# {{a}}", "`{{a}}`{{b}}", "**{{a}}**", "{{a|code}}{{b|code}}",
		"{{a|markdown}}{{b|markdown}}", "[t]{{a|markdown}}", "!{{a|markdown}}", "\\{{a|markdown}}", "`x` {{a|markdown}} {{b|markdown}} `", "{{a|markdown}}(http://a.example)",
		"1. {{a|markdown}}\n2. {{b|markdown}}", "> {{a|markdown}}", "x\n10. {{a|markdown}}", "***{{a|markdown}}***", "x\n    {{a|markdown}}\nend", "a | {{b|markdown}}\n- | -\n{{a|markdown}} | c",
		"[x]: {{a}}", "{{a}}: {{b}}\n\n[t]", "{{u|image}}!{{u|image}}", "{{a|html}}{{b|html}}",
	}
	for _, tpl := range templates {
		r := parse(t, `{"schemaVersion":1,"mode":"document","template":`+quoteJSON(tpl)+`}`)
		for range 400 {
			a, b := values[n.IntN(len(values))], values[n.IntN(len(values))]
			if n.IntN(2) == 0 {
				a = n.text()
			}
			body := fmt.Sprintf(`{"a":%s,"b":%s,"u":"https://e.com/"}`, quoteJSON(a), quoteJSON(b))
			harmless(t, render(t, r, "", body).Markdown)
		}
	}
}

// harmless fails when Markdown holds an image, a tag of a value, or a link to
// anywhere but where links may lead.
func harmless(t testing.TB, md string) {
	t.Helper()
	doc := page(t, md)
	only(t, md, doc, "p", "a", "code", "pre", "ul", "ol", "li", "blockquote", "em", "strong", "del", "hr", "br", "input",
		"h1", "h2", "h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td")
	for _, a := range elements(doc, "a") {
		u, err := url.Parse(strings.Trim(attr(a, "href"), " "))
		if err != nil {
			continue // no browser finds a scheme in it that this does not
		}
		if s := strings.ToLower(u.Scheme); s != "" && s != "http" && s != "https" && s != "mailto" {
			t.Fatalf("a link to %q in\n%s", attr(a, "href"), md)
		}
	}
}

// The server's Markdown keeps to itself: whatever it holds, it makes no
// heading above the fourth level, no image, no tag and no link to elsewhere,
// and what comes behind it stays what it is.
func checkMarkdownValue(t testing.TB, value string) {
	t.Helper()
	r, report := recipe.Parse(recipe.Object{
		{"schemaVersion", json.Number("1")},
		{"mode", "documents"},
		{"title", "T{{n}}"},
		{"fields", recipe.Object{{"F", recipe.Object{{"path", "v"}, {"format", "markdown"}, {"maxChars", json.Number("20000")}}}, {"E", "e"}}},
	})
	tr, report2 := recipe.Parse(recipe.Object{
		{"schemaVersion", json.Number("1")}, {"mode", "documents"}, {"title", "T{{n}}"}, {"template", "{{v|markdown}} after\n\n- E: {{e}}"},
	})
	if !report.OK() || !report2.OK() {
		t.Fatal(report, report2)
	}
	for _, r := range []*recipe.Recipe{r, tr} {
		body := `[{"n":1,"v":` + quoteJSON(value) + `,"e":"end"},{"n":2}]`
		p, err := r.Read([]byte(body), 5, nil)
		if err != nil {
			t.Fatal(err)
		}
		md := r.Render([]*recipe.Page{p}, recipe.RenderOptions{}).Markdown
		harmless(t, md)
		doc := page(t, md)
		for _, name := range []string{"h1", "h2"} {
			if len(elements(doc, name)) > 0 {
				t.Fatalf("a %s in\n%s", name, md)
			}
		}
		var titles []string
		for _, h := range elements(doc, "h3") {
			titles = append(titles, textOf(h))
		}
		if !slices.Equal(titles, []string{"T1", "T2"}) {
			t.Fatalf("headings %q in\n%s", titles, md)
		}
		found := false
		for _, li := range elements(doc, "li") {
			found = found || words(textOf(li)) == "E: end" && (li.Parent.Parent == nil || li.Parent.Parent.Data == "body")
		}
		if !found {
			t.Fatalf("what follows the value is no longer what it was:\n%s", md)
		}
	}
}

func TestMarkdownValuesKeepToThemselves(t *testing.T) {
	for _, s := range hostile(t, 0) {
		checkMarkdownValue(t, s)
	}
	n := nasty{rand.New(rand.NewPCG(9, 2026))}
	for range 1500 {
		checkMarkdownValue(t, n.markdown())
	}
}

// markdown makes a text whose lines are blocks of all kinds, put together
// without a plan.
func (n nasty) markdown() string {
	var b strings.Builder
	for range 1 + n.IntN(8) {
		for range n.IntN(3) {
			b.WriteString([]string{"", " ", "  ", "   ", "    ", "\t", "> ", ">", "- ", "* ", "1. ", "10) ", "-   ", "-\t"}[n.IntN(14)])
		}
		switch n.IntN(12) {
		case 0:
		case 1:
			b.WriteString([]string{"```", "~~~", "````", "```go", "~~~~ x", "``` `"}[n.IntN(6)])
		case 2:
			b.WriteString([]string{"# h", "## h #", "###### h", "===", "---", "-", "=", "***", "- - -", "#"}[n.IntN(10)])
		case 3:
			b.WriteString([]string{"<b>", "<script>x", "<!-- c", "<img src=x>", "![i](http://e.com/i)", "![i][r]", "[r]: javascript:x", "[l](javascript:x)", "[![i](u)](v)"}[n.IntN(9)])
		case 4:
			b.WriteString([]string{"| a | b |", "| - | - |", "a | b", "-|-", "`a | ![i](u) `", ":-"}[n.IntN(6)])
		case 5:
			b.WriteString([]string{"`", "``", "` `` `", "\\`", "\\", "`a`", "x `b", "c` y"}[n.IntN(8)])
		default:
			b.WriteString(n.text())
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// However little room there is, what is shown is the start of the whole: no
// link, code block, table, escape or visible character is taken apart, and a
// result that was cut says so.
func TestCutsAreCleanForAReader(t *testing.T) {
	markdown := "# Top\n\nText with *emphasis*, `code | span`, [a link](https://example.com/a_(b)) and <https://example.com/auto>.\n\n" +
		"- one\n  ```go\n  if a < b {\n    x := \"`\"\n  }\n  ```\n- two **bold** \\* 👩\u200d👩\u200d👧 e\u0301\n\n> quote\n> ```\n> in it\n> ```\n\n" +
		"| a | b |\n| - | - |\n| 1 | 2 |\n| 3 | [x](https://e.com) |\n\nend &amp; of it"
	for _, doc := range []string{
		`"mode":"document","fields":{"First":"a","Body":{"path":"b","format":"markdown"},"Link":{"path":"u","format":"link"},"Code":{"path":"a","format":"code"},"List":{"path":"l","format":"list","join":"\n"}}`,
		`"mode":"document","title":"{{a}}","template":"{{a}}\n\n{{b|markdown}}\n\n| A | B |\n| - | - |\n| {{a}} | {{u|link}} |\n\n{{l}}"`,
		`"mode":"document","template":"> {{b|markdown}}\n\n1. {{b|markdown}}"`,
		`"mode":"documents","title":"{{a}}","template":"{{b|markdown}}"`,
		`"mode":"table","title":"T [x](https://e.com) {{$.a}}","fields":{"A":"a","U":{"path":"u","format":"link"},"C":{"path":"c","format":"code"},"L":"l"}`,
	} {
		r := parse(t, `{"schemaVersion":1,`+doc+`}`)
		body := `{"a":"a*b_ [c](d) 😀","b":` + quoteJSON(markdown) + `,"u":"https://example.com/(x)","c":"a|b","l":["x","- y","z|"]}`
		whole := render(t, r, "Name", body)
		all := words(textOf(page(t, whole.Markdown)))
		for n := 20; n < len([]rune(whole.Markdown)); n++ { // Parse allows 200 and more
			r.Limits.MaxChars = n
			res := render(t, r, "Name", body)
			if got := len([]rune(res.Markdown)); got > n {
				t.Fatalf("%d characters, at most %d", got, n)
			}
			if !res.Meta.Truncated || res.Meta.Reason != "chars" {
				t.Fatalf("cut at %d: %+v\n%s", n, res.Meta, res.Markdown)
			}
			harmless(t, res.Markdown)
			shown := words(textOf(page(t, res.Markdown)))
			for _, part := range strings.Split(strings.TrimRight(shown, "…"), "…") { // a cut title has its own mark
				part = strings.TrimSpace(part)
				if !strings.Contains(all, part) {
					t.Fatalf("cut at %d shows %q, which the whole does not\n%s", n, part, res.Markdown)
				}
			}
			for _, row := range elements(page(t, res.Markdown), "tr") {
				cells := len(elements(row, "td")) + len(elements(row, "th"))
				if want := len(elements(elements(page(t, whole.Markdown), "tr")[0], "th")); cells != want {
					t.Fatalf("cut at %d: %d cells, want %d\n%s", n, cells, want, res.Markdown)
				}
			}
		}
	}
}

// The same recipe and answer give the same result, byte for byte.
func TestRenderingIsDeterministic(t *testing.T) {
	n := nasty{rand.New(rand.NewPCG(12, 2026))}
	for range 200 {
		var b strings.Builder
		for i := range 1 + n.IntN(5) {
			fmt.Fprintf(&b, `,{"a":%s,"b":[%s,%d],"c":%d}`, quoteJSON(n.text()), quoteJSON(n.text()), n.IntN(9), i)
		}
		body := "[" + b.String()[1:] + "]"
		for _, doc := range []string{
			`"fields":{"A":"a","B":"b","C":{"path":"c","format":"currency","currency":"@.a"}}`,
			`"mode":"documents","title":"{{a}}","template":"{{a|markdown}}{{b}}"`,
		} {
			doc = `{"schemaVersion":1,` + doc + `,"limits":{"maxChars":300}}`
			one, two := render(t, parse(t, doc), "N", body), render(t, parse(t, doc), "N", body)
			if one.Markdown != two.Markdown || records(one) != records(two) || documents(one) != documents(two) || metaText(one.Meta) != metaText(two.Meta) {
				t.Fatalf("two results of %s under %s", body, doc)
			}
		}
	}
}

// Without options that ask for others, a number keeps its digits, in the
// Markdown and in the records.
func TestNumberDigitsSurvive(t *testing.T) {
	n := rand.New(rand.NewPCG(13, 2026))
	r := parse(t, `{"schemaVersion":1,"fields":{"N":{"path":"n","format":"number"},"T":"n","C":{"path":"n","format":"currency"},"P":{"path":"n","format":"percent"},"J":{"path":"n","format":"json"}},"record":{"n":"n"}}`)
	for range 2000 {
		num := fmt.Sprint(1 + n.IntN(9))
		for range n.IntN(40) {
			num += fmt.Sprint(n.IntN(10))
		}
		if n.IntN(2) == 0 {
			num += "."
			for range 1 + n.IntN(20) {
				num += fmt.Sprint(n.IntN(10))
			}
		}
		if n.IntN(3) == 0 {
			num = "-" + num
		}
		res := render(t, r, "", `{"n":`+num+`}`)
		if want := "| " + num + " | " + num + " | " + num + " | " + num + " % | `" + num + "` |"; strings.Split(res.Markdown, "\n")[2] != want {
			t.Fatalf("%s became %s", num, res.Markdown)
		}
		if got := records(res); got != `[{"n":`+num+`}]` {
			t.Fatalf("%s became %s", num, got)
		}
	}
}
