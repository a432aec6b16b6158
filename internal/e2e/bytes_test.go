//go:build unix

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/internal/e2e/stdio"
)

// product is one item of a shop as such APIs send it: 1.3 KB, of which a reader
// wants five values.
func product(i int) string {
	name := []string{"Compact Phone", "Rugged Laptop Stand", "Slim Desk Lamp", "Vintage Water Bottle", "Wireless Keyboard"}[i%5] + fmt.Sprintf(" %d", i+1)
	category := []string{"smartphones", "laptops", "home-decoration", "sports"}[i%4]
	var reviews []string
	for r := range 3 {
		reviews = append(reviews, fmt.Sprintf(`{"rating":%d,"comment":"Great product, arrived on time.","date":"2025-04-%02dT09:48:%02d.000Z","reviewerName":"Reader %d","reviewerEmail":"reader%d@x.example.com"}`, (i+r)%5+1, i%28+1, (i+r)%60, r, r))
	}
	return fmt.Sprintf(`{"id":%d,"title":%q,"description":"The %s is made for daily use: it is light, it lasts, and it comes with everything needed to start.",`+
		`"category":%q,"price":%d.%02d,"discountPercentage":%d.%02d,"rating":%d.%02d,"stock":%d,"tags":[%q,"daily"],"brand":"Northwind","sku":"SKU-%06d","weight":%d,`+
		`"dimensions":{"width":%d.50,"height":%d.25,"depth":%d.75},"warrantyInformation":"1 year warranty","shippingInformation":"Ships in 3-5 business days","availabilityStatus":"In Stock",`+
		`"reviews":[%s],"returnPolicy":"30 days return policy","minimumOrderQuantity":%d,`+
		`"meta":{"createdAt":"2025-04-%02dT09:48:35.000Z","updatedAt":"2025-04-%02dT09:48:35.000Z","barcode":"%013d","qrCode":"https://cdn.example.com/public/qr-code.png"},`+
		`"images":["https://cdn.example.com/product-images/%s/%d/1.webp"],"thumbnail":"https://cdn.example.com/product-images/%s/%d/thumbnail.webp"}`,
		9007199254740993+2*i, name, name, category, 5+(i*37)%2000, i*10%100, i%20, i*3%100, 2+i%3, i*7%100, i*13%150, category, i, i%40+1,
		i%30+1, i%25+1, i%20+1, strings.Join(reviews, ","), i%24+1, i%28+1, i%28+1, 5784719087687+i, category, i, category, i)
}

// catalogue answers every request with ten products.
func catalogue(t *testing.T) (url string, body []byte) {
	t.Helper()
	var items []string
	for i := range 10 {
		items = append(items, product(i))
	}
	body = fmt.Appendf(nil, `{"products":[%s],"total":194,"skip":0,"limit":10}`, strings.Join(items, ","))
	if !json.Valid(body) {
		t.Fatalf("not JSON: %s", body)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body)
	}))
	t.Cleanup(s.Close)
	return s.URL, body
}

// An operation is one that an API offers, as a wrapper and for peers as OpenAPI.
type operation struct {
	id, method, path, about string
	args                    []argument
}

type argument struct {
	name, kind, about string
	required          bool
}

// operations are n ordinary ones, in four shapes.
func operations(n int) []operation {
	var all []operation
	for i := range n {
		thing := []string{"orders", "invoices", "customers", "shipments", "refunds", "coupons", "vendors", "returns", "carts", "reviews", "plans", "events", "users"}[i/4%13]
		one := strings.TrimSuffix(thing, "s")
		all = append(all, []operation{
			{thing + ".list", "GET", "/" + thing, "List " + thing + ", newest first.", []argument{{"status", "string", "Only those in this state", false}, {"limit", "integer", "How many, 1 to 100", false}}},
			{thing + ".get", "GET", "/" + thing + "/{id}", "Get one " + one + " by its id.", []argument{{"id", "string", "Id of the " + one, true}}},
			{thing + ".search", "GET", "/" + thing + "/search", "Search " + thing + " by words.", []argument{{"query", "string", "What to look for", true}, {"limit", "integer", "How many, 1 to 100", false}}},
			{thing + ".archive", "POST", "/" + thing + "/{id}/archive", "Archive one " + one + ".", []argument{{"id", "string", "Id of the " + one, true}, {"reason", "string", "Why", false}}},
		}[i%4])
	}
	return all
}

// wrapper is the operation as a document.
func (o operation) wrapper() json.RawMessage {
	properties, query, required := object{}, object{}, []string{}
	for _, a := range o.args {
		properties.add(a.name, fmt.Sprintf(`{"type":%q,"description":%q}`, a.kind, a.about))
		if !strings.Contains(o.path, "{"+a.name+"}") {
			query.add(a.name, fmt.Sprintf(`"{{%s}}"`, a.name))
		}
		if a.required {
			required = append(required, fmt.Sprintf("%q", a.name))
		}
	}
	return fmt.Appendf(nil, `{"schemaVersion":1,"id":%q,"description":%q,"request":{"method":%q,"url":%q,"query":%s},"inputSchema":{"type":"object","properties":%s,"required":[%s]},"exposeAsTool":true}`,
		o.id, o.about, o.method, "https://api.example.com"+strings.NewReplacer("{", "{{", "}", "}}").Replace(o.path), query.json(), properties.json(), strings.Join(required, ","))
}

// object is a JSON object under construction.
type object []string

func (o *object) add(key, value string) { *o = append(*o, fmt.Sprintf("%q:%s", key, value)) }

func (o object) json() string { return "{" + strings.Join(o, ",") + "}" }

// shopWrapper asks the question of the comparison.
func shopWrapper(url string) json.RawMessage {
	return fmt.Appendf(nil, `{"schemaVersion":1,"id":"shop.list","name":"Products","request":{"url":"%s/products","query":{"limit":"{{limit}}"}},`+
		`"inputSchema":{"type":"object","properties":{"limit":{"type":"integer","default":10}}},`+
		`"response":{"schemaVersion":1,"select":"$.products[*]","mode":"table","fields":{"ID":"id","Name":"title","Price":"price","Rating":"rating","Stock":"stock"},`+
		`"record":{"id":"id","title":"title","price":"price","rating":"rating","stock":"stock"}}}`, url)
}

// What an agent gets to read for ten products, and as its list of tools.
type answers struct {
	raw, table, two, records, tools10, tools50 string
}

func ourAnswers(t *testing.T) answers {
	t.Helper()
	url, body := catalogue(t)
	home := filepath.Join(t.TempDir(), "home")
	p := startDaemon(t, home, "HB_WRAP_ALLOW_PRIVATE=1")
	h := &host{p: p}
	if err := h.save(t, shopWrapper(url)); err != nil {
		t.Fatal(err)
	}
	c := startShim(t, p, home, "HB_WRAP_MAX_TOOLS=40")
	defer c.Close()
	read := func(args string) string {
		r, err := c.Call("wrap_run", json.RawMessage(args))
		if err != nil || r.IsError || len(r.Content) != 1 {
			t.Fatalf("%v: %s", err, r.Raw)
		}
		return r.Text()
	}
	a := answers{
		raw: string(body), tools10: toolsOf(t, c),
		table:   read(`{"id":"shop.list"}`),
		two:     read(`{"id":"shop.list","fields":["Name","Price"]}`),
		records: read(`{"id":"shop.list","format":"json"}`),
	}
	for _, o := range operations(40) {
		if err := h.save(t, o.wrapper()); err != nil {
			t.Fatalf("%v\n%s", err, o.wrapper())
		}
	}
	if r, err := c.Call("wrap_reload", nil); err != nil || !strings.Contains(r.Text(), "40 tools") {
		t.Fatalf("%v: %s", err, r.Text())
	}
	a.tools50 = toolsOf(t, c)
	return a
}

// toolsOf is the array of tools as it is on the wire.
func toolsOf(t *testing.T, c *stdio.Client) string {
	t.Helper()
	line, err := c.Request("tools/list", json.RawMessage("{}"))
	if err != nil {
		t.Fatal(err)
	}
	var m struct {
		Result struct{ Tools json.RawMessage }
	}
	if err := json.Unmarshal(line, &m); err != nil {
		t.Fatal(err)
	}
	return string(m.Result.Tools)
}

// TestBytesToTheAgent keeps what every session and every answer costs from
// growing unnoticed. docs/benchmarks.md has the figures beside those of others;
// the limits leave a twentieth of room, and the list of the ten tools has one
// more in internal/shim.
func TestBytesToTheAgent(t *testing.T) {
	a := ourAnswers(t)
	for _, c := range []struct {
		name, text string
		most       int
	}{
		{"the table of five columns", a.table, 750},
		{"two of its columns", a.two, 385},
		{"the records", a.records, 980},
		{"the ten tools", a.tools10, 9216},
		{"forty more", a.tools50, 28000},
	} {
		if len(c.text) > c.most {
			t.Errorf("%s: %d bytes, at most %d", c.name, len(c.text), c.most)
		}
	}
	if n := strings.Count(a.table, "\n| 900719925474"); n != 10 || !strings.Contains(a.table, "| 9007199254740993 | Compact Phone 1 | 5.00 | 2.00 | 0 |") {
		t.Errorf("%d rows\n%s", n, a.table)
	}
	if n := strings.Count(a.records, `"stock":`); n != 10 {
		t.Errorf("%d records\n%s", n, a.records)
	}
}

// openAPI describes the shop and n-1 operations to a peer.
func openAPI(url string, n int) []byte {
	paths := object{}
	all := append([]operation{{"shop.list", "GET", "/products", "Products", []argument{{"limit", "integer", "How many", false}}}}, operations(n-1)...)
	for _, o := range all {
		var params []string
		for _, a := range o.args {
			in := "query"
			if strings.Contains(o.path, "{"+a.name+"}") {
				in = "path"
			}
			params = append(params, fmt.Sprintf(`{"name":%q,"in":%q,"required":%v,"description":%q,"schema":{"type":%q}}`, a.name, in, a.required, a.about, a.kind))
		}
		paths.add(o.path, fmt.Sprintf(`{%q:{"operationId":%q,"summary":%q,"parameters":[%s],"responses":{"200":{"description":"OK"}}}}`,
			strings.ToLower(o.method), strings.ReplaceAll(o.id, ".", "-"), o.about, strings.Join(params, ",")))
	}
	return fmt.Appendf(nil, `{"openapi":"3.0.3","info":{"title":"Shop","version":"1.0.0"},"servers":[{"url":%q}],"paths":%s}`, url, paths.json())
}

// modelPart is what clients hand to their model of a tool list.
func modelPart(t *testing.T, tools string) string {
	t.Helper()
	var list []struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		InputSchema json.RawMessage `json:"inputSchema"`
	}
	if err := json.Unmarshal([]byte(tools), &list); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(list); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(b.String())
}

// TestBytesBesideAPeer asks a server that turns an OpenAPI document into tools
// the same question, counts the tokens of all answers, and prints the table of
// docs/benchmarks.md.
func TestBytesBesideAPeer(t *testing.T) {
	dir := npm(t)
	h := &host{dir: dir}
	a := ourAnswers(t)
	url, _ := catalogue(t)
	peer := func(n int) (tools, text string) {
		t.Helper()
		file := filepath.Join(t.TempDir(), "openapi.json")
		if err := os.WriteFile(file, openAPI(url, n), 0o600); err != nil {
			t.Fatal(err)
		}
		stdout, stderr, code := foreign(t, []string{"PATH=" + os.Getenv("PATH")}, "", "node", h.module(t, "peer.mjs"), url, file)
		var r struct {
			Tools json.RawMessage
			Text  string
		}
		decode(t, "peer.mjs", stdout, stderr, code, &r)
		var list toolList
		if err := json.Unmarshal(fmt.Appendf(nil, `{"tools":%s}`, r.Tools), &list); err != nil || len(list.Tools) != n {
			t.Fatalf("%v: %d tools, want %d: %s", err, len(list.Tools), n, stderr)
		}
		return string(r.Tools), r.Text
	}
	peer10, answer := peer(10)
	peer50, _ := peer(50)
	rows := []struct{ name, wire, read string }{
		{"ten products, the API's own JSON", a.raw, a.raw},
		{"@ivotoby/openapi-mcp-server 1.16.1", answer, answer},
		{"hb-rest, the table of five columns", a.table, a.table},
		{"hb-rest, the same as records (`format: json`)", a.records, a.records},
		{"hb-rest, `fields: [Name, Price]`", a.two, a.two},
		{"tools/list: hb-rest, its ten", a.tools10, modelPart(t, a.tools10)},
		{"tools/list: hb-rest, forty wrappers more", a.tools50, modelPart(t, a.tools50)},
		{"tools/list: the peer, 10 operations", peer10, modelPart(t, peer10)},
		{"tools/list: the peer, 50 operations", peer50, modelPart(t, peer50)},
	}
	var texts []string
	for _, r := range rows {
		texts = append(texts, r.read)
	}
	in, err := json.Marshal(texts)
	if err != nil {
		t.Fatal(err)
	}
	stdout, stderr, code := foreign(t, []string{"PATH=" + os.Getenv("PATH")}, string(in), "node", h.module(t, "tokens.mjs"))
	var tokens []int
	decode(t, "tokens.mjs", stdout, stderr, code, &tokens)
	var b bytes.Buffer
	for i, r := range rows {
		fmt.Fprintf(&b, "| %s | %d | %d | %d |\n", r.name, len(r.wire), len(r.read), tokens[i])
	}
	kept := 0
	for i := range 10 {
		if strings.Contains(answer, fmt.Sprint(9007199254740993+2*i)) {
			kept++
		}
	}
	t.Logf("the peer keeps %d of 10 ids; the price 5.00: %v", kept, strings.Contains(answer, `"price": 5.00`))
	t.Logf("\n| what | bytes on the wire | bytes a model reads | tokens of these |\n| --- | --- | --- | --- |\n%s", &b)
	if tokens[2]*10 > tokens[0] || tokens[2]*10 > tokens[1] {
		t.Errorf("the table has %d tokens, the JSON %d, the peer's answer %d", tokens[2], tokens[0], tokens[1])
	}
}
