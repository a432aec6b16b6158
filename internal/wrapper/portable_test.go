package wrapper_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/wrapper"
	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// input is an exposed wrapper with an input schema.
func input(schema string) string {
	return `{"schemaVersion":1,"id":"t","request":{"url":"https://h.test/"},"inputSchema":` + schema + `,"exposeAsTool":true}`
}

func property(p string) string { return input(`{"type":"object","properties":{"p":` + p + `}}`) }

// TestPublished: what a client is shown, beside what the author wrote.
func TestPublished(t *testing.T) {
	props := func(p string) string { return `{"type":"object","properties":{"p":` + p + `}}` }
	tests := []struct{ name, doc, want string }{
		{"no input schema", `{"schemaVersion":1,"id":"t","request":{"url":"https://h.test/"}}`, `{"type":"object","properties":{}}`},
		{"no properties", input(`{"type":"object"}`), `{"type":"object","properties":{}}`},
		{
			"closed, in the author's order", input(`{"additionalProperties":false,"required":["z"],"properties":{"z":{"description":"Z","type":"string"},"a":{"type":"integer"}},"type":"object"}`),
			`{"additionalProperties":false,"required":["z"],"properties":{"z":{"description":"Z","type":"string"},"a":{"type":"integer"}},"type":"object"}`,
		},
		{"$schema is gone", input(`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{}}`), `{"type":"object","properties":{}}`},
		{"M-05 array without items", property(`{"type":"array"}`), props(`{"type":"array","items":{"description":"Any JSON value."}}`)},
		{"array with empty items", property(`{"type":"array","items":{}}`), props(`{"type":"array","items":{"description":"Any JSON value."}}`)},
		{"any value", property(`{}`), props(`{"description":"Any JSON value."}`)},
		{"any value, explained", property(`{"description":"The filter"}`), props(`{"description":"The filter"}`)},
		{"null beside a type", property(`{"type":["string","null"],"description":"A note"}`), props(`{"type":"string","description":"A note. May be null."}`)},
		{"null first", property(`{"type":["null","integer"]}`), props(`{"type":"integer","description":"May be null."}`)},
		{"only null", property(`{"type":"null"}`), props(`{"description":"Always null."}`)},
		{"array or null", property(`{"type":["array","null"]}`), props(`{"type":"array","items":{"description":"Any JSON value."},"description":"May be null."}`)},
		{"a list of one type", property(`{"type":["string"]}`), props(`{"type":"string"}`)},
		{"enum of texts", property(`{"type":"string","enum":["b","a"]}`), props(`{"type":"string","enum":["b","a"]}`)},
		{"enum with null", property(`{"type":["string","null"],"enum":["a",null],"default":null}`), props(`{"type":"string","enum":["a"],"description":"May be null."}`)},
		{"enum without a type", property(`{"enum":["a"]}`), props(`{"type":"string","enum":["a"]}`)},
		{"numbers without a type", property(`{"enum":[1,2.5,null]}`), props(`{"type":"number","description":"One of: 1, 2.5. May be null."}`)},
		{"values of several types", property(`{"enum":[1,"a",true]}`), props(`{"description":"One of: 1, \"a\", true."}`)},
		{"null in an enum without a type", property(`{"enum":["a",null]}`), props(`{"type":"string","enum":["a"],"description":"May be null."}`)},
		{"arrays", property(`{"enum":[[1]]}`), props(`{"description":"One of: [1]."}`)},
		{"enum of numbers keeps its digits", property(`{"type":"number","enum":[1.50,9007199254740993],"default":1.50}`), props(`{"type":"number","default":1.50,"description":"One of: 1.50, 9007199254740993."}`)},
		{"enum with an empty text", property(`{"type":"string","enum":["","a"],"description":"Order"}`), props(`{"type":"string","description":"Order. One of: \"\", \"a\"."}`)},
		{"format that all know", property(`{"type":"string","format":"date-time"}`), props(`{"type":"string","format":"date-time"}`)},
		{"format of some", property(`{"type":"integer","format":"int64"}`), props(`{"type":"integer","description":"Format: int64."}`)},
		{"pattern of both dialects", property(`{"type":"string","pattern":"^[a-z]{2,5}$"}`), props(`{"type":"string","pattern":"^[a-z]{2,5}$"}`)},
		{"pattern of RE2 alone", property(`{"type":"string","pattern":"(?i)^a\\z"}`), props(`{"type":"string","description":"Must match (?i)^a\\z (RE2)."}`)},
		{
			"a default is not required", input(`{"type":"object","properties":{"a":{"type":"string","default":"x"},"b":{"type":"string"}},"required":["a","b"]}`),
			`{"type":"object","properties":{"a":{"type":"string","default":"x"},"b":{"type":"string"}},"required":["b"]}`,
		},
		{
			"nothing left to require", input(`{"type":"object","properties":{"a":{"type":"string","default":"x"}},"required":["a"]}`),
			`{"type":"object","properties":{"a":{"type":"string","default":"x"}}}`,
		},
		{"words of other keywords", property(`{"type":"string","title":"P","examples":["x","y",1,2],"deprecated":true}`), props(`{"type":"string","title":"P","description":"For example: \"x\", \"y\", 1 and 1 more. Deprecated."}`)},
		{"limits stay", property(`{"type":"integer","minimum":1,"maximum":50}`), props(`{"type":"integer","minimum":1,"maximum":50}`)},
		{
			"deep inside", property(`{"type":"array","items":{"type":"object","properties":{"x":{"type":["number","null"]},"y":{"type":"array"}},"required":["x"]}}`),
			props(`{"type":"array","items":{"type":"object","properties":{"x":{"type":"number","description":"May be null."},"y":{"type":"array","items":{"description":"Any JSON value."}}},"required":["x"]}}`),
		},
		{
			"the generated method", `{"schemaVersion":1,"id":"t","request":{"method":["GET","POST"],"url":"https://h.test/"}}`,
			`{"type":"object","properties":{"method":{"type":"string","enum":["GET","POST"],"default":"GET","description":"HTTP method"}}}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := parse(t, tt.doc)
			before := string(w.Document())
			schema, reason := wrapper.Published(w)
			if d := cmp.Diff(tt.want, string(schema)); d != "" || reason != "" {
				t.Errorf("quarantined: %q (-want +got)\n%s", reason, d)
			}
			if string(w.Document()) != before {
				t.Error("the author's document has changed")
			}
		})
	}
}

// TestPortable: what no cleaning can help, at the limit and one over.
func TestPortable(t *testing.T) {
	named := func(name string) string {
		key, _ := json.Marshal(name)
		return input(`{"type":"object","properties":{` + string(key) + `:{"type":"string"}}}`)
	}
	// A property's description of n bytes makes the schema 75 bytes longer.
	long := func(n int) string {
		return property(`{"type":"string","description":"` + strings.Repeat("x", n) + `"}`)
	}
	frame := len(`{"type":"object","properties":{"p":{"type":"string","description":""}}}`)
	refused := func(name string) string {
		return fmt.Sprintf("the Anthropic API refuses the argument name %q: letters, digits, _ - and . only, at most 64", name)
	}
	tests := []struct{ name, doc, reason string }{
		{"letters", named("aZ09_-"), ""},
		{"dot", named("a.b"), ""},
		{"64 characters", named(strings.Repeat("n", 64)), ""},
		{"65 characters", named(strings.Repeat("n", 65)), refused(strings.Repeat("n", 29) + "…")},
		{"space", named("first name"), refused("first name")},
		{"dollar", named("$filter"), refused("$filter")},
		{"brackets", named("page[size]"), refused("page[size]")},
		{"umlaut", named("größe"), refused("größe")},
		{"inside an array", property(`{"type":"array","items":{"type":"object","properties":{"a b":{"type":"string"}}}}`), refused("a b")},
		{"prototype", named("__proto__"), "JavaScript clients lose an argument called __proto__"},
		{"32 KiB", long(32<<10 - frame), ""},
		{"one byte more", long(32<<10 - frame + 1), "the schema has 32769 bytes, a tool's can have 32768"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			schema, reason := wrapper.Published(parse(t, tt.doc))
			if d := cmp.Diff(tt.reason, reason); d != "" || (schema == nil) != (reason != "") {
				t.Errorf("schema %s (-want +got)\n%s", schema, d)
			}
		})
	}
}

// TestPortablePattern: the words on the right were checked with Node.js 20, by
// new RegExp(p) and new RegExp(p, "u"), against Go on the same texts.
func TestPortablePattern(t *testing.T) {
	tests := []struct {
		pattern string
		kept    bool
	}{
		{`^[a-z0-9]+(?:-[a-z0-9]+)*$`, true},
		{`^\d{4}-\d{2}-\d{2}$`, true},
		{`^(?<year>\d{4})$`, true},
		{`^[\w.+-]+@[\w-]+\.[a-z]{2,}$`, true},
		{`^\x41[^\]\-/]\/$`, true},
		{`a|b|`, true},
		{`(^)*`, true}, // a group may be repeated, whatever is in it
		{`\bword\b`, true},
		{`[[a]`, true},
		{`é`, true},

		{`(?P<year>\d{4})`, false},
		{`(?<1a>x)`, false}, // a name begins with a letter there
		{`(?i)abc`, false},
		{`(?i:abc)`, false},
		{`\Aabc`, false},
		{`abc\z`, false},
		{`\Qa.b\E`, false},
		{`\pL`, false},
		{`\p{L}`, false}, // the text p{L} without the flag u
		{`\p{Greek}`, false},
		{`[[:alpha:]]`, false},
		{`[]a]`, false},
		{`[^]a]`, false},
		{`[\w-x]`, false},
		{`\x{1F600}`, false},
		{`\x{41}`, false},
		{`\a`, false},
		{`\0`, false},
		{`\-`, false},
		{`\_`, false},
		{`\@`, false},
		{`a{`, false},
		{`a{,2}`, false},
		{`}`, false},
		{`]`, false},
		{`^*`, false},
		{`\b+`, false},
		{`$?`, false},
		{`^{2}`, false},
		{`[😀]`, false},
		{`😀`, false},
	}
	for _, tt := range tests {
		p, _ := json.Marshal(tt.pattern)
		w := parse(t, property(`{"type":"string","pattern":`+string(p)+`}`))
		schema, reason := wrapper.Published(w)
		if kept := strings.Contains(string(schema), `"pattern":`); kept != tt.kept {
			t.Errorf("%s: kept is %v: %s", tt.pattern, kept, schema)
		}
		if warned := strings.Contains(lines(wrapper.Lint(w)), "JavaScript clients refuse this pattern"); warned == tt.kept {
			t.Errorf("%s: warned is %v", tt.pattern, warned)
		}
		if reason != "" {
			t.Errorf("%s: quarantined: %s", tt.pattern, reason)
		}
	}
}

// FuzzPublished holds for every wrapper that parses and is portable: the
// schema that is shown has nothing that a known client refuses.
func FuzzPublished(f *testing.F) {
	for _, s := range []string{
		`{"type":"object","properties":{"a":{"type":["string","null"],"enum":["x",null],"default":"x","pattern":"(?i)x"},"n":{"type":"number","enum":[1]}},"required":["n"],"additionalProperties":false}`,
		`{"type":"object","properties":{"o":{"type":"object","properties":{"d":{"type":"array"}}},"l":{"type":"array","items":{"type":"null"}},"any":{"examples":[1]}}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, author []byte) {
		w, _ := wrapper.Parse([]byte(input(string(author))))
		if w == nil {
			return
		}
		wrapper.Lint(w)
		schema, reason := wrapper.Published(w)
		if reason != "" {
			return
		}
		v, err := recipe.Decode(schema, recipe.DecodeLimits{})
		if err != nil {
			t.Fatal(err)
		}
		root := v.(recipe.Object)
		if typ, _ := root.Get("type"); typ != "object" {
			t.Fatalf("the root is %v", typ)
		}
		if _, ok := root.Get("properties"); !ok {
			t.Fatal("no properties")
		}
		strict(t, root)
	})
}

var strictKey = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)

// strict is the table of what clients take, read from the other side.
func strict(t *testing.T, v recipe.Value) {
	t.Helper()
	n, ok := v.(recipe.Object)
	if !ok || len(n) == 0 {
		t.Fatalf("not a schema that says something: %s", recipe.Encode(v))
	}
	for _, m := range n {
		switch m.Key {
		case "type":
			if s, ok := m.Value.(string); !ok || s == "null" {
				t.Fatalf("type %s", recipe.Encode(m.Value))
			}
			if _, ok := n.Get("items"); m.Value == "array" && !ok {
				t.Fatal("array without items")
			}
		case "properties":
			for _, p := range m.Value.(recipe.Object) {
				if !strictKey.MatchString(p.Key) {
					t.Fatalf("name %q", p.Key)
				}
				strict(t, p.Value)
			}
		case "items":
			strict(t, m.Value)
		case "enum":
			for _, e := range m.Value.(recipe.Array) {
				if s, ok := e.(string); !ok || s == "" {
					t.Fatalf("enum %s", recipe.Encode(m.Value))
				}
			}
		case "required":
			if len(m.Value.(recipe.Array)) == 0 {
				t.Fatal("required is empty")
			}
		case "format":
			if s := m.Value; s != "date" && s != "date-time" && s != "uri" && s != "email" {
				t.Fatalf("format %v", s)
			}
		case "additionalProperties", "title", "description", "default", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "pattern":
		default:
			t.Fatalf("keyword %q", m.Key)
		}
	}
}
