package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"
)

// A step brings store.db from one format to the next, inside a transaction of
// the whole upgrade.
type step func(*bbolt.Tx) error

// formatSteps are the steps up to fileFormat: the first leads from format 1 to
// 2. A bucket that is new and may be missing needs none.
func formatSteps() []step { return nil }

// format is the layout's version of a sound file; 0: it cannot be told.
func (img *image) format() int {
	f, err := img.record(bucketState, keyFormat)
	if err != nil || len(f) != 1 {
		return 0
	}
	return int(f[0])
}

// migrate brings the sound file at path, which was read at the transaction txid,
// from a format to a later one: steps[0] is the first that it needs. The file as
// it was is kept beside it; its name is returned. All steps are one transaction,
// so that a crash or a step that fails leaves the old format, which works with
// the old program. errReplaced: another daemon was at it meanwhile.
func migrate(path string, txid uint64, from int, steps []step, o Options) (kept string, err error) {
	db, file, err := lock(path, txid, o.LockTimeout)
	if err != nil {
		return "", err
	}
	defer func() {
		if cerr := closeBolt(db, file); err == nil && cerr != nil {
			err = failed(cerr, "%s could not be closed", path)
		}
	}()
	kept = fmt.Sprintf("%s.format-%d-%s", path, from, o.Now().UTC().Format("20060102T150405Z"))
	err = copyFile(path, kept)
	if err == nil {
		err = syncFolder(filepath.Dir(kept))
	}
	if err != nil {
		if !errors.Is(err, fs.ErrExist) {
			_ = os.Remove(kept) // a part of it helps nobody
		}
		return "", failed(err, "%s is of an older version, and could not be kept as %s before it is brought up to date", path, kept)
	}
	err = guard(func() error {
		return db.Update(func(tx *bbolt.Tx) error {
			for _, s := range steps {
				if err := s(tx); err != nil {
					return err
				}
			}
			state, err := unseal(bucketState, keyState, tx.Bucket([]byte(bucketState)).Get([]byte(keyState)))
			if err != nil {
				return err
			}
			if len(state) != 24 {
				return errShort
			}
			if err := put(tx, bucketState, keyFormat, []byte{byte(from + len(steps))}); err != nil {
				return err
			}
			return putState(tx, binary.BigEndian.Uint64(state), int(binary.BigEndian.Uint64(state[8:])))
		})
	})
	if err != nil {
		return kept, failed(err, "%s could not be brought up to date; it is as it was, and also kept as %s", path, kept)
	}
	o.Log.Info("store: brought up to date", "format", from+len(steps), "before", kept)
	return kept, nil
}
