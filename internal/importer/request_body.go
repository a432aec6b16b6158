package importer

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/hyperbolic-gateway/hb-rest/internal/redact"
	"github.com/hyperbolic-gateway/hb-rest/internal/wrapper"
	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

const formMedia = "application/x-www-form-urlencoded"

// maxBodyArgs bounds the arguments that one body makes.
const maxBodyArgs = 100

// bodyOf makes the body of the template.
func (rec *recorded) bodyOf() error {
	s := rec.sent
	if s.bodyIsForm && rec.media == "" {
		rec.media = formMedia
	}
	if !s.hasBody || s.body == "" {
		rec.contentType(rec.media, "")
		return nil
	}
	if rec.media == "" {
		return refuse("CONTENT_TYPE", "it sends a body without a Content-Type, which is not done")
	}
	if rec.method == "GET" || rec.method == "HEAD" {
		return refuse("BODY_NOT_ALLOWED", "a body cannot be sent with %s", rec.method)
	}
	if !utf8.ValidString(s.body) || strings.ContainsRune(s.body, 0) {
		return refuse("BODY_TYPE", "its body is binary")
	}
	kind := mediaKind(rec.media)
	switch kind {
	case "json":
		return rec.jsonText("application/json")
	case "form":
		if looksLikeJSON(s.body) {
			rec.notes.add("its JSON is sent with Content-Type %s, as the source does; where the API wants JSON, take that header out", cut(rec.media, 60))
			return rec.jsonText("")
		}
		return rec.formText()
	case "multipart":
		return refuse("MULTIPART", "a body of several parts (multipart) cannot be sent")
	}
	return rec.plainText()
}

func looksLikeJSON(s string) bool {
	s = strings.TrimSpace(s)
	if !strings.HasPrefix(s, "{") && !strings.HasPrefix(s, "[") {
		return false
	}
	_, err := recipe.Decode([]byte(quoteBare(s)), recipe.DecodeLimits{Depth: maxNesting})
	return err == nil
}

// quoteBare puts the holes of a JSON text that stand outside of quotes into
// quotes, and marks them.
func quoteBare(s string) string {
	var b strings.Builder
	inside, escape, bare := false, false, false
	for i, r := range s {
		switch {
		case escape:
			escape = false
		case inside && r == '\\':
			escape = true
		case r == '"':
			inside = !inside
		case r == holeOpen && !inside:
			if end := strings.IndexRune(s[i:], holeClose); end > 0 {
				b.WriteByte('"')
				b.WriteRune(holeBare)
				inside, bare = true, true // until the mark that closes it
				continue
			}
		case r == holeClose && bare:
			b.WriteRune(r)
			b.WriteByte('"')
			inside, bare = false, false
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// bareHoles finds the holes that are values of JSON, so that their arguments
// can be numbers wherever else they stand.
func (rec *recorded) bareHoles() error {
	if !rec.sent.hasBody || mediaKind(rec.media) != "json" && !looksLikeJSON(rec.sent.body) {
		return nil
	}
	rec.bare = map[string]bool{}
	quoted := map[string]bool{}
	for _, m := range anyHole.FindAllStringSubmatch(quoteBare(rec.sent.body), -1) {
		if strings.HasPrefix(m[0], string(holeBare)) {
			rec.bare[m[1]] = true
		} else {
			quoted[m[1]] = true
		}
	}
	for name := range rec.bare {
		if quoted[name] {
			return refuse("TEMPLATE_TEXT", "the variable %s stands in its JSON both in quotes and without", cut(cleanText(name), 40))
		}
	}
	return nil
}

func jsonType(v recipe.Value) string {
	switch v := v.(type) {
	case string:
		return "string"
	case bool:
		return "boolean"
	case json.Number:
		if wholeNumber.MatchString(string(v)) {
			return "integer"
		}
		return "number"
	case recipe.Array:
		return "array"
	case recipe.Object:
		return "object"
	}
	return ""
}

// jsonText makes a body of JSON. own is the Content-Type that is sent without
// a header for it.
func (rec *recorded) jsonText(own string) error {
	v, err := recipe.Decode([]byte(quoteBare(rec.sent.body)), recipe.DecodeLimits{Depth: maxNesting, UniqueKeys: true})
	if err != nil {
		return refuse("BODY_INVALID", "its body is no JSON, though it is sent as such")
	}
	rec.bodyAs = wrapper.BodyJSON
	rec.contentType(rec.media, own)
	o, ok := v.(recipe.Object)
	if !ok || len(o) > maxBodyArgs {
		if jsonPlain(v) && clean("", v) && len(recipe.Encode(v)) <= maxDefault {
			rec.body = rec.valueArg("body", "request", v, jsonType(v), "")
			if jsonType(v) == "" {
				rec.body = nil
				return refuse("BODY_INVALID", "its body is null")
			}
			return nil
		}
		rec.body, err = rec.jsonValue("body", v)
		return err
	}
	body := recipe.Object{}
	for _, m := range o {
		if strings.ContainsAny(m.Key, holeMarks) {
			return refuse("TEMPLATE_TEXT", "the name of a member of its body is a placeholder")
		}
		v, err := rec.jsonMember(m.Key, m.Value)
		if err != nil {
			return err
		}
		body = append(body, recipe.Member{Key: m.Key, Value: v})
	}
	rec.body = body
	return nil
}

// maxDefault is the most bytes of JSON in the default of an argument: every
// session that sees the tool pays for it.
const maxDefault = 2 << 10

// jsonMember is a member at the top of a body: an argument as a rule.
func (rec *recorded) jsonMember(name string, v recipe.Value) (recipe.Value, error) {
	if v == nil || !jsonPlain(v) || !clean(name, v) || len(recipe.Encode(v)) > maxDefault || name == "" {
		return rec.jsonValue(name, v)
	}
	if s, ok := v.(string); ok {
		if label, ok := placeholder(s, false); ok {
			return rec.openArg(label, "body", "string", "", true), nil
		}
	}
	return rec.valueArg(name, "body", v, jsonType(v), ""), nil
}

// jsonPlain reports whether a value has neither holes nor placeholders.
func jsonPlain(v recipe.Value) bool {
	switch v := v.(type) {
	case string:
		return !strings.ContainsAny(v, holeMarks)
	case recipe.Array:
		return !slices.ContainsFunc(v, func(e recipe.Value) bool { return !jsonPlain(e) || isPlaceholder(e) })
	case recipe.Object:
		return !slices.ContainsFunc(v, func(m recipe.Member) bool {
			return !jsonPlain(m.Value) || isPlaceholder(m.Value) || strings.ContainsAny(m.Key, holeMarks)
		})
	}
	return true
}

func isPlaceholder(v recipe.Value) bool {
	s, ok := v.(string)
	if ok {
		_, ok = placeholder(s, false)
	}
	return ok
}

// jsonValue is a value that stays as it is, but for what its caller has to
// fill in.
func (rec *recorded) jsonValue(name string, v recipe.Value) (recipe.Value, error) {
	switch v := v.(type) {
	case recipe.Array:
		out := recipe.Array{}
		for _, e := range v {
			t, err := rec.jsonValue(name, e)
			if err != nil {
				return nil, err
			}
			out = append(out, t)
		}
		return out, nil
	case recipe.Object:
		out := recipe.Object{}
		for _, m := range v {
			if strings.ContainsAny(m.Key, holeMarks) {
				return nil, refuse("TEMPLATE_TEXT", "the name of a member of its body is a placeholder")
			}
			t, err := rec.jsonValue(m.Key, m.Value)
			if err != nil {
				return nil, err
			}
			out = append(out, recipe.Member{Key: m.Key, Value: t})
		}
		return out, nil
	case string:
		return rec.textValue(name, v, "body")
	case json.Number:
		if redact.CredentialKey(name) {
			return rec.hidden(name, string(v), "body"), nil
		}
	}
	return v, nil
}

// hidden is the argument in the place of a credential. Its value is dropped.
func (rec *recorded) hidden(name, value, place string) string {
	rec.credential(value)
	rec.drop("%s %s of %s", place, cut(cleanText(name), 40), rec.title())
	rec.notes.add("%s looks like a credential: its value is left out, and the caller has to give it", cut(cleanText(name), 40))
	return rec.openArg(name, place, "string", "", true)
}

// textValue is the template of a text in a body.
func (rec *recorded) textValue(name, s, place string) (string, error) {
	if label, ok := placeholder(s, false); ok {
		return rec.openArg(label, place, "string", "", true), nil
	}
	literal := anyHole.ReplaceAllString(s, "")
	if !clean(name, literal) && (literal != "" || !anyHole.MatchString(s)) {
		if literal == "" {
			return "", nil // an empty password is none
		}
		return rec.hidden(name, literal, place), nil
	}
	return rec.template(s, place, true)
}

// formText makes a form. Its names, values and order are kept; how they are
// escaped is the wrapper's.
func (rec *recorded) formText() error {
	pairs, why := formPairs(rec.sent.body)
	if why != "" {
		rec.notes.add("the form is kept as one text: %s", why)
		return rec.plainText()
	}
	rec.bodyAs = wrapper.BodyForm
	rec.contentType(rec.media, formMedia)
	body := recipe.Object{}
	respelled := false
	for i := 0; i < len(pairs); {
		first := pairs[i]
		var values recipe.Array
		for ; i < len(pairs) && pairs[i].name == first.name; i++ {
			respelled = respelled || formEscaped(first.name) != pairs[i].key || !anyHole.MatchString(pairs[i].value) && formEscaped(pairs[i].text) != pairs[i].value
			t, err := rec.formValue(pairs[i])
			if err != nil {
				return err
			}
			values = append(values, t)
		}
		if len(values) == 1 {
			body = append(body, recipe.Member{Key: first.name, Value: values[0]})
		} else {
			body = append(body, recipe.Member{Key: first.name, Value: values})
		}
	}
	if respelled {
		rec.notes.add("its form is escaped in another spelling, with the same names and values (a space is +, @ is %%40, brackets are %%5B and %%5D)")
	}
	rec.body = body
	return nil
}

func (rec *recorded) formValue(p pair) (recipe.Value, error) {
	if anyHole.MatchString(p.text) || isPlaceholder(p.text) || !clean(p.name, p.text) {
		return rec.textValue(p.name, p.text, "form")
	}
	v, kind := scalar(p.text)
	return rec.valueArg(p.name, "body", v, kind, rec.sent.queryAbout[p.name]), nil
}

// formPairs reads a form; why says what a form made of names and values cannot
// say again.
func formPairs(body string) (pairs []pair, why string) {
	seen := map[string]bool{}
	for _, piece := range strings.Split(body, "&") {
		p := pair{raw: piece}
		p.key, p.value, p.eq = strings.Cut(piece, "=")
		var err1, err2 error
		p.name, err1 = url.QueryUnescape(p.key)
		p.text, err2 = url.QueryUnescape(p.value)
		switch {
		case !p.eq || p.name == "":
			return nil, "a part of it has no name or no value"
		case err1 != nil || err2 != nil || !utf8.ValidString(p.name+p.text):
			return nil, "a part of it is not escaped as forms are"
		case anyHole.MatchString(p.name) || strings.Contains(p.name, "{{"):
			return nil, "a name in it is a placeholder"
		case seen[p.name] && pairs[len(pairs)-1].name != p.name:
			return nil, "a name in it comes again in another place"
		}
		seen[p.name] = true
		pairs = append(pairs, p)
	}
	if len(pairs) > maxBodyArgs {
		return nil, "it has too many fields"
	}
	return pairs, ""
}

// formEscaped is the URL standard's spelling of a text in a form.
func formEscaped(s string) string {
	return strings.NewReplacer("~", "%7E", "%2A", "*").Replace(url.QueryEscape(s))
}

// plainText keeps the body as one text.
func (rec *recorded) plainText() error {
	rec.bodyAs = wrapper.BodyText
	rec.contentType(rec.media, "text/plain; charset=utf-8")
	if s := anyHole.ReplaceAllString(rec.sent.body, "x"); cleanText(s) != s {
		rec.drop("body of %s", rec.title())
		rec.credentialsIn(s)
		return refuse("CREDENTIAL_BODY", "something in its body looks like a credential, and the body cannot be taken apart")
	}
	t, err := rec.template(rec.sent.body, "body", true)
	if err != nil {
		return err
	}
	if anyHole.MatchString(rec.sent.body) {
		rec.notes.add("arguments stand in the text of the body as they are: nothing in them is escaped")
	}
	rec.body = t
	return nil
}

// credentialsIn remembers what cleanText took out of a text.
func (rec *recorded) credentialsIn(s string) {
	for _, word := range strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(" \t\r\n\"'<>=:,;&", r) }) {
		if len(word) >= 16 {
			rec.credential(word)
		}
	}
}

// verify sends the draft's default call to paper and compares it with what its
// source sends. It finds mistakes of this package; what needs arguments has no
// default call.
func (rec *recorded) verify(d *Draft) error {
	s := rec.sent
	w, _ := wrapper.Parse(d.Document)
	if w == nil || len(s.varying) > 0 || slices.ContainsFunc(rec.args.list, func(a argument) bool { return a.required }) ||
		strings.ContainsAny(s.address+s.body, holeMarks) {
		return nil
	}
	wrong := func(what string) error {
		return refuse("MISMATCH", "the %s would not be the source's", what)
	}
	call, err := w.Build([]byte("{}"))
	if err != nil {
		return wrong("arguments")
	}
	query := ""
	if rec.raw.query != "" {
		query = "?" + rec.raw.query
	}
	if call.Method != s.method {
		return wrong("method")
	}
	if !strings.HasSuffix(call.URL.String(), rec.raw.path+query) {
		return wrong("address")
	}
	if !s.hasBody || s.body == "" {
		if len(call.Body) > 0 {
			return wrong("body")
		}
		return nil
	}
	switch rec.bodyAs {
	case wrapper.BodyJSON:
		v, err := recipe.Decode([]byte(s.body), recipe.DecodeLimits{Depth: maxNesting})
		if err != nil || string(recipe.Encode(v)) != string(call.Body) {
			return wrong("body")
		}
	case wrapper.BodyForm:
		want, _ := formPairs(s.body)
		got, why := formPairs(string(call.Body))
		same := func(a, b pair) bool { return a.name == b.name && a.text == b.text }
		if why != "" || !slices.EqualFunc(want, got, same) {
			return wrong("body")
		}
	default:
		if string(call.Body) != s.body {
			return wrong("body")
		}
	}
	return nil
}
