package tui

import (
	"os"
	"strings"
	"testing"
)

// docs/settings.md has every action of the help, with its command.
func TestPageListsEveryAction(t *testing.T) {
	page, err := os.ReadFile("../../docs/settings.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]bool{}
	n := 0
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 6 {
			continue
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		command := strings.ReplaceAll(cells[4], "`", "")
		rows[cells[1]+"|"+cells[2]+"|"+cells[3]+"|"+strings.Fields(command + " -")[0]] = true
		n++
	}
	want := 2 // the heading and its line
	for _, part := range actions()[1:] {
		for _, a := range part.actions {
			want++
			if key := part.name + "|" + a.key + "|" + a.what + "|hbrestd"; !rows[key] {
				t.Errorf("docs/settings.md has no row %s", key)
			}
			if !strings.HasPrefix(a.command, "hbrestd ") {
				t.Errorf("%s %s has no command", part.name, a.key)
			}
		}
	}
	if n != want {
		t.Errorf("docs/settings.md has %d rows of actions, the panel %d", n-2, want-2)
	}
}
