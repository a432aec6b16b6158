// Package schema holds the JSON Schema (draft 2020-12) of the recipe document,
// for editors and for programs that write recipes. It is a file and its test:
// recipe.Parse decides, and also finds what a schema cannot say, such as a
// template that names a field that is not there.
package schema

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"golang.org/x/tools/txtar"

	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

func text(t testing.TB) []byte {
	t.Helper()
	data, err := os.ReadFile("recipe.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func resolved(t testing.TB) *jsonschema.Resolved {
	t.Helper()
	var s jsonschema.Schema
	if err := json.Unmarshal(text(t), &s); err != nil {
		t.Fatal(err)
	}
	r, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// cannotSay are the problems that are out of a schema's reach. Everything else
// that Parse refuses, the schema must refuse too.
var cannotSay = []struct {
	code, message string // message is a regular expression; "" is any
	why           string
}{
	{"PATH_SYNTAX", "", "the pattern of a path leaves out escapes, filters, leading zeros, and the places where #key is only wrong by the shape"},
	{"PATH_TOO_LONG", "segments", "a pattern cannot count the segments of a path"},
	{"TEMPLATE_SYNTAX", "", "templates have paths, formats and labels inside"},
	{"DUPLICATE", "", "a key that appears twice is one key to a schema"},
	{"PAGING_KEY", "must differ from", "two values cannot be compared"},
	{"PAGING_KEY", "belongs to the connection", "the names of headers have no case"},
	{"PAGING_KEY", "white space", "a pattern knows the white space of ASCII only"},
	{"OPTION_VALUE", "must be a number from 1e-20", "the length of a number is not its value"},
	{"CREDENTIAL_QUERY", "", "what looks like a credential is the caller's knowledge"},
	{"CREDENTIAL_HEADER", "", "what looks like a credential is the caller's knowledge"},
}

func sayable(p recipe.Problem) bool {
	for _, c := range cannotSay {
		if p.Code == c.code && regexp.MustCompile(c.message).MatchString(p.Message) {
			return false
		}
	}
	return true
}

// compare holds the schema and Parse to one verdict on a document.
func compare(t *testing.T, s *jsonschema.Resolved, doc []byte) {
	t.Helper()
	v, err := recipe.Decode(doc, recipe.DecodeLimits{})
	if err != nil {
		t.Fatal(err)
	}
	var instance any
	if err := json.Unmarshal(doc, &instance); err != nil {
		t.Fatal(err)
	}
	_, report := recipe.Parse(v)
	refused := s.Validate(instance)
	if report.OK() {
		if refused != nil {
			t.Errorf("Parse accepts what the schema refuses: %s\n%v", doc, refused)
		}
		return
	}
	if refused != nil {
		return
	}
	for _, p := range report.Problems {
		if sayable(p) {
			t.Errorf("the schema accepts what Parse refuses: %s\n%s %s: %s", doc, p.Field, p.Code, p.Message)
		}
	}
}

// Every recipe in the golden files of the recipe package.
func TestGoldenCases(t *testing.T) {
	s := resolved(t)
	seen := 0
	for _, pattern := range []string{"../testdata/golden-parse/*.txtar", "../testdata/golden/*.txtar"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("no files match %s (%v)", pattern, err)
		}
		for _, f := range files {
			data, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			for _, section := range txtar.Parse(data).Files {
				if section.Name != "recipe.json" && section.Name != "document.json" {
					continue
				}
				seen++
				t.Run(filepath.Base(f)+"/"+section.Name, func(t *testing.T) { compare(t, s, section.Data) })
			}
		}
	}
	if seen < 40 {
		t.Errorf("only %d recipes", seen)
	}
}

// The recipes that Derive makes of the samples.
func TestDerivedRecipes(t *testing.T) {
	s := resolved(t)
	files, err := filepath.Glob("../testdata/derive/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no samples", err)
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, section := range txtar.Parse(data).Files {
			if section.Name != "input.json" {
				continue
			}
			v, err := recipe.Decode(section.Data, recipe.DecodeLimits{})
			if err != nil {
				t.Fatal(err)
			}
			if r, _ := recipe.Derive(v, recipe.DeriveOptions{Name: "Sample"}); r != nil {
				compare(t, s, recipe.Encode(r.Document()))
			}
		}
	}
}

// One fault at a time, and random documents put together of good and bad
// parts.
func TestFaults(t *testing.T) {
	s := resolved(t)
	long := func(n int) string { return `"` + strings.Repeat("ä", n) + `"` }
	strange := []string{
		`null`, `true`, `0`, `1`, `-1`, `1.0`, `1.5`, `1e3`, `20001`, `1e30`, `""`, `"x"`, `"$"`, `"$.a"`, `"@"`, `"@.a"`, `"@a"`, `"#key"`, `"#index"`, `"a b"`,
		`"a['b']"`, `"a[0:2]"`, `"a[?@.b=='c']"`, `"['x']"`, `".a"`, `"$..a"`, `"a."`, `"[0]"`, `"first"`, `"list"`, `"number"`, `"json"`, `"USD"`, `"USDX"`, `"header:Link"`, `"header:"`, `"Link"`,
		`"*"`, `"a.b"`, `"a..b"`, `"s"`, `"items"`, `"query"`, `"body"`, `"header"`, `"table"`, `"document"`, `"documents"`, `"entries"`, `"columns"`, `"matrix"`, `"none"`, `"offset"`, `"cursor"`, `"cortex"`,
		`"{{a}}"`, `"{{#key}}"`, `"{{a|number}}"`, `"a\nb"`, `"a\u0000b"`, `[]`, `{}`, `{"A":"a"}`, `{"A":{"path":"a"}}`, `{"A":{}}`, `{"A":{"path":"#key"}}`, `{"":"a"}`, long(10), long(11), long(20), long(21), long(80),
		long(81), long(200), long(201), `"` + strings.Repeat("a", 512) + `"`, `"` + strings.Repeat("a", 513) + `"`, long(10_000), long(10_001), `{"type":"none"}`, `{"type":"link","nextUrl":"next"}`,
	}
	top := []string{"schemaVersion", "select", "shape", "header", "mode", "title", "template", "fields", "record", "error", "limits", "pagination", "index", "other"}
	field := []string{"path", "format", "prefix", "suffix", "default", "maxChars", "decimals", "scale", "group", "currency", "unit", "true", "false", "text", "join", "item", "each", "maxItems", "other"}
	paging := []string{"type", "maxPages", "limitParam", "pageSize", "offsetParam", "start", "step", "total", "hasMore", "hasMoreWhen", "next", "cursorParam", "in", "nextUrl", "rel", "other"}
	object := func(members map[string]string) string {
		var b strings.Builder
		for _, keys := range [][]string{top[:13], field[:18], paging[:15], {"other", "A", "maxItems", "maxChars"}} {
			for _, k := range keys {
				if v, ok := members[k]; ok {
					fmt.Fprintf(&b, ",%q:%s", k, v)
					delete(members, k)
				}
			}
		}
		return "{" + strings.TrimPrefix(b.String(), ",") + "}"
	}
	recipeWith := func(key, v string) []byte {
		return []byte(object(map[string]string{"schemaVersion": "1", "fields": `{"A":"a"}`, key: v}))
	}
	compare(t, s, []byte(`[]`))
	compare(t, s, []byte(`{}`))
	for _, v := range strange {
		for _, k := range top {
			compare(t, s, recipeWith(k, v))
			compare(t, s, []byte(object(map[string]string{"schemaVersion": "1", "mode": `"documents"`, k: v})))
			compare(t, s, []byte(object(map[string]string{"schemaVersion": "1", "shape": `"matrix"`, "fields": `{"A":"a"}`, k: v})))
			compare(t, s, []byte(object(map[string]string{"schemaVersion": "1", "mode": `"document"`, "shape": `"entries"`, "fields": `{"A":"a"}`, k: v})))
		}
		for _, k := range []string{"maxItems", "maxChars", "other"} {
			compare(t, s, recipeWith("limits", object(map[string]string{k: v})))
		}
		compare(t, s, recipeWith("record", object(map[string]string{"A": v})))
		for _, k := range field {
			for _, format := range []string{"", "number", "currency", "boolean", "date", "link", "list", "json"} {
				o := map[string]string{"path": `"a"`}
				if format != "" {
					o["format"] = fmt.Sprintf("%q", format)
				}
				o[k] = v
				compare(t, s, recipeWith("fields", object(map[string]string{"A": object(o)})))
			}
		}
		for _, k := range paging {
			for _, base := range []map[string]string{
				{"type": `"none"`},
				{"type": `"offset"`, "offsetParam": `"o"`, "pageSize": "10"},
				{"type": `"offset"`, "offsetParam": `"o"`, "pageSize": "10", "in": `"header"`},
				{"type": `"cursor"`, "next": `"next"`, "cursorParam": `"c"`, "in": `"body"`},
				{"type": `"cursor"`, "next": `"next"`, "cursorParam": `"*"`},
				{"type": `"link"`, "nextUrl": `"header:Link"`},
				{},
			} {
				o := map[string]string{}
				for k, v := range base {
					o[k] = v
				}
				o[k] = v
				compare(t, s, recipeWith("pagination", object(o)))
			}
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 3_000 {
		o := map[string]string{"schemaVersion": "1"}
		for range 1 + rng.IntN(4) {
			o[top[rng.IntN(len(top))]] = strange[rng.IntN(len(strange))]
		}
		compare(t, s, []byte(object(o)))
	}
}

// The schema lists every key that the format has.
func TestDescriptions(t *testing.T) {
	var doc struct {
		Properties map[string]any
		Defs       map[string]struct{ Properties map[string]any } `json:"$defs"`
	}
	if err := json.Unmarshal(text(t), &doc); err != nil {
		t.Fatal(err)
	}
	for name, n := range map[string][2]int{
		"recipe":     {len(doc.Properties), 13},
		"field":      {len(doc.Defs["fieldObject"].Properties), 18},
		"pagination": {len(doc.Defs["pagination"].Properties), 15},
	} {
		if n[0] != n[1] {
			t.Errorf("%s: %d keys, the format has %d", name, n[0], n[1])
		}
	}
}
