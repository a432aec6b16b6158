package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/bbolt"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// The buckets of what wrappers were before. They are made with the first change.
const (
	bucketHistory = "history" // id, a space, and the version in ten digits -> author, time, document
	bucketRemoved = "removed" // id of a wrapper that is not there but has versions -> unix milliseconds
)

// Limits of what is kept. At their largest, the versions of one wrapper are
// 5.25 MiB.
const (
	MaxVersions = 20                  // of one wrapper, a removal counted as one; and the newest by a person besides
	KeepRemoved = 30 * 24 * time.Hour // how long the versions of a removed wrapper are kept
	MaxRemoved  = 1000                // removed wrappers whose versions are kept, the ones removed last
)

// An Author is who made a change.
type Author string

// The authors. Unknown is a version that was saved before versions were kept.
const (
	Unknown Author = ""
	Human   Author = "human"
	Agent   Author = "agent"
)

// An Editor changes wrappers in an author's name. Each change keeps what it made
// as a version, in the same transaction; saving what is stored already keeps
// none.
type Editor struct {
	s      *Store
	author Author
}

// By is the store for the changes of one author.
func (s *Store) By(a Author) Editor { return Editor{s, a} }

// A Version is what a wrapper was after one change.
type Version struct {
	Number  uint64    // from 1; numbers are not used again while the wrapper or its versions are there
	Time    time.Time // UTC, in milliseconds; zero if not known
	Author  Author
	Doc     []byte // normalised document; nil: the change removed the wrapper, or Damaged
	Current bool   // it is the document that is stored now
	Damaged string // why the version cannot be read; "" if it can
}

// Removed reports whether the change took the wrapper away.
func (v Version) Removed() bool { return v.Doc == nil && v.Damaged == "" }

// A RemovedWrapper is not there any more, but its versions are.
type RemovedWrapper struct {
	ID    string
	Time  time.Time // of the removal; zero if not known
	Until time.Time // its versions are kept until then; zero if not known
}

// History is the versions of a wrapper, oldest first; of a removed one too, for
// KeepRemoved. A wrapper that has not been changed since versions are kept has
// one. The error is WRAPPER_NOT_FOUND or STORE_FAILED.
func (s *Store) History(id string) ([]Version, error) {
	s.write.Lock()
	defer s.write.Unlock()
	if err := s.ready(); err != nil {
		return nil, err
	}
	e := s.c.entries[id]
	if e == nil && !s.restorable(id) {
		return nil, s.notFound(id)
	}
	var versions []Version
	err := guard(func() error {
		return s.db.View(func(tx *bbolt.Tx) error {
			for _, r := range kept(tx, id) {
				versions = append(versions, r.version())
			}
			stored := storedDocument(tx, id)
			i := newestWhole(versions)
			if stored != nil && (i < 0 || !bytes.Equal(versions[i].Doc, stored)) {
				// What remember would keep with the next change.
				versions = append(versions, Version{Number: following(versions), Doc: stored})
				i = len(versions) - 1
			}
			if stored != nil {
				versions[i].Current = true
			}
			return nil
		})
	})
	if p := (panicked{}); errors.As(err, &p) {
		s.broken = err // bbolt may hold its own locks for ever
	}
	switch {
	case err != nil:
		return nil, failed(err, "the versions of wrapper %q could not be read from %s", id, s.path)
	case len(versions) == 0 && e == nil:
		return nil, s.notFound(id)
	}
	return versions, nil
}

// VersionOf is one version of a wrapper. The error is WRAPPER_NOT_FOUND,
// VERSION_NOT_FOUND, VERSION_UNREADABLE or STORE_FAILED.
func (s *Store) VersionOf(id string, number uint64) (Version, error) {
	versions, err := s.History(id)
	if err != nil {
		return Version{}, err
	}
	for _, v := range versions {
		if v.Number != number {
			continue
		}
		if v.Damaged != "" {
			return Version{}, fault.New("VERSION_UNREADABLE", "version %d of wrapper %q cannot be read: %s", number, id, v.Damaged).With(fault.Field("version"))
		}
		return v, nil
	}
	have := "it has none"
	if n := len(versions); n > 0 {
		have = fmt.Sprintf("its versions are %d to %d", versions[0].Number, versions[n-1].Number)
	}
	return Version{}, fault.New("VERSION_NOT_FOUND", "wrapper %q has no version %d: %s", id, number, have).With(fault.Field("version"))
}

// RemovedWrappers are those whose versions are still kept, the last one removed
// first.
func (s *Store) RemovedWrappers() []RemovedWrapper {
	s.mu.RLock()
	defer s.mu.RUnlock()
	now := s.now()
	var out []RemovedWrapper
	for id, t := range s.c.removed {
		if tooOld(t, now) {
			continue
		}
		r := RemovedWrapper{ID: id, Time: t}
		if !t.IsZero() {
			r.Until = t.Add(KeepRemoved)
		}
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b RemovedWrapper) int {
		if c := b.Time.Compare(a.Time); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	return out
}

// restorable reports whether the versions of a removed wrapper are still kept.
func (s *Store) restorable(id string) bool {
	t, removed := s.c.removed[id]
	return removed && !tooOld(t, s.now())
}

// tooOld reports whether the versions of a wrapper removed at t are to go. A
// time that could not be read never is: they then go by MaxRemoved alone.
func tooOld(t, now time.Time) bool { return !t.IsZero() && now.Sub(t) >= KeepRemoved }

// A keptRecord is a record of the history bucket.
type keptRecord struct {
	key    string
	number uint64
	record []byte // valid until the transaction writes something
	human  bool   // it seems to be a document by a person; not checked
}

func historyKey(id string, number uint64) string { return fmt.Sprintf("%s %010d", id, number) }

// kept are the records of a wrapper, oldest first. Keys that no version can have
// are damage, and left alone.
func kept(tx *bbolt.Tx, id string) []keptRecord {
	b := tx.Bucket([]byte(bucketHistory))
	if b == nil {
		return nil
	}
	var out []keptRecord
	prefix := []byte(id + " ") // no id has a space
	c := b.Cursor()
	for k, v := c.Seek(prefix); k != nil && bytes.HasPrefix(k, prefix); k, v = c.Next() {
		n, err := strconv.ParseUint(string(k[len(prefix):]), 10, 64)
		if err != nil || historyKey(id, n) != string(k) {
			continue
		}
		human := len(v) > payloadAt+historyHead && authors[v[payloadAt]] == Human
		out = append(out, keptRecord{string(k), n, v, human})
	}
	return out
}

const historyHead = 9 // author and time

// authors are how an author is written in the file.
var authors = map[byte]Author{0: Unknown, 'h': Human, 'a': Agent}

func historyPayload(a Author, t time.Time, doc []byte) []byte {
	var letter byte
	for l, of := range authors {
		if of == a {
			letter = l
		}
	}
	ms := int64(0)
	if !t.IsZero() {
		ms = t.UnixMilli()
	}
	return append(binary.BigEndian.AppendUint64([]byte{letter}, uint64(ms)), doc...)
}

// version makes sense of a record. The document is a copy.
func (r keptRecord) version() Version {
	v := Version{Number: r.number}
	payload, err := unseal(bucketHistory, r.key, r.record)
	if err == nil && len(payload) < historyHead {
		err = errShort
	}
	if err != nil {
		v.Damaged = err.Error()
		return v
	}
	v.Author = authors[payload[0]]
	if ms := int64(binary.BigEndian.Uint64(payload[1:])); ms != 0 {
		v.Time = time.UnixMilli(ms).UTC()
	}
	if doc := payload[historyHead:]; len(doc) > 0 {
		v.Doc = bytes.Clone(doc)
	}
	return v
}

// newestWhole is the index of the newest version that can be read; -1: none can.
func newestWhole(versions []Version) int {
	for i := len(versions) - 1; i >= 0; i-- {
		if versions[i].Damaged == "" {
			return i
		}
	}
	return -1
}

// following is the number of the version after these.
func following(versions []Version) uint64 {
	if len(versions) == 0 {
		return 1
	}
	return versions[len(versions)-1].Number + 1
}

// storedDocument is the document of a wrapper as it is in the file; nil if there
// is none that can be read.
func storedDocument(tx *bbolt.Tx, id string) []byte {
	record := tx.Bucket([]byte(bucketWrappers)).Get([]byte(id))
	doc, err := unseal(bucketWrappers, id, record)
	if err != nil || len(doc) == 0 {
		return nil
	}
	return bytes.Clone(doc)
}

// remember keeps the document that a wrapper is about to get as a version; nil:
// it is about to go. What is stored now and is not a version yet, because an
// earlier hbrestd saved it or its record was lost, is kept first. It is called
// before the wrapper itself is written.
func (by Editor) remember(tx *bbolt.Tx, id string, doc []byte) error {
	b, err := tx.CreateBucketIfNotExists([]byte(bucketHistory))
	if err != nil {
		return err
	}
	records := kept(tx, id)
	var last []byte // before anything is written: then records are not valid any more
	for _, r := range slices.Backward(records) {
		if v := r.version(); v.Damaged == "" {
			last = v.Doc
			break
		}
	}
	add := func(v Version) error {
		v.Number = 1
		if n := len(records); n > 0 {
			v.Number = records[n-1].number + 1
		}
		key := historyKey(id, v.Number)
		records = append(records, keptRecord{key: key, number: v.Number, human: v.Author == Human && v.Doc != nil})
		return b.Put([]byte(key), seal(bucketHistory, key, historyPayload(v.Author, v.Time, v.Doc)))
	}
	if stored := storedDocument(tx, id); stored != nil && !bytes.Equal(stored, last) {
		if err := add(Version{Doc: stored}); err != nil {
			return err
		}
		last = stored
	}
	if !bytes.Equal(last, doc) {
		if err := add(Version{Author: by.author, Time: by.s.now(), Doc: doc}); err != nil {
			return err
		}
	}
	for _, r := range superfluous(records) {
		if err := b.Delete([]byte(r.key)); err != nil {
			return err
		}
	}
	return nil
}

// superfluous are the versions before the last MaxVersions. The newest document
// by a person is not among them: an agent that tries one thing after another
// must not push out what the person had.
func superfluous(records []keptRecord) []keptRecord {
	n := len(records) - MaxVersions
	if n <= 0 {
		return nil
	}
	for i, r := range slices.Backward(records) {
		if r.human && i < n {
			return slices.Delete(slices.Clone(records[:n]), i, i+1)
		}
		if r.human {
			break
		}
	}
	return records[:n]
}

// removedAfter is the list of removed wrappers once the ids of gone are removed
// and those of back are there, and the ids whose versions go with that: they are
// too old, or too many. Memory is changed only after the commit.
func (s *Store) removedAfter(gone, back []string) (next map[string]time.Time, forget []string) {
	now := s.now().UTC().Truncate(time.Millisecond)
	next = map[string]time.Time{}
	for id, t := range s.c.removed {
		if tooOld(t, now) && !slices.Contains(back, id) {
			forget = append(forget, id)
			continue
		}
		next[id] = t
	}
	for _, id := range gone {
		next[id] = now
	}
	for _, id := range back {
		delete(next, id)
	}
	if len(next) > MaxRemoved {
		ids := make([]string, 0, len(next))
		for id := range next {
			ids = append(ids, id)
		}
		slices.SortFunc(ids, func(a, b string) int {
			if c := next[a].Compare(next[b]); c != 0 {
				return c
			}
			return strings.Compare(a, b)
		})
		for _, id := range ids[:len(ids)-MaxRemoved] {
			delete(next, id)
			forget = append(forget, id)
		}
	}
	return next, forget
}

// putRemoved writes what removedAfter found.
func putRemoved(tx *bbolt.Tx, gone, back, forget []string, next map[string]time.Time) error {
	for _, id := range gone {
		if t, still := next[id]; still {
			if err := putIn(tx, bucketRemoved, id, verifiedPayload(t)); err != nil {
				return err
			}
		}
	}
	for _, id := range append(slices.Clone(back), forget...) {
		if err := deleteIn(tx, bucketRemoved, id); err != nil {
			return err
		}
	}
	for _, id := range forget {
		for _, r := range kept(tx, id) {
			if err := deleteIn(tx, bucketHistory, r.key); err != nil {
				return err
			}
		}
	}
	return nil
}

// versionOf is the id in a key of the history bucket; nil: it is no such key.
func versionOf(key []byte) []byte {
	id, number, _ := bytes.Cut(key, []byte(" "))
	if len(number) != 10 || len(bytes.Trim(number, "0123456789")) > 0 || !plainID(string(id)) {
		return nil
	}
	return id
}

// readRemoved makes sense of the bucket of removed wrappers. A wrapper that has
// versions, is not there and is not said to be removed is one of which the rest
// was lost: it counts as removed at an unknown time.
func (r *reading) readRemoved(img *image) {
	for _, p := range img.buckets[bucketRemoved] {
		id := string(p.key)
		if !plainID(id) || r.entries[id] != nil {
			continue
		}
		payload, err := unseal(bucketRemoved, id, p.value)
		if err != nil || len(payload) != 8 {
			r.removed[id] = time.Time{}
			continue
		}
		r.removed[id] = time.UnixMilli(int64(binary.BigEndian.Uint64(payload))).UTC()
	}
	orphans := 0
	for id := range img.versions {
		if _, known := r.removed[id]; !known && r.entries[id] == nil {
			r.removed[id] = time.Time{}
			orphans++
		}
	}
	if orphans > 0 {
		r.faults = append(r.faults, fmt.Sprintf("%d wrappers have earlier versions and are neither there nor removed", orphans))
		img.torn[bucketRemoved] = true
	}
	if img.strange > 0 {
		r.faults = append(r.faults, fmt.Sprintf("%d versions are of no wrapper", img.strange))
		img.torn[bucketHistory] = true
	}
}
