package bridge_test

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/bridge"
	"github.com/hyperbolic-gateway/hb-rest/internal/soak"
	"github.com/hyperbolic-gateway/hb-rest/internal/token"
)

// D15, D16 and promise 6: whatever a web page can make a browser send is
// refused before the token is looked at and before anything is done.
func TestBrowserRequestsAreForbidden(t *testing.T) {
	f := &fake{}
	s := serve(t, f)
	good := "Host: " + s.addr + "\r\n"
	auth := "Authorization: Bearer " + testToken + "\r\n"

	hosts := []string{
		"", // HTTP/1.0 below; in 1.1 net/http itself refuses
		"evil.com:" + s.port, "evil.com", "127.0.0.1", "localhost", "[::1]",
		"127.0.0.1:1", "localhost:1", "[::1]:1", "127.0.0.1:0" + s.port, "127.0.0.1:",
		"127.0.0.2:" + s.port, "0.0.0.0:" + s.port, "127.1:" + s.port, "2130706433:" + s.port, "0x7f.1:" + s.port,
		"localhost.:" + s.port, "localhost.evil.com:" + s.port, "127.0.0.1.evil.com:" + s.port, "127.0.0.1.nip.io:" + s.port,
		"[::]:" + s.port, "[0:0:0:0:0:0:0:1]:" + s.port, "[::ffff:127.0.0.1]:" + s.port, "::1:" + s.port,
		"user@127.0.0.1:" + s.port, "LOCALHOST:" + s.port, "app.localhost:" + s.port, "169.254.169.254:" + s.port,
	}
	headers := []string{
		"Origin: http://localhost:3000", "Origin: http://127.0.0.1:" + s.port, "Origin: http://" + s.addr, "Origin: null", "Origin:",
		"Origin: https://evil.com", "origin: chrome-extension://abc", "ORIGIN: file://", "Origin: vscode-webview://x",
		"Referer: http://evil.com/", "Referer: http://" + s.addr + "/", "Referer:", "referer: about:blank",
		"Sec-Fetch-Site: none", "Sec-Fetch-Site: same-origin", "Sec-Fetch-Site: same-site", "Sec-Fetch-Site: cross-site", "sec-fetch-site:",
		"Origin: http://a\r\nReferer: http://b", "Sec-Fetch-Site: none\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document",
		"Origin: http://" + s.addr + "\r\nOrigin: http://evil.com",
	}
	var requests []string
	for _, h := range hosts {
		if h == "" {
			requests = append(requests, "GET /wrap/status HTTP/1.0\r\n"+auth+"\r\n", "GET /hello?nonce="+strings.Repeat("ab", 32)+" HTTP/1.0\r\n\r\n")
			continue
		}
		requests = append(requests, "GET /wrap/status HTTP/1.1\r\nHost: "+h+"\r\n"+auth+"\r\n")
	}
	for _, h := range headers {
		for _, line := range []string{"GET /wrap/status", "POST /wrap/run", "OPTIONS /wrap/run", "GET /hello?nonce=" + strings.Repeat("ab", 32), "DELETE /nowhere"} {
			requests = append(requests, line+" HTTP/1.1\r\n"+good+auth+h+"\r\n\r\n")
		}
	}
	requests = append(requests,
		"GET http://"+s.addr+"/wrap/status HTTP/1.1\r\n"+good+auth+"\r\n",
		"GET http://evil.com/wrap/status HTTP/1.1\r\n"+good+auth+"\r\n",
		"GET http://127.0.0.1:"+s.port+"/hello?nonce="+strings.Repeat("ab", 32)+" HTTP/1.1\r\n"+good+"\r\n",
		"CONNECT "+s.addr+" HTTP/1.1\r\n"+good+auth+"\r\n",
		"CONNECT example.com:443 HTTP/1.1\r\n"+good+auth+"\r\n",
		"CONNECT /wrap/status HTTP/1.1\r\n"+good+auth+"\r\n",
	)
	if len(requests) < 40 {
		t.Fatalf("only %d combinations", len(requests))
	}
	forbidden := 0
	for _, q := range requests {
		resp, body := s.raw(t, q)
		if net400(q, resp, s) {
			continue
		}
		if resp.StatusCode != 403 {
			t.Errorf("%q: %s", q, resp.Status)
			continue
		}
		forbidden++
		if e := decodeError(t, body); e.Code != "FORBIDDEN_ORIGIN" {
			t.Errorf("%q: %s", q, e.Code)
		}
		for name := range resp.Header {
			if strings.HasPrefix(name, "Access-Control-") {
				t.Errorf("%q: a CORS answer: %s", q, name)
			}
		}
	}
	calls, revision := f.asked()
	if len(calls) != 0 || revision != 0 {
		t.Errorf("the backend was asked: %v, revision %d times", calls, revision)
	}
	if forbidden < 40 || len(requests)-forbidden > 5 {
		t.Errorf("%d of %d were answered 403", forbidden, len(requests))
	}
	soak.Measured(t, "%d combinations of headers: %d answered 403, %d refused by net/http as malformed, %d reached the backend", len(requests), forbidden, len(requests)-forbidden, len(calls)+revision)
}

// net400 says that net/http refused the request as malformed before our code
// saw it, which is as good.
func net400(request string, resp *http.Response, _ *served) bool {
	return resp.StatusCode == 400 && resp.Header.Get("Content-Type") != "application/json" && strings.Contains(request, "Host: ")
}

// A Host header that is ours is let through, in each of its three spellings.
func TestOwnHosts(t *testing.T) {
	for _, addr := range []string{"127.0.0.1:0", "[::1]:0", "127.0.0.2:0"} {
		t.Run(addr, func(t *testing.T) {
			s := serveOn(t, &fake{}, addr)
			for _, h := range []string{"127.0.0.1:" + s.port, "localhost:" + s.port, "[::1]:" + s.port, s.addr} {
				resp, body := s.raw(t, "GET /wrap/status HTTP/1.1\r\nHost: "+h+"\r\nAuthorization: Bearer "+testToken+"\r\n\r\n")
				if resp.StatusCode != 200 {
					t.Errorf("Host %s: %s %s", h, resp.Status, body)
				}
			}
		})
	}
}

// The door comes before everything else, in its order: a request with every
// fault at once is told of the first only.
func TestOrderOfChecks(t *testing.T) {
	f := &fake{}
	s := serve(t, f)
	host, origin, auth, ct := "Host: evil.com\r\n", "Origin: http://evil.com\r\n", "Authorization: Bearer wrong\r\n", "Content-Type: text/plain\r\n"
	length := fmt.Sprintf("Content-Length: %d\r\n", api.MaxBody+1)
	steps := []struct {
		fix  func()
		want string
	}{
		{func() {}, "FORBIDDEN_ORIGIN"},
		{func() { host = "Host: " + s.addr + "\r\n" }, "FORBIDDEN_ORIGIN"},
		{func() { origin = "" }, "UNAUTHORIZED"},
		{func() { auth = "Authorization: Bearer " + testToken + "\r\n" }, "UNSUPPORTED_MEDIA_TYPE"},
		{func() { ct = "Content-Type: application/json\r\n" }, "BODY_TOO_LARGE"},
		{func() { length = "Content-Length: 1\r\n" }, "BAD_REQUEST"}, // the query
	}
	for i, step := range steps {
		step.fix()
		_, body := s.raw(t, "POST /wrap/run?x=1 HTTP/1.1\r\n"+host+origin+auth+ct+length+"\r\n{")
		if e := decodeError(t, body); e.Code != step.want {
			t.Errorf("step %d: %s, want %s", i, e.Code, step.want)
		}
	}
	for _, path := range []string{"/", "/wrap", "/nowhere", "/hello/", "/%68ello", "//hello", "/wrap/../hello", "/hello%2f"} {
		_, body := s.raw(t, "GET "+path+" HTTP/1.1\r\nHost: "+s.addr+"\r\n\r\n")
		if e := decodeError(t, body); e.Code != "UNAUTHORIZED" {
			t.Errorf("%s without a token: %s; only /hello is open", path, e.Code)
		}
		_, body = s.call(t, "GET", path, "")
		if e := decodeError(t, body); e.Code != "ROUTE_NOT_FOUND" {
			t.Errorf("%s: %s", path, e.Code)
		}
	}
	if calls, _ := f.asked(); len(calls) != 0 {
		t.Errorf("the backend was asked: %v", calls)
	}
}

func TestTokenHeaders(t *testing.T) {
	f := &fake{}
	s := serve(t, f)
	right, wrong := testToken, strings.Repeat("f", 64)
	tests := []struct {
		headers string
		want    int
	}{
		{"Authorization: Bearer " + right, 200},
		{"authorization: bearer " + right, 200},
		{"Authorization: BEARER   " + right, 200},
		{"X-Kuang-Wrap-Token: " + right, 200},
		{"x-kuang-wrap-token:   " + right + "  ", 200},
		{"Authorization: Bearer " + right + "\r\nX-Kuang-Wrap-Token: " + right, 200},
		{"Authorization: Bearer " + right + "\r\nAuthorization: Bearer " + right, 200},
		{"", 401},
		{"Authorization: Bearer " + right + "\r\nX-Kuang-Wrap-Token: " + wrong, 401},
		{"Authorization: Bearer " + wrong + "\r\nX-Kuang-Wrap-Token: " + right, 401},
		{"Authorization: Bearer " + right + "\r\nAuthorization: Bearer " + wrong, 401},
		{"X-Kuang-Wrap-Token: " + right + "\r\nX-Kuang-Wrap-Token: " + wrong, 401},
		{"Authorization: Basic " + right, 401},
		{"Authorization: Basic dTpw\r\nX-Kuang-Wrap-Token: " + right, 401},
		{"Authorization: " + right, 401},
		{"Authorization: Bearer", 401},
		{"Authorization:", 401},
		{"X-Kuang-Wrap-Token:", 401},
		{"Authorization: Bearer " + right + "\r\nX-Kuang-Wrap-Token:", 401},
		{"Authorization: Bearer " + strings.ToUpper(right), 401},
		{"Authorization: Bearer " + right + "0", 401},
		{"Authorization: Bearer " + right[1:], 401},
		{"Authorization: Bearer " + right + " " + right, 401},
		{"Authorization: Token " + right, 401},
		{"Cookie: token=" + right, 401},
	}
	for _, tt := range tests {
		h := tt.headers
		if h != "" {
			h += "\r\n"
		}
		resp, _ := s.raw(t, "GET /wrap/status HTTP/1.1\r\nHost: "+s.addr+"\r\n"+h+"\r\n")
		if resp.StatusCode != tt.want {
			t.Errorf("%q: %d, want %d", tt.headers, resp.StatusCode, tt.want)
		}
	}
	if calls, _ := f.asked(); len(calls) != 7 {
		t.Errorf("%d calls, want one for each of the 7 right ones", len(calls))
	}
	// The token is not taken from a query.
	if resp, _ := s.raw(t, "GET /wrap/status?token="+right+" HTTP/1.1\r\nHost: "+s.addr+"\r\n\r\n"); resp.StatusCode != 401 {
		t.Errorf("token in the query: %s", resp.Status)
	}
}

// D17: a token stops working at the moment another replaces it.
func TestTokenOfThePreviousStart(t *testing.T) {
	s := serve(t, &fake{})
	if resp, _ := s.call(t, "GET", "/wrap/status", ""); resp.StatusCode != 200 {
		t.Fatal(resp.Status)
	}
	s.holder.Set(strings.Repeat("5", 64))
	if resp, _ := s.call(t, "GET", "/wrap/status", ""); resp.StatusCode != 401 {
		t.Errorf("%s after the rotation", resp.Status)
	}
	s.holder.Set("")
	for _, h := range []string{"Authorization: Bearer ", "Authorization: Bearer " + testToken, "X-Kuang-Wrap-Token: "} {
		if resp, _ := s.raw(t, "GET /wrap/status HTTP/1.1\r\nHost: "+s.addr+"\r\n"+h+"\r\n\r\n"); resp.StatusCode != 401 {
			t.Errorf("%s while there is no token: %q", resp.Status, h)
		}
	}
}

// The proof is over the port that was dialled and the nonce that was sent.
func TestHello(t *testing.T) {
	f := &fake{}
	s := serve(t, f)
	nonce := make([]byte, api.NonceBytes)
	for i := range nonce {
		nonce[i] = byte(200 + i)
	}
	want := api.Hello{Proof: api.Proof(testToken, netip.MustParseAddrPort(s.addr), nonce), Version: "1.2.3"}
	for _, q := range []string{hex.EncodeToString(nonce), strings.ToUpper(hex.EncodeToString(nonce))} {
		resp, body := s.raw(t, "GET /hello?nonce="+q+" HTTP/1.1\r\nHost: "+s.addr+"\r\n\r\n")
		var got api.Hello
		if err := json.Unmarshal([]byte(body), &got); err != nil || resp.StatusCode != 200 || got != want {
			t.Errorf("%s: %s %s (%v), want %+v", q, resp.Status, body, err, want)
		}
	}
	for _, q := range []string{
		"", "?nonce=", "?nonce=" + strings.Repeat("a", 63), "?nonce=" + strings.Repeat("a", 65), "?nonce=" + strings.Repeat("a", 62),
		"?nonce=" + strings.Repeat("a", 66), "?nonce=" + strings.Repeat("g", 64), "?nonce=" + strings.Repeat("a", 64) + "&nonce=" + strings.Repeat("a", 64),
		"?nonce=" + strings.Repeat("a", 64) + "&x=1", "?%zz",
	} {
		_, body := s.raw(t, "GET /hello"+q+" HTTP/1.1\r\nHost: "+s.addr+"\r\n\r\n")
		if e := decodeError(t, body); e.Code != "BAD_REQUEST" {
			t.Errorf("%s: %s", q, e.Code)
		}
	}
	if _, body := s.raw(t, "POST /hello HTTP/1.1\r\nHost: "+s.addr+"\r\nContent-Length: 0\r\n\r\n"); decodeError(t, body).Code != "METHOD_NOT_ALLOWED" {
		t.Error(body)
	}
	s.holder.Set("")
	if _, body := s.raw(t, "GET /hello?nonce="+strings.Repeat("a", 64)+" HTTP/1.1\r\nHost: "+s.addr+"\r\n\r\n"); decodeError(t, body).Code != "BUSY" {
		t.Errorf("a proof under no token: %s", body)
	}
	if calls, revision := f.asked(); len(calls) != 0 || revision != 0 {
		t.Errorf("the backend was asked: %v, revision %d times", calls, revision)
	}
}

// Without a connection there is no address to compare Host with: refused.
func TestNoLocalAddress(t *testing.T) {
	h := &token.Holder{}
	h.Set(testToken)
	handler := bridge.New(&fake{}, h, bridge.Options{})
	for _, ctx := range []context.Context{
		context.Background(),
		context.WithValue(context.Background(), http.LocalAddrContextKey, addr("/run/bridge.sock")),
	} {
		r := httptest.NewRequestWithContext(ctx, "GET", "/wrap/status", nil)
		r.Host = "127.0.0.1:4111"
		r.Header.Set("Authorization", "Bearer "+testToken)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code != 403 {
			t.Errorf("%d, want 403", w.Code)
		}
	}
}

type addr string

func (a addr) Network() string { return "tcp" }
func (a addr) String() string  { return string(a) }
