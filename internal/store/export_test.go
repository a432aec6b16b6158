package store

import (
	"testing"

	"go.etcd.io/bbolt"
)

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
		return tx.Bucket([]byte(bucket)).Put([]byte(key), record)
	})
	if err != nil {
		t.Fatal(err)
	}
}
