//go:build unix

package cli

import (
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// foreignOwner reports whether a file is another user's, and whose.
func foreignOwner(info fs.FileInfo) (uid int, foreign bool) {
	if info == nil {
		return 0, false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(st.Uid), int(st.Uid) != os.Geteuid()
}

// freeSpace is the number of bytes that this user can still write in dir.
func freeSpace(dir string) (uint64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return uint64(s.Bavail) * uint64(s.Bsize), nil
}
