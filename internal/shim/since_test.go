package shim

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/client"
)

// since makes the daemon answer a manifest that goes on from another.
func (b *fakeBridge) since(m *api.Manifest) {
	b.publish(m.Revision, m.Wrappers...)
	b.mu.Lock()
	defer b.mu.Unlock()
	whole := b.answers["GET /wrap/manifest"]
	gone := ""
	for i, id := range m.Removed {
		gone += fmt.Sprintf("%s%q", strings.Repeat(",", min(i, 1)), id)
	}
	b.answers["GET /wrap/manifest"] = strings.TrimSuffix(whole, "}") + fmt.Sprintf(`,"total":9,"mark":%q,"since":%q,"removed":[%s]}`, m.Mark, m.Since, gone)
}

// TestSince: hb-rest fetches what has changed and keeps the rest.
func TestSince(t *testing.T) {
	b := newBridge(t)
	b.since(&api.Manifest{Revision: 7, Mark: "era.7", Wrappers: []api.ManifestEntry{exposed("a"), exposed("b"), exposed("c")}})
	s := ready(t, tooled(b, 40))
	if got := s.toolNames(); got != "wrap_a wrap_b wrap_c" {
		t.Fatalf("%q", got)
	}
	for _, step := range []struct {
		what string
		m    api.Manifest
		want string
	}{
		{"one removed, one new", api.Manifest{Revision: 9, Mark: "era.9", Since: "era.7", Removed: []string{"b", "never"}, Wrappers: []api.ManifestEntry{exposed("d")}}, "wrap_a wrap_c wrap_d"},
		{"one that is none any more", api.Manifest{Revision: 10, Mark: "era.10", Since: "era.9", Wrappers: []api.ManifestEntry{exposed("a", func(e *api.ManifestEntry) { e.ExposeAsTool = false })}}, "wrap_c wrap_d"},
		{"another store", api.Manifest{Revision: 12, Mark: "other.12", Wrappers: []api.ManifestEntry{exposed("x")}}, "wrap_x"},
		{"priority", api.Manifest{Revision: 13, Mark: "other.13", Since: "other.12", Wrappers: []api.ManifestEntry{exposed("y", func(e *api.ManifestEntry) { e.Priority = 5 })}}, "wrap_x wrap_y"},
	} {
		b.since(&step.m)
		s.awaitNotice()
		if got := s.toolNames(); got != step.want {
			t.Errorf("%s: %q, want %q", step.what, got, step.want)
		}
	}
	marks := map[string]bool{}
	for _, r := range b.requests() {
		if _, mark, found := strings.Cut(r, "&since="); found {
			mark, _, _ = strings.Cut(mark, "&")
			marks[mark] = true
		}
	}
	for _, mark := range []string{"era.7", "era.9", "era.10", "other.12"} {
		if !marks[mark] {
			t.Errorf("never asked since %s: %v", mark, marks)
		}
	}
}

// TestTakeSince: changes of another list than the one that is there are not
// applied to it.
func TestTakeSince(t *testing.T) {
	srv := tooled(newBridge(t), 40)
	names := func() string {
		var out []string
		for id := range srv.tools.entries {
			out = append(out, id)
		}
		return sorted(out)
	}
	for _, step := range []struct {
		before uint64
		m      api.Manifest
		taken  bool
		want   string
	}{
		{0, api.Manifest{Revision: 5, Mark: "e.5", Since: "e.4", Wrappers: []api.ManifestEntry{exposed("a")}}, false, ""},
		{0, api.Manifest{Revision: 5, Mark: "e.5", Wrappers: []api.ManifestEntry{exposed("a")}}, true, "a"},
		{1, api.Manifest{Revision: 6, Mark: "e.6", Since: "e.5", Wrappers: []api.ManifestEntry{exposed("b")}}, true, "a b"},
		{1, api.Manifest{Revision: 7, Mark: "e.7", Since: "e.5", Wrappers: []api.ManifestEntry{exposed("c")}}, false, "a b"},
		{2, api.Manifest{Revision: 7, Mark: "f.7", Since: "f.6", Wrappers: []api.ManifestEntry{exposed("c")}}, false, "a b"},
		{2, api.Manifest{Revision: 8, Wrappers: []api.ManifestEntry{exposed("z")}}, true, "z"}, // a daemon that gives no mark
		{3, api.Manifest{Revision: 9, Mark: "e.9", Since: "e.7", Wrappers: []api.ManifestEntry{exposed("c")}}, false, "z"},
	} {
		if taken := srv.apply(&step.m, step.before); taken != step.taken || names() != step.want {
			t.Errorf("revision %d since %q: %v, %q; want %v, %q", step.m.Revision, step.m.Since, taken, names(), step.taken, step.want)
		}
	}
}

// TestFound: the daemon has searched; what it found is shown with the count that
// it gave.
func TestFound(t *testing.T) {
	b := newBridge(t)
	s := ready(t, New(Options{Client: b.client(), Version: "test"}))
	for _, c := range []struct{ args, answer, asked, want string }{
		{
			`{"limit":1}`, `{"revision":7,"total":4,"matched":4,"wrappers":[{"id":"a","name":"A","method":"GET","host":"h.test","required":[]}]}`,
			"GET /wrap/manifest?limit=1", "a - A - GET h.test - never verified\n... and 3 more: narrow with query, or raise limit",
		},
		{`{"query":" No&ne "}`, `{"revision":7,"total":4,"wrappers":[]}`, "GET /wrap/manifest?limit=100&query=+No%26ne+", `None of 4 wrappers has "no&ne" in its id, name, description or host.`},
		{`{}`, `{"revision":1,"wrappers":[]}`, "GET /wrap/manifest?limit=100", "No wrappers are saved. Make one: wrap_derive, then wrap_create."},
		{
			`{"query":"` + strings.Repeat("x", maxQuery+1) + `"}`, `{"revision":7,"wrappers":[{"id":"a","name":"A","method":"GET","host":"h.test","required":[]}]}`,
			"GET /wrap/manifest", `None of 1 wrappers has "` + strings.Repeat("x", maxQuery+1) + `" in its id, name, description or host.`,
		},
	} {
		b.answer("GET /wrap/manifest", c.answer)
		if d := cmp.Diff(c.want, s.text("wrap_list", c.args, false)); d != "" {
			t.Errorf("%.60s (-want +got)\n%s", c.args, d)
		}
		if d := cmp.Diff([]string{c.asked}, b.requests()); d != "" {
			t.Errorf("%.60s (-want +got)\n%s", c.args, d)
		}
	}
}

// TestDaemonThatCannotChoose: one that was started before it could is asked for
// all of it, as ever.
func TestDaemonThatCannotChoose(t *testing.T) {
	b := newBridge(t)
	b.publish(7, exposed("a"), exposed("b"), api.ManifestEntry{ID: "c", Name: "C", Method: "GET", Host: "h.test"})
	old := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name := range r.URL.Query() {
			if r.URL.Path == "/wrap/manifest" && name != "after" {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusBadRequest)
				_, _ = fmt.Fprintf(w, `{"ok":false,"code":"BAD_REQUEST","status":null,"field":"query.%[1]s","retryable":false,"hint":"","message":"query.%[1]s: no such parameter; this route knows after","details":[]}`, name)
				return
			}
		}
		b.ServeHTTP(w, r)
	}))
	t.Cleanup(old.Close)
	u, err := url.Parse(old.URL)
	if err != nil {
		t.Fatal(err)
	}
	srv := New(Options{Client: client.New(client.Options{URL: u, TokenFiles: []string{b.tokenFile}}), Version: "test", MaxTools: 40})
	srv.tools.pace = tooled(b, 40).tools.pace
	s := ready(t, srv)
	if got := s.toolNames(); got != "wrap_a wrap_b" {
		t.Errorf("%q", got)
	}
	b.publish(8, exposed("b"), api.ManifestEntry{ID: "c", Name: "C", Method: "GET", Host: "h.test"})
	s.awaitNotice()
	want := "b - Name of b - GET h.test - tool wrap_b - never verified\n... and 1 more: narrow with query, or raise limit"
	if d := cmp.Diff(want, s.textOf("wrap_list", `{"limit":1}`)); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}
