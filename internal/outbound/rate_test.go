package outbound_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
)

var five = outbound.Rate{Requests: 5, Per: time.Second}

func rated(host, path string, r outbound.Rate) *outbound.Request {
	req := request(host, path)
	req.Rate = r
	return req
}

func sec(list ...float64) (out []time.Duration) {
	for _, s := range list {
		out = append(out, time.Duration(s*float64(time.Second)))
	}
	return out
}

// Five in a second, by hand: of twelve that come at once five leave at 0, five
// at 1 s and two at 2 s. A token bucket of five would let nine or ten into the
// first second.
func TestRateOfABurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &pipeWorld{answer: say(0)}
		c := w.pipes(t, outbound.Policy{})
		var wg sync.WaitGroup
		for range 12 {
			wg.Go(func() {
				if _, err := c.Send(t.Context(), rated(here, "/", five)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if at, _ := w.came(); !cmp.Equal(at, sec(0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2)) {
			t.Errorf("%v", at)
		}
		if n := c.Lanes(); n != 0 {
			t.Errorf("%d lanes are left", n)
		}
	})
}

// The window slides: of 1 + 4 + 5, which come at 0, 0.5 and 0.6 s, the sixth
// leaves one second after the first and the rest one second after the second.
// And whatever comes when, no window of a second holds more than five.
func TestRateSlides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &pipeWorld{answer: say(0)}
		c := w.pipes(t, outbound.Policy{})
		var wg sync.WaitGroup
		burst := func(n int) {
			for range n {
				wg.Go(func() { _, _ = c.Send(t.Context(), rated(here, "/", five)) })
			}
		}
		burst(1)
		time.Sleep(500 * time.Millisecond)
		burst(4)
		time.Sleep(100 * time.Millisecond)
		burst(5)
		wg.Wait()
		if at, _ := w.came(); !cmp.Equal(at, sec(0, .5, .5, .5, .5, 1, 1.5, 1.5, 1.5, 1.5)) {
			t.Errorf("%v", at)
		}
		time.Sleep(10 * time.Second)
		for i := range 100 {
			burst(1 + i%3)
			time.Sleep(time.Duration(i*i%290) * time.Millisecond)
		}
		wg.Wait()
		at, _ := w.came()
		if len(at) != 10+199 {
			t.Fatalf("%d came", len(at))
		}
		for i := range at[:len(at)-5] {
			if d := at[i+5] - at[i]; d < time.Second {
				t.Fatalf("six within %v, from %v on", d, at[i])
			}
		}
	})
}

// Waiting for a place does not bring requests together: what was held back by a
// busy lane leaves at the rate all the same, and in the order it came.
func TestRateBehindABusyLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &pipeWorld{}
		w.answer = say(3 * time.Second)
		c := w.pipes(t, outbound.Policy{PerHost: 1})
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = c.Send(t.Context(), request(here, "/slow")) })
		synctest.Wait()
		w.answer = say(0)
		two := outbound.Rate{Requests: 2, Per: time.Second}
		for i := range 5 {
			wg.Go(func() { _, _ = c.Send(t.Context(), rated(here, fmt.Sprint("/", i), two)) })
			synctest.Wait()
		}
		wg.Wait()
		at, what := w.came()
		if !cmp.Equal(at, sec(0, 3, 3, 4, 4, 5)) || !cmp.Equal(what, []string{"/slow", "/0", "/1", "/2", "/3", "/4"}) { // with one place, one after the other
			t.Errorf("%v %v", at, what)
		}
	})
}

// One who waits for the rate holds no place: others pass. The request's own
// timeout begins when its turn has come.
func TestRateHoldsNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &pipeWorld{answer: say(0)}
		c := w.pipes(t, outbound.Policy{PerHost: 1})
		one := outbound.Rate{Requests: 1, Per: 30 * time.Second}
		_, _ = c.Send(t.Context(), rated(here, "/a", one))
		var wg sync.WaitGroup
		wg.Go(func() {
			r := rated(here, "/b", one)
			r.Timeout = time.Second
			if _, err := c.Send(t.Context(), r); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		if _, err := c.Send(t.Context(), request(here, "/c")); err != nil {
			t.Error(err)
		}
		wg.Wait()
		if at, what := w.came(); !cmp.Equal(at, sec(0, 0, 30)) || !cmp.Equal(what, []string{"/a", "/c", "/b"}) {
			t.Errorf("%v %v", at, what)
		}
	})
}

// The same rate is shared within an origin; another rate, another origin and no
// rate are counted apart.
func TestRatesAreApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &pipeWorld{answer: say(0)}
		c := w.pipes(t, outbound.Policy{})
		one, other := outbound.Rate{Requests: 1, Per: 10 * time.Second}, outbound.Rate{Requests: 1, Per: 20 * time.Second}
		for _, r := range []*outbound.Request{
			rated(here, "/1", one), rated(there, "/2", one), rated(here, "/3", other), request(here, "/4"), rated(here, "/5", one),
		} {
			if _, err := c.Send(t.Context(), r); err != nil {
				t.Error(err)
			}
		}
		if at, _ := w.came(); !cmp.Equal(at, sec(0, 0, 0, 0, 10)) {
			t.Errorf("%v", at)
		}
		// What holds nobody back any more is forgotten when another pace begins.
		time.Sleep(time.Minute)
		_, _ = c.Send(t.Context(), rated(there, "/6", five))
		if n := c.Paces(); n != 1 {
			t.Errorf("%d paces are remembered", n)
		}
	})
}

// A turn that comes less than half a second before the deadline is refused at
// once, with the wait; at half a second it is waited for.
func TestRateThatDoesNotFit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &pipeWorld{answer: say(0)}
		c := w.pipes(t, outbound.Policy{})
		one := outbound.Rate{Requests: 1, Per: 10 * time.Second}
		_, _ = c.Send(t.Context(), rated(here, "/", one))
		try := func(deadline time.Duration) (time.Duration, error) {
			ctx, cancel := context.WithTimeout(t.Context(), deadline)
			defer cancel()
			begin := time.Now()
			_, err := c.Send(ctx, rated(here, "/", one))
			return time.Since(begin), err
		}
		took, err := try(10500*time.Millisecond - 1)
		f := wantFault(t, err, "BUSY", "allows 1 in 10 s to")
		if took != 0 || f.RetryAfter != 10*time.Second || !f.Retryable || !strings.HasPrefix(f.Hint, "Wait 10 s,") {
			t.Errorf("after %v: %+v", took, f)
		}
		if took, err = try(10500 * time.Millisecond); took != 10*time.Second || err != nil {
			t.Errorf("after %v: %v", took, err)
		}
		// Who stands before one counts: the third of three has its turn 30 s from now.
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() { _, _ = c.Send(t.Context(), rated(here, "/", one)) })
		}
		synctest.Wait()
		if took, err = try(29 * time.Second); took != 0 || fault.From(err).RetryAfter != 30*time.Second {
			t.Errorf("after %v: %v", took, err)
		}
		wg.Wait()
		// What can be sent now is, however little time is left.
		time.Sleep(10 * time.Second)
		if _, err = try(100 * time.Millisecond); err != nil {
			t.Error(err)
		}
	})
}

// 256 wait for their turn besides the one who is next; one more is BUSY. Those
// who leave give their turn to the next at once.
func TestRateQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &pipeWorld{answer: say(0)}
		c := w.pipes(t, outbound.Policy{})
		one := outbound.Rate{Requests: 1, Per: time.Hour}
		_, _ = c.Send(t.Context(), rated(here, "/", one))
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range 1 + outbound.MaxWaiting {
			wg.Go(func() {
				if _, err := c.Send(ctx, rated(here, "/gone", one)); err != context.Canceled {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		_, err := c.Send(t.Context(), rated(here, "/", one))
		wantFault(t, err, "BUSY", "256 requests wait already for their turn")
		cancel()
		wg.Wait()
		if _, err := c.Send(t.Context(), rated(here, "/last", one)); err != nil {
			t.Error(err)
		}
		if at, _ := w.came(); !cmp.Equal(at, sec(0, 3600)) {
			t.Errorf("%v", at)
		}
	})
}

// A request that gets no place, or no intent row, was not sent and does not count.
func TestUnsentDoesNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &pipeWorld{answer: say(10 * time.Second)}
		c := w.pipes(t, outbound.Policy{PerHost: 1})
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = c.Send(t.Context(), request(here, "/slow")) })
		synctest.Wait()
		one := outbound.Rate{Requests: 1, Per: time.Hour}
		r := rated(here, "/", one)
		r.Timeout = time.Second
		_, err := c.Send(t.Context(), r)
		wantFault(t, err, "UPSTREAM_TIMEOUT", "could not be reached")
		wg.Wait()
		if _, err := c.Send(t.Context(), rated(here, "/", one)); err != nil {
			t.Error(err)
		}
		if at, _ := w.came(); !cmp.Equal(at, sec(0, 10)) {
			t.Errorf("%v", at)
		}
	})
}

// Concurrency 1: one after the other, in the order they came. A request with a
// limit waits until fewer are in flight, whoever sent them, and nobody passes it.
func TestConcurrency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &pipeWorld{answer: say(time.Second)}
		c := w.pipes(t, outbound.Policy{})
		var wg sync.WaitGroup
		send := func(path string, limit int) {
			r := request(here, path)
			r.Concurrency = limit
			wg.Go(func() {
				if _, err := c.Send(t.Context(), r); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		for i := range 4 {
			send(fmt.Sprint("/", i), 1)
		}
		wg.Wait()
		at, what := w.came()
		if !cmp.Equal(at, sec(0, 1, 2, 3)) || !slices.IsSorted(what) {
			t.Errorf("%v %v", at, what)
		}
		w.at, w.what, w.start = nil, nil, time.Now()
		send("/free1", 0)
		send("/free2", 0)
		send("/two", 2)
		send("/free3", 0) // behind /two
		send("/one", 1)
		send("/free4", 0) // behind /one
		wg.Wait()
		at, what = w.came()
		for pair := range slices.Chunk(what, 2) { // two came at each moment
			slices.Sort(pair)
		}
		if !cmp.Equal(at, sec(0, 0, 1, 1, 2, 2)) || !cmp.Equal(what, []string{"/free1", "/free2", "/free3", "/two", "/free4", "/one"}) {
			t.Errorf("%v %v", at, what)
		}
		if n := c.Lanes(); n != 0 {
			t.Errorf("%d lanes are left", n)
		}
	})
}

// A request's own limit never raises the client's.
func TestConcurrencyIsAtMostTheClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &pipeWorld{answer: say(time.Second)}
		c := w.pipes(t, outbound.Policy{PerHost: 2})
		var wg sync.WaitGroup
		for range 4 {
			r := request(here, "/")
			r.Concurrency = 32
			wg.Go(func() { _, _ = c.Send(t.Context(), r) })
		}
		wg.Wait()
		if at, _ := w.came(); !cmp.Equal(at, sec(0, 0, 1, 1)) {
			t.Errorf("%v", at)
		}
	})
}
