package shim

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// A lateWriter passes lines on a moment later, those of that moment together,
// so that a call does not wait for its line and a hundred calls are one write.
// A process that is killed loses what the moment held.
type lateWriter struct {
	to io.WriteCloser

	mu    sync.Mutex // guards what follows, and the order of writes
	held  []byte
	timer *time.Timer // set while something is held
}

const (
	lateTime = 100 * time.Millisecond
	lateSize = 32 << 10 // bytes that are not held any longer
)

func (w *lateWriter) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held = append(w.held, line...)
	switch {
	case len(w.held) >= lateSize:
		w.flush()
	case w.timer == nil:
		w.timer = time.AfterFunc(lateTime, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.flush()
		})
	}
	return len(line), nil
}

// flush writes what is held; the caller holds mu.
func (w *lateWriter) flush() {
	if w.timer != nil {
		w.timer.Stop()
		w.timer = nil
	}
	if len(w.held) > 0 {
		_, _ = w.to.Write(w.held)
		w.held = w.held[:0]
	}
}

// Close writes what is held and closes the file.
func (w *lateWriter) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.flush()
	return w.to.Close()
}

// maxLog is the size at which the log becomes the backup; with one backup the
// shim never holds more than about twice that.
const maxLog = 1 << 20

// A logFile is a small log that several shims may share: each appends whole
// lines, and whoever finds it full renames it. It is opened at the first line,
// so that a shim that logs nothing costs nothing. Errors are swallowed: a call
// must not fail because its log line cannot be written.
type logFile struct {
	path string

	mu   sync.Mutex // guards what follows
	f    *os.File
	dead bool
}

func (l *logFile) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.f == nil && !l.dead {
		l.open()
	}
	for range 2 { // twice: what another shim has begun meanwhile may be full too
		if l.f != nil && full(l.f, len(line)) {
			l.rotate()
		}
	}
	if l.f == nil {
		return len(line), nil
	}
	_, _ = l.f.Write(line)
	return len(line), nil
}

// full reports whether the file has no room for n bytes more. Others write to
// it too, so its own size counts.
func full(f *os.File, n int) bool {
	st, err := f.Stat()
	return err == nil && st.Size() > 0 && st.Size()+int64(n) > maxLog
}

// Close closes the file; later lines are dropped.
func (l *logFile) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dead = true
	if l.f == nil {
		return nil
	}
	f := l.f
	l.f = nil
	return f.Close()
}

func (l *logFile) open() {
	l.dead = true // until it is open: a broken place is tried once
	if os.MkdirAll(filepath.Dir(l.path), 0o700) != nil {
		return
	}
	if st, err := os.Lstat(l.path); err == nil && !st.Mode().IsRegular() {
		return // a link could point at somebody's file
	}
	f, err := os.OpenFile(l.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	if st, err := f.Stat(); err == nil && st.Mode().Perm()&^fs.FileMode(0o600) != 0 {
		_ = f.Chmod(0o600) // made by a looser umask or another hand; Windows has no modes
	}
	l.f, l.dead = f, false
}

// rotate makes the full file the backup, unless another shim has just done so:
// then the path is already another, smaller file.
func (l *logFile) rotate() {
	ours, err1 := l.f.Stat()
	there, err2 := os.Stat(l.path)
	_ = l.f.Close() // Windows renames no open file
	l.f = nil
	if err1 == nil && err2 == nil && os.SameFile(ours, there) && os.Rename(l.path, l.path+".1") != nil {
		_ = os.Truncate(l.path, 0) // another shim holds it open on Windows
	}
	l.open()
}
