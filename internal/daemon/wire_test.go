package daemon_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
)

// A wire is an upstream that writes down the exact bytes of each request and
// answers with a fixed text.
type wire struct {
	net.Listener
	mu    sync.Mutex
	bytes []string
	reply string
}

func newWire(t *testing.T, reply string) *wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{Listener: l, reply: reply}
	var all sync.WaitGroup
	all.Add(1)
	go func() {
		defer all.Done()
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Add(1)
			go func() { defer all.Done(); w.serve(c) }()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); all.Wait() })
	return w
}

// serve reads one request, head and announced body, and closes.
func (w *wire) serve(c net.Conn) {
	defer c.Close()
	r := bufio.NewReader(c)
	var text strings.Builder
	length := 0
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return // a connection that was only opened
		}
		text.WriteString(line)
		if line == "\r\n" {
			break
		}
		_, _ = fmt.Sscanf(strings.ToLower(line), "content-length: %d", &length)
	}
	if _, err := io.CopyN(&text, r, int64(length)); err != nil {
		return
	}
	w.mu.Lock()
	w.bytes = append(w.bytes, text.String())
	w.mu.Unlock()
	_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(w.reply), w.reply)
}

// take returns the requests since the last take, with the free port as PORT and
// line ends as they are printed.
func (w *wire) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for _, b := range w.bytes {
		b = strings.ReplaceAll(b, w.Addr().String(), "HOST:PORT")
		out = append(out, strings.ReplaceAll(b, "\r\n", "\n"))
	}
	w.bytes = nil
	return out
}

func (w *wire) url() string { return "http://" + w.Addr().String() }

// The three example wrappers of the format's page, changed in nothing but the
// place they call. The header lines that the transport adds are part of the
// comparison: what leaves the machine is exactly this.
func TestExampleWrappersOnTheWire(t *testing.T) {
	t.Parallel()
	up := newWire(t, `{"products":[{"id":1,"title":"Phone","price":499.00,"rating":4.5}],"id":"ord_1","status":"paid","total":30.00,"current":{"temp_c":-0.5,"last_updated":"2026-11-30 08:15"}}`)
	w := newWorld(t, private, outbound.Options{})
	for _, c := range []struct{ id, doc, args, want, markdown, records string }{
		{
			id: "dummyjson.products.search",
			doc: `{"schemaVersion":1,"id":"dummyjson.products.search","name":"Product search","description":"Search the DummyJSON product catalogue.",
 "request":{"method":"GET","url":"BASE/products/search","query":{"q":"{{query}}","limit":"{{limit}}"},"headers":{"Accept":"application/json"},"timeoutMs":15000},
 "inputSchema":{"type":"object","properties":{"query":{"type":"string","minLength":1},"limit":{"type":"integer","minimum":1,"maximum":50,"default":10}},"required":["query"],"additionalProperties":false},
 "response":{"schemaVersion":1,"select":"$.products[*]","mode":"table","fields":{"Name":"title","Price":{"path":"price","format":"number"},"Rating":{"path":"rating","format":"number"}},
  "record":{"id":"id","title":"title","price":"price"},"limits":{"maxItems":20}},"exposeAsTool":false,"mutating":false}`,
			args:     `{"query":"red phone"}`,
			want:     "GET /products/search?q=red%20phone&limit=10 HTTP/1.1\nHost: HOST:PORT\nUser-Agent: hb-rest/1.2.3\nAccept: application/json\nAccept-Encoding: gzip, deflate, br, zstd\n\n",
			markdown: "## Product search\n\n| Name | Price | Rating |\n| --- | --- | --- |\n| Phone | 499.00 | 4.5 |",
			records:  `[{"id":1,"title":"Phone","price":499.00}]`,
		},
		{
			id: "orders.create",
			doc: `{"schemaVersion":1,"id":"orders.create","name":"Create order",
 "request":{"method":"POST","url":"BASE/v1/orders","body":{"customer":"{{customer_id}}","line_items":"{{items}}","note":"{{note}}"}},
 "inputSchema":{"type":"object","properties":{"customer_id":{"type":"string","description":"Customer ID"},
  "items":{"type":"array","description":"Line items","items":{"type":"object","properties":{"sku":{"type":"string"},"qty":{"type":"integer","minimum":1}},"required":["sku","qty"]}},
  "note":{"type":"string","description":"Optional note"}},"required":["customer_id","items"],"additionalProperties":false},
 "mutating":true,
 "response":{"schemaVersion":1,"select":"$","mode":"document","record":{"id":"id","status":"status","total":"total"},"fields":{"Order":"id","Status":"status","Total":{"path":"total","format":"number"}}}}`,
			args: `{ "customer_id": "cus_123", "items": [{ "sku": "A-1", "qty": 2 }], "note": "gift" }`,
			want: "POST /v1/orders HTTP/1.1\nHost: HOST:PORT\nUser-Agent: hb-rest/1.2.3\nContent-Length: 73\nAccept: application/json\nAccept-Encoding: gzip, deflate, br, zstd\nContent-Type: application/json\n\n" +
				`{"customer":"cus_123","line_items":[{"sku":"A-1","qty":2}],"note":"gift"}`,
			markdown: "## Create order\n\n- **Order:** ord_1\n- **Status:** paid\n- **Total:** 30.00",
			records:  `[{"id":"ord_1","status":"paid","total":30.00}]`,
		},
		{
			id: "weather.current",
			doc: `{"schemaVersion":1,"id":"weather.current","name":"Current weather","description":"Current conditions for a city.",
 "request":{"method":"GET","methods":["GET","POST"],"url":"BASE/v1/weather","query":{"q":"{{city}}"},"headers":{"Accept":"application/json"},"timeoutMs":15000},
 "inputSchema":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]},
 "response":{"schemaVersion":1,"select":"$.current","mode":"document","record":{"city":"location.name","temp_c":"temp_c","updated":"last_updated"},
  "fields":{"City":"location.name","Temperature":{"path":"temp_c","format":"number","suffix":" °C"},"Updated":{"path":"last_updated","format":"date"}}},
 "exposeAsTool":false,"mutating":false}`,
			args:     `{"city":"Göteborg"}`,
			want:     "GET /v1/weather?q=G%C3%B6teborg HTTP/1.1\nHost: HOST:PORT\nUser-Agent: hb-rest/1.2.3\nAccept: application/json\nAccept-Encoding: gzip, deflate, br, zstd\n\n",
			markdown: "## Current weather\n\n- **City:**\n- **Temperature:** -0.5 °C\n- **Updated:** 2026-11-30",
			records:  `[{"city":null,"temp_c":-0.5,"updated":"2026-11-30 08:15"}]`,
		},
	} {
		w.create(strings.ReplaceAll(c.doc, "BASE", up.url()))
		a := w.run(c.id, c.args)
		if !a.OK {
			t.Errorf("%s: %s", c.id, a.Raw)
			continue
		}
		if d := cmp.Diff([]string{c.want}, up.take()); d != "" {
			t.Errorf("%s on the wire (-want +got):\n%s", c.id, d)
		}
		if d := cmp.Diff(c.markdown, a.Markdown); d != "" {
			t.Errorf("%s: Markdown (-want +got):\n%s", c.id, d)
		}
		if string(a.Records) != c.records {
			t.Errorf("%s: records %s", c.id, a.Records)
		}
	}
	// The caller chooses the other method of the third: same query, no body.
	if a := w.run("weather.current", `{"city":"Oslo","method":"POST"}`); !a.OK {
		t.Errorf("%s", a.Raw)
	}
	want := []string{"POST /v1/weather?q=Oslo HTTP/1.1\nHost: HOST:PORT\nUser-Agent: hb-rest/1.2.3\nContent-Length: 0\nAccept: application/json\nAccept-Encoding: gzip, deflate, br, zstd\n\n"}
	if d := cmp.Diff(want, up.take()); d != "" {
		t.Errorf("POST (-want +got):\n%s", d)
	}
}

// head cuts a request into its first line and its body.
func head(request string) (line, body string) {
	line, _, _ = strings.Cut(request, "\n")
	_, body, _ = strings.Cut(request, "\n\n")
	return line, body
}

// What arguments become, byte by byte.
func TestArgumentsOnTheWire(t *testing.T) {
	t.Parallel()
	up := newWire(t, `{}`)
	w := newWorld(t, private, outbound.Options{})
	type sent struct{ line, body string }
	for _, c := range []struct {
		name, request, properties, args string
		want                            sent // zero: refused
		field                           string
	}{
		{
			"a large id in three places", `"method":"POST","url":"BASE/u/{{id}}","query":{"id":"{{id}}"},"body":{"id":"{{id}}","text":"no. {{id}}"}`,
			`"id":{"type":"integer"}`, `{"id":9007199254740993}`,
			sent{"POST /u/9007199254740993?id=9007199254740993 HTTP/1.1", `{"id":9007199254740993,"text":"no. 9007199254740993"}`},
			"",
		},
		{
			"no scientific form", `"method":"POST","url":"BASE/","query":{"n":"{{n}}"},"body":{"s":"n={{n}}"}`,
			`"n":{"type":"integer"}`, `{"n":21000000}`,
			sent{"POST /?n=21000000 HTTP/1.1", `{"s":"n=21000000"}`},
			"",
		},
		{
			"trailing zeros", `"method":"POST","url":"BASE/{{p}}","query":{"p":"{{p}}"},"body":"{{p}}"`,
			`"p":{"type":"number"}`, `{"p":30.00}`,
			sent{"POST /30.00?p=30.00 HTTP/1.1", `30.00`},
			"",
		},
		{
			"false, 0 and empty", `"method":"POST","url":"BASE/","query":{"a":"{{a}}","b":"{{b}}","c":"{{c}}","d":"{{d}}"},"body":{"a":"{{a}}","b":"{{b}}","c":"{{c}}","d":"{{d}}"}`,
			`"a":{"type":"boolean"},"b":{"type":"integer"},"c":{"type":"string"},"d":{"type":"string"}`, `{"a":false,"b":0,"c":""}`,
			sent{"POST /?a=false&b=0&c= HTTP/1.1", `{"a":false,"b":0,"c":""}`},
			"",
		},
		{"null", `"method":"POST","url":"BASE/","body":{"x":"{{x}}"}`, `"x":{"type":["string","null"]}`, `{"x":null}`, sent{"POST / HTTP/1.1", `{"x":null}`}, ""},
		{"omitted", `"method":"POST","url":"BASE/","body":{"x":"{{x}}"}`, `"x":{"type":["string","null"]}`, `{}`, sent{"POST / HTTP/1.1", `{}`}, ""},
		{"null for a plain string", `"method":"POST","url":"BASE/","body":{"x":"{{x}}"}`, `"x":{"type":"string"}`, `{"x":null}`, sent{}, "args.x"},
		{"space and umlaut in a path", `"method":"GET","url":"BASE/p/{{id}}/e"`, `"id":{"type":"string"}`, `{"id":"a b"}`, sent{"GET /p/a%20b/e HTTP/1.1", ""}, ""},
		{"é", `"method":"GET","url":"BASE/p/{{id}}"`, `"id":{"type":"string"}`, `{"id":"é"}`, sent{"GET /p/%C3%A9 HTTP/1.1", ""}, ""},
		{"delimiters", `"method":"GET","url":"BASE/p/{{id}}"`, `"id":{"type":"string"}`, `{"id":"x?y#z"}`, sent{"GET /p/x%3Fy%23z HTTP/1.1", ""}, ""},
		{"a slash in one segment", `"method":"GET","url":"BASE/p/{{id}}"`, `"id":{"type":"string"}`, `{"id":"a/b"}`, sent{"GET /p/a%2Fb HTTP/1.1", ""}, ""},
		{"a percent sign", `"method":"GET","url":"BASE/p/{{id}}"`, `"id":{"type":"string"}`, `{"id":"100%"}`, sent{"GET /p/100%25 HTTP/1.1", ""}, ""},
		{"raw keeps slashes", `"method":"GET","url":"BASE/f/{{p|raw}}"`, `"p":{"type":"string"}`, `{"p":"a b/c"}`, sent{"GET /f/a%20b/c HTTP/1.1", ""}, ""},
		{"raw: already encoded dots", `"method":"GET","url":"BASE/f/{{p|raw}}"`, `"p":{"type":"string"}`, `{"p":"%2e%2e/x"}`, sent{}, "args.p"},
		{"raw: parent", `"method":"GET","url":"BASE/f/{{p|raw}}"`, `"p":{"type":"string"}`, `{"p":"a/../b"}`, sent{}, "args.p"},
		{"raw: here", `"method":"GET","url":"BASE/f/{{p|raw}}"`, `"p":{"type":"string"}`, `{"p":"a/./b"}`, sent{}, "args.p"},
		{"raw: empty segment", `"method":"GET","url":"BASE/f/{{p|raw}}"`, `"p":{"type":"string"}`, `{"p":"a//b"}`, sent{}, "args.p"},
		{"raw: leading slash", `"method":"GET","url":"BASE/f/{{p|raw}}"`, `"p":{"type":"string"}`, `{"p":"/a"}`, sent{}, "args.p"},
		{"raw: backslash", `"method":"GET","url":"BASE/f/{{p|raw}}"`, `"p":{"type":"string"}`, `{"p":"a\\b"}`, sent{}, "args.p"},
		{"raw: line break", `"method":"GET","url":"BASE/f/{{p|raw}}"`, `"p":{"type":"string"}`, `{"p":"a\nb"}`, sent{}, "args.p"},
		{"plain: parent", `"method":"GET","url":"BASE/f/{{p}}/x"`, `"p":{"type":"string"}`, `{"p":".."}`, sent{}, "args.p"},
		{"trailing slash kept", `"method":"GET","url":"BASE/items/"`, ``, `{}`, sent{"GET /items/ HTTP/1.1", ""}, ""},
		{"no trailing slash kept", `"method":"GET","url":"BASE/items"`, ``, `{}`, sent{"GET /items HTTP/1.1", ""}, ""},
		{"nothing is encoded twice", `"method":"GET","url":"BASE/a%20b?x=%2B"`, ``, `{}`, sent{"GET /a%20b?x=%2B HTTP/1.1", ""}, ""},
		{"escapes keep their case", `"method":"GET","url":"BASE/%e2%82%ac;v=1,2/(x)?a[]=1&b=c:d/e"`, ``, `{}`, sent{"GET /%e2%82%ac;v=1,2/(x)?a[]=1&b=c:d/e HTTP/1.1", ""}, ""},
		{
			"query and body", `"method":"POST","url":"BASE/x?dry=1","query":{"q":"{{q}}"},"body":{"v":"{{v}}"}`, `"q":{"type":"string"},"v":{"type":"number"}`, `{"q":"a+b","v":1.50}`,
			sent{"POST /x?dry=1&q=a%2Bb HTTP/1.1", `{"v":1.50}`},
			"",
		},
		{"DELETE with a body", `"method":"DELETE","url":"BASE/x","body":"{{ids}}"`, `"ids":{"type":"array","items":{"type":"string"}}`, `{"ids":["a"]}`, sent{"DELETE /x HTTP/1.1", `["a"]`}, ""},
		{"DELETE without one", `"method":"DELETE","url":"BASE/x"`, ``, `{}`, sent{"DELETE /x HTTP/1.1", ""}, ""},
		{
			"member order of an argument", `"method":"PUT","url":"BASE/x","body":{"z":1,"o":"{{o}}","a":2}`, `"o":{"type":"object"}`, `{"o":{"zz":1,"b":{"y":1E2,"x":[]},"a":null}}`,
			sent{"PUT /x HTTP/1.1", `{"z":1,"o":{"zz":1,"b":{"y":1E2,"x":[]},"a":null},"a":2}`},
			"",
		},
		{
			"text in a body stays text", `"method":"POST","url":"BASE/x","body":{"t":"{{t}}","u":"<{{t}}>"}`, `"t":{"type":"string"}`, `{"t":"a\"b\\c\n<&>\u2028 {{t}} é 😀"}`,
			sent{"POST /x HTTP/1.1", `{"t":"a\"b\\c\n<&>` + "\u2028" + ` {{t}} é 😀","u":"<a\"b\\c\n<&>` + "\u2028" + ` {{t}} é 😀>"}`},
			"",
		},
		{"a line break in a header", `"method":"GET","url":"BASE/","headers":{"X-A":"{{x}}"}`, `"x":{"type":"string"}`, `{"x":"a\r\nEvil: 1"}`, sent{}, "args.x"},
	} {
		doc := `{"schemaVersion":1,"id":"w","name":"W","request":{` + strings.ReplaceAll(c.request, "BASE", up.url()) + `},"inputSchema":{"type":"object","properties":{` + c.properties + `}}}`
		a := w.once("w", doc, c.args)
		got := up.take()
		if c.want == (sent{}) {
			if a.HTTP != 422 || a.Code != "ARGS_INVALID" || a.Field != c.field || len(got) != 0 {
				t.Errorf("%s: sent %q, answer %s", c.name, got, a.Raw)
			}
			continue
		}
		if !a.OK || len(got) != 1 {
			t.Errorf("%s: sent %q, answer %s", c.name, got, a.Raw)
			continue
		}
		line, body := head(got[0])
		if d := cmp.Diff(c.want, sent{line, body}, cmp.AllowUnexported(sent{})); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
		if c.want.body == "" && strings.Contains(got[0], "\nContent-Type:") {
			t.Errorf("%s: a content type without content: %s", c.name, got[0])
		}
	}
}

// Nothing of the bridge's own conversation leaves the machine: not its token,
// not its headers, whatever the caller sends (S-10).
func TestBridgeSecretsStayHome(t *testing.T) {
	t.Parallel()
	up := newWire(t, `{"id":1}`)
	w := newWorld(t, private, outbound.Options{})
	w.create(`{"schemaVersion":1,"id":"s","name":"S","request":{"method":"POST","url":"` + up.url() + `/x","headers":{"X-Mine":"{{a}}"},"body":{"a":"{{a}}"}},"inputSchema":{"type":"object","properties":{"a":{"type":"string"}}}}`)
	w.run("s", `{"a":"1"}`)
	w.post("/wrap/test", `{"id":"s","args":{"a":"1"},"dryRun":false}`)
	w.post("/wrap/derive", `{"url":"`+up.url()+`/y"}`)
	got := up.take()
	if len(got) != 3 {
		t.Fatalf("%d requests arrived: %q", len(got), got)
	}
	for _, r := range got {
		l := strings.ToLower(r)
		for _, never := range []string{w.tok, "authorization", "x-hb-", "x-kuang", "cookie", "referer", "x-forwarded", "traceparent"} {
			if strings.Contains(l, never) {
				t.Errorf("%q left the machine in:\n%s", never, r)
			}
		}
	}
}
