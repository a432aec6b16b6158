package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hyperbolic-gateway/hb-rest/internal/control"
)

func (a *app) secretBindCommand() *cobra.Command {
	o := &secretOptions{app: a}
	return o.bindCommand(&cobra.Command{
		Use:     "bind NAME --host HOST...",
		Short:   "Let a credential be sent to another host",
		Example: "  hbrestd secret bind orders-key --host files.example.com",
	}, "a `HOST` that may be sent it too; may be repeated", func(ctx context.Context) error {
		return o.bind(ctx, o.wish("bind"), "bound", &control.SecretBind{Name: o.name, Add: once(o.hosts)})
	})
}

func (a *app) secretUnbindCommand() *cobra.Command {
	o := &secretOptions{app: a}
	return o.bindCommand(&cobra.Command{
		Use:     "unbind NAME --host HOST...",
		Short:   "Stop a credential from being sent to a host",
		Example: "  hbrestd secret unbind orders-key --host files.example.com",
	}, "a `HOST` that is no longer sent it; may be repeated", func(ctx context.Context) error {
		return o.bind(ctx, o.wish("unbind"), "unbound", &control.SecretBind{Name: o.name, Remove: once(o.hosts)})
	})
}

func (o *secretOptions) bindCommand(cmd *cobra.Command, host string, run func(context.Context) error) *cobra.Command {
	cmd.Args = named(1)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if o.name = args[0]; len(o.hosts) == 0 {
			return usage("--host is missing")
		}
		return run(cmd.Context())
	}
	cmd.ValidArgsFunction = o.app.completeSecrets(1)
	cmd.Flags().StringSliceVar(&o.hosts, "host", nil, host)
	cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "do not ask whether the token URL may be on another site than the hosts")
	addJSON(cmd, &o.json)
	return cmd
}

func (o *secretOptions) bind(ctx context.Context, wish, word string, q *control.SecretBind) error {
	person, err := o.app.person(ctx, wish, "change credentials")
	if err != nil {
		return err
	}
	d, err := o.app.daemon()
	if err != nil {
		return err
	}
	r, err := o.send(ctx, person, nil, func(confirm []string) (*control.SecretResult, error) {
		q.Confirm = confirm
		return d.BindSecret(ctx, q)
	}, nil)
	if err != nil {
		return o.inFlags(err, &control.SecretPut{AllowedHosts: o.hosts}, nil)
	}
	return o.done(r, word)
}

func (a *app) secretRotateCommand() *cobra.Command {
	o := &secretOptions{app: a}
	cmd := &cobra.Command{
		Use:   "rotate NAME",
		Short: "Replace a credential's value, and nothing else",
		Long: `Asks for a new value, as "secret set" does; hosts and headers stay. Tokens that
were fetched with the old value are forgotten.`,
		Example: "  hbrestd secret rotate orders-key\n  hbrestd secret rotate orders-key --stdin < value",
		Args:    named(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.name, o.changed = args[0], cmd.Flags().Changed
			return o.rotate(cmd.Context())
		},
		ValidArgsFunction: a.completeSecrets(1),
	}
	addStdin(cmd, &o.stdin)
	cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "do not ask whether the token URL may be on another site than the hosts")
	addJSON(cmd, &o.json)
	return cmd
}

func (o *secretOptions) rotate(ctx context.Context) error {
	if err := o.checkSet(); err != nil {
		return err
	}
	person, err := o.app.person(ctx, o.wish("replace the value of"), "change credentials")
	if err != nil {
		return err
	}
	d, st, err := o.state(ctx)
	if err != nil {
		return err
	}
	old, err := mustFind(st, o.name)
	if err != nil {
		return err
	}
	if old.Problem != "" {
		return failed(exitCredential, "Set it again with `hbrestd secret set NAME --host HOST`.", "the record of %s cannot be read: %s", o.name, old.Problem)
	}
	if err := usable(st); err != nil {
		return err
	}
	q := &control.SecretPut{Name: old.Name, Kind: old.Kind, Headers: old.Headers, AllowedHosts: old.AllowedHosts, OAuth: old.OAuth, Stdin: o.stdin, Seen: old.Seal}
	places := q.Places(old)
	for i := range places {
		places[i].Keep = len(places) > 1 // of several, not each has to be new
	}
	shown, err := o.check(ctx, d, person, q, places)
	if err != nil {
		return err
	}
	q.Values, err = o.values(ctx, person, shown, places)
	defer wipe(q.Values)
	if err != nil {
		return err
	}
	if keptOf(q.Values) == len(places) {
		return errDeclined
	}
	r, err := o.save(ctx, d, person, q)
	if err != nil {
		return o.inFlags(err, q, places)
	}
	return o.done(r, "rotated")
}

func (a *app) secretTestCommand() *cobra.Command {
	o := &secretOptions{app: a}
	cmd := &cobra.Command{
		Use:   "test NAME --wrapper ID",
		Short: "Find out whether an API takes a credential, with a saved wrapper",
		Long: `Calls a saved wrapper that reads (GET) and names the credential, and says how
the API answered. There is no test with a URL: it would send the credential to
wherever that points.`,
		Example: "  hbrestd secret test orders-key --wrapper orders.list",
		Args:    named(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.name = args[0]; o.wrapper == "" {
				return usage("--wrapper is missing: the id of a saved wrapper that reads and names %s", clean(o.name))
			}
			return o.test(cmd.Context())
		},
		ValidArgsFunction: a.completeSecrets(1),
	}
	cmd.Flags().StringVar(&o.wrapper, "wrapper", "", "the `ID` of the wrapper to call")
	_ = cmd.RegisterFlagCompletionFunc("wrapper", a.completeIDs(-1)) // fails only for a flag that is not there
	addJSON(cmd, &o.json)
	return cmd
}

func (o *secretOptions) test(ctx context.Context) error {
	d, err := o.app.daemon()
	if err != nil {
		return err
	}
	r, err := d.TestSecret(ctx, &control.SecretTest{Name: o.name, Wrapper: o.wrapper})
	if err != nil {
		return err
	}
	if o.json {
		return o.app.printJSON(r)
	}
	status := "success"
	if r.Status != nil {
		status = fmt.Sprint(*r.Status)
	}
	return o.app.print(clean(fmt.Sprintf("%s works: %s answered with %s in %d ms", o.name, r.Wrapper.ID, status, r.DurationMs)) + "\n")
}

func (a *app) secretRmCommand() *cobra.Command {
	o := &secretOptions{app: a}
	cmd := &cobra.Command{
		Use:   "rm NAME...",
		Short: "Remove credentials",
		Long: `Removes credentials from this machine; the API still takes them until they are
revoked there. On a terminal it asks first. When one of the names does not
exist, nothing is removed.`,
		Example: "  hbrestd secret rm orders-key\n  hbrestd secret rm old-key older-key --yes",
		Args:    named(-1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.names = once(args)
			return o.rm(cmd.Context())
		},
		ValidArgsFunction: a.completeSecrets(-1),
	}
	cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	addJSON(cmd, &o.json)
	return cmd
}

func (o *secretOptions) rm(ctx context.Context) error {
	if _, err := o.app.person(ctx, "remove the credential "+strings.Join(o.names, ", "), "change credentials"); err != nil {
		return err
	}
	d, st, err := o.state(ctx)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("Remove %s?", strings.Join(o.names, ", "))
	for _, name := range o.names {
		s, err := mustFind(st, name)
		if err != nil {
			return err
		}
		if len(s.UsedBy) > 0 {
			what += fmt.Sprintf(" %s is used by %s.", name, strings.Join(s.UsedBy, ", "))
		}
	}
	if !o.yes {
		if err := o.app.confirm(ctx, what); err != nil {
			return err
		}
	}
	removed := removal{OK: true, Removed: []string{}}
	for _, name := range o.names {
		if _, err := d.DeleteSecret(ctx, &control.SecretName{Name: name}); err != nil {
			return err
		}
		removed.Removed = append(removed.Removed, name)
		if !o.json {
			if err := o.app.print("removed " + clean(name) + "\n"); err != nil {
				return err
			}
		}
	}
	if o.json {
		return o.app.printJSON(removed)
	}
	return nil
}
