package importer_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi2"
	"github.com/getkin/kin-openapi/openapi2conv"
	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/goccy/go-yaml"

	"github.com/hyperbolic-gateway/hb-rest/internal/importer"
	"github.com/hyperbolic-gateway/hb-rest/internal/wrapper"
	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// The oracle is kin-openapi, which shares no code with the importer: it judges
// whether the request that a draft makes is one that the document allows.

// loadKin reads a document as kin-openapi does.
func loadKin(data []byte) (doc *openapi3.T, err error) {
	defer func() {
		if r := recover(); r != nil {
			doc, err = nil, fmt.Errorf("the judge panicked: %v", r)
		}
	}()
	loader := openapi3.NewLoader()
	loader.ReadFromURIFunc = func(*openapi3.Loader, *url.URL) ([]byte, error) { return nil, fmt.Errorf("not read") }
	var probe struct {
		Swagger any `json:"swagger"`
	}
	text := data
	if !bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		if text, err = yaml.YAMLToJSON(data); err != nil {
			return nil, err
		}
	}
	if err := json.Unmarshal(text, &probe); err != nil {
		return nil, err
	}
	if probe.Swagger == nil {
		return loader.LoadFromData(text)
	}
	var old openapi2.T
	if err := json.Unmarshal(text, &old); err != nil {
		return nil, err
	}
	return openapi2conv.ToV3WithLoader(&old, loader, nil)
}

// judge sends nothing: it lets kin-openapi look at the request.
// credentials are headers that a stored credential adds.
func judge(doc *openapi3.T, operation string, call *wrapper.Call, credentials []string) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the judge panicked: %v", r)
		}
	}()
	method, path, _ := strings.Cut(operation, " ")
	item := doc.Paths.Value(path)
	if item == nil {
		return fmt.Errorf("no path %s", path)
	}
	op := item.GetOperation(method)
	if op == nil {
		return fmt.Errorf("no operation %s", operation)
	}
	params, err := pathValues(path, call.URL)
	if err != nil {
		return err
	}
	var body io.Reader
	if call.Body != nil {
		body = bytes.NewReader(call.Body)
	}
	req, err := http.NewRequest(call.Method, call.URL.String(), body)
	if err != nil {
		return err
	}
	for _, h := range call.Header {
		req.Header.Add(h.Name, h.Value)
	}
	// The specification says to ignore parameters of the first three names, and
	// the judge does not.
	for _, name := range append([]string{"Accept", "Content-Type", "Authorization"}, credentials...) {
		if req.Header.Get(name) == "" {
			req.Header.Set(name, "application/json")
		}
	}
	return openapi3filter.ValidateRequest(req.Context(), &openapi3filter.RequestValidationInput{
		Request: req, PathParams: params, QueryParams: req.URL.Query(),
		Route:   &routers.Route{Spec: doc, Path: path, PathItem: item, Method: method, Operation: op},
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, SkipSettingDefaults: true},
	})
}

var hole = regexp.MustCompile(`\\\{([^{}]*)\\\}`)

// pathValues takes the parameters out of the end of an address. The path of a
// document is matched, not the address that the importer wrote.
func pathValues(path string, u *url.URL) (map[string]string, error) {
	path, _, _ = strings.Cut(path, "?")
	if strings.Contains(path, "}{") {
		return nil, fmt.Errorf("no path: two parameters touch")
	}
	var names []string
	for _, m := range regexp.MustCompile(`\{([^{}]*)\}`).FindAllStringSubmatch(path, -1) {
		names = append(names, m[1])
	}
	pattern := hole.ReplaceAllString(regexp.QuoteMeta(path), `([^/]*?)`)
	m := regexp.MustCompile(pattern + "$").FindStringSubmatch(u.EscapedPath())
	if m == nil {
		decoded := regexp.MustCompile(pattern + "$").FindStringSubmatch(u.Path)
		if decoded == nil {
			return nil, fmt.Errorf("the address %s does not end like %s", u.EscapedPath(), path)
		}
		m = decoded
	}
	out := map[string]string{}
	for i, n := range names {
		v, err := url.PathUnescape(m[i+1])
		if err != nil {
			return nil, err
		}
		out[n] = v
	}
	return out, nil
}

// exampleArgs makes arguments out of an input schema: the required ones, or
// all. ok is false when a pattern asks for what cannot be made up.
func exampleArgs(schema recipe.Value, all bool) (args recipe.Value, ok bool) {
	return exampleOf(schema, all, 0)
}

func exampleOf(schema recipe.Value, all bool, level int) (recipe.Value, bool) {
	o, _ := schema.(recipe.Object)
	member := func(key string) recipe.Value { v, _ := o.Get(key); return v }
	kind, _ := member("type").(string)
	if list, ok := member("type").(recipe.Array); ok {
		kind, _ = list[0].(string)
	}
	if v, ok := o.Get("default"); ok {
		return v, true
	}
	if list, ok := member("enum").(recipe.Array); ok {
		return list[0], true
	}
	pattern, _ := member("pattern").(string)
	if list, ok := member("examples").(recipe.Array); ok && fits(o, kind, list[0]) {
		return list[0], true
	}
	limit := func(key string) float64 {
		n, _ := member(key).(json.Number)
		f, _ := n.Float64()
		return f
	}
	switch kind {
	case "object":
		out := recipe.Object{}
		needed := map[string]bool{}
		for _, n := range list(member("required")) {
			needed[n.(string)] = true
		}
		props, _ := member("properties").(recipe.Object)
		for _, p := range props {
			if !needed[p.Key] && (!all || level > 2) {
				continue
			}
			v, ok := exampleOf(p.Value, all, level+1)
			if !ok && needed[p.Key] {
				return nil, false
			}
			if ok {
				out = append(out, recipe.Member{Key: p.Key, Value: v})
			}
		}
		return out, true
	case "array":
		items, _ := o.Get("items")
		n := max(1, int(limit("minItems")))
		out := recipe.Array{}
		for range min(n, 50) {
			v, ok := exampleOf(items, all, level+1)
			if !ok {
				return nil, false
			}
			out = append(out, v)
		}
		return out, true
	case "integer", "number":
		least, has := o.Get("minimum")
		if has {
			return least, true
		}
		if most, has := o.Get("maximum"); has && limit("maximum") < 1 {
			return most, true
		}
		return json.Number("1"), true
	case "boolean":
		return true, true
	case "string":
		format, _ := member("format").(string)
		s, ok := map[string]string{
			"date": "2026-01-02", "date-time": "2026-01-02T03:04:05Z", "uuid": "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
			"email": "ada@example.com", "uri": "https://api.example.com/a?b=c", "url": "https://api.example.com/a?b=c", "ipv4": "192.0.2.1", "byte": "YQ==",
		}[format]
		if !ok {
			s = "a b/c&d=é+,"
		}
		if about, _ := member("description").(string); strings.HasPrefix(about, "JSON text") {
			s = "{}"
		}
		for len([]rune(s)) < min(int(limit("minLength")), 300) {
			s += "x"
		}
		if most := int(limit("maxLength")); most > 0 && len([]rune(s)) > most {
			s = "abcdefghijk"[:min(most, 11)]
		}
		if !fits(o, kind, s) {
			for _, try := range []string{"a", "abc", "1", "A", "ABC", "12345", "a1", "en", "abc-def", "1h", "123456789012", "ABCDEFGHIJ"} {
				if fits(o, kind, try) {
					return try, true
				}
			}
			return nil, pattern == ""
		}
		return s, true
	}
	return "text", true
}

func list(v recipe.Value) recipe.Array { a, _ := v.(recipe.Array); return a }

// fits asks the wrapper's own validation.
func fits(schema recipe.Object, kind string, v recipe.Value) bool {
	inner := recipe.Object{{Key: "type", Value: "object"}, {Key: "properties", Value: recipe.Object{{Key: "v", Value: schema}}}}
	doc := recipe.Encode(recipe.Object{
		{Key: "schemaVersion", Value: json.Number("1")},
		{Key: "id", Value: "x"},
		{Key: "request", Value: recipe.Object{{Key: "method", Value: "POST"}, {Key: "url", Value: "https://api.example.com/"}, {Key: "body", Value: "{{v}}"}}},
		{Key: "inputSchema", Value: inner},
	})
	w, _ := wrapper.Parse(doc)
	if w == nil {
		return false
	}
	_, err := w.Build(recipe.Encode(recipe.Object{{Key: "v", Value: v}}))
	return err == nil
}

// reduced counts bodies whose values the judge does not take, where the draft's
// notes say that its schema is wider than the document's.
type verdict struct{ drafts, refused, judged, reduced, wrong, unmade, unread int }

// tally imports a document and lets the oracle judge what each draft sends,
// with the required arguments alone and with all.
func tally(t *testing.T, name string, data []byte, o importer.Options, problem func(string)) (v verdict) {
	t.Helper()
	r, err := importer.OpenAPI(data, o)
	if err != nil {
		v.unread++
		return v
	}
	v.drafts, v.refused = len(r.Drafts), len(r.Refused)
	doc, err := loadKin(data)
	if err != nil {
		v.unmade += v.drafts
		return v
	}
	ids := map[string]bool{}
	for _, d := range r.Drafts {
		if low := strings.ToLower(d.ID); ids[low] {
			t.Errorf("%s: id %s twice", name, d.ID)
		} else {
			ids[low] = true
		}
		w, report := wrapper.Parse(d.Document)
		if w == nil {
			t.Errorf("%s: %s does not parse: %v", name, d.Operation, report.Problems)
			continue
		}
		for _, all := range []bool{false, true} {
			args, ok := exampleArgs(w.Input.Document(), all)
			if !ok {
				v.unmade++
				continue
			}
			call, err := w.Build(recipe.Encode(args))
			if err != nil {
				v.unmade++
				continue
			}
			v.judged++
			firstPage(w, call)
			if err := judge(doc, d.Operation, call, droppedHeaders(r, d.Operation)); err != nil {
				form := strings.Contains(string(d.Document), `"bodyType":"form"`) && strings.Contains(err.Error(), "Value is not nullable")
				if form || slices.ContainsFunc(cannot, func(text string) bool { return strings.Contains(err.Error(), text) }) {
					v.judged-- // what the judge cannot judge
					v.unmade++
					continue
				}
				if widened(d) && (strings.Contains(err.Error(), "match") || strings.Contains(err.Error(), "allowed values")) {
					v.reduced++
					continue
				}
				v.wrong++
				problem(fmt.Sprintf("%s: %s (all %v)\n  %s %s\n  %s\n  %v", name, d.Operation, all, call.Method, call.URL, call.Body, err))
			}
		}
	}
	return v
}

// cannot are faults of the judge: it has no way to a cookie or a form without
// a schema, takes no address with a query in its path and no path parameter that
// its path does not have, does not know ECMAScript's patterns, and reads any
// value as an empty one, in a form as null.
var cannot = []string{
	"security requirements failed", "unsupported schema of request body", "in cookie has an error", "no path", "the judge panicked",
	"in path has an error: value is required but missing", "error parsing regexp", "empty value is not allowed",
}

// widened reports whether a draft says that its arguments may hold more than
// the document allows.
func widened(d importer.Draft) bool {
	for _, n := range d.Notes {
		for _, w := range []string{"alternatives", "contains itself", "left to the API", "deep inside"} {
			if strings.Contains(n, w) {
				return true
			}
		}
	}
	return false
}

// droppedHeaders are the headers of an operation that the report names as
// credentials.
func droppedHeaders(r *importer.Result, operation string) []string {
	var out []string
	for _, d := range r.Dropped {
		if name, of, _ := strings.Cut(strings.TrimPrefix(d, "header "), " of "); of == operation && strings.HasPrefix(d, "header ") {
			out = append(out, name)
		}
	}
	return out
}

// firstPage sets what the walk through pages sets.
func firstPage(w *wrapper.Wrapper, call *wrapper.Call) {
	if w.Response == nil || w.Response.Pagination.Type != "offset" {
		return
	}
	p, q := w.Response.Pagination, call.URL.Query()
	q.Set(p.OffsetParam, fmt.Sprint(p.Start))
	q.Set(p.LimitParam, fmt.Sprint(p.PageSize))
	call.URL.RawQuery = q.Encode()
}
