package clientconfig

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// The TOML editor works on the text too: the parser says where headers, keys
// and values are, and an edit replaces, inserts or cuts between two offsets.

// A tomlItem is a header or a key with its value.
type tomlItem struct {
	path       []string // from the root
	start, end int      // a header's line without its end; or from the key to the end of the value
	value      int      // where the value begins; -1: a header
	inline     []int    // the value is an inline table: its members, as indexes of items
	isTable    bool     // the value is an inline table
	in         int      // the header or the inline table that it stands in, as an index; -1: the root
	array      bool     // the header is of an array of tables
}

func (it tomlItem) header() bool { return it.value < 0 }

// scanTOML lists the items of a document in their order.
func scanTOML(text []byte) ([]tomlItem, error) {
	if at := tooDeepTOML(text); at >= 0 {
		return nil, &syntaxError{offset: at, message: fmt.Sprintf("it is nested over %d levels deep", maxDepth)}
	}
	var p unstable.Parser
	p.Reset(text)
	s := tomlScan{text: text, p: &p, table: -1}
	for p.NextExpression() {
		switch n := p.Expression(); n.Kind {
		case unstable.Table, unstable.ArrayTable:
			keys, from, to := s.keys(n)
			it := tomlItem{path: keys, start: lineStart(text, from), value: -1, in: -1, array: n.Kind == unstable.ArrayTable}
			it.end = it.start + len(bytes.TrimRight(text[it.start:lineEnd(text, to)], "\r\n"))
			s.items = append(s.items, it)
			s.table, s.prefix = len(s.items)-1, keys
		case unstable.KeyValue:
			s.keyValue(n, s.prefix, s.table)
		}
	}
	if err := p.Error(); err != nil {
		return nil, tomlProblem(text, err)
	}
	return s.items, nil
}

type tomlScan struct {
	text   []byte
	p      *unstable.Parser
	items  []tomlItem
	table  int // of the last header
	prefix []string
}

// keys gives a node's key, decoded, and where it stands.
func (s *tomlScan) keys(n *unstable.Node) (keys []string, from, to int) {
	from = -1
	for it := n.Key(); it.Next(); {
		k := it.Node()
		keys = append(keys, string(k.Data))
		if from < 0 {
			from = int(k.Raw.Offset)
		}
		to = int(k.Raw.Offset + k.Raw.Length)
	}
	return keys, from, to
}

func (s *tomlScan) keyValue(n *unstable.Node, prefix []string, in int) int {
	keys, from, to := s.keys(n)
	it := tomlItem{path: append(slices.Clone(prefix), keys...), start: from, end: int(n.Raw.Offset + n.Raw.Length), in: in}
	it.value = to + bytes.IndexByte(s.text[to:], '=') + 1
	for s.text[it.value] == ' ' || s.text[it.value] == '\t' {
		it.value++
	}
	at := len(s.items)
	s.items = append(s.items, it)
	if v := n.Value(); v.Kind == unstable.InlineTable {
		s.items[at].isTable = true
		for c := v.Children(); c.Next(); {
			if c.Node().Kind == unstable.KeyValue {
				i := s.keyValue(c.Node(), it.path, at)
				s.items[at].inline = append(s.items[at].inline, i)
			}
		}
	}
	return at
}

// tooDeepTOML is as tooDeep, for values; brackets in strings count too, which
// no real document has hundreds of.
func tooDeepTOML(text []byte) int {
	depth := 0
	for i, c := range text {
		switch c {
		case '\n':
			if depth < 0 {
				depth = 0
			}
		case '{', '[':
			if depth++; depth > maxDepth {
				return i
			}
		case '}', ']':
			depth--
		}
	}
	return -1
}

// decodeTOML gives the document's values, and refuses what only looks right,
// such as a key that is given twice.
func decodeTOML(text []byte) (map[string]any, error) {
	if _, err := scanTOML(text); err != nil {
		return nil, err
	}
	m := map[string]any{}
	if err := toml.Unmarshal(text, &m); err != nil {
		return nil, tomlProblem(text, err)
	}
	return m, nil
}

func tomlProblem(text []byte, err error) error {
	var decode *toml.DecodeError
	if errors.As(err, &decode) {
		row, col := decode.Position()
		return &syntaxError{offset: offsetOf(text, row, col), message: strings.TrimPrefix(decode.Error(), "toml: ")}
	}
	var parse *unstable.ParserError
	if errors.As(err, &parse) {
		at := len(text)
		if h := parse.Highlight; len(h) > 0 {
			at = cap(text) - cap(h)
			if at < 0 || at > len(text) {
				at = len(text)
			}
		}
		return &syntaxError{offset: at, message: parse.Message}
	}
	return &syntaxError{message: err.Error()}
}

func lineStart(text []byte, offset int) int { return bytes.LastIndexByte(text[:offset], '\n') + 1 }

// lineEnd is the offset behind the line end after offset.
func lineEnd(text []byte, offset int) int {
	if i := bytes.IndexByte(text[offset:], '\n'); i >= 0 {
		return offset + i + 1
	}
	return len(text)
}

func newlineOf(text []byte) string {
	if i := bytes.IndexByte(text, '\n'); i > 0 && text[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

// setTOML puts a value at a path, of which the first two elements are an entry.
func setTOML(text []byte, path []string, value any) ([]byte, error) {
	items, err := scanTOML(text)
	if err != nil {
		return nil, err
	}
	for _, it := range items {
		if !it.header() && slices.Equal(it.path, path) {
			return splice(text, it.value, it.end, tomlValue(value)), nil
		}
		if it.array && len(it.path) <= len(path) && slices.Equal(it.path, path[:len(it.path)]) {
			return nil, &syntaxError{offset: it.start, message: fmt.Sprintf("%s is an array of tables", tomlKey(it.path))}
		}
	}
	return addTOML(text, items, path[:len(path)-1], path[len(path)-1], value), nil
}

// addTOML adds a key to the table at a path, in whichever way that is written.
func addTOML(text []byte, items []tomlItem, table []string, key string, value any) []byte {
	nl := newlineOf(text)
	if len(table) == 1 { // a new entry
		for _, it := range items {
			if it.isTable && slices.Equal(it.path, table) {
				return addInline(text, items, it, key, value)
			}
		}
		return appendTable(text, nl, append(slices.Clone(table), key), value.([]member))
	}
	for i, it := range items {
		switch {
		case !slices.Equal(it.path, table):
		case it.isTable:
			return addInline(text, items, it, key, value)
		case it.header():
			at := sectionEnd(items, i)
			return putLine(text, at, nl, lineIndent(text, it.end), tomlKey([]string{key})+" = "+string(tomlValue(value)))
		}
	}
	for i := len(items) - 1; i >= 0; i-- { // dotted keys
		it := items[i]
		if it.header() || len(it.path) <= len(table) || !slices.Equal(it.path[:len(table)], table) {
			continue
		}
		under := 0
		if it.in >= 0 {
			under = len(items[it.in].path)
		}
		if under > len(table) {
			continue
		}
		kv := tomlKey(append(slices.Clone(table[under:]), key)) + " = " + string(tomlValue(value))
		if it.in >= 0 && items[it.in].isTable {
			return splice(text, it.end, it.end, []byte(", "+kv))
		}
		return putLine(text, it.end, nl, lineIndent(text, it.start), kv)
	}
	if len(table) > 2 {
		return addTOML(text, items, table[:len(table)-1], table[len(table)-1], []member{{key, value}})
	}
	return appendTable(text, nl, table, []member{{key, value}})
}

// putLine adds a line behind the one that at is on.
func putLine(text []byte, at int, nl, indent, line string) []byte {
	end := lineEnd(text, at)
	if end == len(text) && !bytes.HasSuffix(text, []byte("\n")) {
		return splice(text, end, end, []byte(nl+indent+line))
	}
	return splice(text, end, end, []byte(indent+line+nl))
}

func addInline(text []byte, items []tomlItem, table tomlItem, key string, value any) []byte {
	kv := tomlKey([]string{key}) + " = " + string(tomlValue(value))
	if n := len(table.inline); n > 0 {
		at := items[table.inline[n-1]].end
		return splice(text, at, at, []byte(", "+kv))
	}
	return splice(text, table.value, table.end, []byte("{ "+kv+" }"))
}

// appendTable adds a table at the end of the document, with tables in it as
// tables of their own.
func appendTable(text []byte, nl string, path []string, ms []member) []byte {
	var b bytes.Buffer
	b.Write(text)
	if len(text) > 0 && !bytes.HasSuffix(text, []byte("\n")) {
		b.WriteString(nl)
	}
	if len(bytes.TrimSpace(text)) > 0 {
		b.WriteString(nl)
	}
	b.Write(tomlTable(nl, path, ms))
	if len(text) > 0 && !bytes.HasSuffix(text, []byte("\n")) {
		return bytes.TrimSuffix(b.Bytes(), []byte(nl))
	}
	return b.Bytes()
}

func tomlTable(nl string, path []string, ms []member) []byte {
	var b, sub bytes.Buffer
	b.WriteString("[" + tomlKey(path) + "]" + nl)
	for _, m := range ms {
		if table, ok := m.value.([]member); ok {
			sub.WriteString(nl)
			sub.Write(tomlTable(nl, append(slices.Clone(path), m.key), table))
			continue
		}
		b.WriteString(tomlKey([]string{m.key}) + " = ")
		b.Write(tomlValue(m.value))
		b.WriteString(nl)
	}
	b.Write(sub.Bytes())
	return b.Bytes()
}

var bareKey = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

func tomlKey(path []string) string {
	parts := make([]string, len(path))
	for i, k := range path {
		if parts[i] = k; !bareKey.MatchString(k) {
			parts[i] = tomlString(k)
		}
	}
	return strings.Join(parts, ".")
}

func tomlValue(v any) []byte {
	var b bytes.Buffer
	switch v := v.(type) {
	case string:
		b.WriteString(tomlString(v))
	case []string:
		b.WriteByte('[')
		for i, x := range v {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(tomlString(x))
		}
		b.WriteByte(']')
	case []member:
		kvs := make([]string, len(v))
		for i, m := range v {
			kvs[i] = tomlKey([]string{m.key}) + " = " + string(tomlValue(m.value))
		}
		b.WriteString(strings.ReplaceAll("{ "+strings.Join(kvs, ", ")+" }", "{  }", "{}"))
	default:
		fmt.Fprint(&b, v)
	}
	return b.Bytes()
}

// tomlString writes paths of Windows as literal strings, without doubled
// backslashes.
func tomlString(s string) string {
	control := strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
	if strings.Contains(s, `\`) && !strings.Contains(s, "'") && !control {
		return "'" + s + "'"
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// removeTOML takes out everything at and below a path, the lines of its tables
// from the header to the last key included.
func removeTOML(text []byte, path []string) ([]byte, error) {
	for {
		items, err := scanTOML(text)
		if err != nil {
			return nil, err
		}
		i := lastBelow(items, path)
		if i < 0 {
			return text, nil
		}
		switch it := items[i]; {
		case it.header():
			text = cutLines(text, it.start, sectionEnd(items, i), true)
		case it.in >= 0 && items[it.in].isTable:
			text = cutInline(text, items, items[it.in], i)
		default:
			text = cutLines(text, it.start, it.end, false)
		}
	}
}

// lastBelow finds the last item at or below a path that does not stand in
// another such; -1: there is none.
func lastBelow(items []tomlItem, path []string) int {
	below := func(i int) bool {
		return i >= 0 && len(items[i].path) >= len(path) && slices.Equal(items[i].path[:len(path)], path)
	}
	for i := len(items) - 1; i >= 0; i-- {
		if below(i) && !below(items[i].in) {
			return i
		}
	}
	return -1
}

// sectionEnd is where the last key under header i ends, or the header itself.
func sectionEnd(items []tomlItem, i int) int {
	end := items[i].end
	for _, kv := range items {
		if kv.in == i {
			end = kv.end
		}
	}
	return end
}

// cutLines cuts the lines from the one of from to the one of to, and for a
// table one empty line before them.
func cutLines(text []byte, from, to int, table bool) []byte {
	from, to = lineStart(text, from), lineEnd(text, to)
	if table && from > 0 {
		if prev := lineStart(text, from-1); len(bytes.TrimSpace(text[prev:from])) == 0 {
			from = prev
		}
	} else if table && from == 0 {
		if next := lineEnd(text, to); next > to && len(bytes.TrimSpace(text[to:next])) == 0 {
			to = next
		}
	}
	if to == len(text) && !bytes.HasSuffix(text, []byte("\n")) && from > 0 { // a file without a final line end stays one
		from--
		if from > 0 && text[from-1] == '\r' {
			from--
		}
	}
	return splice(text, from, to, nil)
}

func cutInline(text []byte, items []tomlItem, table tomlItem, i int) []byte {
	at := slices.Index(table.inline, i)
	switch {
	case at < len(table.inline)-1:
		return splice(text, items[i].start, items[table.inline[at+1]].start, nil)
	case at > 0:
		return splice(text, items[table.inline[at-1]].end, items[i].end, nil)
	}
	if len(bytes.TrimSpace(text[table.value+1:items[i].start])) == 0 && len(bytes.TrimSpace(text[items[i].end:table.end-1])) == 0 {
		return splice(text, table.value, table.end, []byte("{}"))
	}
	return splice(text, items[i].start, items[i].end, nil)
}
