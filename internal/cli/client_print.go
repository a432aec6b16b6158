package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hyperbolic-gateway/hb-rest/internal/clientconfig"
)

// A clientSnippet is the answer of `client print`.
type clientSnippet struct {
	Client  string             `json:"client"`
	File    string             `json:"file"`
	Entry   clientconfig.Entry `json:"entry"`
	Snippet string             `json:"snippet"`
	Own     []string           `json:"ownCommand,omitempty"` // the client's own command line for the same
	Reload  string             `json:"reload"`
}

func (a *app) clientPrintCommand() *cobra.Command {
	o := &clientOptions{app: a}
	cmd := &cobra.Command{
		Use:   "print NAME",
		Short: "Print what to put into a client's file by hand",
		Long: `Prints the entry as the client writes it, and on stderr the file that it belongs
into and the client's own command for the same, if it has one. Nothing is
changed.`,
		Example: "  hbrestd client print goose\n  hbrestd client print codex --command /usr/bin/hb-rest",
		Args:    takes(1, 1, "the name of a client"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.snippet(cmd.Context(), args[0])
		},
		ValidArgsFunction: completeClients(1, false),
	}
	o.addScope(cmd)
	o.addCommand(cmd)
	addJSON(cmd, &o.json)
	return cmd
}

func (o *clientOptions) snippet(ctx context.Context, name string) error {
	env, scope, err := o.env()
	if err != nil {
		return err
	}
	c, err := findClient(name)
	if err != nil {
		return err
	}
	w, err := o.wanted(ctx)
	if err != nil {
		return err
	}
	s := clientSnippet{
		Client: c.Name, File: c.Path(env, scope), Entry: w.Entry, Snippet: c.Snippet(w.Entry),
		Own: c.OwnCommand(scope, w.Entry), Reload: c.Reload,
	}
	if s.File == "" {
		return usage("%s has no configuration in a project's folder; leave out --scope", c.Title)
	}
	if o.json {
		return o.app.printJSON(s)
	}
	o.app.say("for %s; it belongs into %s", c.Title, s.File)
	if s.Own != nil {
		o.app.say("its own command for the same: %s", shellLine(s.Own))
	}
	return o.app.print(s.Snippet)
}

// shellLine is a command line as one types it into a POSIX shell.
func shellLine(args []string) string {
	quoted := make([]string, len(args))
	for i, a := range args {
		quoted[i] = a
		if a == "" || strings.ContainsFunc(a, func(r rune) bool {
			return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=@%+,", r)
		}) {
			quoted[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}
