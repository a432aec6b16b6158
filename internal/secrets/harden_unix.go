//go:build !windows && !linux

package secrets

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Harden keeps this process's memory out of core files. The daemon calls it
// before it opens a vault.
func Harden() error {
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return fmt.Errorf("turning core files off: %w", err)
	}
	return nil
}
