package executor

import (
	"net/http"
	"testing"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// How long to stay away, in every form that APIs use. The moment is
// 2026-11-30 12:00:00 UTC, 1796040000 in seconds since 1970.
func TestHowLongToWait(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	const none = -1
	for _, c := range []struct {
		status int
		header map[string]string
		body   string
		want   time.Duration
	}{
		{429, nil, "", none},
		{429, map[string]string{"Retry-After": "5"}, "", 5 * time.Second},
		{503, map[string]string{"Retry-After": "5"}, "", 5 * time.Second},
		{429, map[string]string{"Retry-After": "0"}, "", 0},
		{429, map[string]string{"Retry-After": "1.5"}, "", 1500 * time.Millisecond},
		{429, map[string]string{"Retry-After": "-1"}, "", none},
		{429, map[string]string{"Retry-After": "soon"}, "", none},
		{429, map[string]string{"Retry-After": "99999999999999999999"}, "", time.Hour},
		{429, map[string]string{"Retry-After": "3601"}, "", time.Hour},
		{429, map[string]string{"Retry-After": "Mon, 30 Nov 2026 12:00:02 GMT"}, "", 2 * time.Second},
		{429, map[string]string{"Retry-After": "Monday, 30-Nov-26 12:00:02 GMT"}, "", 2 * time.Second},
		{429, map[string]string{"Retry-After": "Mon Nov 30 12:00:02 2026"}, "", 2 * time.Second},
		{429, map[string]string{"Retry-After": "Mon, 30 Nov 2026 11:00:00 GMT"}, "", 0},
		{429, map[string]string{"Retry-After-Ms": "250", "Retry-After": "1"}, "", 250 * time.Millisecond},
		{429, map[string]string{"X-Ms-Retry-After-Ms": "12"}, "", 12 * time.Millisecond},
		{429, nil, `{"parameters":{"retry_after":7}}`, 7 * time.Second},
		{429, map[string]string{"Retry-After": "3"}, `{"parameters":{"retry_after":7}}`, 3 * time.Second},
		{429, map[string]string{"X-RateLimit-Reset": "1796040030"}, "", 30 * time.Second},
		{429, map[string]string{"X-RateLimit-Reset": "1796040030000"}, "", 30 * time.Second},
		{429, map[string]string{"X-RateLimit-Reset": "1796039999"}, "", 0},
		{429, map[string]string{"X-RateLimit-Reset": "12"}, "", 12 * time.Second},
		{429, map[string]string{"X-Rate-Limit-Reset": "1796040030"}, "", 30 * time.Second},
		{429, map[string]string{"X-RateLimit-Reset-After": "0.250"}, "", 250 * time.Millisecond},
		{403, map[string]string{"X-RateLimit-Reset": "12", "X-RateLimit-Remaining": "0"}, "", 12 * time.Second},
		{429, map[string]string{"X-RateLimit-Reset": "1800", "X-RateLimit-Remaining": "4999"}, "", none}, // a second limit: not this one
		{502, map[string]string{"X-RateLimit-Reset": "1800", "X-RateLimit-Remaining": "4999"}, "", none}, // sent with every answer
		{503, map[string]string{"X-RateLimit-Reset": "1800"}, "", none},
		{429, map[string]string{"RateLimit-Reset": "9"}, "", 9 * time.Second},
		{429, map[string]string{"RateLimit": `limit=100, remaining=0, reset=9`}, "", 9 * time.Second},
		{429, map[string]string{"RateLimit": `limit=100, remaining=1, reset=9`}, "", none},
		{429, map[string]string{"RateLimit": `"default";r=0;t=30`}, "", 30 * time.Second},
		{429, map[string]string{"RateLimit": `"hour";r=12;t=1800, "second";r=0;t=1`}, "", time.Second},
		{429, map[string]string{"RateLimit": `"hour";r=0;t=600,"second";r=0;t=1`}, "", 10 * time.Minute},
		{429, map[string]string{"RateLimit": `"default";r=5;t=30`}, "", none},
		{429, map[string]string{"RateLimit": `nonsense;;=,"`}, "", none},
	} {
		resp := &outbound.Response{Status: c.status, Header: http.Header{}}
		for k, v := range c.header {
			resp.Header.Set(k, v)
		}
		body, _ := recipe.Decode([]byte(c.body), recipe.DecodeLimits{})
		got, ok := retryAfter(resp, body, now)
		if !ok {
			got = none
		}
		if got != c.want {
			t.Errorf("%d %v %s: %v, want %v", c.status, c.header, c.body, got, c.want)
		}
	}
}

// The pause doubles and is spread over half and one and a half of itself.
func TestPause(t *testing.T) {
	for _, c := range []struct {
		first time.Duration
		try   int
		r     float64
		want  time.Duration
	}{
		{firstPause, 1, 0, 100 * time.Millisecond},
		{firstPause, 1, 0.5, 200 * time.Millisecond},
		{firstPause, 1, 1, 300 * time.Millisecond},
		{firstPause, 2, 0, 200 * time.Millisecond},
		{firstPause, 2, 1, 600 * time.Millisecond},
		{ratePause, 1, 0, 500 * time.Millisecond},
		{ratePause, 2, 1, 3 * time.Second},
	} {
		if got := pause(c.first, c.try, c.r); got != c.want {
			t.Errorf("pause(%v, %d, %v) = %v, want %v", c.first, c.try, c.r, got, c.want)
		}
	}
}
