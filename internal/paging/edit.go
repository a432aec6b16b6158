package paging

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// An Edit is what one request changes in the wrapper's own request. The zero
// Edit changes nothing.
type Edit struct {
	Query  []Pair   // parameters to set; each name once
	Header []Pair   // headers to set
	Body   []Place  // members of the body to set
	URL    *url.URL // the whole URL; nil: the wrapper's own with Query set
}

// A Pair is one parameter or header. The value is as meant, not escaped.
type Pair struct{ Name, Value string }

// A Place is one member of a body: the names that lead to it, and its value.
type Place struct {
	Path  []string
	Value recipe.Value
}

// Apply makes the request: u and body are the wrapper's own, and neither is
// changed. A parameter replaces the first of its name, further ones of that
// name go, and a new one comes last; all other bytes of the URL stay as they
// are. setHeader is called for each header to set and may be nil when headers
// do not matter. A nil body becomes an object when there is something to put
// into it.
//
// The error is a *fault.Error, WRAPPER_INVALID: the body has something else
// than an object where the plan wants to set a member.
func (e Edit) Apply(u *url.URL, setHeader func(name, value string), body recipe.Value) (*url.URL, recipe.Value, error) {
	for _, p := range e.Body {
		var err *fault.Error
		if body, err = setMember(body, p.Path, p.Value, 0); err != nil {
			return nil, nil, err
		}
	}
	if setHeader != nil {
		for _, h := range e.Header {
			setHeader(h.Name, h.Value)
		}
	}
	return e.address(u), body, nil
}

// address is the URL of the request.
func (e Edit) address(u *url.URL) *url.URL {
	if e.URL != nil {
		u = e.URL
	}
	c := *u
	for _, p := range e.Query {
		c.RawQuery = setParam(c.RawQuery, p)
	}
	return &c
}

// setParam sets one parameter in the text of a query. The name keeps the
// spelling that it has there.
func setParam(query string, p Pair) string {
	var out []string
	done := false
	if query != "" {
		for piece := range strings.SplitSeq(query, "&") {
			raw, _, _ := strings.Cut(piece, "=")
			if name, err := url.QueryUnescape(raw); err != nil && raw != p.Name || err == nil && name != p.Name || piece == "" {
				out = append(out, piece)
				continue
			}
			if !done {
				out = append(out, raw+"="+escape(p.Value))
			}
			done = true
		}
	}
	if done {
		return strings.Join(out, "&")
	}
	if n := len(out); n > 0 && out[n-1] == "" { // the query ends with its own "&"
		out = out[:n-1]
	}
	return strings.Join(append(out, escape(p.Name)+"="+escape(p.Value)), "&")
}

// escape is percent-encoding of everything that is not unreserved (RFC 3986),
// as wrappers do it.
func escape(s string) string {
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~", c) >= 0 {
			b.WriteByte(c)
			continue
		}
		fmt.Fprintf(&b, "%%%02X", c)
	}
	return b.String()
}

// setMember gives a copy of body in which the member at path is v; what lies
// beside the path is shared. Missing objects on the way are made.
func setMember(body recipe.Value, path []string, v recipe.Value, depth int) (recipe.Value, *fault.Error) {
	if depth == len(path) {
		return v, nil
	}
	o, ok := body.(recipe.Object)
	if !ok && body != nil {
		where := "the request's body"
		if depth > 0 {
			where = fmt.Sprintf("%q in the request's body", strings.Join(path[:depth], "."))
		}
		return nil, fault.OneProblem("WRAPPER_INVALID", "PAGING_KEY", "response.pagination",
			"%q cannot be set: %s is %s, not an object", strings.Join(path, "."), where, kindOf(body))
	}
	out := make(recipe.Object, len(o), len(o)+1)
	copy(out, o)
	at := len(out) - 1 // of duplicates the last counts
	for at >= 0 && out[at].Key != path[depth] {
		at--
	}
	if at < 0 {
		at = len(out)
		out = append(out, recipe.Member{Key: path[depth]})
	}
	inner, err := setMember(out[at].Value, path, v, depth+1)
	if err != nil {
		return nil, err
	}
	out[at].Value = inner
	return out, nil
}

// put sets a value where "in" of the plan says: a JSON value in a body, its
// text elsewhere.
func (e *Edit) put(in, name string, v recipe.Value, text string) {
	switch in {
	case "body":
		e.Body = append(e.Body, Place{strings.Split(name, "."), v})
	case "header":
		e.Header = append(e.Header, Pair{name, text})
	default:
		e.setQuery(name, text)
	}
}

// setQuery keeps each name once: the last value counts, as in an object.
func (e *Edit) setQuery(name, value string) {
	for i := range e.Query {
		if e.Query[i].Name == name {
			e.Query[i].Value = value
			return
		}
	}
	e.Query = append(e.Query, Pair{name, value})
}
