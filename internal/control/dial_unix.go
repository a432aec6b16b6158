//go:build unix

package control

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// dial connects to the daemon of this user. The folder, the socket and, once
// connected, the process that listens must all be this user's: somebody else
// who was first to make the path must not get a byte from us.
func dial(ctx context.Context, path string) (net.Conn, error) {
	dir := filepath.Dir(path)
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil, notThere(path, "there is no control socket", err)
	}
	refuse := func(hint, why string) *fault.Error { return notSafe(hint, "%s", why) }
	if err := checkFolder(dir, refuse); err != nil {
		return nil, err
	}
	if err := checkSocket(path); err != nil {
		return nil, err
	}
	c, err := (&net.Dialer{}).DialContext(ctx, network, path)
	if err != nil {
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.Is(err, unix.ECONNREFUSED), errors.Is(err, fs.ErrNotExist):
			return nil, notThere(path, "nobody answers on the control socket", err)
		case errors.Is(err, unix.EAGAIN):
			return nil, notThere(path, "the daemon takes no more connections on the control socket", err)
		}
		return nil, notThere(path, "no connection to the control socket ("+reason(err).Error()+")", err)
	}
	uid, err := peerOf(c)
	if me := os.Geteuid(); err != nil || uid != me {
		c.Close()
		who := fmt.Sprintf("user %d", uid)
		if err != nil {
			who = "a user that is not known"
		}
		return nil, notSafe("Run the command as the user of the daemon. If that is this user, remove the socket and start the daemon again.",
			"the control socket %s is served by %s, not by this user (%d)", path, who, me).With(fault.Cause(err))
	}
	return c, nil
}

func checkSocket(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return notThere(path, "there is no control socket", err)
	case err != nil:
		return notThere(path, "the control socket cannot be checked ("+reason(err).Error()+")", err)
	case info.Mode().Type() != fs.ModeSocket:
		return notSafe("Move it away, then start the daemon again.", "%s is not a socket but %s", path, kindOfFile(info))
	}
	if owner, me := ownerOf(info), os.Geteuid(); owner != me {
		return notSafe("Run the command as the user of the daemon.", "the control socket %s belongs to user %d, not to this user (%d)", path, owner, me)
	}
	if perm := info.Mode().Perm(); perm&othersBits != 0 || perm&socketsBits != socketsBits {
		return notSafe("Run: chmod 600 "+shellQuote(path), "the control socket %s has mode %04o instead of 0600", path, perm)
	}
	return nil
}
