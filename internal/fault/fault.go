// Package fault is the one error type of hbrestd and hb-rest, the one table of
// codes, and the mapping from a code to the bridge's HTTP status.
//
// It never imports another package of ours, never formats secrets, and never
// carries upstream text that its caller has not shortened and scrubbed. Start
// with [New]; [Catalogue] is what docs/errors.md is made from.
package fault

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Bounds of the shape in docs/errors.md. A model pays for every byte of them.
const (
	MaxMessage = 300 // characters of Error.Message
	MaxHint    = 200 // characters of Error.Hint
	MaxDetails = 50  // entries of Error.Details
)

// A Code names one cause. It is stable and never reused for another meaning.
type Code string

// An Error is a failure that its reader can act on. Message, Field, Hint and
// Details are shown to an agent or a person; the cause goes to the log only.
type Error struct {
	Code       Code
	Message    string        // at most MaxMessage characters; no secrets, no HTML
	Field      string        // "args.customer_id", "wrapper.request.url"; empty if none
	Status     int           // upstream status, 0 if there was no answer
	Hint       string        // what to do next, at most MaxHint characters
	Retryable  bool          // the same call may succeed later without a change
	RetryAfter time.Duration // 0 if unknown
	Details    []Detail      // every problem of a refused document, in document order
	LogID      string        // set by From for INTERNAL: the id the log line carries too
	cause      error
}

// A Detail is one problem of a document or of arguments.
type Detail struct {
	Field   string `json:"field"`
	Code    Code   `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// New makes an error with the hint and the retryability that the catalogue
// gives its code. The message is shortened to MaxMessage characters.
func New(c Code, format string, args ...any) *Error {
	e := &Error{Code: c, Message: Shorten(fmt.Sprintf(format, args...), MaxMessage)}
	if entry, ok := Lookup(c); ok {
		e.Hint, e.Retryable = entry.Hint, entry.Retryable
	}
	return e
}

// An Option changes one part of an Error made by New.
type Option func(*Error)

// Field says where the fault sits, such as "args.city".
func Field(f string) Option { return func(e *Error) { e.Field = f } }

// Status is the upstream's HTTP status.
func Status(code int) Option { return func(e *Error) { e.Status = code } }

// Hint replaces the catalogue's hint.
func Hint(format string, args ...any) Option {
	return func(e *Error) { e.Hint = Shorten(fmt.Sprintf(format, args...), MaxHint) }
}

// Retryable replaces the catalogue's retryability.
func Retryable(yes bool) Option { return func(e *Error) { e.Retryable = yes } }

// RetryAfter says how long to wait before the same call may succeed.
func RetryAfter(d time.Duration) Option {
	return func(e *Error) { e.RetryAfter = min(max(d, 0), time.Hour) }
}

// Details attaches the problems of a document. The first one's field becomes
// the error's own when it has none; only the first MaxDetails are kept.
func Details(ds []Detail) Option {
	return func(e *Error) {
		e.Details = ds[:min(len(ds), MaxDetails)]
		if e.Field == "" && len(ds) > 0 {
			e.Field = ds[0].Field
		}
	}
}

// Cause keeps the underlying error for the log.
func Cause(err error) Option { return func(e *Error) { e.cause = err } }

// With applies options and returns e.
func (e *Error) With(opts ...Option) *Error {
	for _, o := range opts {
		o(e)
	}
	return e
}

// Error is "CODE: message"; it never contains the cause.
func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }

// Unwrap returns the cause, for the log and for errors.Is.
func (e *Error) Unwrap() error { return e.cause }

// From returns err as an *Error. Anything that is not one becomes INTERNAL
// with a random id and the original as its cause; the caller logs both. A
// cancelled context becomes CALL_CANCELLED, an expired one CALL_DEADLINE.
// From(nil) is nil.
func From(err error) *Error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	switch {
	case errors.Is(err, context.Canceled):
		return New("CALL_CANCELLED", "the caller cancelled the call").With(Cause(err))
	case errors.Is(err, context.DeadlineExceeded):
		return New("CALL_DEADLINE", "the call's deadline ended it before it was complete").With(Cause(err))
	}
	var id [6]byte
	_, _ = rand.Read(id[:]) // never fails: crypto/rand aborts the program instead
	e = New("INTERNAL", "internal fault %s", hex.EncodeToString(id[:])).With(Cause(err))
	e.LogID = hex.EncodeToString(id[:])
	return e
}

// Is reports whether err is, or wraps, an Error with the given code.
func Is(err error, c Code) bool {
	var e *Error
	return errors.As(err, &e) && e.Code == c
}

// Shorten cuts s to at most n characters, the last one being an ellipsis when
// something was cut, and makes it one line of printable text.
func Shorten(s string, n int) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\r' || r == '\t':
			return ' '
		case r < 0x20 || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029,
			r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069: // bidi controls
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	r := []rune(s)
	return string(r[:n-1]) + "…"
}

// OneProblem is a detail code with its human words, for errors that have only one.
func OneProblem(c, detail Code, field, format string, args ...any) *Error {
	msg := fmt.Sprintf(format, args...)
	return New(c, "%s: %s", field, msg).With(Details([]Detail{{Field: field, Code: detail, Message: msg}}))
}
