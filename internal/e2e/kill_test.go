//go:build unix

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
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
	"github.com/hyperbolic-gateway/hb-rest/internal/soak"
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

// Promise 11: what was acknowledged survives kill -9. Four clients create wrappers
// through a hb-rest of their own: each whose creation was acknowledged is there, to
// the byte, nothing is damaged, and the audit trail verifies after each start.
func TestKillDuringCreates(t *testing.T) {
	t.Parallel()
	const clients, each = 4, 40
	kills, random := soak.Rounds(3, 50), dice(t)
	home := filepath.Join(t.TempDir(), "home")
	var mu sync.Mutex
	acknowledged := map[string]string{}
	asked, unanswered := 0, 0
	for round := range kills {
		p := startDaemon(t, home)
		verified(t, home)
		callers := make([]func(func()), clients)
		for c := range callers {
			shim := startShim(t, p, home)
			callers[c] = func(answered func()) {
				defer func() { _ = shim.Close() }()
				for i := 0; ; i++ {
					id := fmt.Sprintf("w.%d.%d.%d", round, c, i)
					doc := string(document(id, "one"))
					r, err := shim.Call("wrap_create", json.RawMessage(`{"wrapper":`+doc+`}`))
					ok := err == nil && strings.HasPrefix(r.Text(), "Created "+id)
					mu.Lock()
					if asked++; ok {
						acknowledged[id] = doc
					} else {
						unanswered++
					}
					mu.Unlock()
					if !ok {
						return
					}
					answered()
				}
			}
		}
		killAmong(t, p, each-random.IntN(20), time.Duration(random.IntN(10_000))*time.Microsecond, callers...)
	}
	p := startDaemon(t, home)
	bad := checkSaved(t, p, acknowledged, nil)
	m, err := p.client.Manifest(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	rows := verified(t, home)
	if len(m.Wrappers) > asked || rows < uint64(len(acknowledged)) || unanswered > kills*clients {
		t.Errorf("%d wrappers and %d rows after %d calls, of which %d failed", len(m.Wrappers), rows, asked, unanswered)
	}
	soak.Measured(t, "%d kills among %d wrap_create calls: %d acknowledged, %d lost or damaged; %d without an answer, %d of these saved; %d rows, all verify",
		kills, asked, len(acknowledged), bad, unanswered, len(m.Wrappers)-len(acknowledged), rows)
}

// A caller calls its own wrapper without a pause and notes when it was answered.
type caller struct {
	id       string
	write    bool
	arrived  atomic.Int64 // requests that reached the API
	answered []time.Time
}

// Promise 11: acknowledged rows survive kill -9. Eight callers call, half of them
// writes: the trail verifies after each start, every write that left this machine
// is in it, and what is missing of the reads is the last moment before the kill.
func TestKillDuringCalls(t *testing.T) {
	t.Parallel()
	each := soak.Rounds(120, 300) // answers before a kill; auditRows sees a thousand rows
	kills, random := soak.Rounds(3, 50), dice(t)
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
	var reads, writes, missing, unknown, unsent, lost int
	var oldest time.Duration
	last := uint64(0) // the newest row that was looked at
	for round := range kills {
		calls := make([]func(func()), len(callers))
		for i, c := range callers {
			c.answered = nil
			c.arrived.Store(0)
			calls[i] = func(answered func()) {
				for {
					if _, err := p.client.Run(t.Context(), &api.RunRequest{ID: c.id}); err != nil {
						return // the kill
					}
					c.answered = append(c.answered, time.Now())
					answered()
				}
			}
		}
		killed := killAmong(t, p, each+random.IntN(20), time.Duration(random.IntN(5_000))*time.Microsecond, calls...)

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
			answered, arrived := len(c.answered), int(c.arrived.Load())
			if answered > arrived {
				t.Errorf("round %d: %d calls of %s were answered, %d arrived", round, answered, c.id, arrived)
			}
			if !c.write {
				reads += answered
				// Rows are written in the order of the answers: the last ones are missing.
				if n := answered - rows[c.id]; n > 0 {
					lost += n
					oldest = max(oldest, killed.Sub(c.answered[answered-n]))
				}
				continue
			}
			writes += answered
			if n := arrived - rows[c.id]; n > 0 {
				missing += n
				t.Errorf("round %d: %d writes of %s arrived, %d rows", round, arrived, c.id, rows[c.id])
			} else {
				unsent -= n // intents of which nothing was sent
			}
		}
	}
	// 20 ms, and as long as the disk takes for the group before.
	if oldest > 2*time.Second {
		t.Errorf("the row of a call that was answered %v before a kill is missing", oldest)
	}
	soak.Measured(t, "%d kills among %d writes and %d reads: %d writes without a row, %d of unknown outcome, %d rows of what was not sent; %d rows of reads lost, the oldest %v before its kill",
		kills, writes, reads, missing, unknown, unsent, lost, oldest.Round(time.Millisecond/10))
}
