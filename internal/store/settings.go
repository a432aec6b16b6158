package store

import (
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.etcd.io/bbolt"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// The buckets of what a person has set. They are made when they are first
// written to, and their records are taken over from a damaged file like all
// others.
const (
	bucketSettings = "settings" // name -> value
	bucketAllow    = "allow"    // host, a space, port or nothing -> one byte: 1 if plain http too, else 0
	bucketPriority = "priority" // id -> 2 bytes big-endian; none means 0
	bucketSealed   = "sealed"   // name of a credential -> a record that internal/secrets has sealed
)

// Limits of what a person sets.
const (
	MaxSettings     = 200  // stored at once
	MaxSettingName  = 100  // bytes, of [a-z0-9.-]
	MaxSettingValue = 4096 // bytes
	MaxAllowRules   = 1000
	MaxAllowHost    = 253 // bytes, the most that a host name has
	MaxPriority     = 1000
)

// An AllowRule lets one host be reached although it is private. There is one
// rule for a host and a port.
type AllowRule struct {
	Host string // canonical: the store compares, it does not understand
	Port string // decimal; "" for every port
	HTTP bool   // plain http too
}

func (r AllowRule) key() string { return r.Host + " " + r.Port }

func compareRules(a, b AllowRule) int { return strings.Compare(a.key(), b.key()) }

// set is what a person has set, in memory.
type set struct {
	settings map[string]string
	allowed  []AllowRule // by key
	priority map[string]int
	sealed   map[string][]byte // nil: the record is damaged
	approval map[string]ApprovalPolicy
	trusted  map[[32]byte]string // digest of a document -> its wrapper's id
	damaged  []string            // what could not be read, in words
}

// readSet makes sense of the buckets above. A damaged record counts as not set,
// which never opens more than a person has opened.
func readSet(img *image) set {
	s := set{
		settings: map[string]string{}, priority: map[string]int{}, sealed: map[string][]byte{},
		approval: map[string]ApprovalPolicy{}, trusted: map[[32]byte]string{},
	}
	each := func(bucket, what string, take func(key string, payload []byte) bool) {
		for _, p := range img.buckets[bucket] {
			key := string(p.key)
			payload, err := unseal(bucket, key, p.value)
			if err == nil && !take(key, payload) {
				err = errors.New("it is none")
			}
			if err != nil {
				s.damaged = append(s.damaged, damageOf(what, key)+err.Error())
			}
		}
	}
	each(bucketSettings, "setting", func(key string, payload []byte) bool {
		s.settings[key] = string(payload)
		return true
	})
	each(bucketAllow, "allow rule", func(key string, payload []byte) bool {
		host, port, ok := strings.Cut(key, " ")
		if !ok || len(payload) != 1 || payload[0] > 1 {
			return false
		}
		s.allowed = append(s.allowed, AllowRule{host, port, payload[0] == 1})
		return true
	})
	slices.SortFunc(s.allowed, compareRules)
	each(bucketPriority, "priority of", func(key string, payload []byte) bool {
		if len(payload) != 2 || binary.BigEndian.Uint16(payload) > MaxPriority {
			return false
		}
		s.priority[key] = int(binary.BigEndian.Uint16(payload))
		return true
	})
	for _, p := range img.buckets[bucketSealed] {
		s.sealed[string(p.key)] = nil // a damaged record is still a record: it keeps its name and its key
	}
	each(bucketSealed, "credential", func(key string, payload []byte) bool {
		s.sealed[key] = append([]byte{}, payload...)
		return true
	})
	s.readApproval(img, each)
	return s
}

// Unreadable says which settings, allow rules and priorities are damaged and
// count as not set until they are set again; none if all is well.
func (s *Store) Unreadable() []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Clone(s.c.set.damaged)
}

// Settings are the stored values by name.
func (s *Store) Settings() map[string]string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return maps.Clone(s.c.set.settings)
}

// SetSetting stores a value. The store knows no names; whoever calls has
// checked the name and the value. The error is BAD_REQUEST for one beyond the
// limits, or STORE_FAILED.
func (s *Store) SetSetting(name, value string) error {
	switch {
	case name == "" || len(name) > MaxSettingName || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789.-") != "":
		return refused("name", "%q cannot be the name of a setting: 1 to %d of a-z, 0-9, dot and hyphen", fault.Shorten(name, shownID), MaxSettingName)
	case len(value) > MaxSettingValue:
		return refused("value", "a setting can have %d bytes, this one has %d", MaxSettingValue, len(value))
	}
	s.write.Lock()
	defer s.write.Unlock()
	if err := s.ready(); err != nil {
		return err
	}
	old, known := s.c.set.settings[name]
	switch {
	case known && old == value:
		return nil
	case !known && len(s.c.set.settings) >= MaxSettings:
		return refused("name", "there are %d stored settings already", MaxSettings)
	}
	err := s.commitSet(func(tx *bbolt.Tx) error { return putIn(tx, bucketSettings, name, []byte(value)) })
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.c.set.settings[name] = value
	s.c.set.repaired("setting", name)
	return nil
}

// UnsetSetting forgets a stored value; one that is not there is no error. The
// error is STORE_FAILED.
func (s *Store) UnsetSetting(name string) error {
	s.write.Lock()
	defer s.write.Unlock()
	if err := s.ready(); err != nil {
		return err
	}
	if _, known := s.c.set.settings[name]; !known && len(s.c.set.damaged) == 0 {
		return nil
	}
	if err := s.commitSet(func(tx *bbolt.Tx) error { return deleteIn(tx, bucketSettings, name) }); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.c.set.settings, name)
	s.c.set.repaired("setting", name)
	return nil
}

// repaired forgets the damage of a record that was written anew.
func (s *set) repaired(what, key string) {
	prefix := damageOf(what, key)
	s.damaged = slices.DeleteFunc(s.damaged, func(d string) bool { return strings.HasPrefix(d, prefix) })
}

// Allowed are the rules by host, then port.
func (s *Store) Allowed() []AllowRule {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Clone(s.c.set.allowed)
}

// Allow stores a rule; one for the same host and port is replaced. added is
// false if the very rule is there already. The error is BAD_REQUEST for a host
// or port that cannot be one, or one rule too many, or STORE_FAILED.
func (s *Store) Allow(r AllowRule) (added bool, err error) {
	if r.Host == "" || len(r.Host) > MaxAllowHost || !printable(r.Host) {
		return false, refused("host", "%q cannot be a host: 1 to %d printable characters without spaces", fault.Shorten(r.Host, shownID), MaxAllowHost)
	}
	if n, err := strconv.ParseUint(r.Port, 10, 16); r.Port != "" && (err != nil || n == 0 || r.Port[0] == '0') {
		return false, refused("port", "%q is not a port: a number from 1 to 65535", fault.Shorten(r.Port, shownID))
	}
	s.write.Lock()
	defer s.write.Unlock()
	if err := s.ready(); err != nil {
		return false, err
	}
	rules := slices.Clone(s.c.set.allowed)
	i, found := slices.BinarySearchFunc(rules, r, compareRules)
	switch {
	case found && rules[i] == r:
		return false, nil
	case found:
		rules[i] = r
	case len(rules) >= MaxAllowRules:
		return false, refused("host", "there are %d allow rules already", MaxAllowRules)
	default:
		rules = slices.Insert(rules, i, r)
	}
	payload := []byte{0}
	if r.HTTP {
		payload[0] = 1
	}
	if err := s.commitSet(func(tx *bbolt.Tx) error { return putIn(tx, bucketAllow, r.key(), payload) }); err != nil {
		return false, err
	}
	s.setAllowed(rules, r)
	return true, nil
}

// Disallow removes the rule for a host and port, whatever it says about http.
// removed is false if there is none. The error is STORE_FAILED.
func (s *Store) Disallow(r AllowRule) (removed bool, err error) {
	s.write.Lock()
	defer s.write.Unlock()
	if err := s.ready(); err != nil {
		return false, err
	}
	rules := slices.Clone(s.c.set.allowed)
	i, found := slices.BinarySearchFunc(rules, r, compareRules)
	if !found && len(s.c.set.damaged) == 0 {
		return false, nil
	}
	if found {
		rules = slices.Delete(rules, i, i+1)
	}
	if err := s.commitSet(func(tx *bbolt.Tx) error { return deleteIn(tx, bucketAllow, r.key()) }); err != nil {
		return false, err
	}
	s.setAllowed(rules, r)
	return found, nil
}

// commitSet runs one transaction that leaves the wrappers and the revision as
// they are. The caller holds write.
func (s *Store) commitSet(change func(*bbolt.Tx) error) error {
	return s.commit(func(tx *bbolt.Tx) error {
		if err := change(tx); err != nil {
			return err
		}
		return putState(tx, s.c.revision, len(s.c.ids))
	})
}

func (s *Store) setAllowed(rules []AllowRule, changed AllowRule) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.c.set.allowed = rules
	s.c.set.repaired("allow rule", changed.key())
}

func printable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f })
}

func refused(field, format string, args ...any) error {
	return fault.New("BAD_REQUEST", format, args...).With(fault.Field(field))
}

// putIn writes a record of a bucket that may not be there yet.
func putIn(tx *bbolt.Tx, bucket, key string, payload []byte) error {
	b, err := tx.CreateBucketIfNotExists([]byte(bucket))
	if err != nil {
		return err
	}
	return b.Put([]byte(key), seal(bucket, key, payload))
}

func deleteIn(tx *bbolt.Tx, bucket, key string) error {
	b := tx.Bucket([]byte(bucket))
	if b == nil {
		return nil
	}
	return b.Delete([]byte(key))
}
