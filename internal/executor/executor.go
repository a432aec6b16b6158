// Package executor carries out one wrapper call: build, check, send, read,
// render. Every way to run a wrapper walks through it, so that a run, a live
// test and a generated tool differ in nothing.
//
// It opens no connection, no file and no store itself: what it needs arrives
// as functions in [Config]. Start with [New], then [Executor.Run] for a call
// and [Executor.Preview] for a dry run.
package executor

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/approval"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
	"github.com/hyperbolic-gateway/hb-rest/internal/paging"
	"github.com/hyperbolic-gateway/hb-rest/internal/secrets"
	"github.com/hyperbolic-gateway/hb-rest/internal/wrapper"
	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// Config is what an Executor needs. All fields but Grant and Allow are required.
type Config struct {
	Send  func(context.Context, *outbound.Request) (*outbound.Response, error)
	Check func(*url.URL) error // outbound.Client.CheckURL: the part of the policy that needs no network
	Now   func() time.Time     // for Retry-After dates
	// Grant gives the right to use a credential for a host; nil: there are none.
	Grant func(name, host string) (*secrets.Grant, error)
	// Allow asks a person whether a write may be sent, and returns an error when
	// it may not; nil: nobody is asked.
	Allow func(context.Context, approval.Ask) error
}

// An Executor is safe for concurrent use.
type Executor struct{ c Config }

// New makes an Executor.
func New(c Config) *Executor { return &Executor{c} }

// Options are one call's own.
type Options struct {
	Args     []byte // a JSON object; empty or null reads as {}
	MaxPages int    // 0: the recipe's
	// Recipe reads and shows the answer in the place of the wrapper's own, which
	// it was narrowed from; nil: the wrapper's own.
	Recipe *recipe.Recipe
	Call   string // id that the audit rows of this call share
	Kind   string // for the audit trail: run (the default) or test
}

// An Outcome is a call that worked.
type Outcome struct {
	Status   int
	Duration time.Duration
	Retries  int // requests that were sent again, over all pages
	Call     *wrapper.Call
	Final    *url.URL // where redirects led, of the first page; nil without any
	Result   *recipe.Result
	Paging   *paging.Report // nil unless the recipe has pagination
	Warnings []recipe.Problem
}

// A Failure is a call that did not work, with what is known of the request.
// It wraps the *fault.Error.
type Failure struct {
	Err      *fault.Error
	Call     *wrapper.Call // nil when the arguments did not fit
	Final    *url.URL      // where redirects led to the answer that failed; nil without any
	Duration time.Duration
	Retries  int // requests that were sent again, over all pages
}

func (f *Failure) Error() string { return f.Err.Error() }

// Unwrap returns the *fault.Error.
func (f *Failure) Unwrap() error { return f.Err }

// Run carries out one call. Its error is a *Failure.
func (e *Executor) Run(ctx context.Context, w *wrapper.Wrapper, o Options) (*Outcome, error) {
	start := e.c.Now()
	call, err := w.Build(o.Args)
	if err != nil {
		return nil, &Failure{Err: fault.From(err)}
	}
	out, retries, err := e.send(ctx, w, call, o)
	took := e.c.Now().Sub(start)
	if err != nil {
		f := &Failure{Err: deadline(ctx, call, err), Call: call, Duration: took, Retries: retries}
		var a *answered
		if errors.As(err, &a) {
			f.Final = a.final
		}
		return nil, f
	}
	out.Duration, out.Retries = took, retries
	return out, nil
}

// Refused says what would stop every call of a wrapper before the network, as
// far as that is known without arguments; nil: nothing.
func (e *Executor) Refused(w *wrapper.Wrapper) *fault.Error {
	return e.refuse(&wrapper.Call{URL: w.Origin(), Auth: w.Request.Auth})
}

// refuse runs the checks that come before the network, in the order that
// decides which code wins.
func (e *Executor) refuse(call *wrapper.Call) *fault.Error {
	if err := e.c.Check(call.URL); err != nil {
		return fault.From(err)
	}
	g, f := e.grant(call)
	if g != nil {
		g.Close()
	}
	return f
}

// A task is one call on its way.
type task struct {
	e     *Executor
	w     *wrapper.Wrapper
	rec   *recipe.Recipe
	o     Options
	grant *secrets.Grant // nil: no credential

	retries int          // requests sent again
	before  *fault.Error // why the request on its way is sent again; nil: it is not
}

func (e *Executor) send(ctx context.Context, w *wrapper.Wrapper, call *wrapper.Call, o Options) (_ *Outcome, retries int, _ error) {
	if err := e.c.Check(call.URL); err != nil {
		return nil, 0, err
	}
	grant, f := e.grant(call)
	if f != nil {
		return nil, 0, f
	}
	if grant != nil {
		defer grant.Close()
	}
	rec := w.Response
	if o.Recipe != nil {
		rec = o.Recipe
	}
	if rec == nil {
		rec = recipe.Plain()
	}
	t := &task{e: e, w: w, rec: rec, o: o, grant: grant}
	if err := t.ask(ctx, call); err != nil {
		return nil, 0, err
	}
	var first *leaf
	var pages []*recipe.Page
	var report *paging.Report
	var err error
	if rec.Pagination.Paged() {
		first, pages, report, err = t.walk(ctx, call)
	} else if first, err = t.fetch(ctx, call, 1); err == nil && first.page != nil {
		pages = []*recipe.Page{first.page}
	}
	if err != nil {
		return nil, t.retries, t.scrubbed(err)
	}
	out := &Outcome{Status: first.resp.Status, Call: call, Final: final(first.resp), Warnings: call.Warnings, Paging: report}
	opt := recipe.RenderOptions{Name: w.Name}
	if len(pages) == 0 {
		out.Result = noContent(rec, opt, first.resp.Status)
	} else {
		out.Result = rec.Render(pages, opt)
	}
	out.account()
	return out, t.retries, nil
}

// account carries what the walk found into the result: a walk that failed on
// the way, or that the cap of items ended, is a truncated result.
func (o *Outcome) account() {
	if o.Paging == nil {
		return
	}
	switch o.Paging.Stopped {
	case paging.StopDeadline, paging.StopPolicy, paging.StopError:
		o.Result.Meta.Truncated = true
	case paging.StopItemCap: // the cap cut the list, though perhaps no page of it
		m := &o.Result.Meta
		if m.Truncated = true; m.Reason != "bytes" {
			m.Reason = "items"
		}
	}
	if o.Paging.Note != "" {
		o.Warnings = append(o.Warnings, recipe.Problem{Field: "response.pagination", Code: "PAGING_NEXT", Message: o.Paging.Note})
	}
}

// Complete reports whether the API answered every request of the call.
func (o *Outcome) Complete() bool { return o.Paging == nil || o.Paging.Error == nil }

// isEmptySuccess tells an answer without content from one whose content is
// missing. 204, 205 and HEAD have none by definition. A write, or a wrapper
// without a recipe, may answer any success without a body; a read whose recipe
// expects JSON may not (RESPONSE_EMPTY).
func isEmptySuccess(call *wrapper.Call, resp *outbound.Response, hasRecipe bool) bool {
	if resp.Status == 204 || resp.Status == 205 || call.Method == "HEAD" {
		return true
	}
	if len(strings.TrimSpace(string(resp.Body[:min(len(resp.Body), 64)]))) > 0 || len(resp.Body) > 64 {
		return false
	}
	return call.Method != "GET" || !hasRecipe
}

// noContent is the result of a success without a body.
func noContent(rec *recipe.Recipe, opt recipe.RenderOptions, status int) *recipe.Result {
	empty := recipe.Plain().Render(nil, opt)
	heading, _, _ := strings.Cut(empty.Markdown, "\n")
	r := &recipe.Result{Records: []recipe.Value{}, Meta: recipe.Meta{Mode: rec.Mode}}
	r.Markdown = heading + "\n\nNo content (status " + itoa(status) + ")."
	return r
}

// Sample renders a value as if it were the wrapper's answer; nothing is sent.
func Sample(w *wrapper.Wrapper, sample []byte) (*recipe.Result, error) {
	rec := w.Response
	if rec == nil {
		rec = recipe.Plain()
	}
	page, err := rec.Read(sample, rec.Limits.MaxItems, nil)
	if err != nil {
		return nil, fault.New("SAMPLE_INVALID", "the sample is not usable: %v", err).With(fault.Field("body.sample"))
	}
	return rec.Render([]*recipe.Page{page}, recipe.RenderOptions{Name: w.Name}), nil
}

// A Plan is what a dry run shows.
type Plan struct {
	Call    *wrapper.Call
	Refused *fault.Error // what would stop a real call before the network; nil: nothing
	Pages   int          // requests that a paginated recipe may send; 0: it has no pagination
}

// Preview builds the request, of a paginated recipe the first one, and says what would refuse it; nothing is sent,
// no name is resolved. Its error is ARGS_INVALID or another fault of building.
func (e *Executor) Preview(w *wrapper.Wrapper, args []byte, maxPages int) (*Plan, error) {
	call, err := w.Build(args)
	if err != nil {
		return nil, err
	}
	p := &Plan{Call: call, Refused: e.refuse(call)}
	if w.Response != nil && w.Response.Pagination.Paged() {
		walker := paging.New(w.Response.Pagination, call.URL, maxPages, w.Response.Limits.MaxItems)
		if p.Call, err = edited(call, walker.First()); err != nil {
			return nil, err
		}
		p.Pages = walker.Report().Cap
	}
	return p, nil
}

// deadline renames what the call's own deadline or the caller's departure
// caused: the outer cause is the one the reader can act on. What the API said by
// its status it has said before, and a try that failed before is named. A write
// that may have reached the API is never called retryable.
func deadline(ctx context.Context, call *wrapper.Call, err error) *fault.Error {
	f := fault.From(err)
	ctxErr := ctx.Err()
	var u *unasked
	if ctxErr == nil || f.Code == "RESPONSE_TOO_LARGE" || errors.As(err, &u) {
		return f
	}
	var a *answered
	if errors.Is(ctxErr, context.DeadlineExceeded) && errors.As(err, &a) && a.resp != nil {
		return f
	}
	g := fault.From(ctxErr).With(fault.Cause(errors.Join(ctxErr, err)))
	var r *repeated
	if errors.As(err, &r) {
		g.Message = fault.Shorten(g.Message+"; the try before failed: "+r.before.Message, fault.MaxMessage)
	}
	if call.Mutating() {
		g.Retryable = false
		g.Hint = "The write may have been applied: check before repeating it."
	}
	return g
}
