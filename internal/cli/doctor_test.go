package cli

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/control"
)

// doctorWorld has an hb-rest of this version in PATH, and a service manager.
func doctorWorld(t *testing.T, f *fake, show string) *manager {
	t.Helper()
	m := newManager(t, f, show)
	m.w.program("bin/hb-rest", "echo hb-rest 1.2.3\n")
	m.w.env["PATH"] = filepath.Join(m.w.home, "bin") + ":/usr/bin:/bin"
	m.w.env["HB_WRAP_KEYRING"] = "off"
	m.w.env["HB_WRAP_ADDR"] = "127.0.0.1:0"
	return m
}

// examine is `doctor --json` in front of this manager.
func (m *manager) examine() (healthReport, said) {
	m.w.t.Helper()
	var out, errOut bytes.Buffer
	a := m.w.app(&out, &errOut)
	a.seeService = m.see
	exit := a.run(m.w.ctx, []string{"doctor", "--json"})
	text := strings.ReplaceAll(out.String(), m.w.home, "HOME")
	var r healthReport
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		m.w.t.Fatalf("%v: %s%s", err, text, errOut.String())
	}
	return r, said{exit, text, errOut.String()}
}

// of is the findings of one check.
func (r healthReport) of(check string) []finding {
	var out []finding
	for _, f := range r.Checks {
		if f.Check == check {
			out = append(out, f)
		}
	}
	return out
}

func TestDoctorDown(t *testing.T) {
	m := doctorWorld(t, nil, noUnit)
	r, got := m.examine()
	want := healthReport{Checks: []finding{
		{Check: "settings", State: "ok", Detail: "home HOME"},
		{Check: "programs", State: "ok", Detail: "hbrestd 1.2.3, hb-rest of the same version at HOME/bin/hb-rest"},
		{Check: "folders", State: "ok", Detail: "closed to other users"},
		{Check: "files", State: "skip", Detail: "there are none yet"},
		{Check: "disk", State: "skip", Detail: "HOME/wrap is not there"},
		{Check: "daemon", State: "FAIL", Detail: "it does not run", Run: []string{"hbrestd service install --now"}},
		{Check: "service", State: "warn", Detail: "not installed: the daemon is not started at login", Run: []string{"hbrestd service install --now"}},
		{Check: "token", State: "skip", Detail: "it is renewed when the daemon starts"},
		{Check: "wrappers", State: "skip", Detail: "there is no HOME/wrap/store.db yet"},
		{Check: "keyring", State: "skip", Detail: "credentials are switched off by the setting keyring"},
		{Check: "policy", State: "ok", Detail: "only public hosts, and only https"},
		{Check: "clients", State: "skip", Detail: "no MCP client was found; `hbrestd client list --all` shows where they are looked for"},
	}}
	if diff := cmp.Diff(want, r); diff != "" || got.Exit != 1 || got.ErrOut != "" {
		t.Errorf("exit %d, stderr %q\n%s", got.Exit, got.ErrOut, diff)
	}
	if _, err := os.Stat(filepath.Join(m.w.home, "wrap")); err == nil {
		t.Error("it made a folder")
	}

	m.show = "LoadState=loaded|ActiveState=failed|UnitFileState=enabled|StatusText=no room|ExecMainCode=1|ExecMainStatus=8|ExecMainExitTimestamp=Tue 2026-12-01 08:00:00 UTC|Result=exit-code"
	r, _ = m.examine()
	if diff := cmp.Diff([]finding{
		{Check: "daemon", State: "FAIL", Detail: "it does not run", Run: []string{"hbrestd service start"}},
		{Check: "service", State: "FAIL", Detail: "failed: it ended with exit code 8; it said: no room", Run: []string{"hbrestd service start"}},
	}, append(r.of("daemon"), r.of("service")...)); diff != "" {
		t.Error(diff)
	}
	m.show = "LoadState=masked|ActiveState=inactive|UnitFileState=masked"
	r, _ = m.examine()
	if diff := cmp.Diff([]finding{{
		Check: "service", State: "FAIL", Detail: "the unit is masked: somebody has forbidden its start",
		Run: []string{"systemctl --user unmask hbrestd.service", "hbrestd service install --now"},
	}}, r.of("service")); diff != "" {
		t.Error(diff)
	}
}

// A home that is not there and cannot be made: not a start that cannot succeed,
// but what is in its way.
func TestDoctorNoPlace(t *testing.T) {
	m := doctorWorld(t, nil, noUnit)
	m.w.env["HB_WRAP_HOME"] = m.w.file("a-file", "x") + "/home"
	r, _ := m.examine()
	if f := r.of("folders"); len(f) == 0 || f[0].State != "FAIL" {
		t.Errorf("below a file: %+v", f)
	}
	if runtime.GOOS != "linux" {
		return
	}
	m.w.env["HB_WRAP_HOME"] = "/proc/hbrestd-test/home" // where nobody can make one
	r, _ = m.examine()
	f := r.of("disk")
	want := []finding{{
		Check: "disk", State: "FAIL", Detail: "/proc/hbrestd-test/home/wrap is not there and cannot be made: nothing can be written in /proc: ",
		Fix: "Give your user the right to write there and room, or set HB_WRAP_HOME to a folder of your own.", Run: []string{"ls -ld '/proc'"},
	}}
	if len(f) == 1 { // the reason is the system's
		f[0].Detail = f[0].Detail[:min(len(f[0].Detail), len(want[0].Detail))]
	}
	if diff := cmp.Diff(want, f); diff != "" {
		t.Error(diff)
	}
}

// Modes, a token path of before, a setting that cannot be read.
func TestDoctorFiles(t *testing.T) {
	m := doctorWorld(t, nil, noUnit)
	m.w.file("wrap/token", "secret-of-a-token")
	m.w.file("wrap/audit.db", "x")
	old := m.w.file("old/token", "secret-of-a-token")
	for p, mode := range map[string]os.FileMode{"wrap": 0o755, "wrap/token": 0o644, "wrap/audit.db": 0o200} {
		if err := os.Chmod(filepath.Join(m.w.home, p), mode); err != nil {
			t.Fatal(err)
		}
	}
	m.w.env["HB_WRAP_TOKEN_FILE"] = old
	r, got := m.examine()
	want := []finding{
		{Check: "folders", State: "FAIL", Detail: "HOME/wrap has mode 0755, which lets other users in", Run: []string{"chmod 700 'HOME/wrap'"}},
		{Check: "files", State: "FAIL", Detail: "HOME/wrap/audit.db has mode 0200, which keeps its owner out", Run: []string{"chmod 600 'HOME/wrap/audit.db'"}},
		{Check: "files", State: "FAIL", Detail: "HOME/wrap/token has mode 0644, which lets other users in", Run: []string{"chmod 600 'HOME/wrap/token'"}},
		{
			Check: "token", State: "FAIL", Detail: "HB_WRAP_TOKEN_FILE is HOME/old/token, and the daemon's token is in HOME/wrap/token",
			Fix: "Take the variable away, also where your shell or your client sets it:", Run: []string{"unset HB_WRAP_TOKEN_FILE"},
		},
	}
	if diff := cmp.Diff(want, append(append(r.of("folders"), r.of("files")...), r.of("token")...)); diff != "" {
		t.Error(diff)
	}
	if strings.Contains(got.Out+got.ErrOut, "secret-of-a-token") {
		t.Error("what is in the token file was printed")
	}
	left, err := os.ReadDir(filepath.Join(m.w.home, "wrap"))
	if err != nil || len(left) != 2 {
		t.Errorf("it left something: %v %v", left, err)
	}

	m.w.env["HB_WRAP_HOME"] = "relative"
	r, _ = m.examine()
	if len(r.Checks) != 2 || r.Checks[0].State != "FAIL" || !cmp.Equal(r.Checks[0].Run, []string{"unset HB_WRAP_HOME"}) {
		t.Errorf("a setting that cannot be read: %+v", r)
	}
}

// A daemon of another version, damaged and quarantined wrappers, open policy, a
// locked keyring.
func TestDoctorUp(t *testing.T) {
	f := &fake{
		version: "1.2.4",
		entries: []api.ManifestEntry{
			{ID: "a"}, {ID: "b", Damaged: "its record is damaged: checksum"}, {ID: "c", ExposeAsTool: true, Quarantined: "it has a $ref"},
		},
		settings: []control.Setting{{Name: "allow-http", Value: "true", Origin: "stored"}},
		secrets:  control.SecretState{State: "locked", Reason: "the keyring is locked", Fix: "Unlock it.", Secrets: []control.SecretInfo{{Name: "k"}}},
	}
	m := doctorWorld(t, f, activeUnit)
	m.w.file("wrap/token", "x")
	m.w.env["HB_WRAP_TOKEN_FILE"] = "/home/ada/.local/state/hbrestd/wrap/token" // as the fake's status has it
	r, got := m.examine()
	want := []finding{
		{Check: "daemon", State: "ok", Detail: "running since 2026-11-30T08:00:00Z, pid 4321, at http://127.0.0.1:4111"},
		{
			Check: "version", State: "FAIL", Detail: "the running daemon is version 1.2.4, and this hbrestd is 1.2.3",
			Fix: "Start the daemon again, so that it is this version:", Run: []string{"hbrestd service restart"},
		},
		{Check: "service", State: "ok", Detail: "running, and started at login (systemd)"},
		{
			Check: "wrappers", State: "FAIL", Detail: "b cannot be used: its record is damaged: checksum",
			Fix: "Save it again with `hbrestd wrapper apply FILE`, if you have it in a file; or remove it:", Run: []string{"hbrestd wrapper rm --yes b"},
		},
		{
			Check: "wrappers", State: "warn", Detail: "c is not shown as a tool: it has a $ref",
			Fix: "Change its inputSchema and save it again, or do without the tool:", Run: []string{"hbrestd wrapper hide c"},
		},
		{Check: "keyring", State: "FAIL", Detail: "the keyring is locked; 1 credential cannot be used", Fix: "Unlock it."},
		{
			Check: "policy", State: "warn", Detail: "plain http is allowed to every wrapper: who is on the way can read and change it",
			Run: []string{"hbrestd config unset allow-http"},
		},
	}
	var some []finding
	for _, check := range []string{"daemon", "version", "service", "wrappers", "keyring", "policy"} {
		some = append(some, r.of(check)...)
	}
	if diff := cmp.Diff(want, some); diff != "" || got.Exit != 1 || got.ErrOut != "" {
		t.Errorf("exit %d, stderr %q\n%s", got.Exit, got.ErrOut, diff)
	}

	// A daemon beside the service.
	m.show = strings.Replace(activeUnit, "4321", "77", 1)
	r, _ = m.examine()
	if diff := cmp.Diff([]finding{{
		Check: "service", State: "FAIL", Detail: "the daemon that answers (pid 4321) is not the service's (pid 77): there are two",
		Fix: "End the one that was started by hand, and bring the service to this home:", Run: []string{"kill 4321", "hbrestd service install --now"},
	}}, r.of("service")); diff != "" {
		t.Error(diff)
	}
}

// What mends a fault is below it on a terminal, and in columns for a program.
func TestDoctorPrint(t *testing.T) {
	o := &checkup{}
	r := healthReport{Checks: []finding{
		{Check: "a", State: findOK, Detail: "fine"},
		{Check: "longer", State: findFail, Detail: "not\x1b[31m so", Fix: "Do this:", Run: []string{"one", "two"}},
	}}
	for width, want := range map[int]string{
		0:  "ok\ta\tfine\t\t\nFAIL\tlonger\tnot so\tDo this:\tone; two\n",
		20: "ok    a       fine\nFAIL  longer  not so\n      fix: Do this:\n      run: one\n      run: two\n",
	} {
		w := newWorld(t, nil)
		w.width = width
		var out, errOut bytes.Buffer
		o.app = w.app(&out, &errOut)
		if err := o.print(r); err != nil {
			t.Fatal(err)
		}
		if got := strings.ReplaceAll(out.String(), "[31m", ""); got != want {
			t.Errorf("width %d:\n%q\nwant\n%q", width, got, want)
		}
	}
}

func TestCommandIn(t *testing.T) {
	for hint, want := range map[string]struct {
		fix string
		run []string
	}{
		"Run chmod 600 '/a b/it'\\''s', then repeat the call.":                  {"", []string{`chmod 600 '/a b/it'\''s'`}},
		"Run: hbrestd client install cursor":                                    {"", []string{"hbrestd client install cursor"}},
		"Run: hbrestd client print goose, and put that into the file":           {"and put that into the file", []string{"hbrestd client print goose"}},
		"Allow it again with `systemctl --user unmask x.service`, then repeat.": {"Allow it again with `systemctl --user unmask x.service`, then repeat.", []string{"systemctl --user unmask x.service"}},
		"Ask for `hbrestd secret set NAME --host HOST`.":                        {"Ask for `hbrestd secret set NAME --host HOST`.", nil},
		"Mend the file.": {"Mend the file.", nil},
		"":               {"", nil},
	} {
		if fix, run := commandIn(hint); fix != want.fix || !cmp.Equal(run, want.run) {
			t.Errorf("%q: %q, %q", hint, fix, run)
		}
	}
}

// What the programs of macOS and Windows print, as their manuals show it.
func TestPortOwnerElsewhere(t *testing.T) {
	if pid, name := lsofOwner("p4321\ncpython3.12\nLada\nf3\np99\ncother\n"); pid != 4321 || name != "python3.12" {
		t.Errorf("lsof: %d, %q", pid, name)
	}
	if pid, name := lsofOwner(""); pid != 0 || name != "" {
		t.Errorf("nothing from lsof: %d, %q", pid, name)
	}
	table := "\r\nAktive Verbindungen\r\n\r\n  Proto  Lokale Adresse         Remoteadresse          Status           PID\r\n" +
		"  TCP    127.0.0.1:41110        0.0.0.0:0              ABH\xd6REN         1\r\n" +
		"  TCP    127.0.0.1:4111         127.0.0.1:50000        HERGESTELLT      2\r\n" +
		"  TCP    0.0.0.0:4111           0.0.0.0:0              ABH\xd6REN         3\r\n" +
		"  TCP    [::1]:4112             [::]:0                 ABH\xd6REN         4\r\n"
	for addr, want := range map[string]int{"127.0.0.1:4111": 3, "[::1]:4112": 4, "127.0.0.1:4112": 0, "127.0.0.1:41110": 1} {
		if pid := netstatOwner(table, netip.MustParseAddrPort(addr)); pid != want {
			t.Errorf("netstat, %s: %d, want %d", addr, pid, want)
		}
	}
	for text, want := range map[string]string{
		"\"node.exe\",\"3\",\"Console\",\"1\",\"50.000 K\"\r\n":              "node.exe",
		"INFO: No tasks are running which match the specified criteria.\r\n": "",
		"": "",
	} {
		if name := tasklistName(text); name != want {
			t.Errorf("tasklist %q: %q", text, name)
		}
	}
}
