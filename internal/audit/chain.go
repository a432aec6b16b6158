package audit

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// A head is the end of a chain: the number and the hash of its last row. The
// zero head is that of an empty chain.
type head struct {
	seq  uint64
	hash [sha256.Size]byte
}

// String is "SEQ:HASH" with the hash in hexadecimal.
func (h head) String() string {
	return strconv.FormatUint(h.seq, 10) + ":" + hex.EncodeToString(h.hash[:])
}

// parseHead reads what String writes. The error is BAD_REQUEST.
func parseHead(s string) (head, error) {
	var h head
	bad := fault.New("BAD_REQUEST", "%q is not the head of an audit chain", fault.Shorten(s, 100)).
		With(fault.Field("head"), fault.Hint("A head is a number, a colon and 64 hexadecimal digits, as `hbrestd audit head` prints it."))
	number, hash, found := strings.Cut(strings.TrimSpace(s), ":")
	seq, err := strconv.ParseUint(number, 10, 64)
	if !found || err != nil || len(hash) != 2*sha256.Size {
		return h, bad
	}
	h.seq = seq
	if _, err := hex.Decode(h.hash[:], []byte(hash)); err != nil {
		return h, bad
	}
	return h, nil
}

// chainLabel keeps these hashes apart from any other SHA-256 of the same bytes.
const chainLabel = "hbrestd audit row\x00"

// link is the hash of a row: over the hash of the row before it, its own
// number, its version, the length of its payload and the payload. All but the
// last have a fixed length, so the parts cannot run into each other.
//
// There is no key. A key would have to be on the same machine, readable by the
// same user; what an outsider cannot forge is a head that was noted elsewhere.
func link(prev [sha256.Size]byte, seq uint64, version byte, payload []byte) [sha256.Size]byte {
	b := make([]byte, 0, 512)
	b = append(b, chainLabel...)
	b = append(b, prev[:]...)
	b = binary.BigEndian.AppendUint64(b, seq)
	b = append(b, version)
	b = binary.BigEndian.AppendUint32(b, uint32(len(payload)))
	b = append(b, payload...)
	return sha256.Sum256(b)
}

// next makes the stored row that follows h, and moves h to it.
func (h *head) next(c *content) []byte {
	h.seq++
	row := make([]byte, payloadAt, payloadAt+192)
	binary.BigEndian.PutUint64(row, h.seq)
	row[8] = rowVersion
	row = c.payload(row)
	h.hash = link(h.hash, h.seq, rowVersion, row[payloadAt:])
	copy(row[hashAt:], h.hash[:])
	return row
}

// A stored row taken apart; payload shares memory with it.
type stored struct {
	head
	version byte
	payload []byte
}

// split takes a stored row apart without checking it; ok is false if it is too
// short to be one.
func split(row []byte) (s stored, ok bool) {
	if len(row) < payloadAt {
		return s, false
	}
	s.seq = binary.BigEndian.Uint64(row)
	s.version = row[8]
	s.hash = [sha256.Size]byte(row[hashAt:])
	s.payload = row[payloadAt:]
	return s, true
}

// content reads the payload. The error is errRow, or errNewer.
func (s *stored) content() (content, error) {
	if s.version != rowVersion {
		return content{}, errRow
	}
	return parsePayload(s.payload)
}
