package cli

import (
	"errors"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/hyperbolic-gateway/hb-rest/internal/clientconfig"
	"github.com/hyperbolic-gateway/hb-rest/internal/config"
	"github.com/hyperbolic-gateway/hb-rest/internal/daemon"
)

type pathsOptions struct {
	app  *app
	json bool
}

// A place is one line of `paths`.
type place struct {
	Name   string `json:"name"`
	Path   string `json:"path"`
	Exists bool   `json:"exists"`
}

type placeList struct {
	Places  []place `json:"places"`
	Clients []place `json:"clients"` // where MCP clients keep their settings
}

func (a *app) pathsCommand() *cobra.Command {
	o := &pathsOptions{app: a}
	cmd := &cobra.Command{
		Use:   "paths",
		Short: "Print where everything is kept",
		Long: `Prints the paths that these settings give, whether the daemon runs or not, and
the files of the MCP clients that seem to be on this account. HB_WRAP_HOME moves
all of the daemon's. Where other clients would have theirs: hbrestd client list
--all.`,
		Example: "  hbrestd paths\n  hbrestd paths --json",
		Args:    takes(0, 0, ""),
		RunE:    func(*cobra.Command, []string) error { return o.run() },
	}
	addJSON(cmd, &o.json)
	return cmd
}

func (o *pathsOptions) run() error {
	d, err := o.app.places()
	if err != nil {
		return err
	}
	env, _, err := (&clientOptions{app: o.app, scope: string(clientconfig.User)}).env()
	if err != nil {
		return err
	}
	l := placeList{Places: daemonPlaces(d), Clients: clientPlaces(env)}
	if key := daemon.KeyFile(d); exists(key) { // a backup without it is of no use, and few have one
		l.Places = append(l.Places, place{Name: "encrypted key", Path: key})
	}
	if s, _, err := config.LoadShim(o.app.env, o.app.goos); err == nil && s.LogPath != "" {
		l.Places = append(l.Places, place{Name: "log of hb-rest", Path: s.LogPath})
	}
	for _, list := range [][]place{l.Places, l.Clients} {
		for i := range list {
			list[i].Exists = exists(list[i].Path)
		}
	}
	if o.json {
		return o.app.printJSON(l)
	}
	t := table{header: []string{"WHAT", "PATH", "EXISTS"}}
	for _, p := range append(append([]place{}, l.Places...), l.Clients...) {
		t.add(p.Name, p.Path, map[bool]string{true: "yes", false: "no"}[p.Exists])
	}
	if o.app.width() == 0 {
		return o.app.print(separated(t.rows))
	}
	return o.app.print(aligned(t, 1<<20, true)) // a path that is cut is none
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

func daemonPlaces(d config.Daemon) []place {
	return []place{
		{Name: "home", Path: d.Home},
		{Name: "wrappers", Path: d.StorePath},
		{Name: "audit trail", Path: d.AuditPath},
		{Name: "token file", Path: d.TokenPath},
		{Name: "control socket", Path: d.ControlSocket},
	}
}

// clientPlaces are the user-wide files of the MCP clients that seem to be in use.
func clientPlaces(env clientconfig.Env) []place {
	list := []place{}
	for _, c := range clientconfig.Known() {
		if c.Detected(env, clientconfig.User) {
			list = append(list, place{Name: c.Title, Path: c.Path(env, clientconfig.User)})
		}
	}
	return list
}
