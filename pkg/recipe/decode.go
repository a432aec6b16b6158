package recipe

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// maxDepth is how deeply arrays and objects may nest unless a caller says
// otherwise. Real answers stay below 30; 200 keeps recursion far from trouble.
const maxDepth = 200

// DecodeLimits bound what Decode accepts. The zero value is for data from
// anywhere: 200 levels, any size, duplicate keys allowed.
type DecodeLimits struct {
	Depth int // arrays and objects inside each other; 0: 200
	Bytes int // length of the text; 0: no limit
	// UniqueKeys makes a key that appears twice in one object an error. When
	// it is false both members stay in the Object, in their places, and
	// Object.Get answers the last; so Encode writes them as they came and a
	// checker of documents can point at the second one.
	UniqueKeys bool
}

// A DecodeError says why a text is not one acceptable JSON document.
type DecodeError struct {
	Kind    string // "syntax", "depth", "utf8", "size", "duplicate", "empty" or "trailing"
	Offset  int64  // bytes from the start of the text, a byte order mark included
	Path    string // of a duplicate key: "request.headers.Accept"; else ""
	Message string // lower case, no final period, never a piece of the text longer than a key
}

// Error gives the message and the place.
func (e *DecodeError) Error() string {
	if e.Kind == "empty" || e.Kind == "size" {
		return e.Message
	}
	return fmt.Sprintf("%s at byte %d", e.Message, e.Offset)
}

// Decode reads one JSON document. Numbers become json.Number with the digits
// of the source, members keep their order, a byte order mark is skipped, a
// lone surrogate escape becomes U+FFFD. Bytes that are not UTF-8, and
// anything but white space after the document, are errors. Every error is a
// *DecodeError.
func Decode(data []byte, lim DecodeLimits) (Value, error) {
	if lim.Bytes > 0 && len(data) > lim.Bytes {
		return nil, &DecodeError{Kind: "size", Message: fmt.Sprintf("the text has %d bytes, %d are allowed", len(data), lim.Bytes)}
	}
	r, err := newReader(data, lim)
	if err != nil {
		return nil, err
	}
	v, err := r.build()
	if err != nil {
		return nil, err
	}
	if err := r.end(); err != nil {
		return nil, err
	}
	return v, nil
}

// A reader walks one JSON text and builds values from it.
type reader struct {
	dec    *jsontext.Decoder
	text   []byte // without the byte order mark
	bom    int64  // length of what was cut in front of text
	depth  int
	unique bool
	scrub  func(string) string // nil: strings stay
	// few and names hold the keys met so far, so that a thousand items share one
	// copy of each: the first in few, where comparing costs less than hashing.
	few     []knownName
	names   map[string]string // the decoded, scrubbed form by the quoted source
	members []Member          // work space: members of the objects being built
	values  []Value           // the same for arrays
	budget  *budget           // nil: everything is built
}

// A knownName is a key as it stands between its quotes, and what it means.
type knownName struct{ source, name string }

// mostFew is how many keys are compared one by one.
const mostFew = 16

// A budget is how much compact JSON is still worth building, in bytes. What
// comes after it is checked and left out: objects and arrays end there.
type budget struct{ left int }

func (b *budget) spend(n int) {
	if b != nil {
		b.left -= n
	}
}

func (b *budget) spent() bool { return b != nil && b.left <= 0 }

var bom = []byte("\xef\xbb\xbf")

func newReader(data []byte, lim DecodeLimits) (*reader, error) {
	r := &reader{text: data, depth: lim.Depth, unique: lim.UniqueKeys}
	if r.depth <= 0 {
		r.depth = maxDepth
	}
	if bytes.HasPrefix(data, bom) {
		r.text, r.bom = data[len(bom):], int64(len(bom))
	}
	if len(bytes.TrimLeft(r.text, " \t\r\n")) == 0 {
		return nil, &DecodeError{Kind: "empty", Offset: int64(len(data)), Message: "the text is empty"}
	}
	if at := invalidUTF8(r.text); at >= 0 {
		msg := "invalid UTF-8"
		if looksUTF16(data) {
			msg = "the text is UTF-16, not UTF-8"
		}
		return nil, &DecodeError{Kind: "utf8", Offset: r.bom + int64(at), Message: msg}
	}
	if looksUTF16(data) {
		return nil, &DecodeError{Kind: "utf8", Offset: 0, Message: "the text is UTF-16, not UTF-8"}
	}
	// The text was checked above; what AllowInvalidUTF8 still lets through is
	// a lone surrogate escape, which real services send. A bytes.Buffer is
	// read in place, without a copy.
	r.dec = jsontext.NewDecoder(bytes.NewBuffer(r.text),
		jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	return r, nil
}

// invalidUTF8 gives the offset of the first byte that is not UTF-8, or -1.
func invalidUTF8(b []byte) int {
	if utf8.Valid(b) {
		return -1
	}
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n <= 1 {
			return i
		}
		i += n
	}
	return -1
}

// looksUTF16 knows JSON in UTF-16 by its mark, or by a zero byte beside the
// first character, which JSON never has.
func looksUTF16(b []byte) bool {
	if len(b) < 2 {
		return false
	}
	return b[0] == 0xfe && b[1] == 0xff || b[0] == 0xff && b[1] == 0xfe || b[0] == 0 != (b[1] == 0)
}

// fail turns an error of the scanner into ours.
func (r *reader) fail(err error) error {
	e := &DecodeError{Kind: "syntax", Offset: r.bom + r.dec.InputOffset(), Message: err.Error()}
	var syn *jsontext.SyntacticError
	if errors.As(err, &syn) {
		e.Offset, e.Message = r.bom+syn.ByteOffset, syn.Err.Error()
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		e.Offset, e.Message = r.bom+int64(len(r.text)), "the text ends too early"
	}
	return e
}

// end checks that nothing follows the document.
func (r *reader) end() error {
	after := r.dec.InputOffset()
	rest := bytes.TrimLeft(r.text[after:], " \t\r\n")
	if len(rest) == 0 {
		return nil
	}
	return &DecodeError{Kind: "trailing", Offset: r.bom + int64(len(r.text)-len(rest)), Message: "more text after the JSON document"}
}

// open reads '{' or '[' and checks the depth.
func (r *reader) open() error {
	if _, err := r.dec.ReadToken(); err != nil {
		return r.fail(err)
	}
	if r.dec.StackDepth() > r.depth {
		return &DecodeError{
			Kind: "depth", Offset: r.bom + r.dec.InputOffset() - 1,
			Message: fmt.Sprintf("more than %d arrays and objects inside each other", r.depth),
		}
	}
	return nil
}

// skip passes over one value, checking everything that build checks.
func (r *reader) skip() error {
	depth := r.dec.StackDepth()
	for {
		tok, err := r.dec.ReadToken()
		if err != nil {
			return r.fail(err)
		}
		switch tok.Kind() {
		case '{', '[':
			if r.dec.StackDepth() > r.depth {
				return &DecodeError{
					Kind: "depth", Offset: r.bom + r.dec.InputOffset() - 1,
					Message: fmt.Sprintf("more than %d arrays and objects inside each other", r.depth),
				}
			}
		default:
			if r.dec.StackDepth() == depth {
				return nil
			}
		}
	}
}

// build reads one value.
func (r *reader) build() (Value, error) {
	if r.budget.spent() {
		return nil, r.skip()
	}
	switch r.dec.PeekKind() {
	case '{':
		return r.object(nil)
	case '[':
		return r.array()
	}
	tok, err := r.dec.ReadToken()
	if err != nil {
		return nil, r.fail(err)
	}
	switch tok.Kind() {
	case 'n':
		r.budget.spend(len("null"))
		return nil, nil
	case 't', 'f':
		r.budget.spend(len("true"))
		return tok.Bool(), nil
	case '0':
		n := tok.String()
		r.budget.spend(len(n))
		return json.Number(n), nil
	default:
		s := tok.String()
		if r.scrub != nil {
			s = r.scrub(s)
		}
		r.budget.spend(len(s) + len(`""`))
		return s, nil
	}
}

// object reads an object. Members that keep does not want are checked and left
// out.
func (r *reader) object(keep *keeper) (Value, error) {
	if err := r.open(); err != nil {
		return nil, err
	}
	if r.members == nil {
		r.members = make([]Member, 0, 16)
	}
	start := len(r.members)
	var known map[string]bool // with unique, once an object is too wide to look through
	for r.dec.PeekKind() != '}' {
		quoted, err := r.key()
		if err != nil {
			return nil, err
		}
		key, wanted := keep.wantsQuoted(quoted)
		if !wanted || r.budget.spent() {
			if err := r.skip(); err != nil {
				return nil, err
			}
			continue
		}
		if key == "" || r.scrub != nil {
			key = r.name(quoted)
		}
		if r.unique && len(r.members)-start == 16 {
			known = make(map[string]bool)
			for _, m := range r.members[start:] {
				known[m.Key] = true
			}
		}
		if r.unique && (known[key] || known == nil && hasKey(r.members[start:], key)) {
			return nil, &DecodeError{
				Kind: "duplicate", Offset: r.bom + r.dec.InputOffset() - int64(len(quoted)),
				Path: r.place(), Message: fmt.Sprintf("key %s appears twice", strconv.Quote(clip(key))),
			}
		}
		v, err := r.build()
		if err != nil {
			return nil, err
		}
		if keep != nil { // few names, however often they come: the last counts
			if i := slices.IndexFunc(r.members[start:], func(m Member) bool { return m.Key == key }); i >= 0 {
				r.members[start+i].Value = v
				continue
			}
		}
		r.members = append(r.members, Member{key, v})
		r.budget.spend(len(key) + len(`"":,`))
		if known != nil {
			known[key] = true
		}
	}
	if _, err := r.dec.ReadToken(); err != nil {
		return nil, r.fail(err)
	}
	r.budget.spend(1) // of the brackets and commas: one more than there are members
	out := make(Object, len(r.members)-start)
	copy(out, r.members[start:])
	clear(r.members[start:])
	r.members = r.members[:start]
	return out, nil
}

func (r *reader) array() (Value, error) {
	if err := r.open(); err != nil {
		return nil, err
	}
	start := len(r.values)
	for r.dec.PeekKind() != ']' {
		if r.budget.spent() {
			if err := r.skip(); err != nil {
				return nil, err
			}
			continue
		}
		v, err := r.build()
		if err != nil {
			return nil, err
		}
		r.values = append(r.values, v)
		r.budget.spend(len(","))
	}
	if _, err := r.dec.ReadToken(); err != nil {
		return nil, r.fail(err)
	}
	r.budget.spend(1)
	out := make(Array, len(r.values)-start)
	copy(out, r.values[start:])
	clear(r.values[start:])
	r.values = r.values[:start]
	return out, nil
}

// key reads the name of a member, in quotes.
func (r *reader) key() ([]byte, error) {
	if r.dec.PeekKind() != '"' {
		// As a token it is an error at its place; as a value it might be read.
		if _, err := r.dec.ReadToken(); err != nil {
			return nil, r.fail(err)
		}
	}
	quoted, err := r.dec.ReadValue()
	if err != nil {
		return nil, r.fail(err)
	}
	return quoted, nil
}

// name decodes a quoted key.
func (r *reader) name(quoted []byte) string {
	source := quoted[1 : len(quoted)-1]
	for i := range r.few {
		if r.few[i].source == string(source) {
			return r.few[i].name
		}
	}
	if s, ok := r.names[string(quoted)]; ok {
		return s
	}
	s := unquote(quoted)
	known := knownName{s, s}
	if bytes.IndexByte(source, '\\') >= 0 {
		known.source = string(source)
	}
	if r.scrub != nil {
		known.name = r.scrub(s)
	}
	switch {
	case len(r.few) < mostFew:
		if r.few == nil {
			r.few = make([]knownName, 0, mostFew/2)
		}
		r.few = append(r.few, known)
	case len(r.names) < 4096: // an object used as a map has many keys, each once
		if r.names == nil {
			r.names = map[string]string{}
		}
		r.names[string(quoted)] = known.name
	}
	return known.name
}

// unquote decodes a string the scanner has accepted.
func unquote(quoted []byte) string {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted[1 : len(quoted)-1])
	}
	// The only error left is a lone surrogate, replaced in the output.
	b, _ := jsontext.AppendUnquote(nil, quoted)
	return string(b)
}

func hasKey(ms []Member, key string) bool {
	for i := range ms {
		if ms[i].Key == key {
			return true
		}
	}
	return false
}

// place is the dotted path of what was read last.
func (r *reader) place() string {
	out := ""
	i := 0
	for tok := range r.dec.StackPointer().Tokens() {
		i++
		if kind, _ := r.dec.StackIndex(i); kind == '[' {
			out += "[" + tok + "]"
			continue
		}
		out = FieldPath(out, tok)
	}
	return out
}

// clip shortens a key for a message.
func clip(s string) string {
	if utf8.RuneCountInString(s) <= 60 {
		return s
	}
	return string([]rune(s)[:60]) + "…"
}

// FieldPath appends a key to the dotted path of a place in a document, as
// Problem.Field writes it: plain names after a dot, others in brackets.
//
//	FieldPath("response.fields", "Price")      // response.fields.Price
//	FieldPath("response.fields", "Unit price") // response.fields['Unit price']
func FieldPath(base, key string) string {
	plain := key != ""
	for _, c := range key {
		if !isLetterOrDigit(c) && c != '_' && c != '-' && c != '$' {
			plain = false
			break
		}
	}
	switch {
	case plain && base == "":
		return key
	case plain:
		return base + "." + key
	}
	return base + "['" + quoteEscaper.Replace(key) + "']"
}
