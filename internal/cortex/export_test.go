package cortex

import (
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
