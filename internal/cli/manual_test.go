package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cpuguy83/go-md2man/v2/md2man"
	"github.com/spf13/cobra"

	"github.com/hyperbolic-gateway/hb-rest/internal/config"
	"github.com/hyperbolic-gateway/hb-rest/internal/golden"
)

const packaging = "../../packaging"

// The manual pages that are packed: one for hbrestd, and one for each noun.
// The page of hb-rest is made in internal/shim.
func TestCLIPageManual(t *testing.T) {
	want := []string{"hb-rest.1"}
	list := everyCommand(t)
	for _, c := range list {
		if c.HasParent() && !c.HasSubCommands() {
			continue
		}
		name := strings.ReplaceAll(c.CommandPath(), " ", "-")
		want = append(want, name+".1")
		text := manual(c, name, list[0])
		golden.File(t, filepath.Join(packaging, "man", name+".1"), text)
	}
	entries, err := os.ReadDir(filepath.Join(packaging, "man"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("packaging/man holds %q, want %q", got, want)
	}
}

// The scripts for shells, as they are packed.
func TestCLIPageCompletions(t *testing.T) {
	for shell, name := range map[string]string{"bash": "hbrestd.bash", "zsh": "_hbrestd", "fish": "hbrestd.fish", "powershell": "hbrestd.ps1"} {
		got := newWorld(t, nil).hb("completion", shell)
		golden.File(t, filepath.Join(packaging, "completions", name), got.Out)
	}
}

// manual is the page of a command and of what is below it.
func manual(c *cobra.Command, name string, root *cobra.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%% %q \"1\" \"\" \"hb-rest\" \"hb-rest manual\"\n\n", strings.ToUpper(name))
	fmt.Fprintf(&b, "# NAME\n\n%s - %s\n\n# SYNOPSIS\n\n", strings.ReplaceAll(name, "-", `\-`), literal(c.Short))
	fmt.Fprintf(&b, "**%s** _COMMAND_ [_FLAGS_]\n\n# DESCRIPTION\n\n%s\n", c.CommandPath(), forManual(paragraphs(c)))
	if c.Example != "" {
		fmt.Fprintf(&b, "\n```\n%s\n```\n", strings.TrimSpace(undent(c.Example)))
	}
	b.WriteString("\n# COMMANDS\n")
	var pages []string
	for _, sub := range c.Commands() {
		if !sub.IsAvailableCommand() || sub.Name() == "help" {
			continue
		}
		if sub.HasSubCommands() {
			page := strings.ReplaceAll(sub.CommandPath(), " ", "-")
			pages = append(pages, page)
			fmt.Fprintf(&b, "\n## %s\n\n%s. See **%s**(1).\n", sub.CommandPath(), literal(sub.Short), page)
			continue
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", literal(sub.UseLine()), forManual(paragraphs(sub)))
		if flags := sub.LocalNonPersistentFlags().FlagUsages(); flags != "" {
			fmt.Fprintf(&b, "\n```\n%s\n```\n", strings.TrimRight(flags, "\n"))
		}
		if sub.Example != "" {
			fmt.Fprintf(&b, "\nExamples:\n\n```\n%s\n```\n", strings.TrimSpace(undent(sub.Example)))
		}
	}
	b.WriteString("\n# EXIT STATUS\n")
	for _, e := range exitCodes {
		fmt.Fprintf(&b, "\n**%d**\n: %s\n", e.code, literal(e.meaning))
	}
	if c == root {
		surroundings(&b)
	} else {
		pages = []string{"hbrestd"}
	}
	b.WriteString("\n# SEE ALSO\n\n")
	for _, p := range append(pages, "hb-rest") {
		fmt.Fprintf(&b, "**%s**(1), ", p)
	}
	text := strings.TrimSuffix(b.String(), ", ") + "\n"
	return string(md2man.Render([]byte(text)))
}

// surroundings are the variables and files of the daemon.
func surroundings(b *strings.Builder) {
	b.WriteString("\n# ENVIRONMENT\n\n**HB_WRAP_HOME**\n: Where hbrestd keeps everything. Default: hbrestd in **$XDG_STATE_HOME**, or in ~/.local/state.\n")
	for _, s := range config.Settings() {
		fmt.Fprintf(b, "\n**%s**\n: %s. The same as **hbrestd config set %s**.\n", s.Variable, strings.TrimSuffix(literal(s.Description), "."), s.Name)
	}
	b.WriteString(`
# FILES

**~/.local/state/hbrestd/wrap/store.db**
: Wrappers, settings and sealed credentials.

**~/.local/state/hbrestd/wrap/audit.db**
: What was sent where.

**~/.local/state/hbrestd/wrap/token**
: The token of the running daemon, which hb-rest shows it.

**/usr/lib/systemd/user/hbrestd.service**
: The unit that comes with a package; **hbrestd service install** enables it, or writes one of the user's own.
`)
}

// special are the characters that Markdown takes for its own.
var special = regexp.MustCompile(`[\\<*_\[\]|~]`)

func literal(s string) string { return special.ReplaceAllString(s, `\$0`) }

// forManual leaves code as it is and takes the meaning from everything else.
func forManual(s string) string {
	blocks := strings.Split(s, "```")
	for i := 0; i < len(blocks); i += 2 {
		spans := strings.Split(blocks[i], "`")
		for j := 0; j < len(spans); j += 2 {
			spans[j] = literal(spans[j])
		}
		blocks[i] = strings.Join(spans, "`")
	}
	return strings.Join(blocks, "```")
}
