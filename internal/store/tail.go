package store

import (
	"encoding/binary"
	"os"
	"slices"
)

// lastRows reads the last n rows, in their order, of an audit file that nobody
// writes any more. It reads few pages, and without bbolt, as streamImage does;
// whole is false if something of them is wrong. The error is one of reading.
func lastRows(path string, n int) (rows []pair, whole bool, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, false, err
	}
	s := &scan{r: f, size: info.Size(), img: &image{}}
	root, err := s.roots()
	if err != nil || root == nil {
		return nil, false, nil // a later format, or damage: streamImage says which
	}
	s.pages = min(root.pages, uint64(s.size/s.pageSize))
	s.used = make([]bool, s.pages)
	var top []byte
	s.tree(root.root, nil, nil, 0, func(flags uint32, key, value []byte) {
		if flags == flagBucket && string(key) == bucketRows {
			top = value
		}
	})
	var out []pair // the last one first
	switch {
	case len(top) < pageHead:
		return nil, false, s.err
	case binary.NativeEndian.Uint64(top) != 0:
		s.backwards(binary.NativeEndian.Uint64(top), 0, n, &out)
	case len(top) < 2*pageHead || binary.NativeEndian.Uint16(top[pageHead+8:]) != flagLeaf:
		return nil, false, nil
	default: // a small bucket lies inside its parent's page
		s.leafBackwards(top[pageHead:], &out)
	}
	if s.err != nil || len(s.img.faults) > 0 {
		return nil, false, s.err
	}
	out = out[:min(len(out), n)]
	slices.Reverse(out)
	return out, true, nil
}

// backwards adds the pairs under a page, the last one first, until there are n.
func (s *scan) backwards(id uint64, depth, n int, out *[]pair) {
	if depth > maxDepth {
		s.fault("page %d: the tree is too deep", id)
		return
	}
	flags, page := s.page(id)
	switch {
	case page == nil:
	case flags == flagLeaf:
		s.leafBackwards(page, out)
	case flags == flagBranch:
		for _, c := range slices.Backward(s.children(id, page)) {
			if len(*out) >= n {
				return
			}
			s.backwards(c.id, depth+1, n, out)
		}
	default:
		s.fault("page %d: neither branch nor leaf", id)
	}
}

func (s *scan) leafBackwards(page []byte, out *[]pair) {
	from := len(*out)
	s.leaf("a page", page, nil, nil, func(flags uint32, key, value []byte) {
		if flags != 0 || len(key) != 8 || len(value) == 0 {
			s.fault("something that is no row")
			return
		}
		*out = append(*out, pair{key, value})
	})
	slices.Reverse((*out)[from:])
}
