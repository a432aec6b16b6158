package wrapper_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/wrapper"
)

func TestReview(t *testing.T) {
	const (
		about  = `"description":"Lists things.",`
		fields = `,"response":{"schemaVersion":1,"fields":{"A":"$.a"}%s}`
		paging = "wrapper.response.pagination NO_PAGINATION"
	)
	list := func(url, query, more string) string {
		return fmt.Sprintf(`{"schemaVersion":1,"id":"t",`+about+`"request":{"url":"https://h.test/%s"%s}`+fields+`}`, url, query, more)
	}
	tests := []struct{ name, doc, want string }{
		{"nothing to say", list("", "", ""), ""},
		{"no description", `{"schemaVersion":1,"id":"t","description":" ","request":{"url":"https://h.test/"}` + fmt.Sprintf(fields, "") + `}`, "wrapper.description NO_DESCRIPTION"},
		{"no recipe", `{"schemaVersion":1,"id":"t",` + about + `"request":{"url":"https://h.test/"}}`, "wrapper.response NO_FIELDS"},
		{"a template", `{"schemaVersion":1,"id":"t",` + about + `"request":{"url":"https://h.test/"},"response":{"schemaVersion":1,"mode":"document","template":"{{a}}"}}`, ""},
		{"HEAD has no answer", `{"schemaVersion":1,"id":"t",` + about + `"request":{"method":"HEAD","url":"https://h.test/"}}`, ""},
		{"a page in the url", list("?per_page=50", "", ""), paging},
		{"a page in the query", list("", `,"query":{"Page-Token":"x"}`, ""), paging},
		{"a page that is an argument", list("?page={{p}}", "", "")[:len(list("?page={{p}}", "", ""))-1] + `,"inputSchema":{"type":"object","properties":{"p":{"type":"string","default":"1"}}}}`, paging},
		{"paged", list("?limit=50", "", `,"pagination":{"type":"offset","offsetParam":"offset","pageSize":50}`), ""},
		{"one page is meant", list("?limit=50", "", `,"pagination":{"type":"none"}`), ""},
		{"no page", list("?paging=x&q=page", "", ""), ""},
		{"one document", list("?page=Main", "", `,"mode":"document"`), ""},
		{"a POST", `{"schemaVersion":1,"id":"t",` + about + `"request":{"method":"POST","url":"https://h.test/?limit=1"}` + fmt.Sprintf(fields, "") + `}`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := wrapper.Review(parse(t, tt.doc))
			if d := cmp.Diff(tt.want, brief(got)); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
			for _, p := range got {
				if p.Message == "" || p.Hint == "" {
					t.Errorf("without words: %+v", p)
				}
			}
		})
	}
}

func TestWrites(t *testing.T) {
	for request, want := range map[string]bool{
		`{"url":"https://h.test/"}`:                                               false,
		`{"method":"HEAD","url":"https://h.test/"}`:                               false,
		`{"methods":["GET","DELETE"],"url":"https://h.test/"}`:                    true,
		`{"method":"PATCH","url":"https://h.test/"}`:                              true,
		`{"url":"https://h.test/","headers":{"X-HTTP-Method-Override":"DELETE"}}`: true,
	} {
		for mutating, also := range map[string]bool{"": false, `,"mutating":true`: true, `,"mutating":false`: false} {
			w := parse(t, `{"schemaVersion":1,"id":"t","request":`+request+mutating+`}`)
			if got := w.Writes(); got != (want || also) {
				t.Errorf("%s%s: %t", request, mutating, got)
			}
		}
	}
}
