package executor

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
	"github.com/hyperbolic-gateway/hb-rest/internal/wrapper"
	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

func itoa(n int) string { return strconv.Itoa(n) }

// idempotent reports whether repeating the method cannot do harm twice
// (RFC 9110 section 9.2.2).
func idempotent(method string) bool { return method != "POST" && method != "PATCH" }

// repeatable reports whether repeating the call cannot do harm twice. A GET
// that counts as a write is one in another's clothes, and so is a PUT with a
// method-override header. With a key from its arguments any call is repeatable;
// a random key is another one in the next call.
func repeatable(call *wrapper.Call) bool {
	switch {
	case call.IdempotencyHeader != "" && hasHeader(call.Header, call.IdempotencyHeader):
		return true
	case call.Method == "GET" || call.Method == "HEAD":
		return !call.Mutating()
	}
	return idempotent(call.Method) && !slices.ContainsFunc(call.Header, overrides)
}

func overrides(h wrapper.Header) bool {
	switch strings.ToLower(h.Name) {
	case "x-http-method-override", "x-http-method", "x-method-override":
		return true
	}
	return false
}

// StatusFault turns the HTTP status of a request without a credential into a
// fault; nil for every 2xx.
func StatusFault(method string, resp *outbound.Response, now time.Time) *fault.Error {
	return statusFault(&wrapper.Call{Method: method}, resp, now)
}

func statusFault(call *wrapper.Call, resp *outbound.Response, now time.Time) *fault.Error {
	s := resp.Status
	if s >= 200 && s < 300 {
		return nil
	}
	body := errorBody(resp)
	code, retryable := classify(call, resp)
	f := fault.New(code, "%s", apiAnswered(s, describe(resp, body))).With(fault.Status(s), fault.Retryable(retryable))
	details := upstreamProblems(body)
	if field := upstreamField(body); field != "" {
		f.With(fault.Field("upstream:" + fault.Shorten(field, maxProblemField)))
	}
	_ = withProblems(f, details)
	if hint := againHint(call, f); hint != "" {
		f.With(fault.Hint("%s", hint))
	}
	if resp.Hops > 0 && f.Retryable && !repeatable(call) { // what redirected us has done the write
		f.With(fault.Retryable(false), fault.Hint("The write may have taken effect: check before you repeat it."))
	}
	if wait, ok := retryAfter(resp, body, now); ok && f.Retryable {
		f.With(fault.RetryAfter(wait), fault.Hint("Wait %s, then repeat the call; ask for fewer pages with max_pages.", seconds(wait)))
	}
	return f
}

// withProblems adds what the API lists. The error's own field stays the first
// that the API names.
func withProblems(f *fault.Error, details []fault.Detail) *fault.Error {
	field := f.Field
	if f.With(fault.Details(details)); f.Field == unnamed {
		f.Field = field
	}
	return f
}

// againHint says whether to repeat a call that the API failed; empty for the
// codes that do not depend on the method.
func againHint(call *wrapper.Call, f *fault.Error) string {
	what := "The API failed"
	switch f.Code {
	case "UPSTREAM_SERVER_ERROR":
	case "UPSTREAM_UNAVAILABLE":
		what = "The API is not available now"
	default:
		return ""
	}
	switch {
	case !f.Retryable:
		return what + ". The write may have taken effect: check before you repeat it."
	case f.Status == 503 || !call.Mutating():
		return what + ": repeat the call later."
	}
	return what + ". This method can be repeated without doing anything twice: repeat the call later."
}

func apiAnswered(status int, what string) string {
	if what == "" {
		return fmt.Sprintf("the API answered %d", status)
	}
	return fmt.Sprintf("the API answered %d: %s", status, what)
}

// seconds rounds up, so that nobody comes back too early.
func seconds(d time.Duration) string {
	return fmt.Sprintf("%d s", int64((d+time.Second-1)/time.Second))
}

// StatusCode is the code of a status alone, for the audit trail of an answer
// that nobody has read; empty for a success, for a redirect and when there was
// no answer.
func StatusCode(method string, status int) fault.Code {
	if status < 400 {
		return ""
	}
	code, _ := classify(&wrapper.Call{Method: method}, &outbound.Response{Status: status})
	return code
}

func classify(call *wrapper.Call, resp *outbound.Response) (fault.Code, bool) {
	repeat := repeatable(call)
	switch s := resp.Status; s {
	case 400, 411, 414, 415, 431:
		return "UPSTREAM_BAD_REQUEST", false
	case 401:
		return "AUTH_REQUIRED", false
	case 402:
		return "UPSTREAM_PAYMENT_REQUIRED", false
	case 403:
		if resp.Header.Get("Retry-After") != "" || resp.Header.Get("X-RateLimit-Remaining") == "0" {
			return "UPSTREAM_RATE_LIMITED", true
		}
		if call.Auth != "" {
			return "AUTH_REQUIRED", false
		}
		return "UPSTREAM_FORBIDDEN", false
	case 451:
		return "UPSTREAM_FORBIDDEN", false
	case 404, 410:
		return "UPSTREAM_NOT_FOUND", false
	case 405, 501:
		return "UPSTREAM_METHOD", false
	case 406:
		return "UPSTREAM_NOT_ACCEPTABLE", false
	case 409, 412, 423, 428:
		return "UPSTREAM_CONFLICT", false
	case 413, 422:
		return "UPSTREAM_UNPROCESSABLE", false
	case 429:
		return "UPSTREAM_RATE_LIMITED", true
	case 408, 425:
		return "UPSTREAM_CLIENT_ERROR", true
	case 503:
		return "UPSTREAM_UNAVAILABLE", true
	case 502, 504, 520, 521, 522, 523, 524, 525, 526, 527, 529, 530:
		return "UPSTREAM_UNAVAILABLE", repeat
	default:
		switch {
		case s >= 300 && s < 400:
			return "UPSTREAM_REDIRECT", false
		case s >= 400 && s < 500:
			return "UPSTREAM_CLIENT_ERROR", false
		case s >= 500 && s < 600:
			return "UPSTREAM_SERVER_ERROR", repeat
		}
		return "UPSTREAM_PROTOCOL", false
	}
}

// errorBody decodes a failure's body when it is JSON of a reasonable size.
func errorBody(resp *outbound.Response) recipe.Value {
	if len(resp.Body) == 0 || len(resp.Body) > 1<<20 {
		return nil
	}
	text, err := resp.UTF8()
	if err != nil {
		return nil
	}
	v, err := recipe.Decode(text, recipe.DecodeLimits{})
	if err != nil {
		return nil
	}
	return v
}

// describe is the upstream's own words from the places where APIs put them,
// or what kind of thing the body is. Never a page's text.
func describe(resp *outbound.Response, body recipe.Value) string {
	if msg := upstreamMessage(body); msg != "" && !looksLikeHTML([]byte(msg)) {
		return msg
	}
	if ds := upstreamProblems(body); len(ds) > 0 {
		return firstProblem(ds)
	}
	if len(resp.Body) == 0 {
		return ""
	}
	what := contentType(resp)
	if kind, _ := kindOf(resp); kind != "" && body == nil {
		what = strings.TrimPrefix(strings.TrimPrefix(kind, "a "), "an ")
	}
	if resp.Partial {
		return fmt.Sprintf("%s (%d bytes or more)", what, len(resp.Body))
	}
	return fmt.Sprintf("%s (%d bytes)", what, len(resp.Body))
}

// firstProblem stands in for the message of an API that only lists problems.
func firstProblem(ds []fault.Detail) string {
	s := ds[0].Message
	if _, field, named := strings.Cut(ds[0].Field, ":"); named {
		s = field + ": " + s
	}
	if n := len(ds) - 1; n > 0 {
		s += fmt.Sprintf(" (and %d more)", n)
	}
	return s
}

// upstreamMessage reads one line of the API's own explanation from the places
// that common APIs use: GitHub and many more (message), Google, Stripe and
// Graph (error.message), OAuth (error, error_description), RFC 9457 (title,
// detail), Telegram (description), JSON:API (errors[0]), Jira (errorMessages),
// AWS (Message) and Apigee (fault.faultstring).
func upstreamMessage(body recipe.Value) string {
	o, ok := body.(recipe.Object)
	if !ok {
		if a, isArray := body.(recipe.Array); isArray && len(a) > 0 {
			return upstreamMessage(a[0])
		}
		return ""
	}
	for _, places := range [][]string{
		{"message"},
		{"error", "message"},
		{"detail"},
		{"error_description"},
		{"error"},
		{"title"},
		{"description"},
		{"errors", "0", "message"},
		{"errors", "0", "detail"},
		{"errors", "0", "title"},
		{"errorMessages", "0"},
		{"errors", "0"},
		{"errors"},
		{"Message"},
		{"fault", "faultstring"},
	} {
		if s, ok := at(o, places...).(string); ok && strings.TrimSpace(s) != "" {
			return fault.Shorten(withTitle(o, places, strings.TrimSpace(s)), 240)
		}
	}
	return ""
}

// withTitle puts a problem's title before its detail, and an OAuth error's
// code before its description: the short half names the cause.
func withTitle(o recipe.Object, places []string, s string) string {
	lead := ""
	switch places[0] {
	case "detail":
		lead, _ = at(o, "title").(string)
	case "error_description":
		lead, _ = at(o, "error").(string)
	}
	if lead == "" || lead == s {
		return s
	}
	return lead + ": " + s
}

// upstreamField is the input that the API itself names.
func upstreamField(body recipe.Value) string {
	for _, places := range [][]string{
		{"errors", "0", "field"},
		{"error", "param"},
		{"errors", "0", "pointer"},
		{"errors", "0", "source", "pointer"},
		{"error", "details", "0", "fieldViolations", "0", "field"},
	} {
		if s, ok := at(body, places...).(string); ok && s != "" {
			return s
		}
	}
	return ""
}

// at walks members by name and elements by number; nil when something is not there.
func at(v recipe.Value, steps ...string) recipe.Value {
	for _, step := range steps {
		switch x := v.(type) {
		case recipe.Object:
			v, _ = x.Get(step)
		case recipe.Array:
			i, err := strconv.Atoi(step)
			if err != nil || i >= len(x) {
				return nil
			}
			v = x[i]
		default:
			return nil
		}
	}
	return v
}

// reportedFault finds a failure that the API reports inside a success.
func reportedFault(rec *recipe.Recipe, page *recipe.Page, status int) *fault.Error {
	if rec.Error == nil {
		return nil
	}
	v := page.Lookup(*rec.Error)
	if isNothing(v) {
		return nil
	}
	words := ""
	var found problems
	switch x := v.(type) {
	case string:
		words = x
	case recipe.Object:
		found = upstreamProblems(x)
		if words = upstreamMessage(x); words == "" {
			words = string(recipe.Encode(x))
		}
	case recipe.Array:
		found.list(x, "")
		if words = upstreamMessage(x); words == "" {
			words = string(recipe.Encode(x))
		}
	default:
		words = string(recipe.Encode(x))
	}
	f := fault.New("UPSTREAM_REPORTED_ERROR", "the API answered %d but reports an error: %s", status, fault.Shorten(words, 200)).
		With(fault.Status(status), fault.Retryable(rateLimitWord(v)))
	return withProblems(f, found)
}

// isNothing reports whether the value at an error path means "no error".
func isNothing(v recipe.Value) bool {
	switch x := v.(type) {
	case nil:
		return true
	case bool:
		return !x
	case string:
		return x == ""
	case recipe.Array:
		return len(x) == 0
	case recipe.Object:
		return len(x) == 0
	}
	return fmt.Sprint(v) == "0"
}

// rateLimitWord reports whether a reported error is one that passes by itself.
func rateLimitWord(v recipe.Value) bool {
	text := string(recipe.Encode(v))
	for _, w := range []string{"ratelimited", "rate_limited", "Throttling", "RESOURCE_EXHAUSTED"} {
		if strings.Contains(text, w) {
			return true
		}
	}
	return false
}
