package daemon

import (
	"runtime"
	"sync/atomic"
)

const (
	// largeAnswer is from how many bytes on an answer counts.
	largeAnswer = 1 << 20
	// tidyAfter is how many bytes of large answers are worth collecting at once.
	tidyAfter = 8 << 20
)

// A tidier has the garbage collector run after some large answers. The
// collector that runs while such a body is in use takes its size for the usual
// one, and lets as much pile up again before it next looks: a service that rests
// at 20 MiB would stay twice as large. Collecting a heap that is nearly empty
// takes a millisecond or two of one processor, after the answer.
type tidier struct {
	bytes   atomic.Int64 // of large answers since the last time
	running atomic.Bool
}

// saw notes the size of an answer.
func (t *tidier) saw(bytes int64) {
	if bytes >= largeAnswer {
		t.bytes.Add(bytes)
	}
}

// after is called at the end of each call.
func (t *tidier) after() {
	if t.bytes.Load() < tidyAfter || !t.running.CompareAndSwap(false, true) {
		return
	}
	t.bytes.Store(0)
	go func() {
		defer t.running.Store(false)
		runtime.GC()
	}()
}
