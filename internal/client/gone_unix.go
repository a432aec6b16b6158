//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package client

import (
	"errors"
	"net"
	"syscall"
)

// canPeek says that gone knows.
const canPeek = true

// gone reports whether the other end has closed the connection, or sent
// something that nobody asked for. It looks and takes nothing.
func gone(c net.Conn) bool {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return true
	}
	var peekErr error
	err = raw.Control(func(fd uintptr) {
		var b [1]byte
		for {
			_, _, peekErr = syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
			if !errors.Is(peekErr, syscall.EINTR) {
				return
			}
		}
	})
	return err != nil || !errors.Is(peekErr, syscall.EAGAIN)
}
