package client

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// A Failure is the daemon's error body as it came, with what a *fault.Error has
// no place for: the wrapper, the request, the duration. Find it with errors.As.
type Failure struct {
	API  api.Error
	HTTP int // the status of the bridge's own answer
}

// Error is "CODE: message".
func (f *Failure) Error() string { return f.API.Code + ": " + f.API.Message }

// decode reads an answer. A failure, whatever its HTTP status, is a
// *fault.Error that wraps a *Failure.
func decode[T any](c *Client, r *reply) (*T, error) {
	if media, _, _ := strings.Cut(r.media, ";"); strings.TrimSpace(media) != "application/json" {
		return nil, badAnswer("the daemon answered status %d with %s instead of JSON", r.status, describeMedia(r.media))
	}
	if r.status != http.StatusOK {
		return nil, failure(r)
	}
	v := new(T)
	if err := json.Unmarshal(r.body, v); err != nil {
		return nil, badAnswer("the daemon's answer cannot be read").With(fault.Cause(err))
	}
	if !succeeded(v) {
		return nil, failure(r)
	}
	return v, nil
}

func describeMedia(m string) string {
	if m == "" {
		return "no content type"
	}
	return fault.Shorten(m, 60)
}

// succeeded is false for the ok:false of an answer with status 200. Two kinds
// of answer have no such member.
func succeeded(v any) bool {
	switch v := v.(type) {
	case *api.Status:
		return v.OK
	case *api.RunResult:
		return v.OK
	case *testAnswer:
		return v.ok
	case *api.DeriveResult:
		return v.OK
	case *api.ChangeResult:
		return v.OK
	}
	return true
}

// failure rebuilds the fault that the daemon wrote.
func failure(r *reply) error {
	f := &Failure{HTTP: r.status}
	if err := json.Unmarshal(r.body, &f.API); err != nil || f.API.Code == "" || f.API.OK {
		return badAnswer("the daemon answered status %d without an error code", r.status)
	}
	b := f.API
	e := fault.New(fault.Code(b.Code), "%s", b.Message).With(
		fault.Hint("%s", b.Hint), fault.Retryable(b.Retryable),
		fault.RetryAfter(time.Duration(min(max(b.RetryAfterMs, 0), int64(time.Hour/time.Millisecond)))*time.Millisecond), fault.Cause(f))
	var details []fault.Detail
	for _, d := range b.Details {
		details = append(details, fault.Detail{Field: d.Field, Code: fault.Code(d.Code), Message: d.Message, Hint: d.Hint})
	}
	if b.Field != nil {
		e.With(fault.Field(*b.Field))
	}
	if b.Status != nil {
		e.With(fault.Status(*b.Status))
	}
	return e.With(fault.Details(details))
}

// A testAnswer reads either form of a TestResult.
type testAnswer struct {
	api.TestResult
	ok bool
}

// UnmarshalJSON tells the forms apart by dryRun.
func (t *testAnswer) UnmarshalJSON(data []byte) error {
	var form struct {
		OK     bool `json:"ok"`
		DryRun bool `json:"dryRun"`
	}
	if err := json.Unmarshal(data, &form); err != nil {
		return fmt.Errorf("reading the form of a test answer: %w", err)
	}
	t.ok = form.OK
	switch {
	case !form.OK:
		return nil
	case form.DryRun:
		t.Plan = new(api.Plan)
		return json.Unmarshal(data, t.Plan)
	}
	t.Run = new(api.RunResult)
	return json.Unmarshal(data, t.Run)
}
