//go:build unix

package e2e

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mccutchen/go-httpbin/v2/httpbin"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// What go-httpbin serves beside echoes, status codes, redirects and compressed
// answers: each has one code, and nothing of a page goes through.
func TestHTTPBinContents(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	srv := httptest.NewServer(httpbin.New())
	t.Cleanup(srv.Close)
	for i, c := range []struct {
		path, headers string
		code          string // empty: a success
		status        int
	}{
		{"/stream-bytes/5000?seed=1&chunk_size=10", "", "RESPONSE_NOT_JSON", 200},
		{"/bytes/5000?seed=1", "", "RESPONSE_NOT_JSON", 200},
		{"/range/2000?chunk_size=9&duration=0.1", "", "RESPONSE_NOT_JSON", 200},
		{"/drip?duration=0.2&numbytes=5", "", "RESPONSE_NOT_JSON", 200},
		{"/sse?count=3&duration=0.1", "", "RESPONSE_NOT_JSON", 200},
		{"/dump/request", "", "RESPONSE_NOT_JSON", 200},
		{"/links/3/0", "", "RESPONSE_NOT_JSON", 200},
		{"/deny", "", "RESPONSE_NOT_JSON", 200},
		{"/forms/post", "", "RESPONSE_NOT_JSON", 200},
		{"/image/webp", "", "RESPONSE_NOT_JSON", 200},
		{"/stream/1", "", "", 200}, // one line of JSON is JSON
		{"/json", "", "", 200},
		{"/uuid", "", "", 200},
		{"/hostname", "", "", 200},
		{"/trailers?x=1", "", "", 200},
		{"/response-headers?X-A=1", "", "", 200},
		{"/delay/0.3", "", "", 200},
		{"/redirect-to?url=%2Fget&status_code=307", "", "", 200},
		{"/redirect-to?url=%2Fget&status_code=303", "", "", 200},
		{"/cookies/set?a=b", "", "", 200},
		{"/etag/abc", "", "", 200},
		{"/etag/abc", `{"If-None-Match":"\"abc\""}`, "UPSTREAM_REDIRECT", 304},
		{"/etag/abc", `{"If-Match":"\"other\""}`, "UPSTREAM_CONFLICT", 412},
		{"/cache", `{"If-Modified-Since":"Sat, 01 Jan 2022 00:00:00 GMT"}`, "UPSTREAM_REDIRECT", 304},
		{"/websocket/echo", "", "UPSTREAM_BAD_REQUEST", 400},
		{"/bearer", "", "AUTH_REQUIRED", 401},
		{"/basic-auth/u/p", "", "AUTH_REQUIRED", 401},
		{"/hidden-basic-auth/u/p", "", "UPSTREAM_NOT_FOUND", 404},
		{"/digest-auth/auth/u/p", "", "AUTH_REQUIRED", 401},
		{"/no/such/path", "", "UPSTREAM_NOT_FOUND", 404},
	} {
		id, headers := fmt.Sprintf("bin.%d", i), ""
		if c.headers != "" {
			headers = `,"headers":` + c.headers
		}
		d.save(id, fmt.Sprintf(`{"method":"GET","url":"%s%s"%s}`, srv.URL, c.path, headers), "")
		r, err := d.run(id, 0)
		var f *fault.Error
		switch {
		case c.code == "" && (err != nil || r.Status == nil || *r.Status != c.status || len(r.Records) < 5):
			t.Errorf("%s: %v %+v", c.path, err, r)
		case c.code != "" && (!errors.As(err, &f) || string(f.Code) != c.code || f.Status != c.status):
			t.Errorf("%s: %v, want %s with status %d", c.path, err, c.code, c.status)
		case c.code != "" && (len(f.Message) > 300 || strings.Contains(f.Message, "\n") || strings.Contains(f.Message, "</") || strings.Contains(f.Message, "***")):
			t.Errorf("%s: the content shows in %q", c.path, f.Message)
		}
	}
}

// U-15: some APIs refuse requests without a User-Agent, or with Go's own. Ours
// is sent, the author's instead where there is one, and a 403 without a
// credential is not blamed on one.
func TestU15UserAgent(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	s := newSite(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if ua := r.UserAgent(); ua == "" || strings.Contains(strings.ToLower(ua), "go-http") || strings.Contains(ua, "banned") {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		fmt.Fprintf(w, `{"ua":%q}`, r.UserAgent())
	}))
	d.save("ua", `{"method":"GET","url":"`+s.URL+`"}`, "")
	if r := d.must("ua", 0); !strings.HasPrefix(string(r.Records), `[{"ua":"hb-rest/`) {
		t.Errorf("%s", r.Records)
	}
	d.save("ua", `{"method":"GET","url":"`+s.URL+`","headers":{"User-Agent":"mine/2"}}`, "")
	if r := d.must("ua", 0); string(r.Records) != `[{"ua":"mine/2"}]` {
		t.Errorf("%s", r.Records)
	}
	d.save("ua", `{"method":"GET","url":"`+s.URL+`","headers":{"User-Agent":"banned"}}`, "")
	var f *fault.Error
	if _, err := d.run("ua", 0); !errors.As(err, &f) || f.Code != "UPSTREAM_FORBIDDEN" || f.Retryable || strings.Contains(f.Hint, "secret set") {
		t.Errorf("%v: %s", err, f.Hint)
	}
}

// O-08 and O-07: a rate limit that is over within the call's time is waited for,
// whichever way the API says how long; one that is not is told of with the wait.
func TestO08RetryAfter(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "HB_WRAP_CALL_TIMEOUT_MS=8000")
	header := func(name string, value func() string) func(http.Header) {
		return func(h http.Header) { h.Set(name, value()) }
	}
	text := func(s string) func() string { return func() string { return s } }
	const key = `,"body":{"order":1},"idempotencyKey":{"header":"Idempotency-Key"}`
	for name, c := range map[string]struct {
		method, more  string
		status        int
		limit         func(http.Header)
		requests      int
		least, most   time.Duration // of the whole call
		code          string        // empty: it succeeds
		retryAfter    time.Duration
		retryable     bool
		sameKeyAsLast bool
	}{
		"seconds": {"GET", "", 429, header("Retry-After", text("2")), 2, 2 * time.Second, 4 * time.Second, "", 0, false, false},
		"a date": {
			"GET", "", 429, header("Retry-After", func() string { return time.Now().Add(3 * time.Second).UTC().Format(http.TimeFormat) }),
			2, 2 * time.Second, 5 * time.Second, "", 0, false, false,
		},
		"seconds of a 503": {"PUT", `,"body":{"order":1}`, 503, header("Retry-After", text("1")), 2, time.Second, 3 * time.Second, "", 0, false, false},
		"403 and none left": {"GET", "", 403, func(h http.Header) {
			h.Set("X-RateLimit-Remaining", "0")
			h.Set("X-RateLimit-Reset", strconv.FormatInt(time.Now().Add(2*time.Second).Unix(), 10))
		}, 2, time.Second, 4 * time.Second, "", 0, false, false},
		"longer than the call": {"GET", "", 429, header("Retry-After", text("30")), 1, 0, time.Second, "UPSTREAM_RATE_LIMITED", 30 * time.Second, true, false},
		"a write":              {"POST", `,"body":{"order":1}`, 429, header("Retry-After", text("1")), 1, 0, time.Second, "UPSTREAM_RATE_LIMITED", time.Second, true, false},
		"a write with a key":   {"POST", key, 429, header("Retry-After", text("1")), 2, time.Second, 3 * time.Second, "", 0, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			keys := make(chan string, 9)
			s := newSite(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				keys <- r.Header.Get("Idempotency-Key")
				if len(keys) == 1 {
					c.limit(w.Header())
					w.WriteHeader(c.status)
					return
				}
				_, _ = io.WriteString(w, jsonText)
			}))
			id := strings.ReplaceAll(name, " ", ".")
			if _, err := d.change(id, fmt.Sprintf(`{"method":%q,"url":%q%s}`, c.method, s.URL, c.more), ""); err != nil {
				t.Fatal(err)
			}
			begin := time.Now()
			r, err := d.run(id, 0)
			took := time.Since(begin)
			var f *fault.Error
			switch {
			case c.code == "" && (err != nil || string(r.Records) != "["+jsonText+"]"):
				t.Errorf("%v %+v", err, r)
			case c.code != "" && (!errors.As(err, &f) || string(f.Code) != c.code || f.RetryAfter != c.retryAfter || f.Retryable != c.retryable):
				t.Errorf("%+v", err)
			}
			if took < c.least || took > c.most {
				t.Errorf("it took %v, want %v to %v", took, c.least, c.most)
			}
			if n := len(s.seen()); n != c.requests {
				t.Errorf("%d requests, want %d", n, c.requests)
			}
			first := <-keys
			if c.sameKeyAsLast && (len(first) < 16 || first != <-keys) || !c.sameKeyAsLast && first != "" {
				t.Errorf("the key %q was not kept", first)
			}
			if rows := d.rows(id, c.requests); len(rows) != c.requests || rows[0].Status != c.status || rows[0].Error == "" || rows[len(rows)-1].Outcome != "" {
				t.Errorf("rows %+v", rows)
			}
		})
	}
}
