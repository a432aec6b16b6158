package autostart

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// outputLimit bounds what is kept of a program's output.
const outputLimit = 1 << 20

// A manager that hangs must not hang us with it: what it is asked it says at
// once, and what it does may take as long as a start and a stop together.
const (
	askTimeout = 20 * time.Second
	doTimeout  = 3 * time.Minute
)

// run runs a program whose answer is read by us: in English, with times in UTC.
func run(ctx context.Context, argv ...string) Output {
	limit := doTimeout
	if slices.Contains(argv, "show") {
		limit = askTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "LC_ALL=C", "LANGUAGE=C", "TZ=UTC", "SYSTEMD_COLORS=0", "SYSTEMD_PAGER=")
	cmd.WaitDelay = time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &limited{&stdout}, &limited{&stderr}
	err := cmd.Run()
	o := Output{Stdout: stdout.String(), Stderr: stderr.String(), Code: cmd.ProcessState.ExitCode()}
	var ended *exec.ExitError
	switch {
	case err == nil:
	case errors.Is(ctx.Err(), context.DeadlineExceeded): // not that it ended, and not that there is none
		o.Code, o.Stderr = -1, "it did not answer in time"
	case !errors.As(err, &ended):
		o.Code, o.Err = -1, err
	}
	return o
}

type limited struct{ b *bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	if room := outputLimit - l.b.Len(); room > 0 {
		l.b.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

// stream runs a program for its output.
func stream(ctx context.Context, stdout, stderr io.Writer, argv ...string) error {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// said is the shortest of what a program said about its failure.
func (o Output) said() string {
	text := strings.TrimSpace(o.Stderr)
	if text == "" {
		text = strings.TrimSpace(o.Stdout)
	}
	if o.Err != nil {
		text = o.Err.Error()
	}
	if text == "" {
		text = fmt.Sprintf("exit code %d", o.Code)
	}
	return fault.Shorten(text, 500)
}

// ok reports whether the program ended well.
func (o Output) ok() bool { return o.Code == 0 && o.Err == nil }

func linger(user string) (on, known bool) {
	if _, err := os.Stat("/var/lib/systemd"); err != nil || user == "" {
		return false, false
	}
	_, err := os.Stat(filepath.Join("/var/lib/systemd/linger", user))
	return err == nil, err == nil || errors.Is(err, fs.ErrNotExist)
}

// Program is the path by which a service should call this program: the one it
// was called by, as long as that leads to the same file, so that a link which a
// package manager moves with each version stays in use. The error says that the
// program is one that will not be there tomorrow.
func Program(arg0 string) (string, error) {
	real, err := os.Executable()
	if err != nil {
		return "", failed("the path of this program cannot be found: %v", err)
	}
	return stable(arg0, real)
}

// stable is Program for a program whose file is real.
func stable(arg0, real string) (string, error) {
	if strings.Contains(filepath.ToSlash(real), "/go-build") {
		return "", failed("%s is a passing build, which is gone once it ends", real).
			With(fault.Hint("Build it with `make build`, put it where it is to stay, and run that."))
	}
	if called, err := exec.LookPath(arg0); err == nil {
		if abs, err := filepath.Abs(called); err == nil && sameFile(abs, real) {
			return abs, nil
		}
	}
	return real, nil
}

func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// replace writes a file in one step, readable by all, as units are. Its folder
// is made if there is none.
func replace(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// setAside keeps a file that somebody has edited under the first free name.
func setAside(path, text string) (string, error) {
	for i := 1; i <= 99; i++ {
		name := path + ".edited"
		if i > 1 {
			name = fmt.Sprintf("%s.edited-%d", path, i)
		}
		have, err := os.ReadFile(name)
		if err == nil && string(have) == text {
			return name, nil
		}
		if errors.Is(err, fs.ErrNotExist) {
			return name, replace(name, text)
		}
	}
	return "", fmt.Errorf("there are 99 edited copies of %s already", path)
}
