package importer

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/hyperbolic-gateway/hb-rest/internal/redact"
	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// An answer is what the document says a success looks like.
type answer struct {
	types   []string // media types that can be read, as written
	schema  bound
	example recipe.Value // nil: none
	headers recipe.Object
}

// answers finds the answer that a recipe is made for: the first success that
// has one that can be read. nil: successes have no body.
func (op *operation) answers() (*answer, error) {
	var other string
	responses := object(op.op, "responses")
	for _, status := range successes(responses) {
		v, ref, err := op.deref(get(responses, status))
		if err != nil {
			op.notes.add("the answer %s is not known: %s", status, err)
			continue
		}
		list := op.contents(v)
		a := &answer{headers: object(v, "headers")}
		for _, m := range list {
			if !readable(m.name) || binaryAnswer(m.schema.v) {
				if other == "" {
					other = m.name
				}
				continue
			}
			a.types = append(a.types, m.name)
			if len(a.types) == 1 {
				a.schema, a.example = m.schema, op.mediaExample(m.entry)
				if ref != "" {
					a.schema.at = &chain{ref, nil}
				}
			}
		}
		if len(a.types) > 0 {
			return a, nil
		}
		if len(list) == 0 && other == "" {
			return nil, nil
		}
	}
	if other != "" {
		return nil, refuse("RESPONSE_TYPE", "it answers with %s, which is not read as JSON", cut(cleanText(other), 60))
	}
	return nil, nil
}

// successes are the statuses of success, the one to expect first.
func successes(responses recipe.Object) []string {
	var out []string
	for _, m := range responses {
		if len(m.Key) == 3 && m.Key[0] == '2' {
			out = append(out, m.Key)
		}
	}
	slices.SortStableFunc(out, func(a, b string) int { return strings.Compare(a, b) })
	if len(out) == 0 && has(responses, "default") {
		out = append(out, "default")
	}
	return out
}

func (op *operation) contents(response recipe.Value) []media {
	var list []media
	if op.version != v2 {
		for _, m := range object(response, "content") {
			entry, _ := m.Value.(recipe.Object)
			list = append(list, media{name: m.Key, entry: entry, schema: bound{v: get(entry, "schema")}})
		}
		return list
	}
	if get(response, "schema") == nil {
		return nil
	}
	produces := op.strings2("produces")
	if len(produces) == 0 {
		produces = []string{"application/json"}
	}
	for _, name := range produces {
		entry := recipe.Object{}
		if e := get(object(response, "examples"), name); e != nil {
			entry = recipe.Object{{Key: "example", Value: e}}
		}
		list = append(list, media{name: name, entry: entry, schema: bound{v: get(response, "schema")}})
	}
	return list
}

// readable reports whether an answer of this type is read as JSON.
func readable(name string) bool {
	if k := mediaKind(name); k == "json" || k == "any" {
		return true
	}
	base, _, _ := strings.Cut(strings.ToLower(name), ";")
	return slices.Contains([]string{
		"application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonl", "application/jsonlines",
		"application/x-jsonlines", "application/json-lines", "application/stream+json", "application/x-json-stream",
	}, strings.TrimSpace(base))
}

func binaryAnswer(v recipe.Value) bool {
	return text(v, "type") == "file" || text(v, "type") == "string" && text(v, "format") == "binary"
}

// accept asks for the type of the answer where it is not plain JSON.
func (op *operation) accept() {
	if op.answer == nil {
		return
	}
	for _, name := range op.answer.types {
		base, parameters, _ := strings.Cut(strings.ToLower(name), ";")
		base = strings.TrimSpace(base)
		if strings.Contains(base, "*") || base == "application/json" && !strings.Contains(strings.ReplaceAll(parameters, "charset=", ""), "=") {
			return
		}
	}
	op.headers = append(op.headers, recipe.Member{Key: "Accept", Value: strings.TrimSpace(op.answer.types[0])})
}

// recipe derives a recipe from the example of the answer, or from its schema.
func (op *operation) recipe() recipe.Object {
	if op.answer == nil {
		return nil
	}
	r, sample, hints := derived(parsed(op.answer.example))
	if r == nil {
		s := &sampler{&schemaReader{d: op.document, budget: schemaBudget}}
		made, _ := s.sample("", 0, op.answer.schema)
		r, sample, hints = derived(made)
	}
	if r != nil {
		doc := r.Document()
		if plan := op.paging(r, sample, hints); plan != nil {
			doc = append(doc, recipe.Member{Key: "pagination", Value: plan})
		}
		return doc
	}
	op.notes.add("the document does not say what the answer looks like: the recipe is missing, and `hbrestd recipe derive` makes one from an answer")
	return nil
}

func derived(sample recipe.Value) (*recipe.Recipe, recipe.Value, []recipe.Note) {
	if sample == nil {
		return nil, nil, nil
	}
	r, hints := recipe.Derive(sample, recipe.DeriveOptions{Skip: redact.CredentialKey})
	return r, sample, hints
}

// parsed is an example that was written as the text of its JSON.
func parsed(v recipe.Value) recipe.Value {
	if s, ok := v.(string); ok {
		if inner, err := recipe.Decode([]byte(s), recipe.DecodeLimits{Depth: maxNesting}); err == nil {
			return inner
		}
	}
	return v
}

// A sampler makes an answer out of a schema: plausible values under the right
// names, which is what derive ranks by.
type sampler struct{ *schemaReader }

const (
	sampleLevels  = 7
	sampleMembers = 120
)

// sample is a value; ok is false when the schema has none to show.
func (s *sampler) sample(name string, level int, bounds ...bound) (v recipe.Value, ok bool) {
	sh, err := s.shape(bounds...)
	if err != nil || sh.never || flag(sh.words, "writeOnly") {
		return nil, false
	}
	if e, ok := example(sh); ok && e != nil && level > 0 {
		if v, fits := fitting(typeWord(sh), e); fits && (len(sh.types) > 0 || isScalar(v)) {
			if o, isObject := v.(recipe.Object); !isObject || len(o) > 0 {
				return v, true
			}
		}
	}
	if len(sh.enum) > 0 && sh.enum[0] != nil {
		return sh.enum[0], true
	}
	if sh.cut || level > sampleLevels {
		return nil, false
	}
	kind := ""
	if len(sh.types) > 0 {
		kind = sh.types[0]
	}
	if slices.Contains(sh.types, "object") && len(sh.props) > 0 {
		kind = "object"
	}
	switch kind {
	case "object":
		o := recipe.Object{}
		for _, p := range sh.props[:min(len(sh.props), sampleMembers)] {
			if v, ok := s.sample(p.name, level+1, p.bounds...); ok {
				o = append(o, recipe.Member{Key: p.name, Value: v})
			}
		}
		return o, true
	case "array":
		v, ok := s.sample(name, level+1, sh.items...)
		if !ok || sh.items == nil {
			return recipe.Array{}, true
		}
		return recipe.Array{v}, true
	case "integer":
		return json.Number("1"), true
	case "number":
		return json.Number("1.5"), true
	case "boolean":
		return true, true
	case "string":
		return sampleText(text(sh.words, "format")), true
	}
	return "text", level > 0
}

func isScalar(v recipe.Value) bool {
	switch v.(type) {
	case recipe.Array, recipe.Object:
		return false
	}
	return true
}

func sampleText(format string) string {
	switch format {
	case "date-time":
		return "2026-01-02T03:04:05Z"
	case "date":
		return "2026-01-02"
	case "uri", "url", "uri-reference", "uri-template":
		return "https://api.example.com/items/1"
	case "email":
		return "ada@example.com"
	case "uuid":
		return "6ba7b810-9dad-11d1-80b4-00c04fd430c8"
	}
	return "text"
}
