package cortex

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestPlainLine(t *testing.T) {
	for in, want := range map[string]string{
		`a\_b and snake_case`:                         `a_b and snake_case`,
		`**Price:** 5.00`:                             `Price: 5.00`,
		`*really* 3 * 4`:                              `really 3 * 4`,
		"the `code` here":                             `the code here`,
		`[the page](https://example.com/a_b)`:         `the page (https://example.com/a_b)`,
		`![logo](https://example.com/x.png)`:          `!logo (https://example.com/x.png)`,
		`AT&amp;T &lt;b&gt;`:                          `AT&T <b>`,
		`line<br>line<BR />line`:                      `line line line`,
		`\<b\>no tag\</b\>`:                           `<b>no tag</b>`,
		`1 < 2`:                                       `1 < 2`,
		`C:\Users ends in \`:                          `C:\Users ends in \`,
		`日本語\*`:                                       `日本語*`,
		"no Markdown at all, and this is the way out": "no Markdown at all, and this is the way out",
	} {
		if got := plainLine(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}

func TestFold(t *testing.T) {
	for in, want := range map[string]string{
		"Straße": "straße", "CAFÉ": "cafe", "cafe\u0301": "cafe", "ＡＢＣ１": "abc1", "Ünïcödé": "unicode",
		"ﬁn": "fin", "ΑΘΗΝΑ": "αθηνα", "ёлка": "елка", "がバパ": "がバパ", "กี่": "กี่", "ｶﾀｶﾅ": "カタカナ", "snake_Case": "snake_case",
	} {
		if got := fold(in); got != want {
			t.Errorf("%q folds to %q, want %q", in, got, want)
		}
	}
}

func TestParts(t *testing.T) {
	for in, want := range map[string][]string{
		"snake_case": {"snake", "case"}, "camelCase": {"camel", "case"}, "HTTPServer": {"http", "server"}, "getUserByID2": {"get", "user", "by", "id", "2"},
		"RE2026": {"re", "2026"}, "_private": {"private"}, "word": nil, "Word": nil, "WORD": nil, "1234": nil, "__": nil, "ÄnderungsDatum": {"anderungs", "datum"},
	} {
		if got := parts(in); !slices.Equal(got, want) {
			t.Errorf("%q has parts %q, want %q", in, got, want)
		}
	}
}

// Forms of one word have one stem; words that differ keep different ones.
func TestStem(t *testing.T) {
	for _, forms := range []string{
		"invoice invoices invoiced invoicing", "key keys", "policy policies", "stop stops stopped stopping", "address", "status",
		"rechnung rechnungen", "kunde kunden", "factura facturas", "rotate rotates rotated rotating", "bus", "analysis", "error errores errors",
	} {
		got := map[string]bool{}
		for f := range strings.FieldsSeq(forms) {
			got[stem(f)] = true
		}
		if len(got) != 1 {
			t.Errorf("%s have the stems %v", forms, got)
		}
	}
	for _, w := range []string{"string", "thing", "red", "bed", "ing", "abc1s", "los", "x"} {
		if s := stem(w); len(s) < 2 && s != w {
			t.Errorf("%q has the stem %q", w, s)
		}
	}
	if a, b := stem("billing"), stem("bill"); a != b {
		t.Errorf("billing %q, bill %q", a, b)
	}
}

func TestIndexed(t *testing.T) {
	for in, want := range map[string]string{
		"plain words": "plain words",
		"東京都":         " 東京 京都 都 ",
		"東":           " 東 ",
		"API全文v2":     "API 全文 文 v2",
		"パスワード":       " パス スワ ワー ード ド ",
	} {
		if got := indexed(in); got != want {
			t.Errorf("%q is indexed as %q, want %q", in, got, want)
		}
	}
}

func TestExtras(t *testing.T) {
	if got, want := extras("The getUserById keys", "snake_case keys 東京"), "get user by id key snake snak case cas"; got != want {
		t.Errorf("extras %q, want %q", got, want)
	}
}

func TestSplit(t *testing.T) {
	long := strings.Repeat("Twelve chars", 200) // 2 400, a space after each sixth of twelve
	sentence := "This sentence has exactly fifty characters in it. "
	for _, c := range []struct {
		name, md string
		want     []chunk
	}{
		{"nothing", "", []chunk{{"", ""}}},
		{"headings alone", "# A\n\n## B", []chunk{{"A > B", ""}}},
		{"paragraphs together", "one\n\ntwo\nthree\n\n\n", []chunk{{"", "one\n\ntwo\nthree"}}},
		{"path of headings", "intro\n# A\na\n### C\nc\n## B ##\nb\n# D\nd", []chunk{{"", "intro"}, {"A", "a"}, {"A > C", "c"}, {"A > B", "b"}, {"D", "d"}}},
		{"no headings", "#nospace\n####### seven\n    # code\n\\# escaped", []chunk{{"", "#nospace\n####### seven\n    # code\n# escaped"}}},
		{"code is left alone", "```sh\n# no heading\nrm *.tmp && a\\_b\n```\nafter", []chunk{{"", "# no heading\nrm *.tmp && a\\_b\nafter"}}},
		{"unclosed code", "~~~\n# x", []chunk{{"", "# x"}}},
		{"at the target", strings.Repeat("a", 600) + "\n\n" + strings.Repeat("b", 598), []chunk{{"", strings.Repeat("a", 600) + "\n\n" + strings.Repeat("b", 598)}}},
		{"one over the target", strings.Repeat("a", 600) + "\n\n" + strings.Repeat("b", 599), []chunk{{"", strings.Repeat("a", 600)}, {"", strings.Repeat("b", 599)}}},
		{"a paragraph at the limit", strings.Repeat("é", 1500), []chunk{{"", strings.Repeat("é", 1500)}}},
		{"one over, no place to cut", strings.Repeat("é", 1501), []chunk{{"", strings.Repeat("é", 1500)}, {"", "é"}}},
		{"at a space", long, []chunk{{"", long[:1494]}, {"", long[1495:]}}},
		{"at sentences", strings.Repeat(sentence, 31), []chunk{{"", strings.TrimSpace(strings.Repeat(sentence, 30))}, {"", strings.TrimSpace(sentence)}}},
		{"at Chinese sentences", strings.Repeat("这句话正好有十个字吗。", 140), []chunk{{"", strings.Repeat("这句话正好有十个字吗。", 136)}, {"", strings.Repeat("这句话正好有十个字吗。", 4)}}},
	} {
		if got := split(c.md); fmt.Sprintf("%q", got) != fmt.Sprintf("%q", c.want) {
			t.Errorf("%s:\ngot  %.300q\nwant %.300q", c.name, got, c.want)
		}
	}
}

func TestSplitTable(t *testing.T) {
	row := "| " + strings.Repeat("x", 95) + " |" // 99 characters
	md := "| Name |\n| --- |\n" + strings.Repeat(row+"\n", 20)
	got := split(md)
	if len(got) != 2 {
		t.Fatalf("%d chunks", len(got))
	}
	rows := 0
	for _, c := range got {
		lines := strings.Split(c.text, "\n")
		if lines[0] != "| Name |" {
			t.Errorf("a part of the table begins with %q", lines[0])
		}
		for _, l := range lines[1:] {
			if l != row {
				t.Errorf("a row was cut: %q", l)
			}
			rows++
		}
	}
	if rows != 20 {
		t.Errorf("%d rows", rows)
	}
}

// What a reader sees as one character is not cut.
func TestSplitCharacters(t *testing.T) {
	for _, char := range []string{"👩‍👩‍👧", "👍🏽", "🇩🇪", "e\u0301", "ก็"} {
		n := utf8.RuneCountInString(char)
		for lead := range n {
			text := strings.Repeat("x", lead) + strings.Repeat(char, 1600/n+1)
			for i, c := range split(text) {
				rest := strings.TrimPrefix(c.text, strings.Repeat("x", lead))
				if strings.Trim(strings.ReplaceAll(rest, char, ""), "x") != "" {
					t.Errorf("%q after %d: chunk %d was cut inside: ends %q", char, lead, i, c.text[max(0, len(c.text)-30):])
				}
			}
		}
	}
}

func TestSplitHasAnEnd(t *testing.T) {
	md := strings.Repeat("# h\n\nx\n\n", maxChunks+1)
	if n := len(split(md)); n != maxChunks {
		t.Errorf("%d chunks, want %d", n, maxChunks)
	}
	if n := len(split(strings.Repeat("# h\n\nx\n\n", maxChunks))); n != maxChunks {
		t.Errorf("%d chunks, want %d", n, maxChunks)
	}
}

func TestSnippet(t *testing.T) {
	far := strings.Repeat("filler words ", 60)
	for _, c := range []struct {
		name, query, text, want string
	}{
		{"marked", "keys", "A Key is a key, not a monkey.", "A **Key** is a **key**, not a monkey."},
		{"accents", "cafe", "Das Café am Eck", "Das **Café** am Eck"},
		{"parts", "user", "call getUserById or user_id", "call **getUserById** or **user_id**"},
		{"pairs", "東京", "東京都と京都、東京", "**東京**都と京都、**東京**"},
		{"one character", "都", "東京都", "東京**都**"},
		{"nothing found", "zebra", "only this", "only this"},
		{"lines become one", "two", "one\n\n# two\nthree", "one # **two** three"},
		{"nothing acts", "word", "# <script>alert(1)</script> [x](http://e.com) `c` *b* word __i__ a|b &lt; ~~s~~", `\# \<script\>alert(1)\</script\> \[x\](http://e.com) \` + "`c\\`" + ` \*b\* **word** \_\_i\_\_ a\|b \&lt; \~\~s\~\~`},
		{"stars in a match", "a_b", "*a_b*", `\***a_b**\*`},
		{"no list", "first", "1. first", `1\. **first**`},
		{"far in", "needle", far + "the needle here " + far, "… " + "filler words filler words filler words filler words the **needle** here "},
	} {
		got := snippet(c.text, parse(c.query).marks)
		if c.name == "far in" {
			if !strings.HasPrefix(got, c.want) || !strings.HasSuffix(got, " …") {
				t.Errorf("%s: got %q", c.name, got)
			}
			if n := utf8.RuneCountInString(got); n > 260 {
				t.Errorf("%s: %d characters", c.name, n)
			}
			continue
		}
		if got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, got, c.want)
		}
	}
}

// The part with most words of the question is shown, not the first.
func TestSnippetShowsTheBestPart(t *testing.T) {
	text := "key " + strings.Repeat("filler ", 80) + "the signing key is replaced " + strings.Repeat("filler ", 80)
	if got := snippet(text, parse("signing key replaced").marks); !strings.Contains(got, "the **signing** **key** is **replaced** filler") {
		t.Errorf("got %q", got)
	}
}
