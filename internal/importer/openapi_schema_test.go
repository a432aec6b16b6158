package importer_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/importer"
	"github.com/hyperbolic-gateway/hb-rest/internal/wrapper"
	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// TestSchemas shows how a member of a body is described. A body with other
// members beside v keeps it whole, so v is what the document says.
func TestSchemas(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, schema, want, notes string }{
		{"any", `{}`, `{}`, ""},
		{"true", `true`, `{}`, ""},
		{"text", `{"type": "string", "minLength": 1, "maxLength": 5, "pattern": "^a", "format": "email", "title": "T"}`, `{"type":"string","minLength":1,"maxLength":5,"pattern":"^a","format":"email"}`, ""},
		{"look-ahead", `{"type": "string", "pattern": "^(?=a)b"}`, `{"type":"string","description":"Pattern: ^(?=a)b."}`, "left to the API to check: pattern"},
		{"digits", `{"type": "integer", "minimum": 9007199254740993, "maximum": 1.0e17}`, `{"type":"integer","minimum":9007199254740993,"maximum":100000000000000000}`, ""},
		{"nullable 3.0", `{"type": "string", "nullable": true}`, `{"type":["string","null"]}`, ""},
		{"nullable 2.0", `{"type": "string", "x-nullable": true}`, `{"type":["string","null"]}`, ""},
		{"nullable 3.1", `{"type": ["null", "integer"]}`, `{"type":["integer","null"]}`, ""},
		{"nullable by oneOf", `{"oneOf": [{"type": "string"}, {"type": "null"}]}`, `{"type":["string","null"]}`, ""},
		{"nullable by enum", `{"enum": ["a", null]}`, `{"type":["string","null"],"enum":["a",null]}`, ""},
		{"null", `{"type": "null"}`, `{"type":"null"}`, ""},
		{"two types", `{"type": ["string", "integer"]}`, `{"description":"Accepts string or integer."}`, ""},
		{"const", `{"const": 5}`, `{"type":"integer","enum":[5]}`, ""},
		{"enum of another type", `{"type": "string", "enum": [1.0, true, "a"]}`, `{"type":"string","enum":["1.0","true","a"]}`, "left to the API to check: enum"},
		{"default and example", `{"type": "integer", "default": 30, "example": 5}`, `{"type":"integer","examples":[5],"description":"Default: 30."}`, ""},
		{"example out of format", `{"type": "string", "format": "date", "example": "2026-01-02T00:00:00Z"}`, `{"type":"string","format":"date"}`, ""},
		{"exclusive flag", `{"type": "integer", "minimum": 0, "exclusiveMinimum": true}`, `{"type":"integer","minimum":1}`, ""},
		{"exclusive bound", `{"type": "integer", "exclusiveMaximum": 10}`, `{"type":"integer","maximum":9}`, ""},
		{"exclusive of a fraction", `{"type": "number", "exclusiveMinimum": 0}`, `{"type":"number"}`, "left to the API to check: exclusiveMinimum"},
		{"list", `{"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 3, "uniqueItems": true}`, `{"type":"array","items":{"type":"string"},"minItems":1,"maxItems":3}`, "left to the API to check: uniqueItems"},
		{"read only", `{"type": "object", "required": ["a", "b"], "properties": {"a": {"readOnly": true}, "b": {"type": "boolean"}}}`, `{"type":"object","properties":{"b":{"type":"boolean"}},"required":["b"]}`, ""},
		{"closed", `{"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": false}`, `{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`, ""},
		{"required and undeclared", `{"type": "object", "required": ["z"], "properties": {"a": {"type": "string"}}}`, `{"type":"object","properties":{"a":{"type":"string"},"z":{}},"required":["z"]}`, ""},
		{"allOf", `{"allOf": [{"type": "object", "required": ["a"], "properties": {"a": {"type": "integer", "minimum": 1}}}, {"properties": {"a": {"minimum": 3}, "b": {"type": "string"}}, "required": ["b"]}]}`, `{"type":"object","properties":{"a":{"type":"integer","minimum":3},"b":{"type":"string"}},"required":["a","b"]}`, ""},
		{"allOf that contradicts itself", `{"allOf": [{"type": "string"}, {"type": "integer"}]}`, `{}`, "left to the API to check: type"},
		{
			"oneOf objects", `{"oneOf": [{"type": "object", "required": ["k", "a"], "properties": {"k": {"enum": ["x"]}, "a": {"type": "string"}}}, {"type": "object", "required": ["k"], "properties": {"k": {"enum": ["y"]}, "b": {"type": "string"}}}]}`,
			`{"type":"object","properties":{"k":{"type":"string","enum":["x","y"]},"a":{"type":"string"},"b":{"type":"string"}},"required":["k"]}`,
			"the alternatives of v (oneOf, anyOf) are described as one: the API checks which belong together",
		},
		{"anyOf of scalars", `{"anyOf": [{"type": "integer"}, {"type": "number"}]}`, `{"type":"number"}`, "the alternatives of v (oneOf, anyOf) are described as one: the API checks which belong together"},
		{"reference", `{"$ref": "#/components/schemas/Node"}`, `{"type":"object","properties":{"id":{"type":"integer"},"up":{"type":"object"}},"required":["id"]}`, "Node contains itself and is described one level deep"},
		{"words beside a reference", `{"allOf": [{"$ref": "#/components/schemas/Name"}], "nullable": true, "description": "Mine."}`, `{"type":["string","null"],"description":"Mine."}`, ""},
		{"HTML", `{"type": "string", "description": "<p>The <b>name</b> of a [pet](https://example.com).</p>\n\n# More\ntext"}`, `{"type":"string","description":"The name of a pet. text"}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			schema := `{"type": "object", "additionalProperties": true, "properties": {"v": ` + c.schema + `}}`
			data := doc30(post(`{"required": true, "content": {"application/json": {"schema": `+schema+`}}}`),
				`"components": {"schemas": {"Name": {"type": "string"}, "Node": {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}, "up": {"$ref": "#/components/schemas/Node"}}}}}`)
			d, w := one(t, []byte(strings.Replace(string(data), "3.0.3", "3.1.0", 1)))
			props := recipe.Value(w.Input.Document())
			for _, key := range []string{"properties", "body", "properties", "v"} {
				o, _ := props.(recipe.Object)
				props, _ = o.Get(key)
			}
			if diff := cmp.Diff(c.want, string(recipe.Encode(props))); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.notes, strings.Join(d.Notes, "; ")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestSchemaLimits has each limit and one over it.
func TestSchemaLimits(t *testing.T) {
	t.Parallel()
	texts := func(n int) string {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf(`"v%d"`, i))
		}
		return `{"type": "string", "enum": [` + strings.Join(list, ",") + `]}`
	}
	members := func(n int) string {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf(`"m%d": {"type": "string"}`, i))
		}
		return `{"type": "object", "properties": {` + strings.Join(list, ",") + `}}`
	}
	body := func(schema string) (importer.Draft, *wrapper.Wrapper) {
		return one(t, doc30(post(`{"required": true, "content": {"application/json": {"schema": `+schema+`}}}`)))
	}
	for _, c := range []struct {
		name, schema string
		found        string // in the document
		want         bool
	}{
		{"enum of 100", texts(100), `"v99"`, true},
		{"enum of 101", texts(101), `"v99"`, false},
		{"95 members are arguments", members(95), `"m94":"{{m94}}"`, true},
		{"96 members are a body", members(96), `"body":"{{body}}"`, true},
		{"190 members are described", members(190), `"m189"`, true},
		{"of 191 the last is not", members(191), `"m190"`, false},
		{"pattern of 512 bytes", `{"type": "string", "pattern": "` + strings.Repeat("a", 512) + `"}`, `"pattern"`, true},
		{"pattern of 513 bytes", `{"type": "string", "pattern": "` + strings.Repeat("a", 513) + `"}`, `"pattern"`, false},
		{"example of 200 bytes", `{"type": "string", "example": "` + strings.Repeat("a", 198) + `"}`, `"examples"`, true},
		{"example of 201 bytes", `{"type": "string", "example": "` + strings.Repeat("a", 199) + `"}`, `"examples"`, false},
		{"description of 200 characters", `{"type": "string", "description": "` + strings.Repeat("é", 200) + `"}`, strings.Repeat("é", 200), true},
		{"description of 201 characters", `{"type": "string", "description": "` + strings.Repeat("é", 201) + `"}`, strings.Repeat("é", 200), false},
	} {
		_, w := body(c.schema)
		if got := strings.Contains(string(w.Document()), c.found); got != c.want {
			t.Errorf("%s: %v, want %v: %.300s", c.name, got, c.want, w.Document())
		}
	}
	// Schemas that would be a tree without end.
	var bomb strings.Builder
	for i := range 40 {
		fmt.Fprintf(&bomb, `"A%d": {"allOf": [{"$ref": "#/components/schemas/A%d"}, {"$ref": "#/components/schemas/A%d"}]}, `, i, i+1, i+1)
	}
	r := parse(t, doc30(post(`{"required": true, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/A0"}}}}`),
		`"components": {"schemas": {`+bomb.String()+`"A40": {"type": "string"}}}`), importer.Options{})
	if len(r.Drafts)+len(r.Refused) != 1 {
		t.Errorf("got %+v", r)
	}
}

func TestYAML(t *testing.T) {
	t.Parallel()
	r := parse(t, []byte(`# a comment
openapi: 3.0
info: &info {title: "Digits: kept", version: 1.0}
servers:
- url: https://api.example.com
paths:
  /x/{id}:
    get:
      <<: &common
        tags: [a]
      parameters:
      - {name: id, in: path, required: true, schema: {type: integer, example: 9007199254740993}}
      - {name: v, in: query, schema: {type: string, enum: [1.10, yes, 'no', 0x10]}}
      responses:
        200:
          description: |
            Several
            lines
`), importer.Options{})
	if r.Title != "Digits: kept" || len(r.Drafts) != 1 {
		t.Fatalf("got %+v", r)
	}
	if diff := cmp.Diff([]string{"a"}, r.Drafts[0].Tags); diff != "" {
		t.Error(diff)
	}
	for _, want := range []string{`"examples":[9007199254740993]`, `"enum":["1.10","yes","no","16"]`} {
		if !strings.Contains(string(r.Drafts[0].Document), want) {
			t.Errorf("no %s in %s", want, r.Drafts[0].Document)
		}
	}
	// Nine levels of nine aliases are 387 420 489 values, and a few lines.
	bomb := "openapi: 3.0.0\nservers: [{url: https://a.example.com}]\na0: &a0 [x,x,x,x,x,x,x,x,x]\n"
	for i := range 8 {
		ref := fmt.Sprintf("*a%d", i)
		bomb += fmt.Sprintf("a%d: &a%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(ref+",", 9), ","))
	}
	bomb += "paths: {/x: {post: {requestBody: {content: {application/json: {schema: {type: object, example: *a8, properties: {v: {default: *a8, enum: *a8}}}}}}, responses: {200: {description: '', content: {application/json: {example: *a8}}}}}}}\n"
	if r := parse(t, []byte(bomb), importer.Options{}); len(r.Drafts) != 1 || len(r.Drafts[0].Document) > 2000 {
		t.Errorf("got %+v", r.Refused)
	}
}
