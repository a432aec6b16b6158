package api

import "testing"

// The list of wrappers says in a few words when one last worked and what is
// missing since: three fields by name, the earliest day.
func TestNotes(t *testing.T) {
	at := func(day string) string { return day + "T10:00:00Z" }
	price := Drift{Field: "Price", Since: at("2026-11-20")}
	rating := Drift{Field: "Rating", Since: at("2026-11-18")}
	odd := Drift{Field: "a\nb", Since: at("2026-11-21")}
	for _, c := range []struct {
		e               ManifestEntry
		verified, drift string
	}{
		{ManifestEntry{}, "never verified", ""},
		{ManifestEntry{Verified: at("2026-11-30")}, "verified 2026-11-30", ""},
		{ManifestEntry{Verified: at("2026-10-01"), Stale: true}, "verified 2026-10-01 (stale)", ""},
		{ManifestEntry{Drift: []Drift{price}}, "never verified", "Price empty since 2026-11-20"},
		{ManifestEntry{Drift: []Drift{price, rating, odd}}, "never verified", "Price, Rating, a b empty since 2026-11-18"},
		{ManifestEntry{Drift: []Drift{price, odd, price, rating}}, "never verified", "Price, a b, Price and 1 more empty since 2026-11-18"},
	} {
		if got := c.e.VerifiedNote(); got != c.verified {
			t.Errorf("%+v: %q", c.e, got)
		}
		if got := c.e.DriftNote(); got != c.drift {
			t.Errorf("%+v: %q", c.e, got)
		}
	}
}
