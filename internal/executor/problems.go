package executor

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// Bounds of what one problem shows of the API's own words.
const (
	maxProblemField = 80  // characters, without the prefix
	maxProblemText  = 200 // characters

	unnamed = "upstream" // the place of a problem whose input the API does not name
)

// problemLists are the places where APIs list what is wrong with an input:
// GitHub, JSON:API, RFC 9457, Spring, express-validator, Ajv and, as an object
// by field, Rails, Laravel, ASP.NET and Jira (errors), Google (error.details
// with fieldViolations, error.errors), Microsoft (error.details), FastAPI
// (detail), Joi (details), Zod (issues, error.issues), Symfony (violations), RFC
// 7807's own example (invalid-params), Nest (message).
var problemLists = [][]string{
	{"errors"},
	{"error", "details"},
	{"error", "errors"},
	{"error", "issues"},
	{"detail"},
	{"details"},
	{"issues"},
	{"violations"},
	{"invalid-params"},
	{"invalid_params"},
	{"message"},
}

// upstreamProblems reads every problem that an API's error body lists, in its
// order, at most fault.MaxDetails. The Field is "upstream:" and the input that
// the API names, or "upstream" when it names none.
func upstreamProblems(body recipe.Value) []fault.Detail {
	var p problems
	for _, place := range problemLists {
		v := at(body, place...)
		if o, ok := v.(recipe.Object); ok && place[0] != "errors" {
			if firstText(o, "message") != "" {
				p.one(o, "", 0)
			}
			continue // an object elsewhere is data about the failure
		}
		p.list(v, "")
	}
	if o, ok := body.(recipe.Object); ok && len(p) == 0 && isFieldMap(o) {
		p.list(o, "") // Django: the fields stand at the root
	}
	if a, ok := body.(recipe.Array); ok && len(p) == 0 {
		p.list(a, "")
	}
	return p
}

// isFieldMap reports whether every member is a list of texts.
func isFieldMap(o recipe.Object) bool {
	for _, m := range o {
		texts, ok := m.Value.(recipe.Array)
		if !ok || len(texts) == 0 {
			return false
		}
		for _, t := range texts {
			if _, ok := t.(string); !ok {
				return false
			}
		}
	}
	return len(o) > 0
}

type problems []fault.Detail

// list reads a list of problems, or an object that has them by field. A single
// text is no list: it is the message.
func (p *problems) list(v recipe.Value, field string) {
	switch v := v.(type) {
	case recipe.Array:
		for i, e := range v {
			if len(*p) >= fault.MaxDetails {
				return
			}
			switch e := e.(type) {
			case string:
				p.add(field, e)
			case recipe.Object:
				p.one(e, field, i)
			}
		}
	case recipe.Object:
		if field == "" && firstText(v, "message") != "" { // a problem, not a list of fields
			p.one(v, "", 0)
			return
		}
		for _, m := range v {
			if len(*p) >= fault.MaxDetails {
				return
			}
			here := joinField(field, m.Key)
			if s, ok := m.Value.(string); ok {
				p.add(here, s)
				continue
			}
			p.list(m.Value, here)
		}
	}
}

// one reads one problem that is an object. Inside a list by field it may be
// the problems of one entry of that field (Rails and Django do this for lists).
func (p *problems) one(o recipe.Object, field string, index int) {
	if list, ok := o.Get("fieldViolations"); ok {
		p.list(list, field)
		return
	}
	text := firstText(o, "message", "detail", "msg", "description", "defaultMessage", "reason", "title", "error", "code", "type")
	own := problemField(o)
	if text == "" && field != "" && own == "" {
		p.list(o, fmt.Sprintf("%s[%d]", field, index))
		return
	}
	if own == "" {
		own = field
	}
	p.add(own, text)
}

// problemField is the input that a problem names: a name, a JSON pointer, or
// the steps to it.
func problemField(o recipe.Object) string {
	for _, places := range [][]string{
		{"field"},
		{"param"},
		{"pointer"},
		{"source", "pointer"},
		{"source", "parameter"},
		{"source", "header"},
		{"loc"},
		{"path"},
		{"instancePath"},
		{"propertyPath"},
		{"property"},
		{"target"},
		{"attribute"},
		{"location"},
		{"name"},
	} {
		switch v := at(o, places...).(type) {
		case string:
			if v != "" {
				return v
			}
		case recipe.Array:
			field := ""
			for _, step := range v {
				switch step := step.(type) {
				case string:
					field = joinField(field, step)
				case json.Number:
					field += "[" + step.String() + "]"
				}
			}
			if field != "" {
				return field
			}
		}
	}
	return ""
}

func joinField(field, key string) string {
	if field == "" {
		return key
	}
	return field + "." + key
}

func firstText(o recipe.Object, keys ...string) string {
	for _, k := range keys {
		if v, ok := o.Get(k); ok {
			if s, ok := v.(string); ok && strings.TrimSpace(s) != "" {
				return s
			}
		}
	}
	return ""
}

// add notes a problem once.
func (p *problems) add(field, text string) {
	text = fault.Shorten(strings.TrimSpace(text), maxProblemText)
	if text == "" || looksLikeHTML([]byte(text)) {
		return
	}
	where := unnamed
	if field != "" {
		where += ":" + fault.Shorten(field, maxProblemField)
	}
	d := fault.Detail{Field: where, Code: "REFUSED_BY_API", Message: text}
	for _, old := range *p {
		if old == d {
			return
		}
	}
	if len(*p) < fault.MaxDetails {
		*p = append(*p, d)
	}
}
