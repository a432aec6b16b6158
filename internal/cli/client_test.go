package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/clientconfig"
)

// program writes a program into the world's home.
func (w *world) program(name, script string) string {
	w.t.Helper()
	p := w.file(name, "#!/bin/sh\n"+script)
	if err := os.Chmod(p, 0o755); err != nil {
		w.t.Fatal(err)
	}
	return p
}

// clientWorld has an hb-rest in PATH.
func clientWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, nil)
	w.program("bin/hb-rest", "exit 0\n")
	w.env["PATH"] = filepath.Join(w.home, "bin") + ":/usr/bin:/bin"
	return w
}

func (w *world) content(name string) string {
	w.t.Helper()
	data, err := os.ReadFile(filepath.Join(w.home, name))
	if err != nil {
		w.t.Fatal(err)
	}
	return strings.ReplaceAll(string(data), w.home, "HOME")
}

func TestClientInstall(t *testing.T) {
	w := clientWorld(t)
	w.file("user/.cursor/mcp.json", "{\n  // mine\n  \"mcpServers\": {}\n}\n")
	got := w.hb("client", "install", "cursor", "--dry-run")
	want := said{0, `cursor: hb-rest would be added to HOME/user/.cursor/mcp.json
--- HOME/user/.cursor/mcp.json
+++ HOME/user/.cursor/mcp.json
  {
    // mine
-   "mcpServers": {}
+   "mcpServers": {
+     "hb-rest": {
+       "command": "HOME/bin/hb-rest",
+       "args": [],
+       "env": {
+         "HB_WRAP_HOME": "HOME"
+       }
+     }
+   }
  }
`, ""}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	got = w.hb("client", "install", "cursor")
	want = said{0, "cursor: hb-rest added to HOME/user/.cursor/mcp.json\n", `hbrestd: the file as it was: HOME/user/.cursor/mcp.json.hbrestd.bak
hbrestd: Refresh the list of MCP servers in Cursor's settings.
`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	installed := w.content("user/.cursor/mcp.json")
	if got := w.hb("client", "install", "cursor"); got != (said{0, "cursor: hb-rest already there: HOME/user/.cursor/mcp.json\n", ""}) {
		t.Errorf("once more: %+v", got)
	}
	if now := w.content("user/.cursor/mcp.json"); now != installed {
		t.Errorf("once more: %s", now)
	}
	w.program("other/hb-rest", "")
	if got := w.hb("client", "install", "cursor", "--command", filepath.Join(w.home, "other/hb-rest")); got.Exit != 0 || got.Out != "cursor: hb-rest updated in HOME/user/.cursor/mcp.json\n" {
		t.Errorf("another path: %+v", got)
	}
	if now := w.content("user/.cursor/mcp.json"); now != strings.Replace(installed, "HOME/bin/", "HOME/other/", 1) {
		t.Errorf("another path: %s", now)
	}
	got = w.hb("client", "uninstall", "cursor")
	if got.Exit != 0 || got.Out != "cursor: hb-rest taken out of HOME/user/.cursor/mcp.json\n" {
		t.Errorf("uninstall: %+v", got)
	}
	if now := w.content("user/.cursor/mcp.json"); now != "{\n  // mine\n}\n" {
		t.Errorf("uninstall left %q", now)
	}
}

func TestClientInstallRefuses(t *testing.T) {
	w := clientWorld(t)
	w.file("user/.cursor/mcp.json", "{\n  \"mcpServers\": {,}\n}\n")
	w.file("user/.gemini/settings.json", `{"mcpServers": {"hb-rest": {"command": "npx"}}}`)
	for _, tc := range []struct {
		args []string
		exit int
		want string
	}{
		{[]string{"client", "install"}, 2, "the name of a client is missing"},
		{[]string{"client", "install", "cursor", "--all"}, 2, "not both"},
		{[]string{"client", "install", "emacs"}, 5, `there is no client "emacs"`},
		{[]string{"client", "install", "cursor", "--scope", "here"}, 2, "--scope is"},
		{[]string{"client", "install", "cursor", "--via", "magic"}, 2, "--via is"},
		{[]string{"client", "install", "cursor", "--via", "command"}, 6, "mcp.json:2:18: "},
		{[]string{"client", "install", "zed", "--via", "command"}, 1, "has no command of its own"},
		{[]string{"client", "install", "codex", "--via", "command"}, 1, "codex is not in PATH"},
		{[]string{"client", "install", "cursor"}, 6, "mcp.json:2:18: invalid character ',' at start of value"},
		{[]string{"client", "install", "gemini"}, 1, "is not ours: it starts npx"},
		{[]string{"client", "uninstall", "gemini-cli"}, 1, "is not ours: it starts npx"},
		{[]string{"client", "install", "goose"}, 1, "hint: `hbrestd client print goose`"},
		{[]string{"client", "install", "windsurf", "--scope", "project"}, 1, "has no configuration in a project's folder"},
		{[]string{"client", "install", "cursor", "--command", "/no/such"}, 1, "no such file"},
		{[]string{"client", "install", "cursor", "--command", w.home}, 1, "it is a folder"},
		{[]string{"client", "install", "cursor", "--command", w.file("plain", "")}, 1, "it is not executable"},
	} {
		got := w.hb(tc.args...)
		if got.Exit != tc.exit || got.Out != "" || !strings.Contains(got.ErrOut, tc.want) {
			t.Errorf("%q: %+v", tc.args, got)
		}
	}
	if now := w.content("user/.cursor/mcp.json"); now != "{\n  \"mcpServers\": {,}\n}\n" {
		t.Errorf("a refused file holds %q", now)
	}
}

// --all changes those that are there, and one that fails does not keep the
// others from being changed.
func TestClientInstallAll(t *testing.T) {
	w := clientWorld(t)
	w.file("user/.cursor/mcp.json", "{")
	w.file("user/.codex/config.toml", "")
	got := w.hb("client", "install", "--all", "--json")
	if got.Exit != 1 {
		t.Errorf("%+v", got)
	}
	var answer struct{ Clients []clientChange }
	if err := json.Unmarshal([]byte(got.Out), &answer); err != nil {
		t.Fatal(err)
	}
	entry := &clientconfig.Entry{Command: "HOME/bin/hb-rest", Env: map[string]string{"HB_WRAP_HOME": "HOME"}}
	want := []clientChange{
		{Client: "cursor", File: "HOME/user/.cursor/mcp.json", Error: "HOME/user/.cursor/mcp.json:1:2: parsing value: unexpected EOF"},
		{
			Client: "codex", File: "HOME/user/.codex/config.toml", Action: "add", Entry: entry,
			Backup: "HOME/user/.codex/config.toml.hbrestd.bak", Reload: "Start a new session of Codex.",
		},
	}
	if diff := cmp.Diff(want, answer.Clients); diff != "" {
		t.Error(diff)
	}
	if got := w.content("user/.codex/config.toml"); got != "[mcp_servers.hb-rest]\ncommand = \"HOME/bin/hb-rest\"\nargs = []\n\n[mcp_servers.hb-rest.env]\nHB_WRAP_HOME = \"HOME\"\n" {
		t.Errorf("%s", got)
	}
}

const oldEntry = `{"mcpServers": {"kuang-wrap": {"command": "/opt/kuang-wrap"}}}` + "\n"

func TestClientOldEntry(t *testing.T) {
	const both, ours = `{"mcpServers": {"kuang-wrap": {"command": "/opt/kuang-wrap"}, "hb-rest":`, `{"mcpServers": {"hb-rest":`
	for _, tc := range []struct {
		name   string
		person bool
		answer string
		args   []string
		want   string // the start of the file
		said   string
	}{
		{"a script is not asked", false, "", nil, both, "is still there, so its tools appear too; --replace-old takes it out"},
		{"a person says yes", true, "y\n", nil, ours, "Replace it? [y/N] "},
		{"a person says no", true, "n\n", nil, both, "is still there"},
		{"said beforehand", false, "", []string{"--replace-old"}, ours, ".hbrestd.bak"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := clientWorld(t)
			w.person, w.stdin = tc.person, tc.answer
			w.file("user/.cursor/mcp.json", oldEntry)
			got := w.hb(append([]string{"client", "install", "cursor"}, tc.args...)...)
			if got.Exit != 0 || !strings.Contains(got.ErrOut, tc.said) {
				t.Errorf("%+v", got)
			}
			if now := w.content("user/.cursor/mcp.json"); !strings.HasPrefix(now, tc.want) {
				t.Errorf("the file holds %s", now)
			}
		})
	}
}

func TestClientUninstallAsks(t *testing.T) {
	w := clientWorld(t)
	w.file("user/.cursor/mcp.json", `{"mcpServers": {"hb-rest": {"command": "/usr/bin/hb-rest"}}}`)
	w.person, w.stdin = true, "n\n"
	if got := w.hb("client", "uninstall", "cursor"); got.Exit != 1 || !strings.Contains(got.ErrOut, "Take hb-rest out of HOME/user/.cursor/mcp.json? [y/N] ") || !strings.Contains(got.ErrOut, "nothing was changed") {
		t.Errorf("%+v", got)
	}
	if got := w.hb("client", "uninstall", "cursor", "--yes"); got != (said{0, "cursor: hb-rest taken out of HOME/user/.cursor/mcp.json\n", ""}) {
		t.Errorf("%+v", got)
	}
	if _, err := os.Stat(filepath.Join(w.home, "user/.cursor/mcp.json")); err == nil {
		t.Error("the file that only held our entry is still there")
	}
}

// Claude Code writes its file while it runs, so that its own command adds the
// entry, where there is one.
func TestClaudeCodeOwnCommand(t *testing.T) {
	const does = `printf '%s\n' "$@" > "$HOME/args"` + "\n"
	good := does + `printf '{"mcpServers": {"hb-rest": %s}}' "$6" > "$HOME/.claude.json"` + "\n"
	for _, tc := range []struct {
		name, script string
		args         []string
		exit         int
		want         string
		ran          bool
	}{
		{"used", good, nil, 0, "claude mcp add-json --scope user hb-rest '{\"type\": \"stdio\", \"command\": ", true},
		{"shown", good, []string{"--dry-run"}, 0, "this command would be run instead of editing the file: ", false},
		{"not wanted", good, []string{"--via", "file"}, 0, "Start a new session", false},
		{"without effect", does, nil, 1, "does not have the entry", true},
		{"fails", does + "echo no such scope >&2\nexit 3\n", nil, 1, "it printed: no such scope", true},
		{"other scope", good, []string{"--scope", "project", "--dry-run"}, 0, "", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := clientWorld(t)
			w.program("bin/claude", "HOME='"+filepath.Join(w.home, "user")+"'\n"+tc.script)
			if err := os.MkdirAll(filepath.Join(w.home, "user"), 0o700); err != nil {
				t.Fatal(err)
			}
			got := w.hb(append([]string{"client", "install", "claude-code"}, tc.args...)...)
			if got.Exit != tc.exit || !strings.Contains(got.ErrOut, tc.want) {
				t.Errorf("%+v", got)
			}
			args, err := os.ReadFile(filepath.Join(w.home, "user/args"))
			if (err == nil) != tc.ran {
				t.Errorf("it ran: %t, want %t", err == nil, tc.ran)
			}
			if tc.ran && !strings.HasPrefix(string(args), "mcp\nadd-json\n--scope\nuser\nhb-rest\n{") {
				t.Errorf("its arguments: %s", args)
			}
		})
	}
}

// Claude Code would begin a new file if it were started on one with a comment.
func TestClaudeCodeWithComment(t *testing.T) {
	w := clientWorld(t)
	w.program("bin/claude", "echo ran >'"+w.home+"/ran'\n")
	w.file("user/.claude.json", "{\n  // mine\n}\n")
	got := w.hb("client", "install", "claude-code")
	if got.Exit != 0 || !strings.Contains(got.ErrOut, "and line 2 has one: it may refuse its file, or begin a new one") {
		t.Errorf("%+v", got)
	}
	if now := w.content("user/.claude.json"); !strings.HasPrefix(now, "{\n  // mine\n  \"mcpServers\": {\n") {
		t.Errorf("the file holds %s", now)
	}
	if _, err := os.Stat(filepath.Join(w.home, "ran")); err == nil {
		t.Error("claude was started")
	}
}

// The entry names only what hb-rest would not find by itself, and only files.
func TestClientWanted(t *testing.T) {
	const shim = "HOME/bin/hb-rest"
	state := "HOME/user/.local/state/hbrestd"
	for _, tc := range []struct {
		name   string
		env    map[string]string
		status *api.Status
		want   clientconfig.Wanted
	}{
		{"default", nil, nil, clientconfig.Wanted{
			Entry: clientconfig.Entry{Command: shim, Env: map[string]string{}},
			Idle:  map[string]string{"HB_WRAP_HOME": state, "HB_WRAP_TOKEN_FILE": state + "/wrap/token"},
		}},
		{"home", map[string]string{"HB_WRAP_HOME": "HOME/srv"}, nil, clientconfig.Wanted{
			Entry: clientconfig.Entry{Command: shim, Env: map[string]string{"HB_WRAP_HOME": "HOME/srv"}},
			Idle:  map[string]string{"HB_WRAP_HOME": "HOME/srv", "HB_WRAP_TOKEN_FILE": "HOME/srv/wrap/token"},
		}},
		{"state folder, which clients do not pass on", map[string]string{"XDG_STATE_HOME": "HOME/state"}, nil, clientconfig.Wanted{
			Entry: clientconfig.Entry{Command: shim, Env: map[string]string{"HB_WRAP_HOME": "HOME/state/hbrestd"}},
			Idle:  map[string]string{"HB_WRAP_HOME": "HOME/state/hbrestd", "HB_WRAP_TOKEN_FILE": "HOME/state/hbrestd/wrap/token"},
		}},
		{"token file and address", map[string]string{"HB_WRAP_TOKEN_FILE": "HOME/token", "HB_WRAP_ADDR": "127.0.0.1:4222"}, nil, clientconfig.Wanted{
			Entry: clientconfig.Entry{Command: shim, Env: map[string]string{"HB_WRAP_TOKEN_FILE": "HOME/token", "HB_WRAP_URL": "http://127.0.0.1:4222"}},
			Idle:  map[string]string{"HB_WRAP_HOME": state, "HB_WRAP_TOKEN_FILE": state + "/wrap/token"},
		}},
		{"the daemon's own address is not known beforehand", map[string]string{"HB_WRAP_ADDR": "127.0.0.1:0"}, nil, clientconfig.Wanted{
			Entry: clientconfig.Entry{Command: shim, Env: map[string]string{}},
			Idle:  map[string]string{"HB_WRAP_HOME": state, "HB_WRAP_TOKEN_FILE": state + "/wrap/token"},
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := clientWorld(t)
			delete(w.env, "HB_WRAP_HOME")
			for k, v := range tc.env {
				w.env[k] = strings.ReplaceAll(v, "HOME", w.home)
			}
			o := &clientOptions{app: w.app(nil, nil)}
			got, err := o.wanted(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(got)
			if err != nil {
				t.Fatal(err)
			}
			var plain clientconfig.Wanted
			if err := json.Unmarshal([]byte(strings.ReplaceAll(string(text), w.home, "HOME")), &plain); err != nil {
				t.Fatal(err)
			}
			if plain.Env == nil {
				plain.Env = map[string]string{}
			}
			if diff := cmp.Diff(tc.want, plain); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A running daemon says where it listens.
func TestClientWantedAddress(t *testing.T) {
	w := newWorld(t, &fake{}) // says 127.0.0.1:4111
	w.program("bin/hb-rest", "")
	w.env["PATH"] = filepath.Join(w.home, "bin")
	got, err := (&clientOptions{app: w.app(nil, nil)}).wanted(t.Context())
	if err != nil || got.Idle["HB_WRAP_URL"] != "http://127.0.0.1:4111" || got.Env["HB_WRAP_URL"] != "" {
		t.Errorf("%+v %v", got, err)
	}
	w.env["HB_WRAP_ADDR"] = "127.0.0.1:0" // any free port: only the daemon knows which
	got, err = (&clientOptions{app: w.app(nil, nil)}).wanted(t.Context())
	if err != nil || got.Idle["HB_WRAP_URL"] != "http://127.0.0.1:4111" {
		t.Errorf("with any free port: %+v %v", got, err)
	}
}

// Of two names of one file, the one that an upgrade keeps is written down.
func TestChooseShim(t *testing.T) {
	w := newWorld(t, nil)
	versioned := w.program("cellar/hb-rest/1.2.3/hb-rest", "")
	other := w.program("other/hb-rest", "")
	stable := filepath.Join(w.home, "bin/hb-rest")
	if err := os.MkdirAll(filepath.Dir(stable), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(versioned, stable); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ beside, path, want string }{
		{versioned, stable, stable},
		{versioned, other, versioned},
		{versioned, "", versioned},
		{w.home + "/none", other, other},
		{w.home + "/none", "", ""},
		{w.home, other, other}, // a folder
	} {
		if got := chooseShim(tc.beside, tc.path); got != tc.want {
			t.Errorf("beside %s, in PATH %s: %s", tc.beside, tc.path, got)
		}
	}
	path := strings.Join([]string{"bin", filepath.Join(w.home, "empty"), filepath.Join(w.home, "other")}, ":")
	if got := inPath(path, "hb-rest"); got != other {
		t.Errorf("a relative folder of PATH counts: %s", got)
	}
}

func TestClientList(t *testing.T) {
	w := clientWorld(t)
	put := func(path, format string) {
		w.file(path, strings.NewReplacer("@", filepath.Join(w.home, "bin/hb-rest"), "$", w.home).Replace(format))
	}
	if err := os.Symlink("hb-rest", filepath.Join(w.home, "bin/hb-rest-link")); err != nil {
		t.Fatal(err)
	}
	put("user/.cursor/mcp.json", `{"mcpServers": {"hb-rest": {"command": "@", "env": {"HB_WRAP_HOME": "$", "HB_WRAP_MAX_TOOLS": "5"}}}}`)
	put("user/.claude.json", `{"mcpServers": {"hb-rest": {"command": "@"}}}`)
	put("user/.codex/config.toml", "[mcp_servers.hb-rest]\ncommand = '/gone/hb-rest'\n")
	put("user/.config/Code/User/mcp.json", `{"servers": {"kuang-wrap": {"command": "/opt/kuang-wrap"}}}`)
	put("user/.config/zed/settings.json", `{"context_servers": {"hb-rest": {"command": "npx"}}}`)
	put("user/.config/goose/config.yaml", "extensions:\n  hb-rest:\n    cmd: \"@\"\n    envs: {HB_WRAP_HOME: \"$\"}\n    enabled: false\n")
	put("user/.continue/config.yaml", "mcpServers:\n  - name: hb-rest\n    command: \"@\"\n    env:\n      HB_WRAP_HOME: \"$\"\n")
	put("user/.config/opencode/opencode.json", `{"mcp": {"hb-rest": {"type": "local", "command": ["@"], "environment": {"HB_WRAP_HOME": "$"}}}}`)
	put("user/.gemini/settings.json", "{\n  nonsense\n}")
	put("user/.codeium/windsurf/other", "")
	w.width = 80
	got := w.hb("client", "list")
	want := said{0, `CLIENT       STATE          COMMAND           FILE
claude-code  differs        HOME/bin/hb-rest  HOME/user/.claude.json
cursor       ok             HOME/bin/hb-rest  HOME/user/.cursor/mcp.json
vscode       old entry      -                 HOME/user/.config/Code/User/mcp.json
codex        path missing   /gone/hb-rest     HOME/user/.codex/config.toml
gemini-cli   unreadable     -                 HOME/user/.gemini/settings.json
windsurf     not installed  -                 HOME/user/.codeium/windsurf/mcp_config.json
zed          not ours       npx               HOME/user/.config/zed/settings.json
continue     ok             HOME/bin/hb-rest  HOME/user/.continue/config.yaml
goose        switched off   HOME/bin/hb-rest  HOME/user/.config/goose/config.yaml
opencode     ok             HOME/bin/hb-rest  HOME/user/.config/opencode/opencode.json
`, "hbrestd: HOME/user/.gemini/settings.json:2:3: invalid literal: nonsense\n"}
	pad := strings.Repeat(" ", len(w.home)-len("HOME")) // columns are as wide as the real path
	got.Out = strings.ReplaceAll(got.Out, pad+"  ", "  ")
	lines := func(s string) [][]string {
		var out [][]string
		for line := range strings.Lines(s) {
			out = append(out, strings.Fields(line))
		}
		return out
	}
	if diff := cmp.Diff(lines(want.Out), lines(got.Out)); diff != "" {
		t.Error(diff)
	}
	if got.ErrOut != want.ErrOut {
		t.Errorf("stderr: %s", got.ErrOut)
	}
	var rows clientRows
	if err := json.Unmarshal([]byte(w.hb("client", "list", "--all", "--json").Out), &rows); err != nil {
		t.Fatal(err)
	}
	if len(rows.Clients) != 14 || rows.Command != "HOME/bin/hb-rest" || rows.Scope != "user" {
		t.Errorf("%+v", rows)
	}
	if i := slices.IndexFunc(rows.Clients, func(r clientRow) bool { return r.Client == "vscode" }); rows.Clients[i].State != stateOld || !slices.Equal(rows.Clients[i].Old, []string{"kuang-wrap"}) {
		t.Errorf("%+v", rows.Clients[i])
	}
}

func TestClientListNone(t *testing.T) {
	w := clientWorld(t)
	if got := w.hb("client", "list"); got.Exit != 0 || got.Out != "" || !strings.Contains(got.ErrOut, "no MCP client was found") {
		t.Errorf("%+v", got)
	}
	w.env["HOME"] = "" // then --all has none to show either
	if got := w.hb("client", "list", "--all"); got.Exit != 0 || got.Out != "" || !strings.Contains(got.ErrOut, "set HOME") || strings.Contains(got.ErrOut, "--all") {
		t.Errorf("%+v", got)
	}
}

func TestClientPrint(t *testing.T) {
	w := clientWorld(t)
	got := w.hb("client", "print", "codex")
	want := said{
		0, "[mcp_servers.hb-rest]\ncommand = \"HOME/bin/hb-rest\"\nargs = []\n\n[mcp_servers.hb-rest.env]\nHB_WRAP_HOME = \"HOME\"\n",
		"hbrestd: for Codex; it belongs into HOME/user/.codex/config.toml\n" +
			"hbrestd: its own command for the same: codex mcp add hb-rest --env HB_WRAP_HOME=HOME -- HOME/bin/hb-rest\n",
	}
	if got != want {
		t.Errorf("%+v", got)
	}
	if got := shellLine([]string{"a b", "it's", "", "--x=/y", "$(z)"}); got != `'a b' 'it'\''s' '' --x=/y '$(z)'` {
		t.Errorf("shellLine: %s", got)
	}
}
