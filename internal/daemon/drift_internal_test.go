package daemon

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/store"
)

// A field drifts when it had a value and then three items in a row have none,
// in however many answers; one value ends it.
func TestDriftRule(t *testing.T) {
	type seen struct {
		filled bool
		items  int
	}
	full := func(n int) seen { return seen{true, n} }
	empty := func(n int) seen { return seen{false, n} }
	start := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		runs  []seen // an hour apart
		since int    // the run that drift is dated by, from 0; -1: no drift
	}{
		"nothing":            {nil, -1},
		"always filled":      {[]seen{full(1), full(20)}, -1},
		"never filled":       {[]seen{empty(20), empty(20)}, -1},
		"two items":          {[]seen{full(1), empty(2)}, -1},
		"three items":        {[]seen{full(1), empty(3)}, 1},
		"one by one":         {[]seen{full(1), full(1), empty(1), empty(1), empty(1)}, 2},
		"then more":          {[]seen{full(1), empty(2), empty(1), empty(20)}, 1},
		"interrupted":        {[]seen{full(1), empty(2), full(1), empty(2)}, -1},
		"over":               {[]seen{full(1), empty(20), full(1)}, -1},
		"again":              {[]seen{full(1), empty(20), full(1), empty(3)}, 3},
		"filled after empty": {[]seen{empty(20), full(1), empty(3)}, 2},
	} {
		var notes []store.FieldNote
		for i, r := range c.runs {
			notes, _ = noted(notes, "Price", r.filled, r.items, start.Add(time.Duration(i)*time.Hour))
		}
		var want []api.Drift
		if c.since >= 0 {
			want = []api.Drift{{Field: "Price", Since: start.Add(time.Duration(c.since) * time.Hour).Format(time.RFC3339)}}
		}
		if d := cmp.Diff(want, drift(notes)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// What says nothing new is not written: neither a wrapper whose fields are all
// filled, nor one that has drifted, costs the disk anything.
func TestDriftIsQuiet(t *testing.T) {
	now := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		notes  []store.FieldNote
		filled bool
		want   bool // something to write
	}{
		{nil, true, true},
		{nil, false, false},
		{[]store.FieldNote{{Label: "Price", Filled: true}}, true, false},
		{[]store.FieldNote{{Label: "Price", Filled: true}}, false, true},
		{[]store.FieldNote{{Label: "Price", Filled: true, Empty: 2, Since: now}}, false, true},
		{[]store.FieldNote{{Label: "Price", Filled: true, Empty: 3, Since: now}}, false, false},
		{[]store.FieldNote{{Label: "Price", Filled: true, Empty: 3, Since: now}}, true, true},
	} {
		if _, changed := noted(c.notes, "Price", c.filled, 1, now); changed != c.want {
			t.Errorf("%+v, filled %v: %v", c.notes, c.filled, changed)
		}
	}
}

// Thirty days are not stale, a second more is.
func TestStale(t *testing.T) {
	verified := time.Date(2026, 10, 1, 12, 0, 0, 0, time.UTC)
	for after, want := range map[time.Duration]bool{
		0: false, 30 * 24 * time.Hour: false, 30*24*time.Hour + time.Second: true, -time.Hour: false,
	} {
		if got := stale(verified, verified.Add(after)); got != want {
			t.Errorf("after %s: %v", after, got)
		}
	}
	if stale(time.Time{}, verified) {
		t.Error("never is not stale")
	}
}
