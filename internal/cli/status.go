package cli

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/client"
	"github.com/hyperbolic-gateway/hb-rest/internal/config"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

type statusOptions struct {
	app  *app
	json bool
}

func (a *app) statusCommand() *cobra.Command {
	o := &statusOptions{app: a}
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Say whether the daemon is running, where it listens and where its token file is",
		Long: `Asks the running daemon for its state, over its control socket, or over the
bridge when nothing listens there. Exit code 3: not running.`,
		Example: "  hbrestd status\n  hbrestd status --json",
		Args:    takes(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	addJSON(cmd, &o.json)
	return cmd
}

func (o *statusOptions) run(ctx context.Context) error {
	d, err := o.app.daemon()
	if err != nil {
		return err
	}
	st, err := d.Status(ctx)
	if fault.Is(err, "BRIDGE_UNREACHABLE") {
		var other error
		if st, other = o.overBridge(ctx); other != nil {
			return other
		}
		if st != nil {
			o.app.warn("the daemon runs, but not with these settings: %v. The other commands need the socket; `hbrestd paths` shows where they look", err)
			err = nil
		}
	}
	if err != nil {
		return err
	}
	if o.json {
		return o.app.printJSON(st)
	}
	return o.app.print(facts(statusRows(st)))
}

// overBridge asks the bridge. It tells a daemon that does not run from one
// whose control socket is elsewhere, as it is when it was started with another
// XDG_RUNTIME_DIR: by a service manager, and this command by a cron job.
//
// No status and no error: nothing runs. The error is for a bridge that does not
// take the token file, or a token file that cannot be used: then starting
// another daemon would not help.
func (o *statusOptions) overBridge(ctx context.Context) (*api.Status, error) {
	d, err := o.app.places()
	if err != nil {
		return nil, nil
	}
	s, _, err := config.LoadShim(o.app.env, o.app.goos)
	if err != nil {
		return nil, nil
	}
	u := s.URL
	if _, set := o.app.env("HB_WRAP_URL"); !set && !strings.HasSuffix(d.Addr, ":0") {
		u = &url.URL{Scheme: "http", Host: d.Addr}
	}
	st, err := client.New(client.Options{
		URL: u, TokenFiles: s.TokenCandidates, Version: o.app.version.Version, Timeout: quickTimeout,
		Started: time.Unix(0, 0), // a person is told at once when nothing runs
	}).Status(ctx)
	switch {
	case err == nil:
		return st, nil
	case fault.Is(err, "BRIDGE_BAD_ANSWER"), fault.Is(err, "TOKEN_FILE_MISSING") && anyExists(s.TokenCandidates):
		return nil, err
	}
	return nil, nil
}

func anyExists(paths []string) bool {
	return slices.ContainsFunc(paths, func(p string) bool {
		_, err := os.Lstat(p)
		return err == nil
	})
}

func statusRows(st *api.Status) [][2]string {
	damaged := ""
	if st.Damaged > 0 {
		damaged = fmt.Sprintf(" (%d damaged)", st.Damaged)
	}
	rows := [][2]string{
		{"hbrestd", fmt.Sprintf("running, version %s, pid %d", st.Version, st.PID)},
		{"since", st.StartedAt},
		{"bridge", "http://" + st.Address},
		{"token file", st.TokenFile},
		{"home", st.Home},
		{"wrappers", fmt.Sprintf("%d%s, revision %d", st.Wrappers, damaged, st.Revision)},
		{"private hosts", onOff(st.AllowPrivate)},
		{"plain http", onOff(st.AllowHTTP)},
	}
	for _, note := range st.Notes {
		rows = append(rows, [2]string{"note", note})
	}
	return rows
}

func onOff(b bool) string {
	if b {
		return "allowed"
	}
	return "refused"
}

// facts are lines of a name and a value.
func facts(rows [][2]string) string {
	long := 0
	for _, r := range rows {
		long = max(long, len(r[0]))
	}
	var b strings.Builder
	for _, r := range rows {
		fmt.Fprintf(&b, "%-*s  %s\n", long, r[0], clean(r[1]))
	}
	return b.String()
}
