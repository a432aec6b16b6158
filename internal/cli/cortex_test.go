package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/control"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

func someRecalled() api.RecallResult {
	return api.RecallResult{OK: true, Documents: []api.RecallDocument{
		{Wrapper: "handbook", Key: "1", Title: "Billing\x1b[2J", URL: "https://h.test/a?b=1&c=2", ReadAt: "2026-11-30T08:00:00Z", Age: 90000, Heading: "Billing > Refunds", Snippet: "The **refund** limit", Score: 2},
		{Wrapper: "notes", Key: "2", Title: "Note", ReadAt: "2026-12-01T08:00:00Z", Age: 60, Heading: "Note", Snippet: "a **refund**", Score: 1},
	}}
}

func TestCortexCommands(t *testing.T) {
	stats := control.CortexStats{
		Path: "/x/cortex.db", Documents: 12, Chunks: 40, Bytes: 4_096_000, MaxBytes: 200_000_000, Oldest: "2026-11-01T08:00:00Z", Newest: "2026-12-01T08:00:00Z",
		Wrappers: []control.CortexWrapper{{Wrapper: "handbook", Documents: 11, Newest: "2026-12-01T08:00:00Z", Saved: true}, {Wrapper: "old", Documents: 1, Newest: "2026-11-01T08:00:00Z"}},
	}
	damaged := stats
	damaged.Recovered = "cortex.db was damaged and is now cortex.db.damaged-1"
	busy := fault.New("CORTEX_TIMEOUT", "time ran out while searching the index")
	const use = "hbrestd: hint: `hbrestd cortex forget --help` shows how it is used.\n"
	for _, tc := range []struct {
		name  string
		f     *fake
		width int
		args  []string
		want  said
		calls []string
	}{
		{"search, for a program", &fake{recalled: someRecalled()}, 0, []string{"search", "refund", "limit"}, said{
			0, "Billing[2J\thandbook\t2026-11-30T08:00:00Z\thttps://h.test/a?b=1&c=2\tBilling > Refunds\tThe **refund** limit\nNote\tnotes\t2026-12-01T08:00:00Z\t\tNote\ta **refund**\n", "",
		}, []string{`recall {"query":"refund limit","limit":5}`}},
		{"search, for a person", &fake{recalled: someRecalled()}, 80, []string{"search", "refund", "--wrapper", "handbook", "--since", "7d", "-n", "50"}, said{
			0, "Billing[2J\n  handbook, read 1 day ago\n  https://h.test/a?b=1&c=2\n  Billing > Refunds\n  The **refund** limit\n\nNote\n  notes, read 1 minute ago\n  a **refund**\n", "",
		}, []string{`recall {"query":"refund","wrapper":"handbook","since":"7d","limit":50}`}},
		{"nothing", &fake{recalled: api.RecallResult{OK: true, Note: "the index is empty"}}, 0, []string{"search", "x"}, said{0, "", "hbrestd: the index is empty\n"}, []string{`recall {"query":"x","limit":5}`}},
		{"busy", &fake{fail: busy}, 0, []string{"search", "x"}, said{
			1, "", "hbrestd: error: time ran out while searching the index\nhbrestd: hint: Use the result as it is. For a search, repeat it in a moment.\n",
		}, []string{`recall {"query":"x","limit":5}`}},
		{"stats, for a program", &fake{cortex: stats}, 0, []string{"stats"}, said{0, "handbook\t11\t2026-12-01T08:00:00Z\tsaved\nold\t1\t2026-11-01T08:00:00Z\tremoved\n", ""}, nil},
		{"stats, for a person", &fake{cortex: damaged}, 80, []string{"stats"}, said{
			0, "documents  12, in 40 parts\nsize       4.1 MB of at most 200.0 MB\nread       from 2026-11-01T08:00:00Z to 2026-12-01T08:00:00Z\nfile       /x/cortex.db\n\n" +
				"WRAPPER   DOCUMENTS  NEWEST                STATE\nhandbook  11         2026-12-01T08:00:00Z  saved\nold       1          2026-11-01T08:00:00Z  removed\n",
			"hbrestd: warning: cortex.db was damaged and is now cortex.db.damaged-1\n",
		}, nil},
		{"stats of nothing", &fake{cortex: control.CortexStats{Path: "/x/cortex.db", MaxBytes: 1_000_000}}, 80, []string{"stats"}, said{
			0, "documents  0, in 0 parts\nsize       0.0 MB of at most 1.0 MB\nfile       /x/cortex.db\n", "",
		}, nil},
		{"forget one", &fake{cortex: control.CortexStats{Documents: 1}}, 0, []string{"forget", "--wrapper", "a", "--before", "30d"}, said{0, "forgot 1 document\n", ""}, []string{`forget {"wrapper":"a","before":"30d"}`}},
		{"forget all", &fake{cortex: stats}, 0, []string{"forget", "--all", "--json"}, said{0, "{\n  \"ok\": true,\n  \"documents\": 12\n}\n", ""}, []string{`forget {"all":true}`}},
		{"rebuild", &fake{cortex: stats}, 0, []string{"rebuild"}, said{0, "the index has 12 documents\n", ""}, []string{`rebuild null`}},
		{"forget what", &fake{}, 0, []string{"forget"}, said{2, "", "hbrestd: error: nothing says what to forget: --wrapper ID, --before WHEN or --all\n" + use}, nil},
		{"forget too much", &fake{}, 0, []string{"forget", "--all", "--wrapper", "a"}, said{2, "", "hbrestd: error: --all forgets everything; leave it out, or --wrapper and --before\n" + use}, nil},
		{"a limit of 51", &fake{}, 0, []string{"search", "x", "--limit", "51"}, said{
			2, "", "hbrestd: error: --limit is 51, not a whole number from 1 to 50\nhbrestd: hint: `hbrestd cortex search --help` shows how it is used.\n",
		}, nil},
	} {
		w := newWorld(t, tc.f)
		w.width = tc.width
		check(t, tc.name, w.hb(append([]string{"cortex"}, tc.args...)...), tc.want)
		if diff := cmp.Diff(tc.calls, tc.f.asked(), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: %s", tc.name, diff)
		}
	}
	f := &fake{recalled: someRecalled()}
	var r api.RecallResult
	if err := json.Unmarshal([]byte(newWorld(t, f).hb("cortex", "search", "x", "--json").Out), &r); err != nil || !cmp.Equal(r, f.recalled) {
		t.Errorf("--json: %v, %s", err, cmp.Diff(f.recalled, r))
	}
}

// A person is asked before anything is forgotten.
func TestCortexForgetAsks(t *testing.T) {
	for typed, exit := range map[string]int{"y\n": 0, "\n": 1} {
		f := &fake{}
		w := newWorld(t, f)
		w.person, w.stdin = true, typed
		got := w.hb("cortex", "forget", "--wrapper", "a", "--before", "30d")
		if want := "Forget what a has read before 30d? [y/N] "; got.Exit == 0 != (exit == 0) || !strings.HasPrefix(got.ErrOut, want) || len(f.asked()) != 1-exit {
			t.Errorf("%q: %+v, %v", typed, got, f.asked())
		}
	}
}

// A removed wrapper leaves what it has read, and says so; --forget takes it along.
func TestRmForgets(t *testing.T) {
	docs := func() map[string]json.RawMessage {
		return map[string]json.RawMessage{"a": json.RawMessage(`{"id":"a"}`), "b": json.RawMessage(`{"id":"b"}`)}
	}
	left := control.CortexStats{Wrappers: []control.CortexWrapper{{Wrapper: "a", Documents: 3}}}
	w := newWorld(t, &fake{docs: docs(), cortex: left})
	check(t, "left", w.hb("wrapper", "rm", "a", "b"), said{
		0, "removed a\nremoved b\n", "hbrestd: 3 documents that a has read can still be found; `hbrestd cortex forget --wrapper a` forgets them\n",
	})
	f := &fake{docs: docs(), cortex: left}
	check(t, "forgotten", newWorld(t, f).hb("wrapper", "rm", "a", "--forget"), said{0, "removed a\n", ""})
	if calls := strings.Join(f.asked(), "; "); !strings.HasSuffix(calls, `forget {"wrapper":"a"}`) {
		t.Errorf("%s", calls)
	}
	f = &fake{docs: docs(), cortex: left}
	check(t, "dry", newWorld(t, f).hb("wrapper", "rm", "a", "--forget", "--dry-run"), said{0, "would remove a\n", ""})
	if len(f.asked()) != 0 {
		t.Errorf("%v", f.asked())
	}
}
