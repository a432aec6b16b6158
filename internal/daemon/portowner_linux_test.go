package daemon

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"testing"
)

// Lines as Linux prints them: 127.0.0.1:4111 and :8080 are 0100007F:100F and
// 00000000:1F90.
const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:100F 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4321 1 0000000000000000 100 0 0 10 0
   1: 00000000:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 5432 1 0000000000000000 100 0 0 10 0
   2: 0100007F:1234 0100007F:100F 01 00000000:00000000 00:00000000 00000000  1000        0 6543 1 0000000000000000 20 4 30 10 -1
   3: broken
`

const table6 = `  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000000000000000000001000000:100F 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 7654 1 0
   1: 00000000000000000000000000000000:2382 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000  1001        0 8765 1 0
   2: 0000000000000000FFFF00000100007F:2383 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000  1001        0 9876 1 0
`

func TestListening(t *testing.T) {
	for _, tc := range []struct {
		table, at, inode, uid string
	}{
		{table, "127.0.0.1:4111", "4321", "1000"},
		{table, "127.0.0.1:8080", "5432", "0"}, // at all addresses
		{table, "127.0.0.1:4660", "", ""},      // connected, not listening
		{table, "127.0.0.2:4111", "", ""},
		{table, "[::1]:8080", "", ""},
		{table6, "[::1]:4111", "7654", "1000"},
		{table6, "127.0.0.1:4111", "", ""},
		{table6, "127.0.0.1:9090", "8765", "1001"}, // a socket for both kinds of address
		{table6, "[::1]:9090", "8765", "1001"},
		{table6, "127.0.0.1:9091", "9876", "1001"},
	} {
		inode, uid, ok := listening(tc.table, netip.MustParseAddrPort(tc.at))
		if inode != tc.inode || uid != tc.uid || ok != (tc.inode != "") {
			t.Errorf("%s: %q %q %v", tc.at, inode, uid, ok)
		}
	}
}

// This process has the port; what it answers decides whether it is an hbrestd.
func TestPortOwner(t *testing.T) {
	name, err := os.ReadFile("/proc/self/comm")
	if err != nil {
		t.Fatal(err)
	}
	me := Owner{PID: os.Getpid(), Name: strings.TrimSpace(string(name))}
	hbrestd := me
	hbrestd.Hbrestd, hbrestd.Version = true, "1.2.3"
	proof := strings.Repeat("0", 64)
	for body, want := range map[string]Owner{
		`{"proof":"` + proof + `","version":"1.2.3"}`: hbrestd,
		`{"proof":"short","version":"1.2.3"}`:         me,
		`<html>`:                                      me,
		`{"proof":"` + proof + `","version":"` + strings.Repeat("x", 5000) + `"}`: me, // more than a version needs is not read
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "" || r.URL.Path != "/hello" || len(r.URL.Query().Get("nonce")) != 64 {
				t.Errorf("asked with %s %v", r.URL, r.Header)
			}
			_, _ = w.Write([]byte(body))
		}))
		if got := PortOwner(t.Context(), srv.Listener.Addr().String()); got != want {
			t.Errorf("%.40s: %+v", body, got)
		}
		srv.Close()
	}

	// One that answers nothing at all is not waited for.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := PortOwner(ctx, l.Addr().String()); got != me {
		t.Errorf("%+v", got)
	}
}

func TestOwnerInWords(t *testing.T) {
	for want, o := range map[string]Owner{
		"another program": {}, "python3 (pid 7)": {Name: "python3", PID: 7}, "another program (of the user bob)": {User: "bob"},
		"another hbrestd (version 1.2.3, pid 7)": {Hbrestd: true, Name: "hbrestd", Version: "1.2.3", PID: 7}, "another hbrestd (of the user bob)": {Hbrestd: true, User: "bob"},
	} {
		if got := o.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
