package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/control"
)

func TestCompletionScripts(t *testing.T) {
	w := newWorld(t, nil)
	for shell, mark := range map[string]string{"bash": "__start_hbrestd", "zsh": "#compdef hbrestd", "fish": "complete -c hbrestd", "powershell": "Register-ArgumentCompleter"} {
		got := w.hb("completion", shell)
		if got.Exit != 0 || got.ErrOut != "" || !strings.Contains(got.Out, mark) {
			t.Errorf("%s: exit %d, %d bytes, %s", shell, got.Exit, len(got.Out), got.ErrOut)
		}
	}
}

func TestDynamicCompletion(t *testing.T) {
	f := &fake{
		docs:     docs(`{"id":"orders.list"}`, `{"id":"orders.create"}`, `{"id":"weather"}`),
		settings: []control.Setting{{Name: "addr", Description: "where the\nbridge listens"}},
		rules:    []control.AllowRule{{Host: "fd00::5", Port: "80"}},
	}
	w := newWorld(t, f)
	w.env["KUANG_WRAP_ADDR"] = "127.0.0.1:5" // its warning must not come between
	const noFiles = ":4\n"
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"wrapper", "run", "ord"}, "orders.create\tName of orders.create\norders.list\tName of orders.list\n" + noFiles},
		{[]string{"wrapper", "run", "orders.list", ""}, noFiles},
		{[]string{"wrapper", "rm", "orders.list", ""}, "orders.create\tName of orders.create\nweather\tName of weather\n" + noFiles},
		{[]string{"wrapper", "run", "x", "--format", ""}, "markdown\njson\nboth\n" + noFiles},
		{[]string{"config", "get", ""}, "addr\twhere the bridge listens\n" + noFiles},
		{[]string{"allow", "rm", ""}, "[fd00::5]:80\t\n" + noFiles},
		{[]string{"allow", "add", ""}, noFiles},
	} {
		got := w.hb(append([]string{"__complete"}, tc.args...)...)
		if got.Exit != 0 || strings.ReplaceAll(got.Out, "]:80\n", "]:80\t\n") != tc.want {
			t.Errorf("%q: exit %d\n%swant:\n%s", tc.args, got.Exit, got.Out, tc.want)
		}
	}
	down := newWorld(t, nil)
	if got := down.hb("__complete", "wrapper", "run", ""); got.Out != noFiles {
		t.Errorf("without a daemon: %q", got.Out)
	}
}

// A daemon that does not answer costs a fifth of a second (a busy machine: some
// more), not the quarter of a minute that other commands wait.
func TestCompletionGivesUp(t *testing.T) {
	f := &fake{started: make(chan struct{}, 1)}
	w := newWorld(t, f)
	start := time.Now()
	if got := w.hb("__complete", "wrapper", "run", ""); got.Out != ":4\n" {
		t.Errorf("%q", got.Out)
	}
	if took := time.Since(start); took < completeTimeout || took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
}
