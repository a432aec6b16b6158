package daemon_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
)

// described are the descriptions in the tool list, those of the members of a
// wrapper too.
func described(t *testing.T, a *agent) map[string]string {
	t.Helper()
	l, err := a.session.ListTools(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, tool := range l.Tools {
		out[tool.Name] = tool.Description
		var schema struct {
			Properties struct {
				Wrapper struct {
					Properties map[string]struct{ Description string }
				}
			}
		}
		raw, err := json.Marshal(tool.InputSchema)
		if err == nil {
			err = json.Unmarshal(raw, &schema)
		}
		if err != nil {
			t.Fatal(err)
		}
		for name, member := range schema.Properties.Wrapper.Properties {
			out[tool.Name+"."+name] = member.Description
		}
	}
	return out
}

// between cuts what stands behind one text and before another.
func between(t *testing.T, s, from, to string) string {
	t.Helper()
	_, rest, ok := strings.Cut(s, from)
	out, _, end := strings.Cut(rest, to)
	if !ok || !end {
		t.Fatalf("no %q ... %q in\n%s", from, to, s)
	}
	return out
}

// TestTheExampleInTheToolList is a model that has seen nothing but the tool
// list: the wrapper in it is saved without a warning, its dry run and its call
// do what the other examples say.
func TestTheExampleInTheToolList(t *testing.T) {
	t.Parallel()
	asked := ""
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.RequestURI()
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, `{"products":[{"id":9007199254740993,"title":"Phone","price":499.00,"stock":3}]}`)
	}))
	t.Cleanup(api.Close)
	w := newWorld(t, private, outbound.Options{})
	a := w.agent(w.d.Addr())
	tools := described(t, a)
	local := strings.NewReplacer("https://api.example.com", api.URL)
	example := func(tool string) string {
		_, rest, ok := strings.Cut(tools[tool], "Example: ")
		if !ok || !json.Valid([]byte(rest)) {
			t.Fatalf("%s ends with no example: %q", tool, tools[tool])
		}
		return local.Replace(rest)
	}
	doc := local.Replace(between(t, tools["wrap_create"], "Example:\n", "\n"))
	// The rules of the description hold for it, whatever order they are read in.
	got := a.must("wrap_create", `{"wrapper":`+doc+`}`)
	want := "Created shop.search (revision 2).\nNext: wrap_test {\"id\":\"shop.search\",\"args\":{...}} shows the exact request, wrap_run sends it."
	if got != want {
		t.Errorf("wrap_create: %s", got)
	}
	if got := a.must("wrap_test", example("wrap_test")); !strings.Contains(got, "\nGET "+api.URL+"/all/search?q=phone&limit=10\n") || asked != "" {
		t.Errorf("wrap_test: %s (asked %s)", got, asked)
	}
	if got, want := a.must("wrap_run", example("wrap_run")), "## Product search\n\n| Name |\n| --- |\n| Phone |"; got != want || asked != "/all/search?q=phone&limit=10" {
		t.Errorf("wrap_run: %s (asked %s)", got, asked)
	}
	if got, want := a.must("wrap_run", `{"id":"shop.search","args":{"words":"phone"}}`), "## Product search\n\n| Name | Price |\n| --- | --- |\n| Phone | 499.00 |"; got != want {
		t.Errorf("wrap_run: %s", got)
	}
	if got := a.must("wrap_get", example("wrap_get")); !strings.HasPrefix(got, `{"schemaVersion":1,"id":"shop.search"`) {
		t.Errorf("wrap_get: %s", got)
	}
	if got := a.must("wrap_derive", example("wrap_derive")); !strings.HasPrefix(got, `{"schemaVersion":1`) || asked != "/products?limit=3" {
		t.Errorf("wrap_derive: %s (asked %s)", got, asked)
	}
	if got := a.must("wrap_list", example("wrap_list")); got != `None of 1 wrappers has "orders" in its id, name, description or host.` {
		t.Errorf("wrap_list: %s", got)
	}
	if got := a.must("wrap_delete", example("wrap_delete")); got != "Deleted shop.search (revision 3)." {
		t.Errorf("wrap_delete: %s", got)
	}
}

// TestWhatTheDescriptionsName: every key, mode, format and style that wrap_create's
// descriptions name is one that can be saved.
func TestWhatTheDescriptionsName(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, outbound.Options{})
	a := w.agent(w.d.Addr())
	request, response := described(t, a)["wrap_create.request"], described(t, a)["wrap_create.response"]
	save := func(what, request, response string) {
		t.Helper()
		doc := `{"schemaVersion":1,"id":"x","request":{"url":"https://api.example.com/{{path|raw}}"` + request + `},"response":` + response + `,
			"inputSchema":{"type":"object","properties":{"path":{"type":"string","default":"a"},"tags":{"type":"array","items":{"type":"string"}},"items":{"type":"array","items":{"type":"string"}},"customer_id":{"type":"string"}}}}`
		text, failed, err := a.call("wrap_test", `{"wrapper":`+doc+`}`)
		if err != nil || failed || strings.Contains(text, "warning: wrapper") && !strings.Contains(text, "is used nowhere") {
			t.Errorf("%s: %v %s", what, err, text)
		}
	}
	const table = `{"schemaVersion":1,"select":"$[*]","mode":"table","fields":{"A":"a"}}`
	write := strings.TrimSuffix(between(t, request+"\n", "A write: ", "\n"), ".")
	save("a write", ","+write, table)
	values := map[string]string{
		"method": `"GET"`, "url": "", "query": `{"q":"{{tags}}"}`, "headers": `{"X-A":"{{customer_id}}"}`, "body": `{"a":1},"method":"PUT"`, "auth": `"orders-key"`, "timeoutMs": `5000`, "concurrency": `2`,
	}
	for _, key := range strings.Split(between(t, "\n"+request, "\n", ". A whole"), ", ") {
		name, rest, _ := strings.Cut(key, " ")
		switch {
		case name == "url":
		case values[name] != "":
			save(name, `,"`+name+`":`+values[name], table)
		case strings.HasPrefix(rest, "{"):
			save(name, `,"method":"POST","`+name+`":`+rest, table)
		}
	}
	for _, v := range []string{"json", "form"} {
		save("bodyType "+v, `,"method":"POST","bodyType":"`+v+`","body":{"a":"{{items}}"}`, table)
	}
	save("bodyType text", `,"method":"POST","bodyType":"text","body":"{{customer_id}}"`, table)
	for _, v := range []string{"repeat", "brackets"} {
		save("formArrays "+v, `,"method":"POST","bodyType":"form","formArrays":"`+v+`","body":{"a":"{{items}}"}`, table)
	}
	styled := between(t, request, "repeats its name, or ", " (pipe, brackets)")
	for _, style := range []string{"comma", "pipe", "brackets"} {
		save("style "+style, `,"query":{"t":`+strings.Replace(styled, "comma", style, 1)+`}`, table)
	}
	pages := between(t, response, "More pages: ", " (or cursor, link)")
	save("pagination", "", strings.TrimSuffix(table, "}")+","+pages+"}")
	save("document", "", `{"schemaVersion":1,"mode":"document","fields":{"A":"a"}}`)
	save("documents", "", `{"schemaVersion":1,"select":"$[*]","mode":"documents","title":"{{title}}","template":"{{body}}"}`)
	formats := strings.Split(between(t, response+"\n", "Field formats: ", ".\n"), ", ")
	if len(formats) != 16 {
		t.Errorf("%d formats: %q", len(formats), formats)
	}
	for _, f := range formats {
		save("format "+f, "", strings.Replace(table, `"a"}`, `{"path":"a","format":"`+f+`"}}`, 1))
	}
}
