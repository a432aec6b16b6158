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
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hyperbolic-gateway/hb-rest/internal/soak"
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

// ways are how a program without special rights gets at another of the same
// user: what /proc shows, the calls that read memory, write it or take open
// files, and a higher limit for cores. Each returns nil when it was let in.
var ways = map[string]func(pid int) error{
	"/proc/PID/mem":       func(pid int) error { return readProc(pid, "mem") },
	"/proc/PID/environ":   func(pid int) error { return readProc(pid, "environ") },
	"/proc/PID/auxv":      func(pid int) error { return readProc(pid, "auxv") },
	"/proc/PID/maps":      func(pid int) error { return readProc(pid, "maps") },
	"/proc/PID/smaps":     func(pid int) error { return readProc(pid, "smaps") },
	"/proc/PID/pagemap":   func(pid int) error { return readProc(pid, "pagemap") },
	"/proc/PID/syscall":   func(pid int) error { return readProc(pid, "syscall") },
	"/proc/PID/fd/0":      func(pid int) error { return readLink(pid, "fd/0") },
	"/proc/PID/exe":       func(pid int) error { return readLink(pid, "exe") },
	"/proc/PID/cwd":       func(pid int) error { return readLink(pid, "cwd") },
	"/proc/PID/root":      func(pid int) error { return readLink(pid, "root") },
	"/proc/PID/map_files": func(pid int) error { _, err := os.ReadDir(fmt.Sprintf("/proc/%d/map_files", pid)); return err },
	"process_vm_readv":    func(pid int) error { return vm(pid, unix.ProcessVMReadv) },
	"process_vm_writev":   func(pid int) error { return vm(pid, unix.ProcessVMWritev) },
	"ptrace attach":       func(pid int) error { return traced(pid, unix.PtraceAttach(pid)) },
	"ptrace seize":        func(pid int) error { return traced(pid, unix.PtraceSeize(pid)) },
	"pidfd_getfd":         takeFile,
	"prlimit of core size": func(pid int) error {
		return unix.Prlimit(pid, unix.RLIMIT_CORE, &unix.Rlimit{Cur: 1 << 20, Max: 1 << 20}, nil)
	},
}

func readProc(pid int, name string) error {
	f, err := os.Open(fmt.Sprintf("/proc/%d/%s", pid, name))
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err = f.Read(make([]byte, 8)); errors.Is(err, syscall.EIO) && name == "mem" {
		return nil // the file is open, and address 0 is not in use
	}
	return err
}

func readLink(pid int, name string) error {
	_, err := os.Readlink(fmt.Sprintf("/proc/%d/%s", pid, name))
	return err
}

// vm calls with an address that nobody uses: who is let in is told that.
func vm(pid int, call func(pid int, local []unix.Iovec, remote []unix.RemoteIovec, flags uint) (int, error)) error {
	buf := make([]byte, 8)
	_, err := call(pid, []unix.Iovec{{Base: &buf[0], Len: 8}}, []unix.RemoteIovec{{Base: 8, Len: 8}}, 0)
	if errors.Is(err, syscall.EFAULT) {
		return nil
	}
	return err
}

// traced lets go again of what it has got hold of.
func traced(pid int, err error) error {
	if err != nil {
		return err
	}
	_ = unix.PtraceInterrupt(pid)
	_, _ = unix.Wait4(pid, nil, unix.WALL, nil)
	return unix.PtraceDetach(pid)
}

// takeFile takes the file that the process writes its log to.
func takeFile(pid int) error {
	of, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return err
	}
	defer unix.Close(of)
	fd, err := unix.PidfdGetfd(of, 2, 0)
	if err == nil {
		_ = unix.Close(fd)
	}
	return err
}

// A reach starts programs, and a prober that tries every way into them, as one
// user who is not root: root may do everything.
type reach struct {
	t         *testing.T
	bin, home string
	as        *syscall.SysProcAttr
}

func newReach(t *testing.T) *reach {
	t.Helper()
	bin, err := keyringProgram()
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	home, err := os.MkdirTemp("", "reach")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	r := &reach{t: t, bin: bin, home: home}
	copyFile(t, self, filepath.Join(home, "prober"))
	if os.Geteuid() == 0 {
		const nobody = 65534
		r.as = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		if err := os.Chown(home, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// into tries every way into a process and returns those that lead there.
func (r *reach) into(d *process) (in []string) {
	r.t.Helper()
	cmd := exec.Command(filepath.Join(r.home, "prober"), "-test.run=^TestMemoryIsOutOfReach$", "-test.v")
	cmd.SysProcAttr, cmd.Dir = r.as, r.home
	cmd.Env = []string{"HB_E2E_INSIDE=" + strconv.Itoa(d.cmd.Process.Pid), "TMPDIR=" + r.home}
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("%v\n%s", err, out)
	}
	tried := 0
	for line := range strings.Lines(string(out)) {
		if _, way, found := strings.Cut(strings.TrimSpace(line), "let in: "); found {
			in, tried = append(in, way), tried+1
		} else if strings.Contains(line, "refused: ") {
			tried++
		}
	}
	if tried != len(ways) {
		r.t.Fatalf("%d ways of %d were tried:\n%s", tried, len(ways), out)
	}
	return in
}

// start starts a program and waits until it has said what wait matches.
func (r *reach) start(wait string, argv ...string) *process {
	r.t.Helper()
	d := &process{cmd: exec.Command(argv[0], argv[1:]...), stderr: newLog()}
	d.cmd.Env = []string{"HB_WRAP_HOME=" + r.home + "/home", "HB_WRAP_ADDR=127.0.0.1:0", "GOTRACEBACK=crash", "PATH=" + os.Getenv("PATH")}
	d.cmd.SysProcAttr, d.cmd.Dir = r.as, r.home
	pipe, err := d.cmd.StderrPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := d.cmd.StdinPipe(); err != nil { // held open: hbrestd-keyring waits for its request
		r.t.Fatal(err)
	}
	if err := d.cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	go d.stderr.collect(bufio.NewScanner(pipe))
	r.t.Cleanup(d.kill)
	if wait != "" {
		if _, err := d.stderr.waitFor(regexp.MustCompile(wait)); err != nil {
			r.t.Fatal(err)
		}
	}
	return d
}

// daemon starts hbrestd where cores may be as large as they like.
func (r *reach) daemon() *process {
	r.t.Helper()
	return r.start(listening.String(), "sh", "-c", "ulimit -c $(ulimit -H -c); exec "+r.bin+"/hbrestd run")
}

// Another program of the same user, without special rights, gets at neither the
// memory nor the environment nor the open files of the daemon and of
// hbrestd-keyring, and there is no core to read when they die: every way is
// refused, all of which lead to a program that hides nothing.
func TestMemoryIsOutOfReach(t *testing.T) {
	if of := os.Getenv("HB_E2E_INSIDE"); of != "" {
		tryWays(t, of)
		return
	}
	r := newReach(t)
	// What each way leads to on this machine, where nothing is hidden.
	open := r.into(r.start("", "sleep", "60"))
	for _, must := range []string{"/proc/PID/mem", "/proc/PID/environ", "/proc/PID/maps", "/proc/PID/auxv", "process_vm_readv"} {
		if !slices.Contains(open, must) {
			t.Errorf("this machine lets nobody in by %s, whatever a program does", must)
		}
	}
	d := r.daemon()
	into := r.into(d)
	if len(into) > 0 {
		t.Errorf("a program of the same user gets at the daemon by %q", into)
	}
	limits, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", d.cmd.Process.Pid))
	if err != nil || !regexp.MustCompile(`Max core file size +0 +0 `).Match(limits) {
		t.Errorf("%v\n%s", err, limits)
	}
	helper := r.start("", filepath.Join(r.bin, "hbrestd-keyring"))
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) { // it hides before it reads, and says nothing
		info, err := os.Stat(fmt.Sprintf("/proc/%d/environ", helper.cmd.Process.Pid))
		if err == nil && info.Sys().(*syscall.Stat_t).Uid == 0 {
			break // the system gives what belongs to a hidden process to root
		}
		if time.Now().After(end) {
			t.Fatalf("hbrestd-keyring does not hide: %v", err)
		}
	}
	intoHelper := r.into(helper)
	if len(intoHelper) > 0 {
		t.Errorf("a program of the same user gets at hbrestd-keyring by %q", intoHelper)
	}

	// No core is left of one that dies.
	dumped := func(d *process, sig syscall.Signal) bool {
		t.Helper()
		if err := d.cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		_ = d.wait()
		status, ok := d.cmd.ProcessState.Sys().(syscall.WaitStatus)
		if !ok || status.Exited() && status.ExitStatus() == 0 {
			t.Errorf("%v: %v", sig, d.cmd.ProcessState)
		}
		return ok && status.CoreDump()
	}
	cores, possible := 0, dumped(r.start("(ready)", "sh", "-c", "ulimit -c $(ulimit -H -c); echo ready >&2; exec sleep 60"), syscall.SIGABRT)
	signals := []syscall.Signal{syscall.SIGABRT, syscall.SIGSEGV, syscall.SIGQUIT, syscall.SIGBUS, syscall.SIGTRAP}
	for i, sig := range signals {
		if i > 0 {
			d = r.daemon()
		}
		if dumped(d, sig) {
			cores++
			t.Errorf("the daemon leaves a core when it gets %v", sig)
		}
	}
	if dumped(helper, syscall.SIGABRT) {
		cores++
		t.Error("hbrestd-keyring leaves a core")
	}
	if left, _ := filepath.Glob(filepath.Join(r.home, "core*")); len(left) > 0 && !possible || len(left) > 1 {
		t.Errorf("left behind: %q", left)
	}
	soak.Measured(t, "%d ways into a process of the same user, %d of them open into one that hides nothing, %d into hbrestd, %d into hbrestd-keyring; %d cores after %d deaths (another program leaves one: %v)",
		len(ways), len(open), len(into), len(intoHelper), cores, len(signals)+1, possible)
}

// tryWays is the program of the same user.
func tryWays(t *testing.T, of string) {
	pid, err := strconv.Atoi(of)
	if err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread() // tracing belongs to a thread
	for name, way := range ways {
		if err := way(pid); err != nil {
			t.Logf("refused: %s: %v", name, err)
			continue
		}
		t.Logf("let in: %s", name)
	}
}
