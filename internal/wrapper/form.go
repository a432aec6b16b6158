package wrapper

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// A form fills a body as application/x-www-form-urlencoded, which has only a
// flat list of names and texts. Nesting is written into the names, as PHP, Rack
// and qs read it: a[b] for a member, a or a[] for an array's element, and a[0]
// where elements are objects or arrays themselves, because without a number
// nobody could tell which members belong together.
type form struct {
	b        *build
	brackets bool // an element's name is a[] instead of a
	out      []byte
	name     []byte // of the value being written, encoded
	depth    int    // names inside each other in name
	arg      string // the argument whose value is being written; "": the template's own
	refused  bool   // that argument cannot stand in a form
	visits   int    // values that were looked at
}

// "[", "]" and "|" as they are sent: some servers refuse them in a URL as they are.
const (
	opening = "%5B"
	closing = "%5D"
	pipe    = "%7C"
)

// fillForm writes the whole form; ok is false when there is none to send.
func (n *bodyNode) fillForm(b *build, brackets bool) (out []byte, ok bool) {
	if name, whole := n.text.whole(); whole {
		switch v, given := b.args.get(name); v.(type) {
		case recipe.Object:
		case nil: // omitted, or null
			return nil, false
		default:
			b.problem(name, "TYPE", `send an object, such as {"name": "value"}`, "the value is the whole form, which is made of an object's members, not of %s", article(typeOf(v)))
			return nil, given
		}
	}
	f := &form{b: b, brackets: brackets, out: []byte{}} // an empty form is sent
	f.node(n)
	return f.out, true
}

func article(kind string) string {
	if strings.ContainsRune("aeiou", rune(kind[0])) {
		return "an " + kind
	}
	return "a " + kind
}

// add writes one pair.
func (f *form) add(value string) {
	size := len(f.out) + len(f.name) + len("=") + len(value)
	if len(f.out) > 0 {
		size += len("&")
	}
	if f.b.tooLarge(size, MaxBody, "body") {
		return
	}
	if len(f.out) > 0 {
		f.out = append(f.out, '&')
	}
	f.out = append(f.out, f.name...)
	f.out = append(f.out, '=')
	f.out = appendForm(f.out, value)
}

// visit counts a value. Empty objects write nothing, and a document may name
// one argument full of them thousands of times: what is looked at has the same
// bound as what is written.
func (f *form) visit() bool {
	f.visits++
	return !f.b.tooLarge(f.visits, MaxBody, "body")
}

// node writes a value of the template; one with an omitted argument in it is
// left out.
func (f *form) node(n *bodyNode) {
	switch {
	case f.b.large != nil:
	case n.static != nil:
		f.value(n.value)
	case n.text.parts != nil:
		name, whole := n.text.whole()
		if !whole {
			if s, ok := f.b.text(n.text, "the middle of a text", MaxBody, "body"); ok {
				f.add(s)
			}
			return
		}
		if v, given := f.b.args.get(name); given && !f.b.refused[name] {
			f.arg, f.refused = name, false
			f.value(v)
			f.arg = ""
		}
	case n.array:
		f.nodes(n.items)
	default:
		for i := range n.members {
			if f.visit() {
				f.member(n.members[i].name, func() { f.node(&n.members[i].node) })
			}
		}
	}
}

// nodes writes the elements of an array of the template. Omitted ones leave no
// gap in the numbers.
func (f *form) nodes(items []bodyNode) {
	numbered, written := false, 0
	for i := range items {
		numbered = numbered || f.compound(&items[i])
	}
	for i := range items {
		if f.visit() && f.given(&items[i]) {
			f.element(written, numbered, func() { f.node(&items[i]) })
			written++
		}
	}
}

// given reports whether a value of the template is there.
func (f *form) given(n *bodyNode) bool {
	if n.static != nil || n.text.parts == nil {
		return true
	}
	if name, whole := n.text.whole(); whole {
		_, given := f.b.args.get(name)
		return given
	}
	return f.b.given(n.text, "the middle of a text")
}

// compound reports whether a value of the template is an object or an array.
func (f *form) compound(n *bodyNode) bool {
	if n.static != nil {
		return isCompound(n.value)
	}
	if name, whole := n.text.whole(); whole {
		return isCompound(f.b.args.value(name))
	}
	return n.text.parts == nil
}

func isCompound(v recipe.Value) bool {
	switch v.(type) {
	case recipe.Object, recipe.Array:
		return true
	}
	return false
}

// value writes a value that has no placeholders.
func (f *form) value(v recipe.Value) {
	if f.refused || !f.visit() {
		return
	}
	switch v := v.(type) {
	case nil:
		f.add("") // a form has no null; browsers, Rails and qs send the empty text
	case string:
		f.add(v)
	case recipe.Array:
		numbered := false
		for _, e := range v {
			numbered = numbered || isCompound(e)
		}
		for i, e := range v {
			f.element(i, numbered, func() { f.value(e) })
		}
	case recipe.Object:
		for _, m := range v {
			if f.nameable(m.Key) && f.visit() {
				f.member(m.Key, func() { f.value(m.Value) })
			}
		}
	default:
		s, _ := scalar(v)
		f.add(s)
	}
}

// nameable refuses the names inside an argument that would change the structure
// around them: a server finds the nesting by the brackets.
func (f *form) nameable(key string) bool {
	if f.arg == "" { // the template's own names are checked when it is saved
		return true
	}
	what := misnamed(key, f.depth)
	if what != "" {
		f.refused = true
		f.b.refuse(f.arg)
		f.b.problem(f.arg, "PATTERN", "nest objects instead of writing brackets", "the value goes into a form, and its member %q %s", oneLine(key), what)
	}
	return what == ""
}

// misnamed says what is wrong with the name of a member of a form. At the top
// brackets are the author's own way to write nesting.
func misnamed(key string, depth int) string {
	switch {
	case key == "":
		return "has no name"
	case depth > 0 && strings.ContainsAny(key, "[]"):
		return "has a bracket in its name, which is read as nesting"
	}
	return ""
}

// member writes a member of an object under its name.
func (f *form) member(key string, write func()) {
	before := len(f.name)
	if f.depth > 0 {
		f.name = append(f.name, opening...)
	}
	f.name = appendForm(f.name, key)
	if f.depth > 0 {
		f.name = append(f.name, closing...)
	}
	f.depth++
	write()
	f.depth--
	f.name = f.name[:before]
}

// element writes an element of an array. A name that ends in [] is the author's
// own way to write an array and gets nothing more.
func (f *form) element(i int, numbered bool, write func()) {
	before := len(f.name)
	switch {
	case bytes.HasSuffix(f.name, []byte(opening+closing)):
	case numbered:
		f.name = append(f.name, opening...)
		f.name = strconv.AppendInt(f.name, int64(i), 10)
		f.name = append(f.name, closing...)
	case f.brackets:
		f.name = append(f.name, opening+closing...)
	}
	write()
	f.name = f.name[:before]
}

// appendForm escapes by the rule of the URL standard for forms: letters, digits
// and * - . _ stay, a space becomes +, every other byte is percent-encoded.
func appendForm(dst []byte, s string) []byte {
	const digits = "0123456789ABCDEF"
	for i := range len(s) {
		switch c := s[i]; {
		case c == ' ':
			dst = append(dst, '+')
		case c == '*' || c != '~' && unreserved(c):
			dst = append(dst, c)
		default:
			dst = append(dst, '%', digits[c>>4], digits[c&15])
		}
	}
	return dst
}
