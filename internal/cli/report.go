package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// Exit codes of hbrestd.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitNotRunning  = 3
	exitCredential  = 4 // or approval
	exitNotFound    = 5
	exitInvalid     = 6
	exitUpstream    = 7
	exitStuck       = 8   // the daemon, at its start; a service manager does not repeat it
	exitInterrupted = 130 // as a shell has it for SIGINT
)

// exitCodes is the table of docs/cli.md.
var exitCodes = []struct {
	code    int
	meaning string
}{
	{exitOK, "done"},
	{exitFailed, "failed for another reason; the audit trail does not verify"},
	{exitUsage, "the command line cannot be understood"},
	{exitNotRunning, "the daemon is not running"},
	{exitCredential, "a credential or an approval is needed"},
	{exitNotFound, "no such wrapper, version, setting or rule"},
	{exitInvalid, "a document, an argument or a value is not valid"},
	{exitUpstream, "the API failed, or the outbound policy refused the call"},
	{exitStuck, "the daemon cannot start until something is changed (only `run`)"},
	{exitInterrupted, "interrupted"},
}

// errSilent ends a command that has said everything: exit code 1.
var errSilent = errors.New("failed")

// A coded error has an exit code of its own.
type coded struct {
	exit int
	error
}

func (c coded) Unwrap() error { return c.error }

// report prints an error for a person, or with --json for a program, and says
// how to exit.
func (a *app) report(ctx context.Context, cmd *cobra.Command, err error) int {
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errSilent):
		var own coded
		if errors.As(err, &own) {
			return own.exit
		}
		return exitFailed
	case errors.Is(err, syscall.EPIPE):
		return exitFailed // the reader went away, so nobody is there to be told
	case errors.Is(err, errInterrupted), ctx.Err() != nil && (fault.Is(err, "CALL_CANCELLED") || errors.Is(err, context.Canceled)):
		a.say("interrupted")
		return exitInterrupted
	}
	exit, e := explain(cmd, err)
	if wantsJSON(cmd) {
		if text, err := jsonText(api.ErrorBody(e, err)); err == nil {
			fmt.Fprint(a.stderr, text)
		}
		return exit
	}
	var b strings.Builder
	fmt.Fprintf(&b, "hbrestd: error: %s\n", clean(withoutDetails(e)))
	for _, d := range e.Details {
		if len(e.Details) == 1 && d.Hint == "" && strings.Contains(e.Message, d.Message) && strings.Contains(e.Message, d.Field) {
			break // the message has said it all
		}
		fmt.Fprintf(&b, "  %s: %s", clean(d.Field), clean(d.Message))
		if d.Hint != "" {
			fmt.Fprintf(&b, " (%s)", clean(d.Hint))
		}
		b.WriteByte('\n')
	}
	if n := len(e.Details); n == fault.MaxDetails {
		fmt.Fprintf(&b, "  (the first %d problems; there may be more)\n", n)
	}
	if e.Hint != "" {
		fmt.Fprintf(&b, "hbrestd: hint: %s\n", clean(e.Hint))
	}
	fmt.Fprint(a.stderr, b.String())
	return exit
}

// personHints stand in for hints of the catalogue that send an agent to its
// tools; a person has commands.
var personHints = map[fault.Code]string{
	"WRAPPER_NOT_FOUND":       "`hbrestd wrapper list` shows the saved ids.",
	"WRAPPER_EXISTS":          "`hbrestd wrapper apply` replaces it; or choose another id.",
	"WRAPPER_UNREADABLE":      "Save it again with `hbrestd wrapper apply`, or remove it with `hbrestd wrapper rm`.",
	"WRAPPER_INVALID":         "Fix the named fields; docs/wrapper-format.md describes each.",
	"ARGS_INVALID":            "Fix the named arguments; `hbrestd wrapper show` prints the schema with the wrapper's document.",
	"AUTH_REQUIRED":           "Store a credential with `hbrestd secret set NAME --host HOST`, and name it in the wrapper's request.auth.",
	"SECRET_NOT_FOUND":        "`hbrestd secret list` shows the names; `hbrestd secret set NAME --host HOST` stores one.",
	"SECRET_HOST_NOT_ALLOWED": "If that host may be sent it: `hbrestd secret bind NAME --host HOST`.",
	"SECRET_LOCKED":           "`hbrestd secret list` says what is wrong with the keyring, and how to mend it.",
	"SECRET_DAMAGED":          "Enter the value again with `hbrestd secret set NAME --host HOST`.",
	"SECRET_INVALID":          "Correct what is named, and run the command again.",
	"APPROVAL_DENIED":         "You refused it less than ten minutes ago; `hbrestd approval list` shows the answer, which can still be turned around.",
	"OAUTH_TOKEN_FAILED":      "Check client id, secret, scope and audience; `hbrestd secret show NAME` prints all but the secret.",
	"OAUTH_TOKEN_UNREACHABLE": "Repeat it in a moment; if it lasts, check the token URL with `hbrestd secret show NAME`.",
	"OAUTH_TOKEN_BAD_ANSWER":  "Check the token URL with `hbrestd secret show NAME`.",
	"POLICY_PRIVATE_ADDRESS":  "Use a public host, or allow this one with `hbrestd allow add`. Metadata addresses are never allowed.",
	"POLICY_SCHEME":           "Use https, or allow plain http to a host of your own with `hbrestd allow add` and --http.",
	"UPSTREAM_BAD_REQUEST":    "Compare the request that `hbrestd wrapper test` shows with the API's documentation.",
	"UPSTREAM_CLIENT_ERROR":   "Compare the request that `hbrestd wrapper test` shows with the API's documentation.",
}

// explain makes a fault of any error, and says how to exit. An error that is
// none of ours has happened in this process, to the person who reads it: its
// text is shown, and no log has an id of it.
func explain(cmd *cobra.Command, err error) (int, *fault.Error) {
	var misused usageError
	if errors.As(err, &misused) {
		return exitUsage, &fault.Error{Code: "USAGE", Message: misused.Error(), Hint: fmt.Sprintf("`%s --help` shows how it is used.", cmd.CommandPath())}
	}
	var e *fault.Error
	if !errors.As(err, &e) {
		e = &fault.Error{Code: "FAILED", Message: err.Error()}
	}
	if hint := personHint(e); hint != e.Hint {
		spoken := *e
		spoken.Hint, e = hint, &spoken
	}
	exit := exitCode(e.Code)
	var own coded
	if errors.As(err, &own) {
		exit = own.exit
	}
	return exit, e
}

// personHint is a hint for the person who reads it. One that knows more than the
// catalogue does, and asks an agent to ask a person, asks them itself.
func personHint(e *fault.Error) string {
	if said, ok := personHints[e.Code]; ok {
		if entry, known := fault.Lookup(e.Code); known && e.Hint == entry.Hint {
			return said
		}
	}
	hint := e.Hint
	for _, of := range []string{"Ask a person to ", "A person must "} {
		for {
			head, rest, found := strings.Cut(hint, of)
			if !found {
				break
			}
			hint = head + capital(rest)
		}
	}
	return strings.ReplaceAll(hint, "ask a person to ", "")
}

func exitCode(c fault.Code) int {
	has := func(prefixes ...string) bool {
		for _, p := range prefixes {
			if strings.HasPrefix(string(c), p) {
				return true
			}
		}
		return false
	}
	switch {
	case c == "BRIDGE_UNREACHABLE" || c == "TOKEN_FILE_MISSING" || c == "SHUTTING_DOWN":
		return exitNotRunning
	case c == "SECRET_INVALID":
		return exitInvalid
	case c == "SECRET_CHANGED":
		return exitFailed
	case c == "APPROVAL_NOT_FOUND":
		return exitNotFound
	case c == "AUTH_REQUIRED" || has("SECRET_", "OAUTH_", "APPROVAL_"):
		return exitCredential
	case has("UPSTREAM_", "RESPONSE_", "POLICY_"):
		return exitUpstream
	case c != "ROUTE_NOT_FOUND" && strings.HasSuffix(string(c), "_NOT_FOUND"):
		return exitNotFound
	case c == "BAD_REQUEST" || c == "BAD_JSON" || c == "BODY_TOO_LARGE" || strings.HasSuffix(string(c), "_INVALID") || c == "IMPORT_NO_SERVER" || has("DERIVE_"):
		return exitInvalid
	}
	return exitFailed
}

// withoutDetails is the message up to where it starts to repeat the details,
// which follow in full.
func withoutDetails(e *fault.Error) string {
	if len(e.Details) > 1 {
		if head, _, ok := strings.Cut(e.Message, ": "+e.Details[0].Field); ok {
			return head
		}
	}
	return e.Message
}

// wantsJSON reports whether the command was asked for JSON.
func wantsJSON(cmd *cobra.Command) bool {
	if cmd == nil {
		return false
	}
	f := cmd.Flags().Lookup("json")
	return f != nil && f.Value.String() == "true"
}
