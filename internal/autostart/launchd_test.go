package autostart

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

const (
	guiLine    = "launchctl print gui/1000"
	agentLine  = "launchctl print gui/1000/com.github.hyperbolic-gateway.hbrestd"
	agentName  = "gui/1000/com.github.hyperbolic-gateway.hbrestd"
	notThere   = "Could not find service \"com.github.hyperbolic-gateway.hbrestd\" in domain for login"
	agentPrint = agentName + " = {\n\tactive count = 1\n\tpath = /Users/ada/Library/LaunchAgents/x.plist\n\ttype = LaunchAgent\n\tstate = running\n\n\tprogram = /usr/local/bin/hbrestd\n" +
		"\tdomain = gui/1000\n\truns = 3\n\tpid = 4321\n\tlast exit code = (never exited)\n\tendpoints = {\n\t\tpid = 7\n\t}\n}\n"
)

// acted are the commands that change something.
func (s *scene) acted() []string {
	var list []string
	for _, line := range s.did() {
		if !strings.HasPrefix(line, "launchctl print") && !strings.Contains(line, "/Query") {
			list = append(list, line)
		}
	}
	return list
}

func newMac(t *testing.T) *scene {
	s := newScene(t, "darwin")
	s.o.Program = "/usr/local/bin/hbrestd"
	s.answers[agentLine] = []Output{{Code: 113, Stderr: notThere}}
	return s
}

func (s *scene) plist() string {
	return filepath.Join(s.o.UserHome, "Library", "LaunchAgents", "com.github.hyperbolic-gateway.hbrestd.plist")
}

func TestLaunchdInstall(t *testing.T) {
	s := newMac(t)
	ctx := t.Context()
	got, err := s.service().Install(ctx, false)
	if err != nil {
		t.Fatal(err)
	}
	check(t, "the first", got, &Installed{Unit: s.plist(), Created: true})
	check(t, "its commands", s.acted(), []string{"launchctl enable " + agentName, "install com.github.hyperbolic-gateway.hbrestd"})
	want, err := PropertyList("/usr/local/bin/hbrestd", "", s.o.LogFile)
	if err != nil {
		t.Fatal(err)
	}
	if data, _ := os.ReadFile(s.plist()); string(data) != want {
		t.Errorf("the agent (-want +got):\n%s", cmp.Diff(want, string(data)))
	}
	if info, err := os.Stat(filepath.Dir(s.o.LogFile)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder of the log: %v %v", info, err)
	}

	// The same again while it runs; then with another home: unloaded, and
	// loaded once launchd has let go of it.
	s.answers[agentLine] = []Output{{Stdout: agentPrint}}
	if got, err = s.service().Install(ctx, false); err != nil {
		t.Fatal(err)
	}
	check(t, "the same again", got, &Installed{Unit: s.plist(), Running: true})
	check(t, "its commands", s.acted(), []string{"launchctl enable " + agentName})
	s.o.WrapHome = "/Users/ada/hb"
	gone := Output{Code: 113, Stderr: notThere}
	s.answers[agentLine] = []Output{{Stdout: agentPrint}, {Stdout: agentPrint}, {Stdout: agentPrint}, {Stdout: agentPrint}, gone}
	s.answers["launchctl bootstrap gui/1000 HOME/Library/LaunchAgents/com.github.hyperbolic-gateway.hbrestd.plist"] = []Output{{Code: 5, Stderr: "Bootstrap failed: 5: Input/output error"}, {}}
	if got, err = s.service().Install(ctx, false); err != nil {
		t.Fatal(err)
	}
	check(t, "another home", got, &Installed{
		Unit: s.plist(), Running: true, Restarted: true, Kept: s.plist() + ".edited",
		Changes: []string{"- <dict/>", "+ <key>HB_WRAP_HOME</key>", "+ <string>/Users/ada/hb</string>", "+ <dict>", "+ </dict>"}, // lines are counted, not aligned
	})
	boot := "launchctl bootstrap gui/1000 HOME/Library/LaunchAgents/com.github.hyperbolic-gateway.hbrestd.plist"
	check(t, "its commands", s.acted(), []string{"launchctl enable " + agentName, "launchctl bootout " + agentName, boot, boot})
}

func TestLaunchdState(t *testing.T) {
	for name, tc := range map[string]struct {
		says string
		want State
	}{
		"running": {agentPrint, State{State: "running", PID: 4321, Restarts: 2}},
		"failed":  {strings.NewReplacer("state = running", "state = not running", "\tpid = 4321\n", "", "(never exited)", "1", "runs = 3", "runs = 1").Replace(agentPrint), State{State: "failed", LastExit: &Exit{Code: 1}}},
		"ended":   {strings.NewReplacer("state = running", "state = not running", "\tpid = 4321\n", "", "(never exited)", "0", "runs = 3", "runs = 1").Replace(agentPrint), State{State: "stopped", LastExit: &Exit{}}},
		"killed": {
			strings.NewReplacer("state = running", "state = spawn scheduled", "\tpid = 4321\n", "", "last exit code = (never exited)", "last terminating signal = Killed: 9", "runs = 3", "runs = 1").Replace(agentPrint),
			State{State: "failed", LastExit: &Exit{Code: 9, Signal: true}},
		},
	} {
		s := newMac(t)
		s.write(s.plist(), "x")
		s.answers[agentLine] = []Output{{Stdout: tc.says}}
		tc.want.Manager, tc.want.Installed, tc.want.Unit, tc.want.Enabled, tc.want.Log = "launchd", true, s.plist(), true, s.o.LogFile
		got, err := s.service().State(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		check(t, name, *got, tc.want)
	}

	s := newMac(t)
	got, err := s.service().State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	check(t, "not installed", got, &State{Manager: "launchd", State: "not installed", Log: s.o.LogFile})
	s.write(s.plist(), "x")
	for _, word := range []string{"disabled", "true"} {
		s.answers["launchctl print-disabled gui/1000"] = []Output{{Stdout: "disabled services = {\n\t\"com.github.hyperbolic-gateway.hbrestd\" => " + word + "\n}\n"}}
		if got, err = s.service().State(t.Context()); err != nil {
			t.Fatal(err)
		}
		check(t, "switched off", got, &State{Manager: "launchd", State: "stopped", Installed: true, Unit: s.plist(), Log: s.o.LogFile})
	}
	s.answers[agentLine] = []Output{{Code: -1, Err: errors.New("no such program")}}
	if _, err = s.service().State(t.Context()); !fault.Is(err, "SERVICE_FAILED") {
		t.Errorf("no launchctl: %v", err)
	}
}

func TestLaunchdStartAndStop(t *testing.T) {
	s := newMac(t)
	ctx := t.Context()
	for _, err := range []error{s.service().Start(ctx), s.service().Stop(ctx), s.service().Restart(ctx)} {
		if !fault.Is(err, "SERVICE_NOT_INSTALLED") {
			t.Errorf("not installed: %v", err)
		}
	}
	s.write(s.plist(), "x")
	s.did()
	boot := "launchctl bootstrap gui/1000 HOME/Library/LaunchAgents/com.github.hyperbolic-gateway.hbrestd.plist"
	if err := s.service().Start(ctx); err != nil {
		t.Error(err)
	}
	check(t, "start", s.acted(), []string{"launchctl enable " + agentName, boot})
	if err := s.service().Stop(ctx); err != nil {
		t.Error(err)
	}
	check(t, "stop what is not loaded", s.acted(), nil)
	s.answers[agentLine] = []Output{{Stdout: agentPrint}}
	if err := s.service().Start(ctx); err != nil {
		t.Error(err)
	}
	check(t, "start what is loaded", s.acted(), []string{"launchctl kickstart " + agentName})
	s.answers[agentLine] = []Output{{Stdout: agentPrint}, {Stdout: agentPrint}, {Code: 113}}
	if err := s.service().Restart(ctx); err != nil {
		t.Error(err)
	}
	check(t, "restart", s.acted(), []string{"launchctl bootout " + agentName, boot})

	// An agent that launchd does not let go of, or does not take.
	s.answers[agentLine] = []Output{{Stdout: agentPrint}}
	if err := s.service().Stop(ctx); !fault.Is(err, "SERVICE_FAILED") {
		t.Errorf("%v", err)
	}
	if n := len(s.acted()); n != 1 {
		t.Errorf("%d commands", n)
	}
	s.answers[agentLine] = []Output{{Code: 113}}
	s.answers[boot] = []Output{{Code: 5, Stderr: "Bootstrap failed: 5: Input/output error"}}
	if err := s.service().Start(ctx); !fault.Is(err, "SERVICE_FAILED") || !strings.Contains(err.Error(), "Input/output error") {
		t.Errorf("%v", err)
	}

	// Without a graphical session, as over ssh.
	s = newMac(t)
	s.write(s.plist(), "x")
	s.answers[guiLine] = []Output{{Code: 113}}
	s.answers["launchctl print user/1000/com.github.hyperbolic-gateway.hbrestd"] = []Output{{Code: 113}}
	if err := s.service().Start(ctx); err != nil {
		t.Error(err)
	}
	check(t, "over ssh", s.acted(), []string{"launchctl enable user/1000/com.github.hyperbolic-gateway.hbrestd", strings.Replace(boot, "gui/", "user/", 1)})
}

func TestLaunchdUninstall(t *testing.T) {
	s := newMac(t)
	got, err := s.service().Uninstall(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	check(t, "not installed", got, &Removed{Unit: s.plist()})
	s.write(s.plist(), "x")
	s.answers[agentLine] = []Output{{Stdout: agentPrint}, {Stdout: agentPrint}, {Code: 113}}
	s.did()
	if got, err = s.service().Uninstall(t.Context()); err != nil {
		t.Fatal(err)
	}
	check(t, "removed", got, &Removed{Was: true, Unit: s.plist()})
	check(t, "its commands", s.acted(), []string{"launchctl bootout " + agentName})
	if _, err := os.Stat(s.plist()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("left behind: %v", err)
	}
}
