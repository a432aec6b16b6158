package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

// errDeclined ends a command whose question was not answered with yes.
var errDeclined = errors.New("nothing was changed")

// confirm asks a person whether to go on; nil is yes. Nobody is asked when
// nobody can answer: a command is then its own confirmation.
func (a *app) confirm(ctx context.Context, question string) error {
	if !a.interactive() {
		return nil
	}
	fmt.Fprintf(a.stderr, "%s [y/N] ", clean(question))
	answer := make(chan string, 1)
	go func() { // reading a terminal cannot be cancelled; the process ends soon after
		line, err := bufio.NewReader(a.stdin).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			line = ""
		}
		answer <- line
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(a.stderr)
		return ctx.Err()
	case line := <-answer:
		switch strings.ToLower(strings.TrimSpace(line)) {
		case "y", "yes":
			return nil
		}
	}
	return errDeclined
}
