package shim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
)

const changedNotice = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{}}`

// tooled is a server with generated tools that follows quickly.
func tooled(b *fakeBridge, limit int) *Server {
	s := New(Options{Client: b.client(), Version: "test", MaxTools: limit})
	s.tools.pace = pace{firstList: 10 * time.Second, settle: 20 * time.Millisecond, settles: 10, retry: 10 * time.Millisecond, retryMax: 20 * time.Millisecond}
	return s
}

// ask sends a request and returns the raw result and how many notices of a
// change came before it.
func (c *session) ask(method, params string) (result string, notices int) {
	c.t.Helper()
	c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":77,"method":%q,"params":%s}`, method, params))
	for {
		line := c.receive()
		if line == changedNotice {
			notices++
			continue
		}
		var env struct {
			ID     int
			Result json.RawMessage
		}
		if err := json.Unmarshal([]byte(line), &env); err != nil || env.ID != 77 || env.Result == nil {
			c.t.Fatalf("%s: %v\n%s", method, err, line)
		}
		return string(env.Result), notices
	}
}

// tools returns the raw definitions of the generated tools by name.
func (c *session) tools() map[string]string {
	c.t.Helper()
	raw, _ := c.ask("tools/list", "{}")
	var list struct{ Tools []json.RawMessage }
	if err := json.Unmarshal([]byte(raw), &list); err != nil {
		c.t.Fatal(err)
	}
	meta, out := reservedNames(), map[string]string{}
	for _, tool := range list.Tools {
		var named struct{ Name string }
		if err := json.Unmarshal(tool, &named); err != nil {
			c.t.Fatal(err)
		}
		if !meta[named.Name] {
			out[named.Name] = string(tool)
		}
	}
	return out
}

func (c *session) toolNames() string {
	c.t.Helper()
	var names []string
	for name := range c.tools() {
		names = append(names, name)
	}
	return sorted(names)
}

// awaitNotice reads lines until the client is told of a change.
func (c *session) awaitNotice() {
	c.t.Helper()
	if line := c.receive(); line != changedNotice {
		c.t.Fatalf("instead of a notice: %s", line)
	}
}

// textOf calls a tool and returns its text, whatever notices come before.
func (c *session) textOf(tool, arguments string) string {
	c.t.Helper()
	raw, _ := c.ask("tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, tool, arguments))
	var r toolResult
	if err := json.Unmarshal([]byte(raw), &r); err != nil || len(r.Content) != 1 {
		c.t.Fatalf("%s: %v %s", tool, err, raw)
	}
	return r.Content[0].Text
}

const ranA = `{"ok":true,"status":200,"durationMs":1,"wrapper":{"id":"a.b","name":"A"},"markdown":"# 9007199254740993","meta":{"mode":"table","selected":1,"rendered":1,"truncated":false}}`

// TestGeneratedTool compares raw lines: the definition, the call, and what the
// bridge is asked.
func TestGeneratedTool(t *testing.T) {
	b := newBridge(t)
	b.publish(7, exposed("a.b", func(e *api.ManifestEntry) {
		e.Name, e.Description = "A & B", "Finds <things>."
		e.InputSchema = json.RawMessage(`{"type": "object", "required":["z"], "properties": {"z":{"type":"integer","minimum":9007199254740993},"a":{"type":"string","default":"x"}}, "additionalProperties":false}`)
	}))
	b.answer("POST /wrap/run", ranA)
	s := ready(t, tooled(b, 40))
	want := map[string]string{"wrap_a_b": `{"name":"wrap_a_b","title":"A & B",` +
		`"inputSchema":{"type":"object","required":["z"],"properties":{"z":{"type":"integer","minimum":9007199254740993},"a":{"type":"string","default":"x"}},"additionalProperties":false},` +
		`"description":"Finds <things>. GET h.test, answers in Markdown.",` +
		`"annotations":{"destructiveHint":false,"idempotentHint":true,"openWorldHint":true,"readOnlyHint":true,"title":"A & B"}}`}
	got := s.tools()
	for name, tool := range got { // members of an object have no order; inside the schema they have
		got[name] = sameOrder(t, tool, want[name])
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	b.requests()
	for _, tt := range []struct{ arguments, args string }{
		{`{"z":90071992547409930001,"a":"<&>"}`, `{"z":90071992547409930001,"a":"<&>"}`},
		{`{"z":1.50,"unknown":null}`, `{"z":1.50,"unknown":null}`},
		{`{}`, `{}`},
		{`null`, `{}`},
	} {
		raw, notices := s.ask("tools/call", `{"name":"wrap_a_b","arguments":`+tt.arguments+`}`)
		if notices != 0 || raw != `{"content":[{"type":"text","text":"# 9007199254740993"}]}` {
			t.Errorf("%d notices, %s", notices, raw)
		}
		if d := cmp.Diff([]string{`POST /wrap/run {"id":"a.b","args":` + tt.args + `,"format":"markdown"}`}, calls(b)); d != "" {
			t.Errorf("%s (-want +got)\n%s", tt.arguments, d)
		}
	}
	raw, _ := s.ask("tools/call", `{"name":"wrap_a_b"}`) // no arguments at all
	if d := cmp.Diff([]string{`POST /wrap/run {"id":"a.b","args":{},"format":"markdown"}`}, calls(b)); d != "" {
		t.Errorf("%s (-want +got)\n%s", raw, d)
	}
	first, _, _ := strings.Cut(s.textOf("wrap_a_b", `[1]`), "\n")
	if first != "BAD_REQUEST: arguments of wrap_a_b must be an object, not an array" || len(calls(b)) > 0 {
		t.Errorf("an array: %s", first)
	}
}

// sameOrder writes got with its top-level members in the order of want; the
// values stay byte for byte.
func sameOrder(t *testing.T, got, want string) string {
	t.Helper()
	var g map[string]json.RawMessage
	if err := json.Unmarshal([]byte(got), &g); err != nil {
		t.Fatal(err)
	}
	var parts []string
	for _, m := range members(json.RawMessage(want)) {
		if v, ok := g[m.name]; ok {
			parts = append(parts, fmt.Sprintf("%q:%s", m.name, unescaped(v)))
			delete(g, m.name)
		}
	}
	for name, v := range g {
		parts = append(parts, fmt.Sprintf("%q:%s", name, v))
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// unescaped undoes the escapes of < > & that JSON allows.
func unescaped(raw json.RawMessage) string {
	return strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(string(raw))
}

// calls are the bridge's requests without those for the manifest and status.
func calls(b *fakeBridge) []string {
	var out []string
	for _, r := range b.requests() {
		if !strings.HasPrefix(r, "GET /wrap/manifest") && r != "GET /wrap/status" {
			out = append(out, r)
		}
	}
	return out
}

// TestFirstList: the tools are there at the first tools/list, without a notice.
func TestFirstList(t *testing.T) {
	b := newBridge(t)
	b.publish(7, exposed("a"), exposed("b"))
	s := ready(t, tooled(b, 40))
	if got := s.toolNames(); got != "wrap_a wrap_b" {
		t.Errorf("%q", got)
	}
	b.publish(8, exposed("a"))
	s.awaitNotice() // the first: none came for the tools that were in the first list
	if got := s.toolNames(); got != "wrap_a" {
		t.Errorf("%q", got)
	}
}

// TestSlowDaemon: initialize never waits for it, tools/list only for a moment,
// and the client is told when the tools are there.
func TestSlowDaemon(t *testing.T) {
	b := newBridge(t)
	b.publish(7, exposed("a"))
	release := make(chan struct{})
	b.hold = func(*http.Request) { <-release }
	srv := tooled(b, 40)
	srv.tools.pace.firstList = 20 * time.Millisecond
	s := ready(t, srv)
	if got := s.toolNames(); got != "" {
		t.Errorf("%q", got)
	}
	close(release)
	s.awaitNotice()
	if got := s.toolNames(); got != "wrap_a" {
		t.Errorf("%q", got)
	}
}

// TestCallBeforeList: a client that kept the list of its last session calls at
// once.
func TestCallBeforeList(t *testing.T) {
	b := newBridge(t)
	b.publish(7, exposed("a"))
	b.answer("POST /wrap/run", ranA)
	s := ready(t, tooled(b, 40))
	if got := s.textOf("wrap_a", `{}`); got != "# 9007199254740993" {
		t.Errorf("%q", got)
	}
}

// TestOneNoticeForABurst, and none for changes that change no tool.
func TestOneNoticeForABurst(t *testing.T) {
	b := newBridge(t)
	b.publish(7)
	srv := tooled(b, 200)
	srv.tools.pace.settle = 200 * time.Millisecond
	s := ready(t, srv)
	if got := s.toolNames(); got != "" {
		t.Fatalf("%q", got)
	}
	var entries []api.ManifestEntry
	for i := range 50 {
		entries = append(entries, exposed(fmt.Sprintf("w%02d", i)))
		b.publish(uint64(8+i), entries...)
	}
	s.awaitNotice()
	raw, notices := s.ask("tools/list", "{}")
	if n := strings.Count(raw, `"name":"wrap_w`); n != 50 || notices != 0 {
		t.Errorf("%d tools, %d more notices", n, notices)
	}
	// The same again under new revisions, a wrapper that is no tool, and then
	// one real change: one notice in all.
	b.publish(58, entries...)
	waitFor(t, srv, 58)
	b.publish(59, append(entries, api.ManifestEntry{ID: "plain", Method: "GET", Host: "h.test"})...)
	waitFor(t, srv, 59)
	entries[0].Name = "Renamed"
	b.publish(60, entries...)
	s.awaitNotice()
	if _, notices := s.ask("ping", "{}"); notices != 0 {
		t.Errorf("%d notices too many", notices)
	}
	if got := s.tools()["wrap_w00"]; !strings.Contains(got, `"title":"Renamed"`) {
		t.Error(got)
	}
}

// waitFor waits until the server has seen a revision.
func waitFor(t *testing.T, s *Server, revision uint64) {
	t.Helper()
	for range 2000 {
		if s.tools.known() == revision {
			return
		}
		time.Sleep(5 * time.Millisecond) // there is no event to wait for: nothing is told
	}
	t.Fatalf("revision %d, not %d", s.tools.known(), revision)
}

// TestTwoShims: what one client saves, both get, the one that saved before its
// answer.
func TestTwoShims(t *testing.T) {
	b := newBridge(t)
	b.publish(7)
	b.answer("POST /wrap/wrappers", `{"ok":true,"id":"a","wrapper":{"id":"a","exposeAsTool":true},"revision":8}`)
	b.hold = func(r *http.Request) {
		if r.Method == "POST" {
			b.publish(8, exposed("a"))
		}
	}
	one, two := ready(t, tooled(b, 40)), ready(t, tooled(b, 40))
	one.toolNames()
	two.toolNames()
	want := "Created a (revision 8).\ntool: wrap_a (clients that do not refresh their tool list: call it with wrap_run)\nNext: wrap_test {\"id\":\"a\",\"args\":{...}} shows the exact request, wrap_run sends it."
	if d := cmp.Diff(want, one.textOf("wrap_create", `{"wrapper":{"id":"a","exposeAsTool":true}}`)); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if got := one.toolNames(); got != "wrap_a" {
		t.Errorf("the one that saved: %q", got)
	}
	two.awaitNotice()
	if got := two.toolNames(); got != "wrap_a" {
		t.Errorf("the other: %q", got)
	}
}

// TestSaves: what is said about the tool, and what is fetched for it.
func TestSaves(t *testing.T) {
	saved := func(revision int, wants bool) string {
		return fmt.Sprintf(`{"ok":true,"id":"a","wrapper":{"id":"a","exposeAsTool":%v},"revision":%d}`, wants, revision)
	}
	const next = "\nNext: wrap_test {\"id\":\"a\",\"args\":{...}} shows the exact request, wrap_run sends it."
	tests := []struct {
		name    string
		limit   int
		wants   bool
		after   []api.ManifestEntry
		warning string // of the daemon
		want    string
		fetched bool
	}{
		{"no tool", 40, false, []api.ManifestEntry{{ID: "a", Method: "GET"}, exposed("b")}, "", "Created a (revision 8).", false},
		{
			"over cap", 1, true,
			[]api.ManifestEntry{exposed("a"), exposed("b", priority(1))},
			"",
			"Created a (revision 8).\nwarning: TOOL_OVER_CAP: not in the tool list, which has its 1 generated tool already (call it with wrap_run; a person can raise its priority or HB_WRAP_MAX_TOOLS)", true,
		},
		{
			"quarantined", 40, true,
			[]api.ManifestEntry{exposed("a", quarantine("the Anthropic API refuses it"))},
			"",
			"Created a (revision 8).\nwarning: TOOL_QUARANTINED: not in the tool list: the Anthropic API refuses it (call it with wrap_run)", true,
		},
		{
			"quarantined, said once", 40, true,
			[]api.ManifestEntry{exposed("a", quarantine("the Anthropic API refuses it"))},
			`{"code":"TOOL_QUARANTINED","message":"the Anthropic API refuses it"}`,
			"Created a (revision 8).\nwarning: the Anthropic API refuses it", true,
		},
		{
			"disabled", 0, true,
			[]api.ManifestEntry{exposed("a")},
			"",
			"Created a (revision 8).\nwarning: TOOLS_DISABLED: no wrapper is a tool of its own here, HB_WRAP_MAX_TOOLS is 0 (call it with wrap_run)", false,
		},
		{"disabled and no tool", 0, false, []api.ManifestEntry{{ID: "a"}}, "", "Created a (revision 8).", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBridge(t)
			b.publish(7, exposed("b"))
			answer := saved(8, tt.wants)
			if tt.warning != "" {
				answer = strings.TrimSuffix(answer, "}") + `,"warnings":[` + tt.warning + `]}`
			}
			b.answer("POST /wrap/wrappers", answer)
			b.hold = func(r *http.Request) {
				if r.Method == "POST" {
					b.publish(8, tt.after...)
				}
			}
			s := ready(t, tooled(b, tt.limit))
			s.toolNames()
			b.requests()
			if d := cmp.Diff(tt.want+next, s.textOf("wrap_create", `{"wrapper":{"id":"a"}}`)); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
			fetched := false
			for _, r := range b.requests() {
				fetched = fetched || r == "GET /wrap/manifest?tools=1"
			}
			if fetched != tt.fetched {
				t.Errorf("a manifest was fetched for the answer: %v", fetched)
			}
		})
	}
}

// TestDelete: the tool is gone when the answer comes.
func TestDelete(t *testing.T) {
	b := newBridge(t)
	b.publish(7, exposed("a"), exposed("b"))
	b.answer("POST /wrap/wrappers", `{"ok":true,"id":"a","revision":8}`)
	b.hold = func(r *http.Request) {
		if r.Method == "POST" {
			b.publish(8, exposed("b"))
		}
	}
	s := ready(t, tooled(b, 40))
	if got := s.toolNames(); got != "wrap_a wrap_b" {
		t.Fatalf("%q", got)
	}
	if got := s.textOf("wrap_delete", `{"id":"a"}`); got != "Deleted a (revision 8)." {
		t.Errorf("%q", got)
	}
	if got := s.toolNames(); got != "wrap_b" {
		t.Errorf("%q", got)
	}
}

// TestListShowsTools: wrap_list and wrap_reload say what became of each.
func TestListShowsTools(t *testing.T) {
	b := newBridge(t)
	b.publish(7, exposed("a"), exposed("b", priority(3)), exposed("c", quarantine("why")), api.ManifestEntry{ID: "d", Name: "D", Method: "GET", Host: "h.test"})
	s := ready(t, tooled(b, 1))
	want := `a - Name of a - GET h.test - tool over cap: call wrap_run - never verified
b - Name of b - GET h.test - tool wrap_b - never verified
c - Name of c - GET h.test - tool quarantined: why - never verified
d - D - GET h.test - never verified`
	if d := cmp.Diff(want, s.textOf("wrap_list", `{}`)); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if d := cmp.Diff("Revision 7: 4 wrappers, 1 tool, 1 over the cap of tools, 1 quarantined as tools (wrap_list says why).", s.textOf("wrap_reload", `{}`)); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// TestRestart: the daemon goes, comes back under another token with other
// wrappers, and is followed again; tools stay while it is away.
func TestRestart(t *testing.T) {
	b := newBridge(t)
	b.publish(7, exposed("a"))
	srv := tooled(b, 40)
	s := ready(t, srv)
	if got := s.toolNames(); got != "wrap_a" {
		t.Fatalf("%q", got)
	}
	b.stop()
	if got := s.toolNames(); got != "wrap_a" {
		t.Errorf("while it is away: %q", got)
	}
	if got := s.textOf("wrap_a", `{}`); !strings.HasPrefix(got, "BRIDGE_UNREACHABLE: ") {
		t.Errorf("%q", got)
	}
	b.publish(9, exposed("a"), exposed("b"))
	b.start(t, b.url.Host, tokenB)
	s.awaitNotice()
	if got := s.toolNames(); got != "wrap_a wrap_b" {
		t.Errorf("%q", got)
	}
	// A store that was restored has a lower revision and is believed too.
	b.stop()
	b.publish(3, exposed("c"))
	b.mu.Lock()
	b.deaf = true // the real daemon answers after its 25 s
	b.mu.Unlock()
	b.start(t, b.url.Host, tokenA)
	s.awaitNotice()
	if got := s.toolNames(); got != "wrap_c" {
		t.Errorf("%q", got)
	}
}

// TestNewerRevision: an answer to a call tells of a change that a daemon which
// cannot wait did not tell.
func TestNewerRevision(t *testing.T) {
	b := newBridge(t)
	b.deaf = true
	b.publish(7, exposed("a"))
	b.answer("POST /wrap/run", ranA)
	srv := tooled(b, 40)
	srv.tools.pace.retry, srv.tools.pace.retryMax = time.Hour, time.Hour
	s := ready(t, srv)
	if got := s.toolNames(); got != "wrap_a" {
		t.Fatalf("%q", got)
	}
	b.publish(8, exposed("b"))
	s.textOf("wrap_run", `{"id":"a"}`)
	s.awaitNotice()
	if got := s.toolNames(); got != "wrap_b" {
		t.Errorf("%q", got)
	}
	// In all: the first manifest, one poll without news, the woken one, one
	// more without news at most. A daemon that cannot wait is not hammered.
	n := 0
	for _, r := range b.requests() {
		if strings.HasPrefix(r, "GET /wrap/manifest") {
			n++
		}
	}
	if n > 4 {
		t.Errorf("%d requests for the manifest", n)
	}
}

// TestDisabledCostsNothing: with MaxTools 0 nothing is fetched, whatever the
// daemon says.
func TestDisabledCostsNothing(t *testing.T) {
	b := newBridge(t)
	b.publish(7, exposed("a"))
	b.answer("POST /wrap/run", ranA)
	s := ready(t, tooled(b, 0))
	if got := s.toolNames(); got != "" {
		t.Errorf("%q", got)
	}
	s.textOf("wrap_run", `{"id":"a"}`)
	if d := cmp.Diff([]string{`POST /wrap/run {"id":"a","format":"markdown"}`}, b.requests()); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if got := s.textOf("wrap_list", `{}`); got != "a - Name of a - GET h.test - tools disabled: call wrap_run - never verified" {
		t.Errorf("%q", got)
	}
}

// TestRefusedByTheSDK: a panic in AddTool costs one tool, not the process.
func TestRefusedByTheSDK(t *testing.T) {
	b := newBridge(t)
	b.publish(7, exposed("a", schema(`{"type":"object","properties":{"x":{"type":"object","x-mcp-header":"X"}}}`)), exposed("b"))
	s := ready(t, tooled(b, 40))
	if got := s.toolNames(); got != "wrap_b" {
		t.Errorf("%q", got)
	}
	want := "a - Name of a - GET h.test - tool quarantined: hb-rest cannot show it - never verified\nb - Name of b - GET h.test - tool wrap_b - never verified"
	if d := cmp.Diff(want, s.textOf("wrap_list", `{}`)); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// TestEndOfSession: the call that waits for news ends with the session.
func TestEndOfSession(t *testing.T) {
	b := newBridge(t)
	b.publish(7)
	s := ready(t, tooled(b, 40))
	s.toolNames()
	polls := func() int {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.polls
	}
	wait := func(n int) {
		t.Helper()
		for range 2000 {
			if polls() == n {
				return
			}
			time.Sleep(5 * time.Millisecond) // the bridge has no event for it
		}
		t.Fatalf("%d calls wait, want %d", polls(), n)
	}
	wait(1)
	_ = s.in.Close()
	if err := <-s.done; err != nil {
		t.Error(err)
	}
	wait(0)
}

// TestApplyOrder: of two manifests, the one that was asked for earlier and is no
// newer is old news.
func TestApplyOrder(t *testing.T) {
	b := newBridge(t)
	srv := tooled(b, 40)
	names := func() string {
		var out []string
		for name := range srv.tools.tools {
			out = append(out, name)
		}
		return sorted(out)
	}
	for _, step := range []struct {
		name     string
		before   uint64 // manifests that were applied when it was asked for
		revision uint64
		id       string
		want     string
	}{
		{"first", 0, 5, "a", "wrap_a"},
		{"newer, asked for before the first was applied", 0, 6, "b", "wrap_b"},
		{"older, asked for before that", 1, 5, "c", "wrap_b"},
		{"same revision, asked for before that", 1, 6, "c", "wrap_b"},
		{"lower, asked for afterwards: a restored store", 2, 3, "d", "wrap_d"},
	} {
		srv.apply(&api.Manifest{Revision: step.revision, Wrappers: []api.ManifestEntry{exposed(step.id)}}, step.before)
		if got := names(); got != step.want {
			t.Errorf("%s: %q, want %q", step.name, got, step.want)
		}
	}
}
