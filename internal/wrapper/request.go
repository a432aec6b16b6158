package wrapper

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/redact"
	"github.com/hyperbolic-gateway/hb-rest/internal/schema"
	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

const requestField = "wrapper.request"

// The keys of request, in the order of a normalised document.
var requestKeys = []string{
	"method", "methods", "url", "query", "headers", "body", "bodyType", "formArrays", "auth", "timeoutMs",
	"idempotencyKey", "concurrency", "rate",
}

// idPattern is the form of an id and of a credential's name.
var idPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

// A requestParser fills a Request and its part of the normalised document.
type requestParser struct {
	checker
	w   *Wrapper
	out map[string]recipe.Value // normalised members

	bodyType string // BodyJSON, BodyForm or BodyText; "": what is written is none of them
	brackets bool   // formArrays is "brackets"
}

// parse reads the members in their order, then what they say together.
func (p *requestParser) parse(obj recipe.Object) {
	p.out = map[string]recipe.Value{}
	r := &p.w.Request
	r.Timeout = DefaultTimeout
	p.methods(obj)
	p.bodyKind(obj)
	hasURL := false
	for _, m := range obj {
		field := at(requestField, m.Key)
		if m.Value == nil { // absent, whatever the key
			continue
		}
		switch m.Key {
		case "method", "methods": // read before
		case "url":
			hasURL = true
			if s, ok := p.text(m.Value, field, urlShape); ok {
				r.URL, r.url = s, p.url(s)
				p.out[m.Key] = s
			}
		case "query":
			p.query(m.Value, field)
		case "headers":
			p.headers(m.Value, field)
		case "body":
			p.body(m.Value, field)
		case "bodyType":
			p.bodyTypeKey(m.Value, field)
		case "formArrays":
			p.formArraysKey(m.Value, field)
		case "idempotencyKey":
			p.idempotency(m.Value, field)
		case "concurrency":
			p.concurrency(m.Value, field)
		case "rate":
			p.rate(m.Value, field)
		case "auth":
			p.auth(m.Value, field)
		case "timeoutMs":
			p.timeout(m.Value, field)
		default:
			p.unknown(m, field)
		}
	}
	p.bodyMeaning()
	p.idempotent()
	if !hasURL {
		p.problem(urlField, "REQUIRED", "", "is required (an absolute URL such as https://api.example.com/v1/items)")
	}
}

func (p *requestParser) unknown(m recipe.Member, field string) {
	if len(p.report.Problems) >= recipe.MaxProblems { // looking for near names is not free
		return
	}
	p.problem(field, "UNKNOWN_FIELD", keyHint(m.Key), "unknown key %q", oneLine(m.Key))
}

func (p *requestParser) query(v recipe.Value, field string) {
	hint := ""
	if _, ok := v.(recipe.Object); !ok {
		hint = queryHint(v)
	}
	obj, ok := p.object(v, field, hint)
	if !ok {
		return
	}
	normal := make(recipe.Object, 0, len(obj))
	for _, m := range obj {
		here := at(field, m.Key)
		switch {
		case m.Key == "":
			p.problem(here, "PATTERN", "", "the name of a query parameter cannot be empty")
			continue
		case strings.Contains(m.Key, "{{"):
			p.problem(here, "PLACEHOLDER_SYNTAX", "write the name out", "the name of a query parameter cannot come from an argument")
			continue
		case redact.CredentialQuery(m.Key):
			p.credentialQuery(here, m.Key)
		}
		param := Param{Name: m.Key}
		value := m.Value
		if styled, ok := value.(recipe.Object); ok && (has(styled, "value") || has(styled, "style")) {
			value = p.styled(styled, here, &param)
		} else {
			p.queryValues(value, here, &param)
		}
		if !redact.CredentialQuery(m.Key) && slices.ContainsFunc(param.Values, func(t Template) bool { return t.credential(m.Key) }) {
			p.credentialQuery(here, m.Key)
		}
		normal = append(normal, recipe.Member{Key: m.Key, Value: value})
		p.w.Request.Query = append(p.w.Request.Query, param)
	}
	p.out["query"] = normal
}

func has(o recipe.Object, key string) bool {
	_, ok := o.Get(key)
	return ok
}

const styledShape = `{"value": "{{tags}}", "style": "comma"}`

var styles = []string{StyleRepeat, StyleComma, StylePipe, StyleBrackets}

// styled reads a query parameter that says how its values are written, and
// gives its normalised form.
func (p *requestParser) styled(o recipe.Object, field string, param *Param) recipe.Value {
	given, _ := p.members(o, field, styledShape, "value", "style")
	if v, ok := given["style"]; ok {
		param.Style = p.oneOf(v, at(field, "style"), "QUERY_STYLE", styles, styleHint)
	}
	v, ok := given["value"]
	if !ok {
		p.problem(at(field, "value"), "REQUIRED", "write "+styledShape, "is required")
		return o
	}
	p.queryValues(v, at(field, "value"), param)
	if param.Style == StylePipe {
		for _, t := range param.Values {
			if slices.ContainsFunc(t.parts, func(x part) bool { return strings.Contains(x.text, pipe) }) {
				p.problem(at(field, "value"), "QUERY_STYLE", `write the values as an array, such as ["a", "b"]`, "| separates the values and cannot stand in one")
			}
		}
	}
	return ordered([]string{"value", "style"}, given)
}

// styleHint knows the names that OpenAPI has for the styles.
func styleHint(s string) string {
	switch plainName(s) {
	case "csv", "simple", "commaseparated", "commas":
		return `write "comma"`
	case "multi", "form", "explode":
		return `write "repeat"`
	case "pipes", "pipedelimited":
		return `write "pipe"`
	case "bracket", "array", "php", "rails":
		return `write "brackets"`
	case "deepobject":
		return memberHint
	}
	return ""
}

// oneOf reads one of a few words; "" when it is none. hint may know a word of
// another format.
func (c *checker) oneOf(v recipe.Value, field, code string, words []string, hint func(string) string) string {
	all := "use one of " + strings.Join(words, ", ")
	s, ok := c.text(v, field, all)
	if !ok || slices.Contains(words, s) {
		return s
	}
	if h := hint(s); h != "" {
		all = h
	} else if near := schema.Near(s, words); near != "" {
		all = fmt.Sprintf("did you mean %q?", near)
	}
	c.problem(field, code, all, "%q is not supported", oneLine(s))
	return ""
}

// queryValues reads one value or an array of them.
func (p *requestParser) queryValues(v recipe.Value, field string, param *Param) {
	values, isList := v.(recipe.Array)
	if !isList {
		values = recipe.Array{v}
	}
	for i, e := range values {
		place := field
		if isList {
			place = fmt.Sprintf("%s[%d]", field, i)
		}
		if t, ok := p.queryValue(e, place); ok {
			param.Values = append(param.Values, t)
		}
	}
}

// memberHint says what to do about an object in the query.
const memberHint = `give each of its members a parameter of its own, such as "filter[status]": "{{status}}"`

func (p *requestParser) queryValue(v recipe.Value, field string) (Template, bool) {
	if s, ok := v.(string); ok {
		t, ok := p.template(s, field, queryPlace)
		return encoded(t), ok
	}
	if s, ok := scalar(v); ok {
		return encoded(literalTemplate(s)), true
	}
	switch v.(type) {
	case recipe.Object:
		p.problem(field, "QUERY_STYLE", memberHint+"; for an array write "+styledShape, "an object in the query is not supported")
	default:
		p.problem(field, "TYPE", "leave the parameter out", "expected string, number or boolean, got %s", typeOf(v))
	}
	return Template{}, false
}

// scalar is the text of a number or a boolean.
func scalar(v recipe.Value) (string, bool) {
	switch v := v.(type) {
	case json.Number:
		return string(v), true
	case bool:
		return strconv.FormatBool(v), true
	}
	return "", false
}

func literalTemplate(s string) Template { return Template{source: s, parts: []part{{text: s}}} }

// encoded is t with its literal text percent-encoded, as the URL's own query is
// written.
func encoded(t Template) Template {
	for i := range t.parts {
		t.parts[i].text = escape(t.parts[i].text)
	}
	return t
}

// forbiddenHeaders belong to the connection: a wrapper that set one could
// deliver a bound credential to another tenant of a shared front end.
var forbiddenHeaders = []string{"host", "content-length", "transfer-encoding", "connection", "keep-alive", "te", "trailer", "upgrade", "expect"}

// overrideHeaders make a server treat one method as another.
var overrideHeaders = []string{"x-http-method-override", "x-http-method", "x-method-override"}

// overridesMethod reports whether a header is one of them. Servers that hand
// headers on as variables of a process do not tell a hyphen from an underscore.
func overridesMethod(name string) bool {
	return slices.Contains(overrideHeaders, strings.ReplaceAll(strings.ToLower(name), "_", "-"))
}

func (p *requestParser) headers(v recipe.Value, field string) {
	obj, ok := p.object(v, field, `write an object such as {"Accept-Language": "{{language}}"}`)
	if !ok {
		return
	}
	p.out["headers"] = obj
	seen := map[string]bool{}
	for _, m := range obj {
		here := at(field, m.Key)
		lower := strings.ToLower(m.Key)
		if !p.headerName(m.Key, here) {
			continue
		}
		if seen[lower] {
			p.problem(here, "DUPLICATE", "keep one of them", "header %s is set twice; case does not matter", oneLine(m.Key))
			continue
		}
		seen[lower] = true
		if overridesMethod(m.Key) {
			p.w.override = true
		}
		if t, ok := p.headerValue(m.Value, here); ok {
			p.w.Request.Headers = append(p.w.Request.Headers, Param{Name: m.Key, Values: []Template{t}})
		}
	}
}

// headerName refuses the names that a wrapper cannot set.
func (p *requestParser) headerName(name, field string) bool {
	lower := strings.ToLower(name)
	switch {
	case !isToken(name):
		p.problem(field, "HEADER_INVALID", "use letters, digits and -; a name cannot come from an argument", "%q is not a header name", oneLine(name))
	case redact.CredentialHeader(name):
		p.problem(field, "CREDENTIAL_HEADER", "a person stores the credential, and request.auth names it", "header %s looks like a credential", oneLine(name))
	case slices.Contains(forbiddenHeaders, lower) || strings.HasPrefix(lower, "proxy-"):
		p.problem(field, "HEADER_INVALID", "leave it out", "header %s belongs to the connection and cannot be set", oneLine(name))
	default:
		return true
	}
	return false
}

func (p *requestParser) headerValue(v recipe.Value, field string) (Template, bool) {
	if s, ok := scalar(v); ok {
		return literalTemplate(s), true
	}
	s, ok := v.(string)
	if !ok {
		p.problem(field, "TYPE", `write one text such as "{{name}}"`, "expected string, number or boolean, got %s", typeOf(v))
		return Template{}, false
	}
	return p.headerTemplate(s, field)
}

func (p *requestParser) headerTemplate(s, field string) (Template, bool) {
	t, ok := p.template(s, field, func(Template) place { return inHeader })
	if !ok {
		return t, false
	}
	for _, part := range t.parts {
		if !visible(part.text) {
			p.problem(field, "HEADER_INVALID", "", "a header value can hold only visible ASCII characters and spaces")
			return t, false
		}
	}
	return t, true
}

// visible reports whether s can stand in a header value.
func visible(s string) bool {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] > 0x7e {
			return false
		}
	}
	return true
}

// isToken is the rule of RFC 9110 section 5.6.2 for names.
func isToken(s string) bool {
	for i := range len(s) {
		b := s[i]
		if !(b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~", b) >= 0) {
			return false
		}
	}
	return s != ""
}

func (p *requestParser) body(v recipe.Value, field string) {
	if len(p.w.Request.Methods) > 0 && !slices.ContainsFunc(p.w.Request.Methods, carriesBody) {
		p.problem(field, "BODY_NOT_ALLOWED", "take body out, or allow POST, PUT, PATCH or DELETE", "a body cannot be sent with %s", strings.Join(p.w.Request.Methods, " or "))
	}
	p.bodyShape(v, field)
	p.bodyAs(v, field)
	root := p.bodyNode(v, field)
	if p.bodyType == BodyText && root.text.parts == nil { // a literal text
		text, _ := v.(string)
		root.text = literalTemplate(text)
	}
	if p.report.OK() {
		p.w.Request.Body = &Body{Type: p.bodyType, brackets: p.brackets, root: root}
	}
	p.out["body"] = v
}

func (p *requestParser) auth(v recipe.Value, field string) {
	s, ok := p.text(v, field, `write the name of a stored credential, such as "orders-key"; its kind and header are stored with it`)
	if !ok {
		return
	}
	if !idPattern.MatchString(s) { // what was written may be the credential itself: it is not shown
		p.problem(field, "PATTERN", "wrap_secret_list shows the names; a person adds a credential", "auth is the name of a stored credential (letters, digits, . _ -), never its value")
		return
	}
	p.w.Request.Auth = s
	p.out["auth"] = s
}

func (p *requestParser) timeout(v recipe.Value, field string) {
	n, ok := v.(json.Number)
	if !ok {
		p.problem(field, "TYPE", "such as 15000, without quotes", "expected a whole number of milliseconds, got %s", typeOf(v))
		return
	}
	ms, err := strconv.ParseUint(string(n), 10, 32)
	if err != nil || ms < 1 || ms > uint64(MaxTimeout.Milliseconds()) {
		p.problem(field, "TIMEOUT_RANGE", "15000 is 15 seconds, and the default", "expected a whole number of milliseconds from 1 to %d", MaxTimeout.Milliseconds())
		return
	}
	p.w.Request.Timeout = time.Duration(ms) * time.Millisecond
	if p.w.Request.Timeout > WarnTimeout {
		p.warn(field, "TIMEOUT_RANGE", "", "a whole call ends after %d ms unless a person has changed that; a longer timeout is clipped", WarnTimeout.Milliseconds())
	}
	p.out["timeoutMs"] = n
}
