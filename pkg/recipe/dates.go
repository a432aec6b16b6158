package recipe

import (
	"strings"
	"time"
)

// A moment is a date as it was written: its own fields, its own offset.
// Nothing is converted and no clock or zone database is asked.
type moment struct {
	year, month, day     int
	hour, minute, second int
	hasTime              bool
	zone                 zoneKind
	offset               int // minutes east of UTC, of zoneOffset
}

type zoneKind uint8

const (
	zoneNone zoneKind = iota
	zoneUTC
	zoneOffset
)

// appendDate writes YYYY-MM-DD.
func (m *moment) appendDate(dst []byte) []byte {
	dst = append(dst, byte('0'+m.year/1000), byte('0'+m.year/100%10))
	dst = append2(dst, m.year%100)
	dst = append2(append(dst, '-'), m.month)
	return append2(append(dst, '-'), m.day)
}

// appendDateTime writes YYYY-MM-DD HH:MM:SS and the zone, as far as the value
// has them.
func (m *moment) appendDateTime(dst []byte) []byte {
	dst = m.appendDate(dst)
	if !m.hasTime {
		return dst
	}
	dst = append2(append(dst, ' '), m.hour)
	dst = append2(append(dst, ':'), m.minute)
	dst = append2(append(dst, ':'), m.second)
	switch m.zone {
	case zoneUTC:
		dst = append(dst, " UTC"...)
	case zoneOffset:
		sign, off := byte('+'), m.offset
		if off < 0 {
			sign, off = '-', -off
		}
		dst = append2(append(dst, ' ', sign), off/60)
		dst = append2(append(dst, ':'), off%60)
	}
	return dst
}

func append2(dst []byte, n int) []byte { return append(dst, byte('0'+n/10), byte('0'+n%10)) }

// valid checks the fields against the calendar.
func (m *moment) valid() bool {
	if m.year < 1 || m.month < 1 || m.month > 12 || m.day < 1 || m.day > daysIn(m.year, m.month) {
		return false
	}
	return m.hour < 24 && m.minute < 60 && m.second <= 60 // 60: a leap second
}

func daysIn(year, month int) int {
	switch month {
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	}
	return 31
}

// setZone takes an offset of UTC for what it is.
func (m *moment) setZone(minutes int) {
	m.zone, m.offset = zoneOffset, minutes
	if minutes == 0 {
		m.zone = zoneUTC
	}
}

// Range of epoch numbers that are dates: 1970 to 9999, in seconds.
const maxEpochSeconds = 253402300799

// parseEpoch reads seconds, milliseconds or microseconds since 1970. unit is
// "s", "ms", "us", or "" to decide by size for each value, since APIs mix them
// in one object. Without a unit, what reads as a year or as YYYYMMDD is none.
func parseEpoch(s, unit string) (moment, bool) {
	whole, frac, _ := strings.Cut(s, ".")
	n, ok := epochDigits(whole)
	if !ok || digitsOf(frac) != len(frac) {
		return moment{}, false
	}
	if unit == "" {
		if n >= 1000 && n <= 9999 || len(whole) == 8 && isCompactDate(n) {
			return moment{}, false
		}
		switch {
		case n < 1e11:
			unit = "s"
		case n < 1e14:
			unit = "ms"
		default:
			unit = "us"
		}
	}
	switch unit {
	case "ms":
		n /= 1e3
	case "us":
		n /= 1e6
	}
	if n > maxEpochSeconds {
		return moment{}, false
	}
	t := time.Unix(n, 0).UTC()
	return moment{
		year: t.Year(), month: int(t.Month()), day: t.Day(),
		hour: t.Hour(), minute: t.Minute(), second: t.Second(), hasTime: true, zone: zoneUTC,
	}, true
}

// epochDigits reads at most 18 digits without leading zeros.
func epochDigits(s string) (int64, bool) {
	if s == "" || len(s) > 18 || len(s) > 1 && s[0] == '0' {
		return 0, false
	}
	var n int64
	for i := 0; i < len(s); i++ {
		if !asciiDigit(s[i]) {
			return 0, false
		}
		n = n*10 + int64(s[i]-'0')
	}
	return n, true
}

// isCompactDate reports whether eight digits are a date of the years 1900 to
// 2099: as seconds they would all be days of 1970 that nobody means.
func isCompactDate(n int64) bool {
	m := moment{year: int(n / 10000), month: int(n / 100 % 100), day: int(n % 100)}
	return m.year >= 1900 && m.year < 2100 && m.valid()
}

// parseNumberMoment reads a JSON number as epoch time, 1.7e9 included.
func parseNumberMoment(s, unit string) (moment, bool) {
	if strings.ContainsAny(s, "eE") {
		d, huge, ok := parseDecimal(s)
		if !ok || huge || d.neg || d.exp > maxPlainExponent {
			return moment{}, false
		}
		s = string(d.appendTo(nil, false))
	}
	if s == "-0" {
		s = "0"
	}
	return parseEpoch(s, unit)
}

// parseTextMoment reads the spellings of dates that APIs use. Anything else is
// no date, whatever it may mean to someone.
func parseTextMoment(s, unit string) (moment, bool) {
	if len(s) > 200 {
		return moment{}, false
	}
	if s = strings.TrimSpace(s); s == "" {
		return moment{}, false
	}
	c := &dateCursor{s: s}
	switch {
	case asciiDigit(s[0]) && digitsOf(s) == 4 && strings.HasPrefix(s[4:], "-"):
		return c.iso()
	case asciiDigit(s[0]) && digitsOf(s) <= 2:
		return c.mail()
	case asciiDigit(s[0]):
		return parseEpoch(s, unit)
	}
	if c.name(weekdays) < 0 {
		return moment{}, false
	}
	if c.skip(",") {
		c.space()
		return c.mail()
	}
	if !c.space() {
		return moment{}, false
	}
	return c.unix()
}

const (
	weekdays = "monday tuesday wednesday thursday friday saturday sunday"
	months   = "january february march april may june july august september october november december"
)

// A dateCursor reads a date from left to right. Its methods say whether they
// found what they look for and move past it.
type dateCursor struct {
	s string
	m moment
}

func (c *dateCursor) skip(prefix string) bool {
	rest, ok := strings.CutPrefix(c.s, prefix)
	c.s = rest
	return ok
}

func (c *dateCursor) space() bool {
	rest := strings.TrimLeft(c.s, " ")
	ok := len(rest) < len(c.s)
	c.s = rest
	return ok
}

// digits reads a number of from to to digits.
func (c *dateCursor) digits(from, to int, into *int) bool {
	n := digitsOf(c.s)
	if n < from || n > to {
		return false
	}
	*into = 0
	for i := 0; i < n; i++ {
		*into = *into*10 + int(c.s[i]-'0')
	}
	c.s = c.s[n:]
	return true
}

// name reads an English name of the list, whole or its first three letters, in
// any case, and returns its place in the list; -1 if there is none.
func (c *dateCursor) name(list string) int {
	n := 0
	for n < len(c.s) && asciiLetter(c.s[n]) {
		n++
	}
	for i, full := range strings.Fields(list) {
		if strings.EqualFold(c.s[:n], full) || strings.EqualFold(c.s[:n], full[:3]) {
			c.s = c.s[n:]
			return i
		}
	}
	return -1
}

func (c *dateCursor) month() bool {
	c.m.month = c.name(months) + 1
	return c.m.month > 0
}

// done returns the date if all of the text was read and it is in the calendar.
func (c *dateCursor) done(ok bool) (moment, bool) {
	return c.m, ok && c.s == "" && c.m.valid()
}

// clock reads HH:MM, seconds and a fraction of them, which is dropped.
func (c *dateCursor) clock() bool {
	c.m.hasTime = true
	if !c.digits(2, 2, &c.m.hour) || !c.skip(":") || !c.digits(2, 2, &c.m.minute) {
		return false
	}
	if !c.skip(":") {
		return true
	}
	if !c.digits(2, 2, &c.m.second) {
		return false
	}
	if c.skip(".") || c.skip(",") {
		n := digitsOf(c.s)
		c.s = c.s[n:]
		return n > 0
	}
	return true
}

// offset reads ±HH:MM, ±HHMM or ±HH.
func (c *dateCursor) offset() bool {
	sign := 1
	if !c.skip("+") {
		if sign = -1; !c.skip("-") {
			return false
		}
	}
	var hours, minutes int
	if n := digitsOf(c.s); n == 4 {
		c.digits(4, 4, &hours)
		hours, minutes = hours/100, hours%100
	} else if !c.digits(2, 2, &hours) || c.skip(":") && !c.digits(2, 2, &minutes) {
		return false
	}
	c.m.setZone(sign * (hours*60 + minutes))
	return hours < 24 && minutes < 60
}

// zone reads an offset or a name that has one in RFC 2822.
func (c *dateCursor) zoneName() bool {
	for _, name := range []string{"GMT", "UTC", "UT", "Z"} {
		if len(c.s) >= len(name) && strings.EqualFold(c.s[:len(name)], name) {
			c.s = c.s[len(name):]
			c.m.setZone(0)
			return true
		}
	}
	american := [...]string{"EDT", "EST", "CDT", "CST", "MDT", "MST", "PDT", "PST"}
	for i, name := range american {
		if c.skip(name) {
			c.m.setZone(-60 * (4 + (i+1)/2))
			return true
		}
	}
	return c.offset()
}

// iso reads RFC 3339 and its cousins: a date alone, a space for the T, offsets
// without a colon, no offset at all.
func (c *dateCursor) iso() (moment, bool) {
	ok := c.digits(4, 4, &c.m.year) && c.skip("-") && c.digits(2, 2, &c.m.month) && c.skip("-") && c.digits(2, 2, &c.m.day)
	if !ok || c.s == "" {
		return c.done(ok)
	}
	if !c.skip("T") && !c.skip("t") && !c.space() {
		return c.done(false)
	}
	if !c.clock() {
		return c.done(false)
	}
	if c.s == "" {
		return c.done(true)
	}
	c.space()
	return c.done(c.zoneName())
}

// mail reads what follows the weekday in RFC 1123 and 2822:
// "24 May 2019 17:44:46 +0000".
func (c *dateCursor) mail() (moment, bool) {
	ok := c.digits(1, 2, &c.m.day) && c.space() && c.month() && c.space() && c.digits(4, 4, &c.m.year)
	if !ok || c.s == "" {
		return c.done(ok)
	}
	if !c.space() || !c.clock() {
		return c.done(false)
	}
	return c.ending()
}

// ending reads an optional zone and an optional remark in parentheses.
func (c *dateCursor) ending() (moment, bool) {
	c.space()
	if c.s != "" {
		if !c.zoneName() {
			return c.done(false)
		}
		if c.m.zone == zoneUTC && (strings.HasPrefix(c.s, "+") || strings.HasPrefix(c.s, "-")) && !c.offset() {
			return c.done(false) // GMT+0000
		}
	}
	c.space()
	if strings.HasPrefix(c.s, "(") && strings.HasSuffix(c.s, ")") {
		c.s = ""
	}
	return c.done(true)
}

// unix reads what follows the weekday in "Thu Apr 06 15:28:43 +0000 2017" and
// in "Wed Jan 25 2017 19:23:35 GMT+0000 (UTC)".
func (c *dateCursor) unix() (moment, bool) {
	if !c.month() || !c.space() || !c.digits(1, 2, &c.m.day) || !c.space() {
		return c.done(false)
	}
	if digitsOf(c.s) == 4 {
		if !c.digits(4, 4, &c.m.year) || !c.space() || !c.clock() {
			return c.done(false)
		}
		return c.ending()
	}
	if !c.clock() || !c.space() {
		return c.done(false)
	}
	if digitsOf(c.s) == 0 && (!c.zoneName() || !c.space()) {
		return c.done(false)
	}
	return c.done(c.digits(4, 4, &c.m.year))
}
