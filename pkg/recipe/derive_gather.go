package recipe

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// A gatherer collects the candidates of one list or object.
type gatherer struct {
	*deriver
	items    int
	document bool
	columns  bool              // the items are the positions of parallel arrays
	errors   bool              // an error answer: what its errors say matters most
	few      bool              // the items say little themselves: take more of what is in them
	tokens   bool              // the list is one of tokens or keys
	name     string            // of one item: order, of $._embedded.order
	files    bool              // the items are files or the like: their size is in bytes
	money    map[string]string // path of the currency beside the amounts in an object, by the object's path
	cols     []draftColumn
}

// A memberStat is one key of the items and its value in each of them: nil
// where it is missing, null, or an empty text, array or object.
type memberStat struct {
	key    string
	values []Value
}

func (s memberStat) present() []Value { return present(s.values) }

func present(vs []Value) []Value {
	out := make([]Value, 0, len(vs))
	for _, v := range vs {
		if !isBlank(v) {
			out = append(out, v)
		}
	}
	return out
}

func isBlank(v Value) bool {
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case Array:
		return len(v) == 0
	case Object:
		return len(v) == 0
	default:
		return false
	}
}

// memberStats reads the keys of items in order of first appearance.
func memberStats(items []Object) []memberStat {
	var stats []memberStat
	at := map[string]int{}
	for i, it := range items {
		for _, m := range it {
			j, ok := at[m.Key]
			if !ok {
				if len(stats) == deriveMembers || len(m.Key) > deriveKey {
					continue
				}
				j = len(stats)
				at[m.Key] = j
				stats = append(stats, memberStat{key: m.Key, values: make([]Value, len(items))})
			}
			if stats[j].values[i] = m.Value; isBlank(m.Value) {
				stats[j].values[i] = nil
			}
		}
	}
	return stats
}

// gather is step two.
func (g *gatherer) gather(items []Object) {
	stats := memberStats(items)
	container := g.container(stats)
	own := 0
	for _, s := range stats {
		if vs := s.present(); len(vs) > 0 && singleValue(vs[0]) && !isNoise(s.key) {
			own++
		}
	}
	g.selfLinks(stats)
	g.few = own < 4 && container == ""
	g.aboutFigures("", stats)
	typed := g.typed(stats)
	for _, s := range stats {
		switch {
		case g.hidden(s.key):
		case container != "" && s.key == container:
			base := memberPath("", s.key)
			inner := memberStats(objectsOf(s.values))
			g.aboutFigures(base, inner)
			for _, m := range inner {
				if !g.hidden(m.key) {
					g.add(nil, base, m)
				}
			}
		case typed[s.key]:
			// shown by what typed has added
		case s.key == "relationships":
			g.relationships(s)
		default:
			g.add(nil, "", s)
		}
	}
}

// aboutFigures notes what the numbers of an object are counted in: the
// currency beside them, and whether the object is a file.
func (g *gatherer) aboutFigures(base string, stats []memberStat) {
	for _, s := range stats {
		k := normal(s.key)
		if fileWords[k] {
			g.files = true
		}
		if k != "currency" && k != "currencycode" || g.hidden(s.key) {
			continue
		}
		vs := s.present()
		if len(vs) > 0 && !slices.ContainsFunc(vs, func(v Value) bool {
			t, ok := v.(string)
			return !ok || len(t) != 3 || strings.ToUpper(t) != t && strings.ToLower(t) != t
		}) {
			if g.money == nil {
				g.money = map[string]string{}
			}
			g.money[base] = memberPath(base, s.key)
		}
	}
}

// typed finds the members that hold what an item is, under the name that the
// item's type says: {"type": "paragraph", "paragraph": {…}}. It adds the text
// in them as one column and gives their keys.
func (g *gatherer) typed(stats []memberStat) map[string]bool {
	i := slices.IndexFunc(stats, func(s memberStat) bool { return s.key == "type" || s.key == "kind" })
	if i < 0 || g.document {
		return nil
	}
	keys := map[string]bool{}
	var objects []Object
	for _, v := range stats[i].present() {
		name, _ := v.(string)
		j := slices.IndexFunc(stats, func(s memberStat) bool { return s.key == name })
		if j < 0 || keys[name] || g.hidden(name) {
			continue
		}
		if os := objectsOf(stats[j].values); len(os) > 0 {
			keys[name] = true
			objects = append(objects, os...)
		}
	}
	if len(objects)*2 < g.items {
		return nil
	}
	for _, s := range memberStats(objects) {
		if !isRichText(s.present()) || g.hidden(s.key) {
			continue
		}
		base := "[*]"
		if len(keys) == 1 {
			for name := range keys {
				base = memberPath("", name)
			}
		} else if slices.ContainsFunc(stats, func(o memberStat) bool { return !keys[o.key] && len(objectsWith(o.values, s.key)) > 0 }) {
			continue // [*] would find more than what is meant
		}
		g.addRichText([]string{"text"}, memberPath(base, s.key), s.present())
		return keys
	}
	return nil
}

// isRichText reports whether values are lists of runs of text that say how
// they are laid out: [{"plain_text": "a", "annotations": {…}}].
func isRichText(vs []Value) bool {
	runs := 0
	for _, v := range vs {
		a, ok := v.(Array)
		if !ok {
			return false
		}
		for _, e := range a {
			o, _ := e.(Object)
			if _, ok := memberValue(o, "plain_text").(string); !ok {
				return false
			}
			runs++
		}
	}
	return runs > 0
}

func (g *gatherer) addRichText(keys []string, path string, vs []Value) {
	c := draftColumn{path: path + "[*].plain_text", keys: keys, items: g.items, list: true, join: " "}
	for _, v := range vs {
		a, _ := v.(Array)
		for _, e := range a[:min(len(a), deriveItems)] {
			o, _ := e.(Object)
			c.values = append(c.values, memberValue(o, "plain_text"))
		}
	}
	if c.values = present(c.values); len(c.values) > 0 {
		g.addScalar(c, func(draftColumn) int { return rankTitle })
	}
}

func objectsWith(vs []Value, key string) []Object {
	return slices.DeleteFunc(objectsOf(vs), func(o Object) bool {
		_, ok := o.Get(key)
		return !ok
	})
}

// relationships shows the ids that JSON:API items refer to.
func (g *gatherer) relationships(s memberStat) {
	for _, rel := range memberStats(objectsOf(s.values)) {
		c := draftColumn{
			path: memberPath(memberPath("", s.key), rel.key) + ".data.id", keys: []string{rel.key}, items: g.items,
		}
		for _, o := range objectsOf(rel.values) {
			data, _ := memberValue(o, "data").(Object)
			if id := memberValue(data, "id"); isFullString(id) {
				c.values = append(c.values, id)
			}
		}
		if len(c.values) > 0 && !g.hidden(rel.key) {
			g.addScalar(c, func(draftColumn) int { return rankForeign })
		}
	}
}

// selfLinks takes an item's own address for its id where it has no other: in
// HAL the address is the identity.
func (g *gatherer) selfLinks(stats []memberStat) {
	if g.document || g.hidden("_links") {
		return
	}
	for _, s := range stats {
		if slices.Contains(idNames, normal(s.key)) {
			return
		}
	}
	i := slices.IndexFunc(stats, func(s memberStat) bool { return s.key == "_links" })
	if i < 0 {
		return
	}
	c := draftColumn{path: "_links.self.href", keys: []string{g.name}, items: g.items}
	for _, links := range objectsOf(stats[i].values) {
		self, _ := memberValue(links, "self").(Object)
		if href, ok := memberValue(self, "href").(string); ok && href != "" {
			c.values = append(c.values, href)
		}
	}
	if len(c.values) == g.items {
		g.addScalar(c, func(draftColumn) int { return rankID })
	}
}

func objectsOf(vs []Value) []Object {
	out := make([]Object, 0, len(vs))
	for _, v := range vs {
		if o, ok := v.(Object); ok {
			out = append(out, o)
		}
	}
	return out
}

// container finds the member that every item has and that says about as much
// as the item itself.
func (g *gatherer) container(stats []memberStat) string {
	own := 0
	for _, s := range stats {
		vs := s.present()
		if len(vs) == 0 || isNoise(s.key) || envelopeNames[strings.ToLower(s.key)] {
			continue
		}
		if _, flag := vs[0].(bool); singleValue(vs[0]) && !flag {
			own++
		}
	}
	for _, name := range containers {
		i := slices.IndexFunc(stats, func(s memberStat) bool { return s.key == name })
		if i < 0 || g.hidden(name) {
			continue
		}
		objects := objectsOf(stats[i].values)
		if len(objects) == 0 || len(objects) < g.items {
			continue
		}
		says := 0
		for _, s := range memberStats(objects) {
			vs := s.present()
			if len(vs) == 0 || isNoise(s.key) {
				continue
			}
			if _, ok := vs[0].(Array); !ok {
				says++
			}
		}
		if says > 0 && says*2 >= own {
			return name
		}
	}
	return ""
}

// add makes the candidates of one member.
func (g *gatherer) add(keys []string, base string, s memberStat) {
	vs := s.present()
	if len(vs) == 0 || isNoise(s.key) || saysOK(s.key, vs) {
		return
	}
	keys = append(slices.Clone(keys), s.key)
	path := memberPath(base, s.key)
	switch kind := majority(vs); {
	case kind == "object":
		g.addNested(keys, path, objectsOf(vs))
	case kind == "array":
		g.addArray(keys, path, vs)
	default:
		c := draftColumn{path: path, base: base, keys: keys, values: vs, items: g.items}
		g.addScalar(c, g.rankOf)
	}
}

// majority is what most of the values are: "object", "array" or "scalar".
func majority(vs []Value) string {
	objects, arrays := 0, 0
	for _, v := range vs {
		switch v.(type) {
		case Object:
			objects++
		case Array:
			arrays++
		}
	}
	switch {
	case objects*2 > len(vs):
		return "object"
	case arrays*2 > len(vs):
		return "array"
	default:
		return "scalar"
	}
}

// addScalar looks at the values and adds the column unless they are noise.
func (g *gatherer) addScalar(c draftColumn, rank func(draftColumn) int) {
	last := c.keys[len(c.keys)-1]
	if len(c.path) > derivePath || slices.ContainsFunc(c.keys, tokenList) && !allNumbers(c.values) || g.tokens && isTokenValue(last) {
		return
	}
	c.facts = look(c.keys, c.values)
	f := c.facts
	c.currency = g.currencyOf(c)
	c.rank = rank(c)
	known := c.rank == rankID && machineIDs[normal(last)] // an id may look like a hash
	if f.secret || f.template || f.image && !linkNames[normal(last)] || f.random && !known {
		return
	}
	if c.rank > rankTitle && len(c.values)*3 < c.items {
		c.rank = max(c.rank, rankSpare)
	}
	g.cols = append(g.cols, c)
}

// addNested takes the member of an object that names it, and more when the
// items say little themselves or are one document.
func (g *gatherer) addNested(keys []string, path string, objects []Object) {
	if len(objects)*3 < g.items || isWallet(keys[len(keys)-1], objects[0]) {
		return
	}
	stats := memberStats(objects)
	g.aboutFigures(path, stats)
	if g.addDateParts(keys, path, stats) {
		return
	}
	best := -1
	for _, name := range bestNames {
		best = slices.IndexFunc(stats, func(s memberStat) bool {
			return normal(s.key) == name && g.showable(keys, s)
		})
		if best >= 0 {
			break
		}
	}
	if normal(keys[len(keys)-1]) == "id" && best < 0 {
		best = slices.IndexFunc(stats, func(s memberStat) bool {
			w := keyWords(s.key)
			return len(w) > 1 && w[len(w)-1] == "id" && g.showable(keys, s)
		})
	}
	if g.document && best < 0 && g.addInnerList(keys, path, objects) {
		return
	}
	past := 0
	for i, s := range stats {
		if i != best && (!g.few && !g.document || envelopeNames[strings.ToLower(s.key)]) || !g.showable(keys, s) {
			continue
		}
		c := draftColumn{
			path: memberPath(path, s.key), base: path, keys: append(slices.Clone(keys), s.key), values: s.present(), items: g.items,
			nested: i == best, past: past,
		}
		if i == best {
			g.addScalar(c, g.rankBest)
			continue
		}
		before := len(g.cols)
		g.addScalar(c, g.rankFurtherMember)
		switch {
		case len(g.cols) == before:
		case best >= 0 && g.cols[before].rank == rankForeign:
			g.cols = g.cols[:before] // the name is there, its id is not worth a column
		case g.cols[before].rank < rankBoolean:
			past++
		}
	}
}

// addDateParts shows the year of {"date-parts": [[2005, 8, 30]]}.
func (g *gatherer) addDateParts(keys []string, path string, stats []memberStat) bool {
	for _, s := range stats {
		if normal(s.key) != "dateparts" {
			continue
		}
		c := draftColumn{
			path: memberPath(path, s.key) + "[0][0]", keys: []string{keys[len(keys)-1] + "_year"}, items: g.items,
		}
		for _, v := range s.present() {
			if all := resolve(nil, v, dateParts); len(all) > 0 && !isBlank(all[0]) && singleValue(all[0]) {
				c.values = append(c.values, all[0])
			}
		}
		if len(c.values) == 0 {
			return true
		}
		g.addScalar(c, func(draftColumn) int {
			switch keys[len(keys)-1] {
			case "issued", "published", "published-print":
				return rankBorn
			}
			return rankSpare
		})
		return true
	}
	return false
}

var dateParts = []segment{{step: stepIndex}, {step: stepIndex}}

// showable reports whether a member of a nested object may become a column.
func (g *gatherer) showable(keys []string, s memberStat) bool {
	vs := s.present()
	return len(vs) > 0 && majority(vs) == "scalar" && !isNoise(s.key) && !g.hidden(s.key) &&
		!isCredential(keys[len(keys)-1]+"_"+s.key)
}

// addInnerList shows the list a document keeps one level down, as in
// {"tracks": {"total": 2, "items": [{"name": …}]}}.
func (g *gatherer) addInnerList(keys []string, path string, objects []Object) bool {
	before := len(g.cols)
	for _, name := range listNames {
		key, a := arrayMember(objects[0], name)
		if a == nil || arrayContent(a) != foundList || g.hidden(key) {
			continue
		}
		g.addArray(keys, memberPath(path, key), []Value{a})
		break
	}
	return len(g.cols) > before
}

// addArray makes a list of single values or of the names of objects, or two
// columns of pairs [time, value].
func (g *gatherer) addArray(keys []string, path string, vs []Value) {
	var elements []Value
	var objects []Object
	pairs := true
	for _, v := range vs {
		a, ok := v.(Array)
		if !ok {
			continue
		}
		pairs = pairs && isSample(a)
		for _, e := range a[:min(len(a), deriveItems)] {
			switch e := e.(type) {
			case Object:
				objects = append(objects, e)
			case Array:
				return
			default:
				elements = append(elements, e)
			}
		}
	}
	if pairs {
		g.addPair(keys, path, vs)
		return
	}
	if isRichText(vs) {
		g.addRichText(keys, path, vs)
		return
	}
	if len(objects) > 0 {
		g.addObjectList(keys, path, objects[:min(len(objects), deriveItems)])
		return
	}
	c := draftColumn{path: path, keys: keys, values: present(elements), items: g.items, list: true}
	if len(c.values) == 0 || tokenList(keys[len(keys)-1]) {
		return
	}
	g.addScalar(c, func(c draftColumn) int {
		switch {
		case c.facts.url:
			return rankOtherURL
		case titleNames[normal(keys[len(keys)-1])]:
			return rankTitle
		default:
			return g.pick(rankList, rankListDoc)
		}
	})
}

// addObjectList names the objects of a list in one cell. Of an error answer
// everything its errors say is worth a line.
func (g *gatherer) addObjectList(keys []string, path string, objects []Object) {
	stats := memberStats(objects)
	add := func(s memberStat, best bool, rank int) {
		c := draftColumn{
			path: memberPath(path+"[*]", s.key), keys: append(slices.Clone(keys), s.key), values: s.present(),
			items: g.items, list: true, nested: best,
		}
		g.addScalar(c, func(c draftColumn) int {
			if c.facts.url {
				return rankOtherURL
			}
			return rank
		})
	}
	if g.errors {
		n := 0
		for _, s := range stats {
			if n < 3 && g.showable(keys, s) {
				n++
				add(s, false, rankText)
			}
		}
		return
	}
	for _, name := range bestInList {
		i := slices.IndexFunc(stats, func(s memberStat) bool { return normal(s.key) == name && g.showable(keys, s) })
		if i >= 0 {
			add(stats[i], true, g.pick(rankList+1, rankPartsDoc))
			return
		}
	}
	// What names them may be one level down: inputs[*].prev_out.addr.
	for _, s := range stats {
		inner := memberStats(objectsOf(s.values))
		for _, name := range bestDeep {
			i := slices.IndexFunc(inner, func(m memberStat) bool { return normal(m.key) == name })
			if i < 0 || g.hidden(s.key) || isNoise(s.key) || !g.showable([]string{s.key}, inner[i]) {
				continue
			}
			c := draftColumn{
				path: memberPath(memberPath(path+"[*]", s.key), inner[i].key), keys: append(slices.Clone(keys), name),
				values: inner[i].present(), items: g.items, list: true, nested: true,
			}
			g.addScalar(c, func(draftColumn) int { return g.pick(rankList+1, rankPartsDoc) })
			return
		}
	}
}

// isSample reports whether an array is [epoch, value].
func isSample(a Array) bool {
	if len(a) != 2 || !singleValue(a[1]) || a[1] == nil {
		return false
	}
	n, ok := a[0].(json.Number)
	return ok && isEpoch(string(n))
}

func (g *gatherer) addPair(keys []string, path string, vs []Value) {
	for i, name := range []string{"time", keys[len(keys)-1]} {
		c := draftColumn{path: path + "[" + strconv.Itoa(i) + "]", keys: []string{name}, items: g.items}
		for _, v := range vs {
			if a, ok := v.(Array); ok {
				c.values = append(c.values, a[i])
			}
		}
		g.addScalar(c, func(draftColumn) int { return rankPair })
	}
}

// saysOK reports whether a member only says that the call went well.
func saysOK(key string, vs []Value) bool {
	switch normal(key) {
	case "message", "msg", "status", "result", "ok", "success":
	default:
		return false
	}
	for _, v := range vs {
		switch strings.ToLower(sampleText(v)) {
		case "ok", "success", "successful", "true":
		default:
			return false
		}
	}
	return true
}
