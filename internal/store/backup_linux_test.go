package store_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/internal/store"
)

func init() {
	// fullsnapshot DIR: has no room for a snapshot, wherever it ends, and then has.
	children["fullsnapshot"] = func(args []string) int {
		if err := fullSnapshot(args[0]); err != nil {
			fmt.Fprintln(os.Stderr, "fullsnapshot:", err)
			return 1
		}
		return 0
	}
}

// A snapshot for which there is no room is an error and no file, and the store
// goes on.
func TestSnapshotOnFullDisk(t *testing.T) {
	t.Parallel()
	if out, err := child(t, "fullsnapshot", t.TempDir()).Output(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func fullSnapshot(dir string) error {
	s, err := store.Open(filepath.Join(dir, "store.db"), store.Options{})
	if err != nil {
		return err
	}
	for i := range 100 {
		if _, err := s.By(store.Human).Create(parse(fmt.Sprintf("w.%03d", i), "x", fmt.Sprintf(`,"description":%q`, strings.Repeat("d", 1900)))); err != nil {
			return err
		}
	}
	copied := filepath.Join(dir, "copy.db")
	for _, room := range []uint64{1, 4096, 8192, 10000, 65536} {
		if err := limit(room); err != nil {
			return err
		}
		if err := s.Snapshot(copied); err == nil || !strings.HasPrefix(err.Error(), "STORE_FAILED: ") {
			return fmt.Errorf("with room for %d bytes: %v", room, err)
		}
		if _, err := os.Lstat(copied); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("with room for %d bytes a file is left: %v", room, err)
		}
	}
	if err := limit(^uint64(0)); err != nil {
		return err
	}
	if _, err := s.By(store.Human).Create(parse("later", "x")); err != nil {
		return fmt.Errorf("with room again: %w", err)
	}
	if err := s.Snapshot(copied); err != nil {
		return fmt.Errorf("with room again: %w", err)
	}
	c, err := store.CheckCopy(copied)
	if err != nil || c.Wrappers != 101 {
		return fmt.Errorf("the copy: %+v, %w", c, err)
	}
	return s.Close()
}
