package wrapper_test

import (
	"strings"
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/internal/wrapper"
)

// TestU09Styles has the bytes on the wire of each declared style.
func TestU09Styles(t *testing.T) {
	styled := func(value, style string) string {
		return doc(`{"url":"https://h.test/","query":{"tag":{"value":`+value+`,"style":"`+style+`"}}}`, `"v":{},"w":{}`)
	}
	const tags = `"{{v}}"`
	for _, tt := range []struct{ style, value, args, want string }{
		{"repeat", tags, `{"v":["a","b"]}`, "tag=a&tag=b"},
		{"comma", tags, `{"v":["a","b"]}`, "tag=a,b"},
		{"pipe", tags, `{"v":["a","b"]}`, "tag=a%7Cb"},
		{"brackets", tags, `{"v":["a","b"]}`, "tag%5B%5D=a&tag%5B%5D=b"},

		{"comma", tags, `{"v":["a,b","c d&e"]}`, "tag=a%2Cb,c%20d%26e"},
		{"comma", tags, `{"v":"a,b"}`, "tag=a%2Cb"},
		{"comma", tags, `{"v":[1,true,9007199254740993,1.50]}`, "tag=1,true,9007199254740993,1.50"},
		{"pipe", tags, `{"v":[1,"é","c,d"]}`, "tag=1%7C%C3%A9%7Cc%2Cd"},
		{"brackets", tags, `{"v":"a"}`, "tag%5B%5D=a"},
		{"repeat", tags, `{"v":"a"}`, "tag=a"},

		{"comma", tags, `{"v":[]}`, ""},
		{"pipe", tags, `{"v":[null]}`, ""},
		{"brackets", tags, `{"v":[]}`, ""},
		{"comma", tags, `{"v":null}`, ""},
		{"comma", tags, `{}`, ""},
		{"comma", tags, `{"v":["",""]}`, "tag=,"},
		{"comma", tags, `{"v":["",null,"a"]}`, "tag=,a"},
		{"comma", tags, `{"v":""}`, "tag="},
		{"brackets", tags, `{"v":["",0,false]}`, "tag%5B%5D=&tag%5B%5D=0&tag%5B%5D=false"},

		{"comma", `["x","{{v}}","p {{w}}",5]`, `{"v":["a",1]}`, "tag=x,a,1,5"},
		{"comma", `["x","{{v}}","p {{w}}",5]`, `{"w":","}`, "tag=x,p%20%2C,5"},
		{"pipe", `["{{v}}","{{w}}"]`, `{"w":"a"}`, "tag=a"},
		{"brackets", `["{{v}}","{{w}}"]`, `{"v":["a","b"],"w":1}`, "tag%5B%5D=a&tag%5B%5D=b&tag%5B%5D=1"},
		{"comma", `"a,b"`, ``, "tag=a%2Cb"},
		{"comma", `7`, ``, "tag=7"},
		{"comma", `"n:{{v}}"`, `{"v":"x"}`, "tag=n%3Ax"},
	} {
		want := "GET https://h.test/"
		if tt.want != "" {
			want += "?" + tt.want
		}
		if got := build(parse(t, styled(tt.value, tt.style)), tt.args); got != want {
			t.Errorf("%s of %s %s\n got %s\nwant %s", tt.style, tt.value, tt.args, got, want)
		}
	}
	// A | cannot be told from the separator, and an object has no form here.
	for _, tt := range []struct{ style, value, args, want string }{
		{"pipe", tags, `{"v":["a","b|c"]}`, "args.v PATTERN"},
		{"pipe", tags, `{"v":"a|b"}`, "args.v PATTERN"},
		{"pipe", `["{{w}}","p {{w}}{{v}}"]`, `{"v":"|","w":"x"}`, "args.v PATTERN"},
		{"comma", tags, `{"v":"a|b"}`, "GET https://h.test/?tag=a%7Cb"},
		{"comma", tags, `{"v":{"a":1}}`, "args.v TYPE"},
		{"brackets", tags, `{"v":[{"a":1}]}`, "args.v TYPE"},
		{"comma", `"n:{{v}}"`, `{"v":["x"]}`, "args.v TYPE"},
	} {
		if got := build(parse(t, styled(tt.value, tt.style)), tt.args); got != tt.want {
			t.Errorf("%s of %s %s: %s, want %s", tt.style, tt.value, tt.args, got, tt.want)
		}
	}
	// A name with brackets of its own gets no second pair; without a style it repeats.
	run(t, doc(`{"url":"https://h.test/?z=1","query":{"tag[]":{"style":"brackets","value":"{{v}}"},"b":{"value":"{{v}}"},"c":{"value":"{{v}}","style":null}}}`, `"v":{}`), []buildCase{
		{`{"v":["a","b"]}`, "GET https://h.test/?z=1&tag%5B%5D=a&tag%5B%5D=b&b=a&b=b&c=a&c=b"},
	})
}

func TestStyleProblems(t *testing.T) {
	const q = "wrapper.request.query.tag"
	for _, tt := range []struct{ param, want string }{
		{`{"value":"{{v}}","style":"csv"}`, q + `.style QUERY_STYLE "csv" is not supported | write "comma"`},
		{`{"value":"{{v}}","style":"pipeDelimited"}`, q + `.style QUERY_STYLE "pipeDelimited" is not supported | write "pipe"`},
		{`{"value":"{{v}}","style":"form"}`, q + `.style QUERY_STYLE "form" is not supported | write "repeat"`},
		{`{"value":"{{v}}","style":"deepObject"}`, q + `.style QUERY_STYLE "deepObject" is not supported | give each of its members a parameter of its own, such as "filter[status]": "{{status}}"`},
		{`{"value":"{{v}}","style":"comm"}`, q + `.style QUERY_STYLE "comm" is not supported | did you mean "comma"?`},
		{`{"value":"{{v}}","style":"tabs"}`, q + `.style QUERY_STYLE "tabs" is not supported | use one of repeat, comma, pipe, brackets`},
		{`{"value":"{{v}}","style":1}`, q + `.style TYPE expected string, got number | use one of repeat, comma, pipe, brackets`},
		{`{"style":"comma"}`, q + `.value REQUIRED is required | write {"value": "{{tags}}", "style": "comma"}`},
		{`{"value":null,"style":"comma"}`, q + `.value REQUIRED is required | write {"value": "{{tags}}", "style": "comma"}`},
		{`{"value":"{{v}}","stile":"comma"}`, q + `.stile UNKNOWN_FIELD unknown key "stile" | did you mean "style"?`},
		{`{"value":"{{v}}","explode":true}`, q + `.explode UNKNOWN_FIELD unknown key "explode" | write {"value": "{{tags}}", "style": "comma"}`},
		{`{"value":[null],"style":"comma"}`, q + `.value[0] TYPE expected string, number or boolean, got null | leave the parameter out`},
		{`{"value":{"a":1},"style":"comma"}`, q + `.value QUERY_STYLE an object in the query is not supported | give each of its members a parameter of its own, such as "filter[status]": "{{status}}"; for an array write {"value": "{{tags}}", "style": "comma"}`},
		{`{"value":"{{o}}","style":"comma"}`, q + `.value QUERY_STYLE {{o}} is an object, and the query has no form for one | give each of its members a parameter of its own, such as "filter[status]": "{{status}}"`},
		{`{"value":"{{zzz}}","style":"comma"}`, q + `.value PLACEHOLDER_UNKNOWN {{zzz}} is not a property of the input schema | declare it in inputSchema.properties`},
		{`{"value":"a|b","style":"pipe"}`, q + `.value QUERY_STYLE | separates the values and cannot stand in one | write the values as an array, such as ["a", "b"]`},
		{`{"a":1}`, q + ` QUERY_STYLE an object in the query is not supported | give each of its members a parameter of its own, such as "filter[status]": "{{status}}"; for an array write {"value": "{{tags}}", "style": "comma"}`},
		{`{"value":"{{v}}","value":"{{v}}"}`, q + `.value DUPLICATE key "value" appears twice | keep one of them`},
	} {
		_, report := wrapper.Parse([]byte(doc(`{"url":"https://h.test/","query":{"tag":`+tt.param+`}}`, `"v":{},"o":{"type":"object"}`)))
		if got := strings.TrimSpace(lines(report.Problems)); got != tt.want {
			t.Errorf("%s\n got %s\nwant %s", tt.param, got, tt.want)
		}
	}
}
