package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// replaceDamaged sets a damaged file aside and puts a new one in its place that
// holds every wrapper that can still be read. It says what happened; "" if the
// file turned out to be sound once it was locked.
func replaceDamaged(path string, o Options) (said string, err error) {
	f, unlock, err := lockFile(path, o.LockTimeout)
	switch {
	case errors.Is(err, errLocked):
		return "", busy(path)
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", failed(err, "%s could not be locked", path)
	}
	defer unlock()
	if !isAt(f, path) {
		return "", nil
	}
	r, img, err := loadFrom(f, true)
	if err != nil {
		return "", unreadable(err, path)
	}
	if len(r.faults) == 0 {
		return "", nil
	}
	removeTemps(path) // of earlier attempts; with the lock held nobody else is at it
	r.rename()
	// Beyond the file's own, so that clients see a change. Where that cannot be
	// read, the number of its last transaction is seldom below it.
	r.revision = max(r.revision, img.txid) + 1
	others := append(unknown(img), r.restorable(img)...)
	temp, err := build(path, r.contents, r.records, r.digests, others...)
	if err != nil {
		return "", failed(err, "%s is damaged (%s), and a new one could not be written", path, r.faults[0])
	}
	defer os.Remove(temp)
	kept, err := setAside(path, o.Now())
	if err != nil {
		return "", failed(err, "%s is damaged (%s) and could not be set aside", path, r.faults[0])
	}
	unlockToReplace(unlock)
	if err = os.Rename(temp, path); err == nil {
		err = syncFolder(filepath.Dir(path))
	}
	if err != nil {
		return "", failed(err, "%s is damaged (%s) and could not be replaced", path, r.faults[0])
	}
	return sentence(path, kept, r) + besides(img), nil
}

// sentence is what Recovered says.
func sentence(path, kept string, r *reading) string {
	s := fmt.Sprintf("%s was damaged (%s); it was kept as %s, and a new one was made", path, r.faults[0], kept)
	var bad []string
	for _, id := range r.ids {
		if r.entries[id].damaged != "" {
			bad = append(bad, id)
		}
	}
	switch {
	case len(r.ids) == 0:
		s += ", which is empty: no wrapper could be read"
	case len(bad) == 0:
		s = fmt.Sprintf("%s with all %d wrappers that it names", s, len(r.ids))
	default:
		const shown = 10
		list := strings.Join(bad[:min(len(bad), shown)], ", ")
		if len(bad) > shown {
			list += fmt.Sprintf(" and %d more", len(bad)-shown)
		}
		s = fmt.Sprintf("%s with %d of %d wrappers; not readable: %s", s, len(r.ids)-len(bad), len(r.ids), list)
	}
	if r.missing > 0 && len(r.ids) > 0 {
		s += fmt.Sprintf("; %d more wrappers are missing, and their ids with them", r.missing)
	}
	if r.stale {
		s += "; changes made last before the damage may be missing"
	}
	return s
}

// besides says of what else something may be missing in a new file; the wrappers
// are counted.
func besides(img *image) string {
	var may []string
	for _, b := range []struct{ bucket, words string }{
		{bucketSettings, "settings"},
		{bucketAllow, "allow rules"},
		{bucketApproval, "approval policies"},
		{bucketTrust, "trusted documents"},
		{bucketSealed, "credentials"},
		{bucketPriority, "priorities"},
		{bucketHistory, "earlier versions"},
		{bucketRemoved, "removed wrappers"},
		{bucketOrigins, "origins of imported wrappers"},
	} {
		if img.torn[b.bucket] || img.torn[""] {
			may = append(may, b.words)
		}
	}
	if len(may) == 0 {
		return ""
	}
	return "; some of these may be missing too: " + strings.Join(may, ", ")
}

// restorable are records for the bucket of removed wrappers: of those that have
// whole versions, and that nothing else can be taken over of.
func (r *reading) restorable(img *image) []more {
	whole := map[string]bool{}
	for _, p := range img.buckets[bucketHistory] {
		if id := string(versionOf(p.key)); !whole[id] && img.belongs(bucketHistory, p) {
			whole[id] = true
		}
	}
	var out []more
	for id, at := range r.removed {
		if at.IsZero() && whole[id] {
			out = append(out, more{bucketRemoved, pair{[]byte(id), seal(bucketRemoved, id, verifiedPayload(at))}})
		}
	}
	return out
}

// keptDamaged are the buckets whose damaged records are taken over too.
var keptDamaged = []string{bucketSealed, bucketSettings, bucketApproval}

// unknown collects the whole records of buckets that this version does not know.
func unknown(img *image) []more {
	var out []more
	for bucket, pairs := range img.buckets {
		switch bucket {
		case bucketWrappers, bucketNames, bucketVerified, bucketState:
			continue
		}
		for _, p := range pairs {
			_, err := unseal(bucket, string(p.key), p.value)
			// A credential that is damaged is still one: it keeps its name and is
			// refused as damaged, not as never seen. A setting or a policy that is
			// damaged may have asked for more care than there is without it.
			if newer := (newerError{}); err == nil || errors.As(err, &newer) || slices.Contains(keptDamaged, bucket) {
				out = append(out, more{bucket, p})
			} else {
				img.torn[bucket] = true
			}
		}
	}
	return out
}

// setAside gives the file a second name that says what it is and when, and that
// lasts through a power cut. The first name stays, so that there is a store at
// every moment.
func setAside(path string, now time.Time) (kept string, err error) {
	for i := range 100 {
		kept = path + ".damaged-" + now.UTC().Format("20060102T150405Z")
		if i > 0 {
			kept += fmt.Sprintf("-%d", i+1)
		}
		err = os.Link(path, kept)
		if err == nil || !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	if err != nil && !errors.Is(err, fs.ErrExist) { // a file system without hard links
		err = copyFile(path, kept)
	}
	if err == nil {
		err = syncFolder(filepath.Dir(kept))
	}
	return kept, err
}

const tempSuffix = ".tmp"

func tempPrefix(path string) string { return "." + filepath.Base(path) + "-" }

func removeTemps(path string) {
	dir := filepath.Dir(path)
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), tempPrefix(path)) && strings.HasSuffix(e.Name(), tempSuffix) {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = out.ReadFrom(in)
	return errors.Join(err, out.Sync(), out.Close())
}
