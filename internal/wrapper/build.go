package wrapper

import (
	"fmt"
	"net/url"
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
		Args: filled, Warnings: warnings, declared: w.declared || w.override,
	}
	if len(w.Request.Methods) > 1 {
		call.Method, _ = b.args["method"].(string)
	}
	call.URL = b.url(w.Request.url, w.Request.Query)
	call.Header = b.headers(w.Request.Headers)
	if w.Request.Body != nil && carriesBody(call.Method) {
		if body, ok := w.Request.Body.root.append(b, nil); ok && !b.tooLarge(len(body), MaxBody, "body") {
			call.Body = body
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
		call.Header = withDefault(call.Header, "Content-Type", "application/json")
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

// A build is the filling of one request.
type build struct {
	args     map[string]recipe.Value
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
// It is asked after every value, so that a template that repeats a large
// argument stops early.
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

// text fills a template. ok is false when any placeholder in it is omitted or
// null: then the whole value is omitted.
func (b *build) text(t Template, where string, limit int, what string) (string, bool) {
	if t.literal() {
		return t.source, true
	}
	var out strings.Builder
	complete := true
	for _, p := range t.parts {
		s := p.text
		if p.name != "" {
			var ok bool
			if s, ok = b.scalarText(p.name, where); !ok {
				complete = false
				continue
			}
		}
		out.WriteString(s)
		if b.tooLarge(out.Len(), limit, what) {
			return "", false
		}
	}
	return out.String(), complete
}

// headers fills the author's headers in their order.
func (b *build) headers(params []Param) []Header {
	var out []Header
	size := 0
	for _, p := range params {
		t := p.Values[0]
		value, ok := b.text(t, "a header", MaxHeaders, "headers")
		if !ok {
			continue
		}
		size += len(value)
		if b.tooLarge(size, MaxHeaders, "headers") {
			return nil
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
		if p.key == "" {
			q.add(p.literal)
			continue
		}
		q.param(p.key, p.value)
	}
	q.appending = true
	for _, p := range query {
		for _, v := range p.Values {
			q.param(escape(p.Name)+"=", v)
		}
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

func (q *queryWriter) add(piece string) {
	if n := len(q.pieces); q.appending && n > 0 && q.pieces[n-1] == "" {
		q.pieces = q.pieces[:n-1]
		q.size--
	}
	q.appending = false
	q.size += len("&") + len(piece) // or the "?" in front of the first
	if !q.b.tooLarge(q.size, MaxURL, "url") {
		q.pieces = append(q.pieces, piece)
	}
}

// param adds one parameter: repeated for an array, left out when the value is
// omitted or null. key is encoded and ends with "=".
func (q *queryWriter) param(key string, t Template) {
	name, whole := t.whole()
	if !whole {
		q.mixed(key, t)
		return
	}
	list, isList := q.b.args[name].(recipe.Array)
	if !isList {
		if s, ok := q.b.scalarText(name, "the query"); ok {
			q.add(key + escape(s))
		}
		return
	}
	for i, e := range list {
		if q.b.large != nil {
			return
		}
		s, isText := e.(string)
		if !isText {
			var ok bool
			if s, ok = scalar(e); !ok {
				if e != nil {
					q.b.problem(name, "TYPE", "send strings, numbers or booleans", "item %d goes into the query, which cannot hold an %s", i, typeOf(e))
				}
				continue
			}
		}
		q.add(key + escape(s))
	}
}

// mixed adds a parameter whose value has text around its placeholders, or
// none. Literal text is encoded already.
func (q *queryWriter) mixed(key string, t Template) {
	var out strings.Builder
	out.WriteString(key)
	for _, p := range t.parts {
		s := p.text
		if p.name != "" {
			v, ok := q.b.scalarText(p.name, "the middle of a query value")
			if !ok {
				return
			}
			s = escape(v)
		}
		out.WriteString(s)
		if q.b.tooLarge(q.size+len("&")+out.Len(), MaxURL, "url") {
			return
		}
	}
	q.add(out.String())
}
