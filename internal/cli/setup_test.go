package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/control"
)

// whole is a command line in front of this manager.
func (m *manager) whole(args ...string) said {
	m.w.t.Helper()
	var out, errOut bytes.Buffer
	a := m.w.app(&out, &errOut)
	a.seeService = m.see
	m.did = nil
	exit := a.run(m.w.ctx, args)
	text := func(b bytes.Buffer) string { return strings.ReplaceAll(b.String(), m.w.home, "HOME") }
	return said{exit, text(out), text(errOut)}
}

const nothingYet = "\nNext: `hbrestd wrapper list` shows what agents can call. `hbrestd doctor` looks at everything.\n"

// With a service manager: once, and once more.
func TestSetup(t *testing.T) {
	f := &fake{secrets: control.SecretState{State: "ready"}}
	m := doctorWorld(t, f, activeUnit)
	delete(m.w.env, "HB_WRAP_ADDR")
	delete(m.w.env, "HB_WRAP_KEYRING")
	m.lingers = true
	m.w.file("user/.cursor/mcp.json", "{}\n")
	m.w.file("user/.gemini/settings.json", "{}\n")
	check(t, "without a terminal, nobody asked", m.whole("setup"), said{0, "" +
		"ok    service   installed: HOME/.config/systemd/user/hbrestd.service\n" +
		"ok    daemon    running, version 1.2.3, at http://127.0.0.1:4111\n" +
		"ok    keyring   credentials can be stored in it\n" +
		"skip  cursor    found, and left alone\n      next: `hbrestd client install cursor` connects it\n" +
		"skip  gemini-cli  found, and left alone\n      next: `hbrestd client install gemini-cli` connects it\n" + nothingYet, ""})
	m.show = activeUnit
	check(t, "one by name", m.whole("setup", "--client", "cursor"), said{0, "" +
		"ok    service   already up to date: HOME/.config/systemd/user/hbrestd.service\n" +
		"ok    daemon    running, version 1.2.3, at http://127.0.0.1:4111\n" +
		"ok    keyring   credentials can be stored in it\n" +
		"ok    cursor    connected: HOME/user/.cursor/mcp.json (as it was: HOME/user/.cursor/mcp.json.hbrestd.bak)\n" +
		"      next: Refresh the list of MCP servers in Cursor's settings.\n" +
		"skip  gemini-cli  found, and left alone\n      next: `hbrestd client install gemini-cli` connects it\n" + nothingYet, ""})
	first := m.w.content("user/.cursor/mcp.json")
	if got := m.whole("setup", "--yes"); got.Exit != 0 || !strings.Contains(got.Out, "already connected: HOME/user/.cursor/mcp.json\n") || !strings.Contains(got.Out, "connected: HOME/user/.gemini/settings.json (") {
		t.Errorf("all: %+v", got)
	}
	if got := m.whole("setup", "--yes"); got.Exit != 0 || strings.Contains(got.Out, "as it was") {
		t.Errorf("all, once more: %+v", got)
	}
	m.gave("daemon-reload; enable hbrestd.service") // and not started again
	if now := m.w.content("user/.cursor/mcp.json"); now != first {
		t.Error("the entry was written again")
	}

	m.w.file("user/.codex/config.toml", "")
	m.w.person, m.w.stdin = true, "n\n"
	if got := m.whole("setup"); got.Exit != 0 || !strings.Contains(got.ErrOut, "Connect Codex (HOME/user/.codex/config.toml)? [y/N] ") || !strings.Contains(got.Out, "codex     left alone\n") {
		t.Errorf("a person says no: %+v", got)
	}
	m.w.stdin = "y\n"
	if got := m.whole("setup"); got.Exit != 0 || !strings.Contains(got.Out, "connected: HOME/user/.codex/config.toml") {
		t.Errorf("a person says yes: %+v", got)
	}
	m.w.person = false
	m.w.file("user/.gemini/settings.json", "{ not JSON")
	if got := m.whole("setup", "--client", "gemini"); got.Exit != 1 || !strings.Contains(got.Out, "FAIL  gemini-cli  ") || strings.Contains(got.Out, "Next: ") {
		t.Errorf("a file that cannot be understood: %+v", got)
	}
}

// A container: no service manager, no daemon.
func TestSetupWithoutManager(t *testing.T) {
	w := clientWorld(t)
	w.file("user/.cursor/mcp.json", "{}\n")
	m := &manager{w: w, show: noUnit}
	check(t, "left alone", m.whole("setup", "--no-service", "--yes"), said{0, "" +
		"skip  service   left alone, as --no-service asks\n" +
		"warn  daemon    it does not run\n      next: `hbrestd run` runs it in a terminal of its own; in a container it can be the main program\n" +
		"skip  keyring   the daemon asks it, once it runs\n" +
		"ok    cursor    connected: HOME/user/.cursor/mcp.json (as it was: HOME/user/.cursor/mcp.json.hbrestd.bak)\n" +
		"      next: Refresh the list of MCP servers in Cursor's settings.\n" +
		"\nNext: `hbrestd run`, then `hbrestd doctor`.\n", ""})
	for _, args := range [][]string{{"setup", "--client", "nobody"}, {"setup", "--client", "goose"}, {"setup", "--client", "cursor", "--no-client"}} {
		if got := m.whole(args...); got.Exit == 0 || got.Out != "" {
			t.Errorf("%q: %+v", args, got)
		}
	}
	m.w.env["HB_WRAP_HOME"] = "relative"
	if got := m.whole("setup"); got.Exit != 1 || !strings.Contains(got.ErrOut, "HB_WRAP_HOME") {
		t.Errorf("a setting that cannot be read: %+v", got)
	}
}

// A service that does not start ends it with that step's code and hint.
func TestSetupFails(t *testing.T) {
	m := doctorWorld(t, nil, noUnit)
	m.fails, m.after = "Job failed", "LoadState=loaded|ActiveState=failed|UnitFileState=enabled|StatusText=ADDRESS_IN_USE: 127.0.0.1:4111 is already in use by python3 (pid 9)|ExecMainCode=1|ExecMainStatus=8|ExecMainExitTimestamp=Tue 2026-12-01 08:00:00 UTC|Result=exit-code"
	got := m.whole("setup")
	if got.Exit != 1 || !strings.Contains(got.Out, "FAIL  daemon    the service did not start: 127.0.0.1:4111 is already in use by python3 (pid 9)\n      next: Stop that program") || strings.Contains(got.Out, "Next: ") {
		t.Errorf("%+v", got)
	}

	// One that was started by hand is in the way.
	m = doctorWorld(t, &fake{}, stoppedUnit)
	got = m.whole("setup")
	if got.Exit != 1 || !strings.Contains(got.Out, "FAIL  service   a daemon that was started by hand (pid 4321) is running") || !strings.Contains(got.Out, "`kill 4321`") {
		t.Errorf("%+v", got)
	}
	m.gave("")
}

func TestPurge(t *testing.T) {
	m := doctorWorld(t, nil, noUnit)
	for _, name := range []string{
		"wrap/store.db", "wrap/store.db.damaged-20261201T080000Z", "wrap/audit.db", "wrap/audit-00000000000000000001.db", "wrap/.backup-1/store.db", "wrap/.restore-1.tmp/store.db", "wrap/store.db.before-restore-1", "wrap/keyring-master.before-restore-1", "wrap/token", "wrap/keyring/master-1", "wrap/mine.txt", "hb-rest.log",
		"other/outside.txt", "user/notes.txt",
	} {
		m.w.file(name, "x")
	}
	if err := os.Symlink(filepath.Join(m.w.home, "other"), filepath.Join(m.w.home, "wrap", "keyring", "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(m.w.home, "other"), filepath.Join(m.w.home, "wrap", "token.old")); err != nil {
		t.Fatal(err)
	}
	m.w.file("user/.cursor/mcp.json", `{"mcpServers":{"mine":{"command":"x"},"hb-rest":{"command":"/usr/bin/hb-rest"}}}`)

	got := m.whole("purge", "--dry-run")
	for _, says := range []string{"client  cursor (HOME/user/.cursor/mcp.json)\n", "HOME/wrap/store.db\n", "HOME/wrap/keyring\n", "not hbrestd's, and left: HOME/wrap/mine.txt\n", "not hbrestd's, and left: HOME/user\n"} {
		if !strings.Contains(got.Out, says) {
			t.Errorf("the list lacks %q:\n%s", says, got.Out)
		}
	}
	if got := m.whole("purge"); got.Exit != 4 || !strings.Contains(got.ErrOut, "--yes") {
		t.Errorf("nobody to ask: %+v", got)
	}
	m.w.env["CLAUDECODE"] = "1"
	if got := m.whole("purge", "--yes"); got.Exit != 4 || !strings.Contains(got.ErrOut, "CLAUDECODE is set") {
		t.Errorf("an agent: %+v", got)
	}
	delete(m.w.env, "CLAUDECODE")
	if m.w.content("wrap/store.db") != "x" {
		t.Error("something was removed already")
	}

	got = m.whole("purge", "--yes")
	if got.Exit != 0 || got.ErrOut != "" || strings.Contains(got.Out, "removed: key") && strings.Contains(got.Out, "no keyring can be reached") {
		t.Errorf("%+v", got)
	}
	var left []string
	err := filepath.Walk(m.w.home, func(p string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() && !strings.HasPrefix(p, filepath.Join(m.w.home, "bin")) {
			left = append(left, strings.TrimPrefix(p, m.w.home+"/"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"other/outside.txt", "user/.cursor/mcp.json", "user/.cursor/mcp.json.hbrestd.bak", "user/notes.txt", "wrap/mine.txt", "wrap/token.old"}, left); diff != "" {
		t.Error(diff)
	}
	if now := m.w.content("user/.cursor/mcp.json"); strings.Contains(now, "hb-rest") || !strings.Contains(now, "mine") {
		t.Error(now)
	}
	if got := m.whole("purge", "--yes"); got.Exit != 0 {
		t.Errorf("once more: %+v", got)
	}
}

// What purge must not touch: a running daemon's files, and what a link leads to.
func TestPurgeRefuses(t *testing.T) {
	m := doctorWorld(t, &fake{}, noUnit)
	m.w.file("wrap/store.db", "x")
	if got := m.whole("purge", "--yes"); got.Exit != 1 || !strings.Contains(got.ErrOut, "the daemon runs (pid 4321)") || !strings.Contains(got.ErrOut, "`kill 4321`") {
		t.Errorf("a daemon: %+v", got)
	}
	m = doctorWorld(t, nil, noUnit)
	m.w.file("other/store.db", "x")
	if err := os.Symlink(filepath.Join(m.w.home, "other"), filepath.Join(m.w.home, "wrap")); err != nil {
		t.Fatal(err)
	}
	if got := m.whole("purge", "--yes"); got.Exit != 1 || !strings.Contains(got.ErrOut, "HOME/wrap is not a folder but a symbolic link; nothing was removed") {
		t.Errorf("a link: %s", got.ErrOut)
	}
	if m.w.content("other/store.db") != "x" {
		t.Error("it followed a link")
	}
}
