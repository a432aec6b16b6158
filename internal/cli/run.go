package cli

import (
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/hyperbolic-gateway/hb-rest/internal/config"
	"github.com/hyperbolic-gateway/hb-rest/internal/daemon"
)

func (a *app) runCommand() *cobra.Command {
	var verbose bool
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run the daemon in the foreground until it is interrupted",
		Long: `Runs the daemon in the foreground. It logs to stderr and stops on Ctrl-C or
SIGTERM. The bridge token is renewed at every start.

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
		RunE: func(cmd *cobra.Command, _ []string) error {
			level := slog.LevelInfo
			if verbose {
				level = slog.LevelDebug
			}
			log := slog.New(slog.NewTextHandler(a.stderr, &slog.HandlerOptions{Level: level}))
			cfg, warnings, err := config.LoadDaemon(a.env, a.goos)
			if err != nil {
				return fmt.Errorf("reading the settings: %w", err)
			}
			for _, w := range warnings {
				log.Warn(string(w))
			}
			return daemon.Run(cmd.Context(), daemon.Options{Config: cfg, Env: a.env, Version: a.version.Version, Log: log, Passphrase: a.passphrase()})
		},
	}
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "log debugging details too")
	return cmd
}
