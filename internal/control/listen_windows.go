package control

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"

	"github.com/Microsoft/go-winio"
	"golang.org/x/sys/windows"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

const (
	network    = "pipe"
	pipeBuffer = 64 << 10 // bytes each way; a larger answer is taken in parts
)

// Listen makes the named pipe at path, such as \\.\pipe\hbrestd-NAME. Its access
// list is protected from inheritance, names this user as the owner and lets
// only this user in; callers from other machines are refused by the system, and
// so is a pipe of a name that exists (the first-instance flag): then another
// daemon is running, or somebody else was first.
func Listen(path string) (*Listener, error) {
	me, err := ownSID()
	if err != nil {
		return nil, fmt.Errorf("asking which user this is: %w", err)
	}
	inner, err := winio.ListenPipe(path, &winio.PipeConfig{
		SecurityDescriptor: onlyFor(me.String()),
		InputBufferSize:    pipeBuffer,
		OutputBufferSize:   pipeBuffer,
	})
	switch {
	case errors.Is(err, windows.ERROR_ACCESS_DENIED), errors.Is(err, windows.ERROR_PIPE_BUSY), errors.Is(err, fs.ErrExist):
		return nil, alreadyRunning(path).With(fault.Cause(err))
	case err != nil:
		return nil, cannotListen("Set HB_WRAP_HOME to use another name.", "listening on %s: %v", path, err).With(fault.Cause(err))
	}
	return &Listener{inner: inner, path: path}, nil
}

// onlyFor is the pipe's security descriptor: owner, and a protected list with
// one entry, everything for that owner. The owner is named because it would be
// the Administrators group for a process of an elevated user.
func onlyFor(sid string) string { return "O:" + sid + "D:P(A;;GA;;;" + sid + ")" }

func ownSID() (*windows.SID, error) {
	user, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		return nil, err
	}
	return user.User.Sid, nil
}

// dial connects to the pipe of this user's daemon. A pipe that somebody else
// made first has another owner, and gets nothing. The connection is made at
// the anonymous level, so that its server could not act as this user.
func dial(ctx context.Context, path string) (net.Conn, error) {
	c, err := winio.DialPipeContext(ctx, path)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, fs.ErrNotExist):
		return nil, notThere(path, "there is no control pipe", err)
	case errors.Is(err, fs.ErrPermission):
		return nil, notSafe("Run the command as the user of the daemon.", "the control pipe %s belongs to another user", path).With(fault.Cause(err))
	default:
		return nil, notThere(path, "no connection to the control pipe ("+err.Error()+")", err)
	}
	if err := checkOwner(c); err != nil {
		c.Close()
		return nil, notSafe("Run the command as the user of the daemon.", "the control pipe %s is not this user's", path).With(fault.Cause(err))
	}
	return c, nil
}

func checkOwner(c net.Conn) error {
	f, ok := c.(interface{ Fd() uintptr })
	if !ok {
		return errors.New("the pipe has no handle")
	}
	sd, err := windows.GetSecurityInfo(windows.Handle(f.Fd()), windows.SE_KERNEL_OBJECT, windows.OWNER_SECURITY_INFORMATION)
	if err != nil {
		return fmt.Errorf("reading the pipe's owner: %w", err)
	}
	owner, _, err := sd.Owner()
	if err != nil {
		return fmt.Errorf("reading the pipe's owner: %w", err)
	}
	me, err := ownSID()
	if err != nil {
		return err
	}
	if !owner.Equals(me) {
		return fmt.Errorf("the owner is %s", owner)
	}
	return nil
}
