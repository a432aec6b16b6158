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
	args := []string{
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
	if c.Body != nil && (!json.Valid(c.Body) || c.Method == "GET" || c.Method == "HEAD") {
		t.Fatalf("%s with body %q", c.Method, c.Body)
	}
	if len(text) > wrapper.MaxURL || len(c.Body) > wrapper.MaxBody {
		t.Fatalf("URL of %d bytes, body of %d", len(text), len(c.Body))
	}
}
