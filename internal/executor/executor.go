// Package executor carries out one wrapper call: build, check, send, read,
// render. Every way to run a wrapper walks through it, so that a run, a live
// test and a generated tool differ in nothing.
//
// It opens no connection, no file and no store itself: what it needs arrives
// as functions in [Config]. Start with [New], then [Executor.Run] for a call
// and [Executor.Preview] for a dry run.
package executor

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
	"github.com/hyperbolic-gateway/hb-rest/internal/wrapper"
	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// Config is what an Executor needs. All fields are required.
type Config struct {
	Send  func(context.Context, *outbound.Request) (*outbound.Response, error)
	Check func(*url.URL) error // outbound.Policy.CheckURL: the part of the policy that needs no network
	Now   func() time.Time     // for Retry-After dates
}

// An Executor is safe for concurrent use.
type Executor struct{ c Config }

// New makes an Executor.
func New(c Config) *Executor { return &Executor{c} }

// Options are one call's own.
type Options struct {
	Args     []byte // a JSON object; empty or null reads as {}
	MaxPages int    // 0: the recipe's
	Call     string // id that the audit rows of this call share
	Kind     string // for the audit trail: run (the default) or test
}

// Paging is the account of a paginated recipe's run.
type Paging struct {
	Pages, Cap, Items int
	Total             *int64
	More              bool
	Stopped           string
}

// An Outcome is a call that worked.
type Outcome struct {
	Status   int
	Duration time.Duration
	Call     *wrapper.Call
	URL      *url.URL // of the answer, after redirects
	Result   *recipe.Result
	Paging   *Paging // nil unless the recipe has pagination
	Warnings []recipe.Problem
}

// A Failure is a call that did not work, with what is known of the request.
// It wraps the *fault.Error.
type Failure struct {
	Err      *fault.Error
	Call     *wrapper.Call // nil when the arguments did not fit
	Duration time.Duration
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
	out, err := e.send(ctx, w, call, o)
	took := e.c.Now().Sub(start)
	if err != nil {
		return nil, &Failure{Err: deadline(ctx, call, err), Call: call, Duration: took}
	}
	out.Duration = took
	return out, nil
}

// refuse runs the checks that come before the network, in the order that
// decides which code wins.
func (e *Executor) refuse(call *wrapper.Call) *fault.Error {
	if err := e.c.Check(call.URL); err != nil {
		return fault.From(err)
	}
	if call.Auth != "" {
		// Credentials are not kept by this version: a wrapper may name one,
		// and a run of it sends nothing.
		return fault.New("SECRET_NOT_FOUND", "there is no credential %q", call.Auth).
			With(fault.Field("wrapper.request.auth"))
	}
	return nil
}

func (e *Executor) send(ctx context.Context, w *wrapper.Wrapper, call *wrapper.Call, o Options) (*Outcome, error) {
	if err := e.refuse(call); err != nil {
		return nil, err
	}
	req := outbound.NewRequest(call.Method, call.URL, call.Body)
	for _, h := range call.Header {
		req.Header.Add(h.Name, h.Value)
	}
	req.Timeout = call.Timeout
	req.Mutating = call.Mutating()
	req.Durable = req.Mutating
	req.Tag = outbound.Tag{Kind: cmp.Or(o.Kind, "run"), Wrapper: w.ID, Call: o.Call}
	resp, err := e.c.Send(ctx, req)
	if err != nil {
		return nil, err
	}
	if f := statusFault(call, resp, e.c.Now()); f != nil {
		return nil, f
	}
	out := &Outcome{Status: resp.Status, Call: call, URL: resp.URL, Warnings: call.Warnings}
	rec := w.Response
	if rec == nil {
		rec = recipe.Plain()
	}
	opt := recipe.RenderOptions{Name: w.Name}
	if isEmptySuccess(call, resp, w.Response != nil) {
		out.Result = noContent(rec, opt, resp.Status)
		return out, nil
	}
	page, f := ReadPage(rec, resp)
	if f != nil {
		return nil, f
	}
	if f := reportedFault(rec, page, resp.Status); f != nil {
		return nil, f
	}
	out.Result = rec.Render([]*recipe.Page{page}, opt)
	if rec.Pagination.Paged() {
		out.Paging = &Paging{Pages: 1, Cap: pageCap(rec, o.MaxPages), Items: page.Items(), More: true, Stopped: "page_cap"}
		out.Warnings = append(out.Warnings, recipe.Problem{
			Field: "response.pagination", Code: "NOT_SUPPORTED",
			Message: "this version reads only the first page; the rest of the list is not shown",
		})
	}
	return out, nil
}

// pageCap is how many pages the caller, or else the recipe, asks for.
func pageCap(rec *recipe.Recipe, maxPages int) int {
	if maxPages > 0 {
		return maxPages
	}
	return rec.Pagination.MaxPages
}

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
}

// Preview builds the request and says what would refuse it; nothing is sent,
// no name is resolved. Its error is ARGS_INVALID or another fault of building.
func (e *Executor) Preview(w *wrapper.Wrapper, args []byte) (*Plan, error) {
	call, err := w.Build(args)
	if err != nil {
		return nil, err
	}
	return &Plan{Call: call, Refused: e.refuse(call)}, nil
}

// deadline renames what the call's own deadline or the caller's departure
// caused: the outer cause is the one the reader can act on. A write that may
// have reached the API is never called retryable.
func deadline(ctx context.Context, call *wrapper.Call, err error) *fault.Error {
	f := fault.From(err)
	ctxErr := ctx.Err()
	if ctxErr == nil || f.Code == "RESPONSE_TOO_LARGE" {
		return f
	}
	g := fault.From(ctxErr).With(fault.Cause(errors.Join(ctxErr, err)))
	if call.Mutating() {
		g.Retryable = false
		g.Hint = "The write may have been applied: check before repeating it."
	}
	return g
}
