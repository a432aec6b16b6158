package outbound_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
	"github.com/hyperbolic-gateway/hb-rest/internal/soak"
)

// A recorder answers "/r?s=STATUS&to=URL" with a redirect and everything else
// with 200, and keeps what arrived at each place.
type recorder struct {
	mu  sync.Mutex // guards got
	got []arrival
}

type arrival struct {
	Place, Method, Path, Body string
	Header                    http.Header
}

func (rec *recorder) at(place string) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		rec.mu.Lock()
		rec.got = append(rec.got, arrival{place, r.Method, r.URL.Path, string(body), r.Header})
		rec.mu.Unlock()
		q := r.URL.Query()
		if s, _ := strconv.Atoi(q.Get("s")); s != 0 {
			if to := q.Get("to"); to != "" {
				rw.Header().Set("Location", to)
			}
			rw.Header().Set("Set-Cookie", "session=1")
			rw.WriteHeader(s)
			_, _ = io.WriteString(rw, "moved")
			return
		}
		_, _ = io.WriteString(rw, "arrived at "+place)
	})
}

func (rec *recorder) take() []arrival {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	got := rec.got
	rec.got = nil
	return got
}

func to(origin string, status int, next string) string {
	return fmt.Sprintf("%s/r?s=%d&to=%s", origin, status, escape(next))
}

func escape(s string) string {
	return strings.NewReplacer("%", "%25", "&", "%26", "?", "%3F", "#", "%23", "+", "%2B").Replace(s)
}

const origin0 = "https://api.example.com"

// The table of redirects: method, status, same or other origin.
func TestRedirectTable(t *testing.T) {
	w, rec := newWorld(t), &recorder{}
	w.serve(origin0, rec.at("api"))
	w.serve("https://other.example.com", rec.at("other"))
	c := w.client(outbound.Policy{})
	type want struct {
		code   fault.Code
		method string // of the second request
		body   string
	}
	table := func(method string, status int, same bool) want {
		write := method != "GET" && method != "HEAD"
		switch {
		case !write:
			return want{method: method}
		case status == 303:
			return want{method: "GET"}
		case (status == 307 || status == 308) && same:
			return want{method: method, body: "the body"}
		}
		return want{code: "UPSTREAM_REDIRECT"}
	}
	for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"} {
		for _, status := range []int{301, 302, 303, 307, 308} {
			for _, place := range []string{origin0, "https://other.example.com"} {
				var body []byte
				if method != "GET" && method != "HEAD" {
					body = []byte("the body")
				}
				r := outbound.NewRequest(method, mustURL(t, to(origin0, status, place+"/end")), body)
				r.Header.Set("Content-Type", "text/plain")
				resp, err := c.Send(context.Background(), r)
				got, wanted := rec.take(), table(method, status, place == origin0)
				label := fmt.Sprintf("%s %d to %s", method, status, place)
				if code(err) != wanted.code {
					t.Errorf("%s: %v", label, err)
					continue
				}
				if wanted.code != "" {
					if f := fault.From(err); len(got) != 1 || f.Status != status || f.Retryable {
						t.Errorf("%s: %d arrivals, %+v", label, len(got), f)
					}
					continue
				}
				last := got[len(got)-1]
				if len(got) != 2 || last.Method != wanted.method || last.Body != wanted.body || last.Path != "/end" || resp.Status != 200 || resp.URL.String() != place+"/end" {
					t.Errorf("%s: %+v, %v", label, got, resp)
				}
				if hasType := last.Header.Get("Content-Type") != ""; hasType != (place == origin0 && wanted.method == method) {
					t.Errorf("%s: Content-Type sent: %v", label, hasType)
				}
			}
		}
	}
}

// Promise 5: what another origin gets to see, for every status, every kind of
// origin change and every kind of header; also on the way back.
func TestRedirectHeaders(t *testing.T) {
	w, rec := newWorld(t), &recorder{}
	w.serve(origin0, rec.at("api"))
	changes := map[string]string{
		"same":           origin0,
		"same spelled":   "https://API.example.com.:443",
		"other host":     "https://other.example.com",
		"subdomain":      "https://sub.api.example.com",
		"parent":         "https://example.com",
		"lookalike":      "https://api.example.com.evil.example",
		"other port":     "https://api.example.com:8443",
		"host and port":  "https://other.example.com:8443",
		"address":        "https://93.184.216.77",
		"IPv6 address":   "https://[2606:4700::77]",
		"unicode host":   "https://bücher.example",
		"punycode label": "https://xn--bcher-kva.example:8443",
	}
	served := map[string]bool{}
	for name, origin := range changes {
		if u := strings.Replace(origin, "bücher", "xn--bcher-kva", 1); !strings.HasPrefix(name, "same") && !served[u] {
			served[u] = true
			w.serve(u, rec.at(name))
		}
	}
	c := w.client(outbound.Policy{})
	secret := []string{"Authorization", "X-Api-Key", "X-Custom"}
	kinds := append([]string{"Cookie", "Referer", "X-Own", "Accept-Language", "Proxy-Authorization"}, secret...)
	leaks, checked, chains, moves := 0, 0, 0, 0
	for name, origin := range changes {
		same := strings.HasPrefix(name, "same")
		if !same {
			moves++
		}
		for _, status := range []int{301, 302, 303, 307, 308} {
			for _, method := range []string{"GET", "POST"} {
				if method == "POST" && status != 303 {
					continue
				}
				r := outbound.NewRequest(method, mustURL(t, to(origin0, status, origin+"/r?s=307&to="+origin0+"/back")), nil)
				for _, k := range kinds {
					r.Header.Set(k, "cAnArY-"+k)
				}
				r.Header.Set("Accept", "application/x")
				r.Header.Set("User-Agent", "mine/1")
				r.SecretHeaders = secret
				if _, err := c.Send(context.Background(), r); err != nil {
					t.Fatalf("%s %d: %v", name, status, err)
				}
				chains++
				got := rec.take()
				if len(got) != 3 {
					t.Fatalf("%s %d: %d arrivals", name, status, len(got))
				}
				for i, a := range got {
					if a.Header.Get("Accept") != "application/x" {
						t.Errorf("%s %d hop %d: Accept is %q", name, status, i, a.Header.Get("Accept"))
					}
					keeps := i == 0 || same
					for _, k := range kinds {
						checked++
						if has := a.Header.Get(k) != ""; k != "Proxy-Authorization" && has != keeps || k == "Proxy-Authorization" && has {
							leaks++
							t.Errorf("%s %d hop %d: %s present is %v", name, status, i, k, has)
						}
					}
					if !keeps {
						want := http.Header{"Accept": {"application/x"}, "Accept-Encoding": {"gzip, deflate, br, zstd"}, "User-Agent": {"hb-rest/test"}}
						if d := cmp.Diff(want, a.Header); d != "" {
							t.Errorf("%s %d hop %d: %s", name, status, i, d)
						}
					}
				}
			}
		}
	}
	if codes := 5; moves < 10 || len(kinds) < 6 || chains != len(changes)*(codes+1) {
		t.Errorf("%d changes of the origin, %d kinds of headers, %d chains", moves, len(kinds), chains)
	}
	soak.Measured(t, "5 codes, %d changes of the origin and 2 that are none, %d kinds of headers, there and back: %d chains, %d checks, %d leaks", moves, len(kinds), chains, checked, leaks)
}

// An Accept header that carries the credential is not an exception.
func TestRedirectSecretAccept(t *testing.T) {
	w, rec := newWorld(t), &recorder{}
	w.serve(origin0, rec.at("api"))
	w.serve("https://other.example.com", rec.at("other"))
	r := outbound.NewRequest("GET", mustURL(t, to(origin0, 302, "https://other.example.com/")), nil)
	r.Header.Set("Accept", "secret")
	r.SecretHeaders = []string{"accept"}
	if _, err := w.client(outbound.Policy{}).Send(context.Background(), r); err != nil {
		t.Fatal(err)
	}
	if got := rec.take(); got[1].Header.Get("Accept") != "" {
		t.Error(got[1].Header)
	}
}

// D11, D14, S-03: places that are refused, with nothing sent to them.
func TestRedirectRefused(t *testing.T) {
	w, rec := newWorld(t), &recorder{}
	w.serve(origin0, rec.at("api"))
	w.serve("http://api.example.com", rec.at("plain"))
	w.names["inner.example.com"] = []netip.Addr{netip.MustParseAddr("10.0.0.1")}
	w.names["meta.example.com"] = []netip.Addr{netip.MustParseAddr("169.254.169.254")}
	strict, open := w.client(outbound.Policy{}), w.client(outbound.Policy{AllowHTTP: true})
	for _, cse := range []struct{ place, part string }{
		{"http://api.example.com/end", "from https to http"},
		{"HTTP://api.example.com/end", "from https to http"},
		{"ftp://api.example.com/", "not http or https"},
		{"file:///etc/passwd", "not http or https"},
		{"data:text/plain,x", "not http or https"},
		{"gopher://api.example.com/", "not http or https"},
		{"javascript:alert(1)", "not http or https"},
		{"https://169.254.169.254/latest/", "link-local"},
		{"https://127.0.0.1/", "loopback"},
		{"https://[::1]/", "loopback"},
		{"https://localhost/", "this machine"},
		{"https://2130706433/", "number"},
		{"https://inner.example.com/", "10.0.0.1"},
		{"https://meta.example.com/", "link-local"},
		{"https://user:pw@api.example.com/", "user information"},
		{"https://@api.example.com/", "user information"},
		{"https://api.example.com:22/", "port 22"},
		{"https:///x", "empty"},
		{"https:x", "empty"},
	} {
		for _, c := range []*outbound.Client{strict, open} {
			_, err := c.Send(context.Background(), redirecting(t, cse.place))
			got := rec.take()
			wantFault(t, err, "POLICY_REDIRECT", cse.part)
			if strings.Contains(err.Error(), "pw") || len(got) != 1 {
				t.Errorf("%s: %d arrivals, %v", cse.place, len(got), err)
			}
		}
	}
	if _, traps := w.counts(); traps != 0 {
		t.Errorf("%d dials to closed places", traps)
	}
	w.serve("https://long.example.com", http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Location", "/"+strings.Repeat("a", outbound.MaxURL))
		rw.WriteHeader(302)
	}))
	wantFault(t, second(get(t, strict, "https://long.example.com/")), "POLICY_REDIRECT", "at most")
}

func redirecting(t *testing.T, place string) *outbound.Request {
	r := outbound.NewRequest("GET", mustURL(t, origin0+"/r"), nil)
	u := *r.URL
	u.RawQuery = "s=302&to=" + strings.ReplaceAll(escape(place), " ", "%20")
	r.URL = &u
	r.Header.Set("Authorization", "Bearer x")
	r.SecretHeaders = []string{"Authorization"}
	return r
}

func TestRedirectWithoutUsablePlace(t *testing.T) {
	w, rec := newWorld(t), &recorder{}
	w.serve(origin0, rec.at("api"))
	c := w.client(outbound.Policy{})
	for _, status := range []int{301, 302, 303, 307, 308} {
		f := wantFault(t, second(get(t, c, fmt.Sprintf("%s/r?s=%d", origin0, status))), "UPSTREAM_REDIRECT", "without saying where")
		if f.Status != status {
			t.Error(f.Status)
		}
	}
	wantFault(t, second(get(t, c, to(origin0, 302, "https://[::1"))), "UPSTREAM_REDIRECT", "not a URL")
	wantFault(t, second(get(t, c, to(origin0, 302, "https://a b/"))), "UPSTREAM_REDIRECT", "not a URL")
	// Other 3xx are final answers, for the executor to name.
	for _, status := range []int{300, 304, 305} {
		if resp, err := get(t, c, to(origin0, status, "/x")); err != nil || resp.Status != status {
			t.Errorf("%d: %v %v", status, resp, err)
		}
	}
}

// D13: five are followed, the sixth is not.
func TestRedirectCount(t *testing.T) {
	w := newWorld(t)
	hits := 0
	w.serve(origin0, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		hits++
		n, _ := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/"))
		if n > 0 {
			rw.Header().Set("Location", fmt.Sprintf("/%d", n-1))
			rw.WriteHeader(302)
		}
	}))
	c := w.client(outbound.Policy{})
	if resp, err := get(t, c, origin0+"/5"); err != nil || resp.URL.Path != "/0" || hits != 6 {
		t.Errorf("%v %v, %d hits", resp, err, hits)
	}
	hits = 0
	wantFault(t, second(get(t, c, origin0+"/6")), "POLICY_REDIRECT", "more than 5 redirects")
	if hits != 6 {
		t.Errorf("%d hits", hits)
	}
	var want []outbound.Exchange
	for range 2 {
		for hop := range 6 {
			want = append(want, outbound.Exchange{Method: "GET", Host: "api.example.com", Hop: hop, Status: 302})
		}
	}
	want[5].Status, want[11].Err = 200, "POLICY_REDIRECT"
	if d := cmp.Diff(want, w.exchanges()); d != "" {
		t.Error(d)
	}
	hits = 0
	wantFault(t, second(get(t, w.client(outbound.Policy{MaxRedirects: -1}), origin0+"/1")), "POLICY_REDIRECT", "more than 0 redirects")
	if hits != 1 {
		t.Errorf("%d hits", hits)
	}
}

// U-04: a relative place resolves against the URL that answered (RFC 3986).
func TestRedirectRelative(t *testing.T) {
	w := newWorld(t)
	w.serve(origin0, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if place := r.Header.Get("X-Place"); place != "" && r.Header.Get("X-Seen") == "" && r.URL.Path == "/api/v3/items" {
			rw.Header().Set("Location", place)
			rw.WriteHeader(307)
			return
		}
		_, _ = io.WriteString(rw, r.RequestURI)
	}))
	c := w.client(outbound.Policy{})
	for place, want := range map[string]string{
		"items2?page=2":           "/api/v3/items2?page=2",
		"./x":                     "/api/v3/x",
		"../v4/items":             "/api/v4/items",
		"/root":                   "/root",
		"../../../../x":           "/x",
		"//api.example.com/abs":   "/abs",
		"a%2Fb%20c?x=%2B":         "/api/v3/a%2Fb%20c?x=%2B",
		"é?q=é x":                 "/api/v3/%C3%A9?q=%C3%A9%20x",
		"x/?a=1#frag":             "/api/v3/x/?a=1",
		"https://api.example.com": "/",
	} {
		for _, exact := range []bool{false, true} {
			u := mustURL(t, origin0+"/api/v3/items?page=1")
			if exact {
				u.Opaque = "/api/v3/items"
			}
			r := outbound.NewRequest("GET", u, nil)
			r.Header.Set("X-Place", place)
			resp, err := c.Send(context.Background(), r)
			if err != nil || string(resp.Body) != want {
				t.Errorf("%q: %v %v, want %s", place, resp, err, want)
			}
		}
	}
}

// A write's second request has an intent row of its own; a refused intent stops it.
func TestRedirectIntents(t *testing.T) {
	w, rec := newWorld(t), &recorder{}
	w.serve(origin0, rec.at("api"))
	o := w.options()
	var hops []int
	o.Intent = func(_ context.Context, x outbound.Exchange) error {
		hops = append(hops, x.Hop)
		if x.Hop == 2 {
			return fault.New("AUDIT_FAILED", "full")
		}
		return nil
	}
	c := outbound.New(outbound.Policy{}, o)
	defer c.Close()
	r := outbound.NewRequest("POST", mustURL(t, to(origin0, 308, to(origin0, 307, "/end"))), []byte("x"))
	r.Durable = true
	_, err := c.Send(context.Background(), r)
	wantFault(t, err, "AUDIT_FAILED", "full")
	if got := rec.take(); len(got) != 2 || got[1].Body != "x" {
		t.Errorf("%+v", got)
	}
	if d := cmp.Diff([]int{0, 1, 2}, hops); d != "" {
		t.Error(d)
	}
}

// A GET that changes something (method override) is treated as a write, and the
// GET after a 303 no longer overrides its method.
func TestRedirectMutatingGet(t *testing.T) {
	w, rec := newWorld(t), &recorder{}
	w.serve(origin0, rec.at("api"))
	c := w.client(outbound.Policy{})
	for status, want := range map[int]fault.Code{301: "UPSTREAM_REDIRECT", 302: "UPSTREAM_REDIRECT", 303: "", 307: ""} {
		r := outbound.NewRequest("GET", mustURL(t, to(origin0, status, "/end")), nil)
		r.Header.Set("X-HTTP-Method-Override", "DELETE")
		r.Mutating = true
		_, err := c.Send(context.Background(), r)
		got := rec.take()
		if code(err) != want {
			t.Errorf("%d: %v", status, err)
			continue
		}
		if want == "" {
			if has := got[1].Header.Get("X-Http-Method-Override") != ""; has != (status == 307) {
				t.Errorf("%d: override kept is %v", status, has)
			}
		}
	}
}

// A request that must not be repeated elsewhere ends with the redirect itself,
// also one whose Location no hop could use, and its body goes out once.
func TestNoRedirects(t *testing.T) {
	w, rec := newWorld(t), &recorder{}
	w.serve(origin0, rec.at("api"))
	w.serve("https://other.example.com", rec.at("other"))
	c := w.client(outbound.Policy{})
	for _, method := range []string{"GET", "POST"} {
		for _, status := range []int{301, 302, 303, 307, 308} {
			for _, place := range []string{origin0 + "/next", "https://other.example.com/next", "http://127.0.0.1/", "file:///etc/passwd", ""} {
				r := outbound.NewRequest(method, mustURL(t, to(origin0, status, place)), []byte("client_secret=s"))
				r.NoRedirects = true
				resp, err := c.Send(t.Context(), r)
				if err != nil || resp.Status != status || resp.Hops != 0 || len(resp.Body) != 0 || resp.Header.Get("Location") != place || resp.URL.Path != "/r" {
					t.Errorf("%s %d to %q: %+v, %v", method, status, place, resp, err)
				}
				if got := rec.take(); len(got) != 1 || got[0].Place != "api" || got[0].Method != method {
					t.Errorf("%s %d to %q: arrived %+v", method, status, place, got)
				}
			}
		}
	}
	want := outbound.Exchange{Method: "GET", Host: "api.example.com", Status: 301}
	if seen := w.exchanges(); len(seen) != 50 || !cmp.Equal(want, seen[0]) {
		t.Errorf("observed %d, first %+v", len(seen), seen[0])
	}
}

// A place with %2F keeps it also where other characters have to be escaped, and
// where its base has one.
func TestRedirectKeepsEscapes(t *testing.T) {
	for _, c := range []struct{ base, to, want string }{
		{"/", "/a%2Fb/é", "/a%2Fb/%C3%A9"},
		{"/", "/a%2Fb/x y", "/a%2Fb/x%20y"},
		{"/", "/a%2Fb/{x}|\"<>^`\\", "/a%2Fb/%7Bx%7D%7C%22%3C%3E%5E%60%5C"},
		{"/", "https://api.example.com/a%2fb/é?q=%2F é", "/a%2fb/%C3%A9?q=%2F%20%C3%A9"},
		{"/", "//api.example.com/a%2Fb/é", "/a%2Fb/%C3%A9"},
		{"/x%2Fy/z", "é%2Fw", "/x%2Fy/%C3%A9%2Fw"},
		{"/x%2Fy/z", "?a=é", "/x%2Fy/z?a=%C3%A9"},
		{"/", "/a%2Fb/x", "/a%2Fb/x"},
		{"/", "/a b", "/a%20b"},
	} {
		var got []string
		w := newWorld(t)
		w.serve(origin0, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if got = append(got, r.RequestURI); len(got) == 1 {
				rw.Header().Set("Location", c.to)
				rw.WriteHeader(302)
			}
		}))
		if _, err := get(t, w.client(outbound.Policy{}), origin0+c.base); err != nil {
			t.Errorf("%s: %v", c.to, err)
			continue
		}
		if len(got) != 2 || got[1] != c.want {
			t.Errorf("%s on %s: %q, want %s", c.to, c.base, got, c.want)
		}
	}
}
