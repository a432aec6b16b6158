package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hyperbolic-gateway/hb-rest/internal/control"
)

// policyNames are what a policy can be set to.
var policyNames = []string{"off", "first", "always", "default"}

type policyOptions struct {
	app     *app
	wrapper string // "": the daemon's
	policy  string // "": only look
	json    bool
}

func (a *app) approvalPolicyCommand() *cobra.Command {
	o := &policyOptions{app: a}
	cmd := &cobra.Command{
		Use:   "policy [WRAPPER] [off|first|always|default]",
		Short: "Choose when you are asked",
		Long: `off asks nobody; first asks once for each version of a wrapper, until the daemon
stops; always asks about each request. Without a policy it prints what holds.

A wrapper can have a policy of its own. One that asks more than the daemon's
stays with the wrapper's id. One that asks less holds for the version that is
saved now: who edits the wrapper does not take it along. Setting a wrapper's
policy also takes back every answer and trust that it has; default leaves it
with the daemon's. An agent can save another wrapper for the same API, so what
must not be missed needs the daemon's policy.`,
		Example: "  hbrestd approval policy\n  hbrestd approval policy first\n  hbrestd approval policy orders.create always\n  hbrestd approval policy orders.create default",
		Args:    takes(0, 2, "the id of a wrapper and a policy"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.read(args); err != nil {
				return err
			}
			if o.policy == "" {
				return o.look(cmd.Context())
			}
			return o.set(cmd.Context())
		},
		ValidArgsFunction: a.completePolicy(),
	}
	addJSON(cmd, &o.json)
	return cmd
}

// read takes one word for a policy where it can be one.
func (o *policyOptions) read(args []string) error {
	switch {
	case len(args) == 1 && slices.Contains(policyNames, args[0]):
		o.policy = args[0]
	case len(args) > 0:
		o.wrapper = args[0]
	}
	if len(args) == 2 {
		if o.policy = args[1]; !slices.Contains(policyNames, o.policy) {
			return usage("%q is no policy: use %s", o.policy, strings.Join(policyNames, ", "))
		}
	}
	return nil
}

func (o *policyOptions) look(ctx context.Context) error {
	d, err := o.app.daemon()
	if err != nil {
		return err
	}
	p, err := d.ApprovalPolicies(ctx)
	if err != nil {
		return err
	}
	if o.wrapper == "" {
		return o.print(p)
	}
	if _, err := d.Wrapper(ctx, o.wrapper); err != nil && find1(p, o.wrapper) == nil {
		return err
	}
	return o.printOne(p)
}

func (o *policyOptions) set(ctx context.Context) error {
	wish := "set the policy of approvals to " + o.policy
	if o.wrapper != "" {
		wish = fmt.Sprintf("set the policy of approvals of wrapper %s to %s", o.wrapper, o.policy)
	}
	if _, err := o.app.person(ctx, wish, "change when a person is asked"); err != nil {
		return err
	}
	d, err := o.app.daemon()
	if err != nil {
		return err
	}
	p, err := d.SetApprovalPolicy(ctx, &control.ApprovalPolicyChange{Wrapper: o.wrapper, Policy: o.policy})
	if err != nil {
		return err
	}
	if o.wrapper != "" {
		return o.printOne(p)
	}
	if p.Origin == "environment" {
		o.app.warn("%s is set where the daemon was started, and wins", p.Variable)
	}
	return o.print(p)
}

// print shows the daemon's policy, and every wrapper for which something else
// was said.
func (o *policyOptions) print(p *control.ApprovalPolicies) error {
	if o.json {
		return o.app.printJSON(p)
	}
	if err := o.app.print(fmt.Sprintf("%s (%s)\n", clean(p.Policy), clean(p.Origin))); err != nil || len(p.Wrappers) == 0 {
		return err
	}
	t := table{header: []string{"WRAPPER", "HOLDS", "ITS OWN", "NOTE"}}
	for _, w := range p.Wrappers {
		t.add(w.Wrapper, holds(w), w.Policy, policyNote(w))
	}
	if err := o.app.print("\n"); err != nil {
		return err
	}
	return o.app.printTable(t)
}

func (o *policyOptions) printOne(p *control.ApprovalPolicies) error {
	w := find1(p, o.wrapper)
	if w == nil {
		w = &control.WrapperApproval{Wrapper: o.wrapper, Holds: p.Policy}
	}
	if o.json {
		return o.app.printJSON(w)
	}
	said := "the daemon's"
	if w.Policy != "" {
		said = "its own"
	}
	if w.Edited {
		said = "the daemon's, since it asks more than its own " + w.Policy
	}
	text := fmt.Sprintf("%s: %s (%s)", w.Wrapper, holds(*w), said)
	if note := policyNote(*w); note != "" {
		text += "; " + note
	}
	return o.app.print(clean(text) + "\n")
}

// find1 is what was said about one wrapper; nil: nothing.
func find1(p *control.ApprovalPolicies, id string) *control.WrapperApproval {
	for i := range p.Wrappers {
		if strings.EqualFold(p.Wrappers[i].Wrapper, id) {
			return &p.Wrappers[i]
		}
	}
	return nil
}

// holds is what holds, in one word.
func holds(w control.WrapperApproval) string {
	if w.Trusted {
		return "trusted"
	}
	return w.Holds
}

func policyNote(w control.WrapperApproval) string {
	switch {
	case w.Damaged:
		return "its policy cannot be read: set it again"
	case w.Trusted:
		return "the saved version is trusted: nobody is asked"
	case w.Edited:
		return "edited since its policy was set"
	case w.Stale:
		return "trusted was another version than the saved one"
	}
	return ""
}

// completePolicy gives policies and ids of wrappers, then policies.
func (a *app) completePolicy() completer {
	ids := a.completeIDs(1)
	return func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		var out []string
		for _, p := range policyNames {
			if strings.HasPrefix(p, toComplete) && (len(args) == 0 || len(args) == 1 && !slices.Contains(policyNames, args[0])) {
				out = append(out, p)
			}
		}
		more, directive := ids(cmd, args, toComplete)
		return append(out, more...), directive
	}
}
