package shim

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
)

const noProperties = `{"type":"object","properties":{}}`

// exposed is an entry that wants to be a tool.
func exposed(id string, change ...func(*api.ManifestEntry)) api.ManifestEntry {
	e := api.ManifestEntry{
		ID: id, Name: "Name of " + id, Method: "GET", Host: "h.test", Required: []string{}, ExposeAsTool: true,
		Tool: "wrap_" + strings.ReplaceAll(id, ".", "_"), InputSchema: json.RawMessage(noProperties),
	}
	for _, c := range change {
		c(&e)
	}
	return e
}

func priority(n int) func(*api.ManifestEntry) {
	return func(e *api.ManifestEntry) { e.Priority = n }
}

func named(tool string) func(*api.ManifestEntry) {
	return func(e *api.ManifestEntry) { e.Tool = tool }
}

func quarantine(reason string) func(*api.ManifestEntry) {
	return func(e *api.ManifestEntry) { e.Quarantined, e.InputSchema = reason, nil }
}

func schema(s string) func(*api.ManifestEntry) {
	return func(e *api.ManifestEntry) { e.InputSchema = json.RawMessage(s) }
}

func TestChooseTools(t *testing.T) {
	many := func(n int) []api.ManifestEntry {
		var out []api.ManifestEntry
		for i := range n {
			out = append(out, exposed(fmt.Sprintf("w%03d", i)))
		}
		return out
	}
	tests := []struct {
		name    string
		entries []api.ManifestEntry
		limit   int
		tools   string // in order
		marks   map[string]string
	}{
		{"none", nil, 40, "", map[string]string{}},
		{"only those that want it", []api.ManifestEntry{{ID: "plain", Method: "GET"}, exposed("a")}, 40, "wrap_a", map[string]string{"a": "tool wrap_a"}},
		{
			"priority, then id",
			[]api.ManifestEntry{exposed("c"), exposed("a"), exposed("z", priority(1)), exposed("b", priority(1000))},
			40,
			"wrap_b wrap_z wrap_a wrap_c",
			map[string]string{"a": "tool wrap_a", "b": "tool wrap_b", "c": "tool wrap_c", "z": "tool wrap_z"},
		},
		{"one", []api.ManifestEntry{exposed("a"), exposed("b", priority(5))}, 1, "wrap_b", map[string]string{"b": "tool wrap_b", "a": "tool over cap: call wrap_run"}},
		{"disabled", []api.ManifestEntry{exposed("a")}, 0, "", map[string]string{"a": "tools disabled: call wrap_run"}},
		{
			"a quarantined one takes no place",
			[]api.ManifestEntry{exposed("a", quarantine("why")), exposed("b")},
			1, "wrap_b",
			map[string]string{"a": "tool quarantined: why", "b": "tool wrap_b"},
		},
		{
			"wrap_run stays what it is",
			[]api.ManifestEntry{exposed("run"), exposed("x", named("recall_memory"))},
			40, "",
			map[string]string{"run": "tool quarantined: the name wrap_run is taken", "x": "tool quarantined: the name recall_memory is taken"},
		},
		{"the name that the store gave run", []api.ManifestEntry{exposed("run", named("wrap_run_4c8ba5"))}, 40, "wrap_run_4c8ba5", map[string]string{"run": "tool wrap_run_4c8ba5"}},
		{
			"one name twice",
			[]api.ManifestEntry{exposed("b", named("wrap_x")), exposed("a", named("wrap_x"))},
			40, "wrap_x",
			map[string]string{"a": "tool wrap_x", "b": "tool quarantined: the name wrap_x is taken"},
		},
		{"a name of 64", []api.ManifestEntry{exposed("a", named(strings.Repeat("n", 64)))}, 40, strings.Repeat("n", 64), map[string]string{"a": "tool " + strings.Repeat("n", 64)}},
		{
			"a name of 65",
			[]api.ManifestEntry{exposed("a", named(strings.Repeat("n", 65)))},
			40, "",
			map[string]string{"a": `tool quarantined: the name "` + strings.Repeat("n", 59) + `…" is not one that clients take`},
		},
		{"a name with a dot", []api.ManifestEntry{exposed("a", named("wrap_a.b"))}, 40, "", map[string]string{"a": `tool quarantined: the name "wrap_a.b" is not one that clients take`}},
		{"a daemon without tools", []api.ManifestEntry{exposed("a", named(""), schema(""))}, 40, "", map[string]string{}},
		{"damaged", []api.ManifestEntry{{ID: "a", Damaged: "bad", ExposeAsTool: true, Tool: "wrap_a"}}, 40, "", map[string]string{}},
		{"no schema", []api.ManifestEntry{exposed("a", schema(""))}, 40, "", map[string]string{"a": "tool quarantined: it has no input schema"}},
	}
	for _, bad := range []string{`true`, `[]`, `{}`, `{"type":"array","properties":{}}`, `{"type":"object"}`, `{"type":["object"],"properties":{}}`, `{"type":"object","properties":[]}`, `{`} {
		tests = append(tests, struct {
			name    string
			entries []api.ManifestEntry
			limit   int
			tools   string
			marks   map[string]string
		}{"schema " + bad, []api.ManifestEntry{exposed("a", schema(bad))}, 40, "", map[string]string{"a": "tool quarantined: its input schema does not describe an object"}})
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tools, marks := chooseTools(tt.entries, tt.limit, nil)
			var names []string
			for _, g := range tools {
				names = append(names, g.definition.Name)
			}
			if d := cmp.Diff(tt.tools, strings.Join(names, " ")); d != "" {
				t.Errorf("tools (-want +got)\n%s", d)
			}
			got := map[string]string{}
			for id, m := range marks {
				got[id] = m.String()
			}
			if d := cmp.Diff(tt.marks, got); d != "" {
				t.Errorf("marks (-want +got)\n%s", d)
			}
		})
	}
	for _, limit := range []int{40, 200} {
		for _, n := range []int{limit, limit + 1} {
			tools, marks := chooseTools(many(n), limit, nil)
			over := 0
			for _, m := range marks {
				if m.state == overCap {
					over++
				}
			}
			if len(tools) != limit || over != n-limit || tools[limit-1].id != fmt.Sprintf("w%03d", limit-1) {
				t.Errorf("%d of %d: %d tools, %d over the cap", limit, n, len(tools), over)
			}
		}
	}
}

// A definition of 64 KiB is shown, one byte more is not: 200 of them must fit
// into one line.
func TestDefinitionLimit(t *testing.T) {
	of := func(n int) api.ManifestEntry {
		return exposed("a", schema(`{"type":"object","properties":{"p":{"type":"string","description":"`+strings.Repeat("x", n)+`"}}}`))
	}
	g, err := newGeneratedTool(of(0), map[string]bool{})
	if err != nil {
		t.Fatal(err)
	}
	empty := len(g.line) - len("a\n")
	if _, err := newGeneratedTool(of(maxDefinition-empty), map[string]bool{}); err != nil {
		t.Error(err)
	}
	if _, err := newGeneratedTool(of(maxDefinition-empty+1), map[string]bool{}); err == nil || err.Error() != "its definition has 65537 bytes, the limit is 65536" {
		t.Error(err)
	}
}

func TestToolDescription(t *testing.T) {
	long := strings.Repeat("word ", 400) // 2000 characters
	tests := []struct {
		name string
		e    api.ManifestEntry
		want string
	}{
		{"description", api.ManifestEntry{ID: "a", Name: "N", Description: "Search the shop.\nBy words", Method: "GET", Host: "h.test"}, "Search the shop. By words. GET h.test, answers in Markdown."},
		{"name", api.ManifestEntry{ID: "a", Name: "Product search", Method: "HEAD", Host: "h.test:8443"}, "Product search. HEAD h.test:8443, answers in Markdown."},
		{"id", api.ManifestEntry{ID: "a.b", Method: "GET", Host: "h.test"}, "a.b. GET h.test, answers in Markdown."},
		{"a question", api.ManifestEntry{ID: "a", Description: "Is it up?", Method: "GET", Host: "h.test"}, "Is it up? GET h.test, answers in Markdown."},
		{
			"a write",
			api.ManifestEntry{ID: "orders.create", Description: "Create an order.", Method: "POST", Methods: []string{"POST", "PUT"}, Host: "h.test", Mutating: true},
			"Create an order. POST|PUT h.test, answers in Markdown. Changes data: wrap_test with id orders.create shows the request first.",
		},
		{"long", api.ManifestEntry{ID: "a", Description: long, Method: "GET", Host: "h.test"}, long[:799] + "… GET h.test, answers in Markdown."},
	}
	for _, tt := range tests {
		if d := cmp.Diff(tt.want, toolDescription(tt.e)); d != "" {
			t.Errorf("%s (-want +got)\n%s", tt.name, d)
		}
	}
	// The longest of everything: OpenAI's API refuses 1025 characters.
	longest := api.ManifestEntry{
		ID: strings.Repeat("i", 100), Description: strings.Repeat("é", 2000), Method: "GET", Methods: []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"},
		Host: strings.Repeat("h", 253) + ":65535", Mutating: true,
	}
	got := toolDescription(longest)
	if n := utf8.RuneCountInString(got); n > 1024 || n < 1000 || !strings.HasSuffix(got, " shows the request first.") {
		t.Errorf("%d characters: %s", n, got)
	}
}

// TestAnnotations: the hints of the worst of the methods; openWorld always.
func TestAnnotations(t *testing.T) {
	tests := []struct {
		methods                           string // the first is the default
		mutating                          bool
		readOnly, destructive, idempotent bool
	}{
		{"GET", false, true, false, true},
		{"HEAD", false, true, false, true},
		{"POST", true, false, false, false},
		{"PUT", true, false, true, true},
		{"PATCH", true, false, true, false},
		{"DELETE", true, false, true, true},
		{"GET POST", true, false, false, false},
		{"GET DELETE", true, false, true, true},
		{"PUT POST", true, false, true, false},
		{"POST", false, true, false, true}, // the document says that it only asks
		{"GET", true, false, true, false},  // the document says that it changes something
	}
	for _, tt := range tests {
		e := api.ManifestEntry{Mutating: tt.mutating}
		e.Methods = strings.Fields(tt.methods)
		e.Method = e.Methods[0]
		if len(e.Methods) == 1 {
			e.Methods = nil
		}
		a := annotations(e)
		got := [4]bool{a.ReadOnlyHint, *a.DestructiveHint, a.IdempotentHint, *a.OpenWorldHint}
		if want := [4]bool{tt.readOnly, tt.destructive, tt.idempotent, true}; got != want {
			t.Errorf("%s mutating %v: %v, want %v (readOnly, destructive, idempotent, openWorld)", tt.methods, tt.mutating, got, want)
		}
	}
}

func sorted(names []string) string {
	slices.Sort(names)
	return strings.Join(names, " ")
}

// TestToolsAreSmall: what an ordinary tool adds to the list, which every
// session pays for.
func TestToolsAreSmall(t *testing.T) {
	e := exposed("shop.products.search", schema(`{"type":"object","properties":{"query":{"type":"string","minLength":1,"description":"What to look for"},`+
		`"limit":{"type":"integer","minimum":1,"maximum":50,"default":10}},"required":["query"],"additionalProperties":false}`))
	e.Name, e.Description, e.Host = "Product search", "Search the catalogue by words.", "api.example.com"
	g, err := newGeneratedTool(e, map[string]bool{})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(g.line) - len(g.id) - 1; n > 520 {
		t.Errorf("%d bytes: %s", n, g.line)
	}
}

// TestTheLongestList: 200 tools of the largest definition are one line that
// clients read.
func TestTheLongestList(t *testing.T) {
	var entries []api.ManifestEntry
	for i := range 200 {
		e := exposed(fmt.Sprintf("w%03d", i))
		g, err := newGeneratedTool(e, map[string]bool{})
		if err != nil {
			t.Fatal(err)
		}
		const property = `"p":{"type":"string","description":""}`
		fill := maxDefinition - (len(g.line) - len(g.id) - 1) - len(property)
		e.InputSchema = json.RawMessage(`{"type":"object","properties":{"p":{"type":"string","description":"` + strings.Repeat("x", fill) + `"}}}`)
		if g, err = newGeneratedTool(e, map[string]bool{}); err != nil || len(g.line) != maxDefinition+len("w000\n") {
			t.Fatalf("%v: %d bytes", err, len(g.line))
		}
		entries = append(entries, e)
	}
	b := newBridge(t)
	b.publish(3, entries...)
	s := ready(t, New(Options{Client: b.client(), Version: "test", MaxTools: 200}))
	s.text("wrap_reload", "{}", false) // the list is there
	s.send(`{"jsonrpc":"2.0","id":"list","method":"tools/list"}`)
	var line string
	for !strings.Contains(line, `"id":"list"`) {
		line = s.receive()
	}
	if n := strings.Count(line, `"name":"wrap_`); n != 210 || len(line) >= maxFrame || len(line) < 200*maxDefinition {
		t.Errorf("%d tools in %d bytes", n, len(line))
	}
}
