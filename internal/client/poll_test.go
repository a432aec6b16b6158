package client_test

import (
	"context"
	"testing"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/client"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

type polledManifest struct {
	m   *api.Manifest
	err error
}

func poll(ctx context.Context, c *client.Client, after uint64) <-chan polledManifest {
	out := make(chan polledManifest, 1)
	go func() {
		m, err := c.Manifest(ctx, after)
		out <- polledManifest{m, err}
	}()
	return out
}

// A call for news outlives the client's own limit, says what is known, and
// stands in the way of no other call.
func TestManifestWaits(t *testing.T) {
	h := newHome(t)
	h.backend.polled, h.backend.news = make(chan uint64), make(chan struct{})
	h.backend.revision.Store(1<<63 + 1)
	h.start()
	// Long enough for the other call on a busy machine, far below the 25 s.
	c := h.clientWith(func(o *client.Options) { o.Timeout = 2 * time.Second })
	got := poll(t.Context(), c, 1<<63)
	if after := <-h.backend.polled; after != 1<<63 {
		t.Errorf("after is %d", after)
	}
	if m, err := c.Manifest(t.Context(), 0); err != nil || m.Revision != 1<<63+1 {
		t.Errorf("beside it: %+v %v", m, err)
	}
	select {
	case r := <-got:
		t.Fatalf("it did not wait: %+v %v", r.m, r.err)
	case <-time.After(2200 * time.Millisecond): // over Timeout: the subject of the test
	}
	h.backend.news <- struct{}{}
	if r := <-got; r.err != nil || r.m.Revision != 1<<63+1 || len(r.m.Wrappers) != 1 {
		t.Errorf("%+v %v", r.m, r.err)
	}
}

// The caller can give up at any time.
func TestManifestCancelled(t *testing.T) {
	h := newHome(t)
	h.backend.polled, h.backend.news = make(chan uint64), make(chan struct{})
	h.start()
	ctx, cancel := context.WithCancel(t.Context())
	got := poll(ctx, h.client(), 5)
	<-h.backend.polled
	cancel()
	if r := <-got; !fault.Is(r.err, "CALL_CANCELLED") {
		t.Errorf("%+v %v", r.m, r.err)
	}
}

// A daemon that goes away ends the wait with a fault that can be told from news.
func TestManifestDaemonGone(t *testing.T) {
	h := newHome(t)
	h.backend.polled, h.backend.news = make(chan uint64), make(chan struct{})
	h.start()
	got := poll(t.Context(), h.client(), 5)
	<-h.backend.polled
	h.stop()
	if r := <-got; !fault.Is(r.err, "BRIDGE_UNREACHABLE") {
		t.Errorf("%+v %v", r.m, r.err)
	}
}
