//go:build unix

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// script makes a program that answers as a pinentry would: cases are the arms
// of a shell's case over the line it reads. It gives the folder of the program
// and the file in which it notes each line.
func (w *world) script(cases string) (dir, log string) {
	dir, log = filepath.Join(w.home, "bin"), filepath.Join(w.home, "pinentry.log")
	_ = os.Remove(log)
	path := w.file("bin/pinentry", `#!/bin/sh
LC_ALL=C
echo 'OK Pleased to meet you'
while IFS= read -r line; do
	printf '%s\n' "$line" >>'`+log+`'
	case $line in
`+cases+`
	BYE) echo 'OK closing connection'; exit 0 ;;
	*) echo OK ;;
	esac
done
`)
	if err := os.Chmod(path, 0o700); err != nil {
		w.t.Fatal(err)
	}
	return dir, log
}

func logged(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The whole conversation, as both sides of the protocol's manual write it.
func TestPinentryProtocol(t *testing.T) {
	f := &fake{secrets: someSecrets()}
	w := newWorld(t, f)
	dir, log := w.script(`	GETPIN) echo '# a comment'; echo 'S PASSWORD_FROM_CACHE'; echo 'D 100%25 s3cret%0a'; echo 'D  and%20more%2'; echo OK ;;`)
	w.env["PATH"], w.env["DISPLAY"], w.env["GPG_TTY"], w.env["TERM"], w.env["LANG"] = dir, ":7", "/dev/pts/none", "xterm", "de_DE.UTF-8"
	got := w.hb("secret", "rotate", "crm")
	check(t, "said", got, said{0, "rotated crm: oauth2, Authorization, for crm.example.com\n", ""})
	if calls := strings.Join(f.asked(), " "); !strings.Contains(calls, `"values":["`+b64("100% s3cret\n and more%2")+`"]`) {
		t.Errorf("asked %s", calls)
	}
	want := `OPTION ttyname=/dev/pts/none
OPTION ttytype=xterm
OPTION lc-ctype=de_DE.UTF-8
OPTION lc-messages=de_DE.UTF-8
SETTITLE hbrestd
SETDESC The credential crm will be sent to crm.example.com.%0AIts client secret will be sent to https://login.example.com/token.
SETPROMPT Client secret:
GETPIN
BYE
`
	if got := logged(t, log); got != want {
		t.Errorf("the program was told:\n%s\nwant:\n%s", got, want)
	}
}

// What a person or the program answers, and what then happens.
func TestPinentryAnswers(t *testing.T) {
	ok := said{0, savedNew, createdNew}
	noTerminal := func(why string) said {
		return said{4, "", "hbrestd: pinentry could not ask: " + why + "\n" +
			"hbrestd: error: the value cannot be asked for: there is no terminal\nhbrestd: hint: Run it in a terminal. A script gives the value on stdin, with --stdin.\n"}
	}
	for _, tc := range []struct {
		name, cases string
		want        said
		value       string
	}{
		{"a value", `GETPIN) echo 'D s3cret-value'; echo OK ;;`, ok, "s3cret-value"},
		{"a Windows build", `GETPIN) printf 'D s3cret-value\r\nOK\r\n' ;;`, ok, "s3cret-value"},
		{"slow pieces", `GETPIN) printf 'D s3cr'; sleep 0.05; printf 'et-value\nO'; sleep 0.05; echo K ;;`, ok, "s3cret-value"},
		{"options are unknown", `OPTION*) echo 'ERR 83886254 Unknown option <Pinentry>' ;; GETPIN) echo 'D s3cret-value'; echo OK ;;`, ok, "s3cret-value"},
		{"it asks back", `GETPIN) echo 'INQUIRE QUALITY x'; read -r end; echo 'D s3cret-value'; echo OK ;;`, ok, "s3cret-value"},
		{"nothing", `GETPIN) echo OK ;;`, said{6, "", "hbrestd: error: no value for Authorization was given; nothing was changed\n"}, ""},
		{"cancelled", `GETPIN) echo 'D half'; echo 'ERR 83886179 Operation cancelled <Pinentry>' ;;`, said{1, "", "hbrestd: error: nothing was changed\n"}, ""},
		{"cancelled, of another source", `GETPIN) echo 'ERR 99 cancelled' ;;`, said{1, "", "hbrestd: error: nothing was changed\n"}, ""},
		{"fully cancelled", `GETPIN) echo 'ERR 83886278 Operation fully cancelled' ;;`, said{1, "", "hbrestd: error: nothing was changed\n"}, ""},
		{"time ran out", `GETPIN) echo 'ERR 83886142 Timeout' ;;`, said{1, "", "hbrestd: error: nothing was changed\n"}, ""},
		{"no display", `GETPIN) echo 'ERR 83918950 Inappropriate ioctl for device <Pinentry>' ;;`, noTerminal("error 83918950 Inappropriate ioctl for device <Pinentry>"), ""},
		{"it ends", `GETPIN) echo 'D half'; exit 0 ;;`, noTerminal("talking to pinentry: it has ended"), ""},
		{"it is something else", `SETTITLE*) echo 'sh: SETTITLE: not found' ;;`, noTerminal("this program does not talk like a pinentry"), ""},
		{"its error has no number", `GETPIN) echo 'ERR oops' ;;`, noTerminal("pinentry's error cannot be read"), ""},
		{"a line without an end", `GETPIN) head -c 3000 /dev/zero | tr '\0' x ;;`, noTerminal("talking to pinentry: a line is too long"), ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := &fake{}
			w := newWorld(t, f)
			dir, _ := w.script("\t" + tc.cases)
			w.env["PATH"], w.env["WAYLAND_DISPLAY"] = dir+":/usr/bin:/bin", "wayland-0"
			check(t, "said", w.hb("secret", "set", "new", "--host", "h"), tc.want)
			calls := f.asked()
			if tc.value == "" && len(calls) > 0 || tc.value != "" && (len(calls) != 1 || !strings.Contains(calls[0], `"`+b64(tc.value)+`"`)) {
				t.Errorf("asked %q", calls)
			}
		})
	}
}

const (
	savedNew   = "saved new: static, Authorization, for h\n"
	createdNew = "hbrestd: a wrapper uses it with \"auth\": \"new\" in its request\n"
)

// A value as long as it may be comes in many lines.
func TestPinentryLongValue(t *testing.T) {
	w := newWorld(t, nil)
	long := strings.Repeat("0123456789abcdef", 1024)
	var cases strings.Builder
	cases.WriteString("GETPIN)")
	for part := range slices.Chunk([]byte(long), 900) {
		fmt.Fprintf(&cases, " echo 'D %s';", part)
	}
	cases.WriteString(" echo OK ;;")
	dir, _ := w.script(cases.String())
	p := &pinentry{program: filepath.Join(dir, "pinentry"), env: []string{"PATH=/usr/bin:/bin"}, start: 10 * time.Second}
	got, err := p.ask(context.Background(), dialog{text: strings.Repeat("ä\n", 600), prompt: "Value:"})
	if err != nil || string(got) != long {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	_, log := w.script("GETPIN) i=0; while [ $i -lt 80 ]; do echo \"D " + strings.Repeat("x", 900) + "\"; i=$((i+1)); done; echo OK ;;")
	if _, err := p.ask(context.Background(), dialog{text: strings.Repeat("ä\n", 600), prompt: "Value:"}); !errors.Is(err, errTooLong) {
		t.Errorf("72000 bytes: %v", err)
	}
	for line := range strings.Lines(logged(t, log)) {
		if len(line) > maxAssuanLine {
			t.Errorf("a line of %d bytes was sent", len(line))
		}
		if strings.HasPrefix(line, "SETDESC ") && (len(line) < 900 || !strings.HasSuffix(line, "…\n") || strings.Contains(line, "%0…")) {
			t.Errorf("a long text is sent as %q", line)
		}
	}
}

// A program that says nothing, or takes forever, does not hold up a person.
func TestPinentryHangs(t *testing.T) {
	w := newWorld(t, nil)
	p := &pinentry{program: w.file("silent", "#!/bin/sh\nexec sleep 60\n"), env: []string{"PATH=/usr/bin:/bin"}, start: 50 * time.Millisecond}
	if err := os.Chmod(p.program, 0o700); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	if _, err := p.ask(context.Background(), dialog{text: "t", prompt: "p"}); err == nil || errors.Is(err, errDeclined) {
		t.Errorf("%v", err)
	}
	// Once it has the question, only the context ends it.
	dir, _ := w.script("GETPIN) exec sleep 60 ;;")
	p = &pinentry{program: filepath.Join(dir, "pinentry"), env: []string{"PATH=/usr/bin:/bin"}, start: 10 * time.Second}
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	if _, err := p.ask(ctx, dialog{text: "t", prompt: "p"}); err == nil || ctx.Err() == nil {
		t.Errorf("%v", err)
	}
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestFindPinentry(t *testing.T) {
	w := newWorld(t, nil)
	for _, name := range []string{"a/pinentry-qt", "b/pinentry-curses", "b/pinentry-gnome3", "c/pinentry"} {
		if err := os.Chmod(w.file(name, "#!/bin/sh\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	w.file("d/pinentry", "not a program")
	if err := os.MkdirAll(filepath.Join(w.home, "e", "pinentry"), 0o700); err != nil {
		t.Fatal(err)
	}
	path := func(dirs ...string) string {
		for i, d := range dirs {
			if d != "." && d != "" {
				dirs[i] = filepath.Join(w.home, d)
			}
		}
		return strings.Join(dirs, ":")
	}
	t.Chdir(filepath.Join(w.home, "c"))
	for _, tc := range []struct {
		goos, path, variable, want string
	}{
		{"linux", path("a", "b", "c"), "DISPLAY", "c/pinentry"},
		{"linux", path("a", "b"), "WAYLAND_DISPLAY", "b/pinentry-gnome3"},
		{"linux", path("a"), "GPG_TTY", "a/pinentry-qt"},
		{"linux", path("d", "e", "c"), "GPG_TTY", "c/pinentry"},
		{"linux", path("d", "e"), "GPG_TTY", ""},
		{"linux", path(".", ""), "GPG_TTY", ""}, // not from the folder where somebody happens to be
		{"linux", path("c"), "", ""},
		{"linux", "", "DISPLAY", ""},
		{"darwin", path("c"), "", "c/pinentry"},
	} {
		env := func(name string) (string, bool) {
			switch name {
			case "PATH":
				return tc.path, true
			case tc.variable:
				return "x", true
			case "LD_PRELOAD", "SECRET":
				return "y", true
			}
			return "", false
		}
		got, kept := "", []string(nil)
		if p := findPinentry(env, tc.goos); p != nil {
			got, kept = strings.TrimPrefix(p.program, w.home+"/"), p.env
		}
		if got != tc.want || slices.Contains(kept, "LD_PRELOAD=y") || slices.Contains(kept, "SECRET=y") {
			t.Errorf("%+v: %q with %q", tc, got, kept)
		}
	}
}

// The markers of agents, from the table that agents' detectors share.
var someMarkers = []string{
	"AI_AGENT", "CLAUDECODE", "CLAUDE_CODE", "CURSOR_AGENT", "CURSOR_TRACE_ID", "CODEX_SANDBOX", "CODEX_CI", "CODEX_THREAD_ID",
	"GEMINI_CLI", "COPILOT_MODEL", "COPILOT_ALLOW_ALL", "COPILOT_SOMETHING_NEW", "OPENCODE", "AUGMENT_AGENT", "ANTIGRAVITY_AGENT", "DEVIN", "REPL_ID",
}

// Where an agent's marker is set, nothing that changes a credential runs, whatever
// the agent answers for the person.
func TestAgentsAreRefused(t *testing.T) {
	f := &fake{secrets: someSecrets(), run: nil}
	writes := [][]string{
		{"set", "new", "--host", "h", "--stdin"},
		{"set", "new", "--host", "h"},
		{"rotate", "orders-key", "--stdin", "--yes"},
		{"bind", "orders-key", "--host", "h", "--yes"},
		{"unbind", "orders-key", "--host", "h"},
		{"rm", "orders-key", "--yes"},
	}
	for _, marker := range someMarkers {
		w := newWorld(t, f)
		w.env[marker], w.stdin, w.person = "1", "y\n", true
		w.tty = "/dev/null" // would be there
		for _, args := range writes {
			check(t, marker+" "+args[0], w.hb(append([]string{"secret"}, args...)...), said{
				4, "",
				"hbrestd: error: " + marker + " is set, so an agent seems to run this command, and only a person may change credentials\n" +
					"hbrestd: hint: Run it in a terminal of your own. Where pinentry can show a window, a person can allow it there.\n",
			})
		}
		if got := w.hb("secret", "list"); got.Exit != 0 {
			t.Errorf("%s: reading is for everyone: %+v", marker, got)
		}
	}
	if got := f.asked(); len(got) > 0 {
		t.Errorf("the daemon was asked %q", got)
	}
	for _, harmless := range []string{"CLAUDECODE=", "MY_COPILOT_MODEL=1", "COPILOT_MODEL=", "AGENT=1", "TERM_PROGRAM=vscode", "SSH_AUTH_SOCK=/x"} {
		w := newWorld(t, f)
		name, v, _ := strings.Cut(harmless, "=")
		w.env[name] = v
		if got := w.hb("secret", "rm", "orders-key"); got.Exit != 0 {
			t.Errorf("%s: %+v", harmless, got)
		}
	}
}

// Pinentry's word, and nothing else, lets such a command go on; then a value and
// a yes are asked for there too, never on the terminal, which may be the agent's.
func TestAgentAllowedByPerson(t *testing.T) {
	const allow = `CONFIRM) echo OK ;; GETPIN) echo 'D s3cret-value'; echo OK ;;`
	refused := said{4, "", "hbrestd: error: CLAUDECODE is set, so an agent seems to run this command, and only a person may change credentials\n" +
		"hbrestd: hint: Run it in a terminal of your own. Where pinentry can show a window, a person can allow it there.\n"}
	agent := func(f *fake, cases string) (*world, string) {
		w := newWorld(t, f)
		dir, log := w.script("\t" + cases)
		w.env["PATH"], w.env["DISPLAY"], w.env["CLAUDECODE"] = dir+":/usr/bin:/bin", ":7", "1"
		w.tty, w.person, w.stdin = "/dev/null", true, "y\n"
		return w, log
	}
	f := &fake{}
	w, log := agent(f, allow)
	check(t, "allowed", w.hb("secret", "set", "new", "--host", "h"), said{0, savedNew, createdNew})
	want := `SETTITLE hbrestd
SETDESC CLAUDECODE is set, so an agent seems to run this command. Allow it to store the credential new, for h?
SETOK Allow
SETCANCEL Refuse
CONFIRM
BYE
SETTITLE hbrestd
SETDESC The credential new will be sent to h.
SETPROMPT Value for Authorization:
GETPIN
BYE
`
	if got := logged(t, log); got != want {
		t.Errorf("the program was told:\n%s\nwant:\n%s", got, want)
	}

	f = &fake{secrets: someSecrets()}
	w, _ = agent(f, `CONFIRM) echo 'ERR 83886194 not confirmed <Pinentry>' ;;`)
	check(t, "not confirmed", w.hb("secret", "rm", "orders-key", "--yes"), refused)
	w, _ = agent(f, `CONFIRM) echo 'ERR 83886179 cancelled' ;;`)
	check(t, "cancelled", w.hb("secret", "rotate", "orders-key", "--stdin"), refused)
	w, _ = agent(f, `CONFIRM) echo 'ERR 83918950 no display' ;;`)
	broken := refused
	broken.ErrOut = "hbrestd: pinentry could not ask: error 83918950 no display\n" + broken.ErrOut
	check(t, "no display", w.hb("secret", "bind", "orders-key", "--host", "h"), broken)
	w, _ = agent(f, `CONFIRM) echo OK ;; GETPIN) echo 'ERR 83918950 no display' ;;`)
	check(t, "the terminal is not asked", w.hb("secret", "rotate", "orders-key"), said{4, "", "hbrestd: pinentry could not ask: error 83918950 no display\n" +
		"hbrestd: error: the value cannot be asked for: an agent seems to hold the terminal (CLAUDECODE is set)\n" +
		"hbrestd: hint: Run it in a terminal. A script gives the value on stdin, with --stdin.\n"})
	if got := f.asked(); len(got) > 0 {
		t.Errorf("the daemon was asked %q", got)
	}

	// An agent's --yes is not a person's.
	f = &fake{secrets: someSecrets(), ask: "the token URL is on another site"}
	w, log = agent(f, `SETOK' 'Yes) said=no; echo OK ;; CONFIRM) if [ "$said" = no ]; then echo 'ERR 83886194 not confirmed'; else echo OK; fi ;;`)
	check(t, "--yes", w.hb("secret", "bind", "crm", "--host", "h", "--yes"), said{1, "", "hbrestd: error: nothing was changed\n"})
	if got := logged(t, log); !strings.Contains(got, "SETDESC The token URL is on another site.%0ASend the client secret there?\nSETOK Yes\nSETCANCEL No\nCONFIRM\n") {
		t.Errorf("the program was told:\n%s", got)
	}
	w, _ = agent(f, `CONFIRM) echo OK ;;`)
	check(t, "a person's yes", w.hb("secret", "bind", "crm", "--host", "h"), said{0, "bound crm: oauth2, Authorization, for crm.example.com, h\n", ""})
}

// What is read survives the wiping of what it was read into.
func TestReadValues(t *testing.T) {
	got, err := readValues(strings.NewReader("one-value\ntwo-value\n"), 2)
	if err != nil || len(got) != 2 || string(got[0]) != "one-value" || string(got[1]) != "two-value" {
		t.Errorf("%q, %v", got, err)
	}
	wipe(got)
	if string(got[0]) != "\x00\x00\x00\x00\x00\x00\x00\x00\x00" {
		t.Errorf("%q", got)
	}
	if _, err := readValues(failingReader{}, 1); err == nil {
		t.Error("a broken stdin is not told")
	}
}

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, errors.New("broken") }
