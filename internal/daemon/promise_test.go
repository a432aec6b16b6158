package daemon_test

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
	"github.com/hyperbolic-gateway/hb-rest/internal/soak"
)

// Behind the door that bridge.TestWrongTokensDoNoWork measures: with requests
// that would run, save and delete something, and a token that is wrong in one
// character, a whole daemon resolves nothing, dials nothing, writes no row and
// changes no byte of its store.
func TestWrongTokensDialNothing(t *testing.T) {
	t.Parallel()
	var lookups, dials atomic.Int64
	w := newWorld(t, private, outbound.Options{
		Lookup: func(context.Context, string) ([]netip.Addr, error) {
			lookups.Add(1)
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
		},
		DialAddr: func(ctx context.Context, addr netip.AddrPort) (net.Conn, error) {
			dials.Add(1)
			return (&net.Dialer{}).DialContext(ctx, "tcp", addr.String())
		},
	})
	up := newParty(t, nil)
	url := up.at("api.test") + "/"
	w.create(get("w", url))
	if a := w.run("w", `{}`); !a.OK || lookups.Load() == 0 || dials.Load() == 0 {
		t.Fatalf("the right token: %s, %d lookups, %d dials", a.Raw, lookups.Load(), dials.Load())
	}
	rows := func() string {
		req, err := http.NewRequest(http.MethodGet, "http://"+w.d.Addr()+"/wrap/audit?limit=1000", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+w.tok)
		a, err := w.do(req)
		if err != nil {
			t.Fatal(err)
		}
		return a.Raw
	}
	w.stop() // so that the rows of the call are on the disk
	w.start()
	before, trail := storeBytes(t, w), rows()
	lookups.Store(0)
	dials.Store(0)
	up.take()
	requests := []struct{ method, path, body string }{
		{"POST", "/wrap/run", `{"id":"w","args":{}}`},
		{"POST", "/wrap/test", `{"id":"w","args":{},"dryRun":false}`},
		{"POST", "/wrap/derive", `{"url":"` + url + `"}`},
		{"POST", "/wrap/wrappers", `{"action":"create","wrapper":` + get("x", url) + `}`},
		{"POST", "/wrap/wrappers", `{"action":"delete","id":"w"}`},
		{"GET", "/wrap/manifest", ``},
		{"GET", "/wrap/wrapper?id=w", ``},
		{"GET", "/wrap/audit?limit=10", ``},
		{"GET", "/wrap/secrets", ``},
	}
	tries := soak.Rounds(500, 20_000)
	var next, wrong atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < tries; i = int(next.Add(1)) - 1 {
				q := requests[i%len(requests)]
				req, err := http.NewRequest(q.method, "http://"+w.d.Addr()+q.path, strings.NewReader(q.body))
				if err != nil {
					t.Error(err)
					return
				}
				tok := []byte(w.tok)
				tok[i%len(tok)] ^= 1 // 0 and 1, a and `, …: never what it was
				req.Header.Set("Authorization", "Bearer "+string(tok))
				req.Header.Set("Content-Type", "application/json")
				a, err := w.do(req)
				if err != nil || a.HTTP != http.StatusUnauthorized || a.Code != "UNAUTHORIZED" {
					if wrong.Add(1) <= 3 {
						t.Errorf("%s %s: %v %+v", q.method, q.path, err, a)
					}
				}
			}
		})
	}
	wg.Wait()
	arrived := len(up.take())
	if lookups.Load() != 0 || dials.Load() != 0 || arrived != 0 || wrong.Load() != 0 {
		t.Errorf("%d lookups, %d dials, %d requests arrived, %d answers other than UNAUTHORIZED", lookups.Load(), dials.Load(), arrived, wrong.Load())
	}
	same, unwritten := storeBytes(t, w) == before, rows() == trail
	if !same || !unwritten {
		t.Errorf("the store is as before: %v, the trail: %v", same, unwritten)
	}
	soak.Measured(t, "%d requests with a wrong token to a whole daemon: %d lookups, %d dials, store as before: %v, trail as before: %v",
		tries, lookups.Load(), dials.Load(), same, unwritten)
	if a := w.run("w", `{}`); !a.OK || dials.Load() == 0 {
		t.Errorf("the right token afterwards: %s", a.Raw)
	}
}

func storeBytes(t *testing.T, w *world) string {
	t.Helper()
	data, err := os.ReadFile(w.cfg.StorePath)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
