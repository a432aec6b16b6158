package store_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/store"
)

// A look changes nothing, whatever it finds.
func TestLookAt(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	look := func(want store.Look) {
		t.Helper()
		before, _ := os.ReadFile(path)
		got, err := store.LookAt(path)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%v\n%s", err, diff)
		}
		if after, _ := os.ReadFile(path); string(before) != string(after) {
			t.Error("the file was changed")
		}
	}
	look(store.Look{})
	s := mustOpen(t, path)
	if err := s.SetSetting("allow-http", "true"); err != nil {
		t.Fatal(err)
	}
	if err := s.PutSealed("key", []byte("sealed")); err != nil {
		t.Fatal(err)
	}
	look(store.Look{Exists: true, InUse: true})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	look(store.Look{Exists: true, Sealed: 1, Settings: map[string]string{"allow-http": "true"}})
	if err := os.Truncate(path, 100); err != nil {
		t.Fatal(err)
	}
	got, err := store.LookAt(path)
	if err != nil || !got.Exists || len(got.Faults) == 0 {
		t.Errorf("cut short: %+v, %v", got, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := store.LookAt(path); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a folder: %v", err)
	}
}
