package executor

import (
	"context"
	"errors"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
	"github.com/hyperbolic-gateway/hb-rest/internal/secrets"
	"github.com/hyperbolic-gateway/hb-rest/internal/wrapper"
)

// grant is the right to use the call's credential for the call's host; nil when
// the wrapper names none. It checks the binding and opens nothing.
func (e *Executor) grant(call *wrapper.Call) (*secrets.Grant, *fault.Error) {
	if call.Auth == "" {
		return nil, nil
	}
	if e.c.Grant == nil {
		return nil, fault.New("SECRET_NOT_FOUND", "there is no credential %q: this daemon keeps none", call.Auth).With(fault.Field("wrapper.request.auth"))
	}
	g, err := e.c.Grant(call.Auth, call.URL.Hostname())
	if err != nil {
		return nil, fault.From(err).With(fault.Field("wrapper.request.auth"))
	}
	return g, nil
}

// sendWith sends a request, with the credential when there is one. An answer
// that refuses the credential renews it once and is asked for once more: a
// refused request was not carried out.
func (t *task) sendWith(ctx context.Context, call *wrapper.Call, req *outbound.Request) (*outbound.Response, error) {
	if t.grant == nil {
		return t.e.c.Send(ctx, req)
	}
	req.SecretHeaders = t.grant.Headers()
	req.HoldsSecret = func(text string) bool { return t.grant.Scrub(text) != text }
	req.Durable = true // what a credential is used for is always written down first
	for {
		if err := t.grant.Apply(ctx, req.Header.Set); err != nil {
			return nil, err
		}
		// A person may have taken the host away while the keyring or a token
		// endpoint was waited for.
		if _, f := t.e.grant(call); f != nil {
			return nil, f
		}
		resp, err := t.e.c.Send(ctx, req)
		if err != nil {
			return nil, err
		}
		if !refusedCredential(call, resp) {
			return resp, nil
		}
		again, err := t.grant.Renew(ctx)
		if err != nil {
			return nil, err
		}
		if !again {
			return resp, nil
		}
		if req.Tag.Call != "" {
			req.Tag.Call += "-again"
		}
	}
}

// received is resp without any spelling of the credential. The headers are
// looked at too, before anything reads them: a content type is shown in lower
// case, in which the credential would not be found any more.
func (t *task) received(resp *outbound.Response) *outbound.Response {
	if t.grant == nil {
		return resp
	}
	resp.Body = t.grant.ScrubBytes(resp.Body)
	for _, values := range resp.Header {
		for i, v := range values {
			values[i] = t.grant.Scrub(v)
		}
	}
	if where := resp.URL.String(); t.grant.Scrub(where) != where {
		resp.Hops = 0 // where redirects led is not told
	}
	return resp
}

func refusedCredential(call *wrapper.Call, resp *outbound.Response) bool {
	if resp.Status != 401 && resp.Status != 403 {
		return false
	}
	code, _ := classify(call, resp)
	return code == "AUTH_REQUIRED"
}

// scrub takes every spelling of the credential out of a fault: an API may send
// back what it was sent.
func (t *task) scrub(f *fault.Error) *fault.Error {
	if t.grant == nil {
		return f
	}
	clean := *f // f may be shared
	clean.Message, clean.Field, clean.Hint = t.grant.Scrub(f.Message), t.grant.Scrub(f.Field), t.grant.Scrub(f.Hint)
	clean.Details = nil
	for _, d := range f.Details {
		d.Field, d.Message, d.Hint = t.grant.Scrub(d.Field), t.grant.Scrub(d.Message), t.grant.Scrub(d.Hint)
		clean.Details = append(clean.Details, d)
	}
	return &clean
}

// scrubText goes over every decoded text of an answer: JSON escapes hide a
// value from a search of the bytes.
func (t *task) scrubText() func(string) string {
	if t.grant == nil {
		return nil
	}
	return t.grant.Scrub
}

// scrubbed is an error that holds no spelling of the credential, with the
// failure that it came after.
func (t *task) scrubbed(err error) error {
	if err != nil && t.before != nil {
		return &repeated{t.cleaned(err), t.scrub(t.before)}
	}
	return t.cleaned(err)
}

func (t *task) cleaned(err error) error {
	if t.grant == nil || err == nil {
		return err
	}
	var a *answered
	if errors.As(err, &a) {
		clean := &answered{t.rejected(t.scrub(a.err)), a.final, a.resp}
		if a.final != nil && t.grant.Scrub(a.final.String()) != a.final.String() {
			clean.final = nil
		}
		return clean
	}
	var f *fault.Error
	if errors.As(err, &f) {
		return t.scrub(f)
	}
	return err
}

// rejected names the credential that the API did not take.
func (t *task) rejected(f *fault.Error) *fault.Error {
	if f.Code != "AUTH_REQUIRED" {
		return f
	}
	return f.With(fault.Hint("The API rejected credential %q. A person must enter it again: `hbrestd secret rotate %s`.", t.grant.Name(), t.grant.Name()))
}
