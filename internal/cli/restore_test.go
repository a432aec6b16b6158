package cli

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/internal/config"
	"github.com/hyperbolic-gateway/hb-rest/internal/daemon"
)

// savedWorld is a home that a daemon has used and left, and a backup of it.
func savedWorld(t *testing.T) (w *world, dir string) {
	t.Helper()
	w = newWorld(t, nil)
	w.env["HB_WRAP_ADDR"] = "127.0.0.1:0"
	cfg, _, err := config.LoadDaemon(w.lookup(), "linux")
	if err != nil {
		t.Fatal(err)
	}
	d, err := daemon.Start(t.Context(), daemon.Options{Config: cfg, Version: "1.2.3", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(w.home, "saved")
	if got := w.hb("backup", dir); got.Exit != 0 || !strings.HasPrefix(got.Out, "HOME/saved\t0\t0\t0\t0:") || !strings.Contains(got.ErrOut, "the daemon does not run") {
		t.Fatalf("%+v", got)
	}
	return w, dir
}

func TestRestoreCommand(t *testing.T) {
	w, dir := savedWorld(t)
	w.width = 120
	if got := w.hb("restore", dir, "--yes"); got.Exit != 0 || got.Out != "" || !strings.Contains(got.ErrOut, "the home holds this backup already") {
		t.Errorf("%+v", got)
	}
	w.file("wrap/store.db", "rubbish")
	if err := os.Remove(filepath.Join(w.home, "wrap", "audit.db")); err != nil {
		t.Fatal(err)
	}
	got := w.hb("restore", dir, "--dry-run")
	for _, says := range []string{"backup       HOME/saved\n", "replaces     a damaged store.db: ", ", in HOME/wrap\n", "nothing was changed\n"} {
		if got.Exit != 0 || !strings.Contains(got.Out, says) {
			t.Errorf("no %q: %+v", says, got)
		}
	}
	got = w.hb("restore", dir, "--yes")
	for _, says := range []string{"put audit.db in place\n", "replaced store.db; what was there is kept as HOME/wrap/store.db.before-restore-"} {
		if got.Exit != 0 || !strings.Contains(got.Out, says) {
			t.Errorf("no %q: %+v", says, got)
		}
	}
	if !strings.Contains(got.ErrOut, "`hbrestd audit verify` checks the trail") {
		t.Errorf("%+v", got)
	}
	kept, err := filepath.Glob(filepath.Join(w.home, "wrap", "store.db.before-restore-*"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("%q, %v", kept, err)
	}
	if data, err := os.ReadFile(kept[0]); err != nil || string(data) != "rubbish" {
		t.Errorf("%q, %v", data, err)
	}
	if got := w.hb("restore", dir, "--yes", "--json"); got.Exit != 0 || !strings.Contains(got.Out, `"files": []`) || !strings.Contains(got.Out, `"auditHead": "0:`) {
		t.Errorf("%+v", got)
	}
}

func TestRestoreCommandRefuses(t *testing.T) {
	w, dir := savedWorld(t)
	w.file("wrap/store.db", "rubbish")
	for what, c := range map[string]struct {
		args   []string
		marker string
		exit   int
		says   string
	}{
		"nobody to ask": {[]string{dir}, "", 4, "somebody must say yes to that"},
		"an agent":      {[]string{dir, "--yes"}, "CLAUDECODE", 4, "CLAUDECODE is set"},
		"no backup":     {[]string{w.home, "--yes"}, "", 1, "is no backup"},
		"no folder":     {[]string{}, "", 2, "the folder of the backup is missing"},
	} {
		if c.marker != "" {
			w.env[c.marker] = "1"
		}
		if got := w.hb(append([]string{"restore"}, c.args...)...); got.Exit != c.exit || !strings.Contains(got.ErrOut, c.says) {
			t.Errorf("%s: %+v", what, got)
		}
		delete(w.env, c.marker)
	}
	if got := w.content("wrap/store.db"); got != "rubbish" {
		t.Errorf("something was replaced: %.40q", got)
	}
	left, err := filepath.Glob(filepath.Join(w.home, "wrap", ".*"))
	if err != nil || len(left) > 0 {
		t.Errorf("%q, %v", left, err)
	}
	f := &fake{}
	w = newWorld(t, f)
	if got := w.hb("restore", dir, "--yes"); got.Exit != 1 || !strings.Contains(got.ErrOut, "the daemon runs (pid 4321)") || !strings.Contains(got.ErrOut, "`hbrestd service stop`") {
		t.Errorf("a daemon: %+v", got)
	}
}
