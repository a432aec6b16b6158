package outbound

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// errFull says that MaxWaiting wait already.
var errFull = errors.New("the queue is full")

// A queue bounds what is under way at once in each lane: the exchanges in
// flight to an origin, or whose turn it is at a rate.
type queue struct {
	limit int
	mu    sync.Mutex // guards lanes and what is in them
	lanes map[string]*lane
}

// A lane exists while somebody uses or wants it.
type lane struct {
	inside  int
	waiting []*waiter // in the order they came
}

// A waiter is one who is not let in yet.
type waiter struct {
	limit int
	in    chan struct{} // closed when it is
}

// enter takes a place in a lane, first come, first served, waiting until ctx
// ends. own, unless 0, lowers the limit for this one: it is let in when fewer
// than own are inside, whoever they are, and nobody passes it meanwhile. enter
// returns leave, which must be called once, or errFull when MaxWaiting others
// wait already, or the context's error.
func (q *queue) enter(ctx context.Context, name string, own int) (leave func(), err error) {
	limit := q.limit
	if own > 0 {
		limit = min(limit, own)
	}
	q.mu.Lock()
	l := q.lanes[name]
	if l == nil {
		if q.lanes == nil {
			q.lanes = make(map[string]*lane)
		}
		l = &lane{}
		q.lanes[name] = l
	}
	leave = func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		l.inside--
		q.admit(name, l)
	}
	if len(l.waiting) == 0 && l.inside < limit {
		l.inside++
		q.mu.Unlock()
		return leave, nil
	}
	if len(l.waiting) >= MaxWaiting {
		q.mu.Unlock()
		return nil, errFull
	}
	w := &waiter{limit, make(chan struct{})}
	l.waiting = append(l.waiting, w)
	q.mu.Unlock()

	select {
	case <-w.in:
		return leave, nil
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := slices.Index(l.waiting, w); i >= 0 {
		l.waiting = slices.Delete(l.waiting, i, i+1)
	} else { // let in at the same moment
		l.inside--
	}
	q.admit(name, l)
	return nil, ctx.Err()
}

// admit lets in whoever may enter now, and forgets a lane that nobody uses.
func (q *queue) admit(name string, l *lane) {
	for len(l.waiting) > 0 && l.inside < l.waiting[0].limit {
		l.inside++
		close(l.waiting[0].in)
		l.waiting = slices.Delete(l.waiting, 0, 1)
	}
	if l.inside == 0 && len(l.waiting) == 0 {
		delete(q.lanes, name)
	}
}
