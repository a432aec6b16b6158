package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/executor"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/redact"
	"github.com/hyperbolic-gateway/hb-rest/internal/wrapper"
	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// Run executes a saved wrapper.
func (d *Daemon) Run(ctx context.Context, r *api.RunRequest) (*api.RunResult, error) {
	w, err := d.store.Get(r.ID)
	if err != nil {
		return nil, err
	}
	rec, err := narrowed(w, r.Fields, r.MaxItems)
	if err != nil {
		return nil, err
	}
	return d.liveAs(ctx, w, rec, r.Args, r.MaxPages, r.Format, "run")
}

// Test is a dry run, a rendered sample, or a live call of a document that need
// not be saved.
func (d *Daemon) Test(ctx context.Context, r *api.TestRequest) (*api.TestResult, error) {
	w, warnings, err := d.testSubject(r)
	if err != nil {
		return nil, err
	}
	rec, err := narrowed(w, r.Fields, r.MaxItems)
	if err != nil {
		return nil, err
	}
	switch {
	case len(r.Sample) > 0:
		if rec != nil {
			shown := *w
			shown.Response = rec
			w = &shown
		}
		res, err := d.sample(w, r)
		if err != nil {
			return nil, err
		}
		res.Warnings = append(warnings, res.Warnings...)
		return &api.TestResult{Run: res}, nil
	case r.DryRun == nil || *r.DryRun:
		plan, err := d.plan(w, r.Args, r.MaxPages)
		if err != nil {
			return nil, err
		}
		plan.Warnings = append(warnings, plan.Warnings...)
		return &api.TestResult{Plan: plan}, nil
	}
	kind := "test"
	if r.ID != "" { // a live test of a saved wrapper is a run
		kind = "run"
	}
	res, err := d.liveAs(ctx, w, rec, r.Args, r.MaxPages, r.Format, kind)
	if err != nil {
		return nil, err
	}
	res.Warnings = append(warnings, res.Warnings...)
	return &api.TestResult{Run: res}, nil
}

func (d *Daemon) testSubject(r *api.TestRequest) (*wrapper.Wrapper, []api.Warning, error) {
	switch {
	case r.ID != "" && len(r.Wrapper) > 0:
		return nil, nil, fault.OneProblem("BAD_REQUEST", "DUPLICATE", "body.wrapper", "send either id or wrapper, not both")
	case r.ID != "":
		w, err := d.store.Get(r.ID)
		return w, nil, err
	case len(r.Wrapper) > 0:
		return parse(r.Wrapper)
	}
	return nil, nil, fault.OneProblem("BAD_REQUEST", "REQUIRED", "body.id", "send the id of a saved wrapper, or a wrapper")
}

func (d *Daemon) live(ctx context.Context, w *wrapper.Wrapper, args []byte, maxPages *int, format, kind string) (*api.RunResult, error) {
	return d.liveAs(ctx, w, nil, args, maxPages, format, kind)
}

// liveAs sends the request of w; rec, when it is not nil, is what to show of
// the answer instead of what the wrapper's own recipe does.
func (d *Daemon) liveAs(ctx context.Context, w *wrapper.Wrapper, rec *recipe.Recipe, args []byte, maxPages *int, format, kind string) (*api.RunResult, error) {
	ctx, done, err := d.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	defer d.tidy.after()
	o := executor.Options{Args: args, Call: newCall(), Kind: kind, Recipe: rec}
	if maxPages != nil {
		o.MaxPages = *maxPages
	}
	out, err := d.state.Load().exec.Run(ctx, w, o)
	if err != nil {
		return nil, d.failed(w, err)
	}
	if kind == "run" && out.Complete() {
		d.store.MarkVerified(w.ID, d.now())
		d.noteFields(w, rec, out.Result.Meta)
	}
	res := result(w, out.Result, format)
	res.Status, res.DurationMs = &out.Status, out.Duration.Milliseconds()
	req := request(out.Call, out.Final)
	res.Request, res.Warnings = &req, warningsOf(out.Warnings)
	if p := out.Paging; p != nil {
		res.Paging = &api.Paging{Pages: p.Pages, Cap: p.Cap, Items: p.Items, Total: p.Total, More: p.More, Stopped: p.Stopped}
		if f := p.Error; f != nil {
			res.Paging.Error = &api.Short{
				Code: string(f.Code), Status: f.Status, Retryable: f.Retryable, RetryAfterMs: f.RetryAfter.Milliseconds(), Message: f.Message,
			}
		}
	}
	if w.Response != nil && w.Response.Index == "cortex" {
		d.index(ctx, w, out, rec, kind, res)
	}
	return res, nil
}

// failed says what became of a call: one log line, and an error that carries
// the request for the reader.
func (d *Daemon) failed(w *wrapper.Wrapper, err error) error {
	f := fault.From(err)
	if f.Code == "INTERNAL" {
		d.log.Error("internal fault", "id", f.LogID, "wrapper", w.ID, "cause", errors.Unwrap(f))
	}
	ce := &api.CallError{Err: f, Wrapper: &api.WrapperRef{ID: w.ID, Name: w.Name}}
	var x *executor.Failure
	if errors.As(err, &x) && x.Call != nil {
		req := request(x.Call, x.Final)
		ce.Request, ce.Duration, ce.Warnings = &req, x.Duration, warningsOf(x.Call.Warnings)
	}
	return ce
}

func (d *Daemon) sample(w *wrapper.Wrapper, r *api.TestRequest) (*api.RunResult, error) {
	text, err := sampleText(r.Sample)
	if err != nil {
		return nil, err
	}
	start := d.now()
	res, err := executor.Sample(w, text)
	if err != nil {
		return nil, err
	}
	out := result(w, res, r.Format)
	out.DurationMs = d.now().Sub(start).Milliseconds()
	return out, nil
}

// sampleText unpacks a sample that came as a string holding JSON. A string
// that holds none is the sample itself: a JSON string is a JSON value.
func sampleText(raw json.RawMessage) ([]byte, error) {
	v, err := recipe.Decode(raw, recipe.DecodeLimits{})
	if err != nil {
		return nil, fault.New("SAMPLE_INVALID", "the sample is not usable: %v", err).With(fault.Field("body.sample"))
	}
	s, isString := v.(string)
	if !isString {
		return raw, nil
	}
	if _, err := recipe.Decode([]byte(s), recipe.DecodeLimits{}); err != nil {
		return nil, fault.New("SAMPLE_INVALID", "the sample is a string that does not hold JSON: %v", err).With(fault.Field("body.sample"))
	}
	return []byte(s), nil
}

func (d *Daemon) plan(w *wrapper.Wrapper, args []byte, maxPages *int) (*api.Plan, error) {
	n := 0
	if maxPages != nil {
		n = *maxPages
	}
	p, err := d.state.Load().exec.Preview(w, args, n)
	if err != nil {
		return nil, d.failed(w, err)
	}
	plan := &api.Plan{
		OK: true, DryRun: true, Wrapper: api.WrapperRef{ID: w.ID, Name: w.Name},
		Args: recipe.Encode(p.Call.Args), Request: request(p.Call, nil), Secret: p.Call.Auth,
		Mutating: p.Call.Mutating(), MaxPages: p.Pages, Warnings: warningsOf(p.Call.Warnings),
	}
	if f := p.Refused; f != nil {
		plan.Refused = []api.Refusal{{Code: string(f.Code), Field: f.Field, Message: f.Message, Hint: f.Hint}}
	}
	return plan, nil
}

// request is the redacted form of what was, or would be, sent, and of the place
// where redirects led, if there were any.
func request(c *wrapper.Call, final *url.URL) api.Request {
	p := c.Preview()
	headers := recipe.Object{}
	for _, h := range p.Headers {
		headers = append(headers, recipe.Member{Key: h.Name, Value: h.Value})
	}
	out := api.Request{Method: p.Method, URL: p.URL, Headers: recipe.Encode(headers), Body: p.Body, BodyType: p.BodyType}
	if final != nil {
		out.FinalURL = redact.URL(final)
	}
	return out
}

func result(w *wrapper.Wrapper, r *recipe.Result, format string) *api.RunResult {
	out := &api.RunResult{OK: true, Wrapper: api.WrapperRef{ID: w.ID, Name: w.Name}, Meta: meta(r.Meta)}
	if format != api.FormatJSON {
		out.Markdown = &r.Markdown
	}
	if format != api.FormatMarkdown {
		out.Records = r.RecordsJSON()
	}
	return out
}

func meta(m recipe.Meta) api.Meta {
	out := api.Meta{
		Mode: string(m.Mode), Selected: m.Selected, Rendered: m.Rendered, Truncated: m.Truncated,
		Reason: m.Reason, EmptyFields: m.EmptyFields, Warnings: m.Warnings,
	}
	if m.Shown < m.Rendered {
		out.Shown = &m.Shown
	}
	return out
}
