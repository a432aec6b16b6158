package outbound

import (
	"context"
	"sync"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// A queue bounds the exchanges in flight to each origin.
type queue struct {
	limit int
	mu    sync.Mutex // guards lanes and the counts in them
	lanes map[string]*lane
}

// A lane is one origin's places. It exists while somebody uses or wants it.
type lane struct {
	places        chan struct{} // holds one value per place taken
	users, waited int
}

// enter takes a place for origin, waiting until ctx ends. It returns leave,
// which must be called once, or BUSY when MaxWaiting others wait already, or
// the context's error.
func (q *queue) enter(ctx context.Context, origin string) (leave func(), err error) {
	q.mu.Lock()
	if q.lanes == nil {
		q.lanes = make(map[string]*lane)
	}
	l := q.lanes[origin]
	if l == nil {
		l = &lane{places: make(chan struct{}, q.limit)}
		q.lanes[origin] = l
	}
	leave = func() {
		<-l.places
		q.done(origin, l)
	}
	select {
	case l.places <- struct{}{}:
		l.users++
		q.mu.Unlock()
		return leave, nil
	default:
	}
	if l.waited >= MaxWaiting {
		q.mu.Unlock()
		return nil, fault.New("BUSY", "%d requests to %s are in flight and %d wait already", q.limit, origin, MaxWaiting)
	}
	l.users++
	l.waited++
	q.mu.Unlock()

	select {
	case l.places <- struct{}{}:
	case <-ctx.Done():
		err = ctx.Err()
	}
	q.mu.Lock()
	l.waited--
	q.mu.Unlock()
	if err != nil {
		q.done(origin, l)
		return nil, err
	}
	return leave, nil
}

func (q *queue) done(origin string, l *lane) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if l.users--; l.users == 0 {
		delete(q.lanes, origin)
	}
}
