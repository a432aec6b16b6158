package outbound

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// A wire remembers how far an exchange got; the transport calls its hooks, and
// dials, from its own goroutines.
type wire struct {
	tls bool
	now func() time.Time

	mu      sync.Mutex         // guards the rest
	over    bool               // the exchange has failed
	failed  context.Context    // ends then; nil: nobody has asked for it yet
	end     context.CancelFunc // of failed
	sent    bool
	again   []time.Time // when the library sent the request once more by itself
	tlsErr  error
	guarded []net.Conn // their handshakes go on
}

type wireKey struct{}

// wire makes the wire of an exchange, which the context brings to the dial.
func (h *hop) wire(ctx context.Context, now func() time.Time) (*wire, context.Context) {
	w := &wire{tls: h.target.scheme == "https", now: now}
	return w, httptrace.WithClientTrace(context.WithValue(ctx, wireKey{}, w), w.trace())
}

// wireOf is the wire of the exchange that a dial was begun for.
func wireOf(ctx context.Context) *wire { return ctx.Value(wireKey{}).(*wire) }

// onFailure is context.AfterFunc of the exchange's failure. Only those who dial
// ask for it, which few exchanges do.
func (w *wire) onFailure(f func()) (stop func() bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failed == nil {
		w.failed, w.end = context.WithCancel(context.Background())
		if w.over {
			w.end()
		}
	}
	return context.AfterFunc(w.failed, f)
}

// fail says that the exchange has failed.
func (w *wire) fail() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over = true; w.end != nil {
		w.end()
	}
}

// guard closes a connection should the exchange fail while the handshake on it
// goes on. After the handshake others may use it: whether that has come is asked
// under the lock, because what runs after a failure may run late.
func (w *wire) guard(c net.Conn) {
	w.mu.Lock()
	w.guarded = append(w.guarded, c)
	w.mu.Unlock()
	w.onFailure(func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if slices.Contains(w.guarded, c) {
			_ = c.Close()
		}
	})
}

func (w *wire) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		// From here on the API may have seen the request, though perhaps not all of it.
		WroteHeaders: func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.sent {
				w.again = append(w.again, w.now())
			}
			w.sent = true
		},
		TLSHandshakeDone: func(_ tls.ConnectionState, err error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.tlsErr = err
			w.guarded = nil
		},
	}
}

// repeated says when the library sent the request once more by itself.
func (w *wire) repeated() []time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.again)
}

func (w *wire) state() (sent bool, tlsErr error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sent, w.tlsErr
}

// A timeoutError is the end of a request's own time, or of a part's of it. Send
// turns it into UPSTREAM_TIMEOUT, or into the caller's context error if that
// ended first.
type timeoutError struct {
	sent bool
	what string        // which part, completing "HOST …"; "": the whole
	most time.Duration // its limit
}

func (e *timeoutError) Error() string { return "request timed out" }
func (e *timeoutError) Unwrap() error { return context.DeadlineExceeded }

// ended gives an error that the end of a context caused its right name: the
// caller's context first, then the request's own timeout.
func ended(caller context.Context, h *hop, err error) error {
	var f *fault.Error
	if err == nil {
		return nil
	}
	if errors.As(err, &f) {
		return afterHops(h, f) // the cause was known before time ran out
	}
	if caller.Err() != nil {
		return caller.Err()
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	var t *timeoutError
	timed := errors.As(err, &t)
	sent := timed && t.sent || h.n > 0
	what, limit, most := "did not answer completely within", h.limit, h.most
	switch {
	case timed && t.what != "":
		what, limit, most = t.what, t.most, t.most
	case !sent:
		what = "could not be reached within"
	}
	return fault.New("UPSTREAM_TIMEOUT", "%s %s %s", h.target.host, what, limit).
		With(fault.Retryable(!sent || h.safe), fault.Hint("%s", timeoutHint(limit, most, !h.safe, sent)), fault.Cause(err))
}

// afterHops takes back "retryable" when a hop before this one has carried out a
// write: repeating the request would do it again.
func afterHops(h *hop, f *fault.Error) error {
	if h.n == 0 || h.safe || !f.Retryable {
		return f
	}
	g := *f
	return g.With(fault.Retryable(false), brokenHint(true))
}

// sendFault names an error from before the answer's header was complete.
func sendFault(ctx context.Context, h *hop, w *wire, err error) error {
	sent, tlsErr := w.state()
	named := nameSendFault(ctx, h, sent, tlsErr, err)
	var f *fault.Error
	if sent || h.n > 0 || !errors.As(named, &f) {
		return named
	}
	g := *f // a dial's error may be known to others
	return g.With(fault.Cause(&unsentError{f}))
}

func nameSendFault(ctx context.Context, h *hop, sent bool, tlsErr, err error) error {
	var f *fault.Error
	if errors.As(err, &f) {
		if h.n > 0 {
			return asRedirect(f)
		}
		return f
	}
	if ctx.Err() != nil {
		return endOfContext(ctx, sent)
	}
	host, cause := h.target.host, fault.Cause(err)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return &timeoutError{sent, "could not be reached within", connectTime}
	case tlsErr != nil && isTimeout(err):
		return &timeoutError{sent, "did not finish the TLS handshake within", handshakeTime}
	case recordError(err) == "HTTP/":
		return fault.New("UPSTREAM_PROTOCOL", "%s answers in plain http on port %s, where https was asked for", host, h.target.port).With(cause)
	case recordError(err) != "":
		return fault.New("UPSTREAM_PROTOCOL", "%s does not speak TLS on port %s", host, h.target.port).With(cause)
	case isCut(err):
		f := fault.New("UPSTREAM_CONNECT", "%s closed the connection before it answered", host).
			With(fault.Retryable(!sent || h.safe), cause)
		if sent {
			f.With(brokenHint(!h.safe))
		}
		return f
	case tlsErr != nil || isTLS(err):
		return fault.New("UPSTREAM_TLS", "%s", tlsWords(host, err)).With(cause)
	case strings.Contains(err.Error(), "response headers exceeded") || strings.Contains(err.Error(), "header list"):
		return fault.New("UPSTREAM_PROTOCOL", "the header of the answer is larger than %d bytes", maxHeader).With(cause)
	}
	// The library's text may hold bytes of the answer, so it stays in the log.
	return fault.New("UPSTREAM_PROTOCOL", "%s did not answer in HTTP", host).With(cause)
}

// endOfContext keeps cancellation as it is and marks a timeout with what is
// known about the request.
func endOfContext(ctx context.Context, sent bool) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	return &timeoutError{sent: sent}
}

// readFault names an error from the answer's body.
func (c *Client) readFault(ctx context.Context, h *hop, status int, err error) error {
	var enc *encodingError
	with := []fault.Option{fault.Status(status), fault.Cause(err)}
	switch {
	case errors.Is(err, errTooLarge):
		return fault.New("RESPONSE_TOO_LARGE", "the answer is larger than %d bytes after decompression", c.policy.MaxBytes).With(with...)
	case ctx.Err() != nil:
		return endOfContext(ctx, true)
	case errors.As(err, &enc):
		return fault.New("RESPONSE_ENCODING", "%s", enc).With(with...)
	case isCut(err) || isTLS(err) || err.Error() == "http: unexpected EOF reading trailer":
		return fault.New("RESPONSE_INCOMPLETE", "the answer stopped before its end").
			With(append(with, fault.Retryable(h.safe), brokenHint(!h.safe))...)
	case errors.Is(err, http.ErrLineTooLong) || strings.Contains(err.Error(), "chunk") && !strings.Contains(err.Error(), "trailer"):
		return fault.New("UPSTREAM_PROTOCOL", "the answer's chunks are malformed").With(with...)
	}
	// A trailer that breaks off is among these: net/http tells it from an endless
	// one as little as from a malformed one.
	return fault.New("UPSTREAM_PROTOCOL", "the end of the answer is malformed").With(with...)
}

// isTimeout reports a time limit of the transport's own, whose errors have no
// type to ask for.
func isTimeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}

// isCut reports a connection that ended, in whatever way, before the answer.
func isCut(err error) bool {
	var op *net.OpError
	if errors.As(err, &op) && (op.Op == "read" || op.Op == "write") {
		return true
	}
	// The HTTP/2 code has no error types of its own to ask for.
	if text := err.Error(); strings.HasPrefix(text, "stream error: ") || strings.HasPrefix(text, "http2: ") && !strings.Contains(text, "header list") {
		return true
	}
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		strings.Contains(err.Error(), "server closed idle connection")
}

// recordError returns the first bytes of what a server sent instead of TLS.
func recordError(err error) string {
	var rec tls.RecordHeaderError
	if errors.As(err, &rec) {
		return string(rec.RecordHeader[:])
	}
	return ""
}

func isTLS(err error) bool {
	var cert *tls.CertificateVerificationError
	var op *net.OpError
	return errors.As(err, &cert) || errors.As(err, &op) && (op.Op == "remote error" || op.Op == "local error") ||
		strings.HasPrefix(err.Error(), "tls: ")
}

// tlsWords says which of the usual faults a certificate has.
func tlsWords(host string, err error) string {
	var invalid x509.CertificateInvalidError
	var name x509.HostnameError
	var issuer x509.UnknownAuthorityError
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		if now := time.Now(); invalid.Cert != nil && now.Before(invalid.Cert.NotBefore) {
			return fmt.Sprintf("the certificate of %s is not valid before %s", host, invalid.Cert.NotBefore.UTC().Format(time.DateOnly))
		} else if invalid.Cert != nil {
			return fmt.Sprintf("the certificate of %s expired on %s", host, invalid.Cert.NotAfter.UTC().Format(time.DateOnly))
		}
		return fmt.Sprintf("the certificate of %s has expired", host)
	case errors.As(err, &name):
		return fmt.Sprintf("the certificate of %s is for another host%s", host, certNames(name.Certificate))
	case errors.As(err, &issuer):
		by := ""
		if issuer.Cert != nil && issuer.Cert.Issuer.String() != "" {
			by = " (" + fault.Shorten(issuer.Cert.Issuer.String(), 80) + ")"
		}
		return fmt.Sprintf("the certificate of %s is signed by an unknown issuer%s", host, by)
	case errors.As(err, &invalid):
		return fmt.Sprintf("the certificate of %s is not valid", host)
	}
	return fmt.Sprintf("the TLS handshake with %s failed", host)
}

func certNames(c *x509.Certificate) string {
	if c == nil || len(c.DNSNames) == 0 {
		return ""
	}
	const most = 3
	return " (" + fault.Shorten(strings.Join(c.DNSNames[:min(len(c.DNSNames), most)], ", "), 80) + ")"
}
