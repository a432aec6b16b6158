//go:build unix

package config_test

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/internal/config"
)

const ordinary = "1002"

// asOrdinaryUser reports whether the caller should go on. Run by root, for whom
// permissions mean nothing, it runs the same test of this binary again as an
// ordinary user, and fails with it, or because it cannot.
func asOrdinaryUser(t *testing.T) bool {
	t.Helper()
	if os.Getuid() != 0 {
		return true
	}
	setpriv, err := exec.LookPath("setpriv")
	if err != nil {
		t.Fatalf("root needs setpriv to run this test as an ordinary user: %v", err)
	}
	dir, err := os.MkdirTemp("/tmp", "hbrest-config-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(dir, "config.test")
	copyOwnBinary(t, copied)
	cmd := exec.Command(setpriv, "--reuid="+ordinary, "--regid="+ordinary, "--clear-groups",
		copied, "-test.v", "-test.run=^"+t.Name()+"$")
	cmd.Dir = dir
	cmd.Env = []string{"PATH=/usr/bin:/bin", "TMPDIR=/tmp"}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("as user %s: %v\n%s", ordinary, err, out)
	}
	return false
}

func copyOwnBinary(t *testing.T, to string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	in, err := os.Open(self)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
	if err := out.Chmod(0o755); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestEnsureDirs(t *testing.T) {
	if !asOrdinaryUser(t) {
		return
	}
	mode := func(path string) os.FileMode {
		info, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Mode()
	}
	for _, umask := range []int{0, 0o022, 0o077, 0o277} {
		base := t.TempDir()
		if umask == 0o277 { // this one would keep us out of parents that MkdirAll makes
			if err := os.MkdirAll(filepath.Join(base, "state"), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		home := filepath.Join(base, "state", "hbrestd")
		d := config.Daemon{Home: home, WrapDir: filepath.Join(home, "wrap")}
		old := syscall.Umask(umask)
		err := config.EnsureDirs(d)
		syscall.Umask(old)
		if err != nil {
			t.Fatalf("umask %04o: %v", umask, err)
		}
		for _, dir := range []string{d.Home, d.WrapDir} {
			if got := mode(dir); got != os.ModeDir|0o700 {
				t.Errorf("umask %04o: %s has mode %v", umask, dir, got)
			}
		}
		if umask == 0 {
			if got := mode(filepath.Dir(home)); got != os.ModeDir|0o700 {
				t.Errorf("the parent has mode %v, want 0700", got)
			}
		}
		if err := config.EnsureDirs(d); err != nil {
			t.Errorf("a second time: %v", err)
		}
	}

	for perm, says := range map[os.FileMode]string{
		0o755: "has mode 0755, which lets other users in; run: chmod 700 '",
		0o750: "has mode 0750", 0o710: "has mode 0710", 0o701: "has mode 0701", 0o704: "has mode 0704", 0o777: "has mode 0777",
		0o500: "has mode 0500, which keeps its owner out; run: chmod 700 '",
	} {
		dir := filepath.Join(t.TempDir(), "d")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, perm); err != nil {
			t.Fatal(err)
		}
		mustRefuse(t, dir, says)
		if got := mode(dir).Perm(); got != perm {
			t.Errorf("a refused folder was changed from %04o to %04o", perm, got)
		}
	}

	// The command is one word of a shell whatever the path holds, and none is
	// offered for a folder that the system needs open.
	base := t.TempDir()
	for _, c := range []struct {
		name, says string
		mode       os.FileMode
	}{
		{"it's $(x)", `; run: chmod 700 '` + base + `/it'\''s $(x)'`, 0o755},
		{"sticky", "has mode 0777, which lets other users in, and others need it; set HB_WRAP_HOME to a folder of its own", 0o777 | os.ModeSticky},
	} {
		dir := filepath.Join(base, c.name)
		if err := errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, c.mode)); err != nil {
			t.Fatal(err)
		}
		mustRefuse(t, dir, c.says)
	}

	target, link, file := filepath.Join(base, "target"), filepath.Join(base, "link"), filepath.Join(base, "file")
	if err := os.Mkdir(target, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	mustRefuse(t, link, "is a symbolic link; set HB_WRAP_HOME to the folder that it leads to")
	mustRefuse(t, file, "is not a folder")
	mustRefuse(t, filepath.Join(file, "below"), "not a directory")
	mustRefuse(t, "/etc", "belongs to user 0, not to this user")
	mustRefuse(t, "/etc/hbrestd-test", "permission denied; make it yourself, or set HB_WRAP_HOME to one that this user can make")
	mustRefuse(t, "relative", "is not an absolute path")
	mustRefuse(t, "", "is not an absolute path")
}

func mustRefuse(t *testing.T, path, says string) {
	t.Helper()
	err := config.EnsureDir(path)
	if err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), path) {
		t.Errorf("EnsureDir(%q) = %v, want an error that says %q", path, err, says)
	}
}
