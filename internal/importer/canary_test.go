package importer_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/internal/importer"
)

// canary is the value that must not be found again.
const canary = "sk_live_51CanaryCanary9f8e7d6c"

// TestOpenAPICanary puts a credential wherever documents were seen to hold
// one, and looks for it in everything that the import gives.
func TestOpenAPICanary(t *testing.T) {
	t.Parallel()
	paths := strings.ReplaceAll(`
	"/login": {"post": {
		"summary": "Use CANARY", "description": "Send <code>Authorization: Bearer CANARY</code>, as in https://u:CANARY@api.example.com/?api_key=CANARY.",
		"tags": ["CANARY"], "operationId": "CANARY",
		"requestBody": {"required": true, "content": {"application/json": {
			"example": {"user": "ada", "password": "CANARY"},
			"schema": {"type": "object", "example": {"token": "CANARY"}, "properties": {
				"password": {"type": "string", "default": "CANARY", "example": "CANARY"},
				"user": {"type": "string", "default": "Bearer CANARY", "enum": ["CANARY", "b"]},
				"hook": {"type": "string", "example": "https://x.example.com/?token=CANARY", "description": "api_key=CANARY"},
				"auth": {"type": "object", "example": {"client_secret": "CANARY"}},
				"pattern": {"type": "string", "pattern": "^CANARY$", "format": "CANARY"}}}}}},
		"responses": {"200": {"description": "", "content": {"application/json": {"example": {"id": 1, "name": "x", "access_token": "CANARY", "CANARY": "CANARY"}}}}}}},
	"/get/{CANARY}": {"get": {
		"parameters": [
			{"name": "Authorization", "in": "header", "example": "Bearer CANARY", "schema": {"type": "string", "default": "CANARY"}},
			{"name": "X-Api-Key", "in": "header", "required": true, "example": "CANARY", "schema": {"type": "string", "default": "CANARY", "enum": ["CANARY"]}},
			{"name": "session_id", "in": "cookie", "schema": {"type": "string", "default": "CANARY"}},
			{"name": "api_key", "in": "query", "schema": {"type": "string", "default": "CANARY"}},
			{"name": "secret_note", "in": "query", "required": true, "schema": {"type": "string", "default": "CANARY"}}],
		"responses": {"200": {"description": ""}}}},
	"/files": {"post": {"requestBody": {"content": {"CANARY/x": {}}}, "responses": {"200": {"description": ""}}}},
	"/out": {"get": {"parameters": [{"$ref": "https://u:CANARY@example.com/?token=CANARY"}], "responses": {}}},
	"/own": {"servers": [{"url": "https://u:CANARY@example.com/"}], "get": {"responses": {}}}`, "CANARY", canary)
	data := doc30(paths, strings.ReplaceAll(`"security": [{"CANARY": []}], "components": {"securitySchemes": {
		"CANARY": {"type": "oauth2", "description": "CANARY", "flows": {"clientCredentials": {"tokenUrl": "https://u:CANARY@login.example.com/t?client_secret=CANARY", "scopes": {"CANARY": "x"}}}}}}`, "CANARY", canary))
	r, err := importer.OpenAPI(data, importer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Drafts) == 0 || len(r.Refused) == 0 || len(r.Dropped) == 0 {
		t.Fatalf("the document shows too little: %d drafts, %d refused, %d dropped", len(r.Drafts), len(r.Refused), len(r.Dropped))
	}
	var everything strings.Builder
	for _, d := range r.Drafts {
		everything.Write(d.Document)
	}
	rest, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	everything.Write(rest)
	hunt(t, everything.String())

	for _, broken := range []string{
		`{"openapi": "3.0.0", "x": "` + canary, "openapi: 3.0.0\nx: \"" + canary + "\n  y: [", `{"openapi": "` + canary + `"}`,
		`{"openapi": "3.0.0", "servers": [{"url": "//u:` + canary + `@x"}], "paths": {"/x": {"get": {}}}}`,
		"openapi: 3.0.0\n" + canary + ": &a\n*b : 1\n", "- *" + canary,
	} {
		_, err := importer.OpenAPI([]byte(broken), importer.Options{})
		if err == nil {
			t.Errorf("%q is read", broken)
			continue
		}
		hunt(t, err.Error())
	}
	if _, err := importer.OpenAPI(doc30(get("")), importer.Options{BaseURL: "https://u:" + canary + "@x.example.com"}); err == nil {
		t.Error("a base URL with a password is taken")
	} else {
		hunt(t, err.Error())
	}
}

// hunt looks for the canary in five encodings; ids are lower case.
func hunt(t *testing.T, text string) {
	t.Helper()
	low := strings.ToLower(text)
	for name, form := range map[string]string{
		"plain": canary, "base64": base64.StdEncoding.EncodeToString([]byte(canary)), "hex": hex.EncodeToString([]byte(canary)),
		"url": url.QueryEscape(canary), "slug": "51-canary-canary9f8e7d6c", "joined": "canarycanary9f8e7d6c",
	} {
		if i := strings.Index(low, strings.ToLower(form)); i >= 0 {
			t.Errorf("the canary is there as %s: …%s…", name, text[max(0, i-80):min(len(text), i+60)])
		}
	}
}
