package daemon

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// Where a disk has no second names, a copy that was killed half way does not keep
// the next start from making it.
func TestKeepAfterAKill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	kept := path + ".before-restore-20261201T080000Z"
	half := filepath.Join(filepath.Dir(path), ".store.db.before-restore-20261201T080000Z.tmp")
	if err := errors.Join(os.WriteFile(path, []byte("what was there"), 0o600), os.WriteFile(half, []byte("what"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := keep(path, kept, func(string, string) error { return errors.New("no second names") }); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(kept); err != nil || string(got) != "what was there" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := os.Stat(half); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}
