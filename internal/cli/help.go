package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// helpText is the help of a command: what it does, an example that works, how
// it is called, what it holds, its flags.
func helpText(cmd *cobra.Command) string {
	var b strings.Builder
	about := cmd.Long
	if about == "" {
		about = cmd.Short + "."
	}
	fmt.Fprintf(&b, "%s\n", strings.TrimSpace(about))
	if cmd.Example != "" {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", strings.TrimRight(cmd.Example, "\n"))
	}
	fmt.Fprintf(&b, "\nUsage:\n")
	if !cmd.HasAvailableSubCommands() || cmd.Annotations["acts"] != "" {
		fmt.Fprintf(&b, "  %s\n", cmd.UseLine())
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "  %s COMMAND\n\nCommands:\n", cmd.CommandPath())
		long := 0
		for _, c := range cmd.Commands() {
			long = max(long, len(c.Name()))
		}
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() || c.Name() == "help" {
				fmt.Fprintf(&b, "  %-*s  %s\n", long, c.Name(), c.Short)
			}
		}
	}
	cmd.InitDefaultHelpFlag()
	if flags := cmd.LocalFlags(); flags.HasAvailableFlags() {
		fmt.Fprintf(&b, "\nFlags:\n%s", flags.FlagUsages())
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\n\"%s COMMAND --help\" tells more about a command.\n", cmd.CommandPath())
	}
	return b.String()
}
