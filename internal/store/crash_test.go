package store_test

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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

// D20: a process that creates 1,000 wrappers is killed at one moment of many;
// every wrapper that it had said to be saved is there, and the file is whole.
func TestKilled(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	const rounds = 10
	acknowledged := map[string]bool{}
	for round := range rounds {
		cmd := child(t, "create", path, fmt.Sprintf("r%02d", round), "1000")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// The moment is where it stands after so many acknowledgements, up to
		// all of them in the last round.
		stop := 1 + round*60
		if round == rounds-1 {
			stop = 1000
		}
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			acknowledged[lines.Text()] = true
			if stop--; stop == 0 {
				_ = cmd.Process.Kill() // what it says until it is dead counts too
			}
		}
		_ = cmd.Wait()
		if stop > 0 {
			t.Fatalf("round %d: the child ended by itself", round)
		}

		checkFile(t, path)
		s := mustOpen(t, path)
		if s.Recovered() != "" || s.Damaged() != 0 {
			t.Errorf("round %d: %q, %d damaged", round, s.Recovered(), s.Damaged())
		}
		got := documents(s)
		for id := range acknowledged {
			if got[id] != string(parse(id, id, exposed).Document()) {
				t.Errorf("round %d: the acknowledged %s is %q", round, id, got[id])
			}
		}
		// At most the one that was being saved is there without having been said.
		if extra := len(got) - len(acknowledged); extra < 0 || extra > round+1 {
			t.Errorf("round %d: %d wrappers, %d acknowledged", round, len(got), len(acknowledged))
		}
		// Each has the version of its creation: never one without the other.
		for id := range got {
			if !strings.HasPrefix(id, fmt.Sprintf("r%02d.", round)) {
				continue
			}
			if vs := history(t, s, id); len(vs) != 1 || !vs[0].Current || vs[0].Author != store.Human || vs[0].Time.IsZero() {
				t.Errorf("round %d: the versions of %s: %v", round, id, vs)
			}
		}
		if s.Revision() != uint64(len(got)+1) {
			t.Errorf("round %d: revision %d with %d wrappers", round, s.Revision(), len(got))
		}
		mustClose(t, s)
	}
	t.Logf("%d acknowledged in %d rounds", len(acknowledged), rounds)
}

// Killed while it makes the file: there is a whole store or none.
func TestKilledAtCreation(t *testing.T) {
	t.Parallel()
	for i := range 20 {
		path := newPath(t)
		cmd := child(t, "create", path, "x", "1")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// A time, because there is no event to wait for: the first ones hit the
		// start of the process, later ones the creation, the last its end.
		time.Sleep(time.Duration(i) * time.Millisecond)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		s := mustOpen(t, path)
		if s.Recovered() != "" || s.Damaged() != 0 || s.Len() > 1 {
			t.Errorf("killed after %d ms: %q, %d damaged, %d wrappers", i, s.Recovered(), s.Damaged(), s.Len())
		}
		must(t)(s.By(store.Human).Create(parse("after", "x")))
		mustClose(t, s)
	}
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
