package wrapper_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/wrapper"
)

// formBody is a POST of a form.
func formBody(body, properties string, more ...string) string {
	return doc(`{"method":"POST","url":"https://h.test/","bodyType":"form","body":`+body+strings.Join(more, "")+`}`, properties)
}

// TestForm has the bytes on the wire: the names by the rule of PHP and Rack,
// the escapes by the URL standard.
func TestForm(t *testing.T) {
	const brackets = `,"formArrays":"brackets"`
	for _, tt := range []struct{ name, body, properties, more, args, want string }{
		{"U-19", `{"metadata":"{{m}}","items":"{{i}}"}`, `"m":{"type":"object"},"i":{"type":"array"}`, "", `{"m":{"k":"v"},"i":["a","b"]}`, "metadata%5Bk%5D=v&items=a&items=b"},
		{"U-19 brackets", `{"metadata":"{{m}}","items":"{{i}}"}`, `"m":{"type":"object"},"i":{"type":"array"}`, brackets, `{"m":{"k":"v"},"i":["a","b"]}`, "metadata%5Bk%5D=v&items%5B%5D=a&items%5B%5D=b"},
		{"U-19 escapes", `{"v":"{{v}}"}`, `"v":{}`, "", `{"v":"a+b&c=d e%é\n😀"}`, "v=a%2Bb%26c%3Dd+e%25%C3%A9%0A%F0%9F%98%80"},
		{"what stays", `{"v":"{{v}}"}`, `"v":{}`, "", `{"v":"AZaz09*-._~!'()"}`, "v=AZaz09*-._%7E%21%27%28%29"},
		{"names are escaped", `{"a b&c":1,"é":2}`, ``, "", ``, "a+b%26c=1&%C3%A9=2"},
		{"N-06", `{"a":"{{a}}","b":"{{b}}","c":"{{c}}","d":"{{d}}"}`, `"a":{},"b":{},"c":{},"d":{}`, "", `{"a":false,"b":0,"c":""}`, "a=false&b=0&c="},
		{"N-07 null", `{"x":"{{x}}","y":1}`, `"x":{"type":["string","null"]}`, "", `{"x":null}`, "x=&y=1"},
		{"N-07 omitted", `{"x":"{{x}}","y":1}`, `"x":{"type":["string","null"]}`, "", `{}`, "y=1"},
		{"a null inside", `{"x":"{{x}}"}`, `"x":{}`, "", `{"x":{"a":null,"b":[null,1]}}`, "x%5Ba%5D=&x%5Bb%5D=&x%5Bb%5D=1"},
		{"digits", `{"a":"{{n}}","b":"n {{n}}","c":1.50,"d":21000000}`, `"n":{}`, "", `{"n":9007199254740993}`, "a=9007199254740993&b=n+9007199254740993&c=1.50&d=21000000"},
		{"exponent", `{"a":"{{n}}"}`, `"n":{}`, "", `{"n":1E3}`, "a=1E3"},
		{"text around", `{"a":"x {{v}}","b":"y{{w}}"}`, `"v":{},"w":{}`, "", `{"v":"&"}`, "a=x+%26"},
		{"nested template", `{"a":{"b":{"c":"{{v}}"},"d":["{{v}}","{{w}}","z"]}}`, `"v":{},"w":{}`, "", `{"v":1}`, "a%5Bb%5D%5Bc%5D=1&a%5Bd%5D=1&a%5Bd%5D=z"},
		{"objects are numbered", `{"items":"{{i}}"}`, `"i":{}`, "", `{"i":[{"price":"p","q":1},{"price":"r"}]}`, "items%5B0%5D%5Bprice%5D=p&items%5B0%5D%5Bq%5D=1&items%5B1%5D%5Bprice%5D=r"},
		{"objects are numbered with brackets too", `{"items":"{{i}}"}`, `"i":{}`, brackets, `{"i":[{"t":["a","b"]}]}`, "items%5B0%5D%5Bt%5D%5B%5D=a&items%5B0%5D%5Bt%5D%5B%5D=b"},
		{"arrays in arrays", `{"m":"{{i}}"}`, `"i":{}`, "", `{"i":[[1,2],[3]]}`, "m%5B0%5D=1&m%5B0%5D=2&m%5B1%5D=3"},
		{"a mixed array", `{"m":"{{i}}"}`, `"i":{}`, "", `{"i":["a",{"b":1}]}`, "m%5B0%5D=a&m%5B1%5D%5Bb%5D=1"},
		{"omitted elements leave no gap", `{"m":["{{v}}",{"a":"{{w}}"},{"b":2}]}`, `"v":{},"w":{}`, "", `{"w":1}`, "m%5B0%5D%5Ba%5D=1&m%5B1%5D%5Bb%5D=2"},
		{"a template's array that an argument makes nested", `{"m":["a","{{v}}"]}`, `"v":{}`, "", `{"v":{"b":1}}`, "m%5B0%5D=a&m%5B1%5D%5Bb%5D=1"},
		{"Rack's way", `{"items[]":"{{i}}"}`, `"i":{}`, "", `{"i":[{"a":1,"b":2},{"a":3}]}`, "items%5B%5D%5Ba%5D=1&items%5B%5D%5Bb%5D=2&items%5B%5D%5Ba%5D=3"},
		{"the author's brackets", `{"expand[]":"{{i}}","metadata[k]":"v"}`, `"i":{}`, "", `{"i":["a","b"]}`, "expand%5B%5D=a&expand%5B%5D=b&metadata%5Bk%5D=v"},
		{"the author's brackets are not doubled", `{"expand[]":"{{i}}"}`, `"i":{}`, brackets, `{"i":["a","b"]}`, "expand%5B%5D=a&expand%5B%5D=b"},
		{"empty ones write nothing", `{"a":[],"b":{},"c":"{{v}}","d":1}`, `"v":{}`, "", `{"v":[{},[]]}`, "d=1"},
		{"static", `{"a":{"b":[1,true,null,"x"]},"c":false}`, ``, "", ``, "a%5Bb%5D=1&a%5Bb%5D=true&a%5Bb%5D=&a%5Bb%5D=x&c=false"},
		{"one argument", `"{{f}}"`, `"f":{"type":"object"}`, "", `{"f":{"grant":"x","a":{"b":1},"metadata[k]":"v"}}`, "grant=x&a%5Bb%5D=1&metadata%5Bk%5D=v"},
		{"one argument of any type", `"{{f}}"`, `"f":{}`, "", `{"f":{"a":1}}`, "a=1"},
		{"braces stay text", `{"a":"{{v}}"}`, `"v":{},"w":{}`, "", `{"v":"{{w}}"}`, "a=%7B%7Bw%7D%7D"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := parse(t, formBody(tt.body, tt.properties, tt.more)).Build([]byte(tt.args))
			if err != nil {
				t.Fatal(err)
			}
			want := "POST https://h.test/\nAccept: application/json\nContent-Type: application/x-www-form-urlencoded\n\n" + tt.want + "\n"
			if d := cmp.Diff(want, sent(c)); d != "" {
				t.Error(d)
			}
			if _, err := url.ParseQuery(string(c.Body)); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestFormIsReadBack reads a form with Go's own parser, and compares with what
// PHP 8 (parse_str) and Rack 3 (Rack::Utils.parse_nested_query) make of those
// names by their documentation: a[k] is a member, a[] and a repeated element.
func TestFormIsReadBack(t *testing.T) {
	w := parse(t, formBody(`{"a":"{{a}}","meta":{"k":"{{k}}","deep":{"x":"{{a}}"}},"tags":"{{tags}}","items":"{{items}}"}`,
		`"a":{},"k":{},"tags":{},"items":{}`, `,"formArrays":"brackets"`))
	const a, k = `q"+ &=%?#/;é😀`, "  two\r\nlines\t"
	c, err := w.Build([]byte(`{"a":"q\"+ &=%?#/;é😀","k":"  two\r\nlines\t","tags":["x,y","[z]"],"items":[{"sku":"A","n":1.50},{"sku":"B"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	got, err := url.ParseQuery(string(c.Body))
	if err != nil {
		t.Fatal(err)
	}
	want := url.Values{
		"a": {a}, "meta[k]": {k}, "meta[deep][x]": {a}, "tags[]": {"x,y", "[z]"},
		"items[0][sku]": {"A"}, "items[0][n]": {"1.50"}, "items[1][sku]": {"B"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	php := map[string]any{
		"a": a, "meta": map[string]any{"k": k, "deep": map[string]any{"x": a}},
		"tags":  map[string]any{"0": "x,y", "1": "[z]"},
		"items": map[string]any{"0": map[string]any{"sku": "A", "n": "1.50"}, "1": map[string]any{"sku": "B"}},
	}
	if d := cmp.Diff(php, parseStr(t, string(c.Body))); d != "" {
		t.Error(d)
	}
}

// parseStr reads a form as PHP documents for parse_str: the name is decoded,
// then split at brackets; [] takes the next number. Arrays have their numbers
// as keys.
func parseStr(t *testing.T, body string) map[string]any {
	root := map[string]any{}
	for pair := range strings.SplitSeq(body, "&") {
		rawName, rawValue, _ := strings.Cut(pair, "=")
		name, err1 := url.QueryUnescape(rawName)
		value, err2 := url.QueryUnescape(rawValue)
		if err1 != nil || err2 != nil {
			t.Fatal(pair)
		}
		first, rest, nested := strings.Cut(name, "[")
		keys := []string{first}
		if nested {
			keys = append(keys, strings.Split(strings.TrimSuffix(rest, "]"), "][")...)
		}
		at := root
		for i, key := range keys {
			if key == "" {
				key = string(rune('0' + len(at)))
			}
			if i == len(keys)-1 {
				at[key] = value
				break
			}
			if at[key] == nil {
				at[key] = map[string]any{}
			}
			at = at[key].(map[string]any)
		}
	}
	return root
}

func TestFormWithoutContent(t *testing.T) {
	const all = "POST https://h.test/\nAccept: application/json\n"
	for _, tt := range []struct{ body, args, want string }{
		{`{"a":"{{v}}"}`, `{}`, all + "Content-Type: application/x-www-form-urlencoded\n\n\n"}, // an empty form is one
		{`"{{v}}"`, `{"v":{}}`, all + "Content-Type: application/x-www-form-urlencoded\n\n\n"},
		{`"{{v}}"`, `{}`, all},
		{`"{{v}}"`, `{"v":null}`, all},
	} {
		c, err := parse(t, formBody(tt.body, `"v":{}`)).Build([]byte(tt.args))
		if err != nil {
			t.Fatal(err)
		}
		if got := sent(c); got != tt.want {
			t.Errorf("%s %s\n got %q\nwant %q", tt.body, tt.args, got, tt.want)
		}
	}
}

// What an argument holds never changes the structure around it.
func TestFormNamesFromArguments(t *testing.T) {
	for _, tt := range []struct{ body, args, want string }{
		{`{"a":"{{v}}"}`, `{"v":{"x][y":1}}`, "args.v PATTERN"},
		{`{"a":"{{v}}"}`, `{"v":{"b":[{"[":1}]}}`, "args.v PATTERN"},
		{`{"a":"{{v}}"}`, `{"v":{"":1}}`, "args.v PATTERN"},
		{`{"a":["{{v}}"]}`, `{"v":{"]":1}}`, "args.v PATTERN"},
		{`"{{v}}"`, `{"v":{"":1}}`, "args.v PATTERN"},
		{`"{{v}}"`, `{"v":{"a":{"b]":1}}}`, "args.v PATTERN"},
		{`"{{v}}"`, `{"v":[1]}`, "args.v TYPE"},
		{`"{{v}}"`, `{"v":"a=1"}`, "args.v TYPE"},
		{`{"a":"x{{v}}"}`, `{"v":{}}`, "args.v TYPE"},
		{`{"a":"{{v}}"}`, `{"v":{"x&y=z":1}}`, "POST https://h.test/\nContent-Type: application/x-www-form-urlencoded\n\na%5Bx%26y%3Dz%5D=1"},
	} {
		if got := build(parse(t, formBody(tt.body, `"v":{}`)), tt.args); got != tt.want {
			t.Errorf("%s %s: %s, want %s", tt.body, tt.args, got, tt.want)
		}
	}
}

func TestText(t *testing.T) {
	text := func(body, more string) string {
		return doc(`{"method":"PUT","url":"https://h.test/","bodyType":"text","body":`+body+more+`}`, `"v":{},"n":{"type":["integer","null"]}`)
	}
	const plain = "Content-Type: text/plain; charset=utf-8\n"
	for _, tt := range []struct{ body, more, args, want string }{
		{`"{{v}}"`, ``, `{"v":"say \"hi\"\nü😀"}`, plain + "\nsay \"hi\"\nü😀\n"},
		{`"{{v}}"`, ``, `{"v":""}`, plain + "\n\n"},
		{`"{{v}}"`, ``, `{"v":false}`, plain + "\nfalse\n"},
		{`"{{v}}"`, ``, `{"v":9007199254740993}`, plain + "\n9007199254740993\n"},
		{`"{{v}}"`, ``, `{}`, ""},
		{`"{{v}}"`, ``, `{"v":null}`, ""},
		{`"n is {{n}}, v is {{v}}"`, ``, `{"n":0,"v":"{{n}}"}`, plain + "\nn is 0, v is {{n}}\n"},
		{`"n is {{n}}"`, ``, `{"n":null}`, ""},
		{`"as it is: \"é\""`, ``, ``, plain + "\nas it is: \"é\"\n"},
		{`""`, ``, ``, plain + "\n\n"},
		{`"<a>{{n}}</a>"`, `,"headers":{"content-TYPE":"application/xml"}`, `{"n":1}`, "content-TYPE: application/xml\n\n<a>1</a>\n"},
	} {
		c, err := parse(t, text(tt.body, tt.more)).Build([]byte(tt.args))
		if err != nil {
			t.Errorf("%s %s: %v", tt.body, tt.args, err)
			continue
		}
		got := strings.Replace(sent(c), "Accept: application/json\n", "", 1)
		if got != "PUT https://h.test/\n"+tt.want {
			t.Errorf("%s %s\n got %q\nwant %q", tt.body, tt.args, got, tt.want)
		}
	}
	for _, tt := range []buildCase{{`{"v":["a"]}`, "args.v TYPE"}, {`{"v":{}}`, "args.v TYPE"}} {
		if got := build(parse(t, text(`"{{v}}"`, ``)), tt.args); got != tt.want {
			t.Errorf("%s: %s", tt.args, got)
		}
	}
}

// Content-Type goes out exactly once, and the author's own wins.
func TestContentTypeOnce(t *testing.T) {
	for bodyType, want := range map[string]string{"json": "application/json", "form": "application/x-www-form-urlencoded", "text": "text/plain; charset=utf-8"} {
		body := map[string]string{"json": `{"a":1}`, "form": `{"a":1}`, "text": `"a"`}[bodyType]
		for headers, want := range map[string]string{
			``:                                      want,
			`,"headers":{"X-A":"1"}`:                want,
			`,"headers":{"content-type":"x/y"}`:     "x/y",
			`,"headers":{"CONTENT-TYPE":"{{v}}/z"}`: "v/z",
			`,"headers":{"Content-Type":"{{w}}"}`:   want, // omitted
		} {
			w := parse(t, doc(`{"methods":["POST","GET"],"url":"https://h.test/","bodyType":"`+bodyType+`","body":`+body+headers+`}`, `"v":{},"w":{}`))
			c, err := w.Build([]byte(`{"v":"v"}`))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, h := range c.Header {
				if strings.EqualFold(h.Name, "Content-Type") {
					got = append(got, h.Value)
				}
			}
			if !cmp.Equal(got, []string{want}) {
				t.Errorf("%s%s: %q, want %q", bodyType, headers, got, want)
			}
			// Without a body only the author's own is left.
			if c, err = w.Build([]byte(`{"method":"GET"}`)); err != nil || c.Body != nil || strings.Contains(sent(c), "\nContent-Type: "+want) {
				t.Errorf("%s: GET: %v %s", bodyType, err, sent(c))
			}
		}
	}
}

func TestBodyTypeProblems(t *testing.T) {
	const r = "wrapper.request"
	in := func(more string) string {
		return doc(`{"method":"POST","url":"https://h.test/",`+more+`}`, `"x":{},"s":{"type":"string"},"l":{"type":"array"},"o":{"type":"object"},"on":{"type":["object","null"]}`)
	}
	for _, tt := range []struct{ name, doc, problems, warnings string }{
		{"type of the type", in(`"bodyType":1,"body":{}`), r + ".bodyType TYPE", ""},
		{"null is absent", in(`"bodyType":null,"formArrays":null,"body":{}`), "", ""},
		{"unknown", in(`"bodyType":"yaml","body":{}`), r + ".bodyType ENUM", ""},
		{"case", in(`"bodyType":"Form","body":{}`), r + ".bodyType ENUM", ""},
		{"multipart", in(`"bodyType":"multipart","body":{}`), r + ".bodyType NOT_SUPPORTED", ""},
		{"multipart as a content type", in(`"bodyType":"multipart/form-data","body":{}`), r + ".bodyType NOT_SUPPORTED", ""},
		{"form of an array", in(`"bodyType":"form","body":[1]`), r + ".body BODY_TYPE", ""},
		{"form of a number", in(`"body":1,"bodyType":"form"`), r + ".body BODY_TYPE", ""},
		{"form of a text", in(`"bodyType":"form","body":"a=1"`), r + ".body BODY_TYPE", ""},
		{"form of a text with arguments", in(`"bodyType":"form","body":"{{x}}{{s}}"`), r + ".body BODY_TYPE", ""},
		{"form of one object", in(`"bodyType":"form","body":"{{o}}"`), "", ""},
		{"form of one object or null", in(`"bodyType":"form","body":"{{on}}"`), "", ""},
		{"form of one argument of any type", in(`"bodyType":"form","body":"{{x}}"`), "", ""},
		{"form of one string", in(`"bodyType":"form","body":"{{s}}"`), r + ".body BODY_TYPE", ""},
		{"form of one array", in(`"bodyType":"form","body":"{{l}}"`), r + ".body BODY_TYPE", ""},
		{"form of an unknown argument", in(`"bodyType":"form","body":"{{zzz}}"`), r + ".body PLACEHOLDER_UNKNOWN", ""},
		{"form with a broken placeholder", in(`"bodyType":"form","body":"{{x"`), r + ".body PLACEHOLDER_SYNTAX", ""},
		{"form names", in(`"bodyType":"form","body":{"a[b]":1,"":1,"c":{"d]":1,"":2},"e":[{"[":1}]}`), r + ".body[''] PATTERN; " + r + ".body.c['d]'] PATTERN; " + r + ".body.c[''] PATTERN; " + r + ".body.e[0]['['] PATTERN", ""},
		{"names of a JSON body are free", in(`"body":{"a":{"b]":1,"":2}}`), "", ""},
		{"text of an object", in(`"bodyType":"text","body":{}`), r + ".body BODY_TYPE", ""},
		{"text of a number", in(`"bodyType":"text","body":5`), r + ".body BODY_TYPE", ""},
		{"text of one array", in(`"bodyType":"text","body":"{{l}}"`), r + ".body TYPE", ""},
		{"text around an object", in(`"bodyType":"text","body":"a{{o}}"`), r + ".body TYPE", ""},
		{"formArrays of a JSON body", in(`"formArrays":"repeat","body":{}`), r + ".formArrays BODY_TYPE", ""},
		{"formArrays of a text", in(`"formArrays":"brackets","bodyType":"text","body":"a"`), r + ".formArrays BODY_TYPE", ""},
		{"formArrays of nothing known", in(`"formArrays":"repeat","bodyType":"yaml","body":{}`), r + ".bodyType ENUM", ""},
		{"unknown formArrays", in(`"formArrays":"indices","bodyType":"form","body":{}`), r + ".formArrays ENUM", ""},
		{"type of formArrays", in(`"formArrays":true,"bodyType":"form","body":{}`), r + ".formArrays TYPE", ""},
		{"no body", in(`"bodyType":"form"`), "", r + ".bodyType BODY_TYPE"},
		{"no body is JSON", in(`"bodyType":"json"`), "", ""},
		{"body of a GET", doc(`{"url":"https://h.test/","bodyType":"form","body":{}}`, ""), r + ".body BODY_NOT_ALLOWED", ""},
		{"JSON header over a form", in(`"headers":{"Content-Type":"application/json"},"bodyType":"form","body":{}`), "", r + ".headers.Content-Type BODY_TYPE"},
		{"form header over a form", in(`"headers":{"Content-Type":"application/x-www-form-urlencoded; charset=utf-8"},"bodyType":"form","body":{}`), "", ""},
		{"any header over a text", in(`"headers":{"Content-Type":"text/csv"},"bodyType":"text","body":"a"`), "", ""},
	} {
		_, report := wrapper.Parse([]byte(tt.doc))
		if got := outline(report.Problems); got != tt.problems {
			t.Errorf("%s: problems\n got %s\nwant %s", tt.name, lines(report.Problems), tt.problems)
		}
		if got := outline(report.Warnings); got != tt.warnings {
			t.Errorf("%s: warnings\n got %s\nwant %s", tt.name, lines(report.Warnings), tt.warnings)
		}
		for _, p := range append(report.Problems, report.Warnings...) {
			if p.Message == "" || p.Hint == "" {
				t.Errorf("%s: without words: %+v", tt.name, p)
			}
		}
	}
}

func TestPreviewOfBodies(t *testing.T) {
	for _, tt := range []struct{ request, body, bodyType string }{
		{`"body":{"a":"{{v}}"}`, `{"a":"x & y"}`, ""},
		{`"body":"{{v}}"`, `"x & y"`, ""},
		{`"bodyType":"form","body":{"a":"{{v}}"}`, `"a=x+%26+y"`, "form"},
		{`"bodyType":"text","body":"<{{v}}>\n"`, `"<x & y>\n"`, "text"},
		{`"headers":{"Content-Type":"application/json"},"bodyType":"text","body":"{}"`, `"{}"`, "text"},
		{`"headers":{"X-A":"1"}`, ``, ""},
	} {
		c, err := parse(t, doc(`{"method":"POST","url":"https://h.test/",`+tt.request+`}`, `"v":{}`)).Build([]byte(`{"v":"x & y"}`))
		if err != nil {
			t.Fatal(err)
		}
		if p := c.Preview(); string(p.Body) != tt.body || p.BodyType != tt.bodyType {
			t.Errorf("%s: %s %q", tt.request, p.Body, p.BodyType)
		}
	}
}

// A form and a text have the bound of any body, counted as sent.
func TestBodyLimits(t *testing.T) {
	const repeated = `{"a":"{{v}}","b":"{{v}}","c":"{{v}}","d":"{{v}}","e":"{{v}}","f":"{{v}}"}`
	const names = len("a=&b=&c=&d=&e=&f=")
	for _, tt := range []struct {
		name, request string
		size          int // of what stands around six values
		value, last   string
	}{
		{"form", `"bodyType":"form","body":` + repeated, names, "x", "x"},
		{"form, escaped", `"bodyType":"form","body":` + repeated, names, "&", "%26"},
		{"text", `"bodyType":"text","body":"{{v}}{{v}}{{v}}{{v}}{{v}}{{v}}"`, 0, "x", "x"},
	} {
		n := (wrapper.MaxBody - tt.size) / len(tt.last) / 6
		rest := wrapper.MaxBody - tt.size - 6*n*len(tt.last)
		args := `{"v":"` + strings.Repeat(tt.value, n) + `"}`
		pad := func(k int) string { // fills up with literal bytes
			if tt.name == "text" {
				return strings.Replace(tt.request, `"body":"`, `"body":"`+strings.Repeat("z", k), 1)
			}
			return strings.Replace(tt.request, `"a":"`, `"`+strings.Repeat("z", k)+`a":"`, 1)
		}
		at := parse(t, doc(`{"method":"POST","url":"https://h.test/",`+pad(rest)+`}`, `"v":{"type":"string"}`))
		c, err := at.Build([]byte(args))
		if len(args) > 1<<20 {
			t.Fatalf("%s: arguments of %d bytes", tt.name, len(args))
		}
		if err != nil || len(c.Body) != wrapper.MaxBody {
			t.Errorf("%s: at the limit: %v", tt.name, err)
		}
		over := parse(t, doc(`{"method":"POST","url":"https://h.test/",`+pad(rest+1)+`}`, `"v":{"type":"string"}`))
		if got := build(over, args); got != "POLICY_REQUEST_TOO_LARGE wrapper.request.body" {
			t.Errorf("%s: one over: %.100s", tt.name, got)
		}
	}
}

// The document keeps what was written, in one order, and is read again as
// itself; its digest covers the new keys.
func TestDocumentOfBodiesAndPace(t *testing.T) {
	const given = `{"schemaVersion":1,"id":"t","request":{"rate":{"seconds":1,"requests":5},"concurrency":2,"idempotencyKey":{"value":"{{k}}","header":"Idempotency-Key"},"timeoutMs":5,` +
		`"formArrays":"brackets","bodyType":"form","body":{"z":1,"a":"{{k}}"},"query":{"z":{"style":"comma","value":["{{k}}"]},"y":{"style":null,"value":1},"x":[1]},"url":"https://h.test/","method":"POST"},` +
		`"inputSchema":{"type":"object","properties":{"k":{}}}}`
	const want = `{"schemaVersion":1,"id":"t","request":{"method":"POST","url":"https://h.test/","query":{"z":{"value":["{{k}}"],"style":"comma"},"y":{"value":1},"x":[1]},` +
		`"body":{"z":1,"a":"{{k}}"},"bodyType":"form","formArrays":"brackets","timeoutMs":5,"idempotencyKey":{"header":"Idempotency-Key","value":"{{k}}"},"concurrency":2,"rate":{"requests":5,"seconds":1}},` +
		`"inputSchema":{"type":"object","properties":{"k":{}}}}`
	w := parse(t, given)
	if d := cmp.Diff(want, string(w.Document())); d != "" {
		t.Error(d)
	}
	again := parse(t, want)
	if string(again.Document()) != want || again.Digest() != w.Digest() {
		t.Error("the document is read otherwise")
	}
	for from, to := range map[string]string{
		`"style":"comma"`: `"style":"pipe"`, `"concurrency":2`: `"concurrency":3`, `"seconds":1`: `"seconds":2`, `"brackets"`: `"repeat"`,
		`,"value":"{{k}}"}`: `}`, `"Idempotency-Key"`: `"X-Key"`, `,"formArrays":"brackets"`: ``,
	} {
		if other := parse(t, strings.Replace(want, from, to, 1)); other.Digest() == w.Digest() {
			t.Errorf("the digest does not cover %s", from)
		}
	}
	if got := wrapper.Lint(parse(t, doc(`{"method":"POST","url":"https://h.test/","query":{"a":{"value":["{{a}}"],"style":"comma"}},"bodyType":"form","body":{"b":["{{b}}"]},"idempotencyKey":{"header":"K","value":"{{c}}"}}`, `"a":{},"b":{},"c":{},"d":{}`))); outline(got) != "wrapper.inputSchema.properties.d ARGUMENT_UNUSED" {
		t.Errorf("unused: %s", lines(got))
	}
	if got := wrapper.Lint(parse(t, doc(`{"method":"POST","url":"https://h.test/","bodyType":"text","body":"{{a}}"}`, `"a":{}`))); len(got) > 0 {
		t.Errorf("unused: %s", lines(got))
	}
}
