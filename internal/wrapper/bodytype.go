package wrapper

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

var bodyTypes = []string{BodyJSON, BodyForm, BodyText}

// The values of request.formArrays.
const (
	arraysRepeat   = "repeat"   // tag=a&tag=b
	arraysBrackets = "brackets" // tag[]=a&tag[]=b
)

// bodyKind reads bodyType and formArrays, without complaints: they decide how
// the body is read, wherever they stand.
func (p *requestParser) bodyKind(obj recipe.Object) {
	p.bodyType = BodyJSON
	if v, ok := obj.Get("bodyType"); ok && v != nil {
		p.bodyType, _ = v.(string)
		if !slices.Contains(bodyTypes, p.bodyType) {
			p.bodyType = ""
		}
	}
	v, _ := obj.Get("formArrays")
	p.brackets = v == arraysBrackets
}

func (p *requestParser) bodyTypeKey(v recipe.Value, field string) {
	code := "ENUM"
	if s, _ := v.(string); plainName(s) == "multipart" || plainName(s) == "multipart/formdata" {
		code = "NOT_SUPPORTED"
	}
	if s := p.oneOf(v, field, code, bodyTypes, bodyTypeHint); s != "" && s != BodyJSON {
		p.out["bodyType"] = s
	}
}

// bodyTypeHint knows the names that other formats have.
func bodyTypeHint(s string) string {
	switch plainName(s) {
	case "urlencoded", "formurlencoded", "xwwwformurlencoded", "application/xwwwformurlencoded":
		return `write "form"`
	case "application/json":
		return `write "json"`
	case "xml", "raw", "plain", "string", "csv", "text/plain", "text/xml", "application/xml", "graphql":
		return `write "text", and its Content-Type in headers`
	case "multipart", "multipart/formdata", "formdata", "file", "binary":
		return "files and parts cannot be sent; use one of " + strings.Join(bodyTypes, ", ")
	}
	return ""
}

func (p *requestParser) formArraysKey(v recipe.Value, field string) {
	s := p.oneOf(v, field, "ENUM", []string{arraysRepeat, arraysBrackets}, func(string) string { return "" })
	if p.bodyType == BodyJSON || p.bodyType == BodyText {
		p.problem(field, "BODY_TYPE", `add "bodyType": "form", or take it out`, "a body of type %s has no such arrays", p.bodyType)
	}
	if s != "" {
		p.out["formArrays"] = s
	}
}

// bodyAs refuses a body that cannot be sent as its type.
func (p *requestParser) bodyAs(v recipe.Value, field string) {
	switch p.bodyType {
	case BodyText:
		if s, ok := v.(string); !ok {
			p.problem(field, "BODY_TYPE", "write one text in quotes, or take bodyType out to send JSON", "a body of type text is one text, and this is %s", article(typeOf(v)))
		} else {
			p.oneText(s, field)
		}
	case BodyForm:
		switch v := v.(type) {
		case recipe.Object:
			p.formNames(v, field, 0)
		case string:
			p.wholeForm(v, field)
		default:
			p.problem(field, "BODY_TYPE", formShape, "a form is an object, and this is %s", article(typeOf(v)))
		}
	}
}

// oneText refuses a text that is one argument of a type that is no text: as
// JSON it would be sent with its type.
func (p *requestParser) oneText(s, field string) {
	t, err := parseTemplate(s)
	name, whole := t.whole()
	if err != nil || !whole || p.input == nil {
		return
	}
	if prop, ok := p.input.Property(name); ok && len(prop.Types) > 0 && (prop.Types[0] == "object" || prop.Types[0] == "array") {
		p.problem(field, "TYPE", "take bodyType out to send it as JSON, or use a string argument", "{{%s}} is %s and cannot be a text", cut(name, 60), article(prop.Types[0]))
	}
}

const formShape = `write an object such as {"name": "{{name}}"}`

// wholeForm reads a form that is one argument.
func (p *requestParser) wholeForm(s, field string) {
	t, err := parseTemplate(s)
	if err != nil {
		return // said elsewhere
	}
	name, whole := t.whole()
	if !whole {
		p.problem(field, "BODY_TYPE", formShape+`; "bodyType": "text" sends a text as it is`, "a form is an object, and this is a text")
		return
	}
	if p.input == nil {
		return
	}
	if prop, ok := p.input.Property(name); ok && len(prop.Types) > 0 && prop.Types[0] != "object" {
		p.problem(field, "BODY_TYPE", formShape, "a form is an object, and {{%s}} is %s", cut(name, 60), article(prop.Types[0]))
	}
}

// formNames refuses names that would be read as other places of the form.
func (p *requestParser) formNames(v recipe.Value, field string, depth int) {
	switch v := v.(type) {
	case recipe.Array:
		for i, e := range v {
			p.formNames(e, fmt.Sprintf("%s[%d]", field, i), depth)
		}
	case recipe.Object:
		for _, m := range v {
			here := at(field, m.Key)
			if what := misnamed(m.Key, depth); what != "" {
				p.problem(here, "PATTERN", "nest objects instead of writing brackets", "a member of a form %s", what)
			}
			p.formNames(m.Value, here, depth+1)
		}
	}
}

// bodyMeaning warns of a literal Content-Type that says the body is something
// else than it is, and of a type for a body that is not there.
func (p *requestParser) bodyMeaning() {
	r := &p.w.Request
	if _, written := p.out["body"]; !written {
		if p.bodyType == BodyForm || p.bodyType == BodyText {
			p.warn(requestField+".bodyType", "BODY_TYPE", "write a body, or take bodyType out", "there is no body")
		}
		return
	}
	if r.Body == nil {
		return
	}
	for _, h := range r.Headers {
		t := h.Values[0]
		if !strings.EqualFold(h.Name, "Content-Type") || !t.literal() {
			continue
		}
		said := strings.ToLower(t.source)
		here := at(requestField+".headers", h.Name)
		switch {
		case r.Body.Type == BodyJSON && strings.Contains(said, "form-urlencoded"):
			p.warn(here, "BODY_TYPE", `write "bodyType": "form", and take the header out`, "the body is sent as JSON, but the header says %s", oneLine(t.source))
		case r.Body.Type == BodyJSON && !strings.Contains(said, "json"):
			p.warn(here, "BODY_TYPE", `take the header out, or write the body as one text with "bodyType": "text"`, "the body is sent as JSON, but the header says %s", oneLine(t.source))
		case r.Body.Type == BodyForm && !strings.Contains(said, "form-urlencoded"):
			p.warn(here, "BODY_TYPE", "take the header out", "the body is sent as a form, but the header says %s", oneLine(t.source))
		}
	}
}
