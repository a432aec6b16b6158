package store

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"go.etcd.io/bbolt"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/wrapper"
)

// Create saves a new wrapper and returns the new revision. When it returns, the
// wrapper is on the disk. The error is WRAPPER_EXISTS if the id is taken, also
// by one that differs in case only, or STORE_FAILED.
func (by Editor) Create(w *wrapper.Wrapper) (rev uint64, err error) {
	s := by.s
	s.write.Lock()
	defer s.write.Unlock()
	if err := s.ready(); err != nil {
		return 0, err
	}
	// Only holders of write change s.c, so it can be read here without mu.
	if taken, ok := s.c.folded[strings.ToLower(w.ID)]; ok {
		return 0, exists(w.ID, taken)
	}
	return by.saveAll([]*entry{{id: w.ID, wrapper: w}}, nil, nil)
}

func exists(id, taken string) error {
	e := fault.New("WRAPPER_EXISTS", "there is a wrapper with the id %q already", taken)
	if id != taken {
		e = fault.New("WRAPPER_EXISTS", "there is a wrapper with the id %q already; ids that differ from it in case only are not allowed", taken)
	}
	return e.With(fault.Field("id"))
}

// Update replaces a wrapper, which may be a damaged one, and returns the new
// revision. Its tool name and the time it last worked stay, what was noted of
// its fields goes. When it returns,
// the new version is on the disk. The error is WRAPPER_NOT_FOUND,
// WRAPPER_UNREADABLE for one that a later version of hbrestd has saved, or
// STORE_FAILED.
func (by Editor) Update(w *wrapper.Wrapper) (rev uint64, err error) {
	s := by.s
	s.write.Lock()
	defer s.write.Unlock()
	if err := s.ready(); err != nil {
		return 0, err
	}
	old := s.c.entries[w.ID]
	if old == nil {
		return 0, s.notFound(w.ID)
	}
	if old.newer {
		return 0, untouchable(old)
	}
	return by.saveAll([]*entry{{id: w.ID, wrapper: w}}, nil, nil)
}

// Delete removes a wrapper, damaged or not, with its tool name and the time it
// last worked, and returns the new revision. Its versions are kept for
// KeepRemoved. The error is WRAPPER_NOT_FOUND or STORE_FAILED.
func (by Editor) Delete(id string) (rev uint64, err error) {
	s := by.s
	s.write.Lock()
	defer s.write.Unlock()
	if err := s.ready(); err != nil {
		return 0, err
	}
	if s.c.entries[id] == nil {
		return 0, s.notFound(id)
	}
	rev = s.c.revision + 1
	gone := []string{id}
	removed, forget := s.removedAfter(gone, nil)
	err = s.commit(func(tx *bbolt.Tx) error {
		if err := by.remember(tx, id, nil); err != nil {
			return err
		}
		if err := putRemoved(tx, gone, nil, forget, removed); err != nil {
			return err
		}
		for _, bucket := range []string{bucketWrappers, bucketNames, bucketVerified} {
			if err := tx.Bucket([]byte(bucket)).Delete([]byte(id)); err != nil {
				return err
			}
		}
		for _, bucket := range []string{bucketPriority, bucketFields, bucketOrigins} {
			if err := deleteIn(tx, bucket, id); err != nil {
				return err
			}
		}
		return putState(tx, rev, len(s.c.ids)-1)
	})
	if err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.c.remove(id)
	s.c.removed = removed
	s.c.set.setPriority(id, 0)
	s.c.revision = rev
	s.c.note(id)
	s.revised()
	delete(s.verified, id)
	delete(s.noted, id)
	return rev, nil
}

// ready reports why nothing can be written. The caller holds write.
func (s *Store) ready() error {
	switch {
	case s.db == nil:
		return failed(nil, "%s is closed", s.path)
	case s.broken != nil:
		return failed(s.broken, "%s takes no changes until hbrestd is started again", s.path)
	case !isAt(s.file, s.path):
		// Writing would go on into a file that nobody can find any more.
		return failed(nil, "%s was moved, removed or replaced while hbrestd runs; start hbrestd again", s.path)
	}
	return nil
}

// commit runs one transaction. After a failure memory is made what the file
// says: a failed commit has usually changed nothing, but when the disk refuses
// the very last step, the change may be there. The caller holds write.
func (s *Store) commit(change func(*bbolt.Tx) error) error {
	err := guard(func() error { return s.db.Update(change) })
	if err == nil {
		return nil
	}
	if p := (panicked{}); errors.As(err, &p) {
		s.broken = err
	} else if rerr := s.reread(); rerr != nil && s.broken == nil {
		s.broken = fmt.Errorf("it could not be read after a change had failed: %w", rerr)
	}
	s.log.Error("store: a change could not be written", "error", err)
	return failed(err, "the change could not be written to %s", s.path)
}

// flushEvery is how long a successful run may stay unwritten (decision 33):
// no disk write on the way of a call, and a crash forgets a minute at most.
const flushEvery = time.Minute

// MarkVerified notes that a wrapper worked at t. It is in List at once and on
// the disk within a minute or at Close. An unknown id is ignored, an earlier
// time too.
func (s *Store) MarkVerified(id string, t time.Time) {
	t = t.UTC().Truncate(time.Millisecond) // what the file keeps
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.c.entries[id]
	if e == nil || !e.verified.Before(t) {
		return
	}
	e.verified = t
	s.verified[id] = t
	s.mark()
}

// mark wakes the flusher.
func (s *Store) mark() {
	select {
	case s.marked <- struct{}{}:
	default: // it knows already
	}
}

// flusher writes what MarkVerified and NoteFields have noted, a minute after the
// first of them.
func (s *Store) flusher() {
	for {
		select {
		case <-s.stop:
			return
		case <-s.marked:
		}
		wait := time.NewTimer(flushEvery)
		select {
		case <-s.stop: // Close flushes
			wait.Stop()
			return
		case <-wait.C:
		}
		s.write.Lock()
		err := s.flush()
		s.write.Unlock()
		if err != nil {
			s.log.Warn("store: what successful runs left could not be written, trying again in a minute", "error", err)
			s.mark()
		}
	}
}

// flush writes what is noted; what it could not write stays noted. The caller
// holds write.
func (s *Store) flush() error {
	s.mu.Lock()
	due := s.verified
	s.verified = map[string]time.Time{}
	fields := s.noted
	s.noted = map[string][]FieldNote{}
	s.mu.Unlock()
	if len(due) == 0 && len(fields) == 0 {
		return nil
	}
	err := s.ready()
	if err == nil {
		err = s.commit(func(tx *bbolt.Tx) error {
			for id, t := range due {
				if err := put(tx, bucketVerified, id, verifiedPayload(t)); err != nil {
					return err
				}
			}
			for id, notes := range fields {
				if err := putFields(tx, id, notes); err != nil {
					return err
				}
			}
			return putState(tx, s.c.revision, len(s.c.ids))
		})
	}
	if err == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, t := range due {
		// Not those marked again or deleted meanwhile.
		if e := s.c.entries[id]; e != nil && s.verified[id].Before(t) {
			s.verified[id], e.verified = t, t
		}
	}
	for id, notes := range fields {
		if _, again := s.noted[id]; again {
			continue
		}
		if e := s.c.entries[id]; e != nil {
			s.noted[id], e.fields = notes, notes
		}
	}
	return err
}
