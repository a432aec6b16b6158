package importer

import (
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/hyperbolic-gateway/hb-rest/internal/redact"
	"github.com/hyperbolic-gateway/hb-rest/internal/wrapper"
	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// A pair is one piece of a raw query between "&".
type pair struct {
	raw, key, value string // value and key as written
	name, text      string // decoded
	eq              bool   // it has a "="
}

func splitQuery(raw string) []pair {
	var out []pair
	for _, piece := range strings.Split(raw, "&") {
		p := pair{raw: piece}
		p.key, p.value, p.eq = strings.Cut(piece, "=")
		p.name, p.text = unescaped(p.key), unescaped(p.value)
		out = append(out, p)
	}
	return out
}

func unescaped(s string) string {
	if plain, err := url.PathUnescape(s); err == nil {
		return plain
	}
	return s
}

// escaped writes a text into a query as wrappers do.
func escaped(s string) string {
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~", c) >= 0 {
			b.WriteByte(c)
			continue
		}
		b.WriteString("%" + string(digits[c>>4]) + string(digits[c&15]))
	}
	return b.String()
}

// exact reports whether a text of a query is spelled as wrappers spell it, its
// holes aside.
func exact(raw string) bool {
	raw = anyHole.ReplaceAllString(raw, "")
	return escaped(unescaped(raw)) == raw
}

// list is the elements of a value with literal commas, nil when it has none.
func (p pair) list() recipe.Array {
	if !strings.Contains(p.value, ",") || anyHole.MatchString(p.value) {
		return nil
	}
	var out recipe.Array
	for _, part := range strings.Split(p.value, ",") {
		if part == "" || !exact(part) {
			return nil
		}
		out = append(out, unescaped(part))
	}
	return out
}

// queryOf makes the query of the template. Where every piece is spelled as
// wrappers spell it, it becomes request.query; otherwise it stays in the URL,
// so that every byte and the order are kept.
func (rec *recorded) queryOf() error {
	if !rec.raw.hasQuery || rec.raw.query == "" {
		return rec.varied(nil)
	}
	if rec.sent.plusIsSpace && strings.Contains(rec.raw.query, "+") {
		rec.raw.query = strings.ReplaceAll(rec.raw.query, "+", "%20")
		rec.notes.add("a space in the query is sent as %%20 in place of +, which means the same in a form")
	}
	pairs := splitQuery(rec.raw.query)
	object := true
	seen := map[string]int{}
	var refused error
	for i, p := range pairs {
		if anyHole.MatchString(p.key) {
			return refuse("QUERY_NAME", "the name of a query parameter is a placeholder, which cannot be sent")
		}
		for _, m := range anyHole.FindAllStringSubmatch(p.value, -1) {
			if redact.CredentialKey(m[1]) && refused == nil {
				refused = refuse("CREDENTIAL_QUERY", "the credential %s goes into the address, where it would be logged; that is not supported", cut(cleanText(m[1]), 40))
			}
		}
		if redact.CredentialQuery(p.name) || !isPlaceholder(p.text) && redact.CredentialPair(p.name, p.text) {
			rec.credential(p.text, p.value)
			rec.drop("query %s of %s", cut(cleanText(p.name), 40), rec.title())
			if refused == nil {
				refused = refuse("CREDENTIAL_QUERY", "its credential goes into the address (%s), where it would be logged; that is not supported. Where the API takes it in a header too, import it with that header", cut(cleanText(p.name), 40))
			}
			continue
		}
		last, again := seen[p.name]
		if again && last != i-1 || !p.eq || p.name == "" || !exact(p.key) || !exact(p.value) && !isPlaceholder(p.text) && p.list() == nil || again && p.list() != nil || again && pairs[last].list() != nil {
			object = object && rec.variesBy(p.name)
		}
		seen[p.name] = i
	}
	if refused != nil {
		return refused
	}
	if object {
		return rec.queryObject(pairs)
	}
	return rec.queryText(pairs)
}

func (rec *recorded) variesBy(name string) bool {
	_, ok := rec.sent.varying[name]
	return ok && name != ""
}

// queryObject makes request.query.
func (rec *recorded) queryObject(pairs []pair) error {
	for i := 0; i < len(pairs); {
		group := []pair{pairs[i]}
		for i++; i < len(pairs) && pairs[i].name == group[0].name; i++ {
			group = append(group, pairs[i])
		}
		name := group[0].name
		if rec.variesBy(name) {
			if !has(rec.operation.query, name) {
				rec.operation.query = append(rec.operation.query, recipe.Member{Key: name, Value: rec.varyingArg(name)})
			}
			continue
		}
		v, err := rec.queryValue(name, group)
		if err != nil {
			return err
		}
		rec.operation.query = append(rec.operation.query, recipe.Member{Key: name, Value: v})
	}
	return rec.varied(pairs)
}

func (rec *recorded) queryValue(name string, group []pair) (recipe.Value, error) {
	about := rec.sent.queryAbout[name]
	if len(group) == 1 {
		if list := group[0].list(); list != nil && clean(name, list) {
			hole := rec.listArg(name, about, list)
			return recipe.Object{{Key: "value", Value: hole}, {Key: "style", Value: wrapper.StyleComma}}, nil
		}
		return rec.single(name, group[0], about)
	}
	plainList := recipe.Array{}
	for _, p := range group {
		if anyHole.MatchString(p.value) || !clean(name, p.text) {
			plainList = nil
			break
		}
		plainList = append(plainList, p.text)
	}
	if plainList != nil {
		return rec.listArg(name, about, plainList), nil
	}
	var out recipe.Array
	for _, p := range group {
		v, err := rec.single(name, p, about)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

func (rec *recorded) listArg(name, about string, list recipe.Array) string {
	schema := recipe.Object{{Key: "type", Value: "array"}, {Key: "items", Value: recipe.Object{{Key: "type", Value: "string"}}}}
	if about = brief(about, argumentText); about != "" {
		schema = append(schema, recipe.Member{Key: "description", Value: about})
	}
	return rec.args.add(name, "query", append(schema, recipe.Member{Key: "default", Value: list}), false)
}

// single is the template of one value: an argument as a rule.
func (rec *recorded) single(name string, p pair, about string) (string, error) {
	if anyHole.MatchString(p.value) {
		// A variable inside a text: the text around it stays.
		if m := anyHole.FindStringSubmatch(p.value); m[0] == p.value {
			if h := rec.sent.holes[m[1]]; h.about == "" {
				h.about = about
				rec.sent.holes[m[1]] = h
			}
		}
		return rec.template(unescaped(p.value), "query", true)
	}
	if label, ok := placeholder(p.text, false); ok {
		return rec.openArg(label, "query", "string", about, true), nil
	}
	if !clean(name, p.text) {
		if redact.CredentialKey(name) && len(p.text) < redact.MinSecret || p.text == "" {
			return rec.openArg(name, "query", "string", about, true), nil
		}
		rec.credential(p.text, p.value)
		rec.drop("query %s of %s", cut(cleanText(name), 40), rec.title())
		return rec.openArg(name, "query", "string", about, true), nil
	}
	v, kind := scalar(p.text)
	return rec.valueArg(name, "query", v, kind, about), nil
}

var (
	wholeNumber   = regexp.MustCompile(`^(?:0|-?[1-9][0-9]{0,17})$`)
	decimalNumber = regexp.MustCompile(`^-?(?:0|[1-9][0-9]{0,14})\.[0-9]{1,15}$`)
)

// scalar reads a text as the value that is sent as this very text.
func scalar(s string) (v recipe.Value, kind string) {
	switch {
	case wholeNumber.MatchString(s):
		return json.Number(s), "integer"
	case decimalNumber.MatchString(s):
		return json.Number(s), "number"
	case s == "true" || s == "false":
		return s == "true", "boolean"
	}
	return s, "string"
}

// queryText keeps the query in the URL.
func (rec *recorded) queryText(pairs []pair) error {
	var out, fixed []string
	for _, p := range pairs {
		literal := anyHole.ReplaceAllString(p.raw, "")
		switch {
		case strings.Contains(literal, "{{"):
			return refuse("TEMPLATE_TEXT", "its query has {{ in it, which has a meaning of its own here")
		case rec.variesBy(p.name):
			out = append(out, p.key+"="+rec.varyingArg(p.name))
		case p.eq && (exact(p.value) || isPlaceholder(p.text)):
			t, err := rec.single(p.name, p, rec.sent.queryAbout[p.name])
			if err != nil {
				return err
			}
			if anyHole.MatchString(p.value) { // the text around a hole as it was written
				if t, err = rec.template(p.value, "query", true); err != nil {
					return err
				}
			}
			out = append(out, p.key+"="+t)
		case anyHole.MatchString(p.value):
			t, err := rec.template(p.value, "query", true)
			if err != nil {
				return err
			}
			out = append(out, p.key+"="+t)
		case cleanText(p.text) != p.text || redact.CredentialKey(p.name) && p.text != "":
			rec.credential(p.text, p.value)
			rec.drop("query %s of %s", cut(cleanText(p.name), 40), rec.title())
			return refuse("CREDENTIAL_QUERY", "the value of the query parameter %s is shaped like a credential, which would be logged with the address", cut(cleanText(p.name), 40))
		default:
			out = append(out, p.raw)
			if p.value != "" {
				fixed = append(fixed, cut(cleanText(p.name), 40))
			}
		}
	}
	rec.query = strings.Join(out, "&")
	if len(fixed) > 0 {
		slices.Sort(fixed)
		rec.notes.add("sent as written and no argument, because an argument would be spelled in another way: query %s", strings.Join(slices.Compact(fixed), ", "))
	}
	return rec.varied(pairs)
}

// varied adds the parameters that only some of the recorded requests have.
func (rec *recorded) varied(pairs []pair) error {
	var names []string
	for name := range rec.sent.varying {
		if !has(rec.operation.query, name) && !slices.ContainsFunc(pairs, func(p pair) bool { return p.name == name }) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		credential := func(v string) bool { return redact.CredentialPair(name, unescaped(v)) }
		if redact.CredentialQuery(name) || slices.ContainsFunc(rec.sent.varying[name].values, credential) {
			for _, v := range rec.sent.varying[name].values {
				rec.credential(v, unescaped(v))
			}
			rec.drop("query %s of %s", cut(cleanText(name), 40), rec.title())
			return refuse("CREDENTIAL_QUERY", "its credential goes into the address (%s), where it would be logged; that is not supported", cut(cleanText(name), 40))
		}
		rec.operation.query = append(rec.operation.query, recipe.Member{Key: name, Value: rec.varyingArg(name)})
	}
	return nil
}

// varyingArg is the argument of a parameter with several values. What was sent
// every time has the first of them as its default.
func (rec *recorded) varyingArg(name string) string {
	v := rec.sent.varying[name]
	first := unescaped(v.values[0])
	kind, hidden := "", false
	for _, raw := range v.values {
		value := unescaped(raw)
		if !clean(name, value) {
			rec.credential(value)
			rec.drop("query %s of %s", cut(cleanText(name), 40), rec.title())
			kind = "string"
			v.always, hidden = true, true
			break
		}
		if !exact(raw) {
			value = strings.ReplaceAll(value, "+", " ")
			rec.notes.add("query %s is spelled in another way than recorded: %%20 for +, and other marks percent-encoded", cut(name, 40))
		}
		switch _, k := scalar(value); {
		case kind == "" || kind == k:
			kind = k
		default:
			kind = "string"
		}
	}
	if v.always && !hidden && exact(v.values[0]) {
		value, _ := scalar(first)
		if kind == "string" {
			value = first
		}
		return rec.valueArg(name, "query", value, kind, rec.sent.queryAbout[name])
	}
	return rec.openArg(name, "query", kind, rec.sent.queryAbout[name], v.always)
}
