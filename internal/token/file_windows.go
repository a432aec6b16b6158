package token

import (
	"io"
	"io/fs"
	"os"
)

// A reader that has the old file open keeps it from being replaced; it is
// closed again within microseconds.
const renameTries = 50

// readPrivate reads the first readSize bytes of a regular file. It refuses a
// link or another reparse point in the last place; the folder's access list
// shuts others out.
func readPrivate(path string) ([]byte, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		return nil, errSymlink
	}
	if !info.Mode().IsRegular() {
		return nil, errNotRegular
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errNotRegular
	}
	return io.ReadAll(io.LimitReader(f, readSize))
}

// private checks nothing: mode bits say nothing here, and the user's local
// application folder carries an access list that shuts others out.
func private(fs.FileInfo, string, string) error { return nil }

// syncFolder does nothing: folders cannot be synced here, NTFS journals them.
func syncFolder(*os.Root) error { return nil }
