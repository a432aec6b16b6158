package executor

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// retryAfter reads how long the API wants us to stay away, at most one hour: a
// Retry-After header in one of its forms, Telegram's parameters.retry_after
// or, of an answer that is about a limit, the moment when that limit is lifted.
func retryAfter(resp *outbound.Response, body recipe.Value, now time.Time) (time.Duration, bool) {
	header := func(name string) string { return strings.TrimSpace(resp.Header.Get(name)) }
	for _, name := range []string{"Retry-After-Ms", "X-Ms-Retry-After-Ms"} { // Azure and those who follow it
		if n, ok := number(header(name)); ok {
			return clampWait(n * float64(time.Millisecond)), true
		}
	}
	if h := header("Retry-After"); h != "" { // RFC 9110 section 10.2.3
		if n, ok := number(h); ok {
			return clampWait(n * float64(time.Second)), true
		}
		for _, layout := range []string{"Mon, 02 Jan 2006 15:04:05 GMT", time.RFC850, time.ANSIC} {
			if t, err := time.Parse(layout, h); err == nil {
				return clampWait(float64(t.Sub(now))), true
			}
		}
	}
	if v := at(body, "parameters", "retry_after"); v != nil {
		if n, ok := number(fmt.Sprint(v)); ok {
			return clampWait(n * float64(time.Second)), true
		}
	}
	return limitLifted(resp, now)
}

// limitLifted reads the headers of a limit that is used up. Some APIs send them
// with every answer; beside requests that are left they say nothing about this one.
func limitLifted(resp *outbound.Response, now time.Time) (time.Duration, bool) {
	if resp.Status != 429 && resp.Status != 403 {
		return 0, false
	}
	header := func(name string) string { return strings.TrimSpace(resp.Header.Get(name)) }
	for _, name := range []string{"X-RateLimit-Remaining", "X-Rate-Limit-Remaining", "RateLimit-Remaining"} {
		if n, ok := number(header(name)); ok && n > 0 {
			return 0, false
		}
	}
	for _, name := range []string{"X-RateLimit-Reset-After", "X-RateLimit-Reset", "X-Rate-Limit-Reset", "RateLimit-Reset"} {
		if wait, ok := resetAt(header(name), now); ok {
			return wait, true
		}
	}
	return structuredLimit(strings.Join(resp.Header.Values("RateLimit"), ","))
}

// resetAt reads a reset header: seconds to wait, or the moment itself in
// seconds or milliseconds since 1970.
func resetAt(h string, now time.Time) (time.Duration, bool) {
	n, ok := number(h)
	switch {
	case !ok:
		return 0, false
	case n >= 1e12:
		n /= 1000
	case n < 1e9:
		return clampWait(n * float64(time.Second)), true
	}
	return clampWait((n - float64(now.UnixNano())/1e9) * float64(time.Second)), true
}

// structuredLimit reads the RateLimit header of the IETF draft, as it is
// ("default";r=0;t=30, a list) and as it was (limit=10, remaining=0, reset=30).
// Of several limits that are used up the last one to be lifted counts.
func structuredLimit(h string) (wait time.Duration, known bool) {
	left, reset := -1.0, -1.0
	take := func() {
		if left <= 0 && reset >= 0 {
			wait, known = max(wait, clampWait(reset*float64(time.Second))), true
		}
	}
	for item := range strings.SplitSeq(h, ",") {
		if strings.HasPrefix(strings.TrimSpace(item), `"`) { // the next limit
			take()
			left, reset = -1, -1
		}
		for part := range strings.SplitSeq(item, ";") {
			name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
			n, ok := number(value)
			switch {
			case !ok:
			case name == "r" || name == "remaining":
				left = n
			case name == "t" || name == "reset":
				reset = n
			}
		}
	}
	take()
	return wait, known
}

// number reads what RFC 9110 writes as digits. Some APIs give a fraction too.
func number(s string) (float64, bool) {
	if s == "" || len(s) > 20 || strings.Trim(s, "0123456789.") != "" {
		return 0, false
	}
	n, err := strconv.ParseFloat(s, 64)
	return n, err == nil
}

// clampWait makes nanoseconds a wait within 0 and one hour: beyond that no
// caller waits. It rounds up to a millisecond, so that nobody comes back early.
func clampWait(ns float64) time.Duration {
	const ms = float64(time.Millisecond)
	return time.Duration(math.Ceil(min(max(ns, 0), float64(time.Hour))/ms) * ms)
}
