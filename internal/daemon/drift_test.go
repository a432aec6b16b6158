package daemon_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
)

// An API that stops sending a field is told in the list of wrappers, with the
// day, over restarts, until the field is back or the wrapper is another.
func TestDrift(t *testing.T) {
	t.Parallel()
	var body atomic.Value
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		_, _ = rw.Write([]byte(body.Load().(string)))
	}))
	t.Cleanup(s.Close)
	w := newWorld(t, private, outbound.Options{})
	var clock atomic.Pointer[time.Time]
	at := func(text string) {
		now, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		clock.Store(&now)
	}
	at("2026-11-01T09:00:00Z")
	w.stop()
	w.options.Now = func() time.Time { return *clock.Load() }
	w.start()
	const filled = `[{"id":1,"price":5},{"id":2,"price":null},{"id":3}]`
	const bare = `[{"id":1,"price":null},{"id":2},{"id":3}]`
	doc := `{"schemaVersion":1,"id":"p","name":"Products","request":{"method":"GET","url":"` + s.URL + `"},
	 "response":{"schemaVersion":1,"mode":"table","fields":{"ID":"id","Price":"price","Coupon":"coupon"}}}`
	w.create(doc)
	run := func(answer string) {
		t.Helper()
		body.Store(answer)
		if a := w.post("/wrap/run", `{"id":"p"}`); !a.OK {
			t.Fatal(a.Raw)
		}
	}
	check := func(when string, want api.ManifestEntry, notes ...string) {
		t.Helper()
		m, err := w.d.Manifest(context.Background(), 0)
		if err != nil {
			t.Fatal(err)
		}
		e := m.Wrappers[0]
		if d := cmp.Diff(want, api.ManifestEntry{Verified: e.Verified, Stale: e.Stale, Drift: e.Drift}); d != "" {
			t.Errorf("%s: %s", when, d)
		}
		if d := cmp.Diff(notes, []string{e.VerifiedNote(), e.DriftNote()}); d != "" {
			t.Errorf("%s: %s", when, d)
		}
	}
	run(bare) // never had a price: nothing has changed
	check("never filled", api.ManifestEntry{Verified: "2026-11-01T09:00:00Z"}, "verified 2026-11-01", "")
	run(filled)
	at("2026-11-02T09:00:00Z")
	run(bare)
	drifted := []api.Drift{{Field: "Price", Since: "2026-11-02T09:00:00Z"}}
	check("gone", api.ManifestEntry{Verified: "2026-11-02T09:00:00Z", Drift: drifted}, "verified 2026-11-02", "Price empty since 2026-11-02")
	at("2026-11-03T09:00:00Z")
	run(bare)
	run(`[]`) // no item says nothing
	w.stop()
	w.start()
	check("a day and a restart later", api.ManifestEntry{Verified: "2026-11-03T09:00:00Z", Drift: drifted}, "verified 2026-11-03", "Price empty since 2026-11-02")
	at("2026-12-03T09:00:00Z")
	check("thirty days", api.ManifestEntry{Verified: "2026-11-03T09:00:00Z", Drift: drifted}, "verified 2026-11-03", "Price empty since 2026-11-02")
	at("2026-12-03T09:00:01Z")
	check("and a second", api.ManifestEntry{Verified: "2026-11-03T09:00:00Z", Stale: true, Drift: drifted}, "verified 2026-11-03 (stale)", "Price empty since 2026-11-02")
	run(filled)
	check("back", api.ManifestEntry{Verified: "2026-12-03T09:00:01Z"}, "verified 2026-12-03", "")
	run(bare)
	// A call that asks for other fields, and a test of another document, leave it.
	if a := w.post("/wrap/run", `{"id":"p","fields":["ID"]}`); !a.OK {
		t.Fatal(a.Raw)
	}
	body.Store(filled)
	if a := w.post("/wrap/test", `{"dryRun":false,"wrapper":`+doc+`}`); !a.OK {
		t.Fatal(a.Raw)
	}
	drifted[0].Since = "2026-12-03T09:00:01Z"
	check("gone again", api.ManifestEntry{Verified: "2026-12-03T09:00:01Z", Drift: drifted}, "verified 2026-12-03", "Price empty since 2026-12-03")
	if a := w.change("update", strings.Replace(doc, `"price"`, `"cost"`, 1)); !a.OK {
		t.Fatal(a.Raw)
	}
	check("another document", api.ManifestEntry{Verified: "2026-12-03T09:00:01Z"}, "verified 2026-12-03", "")
}
