package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/windows"
)

// openTerminal opens the console of this process.
func openTerminal() (*console, error) {
	in, err := os.OpenFile("CONIN$", os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("opening the console: %w", err)
	}
	out, err := os.OpenFile("CONOUT$", os.O_RDWR, 0)
	if err != nil {
		in.Close()
		return nil, fmt.Errorf("opening the console: %w", err)
	}
	return &console{in: in, out: out}, nil
}

// line asks and reads a line. A hidden one is not shown while it is typed; the console
// is as it was before when line returns, also when the context ends.
func (t *console) line(ctx context.Context, prompt string, hidden bool) ([]byte, error) {
	if hidden {
		handle := windows.Handle(t.in.Fd())
		var was uint32
		if err := windows.GetConsoleMode(handle, &was); err != nil {
			return nil, fmt.Errorf("hiding what is typed: %w", err)
		}
		now := was&^windows.ENABLE_ECHO_INPUT | windows.ENABLE_PROCESSED_INPUT | windows.ENABLE_LINE_INPUT
		if err := windows.SetConsoleMode(handle, now); err != nil {
			return nil, fmt.Errorf("hiding what is typed: %w", err)
		}
		defer func() {
			_ = windows.SetConsoleMode(handle, was)
			_, _ = t.out.WriteString("\r\n") // that of the Enter key was not shown
		}()
	}
	if err := t.print(prompt); err != nil { // only now: somebody may answer at once
		return nil, err
	}
	type typed struct {
		text []byte
		err  error
	}
	got := make(chan typed, 1)
	go func() { // reading a console cannot be cancelled; the process ends soon after
		text, err := readConsole(t.in)
		got <- typed{text, err}
	}()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case l := <-got:
		return l.text, l.err
	}
}

func readConsole(in io.Reader) ([]byte, error) {
	var l hiddenLine
	var chunk [1]byte
	for {
		n, err := in.Read(chunk[:])
		if n == 0 && err != nil {
			l.wipe()
			if errors.Is(err, io.EOF) {
				err = errNoAnswer
			}
			return nil, err
		}
		if chunk[0] == '\r' { // a line feed follows
			continue
		}
		_, done, err := l.feed(chunk[:n])
		if err != nil {
			l.wipe()
			return nil, err
		}
		if done {
			return l.text, nil
		}
	}
}

// keepTerminal does nothing: a pinentry on Windows has a window of its own.
func keepTerminal(string) (restore func()) { return func() {} }

// end ends a process.
func end(p *os.Process) error { return p.Kill() }
