package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// maxAnswer bounds an answer in bytes: an apply of the largest body with the
// documents before and after, twice over for their escapes.
const maxAnswer = 4 * MaxApply

// ask makes a GET. It is a function because a method cannot have a type
// parameter.
func ask[A any](ctx context.Context, c *Client, path string, q url.Values, patience time.Duration) (*A, error) {
	if len(q) > 0 {
		path += "?" + q.Encode()
	}
	return call[A](ctx, c, http.MethodGet, path, nil, patience)
}

// send makes a POST.
func send[A any](ctx context.Context, c *Client, path string, q any, patience time.Duration) (*A, error) {
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(q); err != nil {
		return nil, fault.New("BAD_JSON", "an argument is not JSON").With(fault.Cause(err))
	}
	limit := MaxBody
	if path == pathApply {
		limit = MaxApply
	}
	if body.Len() > limit {
		return nil, fault.New("BODY_TOO_LARGE", "the call is over %d MiB", limit>>20)
	}
	return call[A](ctx, c, http.MethodPost, path, body.Bytes(), patience)
}

// call sends one request on a connection of its own, once, and reads the whole
// answer.
func call[A any](ctx context.Context, c *Client, method, path string, body []byte, patience time.Duration) (*A, error) {
	if c.timeout > 0 {
		patience = c.timeout
	}
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	req, err := http.NewRequestWithContext(limited, method, "http://"+hostName+path, bytes.NewReader(body))
	if err != nil {
		return nil, fault.From(err)
	}
	req.GetBody = nil // never sent a second time
	if path == pathSecretPut {
		req.Body = &onceBody{rest: body, all: body}
	}
	req.Header.Set("User-Agent", "")
	req.Header.Set("Accept", "application/json")
	if c.version != "" {
		req.Header.Set(api.HeaderVersion, c.version)
	}
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.transport.RoundTrip(req) // not an http.Client: it would follow redirects
	if err != nil {
		return nil, c.explain(ctx, limited, err, method, patience)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, c.most+1))
	if err != nil {
		return nil, c.explain(ctx, limited, err, method, patience)
	}
	if int64(len(data)) > c.most {
		return nil, badAnswer("the daemon's answer is over %d bytes", c.most)
	}
	if v := resp.Header.Get(api.HeaderVersion); v != "" {
		v = fault.Shorten(v, 60)
		c.server.Store(&v)
	}
	return understand[A](resp, data)
}

// A onceBody is read once and overwritten when it is closed: it holds the value
// of a credential. A transport may close it while it reads.
type onceBody struct {
	mu        sync.Mutex
	rest, all []byte // guarded by mu
}

// Read gives out the next bytes.
func (b *onceBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}

// Close ends reading.
func (b *onceBody) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.all)
	b.rest, b.all = nil, nil
	return nil
}

// understand turns an answer into a value, or into the fault that it holds.
func understand[A any](resp *http.Response, data []byte) (*A, error) {
	if media, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";"); strings.TrimSpace(media) != "application/json" {
		return nil, badAnswer("the daemon answered status %d without JSON", resp.StatusCode)
	}
	if resp.StatusCode != http.StatusOK || resp.Header.Get(headerCode) != "" {
		return nil, failure(resp.StatusCode, data)
	}
	v := new(A)
	if err := json.Unmarshal(data, v); err != nil {
		return nil, badAnswer("the daemon's answer cannot be read").With(fault.Cause(err))
	}
	return v, nil
}

// failure rebuilds the fault that the daemon wrote.
func failure(status int, data []byte) error {
	var b api.Error
	if err := json.Unmarshal(data, &b); err != nil || b.Code == "" {
		return badAnswer("the daemon answered status %d without an error code", status).With(fault.Cause(err))
	}
	e := fault.New(fault.Code(b.Code), "%s", b.Message).With(fault.Hint("%s", b.Hint), fault.Retryable(b.Retryable),
		fault.RetryAfter(time.Duration(min(max(b.RetryAfterMs, 0), int64(time.Hour/time.Millisecond)))*time.Millisecond))
	if b.Field != nil {
		e.With(fault.Field(*b.Field))
	}
	if b.Status != nil {
		e.With(fault.Status(*b.Status))
	}
	if len(b.Details) > 0 {
		details := make([]fault.Detail, 0, len(b.Details))
		for _, d := range b.Details {
			details = append(details, fault.Detail{Field: d.Field, Code: fault.Code(d.Code), Message: d.Message, Hint: d.Hint})
		}
		e.With(fault.Details(details))
	}
	if b.Wrapper == nil && b.Request == nil && b.DurationMs == 0 {
		return e
	}
	return &api.CallError{Err: e, Wrapper: b.Wrapper, Request: b.Request, Duration: time.Duration(b.DurationMs) * time.Millisecond}
}

// explain makes the fault of a call that got no answer.
func (c *Client) explain(caller, limited context.Context, err error, method string, patience time.Duration) error {
	var f *fault.Error
	switch {
	case errors.Is(caller.Err(), context.Canceled):
		return fault.From(context.Canceled)
	case errors.As(err, &f): // made by dial
		return f
	case limited.Err() != nil, errors.Is(err, context.DeadlineExceeded):
		waited := patience.String()
		if caller.Err() != nil {
			waited = "the caller's time"
		}
		return fault.New("BRIDGE_TIMEOUT", "the daemon at %s did not answer in %s", c.path, waited).
			With(fault.Retryable(method == http.MethodGet), fault.Cause(err))
	}
	e := fault.New("BRIDGE_UNREACHABLE", "the daemon at %s closed the connection before it answered", c.path).With(fault.Cause(err))
	if method != http.MethodGet {
		e.With(fault.Retryable(false),
			fault.Hint("The call may have been carried out: check before you repeat it. `hbrestd status` shows whether the daemon runs."))
	}
	return e
}

// notThere is the fault of a dial that found no daemon.
func notThere(path, what string, cause error) *fault.Error {
	return fault.New("BRIDGE_UNREACHABLE", "no daemon: %s %s", what, path).
		With(fault.Hint("Start the daemon with `hbrestd service start` or `hbrestd run`, with the same HB_WRAP_HOME as this command."), fault.Cause(cause))
}

// notSafe is the fault of a dial that found something which may be somebody
// else's.
func notSafe(hint, format string, args ...any) *fault.Error {
	return fault.New("BRIDGE_BAD_ANSWER", "%s; nothing was sent", fmt.Sprintf(format, args...)).With(fault.Hint("%s", hint), fault.Retryable(false))
}

// badAnswer is for a daemon that does not talk as expected.
func badAnswer(format string, args ...any) *fault.Error {
	return fault.New("BRIDGE_BAD_ANSWER", format, args...).With(fault.Hint("The commands and the daemon are of different versions: restart the daemon."))
}

// A testAnswer reads either form of a TestResult.
type testAnswer struct {
	api.TestResult
}

// UnmarshalJSON tells the forms apart by dryRun.
func (t *testAnswer) UnmarshalJSON(data []byte) error {
	var form struct {
		DryRun bool `json:"dryRun"`
	}
	if err := json.Unmarshal(data, &form); err != nil {
		return fmt.Errorf("reading the form of a test answer: %w", err)
	}
	if form.DryRun {
		t.Plan = new(api.Plan)
		return json.Unmarshal(data, t.Plan)
	}
	t.Run = new(api.RunResult)
	return json.Unmarshal(data, t.Run)
}
