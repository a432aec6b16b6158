package importer_test

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/internal/importer"
)

// harEntry is one entry: request, then the answer.
func harEntry(kind, method, url, more string, status int, media, body string) string {
	return fmt.Sprintf(`{"_resourceType":%q,"request":{"method":%q,"url":%q%s},"response":{"status":%d,"content":{"mimeType":%q,"text":%q}}}`, kind, method, url, more, status, media, body)
}

func harFile(entries ...string) []byte {
	return []byte(`{"log":{"version":"1.2","entries":[` + strings.Join(entries, ",") + `]}}`)
}

func TestHAR(t *testing.T) {
	const headers = `,"headers":[{"name":":authority","value":"app.example.com"},{"name":"User-Agent","value":"Mozilla/5.0"},{"name":"sec-ch-ua","value":"x"},
		{"name":"Accept","value":"application/json, text/plain, */*"},{"name":"Accept-Encoding","value":"gzip"},{"name":"X-App","value":"web"},
		{"name":"Authorization","value":"Bearer abcdefgh12345678"},{"name":"Cookie","value":"sid=abcdefgh12345678"}]`
	const base = "https://app.example.com"
	encoded := base64.StdEncoding.EncodeToString([]byte(`{"id":5,"name":"Rex"}`))
	data := harFile(
		harEntry("document", "GET", base+"/", "", 200, "text/html", "<html>"),
		harEntry("script", "GET", base+"/app.js", "", 200, "text/javascript", "1"),
		harEntry("preflight", "OPTIONS", base+"/api/pets", "", 204, "", ""),
		harEntry("xhr", "GET", base+"/api/pets?page=1&sort=name", headers, 200, "application/json; charset=utf-8", `[{"id":1,"name":"Rex"}]`),
		harEntry("xhr", "GET", base+"/api/pets?page=2&sort=name&q=a+b", headers, 200, "application/json", `[{"id":2,"name":"Tom"}]`),
		harEntry("fetch", "GET", base+"/api/broken", headers, 500, "application/json", `{}`),
		`{"_resourceType":"fetch","request":{"method":"GET","url":"`+base+`/api/pets/5"},"response":{"status":200,"content":{"mimeType":"application/json","encoding":"base64","text":"`+encoded+`"}}}`,
		harEntry("fetch", "POST", base+"/api/pets", `,"headers":[{"name":"content-type","value":"application/json"}],"postData":{"mimeType":"application/json","text":"{\"name\":\"Rex\",\"age\":3}"}`, 201, "application/json", `{"id":9}`),
		harEntry("fetch", "POST", base+"/graphql", `,"postData":{"mimeType":"application/json","text":"{\"operationName\":\"A\",\"query\":\"query A { a }\"}"}`, 200, "application/json", `{"data":{"a":1}}`),
		harEntry("fetch", "POST", base+"/graphql", `,"postData":{"mimeType":"application/json","text":"{\"operationName\":\"B\",\"query\":\"query B { b }\"}"}`, 200, "application/json", `{"data":{"b":1}}`),
		harEntry("fetch", "DELETE", base+"/api/pets/5", "", 204, "", ""),
		harEntry("fetch", "POST", base+"/api/login", `,"postData":{"mimeType":"application/x-www-form-urlencoded","params":[{"name":"user","value":"ada"},{"name":"password","value":"abcdefgh87654321"}]}`, 200, "application/json", `{"ok":true}`),
		harEntry("fetch", "POST", base+"/api/file", `,"postData":{"mimeType":"multipart/form-data; boundary=x","text":"--x"}`, 200, "application/json", `{"ok":true}`),
		harEntry("fetch", "GET", base+"/api/x?access_token=abcdefgh99999999", "", 200, "application/json", `{"ok":true}`),
	)
	r, err := importer.HAR(data, importer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	const json = "\nContent-Type: application/json\n\n"
	want := []struct{ id, args, request string }{
		{"get-api-pets", ``, "GET " + base + "/api/pets?page=1&sort=name\nX-App: web"},
		{"get-api-pets-5", ``, "GET " + base + "/api/pets/5"},
		{"post-api-pets", ``, "POST " + base + "/api/pets" + json + `{"name":"Rex","age":3}`},
		{"", ``, "POST " + base + "/graphql" + json + `{"operationName":"A","query":"query A { a }"}`},
		{"", ``, "POST " + base + "/graphql" + json + `{"operationName":"B","query":"query B { b }"}`},
		{"delete-api-pets-5", ``, "DELETE " + base + "/api/pets/5"},
		{"post-api-login", `{"password":"p"}`, "POST " + base + "/api/login" + formHead + "\n\nuser=ada&password=p"},
	}
	if len(r.Drafts) != len(want) {
		t.Fatalf("%d drafts, want %d; refused %+v", len(r.Drafts), len(want), r.Refused)
	}
	for i, w := range want {
		d := r.Drafts[i]
		if got := requestText(build(t, d, w.args)); w.id != "" && d.ID != w.id || got != w.request {
			t.Errorf("got %s\n%s\nwant %s\n%s\n%s", d.ID, got, w.id, w.request, d.Document)
		}
	}
	if got := requestText(build(t, r.Drafts[0], `{"page":3,"q":"a b"}`)); got != "GET "+base+"/api/pets?page=3&sort=name&q=a%20b\nX-App: web" {
		t.Errorf("with the parameter of the second call:\n%s", got)
	}
	for i := range 2 {
		if !strings.Contains(string(r.Drafts[i].Document), `"response":`) {
			t.Errorf("no recipe: %s", r.Drafts[i].Document)
		}
	}
	if s := r.Drafts[0].Secret; s == nil || s.Command != "hbrestd secret set example --host app.example.com" {
		t.Errorf("secret %+v", s)
	}
	var codes []string
	for _, f := range r.Refused {
		codes = append(codes, f.Operation+" "+f.Code)
	}
	if want := []string{"POST /api/file MULTIPART", "GET /api/x CREDENTIAL_QUERY"}; !slices.Equal(codes, want) {
		t.Errorf("refused %q, want %q", codes, want)
	}
	if want := []string{"header Authorization of GET /api/pets", "header Cookie of GET /api/pets", "form password of POST /api/login", "query access_token of GET /api/x"}; !slices.Equal(r.Dropped, want) {
		t.Errorf("dropped %q, want %q", r.Dropped, want)
	}
	if want := []string{"3 of 14 recorded requests are no calls of an API: pages, scripts, pictures", "1 of 14 recorded requests failed and are left out"}; !slices.Equal(r.Notes, want) {
		t.Errorf("notes %q, want %q", r.Notes, want)
	}
}

func TestHARUnread(t *testing.T) {
	for _, c := range []struct{ text, has string }{
		{``, "no JSON"},
		{`{"log":{}}`, "log.entries"},
		{`{"log":{"entries":[{}]}}`, "none of the 1"},
		{`{"info":{},"item":[]}`, "Postman"},
		{`{"openapi":"3.1.0"}`, "OpenAPI"},
		{strings.Repeat(" ", importer.MaxSource+1), "at most"},
	} {
		if _, err := importer.HAR([]byte(c.text), importer.Options{}); err == nil || !strings.Contains(err.Error(), c.has) {
			t.Errorf("%.40s: %v, want %q", c.text, err, c.has)
		}
	}
}
