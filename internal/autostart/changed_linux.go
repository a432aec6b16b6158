package autostart

import (
	"os"
	"syscall"
	"time"
)

// changed takes the inode's own time: packages install files with the times
// that they were built at.
func changed(path string) time.Time {
	info, err := os.Stat(path)
	if err != nil {
		return time.Time{}
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return info.ModTime()
	}
	return time.Unix(st.Ctim.Unix())
}
