package store_test

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

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
		t.Logf("%s", out)
	}
	checkFile(t, path)
	if s := mustOpen(t, path); s.Recovered() != "" || s.Damaged() != 0 {
		t.Errorf("afterwards: %q, %d damaged", s.Recovered(), s.Damaged())
	}
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
	for round := range 60 {
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
	fmt.Printf("%d failed writes", failures)
	if err := same("after opening again", documents(s)); err != nil {
		return err
	}
	return s.Close()
}
