package store_test

import (
	"bufio"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/soak"
	"github.com/hyperbolic-gateway/hb-rest/internal/store"
)

func init() {
	// create PATH PREFIX N: saves N wrappers and says each id once it is saved.
	children["create"] = func(args []string) int {
		s, err := store.Open(args[0], store.Options{})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		var n int
		fmt.Sscan(args[2], &n)
		for i := range n {
			id := fmt.Sprintf("%s.%04d", args[1], i)
			if _, err := s.By(store.Human).Create(parse(id, id, exposed)); err != nil {
				fmt.Fprintln(os.Stderr, err)
				return 1
			}
			fmt.Println(id) // unbuffered: one write
		}
		return 0
	}
	// hold PATH: opens the store, says so, and keeps it until it is killed.
	children["hold"] = func(args []string) int {
		s, err := store.Open(args[0], store.Options{})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer s.Close()
		fmt.Println("open")
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
		return 0
	}
}

// Promise 11: a process that changes a store in all ways is killed at a random
// moment, 1,000 times in a long run. Each time the file is whole, and what the
// store says is what it must say after the change acknowledged last, or after
// the one that was being made: nothing lost, nothing half there.
func TestKilled(t *testing.T) {
	t.Parallel()
	const seed = 20
	rnd := rand.New(rand.NewPCG(seed, 1))
	path := newPath(t)
	rounds := soak.Rounds(6, 1000)
	was, next := noFacts(), 0 // before which change the store is
	between, slowest := 0, time.Duration(0)
	for round := range rounds {
		cmd := child(t, "work", path, fmt.Sprint(next), fmt.Sprint(next+1_000_000))
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// So many lines, and then a moment within the change that follows.
		stop, delay := rnd.IntN(30), time.Duration(rnd.IntN(5000))*time.Microsecond
		last := next - 1
		lines := bufio.NewScanner(out)
		for n := 0; lines.Scan(); n++ {
			if text := lines.Text(); text != "open" {
				last = number(text)
			}
			if n == stop {
				time.AfterFunc(delay, func() { _ = cmd.Process.Kill() }) // what it says until it is dead counts too
			}
		}
		if err := cmd.Wait(); err == nil || err.Error() != "signal: killed" {
			t.Fatalf("round %d: the child ended by itself: %v", round, err)
		}

		checkFile(t, path)
		begun := time.Now()
		s, err := store.Open(path, scriptOptions)
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		slowest = max(slowest, time.Since(begun))
		got, err := look(s)
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		mustClose(t, s)
		for ; next <= last; next++ {
			was, _ = step(next, was)
		}
		if after, _ := step(next, was); !maps.Equal(got, was) {
			if diff := cmp.Diff(after, got); diff != "" {
				t.Fatalf("round %d, killed within change %d (seed %d): neither as before it nor as after it (-after +got):\n%s", round, next, seed, diff)
			}
			was, next, between = after, next+1, between+1
		}
	}
	soak.Measured(t, "%d kills in %d changes of all kinds; 0 acknowledged lost, 0 half there, 0 check errors (%d made but not yet acknowledged); slowest start %v",
		rounds, next, between, slowest.Round(100*time.Microsecond))
}

// Killed while it makes the file: there is a whole store or none.
func TestKilledAtCreation(t *testing.T) {
	t.Parallel()
	rounds := soak.Rounds(13, 1001)
	rnd := rand.New(rand.NewPCG(20, 2))
	stood := map[string]int{}
	var quick time.Duration // what a child needs until it has made the file
	for i := range rounds {
		dir := t.TempDir()
		path := filepath.Join(dir, "store.db")
		cmd := child(t, "create", path, "x", "1")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// A time, because there is no event to wait for: the first child is not
		// killed and shows how long it takes; the others are within that.
		if i > 0 {
			delay := time.Duration(rnd.Int64N(int64(quick + quick/4)))
			time.AfterFunc(delay, func() { _ = cmd.Process.Kill() })
		}
		said, _ := bufio.NewReader(out).ReadString('\n')
		if i == 0 {
			quick = time.Since(begun)
		}
		_ = cmd.Wait()
		names, err := os.ReadDir(dir)
		_, made := os.Lstat(path)
		switch {
		case err != nil:
			t.Fatal(err)
		case said != "":
			stood["acknowledged"]++
		case len(names) == 0:
			stood["nothing there"]++
		case made != nil:
			stood["half built"]++
		default:
			stood["built"]++
		}
		s := mustOpen(t, path)
		_, there := documents(s)["x.0000"]
		if s.Recovered() != "" || s.Damaged() != 0 || s.Len() > 1 || !there && said != "" {
			t.Errorf("round %d: %q, %d damaged, %d wrappers, said %q", i, s.Recovered(), s.Damaged(), s.Len(), said)
		}
		must(t)(s.By(store.Human).Create(parse("after", "x")))
		mustClose(t, s)
		checkFile(t, path)
		_ = os.RemoveAll(dir)
	}
	if t.Failed() {
		return
	}
	soak.Measured(t, "%d kills at the making of a store: %d before anything was there, %d with a half built file beside its place, %d before and %d after the first save was acknowledged; 0 not opened, 0 check errors, 0 lost",
		rounds-1, stood["nothing there"], stood["half built"], stood["built"], stood["acknowledged"])
}

// M-17: the second daemon is told so promptly, and changes nothing. When the
// first is gone, however it went, the next one can open the store.
func TestSecondOpener(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	fill(t, path, 3)
	cmd := child(t, "hold", path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "open\n" {
		t.Fatalf("child: %q, %v", line, err)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	_, err = store.Open(path, store.Options{})
	mustFail(t, err, "STORE_FAILED", "another hbrestd of this user has "+path+" open")
	if took := time.Since(start); took > 4*time.Second {
		t.Errorf("the second opener waited %v", took)
	}
	if after, _ := os.ReadFile(path); string(after) != string(before) {
		t.Error("the second opener changed the file")
	}

	// Also when it finds the file damaged: that is then the first one's business.
	if err := os.WriteFile(path, []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = store.Open(path, store.Options{LockTimeout: 100 * time.Millisecond})
	mustFail(t, err, "STORE_FAILED", "another hbrestd of this user has "+path+" open")
	if names, _ := filepath.Glob(path + "*"); len(names) != 1 {
		t.Errorf("the second opener left %v", names)
	}
	if err := os.WriteFile(path, before, 0o600); err != nil {
		t.Fatal(err)
	}

	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if s := mustOpen(t, path); s.Len() != 3 || s.Recovered() != "" {
		t.Errorf("after the first was killed: %d wrappers, %q", s.Len(), s.Recovered())
	}
}

// Two daemons that start together on an empty folder: one has the store.
func TestTwoAtOnce(t *testing.T) {
	t.Parallel()
	for range 20 {
		path := newPath(t)
		type result struct {
			s   *store.Store
			err error
		}
		results := make(chan result)
		for range 4 {
			go func() {
				s, err := store.Open(path, store.Options{LockTimeout: 100 * time.Millisecond})
				results <- result{s, err}
			}()
		}
		var winner *store.Store
		for range 4 {
			r := <-results
			switch {
			case r.err != nil:
				mustFail(t, r.err, "STORE_FAILED", "another hbrestd")
			case winner != nil:
				t.Error("two have the store open")
				mustClose(t, r.s)
			default:
				winner = r.s
			}
		}
		if winner == nil {
			t.Fatal("nobody has the store open")
		}
		must(t)(winner.By(store.Human).Create(parse("one", "x")))
		mustClose(t, winner)
		if s := mustOpen(t, path); s.Len() != 1 {
			t.Error("what the winner saved is not there")
		}
	}
}

// A store that someone removes or replaces under the daemon: what is read stays
// right, and nothing is said to be saved that nobody will find.
func TestReplacedUnderneath(t *testing.T) {
	path := newPath(t)
	docs := fill(t, path, 3)
	s := mustOpen(t, path)
	if err := os.Rename(path, path+".moved"); err != nil {
		t.Fatal(err)
	}
	_, err := s.By(store.Human).Create(parse("new", "x"))
	mustFail(t, err, "STORE_FAILED", "was moved, removed or replaced")
	_, err = s.Reload()
	mustFail(t, err, "STORE_FAILED", "was moved, removed or replaced")
	if got := documents(s); len(got) != 3 || got["wrapper.001"] != docs["wrapper.001"] {
		t.Errorf("memory holds %v", got)
	}
	if err := os.Rename(path+".moved", path); err != nil {
		t.Fatal(err)
	}
	must(t)(s.By(store.Human).Create(parse("new", "x")))

	// Cut short in place: reading goes on, writing ends, the process lives.
	if err := os.Truncate(path, int64(2*os.Getpagesize())); err != nil {
		t.Fatal(err)
	}
	_, err = s.Reload()
	mustFail(t, err, "STORE_FAILED", "is damaged")
	for range 3 {
		if _, err = s.By(store.Human).Update(parse("new", "y")); err == nil {
			t.Error("a change of a file that was cut short was said to be saved")
		}
		mustFail(t, err, "STORE_FAILED")
	}
	if got := documents(s); len(got) != 4 || got["wrapper.001"] != docs["wrapper.001"] {
		t.Errorf("memory holds %v", got)
	}
	if err := s.Close(); err != nil && !strings.Contains(err.Error(), "STORE_FAILED") {
		t.Errorf("close: %v", err)
	}
	if s = mustOpen(t, path); !strings.Contains(s.Recovered(), "was damaged") {
		t.Errorf("the next start says %q", s.Recovered())
	}
}

func TestOpen_refuses(t *testing.T) {
	dir := t.TempDir()
	_, err := store.Open(filepath.Join(dir, "gone", "store.db"), store.Options{})
	mustFail(t, err, "STORE_FAILED", "could not be created", "no such file or directory")
	_, err = store.Open(dir, store.Options{})
	mustFail(t, err, "STORE_FAILED", dir+" is not a regular file")
	target, link := filepath.Join(dir, "target"), filepath.Join(dir, "link")
	fill(t, target, 1)
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	_, err = store.Open(link, store.Options{})
	mustFail(t, err, "STORE_FAILED", link+" is not a regular file")

	if err := os.Chmod(target, 0o644); err != nil {
		t.Fatal(err)
	}
	mustClose(t, mustOpen(t, target))
	if info, err := os.Stat(target); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("an open file stayed %v, %v", info.Mode(), err)
	}
}
