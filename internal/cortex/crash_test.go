package cortex_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/cortex"
	"github.com/hyperbolic-gateway/hb-rest/internal/soak"
)

// childEnv makes this test binary index without end instead of testing.
const childEnv = "CORTEX_TEST_CHILD"

func TestMain(m *testing.M) {
	if path := os.Getenv(childEnv); path != "" {
		os.Exit(indexForEver(path, os.Args[1]))
	}
	os.Exit(m.Run())
}

// indexForEver adds pages, replaces and forgets some, keeps the file small so
// that the oldest go, and prints the number of each page once it is stored.
func indexForEver(path, from string) int {
	x := cortex.Open(path, cortex.Options{MaxBytes: 1_500_000, Idle: 3 * time.Millisecond})
	n, _ := strconv.Atoi(from)
	c := newCorpus()
	for ; ; n++ {
		p := c.page(n, 1+n%3)
		p.Wrapper, p.At = "child", now.Add(time.Duration(n)*time.Second)
		p.Text += fmt.Sprintf("\n\nnumber_%d", n)
		changing := page("changing", "1", fmt.Sprintf("version_%d", n))
		if _, err := x.Add(context.Background(), []cortex.Page{p, changing}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		fmt.Println(n)
		if n%10 == 9 {
			if _, err := x.Forget(context.Background(), cortex.Filter{Wrapper: "changing"}); err != nil {
				fmt.Fprintln(os.Stderr, err)
				return 1
			}
		}
		if n%40 == 39 {
			time.Sleep(5 * time.Millisecond) // so that the file is closed and opened too
		}
	}
}

// Promise 11 for the cortex: a process that indexes is killed at random moments,
// 200 times in a long run, and what it leaves is sound, with every page whose
// storing was said.
func TestKilledWhileIndexing(t *testing.T) {
	kills := soak.Rounds(8, 200)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "cortex.db")
	last, withLog, acknowledged := -1, 0, 0
	slowest := time.Duration(0) // to open what was left, and to look
	rnd := rand.New(rand.NewPCG(1, 11))
	for range kills {
		cmd := exec.Command(self, strconv.Itoa(last+1))
		cmd.Env = append(os.Environ(), childEnv+"="+path)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		said := make(chan int, 1)
		go func() {
			last := -1
			for sc := bufio.NewScanner(out); sc.Scan(); {
				if n, err := strconv.Atoi(sc.Text()); err == nil {
					last = n
					select {
					case said <- n:
					default:
					}
				}
			}
			said <- last // blocks until the first is taken
			close(said)
		}()
		first := <-said
		if first < 0 {
			t.Fatal("the child stored nothing")
		}
		time.Sleep(time.Duration(rnd.IntN(60_000)) * time.Microsecond) // the moment of the kill is what varies
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for n := range said {
			last = max(last, n)
		}
		acknowledged += last - first + 1
		_ = cmd.Wait()
		if st, err := os.Stat(path + "-wal"); err == nil && st.Size() > 0 {
			withLog++
		}
		begun := time.Now()
		lookAfterKill(t, path, max(first, last-9), last)
		slowest = max(slowest, time.Since(begun))
		if t.Failed() {
			return
		}
	}
	soak.Measured(t, "%d kills, %d with a log to read again; %d pages acknowledged, 0 lost, 0 check errors, 0 files set aside; slowest look %v",
		kills, withLog, acknowledged, slowest.Round(time.Millisecond))
}

// lookAfterKill looks for the pages whose storing was said last; older ones may
// have made room.
func lookAfterKill(t *testing.T, path string, from, to int) {
	t.Helper()
	x := cortex.Open(path, cortex.Options{})
	for n := from; n <= to; n++ {
		if got := keys(t, x, cortex.Query{Text: fmt.Sprintf(`"number_%d"`, n)}); len(got) != 1 || got[0] != strconv.Itoa(n) {
			t.Errorf("page %d, which was stored, the last being %d: found %v", n, to, got)
		}
	}
	s, err := x.Stats(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if s.Recovered != "" {
		t.Errorf("Recovered: %s", s.Recovered)
	}
	if err := x.Close(); err != nil {
		t.Error(err)
	}
	for _, n := range files(t, path) {
		if strings.Contains(n, "damaged") {
			t.Errorf("set aside: %s", n)
		}
	}
	check(t, path)
}
