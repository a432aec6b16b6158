package clientconfig

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// BackupPath is where a file is kept as it was before the last change.
func BackupPath(file string) string { return file + ".hbrestd.bak" }

// mayWrite refuses what its owner has closed. A rename would go through all the
// same, which is not what somebody who made a file read-only wants.
func mayWrite(f file) error {
	if f.exists && f.info.Mode().Perm()&0o200 == 0 {
		return refused("%s is read-only, so it was left alone", f.target).With(fault.Hint("Make it writable first; if a program manages your settings, add the entry there."))
	}
	return nil
}

// Apply writes the change and returns the path of the backup, "" if there was
// no file. The file is replaced in one step and keeps its mode and its owner; a
// symbolic link stays and leads to the new text. CLIENT_FILE_CHANGED means that
// somebody else wrote the file since Plan read it: nothing was written. There is
// no lock, because no client would know of it.
func (c Change) Apply() (backup string, err error) {
	if !c.Changes() {
		return "", nil
	}
	now, err := readFile(c.Path)
	if err != nil {
		return "", err
	}
	if now.exists != c.old.exists || now.target != c.Target || !bytes.Equal(now.raw, c.Before) {
		return "", c.changedMeanwhile()
	}
	if err := mayWrite(now); err != nil {
		return "", err
	}
	if c.After == nil {
		switch err := os.Remove(c.Target); {
		case errors.Is(err, fs.ErrNotExist):
			return "", c.changedMeanwhile()
		case err != nil:
			return "", refused("removing %s: %v", c.Target, plain(err)).With(fault.Cause(err))
		}
		return "", nil
	}
	dir, mode := fs.FileMode(0o700), fs.FileMode(0o600)
	if c.scope == Project {
		dir, mode = 0o755, 0o644
	}
	if now.exists {
		backup = BackupPath(c.Target)
		if err := replaceFile(backup, c.Before, now.info, mode); err != nil {
			return "", notWritten(backup, err)
		}
	} else if err := os.MkdirAll(filepath.Dir(c.Target), dir); err != nil {
		return "", notWritten(c.Target, err)
	}
	if err := replaceFile(c.Target, c.After, now.info, mode); err != nil {
		return "", notWritten(c.Target, err)
	}
	return backup, nil
}

func (c Change) changedMeanwhile() error {
	return fault.New("CLIENT_FILE_CHANGED", "%s was changed by another program in this moment", c.Path)
}

func notWritten(path string, err error) error {
	e := refused("writing %s: %v", path, plain(err)).With(fault.Cause(err))
	if errors.Is(err, fs.ErrPermission) {
		e = e.With(fault.Hint("Look at the permissions of %s.", filepath.Dir(path)))
	}
	return e
}
