package importer

import (
	"regexp"
	"slices"
	"strings"

	"github.com/hyperbolic-gateway/hb-rest/internal/redact"
	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// Postman drafts a wrapper for each request of a Postman collection of version
// 2.0 or 2.1, as it was exported. Folders become tags, path variables and
// {{variables}} become arguments, with the collection's values as defaults
// unless they look like credentials. Saved answers make the recipes. Scripts
// are not run.
//
// Errors are *fault.Error IMPORT_INVALID: the text is no such collection.
func Postman(data []byte, o Options) (*Result, error) {
	root, err := readJSON(data, "collection")
	if err != nil {
		return nil, err
	}
	if inner := object(root, "collection"); inner != nil && !has(root, "item") {
		root = inner // as Postman's API wraps it
	}
	switch {
	case has(root, "log"):
		return nil, invalidHint("Import it with `hbrestd import har FILE`.", "this is a HAR file")
	case has(root, "openapi") || has(root, "swagger"):
		return nil, invalidHint("Import it with `hbrestd import openapi FILE`.", "this is an OpenAPI document")
	case has(root, "requests") && has(root, "order"):
		return nil, invalidHint("Export it again as Collection v2.1.", "this is a collection of version 1, which is not read")
	case has(root, "values") && !has(root, "item"):
		return nil, invalidHint("Export the collection itself.", "this is a Postman environment, not a collection")
	case !has(root, "item"):
		return nil, invalid("the collection has no member item")
	}
	r := newRecording(o, brief(text(object(root, "info"), "name"), nameText))
	p := &postman{run: r, seen: map[string]bool{}}
	p.walk(postmanFolder{variables: map[string]postmanVariable{}}, root)
	if p.requests == 0 {
		return nil, invalid("the collection has no request")
	}
	return r.drafts(p.list)
}

// A postman is one run of Postman.
type postman struct {
	run      *recording
	list     []*sent
	requests int
	seen     map[string]bool // variables whose value was dropped
}

// A postmanFolder is what its requests inherit.
type postmanFolder struct {
	tags      []string
	auth      recipe.Object // nil: none
	variables map[string]postmanVariable
}

type postmanVariable struct {
	value string
	known bool
	about string
}

// walk reads a folder; the collection is the outermost.
func (p *postman) walk(f postmanFolder, v recipe.Object) {
	if a, ok := get(v, "auth").(recipe.Object); ok {
		f.auth = a
	}
	f.variables = p.variables(f.variables, array(v, "variable"))
	if scripts(v) {
		p.run.note("scripts of the collection and its folders are not run")
	}
	for _, e := range array(v, "item") {
		item, ok := e.(recipe.Object)
		if !ok {
			continue
		}
		if has(item, "item") {
			inner := f
			if name := brief(text(item, "name"), nameText); name != "" {
				inner.tags = append(slices.Clone(f.tags), name)
			}
			p.walk(inner, item)
			continue
		}
		if has(item, "request") {
			p.requests++
			p.list = append(p.list, p.request(f, item))
		}
	}
}

func scripts(v recipe.Object) bool {
	return slices.ContainsFunc(array(v, "event"), func(e recipe.Value) bool {
		s := object(e, "script")
		lines := array(s, "exec")
		return slices.ContainsFunc(lines, func(l recipe.Value) bool { s, _ := l.(string); return strings.TrimSpace(s) != "" }) || text(s, "exec") != ""
	})
}

// variables adds those of one folder. The value of a credential is dropped.
func (p *postman) variables(outer map[string]postmanVariable, list recipe.Array) map[string]postmanVariable {
	if len(list) == 0 {
		return outer
	}
	out := map[string]postmanVariable{}
	for k, v := range outer {
		out[k] = v
	}
	for _, e := range list {
		name := text(e, "key")
		if name == "" {
			name = text(e, "id")
		}
		if name == "" || flag(e, "disabled") || strings.ContainsAny(name, holeMarks) {
			continue
		}
		value, isText := get(e, "value").(string)
		if !isText {
			if v := get(e, "value"); v != nil {
				value = string(recipe.Encode(v))
			}
		}
		v := postmanVariable{value: value, known: value != "", about: describe(e)}
		if v.known && (text(e, "type") == "secret" || redact.CredentialKey(name) || !clean("", value)) {
			p.run.credential(value)
			p.run.drop("variable %s", cut(cleanText(name), 40))
			v.value, v.known = "", false
		}
		if strings.ContainsAny(v.value, holeMarks) {
			v.value, v.known = "", false
		}
		out[name] = v
	}
	return out
}

// describe is a description, which is a text or an object with one.
func describe(v recipe.Value) string {
	if s := text(v, "description"); s != "" {
		return s
	}
	return text(object(v, "description"), "content")
}

// request reads one item.
func (p *postman) request(f postmanFolder, item recipe.Object) *sent {
	q := get(item, "request")
	if address, ok := q.(string); ok {
		q = recipe.Object{{Key: "url", Value: address}}
	}
	s := &sent{
		method: strings.ToUpper(text(q, "method")), name: text(item, "name"), about: describe(q), tags: f.tags,
		holes: map[string]hole{}, queryAbout: map[string]string{},
	}
	if s.about == "" {
		s.about = describe(item)
	}
	if s.method == "" {
		s.method = "GET"
	}
	t := &postmanText{folder: p.local(f, item), s: s}
	if strings.ContainsAny(string(recipe.Encode(q)), holeMarks) {
		s.err = refuse("TEMPLATE_TEXT", "it has characters of the private use area in it")
		s.address = "https://invalid/"
		return s
	}
	if scripts(item) {
		s.notes = append(s.notes, "its scripts are not run")
	}
	s.address = t.address(get(q, "url"), p.run.options.BaseURL != "")
	s.headers = t.headers(get(q, "header"))
	t.body(object(q, "body"))
	auth := f.auth
	if a, ok := get(q, "auth").(recipe.Object); ok {
		auth = a
	}
	p.auth(s, auth)
	for _, e := range array(item, "response") {
		code := text(e, "code")
		if len(code) != 3 || code[0] != '2' {
			continue
		}
		if v, err := recipe.Decode([]byte(text(e, "body")), recipe.DecodeLimits{Depth: maxNesting}); err == nil && s.answer == nil {
			s.answer = v
		}
	}
	return s
}

// local adds the variables of one item.
func (p *postman) local(f postmanFolder, item recipe.Object) postmanFolder {
	f.variables = p.variables(f.variables, array(item, "variable"))
	return f
}

// A postmanText writes the variables of a request's texts as holes.
type postmanText struct {
	folder postmanFolder
	s      *sent
}

var (
	mustache = regexp.MustCompile(`\{\{([^{}]+)\}\}`)
	holeKey  = regexp.MustCompile(`[^A-Za-z0-9_.$-]`) // what would end a part of an address
)

// text replaces variables. A value that literal admits not is put in at once;
// every other variable becomes a hole.
func (t *postmanText) text(s string, asDefault func(string) bool, depth int) string {
	return mustache.ReplaceAllStringFunc(s, func(m string) string {
		name := strings.TrimSpace(m[2 : len(m)-2])
		v := t.folder.variables[name]
		if strings.HasPrefix(name, "$") {
			t.note("Postman makes %s up for each request; here it is an argument", cut(cleanText(name), 40))
		}
		if v.known && (asDefault == nil || mustache.MatchString(v.value) || !asDefault(v.value)) {
			if depth > 8 {
				t.refuse("VARIABLE", "the variable %s stands for itself", cut(cleanText(name), 40))
				return ""
			}
			return t.text(v.value, asDefault, depth+1)
		}
		key := holeKey.ReplaceAllString(name, "_")
		t.s.holes[key] = hole{value: v.value, known: v.known, about: v.about, from: strings.TrimPrefix(name, "$")}
		return holeText(key)
	})
}

func (t *postmanText) note(format string, args ...any) {
	if s := sprintf(format, args...); !slices.Contains(t.s.notes, s) {
		t.s.notes = append(t.s.notes, s)
	}
}

func (t *postmanText) refuse(code, format string, args ...any) {
	if t.s.err == nil {
		t.s.err = refuse(code, format, args...)
	}
}

func anyValue(string) bool { return true }

// address is the URL. elsewhere is set when another server was chosen, which
// then stands for a variable at the beginning.
func (t *postmanText) address(v recipe.Value, elsewhere bool) string {
	raw, ok := v.(string)
	if !ok {
		if raw = text(v, "raw"); raw == "" {
			raw = postmanURL(v)
		}
	}
	raw, _, _ = strings.Cut(strings.TrimSpace(raw), "#")
	raw, query, _ := strings.Cut(raw, "?")
	// Scheme and host cannot be arguments.
	end := len(raw)
	scheme := strings.Index(raw, "://")
	if i := strings.Index(raw[scheme+1:], "/"); scheme < 0 && i >= 0 {
		end = i
	} else if scheme >= 0 {
		if i := strings.IndexByte(raw[scheme+3:], '/'); i >= 0 {
			end = scheme + 3 + i
		}
	}
	host, path := raw[:end], raw[end:]
	if elsewhere && mustache.MatchString(host) && strings.HasPrefix(host, "{{") {
		host = "https://" + mustache.ReplaceAllString(host, "host")
	}
	host = t.text(host, nil, 0)
	switch {
	case strings.HasPrefix(host, string(holeOpen)):
		host = "https://" + host
	case !strings.Contains(host, "://"):
		host = "http://" + host
	}
	address := strings.TrimRight(host, "/") + t.path(path, array(v, "variable"))
	if list, ok := get(v, "query").(recipe.Array); ok {
		query = t.query(list)
	} else if query != "" {
		query = postmanEscaped(t.text(query, exact, 0))
	}
	if query != "" {
		address += "?" + query
	}
	return address
}

// postmanURL puts an address together that came in parts.
func postmanURL(v recipe.Value) string {
	parts := func(key, between string) string {
		if s := text(v, key); s != "" {
			return s
		}
		var out []string
		for _, e := range array(v, key) {
			if s, ok := e.(string); ok {
				out = append(out, s)
			} else {
				out = append(out, text(e, "value"))
			}
		}
		return strings.Join(out, between)
	}
	s := parts("host", ".")
	if protocol := text(v, "protocol"); protocol != "" {
		s = protocol + "://" + s
	}
	if port := text(v, "port"); port != "" {
		s += ":" + port
	}
	if path := parts("path", "/"); path != "" {
		s += "/" + strings.TrimPrefix(path, "/")
	}
	return s
}

// path replaces variables and gives path variables their values.
func (t *postmanText) path(p string, variables recipe.Array) string {
	p = postmanEscaped(t.text(p, func(s string) bool { return exact(s) }, 0))
	for _, e := range variables {
		name := text(e, "key")
		if name == "" {
			continue
		}
		h := hole{about: describe(e)}
		value := text(e, "value")
		if m := mustache.FindStringSubmatch(value); m != nil && m[0] == value {
			v := t.folder.variables[strings.TrimSpace(m[1])]
			value = v.value
			if h.about == "" {
				h.about = v.about
			}
		}
		if value != "" && exact(value) && !isPlaceholder(value) && !mustache.MatchString(value) {
			h.value, h.known = value, true
		}
		t.s.holes[name] = h
	}
	return p
}

func (t *postmanText) query(list recipe.Array) string {
	var out []string
	for _, e := range list {
		if flag(e, "disabled") {
			continue
		}
		name := t.text(text(e, "key"), nil, 0)
		value, given := get(e, "value"), has(e, "value")
		piece := strings.ReplaceAll(strings.ReplaceAll(postmanEscaped(name), "&", "%26"), "=", "%3D")
		if given && value != nil {
			piece += "=" + strings.ReplaceAll(postmanEscaped(t.text(text(e, "value"), exact, 0)), "&", "%26")
		}
		if about := describe(e); about != "" {
			t.s.queryAbout[unescaped(name)] = about
		}
		if name != "" || given {
			out = append(out, piece)
		}
	}
	return strings.Join(out, "&")
}

// postmanEscaped escapes what Postman escapes in an address: what cannot stand
// there. Holes stay.
func postmanEscaped(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r <= ' ' || r == 0x7f || r > 0x7e && !strings.ContainsRune(holeMarks, r) || strings.ContainsRune(`"#'<>`, r) {
			b.WriteString(escaped(string(r)))
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

func (t *postmanText) headers(v recipe.Value) []header {
	var out []header
	if s, ok := v.(string); ok {
		for _, line := range strings.Split(s, "\n") {
			if name, value, ok := strings.Cut(line, ":"); ok && !strings.HasPrefix(name, "//") {
				out = append(out, header{strings.TrimSpace(name), t.text(strings.TrimSpace(value), anyValue, 0)})
			}
		}
		return out
	}
	list, _ := v.(recipe.Array)
	for _, e := range list {
		if name := strings.TrimSpace(text(e, "key")); name != "" && !flag(e, "disabled") {
			out = append(out, header{name, t.text(strings.TrimSpace(text(e, "value")), anyValue, 0)})
		}
	}
	return out
}

// rawTypes are the Content-Types that Postman sends for its languages.
var rawTypes = map[string]string{
	"json": "application/json", "xml": "application/xml", "html": "text/html", "javascript": "application/javascript", "text": "text/plain", "": "text/plain",
}

// body reads the body of any mode.
func (t *postmanText) body(b recipe.Object) {
	if flag(b, "disabled") {
		return
	}
	s := t.s
	media := ""
	switch mode := text(b, "mode"); mode {
	case "":
	case "raw":
		if s.body = text(b, "raw"); s.body == "" {
			return
		}
		s.body, s.hasBody = t.text(s.body, anyValue, 0), true
		media = rawTypes[text(object(object(b, "options"), "raw"), "language")]
	case "urlencoded":
		var out []string
		for _, e := range array(b, "urlencoded") {
			if flag(e, "disabled") {
				continue
			}
			name := t.text(text(e, "key"), nil, 0)
			out = append(out, formText(name)+"="+formText(t.text(text(e, "value"), anyValue, 0)))
			if about := describe(e); about != "" {
				s.queryAbout[name] = about
			}
		}
		if len(out) > 0 {
			s.body, s.hasBody, media = strings.Join(out, "&"), true, formMedia
		}
	case "graphql":
		g := object(b, "graphql")
		variables := recipe.Value(recipe.Object{})
		if given := strings.TrimSpace(t.text(text(g, "variables"), anyValue, 0)); given != "" {
			v, err := recipe.Decode([]byte(quoteBare(given)), recipe.DecodeLimits{Depth: maxNesting})
			if err != nil {
				t.refuse("BODY_INVALID", "its GraphQL variables are no JSON")
				return
			}
			variables = v
		} else if v := get(g, "variables"); isObject(v) {
			variables = v
		}
		s.body = string(recipe.Encode(recipe.Object{{Key: "query", Value: t.text(text(g, "query"), anyValue, 0)}, {Key: "variables", Value: variables}}))
		// What was a bare hole stands in quotes now.
		s.body = bareAgain.ReplaceAllString(s.body, string(holeOpen)+"$1"+string(holeClose))
		s.hasBody, media = true, "application/json"
	case "formdata":
		if len(array(b, "formdata")) > 0 {
			t.refuse("MULTIPART", "a body of several parts (form-data) cannot be sent")
		}
	case "file":
		t.refuse("FILE", "its body comes from a file, which is not read")
	default:
		t.refuse("BODY_TYPE", "a body of the mode %s cannot be sent", cut(cleanText(mode), 20))
	}
	if media != "" && !slices.ContainsFunc(s.headers, func(h header) bool { return strings.EqualFold(h.name, "Content-Type") }) {
		s.headers = append(s.headers, header{"Content-Type", media})
	}
}

var bareAgain = regexp.MustCompile("\"\ue002([^\ue000-\ue002]*)\ue001\"")

func isObject(v recipe.Value) bool {
	_, ok := v.(recipe.Object)
	return ok
}

// formText escapes a text of a form. Holes stay.
func formText(s string) string {
	var b strings.Builder
	last := 0
	for _, m := range anyHole.FindAllStringIndex(s, -1) {
		b.WriteString(formEscaped(s[last:m[0]]))
		b.WriteString(s[m[0]:m[1]])
		last = m[1]
	}
	b.WriteString(formEscaped(s[last:]))
	return b.String()
}
