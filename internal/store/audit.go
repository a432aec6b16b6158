package store

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"
)

// bucketRows of audit.db: number, 8 bytes big-endian -> the rest of the row.
// Rows carry no checksum of this package's: each holds a hash that covers it.
const bucketRows = "rows"

// DefaultAuditKeep is how many files of the audit trail are kept: 256 MiB of
// the usual size.
const DefaultAuditKeep = 16

// AuditOptions of OpenAudit. The zero value works.
type AuditOptions struct {
	Now         func() time.Time // for the name of a file set aside; default time.Now
	Log         *slog.Logger     // default: no log
	LockTimeout time.Duration    // how long to wait for another daemon to close the file; default 1 s
	Keep        int              // files kept, the one at hand included; default DefaultAuditKeep
}

// An AuditFile is an open audit.db with the files that came before it. It keeps
// rows, of which it knows only that the first eight bytes are a number and that
// numbers rise. It may be used by many goroutines.
type AuditFile struct {
	path      string
	opt       AuditOptions
	recovered string

	// write serialises changes and guards broken. It is taken before mu.
	write  sync.Mutex
	broken bool // bbolt stopped in a change: the file must be opened anew

	// mu guards what follows: held for reading while db is used, for writing
	// while it is exchanged.
	mu     sync.RWMutex
	db     *bbolt.DB // nil once closed
	file   *os.File
	closed bool
	turn   int // grows with every Rotate

	size atomic.Int64 // of the pages in use
}

// OpenAudit opens the audit trail at path and makes an empty file if there is
// none; the folder must exist. A damaged file is set aside and what is left of
// it taken over (Recovered). The error is STORE_FAILED: another daemon has the
// file open, it is of a later version, or the disk refuses.
func OpenAudit(path string, o AuditOptions) (*AuditFile, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.LockTimeout <= 0 {
		o.LockTimeout = time.Second
	}
	if o.Keep <= 0 {
		o.Keep = DefaultAuditKeep
	}
	f := &AuditFile{path: path, opt: o}
	if err := f.open(); err != nil {
		return nil, err
	}
	return f, nil
}

// Recovered is a sentence about a damaged file that was set aside and kept; ""
// if there was none.
func (f *AuditFile) Recovered() string {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.recovered
}

// Close gives the file up; everything fails afterwards. A second Close does
// nothing.
func (f *AuditFile) Close() error {
	f.write.Lock()
	defer f.write.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	if err := f.release(); err != nil {
		return failed(err, "%s could not be closed", f.path)
	}
	return nil
}

// release closes what is open. The caller holds write and mu.
func (f *AuditFile) release() error {
	if f.db == nil {
		return nil
	}
	db, file := f.db, f.file
	f.db, f.file = nil, nil
	if f.broken { // bbolt may hold its own locks for ever
		return file.Close()
	}
	return closeBolt(db, file)
}

// Size is how many bytes of the file at hand are in use, give or take the last
// change; the file itself grows in steps.
func (f *AuditFile) Size() int64 { return f.size.Load() }

// Append writes rows in one transaction: all of them, and on the disk, or, with
// an error, in all likelihood none; Tail says. Their numbers must be greater
// than the last one there and rise. The error is STORE_FAILED.
func (f *AuditFile) Append(rows [][]byte) error {
	f.write.Lock()
	defer f.write.Unlock()
	if err := f.ready(); err != nil {
		return err
	}
	f.mu.RLock()
	defer f.mu.RUnlock()
	err := guard(func() error {
		return f.db.Update(func(tx *bbolt.Tx) error {
			f.size.Store(tx.Size())
			return appendRows(tx, rows)
		})
	})
	if err == nil {
		return nil
	}
	if p := (panicked{}); errors.As(err, &p) {
		f.broken = true
	}
	return failed(err, "%d rows could not be written to %s", len(rows), f.path)
}

func appendRows(tx *bbolt.Tx, rows [][]byte) error {
	b := tx.Bucket([]byte(bucketRows))
	b.FillPercent = 1 // numbers only rise, so that no page gets a row in its middle
	last := uint64(0)
	if k, _ := b.Cursor().Last(); k != nil {
		last = binary.BigEndian.Uint64(k)
	}
	for _, row := range rows {
		if len(row) <= 8 {
			return errShort
		}
		n := binary.BigEndian.Uint64(row)
		if n <= last || !plausible(n) {
			return errors.New("the numbers of the rows do not rise")
		}
		if err := b.Put(row[:8], row[8:]); err != nil {
			return err
		}
		last = n
	}
	// As in store.db: a state of an earlier transaction means that the page at
	// the top of the tree is an older page.
	return put(tx, bucketState, keyState, binary.BigEndian.AppendUint64(nil, uint64(tx.ID())))
}

// ready reports why nothing can be written, and opens the file again after
// bbolt has stopped. The caller holds write.
func (f *AuditFile) ready() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return failed(nil, "%s is closed", f.path)
	}
	if f.broken || f.db == nil {
		_ = f.release()
		f.broken = false
		if err := f.open(); err != nil {
			return err
		}
	}
	if !isAt(f.file, f.path) {
		// A new file would begin where nobody can tell how the old one ended.
		return failed(nil, "%s was moved, removed or replaced while hbrestd runs; start hbrestd again", f.path)
	}
	return nil
}

// Tail returns the last n rows of all files, oldest first; fewer if there are
// no more. The error is STORE_FAILED.
func (f *AuditFile) Tail(n int) ([][]byte, error) {
	var out [][]byte
	older, err := f.view(func(tx *bbolt.Tx) {
		c := tx.Bucket([]byte(bucketRows)).Cursor()
		for k, v := c.Last(); k != nil && len(out) < n; k, v = c.Prev() {
			out = append(out, slices.Concat(k, v))
		}
	})
	if err != nil {
		return nil, err
	}
	slices.Reverse(out)
	for i := len(older) - 1; i >= 0 && len(out) < n; i-- {
		before, err := tailOlder(older[i], n-len(out))
		if err != nil {
			return nil, err
		}
		out = append(before, out...)
	}
	return out, nil
}

// tailOlder is the last n rows of an older file. Only a damaged one is read
// whole.
func tailOlder(o olderFile, n int) ([][]byte, error) {
	last, whole, err := lastRows(o.path, n)
	if whole {
		return inOrder(last), nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, failed(err, "%s could not be read", o.path)
	}
	last = nil
	_, err = loadAudit(o.path, func(p pair) error {
		if len(last) >= 2*n {
			last = append(last[:0], last[len(last)-n:]...)
		}
		last = append(last, p)
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // its time may have come
		return nil, failed(err, "%s could not be read", o.path)
	}
	rows := inOrder(last)
	return rows[max(len(rows)-n, 0):], nil
}

// view reads in the file at hand, and lists the older ones as they are then.
func (f *AuditFile) view(read func(tx *bbolt.Tx)) ([]olderFile, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.db == nil {
		return nil, failed(nil, "%s is not open", f.path)
	}
	err := guard(func() error {
		return f.db.View(func(tx *bbolt.Tx) error { read(tx); return nil })
	})
	if err != nil {
		return nil, failed(err, "%s could not be read", f.path)
	}
	older, err := olderFiles(f.path)
	if err != nil {
		return nil, failed(err, "the older files of %s could not be listed", f.path)
	}
	return older, nil
}

// scanRows is how many rows Scan takes out of the file at a time. No
// transaction stays open while they are handed out: one that does keeps bbolt
// from using its free pages again.
const scanRows = 1000

// Scan hands out the rows of all files from a number on, in rising order, until
// f fails, and returns that error. Rows may be written meanwhile. Another error
// is STORE_FAILED.
func (f *AuditFile) Scan(from uint64, each func(row []byte) error) error {
	turn := -1 // none: the older files come first
	for {
		var rows [][]byte
		var now int
		var here bool // from is in the file at hand
		older, err := f.view(func(tx *bbolt.Tx) {
			now = f.turn
			c := tx.Bucket([]byte(bucketRows)).Cursor()
			first, _ := c.First()
			here = first != nil && binary.BigEndian.Uint64(first) <= from
			for k, v := c.Seek(binary.BigEndian.AppendUint64(nil, from)); k != nil && len(rows) < scanRows; k, v = c.Next() {
				rows = append(rows, slices.Concat(k, v))
			}
		})
		if err != nil {
			return err
		}
		if now != turn && !here { // the file at hand has become an older one meanwhile
			if from, err = scanOlder(older, from, each); err != nil {
				return err
			}
			turn = now
			continue
		}
		turn = now
		for _, row := range rows {
			if err := each(row); err != nil {
				return err
			}
			from = binary.BigEndian.Uint64(row) + 1
		}
		if len(rows) < scanRows {
			return nil
		}
	}
}

// scanOlder hands out the rows of older files and returns where to go on. Of a
// damaged file it hands out what can be read: what is missing is found by
// whoever checks the rows.
func scanOlder(older []olderFile, from uint64, each func(row []byte) error) (uint64, error) {
	var stop error // of each
	for i, o := range older {
		if i+1 < len(older) && older[i+1].first <= from {
			continue
		}
		_, err := loadAudit(o.path, func(p pair) error {
			n := binary.BigEndian.Uint64(p.key)
			if n < from {
				return nil
			}
			if stop = each(p.row()); stop != nil {
				return stop
			}
			from = n + 1
			return nil
		})
		switch {
		case stop != nil:
			return from, stop
		case err != nil && !errors.Is(err, fs.ErrNotExist): // the oldest one's time may have come
			return from, failed(err, "%s could not be read", o.path)
		}
	}
	return from, nil
}
