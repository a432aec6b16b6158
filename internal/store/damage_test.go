package store_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/store"
)

// D43: one damaged record among fifty hurts nobody else, can be replaced and
// can be removed, and the file stays in use.
func TestOneDamagedRecord(t *testing.T) {
	path := newPath(t)
	docs := fill(t, path, 50)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// A byte in the middle of the last saved version of one document.
	at := stored(t, data, "wrapper.023", docs["wrapper.023"]) + 20
	data[at+5] ^= 0x20
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}

	check := func(s *store.Store) {
		t.Helper()
		want := maps.Clone(docs)
		want["wrapper.023"] = ""
		if diff := cmp.Diff(want, documents(s)); diff != "" {
			t.Errorf("documents (-want +got):\n%s", diff)
		}
		if s.Len() != 50 || s.Damaged() != 1 || s.Recovered() != "" {
			t.Errorf("Len %d, Damaged %d, Recovered %q, want 50, 1 and nothing", s.Len(), s.Damaged(), s.Recovered())
		}
		for _, e := range s.List() {
			w, err := s.Get(e.ID)
			if e.ID == "wrapper.023" {
				if e.Damaged != "its record is damaged: its checksum does not match" {
					t.Errorf("damage is told as %q", e.Damaged)
				}
				mustFail(t, err, "WRAPPER_UNREADABLE", `"wrapper.023"`, "checksum")
			} else if err != nil || w.ID != e.ID || e.Damaged != "" {
				t.Errorf("%s: %v, %v, %q", e.ID, w, err, e.Damaged)
			}
		}
	}
	s := mustOpen(t, path)
	check(s)
	// The others are changed around it, and it stays what it is.
	must(t)(s.By(store.Human).Update(parse("wrapper.022", "new")))
	must(t)(s.By(store.Human).Delete("wrapper.024"))
	docs["wrapper.022"] = string(parse("wrapper.022", "new").Document())
	delete(docs, "wrapper.024")
	must(t)(s.By(store.Human).Create(parse("wrapper.924", "new")))
	docs["wrapper.924"] = string(parse("wrapper.924", "new").Document())
	check(s)
	_, err = s.By(store.Human).Create(parse("wrapper.023", "x"))
	mustFail(t, err, "WRAPPER_EXISTS", "wrapper.023")
	mustClose(t, s)

	s = mustOpen(t, path)
	check(s)
	must(t)(s.Reload())
	check(s)
	must(t)(s.By(store.Human).Update(parse("wrapper.023", "repaired")))
	if w, err := s.Get("wrapper.023"); err != nil || w.Name != "repaired" {
		t.Errorf("after an update: %v, %v", w, err)
	}
	must(t)(s.By(store.Human).Delete("wrapper.023"))
	mustClose(t, s)
	if s = mustOpen(t, path); s.Len() != 49 || s.Damaged() != 0 {
		t.Errorf("Len %d, Damaged %d after removing the damaged one", s.Len(), s.Damaged())
	}
	checkFile(t, path)
}

// D21: a file cut to half. The daemon starts, the file is kept, and it is said.
// How much is left depends on where bbolt put the pages that say where
// everything is.
func TestCutToHalf(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	docs := fill(t, path, 300)
	whole := inUse(t, path)
	overwrite(t, path, whole[:len(whole)/2])
	now := time.Date(2026, 11, 30, 21, 45, 12, 0, time.UTC)
	s, err := store.Open(path, store.Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	kept := path + ".damaged-20261130T214512Z"
	pages := len(whole) / os.Getpagesize()
	says := fmt.Sprintf("%s was damaged (%d of %d pages are missing at the end); it was kept as %s, and a new one was made",
		path, pages-pages/2, pages, kept)
	if !strings.HasPrefix(s.Recovered(), says) {
		t.Errorf("Recovered() is %q, want %q", s.Recovered(), says)
	}
	if data, err := os.ReadFile(kept); err != nil || !bytes.Equal(data, whole[:len(whole)/2]) {
		t.Errorf("the damaged file was not kept as it was: %v", err)
	}
	for id, doc := range documents(s) {
		if doc != "" && doc != docs[id] {
			t.Errorf("%s differs", id)
		}
	}
	if s.Revision() <= 301 {
		t.Errorf("revision %d is not beyond the 301 of the damaged file", s.Revision())
	}
	must(t)(s.By(store.Human).Create(parse("another", "x")))
	n := s.Len()
	mustClose(t, s)
	checkFile(t, path)
	if s = mustOpen(t, path); s.Len() != n || s.Recovered() != "" {
		t.Errorf("the next start: %d wrappers, want %d, and %q", s.Len(), n, s.Recovered())
	}
}

// One page of documents is zeroed: its wrappers are lost and listed, the others
// are taken over as they were.
func TestLostPage(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	docs := fill(t, path, 300)
	data := inUse(t, path)
	size := os.Getpagesize()
	at := stored(t, data, "wrapper.123", docs["wrapper.123"]) / size * size
	clear(data[at : at+size])
	overwrite(t, path, data)

	s := mustOpen(t, path)
	got := documents(s)
	good := 0
	for id, doc := range docs {
		switch have, listed := got[id]; {
		case !listed:
			t.Errorf("%s is not listed", id)
		case have == doc:
			good++
		case have != "":
			t.Errorf("%s differs", id)
		}
	}
	t.Log(s.Recovered())
	says := fmt.Sprintf("a new one was made with %d of 300 wrappers; not readable: wrapper.", good)
	if len(got) != 300 || got["wrapper.123"] != "" || good < 250 || s.Damaged() != 300-good || !strings.Contains(s.Recovered(), says) {
		t.Errorf("%d listed, %d readable, %d damaged, %q", len(got), good, s.Damaged(), s.Recovered())
	}
	// And it works on: lost ones can be saved again, or removed.
	for id, doc := range got {
		if doc == "" {
			_, err := s.Get(id)
			mustFail(t, err, "WRAPPER_UNREADABLE", "was lost when store.db was damaged")
			must(t)(s.By(store.Human).Update(parse(id, "again")))
			must(t)(s.By(store.Human).Delete(id))
		}
	}
	mustClose(t, s)
	checkFile(t, path)
	if s = mustOpen(t, path); s.Len() != good || s.Damaged() != 0 || s.Recovered() != "" || s.Revision() <= 301 {
		t.Errorf("the next start: Len %d, Damaged %d, Recovered %q, revision %d", s.Len(), s.Damaged(), s.Recovered(), s.Revision())
	}
}

func overwrite(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Files that are no store at all.
func TestGarbage(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 100_000)
	for i := range noise {
		noise[i] = byte(r.Uint32())
	}
	for name, content := range map[string][]byte{
		"empty": {}, "one byte": {0}, "text": []byte("not a database\n"), "zeros": make([]byte, 1<<16), "noise": noise,
	} {
		path := newPath(t)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		s := mustOpen(t, path)
		if s.Len() != 0 || !strings.Contains(s.Recovered(), "empty: no wrapper could be read") {
			t.Errorf("%s: %d wrappers, %q", name, s.Len(), s.Recovered())
		}
		kept, _ := filepath.Glob(path + ".damaged-*")
		if len(kept) != 1 {
			t.Errorf("%s: kept %v", name, kept)
		} else if data, _ := os.ReadFile(kept[0]); !bytes.Equal(data, content) {
			t.Errorf("%s: kept with another content", name)
		}
		must(t)(s.By(store.Human).Create(parse("one", "x")))
		mustClose(t, s)
		checkFile(t, path)
	}
}

// Every damage within one second gets its own name.
func TestDamagedTwice(t *testing.T) {
	path := newPath(t)
	now := func() time.Time { return time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC) }
	for _, want := range []string{"", "-2", "-3"} {
		if err := os.WriteFile(path, []byte("damaged"+want), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := store.Open(path, store.Options{Now: now})
		if err != nil {
			t.Fatal(err)
		}
		mustClose(t, s)
		if data, err := os.ReadFile(path + ".damaged-20261130T000000Z" + want); err != nil || string(data) != "damaged"+want {
			t.Errorf("%q: %q, %v", want, data, err)
		}
	}
}

// A later layout of the whole file is refused and not touched; a later record
// is one wrapper that is listed, kept and not overwritten.
func TestNewer(t *testing.T) {
	path := newPath(t)
	fill(t, path, 3)
	store.RewriteRecord(t, path, "state", "format", 1, []byte{2})
	before, _ := os.ReadFile(path)
	_, err := store.Open(path, store.Options{})
	mustFail(t, err, "STORE_FAILED", "was written by a newer hbrestd", "left as it is")
	if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
		t.Error("a file of a newer version was changed")
	}

	path = newPath(t)
	fill(t, path, 3)
	store.RewriteRecord(t, path, "wrappers", "wrapper.001", 2, []byte("what is to come"))
	s := mustOpen(t, path)
	if s.Len() != 3 || s.Damaged() != 1 || s.Recovered() != "" {
		t.Errorf("Len %d, Damaged %d, Recovered %q", s.Len(), s.Damaged(), s.Recovered())
	}
	_, err = s.Get("wrapper.001")
	mustFail(t, err, "WRAPPER_UNREADABLE", "written by a newer hbrestd (format 2, this one knows 1)")
	_, err = s.By(store.Human).Update(parse("wrapper.001", "old"))
	mustFail(t, err, "WRAPPER_UNREADABLE", "written by a newer hbrestd")
	must(t)(s.By(store.Human).Update(parse("wrapper.000", "x")))
	if data, _ := os.ReadFile(path); !bytes.Contains(data, []byte("what is to come")) {
		t.Error("a record of a newer version was overwritten")
	}
	must(t)(s.By(store.Human).Delete("wrapper.001"))
	mustClose(t, s)
	if s = mustOpen(t, path); s.Len() != 2 || s.Damaged() != 0 {
		t.Errorf("Len %d, Damaged %d after the delete", s.Len(), s.Damaged())
	}
}

// A whole record with a document that this version refuses is damaged, and only it.
func TestRefusedDocument(t *testing.T) {
	path := newPath(t)
	fill(t, path, 3)
	for id, c := range map[string]struct{ doc, says string }{
		"wrapper.000": {`{"id":"wrapper.000"}`, "no longer valid"},
		"wrapper.001": {`nonsense`, "no longer valid"},
		"wrapper.002": {string(parse("another", "x").Document()), `has the id "another"`},
	} {
		store.RewriteRecord(t, path, "wrappers", id, 1, []byte(c.doc))
		s := mustOpen(t, path)
		_, err := s.Get(id)
		mustFail(t, err, "WRAPPER_UNREADABLE", c.says)
		mustClose(t, s)
	}
}

// Promise 13: one flipped bit anywhere, 200 times: the store opens, and every
// wrapper is the one that was saved, or is listed as damaged, or the file was
// set aside and it is said.
func TestBitFlips(t *testing.T) {
	t.Parallel()
	damageMany(t, 200, func(r *rand.Rand, data []byte) []byte {
		// Half of them where structure is densest: the first pages and the heads.
		at := r.IntN(len(data))
		if r.IntN(2) == 0 {
			at = r.IntN(len(data)/os.Getpagesize())*os.Getpagesize() + r.IntN(256)
		}
		data[at] ^= 1 << r.IntN(8)
		return data
	})
}

func TestCuts(t *testing.T) {
	t.Parallel()
	damageMany(t, 100, func(r *rand.Rand, data []byte) []byte { return data[:r.IntN(len(data))] })
}

func TestZeroedPages(t *testing.T) {
	t.Parallel()
	damageMany(t, 60, func(r *rand.Rand, data []byte) []byte {
		p := r.IntN(len(data)/os.Getpagesize()) * os.Getpagesize()
		clear(data[p : p+os.Getpagesize()])
		return data
	})
}

// Old pages in new places: what a disk that loses writes leaves behind.
func TestSwappedPages(t *testing.T) {
	t.Parallel()
	damageMany(t, 60, func(r *rand.Rand, data []byte) []byte {
		size := os.Getpagesize()
		a, b := r.IntN(len(data)/size)*size, r.IntN(len(data)/size)*size
		copy(data[a:a+size], data[b:b+size])
		if r.IntN(2) == 0 { // with the right number on it, so that only the content is wrong
			binary.NativeEndian.PutUint64(data[a:], uint64(a/size))
		}
		return data
	})
}

// inUse is the file without the pages at its end that were never written.
func inUse(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	used := len(bytes.TrimRight(data, "\x00"))
	size := os.Getpagesize()
	return data[:(used+size-1)/size*size]
}

func damageMany(t *testing.T, rounds int, damage func(*rand.Rand, []byte) []byte) {
	path := newPath(t)
	docs := fill(t, path, 120)
	s := mustOpen(t, path)
	for i := range 40 { // some history: old versions and deleted ones lie about in free pages
		id := fmt.Sprintf("wrapper.%03d", i*3)
		w := parse(id, strings.Repeat("changed ", i%20), exposed)
		must(t)(s.By(store.Human).Update(w))
		docs[id] = string(w.Document())
		id = fmt.Sprintf("wrapper.%03d", i*3+1)
		must(t)(s.By(store.Human).Delete(id))
		delete(docs, id)
	}
	mustClose(t, s)
	clean := inUse(t, path)
	tools := map[string]string{}
	for _, e := range s.List() {
		tools[e.ID] = e.Tool
	}

	outcome := map[string]int{}
	for i := range rounds {
		r := rand.New(rand.NewPCG(uint64(i), 7))
		dir := t.TempDir()
		p := filepath.Join(dir, "store.db")
		if err := os.WriteFile(p, damage(r, bytes.Clone(clean)), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := store.Open(p, store.Options{})
		if err != nil {
			t.Errorf("round %d: open: %v", i, err)
			continue
		}
		lost := 0
		got := documents(s)
		rolledBack := strings.Contains(s.Recovered(), "changes made last before the damage may be missing")
		for id, doc := range docs {
			have, listed := got[id]
			switch {
			case listed && have == doc:
			case listed && have == "":
				lost++
			case s.Recovered() == "":
				t.Errorf("round %d: %s is missing or differs, and nothing was said", i, id)
			case listed && !rolledBack:
				t.Errorf("round %d: %s differs after %q", i, id, s.Recovered())
			default:
				lost++
			}
		}
		for id, doc := range got {
			if docs[id] == "" && doc != "" && !rolledBack {
				t.Errorf("round %d: the deleted %s came back", i, id)
			}
		}
		for _, e := range s.List() {
			if e.Wrapper != nil && tools[e.ID] != e.Tool && !rolledBack {
				t.Errorf("round %d: the tool of %s is now %q", i, e.ID, e.Tool)
			}
		}
		switch {
		case rolledBack:
			outcome["set aside, last change lost"]++
		case s.Recovered() != "" && lost > 0:
			outcome["set aside, some lost"]++
		case s.Recovered() != "":
			outcome["set aside, all taken over"]++
		case lost > 0:
			outcome["some listed as damaged"]++
		default:
			outcome["no harm"]++
		}
		// It works on, and stays whole, and is not damaged again at the next start.
		must(t)(s.By(store.Human).Create(parse("after.damage", "x")))
		if _, ok := got["wrapper.002"]; ok {
			must(t)(s.By(store.Human).Delete("wrapper.002"))
		}
		before := documents(s)
		mustClose(t, s)
		checkFile(t, p)
		again := mustOpen(t, p)
		if diff := cmp.Diff(before, documents(again)); diff != "" || again.Recovered() != "" {
			t.Errorf("round %d: the next start: %q (-want +got):\n%s", i, again.Recovered(), diff)
		}
		mustClose(t, again)
		if t.Failed() {
			t.Fatalf("round %d failed; Recovered: %q", i, s.Recovered())
		}
		_ = os.RemoveAll(dir)
	}
	for _, k := range slices.Sorted(maps.Keys(outcome)) {
		t.Logf("%4d of %d: %s", outcome[k], rounds, k)
	}
}
