package store

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"go.etcd.io/bbolt"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// Limits of sealed records.
const (
	MaxSealed      = 1000      // credentials
	MaxSealedBytes = 160 << 10 // of one record: a value, its binding and a cached token
	maxSealedName  = 100       // bytes, as in a wrapper's request.auth
)

// GetSealed returns the sealed record of a credential, a copy; nil when there
// is none. The error is SECRET_DAMAGED: the store's own checksum fails.
func (s *Store) GetSealed(name string) ([]byte, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	sealed, ok := s.c.set.sealed[name]
	switch {
	case !ok:
		return nil, nil
	case sealed == nil:
		return nil, fault.New("SECRET_DAMAGED", "the record of credential %q is damaged", name)
	}
	return bytes.Clone(sealed), nil
}

// PutSealed stores a record under a name, in place of an earlier one. The
// error is BAD_REQUEST beyond the limits, or STORE_FAILED.
func (s *Store) PutSealed(name string, sealed []byte) error {
	switch {
	case name == "" || len(name) > maxSealedName || strings.ContainsRune(name, 0):
		return refused("name", "%q cannot be the name of a credential", fault.Shorten(name, maxSealedName))
	case len(sealed) == 0 || len(sealed) > MaxSealedBytes:
		return refused("value", "a sealed credential can have 1 to %d bytes, this one has %d", MaxSealedBytes, len(sealed))
	}
	s.write.Lock()
	defer s.write.Unlock()
	if err := s.ready(); err != nil {
		return err
	}
	if _, known := s.c.set.sealed[name]; !known && len(s.c.set.sealed) >= MaxSealed {
		return refused("name", "there are %d credentials already", MaxSealed)
	}
	if err := s.commitSet(func(tx *bbolt.Tx) error { return putIn(tx, bucketSealed, name, sealed) }); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.c.set.sealed[name] = bytes.Clone(sealed)
	s.c.set.repaired("credential", name)
	return nil
}

// DeleteSealed removes a record; one that is not there is no error. The error
// is STORE_FAILED.
func (s *Store) DeleteSealed(name string) error {
	s.write.Lock()
	defer s.write.Unlock()
	if err := s.ready(); err != nil {
		return err
	}
	if _, known := s.c.set.sealed[name]; !known {
		return nil
	}
	if err := s.commitSet(func(tx *bbolt.Tx) error { return deleteIn(tx, bucketSealed, name) }); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.c.set.sealed, name)
	s.c.set.repaired("credential", name)
	return nil
}

// ListSealed returns the names of all records, damaged ones too: as long as
// there is one, the key that sealed it is needed.
func (s *Store) ListSealed() ([]string, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Sorted(maps.Keys(s.c.set.sealed)), nil
}
