package audit_test

import (
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/audit"
)

func onDiskForBench(b *testing.B) *audit.Log {
	l, f := mustOnDisk(b, filepath.Join(b.TempDir(), "audit.db"), 0, 0)
	b.Cleanup(func() { mustEnd(b, l, f) })
	return l
}

// What a read call pays: the row is put into the queue.
func BenchmarkResultLatency(b *testing.B) {
	m := &memory{}
	o := m.options()
	var written atomic.Int64
	o.Append = func(rows [][]byte) error { written.Add(int64(len(rows))); return nil }
	l := open(b, o)
	defer closeLog(b, l)
	r := read("0123456789abcdef")
	b.ReportAllocs()
	for i := 1; b.Loop(); i++ {
		if i%500 == 0 { // the writer's own work is not what is measured
			b.StopTimer()
			for written.Load() < int64(i-1) {
				time.Sleep(time.Millisecond)
			}
			b.StartTimer()
		}
		l.Result(r)
	}
}

// What a call that changes something pays: a row on the disk.
func BenchmarkIntentAlone(b *testing.B) {
	l := onDiskForBench(b)
	r := write("0123456789abcdef")
	b.ReportAllocs()
	for b.Loop() {
		if err := l.Intent(b.Context(), r); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

func BenchmarkIntent32(b *testing.B) {
	l := onDiskForBench(b)
	r := write("0123456789abcdef")
	var wg sync.WaitGroup
	n := b.N/32 + 1
	b.ResetTimer()
	for range 32 {
		wg.Go(func() {
			for range n {
				if err := l.Intent(b.Context(), r); err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(32*n)/b.Elapsed().Seconds(), "rows/s")
}

// Read rows from one caller who never waits, until they are on the disk.
func BenchmarkResults(b *testing.B) {
	l := onDiskForBench(b)
	r := read("0123456789abcdef")
	for b.Loop() {
		l.Result(r)
	}
	if err := l.Intent(b.Context(), r); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

func BenchmarkVerify100k(b *testing.B) {
	l := onDiskForBench(b)
	r := read("0123456789abcdef")
	for range 100_000 {
		l.Result(r)
	}
	if err := l.Intent(b.Context(), r); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if r, err := l.Verify(b.Context(), ""); !r.OK || err != nil {
			b.Fatal(r, err)
		}
	}
}

func BenchmarkLast50(b *testing.B) {
	l := onDiskForBench(b)
	r := read("0123456789abcdef")
	for range 100_000 {
		l.Result(r)
	}
	if err := l.Intent(b.Context(), r); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if rows, _, err := l.Last(50); len(rows) != 50 || err != nil {
			b.Fatal(err)
		}
	}
}
