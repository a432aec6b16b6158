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

// readPrivate reads the first readSize bytes of a regular file that is this
// user's alone. It follows no link in the last place, and does not wait for a
// writer should someone have put a pipe there. The file is read before each
// call, so these are system calls and no os.File, which the runtime would also
// watch and clean up.
func readPrivate(path string) ([]byte, error) {
	fd, err := retried(func() (int, error) {
		return syscall.Open(path, syscall.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	})
	if err != nil {
		if errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.EMLINK) {
			// Both also mean "too many links before the last place": ask.
			if info, lerr := os.Lstat(path); lerr == nil && info.Mode()&fs.ModeSymlink != 0 {
				return nil, errSymlink
			}
		}
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer func() { _ = syscall.Close(fd) }() // it was only read
	var st syscall.Stat_t
	if _, err := retried(func() (int, error) { return 0, syscall.Fstat(fd, &st) }); err != nil {
		return nil, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	if st.Mode&syscall.S_IFMT != syscall.S_IFREG {
		return nil, errNotRegular
	}
	if err := ownersAlone(st.Uid, fs.FileMode(st.Mode).Perm(), "file", "600"); err != nil {
		return nil, err
	}
	data := make([]byte, readSize)
	for n := 0; ; {
		m, err := retried(func() (int, error) { return syscall.Read(fd, data[n:]) })
		if err != nil {
			return nil, &fs.PathError{Op: "read", Path: path, Err: err}
		}
		if n += m; m == 0 || n == len(data) {
			return data[:n], nil
		}
	}
}

// retried does it again as long as a signal comes between.
func retried(do func() (int, error)) (int, error) {
	for {
		n, err := do()
		if !errors.Is(err, syscall.EINTR) {
			return n, err
		}
	}
}

// private refuses what belongs to someone else or is open to others.
func private(info fs.FileInfo, what, mode string) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fmt.Errorf("the owner of the %s is not known", what)
	}
	return ownersAlone(st.Uid, info.Mode().Perm(), what, mode)
}

func ownersAlone(uid uint32, perm fs.FileMode, what, mode string) error {
	if me := os.Geteuid(); int(uid) != me {
		return fmt.Errorf("the %s belongs to user %d, not to this user (%d)", what, uid, me)
	}
	if perm&0o077 != 0 {
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
