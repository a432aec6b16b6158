package cortex_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/internal/cortex"
)

// A judged is a question with the keys of the documents that answer it. The
// questions were written before anything was searched, and not changed since.
type judged struct {
	Question string
	Keys     []string
	Kind     string
}

func readLines[T any](t testing.TB, name string) []T {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "eval", name))
	if err != nil {
		t.Fatal(err)
	}
	var out []T
	for line := range bytes.Lines(data) {
		var v T
		if err := json.Unmarshal(line, &v); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out = append(out, v)
	}
	return out
}

// A figure is the quality of answers to some questions.
type figure struct {
	n, found int     // questions, and those with a right document among the first five
	mrr      float64 // sum of 1/rank of the first right document among the first ten
}

func (f *figure) count(got []string, want []string) (rank int) {
	f.n++
	for i, k := range got[:min(len(got), 10)] {
		if slices.Contains(want, k) {
			f.mrr += 1 / float64(i+1)
			if i < 5 {
				f.found++
			}
			return i + 1
		}
	}
	return 0
}

func (f figure) recall() float64 { return float64(f.found) / float64(max(f.n, 1)) }

func (f figure) String() string {
	return fmt.Sprintf("%.2f %.2f", f.recall(), f.mrr/float64(max(f.n, 1)))
}

// TestLabelledSet measures whether the right document is among the first five,
// beside a plain FTS5 table with its defaults.
func TestLabelledSet(t *testing.T) {
	docs := readLines[cortex.Page](t, "documents.jsonl")
	questions := readLines[judged](t, "questions.jsonl")
	if len(docs) < 600 || len(questions) < 60 {
		t.Fatalf("%d documents and %d questions are too few to measure with", len(docs), len(questions))
	}
	x, _ := newIndex(t, cortex.Options{})
	add(t, x, docs...)
	plain := newPlain(t, docs)

	type set struct{ ours, every, some figure }
	sets := map[string]*set{}
	for _, q := range questions {
		got := keys(t, x, cortex.Query{Text: q.Question, Limit: 10})
		every, some := plain.search(q.Question, " "), plain.search(q.Question, " OR ")
		for _, name := range []string{"all", q.Kind} {
			s := sets[name]
			if s == nil {
				s = &set{}
				sets[name] = s
			}
			rank := s.ours.count(got, q.Keys)
			e, o := s.every.count(every, q.Keys), s.some.count(some, q.Keys)
			if name == q.Kind && (rank == 0 || rank > 5) {
				t.Logf("not in the first five: %q (%s), rank %d; plain FTS5 %d, with OR %d", q.Question, strings.Join(q.Keys, " "), rank, e, o)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(sets)) {
		s := sets[name]
		t.Logf("%-10s %2d questions, recall@5 and MRR: %v; plain FTS5 %v; with OR %v", name, s.ours.n, s.ours, s.every, s.some)
	}
	if r := sets["all"].ours.recall(); r < 0.9 {
		t.Errorf("recall@5 is %.2f, want 0.9", r)
	}
}

// A plain is what FTS5 does with nothing said: one column, unicode61, bm25.
type plain struct {
	t  testing.TB
	db *sql.DB
}

func newPlain(t testing.TB, docs []cortex.Page) plain {
	t.Helper()
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	if _, err := db.Exec("CREATE VIRTUAL TABLE f USING fts5(text, key UNINDEXED)"); err != nil {
		t.Fatal(err)
	}
	for _, d := range docs {
		if _, err := db.Exec("INSERT INTO f (text, key) VALUES (?, ?)", d.Title+"\n"+d.Text, d.Key); err != nil {
			t.Fatal(err)
		}
	}
	return plain{t, db}
}

// search joins the words of a question with op: a space is AND.
func (p plain) search(q, op string) (keys []string) {
	p.t.Helper()
	var quoted []string
	for w := range strings.FieldsSeq(q) {
		quoted = append(quoted, `"`+strings.ReplaceAll(w, `"`, "")+`"`)
	}
	rows, err := p.db.QueryContext(context.Background(), "SELECT key FROM f WHERE f MATCH ? ORDER BY bm25(f) LIMIT 10", strings.Join(quoted, op))
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var k string
		if err := rows.Scan(&k); err != nil {
			p.t.Fatal(err)
		}
		keys = append(keys, k)
	}
	if err := rows.Err(); err != nil {
		p.t.Fatal(err)
	}
	return keys
}
