package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hyperbolic-gateway/hb-rest/internal/control"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

func (a *app) configCommand() *cobra.Command {
	return noun(&cobra.Command{
		Use:   "config",
		Short: "Read and change the daemon's settings",
		Long: `A setting's value comes from the first of: an environment variable of the
daemon, the value stored with "config set", the default.`,
		Example: "  hbrestd config list\n  hbrestd config explain call-timeout-ms\n  hbrestd config set call-timeout-ms 30000",
	}, a.configListCommand(), a.configGetCommand(), a.configSetCommand(), a.configUnsetCommand(), a.configExplainCommand())
}

type configOptions struct {
	app   *app
	name  string
	value string
	unset bool
	json  bool
}

func (a *app) configListCommand() *cobra.Command {
	o := &configOptions{app: a}
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the settings, their values and where these come from",
		Example: "  hbrestd config list\n  hbrestd config list --json",
		Args:    takes(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.list(cmd.Context()) },
	}
	addJSON(cmd, &o.json)
	return cmd
}

func (o *configOptions) settings(ctx context.Context) (*control.SettingList, error) {
	d, err := o.app.daemon()
	if err != nil {
		return nil, err
	}
	return d.Settings(ctx)
}

func (o *configOptions) list(ctx context.Context) error {
	l, err := o.settings(ctx)
	if err != nil {
		return err
	}
	if o.json {
		return o.app.printJSON(l)
	}
	t := table{header: []string{"NAME", "VALUE", "FROM", "NOTE"}}
	for _, s := range l.Settings {
		t.add(s.Name, s.Value, s.Origin, settingNote(s))
	}
	return o.app.printTable(t)
}

// settingNote says when what is stored is not what holds.
func settingNote(s control.Setting) string {
	switch {
	case s.Pending:
		return fmt.Sprintf("%s from the next start on", orEmpty(cmp.Or(s.Stored, s.Default)))
	case s.Stored != "" && s.Origin == "environment":
		return fmt.Sprintf("%s wins over the stored %s", s.Variable, s.Stored)
	}
	return ""
}

func orEmpty(s string) string {
	if s == "" {
		return "the default"
	}
	return s
}

func (a *app) configGetCommand() *cobra.Command {
	o := &configOptions{app: a}
	cmd := &cobra.Command{
		Use:     "get NAME",
		Short:   "Print the value of a setting",
		Example: "  hbrestd config get call-timeout-ms",
		Args:    takes(1, 1, "the name of a setting"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.name = args[0]
			return o.get(cmd.Context())
		},
		ValidArgsFunction: a.completeSettings(),
	}
	addJSON(cmd, &o.json)
	return cmd
}

func (o *configOptions) get(ctx context.Context) error {
	l, err := o.settings(ctx)
	if err != nil {
		return err
	}
	s, err := findSetting(l, o.name)
	if err != nil {
		return err
	}
	if o.json {
		return o.app.printJSON(s)
	}
	return o.app.print(clean(s.Value) + "\n")
}

// findSetting looks for a setting by its name or its variable's.
func findSetting(l *control.SettingList, name string) (*control.Setting, error) {
	var names []string
	for i, s := range l.Settings {
		if s.Name == name || s.Variable == name {
			return &l.Settings[i], nil
		}
		names = append(names, s.Name)
	}
	e := fault.New("BAD_REQUEST", "no setting %q", name).
		With(fault.Field("name"), fault.Hint("The settings are %s.", strings.Join(names, ", ")))
	return nil, coded{exitNotFound, e}
}

func (a *app) configSetCommand() *cobra.Command {
	o := &configOptions{app: a}
	cmd := &cobra.Command{
		Use:     "set NAME VALUE",
		Short:   "Store the value of a setting",
		Example: "  hbrestd config set call-timeout-ms 30000",
		Args:    takes(2, 2, "the name of a setting and its value"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.name, o.value = args[0], args[1]; o.value == "" {
				return usage("the value is empty; `hbrestd config unset` forgets a stored value")
			}
			return o.set(cmd.Context())
		},
		ValidArgsFunction: a.completeSettings(),
	}
	addJSON(cmd, &o.json)
	return cmd
}

func (a *app) configUnsetCommand() *cobra.Command {
	o := &configOptions{app: a, unset: true}
	cmd := &cobra.Command{
		Use:     "unset NAME",
		Short:   "Forget the stored value of a setting",
		Example: "  hbrestd config unset call-timeout-ms",
		Args:    takes(1, 1, "the name of a setting"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.name = args[0]
			return o.set(cmd.Context())
		},
		ValidArgsFunction: a.completeSettings(),
	}
	addJSON(cmd, &o.json)
	return cmd
}

func (o *configOptions) set(ctx context.Context) error {
	d, err := o.app.daemon()
	if err != nil {
		return err
	}
	l, err := d.Settings(ctx)
	if err != nil {
		return err
	}
	s, err := findSetting(l, o.name)
	if err != nil {
		return err
	}
	if s.Name == "approval" { // as `hbrestd approval policy` asks
		wish := "set the policy of approvals to " + o.value
		if o.unset {
			wish = "forget the policy of approvals"
		}
		if _, err := o.app.person(ctx, wish, "change when a person is asked"); err != nil {
			return err
		}
	}
	l, err = d.SetSetting(ctx, &control.SettingChange{Name: s.Name, Value: o.value, Unset: o.unset})
	if err != nil {
		return err
	}
	if s, err = findSetting(l, s.Name); err != nil {
		return err
	}
	if o.json {
		return o.app.printJSON(s)
	}
	if s.Pending {
		o.app.say("it takes effect when the daemon starts the next time")
	}
	if s.Origin == "environment" {
		o.app.warn("%s is set where the daemon was started, and wins", s.Variable)
	}
	text := fmt.Sprintf("%s is %s (%s)", s.Name, s.Value, s.Origin)
	if s.Pending && !o.unset {
		text += fmt.Sprintf("; %s is stored", s.Stored)
	}
	return o.app.print(clean(text) + "\n")
}

func (a *app) configExplainCommand() *cobra.Command {
	o := &configOptions{app: a}
	cmd := &cobra.Command{
		Use:     "explain [NAME]",
		Short:   "Say what a setting, or each, does and where its value comes from",
		Example: "  hbrestd config explain\n  hbrestd config explain allow-private",
		Args:    takes(0, 1, "the name of a setting"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				o.name = args[0]
			}
			return o.explain(cmd.Context())
		},
		ValidArgsFunction: a.completeSettings(),
	}
	addJSON(cmd, &o.json)
	return cmd
}

func (o *configOptions) explain(ctx context.Context) error {
	l, err := o.settings(ctx)
	if err != nil {
		return err
	}
	if o.name != "" {
		s, err := findSetting(l, o.name)
		if err != nil {
			return err
		}
		l = &control.SettingList{Settings: []control.Setting{*s}}
	}
	if o.json {
		return o.app.printJSON(l)
	}
	var parts []string
	for _, s := range l.Settings {
		parts = append(parts, explainSetting(s))
	}
	return o.app.print(strings.Join(parts, "\n"))
}

func explainSetting(s control.Setting) string {
	effect := "at once"
	if s.NeedsStart {
		effect = "at the next start of the daemon"
	}
	rows := [][2]string{{"value", s.Value + ", from the " + originWords(s)}}
	if s.Stored != "" {
		rows = append(rows, [2]string{"stored", s.Stored})
	}
	rows = append(rows, [2]string{"default", s.Default}, [2]string{"variable", s.Variable}, [2]string{"a change holds", effect})
	if note := settingNote(s); note != "" {
		rows = append(rows, [2]string{"note", note})
	}
	head := clean(s.Name)
	if s.Description != "" {
		head += ": " + clean(s.Description)
	}
	return head + "\n" + indent(facts(rows), "  ")
}

func originWords(s control.Setting) string {
	switch s.Origin {
	case "environment":
		return "variable " + s.Variable
	case "stored":
		return "stored setting"
	}
	return s.Origin
}

func indent(text, by string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(by + line)
	}
	return b.String()
}
