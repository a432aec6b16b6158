package recipe

import (
	"encoding/json"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// Encode writes v as compact JSON: members in their order, duplicates too,
// numbers with their own digits, nothing escaped that JSON does not ask for.
// It panics on a Go value that is no Value, which is a programmer's mistake.
func Encode(v Value) []byte { return appendValue(nil, v) }

func appendValue(b []byte, v Value) []byte {
	switch v := v.(type) {
	case nil:
		return append(b, "null"...)
	case bool:
		if v {
			return append(b, "true"...)
		}
		return append(b, "false"...)
	case json.Number:
		if v == "" { // encoding/json's own reading of the zero Number
			return append(b, '0')
		}
		return append(b, v...)
	case string:
		return appendString(b, v)
	case Array:
		b = append(b, '[')
		for i, e := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendValue(b, e)
		}
		return append(b, ']')
	case Object:
		b = append(b, '{')
		for i := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendString(b, v[i].Key)
			b = append(b, ':')
			b = appendValue(b, v[i].Value)
		}
		return append(b, '}')
	}
	panic(fmt.Sprintf("recipe: %T is no Value", v))
}

// appendString quotes s. Invalid UTF-8, which Decode never lets in, becomes
// U+FFFD; that is the only error there is.
func appendString(b []byte, s string) []byte {
	b, _ = jsontext.AppendQuote(b, s)
	return b
}

// MapStrings gives a copy of v in which every string and every key went
// through f. Numbers, booleans and null stay.
func MapStrings(v Value, f func(string) string) Value {
	switch v := v.(type) {
	case string:
		return f(v)
	case Array:
		out := make(Array, len(v))
		for i, e := range v {
			out[i] = MapStrings(e, f)
		}
		return out
	case Object:
		out := make(Object, len(v))
		for i := range v {
			out[i] = Member{f(v[i].Key), MapStrings(v[i].Value, f)}
		}
		return out
	}
	return v
}
