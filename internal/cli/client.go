package cli

import (
	"context"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hyperbolic-gateway/hb-rest/internal/clientconfig"
	"github.com/hyperbolic-gateway/hb-rest/internal/config"
	"github.com/hyperbolic-gateway/hb-rest/internal/control"
)

func (a *app) clientCommand() *cobra.Command {
	return noun(&cobra.Command{
		Use:   "client",
		Short: "Connect MCP clients",
		Long: `An MCP client starts hb-rest from an entry in its configuration file. These
commands put that entry there, keep it right, and take it out again; everything
else in the file stays as it is, comments included. docs/clients.md says which
file each client has.`,
		Example: "  hbrestd client list\n  hbrestd client install claude-code\n  hbrestd client doctor claude-code",
	}, a.clientListCommand(), a.clientInstallCommand(), a.clientUninstallCommand(), a.clientPrintCommand(), a.clientDoctorCommand())
}

// clientOptions are what the commands of client have in common.
type clientOptions struct {
	app     *app
	scope   string
	command string // hb-rest's path; "": it is looked for
	all     bool
	json    bool
}

func (o *clientOptions) addScope(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.scope, "scope", string(clientconfig.User), "user, or project: the file in this folder")
	oneOf(cmd, "scope", string(clientconfig.User), string(clientconfig.Project))
}

func (o *clientOptions) addCommand(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.command, "command", "", "path of hb-rest, if not the one beside hbrestd or in PATH")
}

// env is this machine for clientconfig, and the scope that was chosen.
func (o *clientOptions) env() (clientconfig.Env, clientconfig.Scope, error) {
	scope := clientconfig.Scope(o.scope)
	if scope != clientconfig.User && scope != clientconfig.Project {
		return clientconfig.Env{}, "", usage("--scope is %q; it must be user or project", o.scope)
	}
	dir, err := os.Getwd()
	if err != nil && scope == clientconfig.Project {
		return clientconfig.Env{}, "", failed(exitFailed, "Change to the folder of the project.", "this folder is not known: %v", err)
	}
	return clientconfig.Env{
		OS: o.app.goos, Getenv: o.app.env, Dir: dir,
		Exists: func(p string) bool { _, err := os.Stat(p); return err == nil },
		Glob:   func(pattern string) []string { list, _ := filepath.Glob(pattern); return list }, // fails only for a bad pattern
	}, scope, nil
}

// findClient finds a client by its name.
func findClient(name string) (clientconfig.Client, error) {
	c, ok := clientconfig.Find(strings.ToLower(name))
	if ok {
		return c, nil
	}
	var known []string
	for _, c := range clientconfig.Known() {
		known = append(known, c.Name)
	}
	return c, failed(exitNotFound, "Known are "+strings.Join(known, ", ")+".", "there is no client %q", name)
}

// completeClients gives the names of clients.
func completeClients(most int, editable bool) completer {
	return func(_ *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		var out []string
		for _, c := range clientconfig.Known() {
			if (c.Editable || !editable) && strings.HasPrefix(c.Name, toComplete) && !slices.Contains(args, c.Name) && (most < 0 || len(args) < most) {
				out = append(out, c.Name+"\t"+c.Title)
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}

// wanted is the entry that clients should have. It names files, and never what
// is in them.
func (o *clientOptions) wanted(ctx context.Context) (clientconfig.Wanted, error) {
	w := clientconfig.Wanted{Idle: map[string]string{}}
	var err error
	if w.Command, err = o.shim(); err != nil {
		return w, err
	}
	d, err := o.app.places()
	if err != nil {
		return w, err
	}
	s, _, err := config.LoadShim(o.app.env, o.app.goos)
	if err != nil {
		return w, failed(exitFailed, "Mend the variable.", "reading the settings: %v", err)
	}
	w.Env = map[string]string{}
	w.Idle["HB_WRAP_HOME"], w.Idle["HB_WRAP_TOKEN_FILE"] = d.Home, d.TokenPath
	switch {
	case s.TokenFile != "" && s.TokenFile != d.TokenPath:
		w.Env["HB_WRAP_TOKEN_FILE"] = s.TokenFile
	case d.TokenPath != o.app.tokenByDefault():
		w.Env["HB_WRAP_HOME"] = d.Home
	}
	const byDefault = "http://" + config.DefaultAddr
	switch url := o.app.bridgeURL(ctx, d, s); url {
	case "": // not known, so what is there stays
	case byDefault:
		w.Idle["HB_WRAP_URL"] = byDefault
	default:
		w.Env["HB_WRAP_URL"] = url
	}
	return w, nil
}

// tokenByDefault is where hb-rest looks for the token when a client passes on
// nothing of ours, and of the system's only what all of them do.
func (a *app) tokenByDefault() string {
	bare := func(name string) (string, bool) {
		if name == "HOME" || name == "LOCALAPPDATA" || name == "USERPROFILE" {
			return a.env(name)
		}
		return "", false
	}
	s, _, err := config.LoadShim(bare, a.goos)
	if err != nil || len(s.TokenCandidates) == 0 {
		return ""
	}
	return s.TokenCandidates[0]
}

// bridgeURL is where hb-rest finds the daemon: as the environment says, else as
// the running daemon does; "" if neither does.
func (a *app) bridgeURL(ctx context.Context, d config.Daemon, s config.Shim) string {
	if url := s.URL.String(); url != "http://"+config.DefaultAddr {
		return url
	}
	addr := d.Addr
	if addr == config.DefaultAddr || strings.HasSuffix(addr, ":0") {
		ctx, cancel := context.WithTimeout(ctx, quickTimeout)
		defer cancel()
		st, err := a.connect(d.ControlSocket, control.ClientOptions{Version: a.version.Version, Timeout: quickTimeout}).Status(ctx)
		if err != nil {
			return ""
		}
		addr = st.Address
	}
	if ap, err := netip.ParseAddrPort(addr); err != nil || ap.Port() == 0 {
		return ""
	}
	return "http://" + addr
}

// shim is the absolute path of hb-rest.
func (o *clientOptions) shim() (string, error) {
	if o.command != "" {
		p, err := filepath.Abs(o.command)
		if err == nil {
			err = executable(p)
		}
		if err != nil {
			return "", failed(exitFailed, "Give the path of a program with --command.", "--command: %v", err)
		}
		return p, nil
	}
	beside := ""
	if me, err := os.Executable(); err == nil {
		beside = filepath.Join(filepath.Dir(me), shimName())
	}
	path, _ := o.app.env("PATH")
	if p := chooseShim(beside, inPath(path, shimName())); p != "" {
		return p, nil
	}
	return "", failed(exitFailed, "Install it beside hbrestd, or name it with --command.", "hb-rest is neither beside hbrestd nor in PATH")
}

func shimName() string {
	if runtime.GOOS == "windows" {
		return clientconfig.Name + ".exe"
	}
	return clientconfig.Name
}

// chooseShim prefers the program beside hbrestd, because it is of the same
// version; but where PATH leads to the same file, it does so by a name that an
// upgrade of a package does not change.
func chooseShim(beside, path string) string {
	if executable(beside) != nil {
		return path
	}
	if path != "" && sameFile(beside, path) {
		return path
	}
	return beside
}

func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// inPath is the first program of a name in the absolute folders of a PATH.
func inPath(path, name string) string {
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue
		}
		if p := filepath.Join(dir, name); executable(p) == nil {
			return p
		}
	}
	return ""
}

// executable is nil for a file that can be started.
func executable(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return &os.PathError{Op: "start", Path: path, Err: errIsFolder}
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o111 == 0:
		return &os.PathError{Op: "start", Path: path, Err: errNotExecutable}
	}
	return nil
}

type plainError string

func (e plainError) Error() string { return string(e) }

const (
	errIsFolder      = plainError("it is a folder")
	errNotExecutable = plainError("it is not executable")
)

// findProgram finds a client's own command in PATH, under the names that
// Windows gives programs too.
func (a *app) findProgram(name string) string {
	path, _ := a.env("PATH")
	names := []string{name}
	if runtime.GOOS == "windows" {
		names = []string{name + ".exe", name + ".cmd"}
	}
	for _, n := range names {
		if p := inPath(path, n); p != "" {
			return p
		}
	}
	return ""
}

// runQuietly runs a program to its end, in a process group that ends with ctx,
// and gives the end of what it printed.
func runQuietly(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	out := &tail{}
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = out, out, probeGrace
	ownGroup(cmd)
	err := cmd.Run()
	return out.String(), err
}
