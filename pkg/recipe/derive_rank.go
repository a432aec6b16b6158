package recipe

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// Ranks: what a person looks at first, lowest first.
const (
	rankKey      = 5 // #key of a map
	rankID       = 10
	rankTitle    = 20
	rankStatus   = 30
	rankBorn     = 38 // created, published, sent, started
	rankUpdated  = 39
	rankDate     = 40
	rankFigure   = 45 // price, total, score and the like
	rankPair     = 46 // of [time, value]; the currency of a figure
	rankPerson   = 48 // the name of an author, an owner, a customer
	rankFigure2  = 49 // the second figure, after what the first one needs
	rankPageURL  = 50 // where a person would open the item
	rankFigure3  = 51
	rankDate2    = 52
	rankLink     = 53 // url and link, unless it is the API's own
	rankEmail    = 54
	rankText     = 55
	rankMarkup   = 56
	rankNested   = 57
	rankShare    = 57 // the first percentage
	rankLongDoc  = 58 // long text of a single document
	rankDate3    = 59 // the second date, when its name says that it is a special one
	rankNumber   = 60
	rankPartsDoc = 61 // lists of a single document: of things, of values
	rankListDoc  = 63
	rankFurther  = 66 // more members of a nested object, to 69
	rankBoolean  = 70
	rankAlike    = 71 // numbers and texts that are alike in all items
	rankPosition = 72 // latitude, longitude
	rankKind     = 74 // what kind of thing a single document is
	rankForeign  = 75
	rankList     = 76
	rankURL      = 78
	rankSpare    = 82 // dates over the limit, members few items have
	rankLong     = 85
	rankConstant = 92
	rankOtherURL = 95
)

// A draftColumn is a candidate for a column, and later a column.
type draftColumn struct {
	path   string
	base   string   // the path of the object it is a member of, "" being the item
	keys   []string // on the way to the value, wrappers such as "attributes" left out
	nested bool     // keys[len-1] is the best member of keys[len-2], which names it
	list   bool     // several values in one cell
	values []Value  // of the items that have it
	items  int
	rank   int
	order  int
	format Kind
	suffix string // what it is measured in
	join   string // of a list
	// currency is the path of the currency of an amount.
	currency string
	label    string
	record   string
	facts    valueFacts
	past     int // place among further members of one nested object
}

// field is the member of "fields": the path alone when it needs no format.
func (c draftColumn) field() Value {
	if c.format == KindAuto {
		return c.path
	}
	o := Object{{"path", c.path}, {"format", string(c.format)}}
	o.addText("suffix", c.suffix, "")
	o.addText("join", c.join, "")
	if c.format == KindCurrency {
		o.add("currency", atItem(c.currency))
	}
	return o
}

// atItem marks a path that starts at the item as a path.
func atItem(path string) string {
	if strings.HasPrefix(path, "[") {
		return "@" + path
	}
	return "@." + path
}

// currencyRecord is what a record needs beside an amount.
func (c draftColumn) currencyRecord() (key, path string, ok bool) {
	if c.format != KindCurrency {
		return "", "", false
	}
	key = "currency"
	if c.base != "" && !containerNames[strings.ToLower(c.base)] && len(c.keys) > 1 {
		key = recordKey(c.keys[len(c.keys)-2] + "_currency")
	}
	return key, c.currency, true
}

var (
	idNames = []string{"key", "number", "iid", "id", "sid", "uuid", "guid", "objectid", "code", "symbol", "sku", "doi", "slug"}
	// Ids that only machines read, when another one is shown.
	machineIDs = nameSet("id", "sid", "uuid", "guid", "objectid")

	titleNames = nameSet("name", "title", "fullname", "displayname", "label", "subject", "summary", "headline")
	personName = nameSet("firstname", "lastname", "surname", "givenname", "familyname")
	userNames  = nameSet("login", "username", "screenname")
	textNames  = nameSet("text", "message", "content", "body", "description", "caption", "excerpt", "detail", "explanation")

	statusWords = nameSet("status", "state", "stage", "phase", "type", "kind", "category", "severity", "priority", "level", "visibility")
	figureWords = nameSet("price", "amount", "total", "score", "rating", "count", "stock", "mag", "magnitude", "likes",
		"comments", "population", "points", "views", "stars", "forks", "watchers", "members", "quantity", "balance",
		"cap", "rank")
	bornWords    = nameSet("created", "published", "sent", "start", "started", "opened", "posted")
	plainMoments = nameSet("created", "published", "sent", "start", "started", "opened", "posted", "updated", "modified", "due",
		"closed", "merged", "finished", "completed", "end", "ended", "edited", "birth", "release")
	updateWords = nameSet("updated", "modified")
	moneyWords  = nameSet("price", "total", "amount", "cost", "fee", "balance", "subtotal", "tax", "discount", "discounts", "paid", "due")
	constNames  = nameSet("kind", "type", "version", "lang", "language", "locale", "object", "format", "mediatype", "nametype")
	personWords = nameSet("user", "author", "owner", "creator", "customer", "reporter", "sender", "account", "person", "contact",
		"company", "sponsor")
	partyNames = nameSet("from", "to", "sender", "recipient", "author", "assignee", "owner", "user", "creator")
	// What a file or another piece of data has beside its size.
	fileWords = nameSet("mime", "mimetype", "contenttype", "filename", "sha", "sha1", "sha256", "md5", "checksum", "hash", "digest",
		"shasum", "downloadurl", "etag", "lastmodified", "isdir", "extension", "fileextension")
	pageURLs  = nameSet("htmlurl", "weburl", "permalink", "permalinkurl")
	linkNames = nameSet("link", "url", "href", "website", "homepage", "site", "siteurl")

	bestNames = []string{
		"name", "title", "fullname", "displayname", "login", "username", "label", "rendered", "value",
		"text", "email", "amount", "city", "lastname", "code", "key", "id",
	}
	// Names of what is one level down in a list of objects.
	bestDeep   = []string{"name", "title", "login", "addr", "address", "label"}
	bestInList = []string{"name", "title", "login", "label", "text", "firstname", "description", "summary", "addr", "value", "year", "family"}
	// Members that hold what the item is, one level down.
	containers = []string{
		"attributes", "_source", "properties", "fields", "resource", "data", "node", "package", "document",
		"record", "item", "snippet",
	}
	containerNames = nameSet(append([]string{"metadata", "spec"}, containers...)...)
	noiseNames     = nameSet("nodeid", "etag", "self", "context", "links", "reactions", "digests", "highlight", "highlightresult",
		"expand", "odataetag", "odatatype", "odataid", "odatacontext", "schema", "requestlogurl", "namenormalized", "cod")
	imageWords = nameSet("image", "images", "avatar", "avatars", "icon", "icons", "thumbnail", "thumbnails", "gravatar", "photo",
		"photos", "picture", "pictures", "logo", "banner", "poster")
)

// columns is steps two to five: the members worth showing, in column order.
func (d *deriver) columns(f found) []draftColumn {
	most := d.max(f.what)
	var key []draftColumn
	if f.shape == Entries {
		key = []draftColumn{f.keyColumn()}
		most--
	}
	switch {
	case f.rows != nil:
		cols := f.cellColumns(most)
		nameColumns(cols)
		return cols
	case f.what == foundScalars || f.list != nil:
		c := f.valueColumn()
		if c.facts.secret || f.tokens() && f.shape == Entries {
			return nil
		}
		return append(key, c)[:min(len(key)+1, most+len(key))]
	}
	g := gatherer{deriver: d, items: len(f.items), document: f.what == foundObject, errors: f.err, tokens: f.tokens(), name: f.itemName("self"), columns: f.shape == Columns}
	g.gather(f.items)
	g.dropKeys(f.keys)
	cols := append(key, g.choose(most)...)
	for i := range cols {
		if cols[i].rank == rankKey {
			continue
		}
		cols[i].format = g.format(cols[i])
		cols[i].suffix = f.unit(cols[i])
	}
	nameColumns(cols)
	return cols
}

// itemName is what one item of the list is called, by the list's name.
func (f found) itemName(otherwise string) string {
	name := f.path[strings.LastIndexAny(f.path, ".[$")+1:]
	if s := singular(name); s != "value" {
		return s
	}
	if name != "" && memberSegment(name)[0] == '.' && !slices.Contains(listNames, name) {
		return name
	}
	return otherwise
}

// dropKeys drops the columns that repeat the keys of a map.
func (g *gatherer) dropKeys(keys []string) {
	g.cols = slices.DeleteFunc(g.cols, func(c draftColumn) bool {
		if len(keys) == 0 || c.list || len(c.values) != len(keys) {
			return false
		}
		for i, v := range c.values {
			if sampleText(v) != keys[i] {
				return false
			}
		}
		return true
	})
}

// choose ranks the candidates, keeps the best and puts them in column order.
func (g *gatherer) choose(most int) []draftColumn {
	for i := range g.cols {
		g.cols[i].order = i
	}
	g.chooseID()
	g.chooseTitles()
	g.dropTwins("code", "short")
	g.limitDates()
	g.limitFigures()
	g.demoteConstants()
	links := 1
	for _, rank := range []int{rankPageURL, rankLink, rankURL} {
		links = max(links-g.limit(rank, links, rankOtherURL), 0)
	}
	ranked := slices.Clone(g.cols)
	slices.SortStableFunc(ranked, func(a, b draftColumn) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.order, b.order))
	})
	var out []draftColumn
	for _, c := range ranked {
		if len(out) >= most || c.rank >= rankSpare && len(out) >= 4 || c.rank >= rankConstant && len(out) >= 3 {
			break
		}
		out = append(out, c)
	}
	slices.SortStableFunc(out, func(a, b draftColumn) int {
		return cmp.Or(cmp.Compare(g.rowPlace(a), g.rowPlace(b)), cmp.Compare(a.order, b.order))
	})
	return out
}

// rowPlace is a column's place in the row: id, title, the rest, links.
func (g *gatherer) rowPlace(c draftColumn) int {
	if g.columns && c.facts.date != "" {
		return -1 // parallel arrays are a series in time
	}
	switch c.rank {
	case rankKey:
		return -1
	case rankID:
		return 0
	case rankTitle:
		return 1
	case rankPageURL, rankLink, rankURL, rankOtherURL:
		return 3
	default:
		return 2
	}
}

// pick is list in a list and document in a document.
func (g *gatherer) pick(list, document int) int {
	if g.document {
		return document
	}
	return list
}

// limit lets at most n of the columns with a rank keep it and gives how many
// there were.
func (g *gatherer) limit(rank, n, otherwise int) int {
	seen := 0
	for i := range g.cols {
		c := &g.cols[i]
		if c.rank != rank {
			continue
		}
		if seen++; seen > n {
			c.rank = otherwise
		}
	}
	return seen
}

// chooseID keeps the most human id and turns the others into what they are
// beside it.
func (g *gatherer) chooseID() {
	best, bestAt := len(idNames), -1
	for _, complete := range []bool{true, false} {
		for i, c := range g.cols {
			if c.rank != rankID || complete && len(c.values) < c.items {
				continue
			}
			if p := idPlace(c); p < best {
				best, bestAt = p, i
			}
		}
		if bestAt >= 0 {
			break
		}
	}
	for i := range g.cols {
		c := &g.cols[i]
		if c.rank != rankID || i == bestAt {
			continue
		}
		switch {
		case machineIDs[normal(c.keys[len(c.keys)-1])]:
			c.rank = rankForeign
		case c.facts.numeric:
			c.rank = rankNumber
		default:
			c.rank = rankText
		}
	}
}

func idPlace(c draftColumn) int {
	if i := slices.Index(idNames, normal(c.keys[len(c.keys)-1])); i >= 0 {
		return i
	}
	return slices.Index(idNames, "id") // a nested id: {"id": {"videoId": …}}
}

// chooseTitles gives the title one or two columns: a name and a short text,
// or two names, or first and last name; a long text only when there is no
// other.
func (g *gatherer) chooseTitles() {
	var names, persons, users, texts, long []int
	for i, c := range g.cols {
		if c.rank != rankTitle {
			continue
		}
		switch k := normal(c.titleKey()); {
		case titleNames[k]:
			names = append(names, i)
		case personName[k]:
			persons = append(persons, i)
		case userNames[k]:
			users = append(users, i)
		case (c.facts.long || c.facts.markup) && !g.document:
			long = append(long, i)
		default:
			texts = append(texts, i)
		}
	}
	var keep []int
	switch {
	case len(names) > 0:
		keep = append(append(names[:1:1], texts...), names[1:]...)
	case len(persons) > 0:
		keep = persons
	case len(users) > 0:
		keep = append(users[:1:1], texts...)
	case len(texts) > 0:
		keep = texts[:1]
	case len(long) > 0:
		keep = long[:1]
	}
	keep = keep[:min(len(keep), 2)]
	for i := range g.cols {
		c := &g.cols[i]
		if c.rank != rankTitle || slices.Contains(keep, i) {
			continue
		}
		switch {
		case c.facts.long || c.facts.markup:
			c.rank = g.pick(rankLong, rankLongDoc)
		case slices.Contains(texts, i):
			c.rank = rankMarkup
		default:
			c.rank = rankText
		}
	}
}

// titleKey is the key that makes a column a title: its own, or for the best
// member of an object called title ({"title": {"rendered": …}}) that one.
func (c draftColumn) titleKey() string {
	last := c.keys[len(c.keys)-1]
	if c.nested {
		return c.keys[len(c.keys)-2]
	}
	return last
}

// limitDates keeps the dates a person would look at and drops the second
// spelling of one that is there.
func (g *gatherer) limitDates() {
	g.dropTwins("i", "unix", "ts", "ms")
	to := []int{rankDate, rankDate2}
	if g.document {
		to = []int{rankDate, rankPair, rankLink}
	}
	g.spread([]int{rankBorn, rankUpdated, rankDate}, to, rankSpare)
	for i := range g.cols {
		if c := &g.cols[i]; c.rank == rankDate2 && c.facts.date != "" && !isPlainDate(keyWords(c.keys[len(c.keys)-1])) {
			c.rank = rankDate3
		}
	}
}

// isPlainDate reports whether a date's name is one word, or only says which
// moment it is: died, date_sent, but not ath_date.
func isPlainDate(w []string) bool { return len(w) < 2 || isMomentOf(w, plainMoments) }

// dropTwins drops a column that only repeats another: created_at_i beside
// created_at, forks beside forks_count. The longer name is the count, the
// shorter the date.
func (g *gatherer) dropTwins(endings ...string) {
	place := func(c draftColumn) string { return strings.Join(c.keys[:len(c.keys)-1], "\x00") + "\x00" }
	have := map[string]draftColumn{}
	for _, c := range g.cols {
		have[place(c)+normal(c.keys[len(c.keys)-1])] = c
	}
	g.cols = slices.DeleteFunc(g.cols, func(c draftColumn) bool {
		k := normal(c.keys[len(c.keys)-1])
		for _, end := range endings {
			switch end {
			case "code", "short": // bornCountryCode beside bornCountry, short-title beside title
				base, ok := strings.CutSuffix(k, end)
				if !ok {
					base, ok = strings.CutPrefix(k, end)
				}
				if _, found := have[place(c)+base]; ok && found && base != "" && c.rank > rankTitle {
					return true
				}
				continue
			case "count":
				if o, ok := have[place(c)+k+end]; ok && o.facts.numeric && c.facts.numeric {
					return true
				}
				continue
			}
			base, ok := strings.CutSuffix(k, end)
			if o, found := have[place(c)+base]; ok && found && o.facts.date != "" && c.facts.date != "" {
				return true
			}
		}
		return false
	})
}

// limitFigures keeps the first figures close to the front, and what they are
// counted in beside them.
func (g *gatherer) limitFigures() {
	money := slices.ContainsFunc(g.cols, func(c draftColumn) bool {
		return c.rank == rankFigure && slices.ContainsFunc(keyWords(c.keys[len(c.keys)-1]), func(s string) bool { return moneyWords[s] })
	})
	g.dropTwins("count")
	g.spread([]int{rankFigure}, []int{rankFigure, rankFigure2, rankFigure3}, rankNumber)
	share := false
	for i := range g.cols {
		if c := &g.cols[i]; c.facts.percent && !share && (c.rank == rankNumber || c.rank == rankFigure3) {
			c.rank, share = rankShare, true
		}
	}
	g.dropCurrencies()
	for i := range g.cols {
		if c := &g.cols[i]; money && c.rank == rankText && normal(c.keys[len(c.keys)-1]) == "currency" {
			c.rank = rankPair
		}
	}
}

// dropCurrencies drops the column of a currency that stands behind an amount.
func (g *gatherer) dropCurrencies() {
	shown := map[string]bool{}
	for _, c := range g.cols {
		if c.currency != "" && c.rank < rankNested {
			shown[c.currency] = true
		}
	}
	g.cols = slices.DeleteFunc(g.cols, func(c draftColumn) bool { return shown[c.path] })
}

// demoteConstants puts what is alike in all items behind what is not: flags in
// two items or more, numbers and texts in three or more.
func (g *gatherer) demoteConstants() {
	if g.document {
		return
	}
	for i := range g.cols {
		c := &g.cols[i]
		if !c.facts.same || len(c.values) < c.items {
			continue
		}
		switch {
		case c.rank == rankBoolean && c.items >= 2:
			c.rank = rankConstant
		case (c.rank == rankNumber || c.rank == rankText) && c.items >= 3:
			c.rank = rankAlike
		}
	}
}

// currencyOf gives the path of the currency an amount is in. Whole numbers may
// be minor units, which nobody can tell, so they have none.
func (g *gatherer) currencyOf(c draftColumn) string {
	path := g.money[c.base]
	if path == "" || !c.facts.numeric || c.list || !isMoney(keyWords(c.keys[len(c.keys)-1])) {
		return ""
	}
	for _, v := range c.values {
		if n, ok := v.(json.Number); ok && !strings.Contains(string(n), ".") {
			return ""
		}
	}
	return path
}

// isMoney reports whether a name is that of an amount of money.
func isMoney(w []string) bool {
	money := false
	for _, s := range w {
		switch {
		case s == "quantity" || s == "weight" || s == "items" || s == "percent" || s == "rate":
			return false
		case moneyWords[s] || s == "value" && len(w) == 1:
			money = true
		}
	}
	return money
}

// spread gives the columns that have one of the ranks in from, in that order,
// the ranks in to, one each, and the rest otherwise.
func (g *gatherer) spread(from, to []int, otherwise int) {
	var at []int
	for _, rank := range from {
		for i := range g.cols {
			if g.cols[i].rank == rank {
				at = append(at, i)
			}
		}
	}
	for n, i := range at {
		if n < len(to) {
			g.cols[i].rank = to[n]
		} else {
			g.cols[i].rank = otherwise
		}
	}
}

// rankOf gives a scalar column its rank by its name and its values.
func (g *gatherer) rankOf(c draftColumn) int {
	last := c.keys[len(c.keys)-1]
	k, w := normal(last), keyWords(last)
	if len(w) == 0 {
		w = []string{""}
	}
	end := w[len(w)-1]
	f := c.facts
	switch {
	case f.url && pageURLs[k]:
		return rankPageURL
	case f.url && (k == "url" || k == "link") && !f.api && !f.image:
		return rankLink
	case f.url && linkNames[k]:
		return rankURL
	case f.url:
		return rankOtherURL
	case slices.Contains(idNames, k) && !f.flag && !f.long:
		return rankID
	case f.date != "":
		switch {
		case isMomentOf(w, bornWords):
			return rankBorn
		case isMomentOf(w, updateWords):
			return rankUpdated
		}
		return rankDate
	case end == "uri" || end == "url":
		return rankOtherURL
	case f.flag:
		return rankBoolean
	case !f.numeric && (titleNames[k] || personName[k] || userNames[k] || textNames[k]):
		return rankTitle
	case f.long:
		return g.pick(rankLong, rankLongDoc)
	case f.markup && f.wide:
		return g.pick(rankLong, rankLongDoc)
	case f.markup:
		return rankMarkup
	case (constNames[k] || end == "version" || end == "ver") && (f.same && c.items > 1 || k == "object"):
		return rankConstant
	case (k == "type" || k == "kind") && g.document && !g.errors:
		return rankKind
	case statusWords[end] && (k == end || end != "type" && end != "kind") && (!f.numeric || end == "status" || end == "state" || end == "priority" || end == "severity"):
		return rankStatus
	case end == "id" || end == "ids" || end == "uuid" || k == "pageid" || k == "userid":
		return rankForeign
	case isPosition(w):
		return rankPosition
	case k == "email" && !g.document:
		return rankEmail
	case partyNames[k] && !f.numeric && !f.wide:
		return rankPerson
	case f.numeric && (figureWords[end] || figureWords[w[0]] && len(w) == 2):
		return rankFigure
	case f.numeric && end == "date":
		return rankDate // a year
	case f.numeric, constNames[k]:
		return rankNumber
	default:
		return rankText
	}
}

// isMomentOf reports whether a date's name says only which moment it is:
// created_at and dateCreated, but not latest_build_started_at.
func isMomentOf(w []string, moments map[string]bool) bool {
	found := false
	for _, s := range w {
		switch {
		case moments[s]:
			found = true
		case !timeWords[s] && s != "last":
			return false
		}
	}
	return found
}

// rankBest gives the best member of a nested object its rank: that of what
// the object is.
func (g *gatherer) rankBest(c draftColumn) int {
	parent := c.keys[len(c.keys)-2]
	w := keyWords(parent)
	end := ""
	if len(w) > 0 {
		end = w[len(w)-1]
	}
	f := c.facts
	switch {
	case f.url:
		return rankOtherURL
	case titleNames[normal(parent)] || textNames[normal(parent)]:
		return rankTitle
	case f.long:
		return g.pick(rankLong, rankLongDoc)
	case normal(parent) == "id":
		return rankID
	case statusWords[end] && !f.wide && !f.markup:
		return rankStatus
	case normal(c.keys[len(c.keys)-1]) == "id":
		return rankForeign
	case f.date != "":
		return rankDate
	case f.numeric && figureWords[end]:
		return rankFigure
	case personWords[end], normal(parent) == "address":
		return rankPerson
	case f.flag:
		return rankBoolean
	default:
		return rankNested
	}
}

// rankFurtherMember ranks the other members of a nested object below its best
// one; each object's first ones come before any object's later ones.
func (g *gatherer) rankFurtherMember(c draftColumn) int {
	if normal(c.keys[len(c.keys)-1]) == "version" {
		return rankConstant
	}
	switch r := g.rankOf(c); r {
	case rankOtherURL, rankURL, rankLink, rankPageURL:
		return rankOtherURL
	case rankConstant, rankBoolean, rankForeign, rankPosition, rankLong:
		return r
	case rankKind:
		return rankConstant
	case rankID:
		return rankForeign
	case rankBorn, rankUpdated, rankDate:
		return rankPartsDoc
	default:
		return min(rankFurther+c.past/2, rankFurther+3)
	}
}

func isPosition(w []string) bool {
	return slices.ContainsFunc(w, func(s string) bool {
		return s == "lat" || s == "lon" || s == "lng" || s == "long" || s == "latitude" || s == "longitude" || s == "reclat" || s == "reclong"
	})
}

// isNoise reports whether a key names something nobody looks at in a table.
func isNoise(key string) bool {
	if noiseNames[normal(key)] {
		return true
	}
	w := keyWords(key)
	return slices.ContainsFunc(w, func(s string) bool { return imageWords[s] || s == "customfield" })
}
