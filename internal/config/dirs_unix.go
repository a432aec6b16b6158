//go:build unix

package config

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// shellQuote writes a path as one word for a POSIX shell.
func shellQuote(path string) string { return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'" }

// checkPrivate refuses a folder of someone else or one that others can enter.
func checkPrivate(path string, info fs.FileInfo) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fmt.Errorf("the owner of %s is not known", path)
	}
	if me := os.Geteuid(); int(st.Uid) != me {
		return fmt.Errorf("%s belongs to user %d, not to this user (%d); run hbrestd as that user, or set HB_WRAP_HOME to a folder of this one", path, st.Uid, me)
	}
	switch perm := info.Mode().Perm(); {
	case perm&0o077 != 0 && (info.Mode()&fs.ModeSticky != 0 || filepath.Dir(path) == "/"):
		// To close it would be the end of the system that it belongs to.
		return fmt.Errorf("%s has mode %04o, which lets other users in, and others need it; set HB_WRAP_HOME to a folder of its own", path, perm)
	case perm&0o077 != 0:
		return fmt.Errorf("%s has mode %04o, which lets other users in; run: chmod 700 %s", path, perm, shellQuote(path))
	case perm&0o700 != 0o700:
		return fmt.Errorf("%s has mode %04o, which keeps its owner out; run: chmod 700 %s", path, perm, shellQuote(path))
	}
	return nil
}
