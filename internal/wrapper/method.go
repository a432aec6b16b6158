package wrapper

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// methods a wrapper may use.
var knownMethods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"}

// writes reports whether a method changes something by definition.
func writes(method string) bool {
	return method == "POST" || method == "PUT" || method == "PATCH" || method == "DELETE"
}

// carriesBody reports whether a body goes out with a method.
func carriesBody(method string) bool { return writes(method) }

// methods reads method (a name or a list) and methods together: the first one
// named is the default, and all of them are allowed.
func (p *requestParser) methods(obj recipe.Object) {
	r := &p.w.Request
	wrong := false
	for _, key := range []string{"method", "methods"} {
		v, ok := obj.Get(key)
		if !ok || v == nil {
			continue
		}
		field := at(requestField, key)
		list, isList := v.(recipe.Array)
		switch {
		case !isList && key == "methods":
			wrong = true
			p.problem(field, "TYPE", `write ["GET", "POST"]`, "expected array, got %s", typeOf(v))
			continue
		case !isList:
			list = recipe.Array{v}
		case len(list) == 0:
			wrong = true
			p.problem(field, "TOO_FEW", "", "the list of methods is empty")
		}
		for i, e := range list {
			here := field
			if isList {
				here = fmt.Sprintf("%s[%d]", field, i)
			}
			if method, ok := p.method(e, here); !ok {
				wrong = true
			} else if !slices.Contains(r.Methods, method) {
				r.Methods = append(r.Methods, method)
			}
		}
	}
	if wrong {
		r.Methods = nil // spares the problems that would only follow
		return
	}
	if len(r.Methods) == 0 {
		r.Methods = []string{"GET"}
	}
	r.Method = r.Methods[0]
	p.out["method"] = r.Method
	if len(r.Methods) > 1 {
		all := make(recipe.Array, len(r.Methods))
		for i, m := range r.Methods {
			all[i] = m
		}
		p.out["methods"] = all
	}
}

func (p *requestParser) method(v recipe.Value, field string) (string, bool) {
	s, ok := p.text(v, field, `write "GET", or ["GET", "POST"]`)
	if !ok {
		return "", false
	}
	upper := strings.ToUpper(s)
	if !slices.Contains(knownMethods, upper) {
		p.problem(field, "METHOD_UNKNOWN", "use one of "+strings.Join(knownMethods, ", "), "method %q is not supported", oneLine(s))
		return "", false
	}
	return upper, true
}
