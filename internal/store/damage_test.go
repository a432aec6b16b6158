package store_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/soak"
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

// Promise 13: one flipped bit anywhere, 1,000 times in a long run: the store
// opens, and everything is what was saved, or is told to be damaged, or the file
// was set aside and it is said what may be missing.
func TestBitFlips(t *testing.T) {
	t.Parallel()
	damageMany(t, "flipped bits", soak.Rounds(30, 1000), func(r *rand.Rand, data []byte) []byte {
		// A third of them where structure is densest, the heads of the pages; a
		// third in the pages that name the buckets and hold the small ones.
		at := r.IntN(len(data))
		switch size := os.Getpagesize(); r.IntN(3) {
		case 0:
			at = r.IntN(len(data)/size)*size + r.IntN(64)
		case 1:
			if roots := pagesWith(data, "wrappers", "settings"); len(roots) > 0 {
				at = roots[r.IntN(len(roots))] + r.IntN(size)
			}
		}
		data[at] ^= 1 << r.IntN(8)
		return data
	})
}

// pagesWith is where the pages are that have all of the words.
func pagesWith(data []byte, words ...string) (at []int) {
	size := os.Getpagesize()
	for p := 0; p+size <= len(data); p += size {
		if !slices.ContainsFunc(words, func(w string) bool { return !bytes.Contains(data[p:p+size], []byte(w)) }) {
			at = append(at, p)
		}
	}
	return at
}

// smallStore has three of everything, all of it in one page, but for the versions.
func smallStore(t *testing.T) (data []byte, want facts) {
	t.Helper()
	path := newPath(t)
	s, err := store.Open(path, scriptOptions)
	if err != nil {
		t.Fatal(err)
	}
	store.Unsynced(t, s)
	for i := range 3 {
		id := fmt.Sprintf("w%02d", i)
		must(t)(s.By(store.Human).Create(parse(id, "x")))
		must(t)(s.By(store.Human).SetExposure(id, false, new(i+1)))
		_, err := s.Allow(store.AllowRule{Host: id, Port: "443"})
		if err := errors.Join(err, s.SetSetting(id, "x"), s.PutSealed(id, []byte("x")),
			s.SetApproval(store.ApprovalPolicy{Wrapper: id, Policy: "always"}), s.Trust(store.Trusted{Wrapper: id, Doc: [32]byte{byte(i)}})); err != nil {
			t.Fatal(err)
		}
	}
	must(t)(s.By(store.Human).Create(parse("gone", "x")))
	must(t)(s.By(store.Human).Delete("gone"))
	if want, err = look(s); err != nil {
		t.Fatal(err)
	}
	mustClose(t, s)
	return inUse(t, path), want
}

// openDamaged opens damaged data and returns what changed without a word of it,
// whether anything is lost, and what Recovered says.
func openDamaged(t *testing.T, data []byte, want facts) (silent []string, lost bool, recovered string) {
	t.Helper()
	path := newPath(t)
	overwrite(t, path, data)
	s, err := store.Open(path, scriptOptions)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	got, told, err := survey(s)
	if err != nil {
		t.Fatal(err)
	}
	silent, lost = missed(s, want, got, told)
	mustClose(t, s)
	if again := mustOpen(t, path); again.Recovered() != "" {
		t.Errorf("the next start: %q", again.Recovered())
	}
	return silent, lost, s.Recovered()
}

// A page that says to have fewer elements than it has hides the others.
func TestHiddenElements(t *testing.T) {
	t.Parallel()
	clean, want := smallStore(t)
	for _, bucket := range []string{"allow", "approval", "sealed", "settings", "trust", "priority"} {
		for _, count := range []byte{2, 1, 0, 4} {
			data := bytes.Clone(clean)
			found := 0
			for from := 0; ; {
				i := bytes.Index(data[from:], []byte(bucket+strings.Repeat("\x00", 24)+"\x02\x00\x03\x00")) // root and sequence of the bucket, number of its page, a leaf, three elements
				if i < 0 {
					break
				}
				from += i + len(bucket) + 26
				data[from] = count
				found++
			}
			if found == 0 {
				t.Fatalf("no bucket %s", bucket)
			}
			silent, _, recovered := openDamaged(t, data, want)
			if len(silent) > 0 || !strings.Contains(recovered, fmt.Sprintf("bucket %s: ", bucket)) {
				t.Errorf("%d in bucket %s instead of 3: %q, %q", count, bucket, silent, recovered)
			}
		}
	}
}

// A bucket whose name is damaged keeps what is in it.
func TestDamagedBucketName(t *testing.T) {
	t.Parallel()
	clean, want := smallStore(t)
	for _, bucket := range []string{"allow", "approval", "history", "names", "priority", "removed", "sealed", "settings", "state", "trust", "wrappers"} {
		// Of the pages that are or were the top of the tree.
		data := bytes.Clone(clean)
		found := 0
		for _, p := range pagesWith(data, "names", "state", "verified", "wrappers") {
			// Behind the name is the number of a page, which is small here.
			name := regexp.MustCompile("(?s)" + bucket + "..\x00\x00\x00\x00\x00\x00")
			if i := name.FindIndex(data[p : p+os.Getpagesize()]); i != nil {
				data[p+i[0]+len(bucket)-1] ^= 1
				found++
			}
		}
		if found == 0 {
			t.Fatalf("no bucket %s", bucket)
		}
		silent, lost, recovered := openDamaged(t, data, want)
		if len(silent) > 0 || lost || !strings.Contains(recovered, "its records are not of a bucket of this name") {
			t.Errorf("bucket %s: %q, lost: %v, %q", bucket, silent, lost, recovered)
		}
	}
}

// A version whose key is damaged is no version of its wrapper any more; one that
// seems to be of another wrapper does not make that one up.
func TestDamagedVersionKey(t *testing.T) {
	t.Parallel()
	clean, want := smallStore(t)
	for key, damaged := range map[string]string{
		"w01 0000000001": "w01 000000000q", "w02 0000000001": "w0r 0000000001", "gone 0000000001": "fone 0000000001", "gone 0000000002": "gone,0000000002",
	} {
		data := bytes.ReplaceAll(clean, []byte(key), []byte(damaged))
		if bytes.Equal(data, clean) {
			t.Fatalf("no version %s", key)
		}
		silent, _, recovered := openDamaged(t, data, want)
		if len(silent) > 0 || !strings.Contains(recovered, "earlier versions") {
			t.Errorf("%s: %q, %q", key, silent, recovered)
		}
	}
}

func TestCuts(t *testing.T) {
	t.Parallel()
	damageMany(t, "cuts", soak.Rounds(12, 400), func(r *rand.Rand, data []byte) []byte { return data[:r.IntN(len(data))] })
}

func TestZeroedPages(t *testing.T) {
	t.Parallel()
	damageMany(t, "zeroed pages", soak.Rounds(10, 400), func(r *rand.Rand, data []byte) []byte {
		p := r.IntN(len(data)/os.Getpagesize()) * os.Getpagesize()
		clear(data[p : p+os.Getpagesize()])
		return data
	})
}

// Old pages in new places: what a disk that loses writes leaves behind.
func TestSwappedPages(t *testing.T) {
	t.Parallel()
	damageMany(t, "pages in the wrong place", soak.Rounds(10, 400), func(r *rand.Rand, data []byte) []byte {
		size := os.Getpagesize()
		pages := len(data) / size
		at := r.IntN(pages)
		a, b := at*size, (at+1+r.IntN(pages-1))%pages*size // another page
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

// toDamage is a store with something of everything in it, and a history: old
// versions and deleted wrappers lie about in free pages.
//
// It is made once: it takes long, and is only read.
func toDamage(t *testing.T) (data []byte, want facts) {
	t.Helper()
	damageable.Do(func() { damageable.data, damageable.want = makeDamageable(t) })
	return damageable.data, damageable.want
}

var damageable struct {
	sync.Once
	data []byte
	want facts
}

func makeDamageable(t *testing.T) (data []byte, want facts) {
	t.Helper()
	path := newPath(t)
	s, err := store.Open(path, scriptOptions)
	if err != nil {
		t.Fatal(err)
	}
	x := &scripted{path: path, s: s}
	for i := range 100 {
		store.Unsynced(t, x.s)
		must(t)(x.s.By(store.Human).Create(parse(fmt.Sprintf("wrapper.%03d", i), strings.Repeat("note ", i%37))))
	}
	was, err := look(x.s)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 300 {
		store.Unsynced(t, x.s)
		now, change := step(n, was)
		if err := change(x); err != nil {
			t.Fatal(err)
		}
		was = now
	}
	mustClose(t, x.s)
	return inUse(t, path), was
}

// survey is look of a damaged store: what it says, and of which facts it says
// that they are damaged, by their first word, or all of them for one wrapper.
func survey(s *store.Store) (got facts, told map[string]bool, err error) {
	got, told = facts{"revision": fmt.Sprint(s.Revision())}, map[string]bool{}
	ids := []string{}
	for _, e := range s.List() {
		ids = append(ids, e.ID)
		if e.Wrapper == nil {
			told["doc "+e.ID] = true
			got["doc "+e.ID] = ""
			continue
		}
		got["doc "+e.ID] = string(e.Wrapper.Document())
		got.set("tool "+e.ID, e.Tool)
		if e.Priority != 0 {
			got["priority "+e.ID] = fmt.Sprint(e.Priority)
		}
		if !e.Verified.IsZero() {
			got["verified "+e.ID] = e.Verified.Format(time.RFC3339Nano)
		}
	}
	for _, r := range s.RemovedWrappers() {
		ids = append(ids, r.ID)
		if got["removed "+r.ID] = r.Time.Format(time.RFC3339Nano); r.Time.IsZero() {
			told["removed "+r.ID] = true
		}
	}
	for _, id := range ids {
		versions, err := s.History(id)
		if err != nil && !fault.Is(err, "WRAPPER_NOT_FOUND") { // then it has none
			return nil, nil, err
		}
		for _, v := range versions {
			if v.Damaged != "" {
				told["versions "+id] = true
			}
			got["versions "+id] += version(v.Number, v.Author, v.Time, string(v.Doc))
		}
	}
	for name, value := range s.Settings() {
		got["setting "+name] = value
	}
	for _, r := range s.Allowed() {
		got["allow "+r.Host+" "+r.Port] = fmt.Sprint(r.HTTP)
	}
	names, err := s.ListSealed()
	if err != nil {
		return nil, nil, err
	}
	for _, name := range names {
		sealed, err := s.GetSealed(name)
		if err != nil {
			told["sealed"] = true
			continue
		}
		got["sealed "+name] = string(sealed)
	}
	for _, p := range s.ApprovalPolicies() {
		if p.Damaged {
			told["approval"] = true
			continue
		}
		got["approval "+p.Wrapper] = p.Policy + " " + hex.EncodeToString(p.Doc[:])
	}
	for _, tr := range s.Trusted() {
		got["trust "+hex.EncodeToString(tr.Doc[:])] = tr.Wrapper
	}
	for _, said := range s.Unreadable() {
		for words, kind := range map[string]string{
			"setting ": "setting", "allow rule ": "allow", "priority of ": "priority", "credential ": "sealed", "approval policy of ": "approval", "trusted document ": "trust",
		} {
			if strings.HasPrefix(said, words) {
				told[kind] = true
			}
		}
	}
	return got, told, nil
}

// missed are the facts that differ from what was saved without a word of it,
// and whether any is missing at all.
func missed(s *store.Store, want, got facts, told map[string]bool) (silent []string, lost bool) {
	recovered := s.Recovered()
	if strings.Contains(recovered, "changes made last before the damage may be missing") {
		return nil, true // an earlier state: nothing there need be the last
	}
	wrappersMissing := strings.Contains(recovered, "no wrapper could be read") || strings.Contains(recovered, "wrappers are missing, and their ids")
	gone := func(id string) bool { _, there := got["doc "+id]; return !there }
	for name, value := range want {
		kind, rest, _ := strings.Cut(name, " ")
		have, there := got[name]
		switch {
		case there && have == value:
			continue
		case kind == "revision" && recovered != "": // it goes on beyond the old one
			continue
		case kind == "verified" && !there: // as after a crash: only a note of the last run
		case told["doc "+rest], told[kind], told[name]:
		case gone(rest) && wrappersMissing && (kind == "doc" || kind == "tool" || kind == "priority"):
		case kind == "tool" && !strings.Contains(want["doc "+rest], `"exposeAsTool":true`): // kept for when it is one again, and then made of the id
			continue
		case kind == "versions" && strings.Contains(recovered, words[kind]): // some of them are
		case !there && words[kind] != "" && strings.Contains(recovered, words[kind]): // it is said that some may be
		default:
			silent = append(silent, fmt.Sprintf("%s is %.60q, was %.60q", name, have, value))
		}
		lost = true
	}
	for name, have := range got {
		kind, id, _ := strings.Cut(name, " ")
		_, was := want["versions "+id]
		if kind == "removed" && told[name] && was && gone(id) && recovered != "" { // the rest of a lost wrapper
			continue
		}
		if _, known := want[name]; !known && have != "" {
			silent = append(silent, fmt.Sprintf("%s is %.60q, and was not there", name, have))
		}
	}
	return silent, lost
}

// words are how Recovered names what it says some of may be missing.
var words = map[string]string{
	"setting": "settings", "allow": "allow rules", "priority": "priorities", "sealed": "credentials",
	"approval": "approval policies", "trust": "trusted documents", "versions": "earlier versions", "removed": "removed wrappers",
}

func damageMany(t *testing.T, what string, rounds int, damage func(*rand.Rand, []byte) []byte) {
	clean, want := toDamage(t)
	outcome := map[string]int{}
	slowest := time.Duration(0)
	for i := range rounds {
		r := rand.New(rand.NewPCG(uint64(i), 7))
		dir := t.TempDir()
		p := filepath.Join(dir, "store.db")
		if err := os.WriteFile(p, damage(r, bytes.Clone(clean)), 0o600); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		s, err := store.Open(p, scriptOptions)
		if err != nil {
			t.Errorf("round %d: open: %v", i, err)
			continue
		}
		slowest = max(slowest, time.Since(begun))
		got, told, err := survey(s)
		if err != nil {
			t.Fatalf("round %d: %v", i, err)
		}
		silent, lost := missed(s, want, got, told)
		for _, change := range silent[:min(len(silent), 5)] {
			t.Errorf("round %d: %s; Recovered: %q, Unreadable: %q", i, change, s.Recovered(), s.Unreadable())
		}
		switch {
		case strings.Contains(s.Recovered(), "changes made last before the damage may be missing"):
			outcome["set aside with the last changes lost"]++
		case s.Recovered() != "" && lost:
			outcome["set aside with something lost"]++
		case s.Recovered() != "":
			outcome["set aside with all taken over"]++
		case lost:
			outcome["with records listed as damaged"]++
		default:
			outcome["without harm"]++
		}
		// It works on, and stays whole, and is not damaged again at the next start.
		store.Unsynced(t, s)
		must(t)(s.By(store.Human).Create(parse("after.damage", "x")))
		if _, ok := got["doc wrapper.002"]; ok {
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
	var ended []string
	for _, k := range slices.Sorted(maps.Keys(outcome)) {
		ended = append(ended, fmt.Sprintf("%d %s", outcome[k], k))
	}
	soak.Measured(t, "%d %s: %s; 0 deaths, 0 silent changes; slowest start %v", rounds, what, strings.Join(ended, ", "), slowest.Round(100*time.Microsecond))
}
