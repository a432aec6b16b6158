package recipe

import (
	"bytes"
	"errors"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// A Page is what Read took from one body: how many items it has, the first of
// them, and the values at the recipe's own $ paths. The zero Page has no items.
type Page struct {
	items int
	built []Value
	keys  []string // of shape entries: beside built
	list  bool
	found []finding
	notes []string
}

// A finding holds the values one $ path leads to.
type finding struct {
	path   Path
	values []Value
}

// Items is the number of items in the body, before any cap.
func (p *Page) Items() int { return p.items }

// Built gives the first items, at most as many as Read was told to build. The
// position of an item here is its position among all items. When the recipe
// names fields or a record, members of an item that no path of the recipe
// reaches are left out; with Plain, so is what Render would not look at because
// it is too much. The slice must not be changed.
func (p *Page) Built() []Value { return p.built }

// Key gives the key of the item at position i of Built, which is what #key
// stands for: the member's name in shape entries, the position in an array that
// stands where shape entries expects an object. It is "" in the other shapes.
func (p *Page) Key(i int) string {
	if i < 0 || i >= len(p.keys) {
		return ""
	}
	return p.keys[i]
}

// IsList reports whether the body has a list where the items come from: an
// array, or a select path that may give several values. Without it the one item
// is the selected value itself.
func (p *Page) IsList() bool { return p.list }

// Warnings are short texts about a body that does not have the shape that the
// recipe expects, for Meta. The slice must not be changed.
func (p *Page) Warnings() []string { return p.notes }

// note keeps a warning, each once.
func (p *Page) note(text string) {
	if !slices.Contains(p.notes, text) {
		p.notes = append(p.notes, text)
	}
}

// Lookup gives the first value a path leads to in the body, or nil when there
// is none. Only the paths that stand in the recipe are known: the error path,
// the pagination paths, and every path with $ in fields, record and templates.
func (p *Page) Lookup(path Path) Value {
	if all := p.LookupAll(path); len(all) > 0 {
		return all[0]
	}
	return nil
}

// LookupAll gives every value a path of the recipe leads to in the body, in
// document order; none tells a missing value from null. The slice must not be
// changed.
func (p *Page) LookupAll(path Path) []Value {
	for i := range p.found {
		if p.found[i].path.text == path.text {
			return p.found[i].values
		}
	}
	for i := range p.found { // the same path in another spelling: total and $.total
		if p.found[i].path.same(path) {
			return p.found[i].values
		}
	}
	return nil
}

// Read scans one JSON body once: it checks all of it, counts every item that
// the select path and the shape give, builds at most max of them, and builds
// the values at the recipe's own $ paths. With scrub, every string and key that
// is built goes through it. Nothing that is built refers to body. Every error
// is a *DecodeError; more than 200 levels of nesting is one.
//
// A select path with a filter or a negative index makes Read decode the whole
// body instead of skipping what is not shown.
func (r *Recipe) Read(body []byte, max int, scrub func(string) string) (*Page, error) {
	return r.read(body, 0, max, scrub)
}

// read is Read and, with a separator, ReadLines.
func (r *Recipe) read(body []byte, sep byte, max int, scrub func(string) string) (*Page, error) {
	paths := r.readPaths()
	sel := r.Select.segments
	// For the path $ the whole body is built anyway: once is enough.
	all := (scrub == nil || sep != 0) && slices.ContainsFunc(paths, func(p Path) bool { return len(p.segments) == 0 })
	if all || len(paths) >= 64 || streamable(sel, false) < len(sel) || r.manyHeaders() {
		return r.readLinesWhole(body, sep, max, scrub, paths)
	}
	rd, err := newReader(plainSeparators(body, sep), DecodeLimits{})
	if err != nil {
		return nil, err
	}
	rd.scrub, rd.budget = scrub, r.budget()
	s := scan{reader: rd, page: &Page{list: r.Select.Multi()}, max: max, shape: r.Shape, expands: r.expands(), keep: r.prepared().keep}
	if r.header().First {
		s.max++ // the names come with the rows
	}
	s.add(sel, nil)
	for _, p := range paths {
		n := streamable(p.segments, true)
		s.add(p.segments[:n], p.segments[n:])
	}
	if sep == 0 {
		err = s.value(0, 1<<len(s.tracks)-1, false)
	} else {
		err = s.lines(body, sep)
	}
	if errors.Is(err, errNotInOneScan) {
		return r.readLinesWhole(body, sep, max, scrub, paths)
	}
	if err == nil {
		err = rd.end()
	}
	if err == nil {
		err = s.finish(paths)
	}
	if err != nil {
		return nil, err
	}
	r.nameCells(s.page, s.keep, max)
	return s.page, nil
}

// budget is what the items of a body that is shown as it is are worth: as much
// as Render looks at, for its text and for its records.
func (r *Recipe) budget() *budget {
	if !r.plain {
		return nil
	}
	return &budget{max(textBytes(r.Limits.MaxChars), maxRecordBytes) + 1}
}

// expands reports whether an array at the select path stands for its elements
// (and null for nothing): $, $.items, $[1], $.a[*].b. What [*], a slice or a
// filter has picked is taken as it is.
func (r *Recipe) expands() bool {
	segs := r.Select.segments
	return !r.Select.Multi() || segs[len(segs)-1].step == stepName
}

// readWhole is Read without streaming: the reference for what Read means.
func (r *Recipe) readWhole(body []byte, max int, scrub func(string) string, paths []Path) (*Page, error) {
	doc, err := Decode(body, DecodeLimits{})
	if err != nil {
		return nil, err
	}
	return r.readDoc(doc, max, scrub, paths), nil
}

// readDoc reads a body that was decoded already.
func (r *Recipe) readDoc(doc Value, max int, scrub func(string) string, paths []Path) *Page {
	clean := func(v Value) Value {
		if scrub == nil {
			return v
		}
		return MapStrings(v, scrub)
	}
	w := whole{page: &Page{list: r.Select.Multi()}, max: max, clean: clean, keep: r.prepared().keep, scrub: scrub}
	for _, path := range paths {
		f := finding{path: path}
		for _, v := range path.Resolve(doc) {
			f.values = append(f.values, clean(v))
		}
		w.page.found = append(w.page.found, f)
	}
	nodes := resolve(nil, doc, r.Select.segments)
	if r.Shape == Matrix && !r.expands() {
		w.rows(r, nodes)
	} else {
		for _, node := range nodes {
			w.node(r, node)
		}
	}
	if r.header().First {
		return w.page // named while it was read: each list has names of its own
	}
	r.nameCells(w.page, w.keep, max)
	return w.page
}

// streamable counts the leading segments that can be followed while scanning.
// With last, so can [-1]: the newest element replaces the one before.
func streamable(segs []segment, last bool) int {
	for i := range segs {
		s := &segs[i]
		switch s.step {
		case stepName, stepAll:
		case stepIndex:
			if s.index < 0 && !(last && s.index == -1) {
				return i
			}
		case stepSlice:
			if s.hasFrom && s.index < 0 || s.hasTo && s.end < 0 {
				return i
			}
		default:
			return i
		}
	}
	return len(segs)
}

// errNotInOneScan means that the body has to be decoded whole after all.
var errNotInOneScan = errors.New("recipe: not in one scan")

// A track is one path that is followed through the body. Track 0 is the
// select path. Since a path has one segment a level, a track that is alive at
// some depth has exactly that many segments behind it; which tracks are alive
// is a bit set.
type track struct {
	segs  []segment // followed while scanning
	tail  []segment // resolved afterwards, in what segs led to
	spans []span
}

// A span is a piece of the text.
type span struct{ from, to int64 }

type scan struct {
	*reader
	page    *Page
	max     int
	shape   Shape
	expands bool
	keep    *keeper
	entry   string // the key of the item that comes next, in shape entries
	tracks  []track
	ends    []uint64  // by depth: the tracks that end there
	pending []pending // items with other tracks inside, built at the end
	again   [2]reader // read spans once more: scrubbed, and as they are
}

type pending struct {
	slot int
	span span
}

func (s *scan) add(segs, tail []segment) {
	for len(s.ends) <= len(segs) {
		s.ends = append(s.ends, 0)
	}
	s.ends[len(segs)] |= 1 << len(s.tracks)
	s.tracks = append(s.tracks, track{segs: segs, tail: tail})
}

// value passes over one value in which the tracks in alive have depth
// segments behind them. An item is counted, and built while there is room.
func (s *scan) value(depth int, alive uint64, item bool) error {
	var ended uint64
	if depth < len(s.ends) {
		ended = alive & s.ends[depth]
	}
	alive &^= ended
	kind := s.dec.PeekKind()
	expand := false
	if ended&1 != 0 {
		ended &^= 1
		switch {
		case s.shape == Columns:
			if kind == '{' {
				return s.columns(alive | ended)
			}
			s.page.unfit(s.shape, kind)
		case s.shape == Entries:
			expand = kind == '[' || kind == '{'
			if !expand {
				s.page.unfit(s.shape, kind)
			}
		case s.expands && kind == '[':
			expand = true
		case s.expands && kind == 'n':
		default:
			item = true
		}
		s.page.list = s.page.list || expand && kind == '['
	}
	build := item && len(s.page.built) < s.max
	if item {
		s.page.items++
	}
	if build && s.shape == Entries {
		s.page.keys = append(s.page.keys, s.entry)
	}
	var from int64
	if ended != 0 || build && alive != 0 {
		from = s.next()
	}
	if err := s.pass(kind, depth, alive, expand, build); err != nil {
		return err
	}
	if ended == 0 && (!build || alive == 0) {
		return nil
	}
	here := span{from, s.dec.InputOffset()}
	for ; ended != 0; ended &= ended - 1 {
		t := &s.tracks[bits.TrailingZeros64(ended)]
		t.spans = append(t.spans, here)
	}
	if build && alive != 0 {
		s.pending = append(s.pending, pending{len(s.page.built), here})
		s.page.built = append(s.page.built, nil)
	}
	return nil
}

// pass is the part of value that moves the decoder.
func (s *scan) pass(kind jsontext.Kind, depth int, alive uint64, expand, build bool) error {
	switch {
	case kind == '[' && (expand || alive != 0):
		return s.walkArray(depth, alive, expand)
	case kind == '{' && (expand || alive != 0):
		return s.walkObject(depth, alive, expand)
	case !build || alive != 0:
		return s.skip()
	}
	var v Value
	var err error
	if kind == '{' {
		v, err = s.object(s.keep)
	} else {
		v, err = s.build()
	}
	s.page.built = append(s.page.built, v)
	return err
}

func (s *scan) walkArray(depth int, alive uint64, items bool) error {
	if err := s.open(); err != nil {
		return err
	}
	mark := s.mark(alive)
	for i := 0; s.dec.PeekKind() != ']'; i++ {
		if err := s.element(i, depth, alive, items, &mark); err != nil {
			return err
		}
	}
	return s.close()
}

// element passes over element i of an array that began at mark.
func (s *scan) element(i, depth int, alive uint64, items bool, mark *mark) error {
	var sub uint64
	for left := alive; left != 0; left &= left - 1 {
		n := bits.TrailingZeros64(left)
		seg := &s.tracks[n].segs[depth]
		switch {
		case seg.step == stepAll,
			seg.step == stepIndex && seg.index == i,
			seg.step == stepSlice && i >= seg.index && (!seg.hasTo || i < seg.end):
			sub |= 1 << n
		case seg.step == stepIndex && seg.index == -1:
			s.rewind(n, mark)
			sub |= 1 << n
		}
	}
	if items && s.shape == Entries {
		s.entry = strconv.Itoa(i)
	}
	if sub != 0 || items {
		return s.value(depth+1, sub, items)
	}
	return s.skip()
}

// walkObject walks the members of an object, which are items in shape entries.
func (s *scan) walkObject(depth int, alive uint64, items bool) error {
	if err := s.open(); err != nil {
		return err
	}
	mark := s.mark(alive)
	var known nameHashes
	for s.dec.PeekKind() != '}' {
		quoted, err := s.key()
		if err != nil {
			return err
		}
		name, all := quoted[1:len(quoted)-1], false
		if bytes.IndexByte(name, '\\') >= 0 {
			name = []byte(unquote(quoted))
		}
		if items {
			all = true
			if len(s.page.built) < s.max {
				s.entry = s.name(quoted)
			}
		}
		var sub uint64
		for left := alive; left != 0; left &= left - 1 {
			n := bits.TrailingZeros64(left)
			seg := &s.tracks[n].segs[depth]
			switch {
			case seg.step == stepAll:
				all = true
				sub |= 1 << n
			case seg.step == stepName && seg.name == string(name):
				s.rewind(n, &mark) // a member of the same name came before: the last counts
				sub |= 1 << n
			}
		}
		if all && known.again(name) {
			return errNotInOneScan
		}
		if sub != 0 || items {
			err = s.value(depth+1, sub, items)
		} else {
			err = s.skip()
		}
		if err != nil {
			return err
		}
	}
	return s.close()
}

// close reads the end of an array or object.
func (s *scan) close() error {
	if _, err := s.dec.ReadToken(); err != nil {
		return s.fail(err)
	}
	return nil
}

// A mark remembers how much each track had found when an array or object began.
type mark struct {
	items, built, pending, notes int
	list                         bool
	spans                        [64]int32
}

func (s *scan) mark(alive uint64) mark {
	m := mark{items: s.page.items, built: len(s.page.built), pending: len(s.pending), notes: len(s.page.notes), list: s.page.list}
	for ; alive != 0; alive &= alive - 1 {
		n := bits.TrailingZeros64(alive)
		m.spans[n] = int32(len(s.tracks[n].spans))
	}
	return m
}

// rewind forgets what track n found since m.
func (s *scan) rewind(n int, m *mark) {
	if n > 0 {
		s.tracks[n].spans = s.tracks[n].spans[:m.spans[n]]
		return
	}
	s.page.items = m.items
	s.page.built = s.page.built[:m.built]
	s.page.keys = s.page.keys[:min(len(s.page.keys), m.built)]
	s.page.notes = s.page.notes[:m.notes]
	s.page.list = m.list
	s.pending = s.pending[:m.pending]
}

// next is where the next value begins.
func (s *scan) next() int64 {
	at := s.dec.InputOffset()
	for at < int64(len(s.text)) && bytes.IndexByte([]byte(" \t\r\n,:"), s.text[at]) >= 0 {
		at++
	}
	return at
}

// finish builds what was only noted while scanning. The text is known to be
// good by now.
func (s *scan) finish(paths []Path) error {
	for _, p := range s.pending {
		v, err := s.at(p.span, s.scrub, true)
		if err != nil {
			return err
		}
		s.page.built[p.slot] = v
	}
	for i, path := range paths {
		t := &s.tracks[i+1]
		f := finding{path: path}
		for _, sp := range t.spans {
			if len(t.tail) == 0 {
				v, err := s.at(sp, s.scrub, false)
				if err != nil {
					return err
				}
				f.values = append(f.values, v)
				continue
			}
			v, err := s.at(sp, nil, false) // the tail compares names as the body has them
			if err != nil {
				return err
			}
			for _, v := range resolve(nil, v, t.tail) {
				if s.scrub != nil {
					v = MapStrings(v, s.scrub)
				}
				f.values = append(f.values, v)
			}
		}
		s.page.found = append(s.page.found, f)
	}
	return nil
}

// at builds the value in a span, scrubbed or as the body has it.
func (s *scan) at(sp span, scrub func(string) string, item bool) (Value, error) {
	r := &s.again[0]
	if scrub == nil {
		r = &s.again[1]
	}
	r.text = s.text[sp.from:sp.to]
	buf := bytes.NewBuffer(r.text)
	if r.dec == nil {
		r.depth, r.scrub = s.depth, scrub
		r.dec = jsontext.NewDecoder(buf, jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	} else {
		r.dec.Reset(buf, jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	}
	if item && r.dec.PeekKind() == '{' {
		return r.object(s.keep)
	}
	return r.build()
}

// eachPath calls f for every path in the recipe but the select path. Element
// paths of lists are left out: they start inside a field's value.
func (r *Recipe) eachPath(f func(Path)) {
	eachFieldPath(r.Fields, f)
	eachFieldPath(r.all, f)
	for i := range r.Record {
		f(r.Record[i].Path)
	}
	for _, t := range []*Template{r.Title, r.Body} {
		if t != nil {
			for _, p := range t.Paths() {
				f(p)
			}
		}
	}
	if r.Error != nil {
		f(*r.Error)
	}
	for _, src := range []*Source{r.Pagination.Total, r.Pagination.HasMore, r.Pagination.Next, r.Pagination.NextURL} {
		if src != nil && src.Header == "" {
			f(src.Path)
		}
	}
}

func eachFieldPath(fields []Field, f func(Path)) {
	for i := range fields {
		f(fields[i].Path)
		if t := fields[i].Format.Text; t != nil {
			f(*t)
		}
		if s := fields[i].Format.Currency; strings.HasPrefix(s, "@") || strings.HasPrefix(s, "$") {
			if p, err := ParsePath(s); err == nil {
				f(p)
			}
		}
	}
}

// A plan is what reading needs of a recipe's paths. It is made once.
type plan struct {
	roots []Path  // see rootPaths
	keep  *keeper // see keeper
}

func (r *Recipe) prepare() *plan { return &plan{r.rootPaths(), r.keeper()} }

// prepared is the plan, which Parse and Narrow have made.
func (r *Recipe) prepared() *plan {
	if r.plan != nil {
		return r.plan
	}
	return r.prepare()
}

// rootPaths are the paths of the recipe that start at the body, each once.
func (r *Recipe) rootPaths() []Path {
	var out []Path
	r.eachPath(func(p Path) {
		if !p.root {
			return
		}
		for _, q := range out {
			if p.same(q) {
				return
			}
		}
		out = append(out, p)
	})
	return out
}
