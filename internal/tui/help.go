package tui

import "strings"

// helpLines are the keys, and the command that does the same. docs/settings.md
// has the same table; a test compares them.
func helpLines() []string {
	lines := []string{"Each action is also a command; hbrestd stands before it.", ""}
	for _, part := range actions() {
		lines = append(lines, part.name, "")
		for _, a := range part.actions {
			lines = append(lines, "  "+pad(a.key, 16)+pad(a.what, 31)+strings.TrimPrefix(a.command, "hbrestd "))
		}
		lines = append(lines, "")
	}
	return lines
}

type part struct {
	name    string
	actions []act
}

type act struct{ key, what, command string }

// actions are everything that the panel does.
func actions() []part {
	return []part{
		{"Everywhere", []act{
			{"1 2 3 4, tab", "change the tab", ""},
			{"↑ ↓ pgup pgdn", "move", ""},
			{"home end", "first, last", ""},
			{"esc", "back", ""},
			{"? q ctrl+c", "help, quit", ""},
		}},
		{"Wrappers", []act{
			{"/", "filter", "hbrestd wrapper list"},
			{"enter", "show", "hbrestd wrapper show ID"},
			{"n", "new", "hbrestd wrapper new"},
			{"e, E", "edit the form, the document", "hbrestd wrapper edit ID"},
			{"t", "dry run", "hbrestd wrapper test ID"},
			{"s", "render a sample", "hbrestd wrapper test ID --sample FILE"},
			{"x", "tool of its own, on and off", "hbrestd wrapper expose ID, hide ID"},
			{"p", "priority of a tool", "hbrestd wrapper expose ID --priority N"},
			{"d", "delete", "hbrestd wrapper rm ID"},
		}},
		{"Credentials", []act{
			{"/", "filter", "hbrestd secret list"},
			{"enter", "show", "hbrestd secret show NAME"},
			{"n", "new", "hbrestd secret set NAME --host HOST"},
			{"e", "edit hosts, headers, kind", "hbrestd secret set NAME, bind, unbind"},
			{"r", "new value", "hbrestd secret rotate NAME"},
			{"t", "test", "hbrestd secret test NAME --wrapper ID"},
			{"d", "delete", "hbrestd secret rm NAME"},
		}},
		{"Approvals", []act{
			{"", "see what waits", "hbrestd approval list"},
			{"enter", "see the whole request", "hbrestd approval show ID"},
			{"a", "allow", "hbrestd approval allow ID"},
			{"T", "allow and trust this version", "hbrestd approval allow ID --trust"},
			{"d", "deny", "hbrestd approval deny ID"},
			{"p", "policy", "hbrestd approval policy"},
		}},
		{"Audit", []act{
			{"", "follow", "hbrestd audit --follow"},
			{"/", "filter by wrapper or any word", "hbrestd audit"},
			{"enter", "whole row", "hbrestd audit --json"},
			{"v", "verify the trail", "hbrestd audit verify"},
		}},
	}
}
