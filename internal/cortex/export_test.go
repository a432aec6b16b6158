package cortex

import (
	"context"
	"testing"
	"time"
)

// WaitClosed waits until the file was closed for want of calls.
func (x *Index) WaitClosed(t testing.TB) {
	t.Helper()
	for range 10_000 {
		if !x.IsOpen() {
			return
		}
		time.Sleep(time.Millisecond) // polling, bounded: the closing is by a timer of the real clock
	}
	t.Fatal("the file stays open")
}

// IsOpen reports whether the file is open.
func (x *Index) IsOpen() bool {
	<-x.turn
	defer x.give()
	return x.db != nil
}

// Hold takes the turn, as a long call does, until the function is called.
func (x *Index) Hold() (release func()) {
	<-x.turn
	return x.give
}

// Used is the size that is held against the limit.
func (x *Index) Used(t testing.TB) int64 {
	t.Helper()
	<-x.turn
	defer x.give()
	n, err := fileSize(context.Background(), x.db)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// SetLimit goes below what Open allows.
func (x *Index) SetLimit(n int64) { x.o.MaxBytes = n }

// WaitTrimmed waits until the oldest pages were removed.
func (x *Index) WaitTrimmed() { x.work.Wait() }
