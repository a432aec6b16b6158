package daemon_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hyperbolic-gateway/hb-rest/internal/client"
	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
	"github.com/hyperbolic-gateway/hb-rest/internal/shim"
)

// capped is an agent whose client shows up to n generated tools.
func (w *world) capped(n int) *agent {
	w.t.Helper()
	u, err := url.Parse("http://" + w.d.Addr())
	if err != nil {
		w.t.Fatal(err)
	}
	bridge := client.New(client.Options{URL: u, TokenFiles: []string{w.cfg.TokenPath}, Version: "1.2.3", Started: time.Unix(0, 0)})
	ours, theirs := mcp.NewInMemoryTransports()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = shim.New(shim.Options{Client: bridge, Version: "1.2.3", MaxTools: n}).Run(ctx, theirs)
	}()
	s, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(ctx, ours, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = s.Close(); cancel(); <-ended; bridge.Close() })
	return &agent{w.t, s}
}

// TestTwoHundredAwkwardTools saves what real documents hold and clients refuse,
// eight times over under colliding and long ids: the list has every tool that
// can be shown, in the form that the strictest known client takes, and each that
// is missing is named with the reason by wrap_list.
func TestTwoHundredAwkwardTools(t *testing.T) {
	t.Parallel()
	const (
		good    = "shown"
		refused = "refused at save"
		bad     = "quarantined"
	)
	awkward := []struct{ name, property, end string }{
		{"plain", `{"type":"string"}`, good},
		{"M-05 array", `{"type":"array"}`, good},
		{"empty items", `{"type":"array","items":{}}`, good},
		{"any", `{}`, good},
		{"only null", `{"type":"null"}`, good},
		{"type list", `{"type":["integer","null"]}`, good},
		{"type list of arrays", `{"type":["array","null"]}`, good},
		{"enum of numbers", `{"type":"integer","enum":[1,2]}`, good},
		{"enum with null", `{"type":["string","null"],"enum":["a",null]}`, good},
		{"mixed enum", `{"enum":[1,"a",true,[1]]}`, good},
		{"formats", `{"type":"string","format":"uuid"}`, good},
		{"pattern of RE2", `{"type":"string","pattern":"(?i)^\\pL+\\z"}`, good},
		{"named group", `{"type":"string","pattern":"(?P<y>\\d+)"}`, good},
		{"big numbers", `{"type":"integer","maximum":9223372036854775807,"default":9007199254740993}`, good},
		{"OpenAPI words", `{"type":"string","description":"<b>HTML</b> & \"quotes\" \u2028 \u202e","examples":["x"],"deprecated":true,"title":"T"}`, good},
		{"nested", `{"type":"object","properties":{"a":{"type":"array","items":{"type":"object","properties":{"b":{"type":["array","null"]}}}}}}`, good},
		{"nested bad name", `{"type":"object","properties":{"a b":{"type":"string"}}}`, bad},
		{"prototype", `{"type":"object","properties":{"__proto__":{"type":"string"}}}`, bad},
		{"brackets", `{"type":"object","properties":{"page[size]":{"type":"integer"}}}`, bad},
		{"$ref", `{"$ref":"#/components/schemas/A"}`, refused},
		{"oneOf", `{"oneOf":[{"type":"string"},{"type":"integer"}]}`, refused},
		{"bare true", `true`, refused},
		{"nullable", `{"type":"string","nullable":true}`, refused},
		{"x-mcp-header", `{"type":"string","x-mcp-header":{"name":"A"}}`, refused},
		{"two types", `{"type":["string","integer"]}`, refused},
	}
	w := newWorld(t, nil, outbound.Options{})
	a := w.agent(w.d.Addr())
	ids := []func(i int) string{
		func(i int) string { return fmt.Sprintf("a.b.%d", i) },
		func(i int) string { return fmt.Sprintf("a_b_%d", i) }, // the tool name of the one above is taken
		func(i int) string { return fmt.Sprintf("a-b-%d", i) },
		func(i int) string { return fmt.Sprintf("%s%03d", strings.Repeat("n", 77), i) }, // M-01: 80 characters
		func(i int) string { return fmt.Sprintf("%s%03d", strings.Repeat("n", 97), i) },
		func(i int) string { return fmt.Sprintf("Upper.%d", i) },
		func(i int) string { return fmt.Sprintf("7.%d", i) },
		func(i int) string { return fmt.Sprintf("z%d", i) },
	}
	var want []string // ids to be shown
	reasons := map[string]bool{}
	for _, id := range ids {
		for i, c := range awkward {
			doc := fmt.Sprintf(`{"schemaVersion":1,"id":%q,"request":{"method":"POST","url":"https://api.example.com/","body":"{{p}}"},"exposeAsTool":true,"inputSchema":{"$schema":"x","type":"object","properties":{"p":%s}}}`, id(i), c.property)
			text, failed, err := a.call("wrap_create", `{"wrapper":`+doc+`}`)
			names := strings.Contains(text, "the Anthropic API refuses") || strings.Contains(text, "JavaScript clients lose")
			if err != nil || failed != (c.end == refused) || c.end == bad && !names {
				t.Errorf("%s: %v %s", c.name, err, text)
			}
			switch c.end {
			case good:
				want = append(want, id(i))
			case bad:
				reasons[id(i)] = true
			}
		}
	}
	for _, unicode := range []string{"größe", "日本", "a b", "", "."} {
		if text, failed, _ := a.call("wrap_create", fmt.Sprintf(`{"wrapper":{"schemaVersion":1,"id":%q,"request":{"url":"https://api.example.com/"}}}`, unicode)); !failed || !strings.HasPrefix(text, "WRAPPER_INVALID") {
			t.Errorf("the id %q: %s", unicode, text)
		}
	}
	b := w.capped(200)
	l, err := b.session.ListTools(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(l.Tools) != 10+len(want) || l.NextCursor != "" {
		t.Errorf("%d tools, want 10 and %d", len(l.Tools), len(want))
	}
	name := regexp.MustCompile(`^wrap_[A-Za-z0-9_-]{1,41}$`)
	seen := map[string]bool{}
	for _, tool := range l.Tools {
		if !name.MatchString(tool.Name) || seen[tool.Name] {
			t.Errorf("name %q", tool.Name)
		}
		seen[tool.Name] = true
		an := tool.Annotations
		if an == nil || an.DestructiveHint == nil || an.OpenWorldHint == nil || tool.Title == "" || an.Title != tool.Title || tool.Description == "" {
			t.Errorf("%s: a hint, the title or the description is missing", tool.Name)
		}
		raw, err := json.Marshal(tool.InputSchema)
		if err != nil {
			t.Fatal(err)
		}
		var schema map[string]any
		if err := json.Unmarshal(raw, &schema); err != nil || schema["type"] != "object" || schema["properties"] == nil {
			t.Errorf("%s: %s", tool.Name, raw)
		}
		strictly(t, tool.Name, schema)
	}
	list := b.must("wrap_list", `{"limit":1000}`)
	var shown []string
	for _, line := range strings.Split(list, "\n") {
		id, _, _ := strings.Cut(line, " - ")
		switch {
		case reasons[id]:
			if !strings.Contains(line, " - tool quarantined: ") {
				t.Errorf("not quarantined: %s", line)
			}
			delete(reasons, id)
		case strings.Contains(line, " - tool wrap_"):
			shown = append(shown, id)
		default:
			t.Errorf("neither: %s", line)
		}
	}
	slices.Sort(want)
	slices.Sort(shown)
	if !slices.Equal(want, shown) || len(reasons) > 0 {
		t.Errorf("wrap_list: %d shown, want %d; not named: %v", len(shown), len(want), reasons)
	}
}

// strictly refuses what some known client does.
func strictly(t *testing.T, where string, s map[string]any) {
	t.Helper()
	for k, v := range s {
		switch k {
		case "type":
			if text, ok := v.(string); !ok || text == "null" || text == "array" && s["items"] == nil {
				t.Errorf("%s: type %v", where, v)
			}
		case "properties":
			for name, p := range v.(map[string]any) {
				child, ok := p.(map[string]any)
				if !ok || len(child) == 0 {
					t.Errorf("%s.%s: %v", where, name, p)
				}
				strictly(t, where+"."+name, child)
			}
		case "items":
			child, ok := v.(map[string]any)
			if !ok || len(child) == 0 {
				t.Errorf("%s: items %v", where, v)
			}
			strictly(t, where+"[]", child)
		case "enum":
			for _, e := range v.([]any) {
				if text, ok := e.(string); !ok || text == "" {
					t.Errorf("%s: enum %v", where, v)
				}
			}
		case "description", "title", "default", "minimum", "maximum", "pattern", "required", "additionalProperties":
		default:
			t.Errorf("%s: keyword %s", where, k)
		}
	}
}
