package store

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"go.etcd.io/bbolt"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/wrapper"
)

// bucketOrigins holds what wrappers were imported from: id -> JSON. It is made
// with the first import. A record that cannot be read is none: its wrapper is
// then never overwritten by an import.
const bucketOrigins = "origins"

// An Origin is what a wrapper was made from by an import.
type Origin struct {
	Kind      string // openapi, curl, postman, har
	Source    string // the file or address, without what may be a credential; may be empty
	Title     string // of the document; may be empty
	Operation string // "GET /pets/{id}"
	// Doc is the digest of the document as it was imported, without exposeAsTool:
	// exposing a wrapper is no edit.
	Doc [32]byte
}

// An Imported is a saved wrapper with its origin.
type Imported struct {
	ID string
	Origin
	Edited bool // what is saved is not what was imported, or cannot be read
}

// originRecord is an Origin in the file.
type originRecord struct {
	Kind      string `json:"k"`
	Source    string `json:"s,omitempty"`
	Title     string `json:"t,omitempty"`
	Operation string `json:"o,omitempty"`
	Doc       string `json:"d"` // hex
}

// Origins are the imported wrappers that are saved, by id. The error is
// STORE_FAILED.
func (s *Store) Origins() ([]Imported, error) {
	s.write.Lock()
	defer s.write.Unlock()
	return s.imported()
}

// imported is Origins. The caller holds write.
func (s *Store) imported() ([]Imported, error) {
	if err := s.ready(); err != nil {
		return nil, err
	}
	found := map[string]Origin{}
	err := guard(func() error {
		return s.db.View(func(tx *bbolt.Tx) error {
			b := tx.Bucket([]byte(bucketOrigins))
			if b == nil {
				return nil
			}
			return b.ForEach(func(k, v []byte) error {
				if o, ok := readOrigin(string(k), v); ok {
					found[string(k)] = o
				}
				return nil
			})
		})
	})
	if p := (panicked{}); errors.As(err, &p) {
		s.broken = err // bbolt may hold its own locks for ever
	}
	if err != nil {
		return nil, failed(err, "what wrappers were imported from could not be read from %s", s.path)
	}
	var out []Imported
	for _, id := range s.c.ids {
		if o, ok := found[id]; ok {
			out = append(out, Imported{ID: id, Origin: o, Edited: s.edited(id, o)})
		}
	}
	slices.SortFunc(out, func(a, b Imported) int { return strings.Compare(a.ID, b.ID) })
	return out, nil
}

func readOrigin(id string, record []byte) (Origin, bool) {
	payload, err := unseal(bucketOrigins, id, record)
	var r originRecord
	if err != nil || json.Unmarshal(payload, &r) != nil {
		return Origin{}, false
	}
	sum, err := hex.DecodeString(r.Doc)
	if err != nil || len(sum) != 32 {
		return Origin{}, false
	}
	return Origin{r.Kind, r.Source, r.Title, r.Operation, [32]byte(sum)}, true
}

func putOrigin(tx *bbolt.Tx, id string, o Origin) error {
	payload, err := json.Marshal(originRecord{o.Kind, o.Source, o.Title, o.Operation, hex.EncodeToString(o.Doc[:])})
	if err != nil {
		return err
	}
	return putIn(tx, bucketOrigins, id, payload)
}

// edited reports whether a saved wrapper is another than the one imported. The
// caller holds write.
func (s *Store) edited(id string, o Origin) bool {
	w, _ := s.c.entries[id].get()
	if w == nil {
		return true
	}
	plain, err := unexposed(w)
	return err != nil || plain.Digest() != o.Doc
}

// unexposed is w without a word on whether it is a tool of its own.
func unexposed(w *wrapper.Wrapper) (*wrapper.Wrapper, error) {
	return rewritten(w, func(fields map[string]json.RawMessage) { delete(fields, "exposeAsTool") })
}

// ApplyImported is Apply for wrappers that were made from elsewhere: origins has
// what, for each id; Doc is filled in. It overwrites no wrapper that was not
// imported, or that was edited since: the error is then WRAPPER_EXISTS or
// WRAPPER_CHANGED. Whether a wrapper is a tool of its own stays as it is, and a
// new one is none. Origins are written in the same transaction.
func (by Editor) ApplyImported(ws []*wrapper.Wrapper, origins map[string]Origin, dryRun bool) (changes []Change, rev uint64, err error) {
	s := by.s
	if len(ws) > MaxApply {
		return nil, 0, refused("documents", "%d documents at once; at most %d can be applied in one step", len(ws), MaxApply)
	}
	s.write.Lock()
	defer s.write.Unlock()
	list, err := s.imported()
	if err != nil {
		return nil, 0, err
	}
	known := map[string]Imported{}
	for _, o := range list {
		known[o.ID] = o
	}
	made, due := make([]*wrapper.Wrapper, len(ws)), map[string]Origin{}
	for i, w := range ws {
		was, imported := known[w.ID]
		old := s.c.entries[w.ID]
		plain, err := unexposed(w)
		if err != nil {
			return nil, 0, err
		}
		made[i] = plain
		if old != nil {
			stored, damaged := old.get()
			if stored == nil {
				return nil, 0, unusable(w.ID, damaged)
			}
			before, err := unexposed(stored)
			if err != nil {
				return nil, 0, err
			}
			switch {
			case before.Digest() == plain.Digest():
				made[i] = stored
				continue
			case !imported:
				return nil, 0, exists(w.ID, w.ID)
			case was.Edited:
				return nil, 0, fault.New("WRAPPER_CHANGED", "wrapper %q was edited after it was imported", w.ID).With(fault.Field("id"))
			case stored.ExposeAsTool:
				if made[i], err = exposed(plain, true); err != nil {
					return nil, 0, err
				}
			}
		}
		o := origins[w.ID]
		o.Doc = plain.Digest()
		due[w.ID] = o
	}
	return by.apply(made, nil, due, dryRun)
}
