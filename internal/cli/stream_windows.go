package cli

import (
	"os"
	"unsafe"

	"golang.org/x/sys/windows"
)

func isStream(*os.File, string) bool { return false }

// leaveConsole closes the console window that Windows has made for this process
// alone, as it does for a task at logon. A console that others use, such as a
// shell, stays.
func leaveConsole() {
	kernel := windows.NewLazySystemDLL("kernel32.dll")
	list, free := kernel.NewProc("GetConsoleProcessList"), kernel.NewProc("FreeConsole")
	if list.Find() != nil || free.Find() != nil {
		return
	}
	var pids [2]uint32
	if n, _, _ := list.Call(uintptr(unsafe.Pointer(&pids[0])), uintptr(len(pids))); n == 1 {
		_, _, _ = free.Call()
	}
}
