package schema

import (
	"encoding/json"
	"math/big"
	"strconv"
	"strings"

	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// Bounds of a number, in arguments and in schemas. Exact arithmetic on
// 1e1000000 costs 80 ms each time; what a double can hold, and integers of
// 200 bits, fit well inside.
const (
	MaxDigits   = 64  // characters of a number
	MaxExponent = 308 // of its exponent, without the sign
)

// cheapExponent is the largest exponent of which any number may have one:
// arithmetic on it costs no more than on as many digits.
const cheapExponent = 40

// bounded reports whether exact arithmetic on n is cheap enough.
func bounded(n json.Number) bool {
	if len(n) > MaxDigits {
		return false
	}
	e := exponent(n)
	return e >= -MaxExponent && e <= MaxExponent
}

// exponent is the number behind the e of n, 0 without one, cut at a million.
func exponent(n json.Number) int {
	i := strings.IndexAny(string(n), "eE")
	if i < 0 {
		return 0
	}
	const most = 1_000_000
	e, err := strconv.Atoi(string(n[i+1:]))
	switch {
	case err == nil:
		return max(-most, min(most, e))
	case n[i+1] == '-':
		return -most
	}
	return most
}

// rat is the exact value of a bounded number.
func rat(n json.Number) *big.Rat {
	r, ok := new(big.Rat).SetString(string(n))
	if !ok {
		return new(big.Rat) // not reachable for a number that Decode has read
	}
	return r
}

// decimal takes a bounded number apart: digits without zeros at either end,
// and the power of ten that the last of them counts. Two numbers are equal
// exactly when their parts are; zero has no digits.
func decimal(n json.Number) (negative bool, digits string, power int) {
	mantissa, _, _ := strings.Cut(strings.ToLower(string(n)), "e")
	mantissa, negative = strings.CutPrefix(mantissa, "-")
	integer, fraction, _ := strings.Cut(mantissa, ".")
	all := strings.TrimLeft(integer+fraction, "0")
	digits = strings.TrimRight(all, "0")
	if digits == "" {
		return false, "", 0
	}
	return negative, digits, exponent(n) - len(fraction) + len(all) - len(digits)
}

// whole reports whether a bounded number is an integer: 1, 1.0 and 1e3 are,
// 15e-1 is not, 150e-1 is.
func whole(n json.Number) bool {
	_, _, power := decimal(n)
	return power >= 0
}

// valueKey is one text for all spellings of a bounded number.
func valueKey(n json.Number) string {
	negative, digits, power := decimal(n)
	if negative {
		digits = "-" + digits
	}
	return digits + "e" + strconv.Itoa(power)
}

// equal compares two values of JSON: numbers by value and exactly, members of
// objects in any order. Numbers are bounded.
func equal(a, b recipe.Value) bool {
	switch a := a.(type) {
	case json.Number:
		b, ok := b.(json.Number)
		return ok && (a == b || valueKey(a) == valueKey(b))
	case recipe.Array:
		b, ok := b.(recipe.Array)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !equal(a[i], b[i]) {
				return false
			}
		}
		return true
	case recipe.Object:
		b, ok := b.(recipe.Object)
		if !ok || len(a) != len(b) {
			return false
		}
		for _, m := range a {
			other, ok := b.Get(m.Key)
			if !ok || !equal(m.Value, other) {
				return false
			}
		}
		return true
	}
	switch b.(type) { // == on a slice type would panic
	case recipe.Array, recipe.Object:
		return false
	}
	return a == b
}
