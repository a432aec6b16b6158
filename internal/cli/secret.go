package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hyperbolic-gateway/hb-rest/internal/control"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

func (a *app) secretCommand() *cobra.Command {
	cmd := noun(&cobra.Command{
		Use:   "secret",
		Short: "Store, bind and test credentials",
		Long: `A credential is stored sealed, with a key that is in the system's keyring, and
is sent to the hosts that it is bound to and nowhere else. A wrapper names it in
request.auth; no agent sees its value, and no command prints it.

These commands are for a person. When a variable in the environment tells that
an agent runs one that changes a credential, it is refused, unless pinentry can
ask you and you allow it. That is a speed bump: a program that runs as you can
do what you can.`,
		Example: "  hbrestd secret set orders-key --host api.example.com\n  hbrestd secret list\n  hbrestd secret test orders-key --wrapper orders.list",
	}, a.secretSetCommand(), a.secretListCommand(), a.secretShowCommand(), a.secretBindCommand(), a.secretUnbindCommand(),
		a.secretRotateCommand(), a.secretTestCommand(), a.secretRmCommand())
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage("%s", withoutValue(plainFlagError(err.Error()))) })
	return cmd
}

// withoutValue takes what was given out of the text of a flag's error: it may
// be a value that somebody put onto the command line.
func withoutValue(s string) string {
	if head, _, ok := strings.Cut(s, " in -"); ok && strings.HasPrefix(s, "unknown shorthand flag") {
		return head
	}
	if rest, ok := strings.CutPrefix(s, "invalid argument "); ok {
		if at := strings.LastIndex(rest, ` for "`); at >= 0 {
			what, why, _ := strings.Cut(rest[at:], "flag:")
			if at := strings.LastIndexByte(why, ':'); at >= 0 {
				why = why[at+1:]
			}
			return "invalid argument" + what + "flag: " + strings.TrimSpace(why)
		}
	}
	return s
}

// named takes names of credentials. It repeats nothing of what else is given.
func named(most int) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return usage("the name of a credential is missing")
		case most > 0 && len(args) > most:
			return usage("only the name of a credential stands here; its value is asked for and never given on the command line")
		}
		return nil
	}
}

// secretOptions are the flags and arguments of every verb, and what they need.
type secretOptions struct {
	app     *app
	name    string
	names   []string // of rm
	hosts   []string
	headers []string // NAME[:PREFIX]
	basic   bool
	oauth2  bool
	oauth   control.SecretOAuth
	changed func(flag string) bool
	wrapper string
	stdin   bool
	yes     bool
	json    bool
}

// state asks the daemon for the keyring's state and every credential.
func (o *secretOptions) state(ctx context.Context) (control.Backend, *control.SecretState, error) {
	d, err := o.app.daemon()
	if err != nil {
		return nil, nil, err
	}
	st, err := d.SecretState(ctx)
	return d, st, err
}

// find is the credential of a name; nil: there is none.
func find(st *control.SecretState, name string) *control.SecretInfo {
	for i := range st.Secrets {
		if st.Secrets[i].Name == name {
			return &st.Secrets[i]
		}
	}
	return nil
}

// mustFind is find for a command that needs it to be there.
func mustFind(st *control.SecretState, name string) (*control.SecretInfo, error) {
	if s := find(st, name); s != nil {
		return s, nil
	}
	e := fault.New("SECRET_NOT_FOUND", "no credential %q", name).With(fault.Field("name"))
	if len(st.Secrets) > 0 && len(st.Secrets) <= 10 {
		var names []string
		for _, s := range st.Secrets {
			names = append(names, s.Name)
		}
		e.With(fault.Hint("There %s %s.", plainWord(len(names), "is", "are"), strings.Join(names, ", ")))
	}
	return nil, e
}

// usable is why no credential can be opened or sealed now; nil: one can.
func usable(st *control.SecretState) error {
	if st.State == "ready" || st.State == "not asked" {
		return nil
	}
	return fault.New("SECRET_LOCKED", "credentials cannot be used now: %s", keyringWords(st)).With(fault.Hint("%s", st.Fix))
}

// keyringWords says how the keyring is.
func keyringWords(st *control.SecretState) string {
	words := st.State
	if st.Reason != "" { // which says the state too
		words = st.Reason
	}
	if st.Detail != "" {
		words += " (" + st.Detail + ")"
	}
	return words
}

func (a *app) secretListCommand() *cobra.Command {
	o := &secretOptions{app: a}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the credentials, without their values, and say how the keyring is",
		Long: `Lists the credentials: what they are bound to, never their values. When they
cannot be used, because the keyring is locked or there is none, it says why and
what to do on stderr.`,
		Example: "  hbrestd secret list\n  hbrestd secret list --json",
		Args:    takes(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.list(cmd.Context()) },
	}
	addJSON(cmd, &o.json)
	return cmd
}

func (o *secretOptions) list(ctx context.Context) error {
	_, st, err := o.state(ctx)
	if err != nil {
		return err
	}
	if usable(st) != nil {
		defer func() {
			o.app.say("keyring: %s", keyringWords(st))
			if st.Fix != "" {
				o.app.say("hint: %s", st.Fix)
			}
		}()
	}
	if o.json {
		return o.app.printJSON(st)
	}
	if len(st.Secrets) == 0 {
		o.app.say("no credential is stored; `hbrestd secret set NAME --host HOST` stores one")
		return nil
	}
	t := table{header: []string{"NAME", "KIND", "HOSTS", "HEADERS", "USED BY", "UPDATED"}}
	for _, s := range st.Secrets {
		kind := s.Kind
		if s.Problem != "" {
			kind = "damaged: " + s.Problem
		}
		t.add(s.Name, kind, strings.Join(s.AllowedHosts, ", "), strings.Join(headerNames(s), ", "), strings.Join(s.UsedBy, ", "), s.Updated)
	}
	return o.app.printTable(t)
}

func headerNames(s control.SecretInfo) []string {
	var names []string
	for _, h := range s.Headers {
		names = append(names, h.Name)
	}
	return names
}

func (a *app) secretShowCommand() *cobra.Command {
	o := &secretOptions{app: a}
	cmd := &cobra.Command{
		Use:     "show NAME",
		Short:   "Say everything about a credential but its value",
		Example: "  hbrestd secret show orders-key\n  hbrestd secret show orders-key --json",
		Args:    named(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.name = args[0]
			return o.show(cmd.Context())
		},
		ValidArgsFunction: a.completeSecrets(1),
	}
	addJSON(cmd, &o.json)
	return cmd
}

func (o *secretOptions) show(ctx context.Context) error {
	_, st, err := o.state(ctx)
	if err != nil {
		return err
	}
	s, err := mustFind(st, o.name)
	if err != nil {
		return err
	}
	if o.json {
		return o.app.printJSON(s)
	}
	return o.app.print(facts(secretRows(s)))
}

func secretRows(s *control.SecretInfo) [][2]string {
	rows := [][2]string{{"name", s.Name}}
	add := func(name, value string) {
		if value != "" {
			rows = append(rows, [2]string{name, value})
		}
	}
	add("damaged", s.Problem)
	add("kind", s.Kind)
	add("hosts", strings.Join(s.AllowedHosts, ", "))
	for _, h := range s.Headers {
		add("header", h.Name+": "+h.Prefix+"...")
	}
	if p := s.OAuth; p != nil {
		add("token URL", p.TokenURL)
		add("client id", p.ClientID)
		add("scope", p.Scope)
		add("audience", p.Audience)
		add("auth style", p.AuthStyle)
	}
	add("used by", strings.Join(s.UsedBy, ", "))
	add("updated", s.Updated)
	return rows
}

// completeSecrets gives the names of credentials, from what agents may see too:
// that list never waits for a keyring.
func (a *app) completeSecrets(most int) completer {
	return a.complete(most, func(ctx context.Context, c control.Backend) ([][2]string, error) {
		l, err := c.Secrets(ctx)
		if err != nil {
			return nil, err
		}
		var names [][2]string
		for _, s := range l.Secrets {
			names = append(names, [2]string{s.Name, strings.Join(s.AllowedHosts, ", ")})
		}
		return names, nil
	})
}

// asNamed is what a person is told of a credential that was just saved.
func asNamed(s *control.SecretInfo) string {
	return fmt.Sprintf("%s, %s, for %s", s.Kind, strings.Join(headerNames(*s), " and "), strings.Join(s.AllowedHosts, ", "))
}

// once is a list without repeated entries.
func once(list []string) []string {
	var out []string
	for _, s := range list {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}
