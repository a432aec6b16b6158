package daemon

import (
	"runtime"
	"testing"
	"time"
)

// Only large answers have the collector run, once for each eight MiB of them.
func TestTidier(t *testing.T) {
	forced := func() uint32 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.NumForcedGC
	}
	var d tidier
	ended := func() uint32 {
		for end := time.Now().Add(10 * time.Second); d.running.Load() && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
		return forced()
	}
	before := forced()
	for range 100 {
		d.saw(largeAnswer - 1)
		d.after()
	}
	d.saw(tidyAfter - 1)
	d.after()
	if got := ended() - before; got != 0 {
		t.Errorf("one byte under: %d collections", got)
	}
	d.saw(largeAnswer)
	d.after()
	if got := ended() - before; got != 1 {
		t.Errorf("over it: %d collections", got)
	}
	d.after()
	d.saw(tidyAfter)
	d.after()
	if got := ended() - before; got != 2 {
		t.Errorf("at it again: %d collections", got)
	}
}
