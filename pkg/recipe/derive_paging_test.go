package recipe

import "testing"

func TestDerivePagingHint(t *testing.T) {
	const items = `"items":[{"id":1},{"id":2}]`
	for _, tt := range []struct{ sample, want string }{
		{`{` + items + `}`, ""},
		{`{"count":2,"next":null,"previous":null,` + items + `}`, `{"type":"link","nextUrl":"$.next","total":"$.count"}`},
		{`{"next":null,` + items + `}`, ""},
		{`{"next":"token",` + items + `}`, ""},
		{`{"next":2,` + items + `}`, ""},
		{`{"next":"/items?page=2",` + items + `}`, `{"type":"link","nextUrl":"$.next"}`},
		{`{"next":"?page=2",` + items + `}`, `{"type":"link","nextUrl":"$.next"}`},
		{`{"links":{"next":{"href":"https://example.com/2"}},` + items + `}`, `{"type":"link","nextUrl":"$.links.next.href"}`},
		{`{"nextRecordsUrl":"/q/2",` + items + `}`, `{"type":"link","nextUrl":"$.nextRecordsUrl"}`},
		{`{"hydra:view":{"hydra:next":"/x"},` + items + `}`, ""},
		{
			`{"skip":0,"limit":1000,"total":2,` + items + `}`,
			`{"type":"offset","offsetParam":"skip","limitParam":"limit","pageSize":1000,"total":"$.total"}`,
		},
		{`{"skip":0,"limit":1001,"total":2,` + items + `}`, ""},
		{`{"skip":0,"limit":0,` + items + `}`, ""},
		{
			`{"startAt":0,"maxResults":50,"isLast":false,` + items + `}`,
			`{"type":"offset","offsetParam":"startAt","limitParam":"maxResults","pageSize":50,"hasMore":"$.isLast","hasMoreWhen":false}`,
		},
		{
			`{"page":1,"pages":3,"per_page":"2",` + items + `}`,
			`{"type":"offset","offsetParam":"page","limitParam":"per_page","pageSize":2,"start":1,"step":"page"}`,
		},
		{
			`{"page":0,"nbPages":3,"hitsPerPage":2,"nbHits":6,` + items + `}`,
			`{"type":"offset","offsetParam":"page","limitParam":"hitsPerPage","pageSize":2,"start":0,"step":"page","total":"$.nbHits"}`,
		},
		{`{"page":1,"per_page":2,` + items + `}`, ""},
		{`{"response_metadata":{"next_cursor":""},` + items + `}`, `{"type":"cursor","next":"$.response_metadata.next_cursor","cursorParam":"cursor"}`},
		{
			`{"object":"list","next_cursor":null,"has_more":false,` + items + `}`,
			`{"type":"cursor","next":"$.next_cursor","cursorParam":"start_cursor","hasMore":"$.has_more"}`,
		},
		{
			`{"has_more":true,` + items + `}`,
			`{"type":"cursor","next":"$.items[-1].id","cursorParam":"starting_after","hasMore":"$.has_more"}`,
		},
		{`{"has_more":true,"items":[{"name":"a"}]}`, ""},
		{`{"continue":{"a":"1","continue":"-||"},"query":{"pages":[{"id":1}]}}`, `{"type":"cursor","next":"$.continue","cursorParam":"*"}`},
		{
			`{"LastEvaluatedKey":{"id":{"S":"x"}},` + items + `}`,
			`{"type":"cursor","next":"$.LastEvaluatedKey","cursorParam":"ExclusiveStartKey","in":"body"}`,
		},
		{`{"id":"x","name":"one thing","size":1,"next":"/things/2"}`, ""},
	} {
		r, notes := Derive(deriveSample(t, tt.sample), DeriveOptions{})
		if r == nil {
			t.Errorf("%s: nothing derived", tt.sample)
			continue
		}
		got := ""
		for _, n := range notes {
			if n.Code == "paging_hint" {
				got = n.Message
			}
		}
		if got != tt.want {
			t.Errorf("%s\n got %s\nwant %s", tt.sample, got, tt.want)
		}
	}
}
