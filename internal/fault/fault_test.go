package fault_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

func TestCatalogueIsSound(t *testing.T) {
	name := regexp.MustCompile(`^[A-Z]+(_[A-Z]+)*$`)
	seen := map[fault.Code]bool{}
	for _, e := range fault.Catalogue() {
		if !name.MatchString(string(e.Code)) || seen[e.Code] {
			t.Errorf("%s: bad or repeated code", e.Code)
		}
		seen[e.Code] = true
		if n := utf8.RuneCountInString(e.Hint); n == 0 || n > fault.MaxHint {
			t.Errorf("%s: hint has %d characters, allowed 1 to %d", e.Code, n, fault.MaxHint)
		}
		if e.HTTP != 0 && e.HTTP != 200 && (e.HTTP < 400 || e.HTTP > 599) {
			t.Errorf("%s: HTTP status %d", e.Code, e.HTTP)
		}
		if e.When == "" || e.Group == "" {
			t.Errorf("%s: no description or group", e.Code)
		}
	}
	for group, codes := range fault.DetailCodes() {
		for _, c := range codes {
			if !name.MatchString(string(c)) || seen[c] {
				t.Errorf("detail code %s of %s: bad, or a top-level code too", c, group)
			}
		}
	}
}

// The statuses that docs/errors.md promises to callers of the bridge.
func TestHTTPStatus(t *testing.T) {
	for code, want := range map[fault.Code]int{
		"UNAUTHORIZED": 401, "FORBIDDEN_ORIGIN": 403, "ROUTE_NOT_FOUND": 404, "METHOD_NOT_ALLOWED": 405,
		"BAD_JSON": 400, "BAD_REQUEST": 400, "BODY_TOO_LARGE": 413, "UNSUPPORTED_MEDIA_TYPE": 415, "BUSY": 503,
		"SHUTTING_DOWN": 503, "INTERNAL": 500, "WRAPPER_NOT_FOUND": 404, "WRAPPER_EXISTS": 409,
		"WRAPPER_INVALID": 422, "WRAPPER_UNREADABLE": 422, "ARGS_INVALID": 422, "STORE_FAILED": 500,
		"POLICY_PRIVATE_ADDRESS": 200, "UPSTREAM_RATE_LIMITED": 200, "RESPONSE_NOT_JSON": 200, "DERIVE_NOTHING": 422,
		"NO_SUCH_CODE": 500,
	} {
		if got := code.HTTPStatus(); got != want {
			t.Errorf("%s: %d, want %d", code, got, want)
		}
	}
}

func TestNewShortensAndCleans(t *testing.T) {
	at := strings.Repeat("é", fault.MaxMessage)
	if got := fault.New("BAD_JSON", "%s", at).Message; got != at {
		t.Errorf("a message at the limit was changed to %d characters", utf8.RuneCountInString(got))
	}
	over := fault.New("BAD_JSON", "%s", at+"x").Message
	if utf8.RuneCountInString(over) != fault.MaxMessage || !strings.HasSuffix(over, "é…") {
		t.Errorf("one over the limit: %d characters, %q", utf8.RuneCountInString(over), over[len(over)-8:])
	}
	if got := fault.New("BAD_JSON", "%s", "a\r\nb\x1b[31m\u202ec\xff").Message; got != "a  b[31mc\uFFFD" {
		t.Errorf("controls: %q", got)
	}
}

func TestDetailsAreCapped(t *testing.T) {
	for _, n := range []int{fault.MaxDetails, fault.MaxDetails + 1} {
		ds := make([]fault.Detail, n)
		for i := range ds {
			ds[i] = fault.Detail{Field: fmt.Sprintf("f%d", i)}
		}
		e := fault.New("WRAPPER_INVALID", "x").With(fault.Details(ds))
		if len(e.Details) != fault.MaxDetails || e.Field != "f0" {
			t.Errorf("%d details: kept %d, field %q", n, len(e.Details), e.Field)
		}
	}
}

func TestFrom(t *testing.T) {
	if fault.From(nil) != nil {
		t.Error("From(nil) is not nil")
	}
	known := fault.New("BUSY", "x")
	if fault.From(fmt.Errorf("around: %w", known)) != known {
		t.Error("a wrapped fault was not found")
	}
	cause := errors.New("disk on fire at /secret/path")
	e := fault.From(cause)
	if e.Code != "INTERNAL" || strings.Contains(e.Message, "disk") || len(e.LogID) != 12 || !errors.Is(e, cause) {
		t.Errorf("unknown error: %+v", e)
	}
	for err, want := range map[error]fault.Code{context.Canceled: "CALL_CANCELLED", context.DeadlineExceeded: "CALL_DEADLINE"} {
		if got := fault.From(fmt.Errorf("x: %w", err)).Code; got != want {
			t.Errorf("%v: %s, want %s", err, got, want)
		}
	}
}

func TestRetryAfterIsClamped(t *testing.T) {
	for in, want := range map[time.Duration]time.Duration{-time.Second: 0, time.Hour: time.Hour, time.Hour + 1: time.Hour} {
		if got := fault.New("BUSY", "x").With(fault.RetryAfter(in)).RetryAfter; got != want {
			t.Errorf("%v: %v, want %v", in, got, want)
		}
	}
}

func TestIs(t *testing.T) {
	err := fmt.Errorf("x: %w", fault.New("BUSY", "y"))
	if !fault.Is(err, "BUSY") || fault.Is(err, "INTERNAL") || fault.Is(nil, "BUSY") {
		t.Error("Is does not follow wrapping")
	}
}
