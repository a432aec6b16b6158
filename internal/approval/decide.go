package approval

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// Decide answers a question. A person may change their mind: an answer that has
// not been used yet can be turned around. The question is returned as it is
// afterwards. The error is APPROVAL_NOT_FOUND, APPROVAL_EXPIRED (its time is
// over, or its request has been let out), or that of Options.Trust.
func (d *Desk) Decide(id string, v Verdict) (Question, error) {
	d.order.Lock()
	defer d.order.Unlock()
	d.expireOrdered(nil, 0)
	q, a, changes, err := d.judge(id, v)
	if err != nil {
		return Question{}, err
	}
	policy := d.o.Policy(a.Wrapper, a.Doc)
	if v == Trust {
		if err := d.o.Trust(a.Wrapper, a.Doc); err != nil {
			return Question{}, err
		}
	}
	if changes {
		d.o.Record(Event{eventOf(v), id, a})
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if v != Deny {
		d.allow(q, v, policy)
	}
	return q.shown(policy), nil
}

// judge says whether a question takes an answer, and whether that changes
// anything. A refusal holds from here on, before it is recorded.
func (d *Desk) judge(id string, v Verdict) (q *question, a Ask, changes bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	q = d.byID[id]
	if err := d.answerable(q, id, v); err != nil {
		return nil, Ask{}, false, err
	}
	a = q.Ask
	switch v {
	case Allow:
		return q, a, q.State != Allowed, nil
	case Trust:
		return q, a, true, nil
	}
	changes = q.State != Denied
	if changes {
		d.deny(q)
	}
	return q, a, changes, nil
}

// shown is a copy for others.
func (q *question) shown(p Policy) Question {
	out := q.Question
	out.Headers = slices.Clone(q.Headers)
	out.Policy = p
	return out
}

// answerable says why a question takes no such answer. The caller holds mu.
func (d *Desk) answerable(q *question, id string, v Verdict) error {
	if q == nil {
		return notFound(id)
	}
	_, whole := d.docs[q.Doc]
	switch {
	case !q.over, v == Trust && q.State == Allowed, q.State == Allowed && whole:
		return nil
	case q.State == Used:
		return fault.New("APPROVAL_EXPIRED", "the request of this question has been let out already")
	case q.State == Denied:
		return fault.New("APPROVAL_EXPIRED", "this question was denied, and is over")
	case q.State == Allowed:
		return fault.New("APPROVAL_EXPIRED", "this question has been answered: every call of that version of wrapper %q is let out", q.Wrapper).
			With(fault.Hint("To be asked again: `hbrestd approval policy %s default`, or always in the place of default.", q.Wrapper))
	}
	return fault.New("APPROVAL_EXPIRED", "nobody answered this question, or used its answer, in time")
}

func notFound(id string) error {
	return fault.New("APPROVAL_NOT_FOUND", "there is no question %q", fault.Shorten(id, 40)).With(fault.Field("id"))
}

func eventOf(v Verdict) EventKind {
	switch v {
	case Allow:
		return EventAllowed
	case Trust:
		return EventTrusted
	}
	return EventDenied
}

// deny gives a refusal its effect. The caller holds mu and order.
func (d *Desk) deny(q *question) {
	if q.State == Allowed { // as a whole, perhaps
		delete(d.docs, q.Doc)
	}
	if q.State = Denied; !q.over {
		d.endIn(q, d.o.Now())
	}
	d.tell()
}

// allow gives the other verdicts their effect. The caller holds mu and order.
func (d *Desk) allow(q *question, v Verdict, policy Policy) {
	if v == Allow && policy == Always {
		if !q.over && q.State != Allowed {
			q.State = Allowed
			d.endIn(q, d.o.Now())
		}
		d.tell()
		return
	}
	// Every call of the document is let out from now on.
	if v == Allow && policy == First {
		d.docs[q.Doc] = q.Wrapper
	}
	d.finish(q)
	for _, other := range d.live {
		if other.Doc == q.Doc && other.State != Denied {
			d.finish(other)
		}
	}
	d.tell()
}

// finish ends a question whose document is let out as a whole.
func (d *Desk) finish(q *question) {
	d.end(q, Allowed)
	q.Expires = time.Time{}
}

// Forget takes back every answer about a wrapper: it will be asked about again.
// What is trusted for good is not the desk's.
func (d *Desk) Forget(wrapper string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.DeleteFunc(d.docs, func(_ [32]byte, id string) bool { return strings.EqualFold(id, wrapper) })
	for _, q := range d.live {
		if strings.EqualFold(q.Wrapper, wrapper) && q.State == Allowed {
			d.end(q, Expired)
		}
	}
	d.tell()
}

// Find is one question, live or ended lately. The error is APPROVAL_NOT_FOUND.
func (d *Desk) Find(id string) (Question, error) {
	d.expire()
	d.mu.Lock()
	q := d.byID[id]
	if q == nil {
		d.mu.Unlock()
		return Question{}, notFound(id)
	}
	out := q.shown("")
	d.mu.Unlock()
	out.Policy = d.o.Policy(out.Wrapper, out.Doc)
	return out, nil
}

// List is the questions that wait, and those whose answer has not ended yet,
// oldest first. When after is the current revision, it waits for the next
// change or the end of ctx, which is no error.
func (d *Desk) List(ctx context.Context, after uint64) (revision uint64, out []Question) {
	d.expire()
	for {
		d.mu.Lock()
		if after == 0 || d.revision != after || ctx.Err() != nil {
			break
		}
		changed := d.changed
		d.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
	revision = d.revision
	qs := make([]*question, 0, len(d.live))
	for _, q := range d.live {
		qs = append(qs, q)
	}
	slices.SortFunc(qs, byAge)
	out = make([]Question, 0, len(qs))
	for _, q := range qs {
		out = append(out, q.shown(""))
	}
	d.mu.Unlock()
	for i := range out {
		out[i].Policy = d.o.Policy(out[i].Wrapper, out[i].Doc)
	}
	return revision, out
}
