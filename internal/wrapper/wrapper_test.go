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

// Numbers of up to 64 characters arrive as they were written, everywhere.
func TestNumbersArriveExact(t *testing.T) {
	w := parse(t, doc(`{"method":"POST","url":"https://h.test/{{n}}","query":{"n":"{{n}}"},"headers":{"X-N":"{{n}}"},"body":["{{n}}","n {{n}}"]}`, `"n":{"type":"number","minimum":-1e308}`))
	var numbers []string
	for power := uint(0); power <= 205; power++ { // 2^205 has 62 digits
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
	if fe := fault.From(err); fe == nil || fe.Error() != "ARGS_INVALID: args.city: is required (string: Name of a city)" || fe.Field != "args.city" || fe.Details[0].Code != "REQUIRED" {
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
		{"override header with underscores", `"method":"GET","headers":{"X_HTTP_Method_Override":"DELETE"}`, `"mutating":false`, ``, true, true},
		{"override header, mixed", `"method":"GET","headers":{"x-http_method":"PUT"}`, ``, ``, true, true},
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

// What is refused may be a secret in the wrong place: it is never repeated.
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

// A header named like a part of the digest is no such part: a body must not go
// out on the answer for a header that reads the same.
func TestCallDigestKeepsPartsApart(t *testing.T) {
	w := parse(t, doc(`{"method":"POST","url":"https://h.test/","headers":{"Accept":"*/*","Content-Type":"text/plain","body":"{{h}}"},"body":"{{b}}","bodyType":"text"}`, `"h":{},"b":{}`))
	header, err := w.Build([]byte(`{"h":"x"}`))
	if err != nil || len(header.Header) != 3 || header.Body != nil {
		t.Fatalf("%+v %v", header, err)
	}
	body, err := w.Build([]byte(`{"b":"x"}`))
	if err != nil || len(body.Header) != 2 || string(body.Body) != "x" {
		t.Fatalf("%+v %v", body, err)
	}
	if header.Digest() == body.Digest() {
		t.Error("a header and a body have the same digest")
	}
	for _, part := range []string{"idempotency", "auth"} {
		plain := wrapper.Call{Method: "POST", URL: header.URL, Auth: "k"}
		named := plain
		if part == "auth" { // the header is where the credential stood, and the other way round
			plain.Header, plain.Auth = []wrapper.Header{{Name: "auth", Value: "k"}}, ""
			named.Header, named.Auth = nil, "k"
		} else {
			plain.Header = []wrapper.Header{{Name: part, Value: "K"}}
			named.IdempotencyHeader = "K"
		}
		if plain.Digest() == named.Digest() {
			t.Errorf("a header %q has the digest of the part", part)
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
