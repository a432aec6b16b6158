package importer

import (
	"encoding/base64"
	"slices"
	"strconv"
	"strings"

	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// HAR drafts wrappers from the requests that a browser recorded. Only calls of
// an API are taken: those that scripts made, or that answered with JSON. Calls
// of one method and path become one draft; query values that differ between
// them become arguments. What came back makes the recipe, and is kept in no
// other way. Cookies, credentials and the headers that browsers add are left
// out.
//
// Errors are *fault.Error IMPORT_INVALID: the text is no HAR file, or has no
// such call.
func HAR(data []byte, o Options) (*Result, error) {
	if len(data) > MaxSource {
		return nil, invalidHint("Record fewer pages, or filter for Fetch/XHR before saving.", "the HAR file has %d bytes, at most %d are read", len(data), MaxSource)
	}
	root, err := readJSON(data, "HAR file")
	if err != nil {
		return nil, err
	}
	switch {
	case has(root, "item") && has(root, "info"):
		return nil, invalidHint("Import it with `hbrestd import postman FILE`.", "this is a Postman collection")
	case has(root, "openapi") || has(root, "swagger"):
		return nil, invalidHint("Import it with `hbrestd import openapi FILE`.", "this is an OpenAPI document")
	}
	log := object(root, "log")
	entries, ok := get(log, "entries").(recipe.Array)
	if !ok {
		return nil, invalid("the HAR file has no member log.entries")
	}
	r := newRecording(o, "")
	r.noisy = true
	h := &har{run: r, groups: map[string]*harGroup{}}
	for _, e := range entries {
		h.entry(e)
	}
	if len(h.order) == 0 {
		return nil, invalidHint("Record the page again with the developer tools open, and save all as HAR with content.", "none of the %d recorded requests is a call of an API that succeeded", len(entries))
	}
	if h.other > 0 {
		r.note("%d of %d recorded requests are no calls of an API: pages, scripts, pictures", h.other, len(entries))
	}
	if h.failed > 0 {
		r.note("%d of %d recorded requests failed and are left out", h.failed, len(entries))
	}
	var list []*sent
	for _, g := range h.order {
		list = append(list, g.merged(r))
	}
	return r.drafts(list)
}

// A har is one run of HAR.
type har struct {
	run           *recording
	groups        map[string]*harGroup
	order         []*harGroup
	other, failed int
}

// A harGroup is the calls that become one draft.
type harGroup struct {
	calls   []*sent
	queries [][]pair
}

func (h *har) entry(e recipe.Value) {
	request, response := object(e, "request"), object(e, "response")
	address := text(request, "url")
	lower := strings.ToLower(address)
	method := strings.ToUpper(text(request, "method"))
	if !strings.HasPrefix(lower, "http://") && !strings.HasPrefix(lower, "https://") || method == "OPTIONS" || method == "CONNECT" {
		h.other++
		return
	}
	content := object(response, "content")
	media := text(content, "mimeType")
	made := text(e, "_resourceType")
	byScript := made == "xhr" || made == "fetch"
	isJSON := mediaKind(media) == "json"
	status, _ := strconv.Atoi(text(response, "status"))
	empty := status == 204 || status == 205 || status == 304 || text(content, "text") == "" && (media == "" || media == "x-unknown")
	writes := method != "GET" && method != "HEAD"
	if !isJSON && !(byScript && empty) && !(made == "" && empty && writes) {
		h.other++
		return
	}
	if status != 304 && (status < 200 || status > 299) {
		h.failed++
		return
	}
	s := &sent{method: method, address: withoutMarks(address)}
	for _, m := range array(request, "headers") {
		if name := text(m, "name"); name != "" {
			s.headers = append(s.headers, header{withoutMarks(name), withoutMarks(strings.TrimSpace(text(m, "value")))})
		}
	}
	if len(array(request, "cookies")) > 0 && !slices.ContainsFunc(s.headers, func(x header) bool { return strings.EqualFold(x.name, "Cookie") }) {
		var all []string
		for _, c := range array(request, "cookies") {
			all = append(all, text(c, "name")+"="+text(c, "value"))
		}
		s.headers = append(s.headers, header{"Cookie", withoutMarks(strings.Join(all, "; "))})
	}
	harBody(s, object(request, "postData"))
	if isJSON {
		s.answer = harAnswer(content)
	}
	h.group(s)
}

func withoutMarks(s string) string {
	if !strings.ContainsAny(s, holeMarks) {
		return s
	}
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(holeMarks, r) {
			return 0xfffd
		}
		return r
	}, s)
}

func harBody(s *sent, post recipe.Object) {
	media := text(post, "mimeType")
	body := text(post, "text")
	if body == "" {
		var out []string
		for _, p := range array(post, "params") {
			if has(p, "fileName") {
				media = "multipart/form-data"
			}
			out = append(out, text(p, "name")+"="+text(p, "value"))
			if mediaKind(media) == "form" {
				// Params are decoded in some recordings and not in others: text is the
				// exact one, and without it the usual escaping is right for plain ones.
				out[len(out)-1] = formEscaped(unescaped(text(p, "name"))) + "=" + formEscaped(unescaped(text(p, "value")))
			}
		}
		body = strings.Join(out, "&")
	}
	if body == "" {
		return
	}
	s.body, s.hasBody = withoutMarks(body), true
	if text(post, "encoding") == "base64" {
		plain, err := base64.StdEncoding.DecodeString(body)
		if err != nil {
			s.err = refuse("BODY_INVALID", "its body was recorded as Base64, and is none")
		}
		s.body = withoutMarks(string(plain))
	}
	if media != "" && !slices.ContainsFunc(s.headers, func(x header) bool { return strings.EqualFold(x.name, "Content-Type") }) {
		s.headers = append(s.headers, header{"Content-Type", media})
	}
}

// harAnswer is what came back, nil when it was not recorded whole.
func harAnswer(content recipe.Object) recipe.Value {
	body := []byte(text(content, "text"))
	if strings.EqualFold(text(content, "encoding"), "base64") {
		plain, err := base64.StdEncoding.DecodeString(string(body))
		if err != nil {
			return nil
		}
		body = plain
	}
	v, err := recipe.Decode(body, recipe.DecodeLimits{Depth: maxNesting})
	if err != nil {
		return nil
	}
	return v
}

// group puts a call to those of the same method, path and kind of body.
func (h *har) group(s *sent) {
	at, query, _ := strings.Cut(s.address, "?")
	query, _, _ = strings.Cut(query, "#")
	key := s.method + " " + at + " " + bodyKind(s)
	g := h.groups[key]
	if g == nil {
		g = &harGroup{}
		h.groups[key] = g
		h.order = append(h.order, g)
	}
	g.calls = append(g.calls, s)
	var pairs []pair
	if query != "" {
		pairs = splitQuery(query)
	}
	g.queries = append(g.queries, pairs)
}

// bodyKind tells bodies apart that are different operations: other members, or
// another operation of GraphQL.
func bodyKind(s *sent) string {
	if !s.hasBody {
		return ""
	}
	v, err := recipe.Decode([]byte(s.body), recipe.DecodeLimits{Depth: maxNesting})
	if err != nil {
		if pairs, why := formPairs(s.body); why == "" {
			var names []string
			for _, p := range pairs {
				names = append(names, p.name)
			}
			return strings.Join(names, " ")
		}
		return "text"
	}
	o, ok := v.(recipe.Object)
	if !ok {
		return "json"
	}
	var names []string
	for _, m := range o {
		names = append(names, m.Key)
	}
	slices.Sort(names)
	return strings.Join(names, " ") + " " + text(o, "operationName")
}

// merged makes one request of a group: the first, with the query parameters
// that differ, and with what the others know.
func (g *harGroup) merged(r *recording) *sent {
	s := g.calls[0]
	type seen struct {
		calls  int
		values []string
		many   bool // more than once in one call
	}
	names := map[string]*seen{}
	for _, pairs := range g.queries {
		here := map[string]bool{}
		for _, p := range pairs {
			x := names[p.name]
			if x == nil {
				x = &seen{}
				names[p.name] = x
			}
			x.many = x.many || here[p.name] || !p.eq
			if !here[p.name] {
				x.calls++
			}
			here[p.name] = true
			if !slices.Contains(x.values, p.value) {
				x.values = append(x.values, p.value)
			}
		}
	}
	s.varying = map[string]varying{}
	for name, x := range names {
		always := x.calls == len(g.calls)
		if name == "" || x.many || always && len(x.values) == 1 {
			continue
		}
		s.varying[name] = varying{always, x.values}
	}
	if len(g.calls) > 1 {
		s.notes = append(s.notes, sprintf("made from %d recorded calls", len(g.calls)))
	}
	for _, other := range g.calls[1:] {
		// What is a credential there must not show here either.
		scratch := r.prepare(other)
		scratch.headersAndCredentials()
		if s.auth == nil && other.auth != nil {
			s.auth = other.auth
		}
		if s.answer == nil || isEmpty(s.answer) && other.answer != nil {
			s.answer = other.answer
		}
	}
	return s
}

func isEmpty(v recipe.Value) bool {
	a, ok := v.(recipe.Array)
	return ok && len(a) == 0
}
