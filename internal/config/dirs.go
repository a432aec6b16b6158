package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// EnsureDirs makes the daemon's home and wrap folder with mode 0700, or checks
// those that are there. See EnsureDir for what is refused.
func EnsureDirs(d Daemon) error {
	for _, dir := range []string{d.Home, d.WrapDir} {
		if err := EnsureDir(dir); err != nil {
			return err
		}
	}
	return nil
}

// EnsureDir makes the folder at path with mode 0700, whatever the umask, and
// its missing parents likewise. A folder that is there already is never
// changed: it must be a folder, not a symbolic link, belong to this user and be
// closed to everyone else, or the error says which of these fails and the
// command that mends it. It is refused and not silently tightened, because
// others may have put something into it, or rely on reading it.
func EnsureDir(path string) error {
	if !filepath.IsAbs(path) {
		return fmt.Errorf("the folder %q is not an absolute path", path)
	}
	err := os.Mkdir(path, 0o700)
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(filepath.Dir(path), 0o700); err == nil {
			err = os.Mkdir(path, 0o700)
		}
	}
	switch {
	case err == nil:
		if err := os.Chmod(path, 0o700); err != nil { // the umask may have taken bits away
			return fmt.Errorf("making the folder %s: %w", path, err)
		}
	case !errors.Is(err, fs.ErrExist):
		return fmt.Errorf("making the folder: %w; make it yourself, or set HB_WRAP_HOME to one that this user can make", err)
	}
	info, err := os.Lstat(path)
	if err != nil {
		return fmt.Errorf("checking the folder: %w", err)
	}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return fmt.Errorf("%s is a symbolic link; set HB_WRAP_HOME to the folder that it leads to", path)
	case !info.IsDir():
		return fmt.Errorf("%s is not a folder", path)
	}
	return checkPrivate(path, info)
}
