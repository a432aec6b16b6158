package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/autostart"
	"github.com/hyperbolic-gateway/hb-rest/internal/config"
	"github.com/hyperbolic-gateway/hb-rest/internal/control"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// How long a started daemon may take until its control socket answers, and how
// often it is asked.
const (
	answerTimeout = 15 * time.Second
	answerEvery   = 50 * time.Millisecond
)

type serviceOptions struct {
	app   *app
	json  bool
	now   bool
	lines int
	watch bool
}

func (a *app) serviceCommand() *cobra.Command {
	o := &serviceOptions{app: a}
	verb := func(use, short, long, example string, run func(context.Context) error) *cobra.Command {
		return &cobra.Command{
			Use: use, Short: short, Long: long, Example: example, Args: takes(0, 0, ""),
			RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd.Context()) },
		}
	}
	install := verb("install", "Have the daemon started at login, or bring its service up to date",
		`Writes the service's definition for this program, and has it started at login:
a unit of the systemd user manager, a LaunchAgent on macOS, a logon task on
Windows. It needs no rights beyond your own. Of the environment only
HB_WRAP_HOME is passed on. It does not start the service, unless --now is
given; one that runs is started again when its definition or its program has
changed. Drop-ins are left alone, and a unit that you have edited is kept
beside the new one.`,
		"  hbrestd service install --now\n  HB_WRAP_HOME=/srv/hb hbrestd service install", o.install)
	install.Flags().BoolVar(&o.now, "now", false, "start it now, too")
	addJSON(install, &o.json)
	uninstall := verb("uninstall", "Stop the service and no longer start it at login",
		`Stops the service and removes its definition. Wrappers, credentials, the audit
trail and drop-ins stay, and it is said where they are.`,
		"  hbrestd service uninstall", o.uninstall)
	addJSON(uninstall, &o.json)
	start := verb("start", "Start the service, and wait until the daemon answers", "Starts the service and returns when the daemon answers, or says why it does not.",
		"  hbrestd service start", func(ctx context.Context) error { return o.begin(ctx, (*autostart.Service).Start) })
	addJSON(start, &o.json)
	restart := verb("restart", "Stop the service and start it again, and wait until the daemon answers",
		"Calls that are running have ten seconds to end. The bridge token changes, which\nMCP clients notice by themselves.",
		"  hbrestd service restart", func(ctx context.Context) error { return o.begin(ctx, (*autostart.Service).Restart) })
	addJSON(restart, &o.json)
	stop := verb("stop", "Stop the service until the next login", "Calls that are running have ten seconds to end.", "  hbrestd service stop", o.stop)
	addJSON(stop, &o.json)
	status := verb("status", "Say what the service's manager knows of it", "Exit code 3: it does not run. `hbrestd status` asks the daemon itself.",
		"  hbrestd service status\n  hbrestd service status --json", o.status)
	addJSON(status, &o.json)
	logs := verb("logs", "Show what the daemon has logged", "Shows the journal of the service, or on systems without one its log file.",
		"  hbrestd service logs -n 50\n  hbrestd service logs -f", o.logs)
	logs.Flags().IntVarP(&o.lines, "lines", "n", 100, "how many of the last lines")
	logs.Flags().BoolVarP(&o.watch, "follow", "f", false, "go on with new lines until it is interrupted")
	return noun(&cobra.Command{
		Use:   "service",
		Short: "Have the daemon started at login, and see to it",
		Long: `The daemon as a service of your user: started at login, and again within two
seconds after a crash. docs/services.md describes each system, and servers.`,
		Example: "  hbrestd service install --now\n  hbrestd service status",
	}, install, uninstall, start, stop, restart, status, logs)
}

// service is that of this user and these settings.
func (o *serviceOptions) service(d config.Daemon) (*autostart.Service, error) {
	a := o.app
	me, err := user.Current()
	if err != nil && os.Getuid() < 0 { // Windows
		return nil, fmt.Errorf("finding out which user this is: %w", err)
	}
	if err != nil { // a number that nothing has a name for, as in many containers
		id := strconv.Itoa(os.Getuid())
		me = &user.User{Uid: id, Username: id}
	}
	get := func(name string) string { v, _ := a.env(name); return v }
	s := autostart.Options{
		GOOS: a.goos, UserHome: me.HomeDir, UserID: me.Uid, UserName: me.Username, Getenv: get, Quit: o.quit,
		LogFile: filepath.Join(d.Home, "hbrestd.log"),
	}
	if home := get("HOME"); filepath.IsAbs(home) {
		s.UserHome = home
	}
	if s.UserHome == "" {
		return nil, failed(exitFailed, "Set HOME to an absolute path.", "this user has no home folder")
	}
	if a.goos == "darwin" {
		s.LogFile = filepath.Join(s.UserHome, "Library", "Logs", "hbrestd.log")
	}
	if a.seeService != nil {
		a.seeService(&s)
	}
	if s.Program == "" {
		if s.Program, err = autostart.Program(os.Args[0]); err != nil {
			return nil, err
		}
	}
	if get("HB_WRAP_HOME") != "" || get("KUANG_WRAP_HOME") != "" {
		s.WrapHome = d.Home
	}
	return autostart.New(s)
}

// quit asks the running daemon to stop, and waits until it has.
func (o *serviceOptions) quit(ctx context.Context) error {
	d, err := o.app.daemon()
	if err != nil {
		return err
	}
	if err := d.Stop(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	for {
		if _, err := d.Status(ctx); fault.Is(err, "BRIDGE_UNREACHABLE") {
			return nil
		}
		if !pause(ctx, answerEvery) {
			return ctx.Err()
		}
	}
}

// pause reports false when the context has ended meanwhile.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// open is the settings and the service.
func (o *serviceOptions) open() (config.Daemon, *autostart.Service, error) {
	d, err := o.app.places()
	if err != nil {
		return d, nil, err
	}
	s, err := o.service(d)
	return d, s, err
}

// running asks the daemon for its state; nil: none answers.
func (o *serviceOptions) running(ctx context.Context, d config.Daemon) *api.Status {
	st, err := o.app.reach(d, control.ClientOptions{Version: o.app.version.Version, Timeout: quickTimeout}).Status(ctx)
	if err != nil {
		return nil
	}
	return st
}

func (o *serviceOptions) begin(ctx context.Context, start func(*autostart.Service, context.Context) error) error {
	d, s, err := o.open()
	if err != nil {
		return err
	}
	st, err := o.started(ctx, d, s, start)
	if err != nil {
		return err
	}
	if o.json {
		return o.app.printJSON(st)
	}
	return o.app.print(facts(statusRows(st)))
}

// started starts the service and waits until its daemon answers.
func (o *serviceOptions) started(ctx context.Context, d config.Daemon, s *autostart.Service, start func(*autostart.Service, context.Context) error) (*api.Status, error) {
	if err := start(s, ctx); err != nil {
		if e, ok := errors.AsType[*fault.Error](err); ok && strings.Contains(e.Message, "ADDRESS_IN_USE: ") {
			return nil, fault.New(e.Code, "%s", strings.Replace(e.Message, "ADDRESS_IN_USE: ", "", 1)).
				With(fault.Hint("Stop that program, then run `hbrestd service start`; or give hbrestd another port (docs/services.md, Another port)."))
		}
		return nil, err
	}
	wait, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	for {
		if st := o.running(wait, d); st != nil {
			return st, nil
		}
		if !pause(wait, answerEvery) {
			break
		}
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return nil, fault.New("SERVICE_FAILED", "the service was started, but no daemon answers on %s after %s", d.ControlSocket, answerTimeout).
		With(fault.Hint("`hbrestd service logs` shows what it said. If it runs, it has another home than this shell: `hbrestd paths` shows where this command looks."))
}

func (o *serviceOptions) stop(ctx context.Context) error {
	_, s, err := o.open()
	if err != nil {
		return err
	}
	if err := s.Stop(ctx); err != nil {
		return err
	}
	if !o.json {
		return o.app.print("stopped\n")
	}
	st, err := s.State(ctx)
	if err != nil {
		return err
	}
	return o.app.printJSON(st)
}

func (o *serviceOptions) logs(ctx context.Context) error {
	if o.lines < 0 || o.lines > 1_000_000 {
		return usage("--lines is %d, not a number from 0 to 1000000", o.lines)
	}
	_, s, err := o.open()
	if err != nil {
		return err
	}
	return s.Logs(ctx, autostart.LogRequest{Lines: o.lines, Follow: o.watch, Stdout: o.app.stdout, Stderr: o.app.stderr})
}
