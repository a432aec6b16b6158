package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
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
		if isYes(line) {
			return nil
		}
	}
	return errDeclined
}

// agentMarkers are variables that coding agents set for the commands that they
// run. Names that begin with agentPrefix count too.
var agentMarkers = []string{
	"AI_AGENT", "CLAUDECODE", "CLAUDE_CODE", "CURSOR_AGENT", "CURSOR_TRACE_ID", "CODEX_SANDBOX", "CODEX_CI", "CODEX_THREAD_ID",
	"GEMINI_CLI", "OPENCODE", "AUGMENT_AGENT", "ANTIGRAVITY_AGENT", "DEVIN", "REPL_ID",
}

const agentPrefix = "COPILOT_"

// agentMarker names the variable that tells of an agent; "" when none does.
func (a *app) agentMarker() string {
	for _, name := range agentMarkers {
		if v, _ := a.env(name); v != "" {
			return name
		}
	}
	for _, pair := range a.environ() {
		if name, v, _ := strings.Cut(pair, "="); strings.HasPrefix(name, agentPrefix) && v != "" {
			return name
		}
	}
	return ""
}

// An asker reaches the person behind a command, past stdin and stdout: in a
// window of pinentry, or on the terminal of this process.
type asker struct {
	app      *app
	pinentry *pinentry // nil: none can reach them
	marker   string    // of an agent; then a terminal, which may be the agent's, is not asked
}

// person is for a command that only a person may give: one that changes a
// credential, or answers for them. Where an agent seems to run it, a person must allow that in a window. This
// slows down an agent that means well; one that takes its own marker out of the
// environment is not stopped, and neither is any program that runs as the user.
// what is what the command will do: "set the credential orders-key"; only is
// what that is an example of: "change credentials".
func (a *app) person(ctx context.Context, what, only string) (*asker, error) {
	p := &asker{app: a, pinentry: findPinentry(a.env, a.goos), marker: a.agentMarker()}
	if p.marker == "" {
		return p, nil
	}
	if p.pinentry != nil {
		text := fmt.Sprintf("%s is set, so an agent seems to run this command. Allow it to %s?", p.marker, what)
		_, err := p.pinentry.ask(ctx, dialog{text: text, ok: "Allow", cancel: "Refuse"})
		switch {
		case err == nil:
			return p, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case !errors.Is(err, errDeclined):
			a.say("pinentry could not ask: %v", err)
		}
	}
	return nil, failed(exitCredential, "Run it in a terminal of your own. Where pinentry can show a window, a person can allow it there.",
		"%s is set, so an agent seems to run this command, and only a person may %s", p.marker, only)
}

// value asks for a text that must not be shown. The caller wipes it.
func (p *asker) value(ctx context.Context, text, prompt string) ([]byte, error) {
	if p.pinentry != nil {
		v, err := p.pinentry.ask(ctx, dialog{text: text, prompt: prompt + ":"})
		switch {
		case err == nil:
			return v, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.Is(err, errDeclined), errors.Is(err, errTooLong):
			return nil, err
		}
		p.app.say("pinentry could not ask: %v", err)
		p.pinentry = nil
	}
	t, err := p.terminal()
	if err != nil {
		return nil, failed(exitCredential, "Run it in a terminal. A script gives the value on stdin, with --stdin.", "the value cannot be asked for: %v", err)
	}
	defer t.Close()
	return t.line(ctx, text+"\n"+prompt+" (not shown): ", true)
}

// yes asks a question whose yes nothing else stands for; nil is yes. why is
// said when nobody can answer.
func (p *asker) yes(ctx context.Context, question, why string) error {
	t, err := p.terminal()
	if err != nil {
		if p.pinentry != nil {
			_, pinErr := p.pinentry.ask(ctx, dialog{text: question, ok: "Yes", cancel: "No"})
			if pinErr == nil || errors.Is(pinErr, errDeclined) || ctx.Err() != nil {
				return firstError(ctx.Err(), pinErr)
			}
			err = fmt.Errorf("pinentry could not ask: %w", pinErr) // the terminal's error says no more
		}
		return failed(exitCredential, "Run it in a terminal, or say yes beforehand with --yes.", "%s; somebody must say yes to that, and nobody can be asked: %v", why, err)
	}
	defer t.Close()
	answer, err := t.line(ctx, question+" [y/N] ", false)
	if err != nil {
		return err
	}
	if !isYes(string(answer)) {
		return errDeclined
	}
	return nil
}

// terminal is the terminal of this process, unless an agent seems to have it.
func (p *asker) terminal() (*console, error) {
	if p.marker != "" {
		return nil, fmt.Errorf("an agent seems to hold the terminal (%s is set)", p.marker)
	}
	return p.app.openTerminal()
}

func isYes(answer string) bool {
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// failed is what this machine, and not the daemon, refused.
func failed(exit int, hint, format string, args ...any) error {
	return coded{exit, fault.New("FAILED", format, args...).With(fault.Hint("%s", hint))}
}
