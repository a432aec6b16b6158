package outbound_test

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
)

// At most PerHost exchanges are in flight to one origin, MaxWaiting wait, the
// next is BUSY; another origin is not affected; a cancelled waiter leaves.
func TestQueue(t *testing.T) {
	const perHost = 3
	w := newWorld(t)
	release := make(chan struct{})
	arrived := make(chan struct{}, 1000)
	var now, most atomic.Int64
	w.serve(origin0, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		n := now.Add(1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		arrived <- struct{}{}
		<-release
		now.Add(-1)
	}))
	w.serve("https://other.example.com", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	c := w.client(outbound.Policy{PerHost: perHost})
	var wg sync.WaitGroup
	var failed atomic.Int64
	send := func() {
		r := outbound.NewRequest("GET", mustURL(t, origin0+"/"), nil)
		r.Timeout = time.Minute
		if _, err := c.Send(context.Background(), r); err != nil {
			failed.Add(1)
			t.Error(err)
		}
	}
	for range perHost {
		wg.Go(send)
	}
	for range perHost {
		<-arrived
	}
	for range outbound.MaxWaiting - 1 {
		wg.Go(send)
	}
	// The last place in the waiting line belongs to one that is cancelled.
	ctx, cancel := context.WithCancel(context.Background())
	cancelled := make(chan error, 1)
	for c.Waiting(origin0+":443") != outbound.MaxWaiting-1 {
		time.Sleep(time.Millisecond) // until the goroutines above stand in line
	}
	go func() {
		_, err := c.Send(ctx, outbound.NewRequest("GET", mustURL(t, origin0+"/"), nil))
		cancelled <- err
	}()
	for c.Waiting(origin0+":443") != outbound.MaxWaiting {
		time.Sleep(time.Millisecond)
	}
	f := wantFault(t, second(get(t, c, origin0+"/")), "BUSY", "256 wait")
	if !f.Retryable {
		t.Error("BUSY is not retryable")
	}
	if _, err := get(t, c, "https://other.example.com/"); err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-cancelled; err != context.Canceled {
		t.Error(err)
	}
	r := outbound.NewRequest("POST", mustURL(t, origin0+"/"), nil)
	r.Timeout = 50 * time.Millisecond
	_, err := c.Send(context.Background(), r)
	if f := wantFault(t, err, "UPSTREAM_TIMEOUT", ""); !f.Retryable {
		t.Error("a write that only waited is retryable")
	}
	close(release)
	wg.Wait()
	if most.Load() != perHost || failed.Load() != 0 {
		t.Errorf("%d at once, %d failed", most.Load(), failed.Load())
	}
	if n := c.Lanes(); n != 0 {
		t.Errorf("%d origins are remembered after all is done", n)
	}
}
