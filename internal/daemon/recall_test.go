package daemon_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
)

// An answering API says whatever the test wants next.
type answering struct {
	*httptest.Server
	body   atomic.Pointer[string]
	status atomic.Int64
}

func newAnswering(t *testing.T, body string) *answering {
	t.Helper()
	a := &answering{}
	a.says(200, body)
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(int(a.status.Load()))
		_, _ = w.Write([]byte(*a.body.Load()))
	}))
	t.Cleanup(a.Close)
	return a
}

func (a *answering) says(status int, body string) {
	a.status.Store(int64(status))
	a.body.Store(&body)
}

// indexing makes a wrapper of mode documents that indexes.
func indexing(id, at string) string {
	return fmt.Sprintf(`{"schemaVersion":1,"id":%q,"name":"Notes","request":{"method":"GET","url":%q},
		"response":{"schemaVersion":1,"select":"$.items[*]","mode":"documents","title":"{{title}}","template":"{{text}}",
		"record":{"id":"id","title":"title"},"index":"cortex"}}`, id, at)
}

// recall searches, and fails the test when that is refused.
func (w *world) recall(query string, more ...string) *api.RecallResult {
	w.t.Helper()
	q := url.Values{"query": {query}}
	for i := 0; i < len(more); i += 2 {
		q.Set(more[i], more[i+1])
	}
	a := w.get("/wrap/recall?" + q.Encode())
	var r api.RecallResult
	if err := json.Unmarshal([]byte(a.Raw), &r); err != nil || !r.OK {
		w.t.Fatalf("recall %q: %s", query, a.Raw)
	}
	return &r
}

func (w *world) get(path string) *answer {
	w.t.Helper()
	req, err := http.NewRequest(http.MethodGet, "http://"+w.d.Addr()+path, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+w.tok)
	a, err := w.do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

// indexed is the account of the index in an answer.
func indexed(t *testing.T, a *answer) *api.Indexed {
	t.Helper()
	var r api.RunResult
	if err := json.Unmarshal([]byte(a.Raw), &r); err != nil || !r.OK {
		t.Fatalf("run: %s", a.Raw)
	}
	return r.Indexed
}

func keys(r *api.RecallResult) []string {
	out := []string{}
	for _, d := range r.Documents {
		out = append(out, d.Key)
	}
	return out
}

const twoNotes = `{"items":[{"id":9007199254740993,"title":"Refund rules","text":"The refund limit is 500 EUR."},{"id":"n-2","title":"Night shift","text":"The lantern stays lit."}]}`

func TestIndexAndRecall(t *testing.T) {
	up := newAnswering(t, twoNotes)
	w := newWorld(t, private, outbound.Options{})
	w.create(indexing("notes", up.URL+"/notes"))

	if got, want := w.recall("lantern"), (&api.RecallResult{OK: true, Documents: []api.RecallDocument{}, Note: `the index is empty: it holds what wrappers whose recipe has "index": "cortex" have read`}); !cmp.Equal(want, got) {
		t.Errorf("before any run: %s", cmp.Diff(want, got))
	}
	if _, err := os.Stat(filepath.Join(w.cfg.WrapDir, "cortex.db")); !os.IsNotExist(err) {
		t.Errorf("a search alone has made the file: %v", err)
	}
	if diff := cmp.Diff(&api.Indexed{Documents: 2}, indexed(t, w.run("notes", `{}`))); diff != "" {
		t.Error(diff)
	}
	want := &api.RecallResult{OK: true, Documents: []api.RecallDocument{{
		Wrapper: "notes", Key: "9007199254740993", Title: "Refund rules", URL: up.URL + "/notes", Snippet: `The **refund** limit is 500 EUR.`,
	}}}
	got := w.recall("refund")
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(api.RecallDocument{}, "ReadAt", "Age", "Score")); diff != "" {
		t.Error(diff)
	}

	// The same record read again replaces what it said.
	up.says(200, `{"items":[{"id":"n-2","title":"Night shift","text":"The beacon stays dark."}]}`)
	if diff := cmp.Diff(&api.Indexed{Documents: 1}, indexed(t, w.run("notes", `{}`))); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"n-2"}, keys(w.recall("beacon"))); diff != "" {
		t.Error(diff)
	}
	if r := w.recall("lantern"); len(r.Documents) != 0 || r.Note != "none of 2 documents has these words; they are of notes (2)" {
		t.Errorf("the older version: %+v", r)
	}
	if r := w.recall("beacon", "wrapper", "other"); r.Note != "nothing that other has read is in the index; there is notes (2)" {
		t.Errorf("of a wrapper that read nothing: %+v", r)
	}
	if r := w.recall("zzz", "wrapper", "notes"); r.Note != "none of the 2 documents of notes has these words" {
		t.Errorf("of a wrapper that read something else: %+v", r)
	}
	if got := keys(w.recall("beacon", "since", "1h")); len(got) != 1 {
		t.Errorf("since an hour ago: %v", got)
	}
	if got := keys(w.recall("beacon", "since", "2999-01-01")); len(got) != 0 {
		t.Errorf("since the year 2999: %v", got)
	}
	for query, field := range map[string]string{"query=...": "query", "query=a&since=soon": "since", "query=a&since=0d": "since", "query=a&since=9999999w": "since"} {
		if a := w.get("/wrap/recall?" + query); a.HTTP != 422 || a.Code != "ARGS_INVALID" || a.Field != field {
			t.Errorf("%s: %s", query, a.Raw)
		}
	}

	// What was read outlives the daemon and its wrapper.
	w.stop()
	w.start()
	w.post("/wrap/wrappers", `{"action":"delete","id":"notes"}`)
	if diff := cmp.Diff([]string{"n-2"}, keys(w.recall("beacon"))); diff != "" {
		t.Error(diff)
	}
}

// Nothing is indexed but whole results of runs of saved wrappers.
func TestNotIndexed(t *testing.T) {
	up := newAnswering(t, twoNotes)
	w := newWorld(t, private, outbound.Options{})
	doc := indexing("notes", up.URL+"/notes")
	w.create(doc)
	narrow := "fields or max_items leave out a part of what the wrapper reads"
	for _, c := range []struct {
		name, path, body string
		want             *api.Indexed
	}{
		{"a dry run", "/wrap/test", `{"id":"notes"}`, nil},
		{"a sample", "/wrap/test", `{"id":"notes","sample":` + twoNotes + `}`, nil},
		{"fewer fields", "/wrap/run", `{"id":"notes","fields":["title"]}`, &api.Indexed{Skipped: narrow}},
		{"fewer items", "/wrap/run", `{"id":"notes","max_items":1}`, &api.Indexed{Skipped: narrow}},
		{"a live test of what is not saved", "/wrap/test", `{"dryRun":false,"wrapper":` + doc + `}`, &api.Indexed{Skipped: "the wrapper is not saved"}},
	} {
		if diff := cmp.Diff(c.want, indexed(t, w.post(c.path, c.body))); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
	up.says(500, twoNotes)
	if a := w.run("notes", `{}`); a.OK {
		t.Errorf("status 500: %s", a.Raw)
	}
	up.says(200, `{"items":[{"id":1,"title":"lantern`)
	if a := w.run("notes", `{}`); a.OK {
		t.Errorf("half a document: %s", a.Raw)
	}
	up.says(200, `{"items":[]}`)
	if diff := cmp.Diff(&api.Indexed{}, indexed(t, w.run("notes", `{}`))); diff != "" {
		t.Errorf("no items: %s", diff)
	}
	if _, err := os.Stat(filepath.Join(w.cfg.WrapDir, "cortex.db")); !os.IsNotExist(err) {
		t.Errorf("something was indexed: %v", err)
	}
	up.says(200, twoNotes)
	if diff := cmp.Diff(&api.Indexed{Documents: 2}, indexed(t, w.post("/wrap/test", `{"id":"notes","dryRun":false}`))); diff != "" {
		t.Errorf("a live test of a saved wrapper is a run: %s", diff)
	}
}

// At most 50 documents of a run are indexed; documents of one title that have
// no id are kept apart.
func TestIndexLimit(t *testing.T) {
	up := newAnswering(t, "")
	w := newWorld(t, private, outbound.Options{})
	w.create(strings.Replace(indexing("notes", up.URL+"/notes"), `"index"`, `"limits":{"maxItems":100},"index"`, 1))
	for _, c := range []struct{ items, want, warnings int }{{50, 50, 0}, {51, 50, 1}} {
		var items []string
		for i := range c.items {
			items = append(items, fmt.Sprintf(`{"title":"Note","text":"lantern number%d."}`, i))
		}
		up.says(200, `{"items":[`+strings.Join(items, ",")+`]}`)
		a := w.run("notes", `{}`)
		if diff := cmp.Diff(&api.Indexed{Documents: c.want}, indexed(t, a)); diff != "" {
			t.Errorf("%d items: %s", c.items, diff)
		}
		if len(a.Warnings) != c.warnings || c.warnings == 1 && a.Warnings[0].Code != "CORTEX_CAPPED" {
			t.Errorf("%d items: %+v", c.items, a.Warnings)
		}
		if got := len(w.recall("lantern", "limit", "50").Documents); got != 50 {
			t.Errorf("%d items: %d documents found", c.items, got)
		}
	}
}

// Of other modes the whole result is one page, for each request.
func TestIndexWholeResult(t *testing.T) {
	up := newAnswering(t, `{"items":[{"a":"lantern"},{"a":"beacon"}]}`)
	w := newWorld(t, private, outbound.Options{})
	recipe := `"response":{"schemaVersion":1,"select":"$.items[*]","mode":"table","title":"Lights","fields":{"Kind":"a"},"index":"cortex"}}`
	w.create(`{"schemaVersion":1,"id":"lights","name":"L","request":{"method":"GET","url":"` + up.URL + `/lights","query":{"q":"{{q}}"}},
		"inputSchema":{"type":"object","properties":{"q":{"type":"string"}}},` + recipe)
	w.create(`{"schemaVersion":1,"id":"asked","name":"L","mutating":false,"request":{"method":"POST","url":"` + up.URL + `/ask","body":{"q":"{{q}}"}},
		"inputSchema":{"type":"object","properties":{"q":{"type":"string"}}},` + recipe)
	for _, q := range []string{"1", "2", "2"} {
		for _, id := range []string{"lights", "asked"} {
			if diff := cmp.Diff(&api.Indexed{Documents: 1}, indexed(t, w.run(id, `{"q":"`+q+`"}`))); diff != "" {
				t.Errorf("%s %s: %s", id, q, diff)
			}
		}
	}
	count := map[string]int{}
	for _, d := range w.recall("beacon", "limit", "50").Documents {
		count[d.Wrapper+" "+d.Title+" "+strings.TrimPrefix(d.URL, up.URL)]++
	}
	if diff := cmp.Diff(map[string]int{"lights Lights /lights?q=1": 1, "lights Lights /lights?q=2": 1, "asked Lights /ask": 2}, count); diff != "" {
		t.Error(diff)
	}
}

// A damaged file, or a place where none can be, never blocks a run.
func TestDamagedIndex(t *testing.T) {
	up := newAnswering(t, twoNotes)
	w := newWorld(t, private, outbound.Options{})
	w.create(indexing("notes", up.URL+"/notes"))
	at := filepath.Join(w.cfg.WrapDir, "cortex.db")

	if err := os.WriteFile(at, []byte(strings.Repeat("no database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&api.Indexed{Documents: 2}, indexed(t, w.run("notes", `{}`))); diff != "" {
		t.Errorf("a damaged file: %s", diff)
	}
	if got := keys(w.recall("lantern")); len(got) != 1 {
		t.Errorf("the new file: %v", got)
	}
	w.stop()
	if err := os.Remove(at); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(at, 0o700); err != nil {
		t.Fatal(err)
	}
	w.start()
	x := indexed(t, w.run("notes", `{}`))
	if x == nil || x.Documents != 0 || x.Error == nil || x.Error.Code != "CORTEX_UNAVAILABLE" {
		t.Errorf("a folder in its place: %+v", x)
	}
	if a := w.get("/wrap/recall?query=lantern"); a.HTTP != 200 || a.Code != "CORTEX_UNAVAILABLE" {
		t.Errorf("a search there: %s", a.Raw)
	}
	if err := os.Remove(at); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&api.Indexed{Documents: 2}, indexed(t, w.run("notes", `{}`))); diff != "" {
		t.Errorf("once it is gone: %s", diff)
	}
}
