package schema_test

import (
	"encoding/json"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/schema"
	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

func decode(t testing.TB, text string) recipe.Value {
	t.Helper()
	v, err := recipe.Decode([]byte(text), recipe.DecodeLimits{Depth: 1000})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

func parse(t testing.TB, text string) *schema.Schema {
	t.Helper()
	s, report := schema.Parse(decode(t, text), "wrapper.inputSchema")
	if !report.OK() {
		t.Fatalf("%s: %+v", text, report.Problems)
	}
	return s
}

// lines writes problems one a line: field CODE message | hint.
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

// outline is lines without messages and hints.
func outline(ps []recipe.Problem) string {
	var out []string
	for _, p := range ps {
		out = append(out, strings.TrimPrefix(p.Field, "wrapper.inputSchema")+" "+p.Code)
	}
	return strings.Join(out, "; ")
}

func TestGate(t *testing.T) {
	obj := func(prop string) string { return `{"type":"object","properties":{"p":` + prop + `}}` }
	const p = ".properties.p"
	tests := []struct{ name, schema, problems, warnings string }{
		{"every validated keyword", `{"type":"object","properties":{"s":{"type":"string","minLength":1,"maxLength":9,"pattern":"^a","enum":["a","ab"],"default":"a"},"n":{"type":"number","minimum":0,"maximum":1.5},"i":{"type":"integer"},"b":{"type":"boolean"},"z":{"type":"null"},"a":{"type":"array","items":{"type":"string"},"minItems":1,"maxItems":2},"o":{"type":"object","properties":{"x":{}},"required":["x"],"additionalProperties":false},"any":{}},"required":["s"],"additionalProperties":false}`, "", ""},
		{"kept words", obj(`{"type":"string","title":"T","description":"D","examples":["e"],"deprecated":true,"format":"email"}`), "", ""},
		{"null beside a type", obj(`{"type":["string","null"]}`), "", ""},
		{"null first", obj(`{"type":["null","integer"]}`), "", ""},
		{"list of one", obj(`{"type":["string"]}`), "", ""},
		{"dropped", `{"$schema":"http://json-schema.org/draft-07/schema#","$id":"x","type":"object","additionalProperties":true}`, "", ".$schema SCHEMA_KEYWORD; .$id SCHEMA_KEYWORD; .additionalProperties SCHEMA_KEYWORD"},
		{"keyword of another type", obj(`{"type":"integer","minLength":1}`), "", p + ".minLength SCHEMA_KEYWORD"},
		{"keyword without a type", obj(`{"minLength":1}`), p + ".minLength SCHEMA_TYPE", ""},
		{"properties without a type", obj(`{"properties":{"x":{}}}`), p + ".properties SCHEMA_TYPE", ""},
		{"root default", `{"type":"object","default":{}}`, "", ".default SCHEMA_KEYWORD"},

		{"root array", `{"type":"array"}`, ".type SCHEMA_TYPE", ""},
		{"root nullable", `{"type":["object","null"]}`, ".type SCHEMA_TYPE", ""},
		{"root without type", `{}`, ".type SCHEMA_TYPE", ""},
		{"root is a text", `"object"`, " SCHEMA_TYPE", ""},
		{"root is null", `null`, " SCHEMA_TYPE", ""},
		{"schema is true", obj(`true`), p + " SCHEMA_TYPE", ""},
		{"two types", obj(`{"type":["string","integer"]}`), p + ".type SCHEMA_TYPE", ""},
		{"unknown type", obj(`{"type":"float"}`), p + ".type SCHEMA_TYPE", ""},
		{"empty type list", obj(`{"type":[]}`), p + ".type SCHEMA_TYPE", ""},
		{"null twice", obj(`{"type":["null","null"]}`), p + ".type SCHEMA_TYPE", ""},
		{"type is a number", obj(`{"type":1}`), p + ".type SCHEMA_TYPE", ""},

		{"$ref wins over its neighbours", obj(`{"type":"nonsense","oneOf":1,"$ref":"#"}`), p + ".$ref SCHEMA_KEYWORD", ""},
		{
			"by name", obj(`{"type":"string","oneOf":[],"const":1,"x-mcp-header":"h","contentEncoding":"base64"}`),
			p + ".oneOf SCHEMA_KEYWORD; " + p + ".const SCHEMA_KEYWORD; " + p + ".x-mcp-header SCHEMA_KEYWORD; " + p + ".contentEncoding SCHEMA_KEYWORD", "",
		},
		{"additionalProperties schema", `{"type":"object","additionalProperties":{"type":"string"}}`, ".additionalProperties SCHEMA_KEYWORD", ""},
		{"tuple", obj(`{"type":"array","items":[{"type":"string"}]}`), p + ".items SCHEMA_TYPE", ""},
		{
			"words of the wrong type", obj(`{"title":1,"description":[],"examples":"x","deprecated":"yes","format":null}`),
			p + ".title TYPE; " + p + ".description TYPE; " + p + ".examples TYPE; " + p + ".deprecated TYPE; " + p + ".format TYPE", "",
		},

		{"enum empty", obj(`{"enum":[]}`), p + ".enum TOO_FEW", ""},
		{"enum no list", obj(`{"enum":"a"}`), p + ".enum TYPE", ""},
		{"enum of another type", obj(`{"type":"string","enum":["a",1]}`), p + ".enum[1] SCHEMA_TYPE", ""},
		{"enum twice, by value", obj(`{"enum":[1,1.0]}`), p + ".enum[1] DUPLICATE", ""},
		{"integer in a number's enum", obj(`{"type":"number","enum":[1,1.5]}`), "", ""},
		{"null in an enum", obj(`{"type":["string","null"],"enum":["a",null]}`), "", ""},

		{"default fits", obj(`{"type":"array","items":{"type":"integer"},"default":[1]}`), "", ""},
		{"default does not fit", obj(`{"type":"integer","default":"1"}`), p + ".default SCHEMA_DEFAULT", ""},
		{"default deep", obj(`{"type":"array","items":{"type":"integer"},"default":[1,"2"]}`), p + ".default[1] SCHEMA_DEFAULT", ""},
		{"default null", obj(`{"type":"string","default":null}`), p + ".default SCHEMA_DEFAULT", ""},
		{"default completed by defaults", obj(`{"type":"object","properties":{"x":{"type":"integer","default":1}},"required":["x"],"default":{}}`), "", ""},

		{"required unknown", `{"type":"object","properties":{"city":{}},"required":["citty"]}`, ".required[0] UNKNOWN_FIELD", ""},
		{"required twice", `{"type":"object","properties":{"a":{}},"required":["a","a"]}`, ".required[1] DUPLICATE", ""},
		{"required no list", `{"type":"object","required":true}`, ".required TYPE", ""},
		{"required in draft 3 style", obj(`{"type":"string","required":true}`), "", p + ".required SCHEMA_KEYWORD"},

		{"pattern lookahead", obj(`{"type":"string","pattern":"(?=a)"}`), p + ".pattern PATTERN_INVALID", ""},
		{"pattern back-reference", obj(`{"type":"string","pattern":"(a)\\1"}`), p + ".pattern PATTERN_INVALID", ""},
		{"limits crossed", obj(`{"type":"string","minLength":3,"maxLength":2}`), p + ".minLength RANGE", ""},
		{"bounds crossed", obj(`{"type":"number","minimum":1e1,"maximum":9}`), p + ".minimum RANGE", ""},
		{"items crossed", obj(`{"type":"array","minItems":2,"maxItems":1}`), p + ".minItems RANGE", ""},
		{"sizes", obj(`{"type":"string","minLength":-1,"maxLength":1.5}`), p + ".minLength RANGE; " + p + ".maxLength RANGE", ""},
		{"size as text", obj(`{"type":"string","minLength":"1"}`), p + ".minLength TYPE", ""},
		{"huge minimum", obj(`{"type":"number","minimum":4E9999999}`), p + ".minimum RANGE", ""},
		{"huge default", obj(`{"type":"number","default":1e309}`), p + ".default RANGE", ""},
		{"huge enum", obj(`{"enum":[[4E9999999]]}`), p + ".enum[0][0] RANGE", ""},
		{"names", `{"type":"object","properties":{"":{},"a\u0001b":{}}}`, ".properties[''] PATTERN; .properties['a b'] CONTROL_CHARACTER", ""},
		{"name twice", `{"type":"object","properties":{"a":{},"a":{}}}`, ".properties.a DUPLICATE", ""},
		{"a default beside another problem", `{"type":"object","properties":{"a":{"type":"text"},"b":{"type":"integer","default":"1"}}}`, ".properties.a.type SCHEMA_TYPE; .properties.b.default SCHEMA_DEFAULT", ""},
		{
			"all at once", `{"type":"object","properties":{"a":{"type":"text"},"b":{"allOf":[]},"Unit price":{"pattern":1}},"required":"a"}`,
			".properties.a.type SCHEMA_TYPE; .properties.b.allOf SCHEMA_KEYWORD; .properties['Unit price'].pattern SCHEMA_TYPE; .required TYPE", "",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, report := schema.Parse(decode(t, tt.schema), "wrapper.inputSchema")
			if got := outline(report.Problems); got != tt.problems {
				t.Errorf("problems: %s\nwant      %s", got, tt.problems)
			}
			if got := outline(report.Warnings); got != tt.warnings {
				t.Errorf("warnings: %s\nwant      %s", got, tt.warnings)
			}
			if (s == nil) != (tt.problems != "") {
				t.Errorf("schema %v beside problems %q", s, tt.problems)
			}
		})
	}
}

func TestGateWording(t *testing.T) {
	_, report := schema.Parse(decode(t, `{"type":"object","properties":{"p":{"$ref":"file:///etc/passwd"},"q":{"minlength":1,"nullable":true}}}`), "wrapper.inputSchema")
	want := `wrapper.inputSchema.properties.p.$ref SCHEMA_KEYWORD keyword "$ref" is not supported | write the schema that it points to in its place
wrapper.inputSchema.properties.q.minlength SCHEMA_KEYWORD keyword "minlength" is not supported | did you mean "minLength"?
wrapper.inputSchema.properties.q.nullable SCHEMA_KEYWORD keyword "nullable" is not supported | write "type": ["string", "null"]
`
	if diff := cmp.Diff(want, lines(report.Problems)); diff != "" {
		t.Error(diff)
	}
}

// A schema in another format's shape is answered with the right one.
func TestGateShapes(t *testing.T) {
	for _, tt := range []struct{ doc, problems, warnings string }{
		{`{"type":"object","properties":{"q":{"type":"string","required":true}}}`, "", "s.properties.q.required SCHEMA_KEYWORD dropped: required is a list of names, in the object that has the property | write \"required\": [\"q\"] in the object's own schema, beside properties\n"},
		{`{"type":"object","properties":{"q":{"required":false}}}`, "", "s.properties.q.required SCHEMA_KEYWORD dropped: required is a list of names, in the object that has the property | write \"required\": [\"q\"] in the object's own schema, beside properties\n"},
		{`{"type":"object","properties":{"o":{"type":"object","required":true}}}`, "s.properties.o.required TYPE expected array, got boolean | write \"required\": [\"o\"] in the object's own schema, beside properties\n", ""},
		{`{"type":"object","properties":{"q":{}},"required":"q"}`, "s.required TYPE expected array, got string | write an array of names beside properties, such as [\"q\"]\n", ""},
		{`{"type":"object","properties":[{"name":"q","type":"string"}]}`, "s.properties TYPE expected object, got array | write an object by name, such as {\"q\": {\"type\": \"string\"}}\n", ""},
		{`{"type":"object","q":{"type":"string"}}`, "s.q SCHEMA_KEYWORD keyword \"q\" is not supported | write \"properties\": {\"q\": {…}}\n", ""},
		{`{"type":"object","definitions":{}}`, "s.definitions SCHEMA_KEYWORD keyword \"definitions\" is not supported | write each schema in the place where it is used\n", ""},
		{`{"type":"object","propertys":{"q":{}}}`, "s.propertys SCHEMA_KEYWORD keyword \"propertys\" is not supported | did you mean \"properties\"?\n", ""},
	} {
		_, report := schema.Parse(decode(t, tt.doc), "s")
		if got := lines(report.Problems); got != tt.problems {
			t.Errorf("%s: problems\n got %swant %s", tt.doc, got, tt.problems)
		}
		if got := lines(report.Warnings); got != tt.warnings {
			t.Errorf("%s: warnings\n got %swant %s", tt.doc, got, tt.warnings)
		}
	}
}

// D24, D25: a schema never makes the process open a file or a connection, and
// never ends it.
func TestHostileReferences(t *testing.T) {
	trap, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dialled := make(chan bool, 1)
	go func() {
		c, err := trap.Accept()
		if err == nil {
			_ = c.Close()
		}
		dialled <- err == nil
	}()
	file := filepath.Join(t.TempDir(), "x.json")
	if err := os.WriteFile(file, []byte(`{"type":"string"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	refs := []string{"http://" + trap.Addr().String() + "/x", "file://" + file, "file:///etc/passwd", "#", "#/properties/p", "x.json", ""}
	for _, ref := range refs {
		quoted, _ := json.Marshal(ref)
		for _, shape := range []string{
			`{"$ref":%s}`, `{"type":"object","$ref":%s}`, `{"type":"object","properties":{"p":{"$ref":%s}}}`,
			`{"type":"object","properties":{"p":{"type":"array","items":{"$ref":%s}}}}`,
		} {
			text := fmt.Sprintf(shape, quoted)
			s, report := schema.Parse(decode(t, text), "wrapper.inputSchema")
			if s != nil || len(report.Problems) != 1 || !strings.HasSuffix(report.Problems[0].Field, ".$ref") || report.Problems[0].Code != "SCHEMA_KEYWORD" {
				t.Errorf("%s: %+v", text, report)
			}
		}
		// Where a reference is only data, or a name, it is admitted and stays data.
		s := parse(t, fmt.Sprintf(`{"type":"object","$id":%[1]s,"properties":{"$ref":{"type":"string","default":%[1]s,"description":%[1]s},"$id":{"type":"string","enum":[%[1]s]},"id":{"type":"object","examples":[{"$ref":%[1]s}],"default":{"$ref":%[1]s}}}}`, quoted))
		if _, _, problems := s.Validate(recipe.Object{{Key: "$id", Value: ref}}); len(problems) > 0 {
			t.Errorf("%s: %s", ref, lines(problems))
		}
	}
	if err := trap.(*net.TCPListener).SetDeadline(time.Now()); err != nil {
		t.Fatal(err)
	}
	if <-dialled {
		t.Error("a schema was fetched")
	}
}

func TestLimitsOfASchema(t *testing.T) {
	deep := func(n int) string {
		inner := `{"type":"string"}`
		for range n - 2 {
			inner = `{"type":"array","items":` + inner + `}`
		}
		return `{"type":"object","properties":{"p":` + inner + `}}`
	}
	props := func(n int) string {
		var b strings.Builder
		for i := range n - 1 {
			fmt.Fprintf(&b, `"p%d":{},`, i)
		}
		return `{"type":"object","properties":{` + b.String() + `"last":{}}}`
	}
	enum := func(n int) string {
		var b strings.Builder
		for i := range n - 1 {
			fmt.Fprintf(&b, `%d,`, i)
		}
		return `{"type":"object","properties":{"p":{"enum":[` + b.String() + `"last"]}}}`
	}
	pattern := func(n int) string {
		return `{"type":"object","properties":{"p":{"type":"string","pattern":"` + strings.Repeat("a", n) + `"}}}`
	}
	name := func(n int) string {
		return `{"type":"object","properties":{"` + strings.Repeat("é", n) + `":{}}}`
	}
	minimum := func(digits string) string {
		return `{"type":"object","properties":{"p":{"type":"number","minimum":` + digits + `}}}`
	}
	tests := []struct{ name, at, over, code string }{
		{"depth", deep(16), deep(17), "SCHEMA_TOO_DEEP"},
		{"properties", props(200), props(201), "TOO_MANY"},
		{"enum", enum(100), enum(101), "TOO_MANY"},
		{"pattern", pattern(512), pattern(513), "TOO_LONG"},
		{"name", name(100), name(101), "TOO_LONG"},
		{"digits", minimum(strings.Repeat("9", 64)), minimum(strings.Repeat("9", 65)), "RANGE"},
		{"exponent", minimum("1e308"), minimum("1e309"), "RANGE"},
		{"small exponent", minimum("1e-308"), minimum("1e-309"), "RANGE"},
		{"size", `{"type":"object","properties":{"p":{"type":"string","maxLength":2147483647}}}`, `{"type":"object","properties":{"p":{"type":"string","maxLength":2147483648}}}`, "RANGE"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			parse(t, tt.at)
			_, report := schema.Parse(decode(t, tt.over), "s")
			if len(report.Problems) != 1 || report.Problems[0].Code != tt.code {
				t.Errorf("one over: %+v", report.Problems)
			}
		})
	}
}

func TestValidate(t *testing.T) {
	const orders = `{"type":"object","properties":{
		"customer_id":{"type":"string","description":"Customer ID","minLength":1,"maxLength":3},
		"items":{"type":"array","minItems":1,"maxItems":2,"items":{"type":"object","properties":{"sku":{"type":"string"},"qty":{"type":"integer","minimum":1,"maximum":9007199254740993}},"required":["sku"],"additionalProperties":false}},
		"tags":{"type":"array","items":{"type":"string"}},
		"note":{"type":["string","null"]},
		"size":{"type":"string","enum":["small","large"]},
		"price":{"type":"number","minimum":0.1},
		"code":{"type":"string","pattern":"^[A-Z]{2}$"},
		"ok":{"type":"boolean"},
		"extra":{"type":"object"},
		"any":{}
	},"required":["customer_id"],"additionalProperties":false}`
	ids := `{"type":"object","properties":{"n":{"enum":[9007199254740993,"x",[1,{"a":2}],null]}}}`
	open := `{"type":"object","properties":{"city":{"type":"string"},"o":{"type":"object","properties":{"qty":{}}},"free":{"type":"object"}}}`
	tests := []struct{ name, schema, args, problems, warnings string }{
		{"good", orders, `{"customer_id":"c1","items":[{"sku":"A","qty":9007199254740993}],"note":null,"size":"small","price":0.1,"code":"AB","ok":false,"extra":{"x":[1]},"any":null,"tags":[]}`, "", ""},
		{"N-12 missing", orders, `{}`, "args.customer_id REQUIRED is required (string: Customer ID)\n", ""},
		{"N-09 array as text", orders, `{"customer_id":"c","tags":"[\"a\",\"b\"]"}`, "args.tags TYPE expected array, got string | send the array itself, not a string that holds it\n", ""},
		{"N-13 unknown", `{"type":"object","properties":{"city":{"type":"string"}},"additionalProperties":false}`, `{"citty":"Oslo"}`, "args.citty UNKNOWN_FIELD unknown argument; accepted: city | did you mean \"city\"?\n", ""},
		{"N-13 unknown by rule", open, `{"citty":"Oslo"}`, "", "args.citty UNKNOWN_FIELD unknown argument; accepted: city, o, free | did you mean \"city\"?\n"},
		{"unknown below", open, `{"o":{"quantity":1},"free":{"x":1}}`, "", "args.o.quantity UNKNOWN_FIELD unknown member; accepted: qty\n"},
		{"N-07 null", orders, `{"customer_id":null}`, "args.customer_id NULL_NOT_ALLOWED null is not allowed, expected string | leave it out, or give a value\n", ""},
		{"deep place", orders, `{"customer_id":"c","items":[{"sku":"A"},{"qty":"2","x":1}]}`, "args.items[1].sku REQUIRED is required (string)\nargs.items[1].qty TYPE expected integer, got string | send the number without quotes\nargs.items[1].x UNKNOWN_FIELD unknown member; accepted: sku, qty\n", ""},
		{"fraction", orders, `{"customer_id":"c","items":[{"sku":"A","qty":1.5}]}`, "args.items[0].qty TYPE expected integer, got a number with a fraction\n", ""},
		{"whole numbers are integers", orders, `{"customer_id":"c","items":[{"sku":"A","qty":1.0},{"sku":"A","qty":1e3}]}`, "", ""},
		{"maximum is exact", orders, `{"customer_id":"c","items":[{"sku":"A","qty":9007199254740994}]}`, "args.items[0].qty RANGE must be at most 9007199254740993\n", ""},
		{"minimum is exact", orders, `{"customer_id":"c","price":0.0999999999999999999999999999}`, "args.price RANGE must be at least 0.1\n", ""},
		{"no coercion of a number", orders, `{"customer_id":5}`, "args.customer_id TYPE expected string, got integer | put the value in quotes\n", ""},
		{"no coercion of a boolean", orders, `{"customer_id":"c","ok":"true"}`, "args.ok TYPE expected boolean, got string | send true or false without quotes\n", ""},
		{"one for a list", orders, `{"customer_id":"c","tags":"a"}`, "args.tags TYPE expected array, got string\n", ""},
		{"nullable", orders, `{"customer_id":"c","note":1}`, "args.note TYPE expected string or null, got integer | put the value in quotes\n", ""},
		{"enum", orders, `{"customer_id":"c","size":"smal"}`, "args.size ENUM must be one of \"small\", \"large\" | did you mean \"small\"?\n", ""},
		{"pattern", orders, `{"customer_id":"c","code":"abc"}`, "args.code PATTERN must match the pattern ^[A-Z]{2}$\n", ""},
		{"pattern and a line end", orders, `{"customer_id":"c","code":"AB\n"}`, "args.code PATTERN must match the pattern ^[A-Z]{2}$\n", ""},
		{"too short", orders, `{"customer_id":""}`, "args.customer_id TOO_SHORT must have at least 1 character, has 0\n", ""},
		{"length counts characters", orders, `{"customer_id":"😀😀😀"}`, "", ""},
		{"too long", orders, `{"customer_id":"😀😀😀😀"}`, "args.customer_id TOO_LONG can have at most 3 characters, has 4\n", ""},
		{"too few", orders, `{"customer_id":"c","items":[]}`, "args.items TOO_FEW must have at least 1 item, has 0\n", ""},
		{"too many", orders, `{"customer_id":"c","items":[{"sku":"a"},{"sku":"a"},{"sku":"a"}]}`, "args.items TOO_MANY can have at most 2 items, has 3\n", ""},
		{"D26", orders, `{"customer_id":"c","price":4E9999999}`, "args.price RANGE a number can have 64 characters and an exponent up to 308\n", ""},
		{"D26 deep, without a schema", orders, `{"customer_id":"c","any":[{"x":[0,1e1000000]}]}`, "args.any[0].x[1] RANGE a number can have 64 characters and an exponent up to 308\n", ""},
		{"D27", ids, `{"n":9007199254740992}`, "args.n ENUM must be one of 9007199254740993, \"x\", [1,{\"a\":2}], null\n", ""},
		{"enum of numbers by value", ids, `{"n":9007199254740993.0}`, "", ""},
		{"enum deep", ids, `{"n":[1.0,{"a":2}]}`, "", ""},
		{"enum null", ids, `{"n":null}`, "", ""},
		{"false and 0 and empty are values", open, `{"city":"","o":{"qty":0}}`, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			args := decode(t, tt.args).(recipe.Object)
			filled, warnings, problems := parse(t, tt.schema).Validate(args)
			if diff := cmp.Diff(tt.problems, lines(problems)); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.warnings, lines(warnings)); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(args, filled); tt.problems == "" && diff != "" {
				t.Errorf("arguments changed (-given +filled):\n%s", diff)
			}
		})
	}
}

func TestDefaults(t *testing.T) {
	s := parse(t, `{"type":"object","properties":{
		"limit":{"type":"integer","default":10},
		"big":{"type":"integer","default":9007199254740993},
		"opt":{"type":"object","properties":{"a":{"type":"string","default":"x"},"b":{"type":"string"}}},
		"rows":{"type":"array","items":{"type":"object","properties":{"qty":{"type":"integer","default":1}}}},
		"nullable":{"type":["string","null"],"default":"d"},
		"made":{"type":"object","properties":{"in":{"default":true}},"default":{}}},
		"required":["limit"]}`)
	tests := []struct{ args, filled string }{
		{`{}`, `{"limit":10,"big":9007199254740993,"nullable":"d","made":{"in":true}}`},
		{`{"opt":{"b":"y"},"rows":[{},{"qty":2}],"limit":3}`, `{"opt":{"b":"y","a":"x"},"rows":[{"qty":1},{"qty":2}],"limit":3,"big":9007199254740993,"nullable":"d","made":{"in":true}}`},
		{`{"nullable":null,"limit":1,"big":2,"made":{"in":false}}`, `{"nullable":null,"limit":1,"big":2,"made":{"in":false}}`},
	}
	for _, tt := range tests {
		args := decode(t, tt.args).(recipe.Object)
		filled, _, problems := s.Validate(args)
		if got := string(recipe.Encode(filled)); got != tt.filled || len(problems) > 0 {
			t.Errorf("%s:\n got %s\nwant %s\n%s", tt.args, got, tt.filled, lines(problems))
		}
		if got := string(recipe.Encode(args)); got != tt.args {
			t.Errorf("the caller's arguments changed: %s", got)
		}
	}
	if got := s.Required(); len(got) != 0 {
		t.Errorf("Required() = %q; limit has a default", got)
	}
}

func TestLongValuesAreNotShown(t *testing.T) {
	long := strings.Repeat("v", 81)
	s := parse(t, `{"type":"object","properties":{"p":{"enum":["`+long+`"]},"q":{"type":"string","pattern":"^`+long+`$"}},"additionalProperties":false}`)
	args := recipe.Object{{Key: "p", Value: strings.Repeat("w", 200)}, {Key: "q", Value: strings.Repeat("x", 200)}, {Key: strings.Repeat("k", 200), Value: nil}, {Key: "a\nb\u202e", Value: nil}}
	_, _, problems := s.Validate(args)
	if len(problems) != 4 {
		t.Fatalf("%s", lines(problems))
	}
	text := lines(problems)
	for _, bad := range []string{long, strings.Repeat("w", 81), strings.Repeat("x", 81), strings.Repeat("k", 81), "a\nb", "\u202e"} {
		if strings.Contains(text, bad) {
			t.Errorf("shown: %q in\n%s", bad, text)
		}
	}
}

func TestProblemsAreBounded(t *testing.T) {
	s := parse(t, `{"type":"object","properties":{"a":{"type":"array","items":{"type":"string"}}}}`)
	many := make(recipe.Array, 100000)
	_, _, problems := s.Validate(recipe.Object{{Key: "a", Value: many}})
	if len(problems) != recipe.MaxProblems {
		t.Errorf("%d problems", len(problems))
	}
}

func TestDocumentAndPublished(t *testing.T) {
	const given = `{"$schema":"x","description":"d","properties":{"b":{"type":["string"],"format":"email"},"a":{"type":"array"},"c":{"type":"object","additionalProperties":true,"properties":{"d":{"type":["array","null"],"items":{"minItems":1,"type":"string"}}}}},"type":"object","required":["b"]}`
	const document = `{"description":"d","properties":{"b":{"type":"string","format":"email"},"a":{"type":"array"},"c":{"type":"object","properties":{"d":{"type":["array","null"],"items":{"type":"string"}}}}},"type":"object","required":["b"]}`
	const published = `{"description":"d","properties":{"b":{"type":"string","format":"email"},"a":{"type":"array","items":{}},"c":{"type":"object","properties":{"d":{"type":["array","null"],"items":{"type":"string"}}}}},"type":"object","required":["b"]}`
	s := parse(t, given)
	if got := string(recipe.Encode(s.Document())); got != document {
		t.Errorf("document\n got %s\nwant %s", got, document)
	}
	if got := string(recipe.Encode(parse(t, document).Document())); got != document {
		t.Errorf("document of the document\n got %s\nwant %s", got, document)
	}
	if got := string(recipe.Encode(s.Published())); got != published {
		t.Errorf("published\n got %s\nwant %s", got, published)
	}
	if got, want := string(recipe.Encode(parse(t, `{"type":"object"}`).Published())), `{"type":"object","properties":{}}`; got != want {
		t.Errorf("published: %s", got)
	}
}

func TestProperties(t *testing.T) {
	s := parse(t, `{"type":"object","properties":{"q":{"type":"string","description":"what"},"tags":{"type":"array","items":{"type":["string","null"]}},"n":{"type":"integer","default":1},"any":{}},"required":["n","q"]}`)
	want := []schema.Property{
		{Name: "q", Types: []string{"string"}, Description: "what", Required: true},
		{Name: "tags", Types: []string{"array"}, ItemTypes: []string{"string", "null"}},
		{Name: "n", Types: []string{"integer"}, Default: json.Number("1"), HasDefault: true, Required: true},
		{Name: "any"},
	}
	if diff := cmp.Diff(want, s.Properties()); diff != "" {
		t.Error(diff)
	}
	if got, ok := s.Property("tags"); !ok || !cmp.Equal(got, want[1]) {
		t.Errorf("Property(tags) = %+v, %v", got, ok)
	}
	if _, ok := s.Property("nope"); ok {
		t.Error("Property(nope) is there")
	}
	if diff := cmp.Diff([]string{"q"}, s.Required()); diff != "" {
		t.Error(diff)
	}
}

func TestWith(t *testing.T) {
	s := parse(t, `{"type":"object","properties":{"q":{"type":"string"}},"required":["q"],"additionalProperties":false}`)
	m := s.With("method", "HTTP method", "METHOD_NOT_OFFERED", []string{"GET", "POST"})
	const want = `{"type":"object","properties":{"q":{"type":"string"},"method":{"type":"string","enum":["GET","POST"],"default":"GET","description":"HTTP method"}},"required":["q"],"additionalProperties":false}`
	if got := string(recipe.Encode(m.Published())); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	if got, want := string(recipe.Encode(schema.Empty().With("method", "d", "X", []string{"GET"}).Document())),
		`{"type":"object","properties":{"method":{"type":"string","enum":["GET"],"default":"GET","description":"d"}}}`; got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	if len(s.Properties()) != 1 {
		t.Error("With changed its receiver")
	}
	filled, _, problems := m.Validate(decode(t, `{"q":"x"}`).(recipe.Object))
	if got := string(recipe.Encode(filled)); got != `{"q":"x","method":"GET"}` || len(problems) > 0 {
		t.Errorf("%s %s", got, lines(problems))
	}
	_, _, problems = m.Validate(decode(t, `{"q":"x","method":"post"}`).(recipe.Object))
	if got, want := lines(problems), "args.method METHOD_NOT_OFFERED must be one of \"GET\", \"POST\" | did you mean \"POST\"?\n"; got != want {
		t.Errorf("%s", got)
	}
}

func TestEmpty(t *testing.T) {
	filled, warnings, problems := schema.Empty().Validate(decode(t, `{"x":1}`).(recipe.Object))
	if len(problems) > 0 || lines(warnings) != "args.x UNKNOWN_FIELD unknown argument; none is accepted\n" || len(filled) != 1 {
		t.Errorf("%v %s %s", filled, lines(problems), lines(warnings))
	}
}

func TestDecodeArgs(t *testing.T) {
	deep := func(n int) string {
		return `{"a":` + strings.Repeat("[", n-1) + strings.Repeat("]", n-1) + `}`
	}
	// The object, the array and its items.
	many := func(n int) string { return `{"a":[` + strings.Repeat("0,", n-3) + `0]}` }
	long := func(n int) string { return `{"a":"` + strings.Repeat("x", n-8) + `"}` }
	good := []struct{ args, want string }{
		{"", `{}`},
		{"  \n", `{}`},
		{"null", `{}`},
		{"{}", `{}`},
		{`{"b":1.0,"a":[9007199254740993]}`, `{"b":1.0,"a":[9007199254740993]}`},
		{deep(32), deep(32)},
		{long(1 << 20), long(1 << 20)},
		{many(200_000), many(200_000)},
	}
	for _, tt := range good {
		args, err := schema.DecodeArgs([]byte(tt.args))
		if err != nil || args == nil || string(recipe.Encode(args)) != tt.want {
			t.Errorf("%.60s: %v", tt.args, err)
		}
	}
	bad := []struct{ args, detail string }{
		{`{"a":1,"a":2}`, `args.a DUPLICATE key "a" appears twice`}, // D28
		{`{"o":[{"x y":1,"x y":1}]}`, `args.o[0]['x y'] DUPLICATE key "x y" appears twice`},
		{`{} {}`, `args TYPE not one JSON object: more text after the JSON document at byte 3`},
		{`{"a":1`, `args TYPE not one JSON object: the text ends too early at byte 6`},
		{"{\"a\":\"\xff\"}", `args TYPE not one JSON object: invalid UTF-8 at byte 6`},
		{`[1]`, `args TYPE expected an object with the arguments by name, got array`},
		{`"{\"a\":1}"`, `args TYPE expected an object with the arguments by name, got string | send the object itself, not a string that holds it`},
		{`5`, `args TYPE expected an object with the arguments by name, got integer`},
		{deep(33), `args RANGE more than 32 arrays and objects inside each other at byte 36`},
		{many(200_001), `args TOO_MANY the arguments can hold 200000 values, these hold 200001`},
		{long(1<<20 + 1), `args TOO_LONG the arguments can have 1048576 bytes, these have 1048577`},
	}
	for _, tt := range bad {
		_, err := schema.DecodeArgs([]byte(tt.args))
		fe := fault.From(err)
		if fe == nil || fe.Code != "ARGS_INVALID" || len(fe.Details) != 1 {
			t.Errorf("%.60s: %v", tt.args, err)
			continue
		}
		d := fe.Details[0]
		got := lines([]recipe.Problem{{Field: d.Field, Code: string(d.Code), Message: d.Message, Hint: d.Hint}})
		if got != tt.detail+"\n" {
			t.Errorf("%.60s:\n got %swant %s", tt.args, got, tt.detail)
		}
	}
}

// A hundred thousand different keys must not cost a comparison of each pair.
func TestManyKeysAreCheap(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"k":0`)
	for i := range 90000 {
		fmt.Fprintf(&b, `,"%d":0`, i)
	}
	b.WriteString(`}`)
	start := time.Now()
	args, err := schema.DecodeArgs([]byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	parse(t, `{"type":"object","properties":{"k":{"type":"integer","default":1},"j":{"default":1}},"required":["k"]}`).Validate(args)
	if took := time.Since(start); took > 8*time.Second {
		t.Errorf("took %v", took)
	}
}

func TestArgsInvalid(t *testing.T) {
	if schema.ArgsInvalid(nil) != nil {
		t.Error("no problems, but a fault")
	}
	e := schema.ArgsInvalid([]recipe.Problem{{Field: "args.a", Code: "TYPE", Message: "m1", Hint: "h1"}, {Field: "args.b", Code: "RANGE", Message: "m2"}})
	want := []fault.Detail{{Field: "args.a", Code: "TYPE", Message: "m1", Hint: "h1"}, {Field: "args.b", Code: "RANGE", Message: "m2"}}
	if e.Message != "args.a: m1 (and 1 problem more)" || e.Field != "args.a" || !cmp.Equal(e.Details, want) {
		t.Errorf("%+v", e)
	}
}

func TestNear(t *testing.T) {
	names := []string{"query", "limit", "customer_id", "q"}
	for _, tt := range []struct{ name, want string }{
		{"Query", "query"},
		{"qeury", "query"},
		{"customerId", "customer_id"},
		{"limits", "limit"},
		{"offset", ""},
		{"x", ""},
		{"", ""},
	} {
		if got := schema.Near(tt.name, names); got != tt.want {
			t.Errorf("Near(%q) = %q, want %q", tt.name, got, tt.want)
		}
	}
}

// Arguments at the size limit must not cost more than their size, whatever the
// schema asks of each value.
func TestHostileArgumentsAreCheap(t *testing.T) {
	var enum, props []string
	for i := range 99 {
		enum = append(enum, fmt.Sprintf("%d.5e300", i+1))
		props = append(props, fmt.Sprintf(`"property_number_%d":{}`, i))
	}
	numbers := `{"type":"object","properties":{"a":{"type":"array","items":{"type":"number","minimum":-1e308,"maximum":1e308,"enum":[` + strings.Join(enum, ",") + `,1e308]}}}}`
	objects := `{"type":"object","properties":{"a":{"type":"array","items":{"type":"object","properties":{"k":{"type":"integer","default":1},` + strings.Join(props, ",") + `},"required":["k"]}}}}`
	fill := func(head, item, tail string) string {
		n := (schema.MaxArgsBytes - len(head) - len(item) - len(tail)) / (len(item) + 1)
		n = min(n, schema.MaxArgsValues/(1+strings.Count(item, "[")+strings.Count(item, ":"))-3)
		return head + strings.Repeat(item+",", n) + item + tail
	}
	for name, tt := range map[string]struct{ schema, args string }{
		"numbers":         {numbers, fill(`{"a":[`, "1e308", "]}")},
		"long numbers":    {numbers, fill(`{"a":[`, strings.Repeat("1234567890", 6)+"1234", "]}")},
		"enum":            {strings.ReplaceAll(numbers, "1e308]", "7]"), fill(`{"a":[`, "7", "]}")},
		"many defaults":   {strings.ReplaceAll(objects, ":{},", `:{"default":"x"},`), fill(`{"a":[`, "{}", "]}")},
		"wrong numbers":   {numbers, fill(`{"a":[`, "1e307", "]}")},
		"unbounded":       {numbers, fill(`{"a":[`, "1e999", "]}")},
		"objects":         {objects, fill(`{"a":[`, "{}", "]}")},
		"unknown members": {objects, fill(`{"a":[`, `{"property_numbr_1":1}`, "]}")},
		"wrong types":     {objects, fill(`{"a":[`, `"x"`, "]}")},
		"deep":            {objects, fill(`{"a":[`, strings.Repeat("[", 30)+strings.Repeat("]", 30), "]}")},
	} {
		t.Run(name, func(t *testing.T) {
			s := parse(t, tt.schema)
			start := time.Now()
			args, err := schema.DecodeArgs([]byte(tt.args))
			if err != nil {
				t.Fatal(err)
			}
			s.Validate(args)
			if took := time.Since(start); took > 8*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
}

func TestBoundsOfWork(t *testing.T) {
	items := func(n int, item string) recipe.Object {
		return decode(t, `{"a":[`+strings.Repeat(item+",", n-1)+item+`]}`).(recipe.Object)
	}
	numbers := parse(t, `{"type":"object","properties":{"a":{"type":"array","items":{"type":"number"}}}}`)
	defaults := parse(t, `{"type":"object","properties":{"a":{"type":"array","items":{"type":"object","properties":{"x":{"default":1},"y":{"default":2}}}}}}`)
	for _, tt := range []struct {
		name     string
		schema   *schema.Schema
		at, over recipe.Object
		want     string
	}{
		{"costly numbers", numbers, items(1000, "1e41"), items(1001, "1e-41"), "args.a[1000] TOO_MANY"},
		{"cheap numbers", numbers, items(5000, "1e40"), items(1, "1e309"), "args.a[0] RANGE"},
		{"defaults", defaults, items(50_000, "{}"), items(50_001, "{}"), "args TOO_MANY"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, _, problems := tt.schema.Validate(tt.at); len(problems) > 0 {
				t.Errorf("at the limit: %s", lines(problems))
			}
			if _, _, problems := tt.schema.Validate(tt.over); outline(problems) != tt.want {
				t.Errorf("one over: %s", lines(problems))
			}
		})
	}
}

// Every pair of spellings: equal as values or not, decided by math/big.
func TestEnumByValue(t *testing.T) {
	numbers := []string{"0", "-0", "0.00", "0e7", "1", "1.0", "10e-1", "0.1e1", "-1", "-1.0", "10", "1e1", "100", "1E+2", "0.01", "1e-2", "10.0e-3", "1.01", "101e-2", "9007199254740993", "9007199254740992", "9007199254740993.0", "1e308", "0.1e309", "10e307", "1e-308"}
	for _, a := range numbers {
		s, report := schema.Parse(decode(t, `{"type":"object","properties":{"n":{"enum":[`+a+`]}}}`), "s")
		x, _ := new(big.Rat).SetString(a)
		if strings.Contains(a, "309") {
			if report.OK() {
				t.Errorf("%s is admitted", a)
			}
			continue
		}
		for _, b := range numbers {
			y, _ := new(big.Rat).SetString(b)
			_, _, problems := s.Validate(recipe.Object{{Key: "n", Value: json.Number(b)}})
			if !strings.Contains(b, "309") && (len(problems) == 0) != (x.Cmp(y) == 0) {
				t.Errorf("enum %s, argument %s: %s", a, b, lines(problems))
			}
		}
	}
}

func TestIntegers(t *testing.T) {
	s := parse(t, `{"type":"object","properties":{"n":{"type":"integer"}}}`)
	for n, want := range map[string]bool{
		"0": true, "-0": true, "-0.000": true, "0e5": true, "0.0e-9": true, "1": true, "1.0": true, "1e3": true, "1.5e1": true, "-12.50e2": true, "150e-1": true, "1000e-3": true, "1E+308": true,
		"1.5": false, "1e-1": false, "15e-1": false, "1.05e1": false, "1000e-4": false, "-0.1": false, "1e-308": false,
	} {
		_, _, problems := s.Validate(recipe.Object{{Key: "n", Value: json.Number(n)}})
		if (len(problems) == 0) != want {
			t.Errorf("%s: %s", n, lines(problems))
		}
	}
}
