//go:build unix

package token_test

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/internal/token"
)

// ordinary is the user that the permission tests run as when the test itself
// runs as root, for whom permissions mean nothing.
const ordinary = "1002"

// asOrdinaryUser reports whether the caller should go on. Run by root, it runs
// the same test of this binary again as an ordinary user, through setpriv, and
// fails with that run: a test that cannot become an ordinary user has not
// tested anything.
func asOrdinaryUser(t *testing.T) bool {
	t.Helper()
	if os.Getuid() != 0 {
		return true
	}
	setpriv, err := exec.LookPath("setpriv")
	if err != nil {
		t.Fatalf("root needs setpriv to run this test as an ordinary user: %v", err)
	}
	// A place that the other user can reach; t.TempDir is closed to it.
	dir, err := os.MkdirTemp("/tmp", "hbrest-token-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(dir, "token.test")
	copyFile(t, self, copied)
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

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.Open(from)
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

// A file with open mode, a symbolic link, a file of another user, a file that
// is not there to be read: each is refused with its reason.
func TestRead_unsafeFiles(t *testing.T) {
	if !asOrdinaryUser(t) {
		return
	}
	good := strings.Repeat("0123456789abcdef", 4)
	dir := t.TempDir()
	write := func(name string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(good), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for mode, says := range map[os.FileMode]string{
		0o600: "", 0o400: "", 0o700: "",
		0o644: "mode of the file is 0644", 0o640: "mode of the file is 0640", 0o620: "mode of the file is 0620",
		0o601: "mode of the file is 0601", 0o606: "mode of the file is 0606", 0o200: "permission denied", 0: "permission denied",
	} {
		path := write("mode"+mode.String(), mode)
		got, err := token.Read(path)
		if says == "" {
			if err != nil || got != good {
				t.Errorf("mode %04o: Read = %q, %v", mode, got, err)
			}
			continue
		}
		mustRefuse(t, mode.String(), path, err, says)
	}

	link := filepath.Join(dir, "link")
	if err := os.Symlink(write("target", 0o600), link); err != nil {
		t.Fatal(err)
	}
	_, err := token.Read(link)
	mustRefuse(t, "symbolic link", link, err, "it is a symbolic link")

	dangling := filepath.Join(dir, "dangling")
	if err := os.Symlink(filepath.Join(dir, "nowhere"), dangling); err != nil {
		t.Fatal(err)
	}
	_, err = token.Read(dangling)
	mustRefuse(t, "dangling link", dangling, err, "it is a symbolic link")

	_, err = token.Read(dir)
	mustRefuse(t, "folder", dir, err, "not a regular file")

	pipe := filepath.Join(dir, "pipe") // opening it must not wait for a writer
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = token.Read(pipe)
	mustRefuse(t, "pipe", pipe, err, "not a regular file")

	// Every unix has this file, readable for all and owned by user 0.
	_, err = token.Read("/etc/passwd")
	mustRefuse(t, "other owner", "/etc/passwd", err, "belongs to user 0")
}

// The file is 0600 and a regular file whatever the umask and whatever was
// planted at its name or at the temporary name.
func TestWrite_planted(t *testing.T) {
	if !asOrdinaryUser(t) {
		return
	}
	tok := token.New()
	for _, umask := range []int{0, 0o022, 0o077, 0o277, 0o777} {
		path := filepath.Join(privateDir(t), "token")
		old := syscall.Umask(umask)
		err := token.Write(path, tok)
		syscall.Umask(old)
		mustHold(t, path, tok, err)
	}

	dir := privateDir(t)
	victim := filepath.Join(dir, "victim")
	if err := os.WriteFile(victim, []byte("precious"), 0o644); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "token")
	for _, name := range []string{"token", ".token.new"} {
		if err := os.Symlink(victim, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	mustHold(t, path, tok, token.Write(path, tok))
	if data, _ := os.ReadFile(victim); string(data) != "precious" {
		t.Errorf("the planted link's target now holds %q", data)
	}

	// An old file that was open to others does not pass its mode on.
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	mustHold(t, path, tok, token.Write(path, tok))
}

func TestWrite_unsafeFolder(t *testing.T) {
	if !asOrdinaryUser(t) {
		return
	}
	for mode, says := range map[os.FileMode]string{
		0o700: "", 0o755: "mode of the folder is 0755", 0o770: "mode of the folder is 0770",
		0o701: "mode of the folder is 0701", 0o500: "permission denied",
	} {
		dir := filepath.Join(t.TempDir(), "wrap")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		err := token.Write(filepath.Join(dir, "token"), token.New())
		if (says == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("folder %04o: %v, want %q", mode, err, says)
		}
	}
	// A folder of user 0.
	err := token.Write("/token", token.New())
	if err == nil || !strings.Contains(err.Error(), "belongs to user 0") {
		t.Errorf("folder of another user: %v", err)
	}
}

func mustHold(t *testing.T, path, tok string, err error) {
	t.Helper()
	if err != nil {
		t.Errorf("Write: %v", err)
		return
	}
	info, err := os.Lstat(path)
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, %v, want a regular file with 0600", info.Mode(), err)
	}
	if got, err := token.Read(path); err != nil || got != tok {
		t.Errorf("Read = %q, %v, want %q", got, err, tok)
	}
}
