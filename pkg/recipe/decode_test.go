package recipe

import (
	"encoding/json"
	"testing"
)

const number1 = json.Number("1")

func decode(t testing.TB, s string) Value {
	t.Helper()
	v, err := Decode([]byte(s), DecodeLimits{})
	if err != nil {
		t.Fatalf("Decode(%s): %v", s, err)
	}
	return v
}
