package shim

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/cpuguy83/go-md2man/v2/md2man"

	"github.com/hyperbolic-gateway/hb-rest/internal/golden"
)

// variable is a line of the list in the help.
var variable = regexp.MustCompile(`(?m)^  (HB_\w+(?:=\S+)?) +(.*)$`)

// The manual page of hb-rest is made from what --help prints.
func TestManual(t *testing.T) {
	help := fmt.Sprintf(usage, "/usr/bin/hb-rest", "/home/you/.local/state/hbrestd/wrap/token")
	what, rest, ok := strings.Cut(help, "\n\nUsage: ")
	_, variables, ok2 := strings.Cut(rest, "\n\nEnvironment:\n")
	found := variable.FindAllStringSubmatch(variables, -1)
	if !ok || !ok2 || len(found) != strings.Count(variables, "\n") {
		t.Fatalf("the help has another shape:\n%s", help)
	}
	intro, entry, ok := strings.Cut(what, ":\n\n")
	entry, after, ok2 := strings.Cut(entry, "\n\n")
	if !ok || !ok2 {
		t.Fatalf("the help has another shape:\n%s", help)
	}
	var b strings.Builder
	b.WriteString("% \"HB-REST\" \"1\" \"\" \"hb-rest\" \"hb-rest manual\"\n\n# NAME\n\nhb\\-rest - MCP server that gives AI agents the REST wrappers of hbrestd\n\n")
	fmt.Fprintf(&b, "# SYNOPSIS\n\n**hb-rest** [**--version** | **--help**]\n\n# DESCRIPTION\n\n%s:\n\n```\n%s\n```\n\n%s\n\n# ENVIRONMENT\n", intro, entry, after)
	for _, v := range found {
		text := strings.ReplaceAll(v[2], "_", `\_`)
		fmt.Fprintf(&b, "\n**%s**\n: %s\n", v[1], strings.ToUpper(text[:1])+text[1:]+".")
	}
	b.WriteString("\n# SEE ALSO\n\n**hbrestd**(1), **hbrestd-client**(1)\n")
	golden.File(t, "../../packaging/man/hb-rest.1", string(md2man.Render([]byte(b.String()))))
}
