package daemon_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/audit"
	"github.com/hyperbolic-gateway/hb-rest/internal/config"
	"github.com/hyperbolic-gateway/hb-rest/internal/control"
	"github.com/hyperbolic-gateway/hb-rest/internal/daemon"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/store"
)

var restoreTime = time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC)

// contents are the files below a folder, by name.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || e.Type()&fs.ModeSocket != 0 {
			return err
		}
		data, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		out[name] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// restore puts a backup back and says what was replaced.
func restore(t *testing.T, cfg config.Daemon, dir string) []daemon.Restored {
	t.Helper()
	r, err := daemon.PrepareRestore(t.Context(), cfg, dir, restoreTime)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	done, err := r.Do()
	if err != nil {
		t.Fatal(err)
	}
	return done
}

// What was backed up is what a daemon has after a restore; what was there is kept
// to the byte, and can be put back in the same way.
func TestRestore(t *testing.T) {
	w, person := backupWorld(t)
	dir := filepath.Join(t.TempDir(), "b")
	b, err := person.Backup(t.Context(), &control.BackupRequest{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	w.create(get("later", "https://api.example.com/"))
	if a := w.post("/wrap/wrappers", `{"action":"delete","id":"w1"}`); !a.OK {
		t.Fatal(a.Raw)
	}
	w.stop()
	if err := os.WriteFile(daemon.KeyFile(w.cfg), []byte("another key"), 0o600); err != nil {
		t.Fatal(err)
	}
	was := contents(t, w.cfg.WrapDir)
	saved := contents(t, dir)

	r, err := daemon.PrepareRestore(t.Context(), w.cfg, dir, restoreTime)
	if err != nil {
		t.Fatal(err)
	}
	if r.Here.Wrappers != 3 || r.Backup.Wrappers != 3 || r.Backup.AuditHead != b.AuditHead || r.HereLast != b.AuditRows+2 {
		t.Errorf("%+v, row %d, %+v; backed up %+v", r.Here, r.HereLast, r.Backup, b)
	}
	if _, err := daemon.Start(context.Background(), w.options); !fault.Is(err, "STORE_FAILED") {
		t.Errorf("a daemon started while the restore was prepared: %v", err)
	}
	r.Close()
	if diff := cmp.Diff(was, contents(t, w.cfg.WrapDir)); diff != "" {
		t.Errorf("a restore that was given up changed something:\n%s", diff)
	}

	const at = ".before-restore-20261201T080000Z"
	want := []daemon.Restored{
		{Name: "audit.db", Kept: filepath.Join(w.cfg.WrapDir, "audit.db"+at)},
		{Name: "keyring/master", Kept: filepath.Join(w.cfg.WrapDir, "keyring-master"+at)},
		{Name: "store.db", Kept: filepath.Join(w.cfg.WrapDir, "store.db"+at)},
	}
	if diff := cmp.Diff(want, restore(t, w.cfg, dir)); diff != "" {
		t.Error(diff)
	}
	now := contents(t, w.cfg.WrapDir)
	expected := maps.Clone(was)
	for name := range map[string]bool{"audit.db": true, "keyring/master": true, "store.db": true} {
		expected[name] = saved[name]
		expected[strings.ReplaceAll(name, "/", "-")+at] = was[name]
	}
	for _, name := range slices.Sorted(maps.Keys(expected)) {
		if now[name] != expected[name] {
			t.Errorf("%s is not what it should be", name)
		}
	}
	if len(now) != len(expected) {
		t.Errorf("%q", slices.Sorted(maps.Keys(now)))
	}
	w.start()
	ids := func() (list []string) {
		m, err := person.Manifest(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range m.Wrappers {
			list = append(list, e.ID)
		}
		return list
	}
	if got := ids(); !slices.Equal(got, []string{"w0", "w1", "w2"}) {
		t.Errorf("%q", got)
	}
	v, err := person.AuditVerify(t.Context(), &control.AuditVerifyRequest{Head: b.AuditHead})
	if err != nil || !v.OK || !v.HeadSeen || v.Head != b.AuditHead {
		t.Errorf("%+v, %v", v, err)
	}
	w.stop()
	// Once more in the same second: other names are free.
	w.start()
	w.create(get("again", "https://api.example.com/"))
	w.stop()
	if got := restore(t, w.cfg, dir); len(got) != 2 || got[1].Kept != filepath.Join(w.cfg.WrapDir, "store.db"+at+"-2") {
		t.Errorf("%+v", got)
	}
	if got := restore(t, w.cfg, dir); len(got) != 0 {
		t.Errorf("the same backup twice: %+v", got)
	}
}

// turningHome is a home with a trail of several files: add writes more rows, and
// last is the number of the newest.
func turningHome(t *testing.T) (cfg config.Daemon, add func(n int) (head string)) {
	t.Helper()
	home := filepath.Join(t.TempDir(), "home")
	cfg, _, err := config.LoadDaemon(func(name string) (string, bool) {
		return map[string]string{"HB_WRAP_HOME": home}[name], name == "HB_WRAP_HOME"
	}, "linux")
	if err == nil {
		err = config.EnsureDirs(cfg)
	}
	if err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(cfg.StorePath, store.Options{})
	if err == nil {
		err = s.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return cfg, func(n int) string {
		t.Helper()
		f, err := store.OpenAudit(cfg.AuditPath, store.AuditOptions{})
		if err != nil {
			t.Fatal(err)
		}
		l, err := audit.Open(audit.Options{Append: f.Append, Tail: f.Tail, Scan: f.Scan, Size: f.Size, Rotate: f.Rotate, MaxFile: 32 << 10})
		if err != nil {
			t.Fatal(err)
		}
		for range n {
			if err := l.Intent(t.Context(), audit.Row{Kind: audit.KindChange, Wrapper: "w", Author: audit.AuthorHuman, Action: audit.ActionWrapperUpdated}); err != nil {
				t.Fatal(err)
			}
		}
		seq, hash := l.Head()
		if err := errors.Join(l.Close(), f.Close()); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%d:%s", seq, hash)
	}
}

// verifies opens a trail and checks that it ends at head and verifies.
func verifies(t *testing.T, cfg config.Daemon, head string) {
	t.Helper()
	f, err := store.OpenAudit(cfg.AuditPath, store.AuditOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	l, err := audit.Open(audit.Options{Append: f.Append, Tail: f.Tail, Scan: f.Scan})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	r, err := l.Verify(t.Context(), head)
	if err != nil || !r.OK || r.Head != head || f.Recovered() != "" {
		t.Errorf("%+v, %v, %q; want %s", r, err, f.Recovered(), head)
	}
}

// Files that the trail has begun since the backup go out of its way, and those
// that are the same stay where they are.
func TestRestoreAcrossAuditFiles(t *testing.T) {
	cfg, add := turningHome(t)
	then := add(60)
	olderThen, err := store.OlderAudit(cfg.AuditPath)
	if err != nil || len(olderThen) < 2 {
		t.Fatalf("%q, %v", olderThen, err)
	}
	dir := filepath.Join(t.TempDir(), "b")
	b, err := daemon.BackupOffline(t.Context(), cfg, "1.2.3", dir)
	if err != nil || b.AuditHead != then || len(b.Files) != len(olderThen)+2 {
		t.Fatalf("%+v, %v", b, err)
	}
	add(60)
	olderNow, err := store.OlderAudit(cfg.AuditPath)
	if err != nil || len(olderNow) <= len(olderThen) {
		t.Fatalf("%q, %v", olderNow, err)
	}
	gone, same := 0, 0
	for _, r := range restore(t, cfg, dir) {
		if r.Gone {
			gone++
		}
		if slices.Contains(olderThen, filepath.Join(cfg.WrapDir, r.Name)) {
			same++
		}
	}
	if gone != len(olderNow)-len(olderThen) || same != 0 {
		t.Errorf("%d files of later were moved away, want %d; %d that are the same were replaced", gone, len(olderNow)-len(olderThen), same)
	}
	older, err := store.OlderAudit(cfg.AuditPath)
	if err != nil || !slices.Equal(older, olderThen) {
		t.Errorf("%q, %v; want %q", older, err, olderThen)
	}
	verifies(t, cfg, then)
	verifies(t, cfg, add(30)) // and it goes on
}

// A backup of another home, whose trail has files of the same names, replaces
// all of them.
func TestRestoreIntoAnotherHome(t *testing.T) {
	from, add := turningHome(t)
	head := add(60)
	to, addTo := turningHome(t)
	addTo(90)
	dir := filepath.Join(t.TempDir(), "b")
	if _, err := daemon.BackupOffline(t.Context(), from, "1.2.3", dir); err != nil {
		t.Fatal(err)
	}
	restore(t, to, dir)
	verifies(t, to, head)
	// And into none at all.
	home := filepath.Join(t.TempDir(), "new")
	none, _, err := config.LoadDaemon(func(name string) (string, bool) {
		return map[string]string{"HB_WRAP_HOME": home}[name], name == "HB_WRAP_HOME"
	}, "linux")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range restore(t, none, dir) {
		if r.Kept != "" || r.Gone {
			t.Errorf("%+v", r)
		}
	}
	verifies(t, none, head)
}

// What is not a whole, unchanged backup replaces nothing.
func TestRestoreRefused(t *testing.T) {
	cfg, add := turningHome(t)
	add(60)
	good := filepath.Join(t.TempDir(), "good")
	if _, err := daemon.BackupOffline(t.Context(), cfg, "1.2.3", good); err != nil {
		t.Fatal(err)
	}
	add(10)
	was := contents(t, cfg.WrapDir)
	manifest := func(change func(m *control.Backup)) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			var m control.Backup
			path := filepath.Join(dir, "manifest.json")
			text, err := os.ReadFile(path)
			if err == nil {
				err = json.Unmarshal(text, &m)
			}
			change(&m)
			text, merr := json.Marshal(m)
			if err = errors.Join(err, merr, os.WriteFile(path, text, 0o600)); err != nil {
				t.Fatal(err)
			}
		}
	}
	edit := func(name string, change func([]byte) []byte) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			path := filepath.Join(dir, name)
			data, err := os.ReadFile(path)
			if err == nil {
				err = os.WriteFile(path, change(data), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	// A damaged file that the manifest fits to is found by opening it.
	damaged := func(name string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			edit(name, func(b []byte) []byte { clear(b[2*4096:]); return b })(t, dir)
			sum := digest(t, filepath.Join(dir, name))
			manifest(func(m *control.Backup) {
				for i := range m.Files {
					if m.Files[i].Name == name {
						m.Files[i].SHA256 = sum
					}
				}
			})(t, dir)
		}
	}
	for name, c := range map[string]struct {
		spoil func(t *testing.T, dir string)
		says  string
	}{
		"no manifest":       {func(t *testing.T, dir string) { _ = os.Remove(filepath.Join(dir, "manifest.json")) }, "it has no manifest.json"},
		"half a manifest":   {edit("manifest.json", func(b []byte) []byte { return b[:len(b)/2] }), "is no manifest of a backup"},
		"another form":      {manifest(func(m *control.Backup) { m.Format = 2 }), "is of form 2"},
		"a way out":         {manifest(func(m *control.Backup) { m.Files[0].Name = "../token" }), `names "../token"`},
		"no file of a home": {manifest(func(m *control.Backup) { m.Files[0].Name = "token" }), `names "token"`},
		"a file twice":      {manifest(func(m *control.Backup) { m.Files[0] = m.Files[1] }), "or there twice"},
		"no store":          {manifest(func(m *control.Backup) { m.Files = m.Files[:len(m.Files)-1] }), "names no store.db"},
		"a changed file":    {edit("store.db", func(b []byte) []byte { b[len(b)-1]++; return b }), "store.db is not what was backed up: its SHA-256 begins with"},
		"a longer file":     {edit("audit.db", func(b []byte) []byte { return append(b, 0) }), "audit.db is not what was backed up: it has"},
		"a missing file":    {func(t *testing.T, dir string) { _ = os.Remove(filepath.Join(dir, "audit.db")) }, "audit.db is not what was backed up: it is missing"},
		"a damaged store":   {damaged("store.db"), "store.db is damaged"},
		"a damaged trail":   {damaged("audit.db"), "audit.db was damaged"},
		"a link for a file": {func(t *testing.T, dir string) {
			link(t, filepath.Join(dir, "store.db"), filepath.Join(good, "store.db"))
		}, "it is not a regular file"},
		"a file of nothing":  {edit("store.db", func([]byte) []byte { return nil }), "it has 0 bytes"},
		"not even a folder":  {func(t *testing.T, dir string) { _ = os.RemoveAll(dir) }, "is no backup"},
		"a folder in a home": {func(t *testing.T, _ string) { folder(t, cfg, "audit-00000000000000000001.db") }, "is not a regular file; nothing was changed"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "b")
			if err := os.CopyFS(dir, os.DirFS(good)); err != nil {
				t.Fatal(err)
			}
			c.spoil(t, dir)
			r, err := daemon.PrepareRestore(t.Context(), cfg, dir, restoreTime)
			var f *fault.Error
			if !errors.As(err, &f) || f.Code != "STORE_FAILED" || !strings.Contains(f.Message, c.says) || f.Hint == "" {
				t.Errorf("%v; want %q", err, c.says)
			}
			if r != nil {
				t.Error("it was prepared")
			}
		})
	}
	if err := os.Rename(filepath.Join(cfg.WrapDir, "aside"), filepath.Join(cfg.WrapDir, "audit-00000000000000000001.db")); err != nil {
		t.Fatal(err)
	}
	now := contents(t, cfg.WrapDir)
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if now[name] != was[name] {
			t.Errorf("%s was changed", name)
		}
	}
	if len(now) != len(was) {
		t.Errorf("%q", slices.Sorted(maps.Keys(now)))
	}
}

// Nothing is replaced while a daemon runs.
func TestRestoreUnderADaemon(t *testing.T) {
	w, person := backupWorld(t)
	dir := filepath.Join(t.TempDir(), "b")
	if _, err := person.Backup(t.Context(), &control.BackupRequest{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	_, err := daemon.PrepareRestore(t.Context(), w.cfg, dir, restoreTime)
	if !fault.Is(err, "STORE_FAILED") || !strings.Contains(err.Error(), "another hbrestd of this user has "+w.cfg.StorePath+" open") {
		t.Errorf("%v", err)
	}
}

// A trail that did not verify when it was backed up is said to be so, and is no
// reason to go without the wrappers.
func TestRestoreOfABrokenTrail(t *testing.T) {
	cfg, add := turningHome(t)
	add(60)
	older, err := store.OlderAudit(cfg.AuditPath)
	if err != nil || len(older) < 3 {
		t.Fatalf("%q, %v", older, err)
	}
	if err := os.Remove(older[1]); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "b")
	b, err := daemon.BackupOffline(t.Context(), cfg, "1.2.3", dir)
	if err != nil || !strings.Contains(b.AuditProblem, "are missing") {
		t.Fatalf("%+v, %v", b, err)
	}
	r, err := daemon.PrepareRestore(t.Context(), cfg, dir, restoreTime)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if r.Backup.AuditProblem != b.AuditProblem {
		t.Errorf("%q, was %q", r.Backup.AuditProblem, b.AuditProblem)
	}
}

// A restore that was decided, and of which any part was done, is completed before
// anything is opened; by a daemon too.
func TestFinishRestore(t *testing.T) {
	w, person := backupWorld(t)
	dir := filepath.Join(t.TempDir(), "b")
	b, err := person.Backup(t.Context(), &control.BackupRequest{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	w.create(get("later", "https://api.example.com/"))
	w.stop()
	decided := filepath.Join(w.cfg.WrapDir, ".restore-20261201T080000Z")
	if err := errors.Join(os.CopyFS(decided, os.DirFS(dir)), os.Chmod(decided, 0o700)); err != nil {
		t.Fatal(err)
	}
	// The trail was replaced, then the process was killed.
	if err := errors.Join(
		os.Link(w.cfg.AuditPath, w.cfg.AuditPath+".before-restore-20261201T080000Z"),
		os.Rename(filepath.Join(decided, "audit.db"), w.cfg.AuditPath),
	); err != nil {
		t.Fatal(err)
	}
	w.start()
	if m, err := person.Manifest(t.Context(), 0); err != nil || len(m.Wrappers) != 3 {
		t.Errorf("%+v, %v", m, err)
	}
	if v, err := person.AuditVerify(t.Context(), &control.AuditVerifyRequest{}); err != nil || !v.OK || v.Head != b.AuditHead {
		t.Errorf("%+v, %v", v, err)
	}
	if !strings.Contains(w.log.String(), "a restore that was interrupted is complete now") {
		t.Error("it is not said")
	}
	if _, err := os.Stat(decided); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder is left: %v", err)
	}
	if _, err := os.Stat(w.cfg.StorePath + ".before-restore-20261201T080000Z"); err != nil {
		t.Error(err)
	}
}

// A folder that no restore has made is not acted on, and how to go on is said
// where one cannot be completed.
func TestFinishRestoreOfOthers(t *testing.T) {
	cfg, add := turningHome(t)
	add(5)
	dir := filepath.Join(t.TempDir(), "b")
	if _, err := daemon.BackupOffline(t.Context(), cfg, "1.2.3", dir); err != nil {
		t.Fatal(err)
	}
	add(5)
	was := contents(t, cfg.WrapDir)
	for name, c := range map[string]struct {
		mode  fs.FileMode
		spoil func(dir string) error
		says  string // "": it is left alone
	}{
		".restore-1":                   {mode: 0o700},
		".restore-20261201T080000Z.x":  {mode: 0o700},
		".restore-20261201T080000Z-2":  {mode: 0o777, says: "has mode 0777, which lets other users in"},
		".restore-20261201T080000Z-3":  {mode: 0o700, spoil: func(dir string) error { return os.Truncate(filepath.Join(dir, "manifest.json"), 50) }, says: "is no manifest of a backup"},
		".restore-20261201T080000.tmp": {mode: 0o700},
	} {
		if runtime.GOOS == "windows" && c.mode == 0o777 {
			continue // modes say nothing there
		}
		decided := filepath.Join(cfg.WrapDir, name)
		if err := errors.Join(os.CopyFS(decided, os.DirFS(dir)), os.Chmod(decided, c.mode)); err != nil {
			t.Fatal(err)
		}
		if c.spoil != nil {
			if err := c.spoil(decided); err != nil {
				t.Fatal(err)
			}
		}
		done, err := daemon.FinishRestore(cfg)
		var f *fault.Error
		switch {
		case c.says == "" && (err != nil || len(done) > 0):
			t.Errorf("%s: %+v, %v", name, done, err)
		case c.says != "" && (!errors.As(err, &f) || !strings.Contains(f.Message, c.says) || !strings.Contains(f.Hint, "give the restore up: move "+name+" away") || !strings.HasSuffix(f.Hint, strings.TrimPrefix(name, ".restore-")+".")):
			t.Errorf("%s: %+v, %v", name, done, f)
		}
		if err := os.RemoveAll(decided); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(was, contents(t, cfg.WrapDir)); diff != "" {
			t.Fatalf("%s: something was changed", name)
		}
	}
}

// A home whose path looks like a pattern is one like any other.
func TestRestoreInAnOddHome(t *testing.T) {
	from, add := turningHome(t)
	head := add(5)
	dir := filepath.Join(t.TempDir(), "b")
	if _, err := daemon.BackupOffline(t.Context(), from, "1.2.3", dir); err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(t.TempDir(), "h[x")
	cfg, _, err := config.LoadDaemon(func(name string) (string, bool) {
		return map[string]string{"HB_WRAP_HOME": home}[name], name == "HB_WRAP_HOME"
	}, "linux")
	if err != nil {
		t.Fatal(err)
	}
	restore(t, cfg, dir)
	verifies(t, cfg, head)
	for _, name := range []string{".backup-1", ".restore-1.tmp"} {
		if err := os.Mkdir(filepath.Join(cfg.WrapDir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := daemon.BackupOffline(t.Context(), cfg, "1.2.3", filepath.Join(t.TempDir(), "b")); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(cfg.WrapDir); err != nil || slices.ContainsFunc(left, func(e fs.DirEntry) bool { return strings.HasPrefix(e.Name(), ".") }) {
		t.Errorf("after a backup: %v, %v", left, err)
	}
	if err := os.Mkdir(filepath.Join(cfg.WrapDir, ".restore-2.tmp"), 0o700); err != nil {
		t.Fatal(err)
	}
	restore(t, cfg, dir)
	entries, err := os.ReadDir(cfg.WrapDir)
	if err != nil || slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return strings.HasPrefix(e.Name(), ".") }) {
		t.Errorf("%v, %v", entries, err)
	}
}

// Two restores into a home that has nothing yet do not take each other's files
// away, and one that a daemon was quicker than changes nothing.
func TestRestoresIntoNothing(t *testing.T) {
	from, add := turningHome(t)
	head := add(5)
	dir := filepath.Join(t.TempDir(), "b")
	if _, err := daemon.BackupOffline(t.Context(), from, "1.2.3", dir); err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(t.TempDir(), "new")
	cfg, _, err := config.LoadDaemon(func(name string) (string, bool) {
		return map[string]string{"HB_WRAP_HOME": home}[name], name == "HB_WRAP_HOME"
	}, "linux")
	if err != nil {
		t.Fatal(err)
	}
	var both []*daemon.Restore
	for range 2 {
		r, err := daemon.PrepareRestore(t.Context(), cfg, dir, restoreTime)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		both = append(both, r)
	}
	if done, err := both[0].Do(); err != nil || len(done) != 2 {
		t.Fatalf("%+v, %v", done, err)
	}
	was := contents(t, cfg.WrapDir)
	if done, err := both[1].Do(); !fault.Is(err, "STORE_FAILED") || !strings.Contains(err.Error(), "nothing was changed, because "+cfg.StorePath+" is there now") {
		t.Errorf("%+v, %v", done, err)
	}
	both[1].Close()
	for name, data := range contents(t, cfg.WrapDir) {
		if was[name] != data {
			t.Errorf("%s was changed", name)
		}
	}
	verifies(t, cfg, head)
}

func digest(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func link(t *testing.T, path, to string) {
	t.Helper()
	if err := errors.Join(os.Remove(path), os.Symlink(to, path)); err != nil {
		t.Fatal(err)
	}
}

// folder moves a file of a home to the name aside and puts a folder in its place
// for the time of a test.
func folder(t *testing.T, cfg config.Daemon, name string) {
	t.Helper()
	path := filepath.Join(cfg.WrapDir, name)
	if err := errors.Join(os.Rename(path, filepath.Join(cfg.WrapDir, "aside")), os.Mkdir(path, 0o700)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(path) })
}
