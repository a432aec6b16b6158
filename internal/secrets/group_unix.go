//go:build !windows

package secrets

import (
	"os/exec"
	"syscall"
)

// ownGroup makes the command the head of a process group that dies with it: the
// macOS one starts a program of its own.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
