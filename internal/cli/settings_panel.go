package cli

import (
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hyperbolic-gateway/hb-rest/internal/config"
	"github.com/hyperbolic-gateway/hb-rest/internal/tui"
)

type panelOptions struct {
	app        *app
	accessible bool
}

func (a *app) settingsCommand() *cobra.Command {
	o := &panelOptions{app: a}
	cmd := &cobra.Command{
		Use:   "settings",
		Short: "Open a panel for wrappers, credentials, approvals and the audit trail",
		Long: `Opens a panel on this terminal with four tabs: wrappers, credentials, approvals
and the audit trail. Tab or 1 to 4 change the tab, ? shows all keys and the
command that does the same as each.

What is changed here is for a person. When a variable in the environment tells
that an agent runs the command, it is refused, unless pinentry can ask you and
you allow it.

--accessible, or ACCESSIBLE=1, asks line by line instead, for screen readers and
for terminals that cannot place the cursor. It lists, shows, tests and removes
wrappers, turns tools on and off, lists, replaces and removes credentials, answers
approvals and shows the audit trail; new wrappers and credentials are made with
"wrapper new" and "secret set". NO_COLOR=1 leaves colours out. The editor is
VISUAL or EDITOR.`,
		Example: "  hbrestd settings\n  hbrestd settings --accessible",
		Args:    takes(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	cmd.Flags().BoolVar(&o.accessible, "accessible", false, "ask line by line, without drawing a screen")
	return cmd
}

func (o *panelOptions) run(ctx context.Context) error {
	a := o.app
	if !a.interactive() || a.width() == 0 {
		return usage("the panel needs a terminal; without one use hbrestd wrapper, hbrestd secret, hbrestd approval and hbrestd audit")
	}
	person, err := a.person(ctx, "open the settings panel, where credentials and approvals are in its reach", "open the panel")
	if err != nil {
		return err
	}
	d, err := a.daemon()
	if err != nil {
		return err
	}
	p := tui.Options{
		Backend: d, MaxTools: config.DefaultMaxTools, Header: parseHeader,
		Edit: func(path string) tui.Command { return &editing{app: a, path: path} },
		Ask: func(prompt string) ([]byte, error) {
			about, name := "", prompt
			if i := strings.LastIndexByte(prompt, '\n'); i >= 0 {
				about, name = prompt[:i], prompt[i+1:]
			}
			return person.value(ctx, about, name)
		},
		Input: a.stdin, Output: untamed(a.stdout), Environ: a.environ(),
	}
	if o.wantsLines() {
		return tui.RunLines(ctx, p)
	}
	return tui.Run(ctx, p)
}

// wantsLines reports whether a screen is not wanted, or cannot be drawn.
func (o *panelOptions) wantsLines() bool {
	v, _ := o.app.env("ACCESSIBLE")
	term, _ := o.app.env("TERM")
	return o.accessible || v != "" && v != "0" || term == "dumb"
}

// An editing has the terminal while the person edits a file.
type editing struct {
	app  *app
	path string
}

// Run runs the person's editor until it ends.
func (e *editing) Run() error {
	editor, err := e.app.editor()
	if err != nil {
		return err
	}
	return e.app.open(editor, e.path)
}

// SetStdin does nothing: the editor gets the streams of this process.
func (*editing) SetStdin(io.Reader) {}

// SetStdout does nothing.
func (*editing) SetStdout(io.Writer) {}

// SetStderr does nothing.
func (*editing) SetStderr(io.Writer) {}
