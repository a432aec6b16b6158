package autostart

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// systemd is the service as a unit of the user manager.
type systemd struct{ o Options }

// ctl runs systemctl --user.
func (s *systemd) ctl(ctx context.Context, args ...string) Output {
	return s.o.Run(ctx, append([]string{"systemctl", "--user"}, args...)...)
}

// must is ctl whose failure is an error.
func (s *systemd) must(ctx context.Context, args ...string) error {
	if out := s.ctl(ctx, args...); !out.ok() {
		return s.trouble("systemctl --user "+strings.Join(args, " "), out)
	}
	return nil
}

// trouble explains why a call of systemctl failed.
func (s *systemd) trouble(what string, out Output) error {
	switch {
	case out.Err != nil:
		return unsupported(s.o).With(fault.Cause(out.Err))
	case strings.Contains(out.Stderr, "Failed to connect to bus"), strings.Contains(out.Stderr, "System has not been booted with systemd"):
		hint := "Log in as this user, without su or sudo. For a server: docs/services.md."
		if s.o.Getenv("XDG_RUNTIME_DIR") == "" { // as after su and sudo
			hint = fmt.Sprintf("Log in as this user, without su or sudo; or try `export XDG_RUNTIME_DIR=/run/user/%s` first. For a server: docs/services.md.", s.o.UserID)
		}
		return failed("no systemd user manager answers for this user: %s", out.said()).With(fault.Hint("%s", hint))
	}
	return failed("%s failed: %s", what, out.said())
}

// properties are what show asks for.
var properties = []string{
	"LoadState", "LoadError", "ActiveState", "SubState", "UnitFileState", "FragmentPath", "DropInPaths", "MainPID", "NRestarts", "Result", "StatusText",
	"ExecMainCode", "ExecMainStatus", "ExecMainStartTimestamp", "ExecMainExitTimestamp", "ActiveEnterTimestamp", "InactiveEnterTimestamp", "StateChangeTimestamp", "NeedDaemonReload",
}

// show reads the unit's properties.
func (s *systemd) show(ctx context.Context) (map[string]string, error) {
	out := s.ctl(ctx, "show", unitName, "--property="+strings.Join(properties, ","))
	if !out.ok() {
		return nil, s.trouble("systemctl --user show "+unitName, out)
	}
	p := map[string]string{}
	for line := range strings.Lines(out.Stdout) {
		if name, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "="); ok {
			p[name] = value
		}
	}
	return p, nil
}

func (s *systemd) state(ctx context.Context) (*State, error) {
	p, err := s.show(ctx)
	if err != nil {
		return nil, err
	}
	st := &State{
		Manager: "systemd", Installed: p["LoadState"] != "not-found", Unit: p["FragmentPath"], DropIns: list(p["DropInPaths"]),
		Enabled: strings.HasPrefix(p["UnitFileState"], "enabled"), Says: p["StatusText"], Stale: p["NeedDaemonReload"] == "yes",
	}
	st.PID, _ = strconv.Atoi(p["MainPID"])
	st.Restarts, _ = strconv.Atoi(p["NRestarts"])
	if on, known := s.o.Linger(s.o.UserName); known {
		st.Linger = &on
	}
	since := "StateChangeTimestamp"
	switch active, sub := p["ActiveState"], p["SubState"]; {
	case masked(p):
		st.State = "masked"
	case active == "active":
		st.State, since = "running", "ActiveEnterTimestamp"
	case active == "activating" && sub == "auto-restart":
		st.State = "restarting"
	case active == "activating":
		st.State = "starting"
	case active == "deactivating":
		st.State = "stopping"
	case active == "failed":
		st.State = "failed"
	case !st.Installed:
		st.State = "not installed"
	default:
		st.State, since = "stopped", "InactiveEnterTimestamp"
	}
	st.Since = moment(p[since])
	if st.State != "running" && st.State != "stopping" {
		st.LastExit = lastExit(p)
	}
	return st, nil
}

func masked(p map[string]string) bool {
	return p["LoadState"] == "masked" || strings.HasPrefix(p["UnitFileState"], "masked")
}

// lastExit is how the main process ended, or nil.
func lastExit(p map[string]string) *Exit {
	if p["ExecMainExitTimestamp"] == "" || p["ExecMainCode"] == "0" {
		return nil
	}
	e := &Exit{Signal: p["ExecMainCode"] != "1"} // CLD_EXITED; the others are signals
	e.Code, _ = strconv.Atoi(p["ExecMainStatus"])
	if p["Result"] != "success" {
		e.Result = p["Result"]
	}
	return e
}

// timestamp is how systemctl prints a time, in UTC.
const timestamp = "Mon 2006-01-02 15:04:05 MST"

// moment turns systemd's time into RFC 3339; what it cannot read is left out.
func moment(text string) string {
	t, err := time.Parse(timestamp, text)
	if err != nil {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// list reads paths as systemctl prints them: apart by blanks, those with
// blanks in double quotes, with a backslash before what would end or change
// them there. None is nil.
func list(text string) []string {
	var words []string
	var word strings.Builder
	quoted, escaped, any := false, false, false
	for _, r := range strings.TrimSpace(text) + " " {
		switch {
		case escaped:
			word.WriteRune(r)
			escaped = false
		case quoted && r == '\\':
			escaped = true
		case r == '"':
			quoted, any = !quoted, true
		case (r == ' ' || r == '\n') && !quoted:
			if any {
				words = append(words, word.String())
			}
			word.Reset()
			any = false
		default:
			word.WriteRune(r)
			any = true
		}
	}
	return words
}

// unmask names the way out of a mask.
func (s *systemd) unmask(p map[string]string, path string) error {
	where := p["FragmentPath"]
	if where == "" {
		where = path
	}
	command := "systemctl --user unmask " + unitName
	if p["UnitFileState"] == "masked-runtime" {
		command = "systemctl --user unmask --runtime " + unitName
	}
	return failed("%s is masked: somebody has forbidden its start (%s leads to nothing)", unitName, where).
		With(fault.Hint("Allow it again with `%s`, then repeat the command.", command))
}

// unitPath is where the user's own units are: what the manager says, since it
// may run with another XDG_CONFIG_HOME than this process.
func (s *systemd) unitPath(ctx context.Context) (string, error) {
	home := filepath.Join(s.o.UserHome, ".config", "systemd", "user")
	out := s.ctl(ctx, "show", "--property=UnitPath", "--value")
	if !out.ok() {
		return "", s.trouble("systemctl --user show", out)
	}
	dirs := list(out.Stdout)
	if len(dirs) == 0 || slices.Contains(dirs, home) {
		return filepath.Join(home, unitName), nil
	}
	if config := s.o.Getenv("XDG_CONFIG_HOME"); config != "" {
		if dir := filepath.Join(config, "systemd", "user"); slices.Contains(dirs, dir) {
			return filepath.Join(dir, unitName), nil
		}
	}
	for _, dir := range dirs {
		if strings.HasSuffix(dir, "/systemd/user") && within(s.o.UserHome, dir) && !strings.Contains(dir, "/share/") {
			return filepath.Join(dir, unitName), nil
		}
	}
	return "", failed("the systemd user manager looks for units in no folder below %s: %s", s.o.UserHome, strings.Join(dirs, " "))
}

func within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}

func (s *systemd) install(ctx context.Context, restart bool) (*Installed, error) {
	if s.o.UserID == "0" && s.o.Getenv("SUDO_USER") != "" {
		return nil, failed("this is root's session, and the service would be root's").
			With(fault.Hint("Run it without sudo: hbrestd is a service of your own user."))
	}
	text, err := UnitText(s.o.Program, s.o.WrapHome)
	if err != nil {
		return nil, err
	}
	path, err := s.unitPath(ctx)
	if err != nil {
		return nil, err
	}
	p, err := s.show(ctx)
	if err != nil {
		return nil, err
	}
	if masked(p) {
		return nil, s.unmask(p, path)
	}
	r := &Installed{Unit: path, DropIns: list(p["DropInPaths"]), Running: p["ActiveState"] == "active"}
	old, there, err := ours(path)
	if err != nil {
		return nil, err
	}
	if packaged := p["FragmentPath"]; !there && packaged != "" && packaged != path && s.suits(packaged) {
		r.Unit, r.Packaged = packaged, true
		if err := s.must(ctx, "enable", unitName); err != nil {
			return nil, err
		}
		return r, s.again(ctx, p, r, restart)
	}
	if there {
		err = s.renew(ctx, path, old, text, r)
	} else {
		r.Created = true
		err = s.create(ctx, path, text)
	}
	if err != nil {
		return nil, err
	}
	if now, err := s.show(ctx); err == nil { // of a unit that was not there, no drop-ins were told
		r.DropIns = list(now["DropInPaths"])
	}
	return r, s.again(ctx, p, r, restart || len(r.Changes) > 0 || r.Created)
}

// ours reads the unit's file, and refuses what Install must not replace.
func ours(path string) (text string, there bool, err error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		to, _ := os.Readlink(path)
		return "", false, failed("%s is a link to %s, which something else keeps", path, to).
			With(fault.Hint("Change the unit there, or remove the link and repeat the command."))
	}
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is not a file")
	}
	var data []byte
	if err == nil {
		data, err = os.ReadFile(path)
	}
	if err != nil {
		return "", false, failed("%s cannot be read: %v", path, err)
	}
	return string(data), true, nil
}

// suits reports whether a package's unit starts this program in this home.
func (s *systemd) suits(packaged string) bool {
	data, err := os.ReadFile(packaged)
	return err == nil && s.o.WrapHome == "" && strings.Contains("\n"+string(data), "\nExecStart="+quoteProgram(s.o.Program)+" run\n")
}

// create installs a unit where there is none.
func (s *systemd) create(ctx context.Context, path, text string) error {
	if path != filepath.Join(s.o.UserHome, ".config", "systemd", "user", unitName) {
		if err := replace(path, signed(text)); err != nil {
			return failed("%s cannot be written: %v", path, err)
		}
		return s.enable(ctx)
	}
	err := s.o.Native(Definition{Name: strings.TrimSuffix(unitName, ".service"), Program: s.o.Program, Text: signed(text)}).Install()
	if err != nil {
		// It leaves a file without content, which systemd reads as a mask.
		_ = os.Remove(path)
		return failed("the unit could not be installed: %v", err)
	}
	return nil
}

// renew brings a unit up to date.
func (s *systemd) renew(ctx context.Context, path, old, text string, r *Installed) error {
	if old != signed(text) {
		if edited(old) && strings.TrimSpace(old) != "" {
			kept, err := setAside(path, old)
			if err != nil {
				return failed("the edited unit cannot be kept: %v", err)
			}
			r.Kept = kept
		}
		r.Changes = changes(old, text)
		if err := replace(path, signed(text)); err != nil {
			return failed("%s cannot be written: %v", path, err)
		}
	}
	return s.enable(ctx)
}

func (s *systemd) enable(ctx context.Context) error {
	if err := s.must(ctx, "daemon-reload"); err != nil {
		return err
	}
	return s.must(ctx, "enable", unitName)
}

// again starts a running service again when it runs an old unit or program.
func (s *systemd) again(ctx context.Context, before map[string]string, r *Installed, restart bool) error {
	if !r.Running {
		return nil
	}
	// The process does not show which file it was started from.
	started, err := time.Parse(timestamp, before["ExecMainStartTimestamp"])
	replaced := err == nil && s.o.Changed(s.o.Program).After(started)
	if !restart && !replaced && before["NeedDaemonReload"] != "yes" {
		return nil
	}
	if err := s.restart(ctx); err != nil {
		return err
	}
	r.Restarted = true
	return nil
}

func (s *systemd) uninstall(ctx context.Context) (*Removed, error) {
	path, err := s.unitPath(ctx)
	if err != nil {
		return nil, err
	}
	p, err := s.show(ctx)
	if err != nil {
		return nil, err
	}
	r := &Removed{Was: p["LoadState"] != "not-found", Unit: path, Left: list(p["DropInPaths"])}
	info, err := os.Lstat(path)
	there := err == nil
	if masked(p) && (!there || !info.Mode().IsRegular() || info.Size() == 0) {
		return nil, s.unmask(p, path)
	}
	if !r.Was && !there {
		return r, nil
	}
	if active := p["ActiveState"]; active != "inactive" && active != "failed" {
		if err := s.stop(ctx); err != nil {
			return nil, err
		}
	}
	old := ""
	if there {
		if old, _, err = ours(path); err != nil {
			return nil, err
		}
	}
	if there && edited(old) {
		kept, err := setAside(path, old)
		if err != nil {
			return nil, failed("the edited unit cannot be kept: %v", err)
		}
		r.Left = append(r.Left, kept)
	}
	if err := s.remove(ctx, path, there); err != nil {
		return nil, err
	}
	s.ctl(ctx, "reset-failed", unitName) // fails when there is nothing to forget
	if !there {
		r.Unit, r.Packaged = p["FragmentPath"], true
	}
	return r, nil
}

// remove disables the unit and takes its file away, if it is the user's.
func (s *systemd) remove(ctx context.Context, path string, there bool) error {
	if there && path == filepath.Join(s.o.UserHome, ".config", "systemd", "user", unitName) {
		if err := s.o.Native(Definition{Name: strings.TrimSuffix(unitName, ".service"), Program: s.o.Program}).Uninstall(); err != nil {
			return failed("the unit could not be removed: %v", err)
		}
		return nil
	}
	if err := s.must(ctx, "disable", unitName); err != nil || !there {
		return err
	}
	if err := os.Remove(path); err != nil {
		return failed("the unit could not be removed: %v", err)
	}
	return s.must(ctx, "daemon-reload")
}

// ready refuses to act on a service that cannot be started.
func (s *systemd) ready(ctx context.Context) (map[string]string, error) {
	p, err := s.show(ctx)
	switch {
	case err != nil:
		return nil, err
	case masked(p):
		return nil, s.unmask(p, "")
	case p["LoadState"] == "not-found":
		return nil, notInstalled()
	case p["LoadState"] == "bad-setting" || p["LoadState"] == "error":
		return nil, failed("systemd cannot read %s: %s", p["FragmentPath"], strings.Trim(p["LoadError"], `"`)).
			With(fault.Hint("`systemd-analyze --user verify %s` names the line; `hbrestd service install` writes the unit again.", unitName))
	}
	return p, nil
}

func (s *systemd) start(ctx context.Context) error   { return s.begin(ctx, "start") }
func (s *systemd) restart(ctx context.Context) error { return s.begin(ctx, "restart") }

func (s *systemd) begin(ctx context.Context, verb string) error {
	if _, err := s.ready(ctx); err != nil {
		return err
	}
	s.ctl(ctx, "reset-failed", unitName) // a person asks, so earlier failures do not count
	out := s.ctl(ctx, verb, unitName)
	if out.ok() {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return s.why(ctx, verb, out)
}

// why says what the daemon told before it gave up.
func (s *systemd) why(ctx context.Context, verb string, out Output) error {
	p, err := s.show(ctx)
	if err != nil || p["LoadState"] != "loaded" {
		return s.trouble("systemctl --user "+verb+" "+unitName, out)
	}
	hint := fault.Hint("`hbrestd service logs` shows what it said; `hbrestd run` starts it here, in the foreground.")
	if says := p["StatusText"]; says != "" {
		return failed("the service did not start: %s", fault.Shorten(says, 1000)).With(hint)
	}
	e := lastExit(p)
	if e == nil {
		return s.trouble("systemctl --user "+verb+" "+unitName, out)
	}
	return failed("the service did not start: %s", e).With(hint)
}

// String is the exit in words.
func (e *Exit) String() string {
	switch {
	case e.Result == "timeout":
		return "it did not get ready in time"
	case e.Result == "watchdog":
		return "it hung, and was ended by the watchdog"
	case e.Signal:
		return fmt.Sprintf("signal %d ended it", e.Code)
	case e.Code == 203:
		return "its program cannot be run (203)"
	case e.Code >= 200 && e.Code < 250:
		return fmt.Sprintf("systemd could not set it up (exit code %d)", e.Code)
	}
	return fmt.Sprintf("it ended with exit code %d", e.Code)
}

func (s *systemd) stop(ctx context.Context) error {
	p, err := s.show(ctx)
	if err != nil {
		return err
	}
	if p["LoadState"] == "not-found" && p["ActiveState"] == "inactive" {
		return notInstalled()
	}
	return s.must(ctx, "stop", unitName)
}

func (s *systemd) logs(ctx context.Context, r LogRequest) error {
	argv := []string{"journalctl", "--user", "--unit=" + unitName, "--no-pager", "--output=short-iso", "--lines=" + strconv.Itoa(r.Lines)}
	if r.Follow {
		argv = append(argv, "--follow")
	}
	var complaint strings.Builder
	err := s.o.Stream(ctx, r.Stdout, &complaint, argv...)
	why := strings.TrimSpace(complaint.String())
	switch {
	case ctx.Err() != nil:
		return nil
	case strings.Contains(why, "No journal files were"): // with exit code 0
	case err != nil && why == "":
		why = err.Error()
	case err == nil && why == "":
		return nil
	case err == nil:
		_, err = fmt.Fprintln(r.Stderr, why)
		return err
	}
	return failed("the journal cannot be read: %s", fault.Shorten(why, 500)).
		With(fault.Hint("Root may read it: `journalctl _SYSTEMD_USER_UNIT=%s _UID=%s`. Or see it here, with `hbrestd run`.", unitName, s.o.UserID))
}
