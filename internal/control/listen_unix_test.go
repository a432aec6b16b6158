//go:build unix

package control_test

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/internal/control"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

func mode(t *testing.T, path string) fs.FileMode {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode()
}

func listen(t *testing.T, path string) *control.Listener {
	t.Helper()
	l, err := control.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func entries(t *testing.T, dir string) string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

// Whatever the umask, the socket is 0600 in a folder of 0700, nothing else is
// left there, and closing takes it away.
func TestListenModes(t *testing.T) {
	for _, umask := range []int{0, 0o022, 0o077, 0o177, 0o777} {
		path := socketPath(t)
		dir := filepath.Dir(path)
		old := syscall.Umask(umask)
		l, err := control.Listen(path)
		syscall.Umask(old)
		if err != nil {
			t.Fatalf("umask %04o: %v", umask, err)
		}
		if got := mode(t, dir); got != fs.ModeDir|0o700 {
			t.Errorf("umask %04o: the folder has mode %v", umask, got)
		}
		if got := mode(t, path); got != fs.ModeSocket|0o600 {
			t.Errorf("umask %04o: the socket has mode %v", umask, got)
		}
		if got := entries(t, dir); got != "control.sock" {
			t.Errorf("umask %04o: the folder holds %q", umask, got)
		}
		if a := l.Addr(); a.Network() != "unix" || a.String() != path || l.Path() != path {
			t.Errorf("the address is %s %s, the path %s", a.Network(), a, l.Path())
		}
		for range 2 {
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		}
		if got := entries(t, dir); got != "" {
			t.Errorf("umask %04o: closing left %q", umask, got)
		}
	}
}

// A folder that is missing is made, with its parents; one that others can enter
// is refused with the command that mends it, and not changed.
func TestListenFolder(t *testing.T) {
	deep := filepath.Join(filepath.Dir(socketPath(t)), "a", "b", "control.sock")
	listen(t, deep)
	for _, dir := range []string{filepath.Dir(deep), filepath.Dir(filepath.Dir(deep))} {
		if got := mode(t, dir); got != fs.ModeDir|0o700 {
			t.Errorf("%s has mode %v", dir, got)
		}
	}

	for perm, says := range map[fs.FileMode]string{
		0o701: "lets other users in", 0o710: "lets other users in", 0o755: "lets other users in", 0o722: "lets other users in",
		0o500: "keeps its owner out", 0o600: "keeps its owner out",
	} {
		path := socketPath(t)
		dir := filepath.Dir(path)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, perm); err != nil {
			t.Fatal(err)
		}
		mustNotListen(t, path, says, "Run: chmod 700 '"+dir+"'")
		if got := mode(t, dir).Perm(); got != perm {
			t.Errorf("a refused folder was changed from %04o to %04o", perm, got)
		}
	}

	base := filepath.Dir(filepath.Dir(socketPath(t)))
	target, link, file := filepath.Join(base, "t"), filepath.Join(base, "l"), filepath.Join(base, "f")
	if err := errors.Join(os.Mkdir(target, 0o700), os.Symlink(target, link), os.WriteFile(file, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	mustNotListen(t, filepath.Join(link, "control.sock"), "is not a folder but a symbolic link", "Move it away")
	mustNotListen(t, filepath.Join(file, "control.sock"), "is not a folder but a file", "Move it away")
	mustNotListen(t, filepath.Join(file, "d", "control.sock"), "not a directory", "HB_WRAP_HOME")
	mustNotListen(t, "control.sock", "is not an absolute path", "HB_WRAP_HOME")

	long := filepath.Join(base, "long") + "/"
	long += strings.Repeat("x", 103-len(long)) // what every system can connect to
	listen(t, long)
	if c, err := net.Dial("unix", long); err != nil {
		t.Error(err)
	} else {
		c.Close()
	}
	mustNotListen(t, long+"x", "has 104 bytes, over 103", "a shorter path")
}

func mustNotListen(t *testing.T, path, says, hint string) {
	t.Helper()
	l, err := control.Listen(path)
	if err == nil {
		l.Close()
		t.Errorf("%s: no error, want one that says %q", path, says)
		return
	}
	e := fault.From(err)
	if e.Code == "INTERNAL" || !strings.Contains(e.Message, says) || !strings.Contains(e.Hint, hint) || e.Retryable {
		t.Errorf("%s: %v\nhint %q\nwant %q, hint %q", path, err, e.Hint, says, hint)
	}
}

// Only a socket that nobody answers on is replaced.
func TestListenReplaces(t *testing.T) {
	path := socketPath(t)
	first := listen(t, path)
	mustNotListen(t, path, "another hbrestd is already running: it answers on "+path, "hbrestd status")
	if c, err := net.Dial("unix", path); err != nil { // and the first one is still there
		t.Fatal(err)
	} else {
		c.Close()
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}

	stale := func() {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		l.SetUnlinkOnClose(false)
		l.Close()
	}
	stale() // as kill -9 leaves it
	second := listen(t, path)
	if c, err := net.Dial("unix", path); err != nil {
		t.Errorf("after the replacement: %v", err)
	} else {
		c.Close()
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}

	// One that was killed between the bind and the rename.
	if err := os.WriteFile(filepath.Join(filepath.Dir(path), ".new.sock"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := listen(t, path).Close(); err != nil {
		t.Error(err)
	}
	if got := entries(t, filepath.Dir(path)); got != "" {
		t.Errorf("the folder holds %q", got)
	}

	for what, put := range map[string]func() error{
		"a file":          func() error { return os.WriteFile(path, []byte("mine"), 0o600) },
		"a folder":        func() error { return os.Mkdir(path, 0o700) },
		"a symbolic link": func() error { return os.Symlink("/dev/null", path) },
		"a special file":  func() error { return syscall.Mkfifo(path, 0o600) },
	} {
		if err := put(); err != nil {
			t.Fatal(err)
		}
		before := mode(t, path)
		mustNotListen(t, path, "is not a socket but "+what+"; it is left alone", "Move it away")
		if mode(t, path) != before {
			t.Errorf("%s was changed", what)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}

	datagram, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer datagram.Close()
	mustNotListen(t, path, "it cannot be found out whether another hbrestd answers", "remove that file")
}

// A listener that is full, or whose process is stopped, is a running one.
func TestListenBusy(t *testing.T) {
	path := socketPath(t)
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	if err := errors.Join(syscall.Bind(fd, &syscall.SockaddrUnix{Name: path}), syscall.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	for range 3 { // nobody accepts: the queue is full after one or two
		if c, err := net.Dial("unix", path); err == nil {
			defer c.Close()
		}
	}
	mustNotListen(t, path, "already running", "hbrestd status")
}

// Of many that start at the same moment over a stale socket, one wins, and its
// socket stays.
func TestListenRace(t *testing.T) {
	for range 20 {
		path := socketPath(t)
		if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		l.SetUnlinkOnClose(false)
		l.Close()
		var mu sync.Mutex
		var won []*control.Listener
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				l, err := control.Listen(path)
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					won = append(won, l)
				} else if !strings.Contains(err.Error(), "already running") {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if len(won) != 1 {
			t.Fatalf("%d listeners won", len(won))
		}
		if c, err := net.Dial("unix", path); err != nil {
			t.Errorf("the winner does not answer: %v", err)
		} else {
			c.Close()
		}
		if err := won[0].Close(); err != nil {
			t.Error(err)
		}
	}
}

// Closing removes the socket only while it is the one that Listen made.
func TestCloseLeavesWhatIsNotOurs(t *testing.T) {
	path := socketPath(t)
	l := listen(t, path)
	if err := errors.Join(os.Remove(path), os.WriteFile(path, []byte("mine"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "mine" {
		t.Errorf("the file is gone: %q %v", b, err)
	}

	path = socketPath(t)
	first := listen(t, path)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	listen(t, path) // a second daemon after somebody removed the socket
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	if c, err := net.Dial("unix", path); err != nil {
		t.Errorf("the second daemon's socket is gone: %v", err)
	} else {
		c.Close()
	}

	path = socketPath(t)
	l = listen(t, path)
	if err := os.RemoveAll(filepath.Dir(path)); err != nil { // the folder too
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// The client speaks only over a socket that is safely this user's.
func TestClientRefuses(t *testing.T) {
	f := &fake{}
	s := serve(t, f)
	dir := filepath.Dir(s.path)
	missing := socketPath(t)
	refused := filepath.Join(filepath.Dir(socketPath(t)), "control.sock")
	if err := os.Mkdir(filepath.Dir(refused), 0o700); err != nil {
		t.Fatal(err)
	}
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: refused, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	stale.SetUnlinkOnClose(false)
	stale.Close()
	if err := os.Chmod(refused, 0o600); err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(filepath.Dir(refused), "other.sock")
	file := filepath.Join(filepath.Dir(refused), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(filepath.Dir(refused), "link")
	if err := os.Symlink(s.path, link); err != nil {
		t.Fatal(err)
	}

	chmod := func(path string, perm fs.FileMode) {
		if err := os.Chmod(path, perm); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		name       string
		path       string
		sock, dir  fs.FileMode
		code       fault.Code
		says, hint string
	}{
		{"no folder", missing, 0o600, 0o700, "BRIDGE_UNREACHABLE", "no daemon: there is no control socket " + missing, "hbrestd run"},
		{"no socket", empty, 0o600, 0o700, "BRIDGE_UNREACHABLE", "no daemon: there is no control socket " + empty, "hbrestd run"},
		{"stale", refused, 0o600, 0o700, "BRIDGE_UNREACHABLE", "no daemon: nobody answers on the control socket " + refused, "hbrestd run"},
		{"a file", file, 0o600, 0o700, "BRIDGE_BAD_ANSWER", file + " is not a socket but a file; nothing was sent", "Move it away"},
		{"a link", link, 0o600, 0o700, "BRIDGE_BAD_ANSWER", "is not a socket but a symbolic link", "Move it away"},
		{"open folder", s.path, 0o600, 0o755, "BRIDGE_BAD_ANSWER", "has mode 0755, which lets other users in; nothing was sent", "Run: chmod 700 '" + dir + "'"},
		{"writable folder", s.path, 0o600, 0o730, "BRIDGE_BAD_ANSWER", "has mode 0730", "Run: chmod 700 '" + dir + "'"},
		{"open socket", s.path, 0o666, 0o700, "BRIDGE_BAD_ANSWER", "has mode 0666 instead of 0600", "Run: chmod 600 '" + s.path + "'"},
		{"closed socket", s.path, 0o400, 0o700, "BRIDGE_BAD_ANSWER", "has mode 0400 instead of 0600", "Run: chmod 600 '" + s.path + "'"},
		{"good", s.path, 0o600, 0o700, "", "", ""},
	} {
		chmod(s.path, tc.sock)
		chmod(dir, tc.dir)
		_, err := control.NewClient(tc.path, control.ClientOptions{}).AuditHead(context.Background())
		if tc.code == "" {
			if err != nil {
				t.Errorf("%s: %v", tc.name, err)
			}
			continue
		}
		e := fault.From(err)
		if err == nil || e.Code != tc.code || !strings.Contains(e.Message, tc.says) || !strings.Contains(e.Hint, tc.hint) || e.Retryable != (tc.code == "BRIDGE_UNREACHABLE") {
			t.Errorf("%s: %v\nhint: %s\nwant %s %q, hint %q", tc.name, err, e.Hint, tc.code, tc.says, tc.hint)
		}
	}
	if calls := f.asked(); len(calls) != 1 {
		t.Errorf("the backend was asked %q", calls)
	}
	if log := s.log.String(); strings.Count(log, "control: call") != 1 {
		t.Errorf("more than one request arrived:\n%s", log)
	}
}
