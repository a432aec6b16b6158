//go:build darwin || freebsd

package control

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// solLocal is SOL_LOCAL, which package unix has for one of the two systems only.
const solLocal = 0

func peerUID(fd int) (int, error) {
	cred, err := unix.GetsockoptXucred(fd, solLocal, unix.LOCAL_PEERCRED)
	if err != nil {
		return 0, err
	}
	if cred.Version != 0 { // XUCRED_VERSION: the members have another meaning
		return 0, fmt.Errorf("credentials of the unknown version %d", cred.Version)
	}
	return int(cred.Uid), nil
}
