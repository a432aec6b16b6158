package wrapper

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/hyperbolic-gateway/hb-rest/internal/redact"
	"github.com/hyperbolic-gateway/hb-rest/internal/schema"
	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// The top-level fields, in the order of a normalised document.
var topKeys = []string{"schemaVersion", "id", "name", "description", "request", "inputSchema", "response", "exposeAsTool", "mutating"}

// Parse reads a wrapper document and reports everything wrong with it at once,
// in document order, missing fields last, at most recipe.MaxProblems. Fields
// are written wrapper.request.url, wrapper.inputSchema.properties.city.type and,
// for the recipe, response.fields.Price.format. Unknown top-level fields are
// dropped with a warning, so is nothing else. The Wrapper is nil when the report
// has problems.
func Parse(data []byte) (*Wrapper, recipe.Report) {
	doc, problem := decode(data)
	if problem != nil {
		return nil, recipe.Report{Problems: []recipe.Problem{*problem}}
	}
	p := &parser{w: &Wrapper{}, doc: doc, parts: map[string]*checker{}, out: map[string]recipe.Value{}}
	p.parse()
	report := p.report()
	if !report.OK() {
		return nil, report
	}
	p.w.raw = recipe.Encode(ordered(topKeys, p.out))
	return p.w, report
}

// decode reads the text as an object.
func decode(data []byte) (recipe.Object, *recipe.Problem) {
	v, err := recipe.Decode(data, recipe.DecodeLimits{Bytes: MaxDocument, Depth: MaxDepth})
	if err != nil {
		p := &recipe.Problem{Field: "wrapper", Code: "TYPE", Message: "is not one JSON object: " + err.Error()}
		var de *recipe.DecodeError
		switch {
		case !errors.As(err, &de):
		case de.Kind == "size":
			p.Code, p.Message = "TOO_LONG", fmt.Sprintf("a wrapper can have %d bytes, this one has %d", MaxDocument, len(data))
		case de.Kind == "depth":
			p.Code, p.Message = "RANGE", de.Error()
		}
		return nil, p
	}
	doc, ok := v.(recipe.Object)
	if !ok {
		return nil, &recipe.Problem{Field: "wrapper", Code: "TYPE", Message: "expected an object, got " + typeOf(v)}
	}
	return doc, nil
}

// A parser fills a Wrapper. Each top-level field has its own checker, so that
// the report can follow the document although the schema is read first.
type parser struct {
	w     *Wrapper
	doc   recipe.Object
	parts map[string]*checker
	out   map[string]recipe.Value // normalised top-level fields
}

// part is the checker of a top-level field.
func (p *parser) part(key string) *checker {
	if p.parts[key] == nil {
		p.parts[key] = &checker{}
	}
	return p.parts[key]
}

// get returns a top-level field; null is absent.
func (p *parser) get(key string) (recipe.Value, bool) {
	v, ok := p.doc.Get(key)
	return v, ok && v != nil
}

func (p *parser) parse() {
	p.duplicates()
	p.version()
	p.id()
	p.words("name", MaxName, &p.w.Name)
	p.words("description", MaxDescription, &p.w.Description)
	if p.w.Name == "" {
		p.w.Name = p.w.ID
	}
	p.flag("exposeAsTool", &p.w.ExposeAsTool)
	_, said := p.get("mutating")
	p.flag("mutating", &p.w.declared)
	input := p.inputSchema()
	p.request(input)
	p.response()
	p.paged()

	methods := p.w.Request.Methods
	p.w.Mutating = p.w.declared || p.w.override || !said && slices.ContainsFunc(methods, writes)
	p.unknown()
}

// unknown warns of the fields that are dropped.
func (p *parser) unknown() {
	n := 0
	for _, m := range p.doc {
		if n++; n > len(topKeys)+recipe.MaxProblems { // enough for a full report
			return
		}
		if !slices.Contains(topKeys, m.Key) {
			p.part(m.Key).warn(at("wrapper", m.Key), "UNKNOWN_FIELD", fieldHint(m.Key), "dropped: unknown field %q", oneLine(m.Key))
		}
	}
}

// report joins the parts in document order, then those of absent fields.
func (p *parser) report() recipe.Report {
	var out recipe.Report
	join := func(key string) {
		if c := p.parts[key]; c != nil {
			for _, x := range c.report.Problems {
				add(&out.Problems, x)
			}
			for _, x := range c.report.Warnings {
				add(&out.Warnings, x)
			}
			delete(p.parts, key)
		}
	}
	for _, m := range p.doc {
		join(m.Key)
	}
	for _, key := range topKeys {
		join(key)
	}
	return out
}

// ordered is an object of the members that are there, in the order of keys.
func ordered(keys []string, members map[string]recipe.Value) recipe.Object {
	var out recipe.Object
	for _, k := range keys {
		if v, ok := members[k]; ok {
			out = append(out, recipe.Member{Key: k, Value: v})
		}
	}
	return out
}

// duplicates reports every key that appears twice in an object. The recipe
// looks for its own.
func (p *parser) duplicates() {
	seen := map[string]bool{}
	for _, m := range p.doc {
		if seen[m.Key] {
			p.part(m.Key).problem(at("wrapper", m.Key), "DUPLICATE", "keep one of them", "key %q appears twice", oneLine(m.Key))
		}
		seen[m.Key] = true
		if m.Key == "request" || m.Key == "inputSchema" {
			for _, d := range schema.Duplicates(m.Value, at("wrapper", m.Key)) {
				p.part(m.Key).problem(d.Field, d.Code, "keep one of them", "%s", d.Message)
			}
		}
	}
}

func (p *parser) version() {
	v, ok := p.get("schemaVersion")
	c := p.part("schemaVersion")
	switch {
	case !ok:
		c.problem("wrapper.schemaVersion", "REQUIRED", `write "schemaVersion": 1`, "is required (the number 1)")
	case !isOne(v):
		c.problem("wrapper.schemaVersion", "VERSION_UNSUPPORTED", `write "schemaVersion": 1`, "this version reads schemaVersion 1")
	}
	p.w.SchemaVersion = 1
	p.out["schemaVersion"] = v
}

func isOne(v recipe.Value) bool {
	s, ok := scalar(v)
	return ok && s == "1"
}

func (p *parser) id() {
	c := p.part("id")
	v, ok := p.get("id")
	if !ok {
		c.problem("wrapper.id", "REQUIRED", "", "is required (a short name such as orders.create)")
		return
	}
	id, ok := c.text(v, "wrapper.id", "put the id in quotes")
	if !ok {
		return
	}
	if !idPattern.MatchString(id) {
		c.problem("wrapper.id", "ID_INVALID", "such as orders.create", "an id has 1 to 100 letters, digits and . _ - and begins with a letter or digit")
		return
	}
	p.w.ID = id
	p.out["id"] = id
}

// words reads an optional text.
func (p *parser) words(key string, most int, to *string) {
	v, ok := p.get(key)
	if !ok {
		return
	}
	c, field := p.part(key), "wrapper."+key
	s, ok := c.text(v, field, "write one text in quotes")
	if !ok {
		return
	}
	if n := utf8.RuneCountInString(s); n > most {
		c.problem(field, "TOO_LONG", "", "can have %d characters, has %d", most, n)
		return
	}
	bad := func(r rune) bool {
		return unicode.IsControl(r) && (key == "name" || r != '\n' && r != '\r' && r != '\t')
	}
	if strings.ContainsFunc(s, bad) {
		c.problem(field, "CONTROL_CHARACTER", "", "cannot hold control characters")
		return
	}
	*to = s
	p.out[key] = s
}

// flag reads an optional boolean.
func (p *parser) flag(key string, to *bool) {
	v, ok := p.get(key)
	if !ok {
		return
	}
	b, ok := v.(bool)
	if !ok {
		p.part(key).problem("wrapper."+key, "TYPE", "write true or false without quotes", "expected boolean, got %s", typeOf(v))
		return
	}
	*to = b
	p.out[key] = b
}

// inputSchema admits the schema; nil when it has problems.
func (p *parser) inputSchema() *schema.Schema {
	v, ok := p.get("inputSchema")
	if !ok {
		return schema.Empty()
	}
	s, report := schema.Parse(v, "wrapper.inputSchema")
	c := p.part("inputSchema")
	for _, x := range report.Problems {
		add(&c.report.Problems, x)
	}
	for _, x := range report.Warnings {
		add(&c.report.Warnings, x)
	}
	if s != nil {
		p.out["inputSchema"] = s.Document()
	}
	return s
}

const requestShape = `write {"method": "GET", "url": "https://api.example.com/items"}`

// methodField is where the generated argument would stand.
const methodField = "wrapper.inputSchema.properties.method"

func (p *parser) request(input *schema.Schema) {
	v, ok := p.get("request")
	c := p.part("request")
	if !ok {
		c.problem("wrapper.request", "REQUIRED", requestShape, "is required (an object with method and url)")
		return
	}
	obj, ok := c.object(v, "wrapper.request", requestShape)
	if !ok {
		return
	}
	r := &requestParser{checker: checker{report: c.report}, w: p.w}
	p.w.Input = input
	// The generated argument may stand in templates, so it is added first.
	if methods := allowed(obj); len(methods) > 1 && input != nil {
		if _, taken := input.Property("method"); taken {
			p.part("inputSchema").problem(methodField, "DUPLICATE", "rename the property, or allow one method",
				"a wrapper with several methods gets an argument called method")
		} else {
			p.w.Input = input.With("method", "HTTP method", "METHOD_NOT_OFFERED", methods)
		}
	}
	r.input = p.w.Input
	r.parse(obj)
	*c = r.checker
	p.out["request"] = ordered(requestKeys, r.out)
}

// allowed are the methods of a request, without complaints.
func allowed(obj recipe.Object) []string {
	r := &requestParser{w: &Wrapper{}, out: map[string]recipe.Value{}}
	r.methods(obj)
	return r.w.Request.Methods
}

func (p *parser) response() {
	v, ok := p.get("response")
	if !ok {
		return
	}
	options := recipe.ParseOptions{CredentialName: func(name string) bool {
		return redact.CredentialQuery(name) || redact.CredentialHeader(name)
	}}
	r, report := options.Parse(v)
	p.part("response").report = report
	if r != nil {
		p.w.Response = r
		p.out["response"] = r.Document()
	}
}
