package redact

import (
	"bytes"
	"unicode/utf8"
)

// A view is a way of reading a text: where a token may start, and what one means.
// token writes what the start of b means into dst and returns how many bytes that
// is and how many bytes of b it stands for; size 0: no token begins here.
type view struct {
	starts [256]bool
	token  func(dst *[utf8.UTFMax]byte, b []byte) (n, size int)
}

var (
	// unescape undoes one layer of escapes, whatever they are for.
	unescape = view{only(`%\&`), escaped}
	// squeeze drops white space.
	squeeze = view{only(" \t\r\n\f\v"), func(*[utf8.UTFMax]byte, []byte) (int, int) { return 0, 1 }}
)

func only(chars string) (t [256]bool) {
	for _, c := range []byte(chars) {
		t[c] = true
	}
	return t
}

// read returns text as v reads it; changed is false, and the result text itself,
// when that makes no difference.
func (v *view) read(text []byte) (out []byte, changed bool) {
	var dst [utf8.UTFMax]byte
	at := 0 // text up to here is in out
	for i := 0; i < len(text); {
		if !v.starts[text[i]] {
			i++
			continue
		}
		n, size := v.token(&dst, text[i:])
		if size == 0 {
			i++
			continue
		}
		if out == nil {
			out = make([]byte, 0, len(text))
		}
		out = append(append(out, text[at:i]...), dst[:n]...)
		i += size
		at = i
	}
	if out == nil {
		return text, false
	}
	return append(out, text[at:]...), true
}

// trace is read with the part of text that each byte of the result came from.
func (v *view) trace(text []byte) (out []byte, from []span) {
	var dst [utf8.UTFMax]byte
	for i := 0; i < len(text); {
		n, size := 0, 0
		if v.starts[text[i]] {
			n, size = v.token(&dst, text[i:])
		}
		if size == 0 {
			dst[0], n, size = text[i], 1, 1
		}
		out = append(out, dst[:n]...)
		for range n {
			from = append(from, span{i, i + size})
		}
		i += size
	}
	return out, from
}

func escaped(dst *[utf8.UTFMax]byte, b []byte) (n, size int) {
	switch b[0] {
	case '%':
		if c, ok := hexNumber(b, 1, 2); ok {
			dst[0] = byte(c)
			return 1, 3
		}
	case '&':
		if r, size := entity(b); size > 0 {
			return utf8.EncodeRune(dst[:], r), size
		}
	case '\\':
		return backslash(dst, b)
	}
	return 0, 0
}

// controls are what a backslash and a letter mean.
var controls = map[byte]byte{'n': '\n', 'r': '\r', 't': '\t', 'f': '\f', 'v': '\v', 'b': '\b'}

func backslash(dst *[utf8.UTFMax]byte, b []byte) (n, size int) {
	if len(b) < 2 {
		return 0, 0
	}
	switch c := b[1]; c {
	case 'n', 'r', 't', 'f', 'v', 'b':
		dst[0] = controls[c]
		return 1, 2
	case '/', '\\', '"', '\'':
		dst[0] = c
		return 1, 2
	case 'x':
		if c, ok := hexNumber(b, 2, 2); ok {
			dst[0] = byte(c)
			return 1, 4
		}
	case 'U':
		if r, ok := hexNumber(b, 2, 8); ok {
			return utf8.EncodeRune(dst[:], r), 10
		}
	case 'u':
		r, ok := hexNumber(b, 2, 4)
		if !ok {
			break
		}
		if r >= 0xD800 && r < 0xDC00 && bytes.HasPrefix(b[6:], []byte(`\u`)) {
			if low, ok := hexNumber(b, 8, 4); ok && low >= 0xDC00 && low < 0xE000 {
				return utf8.EncodeRune(dst[:], (r-0xD800)<<10|(low-0xDC00)+0x10000), 12
			}
		}
		return utf8.EncodeRune(dst[:], r), 6
	}
	return 0, 0
}

// entities are the names that encoders write for the characters that mean
// something in HTML and XML.
var entities = []struct {
	name string
	r    rune
}{{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}, {"&nbsp;", ' '}}

// entity reads a character reference; size 0: it is none.
func entity(b []byte) (r rune, size int) {
	for _, e := range entities {
		if len(b) >= len(e.name) && string(b[:len(e.name)]) == e.name {
			return e.r, len(e.name)
		}
	}
	if len(b) < 4 || b[1] != '#' {
		return 0, 0
	}
	const longest = 10 // digits; "&#x0010FFFF;" is as long as sense goes
	base, start := rune(10), 2
	if b[2] == 'x' || b[2] == 'X' {
		base, start = 16, 3
	}
	for i := start; i < len(b) && i-start <= longest; i++ {
		if b[i] == ';' && i > start {
			return r, i + 1
		}
		d, ok := digit(b[i])
		if !ok || d >= base {
			return 0, 0
		}
		if r = r*base + d; r > utf8.MaxRune {
			return 0, 0
		}
	}
	return 0, 0
}

func hexNumber(b []byte, at, digits int) (rune, bool) {
	if len(b) < at+digits {
		return 0, false
	}
	var r rune
	for _, c := range b[at : at+digits] {
		d, ok := digit(c)
		if !ok {
			return 0, false
		}
		r = r<<4 | d
	}
	return r, true
}

func digit(c byte) (rune, bool) {
	switch {
	case c >= '0' && c <= '9':
		return rune(c - '0'), true
	case c >= 'a' && c <= 'f':
		return rune(c-'a') + 10, true
	case c >= 'A' && c <= 'F':
		return rune(c-'A') + 10, true
	}
	return 0, false
}
