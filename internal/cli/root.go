// Package cli is the command tree of hbrestd: it parses, calls one function
// and prints. The answer goes to stdout, everything else to stderr.
//
// It decides nothing that a command line and another face would have to decide
// alike. Start with [Main]; there is one file for each noun.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/hyperbolic-gateway/hb-rest/internal/config"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// Exit codes of hbrestd.
const (
	exitOK         = 0
	exitFailed     = 1
	exitUsage      = 2
	exitNotRunning = 3
	exitNotFound   = 5
	exitInvalid    = 6
	exitUpstream   = 7
)

// An app is one run of the command line.
type app struct {
	env            config.Env
	stdin          io.Reader
	stdout, stderr io.Writer
}

// Main runs one command line and returns the exit code.
func Main(args []string, env config.Env, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	a := &app{env: env, stdin: stdin, stdout: stdout, stderr: stderr}
	root := a.root()
	root.SetArgs(args)
	return a.report(root.ExecuteContext(ctx))
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "hbrestd",
		Short: "Turns REST APIs into small typed tools for AI agents",
		Long: `hbrestd keeps wrappers (saved REST requests with a recipe for their answers),
runs them under an outbound policy, and serves them to hb-rest, the MCP server
that your MCP client starts.`,
		Example:           "  hbrestd run       # start it here, in the foreground\n  hbrestd status    # is it running, and where is its token file?",
		Version:           Version(),
		SilenceUsage:      true,
		SilenceErrors:     true,
		Args:              usageArgs(cobra.NoArgs),
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(a.runCommand(), a.statusCommand())
	return root
}

// A usageError is a command line that cannot be understood: exit code 2.
type usageError struct{ error }

func usageArgs(f cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := f(cmd, args); err != nil {
			return usageError{err}
		}
		return nil
	}
}

// report prints an error for a person and says how to exit.
func (a *app) report(err error) int {
	if err == nil {
		return exitOK
	}
	var usage usageError
	if errors.As(err, &usage) {
		fmt.Fprintf(a.stderr, "hbrestd: error: %v\nhbrestd: hint: `hbrestd --help` lists the commands\n", err)
		return exitUsage
	}
	var f *fault.Error
	if !errors.As(err, &f) {
		fmt.Fprintf(a.stderr, "hbrestd: error: %v\n", err)
		return exitFailed
	}
	fmt.Fprintf(a.stderr, "hbrestd: error: %s\n", f.Message)
	for _, d := range f.Details {
		fmt.Fprintf(a.stderr, "  %s: %s\n", d.Field, d.Message)
	}
	if f.Hint != "" {
		fmt.Fprintf(a.stderr, "hbrestd: hint: %s\n", f.Hint)
	}
	return exitCode(f.Code)
}

func exitCode(c fault.Code) int {
	switch {
	case c == "BRIDGE_UNREACHABLE" || c == "TOKEN_FILE_MISSING":
		return exitNotRunning
	case c == "WRAPPER_NOT_FOUND":
		return exitNotFound
	case strings.HasSuffix(string(c), "_INVALID") || c == "BAD_REQUEST" || c == "BAD_JSON":
		return exitInvalid
	case strings.HasPrefix(string(c), "UPSTREAM_") || strings.HasPrefix(string(c), "RESPONSE_") || strings.HasPrefix(string(c), "POLICY_"):
		return exitUpstream
	}
	return exitFailed
}

// Version is the module's version, or the commit when it was built from a
// checkout.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return "devel-" + s.Value[:12]
		}
	}
	return "devel"
}
