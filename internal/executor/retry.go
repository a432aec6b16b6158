package executor

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"strings"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
	"github.com/hyperbolic-gateway/hb-rest/internal/wrapper"
)

// maxTries is how often one request is sent at most. A fault that outlives
// three tries within seconds is one to be told of.
const maxTries = 3

// The pause before a second try. It doubles for the third, and each is spread
// over half and one and a half of it, so that callers who failed together do
// not come back together.
const (
	firstPause = 200 * time.Millisecond // a connection that broke, a gateway between two releases
	ratePause  = time.Second            // a rate limit that does not say how long: the shortest window in use
)

// headroom is what must be left of the call's deadline after a pause: a try
// that cannot end in time would only hide why the one before it failed.
const headroom = 500 * time.Millisecond

// fetch sends one request and reads its answer. What passes by itself is tried
// again when that can do nothing twice.
func (t *task) fetch(ctx context.Context, call *wrapper.Call, n int) (*leaf, error) {
	key := keyOf(call)
	doubt := false // an earlier try may have reached the API
	t.before = nil
	for try := 1; ; try++ {
		l, err := t.try(ctx, call, key, n, try)
		if err == nil {
			return l, nil
		}
		pause, again := t.again(ctx, call, try, err)
		if !again {
			return nil, told(err, call, try, doubt)
		}
		doubt = doubt || !outbound.Unsent(err)
		t.before = fault.From(err)
		t.retries++
		if err := sleep(ctx, pause); err != nil {
			return nil, err
		}
	}
}

// again says whether to send a request once more after a failure, and how long
// to wait before.
func (t *task) again(ctx context.Context, call *wrapper.Call, try int, err error) (time.Duration, bool) {
	harmless := repeatable(call) || call.IdempotencyHeader != ""
	first, asked := firstPause, time.Duration(0)
	var a *answered
	switch {
	case try >= maxTries || ctx.Err() != nil:
		return 0, false
	case errors.As(err, &a):
		if !harmless || a.resp == nil || !passing(a.err) {
			return 0, false
		}
		var known bool
		if asked, known = retryAfter(a.resp, errorBody(a.resp), t.e.c.Now()); !known && a.err.Code == "UPSTREAM_RATE_LIMITED" {
			first = ratePause
		}
	case !outbound.Passing(err) || !harmless && !outbound.Unsent(err):
		return 0, false
	}
	wait := asked + pause(first, try, mathrand.Float64())
	// A deadline is a moment of the system's clock, whatever Config.Now says.
	if until, ok := ctx.Deadline(); ok && time.Until(until) < wait+headroom {
		return 0, false
	}
	return wait, true
}

// passing reports whether an answer is one that often is another within seconds.
// A 500 is not: the API has tried and failed.
func passing(f *fault.Error) bool {
	switch f.Code {
	case "UPSTREAM_RATE_LIMITED", "UPSTREAM_UNAVAILABLE":
		return true
	}
	return f.Status == 408 || f.Status == 425
}

// pause is the wait after the n-th try; r, from 0 to 1, spreads it.
func pause(first time.Duration, n int, r float64) time.Duration {
	whole := first << (n - 1)
	return whole/2 + time.Duration(r*float64(whole))
}

// A repeated error is one of a request that was sent again.
type repeated struct {
	error
	before *fault.Error // of the try before
}

func (r *repeated) Unwrap() error { return r.error }

// told adds to a failure what the tries before it mean for its reader.
func told(err error, call *wrapper.Call, tries int, doubt bool) error {
	var f *fault.Error
	if tries == 1 || !errors.As(err, &f) {
		return err
	}
	g := *f
	after := fmt.Sprintf(" (after %d tries)", tries)
	g.Message = fault.Shorten(g.Message, fault.MaxMessage-len(after)) + after
	if doubt && call.Mutating() && (g.Code == "UPSTREAM_NOT_FOUND" || g.Code == "UPSTREAM_CONFLICT") {
		g.Hint = "An earlier try of this call got no answer and may have taken effect: read the current state first."
	}
	var a *answered
	if errors.As(err, &a) {
		b := *a
		b.err = &g
		return &b
	}
	return &g
}

// keyOf is the idempotency key of a request, the same for all its tries; "" for
// none. A random key is not put into the call: a caller who repeats the call
// sends another.
func keyOf(call *wrapper.Call) string {
	if call.IdempotencyHeader == "" {
		return ""
	}
	for _, h := range call.Header {
		if strings.EqualFold(h.Name, call.IdempotencyHeader) {
			return h.Value
		}
	}
	return randomKey()
}

// randomKey is a version 4 UUID (RFC 9562), which every API takes as a key.
func randomKey() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the program instead
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// sleep waits for d or until ctx ends, whichever is first.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
