package shim

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestLogFileRotates(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "hb-rest.log")
	l := &logFile{path: path}
	t.Cleanup(func() { _ = l.Close() })
	size := func(name string) int64 {
		st, err := os.Stat(name)
		if err != nil {
			return -1
		}
		return st.Size()
	}
	line := bytes.Repeat([]byte("x"), maxLog/4)
	write := func(p []byte) {
		t.Helper()
		if n, err := l.Write(p); n != len(p) || err != nil {
			t.Fatalf("%d, %v", n, err)
		}
	}
	for range 4 {
		write(line)
	}
	if size(path) != maxLog || size(path+".1") != -1 {
		t.Errorf("at the limit: %d, %d", size(path), size(path+".1"))
	}
	write([]byte("y"))
	if size(path) != 1 || size(path+".1") != maxLog {
		t.Errorf("one over: %d, %d", size(path), size(path+".1"))
	}
	// A second shim fills the shared file and rotates; the first follows.
	other := &logFile{path: path}
	t.Cleanup(func() { _ = other.Close() })
	for range 5 {
		if _, err := other.Write(line); err != nil {
			t.Fatal(err)
		}
	}
	write(bytes.Repeat([]byte("z"), maxLog))
	if size(path) > maxLog || size(path+".1") > 2*maxLog {
		t.Errorf("shared: %d, %d", size(path), size(path+".1"))
	}
	if runtime.GOOS != "windows" {
		for _, name := range []string{path, path + ".1"} {
			if st, err := os.Stat(name); err != nil || st.Mode().Perm() != 0o600 {
				t.Errorf("%s: %v %v", name, st.Mode(), err)
			}
		}
		if st, err := os.Stat(filepath.Dir(path)); err != nil || st.Mode().Perm() != 0o700 {
			t.Errorf("folder: %v %v", st.Mode(), err)
		}
	}
}

func TestLogFileKeepsOff(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "precious")
	if err := os.WriteFile(target, []byte("data"), 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "hb-rest.log")
	if err := os.Symlink(target, link); err != nil {
		t.Skipf("no symbolic links here: %v", err)
	}
	for _, path := range []string{link, filepath.Join(target, "below", "a", "file"), dir} {
		l := &logFile{path: path}
		for range 2 {
			if n, err := l.Write([]byte("line\n")); n != 5 || err != nil {
				t.Errorf("%s: %d, %v", path, n, err)
			}
		}
		_ = l.Close()
	}
	if data, err := os.ReadFile(target); err != nil || string(data) != "data" {
		t.Errorf("the link's target: %q %v", data, err)
	}
}

func TestLogFileTightensMode(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no modes")
	}
	path := filepath.Join(t.TempDir(), "hb-rest.log")
	if err := os.WriteFile(path, []byte("old\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	l := &logFile{path: path}
	_, _ = l.Write([]byte("new\n"))
	_ = l.Close()
	_, _ = l.Write([]byte("late\n"))
	data, err := os.ReadFile(path)
	st, err2 := os.Stat(path)
	if err != nil || err2 != nil || string(data) != "old\nnew\n" || st.Mode().Perm() != 0o600 {
		t.Errorf("%q %v %v %v", data, st.Mode(), err, err2)
	}
	if strings.Contains(string(data), "late") {
		t.Error("written after Close")
	}
}

// Lines reach the file together a moment later, at once when they are many, and
// with the end of the program; none is lost or out of order.
func TestLateWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := new(writes)
		w := &lateWriter{to: to}
		say := func(s string) {
			t.Helper()
			if n, err := io.WriteString(w, s); n != len(s) || err != nil {
				t.Fatal(n, err)
			}
		}
		say("a\n")
		say("b\n")
		time.Sleep(lateTime - 1)
		if len(to.got()) != 0 {
			t.Errorf("too early: %q", to.got())
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		say("c\n")
		long := strings.Repeat("x", lateSize-4) + "\n"
		say(long) // one byte under the size: held
		if want := []string{"a\nb\n"}; !slices.Equal(to.got(), want) {
			t.Errorf("%.80q", to.got())
		}
		say("d") // at it
		if want := []string{"a\nb\n", "c\n" + long + "d"}; !slices.Equal(to.got(), want) {
			t.Errorf("%d writes", len(to.got()))
		}
		say("e\n")
		if err := w.Close(); err != nil || !to.closed || !slices.Equal(to.got()[2:], []string{"e\n"}) {
			t.Errorf("%v, %v, %d writes", err, to.closed, len(to.got()))
		}
	})
}

// writes is what came, a Write each.
type writes struct {
	mu     sync.Mutex // guards all
	all    []string
	closed bool
}

func (w *writes) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, string(p))
	return len(p), nil
}

func (w *writes) got() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.all)
}

func (w *writes) Close() error {
	w.closed = true
	return nil
}

// Several that share a file keep to its size together.
func TestSharedLogFileSize(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hb-rest.log")
	const sharers = 5
	var shared [sharers]*logFile
	for i := range shared {
		shared[i] = &logFile{path: path}
		t.Cleanup(func() { _ = shared[i].Close() })
	}
	line := []byte(strings.Repeat("x", 4095) + "\n")
	for i := range sharers * maxLog / len(line) {
		_, _ = shared[i%sharers].Write(line)
		for _, name := range []string{path, path + ".1"} {
			// One line of each that was about to write when the file became full.
			if st, err := os.Stat(name); err == nil && st.Size() > maxLog+int64(sharers*len(line)) {
				t.Fatalf("after %d lines %s has %d bytes", i+1, filepath.Base(name), st.Size())
			}
		}
	}
	if _, err := os.Stat(path + ".1"); err != nil && runtime.GOOS != "windows" { // where it is cut short while others have it open
		t.Error(err)
	}
}
