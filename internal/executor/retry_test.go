package executor_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/hyperbolic-gateway/hb-rest/internal/executor"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
)

// An answer is what the scripted API does with one try.
type answer struct {
	status int
	header map[string]string
	body   string
	err    error
	took   time.Duration
	late   bool // it comes also when the call is over meanwhile
	cut    bool // only a part of the body came
}

// script answers try after try, the last answer again and again, and notes what
// came and when.
type script struct {
	answers []answer
	start   time.Time
	at      []time.Duration
	keys    []string
	tags    []string
	sent    []*outbound.Request
}

func (s *script) send(ctx context.Context, r *outbound.Request) (*outbound.Response, error) {
	s.at = append(s.at, time.Since(s.start))
	s.keys = append(s.keys, r.Header.Get("Idempotency-Key"))
	s.tags = append(s.tags, r.Tag.Call)
	s.sent = append(s.sent, r)
	a := s.answers[min(len(s.at), len(s.answers))-1]
	select {
	case <-time.After(a.took):
	case <-ctx.Done():
		if !a.late {
			return nil, ctx.Err()
		}
	}
	if a.err != nil {
		return nil, a.err
	}
	h := http.Header{}
	for k, v := range a.header {
		h.Set(k, v)
	}
	return &outbound.Response{Status: a.status, Header: h, Body: []byte(a.body), Partial: a.cut, URL: r.URL}, nil
}

const good = `{"id":1}`

// tries runs one call of a wrapper against answers, inside a bubble.
func tries(t *testing.T, document string, o executor.Options, deadline time.Duration, answers ...answer) (s *script, out *executor.Outcome, fail *executor.Failure) {
	t.Helper()
	s = &script{answers: answers}
	synctest.Test(t, func(t *testing.T) {
		s.start = time.Now()
		e := executor.New(executor.Config{Send: s.send, Check: func(*url.URL) error { return nil }, Now: time.Now})
		ctx, cancel := context.WithTimeout(t.Context(), deadline)
		defer cancel()
		var err error
		out, err = e.Run(ctx, parse(t, document), o)
		if err != nil && !errors.As(err, &fail) {
			t.Fatalf("not a failure: %v", err)
		}
	})
	return s, out, fail
}

// within checks the moments of the tries: each wait is between half and one and
// a half of the one that stands there.
func within(t *testing.T, what string, got []time.Duration, waits ...time.Duration) {
	t.Helper()
	if len(got) != len(waits)+1 {
		t.Errorf("%s: %d tries at %v, want %d", what, len(got), got, len(waits)+1)
		return
	}
	for i, w := range waits {
		if d := got[i+1] - got[i]; d < w/2 || d > w+w/2 {
			t.Errorf("%s: wait %d was %v, want %v and spread", what, i+1, d, w)
		}
	}
}

const ms = time.Millisecond

func keyDoc(method, value string) string {
	return fmt.Sprintf(`{"schemaVersion":1,"id":"t","name":"T","request":{"method":%q,"url":"https://api.example.com/x","idempotencyKey":{"header":"Idempotency-Key"%s}},
 "inputSchema":{"type":"object","properties":{"k":{"type":"string"}}},"response":{"schemaVersion":1,"mode":"document","fields":{"ID":"id"}}}`, method, value)
}

// refused is what the client says of a port where nobody listens.
func refused(t *testing.T) error {
	t.Helper()
	c := outbound.New(outbound.Policy{}, outbound.Options{
		DialAddr: func(context.Context, netip.AddrPort) (net.Conn, error) { return nil, errors.New("connection refused") },
	})
	_, err := c.Send(t.Context(), outbound.NewRequest("GET", &url.URL{Scheme: "https", Host: "93.184.216.34", Path: "/"}, nil))
	if !fault.Is(err, "UPSTREAM_CONNECT") || !outbound.Unsent(err) {
		t.Fatalf("refused: %v", err)
	}
	return err
}

// Which status is tried again, with which method: at most three tries, and none
// more for what does not pass by itself. A 429 that does not say how long is
// given a second.
func TestStatusesTriedAgain(t *testing.T) {
	limited := []time.Duration{1000 * ms, 2000 * ms}
	short := []time.Duration{200 * ms, 400 * ms}
	again := map[int][]time.Duration{
		429: limited, 408: short, 425: short, 502: short, 503: short, 504: short, 522: short, 529: short,
	}
	for _, status := range []int{
		300, 304, 400, 401, 402, 403, 404, 405, 406, 408, 409, 410, 411, 412, 413, 414, 415, 418, 422, 423, 425, 428, 429, 431, 451,
		500, 501, 502, 503, 504, 505, 507, 522, 529,
	} {
		for _, method := range []string{"GET", "HEAD", "PUT", "DELETE"} {
			s, _, f := tries(t, doc(method), executor.Options{}, 50*time.Second, answer{status: status})
			within(t, fmt.Sprint(method, status), s.at, again[status]...)
			if want := len(again[status]); f == nil || f.Retries != want || strings.Contains(f.Err.Message, "(after 3 tries)") != (want > 0) {
				t.Errorf("%s %d: %+v", method, status, f)
			}
		}
		for _, method := range []string{"POST", "PATCH"} {
			if s, _, _ := tries(t, doc(method), executor.Options{}, 50*time.Second, answer{status: status}); len(s.at) != 1 {
				t.Errorf("%s %d: sent %d times", method, status, len(s.at))
			}
			s, _, _ := tries(t, keyDoc(method, ""), executor.Options{}, 50*time.Second, answer{status: status})
			within(t, fmt.Sprint("with a key: ", method, status), s.at, again[status]...)
		}
	}
}

// A try that works ends it, and the result says how many were sent again.
func TestSecondTryWorks(t *testing.T) {
	s, out, f := tries(t, doc("GET"), executor.Options{Call: "c"}, 50*time.Second,
		answer{status: 503}, answer{status: 502}, answer{status: 200, body: good})
	if f != nil || out.Retries != 2 || !strings.Contains(out.Result.Markdown, "**ID:** 1") {
		t.Errorf("%+v %v", out, f)
	}
	if want := []string{"c", "c-try2", "c-try3"}; !cmp.Equal(s.tags, want) {
		t.Errorf("tags %v", s.tags)
	}
}

// Connections that break: a read and an idempotent write are sent again, another
// write only if nothing of it had left; a refusal and a timeout never.
func TestConnectionsTriedAgain(t *testing.T) {
	short := []time.Duration{200 * ms, 400 * ms}
	unsent := func(c fault.Code) error { return fault.New(c, "x").With(fault.Cause(refused(t))) }
	for name, c := range map[string]struct {
		err                error
		get, put, post, my int // tries; my: a POST with a key
	}{
		"refused":             {refused(t), 3, 3, 3, 3},
		"cut after sending":   {fault.New("UPSTREAM_CONNECT", "x"), 3, 3, 1, 3},
		"half an answer":      {fault.New("RESPONSE_INCOMPLETE", "x"), 3, 3, 1, 3},
		"resolver is silent":  {unsent("UPSTREAM_DNS"), 3, 3, 3, 3},
		"timeout":             {fault.New("UPSTREAM_TIMEOUT", "x"), 1, 1, 1, 1},
		"too large":           {fault.New("RESPONSE_TOO_LARGE", "x"), 1, 1, 1, 1},
		"bad encoding":        {fault.New("RESPONSE_ENCODING", "x"), 1, 1, 1, 1},
		"certificate":         {unsent("UPSTREAM_TLS"), 1, 1, 1, 1},
		"not HTTP":            {fault.New("UPSTREAM_PROTOCOL", "x"), 1, 1, 1, 1},
		"policy":              {unsent("POLICY_PRIVATE_ADDRESS"), 1, 1, 1, 1},
		"redirect refused":    {fault.New("POLICY_REDIRECT", "x"), 1, 1, 1, 1},
		"queue is full":       {fault.New("BUSY", "x"), 1, 1, 1, 1},
		"no audit row":        {fault.New("AUDIT_FAILED", "x"), 1, 1, 1, 1},
		"something of ours":   {errors.New("x"), 1, 1, 1, 1},
		"token is not minted": {unsent("OAUTH_TOKEN_UNREACHABLE"), 1, 1, 1, 1},
	} {
		for document, want := range map[string]int{doc("GET"): c.get, doc("PUT"): c.put, doc("POST"): c.post, keyDoc("POST", ""): c.my} {
			s, _, f := tries(t, document, executor.Options{}, 50*time.Second, answer{err: c.err})
			within(t, name, s.at, short[:want-1]...)
			if f.Retries != want-1 {
				t.Errorf("%s: %d retries", name, f.Retries)
			}
		}
	}
}

// An overridden method is not the one that is written: neither a PUT nor a GET
// in another's clothes is tried again.
func TestOverriddenMethodIsNotTriedAgain(t *testing.T) {
	for _, method := range []string{"GET", "PUT", "DELETE"} {
		d := strings.Replace(doc(method), `/x"}`, `/x","headers":{"X-HTTP-Method-Override":"PATCH"}}`, 1)
		if s, _, f := tries(t, d, executor.Options{}, 50*time.Second, answer{status: 502}); len(s.at) != 1 || f.Err.Retryable {
			t.Errorf("%s: %d tries, %+v", method, len(s.at), f.Err)
		}
	}
}

// O-07: a 403 that is a rate limit waits like a 429; without the headers it is
// a refusal, which no wait changes.
func TestForbiddenThatIsARateLimit(t *testing.T) {
	for name, h := range map[string]map[string]string{
		"remaining 0": {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "3"}, "retry-after": {"Retry-After": "3"},
	} {
		s, _, f := tries(t, doc("GET"), executor.Options{}, 50*time.Second, answer{status: 403, header: h}, answer{status: 200, body: good})
		if f != nil || len(s.at) != 2 || s.at[1] < 3100*ms || s.at[1] > 3300*ms {
			t.Errorf("%s: %v %v", name, s.at, f)
		}
	}
	if s, _, f := tries(t, doc("GET"), executor.Options{}, 50*time.Second, answer{status: 403}); len(s.at) != 1 || f.Err.Code != "UPSTREAM_FORBIDDEN" {
		t.Errorf("%v %v", s.at, f)
	}
}

// O-08: Retry-After in both forms is waited for, and never come back from early.
func TestRetryAfterIsWaitedFor(t *testing.T) {
	date := time.Date(2000, 1, 1, 0, 0, 2, 0, time.UTC).Format(http.TimeFormat) // 2 s after a bubble's beginning
	for _, h := range []string{"2", date} {
		for _, status := range []int{429, 503} {
			s, out, f := tries(t, doc("GET"), executor.Options{}, 50*time.Second,
				answer{status: status, header: map[string]string{"Retry-After": h}}, answer{status: 200, body: good})
			if f != nil || out.Retries != 1 || s.at[1] < 2100*ms || s.at[1] > 2300*ms {
				t.Errorf("%d with %s: %v %v", status, h, s.at, f)
			}
		}
	}
}

// A wait is taken when it ends half a second before the deadline, spread
// included (2 s + at most 0.3 s + 0.5 s), and otherwise the answer comes at once
// and says how long.
func TestWaitThatDoesNotFit(t *testing.T) {
	two := answer{status: 429, header: map[string]string{"Retry-After": "2"}}
	s, _, f := tries(t, doc("GET"), executor.Options{}, 2800*ms, two, answer{status: 200, body: good})
	if f != nil || len(s.at) != 2 {
		t.Errorf("2.8 s: %v %v", s.at, f)
	}
	s, _, f = tries(t, doc("GET"), executor.Options{}, 2600*ms-1, two) // 2 + 0.1 + 0.5 is the least
	if f == nil || len(s.at) != 1 || f.Err.Code != "UPSTREAM_RATE_LIMITED" || !f.Err.Retryable || f.Err.RetryAfter != 2*time.Second || f.Duration != 0 {
		t.Errorf("just under 2.6 s: %v %+v", s.at, f)
	}
	// What the first try took counts: 30 s of a deadline of 50 s leave no room for 20 s.
	slow := answer{status: 503, header: map[string]string{"Retry-After": "20"}, took: 30 * time.Second}
	s, _, f = tries(t, doc("GET"), executor.Options{}, 50*time.Second, slow)
	if f == nil || len(s.at) != 1 || f.Err.RetryAfter != 20*time.Second || f.Duration != 30*time.Second {
		t.Errorf("after 30 s: %v %+v", s.at, f)
	}
}

// A status that came is told, also when the deadline was over before its body was.
func TestStatusOutlivesTheDeadline(t *testing.T) {
	slow := answer{status: 429, header: map[string]string{"Retry-After": "7"}, body: `{"message":"slow do`, took: time.Minute, late: true, cut: true}
	_, _, f := tries(t, doc("POST"), executor.Options{}, 3*time.Second, slow)
	want := &fault.Error{
		Code: "UPSTREAM_RATE_LIMITED", Status: 429, Retryable: true, RetryAfter: 7 * time.Second,
		Message: "the API answered 429: no content type (19 bytes or more)", Hint: "Wait 7 s, then repeat the call; ask for fewer pages with max_pages.",
	}
	if d := cmp.Diff(want, f.Err, cmpopts.IgnoreUnexported(fault.Error{})); d != "" || f.Duration != 3*time.Second {
		t.Errorf("after %v: %s", f.Duration, d)
	}
}

// When the deadline ends a second try, the failure of the first is told, of the
// same request only.
func TestDeadlineInASecondTry(t *testing.T) {
	const over = "the call's deadline ended it before it was complete"
	hang := answer{took: time.Hour}
	for name, c := range map[string]struct {
		before answer
		want   string
	}{
		"status":     {answer{status: 503, body: `{"message":"deploying"}`}, over + "; the try before failed: the API answered 503: deploying"},
		"connection": {answer{err: fault.New("UPSTREAM_CONNECT", "api.example.com closed the connection before it answered")}, over + "; the try before failed: api.example.com closed the connection before it answered"},
	} {
		_, _, f := tries(t, doc("GET"), executor.Options{}, 3*time.Second, c.before, hang)
		if f.Err.Code != "CALL_DEADLINE" || f.Err.Message != c.want || f.Retries != 1 {
			t.Errorf("%s: %+v", name, f.Err)
		}
	}
	_, _, f := tries(t, doc("GET"), executor.Options{}, 3*time.Second, hang)
	if f.Err.Message != over {
		t.Errorf("one try: %q", f.Err.Message)
	}
	_, _, f = tries(t, doc("GET"), executor.Options{}, 3*time.Second, answer{status: 503, body: `{"message":"` + strings.Repeat("x", 1000) + `"}`}, hang)
	if n := len([]rune(f.Err.Message)); n > fault.MaxMessage || !strings.HasPrefix(f.Err.Message, over+"; the try before failed: the API answered 503: xxx") {
		t.Errorf("%d characters: %s", n, f.Err.Message)
	}
	// A later page that ends so does not name what went well in the end.
	page := answer{status: 200, body: `{"items":[{"id":1}],"next":"b"}`}
	_, out, f := tries(t, cursorDoc, executor.Options{}, 3*time.Second, answer{status: 503}, page, hang)
	if f != nil || out.Paging.Stopped != "deadline" || out.Paging.Error.Message != over {
		t.Errorf("%+v %v", out, f)
	}
	_, out, f = tries(t, cursorDoc, executor.Options{}, 3*time.Second, page, answer{status: 503}, hang)
	if f != nil || out.Paging.Stopped != "deadline" || out.Paging.Error.Message != over+"; the try before failed: the API answered 503" {
		t.Errorf("%+v %v", out, f)
	}
}

// The client's cancellation ends a pause at once.
func TestCancelledPause(t *testing.T) {
	s := &script{answers: []answer{{status: 429, header: map[string]string{"Retry-After": "30"}}}}
	synctest.Test(t, func(t *testing.T) {
		s.start = time.Now()
		e := executor.New(executor.Config{Send: s.send, Check: func(*url.URL) error { return nil }, Now: time.Now})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(5*time.Second, cancel)
		_, err := e.Run(ctx, parse(t, doc("GET")), executor.Options{})
		if took := time.Since(s.start); !fault.Is(err, "CALL_CANCELLED") || took != 5*time.Second || len(s.at) != 1 {
			t.Errorf("%v after %v, %d tries", err, took, len(s.at))
		}
	})
}

var uuid4 = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)

// A random key is one UUID for all tries of a call and another for the next
// call. It does not make the call repeatable for its caller, who would send
// another; a key from the arguments does.
func TestIdempotencyKey(t *testing.T) {
	s, _, f := tries(t, keyDoc("POST", ""), executor.Options{}, 50*time.Second, answer{status: 502})
	if len(s.keys) != 3 || s.keys[0] != s.keys[1] || s.keys[1] != s.keys[2] || !uuid4.MatchString(s.keys[0]) {
		t.Errorf("keys %q", s.keys)
	}
	if f.Err.Retryable || s.sent[0].Repeatable {
		t.Errorf("repeatable: %+v", f.Err)
	}
	other, _, _ := tries(t, keyDoc("POST", ""), executor.Options{}, 50*time.Second, answer{status: 200, body: good})
	if other.keys[0] == s.keys[0] {
		t.Error("two calls have one key")
	}
	args := executor.Options{Args: []byte(`{"k":"order-7"}`)}
	s, _, f = tries(t, keyDoc("POST", `,"value":"{{k}}"`), args, 50*time.Second, answer{status: 502})
	if want := []string{"order-7", "order-7", "order-7"}; !cmp.Equal(s.keys, want) || !f.Err.Retryable || !s.sent[0].Repeatable {
		t.Errorf("keys %q, %+v", s.keys, f.Err)
	}
	// Without the argument there is a random key, as if no value were given.
	if s, _, _ = tries(t, keyDoc("POST", `,"value":"{{k}}"`), executor.Options{}, 50*time.Second, answer{status: 200, body: good}); !uuid4.MatchString(s.keys[0]) {
		t.Errorf("keys %q", s.keys)
	}
}

// Each page is tried again like any other request, with an audit row of its own
// for each try; what was read stays when a page fails for good.
func TestPagesAreTriedAgain(t *testing.T) {
	o := executor.Options{Call: "c"}
	next := answer{status: 200, body: `{"items":[{"id":1}],"next":"b"}`}
	s, out, f := tries(t, cursorDoc, o, 50*time.Second, next, answer{status: 503}, answer{status: 200, body: `{"items":[{"id":2}]}`})
	if f != nil || out.Retries != 1 || out.Paging.Pages != 2 || !out.Complete() {
		t.Fatalf("%+v %v", out, f)
	}
	if want := []string{"c", "c-p2", "c-p2-try2"}; !cmp.Equal(s.tags, want) {
		t.Errorf("tags %v", s.tags)
	}
	// A deadline of 3 s has no room for a wait of 10 s: the first page is the result, at once.
	_, out, f = tries(t, cursorDoc, o, 3*time.Second, next, answer{status: 429, header: map[string]string{"Retry-After": "10"}})
	if f != nil || out.Complete() || out.Duration != 0 || out.Paging.Pages != 1 || out.Paging.Error.RetryAfter != 10*time.Second {
		t.Errorf("%+v %v", out, f)
	}
}

// A walk that the cap of items ends has left something out when there is more,
// also when the cap is the end of a page; one that ends by itself there has not.
func TestItemCapTruncates(t *testing.T) {
	page := func(next string, ids ...int) answer {
		var items []string
		for _, id := range ids {
			items = append(items, fmt.Sprintf(`{"id":%d}`, id))
		}
		return answer{status: 200, body: `{"items":[` + strings.Join(items, ",") + `],"next":` + next + `}`}
	}
	d := strings.Replace(cursorDoc, `"mode":"table"`, `"mode":"table","limits":{"maxItems":4}`, 1)
	for name, c := range map[string]struct {
		answers   []answer
		truncated bool
		reason    string
		stopped   string
	}{
		"at a page's end":      {[]answer{page(`"b"`, 1, 2), page(`"c"`, 3, 4)}, true, "items", "item_cap"},
		"inside a page":        {[]answer{page(`"b"`, 1, 2, 3), page(`"c"`, 4, 5)}, true, "items", "item_cap"},
		"the end itself":       {[]answer{page(`"b"`, 1, 2), page(`null`, 3, 4)}, false, "", "end"},
		"the end, one is over": {[]answer{page(`"b"`, 1, 2), page(`null`, 3, 4, 5)}, true, "items", "end"},
	} {
		_, out, f := tries(t, d, executor.Options{}, 50*time.Second, c.answers...)
		if f != nil {
			t.Fatal(name, f)
		}
		if m := out.Result.Meta; m.Truncated != c.truncated || m.Reason != c.reason || out.Paging.Stopped != c.stopped || out.Paging.More != (c.stopped == "item_cap") || m.Rendered != 4 {
			t.Errorf("%s: %+v, %+v", name, m, out.Paging)
		}
	}
	// Of two reasons the stronger one is told.
	wide := func(next string) answer {
		item := `{"id":"` + strings.Repeat("x", 90) + `"}`
		return answer{status: 200, body: `{"items":[` + item + "," + item + `],"next":` + next + `}`}
	}
	_, out, _ := tries(t, strings.Replace(d, `"maxItems":4`, `"maxItems":4,"maxChars":200`, 1), executor.Options{}, 50*time.Second, wide(`"b"`), wide(`"c"`))
	if m := out.Result.Meta; m.Reason != "items" || m.Rendered != 4 || m.Shown >= 4 {
		t.Errorf("%+v", m)
	}
}

// What comes after a try without an answer is read with it in mind: a DELETE
// that finds nothing may have been done by the try before.
func TestDoubtAfterATry(t *testing.T) {
	cut := answer{err: fault.New("UPSTREAM_CONNECT", "x")}
	_, _, f := tries(t, doc("DELETE"), executor.Options{}, 50*time.Second, cut, answer{status: 404})
	if f.Err.Code != "UPSTREAM_NOT_FOUND" || !strings.HasSuffix(f.Err.Message, "(after 2 tries)") || !strings.Contains(f.Err.Hint, "earlier try") {
		t.Errorf("%+v", f.Err)
	}
	_, _, f = tries(t, doc("DELETE"), executor.Options{}, 50*time.Second, answer{err: refused(t)}, answer{status: 404})
	if strings.Contains(f.Err.Hint, "earlier try") {
		t.Errorf("nothing was sent before: %+v", f.Err)
	}
	// The message keeps its length, and the number of tries is the last to go.
	_, _, f = tries(t, doc("GET"), executor.Options{}, 50*time.Second, answer{status: 503, body: `{"message":"` + strings.Repeat("x", 1000) + `"}`})
	if n := len([]rune(f.Err.Message)); n > fault.MaxMessage || !strings.HasSuffix(f.Err.Message, "(after 3 tries)") {
		t.Errorf("%d characters: %s", n, f.Err.Message)
	}
}

// A write that was redirected has been done: the failure of the page behind it
// is no reason to send it again, neither here nor by the caller.
func TestFailureBehindARedirectedWrite(t *testing.T) {
	for _, status := range []int{429, 503, 408} {
		e := executor.New(executor.Config{
			Send: func(_ context.Context, r *outbound.Request) (*outbound.Response, error) {
				return &outbound.Response{Status: status, Header: http.Header{"Retry-After": {"1"}}, URL: r.URL, Hops: 1}, nil
			},
			Check: func(*url.URL) error { return nil }, Now: time.Now,
		})
		_, err := e.Run(t.Context(), parse(t, doc("POST")), executor.Options{})
		if f := fault.From(err); f.Retryable || !strings.Contains(f.Hint, "may have taken effect") {
			t.Errorf("%d: %+v", status, f)
		}
	}
}

// Limits of a wrapper travel with each try.
func TestLimitsAreHandedOver(t *testing.T) {
	d := strings.Replace(doc("GET"), `/x"}`, `/x","concurrency":2,"rate":{"requests":5,"seconds":10}}`, 1)
	s, _, _ := tries(t, d, executor.Options{}, 50*time.Second, answer{status: 503}, answer{status: 200, body: good})
	for i, r := range s.sent {
		if r.Concurrency != 2 || r.Rate != (outbound.Rate{Requests: 5, Per: 10 * time.Second}) {
			t.Errorf("try %d: %+v", i+1, r)
		}
	}
}
