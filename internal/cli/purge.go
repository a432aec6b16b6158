package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hyperbolic-gateway/hb-rest/internal/autostart"
	"github.com/hyperbolic-gateway/hb-rest/internal/clientconfig"
	"github.com/hyperbolic-gateway/hb-rest/internal/config"
	"github.com/hyperbolic-gateway/hb-rest/internal/daemon"
)

// purgeWord is what a person types to have everything removed.
const purgeWord = "purge"

// What hbrestd and hb-rest make, as patterns of filepath.Match. Nothing else is
// removed: HB_WRAP_HOME may have been a folder with other things in it.
var (
	ourHomeFiles = []string{"hb-rest.log*", "hbrestd.log*", "control.sock", ".new.sock"}
	ourWrapFiles = []string{"store.db*", ".store.db-*.tmp", "audit.db*", "audit-*.db*", ".audit.db-*.tmp", ".backup-*", ".restore-*", "token", ".token.new", "keyring", "keyring-*.before-restore-*", "cortex*", "drafts", ".doctor-*.tmp"}
)

// A purgeItem is one thing that is removed.
type purgeItem struct {
	What string `json:"what"` // service, client, key, file, folder
	Name string `json:"name"` // a path, or the name of a client or of the key
	Done bool   `json:"done"`
	Note string `json:"note,omitempty"` // why not, or what else there is to say

	dir, file string // of a file: the folder that must not be left, and the name in it
}

// A purgeReport is the answer of `purge`.
type purgeReport struct {
	OK     bool        `json:"ok"`
	DryRun bool        `json:"dryRun"`
	Items  []purgeItem `json:"items"`
	Left   []string    `json:"left,omitempty"` // what is there and not hbrestd's
}

type purgeOptions struct {
	app    *app
	json   bool
	yes    bool
	dryRun bool

	d       config.Daemon
	service *autostart.Service // nil: none is installed
	env     clientconfig.Env
	r       purgeReport
}

func (a *app) purgeCommand() *cobra.Command {
	o := &purgeOptions{app: a}
	cmd := &cobra.Command{
		Use:   "purge",
		Short: "Remove everything that hbrestd has stored, for good",
		Long: `Lists what hbrestd has on this account, and removes it once you have typed the
word purge: the service, the entries in MCP clients, the key of the credentials in
the keyring, and in its home the wrappers, the credentials, the audit trail, the
token and the logs. Nothing of it can be had back. The programs stay, and so does
whatever in these folders is not hbrestd's; symbolic links are not followed.

A service that runs is stopped first; a daemon that was started by hand must be
ended before. Only a person may do this: under a coding agent it is refused,
with --yes too, unless they allow it in a window of pinentry.`,
		Example: "  hbrestd purge --dry-run\n  hbrestd purge\n  HB_WRAP_HOME=/tmp/trial hbrestd purge --yes",
		Args:    takes(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "do not ask for the word")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "list it, and remove nothing")
	addJSON(cmd, &o.json)
	return cmd
}

func (o *purgeOptions) run(ctx context.Context) error {
	var err error
	if o.d, err = o.app.places(); err != nil {
		return err
	}
	o.r = purgeReport{DryRun: o.dryRun, Items: []purgeItem{}}
	if err := o.collect(ctx); err != nil {
		return err
	}
	if !o.dryRun {
		if err := o.agreed(ctx); err != nil {
			return err
		}
		if err := o.remove(ctx); err != nil {
			return err
		}
	}
	o.r.OK = !slices.ContainsFunc(o.r.Items, func(i purgeItem) bool { return !o.dryRun && !i.Done && i.What != "folder" })
	if err := o.report(); err != nil {
		return err
	}
	if !o.r.OK {
		return errSilent
	}
	return nil
}

// collect finds out what there is. It fails when that must not be removed now.
func (o *purgeOptions) collect(ctx context.Context) error {
	so := &serviceOptions{app: o.app}
	running := so.running(ctx, o.d)
	if s, err := so.service(o.d); err == nil {
		st, err := s.State(ctx)
		if err == nil && st.Installed {
			o.service = s
			o.add(purgeItem{What: "service", Name: st.Unit})
			if running != nil && (st.State == "unknown" || st.PID == running.PID) {
				running = nil // it is stopped with its service
			}
		}
	}
	if running != nil {
		return failed(exitFailed, fmt.Sprintf("End it with `%s`, or Ctrl-C in its terminal, then run the command again.", endCommand(o.app.goos, running.PID)),
			"the daemon runs (pid %d), and not as a service that could be stopped", running.PID)
	}
	if o.service == nil && daemon.LookOffline(o.d).Store.InUse {
		return failed(exitFailed, "End it, then run the command again; `hbrestd doctor` says more.", "another hbrestd has %s open", o.d.StorePath)
	}
	in := &installOptions{clientOptions: clientOptions{app: o.app, scope: string(clientconfig.User)}}
	env, scope, err := in.env()
	if err != nil {
		return err
	}
	o.env = env
	for _, c := range clientconfig.Known() {
		if st, err := c.Inspect(env, scope); err == nil && st.Present && st.Ours {
			o.add(purgeItem{What: "client", Name: c.Name, Note: st.Path})
		}
	}
	o.add(purgeItem{What: "key", Name: daemon.KeyItem(o.d)})
	if home, _ := o.app.env("HOME"); o.app.goos == "darwin" && filepath.IsAbs(home) { // launchd's log is beside those of others
		logs := filepath.Join(home, "Library", "Logs")
		if _, err := os.Lstat(filepath.Join(logs, "hbrestd.log")); err == nil {
			o.add(purgeItem{What: "file", Name: filepath.Join(logs, "hbrestd.log"), dir: logs, file: "hbrestd.log"})
		}
	}
	return o.collectFiles()
}

func (o *purgeOptions) add(i purgeItem) { o.r.Items = append(o.r.Items, i) }

// collectFiles looks into the daemon's folders. A folder that is a symbolic link
// is refused: what it leads to was never hbrestd's.
func (o *purgeOptions) collectFiles() error {
	folders := []struct {
		dir  string
		ours []string
	}{{o.d.WrapDir, ourWrapFiles}, {o.d.Home, ourHomeFiles}}
	if socket := filepath.Dir(o.d.ControlSocket); o.app.goos != "windows" && socket != o.d.Home {
		folders = append(folders, struct {
			dir  string
			ours []string
		}{socket, []string{"control.sock", ".new.sock"}})
	}
	for _, f := range folders {
		info, err := os.Lstat(f.dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return fmt.Errorf("looking at the daemon's folder: %w", err)
		case !info.IsDir():
			return failed(exitFailed, "Look at it yourself: it was not made by hbrestd.", "%s is not a folder but %s; nothing was removed", f.dir, kindOf(info))
		}
		entries, err := os.ReadDir(f.dir)
		if err != nil {
			return fmt.Errorf("looking into the daemon's folder: %w", err)
		}
		for _, e := range entries {
			path := filepath.Join(f.dir, e.Name())
			switch {
			case slices.ContainsFunc(f.ours, func(pattern string) bool { is, _ := filepath.Match(pattern, e.Name()); return is }):
				o.add(purgeItem{What: "file", Name: path, dir: f.dir, file: e.Name()})
			case path != o.d.WrapDir:
				o.r.Left = append(o.r.Left, path)
			}
		}
		o.add(purgeItem{What: "folder", Name: f.dir, dir: f.dir})
	}
	return nil
}

func kindOf(info fs.FileInfo) string {
	if info.Mode()&fs.ModeSymlink != 0 {
		return "a symbolic link"
	}
	return "a file"
}

// agreed is nil when a person wants it.
func (o *purgeOptions) agreed(ctx context.Context) error {
	p, err := o.app.person(ctx, "remove everything that hbrestd has stored", "remove everything")
	if err != nil || o.yes {
		return err
	}
	t, err := p.terminal()
	if err != nil {
		return failed(exitCredential, "Run it in a terminal, or say yes beforehand with --yes.", "everything would be removed; somebody must say yes to that, and %v", err)
	}
	defer t.Close()
	answer, err := t.line(ctx, o.list()+"\nAll of this is removed for good. Type "+purgeWord+" to go on: ", false)
	if err != nil {
		return err
	}
	if strings.TrimSpace(string(answer)) != purgeWord {
		return errDeclined
	}
	return nil
}

// list is what is to be removed, for a person.
func (o *purgeOptions) list() string {
	t := table{header: []string{"WHAT", "NAME"}}
	for _, i := range o.r.Items {
		if i.Note != "" {
			i.Name += " (" + i.Note + ")"
		}
		t.add(i.What, i.Name)
	}
	text := aligned(t, 1<<20, false)
	for _, p := range o.r.Left {
		text += "not hbrestd's, and left: " + clean(p) + "\n"
	}
	return text
}

// remove removes it: first what uses the rest. The error is one after which
// nothing of the rest may be touched.
func (o *purgeOptions) remove(ctx context.Context) error {
	if o.service != nil {
		if _, err := o.service.Uninstall(ctx); err != nil {
			return err
		}
	}
	before := daemon.LookOffline(o.d)
	if before.Store.InUse {
		return failed(exitFailed, "End it, then run the command again; `hbrestd doctor` says more.", "another hbrestd has %s open; of its files none was removed", o.d.StorePath)
	}
	in := &installOptions{clientOptions: clientOptions{app: o.app, scope: string(clientconfig.User)}, via: "file", remove: true, yes: true}
	for i := range o.r.Items {
		item := &o.r.Items[i]
		var err error
		switch item.What {
		case "service": // done above
		case "client":
			c, _ := clientconfig.Find(item.Name)
			if !c.Editable {
				err = fmt.Errorf("take the entry %s out of %s by hand", clientconfig.Name, item.Note)
				break
			}
			_, err = in.change(ctx, o.env, clientconfig.Request{Scope: clientconfig.User}, c)
		case "key":
			var nothing bool
			if nothing, err = daemon.ForgetKey(ctx, o.d); err != nil && (nothing || before.Store.Sealed == 0) {
				item.Note, err = because(err), nil
			}
		case "file":
			err = removeIn(item.dir, item.file)
		case "folder":
			if err = os.Remove(item.Name); err != nil { // empties only
				item.Note = "it is not empty"
				continue
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if item.Done = err == nil; err != nil {
			item.Note = because(err)
		}
	}
	return nil
}

// removeIn removes what is called name in a folder, and what is in that. It
// never leaves the folder, whatever links are there.
func removeIn(dir, name string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return root.RemoveAll(name)
}

func (o *purgeOptions) report() error {
	if o.json {
		return o.app.printJSON(o.r)
	}
	if o.dryRun {
		return o.app.print(o.list())
	}
	var b strings.Builder
	for _, i := range o.r.Items {
		word := map[bool]string{true: "removed", false: "NOT removed"}[i.Done]
		switch {
		case i.What == "folder" && !i.Done:
			word = "left"
		case i.What == "key" && i.Done && i.Note != "": // no keyring, and nothing that needed one
			word = "not looked for"
		}
		fmt.Fprintf(&b, "%s: %s %s", word, i.What, clean(i.Name))
		if i.Note != "" {
			fmt.Fprintf(&b, " (%s)", clean(i.Note))
		}
		b.WriteByte('\n')
	}
	for _, p := range o.r.Left {
		fmt.Fprintf(&b, "left: %s, which is not hbrestd's\n", clean(p))
	}
	return o.app.print(b.String())
}
