package shim

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

func tool(t *testing.T, name string) *metaTool {
	t.Helper()
	for _, m := range metaTools() {
		if m.name == name {
			return m
		}
	}
	t.Fatalf("no tool %s", name)
	return nil
}

func TestParseArguments(t *testing.T) {
	tests := []struct {
		name, tool, in string
		want           map[string]string
		err, hint      string // parts of them
	}{
		{name: "absent", tool: "wrap_run", in: "", want: map[string]string{}},
		{name: "null", tool: "wrap_run", in: " null ", want: map[string]string{}},
		{
			name: "bytes kept", tool: "wrap_run", in: ` { "id" : "a" , "args" : { "n":30.00, "m" : 9007199254740993 } } `,
			want: map[string]string{"id": `"a"`, "args": `{ "n":30.00, "m" : 9007199254740993 }`},
		},
		{name: "null member is absent", tool: "wrap_run", in: `{"id":"a","args":null}`, want: map[string]string{"id": `"a"`}},
		{name: "other spelling", tool: "wrap_run", in: `{"maxPages":3}`, want: map[string]string{"max_pages": "3"}},
		{name: "other spelling of test", tool: "wrap_test", in: `{"max_pages":3,"dry_run":false}`, want: map[string]string{"maxPages": "3", "dryRun": "false"}},
		{name: "other spelling of derive", tool: "wrap_derive", in: `{"maxFields":3}`, want: map[string]string{"max_fields": "3"}},
		{name: "other spelling of items", tool: "wrap_run", in: `{"maxItems":3}`, want: map[string]string{"max_items": "3"}},
		{name: "other spelling of items of test", tool: "wrap_test", in: `{"max_items":3}`, want: map[string]string{"maxItems": "3"}},
		{name: "both spellings", tool: "wrap_run", in: `{"maxPages":3,"max_pages":4}`, err: "are the same argument"},
		{name: "other spelling of another tool", tool: "wrap_list", in: `{"maxPages":3}`, err: `wrap_list has no argument "maxPages"`, hint: "Arguments of wrap_list: query, limit."},
		{name: "array", tool: "wrap_get", in: `["a"]`, err: "must be an object, not an array", hint: "id (required)"},
		{name: "string", tool: "wrap_get", in: `"a"`, err: "must be an object, not a string"},
		{name: "unknown", tool: "wrap_get", in: `{"id":"a","z":1,"b":2}`, err: `wrap_get has no argument "b", "z"`, hint: "Arguments of wrap_get: id (required)."},
		{name: "unknown and none known", tool: "wrap_reload", in: `{"x":1}`, err: `wrap_reload has no argument "x"`, hint: "wrap_reload takes no arguments."},
		{name: "flat arguments of a wrapper", tool: "wrap_run", in: `{"id":"a","city":"Oslo"}`, err: `"city"`, hint: `{"id":"...","args":{"city":...}}`},
		{name: "given twice", tool: "wrap_run", in: `{"id":"a","args":{},"id":"b"}`, err: "id is given twice to wrap_run", hint: "Send each argument once. Arguments of wrap_run: id (required), args, format, fields, max_items, max_pages."},
		{name: "given twice, the same", tool: "wrap_run", in: `{"id":"a","id":"a"}`, err: "id is given twice"},
		{name: "given twice, spelled otherwise", tool: "wrap_run", in: `{"id":"a","\u0069d":"a"}`, err: "id is given twice"},
		{name: "given twice, unknown", tool: "wrap_reload", in: `{"x":null,"x":1}`, err: "x is given twice to wrap_reload"},
		{name: "twice inside is the daemon's to judge", tool: "wrap_run", in: `{"args":{"a":1,"a":2}}`, want: map[string]string{"args": `{"a":1,"a":2}`}},
		{name: "a document without wrapper", tool: "wrap_create", in: `{"id":"a","name":"A","request":{}}`, err: `wrap_create has no argument "id", "name", "request"`, hint: `Put the whole document inside wrapper: {"wrapper":{"schemaVersion":1,...}}.`},
		{name: "an id and a name without wrapper", tool: "wrap_create", in: `{"id":"a","name":"A"}`, err: `wrap_create has no argument "id", "name"`, hint: `Put the whole document inside wrapper: {"wrapper":{"schemaVersion":1,...}}.`},
		{name: "a document to test without wrapper", tool: "wrap_test", in: `{"id":"a","request":{}}`, err: `wrap_test has no argument "request"`, hint: `Put the whole document inside wrapper: {"wrapper":{"schemaVersion":1,...}}.`},
		{name: "a name as the id", tool: "wrap_run", in: `{"name":"mirror","args":{}}`, err: "wrap_run needs id (not name)", hint: "id (required), args, format, fields, max_items, max_pages. wrap_list shows the ids."},
		{name: "a wrapper as the id", tool: "wrap_delete", in: `{"wrapper":"mirror"}`, err: "wrap_delete needs id (not wrapper)"},
		{name: "a name beside the id", tool: "wrap_run", in: `{"id":"mirror","name":"x"}`, err: `wrap_run has no argument "name"`, hint: `"args":{"name":...}`},
		{name: "long name is shortened", tool: "wrap_get", in: `{"` + strings.Repeat("x", 500) + `":1}`, err: "x…"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, err := parseArguments(tool(t, tt.tool), json.RawMessage(tt.in))
			if tt.err != "" {
				e := fault.From(err)
				if e == nil || e.Code != "BAD_REQUEST" || !strings.Contains(e.Message, tt.err) || !strings.Contains(e.Hint, tt.hint) {
					t.Fatalf("got %v, hint %q; want %q, hint %q", err, e.Hint, tt.err, tt.hint)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for k, v := range a.members {
				got[k] = string(v)
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestWhole(t *testing.T) {
	for in, want := range map[string]int{
		"5": 5, "0": 0, "-3": -3, "5.0": 5, "1e1": 10, "50E-1": 5, "2147483647": 1<<31 - 1, "-2147483648": -1 << 31,
	} {
		a := &arguments{tool: tool(t, "wrap_run"), members: map[string]json.RawMessage{"max_pages": json.RawMessage(in)}}
		if got, err := a.whole("max_pages"); err != nil || *got != want {
			t.Errorf("%s: %v, %v; want %d", in, got, err, want)
		}
	}
	for in, kind := range map[string]string{
		`"5"`: "a string", "5.5": "5.5", "true": "true", "[5]": "an array", "2147483648": "2147483648", "-2147483649": "-2147483649",
		"1e400": "1e400", "1e999999999": "1e999999999", "1e-999999999": "1e-999999999", "000000000000000000001": "000000000000000000001", "{}": "an object",
	} {
		a := &arguments{tool: tool(t, "wrap_run"), members: map[string]json.RawMessage{"max_pages": json.RawMessage(in)}}
		_, err := a.whole("max_pages")
		if want := "BAD_REQUEST: max_pages must be a whole number, not " + kind; err == nil || err.Error() != want {
			t.Errorf("%s: %v; want %s", in, err, want)
		}
	}
}

func TestStrings(t *testing.T) {
	of := func(raw string) *arguments {
		return &arguments{tool: tool(t, "wrap_run"), members: map[string]json.RawMessage{"fields": json.RawMessage(raw)}}
	}
	for in, want := range map[string][]string{`[]`: nil, `["a"]`: {"a"}, ` ["a b","\u00e9",""]`: {"a b", "é", ""}} {
		if got, err := of(strings.TrimSpace(in)).list("fields"); err != nil || cmp.Diff(want, got) != "" {
			t.Errorf("%s: %q %v", in, got, err)
		}
	}
	for in, want := range map[string]string{
		`"a"`:       `BAD_REQUEST: fields must be an array of strings, not a string | Send fields as a JSON array: ["A","B"].`,
		`"[\"a\"]"`: `BAD_REQUEST: fields must be an array of strings, not a string | Send fields as a JSON array: ["A","B"].`,
		`{"a":1}`:   `BAD_REQUEST: fields must be an array of strings, not an object | Arguments of wrap_run: id (required), args, format, fields, max_items, max_pages.`,
		`["a",7]`:   `BAD_REQUEST: fields[1] must be a string, not 7 | Arguments of wrap_run: id (required), args, format, fields, max_items, max_pages.`,
		`[null]`:    `BAD_REQUEST: fields[0] must be a string, not null | Arguments of wrap_run: id (required), args, format, fields, max_items, max_pages.`,
	} {
		_, err := of(in).list("fields")
		if err == nil || err.Error()+" | "+fault.From(err).Hint != want {
			t.Errorf("%s: %v", in, err)
		}
	}
	if got, err := (&arguments{tool: tool(t, "wrap_run")}).list("fields"); got != nil || err != nil {
		t.Errorf("absent: %q %v", got, err)
	}
}

func TestTypes(t *testing.T) {
	a, err := parseArguments(tool(t, "wrap_test"), json.RawMessage(`{"id":7,"wrapper":"{}","args":[1],"dryRun":"yes","sample":""}`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	say := func(err error) {
		got = append(got, err.Error()+" | "+fault.From(err).Hint)
	}
	_, err = a.text("id")
	say(err)
	_, err = a.object("wrapper")
	say(err)
	_, err = a.object("args")
	say(err)
	_, err = a.flag("dryRun")
	say(err)
	known := "Arguments of wrap_test: id, wrapper, args, sample, dryRun, format, fields, maxItems, maxPages."
	want := []string{
		"BAD_REQUEST: id must be a string, not 7 | " + known,
		"BAD_REQUEST: wrapper must be an object, not a string | Send wrapper as a JSON object, not as a string that holds one.",
		"BAD_REQUEST: args must be an object, not an array | " + known,
		"BAD_REQUEST: dryRun must be true or false, not a string | " + known,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if a.sample() != nil {
		t.Error("an empty string is a sample")
	}
}

// TestUnreadableText: what no JSON text can hold is named where it is, and
// nothing of the text is quoted.
func TestUnreadableText(t *testing.T) {
	tests := []struct{ tool, in, want string }{
		{"wrap_run", `{"id":"a","args":{"q":"\ud800private"}}`, "ARGS_INVALID: args.q: holds half of a surrogate pair, which is no character"},
		{"wrap_run", `{"id":"a","args":{"q":"\udc00\ud800"}}`, "ARGS_INVALID: args.q: holds half of a surrogate pair, which is no character"},
		{"wrap_run", `{"id":"a","args":{"tags":["x",{"a b":"\ud83dX"}]}}`, "ARGS_INVALID: args.tags[1]['a b']: holds half of a surrogate pair, which is no character"},
		{"wrap_run", `{"id":"a","args":{"o":{"\ud800":1}}}`, "ARGS_INVALID: args.o: holds half of a surrogate pair, which is no character"},
		{"wrap_run", "{\"id\":\"a\",\"args\":{\"q\":\"\xffprivate\"}}", "ARGS_INVALID: args.q: holds bytes that are not UTF-8"},
		{"wrap_run", `{"id":"\ud800"}`, "BAD_REQUEST: id: holds half of a surrogate pair, which is no character"},
		{"wrap_run", `{"\ud800":1}`, "BAD_REQUEST: arguments: holds half of a surrogate pair, which is no character"},
		{"wrap_create", `{"wrapper":{"name":"\ud800"}}`, "BAD_REQUEST: wrapper.name: holds half of a surrogate pair, which is no character"},
		{"wrap_derive", `{"sample":[{"a":"\ud800"}]}`, "BAD_REQUEST: sample[0].a: holds half of a surrogate pair, which is no character"},
	}
	for _, tt := range tests {
		_, err := parseArguments(tool(t, tt.tool), json.RawMessage(tt.in))
		if err == nil || err.Error() != tt.want {
			t.Errorf("%s: %v, want %s", tt.in, err, tt.want)
		} else if h := fault.From(err).Hint; h != `Send whole characters: as they are, or \uD83D\uDE00 for one beyond U+FFFF.` {
			t.Errorf("%s: hint %q", tt.in, h)
		}
	}
	for _, in := range []string{`{"id":"\ud83d\ude00 \uFFFD \\ud800 😀"}`, `{"id":"a","args":{"a":1,"a":"\u0000"}}`} {
		if _, err := parseArguments(tool(t, "wrap_run"), json.RawMessage(in)); err != nil {
			t.Errorf("%s: %v", in, err)
		}
	}
}
