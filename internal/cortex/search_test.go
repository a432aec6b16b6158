package cortex_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/cortex"
)

// What a word is: found are the questions that find the text, not those that
// do not.
func TestWords(t *testing.T) {
	for _, c := range []struct {
		text       string
		found, not []string
	}{
		{"Das Café in Zürich", []string{"cafe", "CAFÉ", "cafe\u0301", "zurich", "Zürich"}, []string{`"caf"`}},
		{"snake_case_name here", []string{"snake_case_name", "SNAKE_CASE_NAME", "snake", "case name", `"snake_case_name"`}, []string{`"case_name"`}},
		{"call getUserById now", []string{"getUserById", "getuserbyid", "get user by id", "user", `"getUserById now"`}, []string{`"get user"`}},
		{"HTTPServerError raised", []string{"http server error", "httpservererror"}, nil},
		{"wrapper orders.create saved", []string{"orders.create", "orders create", `"orders create"`, "order"}, []string{`"create orders"`}},
		{"ticket ABC-1234 closed", []string{"ABC-1234", "abc 1234", "1234", `"abc-1234"`}, []string{`"1234 abc"`}},
		{"invoice RE2026 paid", []string{"RE2026", "2026", "re2026"}, nil},
		{"id 550e8400-e29b-41d4-a716-446655440000", []string{"550e8400-e29b-41d4-a716-446655440000", "446655440000", "e29b-41d4"}, []string{`"41d4 e29b"`}},
		{"the policies changed", []string{"policy", "policies", "change", "changing"}, []string{`"policy"`}},
		{"Die Eingangsrechnungen sind da", []string{"Eingangsrechnung", "eingangs", "rechnung"}, nil},
		{"2026-12-01T10:30:00Z", []string{"2026-12-01", "2026"}, nil},
		{"mail to jo.doe@example.com", []string{"jo.doe@example.com", "example.com"}, nil},
		{"全文検索の設定", []string{"検索", "全文検索", "設", "検索設定", "設定"}, []string{`"検索設定"`, "文書"}},
		{"退款流程说明", []string{"退款", "流程", "款流", "退款流程说明", "如何退款"}, []string{`"退流"`}},
		{"한국어 검색기능은", []string{"검색", "기능", "검색기능"}, []string{"검능"}},
		{"ห้างสรรพสินค้า", []string{"สินค้า"}, nil},
		{"ＦＵＬＬ ｗｉｄｔｈ ｶﾀｶﾅ", []string{"full width", "カタカナ", "ﾀｶ"}, nil},
		{"Схема базы данных", []string{"схема", "БАЗЫ"}, nil},
		{"escaped snake\\_case and **bold**text", []string{"snake_case", "bold"}, nil},
		{"C++ and C# and .NET", []string{"c++", ".net", "C#"}, nil},
		{"don’t panic", []string{"don't", "panic’s"}, nil},
	} {
		x, _ := newIndex(t, cortex.Options{})
		add(t, x, cortex.Page{Wrapper: "w", Key: "1", Text: c.text}, cortex.Page{Wrapper: "w", Key: "2", Text: "nothing of that in here"})
		for _, q := range c.found {
			if got := keys(t, x, cortex.Query{Text: q}); len(got) == 0 || got[0] != "1" {
				t.Errorf("%q does not find %q: %v", q, c.text, got)
			}
		}
		for _, q := range c.not {
			if got := keys(t, x, cortex.Query{Text: q}); slices.Contains(got, "1") {
				t.Errorf("%q finds %q", q, c.text)
			}
		}
	}
}

func TestOrder(t *testing.T) {
	at := func(p cortex.Page, age time.Duration) cortex.Page {
		p.At = now.Add(-age)
		return p
	}
	mk := func(key, title, text string) cortex.Page {
		return cortex.Page{Wrapper: "w", Key: key, Title: title, Text: text, At: now}
	}
	filler := strings.Repeat(" some other words", 20)
	for _, c := range []struct {
		name, query string
		pages       []cortex.Page
		want        []string
	}{
		{"the title before the text", "harbour", []cortex.Page{mk("text", "Notes", "the harbour"+filler), mk("title", "The harbour", "notes"+filler)}, []string{"title", "text"}},
		{"a heading before the text", "harbour", []cortex.Page{mk("text", "Notes", "# Boats\n\nthe harbour"+filler), mk("heading", "Notes", "# Harbour\n\nthe boats"+filler)}, []string{"heading", "text"}},
		{"all words before some", "harbour master", []cortex.Page{mk("some", "Harbour", "harbour harbour harbour"), mk("all", "Notes", "a harbour, and its master"+filler)}, []string{"all", "some"}},
		{"the word itself before its forms", "policies", []cortex.Page{mk("form", "Notes", "one policy"), mk("itself", "Notes", "two policies")}, []string{"itself", "form"}},
		{"of equals the newer", "harbour", []cortex.Page{at(mk("new", "Notes", "harbour"), time.Hour), at(mk("old", "Notes", "harbour"), 500*24*time.Hour)}, []string{"new", "old"}},
		{"age does not outweigh the title", "harbour", []cortex.Page{at(mk("title", "Harbour", "notes"+filler), 5000*24*time.Hour), at(mk("text", "Notes", "harbour"+filler), 0)}, []string{"title", "text"}},
		{"a phrase is a condition", `"harbour master" town`, []cortex.Page{mk("words", "Town", "the master of the harbour of the town"), mk("phrase", "Notes", "the harbour master")}, []string{"phrase"}},
		{"words that say nothing", "what is the harbour", []cortex.Page{mk("none", "What is the what", "what is the"), mk("it", "Notes", "harbour")}, []string{"it"}},
		{"nothing but such words", "to be or not to be", []cortex.Page{mk("hamlet", "Notes", "to be or not to be"), mk("none", "Boats", "harbour")}, []string{"hamlet"}},
		{"inside words, only if nothing else is there", "hafen", []cortex.Page{mk("inside", "Notes", "Der Flughafen")}, []string{"inside"}},
		{"not inside words if there is something", "hafen", []cortex.Page{mk("inside", "Notes", "Der Flughafen"), mk("itself", "Notes", "Der Hafen")}, []string{"itself"}},
		{"wildcards mean nothing inside words", "h_f_n", []cortex.Page{mk("inside", "Notes", "Der Flughafen")}, []string{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			x, _ := newIndex(t, cortex.Options{})
			add(t, x, c.pages...)
			if got := keys(t, x, cortex.Query{Text: c.query}); !slices.Equal(got, c.want) {
				t.Errorf("%q found %v, want %v", c.query, got, c.want)
			}
		})
	}
}

func TestAPageIsFoundOnce(t *testing.T) {
	x, _ := newIndex(t, cortex.Options{})
	add(t, x, cortex.Page{Wrapper: "w", Key: "1", Title: "Harbours", Text: "# North\n\na harbour\n\n# South\n\n## Bay\n\nharbour, harbour and harbour\n\n# East\n\na harbour"})
	hits := search(t, x, cortex.Query{Text: "harbour"})
	if len(hits) != 1 || hits[0].Heading != "South > Bay" {
		t.Errorf("hits %+v", hits)
	}
}

func TestLimits(t *testing.T) {
	x, _ := newIndex(t, cortex.Options{})
	var pages []cortex.Page
	for i := range cortex.MaxLimit + 5 {
		pages = append(pages, page("w", fmt.Sprint(i), "harbour"))
	}
	add(t, x, pages...)
	for limit, want := range map[int]int{0: cortex.DefaultLimit, -1: cortex.DefaultLimit, 1: 1, cortex.MaxLimit: cortex.MaxLimit, cortex.MaxLimit + 1: cortex.MaxLimit} {
		if got := len(search(t, x, cortex.Query{Text: "harbour", Limit: limit})); got != want {
			t.Errorf("limit %d gives %d", limit, got)
		}
	}
	for _, q := range []string{"", " ", "???", `""`, "\x00", "—"} {
		_, err := x.Search(context.Background(), cortex.Query{Text: q})
		mustFail(t, err, "ARGS_INVALID", "no word to search for")
	}
	// A question as long as a page is cut, not refused.
	if got := search(t, x, cortex.Query{Text: "harbour " + strings.Repeat("word ", 5000)}); len(got) != cortex.DefaultLimit {
		t.Errorf("%d hits", len(got))
	}
}

// Words that very many chunks have do not make a search weigh all of them, and
// the rare ones still decide.
func TestFrequentWords(t *testing.T) {
	if testing.Short() {
		t.Skip("stores 4 500 pages")
	}
	x, _ := newIndex(t, cortex.Options{})
	var pages []cortex.Page
	for i := range 4500 {
		pages = append(pages, page("w", fmt.Sprint(i), "status open"))
	}
	pages[17].Text = "status open for the harbour"
	pages[18].Text = "harbour"
	add(t, x, pages...)
	if got := keys(t, x, cortex.Query{Text: "status of the harbour crane", Limit: 5}); !slices.Equal(got, []string{"17", "18"}) {
		t.Errorf("found %v", got)
	}
	if got := keys(t, x, cortex.Query{Text: "status crane", Limit: 3}); len(got) != 3 { // nothing rare is there
		t.Errorf("found %v", got)
	}
}

func TestManyAtOnce(t *testing.T) {
	x, _ := newIndex(t, cortex.Options{Idle: time.Millisecond})
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 10 {
				if _, err := x.Add(context.Background(), []cortex.Page{page(fmt.Sprintf("w%d", w), fmt.Sprint(i), "harbour")}); err != nil {
					t.Errorf("Add: %v", err)
				}
				if _, err := x.Search(context.Background(), cortex.Query{Text: "harbour"}); err != nil {
					t.Errorf("Search: %v", err)
				}
			}
		})
	}
	wg.Wait()
	s, err := x.Stats(context.Background())
	if err != nil || s.Pages != 40 {
		t.Errorf("%d pages, %v", s.Pages, err)
	}
}
