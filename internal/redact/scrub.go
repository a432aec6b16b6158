package redact

import (
	"bytes"
	"encoding/binary"
	"slices"
	"sort"
)

// MinSecret is the length in bytes of the shortest value a [Scrubber] looks for.
// Shorter ones would wreck honest data, and are refused where credentials are
// entered.
const MinSecret = 8

// maxViews bounds how many layers of escapes are undone while looking: an
// escape of an escape of an escape is the deepest that any gateway in the middle
// was seen to produce.
const maxViews = 3

// A Scrubber takes known secret values out of text in the spellings in which
// servers, gateways and libraries give back what they were sent: as they are;
// escaped for a URL, JSON, HTML or a program's source, whichever characters the
// encoder chose; in hex; in Base64 of both alphabets at any offset; two of these
// on top of each other; and any of them with white space in between, as a MIME
// line break.
//
// It is for accidents. Whoever holds a value can always write it in a way that
// nobody looks for: reversed, or half of it. The binding to hosts is the wall.
//
// A Scrubber may be used by several goroutines at once, but not while [Scrubber.Wipe] runs.
type Scrubber struct {
	patterns [][]byte
	starts   map[uint64][]int // first MinSecret bytes of a pattern -> its numbers
	filter   []uint64         // bits: hashes of those first bytes
	awkward  bool             // a value has a character that may begin an escape
	wiped    bool
}

// filterBits is the size of the filter as a power of two: 4 KiB, which stays in
// the first-level cache, with about one false alarm in a hundred bytes for the
// patterns of three secrets.
const filterBits = 15

// NewScrubber prepares to find the given values. Those shorter than [MinSecret]
// bytes are left out. The values are copied; [Scrubber.Wipe] clears the copies.
func NewScrubber(values ...[]byte) *Scrubber {
	s := &Scrubber{starts: map[uint64][]int{}, filter: make([]uint64, 1<<filterBits/64)}
	for _, v := range values {
		if len(v) < MinSecret {
			continue
		}
		s.awkward = s.awkward || bytes.ContainsAny(v, `%\&`)
		for _, p := range spellings(v) {
			s.add(p)
		}
	}
	return s
}

// add takes over p, and what p becomes when escapes in it are undone and white
// space is dropped: the same happens to the text.
func (s *Scrubber) add(p []byte) {
	for range maxViews + 1 {
		next, changed := unescape.read(p)
		if tight, ok := squeeze.read(p); ok {
			s.insert(tight)
		}
		if !s.insert(p) || !changed {
			return
		}
		p = next
	}
}

// insert takes over one pattern; false: it was too short or known already.
func (s *Scrubber) insert(p []byte) bool {
	if len(p) < MinSecret {
		clear(p)
		return false
	}
	key := binary.LittleEndian.Uint64(p)
	if slices.ContainsFunc(s.starts[key], func(i int) bool { return bytes.Equal(s.patterns[i], p) }) {
		clear(p)
		return false
	}
	s.starts[key] = append(s.starts[key], len(s.patterns))
	s.patterns = append(s.patterns, p)
	h := hash(key)
	s.filter[h/64] |= 1 << (h % 64)
	return true
}

func hash(key uint64) uint64 { return key * 0x9E3779B97F4A7C15 >> (64 - filterBits) }

// A span is a part of a text: from its first byte to the one after its last.
type span struct{ from, to int }

// Bytes returns b with every spelling of every value replaced by [Mask]. It
// never changes b; without a finding it returns b itself.
func (s *Scrubber) Bytes(b []byte) []byte {
	if s.wiped && len(b) > 0 { // what can no longer be checked is not shown
		return []byte(Mask)
	}
	found := s.find(b)
	if len(found) == 0 {
		return b
	}
	out := make([]byte, 0, len(b))
	at := 0
	for _, f := range found {
		out = append(append(out, b[at:f.from]...), Mask...)
		at = f.to
	}
	return append(out, b[at:]...)
}

// String is [Scrubber.Bytes] for a string.
func (s *Scrubber) String(text string) string {
	if !s.wiped && len(text) < MinSecret {
		return text
	}
	b := []byte(text)
	if out := s.Bytes(b); len(out) != len(b) || !bytes.Equal(out, b) {
		return string(out)
	}
	return text
}

// Wipe clears every copy of the values. Afterwards the scrubber masks everything
// it is given: forgetting what to look for must not read as finding nothing.
func (s *Scrubber) Wipe() {
	for _, p := range s.patterns {
		clear(p)
	}
	clear(s.starts)
	clear(s.filter)
	s.patterns, s.wiped = nil, true
}

// find looks at b as it is and at what it becomes when escapes are undone, layer
// by layer, and when white space is dropped. The spans are in the order of the
// text and do not overlap.
func (s *Scrubber) find(b []byte) []span {
	if len(s.patterns) == 0 || len(b) < MinSecret {
		return nil
	}
	var found []span
	var walk []*view // the way from b to what is looked at
	look := func(text []byte) {
		if hits := s.scan(text); len(hits) > 0 {
			found = append(found, origins(b, walk, hits)...)
		}
	}
	for text := b; ; walk = append(walk, &unescape) {
		look(text)
		next, changed := unescape.read(text)
		last := !changed || len(walk) == maxViews
		// A value without escape characters reads the same in all layers, so
		// that the last one is enough.
		if tight, ok := squeeze.read(text); ok && (last || s.awkward) {
			walk = append(walk, &squeeze)
			look(tight)
			walk = walk[:len(walk)-1]
		}
		if last {
			return merge(found)
		}
		text = next
	}
}

// scan finds the patterns in one view of the text.
func (s *Scrubber) scan(b []byte) (found []span) {
	filter := (*[1 << filterBits / 64]uint64)(s.filter)
	for i := 0; i+MinSecret <= len(b); i++ {
		key := binary.LittleEndian.Uint64(b[i:])
		if h := hash(key); filter[h/64]&(1<<(h%64)) == 0 {
			continue
		}
		for _, n := range s.starts[key] {
			if p := s.patterns[n]; bytes.HasPrefix(b[i:], p) {
				found = append(found, span{i, i + len(p)})
			}
		}
	}
	return found
}

// origins turns spans of what walk made of b into spans of b. Only a finding
// pays for walking a second time.
func origins(b []byte, walk []*view, hits []span) []span {
	text := b
	var at []span // for each byte of text: the part of b it came from
	for _, v := range walk {
		var from []span
		text, from = v.trace(text)
		for i, f := range from {
			if at != nil {
				from[i] = span{at[f.from].from, at[f.to-1].to}
			}
		}
		at = from
	}
	if at == nil {
		return hits
	}
	for i, h := range hits {
		hits[i] = span{at[h.from].from, at[h.to-1].to}
	}
	return hits
}

// merge sorts spans and joins those that touch.
func merge(spans []span) []span {
	sort.Slice(spans, func(i, j int) bool { return spans[i].from < spans[j].from })
	out := spans[:0]
	for _, s := range spans {
		if n := len(out); n > 0 && s.from <= out[n-1].to {
			out[n-1].to = max(out[n-1].to, s.to)
			continue
		}
		out = append(out, s)
	}
	return out
}
