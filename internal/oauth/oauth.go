// Package oauth asks a token endpoint for an access token: the OAuth 2.0
// client-credentials grant (RFC 6749 section 4.4), as the [secrets.Minter] that a
// vault is given.
//
// A mint is one request that is never repeated: not in another auth style, not
// after an error, not where a redirect points. It opens no connection of its own,
// keeps neither token nor secret, and shows no text that an endpoint wrote: of an
// error, its status and a code of RFC 6749. Start with [New].
package oauth

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
	"github.com/hyperbolic-gateway/hb-rest/internal/secrets"
)

// UnknownLifetime is how long a token is taken to be good for when its endpoint
// does not say, or not in a number: short enough that a token revoked meanwhile
// is soon gone, long enough that a burst of calls shares one. A token that ends
// earlier is replaced once the API refuses it.
const UnknownLifetime = 5 * time.Minute

// maxAnswer is the most that an endpoint may answer, in bytes: four times the
// longest token that is accepted.
const maxAnswer = 64 << 10

// New makes a Minter that sends through send, which is (*outbound.Client).Send
// or calls it: the policy, the audit trail and the network are its part.
//
// The errors: OAUTH_TOKEN_FAILED when the endpoint refused or redirected,
// OAUTH_TOKEN_BAD_ANSWER when it said yes without a usable bearer token,
// OAUTH_TOKEN_UNREACHABLE when there was no answer, and POLICY_, AUDIT_ and
// context errors as send returned them, with nothing of the answer in them.
func New(send func(context.Context, *outbound.Request) (*outbound.Response, error)) secrets.Minter {
	return (&client{send: send, now: time.Now}).mint
}

type client struct {
	send func(context.Context, *outbound.Request) (*outbound.Response, error)
	now  func() time.Time // for a Retry-After that is a date
}

func (c *client) mint(ctx context.Context, r secrets.MintRequest) (secrets.Token, error) {
	req, err := request(r)
	if err != nil {
		return secrets.Token{}, err
	}
	e := endpoint{request: r, host: req.URL.Host}
	var of *outbound.Response
	var token secrets.Token
	var failed error
	// An answer is read once, while the request is sent: its row has the code.
	judge := func(resp *outbound.Response) fault.Code {
		if of != resp {
			of = resp
			token, failed = e.read(resp, c.now())
		}
		if failed == nil {
			return ""
		}
		return fault.From(failed).Code
	}
	req.Judge = judge
	resp, err := c.send(ctx, req)
	if err != nil {
		return secrets.Token{}, e.unsent(err)
	}
	judge(resp)
	return token, failed
}

// request is what the endpoint is sent. It shows the client in the style that a
// person chose and in no other: an endpoint that is shown both must refuse (RFC
// 6749 section 2.3), and the one it does not read may end in its log.
func request(r secrets.MintRequest) (*outbound.Request, error) {
	u, err := url.Parse(r.TokenURL)
	if err != nil {
		// The library's error would quote the URL.
		return nil, fault.New("POLICY_URL", "the token URL is not a URL").With(fault.Field(urlField), fault.Hint("%s", checkURL(r)))
	}
	form := url.Values{"grant_type": {"client_credentials"}}
	if r.Scope != "" {
		form.Set("scope", r.Scope)
	}
	if r.Audience != "" {
		form.Set("audience", r.Audience)
	}
	authorization := ""
	switch r.AuthStyle {
	case secrets.StyleBody:
		form.Set("client_id", r.ClientID)
		form.Set("client_secret", r.Secret.Reveal())
	case secrets.StyleBasic:
		// RFC 6749 section 2.3.1: each half is form-encoded before the pair is
		// made, so that an id with a colon stays whole.
		pair := url.QueryEscape(r.ClientID) + ":" + url.QueryEscape(r.Secret.Reveal())
		authorization = "Basic " + base64.StdEncoding.EncodeToString([]byte(pair))
	default:
		return nil, fault.New("OAUTH_TOKEN_FAILED", "the credential does not say how to show the client to its token endpoint; nothing was sent").
			With(fault.Hint("Ask a person to set the credential again and to choose the auth style body or basic."))
	}
	req := outbound.NewRequest("POST", u, []byte(form.Encode()))
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	if authorization != "" {
		req.Header.Set("Authorization", authorization)
	}
	req.Timeout = secrets.MintTimeout
	req.NoRedirects = true
	req.Durable, req.Mutating = true, true
	req.Tag = outbound.Tag{Kind: "mint", Call: newCall()}
	return req, nil
}

// newCall is the id that the intent and the result of one mint share. It is not
// that of a wrapper's call: many may wait for one mint.
func newCall() string {
	var id [8]byte
	_, _ = rand.Read(id[:]) // never fails: crypto/rand ends the program instead
	return hex.EncodeToString(id[:])
}
