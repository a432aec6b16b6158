package daemon_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
)

// A later page that may be asked for again after a while says after which.
func TestLaterPageSaysHowLongToWait(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.RawQuery != "" {
			rw.Header().Set("Retry-After", "100") // more than the call has
			rw.WriteHeader(429)
			return
		}
		_, _ = io.WriteString(rw, `{"items":[{"id":1}],"next":"b"}`)
	}))
	defer s.Close()
	w := newWorld(t, private, outbound.Options{})
	w.create(fmt.Sprintf(`{"schemaVersion":1,"id":"a","request":{"url":%q},"response":{"schemaVersion":1,"select":"$.items",
	 "fields":{"ID":"id"},"pagination":{"type":"cursor","next":"next","cursorParam":"after"}}}`, s.URL))
	var got api.RunResult
	if err := json.Unmarshal([]byte(w.run("a", `{}`).Raw), &got); err != nil {
		t.Fatal(err)
	}
	want := &api.Paging{Pages: 1, Cap: 10, Items: 1, More: true, Stopped: "error", Error: &api.Short{
		Code: "UPSTREAM_RATE_LIMITED", Status: 429, Retryable: true, RetryAfterMs: 100_000, Message: "the API answered 429",
	}}
	if !reflect.DeepEqual(got.Paging, want) {
		t.Errorf("%+v %+v", got.Paging, got.Paging.Error)
	}
}

// A row has the code of its call, and each request has one row.
func TestRowsHaveTheCallsCode(t *testing.T) {
	var status int
	var header http.Header
	var body string
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		for name, values := range header {
			rw.Header()[name] = values
		}
		rw.WriteHeader(status)
		_, _ = io.WriteString(rw, body)
	}))
	defer s.Close()
	w := newWorld(t, private, outbound.Options{})
	for _, method := range []string{"GET", "POST"} {
		w.create(fmt.Sprintf(`{"schemaVersion":1,"id":%q,"name":"A","request":{"method":%q,"url":%q},
		 "response":{"schemaVersion":1,"select":"$.items","fields":{"ID":"id"},"error":"$.error"}}`, method, method, s.URL))
	}
	gone := http.Header{"Content-Encoding": {"compress"}}
	for _, c := range []struct {
		status int
		header http.Header
		body   string
		want   string
		only   bool // in a run: a derive knows no path to an error
	}{
		{200, nil, `{"items":[{"id":1}]}`, "", false},
		{404, nil, `{}`, "UPSTREAM_NOT_FOUND", false},
		{403, nil, `{}`, "UPSTREAM_FORBIDDEN", false},
		{403, http.Header{"X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {"3600"}}, `{}`, "UPSTREAM_RATE_LIMITED", false},
		{404, gone, `{}`, "UPSTREAM_NOT_FOUND", false},
		{304, nil, ``, "UPSTREAM_REDIRECT", false},
		{200, gone, `{}`, "RESPONSE_ENCODING", false},
		{200, nil, `<html>`, "RESPONSE_NOT_JSON", false},
		{200, nil, "{\"a\":\"\xff\"}", "RESPONSE_ENCODING", false},
		{200, nil, `{"error":"no such thing","items":[]}`, "UPSTREAM_REPORTED_ERROR", true},
	} {
		status, header, body = c.status, c.header, c.body
		calls := []string{w.run("GET", `{}`).Code, w.run("POST", `{}`).Code, ""}
		if _, err := w.d.Derive(context.Background(), &api.DeriveRequest{URL: s.URL}); err != nil {
			calls[2] = string(fault.From(err).Code)
		}
		want := []string{c.want, c.want, c.want}
		if c.only {
			want[2] = ""
		}
		page, err := w.d.Audit(context.Background(), len(calls))
		if err != nil || len(page.Rows) != len(calls) {
			t.Fatal(page, err)
		}
		for i, r := range page.Rows {
			if calls[i] != want[i] {
				t.Errorf("%d %.30q: call %d ended with %s, want %s", c.status, c.body, i, calls[i], want[i])
			}
			if r.Error != want[i] || r.Status != c.status || r.Outcome != "" || r.Kind != []string{"run", "run", "derive"}[i] {
				t.Errorf("%d %.30q: row %+v, want %q", c.status, c.body, r, want[i])
			}
		}
	}
}
