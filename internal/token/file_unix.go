//go:build unix

package token

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// A rename replaces the old file whoever has it open.
const renameTries = 1

// openFile opens without following a link in the last place and without
// waiting for a writer should someone have put a pipe there.
func openFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.EMLINK) {
		// Both also mean "too many links before the last place": ask.
		if info, lerr := os.Lstat(path); lerr == nil && info.Mode()&fs.ModeSymlink != 0 {
			return nil, errSymlink
		}
	}
	return f, err
}

// private refuses what belongs to someone else or is open to others.
func private(info fs.FileInfo, what, mode string) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fmt.Errorf("the owner of the %s is not known", what)
	}
	if me := os.Geteuid(); int(st.Uid) != me {
		return fmt.Errorf("the %s belongs to user %d, not to this user (%d)", what, st.Uid, me)
	}
	if perm := info.Mode().Perm(); perm&0o077 != 0 {
		return &tooOpen{what, perm, mode}
	}
	return nil
}

// syncFolder makes the rename last through a power cut.
func syncFolder(root *os.Root) error {
	d, err := root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
