//go:build unix

package control

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// pair is both ends of a connection within this process.
func pair(t *testing.T) (accepted, dialled net.Conn) {
	t.Helper()
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if dialled, err = net.Dial("unix", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dialled.Close() })
	if accepted, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { accepted.Close() })
	return accepted, dialled
}

func TestPeer(t *testing.T) {
	accepted, dialled := pair(t)
	for name, c := range map[string]net.Conn{"accepted": accepted, "dialled": dialled} {
		if uid, err := peerOf(c); err != nil || uid != os.Getuid() {
			t.Errorf("%s: user %d, %v; this is user %d", name, uid, err, os.Getuid())
		}
	}
	if err := admitOwner(accepted, os.Getuid()); err != nil {
		t.Errorf("this user: %v", err)
	}
	err := admitOwner(accepted, os.Getuid()+1) // seen by another user's daemon
	if refused := err != nil && strings.Contains(err.Error(), "may not use the control socket of user"); refused != (os.Getuid() != 0) {
		t.Errorf("user %d at the socket of user %d: %v", os.Getuid(), os.Getuid()+1, err)
	}
	// What cannot be asked is refused.
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	if err := admitOwner(a, os.Getuid()); err == nil {
		t.Error("a peer that is not known was let in")
	}
	accepted.Close()
	if err := admitOwner(accepted, os.Getuid()); err == nil {
		t.Error("a connection that is gone was let in")
	}
}

// The client's limits: of an answer, and of a call whose limit the daemon sets.
func TestClientLimits(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	l, err := Listen(filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	b := &statusOnly{}
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, l, b, Options{}) }()
	defer func() { cancel(); <-done }()

	c := NewClient(l.Path(), ClientOptions{})
	const size = int64(len(`{"seq":3,"hash":"ab","head":"3:ab"}` + "\n"))
	for most, ok := range map[int64]bool{size: true, size - 1: false} {
		c.most = most
		if _, err := c.AuditHead(ctx); (err == nil) != ok {
			t.Errorf("an answer of %d bytes under a limit of %d: %v", size, most, err)
		}
	}
	c.most = maxAnswer

	// Not said, said, and remembered.
	for _, step := range []struct {
		says int64
		want time.Duration
	}{{0, 55 * time.Second}, {50_000, 55 * time.Second}, {3_600_000, 55 * time.Second}} {
		b.timeout = step.says
		if got := c.runTime(ctx); got != step.want {
			t.Errorf("the daemon says %d ms: %v, want %v", step.says, got, step.want)
		}
	}
	if got := NewClient(l.Path(), ClientOptions{}).runTime(ctx); got != time.Hour+5*time.Second {
		t.Errorf("a daemon with one hour: %v", got)
	}
	if got := NewClient(l.Path(), ClientOptions{Timeout: 7}).runTime(ctx); got != 7 {
		t.Errorf("a client with its own limit: %v", got)
	}
	if got := NewClient(filepath.Join(dir, "none"), ClientOptions{}).runTime(ctx); got != 55*time.Second {
		t.Errorf("no daemon: %v", got)
	}
}
