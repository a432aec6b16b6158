package wrapper_test

import (
	"strings"
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/internal/wrapper"
)

// What people and models bring along from other tools is answered with the
// wrapper's own way to write it.
func TestShapesOfOtherTools(t *testing.T) {
	const r = "wrapper.request"
	in := func(request string) string {
		return doc(`{"method":"POST","url":"https://h.test/",`+request+`}`, `"q":{"type":"string"},"id":{"type":"string"}`)
	}
	at := func(url string) string {
		return doc(`{"url":"`+url+`"}`, `"id":{"type":"string","default":"1"},"q":{"type":"string"}`)
	}
	for _, tt := range []struct{ name, doc, problems, warnings string }{
		{"braces in the path", at("https://h.test/a/{id}/b"), r + ".url URL_INVALID the path holds '{', which must be percent-encoded | write {{id}} for an argument", ""},
		{"braces of a name that is no argument", at("https://h.test/{nope}"), r + ".url URL_INVALID the path holds '{', which must be percent-encoded | write {{nope}} for an argument", ""},
		{"dollar", at("https://h.test/${id}"), r + ".url URL_INVALID the path holds '{', which must be percent-encoded | write {{id}} for an argument", ""},
		{"angles", at("https://h.test/<id>"), r + ".url URL_INVALID the path holds '<', which must be percent-encoded | write {{id}} for an argument", ""},
		{"a brace alone", at("https://h.test/{"), r + ".url URL_INVALID the path holds '{', which must be percent-encoded | write %7B", ""},
		{"colon", at("https://h.test/a/:id/b"), "", r + ".url PLACEHOLDER_SYNTAX :id is sent as it stands | write {{id}} for the argument"},
		{"two colons", at("https://h.test/:id/:q"), "", r + ".url PLACEHOLDER_SYNTAX :id is sent as it stands | write {{id}} for the argument; " + r + ".url PLACEHOLDER_SYNTAX :q is sent as it stands | write {{q}} for the argument"},
		{"a colon of the API's own", at("https://h.test/v1/things:id/:batch/a:id"), "", ""},
		{"braces in the URL's query", at("https://h.test/?a={q}&b=x"), "", r + ".url PLACEHOLDER_SYNTAX {q} is sent as it stands | write {{q}} for the argument"},
		{"braces that are no argument", at("https://h.test/?a={zzz}"), "", ""},
		{"braces in the host", at("https://{id}.h.test/"), r + ".url URL_INVALID host \"{id}.h.test\" has '{', which does not belong in a host name | write scheme, host and port out; make one wrapper for each host", ""},
		{"braces in query", in(`"query":{"a":"{q}","b":["${id}"],"c":":q","d":"$q"}`), "", r + ".query.a PLACEHOLDER_SYNTAX {q} is sent as it stands | write {{q}} for the argument; " +
			r + ".query.b[0] PLACEHOLDER_SYNTAX ${id} is sent as it stands | write {{id}} for the argument; " +
			r + ".query.c PLACEHOLDER_SYNTAX :q is sent as it stands | write {{q}} for the argument; " +
			r + ".query.d PLACEHOLDER_SYNTAX $q is sent as it stands | write {{q}} for the argument"},
		{"braces in a header and the body", in(`"headers":{"X-A":"a <q> b"},"body":{"t":"say { q } and {{id}}"}`), "", r + ".headers.X-A PLACEHOLDER_SYNTAX <q> is sent as it stands | write {{q}} for the argument; " +
			r + ".body.t PLACEHOLDER_SYNTAX { q } is sent as it stands | write {{q}} for the argument"},
		{"text with a colon", in(`"body":{"t":"at :q sharp","u":"$5"}`), "", ""},

		{"url", doc(`{"url":{"raw":"https://h.test"}}`, ""), r + `.url TYPE expected string, got object | write one text such as "https://api.example.com/items/{{id}}"`, ""},
		{"query as a text", in(`"query":"?q={{q}}&n=5"`), r + `.query TYPE expected object, got string | write an object: {"q": "{{q}}", "n": "…"}`, ""},
		{"query as a list", in(`"query":[{"name":"q","value":"{{q}}"},{"key":"token","value":"canary"}]`), r + `.query TYPE expected object, got array | write an object: {"q": "{{q}}", "token": "…"}`, ""},
		{"query as names", in(`"query":["q"]`), r + `.query TYPE expected object, got array | write an object such as {"q": "{{q}}"}`, ""},
		{"query true", in(`"query":true`), r + `.query TYPE expected object, got boolean | write an object such as {"q": "{{q}}"}`, ""},
		{"query of many", in(`"query":"a=1&b=2&c=3&d=4&e=5"`), r + `.query TYPE expected object, got string | write an object such as {"q": "{{q}}"}`, ""},
		{"headers", in(`"headers":["Accept: text/plain"]`), r + `.headers TYPE expected object, got array | write an object such as {"Accept-Language": "{{language}}"}`, ""},
		{"auth", in(`"auth":{"type":"bearer","token":"canary"}`), r + `.auth TYPE expected string, got object | write the name of a stored credential, such as "orders-key"; its kind and header are stored with it`, ""},
		{"body as JSON text", in(`"body":"{\"q\":\"{{q}}\"}"`), "", r + `.body BODY_TYPE the body is a text that holds an object, and is sent as a text | write the object without the quotes around it, such as {"q": "{{q}}"}`},
		{"body as array text", in(`"body":" [1] "`), "", r + `.body BODY_TYPE the body is a text that holds an array, and is sent as a text | write the array without the quotes around it`},
		{"body as form", in(`"body":"q={{q}}&n=1"`), "", r + `.body BODY_TYPE the body looks like a form, and is sent as a JSON text | write an object such as {"q": "{{q}}"}, and "bodyType": "form" if the API takes a form`},
		{"text body as JSON", in(`"bodyType":"text","body":"{\"q\":\"{{q}}\"}"`), "", r + `.body BODY_TYPE arguments go into a text as they are, so a quotation mark in one breaks the JSON around it | write the object without the quotes around it, such as {"q": "{{q}}"}, and take bodyType out`},
		{"text body as JSON without arguments", in(`"bodyType":"text","body":"{\"q\":1}"`), "", ""},
		{"text body as form", in(`"bodyType":"text","body":"q={{q}}&n=1"`), "", r + `.body BODY_TYPE arguments go into a text as they are, so an & in one breaks the form around it | write an object such as {"q": "{{q}}"} with "bodyType": "form"`},
		{"bodies of other tools", in(`"form":{},"form_data":{},"contentType":"x","rateLimit":1,"idempotency":{}`), r + `.form UNKNOWN_FIELD unknown key "form" | write "body", and "bodyType": "form"; ` +
			r + `.form_data UNKNOWN_FIELD unknown key "form_data" | write "body", and "bodyType": "form"; ` + r + `.contentType UNKNOWN_FIELD unknown key "contentType" | write "bodyType"; ` +
			r + `.rateLimit UNKNOWN_FIELD unknown key "rateLimit" | write "rate"; ` + r + `.idempotency UNKNOWN_FIELD unknown key "idempotency" | write "idempotencyKey"`, ""},
		{"body is one argument", in(`"body":"{{q}}"`), "", ""},
		{"body is a text", in(`"body":"a = {{q}}"`), "", ""},
		{"timeout as a text", in(`"timeoutMs":"15000"`), r + ".timeoutMs TYPE expected a whole number of milliseconds, got string | such as 15000, without quotes", ""},
		{"timeout in seconds", in(`"timeoutMs":0`), r + ".timeoutMs TIMEOUT_RANGE expected a whole number of milliseconds from 1 to 60000 | 15000 is 15 seconds, and the default", ""},
		{"keys of other tools", in(`"params":{},"json":{},"query_params":{},"timeout":5,"Endpoint":"x"`), r + `.params UNKNOWN_FIELD unknown key "params" | write "query"; ` +
			r + `.json UNKNOWN_FIELD unknown key "json" | write "body"; ` + r + `.query_params UNKNOWN_FIELD unknown key "query_params" | write "query"; ` +
			r + `.timeout UNKNOWN_FIELD unknown key "timeout" | write "timeoutMs"; ` + r + `.Endpoint UNKNOWN_FIELD unknown key "Endpoint" | write "url"`, ""},
		{
			"keys beside request", `{"schemaVersion":1,"id":"a","url":"https://h.test/","method":"GET","parameters":{},"recipe":{},"zzz":1}`,
			`wrapper.request REQUIRED is required (an object with method and url) | write {"method": "GET", "url": "https://api.example.com/items"}`,
			`wrapper.url UNKNOWN_FIELD dropped: unknown field "url" | write it inside request; wrapper.method UNKNOWN_FIELD dropped: unknown field "method" | write it inside request; ` +
				`wrapper.parameters UNKNOWN_FIELD dropped: unknown field "parameters" | write "inputSchema"; wrapper.recipe UNKNOWN_FIELD dropped: unknown field "recipe" | write "response"; ` +
				`wrapper.zzz UNKNOWN_FIELD dropped: unknown field "zzz" | the fields are schemaVersion, id, name, description, request, inputSchema, response, exposeAsTool, mutating`,
		},
	} {
		_, report := wrapper.Parse([]byte(tt.doc))
		join := func(s string) string { return strings.ReplaceAll(strings.TrimSpace(s), "\n", "; ") }
		if got := join(lines(report.Problems)); got != tt.problems {
			t.Errorf("%s: problems\n got %s\nwant %s", tt.name, got, tt.problems)
		}
		if got := join(lines(report.Warnings)); got != tt.warnings {
			t.Errorf("%s: warnings\n got %s\nwant %s", tt.name, got, tt.warnings)
		}
		if s := lines(report.Problems) + lines(report.Warnings); strings.Contains(s, "canary") {
			t.Errorf("%s: a value is shown: %s", tt.name, s)
		}
	}
}
