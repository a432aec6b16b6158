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
	"github.com/hyperbolic-gateway/hb-rest/internal/e2e/awkward"
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
	w := newWorld(t, nil, outbound.Options{})
	a := w.agent(w.d.Addr())
	var want []string // ids to be shown
	reasons := map[string]bool{}
	docs := awkward.Documents("https://api.example.com/")
	if len(docs) != 200 {
		t.Fatalf("%d documents", len(docs))
	}
	for _, doc := range docs {
		text, failed, err := a.call("wrap_create", `{"wrapper":`+string(doc.JSON)+`}`)
		says := strings.Contains(text, "the Anthropic API refuses") || strings.Contains(text, "JavaScript clients lose")
		if err != nil || failed != (doc.End == awkward.Refused) || says != (doc.End == awkward.Quarantined) {
			t.Errorf("%s: %v %s", doc.Name, err, text)
		}
		switch doc.End {
		case awkward.Shown:
			want = append(want, doc.ID)
		case awkward.Quarantined:
			reasons[doc.ID] = true
		}
	}
	for _, id := range awkward.BadIDs() {
		if text, failed, _ := a.call("wrap_create", fmt.Sprintf(`{"wrapper":{"schemaVersion":1,"id":%q,"request":{"url":"https://api.example.com/"}}}`, id)); !failed || !strings.HasPrefix(text, "WRAPPER_INVALID") {
			t.Errorf("the id %q: %s", id, text)
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
