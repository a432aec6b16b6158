//go:build aix || linux || solaris

package cli

import "golang.org/x/sys/unix"

const (
	getTermios = unix.TCGETS
	setTermios = unix.TCSETSF // after output, dropping input
	noKey      = 0            // _POSIX_VDISABLE
)
