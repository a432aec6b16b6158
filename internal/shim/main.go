package shim

import (
	"context"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/client"
	"github.com/hyperbolic-gateway/hb-rest/internal/config"
)

// exitTime is how long after the end of input the program may still run,
// whatever a call is doing.
const exitTime = 2 * time.Second

const usage = `hb-rest is an MCP server: it gives AI agents the REST wrappers that hbrestd keeps.
It talks over standard input and output and is started by an MCP client, not by hand.

Put this into the client's configuration (most clients call the list mcpServers):

  "hb-rest": {
    "command": %q,
    "args": [],
    "env": {"HB_WRAP_TOKEN_FILE": %q}
  }

The daemon must run: hbrestd run. hb-rest may be started first.

Usage: hb-rest [--version | --help]

Environment:
  HB_WRAP_TOKEN_FILE   the daemon's token file; "hbrestd status" prints it
  HB_WRAP_HOME         where to look for it when HB_WRAP_TOKEN_FILE is not set
  HB_WRAP_URL          the daemon's address (http://127.0.0.1:4111)
  HB_WRAP_MAX_TOOLS    how many wrappers may be tools of their own (40, at most 200; 0: none)
  HB_WRAP_TIMEOUT_MS   the longest wait for one answer of the daemon (55000)
  HB_MCP_LOG=0         write no log file
`

// Main is the program hb-rest: args are those after its name. It serves one
// client on stdin and stdout until stdin ends or ctx does, and returns the
// exit code: 0, 1 when the session broke, 2 for a wrong command line or
// setting. Only protocol is written to stdout while it serves.
func Main(ctx context.Context, args []string, env config.Env, stdin io.Reader, stdout, stderr io.Writer) int {
	cfg, warnings, err := config.LoadShim(env, runtime.GOOS)
	if len(args) > 0 {
		return answerFlags(args, cfg, stdout, stderr)
	}
	if err != nil {
		fmt.Fprintf(stderr, "hb-rest: error: reading the settings: %v\n", err)
		return 2
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	// What net/http writes to the standard logger may hold what a peer sent.
	stdlog.SetOutput(io.Discard)
	log, closeLog := openLog(cfg)
	defer closeLog()
	if isTerminal(stdin) {
		fmt.Fprint(stderr, "hb-rest: this is an MCP server and waits for JSON-RPC lines on standard input.\n"+
			"An MCP client should start it; `hb-rest --help` shows the configuration. Ctrl-D ends it.\n")
	}
	version := Version()
	bridge := client.New(client.Options{
		URL: cfg.URL, TokenFiles: cfg.TokenCandidates, Version: version, Timeout: cfg.Timeout, Log: log,
	})
	defer bridge.Close()
	server := New(Options{Client: bridge, Version: version, MaxTools: cfg.MaxTools, Log: log})
	return serve(ctx, server, NewStdio(stdin, stdout), log, func() {
		log.Info("start", "version", version)
		for _, w := range warnings {
			log.Warn(string(w))
		}
		if len(cfg.Ignored) > 0 {
			log.Warn("these settings belong to the daemon and have no effect here", "names", cfg.Ignored)
		}
	})
}

// serve runs the session. It does not wait for a call that hangs once the
// client is gone or a signal has come. What began writes to the log is no
// reason for the client to wait.
func serve(ctx context.Context, s *Server, t *Stdio, log *slog.Logger, began func()) int {
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, t) }()
	began()
	eof := t.EOF()
	stopped := ctx.Done()
	var late <-chan time.Time
	for {
		select {
		case err := <-done:
			if err != nil && ctx.Err() == nil && !errors.Is(err, io.EOF) {
				log.Error("session ended", "err", err)
				return 1
			}
			log.Info("end")
			return 0
		case <-eof:
			eof, late = nil, time.After(exitTime)
		case <-stopped:
			stopped, late = nil, time.After(exitTime)
			t.Stop()
		case <-late:
			log.Warn("ended with a call still running")
			return 0
		}
	}
}

func answerFlags(args []string, cfg config.Shim, stdout, stderr io.Writer) int {
	switch args[0] {
	case "--version", "-version", "version":
		fmt.Fprintln(stdout, "hb-rest "+Version())
		return 0
	case "--help", "-help", "-h", "help":
		fmt.Fprintf(stdout, usage, executable(), tokenPath(cfg))
		return 0
	}
	fmt.Fprintf(stderr, "hb-rest: error: unknown argument %q\nhb-rest: hint: `hb-rest --help`\n", args[0])
	return 2
}

// executable is this program's absolute path, which clients started from a
// desktop need.
func executable() string {
	if p, err := os.Executable(); err == nil {
		return p
	}
	return "hb-rest"
}

func tokenPath(cfg config.Shim) string {
	if len(cfg.TokenCandidates) > 0 {
		return cfg.TokenCandidates[0]
	}
	return "PATH"
}

func openLog(cfg config.Shim) (*slog.Logger, func()) {
	if cfg.LogPath == "" {
		return slog.New(slog.DiscardHandler), func() {}
	}
	f := &lateWriter{to: &logFile{path: cfg.LogPath}}
	return slog.New(slog.NewTextHandler(f, nil)).With("pid", os.Getpid()), func() { _ = f.Close() }
}

// isTerminal reports whether r is a device with a person in front of it;
// /dev/null is a device too.
func isTerminal(r io.Reader) bool {
	f, ok := r.(*os.File)
	if !ok {
		return false
	}
	st, err := f.Stat()
	if err != nil || st.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(st, null)
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
