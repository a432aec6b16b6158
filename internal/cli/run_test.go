package cli

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

const typedDocument = `{"schemaVersion":1,"id":"typed","inputSchema":{"type":"object","properties":{
 "s":{"type":"string"},"ns":{"type":["string","null"]},"n":{"type":"number"},"i":{"type":["integer","null"]},"b":{"type":"boolean"},
 "o":{"type":"object"},"as":{"type":"array","items":{"type":"string"}},"ai":{"type":"array","items":{"type":"integer"}},"aa":{"type":"array","items":{"type":"array","items":{"type":"string"}}},
 "any":{}}}}`

func theRun() *api.RunResult {
	return &api.RunResult{
		OK: true, Status: ptr(200), DurationMs: 42, Wrapper: api.WrapperRef{ID: "typed", Name: "Typed"},
		Markdown: ptr("# Typed\n\n| N |\n| --- |\n| 9007199254740993 |\n"), Records: json.RawMessage(`[{"n":9007199254740993,"p":30.00}]`),
		Meta: api.Meta{Mode: "table", Selected: 1, Rendered: 1, Shown: ptr(1)},
	}
}

// Expected by hand: what JSON takes as a number, true, false, null, an array
// or an object becomes that, unless the schema says string.
func TestArguments(t *testing.T) {
	f := &fake{docs: docs(typedDocument), run: func(*api.RunRequest) (*api.RunResult, error) { return theRun(), nil }}
	w := newWorld(t, f)
	file := w.file("args.json", `{"s":"from file","n":30.00,"big":9007199254740993}`)
	for _, tc := range []struct {
		flags []string
		want  string // the arguments that are sent; "" none
	}{
		{nil, ``},
		{[]string{"--arg", "s=5", "-a", "n=5"}, `{"s":"5","n":5}`},
		{[]string{"-a", "s=true", "-a", "b=true"}, `{"s":"true","b":true}`},
		{[]string{"-a", "ns=null", "-a", "i=null"}, `{"ns":"null","i":null}`},
		{[]string{"-a", "n=9007199254740993.10", "-a", "i=-0"}, `{"n":9007199254740993.10,"i":-0}`},
		{[]string{"-a", "i=007", "-a", "n=1e5", "-a", "b=yes"}, `{"i":"007","n":1e5,"b":"yes"}`},
		{[]string{"-a", `o={"a": [1, "x"]}`, "-a", `any=["x"]`}, `{"o":{"a":[1,"x"]},"any":["x"]}`},
		{[]string{"-a", `any=5`, "-a", `other={}`, "-a", "third=x"}, `{"any":5,"other":{},"third":"x"}`},
		{[]string{"-a", `n="5"`, "-a", `s="5"`}, `{"n":"\"5\"","s":"\"5\""}`},
		{[]string{"-a", "s=", "-a", "n="}, `{"s":"","n":""}`},
		{[]string{"-a", "s=a=b,c"}, `{"s":"a=b,c"}`},
		{[]string{"-a", "as=1"}, `{"as":["1"]}`},
		{[]string{"-a", "as=1", "-a", "n=2", "-a", "as=x"}, `{"as":["1","x"],"n":2}`},
		{[]string{"-a", "ai=1", "-a", "ai=2"}, `{"ai":[1,2]}`},
		{[]string{"-a", "ai=[1,2]", "-a", "ai=3"}, `{"ai":[1,2,3]}`},
		{[]string{"-a", `as=["a","b"]`}, `{"as":["a","b"]}`},
		{[]string{"-a", `aa=[["a"]]`}, `{"aa":[["a"]]}`},
		{[]string{"--args", ` {"n": 30.00} `}, `{"n":30.00}`},
		{[]string{"--args", "-"}, `{"q":1}`},
		{[]string{"--args", "@" + file}, `{"s":"from file","n":30.00,"big":9007199254740993}`},
		{[]string{"--args", "@" + file, "-a", "s=5"}, `{"n":30.00,"big":9007199254740993,"s":"5"}`},
		{[]string{"--args", `{"as":["whole"]}`, "-a", "as=1", "-a", "as=2"}, `{"as":["1","2"]}`},
	} {
		w.stdin = "\n{\"q\": 1}\n"
		before := len(f.asked())
		if got := w.hb(append([]string{"wrapper", "run", "typed"}, tc.flags...)...); got.Exit != 0 {
			t.Errorf("%q: exit %d, %s", tc.flags, got.Exit, got.ErrOut)
			continue
		}
		want := `run {"id":"typed","args":` + tc.want + `,"format":"markdown"}`
		if tc.want == "" {
			want = `run {"id":"typed","format":"markdown"}`
		}
		if diff := cmp.Diff([]string{want}, f.asked()[before:]); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tc.flags, diff)
		}
	}

	hint := "hbrestd: hint: `hbrestd wrapper run --help` shows how it is used.\n"
	for _, tc := range []struct {
		flags []string
		want  said
	}{
		{[]string{"-a", "novalue"}, said{2, "", "hbrestd: error: --arg \"novalue\" is not NAME=VALUE\n" + hint}},
		{[]string{"-a", "=x"}, said{2, "", "hbrestd: error: --arg \"=x\" is not NAME=VALUE\n" + hint}},
		{[]string{"-a", "n=1", "-a", "n=2"}, said{2, "", "hbrestd: error: the argument \"n\" is given twice, and is not an array\n" + hint}},
		{[]string{"--args", "[1]"}, said{6, "", "hbrestd: error: --args is not a JSON object\nhbrestd: hint: Write {\"name\": value}.\n"}},
		{[]string{"--args", "{\n\"a\": tru}"}, said{6, "", "hbrestd: error: --args:2:9: invalid character '}' in literal true (expecting 'e')\nhbrestd: hint: Give one JSON value.\n"}},
		{[]string{"--args", "@" + w.home + "/nowhere"}, said{1, "", "hbrestd: error: --args: open HOME/nowhere: no such file or directory\n"}},
		{[]string{"--format", "xml"}, said{2, "", "hbrestd: error: --format is \"xml\"; use markdown, json or both\n" + hint}},
		{[]string{"--max-pages", "0"}, said{2, "", "hbrestd: error: --max-pages is 0, not a whole number from 1 to 25\n" + hint}},
		{[]string{"--max-pages", "26"}, said{2, "", "hbrestd: error: --max-pages is 26, not a whole number from 1 to 25\n" + hint}},
		{[]string{"--max-items", "0"}, said{2, "", "hbrestd: error: --max-items is 0, not a whole number from 1 to 1000\n" + hint}},
		{[]string{"--max-items", "1001"}, said{2, "", "hbrestd: error: --max-items is 1001, not a whole number from 1 to 1000\n" + hint}},
		{[]string{"--fields", ""}, said{2, "", "hbrestd: error: --fields names no field\n" + hint}},
		{[]string{"more"}, said{2, "", "hbrestd: error: unexpected argument \"more\" after the id of a wrapper\n" + hint}},
	} {
		got := w.hb(append([]string{"wrapper", "run", "typed"}, tc.flags...)...)
		check(t, strings.Join(tc.flags, " "), got, tc.want)
	}
	before := len(f.asked())
	for _, flags := range [][]string{
		{"--max-items", "1000", "--fields", `Name,"Price, net"`, "--fields", "id"},
		{"--max-items", "1", "--max-pages", "25"},
	} {
		if got := w.hb(append([]string{"wrapper", "run", "typed"}, flags...)...); got.Exit != 0 {
			t.Errorf("%q: exit %d, %s", flags, got.Exit, got.ErrOut)
		}
	}
	if diff := cmp.Diff([]string{
		`run {"id":"typed","format":"markdown","max_items":1000,"fields":["Name","Price, net","id"]}`,
		`run {"id":"typed","format":"markdown","max_pages":25,"max_items":1}`,
	}, f.asked()[before:]); diff != "" {
		t.Errorf("scope (-want +got):\n%s", diff)
	}
	check(t, "no such wrapper", w.hb("wrapper", "run", "x", "-a", "n=1"), said{5, "", "hbrestd: error: no wrapper \"x\"; near: orders.list\nhbrestd: hint: `hbrestd wrapper list` shows the saved ids.\n"})
}

func TestRunFormats(t *testing.T) {
	f := &fake{docs: docs(typedDocument), run: func(q *api.RunRequest) (*api.RunResult, error) {
		r := theRun()
		switch q.Format {
		case "markdown":
			r.Records = nil
		case "json":
			r.Markdown = nil
		}
		return r, nil
	}}
	w := newWorld(t, f)
	md, records := "# Typed\n\n| N |\n| --- |\n| 9007199254740993 |\n", "[\n  {\n    \"n\": 9007199254740993,\n    \"p\": 30.00\n  }\n]\n"
	check(t, "default", w.hb("wrapper", "run", "typed"), said{0, md, ""})
	check(t, "markdown", w.hb("wrapper", "run", "typed", "--format", "markdown"), said{0, md, ""})
	check(t, "json", w.hb("wrapper", "run", "typed", "--format", "json", "--max-pages", "25"), said{0, records, ""})
	check(t, "both", w.hb("wrapper", "run", "typed", "--format", "both", "--max-pages", "1"), said{0, md + "\n" + records, ""})
	check(t, "everything", w.hb("wrapper", "run", "typed", "--json"), said{0, `{
  "ok": true,
  "status": 200,
  "durationMs": 42,
  "wrapper": {
    "id": "typed",
    "name": "Typed"
  },
  "markdown": "# Typed\n\n| N |\n| --- |\n| 9007199254740993 |\n",
  "records": [
    {
      "n": 9007199254740993,
      "p": 30.00
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
	want := []string{
		`run {"id":"typed","format":"markdown"}`, `run {"id":"typed","format":"markdown"}`, `run {"id":"typed","format":"json","max_pages":25}`,
		`run {"id":"typed","format":"both","max_pages":1}`, `run {"id":"typed"}`,
	}
	if diff := cmp.Diff(want, f.asked()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func TestRunNotes(t *testing.T) {
	r := theRun()
	r.Meta = api.Meta{Mode: "table", Selected: 120, Rendered: 50, Truncated: true, Reason: "items", Shown: ptr(50), EmptyFields: []string{"Price", "VAT"}, Warnings: []string{"the body is one object"}}
	r.Paging = &api.Paging{Pages: 2, Cap: 2, Items: 120, More: true, Stopped: "page_cap", Error: &api.Short{Code: "UPSTREAM_RATE_LIMITED", RetryAfterMs: 29_001, Message: "slow down"}}
	r.Indexed = &api.Indexed{Error: &api.Short{Code: "CORTEX_UNAVAILABLE", Message: "not built"}}
	r.Warnings = []api.Warning{{Field: "args.x", Code: "UNKNOWN_FIELD", Message: "is not known", Hint: "Known: a."}}
	f := &fake{run: func(*api.RunRequest) (*api.RunResult, error) { return r, nil }}
	check(t, "notes", newWorld(t, f).hb("wrapper", "run", "typed"), said{0, "# Typed\n\n| N |\n| --- |\n| 9007199254740993 |\n", `hbrestd: 2 pages read, there are more (page cap); page 3 failed: UPSTREAM_RATE_LIMITED slow down (try again after 30 s)
hbrestd: showing 50 of 120 items, cut by the recipe's limit of items
hbrestd: empty in every item: Price, VAT
hbrestd: index failed: CORTEX_UNAVAILABLE not built
hbrestd: the body is one object
hbrestd: warning: args.x: is not known (Known: a.)
`})
	for n, cut := range map[string]string{"50": "--max-items", "51": "the recipe's limit of items"} {
		if got := newWorld(t, f).hb("wrapper", "run", "typed", "--max-items", n).ErrOut; !strings.Contains(got, "showing 50 of 120 items, cut by "+cut+"\n") {
			t.Errorf("--max-items %s: %s", n, got)
		}
	}
}

func TestRunFails(t *testing.T) {
	f := &fake{run: func(*api.RunRequest) (*api.RunResult, error) {
		return nil, &api.CallError{
			Err:     fault.New("UPSTREAM_RATE_LIMITED", "the API answered 429: slow down").With(fault.Status(429), fault.RetryAfter(4200*time.Millisecond)),
			Wrapper: &api.WrapperRef{ID: "typed", Name: "Typed"}, Duration: 184 * time.Millisecond,
			Request: &api.Request{Method: "GET", URL: "https://api.example.com/?a=1&b=2", Headers: json.RawMessage(`{"Accept":"application/json"}`)},
		}
	}}
	w := newWorld(t, f)
	check(t, "for a person", w.hb("wrapper", "run", "typed"), said{7, "", "hbrestd: error: the API answered 429: slow down\nhbrestd: hint: Wait, then repeat the call; ask for fewer pages.\n"})
	check(t, "for a program", w.hb("wrapper", "run", "typed", "--json"), said{7, "", `{
  "ok": false,
  "code": "UPSTREAM_RATE_LIMITED",
  "status": 429,
  "field": null,
  "retryable": true,
  "hint": "Wait, then repeat the call; ask for fewer pages.",
  "message": "the API answered 429: slow down",
  "retryAfterMs": 4200,
  "details": [],
  "wrapper": {
    "id": "typed",
    "name": "Typed"
  },
  "request": {
    "method": "GET",
    "url": "https://api.example.com/?a=1&b=2",
    "headers": {
      "Accept": "application/json"
    }
  },
  "durationMs": 184
}
`})
}

func TestWrapperTest(t *testing.T) {
	plan := &api.Plan{
		OK: true, DryRun: true, Wrapper: api.WrapperRef{ID: "typed", Name: "Typed"}, Args: json.RawMessage(`{"n":1}`), Secret: "orders-key", Mutating: true,
		Request:  api.Request{Method: "POST", URL: "https://api.example.com/?a=1&b=2", Headers: json.RawMessage(`{"Content-Type":"application/json","Accept":"*/*"}`), Body: json.RawMessage(`{"n":9007199254740993,"s":"<&>"}`)},
		Warnings: []api.Warning{{Code: "X", Message: "looks odd"}},
	}
	f := &fake{docs: docs(typedDocument), test: func(q *api.TestRequest) (*api.TestResult, error) {
		if q.Sample != nil || q.DryRun != nil {
			return &api.TestResult{Run: theRun()}, nil
		}
		return &api.TestResult{Plan: plan}, nil
	}}
	w := newWorld(t, f)
	request := "POST https://api.example.com/?a=1&b=2\nContent-Type: application/json\nAccept: */*\n\n{\"n\":9007199254740993,\"s\":\"<&>\"}\n"
	notes := "hbrestd: the credential orders-key would be added\nhbrestd: this call counts as a write\nhbrestd: warning: looks odd\n"
	check(t, "dry run", w.hb("wrapper", "test", "typed", "-a", "n=1"), said{0, request, notes})
	file := w.file("new.json", typedDocument)
	sample := w.file("sample.json", "[{\"n\": 30.00}]\n")
	md := "# Typed\n\n| N |\n| --- |\n| 9007199254740993 |\n"
	check(t, "sample", w.hb("wrapper", "test", "--file", file, "--sample", sample), said{0, md, ""})
	check(t, "live", w.hb("wrapper", "test", "typed", "--live", "--max-pages", "2", "--max-items", "3", "--fields", "N"), said{0, md, ""})

	plan.Refused = []api.Refusal{{Code: "POLICY_SCHEME", Field: "wrapper.request.url", Message: "plain http is off"}, {Code: "SECRET_NOT_FOUND", Field: "wrapper.request.auth", Message: "no credential orders-key", Hint: "Add it."}}
	plan.Request.Body, plan.Request.BodyType = json.RawMessage(`"a=1&b=2"`), "form"
	check(t, "refused", w.hb("wrapper", "test", "typed"), said{
		7, strings.Replace(request, `{"n":9007199254740993,"s":"<&>"}`, "a=1&b=2", 1),
		notes + "hbrestd: error: a real call would be refused: plain http is off\n  wrapper.request.auth: no credential orders-key (Add it.)\nhbrestd: hint: Use https, or allow plain http to a host of your own with `hbrestd allow add` and --http.\n",
	})

	compact := strings.ReplaceAll(typedDocument, "\n ", "")
	want := []string{
		`test {"id":"typed","args":{"n":1},"format":"markdown"}`,
		`test {"wrapper":` + compact + `,"sample":[{"n":30.00}],"format":"markdown"}`,
		`test {"id":"typed","dryRun":false,"format":"markdown","maxPages":2,"maxItems":3,"fields":["N"]}`,
		`test {"id":"typed","format":"markdown"}`,
	}
	if diff := cmp.Diff(want, f.asked()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}

	hint := "hbrestd: hint: `hbrestd wrapper test --help` shows how it is used.\n"
	check(t, "neither", w.hb("wrapper", "test"), said{2, "", "hbrestd: error: give the id of a wrapper, or --file with a document\n" + hint})
	check(t, "both", w.hb("wrapper", "test", "typed", "-f", file), said{2, "", "hbrestd: error: give the id of a wrapper, or --file with a document\n" + hint})
	check(t, "live sample", w.hb("wrapper", "test", "typed", "--live", "--sample", sample), said{2, "", "hbrestd: error: --live and --sample do not go together\n" + hint})
	check(t, "stdin twice", w.hb("wrapper", "test", "-f", "-", "--sample", "-"), said{2, "", "hbrestd: error: stdin (-) can be read once only\n" + hint})
	two := w.file("two.json", `{"id":"a"}{"id":"b"}`)
	check(t, "two documents", w.hb("wrapper", "test", "-f", two), said{2, "", "hbrestd: error: HOME/two.json holds 2 documents; test one\n" + hint})
	bad := w.file("bad.json", `{"id":`)
	check(t, "no document", w.hb("wrapper", "test", "-f", bad), said{6, "", "hbrestd: error: HOME/bad.json:1:7: the text ends too early\nhbrestd: hint: Give one wrapper document.\n"})
	check(t, "no sample", w.hb("wrapper", "test", "typed", "--sample", bad), said{6, "", "hbrestd: error: HOME/bad.json:1:7: the text ends too early\nhbrestd: hint: Give one JSON value.\n"})
}
