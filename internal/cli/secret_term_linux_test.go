package cli

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hyperbolic-gateway/hb-rest/internal/daemon"
)

// mainVariable makes this test program hbrestd itself: see TestMain.
const mainVariable = "HBREST_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(mainVariable) != "" {
		os.Exit(Main(os.Args[1:], os.LookupEnv, os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// A typist sits at a real pseudo-terminal: they wait for a text, then type.
type typist struct {
	t       *testing.T
	program *os.File // the end of programs
	was     *unix.Termios

	mu   sync.Mutex
	seen strings.Builder // guarded by mu
	news chan struct{}
}

type step struct{ wait, typed string }

func newTypist(t *testing.T, steps ...step) *typist {
	t.Helper()
	program, person := terminal(t, 80)
	was, err := unix.IoctlGetTermios(int(program.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	ty := &typist{t: t, program: program, was: was, news: make(chan struct{}, 1)}
	go func() {
		buf := make([]byte, 4096)
		from := 0
		for {
			n, err := person.Read(buf)
			ty.mu.Lock()
			ty.seen.Write(buf[:n])
			all := ty.seen.String()
			ty.mu.Unlock()
			select {
			case ty.news <- struct{}{}:
			default:
			}
			if err != nil {
				return
			}
			for len(steps) > 0 && strings.Contains(all[from:], steps[0].wait) {
				from = len(all)
				_, _ = io.WriteString(person, steps[0].typed) // the test sees what is missing
				steps = steps[1:]
			}
		}
	}()
	return ty
}

// transcript is everything that the terminal has shown. Nothing may be using it
// any more.
func (ty *typist) transcript() string {
	ty.t.Helper()
	const end = "<the end>"
	if _, err := io.WriteString(ty.program, end); err != nil {
		ty.t.Fatal(err)
	}
	late := time.After(20 * time.Second)
	for {
		ty.mu.Lock()
		all := ty.seen.String()
		ty.mu.Unlock()
		if head, _, ok := strings.Cut(all, end); ok {
			return strings.ReplaceAll(head, "\r\n", "\n")
		}
		select {
		case <-ty.news:
		case <-late:
			ty.t.Fatalf("the terminal shows %q", all)
		}
	}
}

// mustBeRestored says that the terminal is as it was.
func (ty *typist) mustBeRestored() {
	ty.t.Helper()
	now, err := unix.IoctlGetTermios(int(ty.program.Fd()), unix.TCGETS)
	if err != nil {
		ty.t.Fatal(err)
	}
	if !reflect.DeepEqual(now, ty.was) {
		ty.t.Errorf("the terminal is %+v, and was %+v", now, ty.was)
	}
}

const (
	newPrompt = "The credential new will be sent to h.\nValue for Authorization (not shown): "
)

func putNew(value string) string {
	return `put {"name":"new","kind":"static","headers":[{"name":"Authorization","prefix":"Bearer "}],"allowedHosts":["h"],"values":["` + b64(value) + `"],"create":true}`
}

// What is typed at the question is taken as it was meant, and never shown.
func TestHiddenEntry(t *testing.T) {
	jwt := strings.Repeat("eyJhbGciOiJIUzI1NiJ9.", 800)[:16<<10] // four times what a terminal's own line holds
	for _, tc := range []struct{ name, typed, want string }{
		{"plain", "s3cret-value\r", "s3cret-value"},
		{"line feed", "s3cret-value\n", "s3cret-value"},
		{"backspace", "s3cret-valux\x7fe!\b\r", "s3cret-value"},
		{"backspace over a character of several bytes", "s3cret-value€\x7f\r", "s3cret-value"},
		{"backspace at the start", "\x7f\x7fs3cret-value\r", "s3cret-value"},
		{"Ctrl-U", "wrong one\x15s3cret-value\r", "s3cret-value"},
		{"Ctrl-Z and Ctrl-\\ stop nothing", "s3cret-value\x1a\x1c\r", "s3cret-value\x1a\x1c"},
		{"Ctrl-D inside", "s3cret\x04-value\r", "s3cret-value"},
		{"spaces", " s3cret value \r", " s3cret value "},
		{"a paste", pasteBegin + "s3cret-value" + pasteEnd + "\r", "s3cret-value"},
		{"a paste with its line's end", pasteBegin + "s3cret-value\r" + pasteEnd, "s3cret-value"},
		{"a paste with a Windows line's end", "s3cret-value\r\n", "s3cret-value"},
		{"a long token", jwt + "\r", jwt},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := &fake{}
			w := newWorld(t, f)
			ty := newTypist(t, step{"(not shown): ", tc.typed})
			w.tty = ty.program.Name()
			w.stdin = "not read\n"
			check(t, "said", w.hb("secret", "set", "new", "--host", "h"), said{0, savedNew, createdNew})
			if got := strings.Join(f.asked(), " "); got != putNew(tc.want) {
				t.Errorf("asked %.300s", got)
			}
			if got := ty.transcript(); got != newPrompt+"\n" {
				t.Errorf("the terminal shows %.300q", got)
			}
			ty.mustBeRestored()
		})
	}
}

// Entries that are no value change nothing, and leave the terminal as it was.
func TestHiddenEntryRefused(t *testing.T) {
	canary := "c4n4ry-value"
	for _, tc := range []struct {
		name, typed string
		want        said
	}{
		{"empty", "\r", said{6, "", "hbrestd: error: no value for Authorization was given; nothing was changed\n"}},
		{"emptied", canary + "\x15\r", said{6, "", "hbrestd: error: no value for Authorization was given; nothing was changed\n"}},
		{"two lines", canary + "\r" + canary + "\r", said{1, "", "hbrestd: error: " + errPasted.Error() + "\n"}},
		{"a paste of two lines", pasteBegin + canary + "\r" + canary + pasteEnd, said{1, "", "hbrestd: error: " + errPasted.Error() + "\n"}},
		{"Ctrl-D", "\x04", said{1, "", "hbrestd: error: " + errNoAnswer.Error() + "\n"}},
		{"too long", strings.Repeat("x", maxEntry+1), said{1, "", "hbrestd: error: the value has over 64 KiB\n"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := &fake{}
			w := newWorld(t, f)
			ty := newTypist(t, step{"(not shown): ", tc.typed})
			w.tty = ty.program.Name()
			check(t, "said", w.hb("secret", "set", "new", "--host", "h"), tc.want)
			if got := f.asked(); len(got) > 0 {
				t.Errorf("asked %q", got)
			}
			if got := ty.transcript(); got != newPrompt+"\n" {
				t.Errorf("the terminal shows %.300q", got)
			}
			ty.mustBeRestored()
		})
	}
}

// Of what exists, an empty entry keeps the value; several are asked for one
// after the other.
func TestHiddenEntryKeeps(t *testing.T) {
	f := &fake{secrets: someSecrets()}
	w := newWorld(t, f)
	ty := newTypist(t, step{"X-App-Id (not shown): ", "\r"}, step{"X-App-Key (not shown): ", "fresh-value\r"})
	w.tty = ty.program.Name()
	check(t, "said", w.hb("secret", "set", "shop"), said{0, "saved shop: static, X-App-Id and X-App-Key, for shop.example.com\n", "hbrestd: kept the saved value\n"})
	if got := strings.Join(f.asked(), " "); !strings.HasSuffix(got, `"values":[null,"`+b64("fresh-value")+`"]}`) {
		t.Errorf("asked %s", got)
	}
	want := "The credential shop will be sent to shop.example.com.\nAn empty entry keeps the saved one.\nValue for X-App-Id (not shown): \n" +
		"The credential shop:\nAn empty entry keeps the saved one.\nValue for X-App-Key (not shown): \n"
	if got := ty.transcript(); got != want {
		t.Errorf("the terminal shows %q", got)
	}
}

// Another site wants a yes before the client secret is typed, read from the same
// terminal although stdin has something else. Hosts are shown as they are compared.
func TestTokenHostOnATerminal(t *testing.T) {
	const ask = "the token URL login.other.net is on another site than api.example.com"
	for _, tc := range []struct {
		answer string
		want   said
		calls  int
	}{
		{"y\r", said{0, "saved new: oauth2, Authorization, for api.example.com\n", createdNew}, 1},
		{"yes\r", said{0, "saved new: oauth2, Authorization, for api.example.com\n", createdNew}, 1},
		{"\r", said{1, "", "hbrestd: error: nothing was changed\n"}, 0},
		{"no\r", said{1, "", "hbrestd: error: nothing was changed\n"}, 0},
	} {
		f := &fake{ask: ask}
		w := newWorld(t, f)
		w.stdin = "y\n"
		ty := newTypist(t, step{"[y/N] ", tc.answer}, step{"(not shown): ", "client-s3cret\r"})
		w.tty = ty.program.Name()
		args := "secret set new --host API.example.com --oauth2 --token-url https://login.other.net/t --client-id c --auth-style body"
		check(t, tc.answer, w.hb(strings.Fields(args)...), tc.want)
		if got := f.asked(); len(got) != tc.calls || tc.calls == 1 && !strings.Contains(got[0], `"confirm":["token-host"]`) {
			t.Errorf("%q: asked %q", tc.answer, got)
		}
		want := sentence(ask) + "\n  token URL  https://login.other.net/t\n  hosts      api.example.com\nSend the client secret there? [y/N] " + strings.Replace(tc.answer, "\r", "\n", 1)
		if tc.calls > 0 {
			want += "The credential new will be sent to api.example.com.\nIts client secret will be sent to https://login.other.net/t.\nClient secret (not shown): \n"
		}
		if got := ty.transcript(); got != want {
			t.Errorf("%q: the terminal shows %q", tc.answer, got)
		}
		ty.mustBeRestored()
	}
}

// An interrupted question leaves the terminal as it was.
func TestHiddenEntryInterrupted(t *testing.T) {
	f := &fake{}
	w := newWorld(t, f)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	w.ctx = ctx
	ty := newTypist(t, step{"(not shown): ", "half a val"})
	w.tty = ty.program.Name()
	go func() { // once what was typed must have been read
		for ctx.Err() == nil {
			var waiting int
			ty.mu.Lock()
			asked := strings.Contains(ty.seen.String(), "(not shown): ")
			ty.mu.Unlock()
			waiting, err := unix.IoctlGetInt(int(ty.program.Fd()), unix.TIOCINQ)
			if asked && err == nil && waiting == 0 {
				cancel()
			}
		}
	}()
	check(t, "said", w.hb("secret", "set", "new", "--host", "h"), said{130, "", "hbrestd: interrupted\n"})
	if got := ty.transcript(); got != newPrompt+"\n" {
		t.Errorf("the terminal shows %q", got)
	}
	ty.mustBeRestored()
}

// The program itself, with a terminal of its own: /dev/tty is found, and Ctrl-C
// and signals that end programs restore it.
func TestProgramOnItsTerminal(t *testing.T) {
	for _, tc := range []struct {
		name  string
		steps []step
		end   os.Signal
		exit  int
		want  string
	}{
		{"value", []step{{"(not shown): ", "s3cret-value\r"}}, nil, 0, newPrompt + "\n" + createdNew + savedNew},
		{"Ctrl-C", []step{{"(not shown): ", "half a val\x03"}}, nil, 130, newPrompt + "\nhbrestd: interrupted\n"},
		{"SIGTERM", nil, unix.SIGTERM, 130, newPrompt + "\nhbrestd: interrupted\n"},
		{"SIGQUIT", nil, unix.SIGQUIT, 130, newPrompt + "\nhbrestd: interrupted\n"},
		{"SIGHUP", nil, unix.SIGHUP, 130, newPrompt + "\nhbrestd: interrupted\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := &fake{version: thisBuild().Version}
			w := newWorld(t, f)
			ty := newTypist(t, tc.steps...)
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(self, "secret", "set", "new", "--host", "h")
			cmd.Env = []string{mainVariable + "=1", "HB_WRAP_HOME=" + w.home, "HOME=" + w.home, "PATH=" + w.home}
			cmd.Stdin, cmd.Stdout, cmd.Stderr = ty.program, ty.program, ty.program
			cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true, Setctty: true}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if tc.end != nil {
				for {
					ty.mu.Lock()
					asked := strings.Contains(ty.seen.String(), "(not shown): ")
					ty.mu.Unlock()
					if asked {
						break
					}
					<-ty.news
				}
				if err := cmd.Process.Signal(tc.end); err != nil {
					t.Fatal(err)
				}
			}
			_ = cmd.Wait()
			if got := cmd.ProcessState.ExitCode(); got != tc.exit {
				t.Errorf("exit %d, want %d", got, tc.exit)
			}
			ty.mustBeRestored()
			if got := ty.transcript(); got != tc.want {
				t.Errorf("the terminal shows %q, want %q", got, tc.want)
			}
		})
	}
}

// The pinentry programs that people have, on a real terminal.
func TestRealPinentry(t *testing.T) {
	for _, name := range []string{"pinentry-curses", "pinentry-tty"} {
		t.Run(name, func(t *testing.T) {
			program, err := exec.LookPath(name)
			if err != nil {
				t.Skipf("%s is not installed", name)
			}
			f := &fake{ask: "the token URL is on another site"}
			w := newWorld(t, f)
			dir := filepath.Join(w.home, "bin")
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(program, filepath.Join(dir, "pinentry")); err != nil {
				t.Fatal(err)
			}
			// Three dialogs: an agent's command is allowed, the token's site is
			// confirmed, the value is typed. The last two words of each are on the screen
			// when the program reads.
			var steps []step
			if name == "pinentry-tty" {
				steps = []step{{"[ar]? ", "a"}, {"[yn]? ", "y"}, {"ecret:", "p4ssword-value\r"}}
			} else {
				steps = []step{{"<Refuse>", "\r"}, {"<No>", "\r"}, {"<Cancel>", "p4ssword-value\r"}}
			}
			ty := newTypist(t, steps...)
			w.env["PATH"], w.env["GPG_TTY"], w.env["TERM"], w.env["CLAUDECODE"] = dir, ty.program.Name(), "xterm", "1"
			args := "secret set new --host h --oauth2 --token-url https://t.example.com/t --client-id c --auth-style body"
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			w.ctx = ctx
			got := w.hb(strings.Fields(args)...)
			seen := ty.transcript()
			check(t, "said", got, said{0, "saved new: oauth2, Authorization, for h\n", createdNew})
			if calls := f.asked(); len(calls) != 1 || !strings.Contains(calls[0], `"values":["`+b64("p4ssword-value")+`"]`) {
				t.Errorf("asked %q", calls)
			}
			if strings.Contains(seen, "p4ssword") {
				t.Errorf("the terminal shows the value: %q", seen)
			}
			if t.Failed() {
				t.Logf("the terminal shows %q", seen)
			}
			ty.mustBeRestored()
		})
	}
}

// A pinentry that is interrupted in the middle of a question leaves the terminal
// as it was.
func TestRealPinentryInterrupted(t *testing.T) {
	for name, asks := range map[string]string{"pinentry-curses": "<Cancel>", "pinentry-tty": "Authorization:"} {
		t.Run(name, func(t *testing.T) {
			program, err := exec.LookPath(name)
			if err != nil {
				t.Skipf("%s is not installed", name)
			}
			f := &fake{}
			w := newWorld(t, f)
			if err := os.Symlink(program, filepath.Join(w.home, "pinentry")); err != nil {
				t.Fatal(err)
			}
			ty := newTypist(t)
			w.env["PATH"], w.env["GPG_TTY"], w.env["TERM"] = w.home, ty.program.Name(), "xterm"
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			w.ctx = ctx
			go func() {
				for ctx.Err() == nil {
					<-ty.news
					ty.mu.Lock()
					asked := strings.Contains(ty.seen.String(), asks)
					ty.mu.Unlock()
					if asked {
						cancel()
					}
				}
			}()
			check(t, "said", w.hb("secret", "set", "new", "--host", "h"), said{130, "", "hbrestd: interrupted\n"})
			ty.mustBeRestored()
			if got := f.asked(); len(got) > 0 {
				t.Errorf("asked %q", got)
			}
			if shown := ty.transcript(); name == "pinentry-curses" && strings.Count(shown, "\x1b[?1049h") != strings.Count(shown, "\x1b[?1049l") {
				t.Errorf("its screen was left open: %q", shown)
			}
		})
	}
}

// The daemon's passphrase is asked for on its terminal: twice when it is new,
// with what was wrong with the last one, and not where nobody is.
func TestPassphrase(t *testing.T) {
	const head = "The key of the credentials will be kept in an encrypted file. Choose a passphrase of at least 12 characters for it. Without the passphrase the credentials are lost.\nPassphrase (not shown): \n"
	const again = "The same passphrase again, against slips.\nPassphrase (not shown): \n"
	const old = "The key of the credentials is in an encrypted file.\nPassphrase (not shown): \n"
	for _, tc := range []struct {
		name  string
		ask   daemon.Passphrase
		typed []string
		want  string
		fails string
		shown string
	}{
		{"new", daemon.Passphrase{New: true, Least: 12}, []string{"correct horse\r", "correct horse\r"}, "correct horse", "", head + again},
		{"slipped", daemon.Passphrase{New: true, Least: 12}, []string{"correct horse\r", "correct hores\r", "correct horse\r", "correct horse\r"}, "correct horse", "", head + again + "The two passphrases were not the same.\n" + head + again},
		{"known", daemon.Passphrase{Least: 12}, []string{"correct horse\r"}, "correct horse", "", old},
		{"wrong before", daemon.Passphrase{Least: 12, Problem: "the passphrase does not open the encrypted file"}, []string{"correct horse\r"}, "correct horse", "", "The passphrase does not open the encrypted file.\n" + old},
		{"Ctrl-D", daemon.Passphrase{Least: 12}, []string{"\x04"}, "", errNoAnswer.Error(), old},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var steps []step
			for _, typed := range tc.typed {
				steps = append(steps, step{"(not shown): ", typed})
			}
			ty := newTypist(t, steps...)
			w := newWorld(t, nil)
			w.tty, w.person = ty.program.Name(), true
			got, err := w.app(io.Discard, io.Discard).passphrase()(t.Context(), tc.ask)
			if string(got) != tc.want || (err == nil) != (tc.fails == "") || err != nil && !strings.Contains(err.Error(), tc.fails) {
				t.Errorf("%q, %v", got, err)
			}
			if shown := ty.transcript(); shown != tc.shown {
				t.Errorf("the terminal shows %q, want %q", shown, tc.shown)
			}
			ty.mustBeRestored()
		})
	}
	if newWorld(t, nil).app(io.Discard, io.Discard).passphrase() != nil {
		t.Error("somebody would be asked where nobody is")
	}
}
