package importer_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/internal/importer"
)

const collection = `{
  "info": {"name": "Pet shop", "schema": "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"},
  "variable": [
    {"key": "baseUrl", "value": "https://{{host}}/v1"},
    {"key": "host", "value": "pets.example.com"},
    {"key": "limit", "value": "10"},
    {"key": "kind", "value": "a b"},
    {"key": "count", "value": "7"},
    {"key": "api_token", "value": "abcdefgh12345678"}
  ],
  "auth": {"type": "bearer", "bearer": [{"key": "token", "value": "{{api_token}}", "type": "string"}]},
  "event": [{"listen": "prerequest", "script": {"exec": ["console.log(1)"]}}],
  "item": [
    {"name": "Pets", "item": [
      {"name": "List pets", "request": {"method": "GET", "description": "All pets. In pages.", "header": [
          {"key": "X-Trace", "value": "on"}, {"key": "X-Off", "value": "1", "disabled": true}],
        "url": {"raw": "{{baseUrl}}/pets?limit={{limit}}&kind={{kind}}&off=1", "host": ["{{baseUrl}}"], "path": ["pets"], "query": [
          {"key": "limit", "value": "{{limit}}", "description": "how many"}, {"key": "kind", "value": "{{kind}}"},
          {"key": "q", "value": "{{q}}"}, {"key": "off", "value": "1", "disabled": true}]}},
        "response": [{"name": "ok", "code": 200, "body": "[{\"id\":1,\"name\":\"Rex\"}]"}]},
      {"name": "Get pet", "request": {"auth": {"type": "noauth"}, "method": "GET", "url": {"raw": "{{baseUrl}}/pets/:petId/:sub",
        "variable": [{"key": "petId", "value": "42", "description": "the pet"}, {"key": "sub", "value": "<string>"}]}}},
      {"name": "Make pet", "event": [{"listen": "test", "script": {"exec": ["pm.test()"]}}], "request": {"method": "POST", "url": "{{baseUrl}}/pets",
        "header": "Content-Type: application/json", "body": {"mode": "raw", "raw": "{\"name\": \"{{name}}\", \"n\": {{count}}, \"x\": {{extra}}}"}}},
      {"name": "Language", "request": {"method": "PUT", "url": "{{baseUrl}}/pets/1",
        "body": {"mode": "raw", "raw": "{\"name\": \"Rex\"}", "options": {"raw": {"language": "json"}}}}},
      {"name": "Form", "request": {"method": "POST", "auth": {"type": "basic", "basic": {"username": "u", "password": "abcdefgh12345678"}}, "url": "https://pets.example.com/form", "body": {"mode": "urlencoded", "urlencoded": [
        {"key": "a b", "value": "c&d"}, {"key": "e", "value": "{{limit}}"}, {"key": "off", "value": "x", "disabled": true}]}}},
      {"name": "Graph", "request": {"method": "POST", "url": "{{baseUrl}}/graphql", "body": {"mode": "graphql", "graphql": {"query": "query Q($id: ID) { pet(id: $id) { name } }", "variables": "{\"id\": {{count}}}"}}}}
    ]},
    {"name": "Upload", "request": {"method": "POST", "url": "{{baseUrl}}/up", "body": {"mode": "formdata", "formdata": [{"key": "f", "type": "file"}]}}},
    {"name": "File", "request": {"method": "POST", "url": "{{baseUrl}}/up", "body": {"mode": "file", "file": {"src": "a"}}}},
    {"name": "Query key", "request": {"method": "GET", "url": "{{baseUrl}}/k", "auth": {"type": "apikey", "apikey": [{"key": "in", "value": "query"}, {"key": "key", "value": "k"}, {"key": "value", "value": "abcdefgh12345678"}]}}},
    {"name": "Signed", "request": {"method": "GET", "url": "{{baseUrl}}/k", "auth": {"type": "awsv4", "awsv4": [{"key": "secretKey", "value": "abcdefgh12345678"}]}}},
    {"name": "Elsewhere", "request": {"method": "GET", "url": "{{unknown}}/k"}},
    {"name": "Plain", "request": "https://pets.example.com/plain?x=1"}
  ]
}`

func TestPostman(t *testing.T) {
	r, err := importer.Postman([]byte(collection), importer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	const pets = "https://pets.example.com/v1"
	want := []struct{ id, args, request, secret string }{
		{"list-pets", `{"q":"x"}`, "GET " + pets + "/pets?limit=10&kind=a%20b&q=x\nX-Trace: on", "hbrestd secret set example --host pets.example.com"},
		{"get-pet", `{"sub":"s"}`, "GET " + pets + "/pets/42/s", ""},
		{"make-pet", `{"name":"Tom","extra":{"a":[1]}}`, "POST " + pets + "/pets\nContent-Type: application/json\n\n" + `{"name":"Tom","n":7,"x":{"a":[1]}}`, "hbrestd secret set example --host pets.example.com"},
		{"language", ``, "PUT " + pets + "/pets/1\nContent-Type: application/json\n\n" + `{"name":"Rex"}`, "hbrestd secret set example --host pets.example.com"},
		{"form", ``, "POST https://pets.example.com/form" + formHead + "\n\na+b=c%26d&e=10", "hbrestd secret set example-2 --host pets.example.com --basic"},
		{"graph", ``, "POST " + pets + "/graphql\nContent-Type: application/json\n\n" + `{"query":"query Q($id: ID) { pet(id: $id) { name } }","variables":{"id":7}}`, "hbrestd secret set example --host pets.example.com"},
		{"plain", ``, "GET https://pets.example.com/plain?x=1", "hbrestd secret set example --host pets.example.com"},
	}
	if len(r.Drafts) != len(want) {
		t.Fatalf("%d drafts, want %d; refused %+v", len(r.Drafts), len(want), r.Refused)
	}
	for i, w := range want {
		d := r.Drafts[i]
		command := ""
		if d.Secret != nil {
			command = d.Secret.Command
		}
		if got := requestText(build(t, d, w.args)); d.ID != w.id || got != w.request || command != w.secret {
			t.Errorf("got %s, %q\n%s\nwant %s, %q\n%s\n%s", d.ID, command, got, w.id, w.secret, w.request, d.Document)
		}
	}
	if d := r.Drafts[0]; !slices.Equal(d.Tags, []string{"Pets"}) || !strings.Contains(string(d.Document), `"response":`) || !strings.Contains(string(d.Document), `"description":"how many"`) {
		t.Errorf("tags %q, document %s", d.Tags, d.Document)
	}
	var codes []string
	for _, f := range r.Refused {
		codes = append(codes, f.Operation+" "+f.Code)
	}
	if wantCodes := []string{"POST /v1/up MULTIPART", "POST /v1/up FILE", "GET /v1/k CREDENTIAL_QUERY", "GET /v1/k AUTH_SCHEME", "GET /k SERVER"}; !slices.Equal(codes, wantCodes) {
		t.Errorf("refused %q, want %q", codes, wantCodes)
	}
	if r.Title != "Pet shop" || !slices.Contains(r.Dropped, "variable api_token") || !slices.Contains(r.Notes, "scripts of the collection and its folders are not run") {
		t.Errorf("title %q, dropped %q, notes %q", r.Title, r.Dropped, r.Notes)
	}
}

// TestPostmanBaseURL: another server stands for the variable at the beginning,
// whose path goes with it.
func TestPostmanBaseURL(t *testing.T) {
	r, err := importer.Postman([]byte(collection), importer.Options{BaseURL: "https://test.example.org/v2/", Only: []string{"elsewhere", "language"}, Prefix: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range r.Drafts {
		c := build(t, d, "{}")
		got = append(got, d.ID+" "+c.Method+" "+c.URL.String())
	}
	if want := []string{"shop.language PUT https://test.example.org/v2/pets/1", "shop.elsewhere GET https://test.example.org/v2/k"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPostmanUnread(t *testing.T) {
	for _, c := range []struct{ text, has string }{
		{``, "no JSON"},
		{`[]`, "no object"},
		{`{"item":[]}`, "no request"},
		{`{"info":{}}`, "no member item"},
		{`{"openapi":"3.0.0"}`, "OpenAPI"},
		{`{"log":{}}`, "HAR"},
		{`{"values":[],"name":"e"}`, "environment"},
		{`{"requests":[],"order":[]}`, "version 1"},
	} {
		if _, err := importer.Postman([]byte(c.text), importer.Options{}); err == nil || !strings.Contains(err.Error(), c.has) {
			t.Errorf("%s: %v, want %q", c.text, err, c.has)
		}
	}
}
