package recipe

import (
	"bytes"
	"slices"
	"strconv"
	"unicode/utf8"
)

// maxDocumentsBytes bounds the Markdown of all documents of one result
// together, which no other limit does: templates may repeat long values.
const maxDocumentsBytes = 5 << 20

// cellGuess is the length of an ordinary cell in bytes, with its marks.
const cellGuess = 24

// lineGuess is the length of an ordinary line of a document in bytes.
const lineGuess = 48

// Reasons in Meta, strongest first.
const (
	reasonBytes = "bytes"
	reasonItems = "items"
	reasonChars = "chars"
)

// Render makes Markdown, records and documents of the pages of one answer, in
// order: their items are one list, and a $ path is resolved in the page its
// item came from. Whatever the pages hold, Render gives a result; what it does
// not find it shows as empty and reports in Meta.
func (r *Recipe) Render(pages []*Page, o RenderOptions) *Result {
	v := renderer{r: r, o: o, maxItems: r.Limits.MaxItems, maxChars: r.Limits.MaxChars}
	if v.maxItems <= 0 {
		v.maxItems = defaultMaxItems
	}
	if v.maxChars <= 0 {
		v.maxChars = defaultMaxChars
	}
	v.collect(pages)
	v.records()
	switch {
	case r.plain:
		v.plain()
	case len(v.items) == 0:
		v.none()
	case r.Mode == Document:
		v.document()
	case r.Mode == Documents:
		v.documents()
	default:
		v.table()
	}
	v.res.Markdown = string(v.out)
	return &v.res
}

// A renderer is one call of Render.
type renderer struct {
	r                  *Recipe
	o                  RenderOptions
	maxItems, maxChars int
	first              *Page // for titles that belong to no item
	items              []itemView
	list               bool // a page has a list where the items come from
	w                  formatter
	out                []byte
	counted, chars     int // bytes of out that were counted, and their characters
	res                Result
}

// collect gathers the items that are rendered and counts all.
func (v *renderer) collect(pages []*Page) {
	limit := v.maxItems
	if v.r.Mode == Document && !v.r.plain {
		limit = 1
	}
	for _, p := range pages {
		if p == nil {
			continue
		}
		if v.first == nil {
			v.first = p
		}
		v.res.Meta.Selected += p.Items()
		built := p.Built()
		if room := limit - len(v.items); len(built) > room {
			built = built[:room]
		}
		v.items = slices.Grow(v.items, len(built))
		for i, item := range built {
			v.items = append(v.items, itemView{value: item, page: p, index: len(v.items), local: i, keyed: v.r.Shape == Entries})
		}
		v.list = v.list || p.IsList()
		for _, note := range p.Warnings() {
			if !slices.Contains(v.res.Meta.Warnings, note) {
				v.warn(note)
			}
		}
	}
	v.res.Meta.Mode = v.r.Mode
	if v.res.Meta.Selected > len(v.items) {
		v.truncate(reasonItems)
	}
	if v.res.Meta.Selected == 0 && !v.r.plain {
		v.warn("select matched nothing")
	}
}

// records makes the records. Items whose records do not fit are not rendered,
// except that the first one is always shown.
func (v *renderer) records() {
	v.res.Records, v.res.records = v.r.recordsWithin(v.items)
	n := len(v.res.Records)
	v.res.Meta.Rendered = n
	if n < len(v.items) {
		v.truncate(reasonBytes)
		if n == 0 {
			v.warn("the first record alone is larger than " + strconv.Itoa(maxRecordBytes) + " bytes")
			n = 1
		}
		v.items = v.items[:n]
	}
	v.res.Meta.EmptyFields = v.r.emptyFields(v.items)
}

// truncate notes a reason; a stronger one that is already there stays.
func (v *renderer) truncate(reason string) {
	m := &v.res.Meta
	m.Truncated = true
	switch {
	case reason == reasonBytes, m.Reason == "":
		m.Reason = reason
	}
}

func (v *renderer) warn(text string) {
	v.res.Meta.Warnings = append(v.res.Meta.Warnings, text)
}

// room is how many characters may still be written. Only what is new since it
// was last asked is counted.
func (v *renderer) room() int {
	v.chars += utf8.RuneCount(v.out[v.counted:])
	v.counted = len(v.out)
	return v.maxChars - v.chars
}

// cutTo takes back what was written behind the first n bytes.
func (v *renderer) cutTo(n int) {
	if v.counted > n {
		v.chars -= utf8.RuneCount(v.out[n:v.counted])
		v.counted = n
	}
	v.out = v.out[:n]
}

// cutAll shortens what was written so far to the room there is.
func (v *renderer) cutAll() {
	short, _ := cutMarkdown(string(v.out), v.maxChars)
	v.cutTo(0)
	v.out = append(v.out, short...)
}

// heading writes the ## line and the blank line behind it, if there is a title
// and room for it.
func (v *renderer) heading(t title) {
	if t.markdown == "" {
		return
	}
	v.res.Title = t.plain
	v.out = append(v.out, "## "...)
	v.out = append(v.out, t.markdown...)
	if v.room() < 0 {
		v.cutAll()
		v.truncate(reasonChars)
	}
	v.out = append(v.out, "\n\n"...)
}

// pageTitle is the title of a result: the recipe's, filled from it, else the
// name that was handed in.
func (v *renderer) pageTitle(it *itemView) title {
	if t := v.r.title(it, &v.w); t.plain != "" {
		return t
	}
	return plainTitle(v.o.Name)
}

// listTitle is the title of a table: there is no item to fill it from, only
// the body of the first page.
func (v *renderer) listTitle() title {
	if v.r.Mode == Documents {
		return plainTitle(v.o.Name)
	}
	return v.pageTitle(&itemView{page: v.first, index: -1})
}

// trim drops the blank lines a result would end with when nothing fitted.
func (v *renderer) trim() {
	v.cutTo(len(bytes.TrimRight(v.out, "\n")))
}

func (v *renderer) none() {
	v.heading(v.listTitle())
	const text = "No items."
	if v.room() >= len(text) {
		v.out = append(v.out, text...)
	}
	v.trim()
}

func (v *renderer) table() {
	v.out = make([]byte, 0, min(64+len(v.items)*len(v.r.Fields)*cellGuess, 2*v.maxChars))
	v.heading(v.listTitle())
	shown := 0
	v.out, shown = v.r.appendTable(v.out, v.items, &v.w, v.room())
	v.shown(shown)
	v.trim()
}

// shown notes how many items are in the Markdown.
func (v *renderer) shown(n int) {
	v.res.Meta.Shown = n
	if n < len(v.items) {
		v.truncate(reasonChars)
	}
}

func (v *renderer) document() {
	it := &v.items[0]
	guess := min(64+len(v.r.Fields)*lineGuess, 2*v.maxChars)
	v.out = make([]byte, 0, guess)
	v.heading(v.pageTitle(it))
	room, before := v.room(), len(v.out)
	if v.r.Body == nil {
		v.out = v.r.body(v.out, it, &v.w)
	} else { // a template may look at what is in front of it
		v.out = append(v.out, v.r.body(nil, it, &v.w)...)
	}
	if len(v.out)-before > room { // no character is shorter than a byte
		md := string(v.out[before:])
		v.out = v.out[:before]
		v.addCut(md)
	}
	v.shown(1)
	v.trim()
}

// addCut adds Markdown of which as much is kept as there is room for.
func (v *renderer) addCut(md string) {
	room := v.room()
	if room < 1 {
		if md != "" {
			v.truncate(reasonChars)
		}
		return
	}
	short, cut := cutMarkdown(md, room)
	if cut {
		v.truncate(reasonChars)
	}
	v.out = append(v.out, short...)
}

func (v *renderer) documents() {
	v.heading(v.listTitle())
	shown, full, total := 0, false, 0
	for i := range v.items {
		it := &v.items[i]
		t := v.r.title(it, &v.w)
		if t.plain == "" {
			t = plainTitle("Item " + strconv.Itoa(i+1))
		}
		md, cut := cutMarkdown(string(v.r.body(nil, it, &v.w)), v.maxChars)
		if cut {
			v.truncate(reasonChars)
		}
		doc := Rendered{Title: t.plain, Markdown: md}
		if i < len(v.res.Records) {
			doc.Record = v.res.Records[i]
		}
		if total += len(md); total > maxDocumentsBytes && i > 0 {
			v.warn("documents after the first " + strconv.Itoa(i) + " are left out: they are too large together")
			v.truncate(reasonChars)
			break
		}
		v.res.Documents = append(v.res.Documents, doc)
		if !full {
			full = !v.addDocument(i, t, md)
			if !full || i == 0 {
				shown++
			}
		}
	}
	v.shown(shown)
	v.trim()
}

// addDocument adds a document if there is room for all of it. The first one is
// cut instead of left out.
func (v *renderer) addDocument(i int, t title, md string) bool {
	before := len(v.out)
	if i > 0 {
		v.out = append(v.out, "\n\n"...)
	}
	v.out = append(v.out, "### "...)
	v.out = append(v.out, t.markdown...)
	if md != "" {
		v.out = append(v.out, "\n\n"...)
	}
	if v.room() >= utf8.RuneCountInString(md) {
		v.out = append(v.out, md...)
		return true
	}
	if i > 0 {
		v.cutTo(before)
		return false
	}
	if v.room() < 1 {
		v.cutAll()
	}
	v.addCut(md)
	v.truncate(reasonChars)
	return false
}

// plain shows the selected value as it is.
func (v *renderer) plain() {
	v.heading(plainTitle(v.o.Name))
	if len(v.items) == 0 {
		v.out = append(v.out, "No items."...)
		return
	}
	const open, end = "```json\n", "\n```"
	room := v.room() - len(open) - len(end)
	body, shown := v.plainJSON(room)
	if utf8.RuneCountInString(body) > room {
		head, _ := cutChars(body, max(room-1, 0))
		body = head + ellipsis
		v.truncate(reasonChars)
	}
	v.out = append(v.out, open...)
	v.out = append(v.out, body...)
	v.out = append(v.out, end...)
	v.shown(shown)
}

// plainJSON is the selected value as compact JSON that a fence can hold, with
// as many whole elements as fit into room characters, but at least one.
func (v *renderer) plainJSON(room int) (string, int) {
	if v.res.Meta.Selected == 1 && !v.list {
		return cleanJSON(v.items[0].value, room), 1
	}
	out, left := []byte("["), room-len("[]")
	for i := range v.items {
		s := cleanJSON(v.items[i].value, room)
		if i > 0 {
			left--
		}
		if left -= utf8.RuneCountInString(s); left < 0 && i > 0 {
			return string(append(out, ']')), i
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, s...)
	}
	return string(append(out, ']')), len(v.items)
}

// cleanJSON is compact JSON, long enough for n characters, without anything
// hidden in it. It has one line, which no fence of its own can close.
func cleanJSON(value Value, n int) string {
	return clean(string(appendJSONUpTo(nil, value, textBytes(n))), false)
}
