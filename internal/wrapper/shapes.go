package wrapper

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/hyperbolic-gateway/hb-rest/internal/schema"
	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// This file knows how other tools write what a wrapper says, and answers with
// the wrapper's own way. It never changes what is accepted.

// elsewhere are the names that other formats have for the keys of a request.
var elsewhere = map[string]string{
	"params": "query", "parameters": "query", "queryparams": "query", "querystring": "query", "qs": "query", "search": "query",
	"data": "body", "json": "body", "payload": "body", "form": "body", "formdata": "body", "formbody": "body", "requestbody": "body",
	"endpoint": "url", "uri": "url", "path": "url", "href": "url", "baseurl": "url",
	"timeout": "timeoutMs", "timeoutseconds": "timeoutMs",
	"authorization": "auth", "authentication": "auth", "credential": "auth", "credentials": "auth", "secret": "auth", "token": "auth", "apikey": "auth",
	"verb": "method", "type": "method",
	"contenttype": "bodyType", "bodyformat": "bodyType", "bodymode": "bodyType", "encoding": "bodyType",
	"arrayformat": "formArrays", "arrays": "formArrays",
	"ratelimit": "rate", "throttle": "rate", "maxconcurrency": "concurrency", "parallel": "concurrency",
	"idempotency": "idempotencyKey", "idempotent": "idempotencyKey", "idempotencyheader": "idempotencyKey",
}

// outside are the names that other formats have for the top-level fields.
var outside = map[string]string{
	"input": "inputSchema", "parameters": "inputSchema", "args": "inputSchema", "arguments": "inputSchema", "schema": "inputSchema", "inputs": "inputSchema",
	"recipe": "response", "output": "response", "result": "response", "http": "request", "title": "name", "summary": "description",
}

var joiners = strings.NewReplacer("_", "", "-", "", " ", "")

// plainName is a key without what people vary.
func plainName(key string) string {
	return joiners.Replace(strings.ToLower(key))
}

// keyHint says what to write instead of a key of request that is unknown.
func keyHint(key string) string {
	if want, ok := elsewhere[plainName(key)]; ok {
		if want == "body" && strings.HasPrefix(plainName(key), "form") {
			return `write "body", and "bodyType": "form"`
		}
		return fmt.Sprintf("write %q", want)
	}
	if near := schema.Near(key, requestKeys); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return "the keys are " + strings.Join(requestKeys, ", ")
}

// fieldHint says what to write instead of a top-level field that is unknown.
func fieldHint(key string) string {
	for _, k := range requestKeys {
		if key == k {
			return "write it inside request"
		}
	}
	if want, ok := outside[plainName(key)]; ok {
		return fmt.Sprintf("write %q", want)
	}
	if near := schema.Near(key, topKeys); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return "the fields are " + strings.Join(topKeys, ", ")
}

const urlShape = `write one text such as "https://api.example.com/items/{{id}}"`

// queryHint shows a query of another shape as the object it should be. Only
// placeholders are shown: a value may be a credential.
func queryHint(v recipe.Value) string {
	const generic = `write an object such as {"q": "{{q}}"}`
	out := recipe.Object{}
	take := func(name string, value recipe.Value) {
		text, _ := value.(string)
		if t, err := parseTemplate(text); err != nil || t.literal() {
			text = "…"
		} else if _, whole := t.whole(); !whole {
			text = "…"
		}
		out = append(out, recipe.Member{Key: cut(oneLine(name), 40), Value: text})
	}
	switch v := v.(type) {
	case string:
		for _, piece := range splitPairs(strings.TrimPrefix(v, "?")) {
			name, value, _ := strings.Cut(piece, "=")
			take(name, value)
		}
	case recipe.Array:
		for _, e := range v {
			o, ok := e.(recipe.Object)
			if !ok {
				return generic
			}
			name, value := "", recipe.Value(nil)
			for _, m := range o {
				switch m.Key {
				case "name", "key":
					name, _ = m.Value.(string)
				case "value":
					value = m.Value
				}
			}
			take(name, value)
		}
	}
	const most = 4
	if len(out) == 0 || len(out) > most {
		return generic
	}
	for _, m := range out {
		if m.Key == "" || strings.ContainsAny(m.Key, "{}") {
			return generic
		}
	}
	return "write an object: " + shownObject(out)
}

// shownObject is an object as people write it.
func shownObject(o recipe.Object) string {
	var parts []string
	for _, m := range o {
		parts = append(parts, string(recipe.Encode(m.Key))+": "+string(recipe.Encode(m.Value)))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// formText is what a form looks like in a text.
var formText = regexp.MustCompile(`^[A-Za-z0-9_.\[\]-]+=[^&\s]*(&[A-Za-z0-9_.\[\]-]+=[^&\s]*)*$`)

// bodyShape warns of a body that is a text and was most likely meant to be what
// the text holds.
func (p *requestParser) bodyShape(v recipe.Value, field string) {
	s, ok := v.(string)
	if !ok {
		return
	}
	filled := strings.Contains(s, "{{")
	s = strings.TrimSpace(s)
	holds := func(open, end string) bool {
		return strings.HasPrefix(s, open) && strings.HasSuffix(s, end) && !strings.HasPrefix(s, "{{")
	}
	kind := ""
	switch {
	case holds("{", "}"):
		kind = "object"
	case holds("[", "]"):
		kind = "array"
	}
	hint := map[string]string{
		"object": `write the object without the quotes around it, such as {"q": "{{q}}"}`,
		"array":  "write the array without the quotes around it",
	}[kind]
	switch {
	case p.bodyType == BodyJSON && kind != "":
		p.warn(field, "BODY_TYPE", hint, "the body is a text that holds an %s, and is sent as a text", kind)
	case p.bodyType == BodyJSON && formText.MatchString(s):
		p.warn(field, "BODY_TYPE", `write an object such as {"q": "{{q}}"}, and "bodyType": "form" if the API takes a form`, "the body looks like a form, and is sent as a JSON text")
	case p.bodyType == BodyText && filled && kind != "":
		p.warn(field, "BODY_TYPE", hint+", and take bodyType out", "arguments go into a text as they are, so a quotation mark in one breaks the JSON around it")
	case p.bodyType == BodyText && filled && formText.MatchString(s):
		p.warn(field, "BODY_TYPE", `write an object such as {"q": "{{q}}"} with "bodyType": "form"`, "arguments go into a text as they are, so an & in one breaks the form around it")
	}
}

// foreign finds the placeholder of another tool, {id}, ${id} or <id>, of an
// argument, wherever it stands; whole also finds :id and $id that are the whole
// text.
var (
	foreign      = regexp.MustCompile(`\$?\{([^{}]+)\}|<([^<>]+)>`)
	foreignWhole = regexp.MustCompile(`^[:$]([A-Za-z_][A-Za-z0-9_]*)$`)
	colonStep    = regexp.MustCompile(`(?:^|/):([A-Za-z_][A-Za-z0-9_]*)(?:$|/)`)
	braceStart   = regexp.MustCompile(`^(?:\{([A-Za-z_][A-Za-z0-9_.-]*)\}|<([A-Za-z_][A-Za-z0-9_.-]*)>)`)
)

// foreignPlaceholder warns of an argument that is written another tool's way,
// and so would be sent as it stands. It says so only of names that are
// arguments: other braces are text.
func (c *checker) foreignPlaceholder(t Template, field string, where place) {
	if c.input == nil {
		return
	}
	for _, p := range t.parts {
		var found []string // what is written, its name in turn
		switch {
		case p.text == "":
			continue
		case where == inPath:
			for rest := p.text; ; {
				m := colonStep.FindStringSubmatchIndex(rest)
				if m == nil {
					break
				}
				name := rest[m[2]:m[3]]
				found, rest = append(found, ":"+name, name), rest[m[3]:]
			}
		default:
			for _, m := range foreign.FindAllStringSubmatch(p.text, -1) {
				found = append(found, m[0], strings.TrimSpace(m[1]+m[2]))
			}
			if m := foreignWhole.FindStringSubmatch(p.text); m != nil && len(t.parts) == 1 {
				found = append(found, p.text, m[1])
			}
		}
		for i := 0; i < len(found); i += 2 {
			if _, ok := c.input.Property(found[i+1]); ok {
				c.warn(field, "PLACEHOLDER_SYNTAX", fmt.Sprintf("write {{%s}} for the argument", cut(found[i+1], 60)), "%s is sent as it stands", cut(oneLine(found[i]), 60))
			}
		}
	}
}

// inPlace is the hint for a character that begins another tool's placeholder in
// the URL; "" when it does not.
func inPlace(rest string) string {
	if m := braceStart.FindStringSubmatch(rest); m != nil {
		return fmt.Sprintf("write {{%s}} for an argument", cut(m[1]+m[2], 60))
	}
	return ""
}
