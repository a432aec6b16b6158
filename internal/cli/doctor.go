package cli

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/autostart"
	"github.com/hyperbolic-gateway/hb-rest/internal/config"
	"github.com/hyperbolic-gateway/hb-rest/internal/control"
	"github.com/hyperbolic-gateway/hb-rest/internal/daemon"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// How long `doctor` may take, each check and the whole.
const (
	checkTimeout   = 3 * time.Second // of one question to the daemon, the service manager or a program
	keyringTimeout = 7 * time.Second // a keyring has five to answer
	clientTimeout  = 8 * time.Second // from the start of a client's entry to its answer
	doctorTimeout  = 19 * time.Second
)

// The states of a finding.
const (
	findOK   = "ok"
	findWarn = "warn" // works, and should be known
	findFail = "FAIL"
	findSkip = "skip" // could not be checked, or there is nothing to check
)

// A finding is one line of `doctor`.
type finding struct {
	Check  string   `json:"check"`
	State  string   `json:"state"`
	Detail string   `json:"detail"`
	Fix    string   `json:"fix,omitempty"` // what to do, for a person
	Run    []string `json:"run,omitempty"` // the commands for a shell that do it, in order
}

// A healthReport is the answer of `doctor`. OK: nothing fails; warnings do not
// count.
type healthReport struct {
	OK     bool      `json:"ok"`
	Checks []finding `json:"checks"`
}

// A checkup is one run of `doctor`. What it finds out early, later checks use.
type checkup struct {
	app  *app
	json bool

	d         config.Daemon
	shim      config.Shim
	backend   control.Backend
	status    *api.Status // of the daemon that answers the control socket; nil: none does
	unreached error       // why status is nil
	offline   daemon.Offline
	service   *autostart.State
	noSvc     error // why service is nil
}

func (a *app) doctorCommand() *cobra.Command {
	o := &checkup{app: a}
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Find out what is wrong with this installation, and how to mend it",
		Long: `Looks at the settings, the files and their modes, the daemon and its port, the
token file, the service, the keyring, the wrappers, the outbound policy and every
MCP client that has an entry, which it starts as the client would. It works
whether the daemon runs or not, takes less than 20 seconds, and changes nothing;
only the disk is tried with a small file, which is removed again.

Each line is ok, warn, FAIL or skip. Below a line is what mends it: begin with
the first. Exit code 1: something fails. Values of tokens and credentials are
never printed.`,
		Example: "  hbrestd doctor\n  hbrestd doctor --json",
		Args:    takes(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	addJSON(cmd, &o.json)
	return cmd
}

func (o *checkup) run(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, doctorTimeout)
	defer cancel()
	o.app.warned = true // warnings about the settings are findings
	r := healthReport{Checks: o.examine(limited)}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	o.app.reached = nil // a daemon of another version is a finding; it is not said twice
	failed := 0
	for _, f := range r.Checks {
		if f.State == findFail {
			failed++
		}
	}
	r.OK = failed == 0
	if err := o.print(r); err != nil {
		return err
	}
	if r.OK {
		return nil
	}
	if !o.json {
		o.app.say("%s: mend them from the top, then run `hbrestd doctor` again", counted(failed, "check fails", "checks fail"))
	}
	return errSilent
}

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// examine is every check, in the order in which faults should be mended. Those
// that wait for something run at the same time.
func (o *checkup) examine(ctx context.Context) []finding {
	bad := o.settings()
	if bad != nil {
		return []finding{*bad, o.programs(ctx)}
	}
	out := append(o.settingsFine(), o.programs(ctx))
	out = append(out, o.folders()...)
	out = append(out, o.files()...)
	out = append(out, o.disk())
	o.reach(ctx)
	if o.status == nil {
		o.offline = daemon.LookOffline(o.d)
		if c, _, err := config.LoadDaemon(o.app.env.Over(o.offline.Store.Settings), o.app.goos); err == nil {
			o.d.Addr, o.d.Keyring, o.d.AllowPrivate, o.d.AllowHTTP = c.Addr, c.Keyring, c.AllowPrivate, c.AllowHTTP // as the next start has them
		}
	}
	o.askManager(ctx)
	parts := []func(context.Context) []finding{o.daemonChecks, o.serviceChecks, o.tokenChecks, o.storeChecks, o.keyringChecks, o.policyChecks, o.clientChecks}
	found := make([][]finding, len(parts))
	var wg sync.WaitGroup
	for i, part := range parts {
		wg.Go(func() { found[i] = part(ctx) })
	}
	wg.Wait()
	return append(out, slices.Concat(found...)...)
}

func (o *checkup) print(r healthReport) error {
	if o.json {
		return o.app.printJSON(r)
	}
	if o.app.width() == 0 {
		var rows [][]string
		for _, f := range r.Checks {
			rows = append(rows, []string{f.State, f.Check, f.Detail, f.Fix, strings.Join(f.Run, "; ")})
		}
		return o.app.print(separated(rows))
	}
	long := 0
	for _, f := range r.Checks {
		long = max(long, len(f.Check))
	}
	var b strings.Builder
	for _, f := range r.Checks {
		fmt.Fprintf(&b, "%-4s  %-*s  %s\n", f.State, long, f.Check, clean(f.Detail))
		if f.Fix != "" {
			fmt.Fprintf(&b, "      fix: %s\n", clean(f.Fix))
		}
		for _, line := range f.Run {
			fmt.Fprintf(&b, "      run: %s\n", clean(line))
		}
	}
	return o.app.print(b.String())
}

func fine(check, format string, args ...any) finding {
	return finding{Check: check, State: findOK, Detail: fmt.Sprintf(format, args...)}
}

func skipped(check, format string, args ...any) finding {
	return finding{Check: check, State: findSkip, Detail: fmt.Sprintf(format, args...)}
}

// wrong is a finding for an error: its hint is the fix.
func wrong(check string, err error) finding {
	_, e := explain(nil, err)
	fix, run := commandIn(e.Hint)
	detail, inline, found := strings.Cut(e.Message, "; run: ")
	if found {
		fix, run = "", []string{inline}
	}
	return finding{Check: check, State: findFail, Detail: detail, Fix: fix, Run: run}
}

var (
	afterRun = regexp.MustCompile(`^Run:? (chmod \d+ '(?:[^']|'\\'')*'|[a-z][^,;.` + "`" + `]*)`)
	ticked   = regexp.MustCompile("`([^`]+)`")
	blank    = regexp.MustCompile(`[A-Z]{3,}|\.\.\.`) // NAME, ID: a word that the reader fills in
)

// commandIn takes the command out of a hint. A hint that is more than one stays
// beside it.
func commandIn(hint string) (fix string, run []string) {
	if m := afterRun.FindStringSubmatch(hint); m != nil {
		rest := strings.TrimSpace(strings.TrimPrefix(strings.TrimLeft(hint[len(m[0]):], ".,; "), "then repeat the call."))
		return rest, []string{strings.TrimSpace(m[1])}
	}
	if m := ticked.FindStringSubmatch(hint); m != nil && !blank.MatchString(m[1]) {
		return hint, []string{m[1]}
	}
	return hint, nil
}

// startCommand is what starts the daemon on this machine.
func (o *checkup) startCommand() string {
	switch {
	case o.service == nil:
		return "hbrestd run"
	case !o.service.Installed:
		return "hbrestd service install --now"
	}
	return "hbrestd service start"
}

// restartCommands are what starts the running daemon again.
func (o *checkup) restartCommands() []string {
	if o.service != nil && o.service.Running() && (o.service.PID == 0 || o.service.PID == o.status.PID) {
		return []string{"hbrestd service restart"}
	}
	return []string{endCommand(o.app.goos, o.status.PID), o.startCommand()}
}

func endCommand(goos string, pid int) string {
	if goos == "windows" {
		return fmt.Sprintf("taskkill /PID %d /F", pid)
	}
	return fmt.Sprintf("kill %d", pid)
}

// reach asks the daemon for its state, over the control socket.
func (o *checkup) reach(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	o.backend = o.app.reach(o.d, control.ClientOptions{Version: o.app.version.Version, Timeout: checkTimeout})
	o.status, o.unreached = o.backend.Status(ctx)
	if o.unreached != nil {
		o.status = nil
	}
}

// quote writes a path for a shell.
func (o *checkup) quote(path string) string {
	if o.app.goos == "windows" {
		return `"` + path + `"`
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// because is an error in one sentence.
func because(err error) string {
	if e := fault.From(err); e != nil && e.Code != "INTERNAL" {
		return e.Message
	}
	return err.Error()
}
