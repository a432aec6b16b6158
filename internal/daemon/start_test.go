package daemon_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/control"
	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
	"github.com/hyperbolic-gateway/hb-rest/internal/token"
)

// Whoever waits for a daemon by asking for its status can use the token file
// that the first answer names, and not only some milliseconds later.
func TestFirstStatusNamesTheNewToken(t *testing.T) {
	w := newWorld(t, nil, outbound.Options{})
	client := control.NewClient(w.cfg.ControlSocket, control.ClientOptions{})
	w.stop()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var read, started string
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		for ctx.Err() == nil {
			if s, err := client.Status(ctx); err == nil {
				started = s.StartedAt
				read, _ = token.Read(s.TokenFile)
				return
			}
		}
	}()
	w.start()
	<-asked
	if read != w.tok {
		t.Errorf("the token behind the first status is not that of this start")
	}
	if at, err := time.Parse(time.RFC3339, started); err != nil || time.Since(at) > time.Minute {
		t.Errorf("started at %q", started)
	}
}

// A port that accepts has a daemon behind it that commands can reach: who
// starts one, waits for the port and runs a command is not told to start one.
func TestPortThatAcceptsHasAControlSocket(t *testing.T) {
	w := newWorld(t, nil, outbound.Options{})
	client := control.NewClient(w.cfg.ControlSocket, control.ClientOptions{})
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w.options.Config.Addr = free.Addr().String()
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		w.stop()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		asked := make(chan error, 1)
		go func() {
			for ctx.Err() == nil {
				if c, err := net.Dial("tcp", w.options.Config.Addr); err == nil {
					c.Close()
					break
				}
			}
			_, err := client.Status(ctx)
			asked <- err
		}()
		w.start()
		if err := <-asked; err != nil {
			t.Fatal(err)
		}
		cancel()
	}
}
