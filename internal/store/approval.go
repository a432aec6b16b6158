package store

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"go.etcd.io/bbolt"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// The buckets of what a person has said about approvals.
const (
	bucketApproval = "approval" // wrapper's id in lower case -> digest of its document, then a policy's name
	bucketTrust    = "trust"    // digest of a document in hex -> its wrapper's id
)

// Limits of what a person says about approvals.
const (
	MaxApprovalPolicies = 1000
	MaxTrusted          = 1000
	maxPolicyName       = 20
)

// An ApprovalPolicy is what a person has said about asking for one wrapper's
// writes. It outlives the wrapper: deleting and saving it again changes nothing.
type ApprovalPolicy struct {
	Wrapper string   // id in lower case; ids differ in more than case
	Policy  string   // a name; the store knows none
	Doc     [32]byte // digest of the document that the person had before them
	Damaged bool     // the record cannot be read: Policy and Doc are not known
}

// ApprovalPolicyOf is the policy of a wrapper; false: there is none.
func (s *Store) ApprovalPolicyOf(id string) (ApprovalPolicy, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	p, ok := s.c.set.approval[strings.ToLower(id)]
	return p, ok
}

// ApprovalPolicies are those of all wrappers, by id.
func (s *Store) ApprovalPolicies() []ApprovalPolicy {
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := make([]ApprovalPolicy, 0, len(s.c.set.approval))
	for _, p := range s.c.set.approval {
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b ApprovalPolicy) int { return strings.Compare(a.Wrapper, b.Wrapper) })
	return out
}

// SetApproval stores the policy of a wrapper and, in the same transaction, takes
// back what of it is trusted. An empty policy leaves the wrapper without one.
// The error is BAD_REQUEST beyond the limits, or STORE_FAILED.
func (s *Store) SetApproval(p ApprovalPolicy) error {
	id := strings.ToLower(p.Wrapper)
	if !plainID(id) || len(p.Policy) > maxPolicyName {
		return refused("wrapper", "%q cannot be the id of a wrapper", fault.Shorten(p.Wrapper, shownID))
	}
	s.write.Lock()
	defer s.write.Unlock()
	if err := s.ready(); err != nil {
		return err
	}
	if _, known := s.c.set.approval[id]; !known && p.Policy != "" && len(s.c.set.approval) >= MaxApprovalPolicies {
		return refused("wrapper", "%d wrappers have a policy of their own already", MaxApprovalPolicies)
	}
	var gone [][32]byte
	for doc, owner := range s.c.set.trusted {
		if strings.EqualFold(owner, id) {
			gone = append(gone, doc)
		}
	}
	err := s.commitSet(func(tx *bbolt.Tx) error {
		for _, doc := range gone {
			if err := deleteIn(tx, bucketTrust, hex.EncodeToString(doc[:])); err != nil {
				return err
			}
		}
		if p.Policy == "" {
			return deleteIn(tx, bucketApproval, id)
		}
		return putIn(tx, bucketApproval, id, append(p.Doc[:], p.Policy...))
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, doc := range gone {
		delete(s.c.set.trusted, doc)
	}
	if p.Policy == "" {
		delete(s.c.set.approval, id)
	} else {
		s.c.set.approval[id] = ApprovalPolicy{Wrapper: id, Policy: p.Policy, Doc: p.Doc}
	}
	s.c.set.repaired("approval policy of", id)
	return nil
}

// A Trusted document may send its writes without being asked about.
type Trusted struct {
	Wrapper string   // id
	Doc     [32]byte // digest
}

// Trusts reports whether a person has trusted a document.
func (s *Store) Trusts(doc [32]byte) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	_, ok := s.c.set.trusted[doc]
	return ok
}

// Trusted are the documents that a person has trusted, by wrapper.
func (s *Store) Trusted() []Trusted {
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := make([]Trusted, 0, len(s.c.set.trusted))
	for doc, id := range s.c.set.trusted {
		out = append(out, Trusted{id, doc})
	}
	slices.SortFunc(out, func(a, b Trusted) int {
		return cmp.Or(strings.Compare(a.Wrapper, b.Wrapper), bytes.Compare(a.Doc[:], b.Doc[:]))
	})
	return out
}

// Trust notes that a person trusts a document. SetApproval takes that back. The
// error is BAD_REQUEST beyond the limits, or STORE_FAILED.
func (s *Store) Trust(t Trusted) error {
	if !plainID(t.Wrapper) {
		return refused("wrapper", "%q cannot be the id of a wrapper", fault.Shorten(t.Wrapper, shownID))
	}
	s.write.Lock()
	defer s.write.Unlock()
	if err := s.ready(); err != nil {
		return err
	}
	if _, known := s.c.set.trusted[t.Doc]; known {
		return nil
	}
	if len(s.c.set.trusted) >= MaxTrusted {
		return refused("wrapper", "%d documents are trusted already", MaxTrusted)
	}
	key := hex.EncodeToString(t.Doc[:])
	if err := s.commitSet(func(tx *bbolt.Tx) error { return putIn(tx, bucketTrust, key, []byte(t.Wrapper)) }); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.c.set.trusted[t.Doc] = t.Wrapper
	s.c.set.repaired("trusted document", key)
	return nil
}

// SettingDamaged reports whether a stored value is there and cannot be read:
// what it was is not known, and the default may be less careful.
func (s *Store) SettingDamaged(name string) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.ContainsFunc(s.c.set.damaged, func(d string) bool {
		return strings.HasPrefix(d, damageOf("setting", name))
	})
}

// damageOf is how the words about a damaged record begin.
func damageOf(what, key string) string {
	return fmt.Sprintf("%s %q: ", what, fault.Shorten(key, shownID))
}

// readApproval makes sense of the two buckets. A damaged policy still is one;
// damaged trust is none.
func (s *set) readApproval(img *image, each func(bucket, what string, take func(key string, payload []byte) bool)) {
	for _, p := range img.buckets[bucketApproval] {
		s.approval[string(p.key)] = ApprovalPolicy{Wrapper: string(p.key), Damaged: true}
	}
	each(bucketApproval, "approval policy of", func(key string, payload []byte) bool {
		if len(payload) <= 32 || key != strings.ToLower(key) {
			return false
		}
		s.approval[key] = ApprovalPolicy{Wrapper: key, Policy: string(payload[32:]), Doc: [32]byte(payload)}
		return true
	})
	each(bucketTrust, "trusted document", func(key string, payload []byte) bool {
		doc, err := hex.DecodeString(key)
		if err != nil || len(doc) != 32 || !plainID(string(payload)) {
			return false
		}
		s.trusted[[32]byte(doc)] = string(payload)
		return true
	})
}
