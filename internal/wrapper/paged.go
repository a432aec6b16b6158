package wrapper

import (
	"slices"
	"strings"

	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

const pagingField = "response.pagination"

// paged checks what the pagination of the recipe asks of the request. The
// recipe by itself cannot know.
func (p *parser) paged() {
	r := &p.w.Request
	if p.w.Response == nil || !p.w.Response.Pagination.Paged() || p.w.Input == nil {
		return
	}
	plan, c := p.w.Response.Pagination, p.part("response")
	if plan.Type == "link" {
		if method := firstWrite(r.Methods); method != "" || p.w.override || p.w.declared {
			if method == "" {
				method = "a request that counts as a write"
			}
			c.problem(pagingField+".type", "PAGING_TYPE", "use cursor or offset, which change one parameter of the request; or allow GET only",
				"a next link would repeat %s at an address that the answer chooses", method)
		}
	}
	switch plan.In {
	case "body":
		p.pagedBody(plan, c)
	case "header": // the answer would choose the method of the next request
		for _, set := range [][2]string{{"cursorParam", plan.CursorParam}, {"offsetParam", plan.OffsetParam}, {"limitParam", plan.LimitParam}} {
			if overridesMethod(set[1]) {
				c.problem(pagingField+"."+set[0], "PAGING_KEY", "name a header that holds the page", "header %s makes a server treat one method as another", set[1])
			}
		}
	}
}

// firstWrite is the first method that writes; "": none does.
func firstWrite(methods []string) string {
	if i := slices.IndexFunc(methods, writes); i >= 0 {
		return methods[i]
	}
	return ""
}

// pagedBody checks a pagination that sets a member of the body.
func (p *parser) pagedBody(plan recipe.Pagination, c *checker) {
	const field = pagingField + ".in"
	r := &p.w.Request
	for _, m := range r.Methods {
		if !carriesBody(m) {
			c.problem(field, "PAGING_KEY", `use "in": "query", or allow POST only`, "%s carries no body", m)
			return
		}
	}
	if r.Body == nil {
		return // the walk makes one
	}
	if r.Body.Type != BodyJSON {
		c.problem(field, "PAGING_KEY", `use "in": "query", or send the body as JSON`, `the body is sent as "%s", and a page can set a member of a JSON object only`, r.Body.Type)
		return
	}
	param, key := plan.OffsetParam, "offsetParam"
	if plan.Type == "cursor" {
		param, key = plan.CursorParam, "cursorParam"
	}
	node := &r.Body.root
	for i, step := range append(strings.Split(param, "."), "") {
		kind := p.kindOf(node)
		switch {
		case step == "": // the member itself may have any type
			return
		case kind != "object" && i == 0:
			c.problem(field, "PAGING_KEY", `write the body as an object, or use "in": "query"`, "a page sets a member of the body, and the body is %s", article(kind))
			return
		case kind != "object":
			c.problem(pagingField+"."+key, "PAGING_KEY", "name a place in the body that the page may set", "%q cannot be set: the body has %s on the way", param, article(kind))
			return
		}
		if node = node.member(step); node == nil {
			return // made on the way, or not known before the call
		}
	}
}

// kindOf is the JSON type of a value of the body; what an argument decides
// counts as an object.
func (p *parser) kindOf(n *bodyNode) string {
	switch {
	case n.static != nil:
		return typeOf(n.value)
	case n.array:
		return "array"
	case n.text.parts == nil:
		return "object"
	}
	name, whole := n.text.whole()
	if !whole {
		return "string"
	}
	if prop, ok := p.w.Input.Property(name); ok && len(prop.Types) > 0 && prop.Types[0] != "null" {
		return prop.Types[0]
	}
	return "object"
}

// member is a member of an object of the template; nil when there is none, or
// when an argument decides.
func (n *bodyNode) member(name string) *bodyNode {
	if o, ok := n.value.(recipe.Object); ok && n.static != nil {
		if v, ok := o.Get(name); ok && v != nil {
			return &bodyNode{static: recipe.Encode(v), value: v}
		}
		return nil
	}
	for i := range n.members {
		if n.members[i].name == name {
			return &n.members[i].node
		}
	}
	return nil
}
