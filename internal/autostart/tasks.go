package autostart

import (
	"context"
	_ "embed"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf16"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// tasks is the service as a logon task of Windows. A service of Windows' own
// kind would run as another account, which cannot read the user's credentials.
type tasks struct{ o Options }

// taskXML is the task. The text in capitals is replaced.
//
//go:embed task.xml
var taskXML string

// TaskText is the definition of the logon task of a user, by SID. There is no
// environment in it, so home is an argument; "" leaves it out.
func TaskText(program, home, log, sid string) (string, error) {
	arguments := "run --final-exit=0"
	for _, p := range [][3]string{{"", "the path of hbrestd", program}, {"--home", "HB_WRAP_HOME", home}, {"--log", "the path of the log", log}} {
		if err := standable(p[1], p[2]); err != nil {
			return "", err
		}
		if strings.Contains(p[2], "%") {
			return "", failed("%s has a %%, which the task scheduler reads as the name of a variable: %q", p[1], p[2])
		}
		if p[0] != "" && p[2] != "" {
			// A backslash before the closing quotation mark would escape it.
			arguments += " " + p[0] + ` "` + strings.TrimRight(p[2], `\`) + `"`
		}
	}
	return strings.NewReplacer("USER", xmlText(sid), "PROGRAM", xmlText(program), "ARGUMENTS", xmlText(arguments)).Replace(taskXML), nil
}

// name is the task's: one for each user, since all share one folder.
func (t *tasks) name() string { return `\hbrestd ` + t.o.UserID }

func (t *tasks) ctl(ctx context.Context, args ...string) Output {
	return t.o.Run(ctx, append([]string{"schtasks.exe"}, args...)...)
}

// definition reads the task as the scheduler has it.
func (t *tasks) definition(ctx context.Context) (string, bool, error) {
	out := t.ctl(ctx, "/Query", "/TN", t.name(), "/XML")
	if out.Err != nil {
		return "", false, unsupported(t.o).With(fault.Cause(out.Err))
	}
	return out.Stdout, out.ok(), nil
}

func (t *tasks) state(ctx context.Context) (*State, error) {
	text, there, err := t.definition(ctx)
	if err != nil {
		return nil, err
	}
	st := &State{Manager: "task scheduler", Installed: there, State: "not installed", Log: t.o.LogFile}
	if there {
		// Whether it runs is said in the system's language only: the daemon
		// itself is asked.
		st.State, st.Unit, st.Enabled = "unknown", t.name(), enabledTask(text)
	}
	return st, nil
}

// enabledTask reports whether neither the task nor its trigger is switched off.
func enabledTask(text string) bool { return !strings.Contains(text, "<Enabled>false</Enabled>") }

func (t *tasks) install(ctx context.Context, restart bool) (*Installed, error) {
	text, err := TaskText(t.o.Program, t.o.WrapHome, t.o.LogFile, t.o.UserID)
	if err != nil {
		return nil, err
	}
	old, there, err := t.definition(ctx)
	if err != nil {
		return nil, err
	}
	r := &Installed{Unit: t.name(), Created: !there}
	if there {
		r.Changes = changes(element(old, "Command")+"\n"+element(old, "Arguments"), element(text, "Command")+"\n"+element(text, "Arguments"))
	}
	file := filepath.Join(filepath.Dir(t.o.LogFile), "hbrestd-task.xml")
	if err = os.MkdirAll(filepath.Dir(file), 0o700); err == nil {
		err = os.WriteFile(file, utf16Text(text), 0o600)
	}
	if err != nil {
		return nil, failed("%s cannot be written: %v", file, err)
	}
	defer func() { _ = os.Remove(file) }()
	if out := t.ctl(ctx, "/Create", "/TN", t.name(), "/XML", file, "/F"); !out.ok() {
		return nil, failed("schtasks /Create failed: %s", out.said())
	}
	if !restart && len(r.Changes) == 0 {
		return r, nil
	}
	if r.Running = t.quit(ctx); r.Running {
		r.Restarted = true
		return r, t.start(ctx)
	}
	return r, nil
}

// element is the text of the first element of that name.
func element(text, name string) string {
	_, rest, ok := strings.Cut(text, "<"+name+">")
	if !ok {
		return ""
	}
	value, _, _ := strings.Cut(rest, "</"+name+">")
	return value
}

// utf16Text is what schtasks takes without a doubt about the encoding.
func utf16Text(text string) []byte {
	data := []byte{0xff, 0xfe}
	for _, u := range utf16.Encode([]rune(strings.ReplaceAll(text, "\n", "\r\n"))) {
		data = binary.LittleEndian.AppendUint16(data, u)
	}
	return data
}

// quit asks the daemon to stop; it reports whether one was there.
func (t *tasks) quit(ctx context.Context) bool { return t.o.Quit != nil && t.o.Quit(ctx) == nil }

func (t *tasks) uninstall(ctx context.Context) (*Removed, error) {
	_, there, err := t.definition(ctx)
	if err != nil {
		return nil, err
	}
	r := &Removed{Was: there, Unit: t.name()}
	if !there {
		return r, nil
	}
	t.quit(ctx)
	t.ctl(ctx, "/End", "/TN", t.name())
	if out := t.ctl(ctx, "/Delete", "/TN", t.name(), "/F"); !out.ok() {
		return nil, failed("schtasks /Delete failed: %s", out.said())
	}
	return r, nil
}

func (t *tasks) start(ctx context.Context) error {
	if _, there, err := t.definition(ctx); err != nil || !there {
		if err == nil {
			err = notInstalled()
		}
		return err
	}
	if out := t.ctl(ctx, "/Run", "/TN", t.name()); !out.ok() {
		return failed("schtasks /Run failed: %s", out.said())
	}
	return nil
}

// stop asks the daemon first: the scheduler can only kill it.
func (t *tasks) stop(ctx context.Context) error {
	_, there, err := t.definition(ctx)
	switch {
	case err != nil:
		return err
	case !there:
		return notInstalled()
	case t.quit(ctx):
		return nil
	}
	t.ctl(ctx, "/End", "/TN", t.name()) // fails when it does not run
	return nil
}

func (t *tasks) restart(ctx context.Context) error {
	if err := t.stop(ctx); err != nil {
		return err
	}
	t.o.Sleep(ctx, time.Second) // the scheduler notices the end of a task a moment later, and would ignore the start
	return t.start(ctx)
}

func (t *tasks) logs(ctx context.Context, r LogRequest) error { return tail(ctx, t.o, r) }
