package recipe

import (
	"math/big"
	"strconv"
	"strings"
)

// Numbers are never floats here: a literal is a sign, digits and a power of
// ten, and rounding and scaling work on the digits.

// maxPlainExponent is the largest power of ten a literal may carry and still
// be written out in full.
const maxPlainExponent = 20

// maxScaledDigits bounds exact multiplication; longer literals are shown as
// they came.
const maxScaledDigits = 1000

// maxNumberBytes bounds what is read as a number at all; it could not be shown.
const maxNumberBytes = 1 << 16

// A decimal is digits × 10^exp, negated if neg. digits has at least one digit
// and may start with zeros.
type decimal struct {
	neg    bool
	digits string
	exp    int
}

// parseDecimal reads a number in the spelling of JSON. big says that the
// literal's own exponent is beyond ±20.
func parseDecimal(s string) (d decimal, big, ok bool) {
	rest := s
	if rest, d.neg = strings.CutPrefix(rest, "-"); rest == "" {
		return d, false, false
	}
	whole := digitsOf(rest)
	if whole == 0 || whole > 1 && rest[0] == '0' {
		return d, false, false
	}
	d.digits, rest = rest[:whole], rest[whole:]
	if strings.HasPrefix(rest, ".") {
		n := digitsOf(rest[1:])
		if n == 0 {
			return d, false, false
		}
		d.digits, d.exp, rest = d.digits+rest[1:1+n], -n, rest[1+n:]
	}
	if rest == "" {
		return d, false, true
	}
	if rest[0]|0x20 != 'e' {
		return d, false, false
	}
	sign, rest := 1, rest[1:]
	if strings.HasPrefix(rest, "-") {
		sign, rest = -1, rest[1:]
	} else {
		rest = strings.TrimPrefix(rest, "+")
	}
	if n := digitsOf(rest); n == 0 || n != len(rest) {
		return d, false, false
	}
	e, err := strconv.Atoi(rest)
	if err != nil || e > 1<<30 {
		e = 1 << 30 // far beyond anything written out; only its size matters
	}
	d.exp += sign * e
	return d, e > maxPlainExponent, true
}

// isJSONNumber is parseDecimal for those who only want to know, without the
// work of taking the number apart.
func isJSONNumber(s string) (plain, ok bool) {
	rest := strings.TrimPrefix(s, "-")
	n := digitsOf(rest)
	if n == 0 || n > 1 && rest[0] == '0' {
		return false, false
	}
	if rest = rest[n:]; rest == "" {
		return true, true
	}
	if rest[0] == '.' {
		if n = digitsOf(rest[1:]); n > 0 && n == len(rest)-1 {
			return true, true
		}
	}
	_, _, ok = parseDecimal(s)
	return false, ok
}

func digitsOf(s string) int {
	n := 0
	for n < len(s) && asciiDigit(s[n]) {
		n++
	}
	return n
}

func (d decimal) isZero() bool { return strings.Trim(d.digits, "0") == "" }

// times multiplies exactly. A factor's own trailing zeros become exponent, so
// that 0.25 × 100 is 25 and 2000 × 0.01 is 20.00: the digits that were given.
func (d decimal) times(f decimal) decimal {
	trimmed := strings.TrimRight(f.digits, "0")
	if trimmed == "" {
		return decimal{digits: "0"}
	}
	f.exp += len(f.digits) - len(trimmed)
	f.digits = trimmed
	out := decimal{neg: d.neg != f.neg, exp: d.exp + f.exp}
	if strings.TrimLeft(trimmed, "0") == "1" {
		out.digits = d.digits
		return out
	}
	var a, b big.Int
	a.SetString(d.digits, 10)
	b.SetString(f.digits, 10)
	out.digits = a.Mul(&a, &b).String()
	return out
}

// round keeps n decimals, half away from zero, and pads with zeros up to n.
func (d decimal) round(n int) decimal {
	drop := -d.exp - n
	switch {
	case drop <= 0:
		d.digits += strings.Repeat("0", -drop)
	case drop > len(d.digits):
		d.digits = "0"
	default:
		up := d.digits[len(d.digits)-drop] >= '5'
		d.digits = d.digits[:len(d.digits)-drop]
		if up {
			d.digits = increment(d.digits)
		}
		if d.digits == "" {
			d.digits = "0"
		}
	}
	d.exp = -n
	return d
}

// increment adds one to a run of digits.
func increment(digits string) string {
	b := []byte(digits)
	for i := len(b) - 1; i >= 0; i-- {
		if b[i] != '9' {
			b[i]++
			return string(b)
		}
		b[i] = '0'
	}
	return "1" + string(b)
}

// appendTo writes d without an exponent, with commas between groups of three
// digits if group is set. A zero has no sign.
func (d decimal) appendTo(dst []byte, group bool) []byte {
	zero := d.isZero()
	if d.neg && !zero {
		dst = append(dst, '-')
	}
	digits := d.digits
	if d.exp > 0 {
		if zero {
			digits = "0"
		} else {
			digits += strings.Repeat("0", d.exp)
		}
		d.exp = 0
	}
	if short := 1 - d.exp - len(digits); short > 0 {
		digits = strings.Repeat("0", short) + digits
	}
	whole, frac := digits[:len(digits)+d.exp], digits[len(digits)+d.exp:]
	if whole = strings.TrimLeft(whole, "0"); whole == "" {
		whole = "0"
	}
	for i := 0; i < len(whole); i++ {
		if group && i > 0 && (len(whole)-i)%3 == 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, whole[i])
	}
	if frac != "" {
		dst = append(dst, '.')
		dst = append(dst, frac...)
	}
	return dst
}

// appendExponent writes d as d.ddde±n.
func (d decimal) appendExponent(dst []byte) []byte {
	digits := strings.TrimLeft(d.digits, "0")
	if digits == "" {
		return append(dst, '0')
	}
	if d.neg {
		dst = append(dst, '-')
	}
	dst = append(dst, digits[0])
	if len(digits) > 1 {
		dst = append(dst, '.')
		dst = append(dst, digits[1:]...)
	}
	dst = append(dst, 'e')
	return strconv.AppendInt(dst, int64(d.exp+len(digits)-1), 10)
}

// formatNumber shows a number, or a text that is spelled like one, under the
// options of f. ok is false for anything else.
func formatNumber(s string, f *Format) (text string, ok bool) {
	decimals := f.Decimals
	if f.Kind == KindInteger {
		decimals = 0
	}
	if len(s) > maxNumberBytes {
		return "", false
	}
	plain, ok := isJSONNumber(s)
	if !ok {
		return "", false
	}
	if plain && decimals < 0 && f.Scale == "" && !f.Group && s[0] != '-' {
		return s, true
	}
	if len(s) > maxScaledDigits {
		return s, true
	}
	d, huge, _ := parseDecimal(s)
	scaled := false
	if f.Scale != "" {
		if factor, _, ok := parseDecimal(f.Scale); ok && len(f.Scale) <= maxScaledDigits {
			d, scaled = d.times(factor), true
		}
	}
	if huge || d.exp > 2*maxPlainExponent || d.exp < -maxScaledDigits-2*maxPlainExponent {
		return formatHuge(s, d, decimals, scaled, f.Group), true
	}
	if decimals >= 0 {
		d = d.round(decimals)
	}
	return string(d.appendTo(make([]byte, 0, len(d.digits)+8), f.Group)), true
}

// appendPadded is formatNumber for a number whose digits all stay: it is
// written as it is, with zeros behind up to the decimals of f. ok is false where
// there is more to do.
func appendPadded(dst []byte, s string, f *Format) (out []byte, ok bool) {
	plain, ok := isJSONNumber(s)
	if !ok || !plain || f.Scale != "" || f.Group || s[0] == '-' || len(s) > maxScaledDigits {
		return dst, false
	}
	if f.Decimals < 0 {
		return append(dst, s...), true
	}
	have, point := 0, strings.IndexByte(s, '.')
	if point >= 0 {
		have = len(s) - point - 1
	}
	if have > f.Decimals {
		return dst, false
	}
	dst = append(dst, s...)
	if point < 0 && f.Decimals > 0 {
		dst = append(dst, '.')
	}
	return appendRepeated(dst, '0', f.Decimals-have), true
}

// formatHuge shows a number whose exponent is too large to be written out: as
// it came, or in exponent form if it was scaled. Rounding still applies where
// the result is of ordinary length.
func formatHuge(s string, d decimal, decimals int, scaled, group bool) string {
	if d.isZero() {
		if decimals > 0 {
			return "0." + strings.Repeat("0", decimals)
		}
		return "0"
	}
	if decimals >= 0 && len(d.digits)+d.exp <= maxPlainExponent {
		return string(d.round(decimals).appendTo(nil, group))
	}
	if !scaled {
		return s
	}
	return string(d.appendExponent(nil))
}

// byteUnits are the powers of 1024.
var byteUnits = [...]string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}

// formatBytes shows a number of bytes: below 1024 with its own digits, else in
// the largest unit of which there is at least one, with one decimal, half away
// from zero. ok is false for what is no number, and for a number that no store
// holds.
func formatBytes(s string) (text string, ok bool) {
	if len(s) > maxScaledDigits {
		return "", false
	}
	d, huge, ok := parseDecimal(s)
	if !ok || huge || len(d.digits)+d.exp > 2*maxPlainExponent || d.exp < -maxScaledDigits {
		return "", false
	}
	out := make([]byte, 0, 16)
	if d.neg && !d.isZero() {
		out = append(out, '-')
	}
	d.neg = false
	whole := d
	if d.exp < 0 {
		whole.digits, whole.exp = strings.Repeat("0", max(1-d.exp-len(d.digits), 0))+d.digits, 0
		whole.digits = whole.digits[:len(whole.digits)+d.exp]
	}
	var n, tenth big.Int
	n.SetString(whole.digits+strings.Repeat("0", whole.exp), 10)
	if n.IsInt64() && n.Int64() < 1024 {
		if d.exp > 0 {
			d = whole
		}
		return string(append(d.appendTo(out, false), " B"...)), true
	}
	// Bytes behind the point are far too small to matter for one decimal, but
	// for the exact half, where they only make it more than half: it rounds up.
	unit := 1
	for ; unit < len(byteUnits); unit++ {
		shift := uint(10 * unit)
		tenth.Mul(&n, big.NewInt(10))
		tenth.Add(&tenth, new(big.Int).Lsh(big.NewInt(1), shift-1))
		tenth.Rsh(&tenth, shift)
		if unit == len(byteUnits)-1 || tenth.Cmp(big.NewInt(10240)) < 0 {
			break
		}
	}
	digits := tenth.String()
	out = append(out, digits[:len(digits)-1]...)
	out = append(out, '.', digits[len(digits)-1], ' ')
	return string(append(out, byteUnits[unit]...)), true
}
