package recipe

import (
	"encoding/json"
	"slices"
	"strings"
)

// Bounds of field options.
const (
	maxAffixChars   = 20
	maxDefaultChars = 200
	maxJoinChars    = 10
	maxListItems    = 1000
	maxScaleChars   = 30
	maxScaleExp     = 20
)

var fieldKeys = [...]string{
	"path", "format", "prefix", "suffix", "default", "maxChars", "decimals", "scale", "group",
	"currency", "unit", "true", "false", "text", "join", "item", "each", "maxItems",
}

// kinds are the formats that can be named, in the order of the format's page.
var kinds = [...]Kind{
	KindText, KindNumber, KindInteger, KindCurrency, KindPercent, KindBytes, KindBoolean, KindDate,
	KindDateTime, KindLink, KindImage, KindCode, KindList, KindJSON, KindHTML, KindMarkdown,
}

// optionKinds says which formats an option belongs to; nil: every format.
func optionKinds(option string) []Kind {
	switch option {
	case "decimals":
		return []Kind{KindNumber, KindCurrency, KindPercent}
	case "scale":
		return []Kind{KindNumber, KindInteger, KindCurrency, KindPercent}
	case "group":
		return []Kind{KindNumber, KindInteger, KindCurrency}
	case "currency":
		return []Kind{KindCurrency}
	case "unit":
		return []Kind{KindDate, KindDateTime}
	case "true", "false":
		return []Kind{KindBoolean}
	case "text":
		return []Kind{KindLink, KindImage}
	case "join", "item", "each", "maxItems":
		return []Kind{KindList}
	}
	return nil
}

func (c *checker) fields(field string, v Value) {
	o, ok := c.object(field, v)
	if !ok || !c.count(field, o) {
		return
	}
	c.each(field, o, func(key, field string, v Value) {
		if !c.label(field, key) {
			return
		}
		f := Field{Label: key, Format: Format{Decimals: -1}}
		switch v := v.(type) {
		case string:
			f.Path, _ = c.inItem(field, v)
		case Object:
			c.field(&f, field, v)
		default:
			c.problem(field, "TYPE", `write "path" or {"path": "path", "format": "number"}`, "must be a path or an object, not %s", kindOf(v))
		}
		c.r.Fields = append(c.r.Fields, f)
	})
}

func (c *checker) field(f *Field, at string, o Object) {
	// A format that is unknown makes no option wrong: the author knows which
	// one was meant.
	kind, known := KindAuto, true
	if v, given := first(o, "format"); given {
		s, _ := v.(string)
		kind = Kind(s)
		known = slices.Contains(kinds[:], kind)
	}
	f.Format.Kind = kind
	hasPath := false
	c.each(at, o, func(key, field string, v Value) {
		switch {
		case key == "path":
			hasPath = true
			f.Path, _ = c.inItem(field, v)
			return
		case key == "format":
			c.format(field, v)
			return
		case !slices.Contains(fieldKeys[:], key):
			c.unknown(field, key, fieldKeys[:])
			return
		}
		if of := optionKinds(key); known && of != nil && !slices.Contains(of, kind) {
			c.problem(field, "OPTION_NOT_FOR_FORMAT", "", "only with format %s", quoted(of))
			return
		}
		if (key == "prefix" || key == "suffix") && kind == KindJSON {
			c.problem(field, "OPTION_NOT_FOR_FORMAT", "", "not with format %q", KindJSON)
			return
		}
		c.option(&f.Format, key, field, v)
	})
	if !hasPath {
		c.problem(FieldPath(at, "path"), "REQUIRED", "", "required")
	}
}

// option reads one option whose format is right.
func (c *checker) option(f *Format, key, field string, v Value) {
	const code = "OPTION_VALUE"
	switch key {
	case "prefix":
		f.Prefix, _ = c.short(field, code, v, 0, maxAffixChars)
	case "suffix":
		f.Suffix, _ = c.short(field, code, v, 0, maxAffixChars)
	case "default":
		f.Default, _ = c.short(field, code, v, 0, maxDefaultChars)
	case "maxChars":
		f.MaxChars, _ = c.integer(field, code, v, 1, 20_000)
	case "decimals":
		f.Decimals, _ = c.integer(field, code, v, 0, 12)
	case "scale":
		f.Scale = c.scale(field, v)
	case "group":
		f.Group, _ = c.boolean(field, v)
	case "currency":
		f.Currency = c.currency(field, v)
	case "unit":
		f.Unit, _ = c.oneOf(field, code, v, "s", "ms", "us")
	case "true":
		f.True, _ = c.short(field, code, v, 1, maxLabelChars)
	case "false":
		f.False, _ = c.short(field, code, v, 1, maxLabelChars)
	case "text":
		if p, ok := c.inItem(field, v); ok {
			f.Text = &p
		}
	case "join":
		f.Join, _ = c.short(field, code, v, 1, maxJoinChars)
	case "item":
		if p, ok := c.path(field, v); ok {
			if p.root || p.special != "" {
				c.problem(field, "PATH_ROOT", `"@" is the element itself`, "the path starts at each element of the list")
			}
			f.Item = &p
		}
	case "each":
		if s, ok := v.(string); ok && Kind(s) == KindList {
			c.problem(field, code, "", "an element cannot have format %q", KindList)
			return
		}
		f.Each = c.format(field, v)
	case "maxItems":
		f.MaxItems, _ = c.integer(field, code, v, 1, maxListItems)
	}
}

// format reads the name of a format.
func (c *checker) format(field string, v Value) Kind {
	s, ok := c.text(field, v)
	if !ok {
		return KindAuto
	}
	if !slices.Contains(kinds[:], Kind(s)) {
		c.problem(field, "FORMAT_UNKNOWN", formatHint(s), "unknown format %q", clip(s))
	}
	return Kind(s)
}

// formatHint names the format that other systems call by another name.
func formatHint(s string) string {
	use := ""
	switch strings.ToLower(s) {
	case "money":
		use = "number or currency"
	case "price":
		use = "currency"
	case "float", "decimal", "double", "numeric":
		use = "number"
	case "percentage", "pct":
		use = "percent"
	case "size", "filesize":
		use = "bytes"
	case "img", "picture", "photo":
		use = "image"
	case "md":
		use = "markdown"
	case "int", "long", "count":
		use = "integer"
	case "bool", "yesno":
		use = "boolean"
	case "str", "string", "plain", "raw":
		use = "text"
	case "url", "uri", "href", "email":
		use = "link"
	case "time", "timestamp", "date-time", "iso8601", "epoch", "unix":
		use = "datetime"
	case "array", "tags", "csv":
		use = "list"
	case "object":
		use = "json"
	default:
		var known []string
		for _, k := range kinds {
			known = append(known, string(k))
		}
		return suggest(s, known)
	}
	return "use " + use
}

// scale reads a factor. Its size is bounded because multiplying is exact.
func (c *checker) scale(field string, v Value) string {
	n, ok := v.(json.Number)
	if !ok {
		c.problem(field, "TYPE", "", "must be a number, not %s", kindOf(v))
		return ""
	}
	m, ok := magnitude(string(n))
	if !ok || len(n) > maxScaleChars || m.exp > maxScaleExp || m.exp <= -maxScaleExp || m.digits == "" {
		c.problem(field, "OPTION_VALUE", "for example 0.01", "must be a number from 1e-20 to less than 1e20, or its negative, of at most %d characters", maxScaleChars)
		return ""
	}
	return string(n)
}

// currency reads a code of three letters or a path that is marked as one.
func (c *checker) currency(field string, v Value) string {
	s, ok := c.text(field, v)
	if !ok {
		return ""
	}
	if strings.HasPrefix(s, "@") || strings.HasPrefix(s, "$") {
		c.inItem(field, v)
		return s
	}
	code := len(s) == 3
	for _, r := range s {
		code = code && (r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z')
	}
	if !code {
		c.problem(field, "OPTION_VALUE", `for example "USD" or "@.currency"`, "must be a code of three letters, or a path that starts with @ or $")
	}
	return s
}
