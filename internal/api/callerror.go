package api

import "time"

// A CallError is a failed call with what is known of its request and document. Err is a
// *fault.Error; the bridge writes all of it into one Error body.
type CallError struct {
	Err      error
	Wrapper  *WrapperRef
	Request  *Request // redacted; nil when none was built
	Duration time.Duration
	Warnings []Warning // about the document or the arguments
}

func (e *CallError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *CallError) Unwrap() error { return e.Err }
