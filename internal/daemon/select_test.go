package daemon_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/client"
	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
)

// bridgeClient is a client as hb-rest has one.
func (w *world) bridgeClient() *client.Client {
	c := client.New(client.Options{URL: &url.URL{Scheme: "http", Host: w.d.Addr()}, TokenFiles: []string{w.cfg.TokenPath}})
	w.t.Cleanup(c.Close)
	return c
}

// inShort is a manifest in one line.
func inShort(m *api.Manifest) string {
	var ids []string
	for _, e := range m.Wrappers {
		ids = append(ids, e.ID)
	}
	return fmt.Sprintf("[%s] %d of %d, removed [%s]", strings.Join(ids, " "), m.Matched, m.Total, strings.Join(m.Removed, " "))
}

// A list of some wrappers has those, and says how many there are.
func TestSelect(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, outbound.Options{})
	save := func(id, name, more string) {
		w.create(fmt.Sprintf(`{"schemaVersion":1,"id":%q,"name":%q,"request":{"url":"https://%s.example.com/"}%s}`, id, name, id, more))
	}
	save("ab", "Orders", "")
	save("b", "Customers", `,"description":"with their ORDERS"`)
	save("c", "Tool", `,"exposeAsTool":true`)
	save("d", "Read", `,"response":{"schemaVersion":1,"select":"$","fields":{"Id":"id"},"record":{"id":"id"},"index":"cortex"}`)
	c, ctx := w.bridgeClient(), context.Background()
	for _, q := range []struct {
		query api.ManifestQuery
		want  string
	}{
		{api.ManifestQuery{}, "[ab b c d] 0 of 0, removed []"},
		{api.ManifestQuery{Limit: 2}, "[ab b] 4 of 4, removed []"},
		{api.ManifestQuery{Limit: 1000}, "[ab b c d] 4 of 4, removed []"},
		{api.ManifestQuery{Query: "Orders"}, "[ab b] 2 of 4, removed []"},
		{api.ManifestQuery{Query: " oRdErS ", Limit: 1}, "[ab] 2 of 4, removed []"},
		{api.ManifestQuery{Query: "D.EXAMPLE"}, "[d] 1 of 4, removed []"},
		{api.ManifestQuery{Query: "&limit=1#%"}, "[] 0 of 4, removed []"},
		{api.ManifestQuery{Tools: true}, "[c d] 0 of 4, removed []"},
	} {
		m, err := c.Select(ctx, &q.query)
		if err != nil || inShort(m) != q.want || m.Revision != w.d.Revision() {
			t.Errorf("%+v: %v, %s, want %s", q.query, err, inShort(m), q.want)
		}
	}
}

// Whoever sends the mark of its list gets what has changed after it; after
// another start, all of it.
func TestSelectSince(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, outbound.Options{})
	doc := func(id, name string, tool bool) string {
		return fmt.Sprintf(`{"schemaVersion":1,"id":%q,"name":%q,"request":{"url":"https://a.example.com/"},"exposeAsTool":%v}`, id, name, tool)
	}
	for _, id := range []string{"a", "b", "c"} {
		w.create(doc(id, "Name", true))
	}
	w.create(doc("plain", "Name", false))
	c, ctx := w.bridgeClient(), context.Background()
	tools := func(since string) *api.Manifest {
		t.Helper()
		m, err := c.Select(ctx, &api.ManifestQuery{Tools: true, Since: since})
		if err != nil || m.Mark == "" {
			t.Fatalf("%v, %+v", err, m)
		}
		return m
	}
	first := tools("")
	if got := inShort(first); got != "[a b c] 0 of 4, removed []" || first.Since != "" {
		t.Errorf("the first: %s since %q", got, first.Since)
	}
	now := first
	for _, step := range []struct {
		action, doc, want string
	}{
		{"update", doc("b", "Another name", true), "[b] 0 of 4, removed []"},
		{"update", doc("c", "Name", false), "[] 0 of 4, removed [c]"},
		{"create", doc("d", "Name", true), "[d] 0 of 5, removed []"},
		{"update", doc("plain", "Another name", false), "[] 0 of 5, removed [plain]"},
		{"", "", "[] 0 of 5, removed []"},
	} {
		if step.action != "" {
			if a := w.change(step.action, step.doc); !a.OK {
				t.Fatal(a.Raw)
			}
		}
		m := tools(now.Mark)
		if got := inShort(m); got != step.want || m.Since != now.Mark {
			t.Errorf("%s: %s since %q, want %s", step.action, got, m.Since, step.want)
		}
		now = m
	}
	if got := inShort(tools(first.Mark)); got != "[b d] 0 of 5, removed [c plain]" {
		t.Errorf("since the first: %s", got)
	}

	// News and what they are in one call.
	news := make(chan *api.Manifest)
	go func() {
		m, err := c.Select(ctx, &api.ManifestQuery{After: now.Revision, Tools: true, Since: now.Mark})
		if err != nil {
			t.Error(err)
			m = &api.Manifest{}
		}
		news <- m
	}()
	select {
	case m := <-news:
		t.Errorf("it did not wait: %s", inShort(m))
	case <-time.After(50 * time.Millisecond): // either way round the answer is the same
	}
	if a := w.post("/wrap/wrappers", `{"action":"delete","id":"a"}`); !a.OK {
		t.Fatal(a.Raw)
	}
	if got := inShort(<-news); got != "[] 0 of 4, removed [a]" {
		t.Errorf("the news: %s", got)
	}
	w.stop()
	w.start()
	c = w.bridgeClient()
	for _, mark := range []string{now.Mark, first.Mark, "", "nonsense", strings.Repeat("0", 4000)} {
		if m := tools(mark); inShort(m) != "[b d] 0 of 4, removed []" || m.Since != "" {
			t.Errorf("after another start: %s since %q", inShort(m), m.Since)
		}
	}
}

// What does not go together is refused, with its name.
func TestSelectRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, outbound.Options{})
	for query, field := range map[string]string{
		"limit=0": "query.limit", "limit=1001": "query.limit", "limit=x": "query.limit", "limit=": "query.limit",
		"tools=0": "query.tools", "tools=": "query.tools", "since=x": "query.since", "since=": "query.since",
		"tools=1&query=x": "query.tools", "tools=1&limit=1": "query.tools", "after=-1": "query.after",
		"query=a&query=b": "query.query", "all=1": "query.all",
	} {
		a := w.get("/wrap/manifest?" + query)
		if a.HTTP != 400 || a.Code != "BAD_REQUEST" || a.Field != field {
			t.Errorf("%s: %s", query, a.Raw)
		}
	}
}
