package cli

import (
	"strings"
	"testing"
)

// The diffs are those of diff -u (checked with GNU diffutils 3.8, but for the names).
func TestUnified(t *testing.T) {
	text := func(words string) string {
		if words == "" {
			return ""
		}
		return strings.ReplaceAll(words, " ", "\n") + "\n"
	}
	for _, tc := range []struct{ name, a, b, want string }{
		{"equal", "1 2 3", "1 2 3", ""},
		{"both empty", "", "", ""},
		{"one line", "1", "2", "@@ -1 +1 @@|-1|+2"},
		{"from nothing", "", "1 2", "@@ -0,0 +1,2 @@|+1|+2"},
		{"to nothing", "1", "", "@@ -1 +0,0 @@|-1"},
		{"in the middle", "1 2 3 4 5 6 7 8 9", "1 2 3 4 x 6 7 8 9", "@@ -2,7 +2,7 @@| 2| 3| 4|-5|+x| 6| 7| 8"},
		{"six between are one hunk", "a 1 2 3 4 5 6 b", "x 1 2 3 4 5 6 y", "@@ -1,8 +1,8 @@|-a|+x| 1| 2| 3| 4| 5| 6|-b|+y"},
		{"seven are two", "a 1 2 3 4 5 6 7 b", "x 1 2 3 4 5 6 7 y", "@@ -1,4 +1,4 @@|-a|+x| 1| 2| 3|@@ -6,4 +6,4 @@| 5| 6| 7|-b|+y"},
		{"put in", "1 2 3 4 5", "1 2 3 x y 4 5", "@@ -1,5 +1,7 @@| 1| 2| 3|+x|+y| 4| 5"},
		{"taken out at the end", "1 2 3 4 5", "1 2 3 4", "@@ -2,4 +2,3 @@| 2| 3| 4|-5"},
		{"a control character", "1", "\x1b[2J", "@@ -1 +1 @@|-1|+[2J"},
	} {
		want := tc.want
		if want != "" {
			want = "--- A\n+++ B\n" + strings.ReplaceAll(want, "|", "\n") + "\n"
		}
		if got := unified("A", "B", text(tc.a), text(tc.b)); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", tc.name, got, want)
		}
	}
}
