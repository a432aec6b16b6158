package wrapper_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/wrapper"
	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

func parse(t testing.TB, doc string) *wrapper.Wrapper {
	t.Helper()
	w, report := wrapper.Parse([]byte(doc))
	if !report.OK() {
		t.Fatalf("%s\n%s", doc, lines(report.Problems))
	}
	return w
}

// doc is a wrapper with the given request and, if not empty, input schema
// properties and further members.
func doc(request, properties string, more ...string) string {
	d := `{"schemaVersion":1,"id":"t","request":` + request
	if properties != "" {
		d += `,"inputSchema":{"type":"object","properties":{` + properties + `}}`
	}
	for _, m := range more {
		d += "," + m
	}
	return d + "}"
}

func lines(ps []recipe.Problem) string {
	var b strings.Builder
	for _, p := range ps {
		fmt.Fprintf(&b, "%s %s %s", p.Field, p.Code, p.Message)
		if p.Hint != "" {
			fmt.Fprintf(&b, " | %s", p.Hint)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func outline(ps []recipe.Problem) string {
	var out []string
	for _, p := range ps {
		out = append(out, p.Field+" "+p.Code)
	}
	return strings.Join(out, "; ")
}

// sent writes a call as one text: method, URL, headers, blank line, body.
func sent(c *wrapper.Call) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n", c.Method, c.URL)
	for _, h := range c.Header {
		fmt.Fprintf(&b, "%s: %s\n", h.Name, h.Value)
	}
	if c.Body != nil {
		fmt.Fprintf(&b, "\n%s\n", c.Body)
	}
	return b.String()
}

// short is sent without the default Accept and Content-Type.
func short(c *wrapper.Call) string {
	s := strings.ReplaceAll(sent(c), "Accept: application/json\n", "")
	return strings.TrimSuffix(strings.ReplaceAll(s, "Content-Type: application/json\n", ""), "\n")
}

// build returns what is sent, or the problems.
func build(w *wrapper.Wrapper, args string) string {
	c, err := w.Build([]byte(args))
	if err == nil {
		return short(c)
	}
	fe := fault.From(err)
	if len(fe.Details) == 0 {
		return string(fe.Code) + " " + fe.Field
	}
	var out []string
	for _, d := range fe.Details {
		out = append(out, d.Field+" "+string(d.Code))
	}
	return strings.Join(out, "; ")
}

type buildCase struct{ args, want string }

func run(t *testing.T, document string, cases []buildCase) {
	t.Helper()
	w := parse(t, document)
	for _, tt := range cases {
		if got := build(w, tt.args); got != tt.want {
			t.Errorf("args %s\n got %s\nwant %s", tt.args, got, tt.want)
		}
	}
}

func TestN02LargeID(t *testing.T) {
	run(t, doc(`{"method":"POST","url":"https://h.test/items/{{id}}","query":{"id":"{{id}}"},"body":{"id":"{{id}}","text":"no {{id}}"}}`, `"id":{"type":"integer"}`), []buildCase{
		{`{"id":9007199254740993}`, "POST https://h.test/items/9007199254740993?id=9007199254740993\n\n" + `{"id":9007199254740993,"text":"no 9007199254740993"}`},
	})
}

// Numbers of up to 40 characters arrive as they were written, everywhere.
func TestNumbersArriveExact(t *testing.T) {
	w := parse(t, doc(`{"method":"POST","url":"https://h.test/{{n}}","query":{"n":"{{n}}"},"headers":{"X-N":"{{n}}"},"body":["{{n}}","n {{n}}"]}`, `"n":{"type":"number","minimum":-1e308}`))
	var numbers []string
	for power := uint(0); power <= 129; power++ { // 2^129 has 39 digits
		n := new(big.Int).Lsh(big.NewInt(1), power)
		numbers = append(numbers, n.String(), "-"+n.Sub(n, big.NewInt(1)).String())
	}
	for i := range 40 {
		numbers = append(numbers, fmt.Sprintf("0.%0*d", i%17+1, i), fmt.Sprintf("%d.%d0", i, i), fmt.Sprintf("%dE+%d", i+1, i*7), fmt.Sprintf("1.%de-%d", i, i))
	}
	for _, n := range numbers {
		e := strings.ReplaceAll(n, "+", "%2B")
		want := "POST https://h.test/" + e + "?n=" + e + "\nX-N: " + n + "\n\n[" + n + `,"n ` + n + `"]`
		if got := build(w, `{"n":`+n+`}`); got != want {
			t.Errorf("%s:\n got %s\nwant %s", n, got, want)
		}
	}
}

func TestN03NoScientificForm(t *testing.T) {
	run(t, doc(`{"method":"POST","url":"https://h.test/","query":{"n":"{{n}}"},"body":"n is {{n}}"}`, `"n":{"type":"number"}`), []buildCase{
		{`{"n":21000000}`, "POST https://h.test/?n=21000000\n\n\"n is 21000000\""},
		{`{"n":30.00}`, "POST https://h.test/?n=30.00\n\n\"n is 30.00\""},
		{`{"n":1E3}`, "POST https://h.test/?n=1E3\n\n\"n is 1E3\""},
		{`{"n":-0.0}`, "POST https://h.test/?n=-0.0\n\n\"n is -0.0\""},
	})
}

func TestN06FalseZeroAndEmpty(t *testing.T) {
	run(t, doc(`{"method":"POST","url":"https://h.test/","query":{"a":"{{a}}","b":"{{b}}","c":"{{c}}","d":"{{d}}"},"headers":{"X-A":"{{a}}","X-C":"{{c}}","X-D":"{{d}}"},"body":{"a":"{{a}}","b":"{{b}}","c":"{{c}}","d":"{{d}}"}}`,
		`"a":{"type":"boolean"},"b":{"type":"integer"},"c":{"type":"string"},"d":{"type":"string"}`), []buildCase{
		{`{"a":false,"b":0,"c":""}`, "POST https://h.test/?a=false&b=0&c=\nX-A: false\nX-C: \n\n" + `{"a":false,"b":0,"c":""}`},
	})
}

func TestN07NullAgainstOmitted(t *testing.T) {
	run(t, doc(`{"method":"POST","url":"https://h.test/","query":{"x":"{{x}}","y":"v {{x}}"},"headers":{"X-X":"{{x}}"},"body":{"x":"{{x}}","t":"v {{x}}","l":["{{x}}",1]}}`,
		`"x":{"type":["string","null"]},"s":{"type":"string"}`), []buildCase{
		{`{"x":null}`, "POST https://h.test/\n\n" + `{"x":null,"l":[null,1]}`},
		{`{}`, "POST https://h.test/\n\n" + `{"l":[1]}`},
		{`{"x":"a"}`, "POST https://h.test/?x=a&y=v%20a\nX-X: a\n\n" + `{"x":"a","t":"v a","l":["a",1]}`},
		{`{"s":null}`, "args.s NULL_NOT_ALLOWED"},
	})
}

func TestN09ArrayAsText(t *testing.T) {
	w := parse(t, doc(`{"url":"https://h.test/","query":{"tags":"{{tags}}"}}`, `"tags":{"type":"array","items":{"type":"string"}}`))
	_, err := w.Build([]byte(`{"tags":"[\"a\",\"b\"]"}`))
	want := []fault.Detail{{Field: "args.tags", Code: "TYPE", Message: "expected array, got string", Hint: "send the array itself, not a string that holds it"}}
	if fe := fault.From(err); fe == nil || fe.Code != "ARGS_INVALID" || !cmp.Equal(fe.Details, want) {
		t.Errorf("%+v", fe)
	}
}

func TestN12MissingRequired(t *testing.T) {
	w := parse(t, `{"schemaVersion":1,"id":"t","request":{"url":"https://h.test/{{city}}"},"inputSchema":{"type":"object","properties":{"city":{"type":"string","description":"Name of a city"}},"required":["city"]}}`)
	_, err := w.Build(nil)
	if fe := fault.From(err); fe == nil || fe.Error() != "ARGS_INVALID: args.city: is required: string (Name of a city)" || fe.Field != "args.city" || fe.Details[0].Code != "REQUIRED" {
		t.Errorf("%+v", fe)
	}
}

func TestN13UnknownArgument(t *testing.T) {
	closed := parse(t, `{"schemaVersion":1,"id":"t","request":{"url":"https://h.test/"},"inputSchema":{"type":"object","properties":{"city":{"type":"string"},"lang":{"type":"string"}},"additionalProperties":false}}`)
	_, err := closed.Build([]byte(`{"citty":"Oslo"}`))
	if fe := fault.From(err); fe == nil || fe.Message != "args.citty: unknown argument; accepted: city, lang" || fe.Hint != `did you mean "city"?` {
		t.Errorf("%+v", fe)
	}
	open := parse(t, doc(`{"url":"https://h.test/"}`, `"city":{"type":"string"}`))
	c, err := open.Build([]byte(`{"citty":"Oslo"}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := lines(c.Warnings); got != "args.citty UNKNOWN_FIELD unknown argument; accepted: city | did you mean \"city\"?\n" {
		t.Errorf("%s", got)
	}
}

func TestU02PathEncoding(t *testing.T) {
	run(t, doc(`{"url":"https://h.test/v1/{{id}}/end"}`, `"id":{}`), []buildCase{
		{`{"id":"a b"}`, "GET https://h.test/v1/a%20b/end"},
		{`{"id":"é"}`, "GET https://h.test/v1/%C3%A9/end"},
		{`{"id":"x?y#z"}`, "GET https://h.test/v1/x%3Fy%23z/end"},
		{`{"id":"a;b"}`, "GET https://h.test/v1/a%3Bb/end"},
		{`{"id":"100%"}`, "GET https://h.test/v1/100%25/end"},
		{`{"id":"group/project"}`, "GET https://h.test/v1/group%2Fproject/end"},
		{`{"id":"{{id}}"}`, "GET https://h.test/v1/%7B%7Bid%7D%7D/end"},
		{`{"id":"~a-b_c.d"}`, "GET https://h.test/v1/~a-b_c.d/end"},
		{`{"id":true}`, "GET https://h.test/v1/true/end"},
		{`{"id":"..."}`, "GET https://h.test/v1/.../end"},
		{`{"id":"%2e%2e"}`, "GET https://h.test/v1/%252e%252e/end"},
		{`{"id":""}`, "args.id PATH_SEGMENT"},
		{`{"id":"."}`, "args.id PATH_SEGMENT"},
		{`{"id":".."}`, "args.id PATH_SEGMENT"},
		{`{"id":"a/../../b"}`, "args.id PATH_SEGMENT"},
		{`{"id":"..\\b"}`, "args.id PATH_SEGMENT"},
		{`{"id":"a\u0000"}`, "args.id CONTROL_CHARACTER"},
		{`{"id":"a\r\nb"}`, "args.id CONTROL_CHARACTER"},
		{`{"id":null}`, "args.id NULL_NOT_ALLOWED"},
		{`{}`, "args.id REQUIRED"},
		{`{"id":["a"]}`, "args.id TYPE"},
		{`{"id":{"a":1}}`, "args.id TYPE"},
	})
	// Dots that only the template and the value together make.
	run(t, doc(`{"url":"https://h.test/a/.{{x}}/%2E{{y}}/{{x}}{{y}}"}`, `"x":{},"y":{}`), []buildCase{
		{`{"x":"a","y":"b"}`, "GET https://h.test/a/.a/%2Eb/ab"},
		{`{"x":".","y":"b"}`, "args.x PATH_SEGMENT"},
		{`{"x":"a","y":"."}`, "args.y PATH_SEGMENT"},
		{`{"x":"a","y":""}`, "args.y PATH_SEGMENT"},
	})
}

func TestU03RawPath(t *testing.T) {
	run(t, doc(`{"url":"https://h.test/files/{{path|raw}}"}`, `"path":{"type":"string"}`), []buildCase{
		{`{"path":"a b/c"}`, "GET https://h.test/files/a%20b/c"},
		{`{"path":"é?/#x"}`, "GET https://h.test/files/%C3%A9%3F/%23x"},
		{`{"path":"a"}`, "GET https://h.test/files/a"},
		{`{"path":"a//b"}`, "args.path PATH_SEGMENT"},
		{`{"path":"/a"}`, "args.path PATH_SEGMENT"},
		{`{"path":"a/"}`, "args.path PATH_SEGMENT"},
		{`{"path":"a/./b"}`, "args.path PATH_SEGMENT"},
		{`{"path":"a/../b"}`, "args.path PATH_SEGMENT"}, // D36
		{`{"path":"a\\b"}`, "args.path PATH_SEGMENT"},
		{`{"path":"%2e%2e"}`, "args.path PATH_SEGMENT"},
		{`{"path":"a/%2E./b"}`, "args.path PATH_SEGMENT"},
		{`{"path":"a\nb"}`, "args.path PATH_SEGMENT"},
		{`{"path":""}`, "args.path PATH_SEGMENT"},
		{`{}`, "args.path REQUIRED"},
	})
	run(t, doc(`{"url":"https://h.test/x.{{path|raw}}.json/{{path | raw}}"}`, `"path":{}`), []buildCase{
		{`{"path":"a/b"}`, "GET https://h.test/x.a/b.json/a/b"},
		{`{"path":7}`, "GET https://h.test/x.7.json/7"},
	})
}

func TestU05U07LiteralBytesStay(t *testing.T) {
	for _, u := range []string{
		"https://h.test", "https://h.test/", "https://h.test/a", "https://h.test/a/", "https://h.test/a//b/", "https://h.test?x=1",
		"https://h.test/a%20b?x=%2B", "https://h.test/a%2Fb%2fc", "https://h.test/a;v=1,2/(x)/$metadata/[1]!*'", "https://h.test/@user:x&y=z+1",
		"https://h.test/?", "https://h.test/x?a=1&&b&c=&", "https://h.test/x?f[a]=1|2&g={a}`^~", "https://h.test/a/../b/./c", "https://h.test:8443/x", "http://h.test:443/",
	} {
		c, err := parse(t, doc(`{"url":"`+u+`"}`, "")).Build(nil)
		if err != nil || c.URL.String() != u {
			t.Errorf("%s becomes %s (%v)", u, c.URL, err)
		}
		if path, ok := strings.CutPrefix(u, "https://h.test/"); ok && c.URL.RequestURI() != "/"+path { // what net/http sends
			t.Errorf("%s is requested as %s", u, c.URL.RequestURI())
		}
	}
	// Literal escapes stay beside filled values.
	run(t, doc(`{"url":"https://h.test/a%2Fb/{{x}}?q=%2B&y={{x}}"}`, `"x":{}`), []buildCase{
		{`{"x":"é/ü"}`, "GET https://h.test/a%2Fb/%C3%A9%2F%C3%BC?q=%2B&y=%C3%A9%2F%C3%BC"},
	})
}

func TestU12ObjectInTheQuery(t *testing.T) {
	for _, tt := range []struct{ query, prop string }{
		{`{"filter":"{{filter}}"}`, `"filter":{"type":"object"}`},
		{`{"filter":"{{filter}}"}`, `"filter":{"type":["object","null"]}`},
		{`{"filter":"{{filter}}"}`, `"filter":{"type":"array","items":{"type":"object"}}`},
		{`{"filter":"{{filter}}"}`, `"filter":{"type":"array","items":{"type":"array"}}`},
		{`{"filter":{"a":1}}`, ``},
		{`{"filter":{"value":"{{filter}}","style":"comma"}}`, `"filter":{"type":"array"}`},
	} {
		_, report := wrapper.Parse([]byte(doc(`{"url":"https://h.test/","query":`+tt.query+`}`, tt.prop)))
		if got := outline(report.Problems); got != "wrapper.request.query.filter QUERY_STYLE" {
			t.Errorf("%s %s: %s", tt.query, tt.prop, got)
		}
	}
	run(t, doc(`{"url":"https://h.test/","query":{"filter":"{{filter}}"}}`, `"filter":{}`), []buildCase{
		{`{"filter":{"a":1,"b":{"c":2}}}`, "args.filter TYPE"},
		{`{"filter":[1,{"a":1}]}`, "args.filter TYPE"},
		{`{"filter":[[1]]}`, "args.filter TYPE"},
	})
}

func TestU16QueryAndBodyInOnePost(t *testing.T) {
	run(t, doc(`{"method":"POST","url":"https://h.test/x?dry=1","query":{"lang":"{{lang}}"},"body":{"name":"{{name}}"}}`, `"lang":{"type":"string"},"name":{"type":"string"}`), []buildCase{
		{`{"name":"n","lang":"en"}`, "POST https://h.test/x?dry=1&lang=en\n\n" + `{"name":"n"}`},
	})
}

func TestU18DeleteWithABody(t *testing.T) {
	run(t, doc(`{"method":"DELETE","url":"https://h.test/x","body":"{{ids}}"}`, `"ids":{"type":"array","items":{"type":"string"}}`), []buildCase{
		{`{"ids":["a"]}`, "DELETE https://h.test/x\n\n[\"a\"]"},
		{`{}`, "DELETE https://h.test/x"},
	})
}

func TestQuery(t *testing.T) {
	run(t, doc(`{"url":"https://h.test/s?fixed=a+b&q={{q}}&mix=x-{{q}}-{{n}}&tag={{tags}}","query":{"q 2":"{{q}}","tag":"{{tags}}","sort":"name:{{q}} é","n":5,"t":true,"two":["{{q}}","b c","{{tags}}",1],"lit":"a b&c"}}`,
		`"q":{"type":"string"},"n":{"type":"integer"},"tags":{"type":"array","items":{"type":["string","null"]}}`), []buildCase{
		{`{"q":"é &=+","n":1,"tags":["a","b&"]}`, "GET https://h.test/s?fixed=a+b&q=%C3%A9%20%26%3D%2B&mix=x-%C3%A9%20%26%3D%2B-1&tag=a&tag=b%26&q%202=%C3%A9%20%26%3D%2B&tag=a&tag=b%26&sort=name%3A%C3%A9%20%26%3D%2B%20%C3%A9&n=5&t=true&two=%C3%A9%20%26%3D%2B&two=b%20c&two=a&two=b%26&two=1&lit=a%20b%26c"},
		{`{}`, "GET https://h.test/s?fixed=a+b&n=5&t=true&two=b%20c&two=1&lit=a%20b%26c"},
		{`{"tags":[]}`, "GET https://h.test/s?fixed=a+b&n=5&t=true&two=b%20c&two=1&lit=a%20b%26c"},
		{`{"tags":[null,"a"],"q":"line\nbreak"}`, "GET https://h.test/s?fixed=a+b&q=line%0Abreak&tag=a&q%202=line%0Abreak&tag=a&sort=name%3Aline%0Abreak%20%C3%A9&n=5&t=true&two=line%0Abreak&two=b%20c&two=a&two=1&lit=a%20b%26c"},
	})
	// A URL whose own query is empty, or ends in "&", or loses all of its pairs.
	run(t, doc(`{"url":"https://h.test/?","query":{"a":"{{a}}"}}`, `"a":{}`), []buildCase{{`{"a":1}`, "GET https://h.test/?a=1"}, {`{}`, "GET https://h.test/?"}})
	run(t, doc(`{"url":"https://h.test/?x=1&","query":{"a":"{{a}}"}}`, `"a":{}`), []buildCase{{`{"a":1}`, "GET https://h.test/?x=1&a=1"}, {`{}`, "GET https://h.test/?x=1&"}})
	run(t, doc(`{"url":"https://h.test/?x={{a}}"}`, `"a":{}`), []buildCase{{`{"a":1}`, "GET https://h.test/?x=1"}, {`{}`, "GET https://h.test/"}})
}

func TestBody(t *testing.T) {
	run(t, doc(`{"method":"PUT","url":"https://h.test/","body":{"z":1.0,"a":["{{l}}","x {{s}} y",{"deep":"{{o}}","k":"{{s}}"},null,true,9007199254740993],"s":"{{s}}","empty":{"only":"{{s}}"},"none":["{{s}}"],"q\"uote":"a\"b","lit":"{ }} {","uni":"é😀<"}}`,
		`"l":{"type":"array"},"s":{"type":"string"},"o":{"type":"object"}`), []buildCase{
		{`{"l":[1,2.50],"s":"q\"{{l}}\n","o":{"b":1,"a":[]}}`, "PUT https://h.test/\n\n" + `{"z":1.0,"a":[[1,2.50],"x q\"{{l}}\n y",{"deep":{"b":1,"a":[]},"k":"q\"{{l}}\n"},null,true,9007199254740993],"s":"q\"{{l}}\n","empty":{"only":"q\"{{l}}\n"},"none":["q\"{{l}}\n"],"q\"uote":"a\"b","lit":"{ }} {","uni":"é😀<"}`},
		{`{}`, "PUT https://h.test/\n\n" + `{"z":1.0,"a":[{},null,true,9007199254740993],"empty":{},"none":[],"q\"uote":"a\"b","lit":"{ }} {","uni":"é😀<"}`},
	})
	free := doc(`{"method":"POST","url":"https://h.test/_search","body":"{{body}}"}`, `"body":{"type":"object"}`)
	run(t, free, []buildCase{
		{`{"body":{"query":{"match_all":{}},"size":10}}`, "POST https://h.test/_search\n\n" + `{"query":{"match_all":{}},"size":10}`},
		{`{}`, "POST https://h.test/_search"},
	})
	// No body, no Content-Type.
	c, err := parse(t, free).Build(nil)
	if err != nil || sent(c) != "POST https://h.test/_search\nAccept: application/json\n" {
		t.Errorf("%v %v", c, err)
	}
	for body, want := range map[string]string{`{}`: `{}`, `[]`: `[]`, `false`: `false`, `0`: `0`, `""`: `""`, `"text"`: `"text"`} {
		run(t, doc(`{"method":"POST","url":"https://h.test/","body":`+body+`}`, ""), []buildCase{{``, "POST https://h.test/\n\n" + want}})
	}
	run(t, doc(`{"method":"POST","url":"https://h.test/","body":null}`, ""), []buildCase{{``, "POST https://h.test/"}})
}

func TestHeaders(t *testing.T) {
	const props = `"x":{},"n":{"type":"integer"}`
	run(t, doc(`{"url":"https://h.test/","headers":{"X-B":"{{x}}","X-A":"pre {{x}}; n={{n}}","x-num":7,"X-Bool":false,"X-Trim":"  {{x}} "}}`, props), []buildCase{
		{`{"x":"v","n":1}`, "GET https://h.test/\nX-B: v\nX-A: pre v; n=1\nx-num: 7\nX-Bool: false\nX-Trim: v"},
		{`{"x":"v"}`, "GET https://h.test/\nX-B: v\nx-num: 7\nX-Bool: false\nX-Trim: v"},
		{`{"x":"a\r\nEvil: 1"}`, "args.x CONTROL_CHARACTER"}, // D35
		{`{"x":"a\u0000"}`, "args.x CONTROL_CHARACTER"},
		{`{"x":"a\tb"}`, "args.x CONTROL_CHARACTER"},
		{`{"x":"a\u007f"}`, "args.x CONTROL_CHARACTER"},
		{`{"x":"a\u0085b"}`, "args.x CONTROL_CHARACTER"},
		{`{"x":"é"}`, "args.x HEADER_INVALID"},
		{`{"x":["a"]}`, "args.x TYPE"},
	})
	author := parse(t, doc(`{"method":"POST","url":"https://h.test/","headers":{"content-type":"application/vnd.api+json","ACCEPT":"text/csv","User-Agent":"me"},"body":{}}`, ""))
	c, err := author.Build(nil)
	if err != nil || sent(c) != "POST https://h.test/\ncontent-type: application/vnd.api+json\nACCEPT: text/csv\nUser-Agent: me\n\n{}\n" {
		t.Errorf("%v %v", c, err)
	}
	omitted := parse(t, doc(`{"method":"POST","url":"https://h.test/","headers":{"Content-Type":"{{x}}"},"body":{}}`, props))
	c, err = omitted.Build(nil)
	if err != nil || sent(c) != "POST https://h.test/\nAccept: application/json\nContent-Type: application/json\n\n{}\n" {
		t.Errorf("%v %v", c, err)
	}
}

func TestMethods(t *testing.T) {
	const body = `,"url":"https://h.test/","body":{"x":"{{x}}"}`
	many := doc(`{"method":"GET","methods":["GET","POST","delete"]`+body+`}`, `"x":{}`)
	run(t, many, []buildCase{
		{`{"x":1}`, "GET https://h.test/"},
		{`{"x":1,"method":"GET"}`, "GET https://h.test/"},
		{`{"x":1,"method":"POST"}`, "POST https://h.test/\n\n" + `{"x":1}`},
		{`{"x":1,"method":"DELETE"}`, "DELETE https://h.test/\n\n" + `{"x":1}`},
		{`{"method":"PUT"}`, "args.method METHOD_NOT_OFFERED"},
		{`{"method":"post"}`, "args.method METHOD_NOT_OFFERED"},
		{`{"method":null}`, "args.method NULL_NOT_ALLOWED"},
	})
	w := parse(t, many)
	if !cmp.Equal(w.Request.Methods, []string{"GET", "POST", "DELETE"}) || w.DefaultMethod() != "GET" {
		t.Errorf("%v %s", w.Request.Methods, w.DefaultMethod())
	}
	if got, want := string(recipe.Encode(w.EffectiveSchema())), `{"type":"object","properties":{"x":{},"method":{"type":"string","enum":["GET","POST","DELETE"],"default":"GET","description":"HTTP method"}}}`; got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	for _, tt := range []struct {
		request string
		methods string
	}{
		{`{"url":"https://h.test/"}`, "GET"},
		{`{"method":"post","url":"https://h.test/"}`, "POST"},
		{`{"method":["PUT","GET"],"url":"https://h.test/"}`, "PUT GET"},
		{`{"methods":["POST","GET"],"url":"https://h.test/"}`, "POST GET"},
		{`{"method":"GET","methods":["POST","GET"],"url":"https://h.test/"}`, "GET POST"},
		{`{"method":"GET","methods":["POST"],"url":"https://h.test/"}`, "GET POST"},
		{`{"method":"GET","methods":["GET"],"url":"https://h.test/"}`, "GET"},
	} {
		if got := strings.Join(parse(t, doc(tt.request, "")).Request.Methods, " "); got != tt.methods {
			t.Errorf("%s: %s, want %s", tt.request, got, tt.methods)
		}
	}
	if got := string(recipe.Encode(parse(t, doc(`{"method":"PUT","url":"https://h.test/"}`, "")).EffectiveSchema())); got != `{"type":"object","properties":{}}` {
		t.Errorf("one method, no schema: %s", got)
	}
}

// Decision 11, and the default of the seeds.
func TestMutating(t *testing.T) {
	for _, tt := range []struct {
		name, request, member, args string
		wrapper, call               bool
	}{
		{"read", `"method":"GET"`, ``, ``, false, false},
		{"head", `"method":"HEAD"`, ``, ``, false, false},
		{"write", `"method":"POST"`, ``, ``, true, true},
		{"put", `"method":"PUT"`, ``, ``, true, true},
		{"patch", `"method":"PATCH"`, ``, ``, true, true},
		{"delete", `"method":"DELETE"`, ``, ``, true, true},
		{"write that says it is none", `"method":"POST"`, `"mutating":false`, ``, false, true},
		{"read that says it writes", `"method":"GET"`, `"mutating":true`, ``, true, true},
		{"several, the read", `"methods":["GET","POST"]`, ``, ``, true, false},
		{"several, the write", `"methods":["GET","POST"]`, ``, `{"method":"POST"}`, true, true},
		{"several, declared, the read", `"methods":["GET","POST"]`, `"mutating":true`, ``, true, true},
		{"override header", `"method":"GET","headers":{"X-HTTP-Method-Override":"DELETE"}`, `"mutating":false`, ``, true, true},
		{"other override header", `"method":"GET","headers":{"x-http-method":"{{m}}"}`, ``, ``, true, true},
		{"third override header", `"method":"GET","headers":{"X-Method-Override":"PUT"}`, ``, ``, true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			more := []string{}
			if tt.member != "" {
				more = append(more, tt.member)
			}
			w := parse(t, doc(`{`+tt.request+`,"url":"https://h.test/"}`, `"m":{}`, more...))
			c, err := w.Build([]byte(tt.args))
			if err != nil {
				t.Fatal(err)
			}
			if w.Mutating != tt.wrapper || c.Mutating() != tt.call {
				t.Errorf("wrapper %v, call %v; want %v, %v", w.Mutating, c.Mutating(), tt.wrapper, tt.call)
			}
		})
	}
}

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
		{"all at once, in document order", `{"request":{"method":"FETCH","url":"ftp://x/","timeoutMs":0},"response":{"schemaVersion":1,"fields":{"Price":{"path":"p","format":"money"}}},"id":"a b","inputSchema":{"type":"object","properties":{"p":{"oneOf":[]}}},"mutating":"yes"}`,
			r + ".method METHOD_UNKNOWN; " + r + ".url URL_SCHEME; " + r + ".timeoutMs TIMEOUT_RANGE; response.fields.Price.format FORMAT_UNKNOWN; wrapper.id ID_INVALID; wrapper.inputSchema.properties.p.oneOf SCHEMA_KEYWORD; wrapper.mutating TYPE; wrapper.schemaVersion REQUIRED", ""},
		{"version", `{"schemaVersion":2,"id":"t","request":{"url":"https://h.test/"}}`, "wrapper.schemaVersion VERSION_UNSUPPORTED", ""},
		{"version as text", `{"schemaVersion":"1","id":"t","request":{"url":"https://h.test/"}}`, "wrapper.schemaVersion VERSION_UNSUPPORTED", ""},
		{"duplicate keys", `{"schemaVersion":1,"id":"t","id":"u","request":{"url":"https://h.test/","query":{"a":1,"a":2}},"inputSchema":{"type":"object","properties":{"p":{},"p":{}}},"response":{"schemaVersion":1,"mode":"table","mode":"table","fields":{"A":"a"}}}`,
			"wrapper.id DUPLICATE; wrapper.request.query.a DUPLICATE; wrapper.inputSchema.properties.p DUPLICATE; response.mode DUPLICATE", ""},
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
		{"braces that are no placeholders", req(`"body":"{x} }} {"`), "", ""},

		{"D39 Authorization", req(`"headers":{"Authorization":"Bearer x"}`), r + ".headers.Authorization CREDENTIAL_HEADER", ""},
		{"D39 X-Api-Key", req(`"headers":{"x-api-key":"{{x}}"}`), r + ".headers.x-api-key CREDENTIAL_HEADER", ""},
		{"Cookie", req(`"headers":{"Cookie":"a=b"}`), r + ".headers.Cookie CREDENTIAL_HEADER", ""},
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
		{"later keys", req(`"bodyType":"form","formArrays":"repeat","rate":{},"concurrency":1,"idempotencyKey":{}`),
			r + ".bodyType NOT_SUPPORTED; " + r + ".formArrays NOT_SUPPORTED; " + r + ".rate NOT_SUPPORTED; " + r + ".concurrency NOT_SUPPORTED; " + r + ".idempotencyKey NOT_SUPPORTED", ""},
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

// What is refused may be a secret in the wrong place: it is never repeated.
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

func TestLimitsOfARequest(t *testing.T) {
	const props = `"x":{"type":"string"},"l":{"type":"array"}`
	filled := func(n int) string { return `{"x":"` + strings.Repeat("a", n) + `"}` }
	const tooLarge = "POLICY_REQUEST_TOO_LARGE wrapper.request."
	for _, tt := range []struct {
		name, request string
		at            int // length of x that still fits
		field         string
	}{
		{"path", `"url":"https://h.test/{{x}}"`, 16<<10 - len("https://h.test/"), "url"},
		{"query", `"url":"https://h.test/?a={{x}}"`, 16<<10 - len("https://h.test/?a="), "url"},
		{"request.query", `"url":"https://h.test/","query":{"a":"v{{x}}"}`, 16<<10 - len("https://h.test/?a=v"), "url"},
		{"headers", `"url":"https://h.test/","headers":{"X-A":"1234","X-B":"{{x}}"}`, 64<<10 - 4, "headers"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := parse(t, doc(`{`+tt.request+`}`, props))
			if got := build(w, filled(tt.at)); strings.HasPrefix(got, "POLICY") || strings.HasPrefix(got, "args") {
				t.Errorf("at the limit: %.100s", got)
			}
			if got := build(w, filled(tt.at+1)); got != tooLarge+tt.field {
				t.Errorf("one over: %.100s", got)
			}
		})
	}
	t.Run("body", func(t *testing.T) {
		// Ten times x, ten times its quotes, nine commas, two brackets.
		w := parse(t, doc(`{"method":"POST","url":"https://h.test/","body":[`+strings.Repeat(`"{{x}}",`, 9)+`"{{x}}"]}`, props))
		n := (5<<20 - 31) / 10
		rest := 5<<20 - 31 - 10*n
		c, err := w.Build([]byte(filled(n)))
		if err != nil || len(c.Body) != 5<<20-rest {
			t.Errorf("at the limit: %v", err)
		}
		if got := build(w, filled(n+1)); got != tooLarge+"body" {
			t.Errorf("over: %.100s", got)
		}
	})
	t.Run("a small template cannot ask for gigabytes", func(t *testing.T) {
		many := strings.Repeat("{{x}}", 10000)
		w := parse(t, doc(`{"method":"POST","url":"https://h.test/{{x}}","query":{"l":"{{l}}"},"headers":{"X-A":"`+many+`"},"body":{"t":"`+many+`","l":[`+strings.Repeat(`"{{x}}",`, 9999)+`1]}}`, props))
		start := time.Now()
		if got := build(w, filled(1<<20-100)); got != tooLarge+"url" {
			t.Errorf("%.100s", got)
		}
		if got := build(w, `{"x":"a","l":[`+strings.Repeat(`"b",`, 150000)+`1]}`); got != tooLarge+"url" {
			t.Errorf("%.100s", got)
		}
		body := parse(t, doc(`{"method":"POST","url":"https://h.test/","body":{"t":"`+many+`"}}`, props))
		if got := build(body, filled(1<<20-100)); got != tooLarge+"body" {
			t.Errorf("%.100s", got)
		}
		if took := time.Since(start); took > 8*time.Second {
			t.Errorf("took %v", took)
		}
	})
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

func TestCallDigest(t *testing.T) {
	const props = `"x":{},"h":{},"q":{},"b":{}`
	base := `{"method":"POST","url":"https://h.test/{{x}}","query":{"q":"{{q}}"},"headers":{"X-H":"{{h}}"},"body":"{{b}}","auth":"k"}`
	digest := func(request, args string) [32]byte {
		c, err := parse(t, doc(request, props)).Build([]byte(args))
		if err != nil {
			t.Fatal(err)
		}
		return c.Digest()
	}
	const args = `{"x":"1","q":"2","h":"3","b":"4"}`
	first := digest(base, args)
	if digest(base, `{"b":"4","h":"3","q":"2","x":"1"}`) != first || digest(strings.Replace(base, `{{x}}`, `1`, 1), args) != first {
		t.Error("the same request has another digest")
	}
	for _, other := range []string{`{"x":"0","q":"2","h":"3","b":"4"}`, `{"x":"1","q":"0","h":"3","b":"4"}`, `{"x":"1","q":"2","h":"0","b":"4"}`, `{"x":"1","q":"2","h":"3","b":"0"}`, `{"x":"1","q":"2","h":"3","b":4}`, `{"x":"1","q":"2","h":"3"}`, `{"x":"1","h":"3","b":"4"}`} {
		if digest(base, other) == first {
			t.Errorf("%s has the same digest", other)
		}
	}
	for _, other := range []string{strings.Replace(base, "POST", "PUT", 1), strings.Replace(base, "h.test", "i.test", 1), strings.Replace(base, `"k"`, `"l"`, 1), strings.Replace(base, "https", "http", 1), strings.Replace(base, "X-H", "X-I", 1)} {
		if digest(other, args) == first {
			t.Errorf("%s has the same digest", other)
		}
	}
}

func TestPreview(t *testing.T) {
	c, err := parse(t, doc(`{"method":"POST","url":"https://h.test/x","query":{"q":"{{x}}"},"headers":{"X-B":"{{x}}"},"body":{"x":"{{x}}"},"auth":"orders-key"}`, `"x":{}`)).Build([]byte(`{"x":"v"}`))
	if err != nil {
		t.Fatal(err)
	}
	// Neither can come from a wrapper; paging or a later version might add them.
	c.Header = append(c.Header, wrapper.Header{Name: "Authorization", Value: "Bearer canary"})
	c.URL.RawQuery += "&token=canary"
	want := wrapper.Preview{
		Method: "POST", URL: "https://h.test/x?q=v&token=[redacted]",
		Headers: []wrapper.Header{{Name: "X-B", Value: "v"}, {Name: "Accept", Value: "application/json"}, {Name: "Content-Type", Value: "application/json"}, {Name: "Authorization", Value: "[redacted]"}},
		Body:    json.RawMessage(`{"x":"v"}`), Auth: "orders-key",
	}
	if diff := cmp.Diff(want, c.Preview()); diff != "" {
		t.Error(diff)
	}
}

func TestBuildShowsDefaults(t *testing.T) {
	w := parse(t, doc(`{"url":"https://h.test/","query":{"limit":"{{limit}}"}}`, `"limit":{"type":"integer","default":10},"q":{}`))
	c, err := w.Build([]byte(`{"q":1}`))
	if err != nil || string(recipe.Encode(c.Args)) != `{"q":1,"limit":10}` || c.Timeout != 15*time.Second {
		t.Errorf("%+v %v", c, err)
	}
	var fe *fault.Error
	if _, err := w.Build([]byte(`{"a":1,"a":2}`)); !errors.As(err, &fe) || fe.Details[0].Code != "DUPLICATE" { // D28
		t.Errorf("%v", err)
	}
}

func TestToolName(t *testing.T) {
	free := func(string) bool { return false }
	taken := func(names ...string) func(string) bool {
		return func(n string) bool { return slices.Contains(names, n) }
	}
	long := strings.Repeat("a", 41) // wrap_ + 41 = 46
	for _, tt := range []struct {
		name, id string
		taken    func(string) bool
		want     string
	}{
		{"mapping", "dummyjson.auth.me", free, "wrap_dummyjson_auth_me"},
		{"kept characters", "A-b_9", free, "wrap_A-b_9"},
		{"at the limit", long, free, "wrap_" + long},
		// printf %s ID | sha256sum | cut -c1-6
		{"over the limit", long + "a", free, "wrap_" + long[:34] + "_" + "7a5386"},
		{"taken", "a.b", taken("wrap_a_b"), "wrap_a_b_2e7336"},
		{"reserved", "run", free, "wrap_run_acba25"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := wrapper.ToolName(tt.id, tt.taken); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
	if got := parse(t, `{"schemaVersion":1,"id":"run","request":{"url":"https://h.test/"}}`).BaseToolName(); got != "wrap_run" {
		t.Errorf("BaseToolName() = %s", got)
	}
	first := wrapper.ToolName("run", free)
	second := wrapper.ToolName("run", taken(first))
	if second == first || len(second) > 46 || !strings.HasPrefix(second, "wrap_run_") {
		t.Errorf("both taken: %s", second)
	}
	if len(wrapper.Reserved()) != 11 {
		t.Errorf("%d reserved names; ten meta-tools and recall_memory", len(wrapper.Reserved()))
	}
}

// Documents that are nothing but one mistake repeated must not cost more than
// their size.
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

func TestConcurrentBuild(t *testing.T) {
	w := parse(t, doc(`{"method":"POST","url":"https://h.test/{{s}}","query":{"l":"{{l}}"},"headers":{"X-S":"{{s}}"},"body":{"l":"{{l}}","n":"{{n}}"}}`,
		`"s":{"type":"string","pattern":"^[a-z]+$"},"l":{"type":"array","items":{"type":"integer"}},"n":{"type":"integer","enum":[1,2],"default":1}`))
	args := []byte(`{"s":"abc","l":[1,2]}`)
	first, err := w.Build(args)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan bool)
	for range 8 {
		go func() {
			same := true
			for range 100 {
				c, err := w.Build(args)
				same = same && err == nil && c.Digest() == first.Digest()
			}
			done <- same
		}()
	}
	for range 8 {
		if !<-done {
			t.Error("another request at the same time")
		}
	}
}
