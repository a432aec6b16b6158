package tui

import (
	"strconv"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/control"
)

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		line  string
		width int
		want  []string
	}{
		{"", 10, []string{""}},
		{"short", 10, []string{"short"}},
		{"exactly te", 10, []string{"exactly te"}},
		{"two words here", 10, []string{"two words", "here"}},
		{"a --flag-with-dashes", 10, []string{"a", "--flag-wit", "h-dashes"}},
		{"aaaaaaaaaaaaaaaaaaaaaaaaa", 10, []string{"aaaaaaaaaa", "aaaaaaaaaa", "aaaaa"}},
		{"  indented text", 10, []string{"  indented", "  text"}},
		{"name  a value of words", 14, []string{"name  a value", "      of words"}},
		{"日本語日本語", 5, []string{"日本", "語日", "本語"}},
	} {
		got := wrap([]string{c.line}, c.width)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%q in %d (-want +got):\n%s", c.line, c.width, diff)
		}
	}
}

// Every line fits, nothing but blanks is lost, and it ends.
func FuzzWrap(f *testing.F) {
	f.Add("name  a value", 14)
	f.Add("  日本語 x", 3)
	f.Add("e\u0301\u200d👩‍👩‍👧‍👧", 2)
	f.Fuzz(func(t *testing.T, s string, width int) {
		if width < 4 || width > 200 || len(s) > 2000 {
			t.Skip("no width of a screen, or a text too long to be quick")
		}
		s = clean(s)
		out := wrap([]string{s}, width)
		for _, l := range out {
			if n := ansi.StringWidth(l); n > width {
				t.Errorf("%q has %d columns, more than %d", l, n, width)
			}
		}
		squash := func(s string) string { return strings.ReplaceAll(s, " ", "") }
		if got := squash(strings.Join(out, "")); got != squash(s) {
			t.Errorf("%q became %q", s, got)
		}
	})
}

func TestMembersKeepWhatTheyDoNotChange(t *testing.T) {
	const doc = `{"z":9007199254740993.10,"a":{"<&>":[1, 2]},"s":"x"}`
	ms, err := parseMembers([]byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	ms.set("s", "<y>")
	ms.set("new", true)
	if got, want := string(ms.bytes()), `{"z":9007199254740993.10,"a":{"<&>":[1, 2]},"s":"<y>","new":true}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	ms.drop("a")
	if got, want := string(ms.bytes()), `{"z":9007199254740993.10,"s":"<y>","new":true}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for text, want := range map[string]string{
		"":                 "it is not JSON: line 1, column 1: unexpected end of JSON input",
		"[1]":              "it is JSON, but not an object",
		"{\n  \"a\": x\n}": "it is not JSON: line 2, column 8: invalid character 'x' looking for beginning of value",
		`{} {}`:            "it is not JSON: line 1, column 4: invalid character '{' after top-level value",
	} {
		if _, err := parseMembers([]byte(text)); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// A typed line has at most maxTyped characters.
func TestInputLimit(t *testing.T) {
	var in input
	if !in.add(strings.Repeat("x", maxTyped)) || len(in.text) != maxTyped {
		t.Errorf("%d characters at the limit", len(in.text))
	}
	if in.add("y") || len(in.text) != maxTyped {
		t.Errorf("%d characters over the limit", len(in.text))
	}
	if line, at := in.view(10); line != strings.Repeat("x", 9) || at != 9 {
		t.Errorf("shown %q with the cursor in column %d", line, at)
	}
}

func TestInputKeys(t *testing.T) {
	for _, c := range []struct {
		name string
		keys []tea.KeyPressMsg
		want string
		at   int
	}{
		{"home delete", []tea.KeyPressMsg{{Code: tea.KeyHome}, {Code: tea.KeyDelete}}, "ne two", 0},
		{"backspace", []tea.KeyPressMsg{{Code: tea.KeyBackspace}}, "one tw", 6},
		{"backspace at the start", []tea.KeyPressMsg{{Code: tea.KeyHome}, {Code: tea.KeyBackspace}}, "one two", 0},
		{"a word", []tea.KeyPressMsg{{Code: 'w', Mod: tea.ModCtrl}}, "one ", 4},
		{"to the end", []tea.KeyPressMsg{{Code: 'a', Mod: tea.ModCtrl}, {Code: tea.KeyRight}, {Code: 'k', Mod: tea.ModCtrl}}, "o", 1},
		{"to the start", []tea.KeyPressMsg{{Code: tea.KeyLeft}, {Code: 'u', Mod: tea.ModCtrl}}, "o", 0},
		{"in the middle", []tea.KeyPressMsg{{Code: tea.KeyLeft}, {Code: 'é', Text: "é"}}, "one twéo", 7},
		{"no text", []tea.KeyPressMsg{{Code: 'x', Mod: tea.ModAlt, Text: "x"}, {Code: tea.KeyF5}}, "one two", 7},
	} {
		var in input
		in.set("one two")
		for _, k := range c.keys {
			in.key(k)
		}
		if got := string(in.text); got != c.want || in.at != c.at {
			t.Errorf("%s: %q at %d, want %q at %d", c.name, got, in.at, c.want, c.at)
		}
	}
}

func TestSuggestID(t *testing.T) {
	for name, want := range map[string]string{
		"Create order": "create.order", "  Ümlaut & Co.": "mlaut.co", "": "", "...": "",
		strings.Repeat("a", 101): strings.Repeat("a", 100), strings.Repeat("a", 99) + " b": strings.Repeat("a", 99),
	} {
		if got := suggestID(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

// An approval shows every character, also those that a terminal hides.
func TestExact(t *testing.T) {
	for s, want := range map[string]string{
		"plain é 日": "plain é 日", "a\u200bb": `a\u200bb`, "a\x1b[2J": `a\u001b[2J`, "\u202e": `\u202e`, "\u00a0": `\u00a0`, "\U000e0041": `\U000e0041`, "a\tb": "a    b", "\ufe0f": `\ufe0f`,
	} {
		if got := control.Visible(s); got != want {
			t.Errorf("%q: %q, want %q", s, got, want)
		}
	}
}

// The panel keeps the newest rows of the trail, and no more than its limit.
func TestAuditLimit(t *testing.T) {
	m := newModel(t.Context(), Options{}.filled())
	for n := range 2 {
		rows := m.audit.rows
		for len(rows) < auditRows+n {
			rows = append(rows, auditRow(len(rows)+1))
		}
		m.audit.rows = nil
		m.audit.add(m, rows)
		if len(m.audit.rows) != auditRows || m.audit.rows[auditRows-1].Seq != uint64(auditRows+n) {
			t.Errorf("%d rows of %d, the last is %d", len(m.audit.rows), auditRows+n, m.audit.rows[len(m.audit.rows)-1].Seq)
		}
		m.audit.rows = rows[:len(rows)-1]
	}
}

func auditRow(seq int) api.AuditRow {
	return api.AuditRow{Seq: uint64(seq), Kind: "run", Call: strconv.Itoa(seq)}
}
