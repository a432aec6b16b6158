package secrets

import (
	"os/exec"
	"syscall"
)

// ownGroup keeps the command off the console. It starts no other program on
// Windows, so ending it is enough.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{HideWindow: true, CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}
