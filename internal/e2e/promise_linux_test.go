package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/soak"
)

// Nothing is sent unrecorded: while no file of the daemon can grow, of 100 calls
// with a credential and of 100 writes none leaves, nor does a request for a
// token; each says AUDIT_FAILED. When there is room again they work, and the
// trail verifies and has a row of each that was sent.
func TestBlockedAuditSendsNothing(t *testing.T) {
	var hits [2]atomic.Int64 // API, token endpoint
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/token" {
			_, _ = fmt.Fprintf(w, `{"access_token":"tok-%010d","expires_in":1}`, hits[1].Add(1))
			return
		}
		hits[0].Add(1)
		_, _ = w.Write([]byte(`{"ok":true}`))
	}))
	t.Cleanup(up.Close)
	p := newPerson(t, withFileKeyring(t)...)
	p.start()
	p.must("value-0123456789\n", "secret", "set", "key", "--stdin", "--host", "127.0.0.1")
	p.must("client-secret-1\n", "secret", "set", "oauth", "--stdin", "--oauth2", "--token-url", up.URL+"/token", "--client-id", "c1", "--auth-style", "body", "--host", "127.0.0.1", "--json")
	p.save(authed("static", up.URL+"/", "key"))
	p.save(authed("minted", up.URL+"/", "oauth"))
	p.save(strings.Replace(authed("keyed.write", up.URL+"/", "key"), `"GET"`, `"POST"`, 1))
	p.save(strings.NewReplacer(`"GET"`, `"DELETE"`, `,"auth":""`, "").Replace(authed("write", up.URL+"/", "")))
	ids := []string{"static", "minted", "keyed.write", "write"}
	works := func() {
		t.Helper()
		for _, id := range ids {
			if _, err := p.daemon.client.Run(t.Context(), &api.RunRequest{ID: id}); err != nil {
				t.Errorf("%s: %v", id, err)
			}
		}
	}
	works()
	var was unix.Rlimit
	pid := p.daemon.cmd.Process.Pid
	if err := unix.Prlimit(pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 1, Max: unix.RLIM_INFINITY}, &was); err != nil {
		t.Skipf("this machine does not let the size of another program's files be limited: %v", err)
	}
	before := [2]int64{hits[0].Load(), hits[1].Load()}
	tries := soak.Rounds(25, 200) // of each of the four; `audit` shows a thousand rows
	other := 0
	for range tries {
		for _, id := range ids {
			_, err := p.daemon.client.Run(t.Context(), &api.RunRequest{ID: id})
			if fault.Is(err, "AUDIT_FAILED") {
				continue
			}
			if other++; other < 10 {
				t.Errorf("%s with a blocked trail: %v", id, err)
			}
		}
	}
	sent, minted := hits[0].Load()-before[0], hits[1].Load()-before[1]
	if sent != 0 || minted != 0 {
		t.Errorf("with a blocked trail %d requests left, and %d to the token endpoint", sent, minted)
	}
	if err := unix.Prlimit(pid, unix.RLIMIT_FSIZE, &was, nil); err != nil {
		t.Fatal(err)
	}
	works()
	p.stop()
	p.start()
	if out, code := p.try("", "audit", "verify"); code != 0 {
		t.Errorf("audit verify: %s", out)
	}
	var page api.AuditPage
	if err := json.Unmarshal([]byte(p.must("", "audit", "-n", "1000", "--json")), &page); err != nil {
		t.Fatal(err)
	}
	rows := int64(0)
	for _, r := range page.Rows {
		if r.Kind == "run" && r.Status == http.StatusOK {
			rows++
		}
	}
	if arrived := hits[0].Load(); rows != arrived || arrived != int64(2*len(ids)) {
		t.Errorf("%d requests arrived, %d rows, want %d", arrived, rows, 2*len(ids))
	}
	p.stop()
	soak.Measured(t, "%d calls with a credential and %d writes without one while the trail was blocked: %d requests left, %d to the token endpoint; %d answers other than AUDIT_FAILED", 3*tries, tries, sent, minted, other)
}
