package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/control"
)

func docs(list ...string) map[string]json.RawMessage {
	m := map[string]json.RawMessage{}
	for _, d := range list {
		var doc struct{ ID string }
		if err := json.Unmarshal([]byte(d), &doc); err != nil {
			panic(err)
		}
		m[doc.ID] = json.RawMessage(d)
	}
	return m
}

func TestApply(t *testing.T) {
	f := &fake{docs: docs(`{"id":"same","n":1.0}`, `{"id":"new","request":{"method":"GET","url":"https://a.example/1"},"response":{"mode":"table"}}`)}
	w := newWorld(t, f)
	one := w.file("one.json", "\ufeff{ \"id\": \"same\", \"n\": 1.0 }\n")
	several := w.file("several.json", `[{"id":"first"}, {"id":"second"}] {"id":"third"}`)
	folder := filepath.Dir(w.file("folder/b.json", `{"id":"new","request":{"method":"GET","url":"https://a.example/2"},"response":{"mode":"table"}}`))
	w.file("folder/a.JSON", `{"id":"in.a"}`)
	w.file("folder/.hidden.json", `no JSON`)
	w.file("folder/notes.txt", `no JSON`)
	w.file("folder/inside/c.json", `no JSON`)
	w.stdin = `{"id":"typed"}`
	shown := `unchanged  same  (HOME/one.json)
created    first  (HOME/several.json[0])
created    second  (HOME/several.json[1])
created    third  (HOME/several.json[2])
created    in.a  (HOME/folder/a.JSON)
updated    new  (HOME/folder/b.json)
      "request": {
        "method": "GET",
    -     "url": "https://a.example/1"
    +     "url": "https://a.example/2"
      },
      "response": {
created    typed  (-)
5 created, 1 updated, 1 unchanged`
	dry := w.hb("wrapper", "apply", one, several, folder, "-", "--dry-run")
	want := said{0, strings.ReplaceAll(shown, "\n      \"", "\n        \"") + "; nothing is saved yet\n", ""}
	want.Out = strings.ReplaceAll(want.Out, "\n      },", "\n        },")
	want.Out = strings.ReplaceAll(want.Out, "\n        \"method\"", "\n          \"method\"")
	check(t, "dry run", dry, want)
	if len(f.docs) != 2 {
		t.Errorf("a dry run saved: %d documents", len(f.docs))
	}
	real := w.hb("wrapper", "apply", one, several, folder, "-")
	want.Out = strings.ReplaceAll(want.Out, "; nothing is saved yet", "")
	check(t, "for real", real, want)
	if got := f.ids(); !cmp.Equal(got, []string{"first", "in.a", "new", "same", "second", "third", "typed"}) {
		t.Errorf("saved: %v", got)
	}
	if diff := cmp.Diff([]string{"apply 7 dry=true", "apply 7 dry=false"}, f.asked()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func TestApplyAsks(t *testing.T) {
	f := &fake{docs: docs(`{"id":"a"}`), warn: []api.Warning{{Field: "wrapper.request", Code: "X", Message: "looks odd", Hint: "Look."}}}
	w := newWorld(t, f)
	w.person = true
	file := w.file("b.json", `{"id":"b"}`)
	w.stdin = "n\n"
	shown, warned := "created    b  (HOME/b.json)\n1 created, 0 updated, 0 unchanged; nothing is saved yet\n", "hbrestd: warning: b: wrapper.request: looks odd (Look.)\n"
	check(t, "no", w.hb("wrapper", "apply", file), said{1, shown, warned + "Save? [y/N] hbrestd: error: nothing was changed\n"})
	if len(f.docs) != 1 {
		t.Error("it was saved all the same")
	}
	w.stdin = "y\n"
	check(t, "yes", w.hb("wrapper", "apply", file), said{0, shown + "saved\n", warned + "Save? [y/N] "})
	f.warn = nil
	check(t, "nothing to ask", w.hb("wrapper", "apply", file), said{0, "unchanged  b  (HOME/b.json)\n0 created, 0 updated, 1 unchanged; nothing is saved yet\n", ""})
	w.stdin = `{"id":"c"}`
	check(t, "typed into stdin", w.hb("wrapper", "apply", "-"), said{0, "created    c  (-)\n1 created, 0 updated, 0 unchanged\n", ""})
	check(t, "--yes", w.hb("wrapper", "apply", "-y", w.file("d.json", `{"id":"d"}`)), said{0, "created    d  (HOME/d.json)\n1 created, 0 updated, 0 unchanged\n", ""})
	check(t, "JSON", w.hb("wrapper", "apply", "--json", file), said{0, `{
  "ok": true,
  "dryRun": false,
  "revision": 9,
  "changes": [
    {
      "source": "HOME/b.json",
      "id": "b",
      "action": "unchanged"
    }
  ]
}
`, ""})
}

// Every problem of every document is named at once, and nothing is saved.
func TestApplyRefuses(t *testing.T) {
	f := &fake{docs: docs()}
	w := newWorld(t, f)
	bad := w.file("bad.json", "{\n  \"id\": \"größe\", oops\n}")
	cut := w.file("cut.json", `[{"id":"x"},`)
	none := w.file("none.json", "  \n")
	noID := w.file("noid.json", `{"name":"x"}`)
	good := w.file("good.json", `{"id":"good"}`)
	got := w.hb("wrapper", "apply", bad, good, cut, none, noID)
	check(t, "four kinds", got, said{6, "", `hbrestd: error: 3 files are not JSON, nothing was saved
  HOME/bad.json:2:18: invalid character 'o' at start of value
  HOME/cut.json:1:13: the text ends too early
  HOME/none.json: there is no document in it
  HOME/noid.json: wrapper.id: is missing (Give it an id.)
hbrestd: hint: Mend each, then apply them again.
`})
	check(t, "one", w.hb("wrapper", "apply", bad), said{6, "", "hbrestd: error: HOME/bad.json:2:18: invalid character 'o' at start of value\nhbrestd: hint: Nothing was saved. Mend the text at that line and column.\n"})
	check(t, "the daemon's words", w.hb("wrapper", "apply", good, noID), said{6, "", "hbrestd: error: 1 documents are not valid\n  HOME/noid.json: wrapper.id: is missing (Give it an id.)\nhbrestd: hint: Fix the named fields; docs/wrapper-format.md describes each.\n"})
	w.stdin = "{\"id\":\"a\xff\"}"
	check(t, "not UTF-8", w.hb("wrapper", "apply", "-"), said{6, "", "hbrestd: error: -:1:9: invalid UTF-8\nhbrestd: hint: Nothing was saved. Mend the text at that line and column.\n"})
	check(t, "no file", w.hb("wrapper", "apply", filepath.Join(w.home, "nowhere")), said{1, "", "hbrestd: error: stat HOME/nowhere: no such file or directory\n"})
	if err := os.Mkdir(filepath.Join(w.home, "empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	check(t, "empty folder", w.hb("wrapper", "apply", filepath.Join(w.home, "empty")), said{1, "", "hbrestd: error: no .json file in the folder HOME/empty\n"})
	check(t, "stdin twice", w.hb("wrapper", "apply", "-", "-"), said{2, "", "hbrestd: error: stdin (-) is given twice\nhbrestd: hint: `hbrestd wrapper apply --help` shows how it is used.\n"})
	check(t, "nothing named", w.hb("wrapper", "apply"), said{2, "", "hbrestd: error: a file, a folder or - for stdin is missing\nhbrestd: hint: `hbrestd wrapper apply --help` shows how it is used.\n"})
	if len(f.docs) != 0 {
		t.Errorf("something was saved: %v", f.ids())
	}
}

func TestApplyLimits(t *testing.T) {
	f := &fake{docs: docs()}
	w := newWorld(t, f)
	many := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "{\"id\":\"w%d\"}\n", i)
		}
		return b.String()
	}
	w.stdin = many(control.MaxDocuments)
	if got := w.hb("wrapper", "apply", "-"); got.Exit != 0 || !strings.HasSuffix(got.Out, "\n1000 created, 0 updated, 0 unchanged\n") {
		t.Errorf("1000 documents: exit %d, %s", got.Exit, got.ErrOut)
	}
	w.stdin = many(control.MaxDocuments + 1)
	check(t, "1001 documents", w.hb("wrapper", "apply", "-"), said{6, "", "hbrestd: error: more than 1000 documents, which is the most of one call\nhbrestd: hint: Give fewer documents at once.\n"})
	w.stdin = strings.Repeat("1 ", maxInput/2) // takes no longer than the thousand
	check(t, "16 million documents", w.hb("wrapper", "apply", "-"), said{6, "", "hbrestd: error: more than 1000 documents, which is the most of one call\nhbrestd: hint: Give fewer documents at once.\n"})
	w.stdin = strings.Repeat(" ", maxInput-len(`{"id":"x"}`)) + `{"id":"x"}`
	if got := w.hb("wrapper", "apply", "-"); got.Exit != 0 {
		t.Errorf("a text of 32 MiB: exit %d, %s", got.Exit, got.ErrOut)
	}
	w.stdin += " "
	check(t, "a text over 32 MiB", w.hb("wrapper", "apply", "-"), said{6, "", "hbrestd: error: stdin is over 32 MiB\nhbrestd: hint: Give fewer documents at once.\n"})
}

// What was exported changes nothing when it is applied, in any of the three
// forms, whatever the documents hold.
func TestExportApplyIsIdentity(t *testing.T) {
	stored := []string{
		`{"schemaVersion":1,"id":"a.b-c_D","z":"<&> \u2028 é 日本","a":9007199254740993,"p":30.00,"e":1e400,"deep":[[],{},[{"x":null}]]}`,
		`{"id":"con","n":1}`,
		`{"id":"COM1.x","s":"a\"b\\c\n"}`,
		`{"id":"dup","k":1,"k":2}`,
	}
	f := &fake{docs: docs(stored...)}
	w := newWorld(t, f)
	folder := filepath.Join(w.home, "out")
	check(t, "written", w.hb("wrapper", "export", "--dir", folder), said{0, "4 wrappers, 4 written, 0 unchanged\n", ""})
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if diff := cmp.Diff([]string{"_COM1.x.json", "_con.json", "a.b-c_D.json", "dup.json"}, names); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	check(t, "written again", w.hb("wrapper", "export", "--dir", folder), said{0, "4 wrappers, 0 written, 4 unchanged\n", ""})
	if err := os.WriteFile(filepath.Join(folder, "dup.json"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	check(t, "one was changed", w.hb("wrapper", "export", "--dir", folder, "dup", "con"), said{0, "2 wrappers, 1 written, 1 unchanged\n", ""})
	const same = "0 created, 0 updated, 4 unchanged\n"
	for _, form := range [][]string{{"wrapper", "export"}, {"wrapper", "export", "--json"}} {
		out := w.hb(form...)
		w.stdin = out.Out
		if got := w.hb("wrapper", "apply", "-"); got.Exit != 0 || !strings.HasSuffix(got.Out, "\n"+same) {
			t.Errorf("%v: exit %d\n%s%s", form, got.Exit, got.Out, got.ErrOut)
		}
	}
	if got := w.hb("wrapper", "apply", folder); got.Exit != 0 || !strings.HasSuffix(got.Out, "\n"+same) {
		t.Errorf("the folder: exit %d\n%s%s", got.Exit, got.Out, got.ErrOut)
	}
	if diff := cmp.Diff(docs(stored...), f.docs); diff != "" {
		t.Errorf("documents (-want +got):\n%s", diff)
	}
}

func TestExport(t *testing.T) {
	f := &fake{docs: docs(`{"id":"a","n":[1]}`, `{"id":"b"}`), entries: []api.ManifestEntry{{ID: "a"}, {ID: "b"}, {ID: "c", Damaged: "cut short"}}}
	w := newWorld(t, f)
	check(t, "all, one damaged", w.hb("wrapper", "export"), said{
		1, "{\n  \"id\": \"a\",\n  \"n\": [\n    1\n  ]\n}\n{\n  \"id\": \"b\"\n}\n",
		"hbrestd: warning: c is damaged: cut short\nhbrestd: error: 1 wrapper was not exported, because the stored record is damaged\n",
	})
	check(t, "one, as an array", w.hb("wrapper", "export", "b", "--json"), said{0, "[\n  {\n    \"id\": \"b\"\n  }\n]\n", ""})
	check(t, "a missing one", w.hb("wrapper", "export", "b", "x"), said{5, "", "hbrestd: error: no wrapper \"x\"; near: orders.list\nhbrestd: hint: `hbrestd wrapper list` shows the saved ids.\n"})
	check(t, "two forms", w.hb("wrapper", "export", "--json", "--dir", w.home), said{2, "", `{
  "ok": false,
  "code": "USAGE",
  "status": null,
  "field": null,
  "retryable": false,
  "hint": "` + "`hbrestd wrapper export --help`" + ` shows how it is used.",
  "message": "--dir and --json do not go together: the files are always the same",
  "details": []
}
`})
	f.entries = []api.ManifestEntry{}
	check(t, "none", w.hb("wrapper", "export", "--json"), said{0, "[]\n", ""})
}
