package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"unicode/utf8"
)

// spellings are v and what common encoders make of it, and for each of those
// what Base64 and hex make of it again. Escapes need no second level: the
// scrubber undoes them in the text. All slices are copies that the caller may
// keep and clear.
func spellings(v []byte) [][]byte {
	first := [][]byte{append([]byte(nil), v...)}
	for _, e := range escapes {
		if p := escape(v, e); string(p) != string(v) {
			first = append(first, p)
		}
	}
	first = append(first, dense(v)...)
	first = append(first, ends(v)...)
	all := first
	for _, p := range first {
		all = append(all, dense(p)...)
	}
	return all
}

// dense is v in the encodings that hide every character: hex in both cases, and
// Base64 in both alphabets at the three offsets that v can have in longer data.
func dense(v []byte) [][]byte {
	lower := hex.AppendEncode(nil, v)
	out := [][]byte{lower, upperHex(lower)}
	for shift := range 3 {
		padded := append(make([]byte, shift), v...)
		// The characters that also hold bits of a neighbour are not stable.
		from, to := (shift*8+5)/6, len(padded)*8/6
		std := base64.StdEncoding.AppendEncode(nil, padded)[from:to]
		url := base64.URLEncoding.AppendEncode(nil, padded)[from:to]
		out = append(out, std)
		if string(std) != string(url) {
			out = append(out, url)
		}
		clear(padded)
	}
	return out
}

// ends is v in Base64 at the end of longer data or as all of it, where the last
// character holds no bits of a neighbour: the user and password of Basic, as
// they are sent. Without these forms a part of the last byte would stay behind.
func ends(v []byte) (out [][]byte) {
	for shift := range 3 {
		padded := append(make([]byte, shift), v...)
		if rest := len(padded) % 3; rest != 0 {
			for _, e := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
				whole := e.AppendEncode(nil, padded)[(shift*8+5)/6:]
				out = append(out, whole, bytes.Clone(whole[:len(whole)-3+rest]))
			}
		}
		clear(padded)
	}
	return out
}

func upperHex(lower []byte) []byte {
	out := make([]byte, len(lower))
	for i, c := range lower {
		if c >= 'a' {
			c -= 'a' - 'A'
		}
		out[i] = c
	}
	return out
}

// An escaper appends the spelling of one character; ok is false when it leaves
// the character alone.
type escaper func(out []byte, r rune) (_ []byte, ok bool)

// escapes are what is commonly put into Base64 or hex: a query, a JSON document,
// a page. Which characters are spared differs between libraries.
var escapes = []escaper{
	percent("-_.~", '+'),          // queries and forms
	percent("-_.~", 0),            // RFC 3986
	percent("-_.!~*'()", 0),       // encodeURIComponent
	percent("-_.~$&+:=@", 0),      // a path's segment
	percent("-_.~/", 0),           // Python's quote
	jsonText(false, false, ""),    // the least that JSON asks for
	jsonText(false, true, ""),     // with \/
	jsonText(true, false, ""),     // non-ASCII as \u
	jsonText(true, true, ""),      // both
	jsonText(false, false, "<>&"), // safe inside HTML
	codeUnits,                     // everything as \u
	entityText("&#34;", "&#39;"),
	entityText("&quot;", "&#x27;"),
	entityText("&quot;", "&#039;"),
}

func escape(v []byte, e escaper) []byte {
	out := make([]byte, 0, len(v)*6)
	for i := 0; i < len(v); {
		r, size := utf8.DecodeRune(v[i:])
		var ok bool
		if r == utf8.RuneError && size == 1 {
			out = append(out, v[i])
		} else if out, ok = e(out, r); !ok {
			out = append(out, v[i:i+size]...)
		}
		i += size
	}
	return out
}

func alphanumeric(r rune) bool {
	return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
}

func percent(spared string, space byte) escaper {
	return func(out []byte, r rune) ([]byte, bool) {
		if alphanumeric(r) || contains(spared, r) {
			return out, false
		}
		if r == ' ' && space != 0 {
			return append(out, space), true
		}
		var b [utf8.UTFMax]byte
		for _, c := range b[:utf8.EncodeRune(b[:], r)] {
			out = append(out, '%', upperDigits[c>>4], upperDigits[c&15])
		}
		return out, true
	}
}

const upperDigits = "0123456789ABCDEF"

func jsonText(ascii, slash bool, also string) escaper {
	return func(out []byte, r rune) ([]byte, bool) {
		switch {
		case r == '"' || r == '\\' || slash && r == '/':
			return append(out, '\\', byte(r)), true
		case r < 0x20 || ascii && r > 0x7e || contains(also, r):
			return codeUnits(out, r)
		}
		return out, false
	}
}

func codeUnits(out []byte, r rune) ([]byte, bool) {
	if r > 0xFFFF {
		r -= 0x10000
		return fmt.Appendf(out, `\u%04x\u%04x`, 0xD800+(r>>10), 0xDC00+(r&0x3FF)), true
	}
	return fmt.Appendf(out, `\u%04x`, r), true
}

func entityText(quote, apostrophe string) escaper {
	return func(out []byte, r rune) ([]byte, bool) {
		switch r {
		case '&':
			return append(out, "&amp;"...), true
		case '<':
			return append(out, "&lt;"...), true
		case '>':
			return append(out, "&gt;"...), true
		case '"':
			return append(out, quote...), true
		case '\'':
			return append(out, apostrophe...), true
		}
		return out, false
	}
}

func contains(set string, r rune) bool {
	for _, c := range set {
		if c == r {
			return true
		}
	}
	return false
}
