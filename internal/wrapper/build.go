package wrapper

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/schema"
	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// Build makes the request of one call: it reads args (a JSON object; empty or
// null is no arguments), fills defaults, validates, and puts the values into
// the templates. Errors are *fault.Error: ARGS_INVALID with every problem as a
// detail, or POLICY_REQUEST_TOO_LARGE.
func (w *Wrapper) Build(args []byte) (*Call, error) {
	given, err := schema.DecodeArgs(args)
	if err != nil {
		return nil, err
	}
	filled, warnings, problems := w.Input.Validate(given)
	if len(problems) > 0 {
		return nil, schema.ArgsInvalid(problems)
	}
	b := &build{args: make(map[string]recipe.Value, len(filled))}
	for _, m := range filled {
		b.args[m.Key] = m.Value
	}
	call := &Call{
		Method: w.Request.Method, Auth: w.Request.Auth, Timeout: w.Request.Timeout,
		Concurrency: w.Request.Concurrency,
		Args:        filled, Warnings: warnings, declared: w.declared || w.override,
	}
	if r := w.Request.Rate; r != nil {
		rate := *r
		call.Rate = &rate
	}
	if len(w.Request.Methods) > 1 {
		call.Method, _ = b.args["method"].(string)
	}
	call.URL = b.url(w.Request.url, w.Request.Query)
	if b.large == nil {
		b.headersOf(call, &w.Request)
	}
	if b.large == nil && w.Request.Body != nil && carriesBody(call.Method) {
		if body, ok := w.Request.Body.fill(b); ok && !b.tooLarge(len(body), MaxBody, "body") {
			call.Body, call.bodyType = body, w.Request.Body.Type
		}
	}
	if b.large != nil {
		return nil, b.large
	}
	if len(b.problems) > 0 {
		return nil, schema.ArgsInvalid(b.problems)
	}
	call.Header = withDefault(call.Header, "Accept", "application/json")
	if call.Body != nil {
		call.Header = withDefault(call.Header, "Content-Type", contentTypes[call.bodyType])
	}
	return call, nil
}

// withDefault adds a header unless one of that name is there.
func withDefault(hs []Header, name, value string) []Header {
	for _, h := range hs {
		if strings.EqualFold(h.Name, name) {
			return hs
		}
	}
	return append(hs, Header{name, value})
}

// A build is the filling of one request. A document may name one large argument
// thousands of times, so a build never does work for what it will not send:
// sizes are looked at before a value is escaped or copied, nothing is filled in
// after the first part that is too large, a template with an omitted argument is
// not filled at all, and a list is read once.
type build struct {
	args     map[string]recipe.Value
	lists    map[string][]string // query values of the arrays, escaped
	refused  map[string]bool     // arguments that cannot stand in the path or in a form
	problems []recipe.Problem
	large    *fault.Error // the request is too large; nothing more is filled in
}

func (b *build) problem(name, code, hint, format string, args ...any) {
	field := at("args", name)
	for _, old := range b.problems { // one value in several places
		if old.Field == field && old.Code == code {
			return
		}
	}
	add(&b.problems, recipe.Problem{Field: field, Code: code, Message: fmt.Sprintf(format, args...), Hint: hint})
}

// tooLarge notes and reports whether a part of the request is over its limit.
// It is asked before every value: escaping makes none shorter.
func (b *build) tooLarge(size, limit int, what string) bool {
	if b.large == nil && size > limit {
		b.large = fault.New("POLICY_REQUEST_TOO_LARGE", "the filled %s is over %d bytes", what, limit).With(fault.Field("wrapper.request." + what))
	}
	return b.large != nil
}

// scalarText is the text of an argument for a place that holds text. ok is
// false when the argument is omitted or null, and when it cannot stand there.
func (b *build) scalarText(name, where string) (string, bool) {
	v, given := b.args[name]
	if !given || v == nil {
		return "", false
	}
	if s, ok := v.(string); ok {
		return s, true
	}
	if s, ok := scalar(v); ok {
		return s, true
	}
	b.problem(name, "TYPE", "send a string, number or boolean", "the value goes into %s, which cannot hold an %s", where, typeOf(v))
	return "", false
}

// given reports whether no placeholder of t is omitted or null; those that
// cannot stand there are problems.
func (b *build) given(t Template, where string) bool {
	complete := true
	for _, p := range t.parts {
		if p.name != "" {
			_, ok := b.scalarText(p.name, where)
			complete = complete && ok
		}
	}
	return complete
}

// text fills a template. ok is false when any placeholder in it is omitted or
// null: then the whole value is omitted.
func (b *build) text(t Template, where string, limit int, what string) (string, bool) {
	if t.literal() {
		return t.source, true
	}
	if !b.given(t, where) {
		return "", false
	}
	if name, whole := t.whole(); whole {
		s, _ := b.scalarText(name, where)
		return s, !b.tooLarge(len(s), limit, what)
	}
	var out []byte
	for _, p := range t.parts {
		s := p.text
		if p.name != "" {
			s, _ = b.scalarText(p.name, where)
		}
		if b.tooLarge(len(out)+len(s), limit, what) {
			return "", false
		}
		out = append(out, s...)
	}
	return string(out), true
}

// headersOf fills the author's headers, then that of an idempotency key. An
// empty key is none: sent with every call, it would make an API take all of
// them for one.
func (b *build) headersOf(call *Call, r *Request) {
	id := r.Idempotency
	if id == nil || !call.Mutating() {
		call.Header = b.headers(r.Headers)
		return
	}
	call.IdempotencyHeader = id.Header
	params := r.Headers
	if id.Value != nil {
		params = append(slices.Clip(params), Param{Name: id.Header, Values: []Template{*id.Value}})
	}
	hs := b.headers(params)
	if n := len(hs); n > 0 && hs[n-1] == (Header{id.Header, ""}) {
		hs = hs[:n-1]
	}
	call.Header = hs
}

// headers fills headers in their order.
func (b *build) headers(params []Param) []Header {
	var out []Header
	size := 0
	for _, p := range params {
		t := p.Values[0]
		value, ok := b.text(t, "a header", MaxHeaders, "headers")
		size += len(value)
		if b.tooLarge(size, MaxHeaders, "headers") {
			return nil
		}
		if !ok {
			continue
		}
		b.headerSafe(t, p.Name)
		out = append(out, Header{p.Name, strings.Trim(value, " ")})
	}
	return out
}

// headerSafe refuses arguments that would break out of a header's line or that
// servers read differently.
func (b *build) headerSafe(t Template, header string) {
	for _, p := range t.parts {
		if p.name == "" {
			continue
		}
		s, _ := b.scalarText(p.name, "a header")
		switch {
		case strings.ContainsFunc(s, isControl):
			b.problem(p.name, "CONTROL_CHARACTER", "send one line of text", "the value goes into header %s, which cannot hold control characters", oneLine(header))
		case !visible(s):
			b.problem(p.name, "HEADER_INVALID", "", "the value goes into header %s, which can hold only ASCII characters", oneLine(header))
		}
	}
}

func isControl(r rune) bool { return r < 0x20 || r >= 0x7f && r < 0xa0 }

// url fills path and query.
func (b *build) url(t *urlTemplate, query []Param) *url.URL {
	path := b.path(t.path)
	q := &queryWriter{b: b, size: len(t.scheme) + len("://") + len(t.host) + len(path)}
	b.tooLarge(q.size, MaxURL, "url")
	for _, p := range t.pairs {
		if b.large != nil {
			return nil
		}
		if p.key == "" {
			q.add(p.literal)
			continue
		}
		q.param(p.key, p.value)
	}
	q.appending = true
	for _, p := range query {
		if b.large != nil {
			return nil
		}
		q.styled(p)
	}
	if b.large != nil {
		return nil
	}
	u := &url.URL{Scheme: t.scheme, Host: t.host, RawQuery: strings.Join(q.pieces, "&")}
	u.ForceQuery = t.query && len(t.pairs) == 0 && u.RawQuery == "" // a "?" of the author's own
	// The template and escape produce only valid escapes; Path and RawPath
	// together make net/url send these very bytes.
	u.Path, _ = url.PathUnescape(path)
	if u.EscapedPath() != path {
		u.RawPath = path
	}
	return u
}

// A queryWriter collects the pieces between "&".
type queryWriter struct {
	b      *build
	pieces []string
	size   int // of the URL so far
	// appending: the URL's own pieces are written; a final "&" of theirs
	// already separates what follows.
	appending bool
}

// room reports whether a piece of n bytes still fits.
func (q *queryWriter) room(n int) bool {
	return !q.b.tooLarge(q.size+len("&")+n, MaxURL, "url") // or the "?" in front of the first
}

func (q *queryWriter) add(piece string) {
	if n := len(q.pieces); q.appending && n > 0 && q.pieces[n-1] == "" {
		q.pieces = q.pieces[:n-1]
		q.size--
	}
	q.appending = false
	if q.room(len(piece)) {
		q.size += len("&") + len(piece)
		q.pieces = append(q.pieces, piece)
	}
}

// styled adds one parameter of request.query in its style; without any value it
// is left out.
func (q *queryWriter) styled(p Param) {
	name := escape(p.Name)
	switch p.Style {
	case StyleComma:
		q.joined(name+"=", ",", p.Values)
		return
	case StylePipe:
		q.joined(name+"=", pipe, p.Values)
		return
	case StyleBrackets:
		if !strings.HasSuffix(name, opening+closing) {
			name += opening + closing
		}
	}
	for _, v := range p.Values {
		if q.b.large != nil {
			return
		}
		q.param(name+"=", v)
	}
}

// joined adds all values of a parameter as one. A comma inside a value is
// percent-encoded, the separator is not. A "|" has one way to be written, so a
// value cannot hold one.
func (q *queryWriter) joined(key, separator string, values []Template) {
	out := []byte(key)
	written := false
	for _, v := range values {
		if q.b.large != nil {
			return
		}
		q.texts(v, func(text string) {
			if !q.room(len(out) + len(separator) + len(text)) {
				return
			}
			if strings.Contains(text, separator) { // never a comma
				q.b.separates(v)
				return
			}
			if written {
				out = append(out, separator...)
			}
			out = append(out, text...)
			written = true
		})
	}
	if written {
		q.add(string(out))
	}
}

// separates refuses the argument in t that holds a "|".
func (b *build) separates(t Template) {
	for _, p := range t.parts {
		text, _ := b.args[p.name].(string)
		for _, e := range b.lists[p.name] {
			text += e
		}
		if strings.Contains(text, "|") || strings.Contains(text, pipe) {
			b.problem(p.name, "PATTERN", "send values without |", "the value holds |, which separates the values of this query parameter")
			return
		}
	}
}

// param adds one parameter for each value: none when it is omitted or null.
// key is encoded and ends with "=".
func (q *queryWriter) param(key string, t Template) {
	q.texts(t, func(text string) { q.add(key + text) })
}

// texts calls f with each value of a template, escaped: each element of an
// array, none of an omitted argument or a null.
func (q *queryWriter) texts(t Template, f func(string)) {
	name, whole := t.whole()
	if !whole {
		if text, ok := q.mixed(t); ok {
			f(text)
		}
		return
	}
	if list, isList := q.b.args[name].(recipe.Array); isList {
		for _, text := range q.b.list(name, list) {
			if q.b.large != nil {
				return
			}
			f(text)
		}
		return
	}
	if _, isObject := q.b.args[name].(recipe.Object); isObject {
		q.b.problem(name, "TYPE", "send a string, number, boolean or an array of these", "the value goes into the query, which cannot hold an object")
		return
	}
	if s, ok := q.b.scalarText(name, "the query"); ok && q.room(len(s)) {
		f(escape(s))
	}
}

// list is the escaped texts of an array's items, without the nulls.
func (b *build) list(name string, items recipe.Array) []string {
	if texts, known := b.lists[name]; known {
		return texts
	}
	texts := []string{}
	size := 0
	for i, e := range items {
		s, ok := e.(string)
		if !ok {
			s, ok = scalar(e)
		}
		if !ok {
			if e != nil {
				b.problem(name, "TYPE", "send strings, numbers or booleans", "item %d goes into the query, which cannot hold an %s", i, typeOf(e))
				break
			}
			continue
		}
		if b.tooLarge(size+len(s), MaxURL, "url") {
			return nil
		}
		text := escape(s)
		size += len("&=") + len(text)
		texts = append(texts, text)
	}
	if b.lists == nil {
		b.lists = map[string][]string{}
	}
	b.lists[name] = texts
	return texts
}

// mixed is a value that has text around its placeholders, or none. Literal text
// is encoded already. ok is false when a placeholder of it is omitted or null.
func (q *queryWriter) mixed(t Template) (text string, ok bool) {
	const where = "the middle of a query value"
	if !q.b.given(t, where) {
		return "", false
	}
	var out []byte
	for _, p := range t.parts {
		if p.name == "" {
			out = append(out, p.text...)
			continue
		}
		s, _ := q.b.scalarText(p.name, where)
		if !q.room(len(out) + len(s)) {
			return "", false
		}
		out = appendEscaped(out, s)
	}
	return string(out), true
}
