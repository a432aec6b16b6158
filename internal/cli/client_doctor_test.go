//go:build unix

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/clientconfig"
)

const hello = `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"hb-rest","version":"1.2.3"}}}`

// served is a shell script that answers MCP requests with these lines, in order.
func served(lines ...string) string {
	var b strings.Builder
	for _, line := range lines {
		fmt.Fprintf(&b, "while read -r q; do case \"$q\" in *'\"id\":'*) break;; esac; done\nprintf '%%s\\n' '%s'\n", line)
	}
	return b.String() + "while read -r q; do :; done\n"
}

func toolList(id int, names ...string) string {
	var tools []map[string]string
	for _, n := range names {
		tools = append(tools, map[string]string{"name": n})
	}
	line, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "result": map[string]any{"tools": tools}})
	if err != nil {
		panic(err)
	}
	return string(line)
}

const called = `{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"2 wrappers"}]}}`

func TestClientDoctor(t *testing.T) {
	entry := `{"mcpServers": {"hb-rest": {"command": "@", "args": [], "env": {"HB_WRAP_HOME": "$", "X": "1"}}}}`
	const (
		file  = "ok\tfile\tHOME/user/.cursor/mcp.json\n"
		start = file + "ok\tentry\tHOME/bin/hb-rest\nok\tcommand\tit can be started\n"
	)
	for _, tc := range []struct {
		name   string
		config string // of Cursor; "": no file
		script string
		want   string // stdout, without the time
		says   string // on stderr
	}{
		{
			"good", entry, served(hello, toolList(2, append(metaTools, "wrap_weather")...), called),
			start + "ok\tanswer\thb-rest 1.2.3, protocol 2025-06-18, N ms to the list of tools\nok\ttools\t11\nok\tdaemon\thb-rest reaches it\n", "",
		},
		{
			"notices and questions between the answers", entry,
			served(hello+"\n"+`{"jsonrpc":"2.0","method":"notifications/message","params":{}}`+"\n"+`{"jsonrpc":"2.0","id":"q","method":"ping"}`, `{"jsonrpc":"2.0","id":99,"result":{}}`+"\n"+toolList(2, metaTools...), called),
			start + "ok\tanswer\thb-rest 1.2.3, protocol 2025-06-18, N ms to the list of tools\nok\ttools\t10\nok\tdaemon\thb-rest reaches it\n", "",
		},
		{"no file", "", "", "FAIL\tfile\tHOME/user/.cursor/mcp.json is not there\n", "file: Run: hbrestd client install cursor"},
		{"unreadable", "{", "", "FAIL\tfile\tHOME/user/.cursor/mcp.json:1:2: parsing value: unexpected EOF\n", "file: Mend the file"},
		{"no entry", "{}", "", file + "FAIL\tentry\tthere is no entry hb-rest\n", "entry: Run: hbrestd client install cursor"},
		{"old entry", oldEntry, "", file + "FAIL\tentry\tonly the entry of kuang-wrap, the predecessor, is there (kuang-wrap)\n", "install cursor --replace-old"},
		{"no program", `{"mcpServers": {"hb-rest": {"url": "https://example.com"}}}`, "", file + "FAIL\tentry\tthe entry hb-rest starts no program\n", "install cursor --force"},
		{"switched off", `{"mcpServers": {"hb-rest": {"command": "@", "disabled": true}}}`, "", file + "FAIL\tentry\tthe entry is switched off\n", "Switch it on in Cursor"},
		{"missing command", `{"mcpServers": {"hb-rest": {"command": "/gone/hb-rest"}}}`, "", file + "ok\tentry\t/gone/hb-rest\nFAIL\tcommand\tstat /gone/hb-rest: no such file or directory\n", "command: Run: hbrestd client install cursor"},
		{"not executable", `{"mcpServers": {"hb-rest": {"command": "$/user/.cursor/mcp.json"}}}`, "", file + "ok\tentry\tHOME/user/.cursor/mcp.json\nFAIL\tcommand\tstart HOME/user/.cursor/mcp.json: it is not executable\n", "command: Run"},
		{"relative", `{"mcpServers": {"hb-rest": {"command": "hb-rest"}}}`, "", file + "ok\tentry\thb-rest\nFAIL\tcommand\thb-rest is not an absolute path; a program with a window seldom has the PATH of your shell\n", "command: Run"},
		{"a variable", `{"mcpServers": {"hb-rest": {"command": "${HOME}/hb-rest"}}}`, "", file + "ok\tentry\t'${HOME}/hb-rest'\nFAIL\tcommand\tthe command holds a variable that only Cursor can fill in\n", "command: Run"},
		{"ends at once", entry, "echo no settings >&2\nexit 2\n", start + "FAIL\tstart\tit ended before it answered initialize: exit status 2\n", "it printed: no settings"},
		{"ends later", entry, strings.TrimSuffix(served(hello), "while read -r q; do :; done\n"), start + "FAIL\tstart\tit ended before it answered tools/list: exit status 0\n", "start: Start it by hand"},
		{"no MCP", entry, served("Welcome to the shop"), start + "FAIL\tanswer\tit does not speak MCP: it printed \"Welcome to the shop\"\n", "answer: Is it hb-rest?"},
		{"another JSON", entry, served(`{"id":1,"ok":true}`), start + "FAIL\tanswer\tit does not speak MCP: it printed \"{\\\"id\\\":1,\\\"ok\\\":true}\"\n", "answer: Is it hb-rest?"},
		{"no version", entry, served(`{"jsonrpc":"2.0","id":1,"result":{}}`), start + "FAIL\tanswer\tits answer to initialize names no protocol version, so it is no MCP server\n", ""},
		{"an error", entry, served(`{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"not today"}}`), start + "FAIL\tanswer\tit answered initialize with the error -32600: not today\n", ""},
		{
			"tools missing", entry, served(hello, toolList(2, metaTools[1:]...), called),
			start + "ok\tanswer\thb-rest 1.2.3, protocol 2025-06-18, N ms to the list of tools\nFAIL\ttools\t9 tools, without wrap_list\n", "tools: Install hb-rest and hbrestd of the same version",
		},
		{
			"no daemon", entry, served(hello, toolList(2, metaTools...), `{"jsonrpc":"2.0","id":3,"result":{"isError":true,"content":[{"type":"text","text":"TOKEN_FILE_MISSING: hbrestd is not running\nHint: x"}]}}`),
			start + "ok\tanswer\thb-rest 1.2.3, protocol 2025-06-18, N ms to the list of tools\nok\ttools\t10\nFAIL\tdaemon\tTOKEN_FILE_MISSING: hbrestd is not running\n", "daemon: `hbrestd status`",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := clientWorld(t)
			w.program("bin/hb-rest", "env > '"+w.home+"/env'\n"+tc.script)
			if tc.config != "" {
				w.file("user/.cursor/mcp.json", strings.NewReplacer("@", filepath.Join(w.home, "bin/hb-rest"), "$/", w.home+"/", `"$"`, `"`+w.home+`"`).Replace(tc.config))
			}
			got := w.hb("client", "doctor", "cursor")
			exit := 0
			if strings.Contains(tc.want, "FAIL") {
				exit = 1
			}
			if diff := cmp.Diff(tc.want, withoutTime(got.Out)); diff != "" || got.Exit != exit || !strings.Contains(got.ErrOut, tc.says) {
				t.Errorf("exit %d, stderr %s\n%s", got.Exit, got.ErrOut, diff)
			}
			if tc.script == "" {
				return
			}
			if diff := cmp.Diff([]string{"HB_WRAP_HOME", "HOME", "PATH", "X"}, variablesOf(w.content("env"))); diff != "" {
				t.Errorf("it was started with other variables:\n%s", diff)
			}
		})
	}
}

// withoutTime puts N for the milliseconds.
func withoutTime(s string) string {
	head, tail, ok := strings.Cut(s, " ms to the list")
	if !ok {
		return s
	}
	return strings.TrimRight(head, "0123456789") + "N ms to the list" + tail
}

// variablesOf are the names in the output of env, without those that a shell
// adds.
func variablesOf(s string) []string {
	var names []string
	for line := range strings.Lines(s) {
		name, _, _ := strings.Cut(line, "=")
		if name != "PWD" && name != "_" && name != "SHLVL" && name != "OLDPWD" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// What somebody else's project names is not started.
func TestClientDoctorProject(t *testing.T) {
	w := clientWorld(t)
	evil := w.program("project/hb-rest", "touch '"+w.home+"/started'\n"+served(hello, toolList(2, metaTools...), called))
	w.file("project/.cursor/mcp.json", `{"mcpServers": {"hb-rest": {"command": "`+evil+`"}}}`)
	t.Chdir(filepath.Join(w.home, "project"))
	got := w.hb("client", "doctor", "cursor", "--scope", "project")
	if got.Exit != 1 || !strings.Contains(got.Out, "FAIL\tcommand\tthe file of this project names another program than this hb-rest") {
		t.Errorf("%+v", got)
	}
	if _, err := os.Stat(filepath.Join(w.home, "started")); err == nil {
		t.Error("it was started")
	}
	if got := w.hb("client", "doctor", "cursor", "--scope", "project", "--force"); got.Exit != 0 {
		t.Errorf("--force: %+v", got)
	}
}

// A server that does not answer, or does not end, is ended with all that it has
// started.
func TestProbeEndsEverything(t *testing.T) {
	for _, tc := range []struct{ name, script, want string }{
		{"silent", "", "it did not answer initialize within 300ms"},
		{"half", strings.TrimSuffix(served(hello), "while read -r q; do :; done\n"), "it did not answer tools/list within 300ms"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, nil)
			p := w.program("server", "sleep 600 &\necho $$ $! > '"+w.home+"/pids'\n"+tc.script+"sleep 600\n")
			_, err := probe(t.Context(), clientconfig.Entry{Command: p}, []string{"PATH=/usr/bin:/bin"}, 300*time.Millisecond)
			var failed *probeError
			if !errors.As(err, &failed) || failed.text != tc.want {
				t.Errorf("%v", err)
			}
			for _, s := range strings.Fields(w.content("pids")) {
				pid, err := strconv.Atoi(s)
				if err != nil {
					t.Fatal(err)
				}
				gone(t, pid)
			}
		})
	}
}

// gone waits until a process has ended. Its parent may be init, which takes a
// moment.
func gone(t *testing.T, pid int) {
	t.Helper()
	deadline := time.Now().Add(5 * time.Second)
	for time.Now().Before(deadline) {
		if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) || zombie(pid) {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Errorf("process %d still runs", pid)
}

// zombie reports whether a process has ended and nobody asked for its end,
// which in a container nobody may ever do.
func zombie(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(stat), ") Z ")
}

func TestProbeCancelled(t *testing.T) {
	w := newWorld(t, nil)
	p := w.program("server", "sleep 600\n")
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	start := time.Now()
	if _, err := probe(ctx, clientconfig.Entry{Command: p}, nil, probeTimeout); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if d := time.Since(start); d > probeTimeout/2 {
		t.Errorf("it took %s", d)
	}
}

func TestTail(t *testing.T) {
	full := strings.Repeat("x", tailBytes)
	for _, tc := range []struct{ in, want string }{
		{"", ""},
		{full, full},
		{"a" + full, "..." + full},
		{"\xff", "?"},
	} {
		var tl tail
		for _, c := range []byte(tc.in) {
			_, _ = tl.Write([]byte{c})
		}
		if got := tl.String(); got != tc.want {
			t.Errorf("%d bytes: %d bytes kept", len(tc.in), len(got))
		}
	}
}
