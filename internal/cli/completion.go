package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hyperbolic-gateway/hb-rest/internal/control"
)

// completeTimeout is how long a person who pressed Tab waits for the daemon.
const completeTimeout = 200 * time.Millisecond

func (a *app) completionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "Print the script that completes hbrestd's commands in a shell",
		Long: `Prints a script for a shell. With it, Tab completes commands, flags and, while
the daemon runs, the ids of wrappers and the names of settings.

  bash        source <(hbrestd completion bash)
  zsh         hbrestd completion zsh > "${fpath[1]}/_hbrestd"
  fish        hbrestd completion fish > ~/.config/fish/completions/hbrestd.fish
  powershell  hbrestd completion powershell | Out-String | Invoke-Expression`,
		Example:   "  hbrestd completion bash > ~/.local/share/bash-completion/completions/hbrestd",
		ValidArgs: []string{"bash", "zsh", "fish", "powershell"},
		Args:      takes(1, 1, "the name of a shell (bash, zsh, fish or powershell)"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var b strings.Builder
			if err := completionScript(cmd.Root(), args[0], &b); err != nil {
				return err
			}
			return a.print(b.String())
		},
	}
}

func completionScript(root *cobra.Command, shell string, b *strings.Builder) error {
	switch shell {
	case "bash":
		return root.GenBashCompletionV2(b, true)
	case "zsh":
		return root.GenZshCompletion(b)
	case "fish":
		return root.GenFishCompletion(b, true)
	case "powershell":
		return root.GenPowerShellCompletionWithDesc(b)
	}
	return usage("no completion for %q; there is one for bash, zsh, fish and powershell", shell)
}

// A completer is what cobra asks for the next argument.
type completer = func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective)

// completeIDs gives the ids of wrappers that were not named yet; most < 0 is any
// number of them. Without a daemon there are none, quickly.
func (a *app) completeIDs(most int) completer {
	return a.complete(most, func(ctx context.Context, c control.Backend) ([][2]string, error) {
		m, err := c.Manifest(ctx, 0)
		if err != nil {
			return nil, err
		}
		var names [][2]string
		for _, w := range m.Wrappers {
			names = append(names, [2]string{w.ID, w.Name})
		}
		return names, nil
	})
}

// completeSettings gives the names of settings.
func (a *app) completeSettings() completer {
	return a.complete(1, func(ctx context.Context, c control.Backend) ([][2]string, error) {
		l, err := c.Settings(ctx)
		if err != nil {
			return nil, err
		}
		var names [][2]string
		for _, s := range l.Settings {
			names = append(names, [2]string{s.Name, s.Description})
		}
		return names, nil
	})
}

// completeRules gives the hosts that are allowed.
func (a *app) completeRules() completer {
	return a.complete(1, func(ctx context.Context, c control.Backend) ([][2]string, error) {
		l, err := c.Allowed(ctx)
		if err != nil {
			return nil, err
		}
		var names [][2]string
		for _, r := range l.Rules {
			names = append(names, [2]string{hostPort(r)})
		}
		return names, nil
	})
}

// complete adapts a list of names and descriptions.
func (a *app) complete(most int, names func(context.Context, control.Backend) ([][2]string, error)) completer {
	return func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		if most >= 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		a.warned = true // nothing may stand between the completions
		d, err := a.places()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(cmdContext(cmd)), completeTimeout)
		defer cancel()
		list, err := names(ctx, a.connect(d.ControlSocket, control.ClientOptions{Version: a.version.Version, Timeout: completeTimeout}))
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var out []string
		for _, n := range list {
			if strings.HasPrefix(n[0], toComplete) && !slices.Contains(args, n[0]) {
				out = append(out, fmt.Sprintf("%s\t%s", clean(n[0]), clean(n[1])))
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}

func cmdContext(cmd *cobra.Command) context.Context {
	if ctx := cmd.Context(); ctx != nil {
		return ctx
	}
	return context.Background()
}

// oneOf completes a flag that has few values.
func oneOf(cmd *cobra.Command, flag string, values ...string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)) // fails only for a flag that is not there
}
