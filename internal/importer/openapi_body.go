package importer

import (
	"slices"
	"strings"

	"github.com/hyperbolic-gateway/hb-rest/internal/wrapper"
	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// A media is one entry of content.
type media struct {
	name   string // as written: "application/json; charset=utf-8"
	schema bound
	entry  recipe.Object
}

// mediaKind sorts media types by what can be sent or read: json, form, text,
// any, multipart, other.
func mediaKind(name string) string {
	base, _, _ := strings.Cut(strings.ToLower(name), ";")
	base = strings.TrimSpace(base)
	switch {
	case base == "*/*" || base == "application/*":
		return "any"
	case base == "application/json" || base == "text/json" || strings.HasSuffix(base, "+json") && !strings.HasSuffix(base, "json-seq"):
		return "json"
	case base == "application/x-www-form-urlencoded":
		return "form"
	case strings.HasPrefix(base, "multipart/"):
		return "multipart"
	case strings.HasPrefix(base, "text/") && base != "text/event-stream" || base == "application/xml" || strings.HasSuffix(base, "+xml") ||
		base == "application/yaml" || base == "application/x-yaml" || base == "application/sql" || base == "application/graphql":
		return "text"
	}
	return "other"
}

// requestBody drafts the body, from the kinds that can be sent in the order
// JSON, form, text.
func (op *operation) requestBody(params []*param) error {
	list, required, about, err := op.bodies(params)
	if err == nil && required && len(list) == 0 {
		err = refuse("BODY_TYPE", "it needs a body, and the document does not say which")
	}
	if err != nil || len(list) == 0 {
		return err
	}
	if op.method == "GET" || op.method == "HEAD" {
		if required {
			return refuse("BODY_NOT_ALLOWED", "a body cannot be sent with %s", op.method)
		}
		op.notes.add("the optional body is left out: a body cannot be sent with %s", op.method)
		return nil
	}
	var last error
	for _, kind := range []string{"json", "any", "form", "text"} {
		for _, m := range list {
			if mediaKind(m.name) != kind {
				continue
			}
			before := *op
			before.args = op.args.clone()
			before.notes = op.notes.clone()
			switch kind {
			case "json", "any":
				err = op.jsonBody(m, required, about)
			case "form":
				err = op.formBody(m, required)
			case "text":
				err = op.textBody(m, required, about)
			}
			if err == nil {
				return nil
			}
			last = err
			*op = before
		}
	}
	if last == nil {
		code, why := "BODY_TYPE", "a body of type "+cut(cleanText(list[0].name), 60)+" cannot be sent"
		if mediaKind(list[0].name) == "multipart" {
			code, why = "MULTIPART", "a body of several parts (multipart) cannot be sent"
		}
		last = refuse(code, "%s", why)
	}
	if op.method != "DELETE" || required {
		return last // even when it is optional: an upload without its file is no use
	}
	op.notes.add("the optional body is left out: %s", last.Error())
	return nil
}

// bodies are the bodies that the document allows.
func (op *operation) bodies(params []*param) (list []media, required bool, about string, err error) {
	if op.version == v2 {
		return op.bodies2(params)
	}
	v, ref, err := op.deref(get(op.op, "requestBody"))
	if err != nil || v == nil {
		return nil, false, "", err
	}
	var at *chain
	if ref != "" {
		at = &chain{ref, nil}
	}
	for _, m := range object(v, "content") {
		entry, _ := m.Value.(recipe.Object)
		list = append(list, media{name: m.Key, entry: entry, schema: bound{v: get(entry, "schema"), at: at}})
	}
	return list, flag(v, "required"), text(v, "description"), nil
}

func (op *operation) bodies2(params []*param) (list []media, required bool, about string, err error) {
	consumes := op.strings2("consumes")
	var props recipe.Object
	var names recipe.Array
	encoding := recipe.Object{}
	for _, p := range params {
		switch p.in {
		case "body":
			if len(consumes) == 0 {
				consumes = []string{"application/json"}
			}
			for _, c := range consumes {
				list = append(list, media{name: c, schema: p.schema})
			}
			return list, p.required, p.about, nil
		case "formData":
			s, _ := p.schema.v.(recipe.Object)
			s = slices.Clone(s)
			if p.about != "" {
				s = append(s, recipe.Member{Key: "description", Value: p.about})
			}
			if get(s, "type") == "file" {
				return []media{{name: "multipart/form-data"}}, true, "", nil
			}
			props = append(props, recipe.Member{Key: p.name, Value: s})
			if p.required {
				names = append(names, p.name)
				required = true
			}
			encoding = append(encoding, recipe.Member{Key: p.name, Value: recipe.Object{{Key: "style", Value: p.style}, {Key: "explode", Value: p.explode}}})
		}
	}
	if props == nil {
		return nil, false, "", nil
	}
	schema := recipe.Object{{Key: "type", Value: "object"}, {Key: "properties", Value: props}, {Key: "required", Value: names}}
	entry := recipe.Object{{Key: "encoding", Value: encoding}}
	forms := slices.DeleteFunc(slices.Clone(consumes), func(c string) bool { k := mediaKind(c); return k != "form" && k != "multipart" })
	if len(forms) == 0 {
		forms = []string{"application/x-www-form-urlencoded"}
	}
	for _, c := range forms {
		list = append(list, media{name: c, entry: entry, schema: bound{v: schema}})
	}
	return list, true, "", nil
}

// strings2 are the media types of 2.0: the operation's, else the document's.
func (op *operation) strings2(key string) []string {
	list, own := get(op.op, key).(recipe.Array)
	if !own {
		list = array(op.root, key)
	}
	var out []string
	for _, e := range list {
		if s, ok := e.(string); ok && s != "" {
			out = append(out, s)
		}
	}
	return out
}

// contentType sets the header where the one that is sent by itself is another.
func (op *operation) contentType(name, own string) {
	if strings.EqualFold(strings.TrimSpace(name), own) || strings.ContainsRune(name, '*') {
		return
	}
	op.headers = append(op.headers, recipe.Member{Key: "Content-Type", Value: strings.TrimSpace(name)})
}

func (op *operation) jsonBody(m media, required bool, about string) error {
	op.bodyAs = wrapper.BodyJSON
	op.contentType(m.name, "application/json")
	s, err := op.reader.shape(m.schema)
	if err != nil {
		return err
	}
	if binary(s) {
		return refuse("BODY_TYPE", "its body is a file")
	}
	if e := op.mediaExample(m.entry); e != nil {
		s.words = slices.DeleteFunc(slices.Clone(s.words), func(w recipe.Member) bool { return w.Key == "example" })
		s.words = append(s.words, recipe.Member{Key: "example", Value: e})
	}
	if op.flat(s) {
		return op.members(s)
	}
	if about != "" && !has(s.words, "description") {
		s.words = append(slices.Clone(s.words), recipe.Member{Key: "description", Value: about})
	}
	o, err := op.schemaFor("body", s, required)
	if err != nil {
		return err
	}
	if o == nil {
		return refuse("BODY_TYPE", "its body takes no value")
	}
	op.body = op.args.add("body", "request", o, required)
	return nil
}

func binary(s *shape) bool {
	return slices.Contains(s.types, "file") || typeWord(s) == "string" && text(s.words, "format") == "binary"
}

// flat reports whether the members of a body become arguments of their own: a
// plain object with declared members, and not more than fit.
func (op *operation) flat(s *shape) bool {
	if typeWord(s) != "object" || s.open || s.nullable || s.never || len(s.props) == 0 || op.levels == 0 {
		return false
	}
	if len(s.props)+len(op.args.list) > maxProperties/2 {
		return false
	}
	return !slices.ContainsFunc(s.props, func(p prop) bool { return !goodName(p.name) || strings.Contains(p.name, "{{") })
}

// members makes each member of the body an argument.
func (op *operation) members(s *shape) error {
	s.undeclared()
	if len(s.forms) > 1 {
		op.notes.add("the alternatives of the body (oneOf, anyOf) are described as one: the API checks which belong together")
	}
	for _, l := range s.lost {
		op.notes.lose(l)
	}
	body := recipe.Object{}
	for _, required := range []bool{true, false} { // what must be given comes first
		for _, p := range s.props {
			if slices.Contains(s.required, p.name) != required {
				continue
			}
			child, err := op.reader.shape(p.bounds...)
			if err != nil {
				return err
			}
			if flag(child.words, "readOnly") {
				continue
			}
			w := op.writer()
			o, err := op.schemaWith(w, p.name, child, required)
			if err != nil {
				return err
			}
			op.props = w.props + 1
			if o == nil {
				continue
			}
			body = append(body, recipe.Member{Key: p.name, Value: op.args.add(p.name, "body", o, required)})
		}
	}
	// Sent in the document's order.
	ordered := recipe.Object{}
	for _, p := range s.props {
		if v, ok := body.Get(p.name); ok {
			ordered = append(ordered, recipe.Member{Key: p.name, Value: v})
		}
	}
	op.body = ordered
	return nil
}

func (op *operation) formBody(m media, required bool) error {
	op.bodyAs = wrapper.BodyForm
	op.contentType(m.name, "application/x-www-form-urlencoded")
	s, err := op.reader.shape(m.schema)
	if err != nil {
		return err
	}
	if len(s.props) == 0 {
		if required {
			return refuse("FORM", "its form has no declared fields")
		}
		op.bodyAs = ""
		op.headers = slices.DeleteFunc(op.headers, func(h recipe.Member) bool { return h.Key == "Content-Type" })
		return nil
	}
	if len(s.props)+len(op.args.list) > maxProperties/2 {
		return &oversize{refusal{"SCHEMA_TOO_LARGE", "its form has too many fields for a wrapper"}}
	}
	s.undeclared()
	for _, l := range s.lost {
		op.notes.lose(l)
	}
	encoding := object(m.entry, "encoding")
	body := recipe.Object{}
	for _, p := range s.props {
		child, err := op.reader.shape(p.bounds...)
		if err != nil {
			return err
		}
		if flag(child.words, "readOnly") || child.never {
			continue
		}
		need := slices.Contains(s.required, p.name)
		if why := op.fieldForm(child, get(encoding, p.name)); why != "" {
			if err := op.omit(&param{name: p.name, in: "form", required: need}, "FORM", why); err != nil {
				return err
			}
			continue
		}
		w := op.writer()
		o, err := op.schemaWith(w, p.name, child, need)
		if err != nil {
			return err
		}
		op.props = w.props + 1
		if o != nil {
			body = append(body, recipe.Member{Key: p.name, Value: op.args.add(p.name, "body", o, need)})
		}
	}
	if s.open {
		op.notes.add("only the declared fields of the form are arguments")
	}
	op.body = body
	return nil
}

// fieldForm says why a field of a form cannot be sent, "" when it can.
func (op *operation) fieldForm(s *shape, encoding recipe.Value) string {
	if binary(s) {
		return "it is a file"
	}
	style, explode := text(encoding, "style"), true
	if style == "" {
		style = "form"
	}
	if style != "form" {
		explode = false
	}
	if e, ok := get(encoding, "explode").(bool); ok {
		explode = e
	}
	if len(s.types) > 1 {
		// Each form of it has to be sendable.
		for _, t := range s.types {
			part := *s
			part.types = []string{t}
			if why := op.fieldForm(&part, encoding); why != "" {
				s.types = slices.DeleteFunc(slices.Clone(s.types), func(x string) bool { return x == t })
			}
		}
		if len(s.types) > 1 || len(s.types) == 0 {
			scalars := slices.DeleteFunc(slices.Clone(s.types), func(t string) bool { return t == "object" || t == "array" })
			if len(scalars) == 0 {
				return "its form is not defined"
			}
			s.types, s.props, s.items, s.required = []string{"string"}, nil, nil, nil
		}
		return ""
	}
	s.nullable = false // a form has no null
	switch typeWord(s) {
	case "array":
		item, err := op.reader.shape(s.items...)
		if err != nil {
			return "its items cannot be read"
		}
		if k := typeWord(item); k == "object" || k == "array" {
			return "a list of " + k + "s in a form is not defined"
		}
		if style != "form" || !explode {
			return "a list in the style " + cut(style, 20) + " cannot be sent in a form"
		}
	case "object":
		if style != "deepObject" {
			return "an object in a form is not defined without the style deepObject"
		}
		for _, p := range s.props {
			child, err := op.reader.shape(p.bounds...)
			if err != nil || slices.Contains(child.types, "object") && len(child.props) > 0 || slices.Contains(child.types, "array") {
				return "what lies deeper than one level in the style deepObject is not defined"
			}
		}
	case "":
		s.types = []string{"string"}
	}
	return ""
}

func (op *operation) textBody(m media, required bool, about string) error {
	s, err := op.reader.shape(m.schema)
	if err != nil {
		return err
	}
	if len(s.types) == 0 && m.schema.v == nil {
		s.types = []string{"string"}
	}
	if typeWord(s) != "string" || text(s.words, "format") == "binary" {
		return refuse("BODY_TYPE", "a body of type %s cannot be made from an object", cut(cleanText(m.name), 60))
	}
	op.bodyAs = wrapper.BodyText
	op.contentType(m.name, "text/plain; charset=utf-8")
	wireText(s)
	if about != "" && !has(s.words, "description") {
		s.words = append(slices.Clone(s.words), recipe.Member{Key: "description", Value: about})
	}
	o, err := op.schemaFor("body", s, required)
	if err != nil {
		return err
	}
	op.body = op.args.add("body", "request", o, required)
	return nil
}

// mediaExample is the example of a media type, nil when there is none.
func (op *operation) mediaExample(entry recipe.Object) recipe.Value {
	if e, ok := entry.Get("example"); ok && e != nil {
		return e
	}
	for _, m := range object(entry, "examples") {
		if v, _, err := op.deref(m.Value); err == nil && get(v, "value") != nil {
			return get(v, "value")
		}
	}
	return nil
}
