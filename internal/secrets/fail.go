package secrets

import "github.com/hyperbolic-gateway/hb-rest/internal/fault"

// hints are for the codes of this package, until or unless the catalogue has its
// own row for them.
var hints = map[fault.Code]struct {
	text      string
	retryable bool
}{
	"SECRET_NOT_FOUND":        {"Call wrap_secret_list to see the names. Only a person can add a credential: `hbrestd secret set NAME --host HOST`.", false},
	"SECRET_HOST_NOT_ALLOWED": {"Only a person can bind a credential to another host: `hbrestd secret bind NAME --host HOST`.", false},
	"SECRET_LOCKED":           {"Ask a person to run `hbrestd secret list`, which says what is wrong with the keyring and how to fix it.", false},
	"SECRET_DAMAGED":          {"Ask a person to enter the value again with `hbrestd secret set NAME`.", false},
	"SECRET_INVALID":          {"Fix the named fields and set the credential again.", false},
	"SECRET_CHANGED":          {"Look at it with `hbrestd secret show NAME`, then run the command again.", false},
	"OAUTH_TOKEN_FAILED":      {"Ask a person to check client id, secret, scope and audience with `hbrestd secret show NAME`.", false},
	"OAUTH_TOKEN_UNREACHABLE": {"Repeat the call in a moment; if it lasts, ask a person to check the token URL with `hbrestd secret show NAME`.", true},
	"OAUTH_TOKEN_BAD_ANSWER":  {"The token endpoint does not answer as RFC 6749 says. Ask a person to check the token URL.", false},
}

func fail(c fault.Code, format string, args ...any) *fault.Error {
	e := fault.New(c, format, args...)
	if h, ok := hints[c]; ok && e.Hint == "" {
		return e.With(fault.Hint("%s", h.text), fault.Retryable(h.retryable))
	}
	return e
}
