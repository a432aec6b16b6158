package wrapper_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/wrapper"
	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

func TestProblems(t *testing.T) {
	const r = "wrapper.request"
	url := func(u string) string { return doc(`{"url":"`+u+`"}`, `"x":{},"l":{"type":"array"}`) }
	req := func(more string) string {
		return doc(`{"method":"POST","url":"https://h.test/",`+more+`}`, `"x":{},"l":{"type":"array"},"o":{"type":"object"}`)
	}
	tests := []struct{ name, doc, problems, warnings string }{
		{"not JSON", `{"id":`, "wrapper TYPE", ""},
		{"an array", `[]`, "wrapper TYPE", ""},
		{"empty", ``, "wrapper TYPE", ""},
		{"trailing", `{} {}`, "wrapper TYPE", ""},
		{"nothing", `{}`, "wrapper.schemaVersion REQUIRED; wrapper.id REQUIRED; wrapper.request REQUIRED", ""},
		{"nulls are absent", `{"schemaVersion":null,"id":null,"request":null,"response":null}`, "wrapper.schemaVersion REQUIRED; wrapper.id REQUIRED; wrapper.request REQUIRED", ""},
		{
			"all at once, in document order", `{"request":{"method":"FETCH","url":"ftp://x/","timeoutMs":0},"response":{"schemaVersion":1,"fields":{"Price":{"path":"p","format":"money"}}},"id":"a b","inputSchema":{"type":"object","properties":{"p":{"oneOf":[]}}},"mutating":"yes"}`,
			r + ".method METHOD_UNKNOWN; " + r + ".url URL_SCHEME; " + r + ".timeoutMs TIMEOUT_RANGE; response.fields.Price.format FORMAT_UNKNOWN; wrapper.id ID_INVALID; wrapper.inputSchema.properties.p.oneOf SCHEMA_KEYWORD; wrapper.mutating TYPE; wrapper.schemaVersion REQUIRED", "",
		},
		{"version", `{"schemaVersion":2,"id":"t","request":{"url":"https://h.test/"}}`, "wrapper.schemaVersion VERSION_UNSUPPORTED", ""},
		{"version as text", `{"schemaVersion":"1","id":"t","request":{"url":"https://h.test/"}}`, "wrapper.schemaVersion VERSION_UNSUPPORTED", ""},
		{
			"duplicate keys", `{"schemaVersion":1,"id":"t","id":"u","request":{"url":"https://h.test/","query":{"a":1,"a":2}},"inputSchema":{"type":"object","properties":{"p":{},"p":{}}},"response":{"schemaVersion":1,"mode":"table","mode":"table","fields":{"A":"a"}}}`,
			"wrapper.id DUPLICATE; wrapper.request.query.a DUPLICATE; wrapper.inputSchema.properties.p DUPLICATE; response.mode DUPLICATE", "",
		},
		{"unknown top field", doc(`{"url":"https://h.test/"}`, "", `"lastVerified":"2026-01-01"`, `"inputschema":{}`), "", "wrapper.lastVerified UNKNOWN_FIELD; wrapper.inputschema UNKNOWN_FIELD"},
		{"types", `{"schemaVersion":1,"id":1,"name":[],"description":{},"exposeAsTool":"true","request":[]}`, "wrapper.id TYPE; wrapper.name TYPE; wrapper.description TYPE; wrapper.exposeAsTool TYPE; wrapper.request TYPE", ""},
		{"control character in the name", `{"schemaVersion":1,"id":"t","name":"a\nb","description":"a\nb","request":{"url":"https://h.test/"}}`, "wrapper.name CONTROL_CHARACTER", ""},

		{"no url", doc(`{"method":"GET"}`, ""), r + ".url REQUIRED", ""},
		{"url type", doc(`{"url":5}`, ""), r + ".url TYPE", ""},
		{"relative", url("/v1/items"), r + ".url URL_INVALID", ""},
		{"empty", url(""), r + ".url URL_INVALID", ""},
		{"D14 ftp", url("ftp://h.test/"), r + ".url URL_SCHEME", ""},
		{"D14 file", url("file:///etc/passwd"), r + ".url URL_SCHEME", ""},
		{"D14 data", url("data:text/plain,x"), r + ".url URL_SCHEME", ""},
		{"D14 gopher", url("gopher://h.test/"), r + ".url URL_SCHEME", ""},
		{"no scheme", url("localhost:8080/x"), r + ".url URL_SCHEME", ""},
		{"scheme in upper case", url("HTTPS://H.test/"), "", ""},
		{"plain http is judged at run", url("http://127.0.0.1/"), "", ""},
		{"D07 userinfo", url("https://user:pw@h.test/"), r + ".url URL_USERINFO", ""},
		{"userinfo trick", url("https://h.test@127.0.0.1/"), r + ".url URL_USERINFO", ""},
		{"D05 number", url("https://2130706433/"), r + ".url URL_INVALID", ""},
		{"D05 short", url("https://127.1/"), r + ".url URL_INVALID", ""},
		{"D05 hex", url("https://0x7f.1/"), r + ".url URL_INVALID", ""},
		{"D05 octal", url("https://0177.0.0.1/"), r + ".url URL_INVALID", ""},
		{"zone", url("https://[fe80::1%25eth0]/"), r + ".url URL_INVALID", ""},
		{"no host", url("https:///x"), r + ".url URL_INVALID", ""},
		{"port", url("https://h.test:99999/"), r + ".url URL_INVALID", ""},
		{"port zero", url("https://h.test:0/"), r + ".url URL_INVALID", ""},
		{"backslash host", url(`https://h.test\\@evil/`), r + ".url URL_USERINFO", ""},
		{"backslash", url(`https://h.test/a\\b`), r + ".url URL_INVALID", ""},
		{"space", url("https://h.test/a b"), r + ".url URL_INVALID", ""},
		{"line end", url(`https://h.test/a\nb`), r + ".url URL_INVALID", ""},
		{"letter beyond ASCII", url("https://h.test/é"), r + ".url URL_INVALID", ""},
		{"percent", url("https://h.test/100%"), r + ".url URL_INVALID", ""},
		{"percent before a placeholder", url("https://h.test/%{{x}}"), r + ".url URL_INVALID", r + ".url REQUIRED"},
		{"percent in the query", url("https://h.test/?a=%zz"), r + ".url URL_INVALID", ""},
		{"fragment", url("https://h.test/#top"), r + ".url URL_INVALID", ""},
		{"placeholder as scheme", url("{{x}}://h.test/"), r + ".url PLACEHOLDER_IN_HOST", ""},
		{"placeholder as base", url("{{x}}/v1"), r + ".url PLACEHOLDER_IN_HOST", ""},
		{"placeholder as host", url("https://{{x}}/"), r + ".url PLACEHOLDER_IN_HOST", ""},
		{"placeholder after the host", url("https://h.test{{x}}/"), r + ".url PLACEHOLDER_IN_HOST", ""},
		{"placeholder as port", url("https://h.test:{{x}}/"), r + ".url PLACEHOLDER_IN_HOST", ""},
		{"placeholder as query name", url("https://h.test/?{{x}}=1"), r + ".url PLACEHOLDER_SYNTAX", ""},
		{"raw in the query", url("https://h.test/?a={{x|raw}}"), r + ".url RAW_OUTSIDE_URL", ""},
		{"unknown placeholder", url("https://h.test/a?b={{y}}"), r + ".url PLACEHOLDER_UNKNOWN", ""},
		{"expression", url("https://h.test/?a={{x.y}}"), r + ".url PLACEHOLDER_UNKNOWN", ""},
		{"array in the path", url("https://h.test/{{l}}"), r + ".url TYPE", ""},
		{"array in a query text", url("https://h.test/?a=x{{l}}"), r + ".url TYPE", ""},
		{"optional in the path", url("https://h.test/{{x}}"), "", r + ".url REQUIRED"},
		{"D39 key in the URL", url("https://h.test/?api_key=1"), r + ".url CREDENTIAL_QUERY", ""},
		{"encoded key in the URL", url("https://h.test/?a=1&api%5Fkey={{x}}"), r + ".url CREDENTIAL_QUERY", ""},
		{"key behind a semicolon", url("https://h.test/?a=1;token=2"), r + ".url CREDENTIAL_QUERY", ""},
		{"honest names", url("https://h.test/?monkey=1&author=2&keyword=3"), "", ""},

		{"syntax: open", req(`"body":"{{x"`), r + ".body PLACEHOLDER_SYNTAX", ""},
		{"syntax: no name", req(`"body":{"a":["{{ }}"]}`), r + ".body.a[0] PLACEHOLDER_SYNTAX", ""},
		{"syntax: three braces", req(`"body":"{{{x}}}"`), r + ".body PLACEHOLDER_SYNTAX", ""},
		{"syntax: modifier", req(`"body":"{{x|json}}"`), r + ".body PLACEHOLDER_SYNTAX", ""},
		{"raw in the body", req(`"body":"{{x|raw}}"`), r + ".body RAW_OUTSIDE_URL", ""},
		{"raw in a header", req(`"headers":{"X-A":"{{x|raw}}"}`), r + ".headers.X-A RAW_OUTSIDE_URL", ""},
		{"raw in request.query", req(`"query":{"a":"{{x|raw}}"}`), r + ".query.a RAW_OUTSIDE_URL", ""},
		{"placeholder as member name", req(`"body":{"{{x}}":1}`), r + ".body['{{x}}'] PLACEHOLDER_SYNTAX", ""},
		{"placeholder as parameter name", req(`"query":{"{{x}}":1}`), r + ".query['{{x}}'] PLACEHOLDER_SYNTAX", ""},
		{"placeholder as header name", req(`"headers":{"{{x}}":"1"}`), r + ".headers['{{x}}'] HEADER_INVALID", ""},
		{"array in a text", req(`"body":{"a":"all {{l}}"}`), r + ".body.a TYPE", ""},
		{"object in a header", req(`"headers":{"X-A":"{{o}}"}`), r + ".headers.X-A TYPE", ""},
		{"braces that are no placeholders", req(`"body":"{yy} }} {"`), "", ""},
		{"another tool's placeholder", req(`"body":"{x} }} {"`), "", r + ".body PLACEHOLDER_SYNTAX"},

		{"D39 Authorization", req(`"headers":{"Authorization":"Bearer x"}`), r + ".headers.Authorization CREDENTIAL_HEADER", ""},
		{"D39 X-Api-Key", req(`"headers":{"x-api-key":"{{x}}"}`), r + ".headers.x-api-key CREDENTIAL_HEADER", ""},
		{"Cookie", req(`"headers":{"Cookie":"a=b"}`), r + ".headers.Cookie CREDENTIAL_HEADER", ""},
		{"a country's code", req(`"query":{"code":"DE","q[code]":["500","{{x}}-{{x}}-{{x}}-{{x}}-{{x}}"]}`), "", ""},
		{"a code in the URL", url("https://h.test/?code=500&a=1;code={{x}}"), "", ""},
		{"a key that is called code", req(`"query":{"code":"abcdefghijklmnopqrst"}`), r + ".query.code CREDENTIAL_QUERY", ""},
		{"one of a list", req(`"query":{"code":{"value":["1","{{x}}abcdefghijklmnopqrst"],"style":"comma"}}`), r + ".query.code CREDENTIAL_QUERY", ""},
		{"in the URL", url("https://h.test/?a=1;code=abcdefghijklmnopqrst"), r + ".url CREDENTIAL_QUERY", ""},
		{"D39 api_key", req(`"query":{"api_key":"1"}`), r + ".query.api_key CREDENTIAL_QUERY", ""},
		{"header twice", req(`"headers":{"X-A":"1","x-a":"2"}`), r + ".headers.x-a DUPLICATE", ""},
		{"header name", req(`"headers":{"X A":"1","":"2","X:":"3"}`), r + ".headers['X A'] HEADER_INVALID; " + r + ".headers[''] HEADER_INVALID; " + r + ".headers['X:'] HEADER_INVALID", ""},
		{"header value", req(`"headers":{"X-A":"a\r\nb","X-B":"é","X-C":null,"X-D":["a"],"X-E":{}}`), r + ".headers.X-A HEADER_INVALID; " + r + ".headers.X-B HEADER_INVALID; " + r + ".headers.X-C TYPE; " + r + ".headers.X-D TYPE; " + r + ".headers.X-E TYPE", ""},
		{"query value", req(`"query":{"a":null,"b":[null],"c":[[1]],"":1}`), r + ".query.a TYPE; " + r + ".query.b[0] TYPE; " + r + ".query.c[0] TYPE; " + r + ".query[''] PATTERN", ""},
		{"query type", req(`"query":"a=1"`), r + ".query TYPE", ""},

		{"body of a GET", doc(`{"method":"GET","url":"https://h.test/","body":{}}`, ""), r + ".body BODY_NOT_ALLOWED", ""},
		{"body of GET and HEAD", doc(`{"method":["GET","HEAD"],"url":"https://h.test/","body":{}}`, ""), r + ".body BODY_NOT_ALLOWED", ""},
		{"methods", doc(`{"method":["GET",1,"OPTIONS"],"methods":"POST","url":"https://h.test/","body":{}}`, ""), r + ".method[1] TYPE; " + r + ".method[2] METHOD_UNKNOWN; " + r + ".methods TYPE", ""},
		{"no methods", doc(`{"methods":[],"url":"https://h.test/"}`, ""), r + ".methods TOO_FEW", ""},
		{"method taken", doc(`{"methods":["GET","POST"],"url":"https://h.test/"}`, `"method":{}`), "wrapper.inputSchema.properties.method DUPLICATE", ""},
		{"one method leaves the name free", doc(`{"method":"POST","url":"https://h.test/","body":{"method":"{{method}}"}}`, `"method":{}`), "", ""},

		{"form header over a JSON body", req(`"headers":{"content-type":"application/x-www-form-urlencoded"},"body":{}`), "", r + ".headers.content-type BODY_TYPE"},
		{"JSON header", req(`"headers":{"Content-Type":"application/vnd.api+json"},"body":{}`), "", ""},
		{"form header without a body", req(`"headers":{"Content-Type":"text/plain"}`), "", ""},
		{"auth is no value", req(`"auth":"Bearer s3cr3t"`), r + ".auth PATTERN", ""},
		{"auth", req(`"auth":"orders-key"`), "", ""},
		{"timeout", req(`"timeoutMs":"15000"`), r + ".timeoutMs TYPE", ""},
		{"timeout fraction", req(`"timeoutMs":1.5`), r + ".timeoutMs TIMEOUT_RANGE", ""},
		{"timeout above the deadline", req(`"timeoutMs":50001`), "", r + ".timeoutMs TIMEOUT_RANGE"},
		{"bodyType json is the default", req(`"bodyType":"json"`), "", ""},
		{"unknown key", req(`"header":{},"zzz":1`), r + ".header UNKNOWN_FIELD; " + r + ".zzz UNKNOWN_FIELD", ""},
		{"placeholders wait for the schema", doc(`{"url":"https://h.test/{{nope}}"}`, `"x":{"type":"text"}`), "wrapper.inputSchema.properties.x.type SCHEMA_TYPE", ""},
	}
	for _, h := range []string{"Host", "Content-Length", "Transfer-Encoding", "Connection", "Keep-Alive", "TE", "Trailer", "Upgrade", "Expect", "Proxy-Connection", "host"} {
		tests = append(tests, struct{ name, doc, problems, warnings string }{"header " + h, req(`"headers":{"` + h + `":"x"}`), r + ".headers." + h + " HEADER_INVALID", ""})
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w, report := wrapper.Parse([]byte(tt.doc))
			if got := outline(report.Problems); got != tt.problems {
				t.Errorf("problems\n got %s\nwant %s\n%s", got, tt.problems, lines(report.Problems))
			}
			if got := outline(report.Warnings); got != tt.warnings {
				t.Errorf("warnings\n got %s\nwant %s", got, tt.warnings)
			}
			if (w == nil) != (tt.problems != "") {
				t.Errorf("wrapper %v", w)
			}
		})
	}
}

func TestWording(t *testing.T) {
	for _, tt := range []struct{ doc, want string }{
		{doc(`{"url":"https://h.test/{{citty}}"}`, `"city":{}`), `wrapper.request.url PLACEHOLDER_UNKNOWN {{citty}} is not a property of the input schema | did you mean {{city}}?`},
		{doc(`{"url":"https://h.test/","header":{}}`, ``), `wrapper.request.header UNKNOWN_FIELD unknown key "header" | did you mean "headers"?`},
		{doc(`{"url":"https://h.test/é"}`, ``), `wrapper.request.url URL_INVALID the path holds '\u00e9', which must be percent-encoded | write %C3%A9`},
		{doc(`{"method":"POST","url":"https://h.test/","body":{"t":"all {{l}}"}}`, `"l":{"type":"array"}`), `wrapper.request.body.t TYPE {{l}} is an array and cannot stand in the middle of a text | make the whole string "{{l}}", which keeps the JSON type`},
		{doc(`{"url":"https://h.test/","headers":{"Authorization":"Bearer s3cr3t"}}`, ``), `wrapper.request.headers.Authorization CREDENTIAL_HEADER header Authorization looks like a credential | a person stores the credential, and request.auth names it`},
	} {
		_, report := wrapper.Parse([]byte(tt.doc))
		if got := lines(report.Problems); got != tt.want+"\n" {
			t.Errorf("\n got %swant %s", got, tt.want)
		}
	}
}

func TestProblemsDoNotRepeatValues(t *testing.T) {
	const canary = "s3cr3tcanary"
	_, report := wrapper.Parse([]byte(doc(`{"method":"POST","url":"https://u:`+canary+`@h.test/?api_key=`+canary+`","headers":{"Authorization":"Bearer `+canary+`","X-A":"é`+canary+`"},"query":{"token":"`+canary+`"},"auth":"Bearer `+canary+`","body":5}`, "")))
	if len(report.Problems) != 5 || strings.Contains(lines(report.Problems), canary) {
		t.Error(lines(report.Problems))
	}
}

func TestLimits(t *testing.T) {
	request := func(more string) string { return doc(`{"method":"POST","url":"https://h.test/"`+more+`}`, "") }
	pad := func(n int) string {
		d := request("")
		return d[:len(d)-1] + strings.Repeat(" ", n-len(d)) + "}"
	}
	nest := func(n int) string { // the body stands at depth 3
		return request(`,"body":` + strings.Repeat("[", n-2) + strings.Repeat("]", n-2))
	}
	with := func(key string, n int) string {
		return `{"schemaVersion":1,"id":"t","` + key + `":"` + strings.Repeat("é", n) + `","request":{"url":"https://h.test/"}}`
	}
	id := func(n int) string {
		return `{"schemaVersion":1,"id":"` + strings.Repeat("a", n) + `","request":{"url":"https://h.test/"}}`
	}
	url := func(n int) string {
		return doc(`{"url":"https://h.test/`+strings.Repeat("a", n-len("https://h.test/"))+`"}`, "")
	}
	for _, tt := range []struct{ name, at, over, problem string }{
		{"document", pad(256 << 10), pad(256<<10 + 1), "wrapper TOO_LONG"},
		{"depth", nest(64), nest(65), "wrapper RANGE"},
		{"name", with("name", 200), with("name", 201), "wrapper.name TOO_LONG"},
		{"description", with("description", 2000), with("description", 2001), "wrapper.description TOO_LONG"},
		{"id", id(100), id(101), "wrapper.id ID_INVALID"},
		{"url", url(16 << 10), url(16<<10 + 1), "wrapper.request.url TOO_LONG"},
		{"timeout low", request(`,"timeoutMs":1`), request(`,"timeoutMs":0`), "wrapper.request.timeoutMs TIMEOUT_RANGE"},
		{"timeout high", request(`,"timeoutMs":60000`), request(`,"timeoutMs":60001`), "wrapper.request.timeoutMs TIMEOUT_RANGE"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			parse(t, tt.at)
			_, report := wrapper.Parse([]byte(tt.over))
			if got := outline(report.Problems); got != tt.problem {
				t.Errorf("one over: %s", got)
			}
		})
	}
}

func TestDocument(t *testing.T) {
	const given = `{
	"mutating": true, "extra": 1, "response": {"mode": "table", "schemaVersion": 1, "fields": {"B": "b", "A": {"path": "a", "format": "number"}}, "limits": {"maxItems": 5}},
	"inputSchema": {"required": ["q"], "type": "object", "additionalProperties": true, "properties": {"q": {"type": ["string"]}, "limit": {"default": 10, "type": "integer"}}},
	"request": {"timeoutMs": 1000, "body": {"z": "{{q}}", "a": 1.50}, "headers": {"X-B": "1", "X-A": "{{q}}"}, "query": {"q": "{{q}}", "a": [1, "{{limit}}"]}, "url": "https://Example.TEST/{{q}}", "methods": ["post", "GET"], "auth": "k", "bodyType": "json"},
	"description": null, "name": "N", "id": "x.y", "schemaVersion": 1}`
	const want = `{"schemaVersion":1,"id":"x.y","name":"N","request":{"method":"POST","methods":["POST","GET"],"url":"https://Example.TEST/{{q}}","query":{"q":"{{q}}","a":[1,"{{limit}}"]},"headers":{"X-B":"1","X-A":"{{q}}"},"body":{"z":"{{q}}","a":1.50},"auth":"k","timeoutMs":1000},"inputSchema":{"required":["q"],"type":"object","properties":{"q":{"type":"string"},"limit":{"default":10,"type":"integer"}}},"response":{"schemaVersion":1,"select":"$","mode":"table","fields":{"B":"b","A":{"path":"a","format":"number"}},"limits":{"maxItems":5}},"mutating":true}`
	w := parse(t, given)
	if got := string(w.Document()); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	again, report := wrapper.Parse(w.Document())
	if len(report.Problems)+len(report.Warnings) > 0 || string(again.Document()) != want || again.Digest() != w.Digest() {
		t.Errorf("%+v\n%s", report, again.Document())
	}
	w.Document()[0] = 'x'
	if string(w.Document()) != want {
		t.Error("the caller can change the document")
	}
}

func TestFields(t *testing.T) {
	w := parse(t, `{"schemaVersion":1,"id":"x.y","request":{"url":"http://BÜcher.example.:8080/x","auth":"k"},"exposeAsTool":true}`)
	if w.Name != "x.y" || w.Host() != "xn--bcher-kva.example:8080" || w.Request.Timeout != 15*time.Second || !w.ExposeAsTool || w.Mutating || w.Response != nil || w.SchemaVersion != 1 {
		t.Errorf("%+v", w)
	}
	for url, host := range map[string]string{
		"https://api.example.com:443/": "api.example.com", "http://api.example.com:80": "api.example.com", "https://api.example.com:80/": "api.example.com:80",
		"https://[2001:DB8::1]:8443/": "[2001:db8::1]:8443", "https://127.0.0.1/": "127.0.0.1", "https://①②⑦.⓪.⓪.①/": "127.0.0.1",
	} {
		w := parse(t, doc(`{"url":"`+url+`"}`, ""))
		c, err := w.Build(nil)
		if err != nil || w.Host() != host || c.URL.Host != host {
			t.Errorf("%s: %s, %v", url, w.Host(), c)
		}
	}
}

func TestHostileDocumentsAreCheap(t *testing.T) {
	const room = wrapper.MaxDocument - 8000 // a schema of 200 properties stands beside
	var props []string
	for i := range 199 {
		props = append(props, fmt.Sprintf(`"property_number_%d":{}`, i))
	}
	fill := func(format string) string {
		var b strings.Builder
		for i := 0; b.Len() < room; i++ {
			fmt.Fprintf(&b, format, i)
		}
		return strings.TrimSuffix(b.String(), ",")
	}
	object := func(format string) string { return "{" + fill(format) + "}" }
	request := func(more string) string {
		return doc(`{"method":"POST","url":"https://h.test/",`+more+`}`, strings.Join(props, ","))
	}
	numbers := make([]string, 100)
	for i := range numbers {
		numbers[i] = fmt.Sprintf("%de300", i+1)
	}
	enum := `{"enum":[` + strings.Join(numbers, ",") + `]}`
	for name, text := range map[string]string{
		"unknown placeholders": request(`"body":"` + fill("{{property_numbr_%d}}") + `"`),
		"known placeholders":   request(`"body":"` + strings.Repeat("{{property_number_198}}", room/23) + `"`),
		"bad path":             doc(`{"url":"https://h.test/`+strings.Repeat("{{a}}/", 2700)+`"}`, `"a":{}`),
		"unknown request keys": request(object(`"headrs_%d":1,`)[1:room]) + `"}`,
		"header names":         request(`"headers":` + object(`"X %d":1,`)),
		"query":                request(`"query":` + object(`"key%d":1,`)),
		"members":              request(`"body":` + object(`"key%d":"{{property_number_1}}",`)),
		"deep":                 request(`"body":` + strings.Repeat("[", 60) + fill(`1,`+"%.0d") + strings.Repeat("]", 60)),
		"unknown fields":       `{"schemaVersion":1,` + fill(`"inputSchem_%d":1,`) + "}",
		"keywords":             `{"schemaVersion":1,"inputSchema":` + object(`"minLengt_%d":1,`) + "}",
		"required":             `{"schemaVersion":1,"inputSchema":{"type":"object","properties":{` + strings.Join(props, ",") + `},"required":[` + fill(`"property_numbr_%d",`) + "]}}",
		"enums":                `{"schemaVersion":1,"inputSchema":{"type":"object","properties":{` + fill(`"p%d":`+enum+",") + "}}}",
		"form names":           request(`"bodyType":"form","body":` + object(`"a%d":{"b[":1},`)),
		"form arrays":          request(`"bodyType":"form","body":{"a":` + strings.Repeat("[", 59) + fill(`{"b[%d":{"":1}},`) + strings.Repeat("]", 59) + "}"),
		"styles":               request(`"query":` + object(`"key%d":{"value":"{{property_number_1}}","stile":1},`)),
		"style keys":           request(`"query":{"a":` + strings.TrimSuffix(object(`"stil_%d":1,`), "}") + `,"value":1}}`),
		"pipes":                request(`"query":{"a":{"style":"pipe","value":[` + fill(`"|%d",`) + `]}}`),
		"duplicates":           request(`"body":` + object(`"a":{"b":1,"b":%d},`)),
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			_, report := wrapper.Parse([]byte(text))
			if took := time.Since(start); took > 8*time.Second {
				t.Errorf("%d bytes took %v", len(text), took)
			}
			if len(report.Problems) > recipe.MaxProblems || len(report.Warnings) > recipe.MaxProblems {
				t.Errorf("%d problems, %d warnings", len(report.Problems), len(report.Warnings))
			}
		})
	}
}
