package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/control"
)

func someHistory() *control.WrapperHistory {
	return &control.WrapperHistory{ID: "a", Saved: true, Versions: []control.WrapperVersion{
		{Version: 2, Time: "2026-12-01T08:00:00Z", Author: "human", Action: "saved", Bytes: 20, SHA256: "aa", Wrapper: json.RawMessage(`{"id":"a","n":1}`)},
		{Version: 3, Action: "damaged", Problem: "its checksum does not match"},
		{Version: 4, Time: "2026-12-01T09:00:00Z", Author: "agent", Action: "removed"},
		{Version: 5, Action: "saved", Bytes: 21, SHA256: "bb", Current: true, Wrapper: json.RawMessage(`{"id":"a","n":2}`)},
	}}
}

func TestHistoryCommands(t *testing.T) {
	const diff25 = "--- a version 2 2026-12-01T08:00:00Z human\n+++ a version 5\n@@ -1,4 +1,4 @@\n {\n   \"id\": \"a\",\n-  \"n\": 1\n+  \"n\": 2\n }\n"
	const diff45 = "--- a version 4 2026-12-01T09:00:00Z agent\n+++ a version 5\n@@ -0,0 +1,4 @@\n+{\n+  \"id\": \"a\",\n+  \"n\": 2\n+}\n"
	rows := "2\t2026-12-01T08:00:00Z\thuman\t20\tsaved\n3\t\t\t\tcannot be read: its checksum does not match\n" +
		"4\t2026-12-01T09:00:00Z\tagent\t\tremoved\n5\t\t\t21\tsaved, current\n"
	gone := someHistory()
	gone.Saved, gone.Until, gone.Versions = false, "2026-12-31T09:00:00Z", gone.Versions[:3]
	one := someHistory()
	one.Versions = one.Versions[3:]
	for _, tc := range []struct {
		name    string
		history *control.WrapperHistory
		args    string
		want    said
	}{
		{"history", someHistory(), "history a", said{0, rows, ""}},
		{"of a removed one", gone, "history a", said{
			0, strings.Join(strings.SplitAfter(rows, "\n")[:3], ""),
			"hbrestd: a was removed; `hbrestd wrapper rollback a 2` brings it back, until 2026-12-31T09:00:00Z\n",
		}},
		{"of nothing", nil, "history a", said{5, "", "hbrestd: error: no wrapper has the id \"a\"\nhbrestd: hint: `hbrestd wrapper list` shows the saved ids.\n"}},
		{"diff of two", someHistory(), "diff a 2 5", said{0, diff25, ""}},
		{"diff to the newest", someHistory(), "diff a 2", said{0, diff25, ""}},
		{"diff of the newest", someHistory(), "diff a", said{0, diff45, ""}},
		{"diff of the same", someHistory(), "diff a 5", said{0, "", "hbrestd: versions 5 and 5 of a are the same\n"}},
		{"diff of one", one, "diff a", said{5, "", "hbrestd: error: wrapper \"a\" has one version only, and nothing to compare it with\nhbrestd: hint: `hbrestd wrapper show a` prints it.\n"}},
		{"diff of none", someHistory(), "diff a 9", said{5, "", "hbrestd: error: wrapper \"a\" has no version 9\nhbrestd: hint: `hbrestd wrapper history ID` shows the versions.\n"}},
		{"diff of a word", someHistory(), "diff a x", said{2, "", "hbrestd: error: \"x\" is no version: a whole number from 1, as `hbrestd wrapper history a` lists them\nhbrestd: hint: `hbrestd wrapper diff --help` shows how it is used.\n"}},
		{"rollback to 0", someHistory(), "rollback a 0", said{2, "", "hbrestd: error: \"0\" is no version: a whole number from 1, as `hbrestd wrapper history a` lists them\nhbrestd: hint: `hbrestd wrapper rollback --help` shows how it is used.\n"}},
	} {
		w := newWorld(t, &fake{history: tc.history})
		check(t, tc.name, w.hb(append([]string{"wrapper"}, strings.Fields(tc.args)...)...), tc.want)
	}
}

func TestHistoryOfRemoved(t *testing.T) {
	f := &fake{}
	w := newWorld(t, f)
	check(t, "none", w.hb("wrapper", "history"), said{0, "", "hbrestd: no wrapper was removed in the last 30 days\n"})
	f.removed.Removed = []control.RemovedWrapper{{ID: "b", Time: "2026-12-01T08:00:00Z", Until: "2026-12-31T08:00:00Z"}}
	check(t, "one", w.hb("wrapper", "history"), said{0, "b\t2026-12-01T08:00:00Z\t2026-12-31T08:00:00Z\n", ""})
}

// What a rollback does to tools and trust is said; a person is asked before it,
// a script is not.
func TestRollback(t *testing.T) {
	doc := func(exposed string) json.RawMessage {
		return json.RawMessage(`{"id":"a","exposeAsTool":` + exposed + `}`)
	}
	updated := control.RollbackResult{OK: true, ID: "a", Version: 2, Action: "updated", Before: doc("false"), After: doc("true"), Exposed: true, Tool: "a"}
	change := "updated    a  (version 2)\n      {\n        \"id\": \"a\",\n    -   \"exposeAsTool\": false\n    +   \"exposeAsTool\": true\n      }\n"
	back := control.RollbackResult{OK: true, ID: "a", Version: 2, Action: "created", After: doc("true"), Exposed: true, Tool: "a_2", Trusted: true}
	hidden := control.RollbackResult{OK: true, ID: "a", Version: 2, Action: "updated", Before: doc("true"), After: doc("true"), Warnings: []api.Warning{{Field: "f", Message: "m", Hint: "h"}}}
	for _, tc := range []struct {
		name   string
		result control.RollbackResult
		args   string
		typed  string // "": nobody is there
		asked  string
		want   said
	}{
		{"a script", updated, "", "", `false`, said{0, change, "hbrestd: MCP clients see it as the tool a\n"}},
		{"a dry run", updated, "--dry-run", "", `true`, said{0, strings.Replace(change, ")\n", "); nothing is saved yet\n", 1), ""}},
		{"unchanged", control.RollbackResult{OK: true, ID: "a", Version: 2, Action: "unchanged"}, "", "", `false`, said{0, "unchanged  a  (version 2)\n", ""}},
		{"brought back", back, "", "", `false`, said{0, "created    a  (version 2)\n", "hbrestd: MCP clients see it as the tool a_2, with the priority 0\n" +
			"hbrestd: warning: this version was trusted with --trust, and is again: its writes ask nobody; `hbrestd approval policy a default` takes that back\n"}},
		{"no tool any more", hidden, "", "", `false`, said{0, "updated    a  (version 2)\n", "hbrestd: warning: a: f: m (h)\nhbrestd: it is no tool of its own any more; `hbrestd wrapper expose a` makes it one\n"}},
		{"yes", updated, "", "y\n", `true false`, said{0, strings.Replace(change, ")\n", "); nothing is saved yet\n", 1) + "saved\n", "Save? [y/N] hbrestd: MCP clients see it as the tool a\n"}},
		{"no", updated, "", "n\n", `true`, said{1, strings.Replace(change, ")\n", "); nothing is saved yet\n", 1), "Save? [y/N] hbrestd: error: nothing was changed\n"}},
		{"not asked", updated, "--yes", "n\n", `false`, said{0, change, "hbrestd: MCP clients see it as the tool a\n"}},
	} {
		f := &fake{rollback: tc.result}
		w := newWorld(t, f)
		w.person, w.stdin = tc.typed != "", tc.typed
		check(t, tc.name, w.hb(append([]string{"wrapper", "rollback", "a", "2"}, strings.Fields(tc.args)...)...), tc.want)
		var asked []string
		for _, call := range f.asked() {
			asked = append(asked, map[bool]string{true: "true", false: "false"}[strings.Contains(call, `"dryRun":true`)])
		}
		if got := strings.Join(asked, " "); got != tc.asked {
			t.Errorf("%s: dry runs %s, want %s", tc.name, got, tc.asked)
		}
	}
}

func TestLintCommand(t *testing.T) {
	f := &fake{}
	w := newWorld(t, f)
	f.lint.Wrappers = []control.LintedWrapper{{ID: "a"}}
	check(t, "nothing", w.hb("wrapper", "lint", "a"), said{0, "", "hbrestd: 1 wrapper, and nothing suspicious\n"})
	f.lint.Wrappers = append(f.lint.Wrappers, control.LintedWrapper{ID: "b", Warnings: []api.Warning{{Field: "wrapper.description", Code: "NO_DESCRIPTION", Message: "it is empty", Hint: "say something"}}})
	check(t, "a warning", w.hb("wrapper", "lint"), said{0, "b\twrapper.description\tNO_DESCRIPTION\tit is empty\tsay something\n", ""})
	f.lint.Wrappers = append(f.lint.Wrappers, control.LintedWrapper{ID: "c", Problem: "its record is damaged"})
	w.width = 80
	check(t, "a damaged one", w.hb("wrapper", "lint"), said{6, "b\n  wrapper.description: it is empty\n    say something\nc\n  cannot be used: its record is damaged\n", ""})
	if got := w.hb("wrapper", "lint", "--json"); got.Exit != 6 || !json.Valid([]byte(got.Out)) || got.ErrOut != "" {
		t.Errorf("%+v", got)
	}
}
