package store

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"
)

// A Look is what can be said of a store.db that nobody here has open.
type Look struct {
	Exists   bool
	InUse    bool              // another process has it open; the rest is not known then
	Faults   []string          // why it is damaged; none if it is sound
	Wrappers int               // that it names
	Lost     []string          // ids of those whose record cannot be read
	Sealed   int               // credentials
	Settings map[string]string // stored ones, by name
}

// LookAt reads the file at path and changes nothing. A damaged file is no error;
// STORE_FAILED is for one that cannot be read, or is of a later version.
func LookAt(path string) (Look, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Look{}, nil
	case err != nil:
		return Look{}, failed(err, "%s could not be looked at", path)
	case !info.Mode().IsRegular():
		return Look{Exists: true}, irregular(path)
	}
	f, unlock, err := lockFile(path, 0)
	switch {
	case errors.Is(err, errLocked):
		return Look{Exists: true, InUse: true}, nil
	case err != nil:
		return Look{Exists: true}, failed(err, "%s could not be opened", path)
	}
	defer unlock()
	r, img, err := loadFrom(f, false)
	if err != nil {
		return Look{Exists: true}, unreadable(err, path)
	}
	l := Look{Exists: true, Faults: r.faults, Wrappers: len(r.ids), Sealed: len(img.buckets[bucketSealed]), Settings: maps.Clone(r.set.settings)}
	for _, id := range r.ids {
		if r.entries[id].damaged != "" {
			l.Lost = append(l.Lost, id)
		}
	}
	slices.Sort(l.Lost)
	return l, nil
}
