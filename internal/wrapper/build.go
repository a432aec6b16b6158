package wrapper

import (
	"fmt"
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
	b := &build{args: arguments{list: filled}}
	if len(filled) > fewArguments {
		b.args.byName = make(map[string]recipe.Value, len(filled))
		for _, m := range filled {
			b.args.byName[m.Key] = m.Value
		}
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
		call.Method, _ = b.args.value("method").(string)
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
	args     arguments
	lists    map[string][]string // query values of the arrays, escaped
	refused  map[string]bool     // arguments that cannot stand in the path or in a form
	problems []recipe.Problem
	large    *fault.Error // the request is too large; nothing more is filled in
}

// fewArguments is how many are looked through one by one.
const fewArguments = 8

// The arguments of one call.
type arguments struct {
	list   recipe.Object
	byName map[string]recipe.Value // nil: they are few
}

func (a arguments) get(name string) (recipe.Value, bool) {
	if a.byName == nil {
		return a.list.Get(name)
	}
	v, ok := a.byName[name]
	return v, ok
}

// value is nil for what is not given.
func (a arguments) value(name string) recipe.Value {
	v, _ := a.get(name)
	return v
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
	v, given := b.args.get(name)
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
