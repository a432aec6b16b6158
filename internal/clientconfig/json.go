package clientconfig

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/tailscale/hujson"
)

// The JSON editor works on the text. The parser only says where things are, so
// what an edit does not name cannot change.

// maxDepth is how deep a document may be nested. The parser's own recursion has
// no bound.
const maxDepth = 500

// parseJSON parses a document whose root is an object.
func parseJSON(text []byte) (*hujson.Value, error) {
	if at := tooDeep(text); at >= 0 {
		return nil, &syntaxError{offset: at, message: fmt.Sprintf("it is nested over %d levels deep", maxDepth)}
	}
	v, err := hujson.Parse(text)
	if err != nil {
		return nil, jsonProblem(text, err)
	}
	if _, ok := v.Value.(*hujson.Object); !ok {
		return nil, &syntaxError{offset: v.StartOffset, message: "it is no JSON object"}
	}
	return &v, nil
}

// jsonProblem takes the place out of the parser's error.
func jsonProblem(text []byte, err error) error {
	var line, column int
	message := err.Error()
	if _, scanErr := fmt.Sscanf(message, "hujson: line %d, column %d:", &line, &column); scanErr == nil {
		if _, rest, ok := strings.Cut(message, fmt.Sprintf("column %d: ", column)); ok {
			message = rest
		}
	}
	return &syntaxError{offset: offsetOf(text, line, column), message: message}
}

// tooDeep gives the offset where a text is nested too deep, or -1. It knows
// strings and comments.
func tooDeep(text []byte) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case bytes.HasPrefix(text[i:], []byte("//")):
			if n := bytes.IndexByte(text[i:], '\n'); n >= 0 {
				i += n
			} else {
				return -1
			}
		case bytes.HasPrefix(text[i:], []byte("/*")):
			n := bytes.Index(text[i+2:], []byte("*/"))
			if n < 0 {
				return -1
			}
			i += n + 3
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

// decodeJSON gives the document's values; numbers keep their digits, and of
// members with one name the last counts, as in the clients.
func decodeJSON(text []byte) (map[string]any, error) {
	plain, err := hujson.Standardize(bytes.Clone(text))
	if err != nil {
		return nil, jsonProblem(text, err)
	}
	d := json.NewDecoder(bytes.NewReader(plain))
	d.UseNumber()
	var m map[string]any
	if err := d.Decode(&m); err != nil {
		return nil, &syntaxError{message: err.Error()}
	}
	return m, nil
}

// jsonStyle is how a document is laid out.
type jsonStyle struct {
	newline string // "" keeps everything on one line
	unit    string // of indentation
	tight   bool   // no space after a colon or comma
}

func styleOf(text []byte, root *hujson.Value) jsonStyle {
	s := jsonStyle{newline: "\n", unit: "  "}
	if i := bytes.IndexByte(text, '\n'); i > 0 && text[i-1] == '\r' {
		s.newline = "\r\n"
	}
	members := root.Value.(*hujson.Object).Members
	for _, m := range members {
		if in, ok := indentOf(text, m.Name.StartOffset); ok && in != "" {
			s.unit = in
			break
		}
	}
	s.tight = len(members) > 0 && len(members[0].Value.BeforeExtra) == 0
	return s
}

// indentOf is the white space between the start of the line and offset; ok is
// false if something else stands there. It looks no further than that: a
// document may be one line of megabytes, and is asked about at each member.
func indentOf(text []byte, offset int) (string, bool) {
	start := offset
	for start > 0 && (text[start-1] == ' ' || text[start-1] == '\t') {
		start--
	}
	if start == 0 || text[start-1] != '\n' {
		return "", false
	}
	return string(text[start:offset]), true
}

// value writes v; indent is that of the line that it begins on.
func (s jsonStyle) value(v any, indent string) []byte {
	var b bytes.Buffer
	s.write(&b, v, indent)
	return b.Bytes()
}

func (s jsonStyle) write(b *bytes.Buffer, v any, indent string) {
	switch v := v.(type) {
	case string:
		b.Write(hujson.String(v))
	case bool:
		b.WriteString(strconv.FormatBool(v))
	case int:
		b.WriteString(strconv.Itoa(v))
	case []string:
		b.WriteByte('[')
		for i, x := range v {
			if i > 0 {
				b.WriteString(s.comma())
			}
			b.Write(hujson.String(x))
		}
		b.WriteByte(']')
	case []member:
		if len(v) == 0 {
			b.WriteString("{}")
			return
		}
		b.WriteByte('{')
		for i, m := range v {
			switch {
			case s.newline != "":
				if i > 0 {
					b.WriteByte(',')
				}
				b.WriteString(s.newline + indent + s.unit)
			case i > 0:
				b.WriteString(s.comma())
			}
			s.write(b, m, indent+s.unit)
		}
		if s.newline != "" {
			b.WriteString(s.newline + indent)
		}
		b.WriteByte('}')
	case member:
		b.Write(hujson.String(v.key))
		b.WriteByte(':')
		if !s.tight {
			b.WriteByte(' ')
		}
		s.write(b, v.value, indent)
	}
}

func (s jsonStyle) comma() string {
	if s.tight {
		return ","
	}
	return ", "
}

// setJSON puts a value at a path, making the objects on the way. What stands on
// the way must be an object, or the error says where it does not.
func setJSON(text []byte, path []string, value any) ([]byte, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("{}" + newlineOf(text)) // an empty file is an empty document
	}
	root, err := parseJSON(text)
	if err != nil {
		return nil, err
	}
	style := styleOf(text, root)
	at := root
	for i, key := range path {
		o, ok := at.Value.(*hujson.Object)
		if !ok {
			return nil, &syntaxError{offset: at.StartOffset, message: fmt.Sprintf("%q is no JSON object", strings.Join(path[:i], "."))}
		}
		next := lastMember(o, key)
		if next < 0 {
			for j := len(path) - 1; j > i; j-- {
				value = []member{{path[j], value}}
			}
			return insertMember(text, at, style, member{key, value}), nil
		}
		at = &o.Members[next].Value
	}
	if !multiline(text, at) && !onOwnLine(text, at) {
		style.newline = ""
	}
	return splice(text, at.StartOffset, at.EndOffset, style.value(value, lineIndent(text, at.StartOffset))), nil
}

// multiline reports whether a value has a line end inside.
func multiline(text []byte, v *hujson.Value) bool {
	return bytes.IndexByte(text[v.StartOffset:v.EndOffset], '\n') >= 0
}

// onOwnLine reports whether the member that a value belongs to starts its line.
func onOwnLine(text []byte, v *hujson.Value) bool {
	start := bytes.LastIndexByte(text[:v.StartOffset], '\n') + 1
	return start > 0 && bytes.HasPrefix(bytes.TrimLeft(text[start:v.StartOffset], " \t"), []byte(`"`))
}

// lineIndent is the white space at the start of the line of an offset.
func lineIndent(text []byte, offset int) string {
	start := bytes.LastIndexByte(text[:offset], '\n') + 1
	line := text[start:offset]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

func lastMember(o *hujson.Object, key string) int {
	for i := len(o.Members) - 1; i >= 0; i-- {
		if nameOf(o.Members[i]) == key {
			return i
		}
	}
	return -1
}

func nameOf(m hujson.ObjectMember) string { return m.Name.Value.(hujson.Literal).String() }

// insertMember adds a member at the end of the object at, after its comments.
func insertMember(text []byte, at *hujson.Value, style jsonStyle, m member) []byte {
	o := at.Value.(*hujson.Object)
	end := at.EndOffset - len("}")
	inner := text[end-len(o.AfterExtra) : end]
	put := end - len(inner) + len(bytes.TrimRight(inner, white)) // behind the last comment
	n := len(o.Members)
	if n == 0 {
		indent := lineIndent(text, at.StartOffset)
		if style.newline == "" {
			style.newline = "\n"
		}
		added := style.newline + indent + style.unit + string(style.value(m, indent+style.unit)) + style.newline + indent
		return splice(text, put, end, []byte(added))
	}
	last := &o.Members[n-1].Value
	trailing := last.AfterExtra != nil // there is a comma behind the last member
	var added string
	if multiline(text, at) {
		indent, ok := indentOf(text, o.Members[n-1].Name.StartOffset)
		if !ok {
			indent = lineIndent(text, at.StartOffset) + style.unit
		}
		added = style.newline + indent + string(style.value(m, indent))
	} else {
		style.newline = ""
		added = strings.TrimPrefix(style.comma(), ",") + string(style.value(m, ""))
	}
	if trailing {
		added += ","
	}
	text = splice(text, put, put, []byte(added))
	if !trailing {
		text = splice(text, last.EndOffset, last.EndOffset, []byte(","))
	}
	return text
}

// removeJSON takes out every member at a path. The objects on the way stay,
// but the one that held it goes too if that leaves it without a member and
// without a comment and dropEmpty says so.
func removeJSON(text []byte, path []string, dropEmpty bool) ([]byte, error) {
	for {
		root, err := parseJSON(text)
		if err != nil {
			return nil, err
		}
		at := root
		for _, key := range path[:len(path)-1] {
			o, ok := at.Value.(*hujson.Object)
			if !ok {
				return text, nil
			}
			i := lastMember(o, key)
			if i < 0 {
				return text, nil
			}
			at = &o.Members[i].Value
		}
		o, ok := at.Value.(*hujson.Object)
		if !ok {
			return text, nil
		}
		i := lastMember(o, path[len(path)-1])
		if i < 0 {
			if dropEmpty && len(path) > 1 && len(o.Members) == 0 && isWhite(o.AfterExtra) {
				return removeJSON(text, path[:len(path)-1], false)
			}
			return text, nil
		}
		text = cutMember(text, at, i)
	}
}

// cutMember takes member i out of the object at, with white space and one
// comma. Comments stay.
func cutMember(text []byte, at *hujson.Value, i int) []byte {
	o := at.Value.(*hujson.Object)
	name, value := &o.Members[i].Name, &o.Members[i].Value
	before := text[name.StartOffset-len(name.BeforeExtra) : name.StartOffset]
	from := name.StartOffset - len(before) + len(bytes.TrimRight(before, white))
	to := value.EndOffset
	n := len(o.Members)
	if i < n-1 && isWhite(value.AfterExtra) && isWhite(o.Members[i+1].Name.BeforeExtra) {
		return splice(text, name.StartOffset, o.Members[i+1].Name.StartOffset, nil) // the next takes its place
	}
	comma := i < n-1 || value.AfterExtra != nil // one stands behind it
	if comma {
		after := value.EndOffset + len(value.AfterExtra)
		if isWhite(value.AfterExtra) {
			to = after + 1
		} else { // a comment stands before the comma, and stays
			text = splice(text, after, after+1, nil)
		}
	}
	with := ""
	if rest := text[to:]; !startsLine(rest) {
		if _, own := indentOf(text, name.StartOffset); own && !bytes.HasPrefix(bytes.TrimLeft(rest, white), []byte("}")) {
			from = name.StartOffset // what follows on the line takes its place
			to += len(rest) - len(bytes.TrimLeft(rest, " \t"))
		} else if endsInLineComment(before) {
			with = "\n" // or the comment would swallow what follows
		}
	}
	text = splice(text, from, to, []byte(with))
	if n == 1 {
		open := at.StartOffset + 1
		end := open + bytes.IndexByte(text[open:], '}')
		if end > open && isWhite(text[open:end]) {
			text = splice(text, open, end, nil)
		}
		return text
	}
	if !comma { // it was the last, so the one before has a comma too much
		prev := &o.Members[i-1].Value
		at := prev.EndOffset + len(prev.AfterExtra)
		text = splice(text, at, at+1, nil)
	}
	return text
}

const white = " \t\r\n"

func isWhite(b []byte) bool { return len(bytes.Trim(b, white)) == 0 }

func endsInLineComment(extra []byte) bool {
	trimmed := bytes.TrimRight(extra, white)
	line := trimmed[bytes.LastIndexByte(trimmed, '\n')+1:]
	return bytes.Contains(line, []byte("//"))
}

func startsLine(rest []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(rest, " \t\r"), []byte("\n"))
}

// splice replaces text[from:to]. It never writes into its argument.
func splice(text []byte, from, to int, with []byte) []byte {
	out := make([]byte, 0, len(text)-(to-from)+len(with))
	out = append(out, text[:from]...)
	out = append(out, with...)
	return append(out, text[to:]...)
}
