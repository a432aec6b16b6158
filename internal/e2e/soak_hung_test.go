//go:build unix

package e2e

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/soak"
)

// Promise 23: bounded memory and time per call, whatever an API does: 200 calls,
// eight at a time, of APIs that say nothing, one byte a second, headers or chunks
// without end, or 10 kB that become 1 GiB, each with the code of its cause at most
// half a second after its limit, and the daemon grows by less than 64 MiB. Beside
// them four callers of another API notice nothing: each answer is right, and of the
// reads 99 of 100 come within 100 ms; a write waits for the disk as well.
func TestHungAmongHealthy(t *testing.T) {
	const atOnce, beside = 8, 4
	calls, random := soak.Rounds(12, 200), dice(t)
	d := newDesk(t)
	calm := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, jsonText)
	}))
	t.Cleanup(calm.Close)
	for _, method := range []string{"GET", "POST"} {
		d.save("calm."+method, fmt.Sprintf(`{"method":%q,"url":%q}`, method, calm.URL), "")
		d.must("calm."+method, 0)
	}
	kinds := breakdowns(t)
	var hung []int // those that end only by the limit
	for i, b := range kinds {
		if b.code == "UPSTREAM_TIMEOUT" {
			hung = append(hung, i)
		}
		r := newRude(t, b.script)
		if b.script == nil {
			_ = r.Close() // and nothing listens there any more
		}
		for _, method := range []string{"GET", "POST"} {
			d.save(fmt.Sprintf("%s.%d", strings.ToLower(method), i), fmt.Sprintf(`{"method":%q,"url":"%s://%s/","timeoutMs":%d}`, method, cmp.Or(b.scheme, "http"), r.Addr(), limit.Milliseconds()), "")
		}
	}

	var wrong, late atomic.Int64
	complain := func(count *atomic.Int64, format string, args ...any) {
		if count.Add(1) <= 5 {
			t.Errorf(format, args...)
		}
	}
	before := resident(t, d.cmd.Process.Pid, true)
	end := make(chan struct{})
	var healthy sync.WaitGroup
	took := make([][]time.Duration, beside)
	for i := range took {
		id := []string{"calm.GET", "calm.POST"}[i%2]
		healthy.Go(func() {
			for {
				select {
				case <-end:
					return
				case <-time.After(5 * time.Millisecond): // they are not the load
				}
				begin := time.Now()
				r, err := d.client.Run(t.Context(), &api.RunRequest{ID: id})
				took[i] = append(took[i], time.Since(begin))
				if err != nil || string(r.Records) != "["+jsonText+"]" {
					complain(&wrong, "%s: %v %+v", id, err, r)
				}
			}
		})
	}
	var timeouts atomic.Int64
	var slowest [atOnce]time.Duration
	next := make(chan string)
	var wg sync.WaitGroup
	for w := range atOnce {
		wg.Go(func() {
			for id := range next {
				var i int
				if _, err := fmt.Sscanf(id[strings.Index(id, ".")+1:], "%d", &i); err != nil {
					t.Error(err)
				}
				b := kinds[i]
				begin := time.Now()
				_, err := d.client.Run(t.Context(), &api.RunRequest{ID: id})
				took := time.Since(begin)
				slowest[w] = max(slowest[w], took)
				if took > limit+500*time.Millisecond {
					complain(&late, "%s, %s: it took %v", b.name, id, took)
				}
				var f *fault.Error
				switch errors.As(err, &f); {
				case f == nil:
					complain(&wrong, "%s, %s: %v", b.name, id, err)
				case string(f.Code) != b.code && (b.code != "" || f.Code != "UPSTREAM_CONNECT" && f.Code != "RESPONSE_INCOMPLETE"):
					complain(&wrong, "%s, %s: %s, want %s", b.name, id, f.Code, b.code)
				case f.Code == "UPSTREAM_TIMEOUT":
					timeouts.Add(1)
				}
			}
		})
	}
	for n := range calls {
		i := random.IntN(len(kinds))
		if n%2 == 0 {
			i = hung[random.IntN(len(hung))]
		}
		next <- fmt.Sprintf("%s.%d", []string{"get", "post"}[random.IntN(2)], i)
	}
	close(next)
	wg.Wait()
	close(end)
	healthy.Wait()
	grown := resident(t, d.cmd.Process.Pid, false) - before
	if grown >= 64<<20 {
		t.Errorf("the daemon grew by %d MiB", grown>>20)
	}
	reads, writes := slices.Concat(took[0], took[2]), slices.Concat(took[1], took[3])
	if p99 := quantile(reads, 99); p99 >= 100*time.Millisecond {
		t.Errorf("99 %% of the reads of the healthy API within %v", p99)
	}
	var worst time.Duration
	for _, of := range slowest {
		worst = max(worst, of)
	}
	soak.Measured(t, "%d calls of broken APIs in %d ways, %d at once: %d ended by their limit of %v, %d over it by more than 0.5 s, the slowest %v; beside them %d reads of a healthy one, median %v, 99 %% %v, and %d writes, median %v, 99 %% %v; %d wrong answers or codes; the daemon grew by %d MiB",
		calls, len(kinds), atOnce, timeouts.Load(), limit, late.Load(), worst.Round(time.Millisecond), len(reads), quantile(reads, 50), quantile(reads, 99), len(writes), quantile(writes, 50), quantile(writes, 99), wrong.Load(), grown>>20)
}
