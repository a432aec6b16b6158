// Package store keeps the wrappers in one bbolt file, store.db: the documents,
// what they were before, the names of their generated tools, when they last
// worked, what a person has set, and a revision number that grows with every
// change of a wrapper. Everything but what was before is in memory too, so that reading never touches the disk; memory
// follows the disk, never the other way. The rows of the audit trail are in a
// file of their own, audit.db.
//
// It never lets damage spread: every record carries a checksum, one damaged
// record is one named error, a damaged file is set aside and kept, and nothing
// that was read differs silently from what was written. It knows nothing of
// what a document means beyond its id and whether it asks for a tool. Start
// with [Open], and [Store.By] for changes; [OpenAudit] is for the audit trail.
package store

import (
	"fmt"
	"log/slog"
	"maps"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"go.etcd.io/bbolt"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/wrapper"
)

// Options of Open. The zero value works.
type Options struct {
	Now         func() time.Time // of versions, and for the name of a file set aside; default time.Now
	Log         *slog.Logger     // default: no log
	LockTimeout time.Duration    // how long to wait for another daemon to close the file; default 1 s
}

// A Store is an open store.db. It may be used by many goroutines.
type Store struct {
	path      string
	era       string // see Mark
	log       *slog.Logger
	now       func() time.Time
	recovered string

	// write serialises changes and guards db, file and broken. It is taken
	// before mu, never after.
	write  sync.Mutex
	db     *bbolt.DB // nil once closed
	file   *os.File
	broken error // why nothing can be written any more until the next start

	// mu guards what follows and is never held during input or output.
	mu       sync.RWMutex
	c        *contents
	verified map[string]time.Time   // not yet written (decision 33)
	noted    map[string][]FieldNote // the same
	waiting  chan struct{}          // closed at the next revision; nil while nobody waits

	marked   chan struct{} // wakes the flusher; holds one
	stop     chan struct{}
	flushing sync.WaitGroup
}

// An Entry is one row of List.
type Entry struct {
	ID       string
	Wrapper  *wrapper.Wrapper // nil if damaged; not to be changed
	Damaged  string           // why there is no wrapper, for a person; "" if there is one
	Verified time.Time        // last successful live run, UTC; zero if never
	Tool     string           // the tool name that belongs to this id; "" if it was never exposed
	Priority int              // 0 to MaxPriority; see Rank
	Fields   []FieldNote      // what runs noted of the document's fields; not to be changed
}

// Open opens the store at path and makes an empty one if there is none; the
// folder must exist. A damaged file is set aside and what is left of it taken
// over (Recovered). The error is STORE_FAILED: another daemon has the file
// open, it is of a later version, or the disk refuses.
func Open(path string, o Options) (*Store, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.LockTimeout <= 0 {
		o.LockTimeout = time.Second
	}
	f, err := open(path, o)
	if err != nil {
		return nil, err
	}
	s := &Store{
		path: path, era: newEra(), log: o.Log, now: o.Now, recovered: f.recovered, db: f.db, file: f.file, c: f.contents,
		verified: map[string]time.Time{}, noted: map[string][]FieldNote{}, marked: make(chan struct{}, 1), stop: make(chan struct{}),
	}
	for _, d := range s.c.set.damaged {
		o.Log.Error("store: something that a person has set cannot be read and counts as not set", "what", d)
	}
	s.flushing.Go(s.flusher)
	return s, nil
}

// Close writes what MarkVerified and NoteFields have noted and gives the file up. Reading goes
// on from memory; changes fail. A second Close does nothing.
func (s *Store) Close() error {
	s.write.Lock()
	if s.db != nil {
		select {
		case <-s.stop: // another Close is at it
		default:
			close(s.stop)
		}
	}
	s.write.Unlock()
	s.flushing.Wait()

	s.write.Lock()
	defer s.write.Unlock()
	if s.db == nil {
		return nil
	}
	err := s.flush()
	// After a panic bbolt may hold its own mutexes for ever.
	if s.broken != nil {
		abandon(s.file)
	} else if cerr := closeBolt(s.db, s.file); err == nil && cerr != nil {
		err = failed(cerr, "%s could not be closed", s.path)
	}
	s.db = nil
	return err
}

// Recovered is a sentence about a damaged file that Open has set aside and
// kept, for the log and for status; "" if there was none.
func (s *Store) Recovered() string { return s.recovered }

// Revision grows with every change of a wrapper. It is at least 1.
func (s *Store) Revision() uint64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.c.revision
}

// Len is the number of wrappers, damaged ones included.
func (s *Store) Len() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.c.ids)
}

// Damaged is the number of wrappers that cannot be used. The first call after
// a start parses every document.
func (s *Store) Damaged() int {
	n := 0
	for _, e := range s.List() {
		if e.Wrapper == nil {
			n++
		}
	}
	return n
}

// List returns all wrappers by id, damaged ones included. The first call after
// a start parses every document.
func (s *Store) List() []Entry {
	s.mu.RLock()
	out := make([]Entry, len(s.c.ids))
	entries := make([]*entry, len(s.c.ids))
	for i, id := range s.c.ids {
		e := s.c.entries[id]
		entries[i], out[i] = e, s.row(e)
	}
	s.mu.RUnlock()

	// All the processors together, because a client waits for this list.
	workers := min(runtime.GOMAXPROCS(0), len(out)/64+1)
	var wg sync.WaitGroup
	for k := range workers {
		part := func() {
			for i := k; i < len(out); i += workers {
				out[i].Wrapper, out[i].Damaged = entries[i].get()
			}
		}
		if k == workers-1 {
			part() // the caller is one of them
		} else {
			wg.Go(part)
		}
	}
	wg.Wait()
	return out
}

// Get returns one wrapper, which is not to be changed. The error is
// WRAPPER_NOT_FOUND, naming up to three near ids, or WRAPPER_UNREADABLE.
func (s *Store) Get(id string) (*wrapper.Wrapper, error) {
	s.mu.RLock()
	e := s.c.entries[id]
	s.mu.RUnlock()
	if e == nil {
		return nil, s.notFound(id)
	}
	w, damaged := e.get()
	if w == nil {
		return nil, unusable(id, damaged)
	}
	return w, nil
}

func (s *Store) notFound(id string) error {
	s.mu.RLock()
	ids := slices.Clone(s.c.ids) // with ten thousand the search takes milliseconds, in which nobody is to wait for mu
	s.mu.RUnlock()
	near := nearest(id, ids)
	return fault.New("WRAPPER_NOT_FOUND", "no wrapper has the id %q%s", fault.Shorten(id, shownID), near).With(fault.Field("id"))
}

func unusable(id, why string) error {
	return fault.New("WRAPPER_UNREADABLE", "wrapper %q cannot be used: %s", fault.Shorten(id, shownID), why).With(fault.Field("id"))
}

// Reload reads the whole file again, checking everything, and returns the
// revision. The error is STORE_FAILED; then memory stays as it is.
func (s *Store) Reload() (rev uint64, err error) {
	s.write.Lock()
	defer s.write.Unlock()
	if err := s.ready(); err != nil {
		return 0, err
	}
	if err := s.reread(); err != nil {
		return 0, err
	}
	return s.Revision(), nil
}

// reread makes memory what the file says. The caller holds write.
func (s *Store) reread() error {
	// bbolt's own handle is not read from: its offset and its fate are not ours.
	r, _, err := load(s.path)
	if err != nil {
		return unreadable(err, s.path)
	}
	if len(r.faults) > 0 {
		// Another change could make it worse.
		s.broken = fmt.Errorf("it is damaged (%s)", r.faults[0])
		return s.ready()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, t := range s.verified {
		if e := r.entries[id]; e != nil && e.verified.Before(t) {
			e.verified = t
		}
	}
	maps.DeleteFunc(s.verified, func(id string, _ time.Time) bool { return r.entries[id] == nil })
	for id, notes := range s.noted {
		if e := r.entries[id]; e != nil {
			e.fields = notes
		}
	}
	maps.DeleteFunc(s.noted, func(id string, _ []FieldNote) bool { return r.entries[id] == nil })
	s.c = r.contents
	s.revised()
	return nil
}
