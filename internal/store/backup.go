package store

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"go.etcd.io/bbolt"
)

// Snapshot writes the store as it is now into a new file at path, mode 0600,
// what successful runs left included. Changes go on meanwhile: bbolt keeps the
// pages of this moment until they are written. Because it could use none of them
// again until then, and a map that must grow would wait, path belongs on the
// disk of the store: from there the file may be taken to a slow one. It is not
// synced. The error is STORE_FAILED, and then there is no file.
func (s *Store) Snapshot(path string) error {
	s.write.Lock()
	err := s.ready()
	if err == nil {
		err = s.flush()
	}
	var tx *bbolt.Tx
	if err == nil {
		tx, err = begin(s.db)
	}
	s.write.Unlock()
	if err == nil {
		err = writeSnapshot(tx, path)
	}
	if err != nil {
		return failed(err, "%s could not be copied", s.path)
	}
	return nil
}

// Snapshot writes the audit trail as it is now into a folder on the same disk:
// the file at hand as Store.Snapshot does, under its own name, and the older
// files, which never change again, as second names of the same files, or copies
// where the disk has no second names. The error is STORE_FAILED.
func (f *AuditFile) Snapshot(dir string) error {
	older, err := f.snapshotNow(filepath.Join(dir, filepath.Base(f.path)))
	if err == nil {
		err = takeOlder(older, dir)
	}
	if err != nil {
		return failed(err, "%s could not be copied", f.path)
	}
	return nil
}

// snapshotNow copies the file at hand and lists those before it. No new file is
// begun meanwhile, so that the two fit.
func (f *AuditFile) snapshotNow(path string) ([]olderFile, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.db == nil {
		return nil, errors.New("it is not open")
	}
	older, err := olderFiles(f.path)
	if err != nil {
		return nil, err
	}
	tx, err := begin(f.db)
	if err != nil {
		return nil, err
	}
	return older, writeSnapshot(tx, path)
}

func begin(db *bbolt.DB) (tx *bbolt.Tx, err error) {
	err = guard(func() error {
		var err error
		tx, err = db.Begin(false)
		return err
	})
	return tx, err
}

// writeSnapshot writes what a transaction sees into a new file, and ends it.
func writeSnapshot(tx *bbolt.Tx, path string) error {
	defer func() { _ = guard(tx.Rollback) }() // it has changed nothing
	out, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = guard(func() error {
		if _, err := tx.WriteTo(out); err != nil {
			return err
		}
		return orderRoots(out, uint64(tx.ID()), tx.DB().Info().PageSize)
	})
	if cerr := out.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		_ = os.Remove(path)
	}
	return err
}

// orderRoots puts the two root pages of a snapshot where bbolt would have written
// them: the even transaction first. WriteTo has the last one first always, and a
// file with one of them on the other's page counts as damaged (see scan.roots).
func orderRoots(f *os.File, txid uint64, pageSize int) error {
	if txid%2 == 0 {
		return nil
	}
	both := make([]byte, 2*pageSize)
	if _, err := f.ReadAt(both, 0); err != nil {
		return err
	}
	swapped := slices.Concat(both[pageSize:], both[:pageSize])
	for i := range uint64(2) { // a page begins with its number
		binary.NativeEndian.PutUint64(swapped[int(i)*pageSize:], i)
	}
	_, err := f.WriteAt(swapped, 0)
	return err
}

func takeOlder(older []olderFile, dir string) error {
	for i, o := range older {
		to := filepath.Join(dir, filepath.Base(o.path))
		err := os.Link(o.path, to)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			err = copyFile(o.path, to)
		}
		if errors.Is(err, fs.ErrNotExist) && i == 0 {
			continue // its time has come meanwhile
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// CopyClosed is Snapshot of a store and of an audit trail that nobody has open. The
// caller holds the store (Hold). A trail that is not there is left out. The error
// is STORE_FAILED: the trail is open, or one of them cannot be read or written.
func CopyClosed(storePath, auditPath, dir string) error {
	if err := copyFile(storePath, filepath.Join(dir, filepath.Base(storePath))); err != nil {
		return failed(err, "%s could not be copied", storePath)
	}
	release, err := Hold(auditPath)
	if err == nil {
		defer release()
		if err := copyFile(auditPath, filepath.Join(dir, filepath.Base(auditPath))); err != nil {
			return failed(err, "%s could not be copied", auditPath)
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	older, err := olderFiles(auditPath)
	if err == nil {
		err = takeOlder(older, dir)
	}
	if err != nil {
		return failed(err, "%s could not be copied", auditPath)
	}
	return nil
}

// Hold keeps every daemon from opening the file at path until release is called.
// The error is STORE_FAILED: a daemon has it open, or there is none
// (fs.ErrNotExist too).
func Hold(path string) (release func(), err error) {
	f, unlock, err := lockFile(path, 0)
	switch {
	case errors.Is(err, errLocked):
		return nil, busy(path)
	case err != nil:
		return nil, failed(err, "%s could not be opened", path)
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		unlock()
		return nil, irregular(path)
	}
	if !isAt(f, path) { // replaced after it was opened, by whoever had it locked
		unlock()
		return nil, busy(path)
	}
	return unlock, nil
}

// SyncFolder makes new names in a folder last through a power cut, where the
// system can do that for folders.
func SyncFolder(dir string) error { return syncFolder(dir) }

// A Copy is what a copy of a store.db holds.
type Copy struct {
	Revision uint64
	Wrappers int // damaged ones included
	Sealed   int // credentials
}

// CheckCopy reads all of a copy of a store.db, and changes nothing. The error is
// STORE_FAILED: it cannot be read, is damaged or is of a later version. A wrapper
// whose record was damaged in the store is no fault of the copy.
func CheckCopy(path string) (Copy, error) {
	r, img, err := load(path)
	if err != nil {
		return Copy{}, unreadable(err, path)
	}
	if len(r.faults) > 0 {
		return Copy{}, failed(nil, "%s is damaged (%s)", path, r.faults[0])
	}
	return Copy{Revision: r.revision, Wrappers: len(r.ids), Sealed: len(img.buckets[bucketSealed])}, nil
}

// OlderAudit lists the files that came before the audit trail at path, oldest
// first.
func OlderAudit(path string) ([]string, error) {
	older, err := olderFiles(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, failed(err, "the older files of %s could not be listed", path)
	}
	var out []string
	for _, o := range older {
		out = append(out, o.path)
	}
	return out, nil
}

// LastRow is the number of the newest row in the file at path, which nobody has
// open; 0 if there is none, or none can be read.
func LastRow(path string) uint64 {
	rows, whole, err := lastRows(path, 1)
	if err != nil || !whole || len(rows) == 0 {
		return 0
	}
	return binary.BigEndian.Uint64(rows[0].key)
}
