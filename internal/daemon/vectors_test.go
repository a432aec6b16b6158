package daemon_test

import (
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
)

// An internet answers names as a test says, routes one public address to a real
// TLS server for example.com, and counts every dial.
type internet struct {
	lookup func(host string) []netip.Addr
	server *httptest.Server

	mu    sync.Mutex
	asked []string
	dials []string
}

var public = netip.MustParseAddr("93.184.215.14")

func newInternet(t *testing.T, h http.Handler) *internet {
	t.Helper()
	n := &internet{lookup: func(string) []netip.Addr { return []netip.Addr{public} }}
	n.server = httptest.NewTLSServer(h)
	t.Cleanup(n.server.Close)
	return n
}

func (n *internet) seams() outbound.Options {
	roots := n.server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	return outbound.Options{
		Lookup: func(_ context.Context, host string) ([]netip.Addr, error) {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.asked = append(n.asked, host)
			if as := n.lookup(host); len(as) > 0 {
				return as, nil
			}
			return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
		},
		DialAddr: func(ctx context.Context, a netip.AddrPort) (net.Conn, error) {
			n.mu.Lock()
			n.dials = append(n.dials, a.String())
			n.mu.Unlock()
			if a.Addr() != public {
				return nil, errors.New("nothing is there")
			}
			return (&net.Dialer{}).DialContext(ctx, "tcp", n.server.Listener.Addr().String())
		},
		TLS: &tls.Config{RootCAs: roots},
	}
}

// dialled returns the dials since the last look.
func (n *internet) dialled() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	d := n.dials
	n.dials, n.asked = nil, nil
	return d
}

// entrances are the ways by which a URL from outside can reach the network.
// Each returns the code that refused it, and the whole answer.
var entrances = map[string]func(w *world, url string) (string, *answer){
	"save and run": func(w *world, url string) (string, *answer) {
		if a := w.change("create", get("v", url)); !a.OK {
			return a.Code, a
		}
		a := w.run("v", `{}`)
		w.post("/wrap/wrappers", `{"action":"delete","id":"v"}`)
		return a.Code, a
	},
	"live test": func(w *world, url string) (string, *answer) {
		a := w.post("/wrap/test", `{"dryRun":false,"wrapper":`+get("v", url)+`}`)
		return a.Code, a
	},
	"derive": func(w *world, url string) (string, *answer) {
		a := w.post("/wrap/derive", fmt.Sprintf(`{"url":%q}`, url))
		return a.Code, a
	},
}

// D01 to D06: an address that is not public, in any spelling, by any entrance,
// is refused before a connection is tried.
func TestForbiddenAddresses(t *testing.T) {
	t.Parallel()
	tr := newTrap(t)
	port := fmt.Sprintf(":%d", tr.port())
	n := newInternet(t, http.NotFoundHandler())
	n.lookup = func(host string) []netip.Addr {
		switch host {
		case "localhost", "intranet.example":
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}
		case "metadata.example":
			return []netip.Addr{netip.MustParseAddr("169.254.169.254")}
		}
		return nil
	}
	seams := n.seams()
	strict := newWorld(t, nil, seams)
	open := newWorld(t, private, seams)

	closed := []string{
		"https://127.0.0.1" + port + "/", "https://10.1.2.3/", "https://192.168.1.1/", "https://172.16.0.1/", "https://100.64.0.1/",
		"https://[::1]" + port + "/", "https://[fc00::1]/", "https://localhost" + port + "/", "https://localhost." + port + "/", "https://intranet.example" + port + "/",
		"https://[::ffff:10.0.0.1]/", "https://[::ffff:7f00:1]" + port + "/", // D02
	}
	never := []string{
		"https://169.254.169.254/latest/meta-data/", "https://[64:ff9b::a9fe:a9fe]/", "https://metadata.example/", // D01, D03
		"https://[2002:7f00:1::]/", "https://[2001:0:1::1]/", // D04
		"https://0.0.0.0" + port + "/", "https://[::]" + port + "/", "https://[fe80::1]/", "https://[fec0::1]/", "https://[ff02::1]/",
		"https://224.0.0.1/", "https://255.255.255.255/", "https://168.63.129.16/", "https://192.0.0.192/", "https://[fd00:ec2::254]/", "https://[::127.0.0.1]/",
	}
	badHost := []string{
		"https://2130706433" + port + "/", "https://0x7f.1" + port + "/", "https://0177.0.0.1" + port + "/", "https://127.1" + port + "/", // D05
		"https://0x7f000001" + port + "/", "https://017700000001" + port + "/", "https://[fe80::1%25lo]/", "https://[::1%25lo]" + port + "/",
	}
	circled := "https://①②⑦.⓪.⓪.①" + port + "/" // D06

	check := func(w *world, which, url string, codes ...string) {
		t.Helper()
		for name, enter := range entrances {
			code, a := enter(w, url)
			ok := slices.Contains(codes, code) || code == "WRAPPER_INVALID" && a.Field == "wrapper.request.url"
			if !ok || a.OK || a.Status != nil || a.Retryable {
				t.Errorf("%s %s by %s: want %v, got %s", which, url, name, codes, a.Raw)
			}
		}
		if d := n.dialled(); len(d) > 0 {
			t.Errorf("%s %s: dialled %v", which, url, d)
		}
	}
	for _, u := range closed {
		check(strict, "strict", u, "POLICY_PRIVATE_ADDRESS")
	}
	for _, u := range never {
		check(strict, "strict", u, "POLICY_PRIVATE_ADDRESS")
		check(open, "open", u, "POLICY_PRIVATE_ADDRESS")
	}
	for _, u := range badHost {
		check(strict, "strict", u, "POLICY_URL")
		check(open, "open", u, "POLICY_URL")
	}
	check(strict, "strict", circled, "POLICY_URL", "POLICY_PRIVATE_ADDRESS")
	tr.silent(t, "forbidden addresses")
}

// The daemon never calls itself, whatever is allowed.
func TestDaemonDoesNotCallItself(t *testing.T) {
	t.Parallel()
	w := newWorld(t, private, outbound.Options{})
	for _, host := range []string{w.d.Addr(), strings.Replace(w.d.Addr(), "127.0.0.1", "localhost", 1), strings.Replace(w.d.Addr(), "127.0.0.1", "[::ffff:127.0.0.1]", 1)} {
		if a := w.once("me", get("me", "http://"+host+"/hello?nonce="+strings.Repeat("0", 64)), `{}`); a.OK || a.Code != "POLICY_PRIVATE_ADDRESS" {
			t.Errorf("%s: %s", host, a.Raw)
		}
	}
}

// D07, D14, D24, D25, D39 and more: a document that must not be saved, with the
// field that says why. Nothing is fetched, and the process lives.
func TestRefusedDocuments(t *testing.T) {
	t.Parallel()
	tr := newTrap(t)
	w := newWorld(t, private, outbound.Options{})
	request := func(r string) string { return `{"schemaVersion":1,"id":"v","name":"V","request":{` + r + `}}` }
	url := func(u string) string { return request(`"method":"GET","url":"` + u + `"`) }
	schema := func(s string) string {
		return `{"schemaVersion":1,"id":"v","name":"V","request":{"method":"GET","url":"https://api.example.com/"},"inputSchema":` + s + `}`
	}
	trapped := fmt.Sprintf("http://127.0.0.1:%d/x", tr.port())
	for _, c := range []struct{ name, doc, field, code, says string }{
		{"D07 user information", url("https://user:pw@api.example.com/"), "request.url", "URL_USERINFO", ""},
		{"D14 ftp", url("ftp://api.example.com/x"), "request.url", "URL_SCHEME", "https://"},
		{"D14 file", url("file:///etc/passwd"), "request.url", "URL_SCHEME", "https://"},
		{"D14 data", url("data:text/plain,x"), "request.url", "URL_SCHEME", "https://"},
		{"D14 gopher", url("gopher://api.example.com/"), "request.url", "URL_SCHEME", "https://"},
		{"D24 remote $ref", schema(`{"$ref":"` + trapped + `"}`), "inputSchema.$ref", "SCHEMA_KEYWORD", "$ref"},
		{"D24 nested remote $ref", schema(`{"type":"object","properties":{"a":{"$ref":"` + trapped + `"}}}`), "inputSchema.properties.a.$ref", "SCHEMA_KEYWORD", "$ref"},
		{"D24 $ref to a file", schema(`{"type":"object","properties":{"a":{"$ref":"file:///etc/passwd"}}}`), "inputSchema.properties.a.$ref", "SCHEMA_KEYWORD", "$ref"},
		{"D24 $id and a relative $ref", schema(`{"$id":"` + trapped + `","type":"object","properties":{"a":{"$ref":"y"}}}`), "inputSchema.properties.a.$ref", "SCHEMA_KEYWORD", "$ref"},
		{"D25 $ref to itself", schema(`{"$ref":"#"}`), "inputSchema.$ref", "SCHEMA_KEYWORD", "$ref"},
		{"D39 Authorization", request(`"method":"GET","url":"https://api.example.com/","headers":{"Authorization":"Bearer x"}`), "request.headers.Authorization", "CREDENTIAL_HEADER", "request.auth"},
		{"D39 X-Api-Key", request(`"method":"GET","url":"https://api.example.com/","headers":{"X-Api-Key":"x"}`), "request.headers.X-Api-Key", "CREDENTIAL_HEADER", ""},
		{"D39 Cookie", request(`"method":"GET","url":"https://api.example.com/","headers":{"cookie":"a=b"}`), "request.headers.cookie", "CREDENTIAL_HEADER", ""},
		{"D39 query in the URL", url("https://api.example.com/?api_key=x"), "request.url", "CREDENTIAL_QUERY", "api_key"},
		{"D39 query", request(`"method":"GET","url":"https://api.example.com/","query":{"access_token":"x"}`), "request.query.access_token", "CREDENTIAL_QUERY", ""},
		{"a Host header", request(`"method":"GET","url":"https://api.example.com/","headers":{"Host":"other.example.com"}`), "request.headers.Host", "HEADER_INVALID", ""},
		{"the host from an argument", url("https://{{host}}/"), "request.url", "PLACEHOLDER_IN_HOST", ""},
	} {
		a := w.change("create", c.doc)
		if a.HTTP != 422 || a.Code != "WRAPPER_INVALID" || len(a.Details) == 0 {
			t.Errorf("%s: %s", c.name, a.Raw)
			continue
		}
		found := false
		for _, d := range a.Details {
			if d.Code == c.code && strings.Contains(d.Message+d.Hint+d.Field, c.says) && strings.Contains(d.Field, c.field) {
				found = true
			}
		}
		if !found {
			t.Errorf("%s: want %s at %s with %q, got %+v", c.name, c.code, c.field, c.says, a.Details)
		}
		if strings.Contains(a.Raw, "root:") || strings.Contains(a.Raw, "pw@") || strings.Contains(a.Raw, "Bearer x") {
			t.Errorf("%s: the answer repeats what it must not: %s", c.name, a.Raw)
		}
	}
	tr.silent(t, "refused documents")
	if a := w.post("/wrap/wrappers", `{"action":"get","id":"v"}`); a.Code != "WRAPPER_NOT_FOUND" {
		t.Errorf("a refused document was saved: %s", a.Raw)
	}
}

// D08, D09: a name is judged by all its addresses, and the one that was judged
// is the one that is dialled.
func TestNamesThatLie(t *testing.T) {
	t.Parallel()
	n := newInternet(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"where":"public"}`) }))
	calls := 0
	n.lookup = func(host string) []netip.Addr {
		loop := netip.MustParseAddr("127.0.0.1")
		calls++
		switch {
		case host == "mixed.example":
			return []netip.Addr{public, netip.MustParseAddr("10.0.0.1")}
		case host == "mixed6.example":
			return []netip.Addr{public, netip.MustParseAddr("::1")}
		case calls%2 == 0:
			return []netip.Addr{loop}
		}
		return []netip.Addr{public}
	}
	w := newWorld(t, nil, n.seams())
	for _, host := range []string{"mixed.example", "mixed6.example"} {
		if a := w.once("m", get("m", "https://"+host+"/"), `{}`); a.Code != "POLICY_PRIVATE_ADDRESS" {
			t.Errorf("%s: %s", host, a.Raw)
		}
		if d := n.dialled(); len(d) != 0 {
			t.Errorf("%s: dialled %v", host, d)
		}
	}
	calls = 0
	w.create(get("flip", "https://example.com/"))
	n.server.Config.SetKeepAlivesEnabled(false) // each call resolves anew
	right, refused := 0, 0
	for range 50 {
		switch a := w.run("flip", `{}`); {
		case a.OK && string(a.Records) == `[{"where":"public"}]`:
			right++
		case a.Code == "POLICY_PRIVATE_ADDRESS":
			refused++
		default:
			t.Fatalf("%s", a.Raw)
		}
	}
	for _, d := range n.dialled() {
		if d != public.String()+":443" {
			t.Errorf("dialled %s", d)
		}
	}
	if right != 25 || refused != 25 {
		t.Errorf("%d calls reached the public address and %d were refused, want 25 and 25", right, refused)
	}
}

// D11: https never becomes http, on the same host either, and also not where
// plain http is allowed; the second request is not made.
func TestNoDowngrade(t *testing.T) {
	t.Parallel()
	n := newInternet(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		http.Redirect(rw, r, "http://example.com/plain", http.StatusFound)
	}))
	for name, settings := range map[string]map[string]string{"strict": nil, "http allowed": {"HB_WRAP_ALLOW_HTTP": "1"}, "private allowed": private} {
		w := newWorld(t, settings, n.seams())
		n.dialled()
		a := w.once("d", `{"schemaVersion":1,"id":"d","name":"D","request":{"method":"GET","url":"https://example.com/","headers":{"X-Mine":"1"}}}`, `{}`)
		if a.Code != "POLICY_REDIRECT" || !strings.Contains(a.Message, "http") {
			t.Errorf("%s: %s", name, a.Raw)
		}
		if d := n.dialled(); len(d) != 1 || d[0] != public.String()+":443" {
			t.Errorf("%s: dialled %v, want the first request only", name, d)
		}
	}
}

// D12 without a credential: a wrapper's own headers stay with their origin.
func TestHeadersStayWithTheirOrigin(t *testing.T) {
	t.Parallel()
	var seen []http.Header
	var mu sync.Mutex
	n := newInternet(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		mu.Lock()
		seen = append(seen, r.Header.Clone())
		mu.Unlock()
		switch {
		case r.Host == "example.com" && r.URL.Path == "/":
			http.Redirect(rw, r, "https://www.example.com/there?x=1", http.StatusFound)
		case r.Host == "www.example.com":
			http.Redirect(rw, r, "https://example.com/back", http.StatusFound)
		default:
			_, _ = io.WriteString(rw, `{"ok":1}`)
		}
	}))
	// The test server's certificate is for example.com and its sub-domains.
	w := newWorld(t, nil, n.seams())
	a := w.once("d", `{"schemaVersion":1,"id":"d","name":"D","request":{"method":"GET","url":"https://example.com/","headers":{"X-Tenant":"acme","Accept":"application/json"}}}`, `{}`)
	if !a.OK {
		t.Fatalf("%s", a.Raw)
	}
	var got []string
	for _, h := range seen {
		got = append(got, fmt.Sprintf("tenant=%q accept=%q referer=%q", h.Get("X-Tenant"), h.Get("Accept"), h.Get("Referer")))
	}
	want := []string{
		`tenant="acme" accept="application/json" referer=""`,
		`tenant="" accept="application/json" referer=""`,
		`tenant="" accept="application/json" referer=""`, // never attached again
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// D15 to D17: who may not call causes nothing, on any route.
func TestDoorOfARealDaemon(t *testing.T) {
	t.Parallel()
	tr := newTrap(t)
	w := newWorld(t, private, outbound.Options{})
	w.create(get("t", fmt.Sprintf("http://127.0.0.1:%d/", tr.port())))
	old := w.tok
	before := w.cfg.TokenPath
	w.stop()
	w.start()
	if w.tok == old || w.cfg.TokenPath != before {
		t.Fatal("the token was not renewed at the second start")
	}
	port := w.d.Addr()[strings.LastIndexByte(w.d.Addr(), ':'):]
	bearer := "Bearer " + w.tok
	for _, c := range []struct {
		name   string
		host   string
		header http.Header
		status int
		code   string
	}{
		{"D15 another host", "evil.com" + port, http.Header{"Authorization": {bearer}}, 403, "FORBIDDEN_ORIGIN"},
		{"D15 and no token", "evil.com" + port, nil, 403, "FORBIDDEN_ORIGIN"},
		{"a name that only looks local", "127.0.0.1.evil.com" + port, http.Header{"Authorization": {bearer}}, 403, "FORBIDDEN_ORIGIN"},
		{"another port", "127.0.0.1:1", http.Header{"Authorization": {bearer}}, 403, "FORBIDDEN_ORIGIN"},
		{"D16 Origin", "", http.Header{"Authorization": {bearer}, "Origin": {"http://localhost:3000"}}, 403, "FORBIDDEN_ORIGIN"},
		{"Origin null", "", http.Header{"Authorization": {bearer}, "Origin": {"null"}}, 403, "FORBIDDEN_ORIGIN"},
		{"Referer", "", http.Header{"Authorization": {bearer}, "Referer": {"http://127.0.0.1/"}}, 403, "FORBIDDEN_ORIGIN"},
		{"Sec-Fetch-Site", "", http.Header{"Authorization": {bearer}, "Sec-Fetch-Site": {"same-origin"}}, 403, "FORBIDDEN_ORIGIN"},
		{"D17 no token", "", nil, 401, "UNAUTHORIZED"},
		{"D17 a wrong token", "", http.Header{"Authorization": {"Bearer " + strings.Repeat("0", 64)}}, 401, "UNAUTHORIZED"},
		{"D17 the token of the previous start", "", http.Header{"Authorization": {"Bearer " + old}}, 401, "UNAUTHORIZED"},
		{"an empty token", "", http.Header{"Authorization": {"Bearer "}}, 401, "UNAUTHORIZED"},
		{"Basic", "", http.Header{"Authorization": {"Basic " + w.tok}}, 401, "UNAUTHORIZED"},
		{"two that differ", "", http.Header{"Authorization": {bearer}, "X-Kuang-Wrap-Token": {old}}, 401, "UNAUTHORIZED"},
	} {
		for path, body := range map[string]string{
			"/wrap/run": `{"id":"t","args":{}}`, "/wrap/test": `{"id":"t","args":{},"dryRun":false}`, "/wrap/derive": fmt.Sprintf(`{"url":"http://127.0.0.1:%d/"}`, tr.port()),
			"/wrap/wrappers": `{"action":"delete","id":"t"}`, "/wrap/nonsense": `{`,
		} {
			req, err := http.NewRequest("POST", "http://"+w.d.Addr()+path, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header = c.header.Clone()
			if req.Header == nil {
				req.Header = http.Header{}
			}
			req.Header.Set("Content-Type", "application/json")
			if c.host != "" {
				req.Host = c.host
			}
			a, err := w.do(req)
			if err != nil || a.HTTP != c.status || a.Code != c.code {
				t.Errorf("%s on %s: %v %+v, want %d %s", c.name, path, err, a, c.status, c.code)
			}
		}
	}
	tr.silent(t, "callers without the right")
	if a := w.post("/wrap/wrappers", `{"action":"get","id":"t"}`); !a.OK {
		t.Errorf("the wrapper is gone: %s", a.Raw)
	}
}

// D26 to D28: arguments that are traps for a validator.
func TestTrickyArguments(t *testing.T) {
	t.Parallel()
	tr := newTrap(t)
	w := newWorld(t, private, outbound.Options{})
	doc := func(property string) string {
		return fmt.Sprintf(`{"schemaVersion":1,"id":"a","name":"A","request":{"method":"GET","url":"http://127.0.0.1:%d/","query":{"n":"{{n}}"}},"inputSchema":{"type":"object","properties":{"n":%s},"additionalProperties":false}}`, tr.port(), property)
	}
	for _, c := range []struct{ name, property, args, field, code string }{
		{"D26", `{"type":"number","minimum":1}`, `{"n":4E9999999}`, "args.n", "RANGE"},
		{"D26 maximum", `{"type":"number","maximum":1}`, `{"n":4E9999999}`, "args.n", "RANGE"},
		{"D26 negative exponent", `{"type":"number","minimum":1}`, `{"n":1e-9999999}`, "args.n", "RANGE"},
		{"D26 integer", `{"type":"integer"}`, `{"n":4E9999999}`, "args.n", "RANGE"},
		{"D27", `{"type":"integer","enum":[9007199254740993]}`, `{"n":9007199254740992}`, "args.n", "ENUM"},
		{"D28", `{"type":"integer"}`, `{"n":1,"n":2}`, "args.n", "DUPLICATE"},
		{"D28 unicode spelling", `{"type":"integer"}`, `{"n":1,"\u006e":2}`, "args.n", "DUPLICATE"},
		{"a number in a string", `{"type":"integer"}`, `{"n":"1"}`, "args.n", "TYPE"},
		{"an unknown argument", `{"type":"integer"}`, `{"m":1}`, "args.m", "UNKNOWN_FIELD"},
		{"a fraction", `{"type":"integer"}`, `{"n":1.5}`, "args.n", "TYPE"},
		{"one below", `{"type":"integer","minimum":9007199254740993}`, `{"n":9007199254740992}`, "args.n", "RANGE"},
	} {
		a := w.once("a", doc(c.property), c.args)
		if a.HTTP != 422 || a.Code != "ARGS_INVALID" || a.Field != c.field || len(a.Details) != 1 || string(a.Details[0].Code) != c.code {
			t.Errorf("%s: want %s at %s, got %s", c.name, c.code, c.field, a.Raw)
		}
	}
	tr.silent(t, "tricky arguments")
}

// D30: a small gzip body that grows without end is left at 5 MB.
func TestDecompressionBomb(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "application/json")
		rw.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(rw)
		_, _ = io.WriteString(z, `["`)
		block := make([]byte, 1<<20)
		for i := range block {
			block[i] = 'a'
		}
		for range 200 { // MB
			if _, err := z.Write(block); err != nil {
				return // the caller has had enough, as it should
			}
		}
		_ = z.Close()
	}))
	t.Cleanup(srv.Close)
	w := newWorld(t, private, outbound.Options{})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	a := w.once("z", get("z", srv.URL), `{}`)
	runtime.ReadMemStats(&after)
	if a.Code != "RESPONSE_TOO_LARGE" || a.status() != 200 || a.Retryable || !strings.Contains(a.Message, "5") {
		t.Errorf("%s", a.Raw)
	}
	if grown := int64(after.Sys) - int64(before.Sys); grown > 64<<20 {
		t.Errorf("memory grew by %d MiB", grown>>20)
	}
}

// D44: each odd answer has a short stated outcome.
func TestOddAnswers(t *testing.T) {
	t.Parallel()
	page := "<!doctype html><html><body>" + strings.Repeat("<p>stack trace secret-canary</p>", 1300) + "</body></html>"
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		send := func(status int, ct, body string) {
			if ct != "" {
				rw.Header().Set("Content-Type", ct)
			} else {
				rw.Header()["Content-Type"] = nil
			}
			rw.WriteHeader(status)
			_, _ = io.WriteString(rw, body)
		}
		switch r.URL.Path {
		case "/204":
			send(204, "", "")
		case "/205":
			send(205, "application/json", "")
		case "/empty":
			send(200, "application/json", "")
		case "/utf8":
			send(200, "application/json", "{\"a\":\"\xff\xfe\"}")
		case "/latin1":
			send(200, "application/json; charset=ISO-8859-1", "{\"id\":\"caf\xe9\"}")
		case "/bom":
			send(200, "application/json", "\xef\xbb\xbf{\"id\":7}")
		case "/html":
			send(502, "text/html", page)
		case "/html200":
			send(200, "text/html", page)
		case "/octets":
			send(200, "application/octet-stream", "\x00\x01\x02\x03")
		case "/octets-json":
			send(200, "application/octet-stream", `{"id":8}`)
		case "/notype":
			send(203, "", `{"id":9}`)
		case "/api+json":
			send(226, "application/vnd.api+json", `{"id":10}`)
		case "/textjson":
			send(207, "text/json", `{"id":11}`)
		case "/problem":
			send(422, "application/problem+json", `{"type":"about:blank","title":"Not valid","detail":"colour is not a colour"}`)
		case "/cut":
			rw.Header().Set("Content-Length", "100")
			send(200, "application/json", `{"id":`)
		}
	}))
	t.Cleanup(srv.Close)
	w := newWorld(t, private, outbound.Options{})
	w.create(`{"schemaVersion":1,"id":"o","name":"O","request":{"method":"GET","url":"` + srv.URL + `/{{p}}"},"inputSchema":{"type":"object","properties":{"p":{"type":"string"}},"required":["p"]},
	 "response":{"schemaVersion":1,"mode":"document","fields":{"ID":"id"},"record":{"id":"id"}}}`)
	for _, c := range []struct {
		path, code string
		status     int
		text       string // part of the Markdown, or of the message
	}{
		{"204", "", 204, "No content"},
		{"205", "", 205, "No content"},
		{"empty", "RESPONSE_EMPTY", 200, "without a body"},
		{"utf8", "RESPONSE_ENCODING", 200, "UTF-8"},
		{"latin1", "", 200, "**ID:** café"},
		{"bom", "", 200, "**ID:** 7"},
		{"html", "UPSTREAM_UNAVAILABLE", 502, "HTML page (" + fmt.Sprint(len(page)) + " bytes)"},
		{"html200", "RESPONSE_NOT_JSON", 200, "text/html"},
		{"octets", "RESPONSE_NOT_JSON", 200, "application/octet-stream"},
		{"octets-json", "", 200, "**ID:** 8"},
		{"notype", "", 203, "**ID:** 9"},
		{"api+json", "", 226, "**ID:** 10"},
		{"textjson", "", 207, "**ID:** 11"},
		{"problem", "UPSTREAM_UNPROCESSABLE", 422, "colour is not a colour"},
		{"cut", "RESPONSE_INCOMPLETE", 200, ""},
	} {
		a := w.run("o", `{"p":"`+c.path+`"}`)
		if a.HTTP != 200 || a.OK != (c.code == "") || a.Code != c.code || a.status() != c.status || !strings.Contains(a.Markdown+a.Message, c.text) {
			t.Errorf("%s: %s", c.path, a.Raw)
		}
		if strings.Contains(a.Raw, "secret-canary") || len(a.Raw) > 2000 {
			t.Errorf("%s: the page went through: %.300s", c.path, a.Raw)
		}
	}
}

// D38 over HTTP: there is no way to write a credential.
func TestNoRouteWritesACredential(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, outbound.Options{})
	for _, path := range []string{"/wrap/secrets", "/wrap/secrets/", "/wrap/secret", "/wrap/secrets/orders-key", "/wrap/secret/set", "/wrap/Secrets", "/wrap//secrets", "/wrap/secrets%2F", "/secrets", "/wrap/credentials", "/wrap/settings", "/wrap/allow", "/wrap/approvals", "/control/secrets", "/wrap/../wrap/secrets"} {
		for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"} {
			req, err := http.NewRequest(method, "http://"+w.d.Addr()+path, strings.NewReader(`{"name":"orders-key","value":"v","allowedHosts":["api.example.com"]}`))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer "+w.tok)
			req.Header.Set("Content-Type", "application/json")
			a, err := w.do(req)
			if err != nil || a.HTTP != 404 && a.HTTP != 405 || a.OK {
				t.Errorf("%s %s: %v %+v", method, path, err, a)
			}
		}
	}
	for _, body := range []string{
		`{"action":"create","secret":{"name":"k","value":"v"},"wrapper":` + get("x", "https://api.example.com/") + `}`,
		`{"action":"secret","id":"k"}`,
	} {
		if a := w.post("/wrap/wrappers", body); a.HTTP != 400 || a.Code != "BAD_REQUEST" {
			t.Errorf("%s: %s", body, a.Raw)
		}
	}
	if a := w.post("/wrap/run", `{"id":"x","secret":"v"}`); a.HTTP != 400 || a.Field != "body.secret" {
		t.Errorf("%s", a.Raw)
	}
}
