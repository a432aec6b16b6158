package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/client"
	"github.com/hyperbolic-gateway/hb-rest/internal/config"
)

// statusTimeout is how long a person waits for one line of answer.
const statusTimeout = 5 * time.Second

func (a *app) statusCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "status",
		Short:   "Say whether the daemon is running, where it listens and where its token file is",
		Long:    "Asks the running daemon for its state, the same way as hb-rest does. Exit code 3: not running.",
		Example: "  hbrestd status\n  hbrestd status --json",
		Args:    usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			st, err := c.Status(cmd.Context())
			if err != nil {
				return err
			}
			if asJSON {
				enc := json.NewEncoder(a.stdout)
				enc.SetIndent("", "  ")
				return enc.Encode(st)
			}
			return printStatus(a.stdout, st)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// client talks to the bridge of the daemon that these settings describe.
func (a *app) client() (*client.Client, error) {
	d, _, err := config.LoadDaemon(a.env, runtime.GOOS)
	if err != nil {
		return nil, fmt.Errorf("reading the settings: %w", err)
	}
	s, _, err := config.LoadShim(a.env, runtime.GOOS)
	if err != nil {
		return nil, fmt.Errorf("reading the settings: %w", err)
	}
	u := s.URL
	if _, set := a.env("HB_WRAP_URL"); !set && !strings.HasSuffix(d.Addr, ":0") {
		u = &url.URL{Scheme: "http", Host: d.Addr}
	}
	return client.New(client.Options{
		URL: u, TokenFiles: s.TokenCandidates, Version: Version(), Timeout: statusTimeout,
		Started: time.Unix(0, 0), // a person is told at once when nothing runs
	}), nil
}

func printStatus(w io.Writer, st *api.Status) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) { fmt.Fprintf(t, "%s\t%s\n", name, fmt.Sprintf(format, args...)) }
	row("hbrestd", "running, version %s, pid %d", st.Version, st.PID)
	row("since", "%s", st.StartedAt)
	row("bridge", "http://%s", st.Address)
	row("token file", "%s", st.TokenFile)
	row("home", "%s", st.Home)
	damaged := ""
	if st.Damaged > 0 {
		damaged = fmt.Sprintf(" (%d damaged)", st.Damaged)
	}
	row("wrappers", "%d%s, revision %d", st.Wrappers, damaged, st.Revision)
	row("private hosts", "%s", onOff(st.AllowPrivate))
	row("plain http", "%s", onOff(st.AllowHTTP))
	return t.Flush()
}

func onOff(b bool) string {
	if b {
		return "allowed"
	}
	return "refused"
}
