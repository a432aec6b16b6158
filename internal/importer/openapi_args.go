package importer

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

const one = json.Number("1")

func sprintf(format string, args ...any) string { return fmt.Sprintf(format, args...) }

// arguments are those of one wrapper, in the order in which a caller sees
// them.
type arguments struct {
	list  []argument
	taken map[string]bool
}

type argument struct {
	name     string
	schema   recipe.Object
	required bool
	first    recipe.Value // the API's own default; nil: not known
}

// add names an argument after the API's own name for it, and with the place
// in front when that is taken. It returns the placeholder.
func (a *arguments) add(name, place string, schema recipe.Object, required bool) string {
	base := argumentName(name)
	unique := base
	for i := 2; a.taken[strings.ToLower(unique)]; i++ {
		if unique = argumentName(place + "_" + base); a.taken[strings.ToLower(unique)] {
			unique = argumentName(fmt.Sprintf("%s_%s_%d", place, base, i))
		}
	}
	if a.taken == nil {
		a.taken = map[string]bool{}
	}
	a.taken[strings.ToLower(unique)] = true
	a.list = append(a.list, argument{name: unique, schema: schema, required: required})
	return "{{" + unique + "}}"
}

func (a arguments) clone() arguments {
	return arguments{slices.Clone(a.list), maps.Clone(a.taken)}
}

// schema is the input schema. Arguments that no one declared are mistakes, so
// they are not let through.
func (a *arguments) schema() recipe.Object {
	props := recipe.Object{}
	required := recipe.Array{}
	for _, arg := range a.list {
		props = append(props, recipe.Member{Key: arg.name, Value: arg.schema})
		if arg.required {
			required = append(required, arg.name)
		}
	}
	o := recipe.Object{{Key: "type", Value: "object"}, {Key: "properties", Value: props}}
	if len(required) > 0 {
		o = append(o, recipe.Member{Key: "required", Value: required})
	}
	return append(o, recipe.Member{Key: "additionalProperties", Value: false})
}
