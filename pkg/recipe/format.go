package recipe

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Characters of a value that are shown when the format does not say, and how
// many elements of a list.
const (
	cellChars     = 200
	documentChars = 2000
	listItems     = 10
)

// countedElements bounds the elements of a list that are looked at behind
// those that are shown, for each cell: a long list may be shown in every cell.
const countedElements = 1000

// An itemView is one item with all a path may ask for.
type itemView struct {
	value Value
	page  *Page // where $ paths are resolved; nil: in root
	root  Value
	index int // #index; negative: not in a list
	local int // position in page
	keyed bool
}

// at gives what a path leads to. A path that can give several values gives a
// list, or the one value there is unless a list is wanted. False: missing.
func (it *itemView) at(p Path, list bool) (Value, bool) {
	if p.Special() != "" {
		switch {
		case it.index < 0:
		case p.Special() == "#index":
			return json.Number(strconv.Itoa(it.index)), true
		case it.keyed:
			return it.page.Key(it.local), true
		}
		return nil, false
	}
	if !p.Multi() {
		if !p.FromRoot() {
			return p.First(it.value)
		}
		if it.page == nil {
			return p.First(it.root)
		}
		if all := it.page.LookupAll(p); len(all) > 0 {
			return all[0], true
		}
		return nil, false
	}
	var all []Value
	switch {
	case !p.FromRoot():
		all = p.Resolve(it.value)
	case it.page == nil:
		all = p.Resolve(it.root)
	default:
		all = it.page.LookupAll(p)
	}
	switch {
	case len(all) == 0:
		return nil, false
	case len(all) == 1 && !list:
		return all[0], true
	}
	return Array(all), true
}

// field gives the raw value of a field.
func (it *itemView) field(f *Field) (Value, bool) {
	return it.at(f.Path, f.Format.Kind == KindList)
}

// A place is where a value is written.
type place struct {
	table  bool   // in a table row: pipes count
	multi  bool   // may have several lines
	indent string // before every further line
	start  bool   // at the start of a line
	chars  int    // default of Format.MaxChars
	raw    bool   // plain text, nothing escaped
	target bool   // raw, and a link is its URL
	base   int    // where the paragraph or cell begins in what is written
}

// A piece is a value as it will be seen, cleaned and cut but not escaped.
type piece struct {
	kind pieceKind
	text string
	url  string // of a link
	bare bool   // a link whose text was not asked for: where nothing can be a link it is its URL
}

type pieceKind uint8

const (
	pieceNone pieceKind = iota // no value: the default is shown
	pieceText
	pieceLink
	pieceCode
)

// A formatter turns values into Markdown. It only holds memory to reuse.
type formatter struct {
	scratch    []byte
	pieces     []piece
	currencies []Path // of fields, by their text
	block      bool   // what was written last is a block that the next text must not join
	nested     bool   // that block is in a quotation or a list of the author
}

// appendField writes a field's value, its default when there is none.
func (w *formatter) appendField(dst []byte, it *itemView, f *Field, pl place) []byte {
	v, _ := it.field(f)
	return w.appendValue(dst, v, &f.Format, it, pl)
}

// appendValue writes v under the options of f.
func (w *formatter) appendValue(dst []byte, v Value, f *Format, it *itemView, pl place) []byte {
	kind := kindFor(v, f.Kind)
	if kind == KindList {
		return w.appendList(dst, v, f, it, pl)
	}
	limit := f.MaxChars
	if limit <= 0 {
		limit = pl.chars
	}
	if kind == KindMarkdown && pl.multi && !pl.raw {
		if s, ok := v.(string); ok {
			return w.appendMarkdown(dst, s, f, limit, pl)
		}
	}
	if f.Prefix == "" && f.Suffix == "" && !pl.start {
		if out, ok := appendDigits(dst, v, kind, f, limit); ok {
			return out
		}
	}
	p := w.piece(v, kind, f, it, limit, pl.multi)
	return appendWrapped(dst, p, f, kind != KindJSON, pl)
}

// appendDigits is the short way for numbers and times, which have nothing to
// clean, to cut or to escape; false: the long way shows the same.
func appendDigits(dst []byte, v Value, kind Kind, f *Format, limit int) ([]byte, bool) {
	from := len(dst)
	switch kind {
	case KindNumber:
		s, ok := scalarText(v)
		if !ok {
			return dst, false
		}
		if dst, ok = appendPadded(dst, s, f); !ok {
			return dst, false
		}
	case KindDate, KindDateTime:
		m, ok := momentOf(v, f.Unit)
		if !ok {
			return dst, false
		}
		if kind == KindDate {
			dst = m.appendDate(dst)
		} else {
			dst = m.appendDateTime(dst)
		}
	default:
		return dst, false
	}
	if len(dst)-from > limit {
		return dst[:from], false
	}
	return dst, true
}

// kindFor chooses the format of a value that has none.
func kindFor(v Value, k Kind) Kind {
	if k != KindAuto {
		return k
	}
	switch v := v.(type) {
	case Object:
		return KindJSON
	case Array:
		for _, e := range v[:min(len(v), countedElements)] {
			switch e.(type) {
			case Array, Object:
				return KindJSON
			}
		}
		return KindList
	}
	return KindText
}

// appendWrapped writes a piece between prefix and suffix, or the default when
// there is no value.
func appendWrapped(dst []byte, p piece, f *Format, wrap bool, pl place) []byte {
	if p.kind == pieceNone {
		return appendPiece(dst, piece{kind: pieceText, text: clean(f.Default, pl.multi)}, pl)
	}
	if !wrap || f.Prefix == "" && f.Suffix == "" {
		return appendPiece(dst, p, pl)
	}
	if f.Prefix != "" {
		dst = appendPiece(dst, piece{kind: pieceText, text: cleanEdge(f.Prefix)}, pl)
		pl.start = false
	}
	at := len(dst)
	if dst = appendPiece(dst, p, pl); at > 0 && at < len(dst) && !pl.raw {
		dst = joinSafely(dst, 0, at, false)
	}
	if f.Suffix != "" {
		pl.start = false
		dst = appendPiece(dst, piece{kind: pieceText, text: cleanEdge(f.Suffix)}, pl)
	}
	return dst
}

// cleanEdge cleans a prefix or suffix, whose outer spaces are meant.
func cleanEdge(s string) string {
	if isClean(s, false) {
		return s
	}
	return strings.Map(func(r rune) rune {
		switch {
		case isLineBreak(r):
			return ' '
		case isHidden(r):
			return -1
		}
		return r
	}, s)
}

// appendPiece escapes a piece for its place.
func appendPiece(dst []byte, p piece, pl place) []byte {
	switch {
	case pl.raw && p.url != "" && (pl.target || p.bare):
		return append(dst, p.url...)
	case pl.raw:
		return append(dst, p.text...)
	case p.kind == pieceCode:
		return appendCode(dst, p.text, pl.table)
	case p.kind == pieceLink:
		dst = append(dst, '[')
		dst = appendText(dst, p.text, "", false, pl.base)
		dst = append(dst, "]("...)
		return append(appendURL(dst, p.url, false), ')')
	}
	return appendText(dst, p.text, pl.indent, pl.start, pl.base)
}

// piece formats one value, not a list.
func (w *formatter) piece(v Value, kind Kind, f *Format, it *itemView, limit int, multi bool) piece {
	if v == nil || v == "" {
		return piece{}
	}
	switch kind {
	case KindNumber, KindInteger:
		if s, ok := scalarText(v); ok {
			if text, ok := formatNumber(s, f); ok {
				return cutPiece(pieceText, text, false, limit, false)
			}
		}
	case KindCurrency, KindPercent:
		if s, ok := scalarText(v); ok {
			if text, ok := formatNumber(s, f); ok {
				unit := "%"
				if kind == KindCurrency {
					unit = w.currency(f.Currency, it)
				}
				if unit != "" {
					text += " " + unit
				}
				return cutPiece(pieceText, text, false, limit, false)
			}
		}
	case KindBytes:
		if s, ok := scalarText(v); ok {
			if text, ok := formatBytes(s); ok {
				return cutPiece(pieceText, text, false, limit, false)
			}
		}
	case KindBoolean:
		if b, ok := truth(v); ok {
			return cutPiece(pieceText, booleanLabel(b, f), false, limit, false)
		}
	case KindDate, KindDateTime:
		if m, ok := momentOf(v, f.Unit); ok {
			var buf [32]byte
			out := buf[:0]
			if kind == KindDate {
				out = m.appendDate(out)
			} else {
				out = m.appendDateTime(out)
			}
			return cutPiece(pieceText, string(out), false, limit, false)
		}
	case KindLink, KindImage:
		if p, ok := w.link(v, kind, f, it, limit); ok {
			return p
		}
	case KindCode:
		text, more := w.text(v, limit)
		return cutPiece(pieceCode, text, more, limit, false)
	case KindJSON:
		text, more := w.json(v, limit)
		return cutPiece(pieceCode, text, more, limit, false)
	case KindHTML:
		if s, ok := v.(string); ok {
			text, more := htmlText(s, limit)
			return cutPiece(pieceText, text, more, limit, multi)
		}
	}
	text, more := w.text(v, limit)
	return cutPiece(pieceText, text, more, limit, multi)
}

// cutPiece cleans and cuts a text. more says that it is already a part.
func cutPiece(kind pieceKind, text string, more bool, limit int, multi bool) piece {
	all := len(text)
	text = atMost(text, limit)
	more = more || len(text) < all
	text = clean(text, multi)
	if text == "" {
		return piece{}
	}
	head, cut := cutChars(text, limit)
	if cut || more {
		head += ellipsis
	}
	return piece{kind: kind, text: head}
}

// scalarText is the text of a string or number.
func scalarText(v Value) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case json.Number:
		return string(v), true
	}
	return "", false
}

// text is a value as text: strings as they are, numbers with their own digits,
// arrays and objects as compact JSON, of which there is enough for limit
// characters; more says that there is still something behind it.
func (w *formatter) text(v Value, limit int) (text string, more bool) {
	switch v := v.(type) {
	case string:
		return v, false
	case json.Number:
		return string(v), false
	case bool:
		return strconv.FormatBool(v), false
	}
	return w.json(v, limit)
}

// json is compact JSON, long enough for limit characters.
func (w *formatter) json(v Value, limit int) (text string, more bool) {
	bound := 16*limit + 256
	w.scratch = appendJSONUpTo(w.scratch[:0], v, bound)
	if len(w.scratch) <= bound {
		return string(w.scratch), false
	}
	return atMost(string(w.scratch), limit), true
}

// appendJSONUpTo is appendValue that stops soon after dst has more than bound
// bytes, so that showing the start of a large value costs little.
func appendJSONUpTo(dst []byte, v Value, bound int) []byte {
	switch v := v.(type) {
	case string:
		return appendStringUpTo(dst, v, bound)
	case Array:
		dst = append(dst, '[')
		for i := 0; i < len(v) && len(dst) <= bound; i++ {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendJSONUpTo(dst, v[i], bound)
		}
		return append(dst, ']')
	case Object:
		dst = append(dst, '{')
		for i := 0; i < len(v) && len(dst) <= bound; i++ {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendStringUpTo(dst, v[i].Key, bound)
			dst = append(dst, ':')
			dst = appendJSONUpTo(dst, v[i].Value, bound)
		}
		return append(dst, '}')
	case nil, bool, json.Number:
		return appendValue(dst, v)
	}
	return append(dst, "null"...) // no Value; data never makes rendering fail
}

func appendStringUpTo(dst []byte, s string, bound int) []byte {
	room := bound - len(dst) + 1
	if room < 0 || len(s) <= room {
		return appendString(dst, s)
	}
	for room > 0 && !utf8.RuneStart(s[room]) {
		room--
	}
	return append(appendString(dst, s[:room]), `…"`...)
}

// truth reads true, false, "true", "false", 1 and 0.
func truth(v Value) (b, ok bool) {
	switch v {
	case true, "true", json.Number("1"):
		return true, true
	case false, "false", json.Number("0"):
		return false, true
	}
	return false, false
}

func booleanLabel(b bool, f *Format) string {
	switch {
	case b && f.True != "":
		return f.True
	case b:
		return "yes"
	case f.False != "":
		return f.False
	}
	return "no"
}

func momentOf(v Value, unit string) (moment, bool) {
	switch v := v.(type) {
	case json.Number:
		return parseNumberMoment(string(v), unit)
	case string:
		return parseTextMoment(v, unit)
	}
	return moment{}, false
}

// link makes a link of a text that is a web or mail address.
func (w *formatter) link(v Value, kind Kind, f *Format, it *itemView, limit int) (piece, bool) {
	s, ok := v.(string)
	if !ok || len(s) > 2*maxLinkURL {
		return piece{}, false
	}
	url := strings.Trim(s, " \t\r\n")
	if !linkable(url) {
		return piece{}, false
	}
	if f.Text != nil {
		if label, ok := it.at(*f.Text, false); ok && label != nil {
			text, more := w.text(label, limit)
			if p := cutPiece(pieceLink, text, more, limit, false); p.kind == pieceLink {
				p.url = url
				return p, true
			}
		}
	}
	text := url
	if kind == KindImage {
		text = "image"
	}
	p := cutPiece(pieceLink, text, false, limit, false)
	p.url, p.bare = url, kind == KindImage
	return p, p.kind == pieceLink
}

// maxCurrencyChars bounds the code of a currency that comes from a value.
const maxCurrencyChars = 20

// currency is the code of a currency: the recipe's own, or what its path leads
// to. A code of three letters is shown in capitals, as the standard has it.
func (w *formatter) currency(code string, it *itemView) string {
	if code != "" && (code[0] == '@' || code[0] == '$') {
		v, _ := it.at(w.currencyPath(code), false)
		text, ok := scalarText(v)
		if !ok {
			return ""
		}
		code = cutPiece(pieceText, text, false, maxCurrencyChars, false).text
	}
	if len(code) == 3 && isAll(code, asciiLetter) {
		return strings.ToUpper(code)
	}
	return code
}

// currencyPath is the path a currency is written as. A recipe has few.
func (w *formatter) currencyPath(text string) Path {
	for i := range w.currencies {
		if w.currencies[i].text == text {
			return w.currencies[i]
		}
	}
	p, err := ParsePath(text)
	if err != nil {
		p = Path{text: text, special: text} // leads nowhere; Parse refuses such a recipe
	}
	w.currencies = append(w.currencies, p)
	return p
}
