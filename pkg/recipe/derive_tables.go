package recipe

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The shapes that are not lists: maps, tables of rows and parallel arrays.

// entries shows a map, one row a member.
func (d *deriver) entries(path string, o Object) found {
	f := found{what: foundList, path: path, shape: Entries}
	if f.tokens() {
		return found{} // its keys would be shown, or its values
	}
	for _, m := range o[:min(len(o), deriveItems)] {
		switch v := m.Value.(type) {
		case Object:
			f.items = append(f.items, withoutDuplicates(v))
		default:
			f.list = append(f.list, m.Value)
			f.what = foundScalars
		}
		f.keys = append(f.keys, m.Key)
	}
	return f
}

// fewEntries takes an object of one or two members for a map, when its keys
// can hardly be names: ids, dates, prefixed codes. A path through such a key
// would fit this answer only.
func (d *deriver) fewEntries(o Object, path string) (found, bool) {
	if len(o) == 0 || len(o) > 2 || d.hidesAny(o) {
		return found{}, false
	}
	for _, m := range o {
		switch v := m.Value.(type) {
		case Object:
			if len(v) == 0 || !isIDKey(m.Key) {
				return found{}, false
			}
		case json.Number:
			if len(m.Key) != 3 || strings.Trim(m.Key, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
				return found{}, false // EUR: a rate
			}
		default:
			return found{}, false
		}
		if kind := sampleKind(m.Value); kind != sampleKind(o[0].Value) {
			return found{}, false
		}
	}
	return d.entries(path, o), true
}

// isIDKey reports whether a key is an id and no name.
func isIDKey(k string) bool {
	if i := strings.IndexByte(k, ':'); i > 0 { // ISBN:0451526538
		k = k[i+1:]
	}
	if !strings.ContainsAny(k, "0123456789") {
		return strings.HasPrefix(k, "-") && isDataKey(k)
	}
	return isDataKey(k) || len(k) == 36 && strings.Count(k, "-") == 4 && allHex(strings.ReplaceAll(k, "-", ""))
}

// siblings are the object a list was found in, for names that stand beside it.
type siblings struct {
	path string
	o    Object
}

// Members that hold the names of the cells of rows beside them.
var headerNames = []string{"columns", "column_names", "columnNames", "fields", "headers", "header", "cols", "schema", "names", "meta", "metadata"}

// matrix shows rows. Their names come from the first row, from a list beside
// the rows, or are positions.
func (d *deriver) matrix(path string, a Array, beside siblings) found {
	f := found{what: foundList, path: path, shape: Matrix}
	var rows []Array
	for _, v := range a[:min(len(a), 2*deriveItems)] {
		if row, ok := v.(Array); ok && len(row) > 0 && len(rows) <= deriveItems {
			rows = append(rows, row[:min(len(row), deriveMembers)])
		}
	}
	if len(rows) == 0 {
		return found{}
	}
	header, names := beside.header(rows[0])
	switch {
	case header != "":
	case d.startsWithNames(rows, beside):
		header, names, rows = "first", rows[0], rows[1:]
	default:
		f.rows = rows
		return f
	}
	f.header = header
	width := len(names)
	for _, row := range rows {
		width = max(width, len(row))
	}
	keys := cellNames(names, width)
	for _, row := range rows[:min(len(rows), deriveItems)] {
		o := make(Object, len(row))
		for i, v := range row {
			o[i] = Member{keys[i], v}
		}
		f.items = append(f.items, o)
	}
	return f
}

// startsWithNames reports whether the first row has the names: all are texts
// that are no data, and something below one of them is no such text. A sheet
// (range, majorDimension) has its names there anyhow.
func (d *deriver) startsWithNames(rows []Array, beside siblings) bool {
	if len(rows) < 2 {
		return false
	}
	seen := map[string]bool{}
	for _, v := range rows[0] {
		s, ok := v.(string)
		if !ok || seen[s] || !isName(s) {
			return false
		}
		seen[s] = true
	}
	if isFullString(memberValue(beside.o, "range")) && isFullString(memberValue(beside.o, "majorDimension")) {
		return true
	}
	for _, row := range rows[1:] {
		for _, v := range row {
			if s, ok := v.(string); !ok || s != "" && !isName(s) {
				return true
			}
		}
	}
	return false
}

// isName reports whether a text may be the name of a column.
func isName(s string) bool {
	return s != "" && len(s) <= deriveKey && !isNumeric(s) && isoDate(s) == "" && !isWebURL(s) && !looksSecret(s)
}

// header finds the names of cells in the object the rows are in: a list as
// long as a row, of texts or of objects that have a name.
func (s siblings) header(row Array) (path string, names Array) {
	for _, key := range headerNames {
		switch v := memberValue(s.o, key).(type) {
		case Array:
			if names, tail := namesIn(v, len(row)); names != nil {
				return s.path + memberSegment(key) + tail, names
			}
		case Object: // Socrata: meta.view.columns[*].name
			for depth, o, at := 0, v, s.path+memberSegment(key); depth < 2 && o != nil; depth++ {
				for _, inner := range headerNames {
					if a, ok := memberValue(o, inner).(Array); ok {
						if names, tail := namesIn(a, len(row)); names != nil {
							return at + memberSegment(inner) + tail, names
						}
					}
				}
				o, _ = memberValue(o, "view").(Object)
				at += ".view"
			}
		}
	}
	return "", nil
}

// namesIn reads a list of n names. The tail of the path says where they are.
func namesIn(a Array, n int) (names Array, tail string) {
	if len(a) != n {
		return nil, ""
	}
	if _, ok := a[0].(string); ok {
		for _, v := range a {
			if !isFullString(v) {
				return nil, ""
			}
		}
		return a, ""
	}
	for _, key := range []string{"name", "fieldName", "columnName", "ColumnName", "label", "title", "id"} {
		names = names[:0]
		for _, v := range a {
			o, _ := v.(Object)
			if s := memberValue(o, key); isFullString(s) {
				names = append(names, s)
			}
		}
		if len(names) == n {
			return names, "[*]." + key
		}
	}
	return nil, ""
}

// anyRows is the last chance of an object: its longest array of rows.
func (d *deriver) anyRows(o Object, path string) (found, bool) {
	if ownFacts(o) > 1 {
		return found{}, false
	}
	var key string
	var rows Array
	for _, m := range o[:min(len(o), deriveMembers)] {
		if a, ok := m.Value.(Array); ok && len(a) > len(rows) && arrayContent(a) == foundRows && !isAside(m.Key) && !d.hidden(m.Key) {
			key, rows = m.Key, a
		}
	}
	if rows == nil {
		return found{}, false
	}
	f := d.matrix(path+memberSegment(key), rows, siblings{path, o})
	return f, f.what != foundNothing
}

// parallel shows arrays of one length, one row a position. The object they
// are in may say what they are measured in: hourly has hourly_units.
func (d *deriver) parallel(path string, o, parent Object, key string) found {
	f := found{what: foundList, path: path, shape: Columns}
	f.units, _ = memberValue(parent, key+"_units").(Object)
	n := 0
	for _, m := range o[:min(len(o), deriveMembers)] {
		if a, ok := m.Value.(Array); ok {
			n = max(n, min(len(a), deriveItems))
		}
	}
	for i := range n {
		var item Object
		for _, m := range o[:min(len(o), deriveMembers)] {
			if a, ok := m.Value.(Array); ok && i < len(a) {
				item = append(item, Member{m.Key, a[i]})
			}
		}
		f.items = append(f.items, item)
	}
	return f
}

// unit is the suffix of a column, when the answer tells what it is measured
// in: "°C", "%".
func (f found) unit(c draftColumn) string {
	if len(c.keys) != 1 || !c.facts.numeric || c.format != KindNumber {
		return ""
	}
	s, _ := memberValue(f.units, c.keys[0]).(string)
	if s = plainLine(s); s == "" || utf8.RuneCountInString(s) > 8 || strings.Contains(s, "code") {
		return ""
	}
	if s == "%" || s == "°" {
		return s
	}
	return " " + s
}

// keyColumn is the first column of a map.
func (f found) keyColumn() draftColumn {
	c := draftColumn{path: "#key", keys: []string{"key"}, rank: rankKey, label: "Key", record: "key"}
	for _, k := range f.keys {
		c.values = append(c.values, k)
	}
	c.format = dateKind("date", c.values)
	if c.format != "" {
		c.keys, c.label, c.record = []string{"date"}, "Date", "date"
	}
	return c
}

// valueColumn is the column of a list or map of single values. A map named in
// the plural says what its values are: rates.
func (f found) valueColumn() draftColumn {
	name := "value"
	if f.shape == Entries && strings.HasPrefix(f.path, "$.") {
		name = singular(f.path[strings.LastIndexAny(f.path, ".[")+1:])
	}
	c := draftColumn{path: "@", keys: []string{name}, values: present(f.list), label: labelOf(name), record: recordKey(name)}
	if f.shape == Entries && majority(c.values) == "array" {
		c.list = true
		var all []Value
		for _, v := range c.values {
			a, _ := v.(Array)
			all = append(all, a[:min(len(a), deriveItems)]...)
		}
		c.values = present(all)
	}
	c.facts = look(c.keys, c.values)
	c.format = c.facts.format(c)
	if f.shape == Entries && c.facts.image {
		c.format = KindImage
	}
	return c
}

// singular gives the name of one of several: rates are one rate each. It is
// "value" when the name is no plural.
func singular(name string) string {
	low := strings.ToLower(name)
	switch {
	case !strings.HasSuffix(low, "s") || len(low) < 4,
		slices.ContainsFunc([]string{"ss", "us", "is", "ics", "news", "series", "values", "items", "data", "results", "entries"},
			func(end string) bool { return strings.HasSuffix(low, end) }),
		memberSegment(name)[0] != '.':
		return "value"
	case strings.HasSuffix(low, "ies"):
		return name[:len(name)-3] + "y"
	case strings.HasSuffix(low, "xes"), strings.HasSuffix(low, "ches"), strings.HasSuffix(low, "sses"):
		return name[:len(name)-2]
	}
	return name[:len(name)-1]
}

// cellColumns are the columns of rows without names.
func (f found) cellColumns(most int) []draftColumn {
	width := 0
	for _, row := range f.rows {
		width = max(width, len(row))
	}
	var cols []draftColumn
	for i := 0; i < width && len(cols) < most; i++ {
		var vs []Value
		for _, row := range f.rows {
			if i < len(row) {
				vs = append(vs, row[i])
			}
		}
		if vs = present(vs); len(vs) == 0 {
			continue
		}
		n := strconv.Itoa(i + 1)
		c := draftColumn{path: "[" + strconv.Itoa(i) + "]", keys: []string{"column " + n}, values: vs, items: len(f.rows)}
		switch {
		case dateKind("time", vs) != "":
			c.keys = []string{"time"}
		case width == 2 && len(cols) == 1 && cols[0].keys[0] == "time":
			c.keys = []string{f.itemName("value")} // prices: [[time, price]]
		}
		c.facts = look(c.keys, vs)
		if c.facts.secret {
			continue
		}
		if majority(vs) == "scalar" {
			c.format = c.facts.format(c)
		}
		cols = append(cols, c)
	}
	return cols
}
