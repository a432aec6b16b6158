package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/autostart"
	"github.com/hyperbolic-gateway/hb-rest/internal/clientconfig"
	"github.com/hyperbolic-gateway/hb-rest/internal/config"
	"github.com/hyperbolic-gateway/hb-rest/internal/control"
)

// A setupStep is one line of `setup`.
type setupStep struct {
	Step   string `json:"step"`  // service, daemon, keyring, client NAME
	State  string `json:"state"` // ok, warn, FAIL or skip
	Result string `json:"result"`
	Next   string `json:"next,omitempty"` // what to do about it
}

// A setupReport is the answer of `setup`.
type setupReport struct {
	OK    bool        `json:"ok"`
	Steps []setupStep `json:"steps"`
	Next  string      `json:"next"`
}

type setupOptions struct {
	app       *app
	json      bool
	yes       bool
	names     []string // of clients
	noClient  bool
	noService bool

	r      setupReport
	doing  string      // the step that fails if something does
	status *api.Status // of the running daemon; nil: none
}

func (a *app) setupCommand() *cobra.Command {
	o := &setupOptions{app: a}
	cmd := &cobra.Command{
		Use:   "setup",
		Short: "Install the service, start it and connect MCP clients, in one go",
		Long: `Installs the service and starts it, waits until the daemon answers, looks at the
keyring, and puts hb-rest into the configuration of the MCP clients that it
finds. On a terminal it asks for each client; otherwise it changes those that
--client names, or with --yes all. It may be run again at any time: what is as
it should be stays.

Where there is no service manager, as in a container, it says how to start the
daemon and goes on with the clients. A step that fails ends it, with the exit
code of that step's own command.`,
		Example: "  hbrestd setup\n  hbrestd setup --yes\n  hbrestd setup --no-service --client claude-code --client cursor",
		Args:    takes(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "do not ask: connect every client that is found")
	cmd.Flags().StringArrayVar(&o.names, "client", nil, "connect the client `NAME`; may be given again")
	cmd.Flags().BoolVar(&o.noClient, "no-client", false, "leave MCP clients alone")
	cmd.Flags().BoolVar(&o.noService, "no-service", false, "leave the service alone")
	addJSON(cmd, &o.json)
	_ = cmd.RegisterFlagCompletionFunc("client", func(c *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) { // fails only for a flag that is not there
		return completeClients(-1, true)(c, o.names, toComplete)
	})
	return cmd
}

func (o *setupOptions) run(ctx context.Context) error {
	if o.noClient && len(o.names) > 0 {
		return usage("give --client or --no-client, not both")
	}
	for _, name := range o.names {
		c, err := findClient(name)
		if err != nil {
			return err
		}
		if !c.Editable {
			return failed(exitFailed, "`hbrestd client print "+c.Name+"` shows what to put into it.", "the file of %s is not edited", c.Title)
		}
	}
	d, err := o.app.places()
	if err != nil {
		return err
	}
	err = o.steps(ctx, d)
	if err != nil && !errors.Is(err, errSilent) {
		_, e := explain(nil, err)
		o.step(setupStep{o.doing, findFail, e.Message, e.Hint})
	}
	o.r.OK = err == nil
	o.r.Next = o.next()
	if o.json {
		if err := o.app.printJSON(o.r); err != nil {
			return err
		}
	} else if err == nil {
		if err := o.app.print("\n" + o.r.Next + "\n"); err != nil {
			return err
		}
	}
	if err != nil {
		exit, _ := explain(nil, err)
		return coded{exit, errSilent}
	}
	return nil
}

// step tells of a step at once.
func (o *setupOptions) step(s setupStep) {
	o.r.Steps = append(o.r.Steps, s)
	if o.json {
		return
	}
	text := fmt.Sprintf("%-4s  %-8s  %s\n", s.State, s.Step, clean(s.Result))
	if s.Next != "" {
		text += fmt.Sprintf("      next: %s\n", clean(s.Next))
	}
	_ = o.app.print(text) // the last line's error is looked at
}

func (o *setupOptions) steps(ctx context.Context, d config.Daemon) error {
	if err := o.service(ctx, d); err != nil {
		return err
	}
	o.keyring(ctx, d)
	return o.clients(ctx)
}

// service installs and starts it, or says why there is none.
func (o *setupOptions) service(ctx context.Context, d config.Daemon) error {
	o.doing = "service"
	so := &serviceOptions{app: o.app}
	old := so.running(ctx, d)
	var s *autostart.Service
	var state *autostart.State
	var err error
	if !o.noService {
		if s, err = so.service(d); err == nil {
			state, err = s.State(ctx)
		}
	}
	switch {
	case o.noService:
		o.step(setupStep{"service", findSkip, "left alone, as --no-service asks", ""})
		o.without(old)
		return nil
	case err != nil && ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		_, e := explain(nil, err)
		o.step(setupStep{"service", findSkip, e.Message, e.Hint})
		o.without(old)
		return nil
	case old != nil && !state.Running() && state.State != "unknown": // the task scheduler does not say
		return failed(exitFailed, fmt.Sprintf("End it with `%s`, then run `hbrestd setup` again; or leave the service alone with --no-service.", endCommand(o.app.goos, old.PID)),
			"a daemon that was started by hand (pid %d) is running, and the service could not start beside it", old.PID)
	}
	r, err := s.Install(ctx, old != nil && old.Version != o.app.version.Version)
	if err != nil {
		return err
	}
	o.app.reached = nil // the daemon of before may have been of another version
	o.step(setupStep{"service", findOK, strings.Split(installText(r), "\n")[0], ""})
	for _, name := range so.leftOut() {
		o.app.warn("%s is set here, and the service does not get it; `hbrestd config set` stores what shall hold for it", name)
	}
	o.doing = "daemon"
	if o.status, err = so.started(ctx, d, s, starting(r)); err != nil {
		return err
	}
	o.step(setupStep{"daemon", findOK, fmt.Sprintf("running, version %s, at http://%s", o.status.Version, o.status.Address), ""})
	so.lingering(ctx, s)
	return nil
}

// without tells of the daemon where no service is installed.
func (o *setupOptions) without(running *api.Status) {
	if o.status = running; running != nil {
		o.step(setupStep{"daemon", findOK, fmt.Sprintf("running, version %s, at http://%s", running.Version, running.Address), ""})
		return
	}
	o.step(setupStep{"daemon", findWarn, "it does not run", "`hbrestd run` runs it in a terminal of its own; in a container it can be the main program"})
}

// keyring asks for it. A daemon without one is of use too.
func (o *setupOptions) keyring(ctx context.Context, d config.Daemon) {
	if o.status == nil {
		o.step(setupStep{"keyring", findSkip, "the daemon asks it, once it runs", ""})
		return
	}
	ctx, cancel := context.WithTimeout(ctx, keyringTimeout)
	defer cancel()
	st, err := o.app.connect(d.ControlSocket, control.ClientOptions{Version: o.app.version.Version, Timeout: keyringTimeout}).SecretState(ctx)
	switch {
	case err != nil:
		o.step(setupStep{"keyring", findWarn, because(err), "`hbrestd secret list` shows its state"})
	case st.State == "ready":
		o.step(setupStep{"keyring", findOK, "credentials can be stored in it", ""})
	default:
		o.step(setupStep{"keyring", findWarn, "credentials cannot be used: " + st.Reason, st.Fix})
	}
}

// clients connects them.
func (o *setupOptions) clients(ctx context.Context) error {
	if o.noClient {
		o.step(setupStep{"clients", findSkip, "left alone, as --no-client asks", ""})
		return nil
	}
	o.doing = "clients"
	in := &installOptions{clientOptions: clientOptions{app: o.app, scope: string(clientconfig.User)}, via: "auto", replaceOld: o.yes}
	env, scope, err := in.env()
	if err != nil {
		return err
	}
	var found []clientconfig.Client
	for _, c := range clientconfig.Known() {
		if c.Detected(env, scope) || o.named(c) {
			found = append(found, c)
		}
	}
	if len(found) == 0 {
		o.step(setupStep{"clients", findSkip, "no MCP client was found", "`hbrestd client install NAME` connects one, `hbrestd client print NAME` shows what to put into its file"})
		return nil
	}
	wanted, err := in.wanted(ctx)
	if err != nil {
		_, e := explain(nil, err)
		o.step(setupStep{"clients", findFail, e.Message, e.Hint})
		return errSilent
	}
	failures := 0
	for _, c := range found {
		s, err := o.client(ctx, in, env, clientconfig.Request{Scope: scope, Wanted: &wanted, ReplaceOld: in.replaceOld}, c)
		if err != nil {
			return err
		}
		if s.State == findFail {
			failures++
		}
		o.step(s)
	}
	if failures > 0 {
		return errSilent
	}
	return nil
}

func (o *setupOptions) named(c clientconfig.Client) bool {
	return slices.ContainsFunc(o.names, func(name string) bool {
		n, ok := clientconfig.Find(strings.ToLower(name))
		return ok && n.Name == c.Name
	})
}

// client connects one client, if that is wanted. The error is one that ends the
// whole; what a file refuses is a step that failed.
func (o *setupOptions) client(ctx context.Context, in *installOptions, env clientconfig.Env, r clientconfig.Request, c clientconfig.Client) (setupStep, error) {
	s := setupStep{Step: c.Name, State: findSkip}
	if !c.Editable {
		s.Result, s.Next = "its file is not edited", "`hbrestd client print "+c.Name+"` shows what to put into it"
		return s, nil
	}
	plan, err := c.Plan(env, r)
	wants := o.named(c) || o.yes && len(o.names) == 0
	switch {
	case err != nil:
		_, e := explain(nil, err)
		if s.Result, s.Next = e.Message, e.Hint; wants {
			s.State = findFail
		}
		return s, nil
	case !plan.Changes():
		s.State, s.Result = findOK, "already connected: "+plan.Path
		if len(plan.Old) > 0 {
			s.State, s.Next = findWarn, "the entry of kuang-wrap is there too; `hbrestd client install "+c.Name+" --replace-old` takes it out"
		}
		return s, nil
	case !wants && (len(o.names) > 0 || !o.app.interactive()):
		s.Result, s.Next = "found, and left alone", "`hbrestd client install "+c.Name+"` connects it"
		return s, nil
	case !wants:
		err := o.app.confirm(ctx, fmt.Sprintf("Connect %s (%s)?", c.Title, plan.Path))
		if errors.Is(err, errDeclined) {
			s.Result, s.Next = "left alone", "`hbrestd client install "+c.Name+"` connects it"
			return s, nil
		}
		if err != nil {
			return s, err
		}
	}
	ch, err := in.change(ctx, env, r, c)
	switch {
	case ctx.Err() != nil:
		return s, ctx.Err()
	case err != nil:
		_, e := explain(nil, err)
		s.State, s.Result, s.Next = findFail, e.Message, e.Hint
		return s, nil
	}
	s.State, s.Result, s.Next = findOK, "connected: "+ch.File, ch.Reload
	if ch.Backup != "" {
		s.Result += " (as it was: " + ch.Backup + ")"
	}
	for _, n := range ch.Notes {
		o.app.warn("%s: %s", c.Name, n)
	}
	return s, nil
}

// next is the next step after all of these.
func (o *setupOptions) next() string {
	switch {
	case !o.r.OK:
		return "Mend what failed, then run `hbrestd setup` again: what is done stays."
	case o.status == nil:
		return "Next: `hbrestd run`, then `hbrestd doctor`."
	case o.status.Wrappers == 0:
		return "Next: ask an agent in a connected client to wrap an API, or save a wrapper with `hbrestd wrapper apply FILE`. `hbrestd doctor` looks at everything."
	}
	return "Next: `hbrestd wrapper list` shows what agents can call. `hbrestd doctor` looks at everything."
}
