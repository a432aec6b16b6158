package paging

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// value reads what a source names: a header's text, or a value of the body.
// Nil is none.
func (p Page) value(src *recipe.Source) recipe.Value {
	switch {
	case src == nil:
		return nil
	case src.Header == "":
		if p.Lookup == nil {
			return nil
		}
		return p.Lookup(src.Path)
	}
	for _, v := range p.header(src.Header) {
		if v = strings.TrimSpace(v); v != "" {
			return v
		}
	}
	return nil
}

// header gives the values of a header, whatever the case of its name.
func (p Page) header(name string) []string {
	if v, ok := p.Header[name]; ok {
		return v
	}
	for k, v := range p.Header {
		if strings.EqualFold(k, name) {
			return v
		}
	}
	return nil
}

// number is an offset as a JSON number.
func number(n int) json.Number { return json.Number(strconv.Itoa(n)) }

// text is a scalar as it stands in a query or header. Null, arrays and objects
// have none.
func text(v recipe.Value) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case json.Number:
		return v.String(), true
	case bool:
		return strconv.FormatBool(v), true
	}
	return "", false
}

// nothing reports whether a next cursor or link is none: missing, null, empty,
// or what APIs write for none, false and 0.
func nothing(v recipe.Value) bool {
	switch v := v.(type) {
	case nil:
		return true
	case bool:
		return !v
	case string:
		return strings.TrimSpace(v) == ""
	case json.Number:
		return zero(v.String())
	case recipe.Array:
		return len(v) == 0
	case recipe.Object:
		return len(v) == 0
	}
	return false
}

// falsy reports whether a flag says no: false, 0, and their text.
func falsy(v recipe.Value) bool {
	switch v := v.(type) {
	case bool:
		return !v
	case json.Number:
		return zero(v.String())
	case string:
		s := strings.TrimSpace(v)
		return s == "0" || strings.EqualFold(s, "false")
	}
	return false
}

// truth reports whether a flag is a truth value, or its text.
func truth(v recipe.Value) bool {
	switch v := v.(type) {
	case bool:
		return true
	case string:
		s := strings.TrimSpace(v)
		return strings.EqualFold(s, "true") || strings.EqualFold(s, "false")
	}
	return false
}

// zero reports whether the text of a JSON number is nought, in any spelling.
func zero(s string) bool {
	digits, _, _ := strings.Cut(strings.ToLower(s), "e")
	return strings.Trim(digits, "-0.") == ""
}

// count reads a number of items: a whole number that is not negative, or its
// text.
func count(v recipe.Value) (int64, bool) {
	switch v := v.(type) {
	case string:
		n, err := strconv.ParseInt(strings.TrimSpace(v), 10, 64)
		return n, err == nil && n >= 0
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n, n >= 0
		}
		f, err := v.Float64() // 137.0, 1.37e2
		const exact = 1 << 53
		return int64(f), err == nil && f >= 0 && f <= exact && f == math.Trunc(f)
	}
	return 0, false
}

// headerValue reports whether s can be the value of a header.
func headerValue(s string) bool {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] > 0x7e {
			return false
		}
	}
	return s != "" && s == strings.Trim(s, " ")
}

func control(r rune) bool { return r < 0x20 || r >= 0x7f && r < 0xa0 }

// kindOf names the kind of a value, for a sentence.
func kindOf(v recipe.Value) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case json.Number:
		return "a number"
	case string:
		return "a text"
	case recipe.Array:
		return "an array"
	}
	return "an object"
}
