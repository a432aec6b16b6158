package cortex_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/cortex"
)

var now = time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC)

// newIndex is an index in a fresh folder whose clock stands at now.
func newIndex(t testing.TB, o cortex.Options) (x *cortex.Index, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "cortex.db")
	if o.Now == nil {
		o.Now = func() time.Time { return now }
	}
	x = cortex.Open(path, o)
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return x, path
}

func add(t testing.TB, x *cortex.Index, pages ...cortex.Page) {
	t.Helper()
	n, err := x.Add(context.Background(), pages)
	if err != nil || n != len(pages) {
		t.Fatalf("Add stored %d of %d: %v", n, len(pages), err)
	}
}

func search(t testing.TB, x *cortex.Index, q cortex.Query) []cortex.Hit {
	t.Helper()
	hits, err := x.Search(context.Background(), q)
	if err != nil {
		t.Fatalf("Search(%+v): %v", q, err)
	}
	return hits
}

// keys are the keys of what a query finds, best first.
func keys(t testing.TB, x *cortex.Index, q cortex.Query) []string {
	t.Helper()
	out := []string{}
	for _, h := range search(t, x, q) {
		out = append(out, h.Key)
	}
	return out
}

func TestAddAndSearch(t *testing.T) {
	x, _ := newIndex(t, cortex.Options{})
	add(t, x,
		cortex.Page{Wrapper: "docs.list", Key: "1", Title: "Rotating keys", URL: "https://api.example.com/docs?page=1", Host: "api.example.com", Text: "## How often\n\nEvery *ninety* days the signing key is replaced.", At: now.Add(-time.Hour)},
		cortex.Page{Wrapper: "docs.list", Key: "2", Title: "Invoices", URL: "https://api.example.com/docs?page=1", Host: "api.example.com", Text: "Invoices are sent on the first day of a month."},
	)
	hits := search(t, x, cortex.Query{Text: "when is the signing key replaced?"})
	if len(hits) == 0 {
		t.Fatal("nothing found")
	}
	got := hits[0]
	got.Score = 0
	want := cortex.Hit{Wrapper: "docs.list", Key: "1", Title: "Rotating keys", URL: "https://api.example.com/docs?page=1", Host: "api.example.com", At: now.Add(-time.Hour), Heading: "How often", Snippet: "Every ninety days the **signing** **key** is **replaced**."}
	if got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}
