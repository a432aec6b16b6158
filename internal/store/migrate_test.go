package store_test

import (
	"bytes"
	"errors"
	"os"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/hyperbolic-gateway/hb-rest/internal/store"
)

// Every format but the first has a step that leads to it.
func TestFormatSteps(t *testing.T) {
	if store.FormatSteps() != store.FileFormat-1 {
		t.Errorf("%d steps, and the format is %d", store.FormatSteps(), store.FileFormat)
	}
}

// A file of the first format is kept beside before a step touches it; the old
// program refuses the new file and opens the old one; a step that fails changes
// nothing.
func TestMigrate(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	s := mustOpen(t, path)
	if err := s.SetSetting("allow-http", "true"); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	read := func(p string) []byte {
		t.Helper()
		data, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	before := read(path)
	at := time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC)
	fill := func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucketIfNotExists([]byte("next"))
		if err != nil {
			return err
		}
		return b.Put([]byte("k"), []byte("v"))
	}

	kept, err := store.Migrate(path, at, fill, func(*bbolt.Tx) error { return errors.New("the second step fails") })
	mustFail(t, err, "STORE_FAILED", "could not be brought up to date; it is as it was", "the second step fails")
	if kept != path+".format-1-20261201T080000Z" || !bytes.Equal(read(kept), before) {
		t.Errorf("kept: %s", kept)
	}
	if l, err := store.LookAt(path); err != nil || len(l.Faults) > 0 || l.Settings["allow-http"] != "true" {
		t.Errorf("after a step that failed: %+v, %v", l, err)
	}
	if err := mustOpen(t, path).Close(); err != nil {
		t.Fatal(err)
	}

	now := read(path)
	// No second copy under the same name, and without a copy no step.
	_, err = store.Migrate(path, at, fill)
	mustFail(t, err, "STORE_FAILED", "could not be kept as "+kept)
	if !bytes.Equal(read(path), now) || !bytes.Equal(read(kept), before) {
		t.Error("a file was changed without a copy")
	}

	kept, err = store.Migrate(path, at.Add(time.Second), fill)
	if err != nil || !bytes.Equal(read(kept), now) {
		t.Fatalf("%s, %v", kept, err)
	}
	if info, err := os.Stat(kept); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	_, err = store.Open(path, store.Options{})
	mustFail(t, err, "STORE_FAILED", "was written by a newer hbrestd", "left as it is")
	s = mustOpen(t, kept)
	if s.Settings()["allow-http"] != "true" || s.Recovered() != "" {
		t.Errorf("the kept file: %v, %q", s.Settings(), s.Recovered())
	}

	// One that is open elsewhere waits for its turn.
	_, err = store.Migrate(kept, at, fill)
	mustFail(t, err, "STORE_FAILED", "another hbrestd")
}
