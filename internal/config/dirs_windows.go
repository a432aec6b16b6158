package config

import "io/fs"

// checkPrivate checks nothing: mode bits say nothing here, and the user's local
// application folder carries an access list that shuts others out.
func checkPrivate(string, fs.FileInfo) error { return nil }
