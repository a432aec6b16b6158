//go:build unix

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/e2e/stdio"
)

// hbrestd runs a command of the daemon in home and returns what it printed and
// its exit code.
func hbrestd(t *testing.T, home string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	dir, err := build()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(dir, "hbrestd"), args...)
	cmd.Env = []string{"HB_WRAP_HOME=" + home}
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// verified asks whether the audit trail verifies and how many rows it has.
func verified(t *testing.T, home string) (rows uint64) {
	t.Helper()
	out, errs, code := hbrestd(t, home, "audit", "verify", "--json")
	var r struct {
		OK   bool
		Rows uint64
	}
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != 0 || !r.OK {
		t.Fatalf("audit verify: exit code %d, %v\n%s%s", code, err, out, errs)
	}
	return r.Rows
}

// auditRows are the rows after a number, of the newest thousand.
func auditRows(t *testing.T, home string, after uint64) []api.AuditRow {
	t.Helper()
	out, errs, code := hbrestd(t, home, "audit", "-n", "1000", "--json")
	var page api.AuditPage
	if err := json.Unmarshal([]byte(out), &page); err != nil || code != 0 {
		t.Fatalf("audit: exit code %d, %v\n%s", code, err, errs)
	}
	if len(page.Rows) == 1000 && page.Rows[0].Seq > after+1 {
		t.Fatalf("rows %d to %d are out of sight", after+1, page.Rows[0].Seq-1)
	}
	return slices.DeleteFunc(page.Rows, func(r api.AuditRow) bool { return r.Seq <= after })
}

// startShim starts a hb-rest for a daemon, without generated tools unless env,
// which wins, says so.
func startShim(t *testing.T, p *process, home string, env ...string) *stdio.Client {
	t.Helper()
	dir, err := build()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(dir, "hb-rest"))
	cmd.Env = append([]string{"HOME=" + home, "HB_WRAP_TOKEN_FILE=" + filepath.Join(home, "wrap", "token"), "HB_WRAP_URL=" + p.url, "HB_WRAP_MAX_TOOLS=0"}, env...)
	c, err := stdio.Start(cmd, "2025-11-25")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A thousand wrap_create calls of four clients, and ten kills of the daemon
// among them: each wrapper whose creation was acknowledged is there, to the
// byte, nothing is damaged, and the audit trail verifies after each start.
func TestKillDuringCreates(t *testing.T) {
	t.Parallel()
	const creates, kills, clients = 1000, 10, 4
	home := filepath.Join(t.TempDir(), "home")
	var mu sync.Mutex
	acknowledged := map[string]string{}
	asked, unanswered := 0, 0
	for round := range kills {
		p := startDaemon(t, home)
		verified(t, home)
		ctx, cancel := context.WithCancel(t.Context())
		killAt := (round+1)*creates/kills - rand.IntN(20)
		enough := make(chan struct{})
		var once sync.Once
		var wg sync.WaitGroup
		for c := range clients {
			shim := startShim(t, p, home)
			wg.Go(func() {
				defer func() { _ = shim.Close() }()
				for i := 0; ctx.Err() == nil; i++ {
					id := fmt.Sprintf("w.%d.%d.%d", round, c, i)
					doc := string(document(id, "one"))
					r, err := shim.Call("wrap_create", json.RawMessage(`{"wrapper":`+doc+`}`))
					mu.Lock()
					asked++
					ok := err == nil && strings.HasPrefix(r.Text(), "Created "+id)
					if ok {
						acknowledged[id] = doc
					} else {
						unanswered++
					}
					if asked >= killAt {
						once.Do(func() { close(enough) })
					}
					mu.Unlock()
					if !ok {
						return
					}
				}
			})
		}
		select {
		case <-enough:
		case <-time.After(2 * time.Minute):
			t.Errorf("only %d calls in two minutes", asked)
		}
		p.kill()
		cancel()
		wg.Wait()
	}
	p := startDaemon(t, home)
	checkSaved(t, p, acknowledged, nil)
	m, err := p.client.Manifest(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	rows := verified(t, home)
	if len(m.Wrappers) > asked || asked < creates-20 {
		t.Errorf("%d wrappers after %d calls", len(m.Wrappers), asked)
	}
	t.Logf("%d kills among %d wrap_create calls: %d acknowledged and all there, %d without an answer, %d of these saved; %d rows verify",
		kills, asked, len(acknowledged), unanswered, len(m.Wrappers)-len(acknowledged), rows)
}

// A caller calls its own wrapper without a pause and notes when it was answered.
type caller struct {
	id       string
	write    bool
	arrived  atomic.Int64 // requests that reached the API
	answered []time.Time
}

// A thousand calls of eight callers, half of them writes, and eight kills of
// the daemon among them: the trail verifies after each start, every write that
// left this machine is in it, and what is missing of the reads is the last
// moment before the kill.
func TestKillDuringCalls(t *testing.T) {
	t.Parallel()
	const calls, kills = 1000, 8
	home := filepath.Join(t.TempDir(), "home")
	callers := make([]*caller, 8)
	byPath := map[string]*caller{}
	for i := range callers {
		c := &caller{id: fmt.Sprintf("c%d", i), write: i%2 == 0}
		callers[i], byPath["/"+c.id] = c, c
	}
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		byPath[r.URL.Path].arrived.Add(1)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"ok":1}`)
	}))
	t.Cleanup(up.Close)
	p := startDaemon(t, home, "HB_WRAP_ALLOW_PRIVATE=1")
	for _, c := range callers {
		method := "GET"
		if c.write {
			method = "POST"
		}
		doc := fmt.Sprintf(`{"schemaVersion":1,"id":%q,"request":{"method":%q,"url":"%s/%s"}}`, c.id, method, up.URL, c.id)
		if _, err := p.client.Change(t.Context(), &api.ChangeRequest{Action: "create", Wrapper: []byte(doc)}); err != nil {
			t.Fatal(err)
		}
	}
	var done atomic.Int64 // calls that were answered
	var lost, unknown, unsent int
	var oldest time.Duration
	last := uint64(0) // the newest row that was looked at
	for round := range kills {
		killAt := int64((round+1)*calls/kills + rand.IntN(20))
		enough := make(chan struct{})
		var once sync.Once
		var wg sync.WaitGroup
		for _, c := range callers {
			c.answered = nil
			c.arrived.Store(0)
			wg.Go(func() {
				for {
					if _, err := p.client.Run(t.Context(), &api.RunRequest{ID: c.id}); err != nil {
						return // the kill
					}
					c.answered = append(c.answered, time.Now())
					if done.Add(1) >= killAt {
						once.Do(func() { close(enough) })
					}
				}
			})
		}
		select {
		case <-enough:
		case <-time.After(2 * time.Minute):
			t.Errorf("only %d calls in two minutes", done.Load())
		}
		killed := time.Now()
		p.kill()
		wg.Wait()

		p = startDaemon(t, home, "HB_WRAP_ALLOW_PRIVATE=1")
		verified(t, home)
		rows := map[string]int{}
		for _, r := range auditRows(t, home, last) {
			last = r.Seq
			if r.Kind != "run" {
				continue
			}
			rows[r.Wrapper]++
			if r.Outcome == "unknown" {
				unknown++
			}
		}
		for _, c := range callers {
			switch missing := len(c.answered) - rows[c.id]; {
			case c.write && rows[c.id] < int(c.arrived.Load()):
				t.Errorf("round %d: %d writes of %s arrived, %d rows", round, c.arrived.Load(), c.id, rows[c.id])
			case c.write:
				unsent += rows[c.id] - int(c.arrived.Load()) // intents of which nothing was sent
			case missing > 0:
				// Rows are written in the order of the answers: the last ones are missing.
				lost += missing
				oldest = max(oldest, killed.Sub(c.answered[len(c.answered)-missing]))
			}
		}
	}
	// 5 ms, and as long as the disk takes for the group before.
	if oldest > 2*time.Second {
		t.Errorf("the row of a call that was answered %v before a kill is missing", oldest)
	}
	t.Logf("%d kills among %d calls: no write is missing (%d of unknown outcome, %d intents without a request); %d rows of reads lost, the oldest %v before its kill",
		kills, done.Load(), unknown, unsent, lost, oldest.Round(time.Millisecond/10))
}
