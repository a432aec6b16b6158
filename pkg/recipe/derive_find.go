package recipe

import "strings"

// What find can find.
type foundKind int

const (
	foundNothing foundKind = iota
	foundList              // a list of objects
	foundScalars           // a list of other values, shown in one column
	foundObject            // one object, shown as a document
)

// What an array can hold, beside what can be found.
const foundRows foundKind = -1

// A found is the place of the sample that a recipe should show.
type found struct {
	what   foundKind
	path   string   // for select
	shape  Shape    // "" for list
	header string   // of shape matrix
	items  []Object // of a list: the first ones; of an object: itself
	list   Array    // of foundScalars
	keys   []string // of shape entries, beside items or list
	rows   []Array  // of shape matrix without header
	units  Object   // of shape columns: what each is measured in
	err    bool     // an error answer, where arrays of errors are worth a line
}

// tokens reports whether the place is named after tokens or keys.
func (f found) tokens() bool {
	name := f.path[strings.LastIndexAny(f.path, ".[")+1:]
	w := keyWords(name)
	return len(w) > 0 && (w[len(w)-1] == "tokens" || w[len(w)-1] == "keys")
}

// Names under which APIs keep their list, the likelier first.
var listNames = []string{
	"items", "results", "data", "records", "value", "values", "docs", "documents", "entries", "entry",
	"objects", "rows", "list", "content", "hits", "hydra:member", "member", "members", "features", "children",
	"edges", "nodes", "elements", "result", "contents",
}

// listNames that also name a part of a thing: an invoice has items, a comment
// has children, a page has content.
var partNames = nameSet("items", "content", "contents", "members", "children", "elements", "entries", "values",
	"rows", "nodes", "documents", "objects", "list", "value")

var (
	// Members worth descending into first, and those never worth it.
	wrapNames = []string{
		"data", "result", "results", "response", "body", "payload", "_embedded", "hits", "message",
		"query", "parse", "content",
	}
	asideNames = nameSet("meta", "metadata", "links", "_links", "status", "limits", "error", "errors", "warnings",
		"included", "facets", "pagination", "paging", "headers", "_shards", "aggregations", "extensions")
	// Names of things that have an identity of their own.
	identNames = nameSet("id", "_id", "key", "name", "title", "sid", "uuid", "hash", "full_name", "fullname", "login")
	// Members of an envelope that say nothing about the thing inside.
	envelopeNames = nameSet("page", "pages", "per_page", "perpage", "page_size", "pagesize", "limit", "offset", "skip", "start",
		"startat", "maxresults", "num_pages", "nbpages", "hitsperpage", "next", "previous", "prev", "first", "last",
		"has_more", "hasmore", "islast", "cursor", "next_cursor", "nextpagetoken", "next_page_token", "ok", "success",
		"took", "timed_out", "etag", "kind", "object", "self", "jsonrpc", "expand", "request_id", "requestid")
)

// isAside reports whether a member only speaks about the answer.
func isAside(key string) bool {
	k := strings.ToLower(key)
	return asideNames[k] || strings.HasSuffix(k, "_units")
}

func nameSet(names ...string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, n := range names {
		m[n] = true
	}
	return m
}

// find is step one: where is the thing to show.
func (d *deriver) find(v Value) found {
	f := d.look(v)
	if len(f.path) > derivePath {
		return found{}
	}
	return f
}

func (d *deriver) look(v Value) found {
	switch v := v.(type) {
	case Array:
		return d.findArray(v)
	case Object:
		return d.findObject(v)
	case nil:
		return found{}
	default:
		return found{what: foundObject, path: "$", list: Array{v}}
	}
}

func (d *deriver) findArray(a Array) found {
	if len(a) == 2 {
		if _, ok := a[0].(Object); ok {
			if rows, ok := a[1].(Array); ok {
				if len(rows) == 0 {
					d.emptyList("$[1]")
					return found{}
				}
				if arrayContent(rows) == foundList {
					return d.flatten(listAt("$[1]", rows))
				}
			}
		}
	}
	if len(a) == 0 {
		d.emptyList("$")
		return found{}
	}
	return d.flatten(d.listOf("$", a))
}

// listOf makes a found of any array.
func (d *deriver) listOf(path string, a Array) found {
	switch arrayContent(a) {
	case foundList:
		return listAt(path, a)
	case foundScalars:
		return found{what: foundScalars, path: path, list: a[:min(len(a), deriveItems)]}
	case foundRows:
		return d.matrix(path, a, siblings{})
	default:
		return found{}
	}
}

func listAt(path string, a Array) found {
	f := found{what: foundList, path: path}
	for _, v := range a[:min(len(a), 10*deriveItems)] {
		if o, ok := v.(Object); ok && len(f.items) < deriveItems {
			f.items = append(f.items, o)
		}
	}
	return f
}

func (d *deriver) emptyList(path string) {
	d.note("empty_list", "the list at %s is empty; derive from an answer with items", path)
}

// arrayContent says what an array holds: objects when at least half of its values
// are, rows when more than half are arrays, else single values. Nulls do not
// count; an array of nothing else is nothing.
func arrayContent(a Array) foundKind {
	var objects, arrays, n int
	for _, v := range a[:min(len(a), 10*deriveItems)] {
		switch v := v.(type) {
		case nil:
			continue
		case Object:
			objects++
		case Array:
			if len(v) == 0 {
				continue
			}
			arrays++
		}
		n++
	}
	switch {
	case n == 0:
		return foundNothing
	case objects*2 >= n:
		return foundList
	case arrays*2 > n:
		return foundRows
	default:
		return foundScalars
	}
}

func (d *deriver) findObject(o Object) found {
	o = withoutDuplicates(o)
	if len(o) == 0 {
		return found{}
	}
	if f, ok := d.findError(o); ok {
		return f
	}
	if d.isMap(o) && !isThing(o) {
		return d.entries("$", o)
	}
	if f, ok := d.inside(o, "$", true); ok {
		return f
	}
	if f, ok := d.descend(o); ok {
		return f
	}
	return d.lastResort(o)
}

// findError is rule three. An answer that looks like an error is still
// derived, with a warning, because somebody may want to see errors.
func (d *deriver) findError(o Object) (found, bool) {
	if e, ok := memberValue(o, "error").(Object); ok && len(e) > 0 && !hasAnswer(o) {
		d.note("looks_like_error", "the sample looks like an error answer; derive from a successful one")
		return found{what: foundObject, path: "$.error", items: []Object{withoutDuplicates(e)}, err: true}, true
	}
	if !looksLikeError(o) {
		return found{}, false
	}
	d.note("looks_like_error", "the sample looks like an error answer; derive from a successful one")
	if hasAnswer(o) {
		return found{}, false
	}
	return found{what: foundObject, path: "$", items: []Object{o}, err: true}, true
}

// hasAnswer reports whether an answer holds something beside its error.
func hasAnswer(o Object) bool {
	for _, n := range listNames {
		switch v := memberValue(o, n).(type) {
		case Array:
			if len(v) > 0 {
				return true
			}
		case Object:
			if len(v) > 0 {
				return true
			}
		}
	}
	return false
}

func looksLikeError(o Object) bool {
	switch e := memberValue(o, "errors").(type) {
	case Array:
		if len(e) > 0 {
			return true
		}
	case Object:
		if len(e) > 0 {
			return true
		}
	}
	if memberValue(o, "ok") == false || memberValue(o, "success") == false {
		return true
	}
	switch e := memberValue(o, "error").(type) {
	case string:
		if e != "" && !isThing(o) {
			return true
		}
	case bool:
		if e {
			return true
		}
	case Object:
		if len(e) > 0 && !isThing(o) {
			return true
		}
	}
	if s, ok := memberValue(o, "__type").(string); ok && s != "" {
		return true
	}
	if failingStatus(memberValue(o, "cod")) {
		return true
	}
	if s, ok := memberValue(o, "status").(string); ok && (s == "error" || s == "fail") {
		return !isThing(o)
	}
	says := isFullString(memberValue(o, "message")) || isFullString(memberValue(o, "detail")) || isFullString(memberValue(o, "title"))
	if says && (failingStatus(memberValue(o, "status")) || failingStatus(memberValue(o, "statusCode")) || failingStatus(memberValue(o, "code"))) {
		return true
	}
	// A problem document may leave its status out.
	return isFullString(memberValue(o, "type")) && isFullString(memberValue(o, "title")) && isFullString(memberValue(o, "detail")) && memberValue(o, "id") == nil
}

// failingStatus reports whether v is an HTTP status from 400 to 599.
func failingStatus(v Value) bool {
	s := sampleText(v)
	return len(s) == 3 && (s[0] == '4' || s[0] == '5') && digitByte(s[1]) && digitByte(s[2])
}

// inside applies rules four to six to one object. When whole is false the
// object was found on the way down, and is taken as a document only if the
// caller says it may be.
func (d *deriver) inside(o Object, path string, entity bool) (found, bool) {
	thing := isThing(o)
	if !thing && path != "$" {
		if f, ok := d.fewEntries(o, path); ok {
			return f, true
		}
	}
	for _, name := range listNames {
		key, a := arrayMember(o, name)
		if a == nil || thing && partNames[name] && isNamedThing(o) {
			continue
		}
		if arrayContent(a) == foundList && !d.hidden(key) {
			return d.flatten(listAt(path+memberSegment(key), a)), true
		}
	}
	for _, name := range listNames {
		if key, a := arrayMember(o, name); a != nil && arrayContent(a) == foundRows && !thing && !d.hidden(key) {
			return d.matrix(path+memberSegment(key), a, siblings{path, o}), true
		}
	}
	if thing {
		return found{what: foundObject, path: path, items: []Object{o}}, entity
	}
	return d.largest(o, path)
}

// largest is rule six: the array of objects, or the map, with the most
// members.
func (d *deriver) largest(o Object, path string) (found, bool) {
	own := ownFacts(o)
	var bestKey string
	var best Value
	size := 0
	for _, m := range o {
		n := 0
		switch v := m.Value.(type) {
		case Array:
			if arrayContent(v) == foundList && (len(v) > 1 || own < 4) {
				n = len(v)
			}
		case Object:
			if own < 4 && d.isMap(v) {
				n = len(v)
			}
		}
		if n > size && !isAside(m.Key) && !d.hidden(m.Key) {
			bestKey, best, size = m.Key, m.Value, n
		}
	}
	switch v := best.(type) {
	case Array:
		return d.flatten(listAt(path+memberSegment(bestKey), v)), true
	case Object:
		return d.entries(path+memberSegment(bestKey), v), true
	default:
		return found{}, false
	}
}

// descend is rule seven, breadth first, three levels.
func (d *deriver) descend(root Object) (found, bool) {
	type place struct {
		o    Object
		path string
	}
	level := []place{{root, "$"}}
	for range 3 {
		var next []place
		for _, p := range level {
			own := ownFacts(p.o)
			children := d.childObjects(p.o)
			for _, c := range children {
				if d.looks++; d.looks > deriveLooks {
					return found{}, false
				}
				// A thing of several facts is not left for one of its parts.
				if !c.wrap && own > 3 {
					continue
				}
				child := withoutDuplicates(c.o)
				path := p.path + memberSegment(c.key)
				if len(path) > derivePath {
					continue
				}
				if f, ok := d.inside(child, path, c.wrap || len(children) == 1 && own < 2); ok {
					return f, true
				}
				if !isThing(child) {
					next = append(next, place{child, path})
				}
			}
		}
		level = next
	}
	return found{}, false
}

type childObject struct {
	key  string
	o    Object
	wrap bool
}

// childObjects gives the members of o that are objects, those that usually wrap
// an answer first.
func (d *deriver) childObjects(o Object) []childObject {
	var first, rest []childObject
	for _, m := range o[:min(len(o), deriveMembers)] {
		v, ok := m.Value.(Object)
		if !ok || len(v) == 0 || len(m.Key) > deriveKey || isAside(m.Key) || d.hidden(m.Key) {
			continue
		}
		rest = append(rest, childObject{key: m.Key, o: v})
	}
	for _, name := range wrapNames {
		for i := range rest {
			if !rest[i].wrap && strings.EqualFold(rest[i].key, name) {
				rest[i].wrap = true
				first = append(first, rest[i])
			}
		}
	}
	for _, c := range rest {
		if !c.wrap {
			first = append(first, c)
		}
	}
	return first
}

// lastResort is rules eight and nine: parallel arrays, one array of single
// values, else the object itself, wrappers of one member taken off.
func (d *deriver) lastResort(o Object) found {
	path := "$"
	for range 4 {
		if f, ok := d.arrays(o, path); ok {
			return f
		}
		if f, ok := d.fewEntries(o, path); ok {
			return f
		}
		key, inner := onlyMember(o)
		if inner == nil || d.hidden(key) || len(path)+len(key) > derivePath/2 {
			break
		}
		o, path = withoutDuplicates(inner), path+memberSegment(key)
	}
	for _, c := range d.childObjects(o) {
		if isParallel(c.o) {
			return d.parallel(path+memberSegment(c.key), c.o, o, c.key)
		}
	}
	if f, ok := d.anyRows(o, path); ok {
		return f
	}
	if key := emptyListIn(o); key != "" {
		d.emptyList(path + memberSegment(key))
		return found{}
	}
	return found{what: foundObject, path: path, items: []Object{o}}
}

// arrays is rule eight.
func (d *deriver) arrays(o Object, path string) (found, bool) {
	if isParallel(o) && !isThing(o) {
		return d.parallel(path, o, nil, ""), true
	}
	var f found
	n := 0
	for _, m := range o {
		switch v := m.Value.(type) {
		case Array:
			if len(v) == 0 || d.hidden(m.Key) || tokenList(m.Key) {
				continue
			}
			if arrayContent(v) != foundScalars {
				return found{}, false
			}
			n++
			f = found{what: foundScalars, path: path + memberSegment(m.Key), list: v[:min(len(v), deriveItems)]}
		case Object:
			if len(v) > 0 && !isAside(m.Key) {
				return found{}, false
			}
		}
	}
	if n != 1 || countScalars(o) > 2 || isThing(o) {
		return found{}, false
	}
	return f, true
}

// flatten is rule ten: a list whose items are only a name for one inner list
// shows the inner list.
func (d *deriver) flatten(f found) found {
	if f.what != foundList || len(f.items) == 0 {
		return f
	}
	var key string
	var inner Array
	for _, it := range f.items {
		for _, m := range it {
			switch v := m.Value.(type) {
			case nil, bool:
			case Array:
				if arrayContent(v) != foundList || d.hidden(m.Key) || key != "" && key != m.Key {
					return f
				}
				key = m.Key
				inner = append(inner, v[:min(len(v), deriveItems)]...)
			case Object:
				return f
			default:
				if w := keyWords(m.Key); len(w) == 0 || w[len(w)-1] != "id" {
					return f
				}
			}
		}
	}
	if key == "" {
		return f
	}
	return listAt(f.path+"[*]"+memberSegment(key), inner)
}
