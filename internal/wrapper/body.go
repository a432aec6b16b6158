package wrapper

import (
	"fmt"
	"strings"

	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// The values of request.bodyType.
const (
	BodyJSON = "json" // any JSON value, with placeholders in its strings; the default
	BodyForm = "form" // an object, sent as application/x-www-form-urlencoded
	BodyText = "text" // one text, sent as it is
)

// contentTypes are sent unless the author sets a Content-Type.
var contentTypes = map[string]string{
	BodyJSON: "application/json", BodyForm: "application/x-www-form-urlencoded", BodyText: "text/plain; charset=utf-8",
}

// A Body is a compiled request.body.
type Body struct {
	Type     string // BodyJSON, BodyForm or BodyText
	brackets bool   // of a form: the name of an array's element ends in []
	root     bodyNode
}

// fill writes the body; ok is false when all of it is omitted.
func (body *Body) fill(b *build) (out []byte, ok bool) {
	switch body.Type {
	case BodyForm:
		return body.root.fillForm(b, body.brackets)
	case BodyText:
		s, ok := b.text(body.root.text, "a text", MaxBody, "body")
		return []byte(s), ok
	}
	return body.root.append(b, nil)
}

// A bodyNode is one value of a body template.
type bodyNode struct {
	static  []byte       // encoded: the value and everything in it has no placeholder
	value   recipe.Value // what static encodes
	text    Template     // a string with placeholders
	members []bodyMember // of an object
	items   []bodyNode   // of an array
	array   bool
}

type bodyMember struct {
	name string
	key  []byte // the name encoded, with the colon
	node bodyNode
}

// bodyNode compiles a value. Names of members are fixed: a brace pair in one is
// a mistake rather than a name.
func (c *checker) bodyNode(v recipe.Value, field string) bodyNode {
	switch v := v.(type) {
	case string:
		t, ok := c.template(v, field, func(t Template) place {
			if _, whole := t.whole(); whole {
				return inBodyWhole
			}
			return inBodyText
		})
		if ok && !t.literal() {
			return bodyNode{text: t}
		}
	case recipe.Array:
		n := bodyNode{array: true}
		fixed := true
		for i, e := range v {
			child := c.bodyNode(e, fmt.Sprintf("%s[%d]", field, i))
			fixed = fixed && child.static != nil
			n.items = append(n.items, child)
		}
		if !fixed {
			return n
		}
	case recipe.Object:
		var n bodyNode
		fixed := true
		for _, m := range v {
			here := at(field, m.Key)
			if strings.Contains(m.Key, "{{") {
				c.problem(here, "PLACEHOLDER_SYNTAX", "write the name out, or take the whole object as an argument", "the name of a member cannot come from an argument")
			}
			child := c.bodyNode(m.Value, here)
			fixed = fixed && child.static != nil
			n.members = append(n.members, bodyMember{m.Key, append(recipe.Encode(m.Key), ':'), child})
		}
		if !fixed {
			return n
		}
	}
	return bodyNode{static: recipe.Encode(v), value: v}
}

// append writes the value after dst; ok is false when it is to be omitted,
// and dst comes back as it was.
func (n *bodyNode) append(b *build, dst []byte) (out []byte, ok bool) {
	if b.tooLarge(len(dst), MaxBody, "body") {
		return dst, false
	}
	switch {
	case n.static != nil:
		return append(dst, n.static...), true
	case n.text.parts != nil:
		return n.appendText(b, dst)
	case n.array:
		return n.appendArray(b, dst), true
	}
	return n.appendObject(b, dst), true
}

func (n *bodyNode) appendText(b *build, dst []byte) ([]byte, bool) {
	name, whole := n.text.whole()
	if !whole {
		s, ok := b.text(n.text, "the middle of a text", MaxBody, "body")
		if !ok {
			return dst, false
		}
		return append(dst, recipe.Encode(s)...), true
	}
	v, given := b.args.get(name)
	if !given {
		return dst, false
	}
	return append(dst, recipe.Encode(v)...), true
}

func (n *bodyNode) appendArray(b *build, dst []byte) []byte {
	dst = append(dst, '[')
	first := true
	for i := range n.items {
		before := len(dst)
		if !first {
			dst = append(dst, ',')
		}
		var ok bool
		if dst, ok = n.items[i].append(b, dst); !ok {
			dst = dst[:before]
			continue
		}
		first = false
	}
	return append(dst, ']')
}

func (n *bodyNode) appendObject(b *build, dst []byte) []byte {
	dst = append(dst, '{')
	first := true
	for i := range n.members {
		before := len(dst)
		if !first {
			dst = append(dst, ',')
		}
		dst = append(dst, n.members[i].key...)
		var ok bool
		if dst, ok = n.members[i].node.append(b, dst); !ok {
			dst = dst[:before]
			continue
		}
		first = false
	}
	return append(dst, '}')
}
