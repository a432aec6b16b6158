//go:build unix

package cli

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// isStream reports whether f is the file that JOURNAL_STREAM names by device
// and number.
func isStream(f *os.File, stream string) bool {
	var st unix.Stat_t
	return unix.Fstat(int(f.Fd()), &st) == nil && stream == fmt.Sprintf("%d:%d", st.Dev, st.Ino)
}

// leaveConsole is for Windows.
func leaveConsole() {}
