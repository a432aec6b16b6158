package autostart

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	agents "github.com/hyperbolic-gateway/hb-rest/launchd"
)

const label = "com.github.hyperbolic-gateway.hbrestd"

// settle is how often, and how long apart, launchd is asked again while it
// still takes an agent away.
const (
	settleTimes = 50
	settleWait  = 100 * time.Millisecond
)

// launchd is the service as a LaunchAgent of macOS.
type launchd struct{ o Options }

// PropertyList is the LaunchAgent for a program at an absolute path, which
// writes what it logs to log; home as in UnitText.
func PropertyList(program, home, log string) (string, error) {
	for _, p := range [][2]string{{"the path of hbrestd", program}, {"HB_WRAP_HOME", home}, {"the path of the log", log}} {
		if err := standable(p[0], p[1]); err != nil {
			return "", err
		}
	}
	text := strings.Replace(agents.Agent, "<string>/usr/local/bin/hbrestd</string>", "<string>"+xmlText(program)+"</string>", 1)
	text = strings.Replace(text, "<string>/Users/Shared/hbrestd.log</string>", "<string>"+xmlText(log)+"</string>", 1)
	if home != "" {
		text = strings.Replace(text, "\t<dict/>\n", "\t<dict>\n\t\t<key>HB_WRAP_HOME</key>\n\t\t<string>"+xmlText(home)+"</string>\n\t</dict>\n", 1)
	}
	return text, nil
}

var xmlEscaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&apos;")

// xmlText escapes a text that has passed standable.
func xmlText(s string) string { return xmlEscaper.Replace(s) }

func (l *launchd) path() string {
	return filepath.Join(l.o.UserHome, "Library", "LaunchAgents", label+".plist")
}

func (l *launchd) ctl(ctx context.Context, args ...string) Output {
	return l.o.Run(ctx, append([]string{"launchctl"}, args...)...)
}

// domain is the user's graphical session, or without one the user's own.
func (l *launchd) domain(ctx context.Context) string {
	if gui := "gui/" + l.o.UserID; l.ctl(ctx, "print", gui).ok() {
		return gui
	}
	return "user/" + l.o.UserID
}

var (
	plistState    = regexp.MustCompile(`(?m)^\tstate = (.+)$`)
	plistPID      = regexp.MustCompile(`(?m)^\tpid = (\d+)$`)
	plistExit     = regexp.MustCompile(`(?m)^\tlast exit code = (\d+)`)
	plistSignal   = regexp.MustCompile(`(?m)^\tlast terminating signal = .*?(\d+)`)
	plistRuns     = regexp.MustCompile(`(?m)^\truns = (\d+)$`)
	plistDisabled = regexp.MustCompile(`"` + regexp.QuoteMeta(label) + `" => (true|disabled)`)
)

func number(re *regexp.Regexp, text string) (int, bool) {
	m := re.FindStringSubmatch(text)
	if m == nil {
		return 0, false
	}
	n, err := strconv.Atoi(m[1])
	return n, err == nil
}

func (l *launchd) state(ctx context.Context) (*State, error) {
	domain := l.domain(ctx)
	st := &State{Manager: "launchd", State: "not installed", Log: l.o.LogFile}
	if _, err := os.Lstat(l.path()); err == nil {
		st.Installed, st.State, st.Unit = true, "stopped", l.path()
		st.Enabled = !plistDisabled.MatchString(l.ctl(ctx, "print-disabled", domain).Stdout)
	}
	out := l.ctl(ctx, "print", domain+"/"+label)
	if out.Err != nil {
		return nil, unsupported(l.o).With(fault.Cause(out.Err))
	}
	if !out.ok() {
		return st, nil // not loaded
	}
	st.Installed = true
	st.PID, _ = number(plistPID, out.Stdout)
	if n, ok := number(plistRuns, out.Stdout); ok && n > 1 {
		st.Restarts = n - 1
	}
	if sig, ok := number(plistSignal, out.Stdout); ok {
		st.LastExit = &Exit{Code: sig, Signal: true}
	} else if code, ok := number(plistExit, out.Stdout); ok {
		st.LastExit = &Exit{Code: code}
	}
	switch m := plistState.FindStringSubmatch(out.Stdout); {
	case m != nil && m[1] == "running":
		st.State, st.LastExit = "running", nil
	case st.LastExit != nil && (st.LastExit.Signal || st.LastExit.Code != 0):
		st.State = "failed"
	default:
		st.State = "stopped"
	}
	return st, nil
}

func (l *launchd) loaded(ctx context.Context, domain string) bool {
	return l.ctl(ctx, "print", domain+"/"+label).ok()
}

func (l *launchd) install(ctx context.Context, restart bool) (*Installed, error) {
	text, err := PropertyList(l.o.Program, l.o.WrapHome, l.o.LogFile)
	if err != nil {
		return nil, err
	}
	before, err := l.state(ctx)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(l.o.LogFile), 0o700); err != nil {
		return nil, failed("the folder of the log cannot be made: %v", err)
	}
	r := &Installed{Unit: l.path(), Running: before.Running()}
	old, there, err := ours(l.path())
	switch {
	case err != nil:
		return nil, err
	case !there:
		r.Created = true
		if err := l.o.Native(Definition{Name: label, Program: l.o.Program, Text: text}).Install(); err != nil {
			_ = os.Remove(l.path())
			return nil, failed("the agent could not be installed: %v", err)
		}
	case old != text:
		// There is no line in it that tells an older version from an edited one.
		if r.Kept, err = setAside(l.path(), old); err == nil {
			err = replace(l.path(), text)
		}
		if err != nil {
			return nil, failed("%s cannot be written: %v", l.path(), err)
		}
		r.Changes = changes(old, text)
	}
	domain := l.domain(ctx)
	if out := l.ctl(ctx, "enable", domain+"/"+label); !out.ok() {
		return nil, failed("launchctl enable failed: %s", out.said())
	}
	if !r.Running || len(r.Changes) == 0 && !r.Created && !restart {
		return r, nil
	}
	r.Restarted = true
	if err := l.unload(ctx, domain); err != nil {
		return nil, err
	}
	return r, l.load(ctx, domain)
}

func (l *launchd) uninstall(ctx context.Context) (*Removed, error) {
	st, err := l.state(ctx)
	if err != nil {
		return nil, err
	}
	r := &Removed{Was: st.Installed, Unit: l.path()}
	if !st.Installed {
		return r, nil
	}
	if err := l.unload(ctx, l.domain(ctx)); err != nil {
		return nil, err
	}
	// The library's own removal first asks launchctl for what is done already.
	if err := os.Remove(l.path()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, failed("the agent could not be removed: %v", err)
	}
	return r, nil
}

// unload ends the agent and waits until it is gone.
func (l *launchd) unload(ctx context.Context, domain string) error {
	if !l.loaded(ctx, domain) {
		return nil
	}
	out := l.ctl(ctx, "bootout", domain+"/"+label)
	for range settleTimes {
		if !l.loaded(ctx, domain) {
			return nil
		}
		if l.o.Sleep(ctx, settleWait); ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return failed("launchctl bootout %s/%s did not end it: %s", domain, label, out.said())
}

// load starts the agent. Just after an unload launchd may refuse for a moment.
func (l *launchd) load(ctx context.Context, domain string) error {
	var out Output
	for range settleTimes {
		if out = l.ctl(ctx, "bootstrap", domain, l.path()); out.ok() || l.loaded(ctx, domain) {
			return nil
		}
		if l.o.Sleep(ctx, settleWait); ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return failed("launchctl bootstrap %s %s failed: %s", domain, l.path(), out.said()).
		With(fault.Hint("Log in to the Mac's own screen once as this user, or run `hbrestd run` in a terminal; `hbrestd service logs` shows what it said."))
}

func (l *launchd) start(ctx context.Context) error {
	if _, err := os.Lstat(l.path()); err != nil {
		return notInstalled()
	}
	domain := l.domain(ctx)
	if l.loaded(ctx, domain) {
		if out := l.ctl(ctx, "kickstart", domain+"/"+label); !out.ok() {
			return failed("launchctl kickstart failed: %s", out.said())
		}
		return nil
	}
	l.ctl(ctx, "enable", domain+"/"+label) // what is disabled cannot be loaded; if this fails, that tells
	return l.load(ctx, domain)
}

func (l *launchd) stop(ctx context.Context) error {
	domain := l.domain(ctx)
	if _, err := os.Lstat(l.path()); err != nil && !l.loaded(ctx, domain) {
		return notInstalled()
	}
	return l.unload(ctx, domain)
}

func (l *launchd) restart(ctx context.Context) error {
	if _, err := os.Lstat(l.path()); err != nil {
		return notInstalled()
	}
	domain := l.domain(ctx)
	if err := l.unload(ctx, domain); err != nil {
		return err
	}
	return l.load(ctx, domain)
}

func (l *launchd) logs(ctx context.Context, r LogRequest) error { return tail(ctx, l.o, r) }
