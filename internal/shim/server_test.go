package shim

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/client"
)

// TestTools calls each tool once: what the bridge is asked and what comes back.
func TestTools(t *testing.T) {
	const manifest = `{"revision":7,"wrappers":[{"id":"a.b","name":"A","method":"GET","host":"h.test","required":["q"],"mutating":false,"exposeAsTool":false}]}`
	const ran = `{"ok":true,"status":200,"durationMs":1,"wrapper":{"id":"a.b","name":"A"},"markdown":"# A","meta":{"mode":"table","selected":1,"rendered":1,"truncated":false}}`
	const plan = `{"ok":true,"dryRun":true,"wrapper":{"id":"a.b","name":"A"},"args":{"q":"x"},"request":{"method":"GET","url":"https://h.test/?q=x","headers":{}},"mutating":false}`
	tests := []struct{ tool, args, route, answer, asked, text string }{
		{"wrap_list", `{"query":"a","limit":5}`, "GET /wrap/manifest", manifest, "GET /wrap/manifest?limit=5&query=a", "a.b - A - GET h.test - needs q - never verified"},
		{"wrap_get", `{"id":"a.b"}`, "GET /wrap/wrapper", `{"id": "a.b"}`, "GET /wrap/wrapper?id=a.b", `{"id":"a.b"}`},
		{"wrap_secret_list", `{}`, "GET /wrap/secrets", `{"secrets":[],"available":false,"reason":"not in this version"}`, "GET /wrap/secrets", "Credentials cannot be used now: not in this version"},
		{
			"wrap_derive", `{"url":"https://h.test/","id":"a","name":"N","description":"D","max_fields":20}`, "POST /wrap/derive", `{"ok":true,"source":"https://h.test/","recipe":{"mode":"table"}}`,
			`POST /wrap/derive {"url":"https://h.test/","id":"a","name":"N","description":"D","max_fields":20}`, "{\"mode\":\"table\"}\n\nNext: check the columns, then wrap_create with this as \"response\".",
		},
		{
			"wrap_create", `{"wrapper":{"id":"a.b"}}`, "POST /wrap/wrappers", `{"ok":true,"id":"a.b","revision":8}`, `POST /wrap/wrappers {"action":"create","wrapper":{"id":"a.b"}}`,
			"Created a.b (revision 8).\nNext: wrap_test {\"id\":\"a.b\",\"args\":{...}} shows the exact request, wrap_run sends it.",
		},
		{
			"wrap_update", `{"id":"a.b","wrapper":{"id":"a.b"}}`, "POST /wrap/wrappers", `{"ok":true,"id":"a.b","revision":9}`, `POST /wrap/wrappers {"action":"update","id":"a.b","wrapper":{"id":"a.b"}}`,
			"Replaced a.b (revision 9).\nNext: wrap_test {\"id\":\"a.b\",\"args\":{...}} shows the exact request, wrap_run sends it.",
		},
		{"wrap_delete", `{"id":"a.b"}`, "POST /wrap/wrappers", `{"ok":true,"id":"a.b","revision":10}`, `POST /wrap/wrappers {"action":"delete","id":"a.b"}`, "Deleted a.b (revision 10)."},
		{"wrap_run", `{"id":"a.b","args":{"q":"x"},"format":"markdown","max_pages":25,"max_items":3,"fields":["A","b"]}`, "POST /wrap/run", ran, `POST /wrap/run {"id":"a.b","args":{"q":"x"},"format":"markdown","max_pages":25,"max_items":3,"fields":["A","b"]}`, "# A"},
		{
			"wrap_test", `{"id":"a.b","args":{"q":"x"}}`, "POST /wrap/test", plan, `POST /wrap/test {"id":"a.b","args":{"q":"x"},"format":"markdown"}`,
			"Dry run of a.b: nothing was sent.\n\nGET https://h.test/?q=x\n\nargs with defaults: {\"q\":\"x\"}\nmutating: no\nNext: wrap_run with the same id and args.",
		},
		{
			"wrap_test", `{"wrapper":{"id":"a.b"},"sample":"{\"a\":1}","maxPages":2,"maxItems":3,"fields":["A"],"dryRun":false}`, "POST /wrap/test", ran,
			`POST /wrap/test {"wrapper":{"id":"a.b"},"sample":"{\"a\":1}","dryRun":false,"format":"markdown","maxPages":2,"maxItems":3,"fields":["A"]}`, "# A",
		},
		{"wrap_reload", `{}`, "GET /wrap/manifest", manifest, "GET /wrap/manifest", "Revision 7: 1 wrapper."},
	}
	b := newBridge(t)
	s := ready(t, New(Options{Client: b.client(), Version: "test"}))
	called := map[string]bool{}
	for _, tt := range tests {
		called[tt.tool] = true
		b.answer(tt.route, tt.answer)
		if d := cmp.Diff(tt.text, s.text(tt.tool, tt.args, false)); d != "" {
			t.Errorf("%s %s: %s", tt.tool, tt.args, d)
		}
		if d := cmp.Diff([]string{tt.asked}, b.requests()); d != "" {
			t.Errorf("%s %s: %s", tt.tool, tt.args, d)
		}
	}
	for _, m := range metaTools() {
		if !called[m.name] {
			t.Errorf("%s has no case", m.name)
		}
	}
}

// TestRefusedHere: a call that cannot be meant is refused without asking the bridge.
func TestRefusedHere(t *testing.T) {
	b := newBridge(t)
	s := ready(t, New(Options{Client: b.client(), Version: "test"}))
	tests := []struct{ tool, args, want string }{
		{"wrap_list", `{"limit":0}`, "BAD_REQUEST: limit must be a whole number from 1 to 1000, not 0"},
		{"wrap_list", `{"limit":1001}`, "BAD_REQUEST: limit must be a whole number from 1 to 1000, not 1001"},
		{"wrap_list", `{"query":5}`, "BAD_REQUEST: query must be a string, not 5"},
		{"wrap_get", `{"id":""}`, "BAD_REQUEST: wrap_get needs id"},
		{"wrap_secret_list", `{"x":1}`, `BAD_REQUEST: wrap_secret_list has no argument "x"`},
		{"wrap_derive", `{"url":["https://h.test"]}`, "BAD_REQUEST: url must be a string, not an array"},
		{"wrap_derive", `{"sample":"1","max_fields":"3"}`, "BAD_REQUEST: max_fields must be a whole number, not a string"},
		{"wrap_create", `{}`, "BAD_REQUEST: wrap_create needs wrapper"},
		{"wrap_create", `{"wrapper":"{}"}`, "BAD_REQUEST: wrapper must be an object, not a string"},
		{"wrap_update", `{"wrapper":{},"id":true}`, "BAD_REQUEST: id must be a string, not true"},
		{"wrap_delete", `{}`, "BAD_REQUEST: wrap_delete needs id"},
		{"wrap_run", `{"id":"a","args":["x"]}`, "BAD_REQUEST: args must be an object, not an array"},
		{"wrap_run", `{"id":"a","format":7}`, "BAD_REQUEST: format must be a string, not 7"},
		{"wrap_run", `{"id":"a","max_pages":1.5}`, "BAD_REQUEST: max_pages must be a whole number, not 1.5"},
		{"wrap_test", `{"id":"a","dryRun":"false"}`, "BAD_REQUEST: dryRun must be true or false, not a string"},
		{"wrap_reload", `[]`, "BAD_REQUEST: arguments of wrap_reload must be an object, not an array"},
	}
	for _, tt := range tests {
		first, _, _ := strings.Cut(s.text(tt.tool, tt.args, true), "\n")
		if first != tt.want {
			t.Errorf("%s %s: %q, want %q", tt.tool, tt.args, first, tt.want)
		}
	}
	if seen := b.requests(); len(seen) > 0 {
		t.Errorf("the bridge was asked: %q", seen)
	}
}

func TestListIsPortableAndSmall(t *testing.T) {
	s := ready(t, New(Options{Client: newBridge(t).client(), Version: "test"}))
	s.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	line := s.receive()
	// Every agent pays for the list in every session; a quarter of its bytes is
	// about its tokens.
	if const9K := 9 << 10; len(line) > const9K {
		t.Errorf("tools/list is %d bytes, at most %d", len(line), const9K)
	}
	var env struct {
		Result struct {
			Tools []struct {
				Name, Title, Description string
				InputSchema              map[string]any
				Annotations              map[string]any
			}
		}
	}
	if err := json.Unmarshal([]byte(line), &env); err != nil {
		t.Fatal(err)
	}
	want := []string{"wrap_create", "wrap_delete", "wrap_derive", "wrap_get", "wrap_list", "wrap_reload", "wrap_run", "wrap_secret_list", "wrap_test", "wrap_update"}
	var names []string
	for _, tool := range env.Result.Tools {
		names = append(names, tool.Name)
		for _, a := range []string{"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"} {
			if _, ok := tool.Annotations[a].(bool); !ok {
				t.Errorf("%s: no %s", tool.Name, a)
			}
		}
		if n := utf8.RuneCountInString(tool.Description); n > 1024 { // refused by OpenAI's API, with the whole list
			t.Errorf("%s: the description has %d characters", tool.Name, n)
		}
		if tool.Title == "" || tool.Annotations["title"] != tool.Title || tool.Description == "" {
			t.Errorf("%s: title or description is missing", tool.Name)
		}
		if tool.InputSchema["type"] != "object" || tool.InputSchema["additionalProperties"] != false || tool.InputSchema["properties"] == nil {
			t.Errorf("%s: root of the schema: %v", tool.Name, tool.InputSchema)
		}
		checkSchema(t, tool.Name, tool.InputSchema)
	}
	if d := cmp.Diff(want, names); d != "" {
		t.Error(d)
	}
}

// TestHintsOfTheMetaTools: readOnly, destructive, idempotent, openWorld. wrap_run
// and wrap_test are the worst call they can make; creating adds and replaces
// nothing.
func TestHintsOfTheMetaTools(t *testing.T) {
	want := map[string][4]bool{
		"wrap_list":        {true, false, true, false},
		"wrap_get":         {true, false, true, false},
		"wrap_secret_list": {true, false, true, false},
		"wrap_reload":      {true, false, true, false},
		"wrap_derive":      {true, false, true, true},
		"wrap_create":      {false, false, false, false},
		"wrap_update":      {false, true, true, false},
		"wrap_delete":      {false, true, true, false},
		"wrap_run":         {false, true, false, true},
		"wrap_test":        {false, true, false, true},
		"recall_memory":    {true, false, true, false},
	}
	got := map[string][4]bool{}
	for _, m := range append(metaTools(), recallTool()) {
		a := m.definition().Annotations
		got[m.name] = [4]bool{a.ReadOnlyHint, *a.DestructiveHint, a.IdempotentHint, *a.OpenWorldHint}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// checkSchema refuses what some client refuses: a property that is a boolean,
// has no type, or a list of types; an array without items; unusual keywords.
func checkSchema(t *testing.T, where string, schema map[string]any) {
	t.Helper()
	allowed := regexp.MustCompile(`^(type|properties|required|description|enum|default|minimum|maximum|items|additionalProperties)$`)
	for k := range schema {
		if !allowed.MatchString(k) {
			t.Errorf("%s: keyword %s", where, k)
		}
	}
	if text, _ := schema["description"].(string); utf8.RuneCountInString(text) > 1024 {
		t.Errorf("%s: the description has %d characters", where, utf8.RuneCountInString(text))
	}
	typ, ok := schema["type"].(string)
	if !ok || typ == "array" && schema["items"] == nil {
		t.Errorf("%s: %v", where, schema)
	}
	props, _ := schema["properties"].(map[string]any)
	for name, p := range props {
		sub, ok := p.(map[string]any)
		if !ok || !regexp.MustCompile(`^[a-zA-Z0-9_]{1,64}$`).MatchString(name) {
			t.Errorf("%s.%s: %v", where, name, p)
			continue
		}
		checkSchema(t, where+"."+name, sub)
	}
}

// TestSchemasNameTheArguments: what is published is what is accepted.
func TestSchemasNameTheArguments(t *testing.T) {
	for _, m := range append(metaTools(), recallTool()) {
		var schema struct {
			Properties map[string]json.RawMessage
			Required   []string
		}
		if err := json.Unmarshal([]byte(m.schema), &schema); err != nil {
			t.Fatalf("%s: %v", m.name, err)
		}
		for _, a := range m.args {
			if schema.Properties[a] == nil {
				t.Errorf("%s: %s is not in the schema", m.name, a)
			}
		}
		if len(schema.Properties) != len(m.args) || strings.Join(schema.Required, " ") != strings.Join(m.args[:m.required], " ") {
			t.Errorf("%s: args %v, required %d, schema %s", m.name, m.args, m.required, m.schema)
		}
	}
	if !json.Valid([]byte(exampleWrapper)) {
		t.Error("the example is not JSON")
	}
}

// TestPanic: a bug in one call ends neither the session nor the next call, and
// what the log says does not quote the arguments.
func TestPanic(t *testing.T) {
	var log bytes.Buffer
	server := New(Options{Client: newBridge(t).client(), Version: "test", Log: slog.New(slog.NewTextHandler(&log, nil))})
	for name, p := range map[string]any{"text": "the argument was hunter2", "error": errors.New("hunter2")} {
		server.mcp.AddTool(&mcp.Tool{Name: "boom_" + name, InputSchema: json.RawMessage(`{"type":"object"}`)},
			func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { panic(p) })
	}
	server.mcp.AddTool(&mcp.Tool{Name: "boom_index", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return nil, fmt.Errorf("%d", []int{}[len(r.Params.Arguments)])
		})
	s := ready(t, server)
	for _, name := range []string{"text", "error", "index"} {
		got := s.text("boom_"+name, "{}", true)
		m := regexp.MustCompile(`^INTERNAL: internal fault ([0-9a-f]{12})\nHint: Report the id; .*\nRetryable: no$`).FindStringSubmatch(got)
		if m == nil {
			t.Fatalf("%s: %q", name, got)
		}
		if !strings.Contains(log.String(), "id="+m[1]) {
			t.Errorf("%s: the id is not in the log", name)
		}
	}
	if strings.Contains(log.String(), "hunter2") || !strings.Contains(log.String(), "index out of range [2] with length 0") || !strings.Contains(log.String(), "server_test.go") {
		t.Errorf("log: %s", log.String())
	}
	s.send(`{"jsonrpc":"2.0","id":9,"method":"ping"}`)
	if got, want := s.receive(), `{"jsonrpc":"2.0","id":9,"result":{}}`; got != want {
		t.Errorf("after the panics: %s", got)
	}
}

// TestNoDaemonThenDaemon is the client that starts before the daemon: the list
// is there, the call says what to do, and the call after the daemon's start
// works, as does one after a restart with another token.
func TestNoDaemonThenDaemon(t *testing.T) {
	b := newBridge(t)
	b.stop()
	if err := os.Remove(b.tokenFile); err != nil {
		t.Fatal(err)
	}
	s := ready(t, New(Options{Client: b.client(), Version: "test"}))
	s.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	if got := strings.Count(s.receive(), `"annotations"`); got != 10 {
		t.Fatalf("%d tools", got)
	}
	got := s.text("wrap_list", "{}", true)
	if !strings.HasPrefix(got, "TOKEN_FILE_MISSING: ") || !strings.Contains(got, "hbrestd run") || !strings.HasSuffix(got, "Retryable: yes") {
		t.Fatalf("no token file: %s", got)
	}
	if err := os.WriteFile(b.tokenFile, []byte(tokenA), 0o600); err != nil {
		t.Fatal(err)
	}
	got = s.text("wrap_list", "{}", true)
	if !strings.HasPrefix(got, "BRIDGE_UNREACHABLE: ") || !strings.Contains(got, "hbrestd run") || !strings.HasSuffix(got, "Retryable: yes") {
		t.Fatalf("no daemon: %s", got)
	}
	addr := b.url.Host
	for _, token := range []string{tokenB, tokenA} {
		b.start(t, addr, token)
		b.answer("GET /wrap/manifest", `{"revision":1,"wrappers":[]}`)
		if got, want := s.text("wrap_reload", "{}", false), "Revision 1: 0 wrappers."; got != want {
			t.Errorf("daemon is up: %s", got)
		}
		b.stop()
	}
	b.start(t, addr, tokenB) // for the clean-up
}

// TestNewWrapperAtOnce: a client that ignores list_changed can use what it has
// just saved.
func TestNewWrapperAtOnce(t *testing.T) {
	b := newBridge(t)
	b.answer("POST /wrap/wrappers", `{"ok":true,"id":"new.one","revision":2}`)
	b.answer("POST /wrap/run", `{"ok":true,"status":200,"durationMs":1,"wrapper":{"id":"new.one","name":""},"markdown":"works","meta":{"mode":"table","selected":1,"rendered":1,"truncated":false}}`)
	s := ready(t, New(Options{Client: b.client(), Version: "test"}))
	s.text("wrap_create", `{"wrapper":{"id":"new.one","exposeAsTool":true}}`, false)
	if got := s.text("wrap_run", `{"id":"new.one"}`, false); got != "works" {
		t.Errorf("got %q", got)
	}
}

// TestCancel: a client's cancellation reaches the bridge's request.
func TestCancel(t *testing.T) {
	b := newBridge(t)
	arrived, gone := make(chan struct{}), make(chan struct{})
	b.hold = func(r *http.Request) {
		close(arrived)
		<-r.Context().Done()
		close(gone)
	}
	s := ready(t, New(Options{Client: b.client(), Version: "test"}))
	s.send(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"wrap_run","arguments":{"id":"a"}}}`)
	<-arrived
	s.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}`)
	select {
	case <-gone:
	case <-time.After(10 * time.Second):
		t.Fatal("the bridge's request was not cancelled")
	}
	s.receive() // the SDK answers cancelled calls too; the client ignores it
}

// TestEndOfInput: a call that is still running when the client goes away is
// cancelled, and the session ends within two seconds.
func TestEndOfInput(t *testing.T) {
	b := newBridge(t)
	arrived := make(chan struct{})
	b.hold = func(r *http.Request) {
		close(arrived)
		<-r.Context().Done()
	}
	s := ready(t, New(Options{Client: b.client(), Version: "test"}))
	go func() { _, _ = io.Copy(io.Discard, s.out) }()
	s.send(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"wrap_run","arguments":{"id":"a"}}}`)
	<-arrived
	start := time.Now()
	_ = s.in.Close()
	select {
	case err := <-s.done:
		if took := time.Since(start); err != nil || took < drainTime || took > exitTime {
			t.Errorf("ended after %v: %v", took, err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("did not end")
	}
}

// TestEndOfInputWaitsForAnswers: lines from a file or a pipe that ends at once
// are all answered.
func TestEndOfInputWaitsForAnswers(t *testing.T) {
	b := newBridge(t)
	b.answer("GET /wrap/manifest", `{"revision":1,"wrappers":[]}`)
	in := handshake + "\n" + `{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n" +
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wrap_reload"}}` // no line feed at the end
	var out bytes.Buffer
	if err := New(Options{Client: b.client(), Version: "test"}).Run(context.Background(), NewStdio(strings.NewReader(in), &out)); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"Revision 1: 0 wrappers."}]}}`+"\n"; !strings.HasSuffix(got, want) {
		t.Errorf("got %s", got)
	}
}

// TestHugeAnswer: whatever the daemon sends, a line stays below what clients
// can read, and the cut is visible.
func TestHugeAnswer(t *testing.T) {
	b := newBridge(t)
	// Each < becomes six bytes in JSON as the SDK writes it inside a text.
	huge := strings.Repeat("<", 3<<20)
	records := `[` + strings.Repeat(`"`+strings.Repeat("<", 1000)+`",`, 3000) + `1]`
	answer, err := json.Marshal(api.RunResult{OK: true, Status: ptr(200), Markdown: &huge, Records: json.RawMessage(records), Meta: api.Meta{Mode: "table", Selected: 3001, Rendered: 3001}})
	if err != nil {
		t.Fatal(err)
	}
	b.answer("POST /wrap/run", string(answer))
	s := ready(t, New(Options{Client: b.client(), Version: "test"}))
	line := s.callTool("wrap_run", `{"id":"a","format":"both"}`)
	if len(line) >= maxFrame {
		t.Errorf("a line of %d bytes", len(line))
	}
	var env struct{ Result toolResult }
	if err := json.Unmarshal([]byte(line), &env); err != nil {
		t.Fatal(err)
	}
	r := env.Result
	if !strings.Contains(r.Content[0].Text, "[cut: the first 1048576 of 3145728 bytes") || !strings.Contains(r.Content[0].Text, "records: ") {
		t.Errorf("no word about the cut: ...%q", r.Content[0].Text[len(r.Content[0].Text)-200:])
	}
}

// TestSkewIsSaidOnce: a daemon of another version is named in one answer.
func TestSkewIsSaidOnce(t *testing.T) {
	b := newBridge(t) // says it is version "test"
	b.answer("GET /wrap/manifest", `{"revision":1,"wrappers":[]}`)
	c := client.New(client.Options{URL: b.url, TokenFiles: []string{b.tokenFile}, Version: "v9.9.9"})
	s := ready(t, New(Options{Client: c, Version: "v9.9.9"}))
	first, second := s.text("wrap_reload", "{}", false), s.text("wrap_reload", "{}", false)
	if !strings.HasPrefix(first, "Revision 1: 0 wrappers.\n\nwarning: ") || !strings.Contains(first, "v9.9.9") || second != "Revision 1: 0 wrappers." {
		t.Errorf("first %q, second %q", first, second)
	}
}

// TestLogHasNoArguments: the log names tools and codes only.
func TestLogHasNoArguments(t *testing.T) {
	b := newBridge(t)
	b.answer("POST /wrap/run", `{"ok":true,"status":200,"durationMs":1,"wrapper":{"id":"a","name":""},"markdown":"answer-hunter2","meta":{"mode":"table","selected":1,"rendered":1,"truncated":false}}`)
	path := filepath.Join(t.TempDir(), "log")
	f := &logFile{path: path}
	s := ready(t, New(Options{Client: b.client(), Version: "test", Log: slog.New(slog.NewTextHandler(f, nil))}))
	s.text("wrap_run", `{"id":"hunter2","args":{"q":"hunter2"}}`, false)
	s.text("wrap_run", `{"id":"a","hunter2":"hunter2"}`, true)
	_ = f.Close()
	log, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := regexp.MustCompile(`time=\S+ `).ReplaceAllString(regexp.MustCompile(`ms=\d+`).ReplaceAllString(string(log), "ms=N"), ""); got !=
		"level=INFO msg=call tool=wrap_run code=OK ms=N\nlevel=INFO msg=call tool=wrap_run code=BAD_REQUEST ms=N\n" {
		t.Errorf("log: %s", got)
	}
}
