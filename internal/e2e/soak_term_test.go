//go:build unix

package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/soak"
)

// Promise 28: a clean stop. SIGTERM while sixteen callers call without a pause,
// half of them writes: each call that has reached the API is answered rightly,
// the others are refused with what to do, the daemon is gone within ten seconds
// with exit code 0, the trail has a row for each request and each has a result,
// and the next daemon starts at once. In every tenth round two more calls hang:
// at ten seconds they are cut, their callers are told so, and they are in the
// trail as well.
func TestTermUnderLoad(t *testing.T) {
	t.Parallel()
	const grace = 10 * time.Second
	rounds, random := soak.Rounds(2, 50), dice(t)
	callers := make([]*caller, 16)
	byPath := map[string]*caller{}
	for i := range callers {
		c := &caller{id: fmt.Sprintf("c%d", i), write: i%2 == 0}
		callers[i], byPath["/"+c.id] = c, c
	}
	hanging := make(chan struct{}, 2)
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // so that the end of the connection is noticed
		c := byPath[r.URL.Path]
		if c == nil {
			hanging <- struct{}{}
			<-r.Context().Done()
			return
		}
		time.Sleep(time.Duration(c.arrived.Add(1)%20) * time.Millisecond) // the API's own time
		_, _ = io.WriteString(w, jsonText)
	}))
	t.Cleanup(up.Close)
	home, env := filepath.Join(t.TempDir(), "home"), "HB_WRAP_ALLOW_PRIVATE=1"
	p := startDaemon(t, home, env)
	save := func(id string, write bool) {
		method := "GET"
		if write {
			method = "POST"
		}
		doc := fmt.Sprintf(`{"schemaVersion":1,"id":%q,"request":{"method":%q,"url":"%s/%s","timeoutMs":45000}}`, id, method, up.URL, id)
		if _, err := p.client.Change(t.Context(), &api.ChangeRequest{Action: "create", Wrapper: []byte(doc)}); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range callers {
		save(c.id, c.write)
	}
	save("hang.read", false)
	save("hang.write", true)

	var answered, cut, refused, unanswered, unrecorded int
	var slowest, slowestStart time.Duration
	last := uint64(0) // the newest row that was looked at
	for round := range rounds {
		hang := round%10 == 9
		var done atomic.Int64
		var mu sync.Mutex // guards told
		told := map[fault.Code]int{}
		refuse := func(id string, err error) {
			f := fault.From(err)
			mu.Lock()
			defer mu.Unlock()
			if told[f.Code]++; f.Code != "SHUTTING_DOWN" && f.Code != "BRIDGE_UNREACHABLE" || f.Hint == "" {
				t.Errorf("round %d: %s was told %v", round, id, f)
			}
		}
		var wg, cuts sync.WaitGroup
		for _, c := range callers {
			c.answered = nil
			c.arrived.Store(0)
			wg.Go(func() {
				for {
					r, err := p.client.Run(t.Context(), &api.RunRequest{ID: c.id})
					if err != nil {
						refuse(c.id, err)
						return
					}
					if string(r.Records) != "["+jsonText+"]" {
						t.Errorf("%s: %s", c.id, r.Records)
					}
					c.answered = append(c.answered, time.Now())
					done.Add(1)
				}
			})
		}
		if hang {
			for _, id := range []string{"hang.read", "hang.write"} {
				cuts.Go(func() {
					if r, err := p.client.Run(t.Context(), &api.RunRequest{ID: id}); err == nil {
						t.Errorf("%s: %s", id, r.Records)
					} else {
						refuse(id, err)
					}
				})
				<-hanging
			}
		}
		for deadline := time.Now().Add(time.Minute); done.Load() < 100; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("round %d: only %d answers in a minute", round, done.Load())
			}
		}
		time.Sleep(time.Duration(random.IntN(20_000)) * time.Microsecond)
		begin := time.Now()
		if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		cuts.Wait()
		err := p.wait()
		took := time.Since(begin)
		if took > grace+time.Second || hang != (took >= grace-time.Second) || err != nil {
			t.Errorf("round %d: ended %v after SIGTERM, %v\n%s", round, took, err, p.stderr)
		}
		if !hang {
			slowest = max(slowest, took)
		}

		begin = time.Now()
		p = startDaemon(t, home, env)
		slowestStart = max(slowestStart, time.Since(begin))
		rows := map[string]int{}
		for _, r := range auditRows(t, home, last) {
			last = r.Seq
			if r.Kind != "run" {
				continue
			}
			rows[r.Wrapper]++
			if byPath["/"+r.Wrapper] != nil && (r.Status != 200 || r.Error != "" || r.Outcome != "") {
				t.Errorf("round %d: row %+v", round, r)
			}
		}
		for _, c := range callers {
			arrived := int(c.arrived.Load())
			answered += len(c.answered)
			if n := arrived - len(c.answered); n != 0 {
				unanswered += n
				t.Errorf("round %d: %d requests of %s arrived, %d were answered", round, arrived, c.id, len(c.answered))
			}
			if n := arrived - rows[c.id]; n != 0 {
				unrecorded += n
				t.Errorf("round %d: %d requests of %s arrived, the trail has %d", round, arrived, c.id, rows[c.id])
			}
		}
		if hang {
			cut += 2
			if rows["hang.read"] != 1 || rows["hang.write"] != 1 {
				t.Errorf("round %d: the trail has %d and %d rows of the calls that hung", round, rows["hang.read"], rows["hang.write"])
			}
		}
		for _, n := range told {
			refused += n
		}
	}
	verified(t, home)
	soak.Measured(t, "%d times SIGTERM under %d callers: %d calls answered, %d that reached the API were not, %d without a row; %d refused with what to do, %d of them cut at 10 s with a row; the slowest stop without these %v, the slowest start after it %v",
		rounds, len(callers), answered, unanswered, unrecorded, refused, cut, slowest.Round(time.Millisecond), slowestStart.Round(time.Millisecond))
}
