//go:build unix

package cli

import (
	"os"

	"golang.org/x/sys/unix"
)

// isTerminal reports whether a stream is a terminal.
func isTerminal(stream any) bool {
	_, ok := size(stream)
	return ok
}

// columns is the width of the terminal that a stream is; 0: it is none.
func columns(stream any) int {
	n, ok := size(stream)
	switch {
	case !ok:
		return 0
	case n == 0: // one that does not say
		return 80
	}
	return n
}

func size(stream any) (int, bool) {
	f, ok := stream.(*os.File)
	if !ok || f == nil {
		return 0, false
	}
	ws, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, false
	}
	return int(ws.Col), true
}
