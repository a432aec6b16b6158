package store

import (
	"bytes"
	"context"
	"strings"

	"go.etcd.io/bbolt"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/wrapper"
)

// MaxApply is how many documents one Apply takes: a transaction of them at
// their largest, with their versions, is 512 MiB; at the usual 2 KiB, with
// twenty versions of each, it took 0.2 to 0.4 s on a busy machine.
const MaxApply = 1000

// The actions of a Change.
const (
	Created   = "created"
	Updated   = "updated"
	Unchanged = "unchanged"
)

// A Change is what became, or would become, of one document of Apply.
type Change struct {
	ID     string
	Action string // Created, Updated or Unchanged
	Before []byte // the stored document; nil unless Updated, or if it was damaged
	After  []byte // the new one; nil if Unchanged
}

// Apply saves many wrappers in one transaction, as one step of the revision:
// all or none. Wrappers whose document is what is stored already are not
// written; if none is, the revision stays. The changes are in the order of ws.
// With dryRun nothing is written, and rev is the present one. The error is
// WRAPPER_EXISTS for two documents with one id, or an id that differs from
// another in case only, WRAPPER_UNREADABLE for one that a later version of
// hbrestd has saved, BAD_REQUEST for more than MaxApply, or STORE_FAILED.
func (by Editor) Apply(ws []*wrapper.Wrapper, dryRun bool) (changes []Change, rev uint64, err error) {
	return by.ApplySeen(ws, nil, dryRun)
}

// ApplySeen is Apply for documents that were made from what was stored: seen has
// the digest of that by id. The error is WRAPPER_CHANGED when something else is
// stored now.
func (by Editor) ApplySeen(ws []*wrapper.Wrapper, seen map[string][32]byte, dryRun bool) (changes []Change, rev uint64, err error) {
	s := by.s
	if len(ws) > MaxApply {
		return nil, 0, refused("documents", "%d documents at once; at most %d can be applied in one step", len(ws), MaxApply)
	}
	s.write.Lock()
	defer s.write.Unlock()
	return by.apply(ws, seen, nil, dryRun)
}

// apply is ApplySeen; origins has what wrappers were imported from, by id. The
// caller holds write.
func (by Editor) apply(ws []*wrapper.Wrapper, seen map[string][32]byte, origins map[string]Origin, dryRun bool) (changes []Change, rev uint64, err error) {
	s := by.s
	if !dryRun {
		if err := s.ready(); err != nil {
			return nil, 0, err
		}
	}
	batch := map[string]string{} // id in lower case -> id
	var save []*entry
	for _, w := range ws {
		low := strings.ToLower(w.ID)
		if other, taken := batch[low]; taken {
			return nil, 0, twice(w.ID, other)
		}
		batch[low] = w.ID
		if other, taken := s.c.folded[low]; taken && other != w.ID {
			return nil, 0, exists(w.ID, other)
		}
		c, err := s.compare(w)
		if err == nil {
			err = s.unchanged(w.ID, seen)
		}
		if err != nil {
			return nil, 0, err
		}
		changes = append(changes, c)
		if c.Action != Unchanged {
			save = append(save, &entry{id: w.ID, wrapper: w})
		}
	}
	if dryRun || len(save) == 0 {
		return changes, s.c.revision, nil
	}
	rev, err = by.saveAll(save, nil, origins)
	if err != nil {
		return nil, 0, err
	}
	return changes, rev, nil
}

func twice(id, other string) error {
	if id == other {
		return fault.New("WRAPPER_EXISTS", "two of the documents have the id %q", id).
			With(fault.Field("id"), fault.Hint("Remove one of the two documents, or give it another id."))
	}
	return fault.New("WRAPPER_EXISTS", "two of the documents have the ids %q and %q; ids that differ in case only are not allowed", other, id).
		With(fault.Field("id"), fault.Hint("Remove one of the two documents, or give it another id."))
}

// compare says what saving w would do. The caller holds write.
func (s *Store) compare(w *wrapper.Wrapper) (Change, error) {
	c := Change{ID: w.ID, Action: Created, After: w.Document()}
	e := s.c.entries[w.ID]
	if e == nil {
		return c, nil
	}
	if e.newer {
		return c, untouchable(e)
	}
	c.Action = Updated
	if old, _ := e.get(); old != nil {
		c.Before = old.Document()
		if bytes.Equal(c.Before, c.After) {
			return Change{ID: w.ID, Action: Unchanged}, nil
		}
	}
	return c, nil
}

// unchanged refuses a wrapper that is not what it was when it was seen. The
// caller holds write.
func (s *Store) unchanged(id string, seen map[string][32]byte) error {
	digest, given := seen[id]
	if !given {
		return nil
	}
	e := s.c.entries[id]
	if e == nil {
		return fault.New("WRAPPER_CHANGED", "wrapper %q was removed meanwhile", id).With(fault.Field("id"))
	}
	if w, _ := e.get(); w == nil || w.Digest() != digest {
		return fault.New("WRAPPER_CHANGED", "wrapper %q was changed meanwhile", id).With(fault.Field("id"))
	}
	return nil
}

// untouchable is the refusal to overwrite what a later version has saved.
func untouchable(e *entry) error {
	return unusable(e.id, e.damaged).(*fault.Error).
		With(fault.Hint("It is kept as it is. Update hbrestd to use it, or remove it with wrap_delete."))
}

// saveAll writes wrappers in one transaction and then puts them into memory.
// An entry has its id and wrapper; its tool name and the time it last worked
// are those of the one it replaces. priority has the priorities that change,
// origins what entries were imported from; the other origins stay.
// The caller holds write.
func (by Editor) saveAll(entries []*entry, priority map[string]int, origins map[string]Origin) (rev uint64, err error) {
	s := by.s
	names := map[string]string{} // tool name in lower case -> id, of this batch
	count := len(s.c.ids)
	var back []string // ids that were not there
	for _, e := range entries {
		if old := s.c.entries[e.id]; old != nil {
			e.tool = old.tool // only holders of write change it
		} else {
			count++
			back = append(back, e.id)
		}
		if e.wrapper.ExposeAsTool && e.tool == "" {
			e.tool = wrapper.ToolName(e.id, func(name string) bool {
				low := strings.ToLower(name)
				owner, taken := s.c.tools[low]
				if !taken {
					owner, taken = names[low]
				}
				return taken && owner != e.id
			})
			names[strings.ToLower(e.tool)] = e.id
		}
	}
	rev = s.c.revision + 1
	removed, forget := s.removedAfter(nil, back)
	err = s.commit(func(tx *bbolt.Tx) error {
		for _, e := range entries {
			if err := by.remember(tx, e.id, e.wrapper.Document()); err != nil {
				return err
			}
			record := seal(bucketWrappers, e.id, e.wrapper.Document())
			if err := tx.Bucket([]byte(bucketWrappers)).Put([]byte(e.id), record); err != nil {
				return err
			}
			if err := put(tx, bucketNames, e.id, namePayload(digest(record), e.tool)); err != nil {
				return err
			}
			if err := deleteIn(tx, bucketFields, e.id); err != nil {
				return err
			}
			if o, imported := origins[e.id]; imported {
				if err := putOrigin(tx, e.id, o); err != nil {
					return err
				}
			}
		}
		for id, p := range priority {
			if err := putPriority(tx, id, p); err != nil {
				return err
			}
		}
		if err := putRemoved(tx, nil, back, forget, removed); err != nil {
			return err
		}
		return putState(tx, rev, count)
	})
	if err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.c.removed = removed
	s.c.revision = rev
	for _, e := range entries {
		if old := s.c.entries[e.id]; old != nil {
			e.verified = old.verified // it may have worked meanwhile
		}
		s.c.put(e)
		s.c.note(e.id)
		delete(s.noted, e.id)
	}
	for id, p := range priority {
		s.c.set.setPriority(id, p)
		s.c.note(id)
	}
	s.revised()
	return rev, nil
}

// WaitRevision waits until the revision is another one than after, the store is
// closed or ctx ends, and returns the revision there is then. Any number may
// wait.
func (s *Store) WaitRevision(ctx context.Context, after uint64) uint64 {
	for {
		s.mu.Lock()
		now := s.c.revision
		if now != after {
			s.mu.Unlock()
			return now
		}
		if s.waiting == nil {
			s.waiting = make(chan struct{})
		}
		news := s.waiting
		s.mu.Unlock()
		select {
		case <-news:
		case <-s.stop:
			return s.Revision()
		case <-ctx.Done():
			return s.Revision()
		}
	}
}

// revised wakes those who wait for a revision. The caller holds mu.
func (s *Store) revised() {
	if s.waiting != nil {
		close(s.waiting)
		s.waiting = nil
	}
}
