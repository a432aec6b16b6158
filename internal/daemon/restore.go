package daemon

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/config"
	"github.com/hyperbolic-gateway/hb-rest/internal/control"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/store"
)

// A restore first puts all files of the backup, checked and synced, into a folder
// beside those that they replace. From the moment at which that folder has its
// name, restorePrefix and the time, the restore is decided: whoever comes next, the
// command itself or a daemon that starts after the command was killed, puts the
// rest in place before anything is opened. Until then nothing has changed.
const (
	restorePrefix = ".restore-"
	restoreTemp   = ".tmp"    // ends the name while the folder is filled
	restoreAside  = ".before" // and this what a replaced file is kept as, with restorePrefix
)

// replacesHeld reports whether a file can be replaced while it is locked. Where it
// cannot, the lock on the decided restore alone keeps daemons away.
const replacesHeld = runtime.GOOS != "windows"

// manifestLimit is far above the manifest of a trail of a thousand files.
const manifestLimit = 1 << 20

// A Restore is a backup that was read, checked and copied beside the files of a
// home that it would replace. Close it.
type Restore struct {
	Backup control.Backup // its manifest, with AuditProblem as it is now
	Here   StoreLook      // what it would replace
	// HereLast is the number of the newest row of the trail that it would replace;
	// 0 if there is none.
	HereLast uint64

	cfg     config.Daemon
	now     time.Time
	stage   string // "": decided
	release func() // lets a daemon start
}

// A Restored is one file that a restore has put in place.
type Restored struct {
	Name string `json:"name"`           // below the folder wrap of the home
	Kept string `json:"kept,omitempty"` // the path of what was there; "" if nothing was
	Gone bool   `json:"gone,omitempty"` // nothing took its place: it is of after the backup
}

// PrepareRestore reads and checks the backup in dir and changes nothing that is
// in use. Until Close no daemon can start, if the home has a store. The error is
// STORE_FAILED or AUDIT_FAILED: a daemon runs, or the backup is none, is not
// whole, was changed, or is of a later version.
func PrepareRestore(ctx context.Context, cfg config.Daemon, dir string, now time.Time) (_ *Restore, err error) {
	m, err := readManifest(dir)
	if err != nil {
		return nil, err
	}
	if err := config.EnsureDirs(cfg); err != nil {
		return nil, err
	}
	if _, err := FinishRestore(cfg); err != nil {
		return nil, err
	}
	r := &Restore{Backup: *m, cfg: cfg, now: now, release: func() {}}
	defer func() {
		if err != nil {
			r.Close()
		}
	}()
	if r.Here, err = store.LookAt(cfg.StorePath); err != nil && !r.Here.Exists {
		return nil, err // one that cannot be read may be what the backup is needed for
	}
	if r.Here.Exists {
		if r.release, err = store.Hold(cfg.StorePath); err != nil {
			r.release = func() {}
			return nil, err
		}
	}
	for _, f := range m.Files { // what could not be replaced later must be known now
		path := filepath.Join(cfg.WrapDir, filepath.FromSlash(f.Name))
		if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
			return nil, fault.New("STORE_FAILED", "%s is not a regular file; nothing was changed", path).
				With(fault.Retryable(false), fault.Hint("hbrestd has not made that. Move it away, then run the command again."))
		}
	}
	r.HereLast = lastRow(cfg.AuditPath)
	if r.Here.Exists { // and is held: otherwise they may be of a restore that goes on beside this one
		removeLeft(cfg.WrapDir, restorePrefix, restoreTemp)
	}
	if r.stage, err = os.MkdirTemp(cfg.WrapDir, restorePrefix+"*"+restoreTemp); err != nil { // 0700
		return nil, fault.New("STORE_FAILED", "the backup cannot be copied into %s: %v", cfg.WrapDir, reason(err))
	}
	for _, f := range m.Files {
		if err := takeBack(ctx, filepath.Join(dir, filepath.FromSlash(f.Name)), filepath.Join(r.stage, filepath.FromSlash(f.Name)), f); err != nil {
			return nil, err
		}
	}
	var found control.Backup
	if err := inspect(ctx, r.stage, cfg, &found, m.AuditHead); err != nil {
		f := fault.From(err)
		return nil, fault.New(f.Code, "the backup in %s cannot be used: %s", dir, strings.ReplaceAll(f.Message, r.stage, dir)).
			With(fault.Cause(err), fault.Retryable(false), fault.Hint("Nothing was changed. Use another backup, or a newer hbrestd if that has written it."))
	}
	r.Backup.Revision, r.Backup.Wrappers, r.Backup.Credentials = found.Revision, found.Wrappers, found.Credentials
	r.Backup.AuditRows, r.Backup.AuditHead, r.Backup.AuditProblem = found.AuditRows, found.AuditHead, found.AuditProblem
	return r, nil
}

// Close gives up what was not restored.
func (r *Restore) Close() {
	if r.stage != "" {
		_ = os.RemoveAll(r.stage)
	}
	r.release()
	r.release = func() {}
}

// Do puts the backup in the place of what is there, which is kept under other
// names. When it fails, or the process ends, either nothing has changed or the
// next start of a daemon, or of a restore, completes it.
func (r *Restore) Do() ([]Restored, error) {
	text, err := json.Marshal(&r.Backup)
	if err == nil {
		err = writeNew(filepath.Join(r.stage, control.BackupManifest), text)
	}
	if err == nil {
		err = store.SyncFolder(r.stage)
	}
	if _, here := os.Lstat(r.cfg.StorePath); err == nil && here == nil && !r.Here.Exists {
		return nil, fault.New("STORE_FAILED", "nothing was changed, because %s is there now: a daemon was started, or something else was restored", r.cfg.StorePath).
			With(fault.Retryable(false), fault.Hint("Look at what it holds: run the command again with --dry-run."))
	}
	var decided string
	if err == nil {
		decided, err = r.freeName()
	}
	if err == nil {
		err = os.Rename(r.stage, decided)
	}
	if err != nil {
		return nil, fault.New("STORE_FAILED", "nothing was changed, because %s cannot be written: %v", r.cfg.WrapDir, reason(err))
	}
	r.stage = ""
	if err := store.SyncFolder(r.cfg.WrapDir); err != nil {
		return nil, fault.New("STORE_FAILED", "%s cannot be written: %v; the next start of the daemon completes the restore", r.cfg.WrapDir, reason(err)).With(fault.Cause(err))
	}
	if !replacesHeld {
		r.release()
		r.release = func() {}
	}
	return finishRestore(r.cfg, decided, r.Here.Exists)
}

// freeName is a name for the decided folder whose time nothing else here has.
func (r *Restore) freeName() (string, error) {
	entries, err := os.ReadDir(r.cfg.WrapDir)
	if err != nil {
		return "", err
	}
	for i := 1; i < 100; i++ {
		at := r.now.UTC().Format("20060102T150405Z")
		if i > 1 {
			at += fmt.Sprintf("-%d", i)
		}
		if !slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
			return e.Name() == restorePrefix+at || strings.HasSuffix(e.Name(), restoreAside+restoreWord+at)
		}) {
			return filepath.Join(r.cfg.WrapDir, restorePrefix+at), nil
		}
	}
	return "", errors.New("a hundred restores have this second")
}

// restoreWord follows restoreAside in the name of what was replaced:
// store.db.before-restore-20261201T080000Z.
const restoreWord = "-restore-"

// lastRow is the newest row of a trail: a file that was just begun has none.
func lastRow(path string) uint64 {
	if n := store.LastRow(path); n > 0 {
		return n
	}
	older, err := store.OlderAudit(path)
	if err != nil || len(older) == 0 {
		return 0
	}
	return store.LastRow(older[len(older)-1])
}

// backupNames are the names that a file of a backup can have.
var backupNames = regexp.MustCompile(`^(store\.db|audit\.db|audit-[0-9]{20}(\.[0-9]{1,2})?\.db|keyring/` + fileItem + `)$`)

func readManifest(dir string) (*control.Backup, error) {
	refuse := func(format string, args ...any) error {
		return fault.New("STORE_FAILED", format, args...).With(fault.Retryable(false), fault.Hint("Name a folder that `hbrestd backup` has written."))
	}
	path := filepath.Join(dir, control.BackupManifest)
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() { // a pipe would keep the reader for good
		return nil, refuse("%s is not a regular file", path)
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, refuse("%s is no backup, or one that was not finished: it has no %s", dir, control.BackupManifest)
	}
	if err != nil {
		return nil, refuse("%s cannot be read: %v", path, reason(err))
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, manifestLimit))
	m := new(control.Backup)
	if err == nil {
		err = json.Unmarshal(text, m)
	}
	if err != nil {
		return nil, refuse("%s is no manifest of a backup: %v", path, reason(err))
	}
	if m.Format != control.BackupFormat {
		return nil, refuse("%s is of form %d, which this version of hbrestd does not know", path, m.Format)
	}
	seen := map[string]bool{}
	for _, f := range m.Files {
		if !backupNames.MatchString(f.Name) || seen[f.Name] {
			return nil, refuse("%s names %q, which is no file of a backup or there twice", path, fault.Shorten(f.Name, 60))
		}
		seen[f.Name] = true
	}
	for _, name := range []string{"store.db", "audit.db"} {
		if !seen[name] {
			return nil, refuse("%s names no %s", path, name)
		}
	}
	return m, nil
}

// takeBack copies one file of a backup, which must be what the manifest says.
func takeBack(ctx context.Context, from, to string, f control.BackupFile) error {
	changed := func(format string, args ...any) error {
		return fault.New("STORE_FAILED", "%s is not what was backed up: %s; nothing was changed", from, fmt.Sprintf(format, args...)).
			With(fault.Retryable(false), fault.Hint("The file was changed or damaged since. Use another backup."))
	}
	info, err := os.Lstat(from)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return changed("it is missing")
	case err == nil && !info.Mode().IsRegular():
		return changed("it is not a regular file")
	case err == nil && info.Size() != f.Bytes: // not copied first, which may take the whole disk
		return changed("it has %d bytes, and the manifest says %d", info.Size(), f.Bytes)
	}
	if err == nil {
		err = os.MkdirAll(filepath.Dir(to), 0o700)
	}
	var sum string
	if err == nil {
		_, sum, err = copyNew(ctx, from, to)
	}
	if err == nil {
		err = store.SyncFolder(filepath.Dir(to))
	}
	if ctx.Err() != nil {
		return fault.From(ctx.Err())
	}
	if err != nil {
		return fault.New("STORE_FAILED", "%s could not be copied beside the files that it is to replace: %v; nothing was changed", from, reason(err)).With(fault.Cause(err))
	}
	if sum != f.SHA256 {
		return changed("its SHA-256 begins with %s, and the manifest's with %s", sum[:12], fault.Shorten(f.SHA256, 12))
	}
	return nil
}

// decidedName is the name of a decided folder, as freeName makes it.
var decidedName = regexp.MustCompile(`^\.restore-[0-9]{8}T[0-9]{6}Z(-[0-9]{1,2})?$`)

// FinishRestore completes a restore that was decided and then interrupted. It
// must be called before anything of the home is opened. No file is named where
// there was none. The error is STORE_FAILED.
func FinishRestore(cfg config.Daemon) ([]Restored, error) {
	entries, err := os.ReadDir(cfg.WrapDir)
	if err != nil {
		return nil, fault.New("STORE_FAILED", "%s could not be read: %v", cfg.WrapDir, reason(err))
	}
	var all []Restored
	for _, e := range entries {
		if !e.IsDir() || !decidedName.MatchString(e.Name()) {
			continue
		}
		done, err := finishRestore(cfg, filepath.Join(cfg.WrapDir, e.Name()), false)
		if err != nil {
			return nil, err
		}
		all = append(all, done...)
	}
	return all, nil
}

// finishRestore puts what is left in a decided folder in place. held: the caller
// holds the home's store already. Doing it again, or going on after a kill, does
// no harm: what has been moved is no longer in the folder, and what was there
// before has its second name before it is replaced.
func finishRestore(cfg config.Daemon, decided string, held bool) ([]Restored, error) {
	at := strings.TrimPrefix(filepath.Base(decided), restorePrefix)
	fail := func(err error) error {
		why := reason(err).Error()
		if f := (*fault.Error)(nil); errors.As(err, &f) {
			why = f.Message
		}
		return fault.New("STORE_FAILED", "the restore could not be completed in %s: %s; the next start of the daemon completes it", cfg.WrapDir, why).
			With(fault.Cause(err), fault.Retryable(false), fault.Hint("Mend that, or stop what is named, then start the daemon. Or give the restore up: move %s away; what it has replaced is kept there, as *%s%s%s.", filepath.Base(decided), restoreAside, restoreWord, at))
	}
	// Made by hbrestd, it is closed to others. Who could write here before the home
	// was closed may have left one that is not.
	if err := config.EnsureDir(decided); err != nil {
		return nil, fail(err)
	}
	release, err := store.Hold(filepath.Join(decided, control.BackupManifest))
	if errors.Is(err, fs.ErrNotExist) { // somebody else has completed it, but for the empty folder
		_ = os.Remove(filepath.Join(decided, "keyring"))
		_ = os.Remove(decided)
		return nil, nil
	}
	if err != nil {
		return nil, fail(err)
	}
	defer func() { release() }()
	if !held {
		held, err := store.Hold(cfg.StorePath)
		switch {
		case err == nil && replacesHeld:
			defer held()
		case err == nil:
			held()
		case !errors.Is(err, fs.ErrNotExist):
			return nil, fail(err)
		}
	}
	m, err := readManifest(decided)
	if err != nil {
		return nil, fail(err)
	}
	// The store last: it is what a daemon takes first, and it is locked before it
	// is there, so that none opens the rest half way.
	slices.SortStableFunc(m.Files, func(a, b control.BackupFile) int { return last(a.Name) - last(b.Name) })
	var done []Restored
	older, err := store.OlderAudit(cfg.AuditPath)
	if err != nil {
		return nil, fail(err)
	}
	for _, path := range older { // rows of after the backup, or of another trail
		name := filepath.Base(path)
		if slices.ContainsFunc(m.Files, func(f control.BackupFile) bool { return f.Name == name }) {
			continue
		}
		kept := asidePath(cfg, name, at)
		if err := os.Rename(path, kept); err != nil {
			return nil, fail(err)
		}
		done = append(done, Restored{Name: name, Kept: kept, Gone: true})
	}
	for _, f := range m.Files {
		r, err := putInPlace(cfg, decided, f, at)
		if err != nil {
			return nil, fail(err)
		}
		if r != nil {
			done = append(done, *r)
		}
	}
	if err := store.SyncFolder(cfg.WrapDir); err != nil {
		return nil, fail(err)
	}
	release() // Windows removes no file that is open
	release = func() {}
	_ = os.Remove(filepath.Join(decided, "keyring"))
	if err := os.Remove(filepath.Join(decided, control.BackupManifest)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fail(err)
	}
	_ = os.Remove(decided)
	return done, nil
}

func last(name string) int {
	if name == "store.db" {
		return 1
	}
	return 0
}

// asidePath is what a replaced file is called from then on.
func asidePath(cfg config.Daemon, name, at string) string {
	return filepath.Join(cfg.WrapDir, strings.ReplaceAll(name, "/", "-")+restoreAside+restoreWord+at)
}

// putInPlace moves one file of a decided restore to its place; nil when that has
// happened already, or the same file is there.
func putInPlace(cfg config.Daemon, decided string, f control.BackupFile, at string) (*Restored, error) {
	from := filepath.Join(decided, filepath.FromSlash(f.Name))
	to := filepath.Join(cfg.WrapDir, filepath.FromSlash(f.Name))
	if _, err := os.Lstat(from); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if same(to, f) {
		return nil, os.Remove(from)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return nil, err
	}
	r := &Restored{Name: f.Name}
	if _, err := os.Lstat(to); err == nil {
		r.Kept = asidePath(cfg, f.Name, at)
		if err := keep(to, r.Kept, os.Link); err != nil {
			return nil, err
		}
	}
	if replacesHeld && last(f.Name) == 1 {
		release, err := store.Hold(from)
		if err != nil {
			return nil, err
		}
		defer release() // a daemon that waits for it finds everything in place
	}
	if err := os.Rename(from, to); err != nil {
		return nil, err
	}
	return r, store.SyncFolder(filepath.Dir(to))
}

// keep gives a file a second name, or a copy where the disk has no second names.
func keep(path, kept string, link func(path, kept string) error) error {
	if _, err := os.Lstat(kept); err == nil {
		return nil // before a kill
	}
	err := link(path, kept)
	if err != nil {
		_ = os.Remove(tempName(kept)) // of a copy that was killed
		_, _, err = copyNew(context.Background(), path, kept)
	}
	if err != nil {
		return err
	}
	return store.SyncFolder(filepath.Dir(kept))
}

// same reports whether the file at path is what the manifest says.
func same(path string, f control.BackupFile) bool {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() != f.Bytes {
		return false
	}
	in, err := os.Open(path)
	if err != nil {
		return false
	}
	defer in.Close()
	h := sha256.New()
	_, err = io.Copy(h, in)
	return err == nil && hex.EncodeToString(h.Sum(nil)) == f.SHA256
}
