package bridge_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/bridge"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

var routes = []struct{ method, path string }{
	{"GET", "/hello"},
	{"GET", "/wrap/status"},
	{"GET", "/wrap/manifest"},
	{"GET", "/wrap/wrapper"},
	{"GET", "/wrap/secrets"},
	{"GET", "/wrap/audit"},
	{"GET", "/wrap/recall"},
	{"POST", "/wrap/run"},
	{"POST", "/wrap/test"},
	{"POST", "/wrap/derive"},
	{"POST", "/wrap/wrappers"},
}

var verbs = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "QUERY", "get", "X"}

// Every route answers exactly one verb and names it.
func TestWrongVerbs(t *testing.T) {
	f := &fake{}
	s := serve(t, f)
	for _, rt := range routes {
		for _, v := range verbs {
			if v == rt.method {
				continue
			}
			resp, body := s.call(t, v, rt.path, "")
			if resp.StatusCode != 405 || resp.Header.Get("Allow") != rt.method {
				t.Errorf("%s %s: %s, Allow %q; want 405, Allow %s", v, rt.path, resp.Status, resp.Header.Get("Allow"), rt.method)
			}
			if v != "HEAD" {
				if e := decodeError(t, body); e.Code != "METHOD_NOT_ALLOWED" {
					t.Errorf("%s %s: %s", v, rt.path, e.Code)
				}
			}
			for name := range resp.Header {
				if strings.HasPrefix(name, "Access-Control-") {
					t.Errorf("%s %s: a CORS answer: %s", v, rt.path, name)
				}
			}
		}
	}
	if resp, body := s.raw(t, "OPTIONS * HTTP/1.1\r\nHost: "+s.addr+"\r\nAuthorization: Bearer "+testToken+"\r\n\r\n"); resp.StatusCode != 404 {
		t.Errorf("OPTIONS *: %s %s", resp.Status, body)
	}
	if resp, _ := s.raw(t, "OPTIONS * HTTP/1.1\r\nHost: "+s.addr+"\r\n\r\n"); resp.StatusCode != 401 {
		t.Errorf("OPTIONS * without a token: %s", resp.Status)
	}
	if calls, _ := f.asked(); len(calls) != 0 {
		t.Errorf("the backend was asked: %v", calls)
	}
}

// D38: nothing near /wrap/secrets takes a value, by any verb or spelling.
func TestNoWayToWriteACredential(t *testing.T) {
	f := &fake{}
	s := serve(t, f)
	paths := []string{
		"/wrap/secrets", "/wrap/secrets/", "/wrap/secrets/orders-key", "/wrap/secret", "/wrap/secret/set", "/wrap/secrets?action=create",
		"/wrap/secrets/../secrets", "//wrap/secrets", "/wrap//secrets", "/wrap/%73ecrets", "/wrap/secrets%2Forders-key", "/wrap/Secrets", "/WRAP/SECRETS",
		"/wrap/secrets;x=1", "/wrap/credentials", "/wrap/vault", "/wrap/settings", "/wrap/allow", "/wrap/approve", "/wrap/approvals", "/wrap/config",
		"/wrap/keys", "/secrets", "/secret", "/control", "/control/secrets", "/wrap/token", "/api/wrap/secrets", "/wrap/wrappers/secrets",
	}
	bodies := []string{`{"name":"orders-key","value":"v","hosts":["api.example.com"]}`, `{"action":"create","secret":{"name":"a","value":"b"}}`, ``}
	for _, p := range paths {
		for _, v := range []string{"POST", "PUT", "PATCH", "DELETE"} {
			for _, b := range bodies {
				resp, body := s.call(t, v, p, b)
				if resp.StatusCode != 404 && resp.StatusCode != 405 {
					t.Errorf("%s %s: %s %s", v, p, resp.Status, body)
				}
			}
		}
	}
	// The routes that do take a body know no member for one.
	for _, rt := range routes[7:] {
		for _, m := range []string{"secret", "secrets", "value", "credential", "password", "headers", "allowedHosts", "auth"} {
			_, body := s.call(t, "POST", rt.path, `{"id":"a","`+m+`":"v"}`)
			if e := decodeError(t, body); e.Code != "BAD_REQUEST" || e.Field == nil || *e.Field != "body."+m {
				t.Errorf("%s with %s: %s", rt.path, m, body)
			}
		}
	}
	if calls, _ := f.asked(); len(calls) != 0 {
		t.Errorf("the backend was asked: %v", calls)
	}
}

// Every answer, good or bad, carries the same headers.
func TestAnswerHeaders(t *testing.T) {
	s := serve(t, &fake{})
	for _, c := range []struct{ method, path, body, revision string }{
		{"GET", "/wrap/status", "", "7"},
		{"GET", "/nowhere", "", "7"},
		{"POST", "/wrap/run", "{", "7"},
		{"POST", "/wrap/run", `{"id":"a"}`, "7"},
		{"PUT", "/wrap/run", "", "7"},
		{"GET", "/hello?nonce=" + strings.Repeat("a", 64), "", ""},
	} {
		resp, body := s.call(t, c.method, c.path, c.body)
		got := map[string]string{}
		for _, n := range []string{"Content-Type", "Cache-Control", "X-Content-Type-Options", "X-HB-Version", "X-HB-Revision", "Content-Length"} {
			got[n] = resp.Header.Get(n)
		}
		want := map[string]string{
			"Content-Type": "application/json", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
			"X-HB-Version": "1.2.3", "X-HB-Revision": c.revision, "Content-Length": fmt.Sprint(len(body)),
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s %s:\n got %v\nwant %v", c.method, c.path, got, want)
		}
	}
}

// Bodies that are refused, with the code, the field and words that must occur.
func TestStrictBodies(t *testing.T) {
	f := &fake{}
	s := serve(t, f)
	deep := func(n int) string {
		return `{"id":"a","args":{"x":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}}`
	}
	tests := []struct{ path, body, code, field, words string }{
		{"/wrap/run", "\xef\xbb\xbf{\"id\":\"a\"}", "BAD_JSON", "body", "byte 0"},
		{"/wrap/run", "", "BAD_JSON", "body", "empty"},
		{"/wrap/run", " \n\t ", "BAD_JSON", "body", "empty"},
		{"/wrap/run", "{", "BAD_JSON", "body", "byte 1: unexpected end"},
		{"/wrap/run", `{"id":"a"`, "BAD_JSON", "body", "byte 9: unexpected end"},
		{"/wrap/run", `{"id":"a","args":{"x":01}}`, "BAD_JSON", "body", "byte 23"},
		{"/wrap/run", `{"id":'a'}`, "BAD_JSON", "body", "byte 6"},
		{"/wrap/run", `{id:"a"}`, "BAD_JSON", "body", "byte 1"},
		{"/wrap/run", `{"id":"a","args":{"x":NaN}}`, "BAD_JSON", "body", "byte 22"},
		{"/wrap/run", "{\"id\":\"a\x01\"}", "BAD_JSON", "body", "byte 8"},
		{"/wrap/run", "{\"id\":\"a\xff\"}", "BAD_JSON", "body", "byte 8"},
		{"/wrap/run", `{"id":"a"}x`, "BAD_JSON", "body", "byte 10"},
		{"/wrap/run", `{"id":"a"}]`, "BAD_JSON", "body", "byte 10"},
		{"/wrap/run", `{"id":"a"}null`, "BAD_JSON", "body", "byte 14"},
		{"/wrap/run", `{"id":"a",}`, "BAD_JSON", "body", "byte 9"},
		{"/wrap/run", `{"id":"a" "args":{}}`, "BAD_JSON", "body", "byte 10"},
		{"/wrap/run", `// a comment`, "BAD_JSON", "body", "byte 0"},
		{"/wrap/run", deep(maxDepthForTest - 1), "BAD_JSON", "body", "nested over 1000 levels deep"},
		{"/wrap/run", `{"id":"a","args":` + strings.Repeat(`{"":`, 100_000), "BAD_JSON", "body", ""},
		{"/wrap/run", `"x"`, "BAD_REQUEST", "body", "a string"},
		{"/wrap/run", `null`, "BAD_REQUEST", "body", "null"},
		{"/wrap/run", `7`, "BAD_REQUEST", "body", "a number"},
		{"/wrap/run", `true`, "BAD_REQUEST", "body", "true or false"},
		{"/wrap/run", `{}`, "BAD_REQUEST", "body.id", ""},
		{"/wrap/run", `{"id":""}`, "BAD_REQUEST", "body.id", ""},
		{"/wrap/run", `{"id":null}`, "BAD_REQUEST", "body.id", ""},
		{"/wrap/run", `{"id":7}`, "BAD_REQUEST", "body.id", "must be a string; it is a number"},
		{"/wrap/run", `{"ID":"a"}`, "BAD_REQUEST", "body.ID", "id, args, format, max_pages, maxPages"},
		{"/wrap/run", `{"id":"a","\u0069d":"b"}`, "BAD_REQUEST", "body.id", "twice"},
		{"/wrap/run", `{"id":"a","args":[]}`, "BAD_REQUEST", "body.args", "must be an object; it is an array"},
		{"/wrap/run", `{"id":"a","` + strings.Repeat("n", 500) + `":1}`, "BAD_REQUEST", "body." + strings.Repeat("n", 59) + "…", ""},
		{"/wrap/run", `{"id":"a","format":""}`, "FORMAT_INVALID", "body.format", ""},
		{"/wrap/run", `{"id":"a","format":"Markdown"}`, "FORMAT_INVALID", "body.format", ""},
		{"/wrap/run", `{"id":"a","format":1}`, "FORMAT_INVALID", "body.format", ""},
		{"/wrap/run", `{"id":"a","max_pages":0}`, "MAX_PAGES_INVALID", "body.max_pages", ""},
		{"/wrap/run", `{"id":"a","max_pages":-1}`, "MAX_PAGES_INVALID", "body.max_pages", ""},
		{"/wrap/run", `{"id":"a","max_pages":2.5}`, "MAX_PAGES_INVALID", "body.max_pages", ""},
		{"/wrap/run", `{"id":"a","max_pages":"5"}`, "MAX_PAGES_INVALID", "body.max_pages", ""},
		{"/wrap/run", `{"id":"a","max_pages":true}`, "MAX_PAGES_INVALID", "body.max_pages", ""},
		{"/wrap/run", `{"id":"a","max_pages":1e999999999}`, "MAX_PAGES_INVALID", "body.max_pages", ""},
		{"/wrap/run", `{"id":"a","maxPages":9223372036854775808}`, "MAX_PAGES_INVALID", "body.maxPages", ""},
		{"/wrap/test", `{"id":"a","maxPages":26}`, "MAX_PAGES_INVALID", "body.maxPages", ""},
		{"/wrap/test", `{"id":"a","maxPages":5,"max_pages":6}`, "BAD_REQUEST", "body.max_pages", "differs"},
		{"/wrap/run", `{"id":"a","max_items":0}`, "MAX_ITEMS_INVALID", "body.max_items", "1 to 1000"},
		{"/wrap/run", `{"id":"a","maxItems":1001}`, "MAX_ITEMS_INVALID", "body.maxItems", ""},
		{"/wrap/run", `{"id":"a","max_items":"5"}`, "MAX_ITEMS_INVALID", "body.max_items", ""},
		{"/wrap/test", `{"id":"a","maxItems":1001}`, "MAX_ITEMS_INVALID", "body.maxItems", ""},
		{"/wrap/test", `{"id":"a","maxItems":5,"max_items":6}`, "BAD_REQUEST", "body.max_items", "differs"},
		{"/wrap/run", `{"id":"a","fields":"Name"}`, "BAD_REQUEST", "body.fields", "must be an array of strings; it is a string"},
		{"/wrap/run", `{"id":"a","fields":{"Name":true}}`, "BAD_REQUEST", "body.fields", "an object"},
		{"/wrap/run", `{"id":"a","fields":["Name",7]}`, "BAD_REQUEST", "body.fields[1]", "must be a string; it is a number"},
		{"/wrap/test", `{"id":"a","fields":[null]}`, "BAD_REQUEST", "body.fields[0]", "null"},
		{"/wrap/run", `{"id":"a","fields":[` + strings.Repeat(`"n",`, 50) + `"n"]}`, "BAD_REQUEST", "body.fields", "51 elements, at most 50"},
		{"/wrap/test", `{"id":"a","dryRun":"false"}`, "BAD_REQUEST", "body.dryRun", "true or false; it is a string"},
		{"/wrap/test", `{"id":"a","dryRun":0}`, "BAD_REQUEST", "body.dryRun", "a number"},
		{"/wrap/test", `{"wrapper":"{}"}`, "BAD_REQUEST", "body.wrapper", "a string"},
		{"/wrap/test", `{"id":"a","format":"xml"}`, "FORMAT_INVALID", "body.format", ""},
		{"/wrap/derive", `{"url":["https://a"]}`, "BAD_REQUEST", "body.url", "an array"},
		{"/wrap/derive", `{"max_fields":0}`, "DERIVE_MAX_FIELDS", "body.max_fields", ""},
		{"/wrap/derive", `{"max_fields":21}`, "DERIVE_MAX_FIELDS", "body.max_fields", ""},
		{"/wrap/derive", `{"max_fields":3,"maxFields":4}`, "BAD_REQUEST", "body.maxFields", "differs"},
		{"/wrap/derive", `{"format":"json"}`, "BAD_REQUEST", "body.format", "sample, url, id, name, description, max_fields, maxFields"},
		{"/wrap/wrappers", `{"wrapper":{}}`, "BAD_REQUEST", "body.action", "create, update, delete or get"},
		{"/wrap/wrappers", `{"action":"CREATE","wrapper":{}}`, "BAD_REQUEST", "body.action", ""},
		{"/wrap/wrappers", `{"action":"create"}`, "BAD_REQUEST", "body.wrapper", ""},
		{"/wrap/wrappers", `{"action":"create","wrapper":null}`, "BAD_REQUEST", "body.wrapper", ""},
		{"/wrap/wrappers", `{"action":"create","wrapper":[]}`, "BAD_REQUEST", "body.wrapper", ""},
		{"/wrap/wrappers", `{"action":"get"}`, "BAD_REQUEST", "body.id", ""},
		{"/wrap/wrappers", `{"action":"delete","id":""}`, "BAD_REQUEST", "body.id", ""},
	}
	for _, tt := range tests {
		resp, body := s.call(t, "POST", tt.path, tt.body)
		e := decodeError(t, body)
		field := ""
		if e.Field != nil {
			field = *e.Field
		}
		if e.Code != tt.code || field != tt.field || !strings.Contains(e.Message, tt.words) {
			t.Errorf("%s %.80q:\n got %s %q %q\nwant %s %q ...%s...", tt.path, tt.body, e.Code, field, e.Message, tt.code, tt.field, tt.words)
		}
		if want := fault.Code(tt.code).HTTPStatus(); resp.StatusCode != want {
			t.Errorf("%s %.80q: status %d, want %d", tt.path, tt.body, resp.StatusCode, want)
		}
		if e.Details == nil || e.Hint == "" {
			t.Errorf("%.80q: details must not be null and the hint not empty: %s", tt.body, body)
		}
	}
	if calls, _ := f.asked(); len(calls) != 0 {
		t.Errorf("the backend was asked: %v", calls)
	}
}

// maxDepthForTest nests args as deep as the limit allows: the body and args are
// two levels of it.
const maxDepthForTest = 1000

// What is accepted reaches the backend with every byte of its meaning.
func TestAcceptedBodies(t *testing.T) {
	deep := strings.Repeat("[", maxDepthForTest-2) + strings.Repeat("]", maxDepthForTest-2)
	tests := []struct{ path, body, call string }{
		{"/wrap/run", `{"id":"a"}`, `Run {"id":"a"}`},
		{"/wrap/run", ` {"id" : "a" } ` + "\n", `Run {"id":"a"}`},
		{"/wrap/run", `{"id":"a","args":{}}`, `Run {"id":"a","args":{}}`},
		{"/wrap/run", `{"args":{"a":9007199254740993,"b":30.00,"c":1e400,"d":-0,"c":2},"id":"a"}`, `Run {"id":"a","args":{"a":9007199254740993,"b":30.00,"c":1e400,"d":-0,"c":2}}`},
		{"/wrap/run", `{"id":"caf\u00e9"}`, `Run {"id":"café"}`},
		{"/wrap/run", `{"id":"a","max_pages":1}`, `Run {"id":"a","max_pages":1}`},
		{"/wrap/run", `{"id":"a","maxPages":25}`, `Run {"id":"a","max_pages":25}`},
		{"/wrap/run", `{"id":"a","maxPages":5.0,"max_pages":5}`, `Run {"id":"a","max_pages":5}`},
		{"/wrap/run", `{"id":"a","max_items":1}`, `Run {"id":"a","max_items":1}`},
		{"/wrap/run", `{"id":"a","maxItems":1000,"max_items":1000}`, `Run {"id":"a","max_items":1000}`},
		{"/wrap/run", `{"id":"a","fields":["Nam\u0065","a b",""]}`, `Run {"id":"a","fields":["Name","a b",""]}`},
		{"/wrap/run", `{"id":"a","fields":[],"max_items":null}`, `Run {"id":"a"}`},
		{"/wrap/run", `{"id":"a","fields":[` + strings.Repeat(`"n",`, 49) + `"n"]}`, `Run {"id":"a","fields":[` + strings.Repeat(`"n",`, 49) + `"n"]}`},
		{"/wrap/test", `{"id":"a","max_items":7,"fields":["Name"]}`, `Test {"id":"a","maxItems":7,"fields":["Name"]}`},
		{"/wrap/run", `{"id":"a","args":{"x":` + deep + `}}`, `Run {"id":"a","args":{"x":` + deep + `}}`},
		{"/wrap/test", `{"id":"a","dryRun":false,"format":"json"}`, `Test {"id":"a","dryRun":false,"format":"json"}`},
		{"/wrap/test", `{"wrapper":{"b":1.0,"a":2},"sample":"[1]","maxPages":2}`, `Test {"wrapper":{"b":1.0,"a":2},"sample":"[1]","maxPages":2}`},
		{"/wrap/test", `{"id":"a","sample":false}`, `Test {"id":"a","sample":false}`},
		{"/wrap/test", `{"id":"a","sample":0}`, `Test {"id":"a","sample":0}`},
		{"/wrap/derive", `{"sample":"","id":"a","name":"N","description":"D","url":null}`, `Derive {"sample":"","id":"a","name":"N","description":"D"}`},
		{"/wrap/derive", `{}`, `Derive {}`},
		{"/wrap/derive", `{"sample":[],"url":"https://a.example"}`, `Derive {"sample":[],"url":"https://a.example"}`},
		{"/wrap/derive", `{"sample":[],"max_fields":1}`, `Derive {"sample":[],"max_fields":1}`},
		{"/wrap/wrappers", `{"action":"update","id":"a","wrapper":{"x":1}}`, `Change {"action":"update","id":"a","wrapper":{"x":1}}`},
		{"/wrap/wrappers", `{"action":"delete","id":"a","wrapper":null}`, `Change {"action":"delete","id":"a"}`},
	}
	for _, tt := range tests {
		f := &fake{}
		s := serve(t, f)
		if resp, body := s.call(t, "POST", tt.path, tt.body); resp.StatusCode != 200 {
			t.Errorf("%.80s: %s %s", tt.body, resp.Status, body)
		}
		if calls, _ := f.asked(); len(calls) != 1 || calls[0] != tt.call {
			t.Errorf("%.80s:\n got %.200s\nwant %.200s", tt.body, calls, tt.call)
		}
	}
}

// A body of exactly the limit is read; one byte more is not, announced or not.
func TestBodyLimit(t *testing.T) {
	f := &fake{}
	s := serve(t, f)
	exact := func(n int) string {
		head, tail := `{"sample":"`, `"}`
		return head + strings.Repeat("x", n-len(head)-len(tail)) + tail
	}
	if resp, body := s.call(t, "POST", "/wrap/derive", exact(api.MaxBody)); resp.StatusCode != 200 {
		t.Errorf("at the limit: %s %s", resp.Status, body)
	}
	if resp, body := s.call(t, "POST", "/wrap/derive", exact(api.MaxBody+1)); resp.StatusCode != 413 || decodeError(t, body).Code != "BODY_TOO_LARGE" {
		t.Errorf("one over: %s", resp.Status)
	}
	b := exact(api.MaxBody + 1)
	chunked := fmt.Sprintf("POST /wrap/derive HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n",
		s.addr, testToken, len(b), b)
	if resp, body := s.raw(t, chunked); resp.StatusCode != 413 || decodeError(t, body).Code != "BODY_TOO_LARGE" {
		t.Errorf("one over, chunked: %s", resp.Status)
	}
	if calls, _ := f.asked(); len(calls) != 1 {
		t.Errorf("%d calls, want the one at the limit", len(calls))
	}
}

func TestMediaTypes(t *testing.T) {
	s := serve(t, &fake{})
	tests := []struct {
		headers string
		want    int
	}{
		{"Content-Type: application/json", 200},
		{"Content-Type: Application/JSON ; charset=utf-8", 200},
		{"Content-Type: application/json; charset=\"UTF-8\"; x=y", 200},
		{"Content-Type: application/json\r\nContent-Encoding: identity", 200},
		{"", 415},
		{"Content-Type:", 415},
		{"Content-Type: text/plain", 415},
		{"Content-Type: application/x-www-form-urlencoded", 415},
		{"Content-Type: multipart/form-data; boundary=x", 415},
		{"Content-Type: application/jsonp", 415},
		{"Content-Type: application/json, text/plain", 415},
		{"Content-Type: application/problem+json", 415},
		{"Content-Type: text/plain; application/json", 415},
		{"Content-Type: application/json; charset=latin1", 415},
		{"Content-Type: application/json\r\nContent-Type: text/plain", 415},
		{"Content-Type: application/json\r\nContent-Encoding: gzip", 415},
	}
	for _, tt := range tests {
		h := tt.headers
		if h != "" {
			h += "\r\n"
		}
		resp, body := s.raw(t, "POST /wrap/run HTTP/1.1\r\nHost: "+s.addr+"\r\nAuthorization: Bearer "+testToken+"\r\n"+h+"Content-Length: 10\r\n\r\n{\"id\":\"a\"}")
		if resp.StatusCode != tt.want {
			t.Errorf("%q: %s %s", tt.headers, resp.Status, body)
		}
	}
}

func TestQueries(t *testing.T) {
	f := &fake{}
	s := serve(t, f)
	bad := map[string]string{
		"/wrap/wrapper": "query.id", "/wrap/wrapper?id=": "query.id", "/wrap/wrapper?id=a&id=b": "query.id", "/wrap/wrapper?ID=a": "query.ID",
		"/wrap/wrapper?id=%zz": "query", "/wrap/wrapper?id=a;b": "query", "/wrap/manifest?after=": "query.after", "/wrap/manifest?after=1.5": "query.after",
		"/wrap/manifest?after=18446744073709551616": "query.after", "/wrap/status?a": "query.a", "/wrap/secrets?name=x": "query.name",
	}
	for target, field := range bad {
		_, body := s.call(t, "GET", target, "")
		if e := decodeError(t, body); e.Code != "BAD_REQUEST" || e.Field == nil || *e.Field != field {
			t.Errorf("%s: %s", target, body)
		}
	}
	if calls, _ := f.asked(); len(calls) != 0 {
		t.Errorf("the backend was asked: %v", calls)
	}
	for _, target := range []string{"/wrap/wrapper?id=a%20b%2Fc", "/wrap/manifest?after=18446744073709551615"} {
		if resp, body := s.call(t, "GET", target, ""); resp.StatusCode != 200 {
			t.Errorf("%s: %s %s", target, resp.Status, body)
		}
	}
	calls, _ := f.asked()
	if want := `[Wrapper "a b/c" Manifest 18446744073709551615]`; fmt.Sprint(calls) != want {
		t.Errorf("got %v, want %s", calls, want)
	}
}

// A bug answers INTERNAL with an id that the log has too; what broke is in the
// log only. The connection and the server live on.
func TestInternalFaults(t *testing.T) {
	for id, inLog := range map[string]string{"!plain": "permission denied", "!panic": "goroutine", "!badanswer": "json"} {
		s := serve(t, &fake{})
		resp, body := s.call(t, "POST", "/wrap/run", `{"id":"`+id+`"}`)
		e := decodeError(t, body)
		if resp.StatusCode != 500 || e.Code != "INTERNAL" {
			t.Errorf("%s: %s %s", id, resp.Status, body)
		}
		words := strings.Fields(e.Message)
		logID := words[len(words)-1]
		if log := s.log.String(); len(logID) != 12 || !strings.Contains(log, "id="+logID) || !strings.Contains(log, inLog) {
			t.Errorf("%s: no line with id %q and %q in the log:\n%s", id, logID, inLog, log)
		}
		if strings.Contains(body, "secret") || strings.Contains(body, "denied") || strings.Contains(body, "goroutine") {
			t.Errorf("%s: the cause is in the answer: %s", id, body)
		}
		if resp, _ := s.call(t, "GET", "/wrap/status", ""); resp.StatusCode != 200 {
			t.Errorf("%s: the next call: %s", id, resp.Status)
		}
	}
	// A request that cannot be shown does not take the error along.
	s := serve(t, &fake{})
	if _, body := s.call(t, "POST", "/wrap/run", `{"id":"!badrequest"}`); decodeError(t, body).Code != "UPSTREAM_DNS" {
		t.Error(body)
	}
}

// The log has neither arguments nor queries nor the token.
func TestLogKeepsQuiet(t *testing.T) {
	s := serve(t, &fake{})
	s.call(t, "POST", "/wrap/run", `{"id":"a","args":{"q":"canary-args"}}`)
	s.call(t, "GET", "/wrap/wrapper?id=canary-query", "")
	s.call(t, "POST", "/wrap/run", `{"canary-member":1}`)
	s.call(t, "POST", "/wrap/run", `{"id":"!plain","args":{"q":"canary-args"}}`)
	log := s.log.String()
	for _, word := range []string{"canary", testToken} {
		if strings.Contains(log, word) {
			t.Errorf("%s in the log:\n%s", word, log)
		}
	}
	if !strings.Contains(log, "/wrap/run") {
		t.Errorf("the log is empty:\n%s", log)
	}
}

// A caller that goes away ends the backend's context.
func TestCallerGoesAway(t *testing.T) {
	f := &fake{hold: make(chan struct{}), arrived: make(chan struct{}), gone: make(chan error, 1)}
	s := serve(t, f)
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, s.request("POST", "/wrap/run", `{"id":"a"}`)); err != nil {
		t.Fatal(err)
	}
	<-f.arrived
	conn.Close()
	select {
	case err := <-f.gone:
		if err == nil || err.Error() != "context canceled" {
			t.Errorf("ended with %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("the backend still works for nobody")
	}
}

// The limit on reading a request is over once its body is here: a call that
// takes longer than it is answered all the same. A body that does not come ends
// the request.
func TestReadTimeout(t *testing.T) {
	limit := 100 * time.Millisecond
	f := &fake{hold: make(chan struct{}), arrived: make(chan struct{}), gone: make(chan error, 1)}
	s := serveWith(t, f, "127.0.0.1:0", func(srv *http.Server) { srv.ReadTimeout = limit })
	time.AfterFunc(3*limit, func() { close(f.hold) })
	if resp, body := s.call(t, "POST", "/wrap/run", `{"id":"a"}`); resp.StatusCode != 200 {
		t.Errorf("%s %s", resp.Status, body)
	}
	request := s.request("POST", "/wrap/run", `{"id":"a"}`)
	if resp, body := s.raw(t, request[:len(request)-1]); resp.StatusCode != 400 || decodeError(t, body).Code != "BAD_REQUEST" {
		t.Errorf("a body that does not come: %s %s", resp.Status, body)
	}
}

// Lists are lists, whatever the backend left out; its own values stay as they
// are.
func TestEmptyLists(t *testing.T) {
	m := &api.Manifest{Wrappers: []api.ManifestEntry{{ID: "a"}, {ID: "b", Required: []string{"x"}}}}
	s := serve(t, &fake{manifest: m})
	_, body := s.call(t, "GET", "/wrap/manifest", "")
	if strings.Contains(body, "null") || !strings.Contains(body, `"required":[]`) {
		t.Error(body)
	}
	if m.Wrappers[0].Required != nil {
		t.Error("the backend's own list was changed")
	}
	s = serve(t, &fake{manifest: &api.Manifest{Revision: 3}})
	if _, body := s.call(t, "GET", "/wrap/manifest", ""); body != `{"revision":3,"wrappers":[]}`+"\n" {
		t.Error(body)
	}
}

func TestServerLimits(t *testing.T) {
	s := serve(t, &fake{})
	auth := "Host: " + s.addr + "\r\nAuthorization: Bearer " + testToken + "\r\n"
	if resp, _ := s.raw(t, "GET /wrap/status HTTP/1.1\r\n"+auth+"X-Filler: "+strings.Repeat("x", 14<<10)+"\r\n\r\n"); resp.StatusCode != 200 {
		t.Errorf("14 KiB of header: %s", resp.Status)
	}
	if resp, _ := s.raw(t, "GET /wrap/status HTTP/1.1\r\n"+auth+"X-Filler: "+strings.Repeat("x", 24<<10)+"\r\n\r\n"); resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("24 KiB of header: %s", resp.Status)
	}
	srv := bridge.Server(nil)
	if srv.ReadHeaderTimeout <= 0 || srv.ReadTimeout <= 0 || srv.IdleTimeout <= 0 || srv.MaxHeaderBytes != 16<<10 || srv.WriteTimeout != 0 {
		t.Errorf("limits: %+v", srv)
	}
}

func TestErrorBody(t *testing.T) {
	got, err := json.Marshal(api.ErrorBody(fault.New("WRAPPER_NOT_FOUND", "no wrapper %q", "x"), nil))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"ok":false,"code":"WRAPPER_NOT_FOUND","status":null,"field":null,"retryable":false,"hint":"wrap_list or ` + "`hbrestd wrapper list`" + ` shows the saved ids.","message":"no wrapper \"x\"","details":[]}`
	if string(got) != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	e := fault.New("UPSTREAM_RATE_LIMITED", "m").With(fault.Status(429), fault.Field("upstream:email"), fault.RetryAfter(1500*time.Millisecond),
		fault.Details([]fault.Detail{{Field: "f", Code: "TYPE", Message: "m", Hint: "h"}}))
	status, field := 429, "upstream:email"
	whole := api.Error{
		Code: "UPSTREAM_RATE_LIMITED", Status: &status, Field: &field, Retryable: true, Hint: e.Hint, Message: "m", RetryAfterMs: 1500,
		Details: []api.Detail{{Field: "f", Code: "TYPE", Message: "m", Hint: "h"}},
	}
	a, _ := json.Marshal(api.ErrorBody(e, nil))
	b, _ := json.Marshal(whole)
	if string(a) != string(b) {
		t.Errorf("\n got %s\nwant %s", a, b)
	}
}
