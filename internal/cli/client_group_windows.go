package cli

import (
	"os/exec"
	"syscall"
)

// ownGroup keeps the command off the console.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{HideWindow: true, CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// endGroup ends the command. hb-rest starts no other program.
func endGroup(cmd *exec.Cmd) error { return cmd.Process.Kill() }
