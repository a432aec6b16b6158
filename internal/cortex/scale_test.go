package cortex_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/cortex"
)

// A corpus makes texts whose words are as unevenly frequent as those of a
// language.
type corpus struct {
	r     *rand.Rand
	zipf  *rand.Zipf
	words []string
	ids   []string // of the pages so far
}

func newCorpus() *corpus {
	r := rand.New(rand.NewPCG(1, 2))
	seen := map[string]bool{}
	c := &corpus{r: r}
	for len(c.words) < 50_000 {
		var b strings.Builder
		for range 1 + r.IntN(4) {
			b.WriteByte("bcdfghjklmnprstvwz"[r.IntN(18)])
			b.WriteByte("aeiou"[r.IntN(5)])
			if r.IntN(3) == 0 {
				b.WriteByte("lmnrst"[r.IntN(6)])
			}
		}
		if w := b.String(); !seen[w] {
			seen[w] = true
			c.words = append(c.words, w)
		}
	}
	c.zipf = rand.NewZipf(r, 1.1, 8, uint64(len(c.words)-1))
	return c
}

func (c *corpus) word() string { return c.words[c.zipf.Uint64()] }

// page has about n chunks.
func (c *corpus) page(id, n int) cortex.Page {
	var b strings.Builder
	for range n {
		fmt.Fprintf(&b, "## %s %s\n\n", c.word(), c.word())
		for size := 0; size < 1050; {
			w := c.word()
			b.WriteString(w)
			b.WriteByte(' ')
			size += len(w) + 1
		}
		c.ids = append(c.ids, fmt.Sprintf("ticket_%d", c.r.IntN(1_000_000)))
		b.WriteString(c.ids[len(c.ids)-1] + "\n\n")
	}
	return cortex.Page{
		Wrapper: fmt.Sprintf("wrapper.%d", id%20), Key: strconv.Itoa(id), Title: strings.Join([]string{c.word(), c.word(), c.word()}, " "),
		URL: "https://api.example.com/pages/" + strconv.Itoa(id), Host: "api.example.com", Text: b.String(), At: now.Add(-time.Duration(id) * time.Minute),
	}
}

// resident is the memory of this process, or 0 where it cannot be read.
func resident() int64 {
	debug.FreeOSMemory()
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	pages, _ := strconv.ParseInt(strings.Fields(string(data))[1], 10, 64)
	return pages * int64(os.Getpagesize())
}

// TestScale prints the figures of docs/benchmarks.md. CORTEX_SCALE is the
// number of chunks; without it a small number shows that the measuring works.
func TestScale(t *testing.T) {
	chunks := 1000
	if s := os.Getenv("CORTEX_SCALE"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		chunks = n
	}
	c := newCorpus()
	before := resident()
	x, _ := newIndex(t, cortex.Options{MaxBytes: 2_000_000_000, Idle: 50 * time.Millisecond})
	var spent time.Duration
	var slowest time.Duration
	for id, done := 0, 0; done < chunks; {
		var pages []cortex.Page
		for len(pages) < 50 && done < chunks {
			n := min(1+c.r.IntN(4), chunks-done)
			pages = append(pages, c.page(id, n))
			id, done = id+1, done+n
		}
		start := time.Now()
		add(t, x, pages...)
		took := time.Since(start)
		spent, slowest = spent+took, max(slowest, took)
	}
	s, err := x.Stats(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if s.Chunks != chunks {
		t.Errorf("%d chunks, want %d", s.Chunks, chunks)
	}
	t.Logf("%d pages, %d chunks: %.0f chunks/s, the slowest 50 pages took %v; file %.1f MB", s.Pages, s.Chunks, float64(chunks)/spent.Seconds(), slowest.Round(time.Millisecond), float64(s.Bytes)/1e6)

	kinds := []struct {
		name string
		text func() string
	}{
		{"two rare words", func() string { return c.words[1000+c.r.IntN(40_000)] + " " + c.words[1000+c.r.IntN(40_000)] }},
		{"three words as frequent as in the texts", func() string { return c.word() + " " + c.word() + " " + c.word() }},
		{"a sentence of eight words", func() string {
			var ws []string
			for range 8 {
				ws = append(ws, c.word())
			}
			return strings.Join(ws, " ")
		}},
		{"an id", func() string { return c.ids[c.r.IntN(len(c.ids))] }},
		{"nothing, looked for inside words", func() string { return "qqq" + c.word() }},
	}
	for _, k := range kinds {
		var took []time.Duration
		for range 60 {
			q := k.text()
			start := time.Now()
			search(t, x, cortex.Query{Text: q, Limit: 5})
			took = append(took, time.Since(start))
		}
		slices.Sort(took)
		t.Logf("%-42s p50 %8v, p95 %8v", k.name, took[30].Round(10*time.Microsecond), took[57].Round(10*time.Microsecond))
	}
	open := resident()
	x.WaitClosed(t)
	t.Logf("resident: %.1f MB before, %.1f MB open, %.1f MB when the file was closed again", float64(before)/1e6, float64(open)/1e6, float64(resident())/1e6)
}
