package outbound_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
)

var discardLog = log.New(io.Discard, "", 0)

func TestSendGet(t *testing.T) {
	w := newWorld(t)
	w.serve("https://api.example.com", http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("X-Got", r.Method+" "+r.Host+" "+r.RequestURI+" "+r.UserAgent())
		_, _ = io.WriteString(rw, `{"ok":true}`)
	}))
	c := w.client(outbound.Policy{})
	r := outbound.NewRequest("GET", mustURL(t, "https://API.example.com./a/?x=1#frag"), nil)
	r.Tag = outbound.Tag{Kind: "run", Wrapper: "w", Call: "c1"}
	resp, err := c.Send(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	if resp.Status != 200 || string(resp.Body) != `{"ok":true}` || resp.Header.Get("X-Got") != "GET api.example.com /a/?x=1 hb-rest/test" || resp.URL.String() != "https://api.example.com/a/?x=1" {
		t.Errorf("%+v %s", resp, resp.Body)
	}
	want := []outbound.Exchange{{Tag: r.Tag, Method: "GET", Host: "api.example.com", Status: 200, Bytes: 11}}
	if d := cmp.Diff(want, w.exchanges()); d != "" {
		t.Error(d)
	}
}

// U-05, U-07: what the author wrote is what goes over the wire.
func TestSendKeepsTheURL(t *testing.T) {
	w := newWorld(t)
	w.serve("https://api.example.com", http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(rw, r.RequestURI)
	}))
	c := w.client(outbound.Policy{})
	for in, want := range map[string]string{
		"":                      "/",
		"/":                     "/",
		"/a":                    "/a",
		"/a/":                   "/a/",
		"/a//b":                 "/a//b",
		"/a%20b?x=%2B":          "/a%20b?x=%2B",
		"/a%2Fb/%7Ec":           "/a%2Fb/%7Ec",
		"/a%2fb":                "/a%2fb",
		"/x%3Fy%23z":            "/x%3Fy%23z",
		"/%C3%A9":               "/%C3%A9",
		"/é":                    "/%C3%A9",
		"/?a=1&a=2&b":           "/?a=1&a=2&b",
		"/?":                    "/?",
		"/?q=a+b%20c&d=[1]&e=|": "/?q=a+b%20c&d=[1]&e=|",
		"/?q=a b&c=é\"<>":       "/?q=a%20b&c=%C3%A9%22%3C%3E",
		"/?next=https://x/?y=1": "/?next=https://x/?y=1",
		"/?p=100%":              "/?p=100%",
		"/a;b=1,2":              "/a;b=1,2",
		"/v1/../x":              "/v1/../x",
	} {
		resp, err := get(t, c, "https://api.example.com"+in)
		if err != nil {
			t.Errorf("%q: %v", in, err)
			continue
		}
		if string(resp.Body) != want {
			t.Errorf("%q went out as %q, want %q", in, resp.Body, want)
		}
	}
	u := mustURL(t, "https://api.example.com/?q=1")
	u.Opaque = "/exact/%41/[x]|"
	resp, err := c.Send(context.Background(), outbound.NewRequest("GET", u, nil))
	if err != nil || string(resp.Body) != "/exact/%41/[x]|?q=1" {
		t.Errorf("%v %v", resp, err)
	}
}

func TestSendHeadersAndBody(t *testing.T) {
	w := newWorld(t)
	var got *http.Request
	var body string
	w.serve("https://api.example.com:8443", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got, body = r, string(b)
	}))
	c := w.client(outbound.Policy{})
	r := outbound.NewRequest("POST", mustURL(t, "https://api.example.com:8443/?dry=1"), []byte(`{"n":9007199254740993}`))
	r.Header = http.Header{
		"content-type": {"application/json"}, "X-Many": {"1", "2"}, "User-Agent": {"mine/1"}, "Accept-Encoding": {"br"},
		"Host": {"evil.example"}, "Content-Length": {"3"}, "Transfer-Encoding": {"chunked"}, "Connection": {"close"},
		"Expect": {"100-continue"}, "Proxy-Authorization": {"x"}, "Te": {"trailers"}, "Upgrade": {"h2c"},
	}
	if _, err := c.Send(context.Background(), r); err != nil {
		t.Fatal(err)
	}
	want := http.Header{
		"Content-Type": {"application/json"}, "X-Many": {"1", "2"}, "User-Agent": {"mine/1"},
		"Accept-Encoding": {"gzip, deflate, br, zstd"}, "Content-Length": {"22"},
	}
	if d := cmp.Diff(want, got.Header); d != "" {
		t.Error(d)
	}
	if got.Host != "api.example.com:8443" || body != `{"n":9007199254740993}` || got.RequestURI != "/?dry=1" || got.Method != "POST" {
		t.Errorf("%s %s %s %s", got.Method, got.Host, got.RequestURI, body)
	}
	// The caller's header is not touched, and an empty User-Agent is not sent as none (U-15).
	if len(r.Header) != 12 {
		t.Error(r.Header)
	}
	r = outbound.NewRequest("DELETE", mustURL(t, "https://api.example.com:8443/x"), nil)
	r.Header.Set("User-Agent", "")
	r.Header.Set("Range", "bytes=0-9")
	if _, err := c.Send(context.Background(), r); err != nil {
		t.Fatal(err)
	}
	if got.UserAgent() != "hb-rest/test" || got.Header.Get("Accept-Encoding") != "identity" || got.Method != "DELETE" {
		t.Error(got.Header)
	}
}

func TestSendRefusesBeforeTheNetwork(t *testing.T) {
	w := newWorld(t)
	c := w.client(outbound.Policy{})
	long := strings.Repeat("a", outbound.MaxURL-len("https://api.example.com/"))
	cases := []struct {
		name string
		r    *outbound.Request
		code fault.Code
	}{
		{"no URL", outbound.NewRequest("GET", nil, nil), "POLICY_URL"},
		{"scheme", outbound.NewRequest("GET", mustURL(t, "ftp://a.example/"), nil), "POLICY_SCHEME"},
		{"http", outbound.NewRequest("GET", mustURL(t, "http://a.example/"), nil), "POLICY_SCHEME"},
		{"URL at the limit", outbound.NewRequest("GET", mustURL(t, "https://api.example.com/"+long), nil), "UPSTREAM_DNS"},
		{"URL one over", outbound.NewRequest("GET", mustURL(t, "https://api.example.com/a"+long), nil), "POLICY_REQUEST_TOO_LARGE"},
		{"body at the limit", outbound.NewRequest("POST", mustURL(t, "https://api.example.com/"), make([]byte, outbound.MaxRequestBody)), "UPSTREAM_DNS"},
		{"body one over", outbound.NewRequest("POST", mustURL(t, "https://api.example.com/"), make([]byte, outbound.MaxRequestBody+1)), "POLICY_REQUEST_TOO_LARGE"},
		{"headers at the limit", header("X", strings.Repeat("v", outbound.MaxRequestHeader-5)), "UPSTREAM_DNS"},
		{"headers one over", header("X", strings.Repeat("v", outbound.MaxRequestHeader-4)), "POLICY_REQUEST_TOO_LARGE"},
		{"header injection", header("X", "a\r\nEvil: 1"), "POLICY_URL"},
		{"header with NUL", header("X", "a\x00"), "POLICY_URL"},
		{"header with tab", header("X", "a\tb"), "UPSTREAM_DNS"},
		{"header name", header("X Y", "1"), "POLICY_URL"},
		{"method", outbound.NewRequest("GE T", mustURL(t, "https://api.example.com/"), nil), "POLICY_URL"},
		{"no method", outbound.NewRequest("", mustURL(t, "https://api.example.com/"), nil), "POLICY_URL"},
		{"CONNECT", outbound.NewRequest("CONNECT", mustURL(t, "https://api.example.com/"), nil), "POLICY_URL"},
	}
	for _, cse := range cases {
		_, err := c.Send(context.Background(), cse.r)
		if code(err) != cse.code {
			t.Errorf("%s: %v, want %s", cse.name, err, cse.code)
		}
	}
	if dials, _ := w.counts(); dials != 0 {
		t.Errorf("%d dials", dials)
	}
	if n := len(w.exchanges()); n != len(cases) {
		t.Errorf("%d refusals observed, want %d", n, len(cases))
	}
}

func header(name, value string) *outbound.Request {
	r := outbound.NewRequest("GET", nil, nil)
	r.Header[name] = []string{value}
	r.URL = &url.URL{Scheme: "https", Host: "api.example.com", Path: "/"}
	return r
}

// Nothing is sent when the intent cannot be recorded.
func TestIntent(t *testing.T) {
	w := newWorld(t)
	hits := 0
	w.serve("https://api.example.com", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits++ }))
	var intents []outbound.Exchange
	var fail error
	o := w.options()
	o.Intent = func(_ context.Context, x outbound.Exchange) error {
		x.Start = time.Time{}
		intents = append(intents, x)
		return fail
	}
	c := outbound.New(outbound.Policy{}, o)
	defer c.Close()
	r := outbound.NewRequest("POST", mustURL(t, "https://api.example.com/"), nil)
	r.Durable = true
	if _, err := c.Send(context.Background(), r); err != nil || hits != 1 {
		t.Fatal(err, hits)
	}
	want := []outbound.Exchange{{Method: "POST", Host: "api.example.com", Durable: true}}
	if d := cmp.Diff(want, intents); d != "" {
		t.Error(d)
	}
	fail = errors.New("disk full")
	_, err := c.Send(context.Background(), r)
	f := wantFault(t, err, "AUDIT_FAILED", "not sent")
	if !errors.Is(f, fail) {
		t.Error("the cause is lost")
	}
	fail = fault.New("SHUTTING_DOWN", "stopping")
	_, err = c.Send(context.Background(), r)
	wantFault(t, err, "SHUTTING_DOWN", "stopping")
	r.Durable = false
	if _, err := c.Send(context.Background(), r); err != nil || hits != 2 || len(intents) != 3 {
		t.Error(err, hits, len(intents))
	}
}

func TestCallerEnds(t *testing.T) {
	w := newWorld(t)
	started := make(chan struct{}, 2)
	w.serve("https://api.example.com", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		started <- struct{}{}
		<-r.Context().Done()
	}))
	c := w.client(outbound.Policy{})
	ctx, cancel := context.WithCancel(context.Background())
	go func() { <-started; cancel() }()
	_, err := c.Send(ctx, outbound.NewRequest("GET", mustURL(t, "https://api.example.com/"), nil))
	if err != context.Canceled {
		t.Error(err)
	}
	ctx, cancel = context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	_, err = c.Send(ctx, outbound.NewRequest("GET", mustURL(t, "https://api.example.com/"), nil))
	if err != context.DeadlineExceeded {
		t.Error(err)
	}
	var codes []fault.Code
	for _, x := range w.exchanges() {
		codes = append(codes, x.Err)
	}
	if d := cmp.Diff([]fault.Code{"CALL_CANCELLED", "CALL_DEADLINE"}, codes); d != "" {
		t.Error(d)
	}
}
