package autostart

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// A scene is a service manager that answers as it is told, and writes down
// what it is asked.
type scene struct {
	t       *testing.T
	o       Options
	asked   []string
	answers map[string][]Output // command line -> answers; the last one stays
	native  []string
}

func newScene(t *testing.T, goos string) *scene {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the paths of these tests are those of unix")
	}
	s := &scene{t: t, answers: map[string][]Output{}}
	home := t.TempDir()
	s.o = Options{
		GOOS: goos, Platform: "linux-systemd", Program: "/usr/bin/hbrestd", UserHome: home, UserID: "1000", UserName: "ada", LogFile: filepath.Join(home, "logs", "hbrestd.log"),
		Run: func(_ context.Context, argv ...string) Output {
			line := strings.ReplaceAll(strings.Join(argv, " "), home, "HOME")
			s.asked = append(s.asked, line)
			list := s.answers[line]
			if len(list) == 0 {
				return Output{}
			}
			if len(list) > 1 {
				s.answers[line] = list[1:]
			}
			return list[0]
		},
		Native:  func(d Definition) Native { return nativeFake{s, d} },
		Sleep:   func(context.Context, time.Duration) {},
		Changed: func(string) time.Time { return time.Time{} },
		Linger:  func(string) (bool, bool) { return false, true },
	}
	s.answers[unitPathLine] = []Output{{Stdout: home + "/.config/systemd/user.control " + home + "/.config/systemd/user /etc/systemd/user /usr/lib/systemd/user\n"}}
	return s
}

type nativeFake struct {
	s *scene
	d Definition
}

func (n nativeFake) path() string {
	if n.s.o.GOOS == "darwin" {
		return filepath.Join(n.s.o.UserHome, "Library", "LaunchAgents", n.d.Name+".plist")
	}
	return filepath.Join(n.s.o.UserHome, ".config", "systemd", "user", n.d.Name+".service")
}

func (n nativeFake) Install() error {
	n.s.native = append(n.s.native, "install "+n.d.Name)
	if err := os.MkdirAll(filepath.Dir(n.path()), 0o755); err != nil {
		return err
	}
	return os.WriteFile(n.path(), []byte(n.d.Text), 0o644)
}

func (n nativeFake) Uninstall() error {
	n.s.native = append(n.s.native, "uninstall "+n.d.Name)
	return os.Remove(n.path())
}

const (
	unitPathLine = "systemctl --user show --property=UnitPath --value"
	showLine     = "systemctl --user show hbrestd.service --property=LoadState,LoadError,ActiveState,SubState,UnitFileState,FragmentPath,DropInPaths,MainPID,NRestarts,Result,StatusText," +
		"ExecMainCode,ExecMainStatus,ExecMainStartTimestamp,ExecMainExitTimestamp,ActiveEnterTimestamp,InactiveEnterTimestamp,StateChangeTimestamp,NeedDaemonReload"
)

// shows says what the unit is like, one answer after the other.
func (s *scene) shows(answers ...string) {
	s.answers[showLine] = nil
	for _, a := range answers {
		s.answers[showLine] = append(s.answers[showLine], Output{Stdout: strings.ReplaceAll(a, " ", "\n")})
	}
}

// did are the commands that were given since the last time, without those that
// only ask.
func (s *scene) did() []string {
	var list []string
	for _, line := range s.asked {
		if line != showLine && line != unitPathLine {
			list = append(list, strings.TrimPrefix(line, "systemctl --user "))
		}
	}
	list = append(list, s.native...)
	s.asked, s.native = nil, nil
	return list
}

func (s *scene) service() *Service {
	s.t.Helper()
	svc, err := New(s.o)
	if err != nil {
		s.t.Fatal(err)
	}
	return svc
}

func (s *scene) unit() string {
	return filepath.Join(s.o.UserHome, ".config", "systemd", "user", "hbrestd.service")
}

func (s *scene) write(path, text string) {
	s.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) text(program, home string) string {
	s.t.Helper()
	text, err := UnitText(program, home)
	if err != nil {
		s.t.Fatal(err)
	}
	return text
}

func check[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

const (
	absent  = "LoadState=not-found ActiveState=inactive SubState=dead"
	running = "LoadState=loaded ActiveState=active SubState=running UnitFileState=enabled MainPID=42"
	stopped = "LoadState=loaded ActiveState=inactive SubState=dead UnitFileState=enabled"
)

func TestSystemdInstall(t *testing.T) {
	s := newScene(t, "linux")
	unit, ctx := s.unit(), t.Context()
	s.shows(absent)
	got, err := s.service().Install(ctx, false)
	if err != nil {
		t.Fatal(err)
	}
	check(t, "the first", got, &Installed{Unit: unit, Created: true})
	check(t, "its commands", s.did(), []string{"install hbrestd"}) // which enables and reloads
	if data, _ := os.ReadFile(unit); string(data) != signed(s.text("/usr/bin/hbrestd", "")) {
		t.Errorf("the unit:\n%s", data)
	}

	s.shows(running + " DropInPaths=/x/a.conf")
	got, err = s.service().Install(ctx, false)
	if err != nil {
		t.Fatal(err)
	}
	check(t, "the same again", got, &Installed{Unit: unit, DropIns: []string{"/x/a.conf"}, Running: true})
	check(t, "its commands", s.did(), []string{"daemon-reload", "enable hbrestd.service"})

	if got, err = s.service().Install(ctx, true); err != nil || !got.Restarted {
		t.Errorf("the same, but another version runs: %+v %v", got, err)
	}
	check(t, "its commands", s.did(), []string{"daemon-reload", "enable hbrestd.service", "reset-failed hbrestd.service", "restart hbrestd.service"})

	s.o.WrapHome = "/srv/hb"
	if got, err = s.service().Install(ctx, false); err != nil {
		t.Fatal(err)
	}
	check(t, "another home", got, &Installed{Unit: unit, DropIns: []string{"/x/a.conf"}, Running: true, Restarted: true, Changes: []string{"+ Environment=HB_WRAP_HOME=/srv/hb"}})
	s.did()

	s.shows(stopped)
	s.o.WrapHome = ""
	if got, err = s.service().Install(ctx, true); err != nil {
		t.Fatal(err)
	}
	check(t, "what does not run is not started", got, &Installed{Unit: unit, Changes: []string{"- Environment=HB_WRAP_HOME=/srv/hb"}})
	check(t, "its commands", s.did(), []string{"daemon-reload", "enable hbrestd.service"})
}

func TestSystemdKeepsAnEditedUnit(t *testing.T) {
	s := newScene(t, "linux")
	s.shows(stopped)
	edits := []string{"[Service]\nExecStart=/mine run\n", strings.Replace(signed(s.text("/usr/bin/hbrestd", "")), "RestartSec=1", "RestartSec=9", 1), "third"}
	for i, mine := range edits {
		s.write(s.unit(), mine)
		got, err := s.service().Install(t.Context(), false)
		if err != nil {
			t.Fatal(err)
		}
		want := s.unit() + ".edited"
		if i > 0 {
			want += fmt.Sprintf("-%d", i+1)
		}
		if data, err := os.ReadFile(want); got.Kept != want || err != nil || string(data) != mine {
			t.Errorf("%d: kept as %q: %v", i, got.Kept, err)
		}
	}
	s.write(s.unit(), edits[1]) // kept already
	if got, err := s.service().Install(t.Context(), false); err != nil || got.Kept != s.unit()+".edited-2" {
		t.Errorf("%+v %v", got, err)
	}
	// An older version of ours is no edit.
	s.write(s.unit(), signed("[Service]\nExecStart=/old run\n"))
	if got, err := s.service().Install(t.Context(), false); err != nil || got.Kept != "" || len(got.Changes) == 0 {
		t.Errorf("%+v %v", got, err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(s.unit()), ".hbrestd*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestSystemdReplacedProgram(t *testing.T) {
	for changed, want := range map[string]bool{"09:59:59": false, "10:00:00": false, "10:00:01": true} {
		s := newScene(t, "linux")
		s.write(s.unit(), signed(s.text("/usr/bin/hbrestd", "")))
		s.answers[showLine] = []Output{{Stdout: strings.ReplaceAll(running, " ", "\n") + "\nExecMainStartTimestamp=Tue 2026-12-01 10:00:00 UTC\n"}}
		s.o.Changed = func(path string) time.Time {
			at, _ := time.Parse(time.DateTime, "2026-12-01 "+changed)
			if path != "/usr/bin/hbrestd" {
				t.Errorf("asked for %s", path)
			}
			return at
		}
		if got, err := s.service().Install(t.Context(), false); err != nil || got.Restarted != want {
			t.Errorf("changed at %s: %+v %v", changed, got, err)
		}
	}
}

func TestSystemdPackagedUnit(t *testing.T) {
	s := newScene(t, "linux")
	packaged := filepath.Join(s.o.UserHome, "usr", "hbrestd.service")
	s.write(packaged, s.text("/usr/bin/hbrestd", ""))
	s.shows(stopped + " FragmentPath=" + packaged)
	got, err := s.service().Install(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	check(t, "the package's own program", got, &Installed{Unit: packaged, Packaged: true})
	check(t, "its commands", s.did(), []string{"enable hbrestd.service"})

	removed, err := s.service().Uninstall(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	check(t, "removed", removed, &Removed{Was: true, Unit: packaged, Packaged: true})
	check(t, "its commands", s.did(), []string{"disable hbrestd.service", "reset-failed hbrestd.service"})

	s.o.Program = "/home/ada/bin/hbrestd"
	if got, err = s.service().Install(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	check(t, "another program", got, &Installed{Unit: s.unit(), Created: true})
}

func TestSystemdElsewhere(t *testing.T) {
	s := newScene(t, "linux")
	config := filepath.Join(s.o.UserHome, "conf")
	s.answers[unitPathLine] = []Output{{Stdout: config + "/systemd/user.control " + config + "/systemd/user /etc/systemd/user\n"}}
	s.shows(absent)
	got, err := s.service().Install(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	unit := filepath.Join(config, "systemd", "user", "hbrestd.service")
	check(t, "installed", got, &Installed{Unit: unit, Created: true})
	check(t, "its commands", s.did(), []string{"daemon-reload", "enable hbrestd.service"})
	if _, err := os.Stat(unit); err != nil {
		t.Error(err)
	}
	s.shows(stopped)
	if _, err := s.service().Uninstall(t.Context()); err != nil {
		t.Fatal(err)
	}
	check(t, "its commands", s.did(), []string{"disable hbrestd.service", "daemon-reload", "reset-failed hbrestd.service"})
	if _, err := os.Stat(unit); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("left behind: %v", err)
	}
}

// What Install must not touch, and what it says then.
func TestSystemdRefusals(t *testing.T) {
	unmask := "Allow it again with `systemctl --user unmask hbrestd.service`, then repeat the command."
	for name, tc := range map[string]struct {
		set        func(s *scene)
		says, hint string
	}{
		"masked": {func(s *scene) { s.shows("LoadState=masked UnitFileState=masked ActiveState=inactive") }, "is masked", unmask},
		"masked until the next start": {
			func(s *scene) { s.shows("LoadState=loaded UnitFileState=masked-runtime ActiveState=inactive") },
			"is masked", "Allow it again with `systemctl --user unmask --runtime hbrestd.service`, then repeat the command.",
		},
		"a link": {func(s *scene) {
			s.shows(stopped)
			s.write(s.unit()+".x", "")
			if err := os.Symlink("/dotfiles/hbrestd.service", s.unit()); err != nil {
				s.t.Fatal(err)
			}
		}, "is a link to /dotfiles/hbrestd.service", "Change the unit there, or remove the link and repeat the command."},
		"a folder": {func(s *scene) {
			s.shows(stopped)
			if err := os.MkdirAll(s.unit(), 0o755); err != nil {
				s.t.Fatal(err)
			}
		}, "it is not a file", catalogueHint},
		"sudo": {func(s *scene) {
			s.o.UserID, s.o.Getenv = "0", func(name string) string { return map[string]string{"SUDO_USER": "ada"}[name] }
		}, "root's session", "Run it without sudo: hbrestd is a service of your own user."},
		"a path": {func(s *scene) { s.o.Program = "/a\nb" }, "has a control character", catalogueHint},
		"after su": {func(s *scene) {
			s.answers[unitPathLine] = []Output{{Code: 1, Stderr: "Failed to connect to bus: No medium found\n"}}
		}, "no systemd user manager answers for this user: Failed to connect to bus: No medium found", "Log in as this user, without su or sudo; or try `export XDG_RUNTIME_DIR=/run/user/1000` first. For a server: docs/services.md."},
		"no systemctl": {func(s *scene) {
			s.answers[unitPathLine] = []Output{{Code: -1, Err: errors.New("not found")}}
		}, "no service manager that hbrestd knows", "Put this line where your session starts programs: /usr/bin/hbrestd run"},
		"no systemctl, and a path with a space": {func(s *scene) {
			s.o.Program = "/opt/my programs/hbrestd"
			s.answers[unitPathLine] = []Output{{Code: -1, Err: errors.New("not found")}}
		}, "no service manager that hbrestd knows", `Put this line where your session starts programs: '/opt/my programs/hbrestd' run`},
		"no folder for units": {func(s *scene) {
			s.answers[unitPathLine] = []Output{{Stdout: "/etc/systemd/user\n"}}
			s.shows(absent)
		}, "looks for units in no folder below", catalogueHint},
		"enable fails": {func(s *scene) {
			s.shows(stopped)
			s.write(s.unit(), signed(s.text("/usr/bin/hbrestd", "")))
			s.answers["systemctl --user enable hbrestd.service"] = []Output{{Code: 1, Stderr: "Failed to enable unit: Read-only file system\n"}}
		}, "systemctl --user enable hbrestd.service failed: Failed to enable unit: Read-only file system", catalogueHint},
		"the library fails": {func(s *scene) {
			s.shows(absent)
			s.o.Native = func(d Definition) Native {
				s.write(s.unit(), "") // as the library leaves it
				return broken{errors.New("no space left on device")}
			}
		}, "no space left on device", catalogueHint},
	} {
		s := newScene(t, "linux")
		tc.set(s)
		before, beforeErr := os.Lstat(s.unit())
		_, err := s.service().Install(t.Context(), true)
		e, ok := errors.AsType[*fault.Error](err)
		if !ok || e.Code != "SERVICE_FAILED" || !strings.Contains(e.Message, tc.says) || e.Hint != tc.hint {
			t.Errorf("%s: %+v", name, err)
		}
		after, afterErr := os.Lstat(s.unit())
		if (beforeErr == nil) != (afterErr == nil) || before != nil && before.Mode() != after.Mode() {
			t.Errorf("%s: the unit was touched: %v, %v", name, beforeErr, afterErr)
		}
	}
}

const catalogueHint = "`hbrestd service status` shows its state, `hbrestd service logs` what it said."

func TestNoManager(t *testing.T) {
	for _, o := range []Options{{GOOS: "linux", Platform: "unix-systemv", Program: "/b"}, {GOOS: "freebsd", Platform: "freebsd", Program: "/b"}} {
		if _, err := New(o); !fault.Is(err, "SERVICE_FAILED") || !strings.Contains(err.(*fault.Error).Hint, "/b run") {
			t.Errorf("%s: %v", o.Platform, err)
		}
	}
}

func TestSystemdUninstall(t *testing.T) {
	s := newScene(t, "linux")
	s.shows(absent)
	got, err := s.service().Uninstall(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	check(t, "not installed", got, &Removed{Unit: s.unit()})
	check(t, "its commands", s.did(), nil)

	s.write(s.unit(), signed(s.text("/usr/bin/hbrestd", "")))
	s.shows(running + " DropInPaths=/x/a.conf")
	if got, err = s.service().Uninstall(t.Context()); err != nil {
		t.Fatal(err)
	}
	check(t, "removed", got, &Removed{Was: true, Unit: s.unit(), Left: []string{"/x/a.conf"}})
	check(t, "its commands", s.did(), []string{"stop hbrestd.service", "reset-failed hbrestd.service", "uninstall hbrestd"})

	s.write(s.unit(), "mine")
	s.shows(stopped)
	if got, err = s.service().Uninstall(t.Context()); err != nil {
		t.Fatal(err)
	}
	check(t, "an edited one", got, &Removed{Was: true, Unit: s.unit(), Left: []string{s.unit() + ".edited"}})

	s.shows("LoadState=masked UnitFileState=masked ActiveState=inactive")
	if _, err = s.service().Uninstall(t.Context()); !fault.Is(err, "SERVICE_FAILED") {
		t.Errorf("masked: %v", err)
	}
}

// Expected by systemctl(1) and systemd.exec(5).
func TestSystemdState(t *testing.T) {
	linger := false
	on := true
	base := State{Manager: "systemd", Installed: true, Unit: "/u/hbrestd.service", Enabled: true, Linger: &linger}
	with := func(change func(*State)) *State {
		st := base
		change(&st)
		return &st
	}
	const loaded = "LoadState=loaded\nUnitFileState=enabled\nFragmentPath=/u/hbrestd.service\n"
	for name, tc := range map[string]struct {
		says string
		want *State
	}{
		"running": {
			loaded + "ActiveState=active\nSubState=running\nMainPID=42\nNRestarts=3\nStatusText=listening on http://127.0.0.1:4111, 2 wrappers\nDropInPaths=/u/a.conf /u/b.conf\n" +
				"ActiveEnterTimestamp=Tue 2026-12-01 10:00:00 UTC\nExecMainCode=0\nNeedDaemonReload=yes\n",
			with(func(s *State) {
				s.State, s.PID, s.Restarts, s.Since, s.Stale = "running", 42, 3, "2026-12-01T10:00:00Z", true
				s.Says, s.DropIns = "listening on http://127.0.0.1:4111, 2 wrappers", []string{"/u/a.conf", "/u/b.conf"}
			}),
		},
		"starting": {loaded + "ActiveState=activating\nSubState=start\nMainPID=42\n", with(func(s *State) { s.State, s.PID = "starting", 42 })},
		"restarting": {
			loaded + "ActiveState=activating\nSubState=auto-restart\nExecMainCode=2\nExecMainStatus=9\nExecMainExitTimestamp=Tue 2026-12-01 10:00:00 UTC\nResult=signal\n",
			with(func(s *State) { s.State, s.LastExit = "restarting", &Exit{Code: 9, Signal: true, Result: "signal"} }),
		},
		"stopping": {loaded + "ActiveState=deactivating\nSubState=stop-sigterm\nMainPID=42\n", with(func(s *State) { s.State, s.PID = "stopping", 42 })},
		"failed": {
			loaded + "ActiveState=failed\nSubState=failed\nExecMainCode=1\nExecMainStatus=8\nExecMainExitTimestamp=Tue 2026-12-01 10:00:00 UTC\nResult=exit-code\nStateChangeTimestamp=Tue 2026-12-01 10:00:01 UTC\n",
			with(func(s *State) {
				s.State, s.LastExit, s.Since = "failed", &Exit{Code: 8, Result: "exit-code"}, "2026-12-01T10:00:01Z"
			}),
		},
		"stopped": {
			loaded + "ActiveState=inactive\nSubState=dead\nExecMainCode=1\nExecMainStatus=0\nExecMainExitTimestamp=Tue 2026-12-01 10:00:00 UTC\nResult=success\nInactiveEnterTimestamp=n/a\n",
			with(func(s *State) { s.State, s.LastExit = "stopped", &Exit{} }),
		},
		"never started": {loaded + "ActiveState=inactive\nSubState=dead\nExecMainCode=0\nExecMainStatus=0\nExecMainExitTimestamp=\n", with(func(s *State) { s.State = "stopped" })},
		"disabled":      {"LoadState=loaded\nFragmentPath=/u/hbrestd.service\nUnitFileState=disabled\nActiveState=inactive\n", with(func(s *State) { s.State, s.Enabled = "stopped", false })},
		"masked":        {"LoadState=masked\nUnitFileState=masked\nFragmentPath=/u/hbrestd.service\nActiveState=inactive\n", with(func(s *State) { s.State, s.Enabled = "masked", false })},
		"not installed": {"LoadState=not-found\nActiveState=inactive\n", &State{Manager: "systemd", State: "not installed", Linger: &linger}},
	} {
		s := newScene(t, "linux")
		s.answers[showLine] = []Output{{Stdout: tc.says}}
		got, err := s.service().State(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		check(t, name, got, tc.want)
	}
	s := newScene(t, "linux")
	s.shows(running)
	s.o.Linger = func(user string) (bool, bool) { return user == "ada", true }
	if got, _ := s.service().State(t.Context()); !cmp.Equal(got.Linger, &on) {
		t.Errorf("linger: %+v", got)
	}
	s.o.Linger = func(string) (bool, bool) { return false, false }
	if got, _ := s.service().State(t.Context()); got.Linger != nil {
		t.Errorf("linger: %+v", got)
	}
}

func TestSystemdStart(t *testing.T) {
	s := newScene(t, "linux")
	ctx := t.Context()
	s.shows(stopped)
	for verb, f := range map[string]func(context.Context) error{"start": s.service().Start, "restart": s.service().Restart} {
		if err := f(ctx); err != nil {
			t.Error(err)
		}
		check(t, verb, s.did(), []string{"reset-failed hbrestd.service", verb + " hbrestd.service"})
	}
	if err := s.service().Stop(ctx); err != nil {
		t.Error(err)
	}
	check(t, "stop", s.did(), []string{"stop hbrestd.service"})

	s.answers["systemctl --user start hbrestd.service"] = []Output{{Code: 1, Stderr: "Job for hbrestd.service failed because the control process exited with error code.\n"}}
	dead := "LoadState=loaded\nActiveState=failed\nExecMainExitTimestamp=Tue 2026-12-01 10:00:00 UTC\n"
	for after, want := range map[string]string{
		dead + "ExecMainCode=1\nExecMainStatus=8\nStatusText=ADDRESS_IN_USE: 127.0.0.1:4111 is already in use by python3 (pid 7)\n": "the service did not start: ADDRESS_IN_USE: 127.0.0.1:4111 is already in use by python3 (pid 7)",
		dead + "ExecMainCode=1\nExecMainStatus=203\nResult=exit-code\n":                                                             "the service did not start: its program cannot be run (203)",
		dead + "ExecMainCode=1\nExecMainStatus=226\nResult=exit-code\n":                                                             "the service did not start: systemd could not set it up (exit code 226)",
		dead + "ExecMainCode=2\nExecMainStatus=15\nResult=timeout\n":                                                                "the service did not start: it did not get ready in time",
		dead + "ExecMainCode=2\nExecMainStatus=6\nResult=watchdog\n":                                                                "the service did not start: it hung, and was ended by the watchdog",
		dead + "ExecMainCode=2\nExecMainStatus=9\nResult=signal\n":                                                                  "the service did not start: signal 9 ended it",
		dead + "ExecMainCode=1\nExecMainStatus=1\nResult=exit-code\n":                                                               "the service did not start: it ended with exit code 1",
		"LoadState=loaded\nActiveState=inactive\n":                                                                                  "systemctl --user start hbrestd.service failed: Job for hbrestd.service failed because the control process exited with error code.",
	} {
		s.answers[showLine] = []Output{{Stdout: "LoadState=loaded\nActiveState=inactive\n"}, {Stdout: after}}
		if err := s.service().Start(ctx); !fault.Is(err, "SERVICE_FAILED") || err.Error() != "SERVICE_FAILED: "+want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
	s.shows(absent)
	for _, f := range []func(context.Context) error{s.service().Start, s.service().Stop, s.service().Restart} {
		if err := f(ctx); !fault.Is(err, "SERVICE_NOT_INSTALLED") {
			t.Errorf("not installed: %v", err)
		}
	}
	s.answers[showLine] = []Output{{Stdout: "LoadState=bad-setting\nFragmentPath=/u\nLoadError=org.freedesktop.systemd1.BadUnitSetting \"Unit has a bad setting.\"\n"}}
	if err := s.service().Start(ctx); !fault.Is(err, "SERVICE_FAILED") || !strings.Contains(err.Error(), "systemd cannot read /u") {
		t.Errorf("a bad unit: %v", err)
	}
}

func TestSystemdLogs(t *testing.T) {
	s := newScene(t, "linux")
	var argv string
	said, fails := "", error(nil)
	s.o.Stream = func(_ context.Context, stdout, stderr io.Writer, args ...string) error {
		argv = strings.Join(args, " ")
		_, _ = io.WriteString(stdout, "line\n")
		_, _ = io.WriteString(stderr, said)
		return fails
	}
	var out, errOut bytes.Buffer
	r := LogRequest{Lines: 7, Stdout: &out, Stderr: &errOut}
	if err := s.service().Logs(t.Context(), r); err != nil || out.String() != "line\n" || errOut.Len() != 0 {
		t.Errorf("%v %q %q", err, &out, &errOut)
	}
	check(t, "the command", argv, "journalctl --user --unit=hbrestd.service --no-pager --output=short-iso --lines=7")
	r.Follow = true
	said = "Hint: something\n"
	if err := s.service().Logs(t.Context(), r); err != nil || errOut.String() != "Hint: something\n" || !strings.HasSuffix(argv, " --follow") {
		t.Errorf("%v %q %s", err, &errOut, argv)
	}
	said = "No journal files were found.\n"
	if err := s.service().Logs(t.Context(), r); !fault.Is(err, "SERVICE_FAILED") || !strings.Contains(err.(*fault.Error).Hint, "_SYSTEMD_USER_UNIT=hbrestd.service _UID=1000") {
		t.Errorf("no journal: %v", err)
	}
	said, fails = "", errors.New("exit status 1")
	if err := s.service().Logs(t.Context(), r); !fault.Is(err, "SERVICE_FAILED") {
		t.Errorf("a failure: %v", err)
	}
}

// Expected by what systemd 252 prints for such paths.
func TestList(t *testing.T) {
	for text, want := range map[string][]string{
		"": nil, " \n": nil, "/a": {"/a"}, "/a /b\n": {"/a", "/b"}, `"/a home/x" /b "/c d"`: {"/a home/x", "/b", "/c d"}, `"/a\"b\\c\$d e"`: {`/a"b\c$d e`}, `""`: {""},
	} {
		check(t, text, list(text), want)
	}
}
