//go:build !windows

package main

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// private reports whether only its owner, who is the one asking, can use it.
func private(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.Mode().Perm()&0o077 == 0 && int(st.Uid) == os.Geteuid()
}

func flushDir(path string) error {
	h, err := os.Open(path)
	if err != nil {
		return coded(codeFailed, err)
	}
	if err := errors.Join(h.Sync(), h.Close()); err != nil {
		return coded(codeFailed, err)
	}
	return nil
}
