package token

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// shownPath bounds a path inside a message, so that the reason before it is
// never cut away (fault.MaxMessage).
const shownPath = 160

// Write replaces the token file at path in one step: a reader sees the old
// token or the new one, never a part. The file has mode 0600 whatever the
// umask, and a symbolic link at path is replaced, not followed. The folder
// must exist, belong to this user and be closed to others.
//
// The new file has one fixed temporary name beside the old, so that a crash
// leaves at most one behind and the next Write removes it; only the holder of
// the store's lock writes, so two never meet.
func Write(path, tok string) (err error) {
	if !wellFormed(tok) {
		return fmt.Errorf("writing the token file: not a token of %d lower-case hex digits", Length)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("writing the token file %s: %w", path, err)
		}
	}()
	dir, base := filepath.Split(path)
	if dir == "" {
		dir = "."
	}
	// From here on every name is resolved inside the folder that was checked.
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	info, err := root.Stat(".")
	if err != nil {
		return err
	}
	if err := private(info, "folder", "700"); err != nil {
		return err
	}
	if old, err := root.Lstat(base); err == nil && old.IsDir() {
		return errors.New("there is a folder in its place")
	}

	temp := "." + base + ".new"
	if err := root.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := writeNew(root, temp, tok+"\n"); err != nil {
		return errors.Join(err, ignoreMissing(root.Remove(temp)))
	}
	if err := rename(root, temp, base); err != nil {
		return errors.Join(err, ignoreMissing(root.Remove(temp)))
	}
	return syncFolder(root)
}

// writeNew makes one file that did not exist and brings it to the disk.
func writeNew(root *os.Root, name, content string) error {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err = f.Chmod(0o600); err == nil { // the umask may have taken bits away
		if _, err = io.WriteString(f, content); err == nil {
			err = f.Sync()
		}
	}
	return errors.Join(err, f.Close())
}

// rename tries again for a moment where a reader that has the old file open
// can stand in the way (renameTries is 1 where it cannot).
func rename(root *os.Root, from, to string) error {
	var err error
	for range renameTries {
		if err = root.Rename(from, to); err == nil {
			return nil
		}
		if renameTries > 1 {
			time.Sleep(10 * time.Millisecond)
		}
	}
	return err
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Read returns the token in the file at path. The file must be a regular file,
// not a symbolic link, belong to this user, be closed to everyone else, and
// hold exactly one token with at most one newline after it. Where files have no
// owner and mode bits (Windows) those two checks are the folder's access list's
// job. The error is TOKEN_FILE_MISSING; its message says what is wrong and with
// which path.
func Read(path string) (string, error) {
	data, err := readPrivate(path)
	if err != nil {
		return "", unusable(path, err)
	}
	tok := string(data)
	if len(tok) == Length+1 && tok[Length] == '\n' {
		tok = tok[:Length]
	}
	switch {
	case len(data) == 0:
		return "", unusable(path, errors.New("it is empty"))
	case !wellFormed(tok):
		return "", unusable(path, fmt.Errorf("it does not hold exactly %d lower-case hex digits", Length))
	}
	return tok, nil
}

// readSize is two bytes more than allowed, enough to see that there are too many.
const readSize = Length + 3

var (
	errNotRegular = errors.New("it is not a regular file")
	errSymlink    = errors.New("it is a symbolic link, which is never followed")
)

// A tooOpen file or folder lets other users in.
type tooOpen struct {
	what string // file or folder
	perm fs.FileMode
	mode string // what it should be, as chmod takes it
}

func (e *tooOpen) Error() string {
	return fmt.Sprintf("the mode of the %s is %04o, which lets other users in; make it %s with chmod", e.what, e.perm, e.mode)
}

// unusable says in one sentence why the file at path gives no token. The
// content of the file is never part of it.
func unusable(path string, why error) error {
	shown := path
	if r := []rune(path); len(r) > shownPath {
		shown = "…" + string(r[len(r)-shownPath:])
	}
	if errors.Is(why, fs.ErrNotExist) {
		return fault.New("TOKEN_FILE_MISSING", "there is no token file at %s", shown).With(fault.Cause(why))
	}
	reason := why.Error()
	var pe *fs.PathError
	if errors.As(why, &pe) {
		reason = pe.Err.Error() // without the path a second time
	}
	e := fault.New("TOKEN_FILE_MISSING", "the token file %s cannot be used: %s", shown, reason).
		With(fault.Cause(why), fault.Hint("Point HB_WRAP_TOKEN_FILE at the file itself (`hbrestd paths` prints it), or restart hbrestd, which writes it anew."))
	var open *tooOpen
	if errors.As(why, &open) {
		e.With(fault.Hint("%s", chmod(open.mode, path)))
	}
	return e
}

// chmod is the command that mends a mode; a path that would be cut stays out.
func chmod(mode, path string) string {
	hint := fmt.Sprintf("Run chmod %s '%s', then repeat the call.", mode, strings.ReplaceAll(path, "'", `'\''`))
	if fault.Shorten(hint, fault.MaxHint) != hint {
		return fmt.Sprintf("Run chmod %s on the token file, then repeat the call.", mode)
	}
	return hint
}
