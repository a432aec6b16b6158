package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/secrets"
)

// urlField is where a person finds the token URL.
const urlField = "oauth.tokenUrl"

// An endpoint is the place that a mint went to, for the words of its errors.
type endpoint struct {
	request secrets.MintRequest
	host    string
}

// errorCodes are the codes of RFC 6749 sections 4.1.2.1 and 5.2 that a token
// endpoint may give a client. Any other text of an error is the endpoint's own,
// and endpoints echo what they were sent.
var errorCodes = []string{
	"invalid_client", "invalid_grant", "invalid_request", "unauthorized_client", "unsupported_grant_type", "invalid_scope",
	"temporarily_unavailable", "server_error",
}

func errorCode(m map[string]any) string {
	if s, ok := m["error"].(string); ok && slices.Contains(errorCodes, s) {
		return s
	}
	return ""
}

// refused is an endpoint that said no.
func (e endpoint) refused(status int, code string, wait time.Duration) error {
	again := passing(status, code)
	words := ""
	if code != "" {
		words = ": " + code
	} else if status < 300 {
		words = " with an error that is none of OAuth2's"
	}
	f := fault.New("OAUTH_TOKEN_FAILED", "%s answered %d%s", e.name(), status, words).
		With(fault.Status(status), fault.Retryable(again), fault.Hint("%s", e.advice(status, code)))
	if !again || wait <= 0 {
		return f
	}
	f = f.With(fault.RetryAfter(wait)) // which bounds it
	return f.With(fault.Hint("Wait %d s, then repeat the call.", int((f.RetryAfter+time.Second-1)/time.Second)))
}

// passing reports whether the same request may succeed later. A mint may always
// be repeated: a token more does no harm.
func passing(status int, code string) bool {
	switch {
	case status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable:
		return true
	case code != "":
		return code == "temporarily_unavailable" || code == "server_error"
	case status == http.StatusNotImplemented || status == http.StatusHTTPVersionNotSupported:
		return false
	}
	return status == http.StatusRequestTimeout || status == http.StatusTooEarly || status >= 500
}

// advice says what to do about a refusal.
func (e endpoint) advice(status int, code string) string {
	show := e.show()
	switch {
	case passing(status, code):
		return "Repeat the call in a moment."
	case code == "invalid_scope":
		return "Ask a person to check the scope: " + show + "."
	case code == "unauthorized_client" || code == "unsupported_grant_type" || code == "invalid_grant":
		return "The provider gives this client no token by client credentials. Ask a person to check its settings there: " + show + "."
	case code == "invalid_client" || code == "" && status == http.StatusUnauthorized:
		return fmt.Sprintf("Ask a person to check client id, secret and auth style (now %s): %s.", e.request.AuthStyle, show)
	case code == "" && (status == http.StatusNotFound || status == http.StatusMethodNotAllowed || status == http.StatusGone):
		return checkURL(e.request)
	}
	return fmt.Sprintf("Ask a person to check scope, audience and auth style (now %s): %s.", e.request.AuthStyle, show)
}

// redirected is an endpoint that points elsewhere. The form with the secret is
// not sent there: whoever may write a Location would get it.
func (e endpoint) redirected(status int) error {
	return fault.New("OAUTH_TOKEN_FAILED", "%s answered with a redirect (%d), which is not followed with a client secret", e.name(), status).
		With(fault.Status(status), fault.Retryable(false), fault.Hint("%s", checkURL(e.request)))
}

// bad is an endpoint that said yes, but gave no token that could be used. The
// words complete "the token endpoint answered".
func (e endpoint) bad(format string, args ...any) error {
	return fault.New("OAUTH_TOKEN_BAD_ANSWER", "%s answered %s", e.name(), fmt.Sprintf(format, args...)).
		With(fault.Retryable(false), fault.Hint("%s", checkURL(e.request)))
}

// unsent names an error of sending. No cause is kept: below, it may quote what
// the endpoint sent, and the log is read too.
func (e endpoint) unsent(err error) error {
	var f *fault.Error
	switch {
	case errors.As(err, &f):
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	default:
		return e.unreachable(e.name()+" could not be reached", true)
	}
	code := string(f.Code)
	switch {
	case code == "POLICY_REDIRECT" || code == "UPSTREAM_REDIRECT":
		return e.redirected(f.Status)
	case strings.HasPrefix(code, "POLICY_"):
		return e.policy(f)
	case code == "RESPONSE_TOO_LARGE":
		return e.bad("with more than 64 KiB")
	case code == "RESPONSE_ENCODING":
		return e.bad("in an encoding that cannot be read")
	case code == "BUSY":
		return e.unreachable(e.name()+" has too many requests waiting for it", true)
	case strings.HasPrefix(code, "UPSTREAM_") || strings.HasPrefix(code, "RESPONSE_"):
		// A certificate or a protocol does not mend itself.
		again := code != "UPSTREAM_TLS" && code != "UPSTREAM_PROTOCOL"
		return e.unreachable("the token endpoint could not be used: "+f.Message, again)
	}
	return err
}

// unreachable is an endpoint that gave no answer.
func (e endpoint) unreachable(message string, again bool) error {
	hint := checkURL(e.request)
	if e.reveals(message) { // what a server's certificate says is its own text
		message = "the token endpoint could not be used"
	}
	if again {
		hint = "Repeat the call in a moment; if it lasts, ask a person to check the token URL: " + e.show() + "."
	}
	return fault.New("OAUTH_TOKEN_UNREACHABLE", "%s", message).With(fault.Retryable(again), fault.Hint("%s", hint))
}

// policy is a refusal of the outbound policy, kept as it is but for the place:
// its own words are about a wrapper's URL.
func (e endpoint) policy(f *fault.Error) error {
	out := *f
	out.Field = urlField
	if message := fault.Shorten("token URL refused: "+f.Message, fault.MaxMessage); !e.reveals(message) {
		out.Message = message
	} else {
		out.Message = "token URL refused"
	}
	if f.Code == "POLICY_URL" || f.Code == "POLICY_REQUEST_TOO_LARGE" {
		return out.With(fault.Hint("%s", checkURL(e.request)))
	}
	return &out
}

// name is the endpoint in words.
func (e endpoint) name() string {
	const most = 100
	if e.host == "" || e.reveals(e.host) {
		return "the token endpoint"
	}
	return "the token endpoint " + fault.Shorten(e.host, most)
}

// reveals reports whether text holds what no message shows.
func (e endpoint) reveals(text string) bool {
	secret := e.request.Secret.Reveal()
	return secret != "" && strings.Contains(text, secret) || e.request.ClientID != "" && strings.Contains(text, e.request.ClientID)
}

// show is the command that prints a credential's settings.
func (e endpoint) show() string { return show(e.request) }

func show(r secrets.MintRequest) string {
	const most = 60 // of a name in a hint
	name := r.Name
	if name == "" || len(name) > most {
		name = "NAME"
	}
	return "`hbrestd secret show " + name + "`"
}

func checkURL(r secrets.MintRequest) string {
	return "Ask a person to check the token URL: " + show(r) + "."
}

// retryAfter reads the header of that name, a number of seconds or a date; 0 if
// it is absent, in the past or nonsense.
func retryAfter(h string, now time.Time) time.Duration {
	h = strings.TrimSpace(h)
	if n, err := strconv.ParseUint(h, 10, 31); err == nil {
		return time.Duration(n) * time.Second
	}
	if t, err := http.ParseTime(h); err == nil {
		return max(t.Sub(now), 0)
	}
	return 0
}
