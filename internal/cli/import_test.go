package cli

import (
	"crypto/sha256"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/control"
	"github.com/hyperbolic-gateway/hb-rest/internal/importer"
)

const shopYAML = `openapi: 3.0.3
info: {title: Shop, version: "1"}
servers: [{url: "https://api.example.com/v1"}]
components:
  securitySchemes: {key: {type: apiKey, in: header, name: X-Api-Key}}
paths:
  /pets:
    get: {operationId: listPets, tags: [pets], summary: All pets, security: [{key: []}], responses: {"204": {description: d}}}
  /pets/{id}:
    get: {operationId: getPet, tags: [pets], summary: One pet, parameters: [{name: id, in: path, required: true, schema: {type: integer}}], responses: {"204": {description: d}}}
  /orders:
    delete: {operationId: dropOrders, tags: [orders], summary: Drop, responses: {"204": {description: d}}}
  /photos:
    post: {operationId: addPhoto, tags: [pets], requestBody: {required: true, content: {multipart/form-data: {schema: {type: object}}}}, responses: {"204": {description: d}}}
`

// drafts are the documents that the importer makes of a text.
func drafts(t *testing.T, text string) map[string]json.RawMessage {
	t.Helper()
	r, err := importer.OpenAPI([]byte(text), importer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m := map[string]json.RawMessage{}
	for _, d := range r.Drafts {
		m[d.ID] = d.Document
	}
	return m
}

// A document is read whole up to the same size wherever it comes from.
func TestImportLimits(t *testing.T) {
	if control.MaxFetch != importer.MaxSource {
		t.Errorf("the daemon fetches %d bytes, the importer reads %d", control.MaxFetch, importer.MaxSource)
	}
}

// Nothing is saved that nobody has chosen.
func TestImportNeedsAChoice(t *testing.T) {
	for _, tc := range []struct {
		args   string
		person bool
		exit   int
		calls  int
	}{
		{"openapi FILE", false, exitUsage, 0},
		{"openapi FILE --all", false, exitUsage, 0},
		{"openapi FILE --only pets", false, exitUsage, 0},
		{"openapi FILE --yes", false, exitUsage, 0},
		{"openapi FILE --yes", true, exitUsage, 0},
		{"openapi FILE --yes --tag pets", false, exitUsage, 0},
		{"openapi FILE --json", true, exitUsage, 0},
		{"openapi FILE --dry-run", false, exitOK, 0},
		{"openapi FILE --dry-run --all --yes", false, exitOK, 0},
		{"openapi FILE --yes --all", false, exitOK, 1},
		{"openapi FILE --yes --only *pet*", true, exitOK, 1},
		{"openapi FILE --yes --json --all", true, exitOK, 1},
		{"openapi FILE --yes --only nothing", false, exitFailed, 0},
		{"openapi", false, exitUsage, 0},
		{"raml FILE", false, exitUsage, 0},
	} {
		f := &fake{docs: docs()}
		w := newWorld(t, f)
		w.person = tc.person
		file := w.file("shop.yaml", shopYAML)
		got := w.hb(append([]string{"import"}, strings.Fields(strings.ReplaceAll(tc.args, "FILE", file))...)...)
		if got.Exit != tc.exit || len(f.asked()) != tc.calls {
			t.Errorf("%s (person %t): exit %d, calls %v\n%s%s", tc.args, tc.person, got.Exit, f.asked(), got.Out, got.ErrOut)
		}
	}
}

func TestImportDryRun(t *testing.T) {
	f := &fake{docs: docs()}
	w := newWorld(t, f)
	got := w.hb("import", "openapi", w.file("shop.yaml", shopYAML), "--dry-run")
	var lines []string
	for line := range strings.Lines(got.Out) {
		if !strings.HasPrefix(line, "    ") {
			lines = append(lines, strings.Join(strings.Fields(line)[:3], " "))
		}
	}
	want := []string{"new list-pets GET", "new get-pet GET", "new drop-orders DELETE", "refused POST /photos:", "3 new, 1", "store the credential"}
	if diff := cmp.Diff(want, lines); diff != "" || got.Exit != 0 || got.ErrOut != "" {
		t.Errorf("%d %s(-want +got):\n%s\n%s", got.Exit, got.ErrOut, diff, got.Out)
	}
	if !strings.Contains(got.Out, "(MULTIPART)") || !strings.Contains(got.Out, "1 refused; nothing is saved\n") || !strings.Contains(got.Out, "hbrestd secret set ") {
		t.Error(got.Out)
	}

	// Without a daemon a dry run still tells what is in the document.
	alone := newWorld(t, nil)
	got = alone.hb("import", "openapi", alone.file("shop.yaml", shopYAML), "--dry-run")
	if got.Exit != 0 || !strings.Contains(got.Out, "hbrestd does not run") {
		t.Errorf("%+v", got)
	}
	if got = alone.hb("import", "openapi", alone.file("shop.yaml", shopYAML), "--all", "--yes"); got.Exit != exitNotRunning {
		t.Errorf("%+v", got)
	}
}

// A person picks from the numbered list.
func TestImportAsks(t *testing.T) {
	for _, tc := range []struct {
		stdin string
		args  []string
		exit  int
		saved []string
	}{
		{"1,3\n", nil, 0, []string{"drop-orders", "list-pets"}},
		{"x\n2-9\n2\n", nil, 0, []string{"get-pet"}},
		{"all\n", nil, 0, []string{"drop-orders", "get-pet", "list-pets"}},
		{"\n", nil, 1, nil},
		{"", nil, 1, nil},
		{"y\n", []string{"--all"}, 0, []string{"drop-orders", "get-pet", "list-pets"}},
		{"n\n", []string{"--all"}, 1, nil},
		{"y\n", []string{"--method", "delete"}, 0, []string{"drop-orders"}},
		{"2\n", []string{"--tag", "PETS"}, 0, []string{"get-pet"}},
	} {
		f := &fake{docs: docs()}
		w := newWorld(t, f)
		w.person, w.stdin = true, tc.stdin
		got := w.hb(append([]string{"import", "openapi", w.file("shop.yaml", shopYAML)}, tc.args...)...)
		if diff := cmp.Diff(tc.saved, f.ids()); diff != "" || got.Exit != tc.exit {
			t.Errorf("%q %v: exit %d (-want +got):\n%s\n%s%s", tc.stdin, tc.args, got.Exit, diff, got.Out, got.ErrOut)
		}
		// The command is printed for what is saved, and only then.
		needs := strings.Contains(strings.Join(tc.saved, " "), "list-pets")
		if strings.Contains(got.Out, "hbrestd secret set") != needs {
			t.Errorf("%q: %s", tc.stdin, got.Out)
		}
		if tc.args == nil && !strings.Contains(got.Out, "   3 new        drop-orders  DELETE /orders\n") {
			t.Error(got.Out)
		}
	}
}

func TestNumbers(t *testing.T) {
	for _, tc := range []struct {
		text string
		want []int
		err  string
	}{
		{"1", []int{1}, ""},
		{" 5, 1-2\t2 ", []int{1, 2, 5}, ""},
		{"ALL", []int{1, 2, 3, 4, 5}, ""},
		{"5-5,", []int{5}, ""},
		{"0", nil, `"0" is no number or range from 1 to 5`},
		{"6", nil, `"6" is no number or range from 1 to 5`},
		{"1-6", nil, `"1-6" is no number or range from 1 to 5`},
		{"3-1", nil, `"3-1" is no number or range from 1 to 5`},
		{"1-2-3", nil, `"1-2-3" is no number or range from 1 to 5`},
		{"-1", nil, `"-1" is no number or range from 1 to 5`},
		{"a", nil, `"a" is no number or range from 1 to 5`},
		{"99999999999999999999", nil, `"99999999999999999999" is no number or range from 1 to 5`},
	} {
		got, err := numbers(tc.text, 5)
		said := ""
		if err != nil {
			said = err.Error()
		}
		if diff := cmp.Diff(tc.want, got); diff != "" || said != tc.err {
			t.Errorf("%q: %q, want %q (-want +got):\n%s", tc.text, said, tc.err, diff)
		}
	}
}

// What was imported before is told apart: what a person has edited, or made, is
// kept; what the source has changed is updated; what it lost is named.
func TestImportAgain(t *testing.T) {
	before := drafts(t, shopYAML)
	after := strings.NewReplacer("All pets", "Every pet", "Drop,", "Drop all,").Replace(shopYAML)
	f := &fake{docs: docs()}
	w := newWorld(t, f)
	file := w.file("shop.yaml", after)
	from := func(id, source, title, op string, edited bool) control.ImportedWrapper {
		sum := sha256.Sum256(before[id])
		return control.ImportedWrapper{
			ID: id, SHA256: control.Digest(sum), Edited: edited, ImportOrigin: control.ImportOrigin{Kind: "openapi", Source: source, Title: title, Operation: op},
		}
	}
	f.docs["list-pets"] = before["list-pets"]
	f.docs["get-pet"] = json.RawMessage(strings.Replace(string(before["get-pet"]), "One pet", "My pet", 1))
	f.docs["drop-orders"] = json.RawMessage(strings.Replace(string(before["drop-orders"]), "Drop", "Mine", 1))
	f.docs["old"] = json.RawMessage(`{"id":"old"}`)
	f.origins = []control.ImportedWrapper{
		from("drop-orders", file, "Shop", "DELETE /orders", true), from("get-pet", file, "Shop", "GET /pets/{id}", true),
		from("list-pets", file, "Shop", "GET /pets", false), from("old", file, "Shop", "GET /old", false),
	}
	states := func(args ...string) (map[string]string, *importReport) {
		t.Helper()
		got := w.hb(append([]string{"import", "openapi", file, "--json"}, args...)...)
		r := new(importReport)
		if err := json.Unmarshal([]byte(got.Out), r); err != nil || got.Exit != 0 {
			t.Fatalf("%v %+v", err, got)
		}
		m := map[string]string{}
		for _, d := range r.Drafts {
			m[d.ID] = d.State
		}
		return m, r
	}
	m, r := states("--dry-run")
	if diff := cmp.Diff(map[string]string{"list-pets": "changed", "get-pet": "edited", "drop-orders": "edited"}, m); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	gone := f.origins[3]
	gone.Source = "HOME/shop.yaml"
	if diff := cmp.Diff([]control.ImportedWrapper{gone}, r.Vanished); diff != "" {
		t.Errorf("vanished (-want +got):\n%s", diff)
	}
	if _, r := states("--dry-run", "--tag", "pets"); len(r.Vanished) != 0 {
		t.Error("a part of the document says that the rest has vanished")
	}
	text := w.hb("import", "openapi", file, "--dry-run").Out
	for _, want := range []string{
		"kept: it was edited, and its source is what it was\n", "kept: it was edited, and its source has changed too",
		"All pets", "+ ", "vanished   old  GET /old (saved; `hbrestd wrapper rm old` removes it)\n", "0 new, 1 changed, 2 edited, 1 vanished, 1 refused; nothing is saved\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	w.hb("import", "openapi", file, "--all", "--yes")
	want := &control.ApplyRequest{Documents: []control.ApplyDocument{{
		Source: "GET /pets", Wrapper: drafts(t, after)["list-pets"],
		Origin: &control.ImportOrigin{Kind: "openapi", Source: file, Title: "Shop", Operation: "GET /pets"},
	}}}
	if diff := cmp.Diff(want, f.applied); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	// Another document, or a person, has the id.
	for name, origin := range map[string][]control.ImportedWrapper{
		"by hand": nil, "another document": {from("get-pet", "/elsewhere.yaml", "Zoo", "GET /pets/{id}", false)},
		"another operation": {from("get-pet", file, "Shop", "GET /dogs/{id}", false)},
	} {
		f.origins = origin
		if m, _ := states("--dry-run"); m["get-pet"] != "taken" {
			t.Errorf("%s: %v", name, m)
		}
	}
	f.docs = docs(`{"id":"GET-Pet"}`)
	if m, _ := states("--dry-run"); m["get-pet"] != "taken" {
		t.Errorf("an id that differs in case: %v", m)
	}
	if m, _ := states("--dry-run", "--prefix", "shop"); m["shop.get-pet"] != "new" {
		t.Errorf("with a prefix: %v", m)
	}
}

// A document at an address comes through the daemon, and what may be a
// credential in the address is not kept.
func TestImportURL(t *testing.T) {
	f := &fake{docs: docs()}
	f.fetch = func(*control.FetchRequest) (*control.FetchResult, error) {
		return &control.FetchResult{OK: true, Body: []byte(shopYAML)}, nil
	}
	w := newWorld(t, f)
	got := w.hb("import", "openapi", "HTTPS://docs.example.com/shop.yaml?key=canary-4711#x", "--only", "get-pet", "--yes", "--json")
	if got.Exit != 0 || f.applied == nil || strings.Contains(got.Out+got.ErrOut, "canary") {
		t.Fatalf("%+v", got)
	}
	if o := f.applied.Documents[0].Origin; o.Source != "https://docs.example.com/shop.yaml" {
		t.Errorf("%+v", o)
	}
	if diff := cmp.Diff([]string{`fetch {"url":"https://docs.example.com/shop.yaml?key=canary-4711#x"}`, "apply 1 dry=false"}, f.asked()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// One curl line is a choice by itself, and where its wrapper calls is its source.
func TestImportCurl(t *testing.T) {
	f := &fake{docs: docs()}
	w := newWorld(t, f)
	w.stdin = "curl -H 'Authorization: Bearer canary-4711-abcdefgh' \\\n 'https://api.example.com:8443/orders?limit=10'\n"
	got := w.hb("import", "curl", "-", "--yes")
	if got.Exit != 0 || f.applied == nil || strings.Contains(got.Out+got.ErrOut, "canary") {
		t.Fatalf("%+v", got)
	}
	want := &control.ImportOrigin{Kind: "curl", Source: "https://api.example.com:8443", Operation: "GET /orders"}
	if diff := cmp.Diff(want, f.applied.Documents[0].Origin); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, tc := range []struct {
		line string
		exit int
		said string
	}{
		{"curl -F file=@canary-4711 https://api.example.com/", exitFailed, "nothing can be imported: "},
		{"wget https://canary-4711.example.com/", exitInvalid, ""},
		{"curl 'https://canary-4711.example.com/", exitInvalid, ""},
		{"", exitInvalid, ""},
	} {
		got := w.hb("import", "curl", tc.line, "--yes")
		if got.Exit != tc.exit || !strings.Contains(got.ErrOut, tc.said) || strings.Contains(got.Out+got.ErrOut, "canary") {
			t.Errorf("%q: %+v", tc.line, got)
		}
	}
	if got := w.hb("import", "postman", w.file("p.json", `{"canary": 4711`), "--dry-run"); got.Exit != exitInvalid || strings.Contains(got.ErrOut, "4711") {
		t.Errorf("%+v", got)
	}
	if got := w.hb("import", "har", w.file("h.har", `{"log":{"version":"1.2","entries":[]}}`), "--dry-run"); got.Exit != exitInvalid {
		t.Errorf("%+v", got)
	}
	if got := w.hb("import", "har", "/no/such/file", "--dry-run"); got.Exit != exitFailed {
		t.Errorf("%+v", got)
	}
}
