package bridge

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// maxDepth bounds the nesting of a request body. Data deeper than 200 levels is
// refused later with a better word, so this only has to protect what comes
// before: it is far over that, and far under what a stack holds.
const maxDepth = 1000

// A body is the top-level object of a request, its members still raw. The first
// fault stays; the readers after it answer nothing.
type body struct {
	members map[string]json.RawMessage
	err     *fault.Error
}

// readBody takes the body of a POST: its type, its size, then its text. known
// are the members of the route.
func readBody(w http.ResponseWriter, r *http.Request, known ...string) (*body, error) {
	if err := checkMediaType(r.Header); err != nil {
		return nil, err
	}
	if r.ContentLength > api.MaxBody {
		return nil, tooLarge()
	}
	data, err := readAll(w, r)
	if tooBig := (*http.MaxBytesError)(nil); errors.As(err, &tooBig) {
		return nil, tooLarge()
	}
	if err != nil {
		return nil, fault.New("BAD_REQUEST", "the body did not arrive whole").With(fault.Field("body"), fault.Cause(err))
	}
	if _, err := readQuery(r); err != nil {
		return nil, err
	}
	return parseBody(data, known...)
}

// smallBody is the length up to which a body gets its room before it is there.
const smallBody = 64 << 10

func readAll(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if r.ContentLength < 0 || r.ContentLength > smallBody {
		return io.ReadAll(http.MaxBytesReader(w, r.Body, api.MaxBody))
	}
	data := make([]byte, r.ContentLength)
	_, err := io.ReadFull(r.Body, data)
	return data, err
}

func tooLarge() error {
	return fault.New("BODY_TOO_LARGE", "the body is over %d MiB", api.MaxBody>>20).With(fault.Field("body"))
}

const plainJSON = "application/json"

// checkMediaType wants application/json in UTF-8 and no compression. The three
// types that a web form can send are refused by this alone.
func checkMediaType(h http.Header) error {
	types := h["Content-Type"]
	if len(types) != 1 {
		return fault.New("UNSUPPORTED_MEDIA_TYPE", "the request needs one Content-Type header, it has %d", len(types))
	}
	if types[0] == plainJSON && h["Content-Encoding"] == nil { // what hb-rest sends
		return nil
	}
	t, params, err := mime.ParseMediaType(types[0])
	if err != nil || t != plainJSON {
		return fault.New("UNSUPPORTED_MEDIA_TYPE", "the Content-Type is %s, not application/json", fault.Shorten(types[0], 60))
	}
	if c, ok := params["charset"]; ok && !strings.EqualFold(c, "utf-8") {
		return fault.New("UNSUPPORTED_MEDIA_TYPE", "the charset is %s; JSON is UTF-8", fault.Shorten(c, 40))
	}
	if enc := h.Get("Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") {
		return fault.New("UNSUPPORTED_MEDIA_TYPE", "the body is encoded as %s; send it plain", fault.Shorten(enc, 40))
	}
	return nil
}

// parseBody splits one JSON object into its members. Names that repeat, unknown
// names, anything after the object and anything that is not JSON are refused.
// What is inside a member keeps its text, and is judged where it is understood.
func parseBody(data []byte, known ...string) (*body, error) {
	if len(bytes.TrimLeft(data, " \t\r\n")) == 0 {
		return nil, fault.New("BAD_JSON", "the body is empty").With(fault.Field("body"))
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(data), jsontext.AllowDuplicateNames(true))
	if dec.PeekKind() != '{' {
		v, err := dec.ReadValue()
		if err != nil {
			return nil, badJSON(data, dec, err)
		}
		return nil, fault.New("BAD_REQUEST", "the body must be a JSON object; it is %s", kindOf(v)).With(fault.Field("body"))
	}
	if _, err := dec.ReadToken(); err != nil {
		return nil, badJSON(data, dec, err)
	}
	b := &body{members: map[string]json.RawMessage{}}
	for dec.PeekKind() != '}' {
		key, err := readName(dec, known)
		if err != nil {
			return nil, badJSON(data, dec, err)
		}
		v, err := dec.ReadValue()
		if err != nil {
			return nil, badJSON(data, dec, err)
		}
		if at := tooDeep(v); at >= 0 {
			return nil, fault.New("BAD_JSON", "the body is nested over %d levels deep at byte %d", maxDepth, dec.InputOffset()-int64(len(v)-at)).
				With(fault.Field("body"))
		}
		if _, twice := b.members[key]; twice {
			b.fail(member(key), "it is given twice")
			continue
		}
		if !slices.Contains(known, key) {
			b.fail(member(key), "no such member; this route knows "+strings.Join(known, ", "))
		}
		end := dec.InputOffset()
		b.members[key] = data[end-int64(len(v)) : end : end] // v itself is the decoder's
	}
	if _, err := dec.ReadToken(); err != nil {
		return nil, badJSON(data, dec, err)
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		at := dec.InputOffset()
		if err != nil {
			return nil, badJSON(data, dec, err)
		}
		return nil, fault.New("BAD_JSON", "something follows the JSON object, before byte %d", at).With(fault.Field("body"))
	}
	if b.err != nil {
		return nil, b.err
	}
	return b, nil
}

// readName reads the name of a member: as one of known, where it is one that is
// written plainly.
func readName(dec *jsontext.Decoder, known []string) (string, error) {
	if dec.PeekKind() != '"' { // as a token it is an error at its place; as a value it might be read
		name, err := dec.ReadToken()
		return name.String(), err
	}
	quoted, err := dec.ReadValue()
	if err != nil {
		return "", err
	}
	for _, name := range known {
		if string(quoted[1:len(quoted)-1]) == name {
			return name, nil
		}
	}
	name, err := jsontext.AppendUnquote(nil, quoted)
	return string(name), err
}

// badJSON says at which byte reading stopped, counted from 0.
func badJSON(data []byte, dec *jsontext.Decoder, err error) error {
	at, why := dec.InputOffset(), "unexpected end"
	var se *jsontext.SyntacticError
	if errors.As(err, &se) {
		at = se.ByteOffset
		if se.Err != nil {
			why = se.Err.Error()
		}
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		at, why = int64(len(data)), "unexpected end"
	}
	e := fault.New("BAD_JSON", "the body is not JSON at byte %d: %s", at, why).With(fault.Field("body"), fault.Cause(err))
	if bytes.HasPrefix(data, []byte("\xef\xbb\xbf")) {
		e.With(fault.Hint("The body starts with a byte order mark: save it as UTF-8 without one."))
	}
	return e
}

// tooDeep gives the offset where valid JSON opens level maxDepth; the body's
// own object is the first level. -1: nowhere.
func tooDeep(v []byte) int {
	if len(v) < maxDepth { // each level takes a byte
		return -1
	}
	depth, inString := 1, false
	for i := 0; i < len(v); i++ {
		switch c := v[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return i
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return -1
}

// member is the field name of a body's member in an error.
func member(name string) string { return "body." + fault.Shorten(name, 60) }

// kindOf says in words what a JSON value is.
func kindOf(v []byte) string {
	switch jsontext.Value(v).Kind() {
	case '"':
		return "a string"
	case '0':
		return "a number"
	case 't', 'f':
		return "true or false"
	case 'n':
		return "null"
	case '[':
		return "an array"
	default:
		return "an object"
	}
}

func (b *body) fail(field, why string) {
	if b.err == nil {
		b.err = fault.New("BAD_REQUEST", "%s: %s", field, why).With(fault.Field(field))
	}
}

// raw is a member's text; nil when it is absent or null, which is what a caller
// that must fill in every member sends for "not given".
func (b *body) raw(name string) json.RawMessage {
	v := b.members[name]
	if isNull(v) {
		return nil
	}
	return v
}

func isNull(v []byte) bool { return len(v) == 4 && v[0] == 'n' }

// text is a member that must be a string.
func (b *body) text(name string) string {
	v := b.raw(name)
	if v == nil {
		return ""
	}
	if v[0] != '"' {
		b.fail(member(name), "must be a string; it is "+kindOf(v))
		return ""
	}
	if bytes.IndexByte(v, '\\') < 0 {
		return string(v[1 : len(v)-1])
	}
	s, err := jsontext.AppendUnquote(nil, v)
	if err != nil {
		b.fail(member(name), "is not a readable string")
	}
	return string(s)
}

// required is a text that must not be empty.
func (b *body) required(name, why string) string {
	s := b.text(name)
	if s == "" {
		b.fail(member(name), why)
	}
	return s
}

// flag is a member that must be true or false; nil when it is absent.
func (b *body) flag(name string) *bool {
	v := b.raw(name)
	if v == nil {
		return nil
	}
	if v[0] != 't' && v[0] != 'f' {
		b.fail(member(name), "must be true or false; it is "+kindOf(v))
		return nil
	}
	yes := v[0] == 't'
	return &yes
}

// object is a member that must be an object, as its text.
func (b *body) object(name string) json.RawMessage {
	v := b.raw(name)
	if v != nil && v[0] != '{' {
		b.fail(member(name), "must be an object; it is "+kindOf(v))
		return nil
	}
	return v
}

// texts is a member that must be an array of at most most strings; an empty
// one counts as absent.
func (b *body) texts(name string, most int) []string {
	v := b.raw(name)
	if v == nil || b.err != nil {
		return nil
	}
	if v[0] != '[' {
		b.fail(member(name), "must be an array of strings; it is "+kindOf(v))
		return nil
	}
	var elements []json.RawMessage
	if err := json.Unmarshal(v, &elements); err != nil { // parseBody has read it already
		b.fail(member(name), "is not a readable array")
		return nil
	}
	if len(elements) > most {
		b.fail(member(name), fmt.Sprintf("has %d elements, at most %d", len(elements), most))
		return nil
	}
	var out []string
	for i, e := range elements {
		if e[0] != '"' {
			b.fail(fmt.Sprintf("%s[%d]", member(name), i), "must be a string; it is "+kindOf(e))
			return nil
		}
		s, err := jsontext.AppendUnquote(nil, []byte(e))
		if err != nil {
			b.fail(fmt.Sprintf("%s[%d]", member(name), i), "is not a readable string")
			return nil
		}
		out = append(out, string(s))
	}
	return out
}

// format is one of the three formats, or empty when it is absent.
func (b *body) format() string {
	v := b.raw("format")
	if v == nil || b.err != nil {
		return ""
	}
	for _, f := range []string{api.FormatMarkdown, api.FormatJSON, api.FormatBoth} {
		if string(v) == strconv.Quote(f) {
			return f
		}
	}
	b.err = fault.New("FORMAT_INVALID", "format is %s", fault.Shorten(string(v[:min(len(v), 100)]), 40)).With(fault.Field("body.format"))
	return ""
}

// whole is a whole number from 1 to most, under either of two spellings. A
// number outside is a fault with the given code.
func (b *body) whole(name, other string, most int, code fault.Code) *int {
	var got *int
	for _, n := range []string{name, other} {
		v := b.raw(n)
		if v == nil || b.err != nil {
			continue
		}
		i, ok := smallInt(string(v))
		if !ok || i < 1 || i > most {
			b.err = fault.New(code, "%s is %s, not a whole number from 1 to %d", n, fault.Shorten(string(v[:min(len(v), 100)]), 40), most).
				With(fault.Field(member(n)))
			return nil
		}
		if got != nil && *got != i {
			b.fail(member(n), "differs from "+name+", which is the same member")
			return nil
		}
		got = &i
	}
	return got
}

// smallInt reads a JSON number that is whole as it is written: 5 or 5.0.
func smallInt(s string) (int, bool) {
	if whole, frac, ok := strings.Cut(s, "."); ok && strings.Trim(frac, "0") == "" {
		s = whole
	}
	i, err := strconv.Atoi(s)
	return i, err == nil
}
