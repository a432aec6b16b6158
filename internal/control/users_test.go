//go:build linux || darwin

package control_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/control"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// Two ordinary users. Nobody has to exist under these numbers.
const ada, eve = 1002, 1003

// childVariable makes this test program play a part as another user: see child.
const childVariable = "HBREST_TEST_CHILD"

func TestMain(m *testing.M) {
	if part := os.Getenv(childVariable); part != "" {
		os.Exit(child(part, os.Args[1]))
	}
	os.Exit(m.Run())
}

// child plays one part at a socket and says on its output how that went.
func child(part, path string) int {
	switch part {
	case "connect": // past every check of our own client
		conn, err := net.Dial("unix", path)
		if err != nil {
			fmt.Println("dial:", err)
			return 0
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(patience))
		_, _ = io.WriteString(conn, "GET /control/status HTTP/1.1\r\nHost: hbrestd\r\nConnection: close\r\n\r\n") // the other end may be closed by now
		b, err := io.ReadAll(conn)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			fmt.Println("still open")
			return 0
		}
		line, _, _ := strings.Cut(string(b), "\r\n")
		fmt.Printf("connected, read %d bytes %s\n", len(b), line)
	case "client":
		s, err := control.NewClient(path, control.ClientOptions{Timeout: patience}).Status(context.Background())
		if err != nil {
			e := fault.From(err)
			fmt.Printf("%s: %s\nhint: %s\n", e.Code, e.Message, e.Hint)
			return 0
		}
		fmt.Println("version", s.Version)
	case "serve": // until the input ends
		l, err := control.Listen(path)
		if err != nil {
			fmt.Println("listen:", err)
			return 1
		}
		ctx, cancel := context.WithCancel(context.Background())
		go func() { _, _ = io.Copy(io.Discard, os.Stdin); cancel() }()
		fmt.Println("ready")
		if err := control.Serve(ctx, l, &fake{}, control.Options{Version: "1.2.3"}); err != nil {
			fmt.Println("serve:", err)
			return 1
		}
	}
	return 0
}

// A stage is a folder that every user may enter, and this program in it.
type stage struct {
	setpriv, program, dir string
}

// otherUsers prepares to play other users. Only root can; for an ordinary user
// it says what is shown without them.
func otherUsers(t *testing.T, insteadOfThis string) (*stage, bool) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Logf("run by user %d, who cannot become another one; %s", os.Getuid(), insteadOfThis)
		return nil, false
	}
	setpriv, err := exec.LookPath("setpriv")
	if err != nil {
		t.Fatalf("root needs setpriv to play other users: %v", err)
	}
	s := &stage{setpriv: setpriv, dir: filepath.Dir(filepath.Dir(socketPath(t)))}
	s.program = filepath.Join(s.dir, "control.test")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Chmod(s.dir, 0o755), os.WriteFile(s.program, b, 0o700), os.Chmod(s.program, 0o755)); err != nil {
		t.Fatal(err)
	}
	return s, true
}

func (s *stage) command(uid int, part string, args ...string) *exec.Cmd {
	id := fmt.Sprint(uid)
	cmd := exec.Command(s.setpriv, append([]string{"--reuid=" + id, "--regid=" + id, "--clear-groups", s.program}, args...)...)
	cmd.Dir = s.dir
	cmd.Env = []string{"PATH=/usr/bin:/bin", "TMPDIR=/tmp", childVariable + "=" + part}
	return cmd
}

func (s *stage) play(t *testing.T, uid int, part, path string) string {
	t.Helper()
	out, err := s.command(uid, part, path).CombinedOutput()
	if err != nil {
		t.Fatalf("user %d, %s: %v\n%s", uid, part, err, out)
	}
	return string(out)
}

// folder makes a folder of a user, mode 0700.
func (s *stage) folder(t *testing.T, name string, uid int) string {
	t.Helper()
	dir := filepath.Join(s.dir, name)
	if err := errors.Join(os.Mkdir(dir, 0o700), os.Chown(dir, uid, uid)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Should the folder and the socket ever be opened up, the user at the other end
// still decides: another one is closed without a byte, root is let in.
func TestOtherUsersAreRefused(t *testing.T) {
	st, ok := otherUsers(t, "TestPeer shows what a daemon of another user would decide about this one, TestListenModes that it could not come so far")
	if !ok {
		return
	}
	open := func(path string) {
		if err := errors.Join(os.Chmod(filepath.Dir(path), 0o755), os.Chmod(path, 0o666)); err != nil {
			t.Fatal(err)
		}
	}

	// Root's socket.
	f := &fake{}
	s := serveAt(t, f, filepath.Join(st.folder(t, "root", 0), "control.sock"), 0)
	if got := st.play(t, eve, "connect", s.path); !strings.Contains(got, "permission denied") {
		t.Errorf("a closed folder: %s", got)
	}
	open(s.path)
	for range 5 {
		if got := st.play(t, eve, "connect", s.path); got != "connected, read 0 bytes \n" {
			t.Errorf("another user: %s", got)
		}
	}
	if calls := f.asked(); len(calls) != 0 {
		t.Errorf("the backend was asked %q", calls)
	}
	if err := s.stop(); err != nil {
		t.Error(err)
	}
	// Five refusals make three lines: the first, second and fourth.
	if log := s.log.String(); strings.Count(log, "user 1003 may not use the control socket of user 0") != 3 || strings.Contains(log, "control: call") {
		t.Errorf("the log:\n%s", log)
	}

	// An ordinary user's socket.
	path := filepath.Join(st.folder(t, "ada", ada), "control.sock")
	daemon := st.command(ada, "serve", path)
	in, err := daemon.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := daemon.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	daemon.Stderr = &stderr
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		in.Close()
		if err := daemon.Wait(); err != nil {
			t.Errorf("the daemon: %v %s", err, &stderr)
		}
		if _, err := os.Lstat(path); !os.IsNotExist(err) {
			t.Errorf("it left its socket: %v", err)
		}
	}()
	ready := make([]byte, len("ready"))
	if _, err := io.ReadFull(out, ready); err != nil || string(ready) != "ready" {
		t.Fatalf("the daemon says %q %v", ready, err)
	}
	if got := st.play(t, ada, "client", path); got != "version 1.2.3\n" {
		t.Errorf("its own user's client: %s", got)
	}
	open(path)
	for uid, want := range map[int]string{eve: "connected, read 0 bytes \n", ada: "HTTP/1.1 200 OK", 0: "HTTP/1.1 200 OK"} {
		if got := st.play(t, uid, "connect", path); !strings.Contains(got, want) {
			t.Errorf("user %d: %s, want %q", uid, got, want)
		}
	}
	// Another user's client, even root's, keeps its data to itself.
	for _, uid := range []int{eve, 0} {
		if got := st.play(t, uid, "client", path); !strings.HasPrefix(got, "BRIDGE_BAD_ANSWER: ") || !strings.Contains(got, "belongs to user 1002, not to this user") {
			t.Errorf("user %d: %s", uid, got)
		}
	}
}

// A socket that somebody else made first gets nothing from our client, and our
// daemon does not use their folder.
func TestSquattersGetNothing(t *testing.T) {
	st, ok := otherUsers(t, "TestClientRefuses shows the refusals that need no other user")
	if !ok {
		return
	}
	received := make(chan int, 8)
	squat := func(path string, folder, socket int) {
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				n, _ := io.Copy(io.Discard, conn)
				received <- int(n)
				conn.Close()
			}
		}()
		if err := errors.Join(os.Chmod(path, 0o600), os.Chown(path, socket, socket), os.Chown(filepath.Dir(path), folder, folder)); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		name           string
		folder, socket int
		says           string
		connects       bool
	}{
		{"their folder", eve, ada, "the control socket's folder %s belongs to user 1003, not to this user (1002); nothing was sent", false},
		{"their socket", ada, eve, "the control socket %s/control.sock belongs to user 1003, not to this user (1002); nothing was sent", false},
		// The listener is root's process, whatever the file says.
		{"their process", ada, ada, "the control socket %s/control.sock is served by user 0, not by this user (1002); nothing was sent", true},
	} {
		dir := st.folder(t, strings.ReplaceAll(tc.name, " ", "-"), 0)
		path := filepath.Join(dir, "control.sock")
		squat(path, tc.folder, tc.socket)
		if tc.folder != ada { // else it could not even look
			if err := os.Chmod(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		got := st.play(t, ada, "client", path)
		if want := "BRIDGE_BAD_ANSWER: " + fmt.Sprintf(tc.says, dir) + "\n"; !strings.HasPrefix(got, want) {
			t.Errorf("%s:\n got %s\nwant %s", tc.name, got, want)
		}
		if tc.connects {
			if n := within(t, received, "the connection"); n != 0 {
				t.Errorf("%s: got %d bytes", tc.name, n)
			}
		}
	}
	if n := len(received); n != 0 {
		t.Errorf("%d more connections", n)
	}

	dir := st.folder(t, "listen", eve)
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	out, err := st.command(ada, "serve", filepath.Join(dir, "control.sock")).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "belongs to user 1003, not to this user (1002)") {
		t.Errorf("listening in another user's folder: %v %s", err, out)
	}
	if got := entries(t, dir); got != "" {
		t.Errorf("it left %q there", got)
	}
}

// Permissions mean nothing to root, so what depends on them runs as an ordinary
// user too.
func TestAsOrdinaryUser(t *testing.T) {
	st, ok := otherUsers(t, "so every test here already runs as an ordinary user")
	if !ok {
		return
	}
	cmd := st.command(ada, "", "-test.v", "-test.run=^(TestListen.*|TestClientRefuses|TestClose.*|TestPeer|TestStopIsQuick|TestEveryCallArrives)$")
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Count(string(out), "--- PASS: ") < 10 {
		t.Errorf("as user %d: %v\n%s", ada, err, out)
	}
}
