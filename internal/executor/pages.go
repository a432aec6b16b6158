package executor

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
	"github.com/hyperbolic-gateway/hb-rest/internal/paging"
	"github.com/hyperbolic-gateway/hb-rest/internal/wrapper"
	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// A leaf is one answer that worked.
type leaf struct {
	resp *outbound.Response
	page *recipe.Page // nil: a success without content
}

// An answered fault is one that came with an answer.
type answered struct {
	err   *fault.Error
	final *url.URL           // nil: no redirects
	resp  *outbound.Response // whose status is the fault; nil: the fault is in the body
}

func (a *answered) Error() string { return a.err.Error() }
func (a *answered) Unwrap() error { return a.err }

// final is where redirects led; nil without any.
func final(resp *outbound.Response) *url.URL {
	if resp.Hops == 0 {
		return nil
	}
	return resp.URL
}

// try sends one request once and reads its answer.
func (t *task) try(ctx context.Context, call *wrapper.Call, key string, n, try int) (*leaf, error) {
	req := outbound.NewRequest(call.Method, call.URL, call.Body)
	for _, h := range call.Header {
		req.Header.Add(h.Name, h.Value)
	}
	if key != "" {
		req.Header.Set(call.IdempotencyHeader, key)
	}
	req.Timeout = call.Timeout
	req.Mutating, req.Repeatable = call.Mutating(), repeatable(call)
	req.Concurrency = call.Concurrency
	if r := call.Rate; r != nil {
		req.Rate = outbound.Rate{Requests: r.Requests, Per: r.Per}
	}
	req.Durable = req.Mutating
	req.Tag = outbound.Tag{Kind: cmp.Or(t.o.Kind, "run"), Wrapper: t.w.ID, Call: t.o.Call}
	if n > 1 && t.o.Call != "" { // a row of its own for each page
		req.Tag.Call += "-p" + itoa(n)
	}
	if try > 1 && t.o.Call != "" { // and for each try
		req.Tag.Call += "-try" + itoa(try)
	}
	var got reading
	req.Judge = func(resp *outbound.Response) fault.Code { return got.judge(t, call, resp) }
	resp, err := t.sendWith(ctx, call, req)
	if err != nil {
		return nil, err
	}
	if got.judge(t, call, resp) != "" {
		return nil, got.err
	}
	return got.leaf, nil
}

// A reading is what a call makes of the newest answer to a request. It is made
// while the request is sent, so that its audit row has the code of the call.
type reading struct {
	of   *outbound.Response
	leaf *leaf
	err  *answered
}

// judge reads an answer once and returns the code of what is wrong with it.
func (r *reading) judge(t *task, call *wrapper.Call, resp *outbound.Response) fault.Code {
	if r.of != resp {
		r.of = resp
		r.leaf, r.err = t.read(call, t.received(resp))
	}
	if r.err == nil {
		return ""
	}
	return r.err.err.Code
}

// read reads an answer.
func (t *task) read(call *wrapper.Call, resp *outbound.Response) (*leaf, *answered) {
	if f := statusFault(call, resp, t.e.c.Now()); f != nil {
		return nil, &answered{f, final(resp), resp}
	}
	if isEmptySuccess(call, resp, t.w.Response != nil) {
		return &leaf{resp: resp}, nil
	}
	page, f := ReadPage(t.rec, resp, t.scrubText())
	if f != nil {
		return nil, &answered{f, final(resp), nil}
	}
	if f := reportedFault(t.rec, page, resp.Status); f != nil {
		return nil, &answered{f, final(resp), nil}
	}
	return &leaf{resp: resp, page: page}, nil
}

// walk follows a recipe's pages. The first page's failure is the run's; a
// later one ends the walk with what was read. Each page is a request like any
// other, with the same checks and an audit row of its own.
func (t *task) walk(ctx context.Context, call *wrapper.Call) (*leaf, []*recipe.Page, *paging.Report, error) {
	walker := paging.New(t.rec.Pagination, call.URL, t.o.MaxPages, t.rec.Limits.MaxItems)
	edit := walker.First()
	var first *leaf
	var pages []*recipe.Page
	for n := 1; ; n++ {
		l, err := t.fetchEdited(ctx, call, edit, n)
		if err != nil && first == nil {
			return nil, nil, nil, err
		}
		if err != nil {
			if errors.Is(ctx.Err(), context.Canceled) {
				return nil, nil, nil, err // nobody is there to read what was kept
			}
			walker.Stop(stopReason(ctx, call, t.scrubbed(err)))
			break
		}
		if first == nil {
			first = l
		}
		var more bool
		edit, more = walker.Next(seen(t.rec, l))
		if l.page != nil && !walker.Report().Repeat {
			pages = append(pages, l.page)
		}
		if !more {
			break
		}
	}
	report := walker.Report()
	return first, pages, &report, nil
}

func seen(rec *recipe.Recipe, l *leaf) paging.Page {
	p := paging.Page{URL: l.resp.URL, Header: l.resp.Header, Body: l.resp.Body}
	if l.page != nil {
		p.Lookup, p.Items, p.Single = l.page.Lookup, l.page.Items(), rec.Shape == recipe.List && !l.page.IsList() && l.page.Items() == 1
	}
	return p
}

// stopReason names why a later page could not be read.
func stopReason(ctx context.Context, call *wrapper.Call, err error) (string, *fault.Error) {
	f := deadline(ctx, call, err)
	switch {
	case f.Code == "CALL_DEADLINE":
		return paging.StopDeadline, f
	case strings.HasPrefix(string(f.Code), "POLICY_"):
		return paging.StopPolicy, f
	}
	return paging.StopError, f
}

func (t *task) fetchEdited(ctx context.Context, call *wrapper.Call, edit paging.Edit, n int) (*leaf, error) {
	c, err := edited(call, edit)
	if err != nil {
		return nil, err
	}
	if err := t.e.c.Check(c.URL); err != nil {
		return nil, err
	}
	return t.fetch(ctx, c, n)
}

// edited is the call with a page's changes. A body that no page touches keeps
// its bytes.
func edited(call *wrapper.Call, edit paging.Edit) (*wrapper.Call, error) {
	c := *call
	c.Header = append([]wrapper.Header(nil), call.Header...)
	set := func(name, value string) { c.Header = setHeader(c.Header, name, value) }
	var body recipe.Value
	if len(edit.Body) > 0 && call.Body != nil {
		var err error
		if body, err = recipe.Decode(call.Body, recipe.DecodeLimits{}); err != nil {
			return nil, err
		}
	}
	var err error
	var u *url.URL
	if u, body, err = edit.Apply(call.URL, set, body); err != nil {
		return nil, err
	}
	c.URL = u
	if len(edit.Body) > 0 {
		c.Body = recipe.Encode(body)
		if !hasHeader(c.Header, "Content-Type") {
			set("Content-Type", "application/json")
		}
	}
	return &c, nil
}

func hasHeader(hs []wrapper.Header, name string) bool {
	return slices.ContainsFunc(hs, func(h wrapper.Header) bool { return strings.EqualFold(h.Name, name) })
}

// setHeader replaces a header in place, or adds it.
func setHeader(hs []wrapper.Header, name, value string) []wrapper.Header {
	for i := range hs {
		if strings.EqualFold(hs[i].Name, name) {
			hs[i].Value = value
			return hs
		}
	}
	return append(hs, wrapper.Header{Name: name, Value: value})
}
