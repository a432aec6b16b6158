package api

import (
	"errors"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// ErrorBody is the wire form of a failure on every face: field and status are
// null when they are unknown, details is never null. What a *CallError in err
// knows of the call is added.
func ErrorBody(e *fault.Error, err error) Error {
	b := Error{
		Code:         string(e.Code),
		Retryable:    e.Retryable,
		Hint:         e.Hint,
		Message:      e.Message,
		RetryAfterMs: e.RetryAfter.Milliseconds(),
		Details:      make([]Detail, 0, len(e.Details)),
	}
	if e.Status != 0 {
		b.Status = &e.Status
	}
	if e.Field != "" {
		b.Field = &e.Field
	}
	for _, d := range e.Details {
		b.Details = append(b.Details, Detail{Field: d.Field, Code: string(d.Code), Message: d.Message, Hint: d.Hint})
	}
	var call *CallError
	if errors.As(err, &call) {
		b.Wrapper, b.Request, b.DurationMs, b.Warnings = call.Wrapper, call.Request, call.Duration.Milliseconds(), call.Warnings
	}
	return b
}
