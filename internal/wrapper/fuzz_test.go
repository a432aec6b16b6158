package wrapper_test

import (
	"bytes"
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/hostname"
	"github.com/hyperbolic-gateway/hb-rest/internal/wrapper"
)

const fuzzDoc = `{"schemaVersion":1,"id":"f","request":{"methods":["GET","POST"],"url":"https://api.example.com/v1/{{a}}/.{{b}}/{{c|raw}}?x={{a}}&y=-{{b}}-&z","query":{"l":"{{l}}","t":"pre {{a}}"},"headers":{"X-A":"{{a}}","X-B":"v {{b}}"},"body":{"a":"{{a}}","t":"<{{b}}>","l":["{{l}}",{"o":"{{o}}"}]}},"inputSchema":{"type":"object","properties":{"a":{},"b":{"type":"string","default":"d"},"c":{"type":"string"},"l":{},"o":{"type":"object"}},"required":["a","c"]}}`

// FuzzBuild holds for any document and any arguments: no argument changes the
// origin, the number of path segments that a literal template has, or a
// header's line; the body is JSON; the same arguments make the same request; a
// document that is accepted is accepted again unchanged.
func FuzzBuild(f *testing.F) {
	docs := []string{
		fuzzDoc,
		`{"schemaVersion":1,"id":"t","request":{"method":"PUT","url":"https://h.test:8443/a%2Fb?q={{q}}&","body":"{{q}}","auth":"k"},"inputSchema":{"type":"object","properties":{"q":{}}}}`,
		`{"schemaVersion":1,"id":"t","request":{"url":"http://[::1]/{{q|raw}}"},"inputSchema":{"type":"object","properties":{"q":{"type":"string"}},"required":["q"]},"response":{"schemaVersion":1,"fields":{"A":"a"}}}`,
	}
	docs = append(docs,
		`{"schemaVersion":1,"id":"t","request":{"method":"POST","url":"https://h.test/","bodyType":"form","formArrays":"brackets","body":{"a":"{{a}}","m":{"k":"{{a}}","l":["{{l}}",{"x":"{{o}}"}]},"t[]":"{{l}}","n":null},"idempotencyKey":{"header":"Idempotency-Key","value":"k{{a}}"},"concurrency":3,"rate":{"requests":5,"seconds":1}},"inputSchema":{"type":"object","properties":{"a":{},"l":{},"o":{}}}}`,
		`{"schemaVersion":1,"id":"t","request":{"methods":["PUT","GET"],"url":"https://h.test/","bodyType":"form","body":"{{q}}"},"inputSchema":{"type":"object","properties":{"q":{}}}}`,
		`{"schemaVersion":1,"id":"t","request":{"method":"POST","url":"https://h.test/","headers":{"content-type":"text/csv"},"bodyType":"text","body":"{{a}},{{q}}\n"},"inputSchema":{"type":"object","properties":{"a":{},"q":{}}}}`,
		`{"schemaVersion":1,"id":"t","request":{"url":"https://h.test/?x=1","query":{"c":{"value":"{{l}}","style":"comma"},"p":{"style":"pipe","value":["{{l}}","x{{a}}"]},"b":{"value":["{{l}}",1],"style":"brackets"},"r":{"value":"{{q}}","style":"repeat"}}},"inputSchema":{"type":"object","properties":{"a":{},"l":{},"q":{}}}}`,
		`{"schemaVersion":1,"id":"t","request":{"method":"POST","url":"https://h.test/","body":{"v":"{{o}}"}},"inputSchema":{"type":"object","properties":{"o":{}}},"response":{"schemaVersion":1,"fields":{"A":"a"},"pagination":{"type":"cursor","next":"n","cursorParam":"v.after","in":"body"}}}`,
	)
	args := []string{
		`{"a":"x","l":["p,q","r|s",null,[1],{"k":[]}],"o":{"k":{"z":1.50}},"q":{"a":1,"b":[true,null,{"c":""}]}}`, `{"o":{"x][y":1,"":2},"l":[[],[{}],[[1]]],"a":""}`,
		`{"a":"x","c":"a/b","l":["p","q"],"o":{"k":1.0}}`, `{"a":"..","c":"a/../b"}`, `{"a":"a\r\nEvil: 1","c":"x"}`, `{"a":"@evil.test/","c":"?#"}`,
		`{"a":9007199254740993,"b":".","c":"%2e%2e","method":"POST"}`, `{"q":"/"}`, `{"q":["a",null,true]}`, `{"a":"{{b}}","c":"{{a}}"}`, `null`, `{"a":1,"a":2}`, `{"a":1e999,"c":""}`,
	}
	for _, d := range docs {
		for _, a := range args {
			f.Add([]byte(d), []byte(a))
		}
	}
	f.Fuzz(func(t *testing.T, doc, args []byte) {
		w, report := wrapper.Parse(doc)
		if (w == nil) == report.OK() {
			t.Fatalf("wrapper %v, problems %v", w, report.Problems)
		}
		if w == nil {
			if w, report = wrapper.Parse([]byte(fuzzDoc)); !report.OK() {
				t.Fatal(report.Problems)
			}
		}
		again, report := wrapper.Parse(w.Document())
		if !report.OK() || !bytes.Equal(again.Document(), w.Document()) {
			t.Fatalf("%s\nis read as\n%s\n%v", w.Document(), again.Document(), report.Problems)
		}
		c, err := w.Build(args)
		if err != nil {
			if fe := fault.From(err); fe.Code != "ARGS_INVALID" && fe.Code != "POLICY_REQUEST_TOO_LARGE" || fe.Field == "" {
				t.Fatalf("%v", err)
			}
			return
		}
		checkCall(t, w, c)
		if d, err := again.Build(args); err != nil || d.Digest() != c.Digest() {
			t.Fatalf("%v: another request", err)
		}
	})
}

func checkCall(t *testing.T, w *wrapper.Wrapper, c *wrapper.Call) {
	text := c.URL.String()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	template, _, _ := strings.Cut(w.Request.URL, "{{")
	if !strings.HasPrefix(strings.ToLower(template), u.Scheme+"://") || u.Host != w.Host() || !hostname.SameOrigin(u, c.URL) || u.User != nil || u.Fragment != "" {
		t.Fatalf("%q from %q", text, w.Request.URL)
	}
	if u.EscapedPath() != c.URL.EscapedPath() || u.RawQuery != c.URL.RawQuery || c.URL.Opaque != "" {
		t.Fatalf("%q is read as %q", text, u)
	}
	literalDots := strings.Contains(w.Request.URL, "/.") || strings.Contains(strings.ToLower(w.Request.URL), "%2e")
	for _, segment := range strings.Split(u.EscapedPath(), "/") {
		if s, _ := url.PathUnescape(segment); (s == "." || s == "..") && (!literalDots || string(w.Document()) == fuzzDoc) {
			t.Fatalf("a dot segment in %q", text)
		}
	}
	if strings.ContainsFunc(text, func(r rune) bool { return r <= 0x20 || r >= 0x7f }) {
		t.Fatalf("%q", text)
	}
	for _, h := range c.Header {
		if h.Name == "" || strings.ContainsFunc(h.Name+h.Value, func(r rune) bool { return r < 0x20 || r >= 0x7f }) {
			t.Fatalf("header %q: %q", h.Name, h.Value)
		}
	}
	checkBody(t, w, c)
	if len(text) > wrapper.MaxURL || len(c.Body) > wrapper.MaxBody {
		t.Fatalf("URL of %d bytes, body of %d", len(text), len(c.Body))
	}
}

func checkBody(t *testing.T, w *wrapper.Wrapper, c *wrapper.Call) {
	types := 0
	for _, h := range c.Header {
		if strings.EqualFold(h.Name, "Content-Type") {
			types++
		}
	}
	if c.Body == nil {
		if c.Preview().Body != nil {
			t.Fatal("a preview of no body")
		}
		return
	}
	if types != 1 || c.Method == "GET" || c.Method == "HEAD" || !json.Valid(c.Preview().Body) {
		t.Fatalf("%s with %d content types and body %q", c.Method, types, c.Body)
	}
	switch w.Request.Body.Type {
	case wrapper.BodyJSON:
		if !json.Valid(c.Body) {
			t.Fatalf("%q is not JSON", c.Body)
		}
	case wrapper.BodyForm:
		form, err := url.ParseQuery(string(c.Body))
		if err != nil || bytes.ContainsFunc(c.Body, func(r rune) bool { return r <= 0x20 || r >= 0x7f }) {
			t.Fatalf("%q is not a form: %v", c.Body, err)
		}
		pairs := 0
		for name, values := range form {
			pairs += len(values)
			if opened := strings.Count(name, "["); name == "" || !strings.Contains(string(w.Document()), "[") && opened != strings.Count(name, "]") {
				t.Fatalf("the name %q in %q", name, c.Body)
			}
		}
		if got := strings.Count(string(c.Body), "="); got != pairs { // each pair has one, all others are escaped
			t.Fatalf("%d pairs in %q", pairs, c.Body)
		}
	}
}
