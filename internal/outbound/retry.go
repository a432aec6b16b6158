package outbound

import (
	"errors"
	"net"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// Send itself never repeats a request: a second try is an exchange of its own,
// with its own intent and its own record. Whether one is made is the caller's
// decision, who knows what the request means; Unsent and Passing are what this
// package knows.

// An unsentError is the cause of a failure before any byte of the request left.
type unsentError struct{ err error }

func (e *unsentError) Error() string { return e.err.Error() }
func (e *unsentError) Unwrap() error { return e.err }

// Unsent reports whether an error of Send came before anything of the request
// was sent: no name, no connection, no TLS. Then even a write can be sent again.
func Unsent(err error) bool {
	var u *unsentError
	return errors.As(err, &u)
}

// Passing reports whether an error of Send is of a kind that often passes within
// seconds: a connection that was refused or broke off, a resolver that did not
// answer. It says nothing about whether the request may be sent again.
func Passing(err error) bool {
	var f *fault.Error
	if !errors.As(err, &f) {
		return false
	}
	switch f.Code {
	case "UPSTREAM_CONNECT", "RESPONSE_INCOMPLETE":
		return true
	case "UPSTREAM_DNS":
		var d *net.DNSError
		return !errors.As(err, &d) || !d.IsNotFound
	}
	return false
}
