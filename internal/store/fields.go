package store

import (
	"encoding/json"
	"time"

	"go.etcd.io/bbolt"

	"github.com/hyperbolic-gateway/hb-rest/internal/wrapper"
)

// bucketFields holds what successful runs noted about a wrapper's fields:
// id -> JSON. It is made when it is first written to, is machine state like the
// verified bucket, and a record that cannot be read is none.
const bucketFields = "fields"

// A FieldNote is what is known of one field of a wrapper's recipe from its
// successful runs. What it means is the daemon's to say.
type FieldNote struct {
	Label  string
	Filled bool      // some item had a value, since the document was saved
	Empty  int       // items without a value since the last with one, as far as they were counted
	Since  time.Time // of the first of those, UTC, in milliseconds; zero if there are none
}

// fieldNote is a FieldNote in the file.
type fieldNote struct {
	Label  string `json:"f"`
	Filled bool   `json:"v,omitempty"`
	Empty  int    `json:"n,omitempty"`
	Since  int64  `json:"s,omitempty"` // unix milliseconds
}

// NoteFields replaces a wrapper's notes by what change makes of them; change
// gives false to leave them. It must not change the slice it gets. The notes
// are in List at once and on the disk within a minute or at Close, and gone with
// the document that they are about: they are dropped when w is not what is
// stored now.
func (s *Store) NoteFields(w *wrapper.Wrapper, change func([]FieldNote) ([]FieldNote, bool)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.c.entries[w.ID]
	if e == nil {
		return
	}
	if now, _ := e.get(); now != w {
		return
	}
	notes, changed := change(e.fields)
	if !changed {
		return
	}
	e.fields = notes
	s.noted[w.ID] = notes
	s.mark()
}

// putFields writes a wrapper's notes; none need no record.
func putFields(tx *bbolt.Tx, id string, notes []FieldNote) error {
	if len(notes) == 0 {
		return deleteIn(tx, bucketFields, id)
	}
	out := make([]fieldNote, len(notes))
	for i, n := range notes {
		out[i] = fieldNote{Label: n.Label, Filled: n.Filled, Empty: n.Empty}
		if !n.Since.IsZero() {
			out[i].Since = n.Since.UnixMilli()
		}
	}
	payload, err := json.Marshal(out)
	if err != nil {
		return err
	}
	return putIn(tx, bucketFields, id, payload)
}

func (r *reading) fields(img *image) {
	for _, p := range img.buckets[bucketFields] {
		id := string(p.key)
		payload, err := unseal(bucketFields, id, p.value)
		var notes []fieldNote
		e := r.entries[id]
		if e == nil || err != nil || json.Unmarshal(payload, &notes) != nil {
			continue
		}
		e.fields = make([]FieldNote, len(notes))
		for i, n := range notes {
			e.fields[i] = FieldNote{Label: n.Label, Filled: n.Filled, Empty: n.Empty}
			if n.Since != 0 {
				e.fields[i].Since = time.UnixMilli(n.Since).UTC()
			}
		}
	}
}
