package cli

import (
	"context"
	"errors"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hyperbolic-gateway/hb-rest/internal/clientconfig"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// The states of a client, as --json has them.
const (
	stateOK         = "ok"
	stateNone       = "none"         // no entry
	stateMissing    = "path-missing" // the entry's program is not there
	stateOld        = "old-entry"    // only the predecessor's
	stateDiffers    = "differs"      // another hb-rest, or other settings, than ours
	stateForeign    = "foreign"      // our name, another program
	stateOff        = "off"          // the client was told not to start it
	stateUnreadable = "unreadable"   // the file cannot be read or understood
)

var stateWords = map[string]string{
	stateOK: "ok", stateNone: "not installed", stateMissing: "path missing", stateOld: "old entry", stateDiffers: "differs",
	stateForeign: "not ours", stateOff: "switched off", stateUnreadable: "unreadable",
}

// A clientRow is one line of `client list`.
type clientRow struct {
	Client   string              `json:"client"`
	Title    string              `json:"title"`
	Detected bool                `json:"detected"`
	Editable bool                `json:"editable"` // `client install` can change its file
	State    string              `json:"state"`
	File     string              `json:"file,omitempty"`
	Exists   bool                `json:"exists"` // the file is there
	Entry    *clientconfig.Entry `json:"entry,omitempty"`
	Old      []string            `json:"old,omitempty"` // entries of the predecessor
	Problem  string              `json:"problem,omitempty"`
}

type clientRows struct {
	Scope   string      `json:"scope"`
	Command string      `json:"command,omitempty"` // the hb-rest that `client install` would put in
	Clients []clientRow `json:"clients"`
}

func (a *app) clientListCommand() *cobra.Command {
	o := &clientOptions{app: a}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the MCP clients on this account and what their files say",
		Long: `Lists the clients whose file, or folder, is there. The states: ok; not installed;
path missing (the entry's program is gone); differs (another hb-rest, or other
settings, than this hbrestd would put in); old entry (of kuang-wrap); not ours
(the name is taken by another program); switched off; unreadable.`,
		Example: "  hbrestd client list\n  hbrestd client list --all --json",
		Args:    takes(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.list(cmd.Context()) },
	}
	cmd.Flags().BoolVar(&o.all, "all", false, "also those that do not seem to be there")
	o.addScope(cmd)
	addJSON(cmd, &o.json)
	return cmd
}

func (o *clientOptions) list(ctx context.Context) error {
	env, scope, err := o.env()
	if err != nil {
		return err
	}
	w, wantedErr := o.wanted(ctx)
	rows := clientRows{Scope: string(scope), Command: w.Command, Clients: []clientRow{}}
	for _, c := range clientconfig.Known() {
		if c.Path(env, scope) == "" {
			continue
		}
		st, err := c.Inspect(env, scope)
		if !st.Detected && !o.all {
			continue
		}
		row := clientRow{
			Client: c.Name, Title: c.Title, Detected: st.Detected, Editable: c.Editable,
			File: st.Path, Exists: st.Exists, Entry: st.Entry, Old: st.Old,
		}
		row.State, row.Problem = clientState(c, st, w, wantedErr, err)
		rows.Clients = append(rows.Clients, row)
	}
	return o.printRows(rows, wantedErr)
}

// clientState is one of the states above and, for unreadable, why.
func clientState(c clientconfig.Client, st clientconfig.State, w clientconfig.Wanted, wantedErr, err error) (state, problem string) {
	switch {
	case err != nil:
		return stateUnreadable, messageOf(err)
	case !st.Present && len(st.Old) > 0:
		return stateOld, ""
	case !st.Present:
		return stateNone, ""
	case !st.Ours:
		return stateForeign, ""
	case !filepath.IsAbs(st.Entry.Command) || executable(st.Entry.Command) != nil:
		return stateMissing, ""
	case st.Off:
		return stateOff, ""
	case wantedErr != nil:
		return stateOK, "" // nothing to compare it with
	}
	if sameFile(st.Entry.Command, w.Command) {
		w.Command = st.Entry.Command // by another name
	}
	if !c.Matches(st, w) {
		return stateDiffers, ""
	}
	return stateOK, ""
}

func messageOf(err error) string {
	var e *fault.Error
	if errors.As(err, &e) {
		return e.Message
	}
	return err.Error()
}

func (o *clientOptions) printRows(rows clientRows, wantedErr error) error {
	if o.json {
		return o.app.printJSON(rows)
	}
	if wantedErr != nil {
		o.app.warn("%s", messageOf(wantedErr))
	}
	if len(rows.Clients) == 0 && o.all { // without a home folder
		o.app.say("it is not known where the files of MCP clients are; set HOME (on Windows USERPROFILE)")
		return nil
	}
	if len(rows.Clients) == 0 {
		o.app.say("no MCP client was found; `hbrestd client list --all` shows where they are looked for")
		return nil
	}
	t := table{header: []string{"CLIENT", "STATE", "COMMAND", "FILE"}}
	for _, r := range rows.Clients {
		state := stateWords[r.State]
		if r.State != stateOld && len(r.Old) > 0 {
			state += ", and " + strings.Join(r.Old, ", ")
		}
		command := ""
		if r.Entry != nil {
			command = r.Entry.Command
		}
		t.add(r.Client, state, command, r.File)
	}
	if o.app.width() == 0 {
		return o.app.print(separated(t.rows))
	}
	if err := o.app.print(aligned(t, 1<<20, true)); err != nil { // a path that is cut is none
		return err
	}
	for _, r := range rows.Clients {
		if r.Problem != "" {
			o.app.say("%s", r.Problem)
		}
	}
	return nil
}
