package audit

import (
	"crypto/sha256"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// A writer is the one goroutine that owns order, chain and commits.
type writer struct {
	*Log
	at      head    // the last row that is known to be on the disk
	fresh   bool    // the next row must be one that opens a file
	backlog []*item // not yet written, in order
	readers []*item // who wants to know when what came before is written
	failed  *attempt
	backoff time.Duration // until the next try of its own accord
	rotate  int64         // size at which the file is changed
}

// An attempt is a commit that failed, which usually but not surely means that
// its rows are not there.
type attempt struct {
	end   head // if they are
	group []*item
	lost  uint64
}

func (w *writer) run() {
	defer close(w.done)
	w.rotate = w.opt.MaxFile
	for w.collect() {
		w.flush()
	}
	for len(w.queue) > 0 { // nobody adds to it any more
		w.add(<-w.queue)
	}
	w.flush()
	n := len(w.backlog)
	if w.failed != nil {
		n += len(w.failed.group)
	}
	if n > 0 {
		w.lost.Add(uint64(n))
		w.opt.Log.Error("audit: rows could not be written before the end", "rows", n, "reason", w.Trouble())
	}
	w.opt.Report(w.at.String())
}

// add puts an item into the backlog. While nothing can be written the backlog
// has a bound, too; those who wait are answered at the next try.
func (w *writer) add(it *item) {
	if it.reader {
		w.readers = append(w.readers, it)
		return
	}
	if it.wait == nil && len(w.backlog) >= w.opt.Queue {
		w.lost.Add(1)
		return
	}
	w.backlog = append(w.backlog, it)
}

// collect waits until something should be written. It returns false at the end.
func (w *writer) collect() bool {
	if w.failed == nil && !w.linger() || w.failed != nil && !w.retry() {
		return false
	}
	for range min(len(w.queue), groupSize) { // the company that is there already
		w.add(<-w.queue)
	}
	if len(w.queue) > 0 {
		w.hurryUp()
	}
	return true
}

// linger waits for a row and then for its company. Rows that nobody waits for
// stay in the queue meanwhile: to wake the writer for each of them would cost a
// call more than its row does.
func (w *writer) linger() bool {
	if len(w.backlog) == 0 {
		select {
		case it := <-w.queue:
			w.add(it)
			if it.wait != nil {
				return true
			}
		case <-w.stop:
			return false
		}
	}
	timer := time.NewTimer(linger)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.hurry:
	case <-w.stop:
		return false
	}
	return true
}

// retry waits for the next try after a commit that failed, or for somebody
// who wants to know.
func (w *writer) retry() bool {
	timer := time.NewTimer(w.backoff)
	defer timer.Stop()
	for {
		select {
		case it := <-w.queue:
			w.add(it)
			if it.wait != nil {
				return true
			}
		case <-timer.C:
			return true
		case <-w.stop:
			return false
		}
	}
}

// flush writes the backlog, in order, until it is empty or a commit fails. Then
// those who wait are told, and the other rows stay for the next try.
func (w *writer) flush() {
	defer func() {
		for _, it := range w.readers {
			it.wait <- nil
		}
		w.readers = nil
	}()
	err := w.settleFailed()
	for err == nil && (len(w.backlog) > 0 || w.lost.Load() > 0) {
		n := min(len(w.backlog), groupSize)
		group := w.backlog[:n:n]
		w.backlog = w.backlog[n:]
		err = w.commit(group)
	}
	if err == nil {
		w.backlog, w.backoff = nil, 0
		return
	}
	w.backoff = min(max(2*w.backoff, retryFirst), retryMost)
	w.refuse(err)
}

// refuse answers everyone who waits.
func (w *writer) refuse(err error) {
	err = failed(err, "nothing was sent, because the audit trail could not be written")
	w.setTrouble(fault.From(err).Message)
	w.opt.Log.Error("audit: rows could not be written", "error", err, "waiting", len(w.backlog))
	tell := func(items []*item) (rest []*item) {
		for _, it := range items {
			if it.wait == nil {
				rest = append(rest, it)
			} else if it.state.CompareAndSwap(waiting, settled) {
				it.wait <- err
			}
		}
		return rest
	}
	w.backlog = tell(w.backlog)
	if w.failed != nil {
		tell(w.failed.group) // which stays as it is, until it is known what became of it
	}
}

// commit writes one group.
func (w *writer) commit(group []*item) error {
	end, rows := w.at, make([][]byte, 0, len(group)+2)
	kept := group[:0:0]
	for _, it := range group {
		if it.state.Load() == gone {
			continue // nothing was written of it, and nothing is sent
		}
		kept = append(kept, it)
	}
	lost := w.lost.Load()
	if len(kept) == 0 && lost == 0 {
		return nil
	}
	if w.fresh {
		rows = append(rows, end.next(&w.opening().content))
	}
	for _, it := range kept {
		rows = append(rows, end.next(&it.content))
	}
	if lost > 0 {
		it := w.own(phaseLost, ActionRowsLost)
		it.content.lost = lost
		rows = append(rows, end.next(&it.content))
	}
	if err := w.opt.Append(rows); err != nil {
		w.failed = &attempt{end, kept, lost}
		return err
	}
	w.fresh = false
	w.lost.Add(-lost)
	w.moved(end)
	for _, it := range kept {
		if it.wait == nil {
			continue
		}
		if it.state.CompareAndSwap(waiting, settled) {
			it.wait <- nil
		} else {
			w.notSent(it, "CALL_CANCELLED")
		}
	}
	return w.change()
}

func (w *writer) opening() *item {
	it := w.own(phaseOpen, ActionFileOpened)
	it.prev = w.at.hash
	return it
}

// notSent gives an intent that is in the trail, but whose caller was told that
// it is not, the result that it deserves.
func (w *writer) notSent(it *item, code fault.Code) {
	if it.phase != phaseIntent {
		return
	}
	r := &item{content: it.content}
	r.phase, r.row.Error = phaseResult, code
	w.backlog = append(w.backlog, r)
}

// settleFailed finds out what became of a commit that failed.
func (w *writer) settleFailed() error {
	f := w.failed
	if f == nil {
		return nil
	}
	before := w.at
	if err := w.resume(); err != nil {
		return err
	}
	switch w.at {
	case before:
		var rest []*item
		for _, it := range f.group {
			if it.wait == nil {
				rest = append(rest, it)
			}
		}
		w.backlog = append(rest, w.backlog...)
	case f.end: // it is there after all
		w.lost.Add(-f.lost)
		w.moved(f.end)
		for _, it := range f.group {
			if it.wait != nil {
				w.notSent(it, "AUDIT_FAILED")
			}
		}
	default:
		err := fault.New("AUDIT_FAILED", "the rows end at number %d, but number %d was the last one written: somebody changed the file", w.at.seq, before.seq)
		w.at = before
		return err
	}
	w.failed = nil
	return nil
}

// resume makes the writer go on from the last row there is.
func (w *writer) resume() error {
	rows, err := w.opt.Tail(1)
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		w.at, w.fresh = head{}, true
		return nil
	}
	row := rows[len(rows)-1]
	h, c := w.read(row)
	w.at, w.fresh = h, c.phase == phaseClose
	return nil
}

// read takes a stored row apart. A row that is none still has a number and a
// hash that the next one can build on; Verify will find it.
func (l *Log) read(row []byte) (head, content) {
	s, ok := split(row)
	if !ok {
		return malformed(row), content{}
	}
	c, _ := s.content()
	return s.head, c
}

// malformed is what the row after a malformed one builds on.
func malformed(row []byte) head {
	h := head{hash: sha256.Sum256(row)}
	for _, b := range row[:min(len(row), 8)] {
		h.seq = h.seq<<8 | uint64(b)
	}
	return h
}

// moved makes a new end of the chain known.
func (w *writer) moved(to head) {
	report := to.seq/reportEvery != w.at.seq/reportEvery
	w.at = to
	w.mu.Lock()
	w.head, w.trouble = to, ""
	close(w.changed)
	w.changed = make(chan struct{})
	w.mu.Unlock()
	if report {
		w.opt.Report(to.String())
	}
}

func (w *writer) setTrouble(s string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trouble = s
}

// change makes the rows go on in a new file when the one at hand is full: a
// last row closes it, and the first one of the new file names its head.
func (w *writer) change() error {
	if w.opt.Rotate == nil || w.opt.Size == nil || w.opt.Size() < w.rotate {
		return nil
	}
	end := w.at
	closing := end.next(&w.own(phaseClose, ActionFileClosed).content)
	if err := w.opt.Append([][]byte{closing}); err != nil {
		w.failed = &attempt{end: end}
		return err
	}
	w.moved(end)
	w.fresh = true
	first := end.next(&w.opening().content)
	if err := w.opt.Rotate(first); err != nil {
		// The old file can go on; it is tried again when it has grown by an eighth.
		w.opt.Log.Error("audit: the file could not be changed for a new one", "error", err)
		w.rotate = w.opt.Size() + w.opt.MaxFile/8
		w.failed = &attempt{end: end}
		return w.settleFailed()
	}
	w.fresh, w.rotate = false, w.opt.MaxFile
	w.moved(end)
	return nil
}
