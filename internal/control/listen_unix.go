//go:build unix

package control

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

const (
	network     = "unix"
	probeTime   = time.Second     // for a connection to a socket on the same machine
	lockTime    = 2 * time.Second // another hbrestd holds the lock for a few milliseconds
	lockPause   = 10 * time.Millisecond
	newborn     = ".new.sock" // shorter than "control.sock": the kernels limit the path
	maxPath     = 103         // bytes; macOS' limit, Linux has 107
	socketMode  = 0o600
	folderMode  = 0o700
	othersBits  = 0o077
	ownersBits  = 0o700
	socketsBits = 0o600
)

// Listen makes the socket at path, an absolute path of at most 103 bytes. Its
// folder is made with mode 0700 if it is missing; one that is there must belong
// to this user and be closed to everyone else. Another daemon that answers on
// path is a fault, and so is anything there that is not a socket; a socket that
// nobody answers on is replaced.
//
// Everything happens inside the closed folder, so the moment between the bind,
// whose mode depends on the umask of the whole process, and the chmod is
// visible to nobody else. The socket also gets its final name only after the
// chmod: a client of the same user never sees it with another mode. A lock on
// the folder keeps two daemons from replacing each other's sockets.
func Listen(path string) (*Listener, error) {
	if !filepath.IsAbs(path) {
		return nil, cannotListen("Set HB_WRAP_HOME to an absolute path.", "the control socket %q is not an absolute path", path)
	}
	if len(path) > maxPath { // a rename could make it, but nobody could connect
		return nil, cannotListen("Set HB_WRAP_HOME to a folder with a shorter path.", "the path of the control socket has %d bytes, over %d: %s", len(path), maxPath, path)
	}
	dir := filepath.Dir(path)
	if err := ensureFolder(dir); err != nil {
		return nil, err
	}
	unlock, err := lockFolder(dir)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := vacant(path); err != nil {
		return nil, err
	}
	inner, file, err := bind(filepath.Join(dir, newborn), path)
	if err != nil {
		return nil, cannotListen("Check the folder's permissions and free disk space; set HB_WRAP_HOME to use another folder.",
			"listening on %s: %v", path, reason(err)).With(fault.Cause(err))
	}
	return &Listener{
		inner:   inner,
		path:    path,
		admit:   func(c net.Conn) error { return admitOwner(c, os.Geteuid()) },
		release: func() error { return removeOwn(path, file) },
	}, nil
}

// bind listens under a passing name, sets the mode, and moves the socket to its
// place. It returns the file as a witness for removeOwn.
func bind(passing, path string) (_ net.Listener, file fs.FileInfo, err error) {
	// One that died here left its file; we hold the lock, so nobody uses it.
	if err := os.Remove(passing); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	l, err := net.ListenUnix(network, &net.UnixAddr{Name: passing, Net: network})
	if err != nil {
		return nil, nil, err
	}
	l.SetUnlinkOnClose(false) // it would remove by name, whosever the file is by then
	defer func() {
		if err != nil {
			_ = l.Close()
			_ = os.Remove(passing)
		}
	}()
	if err := os.Chmod(passing, socketMode); err != nil {
		return nil, nil, err
	}
	if file, err = os.Lstat(passing); err != nil {
		return nil, nil, err
	}
	return l, file, os.Rename(passing, path)
}

// vacant reports whether path may be taken: nothing is there, or a socket that
// nobody answers on.
func vacant(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return cannotListen("Check the permissions of its folder.", "looking at %s: %v", path, reason(err)).With(fault.Cause(err))
	case info.Mode().Type() != fs.ModeSocket:
		return cannotListen("Move it away, or set HB_WRAP_HOME to use another folder.",
			"%s is not a socket but %s; it is left alone", path, kindOfFile(info))
	}
	c, err := net.DialTimeout(network, path, probeTime)
	switch {
	case err == nil:
		c.Close()
		return alreadyRunning(path)
	case errors.Is(err, unix.ECONNREFUSED), errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, unix.EAGAIN), errors.Is(err, os.ErrDeadlineExceeded):
		// It listens, but is too busy, or stopped, to take one more.
		return alreadyRunning(path)
	}
	return cannotListen("If no hbrestd runs, remove that file.", "it cannot be found out whether another hbrestd answers on %s: %v", path, reason(err)).
		With(fault.Cause(err))
}

// ensureFolder makes dir, and its missing parents, with mode 0700, or checks
// the one that is there. It is refused and not silently tightened: others may
// have put something into it, or rely on reading it.
func ensureFolder(dir string) error {
	err := os.Mkdir(dir, folderMode)
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(filepath.Dir(dir), folderMode); err == nil {
			err = os.Mkdir(dir, folderMode)
		}
	}
	switch {
	case err == nil:
		err = os.Chmod(dir, folderMode) // the umask may have taken bits away
	case errors.Is(err, fs.ErrExist):
		err = nil
	}
	if err != nil {
		return cannotListen("Set HB_WRAP_HOME to a folder that this user can write to.", "making the folder %s: %v", dir, reason(err)).
			With(fault.Cause(err))
	}
	return checkFolder(dir, func(hint, why string) *fault.Error { return cannotListen(hint, "%s", why) })
}

// checkFolder refuses a folder that is not this user's alone. refuse makes the
// fault, which differs between the two ends.
func checkFolder(dir string, refuse func(hint, why string) *fault.Error) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return refuse("Check the permissions of the folders above it.", fmt.Sprintf("the control socket's folder %s cannot be checked: %v", dir, reason(err))).
			With(fault.Cause(err))
	}
	if !info.IsDir() {
		return refuse("Move it away, or set HB_WRAP_HOME to use another folder.",
			fmt.Sprintf("the control socket's folder %s is not a folder but %s", dir, kindOfFile(info)))
	}
	if owner, me := ownerOf(info), os.Geteuid(); owner != me {
		return refuse("Run hbrestd as one and the same user, or set HB_WRAP_HOME to a folder of this one.",
			fmt.Sprintf("the control socket's folder %s belongs to user %d, not to this user (%d)", dir, owner, me))
	}
	perm := info.Mode().Perm()
	fix := "Run: chmod 700 " + shellQuote(dir)
	if info.Mode()&fs.ModeSticky != 0 || filepath.Dir(dir) == "/" { // to close it would be the end of the system that it belongs to
		fix = "Set HB_WRAP_HOME to a folder of its own."
	}
	if perm&othersBits != 0 {
		return refuse(fix, fmt.Sprintf("the control socket's folder %s has mode %04o, which lets other users in", dir, perm))
	}
	if perm&ownersBits != ownersBits {
		return refuse(fix, fmt.Sprintf("the control socket's folder %s has mode %04o, which keeps its owner out", dir, perm))
	}
	return nil
}

// shellQuote writes a path as one word for a POSIX shell.
func shellQuote(path string) string { return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'" }

// lockFolder takes the lock under which sockets in dir are made and removed.
// The kernel drops it with its holder. A folder that cannot be locked (some
// network file systems) is used without: the store's own lock already keeps
// two daemons of one home apart.
func lockFolder(dir string) (unlock func(), err error) {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, cannotListen("Check the folder's permissions.", "opening the folder %s: %v", dir, err).With(fault.Cause(err))
	}
	done := func() { _ = unix.Close(fd) } // and with it the lock
	for until := time.Now().Add(lockTime); ; time.Sleep(lockPause) {
		err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case errors.Is(err, unix.EWOULDBLOCK):
		case errors.Is(err, unix.EINTR):
			continue
		default:
			return done, nil
		}
		if time.Now().After(until) {
			done()
			return nil, cannotListen("Wait for it, then start again.", "another hbrestd is starting or stopping: the folder %s is locked", dir)
		}
	}
}

// removeOwn removes the file at path if it is still the one that Listen made. A
// file that somebody else put there stays, and so does ours when the folder is
// locked for too long: a socket that nobody answers on is harmless.
func removeOwn(path string, own fs.FileInfo) error {
	unlock, err := lockFolder(filepath.Dir(path))
	if err != nil {
		return nil //nolint:nilerr // see above
	}
	defer unlock()
	now, err := os.Lstat(path)
	if err != nil || !os.SameFile(now, own) {
		return nil //nolint:nilerr // it is gone, or not ours
	}
	return os.Remove(path)
}

// admitOwner lets in the user me and root. Root can read this process's memory
// and files anyway, so shutting it out would only break its tools.
func admitOwner(c net.Conn, me int) error {
	uid, err := peerOf(c)
	if err != nil {
		return fmt.Errorf("the user at the other end is not known: %w", err)
	}
	if uid != me && uid != 0 {
		return fmt.Errorf("user %d may not use the control socket of user %d", uid, me)
	}
	return nil
}

// peerOf asks the kernel which user is at the other end: for an accepted
// connection the one who connected, for a dialled one the one who listens.
func peerOf(c net.Conn) (int, error) {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return 0, errors.New("not a socket")
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return 0, err
	}
	var uid int
	var peerErr error
	if err := raw.Control(func(fd uintptr) { uid, peerErr = peerUID(int(fd)) }); err != nil {
		return 0, err
	}
	return uid, peerErr
}

func ownerOf(info fs.FileInfo) int {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return -1 // nobody
	}
	return int(st.Uid)
}

func kindOfFile(info fs.FileInfo) string {
	switch m := info.Mode(); {
	case m.IsRegular():
		return "a file"
	case m.IsDir():
		return "a folder"
	case m&fs.ModeSymlink != 0:
		return "a symbolic link"
	case m&fs.ModeSocket != 0:
		return "a socket"
	default:
		return "a special file"
	}
}

// reason is what the system said, without the path that the message has
// already.
func reason(err error) error {
	var pe *fs.PathError
	var le *os.LinkError
	var oe *net.OpError
	switch {
	case errors.As(err, &pe):
		return pe.Err
	case errors.As(err, &le):
		return le.Err
	case errors.As(err, &oe):
		return oe.Err
	}
	return err
}
