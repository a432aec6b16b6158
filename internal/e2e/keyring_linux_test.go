package e2e

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A desktop is a private session bus with a real gnome-keyring.
type desktop struct {
	t       *testing.T
	dir     string
	bus     *exec.Cmd
	keyring *exec.Cmd
	words   *bytes.Buffer // what the program that was started last has complained about
}

func newDesktop(t *testing.T) *desktop {
	t.Helper()
	if os.Getenv("HB_E2E_KEYRING") != "1" {
		t.Skip("needs Debian's dbus and gnome-keyring; run with HB_E2E_KEYRING=1")
	}
	dir, err := os.MkdirTemp("", "desk") // a socket's path has 108 bytes at most
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for _, sub := range []string{"run", "data", "control"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	text := `<busconfig><type>session</type><listen>unix:path=` + dir + `/run/bus</listen>
<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy></busconfig>`
	if err := os.WriteFile(filepath.Join(dir, "bus.conf"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	d := &desktop{t: t, dir: dir}
	d.startBus()
	return d
}

// env is what a program of this desktop is started with.
func (d *desktop) env() []string {
	return []string{
		"HOME=" + d.dir, "XDG_RUNTIME_DIR=" + d.dir + "/run", "XDG_DATA_HOME=" + d.dir + "/data",
		"DBUS_SESSION_BUS_ADDRESS=unix:path=" + d.dir + "/run/bus",
	}
}

func (d *desktop) run(stdin, name string, args ...string) (*exec.Cmd, io.Reader) {
	d.t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env, cmd.Stdin = append(d.env(), "PATH="+os.Getenv("PATH")), strings.NewReader(stdin)
	var words bytes.Buffer
	cmd.Stderr = &words
	d.words = &words
	out, err := cmd.StdoutPipe()
	if err != nil {
		d.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { end(cmd) })
	return cmd, out
}

func end(cmd *exec.Cmd) {
	if cmd != nil && cmd.ProcessState == nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}

// startBus starts the bus, again after stopBus.
func (d *desktop) startBus() {
	d.t.Helper()
	var out io.Reader
	d.bus, out = d.run("", "dbus-daemon", "--config-file="+d.dir+"/bus.conf", "--nofork", "--print-address")
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		end(d.bus)
		d.t.Fatal(line, err, d.words)
	}
}

func (d *desktop) stopBus() {
	end(d.bus)
	_ = os.Remove(d.dir + "/run/bus")
}

// login starts gnome-keyring with the password; without one it finds the login
// keyring locked, as after a start without a login.
func (d *desktop) login(p *person, password string) {
	d.t.Helper()
	end(d.keyring)
	_ = os.Mkdir(d.dir+"/control", 0o700) // it takes its folder away when it ends
	args := []string{"--foreground", "--components=secrets", "--control-directory=" + d.dir + "/control"}
	if password != "" {
		args = append(args, "--unlock")
	}
	d.keyring, _ = d.run(password, "gnome-keyring-daemon", args...)
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		answer, err := d.ask(p, `{"version":1,"verb":"probe","backend":"secret-service","item":""}`)
		if err == nil || strings.Contains(answer, `"locked"`) {
			return
		}
		if time.Now().After(deadline) {
			d.t.Fatalf("gnome-keyring did not come up: %s", answer)
		}
	}
}

// ask runs hbrestd-keyring as hbrestd does.
func (d *desktop) ask(p *person, request string) (string, error) {
	cmd := exec.Command(filepath.Join(p.bin, "hbrestd-keyring"))
	cmd.Env, cmd.Stdin = d.env(), strings.NewReader(request+"\n")
	out, err := cmd.Output()
	return string(out), err
}

// forget deletes the daemon's key from the keyring, as a person may with the
// desktop's own program.
func (d *desktop) forget(p *person) {
	d.t.Helper()
	item := keyItemOf(p.home)
	if out, err := d.ask(p, fmt.Sprintf(`{"version":1,"verb":"delete","backend":"secret-service","item":%q}`, item)); err != nil {
		d.t.Fatal(out, err)
	}
}

// The whole life of a credential with all three programs and a real keyring; a
// locked one refuses without asking anybody (D23).
func TestRealKeyring(t *testing.T) {
	d := newDesktop(t)
	p := newPerson(t, d.env()...)
	up := newEcho(t)
	d.login(p, "pw")
	p.start()
	if out := p.must("", "secret", "list", "--json"); !strings.Contains(out, `"ready"`) {
		t.Errorf("before the first credential: %s", out)
	}
	p.must("value-0123456789\n", "secret", "set", "key", "--stdin", "--host", "127.0.0.1")
	p.save(authed("w", up.URL+"/items", "key"))
	works := func(when string) {
		t.Helper()
		if out, code := p.try("", "wrapper", "run", "w"); code != 0 || !strings.Contains(out, "[redacted]") {
			t.Errorf("%s: exit %d\n%s", when, code, out)
		}
	}
	// refuses wants the call refused in time, by a code, and the state that a
	// person is shown; the records stay as they are.
	refuses := func(when, state string, words ...string) {
		t.Helper()
		start := time.Now()
		out, code := p.try("", "wrapper", "run", "w", "--json")
		took := time.Since(start)
		if code == 0 || !strings.Contains(out, `"SECRET_LOCKED"`) {
			t.Errorf("%s: exit %d\n%s", when, code, out)
		}
		if took > 5500*time.Millisecond {
			t.Errorf("%s: it took %v", when, took)
		}
		if state == "locked" && took > 3*time.Second {
			t.Errorf("%s: it took %v, as if somebody was prompted", when, took)
		}
		list := p.must("", "secret", "list", "--json")
		for _, w := range append(words, `"`+state+`"`) {
			if !strings.Contains(list, w) || strings.Contains(list, "dbus-launch") {
				t.Errorf("%s: no %q in\n%s", when, w, list)
			}
		}
		t.Logf("%s: refused after %v", when, took.Round(time.Millisecond))
	}
	works("first")
	p.stop()
	before := p.sealed()
	p.start()
	works("after a restart of the daemon")

	// The key is held: what happens to the keyring does not matter any more.
	d.login(p, "")
	works("locked while the daemon runs")
	d.stopBus()
	works("without a bus while the daemon runs")
	p.stop()
	p.start()
	refuses("no bus", "none", "there is no session bus", "hbrestd config set keyring file", "hbrestd-passphrase")
	d.startBus()
	refuses("a bus without a keyring", "none", "there is no keyring service", "hbrestd config set keyring file", "hbrestd-passphrase")
	d.login(p, "")
	refuses("locked", "locked", "Unlock")
	if out, code := p.try("new-value-0123456789\n", "secret", "set", "other", "--stdin", "--host", "127.0.0.1"); code == 0 || !strings.Contains(out, "locked") {
		t.Errorf("a credential was saved: %s", out)
	}
	d.login(p, "pw")
	if out := p.must("", "secret", "list", "--json"); !strings.Contains(out, `"ready"`) { // asking again helps at once
		t.Errorf("unlocked: %s", out)
	}
	works("unlocked, the same daemon")

	// The bus goes away under a running daemon and comes back with another keyring process.
	p.stop()
	p.start()
	d.stopBus()
	refuses("the bus is gone", "none")
	d.startBus()
	d.login(p, "pw")
	if out := p.must("", "secret", "list", "--json"); !strings.Contains(out, `"ready"`) {
		t.Errorf("after the bus: %s", out)
	}
	works("after the bus came back")

	p.stop()
	d.forget(p)
	p.start()
	refuses("the key is gone", "key missing", "Restore", keyItemOf(p.home))
	if out, code := p.try("new-value-0123456789\n", "secret", "set", "other", "--stdin", "--host", "127.0.0.1"); code == 0 {
		t.Errorf("a new key was made over sealed records: %s", out)
	}
	p.stop()
	if after := p.sealed(); after != before {
		t.Errorf("the records changed from\n%sto\n%s", before, after)
	}
	// Nothing of the credential is anywhere but sealed.
	places := map[string][]byte{"stderr": []byte(p.daemon.stderr.String()), "commands": p.said.Bytes()}
	p.walk(places, "")
	for name, b := range places {
		if bytes.Contains(b, []byte("value-0123456789")) {
			t.Errorf("the value is in %s", name)
		}
	}
}

// The session bus is restarted under a running daemon, and the keyring with it,
// as when a person logs out and in again: calls work again by themselves, and
// new credentials can be stored. Nobody restarts the daemon or asks it to look.
func TestBusRestarted(t *testing.T) {
	d := newDesktop(t)
	p := newPerson(t, d.env()...)
	up := newEcho(t)
	d.login(p, "pw")
	p.start()
	p.must("value-0123456789\n", "secret", "set", "key", "--stdin", "--host", "127.0.0.1")
	p.save(authed("w", up.URL+"/items", "key"))
	restart := func() {
		t.Helper()
		d.stopBus()
		end(d.keyring)
		d.startBus()
		d.login(p, "pw")
	}
	works := func(when string) {
		t.Helper()
		if out, code := p.try("", "wrapper", "run", "w"); code != 0 || !strings.Contains(out, "[redacted]") {
			t.Errorf("%s: exit %d\n%s", when, code, out)
		}
	}
	restart()
	works("restarted while the key is held")
	p.must("value-9876543210\n", "secret", "set", "second", "--stdin", "--host", "127.0.0.1")

	// A daemon that has not asked yet finds the new bus where the old one was.
	p.stop()
	p.start()
	restart()
	works("restarted before the key was asked for")

	// One that has asked in vain asks again a second later.
	p.stop()
	p.start()
	d.stopBus()
	end(d.keyring)
	if out, code := p.try("", "wrapper", "run", "w", "--json"); code == 0 || !strings.Contains(out, "there is no session bus") {
		t.Errorf("without a bus: exit %d\n%s", code, out)
	}
	d.startBus()
	d.login(p, "pw")
	start := time.Now()
	for {
		out, code := p.try("", "wrapper", "run", "w")
		if code == 0 && strings.Contains(out, "[redacted]") {
			break
		}
		if time.Since(start) > 3*time.Second {
			t.Fatalf("calls do not work again after %v: exit %d\n%s", time.Since(start), code, out)
		}
		time.Sleep(50 * time.Millisecond) // an agent that tries again; there is nothing to wait for
	}
	t.Logf("calls work again %v after the bus and the keyring do", time.Since(start).Round(time.Millisecond))
	p.must("value-5555555555\n", "secret", "set", "third", "--stdin", "--host", "127.0.0.1")
}

// A daemon on a terminal, without a systemd credential, asks for the passphrase
// of the encrypted file: twice for a new one, again after a wrong one.
func TestPassphraseOnATerminal(t *testing.T) {
	const passphrase = "correct horse battery"
	p := newPerson(t, "HB_WRAP_KEYRING=file")
	up := newEcho(t)
	var shown bytes.Buffer
	start := func(typed ...string) (stop func()) {
		t.Helper()
		fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Skipf("this machine has no pseudo-terminals: %v", err)
		}
		person := os.NewFile(uintptr(fd), "ptmx")
		n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
		if err != nil {
			t.Fatal(err)
		}
		if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
			t.Fatal(err)
		}
		tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
		if err != nil {
			t.Skipf("this machine has no pseudo-terminals: %v", err)
		}
		cmd := exec.Command(filepath.Join(p.bin, "hbrestd"), "run", "-v")
		cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = p.env, tty, tty, tty
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { end(cmd) })
		_ = tty.Close()
		var seen strings.Builder
		buf := make([]byte, 4096)
		for asked := 0; !listening.MatchString(seen.String()); {
			n, err := person.Read(buf)
			if err != nil {
				t.Fatalf("the terminal closed: %v\n%s", err, seen.String())
			}
			seen.Write(buf[:n])
			shown.Write(buf[:n])
			if strings.Count(seen.String(), "(not shown): ") > asked {
				if asked == len(typed) {
					t.Fatalf("one question more than expected:\n%s", seen.String())
				}
				_, _ = io.WriteString(person, typed[asked]+"\r")
				asked++
			}
		}
		if got := strings.Count(seen.String(), "(not shown): "); got != len(typed) {
			t.Errorf("%d questions, want %d:\n%s", got, len(typed), seen.String())
		}
		rest := make(chan struct{})
		go func() {
			defer close(rest)
			_, _ = io.Copy(&shown, person)
		}()
		return func() {
			_ = cmd.Process.Signal(os.Interrupt)
			_ = cmd.Wait()
			<-rest
			_ = person.Close()
		}
	}
	stop := start(passphrase, passphrase)
	p.must("value-0123456789\n", "secret", "set", "key", "--stdin", "--host", "127.0.0.1")
	p.save(authed("w", up.URL+"/items", "key"))
	stop()
	stop = start("too short", "not that horse", passphrase)
	if out, code := p.try("", "wrapper", "run", "w"); code != 0 || !strings.Contains(out, "[redacted]") {
		t.Errorf("exit %d\n%s", code, out)
	}
	stop()
	places := map[string][]byte{"terminal": shown.Bytes(), "commands": p.said.Bytes()}
	p.walk(places, "")
	for name, b := range places {
		for _, typed := range []string{passphrase, "not that horse", "value-0123456789"} {
			if bytes.Contains(b, []byte(typed)) {
				t.Errorf("%q is in %s", typed, name)
			}
		}
	}
	if !strings.Contains(shown.String(), "The passphrase does not open the encrypted file.") || !strings.Contains(shown.String(), "It has fewer than 12 characters.") {
		t.Errorf("the terminal shows\n%s", shown.String())
	}
}

// With an encrypted file a home that was moved, or restored somewhere else, has
// its key with it. Without the file nobody is sent to a keyring.
func TestMovedHome(t *testing.T) {
	p := newPerson(t, withFileKeyring(t)...)
	up := newEcho(t)
	p.start()
	p.must("value-0123456789\n", "secret", "set", "key", "--stdin", "--host", "127.0.0.1")
	p.save(authed("w", up.URL+"/items", "key"))
	p.stop()
	moved := filepath.Join(t.TempDir(), "elsewhere")
	if err := os.Rename(p.home, moved); err != nil {
		t.Fatal(err)
	}
	p.home, p.env[0] = moved, "HB_WRAP_HOME="+moved
	p.start()
	if out, code := p.try("", "wrapper", "run", "w"); code != 0 || !strings.Contains(out, "[redacted]") {
		t.Errorf("exit %d\n%s", code, out)
	}
	p.stop()
	file := filepath.Join(moved, "wrap", "keyring", "master")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	p.start()
	defer p.stop()
	out, code := p.try("", "wrapper", "run", "w")
	if code != 4 || !strings.Contains(out, "the encrypted file with the key of the saved credentials is not there") || !strings.Contains(out, "Restore "+file) {
		t.Errorf("exit %d\n%s", code, out)
	}
}

// A peer that takes the bus's place and closes every connection at once.
func TestRudeBus(t *testing.T) {
	dir, err := os.MkdirTemp("", "rude")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	l, err := net.Listen("unix", filepath.Join(dir, "bus"))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "ERROR\r\n\x00\xff")
			_ = c.Close()
		}
	}()
	defer func() { _ = l.Close(); <-ended }()
	p := newPerson(t, "DBUS_SESSION_BUS_ADDRESS=unix:path="+filepath.Join(dir, "bus"), "HOME="+dir)
	p.start()
	out, code := p.try("value-0123456789\n", "secret", "set", "key", "--stdin", "--host", "127.0.0.1")
	if code == 0 || !strings.Contains(out, "credentials cannot be used now") || strings.Contains(out, "value-0123456789") || strings.Contains(out, "panic") {
		t.Errorf("exit %d: %s", code, out)
	}
	p.stop()
	if _, err := os.Stat(filepath.Join(p.home, "wrap", "store.db")); errors.Is(err, os.ErrNotExist) {
		t.Error("there is no store")
	}
}

// keyItemOf is the name under which the key of a home is kept.
func keyItemOf(home string) string {
	sum := sha256.Sum256([]byte(home))
	return "master-" + hex.EncodeToString(sum[:6])
}

// Another program of the same user, without special rights, can read neither
// the daemon's memory nor its environment, and there is no core of it to read.
func TestMemoryIsOutOfReach(t *testing.T) {
	bin, err := keyringProgram()
	if err != nil {
		t.Fatal(err)
	}
	home, err := os.MkdirTemp("", "reach")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	var as *syscall.SysProcAttr // root may read everything: the test is about somebody else
	if os.Geteuid() == 0 {
		const nobody = 65534
		as = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		if err := os.Chown(home, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	read := func(pid int, name string) error {
		cmd := exec.Command("head", "-c", "1", fmt.Sprintf("/proc/%d/%s", pid, name))
		cmd.SysProcAttr = as
		return cmd.Run()
	}
	d := &process{cmd: exec.Command(filepath.Join(bin, "hbrestd"), "run"), stderr: newLog()}
	d.cmd.Env, d.cmd.SysProcAttr = []string{"HB_WRAP_HOME=" + home + "/home", "HB_WRAP_ADDR=127.0.0.1:0"}, as
	pipe, err := d.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go d.stderr.collect(bufio.NewScanner(pipe))
	t.Cleanup(d.kill)
	if _, err := d.stderr.waitFor(listening); err != nil {
		t.Fatal(err)
	}
	// The same look at a program that hides nothing: it is the daemon that refuses.
	sleep := exec.Command("sleep", "60")
	sleep.SysProcAttr = as
	if err := sleep.Start(); err != nil {
		t.Fatal(err)
	}
	defer end(sleep)
	for _, name := range []string{"environ", "auxv"} {
		if err := read(sleep.Process.Pid, name); err != nil {
			t.Fatalf("this machine shows no program's %s: %v", name, err)
		}
	}
	for _, name := range []string{"environ", "mem", "maps", "auxv", "exe", "fd/0"} {
		if err := read(d.cmd.Process.Pid, name); err == nil {
			t.Errorf("a program of the same user reads the daemon's %s", name)
		}
	}
	limits, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", d.cmd.Process.Pid))
	if err != nil || !regexp.MustCompile(`Max core file size +0 +0 `).Match(limits) {
		t.Errorf("%v\n%s", err, limits)
	}
}
