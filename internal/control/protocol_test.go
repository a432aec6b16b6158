//go:build unix

package control_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/control"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// raw sends bytes on a new connection and returns the one answer to them.
func (s *served) raw(t testing.TB, request string) (*http.Response, string) {
	t.Helper()
	conn, err := net.Dial("unix", s.path)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	// The peer may refuse, and close, before it has read everything.
	go func() { _, _ = io.WriteString(conn, request) }()
	method, _, _ := strings.Cut(request, " ")
	resp, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		t.Fatalf("%.200q: %v", request, err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(b)
}

func message(method, target, body string) string {
	if method == "POST" {
		return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: hbrestd\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", target, len(body), body)
	}
	return fmt.Sprintf("%s %s HTTP/1.1\r\nHost: hbrestd\r\n\r\n", method, target)
}

// The wire of each route, character by character.
func TestProtocol(t *testing.T) {
	const (
		rows  = `{"rows":[{"seq":11,"time":"2026-11-30T08:00:00.123Z","kind":"run","wrapper":"city.weather","method":"GET","host":"api.example.com","status":200,"bytes":512,"durationMs":42}],"next":12}`
		rules = `{"rules":[{"host":"nas.local","port":"8443"},{"host":"printer","http":true}]}`
		list  = `{"settings":[{"name":"allow-private","value":"false","origin":"default","default":"false","variable":"HB_WRAP_ALLOW_PRIVATE","needsRestart":false}]}`
		run   = `{"ok":true,"status":200,"durationMs":42,"wrapper":{"id":"city.weather","name":"Weather"},"markdown":"| City |\n| --- |\n| Oslo & <b> |\n","records":[{"id":9007199254740993,"price":30.00}],"meta":{"mode":"table","selected":1,"rendered":1,"truncated":false}}`
		// A URL comes back with the characters it was saved with.
		credential = `{"name":"orders-key","kind":"oauth2","headers":[{"name":"Authorization","prefix":"Bearer "}],"allowedHosts":["api.example.com"],"oauth":{"tokenUrl":"https://login.example.com/token?a=1&b=<2>","clientId":"c","scope":"s","audience":"a","authStyle":"body"},"updated":"2026-11-30T08:00:00Z","usedBy":["orders.list"]}`
		plan       = `{"ok":true,"dryRun":true,"wrapper":{"id":"city.weather","name":"Weather"},"args":{"city":"Oslo"},"request":{"method":"GET","url":"https://api.example.com/w?city=Oslo&q=<a>","headers":{}},"mutating":false}`
	)
	full, bare := &fake{stop: func() {}}, &fake{empty: true, stop: func() {}}
	filled, empty := serve(t, full), serve(t, bare)
	for _, tc := range []struct {
		server               *served
		method, target, body string
		want                 string
	}{
		{filled, "GET", "/control/status", "", `{"ok":true,"version":"1.2.3","pid":4321,"address":"127.0.0.1:4111","home":"/home/ada/.local/state/hbrestd","tokenFile":"/home/ada/.local/state/hbrestd/wrap/token","startedAt":"2026-11-30T08:00:00Z","wrappers":2,"damaged":0,"revision":7,"allowPrivate":false,"allowHttp":false,"callTimeoutMs":50000}`},
		{filled, "GET", "/control/manifest", "", `{"revision":7,"wrappers":[{"id":"city.weather","name":"Weather","method":"GET","host":"api.example.com","required":[],"mutating":false,"exposeAsTool":false}]}`},
		{empty, "GET", "/control/manifest?after=6", "", `{"revision":7,"wrappers":[]}`},
		{filled, "GET", "/control/wrapper?id=city.weather", "", theDocument},
		{filled, "GET", "/control/secrets", "", `{"secrets":[{"name":"orders-key","headers":["Authorization"],"allowedHosts":["api.example.com"]}],"available":true}`},
		{empty, "GET", "/control/secrets", "", `{"secrets":[],"available":false,"reason":"none"}`},
		{filled, "POST", "/control/run", `{"id":"city.weather","args":{"n":9007199254740993}}`, run},
		{filled, "POST", "/control/test", `{"id":"city.weather"}`, plan},
		{filled, "POST", "/control/test", `{"id":"city.weather","dryRun":false}`, run},
		{filled, "POST", "/control/derive", `{"sample":[]}`, `{"ok":true,"source":"sample","recipe":{"schemaVersion":1,"select":"$"}}`},
		{filled, "POST", "/control/wrappers", `{"action":"create","wrapper":{"id":"<a>"}}`, `{"ok":true,"id":"city.weather","wrapper":{"id":"<a>"},"revision":8}`},
		{filled, "GET", "/control/audit?limit=1", "", rows},
		{empty, "GET", "/control/audit", "", `{"rows":[],"next":12}`},
		{filled, "POST", "/control/apply", `{"documents":[{"source":"a.json","wrapper":{"id":"x"}}],"dryRun":true}`, `{"ok":true,"dryRun":true,"revision":9,"changes":[{"source":"a.json","id":"city.weather","action":"created","after":` + theDocument + `}]}`},
		{empty, "POST", "/control/apply", `{"documents":[{"source":"-","wrapper":null}]}`, `{"ok":true,"dryRun":false,"revision":9,"changes":[]}`},
		{filled, "POST", "/control/expose", `{"id":"a","hide":true,"priority":1000}`, `{"ok":true,"id":"a","exposed":true,"tool":"wrap_city_weather","priority":500,"rank":1,"revision":10}`},
		{filled, "GET", "/control/allow", "", rules},
		{filled, "POST", "/control/allow", `{"host":"nas.local","port":"8443"}`, rules},
		{filled, "POST", "/control/disallow", `{"host":"nas.local"}`, rules},
		{empty, "GET", "/control/allow", "", `{"rules":[]}`},
		{filled, "GET", "/control/settings", "", list},
		{filled, "POST", "/control/settings", `{"name":"allow-private","unset":true}`, list},
		{empty, "GET", "/control/settings", "", `{"settings":[]}`},
		{filled, "GET", "/control/audit/follow?after=11&limit=1000", "", rows},
		{empty, "GET", "/control/audit/follow", "", `{"rows":[],"next":12}`},
		{filled, "POST", "/control/audit/verify", `{"head":"3:ab"}`, `{"ok":false,"rows":3,"first":1,"head":"3:ab","badSeq":2,"problem":"row 2 was changed"}`},
		{filled, "GET", "/control/audit/head", "", `{"seq":3,"hash":"ab","head":"3:ab"}`},
		{filled, "GET", "/control/secret", "", `{"state":"ready","secrets":[` + credential + `]}`},
		{empty, "GET", "/control/secret", "", `{"state":"none","reason":"r","fix":"f","detail":"d","secrets":[]}`},
		{filled, "POST", "/control/secret/put", `{"name":"a","kind":"static","headers":[{"name":"X-Key"}],"allowedHosts":["api.example.com"],"values":["c2VjcmV0LXZhbHVl",null]}`, `{"ok":true,"secret":` + credential + `}`},
		{filled, "POST", "/control/secret/put", `{"name":"!ask","kind":"oauth2","oauth":null,"values":null}`, `{"ok":false,"confirm":"token-host","message":"the token endpoint is elsewhere"}`},
		{empty, "POST", "/control/secret/put", `{"name":"n","kind":"basic"}`, `{"ok":true,"secret":{"name":"n","kind":"static","headers":[],"allowedHosts":[]}}`},
		{filled, "POST", "/control/secret/bind", `{"name":"a","remove":["api.example.com"]}`, `{"ok":true,"secret":` + credential + `}`},
		{filled, "POST", "/control/secret/delete", `{"name":"a"}`, `{"ok":true}`},
		{filled, "POST", "/control/secret/test", `{"name":"a","wrapper":"city.weather"}`, run},
		{filled, "POST", "/control/reload", `{}`, `{"ok":true,"revision":11,"wrappers":2,"damaged":0}`},
		{filled, "POST", "/control/stop", "{}\n", `{"ok":true}`},
	} {
		resp, body := tc.server.raw(t, message(tc.method, tc.target, tc.body))
		if resp.StatusCode != 200 || body != tc.want+"\n" {
			t.Errorf("%s %s: %d\n got %s\nwant %s", tc.method, tc.target, resp.StatusCode, body, tc.want)
		}
		for name, want := range map[string]string{"Content-Type": "application/json", "Cache-Control": "no-store", "X-Hb-Version": "1.2.3", "X-Hb-Code": ""} {
			if got := resp.Header.Get(name); got != want {
				t.Errorf("%s %s: %s is %q, want %q", tc.method, tc.target, name, got, want)
			}
		}
	}
}

// What a route does not take is refused with the field, before the backend
// hears of it.
func TestRefusals(t *testing.T) {
	f := &fake{}
	s := serve(t, f)
	deep := strings.Repeat("[", 10001) + strings.Repeat("]", 10001)
	docs := func(n int) string {
		return `{"documents":[` + strings.TrimSuffix(strings.Repeat(`{"source":"-","wrapper":{}},`, n), ",") + `]}`
	}
	for _, tc := range []struct {
		request             string
		status              int
		code                fault.Code
		field, says, header string
	}{
		{request: message("GET", "/control/nothing", ""), status: 404, code: "ROUTE_NOT_FOUND", says: "no route /control/nothing"},
		{request: message("GET", "/", ""), status: 404, code: "ROUTE_NOT_FOUND"},
		{request: message("GET", "/wrap/status", ""), status: 404, code: "ROUTE_NOT_FOUND"},
		{request: message("GET", "/control//status", ""), status: 404, code: "ROUTE_NOT_FOUND"},
		{request: message("GET", "/control/./status", ""), status: 404, code: "ROUTE_NOT_FOUND"},
		{request: message("GET", "/control/status/", ""), status: 404, code: "ROUTE_NOT_FOUND"},
		{request: message("GET", "/control%2fstatus", ""), status: 404, code: "ROUTE_NOT_FOUND"},
		{request: message("OPTIONS", "*", ""), status: 404, code: "ROUTE_NOT_FOUND"},
		{request: message("CONNECT", "hbrestd", ""), status: 403, code: "FORBIDDEN_ORIGIN", says: "a whole URL"},
		{request: message("HEAD", "/control/status", ""), status: 405, header: "GET"},
		{request: message("POST", "/control/status", "{}"), status: 405, code: "METHOD_NOT_ALLOWED", says: "only GET", header: "GET"},
		{request: message("GET", "/control/stop", ""), status: 405, code: "METHOD_NOT_ALLOWED", header: "POST"},
		{request: message("DELETE", "/control/allow", ""), status: 405, code: "METHOD_NOT_ALLOWED", says: "only GET, POST", header: "GET, POST"},
		{request: "GET /control/status HTTP/1.1\r\nHost: localhost\r\n\r\n", status: 403, code: "FORBIDDEN_ORIGIN", says: `the Host is "localhost", not hbrestd`},
		{request: "GET /control/status HTTP/1.0\r\n\r\n", status: 403, code: "FORBIDDEN_ORIGIN"},
		{request: "GET http://hbrestd/control/status HTTP/1.1\r\nHost: hbrestd\r\n\r\n", status: 403, code: "FORBIDDEN_ORIGIN", says: "a whole URL"},
		{request: "GET /control/status HTTP/1.1\r\nHost: hbrestd\r\nOrigin: null\r\n\r\n", status: 403, code: "FORBIDDEN_ORIGIN", says: "has a Origin header"},
		{request: "GET /control/status HTTP/1.1\r\nHost: hbrestd\r\nReferer: \r\n\r\n", status: 403, code: "FORBIDDEN_ORIGIN"},
		{request: "GET /control/status HTTP/1.1\r\nHost: hbrestd\r\nSec-Fetch-Site: none\r\n\r\n", status: 403, code: "FORBIDDEN_ORIGIN"},
		{request: "GET /control/status HTTP/1.1\r\nHost: hbrestd\r\nContent-Length: 2\r\n\r\n{}", status: 400, code: "BAD_REQUEST", field: "body"},
		{request: "POST /control/run HTTP/1.1\r\nHost: hbrestd\r\nContent-Length: 2\r\n\r\n{}", status: 415, code: "UNSUPPORTED_MEDIA_TYPE"},
		{request: "POST /control/run HTTP/1.1\r\nHost: hbrestd\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}", status: 415, code: "UNSUPPORTED_MEDIA_TYPE"},
		{request: message("GET", "/control/status?x=1", ""), status: 400, code: "BAD_REQUEST", field: "query.x", says: "this route knows none"},
		{request: message("GET", "/control/manifest?after=1&after=2", ""), status: 400, code: "BAD_REQUEST", field: "query.after", says: "given twice"},
		{request: message("GET", "/control/manifest?after=-1", ""), status: 400, code: "BAD_REQUEST", field: "query.after"},
		{request: message("GET", "/control/manifest?after=18446744073709551616", ""), status: 400, code: "BAD_REQUEST", field: "query.after"},
		{request: message("GET", "/control/manifest?after=%zz", ""), status: 400, code: "BAD_REQUEST", field: "query"},
		{request: message("GET", "/control/wrapper", ""), status: 400, code: "BAD_REQUEST", field: "query.id"},
		{request: message("GET", "/control/audit?limit=1001", ""), status: 400, code: "BAD_REQUEST", field: "query.limit", says: "from 0 to 1000"},
		{request: message("GET", "/control/audit?limit=x", ""), status: 400, code: "BAD_REQUEST", field: "query.limit"},
		{request: message("POST", "/control/reload?now=1", "{}"), status: 400, code: "BAD_REQUEST", field: "query.now"},
		{request: message("POST", "/control/reload", ""), status: 400, code: "BAD_JSON", field: "body", says: "at byte 0"},
		{request: message("POST", "/control/reload", `{"now":true}`), status: 400, code: "BAD_REQUEST", field: "body.now", says: "known here: none"},
		{request: message("POST", "/control/reload", `null`), status: 400, code: "BAD_REQUEST", field: "body", says: "it is null"},
		{request: message("POST", "/control/run", `{"id":"a"} {}`), status: 400, code: "BAD_JSON", field: "body"},
		{request: message("POST", "/control/run", `{"id":`), status: 400, code: "BAD_JSON", field: "body"},
		{request: message("POST", "/control/run", "{\"id\":\"\xff\"}"), status: 400, code: "BAD_JSON", field: "body", says: "not UTF-8"},
		{request: message("POST", "/control/run", `{"id":"a","args":`+deep+`}`), status: 400, code: "BAD_JSON", field: "body"},
		{request: message("POST", "/control/run", `["id"]`), status: 400, code: "BAD_REQUEST", field: "body", says: "it is an array"},
		{request: message("POST", "/control/run", `{"args":{}}`), status: 400, code: "BAD_REQUEST", field: "body.id"},
		{request: message("POST", "/control/run", `{"id":null}`), status: 400, code: "BAD_REQUEST", field: "body.id"},
		{request: message("POST", "/control/run", `{"ID":"a"}`), status: 400, code: "BAD_REQUEST", field: "body.ID", says: "known here: id, args, format, max_pages"},
		{request: message("POST", "/control/run", `{"id":"a","id":"b"}`), status: 400, code: "BAD_REQUEST", field: "body.id", says: "given twice"},
		{request: message("POST", "/control/run", `{"id":1}`), status: 400, code: "BAD_REQUEST", field: "body.id", says: "must be a string; it is 1"},
		{request: message("POST", "/control/run", `{"id":"a","args":[]}`), status: 400, code: "BAD_REQUEST", field: "body.args", says: "it is an array"},
		{request: message("POST", "/control/run", `{"id":"a","format":"xml"}`), status: 422, code: "FORMAT_INVALID", field: "body.format"},
		{request: message("POST", "/control/run", `{"id":"a","max_pages":0}`), status: 422, code: "MAX_PAGES_INVALID", field: "body.max_pages"},
		{request: message("POST", "/control/run", `{"id":"a","max_pages":26}`), status: 422, code: "MAX_PAGES_INVALID", field: "body.max_pages"},
		{request: message("POST", "/control/run", `{"id":"a","max_pages":1.5}`), status: 400, code: "BAD_REQUEST", field: "body.max_pages", says: "must be a whole number; it is 1.5"},
		{request: message("POST", "/control/test", `{}`), status: 400, code: "BAD_REQUEST", field: "body.id"},
		{request: message("POST", "/control/test", `{"id":"a","wrapper":{}}`), status: 400, code: "BAD_REQUEST", field: "body.wrapper"},
		{request: message("POST", "/control/test", `{"wrapper":"{}"}`), status: 400, code: "BAD_REQUEST", field: "body.wrapper", says: "it is a string"},
		{request: message("POST", "/control/test", `{"id":"a","dryRun":"no"}`), status: 400, code: "BAD_REQUEST", field: "body.dryRun", says: "must be true or false; it is a string"},
		{request: message("POST", "/control/derive", `{"sample":[],"max_fields":21}`), status: 422, code: "DERIVE_MAX_FIELDS", field: "body.max_fields"},
		{request: message("POST", "/control/derive", `{"sample":[],"max_fields":0}`), status: 422, code: "DERIVE_MAX_FIELDS", field: "body.max_fields"},
		{request: message("POST", "/control/wrappers", `{"action":"drop"}`), status: 400, code: "BAD_REQUEST", field: "body.action"},
		{request: message("POST", "/control/wrappers", `{"action":"create"}`), status: 400, code: "BAD_REQUEST", field: "body.wrapper"},
		{request: message("POST", "/control/wrappers", `{"action":"delete"}`), status: 400, code: "BAD_REQUEST", field: "body.id"},
		{request: message("POST", "/control/wrappers", `{"action":"get","id":"a","wrapper":{}}`), status: 400, code: "BAD_REQUEST", field: "body.wrapper"},
		{request: message("POST", "/control/apply", `{}`), status: 400, code: "BAD_REQUEST", field: "body.documents"},
		{request: message("POST", "/control/apply", `{"documents":{}}`), status: 400, code: "BAD_REQUEST", field: "body.documents", says: "must be an array; it is an object"},
		{request: message("POST", "/control/apply", `{"documents":[{"source":"a","wrapper":{}},{"source":"b"}]}`), status: 400, code: "BAD_REQUEST", field: "body.documents[1].wrapper"},
		{request: message("POST", "/control/apply", `{"documents":[{"source":"a","wraper":{}}]}`), status: 400, code: "BAD_REQUEST", field: "body.documents[0].wraper"},
		{request: message("POST", "/control/apply", `{"documents":[1]}`), status: 400, code: "BAD_REQUEST", field: "body.documents[0]", says: "must be an object; it is a number"},
		{request: message("POST", "/control/apply", docs(1001)), status: 400, code: "BAD_REQUEST", field: "body.documents", says: "at most 1000"},
		{request: message("POST", "/control/expose", `{}`), status: 400, code: "BAD_REQUEST", field: "body.id"},
		{request: message("POST", "/control/expose", `{"id":"a","priority":-1}`), status: 400, code: "BAD_REQUEST", field: "body.priority"},
		{request: message("POST", "/control/expose", `{"id":"a","priority":1001}`), status: 400, code: "BAD_REQUEST", field: "body.priority"},
		{request: message("POST", "/control/allow", `{}`), status: 400, code: "BAD_REQUEST", field: "body.host"},
		{request: message("POST", "/control/disallow", `{"port":"1"}`), status: 400, code: "BAD_REQUEST", field: "body.host"},
		{request: message("POST", "/control/settings", `{}`), status: 400, code: "BAD_REQUEST", field: "body.name"},
		{request: message("POST", "/control/settings", `{"name":"a","value":"b","unset":true}`), status: 400, code: "BAD_REQUEST", field: "body.value"},
		{request: message("POST", "/control/secret", `{}`), status: 405, code: "METHOD_NOT_ALLOWED", header: "GET"},
		{request: message("GET", "/control/secret/put", ""), status: 405, code: "METHOD_NOT_ALLOWED", header: "POST"},
		{request: message("POST", "/control/secret/put", `{"kind":"static"}`), status: 400, code: "BAD_REQUEST", field: "body.name"},
		{request: message("POST", "/control/secret/put", `{"name":"a"}`), status: 400, code: "BAD_REQUEST", field: "body.kind"},
		{request: message("POST", "/control/secret/put", `{"name":"a","kind":"Static"}`), status: 400, code: "BAD_REQUEST", field: "body.kind", says: "must be static, basic or oauth2"},
		{request: message("POST", "/control/secret/put", `{"name":"a","kind":"static","values":["c2VjcmV0","plain text"]}`), status: 400, code: "BAD_REQUEST", field: "body.values[1]", says: "must be a string in base64"},
		{request: message("POST", "/control/secret/put", `{"name":"a","kind":"static","values":[86753090]}`), status: 400, code: "BAD_REQUEST", field: "body.values[0]", says: "must be a string in base64; it is a number"},
		{request: message("POST", "/control/secret/put", `{"name":"a","kind":"static","values":[[115,51]]}`), status: 400, code: "BAD_REQUEST", field: "body.values[0]", says: "it is an array"},
		{request: message("POST", "/control/secret/put", `{"name":"a","kind":"static","value":"c2VjcmV0"}`), status: 400, code: "BAD_REQUEST", field: "body.value"},
		{request: message("POST", "/control/secret/bind", `{"add":["a"]}`), status: 400, code: "BAD_REQUEST", field: "body.name"},
		{request: message("POST", "/control/secret/bind", `{"name":"a","add":[],"remove":[]}`), status: 400, code: "BAD_REQUEST", field: "body.add"},
		{request: message("POST", "/control/secret/delete", `{}`), status: 400, code: "BAD_REQUEST", field: "body.name"},
		{request: message("POST", "/control/secret/test", `{"wrapper":"a"}`), status: 400, code: "BAD_REQUEST", field: "body.name"},
		{request: message("POST", "/control/secret/test", `{"name":"a"}`), status: 400, code: "BAD_REQUEST", field: "body.wrapper"},
		{request: message("POST", "/control/secret/test", `{"name":"a","url":"https://a.example"}`), status: 400, code: "BAD_REQUEST", field: "body.url"},
	} {
		name := fmt.Sprintf("%.120q", tc.request)
		resp, body := s.raw(t, tc.request)
		if resp.StatusCode != tc.status || resp.Header.Get("Allow") != tc.header {
			t.Errorf("%s: %d, Allow %q; want %d, %q\n%s", name, resp.StatusCode, resp.Header.Get("Allow"), tc.status, tc.header, body)
		}
		if strings.HasPrefix(tc.request, "HEAD") {
			continue
		}
		e := decodeError(t, body)
		field := ""
		if e.Field != nil {
			field = *e.Field
		}
		if e.Code != string(tc.code) || field != tc.field || !strings.Contains(e.Message, tc.says) || e.Hint == "" || resp.Header.Get("X-HB-Code") != e.Code {
			t.Errorf("%s:\n got %s %q %s (header %s)\nwant %s %q %s", name, e.Code, field, e.Message, resp.Header.Get("X-HB-Code"), tc.code, tc.field, tc.says)
		}
	}
	if calls := f.asked(); len(calls) != 0 {
		t.Errorf("the backend was asked: %q", calls)
	}
	if resp, _ := s.raw(t, message("POST", "/control/apply", docs(1000))); resp.StatusCode != 200 {
		t.Errorf("1000 documents: %d", resp.StatusCode)
	}
}

// The limits of a body, at them and one byte over, with and without an
// announced length; and the client's own, which sends nothing that would be
// refused.
func TestBodyLimits(t *testing.T) {
	f := &fake{}
	s := serve(t, f)
	padded := func(start, end string, n int) []byte {
		return append(append([]byte(start), bytes.Repeat([]byte("x"), n-len(start)-len(end))...), end...)
	}
	for _, tc := range []struct {
		path       string
		start, end string
		limit      int
	}{
		{"/control/run", `{"id":"`, `"}`, control.MaxBody},
		{"/control/apply", `{"documents":[{"source":"-","wrapper":"`, `"}]}`, control.MaxApply},
	} {
		for over := range 2 {
			body := padded(tc.start, tc.end, tc.limit+over)
			want, code := 200, ""
			if over > 0 {
				want, code = 413, "BODY_TOO_LARGE"
			}
			head := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: hbrestd\r\nContent-Type: application/json\r\n", tc.path)
			for _, request := range []string{
				fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", head, len(body), body),
				fmt.Sprintf("%sTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", head, len(body), body),
			} {
				resp, answer := s.raw(t, request)
				if resp.StatusCode != want || resp.Header.Get("X-HB-Code") != code {
					t.Errorf("%s with %d bytes: %d %.200s", tc.path, len(body), resp.StatusCode, answer)
				}
			}
		}
	}
	before := len(f.asked())
	c := control.NewClient(s.path, control.ClientOptions{})
	_, err := c.Apply(context.Background(), &control.ApplyRequest{Documents: []control.ApplyDocument{{Wrapper: padded(`"`, `"`, control.MaxApply)}}})
	if !fault.Is(err, "BODY_TOO_LARGE") || len(f.asked()) != before {
		t.Errorf("the client sent too much: %v", err)
	}
}
