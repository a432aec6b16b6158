package recipe

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// What Derive reads of a sample, so that a hostile one costs little.
const (
	deriveItems   = 20  // items of a list whose keys are read
	deriveMembers = 400 // distinct keys of one object
	deriveLooks   = 200 // objects looked into on the way to a list
	deriveKey     = 120 // bytes of a key that may become a column
	derivePath    = 512 // bytes of a path, the format's own limit
	deriveText    = 400 // bytes of a text that are looked at

	deriveMaxFields      = 20 // the most fields a caller may ask for
	deriveListFields     = 8  // when the caller does not say
	deriveDocumentFields = 12
	deriveTitle          = 200 // characters of a title, the heading's own limit
)

// DeriveOptions steer Derive. The zero value works.
type DeriveOptions struct {
	// MaxFields is the most columns or lines, 1 to 20; a number outside is
	// moved to the nearer end, 0 means 8 for lists and 12 for one object.
	MaxFields int
	// Name becomes the recipe's title, as plain text; "" means none.
	Name string
	// Skip names keys that must not be shown, such as those of credentials.
	// It is asked about every key on the way to a value. A short list of
	// Derive's own always applies, nil or not.
	Skip func(key string) bool
}

// A Note is something Derive noticed that the author of the recipe should
// know. The codes are "looks_like_error" (the sample is an error answer),
// "empty_list" (a list without items says nothing about its columns),
// "owner_left_out" (the list may be a part of one thing, whose own members the
// recipe does not show) and "paging_hint" (Message is a JSON object for the recipe's pagination, to be
// checked by its reader: parameter names are a guess).
type Note struct {
	Code, Message string
}

// Derive makes a first draft of a recipe from one real answer: it finds the
// list, map, table or parallel arrays (or takes the whole object), picks the
// members a person would look at first, and gives them labels, formats and
// record keys. The same value and options always give the same recipe, and
// Parse accepts every recipe given. It is nil when the sample has nothing to
// show; the notes then say why, where there is a reason to say.
func Derive(v Value, o DeriveOptions) (*Recipe, []Note) {
	d := &deriver{opts: o}
	found := d.find(v)
	if found.what == foundNothing {
		return nil, d.notes
	}
	cols := d.columns(found)
	if len(cols) == 0 {
		return nil, d.notes
	}
	doc := d.document(found, cols)
	r, report := Parse(doc)
	if !report.OK() {
		return nil, d.notes // the fuzz test holds that this does not happen
	}
	if found.what != foundObject {
		before := len(d.notes)
		if d.pagingHint(v, doc); len(d.notes) == before { // what has pages is a list
			d.owner(v, found.path)
		}
	}
	return r, d.notes
}

// owner notes that the list at path belongs to something with an id of its
// own, an order with its lines, say: whoever wants the order has to know that
// the recipe shows the lines alone.
func (d *deriver) owner(v Value, path string) {
	root, _ := v.(Object)
	if path == "$" || hasMember(root, "jsonrpc") {
		return
	}
	for _, m := range withoutDuplicates(root) {
		switch strings.ToLower(m.Key) {
		case "id", "_id", "uuid", "sid":
			if isFact(m) && !d.hidden(m.Key) {
				d.note("owner_left_out", `this shows the list at %s alone, not the %s beside it; to show the one thing that the list is part of, write "select":"$","mode":"document" and its paths`, path, m.Key)
				return
			}
		}
	}
}

// A deriver is one run of Derive.
type deriver struct {
	opts  DeriveOptions
	notes []Note
	looks int // objects looked into so far
}

func (d *deriver) note(code, format string, args ...any) {
	d.notes = append(d.notes, Note{Code: code, Message: fmt.Sprintf(format, args...)})
}

// max is the number of columns to give.
func (d *deriver) max(what foundKind) int {
	switch n := d.opts.MaxFields; {
	case n == 0 && what == foundObject:
		return deriveDocumentFields
	case n == 0:
		return deriveListFields
	default:
		return min(max(n, 1), deriveMaxFields)
	}
}

// document writes the recipe as its author would.
func (d *deriver) document(f found, cols []draftColumn) Object {
	mode := Table
	if f.what == foundObject {
		mode = Document
	}
	doc := Object{
		{"schemaVersion", json.Number("1")},
		{"select", f.path},
	}
	if f.shape != "" {
		doc = append(doc, Member{"shape", string(f.shape)})
	}
	if f.header != "" {
		doc = append(doc, Member{"header", f.header})
	}
	doc = append(doc, Member{"mode", string(mode)})
	if t := derivedTitle(d.opts.Name); t != "" {
		doc = append(doc, Member{"title", t})
	}
	var fields, record Object
	for _, c := range cols {
		fields = append(fields, Member{c.label, c.field()})
		record = append(record, Member{c.record, c.path})
	}
	for _, c := range cols {
		if key, path, ok := c.currencyRecord(); ok && !slices.ContainsFunc(record, func(m Member) bool { return m.Key == key || m.Value == path }) {
			record = append(record, Member{key, path}) // an amount is worth nothing without it
		}
	}
	if id, ok := recordID(f, cols); ok && len(record) < 50 && !d.hidden("id") {
		record = append(Object{id}, record...)
	}
	return append(doc, Member{"fields", fields}, Member{"record", record})
}

// recordID gives the record an item's own id when another key is shown as the
// id: a call that acts on the item usually wants it.
func recordID(f found, cols []draftColumn) (Member, bool) {
	if f.what == foundScalars || f.shape != "" {
		return Member{}, false
	}
	for _, c := range cols {
		if c.path == "id" || c.record == "id" {
			return Member{}, false
		}
	}
	if !slices.ContainsFunc(cols, func(c draftColumn) bool { return c.rank == rankID }) {
		return Member{}, false
	}
	for _, it := range f.items {
		if v, ok := it.Get("id"); !ok || !singleValue(v) {
			return Member{}, false
		}
	}
	return Member{"id", "id"}, len(f.items) > 0
}

// derivedTitle turns a name into a title template that is only text: no line
// breaks, and no "{{", which would open a placeholder.
func derivedTitle(name string) string {
	name = plainLine(name)
	for strings.Contains(name, "{{") {
		name = strings.ReplaceAll(name, "{{", "{ {")
	}
	return cutLabel(name, deriveTitle)
}
