package daemon_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/internal/daemon"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
)

// A call that was redirected says where its answer came from, also when it
// failed there; one that was not says nothing.
func TestFinalURL(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/old":
			http.Redirect(rw, r, "/new?token=canary-in-a-place&n=1", http.StatusFound)
		case "/lost":
			http.Redirect(rw, r, "/nowhere", http.StatusFound)
		case "/nowhere":
			rw.WriteHeader(404)
		default:
			_, _ = rw.Write([]byte(`{"a":1}`))
		}
	}))
	t.Cleanup(s.Close)
	w := newWorld(t, private, outbound.Options{})
	for path, want := range map[string]string{"/old": s.URL + "/new?token=[redacted]&n=1", "/lost": s.URL + "/nowhere", "/new": ""} {
		a := w.post("/wrap/test", `{"dryRun":false,"wrapper":`+get("x", s.URL+path)+`}`)
		if a.Request == nil || a.Request.URL != s.URL+path {
			t.Fatalf("%s: %s", path, a.Raw)
		}
		if got := a.Request.FinalURL; got != want || (want == "") == strings.Contains(a.Raw, "finalUrl") {
			t.Errorf("%s: final URL %q, want %q", path, got, want)
		}
		if strings.Contains(a.Raw, "canary") {
			t.Errorf("%s: %s", path, a.Raw)
		}
	}
}

// An error of a call has its duration, also when that is nothing; an error
// that is none of a call's has none.
func TestDurationOfAFailure(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, outbound.Options{})
	w.create(get("x", "https://127.0.0.1/"))
	if a := w.post("/wrap/run", `{"id":"x"}`); a.Code != "POLICY_PRIVATE_ADDRESS" || !strings.Contains(a.Raw, `"durationMs":`) {
		t.Error(a.Raw)
	}
	if a := w.post("/wrap/run", `{"id":"y"}`); a.Code != "WRAPPER_NOT_FOUND" || strings.Contains(a.Raw, `durationMs`) {
		t.Error(a.Raw)
	}
}

// What would be refused now is said when it is saved, not only when it is run.
func TestSavedAlthoughRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, outbound.Options{})
	for _, c := range []struct{ url, code, message, hint string }{
		{"http://api.example.com/{{n}}", "POLICY_SCHEME", "would be refused now: plain http to api.example.com is not allowed", "HB_WRAP_ALLOW_HTTP=1"},
		{"http://127.0.0.1:8080/{{n}}", "POLICY_SCHEME", "would be refused now: plain http to 127.0.0.1 is not allowed", "`hbrestd allow add 127.0.0.1:8080 --http`"},
		{"https://localhost/{{n}}", "POLICY_PRIVATE_ADDRESS", "would be refused now: localhost is this machine", "`hbrestd allow add localhost`"},
		{"https://169.254.169.254/{{n}}", "POLICY_PRIVATE_ADDRESS", "would be refused now: 169.254.169.254 is ", "no setting opens"},
		{"https://api.example.com:25/{{n}}", "POLICY_URL", "would be refused now: port 25 ", ""},
		{"https://api.example.com/{{n}}", "", "", ""},
	} {
		doc := `{"schemaVersion":1,"id":"x","name":"X","request":{"method":"GET","url":"` + c.url + `"},"inputSchema":{"type":"object","properties":{"n":{"type":"string","default":"1"}}}}`
		for _, action := range []string{"create", "update"} {
			a := w.post("/wrap/wrappers", `{"action":"`+action+`","wrapper":`+doc+`}`)
			if !a.OK {
				t.Fatal(a.Raw)
			}
			said := ""
			for _, x := range a.Warnings {
				if strings.HasPrefix(x.Message, "would be refused now: ") {
					said = x.Message
					if x.Code != c.code || x.Field != "wrapper.request.url" || !strings.Contains(x.Hint, c.hint) || !strings.HasPrefix(x.Message, c.message) {
						t.Errorf("%s %s: %+v", action, c.url, x)
					}
				}
			}
			if (said == "") != (c.code == "") {
				t.Errorf("%s %s: %s", action, c.url, a.Raw)
			}
		}
		if text, failed, err := w.agent(w.d.Addr()).call("wrap_update", `{"wrapper":`+doc+`}`); err != nil || failed || strings.Contains(text, "would be refused now") != (c.code != "") {
			t.Errorf("%s: %s", c.url, text)
		}
		w.post("/wrap/wrappers", `{"action":"delete","id":"x"}`)
	}
	// A credential that is not there stops every run as well.
	if a := w.post("/wrap/wrappers", `{"action":"create","wrapper":`+strings.Replace(get("k", "https://api.example.com/"), `"url"`, `"auth":"key","url"`, 1)+`}`); !strings.Contains(a.Raw, `would be refused now: there is no credential`) {
		t.Error(a.Raw)
	}
}

// With the switch on, the same documents are saved without that word.
func TestSavedAndAllowed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, private, outbound.Options{})
	if a := w.post("/wrap/wrappers", `{"action":"create","wrapper":`+get("x", "http://127.0.0.1:8080/")+`}`); !a.OK || strings.Contains(a.Raw, "would be refused") {
		t.Error(a.Raw)
	}
}

// A derive by URL has no wrapper: what it says is about the url that was sent.
func TestDeriveWordsAreAboutTheURL(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		var status int
		if n, _ := fmt.Sscanf(r.URL.Path, "/status/%d", &status); n == 1 {
			rw.WriteHeader(status)
		}
		switch r.URL.Path {
		case "/cut":
			panic(http.ErrAbortHandler)
		case "/loop":
			http.Redirect(rw, r, "/loop", http.StatusFound)
		case "/html":
			_, _ = rw.Write([]byte("<!doctype html><p>hello"))
		}
	}))
	t.Cleanup(s.Close)
	w := newWorld(t, private, outbound.Options{Lookup: func(context.Context, string) ([]netip.Addr, error) { return nil, context.Canceled }})
	for url, code := range map[string]string{
		"https://no.such.example/": "UPSTREAM_DNS", "ftp://x.example/": "POLICY_SCHEME", "https://169.254.169.254/": "POLICY_PRIVATE_ADDRESS",
		"https://user:pw@x.example/": "POLICY_URL", "http://127.0.0.1:1/": "POLICY_URL", "https://" + strings.TrimPrefix(s.URL, "http://"): "UPSTREAM_PROTOCOL",
		s.URL + "/cut": "UPSTREAM_CONNECT", s.URL + "/loop": "POLICY_REDIRECT", s.URL + "/html": "RESPONSE_NOT_JSON", s.URL + "/empty": "RESPONSE_EMPTY",
		s.URL + "/status/400": "UPSTREAM_BAD_REQUEST", s.URL + "/status/401": "AUTH_REQUIRED", s.URL + "/status/402": "UPSTREAM_PAYMENT_REQUIRED", s.URL + "/status/403": "UPSTREAM_FORBIDDEN",
		s.URL + "/status/404": "UPSTREAM_NOT_FOUND", s.URL + "/status/405": "UPSTREAM_METHOD", s.URL + "/status/406": "UPSTREAM_NOT_ACCEPTABLE", s.URL + "/status/409": "UPSTREAM_CONFLICT",
		s.URL + "/status/418": "UPSTREAM_CLIENT_ERROR", s.URL + "/status/422": "UPSTREAM_UNPROCESSABLE", s.URL + "/status/429": "UPSTREAM_RATE_LIMITED", s.URL + "/status/500": "UPSTREAM_SERVER_ERROR",
		s.URL + "/status/502": "UPSTREAM_UNAVAILABLE", s.URL + "/status/304": "UPSTREAM_REDIRECT",
	} {
		body, err := json.Marshal(map[string]string{"url": url})
		if err != nil {
			t.Fatal(err)
		}
		a := w.post("/wrap/derive", string(body))
		if a.Code != code || a.Field != "body.url" || a.Hint == "" {
			t.Errorf("%s: want %s at body.url: %s", url, code, a.Raw)
			continue
		}
		for _, word := range []string{"wrapper", "request.url", "timeoutMs", "args", "wrap_test", "max_pages", "pages"} {
			if strings.Contains(strings.ReplaceAll(a.Hint, "`hbrestd wrapper", ""), word) {
				t.Errorf("%s: %s: a derive has no %s: %s", url, code, word, a.Hint)
			}
		}
	}
	if a := w.post("/wrap/derive", `{"url":"https://no.such.example/"}`); !strings.Contains(a.Hint, "network") || !strings.Contains(a.Hint, "url") {
		t.Error(a.Hint)
	}
}

// The port of another home's daemon: the word that explains it is there.
func TestPortOfAnotherHome(t *testing.T) {
	t.Parallel()
	first := newWorld(t, nil, outbound.Options{})
	second := newWorld(t, nil, outbound.Options{})
	second.stop()
	o := second.options
	o.Config.Addr = first.d.Addr()
	_, err := daemon.Start(context.Background(), o)
	if f := fault.From(err); f.Code != "ADDRESS_IN_USE" || !strings.Contains(f.Message, "already in use by another hbrestd (") || !strings.HasSuffix(f.Message, "), with another HB_WRAP_HOME") || !strings.Contains(f.Message, first.d.Addr()) || !strings.Contains(f.Hint, "HB_WRAP_ADDR") {
		t.Errorf("%v %s", err, f.Hint)
	}
}
