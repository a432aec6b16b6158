package importer_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/importer"
	"github.com/hyperbolic-gateway/hb-rest/internal/wrapper"
)

// doc30 is a document around paths and, below them, components.
func doc30(paths string, more ...string) []byte {
	return []byte(`{"openapi": "3.0.3", "info": {"title": "T", "version": "1"}, "servers": [{"url": "https://api.example.com/v1"}], "paths": {` + paths + `}` +
		strings.Join(append([]string{""}, more...), ", ") + `}`)
}

func parse(t *testing.T, data []byte, o importer.Options) *importer.Result {
	t.Helper()
	r, err := importer.OpenAPI(data, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func one(t *testing.T, data []byte) (importer.Draft, *wrapper.Wrapper) {
	t.Helper()
	r := parse(t, data, importer.Options{})
	if len(r.Drafts) != 1 {
		t.Fatalf("%d drafts, refused %v", len(r.Drafts), r.Refused)
	}
	w, report := wrapper.Parse(r.Drafts[0].Document)
	if w == nil {
		t.Fatal(report.Problems)
	}
	return r.Drafts[0], w
}

const ok200 = `"responses": {"200": {"description": "ok"}}`

func get(parameters string) string {
	return `"/x": {"get": {"parameters": [` + parameters + `], ` + ok200 + `}}`
}

func post(body string) string {
	return `"/x": {"post": {"requestBody": ` + body + `, ` + ok200 + `}}`
}

func TestRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, paths, code, reason string }{
		{
			"multipart", post(`{"content": {"multipart/form-data": {"schema": {"type": "object"}}}}`),
			"MULTIPART", "a body of several parts (multipart) cannot be sent",
		},
		{
			"binary", post(`{"required": true, "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}`),
			"BODY_TYPE", "a body of type application/octet-stream cannot be sent",
		},
		{
			"xml object", post(`{"required": true, "content": {"application/xml": {"schema": {"type": "object"}}}}`),
			"BODY_TYPE", "a body of type application/xml cannot be made from an object",
		},
		{
			"body of GET", `"/x": {"get": {"requestBody": {"required": true, "content": {"application/json": {}}}, ` + ok200 + `}}`,
			"BODY_NOT_ALLOWED", "a body cannot be sent with GET",
		},
		{"matrix", `"/x/{a}": {"get": {"parameters": [{"name": "a", "in": "path", "required": true, "style": "matrix", "schema": {"type": "string"}}], ` + ok200 + `}}`, "PARAM_STYLE", "the path parameter a has the style matrix, which cannot be sent"},
		{"label", `"/x/{a}": {"get": {"parameters": [{"name": "a", "in": "path", "required": true, "style": "label", "schema": {"type": "string"}}], ` + ok200 + `}}`, "PARAM_STYLE", "the path parameter a has the style label, which cannot be sent"},
		{"path object", `"/x/{a}": {"get": {"parameters": [{"name": "a", "in": "path", "required": true, "schema": {"type": "object"}}], ` + ok200 + `}}`, "PARAM_OBJECT", "the path parameter a is an object, which cannot be sent there"},
		{"required cookie", get(`{"name": "a", "in": "cookie", "required": true, "schema": {"type": "string"}}`), "COOKIE", "the required cookie parameter a cannot be sent: cookies are not sent"},
		{"deepObject without members", get(`{"name": "a", "in": "query", "required": true, "style": "deepObject", "schema": {"type": "object"}}`), "PARAM_OBJECT", "the required query parameter a cannot be sent: it is an object without declared members, which has no form in the query"},
		{"two of a spaceDelimited list", get(`{"name": "a", "in": "query", "required": true, "style": "spaceDelimited", "explode": false, "schema": {"type": "array", "minItems": 2, "items": {"type": "string"}}}`), "PARAM_STYLE", "the required query parameter a cannot be sent: a list in the style spaceDelimited cannot be sent"},
		{"required credential", get(`{"name": "api_key", "in": "query", "required": true, "schema": {"type": "string"}}`), "CREDENTIAL_QUERY", "the required query parameter api_key cannot be sent: its name is that of a credential, which is never put into an address"},
		{"connection header", get(`{"name": "Host", "in": "header", "required": true, "schema": {"type": "string"}}`), "HEADER", "the required header parameter Host cannot be sent: it belongs to the connection"},
		{"external reference", get(`{"$ref": "other.yaml#/a"}`), "EXTERNAL_REF", "it refers to another document (other.yaml#/a), which is not read"},
		{"external schema", post(`{"content": {"application/json": {"schema": {"$ref": "https://example.com/s.json"}}}}`), "EXTERNAL_REF", "it refers to another document (https://example.com/s.json), which is not read"},
		{"missing reference", get(`{"$ref": "#/components/parameters/None"}`), "REF_NOT_FOUND", "the reference #/components/parameters/None leads nowhere"},
		{"method", `"/x": {"trace": {` + ok200 + `}}`, "METHOD", "the method TRACE cannot be sent"},
		{"fragment", `"/x#y": {"get": {` + ok200 + `}}`, "PATH", "the path has a # in it, which is no part of a request"},
		{"brace", `"/x{y": {"get": {` + ok200 + `}}`, "PATH", "the path has a { without its }"},
		{"answer", `"/x": {"get": {"responses": {"200": {"description": "", "content": {"text/csv": {"schema": {"type": "string"}}}}}}}`, "RESPONSE_TYPE", "it answers with text/csv, which is not read as JSON"},
		{"file", `"/x": {"get": {"responses": {"200": {"description": "", "content": {"application/json": {"schema": {"type": "string", "format": "binary"}}}}}}}`, "RESPONSE_TYPE", "it answers with application/json, which is not read as JSON"},
		{"query key", `"/x": {"get": {"security": [{"q": []}], ` + ok200 + `}}`, "CREDENTIAL_QUERY", "its credential goes into the address (k), where it would be logged; that is not supported"},
		{"cookie key", `"/x": {"get": {"security": [{"c": []}], ` + ok200 + `}}`, "CREDENTIAL_COOKIE", "its credential is a cookie (k), which is not supported"},
		{"digest", `"/x": {"get": {"security": [{"d": []}], ` + ok200 + `}}`, "AUTH_SCHEME", "the HTTP authentication scheme digest is not supported"},
		{"basic and key", `"/x": {"get": {"security": [{"b": [], "h": []}], ` + ok200 + `}}`, "AUTH_COMBINED", "it needs b and h together, which one credential cannot hold"},
		{"form of objects", post(`{"required": true, "content": {"application/x-www-form-urlencoded": {"schema": {"type": "object", "required": ["a"], "properties": {"a": {"type": "object", "properties": {"b": {"type": "string"}}}}}}}}`), "FORM", "the required form parameter a cannot be sent: an object in a form is not defined without the style deepObject"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := parse(t, doc30(c.paths, `"components": {"securitySchemes": {
				"q": {"type": "apiKey", "in": "query", "name": "k"}, "c": {"type": "apiKey", "in": "cookie", "name": "k"},
				"d": {"type": "http", "scheme": "digest"}, "b": {"type": "http", "scheme": "basic"}, "h": {"type": "apiKey", "in": "header", "name": "X-Key"}}}`), importer.Options{})
			if len(r.Drafts) != 0 {
				t.Fatalf("drafted: %s", r.Drafts[0].Document)
			}
			path, method, _ := strings.Cut(c.paths[1:], `": {"`)
			method, _, _ = strings.Cut(method, `"`)
			want := []importer.Refusal{{Operation: strings.ToUpper(method) + " " + path, Reason: c.reason, Code: c.code}}
			if diff := cmp.Diff(want, r.Refused); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestUnreadable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, code, message string }{
		{"nothing", " \n", "IMPORT_INVALID", "the document is empty"},
		{"broken JSON", `{"openapi": "3.0.0",`, "IMPORT_INVALID", "the document is no JSON: the text ends too early at byte 20"},
		{"broken YAML", "openapi: 3.0.0\n\tpaths: {}\n", "IMPORT_INVALID", "the document is no YAML: line 2, column 1"},
		{"HTML", "<!DOCTYPE html>", "IMPORT_INVALID", "this is an HTML page or XML, not the document"},
		{"a list", "[]", "IMPORT_INVALID", "the document is no object with openapi or swagger in it"},
		{"other JSON", `{"a": 1}`, "IMPORT_INVALID", "the document says neither openapi nor swagger at its top"},
		{"1.2", `{"swagger": "1.2"}`, "IMPORT_INVALID", "OpenAPI 1.2 is not read: 2.0, 3.0 and 3.1 are"},
		{"Postman", `{"info": {}, "item": []}`, "IMPORT_INVALID", "this is a Postman collection"},
		{"HAR", `{"log": {}}`, "IMPORT_INVALID", "this is a HAR file"},
		{"no operation", `{"openapi": "3.0.0", "servers": [{"url": "https://a.example.com"}], "paths": {}}`, "IMPORT_INVALID", "the document has no operation"},
		{"no server", `{"openapi": "3.0.0", "paths": {"/x": {"get": {}}}}`, "IMPORT_NO_SERVER", "the document does not say where the API is"},
		{"relative server", `{"openapi": "3.0.0", "servers": [{"url": "/v2"}], "paths": {"/x": {"get": {}}}}`, "IMPORT_NO_SERVER", "the document's server is relative to the place where the document lies: /v2"},
		{"variable", `{"openapi": "3.0.0", "servers": [{"url": "https://{x}.example.com"}], "paths": {"/x": {"get": {}}}}`, "IMPORT_NO_SERVER", "the document's server has a variable without a default"},
		{"user", `{"openapi": "3.0.0", "servers": [{"url": "https://ada:canary-9f8e7d6c@example.com"}], "paths": {"/x": {"get": {}}}}`, "IMPORT_NO_SERVER", "the document's server has a user or a password in it"},
		{"too large", strings.Repeat(" ", importer.MaxSource+1), "IMPORT_INVALID", "the document has 20971521 bytes, at most 20971520 are read"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r, err := importer.OpenAPI([]byte(c.text), importer.Options{})
			var f *fault.Error
			if r != nil || !errors.As(err, &f) {
				t.Fatalf("got %v, %v", r, err)
			}
			if string(f.Code) != c.code || f.Message != c.message {
				t.Errorf("got %s %q", f.Code, f.Message)
			}
		})
	}
	// At the limit it is read, and is empty.
	_, err := importer.OpenAPI([]byte(strings.Repeat(" ", importer.MaxSource)), importer.Options{})
	if err == nil || !strings.Contains(err.Error(), "empty") {
		t.Errorf("at the limit: %v", err)
	}
}

func TestServers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, servers, base, want string }{
		{"https first", `[{"url": "http://a.example.com"}, {"url": "https://b.example.com/"}]`, "", "https://b.example.com/x"},
		{"http alone", `[{"url": "http://a.example.com:80/api/"}]`, "", "http://a.example.com/api/x"},
		{"variables", `[{"url": "https://{r}.example.com:{port}/{v}", "variables": {"r": {"default": "eu"}, "port": {"default": "8443"}, "v": {"enum": ["v3"]}}}]`, "", "https://eu.example.com:8443/v3/x"},
		{"IDNA", `[{"url": "https://BÜCHER.example"}]`, "", "https://xn--bcher-kva.example/x"},
		{"base URL", `[{"url": "https://b.example.com/v1"}]`, "https://c.example.com/v9/", "https://c.example.com/v9/x"},
		{"base URL for a relative one", `[{"url": "/v1"}]`, "http://127.0.0.1:4010", "http://127.0.0.1:4010/x"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			data := `{"openapi": "3.0.0", "servers": ` + c.servers + `, "paths": {"/x": {"get": {` + ok200 + `}}}}`
			r := parse(t, []byte(data), importer.Options{BaseURL: c.base})
			w, _ := wrapper.Parse(r.Drafts[0].Document)
			if w.Request.URL != c.want {
				t.Errorf("got %s, want %s", w.Request.URL, c.want)
			}
		})
	}
	for _, bad := range []string{"ftp://a.example.com", "a.example.com", "https://u:p@a.example.com", "https://a.example.com/?x=1", "https://a.example.com#x", "https://"} {
		if _, err := importer.OpenAPI(doc30(get("")), importer.Options{BaseURL: bad}); err == nil || !strings.Contains(err.Error(), "the base URL ") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

func TestIDs(t *testing.T) {
	t.Parallel()
	op := func(path, method, id string) string {
		if id != "" {
			id = `"operationId": "` + id + `", `
		}
		return `"` + path + `": {"` + method + `": {` + id + ok200 + `}}`
	}
	ids := func(o importer.Options, paths ...string) []string {
		var out []string
		for _, d := range parse(t, doc30(strings.Join(paths, ",")), o).Drafts {
			out = append(out, d.ID)
		}
		return out
	}
	for id, want := range map[string]string{
		"repos/list-for-user": "repos.list-for-user", "getPetById": "get-pet-by-id", "GetHTTPServer": "get-http-server", "list_all_pets": "list-all-pets",
		"Pets.List": "pets.list", "users::create": "users.create", "Get user's pets": "get-users-pets", "v1Beta2Get": "v1-beta2-get", "Größe ändern": "gr-e-ndern",
		"日本": "get-x", "": "get-x", "---": "get-x", "2fa": "2fa",
		strings.Repeat("a", 65): strings.Repeat("a", 57) + "-635361", strings.Repeat("a", 64): strings.Repeat("a", 64),
	} {
		if got := ids(importer.Options{}, op("/x", "get", id)); got[0] != want {
			t.Errorf("%q: got %s, want %s", id, got[0], want)
		}
	}
	a, b := op("/a", "get", "list"), op("/b", "get", "List")
	if got := ids(importer.Options{}, a, b); !slices.Equal(got, []string{"get-a", "get-b"}) {
		t.Errorf("two of one name: %v", got)
	}
	if got := ids(importer.Options{}, b, a); !slices.Equal(got, []string{"get-b", "get-a"}) {
		t.Errorf("in the other order: %v", got)
	}
	if got := ids(importer.Options{Only: []string{"GET /b"}}, a, b); !slices.Equal(got, []string{"get-b"}) {
		t.Errorf("one of them alone: %v", got)
	}
	if got := ids(importer.Options{Prefix: "My API"}, op("/pets/{id}", "delete", "")); !slices.Equal(got, []string{"my-api.delete-pets-id"}) {
		t.Errorf("prefix: %v", got)
	}
	// Paths that differ in what a name cannot say.
	got := ids(importer.Options{}, op("/a/b", "get", ""), op("/a-b", "get", ""), op("/c", "get", "get-a-b"))
	if len(slices.Compact(slices.Sorted(slices.Values(got)))) != 3 || got[2] != "get-a-b" {
		t.Errorf("collisions: %v", got)
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	paths := `"/pets": {"get": {"operationId": "pets/list", "tags": ["Pets", "Read"], ` + ok200 + `}, "post": {"operationId": "pets/add", "tags": ["Pets"], ` + ok200 + `}},
		"/users": {"get": {"operationId": "users/list", ` + ok200 + `}}`
	for _, c := range []struct {
		name string
		o    importer.Options
		want []string
	}{
		{"all", importer.Options{}, []string{"pets.list", "pets.add", "users.list"}},
		{"id", importer.Options{Only: []string{"pets.*"}}, []string{"pets.list", "pets.add"}},
		{"operationId", importer.Options{Only: []string{"users/list"}}, []string{"users.list"}},
		{"path", importer.Options{Only: []string{"/pets"}}, []string{"pets.list", "pets.add"}},
		{"method and path", importer.Options{Only: []string{"get /*"}}, []string{"pets.list", "users.list"}},
		{"one character", importer.Options{Only: []string{"?sers.list"}}, []string{"users.list"}},
		{"tag", importer.Options{Tags: []string{"read"}}, []string{"pets.list"}},
		{"method", importer.Options{Methods: []string{"post"}}, []string{"pets.add"}},
		{"all of them", importer.Options{Only: []string{"*list"}, Tags: []string{"pets"}, Methods: []string{"GET"}}, []string{"pets.list"}},
		{"none", importer.Options{Only: []string{"dogs"}}, nil},
	} {
		var got []string
		for _, d := range parse(t, doc30(paths), c.o).Drafts {
			got = append(got, d.ID)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

func TestCredentials(t *testing.T) {
	t.Parallel()
	const schemes = `"components": {"securitySchemes": {
		"key": {"type": "apiKey", "in": "header", "name": "X-Api-Key"}, "app": {"type": "apiKey", "in": "header", "name": "X-App-Id"},
		"bearer": {"type": "http", "scheme": "Bearer"}, "basic": {"type": "http", "scheme": "basic"},
		"machine": {"type": "oauth2", "flows": {"clientCredentials": {"tokenUrl": "https://login.example.com/token", "scopes": {}}}},
		"near": {"type": "oauth2", "flows": {"clientCredentials": {"tokenUrl": "oauth/token", "scopes": {}}}},
		"person": {"type": "oauth2", "flows": {"authorizationCode": {"authorizationUrl": "https://login.example.com/a", "tokenUrl": "https://login.example.com/t", "scopes": {}}}}}}`
	static := func(name, header, prefix, command string) *importer.Secret {
		return &importer.Secret{Name: name, Hosts: []string{"api.example.com"}, Kind: "static", Header: header, Prefix: prefix, Command: command}
	}
	for _, c := range []struct {
		name, security string
		auth           bool
		want           *importer.Secret
	}{
		{"none", `[]`, false, nil},
		{"key", `[{"key": []}]`, true, static("example-key", "X-Api-Key", "", "hbrestd secret set example-key --host api.example.com --header X-Api-Key")},
		{"bearer", `[{"bearer": []}]`, true, static("example-bearer", "Authorization", "Bearer ", "hbrestd secret set example-bearer --host api.example.com")},
		{"basic", `[{"basic": []}]`, true, &importer.Secret{Name: "example-basic", Hosts: []string{"api.example.com"}, Kind: "basic", Header: "Authorization", Prefix: "Basic ", Command: "hbrestd secret set example-basic --host api.example.com --basic"}},
		{"machine", `[{"machine": ["a.read", "a.write"]}]`, true, &importer.Secret{
			Name: "example-machine", Hosts: []string{"api.example.com"}, Kind: "oauth2", Header: "Authorization", Prefix: "Bearer ",
			Command: "hbrestd secret set example-machine --host api.example.com --oauth2 --token-url https://login.example.com/token --client-id CLIENT_ID --scope 'a.read a.write' --auth-style basic",
		}},
		{"relative token URL", `[{"near": []}]`, true, &importer.Secret{
			Name: "example-near", Hosts: []string{"api.example.com"}, Kind: "oauth2", Header: "Authorization", Prefix: "Bearer ",
			Command: "hbrestd secret set example-near --host api.example.com --oauth2 --token-url https://api.example.com/v1/oauth/token --client-id CLIENT_ID --auth-style basic",
		}},
		{"person", `[{"person": ["x"]}]`, true, static("example-person", "Authorization", "Bearer ", "hbrestd secret set example-person --host api.example.com")},
		{"both headers", `[{"key": [], "app": []}]`, true, static("example-key-app", "X-Api-Key", "", "hbrestd secret set example-key-app --host api.example.com --header X-Api-Key --header X-App-Id")},
		{"what needs no person first", `[{"person": []}, {"key": []}]`, true, static("example-key", "X-Api-Key", "", "hbrestd secret set example-key --host api.example.com --header X-Api-Key")},
		{"optional", `[{}, {"key": []}]`, false, static("example-key", "X-Api-Key", "", "hbrestd secret set example-key --host api.example.com --header X-Api-Key")},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d, w := one(t, doc30(`"/x": {"get": {"security": `+c.security+`, `+ok200+`}}`, schemes))
			if diff := cmp.Diff(c.want, d.Secret); diff != "" {
				t.Error(diff)
			}
			want := ""
			if c.auth {
				want = c.want.Name
			}
			if w.Request.Auth != want {
				t.Errorf("auth %q, want %q", w.Request.Auth, want)
			}
		})
	}
	t.Run("a header parameter", func(t *testing.T) {
		t.Parallel()
		r := parse(t, doc30(get(`{"name": "X-Auth-Token", "in": "header", "required": true, "schema": {"type": "string", "example": "canary"}}`)), importer.Options{})
		want := static("example", "X-Auth-Token", "", "hbrestd secret set example --host api.example.com --header X-Auth-Token")
		if diff := cmp.Diff(want, r.Drafts[0].Secret); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"header X-Auth-Token of GET /x"}, r.Dropped); diff != "" {
			t.Error(diff)
		}
	})
}

func TestPaging(t *testing.T) {
	t.Parallel()
	list := func(envelope string) string {
		item := `{"type": "object", "properties": {"id": {"type": "integer"}, "name": {"type": "string"}}}`
		return fmt.Sprintf(envelope, `{"type": "array", "items": `+item+`}`)
	}
	bare := `%s`
	for _, c := range []struct{ name, params, schema, headers, want string }{
		{"none", ``, bare, ``, ``},
		{"link header", `{"name": "per_page", "in": "query", "schema": {"type": "integer"}}`, bare, `"Link": {"schema": {"type": "string"}}`, `{"type":"link","nextUrl":"header:Link"}`},
		{
			"pages from one", `{"name": "page", "in": "query", "schema": {"type": "integer", "default": 1}}, {"name": "per_page", "in": "query", "schema": {"type": "integer", "default": 20, "maximum": 100}}`,
			bare, ``, `{"type":"offset","offsetParam":"page","start":1,"step":"page","limitParam":"per_page","pageSize":20}`,
		},
		{"pages from who knows", `{"name": "page", "in": "query", "schema": {"type": "integer"}}, {"name": "per_page", "in": "query", "schema": {"type": "integer"}}`, bare, ``, ``},
		{
			"offset and total", `{"name": "offset", "in": "query", "schema": {"type": "integer"}}, {"name": "limit", "in": "query", "schema": {"type": "integer", "maximum": 25}}`,
			`{"type": "object", "properties": {"total": {"type": "integer"}, "data": %s}}`, ``, `{"type":"offset","offsetParam":"offset","limitParam":"limit","pageSize":25,"total":"total"}`,
		},
		{
			"offset from one", `{"name": "start-index", "in": "query", "schema": {"type": "integer", "minimum": 1}}, {"name": "max-results", "in": "query", "schema": {"type": "integer"}}`,
			bare, ``, `{"type":"offset","offsetParam":"start-index","start":1,"limitParam":"max-results","pageSize":50}`,
		},
		{"startIndex from who knows", `{"name": "startIndex", "in": "query", "schema": {"type": "integer"}}, {"name": "count", "in": "query", "schema": {"type": "integer"}}`, bare, ``, ``},
		{"two kinds", `{"name": "offset", "in": "query", "schema": {"type": "integer"}}, {"name": "page", "in": "query", "schema": {"type": "integer", "default": 1}}, {"name": "limit", "in": "query", "schema": {"type": "integer"}}`, bare, ``, ``},
		{
			"cursor", `{"name": "cursor", "in": "query", "schema": {"type": "string"}}`,
			`{"type": "object", "properties": {"items": %s, "next_cursor": {"type": "string"}}}`, ``, `{"type":"cursor","next":"$.next_cursor","cursorParam":"cursor"}`,
		},
		{
			"cursor under another name", `{"name": "page_token", "in": "query", "schema": {"type": "string"}}`,
			`{"type": "object", "properties": {"items": %s, "next_cursor": {"type": "string"}}}`, ``, `{"type":"cursor","next":"$.next_cursor","cursorParam":"page_token"}`,
		},
		{"cursor without a parameter", ``, `{"type": "object", "properties": {"items": %s, "next_cursor": {"type": "string"}}}`, ``, ``},
		{"address of the next page", ``, `{"type": "object", "properties": {"items": %s, "next": {"type": "string", "format": "uri", "nullable": true}}}`, ``, `{"type":"link","nextUrl":"$.next"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, w := one(t, doc30(`"/x": {"get": {"parameters": [`+c.params+`], "responses": {"200": {"description": "", "headers": {`+c.headers+`}, "content": {"application/json": {"schema": `+list(c.schema)+`}}}}}}`))
			var doc struct {
				Response struct{ Pagination json.RawMessage }
			}
			if err := json.Unmarshal(w.Document(), &doc); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, string(doc.Response.Pagination)); diff != "" {
				t.Error(diff)
			}
			// What the walk sets is no argument.
			for _, name := range []string{"offset", "limit", "page", "per_page"} {
				if _, ok := w.Input.Property(name); ok && strings.Contains(c.want, `"offset"`) {
					t.Errorf("%s is still an argument", name)
				}
			}
		})
	}
}
