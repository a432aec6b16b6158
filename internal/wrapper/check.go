package wrapper

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"github.com/hyperbolic-gateway/hb-rest/internal/schema"
	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// A checker collects what is wrong with one part of a document.
type checker struct {
	report recipe.Report
	input  *schema.Schema // nil when it has problems: placeholders are not looked up then
}

func (c *checker) problem(field, code, hint, format string, args ...any) {
	add(&c.report.Problems, recipe.Problem{Field: field, Code: code, Message: fmt.Sprintf(format, args...), Hint: hint})
}

func (c *checker) warn(field, code, hint, format string, args ...any) {
	add(&c.report.Warnings, recipe.Problem{Field: field, Code: code, Message: fmt.Sprintf(format, args...), Hint: hint})
}

// add appends p unless the list is full or says the same of the same field.
func add(list *[]recipe.Problem, p recipe.Problem) {
	if len(*list) >= recipe.MaxProblems {
		return
	}
	for _, old := range *list {
		if old.Field == p.Field && old.Code == p.Code && (old.Message == p.Message || p.Code == "DUPLICATE") {
			return
		}
	}
	*list = append(*list, p)
}

// text reads a string; ok is false when it is none. The hint shows its shape.
func (c *checker) text(v recipe.Value, field, hint string) (s string, ok bool) {
	s, ok = v.(string)
	if !ok {
		c.problem(field, "TYPE", hint, "expected string, got %s", typeOf(v))
	}
	return s, ok
}

// object reads an object. The hint shows its shape.
func (c *checker) object(v recipe.Value, field, hint string) (recipe.Object, bool) {
	o, ok := v.(recipe.Object)
	if !ok {
		c.problem(field, "TYPE", hint, "expected object, got %s", typeOf(v))
	}
	return o, ok
}

// A place is where a placeholder stands, which decides what it may hold.
type place int

const (
	inPath       place = iota // one segment of the URL's path
	inQueryWhole              // the whole value of a query parameter
	inQueryText               // inside the value of a query parameter
	inHeader                  // whole or inside
	inBodyWhole               // a whole string of the body: keeps its JSON type
	inBodyText                // inside a string of the body
)

// placeName completes "cannot stand in".
var placeName = map[place]string{
	inPath: "the URL's path", inQueryText: "the middle of a query value", inHeader: "a header", inBodyText: "the middle of a text",
}

// template compiles a template and checks its placeholders against the schema.
func (c *checker) template(s, field string, where func(Template) place) (Template, bool) {
	t, err := parseTemplate(s)
	if err != nil {
		c.problem(field, "PLACEHOLDER_SYNTAX", "write {{name}} with the name of an argument", "%s", err)
		return t, false
	}
	at := where(t)
	c.placeholders(t, field, at)
	c.foreignPlaceholder(t, field, at)
	return t, true
}

func (c *checker) placeholders(t Template, field string, where place) {
	for _, p := range t.parts {
		if p.name == "" {
			continue
		}
		if p.raw && where != inPath {
			c.problem(field, "RAW_OUTSIDE_URL", fmt.Sprintf("write {{%s}}", cut(p.name, 40)), "the modifier raw works only in the path of the URL")
		}
		// Looking for near names is not free, so a full report ends it.
		if c.input != nil && len(c.report.Problems) < recipe.MaxProblems {
			c.placeholder(p, field, where)
		}
	}
}

func (c *checker) placeholder(p part, field string, where place) {
	shown := cut(p.name, 60)
	prop, ok := c.input.Property(p.name)
	if !ok {
		hint := "declare it in inputSchema.properties"
		if near := schema.Near(p.name, names(c.input)); near != "" {
			hint = fmt.Sprintf("did you mean {{%s}}?", near)
		}
		c.problem(field, "PLACEHOLDER_UNKNOWN", hint, "{{%s}} is not a property of the input schema", shown)
		return
	}
	compound := len(prop.Types) > 0 && (prop.Types[0] == "object" || prop.Types[0] == "array")
	if where == inQueryWhole {
		items := prop.ItemTypes
		switch {
		case compound && prop.Types[0] == "object":
			c.problem(field, "QUERY_STYLE", memberHint,
				"{{%s}} is an object, and the query has no form for one", shown)
		case compound && len(items) > 0 && (items[0] == "object" || items[0] == "array"):
			c.problem(field, "QUERY_STYLE", "take an array of strings or numbers",
				"{{%s}} is an array of %ss, and the query has no form for one", shown, items[0])
		}
		return
	}
	if compound && where != inBodyWhole {
		hint := "use a string, number or boolean argument"
		if where == inBodyText {
			hint = fmt.Sprintf("make the whole string %q, which keeps the JSON type", "{{"+shown+"}}")
		}
		c.problem(field, "TYPE", hint, "{{%s}} is an %s and cannot stand in %s", shown, prop.Types[0], placeName[where])
		return
	}
	if where == inPath && !prop.Required && !prop.HasDefault {
		c.warn(field, "REQUIRED", fmt.Sprintf("add %q to inputSchema.required, or give it a default", shown),
			"{{%s}} is optional, but the URL cannot be built without it", shown)
	}
}

func names(s *schema.Schema) []string {
	var out []string
	for _, p := range s.Properties() {
		out = append(out, p.Name)
	}
	return out
}

// typeOf names the JSON type of a value.
func typeOf(v recipe.Value) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case json.Number:
		return "number"
	case string:
		return "string"
	case recipe.Array:
		return "array"
	}
	return "object"
}

// oneLine makes a name that may hold anything fit for a message or a field.
func oneLine(s string) string {
	if len(s) <= 80 && visible(s) { // nearly always
		return s
	}
	return cut(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, s), 80)
}

// at appends a key that may hold anything to a dotted place.
func at(field, key string) string { return recipe.FieldPath(field, oneLine(key)) }
