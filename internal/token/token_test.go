package token_test

import (
	"strings"
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/internal/token"
)

func TestNew(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		tok := token.New()
		if len(tok) != 64 || strings.Trim(tok, "0123456789abcdef") != "" {
			t.Fatalf("token %q is not 64 lower-case hex digits", tok)
		}
		if seen[tok] {
			t.Fatalf("token %q came twice", tok)
		}
		seen[tok] = true
	}
}

func TestHolder(t *testing.T) {
	a, b := strings.Repeat("a", 64), strings.Repeat("b", 64)
	var h token.Holder
	if h.Check("") || h.Check(a) || h.Current() != "" {
		t.Fatal("an empty holder accepted something")
	}
	h.Set(a)
	for presented, want := range map[string]bool{
		a: true, b: false, "": false, a[:63]: false, a + "a": false, strings.ToUpper(a): false, a + "\n": false,
	} {
		if got := h.Check(presented); got != want {
			t.Errorf("Check(%q) = %t, want %t", presented, got, want)
		}
	}
	if h.Current() != a {
		t.Errorf("Current() = %q", h.Current())
	}
	h.Set(b)
	if h.Check(a) || !h.Check(b) {
		t.Error("after Set the token before is still accepted, or the new one is not")
	}
	h.Set("")
	if h.Check(b) || h.Check("") || h.Current() != "" {
		t.Error("a token taken away is still accepted")
	}
}
