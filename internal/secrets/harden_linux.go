package secrets

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Harden keeps other programs of the same user from reading this process's
// memory and environment, and its memory out of core files. The daemon calls it
// before it opens a vault.
func Harden() error {
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return fmt.Errorf("turning core files off: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("closing the process to others of the same user: %w", err)
	}
	return nil
}
