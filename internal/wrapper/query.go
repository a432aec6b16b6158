package wrapper

import (
	"net/url"
	"strings"

	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

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
	key := name + "="
	for _, v := range p.Values {
		if q.b.large != nil {
			return
		}
		q.param(key, v)
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
		text, _ := b.args.value(p.name).(string)
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
	if list, isList := q.b.args.value(name).(recipe.Array); isList {
		for _, text := range q.b.list(name, list) {
			if q.b.large != nil {
				return
			}
			f(text)
		}
		return
	}
	if _, isObject := q.b.args.value(name).(recipe.Object); isObject {
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
