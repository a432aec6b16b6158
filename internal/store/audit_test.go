package store_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/store"
)

func auditPath(t testing.TB) string { return filepath.Join(t.TempDir(), "audit.db") }

func mustAudit(t testing.TB, path string, keep int) *store.AuditFile {
	t.Helper()
	f, err := store.OpenAudit(path, store.AuditOptions{Keep: keep, LockTimeout: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func row(n int) []byte {
	return fmt.Appendf(binary.BigEndian.AppendUint64(nil, uint64(n)), "row %d", n)
}

func rows(from, to int) (out [][]byte) {
	for n := from; n <= to; n++ {
		out = append(out, row(n))
	}
	return out
}

func scan(t *testing.T, f *store.AuditFile, from uint64) (out [][]byte) {
	t.Helper()
	err := f.Scan(from, func(row []byte) error { out = append(out, row); return nil })
	if err != nil {
		t.Error(err)
	}
	return out
}

func TestAuditRows(t *testing.T) {
	path := auditPath(t)
	f := mustAudit(t, path, 0)
	check := func(what string, want, got [][]byte, err error) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", what, err, diff)
		}
	}
	got, err := f.Tail(10)
	check("an empty file", nil, got, err)
	check("an empty file", nil, scan(t, f, 0), nil)
	for _, group := range [][][]byte{rows(1, 1), nil, rows(2, 2500), rows(2501, 2501)} {
		if err := f.Append(group); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		got, err = f.Tail(3)
		check("the last three", rows(2499, 2501), got, err)
		got, err = f.Tail(0)
		check("none", nil, got, err)
		got, err = f.Tail(5000)
		check("more than there are", rows(1, 2501), got, err)
		check("all", rows(1, 2501), scan(t, f, 0), nil)
		check("from the middle", rows(999, 2501), scan(t, f, 999), nil)
		check("from beyond the end", nil, scan(t, f, 2502), nil)
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		f = mustAudit(t, path, 0)
	}
	stop := errors.New("enough")
	n := 0
	if err := f.Scan(1, func([]byte) error { n++; return stop }); err != stop || n != 1 {
		t.Errorf("%v after %d rows, want the function's own error after one", err, n)
	}
	// All or none, and only upwards.
	for name, bad := range map[string][][]byte{
		"a number again":      {row(2502), row(2502)},
		"a number before":     {row(2502), row(2503), row(7)},
		"the last one again":  {row(2501)},
		"without a number":    {row(2502), []byte("1234567")},
		"nothing behind it":   {row(2502), row(2503)[:8]},
		"an empty row":        {{}},
		"zero, which is none": {row(0)},
	} {
		if err := f.Append(bad); err == nil {
			t.Errorf("%s: accepted", name)
		}
		got, err = f.Tail(1)
		check(name, rows(2501, 2501), got, err)
	}
	if err := f.Append(rows(2502, 2502)); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 || f.Size() > info.Size() || f.Size() < 2502*16 {
		t.Errorf("%v, %v, size %d", info, err, f.Size())
	}
	if err := errors.Join(f.Close(), f.Close()); err != nil {
		t.Error(err)
	}
	mustFail(t, f.Append(rows(2503, 2503)), "STORE_FAILED", "is closed")
	mustFail(t, f.Rotate(row(2503)), "STORE_FAILED", "is closed")
	_, err = f.Tail(1)
	mustFail(t, err, "STORE_FAILED", "not open")
	mustFail(t, f.Scan(1, func([]byte) error { return nil }), "STORE_FAILED", "not open")
	checkFile(t, path)
}

// Keep files are kept: not one fewer, not one more.
func TestAuditKeeps(t *testing.T) {
	path := auditPath(t)
	f := mustAudit(t, path, 3)
	mustFail(t, f.Rotate(row(1)), "STORE_FAILED", "it is empty")
	n := 0
	for file := 1; file <= 5; file++ {
		if err := f.Append(rows(n+1, n+20)); err != nil {
			t.Fatal(err)
		}
		n += 20
		first := max(1, 1+21*(file-3)) // number of the oldest row kept
		if file > 3 {
			first = 21*(file-3) + 0
		}
		if diff := cmp.Diff(rows(first, n), scan(t, f, 0)); diff != "" {
			t.Errorf("file %d (-want +got):\n%s", file, diff)
		}
		if tail, err := f.Tail(1000); len(tail) != n-first+1 || err != nil {
			t.Errorf("file %d: Tail has %d rows, %v", file, len(tail), err)
		}
		if from := n - 30; from > first {
			if diff := cmp.Diff(rows(from, n), scan(t, f, uint64(from))); diff != "" {
				t.Errorf("file %d from %d (-want +got):\n%s", file, from, diff)
			}
		}
		files, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*"))
		if len(files) != min(file, 3) || err != nil {
			t.Errorf("file %d: %v, %v", file, files, err)
		}
		if file < 5 {
			n++
			if err := f.Rotate(row(n)); err != nil {
				t.Fatal(err)
			}
		}
	}
	// Other files of the folder are nobody's business.
	for _, name := range []string{"audit-1.db", "audit-x.db", "audit-00000000000000000001.db.bak", "other-00000000000000000001.db", "store.db"} {
		if err := os.WriteFile(filepath.Join(filepath.Dir(path), name), []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	before := len(scan(t, f, 0))
	if err := f.Rotate(row(n + 1)); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 3+5 {
		t.Errorf("%v", left)
	}
	if after := len(scan(t, f, 0)); after != before+1-21 {
		t.Errorf("%d rows, were %d", after, before)
	}
}

// A crash in the middle of a change of files: the old one has its new name, the
// new one does not exist yet.
func TestAuditCrashInRotation(t *testing.T) {
	path := auditPath(t)
	f := mustAudit(t, path, 0)
	if err := f.Append(rows(1, 10)); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path, strings.TrimSuffix(path, ".db")+"-00000000000000000001.db"); err != nil {
		t.Fatal(err)
	}
	f = mustAudit(t, path, 0)
	if tail, err := f.Tail(2); cmp.Diff(rows(9, 10), tail) != "" || err != nil {
		t.Errorf("%q, %v", tail, err)
	}
	if err := f.Append(rows(11, 12)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(rows(1, 12), scan(t, f, 0)); diff != "" || f.Recovered() != "" {
		t.Errorf("%q (-want +got):\n%s", f.Recovered(), diff)
	}
}

func TestAuditOpenRefuses(t *testing.T) {
	path := auditPath(t)
	f := mustAudit(t, path, 0)
	if err := f.Append(rows(1, 3)); err != nil {
		t.Fatal(err)
	}
	_, err := store.OpenAudit(path, store.AuditOptions{LockTimeout: 50 * time.Millisecond})
	mustFail(t, err, "STORE_FAILED", "another hbrestd")
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	// A newer one is left alone.
	store.RewriteFormat(t, path, 2)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = store.OpenAudit(path, store.AuditOptions{})
	mustFail(t, err, "STORE_FAILED", "newer hbrestd")
	if after, err := os.ReadFile(path); string(after) != string(before) || err != nil {
		t.Error("it was changed", err)
	}
	folder := auditPath(t)
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	_, err = store.OpenAudit(folder, store.AuditOptions{})
	mustFail(t, err, "STORE_FAILED", "not a regular file")
	_, err = store.OpenAudit(filepath.Join(folder, "none", "audit.db"), store.AuditOptions{})
	mustFail(t, err, "STORE_FAILED", "could not be created")
}

// Whatever is done to the file, opening neither fails nor hangs, what is there
// is kept, new rows are taken, and no row that comes out is one that no one put
// in, unless its bytes themselves were damaged.
func TestAuditDamage(t *testing.T) {
	t.Parallel()
	path := auditPath(t)
	f := mustAudit(t, path, 0)
	for n := 1; n < 1500; n += 30 {
		if err := f.Append(rows(n, n+29)); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	size := os.Getpagesize()
	rnd := rand.New(rand.NewPCG(7, 8))
	aside := 0
	for i := range 90 {
		data := append([]byte(nil), whole...)
		flipped := false
		switch i % 3 {
		case 0:
			data[rnd.IntN(len(data))] ^= 1 << rnd.IntN(8)
			flipped = true
		case 1:
			at := rnd.IntN(len(data)/size) * size
			clear(data[at : at+size])
		case 2:
			data = data[:rnd.IntN(len(data))]
		}
		overwrite(t, path, data)
		f, err := store.OpenAudit(path, store.AuditOptions{})
		if err != nil {
			t.Errorf("damage %d: %v", i, err)
			continue
		}
		if f.Recovered() != "" {
			aside++
		}
		wrong := 0
		for _, r := range scan(t, f, 0) {
			if n := binary.BigEndian.Uint64(r); string(r) != string(row(int(n))) {
				wrong++
			}
		}
		if wrong > 1 || wrong == 1 && !flipped {
			t.Errorf("damage %d: %d rows differ", i, wrong)
		}
		if err := f.Append([][]byte{row(5000)}); err != nil && wrong == 0 {
			t.Errorf("damage %d: %v", i, err)
		}
		if err := f.Close(); err != nil {
			t.Errorf("damage %d: %v", i, err)
		}
		for _, name := range mustGlob(t, path+".damaged-*") {
			if kept, err := os.ReadFile(name); string(kept) != string(data) || err != nil {
				t.Errorf("damage %d: not kept as it was: %v", i, err)
			}
			_ = os.Remove(name)
		}
		if i%10 == 0 {
			checkFile(t, path)
		}
	}
	t.Logf("%d of 90 damaged files were set aside", aside)
}

func mustGlob(t *testing.T, pattern string) []string {
	t.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// Rows are read while others are written and the files change: always all of
// them, in order.
func TestAuditConcurrent(t *testing.T) {
	t.Parallel()
	f := mustAudit(t, auditPath(t), 100)
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for range 3 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				next := uint64(1)
				err := f.Scan(0, func(r []byte) error {
					if n := binary.BigEndian.Uint64(r); n != next {
						return fmt.Errorf("row %d where %d belongs", n, next)
					}
					next++
					return nil
				})
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	n := 0
	for i := range 60 {
		if err := f.Append(rows(n+1, n+40)); err != nil {
			t.Error(err)
		}
		n += 40
		if i%5 == 4 {
			n++
			if err := f.Rotate(row(n)); err != nil {
				t.Error(err)
			}
		}
	}
	close(stop)
	wg.Wait()
}

func BenchmarkOpenAudit(b *testing.B) {
	path := auditPath(b)
	f := mustAudit(b, path, 0)
	long := strings.Repeat("x", 130)
	for n := 0; f.Size() < 32<<20; {
		var group [][]byte
		for range 1000 {
			n++
			group = append(group, append(row(n), long...))
		}
		if err := f.Append(group); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(f.Size())/float64(n), "bytes/row")
	}
	_ = f.Close()
	for b.Loop() {
		f, err := store.OpenAudit(path, store.AuditOptions{})
		if err != nil {
			b.Fatal(err)
		}
		_ = f.Close()
	}
}
