package cortex_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/cortex"
)

func TestTheSameDocumentAgain(t *testing.T) {
	x, _ := newIndex(t, cortex.Options{})
	old := page("a", "1", "lighthouse")
	old.At = now.Add(-48 * time.Hour)
	add(t, x, old, page("b", "1", "lighthouse of another wrapper"))

	again := old
	again.At = now
	add(t, x, again) // the same text: only the time is new
	s, err := x.Stats(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	s.Path, s.Bytes = "", 0
	want := cortex.Stats{Pages: 2, Chunks: 2, MaxBytes: cortex.DefaultMaxBytes, Oldest: now, Newest: now, Wrappers: []cortex.WrapperStat{{Wrapper: "a", Pages: 1, Newest: now}, {Wrapper: "b", Pages: 1, Newest: now}}}
	if fmt.Sprintf("%+v", s) != fmt.Sprintf("%+v", want) {
		t.Errorf("Stats %+v, want %+v", s, want)
	}

	changed := again
	changed.Text = "a beacon now"
	add(t, x, changed)
	if got := keys(t, x, cortex.Query{Text: "lighthouse", Wrapper: "a"}); len(got) != 0 {
		t.Errorf("the older version is found: %v", got)
	}
	if hits := search(t, x, cortex.Query{Text: "beacon"}); len(hits) != 1 || hits[0].Wrapper != "a" {
		t.Errorf("hits %+v", hits)
	}
}

func TestWithoutAKeyURLAndTitleAreTheKey(t *testing.T) {
	x, _ := newIndex(t, cortex.Options{})
	p := cortex.Page{Wrapper: "a", Title: "Weather", URL: "https://api.example.com/weather", Text: "rain"}
	q := p
	q.Text = "sun"
	r := p
	r.Title, r.Text = "Climate", "fog"
	add(t, x, p, q, r)
	var got []string
	for _, text := range []string{"rain", "sun", "fog"} {
		got = append(got, fmt.Sprint(len(search(t, x, cortex.Query{Text: text}))))
	}
	if want := "0 1 1"; strings.Join(got, " ") != want {
		t.Errorf("found %v, want %s", got, want)
	}
}

func TestFilters(t *testing.T) {
	x, _ := newIndex(t, cortex.Options{})
	for i, w := range []string{"a", "b", "a"} {
		p := page(w, fmt.Sprint(i), "lighthouse")
		p.Host = []string{"one.example.com", "two.example.com", "Two.Example.com"}[i]
		p.At = now.Add(-time.Duration(i) * time.Hour)
		add(t, x, p)
	}
	for _, c := range []struct {
		q    cortex.Query
		want []string
	}{
		{cortex.Query{}, []string{"0", "1", "2"}},
		{cortex.Query{Wrapper: "a"}, []string{"0", "2"}},
		{cortex.Query{Host: "TWO.example.com"}, []string{"1", "2"}},
		{cortex.Query{Host: "two.example.com", Wrapper: "b"}, []string{"1"}},
		{cortex.Query{Since: now.Add(-time.Hour)}, []string{"0", "1"}},
		{cortex.Query{Since: now.Add(-time.Hour + time.Millisecond)}, []string{"0"}},
		{cortex.Query{Limit: 1}, []string{"0"}},
		{cortex.Query{Wrapper: "c"}, []string{}},
		{cortex.Query{Wrapper: "a' OR 1 --"}, []string{}},
	} {
		c.q.Text = "lighthouse"
		if got := keys(t, x, c.q); !slices.Equal(got, c.want) { // of equal ones the newer first
			t.Errorf("%+v found %v, want %v", c.q, got, c.want)
		}
	}
}

// A pages worth of text is in the file as it is, so a search for its bytes
// shows whether it is still there.
func TestForgottenIsGoneFromTheFile(t *testing.T) {
	x, path := newIndex(t, cortex.Options{})
	for i := range 200 {
		add(t, x, page("keep", fmt.Sprint(i), strings.Repeat("ordinary words of a page ", 40)))
	}
	secret := page("forget", "1", "The canary xylophonezebra sings.")
	secret.Title, secret.URL = "titlexylophone", "https://api.example.com/urlxylophone"
	add(t, x, secret)
	n, err := x.Forget(context.Background(), cortex.Filter{Wrapper: "forget"})
	if n != 1 || err != nil {
		t.Fatalf("Forget = %d, %v", n, err)
	}
	for _, f := range files(t, path) {
		data, err := os.ReadFile(filepath.Join(filepath.Dir(path), f))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []string{"xylophonezebra", "titlexylophone", "urlxylophone", "xylophone"} {
			if i := bytes.Index(data, []byte(s)); i >= 0 {
				t.Errorf("%s holds %q at byte %d", f, s, i)
			}
		}
	}
	if got := keys(t, x, cortex.Query{Text: "ordinary", Limit: 50}); len(got) != 50 {
		t.Errorf("%d others are found", len(got))
	}
}

func TestForget(t *testing.T) {
	for _, c := range []struct {
		name   string
		filter cortex.Filter
		left   []string
	}{
		{"a wrapper", cortex.Filter{Wrapper: "a"}, []string{"1"}},
		{"before a time", cortex.Filter{Before: now.Add(-time.Hour)}, []string{"0", "1"}},
		{"both", cortex.Filter{Wrapper: "a", Before: now}, []string{"0", "1"}},
		{"nothing of it there", cortex.Filter{Wrapper: "c"}, []string{"0", "1", "2"}},
		{"all", cortex.Filter{All: true}, []string{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			x, path := newIndex(t, cortex.Options{})
			for i, w := range []string{"a", "b", "a"} {
				p := page(w, fmt.Sprint(i), "lighthouse")
				p.At = now.Add(-time.Duration(i) * time.Hour)
				add(t, x, p)
			}
			n, err := x.Forget(context.Background(), c.filter)
			if n != 3-len(c.left) || err != nil {
				t.Errorf("Forget = %d, %v", n, err)
			}
			if got := keys(t, x, cortex.Query{Text: "lighthouse"}); !slices.Equal(got, c.left) {
				t.Errorf("left %v, want %v", got, c.left)
			}
			if got := files(t, path); c.filter.All && len(got) != 0 {
				t.Errorf("files %v", got)
			}
		})
	}
	x, _ := newIndex(t, cortex.Options{})
	_, err := x.Forget(context.Background(), cortex.Filter{})
	mustFail(t, err, "ARGS_INVALID", "nothing says what to forget")
}

// The file never stays above its limit, the newest pages are there, and what
// is gone is the oldest.
func TestOldestGoFirst(t *testing.T) {
	const limit = 1_000_000
	x, path := newIndex(t, cortex.Options{MaxBytes: limit})
	c := newCorpus()
	const n = 450 // pages of about 3 kB in the file
	for i := range n {
		p := c.page(i, 1)
		p.At = now.Add(time.Duration(i) * time.Minute)
		p.Text += fmt.Sprintf("\n\npage_number_%d", i)
		add(t, x, p)
	}
	x.WaitTrimmed()
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if st.Size() > limit || st.Size() < limit/2 {
		t.Errorf("the file has %d bytes, want at most %d and not much less", st.Size(), limit)
	}
	check(t, path)
	y := cortex.Open(path, cortex.Options{MaxBytes: limit})
	defer y.Close()
	s, err := y.Stats(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if want := now.Add((n - 1) * time.Minute); s.Newest != want {
		t.Errorf("newest %v, want %v", s.Newest, want)
	}
	first := n - s.Pages
	if want := now.Add(time.Duration(first) * time.Minute); s.Oldest != want {
		t.Errorf("oldest %v, want %v: not the oldest went", s.Oldest, want)
	}
	t.Logf("%d of %d pages are left in %d bytes", s.Pages, n, st.Size())
	for i, want := range map[int]int{first - 1: 0, first: 1, n - 1: 1} {
		if got := keys(t, y, cortex.Query{Text: fmt.Sprintf(`"page_number_%d"`, i)}); len(got) != want {
			t.Errorf("page %d: found %v", i, got)
		}
	}
}

func TestNothingGoesAtTheLimit(t *testing.T) {
	x, _ := newIndex(t, cortex.Options{MaxBytes: 1_000_000})
	add(t, x, page("a", "1", "lighthouse"))
	size := x.Used(t)
	for _, c := range []struct {
		limit int64
		want  int
	}{{size, 1}, {size - 1, 0}} {
		x, _ := newIndex(t, cortex.Options{})
		x.SetLimit(c.limit)
		add(t, x, page("a", "0", "lighthouse"))
		if got := x.Used(t); got != size {
			t.Fatalf("%d bytes used, before %d", got, size)
		}
		// One page alone stays whatever its size; a second one makes room.
		add(t, x, page("a", "1", "lighthouse"))
		x.WaitTrimmed()
		if got := len(keys(t, x, cortex.Query{Text: "lighthouse"})); got != 1+c.want {
			t.Errorf("limit %d of %d: %d pages", c.limit, size, got)
		}
	}
}

func TestRebuild(t *testing.T) {
	x, path := newIndex(t, cortex.Options{})
	docs := readLines[cortex.Page](t, "documents.jsonl")
	add(t, x, docs[:120]...)
	before := search(t, x, cortex.Query{Text: "signing key of webhooks", Limit: 20})
	n, err := x.Rebuild(context.Background())
	if n != 120 || err != nil {
		t.Fatalf("Rebuild = %d, %v", n, err)
	}
	if got := files(t, path); len(got) > 2 || slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, ".new") }) {
		t.Errorf("files %v", got)
	}
	if after := search(t, x, cortex.Query{Text: "signing key of webhooks", Limit: 20}); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("after  %+v\nbefore %+v", after, before)
	}
}

func TestTextsThatAreNoText(t *testing.T) {
	x, _ := newIndex(t, cortex.Options{})
	add(t, x,
		cortex.Page{Wrapper: "a", Key: "empty"},
		cortex.Page{Wrapper: "a", Key: "nul", Title: "nul\x00title", Text: "before\x00lighthouse \xff\xfe"},
		cortex.Page{Wrapper: "a", Key: strings.Repeat("k", 5000), Text: "longkey"},
		cortex.Page{Wrapper: "a", Key: strings.Repeat("k", 5001), Text: "longkey"},
	)
	if got := keys(t, x, cortex.Query{Text: "beforelighthouse"}); !slices.Equal(got, []string{"nul"}) {
		t.Errorf("found %v", got)
	}
	if got := keys(t, x, cortex.Query{Text: "longkey"}); len(got) != 2 || got[0] == got[1] || len(got[0]) > 1000 {
		t.Errorf("long keys: %q", got)
	}
	n, err := x.Add(context.Background(), []cortex.Page{{Key: "no wrapper"}})
	mustFail(t, err, "INTERNAL", "without a wrapper")
	if n != 0 {
		t.Errorf("%d stored", n)
	}
}
