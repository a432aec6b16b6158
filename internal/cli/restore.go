package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hyperbolic-gateway/hb-rest/internal/control"
	"github.com/hyperbolic-gateway/hb-rest/internal/daemon"
)

type restoreOptions struct {
	app    *app
	dir    string
	yes    bool
	dryRun bool
	json   bool
}

// A restoreReport is the answer of `restore`.
type restoreReport struct {
	OK     bool              `json:"ok"`
	DryRun bool              `json:"dryRun"`
	Dir    string            `json:"dir"`
	Home   string            `json:"home"`
	Backup control.Backup    `json:"backup"`
	Files  []daemon.Restored `json:"files"`
	// HereLast is the newest row of the trail that was replaced; 0: there was none.
	HereLast uint64 `json:"hereLast,omitempty"`
}

func (a *app) restoreCommand() *cobra.Command {
	o := &restoreOptions{app: a}
	cmd := &cobra.Command{
		Use:   "restore DIR",
		Short: "Put back what hbrestd backup has copied, while no daemon runs",
		Long: `Checks the backup in DIR (each digest of its manifest, and that each file opens
and verifies), says what it would replace, asks, and puts it in place. What was
there is kept beside it, as store.db.before-restore-TIME and so on. Nothing is
changed before everything is checked and copied; a restore that is interrupted
after that is completed by the next start of the daemon. Stop the daemon before,
with "hbrestd service stop", and start it afterwards.

Wrappers, settings, credentials with their hosts, allow rules and approvals are
again what they were then: hosts that were taken away since are allowed again.
The audit trail ends where it ended then, so a head that was noted later is
reported as missing by "hbrestd audit verify --head".

Only a person may do this: under a coding agent it is refused, with --yes too,
unless they allow it in a window of pinentry.

For a program there is a line for each file: its name, and what was there is
kept as.`,
		Example: "  hbrestd restore ~/backups/hbrestd-2026-12-01 --dry-run\n  hbrestd restore ~/backups/hbrestd-2026-12-01",
		Args:    takes(1, 1, "the folder of the backup"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.dir = args[0]
			return o.run(cmd.Context())
		},
		ValidArgsFunction: onlyFolders,
	}
	cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "check the backup, say what would be replaced, and change nothing")
	addJSON(cmd, &o.json)
	return cmd
}

func (o *restoreOptions) run(ctx context.Context) error {
	d, err := o.app.places()
	if err != nil {
		return err
	}
	if o.dir == "" {
		return usage("the folder of the backup is missing")
	}
	dir, err := filepath.Abs(o.dir)
	if err != nil {
		return err
	}
	p, err := o.app.person(ctx, "replace all that hbrestd holds by the backup in "+dir, "replace all that hbrestd holds")
	if err != nil {
		return err
	}
	so := &serviceOptions{app: o.app}
	if running := so.running(ctx, d); running != nil {
		return failed(exitFailed, fmt.Sprintf("Stop it with `hbrestd service stop`, or `%s`, then run the command again.", endCommand(o.app.goos, running.PID)),
			"the daemon runs (pid %d), and its files cannot be replaced meanwhile", running.PID)
	}
	r, err := daemon.PrepareRestore(ctx, d, dir, time.Now())
	if err != nil {
		return err
	}
	defer r.Close()
	report := restoreReport{OK: true, DryRun: o.dryRun, Dir: dir, Home: d.Home, Backup: r.Backup, Files: []daemon.Restored{}, HereLast: r.HereLast}
	if o.dryRun {
		if o.json {
			return o.app.printJSON(report)
		}
		return o.app.print(o.about(r, dir, d.WrapDir) + "nothing was changed\n")
	}
	if !o.yes {
		if err := p.yes(ctx, o.about(r, dir, d.WrapDir)+"Replace what is there?", "what hbrestd holds would be replaced"); err != nil {
			return err
		}
	}
	done, err := r.Do()
	if err != nil {
		return err
	}
	report.Files = append(report.Files, done...)
	if o.json {
		return o.app.printJSON(report)
	}
	return o.report(r, report)
}

// about is what a person decides on: the backup, and what it would replace.
func (o *restoreOptions) about(r *daemon.Restore, dir, wrap string) string {
	here := "nothing"
	switch {
	case len(r.Here.Faults) > 0:
		here = "a damaged store.db: " + r.Here.Faults[0]
	case r.Here.Exists:
		here = fmt.Sprintf("%s, %s", counted(r.Here.Wrappers, "wrapper", "wrappers"), counted(r.Here.Sealed, "credential", "credentials"))
	}
	if r.HereLast > 0 {
		here += ", an audit trail up to row " + strconv.FormatUint(r.HereLast, 10)
	}
	rows := append(backupFacts(&r.Backup, dir), [2]string{"replaces", here + ", in " + wrap})
	if r.Backup.AuditProblem != "" {
		rows = append(rows, [2]string{"note", "the audit trail in the backup does not verify: " + r.Backup.AuditProblem})
	}
	return facts(rows)
}

func (o *restoreOptions) report(r *daemon.Restore, report restoreReport) error {
	var rows [][]string
	var b strings.Builder
	for _, f := range report.Files {
		rows = append(rows, []string{f.Name, f.Kept})
		switch {
		case f.Gone:
			fmt.Fprintf(&b, "moved away %s, which is of after the backup; it is kept as %s\n", clean(f.Name), clean(f.Kept))
		case f.Kept != "":
			fmt.Fprintf(&b, "replaced %s; what was there is kept as %s\n", clean(f.Name), clean(f.Kept))
		default:
			fmt.Fprintf(&b, "put %s in place\n", clean(f.Name))
		}
	}
	text := b.String()
	if o.app.width() == 0 {
		text = separated(rows)
	}
	if err := o.app.print(text); err != nil {
		return err
	}
	if len(rows) == 0 {
		o.app.say("the home holds this backup already; nothing was replaced")
	}
	if seq, _, _ := strings.Cut(r.Backup.AuditHead, ":"); seq != "" {
		if end, err := strconv.ParseUint(seq, 10, 64); err == nil && end < r.HereLast {
			o.app.say("the audit trail ends at row %d now; rows %d to %d are in what was kept, and a head noted of them will be reported as missing", end, end+1, r.HereLast)
		}
	}
	if r.Backup.AuditProblem != "" {
		o.app.warn("the audit trail does not verify, and did not when it was backed up: %s", r.Backup.AuditProblem)
	}
	if r.Backup.Credentials > 0 && r.Backup.Key == "keyring" {
		o.app.say("`hbrestd secret list` says, once the daemon runs, whether the keyring has the key of the credentials")
	}
	o.app.say("start the daemon with `hbrestd service start` or `hbrestd run`; then `hbrestd audit verify` checks the trail")
	return nil
}
