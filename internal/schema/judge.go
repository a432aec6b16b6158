package schema

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/xeipuuv/gojsonschema"

	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// A judge asks gojsonschema for its opinion of arguments. Measured with v1.2.0:
// the library fetches $ref over HTTP and from files, ends the process on
// {"$ref":"#"}, panics on the number 4E9999999, compares large numbers of an
// enum as floats and prints values. So it gets a schema rebuilt from typed
// nodes, without enum and default, without patterns, whose cost it would not
// bound, numbers that were bounded before, a loader
// that loads nothing, and its texts are not shown.
type judge struct{ compiled *gojsonschema.Schema }

// newJudge compiles the rebuilt schema.
func newJudge(root *node) (j judge, err error) {
	defer func() {
		if p := recover(); p != nil {
			j, err = judge{}, fmt.Errorf("the schema library panicked: %v", p)
		}
	}()
	loader := gojsonschema.NewSchemaLoader()
	loader.AutoDetect = false
	loader.Draft = gojsonschema.Draft7
	compiled, err := loader.Compile(sealed{gojsonschema.NewRawLoader(rebuild(root))})
	if err != nil {
		return judge{}, err
	}
	return judge{compiled}, nil
}

// accepts reports whether the library agrees that args fit.
func (j judge) accepts(args recipe.Object) (ok bool) {
	defer func() {
		if p := recover(); p != nil {
			ok = false
		}
	}()
	if j.compiled == nil {
		return false
	}
	result, err := j.compiled.Validate(sealed{gojsonschema.NewRawLoader(plain(args))})
	return err == nil && result.Valid()
}

// rebuild writes a node in the library's terms.
func rebuild(n *node) map[string]any {
	m := map[string]any{}
	switch len(n.types) {
	case 0:
	case 1:
		m["type"] = n.types[0]
	default:
		types := make([]any, len(n.types))
		for i, t := range n.types {
			types[i] = t
		}
		m["type"] = types
	}
	if len(n.props) > 0 {
		props := make(map[string]any, len(n.props))
		for _, p := range n.props {
			props[p.name] = rebuild(p.node)
		}
		m["properties"] = props
	}
	if len(n.required) > 0 {
		names := make([]any, len(n.required))
		for i, r := range n.required {
			names[i] = r
		}
		m["required"] = names
	}
	if n.closed {
		m["additionalProperties"] = false
	}
	if n.items != nil {
		m["items"] = rebuild(n.items)
	}
	if n.min != nil {
		m["minimum"] = n.min.text
	}
	if n.max != nil {
		m["maximum"] = n.max.text
	}
	for key, limit := range map[string]*int{"minLength": n.minLen, "maxLength": n.maxLen, "minItems": n.minItems, "maxItems": n.maxItems} {
		if limit != nil {
			m[key] = json.Number(fmt.Sprint(*limit))
		}
	}
	return m
}

// plain turns a Value into the maps and slices that the library knows.
func plain(v recipe.Value) any {
	switch v := v.(type) {
	case recipe.Object:
		m := make(map[string]any, len(v))
		for _, e := range v {
			m[e.Key] = plain(e.Value)
		}
		return m
	case recipe.Array:
		a := make([]any, len(v))
		for i, e := range v {
			a[i] = plain(e)
		}
		return a
	}
	return v
}

// sealed is a loader whose factory makes only loaders that fail, so that the
// library has no way to open a file or a connection even if it wanted to.
type sealed struct{ gojsonschema.JSONLoader }

func (sealed) LoaderFactory() gojsonschema.JSONLoaderFactory { return nowhere{} }

type nowhere struct{}

func (nowhere) New(string) gojsonschema.JSONLoader {
	return closedLoader{sealed{gojsonschema.NewRawLoader(nil)}}
}

type closedLoader struct{ sealed }

func (closedLoader) LoadJSON() (any, error) {
	return nil, errors.New("schemas are not loaded from elsewhere")
}
