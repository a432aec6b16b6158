package store_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/store"
)

func TestChanges(t *testing.T) {
	path := newPath(t)
	s := mustOpen(t, path)
	if s.Revision() != 1 || s.Len() != 0 || s.Recovered() != "" || len(s.List()) != 0 {
		t.Fatalf("a new store: revision %d, %d wrappers, %q", s.Revision(), s.Len(), s.Recovered())
	}
	one, two := parse("one", "first"), parse("two.b", "second")
	if rev := must(t)(s.By(store.Human).Create(one)); rev != 2 {
		t.Errorf("revision %d after the first change, want 2", rev)
	}
	must(t)(s.By(store.Human).Create(two))
	newer := parse("one", "changed")
	if rev := must(t)(s.By(store.Human).Update(newer)); rev != 4 || s.Revision() != 4 {
		t.Errorf("revision %d, %d, want 4", rev, s.Revision())
	}

	check := func(s *store.Store, want map[string]string, rev uint64) {
		t.Helper()
		if diff := cmp.Diff(want, documents(s)); diff != "" {
			t.Errorf("documents (-want +got):\n%s", diff)
		}
		if s.Len() != len(want) || s.Damaged() != 0 || s.Revision() != rev {
			t.Errorf("Len %d, Damaged %d, Revision %d, want %d, 0, %d", s.Len(), s.Damaged(), s.Revision(), len(want), rev)
		}
	}
	want := map[string]string{"one": string(newer.Document()), "two.b": string(two.Document())}
	check(s, want, 4)
	mustClose(t, s)
	check(s, want, 4) // reading goes on from memory
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v, want 0600", info.Mode(), err)
	}

	s = mustOpen(t, path)
	check(s, want, 4)
	if rev := must(t)(s.Reload()); rev != 4 {
		t.Errorf("Reload gives revision %d, want 4", rev)
	}
	check(s, want, 4)
	if w, err := s.Get("two.b"); err != nil || string(w.Document()) != want["two.b"] {
		t.Errorf("Get: %v, %v", w, err)
	}
	if rev := must(t)(s.By(store.Human).Delete("two.b")); rev != 5 {
		t.Errorf("revision %d after a delete, want 5", rev)
	}
	delete(want, "two.b")
	check(s, want, 5)
	mustClose(t, s)
	check(mustOpen(t, path), want, 5)
	checkFile(t, path)
	if names, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*")); len(names) != 1 {
		t.Errorf("the folder holds %v, want only the store", names)
	}
}

func TestRefusals(t *testing.T) {
	s := mustOpen(t, newPath(t))
	for _, id := range []string{"weather", "weather.daily", "weather.hourly", "Orders.Create", "zebra"} {
		must(t)(s.By(store.Human).Create(parse(id, id)))
	}
	_, err := s.By(store.Human).Create(parse("zebra", "again"))
	mustFail(t, err, "WRAPPER_EXISTS", `"zebra" already`)
	_, err = s.By(store.Human).Create(parse("orders.create", "again"))
	mustFail(t, err, "WRAPPER_EXISTS", `"Orders.Create" already`, "case")
	_, err = s.By(store.Human).Update(parse("orders.create", "x"))
	mustFail(t, err, "WRAPPER_NOT_FOUND", `"orders.create"`, "near: Orders.Create")
	_, err = s.By(store.Human).Delete("ZEBRA")
	mustFail(t, err, "WRAPPER_NOT_FOUND", "near: zebra")
	_, err = s.Get("wether")
	mustFail(t, err, "WRAPPER_NOT_FOUND", `no wrapper has the id "wether"; near: weather`)
	_, err = s.Get("weather.")
	mustFail(t, err, "WRAPPER_NOT_FOUND", "near: weather, weather.daily, weather.hourly")
	_, err = s.Get("something else entirely")
	mustFail(t, err, "WRAPPER_NOT_FOUND")
	if strings.Contains(err.Error(), "near") {
		t.Errorf("%v names near ids where none is near", err)
	}
	for _, id := range []string{"", strings.Repeat("x", 100_000), "a\x00b", "\xff", "q"} {
		_, err = s.Get(id)
		mustFail(t, err, "WRAPPER_NOT_FOUND")
		_, err = s.By(store.Human).Delete(id)
		mustFail(t, err, "WRAPPER_NOT_FOUND")
	}
	if s.Revision() != 6 || s.Len() != 5 {
		t.Errorf("refused changes moved the revision to %d or the number to %d", s.Revision(), s.Len())
	}
	mustClose(t, s)
	_, err = s.By(store.Human).Create(parse("late", "x"))
	mustFail(t, err, "STORE_FAILED", "is closed")
	_, err = s.Reload()
	mustFail(t, err, "STORE_FAILED", "is closed")
	mustClose(t, s) // a second time
}

// Decision 14. The six digits are the start of SHA-256 of the id, by sha256sum.
func TestToolNames(t *testing.T) {
	path := newPath(t)
	s := mustOpen(t, path)
	tools := func(s *store.Store) map[string]string {
		m := map[string]string{}
		for _, e := range s.List() {
			m[e.ID] = e.Tool
		}
		return m
	}
	must(t)(s.By(store.Human).Create(parse("plain", "x")))
	must(t)(s.By(store.Human).Create(parse("a.b", "x", exposed)))
	must(t)(s.By(store.Human).Create(parse("a_b", "x", exposed)))   // the same base name
	must(t)(s.By(store.Human).Create(parse("A-B.C", "x", exposed))) // and two that differ in case only
	must(t)(s.By(store.Human).Create(parse("a-b_c", "x", exposed)))
	must(t)(s.By(store.Human).Create(parse("run", "x", exposed))) // a meta-tool
	want := map[string]string{
		"plain": "", "a.b": "wrap_a_b", "a_b": "wrap_a_b_648fa9",
		"A-B.C": "wrap_A-B_C", "a-b_c": "wrap_a-b_c_0b7808", "run": "wrap_run_acba25",
	}
	check := func(when string, s *store.Store) {
		t.Helper()
		if diff := cmp.Diff(want, tools(s)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	check("after creating", s)

	must(t)(s.By(store.Human).Update(parse("a.b", "y"))) // hidden: the name is kept
	must(t)(s.By(store.Human).Update(parse("plain", "y", exposed)))
	want["plain"] = "wrap_plain"
	check("after updating", s)
	mustClose(t, s)

	s = mustOpen(t, path)
	check("after opening again", s)
	must(t)(s.By(store.Human).Delete("a.b")) // frees the name, and renames nothing
	delete(want, "a.b")
	check("after deleting", s)
	must(t)(s.By(store.Human).Create(parse("a-b", "x", exposed)))
	must(t)(s.By(store.Human).Create(parse("A.b", "x", exposed)))
	want["a-b"], want["A.b"] = "wrap_a-b", "wrap_A_b"
	check("after creating in the freed place", s)
	must(t)(s.Reload())
	check("after reading again", s)
}

func TestMarkVerified(t *testing.T) {
	at := time.Date(2026, 11, 30, 12, 0, 0, 123_456_789, time.FixedZone("", 3600))
	kept := time.Date(2026, 11, 30, 11, 0, 0, 123_000_000, time.UTC)
	path := newPath(t)
	s := mustOpen(t, path)
	must(t)(s.By(store.Human).Create(parse("one", "x")))
	must(t)(s.By(store.Human).Create(parse("two", "x")))
	rev := s.Revision()
	verified := func(s *store.Store) map[string]time.Time {
		m := map[string]time.Time{}
		for _, e := range s.List() {
			m[e.ID] = e.Verified
		}
		return m
	}
	check := func(when string, s *store.Store, want map[string]time.Time) {
		t.Helper()
		if diff := cmp.Diff(want, verified(s)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	s.MarkVerified("one", at)
	s.MarkVerified("one", at.Add(-time.Hour)) // an earlier time changes nothing
	s.MarkVerified("nobody", at)
	want := map[string]time.Time{"one": kept, "two": {}}
	check("at once", s, want)
	must(t)(s.By(store.Human).Update(parse("one", "y")))
	check("after an update", s, want)
	must(t)(s.Reload())
	check("after reading again", s, want)
	mustClose(t, s)
	s = mustOpen(t, path)
	check("after closing and opening", s, want)
	if s.Revision() != rev+1 {
		t.Errorf("revision %d, want %d: noting a success is no change", s.Revision(), rev+1)
	}
	must(t)(s.By(store.Human).Delete("one"))
	must(t)(s.By(store.Human).Create(parse("one", "z")))
	check("after deleting and creating", s, map[string]time.Time{"one": {}, "two": {}})
}

// Decision 33: nothing is written for a minute, then all of it, once.
func TestMarkVerified_minute(t *testing.T) {
	path := newPath(t)
	synctest.Test(t, func(t *testing.T) {
		s, err := store.Open(path, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		must(t)(s.By(store.Human).Create(parse("one", "x")))
		must(t)(s.By(store.Human).Create(parse("two", "x")))
		size := func() string {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			return string(data)
		}
		before := size()
		for range 59 {
			s.MarkVerified("one", time.Now())
			s.MarkVerified("two", time.Now())
			time.Sleep(time.Second)
			synctest.Wait()
			if size() != before {
				t.Fatal("something was written within the minute")
			}
		}
		last := time.Now().Add(-time.Second)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		written := size()
		if written == before {
			t.Fatal("nothing was written after a minute")
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if size() != written {
			t.Error("something was written without a new success")
		}
		// What is on the disk now is what a crash would leave.
		crashed := filepath.Join(filepath.Dir(path), "crashed.db")
		if err := os.WriteFile(crashed, []byte(written), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		c, err := store.Open(crashed, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range c.List() {
			if !e.Verified.Equal(last) {
				t.Errorf("%s: verified %v on the disk, want %v", e.ID, e.Verified, last)
			}
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// Many readers, writers and marks at once; run with -race.
func TestConcurrent(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, newPath(t))
	var wg sync.WaitGroup
	for k := range 4 {
		wg.Go(func() {
			id := string(rune('a' + k))
			for i := range 20 {
				if _, err := s.By(store.Human).Create(parse(id, "x", exposed)); err != nil {
					t.Errorf("create: %v", err)
				}
				s.MarkVerified(id, time.Now().Add(time.Duration(i)*time.Second))
				if _, err := s.By(store.Human).Update(parse(id, "y")); err != nil {
					t.Errorf("update: %v", err)
				}
				if w, err := s.Get(id); err != nil || w.Name != "y" {
					t.Errorf("get after update: %v, %v", w, err)
				}
				if _, err := s.By(store.Human).Delete(id); err != nil {
					t.Errorf("delete: %v", err)
				}
			}
		})
		wg.Go(func() {
			for range 100 {
				for _, e := range s.List() {
					if e.Wrapper == nil || e.Wrapper.ID != e.ID {
						t.Errorf("entry %+v", e)
					}
				}
				_ = s.Revision()
			}
		})
		wg.Go(func() {
			for range 5 {
				if _, err := s.Reload(); err != nil {
					t.Errorf("reload: %v", err)
				}
			}
		})
	}
	wg.Wait()
	if s.Len() != 0 || s.Revision() != 1+4*20*3 {
		t.Errorf("%d wrappers at revision %d, want 0 at 241", s.Len(), s.Revision())
	}
}

// Thousands of changes of all sizes, from an empty store to a large one and
// back: what bbolt writes is never taken for damage.
func TestChurn(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	r := rand.New(rand.NewPCG(3, 4))
	want := map[string]string{}
	s := mustOpen(t, path)
	for i := range 3000 {
		id := fmt.Sprintf("id.%d", r.IntN(400))
		if r.IntN(20) == 0 {
			id += strings.Repeat("x", r.IntN(90))
		}
		description := fmt.Sprintf(`,"description":%q`, strings.Repeat("d", r.IntN(2000)>>r.IntN(8)))
		_, have := want[id]
		grow := i/600%2 == 0
		switch {
		case !have && (grow || r.IntN(10) == 0):
			w := parse(id, "new", description, exposed)
			must(t)(s.By(store.Human).Create(w))
			want[id] = string(w.Document())
		case have && !grow && r.IntN(10) > 0:
			must(t)(s.By(store.Human).Delete(id))
			delete(want, id)
		case have:
			w := parse(id, "changed", description)
			must(t)(s.By(store.Human).Update(w))
			want[id] = string(w.Document())
		}
		if i%200 == 199 {
			mustClose(t, s)
			checkFile(t, path)
			s = mustOpen(t, path)
			if diff := cmp.Diff(want, documents(s)); diff != "" || s.Recovered() != "" {
				t.Fatalf("after %d changes: %q (-want +got):\n%s", i+1, s.Recovered(), diff)
			}
		}
	}
	if len(want) == 0 {
		t.Error("the churn left nothing to compare")
	}
}
