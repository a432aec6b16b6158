package daemon_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mccutchen/go-httpbin/v2/httpbin"

	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
)

// httpbinWorld is a daemon beside an HTTP server that nobody here wrote. Its
// wrapper bin.call sends any method with a body to any path.
func httpbinWorld(t *testing.T, opts ...httpbin.OptionFunc) (*world, string) {
	t.Helper()
	srv := httptest.NewServer(httpbin.New(opts...))
	t.Cleanup(srv.Close)
	return newWorld(t, private, outbound.Options{}), srv.URL
}

// echoed is httpbin's account of a request.
type echoed struct {
	Args    map[string][]string `json:"args"`
	Headers map[string][]string `json:"headers"`
	Method  string              `json:"method"`
	URL     string              `json:"url"`
	Data    string              `json:"data"`
	JSON    json.RawMessage     `json:"json"`
}

func echo(t *testing.T, a *answer) echoed {
	t.Helper()
	if !a.OK {
		t.Fatalf("not ok: %s", a.Raw)
	}
	var records []echoed
	if err := json.Unmarshal(a.Records, &records); err != nil || len(records) != 1 {
		t.Fatalf("records %s: %v", a.Records, err)
	}
	return records[0]
}

func TestHTTPBinMethods(t *testing.T) {
	t.Parallel()
	w, base := httpbinWorld(t)
	for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
		body, query, contentType := "", "", []string(nil)
		if method != "GET" {
			body, query, contentType = `,"body":{"ids":"{{ids}}"}`, `,"query":{"dry":"{{dry}}"}`, []string{"application/json"}
		}
		doc := fmt.Sprintf(`{"schemaVersion":1,"id":"m","name":"M","request":{"method":%q,"url":"%s/%s"%s%s},
		 "inputSchema":{"type":"object","properties":{"ids":{"type":"array","items":{"type":"string"}},"dry":{"type":"integer"}}}}`,
			method, base, strings.ToLower(method), query, body)
		got := echo(t, w.once("m", doc, `{"ids":["a"],"dry":1}`))
		want := echoed{Method: method, URL: base + "/" + strings.ToLower(method), Args: map[string][]string{}}
		if method != "GET" {
			want.URL += "?dry=1"
			want.Args["dry"] = []string{"1"} // each argument in its place only
			want.Data, want.JSON = `{"ids":["a"]}`, json.RawMessage(`{"ids":["a"]}`)
		}
		if d := cmp.Diff(contentType, got.Headers["Content-Type"]); d != "" {
			t.Errorf("%s: content type (-want +got):\n%s", method, d)
		}
		got.Headers = nil
		if !strings.HasPrefix(got.Data, "{") { // a data URL says the same as nothing
			got.Data = ""
		}
		if string(got.JSON) == "null" {
			got.JSON = nil
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", method, d)
		}
	}

	// HEAD has no content by definition.
	doc := strings.Replace(get("h", base+"/head"), `"GET"`, `"HEAD"`, 1)
	if a := w.once("h", doc, `{}`); !a.OK || a.status() != 200 || a.Markdown != "## h\n\nNo content (status 200)." || string(a.Records) != "[]" {
		t.Errorf("HEAD: %s", a.Raw)
	}
}

// A DELETE with a declared body whose whole is one argument sends it.
func TestHTTPBinDeleteWithArrayBody(t *testing.T) {
	t.Parallel()
	w, base := httpbinWorld(t)
	got := echo(t, w.once("d", `{"schemaVersion":1,"id":"d","name":"D","request":{"method":"DELETE","url":"`+base+`/delete","body":"{{ids}}"},
	 "inputSchema":{"type":"object","properties":{"ids":{"type":"array","items":{"type":"string"}}},"required":["ids"]}}`, `{"ids":["a"]}`))
	if got.Data != `["a"]` || got.Method != "DELETE" {
		t.Errorf("%+v", got)
	}
}

func TestHTTPBinHeaders(t *testing.T) {
	t.Parallel()
	w, base := httpbinWorld(t)
	headers := func(doc string) map[string][]string { return echo(t, w.once("h", doc, `{"who":"ada"}`)).Headers }

	got := headers(get("h", base+"/headers"))
	if ua := got["User-Agent"]; len(ua) != 1 || ua[0] != "hb-rest/1.2.3" {
		t.Errorf("User-Agent %q, want the product's own", ua)
	}
	got = headers(`{"schemaVersion":1,"id":"h","name":"H","request":{"method":"GET","url":"` + base + `/headers",
	 "headers":{"Accept":"application/vnd.api+json","X-Trace-Id":"run {{who}}","User-Agent":"mine/2","Accept-Language":"de","Accept-Encoding":"br"}},
	 "inputSchema":{"type":"object","properties":{"who":{"type":"string"}}}}`)
	for name, want := range map[string]string{"Accept": "application/vnd.api+json", "X-Trace-Id": "run ada", "User-Agent": "mine/2", "Accept-Language": "de"} {
		if d := cmp.Diff([]string{want}, got[name]); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
	for name := range got {
		if l := strings.ToLower(name); strings.HasPrefix(l, "x-hb-") || strings.HasPrefix(l, "x-kuang") || l == "authorization" {
			t.Errorf("the header %s of the bridge left the machine", name)
		}
	}
}

func TestHTTPBinQuery(t *testing.T) {
	t.Parallel()
	w, base := httpbinWorld(t)
	doc := `{"schemaVersion":1,"id":"q","name":"Q","request":{"method":"GET","url":"` + base + `/get?fixed=%2B",
	 "query":{"q":"{{q}}","tag":"{{tags}}","n":"{{n}}","flag":"{{flag}}","zero":"{{zero}}","empty":"{{empty}}","gone":"{{gone}}","none":"{{none}}"}},
	 "inputSchema":{"type":"object","properties":{"q":{"type":"string"},"tags":{"type":"array","items":{"type":"string"}},"n":{"type":"integer"},
	  "flag":{"type":"boolean"},"zero":{"type":"integer"},"empty":{"type":"string"},"gone":{"type":"string"},"none":{"type":"array","items":{"type":"string"}}}}}`
	got := echo(t, w.once("q", doc, `{"q":"a b&c=d+é#?/","tags":["x","y z"],"n":9007199254740993,"flag":false,"zero":0,"empty":"","none":[]}`))
	want := map[string][]string{"fixed": {"+"}, "q": {"a b&c=d+é#?/"}, "tag": {"x", "y z"}, "n": {"9007199254740993"}, "flag": {"false"}, "zero": {"0"}, "empty": {""}}
	if d := cmp.Diff(want, got.Args); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestHTTPBinRedirects(t *testing.T) {
	t.Parallel()
	w, base := httpbinWorld(t)
	for _, path := range []string{"/redirect/5", "/relative-redirect/5", "/absolute-redirect/5", "/redirect/1"} {
		if got := echo(t, w.once("r", get("r", base+path), `{}`)); got.Method != "GET" || got.URL != base+"/get" {
			t.Errorf("%s: %+v", path, got)
		}
	}
	for _, path := range []string{"/redirect/6", "/relative-redirect/6", "/absolute-redirect/6"} {
		a := w.once("r", get("r", base+path), `{}`)
		if a.OK || a.Code != "POLICY_REDIRECT" || !strings.Contains(a.Message, "5") {
			t.Errorf("%s: %s", path, a.Raw)
		}
	}

	// A hop is judged like the first URL: its answer is never shown.
	tr := newTrap(t)
	for _, c := range []struct{ to, code, says string }{
		{"http://169.254.169.254/latest/meta-data/", "POLICY_REDIRECT", "169.254.169.254"},
		{"https://169.254.169.254/", "POLICY_REDIRECT", "169.254.169.254"},
		{"http://[fd00:ec2::254]/", "POLICY_REDIRECT", ""},
		{"http://0.0.0.0:" + fmt.Sprint(tr.port()) + "/", "POLICY_REDIRECT", ""},
		{"http://2130706433:" + fmt.Sprint(tr.port()) + "/", "POLICY_REDIRECT", ""},
		{"http://user:pw@127.0.0.1:" + fmt.Sprint(tr.port()) + "/", "POLICY_REDIRECT", ""},
		{"ftp://127.0.0.1:" + fmt.Sprint(tr.port()) + "/", "POLICY_REDIRECT", "ftp"},
		{"file:///etc/passwd", "POLICY_REDIRECT", "file"},
		{"gopher://127.0.0.1:" + fmt.Sprint(tr.port()) + "/", "POLICY_REDIRECT", "gopher"},
		{"data:text/plain,x", "POLICY_REDIRECT", "data"},
	} {
		a := w.once("r", get("r", base+"/redirect-to?status_code=302&url="+url.QueryEscape(c.to)), `{}`)
		if a.OK || a.Code != c.code || !strings.Contains(a.Message, c.says) || strings.Contains(a.Raw, "root:") {
			t.Errorf("to %s: %s", c.to, a.Raw)
		}
		if a.Retryable || a.Hint == "" {
			t.Errorf("to %s: retryable %v, hint %q", c.to, a.Retryable, a.Hint)
		}
	}
	tr.silent(t, "redirects")
}

// The table of redirects of a write, against a server that answers them all.
func TestHTTPBinRedirectOfAWrite(t *testing.T) {
	t.Parallel()
	w, base := httpbinWorld(t)
	other := httptest.NewServer(httpbin.New())
	t.Cleanup(other.Close)
	for _, c := range []struct {
		status     int
		to, method string // empty method: refused
		data       string
		code       string
	}{
		{303, base + "/anything", "GET", "", ""},
		{301, base + "/anything", "", "", "UPSTREAM_REDIRECT"},
		{302, base + "/anything", "", "", "UPSTREAM_REDIRECT"},
		{307, base + "/anything", "POST", `{"a":1}`, ""},
		{308, base + "/anything", "POST", `{"a":1}`, ""},
		{307, other.URL + "/anything", "", "", "UPSTREAM_REDIRECT"},
		{308, other.URL + "/anything", "", "", "UPSTREAM_REDIRECT"},
		{303, other.URL + "/anything", "GET", "", ""},
	} {
		name := fmt.Sprintf("%d to %s", c.status, c.to)
		doc := fmt.Sprintf(`{"schemaVersion":1,"id":"w","name":"W","request":{"method":"POST","url":"%s/redirect-to?status_code=%d&url=%s","body":{"a":1},"headers":{"X-Mine":"yes"}}}`,
			base, c.status, url.QueryEscape(c.to))
		a := w.once("w", doc, `{}`)
		if c.code != "" {
			if a.OK || a.Code != c.code || a.status() != c.status {
				t.Errorf("%s: %s", name, a.Raw)
			}
			continue
		}
		got := echo(t, a)
		crossed := strings.HasPrefix(c.to, other.URL)
		if got.Method != c.method || !strings.HasPrefix(got.URL, c.to) || string(got.Data) != c.data && c.data != "" {
			t.Errorf("%s: %+v", name, got)
		}
		if _, kept := got.Headers["X-Mine"]; kept == crossed {
			t.Errorf("%s: header kept: %v", name, kept)
		}
		if _, has := got.Headers["Referer"]; has {
			t.Errorf("%s: a Referer was sent", name)
		}
	}
}

func TestHTTPBinCompression(t *testing.T) {
	t.Parallel()
	w, base := httpbinWorld(t)
	for path, member := range map[string]string{"/gzip": "gzipped", "/deflate": "deflated"} {
		for _, headers := range []string{"", `,"headers":{"Accept-Encoding":"gzip, deflate, br"}`} {
			doc := fmt.Sprintf(`{"schemaVersion":1,"id":"z","name":"Z","request":{"method":"GET","url":"%s%s"%s},
			 "response":{"schemaVersion":1,"mode":"document","fields":{"Compressed":%q,"Method":"method"}}}`, base, path, headers, member)
			a := w.once("z", doc, `{}`)
			if !a.OK || a.Markdown != "## Z\n\n- **Compressed:** true\n- **Method:** GET" {
				t.Errorf("%s %s: %s", path, headers, a.Raw)
			}
		}
	}
}

// A sample of every class of status, against the table of the error page.
func TestHTTPBinStatusCodes(t *testing.T) {
	t.Parallel()
	w, base := httpbinWorld(t)
	w.create(`{"schemaVersion":1,"id":"s","name":"S","request":{"method":"GET","url":"` + base + `/status/{{code}}"},
	 "inputSchema":{"type":"object","properties":{"code":{"type":"integer"}},"required":["code"]}}`)
	for status, want := range map[int]string{
		200: "", 201: "", 202: "", 203: "", 204: "", 205: "", 226: "",
		300: "UPSTREAM_REDIRECT", 304: "UPSTREAM_REDIRECT", 305: "UPSTREAM_REDIRECT",
		400: "UPSTREAM_BAD_REQUEST", 401: "AUTH_REQUIRED", 402: "UPSTREAM_PAYMENT_REQUIRED", 403: "UPSTREAM_FORBIDDEN",
		404: "UPSTREAM_NOT_FOUND", 405: "UPSTREAM_METHOD", 406: "UPSTREAM_NOT_ACCEPTABLE", 407: "UPSTREAM_CLIENT_ERROR",
		408: "UPSTREAM_CLIENT_ERROR", 409: "UPSTREAM_CONFLICT", 410: "UPSTREAM_NOT_FOUND", 412: "UPSTREAM_CONFLICT",
		413: "UPSTREAM_UNPROCESSABLE", 415: "UPSTREAM_BAD_REQUEST", 418: "UPSTREAM_CLIENT_ERROR", 422: "UPSTREAM_UNPROCESSABLE",
		423: "UPSTREAM_CONFLICT", 425: "UPSTREAM_CLIENT_ERROR", 428: "UPSTREAM_CONFLICT", 429: "UPSTREAM_RATE_LIMITED",
		431: "UPSTREAM_BAD_REQUEST", 451: "UPSTREAM_FORBIDDEN", 499: "UPSTREAM_CLIENT_ERROR",
		500: "UPSTREAM_SERVER_ERROR", 501: "UPSTREAM_METHOD", 502: "UPSTREAM_UNAVAILABLE", 503: "UPSTREAM_UNAVAILABLE",
		504: "UPSTREAM_UNAVAILABLE", 505: "UPSTREAM_SERVER_ERROR", 520: "UPSTREAM_UNAVAILABLE", 599: "UPSTREAM_SERVER_ERROR",
	} {
		a := w.run("s", fmt.Sprintf(`{"code":%d}`, status))
		if a.HTTP != 200 || a.OK != (want == "") || a.Code != want || a.status() != status {
			t.Errorf("%d: want %q, got %s", status, want, a.Raw)
		}
	}
}

// A server that sends a byte now and then, or is late, is left at timeoutMs.
func TestHTTPBinSlow(t *testing.T) {
	t.Parallel()
	w, base := httpbinWorld(t)
	slow := func(method, path string, timeout int) string {
		return fmt.Sprintf(`{"schemaVersion":1,"id":"s","name":"S","request":{"method":%q,"url":"%s%s","timeoutMs":%d}}`, method, base, path, timeout)
	}
	for _, path := range []string{"/drip?duration=8&numbytes=8&delay=0", "/delay/8", "/drip?duration=4&numbytes=8&delay=4"} {
		within(t, 1500*time.Millisecond, path, func() {
			a := w.once("s", slow("GET", path, 400), `{}`)
			if a.OK || a.Code != "UPSTREAM_TIMEOUT" || a.Status != nil || !a.Retryable || !strings.Contains(a.Message, "400") {
				t.Errorf("%s: %s", path, a.Raw)
			}
		})
	}
	within(t, 1500*time.Millisecond, "a write", func() {
		a := w.once("s", slow("POST", "/delay/8", 400), `{}`)
		if a.Code != "UPSTREAM_TIMEOUT" || a.Retryable || !strings.Contains(a.Hint, "check") {
			t.Errorf("a write that timed out: %s", a.Raw)
		}
	})
	// In time is in time.
	if got := echo(t, w.once("s", slow("GET", "/delay/0.2", 5000), `{}`)); got.Method != "GET" {
		t.Errorf("%+v", got)
	}
}

// The call's own limit ends a wrapper that would wait longer.
func TestHTTPBinCallDeadline(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(httpbin.New())
	t.Cleanup(srv.Close)
	w := newWorld(t, map[string]string{"HB_WRAP_ALLOW_PRIVATE": "1", "HB_WRAP_CALL_TIMEOUT_MS": "300"}, outbound.Options{})
	within(t, 1500*time.Millisecond, "the call", func() {
		a := w.once("s", get("s", srv.URL+"/delay/8"), `{}`)
		if a.Code != "CALL_DEADLINE" || !a.Retryable {
			t.Errorf("%s", a.Raw)
		}
	})
}

// What is not JSON is a short statement, never the content.
func TestHTTPBinOtherContent(t *testing.T) {
	t.Parallel()
	w, base := httpbinWorld(t, httpbin.WithUnsafeAllowDangerousResponses())
	for _, c := range []struct{ path, code, message, hint, never string }{
		{"/html", "RESPONSE_NOT_JSON", "text/html", "HTML page", "Moby"},
		{"/image/png", "RESPONSE_NOT_JSON", "image/png", "", "IHDR"},
		{"/image/svg", "RESPONSE_NOT_JSON", "image/svg+xml", "", "<svg"},
		{"/bytes/100?seed=1", "RESPONSE_NOT_JSON", "application/octet-stream", "", "records"},
		{"/xml", "RESPONSE_NOT_JSON", "application/xml", "", "slideshow"},
		{"/encoding/utf8", "RESPONSE_NOT_JSON", "text/html", "", "∮"},
		{"/robots.txt", "RESPONSE_NOT_JSON", "text/plain", "", "Disallow"},
		{"/base64/aGVsbG8=", "RESPONSE_NOT_JSON", "text/plain", "", "hello"},
		{"/sse?count=100&duration=10s", "RESPONSE_NOT_JSON", "server-sent events", "streaming", "data:"},
	} {
		a := w.once("o", get("o", base+c.path), `{}`)
		if a.OK || a.Code != c.code || a.status() != 200 || !strings.Contains(a.Message, c.message) || !strings.Contains(a.Hint, c.hint) || strings.Contains(a.Raw, c.never) {
			t.Errorf("%s: %s", c.path, a.Raw)
		}
		if len(a.Message) > 300 || len(a.Hint) > 200 {
			t.Errorf("%s: message of %d, hint of %d bytes", c.path, len(a.Message), len(a.Hint))
		}
	}
	// A document a line is a list, also under the name of text/plain.
	a := w.once("o", get("o", base+"/stream/3"), `{}`)
	var three []struct{ ID int }
	if err := json.Unmarshal(a.Records, &three); err != nil || len(three) != 3 || three[2].ID != 2 || !strings.Contains(a.Raw, "one JSON document a line") {
		t.Errorf("/stream/3: %s", a.Raw)
	}
	// JSON with a recipe, from somebody else's hand.
	a = w.once("j", `{"schemaVersion":1,"id":"j","name":"Slides","request":{"method":"GET","url":"`+base+`/json"},
	 "response":{"schemaVersion":1,"select":"$.slideshow.slides","mode":"table","fields":{"Title":"title","Kind":"type","Points":"items"},"record":{"title":"title","items":"items"}}}`, `{}`)
	want := "## Slides\n\n| Title | Kind | Points |\n| --- | --- | --- |\n| Wake up to WonderWidgets! | all | |\n" +
		`| Overview | all | Why \<em\>WonderWidgets\</em\> are great, Who \<em\>buys\</em\> WonderWidgets |`
	if d := cmp.Diff(want, a.Markdown); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if d := cmp.Diff(`[{"title":"Wake up to WonderWidgets!","items":null},{"title":"Overview","items":["Why <em>WonderWidgets</em> are great","Who <em>buys</em> WonderWidgets"]}]`, string(a.Records)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// An API that fails now and then is answered for what it did this time.
func TestHTTPBinUnstable(t *testing.T) {
	t.Parallel()
	w, base := httpbinWorld(t)
	doc := strings.Replace(get("u", base+"/unstable?failure_rate={{rate}}"), `"request"`, `"inputSchema":{"type":"object","properties":{"rate":{"type":"number"}}},"request"`, 1)
	w.create(doc)
	if a := w.run("u", `{"rate":0.0}`); !a.OK || a.status() != 200 {
		t.Errorf("stable: %s", a.Raw)
	}
	if a := w.run("u", `{"rate":1.0}`); a.Code != "UPSTREAM_SERVER_ERROR" || !a.Retryable || a.status() != 500 {
		t.Errorf("failing: %s", a.Raw)
	}
}

// A base path stays in front, in the URL and behind relative redirects: httpbin
// answers 404 without it, and takes it off in its account.
func TestHTTPBinBasePath(t *testing.T) {
	t.Parallel()
	w, base := httpbinWorld(t, httpbin.WithPrefix("/api/v3"))
	if got := echo(t, w.once("b", get("b", base+"/api/v3/get"), `{}`)); got.URL != base+"/get" {
		t.Errorf("%+v", got)
	}
	if got := echo(t, w.once("b", get("b", base+"/api/v3/relative-redirect/2"), `{}`)); got.URL != base+"/get" {
		t.Errorf("after redirects: %+v", got)
	}
	// "items?page=2" from /api/v3/x is /api/v3/items?page=2.
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/v3/old" {
			rw.Header().Set("Location", "items?page=2")
			rw.WriteHeader(302)
			return
		}
		fmt.Fprintf(rw, `{"uri":%q}`, r.RequestURI)
	}))
	t.Cleanup(srv.Close)
	if a := w.once("b", get("b", srv.URL+"/api/v3/old"), `{}`); string(a.Records) != `[{"uri":"/api/v3/items?page=2"}]` {
		t.Errorf("%s", a.Raw)
	}
}

// 401 and 403 without a credential are not blamed on one.
func TestHTTPBinAuth(t *testing.T) {
	t.Parallel()
	w, base := httpbinWorld(t)
	for path, code := range map[string]string{"/basic-auth/u/p": "AUTH_REQUIRED", "/bearer": "AUTH_REQUIRED", "/hidden-basic-auth/u/p": "UPSTREAM_NOT_FOUND", "/digest-auth/auth/u/p": "AUTH_REQUIRED"} {
		if a := w.once("a", get("a", base+path), `{}`); a.Code != code || a.Retryable {
			t.Errorf("%s: %s", path, a.Raw)
		}
	}
	// No cookie is kept from one call, or one hop, to the next.
	if a := w.once("c", get("c", base+"/cookies/set?a=b"), `{}`); !a.OK || strings.Contains(string(a.Records), "b") && strings.Contains(string(a.Records), `"a"`) {
		t.Errorf("cookies: %s", a.Raw)
	}
}
