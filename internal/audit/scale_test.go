package audit_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/audit"
	"github.com/hyperbolic-gateway/hb-rest/internal/soak"
	"github.com/hyperbolic-gateway/hb-rest/internal/store"
)

// A trail of a million rows is as quick as one of a thousand where somebody
// waits: the newest 50 rows come in under 10 ms, also from a file that has just
// begun, a row that is waited for costs at most 1.3 times as much, and a start
// reads through one file only, in less than the 60 ms that a whole start may
// take. Files keep their size and their number.
func TestScale(t *testing.T) {
	rows, maxFile, room := soak.Rounds(20_000, 1_000_000), int64(0), 1.0
	if !soak.Long() {
		maxFile, room = 512<<10, 3 // as many files, in little time, beside other tests
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "audit.db")
	l, f := mustOnDisk(t, path, maxFile, 0)
	small, smallFile := mustOnDisk(t, filepath.Join(t.TempDir(), "audit.db"), 0, 0)
	defer mustEnd(t, small, smallFile)
	named := func(n int) string { return fmt.Sprintf("call-%08d", n) }
	n := 0
	record := func() {
		l.Result(read(named(n)))
		n++
	}
	settle := func(l *audit.Log) {
		t.Helper()
		if err := l.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 1000 {
		small.Result(read(named(i)))
	}
	begun := time.Now()
	for n < rows {
		record()
	}
	settle(l)
	filled := time.Since(begun)

	// The two take turns, so that both have the same disk.
	var few, many []time.Duration
	append1 := func(l *audit.Log, took *[]time.Duration) {
		t.Helper()
		r := write(named(n))
		r.Kind = audit.KindChange // it has no result
		at := time.Now()
		if err := l.Intent(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		*took = append(*took, time.Since(at))
	}
	for range soak.Rounds(100, 1000) {
		append1(small, &few)
		append1(l, &many)
		n++
	}

	newest := func() time.Duration {
		t.Helper()
		at := time.Now()
		got, next, err := l.Last(50)
		took := time.Since(at)
		if err != nil || len(got) != 50 {
			t.Fatalf("%d rows, %v", len(got), err)
		}
		for i, r := range got { // each call has one row; the files' own rows lie between
			if r.Kind != audit.KindAudit && r.Call != named(n-1) && i == 49 || i > 0 && r.Seq <= got[i-1].Seq || r.Seq > next {
				t.Fatalf("row %d is %+v, the last call is %s", i, r, named(n-1))
			}
		}
		return took
	}
	var last []time.Duration
	for range soak.Rounds(10, 100) {
		last = append(last, newest())
	}
	if maxFile == 0 {
		maxFile = audit.DefaultMaxFile
	}
	for size := int64(0); f.Size() >= size; { // to the first rows of a file
		size = f.Size()
		for range 1 + (maxFile-size)/8192 {
			record()
		}
		settle(l)
	}
	var fresh []time.Duration
	for range soak.Rounds(10, 100) {
		fresh = append(fresh, newest())
	}

	// A start, with the newest file almost full.
	for f.Size() < maxFile*9/10 {
		for range 100 {
			record()
		}
		settle(l)
	}
	seq, hash := l.Head()
	mustEnd(t, l, f)
	var starts []time.Duration // all that other work does is to add: the quickest counts
	for range soak.Rounds(5, 60) {
		at := time.Now()
		l, f = mustOnDisk(t, path, maxFile, 0)
		starts = append(starts, time.Since(at))
		if s, h := l.Head(); s != seq || h != hash {
			t.Fatalf("the head is %d, it was %d", s, seq)
		}
		mustEnd(t, l, f)
	}
	l, f = mustOnDisk(t, path, maxFile, 0)
	defer func() { mustEnd(t, l, f) }()
	at := time.Now()
	report, err := l.Verify(t.Context(), fmt.Sprintf("%d:%s", seq, hash))
	verify := time.Since(at)
	if err != nil || !report.OK || report.First != 1 || report.Rows != seq || !report.HeadSeen {
		t.Errorf("verify: %v, %+v, want %d rows", err, report, seq)
	}

	files, bytes := 0, int64(0)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		files, bytes = files+1, bytes+info.Size()
		if !strings.HasPrefix(e.Name(), "audit") || info.Size() > maxFile*5/4 {
			t.Errorf("%s has %d bytes", e.Name(), info.Size())
		}
	}
	if files < 5 || files > store.DefaultAuditKeep {
		t.Errorf("%d files", files)
	}
	mid := func(list []time.Duration) time.Duration { slices.Sort(list); return list[len(list)/2] }
	ratio := float64(mid(many)) / float64(mid(few))
	soak.Measured(t, "%d rows in %d files (%d MiB): newest 50 in %v (%v when a file has just begun), one row on the disk %v (%v with 1 000 rows, ratio %.2f), open %v, verify %v, filled at %.0f rows/s",
		seq, files, bytes>>20, mid(last), mid(fresh), mid(many), mid(few), ratio, slices.Min(starts), verify.Round(time.Millisecond), float64(rows)/filled.Seconds())
	limit := func(what string, took, most time.Duration) {
		t.Helper()
		if most = time.Duration(float64(most) * room); took > most {
			t.Errorf("%s takes %v, at most %v", what, took, most)
		}
	}
	limit("reading the newest 50", mid(last), 10*time.Millisecond)
	limit("reading the newest 50 when a file has just begun", mid(fresh), 10*time.Millisecond)
	limit("opening", slices.Min(starts), 45*time.Millisecond)
	if ratio > 1.3*room {
		t.Errorf("a row costs %.2f times as much as with 1 000 rows", ratio)
	}
}
