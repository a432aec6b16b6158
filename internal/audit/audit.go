// Package audit keeps one row about every outbound request and every change:
// method, host, status, bytes, duration, error code and wrapper id, in order,
// each row holding a hash over itself and the row before.
//
// It never learns a path, a query string, a header, a body or the name of a
// credential: [Row] has no place for them. It never makes a read call wait for
// the disk, and never lets a request that changes something go out before its
// row is on the disk. It keeps no file itself: the rows go through the
// functions of [Options]. Start with [Open].
//
// The chain proves that the rows up to a head which was noted elsewhere are
// whole, unchanged and in order. It does not prove what was sent, nor that
// nothing was left out, and whoever can write the file can make a new chain: it
// will not have the noted head.
package audit

import (
	"context"
	"encoding/hex"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

const (
	// linger is how long a row that nobody waits for may wait for company. With
	// a commit of up to 5 ms it is on the disk 20 ms after it was made.
	linger = 15 * time.Millisecond

	// groupSize bounds one commit, so that whoever waits for its rows does not
	// wait for ten thousand others.
	groupSize = 1024

	// reportEvery is how many rows lie between two reports of the head.
	reportEvery = 100

	// The rows that cannot be written at the moment are tried again after
	// retryFirst, then after twice as long each time, at most retryMost.
	retryFirst = 100 * time.Millisecond
	retryMost  = 5 * time.Second
)

// Defaults of Options.
const (
	// DefaultQueue is a good quarter of a second of the fastest disk measured and
	// 8 s of a thousand calls a second, in 2 MiB of memory.
	DefaultQueue = 8192
	// DefaultPatience is how long Result waits for room in a full queue.
	DefaultPatience = time.Second
	// DefaultMaxFile is about 100,000 rows. Sixteen files of it, which the store
	// keeps, are a year of four thousand calls a day. A start reads through the
	// newest one: 60 ms on a busy machine when it is full.
	DefaultMaxFile = 16 << 20
)

// Options of Open. Append and Scan and Tail are required.
//
// Append writes rows, all or none, and returns when they are on the disk. The
// first eight bytes of a row are its number, big-endian; numbers rise by one.
// Tail returns the last n rows, fewer if there are no more, oldest first. Scan
// hands out the rows from a number on in rising order until f fails, and
// returns that error.
type Options struct {
	Append func(rows [][]byte) error
	Tail   func(n int) ([][]byte, error)
	Scan   func(from uint64, f func(row []byte) error) error

	// Size and Rotate make the rows go into a new file when the one at hand
	// has MaxFile bytes. Rotate closes the file and starts one whose first row
	// is the given one. nil: one file for ever.
	Size    func() int64
	Rotate  func(first []byte) error
	MaxFile int64 // default DefaultMaxFile

	// Recovered says that rows may be missing because a damaged file was set
	// aside; it makes a row of its own.
	Recovered bool

	// Report is told the head after every 100 rows and at Close, to be noted
	// where this machine's user cannot change it, such as the system's journal.
	// It is called from the goroutine that writes and should be quick.
	Report func(head string)

	Now      func() time.Time // default time.Now
	Log      *slog.Logger     // default: no log
	Queue    int              // rows waiting to be written; default DefaultQueue
	Patience time.Duration    // default DefaultPatience
}

// A Log is an open audit trail. It may be used by many goroutines.
type Log struct {
	opt   Options
	queue chan *item
	hurry chan struct{} // one token: what is in the queue should be written now
	stop  chan struct{}
	done  chan struct{} // closed when the writer has ended

	// entry lets Close wait for those who are putting something into the queue.
	// It guards closed.
	entry  sync.RWMutex
	closed bool

	lost atomic.Uint64 // rows that could not be written and are not yet told of in a row

	// started is the head at Open: an intent up to it has lost its process.
	started uint64

	// mu guards what follows and is never held during input or output.
	mu      sync.Mutex
	head    head
	trouble string
	changed chan struct{} // closed when head moves or the log is closed
}

// An item is a row on its way to the disk.
type item struct {
	content
	wait   chan error // nil if nobody waits
	reader bool       // no row: somebody waits for the rows before it
	// state decides between the writer, who settles the item, and a caller who
	// stops waiting for it.
	state atomic.Int32
}

const (
	waiting int32 = iota
	settled       // the caller gets the outcome
	gone          // the caller has left
)

// Open starts a log that goes on from the last row there is. The error is
// AUDIT_FAILED: the rows cannot be read.
func Open(o Options) (*Log, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Report == nil {
		o.Report = func(string) {}
	}
	if o.Queue <= 0 {
		o.Queue = DefaultQueue
	}
	if o.Patience <= 0 {
		o.Patience = DefaultPatience
	}
	if o.MaxFile <= 0 {
		o.MaxFile = DefaultMaxFile
	}
	l := &Log{
		opt: o, queue: make(chan *item, o.Queue), hurry: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}),
		changed: make(chan struct{}),
	}
	w := &writer{Log: l}
	if err := w.resume(); err != nil {
		return nil, unreadable(err)
	}
	l.head, l.started = w.at, w.at.seq
	if o.Recovered {
		w.backlog = append(w.backlog, l.own(phaseRecovered, ActionRecovered))
	}
	go w.run()
	return l, nil
}

// Result records how an exchange ended, or a change, without waiting for the
// disk: the row is written within 20 ms together with others. When the disk
// stands still and the queue is full, Result waits for up to Options.Patience;
// a row that finds no room even then is counted, and the number becomes a row
// of its own as soon as one can be written. Never is a row lost silently.
func (l *Log) Result(r Row) {
	it := l.item(r, phaseResult)
	l.entry.RLock()
	defer l.entry.RUnlock()
	if l.closed {
		l.opt.Log.Error("audit: a row came after the log was closed", "kind", it.row.Kind, "host", it.row.Host)
		return
	}
	select {
	case l.queue <- it:
		if len(l.queue) >= groupSize {
			l.hurryUp()
		}
		return
	default:
	}
	t := time.NewTimer(l.opt.Patience)
	defer t.Stop()
	select {
	case l.queue <- it:
	case <-t.C:
		l.lost.Add(1)
	}
}

// Intent records what is about to be sent and returns when the row is on the
// disk. With an error nothing must be sent: it is AUDIT_FAILED, or that of ctx,
// and the trail then shows either no row or one with that error. A row of
// KindChange has no result; Intent is the way to write one durably.
func (l *Log) Intent(ctx context.Context, r Row) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	it := l.item(r, phaseIntent)
	it.wait = make(chan error, 1)
	if err := l.enqueue(ctx, it); err != nil {
		return err
	}
	select {
	case err := <-it.wait:
		return err
	case <-ctx.Done():
		if it.state.CompareAndSwap(waiting, gone) {
			return ctx.Err()
		}
		return <-it.wait
	}
}

// Settle waits until every row that was recorded before is written, or cannot
// be written now, so that a reader sees its own calls. The error is that of ctx;
// a log that is closed has settled.
func (l *Log) Settle(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	it := &item{reader: true, wait: make(chan error, 1)}
	if err := l.enqueue(ctx, it); err != nil {
		return ctx.Err()
	}
	select {
	case err := <-it.wait:
		return err // always nil: a reader gets what there is
	case <-l.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *Log) enqueue(ctx context.Context, it *item) error {
	l.entry.RLock()
	defer l.entry.RUnlock()
	if l.closed {
		return fault.New("AUDIT_FAILED", "the audit trail is closed because hbrestd stops, so nothing was sent")
	}
	t := time.NewTimer(l.opt.Patience)
	defer t.Stop()
	select {
	case l.queue <- it:
		l.hurryUp()
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return fault.New("AUDIT_FAILED", "nothing was sent, because %d rows wait to be written to the audit trail already", l.opt.Queue)
	}
}

// hurryUp ends the wait for company. It comes after what is in a hurry, so that
// the writer, who takes the token first, finds that in the queue.
func (l *Log) hurryUp() {
	select {
	case l.hurry <- struct{}{}:
	default:
	}
}

func (l *Log) item(r Row, p phase) *item {
	if r.Time.IsZero() {
		r.Time = l.opt.Now()
	}
	if r.Kind == KindChange {
		p = phaseChange
	}
	it := &item{}
	it.phase, it.row = p, clean(r)
	return it
}

// own is a row of the log about itself.
func (l *Log) own(p phase, a Action) *item {
	it := &item{}
	it.phase, it.row = p, Row{Time: l.opt.Now(), Kind: KindAudit, Action: a}
	return it
}

// Head is the end of the chain that is on the disk: the number of the last row,
// 0 if there is none, and its hash in hexadecimal. Noted elsewhere, as
// "SEQ:HASH", it is what Verify can hold the rows against.
func (l *Log) Head() (seq uint64, hash string) {
	h, _ := l.now()
	return h.seq, hex.EncodeToString(h.hash[:])
}

// now is the head and a channel that is closed when it moves.
func (l *Log) now() (head, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.head, l.changed
}

// Trouble says, for a person, why rows cannot be written at the moment; "" if
// they can.
func (l *Log) Trouble() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.trouble
}

// Close writes what is in the queue, reports the head and ends the log. Whoever
// follows gets what there is. The error is AUDIT_FAILED if rows could not be
// written. A second Close does nothing.
func (l *Log) Close() error {
	l.entry.Lock()
	if l.closed {
		l.entry.Unlock()
		<-l.done
		return nil
	}
	l.closed = true
	l.entry.Unlock()
	close(l.stop)
	<-l.done
	l.mu.Lock()
	close(l.changed)
	l.mu.Unlock()
	if n := l.lost.Load(); n > 0 {
		return fault.New("AUDIT_FAILED", "%d rows of the audit trail could not be written: %s", n, l.Trouble())
	}
	return nil
}

// failed is AUDIT_FAILED with the reason, if that is known to be fit for people.
func failed(cause error, what string) error {
	if fault.Is(cause, "STORE_FAILED") || fault.Is(cause, "AUDIT_FAILED") {
		what += ": " + fault.From(cause).Message
	}
	return fault.New("AUDIT_FAILED", "%s", what).With(fault.Cause(cause))
}

func unreadable(cause error) error { return failed(cause, "the audit trail could not be read") }
