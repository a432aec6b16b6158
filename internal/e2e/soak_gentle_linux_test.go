package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/e2e/stdio"
	"github.com/hyperbolic-gateway/hb-rest/internal/soak"
)

// A gauge is what one process had at each look.
type gauge struct {
	name        string
	pid         int
	mapped      int64   // bytes by which what it has of mapped files may grow
	memory      []int64 // bytes of its own
	files       []int64 // bytes of mapped files, which are the system's to take back
	descriptors []int64
	threads     []int64
}

func (g *gauge) look(t *testing.T) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", g.pid))
	if err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]*[]int64{"RssAnon": &g.memory, "RssFile": &g.files} {
		m := regexp.MustCompile(name + `:\s+(\d+) kB`).FindSubmatch(status)
		if m == nil {
			t.Fatalf("no %s in\n%s", name, status)
		}
		kb, err := strconv.ParseInt(string(m[1]), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		*to = append(*to, kb<<10)
	}
	g.descriptors = append(g.descriptors, int64(descriptors(g.pid)))
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", g.pid))
	if err != nil {
		t.Fatal(err)
	}
	g.threads = append(g.threads, int64(len(tasks)))
}

// ends are the medians of the first and of the last quarter.
func ends(of []int64) (first, last int64) {
	n := max(len(of)/4, 1)
	return middleOf(of[:n]), middleOf(of[len(of)-n:])
}

func middleOf(of []int64) int64 {
	of = slices.Sorted(slices.Values(of))
	return of[len(of)/2]
}

// sizes are the bytes of the wrapper store and of all files of the trail.
func sizes(t *testing.T, home string) (store, trail int64) {
	t.Helper()
	err := filepath.WalkDir(home, func(path string, e os.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		switch name := e.Name(); {
		case strings.HasPrefix(name, "audit"):
			trail += info.Size()
		case strings.HasSuffix(name, ".db"):
			store += info.Size()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return store, trail
}

// Promise 25: half an hour at fifty calls a second, reads and writes, half of them
// through two hb-rest. No call fails, each answer is right, and nothing piles up:
// between the first quarter after the warm-up and the last, the memory of each
// process grows by 5 % or 4 MiB at most, its descriptors stay within five, and the
// daemon's goroutines are as many as those of a daemon that has seen two calls; the
// wrapper store keeps its size, and the trail grows with its rows, of which each
// call has one. What a process has of mapped files is told apart: the daemon maps
// the newest file of the trail, so its resident memory rises with that by up to
// 16 MiB and falls when the next file begins.
func TestGentleLoad(t *testing.T) {
	const lanes, pace = 4, 80 * time.Millisecond // fifty calls a second
	lasts, warm, every := soak.Time(2*time.Second, 30*time.Minute), soak.Time(500*time.Millisecond, 2*time.Minute), soak.Time(100*time.Millisecond, 10*time.Second)
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"items":[{"n":%s,"text":"some text of a record"}]}`, r.URL.Query().Get("n"))
	}))
	t.Cleanup(up.Close)
	start := func() *desk {
		d := newDesk(t)
		for _, method := range []string{"GET", "POST"} {
			doc := fmt.Sprintf(`{"schemaVersion":1,"id":%q,"name":"Gentle","request":{"method":%q,"url":"%s/","query":{"n":"{{n}}"}},
			 "inputSchema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]},
			 "response":{"schemaVersion":1,"select":"$.items","fields":{"N":"n","Text":"text"},"record":{"n":"n"}}}`, method, method, up.URL)
			if _, err := d.client.Change(t.Context(), &api.ChangeRequest{Action: "create", Wrapper: []byte(doc)}); err != nil {
				t.Fatal(err)
			}
		}
		return d
	}
	bridge := func(d *desk) func(string, int) (string, error) {
		return func(id string, n int) (string, error) {
			r, err := d.client.Run(t.Context(), &api.RunRequest{ID: id, Args: json.RawMessage(fmt.Sprintf(`{"n":%d}`, n)), Format: "json"})
			if err != nil {
				return "", err
			}
			return string(r.Records), nil
		}
	}
	d := start()
	gauges := []*gauge{{name: "hbrestd", pid: d.cmd.Process.Pid, mapped: 17 << 20}}
	call := make([]func(id string, n int) (string, error), lanes)
	for i := range call {
		if i%2 == 0 {
			call[i] = bridge(d)
			continue
		}
		cmd := exec.Command(filepath.Join(binDir, "hb-rest"))
		cmd.Env = []string{"HOME=" + d.home, "HB_WRAP_TOKEN_FILE=" + filepath.Join(d.home, "wrap", "token"), "HB_WRAP_URL=" + d.url}
		shim, err := stdio.Start(cmd, "2025-11-25")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = shim.Close() })
		gauges = append(gauges, &gauge{name: "hb-rest", pid: cmd.Process.Pid, mapped: 4 << 20})
		call[i] = func(id string, n int) (string, error) {
			r, err := shim.Call("wrap_run", json.RawMessage(fmt.Sprintf(`{"id":%q,"args":{"n":%d},"format":"json"}`, id, n)))
			if err != nil {
				return "", err
			}
			return r.Text() + r.RPCError, nil
		}
	}

	var calls, wrong atomic.Int64
	took := make([][]time.Duration, lanes)
	begun := time.Now()
	var wg sync.WaitGroup
	for i := range call {
		wg.Go(func() {
			tick := time.NewTicker(pace)
			defer tick.Stop()
			for k := 0; time.Since(begun) < lasts; k++ {
				<-tick.C
				n, id := 9007199254740993+i*10_000_000+k, []string{"GET", "POST"}[k%2]
				begin := time.Now()
				got, err := call[i](id, n)
				took[i] = append(took[i], time.Since(begin))
				calls.Add(1)
				if want := fmt.Sprintf(`[{"n":%d}]`, n); err != nil || got != want {
					if wrong.Add(1) <= 5 {
						t.Errorf("lane %d, %s: %v, %.200s, want %s", i, id, err, got, want)
					}
				}
			}
		})
	}
	time.Sleep(warm)
	store, trail := sizes(t, d.home)
	rows := verified(t, d.home)
	for tick := time.Tick(every); time.Since(begun) < lasts; <-tick {
		for _, g := range gauges {
			g.look(t)
		}
	}
	wg.Wait()
	whole := time.Since(begun)

	rows = verified(t, d.home) - rows
	storeNow, trailNow := sizes(t, d.home)
	// Files grow by 256 KiB at a time. A row is about 170 bytes (internal/audit); half
	// as much again is room for a file that is not full.
	const step = 256 << 10
	if grown := storeNow - store; grown > step {
		t.Errorf("the wrapper store grew by %d bytes", grown)
	}
	if grown := trailNow - trail; grown > int64(rows)*255+2*step {
		t.Errorf("the trail grew by %d bytes with %d rows", grown, rows)
	}
	recorded := int64(0)
	allRows(t, d.home, func(r api.AuditRow) {
		if r.Kind == "run" && r.Status == 200 && r.Error == "" && r.Outcome == "" {
			recorded++
		}
	})
	if recorded != calls.Load() {
		t.Errorf("%d calls, the trail has %d", calls.Load(), recorded)
	}
	if n := calls.Load(); soak.Long() && float64(n) < 40*whole.Seconds() { // a ticker drops what comes too late
		t.Errorf("only %d calls in %v", n, whole)
	}
	var said []string
	for _, g := range gauges {
		memory, memoryNow := ends(g.memory)
		if memoryNow-memory > max(memory/20, 4<<20) {
			t.Errorf("%s: %d bytes of memory in the first quarter, %d in the last", g.name, memory, memoryNow)
		}
		if least, most := slices.Min(g.files), slices.Max(g.files); most-least > g.mapped {
			t.Errorf("%s: between %d and %d bytes of mapped files", g.name, least, most)
		}
		files, filesNow := ends(g.files)
		open, openNow := ends(g.descriptors)
		if openNow > open+5 || openNow < open-5 {
			t.Errorf("%s: %d descriptors in the first quarter, %d in the last", g.name, open, openNow)
		}
		threads, threadsNow := ends(g.threads)
		mib := func(n int64) float64 { return float64(n) / (1 << 20) }
		said = append(said, fmt.Sprintf("%s %.1f then %.1f MiB of its own, %.1f then %.1f MiB of mapped files, %d then %d descriptors, %d then %d threads",
			g.name, mib(memory), mib(memoryNow), mib(files), mib(filesNow), open, openNow, threads, threadsNow))
	}
	// A twin that has answered each question once. What an idle connection needs may
	// differ by as many as call at once, on both sides.
	twin := start()
	for _, id := range []string{"GET", "POST"} {
		if got, err := bridge(twin)(id, 1); err != nil || got != `[{"n":1}]` {
			t.Errorf("the twin: %v, %s", err, got)
		}
	}
	count := func(p *process) (all int) {
		for _, n := range goroutines(t, p) {
			all += n
		}
		return all
	}
	want, got := count(twin.process), count(d.process)
	if got > want+8*lanes || want < 3 {
		t.Errorf("%d goroutines, %d in a daemon that did next to nothing", got, want)
	}
	all := slices.Concat(took...)
	soak.Measured(t, "%v: %d calls, %.0f a second, %d errors or wrong answers, median %v, 99 %% %v; %d answered well in the trail; per row %d bytes, the wrapper store grew by %d",
		whole.Round(time.Second), calls.Load(), float64(calls.Load())/whole.Seconds(), wrong.Load(), quantile(all, 50), quantile(all, 99), recorded, (trailNow-trail)/max(int64(rows), 1), storeNow-store)
	soak.Measured(t, "first and last quarter: %s; %d goroutines in hbrestd at the end, %d in one that has answered two calls", strings.Join(said, "; "), got, want)
}
