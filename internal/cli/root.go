// Package cli is the command tree of hbrestd: it parses, calls one function
// and prints. The answer goes to stdout, everything else to stderr.
//
// It decides nothing that a command line and another face would have to decide
// alike. Start with [Main]; there is one file for each noun.
package cli

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/hyperbolic-gateway/hb-rest/internal/autostart"
	"github.com/hyperbolic-gateway/hb-rest/internal/config"
	"github.com/hyperbolic-gateway/hb-rest/internal/control"
)

// An app is one run of the command line: its streams and what it can reach.
type app struct {
	env            config.Env
	goos           string
	version        build
	stdin          io.Reader
	stdout, stderr io.Writer

	// width is the number of columns of the terminal that stdout is; 0: it is
	// none, and what is printed is for a program.
	width func() int
	// interactive reports whether somebody can answer a question.
	interactive func() bool
	// connect reaches the daemon through the control socket at path. It opens
	// nothing; timeout 0 is what suits each call.
	connect func(path string, o control.ClientOptions) control.Backend
	// openTerminal opens the terminal of this process, past stdin and stdout.
	openTerminal func() (*console, error)
	// seeService changes what the service's manager is reached by; nil: nothing.
	seeService func(*autostart.Options)
	// environ lists the whole environment, for what has no fixed name.
	environ func() []string

	reached []control.Backend // what connect made, to look at the daemon's version afterwards
	warned  bool              // the warnings about the settings were printed
}

// Main runs one command line and returns the exit code. Interrupting it once
// ends what it does; a second time ends the process.
func Main(args []string, env config.Env, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	// net/http writes what an API sends unasked to the standard logger, its
	// bytes included. Nothing of ours uses that logger.
	log.SetOutput(io.Discard)
	a := &app{
		env: env, goos: runtime.GOOS, version: thisBuild(), stdin: stdin, stdout: stdout, stderr: stderr,
		width:       func() int { return columns(stdout) },
		interactive: func() bool { return isTerminal(stdin) && isTerminal(stderr) },
		connect:     func(path string, o control.ClientOptions) control.Backend { return control.NewClient(path, o) },

		openTerminal: openTerminal, environ: os.Environ,
	}
	if isTerminal(stdout) {
		a.stdout = &tameWriter{w: stdout}
	}
	if isTerminal(stderr) {
		a.stderr = &tameWriter{w: stderr}
	}
	return a.run(ctx, args)
}

func (a *app) run(ctx context.Context, args []string) int {
	root := a.root()
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	a.warnSkew()
	return a.report(ctx, cmd, err)
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "hbrestd",
		Short: "Turns REST APIs into small typed tools for AI agents",
		Long: `hbrestd keeps wrappers (saved REST requests with a recipe for their answers),
runs them under an outbound policy, and serves them to hb-rest, the MCP server
that your MCP client starts.`,
		Example: `  hbrestd run                        # start it here, in the foreground
  hbrestd status                     # is it running, and where is its token file?
  hbrestd wrapper apply weather.json # save a wrapper
  hbrestd wrapper run weather --arg city=Oslo`,
		Version:           a.version.Version,
		SilenceUsage:      true,
		SilenceErrors:     true,
		Args:              noSuchCommand,
		RunE:              showHelp,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) { fmt.Fprint(a.stdout, helpText(cmd)) })
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage("%s", plainFlagError(err.Error())) })
	root.SetVersionTemplate("hbrestd {{.Version}}\n")
	root.AddCommand(
		a.runCommand(), a.serviceCommand(), a.statusCommand(), a.doctorCommand(), a.setupCommand(), a.backupCommand(), a.restoreCommand(), a.purgeCommand(), a.pathsCommand(), a.versionCommand(), a.completionCommand(),
		a.wrapperCommand(), a.importCommand(), a.recipeCommand(), a.secretCommand(), a.allowCommand(), a.approvalCommand(), a.auditCommand(), a.configCommand(), a.clientCommand(), a.cortexCommand(), a.settingsCommand(),
	)
	return root
}

// noun makes a command that only holds others.
func noun(cmd *cobra.Command, verbs ...*cobra.Command) *cobra.Command {
	cmd.Args, cmd.RunE = noSuchCommand, showHelp
	cmd.AddCommand(verbs...)
	return cmd
}

func showHelp(cmd *cobra.Command, _ []string) error { return cmd.Help() }

// A usageError is a command line that cannot be understood: exit code 2.
type usageError struct{ error }

func usage(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// plainFlagError takes Go's words out of the text of a flag's error.
func plainFlagError(s string) string {
	for of, want := range map[string]string{"ParseInt": "a whole number", "ParseBool": "true or false"} {
		if head, _, ok := strings.Cut(s, "strconv."+of); ok {
			return head + "it must be " + want
		}
	}
	return s
}

// noSuchCommand refuses what stands where a command should, and names what was
// perhaps meant.
func noSuchCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	cmd.SuggestionsMinimumDistance = 2
	meant := ""
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		meant = "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return usage("unknown command %q for %q%s", args[0], cmd.CommandPath(), meant)
}

// takes checks the number of arguments; most < 0 is any number. what names
// them in the message: "the id of a wrapper".
func takes(least, most int, what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch n := len(args); {
		case n < least:
			return usage("%s is missing", what)
		case most == 0 && n > 0:
			return usage("unexpected argument %q", args[0])
		case most >= 0 && n > most:
			return usage("unexpected argument %q after %s", args[most], what)
		}
		return nil
	}
}

// places are the settings that say where the daemon is.
func (a *app) places() (config.Daemon, error) {
	d, warnings, err := config.LoadDaemon(a.env, a.goos)
	if err != nil {
		return d, fmt.Errorf("reading the settings: %w", err)
	}
	if !a.warned {
		a.warned = true
		for _, w := range warnings {
			a.warn("%s", w)
		}
	}
	return d, nil
}

// daemon is the running daemon of these settings.
func (a *app) daemon() (control.Backend, error) {
	d, err := a.places()
	if err != nil {
		return nil, err
	}
	return a.reach(d, control.ClientOptions{Version: a.version.Version}), nil
}

func (a *app) reach(d config.Daemon, o control.ClientOptions) control.Backend {
	b := a.connect(d.ControlSocket, o)
	a.reached = append(a.reached, b)
	return b
}

// serverVersion is the version of the daemon that answered; "" if none did.
func (a *app) serverVersion() string {
	for _, b := range a.reached {
		if c, ok := b.(interface{ ServerVersion() string }); ok && c.ServerVersion() != "" {
			return c.ServerVersion()
		}
	}
	return ""
}

// warnSkew says when the daemon that answered is of another version.
func (a *app) warnSkew() {
	if v := a.serverVersion(); v != "" && v != a.version.Version {
		a.warn("the running daemon is version %s and this command is version %s; restart the daemon", v, a.version.Version)
	}
}
