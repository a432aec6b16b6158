package outbound_test

import (
	"context"
	"io"
	"net/http"
	"sync"
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
)

// As many connections as may be in use at once are kept: 1000 requests, 32 at
// a time, cost few more than 32 connections. A caller that finds none free
// dials, also when one becomes free meanwhile, which is what a busy machine adds
// to that; with eight kept it were some 400.
func TestIdleConnectionsAreKept(t *testing.T) {
	w := newWorld(t)
	w.serve("http://api.example.com", http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(rw, `{"id":1}`)
	}))
	c := w.client(outbound.Policy{AllowHTTP: true})
	u := mustURL(t, "http://api.example.com/x")
	work := make(chan struct{})
	var callers sync.WaitGroup
	for range outbound.DefaultPerHost {
		callers.Go(func() {
			for range work {
				if _, err := c.Send(context.Background(), outbound.NewRequest("GET", u, nil)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 1000 {
		work <- struct{}{}
	}
	close(work)
	callers.Wait()
	if dials, _ := w.counts(); dials > 100 {
		t.Errorf("%d connections for 1000 requests, want 100 at most", dials)
	}
}
