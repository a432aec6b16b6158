package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/hyperbolic-gateway/hb-rest/internal/config"
)

// A pinentry is a small program that asks a person in a window of its own, or
// on a terminal that it is told. It speaks Assuan over its stdin and stdout:
// lines of a command, answered by "D" lines with data and then "OK" or "ERR".
type pinentry struct {
	program string
	env     []string // all that it gets of the environment
	options []string // "NAME=VALUE"
	tty     string   // the terminal that it may ask on; "" none
	start   time.Duration
}

// A dialog is one question. Without a prompt it is answered with yes or no.
type dialog struct {
	text   string // may have several lines
	prompt string // "Client secret:"
	ok     string // on a button; "" is pinentry's own word, and no button
	cancel string // the same
}

// pinentryNames are tried in this order. The first is what the system's
// administrator has chosen.
var pinentryNames = []string{"pinentry", "pinentry-gnome3", "pinentry-qt", "pinentry-curses", "pinentry-mac"}

const (
	// pinentryStart is how long a program may take until it has heard the
	// question. Then the person has all the time.
	pinentryStart = 10 * time.Second
	maxAssuanLine = 1000 // bytes, with the line break; the protocol's own limit
)

// pinentryVariables is what a window and its language depend on.
var pinentryVariables = []string{
	"PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "TERM", "GPG_TTY", "LANG", "LC_ALL", "LC_CTYPE", "LC_MESSAGES", "LANGUAGE",
	"DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR", "XDG_SESSION_TYPE", "XDG_CURRENT_DESKTOP",
	"XDG_DATA_DIRS", "XDG_CONFIG_HOME", "QT_QPA_PLATFORM", "GDK_BACKEND", "PINENTRY_USER_DATA", "__CF_USER_TEXT_ENCODING",
	"SystemRoot", "APPDATA", "LOCALAPPDATA", "USERPROFILE", "TEMP",
}

// findPinentry is the pinentry that can reach the person: there is a display,
// or GPG_TTY says which terminal is theirs. nil: none can.
func findPinentry(env config.Env, goos string) *pinentry {
	get := func(name string) string { v, _ := env(name); return v }
	desktop := goos == "darwin" || goos == "windows" || get("DISPLAY") != "" || get("WAYLAND_DISPLAY") != ""
	if !desktop && get("GPG_TTY") == "" {
		return nil
	}
	for _, name := range pinentryNames {
		program := onPath(get("PATH"), name, goos)
		if program == "" {
			continue
		}
		p := &pinentry{program: program, tty: get("GPG_TTY"), start: pinentryStart}
		for _, v := range pinentryVariables {
			if value, ok := env(v); ok {
				p.env = append(p.env, v+"="+value)
			}
		}
		for _, o := range [][2]string{{"ttyname", "GPG_TTY"}, {"ttytype", "TERM"}, {"lc-ctype", "LC_CTYPE"}, {"lc-messages", "LC_MESSAGES"}} {
			value := get(o[1])
			if strings.HasPrefix(o[0], "lc-") { // as a C library looks for them
				value = firstSet(get("LC_ALL"), value, get("LANG"))
			}
			if value != "" {
				p.options = append(p.options, o[0]+"="+value)
			}
		}
		return p
	}
	return nil
}

func firstSet(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

// onPath looks for a program in absolute folders only: one in the folder where
// a person happens to be is not theirs.
func onPath(path, name, goos string) string {
	if goos == "windows" {
		name += ".exe"
	}
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue
		}
		p := filepath.Join(dir, name)
		if info, err := os.Stat(p); err == nil && info.Mode().IsRegular() && (goos == "windows" || info.Mode()&0o111 != 0) {
			return p
		}
	}
	return ""
}

// An assuanError is an ERR line. Its text is the program's, not the person's.
type assuanError struct {
	code int
	text string
}

func (e *assuanError) Error() string { return fmt.Sprintf("error %d %s", e.code, e.text) }

// refused reports whether it was the person who ended the dialog, or let its
// time run out.
func (e *assuanError) refused() bool {
	switch e.code & 0xffff { // the rest says which program the error comes from
	case 62, 99, 114, 198: // timeout, cancelled, not confirmed, fully cancelled
		return true
	}
	return false
}

// ask shows a dialog and returns what was typed. errDeclined is the person's
// no; any other error means that nobody could be asked.
func (p *pinentry) ask(ctx context.Context, d dialog) (answer []byte, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.program)
	cmd.Env, cmd.WaitDelay = p.env, time.Second
	cmd.Cancel = func() error { return end(cmd.Process) }
	defer keepTerminal(p.tty)()
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("starting pinentry: %w", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("starting pinentry: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting pinentry: %w", err)
	}
	defer func() {
		_, _ = io.WriteString(in, "BYE\n") // it may have ended
		in.Close()
		late := time.AfterFunc(time.Second, cancel) // until then it may tidy up a terminal
		defer late.Stop()
		_ = cmd.Wait()
	}()
	c := &assuan{in: in, out: out}
	defer c.wipe()
	hurry := time.AfterFunc(p.start, cancel)
	defer hurry.Stop()
	if err = p.prepare(c, d); err == nil {
		hurry.Stop()
		final := "CONFIRM"
		if d.prompt != "" {
			final = "GETPIN"
		}
		answer, err = c.command(final)
	}
	var e *assuanError
	if errors.As(err, &e) && e.refused() {
		return nil, errDeclined
	}
	return answer, err
}

func (p *pinentry) prepare(c *assuan, d dialog) error {
	if _, err := c.answer(); err != nil { // it greets
		return err
	}
	for _, o := range p.options {
		_, err := c.command("OPTION " + assuanText(o))
		if e := (*assuanError)(nil); err != nil && !errors.As(err, &e) { // it may not know one
			return err
		}
	}
	set := [][2]string{{"SETTITLE", "hbrestd"}, {"SETDESC", d.text}, {"SETPROMPT", d.prompt}, {"SETOK", d.ok}, {"SETCANCEL", d.cancel}}
	for _, s := range set {
		if s[1] == "" {
			continue
		}
		if _, err := c.command(s[0] + " " + assuanText(s[1])); err != nil {
			return err
		}
	}
	return nil
}

// assuanText escapes an argument, and cuts what no line can hold.
func assuanText(s string) string {
	const room = maxAssuanLine - len("SETPROMPT \n")
	var b strings.Builder
	for _, r := range s {
		part := string(r)
		if r < ' ' || r == '%' || r == 0x7f {
			part = fmt.Sprintf("%%%02X", r)
		}
		if b.Len()+len(part)+len("…") > room {
			return b.String() + "…"
		}
		b.WriteString(part)
	}
	return b.String()
}

// An assuan is one conversation. What it reads may be a value, so it keeps it
// in buffers of its own and wipes them.
type assuan struct {
	in  io.Writer
	out io.Reader
	buf []byte // read, not used yet
}

func (c *assuan) wipe() { clear(c.buf[:cap(c.buf)]) }

// command sends a line and reads the answer.
func (c *assuan) command(line string) ([]byte, error) {
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		return nil, fmt.Errorf("talking to pinentry: %w", err)
	}
	return c.answer()
}

// answer reads up to OK or ERR, and returns the data before it.
func (c *assuan) answer() ([]byte, error) {
	var data []byte
	fail := func(err error) ([]byte, error) { clear(data); return nil, err }
	for {
		line, err := c.line()
		if err != nil {
			return fail(fmt.Errorf("talking to pinentry: %w", err))
		}
		word, rest := cutWord(line)
		switch word {
		case "OK":
			clear(line)
			return data, nil
		case "ERR":
			number, text, _ := strings.Cut(string(rest), " ")
			code, err := strconv.Atoi(number)
			if err != nil {
				return fail(errors.New("pinentry's error cannot be read"))
			}
			return fail(&assuanError{code, clean(text)})
		case "D":
			data, err = appendWiping(data, unescape(rest))
			clear(line)
			if err != nil {
				return fail(err)
			}
		case "INQUIRE": // it wants something from us; there is nothing
			if _, err := io.WriteString(c.in, "END\n"); err != nil {
				return fail(fmt.Errorf("talking to pinentry: %w", err))
			}
		case "S", "#", "":
		default:
			if !strings.HasPrefix(word, "#") {
				return fail(errors.New("this program does not talk like a pinentry"))
			}
		}
	}
}

func cutWord(line []byte) (string, []byte) {
	for i, c := range line {
		if c == ' ' {
			return string(line[:min(i, 8)]), line[i+1:]
		}
	}
	return string(line[:min(len(line), 8)]), nil
}

// line is the next line, which stays valid until the next call.
func (c *assuan) line() ([]byte, error) {
	if c.buf == nil {
		c.buf = make([]byte, 0, 2*maxAssuanLine)
	}
	for {
		for i, b := range c.buf {
			if b == '\n' {
				line := c.buf[:i:i]
				c.buf = c.buf[i+1:]
				if i > 0 && line[i-1] == '\r' { // a Windows build's
					line = line[: i-1 : i-1]
				}
				return line, nil
			}
		}
		if len(c.buf) >= maxAssuanLine {
			return nil, errors.New("a line is too long")
		}
		if cap(c.buf)-len(c.buf) < maxAssuanLine { // the start of the old one was used
			fresh := make([]byte, len(c.buf), 2*maxAssuanLine)
			copy(fresh, c.buf)
			c.wipe()
			c.buf = fresh
		}
		n, err := c.out.Read(c.buf[len(c.buf):cap(c.buf)])
		c.buf = c.buf[:len(c.buf)+n]
		if n == 0 && err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, fs.ErrClosed) {
				err = errors.New("it has ended")
			}
			return nil, err
		}
	}
}

// unescape undoes %XX in place.
func unescape(p []byte) []byte {
	out := p[:0]
	for i := 0; i < len(p); i++ {
		if p[i] == '%' && i+2 < len(p) {
			if n, err := strconv.ParseUint(string(p[i+1:i+3]), 16, 8); err == nil {
				out = append(out, byte(n))
				i += 2
				continue
			}
		}
		out = append(out, p[i])
	}
	return out
}

// maxEntry bounds what is read as one value, in bytes: more than a credential
// may have, so that the daemon is the one to refuse it.
const maxEntry = 64 << 10

var errTooLong = fmt.Errorf("the value has over %d KiB", maxEntry>>10)

// appendWiping is append that wipes what it leaves behind.
func appendWiping(to, more []byte) ([]byte, error) {
	if len(to)+len(more) > maxEntry {
		clear(to)
		return nil, errTooLong
	}
	if cap(to)-len(to) < len(more) {
		fresh := make([]byte, len(to), max(2*cap(to), len(to)+len(more), 256))
		copy(fresh, to)
		clear(to)
		to = fresh
	}
	return append(to, more...), nil
}

// dropRune takes the last character away, and wipes it.
func dropRune(p []byte) []byte {
	_, n := utf8.DecodeLastRune(p)
	clear(p[len(p)-n:])
	return p[:len(p)-n]
}
