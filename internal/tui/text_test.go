package tui

import (
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/internal/control"
)

// Blanks that are no spaces, and code points of no character, are shown too.
func TestExactBlanks(t *testing.T) {
	for s, want := range map[string]string{
		"a\u2800b": `a\u2800b`, "\u034f\u17b4\u3164\u115f\uffa0": `\u034f\u17b4\u3164\u115f\uffa0`,
		"\U0001d159\U000e01f0": `\U0001d159\U000e01f0`, "\ufdd0": `\ufdd0`, "e\u0301 😀": "e\u0301 😀",
	} {
		if got := control.Visible(s); got != want {
			t.Errorf("%q: %q, want %q", s, got, want)
		}
	}
}
