package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hyperbolic-gateway/hb-rest/internal/control"
)

type lintOptions struct {
	app  *app
	id   string
	json bool
}

func (a *app) wrapperLintCommand() *cobra.Command {
	o := &lintOptions{app: a}
	cmd := &cobra.Command{
		Use:   "lint [ID]",
		Short: "Say what is suspicious in a wrapper, or in all of them",
		Long: `Looks over saved wrappers: arguments that the request does not use, no description,
no recipe, a list of which only one page is read, writes that nobody is asked
about, what the outbound policy would refuse, and in a tool of its own what some
MCP client would refuse or not show, with the client's name. Nothing is sent.

Warnings are advice, and the exit code is 0. Exit code 6: a stored wrapper
cannot be used at all.`,
		Example: "  hbrestd wrapper lint\n  hbrestd wrapper lint orders.list",
		Args:    takes(0, 1, "the id of a wrapper"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				o.id = args[0]
			}
			return o.run(cmd.Context())
		},
		ValidArgsFunction: a.completeIDs(1),
	}
	addJSON(cmd, &o.json)
	return cmd
}

func (o *lintOptions) run(ctx context.Context) error {
	d, err := o.app.daemon()
	if err != nil {
		return err
	}
	r, err := d.Lint(ctx, o.id)
	if err != nil {
		return err
	}
	switch {
	case o.json:
		err = o.app.printJSON(r)
	case o.app.width() == 0:
		err = o.app.print(separated(lintRows(r)))
	default:
		err = o.app.print(lintText(r))
	}
	if err != nil {
		return err
	}
	bad, suspicious := 0, 0
	for _, w := range r.Wrappers {
		switch {
		case w.Problem != "":
			bad++
		case len(w.Warnings) > 0:
			suspicious++
		}
	}
	if !o.json && bad+suspicious == 0 {
		o.app.say("%s, and nothing suspicious", plural(len(r.Wrappers), "wrapper", "wrappers"))
	}
	if bad > 0 {
		return coded{exitInvalid, errSilent}
	}
	return nil
}

// unusable is the code of a wrapper that cannot be used, beside those of warnings.
const unusable = "WRAPPER_UNREADABLE"

// lintRows is one row for each finding: id, field, code, message, hint.
func lintRows(r *control.LintReport) [][]string {
	var rows [][]string
	for _, w := range r.Wrappers {
		if w.Problem != "" {
			rows = append(rows, []string{w.ID, "", unusable, w.Problem, ""})
		}
		for _, f := range w.Warnings {
			rows = append(rows, []string{w.ID, f.Field, f.Code, f.Message, f.Hint})
		}
	}
	return rows
}

// lintText is the findings for a person, under each wrapper.
func lintText(r *control.LintReport) string {
	var b strings.Builder
	for _, w := range r.Wrappers {
		if w.Problem == "" && len(w.Warnings) == 0 {
			continue
		}
		fmt.Fprintf(&b, "%s\n", clean(w.ID))
		if w.Problem != "" {
			fmt.Fprintf(&b, "  cannot be used: %s\n", clean(w.Problem))
		}
		for _, f := range w.Warnings {
			fmt.Fprintf(&b, "  %s: %s\n", clean(f.Field), clean(f.Message))
			if f.Hint != "" {
				fmt.Fprintf(&b, "    %s\n", clean(f.Hint))
			}
		}
	}
	return b.String()
}
