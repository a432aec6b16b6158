//go:build unix

package e2e

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
)

// D34: a row that was edited in the file of a stopped daemon, taken out of it,
// or put in another's place: `audit verify` says no and names the row; the last
// row taken out shows by a head that was noted before.
func TestEditedAuditRow(t *testing.T) {
	t.Parallel()
	home := filepath.Join(t.TempDir(), "home")
	p := startDaemon(t, home)
	for i := range 20 {
		id := fmt.Sprintf("wrapper.%02d", i)
		if _, err := p.client.Change(t.Context(), &api.ChangeRequest{Action: "create", Wrapper: document(id, "one")}); err != nil {
			t.Fatal(err)
		}
	}
	stop(t, p)
	p = startDaemon(t, home) // and its rows are on the disk
	head, _, code := hbrestd(t, home, "audit", "head")
	head = strings.TrimSpace(head)
	if code != 0 || verified(t, home) < 20 {
		t.Fatalf("head: exit code %d, %s", code, head)
	}
	stop(t, p)
	file := filepath.Join(home, "wrap", "audit.db")
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var last uint64
	if _, err := fmt.Sscanf(head, "%d:", &last); err != nil {
		t.Fatal(err)
	}
	const edited = 9
	key := func(seq uint64) []byte { return binary.BigEndian.AppendUint64(nil, seq) }
	tests := map[string]struct {
		change func(rows *bbolt.Bucket) error
		bad    uint64 // the row that is named; 0: none, the noted head is missed
	}{
		"one letter": {func(rows *bbolt.Bucket) error {
			row := bytes.Clone(rows.Get(key(edited)))
			at := bytes.Index(row, []byte("wrapper."))
			if at < 0 {
				return fmt.Errorf("row %d names no wrapper: %q", edited, row)
			}
			row[at] = 'W'
			return rows.Put(key(edited), row)
		}, edited},
		"taken out": {func(rows *bbolt.Bucket) error { return rows.Delete(key(edited)) }, edited},
		"another's place": {func(rows *bbolt.Bucket) error {
			return rows.Put(key(edited), bytes.Clone(rows.Get(key(edited+1))))
		}, edited},
		"cut short":     {func(rows *bbolt.Bucket) error { return rows.Put(key(edited), rows.Get(key(edited))[:10]) }, edited},
		"the last ones": {func(rows *bbolt.Bucket) error { return rows.Delete(key(last)) }, 0},
	}
	for name, tt := range tests {
		if err := os.WriteFile(file, whole, 0o600); err != nil {
			t.Fatal(err)
		}
		db, err := bbolt.Open(file, 0o600, nil)
		if err != nil {
			t.Fatal(err)
		}
		err = db.Update(func(tx *bbolt.Tx) error { return tt.change(tx.Bucket([]byte("rows"))) })
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		p := startDaemon(t, home)
		var r struct {
			OK      bool
			BadSeq  uint64
			Problem string
		}
		out, errs, code := hbrestd(t, home, "audit", "verify", "--json", "--head", head)
		if err := json.Unmarshal([]byte(out), &r); err != nil || r.OK || code != 1 || tt.bad != 0 && r.BadSeq != tt.bad {
			t.Errorf("%s: exit code %d, %v, %+v\n%s", name, code, err, r, errs)
		}
		out, _, _ = hbrestd(t, home, "audit", "verify", "--head", head)
		if want := fmt.Sprintf("does NOT verify at row %d: ", tt.bad); tt.bad != 0 && !strings.Contains(out, want) {
			t.Errorf("%s: %q does not say %q", name, out, want)
		}
		// And it goes on: the next change has its row.
		if _, err := p.client.Change(t.Context(), &api.ChangeRequest{Action: "update", Wrapper: document("wrapper.00", name)}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		stop(t, p)
		if testing.Verbose() {
			t.Logf("%s: %s", name, strings.TrimSpace(out))
		}
	}
}

// stop ends a daemon as a service manager does.
func stop(t *testing.T, p *process) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := p.wait(); err != nil {
		t.Errorf("exit: %v\n%s", err, p.stderr)
	}
}

// D41: SIGTERM with a call in flight that the API would answer after 20 s: its
// caller gets an answer and the daemon is gone after about 10 s; the trail has
// the call, as a write and as a read.
func TestTermCutsALongCall(t *testing.T) {
	t.Parallel()
	arrived := make(chan struct{}, 2)
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // so that the end of the connection is noticed
		arrived <- struct{}{}
		select {
		case <-time.After(20 * time.Second):
			_, _ = io.WriteString(w, `{"done":true}`)
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(up.Close)
	home := filepath.Join(t.TempDir(), "home")
	p := startDaemon(t, home, "HB_WRAP_ALLOW_PRIVATE=1")
	answers := make(chan error, 2)
	for id, method := range map[string]string{"read": "GET", "write": "POST"} {
		doc := fmt.Sprintf(`{"schemaVersion":1,"id":%q,"request":{"method":%q,"url":"%s/","timeoutMs":45000}}`, id, method, up.URL)
		if _, err := p.client.Change(t.Context(), &api.ChangeRequest{Action: "create", Wrapper: []byte(doc)}); err != nil {
			t.Fatal(err)
		}
		go func() {
			_, err := p.client.Run(t.Context(), &api.RunRequest{ID: id})
			answers <- err
		}()
		<-arrived
	}
	start := time.Now()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		select {
		case err := <-answers:
			if err == nil {
				t.Error("an answer came from nowhere")
			}
		case <-time.After(15 * time.Second):
			t.Fatal("a caller still waits 15 s after SIGTERM")
		}
	}
	<-p.stderr.done
	if took := time.Since(start); took < 9*time.Second || took > 13*time.Second {
		t.Errorf("the daemon ended %v after SIGTERM, want about 10 s", took)
	}
	if err := p.wait(); err != nil {
		t.Logf("exit: %v", err)
	}
	startDaemon(t, home)
	verified(t, home)
	found := map[string]string{}
	for _, r := range auditRows(t, home, 0) {
		if r.Kind == "run" {
			found[r.Wrapper] += r.Method + " " + r.Error + r.Outcome + ";"
		}
	}
	if !strings.HasPrefix(found["read"], "GET ") || !strings.HasPrefix(found["write"], "POST ") || strings.Count(found["read"]+found["write"], ";") != 2 {
		t.Errorf("the trail: %v\n%s", found, p.stderr)
	}
	t.Logf("rows: %v", found)
}

// audit --follow prints what happens while it runs, one line a row, and ends
// well when it is interrupted.
func TestAuditFollow(t *testing.T) {
	t.Parallel()
	dir, err := build()
	if err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(t.TempDir(), "home")
	p := startDaemon(t, home)
	create := func(id string) {
		if _, err := p.client.Change(t.Context(), &api.ChangeRequest{Action: "create", Wrapper: document(id, "one")}); err != nil {
			t.Fatal(err)
		}
	}
	create("before")
	cmd := exec.Command(filepath.Join(dir, "hbrestd"), "audit", "--follow", "--json")
	cmd.Env = []string{"HB_WRAP_HOME=" + home}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := false
	t.Cleanup(func() {
		if !ended {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	lines := make(chan string)
	go func() {
		for in := bufio.NewScanner(out); in.Scan(); {
			lines <- in.Text()
		}
		close(lines)
	}()
	seen := uint64(0)
	await := func(id string) {
		t.Helper()
		for {
			select {
			case line, ok := <-lines:
				var r api.AuditRow
				if !ok || json.Unmarshal([]byte(line), &r) != nil || r.Seq <= seen {
					t.Fatalf("after row %d: %q", seen, line)
				}
				seen = r.Seq
				if r.Wrapper == id && r.Kind == "change" {
					return
				}
			case <-time.After(20 * time.Second):
				t.Fatalf("no row of %s in 20 s", id)
			}
		}
	}
	await("before")
	for i := range 5 {
		id := fmt.Sprintf("while.%d", i)
		create(id)
		await(id)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	for range lines {
	}
	err = cmd.Wait()
	ended = true
	if err != nil {
		t.Errorf("interrupted: %v", err)
	}
}
