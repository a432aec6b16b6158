package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/hyperbolic-gateway/hb-rest/internal/golden"
)

// everyCommand gives the command tree, parents first.
func everyCommand(t *testing.T) []*cobra.Command {
	t.Helper()
	a := newWorld(t, nil).app(nil, nil)
	var list []*cobra.Command
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		list = append(list, c)
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() && sub.Name() != "help" {
				walk(sub)
			}
		}
	}
	walk(a.root())
	return list
}

// docs/cli.md is made from the command tree, so the two cannot differ.
func TestCLIPage(t *testing.T) {
	var b strings.Builder
	b.WriteString("# The commands of hbrestd\n\nGenerated from internal/cli by `make docs`. `hbrestd COMMAND --help` prints the same.\n\n| Command | Does |\n| --- | --- |\n")
	list := everyCommand(t)
	for _, c := range list[1:] {
		if acts(c) {
			fmt.Fprintf(&b, "| [`%s`](#%s) | %s |\n", c.CommandPath(), anchor(c), cell(c.Short))
		}
	}
	b.WriteString(`
## What all commands have in common

**Streams.** The answer goes to stdout, everything else to stderr. On a terminal a table has a heading and is cut to the width; otherwise it is one line for each row, without a heading, with tabs between the cells. Nothing is coloured. Control characters in what comes from an API or a document are not passed to a terminal.

**Questions.** A command that removes or replaces something asks when stdin and stderr are a terminal, unless it has ` + "`--yes`" + `. A script is never asked. ` + "`--dry-run`" + ` shows what would happen.

**JSON.** With ` + "`--json`" + ` the answer is JSON, indented, with the members that the bridge uses (docs/api.md), and an error is one object of the shape in docs/errors.md on stderr. Two codes are not in that table: ` + "`USAGE`" + ` for a command line that cannot be understood, and ` + "`FAILED`" + ` for what this machine refused, such as reading a file.

**Errors** are ` + "`hbrestd: error: ...`" + `, a line for each problem with its field, and ` + "`hbrestd: hint: ...`" + `.

**Exit codes**

| Code | Meaning |
| --- | --- |
`)
	for _, e := range exitCodes {
		fmt.Fprintf(&b, "| %d | %s |\n", e.code, e.meaning)
	}
	for _, c := range list {
		mark := "##"
		if c.Parent() != nil && c.Parent().Parent() != nil {
			mark = "###"
		}
		fmt.Fprintf(&b, "\n%s %s\n\n%s\n", mark, c.CommandPath(), paragraphs(c))
		fmt.Fprintf(&b, "\n```sh\n%s\n```\n", strings.TrimSpace(undent(c.Example)))
		if !acts(c) {
			continue
		}
		fmt.Fprintf(&b, "\nUsage: `%s`\n", c.UseLine())
		if usages := strings.TrimRight(flagTable(c), "\n"); usages != "" {
			fmt.Fprintf(&b, "\n%s\n", usages)
		}
	}
	golden.File(t, "../../docs/cli.md", b.String())
}

// acts reports whether a command does something itself.
func acts(c *cobra.Command) bool { return !c.HasSubCommands() || c.Annotations["acts"] != "" }

func anchor(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }
func cell(s string) string           { return strings.ReplaceAll(s, "|", `\|`) }

// paragraphs is the long text; what is indented in it becomes a code block.
func paragraphs(c *cobra.Command) string {
	if c.Long == "" {
		return c.Short + "."
	}
	var blocks []string
	for _, block := range strings.Split(strings.TrimSpace(c.Long), "\n\n") {
		head, rest, _ := strings.Cut(block, ":\n  ")
		switch {
		case strings.HasPrefix(block, "  "):
			block = "```\n" + undent(block) + "\n```"
		case rest != "":
			block = head + ":\n\n```\n" + undent("  "+rest) + "\n```"
		}
		blocks = append(blocks, block)
	}
	return strings.Join(blocks, "\n\n")
}

func undent(s string) string { return strings.TrimPrefix(strings.ReplaceAll(s, "\n  ", "\n"), "  ") }

func flagTable(c *cobra.Command) string {
	usages := c.LocalNonPersistentFlags().FlagUsages()
	if usages == "" {
		return ""
	}
	return "```\n" + usages + "```"
}

// The help of everything, as it is printed.
func TestHelp(t *testing.T) {
	var b strings.Builder
	for _, c := range everyCommand(t) {
		got := newWorld(t, nil).hb(append(strings.Fields(c.CommandPath())[1:], "--help")...)
		if got.Exit != 0 || got.ErrOut != "" {
			t.Errorf("%s --help: %+v", c.CommandPath(), got)
		}
		fmt.Fprintf(&b, "$ %s --help\n%s\n", c.CommandPath(), got.Out)
	}
	golden.File(t, "testdata/golden/help.txt", b.String())
}

// What a person relies on without looking.
func TestHabits(t *testing.T) {
	changes := map[string]bool{"hbrestd run": true, "hbrestd completion": true, "hbrestd service logs": true, "hbrestd settings": true, "hbrestd wrapper new": true, "hbrestd wrapper edit": true} // print no answer of their own
	for _, c := range everyCommand(t) {
		path := c.CommandPath()
		if c.Short == "" || strings.HasSuffix(c.Short, ".") || len(c.Short) > 90 {
			t.Errorf("%s: its one line is %q", path, c.Short)
		}
		if c.Example == "" {
			t.Errorf("%s has no example", path)
		}
		if acts(c) && !changes[path] && c.Flags().Lookup("json") == nil {
			t.Errorf("%s has no --json", path)
		}
		for line := range strings.Lines(helpText(c)) {
			if n := len([]rune(strings.TrimRight(line, "\n"))); n > 120 {
				t.Errorf("%s: a line of its help has %d characters: %s", path, n, line)
			}
		}
	}
}

// Every example is a command line that can be understood.
func TestExamplesParse(t *testing.T) {
	n := 0
	for _, c := range everyCommand(t) {
		for line := range strings.Lines(strings.ReplaceAll(c.Example, "\\\n", "")) {
			for _, part := range strings.Split(strings.TrimSpace(line), " | ") {
				part, _, _ = strings.Cut(part, " > ")
				part, _, _ = strings.Cut(part, " < ")
				part, _, _ = strings.Cut(part, " #")
				_, words, found := strings.Cut(" "+part, " hbrestd ")
				if !found {
					continue
				}
				n++
				args := strings.Fields(strings.ReplaceAll(words, `"$(cat noted-head)"`, "12:ab"))
				root := newWorld(t, nil).app(nil, nil).root()
				cmd, rest, err := root.Find(args)
				if err == nil {
					err = cmd.ParseFlags(rest)
				}
				if err == nil {
					err = cmd.ValidateArgs(cmd.Flags().Args())
				}
				if err != nil {
					t.Errorf("%s: %q: %v", c.CommandPath(), part, err)
				}
				if c.HasParent() && c.Parent() != root && cmd.CommandPath() != c.CommandPath() && acts(c) && !strings.Contains(line, " | ") {
					t.Errorf("an example of %s is one of %s", c.CommandPath(), cmd.CommandPath())
				}
			}
		}
	}
	if n < 40 {
		t.Errorf("only %d examples were found", n)
	}
}
