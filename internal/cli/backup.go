package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/hyperbolic-gateway/hb-rest/internal/config"
	"github.com/hyperbolic-gateway/hb-rest/internal/control"
	"github.com/hyperbolic-gateway/hb-rest/internal/daemon"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

type backupOptions struct {
	app  *app
	dir  string
	json bool
}

func (a *app) backupCommand() *cobra.Command {
	o := &backupOptions{app: a}
	cmd := &cobra.Command{
		Use:   "backup DIR",
		Short: "Copy what hbrestd holds into a new folder, while it runs",
		Long: `Writes the wrappers with their versions, the settings, the sealed credentials and
the audit trail as they are at one moment into DIR, which is made and must not be
there yet (or be empty) nor lie in the home's wrap folder, with a manifest of sizes and SHA-256 digests. Calls and
changes go on meanwhile. When the daemon does not run, the command copies the
files itself. "hbrestd restore DIR" puts them back.

The key of the credentials is not in it when the system's keyring has it: then
they open only with the same keyring and the same HB_WRAP_HOME. The encrypted
file of "keyring file" is in it, its passphrase is not. Left out are the token,
the index of what wrappers have read (cortex.db) and the logs.

Only a person may do this: where a variable of a coding agent is set it is
refused, unless they allow it in a window of pinentry.

For a program the columns are: folder, wrappers, credentials, audit rows, head.`,
		Example: "  hbrestd backup ~/backups/hbrestd-2026-12-01\n  hbrestd backup /mnt/backups/hbrestd-1 --json",
		Args:    takes(1, 1, "the folder for the backup"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.dir = args[0]
			return o.run(cmd.Context())
		},
		ValidArgsFunction: onlyFolders,
	}
	addJSON(cmd, &o.json)
	return cmd
}

// onlyFolders completes the names of folders.
func onlyFolders(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}

func (o *backupOptions) run(ctx context.Context) error {
	d, err := o.app.places()
	if err != nil {
		return err
	}
	if o.dir == "" {
		return usage("the folder for the backup is missing")
	}
	dir, err := filepath.Abs(o.dir)
	if err != nil {
		return err
	}
	if _, err := o.app.person(ctx, "copy all that hbrestd holds to "+dir, "copy all that hbrestd holds"); err != nil {
		return err
	}
	r, err := o.write(ctx, d, dir)
	if err != nil {
		return err
	}
	// A service may have a /tmp of its own.
	info, err := os.Stat(filepath.Join(dir, control.BackupManifest))
	if errors.Is(err, fs.ErrNotExist) {
		return failed(exitFailed, "Name a folder that both see, such as one below "+d.Home+".",
			"the daemon has written the backup to its own %s, which is not the one that this command sees", dir)
	}
	if o.json {
		return o.app.printJSON(r)
	}
	rows, credentials := strconv.FormatUint(r.AuditRows, 10), strconv.Itoa(r.Credentials)
	if o.app.width() == 0 {
		err = o.app.print(separated([][]string{{r.Dir, strconv.Itoa(r.Wrappers), credentials, rows, r.AuditHead}}))
	} else {
		err = o.app.print(facts(backupFacts(&r.Backup, r.Dir)))
	}
	if err != nil {
		return err
	}
	switch {
	case r.Key == "file":
		o.app.say("the encrypted key of the credentials is in it, its passphrase is not")
	case r.Credentials > 0:
		o.app.say("the key of the credentials is not in it: it is %s in the keyring, and theirs only under the same HB_WRAP_HOME", daemon.KeyItem(d))
	}
	if r.AuditProblem != "" {
		o.app.warn("the audit trail does not verify, and did not before it was copied: %s", r.AuditProblem)
	}
	if info != nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		o.app.warn("the disk of %s does not keep file modes; look who else can read it", dir)
	}
	return nil
}

// write has the daemon make the backup, or makes it where none runs.
func (o *backupOptions) write(ctx context.Context, d config.Daemon, dir string) (*control.BackupResult, error) {
	b := o.app.reach(d, control.ClientOptions{Version: o.app.version.Version})
	r, err := b.Backup(ctx, &control.BackupRequest{Dir: dir})
	if err == nil || !fault.Is(err, "BRIDGE_UNREACHABLE") {
		return r, err
	}
	if off := daemon.LookOffline(d); off.StoreErr == nil && (off.Store.InUse || !off.Store.Exists) {
		return nil, err
	}
	o.app.say("the daemon does not run; the files are copied without it")
	return daemon.BackupOffline(ctx, d, o.app.version.Version, dir)
}

// backupFacts are what a person wants to know of a backup.
func backupFacts(b *control.Backup, dir string) [][2]string {
	var bytes int64
	for _, f := range b.Files {
		bytes += f.Bytes
	}
	return [][2]string{
		{"backup", dir},
		{"of", b.Time + ", by hbrestd " + b.Version},
		{"wrappers", fmt.Sprintf("%d, revision %d", b.Wrappers, b.Revision)},
		{"credentials", strconv.Itoa(b.Credentials)},
		{"audit trail", fmt.Sprintf("%s, head %s", counted(int(b.AuditRows), "row", "rows"), b.AuditHead)},
		{"size", fmt.Sprintf("%s in %s", megabytes(bytes), counted(len(b.Files), "file", "files"))},
	}
}
