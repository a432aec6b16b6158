package approval

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// A Desk is safe for concurrent use. Close it.
type Desk struct {
	o Options

	// order serialises what is recorded, so that the trail tells of a question
	// before its answer. It is taken before mu, never after.
	order  sync.Mutex
	timers sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	live     map[key]*question    // pending, allowed or denied
	byID     map[string]*question // live and ended
	ended    []*question          // oldest first, at most maxEnded
	docs     map[[32]byte]string  // allowed under First, with the wrapper's id
	revision uint64               // grows with every change
	changed  chan struct{}        // closed at the next change
}

type question struct {
	Question
	timer *time.Timer // ends it
	lives int         // timers it has had; the one of an earlier life ends nothing
	over  bool        // not in live any more
}

// New makes a desk with nothing on it.
func New(o Options) *Desk {
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Wait, o.Life = cmp.Or(o.Wait, DefaultWait), cmp.Or(o.Life, DefaultLife)
	return &Desk{
		o: o, live: map[key]*question{}, byID: map[string]*question{}, docs: map[[32]byte]string{},
		revision: 1, changed: make(chan struct{}),
	}
}

// Close forgets every question and answer, and waits for what is being
// recorded. Calls that wait must have been ended by their contexts.
func (d *Desk) Close() {
	d.mu.Lock()
	d.closed = true
	for _, q := range d.live {
		d.stopTimer(q)
	}
	clear(d.live)
	clear(d.byID)
	clear(d.docs)
	d.mu.Unlock()
	d.timers.Wait()
}

// Allow lets a call go on, or says why not: APPROVAL_REQUIRED when nobody has
// answered within the wait, APPROVAL_DENIED, BUSY when too many questions wait,
// or the error of ctx. It waits for at most half of what is left until ctx's
// deadline, so that an allowed call can still be carried out.
func (d *Desk) Allow(ctx context.Context, a Ask) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	wait := d.o.Wait
	if until, ok := ctx.Deadline(); ok {
		wait = min(wait, time.Until(until)/2)
	}
	enough := time.NewTimer(wait)
	defer enough.Stop()
	var at *question // where this call is counted as waiting
	defer func() { d.moveTo(&at, nil) }()
	for {
		policy := d.o.Policy(a.Wrapper, a.Doc)
		if policy == Off || d.o.Trusted(a.Wrapper, a.Doc) {
			return nil
		}
		q, changed, err := d.ask(&a, policy)
		if q == nil || err != nil {
			return err
		}
		d.moveTo(&at, q)
		select {
		case <-changed:
		case <-enough.C:
			return d.required(q, wait)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// moveTo counts a waiting call at another question.
func (d *Desk) moveTo(at **question, q *question) {
	if *at == q {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if *at != nil {
		(*at).Waiting--
	}
	if q != nil {
		q.Waiting++
	}
	*at = q
	d.tell()
}

func (d *Desk) required(q *question, waited time.Duration) error {
	return fault.New("APPROVAL_REQUIRED", "a person must allow this %s of wrapper %q first; nobody has answered within %s, and nothing was sent",
		q.Method, q.Wrapper, waited.Round(100*time.Millisecond)).
		With(fault.Hint("Ask a person to look at it with `hbrestd approval show %s` and allow it; then repeat exactly the same call.", q.ID))
}

// ask finds what is known of a request: nothing to wait for (q is nil), a
// refusal, or a question to wait at, which it makes if there is none.
func (d *Desk) ask(a *Ask, policy Policy) (q *question, changed <-chan struct{}, err error) {
	d.expire()
	d.mu.Lock()
	known, q, changed, err := d.look(a, policy)
	d.mu.Unlock()
	if known {
		return q, changed, err
	}
	d.order.Lock()
	defer d.order.Unlock()
	d.mu.Lock()
	if known, q, changed, err = d.look(a, policy); known { // meanwhile another has asked the same
		d.mu.Unlock()
		return q, changed, err
	}
	q, err = d.open(a)
	changed = d.changed
	d.mu.Unlock()
	if err == nil {
		d.o.Record(Event{EventAsked, q.ID, *a})
	}
	return q, changed, err
}

// look uses up an answer, if there is one. The caller holds mu.
func (d *Desk) look(a *Ask, policy Policy) (known bool, q *question, changed <-chan struct{}, err error) {
	q = d.live[a.key()]
	_, whole := d.docs[a.Doc]
	switch {
	case q != nil && q.State == Denied: // stands, whatever was allowed beside it
		return true, nil, nil, fault.New("APPROVAL_DENIED", "a person has refused this %s of wrapper %q; nothing was sent", q.Method, q.Wrapper)
	case policy == First && whole:
		return true, nil, nil, nil
	case q == nil:
		return false, nil, nil, nil
	case q.State == Allowed:
		d.end(q, Used)
		return true, nil, nil, nil
	}
	return true, q, d.changed, nil
}

// open puts a new question on the desk. The caller holds mu.
func (d *Desk) open(a *Ask) (*question, error) {
	pending, same, bytes := 0, 0, a.size()
	for _, q := range d.live {
		bytes += q.size()
		if q.State == Pending {
			pending++
			if strings.EqualFold(q.Wrapper, a.Wrapper) {
				same++
			}
		}
	}
	full := ""
	switch {
	case d.closed:
		return nil, fault.New("SHUTTING_DOWN", "hbrestd is stopping")
	case same >= MaxPerWrapper:
		full = "for other calls of this wrapper"
	case pending >= MaxPending:
		full = "for other calls"
	case bytes > MaxBytes:
		full = "for other large requests"
	}
	if full != "" {
		return nil, fault.New("BUSY", "a person must allow this %s first, and too many questions wait already %s; nothing was sent", a.Method, full).
			With(fault.Hint("Ask a person to answer what `hbrestd approval list` shows; then repeat the call."))
	}
	now := d.o.Now()
	q := &question{Question: Question{Ask: *a, ID: d.o.NewID(), State: Pending, Asked: now}}
	q.Headers = slices.Clone(a.Headers)
	d.live[a.key()], d.byID[q.ID] = q, q
	d.endIn(q, now)
	d.tell()
	return q, nil
}

// endIn gives a question another whole life. The caller holds mu.
func (d *Desk) endIn(q *question, now time.Time) {
	d.stopTimer(q)
	if d.closed {
		return
	}
	// Both clocks count: a timer stands still while a machine sleeps, and a
	// person can set the other one back.
	q.Expires = now.Round(0).Add(d.o.Life)
	q.lives++
	life := q.lives
	d.timers.Add(1)
	q.timer = time.AfterFunc(d.o.Life, func() {
		defer d.timers.Done()
		d.order.Lock()
		defer d.order.Unlock()
		d.expireOrdered(q, life)
	})
}

func (d *Desk) stopTimer(q *question) {
	if q.timer != nil && q.timer.Stop() {
		d.timers.Done()
	}
	q.timer = nil
}

// expire ends the questions whose time is over.
func (d *Desk) expire() {
	d.mu.Lock()
	none := len(d.overdue(nil, 0)) == 0
	d.mu.Unlock()
	if none {
		return
	}
	d.order.Lock()
	defer d.order.Unlock()
	d.expireOrdered(nil, 0)
}

// expireOrdered is expire for who holds order; due is a question whose timer
// says that this life of it is over.
func (d *Desk) expireOrdered(due *question, life int) {
	var events []Event
	d.mu.Lock()
	for _, q := range d.overdue(due, life) {
		if q.State == Denied { // has been told of
			d.end(q, Denied)
			continue
		}
		events = append(events, Event{EventExpired, q.ID, q.Ask})
		d.end(q, Expired)
	}
	d.mu.Unlock()
	for _, e := range events {
		d.o.Record(e)
	}
}

func (d *Desk) overdue(due *question, life int) []*question {
	now := d.o.Now().Round(0)
	var out []*question
	for _, q := range d.live {
		if q == due && q.lives == life || !q.Expires.After(now) {
			out = append(out, q)
		}
	}
	slices.SortFunc(out, byAge)
	return out
}

// end takes a question off the desk. The caller holds mu.
func (d *Desk) end(q *question, s State) {
	if q.over {
		return
	}
	d.stopTimer(q)
	q.over, q.State = true, s
	delete(d.live, q.key())
	q.Body, q.Headers = "", nil
	d.ended = append(d.ended, q)
	if len(d.ended) > maxEnded {
		delete(d.byID, d.ended[0].ID)
		d.ended = slices.Delete(d.ended, 0, 1)
	}
	d.tell()
}

// tell wakes everybody who waits for news. The caller holds mu.
func (d *Desk) tell() {
	d.revision++
	close(d.changed)
	d.changed = make(chan struct{})
}

// Reconsider lets waiting calls look at the policy again.
func (d *Desk) Reconsider() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tell()
}

func byAge(a, b *question) int {
	return cmp.Or(a.Asked.Compare(b.Asked), strings.Compare(a.ID, b.ID))
}
