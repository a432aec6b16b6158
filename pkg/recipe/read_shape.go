package recipe

import (
	"bytes"
	"encoding/json"
	"hash/maphash"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// maxBuiltCells bounds the members of all items that shape columns builds:
// values that are repeated for every item must not multiply what a body holds.
// The records of a result have room for far fewer.
const maxBuiltCells = 100_000

// unfit notes that the selected value cannot give items in a shape. Null is
// only nothing, as in shape list.
func (p *Page) unfit(shape Shape, kind jsontext.Kind) {
	what := ""
	switch kind {
	case '{':
		what = "an object without arrays"
	case '[':
		what = "an array"
	case '"':
		what = "a string"
	case '0':
		what = "a number"
	case 't', 'f':
		what = "a boolean"
	default:
		return
	}
	need := "an object"
	if shape == Columns {
		need = "an object of arrays"
	}
	p.note("select gave " + what + ", shape " + strconv.Quote(string(shape)) + " needs " + need)
}

// whole collects the items of a body that was decoded as a whole.
type whole struct {
	page  *Page
	max   int
	clean func(Value) Value
	scrub func(string) string
	keep  *keeper
}

func (w *whole) item(v Value) bool {
	if w.page.items++; len(w.page.built) >= w.max {
		return false
	}
	w.page.built = append(w.page.built, w.clean(v))
	return true
}

// node takes the items out of one selected value.
func (w *whole) node(r *Recipe, v Value) {
	list, isArray := v.(Array)
	object, isObject := v.(Object)
	switch {
	case r.Shape == Columns && isObject:
		w.columns(object.unique())
	case r.Shape == Columns:
		w.page.unfit(r.Shape, kindByte(v))
	case r.Shape == Entries && isObject:
		for _, m := range object.unique() {
			w.entry(m.Key, m.Value)
		}
	case r.Shape == Entries && isArray:
		w.page.list = true
		for i, e := range list {
			w.entry(strconv.Itoa(i), e)
		}
	case r.Shape == Entries:
		w.page.unfit(r.Shape, kindByte(v))
	case !r.expands():
		w.item(v)
	case isArray:
		w.page.list = true
		w.rows(r, list)
	case v != nil:
		w.rows(r, []Value{v})
	}
}

func (w *whole) entry(key string, v Value) {
	if w.item(v) {
		if w.scrub != nil {
			key = w.scrub(key)
		}
		w.page.keys = append(w.page.keys, key)
	}
}

// rows takes the elements of one list, or the rows of one matrix.
func (w *whole) rows(r *Recipe, rows []Value) {
	if !r.header().First || len(rows) == 0 {
		for _, v := range rows {
			w.item(v)
		}
		return
	}
	room := max(w.max-len(w.page.built), 0)
	part := whole{page: &Page{}, max: room + 1, clean: w.clean}
	for _, v := range rows {
		part.item(v)
	}
	r.nameCells(part.page, w.keep, room)
	w.page.items += part.page.items
	w.page.built = append(w.page.built, part.page.built...)
	for _, n := range part.page.notes {
		w.page.note(n)
	}
}

func (w *whole) columns(o Object) {
	var cols []column
	length := 0
	for _, m := range o {
		a, isArray := m.Value.(Array)
		if isArray {
			length = max(length, len(a))
		}
		if !w.keep.wants(m.Key) {
			continue
		}
		c := column{name: m.Key, list: isArray}
		if w.scrub != nil {
			c.name = w.scrub(c.name)
		}
		if isArray {
			for _, v := range a[:min(len(a), max(w.max-len(w.page.built), 0))] {
				c.values = append(c.values, w.clean(v))
			}
		} else {
			c.values = []Value{w.clean(m.Value)}
		}
		cols = append(cols, c)
	}
	w.page.addColumns(cols, length, w.max)
}

// A column is one member of the object that shape columns reads.
type column struct {
	name   string
	list   bool    // values are one an item; else there is one for every item
	values []Value // the first ones
}

// addColumns makes the items of columns of which the longest has length values.
func (p *Page) addColumns(cols []column, length, most int) {
	if length == 0 && !slices.ContainsFunc(cols, func(c column) bool { return c.list }) {
		p.unfit(Columns, '{')
	}
	p.items += length
	cells := 0
	for _, v := range p.built {
		cells += len(v.(Object))
	}
	n := min(length, most-len(p.built), max((maxBuiltCells-cells)/max(len(cols), 1), 1))
	for i := range max(n, 0) {
		o := make(Object, 0, len(cols))
		for _, c := range cols {
			switch {
			case !c.list:
				o = append(o, Member{c.name, c.values[0]})
			case i < len(c.values):
				o = append(o, Member{c.name, c.values[i]})
			}
		}
		p.built = append(p.built, o)
	}
}

// columns reads an object of parallel arrays. Other paths into it, and members
// of one name, are for the slower way.
func (s *scan) columns(others uint64) error {
	if others != 0 {
		return errNotInOneScan
	}
	if err := s.open(); err != nil {
		return err
	}
	room := max(s.max-len(s.page.built), 0)
	var cols []column
	var known nameHashes
	length, lists := 0, false
	for s.dec.PeekKind() != '}' {
		quoted, err := s.key()
		if err != nil {
			return err
		}
		name := quoted[1 : len(quoted)-1]
		if bytes.IndexByte(name, '\\') >= 0 {
			name = []byte(unquote(quoted))
		}
		if known.again(name) {
			return errNotInOneScan
		}
		c := column{list: s.dec.PeekKind() == '['}
		lists = lists || c.list
		wanted := s.keep == nil
		if !wanted {
			_, wanted = s.keep.names[string(name)]
		}
		if wanted {
			c.name = s.name(quoted)
		}
		n := 0
		switch {
		case c.list && wanted:
			c.values, n, err = s.elements(room)
		case c.list:
			_, n, err = s.elements(0)
		case wanted:
			c.values = make([]Value, 1)
			c.values[0], err = s.build()
		default:
			err = s.skip()
		}
		if err != nil {
			return err
		}
		length = max(length, n)
		if wanted {
			cols = append(cols, c)
		}
	}
	if err := s.close(); err != nil {
		return err
	}
	if !lists {
		s.page.unfit(Columns, '{')
		return nil
	}
	s.page.addColumns(cols, length, s.max)
	return nil
}

// elements reads an array, counts its elements and builds at most most.
func (s *scan) elements(most int) (built []Value, n int, err error) {
	if err := s.open(); err != nil {
		return nil, 0, err
	}
	for ; s.dec.PeekKind() != ']'; n++ {
		if n >= most {
			err = s.skip()
		} else {
			var v Value
			v, err = s.build()
			built = append(built, v)
		}
		if err != nil {
			return nil, 0, err
		}
	}
	return built, n, s.close()
}

// manyHeaders reports whether the select path may give several lists that each
// start with names.
func (r *Recipe) manyHeaders() bool { return r.header().First && r.Select.Multi() && r.expands() }

// header is where the names of cells come from in this recipe.
func (r *Recipe) header() Header {
	if r.Shape != Matrix {
		return Header{}
	}
	return r.Header
}

// readPaths are the paths that Read resolves in the body: the recipe's own, and
// last the place of the names of a matrix.
func (r *Recipe) readPaths() []Path {
	paths := slices.Clip(r.prepared().roots)
	if h := r.header(); !h.First && !h.Path.IsZero() {
		base, _ := h.split()
		paths = append(paths, base)
	}
	return paths
}

// split cuts a header path behind the list it goes through, so that an element
// without a name keeps its place: $.columns[*].name is .name in each of
// $.columns. A path that picks elements otherwise is not cut.
func (h Header) split() (base Path, tail []segment) {
	segs := h.Path.segments
	i := slices.IndexFunc(segs, func(s segment) bool { return s.step != stepName && s.step != stepIndex })
	if i < 0 || segs[i].step != stepAll {
		return h.Path, nil
	}
	for j := i + 1; j < len(segs); j++ {
		if s := segs[j].step; s != stepName && s != stepIndex {
			return h.Path, nil
		}
	}
	return Path{text: h.Path.text, root: true, segments: segs[:i]}, segs[i+1:]
}

// nameCells turns rows into objects, when the recipe says where the names are.
// At most most items are left.
func (r *Recipe) nameCells(p *Page, keep *keeper, most int) {
	h := r.header()
	var header []Value
	switch {
	case h.First:
		if len(p.built) == 0 {
			return
		}
		first, ok := p.built[0].(Array)
		if !ok {
			p.note("the first row is no list of names")
			p.built = p.built[:min(len(p.built), most)]
			return
		}
		header = first
		p.built = p.built[1:]
		p.items--
	case !h.Path.IsZero():
		last := len(p.found) - 1
		header = h.list(p.found[last].values)
		p.found = p.found[:last]
		if len(header) == 0 {
			p.note("header matched no names")
			return
		}
	default:
		return
	}
	width := len(header)
	for _, v := range p.built {
		if row, ok := v.(Array); ok {
			width = max(width, len(row))
		}
	}
	names := cellNames(header, width)
	for i, v := range p.built {
		row, ok := v.(Array)
		if !ok {
			continue
		}
		o := Object{}
		for j, cell := range row {
			if keep.wants(names[j]) {
				o = append(o, Member{names[j], cell})
			}
		}
		p.built[i] = o
	}
}

// list gives the values that are names, nil for one that is missing.
func (h Header) list(found []Value) []Value {
	_, tail := h.split()
	if len(found) == 0 {
		return nil
	}
	list, isArray := found[0].(Array)
	if o, ok := found[0].(Object); ok {
		list, isArray = o.values(), true
	}
	if tail == nil && (!isArray || len(found) > 1) {
		return found
	}
	out := make([]Value, len(list))
	for i, v := range list {
		out[i], _ = Path{text: "@", segments: tail}.First(v)
	}
	return out
}

// cellNames gives n cells different names: the first of a name keeps it, the
// others get " 2", " 3" and so on, and never the name another cell really has.
// A cell that the header does not name is called "".
func cellNames(header []Value, n int) []string {
	names := make([]string, n)
	taken := make(map[string]bool, n)
	var again []int
	for i := range names {
		if i < len(header) {
			names[i] = cellName(header[i])
		}
		if taken[names[i]] {
			again = append(again, i)
		}
		taken[names[i]] = true
	}
	next := map[string]int{}
	for _, i := range again {
		name := names[i]
		for n := max(next[name], 2); ; n++ {
			if try := name + " " + strconv.Itoa(n); !taken[try] {
				names[i], next[name] = try, n+1
				taken[try] = true
				break
			}
		}
	}
	return names
}

func cellName(v Value) string {
	switch v := v.(type) {
	case string:
		return v
	case json.Number:
		return string(v)
	case bool:
		return strconv.FormatBool(v)
	}
	return ""
}

// nameHashes knows which names an object has had, in little memory. It may
// take two names for one; the slower way then settles it.
type nameHashes struct {
	seed maphash.Seed
	seen map[uint64]struct{}
}

func (h *nameHashes) again(name []byte) bool {
	if h.seen == nil {
		h.seed, h.seen = maphash.MakeSeed(), make(map[uint64]struct{})
	}
	sum := maphash.Bytes(h.seed, name)
	if _, ok := h.seen[sum]; ok {
		return true
	}
	h.seen[sum] = struct{}{}
	return false
}

// A keeper says which members of an item are worth building. A nil one keeps
// all.
type keeper struct{ names map[string]string } // each by itself

// keeper is nil when the recipe shows raw items, or when a path does not start
// with a member's name.
func (r *Recipe) keeper() *keeper {
	if r.plain || len(r.Fields) == 0 && len(r.Record) == 0 {
		return nil
	}
	all := false
	names := map[string]string{}
	r.eachPath(func(p Path) {
		switch {
		case p.root || p.special != "":
		case len(p.segments) > 0 && p.segments[0].step == stepName:
			names[p.segments[0].name] = p.segments[0].name
		default:
			all = true
		}
	})
	if all {
		return nil
	}
	return &keeper{names}
}

func (k *keeper) wants(name string) bool {
	if k == nil {
		return true
	}
	_, wanted := k.names[name]
	return wanted
}

// wantsQuoted is wants for a name as it stands in the body. It gives the name
// when that is known without looking further.
func (k *keeper) wantsQuoted(quoted []byte) (name string, wanted bool) {
	if k == nil {
		return "", true
	}
	source := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(source, '\\') >= 0 {
		return "", k.wants(unquote(quoted))
	}
	name, wanted = k.names[string(source)]
	return name, wanted
}

// unique gives an object without the members that a later one of the same name
// replaces.
func (o Object) unique() Object {
	last := make(map[string]int, len(o))
	for i := range o {
		last[o[i].Key] = i
	}
	if len(last) == len(o) {
		return o
	}
	out := make(Object, 0, len(last))
	for i := range o {
		if last[o[i].Key] == i {
			out = append(out, o[i])
		}
	}
	return out
}

// kindByte is the scanner's name for the kind of a value.
func kindByte(v Value) jsontext.Kind {
	switch v.(type) {
	case bool:
		return 't'
	case json.Number:
		return '0'
	case string:
		return '"'
	case Array:
		return '['
	case Object:
		return '{'
	}
	return 'n'
}
