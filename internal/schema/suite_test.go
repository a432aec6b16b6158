package schema_test

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/internal/schema"
	"github.com/hyperbolic-gateway/hb-rest/internal/soak"
	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// owner is the one type that a keyword speaks about. JSON Schema lets every other
// type pass it; our gate wants the type beside it.
var owner = map[string]string{
	"minLength": "string", "maxLength": "string", "pattern": "string", "minimum": "number", "maximum": "number",
	"items": "array", "minItems": "array", "maxItems": "array", "properties": "object", "required": "object", "additionalProperties": "object",
}

// typed writes the missing types into a schema of the suite. meets says whether
// data has those types, for of other data the two speak differently.
func typed(v recipe.Value) (out recipe.Value, meets func(recipe.Value) bool) {
	s, ok := v.(recipe.Object)
	if !ok {
		return v, func(recipe.Value) bool { return true }
	}
	var checks []func(recipe.Value) bool
	var o recipe.Object
	types := map[string]bool{}
	_, has := s.Get("type")
	for _, m := range s {
		switch m.Key {
		case "items":
			var each func(recipe.Value) bool
			m.Value, each = typed(m.Value)
			checks = append(checks, func(d recipe.Value) bool {
				list, _ := d.(recipe.Array)
				return !slices.ContainsFunc(list, func(d recipe.Value) bool { return !each(d) })
			})
		case "properties":
			named, _ := m.Value.(recipe.Object)
			var inner recipe.Object
			for _, p := range named {
				sub, meets := typed(p.Value)
				inner = append(inner, recipe.Member{Key: p.Key, Value: sub})
				checks = append(checks, func(d recipe.Value) bool {
					object, _ := d.(recipe.Object)
					value, found := object.Get(p.Key)
					return !found || meets(value)
				})
			}
			m.Value = inner
		}
		if t := owner[m.Key]; t != "" {
			types[t] = true
		}
		o = append(o, m)
	}
	if len(types) == 1 && !has {
		want := slices.Collect(maps.Keys(types))[0]
		o = append(o, recipe.Member{Key: "type", Value: want})
		checks = append(checks, func(d recipe.Value) bool {
			switch d.(type) {
			case recipe.Object:
				return want == "object"
			case recipe.Array:
				return want == "array"
			case string:
				return want == "string"
			case json.Number:
				return want == "number"
			}
			return false
		})
	}
	return o, func(d recipe.Value) bool {
		return !slices.ContainsFunc(checks, func(check func(recipe.Value) bool) bool { return !check(d) })
	}
}

// Promise 18: what the gate admits of the public JSON Schema test suite (drafts 4,
// 6 and 7, as the validator that is built in carries it) is judged as the suite
// says, each value of it. The rest is refused by the name of a keyword.
func TestSuite(t *testing.T) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/xeipuuv/gojsonschema").Output()
	if err != nil {
		t.Fatalf("where is the suite: %v", err)
	}
	top := filepath.Join(strings.TrimSpace(string(dir)), "testdata")
	// What must be among the admitted: every keyword that we have, but default, of
	// which the suite has only values that do not fit; those are refused.
	compared := map[string]int{
		"type": 0, "enum": 0, "properties": 0, "required": 0, "additionalProperties": 0, "items": 0, "minItems": 0, "maxItems": 0,
		"minLength": 0, "maxLength": 0, "pattern": 0, "minimum": 0, "maximum": 0, "bignum": 0,
	}
	groups, refused, verdicts, other, wrong := 0, 0, 0, 0, 0
	for _, draft := range []string{"draft4", "draft6", "draft7"} {
		files, err := filepath.Glob(filepath.Join(top, draft, "*.json"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"bignum", "zeroTerminatedFloats"} {
			if draft == "draft4" && name == "zeroTerminatedFloats" {
				continue // 1.0 is no integer in draft 4; the later ones, and we, take it for one
			}
			if extra := filepath.Join(top, draft, "optional", name+".json"); exists(extra) {
				files = append(files, extra)
			}
		}
		if len(files) < 25 {
			t.Fatalf("%s has %d files", draft, len(files))
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			keyword := strings.TrimSuffix(filepath.Base(file), ".json")
			for _, g := range decode(t, string(text)).(recipe.Array) {
				groups++
				group := g.(recipe.Object)
				inner, _ := group.Get("schema")
				fitted, meets := typed(inner)
				doc := recipe.Object{{Key: "type", Value: "object"}, {Key: "properties", Value: recipe.Object{{Key: "p", Value: fitted}}}}
				s, report := schema.Parse(doc, "s")
				if s == nil {
					refused++
					for _, p := range report.Problems {
						if !strings.HasPrefix(p.Field, "s.properties.p") || p.Message == "" {
							t.Errorf("%s: refused with %+v", recipe.Encode(inner), p)
						}
					}
					continue
				}
				tests, _ := group.Get("tests")
				for _, c := range tests.(recipe.Array) {
					data, _ := c.(recipe.Object).Get("data")
					valid, _ := c.(recipe.Object).Get("valid")
					if !meets(data) {
						other++
						continue
					}
					args, err := schema.DecodeArgs(recipe.Encode(recipe.Object{{Key: "p", Value: data}}))
					if err != nil {
						t.Errorf("%s: %v", recipe.Encode(data), err)
						continue
					}
					verdicts++
					compared[keyword]++
					if _, _, problems := s.Validate(args); (len(problems) == 0) != valid.(bool) {
						wrong++
						t.Errorf("%s %s: %s with %s: valid is %v for the suite; %s", draft, keyword, recipe.Encode(fitted), recipe.Encode(data), valid, lines(problems))
					}
				}
			}
		}
	}
	for keyword, n := range compared {
		if n == 0 {
			t.Errorf("nothing of %s was compared", keyword)
		}
	}
	soak.Measured(t, "JSON Schema test suite, drafts 4, 6 and 7: %d schemas, %d outside of the subset and refused; of the others %d values judged, %d differently; %d values of another type than the keyword's left out", groups, refused, verdicts, wrong, other)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
