//go:build unix

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/e2e/stdio"
	"github.com/hyperbolic-gateway/hb-rest/internal/soak"
)

// A ledger is an API that answers with the number it is sent and remembers how
// often each was put.
type ledger struct {
	url string
	mu  sync.Mutex // guards put
	put map[string]int
}

func newLedger(t *testing.T) *ledger {
	t.Helper()
	l := &ledger{put: map[string]int{}}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		n := r.URL.Query().Get("n")
		if r.Method == http.MethodPut {
			l.mu.Lock()
			l.put[n]++
			l.mu.Unlock()
		}
		if i, err := strconv.Atoi(n); err == nil {
			time.Sleep(time.Duration(i%5) * time.Millisecond) // the API's own time
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"n":%s}`, n)
	}))
	t.Cleanup(s.Close)
	l.url = s.URL
	return l
}

// of is how often a number was put.
func (l *ledger) of(n int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.put[strconv.Itoa(n)]
}

// A told is what a write was told.
type told struct {
	n                int
	right, retryable bool
}

// A restartClient calls through a hb-rest of its own.
type restartClient struct {
	*stdio.Client
	pid         int
	read, write string          // its wrappers
	good        [2]atomic.Int64 // reads and writes that were answered rightly
	writes      []told
	slowest     time.Duration
}

// The first line is the code and the sentence, the next what to do.
var refusal = regexp.MustCompile(`\A(BRIDGE_UNREACHABLE|SHUTTING_DOWN): [^\n]+\nHint: [^\n]+\nRetryable: (yes|no)\n?\z`)

// Promise 26: a shim's next call after a restart works with the new token. Eight
// hb-rest call without a pause, reads and writes in turn, while the daemon is
// stopped and killed in turn and started again. An answer is right, or one of two
// refusals that say what to do; a call that begins once the daemon listens and
// ends before it is stopped is never refused; none takes half a second more than
// its limit; a write is carried out once when it is acknowledged, at most once
// when it is not, and never when the refusal says that it may be repeated; and
// the trail has a row for each that arrived. After all of it a shim has as many
// descriptors as before, within five.
func TestRestartsUnderShims(t *testing.T) {
	t.Parallel()
	const shims, limit = 8, 2 * time.Second
	rounds, random := soak.Rounds(2, 100), dice(t)
	book := newLedger(t)
	home, env := filepath.Join(t.TempDir(), "home"), []string{"HB_WRAP_ALLOW_PRIVATE=1", "HB_WRAP_ADDR=" + fixedAddr(t)}
	p := startDaemon(t, home, env...)
	clients := make([]*restartClient, shims)
	for i := range clients {
		cmd := exec.Command(filepath.Join(binDir, "hb-rest"))
		cmd.Env = []string{"HOME=" + home, "HB_WRAP_TOKEN_FILE=" + filepath.Join(home, "wrap", "token"), "HB_WRAP_URL=" + p.url}
		shim, err := stdio.Start(cmd, "2025-11-25")
		if err != nil {
			t.Fatal(err)
		}
		c := &restartClient{Client: shim, pid: cmd.Process.Pid, read: fmt.Sprintf("read.%d", i), write: fmt.Sprintf("write.%d", i)}
		t.Cleanup(func() { _ = c.Close() })
		clients[i] = c
		for id, method := range map[string]string{c.read: "GET", c.write: "PUT"} {
			doc := fmt.Sprintf(`{"schemaVersion":1,"id":%q,"request":{"method":%q,"url":"%s/","query":{"n":"{{n}}"},"timeoutMs":%d},
			 "inputSchema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}}`, id, method, book.url, limit.Milliseconds())
			if _, err := p.client.Change(t.Context(), &api.ChangeRequest{Action: "create", Wrapper: []byte(doc)}); err != nil {
				t.Fatal(err)
			}
		}
	}

	var (
		age           atomic.Int64 // even: the daemon listens and nobody has stopped it; odd: between
		done          atomic.Bool
		calls, failed atomic.Int64
		wrong, late   atomic.Int64
		wg            sync.WaitGroup
	)
	complain := func(count *atomic.Int64, format string, args ...any) {
		if count.Add(1) <= 5 {
			t.Errorf(format, args...)
		}
	}
	for i, c := range clients {
		wg.Go(func() {
			for k := 0; !done.Load(); k++ {
				n, id := 9007199254740993+i*10_000_000+k, c.read
				if k%2 == 1 {
					id = c.write
				}
				before, begin := age.Load(), time.Now()
				r, err := c.Call("wrap_run", json.RawMessage(fmt.Sprintf(`{"id":%q,"args":{"n":%d},"format":"json"}`, id, n)))
				took, after := time.Since(begin), age.Load()
				calls.Add(1)
				c.slowest = max(c.slowest, took)
				if took > limit+500*time.Millisecond {
					complain(&late, "%s took %v", id, took)
				}
				if err != nil {
					complain(&wrong, "%s: %v", id, err)
					return
				}
				m := refusal.FindStringSubmatch(r.Text())
				right := !r.IsError && r.RPCError == "" && r.Text() == fmt.Sprintf(`[{"n":%d}]`, n)
				switch {
				case right:
					c.good[k%2].Add(1)
				case m == nil || !r.IsError:
					complain(&wrong, "%s: %s%s", id, r.Text(), r.RPCError)
				case before == after && before%2 == 0:
					complain(&wrong, "%s, while the daemon was there all the time: %s", id, r.Text())
				}
				if id == c.write {
					c.writes = append(c.writes, told{n, right, m != nil && m[2] == "yes"})
				}
				if !right {
					failed.Add(1)
					time.Sleep(2 * time.Millisecond) // the clients are not what is tried
				}
			}
		})
	}
	defer wg.Wait()
	defer done.Store(true) // whatever fails
	served := func() {     // each has been answered anew, a read and a write
		var from [shims][2]int64
		for i, c := range clients {
			from[i] = [2]int64{c.good[0].Load(), c.good[1].Load()}
		}
		deadline := time.Now().Add(time.Minute)
		for i := 0; i < shims; {
			if c := clients[i]; c.good[0].Load() > from[i][0] && c.good[1].Load() > from[i][1] {
				i++
			} else if time.Now().After(deadline) {
				t.Fatalf("shim %d got no answer any more", i)
			} else {
				time.Sleep(time.Millisecond)
			}
		}
	}
	open := make([]int, shims)
	for round := range rounds {
		served()
		if round == 0 {
			for i, c := range clients {
				open[i] = descriptors(c.pid)
			}
		}
		time.Sleep(time.Duration(random.IntN(20_000)) * time.Microsecond)
		age.Add(1)
		if round%2 == 0 {
			stop(t, p)
		} else {
			p.kill()
		}
		p = startDaemon(t, home, env...)
		age.Add(1)
	}
	served()
	most := 0
	for i, c := range clients {
		more := descriptors(c.pid) - open[i]
		if most = max(most, more); more > 5 {
			t.Errorf("%s: %d descriptors more than before the first restart", c.read, more)
		}
	}
	done.Store(true)
	wg.Wait()

	verified(t, home)
	rows := map[string]int{}
	allRows(t, home, func(r api.AuditRow) {
		if r.Kind == "run" {
			rows[r.Wrapper]++
		}
	})
	var acknowledged, lost, twice, unrecorded int
	var slowest time.Duration
	for _, c := range clients {
		arrived := 0
		slowest = max(slowest, c.slowest)
		for _, w := range c.writes {
			n := book.of(w.n)
			arrived += n
			switch {
			case w.right && n == 0 || w.retryable && n > 0:
				lost++
				t.Errorf("%s of %d: %+v, and it arrived %d times", c.write, w.n, w, n)
			case n > 1:
				twice++
				t.Errorf("%s of %d arrived %d times", c.write, w.n, n)
			}
			if w.right {
				acknowledged++
			}
		}
		if rows[c.write] < arrived {
			unrecorded += arrived - rows[c.write]
			t.Errorf("%s: %d requests arrived, the trail has %d", c.write, arrived, rows[c.write])
		}
	}
	soak.Measured(t, "%d restarts, every other by kill -9, under %d hb-rest: %d calls, %d refused with what to do, %d wrong, %d late, the slowest %v; %d writes acknowledged, %d not carried out or falsely called repeatable, %d carried out twice, %d without a row; a hb-rest has at most %d descriptors more at the end",
		rounds, shims, calls.Load(), failed.Load(), wrong.Load(), late.Load(), slowest.Round(time.Millisecond), acknowledged, lost, twice, unrecorded, most)
}

// fixedAddr is an address that is free and stays so while nobody listens there:
// the system hands out ports from 32768 on by itself.
func fixedAddr(t *testing.T) string {
	t.Helper()
	for range 100 {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 20000+rand.IntN(10000)))
		if err == nil {
			defer l.Close()
			return l.Addr().String()
		}
	}
	t.Fatal("no free port from 20000 to 30000")
	return ""
}
