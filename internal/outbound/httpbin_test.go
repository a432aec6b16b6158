package outbound_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mccutchen/go-httpbin/v2/httpbin"

	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
)

// go-httpbin is a server that nobody here wrote.
func TestHTTPBin(t *testing.T) {
	w := newWorld(t)
	w.serve(origin0, httpbin.New().Handler())
	c := w.client(outbound.Policy{})
	do := func(method, path string, body []byte, edit ...func(*outbound.Request)) (*outbound.Response, error) {
		r := outbound.NewRequest(method, mustURL(t, origin0+path), body)
		for _, e := range edit {
			e(r)
		}
		return c.Send(context.Background(), r)
	}
	var seen struct {
		Method, Data, URL string
		Args, Headers     map[string][]string
		Gzipped, Deflated bool
	}
	read := func(resp *outbound.Response, err error) {
		t.Helper()
		seen.Data, seen.Method = "", ""
		seen.Args, seen.Headers = nil, nil
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(resp.Body, &seen); err != nil {
			t.Fatalf("%v: %s", err, resp.Body)
		}
	}

	for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
		var body []byte
		if method != "GET" {
			body = []byte(`{"n":9007199254740993}`)
		}
		read(do(method, "/anything/a%20b?x=1&x=2", body, func(r *outbound.Request) {
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("X-Mine", "1")
		}))
		if seen.Method != method || seen.Data != string(body) || len(seen.Args["x"]) != 2 || seen.Headers["X-Mine"][0] != "1" ||
			seen.Headers["User-Agent"][0] != "hb-rest/test" || seen.Headers["Accept-Encoding"][0] != "gzip, deflate, br, zstd" ||
			seen.Headers["Referer"] != nil || seen.Headers["Cookie"] != nil {
			t.Errorf("%s: %+v", method, seen)
		}
	}
	if resp, err := do("HEAD", "/get", nil); err != nil || resp.Status != 200 || len(resp.Body) != 0 {
		t.Error(resp, err)
	}
	read(do("GET", "/gzip", nil))
	read(do("GET", "/deflate", nil))
	if !seen.Gzipped || !seen.Deflated {
		t.Errorf("%+v", seen)
	}
	for _, status := range []int{200, 201, 202, 203, 204, 205, 207, 226, 300, 304, 400, 401, 403, 404, 405, 418, 422, 429, 500, 502, 503, 504} {
		if resp, err := do("GET", fmt.Sprintf("/status/%d", status), nil); err != nil || resp.Status != status {
			t.Errorf("%d: %v %v", status, resp, err)
		}
	}
	for _, path := range []string{"/redirect/5", "/relative-redirect/5", "/absolute-redirect/5"} {
		resp, err := do("GET", path, nil)
		if err != nil || resp.Status != 200 || resp.URL.Path != "/get" {
			t.Errorf("%s: %v %v", path, resp, err)
		}
		_, err = do("GET", strings.Replace(path, "5", "6", 1), nil)
		wantFault(t, err, "POLICY_REDIRECT", "more than 5")
	}
	// Cookies are neither kept nor sent back.
	read(do("GET", "/cookies/set?a=b", nil))
	if seen.Headers["Cookie"] != nil {
		t.Error(seen.Headers)
	}
	if resp, err := do("GET", "/drip?numbytes=5&duration=0.2s", nil); err != nil || len(resp.Body) != 5 {
		t.Error(resp, err)
	}
	_, err := do("GET", "/drip?numbytes=5&duration=5s", nil, func(r *outbound.Request) { r.Timeout = 300 * time.Millisecond })
	wantFault(t, err, "UPSTREAM_TIMEOUT", "within 300ms")
	_, err = do("POST", "/delay/5", nil, func(r *outbound.Request) { r.Timeout = 300 * time.Millisecond })
	if f := wantFault(t, err, "UPSTREAM_TIMEOUT", "within 300ms"); f.Retryable {
		t.Error("a write that was sent is retryable")
	}
	if resp, err := do("GET", "/bytes/1000", nil); err != nil || len(resp.Body) != 1000 {
		t.Error(resp, err)
	}
	if resp, err := do("GET", "/stream-bytes/1000", nil); err != nil || len(resp.Body) != 1000 {
		t.Error(resp, err)
	}
	if resp, err := do("GET", "/range/100", nil, func(r *outbound.Request) { r.Header.Set("Range", "bytes=10-19") }); err != nil || resp.Status != 206 || string(resp.Body) != "klmnopqrst" {
		t.Error(resp, err)
	}
	if resp, err := do("GET", "/encoding/utf8", nil); err != nil || !strings.Contains(string(resp.Body), "∮") {
		t.Error(err)
	}
}
