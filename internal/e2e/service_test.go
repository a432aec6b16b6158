//go:build linux

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/e2e/stdio"
	"github.com/hyperbolic-gateway/hb-rest/internal/soak"
)

// passing is the number of a user that exists only in the namespaces of
// testdata/usermanager.sh.
const passing = 61234

// The installed service under a real systemd user manager, with both programs.
func TestService(t *testing.T) {
	if dir := os.Getenv("HB_E2E_INSIDE"); dir != "" {
		serviceLife(t, dir)
		return
	}
	underUserManager(t, build, "a home", []string{"hbrestd", "hb-rest"})
}

// underUserManager runs the test t again, as an ordinary user and under a
// systemd user manager of its own, where HB_E2E_INSIDE names its home: one that
// holds the named programs in the folder tools, and the other folders.
func underUserManager(t *testing.T, programs func() (string, error), home string, names []string, folders ...string) {
	t.Helper()
	if os.Getenv("HB_E2E_SYSTEMD") != "1" {
		t.Skip("HB_E2E_SYSTEMD=1 runs it: it needs root and systemd")
	}
	bin, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	base, err := os.MkdirTemp("/tmp", "hb-rest-e2e-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	home = filepath.Join(base, home)
	for _, dir := range append([]string{"", tools}, folders...) {
		if err := os.Mkdir(filepath.Join(home, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	copyFile(t, self, filepath.Join(base, "inside.test"))
	for _, name := range names {
		copyFile(t, filepath.Join(bin, name), filepath.Join(home, tools, name))
	}
	err = filepath.WalkDir(base, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chown(path, passing, passing)
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), soak.Time(3*time.Minute, 10*time.Minute))
	defer cancel()
	cmd := exec.CommandContext(ctx, "unshare", "--mount", "--propagation=private", "--pid", "--fork", "--kill-child", "--mount-proc", "bash", "testdata/usermanager.sh",
		strconv.Itoa(passing), home, filepath.Join(base, "inside.test"), "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), "HB_E2E_INSIDE="+home)
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if i := strings.Index(line, "measured: "); i >= 0 {
			t.Log(strings.TrimSpace(line[i:]))
		}
	}
}

// tools is a folder that a unit has to write carefully.
const tools = `my tools 100%n $HOME ;#{{Name}}`

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to+".new", data, 0o755)
	}
	if err == nil {
		err = os.Rename(to+".new", to)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A servant is the passing user with a user manager.
type servant struct {
	t       *testing.T
	home    string
	bin     string // where the programs are
	manager *exec.Cmd
	env     []string
}

func (s *servant) startManager() {
	s.t.Helper()
	program := "/usr/lib/systemd/systemd"
	if _, err := os.Stat(program); err != nil {
		program = "/lib/systemd/systemd"
	}
	s.manager = exec.Command(program, "--user", "--log-target=console", "--log-level=info")
	f, err := os.OpenFile(filepath.Join(s.home, "manager.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	s.manager.Stdout, s.manager.Stderr = f, f
	if err := s.manager.Start(); err != nil {
		s.t.Fatal(err)
	}
	_ = f.Close()
	s.eventually("the user manager runs", 20*time.Second, func() bool {
		out, _ := s.try("systemctl", "--user", "is-system-running")
		return strings.HasPrefix(out, "running") || strings.HasPrefix(out, "degraded")
	})
}

// stopManager ends the manager and all that it has started, as a shutdown does.
func (s *servant) stopManager() {
	s.t.Helper()
	_ = s.manager.Process.Signal(syscall.SIGTERM)
	if err := s.manager.Wait(); err != nil {
		s.t.Errorf("the user manager: %v", err)
	}
}

func (s *servant) eventually(what string, within time.Duration, ok func() bool) time.Duration {
	s.t.Helper()
	start := time.Now()
	for !ok() {
		if time.Since(start) > within {
			log, _ := os.ReadFile(filepath.Join(s.home, "manager.log"))
			s.t.Fatalf("not within %v: %s\n%s", within, what, log)
		}
		time.Sleep(10 * time.Millisecond)
	}
	return time.Since(start)
}

// try runs a program and gives all it says, and its exit code.
func (s *servant) try(argv ...string) (string, int) {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), s.env...)
	out, err := cmd.CombinedOutput()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		s.t.Fatalf("%q: %v", argv, err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

func (s *servant) program(name string) string { return filepath.Join(s.bin, name) }

// hb runs hbrestd, which must end with the exit code.
func (s *servant) hb(exit int, args ...string) string {
	s.t.Helper()
	out, code := s.try(append([]string{s.program("hbrestd")}, args...)...)
	if code != exit {
		log, _ := os.ReadFile(filepath.Join(s.home, "manager.log"))
		s.t.Fatalf("hbrestd %q: exit code %d, want %d\n%s\n%s", args, code, exit, out, log)
	}
	return out
}

// says wants each text in what was said.
func (s *servant) says(out string, texts ...string) {
	s.t.Helper()
	for _, text := range texts {
		if !strings.Contains(out, text) {
			s.t.Errorf("no %q in:\n%s", text, out)
		}
	}
}

// status is `service status --json`, whatever its exit code.
func (s *servant) status() (st struct {
	State, Says, Unit string
	PID, Restarts     int
	Enabled           bool
	DropIns           []string
	Linger            *bool
	LastExit          *struct {
		Code   int
		Signal bool
		Result string
	}
},
) {
	s.t.Helper()
	out, _ := s.try(s.program("hbrestd"), "service", "status", "--json")
	if err := json.Unmarshal([]byte(out), &st); err != nil {
		s.t.Fatalf("%v: %s", err, out)
	}
	return st
}

func serviceLife(t *testing.T, home string) {
	s := &servant{t: t, home: home, bin: filepath.Join(home, tools)}
	begin := time.Now()
	measured := func(what string, d time.Duration) {
		if !soak.Long() { // whose table is about what happens again and again
			soak.Measured(t, "%s: %.2f s", what, d.Seconds())
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_ = l.Close()
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"n":9007199254740993}`) }))
	defer up.Close()
	s.startManager()
	defer func() { s.stopManager() }()
	measured("user manager up", time.Since(begin))

	// A drop-in of the person's: another port, and a watchdog that bites soon.
	units := filepath.Join(home, ".config", "systemd", "user")
	dropIn := filepath.Join(units, "hbrestd.service.d", "mine.conf")
	if err := os.MkdirAll(filepath.Dir(dropIn), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dropIn, []byte("[Service]\nEnvironment=HB_WRAP_ADDR="+addr+"\nWatchdogSec=1\n"), 0o644); err != nil {
		t.Fatal(err)
	}

	s.says(s.hb(3, "service", "status"), "not installed", "hbrestd service install")
	s.says(s.hb(1, "service", "start"), "not installed as a service", "hbrestd service install")

	at := time.Now()
	out := s.hb(0, "service", "install", "--now")
	measured("install and start, until the daemon has answered", time.Since(at))
	s.says(out, "installed: "+filepath.Join(units, "hbrestd.service"), "left as it is: "+dropIn, "running", "http://"+addr, "loginctl enable-linger")
	first := s.status()
	if first.State != "running" || !strings.HasPrefix(first.Says, "listening on http://"+addr) || !first.Enabled || !slices.Equal(first.DropIns, []string{dropIn}) || first.PID == 0 {
		t.Errorf("status: %+v", first)
	}
	if out, _ := s.try("systemctl", "--user", "show", "hbrestd.service", "--property=Type,ActiveState,SubState,NotifyAccess"); !strings.Contains(out, "Type=notify") || !strings.Contains(out, "ActiveState=active") {
		t.Error(out)
	}
	s.confined(first.PID)

	s.hb(0, "allow", "add", strings.TrimPrefix(up.URL, "http://"), "--http")
	shim := exec.Command(s.program("hb-rest"))
	shim.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "HB_WRAP_URL=http://" + addr}
	mcp, err := stdio.Start(shim, "2025-11-25")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = mcp.Close() }()
	call := func(tool, args string) (string, bool) {
		r, err := mcp.Call(tool, json.RawMessage(args))
		if err != nil {
			t.Fatal(err)
		}
		return r.Text() + r.RPCError, !r.IsError && r.RPCError == ""
	}
	works := func() bool {
		text, ok := call("wrap_run", `{"id":"n","format":"json"}`)
		return ok && strings.Contains(text, "9007199254740993")
	}
	if text, ok := call("wrap_create", `{"wrapper":{"schemaVersion":1,"id":"n","name":"N","request":{"method":"GET","url":"`+up.URL+`/n"}}}`); !ok {
		t.Fatal(text)
	}
	if !works() {
		t.Error("wrap_run does not work")
	}

	// kill -9: the manager brings it back within two seconds, and the same hb-rest
	// goes on, with the new token.
	const back = 2 * time.Second
	kills := soak.Rounds(3, 20)
	var slowest time.Duration
	for i := range kills {
		if i > 0 && i%5 == 0 { // the manager gives up after ten starts a minute, as the unit says
			if out, code := s.try("systemctl", "--user", "reset-failed", "hbrestd.service"); code != 0 {
				t.Fatal(out)
			}
		}
		pid := s.status().PID
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		took := s.eventually("a call after kill -9", 10*time.Second, works)
		slowest = max(slowest, took)
		if st := s.status(); took > back || st.PID == pid || st.State != "running" || st.Restarts != i%5+1 {
			t.Errorf("after kill %d: %v, %+v", i+1, took, st)
		}
	}

	soak.Measured(t, "%d times kill -9: the next call of the same hb-rest works after %.2f s at most", kills, slowest.Seconds())

	s.upgrades(units, dropIn)

	s.says(s.hb(8, "run"), "hbrestd of this user", "hbrestd: hint:") // a second daemon

	at = time.Now()
	s.hb(0, "service", "stop")
	measured("stop", time.Since(at))
	s.says(s.hb(3, "service", "status"), "stopped")
	s.hb(0, "service", "stop")
	s.hb(0, "service", "start")
	s.hb(0, "service", "start")
	if !works() {
		t.Error("wrap_run does not work after stop and start")
	}

	// As after a reboot with linger: the manager alone starts it, each of ten times.
	boots := soak.Rounds(1, 10)
	slowest = 0
	for i := range boots {
		before := s.status().PID
		s.stopManager()
		if err := syscall.Kill(before, 0); !errors.Is(err, syscall.ESRCH) {
			t.Fatalf("boot %d: the daemon of before still runs: %v", i+1, err)
		}
		at = time.Now()
		s.startManager()
		s.eventually("the service is back after the manager's restart", 10*time.Second, works)
		slowest = max(slowest, time.Since(at))
		out, _ := s.try("systemctl", "--user", "is-active", "hbrestd.service")
		if st := s.status(); strings.TrimSpace(out) != "active" || st.State != "running" || st.PID == before {
			t.Errorf("boot %d: %s %+v", i+1, out, st)
		}
	}
	soak.Measured(t, "%d restarts of the user manager: active after each, a call works after %.2f s at most", boots, slowest.Seconds())

	s.portTaken(addr)
	s.says(s.hb(1, "service", "logs", "-n", "5"), "hbrestd: hint:") // no journal here

	s.hb(0, "service", "restart")
	pid := s.status().PID
	out = s.hb(0, "service", "uninstall")
	data := filepath.Join(home, ".local", "state", "hbrestd")
	s.says(out, "removed: "+filepath.Join(units, "hbrestd.service"), "left as it is: "+dropIn, "stay in "+data)
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the daemon still runs: %v", err)
	}
	for _, path := range []string{filepath.Join(data, "wrap", "store.db"), filepath.Join(data, "wrap", "audit.db"), filepath.Join(data, "wrap", "token"), dropIn} {
		if _, err := os.Stat(path); err != nil {
			t.Errorf("gone with the service: %v", err)
		}
	}
	for _, path := range []string{filepath.Join(units, "hbrestd.service"), filepath.Join(units, "default.target.wants", "hbrestd.service")} {
		if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("left behind: %s: %v", path, err)
		}
	}
	s.says(s.hb(0, "service", "uninstall"), "was not installed")

	// A mask is named with its way out, which works.
	if out, code := s.try("systemctl", "--user", "mask", "hbrestd.service"); code != 0 {
		t.Fatal(out)
	}
	s.says(s.hb(1, "service", "install"), "is masked", "systemctl --user unmask hbrestd.service")
	s.says(s.hb(1, "service", "start"), "is masked", "systemctl --user unmask hbrestd.service")
	s.says(s.hb(3, "service", "status"), "masked", "systemctl --user unmask hbrestd.service")
	s.try("systemctl", "--user", "unmask", "hbrestd.service")
	s.hb(0, "service", "install", "--now")
	if !works() {
		t.Error("wrap_run does not work after unmask and install")
	}
	measured("everything", time.Since(begin))
}

// confined wants what the unit promises to hold for the process.
func (s *servant) confined(pid int) {
	s.t.Helper()
	read := func(name string) string {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, name))
		if err != nil {
			s.t.Error(err)
		}
		return string(data)
	}
	// The process keeps its folder in /proc to root; status is open to all.
	s.says(read("status"), "NoNewPrivs:\t1\n", "Seccomp:\t2\n", "Umask:\t0077\n")
}

// upgrades installs over what is there.
func (s *servant) upgrades(units, dropIn string) {
	s.t.Helper()
	unit := filepath.Join(units, "hbrestd.service")
	before := s.status().PID
	s.says(s.hb(0, "service", "install"), "already up to date: "+unit, "left as it is: "+dropIn)
	if now := s.status().PID; now != before {
		s.t.Errorf("started again without a change: %d, %d", before, now)
	}

	// Another home: the unit changes, the service runs with it, and back again.
	other := filepath.Join(s.home, `other home 5%\x`)
	s.env = []string{"HB_WRAP_HOME=" + other}
	s.says(s.hb(0, "service", "install"), "brought up to date: "+unit, "+ Environment=\"HB_WRAP_HOME="+s.home, "It ran, and was started again.", other)
	s.env = nil
	s.says(s.hb(0, "service", "install"), "- Environment=\"HB_WRAP_HOME="+s.home, "It ran, and was started again.")

	// A new program at the old place.
	before = s.status().PID
	copyFile(s.t, s.program("hbrestd"), s.program("hbrestd"))
	s.says(s.hb(0, "service", "install"), "already up to date: "+unit, "It ran, and was started again.")
	if now := s.status().PID; now == before {
		s.t.Error("the old program still runs")
	}

	// An edited unit is kept beside the new one.
	text, err := os.ReadFile(unit)
	if err != nil {
		s.t.Fatal(err)
	}
	mine := bytes.Replace(text, []byte("RestartSec=1\n"), []byte("RestartSec=7\n"), 1)
	if err := os.WriteFile(unit, mine, 0o644); err != nil {
		s.t.Fatal(err)
	}
	s.says(s.hb(0, "service", "install"), "- RestartSec=7", "+ RestartSec=1", "kept as "+unit+".edited", "It ran, and was started again.")
	if kept, err := os.ReadFile(unit + ".edited"); err != nil || !bytes.Equal(kept, mine) {
		s.t.Errorf("the edited unit: %v", err)
	}
	if now, err := os.ReadFile(unit); err != nil || !bytes.Equal(now, text) {
		s.t.Errorf("the new unit: %v", err)
	}
}

// portTaken gives the port to this test's own process while the service is
// stopped: the start fails once, and says who has it.
func (s *servant) portTaken(addr string) {
	s.t.Helper()
	s.hb(0, "service", "stop")
	l, err := net.Listen("tcp", addr)
	if err != nil {
		s.t.Fatal(err)
	}
	go func() { _ = http.Serve(l, http.NotFoundHandler()) }()
	started := func() string {
		out, _ := s.try("systemctl", "--user", "show", "hbrestd.service", "--property=ExecMainStartTimestampMonotonic", "--value")
		return out
	}
	at := time.Now()
	out := s.hb(1, "service", "start")
	failed := time.Since(at)
	if !soak.Long() {
		soak.Measured(s.t, "start with the port taken fails after: %.2f s", failed.Seconds())
	}
	who := fmt.Sprintf("%s is already in use by inside.test (pid %d)", addr, os.Getpid())
	s.says(out, who, "Another port")
	once := started()
	for end := time.Now().Add(2500 * time.Millisecond); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if st := s.status(); st.State != "failed" || st.Restarts != 0 || st.LastExit == nil || st.LastExit.Code != 8 || !strings.Contains(st.Says, who) {
			s.t.Fatalf("with the port taken: %+v", st)
		}
	}
	if again := started(); again != once {
		s.t.Errorf("it was started again: at %q, then at %q", once, again)
	}
	_ = l.Close()
	s.hb(0, "service", "start")
}
