package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// How often opening starts again because the file was replaced under it. Once
// is normal when two daemons start at the same moment.
const openTries = 10

// growth is how much bbolt makes the file longer at a time. Its own default of
// 16 MiB would make every copy of a small store that large.
const growth = 256 << 10

// errReplaced means that the file at the path is not the one that was opened.
var errReplaced = errors.New("the file was replaced meanwhile")

// opened is a file that was checked, locked and read.
type opened struct {
	db        *bbolt.DB
	file      *os.File // bbolt's own handle; it holds the lock
	contents  *contents
	recovered string // what Recovered says
}

// open opens or creates the file at path.
func open(path string, o Options) (*opened, error) {
	recovered := ""
	for range openTries {
		info, err := os.Lstat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			err = create(path)
			if err != nil && !errors.Is(err, errReplaced) {
				return nil, failed(err, "%s could not be created", path)
			}
			continue
		case err != nil:
			return nil, failed(err, "%s could not be opened", path)
		case !info.Mode().IsRegular():
			return nil, irregular(path)
		}
		r, img, err := load(path)
		if err != nil {
			return nil, unreadable(err, path)
		}
		if len(r.faults) > 0 {
			said, err := replaceDamaged(path, o)
			if err != nil {
				return nil, err
			}
			if said != "" {
				recovered = said
			}
			continue
		}
		if from := img.format(); from > 0 && from < fileFormat {
			if _, err := migrate(path, img.txid, from, formatSteps()[from-1:], o); err != nil && !errors.Is(err, errReplaced) {
				return nil, err
			}
			continue
		}
		db, file, err := lock(path, img.txid, o.LockTimeout)
		if errors.Is(err, errReplaced) {
			continue
		}
		if err != nil {
			return nil, err
		}
		repair(db, r, o)
		return &opened{db, file, r.contents, recovered}, nil
	}
	return nil, failed(errReplaced, "%s keeps being replaced by another program", path)
}

// load reads and checks the file without locking it. Seen while another daemon
// writes, a sound file can look damaged; nothing is done about damage before it
// was seen again under the lock.
func load(path string) (*reading, *image, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	return loadFrom(f, false)
}

// loadFrom is load of an open file. Versions are in the image only if they are
// asked for: otherwise they are read when somebody wants them, not kept in memory.
func loadFrom(f *os.File, versions bool) (*reading, *image, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	ids, strange := map[string]bool{}, 0
	img, err := streamImage(f, info.Size(), func(bucket string, p pair) (bool, error) {
		if bucket != bucketHistory {
			return false, nil
		}
		if id := versionOf(p.key); id == nil {
			strange++
		} else if !ids[string(id)] {
			ids[string(id)] = true
		}
		return !versions, nil
	})
	if err != nil {
		return nil, nil, err
	}
	img.versions, img.strange = ids, strange
	r, err := img.read()
	return r, img, err
}

// lock hands the checked file to bbolt, which locks it. txid is the state that
// was checked: if it is not the state that bbolt sees, another daemon wrote in
// between.
func lock(path string, txid uint64, timeout time.Duration) (db *bbolt.DB, file *os.File, err error) {
	db, file, err = openBolt(path, timeout)
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, nil, busy(path)
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, errReplaced
	case err != nil:
		return nil, nil, failed(err, "%s could not be opened", path)
	}
	var now int
	err = guard(func() error {
		return db.View(func(tx *bbolt.Tx) error { now = tx.ID(); return nil })
	})
	if err == nil && (!isAt(file, path) || uint64(now) != txid) {
		err = errReplaced
	}
	if err == nil {
		err = closeToOthers(file)
	}
	if err != nil {
		_ = closeBolt(db, file) // the first error is the one that says why
		if !errors.Is(err, errReplaced) {
			err = failed(err, "%s could not be opened", path)
		}
		return nil, nil, err
	}
	return db, file, nil
}

// openBolt opens an existing file. The handle is caught on its way, so that it
// can be closed, and with it the lock given up, even after a panic.
func openBolt(path string, timeout time.Duration) (db *bbolt.DB, file *os.File, err error) {
	err = guard(func() error {
		var err error
		db, err = bbolt.Open(path, 0o600, &bbolt.Options{
			Timeout:         timeout,
			FreelistType:    bbolt.FreelistMapType,
			InitialMmapSize: initialMmapSize,
			OpenFile: func(name string, flag int, mode os.FileMode) (*os.File, error) {
				var err error
				file, err = os.OpenFile(name, flag&^os.O_CREATE, mode)
				return file, err
			},
		})
		return err
	})
	if err != nil {
		if file != nil {
			abandon(file) // bbolt has closed it already, unless it panicked
		}
		return nil, nil, err
	}
	db.AllocSize = growth
	return db, file, nil
}

// closeBolt closes the database, or at least the file.
func closeBolt(db *bbolt.DB, file *os.File) error {
	err := guard(db.Close)
	if err != nil {
		abandon(file)
	}
	return err
}

// abandon gives up a file whose database cannot be closed any more. The lock is
// released by itself, because the mapping, which stays, keeps it alive beyond
// the handle.
func abandon(file *os.File) {
	releaseLock(file)
	_ = file.Close()
}

// guard turns a panic, and a fault of the mapped memory, into an error. Both
// are possible when the disk fails or the file is cut short by another program
// while it is open.
func guard(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = panicked{fmt.Sprint(p)}
		}
	}()
	return f()
}

// panicked is a panic inside bbolt. Its locks may still be held.
type panicked struct{ text string }

func (p panicked) Error() string { return "the database stopped: " + p.text }

// isAt reports whether the open file is the one at the path.
func isAt(file *os.File, path string) bool {
	a, err := file.Stat()
	if err != nil {
		return false
	}
	b, err := os.Lstat(path)
	return err == nil && os.SameFile(a, b)
}

// create makes an empty store. It is built beside its place and then moved
// there in one step, because a crash during bbolt's own first writes leaves a
// file that it cannot open. errReplaced: there is a file now, another daemon
// was quicker.
func create(path string) error {
	temp, err := build(path, newContents(), nil, nil)
	if err != nil {
		return err
	}
	defer os.Remove(temp)
	// Link, not Rename: it fails if the name is taken.
	err = os.Link(temp, path)
	switch {
	case errors.Is(err, fs.ErrExist):
		return errReplaced
	case err != nil: // a file system without hard links
		if _, serr := os.Lstat(path); serr == nil {
			return errReplaced
		}
		if err = os.Rename(temp, path); err != nil {
			return err
		}
	}
	return syncFolder(filepath.Dir(path))
}

// build makes a closed, synced file beside path that holds c, and returns its
// name. records are wrappers' records to take over as they are, and digests
// their entries in the names bucket.
func build(path string, c *contents, records map[string][]byte, digests map[string][32]byte, more ...more) (temp string, err error) {
	f, err := os.CreateTemp(filepath.Dir(path), tempPrefix(path)+"*"+tempSuffix) // 0600
	if err != nil {
		return "", err
	}
	temp = f.Name()
	defer func() {
		if err != nil {
			_ = os.Remove(temp)
		}
	}()
	if err := f.Close(); err != nil {
		return "", err
	}
	db, file, err := openBolt(temp, time.Second)
	if err != nil {
		return "", err
	}
	err = guard(func() error {
		return db.Update(func(tx *bbolt.Tx) error { return fill(tx, c, records, digests, more) })
	})
	if cerr := closeBolt(db, file); err == nil {
		err = cerr
	}
	if err == nil {
		err = syncFile(temp)
	}
	return temp, err
}

// more is a record of a bucket that this version does not know.
type more struct {
	bucket string
	pair   pair
}

func fill(tx *bbolt.Tx, c *contents, records map[string][]byte, digests map[string][32]byte, extra []more) error {
	for _, name := range bucketNamesAll {
		if _, err := tx.CreateBucketIfNotExists([]byte(name)); err != nil {
			return err
		}
	}
	if err := put(tx, bucketState, keyFormat, []byte{fileFormat}); err != nil {
		return err
	}
	if err := putState(tx, c.revision, len(c.ids)); err != nil {
		return err
	}
	for _, id := range c.ids {
		e, record, sum := c.entries[id], records[id], digests[id]
		if record == nil { // lost: from now on the file itself says so
			record = seal(bucketWrappers, id, nil)
			sum = digest(record)
		}
		if err := tx.Bucket([]byte(bucketWrappers)).Put([]byte(id), record); err != nil {
			return err
		}
		if err := put(tx, bucketNames, id, namePayload(sum, e.tool)); err != nil {
			return err
		}
		if !e.verified.IsZero() {
			if err := put(tx, bucketVerified, id, verifiedPayload(e.verified)); err != nil {
				return err
			}
		}
	}
	for _, m := range extra {
		b, err := tx.CreateBucketIfNotExists([]byte(m.bucket))
		if err != nil {
			return err
		}
		if err := b.Put(m.pair.key, m.pair.value); err != nil {
			return err
		}
	}
	return nil
}

func put(tx *bbolt.Tx, bucket, key string, payload []byte) error {
	return tx.Bucket([]byte(bucket)).Put([]byte(key), seal(bucket, key, payload))
}

// repair writes the names entries that a sound file lacks or has damaged. A
// failure is no reason not to serve: the names are in memory, and the next
// start tries again.
func repair(db *bbolt.DB, r *reading, o Options) {
	if len(r.unnamed) == 0 && len(r.junk) == 0 {
		return
	}
	r.rename()
	err := guard(func() error {
		return db.Update(func(tx *bbolt.Tx) error {
			for _, key := range r.junk {
				if err := tx.Bucket([]byte(bucketNames)).Delete([]byte(key)); err != nil {
					return err
				}
			}
			for _, id := range r.unnamed {
				if err := put(tx, bucketNames, id, namePayload(r.digests[id], r.entries[id].tool)); err != nil {
					return err
				}
			}
			return putState(tx, r.revision, len(r.ids))
		})
	})
	o.Log.Info("store: damaged tool names written again", "count", len(r.unnamed), "error", err)
}

func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// closeToOthers takes the group's and the others' rights away. Sealed
// credentials are kept in this file too.
func closeToOthers(f *os.File) error {
	info, err := f.Stat()
	if err != nil || info.Mode().Perm()&0o077 == 0 || !hasModeBits {
		return err
	}
	return f.Chmod(0o600)
}

// failed is STORE_FAILED with a reason that a person can act on.
func failed(cause error, format string, args ...any) error {
	msg := fmt.Sprintf(format, args...)
	if cause != nil {
		reason := cause.Error()
		var pe *fs.PathError
		if errors.As(cause, &pe) {
			reason = pe.Err.Error() // the path is in the message already
		}
		msg += ": " + reason
	}
	return fault.New("STORE_FAILED", "%s", msg).With(fault.Cause(cause))
}

func irregular(path string) error {
	return fault.New("STORE_FAILED", "%s is not a regular file", path).
		With(fault.Hint("hbrestd has not made that. Move it away, and start the daemon again."))
}

func busy(path string) error {
	return fault.New("STORE_FAILED", "another hbrestd of this user has %s open", path).
		With(fault.Hint("One hbrestd per user is enough: `hbrestd status` shows the one that runs. Stop it before you start another."))
}

func unreadable(err error, path string) error {
	if errors.Is(err, errNewerFile) || errors.Is(err, errNewerBolt) {
		return fault.New("STORE_FAILED", "%s cannot be used: %s; it was left as it is", path, err).
			With(fault.Cause(err), fault.Retryable(false), fault.Hint("Install the newer hbrestd again, or move the file away to start with an empty store."))
	}
	return failed(err, "%s could not be read", path)
}
