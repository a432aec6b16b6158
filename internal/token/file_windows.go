package token

import (
	"io/fs"
	"os"
)

// A reader that has the old file open keeps it from being replaced; it is
// closed again within microseconds.
const renameTries = 50

// openFile refuses a link or another reparse point in the last place.
func openFile(path string) (*os.File, error) {
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
	return os.Open(path)
}

// private checks nothing: mode bits say nothing here, and the user's local
// application folder carries an access list that shuts others out.
func private(fs.FileInfo, string, string) error { return nil }

// syncFolder does nothing: folders cannot be synced here, NTFS journals them.
func syncFolder(*os.Root) error { return nil }
