package executor_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/executor"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
	"github.com/hyperbolic-gateway/hb-rest/internal/wrapper"
	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// noon is the moment of every test.
var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func parse(t *testing.T, doc string) *wrapper.Wrapper {
	t.Helper()
	w, report := wrapper.Parse([]byte(doc))
	if !report.OK() {
		t.Fatalf("wrapper: %+v", report.Problems)
	}
	return w
}

// answering makes an executor whose upstream always gives this answer.
func answering(status int, header map[string]string, body string) (*executor.Executor, *[]*outbound.Request) {
	var sent []*outbound.Request
	e := executor.New(executor.Config{
		Send: func(_ context.Context, r *outbound.Request) (*outbound.Response, error) {
			sent = append(sent, r)
			h := http.Header{}
			for k, v := range header {
				h.Set(k, v)
			}
			return &outbound.Response{Status: status, Header: h, Body: []byte(body), URL: r.URL}, nil
		},
		Check: func(*url.URL) error { return nil },
		Now:   func() time.Time { return noon },
	})
	return e, &sent
}

const getDoc = `{"schemaVersion":1,"id":"t.get","name":"Thing","request":{"method":"%METHOD%","url":"https://api.example.com/x"},
 "response":{"schemaVersion":1,"mode":"document","error":"$.error","fields":{"ID":"id"}}}`

func doc(method string) string { return strings.ReplaceAll(getDoc, "%METHOD%", method) }

func run(t *testing.T, method string, status int, header map[string]string, body string) (*executor.Outcome, *fault.Error) {
	t.Helper()
	e, _ := answering(status, header, body)
	var out *executor.Outcome
	var err error
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond) // too short for a second try
		defer cancel()
		out, err = e.Run(ctx, parse(t, doc(method)), executor.Options{})
	})
	if err == nil {
		return out, nil
	}
	var f *fault.Error
	if !errors.As(err, &f) {
		t.Fatalf("not a fault: %v", err)
	}
	return nil, f
}

// Every upstream status has one code, and "retryable" never invites a second
// write: the table of the error page, row by row.
func TestStatusCodes(t *testing.T) {
	type row struct {
		status    int
		code      fault.Code
		get, post bool // retryable
	}
	for _, r := range []row{
		{400, "UPSTREAM_BAD_REQUEST", false, false},
		{411, "UPSTREAM_BAD_REQUEST", false, false},
		{414, "UPSTREAM_BAD_REQUEST", false, false},
		{415, "UPSTREAM_BAD_REQUEST", false, false},
		{431, "UPSTREAM_BAD_REQUEST", false, false},
		{401, "AUTH_REQUIRED", false, false},
		{402, "UPSTREAM_PAYMENT_REQUIRED", false, false},
		{403, "UPSTREAM_FORBIDDEN", false, false},
		{451, "UPSTREAM_FORBIDDEN", false, false},
		{404, "UPSTREAM_NOT_FOUND", false, false},
		{410, "UPSTREAM_NOT_FOUND", false, false},
		{405, "UPSTREAM_METHOD", false, false},
		{501, "UPSTREAM_METHOD", false, false},
		{406, "UPSTREAM_NOT_ACCEPTABLE", false, false},
		{409, "UPSTREAM_CONFLICT", false, false},
		{412, "UPSTREAM_CONFLICT", false, false},
		{423, "UPSTREAM_CONFLICT", false, false},
		{428, "UPSTREAM_CONFLICT", false, false},
		{413, "UPSTREAM_UNPROCESSABLE", false, false},
		{422, "UPSTREAM_UNPROCESSABLE", false, false},
		{429, "UPSTREAM_RATE_LIMITED", true, true},
		{408, "UPSTREAM_CLIENT_ERROR", true, true},
		{425, "UPSTREAM_CLIENT_ERROR", true, true},
		{418, "UPSTREAM_CLIENT_ERROR", false, false},
		{500, "UPSTREAM_SERVER_ERROR", true, false},
		{507, "UPSTREAM_SERVER_ERROR", true, false},
		{502, "UPSTREAM_UNAVAILABLE", true, false},
		{503, "UPSTREAM_UNAVAILABLE", true, true},
		{504, "UPSTREAM_UNAVAILABLE", true, false},
		{522, "UPSTREAM_UNAVAILABLE", true, false},
		{300, "UPSTREAM_REDIRECT", false, false},
		{304, "UPSTREAM_REDIRECT", false, false},
	} {
		for method, want := range map[string]bool{"GET": r.get, "POST": r.post, "PATCH": r.post, "PUT": r.get, "DELETE": r.get} {
			_, f := run(t, method, r.status, nil, "")
			if f == nil || f.Code != r.code || f.Retryable != want || f.Status != r.status {
				t.Errorf("%s %d: %+v, want %s retryable %v", method, r.status, f, r.code, want)
			}
		}
	}
}

// Any 2xx is a success (203, 207 and 226 too).
func TestSuccessCodes(t *testing.T) {
	for _, status := range []int{200, 201, 202, 203, 206, 207, 226, 299} {
		out, f := run(t, "GET", status, nil, `{"id":9007199254740993}`)
		if f != nil {
			t.Fatalf("%d: %v", status, f)
		}
		if want := "## Thing\n\n- **ID:** 9007199254740993"; strings.TrimSpace(out.Result.Markdown) != want || out.Status != status {
			t.Errorf("%d: %q", status, out.Result.Markdown)
		}
	}
}

func TestNoContent(t *testing.T) {
	for _, c := range []struct {
		method, body string
		status       int
		code         fault.Code // "" : success
	}{
		{"GET", "", 204, ""},
		{"GET", "", 205, ""},
		{"HEAD", "", 200, ""},
		{"POST", "", 200, ""},
		{"DELETE", "", 200, ""},
		{"PUT", "  \n", 201, ""},
		{"GET", "", 200, "RESPONSE_EMPTY"},
		{"GET", " \r\n", 200, "RESPONSE_EMPTY"},
	} {
		out, f := run(t, c.method, c.status, map[string]string{"Content-Type": "application/json"}, c.body)
		if c.code != "" {
			if f == nil || f.Code != c.code {
				t.Errorf("%s %d: %v, want %s", c.method, c.status, f, c.code)
			}
			continue
		}
		if f != nil {
			t.Errorf("%s %d: %v", c.method, c.status, f)
			continue
		}
		if !strings.HasPrefix(out.Result.Markdown, "## Thing\n\nNo content") || len(out.Result.Records) != 0 {
			t.Errorf("%s %d: %q, records %v", c.method, c.status, out.Result.Markdown, out.Result.Records)
		}
	}
}

// The message quotes the API from the place where this kind of API puts it.
func TestUpstreamMessages(t *testing.T) {
	for _, c := range []struct {
		name, body, message, field string
		status                     int
	}{
		{"message and field (GitHub)", `{"message":"Validation Failed","errors":[{"resource":"Label","code":"invalid","field":"color"}]}`, "the API answered 422: Validation Failed", "upstream:color", 422},
		{"error.message and param (Stripe)", `{"error":{"code":"resource_missing","message":"No such customer: 'cus_x'","param":"customer"}}`, "the API answered 404: No such customer: 'cus_x'", "upstream:customer", 404},
		{"title and detail (RFC 9457)", `{"type":"about:blank","title":"You do not have enough credit.","detail":"Your current balance is 30, but that costs 50."}`, "the API answered 403: You do not have enough credit.: Your current balance is 30, but that costs 50.", "", 403},
		{"title alone", `{"title":"Gone"}`, "the API answered 410: Gone", "", 410},
		{"description (Telegram)", `{"ok":false,"error_code":400,"description":"Bad Request: chat not found"}`, "the API answered 400: Bad Request: chat not found", "", 400},
		{"error and description (OAuth)", `{"error":"invalid_request","error_description":"scope is missing"}`, "the API answered 400: invalid_request: scope is missing", "", 400},
		{"error as a string", `{"error":"nope"}`, "the API answered 400: nope", "", 400},
		{"errors of JSON:API", `{"errors":[{"detail":"First name must be set","source":{"pointer":"/data/attributes/firstName"}}]}`, "the API answered 422: First name must be set", "upstream:/data/attributes/firstName", 422},
		{"errorMessages (Jira)", `{"errorMessages":["Issue does not exist"],"errors":{}}`, "the API answered 404: Issue does not exist", "", 404},
		{"Message (AWS)", `{"Message":"User is not authorized"}`, "the API answered 403: User is not authorized", "", 403},
		{"field violations (Google)", `{"error":{"code":400,"message":"Invalid value","details":[{"fieldViolations":[{"field":"page_size"}]}]}}`, "the API answered 400: Invalid value", "upstream:page_size", 400},
		{"HTML", "<!DOCTYPE html>\n<html><body><h1>secret stack trace</h1></body></html>", "the API answered 502: HTML page (69 bytes)", "", 502},
		{"text", "something broke", "the API answered 500: text/plain (15 bytes)", "", 500},
		{"nothing", "", "the API answered 500", "", 500},
		{"controls and line breaks", "{\"message\":\"a\\r\\nb\\u001b[31m\"}", "the API answered 400: a  b[31m", "", 400},
		{"a list", `[{"message":"first"},{"message":"second"}]`, "the API answered 400: first", "", 400},
	} {
		ct := "application/json"
		switch c.name {
		case "HTML":
			ct = "text/html; charset=utf-8"
		case "text":
			ct = "text/plain"
		}
		_, f := run(t, "GET", c.status, map[string]string{"Content-Type": ct}, c.body)
		if f == nil || f.Message != c.message || f.Field != c.field {
			t.Errorf("%s: message %q field %q, want %q %q", c.name, f.Message, f.Field, c.message, c.field)
		}
	}
	long := strings.Repeat("x", 5000)
	if _, f := run(t, "GET", 400, nil, `{"message":"`+long+`"}`); len([]rune(f.Message)) > fault.MaxMessage {
		t.Errorf("a long message has %d characters", len([]rune(f.Message)))
	}
}

func TestRetryAfter(t *testing.T) {
	for _, c := range []struct {
		name   string
		header map[string]string
		body   string
		want   time.Duration
	}{
		{"seconds", map[string]string{"Retry-After": "5"}, "", 5 * time.Second},
		{"HTTP date", map[string]string{"Retry-After": "Mon, 30 Nov 2026 12:00:02 GMT"}, "", 2 * time.Second},
		{"a date in the past", map[string]string{"Retry-After": "Mon, 30 Nov 2026 11:00:00 GMT"}, "", 0},
		{"body (Telegram)", nil, `{"parameters":{"retry_after":7}}`, 7 * time.Second},
		{"reset moment", map[string]string{"X-RateLimit-Reset": "1796040030"}, "", 30 * time.Second},
		{"reset as a delay", map[string]string{"X-RateLimit-Reset": "12"}, "", 12 * time.Second},
		{"one hour", map[string]string{"Retry-After": "3600"}, "", time.Hour},
		{"more than one hour", map[string]string{"Retry-After": "3601"}, "", time.Hour},
		{"nonsense", map[string]string{"Retry-After": "soon"}, "", 0},
	} {
		_, f := run(t, "GET", 429, c.header, c.body)
		if f.RetryAfter != c.want {
			t.Errorf("%s: %v, want %v", c.name, f.RetryAfter, c.want)
		}
	}
}

// GitHub answers a rate limit with 403: it is not a matter of credentials.
func TestForbiddenOrRateLimited(t *testing.T) {
	for name, h := range map[string]map[string]string{
		"remaining 0": {"X-RateLimit-Remaining": "0"}, "retry-after": {"Retry-After": "60"},
	} {
		if _, f := run(t, "GET", 403, h, ""); f.Code != "UPSTREAM_RATE_LIMITED" || !f.Retryable {
			t.Errorf("%s: %+v", name, f)
		}
	}
	if _, f := run(t, "GET", 403, map[string]string{"X-RateLimit-Remaining": "12"}, ""); f.Code != "UPSTREAM_FORBIDDEN" {
		t.Errorf("calls remain: %+v", f)
	}
}

// What is not JSON gets a code, a place and the right advice.
func TestNotJSON(t *testing.T) {
	for _, c := range []struct {
		name, ct, body string
		code           fault.Code
		hint           string
	}{
		{"HTML", "text/html", "<!DOCTYPE html><html></html>", "RESPONSE_NOT_JSON", "HTML page"},
		{"CSV", "text/csv", "id,name\n1,a\n", "RESPONSE_NOT_JSON", "CSV"},
		{"prefix", "application/json", ")]}'\n{\"id\":1}", "RESPONSE_NOT_JSON", "prefix"},
		{"NaN", "application/json", `{"id":NaN}`, "RESPONSE_NOT_JSON", "NaN"},
		{"cut", "application/json", `{"id":1,"name":"a`, "RESPONSE_NOT_JSON", ""},
		{"bad UTF-8", "application/json", "{\"id\":\"\xff\"}", "RESPONSE_ENCODING", ""},
		{"too deep", "application/json", strings.Repeat("[", 201) + strings.Repeat("]", 201), "RESPONSE_TOO_DEEP", ""},
		{"binary", "application/octet-stream", "\x00\x01\x02", "RESPONSE_NOT_JSON", ""},
		{"image", "image/png", "\x89PNG\r\n\x1a\n", "RESPONSE_NOT_JSON", ""},
	} {
		_, f := run(t, "GET", 200, map[string]string{"Content-Type": c.ct}, c.body)
		if f == nil || f.Code != c.code || !strings.Contains(f.Hint, c.hint) {
			t.Errorf("%s: %+v, want %s with a hint about %q", c.name, f, c.code, c.hint)
			continue
		}
		if f.Status != 200 || f.Retryable {
			t.Errorf("%s: status %d, retryable %v", c.name, f.Status, f.Retryable)
		}
	}
	if _, f := run(t, "GET", 200, nil, strings.Repeat("[", 200)+strings.Repeat("]", 200)); f != nil {
		t.Errorf("200 levels are allowed: %v", f)
	}
	out, f := run(t, "GET", 200, map[string]string{"Content-Type": "application/json; charset=utf-8"}, "\ufeff{\"id\":1}")
	if f != nil || !strings.Contains(out.Result.Markdown, "**ID:** 1") {
		t.Errorf("byte order mark: %v", f)
	}
	out, f = run(t, "GET", 200, map[string]string{"Content-Type": "application/json; charset=ISO-8859-1"}, "{\"id\":\"caf\xe9\"}")
	if f != nil || !strings.Contains(out.Result.Markdown, "**ID:** café") {
		t.Errorf("ISO-8859-1: %v %+v", f, out)
	}
}

func TestReportedError(t *testing.T) {
	for _, c := range []struct {
		body      string
		failed    bool
		message   string
		retryable bool
	}{
		{`{"ok":false,"error":"channel_not_found"}`, true, "the API answered 200 but reports an error: channel_not_found", false},
		{`{"ok":false,"error":"ratelimited"}`, true, "the API answered 200 but reports an error: ratelimited", true},
		{`{"error":{"code":-32601,"message":"Method not found"}}`, true, "the API answered 200 but reports an error: Method not found", false},
		{`{"error":[{"message":"Cannot query field"}]}`, true, "the API answered 200 but reports an error: Cannot query field", false},
		{`{"error":{"status":"RESOURCE_EXHAUSTED"}}`, true, `the API answered 200 but reports an error: {"status":"RESOURCE_EXHAUSTED"}`, true},
		{`{"error":true}`, true, "the API answered 200 but reports an error: true", false},
		{`{"error":7}`, true, "the API answered 200 but reports an error: 7", false},
		{`{"id":1,"error":null}`, false, "", false},
		{`{"id":1,"error":""}`, false, "", false},
		{`{"id":1,"error":false}`, false, "", false},
		{`{"id":1,"error":0}`, false, "", false},
		{`{"id":1,"error":[]}`, false, "", false},
		{`{"id":1,"error":{}}`, false, "", false},
		{`{"id":1}`, false, "", false},
	} {
		_, f := run(t, "GET", 200, nil, c.body)
		if !c.failed {
			if f != nil {
				t.Errorf("%s: %v", c.body, f)
			}
			continue
		}
		if f == nil || f.Code != "UPSTREAM_REPORTED_ERROR" || f.Message != c.message || f.Retryable != c.retryable || f.Status != 200 {
			t.Errorf("%s: %+v", c.body, f)
		}
	}
}

// A credential that does not exist, a URL that the policy refuses, arguments
// that do not fit: in each case nothing is sent.
func TestNothingIsSent(t *testing.T) {
	e, sent := answering(200, nil, "{}")
	withAuth := parse(t, `{"schemaVersion":1,"id":"a","name":"A","request":{"method":"GET","url":"https://api.example.com/","auth":"key"}}`)
	if _, err := e.Run(context.Background(), withAuth, executor.Options{}); !fault.Is(err, "SECRET_NOT_FOUND") {
		t.Errorf("credential: %v", err)
	}
	refusing := executor.New(executor.Config{
		Send:  func(context.Context, *outbound.Request) (*outbound.Response, error) { t.Error("sent"); return nil, nil },
		Check: func(*url.URL) error { return fault.New("POLICY_SCHEME", "no") },
		Now:   func() time.Time { return noon },
	})
	// The policy of the URL comes before the credential.
	if _, err := refusing.Run(context.Background(), withAuth, executor.Options{}); !fault.Is(err, "POLICY_SCHEME") {
		t.Errorf("policy: %v", err)
	}
	needs := parse(t, `{"schemaVersion":1,"id":"b","name":"B","request":{"method":"GET","url":"https://api.example.com/{{city}}"},
	 "inputSchema":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}`)
	if _, err := refusing.Run(context.Background(), needs, executor.Options{}); !fault.Is(err, "ARGS_INVALID") {
		t.Errorf("arguments: %v", err)
	}
	plan, err := e.Preview(withAuth, nil, 0)
	if err != nil || plan.Refused == nil || plan.Refused.Code != "SECRET_NOT_FOUND" {
		t.Errorf("dry run: %+v %v", plan, err)
	}
	if len(*sent) != 0 {
		t.Errorf("%d requests left", len(*sent))
	}
}

func TestRequestIsHandedOver(t *testing.T) {
	e, sent := answering(200, nil, "{}")
	w := parse(t, `{"schemaVersion":1,"id":"o","name":"O","request":{"method":"POST","url":"https://api.example.com/v1/orders","headers":{"X-Trace":"abc"},"body":{"n":"{{n}}"},"timeoutMs":1234},
	 "inputSchema":{"type":"object","properties":{"n":{"type":"number"}},"required":["n"]}}`)
	if _, err := e.Run(context.Background(), w, executor.Options{Args: []byte(`{"n":9007199254740993}`)}); err != nil {
		t.Fatal(err)
	}
	r := (*sent)[0]
	got := []any{r.Method, r.URL.String(), string(r.Body), r.Timeout, r.Durable, r.Header.Get("X-Trace"), r.Header.Get("Content-Type"), r.Tag}
	want := []any{"POST", "https://api.example.com/v1/orders", `{"n":9007199254740993}`, 1234 * time.Millisecond, true, "abc", "application/json", outbound.Tag{Kind: "run", Wrapper: "o"}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// The deadline of the whole call and the caller's departure have their own
// codes, and a write that may have been sent is never called retryable.
func TestDeadlineAndCancel(t *testing.T) {
	hanging := executor.New(executor.Config{
		Send: func(ctx context.Context, _ *outbound.Request) (*outbound.Response, error) {
			<-ctx.Done()
			return nil, fault.New("UPSTREAM_TIMEOUT", "x").With(fault.Cause(ctx.Err()))
		},
		Check: func(*url.URL) error { return nil },
		Now:   func() time.Time { return noon },
	})
	for method, retryable := range map[string]bool{"GET": true, "POST": false} {
		ctx, cancel := context.WithDeadline(context.Background(), time.Now().Add(-time.Second))
		_, err := hanging.Run(ctx, parse(t, doc(method)), executor.Options{})
		cancel()
		if f := fault.From(err); f.Code != "CALL_DEADLINE" || f.Retryable != retryable {
			t.Errorf("%s: %+v", method, f)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := hanging.Run(ctx, parse(t, doc("GET")), executor.Options{}); !fault.Is(err, "CALL_CANCELLED") {
		t.Errorf("cancelled: %v", err)
	}
}

func TestSample(t *testing.T) {
	w := parse(t, doc("GET"))
	r, err := executor.Sample(w, []byte(`{"id":30.00}`))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff("## Thing\n\n- **ID:** 30.00", strings.TrimSpace(r.Markdown)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(`[{"ID":30.00}]`, string(recipe.Encode(recipe.Array(r.Records)))); d != "" {
		t.Error(d)
	}
	if _, err := executor.Sample(w, []byte(`{"id":`)); !fault.Is(err, "SAMPLE_INVALID") {
		t.Errorf("broken sample: %v", err)
	}
}

// pagesOf makes an executor whose upstream gives these answers in turn.
func pagesOf(bodies ...any) (*executor.Executor, *[]*outbound.Request) {
	var sent []*outbound.Request
	return executor.New(executor.Config{
		Send: func(_ context.Context, r *outbound.Request) (*outbound.Response, error) {
			sent = append(sent, r)
			switch b := bodies[min(len(sent), len(bodies))-1].(type) {
			case error:
				return nil, b
			case int:
				return &outbound.Response{Status: b, Header: http.Header{}, URL: r.URL}, nil
			default:
				return &outbound.Response{Status: 200, Header: http.Header{}, Body: []byte(b.(string)), URL: r.URL}, nil
			}
		},
		Check: func(*url.URL) error { return nil },
		Now:   func() time.Time { return noon },
	}), &sent
}

func urls(sent []*outbound.Request) (out []string) {
	for _, r := range sent {
		out = append(out, r.Method+" "+r.URL.String()+" "+string(r.Body))
	}
	return out
}

const cursorDoc = `{"schemaVersion":1,"id":"p","name":"P","request":{"method":"GET","url":"https://api.example.com/items?x=%2F","query":{"status":"open"}},
 "response":{"schemaVersion":1,"select":"$.items","mode":"table","fields":{"ID":"id"},"pagination":{"type":"cursor","next":"next","cursorParam":"cursor"}}}`

// All pages, the wrapper's own parameters on each, one render, one row of the
// audit trail for each.
func TestPagesAreMerged(t *testing.T) {
	e, sent := pagesOf(`{"items":[{"id":1},{"id":2}],"next":"b"}`, `{"items":[],"next":"c d"}`, `{"items":[{"id":9007199254740993}],"next":null}`)
	out, err := e.Run(context.Background(), parse(t, cursorDoc), executor.Options{Call: "abc"})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{
		"GET https://api.example.com/items?x=%2F&status=open ",
		"GET https://api.example.com/items?x=%2F&status=open&cursor=b ",
		"GET https://api.example.com/items?x=%2F&status=open&cursor=c%20d ",
	}, urls(*sent)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff("## P\n\n| ID |\n| --- |\n| 1 |\n| 2 |\n| 9007199254740993 |", out.Result.Markdown); d != "" {
		t.Error(d)
	}
	if p := out.Paging; p.Pages != 3 || p.Cap != 10 || p.Items != 3 || p.More || p.Stopped != "end" || !out.Complete() || out.Result.Meta.Truncated {
		t.Errorf("%+v", p)
	}
	var calls []string
	for _, r := range *sent {
		calls = append(calls, r.Tag.Call)
	}
	if d := cmp.Diff([]string{"abc", "abc-p2", "abc-p3"}, calls); d != "" {
		t.Error(d)
	}
}

// The first page's failure is the run's; a later one keeps what was read.
func TestFailureOfAPage(t *testing.T) {
	e, _ := pagesOf(500)
	if _, err := e.Run(context.Background(), parse(t, cursorDoc), executor.Options{}); !fault.Is(err, "UPSTREAM_SERVER_ERROR") {
		t.Errorf("first page: %v", err)
	}
	for name, c := range map[string]struct {
		second        any
		stopped, code string
	}{
		"status":  {503, "error", "UPSTREAM_UNAVAILABLE"},
		"policy":  {fault.New("POLICY_PRIVATE_ADDRESS", "x"), "policy", "POLICY_PRIVATE_ADDRESS"},
		"no JSON": {"<html>", "error", "RESPONSE_NOT_JSON"},
	} {
		e, _ := pagesOf(`{"items":[{"id":1}],"next":"b"}`, c.second)
		out, err := e.Run(context.Background(), parse(t, cursorDoc), executor.Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		p := out.Paging
		if p.Pages != 1 || p.Stopped != c.stopped || p.Error == nil || string(p.Error.Code) != c.code || !out.Result.Meta.Truncated || out.Complete() || len(out.Result.Records) != 1 {
			t.Errorf("%s: %+v %+v", name, p, out.Result.Meta)
		}
	}
}

func TestPageCap(t *testing.T) {
	for _, c := range []struct{ asked, pages int }{{0, 10}, {1, 1}, {3, 3}, {25, 25}} {
		bodies := make([]any, 30)
		for i := range bodies {
			bodies[i] = `{"items":[{"id":` + strconv.Itoa(i) + `}],"next":"c` + strconv.Itoa(i) + `"}`
		}
		e, sent := pagesOf(bodies...)
		out, err := e.Run(context.Background(), parse(t, cursorDoc), executor.Options{MaxPages: c.asked})
		if err != nil {
			t.Fatal(err)
		}
		if len(*sent) != c.pages || out.Paging.Cap != c.pages || out.Paging.Stopped != "page_cap" || !out.Paging.More {
			t.Errorf("max_pages %d: %d requests, %+v", c.asked, len(*sent), out.Paging)
		}
	}
}

// A cursor that belongs into the body is put there; everything else of the
// body keeps its bytes' order and digits.
func TestCursorInTheBody(t *testing.T) {
	w := parse(t, `{"schemaVersion":1,"id":"p","name":"P","request":{"method":"POST","url":"https://api.example.com/query","body":{"z":30.00,"a":{"limit":1}}},
	 "response":{"schemaVersion":1,"select":"$.results","mode":"table","fields":{"ID":"id"},"pagination":{"type":"cursor","next":"next_cursor","hasMore":"has_more","cursorParam":"a.start","in":"body"}}}`)
	e, sent := pagesOf(`{"results":[{"id":1}],"has_more":true,"next_cursor":9007199254740993}`, `{"results":[{"id":2}],"has_more":false,"next_cursor":null}`)
	out, err := e.Run(context.Background(), w, executor.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{
		`POST https://api.example.com/query {"z":30.00,"a":{"limit":1}}`,
		`POST https://api.example.com/query {"z":30.00,"a":{"limit":1,"start":9007199254740993}}`,
	}, urls(*sent)); d != "" {
		t.Error(d)
	}
	if out.Paging.Stopped != "has_more" || out.Paging.More {
		t.Errorf("%+v", out.Paging)
	}
}

// A dry run shows the first request with the page's own parameters.
func TestPreviewOfPages(t *testing.T) {
	w := parse(t, `{"schemaVersion":1,"id":"p","name":"P","request":{"method":"GET","url":"https://api.example.com/items"},
	 "response":{"schemaVersion":1,"select":"$.items","mode":"table","fields":{"ID":"id"},"pagination":{"type":"offset","offsetParam":"skip","limitParam":"limit","pageSize":20,"total":"total"}}}`)
	e, sent := pagesOf("")
	p, err := e.Preview(w, nil, 4)
	if err != nil {
		t.Fatal(err)
	}
	got := p.Call.URL.String()
	if p.Pages != 4 || !strings.Contains(got, "limit=20") || len(*sent) != 0 {
		t.Errorf("%s, %d pages, %d sent", got, p.Pages, len(*sent))
	}
}
