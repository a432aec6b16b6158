package daemon

import (
	"cmp"
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
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/audit"
	"github.com/hyperbolic-gateway/hb-rest/internal/config"
	"github.com/hyperbolic-gateway/hb-rest/internal/control"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/store"
)

// stagePrefix begins the names of the folders in which a backup is put together,
// beside the files that it is of. Whoever makes one holds the store: one that is
// left belonged to a process that was killed.
const stagePrefix = ".backup-"

// Backup writes what the daemon holds into a folder, while everything goes on.
// It is put together on the daemon's own disk first, which is quick, and taken
// to its place from there: however slow that is, no transaction waits for it.
func (p person) Backup(ctx context.Context, r *control.BackupRequest) (*control.BackupResult, error) {
	if !p.backups.TryLock() {
		return nil, fault.New("BUSY", "another backup is being written")
	}
	defer p.backups.Unlock()
	b := backup{cfg: p.given, version: p.version, now: p.now}
	out, err := b.write(ctx, r.Dir, func(dir string) error {
		// The trail second: it may know of a change that the store has not, as
		// after a crash, and never the other way.
		if err := p.store.Snapshot(filepath.Join(dir, filepath.Base(p.given.StorePath))); err != nil {
			return err
		}
		if err := p.audit.Settle(ctx); err != nil {
			return err
		}
		return p.auditFile.Snapshot(dir)
	})
	if err != nil {
		if !fault.Is(err, "BAD_REQUEST") { // the caller is told, and can choose another folder
			p.log.Error("a backup could not be written", "dir", r.Dir, "cause", err)
		}
		return nil, err
	}
	p.log.Info("backup written", "dir", r.Dir, "wrappers", out.Wrappers, "audit", out.AuditHead)
	return out, nil
}

// BackupOffline is Backup of a home whose daemon does not run. Until it returns,
// none can start. The error is STORE_FAILED if one runs.
func BackupOffline(ctx context.Context, cfg config.Daemon, version, dir string) (*control.BackupResult, error) {
	b := backup{cfg: cfg, version: version, now: time.Now}
	if _, err := os.Stat(cfg.WrapDir); err == nil {
		if err := config.EnsureDirs(cfg); err != nil {
			return nil, err
		}
		if _, err := FinishRestore(cfg); err != nil {
			return nil, err
		}
	}
	release, err := store.Hold(cfg.StorePath)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New("STORE_FAILED", "there is nothing to copy: %s is not there", cfg.StorePath).
			With(fault.Retryable(false), fault.Hint("`hbrestd paths` shows which home these settings mean; HB_WRAP_HOME names another."))
	}
	if err != nil {
		return nil, err
	}
	defer release() // at the end: another backup would remove what this one puts together
	return b.write(ctx, dir, func(dir string) error { return store.CopyClosed(cfg.StorePath, cfg.AuditPath, dir) })
}

// A backup is one that is being made.
type backup struct {
	cfg     config.Daemon
	version string
	now     func() time.Time
}

// write makes the folder of a backup. collect puts the files of one moment into
// a folder on the home's disk.
func (b *backup) write(ctx context.Context, dir string, collect func(dir string) error) (*control.BackupResult, error) {
	if within(dir, b.cfg.WrapDir) {
		return nil, fault.New("BAD_REQUEST", "%s is in %s, where hbrestd keeps and replaces files of its own", dir, b.cfg.WrapDir).
			With(fault.Field("dir"), fault.Hint("Name a folder elsewhere, best on another disk."))
	}
	made, err := makeFolder(dir)
	if err != nil {
		return nil, err
	}
	res := &control.BackupResult{OK: true, Dir: dir}
	err = b.fill(ctx, dir, &res.Backup, collect)
	if err != nil {
		emptyFolder(dir, made)
		return nil, err
	}
	if made {
		_ = store.SyncFolder(filepath.Dir(dir)) // of a folder of somebody else it may not be allowed
	}
	return res, nil
}

func (b *backup) fill(ctx context.Context, dir string, m *control.Backup, collect func(dir string) error) error {
	removeLeft(b.cfg.WrapDir, stagePrefix, "")
	removeLeft(b.cfg.WrapDir, restorePrefix, restoreTemp)      // a terminal that was closed at the question
	stage, err := os.MkdirTemp(b.cfg.WrapDir, stagePrefix+"*") // 0700
	if err != nil {
		return fault.New("STORE_FAILED", "a backup cannot be put together in %s: %v", b.cfg.WrapDir, reason(err))
	}
	defer func() { _ = os.RemoveAll(stage) }() // the next backup removes what is left
	*m = control.Backup{Format: control.BackupFormat, Version: b.version, Time: b.now().UTC().Format(time.RFC3339), Key: "keyring"}
	if err := collect(stage); err != nil {
		return err
	}
	if err := inspect(ctx, stage, b.cfg, m, ""); err != nil {
		f := fault.From(err) // of a copy that nobody finds afterwards: its original is meant
		return fault.New(f.Code, "%s", strings.ReplaceAll(f.Message, stage, b.cfg.WrapDir)).
			With(fault.Cause(err), fault.Retryable(f.Retryable), fault.Hint("%s", f.Hint))
	}
	if taken, err := b.takeKey(ctx, stage); err != nil {
		return err
	} else if taken {
		m.Key = "file"
	}
	if m.Files, err = copyTree(ctx, stage, dir); err != nil {
		return unwritten(ctx, dir, err)
	}
	text, err := json.MarshalIndent(m, "", "  ")
	if err == nil {
		err = writeNew(filepath.Join(dir, control.BackupManifest), append(text, '\n'))
	}
	if err == nil {
		err = store.SyncFolder(dir)
	}
	if err != nil {
		return unwritten(ctx, dir, err)
	}
	return nil
}

// takeKey copies the encrypted file that holds the key of the credentials, if
// this home has one. It needs its passphrase wherever it is.
func (b *backup) takeKey(ctx context.Context, stage string) (taken bool, err error) {
	key := KeyFile(b.cfg)
	info, err := os.Lstat(key)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is not a regular file")
	}
	to := filepath.Join(stage, "keyring", fileItem)
	if err == nil {
		err = os.Mkdir(filepath.Dir(to), 0o700)
	}
	if err == nil {
		_, _, err = copyNew(ctx, key, to)
	}
	if err != nil {
		return false, fault.New("STORE_FAILED", "the encrypted key %s could not be copied: %v", key, reason(err))
	}
	return true, nil
}

// inspect opens the files of a folder as a daemon would, reads all of them, and
// writes down what they hold. They are not changed. head, if it is not "", must
// be in the trail. The error is STORE_FAILED or AUDIT_FAILED: a file is damaged,
// of a later version, or cannot be read. Rows that do not verify are no error:
// they were like that before, and m says so.
func inspect(ctx context.Context, dir string, cfg config.Daemon, m *control.Backup, head string) error {
	c, err := store.CheckCopy(filepath.Join(dir, filepath.Base(cfg.StorePath)))
	if err != nil {
		return damaged(err)
	}
	m.Revision, m.Wrappers, m.Credentials = c.Revision, c.Wrappers, c.Sealed
	file, err := store.OpenAudit(filepath.Join(dir, filepath.Base(cfg.AuditPath)), store.AuditOptions{})
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it was only read
	if said := file.Recovered(); said != "" {
		return damaged(fault.New("STORE_FAILED", "%s", said))
	}
	l, err := audit.Open(audit.Options{
		Append: func([][]byte) error { return errors.New("a copy takes no rows") }, Tail: file.Tail, Scan: unhurried(file.Scan),
	})
	if err != nil {
		return err
	}
	defer func() { _ = l.Close() }() // it has nothing to write
	r, err := l.Verify(ctx, head)
	if err != nil {
		return err
	}
	seq, hash := l.Head()
	m.AuditRows, m.AuditHead, m.AuditProblem = r.Rows, fmt.Sprintf("%d:%s", seq, hash), r.Problem
	return nil
}

// A backup goes on beside calls and changes, which must not wait for it. Reading a
// trail of many rows in one go takes a processor and, by what it leaves to be
// collected, part of the others; syncing a large file in one go keeps every other
// sync on that disk waiting.
const (
	turn      = time.Millisecond // of work, and then
	rest      = 3 * turn
	syncEvery = 2 << 20 // bytes
)

// unhurried is a scan of rows that works a quarter of the time.
func unhurried(scan func(uint64, func([]byte) error) error) func(uint64, func([]byte) error) error {
	return func(from uint64, each func([]byte) error) error {
		begun := time.Now()
		return scan(from, func(row []byte) error {
			if time.Since(begun) > turn {
				time.Sleep(rest)
				begun = time.Now()
			}
			return each(row)
		})
	}
}

// A stepwise writer syncs a file every syncEvery bytes.
type stepwise struct {
	f        *os.File
	unsynced int
}

// Write writes, and syncs when there is enough.
func (s *stepwise) Write(p []byte) (int, error) {
	n, err := s.f.Write(p)
	if s.unsynced += n; err == nil && s.unsynced >= syncEvery {
		s.unsynced = 0
		err = s.f.Sync()
	}
	return n, err
}

func damaged(err error) error {
	f := fault.From(err)
	return fault.New(f.Code, "%s", f.Message).
		With(fault.Cause(err), fault.Retryable(false), fault.Hint("`hbrestd doctor` says more. A daemon that starts keeps a damaged file beside a new one with all that can be read: `hbrestd service restart`."))
}

// unwritten is the error of a folder that cannot take the backup.
func unwritten(ctx context.Context, dir string, err error) error {
	if ctx.Err() != nil {
		return fault.From(ctx.Err())
	}
	return fault.New("STORE_FAILED", "the backup could not be written to %s: %v; nothing is left of it there", dir, reason(err)).
		With(fault.Cause(err), fault.Hint("Make room there, or name a folder on another disk in which hbrestd may write."))
}

// reason is an error without the path that the message has already.
func reason(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// removeLeft removes from a folder what processes that were killed have left there.
func removeLeft(dir, prefix, suffix string) {
	entries, _ := os.ReadDir(dir) // no pattern: the path may have signs of one
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) && strings.HasSuffix(e.Name(), suffix) {
			_ = os.RemoveAll(filepath.Join(dir, e.Name()))
		}
	}
}

// within reports whether dir, which may not be there, is in the folder top, by
// whatever way it is named.
func within(dir, top string) bool {
	want, err := os.Stat(top)
	if err != nil {
		return false
	}
	at, err := filepath.EvalSymlinks(filepath.Dir(dir))
	if err != nil {
		return false // and so it cannot be made
	}
	for ; ; at = filepath.Dir(at) {
		if is, err := os.Stat(at); err == nil && os.SameFile(is, want) {
			return true
		}
		if at == filepath.Dir(at) {
			return false
		}
	}
}

// makeFolder makes a folder of mode 0700, or takes one that is empty. The error
// is BAD_REQUEST.
func makeFolder(dir string) (made bool, err error) {
	refuse := func(hint, format string, args ...any) error {
		return fault.New("BAD_REQUEST", format, args...).With(fault.Field("dir"), fault.Hint("%s", hint))
	}
	const name = "Name a folder that is not there yet; it is made."
	err = os.Mkdir(dir, 0o700)
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, fs.ErrNotExist):
		return false, refuse("Make that folder first, or name another place.", "the folder that %s would be in is not there", dir)
	case !errors.Is(err, fs.ErrExist):
		return false, refuse("Name a folder in which hbrestd may write; as a service it may see fewer than you do.", "%s cannot be made: %v", dir, reason(err))
	}
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() {
		return false, refuse(name, "%s is there already, and is no folder", dir)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false, refuse(name, "%s cannot be read: %v", dir, reason(err))
	}
	if len(entries) > 0 {
		return false, refuse(name, "%s is not empty: it has %s", dir, entries[0].Name())
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		if err := os.Chmod(dir, 0o700); err != nil {
			return false, refuse(name, "%s is open to others, and that cannot be changed: %v", dir, reason(err))
		}
	}
	return false, nil
}

// emptyFolder takes away what a backup that failed has left in a folder that
// was empty before.
func emptyFolder(dir string, made bool) {
	if made {
		_ = os.RemoveAll(dir)
		return
	}
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		_ = os.RemoveAll(filepath.Join(dir, e.Name()))
	}
}

// copyTree copies the files of one folder, and of the folders in it, into
// another, and says what they are. Each is synced before it gets its name.
func copyTree(ctx context.Context, from, to string) ([]control.BackupFile, error) {
	var files []control.BackupFile
	err := filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == from {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if e.IsDir() {
			return os.Mkdir(filepath.Join(to, name), 0o700)
		}
		n, sum, err := copyNew(ctx, path, filepath.Join(to, name))
		if err != nil {
			return err
		}
		files = append(files, control.BackupFile{Name: filepath.ToSlash(name), Bytes: n, SHA256: sum})
		return store.SyncFolder(filepath.Dir(filepath.Join(to, name)))
	})
	slices.SortFunc(files, func(a, b control.BackupFile) int { return cmp.Compare(a.Name, b.Name) })
	return files, err
}

// copyNew copies a file into a new one of mode 0600, which has its name only
// once it is whole and synced, and returns its size and SHA-256.
func copyNew(ctx context.Context, from, to string) (n int64, sum string, err error) {
	in, err := os.Open(from)
	if err != nil {
		return 0, "", err
	}
	defer in.Close()
	h := sha256.New()
	err = placeNew(to, func(out io.Writer) error {
		n, err = io.Copy(io.MultiWriter(out, h), cancellable{ctx, in})
		return err
	})
	return n, hex.EncodeToString(h.Sum(nil)), err
}

func writeNew(path string, data []byte) error {
	return placeNew(path, func(out io.Writer) error { _, err := out.Write(data); return err })
}

// tempName is what a file is called until it is written.
func tempName(path string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".tmp")
}

// placeNew makes a file that has its name once write has written it.
func placeNew(path string, write func(io.Writer) error) error {
	temp := tempName(path)
	out, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = write(&stepwise{f: out})
	if err == nil {
		err = out.Sync()
	}
	if cerr := out.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		_ = os.Remove(temp)
	}
	return err
}

// A cancellable reader ends with its context, between two reads.
type cancellable struct {
	ctx context.Context
	r   io.Reader
}

// Read reads, unless the context has ended.
func (c cancellable) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}
