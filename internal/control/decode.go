package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// bad is a request that is JSON, but not what the route takes.
func bad(field, format string, args ...any) *fault.Error {
	return fault.New("BAD_REQUEST", "%s: %s", field, fmt.Sprintf(format, args...)).
		With(fault.Field(field), fault.Hint("Use the hbrestd command of the version that runs; `hbrestd status` prints it."))
}

// read takes the whole request, then lifts the time limit of reading: it would
// end a call that waits.
func (h *handler) read(w http.ResponseWriter, r *http.Request, rt route) (request, error) {
	q, err := readQuery(r, rt.params)
	if err != nil {
		return request{}, err
	}
	conn := http.NewResponseController(w)
	var body []byte
	if rt.method == http.MethodPost {
		// A caller that sends slowly does not hold up the stop.
		unhook := context.AfterFunc(h.ending, func() { _ = conn.SetReadDeadline(time.Unix(1, 0)) })
		body, err = readBody(w, r, rt.limit)
		if !unhook() && err != nil {
			return request{}, shuttingDown()
		}
		if err != nil {
			return request{}, err
		}
	} else if r.ContentLength != 0 {
		return request{}, bad("body", "a GET has none")
	}
	_ = conn.SetReadDeadline(time.Time{}) // fails only on a connection that is gone
	return request{query: q, body: body}, nil
}

func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	tooLarge := func() error {
		return fault.New("BODY_TOO_LARGE", "the body is over %d MiB", limit>>20).With(fault.Field("body"))
	}
	if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || t != "application/json" {
		return nil, fault.New("UNSUPPORTED_MEDIA_TYPE", "the Content-Type is not application/json")
	}
	if r.ContentLength > limit {
		return nil, tooLarge()
	}
	var buf bytes.Buffer
	if r.ContentLength > 0 {
		buf.Grow(int(min(r.ContentLength, 1<<20)) + bytes.MinRead) // more only as it comes
	}
	_, err := buf.ReadFrom(http.MaxBytesReader(w, r.Body, limit))
	if tooBig := (*http.MaxBytesError)(nil); errors.As(err, &tooBig) {
		return nil, tooLarge()
	}
	if err != nil {
		return nil, bad("body", "it did not arrive whole").With(fault.Cause(err))
	}
	return buf.Bytes(), nil
}

// readQuery reads the query string; known are the parameters of the route, each
// at most once.
func readQuery(r *http.Request, known []string) (url.Values, error) {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, bad("query", "cannot be read").With(fault.Cause(err))
	}
	var names []string
	for name := range q {
		names = append(names, name)
	}
	slices.Sort(names) // the same request gives the same words
	for _, name := range names {
		field := "query." + fault.Shorten(name, 60)
		if !slices.Contains(known, name) {
			return nil, bad(field, "no such parameter; this route knows %s", listed(known))
		}
		if len(q[name]) > 1 {
			return nil, bad(field, "it is given twice")
		}
	}
	return q, nil
}

func listed(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// decode reads one JSON object into v, a pointer to a struct, more strictly
// than encoding/json: names must have the right case, appear once and be known,
// and each fault says where it is. An optional member may be null.
func decode(data []byte, v any) error {
	if !utf8.Valid(data) {
		return fault.New("BAD_JSON", "the body is not UTF-8").With(fault.Field("body"))
	}
	if !json.Valid(data) {
		at := int64(len(data))
		err := json.Unmarshal(data, new(any))
		var se *json.SyntaxError
		if errors.As(err, &se) {
			at = se.Offset
		}
		return fault.New("BAD_JSON", "the body is not JSON at byte %d", at).With(fault.Field("body"), fault.Cause(err))
	}
	whole, _ := cutValue(data)
	if err := fill(whole, reflect.ValueOf(v).Elem(), "body"); err != nil {
		return err
	}
	return nil
}

// fill puts valid JSON into v. It knows the kinds that the wire types have.
func fill(raw []byte, v reflect.Value, field string) *fault.Error {
	if v.Type() == reflect.TypeFor[json.RawMessage]() {
		v.SetBytes(raw)
		return nil
	}
	switch v.Kind() {
	case reflect.Struct:
		return fillStruct(raw, v, field)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return fillBytes(raw, v, field)
		}
		return fillSlice(raw, v, field)
	case reflect.Pointer:
		if isNull(raw) {
			return nil
		}
		p := reflect.New(v.Type().Elem())
		if err := fill(raw, p.Elem(), field); err != nil {
			return err
		}
		v.Set(p)
		return nil
	}
	if isNull(raw) {
		return nil
	}
	if err := json.Unmarshal(raw, v.Addr().Interface()); err != nil {
		return bad(field, "must be %s; it is %s", wanted(v.Kind()), got(raw)).With(fault.Cause(err))
	}
	return nil
}

func fillStruct(raw []byte, v reflect.Value, field string) *fault.Error {
	if raw[0] != '{' {
		return bad(field, "must be an object; it is %s", kindOf(raw))
	}
	at := map[string]int{}
	var known []string
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		at[name] = i
		known = append(known, name)
	}
	seen := map[string]bool{}
	for rest := raw[1:]; ; {
		quoted, more := cutValue(rest)
		if quoted == nil {
			return nil
		}
		var value []byte
		value, rest = cutValue(more)
		var name string
		if err := json.Unmarshal(quoted, &name); err != nil {
			return bad(field, "has a name that cannot be read").With(fault.Cause(err))
		}
		inner := field + "." + fault.Shorten(name, 60)
		i, ok := at[name]
		switch {
		case !ok:
			return bad(inner, "no such member; known here: %s", listed(known))
		case seen[name]:
			return bad(inner, "it is given twice")
		}
		seen[name] = true
		if err := fill(value, v.Field(i), inner); err != nil {
			return err
		}
	}
}

func fillSlice(raw []byte, v reflect.Value, field string) *fault.Error {
	if isNull(raw) {
		return nil
	}
	if raw[0] != '[' {
		return bad(field, "must be an array; it is %s", kindOf(raw))
	}
	rest := raw[1:]
	for i := 0; ; i++ {
		var value []byte
		if value, rest = cutValue(rest); value == nil {
			return nil
		}
		if i == MaxDocuments {
			return bad(field, "over %d entries; at most %d go into one call", i, i)
		}
		e := reflect.New(v.Type().Elem()).Elem()
		if err := fill(value, e, fmt.Sprintf("%s[%d]", field, i)); err != nil {
			return err
		}
		v.Set(reflect.Append(v, e))
	}
}

// fillBytes reads bytes, as encoding/json writes them. They are the values of
// credentials: a fault tells nothing of what stood there, not even as its cause.
func fillBytes(raw []byte, v reflect.Value, field string) *fault.Error {
	if isNull(raw) {
		return nil
	}
	if k := kindOf(raw); k != "a string" {
		return bad(field, "must be a string in base64; it is %s", k)
	}
	if err := json.Unmarshal(raw, v.Addr().Interface()); err != nil {
		return bad(field, "must be a string in base64")
	}
	return nil
}

// cutValue cuts the next value off JSON that is known to be valid, with the
// punctuation before it. It is nil at the end of the object or array. The value
// is a part of data, not a copy: an apply has 32 MiB.
func cutValue(data []byte) (value, rest []byte) {
	start := 0
	for start < len(data) && strings.IndexByte(" \t\r\n,:", data[start]) >= 0 {
		start++
	}
	if start == len(data) || data[start] == ']' || data[start] == '}' {
		return nil, nil
	}
	depth := 0
	for i := start; i < len(data); i++ {
		switch c := data[i]; c {
		case '"':
			i = endOfString(data, i)
		case '{', '[':
			depth++
			continue
		case '}', ']':
			depth--
		default:
			// A number or a word ends before the next punctuation.
			if depth > 0 || i+1 < len(data) && strings.IndexByte(" \t\r\n,:]}", data[i+1]) < 0 {
				continue
			}
		}
		if depth == 0 {
			return data[start : i+1 : i+1], data[i+1:]
		}
	}
	return data[start:], nil // not reached for valid JSON
}

// endOfString is the index of the quote that ends the string which begins at i.
func endOfString(data []byte, i int) int {
	for i++; i < len(data); i++ {
		switch data[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return i - 1
}

func isNull(v []byte) bool { return string(v) == "null" }

func wanted(k reflect.Kind) string {
	switch k {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	}
	return "a whole number"
}

// got is the kind of a value, or a number itself: 1.5 and 99999999999999999999
// are numbers, but not what was wanted.
func got(raw []byte) string {
	if k := kindOf(raw); k != "a number" {
		return k
	}
	return fault.Shorten(string(raw[:min(len(raw), 100)]), 40)
}

// kindOf says in words what a JSON value is.
func kindOf(v []byte) string {
	switch v[0] {
	case '"':
		return "a string"
	case 't', 'f':
		return "true or false"
	case 'n':
		return "null"
	case '[':
		return "an array"
	case '{':
		return "an object"
	}
	return "a number"
}
