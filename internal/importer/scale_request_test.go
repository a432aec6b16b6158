package importer_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/importer"
)

// TestRecordingsAtScale: the work grows with the input, not with its square.
// The bounds are for a slow and busy machine.
func TestRecordingsAtScale(t *testing.T) {
	start := time.Now()
	var entries []string
	for i := range 800 {
		entries = append(entries, harEntry("xhr", "GET", fmt.Sprintf("https://a.example.com/x%d?a=%d", i%200, i),
			fmt.Sprintf(`,"headers":[{"name":"Authorization","value":"Bearer tok%012d"},{"name":"Cookie","value":"sid=sess%012d"}]`, i, i), 200, "application/json", `[{"id":1,"name":"x"}]`))
	}
	r, err := importer.HAR(harFile(entries...), importer.Options{})
	if err != nil || len(r.Drafts) != 200 {
		t.Fatalf("%v, %d drafts", err, len(r.Drafts))
	}
	t.Logf("800 recorded calls, 1600 credentials: %v", time.Since(start))

	line := `curl --json "[` + strings.TrimSuffix(strings.Repeat(`$A,`, 50_000), ",") + `]" https://api.example.com/a`
	if r, err = importer.Curl(line, importer.Options{}); err != nil || len(r.Drafts)+len(r.Refused) != 1 {
		t.Fatalf("%v, %+v", err, r)
	}
	if d := time.Since(start); d > 30*time.Second {
		t.Errorf("%v", d)
	}
}

// TestSeveralURLs: one command with several URLs makes a draft of each, with
// ids of their own.
func TestSeveralURLs(t *testing.T) {
	r, err := importer.Curl(`curl -H 'X-A: b' https://api.example.com/a 'https://api.example.com/a?x=1' --url https://other.example.org/b`, importer.Options{Prefix: "Shop"})
	if err != nil || len(r.Drafts) != 3 {
		t.Fatalf("%v, %+v", err, r)
	}
	for i, want := range []string{"GET https://api.example.com/a\nX-A: b", "GET https://api.example.com/a?x=1\nX-A: b", "GET https://other.example.org/b\nX-A: b"} {
		if got := requestText(build(t, r.Drafts[i], "")); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if a, b, c := r.Drafts[0].ID, r.Drafts[1].ID, r.Drafts[2].ID; a == b || b == c || c != "shop.get-b" || !strings.HasPrefix(a, "shop.get-a") {
		t.Errorf("ids %s, %s, %s", a, b, c)
	}
}
