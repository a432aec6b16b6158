//go:build unix

package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

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
