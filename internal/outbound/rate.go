package outbound

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// A Rate is at most Requests sent to an origin in any Per, however the window
// is laid. Requests of one origin that give the same Rate are counted together;
// those that give another one, or none, are not counted with them.
type Rate struct {
	Requests int // 0: no rate
	Per      time.Duration
}

// headroom is what must be left of a deadline for a wait to be worth it.
const headroom = 500 * time.Millisecond

// pacing keeps the rates: who was sent when, and whose turn is next. A token
// bucket would let twice the number through in the first window.
type pacing struct {
	mu    sync.Mutex // guards paces and what is in them
	paces map[string]*pace
	turns queue // one at a time is next in each pace
}

type pace struct {
	rate   Rate
	starts []time.Time // of the last rate.Requests, oldest first
	ahead  int         // those not sent yet
}

// A turn is one request's in its pace: it is next, and its time has come. nil
// stands for a request without a rate.
type turn struct {
	p    *pacing
	pace *pace
	pass func()
}

// wait waits until r allows one more request to origin. It ends with ctx, and
// is BUSY at once when the time would come too late for ctx's deadline, or when
// MaxWaiting wait already. The turn must be used: see start and drop.
func (p *pacing) wait(ctx context.Context, origin string, r Rate) (*turn, error) {
	if r.Requests <= 0 {
		return nil, nil
	}
	key := fmt.Sprint(origin, " ", r.Requests, " ", int64(r.Per))
	x, at := p.join(key, r)
	t := &turn{p: p, pace: x}
	// Timers and deadlines go by the system's clock, so this does too.
	if until, ok := ctx.Deadline(); ok && time.Until(at) > 0 && at.Add(headroom).After(until) {
		t.quit()
		return nil, tooFast(origin, r, time.Until(at))
	}
	var err error
	if t.pass, err = p.turns.enter(ctx, key, 0); err != nil {
		t.quit()
		if err == errFull {
			err = fault.New("BUSY", "%d requests wait already for their turn at %d in %s to %s", MaxWaiting, r.Requests, r.Per, origin)
		}
		return nil, err
	}
	p.mu.Lock()
	at = x.when(len(x.starts), time.Now())
	p.mu.Unlock()
	if err := sleep(ctx, time.Until(at)); err != nil {
		t.drop()
		return nil, err
	}
	return t, nil
}

// join counts one more for a pace and says when it will be sent at the earliest.
func (p *pacing) join(key string, r Rate) (*pace, time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	x := p.paces[key]
	if x == nil {
		if p.paces == nil {
			p.paces = make(map[string]*pace)
		}
		for k, old := range p.paces {
			if old.over(now) {
				delete(p.paces, k)
			}
		}
		x = &pace{rate: r}
		p.paces[key] = x
	}
	at := x.when(len(x.starts)+x.ahead, now)
	x.ahead++
	return x, at
}

// when is the earliest moment for the i-th request, counted from the oldest in
// starts: one Per after the one that is rate.Requests before it.
func (x *pace) when(i int, now time.Time) time.Time {
	if i < len(x.starts) {
		return x.starts[i]
	}
	if i < x.rate.Requests {
		return now
	}
	if at := x.when(i-x.rate.Requests, now).Add(x.rate.Per); at.After(now) {
		return at
	}
	return now
}

// over reports a pace that holds nobody back any more.
func (x *pace) over(now time.Time) bool {
	n := len(x.starts)
	return x.ahead == 0 && (n == 0 || !x.starts[n-1].Add(x.rate.Per).After(now))
}

// start marks the request as sent now and gives the turn on.
func (t *turn) start() {
	if t == nil {
		return
	}
	t.p.mu.Lock()
	x := t.pace
	if len(x.starts) == x.rate.Requests {
		copy(x.starts, x.starts[1:])
		x.starts[len(x.starts)-1] = time.Now()
	} else {
		x.starts = append(x.starts, time.Now())
	}
	x.ahead--
	t.p.mu.Unlock()
	t.pass()
}

// drop gives the turn on unused.
func (t *turn) drop() {
	if t == nil {
		return
	}
	t.quit()
	t.pass()
}

func (t *turn) quit() {
	t.p.mu.Lock()
	defer t.p.mu.Unlock()
	t.pace.ahead--
}

// tooFast refuses a request whose time comes too late.
func tooFast(origin string, r Rate, in time.Duration) error {
	s := int64((in + time.Second - 1) / time.Second)
	return fault.New("BUSY", "request.rate of the wrapper allows %d in %d s to %s; the next request has its turn in %d s, too late for this call", r.Requests, int64(r.Per/time.Second), origin, s).
		With(fault.RetryAfter(in), fault.Hint("Wait %d s, then repeat the call. request.rate in the wrapper sets the pace.", s))
}

// sleep waits for d or until ctx ends, whichever is first.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
