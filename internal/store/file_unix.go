//go:build unix

package store

import (
	"errors"
	"os"
	"strconv"
	"syscall"
	"time"
)

// initialMmapSize is address space, not memory: enough for the store never to
// be mapped again, which would have to wait for readers. 32-bit systems have
// less of it.
const initialMmapSize = 16 << 20 << (strconv.IntSize / 64 * 4) // 256 MiB or 16 MiB

const hasModeBits = true

var errLocked = errors.New("locked by another process")

// lockFile takes the same lock as bbolt does, on a handle of its own, for a
// file that bbolt must not see.
func lockFile(path string, timeout time.Duration) (f *os.File, unlock func(), err error) {
	f, err = os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, nil, err
	}
	for deadline := time.Now().Add(timeout); ; time.Sleep(50 * time.Millisecond) {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return f, func() { _ = f.Close() }, nil
		}
		if err != syscall.EWOULDBLOCK && err != syscall.EINTR {
			break
		}
		if time.Now().After(deadline) {
			err = errLocked
			break
		}
	}
	_ = f.Close()
	return nil, nil, err
}

// releaseLock gives bbolt's lock up. A closed file is no harm.
func releaseLock(f *os.File) { _ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }

// unlockToReplace does nothing: here a file can be replaced while it is locked,
// and whoever waits for the lock finds out (isAt).
func unlockToReplace(func()) {}

// syncFolder makes a new name in a folder last through a power cut.
func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
