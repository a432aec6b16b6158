package importer

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// A refusal is why an operation cannot be imported; as an error it ends the
// work on that operation alone.
type refusal struct{ code, reason string }

func (r *refusal) Error() string { return r.reason }

func refuse(code, format string, args ...any) error {
	return &refusal{code, fmt.Sprintf(format, args...)}
}

// A document is an OpenAPI document as it was read. References are looked up
// where they are met, so that a bad one costs the operation that needs it and
// no other.
type document struct {
	root    recipe.Object
	version version
	refs    map[string]found
}

type found struct {
	v   recipe.Value
	err error
}

type version int

const (
	v2  version = 20
	v30 version = 30
	v31 version = 31 // and later
)

// maxHops bounds a chain of references from one to the next.
const maxHops = 32

// deref follows the $ref of v, if it has one. name is the last reference
// followed, "" for none.
func (d *document) deref(v recipe.Value) (target recipe.Value, name string, err error) {
	for range maxHops {
		ref, ok := get(v, "$ref").(string)
		if !ok {
			return v, name, nil
		}
		if v, err = d.lookup(ref); err != nil {
			return nil, ref, err
		}
		name = ref
	}
	return nil, name, refuse("REF_LOOP", "the reference %s leads to itself", cut(name, 120))
}

// lookup finds what a reference inside the document points to.
func (d *document) lookup(ref string) (recipe.Value, error) {
	if f, ok := d.refs[ref]; ok {
		return f.v, f.err
	}
	v, err := d.find(ref)
	d.refs[ref] = found{v, err}
	return v, err
}

func (d *document) find(ref string) (recipe.Value, error) {
	if !strings.HasPrefix(ref, "#") {
		return nil, refuse("EXTERNAL_REF", "it refers to another document (%s), which is not read", cut(cleanText(ref), 120))
	}
	pointer, err := url.PathUnescape(ref[1:])
	if err != nil {
		pointer = ref[1:]
	}
	if pointer != "" && !strings.HasPrefix(pointer, "/") {
		return nil, refuse("REF_NOT_FOUND", "the reference %s is no path in the document", cut(ref, 120))
	}
	var v recipe.Value = d.root
	for _, step := range strings.Split(pointer, "/")[1:] {
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		switch inner := v.(type) {
		case recipe.Object:
			if !has(inner, step) {
				return nil, refuse("REF_NOT_FOUND", "the reference %s leads nowhere", cut(ref, 120))
			}
			v = get(inner, step)
		case recipe.Array:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(inner) {
				return nil, refuse("REF_NOT_FOUND", "the reference %s leads nowhere", cut(ref, 120))
			}
			v = inner[i]
		default:
			return nil, refuse("REF_NOT_FOUND", "the reference %s leads nowhere", cut(ref, 120))
		}
	}
	return v, nil
}

// refName is the last step of a reference: "Pet" of #/components/schemas/Pet.
func refName(ref string) string {
	return ref[strings.LastIndexByte(ref, '/')+1:]
}

func cut(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n]) + "…"
	}
	return s
}
