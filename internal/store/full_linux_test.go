package store_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/soak"
	"github.com/hyperbolic-gateway/hb-rest/internal/store"
)

func init() {
	// full PATH: fills the store up to a limit on the size of files, as a full
	// disk or quota would set it, at many different sizes, and checks after each
	// failure that nothing is lost and that it works again once there is room.
	children["full"] = func(args []string) int {
		if err := fullDisk(args[0]); err != nil {
			fmt.Fprintln(os.Stderr, "full:", err)
			return 1
		}
		return 0
	}
}

// Promise 14: each of many writes fails, and after it the store is what it was,
// in memory and on the disk, and takes changes again once there is room.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	if out, err := child(t, "full", path).Output(); err != nil {
		t.Errorf("%v\n%s", err, out)
	} else {
		soak.Measured(t, "%s", out)
	}
	checkFile(t, path)
	if s := mustOpen(t, path); s.Recovered() != "" || s.Damaged() != 0 {
		t.Errorf("afterwards: %q, %d damaged", s.Recovered(), s.Damaged())
	}
}

// Promise 14, call by call: the first, second, ... 200th write of a process
// fails, and none before or after it; likewise what makes the file longer, and
// each sync. The change under way, or the making of the file, ends with an
// error and is not there; and the same change again, and all that follow, are
// saved.
func TestEachWriteFails(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"fail", "failrows"} {
		var said []string
		for _, k := range []struct {
			call, failure string
			step, first   int // each step-th of the first so many
			all           bool
		}{
			{"pwrite64", "ENOSPC", soak.Rounds(66, 1), 200, true},
			{"ftruncate", "ENOSPC", soak.Rounds(5, 1), 5, false},
			{"fdatasync", "EIO", soak.Rounds(30, 1), 60, true},
			{"fsync", "EIO", soak.Rounds(3, 1), 6, false}, // some are of files that only grow now and then
		} {
			failed := 0
			for n := 1; n <= k.first; n += k.step {
				failures := failNth(t, what, k.call, k.failure, n)
				if failures != 1 && k.all || failures > 1 {
					t.Errorf("%s: %s number %d was to fail: %d changes failed", what, k.call, n, failures)
				}
				failed += failures
				if t.Failed() {
					return
				}
			}
			if failed == 0 {
				t.Errorf("%s: no %s failed", what, k.call)
			}
			said = append(said, fmt.Sprintf("%d %s", failed, k.call))
		}
		name := map[string]string{"fail": "store", "failrows": "audit trail"}[what]
		soak.Measured(t, "%s: %s made to fail one at a time, each with an error; 0 acknowledged lost, 0 half there, full service after each", name, strings.Join(said, ", "))
	}
}

// failNth runs a child of which the nth of some call fails, and returns how
// many changes failed.
func failNth(t *testing.T, what, call, failure string, n int) int {
	t.Helper()
	path := newPath(t)
	inject := fmt.Sprintf("inject=%s:error=%s:when=%d", call, failure, n)
	cmd := straced(t, child(t, what, path, failure), "-o", os.DevNull, "-e", "trace="+call, "-e", inject)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s, %s: %v", what, inject, err)
	}
	var failures, done int
	if _, err := fmt.Sscan(string(out), &failures, &done); err != nil {
		t.Fatalf("%s, %s: %q", what, inject, out)
	}
	defer os.RemoveAll(filepath.Dir(path))
	if err := checked(path); err != nil {
		t.Errorf("%s, %s: %v", what, inject, err)
	}
	if what == "failrows" {
		f := mustAudit(t, path, 1000)
		defer f.Close()
		if got := scan(t, f, 0); len(got) != done || done > 0 && !slices.EqualFunc(got, rows(1, done), bytes.Equal) {
			t.Errorf("%s, %s: %d rows, want %d", what, inject, len(got), done)
		}
		return failures
	}
	want := noFacts()
	for n := range done {
		want, _ = step(n, want)
	}
	s, err := store.Open(path, scriptOptions)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got, err := look(s); err != nil || !maps.Equal(got, want) {
		t.Errorf("%s, %s: %v (-want +got):\n%s", what, inject, err, cmp.Diff(want, got))
	}
	return failures
}

func init() {
	// fail PATH ERROR: does changes of the script until one has failed and five
	// more are done, or sixty are, and says how many failed and were done.
	children["fail"] = func(args []string) int {
		runtime.LockOSThread() // strace counts calls by thread
		failures, done, err := failingScript(args[0], args[1] != "ENOSPC")
		fmt.Println(failures, done)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	}
	// failrows PATH ERROR: the same for the audit trail; done is the last row.
	children["failrows"] = func(args []string) int {
		runtime.LockOSThread()
		failures, done, err := failingRows(args[0], args[1] != "ENOSPC")
		fmt.Println(failures, done)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	}
}

// failingScript is the child fail. A change whose sync failed may be there.
func failingScript(path string, may bool) (failures, done int, err error) {
	open := func() (*store.Store, error) {
		s, err := store.Open(path, scriptOptions)
		if err == nil {
			return s, nil
		}
		if failures++; !strings.HasPrefix(err.Error(), "STORE_FAILED: ") {
			return nil, fmt.Errorf("open: %w", err)
		}
		return store.Open(path, scriptOptions)
	}
	s, err := open()
	if err != nil {
		return failures, 0, err
	}
	x, was, after := &scripted{path: path, s: s}, noFacts(), 0
	for done < 60 && after < 5 {
		now, change := step(done, was)
		if err := change(x); err != nil {
			if failures++; !strings.HasPrefix(err.Error(), "STORE_FAILED: ") {
				return failures, done, fmt.Errorf("change %d: %w", done, err)
			}
			if x.closed { // what successful runs left is lost with it, and that was said
				if x.s, err = store.Open(path, scriptOptions); err != nil {
					return failures, done, err
				}
				x.closed = false
			}
			got, err := look(x.s)
			switch {
			case err != nil:
				return failures, done, err
			case maps.Equal(got, was):
				continue // the same again
			case !may || !maps.Equal(got, now):
				return failures, done, fmt.Errorf("after change %d had failed (-want +got):\n%s", done, cmp.Diff(was, got))
			}
		}
		was = now
		if done++; failures > 0 {
			after++
		}
	}
	if err := x.s.Close(); err != nil {
		return failures + 1, done, err
	}
	return failures, done, nil
}

// failingRows is the child failrows.
func failingRows(path string, may bool) (failures, done int, err error) {
	f, err := store.OpenAudit(path, store.AuditOptions{Keep: 1000})
	if err != nil {
		failures++
		if f, err = store.OpenAudit(path, store.AuditOptions{Keep: 1000}); err != nil {
			return failures, 0, err
		}
	}
	for g, after := 0, 0; g < 60 && after < 5; g++ {
		from, to := done+1, rowsAfter(g+1)
		if g%12 == 11 {
			err = f.Rotate(row(from))
		} else {
			err = f.Append(rows(from, to))
		}
		if err != nil {
			if failures++; !strings.HasPrefix(err.Error(), "STORE_FAILED: ") {
				return failures, done, fmt.Errorf("group %d: %w", g, err)
			}
			tail, err := f.Tail(1)
			if err != nil {
				return failures, done, err
			}
			there := 0
			if len(tail) == 1 {
				there = int(binary.BigEndian.Uint64(tail[0]))
			}
			if there != done && !(may && there == to) {
				return failures, done, fmt.Errorf("group %d failed: the last row is %d, was %d", g, there, done)
			}
			if there == done {
				// Where no new file could be begun, the rows go on in the one at hand.
				if err := f.Append(rows(from, to)); err != nil {
					return failures, done, fmt.Errorf("group %d again: %w", g, err)
				}
			}
		}
		done = to
		if failures > 0 {
			after++
		}
	}
	return failures, done, f.Close()
}

func limit(size uint64) error {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &l); err != nil {
		return err
	}
	l.Cur = min(size, l.Max)
	return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &l)
}

func fullDisk(path string) error {
	const unlimited = ^uint64(0)
	// Under the smallest limits the file cannot even be made.
	if err := limit(4096); err != nil {
		return err
	}
	if _, err := store.Open(path, store.Options{}); err == nil || !strings.HasPrefix(err.Error(), "STORE_FAILED: ") {
		return fmt.Errorf("a store was made on a full disk: %v", err)
	}
	if err := limit(unlimited); err != nil {
		return err
	}
	s, err := store.Open(path, store.Options{})
	if err != nil {
		return fmt.Errorf("with room again: %w", err)
	}
	want := map[string]string{}
	same := func(when string, got map[string]string) error {
		for id, doc := range want {
			if got[id] != doc {
				return fmt.Errorf("%s: %s is %.80q, want %.80q", when, id, got[id], doc)
			}
		}
		if len(got) != len(want) {
			return fmt.Errorf("%s: %d wrappers, want %d", when, len(got), len(want))
		}
		return nil
	}
	failures := 0
	rounds := soak.Rounds(24, 200)
	for round := range rounds {
		// From a limit within what the file has, where single pages fail, to one
		// a little beyond it, where growing fails.
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		if err := limit(uint64(info.Size()) * uint64(round%12) / 11); err != nil {
			return err
		}
		failed := false
		for i := range 200 {
			id := fmt.Sprintf("r%02d.%03d", round, i)
			w := parse(id, "x", fmt.Sprintf(`,"description":%q`, strings.Repeat("d", 1900)))
			rev := s.Revision()
			_, err := s.By(store.Human).Create(w)
			if err == nil {
				want[id] = string(w.Document())
				continue
			}
			failed = true
			failures++
			if !strings.HasPrefix(err.Error(), "STORE_FAILED: the change could not be written") {
				return fmt.Errorf("round %d: %w", round, err)
			}
			if s.Revision() != rev {
				return fmt.Errorf("round %d: a failed change moved the revision", round)
			}
			s.MarkVerified(id, time.Now())
			break
		}
		if !failed {
			return fmt.Errorf("round %d: 200 wrappers fitted", round)
		}
		if err := same("in memory after a failure", documents(s)); err != nil {
			return err
		}
		if err := limit(unlimited); err != nil {
			return err
		}
		w := parse(fmt.Sprintf("r%02d.room", round), "x")
		if _, err := s.By(store.Human).Create(w); err != nil {
			return fmt.Errorf("round %d, with room again: %w", round, err)
		}
		want[w.ID] = string(w.Document())
		if _, err := s.Reload(); err != nil {
			return fmt.Errorf("round %d, with room again: %w", round, err)
		}
		if err := same("on the disk after a failure", documents(s)); err != nil {
			return err
		}
		for id := range want { // keep it small: freed pages are where later pages fail
			if len(want) < 150 {
				break
			}
			if _, err := s.By(store.Human).Delete(id); err != nil {
				return err
			}
			delete(want, id)
		}
	}
	// Close on a full disk: the noted times are lost, and it is said.
	for id := range want {
		s.MarkVerified(id, time.Now())
		break
	}
	if err := limit(1); err != nil {
		return err
	}
	if err := s.Close(); err == nil || !strings.HasPrefix(err.Error(), "STORE_FAILED: ") {
		return fmt.Errorf("close on a full disk: %v", err)
	}
	if err := limit(unlimited); err != nil {
		return err
	}
	s, err = store.Open(path, store.Options{})
	if err != nil {
		return err
	}
	fmt.Printf("%d changes that failed at %d limits of the file's size, each with an error; 0 acknowledged lost, 0 half there, full service each time with room again", failures, rounds)
	if err := same("after opening again", documents(s)); err != nil {
		return err
	}
	return s.Close()
}
