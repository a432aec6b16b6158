package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hyperbolic-gateway/hb-rest/internal/clientconfig"
)

// ownTimeout is how long a client's own command may take.
const ownTimeout = time.Minute

type installOptions struct {
	clientOptions
	names      []string
	via        string
	replaceOld bool
	force      bool
	dryRun     bool
	yes        bool
	remove     bool
}

// A clientChange is what `client install` and `uninstall` did to one client.
type clientChange struct {
	Client   string              `json:"client"`
	File     string              `json:"file"`
	Action   clientconfig.Action `json:"action"`
	DryRun   bool                `json:"dryRun,omitempty"`
	Own      []string            `json:"ownCommand,omitempty"` // what was run instead of editing
	Entry    *clientconfig.Entry `json:"entry,omitempty"`
	Replaced []string            `json:"replaced,omitempty"` // entries of the predecessor that were taken out
	Old      []string            `json:"old,omitempty"`      // those that are still there
	Backup   string              `json:"backup,omitempty"`
	Diff     string              `json:"diff,omitempty"` // with --dry-run
	Notes    []string            `json:"notes,omitempty"`
	Reload   string              `json:"reload,omitempty"`
	Error    string              `json:"error,omitempty"`
}

const clientNames = "NAME..."

func (a *app) clientInstallCommand() *cobra.Command {
	o := &installOptions{clientOptions: clientOptions{app: a}}
	cmd := &cobra.Command{
		Use:   "install " + clientNames,
		Short: "Put hb-rest into the configuration of MCP clients",
		Long: `Adds our entry to the client's file, or brings it up to date. Only the bytes of
the entry change; the file as it was is kept beside it, with .hbrestd.bak behind
its name, and is replaced in one step. A file that cannot be understood is left
alone, and so is an entry of this name that starts another program, without
--force.

Claude Code writes its own file while it runs. Where its command is in PATH, that
is used to add the entry, and the file is only looked at; --via file edits it all
the same. --via command uses the own command of Codex, Gemini CLI or VS Code.

An entry of kuang-wrap, the predecessor, is offered for replacement on a
terminal; --replace-old replaces it without asking.`,
		Example: "  hbrestd client install cursor\n  hbrestd client install --all --dry-run\n  hbrestd client install vscode --scope project",
		Args:    o.arguments(),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.names = args
			return o.run(cmd.Context())
		},
		ValidArgsFunction: completeClients(-1, true),
	}
	o.addCommand(cmd)
	cmd.Flags().StringVar(&o.via, "via", "auto", "auto, file or command: edit the file, or run the client's own command")
	oneOf(cmd, "via", "auto", "file", "command")
	cmd.Flags().BoolVar(&o.replaceOld, "replace-old", false, "take the entries of kuang-wrap out")
	o.addFlags(cmd)
	return cmd
}

func (a *app) clientUninstallCommand() *cobra.Command {
	o := &installOptions{clientOptions: clientOptions{app: a}, remove: true, via: "file"}
	cmd := &cobra.Command{
		Use:   "uninstall " + clientNames,
		Short: "Take hb-rest out of the configuration of MCP clients",
		Long: `Takes our entry out of the client's file, and the list of servers with it if
nothing else was in it. A file that only held our entry is removed, unless there
is a backup beside it, which means that it was there before us. Comments stay.`,
		Example: "  hbrestd client uninstall cursor\n  hbrestd client uninstall --all --yes",
		Args:    o.arguments(),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.names = args
			return o.run(cmd.Context())
		},
		ValidArgsFunction: completeClients(-1, true),
	}
	o.addFlags(cmd)
	cmd.Flags().BoolVar(&o.yes, "yes", false, "do not ask")
	return cmd
}

func (o *installOptions) addFlags(cmd *cobra.Command) {
	o.addScope(cmd)
	cmd.Flags().BoolVar(&o.all, "all", false, "all clients that seem to be there")
	cmd.Flags().BoolVar(&o.force, "force", false, "also an entry of this name that starts another program")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "show what would change, and change nothing")
	addJSON(cmd, &o.json)
}

func (o *installOptions) arguments() cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if o.all && len(args) > 0 {
			return usage("give names or --all, not both")
		}
		if !o.all && len(args) == 0 {
			return usage("the name of a client is missing; `hbrestd client list` shows those that are there")
		}
		return nil
	}
}

// clients are those that were named, or with --all those that seem to be there
// and can be edited.
func (o *installOptions) clients(env clientconfig.Env, scope clientconfig.Scope) ([]clientconfig.Client, error) {
	var list []clientconfig.Client
	for _, name := range o.names {
		c, err := findClient(name)
		if err != nil {
			return nil, err
		}
		list = append(list, c)
	}
	if o.all {
		for _, c := range clientconfig.Known() {
			if c.Editable && c.Detected(env, scope) {
				list = append(list, c)
			}
		}
	}
	return list, nil
}

func (o *installOptions) run(ctx context.Context) error {
	if o.via != "auto" && o.via != "file" && o.via != "command" {
		return usage("--via is %q; it must be auto, file or command", o.via)
	}
	env, scope, err := o.env()
	if err != nil {
		return err
	}
	list, err := o.clients(env, scope)
	if err != nil {
		return err
	}
	var wanted *clientconfig.Wanted
	if !o.remove {
		w, err := o.wanted(ctx)
		if err != nil {
			return err
		}
		wanted = &w
	}
	if len(list) == 0 && !o.json {
		o.app.say("no MCP client was found; name one")
	}
	changes, failures := []clientChange{}, 0
	for _, c := range list {
		ch, err := o.change(ctx, env, clientconfig.Request{Scope: scope, Wanted: wanted, ReplaceOld: o.replaceOld, Force: o.force}, c)
		switch {
		case err != nil && len(list) == 1:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			failures++
			ch.Error = messageOf(err)
			o.app.say("error: %s: %s", c.Name, messageOf(err))
		case !o.json:
			if err := o.tell(c, ch); err != nil {
				return err
			}
		}
		changes = append(changes, ch)
	}
	if o.json {
		if err := o.app.printJSON(struct {
			Clients []clientChange `json:"clients"`
		}{changes}); err != nil {
			return err
		}
	}
	if failures > 0 {
		return errSilent
	}
	return nil
}

// change does what is asked to one client.
func (o *installOptions) change(ctx context.Context, env clientconfig.Env, r clientconfig.Request, c clientconfig.Client) (clientChange, error) {
	out := clientChange{Client: c.Name, File: c.Path(env, r.Scope), DryRun: o.dryRun}
	plan, err := c.Plan(env, r)
	if err != nil {
		return out, err
	}
	if !o.remove && len(plan.Old) > 0 && !o.dryRun && o.app.interactive() {
		question := fmt.Sprintf("%s has an entry of kuang-wrap, the predecessor (%s). Replace it?", c.Title, strings.Join(plan.Old, ", "))
		switch err := o.app.confirm(ctx, question); {
		case err == nil:
			r.ReplaceOld = true
			if plan, err = c.Plan(env, r); err != nil {
				return out, err
			}
		case !errors.Is(err, errDeclined):
			return out, err
		}
	}
	out.Action, out.Replaced, out.Old, out.Notes = plan.Action, plan.Replace, plan.Old, plan.Notes
	if r.Wanted != nil {
		out.Entry, out.Reload = &r.Wanted.Entry, c.Reload
	}
	if !plan.Changes() {
		out.Reload = ""
		return out, nil
	}
	own, err := o.ownCommand(c, r, plan)
	if err != nil {
		return out, err
	}
	out.Own = own
	if o.dryRun {
		out.Diff = fileDiff(plan)
		return out, nil
	}
	if own != nil {
		return out, o.runOwn(ctx, env, c, r, own)
	}
	if o.remove && !o.yes {
		if err := o.app.confirm(ctx, fmt.Sprintf("Take hb-rest out of %s?", plan.Path)); err != nil {
			return out, err
		}
	}
	out.Backup, err = plan.Apply()
	return out, err
}

// ownCommand is the client's own command line if that is to be used. It can
// only add: what it would do to an entry that is there is not known.
func (o *installOptions) ownCommand(c clientconfig.Client, r clientconfig.Request, plan clientconfig.Change) ([]string, error) {
	if o.via == "file" || r.Wanted == nil {
		return nil, nil
	}
	adds := plan.Action == clientconfig.Add && len(plan.Replace) == 0
	args := c.OwnCommand(r.Scope, r.Wanted.Entry)
	found := ""
	if args != nil {
		found = o.app.findProgram(args[0])
	}
	if o.via == "auto" {
		if !c.KeepsOpen(r.Scope) || found == "" || !adds || plan.Loose { // started on a file that it refuses, it would begin a new one
			return nil, nil
		}
		return append([]string{found}, args[1:]...), nil
	}
	switch {
	case args == nil:
		return nil, failed(exitFailed, "Leave out --via.", "%s has no command of its own for this", c.Title)
	case found == "":
		return nil, failed(exitFailed, "Leave out --via, and the file is edited.", "%s is not in PATH", args[0])
	case !adds:
		return nil, failed(exitFailed, "Leave out --via, and the file is edited.", "the own command of %s can only add an entry, and one is there", c.Title)
	}
	return append([]string{found}, args[1:]...), nil
}

// runOwn runs the client's own command, and looks whether that had its effect.
func (o *installOptions) runOwn(ctx context.Context, env clientconfig.Env, c clientconfig.Client, r clientconfig.Request, own []string) error {
	o.app.say("running %s", shellLine(own))
	ctx, cancel := context.WithTimeout(ctx, ownTimeout)
	defer cancel()
	hint := "Add --via file, and the file is edited instead."
	text, err := runQuietly(ctx, own[0], own[1:]...)
	if err != nil {
		if text = strings.TrimSpace(text); text != "" {
			o.app.say("it printed: %s", text)
		}
		return failed(exitFailed, hint, "the command of %s failed: %v", c.Title, err)
	}
	st, err := c.Inspect(env, r.Scope)
	if err != nil {
		return err
	}
	if !c.Matches(st, *r.Wanted) {
		return failed(exitFailed, hint, "the command of %s said that all is well, and %s does not have the entry", c.Title, st.Path)
	}
	return nil
}

// tell prints what was done to one client.
func (o *installOptions) tell(c clientconfig.Client, ch clientChange) error {
	would := map[bool]string{true: "would be ", false: ""}[ch.DryRun]
	line := ""
	switch ch.Action {
	case clientconfig.Add:
		line = would + "added to "
	case clientconfig.Update:
		line = would + "updated in "
	case clientconfig.Remove:
		line = would + "taken out of "
	default:
		line = map[bool]string{true: "is not in ", false: "already there: "}[o.remove]
		if len(ch.Replaced) > 0 {
			line += strings.Join(ch.Replaced, ", ") + " " + would + "taken out of "
		}
	}
	if err := o.app.print(clean(fmt.Sprintf("%s: hb-rest %s%s", c.Name, line, ch.File)) + "\n" + ch.Diff); err != nil {
		return err
	}
	if ch.DryRun && ch.Own != nil {
		o.app.say("this command would be run instead of editing the file: %s", shellLine(ch.Own))
	}
	if ch.Backup != "" {
		o.app.say("the file as it was: %s", ch.Backup)
	}
	for _, n := range ch.Notes {
		o.app.warn("%s: %s", c.Name, n)
	}
	if len(ch.Old) > 0 && !o.remove {
		o.app.warn("%s: the entry of kuang-wrap (%s) is still there, so its tools appear too; --replace-old takes it out", c.Name, strings.Join(ch.Old, ", "))
	}
	if ch.Reload != "" && !ch.DryRun {
		o.app.say("%s", ch.Reload)
	}
	return nil
}

// fileDiff shows an edit.
func fileDiff(ch clientconfig.Change) string {
	after := ch.Path
	if ch.After == nil {
		after = "(removed)"
	}
	before := ch.Path
	if ch.Before == nil {
		before = "(no file)"
	}
	return "--- " + clean(before) + "\n+++ " + clean(after) + "\n" + lineDiff(string(ch.Before), string(ch.After))
}
