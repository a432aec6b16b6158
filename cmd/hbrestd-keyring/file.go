package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/99designs/keyring"
)

// A file is the encrypted file keyring, used only where a person named it. It
// stands in a folder that only its user can read.
type file struct {
	dir        string
	passphrase string
}

func openFile(r *request) (ring, error) {
	info, err := os.Lstat(r.Dir)
	switch {
	case err != nil:
		return nil, coded(codeFailed, err)
	case !filepath.IsAbs(r.Dir) || !info.IsDir():
		return nil, coded(codeBadRequest, errors.New("the folder is not a folder, or not named from the root"))
	case !private(info):
		return nil, coded(codeFailed, errors.New("other users can read or write the folder of the keyring file"))
	}
	return &file{r.Dir, string(r.Passphrase)}, nil
}

func (f *file) open(dir string) (*library, error) {
	return openLibrary(keyring.Config{
		FileDir:          dir,
		FilePasswordFunc: keyring.FixedStringPrompt(f.passphrase),
	}, keyring.FileBackend, func(err error) error { return coded(codeFailed, err) })
}

func (f *file) get(item string) ([]byte, error) {
	switch info, err := os.Lstat(filepath.Join(f.dir, item)); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, errNotFound
	case err != nil:
		return nil, coded(codeFailed, err)
	case !info.Mode().IsRegular(): // a pipe would be waited for
		return nil, coded(codeDamaged, errors.New("it is not a regular file"))
	}
	data, err := os.ReadFile(filepath.Join(f.dir, item))
	if err != nil {
		return nil, coded(codeFailed, err)
	}
	if !whole(data) {
		return nil, coded(codeDamaged, errors.New("it is empty, cut off, or something else"))
	}
	l, err := f.open(f.dir)
	if err != nil {
		return nil, err
	}
	value, err := l.get(item)
	var path *fs.PathError
	if err != nil && !errors.As(err, &path) && !errors.Is(err, errNotFound) {
		// What the file's cipher says does not tell a wrong passphrase from a
		// changed file.
		return nil, coded(codePassphrase, nil)
	}
	return value, err
}

// whole reports whether data has the form of what the library writes: a JWE in
// its compact form (RFC 7516), whose key is wrapped with a passphrase. What is
// only cut off or overwritten must not read as a wrong passphrase.
func whole(data []byte) bool {
	parts := bytes.Split(data, []byte("."))
	if len(parts) != 5 {
		return false
	}
	for i, p := range parts {
		raw, err := base64.RawURLEncoding.Strict().AppendDecode(nil, p)
		if err != nil || len(raw) == 0 || i == 2 && len(raw) != 12 || i == 4 && len(raw) != 16 { // nonce and tag of AES-GCM
			return false
		}
		if i == 0 && !json.Valid(raw) {
			return false
		}
	}
	return true
}

// set writes beside the item and renames: the library's own write leaves half a
// file when the machine stops.
func (f *file) set(item string, value []byte) error {
	dir, err := os.MkdirTemp(f.dir, ".new-")
	if err != nil {
		return coded(codeFailed, err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	l, err := f.open(dir)
	if err != nil {
		return err
	}
	if err := l.set(item, value); err != nil {
		return err
	}
	from := filepath.Join(dir, item)
	if err := flush(from); err != nil {
		return coded(codeFailed, err)
	}
	if err := os.Rename(from, filepath.Join(f.dir, item)); err != nil {
		return coded(codeFailed, err)
	}
	return flushDir(f.dir)
}

func (f *file) remove(item string) error {
	if err := os.Remove(filepath.Join(f.dir, item)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return coded(codeFailed, err)
	}
	return flushDir(f.dir)
}

func flush(path string) error {
	h, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(h.Sync(), h.Close())
}
