package store_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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

// auditRow is a row of a usual size.
func auditRow(n int) []byte {
	return append(binary.BigEndian.AppendUint64(nil, uint64(n)), fmt.Sprintf("%0200d", n)...)
}

// The last rows are the last rows, however many files they lie in and however
// deep the trees of those are; of a damaged file they are those that can be read.
func TestTailOfOlderFiles(t *testing.T) {
	for _, per := range []int{1, 2, 17, 1000, 5000} {
		path := filepath.Join(t.TempDir(), "audit.db")
		f, err := store.OpenAudit(path, store.AuditOptions{})
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for range 3 { // files
			var rows [][]byte
			for n++; len(rows) < per; n++ {
				rows = append(rows, auditRow(n))
			}
			for part := range slices.Chunk(rows, 500) {
				if err := f.Append(part); err != nil {
					t.Fatal(err)
				}
			}
			if err := f.Rotate(auditRow(n)); err != nil {
				t.Fatal(err)
			}
		}
		for _, k := range []int{1, 2, 50, 116, 1001, per + 1, per + 2, 2*per + 5, 3*per + 3, 3*per + 50} {
			got, err := f.Tail(k)
			if want := min(k, n); err != nil || len(got) != want {
				t.Fatalf("%d of %d: %d rows, %v", k, n, len(got), err)
			}
			for i, row := range got {
				if want := auditRow(n - len(got) + 1 + i); string(row) != string(want) {
					t.Fatalf("%d of %d: row %d is %q", k, n, i, row)
				}
			}
		}
		if per == 1000 {
			tailOfDamaged(t, f, path, n)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// tailOfDamaged clears, one after the other, each page of the newest older file.
func tailOfDamaged(t *testing.T, f *store.AuditFile, path string, n int) {
	older, err := filepath.Glob(filepath.Join(filepath.Dir(path), "audit-*.db"))
	if err != nil || len(older) != 3 {
		t.Fatal(err, older)
	}
	whole, err := os.ReadFile(older[2])
	if err != nil {
		t.Fatal(err)
	}
	page := os.Getpagesize() // as bbolt does
	less := 0
	for at := 2 * page; at < len(whole); at += page {
		torn := slices.Clone(whole)
		clear(torn[at : at+page])
		if err := os.WriteFile(older[2], torn, 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := f.Tail(100)
		if err != nil || len(got) == 0 {
			t.Fatalf("page %d: %d rows, %v", at/page, len(got), err)
		}
		last := 0
		for i, row := range got {
			number := int(binary.BigEndian.Uint64(row))
			if string(row) != string(auditRow(number)) || number <= last {
				t.Fatalf("page %d: row %d is %q", at/page, i, row)
			}
			if last > 0 && number != last+1 {
				less++ // the gap where the page was
			}
			last = number
		}
		if last != n {
			t.Errorf("page %d: the last row is %d, not %d", at/page, last, n)
		}
	}
	if less == 0 {
		t.Error("no page of the last hundred rows was torn")
	}
	if err := os.WriteFile(older[2], whole, 0o600); err != nil {
		t.Fatal(err)
	}
}
