package daemon_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/internal/config"
	"github.com/hyperbolic-gateway/hb-rest/internal/control"
	"github.com/hyperbolic-gateway/hb-rest/internal/daemon"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
	"github.com/hyperbolic-gateway/hb-rest/internal/store"
)

// backupWorld is a daemon with three wrappers, a trail and an encrypted key, and
// the person who speaks to it.
func backupWorld(t *testing.T) (*world, *control.Client) {
	t.Helper()
	w := newWorld(t, nil, outbound.Options{})
	for i := range 3 {
		w.create(get(fmt.Sprintf("w%d", i), "https://api.example.com/"))
	}
	if err := os.Mkdir(filepath.Dir(daemon.KeyFile(w.cfg)), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(daemon.KeyFile(w.cfg), []byte("an encrypted key"), 0o600); err != nil {
		t.Fatal(err)
	}
	return w, control.NewClient(w.cfg.ControlSocket, control.ClientOptions{})
}

// A backup is a closed folder with closed files that are what its manifest says,
// and nothing of the making of it stays behind.
func TestBackup(t *testing.T) {
	w, person := backupWorld(t)
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.Mkdir(empty, 0o755); err != nil {
		t.Fatal(err)
	}
	// Of a process that was killed while it made one.
	if err := os.MkdirAll(filepath.Join(w.cfg.WrapDir, ".backup-123", "keyring"), 0o700); err != nil {
		t.Fatal(err)
	}
	for what, dir := range map[string]string{"new": filepath.Join(t.TempDir(), "new"), "empty": empty} {
		head, err := person.AuditHead(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		r, err := person.Backup(t.Context(), &control.BackupRequest{Dir: dir})
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if !r.OK || r.Dir != dir || r.Format != 1 || r.Version != "1.2.3" || r.Wrappers != 3 || r.Key != "file" || r.AuditHead != head.Head || r.AuditRows != head.Seq || r.AuditProblem != "" {
			t.Errorf("%s: %+v; the head was %s", what, r, head.Head)
		}
		var m control.Backup
		text, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
		if err != nil || json.Unmarshal(text, &m) != nil || m.AuditHead != r.AuditHead {
			t.Errorf("%s: %s, %v", what, text, err)
		}
		var names []string
		for _, f := range m.Files {
			names = append(names, f.Name)
			data, err := os.ReadFile(filepath.Join(dir, f.Name))
			sum := sha256.Sum256(data)
			if err != nil || f.SHA256 != hex.EncodeToString(sum[:]) || f.Bytes != int64(len(data)) {
				t.Errorf("%s: %+v, %v", what, f, err)
			}
		}
		if !slices.Equal(names, []string{"audit.db", "keyring/master", "store.db"}) {
			t.Errorf("%s: %q", what, names)
		}
		err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			want := map[bool]fs.FileMode{true: 0o700, false: 0o600}[e.IsDir()]
			info, err := e.Info()
			if err == nil && info.Mode().Perm() != want {
				t.Errorf("%s: %s has mode %v", what, path, info.Mode().Perm())
			}
			if strings.HasPrefix(e.Name(), ".") {
				t.Errorf("%s: %s is left", what, path)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
	left, err := filepath.Glob(filepath.Join(w.cfg.WrapDir, ".*"))
	if err != nil || len(left) > 0 {
		t.Errorf("%q, %v", left, err)
	}
}

// What cannot become a backup is refused, and nothing that is there is touched.
func TestBackupRefused(t *testing.T) {
	w, person := backupWorld(t)
	dir := t.TempDir()
	full := filepath.Join(dir, "full")
	if err := os.Mkdir(full, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{filepath.Join(full, "mine"), filepath.Join(dir, "file")} {
		if err := os.WriteFile(name, []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(t.TempDir(), filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(w.cfg.WrapDir, filepath.Join(dir, "home")); err != nil {
		t.Fatal(err)
	}
	for name, says := range map[string]string{
		"full": "is not empty: it has mine", "file": "is there already, and is no folder", "link": "is there already, and is no folder",
		"home/b": "where hbrestd keeps and replaces files of its own", "home/.restore-20261201T080000Z": "where hbrestd keeps", "home/keyring/b": "where hbrestd keeps",
		"no/folder": "the folder that " + filepath.Join(dir, "no", "folder") + " would be in is not there",
	} {
		_, err := person.Backup(t.Context(), &control.BackupRequest{Dir: filepath.Join(dir, name)})
		var f *fault.Error
		if !errors.As(err, &f) || f.Code != "BAD_REQUEST" || f.Field != "dir" || !strings.Contains(f.Message, says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	entries, err := os.ReadDir(full)
	if err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
	// The bridge has no such route, whatever it is called there.
	for _, path := range []string{"/control/backup", "/wrap/backup"} {
		if a := w.post(path, fmt.Sprintf(`{"dir":%q}`, filepath.Join(dir, "b"))); a.HTTP != 404 || a.Code != "ROUTE_NOT_FOUND" {
			t.Errorf("%s: %s", path, a.Raw)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "b")); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the bridge made a backup")
	}
	// A damaged store gives no backup, and no folder that looks like one.
	size, err := os.Stat(w.cfg.StorePath)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(w.cfg.StorePath, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const roots = 2 * 4096
	if _, err := f.WriteAt(make([]byte, size.Size()-roots), roots); err != nil {
		t.Fatal(err)
	}
	_, err = person.Backup(t.Context(), &control.BackupRequest{Dir: filepath.Join(dir, "damaged")})
	var said *fault.Error
	if !errors.As(err, &said) || said.Code != "STORE_FAILED" || !strings.HasPrefix(said.Message, w.cfg.StorePath+" is damaged") || !strings.Contains(said.Hint, "hbrestd doctor") {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "damaged")); !errors.Is(err, fs.ErrNotExist) {
		t.Error("something is left of it")
	}
}

// One that is interrupted leaves nothing, and gives an empty folder back empty.
func TestBackupInterrupted(t *testing.T) {
	w, _ := backupWorld(t)
	w.stop()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := t.TempDir()
	for _, name := range []string{filepath.Join(dir, "new"), t.TempDir()} {
		if _, err := daemon.BackupOffline(ctx, w.cfg, "1.2.3", name); err == nil {
			t.Errorf("%s was written", name)
		}
		if entries, err := os.ReadDir(name); len(entries) > 0 || err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s has %v, %v", name, entries, err)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("%v, %v", entries, err)
	}
	if left, err := filepath.Glob(filepath.Join(w.cfg.WrapDir, ".*")); err != nil || len(left) > 0 {
		t.Errorf("%q, %v", left, err)
	}
}

// Several at once: each is whole, or is told that another is under way.
func TestBackupsAtOnce(t *testing.T) {
	_, person := backupWorld(t)
	dir := t.TempDir()
	var whole, busy atomic.Int64
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			to := filepath.Join(dir, fmt.Sprint(i))
			_, err := person.Backup(context.Background(), &control.BackupRequest{Dir: to})
			switch {
			case err == nil:
				whole.Add(1)
				if _, err := store.CheckCopy(filepath.Join(to, "store.db")); err != nil {
					t.Error(err)
				}
			case fault.Is(err, "BUSY"):
				busy.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	all.Wait()
	if whole.Load() == 0 || whole.Load()+busy.Load() != 8 {
		t.Errorf("%d whole, %d told", whole.Load(), busy.Load())
	}
}

// Several without a daemon: none removes what another puts together.
func TestBackupsOfflineAtOnce(t *testing.T) {
	cfg, add := turningHome(t)
	add(60)
	dir := t.TempDir()
	var whole atomic.Int64
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			to := filepath.Join(dir, fmt.Sprint(i))
			b, err := daemon.BackupOffline(context.Background(), cfg, "1.2.3", to)
			if err != nil {
				if !fault.Is(err, "STORE_FAILED") || !strings.Contains(err.Error(), "another hbrestd of this user has "+cfg.StorePath+" open") {
					t.Error(err)
				}
				return
			}
			whole.Add(1)
			if entries, err := os.ReadDir(to); err != nil || len(entries) != len(b.Files)+1 || len(b.Files) < 3 {
				t.Errorf("%v, %v; %+v", entries, err, b.Files)
			}
		})
	}
	all.Wait()
	if whole.Load() == 0 {
		t.Error("none was written")
	}
}

// Without a daemon the same is copied; with one, it is said that it runs.
func TestBackupOffline(t *testing.T) {
	w, person := backupWorld(t)
	dir := t.TempDir()
	online, err := person.Backup(t.Context(), &control.BackupRequest{Dir: filepath.Join(dir, "online")})
	if err != nil {
		t.Fatal(err)
	}
	_, err = daemon.BackupOffline(t.Context(), w.cfg, "1.2.3", filepath.Join(dir, "busy"))
	if !fault.Is(err, "STORE_FAILED") || !strings.Contains(err.Error(), "another hbrestd") {
		t.Errorf("%v", err)
	}
	w.stop()
	r, err := daemon.BackupOffline(t.Context(), w.cfg, "1.2.3", filepath.Join(dir, "offline"))
	if err != nil || r.Wrappers != 3 || r.AuditHead != online.AuditHead || r.Revision != online.Revision || r.Key != "file" || len(r.Files) != 3 {
		t.Errorf("%+v, %v; online %+v", r, err, online)
	}
	if _, err := store.CheckCopy(filepath.Join(dir, "offline", "store.db")); err != nil {
		t.Error(err)
	}
	home := filepath.Join(dir, "nothing")
	none, _, err := config.LoadDaemon(func(name string) (string, bool) {
		return map[string]string{"HB_WRAP_HOME": home}[name], name == "HB_WRAP_HOME"
	}, "linux")
	if err != nil {
		t.Fatal(err)
	}
	_, err = daemon.BackupOffline(t.Context(), none, "1.2.3", filepath.Join(dir, "none"))
	if !fault.Is(err, "STORE_FAILED") || !strings.Contains(err.Error(), "there is nothing to copy") {
		t.Errorf("%v", err)
	}
}
