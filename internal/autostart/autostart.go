// Package autostart makes hbrestd a service of its user, started at login and
// again after a crash: a unit of the systemd user manager, a LaunchAgent of
// macOS, or a logon task of Windows.
//
// It never asks for rights beyond the user's own, never passes anything of the
// caller's environment on but HB_WRAP_HOME, and never touches the daemon's data. Start
// with [New].
package autostart

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// Options say whose service it is. The functions are seams; nil takes what the
// comment says.
type Options struct {
	Platform string                   // as kardianos/service names the service manager; "": what it finds
	GOOS     string                   // a value of runtime.GOOS
	Program  string                   // absolute path of hbrestd, as the service shall call it
	WrapHome string                   // HB_WRAP_HOME of the service; "": not set there
	LogFile  string                   // where systems without a journal keep what the daemon logs
	UserHome string                   // the user's home folder
	UserID   string                   // numeric, or the SID on Windows
	UserName string                   // login name
	Getenv   func(name string) string // of the process; nil: always ""

	Run     func(ctx context.Context, argv ...string) Output                          // runs a program; nil: really
	Stream  func(ctx context.Context, stdout, stderr io.Writer, argv ...string) error // the same, with its output passed on; nil: really
	Native  func(Definition) Native                                                   // nil: kardianos/service
	Quit    func(ctx context.Context) error                                           // asks the running daemon to stop by itself (Windows); nil: nobody is asked
	Sleep   func(ctx context.Context, d time.Duration)                                // nil: really
	Changed func(path string) time.Time                                               // when a file was changed or put in its place; zero: not known; nil: really
	Linger  func(user string) (on, known bool)                                        // nil: what logind keeps in /var/lib/systemd/linger
}

// An Output is what a program that ended left behind.
type Output struct {
	Stdout, Stderr string
	Code           int   // exit code; -1 if a signal ended it or it did not start
	Err            error // why it did not start
}

// A State is the service as its manager sees it.
type State struct {
	Manager   string   `json:"manager"`            // systemd, launchd or task scheduler
	Installed bool     `json:"installed"`          // the manager knows the service
	State     string   `json:"state"`              // running, starting, restarting, stopping, stopped, failed, masked, not installed or unknown
	Since     string   `json:"since,omitempty"`    // RFC 3339; when it came into that state
	PID       int      `json:"pid,omitempty"`      // of the daemon
	Unit      string   `json:"unit,omitempty"`     // the file, or the task's name
	DropIns   []string `json:"dropIns,omitempty"`  // files that change the unit
	Enabled   bool     `json:"enabled"`            // it starts at login
	Linger    *bool    `json:"linger,omitempty"`   // it runs without a session; nil: not known, or not of this system
	Restarts  int      `json:"restarts,omitempty"` // by the manager, since it was started last
	LastExit  *Exit    `json:"lastExit,omitempty"` // nil: it runs, or never ran
	Says      string   `json:"says,omitempty"`     // what the daemon last told the manager
	Stale     bool     `json:"stale,omitempty"`    // the unit's file is newer than what the manager has read
	Log       string   `json:"log,omitempty"`      // where its log is, if that is a file
}

// Running reports whether the daemon has told that it is ready.
func (s *State) Running() bool { return s.State == "running" }

// An Exit says how the daemon ended last.
type Exit struct {
	Code   int    `json:"code"`             // the exit code, or the signal's number
	Signal bool   `json:"signal,omitempty"` // a signal ended it
	Result string `json:"result,omitempty"` // the manager's word: exit-code, signal, watchdog, timeout, start-limit-hit
}

// An Installed tells what Install has done.
type Installed struct {
	Unit      string   `json:"unit"`
	Created   bool     `json:"created"`             // there was none before
	Changes   []string `json:"changes,omitempty"`   // lines that went ("- ...") and came ("+ ...")
	Kept      string   `json:"kept,omitempty"`      // a copy of the file that somebody had edited
	DropIns   []string `json:"dropIns,omitempty"`   // files that change the unit, left as they are
	Packaged  bool     `json:"packaged,omitempty"`  // the unit is a package's, and was only enabled
	Restarted bool     `json:"restarted,omitempty"` // it ran and was started again
	Running   bool     `json:"running"`             // it ran before
}

// A Removed tells what Uninstall has done.
type Removed struct {
	Was      bool     `json:"was"`                // it was installed
	Unit     string   `json:"unit,omitempty"`     // what was removed
	Packaged bool     `json:"packaged,omitempty"` // the unit is a package's: disabled, and left
	Left     []string `json:"left,omitempty"`     // files of the person's, left as they are
}

// A LogRequest asks for the last lines of the log.
type LogRequest struct {
	Lines          int  // how many
	Follow         bool // go on with new ones until the context ends
	Stdout, Stderr io.Writer
}

// A Service is hbrestd as a service of one user.
type Service struct {
	m manager
	o Options
}

// manager is one kind of service manager.
type manager interface {
	state(ctx context.Context) (*State, error)
	install(ctx context.Context, restart bool) (*Installed, error)
	uninstall(ctx context.Context) (*Removed, error)
	start(ctx context.Context) error
	stop(ctx context.Context) error
	restart(ctx context.Context) error
	logs(ctx context.Context, r LogRequest) error
}

// New knows the service of a user; it touches nothing. The error is
// SERVICE_FAILED: this system has no manager that is supported, or a path
// cannot stand in a unit.
func New(o Options) (*Service, error) {
	o.fill()
	s := &Service{o: o}
	switch {
	case o.GOOS == "linux" && o.Platform == "linux-systemd":
		s.m = &systemd{o}
	case o.GOOS == "darwin":
		s.m = &launchd{o}
	case o.GOOS == "windows":
		s.m = &tasks{o}
	default:
		return nil, unsupported(o)
	}
	return s, nil
}

func (o *Options) fill() {
	if o.Platform == "" {
		o.Platform = platform()
	}
	if o.Getenv == nil {
		o.Getenv = func(string) string { return "" }
	}
	if o.Run == nil {
		o.Run = run
	}
	if o.Stream == nil {
		o.Stream = stream
	}
	if o.Native == nil {
		o.Native = native
	}
	if o.Sleep == nil {
		o.Sleep = sleep
	}
	if o.Changed == nil {
		o.Changed = changed
	}
	if o.Linger == nil {
		o.Linger = linger
	}
}

// State asks the manager.
func (s *Service) State(ctx context.Context) (*State, error) { return s.m.state(ctx) }

// Install writes the unit, or brings it up to date, and has it started at
// login. A running service is started again when its unit or its program has
// changed, or when restart asks for it; one that does not run is not started.
func (s *Service) Install(ctx context.Context, restart bool) (*Installed, error) {
	return s.m.install(ctx, restart)
}

// Uninstall stops the service and removes what Install has written. Data and
// the person's own additions stay.
func (s *Service) Uninstall(ctx context.Context) (*Removed, error) { return s.m.uninstall(ctx) }

// Start starts the service and returns when the manager calls it started. The
// error is SERVICE_NOT_INSTALLED, or SERVICE_FAILED with what the daemon said.
func (s *Service) Start(ctx context.Context) error { return s.m.start(ctx) }

// Stop stops the service until the next login, or Start.
func (s *Service) Stop(ctx context.Context) error { return s.m.stop(ctx) }

// Restart stops the service, if it runs, and starts it.
func (s *Service) Restart(ctx context.Context) error { return s.m.restart(ctx) }

// Logs prints the daemon's log.
func (s *Service) Logs(ctx context.Context, r LogRequest) error { return s.m.logs(ctx, r) }

func failed(format string, args ...any) *fault.Error {
	return fault.New("SERVICE_FAILED", format, args...)
}

func notInstalled() *fault.Error {
	return fault.New("SERVICE_NOT_INSTALLED", "hbrestd is not installed as a service of this user")
}

func unsupported(o Options) *fault.Error {
	return failed("no service manager that hbrestd knows runs here (it knows systemd, launchd and the Windows task scheduler)").
		With(fault.Hint("Put this line where your session starts programs: %s run", shellWord(o.GOOS, o.Program)))
}

// shellWord writes a path as a person puts it into a line of commands.
func shellWord(goos, path string) string {
	switch {
	case !strings.ContainsFunc(path, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+@%,:=", r) || r == '\\' && goos == "windows")
	}):
		return path
	case goos == "windows":
		return `"` + path + `"`
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
