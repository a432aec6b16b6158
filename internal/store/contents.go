package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"go.etcd.io/bbolt"

	"github.com/hyperbolic-gateway/hb-rest/internal/wrapper"
)

// The buckets of store.db. Each value is a record (record.go).
const (
	bucketWrappers = "wrappers" // id -> document; empty if the document was lost
	bucketNames    = "names"    // id -> digest of the wrapper's record, then its tool name or nothing
	bucketVerified = "verified" // id -> unix milliseconds
	bucketState    = "state"    // the keys below
)

// The keys of bucketState.
const (
	keyFormat = "format" // one byte: version of the whole file's layout
	keyState  = "state"  // revision, number of wrappers, and the transaction that wrote this: 8 bytes each
)

const fileFormat = 1

var bucketNamesAll = []string{bucketWrappers, bucketNames, bucketVerified, bucketState}

// bucketsKnown are all buckets that this version may write.
var bucketsKnown = append(slices.Clone(bucketNamesAll), bucketSettings, bucketAllow, bucketPriority, bucketSealed,
	bucketApproval, bucketTrust, bucketFields, bucketHistory, bucketRemoved, bucketOrigins)

// errNewerFile is a sound file whose layout a later version made.
var errNewerFile = errors.New("it was written by a newer hbrestd")

// contents is what the file says, checked, in memory.
type contents struct {
	revision uint64
	entries  map[string]*entry
	ids      []string             // keys of entries, sorted
	folded   map[string]string    // id in lower case -> id
	tools    map[string]string    // tool name in lower case -> id
	removed  map[string]time.Time // wrappers that are not there but have versions -> when they were removed
	changed  map[string]uint64    // wrappers changed or removed after floor -> the revision that did it last
	floor    uint64               // what led to this revision is not known: it is the first one of this reading, or changed was full
	set      set
}

// An entry is one wrapper. Its document and its damage never change (a new
// version is a new entry); tool, verified and fields are guarded by Store.mu.
type entry struct {
	id       string
	tool     string
	verified time.Time
	fields   []FieldNote // replaced, never changed
	newer    bool        // damaged means here: made by a later version, not to be overwritten

	parse   sync.Once // wrappers are parsed when they are first asked for, so that opening is quick
	doc     []byte    // until then
	wrapper *wrapper.Wrapper
	damaged string // why there is no wrapper; set from the start for damage of the record
}

func newContents() *contents {
	return &contents{
		revision: 1, entries: map[string]*entry{}, folded: map[string]string{}, tools: map[string]string{},
		removed: map[string]time.Time{}, changed: map[string]uint64{},
		set: set{settings: map[string]string{}, priority: map[string]int{}},
	}
}

// put adds or replaces an entry.
func (c *contents) put(e *entry) {
	if c.entries[e.id] == nil { // a tool name, once given, stays: it need not be taken back here
		i, _ := slices.BinarySearch(c.ids, e.id)
		c.ids = slices.Insert(c.ids, i, e.id)
	}
	c.entries[e.id] = e
	c.folded[strings.ToLower(e.id)] = e.id
	if e.tool != "" {
		c.tools[strings.ToLower(e.tool)] = e.id
	}
}

func (c *contents) remove(id string) {
	e := c.entries[id]
	delete(c.entries, id)
	if c.folded[strings.ToLower(id)] == id {
		delete(c.folded, strings.ToLower(id))
	}
	if e.tool != "" {
		delete(c.tools, strings.ToLower(e.tool))
	}
	if i, found := slices.BinarySearch(c.ids, id); found {
		c.ids = slices.Delete(c.ids, i, i+1)
	}
}

// toolFor chooses the tool name of a wrapper that has none.
func (c *contents) toolFor(id string) string {
	return wrapper.ToolName(id, func(name string) bool {
		owner, taken := c.tools[strings.ToLower(name)]
		return taken && owner != id
	})
}

// get returns the wrapper, or why there is none.
func (e *entry) get() (*wrapper.Wrapper, string) {
	e.parse.Do(func() {
		if e.damaged != "" || e.wrapper != nil {
			return
		}
		e.wrapper, e.damaged = parseStored(e.id, e.doc)
		e.doc = nil
	})
	return e.wrapper, e.damaged
}

// parseStored parses a document whose record is whole. It may still be of no
// use: rules can have become stricter since it was saved.
func parseStored(id string, doc []byte) (w *wrapper.Wrapper, damaged string) {
	defer func() {
		if p := recover(); p != nil { // a bug of the parser must not take the other wrappers along
			w, damaged = nil, fmt.Sprintf("its saved document cannot be read: %v", p)
		}
	}()
	w, report := wrapper.Parse(doc)
	switch {
	case len(report.Problems) > 0:
		p := report.Problems[0]
		return nil, fmt.Sprintf("its saved document is no longer valid: %s: %s", p.Field, p.Message)
	case w == nil:
		return nil, "its saved document is no longer valid"
	case w.ID != id:
		return nil, fmt.Sprintf("its saved document has the id %q", w.ID)
	}
	return w, ""
}

// A reading is an image made sense of.
type reading struct {
	*contents
	records map[string][]byte   // of the wrappers bucket, by id, as they are in the file
	digests map[string][32]byte // of the names bucket, by id
	faults  []string            // why the file must not be used as it is; none if it may
	stale   bool                // with faults: this may be an earlier state than the last
	lost    []string            // ids whose document is not in the file any more
	missing int64               // wrappers of which not even the id is there
	unnamed []string            // ids whose entry in the names bucket is missing or damaged
	junk    []string            // keys of the names bucket that are damaged
}

// read makes sense of an image. The error is errNewerFile.
func (img *image) read() (*reading, error) {
	img.rightNames()
	r := &reading{
		contents: newContents(), faults: slices.Clone(img.faults), stale: img.stale,
		records: map[string][]byte{}, digests: map[string][32]byte{},
	}
	for _, name := range bucketNamesAll {
		if _, ok := img.buckets[name]; !ok {
			r.faults = append(r.faults, fmt.Sprintf("bucket %q is missing", name))
		}
	}
	count, whole, err := r.state(img)
	if err != nil {
		return nil, err
	}
	names := r.names(img)
	// With every name there, a wrapper without one is a leftover of a deleted
	// wrapper that damage to the tree has brought back.
	r.wrappers(img, names, whole && uint64(len(names)) >= count)
	r.verified(img)
	r.fields(img)
	r.readRemoved(img)
	r.set = readSet(img)
	r.floor = r.revision
	if missing := int64(count) - int64(len(r.entries)); whole && missing > 0 {
		r.missing = missing
		r.faults = append(r.faults, fmt.Sprintf("%d wrappers are missing, and their ids with them", missing))
	}
	return r, nil
}

// state reads revision and count; whole is false if they cannot be known.
func (r *reading) state(img *image) (count uint64, whole bool, err error) {
	format, err := img.record(bucketState, keyFormat)
	var newer newerError
	if errors.As(err, &newer) || len(format) == 1 && format[0] > fileFormat {
		return 0, false, errNewerFile
	}
	state, serr := img.record(bucketState, keyState)
	if err != nil || len(format) != 1 || serr != nil || len(state) != 24 {
		r.faults, r.stale = append(r.faults, "its state record is damaged"), true
		return 0, false, nil
	}
	r.revision = binary.BigEndian.Uint64(state)
	if binary.BigEndian.Uint64(state[16:]) != img.txid {
		// Every transaction writes this record. An older one means that the
		// page at the top of the tree is an older page.
		r.faults, r.stale = append(r.faults, "its state record is not the last one"), true
	}
	return binary.BigEndian.Uint64(state[8:]), true, nil
}

// putState is part of every transaction.
func putState(tx *bbolt.Tx, revision uint64, count int) error {
	b := binary.BigEndian.AppendUint64(nil, revision)
	b = binary.BigEndian.AppendUint64(b, uint64(count))
	b = binary.BigEndian.AppendUint64(b, uint64(tx.ID()))
	return put(tx, bucketState, keyState, b)
}

// record finds and checks one record of a small bucket.
func (img *image) record(bucket, key string) ([]byte, error) {
	for _, p := range img.buckets[bucket] {
		if string(p.key) == key {
			return unseal(bucket, key, p.value)
		}
	}
	return nil, errShort
}

// A name is an entry of the names bucket.
type name struct {
	digest [32]byte // of the wrapper's last saved record
	tool   string
}

func namePayload(digest [32]byte, tool string) []byte { return append(digest[:], tool...) }

func (r *reading) names(img *image) map[string]name {
	names := map[string]name{}
	for _, p := range img.buckets[bucketNames] {
		id := string(p.key)
		payload, err := unseal(bucketNames, id, p.value)
		if err != nil || len(payload) < 32 {
			r.junk = append(r.junk, id) // rewritten if a wrapper has this id, else removed
			continue
		}
		names[id] = name{[32]byte(payload), string(payload[32:])}
	}
	return names
}

func (r *reading) wrappers(img *image, names map[string]name, namesComplete bool) {
	for _, p := range img.buckets[bucketWrappers] {
		id := string(p.key)
		n, named := names[id]
		doc, err := unseal(bucketWrappers, id, p.value)
		var newer newerError
		e := &entry{id: id, tool: n.tool}
		switch {
		case err != nil && !errors.As(err, &newer):
			if !named && !plainID(id) {
				continue // a damaged key; the wrapper it belonged to is in names
			}
			e.damaged = "its record is damaged: " + err.Error()
		case !named && namesComplete:
			continue
		case named && n.digest != digest(p.value):
			e.damaged = "its record is not the version that was saved last"
		case err != nil:
			e.damaged, e.newer = "its record cannot be used: "+err.Error(), true
		case len(doc) == 0:
			e.damaged = "its document was lost when store.db was damaged"
		default:
			e.doc = doc
		}
		if old := r.entries[id]; old != nil && old.damaged == "" {
			continue // twice in a damaged tree: the good one counts
		}
		if named {
			r.digests[id] = n.digest
		} else if r.entries[id] == nil {
			r.unnamed = append(r.unnamed, id)
		}
		r.records[id] = p.value
		r.put(e)
	}
	for _, id := range slices.Sorted(maps.Keys(names)) {
		if r.entries[id] != nil {
			continue
		}
		r.lost = append(r.lost, id)
		r.put(&entry{id: id, tool: names[id].tool, damaged: "its document was lost when store.db was damaged"})
	}
	if n := len(r.lost); n > 0 {
		r.faults = append(r.faults, fmt.Sprintf("%d wrappers have no document", n))
	}
}

// rename gives the wrappers without a names entry a new one: the digest of what
// is there, and a tool name if the document asks for one.
func (r *reading) rename() {
	for _, id := range r.unnamed {
		e := r.entries[id]
		if w, _ := e.get(); w != nil && w.ExposeAsTool {
			e.tool = r.toolFor(id)
			r.put(e)
		}
		if rec := r.records[id]; len(rec) >= payloadAt {
			r.digests[id] = digest(rec)
		}
	}
}

func (r *reading) verified(img *image) {
	for _, p := range img.buckets[bucketVerified] {
		payload, err := unseal(bucketVerified, string(p.key), p.value)
		if e := r.entries[string(p.key)]; e != nil && err == nil && len(payload) == 8 {
			e.verified = time.UnixMilli(int64(binary.BigEndian.Uint64(payload))).UTC()
		}
	}
}

func verifiedPayload(t time.Time) []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(t.UnixMilli()))
}

// plainID reports whether s looks like a wrapper's id (decision 14).
func plainID(s string) bool {
	if s == "" || len(s) > 100 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		alnum := c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
		if !alnum && (i == 0 || c != '.' && c != '_' && c != '-') {
			return false
		}
	}
	return true
}
