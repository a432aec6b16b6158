package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"slices"
)

// This file reads a bbolt file without bbolt. bbolt maps the file into memory
// and trusts it: on a damaged one it panics, faults in goroutines of its own
// where no recover reaches, recurses for ever on a cycle of pages, or hands out
// the next write a page that is in use. So the file is read and checked here
// first, page by page, with every number bounded; bbolt sees it only if nothing
// is wrong. Everything that can still be read of a damaged file is kept, and the
// records' own checksums say what of it is true.
//
// The format is bbolt's version 2, unchanged since 2014: pages with a 16-byte
// head; pages 0 and 1 hold the two root descriptions, of which the newer valid
// one counts; a tree of branch and leaf pages; a list of free pages.

const (
	pageHead    = 16
	elementSize = 16
	metaSize    = 64
	metaSumAt   = 56

	flagBranch   = 0x01
	flagLeaf     = 0x02
	flagFreelist = 0x10

	flagBucket = 0x01 // of a leaf element

	boltMagic   = 0xED0CDAED
	boltVersion = 2

	noFreelist = ^uint64(0)

	maxDepth  = 64 // a tree of 64 levels would fill more than any disk
	maxFaults = 10 // a damaged file can have thousands; the first few say enough
)

// A pair is one key with its value as they are on the page.
type pair struct{ key, value []byte }

// An image is everything that could be read of a file.
type image struct {
	txid    uint64            // of the root description that counts
	buckets map[string][]pair // top-level buckets in key order
	faults  []string          // what is wrong with the file's structure; none if bbolt may have it
	torn    map[string]bool   // with faults: buckets of which something may be missing; "" means any of them
	stale   bool              // with faults: there may have been a later transaction

	versions map[string]bool // ids with a version in the history bucket
	strange  int             // keys of the history bucket that are none
}

// errNewerBolt is a sound file in a later format of bbolt.
var errNewerBolt = errors.New("it is in a later file format than this program knows")

// streamImage reads and checks a whole file. The error is one of reading, or
// errNewerBolt; damage is not an error but a fault of the image. What sink takes
// is not in the image: it may be too much for memory. An error of sink ends the
// reading and is returned; a nil sink takes nothing.
func streamImage(r io.ReaderAt, size int64, sink func(bucket string, p pair) (taken bool, err error)) (*image, error) {
	s := &scan{r: r, size: size, sink: sink, img: &image{buckets: map[string][]pair{}, torn: map[string]bool{}}}
	root, err := s.roots()
	switch {
	case err == nil && root != nil:
		s.walk(root)
	case err == nil:
		s.img.torn[""] = true
	}
	if err == nil {
		err = s.err
	}
	return s.img, err
}

type scan struct {
	r        io.ReaderAt
	size     int64
	pageSize int64
	pages    uint64 // pages that are in use according to the root and present in the file
	used     []bool
	img      *image
	faults   int                                                 // how many there were, those that are not told too
	sink     func(bucket string, p pair) (taken bool, err error) // nil takes nothing
	err      error                                               // the first error of reading; nothing is read after it
}

func (s *scan) fault(format string, args ...any) {
	s.faults++
	if len(s.img.faults) < maxFaults {
		s.img.faults = append(s.img.faults, fmt.Sprintf(format, args...))
	}
}

// read returns n bytes at an offset, nil if they are not all there.
func (s *scan) read(at, n int64) []byte {
	if s.err != nil || at < 0 || n < 0 || at+n > s.size {
		return nil
	}
	b := make([]byte, n)
	if _, err := s.r.ReadAt(b, at); err != nil {
		if !errors.Is(err, io.EOF) { // the file became shorter meanwhile
			s.err = err
		}
		return nil
	}
	return b
}

// A meta is one root description.
type meta struct {
	raw                                 []byte
	version, pageSize                   uint32
	root, freelist, pages, txid, stored uint64
	hasMagic, sumOK, usable             bool
}

func (s *scan) meta(at int64) meta {
	b := s.read(at, pageHead+metaSize)
	if b == nil {
		return meta{}
	}
	b = b[pageHead:]
	u32, u64 := binary.NativeEndian.Uint32, binary.NativeEndian.Uint64
	m := meta{
		raw: b, version: u32(b[4:]), pageSize: u32(b[8:]),
		root: u64(b[16:]), freelist: u64(b[32:]), pages: u64(b[40:]), txid: u64(b[48:]), stored: u64(b[metaSumAt:]),
	}
	m.hasMagic = u32(b) == boltMagic
	m.sumOK = m.sumWith(m.txid) == m.stored
	m.usable = m.hasMagic && m.sumOK && m.version == boltVersion &&
		m.pageSize >= 512 && m.pageSize <= 1<<24 && m.pageSize&(m.pageSize-1) == 0
	return m
}

// sumWith is the checksum that the description would have with another txid.
func (m meta) sumWith(txid uint64) uint64 {
	b := bytes.Clone(m.raw[:metaSumAt])
	binary.NativeEndian.PutUint64(b[48:], txid)
	h := fnv.New64a()
	h.Write(b)
	return h.Sum64()
}

// roots finds the page size and the root description that counts; nil if there
// is none.
func (s *scan) roots() (*meta, error) {
	first := s.meta(0)
	if first.usable {
		s.pageSize = int64(first.pageSize)
	} else { // the second one says it, and stands where it says
		for at := int64(512); at <= 1<<24 && s.pageSize == 0; at *= 2 {
			if m := s.meta(at); m.usable && int64(m.pageSize) == at {
				s.pageSize = at
			}
		}
	}
	if s.pageSize == 0 {
		if first.hasMagic && first.sumOK && first.version > boltVersion {
			return nil, errNewerBolt
		}
		s.fault("neither of the two root pages can be read")
		return nil, nil
	}
	metas := [2]meta{first, s.meta(s.pageSize)}
	for i := range metas { // they take turns; one on the other's page is a page in the wrong place
		metas[i].usable = metas[i].usable && metas[i].txid%2 == uint64(i)
	}
	root, other := &metas[0], &metas[1]
	if !root.usable || other.usable && other.txid > root.txid {
		root, other = other, root
	}
	if !root.usable {
		s.fault("neither of the two root pages can be read")
		return nil, nil
	}
	if !other.usable && !olderThan(*other, root.txid) {
		s.fault("the newest root page cannot be read")
		s.img.stale = true
	}
	return root, nil
}

// olderThan reports whether an unusable root description is surely the one
// before txid, which the next commit overwrites anyway. Descriptions take turns,
// so it is either the one before or the one after; that is read from its own
// txid, unless the damage is in there: then its checksum gives it away.
func olderThan(m meta, txid uint64) bool {
	return m.raw != nil && m.txid == txid-1 && m.sumWith(txid+1) != m.stored
}

func (s *scan) walk(root *meta) {
	s.img.txid = root.txid
	s.pages = root.pages
	if have := uint64(s.size / s.pageSize); have < root.pages {
		s.fault("%d of %d pages are missing at the end", root.pages-have, root.pages)
		s.pages = have
	}
	s.used = make([]bool, s.pages)
	var inner []func()
	before := s.faults
	s.tree(root.root, nil, nil, 0, func(flags uint32, key, value []byte) {
		if flags != flagBucket {
			s.fault("something that is no bucket at the top level")
			return
		}
		inner = append(inner, func() { s.bucket(string(key), value) })
	})
	s.img.torn[""] = s.faults > before
	for _, f := range inner {
		f()
	}
	s.freelist(root.freelist)
}

// bucket reads one top-level bucket; small ones lie inside their parent's page.
func (s *scan) bucket(name string, value []byte) {
	pairs, before := []pair{}, s.faults
	collect := func(flags uint32, key, value []byte) {
		if flags != 0 {
			s.fault("bucket %q: an element of an unknown kind", name)
			return
		}
		if s.sink != nil && s.err == nil {
			taken, err := s.sink(name, pair{key, value})
			if s.err = err; taken {
				return
			}
		}
		pairs = append(pairs, pair{key, value})
	}
	switch {
	case len(value) < pageHead:
		s.fault("bucket %q: too short", name)
	case binary.NativeEndian.Uint64(value) != 0:
		s.tree(binary.NativeEndian.Uint64(value), nil, nil, 0, collect)
	case len(value) < 2*pageHead || binary.NativeEndian.Uint16(value[pageHead+8:]) != flagLeaf:
		s.fault("bucket %q: its page is damaged", name)
	default:
		s.leaf("bucket "+name, value[pageHead:], nil, nil, collect)
	}
	if s.faults > before {
		s.img.torn[name] = true
	}
	s.img.buckets[name] = append(s.img.buckets[name], pairs...)
}

// page returns a page with its overflow, once.
func (s *scan) page(id uint64) (flags uint16, page []byte) {
	if id < 2 || id >= s.pages {
		s.fault("page %d: beyond the end", id)
		return 0, nil
	}
	page = s.read(int64(id)*s.pageSize, s.pageSize)
	if page == nil {
		s.fault("page %d: cannot be read", id)
		return 0, nil
	}
	flags = binary.NativeEndian.Uint16(page[8:])
	overflow := uint64(binary.NativeEndian.Uint32(page[12:]))
	if binary.NativeEndian.Uint64(page) != id || overflow >= s.pages-id {
		s.fault("page %d: its head is damaged", id)
		return 0, nil
	}
	for i := id; i <= id+overflow; i++ {
		if s.used[i] {
			s.fault("page %d: used twice", i)
			return 0, nil
		}
	}
	for i := id; i <= id+overflow; i++ {
		s.used[i] = true
	}
	if overflow == 0 { // as of nearly all
		return flags, page
	}
	if page = s.read(int64(id)*s.pageSize, int64(overflow+1)*s.pageSize); page == nil {
		s.fault("page %d: cannot be read", id)
	}
	return flags, page
}

// tree reads the pages under one page; its keys lie in [low, high), nil being
// without limit. A page that cannot be read costs only what is under it.
func (s *scan) tree(id uint64, low, high []byte, depth int, each func(flags uint32, key, value []byte)) {
	if depth > maxDepth {
		s.fault("page %d: the tree is too deep", id)
		return
	}
	flags, page := s.page(id)
	if page == nil {
		return
	}
	switch flags {
	case flagLeaf:
		s.leaf(fmt.Sprintf("page %d", id), page, low, high, each)
	case flagBranch:
		s.branch(id, page, low, high, depth, each)
	default:
		s.fault("page %d: neither branch nor leaf", id)
	}
}

// A child is a page under a branch, with the first key in it.
type child struct {
	key []byte
	id  uint64
}

// children are those of a branch, in its order.
func (s *scan) children(id uint64, page []byte) []child {
	var children []child
	n := s.elements(fmt.Sprintf("page %d", id), page)
	if n == 0 {
		s.fault("page %d: a branch without children", id)
	}
	for i := range n {
		at := pageHead + i*elementSize
		e := page[at:]
		key := cut(page, int64(at), binary.NativeEndian.Uint32(e), binary.NativeEndian.Uint32(e[4:]))
		if key == nil {
			s.fault("page %d: child %d is damaged", id, i)
			continue
		}
		children = append(children, child{key, binary.NativeEndian.Uint64(e[8:])})
	}
	return children
}

func (s *scan) branch(id uint64, page []byte, low, high []byte, depth int, each func(uint32, []byte, []byte)) {
	children := s.children(id, page)
	last := low
	for i, c := range children {
		s.order(fmt.Sprintf("page %d", id), c.key, last, high, i == 0)
		last = c.key
		next := high
		if i+1 < len(children) {
			next = children[i+1].key
		}
		s.tree(c.id, c.key, next, depth+1, each)
	}
}

func (s *scan) leaf(where string, page []byte, low, high []byte, each func(uint32, []byte, []byte)) {
	last := low
	n := s.elements(where, page)
	if n == 0 && low != nil {
		s.fault("%s: nothing in it", where)
	}
	for i := range n {
		at := pageHead + i*elementSize
		e := page[at:]
		pos, ksize, vsize := binary.NativeEndian.Uint32(e[4:]), binary.NativeEndian.Uint32(e[8:]), binary.NativeEndian.Uint32(e[12:])
		key := cut(page, int64(at), pos, ksize)
		value := cut(page, int64(at)+int64(pos), ksize, vsize)
		if len(key) == 0 || value == nil {
			s.fault("%s: element %d is damaged", where, i)
			continue
		}
		s.order(where, key, last, high, i == 0)
		last = key
		each(binary.NativeEndian.Uint32(e), key, value)
	}
}

// elements is how many elements a page says it has, at most what fits. bbolt
// writes the first key right behind the last element: a number of elements that
// does not agree with it is damaged, and a smaller one would hide the others
// without a trace.
func (s *scan) elements(where string, page []byte) int {
	n := int(binary.NativeEndian.Uint16(page[10:]))
	if fit := (len(page) - pageHead) / elementSize; n > fit {
		s.fault("%s: %d elements where %d fit", where, n, fit)
		return fit
	}
	at := 4 // of the position within an element of a leaf
	if binary.NativeEndian.Uint16(page[8:]) == flagBranch {
		at = 0
	}
	switch {
	case n == 0 && len(page) > pageHead && !zero(page[pageHead:min(len(page), pageHead+elementSize)]):
		s.fault("%s: no elements, and something in it", where)
	case n > 0 && binary.NativeEndian.Uint32(page[pageHead+at:]) != uint32(n*elementSize):
		s.fault("%s: %d elements, and another number in it", where, n)
	}
	return n
}

func zero(b []byte) bool { return len(bytes.Trim(b, "\x00")) == 0 }

// order checks that a key comes after the one before it and before the upper
// limit. The first key of a page must be the very key under which the page is
// known above it: bbolt's own check lets it be larger, but then the next change
// of the page adds a second way to it instead of replacing the first.
func (s *scan) order(where string, key, last, high []byte, first bool) {
	if last != nil {
		if c := bytes.Compare(key, last); first && c != 0 || !first && c <= 0 {
			s.fault("%s: keys are out of order", where)
		}
	}
	if high != nil && bytes.Compare(key, high) >= 0 {
		s.fault("%s: keys are out of order", where)
	}
}

// cut is b[base+pos:][:n] without its spare capacity, nil if that is not inside b.
func cut(b []byte, base int64, pos, n uint32) []byte {
	from := base + int64(pos)
	to := from + int64(n)
	if from > int64(len(b)) || to > int64(len(b)) {
		return nil
	}
	return b[from:to:to]
}

// freelist checks that each page is either used or free. A page that is both
// would be overwritten by the next commit.
func (s *scan) freelist(id uint64) {
	if id == noFreelist {
		s.fault("no list of free pages") // this program always writes one
		return
	}
	flags, page := s.page(id)
	if page == nil {
		return
	}
	if flags != flagFreelist {
		s.fault("page %d: not a list of free pages", id)
		return
	}
	clean := s.faults == 0
	at, n := uint64(pageHead), uint64(binary.NativeEndian.Uint16(page[10:]))
	if n == 0xFFFF { // then the first entry is the count
		n = binary.NativeEndian.Uint64(page[at:])
		at += 8
	}
	if n > (uint64(len(page))-at)/8 {
		s.fault("page %d: a list of free pages that is too long", id)
		return
	}
	free := make([]bool, s.pages)
	for i := range n {
		p := binary.NativeEndian.Uint64(page[at+8*i:])
		if p < 2 || p >= s.pages || free[p] || s.used[p] {
			s.fault("page %d: free page %d is not free", id, p)
			continue
		}
		free[p] = true
	}
	for p := uint64(2); p < s.pages; p++ {
		if !s.used[p] && !free[p] {
			s.fault("page %d: neither used nor free", p)
			if clean { // an older page at the top of a tree leads to an older tree
				s.img.torn[""] = true
			}
		}
	}
}

// rightNames finds buckets whose name was damaged. A record's checksum covers
// its bucket's name, so that it tells where it belongs. A bucket of a later
// version of this program has records that are whole under its own name.
func (img *image) rightNames() {
	for name, pairs := range maps.Clone(img.buckets) {
		if slices.Contains(bucketsKnown, name) || !slices.ContainsFunc(pairs, func(p pair) bool { return !img.belongs(name, p) }) {
			continue
		}
		img.faults = append(img.faults, fmt.Sprintf("bucket %q: its records are not of a bucket of this name", name))
		right := slices.IndexFunc(bucketsKnown, func(b string) bool {
			_, taken := img.buckets[b]
			return !taken && slices.ContainsFunc(pairs, func(p pair) bool { return img.belongs(b, p) })
		})
		if right < 0 {
			img.torn[""] = true
			continue
		}
		delete(img.buckets, name)
		img.buckets[bucketsKnown[right]] = pairs
	}
}

// belongs reports whether a record is whole in a bucket of a name.
func (img *image) belongs(bucket string, p pair) bool {
	_, err := unseal(bucket, string(p.key), p.value)
	var newer newerError
	return err == nil || errors.As(err, &newer)
}
