package cli

import (
	"os"

	"golang.org/x/sys/windows"
)

// isTerminal reports whether a stream is a console.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	if !ok || f == nil {
		return false
	}
	var mode uint32
	return windows.GetConsoleMode(windows.Handle(f.Fd()), &mode) == nil
}

// columns is the width of the console that a stream is; 0: it is none.
func columns(stream any) int {
	if !isTerminal(stream) {
		return 0
	}
	var info windows.ConsoleScreenBufferInfo
	if windows.GetConsoleScreenBufferInfo(windows.Handle(stream.(*os.File).Fd()), &info) != nil {
		return 80
	}
	return int(info.Window.Right-info.Window.Left) + 1
}
