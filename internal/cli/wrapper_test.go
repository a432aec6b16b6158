package cli

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/control"
)

func check(t *testing.T, what string, got, want said) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

var someEntries = []api.ManifestEntry{
	{ID: "broken", Damaged: "the checksum does not fit", Required: []string{}},
	{ID: "city.weather", Name: "Weather", Method: "GET", Host: "api.example.com", Required: []string{"city", "country"}, Secret: "weather-key", Verified: "2026-11-29T10:00:00Z"},
	{ID: "orders.any", Name: "Orders", Method: "POST", Methods: []string{"POST", "PUT"}, Host: "localhost:8080", Required: []string{}, ExposeAsTool: true, Tool: "wrap_orders_any", Priority: 5},
	{ID: "refused", Name: "Refused", Method: "GET", Host: "api.example.com", Required: []string{}, ExposeAsTool: true, Tool: "wrap_refused", Quarantined: "a type that some clients refuse"},
}

func TestWrapperList(t *testing.T) {
	f := &fake{entries: someEntries}
	w := newWorld(t, f)
	check(t, "for a program", w.hb("wrapper", "list"), said{0, "" +
		"broken\t\t\t\t\tdamaged: the checksum does not fit\t\n" +
		"city.weather\tGET\tapi.example.com\tcity, country\tweather-key\thidden\t2026-11-29T10:00:00Z\n" +
		"orders.any\tPOST/PUT\tlocalhost:8080\t\t\twrap_orders_any\t\n" +
		"refused\tGET\tapi.example.com\t\t\tquarantined: a type that some clients refuse\t\n", ""})
	w.width = 200
	check(t, "on a terminal", w.hb("wrapper", "list"), said{0, "" +
		"ID            METHOD    HOST             NEEDS          SECRET       TOOL                                          VERIFIED\n" +
		"broken        -         -                -              -            damaged: the checksum does not fit            -\n" +
		"city.weather  GET       api.example.com  city, country  weather-key  hidden                                        2026-11-29T10:00:00Z\n" +
		"orders.any    POST/PUT  localhost:8080   -              -            wrap_orders_any                               -\n" +
		"refused       GET       api.example.com  -              -            quarantined: a type that some clients refuse  -\n", ""})
	w.width = 80
	narrow := w.hb("wrapper", "list")
	for line := range strings.Lines(narrow.Out) {
		if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > 80 {
			t.Errorf("a line of %d characters on a terminal of 80: %s", n, line)
		}
	}
	if !strings.Contains(narrow.Out, "city.weather  GET") {
		t.Errorf("the id was cut before what is longer:\n%s", narrow.Out)
	}
	w.width = 0
	check(t, "JSON", w.hb("wrapper", "list", "--json"), said{0, `{
  "revision": 7,
  "wrappers": [
    {
      "id": "broken",
      "name": "",
      "method": "",
      "host": "",
      "required": [],
      "mutating": false,
      "exposeAsTool": false,
      "damaged": "the checksum does not fit"
    },
    {
      "id": "city.weather",
      "name": "Weather",
      "method": "GET",
      "host": "api.example.com",
      "required": [
        "city",
        "country"
      ],
      "secret": "weather-key",
      "mutating": false,
      "exposeAsTool": false,
      "verified": "2026-11-29T10:00:00Z"
    },
    {
      "id": "orders.any",
      "name": "Orders",
      "method": "POST",
      "methods": [
        "POST",
        "PUT"
      ],
      "host": "localhost:8080",
      "required": [],
      "mutating": false,
      "exposeAsTool": true,
      "tool": "wrap_orders_any",
      "priority": 5
    },
    {
      "id": "refused",
      "name": "Refused",
      "method": "GET",
      "host": "api.example.com",
      "required": [],
      "mutating": false,
      "exposeAsTool": true,
      "tool": "wrap_refused",
      "quarantined": "a type that some clients refuse"
    }
  ]
}
`, ""})
	f.entries = []api.ManifestEntry{
		{ID: "a", Method: "GET", Host: "h", Verified: "2026-10-01T10:00:00Z", Stale: true, Drift: []api.Drift{{Field: "Price", Since: "2026-09-30T08:00:00Z"}}},
		{ID: "b", Method: "GET", Host: "h"},
	}
	check(t, "drift", w.hb("wrapper", "list"), said{0, "" +
		"a\tGET\th\t\t\thidden\t2026-10-01T10:00:00Z (stale)\tPrice empty since 2026-09-30\n" +
		"b\tGET\th\t\t\thidden\t\t\n", ""})
	f.entries = []api.ManifestEntry{}
	check(t, "none", w.hb("wrapper", "list"), said{0, "", "hbrestd: no wrapper is saved; `hbrestd wrapper apply FILE` saves one\n"})
}

// The 40th tool is shown, the 41st is not; a higher priority comes first.
func TestWrapperListRanks(t *testing.T) {
	m := &api.Manifest{}
	for i := range 41 {
		id := "w" + string(rune('A'+i/10)) + string(rune('0'+i%10))
		m.Wrappers = append(m.Wrappers, api.ManifestEntry{ID: id, ExposeAsTool: true, Tool: "wrap_" + id})
	}
	m.Wrappers[40].Priority = 1
	m.Wrappers[3].Quarantined = "x"
	ranks := m.ToolRanks()
	if ranks["wE0"] != 1 || ranks["wA0"] != 2 || ranks["wA3"] != 0 || ranks["wD9"] != 40 {
		t.Errorf("ranks %v", ranks)
	}
	if got := toolCell(m.Wrappers[39], 40); got != "wrap_wD9" {
		t.Errorf("at the cap: %q", got)
	}
	if got, want := toolCell(m.Wrappers[39], 41), "wrap_wD9 (rank 41, clients show 40)"; got != want {
		t.Errorf("over the cap: %q, want %q", got, want)
	}
}

func TestWrapperShow(t *testing.T) {
	w := newWorld(t, &fake{docs: docs(`{"schemaVersion":1,"id":"b","z":[],"a":{"<&>":9007199254740993,"p":30.00}}`)})
	check(t, "indented, members in their order", w.hb("wrapper", "show", "b"), said{0, `{
  "schemaVersion": 1,
  "id": "b",
  "z": [],
  "a": {
    "<&>": 9007199254740993,
    "p": 30.00
  }
}
`, ""})
	check(t, "on one line", w.hb("wrapper", "show", "b", "--json"), said{0, `{"schemaVersion":1,"id":"b","z":[],"a":{"<&>":9007199254740993,"p":30.00}}` + "\n", ""})
	check(t, "no such", w.hb("wrapper", "show", "c"), said{5, "", "hbrestd: error: no wrapper \"c\"; near: orders.list\nhbrestd: hint: `hbrestd wrapper list` shows the saved ids.\n"})
}

// The document stays alone on stdout, for programs.
func TestWrapperShowWarns(t *testing.T) {
	w := newWorld(t, &fake{docs: docs(`{"id":"b"}`), entries: []api.ManifestEntry{
		{ID: "a", Stale: true, Verified: "2026-09-01T10:00:00Z"},
		{ID: "b", Stale: true, Verified: "2026-10-01T10:00:00Z", Drift: []api.Drift{{Field: "Price", Since: "2026-09-30T08:00:00Z"}}},
	}})
	check(t, "stale and drifting", w.hb("wrapper", "show", "b", "--json"), said{
		0, `{"id":"b"}` + "\n",
		"hbrestd: warning: verified 2026-10-01 (stale)\nhbrestd: warning: Price empty since 2026-09-30; has the API changed?\n",
	})
}

func TestWrapperRm(t *testing.T) {
	f := &fake{docs: docs(`{"id":"a"}`, `{"id":"b"}`, `{"id":"c"}`, `{"id":"d"}`)}
	w := newWorld(t, f)
	check(t, "one does not exist", w.hb("wrapper", "rm", "a", "x"), said{5, "", "hbrestd: error: no wrapper \"x\"; near: orders.list\nhbrestd: hint: `hbrestd wrapper list` shows the saved ids.\n"})
	check(t, "dry run", w.hb("wrapper", "rm", "a", "b", "-n"), said{0, "would remove a\nwould remove b\n", ""})
	w.person = true
	for _, no := range []string{"", "\n", "n\n", "nay\n", "yess\n"} {
		w.stdin = no
		check(t, "answered "+no, w.hb("wrapper", "rm", "a", "b"), said{1, "", "Remove a, b? [y/N] hbrestd: error: nothing was changed\n"})
	}
	if calls := f.asked(); len(calls) != 0 {
		t.Errorf("something was removed: %v", calls)
	}
	w.stdin = "Yes\n"
	check(t, "answered yes", w.hb("wrapper", "rm", "a", "a"), said{0, "removed a\n", "Remove a? [y/N] "})
	check(t, "not asked", w.hb("wrapper", "rm", "b", "-y"), said{0, "removed b\n", ""})
	w.person = false
	check(t, "nobody to ask", w.hb("wrapper", "rm", "c"), said{0, "removed c\n", ""})
	check(t, "JSON", w.hb("wrapper", "rm", "d", "--json"), said{0, "{\n  \"ok\": true,\n  \"dryRun\": false,\n  \"removed\": [\n    \"d\"\n  ]\n}\n", ""})
	if diff := cmp.Diff([]string{`change {"action":"delete","id":"a"}`, `change {"action":"delete","id":"b"}`, `change {"action":"delete","id":"c"}`, `change {"action":"delete","id":"d"}`}, f.asked()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func TestWrapperExpose(t *testing.T) {
	f := &fake{expose: func(q *control.ExposeRequest) (*control.ExposeResult, error) {
		r := &control.ExposeResult{OK: true, ID: q.ID, Exposed: !q.Hide, Tool: "wrap_" + q.ID, Priority: 500, Rank: 40}
		if q.Priority != nil {
			r.Priority = *q.Priority
		}
		switch q.ID {
		case "late":
			r.Rank = 41
		case "odd":
			r.Rank, r.Quarantined = 0, "its schema has a type list"
		}
		return r, nil
	}}
	w := newWorld(t, f)
	check(t, "expose", w.hb("wrapper", "expose", "a"), said{0, "a is the tool wrap_a, priority 500, rank 40\n", ""})
	check(t, "lowest", w.hb("wrapper", "expose", "a", "--priority", "0"), said{0, "a is the tool wrap_a, priority 0, rank 40\n", ""})
	check(t, "highest", w.hb("wrapper", "expose", "a", "--priority", "1000"), said{0, "a is the tool wrap_a, priority 1000, rank 40\n", ""})
	check(t, "over", w.hb("wrapper", "expose", "a", "--priority", "1001"), said{2, "", "hbrestd: error: --priority is 1001, not a whole number from 0 to 1000\nhbrestd: hint: `hbrestd wrapper expose --help` shows how it is used.\n"})
	check(t, "over the cap", w.hb("wrapper", "expose", "late"), said{
		0, "late is the tool wrap_late, priority 500, rank 41\n",
		"hbrestd: warning: clients show the first 40 tools, so not this one; give it a higher --priority, or hide others\n",
	})
	check(t, "quarantined", w.hb("wrapper", "expose", "odd"), said{0, "odd is the tool wrap_odd, priority 500, not shown\n", "hbrestd: warning: no client is shown this tool: its schema has a type list\n"})
	check(t, "hide", w.hb("wrapper", "hide", "a"), said{0, "a is hidden\n", ""})
	want := []string{
		`expose {"id":"a"}`, `expose {"id":"a","priority":0}`, `expose {"id":"a","priority":1000}`, `expose {"id":"late"}`, `expose {"id":"odd"}`, `expose {"id":"a","hide":true}`,
	}
	if diff := cmp.Diff(want, f.asked()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}
