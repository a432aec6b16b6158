package schema

import (
	"encoding/json"
	"math/big"
	"strconv"
	"strings"

	"github.com/hyperbolic-gateway/hb-rest/pkg/recipe"
)

// Bounds of a number, in arguments and in schemas. Exact arithmetic on
// 1e1000000 costs 80 ms each time; what a double can hold, and digits for
// 128-bit ids, fit well inside.
const (
	MaxDigits   = 40  // characters of a number
	MaxExponent = 308 // of its exponent, without the sign
)

// bounded reports whether exact arithmetic on n is cheap.
func bounded(n json.Number) bool {
	if len(n) > MaxDigits {
		return false
	}
	i := strings.IndexAny(string(n), "eE")
	if i < 0 {
		return true
	}
	e, err := strconv.Atoi(string(n[i+1:]))
	return err == nil && e >= -MaxExponent && e <= MaxExponent
}

// rat is the exact value of a bounded number.
func rat(n json.Number) *big.Rat {
	r, ok := new(big.Rat).SetString(string(n))
	if !ok {
		return new(big.Rat) // not reachable for a number that Decode has read
	}
	return r
}

// whole reports whether a bounded number is an integer: 1, 1.0 and 1e3 are.
func whole(n json.Number) bool {
	if !strings.ContainsAny(string(n), ".eE") {
		return true
	}
	return rat(n).IsInt()
}

// equal compares two values of JSON: numbers by value and exactly, members of
// objects in any order. Numbers are bounded.
func equal(a, b recipe.Value) bool {
	switch a := a.(type) {
	case json.Number:
		b, ok := b.(json.Number)
		return ok && (a == b || rat(a).Cmp(rat(b)) == 0)
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
