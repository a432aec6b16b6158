package executor

import (
	"context"

	"github.com/hyperbolic-gateway/hb-rest/internal/approval"
	"github.com/hyperbolic-gateway/hb-rest/internal/paging"
	"github.com/hyperbolic-gateway/hb-rest/internal/wrapper"
)

// An unasked error is why a write was not allowed. Nothing has been sent.
type unasked struct{ error }

func (u *unasked) Unwrap() error { return u.error }

// ask asks for a write, once for a call: for its first request and the plan of
// its pages, and for every try of them. It comes after every check that needs
// no network, because nobody is to be asked about a call that would be refused.
func (t *task) ask(ctx context.Context, call *wrapper.Call) error {
	if t.e.c.Allow == nil || !call.Mutating() {
		return nil
	}
	first, pages := call, 1
	if t.rec.Pagination.Paged() {
		walker := paging.New(t.rec.Pagination, call.URL, t.o.MaxPages, t.rec.Limits.MaxItems)
		var err error
		if first, err = edited(call, walker.First()); err != nil {
			return err
		}
		if err := t.e.c.Check(first.URL); err != nil {
			return err
		}
		pages = walker.Report().Cap
	}
	if err := t.e.c.Allow(ctx, question(t.w, first, pages)); err != nil {
		return &unasked{err}
	}
	return nil
}

// question is what a person reads: the request whole, with everything that is
// shaped like a credential masked.
func question(w *wrapper.Wrapper, call *wrapper.Call, pages int) approval.Ask {
	p := call.Preview()
	a := approval.Ask{
		Wrapper: w.ID, Name: w.Name, Doc: w.Digest(), Call: call.Digest(), Pages: pages,
		Method: p.Method, URL: p.URL, Host: call.URL.Host, Body: string(call.Body), BodyType: p.BodyType, Auth: p.Auth,
	}
	for _, h := range p.Headers {
		a.Headers = append(a.Headers, h.Name+": "+h.Value)
	}
	return a
}
