package importer

import (
	"slices"
	"strings"

	"github.com/hyperbolic-gateway/hb-rest/internal/redact"
	"github.com/hyperbolic-gateway/hb-rest/internal/wrapper"
	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// A param is one parameter, 2.0 and 3.x read alike.
type param struct {
	name, in string // path, query, header, cookie; body and formData in 2.0
	required bool
	about    string
	schema   bound
	words    recipe.Object // example and default that stand beside the schema
	style    string        // as 3.x names it
	explode  bool
	reserved bool
	media    string // of a value that is written in it; "": none
	handled  bool   // by credentials or paging
}

// parameters are those of the path and the operation, the operation's own
// before the path's of the same name and place.
func (op *operation) parameters() ([]*param, error) {
	var out []*param
	for _, list := range []recipe.Array{array(op.item, "parameters"), array(op.op, "parameters")} {
		for _, e := range list {
			v, ref, err := op.deref(e)
			if err != nil {
				return nil, err
			}
			o, ok := v.(recipe.Object)
			if !ok {
				return nil, refuse("DOCUMENT", "a parameter is no object")
			}
			p := op.param(o, ref)
			if p.name == "" {
				return nil, refuse("DOCUMENT", "a parameter has no name")
			}
			i := slices.IndexFunc(out, func(have *param) bool { return have.name == p.name && have.in == p.in })
			if i >= 0 {
				out[i] = p
				continue
			}
			out = append(out, p)
		}
	}
	return out, nil
}

func (op *operation) param(o recipe.Object, ref string) *param {
	p := &param{
		name: text(o, "name"), in: text(o, "in"), required: flag(o, "required"), about: text(o, "description"),
		style: text(o, "style"), reserved: flag(o, "allowReserved"),
	}
	var at *chain
	if ref != "" {
		at = &chain{ref, nil}
	}
	for _, key := range []string{"example", "deprecated", "x-example"} {
		if v, ok := o.Get(key); ok && v != nil {
			p.words = append(p.words, recipe.Member{Key: strings.TrimPrefix(key, "x-"), Value: v})
		}
	}
	for _, m := range object(o, "examples") {
		if v, _, err := op.deref(m.Value); err == nil && get(v, "value") != nil && !has(p.words, "example") {
			p.words = append(p.words, recipe.Member{Key: "example", Value: get(v, "value")})
		}
	}
	if op.version == v2 {
		p.schema = bound{v: schemaOf2(o, p.in), at: at}
		p.style, p.explode = style2(text(o, "collectionFormat"))
		return p
	}
	p.schema = bound{v: get(o, "schema"), at: at}
	if p.style == "" {
		p.style = map[string]string{"query": "form", "cookie": "form"}[p.in]
		if p.style == "" {
			p.style = "simple"
		}
	}
	p.explode = p.style == "form"
	if e, ok := get(o, "explode").(bool); ok {
		p.explode = e
	}
	for _, m := range object(o, "content") {
		p.media = m.Key
		p.schema = bound{v: get(m.Value, "schema"), at: at}
		break
	}
	return p
}

// schemaOf2 is the schema that a parameter of 2.0 holds in itself.
func schemaOf2(o recipe.Object, in string) recipe.Value {
	if in == "body" {
		return get(o, "schema")
	}
	var s recipe.Object
	for _, m := range o {
		switch m.Key {
		case "name", "in", "required", "description", "collectionFormat", "allowEmptyValue", "schema", "example", "x-example", "examples":
		default:
			s = append(s, m)
		}
	}
	if len(s) == 0 {
		return get(o, "schema")
	}
	return s
}

// style2 is the style of 3.x for a collectionFormat of 2.0.
func style2(format string) (style string, explode bool) {
	switch format {
	case "multi":
		return "form", true
	case "ssv":
		return "spaceDelimited", false
	case "pipes":
		return "pipeDelimited", false
	case "tsv":
		return "tabDelimited", false
	}
	return "form", false
}

// shapeOf is the shape of a parameter's value. Outside of a body everything
// is text, so what can be a number or a text is a text, and null is nothing.
func (op *operation) shapeOf(p *param) (*shape, error) {
	s, err := op.reader.shape(p.schema)
	if err != nil {
		return nil, err
	}
	for _, m := range p.words { // beside the schema, so before it
		s.words = slices.DeleteFunc(slices.Clone(s.words), func(w recipe.Member) bool { return w.Key == m.Key })
		s.words = append(s.words, m)
	}
	if p.about != "" {
		s.words = slices.DeleteFunc(slices.Clone(s.words), func(w recipe.Member) bool { return w.Key == "description" })
		s.words = append(s.words, recipe.Member{Key: "description", Value: p.about})
	}
	wireText(s)
	return s, nil
}

// wireText turns a shape into one of texts: null is left out, and of several
// scalar types one stays that every value can be written in.
func wireText(s *shape) {
	s.nullable = false
	s.enum = slices.DeleteFunc(slices.Clone(s.enum), func(e recipe.Value) bool { return e == nil })
	scalars := slices.DeleteFunc(slices.Clone(s.types), func(t string) bool { return t == "array" || t == "object" })
	switch {
	case len(s.types) == 0 || typeWord(s) == "null":
		s.types = []string{"string"}
	case len(s.types) > 1 && len(scalars) == len(s.types):
		s.types = []string{"string"}
	case len(s.types) > 1 && slices.Contains(s.types, "array"):
		s.types = []string{"array"} // a single value is written as a list of one
	case len(s.types) > 1 && len(scalars) > 0:
		s.types = scalars[:1]
		if len(scalars) > 1 {
			s.types = []string{"string"}
		}
		s.props, s.required = nil, nil
	}
}

// schemaFor writes the schema of an argument.
func (op *operation) schemaFor(name string, s *shape, required bool) (recipe.Object, error) {
	return op.schemaWith(op.writer(), name, s, required)
}

func (op *operation) schemaWith(w *schemaWriter, name string, s *shape, required bool) (recipe.Object, error) {
	o, err := w.shaped(name, 0, s, argumentText)
	if err != nil || o == nil {
		return nil, err
	}
	if required {
		// Only what must be sent anyway is filled in: other defaults are the
		// API's own business, and sending them is not the same request.
		if def, ok := s.words.Get("default"); ok {
			if v, ok := fitting(typeWord(s), def); ok && short(v) && clean(name, v) {
				o = append(o, recipe.Member{Key: "default", Value: v})
			}
		} else if len(s.enum) == 1 {
			if v, ok := fitting(typeWord(s), s.enum[0]); ok && short(v) && clean(name, v) {
				o = append(o, recipe.Member{Key: "default", Value: v})
			}
		}
	}
	return o, nil
}

func (op *operation) writer() *schemaWriter {
	return &schemaWriter{schemaReader: op.reader, levels: op.levels, patterns: op.exact, notes: &op.notes, props: op.props}
}

// address fills the path: each "{name}" becomes a placeholder.
func (op *operation) address(params []*param) (string, error) {
	var b strings.Builder
	b.WriteString(op.server.address)
	rest := op.path
	holes := map[string]string{}
	for {
		literal, after, open := strings.Cut(rest, "{")
		if strings.ContainsAny(literal, "}#") {
			return "", refuse("PATH", "the path has %s in it, which is no part of a request", map[bool]string{true: "a #", false: "a single }"}[strings.Contains(literal, "#")])
		}
		b.WriteString(escapeLiteral(literal))
		if !open {
			break
		}
		name, behind, closed := strings.Cut(after, "}")
		if !closed || name == "" || strings.Contains(name, "{") {
			return "", refuse("PATH", "the path has a { without its }")
		}
		hole, again := holes[name]
		if !again {
			var err error
			if hole, err = op.hole(name, params); err != nil {
				return "", err
			}
			holes[name] = hole
		}
		b.WriteString(hole)
		rest = behind
	}
	for _, p := range params {
		if _, used := holes[p.name]; p.in == "path" && !used {
			op.notes.add("the path parameter %s is not in the path and is left out", cut(p.name, 40))
		}
	}
	return b.String(), nil
}

// hole is the placeholder of one parameter of the path.
func (op *operation) hole(name string, params []*param) (string, error) {
	i := slices.IndexFunc(params, func(p *param) bool { return p.in == "path" && p.name == name })
	if i < 0 {
		op.notes.add("the path parameter %s is not described; it is taken as a text", cut(name, 40))
		return op.args.add(name, "path", recipe.Object{{Key: "type", Value: "string"}}, true), nil
	}
	p := params[i]
	if p.style == "label" || p.style == "matrix" {
		return "", refuse("PARAM_STYLE", "the path parameter %s has the style %s, which cannot be sent", name, p.style)
	}
	s, err := op.shapeOf(p)
	if err != nil {
		return "", err
	}
	if p.media != "" {
		return "", refuse("PARAM_CONTENT", "the path parameter %s is written as %s, which cannot be sent", name, cut(p.media, 40))
	}
	if s, err = op.single(p, s); err != nil {
		return "", err
	}
	o, err := op.schemaFor(name, s, true)
	if err != nil {
		return "", err
	}
	return op.args.add(name, "path", o, true), nil
}

// single reduces a list, where lists cannot be sent, to one of its values,
// which is written as the list of that value.
func (op *operation) single(p *param, s *shape) (*shape, error) {
	switch typeWord(s) {
	case "object":
		return nil, refuse("PARAM_OBJECT", "the %s parameter %s is an object, which cannot be sent there", p.in, p.name)
	case "array":
		if r := number(get(s.words, "minItems")); r != nil && r.Cmp(number(one)) > 0 {
			return nil, refuse("PARAM_STYLE", "the %s parameter %s is a list in the style %s, which cannot be sent", p.in, p.name, p.style)
		}
		item, err := op.reader.shape(s.items...)
		if err != nil {
			return nil, err
		}
		wireText(item)
		if k := typeWord(item); k == "object" || k == "array" {
			return nil, refuse("PARAM_OBJECT", "the %s parameter %s is a list of %ss, which cannot be sent there", p.in, p.name, k)
		}
		about := join(brief(text(s.words, "description"), argumentText-20), "One value only.")
		item.words = slices.DeleteFunc(slices.Clone(item.words), func(w recipe.Member) bool { return w.Key == "description" })
		item.words = append(item.words, recipe.Member{Key: "description", Value: about})
		op.notes.add("%s takes one value, not several: a list in the style %s cannot be sent", p.name, p.style)
		return item, nil
	}
	return s, nil
}

// escapeLiteral escapes what a path cannot hold as it is. What is escaped
// already stays.
func escapeLiteral(s string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		if c <= ' ' || c >= 0x7f || strings.IndexByte("\"<>\\^`|", c) >= 0 {
			b.WriteString("%" + string(hex[c>>4]) + string(hex[c&15]))
			continue
		}
		b.WriteByte(c)
	}
	return b.String()
}

// queryAndHeaders adds the parameters that are neither in the path nor in the
// body.
func (op *operation) queryAndHeaders(params []*param) error {
	for _, p := range params {
		if p.handled {
			continue
		}
		var err error
		switch p.in {
		case "query":
			err = op.queryParam(p)
		case "header":
			err = op.headerParam(p)
		case "cookie":
			err = op.omit(p, "COOKIE", "cookies are not sent")
		case "path", "body", "formData":
		default:
			err = op.omit(p, "PARAM_PLACE", "its place is not known")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// omit leaves out an optional parameter that cannot be sent, and refuses the
// operation over a required one.
func (op *operation) omit(p *param, code, why string) error {
	name := cut(cleanText(p.name), 60)
	if p.required {
		return refuse(code, "the required %s parameter %s cannot be sent: %s", p.in, name, why)
	}
	op.notes.add("the optional %s parameter %s is left out: %s", p.in, name, why)
	return nil
}

func (op *operation) queryParam(p *param) error {
	if redact.CredentialQuery(p.name) {
		op.drop("query parameter %s of %s", cut(p.name, 60), op.title())
		return op.omit(p, "CREDENTIAL_QUERY", "its name is that of a credential, which is never put into an address")
	}
	s, err := op.shapeOf(p)
	if err != nil {
		return err
	}
	if p.reserved {
		op.notes.add("%s is sent with reserved characters escaped, which a server decodes to the same", p.name)
	}
	if p.media != "" {
		return op.mediaParam(p, s)
	}
	switch typeWord(s) {
	case "object":
		return op.objectParam(p, s)
	case "array":
		return op.listParam(p, s)
	}
	if p.style == "deepObject" {
		return op.omit(p, "PARAM_STYLE", "the style deepObject is not defined for it")
	}
	return op.addQuery(p.name, s, p.required)
}

// mediaParam is a value written as JSON: one text, as far as the request is
// concerned.
func (op *operation) mediaParam(p *param, s *shape) error {
	if kind := mediaKind(p.media); kind != "json" && kind != "text" {
		return op.omit(p, "PARAM_CONTENT", "it is written as "+cut(p.media, 40))
	} else if kind == "json" {
		about := join("JSON text", brief(text(s.words, "description"), argumentText-10))
		s = &shape{types: []string{"string"}, words: recipe.Object{{Key: "description", Value: about}}}
	}
	return op.addQuery(p.name, s, p.required)
}

func (op *operation) listParam(p *param, s *shape) error {
	item, err := op.reader.shape(s.items...)
	if err != nil {
		return err
	}
	wireText(item)
	if k := typeWord(item); k == "object" || k == "array" {
		return op.omit(p, "PARAM_OBJECT", "a list of "+k+"s has no form in the query")
	}
	style := ""
	switch {
	case p.style == "form" && p.explode:
		style = wrapper.StyleRepeat
	case p.style == "form":
		style = wrapper.StyleComma
	case p.style == "pipeDelimited" && !p.explode:
		style = wrapper.StylePipe
	case p.style == "spaceDelimited" && !p.explode, p.style == "tabDelimited":
		if s, err = op.single(p, s); err != nil {
			return op.omit(p, "PARAM_STYLE", "a list in the style "+p.style+" cannot be sent")
		}
	default:
		return op.omit(p, "PARAM_STYLE", "a list in the style "+cut(p.style, 20)+" has no defined form")
	}
	if style == wrapper.StyleRepeat {
		style = ""
	}
	if style != "" || typeWord(s) == "array" {
		s.items = []bound{{v: nil}}
		return op.addList(p, s, item, style)
	}
	return op.addQuery(p.name, s, p.required)
}

// addList adds a list whose items are texts.
func (op *operation) addList(p *param, s, item *shape, style string) error {
	items, err := op.writer().shaped(p.name, 1, item, memberText)
	if err != nil {
		return err
	}
	s.items = nil
	o, err := op.schemaFor(p.name, s, p.required)
	if err != nil {
		return err
	}
	o = append(o, recipe.Member{Key: "items", Value: items})
	op.addTemplate(p.name, op.args.add(p.name, "query", o, p.required), style)
	return nil
}

// objectParam spreads an object over parameters of their own, where each
// member is a single value and the style says how it is named.
func (op *operation) objectParam(p *param, s *shape) error {
	name := func(member string) string { return member }
	switch {
	case p.style == "form" && p.explode:
	case p.style == "deepObject":
		name = func(member string) string { return p.name + "[" + member + "]" }
	default:
		return op.omit(p, "PARAM_OBJECT", "an object in the style "+cut(p.style, 20)+" cannot be sent")
	}
	if len(s.props) == 0 || s.open && p.required {
		return op.omit(p, "PARAM_OBJECT", "it is an object without declared members, which has no form in the query")
	}
	type member struct {
		name     string
		s        *shape
		required bool
	}
	var list []member
	for _, m := range s.props {
		child, err := op.reader.shape(m.bounds...)
		if err != nil {
			return err
		}
		if child.never || flag(child.words, "readOnly") {
			continue
		}
		wireText(child)
		required := p.required && slices.Contains(s.required, m.name)
		if k := typeWord(child); k == "object" || k == "array" || redact.CredentialQuery(name(m.name)) {
			part := &param{name: name(m.name), in: "query", required: required}
			if err := op.omit(part, "PARAM_OBJECT", "its form in the query is not defined"); err != nil {
				return err
			}
			continue
		}
		list = append(list, member{m.name, child, required})
	}
	if len(list) == 0 {
		return op.omit(p, "PARAM_OBJECT", "none of its members can be sent")
	}
	if s.open {
		op.notes.add("of the query parameter %s only the declared members are arguments", cut(p.name, 60))
	}
	for _, m := range list {
		if err := op.addQuery(name(m.name), m.s, m.required); err != nil {
			return err
		}
	}
	return nil
}

func (op *operation) addQuery(name string, s *shape, required bool) error {
	o, err := op.schemaFor(name, s, required)
	if err != nil {
		return err
	}
	if o == nil {
		return refuse("PARAM", "the query parameter %s takes no value", cut(name, 40))
	}
	op.addTemplate(name, op.args.add(name, "query", o, required), "")
	if v, ok := fitting(typeWord(s), get(s.words, "default")); ok {
		op.args.list[len(op.args.list)-1].first = v
	}
	return nil
}

func (op *operation) addTemplate(name, hole, style string) {
	var v recipe.Value = hole
	if style != "" {
		v = recipe.Object{{Key: "value", Value: hole}, {Key: "style", Value: style}}
	}
	op.query = append(op.query, recipe.Member{Key: name, Value: v})
}

// connection are headers that belong to the connection.
var connection = []string{
	"host", "content-length", "transfer-encoding", "connection", "keep-alive", "te", "trailer", "upgrade", "expect",
}

func (op *operation) headerParam(p *param) error {
	lower := strings.ToLower(p.name)
	switch {
	case lower == "accept" || lower == "content-type" || lower == "authorization" && op.version != v2:
		return nil // the specification says to ignore them: other parts of the document say it
	case slices.Contains(connection, lower) || strings.HasPrefix(lower, "proxy-"):
		return op.omit(p, "HEADER", "it belongs to the connection")
	case redact.CredentialHeader(p.name):
		op.drop("header %s of %s", cut(p.name, 60), op.title())
		return op.omit(p, "CREDENTIAL_HEADER", "it is a credential")
	}
	s, err := op.shapeOf(p)
	if err != nil {
		return err
	}
	switch kind := typeWord(s); {
	case p.media != "" || kind == "object":
		return op.omit(p, "PARAM_OBJECT", "an object in a header cannot be sent")
	case kind == "array":
		item, err := op.reader.shape(s.items...)
		if err != nil {
			return err
		}
		wireText(item)
		if k := typeWord(item); k == "object" || k == "array" {
			return op.omit(p, "PARAM_OBJECT", "a list of "+k+"s in a header cannot be sent")
		}
		about := join(brief(text(s.words, "description"), argumentText-30), "Several values are separated by commas.")
		s = &shape{types: []string{"string"}, words: recipe.Object{{Key: "description", Value: about}}}
	}
	o, err := op.schemaFor(p.name, s, p.required)
	if err != nil {
		return err
	}
	op.headers = append(op.headers, recipe.Member{Key: p.name, Value: op.args.add(p.name, "header", o, p.required)})
	return nil
}
