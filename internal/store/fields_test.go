package store_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/store"
)

// Notes of fields are there at once and after a restart, and go with the
// document that they are about.
func TestNoteFields(t *testing.T) {
	path := newPath(t)
	s := mustOpen(t, path)
	must(t)(s.By(store.Human).Create(parse("one", "x")))
	must(t)(s.By(store.Human).Create(parse("two", "x")))
	rev := s.Revision()
	one, err := s.Get("one")
	if err != nil {
		t.Fatal(err)
	}
	notes := []store.FieldNote{
		{Label: "Price", Filled: true, Empty: 3, Since: time.Date(2026, 11, 30, 12, 0, 0, 123_000_000, time.UTC)},
		{Label: "Größe | x", Filled: true},
	}
	set := func([]store.FieldNote) ([]store.FieldNote, bool) { return notes, true }
	check := func(when string, s *store.Store, want []store.FieldNote) {
		t.Helper()
		list := s.List()
		if diff := cmp.Diff(want, list[0].Fields); diff != "" || list[1].Fields != nil {
			t.Errorf("%s (-want +got):\n%s%v", when, diff, list[1].Fields)
		}
	}
	s.NoteFields(one, set)
	check("at once", s, notes)
	must(t)(s.Reload())
	check("after reading again, unwritten", s, notes)
	s.NoteFields(one, func(old []store.FieldNote) ([]store.FieldNote, bool) {
		if diff := cmp.Diff(notes, old); diff != "" {
			t.Error(diff)
		}
		old[0].Label = "changed" // its own slice
		return old, false
	})
	check("left alone", s, notes)
	mustClose(t, s)
	s = mustOpen(t, path)
	check("after closing and opening", s, notes)
	if s.Revision() != rev {
		t.Errorf("revision %d, want %d: a note is no change", s.Revision(), rev)
	}
	must(t)(s.By(store.Human).Update(parse("one", "y")))
	check("after an update", s, nil)
	s.NoteFields(one, set) // a run of the old document that ended late
	check("noted of the old document", s, nil)
	mustClose(t, s)
	s = mustOpen(t, path)
	check("after an update, closing and opening", s, nil)

	one, err = s.Get("one")
	if err != nil {
		t.Fatal(err)
	}
	s.NoteFields(one, set)
	must(t)(s.By(store.Human).Delete("one"))
	s.NoteFields(one, set)
	must(t)(s.By(store.Human).Create(parse("one", "z")))
	check("after deleting and creating", s, nil)
	one, err = s.Get("one")
	if err != nil {
		t.Fatal(err)
	}
	s.NoteFields(one, set)
	s.NoteFields(one, func([]store.FieldNote) ([]store.FieldNote, bool) { return nil, true })
	mustClose(t, s)
	s = mustOpen(t, path)
	check("taken back", s, nil)
}
