package audit_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

// Rows that somebody waits for and rows that nobody waits for, from many at once,
// callers that leave, a disk that fails now and then and a queue that is often
// full: each row is there once, and what was told to have failed is either not
// there or has its result behind it.
func TestMixedRowsAreThereOnce(t *testing.T) {
	m := &memory{}
	o := m.options()
	n := 0
	o.Append = func(rows [][]byte) error { // called by the writer alone
		if n++; n%7 == 0 {
			return errors.New("no space")
		}
		if n%3 == 0 {
			time.Sleep(time.Millisecond)
		}
		return m.append(rows)
	}
	o.Queue, o.Patience = 8000, time.Minute
	l := open(t, o)
	const callers, each = 16, 400
	told := make([][]error, callers) // of the calls that waited
	var wg sync.WaitGroup
	for i := range callers {
		told[i] = make([]error, each)
		wg.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(i)))
			for k := range each {
				call := fmt.Sprintf("c%d-%dz", i, k)
				switch k % 4 {
				case 0, 1:
					l.Result(read(call))
				case 2:
					told[i][k] = l.Intent(t.Context(), write(call))
				case 3:
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(r.IntN(3000))*time.Microsecond)
					told[i][k] = l.Intent(ctx, write(call))
					cancel()
				}
				if r.IntN(50) == 0 {
					if err := l.Settle(t.Context()); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	for {
		if err := l.Intent(t.Context(), write("last")); err == nil {
			break // the disk works: Close can write the rest
		}
	}
	if err := l.Settle(t.Context()); err != nil {
		t.Error(err)
	}
	if got, err := l.Verify(t.Context(), ""); err != nil || !got.OK {
		t.Errorf("%+v, %v", got, err)
	}
	closeLog(t, l)
	all := bytes.Join(m.rows, []byte("\n"))
	failed := 0
	for i := range callers {
		for k := range each {
			got := bytes.Count(all, fmt.Appendf(nil, "c%d-%dz", i, k))
			err := told[i][k]
			if err != nil {
				failed++
			}
			if waited := k%4 >= 2; !waited && got != 1 || waited && err == nil && got != 1 || waited && err != nil && got != 0 && got != 2 {
				t.Errorf("row %d-%d is there %d times; it was told %v", i, k, got, err)
			}
		}
	}
	if failed == 0 {
		t.Error("none failed")
	}
	t.Logf("%d rows in %d groups, %d waited in vain", len(m.rows), len(m.groups), failed)
}
