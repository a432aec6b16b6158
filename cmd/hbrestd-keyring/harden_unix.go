//go:build !windows && !linux

package main

import "golang.org/x/sys/unix"

// harden keeps memory out of core files.
func harden() { _ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}) }
