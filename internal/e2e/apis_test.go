//go:build unix

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
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
			if r.Meta.Rendered != c.most || r.Meta.Selected != c.selected {
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
