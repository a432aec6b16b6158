package recipe

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"
)

// valueFacts are what the values of a column have in common.
type valueFacts struct {
	numeric  bool // numbers, or texts that are all numbers
	flag     bool // booleans
	url      bool // http or https
	api      bool // URLs of the API itself
	markup   bool // HTML tags inside
	tags     bool // tags or entities that certainly are HTML
	long     bool // mostly over 200 characters
	wide     bool // some over 80 bytes
	same     bool // all alike
	random   bool // hashes, base64
	secret   bool // written like a credential
	template bool // URLs with {…}
	image    bool // URLs of pictures
	percent  bool // numbers under a key that says so
	date     Kind // KindDate or KindDateTime, else ""
}

// Words of keys whose numbers are not quantities.
var codeWords = nameSet("id", "ids", "uuid", "phone", "tel", "zip", "postal", "postcode", "code", "version", "lat", "lon", "lng",
	"latitude", "longitude", "reclat", "reclong", "year", "port", "number", "isbn", "ean", "gtin", "upc", "sku", "key", "date")

// Words of keys whose large numbers are moments.
var timeWords = nameSet("t", "time", "times", "timestamp", "date", "at", "ts", "dt", "created", "updated", "modified", "published",
	"epoch", "sunrise", "sunset", "expires", "expiry", "start", "end", "since", "until", "utc", "datetime", "on", "started", "ended")

func look(keys []string, vs []Value) valueFacts {
	if len(vs) == 0 {
		return valueFacts{}
	}
	last := keys[len(keys)-1]
	var numbers, flags, texts, digits, urls, markups, tags, other, longs, wides, hashes, templates, images, apis, secrets int
	same := true
	for _, v := range vs {
		same = same && sampleText(v) == sampleText(vs[0])
		switch v := v.(type) {
		case json.Number:
			numbers++
		case bool:
			flags++
		case string:
			texts++
			longs += count(tooLong(v))
			wides += count(len(v) > 80)
			s := v[:min(len(v), deriveText)]
			digits += count(isNumeric(v))
			markups += count(hasMarkup(s))
			tags += count(isHTML(s))
			other += count(strings.Contains(s, "<") && !isHTML(s))
			hashes += count(isRandom(v))
			secrets += count(looksSecret(v))
			if isWebURL(v) {
				urls++
				templates += count(strings.Contains(s, "{"))
				images += count(isPicture(v))
				apis += count(strings.Contains(s, "://api.") || strings.Contains(s, "/api/") || strings.Contains(s, "/rest/"))
			}
		}
	}
	n := len(vs)
	percent := slices.ContainsFunc(keyWords(last), func(w string) bool { return w == "percent" || w == "percentage" || w == "pct" })
	return valueFacts{
		percent:  percent && numbers+digits == n,
		numeric:  numbers+digits == n,
		flag:     flags == n,
		url:      urls*2 > n && texts == n,
		api:      apis > 0,
		markup:   markups > 0,
		tags:     tags > 0 && other == 0,
		long:     longs*2 > n,
		wide:     wides > 0,
		same:     same,
		random:   hashes*2 > n,
		secret:   secrets > 0,
		template: templates > 0 && templates == urls,
		image:    images > 0 && images*2 > urls,
		date:     dateKind(last, vs),
	}
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

// format is step four for one column.
func (f valueFacts) format(c draftColumn) Kind {
	w := keyWords(c.keys[len(c.keys)-1])
	code := slices.ContainsFunc(w, func(s string) bool { return codeWords[s] })
	switch {
	case c.list:
		return KindList
	case f.url:
		return KindLink
	case f.date != "":
		return f.date
	case f.flag:
		return KindBoolean
	case f.percent:
		return KindPercent
	case f.numeric && !code && c.rank != rankID && c.rank != rankForeign:
		return KindNumber
	case f.tags:
		return KindHTML
	default:
		return KindAuto
	}
}

// format is that of the column in what was gathered: amounts have a currency,
// sizes of files are bytes.
func (g *gatherer) format(c draftColumn) Kind {
	kind := c.facts.format(c)
	if kind != KindNumber {
		return kind
	}
	w := keyWords(c.keys[len(c.keys)-1])
	end := ""
	if len(w) > 0 {
		end = w[len(w)-1]
	}
	switch {
	case c.currency != "":
		return KindCurrency
	case (end == "bytes" || end == "filesize" || end == "size" && g.files) && areWhole(c.values):
		return KindBytes
	}
	return kind
}

// areWhole reports whether all values are whole numbers and none is below
// zero.
func areWhole(vs []Value) bool {
	return !slices.ContainsFunc(vs, func(v Value) bool { return strings.Trim(sampleText(v), "0123456789") != "" || sampleText(v) == "" })
}

// dateKind says whether the values are dates or moments: KindDate when every
// one is a date or midnight. Numbers count only under a key that says time.
func dateKind(key string, vs []Value) Kind {
	timely := slices.ContainsFunc(keyWords(key), func(s string) bool { return timeWords[s] })
	kind := KindDate
	for _, v := range vs {
		switch v := v.(type) {
		case json.Number:
			if !timely || !isEpoch(string(v)) {
				return ""
			}
			kind = KindDateTime
		case string:
			switch {
			case timely && isEpoch(v):
				kind = KindDateTime
			case isMailDate(v):
				kind = KindDateTime
			default:
				switch isoDate(v) {
				case "":
					return ""
				case KindDateTime:
					kind = KindDateTime
				}
			}
		default:
			return ""
		}
	}
	return kind
}

// isoDate reads 2026-01-31 and 2026-01-31T10:15… by their shape.
func isoDate(s string) Kind {
	if len(s) < 10 || len(s) > 40 || !shaped(s[:10], "0000-00-00") {
		return ""
	}
	rest := s[10:]
	switch {
	case rest == "":
		return KindDate
	case len(rest) < 6 || rest[0] != 'T' && rest[0] != 't' && rest[0] != ' ' || !shaped(rest[1:6], "00:00"):
		return ""
	case strings.HasPrefix(rest[1:], "00:00:00") && strings.Trim(rest[9:], ".0Zz+:-") == "":
		return KindDate
	default:
		return KindDateTime
	}
}

// shaped reports whether s has digits where the shape has 0, and the shape's
// own characters elsewhere.
func shaped(s, shape string) bool {
	if len(s) != len(shape) {
		return false
	}
	for i := 0; i < len(s); i++ {
		if shape[i] == '0' && !digitByte(s[i]) || shape[i] != '0' && s[i] != shape[i] {
			return false
		}
	}
	return true
}

// isMailDate recognises Fri, 24 May 2019 17:44:46 +0000 and its cousins that
// start with the day and have a clock time.
func isMailDate(s string) bool {
	if len(s) < 20 || len(s) > 60 {
		return false
	}
	days := []string{"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"}
	if !slices.Contains(days, s[:3]) {
		return false
	}
	for i := 3; i+8 <= len(s); i++ {
		if shaped(s[i:i+8], "00:00:00") {
			return true
		}
	}
	return false
}

// isEpoch reports whether digits are a moment between 2001 and 2100, in
// seconds (a fraction allowed) or milliseconds.
func isEpoch(s string) bool {
	whole, fraction, _ := strings.Cut(s, ".")
	if strings.Trim(whole+fraction, "0123456789") != "" || len(fraction) > 9 {
		return false
	}
	return len(whole) == 10 && whole < "4102444800" || len(whole) == 13 && whole < "4102444800000" && whole >= "1000000000000"
}

// isNumeric reports whether a text is a plain decimal number.
func isNumeric(s string) bool {
	s = strings.TrimPrefix(s, "-")
	if len(s) == 0 || len(s) > 40 {
		return false
	}
	whole, fraction, dot := strings.Cut(s, ".")
	if whole == "" || dot && fraction == "" {
		return false
	}
	return strings.Trim(whole+fraction, "0123456789") == "" && (len(whole) == 1 || whole[0] != '0')
}

func isWebURL(s string) bool {
	return (strings.HasPrefix(s, "http://") || strings.HasPrefix(s, "https://")) && !strings.ContainsAny(s[:min(len(s), deriveText)], " \n\t")
}

func isPicture(s string) bool {
	s, _, _ = strings.Cut(s[:min(len(s), 2000)], "?")
	s = strings.ToLower(s)
	return slices.ContainsFunc([]string{".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp", ".ico"}, func(end string) bool {
		return strings.HasSuffix(s, end)
	})
}

func hasMarkup(s string) bool {
	for i := 0; i+2 < len(s); i++ {
		if s[i] == '<' && (s[i+1] == '/' || s[i+1] >= 'a' && s[i+1] <= 'z') && strings.IndexByte(s[i:], '>') > 0 {
			return true
		}
	}
	return false
}

// Tags that only HTML has, or the markup of articles. A "<" in a title may be
// anything: vector<int> must stay.
var htmlTags = nameSet("p", "br", "a", "b", "i", "em", "strong", "div", "span", "ul", "ol", "li", "h1", "h2", "h3", "h4", "code", "pre",
	"table", "td", "tr", "sub", "sup", "blockquote", "u", "small")

// isHTML reports whether a text has a known tag or an entity.
func isHTML(s string) bool {
	for i := 0; i < len(s); i++ {
		switch rest := s[i:]; s[i] {
		case '<':
			rest = strings.TrimPrefix(rest[1:], "/")
			end := strings.IndexFunc(rest, func(r rune) bool { return r == '>' || r == ' ' || r == '/' })
			if end > 0 && (htmlTags[strings.ToLower(rest[:end])] || strings.HasPrefix(rest, "jats:")) && strings.IndexByte(rest, '>') > 0 {
				return true
			}
		case '&':
			for _, e := range []string{"&amp;", "&lt;", "&gt;", "&quot;", "&nbsp;", "&apos;", "&#"} {
				if strings.HasPrefix(rest, e) && (e != "&#" || len(rest) > 3 && strings.IndexByte(rest[:min(len(rest), 9)], ';') > 2) {
					return true
				}
			}
		}
	}
	return false
}

func tooLong(s string) bool {
	return len(s) > 200 && utf8.RuneCountInString(s[:min(len(s), 1000)]) > 200
}

// isRandom recognises hashes and base64: long, one word, no letters a person
// would read. A UUID is not one.
func isRandom(s string) bool {
	if len(s) < 32 || strings.ContainsAny(s[:min(len(s), deriveText)], " \n") {
		return false
	}
	s = s[:min(len(s), deriveText)]
	if allHex(s) {
		return true
	}
	if len(s) < 40 {
		return false
	}
	var upper, lower, digit bool
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c >= 'A' && c <= 'Z':
			upper = true
		case c >= 'a' && c <= 'z':
			lower = true
		case digitByte(c):
			digit = true
		case c == '+' || c == '/' || c == '=' || c == '_' || c == '-':
		default:
			return false
		}
	}
	return upper && lower && digit
}

func allHex(s string) bool {
	return s != "" && strings.Trim(s, "0123456789abcdefABCDEF") == ""
}

func allNumbers(vs []Value) bool {
	return !slices.ContainsFunc(vs, func(v Value) bool {
		switch v.(type) {
		case json.Number, bool:
			return false
		default:
			return true
		}
	})
}

func singleValue(v Value) bool {
	switch v.(type) {
	case Array, Object:
		return false
	default:
		return true
	}
}

func sampleKind(v Value) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case json.Number:
		return "number"
	case string:
		return "string"
	default:
		return "structure"
	}
}

// sampleText is the text of a single value, for comparing; structures have
// none.
func sampleText(v Value) string {
	switch v := v.(type) {
	case json.Number:
		return string(v)
	case string:
		return v
	case bool:
		if v {
			return "true"
		}
		return "false"
	default:
		return ""
	}
}

func isFullString(v Value) bool {
	s, ok := v.(string)
	return ok && s != ""
}

func digitByte(c byte) bool { return c >= '0' && c <= '9' }
