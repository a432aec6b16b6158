//go:build unix

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/audit"
	"github.com/hyperbolic-gateway/hb-rest/internal/control"
	"github.com/hyperbolic-gateway/hb-rest/internal/soak"
	"github.com/hyperbolic-gateway/hb-rest/internal/store"
)

// slowestWrite is how long a saved wrapper, or a call that writes, may take while
// a backup is made.
const slowestWrite = 250 * time.Millisecond

// Promise 29: backups are made one after the other while four clients save
// wrappers and two send writes whose rows must be on the disk first. Each backup
// opens in a daemon of its own, has every wrapper that was acknowledged before it
// was begun, and its trail verifies up to the head of its manifest. No write takes
// 250 ms.
func TestBackupsUnderWrites(t *testing.T) {
	t.Parallel()
	backups := soak.Rounds(2, 50)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"ok":true}`)) }))
	defer server.Close()
	filled := soak.Rounds(100, 2000)
	home := scaleHome(t, filled, 10)
	oldRows(t, home, soak.Rounds(0, 20_000))
	p := startDaemon(t, home, "HB_WRAP_ALLOW_PRIVATE=1")
	c := control.NewClient(filepath.Join(home, "control.sock"), control.ClientOptions{})
	writes := &writeTimes{t: t, acknowledged: map[string]bool{}}
	if _, err := c.Manifest(t.Context(), 0); err != nil { // the start reads all documents: not what is measured
		t.Fatal(err)
	}
	post := json.RawMessage(fmt.Sprintf(`{"schemaVersion":1,"id":"write","request":{"method":"POST","url":%q,"body":{"a":1}}}`, server.URL))
	if _, err := c.Change(t.Context(), &api.ChangeRequest{Action: "create", Wrapper: post}); err != nil {
		t.Fatal(err)
	}

	stop := make(chan struct{})
	var callers sync.WaitGroup
	for k := range 4 {
		callers.Go(func() { writes.save(c, k, stop) })
	}
	for range 2 {
		callers.Go(func() { writes.send(c, stop) })
	}
	end := sync.OnceFunc(func() { close(stop); callers.Wait() })
	defer end()

	dir := t.TempDir()
	var made []madeBackup
	for i := range backups {
		m := madeBackup{dir: filepath.Join(dir, strconv.Itoa(i)), had: writes.now()}
		begun := time.Now()
		writes.during(true)
		r, err := c.Backup(t.Context(), &control.BackupRequest{Dir: m.dir})
		writes.during(false)
		if err != nil {
			t.Fatalf("backup %d: %v", i, err)
		}
		if m.took = time.Since(begun); r.AuditProblem != "" {
			t.Errorf("backup %d: %s", i, r.AuditProblem)
		}
		m.head = r.AuditHead
		made = append(made, m)
	}
	end()
	p.kill()

	opened, missing := 0, 0
	longest := time.Duration(0)
	for i, m := range made {
		longest = max(longest, m.took)
		missing += m.check(t, i, filled)
		opened++
		_ = os.RemoveAll(m.dir)
	}
	if writes.inside == 0 || writes.sentInside == 0 {
		t.Errorf("%d saves and %d sent writes began while a backup was made: this says nothing", writes.inside, writes.sentInside)
	}
	if writes.slowest > slowestWrite {
		t.Errorf("a write took %v while a backup was made, want at most %v", writes.slowest, slowestWrite)
	}
	soak.Measured(t, "%d backups of %d wrappers under %d saves and %d sent writes (%d and %d during one): %d opened and verified, %d acknowledged wrappers missing; slowest write during a backup %v, longest backup %v",
		len(made), filled, len(writes.acknowledged), writes.sent, writes.inside, writes.sentInside, opened, missing, writes.slowest.Round(time.Millisecond), longest.Round(time.Millisecond))
}

// writeTimes are writes that go on while backups are made.
type writeTimes struct {
	t *testing.T

	mu           sync.Mutex
	acknowledged map[string]bool // ids
	backup       bool            // one is being made
	inside       int             // saves during a backup
	sentInside   int
	sent         int
	slowest      time.Duration // of those that a backup was made during
}

func (w *writeTimes) during(backup bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.backup = backup
}

// now is what was acknowledged so far.
func (w *writeTimes) now() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	ids := make([]string, 0, len(w.acknowledged))
	for id := range w.acknowledged {
		ids = append(ids, id)
	}
	return ids
}

// measure makes one write; it counts as one during a backup when it began or
// ended in one.
func (w *writeTimes) measure(write func() error) (during bool) {
	w.mu.Lock()
	during = w.backup
	w.mu.Unlock()
	begun := time.Now()
	err := write()
	took := time.Since(begun)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.t.Errorf("a write failed: %v", err)
	}
	if during = during || w.backup; during {
		w.slowest = max(w.slowest, took)
	}
	return during
}

// oldRows gives a home a trail of n rows.
func oldRows(t *testing.T, home string, n int) {
	t.Helper()
	file, err := store.OpenAudit(filepath.Join(home, "wrap", "audit.db"), store.AuditOptions{})
	if err != nil {
		t.Fatal(err)
	}
	log, err := audit.Open(audit.Options{Append: file.Append, Tail: file.Tail, Scan: file.Scan, Size: file.Size, Rotate: file.Rotate})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		log.Result(audit.Row{Kind: audit.KindRun, Call: fmt.Sprintf("%016x", i), Wrapper: "service1.operation1", Method: "GET", Host: "api1.example.com", Status: 200})
	}
	if err := errors.Join(log.Close(), file.Close()); err != nil {
		t.Fatal(err)
	}
}

// between is the pause of one client between two writes: without it the disk, and
// not the backup, would be what is measured.
const between = 10 * time.Millisecond

func (w *writeTimes) save(c *control.Client, k int, stop <-chan struct{}) {
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		case <-time.After(between):
		}
		id := fmt.Sprintf("s.%d.%05d", k, i)
		doc := document(id, "saved")
		during := w.measure(func() error {
			_, err := c.Change(w.t.Context(), &api.ChangeRequest{Action: "create", Wrapper: doc})
			if err == nil {
				w.mu.Lock()
				defer w.mu.Unlock()
				w.acknowledged[id] = true
			}
			return err
		})
		w.mu.Lock()
		if during {
			w.inside++
		}
		w.mu.Unlock()
	}
}

func (w *writeTimes) send(c *control.Client, stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-time.After(between):
		}
		during := w.measure(func() error {
			_, err := c.Run(w.t.Context(), &api.RunRequest{ID: "write"})
			return err
		})
		w.mu.Lock()
		if w.sent++; during {
			w.sentInside++
		}
		w.mu.Unlock()
	}
}

// A madeBackup is one that waits to be looked at.
type madeBackup struct {
	dir  string
	had  []string // acknowledged before it was begun
	head string   // of its manifest
	took time.Duration
}

// check restores the backup into a home of its own and starts a daemon there. It
// returns how many wrappers are missing.
func (m *madeBackup) check(t *testing.T, n, filled int) (missing int) {
	t.Helper()
	home := filepath.Join(t.TempDir(), "home")
	if _, errs, code := hbrestd(t, home, "restore", m.dir, "--yes"); code != 0 {
		t.Fatalf("backup %d: restore: %s", n, errs)
	}
	p := startDaemon(t, home)
	defer func() { p.kill(); _ = os.RemoveAll(home) }()
	if log := p.stderr.String(); strings.Contains(log, "damaged") {
		t.Errorf("backup %d: %s", n, log)
	}
	out, errs, code := hbrestd(t, home, "audit", "verify", "--head", m.head)
	if code != 0 || !strings.Contains(out, "head "+m.head+"; the noted head is in it") {
		t.Errorf("backup %d: audit verify: exit code %d\n%s%s", n, code, out, errs)
	}
	list, err := control.NewClient(filepath.Join(home, "control.sock"), control.ClientOptions{}).Manifest(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	there := make([]string, 0, len(list.Wrappers))
	for _, e := range list.Wrappers {
		if there = append(there, e.ID); e.Damaged != "" {
			t.Errorf("backup %d: %s is damaged: %s", n, e.ID, e.Damaged)
		}
	}
	if len(there) < filled+len(m.had) {
		t.Errorf("backup %d: %d wrappers, want at least %d", n, len(there), filled+len(m.had))
	}
	slices.Sort(there)
	for _, id := range m.had {
		if _, found := slices.BinarySearch(there, id); !found {
			t.Errorf("backup %d: %s is missing", n, id)
			missing++
		}
	}
	return missing
}
