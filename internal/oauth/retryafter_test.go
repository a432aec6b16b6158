package oauth

import (
	"testing"
	"time"
)

// A date counts from the clock that the client is given.
func TestRetryAfterDate(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for h, want := range map[string]time.Duration{
		"Mon, 30 Nov 2026 12:00:02 GMT":  2 * time.Second,
		"Monday, 30-Nov-26 12:00:02 GMT": 2 * time.Second,
		"Mon Nov 30 12:00:02 2026":       2 * time.Second,
		"Mon, 30 Nov 2026 11:59:59 GMT":  0,
		" 5 ":                            5 * time.Second,
		"":                               0,
		"1.5":                            0,
		"99999999999":                    0,
	} {
		if got := retryAfter(h, now); got != want {
			t.Errorf("%q: %v, want %v", h, got, want)
		}
	}
}
