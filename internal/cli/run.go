package cli

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/hyperbolic-gateway/hb-rest/internal/config"
	"github.com/hyperbolic-gateway/hb-rest/internal/daemon"
)

type daemonOptions struct {
	app       *app
	verbose   bool
	home, log string
	finalExit int
}

func (a *app) runCommand() *cobra.Command {
	o := &daemonOptions{app: a}
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run the daemon in the foreground until it is interrupted",
		Long: `Runs the daemon in the foreground. It logs to stderr and stops on Ctrl-C or
SIGTERM. The bridge token is renewed at every start. A start that fails for a
reason that a repeat does not mend, such as a port that another program has,
ends with exit code 8. To have it started at login: hbrestd service install.

With the setting keyring=file the key of the credentials is in a file that a
passphrase opens: the systemd credential hbrestd-passphrase, or, on a terminal,
what you enter at the start.

Environment:
  HB_WRAP_HOME              where state and the token file live
  HB_WRAP_ADDR              where the bridge listens (127.0.0.1:4111; port 0: any free one)
  HB_WRAP_ALLOW_PRIVATE=1   allow loopback and private destinations, and plain http
  HB_WRAP_ALLOW_HTTP=1      allow plain http to public destinations
  HB_WRAP_CALL_TIMEOUT_MS   the longest a whole call may take (50000)
  HB_WRAP_KEYRING           where the key of the credentials is: system, file, off`,
		Example: "  hbrestd run\n  HB_WRAP_ALLOW_PRIVATE=1 hbrestd run     # to call an API on this machine",
		Args:    takes(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	cmd.Flags().BoolVarP(&o.verbose, "verbose", "v", false, "log debugging details too")
	cmd.Flags().StringVar(&o.home, "home", "", "the same as HB_WRAP_HOME, for a service without an environment")
	cmd.Flags().StringVar(&o.log, "log", "", "log to this `file` instead of stderr, for a service without a journal")
	cmd.Flags().IntVar(&o.finalExit, "final-exit", exitStuck, "the exit `code` of a start that a repeat does not mend")
	return cmd
}

func (o *daemonOptions) run(ctx context.Context) error {
	a := o.app
	a.env = overriding(a.env, "HB_WRAP_HOME", o.home)
	if o.log != "" {
		f, err := openLog(o.log)
		if err != nil {
			return err
		}
		a.stderr = f // open until the process ends, for its last words
		leaveConsole()
	}
	log := slog.New(o.handler())
	ready, tell := false, a.notifier()
	err := o.serve(ctx, log, func(state string) {
		ready = true // the first word is that it is
		if tell != nil {
			tell(state)
		}
	})
	if err == nil || ctx.Err() != nil && !ready {
		return err
	}
	if tell != nil {
		tell("STATUS=" + failure(err))
	}
	if !ready {
		err = coded{o.finalExit, err}
	}
	if !a.journalled() {
		return err
	}
	exit, e := explain(nil, err)
	log.Error(e.Message, "code", e.Code, "hint", e.Hint)
	return coded{exit, errSilent}
}

// serve is the daemon's life. notify is called once everything answers, and
// then again and again.
func (o *daemonOptions) serve(ctx context.Context, log *slog.Logger, notify func(state string)) error {
	a := o.app
	cfg, warnings, err := config.LoadDaemon(a.env, a.goos)
	if err != nil {
		return fmt.Errorf("reading the settings: %w", err)
	}
	for _, w := range warnings {
		log.Warn(string(w))
	}
	return daemon.Run(ctx, daemon.Options{
		Config: cfg, Env: a.env, Version: a.version.Version, Log: log, Passphrase: a.passphrase(),
		Notify: notify, Watchdog: watchdog(),
	})
}

func (o *daemonOptions) handler() slog.Handler {
	level := slog.LevelInfo
	if o.verbose {
		level = slog.LevelDebug
	}
	if o.app.journalled() {
		return journalHandler(o.app.stderr, level)
	}
	return slog.NewTextHandler(o.app.stderr, &slog.HandlerOptions{Level: level})
}
