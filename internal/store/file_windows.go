package store

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/windows"
)

// bbolt makes the file as long as this on Windows.
const initialMmapSize = 16 << 20

// Mode bits say nothing here; the folder's access list shuts others out.
const hasModeBits = false

var errLocked = errors.New("locked by another process")

// lockFile takes the same lock as bbolt does (one byte at the far end), on a
// handle of its own, for a file that bbolt must not see.
func lockFile(path string, timeout time.Duration) (f *os.File, unlock func(), err error) {
	f, err = os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, nil, err
	}
	for deadline := time.Now().Add(timeout); ; time.Sleep(50 * time.Millisecond) {
		err = windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_FAIL_IMMEDIATELY|windows.LOCKFILE_EXCLUSIVE_LOCK,
			0, 1, 0, &windows.Overlapped{Offset: ^uint32(0), OffsetHigh: ^uint32(0)})
		if err == nil {
			return f, func() { _ = f.Close() }, nil
		}
		if err != windows.ERROR_LOCK_VIOLATION {
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
func releaseLock(f *os.File) {
	_ = windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, &windows.Overlapped{Offset: ^uint32(0), OffsetHigh: ^uint32(0)})
}

// unlockToReplace closes the handle: an open file cannot be replaced here.
func unlockToReplace(unlock func()) { unlock() }

// syncFolder does nothing: folders cannot be synced here, NTFS journals them.
func syncFolder(string) error { return nil }
