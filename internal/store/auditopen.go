package store

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/bbolt"
)

// open opens or makes the file and fills db and file. The caller holds mu, or
// is alone.
func (f *AuditFile) open() error {
	for range openTries {
		info, err := os.Lstat(f.path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			temp, err := buildAudit(f.path, nil)
			if err == nil {
				err = place(temp, f.path)
			}
			if err != nil && !errors.Is(err, errReplaced) {
				return failed(err, "%s could not be created", f.path)
			}
			continue
		case err != nil:
			return failed(err, "%s could not be opened", f.path)
		case !info.Mode().IsRegular():
			return irregular(f.path)
		}
		img, err := loadAudit(f.path, func(pair) error { return nil })
		if err != nil {
			return unreadable(err, f.path)
		}
		if len(img.faults) > 0 {
			said, err := f.replaceDamaged()
			if err != nil {
				return err
			}
			if said != "" {
				f.recovered = said
				f.opt.Log.Error("store: " + said)
			}
			continue
		}
		db, file, err := lock(f.path, img.txid, f.opt.LockTimeout)
		if errors.Is(err, errReplaced) {
			continue
		}
		if err != nil {
			return err
		}
		f.db, f.file = db, file
		return f.measure()
	}
	return failed(errReplaced, "%s keeps being replaced by another program", f.path)
}

// measure finds the size of a file just opened.
func (f *AuditFile) measure() error {
	err := guard(func() error {
		return f.db.View(func(tx *bbolt.Tx) error { f.size.Store(tx.Size()); return nil })
	})
	if err != nil {
		_ = f.release()
		return failed(err, "%s could not be read", f.path)
	}
	return nil
}

// loadAudit reads a file without locking it, checks its structure and hands out
// its rows; they are not in the image. The error is one of reading, the one of
// each, which ends it, or that the file is of a later version. It does without
// bbolt, which may stop or run in circles in a damaged file.
func loadAudit(path string, each func(p pair) error) (*image, error) {
	r, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	info, err := r.Stat()
	if err != nil {
		return nil, err
	}
	strange := 0
	img, err := streamImage(r, info.Size(), func(bucket string, p pair) (bool, error) {
		if bucket != bucketRows {
			return false, nil
		}
		if len(p.key) != 8 || len(p.value) == 0 || !plausible(binary.BigEndian.Uint64(p.key)) {
			strange++
			return true, nil
		}
		return true, each(p)
	})
	if err != nil {
		return nil, err
	}
	if strange > 0 {
		img.faults = append(img.faults, fmt.Sprintf("%d rows have no number or nothing behind it", strange))
	}
	if _, ok := img.buckets[bucketRows]; !ok {
		img.faults = append(img.faults, fmt.Sprintf("bucket %q is missing", bucketRows))
	}
	format, err := img.record(bucketState, keyFormat)
	var newer newerError
	switch {
	case errors.As(err, &newer) || len(format) == 1 && format[0] > fileFormat:
		return nil, errNewerFile
	case err != nil || len(format) != 1:
		img.faults = append(img.faults, "its format record is damaged")
	}
	if state, err := img.record(bucketState, keyState); err != nil || len(state) != 8 {
		img.faults = append(img.faults, "its state record is damaged")
	} else if binary.BigEndian.Uint64(state) != img.txid {
		img.faults = append(img.faults, "its state record is not the last one")
	}
	return img, nil
}

// row is the number and the rest of a row in one.
func (p pair) row() []byte { return slices.Concat(p.key, p.value) }

// plausible reports whether a row can have this number. After one near the end
// of the numbers no other could follow.
func plausible(n uint64) bool { return n > 0 && n < 1<<62 }

// maxGap is ten times the rows of a full file. A row so far behind
// all others has a damaged number, and those to come must not go on from it.
const maxGap = 1 << 20

// inOrder makes rows of what was found in a damaged tree: in rising order, each
// number once.
func inOrder(pairs []pair) [][]byte {
	slices.SortStableFunc(pairs, func(a, b pair) int { return bytes.Compare(a.key, b.key) })
	var rows [][]byte
	for i, p := range pairs {
		if i == 0 || !bytes.Equal(p.key, pairs[i-1].key) {
			rows = append(rows, p.row())
		}
	}
	number := func(i int) uint64 { return binary.BigEndian.Uint64(rows[i]) }
	for i := 1; i < len(rows); i++ {
		if number(i)-number(i-1) > maxGap {
			return rows[:i]
		}
	}
	return rows
}

// buildAudit makes a closed, synced file beside path that holds rows.
func buildAudit(path string, rows [][]byte) (temp string, err error) {
	t, err := os.CreateTemp(filepath.Dir(path), tempPrefix(path)+"*"+tempSuffix) // 0600
	if err != nil {
		return "", err
	}
	temp = t.Name()
	defer func() {
		if err != nil {
			_ = os.Remove(temp)
		}
	}()
	if err := t.Close(); err != nil {
		return "", err
	}
	db, file, err := openBolt(temp, time.Second)
	if err != nil {
		return "", err
	}
	err = guard(func() error {
		return db.Update(func(tx *bbolt.Tx) error {
			for _, name := range []string{bucketRows, bucketState} {
				if _, err := tx.CreateBucket([]byte(name)); err != nil {
					return err
				}
			}
			if err := put(tx, bucketState, keyFormat, []byte{fileFormat}); err != nil {
				return err
			}
			return appendRows(tx, rows)
		})
	})
	if cerr := closeBolt(db, file); err == nil {
		err = cerr
	}
	if err == nil {
		err = syncFile(temp)
	}
	return temp, err
}

// place moves a new file to its name unless there is one (errReplaced). The
// temporary name is gone afterwards in any case.
func place(temp, path string) error {
	defer os.Remove(temp)
	err := os.Link(temp, path) // not Rename: it fails if the name is taken
	switch {
	case errors.Is(err, fs.ErrExist):
		return errReplaced
	case err != nil: // a file system without hard links
		if _, serr := os.Lstat(path); serr == nil {
			return errReplaced
		}
		if err := os.Rename(temp, path); err != nil {
			return err
		}
	}
	return syncFolder(filepath.Dir(path))
}

// replaceDamaged sets a damaged file aside and puts a new one in its place that
// holds every row that can still be read. It says what happened; "" if the file
// turned out to be sound once it was locked.
func (f *AuditFile) replaceDamaged() (said string, err error) {
	locked, unlock, err := lockFile(f.path, f.opt.LockTimeout)
	switch {
	case errors.Is(err, errLocked):
		return "", busy(f.path)
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", failed(err, "%s could not be locked", f.path)
	}
	defer unlock()
	if !isAt(locked, f.path) {
		return "", nil
	}
	var pairs []pair
	img, err := loadAudit(f.path, func(p pair) error { pairs = append(pairs, p); return nil })
	if err != nil {
		return "", unreadable(err, f.path)
	}
	if len(img.faults) == 0 {
		return "", nil
	}
	removeTemps(f.path) // of earlier attempts; with the lock held nobody else is at it
	why, rows := img.faults[0], inOrder(pairs)
	temp, err := buildAudit(f.path, rows)
	if err != nil {
		return "", failed(err, "%s is damaged (%s), and a new one could not be written", f.path, why)
	}
	defer os.Remove(temp)
	kept, err := setAside(f.path, f.opt.Now())
	if err != nil {
		return "", failed(err, "%s is damaged (%s) and could not be set aside", f.path, why)
	}
	unlockToReplace(unlock)
	if err = os.Rename(temp, f.path); err == nil {
		err = syncFolder(filepath.Dir(f.path))
	}
	if err != nil {
		return "", failed(err, "%s is damaged (%s) and could not be replaced", f.path, why)
	}
	return fmt.Sprintf("%s was damaged (%s); it was kept as %s, and a new one was made with the %d rows that could be read",
		f.path, why, kept, len(rows)), nil
}

// Rotate gives the file at hand the name of an older one, starts a new one whose
// first row is first, and removes the oldest file if there are too many. When it
// fails, the file at hand usually stays in use. The error is STORE_FAILED.
func (f *AuditFile) Rotate(first []byte) error {
	f.write.Lock()
	defer f.write.Unlock()
	if err := f.ready(); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	older, err := f.olderName()
	if err != nil {
		return failed(err, "%s could not be read", f.path)
	}
	temp, err := buildAudit(f.path, [][]byte{first})
	if err != nil {
		return failed(err, "a new %s could not be created", f.path)
	}
	defer os.Remove(temp)
	if err := f.release(); err != nil {
		return failed(err, "%s could not be closed", f.path)
	}
	f.turn++
	err = os.Rename(f.path, older)
	if err == nil {
		// Before the new file has the name: a power cut may leave the later of two
		// names without the earlier, and the old file would be under neither.
		err = syncFolder(filepath.Dir(f.path))
	}
	if err == nil {
		// If this fails, open makes an empty file, which has the older ones before it.
		err = place(temp, f.path)
	}
	if oerr := f.open(); oerr != nil {
		return oerr // ready tries again
	}
	if err != nil {
		return failed(err, "%s could not be replaced by a new file", f.path)
	}
	f.prune()
	return nil
}

// olderName is the name that the file at hand gets when a new one begins.
func (f *AuditFile) olderName() (string, error) {
	var first uint64
	err := guard(func() error {
		return f.db.View(func(tx *bbolt.Tx) error {
			k, _ := tx.Bucket([]byte(bucketRows)).Cursor().First()
			if k == nil {
				return errors.New("it is empty")
			}
			first = binary.BigEndian.Uint64(k)
			return nil
		})
	})
	if err != nil {
		return "", err
	}
	// Only a file that came back from elsewhere has the same number as another.
	for i := 1; i < 100; i++ {
		name := olderPath(f.path, first, i)
		if _, err := os.Lstat(name); errors.Is(err, fs.ErrNotExist) {
			return name, nil
		}
	}
	return "", errors.New("there are a hundred older files of the same number")
}

// prune removes the oldest files. One that cannot be removed costs only room.
func (f *AuditFile) prune() {
	older, err := olderFiles(f.path)
	for err == nil && len(older) > f.opt.Keep-1 {
		err = os.Remove(older[0].path)
		older = older[1:]
	}
	if err != nil {
		f.opt.Log.Warn("store: an old file of the audit trail could not be removed", "error", err)
	}
}

// An olderFile is one that was full.
type olderFile struct {
	path  string
	first uint64 // number of its first row
	nth   int
}

// olderPath is audit-00000000000000000001.db for audit.db: the names sort as
// the rows do.
func olderPath(path string, first uint64, nth int) string {
	ext := filepath.Ext(path)
	name := fmt.Sprintf("%s-%020d", strings.TrimSuffix(path, ext), first)
	if nth > 1 {
		name += fmt.Sprintf(".%d", nth)
	}
	return name + ext
}

// olderFiles lists the older files, oldest first.
func olderFiles(path string) ([]olderFile, error) {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	ext := filepath.Ext(path)
	prefix := strings.TrimSuffix(filepath.Base(path), ext) + "-"
	var out []olderFile
	for _, e := range entries {
		rest, begins := strings.CutPrefix(e.Name(), prefix)
		middle, ends := strings.CutSuffix(rest, ext)
		if !begins || !ends || !e.Type().IsRegular() {
			continue
		}
		number, again, numbered := strings.Cut(middle, ".")
		o := olderFile{path: filepath.Join(filepath.Dir(path), e.Name()), nth: 1}
		o.first, err = strconv.ParseUint(number, 10, 64)
		if err == nil && numbered {
			o.nth, err = strconv.Atoi(again)
		}
		if err == nil && len(number) == 20 {
			out = append(out, o)
		}
	}
	slices.SortFunc(out, func(a, b olderFile) int {
		return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(a.nth, b.nth))
	})
	return out, nil
}
