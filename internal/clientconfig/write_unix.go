//go:build !windows

package clientconfig

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/google/renameio/v2"
)

// replaceFile writes a file in one step, with the mode and owner of like, or,
// if that is nil, with mode and the user's own.
func replaceFile(path string, data []byte, like fs.FileInfo, mode fs.FileMode) error {
	o := renameio.WithPermissions(mode)
	if like != nil {
		o = renameio.WithStaticPermissions(like.Mode().Perm())
	}
	f, err := renameio.NewPendingFile(path, renameio.WithTempDir(filepath.Dir(path)), o)
	if err != nil {
		return err
	}
	defer func() { _ = f.Cleanup() }()
	if _, err := f.Write(data); err != nil {
		return err
	}
	if like != nil {
		if err := keepOwner(f.File, like); err != nil {
			return err
		}
	}
	return f.CloseAtomicallyReplace()
}

// keepOwner matters where root edits the file of a user.
func keepOwner(f *os.File, like fs.FileInfo) error {
	want, ok := like.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if have, ok := info.Sys().(*syscall.Stat_t); ok && have.Uid == want.Uid && have.Gid == want.Gid {
		return nil
	}
	return f.Chown(int(want.Uid), int(want.Gid))
}
