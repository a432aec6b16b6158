package store

import (
	"crypto/sha256"
	"errors"
	"fmt"
)

// Every value in the file is a record:
//
//	byte 0      version of the payload's meaning
//	bytes 1-32  SHA-256 over version, bucket, key and payload
//	bytes 33-   payload
//
// bbolt keeps no checksum of its data, and one flipped bit in three was read
// back as different data without an error when this was measured. The sum
// covers bucket and key, so a record that turns up under another key is found
// too. It is SHA-256 rather than a CRC because the sum also serves as the
// identity of a document's last saved version (see the names bucket), where two
// versions must never look alike, and because it costs 1 ms per megabyte. It
// protects against damage, not against a person who writes into the file.
//
// This layout is the same in every version; only the payload may change. That
// is what lets an older program tell "newer" from "damaged".
const (
	recordVersion = 1
	sumAt         = 1
	payloadAt     = sumAt + sha256.Size
)

// sumLabel keeps these sums apart from any other SHA-256 of the same bytes.
const sumLabel = "hbrestd store record\x00"

var (
	errChecksum = errors.New("its checksum does not match")
	errShort    = errors.New("it is too short")
)

// A newerError is a record or a file that a later version of the program wrote.
type newerError struct{ version byte }

func (e newerError) Error() string {
	return fmt.Sprintf("it was written by a newer hbrestd (format %d, this one knows %d)", e.version, recordVersion)
}

func sum(version byte, bucket, key string, payload []byte) [sha256.Size]byte {
	// No bucket name and no key holds a zero byte, so the parts cannot run
	// into each other.
	h := sha256.New()
	h.Write([]byte(sumLabel))
	h.Write([]byte{version})
	h.Write([]byte(bucket))
	h.Write([]byte{0})
	h.Write([]byte(key))
	h.Write([]byte{0})
	h.Write(payload)
	return [sha256.Size]byte(h.Sum(nil))
}

// seal makes a record.
func seal(bucket, key string, payload []byte) []byte {
	out := make([]byte, 0, payloadAt+len(payload))
	out = append(out, recordVersion)
	s := sum(recordVersion, bucket, key, payload)
	out = append(out, s[:]...)
	return append(out, payload...)
}

// unseal checks a record and returns its payload, which shares memory with it.
// The error is errShort, errChecksum or a newerError.
func unseal(bucket, key string, record []byte) ([]byte, error) {
	if len(record) < payloadAt {
		return nil, errShort
	}
	payload := record[payloadAt:]
	if sum(record[0], bucket, key, payload) != digest(record) {
		return nil, errChecksum
	}
	if record[0] != recordVersion {
		return nil, newerError{record[0]}
	}
	return payload, nil
}

// digest is the sum that a record carries; only for records that unseal knows
// to be long enough.
func digest(record []byte) [sha256.Size]byte {
	return [sha256.Size]byte(record[sumAt:payloadAt])
}
