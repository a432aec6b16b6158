package store

import (
	"crypto/rand"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
)

// A caller that keeps what it knows of the wrappers wants to hear of those that
// changed, not of ten thousand. What changed is in memory alone: a mark of
// another opening of the store, or of one too long ago, is not known any more,
// and the caller reads all of them again.

// maxChanged is how many changed wrappers are remembered. 4096 ids are less than
// half a megabyte, and whoever has missed as many may as well read all.
const maxChanged = 4096

// newEra names one opening of a store. A revision alone does not: a store that
// was put back from a copy goes through the same numbers again.
func newEra() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the program instead
	return hex.EncodeToString(b[:])
}

// Mark names the wrappers as they are now, for ChangedSince. Read it before what
// it is to name.
func (s *Store) Mark() string { return s.era + "." + strconv.FormatUint(s.Revision(), 10) }

// ChangedSince are the ids of the wrappers that were created, changed or removed
// after Mark was mark, in order; what runs leave behind (Entry.Verified and
// Entry.Fields) is no change. known is false when that cannot be told.
func (s *Store) ChangedSince(mark string) (ids []string, known bool) {
	era, number, _ := strings.Cut(mark, ".")
	rev, err := strconv.ParseUint(number, 10, 64)
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err != nil || era != s.era || rev < s.c.floor || rev > s.c.revision {
		return nil, false
	}
	for id, at := range s.c.changed {
		if at > rev {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids, true
}

// note remembers that a wrapper was changed by the step that made c.revision.
func (c *contents) note(id string) {
	if len(c.changed) >= maxChanged {
		clear(c.changed)
		c.floor = c.revision
		return // whoever knows less than this revision reads all
	}
	c.changed[id] = c.revision
}

// Some are the wrappers with these ids, damaged ones included, in the order of
// ids; those that are not there are left out.
func (s *Store) Some(ids []string) []Entry {
	s.mu.RLock()
	out := make([]Entry, 0, len(ids))
	entries := make([]*entry, 0, len(ids))
	for _, id := range ids {
		if e := s.c.entries[id]; e != nil {
			out, entries = append(out, s.row(e)), append(entries, e)
		}
	}
	s.mu.RUnlock()
	for i, e := range entries {
		out[i].Wrapper, out[i].Damaged = e.get()
	}
	return out
}

// row is an entry without its document. The caller holds mu.
func (s *Store) row(e *entry) Entry {
	return Entry{ID: e.id, Verified: e.verified, Tool: e.tool, Priority: s.c.set.priority[e.id], Fields: e.fields}
}
