package wrapper

import (
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// Bounds above which Lint warns. Some models refuse more than 1024 characters
// of a tool's description; strict structured output takes 100 properties in 10
// levels on the oldest API that is still in use.
const (
	lintDescription = 800
	lintProperties  = 100
	lintDepth       = 10
	lintPublished   = 8 << 10
)

// Lint looks for what is allowed and yet most likely a mistake: arguments that
// the request does not use, and, in a wrapper that is exposed as a tool, what
// some client would refuse or not be shown, with the client's name. It returns
// warnings for the one who saves the document, at most recipe.MaxProblems.
func Lint(w *Wrapper) []recipe.Problem {
	var out []recipe.Problem
	for _, p := range unused(w) {
		add(&out, p)
	}
	if !w.ExposeAsTool {
		return out
	}
	schema := w.EffectiveSchema()
	for _, p := range badKeys(schema, inputField) {
		add(&out, p)
	}
	c := &cleaner{}
	published := recipe.Encode(c.node(schema, inputField))
	dots(c, schema, inputField)
	if n := utf8.RuneCountInString(w.Description); n > lintDescription {
		c.note("wrapper.description", "say first what it does", "has %d characters; the tool shows %d, because OpenAI models refuse more than 1024", n, lintDescription)
	}
	depth, count := measure(schema)
	if count > lintProperties {
		c.note(inputField, "make the input smaller", "%d properties; strict OpenAI clients take %d", count, lintProperties)
	}
	if depth > lintDepth {
		c.note(inputField, "make the input flatter", "%d levels; strict OpenAI clients take %d", depth, lintDepth)
	}
	switch n := len(published); {
	case n > maxPublished:
		add(&out, recipe.Problem{Field: inputField, Code: "TOOL_QUARANTINED", Message: tooLong(published), Hint: "shorten descriptions and enums; wrap_run takes it as it is"})
	case n > lintPublished:
		c.note(inputField, "shorten descriptions and enums", "has %d bytes, which every client's model reads in every session", n)
	}
	for _, p := range c.notes {
		add(&out, p)
	}
	return out
}

// unused are the arguments that stand nowhere in the request, or only where the
// pagination writes something else into every request.
func unused(w *Wrapper) []recipe.Problem {
	used, sent := w.placeholders(nil), w.placeholders(w.replaced())
	var out []recipe.Problem
	for _, p := range w.Input.Properties() {
		if sent[p.Name] || p.Name == "method" && len(w.Request.Methods) > 1 {
			continue
		}
		if used[p.Name] {
			out = append(out, recipe.Problem{
				Field: at(at(inputField, "properties"), p.Name), Code: "ARGUMENT_UNUSED",
				Message: fmt.Sprintf("the argument %q is never sent: the pagination sets that query parameter", oneLine(p.Name)),
				Hint:    "remove it, or the pagination; max_items and max_pages of wrap_run get less",
			})
			continue
		}
		out = append(out, recipe.Problem{
			Field: at(at(inputField, "properties"), p.Name), Code: "ARGUMENT_UNUSED",
			Message: fmt.Sprintf("the argument %q is used nowhere in the request", oneLine(p.Name)),
			Hint:    fmt.Sprintf("write {{%s}} in url, query, headers or body, or remove it", cut(oneLine(p.Name), 40)),
		})
	}
	return out
}

// replaced are the query parameters that the pagination sets in every request,
// the first one too. A cursor is not among them: the first request has the
// wrapper's own.
func (w *Wrapper) replaced() map[string]bool {
	if w.Response == nil || !w.Response.Pagination.Paged() {
		return nil
	}
	plan, out := w.Response.Pagination, map[string]bool{}
	if plan.LimitParam != "" && plan.PageSize > 0 {
		out[plan.LimitParam] = true
	}
	if plan.Type == "offset" && plan.In != "body" && plan.In != "header" {
		out[plan.OffsetParam] = true
	}
	return out
}

// placeholders are the names that stand in the request, query parameters in
// without left out.
func (w *Wrapper) placeholders(without map[string]bool) map[string]bool {
	used := map[string]bool{}
	note := func(t Template) {
		for _, p := range t.parts {
			if p.name != "" {
				used[p.name] = true
			}
		}
	}
	note(w.Request.url.path)
	for _, p := range w.Request.url.pairs {
		if name, err := url.QueryUnescape(strings.TrimSuffix(p.key, "=")); err != nil || !without[name] {
			note(p.value)
		}
	}
	for _, p := range w.Request.Query {
		if without[p.Name] && p.Style != StyleBrackets { // which adds [] to the name
			continue
		}
		for _, t := range p.Values {
			note(t)
		}
	}
	for _, p := range w.Request.Headers {
		for _, t := range p.Values {
			note(t)
		}
	}
	if w.Request.Body != nil {
		w.Request.Body.root.templates(note)
	}
	if id := w.Request.Idempotency; id != nil && id.Value != nil {
		note(*id.Value)
	}
	return used
}

// templates calls f with each text of n that has placeholders.
func (n *bodyNode) templates(f func(Template)) {
	f(n.text)
	for i := range n.members {
		n.members[i].node.templates(f)
	}
	for i := range n.items {
		n.items[i].templates(f)
	}
}

// dots notes the names with a dot, which some clients refuse and most take.
func dots(c *cleaner, in recipe.Object, field string) {
	for _, m := range in {
		child, _ := m.Value.(recipe.Object)
		switch m.Key {
		case "items":
			dots(c, child, at(field, "items"))
		case "properties":
			for _, p := range child {
				here := at(at(field, "properties"), p.Key)
				if strings.Contains(p.Key, ".") && portableKey.MatchString(p.Key) {
					c.note(here, "use _ instead", "some clients, OpenAI's among them, refuse an argument name with a dot")
				}
				grandchild, _ := p.Value.(recipe.Object)
				dots(c, grandchild, here)
			}
		}
	}
}
