package wrapper

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/schema"
	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// Bounds of request.rate.
const (
	maxRateRequests = 10000
	maxRateSeconds  = 3600
)

// members reads an object of a fixed shape: its members that are not null. A
// key that is not known is refused.
func (c *checker) members(v recipe.Value, field, shape string, known ...string) (map[string]recipe.Value, bool) {
	o, ok := c.object(v, field, "write "+shape)
	if !ok {
		return nil, false
	}
	out := map[string]recipe.Value{}
	for _, m := range o {
		switch {
		case !slices.Contains(known, m.Key):
			hint := "write " + shape
			if near := schema.Near(m.Key, known); near != "" {
				hint = fmt.Sprintf("did you mean %q?", near)
			}
			c.problem(at(field, m.Key), "UNKNOWN_FIELD", hint, "unknown key %q", oneLine(m.Key))
		case m.Value != nil:
			out[m.Key] = m.Value
		}
	}
	return out, true
}

// whole reads a whole number from 1 to most.
func (c *checker) whole(v recipe.Value, field, code, hint string, most int) (int, bool) {
	number, ok := v.(json.Number)
	if !ok {
		c.problem(field, "TYPE", hint, "expected a whole number from 1 to %d, got %s", most, typeOf(v))
		return 0, false
	}
	n, err := strconv.ParseUint(string(number), 10, 32)
	if err != nil || n < 1 || n > uint64(most) {
		c.problem(field, code, hint, "expected a whole number from 1 to %d", most)
		return 0, false
	}
	return int(n), true
}

func (p *requestParser) concurrency(v recipe.Value, field string) {
	if n, ok := p.whole(v, field, "RANGE", "such as 4, without quotes; without the key up to 32 requests run at once", MaxConcurrency); ok {
		p.w.Request.Concurrency = n
		p.out["concurrency"] = v
	}
}

const rateShape = `{"requests": 5, "seconds": 1}`

func (p *requestParser) rate(v recipe.Value, field string) {
	given, ok := p.members(v, field, rateShape, "requests", "seconds")
	if !ok {
		return
	}
	read := func(key string, most int) int {
		here := at(field, key)
		v, ok := given[key]
		if !ok {
			p.problem(here, "REQUIRED", "write "+rateShape, "is required")
			return 0
		}
		n, _ := p.whole(v, here, "RATE_INVALID", "write "+rateShape, most)
		return n
	}
	requests, seconds := read("requests", maxRateRequests), read("seconds", maxRateSeconds)
	p.w.Request.Rate = &Rate{Requests: requests, Per: time.Duration(seconds) * time.Second}
	p.out["rate"] = ordered([]string{"requests", "seconds"}, given)
}

const idempotencyShape = `{"header": "Idempotency-Key"}, or with "value": "{{key}}"`

func (p *requestParser) idempotency(v recipe.Value, field string) {
	given, ok := p.members(v, field, idempotencyShape, "header", "value")
	if !ok {
		return
	}
	id := &Idempotency{}
	switch v, ok := given["header"]; {
	case !ok:
		p.problem(at(field, "header"), "REQUIRED", "write "+idempotencyShape, "is required (the name of the header)")
	default:
		id.Header = p.idempotencyHeader(v, at(field, "header"))
	}
	if v, ok := given["value"]; ok {
		id.Value = p.idempotencyValue(v, at(field, "value"))
	}
	p.w.Request.Idempotency = id
	p.out["idempotencyKey"] = ordered([]string{"header", "value"}, given)
}

// meant are headers that say something else to every server, and beginnings of
// such headers.
var (
	meant       = []string{"user-agent", "origin", "referer", "range", "date", "prefer", "cache-control", "pragma", "from", "via", "link", "warning"}
	meantFamily = []string{"accept", "content-", "if-", "access-control-", "sec-"}
)

func (p *requestParser) idempotencyHeader(v recipe.Value, field string) string {
	name, ok := p.text(v, field, `such as "Idempotency-Key"`)
	if !ok || !p.headerName(name, field) {
		return ""
	}
	lower := strings.ToLower(name)
	family := func(prefix string) bool { return strings.HasPrefix(lower, prefix) }
	if slices.Contains(meant, lower) || overridesMethod(name) || slices.ContainsFunc(meantFamily, family) {
		p.problem(field, "HEADER_INVALID", `the API's documentation names it, often "Idempotency-Key"`, "header %s has a meaning of its own", oneLine(name))
		return ""
	}
	return name
}

func (p *requestParser) idempotencyValue(v recipe.Value, field string) *Template {
	const hint = `write "{{key}}" with a property of the input schema, or leave value out for a random key`
	s, ok := p.text(v, field, hint)
	if !ok {
		return nil
	}
	t, ok := p.headerTemplate(s, field)
	switch {
	case !ok:
		return nil
	case t.literal():
		p.problem(field, "PATTERN", hint, "every call would carry the same key, and the API would take all of them for one")
		return nil
	}
	if name, fixed := p.constant(t); fixed {
		p.warn(field, "PATTERN", "take the default out: without the argument a random key is sent", "{{%s}} has a default, so calls without it carry the same key, and the API takes them for one", cut(oneLine(name), 60))
	}
	return &t
}

// constant reports whether all arguments of t have defaults, and names one.
func (p *requestParser) constant(t Template) (name string, fixed bool) {
	if p.input == nil {
		return "", false
	}
	for _, part := range t.parts {
		if part.name == "" {
			continue
		}
		prop, ok := p.input.Property(part.name)
		if !ok || !prop.HasDefault {
			return "", false
		}
		name = part.name
	}
	return name, true
}

// idempotent checks what the key says together with the rest of the request.
func (p *requestParser) idempotent() {
	id := p.w.Request.Idempotency
	if id == nil || id.Header == "" {
		return
	}
	const field = requestField + ".idempotencyKey"
	for _, h := range p.w.Request.Headers {
		if strings.EqualFold(h.Name, id.Header) {
			p.problem(field+".header", "DUPLICATE", "take it out of headers; value says what is sent", "header %s is set in headers too", oneLine(id.Header))
		}
	}
	if methods := p.w.Request.Methods; len(methods) > 0 && !slices.ContainsFunc(methods, writes) && !p.w.override && !p.w.declared {
		p.warn(field, "HEADER_INVALID", "take idempotencyKey out", "the key is sent only with writes, and %s is none", strings.Join(methods, " or "))
	}
}
