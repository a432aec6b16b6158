package main

import "io/fs"

// private: hbrestd makes the folder below the user's own profile; there are no
// mode bits to look at.
func private(fs.FileInfo) bool { return true }

func flushDir(string) error { return nil }
