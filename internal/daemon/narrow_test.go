package daemon_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
)

// TestFieldsAndMaxItems: less of an answer, by every way to ask for it; what
// comes back is the same, and no more pages are fetched than are needed.
func TestFieldsAndMaxItems(t *testing.T) {
	t.Parallel()
	var asked []string // of one call at a time
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.RequestURI())
		page := r.URL.Query().Get("page")
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"items":[{"id":%[1]s1,"name":"a%[1]s","price":1.50,"seller":{"city":"Oslo"}},{"id":%[1]s2,"name":"b%[1]s","price":2,"seller":{"city":"Rome"}}]}`, page)
	}))
	t.Cleanup(api.Close)
	empty := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "") }))
	t.Cleanup(empty.Close)
	w := newWorld(t, private, outbound.Options{})
	doc := `{"schemaVersion":1,"id":"shop","name":"Shop","request":{"url":"` + api.URL + `/"},"response":{"schemaVersion":1,"select":"$.items[*]","mode":"table",
		"fields":{"Name":"name","Price":"price"},"record":{"id":"id","name":"name"},"limits":{"maxItems":5},"pagination":{"type":"offset","offsetParam":"page","step":"page","start":1,"pageSize":2}}}`
	w.create(doc)
	w.create(`{"schemaVersion":1,"id":"bare","name":"Bare","request":{"url":"` + api.URL + `/?page=7"}}`)
	w.create(`{"schemaVersion":1,"id":"nothing","name":"Nothing","request":{"url":"` + empty.URL + `/"}}`)
	a := w.agent(w.d.Addr())
	const ids = "[{\"id\":11},{\"id\":12},{\"id\":21}]"
	for _, c := range []struct {
		tool, args, text string
		pages            int
	}{
		{"wrap_run", `{"id":"shop","fields":["id"],"max_items":3,"format":"json"}`, ids + "pages 2/10 (+more)", 2},
		{"wrap_run", `{"id":"shop","fields":["id"],"maxItems":3,"format":"json"}`, ids + "pages 2/10 (+more)", 2},
		{"wrap_test", `{"id":"shop","fields":["id"],"max_items":3,"format":"json","dryRun":false}`, ids + "pages 2/10 (+more)", 2},
		{"wrap_test", `{"wrapper":` + doc + `,"fields":["id"],"maxItems":3,"format":"json","dryRun":false}`, ids + "pages 2/10 (+more)", 2},
		{"wrap_test", `{"id":"shop","fields":["Price"],"max_items":1,"sample":"{\"items\":[{\"price\":1},{\"price\":2}]}"}`, "## Shop\n\n| Price |\n| --- |\n| 1 |\n\nshowing 1 of 2", 0},
		{"wrap_test", `{"id":"shop","fields":["Price"],"max_items":1}`, "Dry run of shop", 0},
		{"wrap_run", `{"id":"shop","fields":["price"],"max_items":1}`, "## Shop\n\n| Price |\n| --- |\n| 1.50 |\n\npages 1/10 (+more)", 1},
		{"wrap_run", `{"id":"bare","fields":["items[0].seller.city"]}`, "## Bare\n\n| items\\[0\\].seller.city |\n| --- |\n| Oslo |", 1},
		{"wrap_run", `{"id":"nothing","fields":["x"]}`, "## Nothing\n\nNo content (status 200).", 0},
	} {
		asked = nil
		text, failed, err := a.call(c.tool, c.args)
		if err != nil || failed || !strings.HasPrefix(text, c.text) {
			t.Errorf("%s %s: %v %v\n%s", c.tool, c.args, failed, err, text)
		}
		if len(asked) != c.pages {
			t.Errorf("%s %s: %d pages: %q", c.tool, c.args, len(asked), asked)
		}
	}
	asked = nil
	for _, c := range []struct{ tool, args, text string }{
		{
			"wrap_run", `{"id":"shop","fields":["Name","Colour"]}`,
			"ARGS_INVALID: fields: \"Colour\" is neither a label nor a record key of the recipe (fields takes: Name, Price, id, name)\n" +
				"Hint: Fix the named arguments; wrap_get or `hbrestd wrapper show` shows the schema.\nRetryable: no",
		},
		{
			"wrap_test", `{"id":"shop","fields":["a","b"]}`,
			"ARGS_INVALID: fields: \"a\", \"b\" are neither labels nor record keys of the recipe (fields takes: Name, Price, id, name)\n" +
				"Hint: Fix the named arguments; wrap_get or `hbrestd wrapper show` shows the schema.\nRetryable: no",
		},
		{
			"wrap_run", `{"id":"bare","fields":["a["]}`,
			"ARGS_INVALID: fields: \"a[\" is not a path (the recipe names no fields, so fields takes paths into an item, such as title or user.login)\n" +
				"Hint: Fix the named arguments; wrap_get or `hbrestd wrapper show` shows the schema.\nRetryable: no",
		},
		{"wrap_run", `{"id":"shop","max_items":1001}`, "MAX_ITEMS_INVALID: max_items is 1001, not a whole number from 1 to 1000\nHint: Use a whole number from 1 to 1000.\nRetryable: no"},
	} {
		text, failed, err := a.call(c.tool, c.args)
		if d := cmp.Diff(c.text, text); d != "" || !failed || err != nil {
			t.Errorf("%s %s: %v %v %s", c.tool, c.args, failed, err, d)
		}
	}
	if asked != nil {
		t.Errorf("refused calls reached the API: %q", asked)
	}
	ran := w.post("/wrap/run", `{"id":"shop","fields":["name","ID"],"maxItems":2}`)
	if !ran.OK || string(ran.Records) != `[{"name":"a1","id":11},{"name":"b1","id":12}]` || len(asked) != 1 {
		t.Errorf("curl: %+v", ran)
	}
}
