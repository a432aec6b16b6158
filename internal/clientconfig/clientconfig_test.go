package clientconfig_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/clientconfig"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// anywhere is a machine of which only the paths matter. exist are the paths
// that are there.
func anywhere(goos string, vars map[string]string, exist ...string) clientconfig.Env {
	return clientconfig.Env{
		OS:     goos,
		Getenv: func(name string) (string, bool) { v, ok := vars[name]; return v, ok },
		Dir:    map[string]string{"windows": `D:\project`}[goos] + map[string]string{"linux": "/project", "darwin": "/project"}[goos],
		Exists: func(p string) bool {
			for _, e := range exist {
				if e == p || strings.HasPrefix(e, p+"/") || strings.HasPrefix(e, p+`\`) {
					return true
				}
			}
			return false
		},
		Glob: func(pattern string) []string {
			var out []string
			for _, e := range exist {
				if prefix, ok := strings.CutSuffix(pattern, "*"); ok && strings.HasPrefix(e, prefix) && !strings.Contains(e[len(prefix):], `\`) {
					out = append(out, e)
				}
			}
			return out
		},
	}
}

func paths(env clientconfig.Env, scope clientconfig.Scope) map[string]string {
	m := map[string]string{}
	for _, c := range clientconfig.Known() {
		if p := c.Path(env, scope); p != "" {
			m[c.Name] = p
		}
	}
	return m
}

func TestPaths(t *testing.T) {
	const linux, mac, win = "/home/ada", "/Users/ada", `C:\Users\ada`
	for _, tc := range []struct {
		name  string
		env   clientconfig.Env
		scope clientconfig.Scope
		want  map[string]string
	}{
		{"linux", anywhere("linux", map[string]string{"HOME": linux}), clientconfig.User, map[string]string{
			"claude-desktop": linux + "/.config/Claude/claude_desktop_config.json",
			"claude-code":    linux + "/.claude.json",
			"cursor":         linux + "/.cursor/mcp.json",
			"vscode":         linux + "/.config/Code/User/mcp.json",
			"codex":          linux + "/.codex/config.toml",
			"gemini-cli":     linux + "/.gemini/settings.json",
			"windsurf":       linux + "/.codeium/windsurf/mcp_config.json",
			"zed":            linux + "/.config/zed/settings.json",
			"copilot-cli":    linux + "/.copilot/mcp-config.json",
			"continue":       linux + "/.continue/config.yaml",
			"lm-studio":      linux + "/.lmstudio/mcp.json",
			"goose":          linux + "/.config/goose/config.yaml",
			"opencode":       linux + "/.config/opencode/opencode.jsonc",
			"cline":          linux + "/.config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
		}},
		{"mac", anywhere("darwin", map[string]string{"HOME": mac, "XDG_CONFIG_HOME": "/elsewhere"}), clientconfig.User, map[string]string{
			"claude-desktop": mac + "/Library/Application Support/Claude/claude_desktop_config.json",
			"claude-code":    mac + "/.claude.json",
			"cursor":         mac + "/.cursor/mcp.json",
			"vscode":         mac + "/Library/Application Support/Code/User/mcp.json",
			"codex":          mac + "/.codex/config.toml",
			"gemini-cli":     mac + "/.gemini/settings.json",
			"windsurf":       mac + "/.codeium/windsurf/mcp_config.json",
			"zed":            mac + "/.config/zed/settings.json",
			"copilot-cli":    mac + "/.copilot/mcp-config.json",
			"continue":       mac + "/.continue/config.yaml",
			"lm-studio":      mac + "/.lmstudio/mcp.json",
			"goose":          mac + "/.config/goose/config.yaml",
			"opencode":       mac + "/.config/opencode/opencode.jsonc",
			"cline":          mac + "/Library/Application Support/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
		}},
		{"windows", anywhere("windows", map[string]string{"USERPROFILE": win, "APPDATA": win + `\AppData\Roaming`, "LOCALAPPDATA": win + `\AppData\Local`}), clientconfig.User, map[string]string{
			"claude-desktop": win + `\AppData\Roaming\Claude\claude_desktop_config.json`,
			"claude-code":    win + `\.claude.json`,
			"cursor":         win + `\.cursor\mcp.json`,
			"vscode":         win + `\AppData\Roaming\Code\User\mcp.json`,
			"codex":          win + `\.codex\config.toml`,
			"gemini-cli":     win + `\.gemini\settings.json`,
			"windsurf":       win + `\.codeium\windsurf\mcp_config.json`,
			"zed":            win + `\AppData\Roaming\Zed\settings.json`,
			"copilot-cli":    win + `\.copilot\mcp-config.json`,
			"continue":       win + `\.continue\config.yaml`,
			"lm-studio":      win + `\.lmstudio\mcp.json`,
			"goose":          win + `\AppData\Roaming\Block\goose\config\config.yaml`,
			"opencode":       win + `\.config\opencode\opencode.jsonc`,
			"cline":          win + `\AppData\Roaming\Code\User\globalStorage\saoudrizwan.claude-dev\settings\cline_mcp_settings.json`,
		}},
		{"projects", anywhere("linux", map[string]string{"HOME": linux}), clientconfig.Project, map[string]string{
			"claude-code": "/project/.mcp.json", "cursor": "/project/.cursor/mcp.json", "vscode": "/project/.vscode/mcp.json",
			"codex": "/project/.codex/config.toml", "gemini-cli": "/project/.gemini/settings.json", "zed": "/project/.zed/settings.json",
		}},
		{"projects on Windows", anywhere("windows", nil), clientconfig.Project, map[string]string{
			"claude-code": `D:\project\.mcp.json`, "cursor": `D:\project\.cursor\mcp.json`, "vscode": `D:\project\.vscode\mcp.json`,
			"codex": `D:\project\.codex\config.toml`, "gemini-cli": `D:\project\.gemini\settings.json`, "zed": `D:\project\.zed\settings.json`,
		}},
		{"no home", anywhere("linux", map[string]string{"HOME": "relative"}), clientconfig.User, map[string]string{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, paths(tc.env, tc.scope)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// What moves a file.
func TestPathsMoved(t *testing.T) {
	const local = `C:\Users\ada\AppData\Local`
	packaged := local + `\Packages\Claude_pzs8sxrjxfjjc`
	roaming := `C:\Users\ada\AppData\Roaming\Claude\claude_desktop_config.json`
	win := map[string]string{"USERPROFILE": `C:\Users\ada`}
	mac := map[string]string{"HOME": "/Users/ada"}
	for _, tc := range []struct {
		client string
		env    clientconfig.Env
		want   string
	}{
		{"claude-code", anywhere("linux", map[string]string{"HOME": "/h", "CLAUDE_CONFIG_DIR": "/c"}), "/c/.claude.json"},
		{"claude-code", anywhere("linux", map[string]string{"HOME": "/h", "CLAUDE_CONFIG_DIR": "c"}), "/h/.claude.json"},
		{"codex", anywhere("linux", map[string]string{"HOME": "/h", "CODEX_HOME": "/c"}), "/c/config.toml"},
		{"vscode", anywhere("linux", map[string]string{"HOME": "/h", "XDG_CONFIG_HOME": "/x"}), "/x/Code/User/mcp.json"},
		{"claude-desktop", anywhere("windows", win, packaged, packaged+`\LocalCache\Roaming\Claude\logs`), packaged + `\LocalCache\Roaming\Claude\claude_desktop_config.json`},
		{"claude-desktop", anywhere("windows", win, packaged, packaged+`\LocalCache\Roaming\Claude\logs`, roaming), roaming},
		{"claude-desktop", anywhere("windows", win, packaged), packaged + `\LocalCache\Roaming\Claude\claude_desktop_config.json`},
		{"zed", anywhere("darwin", mac, "/Users/ada/Library/Application Support/Zed/settings.json"), "/Users/ada/Library/Application Support/Zed/settings.json"},
		{"zed", anywhere("darwin", mac, "/Users/ada/Library/Application Support/Zed/db", "/Users/ada/.config/zed/themes"), "/Users/ada/.config/zed/settings.json"},
		{"lm-studio", anywhere("linux", map[string]string{"HOME": "/h"}, "/h/.cache/lm-studio/mcp.json"), "/h/.cache/lm-studio/mcp.json"},
		{"opencode", anywhere("linux", map[string]string{"HOME": "/h"}, "/h/.config/opencode/opencode.json"), "/h/.config/opencode/opencode.json"},
	} {
		c, _ := clientconfig.Find(tc.client)
		if got := c.Path(tc.env, clientconfig.User); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.client, got, tc.want)
		}
	}
}

func TestDetected(t *testing.T) {
	vars := map[string]string{"HOME": "/h"}
	for _, tc := range []struct {
		client, exists string
		want           bool
	}{
		{"cursor", "/h/.cursor/mcp.json", true},
		{"cursor", "/h/.cursor/extensions", true},
		{"cursor", "/h/.config/x", false},
		{"claude-code", "/h/.cursor/x", false}, // its file is in the home folder, which everybody has
		{"claude-code", "/h/.claude.json", true},
		{"vscode", "/h/.config/Code/User/settings.json", true},
	} {
		c, _ := clientconfig.Find(tc.client)
		if got := c.Detected(anywhere("linux", vars, tc.exists), clientconfig.User); got != tc.want {
			t.Errorf("%s with %s: %t", tc.client, tc.exists, got)
		}
	}
}

func TestFind(t *testing.T) {
	for name, want := range map[string]string{
		"claude": "claude-code", "code": "vscode", "vs-code": "vscode", "gemini": "gemini-cli", "copilot": "copilot-cli", "lmstudio": "lm-studio", "zed": "zed",
	} {
		if c, ok := clientconfig.Find(name); !ok || c.Name != want {
			t.Errorf("%s: %s", name, c.Name)
		}
	}
	if _, ok := clientconfig.Find("emacs"); ok {
		t.Error("emacs is known")
	}
}

// Whatever is printed for a client, the reader of its file understands.
func TestSnippetIsRead(t *testing.T) {
	w := clientconfig.Wanted{Entry: clientconfig.Entry{
		Command: `C:\Program Files\it's "hb"\hb-rest.exe`, Env: map[string]string{"HB_WRAP_HOME": "/srv/a: b # c", "HB_WRAP_URL": "http://127.0.0.1:4222"},
	}}
	for _, c := range clientconfig.Known() {
		m := newMachine(t)
		write(t, c.Path(m.env(), clientconfig.User), []byte(c.Snippet(w.Entry)), 0o600)
		st, err := c.Inspect(m.env(), clientconfig.User)
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
			continue
		}
		if diff := cmp.Diff(&w.Entry, st.Entry); diff != "" || !st.Ours || st.Off || !c.Matches(st, w) {
			t.Errorf("%s: %+v\n%s\n%s", c.Name, st, diff, c.Snippet(w.Entry))
		}
		other := w
		other.Command = "/other/hb-rest"
		if c.Matches(st, other) {
			t.Errorf("%s: another command matches", c.Name)
		}
	}
}

func TestOwnCommand(t *testing.T) {
	e := clientconfig.Entry{Command: "/usr/bin/hb-rest", Env: map[string]string{"B": "2", "A": "1"}}
	const object = `"type": "stdio", "command": "/usr/bin/hb-rest", "args": [], "env": {"A": "1", "B": "2"}}`
	for _, tc := range []struct {
		client string
		scope  clientconfig.Scope
		want   []string
	}{
		{"claude-code", clientconfig.User, []string{"claude", "mcp", "add-json", "--scope", "user", "hb-rest", "{" + object}},
		{"claude-code", clientconfig.Project, []string{"claude", "mcp", "add-json", "--scope", "project", "hb-rest", "{" + object}},
		{"vscode", clientconfig.User, []string{"code", "--add-mcp", `{"name": "hb-rest", ` + object}},
		{"vscode", clientconfig.Project, nil},
		{"codex", clientconfig.User, []string{"codex", "mcp", "add", "hb-rest", "--env", "A=1", "--env", "B=2", "--", "/usr/bin/hb-rest"}},
		{"gemini-cli", clientconfig.Project, []string{"gemini", "mcp", "add", "--scope", "project", "-e", "A=1", "-e", "B=2", "hb-rest", "/usr/bin/hb-rest"}},
		{"zed", clientconfig.User, nil},
	} {
		c, _ := clientconfig.Find(tc.client)
		if diff := cmp.Diff(tc.want, c.OwnCommand(tc.scope, e)); diff != "" {
			t.Errorf("%s %s:\n%s", tc.client, tc.scope, diff)
		}
	}
}

// A file that changes between reading and writing is left to whoever changed it.
func TestChangedMeanwhile(t *testing.T) {
	for _, tc := range []struct {
		name   string
		before string // "": there is no file
		change func(t *testing.T, path string)
	}{
		{"written", "{}", func(t *testing.T, path string) { write(t, path, []byte(`{"theirs": 1}`), 0o600) }},
		{"removed", "{}", func(t *testing.T, path string) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}},
		{"made", "", func(t *testing.T, path string) { write(t, path, []byte(`{"theirs": 1}`), 0o600) }},
		{"made empty", "", func(t *testing.T, path string) { write(t, path, nil, 0o600) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := newMachine(t)
			c, _ := clientconfig.Find("cursor")
			path := c.Path(m.env(), clientconfig.User)
			if tc.before != "" {
				write(t, path, []byte(tc.before), 0o600)
			}
			ch, err := c.Plan(m.env(), clientconfig.Request{Scope: clientconfig.User, Wanted: wantedOf(nil)})
			if err != nil {
				t.Fatal(err)
			}
			tc.change(t, path)
			theirs, readErr := os.ReadFile(path)
			if _, err := ch.Apply(); !fault.Is(err, "CLIENT_FILE_CHANGED") {
				t.Errorf("%v", err)
			}
			now, nowErr := os.ReadFile(path)
			if !bytes.Equal(now, theirs) || (readErr == nil) != (nowErr == nil) {
				t.Errorf("it holds %q, %v", now, nowErr)
			}
		})
	}
}

func TestRefusedFiles(t *testing.T) {
	for _, tc := range []struct {
		name string
		make func(t *testing.T, path string)
		code fault.Code
		want string
	}{
		{"folder", func(t *testing.T, path string) {
			if err := os.MkdirAll(path, 0o700); err != nil {
				t.Fatal(err)
			}
		}, "CLIENT_FILE_REFUSED", "is not a regular file"},
		{"link to nowhere", func(t *testing.T, path string) { link(t, filepath.Join(filepath.Dir(path), "none"), path) }, "CLIENT_FILE_REFUSED", "leads nowhere"},
		{"link to itself", func(t *testing.T, path string) { link(t, path, path) }, "CLIENT_FILE_REFUSED", "leads nowhere"},
		{"UTF-16", func(t *testing.T, path string) { write(t, path, []byte("\xff\xfe{\x00}\x00"), 0o600) }, "CLIENT_FILE_INVALID", "is not UTF-8 text"},
		{"null bytes", func(t *testing.T, path string) { write(t, path, []byte("{}\x00"), 0o600) }, "CLIENT_FILE_INVALID", "is not UTF-8 text"},
		{"500 levels", func(t *testing.T, path string) { write(t, path, deep(500), 0o600) }, "", ""},
		{"501 levels", func(t *testing.T, path string) { write(t, path, deep(501), 0o600) }, "CLIENT_FILE_INVALID", ":1:3001: it is nested over 500 levels deep"},
		{"millions of levels", func(t *testing.T, path string) { write(t, path, bytes.Repeat([]byte(`{"a":`), 1<<20), 0o600) }, "CLIENT_FILE_INVALID", "it is nested over 500 levels deep"},
		{"too large", func(t *testing.T, path string) {
			write(t, path, nil, 0o600)
			if err := os.Truncate(path, 32<<20+1); err != nil {
				t.Fatal(err)
			}
		}, "CLIENT_FILE_REFUSED", "has 33554433 bytes, and at most 33554432 are read"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := newMachine(t)
			c, _ := clientconfig.Find("cursor")
			path := c.Path(m.env(), clientconfig.User)
			tc.make(t, path)
			_, err := c.Plan(m.env(), clientconfig.Request{Scope: clientconfig.User, Wanted: wantedOf(nil)})
			if tc.code == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if !fault.Is(err, tc.code) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %s", err, tc.want)
			}
			if _, err := c.Inspect(m.env(), clientconfig.User); !fault.Is(err, tc.code) {
				t.Errorf("Inspect: %v", err)
			}
		})
	}
}

// deep is an object of n levels whose list of servers is empty.
func deep(n int) []byte {
	return []byte(`{"a": ` + strings.Repeat(`{"a": `, n-1) + "1" + strings.Repeat("}", n))
}

func link(t *testing.T, to, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(to, path); err != nil {
		t.Fatal(err)
	}
}

// A large file of Claude Code takes no time to speak of, and keeps every byte.
func TestLargeFile(t *testing.T) {
	m := newMachine(t)
	c, _ := clientconfig.Find("claude-code")
	history := strings.Repeat(`"a line that somebody typed, with \"quotes\" and {braces}",`, 100_000) + `"end"`
	before := []byte("{\n  \"history\": [" + history + "],\n  \"mcpServers\": {}\n}\n")
	path := c.Path(m.env(), clientconfig.User)
	write(t, path, before, 0o600)
	ch, err := c.Plan(m.env(), clientconfig.Request{Scope: clientconfig.User, Wanted: wantedOf(nil)})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(before) - len("{}\n}\n"); !bytes.Equal(ch.After[:n], before[:n]) {
		t.Error("the beginning changed")
	}
	if _, err := ch.Apply(); err != nil {
		t.Fatal(err)
	}
}

// TestManyMembers: the time grows with the file, not with its square, although
// all of it is one line. Half as many members took four seconds once.
func TestManyMembers(t *testing.T) {
	m := newMachine(t)
	c, _ := clientconfig.Find("cursor")
	var b strings.Builder
	b.WriteString(`{"first":0`)
	for i := range 40_000 {
		fmt.Fprintf(&b, `,"k%d":%d`, i, i)
	}
	write(t, c.Path(m.env(), clientconfig.User), []byte(b.String()+"}"), 0o600)
	start := time.Now()
	ch, err := c.Plan(m.env(), clientconfig.Request{Scope: clientconfig.User, Wanted: wantedOf(nil)})
	if err != nil || !bytes.HasPrefix(ch.After, []byte(b.String()+`,"mcpServers":{"hb-rest":`)) {
		t.Errorf("%.200s, %v", ch.After, err)
	}
	if d := time.Since(start); d > 3*time.Second { // a tenth of it here
		t.Errorf("it took %v", d)
	}
}

// TestLargeYAML: one byte over the limit is refused before it is parsed.
func TestLargeYAML(t *testing.T) {
	m := newMachine(t)
	c, _ := clientconfig.Find("goose")
	entry := "extensions:\n  hb-rest:\n    cmd: /x/hb-rest\n# "
	at := []byte(entry + strings.Repeat("x", 128<<10-len(entry)))
	path := c.Path(m.env(), clientconfig.User)
	write(t, path, at, 0o600)
	if st, err := c.Inspect(m.env(), clientconfig.User); err != nil || !st.Ours {
		t.Errorf("at the limit: %v", err)
	}
	write(t, path, append(at, 'x'), 0o600)
	if _, err := c.Inspect(m.env(), clientconfig.User); !fault.Is(err, "CLIENT_FILE_INVALID") || !strings.HasSuffix(err.Error(), "it is larger than 131072 bytes") {
		t.Errorf("one over: %v", err)
	}
}

// TestNotANumber: nan differs from itself, and is no reason to refuse a file.
func TestNotANumber(t *testing.T) {
	m := newMachine(t)
	c, _ := clientconfig.Find("codex")
	before := "a = nan\nb = [1.5, -nan]\n\n[t]\nc = { d = nan }\n"
	write(t, c.Path(m.env(), clientconfig.User), []byte(before), 0o600)
	ch, err := c.Plan(m.env(), clientconfig.Request{Scope: clientconfig.User, Wanted: wantedOf(nil)})
	if err != nil || !strings.HasPrefix(string(ch.After), before+"\n[mcp_servers.hb-rest]\n") {
		t.Errorf("%s, %v", ch.After, err)
	}
}

// TestOtherName: an entry is known by the name of its program, so one that a
// person gave another is announced as what it will be.
func TestOtherName(t *testing.T) {
	m := newMachine(t)
	c, _ := clientconfig.Find("cursor")
	for command, want := range map[string][]string{
		"/opt/bin/hb-rest":     nil,
		`C:\bin\HB-REST.EXE`:   nil,
		"/opt/bin/start-wraps": {"/opt/bin/start-wraps is not named hb-rest, so the entry will count as another program's: to change or remove it takes --force"},
	} {
		ch, err := c.Plan(m.env(), clientconfig.Request{Scope: clientconfig.User, Wanted: &clientconfig.Wanted{Entry: clientconfig.Entry{Command: command}}})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, ch.Notes); d != "" {
			t.Errorf("%s: %s", command, d)
		}
	}
}

func TestFolderNotWritable(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root writes everywhere")
	}
	m := newMachine(t)
	c, _ := clientconfig.Find("cursor")
	path := c.Path(m.env(), clientconfig.User)
	write(t, path, []byte("{}"), 0o600)
	if err := os.Chmod(filepath.Dir(path), 0o500); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(filepath.Dir(path), 0o700) })
	ch, err := c.Plan(m.env(), clientconfig.Request{Scope: clientconfig.User, Wanted: wantedOf(nil)})
	if err == nil {
		_, err = ch.Apply()
	}
	if !fault.Is(err, "CLIENT_FILE_REFUSED") || !errors.Is(err, fs.ErrPermission) {
		t.Error(err)
	}
}
