package cli

import (
	"testing"
)

const orders = `{"data":[{"id":9007199254740993,"status":"open","total":30.00,"api_key":"x"},{"id":2,"status":"paid","total":7}],"next":null}`

func TestRecipeTest(t *testing.T) {
	w := newWorld(t, nil) // no daemon
	good := w.file("good.json", `{"schemaVersion":1,"select":"$.data","mode":"table","fields":{"ID":"id","Total":"total"},"record":{"id":"id","total":"total"}}`)
	wrapped := w.file("wrapped.json", `{"schemaVersion":1,"id":"orders","name":"Orders","request":{"method":"GET","url":"https://api.example.com"},"response":{"schemaVersion":1,"select":"$.data","mode":"table","fields":{"ID":"id"}}}`)
	bare := w.file("bare.json", `{"id":"orders","name":"Orders","request":{}}`)
	answer := w.file("answer.json", orders)
	page := w.file("page.json", `{"data":[{"id":3,"total":1.50}]}`)
	check(t, "valid", w.hb("recipe", "test", good), said{0, "the recipe is valid\n", ""})
	check(t, "valid, JSON", w.hb("recipe", "test", good, "--json"), said{0, "{\n  \"ok\": true\n}\n", ""})
	check(t, "rendered", w.hb("recipe", "test", good, answer, "--name", "Sales"), said{0, "## Sales\n\n| ID | Total |\n| --- | --- |\n| 9007199254740993 | 30.00 |\n| 2 | 7 |\n", ""})
	w.stdin = `{"data":[{"id":3,"total":1.50}]}`
	records := "[\n  {\n    \"id\": 9007199254740993,\n    \"total\": 30.00\n  },\n  {\n    \"id\": 2,\n    \"total\": 7\n  },\n  {\n    \"id\": 3,\n    \"total\": 1.50\n  }\n]\n"
	check(t, "two pages", w.hb("recipe", "test", good, answer, page, "--format", "json"), said{0, records, ""})
	check(t, "two pages, one on stdin", w.hb("recipe", "test", good, answer, "-", "--format", "json"), said{0, records, ""})
	w.stdin = orders
	check(t, "a wrapper's", w.hb("recipe", "test", wrapped, "-"), said{0, "## Orders\n\n| ID |\n| --- |\n| 9007199254740993 |\n| 2 |\n", ""})
	if got := w.hb("recipe", "test", bare, answer, "--format", "json"); got.Exit != 0 {
		t.Errorf("a wrapper without a recipe: %+v", got)
	}
	check(t, "everything", w.hb("recipe", "test", good, page, "--json", "--name", "P"), said{0, `{
  "ok": true,
  "markdown": "## P\n\n| ID | Total |\n| --- | --- |\n| 3 | 1.50 |",
  "records": [
    {
      "id": 3,
      "total": 1.50
    }
  ],
  "meta": {
    "mode": "table",
    "selected": 1,
    "rendered": 1,
    "truncated": false,
    "shown": 1
  }
}
`, ""})
}

func TestRecipeTestRefuses(t *testing.T) {
	w := newWorld(t, nil)
	bad := w.file("bad.json", `{"schemaVersion":2,"select":"$.data[","mode":"list","fields":{"A":"a"},"fields":{}}`)
	got := w.hb("recipe", "test", bad)
	if got.Exit != 6 || got.Out != "" {
		t.Errorf("exit %d, %q", got.Exit, got.Out)
	}
	for _, part := range []string{"HOME/bad.json: the recipe has ", "\n  response.schemaVersion: ", "\n  response.select: ", "\n  response.mode: ", "\nhbrestd: hint: docs/recipe-format.md describes each key.\n"} {
		if !contains(got.ErrOut, part) {
			t.Errorf("no %q in:\n%s", part, got.ErrOut)
		}
	}
	good := w.file("good.json", `{"schemaVersion":1,"select":"$.data","mode":"table","fields":{"ID":"id"}}`)
	broken := w.file("broken.json", "{\"data\":\n [1,]}")
	check(t, "broken answer", w.hb("recipe", "test", good, broken), said{6, "", "hbrestd: error: HOME/broken.json:2:4: invalid character ',' at start of value\nhbrestd: hint: Give one JSON value.\n"})
	check(t, "broken recipe", w.hb("recipe", "test", broken), said{6, "", "hbrestd: error: HOME/broken.json:2:4: invalid character ',' at start of value\nhbrestd: hint: Give one JSON value.\n"})
	check(t, "stdin twice", w.hb("recipe", "test", "-", "-"), said{2, "", "hbrestd: error: stdin (-) can be read once only\nhbrestd: hint: `hbrestd recipe test --help` shows how it is used.\n"})
	check(t, "format", w.hb("recipe", "test", good, "--format", ""), said{2, "", "hbrestd: error: --format is \"\"; use markdown, json or both\nhbrestd: hint: `hbrestd recipe test --help` shows how it is used.\n"})
}

func TestRecipeDerive(t *testing.T) {
	w := newWorld(t, nil)
	w.stdin = orders
	got := w.hb("recipe", "derive", "-", "--name", "Orders")
	if got.Exit != 0 || contains(got.Out, "api_key") || !contains(got.Out, `"title": "Orders"`) {
		t.Errorf("%+v", got)
	}
	recipe, answer := w.file("derived.json", got.Out), w.file("answer.json", orders)
	if got := w.hb("recipe", "test", recipe, answer); got.Exit != 0 || !contains(got.Out, "9007199254740993") {
		t.Errorf("what was derived does not render its answer: %+v", got)
	}
	w.stdin = `{"id":1,"name":"x","size":2}`
	check(t, "one field", w.hb("recipe", "derive", "-", "--max-fields", "1"), w.hb("recipe", "derive", w.file("small.json", w.stdin), "--max-fields", "1"))
	w.stdin = "[]"
	if got := w.hb("recipe", "derive", "-"); got.Exit != 6 || got.Out != "" || !contains(got.ErrOut, "hbrestd: error: no recipe could be made of -: ") {
		t.Errorf("nothing to derive from: %+v", got)
	}
	hint := "hbrestd: hint: `hbrestd recipe derive --help` shows how it is used.\n"
	check(t, "0 fields", w.hb("recipe", "derive", "-", "--max-fields", "0"), said{2, "", "hbrestd: error: --max-fields is 0, not a whole number from 1 to 20\n" + hint})
	check(t, "21 fields", w.hb("recipe", "derive", "-", "--max-fields", "21"), said{2, "", "hbrestd: error: --max-fields is 21, not a whole number from 1 to 20\n" + hint})
	w.stdin = orders
	if got := w.hb("recipe", "derive", "-", "--max-fields", "20", "--json"); got.Exit != 0 || !contains(got.Out, "\"recipe\": {\n") {
		t.Errorf("20 fields: %+v", got)
	}
}
