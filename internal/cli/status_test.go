package cli

import (
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
)

// A daemon whose control socket is elsewhere is told from one that does not run.
func TestStatusOverTheBridge(t *testing.T) {
	token := strings.Repeat("0123456789abcdef", 4)
	answer := func(w http.ResponseWriter, v any) {
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(v); err != nil {
			t.Error(err)
		}
	}
	mux := http.NewServeMux()
	srv := httptest.NewServer(mux)
	defer srv.Close()
	addr := strings.TrimPrefix(srv.URL, "http://")
	mux.HandleFunc("GET /hello", func(w http.ResponseWriter, r *http.Request) {
		nonce, err := hex.DecodeString(r.URL.Query().Get("nonce"))
		if err != nil {
			t.Error(err)
		}
		answer(w, api.Hello{Proof: api.Proof(token, netip.MustParseAddrPort(addr), nonce), Version: "1.2.3"})
	})
	mux.HandleFunc("GET /wrap/status", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+token {
			t.Errorf("Authorization %q", r.Header.Get("Authorization"))
		}
		answer(w, api.Status{OK: true, Version: "1.2.3", PID: 5, Address: addr})
	})
	w := newWorld(t, nil)
	w.env["HB_WRAP_ADDR"] = addr
	w.file("wrap/token", token)
	got := w.hb("status")
	if got.Exit != 0 || !strings.HasPrefix(got.Out, "hbrestd        running, version 1.2.3, pid 5\n") {
		t.Errorf("%+v", got)
	}
	if want := "hbrestd: warning: the daemon runs, but not with these settings: BRIDGE_UNREACHABLE: no daemon: there is no control socket HOME/control.sock. " +
		"The other commands need the socket; `hbrestd paths` shows where they look\n"; got.ErrOut != want {
		t.Errorf("%q, want %q", got.ErrOut, want)
	}
}
