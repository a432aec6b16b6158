package autostart

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

const (
	taskName = `\hbrestd S-1-5-21-1001`
	queryXML = "schtasks.exe /Query /TN " + taskName + " /XML"
)

func newWindows(t *testing.T) *scene {
	s := newScene(t, "windows")
	s.o.Program, s.o.UserID = `C:\hb\hbrestd.exe`, "S-1-5-21-1001"
	s.answers[queryXML] = []Output{{Code: 1, Stderr: "ERROR: The system cannot find the file specified."}}
	return s
}

func TestTasksInstall(t *testing.T) {
	s := newWindows(t)
	ctx := t.Context()
	create := "schtasks.exe /Create /TN " + taskName + " /XML HOME/logs/hbrestd-task.xml /F"
	text, err := TaskText(s.o.Program, "", s.o.LogFile, s.o.UserID)
	if err != nil {
		t.Fatal(err)
	}
	run := s.o.Run
	s.o.Run = func(ctx context.Context, argv ...string) Output {
		if argv[1] == "/Create" {
			if data, err := os.ReadFile(argv[5]); err != nil || string(data) != string(utf16Text(text)) {
				t.Errorf("the task's file: %v", err)
			}
		}
		return run(ctx, argv...)
	}
	got, err := s.service().Install(ctx, false)
	if err != nil {
		t.Fatal(err)
	}
	check(t, "the first", got, &Installed{Unit: taskName, Created: true})
	check(t, "its commands", s.acted(), []string{create})
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(s.o.LogFile), "*.xml")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}

	s.answers[queryXML] = []Output{{Stdout: text}}
	if got, err = s.service().Install(ctx, false); err != nil {
		t.Fatal(err)
	}
	check(t, "the same again", got, &Installed{Unit: taskName})
	check(t, "its commands", s.acted(), []string{create})

	asked := 0
	s.o.Quit = func(context.Context) error { asked++; return nil }
	s.o.Program = `C:\hb 2\hbrestd.exe`
	if text, err = TaskText(s.o.Program, "", s.o.LogFile, s.o.UserID); err != nil {
		t.Fatal(err)
	}
	if got, err = s.service().Install(ctx, false); err != nil {
		t.Fatal(err)
	}
	check(t, "another program", got, &Installed{Unit: taskName, Running: true, Restarted: true, Changes: []string{`- C:\hb\hbrestd.exe`, `+ C:\hb 2\hbrestd.exe`}})
	check(t, "its commands", s.acted(), []string{create, "schtasks.exe /Run /TN " + taskName})
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
}

func TestTasksInstallFails(t *testing.T) {
	s := newWindows(t)
	s.write(filepath.Dir(s.o.LogFile), "a file where the folder should be")
	if _, err := s.service().Install(t.Context(), false); !fault.Is(err, "SERVICE_FAILED") {
		t.Errorf("%v", err)
	}
	check(t, "its commands", s.acted(), nil)
	s = newWindows(t)
	s.answers["schtasks.exe /Create /TN "+taskName+" /XML HOME/logs/hbrestd-task.xml /F"] = []Output{{Code: 1, Stderr: "ERROR: Access is denied."}}
	if _, err := s.service().Install(t.Context(), false); !fault.Is(err, "SERVICE_FAILED") || !strings.Contains(err.Error(), "Access is denied") {
		t.Errorf("%v", err)
	}
}

func TestTasksStartStopUninstall(t *testing.T) {
	s := newWindows(t)
	ctx := t.Context()
	for _, err := range []error{s.service().Start(ctx), s.service().Stop(ctx), s.service().Restart(ctx)} {
		if !fault.Is(err, "SERVICE_NOT_INSTALLED") {
			t.Errorf("not installed: %v", err)
		}
	}
	if got, err := s.service().Uninstall(ctx); err != nil || got.Was {
		t.Errorf("not installed: %+v %v", got, err)
	}
	if got, err := s.service().State(ctx); err != nil || got.State != "not installed" || got.Installed {
		t.Errorf("not installed: %+v %v", got, err)
	}

	s.answers[queryXML] = []Output{{Stdout: taskXML}}
	s.acted()
	if got, err := s.service().State(ctx); err != nil || got.State != "unknown" || !got.Installed || !got.Enabled {
		t.Errorf("%+v %v", got, err)
	}
	quit := errors.New("nobody there")
	s.o.Quit = func(context.Context) error { return quit }
	for _, f := range []func(context.Context) error{s.service().Start, s.service().Stop, s.service().Restart} {
		if err := f(ctx); err != nil {
			t.Error(err)
		}
	}
	start, end := "schtasks.exe /Run /TN "+taskName, "schtasks.exe /End /TN "+taskName
	check(t, "nobody answers", s.acted(), []string{start, end, end, start})
	quit = nil
	if err := s.service().Stop(ctx); err != nil {
		t.Error(err)
	}
	check(t, "stopped by itself", s.acted(), nil)
	got, err := s.service().Uninstall(ctx)
	if err != nil {
		t.Fatal(err)
	}
	check(t, "removed", got, &Removed{Was: true, Unit: taskName})
	check(t, "its commands", s.acted(), []string{end, "schtasks.exe /Delete /TN " + taskName + " /F"})
	s.answers[queryXML] = []Output{{Stdout: "<Settings>\n<Enabled>false</Enabled>"}}
	if got, err := s.service().State(ctx); err != nil || got.Enabled {
		t.Errorf("switched off: %+v %v", got, err)
	}
}
