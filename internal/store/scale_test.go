package store_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/internal/store"
	"github.com/hyperbolic-gateway/hb-rest/internal/wrapper"
)

// since is what changed after a mark, in words.
func since(s *store.Store, mark string) string {
	ids, known := s.ChangedSince(mark)
	if !known {
		return "everything"
	}
	return strings.Join(ids, " ")
}

// Whoever names a mark hears of the wrappers that changed after it, and of
// nothing else; or that it has to read all of them again.
func TestChangedSince(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s, err := store.Open(path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	by := s.By(store.Agent)
	marks := []string{s.Mark()}
	step := func(do func() error) {
		t.Helper()
		if err := do(); err != nil {
			t.Fatal(err)
		}
		marks = append(marks, s.Mark())
	}
	seven := 7
	step(func() error { _, err := by.Create(parse("a", "A")); return err })
	step(func() error { _, err := by.Create(parse("b", "B")); return err })
	step(func() error { _, err := by.Update(parse("a", "A2")); return err })
	step(func() error { _, err := by.Delete("b"); return err })
	step(func() error { _, err := by.SetExposure("a", false, &seven); return err }) // the priority alone
	step(func() error { s.MarkVerified("a", s.RemovedWrappers()[0].Time); return nil })
	for i, want := range []string{"a b", "a b", "a b", "a b", "a", "", ""} {
		if got := since(s, marks[i]); got != want {
			t.Errorf("since %s: %q, want %q", marks[i], got, want)
		}
	}
	era, _, _ := strings.Cut(marks[0], ".")
	for _, mark := range []string{"", "0", era, era + ".", era + ".x", era + ".0", era + ".99", "0123456789abcdef.3", era + ".3.1"} {
		if got := since(s, mark); got != "everything" {
			t.Errorf("since %q: %q", mark, got)
		}
	}
	last := s.Mark()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	// The next opening may be of a copy that was put back, with the same numbers.
	if s, err = store.Open(path, store.Options{}); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got := since(s, last); got != "everything" || last == s.Mark() {
		t.Errorf("after another start: %q", got)
	}
	if got := since(s, s.Mark()); got != "" {
		t.Errorf("since now: %q", got)
	}
	if _, err := s.Reload(); err != nil {
		t.Fatal(err)
	}
	if got := since(s, s.Mark()); got != "" {
		t.Errorf("since a reload: %q", got)
	}
}

// What is remembered has an end, and whoever missed more is told so.
func TestChangedSinceIsBounded(t *testing.T) {
	s, err := store.Open(filepath.Join(t.TempDir(), "store.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	store.Unsynced(t, s)
	first, by := s.Mark(), s.By(store.Agent)
	for i := range 6 {
		var ws []*wrapper.Wrapper
		for k := range 1000 {
			ws = append(ws, parse(fmt.Sprintf("w%d", i*1000+k), "W"))
		}
		before := s.Mark()
		if _, _, err := by.Apply(ws, false); err != nil {
			t.Fatal(err)
		}
		ids, known := s.ChangedSince(before)
		if known && len(ids) != 1000 {
			t.Errorf("batch %d: %d ids", i, len(ids))
		}
		if known == (i == 4) { // the 4097th
			t.Errorf("batch %d: known is %v", i, known)
		}
	}
	if got := since(s, first); got != "everything" {
		t.Errorf("since the start: %d bytes", len(got))
	}
	if _, err := by.Update(parse("w5999", "changed")); err != nil {
		t.Fatal(err)
	}
	if got := since(s, s.Mark()); got != "" {
		t.Errorf("%q", got)
	}
}
