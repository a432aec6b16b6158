package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
)

// maxLog is the size at which a log file is put aside at the next start. The
// daemon logs its life and changes, not calls: that is years.
const maxLog = 5 << 20

// openLog opens the file for `run --log`, and has a crash written there too. It
// keeps one older file.
func openLog(path string) (io.WriteCloser, error) {
	if !filepath.IsAbs(path) {
		return nil, usage("--log is %q, not an absolute path", path)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("the log: %w", err)
	}
	if info, err := os.Stat(path); err == nil && info.Size() > maxLog {
		if err := os.Rename(path, path+".1"); err != nil {
			return nil, fmt.Errorf("the log: %w", err)
		}
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("the log: %w", err)
	}
	if err := debug.SetCrashOutput(f, debug.CrashOptions{}); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("the log: %w", err)
	}
	return f, nil
}
