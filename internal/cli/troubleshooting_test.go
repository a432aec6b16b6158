package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// What docs/troubleshooting.md names is there: codes, commands and pages.
func TestTroubleshootingPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	codes := regexp.MustCompile("(?m)^\\| `([A-Z_]+)` \\|").FindAllStringSubmatch(string(page), -1)
	if len(codes) < 15 {
		t.Errorf("only %d codes", len(codes))
	}
	for _, m := range codes {
		if _, ok := fault.Lookup(fault.Code(m[1])); !ok {
			t.Errorf("there is no code %s", m[1])
		}
	}
	root := newWorld(t, nil).app(nil, nil).root()
	commands := command.FindAllStringSubmatch(string(page), -1)
	if len(commands) < 15 {
		t.Errorf("only %d commands", len(commands))
	}
	for _, m := range commands {
		if cmd, rest, err := root.Find(strings.Fields(m[1])[1:]); err != nil || len(rest) > 0 && !acts(cmd) {
			t.Errorf("there is no command %s", m[1])
		}
	}
	for _, m := range regexp.MustCompile(`\]\(([a-z]+\.md)\)`).FindAllStringSubmatch(string(page), -1) {
		if _, err := os.Stat(filepath.Join("../../docs", m[1])); err != nil {
			t.Error(err)
		}
	}
}
