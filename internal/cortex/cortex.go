// Package cortex is the full-text index of what wrappers have read: rendered
// documents go in, and questions in plain words find them again. It is one
// SQLite file, opened at the first use and closed again when nothing has
// happened for a while.
//
// It never fetches, never scrubs (its caller hands in text that may be kept),
// and never holds anything that cannot be read again from its source: deleting
// the file loses the index and nothing else. A damaged file is set aside, said
// once, and replaced by an empty one. Start with [Open].
package cortex

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// Defaults of Options.
const (
	DefaultMaxBytes = 200_000_000
	DefaultIdle     = 30 * time.Second
)

// Options of Open. The zero value works.
type Options struct {
	MaxBytes int64            // size of the file above which the oldest pages go; default DefaultMaxBytes, at least 1 MB
	Idle     time.Duration    // the file is closed after so long without a call; default DefaultIdle
	Now      func() time.Time // default time.Now
	Log      *slog.Logger     // default: no log; never gets text, titles or URLs
}

// An Index is the index in one file. It may be used by many goroutines; they
// take turns, because one connection serves all: an index of one user is asked
// seldom and answers in milliseconds.
type Index struct {
	path string
	o    Options

	// turn holds one token; whoever has it may touch everything below.
	turn      chan struct{}
	db        *sql.DB // nil while the file is closed
	closed    bool
	recovered string // about the last damaged file that was set aside
	trimming  bool   // removing the oldest pages is at work

	// work is what goes on beside calls, until life ends with Close.
	work sync.WaitGroup
	life context.Context // of the Index itself, not of a call
	end  context.CancelFunc

	// idle is guarded by mu, because it is stopped by those who wait for turn.
	mu   sync.Mutex
	idle *time.Timer
}

// Open makes an Index of the file at path, whose folder must exist by the time
// of the first Add. It touches nothing yet and cannot fail.
func Open(path string, o Options) *Index {
	if o.MaxBytes <= 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	o.MaxBytes = max(o.MaxBytes, 1_000_000) // below that even an empty index would not stay
	if o.Idle <= 0 {
		o.Idle = DefaultIdle
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	x := &Index{path: path, o: o, turn: make(chan struct{}, 1)}
	x.life, x.end = context.WithCancel(context.Background())
	x.turn <- struct{}{}
	return x
}

// Close waits for the call at work and gives the file up; removing the oldest
// pages is broken off. Calls after it fail
// with CORTEX_UNAVAILABLE; a second Close does nothing.
func (x *Index) Close() error {
	x.end()
	<-x.turn
	x.closed = true
	x.stopTimer()
	err := x.shut()
	x.give()
	x.work.Wait()
	return err
}

// take waits for the turn. The error is CORTEX_TIMEOUT or CALL_CANCELLED.
func (x *Index) take(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return x.failed(err, "waiting for the index")
	}
	select {
	case <-x.turn:
	case <-ctx.Done():
		return x.failed(ctx.Err(), "waiting for the index, which another call is using")
	}
	if x.closed {
		x.give()
		return fault.New("CORTEX_UNAVAILABLE", "the index is closed, because the daemon is stopping")
	}
	return nil
}

func (x *Index) give() { x.turn <- struct{}{} }

// use runs f with the open file, whose work is described by doing ("storing 3
// documents"). With create false and no file, f is not called. A file that
// turns out to be damaged is set aside; with retry f then runs once more on
// the empty one that replaces it.
func (x *Index) use(ctx context.Context, create, retry bool, doing string, f func(*sql.DB) error) error {
	if err := x.take(ctx); err != nil {
		return err
	}
	defer x.give()
	for again := false; ; again = true {
		if !create && x.db == nil {
			if _, err := os.Lstat(x.path); errors.Is(err, fs.ErrNotExist) {
				return nil
			}
		}
		err := x.open(ctx)
		if err == nil {
			err = f(x.db)
			x.startTimer()
		}
		if err == nil || !isDamage(err) {
			return x.failed(err, doing)
		}
		if aside := x.setAside(err); aside != nil {
			return x.failed(aside, "setting the damaged index aside")
		}
		if !retry || again {
			return fault.New("CORTEX_UNAVAILABLE", "%s", x.recovered).With(fault.Cause(err),
				fault.Hint("Run the wrappers again whose documents should be found."))
		}
	}
}

// failed turns what went wrong while doing something into a fault.
func (x *Index) failed(err error, doing string) error {
	var f *fault.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &f):
		return err
	case errors.Is(err, context.Canceled):
		return fault.New("CALL_CANCELLED", "the caller went away while %s", doing).With(fault.Cause(err))
	case errors.Is(err, context.DeadlineExceeded):
		return fault.New("CORTEX_TIMEOUT", "time ran out while %s", doing).With(fault.Cause(err))
	}
	return fault.New("CORTEX_UNAVAILABLE", "%s did not work: %s", doing, reason(err)).With(fault.Cause(err))
}

// startTimer makes the file close after Idle. Its caller has the turn.
func (x *Index) startTimer() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.idle != nil {
		x.idle.Reset(x.o.Idle)
		return
	}
	x.idle = time.AfterFunc(x.o.Idle, func() {
		select {
		case <-x.turn:
			defer x.give()
			if err := x.shut(); err != nil {
				x.o.Log.Error("cortex: the index could not be closed", "error", err)
			}
		default: // somebody is at it and will start the timer again
		}
	})
}

func (x *Index) stopTimer() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.idle != nil {
		x.idle.Stop()
	}
}

// shut closes the file. Its caller has the turn.
func (x *Index) shut() error {
	if x.db == nil {
		return nil
	}
	err := x.db.Close()
	x.db = nil
	return err
}
