package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/clientconfig"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// Every code of the catalogue has the exit code that docs/cli.md promises: what
// the table, made by hand, does not name is a failure without a number of its own.
func TestExitCodes(t *testing.T) {
	want := map[int][]string{
		exitNotRunning: {"BRIDGE_UNREACHABLE", "TOKEN_FILE_MISSING", "SHUTTING_DOWN"},
		exitCredential: {"AUTH_REQUIRED"},
		exitNotFound:   {"WRAPPER_NOT_FOUND", "RULE_NOT_FOUND", "APPROVAL_NOT_FOUND", "VERSION_NOT_FOUND"},
		exitInvalid:    {"BAD_JSON", "BAD_REQUEST", "BODY_TOO_LARGE", "WRAPPER_INVALID", "ARGS_INVALID", "MAX_PAGES_INVALID", "MAX_ITEMS_INVALID", "FORMAT_INVALID", "SAMPLE_INVALID", "SECRET_INVALID", "CLIENT_FILE_INVALID", "IMPORT_INVALID", "IMPORT_NO_SERVER"},
		exitFailed:     {"SECRET_CHANGED"},
	}
	byPrefix := map[string]int{"SECRET_": exitCredential, "OAUTH_": exitCredential, "APPROVAL_": exitCredential, "UPSTREAM_": exitUpstream, "RESPONSE_": exitUpstream, "POLICY_": exitUpstream, "DERIVE_": exitInvalid}
	exits := map[string]int{}
	for exit, codes := range want {
		for _, c := range codes {
			exits[c] = exit
		}
	}
	for _, c := range fault.Codes() {
		exit, named := exits[string(c)]
		for prefix, e := range byPrefix {
			if !named && strings.HasPrefix(string(c), prefix) {
				exit, named = e, true
			}
		}
		if !named {
			exit = exitFailed
		}
		if got := exitCode(c); got != exit {
			t.Errorf("%s exits with %d, want %d", c, got, exit)
		}
	}
}

// A person is never sent to an agent's tool, and is sent elsewhere only in
// place of the catalogue's own words.
func TestPersonHints(t *testing.T) {
	for _, e := range fault.Catalogue() {
		// Only the bridge says that a person writes credentials; no command ends so.
		if said := personHint(fault.New(e.Code, "m")); e.Code != "METHOD_NOT_ALLOWED" && (strings.Contains(said, "wrap_") || strings.Contains(said, "person")) {
			t.Errorf("the hint of %s for a person is %q", e.Code, said)
		}
	}
	for c, hint := range personHints {
		if _, ok := fault.Lookup(c); !ok || strings.Contains(hint, "wrap_") || len(hint) > fault.MaxHint {
			t.Errorf("%s: %q", c, hint)
		}
	}
	// What other packages say of one case, more than the catalogue does.
	for hint, want := range map[string]string{
		"Ask a person to check the scope: `hbrestd secret show k`.":                                   "Check the scope: `hbrestd secret show k`.",
		"The API rejected credential \"k\". A person must enter it again: `hbrestd secret rotate k`.": "The API rejected credential \"k\". Enter it again: `hbrestd secret rotate k`.",
		"Repeat the call in a moment; if it lasts, ask a person to check the token URL.":              "Repeat the call in a moment; if it lasts, check the token URL.",
		"Ask a person to x. Ask a person to y.":                                                       "X. Y.",
	} {
		if got := personHint(fault.New("OAUTH_TOKEN_FAILED", "m").With(fault.Hint("%s", hint))); got != want {
			t.Errorf("%q: %q, want %q", hint, got, want)
		}
	}
	_, own := explain(nil, fault.New("ARGS_INVALID", "m").With(fault.Hint("Send 3.")))
	if own.Hint != "Send 3." {
		t.Errorf("a hint that knows more was replaced: %q", own.Hint)
	}
}

// Every exit code comes out of a real command.
func TestEveryExitCode(t *testing.T) {
	f := &fake{docs: docs(`{"id":"a"}`)}
	w := newWorld(t, f)
	for _, tc := range []struct {
		fail error
		want int
	}{
		{nil, 0},
		{fault.New("STORE_FAILED", "disk full"), 1},
		{fault.New("SHUTTING_DOWN", "hbrestd is stopping"), 3},
		{fault.New("SECRET_NOT_FOUND", "no credential"), 4},
		{fault.New("APPROVAL_REQUIRED", "ask"), 4},
		{fault.New("WRAPPER_NOT_FOUND", "none"), 5},
		{fault.New("ARGS_INVALID", "bad"), 6},
		{fault.New("POLICY_PRIVATE_ADDRESS", "private"), 7},
	} {
		f.fail = tc.fail
		if got := w.hb("wrapper", "show", "a"); got.Exit != tc.want {
			t.Errorf("%v exits with %d, want %d: %s", tc.fail, got.Exit, tc.want, got.ErrOut)
		}
	}
	down := newWorld(t, nil)
	check(t, "no daemon", down.hb("wrapper", "list"), said{3, "", "hbrestd: error: no daemon: there is no control socket HOME/control.sock\nhbrestd: hint: Start the daemon with `hbrestd service start` or `hbrestd run`, with the same HB_WRAP_HOME as this command.\n"})
	check(t, "no daemon, status", down.hb("status"), said{3, "", "hbrestd: error: no daemon: there is no control socket HOME/control.sock\nhbrestd: hint: Start the daemon with `hbrestd service start` or `hbrestd run`, with the same HB_WRAP_HOME as this command.\n"})
	check(t, "no daemon, JSON", down.hb("audit", "--json"), said{3, "", `{
  "ok": false,
  "code": "BRIDGE_UNREACHABLE",
  "status": null,
  "field": null,
  "retryable": true,
  "hint": "Start the daemon with ` + "`hbrestd service start` or `hbrestd run`" + `, with the same HB_WRAP_HOME as this command.",
  "message": "no daemon: there is no control socket HOME/control.sock",
  "details": []
}
`})
	down.env["HB_WRAP_HOME"] = "relative"
	check(t, "bad setting", down.hb("paths"), said{1, "", "hbrestd: error: reading the settings: HB_WRAP_HOME is \"relative\", but it must be an absolute path; ~ and variables inside it are not replaced\n"})
}

func TestUsageErrors(t *testing.T) {
	w := newWorld(t, nil)
	hint := func(of string) string { return "hbrestd: hint: `" + of + " --help` shows how it is used.\n" }
	for _, tc := range []struct {
		args string
		want said
	}{
		{"nonsense", said{2, "", "hbrestd: error: unknown command \"nonsense\" for \"hbrestd\"\n" + hint("hbrestd")}},
		{"wraper list", said{2, "", "hbrestd: error: unknown command \"wraper\" for \"hbrestd\"; did you mean wrapper?\n" + hint("hbrestd")}},
		{"wrapper lst", said{2, "", "hbrestd: error: unknown command \"lst\" for \"hbrestd wrapper\"; did you mean list or test or lint?\n" + hint("hbrestd wrapper")}},
		{"audit verfy", said{2, "", "hbrestd: error: unknown command \"verfy\" for \"hbrestd audit\"; did you mean verify?\n" + hint("hbrestd audit")}},
		{"status now", said{2, "", "hbrestd: error: unexpected argument \"now\"\n" + hint("hbrestd status")}},
		{"status --jsn", said{2, "", "hbrestd: error: unknown flag: --jsn\n" + hint("hbrestd status")}},
		{"audit -n x", said{2, "", "hbrestd: error: invalid argument \"x\" for \"-n, --rows\" flag: it must be a whole number\n" + hint("hbrestd audit")}},
		{"config set x", said{2, "", "hbrestd: error: the name of a setting and its value is missing\n" + hint("hbrestd config set")}},
		{"completion tcsh", said{2, "", "hbrestd: error: no completion for \"tcsh\"; there is one for bash, zsh, fish and powershell\n" + hint("hbrestd completion")}},
	} {
		check(t, tc.args, w.hb(strings.Fields(tc.args)...), tc.want)
	}
	for _, args := range [][]string{{}, {"wrapper"}, {"help"}, {"help", "wrapper", "run"}, {"wrapper", "run", "--help"}} {
		if got := w.hb(args...); got.Exit != 0 || got.ErrOut != "" || !strings.Contains(got.Out, "\nUsage:\n") {
			t.Errorf("%v: %+v", args, got)
		}
	}
}

// Whoever reads the answer may go away; that is no news.
func TestBrokenPipe(t *testing.T) {
	f := &fake{docs: docs(`{"id":"a"}`), entries: someEntries}
	w := newWorld(t, f)
	w.stdout = failing{&os.PathError{Op: "write", Path: "|1", Err: syscall.EPIPE}}
	check(t, "broken pipe", w.hb("wrapper", "list"), said{1, "", ""})
	w.stdout = failing{errors.New("no space left on device")}
	for _, args := range [][]string{{"wrapper", "list"}, {"wrapper", "show", "a"}, {"status"}, {"paths"}, {"version"}, {"completion", "bash"}, {"wrapper", "export", "a"}} {
		check(t, fmt.Sprint(args), w.hb(args...), said{1, "", "hbrestd: error: writing the answer: no space left on device\n"})
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func TestInterrupted(t *testing.T) {
	f := &fake{started: make(chan struct{})}
	w := newWorld(t, f)
	ctx, cancel := context.WithCancel(context.Background())
	w.ctx = ctx
	go func() { <-f.started; cancel() }()
	check(t, "interrupted", w.hb("wrapper", "list"), said{130, "", "hbrestd: interrupted\n"})
}

// Text from elsewhere is one line and steers nothing, in an error too.
func TestErrorsAreTame(t *testing.T) {
	f := &fake{fail: &fault.Error{Code: "STORE_FAILED", Message: "a\nhbrestd: hint: run \x1b]0;x\x07rm", Hint: "b\x9bc", Details: []fault.Detail{{Field: "f\n", Message: "m\r"}, {Field: "g", Message: "n"}}}}
	got := newWorld(t, f).hb("wrapper", "list")
	if strings.ContainsAny(got.ErrOut, "\x1b\x07\r") || strings.Contains(got.ErrOut, "\u009b") || strings.Count(got.ErrOut, "\n") != 4 {
		t.Errorf("%q", got.ErrOut)
	}
}

func TestStatus(t *testing.T) {
	f := &fake{}
	w := newWorld(t, f)
	check(t, "status", w.hb("status"), said{0, `hbrestd        running, version 1.2.3, pid 4321
since          2026-11-30T08:00:00Z
bridge         http://127.0.0.1:4111
token file     /home/ada/.local/state/hbrestd/wrap/token
home           /home/ada/.local/state/hbrestd
wrappers       12 (1 damaged), revision 7
private hosts  refused
plain http     allowed
`, ""})
	check(t, "JSON", w.hb("status", "--json"), said{0, `{
  "ok": true,
  "version": "1.2.3",
  "pid": 4321,
  "address": "127.0.0.1:4111",
  "home": "/home/ada/.local/state/hbrestd",
  "tokenFile": "/home/ada/.local/state/hbrestd/wrap/token",
  "startedAt": "2026-11-30T08:00:00Z",
  "wrappers": 12,
  "damaged": 1,
  "revision": 7,
  "allowPrivate": false,
  "allowHttp": true,
  "callTimeoutMs": 50000
}
`, ""})
}

func TestVersion(t *testing.T) {
	w := newWorld(t, &fake{version: "1.2.4"})
	w.version.Commit, w.version.Modified = "0123456789abcdef", true
	skew := "hbrestd: warning: the running daemon is version 1.2.4 and this command is version 1.2.3; restart the daemon\n"
	check(t, "skew", w.hb("version"), said{0, "hbrestd 1.2.3 (commit 0123456789abcdef, modified)\ngo1.26.8, linux/amd64\ndaemon: 1.2.4\n", skew})
	if got := w.hb("status"); got.ErrOut != skew {
		t.Errorf("every command that meets the daemon says so, once: %q", got.ErrOut)
	}
	check(t, "JSON", w.hb("version", "--json"), said{0, `{
  "version": "1.2.3",
  "commit": "0123456789abcdef",
  "modified": true,
  "go": "go1.26.8",
  "platform": "linux/amd64",
  "daemon": "1.2.4"
}
`, skew})
	down := newWorld(t, nil)
	check(t, "no daemon", down.hb("version"), said{0, "hbrestd 1.2.3\ngo1.26.8, linux/amd64\ndaemon: not running\n", ""})
	check(t, "no daemon, JSON", down.hb("version", "--json"), said{0, "{\n  \"version\": \"1.2.3\",\n  \"go\": \"go1.26.8\",\n  \"platform\": \"linux/amd64\",\n  \"daemon\": null\n}\n", ""})
	check(t, "flag", down.hb("--version"), said{0, "hbrestd 1.2.3\n", ""})
}

func TestPaths(t *testing.T) {
	w := newWorld(t, nil)
	w.file("user/.claude.json", "{}")
	w.file("user/.config/zed/settings.json", "{}") // that .config is there says nothing of others
	w.file("wrap/token", "x")
	w.env["CODEX_HOME"] = filepath.Join(w.home, "wrap") // a folder that is there, without the file
	w.env["KUANG_WRAP_ADDR"] = "127.0.0.1:5"
	check(t, "for a program", w.hb("paths"), said{
		0, "home\tHOME\tyes\n" +
			"wrappers\tHOME/wrap/store.db\tno\n" +
			"audit trail\tHOME/wrap/audit.db\tno\n" +
			"token file\tHOME/wrap/token\tyes\n" +
			"control socket\tHOME/control.sock\tno\n" +
			"log of hb-rest\tHOME/hb-rest.log\tno\n" +
			"Claude Code\tHOME/user/.claude.json\tyes\n" +
			"Codex\tHOME/wrap/config.toml\tno\n" +
			"Zed\tHOME/user/.config/zed/settings.json\tyes\n",
		"hbrestd: warning: KUANG_WRAP_ADDR is the old name of HB_WRAP_ADDR; it still works, but please rename it\n",
	})
	delete(w.env, "KUANG_WRAP_ADDR")
	delete(w.env, "CODEX_HOME")
	delete(w.env, "HOME")
	w.width = 30 // a path is never cut
	check(t, "on a terminal", w.hb("paths"), said{0, "" +
		"WHAT            PATH" + strings.Repeat(" ", len(w.home)-4+len("/wrap/audit.db")) + "  EXISTS\n" +
		"home            HOME                yes\n" +
		"wrappers        HOME/wrap/store.db  no\n" +
		"audit trail     HOME/wrap/audit.db  no\n" +
		"token file      HOME/wrap/token     yes\n" +
		"control socket  HOME/control.sock   no\n" +
		"log of hb-rest  HOME/hb-rest.log    no\n", ""})
	w.width = 0
	check(t, "JSON", w.hb("paths", "--json"), said{0, `{
  "places": [
    {
      "name": "home",
      "path": "HOME",
      "exists": true
    },
    {
      "name": "wrappers",
      "path": "HOME/wrap/store.db",
      "exists": false
    },
    {
      "name": "audit trail",
      "path": "HOME/wrap/audit.db",
      "exists": false
    },
    {
      "name": "token file",
      "path": "HOME/wrap/token",
      "exists": true
    },
    {
      "name": "control socket",
      "path": "HOME/control.sock",
      "exists": false
    },
    {
      "name": "log of hb-rest",
      "path": "HOME/hb-rest.log",
      "exists": false
    }
  ],
  "clients": []
}
`, ""})
	w.file("wrap/keyring/master", "x") // of the setting keyring=file: a backup needs it
	if got := w.hb("paths"); !strings.Contains(got.Out, "encrypted key") || !strings.Contains(got.Out, "HOME/wrap/keyring/master") {
		t.Errorf("%+v", got)
	}
	for goos, want := range map[string]string{"darwin": "/u/Library/Application Support/Code/User/mcp.json", "windows": `C:\a\Code\User\mcp.json`} {
		found := clientPlaces(clientconfig.Env{
			OS: goos,
			Getenv: func(name string) (string, bool) {
				v, ok := map[string]string{"HOME": "/u", "APPDATA": `C:\a`, "USERPROFILE": `C:\p`}[name]
				return v, ok
			},
			Exists: func(p string) bool { return p == want },
			Glob:   func(string) []string { return nil },
		})
		if diff := cmp.Diff([]place{{Name: "VS Code", Path: want}}, found); diff != "" {
			t.Errorf("%s: %s", goos, diff)
		}
	}
}
