package daemon_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
)

// The mistakes that agents and people make most, and what the text must hold:
// its code, the place, and what to do next. Nothing reaches the API.
func TestTypicalMistakesOfAnAgent(t *testing.T) {
	t.Parallel()
	tr := newTrap(t)
	base := fmt.Sprintf("http://127.0.0.1:%d", tr.port())
	w := newWorld(t, private, outbound.Options{})
	w.create(mirrorDoc(base))
	w.create(`{"schemaVersion":1,"id":"orders.create","name":"Create order","request":{"method":"POST","url":"` + base + `/o/{{path|raw}}","headers":{"X-A":"{{h}}"},"body":{"c":"{{c}}","tags":"{{tags}}"}},
	 "inputSchema":{"type":"object","properties":{"c":{"type":"string","minLength":2},"tags":{"type":"array","items":{"type":"string"},"minItems":1},"path":{"type":"string","default":"x"},"h":{"type":"string"},
	  "size":{"type":"string","enum":["small","large"]},"deep":{"type":"object","properties":{"n":{"type":"integer","minimum":1}},"required":["n"]}},"required":["c"],"additionalProperties":false}}`)
	w.create(`{"schemaVersion":1,"id":"two.methods","name":"Two","request":{"method":["GET","DELETE"],"url":"` + base + `/"}}`)
	a := w.agent(w.d.Addr())
	for _, c := range []struct {
		tool, args, code string
		says             []string
	}{
		{"wrap_run", `{"id":"miror","args":{"n":1}}`, "WRAPPER_NOT_FOUND", []string{`"miror"`, "near: mirror", "wrap_list"}},
		{"wrap_run", `{"id":"Mirror","args":{"n":1}}`, "WRAPPER_NOT_FOUND", []string{"near: mirror"}},
		{"wrap_get", `{"id":"nope"}`, "WRAPPER_NOT_FOUND", []string{`"nope"`, "wrap_list"}},
		{"wrap_run", `{"id":"mirror"}`, "ARGS_INVALID", []string{"args.n", "required", "integer", "wrap_get"}},
		{"wrap_run", `{"id":"mirror","args":{"n":"5"}}`, "ARGS_INVALID", []string{"args.n", "integer", "string", "without quotes"}},
		{"wrap_run", `{"id":"mirror","args":{"n":5.5}}`, "ARGS_INVALID", []string{"args.n", "integer", "fraction"}},
		{"wrap_run", `{"id":"orders.create","args":{"c":"abc","tag":["a"]}}`, "ARGS_INVALID", []string{"args.tag", "unknown", "c, tags, path, h, size, deep", `"tags"`}},
		{"wrap_run", `{"id":"orders.create","args":{"c":"abc","tags":"[\"a\",\"b\"]"}}`, "ARGS_INVALID", []string{"args.tags", "array", "string"}},
		{
			"wrap_run", `{"id":"orders.create","args":{"c":"A","size":"medium","deep":{"n":0},"tags":[]}}`, "ARGS_INVALID",
			[]string{"args.c", "at least 2", "args.size", `"small", "large"`, "args.deep.n", "at least 1", "args.tags"},
		}, // all at once
		{"wrap_run", `{"id":"orders.create","args":{"c":null}}`, "ARGS_INVALID", []string{"args.c", "null", "leave it out"}},
		{"wrap_run", `{"id":"orders.create","args":{"c":"abc","path":"../x"}}`, "ARGS_INVALID", []string{"args.path", `".."`, "a/b"}},
		{"wrap_run", `{"id":"orders.create","args":{"c":"abc","h":"a\nb"}}`, "ARGS_INVALID", []string{"args.h", "X-A", "one line"}},
		{"wrap_run", `{"id":"two.methods","args":{"method":"POST"}}`, "ARGS_INVALID", []string{"args.method", `"GET", "DELETE"`}},
		{"wrap_run", `{"id":"mirror","args":"{\"n\":5}"}`, "BAD_REQUEST", []string{"args", "object", "string"}},
		{"wrap_run", `{"id":"mirror","args":[1]}`, "BAD_REQUEST", []string{"args", "object", "array"}},
		{"wrap_run", `{"id":"mirror","n":5}`, "BAD_REQUEST", []string{`"n"`, `"args":{"n":...}`, "id (required)"}},
		{"wrap_run", `{}`, "BAD_REQUEST", []string{"needs id"}},
		{"wrap_run", `{"id":5}`, "BAD_REQUEST", []string{"id must be a string", "5"}},
		{"wrap_run", `{"id":"mirror","args":{"n":5},"format":"xml"}`, "FORMAT_INVALID", []string{"xml", "markdown, json or both"}},
		{"wrap_run", `{"id":"mirror","args":{"n":5},"max_pages":26}`, "MAX_PAGES_INVALID", []string{"26", "1 to 25"}},
		{"wrap_run", `{"id":"mirror","args":{"n":5},"max_pages":"3"}`, "BAD_REQUEST", []string{"max_pages", "whole number", "string"}},
		{"wrap_create", `{"wrapper":"{\"id\":\"x\"}"}`, "BAD_REQUEST", []string{"wrapper must be an object", "not as a string"}},
		{"wrap_create", `{"wrapper":{}}`, "WRAPPER_INVALID", []string{"wrapper.schemaVersion", "wrapper.id", "wrapper.request"}},
		{"wrap_create", `{"wrapper":` + mirrorDoc(base) + `}`, "WRAPPER_EXISTS", []string{`"mirror"`, "wrap_update"}},
		{"wrap_create", `{"wrapper":{"schemaVersion":1,"id":"x","name":"X","request":{"method":"GET","url":"https://api.example.com/{{id}}"}}}`, "WRAPPER_INVALID", []string{"wrapper.request.url", "{{id}}", "inputSchema.properties"}},
		{"wrap_create", `{"wrapper":{"schemaVersion":1,"id":"x","name":"X","request":{"method":"GET","url":"api.example.com/x"}}}`, "WRAPPER_INVALID", []string{"wrapper.request.url", "https://"}},
		{"wrap_create", `{"wrapper":{"schemaVersion":1,"id":"x","name":"X","request":{"method":"GET","url":"https://api.example.com/","body":{"a":1}}}}`, "WRAPPER_INVALID", []string{"wrapper.request.body", "GET", "POST"}},
		{"wrap_create", `{"wrapper":{"schemaVersion":1,"id":"x","name":"X","request":{"method":"GET","url":"https://api.example.com/"},"exposeAsTool":"yes"}}`, "WRAPPER_INVALID", []string{"wrapper.exposeAsTool", "boolean", "string"}},
		{"wrap_update", `{"wrapper":` + get("nope", "https://api.example.com/") + `}`, "WRAPPER_NOT_FOUND", []string{`"nope"`}},
		{"wrap_delete", `{"id":"nope"}`, "WRAPPER_NOT_FOUND", []string{`"nope"`}},
		{"wrap_test", `{}`, "BAD_REQUEST", []string{"id", "wrapper"}},
		{"wrap_test", `{"id":"mirror","sample":"not json"}`, "SAMPLE_INVALID", []string{"sample", "JSON"}},
		{"wrap_test", `{"id":"mirror","args":{"n":1},"dryRun":"false"}`, "BAD_REQUEST", []string{"dryRun", "true or false"}},
		{"wrap_derive", `{}`, "DERIVE_NO_INPUT", []string{"sample", "url"}},
		{"wrap_derive", `{"sample":"[]"}`, "DERIVE_NOTHING", []string{"empty"}},
		{"wrap_derive", `{"sample":"{\"a\":1}","max_fields":50}`, "DERIVE_MAX_FIELDS", []string{"50", "1 to 20"}},
		{"wrap_derive", `{"url":"http://169.254.169.254/"}`, "POLICY_PRIVATE_ADDRESS", []string{"169.254.169.254"}},
		{"wrap_list", `{"filter":"x"}`, "BAD_REQUEST", []string{`"filter"`, "query, limit"}},
		{"wrap_secret_list", `{"secret":"x"}`, "BAD_REQUEST", []string{`"secret"`, "no arguments"}}, // D38
		{"wrap_reload", `[]`, "BAD_REQUEST", []string{"object", "array"}},
	} {
		text, failed, err := a.call(c.tool, c.args)
		if err != nil || !failed || !strings.HasPrefix(text, c.code+":") {
			t.Errorf("%s %s: want %s, got %v %v\n%s", c.tool, c.args, c.code, failed, err, text)
			continue
		}
		for _, s := range append(c.says, "Hint: ", "Retryable: ") {
			if !strings.Contains(text, s) {
				t.Errorf("%s %s does not say %q:\n%s", c.tool, c.args, s, text)
			}
		}
		if len(text) > 1200 {
			t.Errorf("%s %s: the text has %d bytes:\n%s", c.tool, c.args, len(text), text)
		}
	}
	tr.silent(t, "mistakes")
}

// D38 for the tools: none of them takes a credential, by any name.
func TestNoToolTakesACredential(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, outbound.Options{})
	a := w.agent(w.d.Addr())
	for _, tool := range []string{"wrap_list", "wrap_get", "wrap_secret_list", "wrap_derive", "wrap_create", "wrap_update", "wrap_delete", "wrap_run", "wrap_test", "wrap_reload"} {
		for _, name := range []string{"secret", "value", "password", "token", "credential", "auth"} {
			text, failed, err := a.call(tool, `{"`+name+`":"canary-value"}`)
			if err != nil || !failed || !strings.HasPrefix(text, "BAD_REQUEST:") || !strings.Contains(text, `"`+name+`"`) || strings.Contains(text, "canary-value") {
				t.Errorf("%s with %s: %v %v %s", tool, name, failed, err, text)
			}
		}
	}
	for _, tool := range []string{"wrap_secret_set", "wrap_secret_create", "wrap_secret_bind", "wrap_approve", "wrap_allow"} {
		if _, _, err := a.call(tool, `{}`); err == nil {
			t.Errorf("there is a tool %s", tool)
		}
	}
}

// The same for a person with curl.
func TestTypicalMistakesWithCurl(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, outbound.Options{})
	const asJSON = "application/json"
	for _, c := range []struct {
		method, path, contentType, body string
		status                          int
		code, field                     string
		says                            []string // of message and hint
	}{
		{"POST", "/wrap/run", asJSON, `{"id":"mirror","args":{"n":5}`, 400, "BAD_JSON", "body", []string{"byte 29", "unexpected end"}},
		{"POST", "/wrap/run", asJSON, `{"id":"mirror","args":{"n":5},}`, 400, "BAD_JSON", "body", []string{"byte 29"}},
		{"POST", "/wrap/run", asJSON, `{'id':'mirror'}`, 400, "BAD_JSON", "body", []string{"byte 1"}},
		{"POST", "/wrap/run", asJSON, ``, 400, "BAD_JSON", "body", []string{"empty", "JSON object"}},
		{"POST", "/wrap/run", asJSON, `[]`, 400, "BAD_REQUEST", "body", []string{"object", "array"}},
		{"POST", "/wrap/run", "application/x-www-form-urlencoded", `{"id":"mirror"}`, 415, "UNSUPPORTED_MEDIA_TYPE", "", []string{"application/x-www-form-urlencoded", "Content-Type: application/json"}},
		{"POST", "/wrap/run", "", `{"id":"mirror"}`, 415, "UNSUPPORTED_MEDIA_TYPE", "", []string{"Content-Type: application/json"}},
		{"GET", "/wrap/run", "", ``, 405, "METHOD_NOT_ALLOWED", "", []string{"GET", "POST"}},
		{"PUT", "/wrap/wrappers", asJSON, `{}`, 405, "METHOD_NOT_ALLOWED", "", []string{"PUT", "POST"}},
		{"POST", "/wrap/secrets", asJSON, `{"name":"k","value":"v"}`, 405, "METHOD_NOT_ALLOWED", "", []string{"person"}},
		{"POST", "/wrap/run", asJSON, `{"id":"mirror","args":{"n":"` + strings.Repeat("x", 8<<20) + `"}}`, 413, "BODY_TOO_LARGE", "body", []string{"8 MiB"}},
		{"POST", "/wrap/run", asJSON, `{"args":{}}`, 400, "BAD_REQUEST", "body.id", []string{"which wrapper"}},
		{"POST", "/wrap/run", asJSON, `{"id":"mirror","arguments":{"n":5}}`, 400, "BAD_REQUEST", "body.arguments", []string{"id, args, format"}},
		{"POST", "/wrap/run", asJSON, `{"id":"mirror","args":[5]}`, 400, "BAD_REQUEST", "body.args", []string{"object", "array"}},
		{"POST", "/wrap/run", asJSON, `{"id":"mirror"}`, 404, "WRAPPER_NOT_FOUND", "id", []string{`"mirror"`}},
		{"POST", "/wrap/wrappers", asJSON, `{"wrapper":{}}`, 400, "BAD_REQUEST", "body.action", []string{"create, update, delete or get"}},
		{"POST", "/wrap/wrappers", asJSON, get("x", "https://api.example.com/"), 400, "BAD_REQUEST", "body.schemaVersion", []string{"action, id, wrapper"}},
		{"GET", "/wrap/wrapper", "", ``, 400, "BAD_REQUEST", "query.id", []string{"?id=ID"}},
		{"GET", "/wrap/list", "", ``, 404, "ROUTE_NOT_FOUND", "", []string{"/wrap/list"}},
	} {
		req, err := http.NewRequest(c.method, "http://"+w.d.Addr()+c.path, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+w.tok)
		if c.contentType != "" {
			req.Header.Set("Content-Type", c.contentType)
		}
		a, err := w.do(req)
		if err != nil || a.HTTP != c.status || a.Code != c.code || a.Field != c.field || a.Hint == "" {
			t.Errorf("%s %s %.60s: want %d %s at %q, got %v %+v", c.method, c.path, c.body, c.status, c.code, c.field, err, a)
			continue
		}
		for _, s := range c.says {
			if !strings.Contains(a.Message+"\n"+a.Hint, s) {
				t.Errorf("%s %s %.60s does not say %q: %s", c.method, c.path, c.body, s, a.Raw)
			}
		}
	}
}
