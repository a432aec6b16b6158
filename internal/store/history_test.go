package store_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/store"
	"github.com/hyperbolic-gateway/hb-rest/internal/wrapper"
)

// A clock that a test sets.
type clock struct{ now time.Time }

func newClock() *clock { return &clock{time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC)} }

func (c *clock) after(d time.Duration) time.Time {
	c.now = c.now.Add(d)
	return c.now
}

func (c *clock) open(t *testing.T, path string) *store.Store {
	t.Helper()
	s, err := store.Open(path, store.Options{Now: func() time.Time { return c.now }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func history(t *testing.T, s *store.Store, id string) []store.Version {
	t.Helper()
	vs, err := s.History(id)
	if err != nil {
		t.Fatal(err)
	}
	return vs
}

func doc(id, note string, more ...string) []byte { return parse(id, note, more...).Document() }

func checkHistory(t *testing.T, s *store.Store, id string, want []store.Version) {
	t.Helper()
	if diff := cmp.Diff(want, history(t, s, id)); diff != "" {
		t.Errorf("versions of %s (-want +got):\n%s", id, diff)
	}
}

// Each kind of change makes one version with its author and time; they outlive
// the daemon, a removal, and a wrapper that comes back.
func TestHistory(t *testing.T) {
	t.Parallel()
	path, c := newPath(t), newClock()
	s := c.open(t, path)
	start := c.now
	must(t)(s.By(store.Human).Create(parse("a", "one")))
	must(t)(s.By(store.Agent).Update(parse("a", "two")))
	second := c.after(time.Hour)
	must(t)(s.By(store.Human).SetExposure("a", true, nil))
	must(t)(s.By(store.Human).SetExposure("a", true, new(int))) // the same
	must(t)(s.By(store.Agent).Update(parse("a", "two", exposed)))
	if _, _, err := s.By(store.Agent).Apply([]*wrapper.Wrapper{parse("a", "two", exposed), parse("b", "b")}, false); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.By(store.Agent).Apply([]*wrapper.Wrapper{parse("a", "not saved")}, true); err != nil {
		t.Fatal(err)
	}
	third := c.after(time.Hour)
	must(t)(s.By(store.Agent).Delete("a"))
	want := []store.Version{
		{Number: 1, Time: start, Author: store.Human, Doc: doc("a", "one")},
		{Number: 2, Time: start, Author: store.Agent, Doc: doc("a", "two")},
		{Number: 3, Time: second, Author: store.Human, Doc: doc("a", "two", exposed)},
		{Number: 4, Time: third, Author: store.Agent},
	}
	b := []store.Version{{Number: 1, Time: second, Author: store.Agent, Doc: doc("b", "b"), Current: true}}
	for range 2 {
		checkHistory(t, s, "a", want)
		checkHistory(t, s, "b", b)
		gone := []store.RemovedWrapper{{ID: "a", Time: third, Until: third.Add(30 * 24 * time.Hour)}}
		if diff := cmp.Diff(gone, s.RemovedWrappers()); diff != "" {
			t.Errorf("removed (-want +got):\n%s", diff)
		}
		mustClose(t, s)
		checkFile(t, path)
		s = c.open(t, path)
	}
	// It comes back, under another author, and goes on counting.
	fourth := c.after(time.Hour)
	must(t)(s.By(store.Human).Create(parse("a", "back")))
	checkHistory(t, s, "a", append(want, store.Version{Number: 5, Time: fourth, Author: store.Human, Doc: doc("a", "back"), Current: true}))
	if got := s.RemovedWrappers(); got != nil {
		t.Errorf("removed: %v", got)
	}
	if v, err := s.VersionOf("a", 2); err != nil || !bytes.Equal(v.Doc, doc("a", "two")) || v.Removed() {
		t.Errorf("version 2: %v, %v", v, err)
	}
	if v, err := s.VersionOf("a", 4); err != nil || !v.Removed() {
		t.Errorf("version 4: %v, %v", v, err)
	}
	for _, n := range []uint64{0, 6, 1 << 63} {
		_, err := s.VersionOf("a", n)
		mustFail(t, err, "VERSION_NOT_FOUND", "1 to 5")
	}
	_, err := s.History("c")
	mustFail(t, err, "WRAPPER_NOT_FOUND", `"c"`)
	_, err = s.VersionOf("A", 1) // another id
	mustFail(t, err, "WRAPPER_NOT_FOUND", `"A"`)
}

// Twenty versions are kept, and the newest by a person also when an agent has
// made twenty since.
func TestHistoryKeepsTwenty(t *testing.T) {
	t.Parallel()
	c := newClock()
	s := c.open(t, newPath(t))
	numbers := func(id string) string {
		var out []string
		for _, v := range history(t, s, id) {
			out = append(out, fmt.Sprint(v.Number))
		}
		return strings.Join(out, " ")
	}
	save := func(id string, by store.Author, n int) {
		t.Helper()
		for i := range n {
			if _, _, err := s.By(by).Apply([]*wrapper.Wrapper{parse(id, fmt.Sprint(by, i))}, false); err != nil {
				t.Fatal(err)
			}
		}
	}
	save("a", store.Human, 20)
	if got, want := numbers("a"), "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20"; got != want {
		t.Errorf("after 20: %s", got)
	}
	must(t)(s.By(store.Human).Update(parse("a", "21st")))
	if got, want := numbers("a"), "2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21"; got != want {
		t.Errorf("after 21: %s", got)
	}
	must(t)(s.By(store.Human).Delete("a"))
	if got, want := numbers("a"), "3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22"; got != want {
		t.Errorf("after a removal: %s", got)
	}
	save("b", store.Human, 2)
	save("b", store.Agent, 25)
	if got, want := numbers("b"), "2 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27"; got != want {
		t.Errorf("an agent's 25: %s", got)
	}
	save("c", store.Agent, 30) // nothing by a person
	if got, want := numbers("c"), "11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30"; got != want {
		t.Errorf("only an agent's: %s", got)
	}
}

// The versions of a removed wrapper are kept for 30 days, and go from the file
// with the next change after that.
func TestHistoryOfRemovedEnds(t *testing.T) {
	t.Parallel()
	path, c := newPath(t), newClock()
	s := c.open(t, path)
	must(t)(s.By(store.Human).Create(parse("a", "only here")))
	must(t)(s.By(store.Human).Create(parse("other", "x")))
	must(t)(s.By(store.Human).Delete("a"))
	c.after(store.KeepRemoved - time.Millisecond)
	if n := len(history(t, s, "a")); n != 2 {
		t.Errorf("%d versions right before the end", n)
	}
	must(t)(s.By(store.Human).Update(parse("other", "y"))) // takes nothing
	if len(s.RemovedWrappers()) != 1 {
		t.Errorf("removed: %v", s.RemovedWrappers())
	}
	c.after(time.Millisecond)
	_, err := s.History("a")
	mustFail(t, err, "WRAPPER_NOT_FOUND")
	if got := s.RemovedWrappers(); got != nil {
		t.Errorf("removed: %v", got)
	}
	must(t)(s.By(store.Human).Update(parse("other", "z")))
	must(t)(s.By(store.Human).Create(parse("a", "new"))) // starts anew
	checkHistory(t, s, "a", []store.Version{{Number: 1, Time: c.now, Author: store.Human, Doc: doc("a", "new"), Current: true}})
	if n := len(history(t, s, "other")); n != 4-1 {
		t.Errorf("the other has %d versions, want 3", n)
	}
	mustClose(t, s)
	checkFile(t, path)
}

// Removed wrappers are bounded in number too: the one removed first goes.
func TestHistoryOfRemovedIsBounded(t *testing.T) {
	t.Parallel()
	path, c := newPath(t), newClock()
	var ws []*wrapper.Wrapper
	for i := range store.MaxRemoved + 1 {
		ws = append(ws, parse(fmt.Sprintf("w.%04d", i), "x"))
	}
	s := c.open(t, path)
	if _, _, err := s.By(store.Agent).Apply(ws[:store.MaxApply], false); err != nil {
		t.Fatal(err)
	}
	must(t)(s.By(store.Agent).Create(ws[store.MaxApply]))
	store.Unsynced(t, s)
	for _, w := range ws {
		c.after(time.Second)
		must(t)(s.By(store.Agent).Delete(w.ID))
		if w.ID == "w.0999" {
			history(t, s, "w.0000")
		}
	}
	_, err := s.History("w.0000")
	mustFail(t, err, "WRAPPER_NOT_FOUND")
	if n, got := len(history(t, s, "w.0001")), s.RemovedWrappers(); n != 2 || len(got) != store.MaxRemoved || got[0].ID != "w.1000" {
		t.Errorf("%d versions; %d removed, the last one %s", n, len(got), got[0].ID)
	}
}

// A file from before there were versions opens as it is. The first change keeps
// what was stored as well.
func TestHistoryOfAnOlderFile(t *testing.T) {
	t.Parallel()
	path, c := newPath(t), newClock()
	store.Build(t, path, []*wrapper.Wrapper{parse("a", "old"), parse("b", "old"), parse("c", "old")})
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s := c.open(t, path)
	old := func(id string, current bool) store.Version {
		return store.Version{Number: 1, Doc: doc(id, "old"), Current: current}
	}
	checkHistory(t, s, "a", []store.Version{old("a", true)})
	mustClose(t, s)
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
		t.Errorf("opening and looking changed the file: %v", err)
	}
	s = c.open(t, path)
	must(t)(s.By(store.Agent).Update(parse("a", "new")))
	must(t)(s.By(store.Agent).Delete("b"))
	must(t)(s.By(store.Agent).Update(parse("c", "old")))
	checkHistory(t, s, "a", []store.Version{old("a", false), {Number: 2, Time: c.now, Author: store.Agent, Doc: doc("a", "new"), Current: true}})
	checkHistory(t, s, "b", []store.Version{old("b", false), {Number: 2, Time: c.now, Author: store.Agent}})
	checkHistory(t, s, "c", []store.Version{old("c", true)})
}

// One damaged version is one named error. The wrapper, its other versions and
// changes go on, and its number stays taken.
func TestHistoryDamaged(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		damaged uint64
	}{{"in the middle", 2}, {"the last", 3}} {
		t.Run(tc.name, func(t *testing.T) {
			path, c := newPath(t), newClock()
			s := c.open(t, path)
			for i := range 3 {
				if _, _, err := s.By(store.Human).Apply([]*wrapper.Wrapper{parse("a", fmt.Sprint("note", i+1))}, false); err != nil {
					t.Fatal(err)
				}
			}
			mustClose(t, s)
			store.BreakRecord(t, path, "history", fmt.Sprintf("a %010d", tc.damaged))
			s = c.open(t, path)
			if s.Recovered() != "" || s.Damaged() != 0 || s.Unreadable() != nil {
				t.Errorf("Recovered %q, Damaged %d, Unreadable %q", s.Recovered(), s.Damaged(), s.Unreadable())
			}
			_, err := s.VersionOf("a", tc.damaged)
			mustFail(t, err, "VERSION_UNREADABLE", fmt.Sprintf(`version %d of wrapper "a" cannot be read: its checksum does not match`, tc.damaged))
			want := []store.Version{
				{Number: 1, Time: c.now, Author: store.Human, Doc: doc("a", "note1")},
				{Number: 2, Time: c.now, Author: store.Human, Doc: doc("a", "note2")},
				{Number: 3, Time: c.now, Author: store.Human, Doc: doc("a", "note3")},
			}
			want[tc.damaged-1] = store.Version{Number: tc.damaged, Damaged: "its checksum does not match"}
			next := uint64(4)
			if tc.damaged == 3 { // what is stored is kept again
				want = append(want, store.Version{Number: 4, Doc: doc("a", "note3")})
				next = 5
			}
			want[len(want)-1].Current = true
			checkHistory(t, s, "a", want)
			must(t)(s.By(store.Agent).Update(parse("a", "after")))
			want[len(want)-1].Current = false
			checkHistory(t, s, "a", append(want, store.Version{Number: next, Time: c.now, Author: store.Agent, Doc: doc("a", "after"), Current: true}))
		})
	}
}

// When a damaged file is replaced, versions are taken over, those of removed
// wrappers too.
func TestHistorySurvivesRecovery(t *testing.T) {
	t.Parallel()
	path, c := newPath(t), newClock()
	s := c.open(t, path)
	must(t)(s.By(store.Human).Create(parse("a", "one")))
	must(t)(s.By(store.Agent).Update(parse("a", "two")))
	must(t)(s.By(store.Human).Create(parse("gone", "x")))
	must(t)(s.By(store.Human).Delete("gone"))
	a, gone := history(t, s, "a"), history(t, s, "gone")
	mustClose(t, s)
	store.DeleteRecord(t, path, "wrappers", "a") // the names bucket still has it
	s = c.open(t, path)
	if s.Recovered() == "" || s.Damaged() != 1 {
		t.Fatalf("Recovered %q, Damaged %d", s.Recovered(), s.Damaged())
	}
	a[1].Current = false
	checkHistory(t, s, "a", a)
	checkHistory(t, s, "gone", gone)
	// The lost document is one change away.
	if _, _, err := s.By(store.Human).Apply([]*wrapper.Wrapper{parse("a", "two")}, false); err != nil {
		t.Fatal(err)
	}
	a[1].Current = true
	checkHistory(t, s, "a", a)
}

// A change that was made from another document than the one that is stored is
// refused.
func TestApplySeen(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, newPath(t))
	first := parse("a", "one")
	must(t)(s.By(store.Human).Create(first))
	seen := map[string][32]byte{"a": first.Digest()}
	apply := func(note string, dry bool) error {
		_, _, err := s.By(store.Human).ApplySeen([]*wrapper.Wrapper{parse("a", note)}, seen, dry)
		return err
	}
	if err := apply("two", true); err != nil {
		t.Error(err)
	}
	if err := apply("two", false); err != nil {
		t.Error(err)
	}
	mustFail(t, apply("three", true), "WRAPPER_CHANGED", `"a" was changed`)
	mustFail(t, apply("three", false), "WRAPPER_CHANGED", `"a" was changed`)
	must(t)(s.By(store.Agent).Delete("a"))
	mustFail(t, apply("three", false), "WRAPPER_CHANGED", `"a" was removed`)
	if s.Len() != 0 {
		t.Error("a refused change saved something")
	}
}

// A closed store says so.
func TestHistoryClosed(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, newPath(t))
	must(t)(s.By(store.Human).Create(parse("a", "one")))
	mustClose(t, s)
	_, err := s.History("a")
	mustFail(t, err, "STORE_FAILED", "closed")
}
