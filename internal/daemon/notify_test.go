package daemon_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/control"
	"github.com/hyperbolic-gateway/hb-rest/internal/daemon"
	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
)

// What a service manager is told: ready only when bridge and control socket
// answer, then that the daemon is well, with the status when that has changed,
// then that it stops.
func TestNotify(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, outbound.Options{}) // for its settings
	w.stop()
	o := w.options
	told := make(chan string, 100)
	o.Notify, o.Watchdog = func(state string) { told <- state }, 30*time.Millisecond
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- daemon.Run(ctx, o) }()
	next := func() string {
		select {
		case s := <-told:
			return s
		case err := <-ended:
			t.Fatalf("it ended: %v", err)
		case <-time.After(20 * time.Second):
			t.Fatal("nothing in 20 s")
		}
		return ""
	}
	first := next()
	addr, ok := strings.CutPrefix(first, "READY=1\nSTATUS=listening on http://")
	addr, ok2 := strings.CutSuffix(addr, ", 0 wrappers")
	if !ok || !ok2 {
		t.Fatalf("first: %q", first)
	}
	c := control.NewClient(o.Config.ControlSocket, control.ClientOptions{Timeout: 10 * time.Second})
	if st, err := c.Status(t.Context()); err != nil || st.Address != addr {
		t.Errorf("the control socket: %+v %v", st, err)
	}
	if got := daemon.PortOwner(t.Context(), addr); !got.Hbrestd {
		t.Errorf("the bridge: %+v", got)
	}
	for range 3 {
		if got := next(); got != "WATCHDOG=1" {
			t.Errorf("then: %q", got)
		}
	}
	doc := []byte(`{"schemaVersion":1,"id":"a","name":"A","request":{"method":"GET","url":"https://api.example.com/"}}`)
	if _, err := c.Apply(t.Context(), &control.ApplyRequest{Documents: []control.ApplyDocument{{Source: "x", Wrapper: doc}}}); err != nil {
		t.Fatal(err)
	}
	want := "WATCHDOG=1\nSTATUS=listening on http://" + addr + ", 1 wrappers"
	for got := next(); got != want; got = next() {
		if got != "WATCHDOG=1" {
			t.Fatalf("after a change: %q", got)
		}
	}
	cancel()
	for got := next(); got != "STOPPING=1\nSTATUS=waiting for calls that are running, at most 10s"; got = next() {
		if got != "WATCHDOG=1" {
			t.Fatalf("at the end: %q", got)
		}
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if s := w.log.String(); strings.Contains(s, "does not answer itself") {
		t.Error(s)
	}
}

// A start that fails tells nothing.
func TestNotifyOfAFailedStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, outbound.Options{})
	o := w.options
	o.Config.Addr = w.d.Addr()
	o.Config.Home = filepath.Join(t.TempDir(), "home")
	o.Config.WrapDir = filepath.Join(o.Config.Home, "wrap")
	o.Config.StorePath, o.Config.AuditPath = filepath.Join(o.Config.WrapDir, "store.db"), filepath.Join(o.Config.WrapDir, "audit.db")
	o.Config.TokenPath, o.Config.ControlSocket = filepath.Join(o.Config.WrapDir, "token"), filepath.Join(o.Config.Home, "control.sock")
	o.Notify = func(state string) { t.Errorf("told %q", state) }
	if err := daemon.Run(t.Context(), o); err == nil {
		t.Error("it ran")
	}
}
