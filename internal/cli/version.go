package cli

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hyperbolic-gateway/hb-rest/internal/control"
)

// quickTimeout is how long a command waits for a daemon whose answer it can do
// without.
const quickTimeout = time.Second

// A build says what this program was made from.
type build struct {
	Version  string `json:"version"` // the module's version, or the commit when it was built from a checkout
	Commit   string `json:"commit,omitempty"`
	Modified bool   `json:"modified,omitempty"` // the checkout had changes
	Go       string `json:"go"`
	Platform string `json:"platform"` // os/arch
}

func thisBuild() build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return buildOf(info)
}

func buildOf(info *debug.BuildInfo) build {
	b := build{Version: info.Main.Version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	if b.Version == "" || b.Version == "(devel)" {
		b.Version = "devel"
		if len(b.Commit) >= 12 {
			b.Version += "-" + b.Commit[:12]
		}
	}
	return b
}

type versionOptions struct {
	app  *app
	json bool
}

func (a *app) versionCommand() *cobra.Command {
	o := &versionOptions{app: a}
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program and of the running daemon",
		Long: `Prints the version of this program and, when the daemon runs, the daemon's.
It warns when they differ: after an update the daemon must be restarted.`,
		Example: "  hbrestd version\n  hbrestd version --json",
		Args:    takes(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	addJSON(cmd, &o.json)
	return cmd
}

func (o *versionOptions) run(ctx context.Context) error {
	daemon := ""
	if d, err := o.app.places(); err == nil {
		c := o.app.reach(d, control.ClientOptions{Version: o.app.version.Version, Timeout: quickTimeout})
		if st, err := c.Status(ctx); err == nil {
			daemon = st.Version
		}
	}
	if o.json {
		return o.app.printJSON(struct {
			build
			Daemon *string `json:"daemon"` // null when it does not run
		}{o.app.version, nonEmpty(daemon)})
	}
	b := o.app.version
	var text strings.Builder
	fmt.Fprintf(&text, "hbrestd %s", b.Version)
	if b.Commit != "" {
		fmt.Fprintf(&text, " (commit %s%s)", b.Commit, map[bool]string{true: ", modified"}[b.Modified])
	}
	fmt.Fprintf(&text, "\n%s, %s\n", b.Go, b.Platform)
	if daemon == "" {
		daemon = "not running"
	}
	fmt.Fprintf(&text, "daemon: %s\n", clean(daemon))
	return o.app.print(text.String())
}

func nonEmpty(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
