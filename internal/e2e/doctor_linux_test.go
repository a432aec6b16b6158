package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A locked keyring, and none, with a credential that needs it.
func TestDoctorKeyring(t *testing.T) {
	desk := newDesktop(t)
	p := newPatient(t)
	for _, kv := range desk.env() {
		name, value, _ := strings.Cut(kv, "=")
		p.env[name] = value
	}
	p.env["HOME"] = p.dir
	who := &person{t: t, bin: p.bin, home: p.home}
	desk.login(who, "pw")
	d := p.start()
	if out, code := p.sh("echo value-0123456789 | hbrestd secret set key --stdin --host 127.0.0.1"); code != 0 {
		t.Fatal(out)
	}
	if d := p.doctor(); !d.OK {
		t.Error(d)
	}
	restart := func() {
		d.kill()
		d = p.start()
	}

	desk.login(who, "") // as after a start without a login
	restart()
	p.names(p.doctor(), "keyring", "the keyring is locked; 1 credential cannot be used")
	d.kill() // the same without a daemon
	p.names(p.doctor(), "keyring", "the keyring is locked; 1 credential cannot be used")
	desk.login(who, "pw") // what its fix says
	d = p.start()
	if d := p.doctor(); !d.OK {
		t.Errorf("unlocked: %s", d)
	}

	end(desk.keyring)
	restart()
	p.names(p.doctor(), "keyring", "there is no keyring service")
	desk.stopBus()
	restart()
	p.names(p.doctor(), "keyring", "there is no session bus")
	desk.startBus()
	desk.login(who, "pw")
	restart()
	if d := p.doctor(); !d.OK {
		t.Errorf("with a keyring again: %s", d)
	}

	// And purge takes the key out of it.
	d.kill()
	if out, code := p.sh("hbrestd purge --yes"); code != 0 || !strings.Contains(out, "removed: key "+keyItemOf(p.home)+"\n") {
		t.Errorf("purge: exit %d\n%s", code, out)
	}
	if answer, err := desk.ask(who, `{"version":1,"verb":"get","backend":"secret-service","item":"`+keyItemOf(p.home)+`"}`); err == nil || !strings.Contains(answer, "not_found") {
		t.Errorf("the key is still there: %v %s", err, answer)
	}
	if _, err := os.Stat(p.home); !os.IsNotExist(err) {
		t.Errorf("the home is still there: %v", err)
	}
}

// Setup, a masked unit, and purge, under a real systemd user manager.
func TestSetupService(t *testing.T) {
	if dir := os.Getenv("HB_E2E_INSIDE"); dir != "" {
		setupLife(t, dir)
		return
	}
	underUserManager(t, keyringProgram, "home", []string{"hbrestd", "hb-rest", "hbrestd-keyring"}, ".cursor")
}

func setupLife(t *testing.T, home string) {
	s := &servant{t: t, home: home}
	// A port of its own, as docs/services.md says: this network is the machine's.
	addr := freeAddress(t)
	dropIn := filepath.Join(home, ".config", "systemd", "user", "hbrestd.service.d", "port.conf")
	if err := os.MkdirAll(filepath.Dir(dropIn), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dropIn, []byte("[Service]\nEnvironment=HB_WRAP_ADDR="+addr+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	s.env = []string{"HB_WRAP_ADDR=" + addr, "PATH=" + filepath.Join(home, tools) + ":/usr/bin:/bin"}
	s.startManager()
	defer func() { s.stopManager() }()
	program := filepath.Join(home, tools, "hbrestd")
	hb := func(exit int, args ...string) string {
		t.Helper()
		out, code := s.try(append([]string{program}, args...)...)
		if code != exit {
			t.Fatalf("hbrestd %q: exit code %d, want %d\n%s", args, code, exit, out)
		}
		return out
	}
	check := func() (d diagnosis) {
		t.Helper()
		out, _ := s.try(program, "doctor", "--json")
		if err := json.Unmarshal([]byte(out), &d); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return d
	}
	p := &patient{t: t}

	// Masked: named by both, and mended by what doctor prints.
	if out, code := s.try("systemctl", "--user", "mask", "hbrestd.service"); code != 0 {
		t.Fatal(out)
	}
	s.says(hb(1, "setup", "--yes"), "FAIL  service   hbrestd.service is masked", "systemctl --user unmask hbrestd.service")
	d := check()
	p.names(d, "service", "the unit is masked")
	for _, c := range d.Checks {
		if c.Check != "service" {
			continue
		}
		for _, line := range c.Run {
			if out, code := s.try("sh", "-c", line); code != 0 {
				t.Fatalf("%s: exit %d\n%s", line, code, out)
			}
		}
	}
	if d := check(); !d.OK {
		t.Errorf("unmasked: %s", d)
	}

	s.says(hb(0, "purge", "--yes"), "removed: service ", "removed: file "+filepath.Join(home, ".local", "state", "hbrestd", "wrap", "store.db"))
	s.says(hb(3, "service", "status"), "not installed")

	// From nothing to a client that reaches the daemon, in one command.
	if err := os.WriteFile(filepath.Join(home, ".cursor", "mcp.json"), []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	s.says(hb(0, "setup", "--yes"), "ok    service   installed: ", "ok    daemon    running, ", "at http://"+addr, "ok    cursor    connected: ", "Next: ")
	t.Logf("measured: setup: %.2f s", time.Since(begin).Seconds())
	s.says(hb(0, "setup", "--yes"), "ok    service   already up to date: ", "ok    daemon    running, ", "ok    cursor    already connected: ")
	begin = time.Now()
	if d = check(); !d.OK || !strings.Contains(d.String(), "and reaches the daemon") {
		t.Errorf("after setup: %s", d)
	}
	t.Logf("measured: doctor: %.2f s", time.Since(begin).Seconds())

	// One that was started by hand in the place of the service.
	hb(0, "service", "stop")
	p.names(check(), "daemon", "it does not run")
	hb(0, "service", "start")

	s.says(hb(0, "purge", "--dry-run"), "service  ", "client ", "key ", "store.db")
	s.says(hb(0, "purge", "--yes"), "removed: service ", "removed: client cursor", "removed: folder "+filepath.Join(home, ".local", "state", "hbrestd"))
	if out, _ := os.ReadFile(filepath.Join(home, ".cursor", "mcp.json")); strings.Contains(string(out), "hb-rest") {
		t.Errorf("%s", out)
	}
	if _, err := os.Stat(dropIn); err != nil {
		t.Errorf("the person's own file: %v", err)
	}
}
