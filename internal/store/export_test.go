package store

import (
	"os"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/hyperbolic-gateway/hb-rest/internal/wrapper"
)

// Build makes a store of many wrappers in one transaction.
func Build(tb testing.TB, path string, ws []*wrapper.Wrapper) {
	tb.Helper()
	c, records, digests := newContents(), map[string][]byte{}, map[string][32]byte{}
	for _, w := range ws {
		c.put(&entry{id: w.ID, wrapper: w})
		records[w.ID] = seal(bucketWrappers, w.ID, w.Document())
		digests[w.ID] = digest(records[w.ID])
	}
	temp, err := build(path, c, records, digests)
	if err != nil {
		tb.Fatal(err)
	}
	if err := os.Rename(temp, path); err != nil {
		tb.Fatal(err)
	}
}

// RewriteRecord replaces a record of a closed file by a whole one of any
// version, as another version of the program would write it.
func RewriteRecord(t *testing.T, path, bucket, key string, version byte, payload []byte) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	s := sum(version, bucket, key, payload)
	record := append(append([]byte{version}, s[:]...), payload...)
	err = db.Update(func(tx *bbolt.Tx) error {
		if bucket == bucketWrappers {
			if err := put(tx, bucketNames, key, namePayload(digest(record), "")); err != nil {
				return err
			}
		}
		r, _, err := load(path)
		if err != nil {
			return err
		}
		if err := putState(tx, r.revision, len(r.ids)); err != nil {
			return err
		}
		return tx.Bucket([]byte(bucket)).Put([]byte(key), record)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Unsynced makes changes quick for a test that makes many and is not about the disk.
func Unsynced(t *testing.T, s *Store) {
	t.Helper()
	s.db.NoSync = true
}

// edit changes records of a closed file behind the store's back.
func edit(t *testing.T, path string, change func(*bbolt.Tx) error) {
	t.Helper()
	r, _, err := load(path)
	if err != nil {
		t.Fatal(err)
	}
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.Update(func(tx *bbolt.Tx) error {
		if err := change(tx); err != nil {
			return err
		}
		return putState(tx, r.revision, len(r.ids))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// BreakRecord flips one bit of a record's last byte.
func BreakRecord(t *testing.T, path, bucket, key string) {
	t.Helper()
	edit(t, path, func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte(bucket))
		v := append([]byte{}, b.Get([]byte(key))...)
		v[len(v)-1] ^= 1
		return b.Put([]byte(key), v)
	})
}

// DeleteRecord takes a record out.
func DeleteRecord(t *testing.T, path, bucket, key string) {
	t.Helper()
	edit(t, path, func(tx *bbolt.Tx) error { return tx.Bucket([]byte(bucket)).Delete([]byte(key)) })
}
