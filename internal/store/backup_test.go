package store_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/soak"
	"github.com/hyperbolic-gateway/hb-rest/internal/store"
)

// A snapshot that is taken while wrappers are saved opens, passes bbolt's own
// check, and has every wrapper that was acknowledged before it was begun, and
// none that was only begun after its end.
func TestSnapshotUnderWrites(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, newPath(t))
	var acknowledged, begun atomic.Int64
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			begun.Store(int64(i + 1))
			if _, err := s.By(store.Human).Create(parse(fmt.Sprintf("w.%06d", i), strings.Repeat("x", i%197))); err != nil {
				t.Error(err)
				return
			}
			acknowledged.Store(int64(i + 1))
		}
	}()
	for i := range int64(12) {
		for acknowledged.Load() <= i && !t.Failed() { // on a slow disk a copy may be quicker than a save
			time.Sleep(time.Millisecond)
		}
		before := acknowledged.Load()
		copied := newPath(t)
		if err := s.Snapshot(copied); err != nil {
			t.Fatal(err)
		}
		after := begun.Load()
		if info, err := os.Stat(copied); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info, err)
		}
		checkFile(t, copied)
		c, err := store.CheckCopy(copied)
		if err != nil {
			t.Fatal(err)
		}
		o := mustOpen(t, copied)
		if o.Recovered() != "" || o.Damaged() != 0 || o.Len() != c.Wrappers || o.Revision() != c.Revision {
			t.Errorf("%q, %d damaged, %d wrappers, revision %d; the check said %+v", o.Recovered(), o.Damaged(), o.Len(), o.Revision(), c)
		}
		if n := int64(o.Len()); n < before || n > after {
			t.Errorf("%d wrappers, want %d to %d", n, before, after)
		}
		mustClose(t, o)
	}
	close(stop)
	<-done
}

// What successful runs left, which is written a minute later, is in it.
func TestSnapshotHasNotes(t *testing.T) {
	path := newPath(t)
	fill(t, path, 1)
	s := mustOpen(t, path)
	at := time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC)
	s.MarkVerified("wrapper.000", at)
	copied := newPath(t)
	if err := s.Snapshot(copied); err != nil {
		t.Fatal(err)
	}
	if got := mustOpen(t, copied).List()[0].Verified; !got.Equal(at) {
		t.Errorf("worked last at %v, want %v", got, at)
	}
}

// Nothing that is there is written over, and a store that is closed or damaged
// gives no copy that passes for one.
func TestSnapshotRefused(t *testing.T) {
	path := newPath(t)
	docs := fill(t, path, 300)
	s := mustOpen(t, path)
	there := filepath.Join(t.TempDir(), "there")
	if err := os.WriteFile(there, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	mustFail(t, s.Snapshot(there), "STORE_FAILED", "could not be copied")
	if got, err := os.ReadFile(there); err != nil || string(got) != "mine" {
		t.Errorf("%q, %v", got, err)
	}
	mustFail(t, s.Snapshot(filepath.Join(t.TempDir(), "no", "folder")), "STORE_FAILED", "could not be copied")

	// One letter of a record on the disk, under the open store.
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte{'~'}, int64(stored(t, data, "wrapper.100", docs["wrapper.100"]))+1); err != nil {
		t.Fatal(err)
	}
	copied := newPath(t)
	if err := s.Snapshot(copied); err != nil {
		t.Fatal(err)
	}
	if _, err := store.CheckCopy(copied); err != nil {
		t.Error(err)
	}
	if o := mustOpen(t, copied); o.Damaged() != 1 {
		t.Errorf("%d damaged wrappers, want the one", o.Damaged())
	}
	// Every page but the first two is gone.
	for at := int64(2 * os.Getpagesize()); at < int64(len(data)); at += int64(os.Getpagesize()) {
		if _, err := f.WriteAt(make([]byte, os.Getpagesize()), at); err != nil {
			t.Fatal(err)
		}
	}
	copied = newPath(t)
	if err := s.Snapshot(copied); err != nil { // bbolt reads nothing of what it copies
		t.Fatal(err)
	}
	_, err = store.CheckCopy(copied)
	mustFail(t, err, "STORE_FAILED", "is damaged")
	mustClose(t, s)
	mustFail(t, s.Snapshot(newPath(t)), "STORE_FAILED", "is closed")
}

// A snapshot of the trail has all rows of that moment, whatever is written,
// begun anew and removed afterwards.
func TestAuditSnapshot(t *testing.T) {
	f := mustAudit(t, filepath.Join(t.TempDir(), "audit.db"), 3)
	turn := func(n int) {
		t.Helper()
		if err := f.Rotate(row(n)); err != nil {
			t.Fatal(err)
		}
	}
	add := func(from, to int) {
		t.Helper()
		if err := f.Append(rows(from, to)); err != nil {
			t.Fatal(err)
		}
	}
	add(1, 100)
	turn(101)
	add(102, 200)
	turn(201)
	add(202, 250)
	dir := t.TempDir()
	if err := f.Snapshot(dir); err != nil {
		t.Fatal(err)
	}
	add(251, 300)
	turn(301)
	turn(302)
	turn(303) // the first files are removed
	copied := mustAudit(t, filepath.Join(dir, "audit.db"), 3)
	if got := scan(t, copied, 0); !slices.EqualFunc(got, rows(1, 250), bytes.Equal) || copied.Recovered() != "" {
		t.Errorf("%d rows, want 1 to 250; %q", len(got), copied.Recovered())
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	mustFail(t, f.Snapshot(t.TempDir()), "STORE_FAILED", "it is not open")
}

// Rows are written and files begun while the trail is copied: each copy has
// whole numbers from 1 to one that was there at that moment.
func TestAuditSnapshotUnderWrites(t *testing.T) {
	t.Parallel()
	f := mustAudit(t, filepath.Join(t.TempDir(), "audit.db"), 1000)
	var written atomic.Int64
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for n := 1; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			var err error
			if n%37 == 0 {
				err = f.Rotate(row(n))
			} else {
				err = f.Append(rows(n, n))
			}
			if err != nil {
				t.Error(err)
				return
			}
			written.Store(int64(n))
		}
	}()
	for range 12 {
		before, dir := written.Load(), t.TempDir()
		if err := f.Snapshot(dir); err != nil {
			t.Fatal(err)
		}
		after := written.Load() + 1
		copied := mustAudit(t, filepath.Join(dir, "audit.db"), 1000)
		got := scan(t, copied, 0)
		if n := int64(len(got)); n < before || n > after || !slices.EqualFunc(got, rows(1, int(n)), bytes.Equal) {
			t.Errorf("%d rows, want %d to %d in a line", n, before, after)
		}
		_ = copied.Close()
	}
	close(stop)
	<-done
}

// Files that nobody has open are copied as they are; those of a daemon are not.
func TestCopyClosed(t *testing.T) {
	home := t.TempDir()
	path, trail := filepath.Join(home, "store.db"), filepath.Join(home, "audit.db")
	dir := t.TempDir()
	err := store.CopyClosed(path, trail, dir)
	mustFail(t, err, "STORE_FAILED", "no such file")
	docs := fill(t, path, 20)
	f := mustAudit(t, trail, 3)
	if err := f.Append(rows(1, 5)); err != nil {
		t.Fatal(err)
	}
	if err := f.Rotate(row(6)); err != nil {
		t.Fatal(err)
	}
	mustFail(t, store.CopyClosed(path, trail, t.TempDir()), "STORE_FAILED", "another hbrestd of this user has "+trail+" open")
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := store.CopyClosed(path, trail, dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"store.db", "audit.db", "audit-00000000000000000001.db"} {
		want, err := os.ReadFile(filepath.Join(home, name))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes, %v; want %d", name, len(got), err, len(want))
		}
	}
	if got := documents(mustOpen(t, filepath.Join(dir, "store.db"))); !maps.Equal(got, docs) {
		t.Errorf("%d documents, want %d", len(got), len(docs))
	}
}

// Who holds a file holds the one that has the name, not one that was replaced
// between opening and locking it.
func TestHoldIsOfTheFileThere(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a file that is open is not replaced there")
	}
	path := filepath.Join(t.TempDir(), "store.db")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	replaced := make(chan error, 1)
	go func() {
		defer close(done)
		for range soak.Rounds(3000, 30000) {
			release, err := store.Hold(path)
			if err != nil {
				continue
			}
			err = os.WriteFile(path+".new", nil, 0o600)
			if err == nil {
				err = os.Rename(path+".new", path)
			}
			release()
			if err != nil {
				replaced <- err
				return
			}
		}
		replaced <- nil
	}()
	held := 0
	for going := true; going; {
		select {
		case <-done:
			going = false
		default:
		}
		release, err := store.Hold(path)
		if err != nil {
			continue
		}
		held++
		// Nobody else can hold it, and so nobody replaces it.
		if again, err := store.Hold(path); err == nil {
			again()
			t.Fatalf("two held it at once, the %dth time", held)
		}
		release()
	}
	if err := <-replaced; err != nil || held == 0 {
		t.Errorf("%v; held %d times", err, held)
	}
}
