package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// terminal opens a pseudo-terminal: what the program has, and what the person sees.
func terminal(t *testing.T, width uint16) (program, person *os.File) {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Skipf("this machine has no pseudo-terminals: %v", err)
	}
	person = os.NewFile(uintptr(fd), "ptmx")
	t.Cleanup(func() { person.Close() })
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("this machine has no pseudo-terminals: %v", err)
	}
	t.Cleanup(func() { program.Close() })
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: width}); err != nil {
		t.Fatal(err)
	}
	return program, person
}

func TestTerminal(t *testing.T) {
	program, _ := terminal(t, 123)
	if !isTerminal(program) || columns(program) != 123 {
		t.Errorf("terminal %t of %d columns, want 123", isTerminal(program), columns(program))
	}
	program, _ = terminal(t, 0)
	if columns(program) != 80 {
		t.Errorf("one that does not say has %d columns, want 80", columns(program))
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	for _, other := range []any{r, w, &strings.Builder{}, nil, (*os.File)(nil)} {
		if isTerminal(other) || columns(other) != 0 {
			t.Errorf("%T is taken for a terminal", other)
		}
	}
}

// On a real terminal a person is asked, and their answer is read from it.
func TestMainOnATerminal(t *testing.T) {
	f := &fake{docs: docs(`{"id":"a"}`)}
	w := newWorld(t, f)
	w.version = thisBuild()
	program, person := terminal(t, 80)
	seen := make(chan string)
	go func() {
		var b strings.Builder
		buf := make([]byte, 256)
		for !strings.Contains(b.String(), "removed a") {
			n, err := person.Read(buf)
			b.Write(buf[:n])
			if err != nil {
				break
			}
			if strings.HasSuffix(b.String(), "[y/N] ") {
				_, _ = io.WriteString(person, "y\n")
			}
		}
		seen <- b.String()
	}()
	exit := Main([]string{"wrapper", "rm", "a"}, w.lookup(), program, program, program)
	if got := <-seen; exit != 0 || !strings.Contains(got, "Remove a? [y/N] y") || len(f.ids()) != 0 {
		t.Errorf("exit %d, %q, left %v", exit, got, f.ids())
	}
}

// An editor has the real terminal, also for what steers it.
func TestEditOnATerminal(t *testing.T) {
	f := &fake{docs: docs(`{"id":"a","n":1}`)}
	w := newWorld(t, f)
	w.version = thisBuild()
	seen := w.rounds(`[ -t 0 ] && [ -t 1 ] && [ -t 2 ] || exit 8
printf '\033[7mtype: '
read typed
sed -i "s/\"n\": 1/\"n\": $typed/" "$1"`)
	ty := newTypist(t, step{"type: ", "42\n"})
	exit := Main([]string{"wrapper", "edit", "a"}, w.lookup(), ty.program, ty.program, ty.program)
	got := ty.transcript()
	if exit != 0 || string(f.docs["a"]) != `{"id":"a","n":42}` || !strings.Contains(got, "\x1b[7mtype: 42") || !strings.Contains(got, "\nupdated    a\n") {
		t.Errorf("exit %d, %q, stored %s, the editor saw %q", exit, got, f.docs["a"], seen())
	}
}
