package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
)

// A console is the person's own device, whatever stdin and stdout are. Close
// it after use.
type console struct{ in, out *os.File }

// Close closes the device. The terminal itself stays.
func (t *console) Close() {
	t.in.Close()
	if t.out != t.in {
		t.out.Close()
	}
}

func (t *console) print(s string) error {
	if _, err := io.WriteString(&tameWriter{w: t.out}, s); err != nil {
		return fmt.Errorf("writing to the terminal: %w", err)
	}
	return nil
}

var (
	errInterrupted = errors.New("interrupted")
	errNoAnswer    = errors.New("the terminal was closed before an answer came")
	errPasted      = errors.New("what was pasted has a line break; a value has none, so only a part of it was meant, or more than it")
)

// What a terminal sends before and after a paste, when a program has asked it
// to and has not taken that back.
const (
	pasteBegin = "\x1b[200~"
	pasteEnd   = "\x1b[201~"
)

// A hiddenLine is a line that is typed without being shown. The terminal does
// not edit it: then a line has a few thousand characters at most, and longer
// tokens would lose their end without a word.
type hiddenLine struct{ text []byte }

func (h *hiddenLine) wipe() { clear(h.text[:cap(h.text)]) }

// feed takes what was typed. Once the line has ended, rest is what came after
// it.
func (h *hiddenLine) feed(typed []byte) (rest []byte, done bool, err error) {
	for i, c := range typed {
		switch c {
		case '\r', '\n':
			h.unwrap()
			return typed[i+1:], true, nil
		case 0x7f, '\b':
			h.text = dropRune(h.text)
		case 'U' - '@': // Ctrl-U
			clear(h.text)
			h.text = h.text[:0]
		case 'C' - '@': // Ctrl-C, where the terminal does not make it a signal
			return nil, false, errDeclined
		case 'D' - '@': // Ctrl-D ends an empty line; a terminal would not take it into another
			if len(h.text) == 0 {
				return nil, false, errNoAnswer
			}
		default:
			if h.text, err = appendWiping(h.text, typed[i:i+1]); err != nil {
				return nil, false, err
			}
		}
	}
	return nil, false, nil
}

// unwrap takes the marks of a paste away.
func (h *hiddenLine) unwrap() {
	if bytes.HasPrefix(h.text, []byte(pasteBegin)) {
		h.text = h.text[len(pasteBegin):]
	}
	h.text = bytes.TrimSuffix(h.text, []byte(pasteEnd))
}

// onlyEnd reports whether what came after a line is no more than the end of a
// paste.
func onlyEnd(rest []byte) bool {
	rest = bytes.TrimLeft(rest, "\r\n")
	return len(bytes.TrimLeft(bytes.TrimPrefix(rest, []byte(pasteEnd)), "\r\n")) == 0
}
