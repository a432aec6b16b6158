//go:build unix

package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/client"
	"github.com/hyperbolic-gateway/hb-rest/internal/config"
	"github.com/hyperbolic-gateway/hb-rest/internal/daemon"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
	"github.com/hyperbolic-gateway/hb-rest/internal/upstream"
)

// docsRecipes are the recipes of docs/paging.md by name, letter for letter.
func docsRecipes(t *testing.T) map[string]string {
	t.Helper()
	page, err := os.ReadFile("../../docs/paging.md")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, m := range regexp.MustCompile("(?ms)^```json recipe ([a-z]+)\n(.*?)^```$").FindAllStringSubmatch(string(page), -1) {
		found[m[1]] = m[2]
	}
	return found
}

var pageSize = regexp.MustCompile(`"pageSize": ([0-9]+)`)

// resized is a recipe that asks for pages of size and shows up to most items.
func resized(recipe string, size, most int) string {
	recipe = pageSize.ReplaceAllString(recipe, fmt.Sprintf(`"pageSize": %d`, size))
	return strings.Replace(recipe, `"schemaVersion": 1,`, fmt.Sprintf(`"schemaVersion": 1, "limits": { "maxItems": %d },`, most), 1)
}

// A desk is a real daemon and the APIs that a test has put up for it.
type desk struct {
	t    *testing.T
	home string
	*process
}

func newDesk(t *testing.T, env ...string) *desk {
	t.Helper()
	home := filepath.Join(t.TempDir(), "home")
	return &desk{t, home, startDaemon(t, home, append([]string{"HB_WRAP_ALLOW_PRIVATE=1"}, env...)...)}
}

// save creates a wrapper, or replaces it.
func (d *desk) save(id, request, recipe string) {
	d.t.Helper()
	if _, err := d.change(id, request, recipe); err != nil {
		d.t.Fatalf("save %s: %v", id, err)
	}
}

func (d *desk) change(id, request, recipe string) (*api.ChangeResult, error) {
	doc := fmt.Sprintf(`{"schemaVersion":1,"id":%q,"name":%q,"request":%s`, id, id, request)
	if recipe != "" {
		doc += `,"response":` + recipe
	}
	action := "create"
	if _, err := d.client.Wrapper(d.t.Context(), id); err == nil {
		action = "update"
	}
	return d.client.Change(d.t.Context(), &api.ChangeRequest{Action: action, Wrapper: json.RawMessage(doc + "}")})
}

// run runs a wrapper; maxPages 0 leaves the number to the recipe.
func (d *desk) run(id string, maxPages int) (*api.RunResult, error) {
	q := &api.RunRequest{ID: id}
	if maxPages != 0 {
		q.MaxPages = &maxPages
	}
	return d.client.Run(d.t.Context(), q)
}

func (d *desk) must(id string, maxPages int) *api.RunResult {
	d.t.Helper()
	r, err := d.run(id, maxPages)
	if err != nil {
		d.t.Fatalf("run %s: %v", id, err)
	}
	return r
}

// rows waits until the trail has n rows of requests of a wrapper, and returns
// them: a row is written some milliseconds after the answer.
func (d *desk) rows(id string, n int) []api.AuditRow {
	d.t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		rows := slices.DeleteFunc(auditRows(d.t, d.home, 0), func(r api.AuditRow) bool { return r.Wrapper != id || r.Kind != "run" })
		if len(rows) >= n || time.Now().After(deadline) {
			return rows
		}
	}
}

// A site is one API on loopback. From the request number failFrom on it answers
// with failStatus.
type site struct {
	*httptest.Server
	mu         sync.Mutex // guards the rest
	uris       []string
	failFrom   int // 0: never
	failStatus int
}

func newSite(t *testing.T, h http.Handler) *site {
	t.Helper()
	s := &site{failStatus: http.StatusInternalServerError}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.uris = append(s.uris, r.URL.RequestURI())
		fail, status := s.failFrom > 0 && len(s.uris) >= s.failFrom, s.failStatus
		s.mu.Unlock()
		if fail {
			w.WriteHeader(status)
			return
		}
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *site) seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.uris)
}

// request is the API's wrapper request for a site.
func request(a *upstream.API, s *site, size int) string {
	return strings.NewReplacer("ORIGIN", s.URL, "SIZE", strconv.Itoa(size)).Replace(a.Request)
}

func known(t *testing.T, name string) *upstream.API {
	t.Helper()
	for _, a := range upstream.APIs() {
		if a.Name == name {
			return a
		}
	}
	t.Fatalf("no API %q", name)
	return nil
}

// firsts are the first values of the records, as JSON text.
func firsts(t *testing.T, r *api.RunResult) []string {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(string(r.Records)))
	var records []json.RawMessage
	if err := dec.Decode(&records); err != nil {
		t.Fatalf("records %s: %v", r.Records, err)
	}
	out := []string{}
	for _, rec := range records {
		// {"Label":value,...: what stands behind the first colon.
		in := json.NewDecoder(strings.NewReader(string(rec)))
		var value json.RawMessage
		for range 2 {
			if _, err := in.Token(); err != nil {
				t.Fatal(err)
			}
		}
		if err := in.Decode(&value); err != nil {
			t.Fatal(err)
		}
		out = append(out, string(value))
	}
	return out
}

func (want outcome) keys(a *upstream.API) []string {
	out := []string{}
	for i := range want.items {
		out = append(out, a.Key(i))
	}
	return out
}

// An outcome is how a walk through a collection ends.
type outcome struct {
	items, pages int
	stopped      string
	total        bool
}

// Every recipe of docs/paging.md walks the whole list of an API that is as
// strict as its original: all items in order, as many requests as there are
// pages, one audit row for each, and the reason that the API's way of ending
// has. With the page size as it is written, the first fifty are shown.
func TestEighteenAPIs(t *testing.T) {
	t.Parallel()
	recipes := docsRecipes(t)
	d := newDesk(t)
	const size = 10
	wants := map[string]outcome{
		"github":     {57, 6, "end", false},
		"gitlab":     {57, 6, "end", true},
		"stripe":     {57, 6, "has_more", false},
		"slack":      {57, 6, "end", false}, // a short page is among them
		"jira":       {57, 6, "has_more", true},
		"notion":     {57, 6, "has_more", false},
		"salesforce": {57, 6, "has_more", true},
		"odata":      {57, 6, "end", true},
		"jsonapi":    {57, 6, "end", false},
		"hal":        {57, 6, "end", false},
		"hydra":      {57, 6, "end", true},
		"twilio":     {57, 6, "end", false},
		"kubernetes": {57, 6, "end", false},
		"dynamodb":   {57, 7, "end", false}, // an empty page is among them
		"mediawiki":  {57, 6, "end", false},
		"fhir":       {57, 6, "end", true},
		"mastodon":   {60, 7, "end", false}, // the last page is empty
		"sentry":     {57, 6, "end", false},
	}
	if len(recipes) != 18 || len(wants) != 18 || len(upstream.APIs()) != 18 {
		t.Fatalf("%d recipes, %d outcomes, %d APIs", len(recipes), len(wants), len(upstream.APIs()))
	}
	for _, a := range upstream.APIs() {
		t.Run(a.Name, func(t *testing.T) {
			want := wants[a.Name]
			s := newSite(t, a.Handler(want.items, size))
			d.save(a.Name, request(a, s, size), resized(recipes[a.Name], size, 1000))
			r := d.must(a.Name, 0)
			if diff := cmp.Diff(want.keys(a), firsts(t, r)); diff != "" {
				t.Errorf("items (-want +got):\n%s", diff)
			}
			paging := &api.Paging{Pages: want.pages, Cap: 10, Items: want.items, Stopped: want.stopped}
			if want.total {
				n := int64(want.items)
				paging.Total = &n
			}
			if diff := cmp.Diff(paging, r.Paging); diff != "" {
				t.Errorf("paging (-want +got):\n%s", diff)
			}
			if r.Meta.Selected != want.items || r.Meta.Truncated || len(r.Meta.EmptyFields) > 0 || !strings.HasPrefix(*r.Markdown, "## "+a.Name+"\n") {
				t.Errorf("meta %+v of\n%.200s", r.Meta, *r.Markdown)
			}
			if seen := s.seen(); len(seen) != want.pages {
				t.Errorf("%d requests, want %d: %q", len(seen), want.pages, seen)
			}
			rows := d.rows(a.Name, want.pages)
			calls := map[string]bool{}
			for _, row := range rows {
				calls[row.Call] = true
				if row.Status != 200 || row.Error != "" || row.Outcome != "" || row.Host != strings.TrimPrefix(s.URL, "http://") {
					t.Errorf("row %+v", row)
				}
			}
			if len(rows) != want.pages || len(calls) != want.pages {
				t.Errorf("%d rows of %d calls, want one for each of %d pages", len(rows), len(calls), want.pages)
			}

			// As it is written: its own page size, and the fifty items that a recipe shows by default.
			written := size
			if m := pageSize.FindStringSubmatch(recipes[a.Name]); m != nil {
				written, _ = strconv.Atoi(m[1])
			}
			s = newSite(t, a.Handler(want.items, written))
			d.save(a.Name, request(a, s, written), recipes[a.Name])
			r = d.must(a.Name, 0)
			if diff := cmp.Diff(want.keys(a)[:50], firsts(t, r)); diff != "" {
				t.Errorf("as written (-want +got):\n%s", diff)
			}
			// More than fifty in the last page read, or more pages than were read.
			if (!r.Meta.Truncated || r.Meta.Reason != "items") && (!r.Paging.More || r.Paging.Stopped != "item_cap") {
				t.Errorf("as written: %+v %+v", r.Meta, r.Paging)
			}
		})
	}
}

// The kinds of pagination, each by one API.
var kinds = map[string]string{"offset": "jira", "cursor": "stripe", "body": "notion", "link": "github", "relative": "twilio"}

// The number of pages is capped: 10, what the recipe says, what the call says,
// and never above 25.
func TestPageCaps(t *testing.T) {
	t.Parallel()
	recipes := docsRecipes(t)
	d := newDesk(t)
	for kind, name := range kinds {
		a := known(t, name)
		for _, c := range []struct {
			items, recipe, call int // maxPages of the recipe and the call; 0: not given
			pages, shown        int
			cap                 int
			more                bool
		}{
			{130, 0, 0, 10, 100, 10, true},
			{100, 0, 0, 10, 100, 10, false}, // a list that ends at the cap has ended
			{101, 0, 0, 10, 100, 10, true},
			{57, 3, 0, 3, 30, 3, true},
			{57, 3, 5, 5, 50, 5, true}, // the call's word counts
			{57, 0, 1, 1, 10, 1, true},
			{270, 25, 0, 25, 250, 25, true},
			{270, 0, 25, 25, 250, 25, true},
			{250, 0, 25, 25, 250, 25, false},
		} {
			what := fmt.Sprintf("%s: %d items, recipe %d, call %d", kind, c.items, c.recipe, c.call)
			s := newSite(t, a.Handler(c.items, 10))
			recipe := resized(recipes[name], 10, 1000)
			if c.recipe > 0 {
				recipe = strings.Replace(recipe, `"type": `, fmt.Sprintf(`"maxPages": %d, "type": `, c.recipe), 1)
				if !strings.Contains(recipe, "maxPages") {
					t.Fatalf("%s has no type to put maxPages before", name)
				}
			}
			d.save(kind, request(a, s, 10), recipe)
			r := d.must(kind, c.call)
			if diff := cmp.Diff(outcome{items: c.shown}.keys(a), firsts(t, r)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", what, diff)
			}
			if p := r.Paging; p.Pages != c.pages || p.Cap != c.cap || p.Items != c.shown || p.More != c.more || (p.Stopped == "page_cap") != c.more {
				t.Errorf("%s: %+v", what, p)
			}
			if n := len(s.seen()); n != c.pages {
				t.Errorf("%s: %d requests", what, n)
			}
		}

		s := newSite(t, a.Handler(57, 10))
		d.save(kind, request(a, s, 10), resized(recipes[name], 10, 1000))
		for _, n := range []int{26, -1, 1000} {
			var f *fault.Error
			if _, err := d.run(kind, n); !errors.As(err, &f) || f.Code != "MAX_PAGES_INVALID" {
				t.Errorf("%s: max_pages %d: %v", kind, n, err)
			}
		}
		var f *fault.Error
		_, err := d.change(kind, request(a, s, 10), strings.Replace(recipes[name], `"type": `, `"maxPages": 26, "type": `, 1))
		if !errors.As(err, &f) || f.Code != "WRAPPER_INVALID" || f.Field != "response.pagination.maxPages" {
			t.Errorf("%s: maxPages 26: %v", kind, err)
		}
		if n := len(s.seen()); n != 0 {
			t.Errorf("%s: %d requests of refused calls", kind, n)
		}

		// As many items as the recipe shows end the walk too.
		for _, c := range []struct{ most, pages, selected int }{{20, 2, 20}, {15, 2, 20}, {21, 3, 30}, {10, 1, 10}, {1, 1, 10}} {
			s := newSite(t, a.Handler(57, 10))
			d.save(kind, request(a, s, 10), resized(recipes[name], 10, c.most))
			r := d.must(kind, 0)
			if p := r.Paging; p.Stopped != "item_cap" || !p.More || p.Pages != c.pages || len(s.seen()) != c.pages {
				t.Errorf("%s: maxItems %d: %+v after %d requests", kind, c.most, p, len(s.seen()))
			}
			if r.Meta.Rendered != c.most || r.Meta.Selected != c.selected || !r.Meta.Truncated || r.Meta.Reason != "items" {
				t.Errorf("%s: maxItems %d: %+v", kind, c.most, r.Meta)
			}
		}
	}
}

// A later page that fails leaves what was read before; the first one's failure
// is the call's.
func TestLaterPageFails(t *testing.T) {
	t.Parallel()
	recipes := docsRecipes(t)
	d := newDesk(t)
	for _, c := range []struct {
		api    string
		status int
		want   api.Short
		once   bool // sent once, because a repetition could do it twice or would not help
	}{
		{"jira", 500, api.Short{Code: "UPSTREAM_SERVER_ERROR", Status: 500, Retryable: true}, false},
		{"stripe", 502, api.Short{Code: "UPSTREAM_UNAVAILABLE", Status: 502, Retryable: true}, false},
		{"github", 404, api.Short{Code: "UPSTREAM_NOT_FOUND", Status: 404}, true},
		{"kubernetes", 410, api.Short{Code: "UPSTREAM_NOT_FOUND", Status: 410}, true},
		{"notion", 500, api.Short{Code: "UPSTREAM_SERVER_ERROR", Status: 500}, true},
		{"salesforce", 401, api.Short{Code: "AUTH_REQUIRED", Status: 401}, true},
	} {
		id := c.api
		a := known(t, c.api)
		s := newSite(t, a.Handler(57, 10))
		s.failFrom, s.failStatus = 3, c.status
		d.save(id, request(a, s, 10), resized(recipes[c.api], 10, 1000))
		r := d.must(id, 0)
		if diff := cmp.Diff(outcome{items: 20}.keys(a), firsts(t, r)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", id, diff)
		}
		p := r.Paging
		if !r.OK || !r.Meta.Truncated || p.Pages != 2 || p.Items != 20 || !p.More || p.Stopped != "error" || p.Error == nil {
			t.Errorf("%s: %+v %+v", id, r.Meta, p)
			continue
		}
		got := *p.Error
		got.Message = ""
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", id, diff)
		}
		n := len(s.seen())
		if n < 3 || n > 5 || c.once && n != 3 {
			t.Errorf("%s: %d requests: %q", id, n, s.seen())
		}
		rows := d.rows(id, n)
		if len(rows) != n || rows[0].Status != 200 || rows[1].Status != 200 {
			t.Errorf("%s: %d requests, %d rows: %+v", id, n, len(rows), rows)
			continue
		}
		for _, row := range rows[2:] {
			if row.Status != c.status || row.Error != c.want.Code {
				t.Errorf("%s: row %+v", id, row)
			}
		}

		s.mu.Lock()
		s.failFrom = 1
		s.mu.Unlock()
		var f *fault.Error
		if _, err := d.run(id, 0); !errors.As(err, &f) || string(f.Code) != c.want.Code || f.Status != c.status {
			t.Errorf("%s: the first page: %v", id, err)
		}
	}
}

// A chain is a list of two pages of one item; what the first one says of the
// next is the test's.
type chain struct {
	next   string // JSON text of "next"; HERE and HOST are replaced
	header string // a Link header
	mu     sync.Mutex
	uris   []string
}

func (c *chain) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	scheme := "http://"
	if r.TLS != nil {
		scheme = "https://"
	}
	fill := strings.NewReplacer("HERE", scheme+r.Host, "HOST", r.Host)
	c.uris = append(c.uris, r.URL.RequestURI())
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.URL.Path != "/v1/items":
		w.WriteHeader(http.StatusNotFound)
	case r.URL.Query().Get("page") == "2":
		fmt.Fprint(w, `{"items":[{"id":2}],"next":null}`)
	default:
		if c.header != "" {
			w.Header().Set("Link", fill.Replace(c.header))
		}
		next := "null"
		if c.next != "" {
			next = fill.Replace(c.next)
		}
		fmt.Fprintf(w, `{"items":[{"id":1}],"next":%s}`, next)
	}
}

func (c *chain) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	uris := c.uris
	c.uris = nil
	return uris
}

const (
	byBody   = `{"schemaVersion":1,"select":"$.items","fields":{"ID":"id"},"pagination":{"type":"link","nextUrl":"next"}}`
	byHeader = `{"schemaVersion":1,"select":"$.items","fields":{"ID":"id"},"pagination":{"type":"link","nextUrl":"header:Link"}}`
)

// P-01, P-02 and P-09: relative links and Link headers are followed, foreign
// ones are not, in whatever form.
func TestNextLinks(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	foreign := newSite(t, http.NotFoundHandler()) // another port of the same machine
	other := strings.TrimPrefix(foreign.URL, "http://")
	for name, c := range map[string]struct {
		next, header string
		stopped      string
		second       string // the second request; "" where there must be none
	}{
		"from the root":    {`"/v1/items?page=2"`, "", "end", "/v1/items?page=2"},
		"query only":       {`"?page=2"`, "", "end", "/v1/items?page=2"},
		"from the folder":  {`"items?page=2"`, "", "end", "/v1/items?page=2"},
		"with dots":        {`"./../v1/items?page=2"`, "", "end", "/v1/items?page=2"},
		"without scheme":   {`"//HOST/v1/items?page=2"`, "", "end", "/v1/items?page=2"},
		"whole":            {`"HERE/v1/items?page=2"`, "", "end", "/v1/items?page=2"},
		"with a fragment":  {`"HERE/v1/items?page=2#more"`, "", "end", "/v1/items?page=2"},
		"href":             {`{"href":"?page=2"}`, "", "end", "/v1/items?page=2"},
		"url":              {`{"url":"?page=2"}`, "", "end", "/v1/items?page=2"},
		"escapes stay":     {`"?page=2&a=%2B&b=%C3%A9&c=x%20y"`, "", "end", "/v1/items?page=2&a=%2B&b=%C3%A9&c=x%20y"},
		"header":           {"", `<HERE/v1/items?page=2>; rel="next", <HERE/v1/items?page=9>; rel="last"`, "end", "/v1/items?page=2"},
		"relative header":  {"", `</v1/items?page=9>; rel="last", <?page=2>; rel=next`, "end", "/v1/items?page=2"},
		"header, commas":   {"", `<?page=2&ids=1,2;3>; title="a, <b>"; rel="prev next"`, "end", "/v1/items?page=2&ids=1,2;3"},
		"header, no next":  {"", `<?page=2>; rel="last"`, "end", ""},
		"another port":     {`"http://` + other + `/v1/items?page=2"`, "", "cross_origin", ""},
		"another name":     {strings.Replace(`"HERE/v1/items?page=2"`, "HERE", "http://localhost:"+strings.TrimPrefix(other, "127.0.0.1:"), 1), "", "cross_origin", ""},
		"https":            {`"https://HOST/v1/items?page=2"`, "", "cross_origin", ""},
		"port 80":          {`"http://127.0.0.1/v1/items?page=2"`, "", "cross_origin", ""},
		"header, foreign":  {"", `<http://` + other + `/v1/items?page=2>; rel="next"`, "cross_origin", ""},
		"without scheme 2": {`"//` + other + `/v1/items?page=2"`, "", "cross_origin", ""},
		"user information": {`"http://HOST@` + other + `/v1/items?page=2"`, "", "bad_next", ""},
		"user, same host":  {`"http://ada:pw@HOST/v1/items?page=2"`, "", "bad_next", ""},
		"another scheme":   {`"file:///etc/passwd"`, "", "", ""},
		"a script":         {`"javascript:alert(1)"`, "", "", ""},
		"backslash":        {`"\\\\` + other + `/v1/items?page=2"`, "", "", ""},
		"a list":           {`["?page=2"]`, "", "bad_next", ""},
	} {
		list := &chain{next: c.next, header: c.header}
		s := newSite(t, list)
		recipe := byBody
		if c.header != "" {
			recipe = byHeader
		}
		d.save("links", `{"method":"GET","url":"`+s.URL+`/v1/items"}`, recipe)
		r := d.must("links", 0)
		want, items := []string{"/v1/items"}, []string{"1"}
		if c.second != "" {
			want, items = append(want, c.second), append(items, "2")
		}
		if diff := cmp.Diff(want, list.take()); diff != "" {
			t.Errorf("%s: requests (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(items, firsts(t, r)); diff != "" {
			t.Errorf("%s: items (-want +got):\n%s", name, diff)
		}
		bad := r.Paging.Stopped == "bad_next" || r.Paging.Stopped == "cross_origin"
		if c.stopped != "" && r.Paging.Stopped != c.stopped || c.stopped == "" && !bad || r.Paging.More != bad {
			t.Errorf("%s: %+v", name, r.Paging)
		}
		if bad && len(r.Warnings) == 0 {
			t.Errorf("%s: nobody is told why", name)
		}
	}
	if seen := foreign.seen(); len(seen) > 0 {
		t.Errorf("the other place was asked: %q", seen)
	}
}

// The one exception to the same origin: http on the standard port, where the
// API is https on the standard port, is read as https; nothing is ever sent in
// plain text. The names here lead to one server on loopback.
func TestNextLinksOfHTTPS(t *testing.T) {
	t.Parallel()
	list := &chain{}
	s := httptest.NewTLSServer(list)
	t.Cleanup(s.Close)
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	var mu sync.Mutex
	var dialled []string
	home := filepath.Join(t.TempDir(), "home")
	cfg, _, err := config.LoadDaemon(func(name string) (string, bool) {
		v, ok := map[string]string{"HB_WRAP_HOME": home, "HB_WRAP_ADDR": "127.0.0.1:0"}[name]
		return v, ok
	}, runtime.GOOS)
	if err != nil {
		t.Fatal(err)
	}
	public := map[string]netip.Addr{"example.com": netip.MustParseAddr("198.105.244.1"), "evil.example": netip.MustParseAddr("198.105.244.2")}
	in, err := daemon.Start(t.Context(), daemon.Options{Config: cfg, Version: "1", Log: slog.New(slog.DiscardHandler), Outbound: outbound.Options{
		TLS: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		Lookup: func(_ context.Context, host string) ([]netip.Addr, error) {
			if a, ok := public[host]; ok {
				return []netip.Addr{a}, nil
			}
			return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
		},
		DialAddr: func(ctx context.Context, addr netip.AddrPort) (net.Conn, error) {
			mu.Lock()
			dialled = append(dialled, addr.String())
			mu.Unlock()
			if addr.String() != "198.105.244.1:443" {
				return nil, errors.New("nothing is there")
			}
			return (&net.Dialer{}).DialContext(ctx, "tcp", s.Listener.Addr().String())
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Stop(context.Background()) })
	u := &url.URL{Scheme: "http", Host: in.Addr()}
	c := client.New(client.Options{URL: u, TokenFiles: []string{cfg.TokenPath}, Started: time.Unix(0, 0)})
	t.Cleanup(c.Close)
	d := &desk{t, home, &process{client: c}}
	d.save("links", `{"method":"GET","url":"https://example.com/v1/items"}`, byBody)
	for next, stopped := range map[string]string{
		"http://example.com/v1/items?page=2":              "end",
		"http://example.com:80/v1/items?page=2":           "end",
		"HTTP://EXAMPLE.COM/v1/items?page=2":              "end",
		"https://example.com:443/v1/items?page=2":         "end",
		"https://Example.com./v1/items?page=2":            "end",
		"http://example.com:8080/v1/items?page=2":         "cross_origin",
		"http://example.com:443/v1/items?page=2":          "cross_origin",
		"https://example.com:8443/v1/items?page=2":        "cross_origin",
		"https://evil.example/v1/items?page=2":            "cross_origin",
		"http://evil.example/v1/items?page=2":             "cross_origin",
		"https://example.com.evil.example/v1/items?page=": "cross_origin",
		"https://example.com@evil.example/v1/items":       "bad_next",
	} {
		list.mu.Lock()
		list.next, list.uris = strconv.Quote(next), nil
		list.mu.Unlock()
		r, err := d.run("links", 0)
		if err != nil {
			t.Errorf("%s: %v", next, err)
			continue
		}
		want := []string{"/v1/items"}
		if stopped == "end" {
			want = append(want, "/v1/items?page=2")
		}
		if diff := cmp.Diff(want, list.take()); diff != "" || r.Paging.Stopped != stopped {
			t.Errorf("%s: %+v, requests (-want +got):\n%s", next, r.Paging, diff)
		}
	}
	for _, addr := range dialled {
		if addr != "198.105.244.1:443" {
			t.Errorf("%s was dialled", addr)
		}
	}
}

// P-05: an API that says the same for ever is asked twice, not 25 times.
func TestEndlessLists(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	const head = `{"schemaVersion":1,"select":"$.items","fields":{"ID":"id"},"pagination":{"maxPages":25,`
	for name, c := range map[string]struct {
		recipe, next string
		pages, items int
		stopped      string
	}{
		"cursor":           {head + `"type":"cursor","next":"next","cursorParam":"cursor"}}`, `"X"`, 2, 2, "loop"},
		"cursor, number":   {head + `"type":"cursor","next":"next","cursorParam":"cursor"}}`, `9007199254740993`, 2, 2, "loop"},
		"cursor, object":   {head + `"type":"cursor","next":"next","cursorParam":"*"}}`, `{"a":"1","b":"2"}`, 2, 2, "loop"},
		"cursor in header": {head + `"type":"cursor","next":"next","cursorParam":"X-Cursor","in":"header"}}`, `"X"`, 2, 2, "loop"},
		"link":             {head + `"type":"link","nextUrl":"next"}}`, `"?page=7"`, 2, 2, "loop"},
		"link to itself":   {head + `"type":"link","nextUrl":"next"}}`, `"/list"`, 1, 1, "loop"},
		"offset ignored":   {head + `"type":"offset","offsetParam":"skip","limitParam":"limit","pageSize":1}}`, `"X"`, 2, 1, "loop"},
		"page ignored":     {head + `"type":"offset","offsetParam":"page","step":"page","start":1,"pageSize":1}}`, `"X"`, 2, 1, "loop"},
	} {
		s := newSite(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"items":[{"id":7}],"next":%s}`, c.next)
		}))
		d.save("endless", `{"method":"GET","url":"`+s.URL+`/list"}`, c.recipe)
		r := d.must("endless", 0)
		if n := len(s.seen()); n != c.pages || r.Paging.Stopped != c.stopped || len(firsts(t, r)) != c.items || r.Paging.Cap != 25 {
			t.Errorf("%s: %d requests %q, %d items, %+v", name, n, s.seen(), len(firsts(t, r)), r.Paging)
		}
	}
}

// A walk ends with the call's own time, with what it has; and with its caller,
// whose leaving ends the request that is under way.
func TestWalkEndsInTime(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "HB_WRAP_CALL_TIMEOUT_MS=1500")
	a := known(t, "github")
	pages := a.Handler(300, 10)
	arrived, left := make(chan struct{}, 99), make(chan struct{}, 99)
	s := newSite(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		select {
		case <-r.Context().Done():
			left <- struct{}{}
		case <-time.After(400 * time.Millisecond): // the API's own time
			pages.ServeHTTP(w, r)
		}
	}))
	d.save("slow", request(a, s, 10), resized(docsRecipes(t)["github"], 10, 1000))
	begin := time.Now()
	r := d.must("slow", 25)
	if took := time.Since(begin); took < 1500*time.Millisecond || took > 2*time.Second {
		t.Errorf("a call of 1.5 s took %v", took)
	}
	n := r.Paging.Pages
	if p := r.Paging; p.Stopped != "deadline" || !p.More || n < 1 || n > 3 || p.Items != 10*n || !r.Meta.Truncated || p.Error == nil || p.Error.Code != "CALL_DEADLINE" {
		t.Errorf("%+v %+v", r.Meta, p)
	}
	if diff := cmp.Diff(outcome{items: 10 * n}.keys(a), firsts(t, r)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	<-left // the request that the deadline ended

	for len(arrived) > 0 {
		<-arrived
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := d.client.Run(ctx, &api.RunRequest{ID: "slow"})
		ended <- err
	}()
	<-arrived
	<-arrived // the second page
	cancel()
	select {
	case <-left:
	case <-time.After(5 * time.Second):
		t.Error("the request goes on although its caller has left")
	}
	if err := <-ended; err == nil {
		t.Error("a caller who left got an answer")
	}
	if n := len(arrived); n > 0 {
		t.Errorf("%d requests after the caller has left", n)
	}
}
