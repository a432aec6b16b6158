package wrapper_test

import (
	"strings"
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/internal/wrapper"
)

// What pagination asks of the request is refused when the wrapper is saved.
func TestPagination(t *testing.T) {
	const (
		in     = "response.pagination.in PAGING_KEY"
		param  = "response.pagination.cursorParam PAGING_KEY"
		link   = `"type":"link","nextUrl":"next"`
		cursor = `"type":"cursor","next":"next","cursorParam":"c"`
		offset = `"type":"offset","offsetParam":"page.from","pageSize":10,"in":"body"`
		deep   = `"type":"cursor","next":"next","cursorParam":"variables.after","in":"body"`
	)
	const body = cursor + `,"in":"body"`
	for _, tt := range []struct{ name, request, plan, want string }{
		{"link on a read", `"method":"GET"`, link, ""},
		{"link on a write", `"method":"POST"`, link, "response.pagination.type PAGING_TYPE"},
		{"link where one method writes", `"methods":["GET","DELETE"]`, link, "response.pagination.type PAGING_TYPE"},
		{"link with a method override", `"headers":{"X-HTTP-Method-Override":"PUT"}`, link, "response.pagination.type PAGING_TYPE"},
		{"cursor in the query of a write", `"method":"POST","body":{}`, cursor, ""},
		{"cursor in a header of a form", `"method":"POST","bodyType":"form","body":{}`, cursor + `,"in":"header"`, ""},
		{"cursor as a method", ``, `"type":"cursor","next":"next","in":"header","cursorParam":"X-HTTP-Method-Override"`, param},
		{"cursor as a method, with underscores", ``, `"type":"cursor","next":"next","in":"header","cursorParam":"x_method_override"`, param},
		{"page as a method", ``, `"type":"offset","in":"header","offsetParam":"X-HTTP-Method","limitParam":"X-Method-Override","pageSize":10`, "response.pagination.offsetParam PAGING_KEY; response.pagination.limitParam PAGING_KEY"},

		{"object", `"method":"POST","body":{"a":1}`, body, ""},
		{"object with arguments", `"method":"POST","body":{"a":"{{x}}"}`, body, ""},
		{"no body yet", `"method":"POST"`, body, ""},
		{"an argument", `"method":"POST","body":"{{x}}"`, body, ""},
		{"an object argument", `"method":"POST","body":"{{o}}"`, body, ""},
		{"an array argument", `"method":"POST","body":"{{l}}"`, body, in},
		{"a string argument", `"method":"POST","body":"{{s}}"`, body, in},
		{"an array", `"method":"POST","body":["{{x}}"]`, body, in},
		{"a fixed array", `"method":"POST","body":[]`, body, in},
		{"a text", `"method":"POST","body":"a {{s}}"`, body, in},
		{"a number", `"method":"POST","body":5`, body, in},
		{"a form", `"method":"POST","bodyType":"form","body":{"a":1}`, body, in},
		{"a text body", `"method":"POST","bodyType":"text","body":"{}"`, body, in},
		{"a method without a body", `"method":"GET"`, body, in},
		{"one method without a body", `"methods":["POST","GET"],"body":{}`, body, in},

		{"deep, made on the way", `"method":"POST","body":{"query":"q"}`, deep, ""},
		{"deep, there", `"method":"POST","body":{"variables":{"id":"{{x}}"}}`, deep, ""},
		{"deep, fixed", `"method":"POST","body":{"variables":{"after":null}}`, deep, ""},
		{"deep, null on the way", `"method":"POST","body":{"variables":null}`, deep, ""},
		{"deep, an argument", `"method":"POST","body":{"variables":"{{o}}"}`, deep, ""},
		{"deep, a text on the way", `"method":"POST","body":{"variables":"x"}`, deep, param},
		{"deep, an array on the way", `"method":"POST","body":{"variables":["{{x}}"]}`, deep, param},
		{"deep, a number argument on the way", `"method":"POST","body":{"variables":"{{n}}"}`, deep, param},
		{"offset on the way", `"method":"POST","body":{"page":1}`, offset, "response.pagination.offsetParam PAGING_KEY"},

		{"idempotency key", `"method":"POST","body":{},"idempotencyKey":{"header":"K"}`, body, ""}, // each page has a key of its own
		{"idempotency key without pages", `"method":"POST","idempotencyKey":{"header":"K"}`, `"type":"none"`, ""},
	} {
		_, report := wrapper.Parse([]byte(doc(`{`+strings.TrimSuffix(`"url":"https://h.test/",`+tt.request, ",")+`}`,
			`"x":{},"o":{"type":["object","null"]},"l":{"type":"array"},"s":{"type":"string"},"n":{"type":"integer"}`,
			`"response":{"schemaVersion":1,"fields":{"A":"a"},"pagination":{`+tt.plan+`}}`)))
		if got := outline(report.Problems); got != tt.want {
			t.Errorf("%s\n got %s\nwant %s", tt.name, lines(report.Problems), tt.want)
		}
		for _, p := range report.Problems {
			if p.Message == "" || p.Hint == "" {
				t.Errorf("%s: without words: %+v", tt.name, p)
			}
		}
	}
	_, report := wrapper.Parse([]byte(doc(`{"url":"https://h.test/"}`, "", `"mutating":true`, `"response":{"schemaVersion":1,"fields":{"A":"a"},"pagination":{`+link+`}}`)))
	if got := outline(report.Problems); got != "response.pagination.type PAGING_TYPE" {
		t.Errorf("link on a declared write: %s", got)
	}
	// Problems elsewhere do not hide or break this.
	_, report = wrapper.Parse([]byte(doc(`{"method":"FETCH","url":"https://h.test/","body":"{{zzz}}"}`, `"x":{"type":"text"}`, `"response":{"schemaVersion":1,"fields":{"A":"a"},"pagination":{`+body+`}}`)))
	if got := outline(report.Problems); got != "wrapper.request.method METHOD_UNKNOWN; wrapper.inputSchema.properties.x.type SCHEMA_TYPE" {
		t.Error(got)
	}
}
