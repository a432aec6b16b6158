package importer

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// Limits of an input schema that a draft may have. wrapper.Parse and the
// publishing of tools have wider ones, which an argument or two more must not
// cross.
const (
	maxProperties = 190      // of 200 in a schema
	maxEnum       = 100      // values
	maxPattern    = 512      // bytes
	maxSchemaText = 24 << 10 // bytes; a tool's schema can have 32 KiB
	maxExample    = 200      // bytes of an example, a default or a value of an enum
	maxDigits     = 40       // characters of a number
	schemaLevels  = 10       // schemas inside each other, below the 16 of a wrapper
)

// A schemaWriter writes shapes in the words that an input schema has.
type schemaWriter struct {
	*schemaReader
	levels   int  // schemas inside each other, below an argument
	patterns bool // false when they were too many for one schema
	props    int
	notes    *notes
}

// write is the schema of the values that all bounds let through. name is what
// it stands under. nil means that it takes no value at all, and is to be left
// out.
func (w *schemaWriter) write(name string, level int, bounds ...bound) (recipe.Object, error) {
	s, err := w.shape(bounds...)
	if err != nil {
		return nil, err
	}
	return w.shaped(name, level, s, memberText)
}

func (w *schemaWriter) shaped(name string, level int, s *shape, textLimit int) (recipe.Object, error) {
	if s.never || slices.Contains(s.types, "file") {
		return nil, nil
	}
	o := recipe.Object{}
	kind := typeWord(s)
	if kind == "object" && !s.cut {
		s.undeclared()
	}
	if kind != "" {
		o = append(o, recipe.Member{Key: "type", Value: typeValue(kind, s.nullable)})
	}
	about := []string{brief(text(s.words, "description"), textLimit)}
	if len(s.types) > 1 {
		about = append(about, "Accepts "+strings.Join(s.types, " or ")+".")
	}
	if names := distinct(s.forms); len(s.forms) > 1 && len(names) > 1 && kind == "object" {
		about = append(about, "One of: "+cut(strings.Join(names, ", "), 100)+".")
	}
	if len(s.forms) > 1 && s.enum == nil {
		w.notes.add("the alternatives of %s (oneOf, anyOf) are described as one: the API checks which belong together", name)
	}
	if s.cut {
		w.notes.add("%s contains itself and is described one level deep", cmpName(s.name, name))
	}
	for _, l := range s.lost {
		w.notes.lose(l)
	}
	var inner recipe.Object
	switch kind {
	case "object":
		inner, err := w.members(name, level, s)
		if err != nil {
			return nil, err
		}
		o = append(o, inner...)
	case "array":
		if s.items != nil && level < w.levels {
			items, err := w.write(name, level+1, s.items...)
			if err != nil {
				return nil, err
			}
			if items != nil {
				inner = append(inner, recipe.Member{Key: "items", Value: items})
			}
		}
		inner = append(inner, sizes(s, "minItems", "maxItems")...)
	case "string":
		inner = append(inner, sizes(s, "minLength", "maxLength")...)
		inner = append(inner, w.pattern(s, &about)...)
	case "number", "integer":
		for _, key := range []string{"minimum", "maximum"} {
			if n, ok := get(s.words, key).(json.Number); ok && ordinary(n) {
				inner = append(inner, recipe.Member{Key: key, Value: whole(kind, n)})
			}
		}
	}
	o = append(o, inner...)
	o = append(o, w.enum(s, kind, &about)...)
	o = append(o, w.readers(s, name, kind, about)...)
	return o, nil
}

// readers are the keywords that are for the reader alone.
func (w *schemaWriter) readers(s *shape, name, kind string, about []string) recipe.Object {
	var o recipe.Object
	if def, ok := s.words.Get("default"); ok && def != nil {
		if v, ok := fitting(kind, def); ok && short(v) && clean(name, v) {
			about = append(about, "Default: "+showValue(v)+".")
		}
	}
	if f := text(s.words, "format"); f != "" && len(f) <= 40 && kind != "object" && kind != "array" && cleanText(f) == f {
		o = append(o, recipe.Member{Key: "format", Value: f})
	}
	if flag(s.words, "deprecated") {
		o = append(o, recipe.Member{Key: "deprecated", Value: true})
	}
	if s.enum == nil && kind != "boolean" {
		if e, ok := example(s); ok {
			if v, ok := fitting(kind, e); ok && short(v) && clean(name, v) && inFormat(text(s.words, "format"), v) {
				o = append(o, recipe.Member{Key: "examples", Value: recipe.Array{v}})
			}
		}
	}
	if d := join(about...); d != "" {
		o = append(o, recipe.Member{Key: "description", Value: d})
	}
	return o
}

// members writes the properties of an object that a caller may send.
func (w *schemaWriter) members(name string, level int, s *shape) (recipe.Object, error) {
	var props recipe.Object
	left := false
	for _, p := range s.props {
		if level >= w.levels || w.props >= maxProperties {
			left = true
			break
		}
		child, err := w.shape(p.bounds...)
		if err != nil {
			return nil, err
		}
		if flag(child.words, "readOnly") || !goodName(p.name) {
			continue
		}
		w.props++
		o, err := w.shaped(p.name, level+1, child, memberText)
		if err != nil {
			return nil, err
		}
		if o != nil {
			props = append(props, recipe.Member{Key: p.name, Value: o})
		}
	}
	if left {
		w.notes.add("what lies deep inside %s is not described", name)
	}
	var o recipe.Object
	if len(props) > 0 {
		o = append(o, recipe.Member{Key: "properties", Value: props})
	}
	var required recipe.Array
	for _, n := range s.required {
		if has(props, n) {
			required = append(required, n)
		}
	}
	if len(required) > 0 {
		o = append(o, recipe.Member{Key: "required", Value: required})
	}
	if s.closed && !s.open && !left && len(s.forms) == 0 && len(props) > 0 {
		o = append(o, recipe.Member{Key: "additionalProperties", Value: false})
	}
	return o, nil
}

// goodName reports whether a wrapper takes a property's name.
func goodName(n string) bool {
	return n != "" && len(n) <= 100 && !strings.ContainsFunc(n, func(r rune) bool { return r < ' ' || r == 0x7f })
}

func (w *schemaWriter) pattern(s *shape, about *[]string) recipe.Object {
	p, ok := get(s.words, "pattern").(string)
	if !ok || p == "" {
		return nil
	}
	if _, err := regexp.Compile(p); err != nil || len(p) > maxPattern || !w.patterns || cleanText(p) != p {
		if len(p) <= 60 && cleanText(p) == p {
			*about = append(*about, "Pattern: "+plain(p)+".")
		}
		w.notes.lose("pattern")
		return nil
	}
	return recipe.Object{{Key: "pattern", Value: p}}
}

// enum writes the allowed values, each in the type that the schema names.
func (w *schemaWriter) enum(s *shape, kind string, about *[]string) recipe.Object {
	if len(s.enum) == 0 {
		return nil
	}
	var list recipe.Array
	for _, e := range s.enum {
		if e == nil && s.nullable && kind != "" {
			list = append(list, nil)
			continue
		}
		v, ok := fitting(kind, e)
		if !ok || !short(v) || !clean("", v) {
			w.notes.lose("enum")
			return nil
		}
		if kindOf(v) != kindOf(e) {
			w.notes.lose("enum") // it contradicts the type; the type is believed
		}
		if !slices.ContainsFunc(list, func(o recipe.Value) bool { return equal(o, v) }) {
			list = append(list, v)
		}
	}
	if s.nullable && kind != "" && !hasNil(list) && len(list) < maxEnum {
		list = append(list, nil)
	}
	if len(list) > maxEnum {
		*about = append(*about, fmt.Sprintf("One of %d values, such as %s and %s.", len(list), showValue(list[0]), showValue(list[1])))
		w.notes.lose("enum")
		return nil
	}
	return recipe.Object{{Key: "enum", Value: list}}
}

func equal(a, b recipe.Value) bool {
	x, y := number(a), number(b)
	if x != nil && y != nil {
		return x.Cmp(y) == 0
	}
	return string(recipe.Encode(a)) == string(recipe.Encode(b))
}

// fitting is v as a value of the type: documents in YAML write 1.0 where they
// mean the text "1.0", and others write "10" where they mean the number.
func fitting(kind string, v recipe.Value) (recipe.Value, bool) {
	if n, ok := v.(json.Number); ok && !ordinary(n) {
		return nil, false
	}
	switch kind {
	case "string":
		switch x := v.(type) {
		case string:
			return x, true
		case json.Number:
			return string(x), true
		case bool:
			return strconv.FormatBool(x), true
		}
		return nil, false
	case "integer", "number":
		if x, ok := v.(string); ok && jsonNumber.MatchString(x) && ordinary(json.Number(x)) {
			v = json.Number(x)
		}
		n, ok := v.(json.Number)
		if !ok {
			return nil, false
		}
		r := number(n)
		return whole(kind, n), r != nil && (kind == "number" || r.IsInt())
	case "boolean":
		if x, ok := v.(string); ok && (x == "true" || x == "false") {
			return x == "true", true
		}
		_, ok := v.(bool)
		return v, ok
	case "array":
		_, ok := v.(recipe.Array)
		return v, ok
	case "object":
		_, ok := v.(recipe.Object)
		return v, ok
	}
	return v, v != nil
}

// whole writes 1.0 as 1 where the type is integer: in a path they differ.
func whole(kind string, n json.Number) json.Number {
	if r := number(n); kind == "integer" && r != nil && r.IsInt() {
		return json.Number(r.Num().String())
	}
	return n
}

var formats = map[string]*regexp.Regexp{
	"date":      regexp.MustCompile(`^\d{4}-\d{2}-\d{2}$`),
	"date-time": regexp.MustCompile(`^\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:[Zz]|[+-]\d{2}:\d{2})$`),
	"uuid":      regexp.MustCompile(`^[0-9a-fA-F-]{36}$`),
}

// inFormat reports whether an example has the format that its schema names: a
// date-time where a date belongs would teach a mistake.
func inFormat(format string, v recipe.Value) bool {
	s, ok := v.(string)
	return !ok || formats[format] == nil || formats[format].MatchString(s)
}

var exponent = regexp.MustCompile(`[eE][+-]?0*([0-9]+)$`)

// ordinary reports whether a number is one that arguments may hold.
func ordinary(n json.Number) bool {
	if len(n) > maxDigits {
		return false
	}
	if m := exponent.FindStringSubmatch(string(n)); m != nil {
		e, err := strconv.Atoi(m[1])
		return err == nil && e <= 300
	}
	return true
}

// short reports whether a value is short enough to show.
func short(v recipe.Value) bool {
	budget := 40
	var count func(v recipe.Value) bool
	count = func(v recipe.Value) bool {
		if budget--; budget < 0 {
			return false
		}
		switch v := v.(type) {
		case recipe.Array:
			for _, e := range v {
				if !count(e) {
					return false
				}
			}
		case recipe.Object:
			for _, m := range v {
				if !count(m.Value) {
					return false
				}
			}
		case json.Number:
			return ordinary(v)
		case string:
			return len(v) <= maxExample
		}
		return true
	}
	return count(v) && len(recipe.Encode(v)) <= maxExample
}

func showValue(v recipe.Value) string {
	if s, ok := v.(string); ok && s != "" && !strings.ContainsAny(s, " .,") {
		return s
	}
	return string(recipe.Encode(v))
}

// example is the first example of a schema.
func example(s *shape) (recipe.Value, bool) {
	if e, ok := s.words.Get("example"); ok && e != nil {
		return e, true
	}
	if list, ok := get(s.words, "examples").(recipe.Array); ok && len(list) > 0 && list[0] != nil {
		return list[0], true
	}
	return nil, false
}

func sizes(s *shape, keys ...string) recipe.Object {
	var o recipe.Object
	for _, key := range keys {
		r := number(get(s.words, key))
		if r != nil && r.IsInt() && r.Sign() >= 0 && r.Num().BitLen() < 31 && (key[:3] != "min" || r.Sign() > 0) {
			o = append(o, recipe.Member{Key: key, Value: json.Number(r.Num().String())})
		}
	}
	return o
}

func typeValue(kind string, nullable bool) recipe.Value {
	if nullable {
		return recipe.Array{kind, "null"}
	}
	return kind
}

func distinct(list []string) []string {
	var out []string
	for _, s := range list {
		if s != "" && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

func cmpName(name, other string) string {
	if name != "" {
		return name
	}
	return other
}

// notes are sentences for the reader of a draft, each once, at most maxNotes.
type notes struct {
	list []string
	lost []string
}

const maxNotes = 12

func (n *notes) add(format string, args ...any) {
	s := fmt.Sprintf(format, args...)
	if len(n.list) < maxNotes && !slices.Contains(n.list, s) {
		n.list = append(n.list, s)
	}
}

func (n notes) clone() notes { return notes{slices.Clone(n.list), slices.Clone(n.lost)} }

// lose notes a keyword that the input schema cannot express.
func (n *notes) lose(keyword string) {
	if !slices.Contains(n.lost, keyword) {
		n.lost = append(n.lost, keyword)
	}
}

// all are the notes, with one more for all lost keywords.
func (n *notes) all() []string {
	out := slices.Clone(n.list)
	if len(n.lost) > 0 {
		lost := slices.Clone(n.lost)
		slices.Sort(lost)
		out = append(out, "left to the API to check: "+strings.Join(lost, ", "))
	}
	return out
}
