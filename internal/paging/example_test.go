package paging_test

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/hyperbolic-gateway/hb-rest/internal/paging"
	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// The loop around a Walker: make a request of the wrapper's own one, read the
// answer, ask for the next change.
func Example() {
	doc, _ := recipe.Decode([]byte(`{
		"schemaVersion": 1, "select": "$.data", "fields": { "ID": "id" },
		"pagination": { "type": "cursor", "next": "$.data[-1].id", "cursorParam": "starting_after", "hasMore": "has_more", "limitParam": "limit", "pageSize": 2 }
	}`), recipe.DecodeLimits{})
	rec, _ := recipe.Parse(doc)
	answers := []string{
		`{"data": [{"id": "ch_3"}, {"id": "ch_2"}], "has_more": true}`,
		`{"data": [{"id": "ch_1"}], "has_more": false}`,
	}

	request, _ := url.Parse("https://api.example.com/v1/charges?customer=cus_1")
	walk := paging.New(rec.Pagination, request, 0, rec.Limits.MaxItems)
	var pages []*recipe.Page
	for edit, more := walk.First(), true; more; {
		header := http.Header{}
		u, _, err := edit.Apply(request, header.Set, nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("GET", u)
		body := []byte(answers[len(pages)])
		page, err := rec.Read(body, rec.Limits.MaxItems, nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		pages = append(pages, page)
		edit, more = walk.Next(paging.Page{URL: u, Header: http.Header{}, Lookup: page.Lookup, Items: page.Items(), Body: body})
	}
	r := walk.Report()
	fmt.Printf("%s: %d of at most %d pages, %d items\n", r.Stopped, r.Pages, r.Cap, r.Items)
	// Output:
	// GET https://api.example.com/v1/charges?customer=cus_1&limit=2
	// GET https://api.example.com/v1/charges?customer=cus_1&starting_after=ch_2&limit=2
	// has_more: 2 of at most 10 pages, 3 items
}
