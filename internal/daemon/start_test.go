package daemon_test

import (
	"context"
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
