package store

import (
	"testing"

	"go.etcd.io/bbolt"
)

// RewriteFormat gives a closed file of the audit trail another format number.
func RewriteFormat(t *testing.T, path string, format byte) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.Update(func(tx *bbolt.Tx) error { return put(tx, bucketState, keyFormat, []byte{format}) })
	if err != nil {
		t.Fatal(err)
	}
}
