package e2e

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/internal/soak"
)

// Promise 29, the way back: a restore is killed at each call that names, links,
// removes, opens or syncs a file. The daemon that starts next has all of before or all
// of the backup (wrappers, trail and encrypted key), verifies, and leaves no
// folder of the restore; what was replaced is kept to the byte.
func TestKilledDuringRestore(t *testing.T) {
	t.Parallel()
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("needs strace")
	}
	dir, err := build()
	if err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(t.TempDir(), "home")
	saved := filepath.Join(t.TempDir(), "saved")
	wrap := func(home string) string { return filepath.Join(home, "wrap") }
	run := func(args ...string) string {
		t.Helper()
		out, errs, code := hbrestd(t, home, args...)
		if code != 0 {
			t.Fatalf("%q: exit code %d\n%s%s", args, code, out, errs)
		}
		return out
	}
	save := func(id string) {
		t.Helper()
		path := filepath.Join(t.TempDir(), id+".json")
		if err := os.WriteFile(path, document(id, id), 0o600); err != nil {
			t.Fatal(err)
		}
		run("wrapper", "apply", path)
	}
	key := func(text string) {
		t.Helper()
		path := filepath.Join(wrap(home), "keyring", "master")
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	state := func(home string) string {
		t.Helper()
		list, errs, code := hbrestd(t, home, "wrapper", "list")
		if code != 0 {
			t.Fatalf("wrapper list: %s", errs)
		}
		var ids []string
		for _, line := range strings.Split(strings.TrimSpace(list), "\n") {
			id, _, _ := strings.Cut(line, "\t")
			ids = append(ids, id)
		}
		rows := verified(t, home)
		k, err := os.ReadFile(filepath.Join(wrap(home), "keyring", "master"))
		if err != nil {
			t.Error(err)
		}
		return fmt.Sprintf("%q, %d rows, %s", ids, rows, k)
	}
	p := startDaemon(t, home)
	save("a.one")
	key("the first key")
	run("backup", saved)
	backed := state(home)
	save("a.two")
	key("the second key")
	before := state(home)
	p.kill()
	if err := os.Remove(filepath.Join(home, "control.sock")); err != nil { // CopyFS takes none
		t.Fatal(err)
	}
	stored, err := os.ReadFile(filepath.Join(wrap(home), "store.db"))
	if err != nil {
		t.Fatal(err)
	}

	kills, back, forth, whole, wrong := 0, 0, 0, 0, 0
	kill := func(call string, n int) (killed bool) {
		trial := filepath.Join(t.TempDir(), "home")
		if err := os.CopyFS(trial, os.DirFS(home)); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.Chmod(trial, 0o700), os.Chmod(wrap(trial), 0o700)); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(strace, "-f", "-qq", "-o", os.DevNull, "-e", "trace="+call, "-e", fmt.Sprintf("inject=%s:signal=KILL:when=%d", call, n),
			filepath.Join(dir, "hbrestd"), "restore", saved, "--yes")
		cmd.Env = []string{"HB_WRAP_HOME=" + trial, "GOMAXPROCS=1"}
		var said strings.Builder
		cmd.Stdout, cmd.Stderr = &said, &said
		err := cmd.Run()
		if strings.Contains(said.String(), "PTRACE") {
			t.Skip("this machine does not let strace trace")
		}
		p := startDaemon(t, trial)
		got := state(trial)
		p.kill()
		kept, _ := filepath.Glob(filepath.Join(wrap(trial), "store.db.before-restore-*"))
		entries, rerr := os.ReadDir(wrap(trial))
		if rerr != nil {
			t.Fatal(rerr)
		}
		decided := slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
			return strings.HasPrefix(e.Name(), ".restore-") && !strings.HasSuffix(e.Name(), ".tmp")
		})
		ok := !decided
		switch got {
		case before:
			back++
			ok = ok && err != nil && len(kept) == 0
		case backed:
			forth++
			if err == nil {
				whole++
			}
			ok = ok && len(kept) == 1
			if ok {
				data, err := os.ReadFile(kept[0])
				ok = err == nil && string(data) == string(stored)
			}
		default:
			ok = false
		}
		if !ok {
			wrong++
			t.Errorf("killed at %s %d (%v): %s, kept %q, undone %v\n%s", call, n, err, got, kept, decided, said.String())
		}
		if err != nil {
			kills++
		}
		return err != nil
	}
	// Go's threads take turns, and strace counts the calls of each: the numbers
	// are not exact, but every one of them is a place of its own.
	for _, call := range strings.Fields("renameat linkat unlinkat mkdirat fsync pwrite64 openat")[:soak.Rounds(2, 7)] {
		for n := 1; kill(call, n); n += soak.Rounds(2, 1) {
		}
	}
	if back == 0 || forth == whole {
		t.Errorf("%d kills before anything was decided and %d after: both must happen", back, forth-whole)
	}
	soak.Measured(t, "a restore killed at %d calls: %d times all of before, %d times all of the backup, %d times anything else", kills, back, forth-whole, wrong)
}
