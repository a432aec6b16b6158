//go:build unix

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"
)

// pasteTime is how long after a line's end more of the same paste may come. A
// person who types is slower.
const pasteTime = 50 * time.Millisecond

// openTerminal opens the terminal that controls this process.
func openTerminal() (*console, error) {
	f, err := os.OpenFile("/dev/tty", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, fmt.Errorf("opening the terminal: %w", err)
	}
	return &console{in: f, out: f}, nil
}

// line asks and reads a line. A hidden one is not shown while it is typed; the terminal
// is as it was before when line returns, also when the context ends.
func (t *console) line(ctx context.Context, prompt string, hidden bool) (text []byte, err error) {
	fd := int(t.in.Fd())
	if hidden {
		// They would end the program, and leave the terminal without an echo.
		outer := ctx
		var stop context.CancelFunc
		ctx, stop = signal.NotifyContext(ctx, unix.SIGHUP, unix.SIGQUIT)
		defer func() {
			if ctx.Err() != nil && outer.Err() == nil && errors.Is(err, context.Canceled) {
				err = errInterrupted
			}
			stop()
		}()
		restore, err := hide(fd)
		if err != nil {
			return nil, fmt.Errorf("hiding what is typed: %w", err)
		}
		defer func() {
			restore()
			_, _ = t.out.WriteString("\n") // that of the Enter key was not shown
		}()
	}
	if err := t.print(prompt); err != nil { // only now: somebody may answer at once
		return nil, err
	}
	woken, wake, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("reading the terminal: %w", err)
	}
	defer woken.Close()
	defer wake.Close()
	defer context.AfterFunc(ctx, func() { wake.Close() })()
	var l hiddenLine
	defer func() {
		if err != nil {
			l.wipe()
			text = nil
		}
	}()
	var chunk [512]byte
	defer clear(chunk[:])
	for {
		n, err := readWhenReady(ctx, fd, int(woken.Fd()), chunk[:], -1)
		if err != nil {
			return nil, err
		}
		rest, done, err := l.feed(chunk[:n])
		switch {
		case err != nil:
			return nil, err
		case !done:
		case !hidden:
			return l.text, nil
		default:
			return l.text, endOfPaste(ctx, fd, int(woken.Fd()), rest)
		}
	}
}

// endOfPaste looks whether more comes than a person could have typed by now.
func endOfPaste(ctx context.Context, fd, woken int, rest []byte) error {
	var more [512]byte
	defer clear(more[:])
	n := copy(more[:], rest)
	for onlyEnd(more[:n]) && n < len(more) {
		got, err := readWhenReady(ctx, fd, woken, more[n:], pasteTime)
		if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, errNoAnswer) {
			return nil
		}
		if err != nil {
			return err
		}
		n += got
	}
	return errPasted
}

// readWhenReady reads what is there. It waits for the terminal, the end of the
// context, which closes the other end of woken, or the time; patience < 0 is
// any time. It selects, because a terminal cannot be polled on macOS.
func readWhenReady(ctx context.Context, fd, woken int, p []byte, patience time.Duration) (int, error) {
	until := time.Now().Add(patience)
	for {
		var set unix.FdSet
		set.Set(fd)
		set.Set(woken)
		var limit *unix.Timeval
		if patience >= 0 {
			tv := unix.NsecToTimeval(max(0, time.Until(until)).Nanoseconds())
			limit = &tv
		}
		n, err := unix.Select(max(fd, woken)+1, &set, nil, nil, limit)
		switch {
		case ctx.Err() != nil:
			return 0, ctx.Err()
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return 0, fmt.Errorf("reading the terminal: %w", err)
		case n == 0:
			return 0, os.ErrDeadlineExceeded
		}
		n, err = unix.Read(fd, p)
		switch {
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN):
			continue
		case errors.Is(err, unix.EIO): // it was hung up
			return 0, errNoAnswer
		case err != nil:
			return 0, fmt.Errorf("reading the terminal: %w", err)
		case n == 0:
			return 0, errNoAnswer
		}
		return n, nil
	}
}

// hide turns off the echo, and what the terminal does with a line. Ctrl-C stays
// a signal. Ctrl-Z and Ctrl-\ do not: after them the shell would show what is
// typed. What was typed before the question, and after the answer, is dropped.
func hide(fd int) (restore func(), err error) {
	was, err := unix.IoctlGetTermios(fd, getTermios)
	if err != nil {
		return nil, err
	}
	now := *was
	now.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.IEXTEN
	now.Cc[unix.VMIN], now.Cc[unix.VTIME] = 1, 0
	now.Cc[unix.VSUSP], now.Cc[unix.VQUIT] = noKey, noKey
	if err := unix.IoctlSetTermios(fd, setTermios, &now); err != nil {
		return nil, err
	}
	return func() { _ = unix.IoctlSetTermios(fd, setTermios, was) }, nil
}

// keepTerminal notes how a terminal is; what it returns makes it so again. A
// pinentry that is ended in the middle of a question leaves it without an echo.
func keepTerminal(path string) (restore func()) {
	nothing := func() {}
	if path == "" {
		return nothing
	}
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nothing
	}
	was, err := unix.IoctlGetTermios(fd, getTermios)
	if err != nil {
		_ = unix.Close(fd)
		return nothing
	}
	return func() {
		_ = unix.IoctlSetTermios(fd, setTermios, was)
		_ = unix.Close(fd)
	}
}

// end lets a process tidy up and end.
func end(p *os.Process) error { return p.Signal(unix.SIGTERM) }
