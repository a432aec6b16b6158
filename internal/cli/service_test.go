package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/autostart"
)

// A manager is a systemd that answers as it is told.
type manager struct {
	w       *world
	show    string // the unit's properties
	after   string // the same, once start was tried; "": the same
	fails   string // what start says when it fails
	lingers bool
	did     []string
}

func (m *manager) see(o *autostart.Options) {
	o.Platform, o.Program, o.UserHome, o.UserID, o.UserName = "linux-systemd", "/usr/bin/hbrestd", m.w.home, "1000", "ada"
	o.Linger = func(string) (bool, bool) { return m.lingers, true }
	o.Changed = func(string) time.Time { return time.Time{} }
	o.Stream = func(_ context.Context, stdout, _ io.Writer, argv ...string) error {
		m.did = append(m.did, strings.Join(argv, " "))
		_, err := io.WriteString(stdout, "a line\n")
		return err
	}
	o.Native = func(d autostart.Definition) autostart.Native { return unitFile{m, d} }
	o.Run = func(_ context.Context, argv ...string) autostart.Output {
		switch line := strings.Join(argv[2:], " "); {
		case line == "show --property=UnitPath --value":
			return autostart.Output{Stdout: filepath.Dir(m.unit())}
		case strings.HasPrefix(line, "show "):
			return autostart.Output{Stdout: strings.ReplaceAll(m.show, "|", "\n")}
		default:
			m.did = append(m.did, line)
			if m.fails != "" && (strings.HasPrefix(line, "start") || strings.HasPrefix(line, "restart")) {
				m.show = m.after
				return autostart.Output{Code: 1, Stderr: m.fails}
			}
			return autostart.Output{}
		}
	}
}

func (m *manager) unit() string {
	return filepath.Join(m.w.home, ".config", "systemd", "user", "hbrestd.service")
}

type unitFile struct {
	m *manager
	d autostart.Definition
}

func (u unitFile) Install() error {
	u.m.show = stoppedUnit
	if err := os.MkdirAll(filepath.Dir(u.m.unit()), 0o755); err != nil {
		return err
	}
	return os.WriteFile(u.m.unit(), []byte(u.d.Text), 0o644)
}

func (u unitFile) Uninstall() error { return os.Remove(u.m.unit()) }

const (
	noUnit      = "LoadState=not-found|ActiveState=inactive"
	stoppedUnit = "LoadState=loaded|ActiveState=inactive|UnitFileState=enabled"
	activeUnit  = "LoadState=loaded|ActiveState=active|UnitFileState=enabled|MainPID=4321|ActiveEnterTimestamp=Tue 2026-12-01 08:00:00 UTC"
)

func newManager(t *testing.T, f *fake, show string) *manager {
	return &manager{w: newWorld(t, f), show: show}
}

// hb is world.hb in front of this manager.
func (m *manager) hb(args ...string) said {
	m.w.t.Helper()
	var out, errOut bytes.Buffer
	a := m.w.app(&out, &errOut)
	a.seeService = m.see
	m.did = nil
	exit := a.run(m.w.ctx, append([]string{"service"}, args...))
	text := func(b bytes.Buffer) string { return strings.ReplaceAll(b.String(), m.w.home, "HOME") }
	return said{exit, text(out), text(errOut)}
}

// gave wants these commands to have been given since the last time.
func (m *manager) gave(want string) {
	m.w.t.Helper()
	if got := strings.Join(m.did, "; "); got != want {
		m.w.t.Errorf("commands: %s\nwant: %s", got, want)
	}
}

const (
	lingerNote  = "hbrestd: note: the service runs while you are logged in, and ends with your last session. `loginctl enable-linger` lets it run from boot on, without one\n"
	fakesStatus = `hbrestd        running, version 1.2.3, pid 4321
since          2026-11-30T08:00:00Z
bridge         http://127.0.0.1:4111
token file     /home/ada/.local/state/hbrestd/wrap/token
home           /home/ada/.local/state/hbrestd
wrappers       12 (1 damaged), revision 7
private hosts  refused
plain http     allowed
`
)

func TestServiceInstall(t *testing.T) {
	m := newManager(t, nil, noUnit)
	check(t, "the first", m.hb("install"), said{
		0, "installed: HOME/.config/systemd/user/hbrestd.service\nIt starts at your next login; `hbrestd service start` starts it now.\n", lingerNote,
	})
	unit, err := os.ReadFile(m.unit())
	if err != nil || !strings.Contains(string(unit), "\nEnvironment=HB_WRAP_HOME="+m.w.home+"\nExecStart=/usr/bin/hbrestd run\n") || strings.Contains(string(unit), "HB_WRAP_ADDR") {
		t.Errorf("%v\n%s", err, unit)
	}

	m.lingers = true
	m.w.env["HB_WRAP_ADDR"] = "127.0.0.1:4112"
	check(t, "the same again, with a variable that is not passed on", m.hb("install"), said{
		0, "already up to date: HOME/.config/systemd/user/hbrestd.service\nIt starts at your next login; `hbrestd service start` starts it now.\n",
		"hbrestd: warning: HB_WRAP_ADDR is set here, and the service does not get it; `hbrestd config set` stores what shall hold for it\n",
	})
	delete(m.w.env, "HB_WRAP_ADDR")

	m.lingers = false
	m.w.env["WAYLAND_DISPLAY"] = "wayland-0"
	mine := strings.Replace(string(unit), "RestartSec=1\n", "RestartSec=5\nNice=5\n", 1)
	if err := os.WriteFile(m.unit(), []byte(mine), 0o644); err != nil {
		t.Fatal(err)
	}
	check(t, "an edited one, in a graphical session", m.hb("install"), said{
		0, `brought up to date: HOME/.config/systemd/user/hbrestd.service
  - RestartSec=5
  - Nice=5
  + RestartSec=1
It had been edited; the edited one is kept as HOME/.config/systemd/user/hbrestd.service.edited. What you still want of it belongs into a drop-in.
It starts at your next login; ` + "`hbrestd service start`" + ` starts it now.
`, "",
	})
	check(t, "for a program", m.hb("install", "--json"), said{0, `{
  "unit": "HOME/.config/systemd/user/hbrestd.service",
  "created": false,
  "running": false
}
`, ""})
}

func TestServiceInstallNow(t *testing.T) {
	m := newManager(t, &fake{}, noUnit)
	m.lingers = true
	check(t, "now", m.hb("install", "--now"), said{0, "installed: HOME/.config/systemd/user/hbrestd.service\n" + fakesStatus, ""})
	m.gave("reset-failed hbrestd.service; start hbrestd.service")

	m.show = activeUnit + "|DropInPaths=" + m.w.home + "/mine.conf"
	m.w.version.Version = "1.2.4" // than the daemon that runs
	check(t, "an upgrade", m.hb("install"), said{
		0, "already up to date: HOME/.config/systemd/user/hbrestd.service\nleft as it is: HOME/mine.conf\nIt ran, and was started again.\n" + fakesStatus,
		"hbrestd: warning: the running daemon is version 1.2.3 and this command is version 1.2.4; restart the daemon\n", // which this one still is
	})
	m.gave("daemon-reload; enable hbrestd.service; reset-failed hbrestd.service; restart hbrestd.service")
}

func TestServiceStart(t *testing.T) {
	m := newManager(t, &fake{}, stoppedUnit)
	check(t, "start", m.hb("start"), said{0, fakesStatus, ""})
	if got := m.hb("restart", "--json"); got.Exit != 0 || !strings.Contains(got.Out, `"pid": 4321`) {
		t.Errorf("restart: %+v", got)
	}
	check(t, "stop", m.hb("stop"), said{0, "stopped\n", ""})

	m.fails = "Job for hbrestd.service failed because the control process exited with error code.\n"
	m.after = "LoadState=loaded|ActiveState=failed|ExecMainCode=1|ExecMainStatus=8|ExecMainExitTimestamp=Tue 2026-12-01 08:00:00 UTC|StatusText=ADDRESS_IN_USE: 127.0.0.1:4111 is already in use by python3 (pid 7)"
	check(t, "the port is taken", m.hb("start"), said{
		1, "",
		"hbrestd: error: the service did not start: 127.0.0.1:4111 is already in use by python3 (pid 7)\n" +
			"hbrestd: hint: Stop that program, then run `hbrestd service start`; or give hbrestd another port (docs/services.md, Another port).\n",
	})
	m.fails, m.show = "", noUnit
	check(t, "not installed", m.hb("start"), said{
		1, "", "hbrestd: error: hbrestd is not installed as a service of this user\nhbrestd: hint: Install it with `hbrestd service install`, or start it here with `hbrestd run`.\n",
	})
	check(t, "an argument", m.hb("start", "x"), said{2, "", "hbrestd: error: unexpected argument \"x\"\nhbrestd: hint: `hbrestd service start --help` shows how it is used.\n"})
}

func TestServiceStatus(t *testing.T) {
	m := newManager(t, nil, activeUnit+"|StatusText=listening on http://127.0.0.1:4111, 3 wrappers|NRestarts=2|FragmentPath=/u/hbrestd.service|DropInPaths=/u/a.conf|NeedDaemonReload=yes")
	check(t, "running", m.hb("status"), said{0, `service   running since 2026-12-01T08:00:00Z, pid 4321
says      listening on http://127.0.0.1:4111, 3 wrappers
restarts  2
manager   systemd
unit      /u/hbrestd.service
drop-in   /u/a.conf
at login  started
linger    off: it ends with the last session (` + "`loginctl enable-linger`" + `)
note      the unit's file has changed since it was read; ` + "`hbrestd service install`" + ` makes it count
`, ""})
	m.show = "LoadState=loaded|ActiveState=failed|UnitFileState=disabled|FragmentPath=/u/hbrestd.service|ExecMainCode=1|ExecMainStatus=8|Result=exit-code|ExecMainExitTimestamp=Tue 2026-12-01 08:00:00 UTC|StateChangeTimestamp=Tue 2026-12-01 08:00:00 UTC"
	check(t, "failed", m.hb("status"), said{3, `service    failed since 2026-12-01T08:00:00Z
last exit  it ended with exit code 8
manager    systemd
unit       /u/hbrestd.service
at login   not started; ` + "`hbrestd service install`" + ` enables it
linger     off: it ends with the last session (` + "`loginctl enable-linger`" + `)
`, ""})
	check(t, "for a program", m.hb("status", "--json"), said{3, `{
  "manager": "systemd",
  "installed": true,
  "state": "failed",
  "since": "2026-12-01T08:00:00Z",
  "unit": "/u/hbrestd.service",
  "enabled": false,
  "linger": false,
  "lastExit": {
    "code": 8,
    "result": "exit-code"
  }
}
`, ""})
	m.show = noUnit
	check(t, "not installed", m.hb("status"), said{3, "service  not installed\nmanager  systemd\nfix      `hbrestd service install`\n", ""})
}

func TestServiceUninstallAndLogs(t *testing.T) {
	m := newManager(t, nil, noUnit)
	check(t, "not installed", m.hb("uninstall"), said{0, "It was not installed.\nWrappers, credentials and the audit trail stay in HOME\n", ""})
	m.hb("install")
	m.show = activeUnit + "|DropInPaths=/u/a.conf"
	check(t, "removed", m.hb("uninstall"), said{
		0, "removed: HOME/.config/systemd/user/hbrestd.service\nleft as it is: /u/a.conf\nWrappers, credentials and the audit trail stay in HOME\n", "",
	})
	m.gave("stop hbrestd.service; reset-failed hbrestd.service")
	m.show = noUnit
	check(t, "for a program", m.hb("uninstall", "--json"), said{0, "{\n  \"was\": false,\n  \"unit\": \"HOME/.config/systemd/user/hbrestd.service\",\n  \"data\": [\n    \"HOME\"\n  ]\n}\n", ""})

	check(t, "logs", m.hb("logs", "-n", "5"), said{0, "a line\n", ""})
	m.gave("journalctl --user --unit=hbrestd.service --no-pager --output=short-iso --lines=5")
	for _, n := range []int{-1, 1_000_001} {
		if got := m.hb("logs", fmt.Sprintf("--lines=%d", n)); got.Exit != 2 {
			t.Errorf("%d lines: %+v", n, got)
		}
	}
	if got := m.hb("logs", "--lines=1000000"); got.Exit != 0 {
		t.Errorf("%+v", got)
	}
}
