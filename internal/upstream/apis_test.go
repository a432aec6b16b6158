package upstream_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/internal/upstream"
)

// limits are the parameters by which a recipe, not the wrapper, says how many
// items it wants.
var limits = map[string]string{
	"github": "per_page", "gitlab": "per_page", "stripe": "limit", "slack": "limit", "jira": "maxResults",
	"twilio": "PageSize", "kubernetes": "limit", "mastodon": "limit",
}

// TestAPIsAreStrict: each API answers the first request of its wrapper, and
// refuses it when anything of it is missing, doubled, changed or added. What
// passes a walk through it has therefore kept everything on every page.
func TestAPIsAreStrict(t *testing.T) {
	for _, a := range upstream.APIs() {
		h := a.Handler(57, 10)
		var doc struct {
			Method, URL    string
			Query, Headers map[string]string
			Body           json.RawMessage
		}
		if err := json.Unmarshal([]byte(strings.NewReplacer("ORIGIN", "http://api.test", "SIZE", "10").Replace(a.Request)), &doc); err != nil {
			t.Fatal(err)
		}
		u, err := url.Parse(doc.URL)
		if err != nil {
			t.Fatal(err)
		}
		query := u.Query()
		for name, value := range doc.Query {
			query.Set(name, value)
		}
		if name := limits[a.Name]; name != "" {
			query.Set(name, "10")
		}
		header := http.Header{"User-Agent": {"hb-rest/1"}}
		for name, value := range doc.Headers {
			header.Set(name, value)
		}
		if len(doc.Body) > 0 {
			header.Set("Content-Type", "application/json")
		}
		status := func(method string, query url.Values, header http.Header, body string) int {
			u := *u
			u.RawQuery = query.Encode()
			r := httptest.NewRequest(method, u.String(), strings.NewReader(body))
			r.Header = header
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			return w.Code
		}
		refused := func(what string, got int) {
			if got != http.StatusBadRequest {
				t.Errorf("%s, %s: status %d, want 400", a.Name, what, got)
			}
		}
		if got := status(doc.Method, query, header, string(doc.Body)); got != http.StatusOK {
			t.Errorf("%s: status %d", a.Name, got)
		}
		refused("another method", status(http.MethodPut, query, header, string(doc.Body)))
		edited := func(edit func(url.Values)) url.Values {
			q := url.Values{}
			for name, values := range query {
				q[name] = slices.Clone(values)
			}
			edit(q)
			return q
		}
		for name := range query {
			refused(name+" missing", status(doc.Method, edited(func(q url.Values) { q.Del(name) }), header, string(doc.Body)))
			refused(name+" twice", status(doc.Method, edited(func(q url.Values) { q.Add(name, q.Get(name)) }), header, string(doc.Body)))
			refused(name+" changed", status(doc.Method, edited(func(q url.Values) { q.Set(name, "7") }), header, string(doc.Body)))
		}
		for _, name := range []string{"cursor", "page", "starting_after", "startAt", "$skiptoken", "page[number]", "PageToken", "continue", "blcontinue", "max_id", "other"} {
			refused("a foreign "+name, status(doc.Method, edited(func(q url.Values) { q.Set(name, "x") }), header, string(doc.Body)))
		}
		for name := range doc.Headers {
			without := header.Clone()
			without.Del(name)
			refused(name+" missing", status(doc.Method, query, without, string(doc.Body)))
		}
		if len(doc.Body) > 0 {
			for _, other := range []string{`{}`, `{"page_size":11}`, strings.Replace(string(doc.Body), "{", `{"other":1,`, 1), strings.Replace(string(doc.Body), "10", `"10"`, 1)} {
				refused("the body "+other, status(doc.Method, query, header, other))
			}
			for _, name := range []string{"start_cursor", "ExclusiveStartKey"} {
				refused("a null "+name, status(doc.Method, query, header, strings.Replace(string(doc.Body), "{", `{"`+name+`":null,`, 1)))
			}
		}
	}
}
