package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/vt"
	"golang.org/x/sys/unix"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
)

// A screen is the settings panel on a pseudo-terminal of its own, before a
// terminal emulator.
type screen struct {
	t      *testing.T
	cmd    *exec.Cmd
	person *os.File // what the terminal's window holds
	tty    *os.File // kept open, to look at the terminal afterwards
	emu    *vt.SafeEmulator
	drawn  chan struct{} // something was drawn
	before unix.Termios
	ended  chan error
}

// openPanel starts the panel, in a session of its own as a terminal's window
// does.
func (p *person) openPanel(width, height uint16, args ...string) *screen {
	p.t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		p.t.Skipf("this machine has no pseudo-terminals: %v", err)
	}
	s := &screen{t: p.t, person: os.NewFile(uintptr(fd), "ptmx"), emu: vt.NewSafeEmulator(int(width), int(height)), drawn: make(chan struct{}, 1), ended: make(chan error, 1)}
	p.t.Cleanup(func() { _ = s.person.Close() })
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		p.t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		p.t.Fatal(err)
	}
	if s.tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		p.t.Skipf("this machine has no pseudo-terminals: %v", err)
	}
	p.t.Cleanup(func() { _ = s.tty.Close() })
	s.resize(width, height)
	s.before = s.modes()
	s.cmd = exec.Command(filepath.Join(p.bin, "hbrestd"), append([]string{"settings"}, args...)...)
	s.cmd.Env = append(p.env[:len(p.env):len(p.env)], "TERM=xterm-256color", "NO_COLOR=1")
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = s.tty, s.tty, s.tty
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := s.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = s.cmd.Process.Kill() })
	go func() { s.ended <- s.cmd.Wait() }()
	go s.draw()
	go func() { _, _ = io.Copy(s.person, s.emu) }() // the terminal's answers to questions
	return s
}

func (s *screen) draw() {
	buf := make([]byte, 4096)
	for {
		n, err := s.person.Read(buf)
		if n > 0 {
			_, _ = s.emu.Write(buf[:n])
			select {
			case s.drawn <- struct{}{}:
			default:
			}
		}
		if err != nil {
			return
		}
	}
}

func (s *screen) resize(width, height uint16) {
	s.t.Helper()
	s.emu.Resize(int(width), int(height))
	if err := unix.IoctlSetWinsize(int(s.person.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: height, Col: width}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *screen) modes() unix.Termios {
	s.t.Helper()
	m, err := unix.IoctlGetTermios(int(s.tty.Fd()), unix.TCGETS)
	if err != nil {
		s.t.Fatal(err)
	}
	return *m
}

func (s *screen) text() string {
	var b strings.Builder
	for y := range s.emu.Height() {
		for x := 0; x < s.emu.Width(); {
			c := s.emu.CellAt(x, y)
			if c == nil || c.Width == 0 {
				b.WriteByte(' ')
				x++
				continue
			}
			b.WriteString(c.Content)
			x += c.Width
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// waitFor waits until the screen has every text.
func (s *screen) waitFor(texts ...string) {
	s.t.Helper()
	deadline := time.After(10 * time.Second)
	for {
		now, missing := s.text(), ""
		for _, want := range texts {
			if !strings.Contains(now, want) {
				missing = want
			}
		}
		if missing == "" {
			return
		}
		select {
		case <-s.drawn:
		case <-deadline:
			s.t.Fatalf("no %q on the screen:\n%s", missing, now)
		}
	}
}

func (s *screen) press(keys string) {
	s.t.Helper()
	if _, err := io.WriteString(s.person, keys); err != nil {
		s.t.Fatal(err)
	}
}

// end waits for the end of the panel, and looks whether the terminal is as it
// was.
func (s *screen) end(exit int) {
	s.t.Helper()
	select {
	case err := <-s.ended:
		var failed *exec.ExitError
		if err != nil && !errors.As(err, &failed) {
			s.t.Fatal(err)
		}
	case <-time.After(10 * time.Second):
		s.t.Fatalf("the panel still runs:\n%s", s.text())
	}
	if got := s.cmd.ProcessState.ExitCode(); got != exit {
		s.t.Errorf("the panel ended with exit code %d, want %d", got, exit)
	}
	if now := s.modes(); now != s.before {
		s.t.Errorf("the terminal's modes are %+v, and were %+v", now, s.before)
	}
	for s.emu.IsAltScreen() || s.emu.CursorHidden() {
		select {
		case <-s.drawn:
		case <-time.After(5 * time.Second):
			s.t.Fatalf("the screen was left as it was: alternate %t, cursor hidden %t", s.emu.IsAltScreen(), s.emu.CursorHidden())
		}
	}
}

// A person opens the panel, filters, allows what an agent waits for, sees it in
// the audit trail and leaves.
func TestPanel(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"o-1"}`)
	}))
	t.Cleanup(up.Close)
	p := newPerson(t, "HB_WRAP_APPROVAL=always", "HB_WRAP_KEYRING=off")
	p.start()
	p.save(fmt.Sprintf(`{"schemaVersion":1,"id":"orders.create","name":"Create order","request":{"method":"POST","url":"%s/orders","body":{"note":"gift"}}}`, up.URL))
	p.save(fmt.Sprintf(`{"schemaVersion":1,"id":"weather","name":"Weather","request":{"method":"GET","url":"%s/weather"}}`, up.URL))

	s := p.openPanel(80, 24)
	s.waitFor("[1 Wrappers]", "orders.create", "weather", "2 Credentials")
	s.press("/ord")
	s.waitFor("Filter: ord", "1 of 1", "orders.create")
	s.press("\x1b")
	s.waitFor("1 of 2")

	type answer struct {
		r   *api.RunResult
		err error
	}
	called := make(chan answer, 1)
	go func() {
		r, err := p.daemon.client.Run(context.Background(), &api.RunRequest{ID: "orders.create"})
		called <- answer{r, err}
	}()
	s.waitFor("3 Approvals (1)")
	s.press("3")
	s.waitFor("pending", "POST", "Policy: always (environment)")
	s.press("\r")
	s.waitFor("May this request be sent?", `"note": "gift"`, "1 call waits now")
	s.press("a")
	s.waitFor("allowed: POST "+up.URL+"/orders", "Nothing waits for an answer")
	if a := <-called; a.err != nil || a.r.Status == nil || *a.r.Status != 200 {
		t.Fatalf("the call that was allowed: %+v, %v", a.r, a.err)
	}
	s.press("4")
	s.waitFor("[4 Audit]", "orders.create", "200", "live")

	s.press("2")
	s.waitFor("Credentials cannot be used", "config set keyring")

	s.resize(120, 40)
	s.press("1")
	s.waitFor("[1 Wrappers]", "tab next tab") // only in the wide footer
	s.press("q")
	s.end(0)
}

// A daemon that stops is said on the screen; SIGTERM ends the panel, and the
// terminal is as it was.
func TestPanelIsTerminated(t *testing.T) {
	p := newPerson(t, "HB_WRAP_KEYRING=off")
	p.start()
	s := p.openPanel(80, 24)
	s.waitFor("No wrapper is saved yet")
	p.stop()
	s.waitFor("Start it: hbrestd service start")
	p.start()
	s.waitFor("the daemon answers again")
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	s.end(130)
}

// The value of a credential is asked for on the terminal, without the screen,
// and is never written to it; afterwards the screen is back.
func TestPanelAsksForAValue(t *testing.T) {
	p := newPerson(t, withFileKeyring(t)...)
	p.start()
	s := p.openPanel(80, 24)
	s.waitFor("No wrapper is saved yet")
	s.press("2")
	s.waitFor("No credential is stored")
	s.press("n")
	s.waitFor("New credential")
	s.press("shop-key\tapi.example.com\x13")
	s.waitFor("The credential shop-key will be sent to api.example.com.", "Value for Authorization (not shown):")
	if s.emu.IsAltScreen() {
		t.Error("the question is on the panel's own screen")
	}
	s.press("value-1234567890\r")
	s.waitFor("saved shop-key, for api.example.com", "Authorization: Bearer")
	if got := s.text(); strings.Contains(got, "value-1234567890") {
		t.Errorf("the value is on the screen:\n%s", got)
	}
	s.press("q")
	s.end(0)
	if out := p.must("", "secret", "list", "--json"); !strings.Contains(out, `"shop-key"`) {
		t.Errorf("the credential was not stored: %s", out)
	}
}

// Line by line the panel works on a terminal too.
func TestPanelLineByLine(t *testing.T) {
	p := newPerson(t, "HB_WRAP_KEYRING=off")
	p.start()
	s := p.openPanel(80, 24, "--accessible")
	s.waitFor("1. Wrappers", "q to quit:")
	s.press("1\n")
	s.waitFor("Nothing is here.")
	s.press("q\n")
	s.end(0)
}
