//go:build unix

package daemon_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/internal/daemon"
)

// A pipe for a file does not keep the command for good, and a file of another
// size is not copied before that is said.
func TestRestoreOfPipesAndSizes(t *testing.T) {
	cfg, add := turningHome(t)
	add(5)
	for name, c := range map[string]struct {
		spoil func(path string) error
		says  string
	}{
		"manifest.json": {func(path string) error { return errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o600)) }, "manifest.json is not a regular file"},
		"audit.db":      {func(path string) error { return errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o600)) }, "it is not a regular file"},
		"store.db":      {func(path string) error { return os.Truncate(path, 1<<40) }, "it has 1099511627776 bytes"},
	} {
		dir := filepath.Join(t.TempDir(), "b")
		if _, err := daemon.BackupOffline(t.Context(), cfg, "1.2.3", dir); err != nil {
			t.Fatal(err)
		}
		if err := c.spoil(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		if _, err := daemon.PrepareRestore(t.Context(), cfg, dir, restoreTime); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
