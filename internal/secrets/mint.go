package secrets

import (
	"bytes"
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/redact"
)

const (
	// Early is how long before its expiry a cached token is no longer used.
	Early = 60 * time.Second
	// MaxLifetime is the longest that a token is used, whatever its endpoint says.
	MaxLifetime = 24 * time.Hour
	// MintTimeout bounds one request to a token endpoint.
	MintTimeout = 15 * time.Second
	// RefusalKept is how long a token endpoint's refusal answers for it: a burst of
	// calls with a wrong secret would have a provider lock the client out.
	RefusalKept = 30 * time.Second
)

// A Minter asks a token endpoint for a token: once, in the style it is told,
// without redirects. Its errors are *fault.Error with an OAUTH_, POLICY_ or
// AUDIT_ code; of any other only that it failed is shown.
type Minter func(ctx context.Context, r MintRequest) (Token, error)

// A MintRequest is what a Minter sends.
type MintRequest struct {
	Name      string // of the credential, for the audit trail
	TokenURL  string
	ClientID  string
	Secret    value // r.Secret.Reveal() is the client secret; it prints as [secret]
	Scope     string
	Audience  string
	AuthStyle AuthStyle
}

// A Token is what a Minter got.
type Token struct {
	access   value
	lifetime time.Duration
}

// NewToken holds an access token and how long it is good for from now on. Less
// than nothing counts as nothing: it is used for the call that it was minted for
// and never again. More than MaxLifetime counts as that.
func NewToken(access string, lifetime time.Duration) Token {
	return Token{keep([]byte(access)), min(max(lifetime, 0), MaxLifetime)}
}

// MarshalJSON refuses.
func (t Token) MarshalJSON() ([]byte, error) { return nil, errNoMarshal }

// A token is a minted token with its times.
type token struct {
	access          value
	minted, expires time.Time
}

func (t *token) copy() *token {
	return &token{keep(bytes.Clone(t.access.bytes())), t.minted, t.expires}
}

func (t *token) same(o *token) bool {
	return o != nil && subtle.ConstantTimeCompare(t.access.bytes(), o.access.bytes()) == 1
}

// A mintFlight is one request to a token endpoint that all who need the token
// wait for. Its fields are set before done is closed.
type mintFlight struct {
	done  chan struct{}
	token *token
	err   error
}

// mintOnce returns the token of this call: the one it has, a cached one, or a new
// one. Once a call has a token it keeps it, so that a lifetime of a few seconds
// does not mean a mint for every page.
func (g *Grant) mintOnce(ctx context.Context, r *record, secret value) (*token, error) {
	g.mu.Lock()
	have := g.token
	g.mu.Unlock()
	if have != nil {
		return have, nil
	}
	return g.take(ctx, r, secret, nil)
}

// take gets a token other than stale and makes it this call's.
func (g *Grant) take(ctx context.Context, r *record, secret value, stale *token) (*token, error) {
	t, err := g.vault.token(ctx, r, secret, stale)
	if err != nil {
		return nil, g.shown(err)
	}
	if err := g.learn(OAuth2, []value{t.access}); err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.token = t
	return t, nil
}

// Renew forces one new token after an API refused the last one, and reports
// whether there is a point in trying again: true once for each call of an OAuth2
// credential, else false. Calls that were refused the same token share one new one.
func (g *Grant) Renew(ctx context.Context) (bool, error) {
	g.mu.Lock()
	stale, again := g.token, g.renewed
	g.renewed = true
	g.mu.Unlock()
	if again || stale == nil {
		return false, nil
	}
	r, vs, err := g.open(ctx)
	if err != nil {
		return false, err
	}
	defer wipe(vs)
	if r.Kind != OAuth2 {
		return false, nil
	}
	if _, err := g.take(ctx, r, vs[0], stale); err != nil {
		return false, err
	}
	return true, nil
}

// shown makes sure that an error of minting has nothing secret in it, whatever
// the endpoint echoed.
func (g *Grant) shown(err error) error {
	var f *fault.Error
	if !errors.As(err, &f) {
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			return fault.From(err)
		}
		return fail("OAUTH_TOKEN_FAILED", "no token could be had for credential %q", g.name).With(fault.Cause(err))
	}
	e := *f
	e.Message, e.Hint, e.Field = g.Scrub(f.Message), g.Scrub(f.Hint), g.Scrub(f.Field)
	e.Details = nil
	if h, ok := hints[e.Code]; ok && e.Hint == "" {
		e.Hint = h.text
	}
	return &e
}

// token returns a usable token for r, minting one when there is none. stale is a
// token that was refused: another one is wanted.
func (v *Vault) token(ctx context.Context, r *record, secret value, stale *token) (*token, error) {
	f, err := v.tokenFlight(ctx, r, secret, stale)
	if err != nil {
		return nil, err
	}
	select {
	case <-f.done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if f.err != nil {
		return nil, f.err
	}
	return f.token.copy(), nil
}

// tokenFlight returns a cached token as a flight that has landed, the flight that
// is under way for these very values, or a new one.
func (v *Vault) tokenFlight(ctx context.Context, r *record, secret value, stale *token) (*mintFlight, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	b, err := v.held()
	if err != nil {
		return nil, err
	}
	key := r.Name + "\x00" + string(r.Sealed)
	if f := v.flights[key]; f != nil {
		return f, nil
	}
	if t := v.cached(b, r); t != nil {
		left := t.expires.Sub(v.now())
		if stale == nil && left > Early || stale != nil && left > 0 && !t.same(stale) {
			f := &mintFlight{done: make(chan struct{}), token: t}
			close(f.done)
			return f, nil
		}
	}
	if v.mint == nil {
		return nil, fail("OAUTH_TOKEN_FAILED", "this hbrestd cannot mint tokens")
	}
	if err := v.refusals[r.Name].of(r, v.now()); err != nil {
		return nil, err
	}
	f := &mintFlight{done: make(chan struct{})}
	v.flights[key] = f
	secret = keep(bytes.Clone(secret.bytes()))
	// The flight outlives the call that began it: others wait for it too.
	ctx = context.WithoutCancel(ctx)
	v.work.Go(func() { v.fly(ctx, f, key, r, secret) })
	return f, nil
}

// fly mints, caches and lands.
func (v *Vault) fly(ctx context.Context, f *mintFlight, key string, r *record, secret value) {
	defer secret.wipe()
	ctx, cancel := context.WithTimeout(ctx, MintTimeout)
	defer cancel()
	stop := context.AfterFunc(v.life, cancel)
	defer stop()
	got, err := v.mint(ctx, MintRequest{
		Name: r.Name, TokenURL: r.OAuth.TokenURL, ClientID: r.OAuth.ClientID, Secret: secret,
		Scope: r.OAuth.Scope, Audience: r.OAuth.Audience, AuthStyle: r.OAuth.AuthStyle,
	})
	if err == nil {
		err = got.check(r.Name)
	}
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil {
		err = fail("OAUTH_TOKEN_UNREACHABLE", "the token endpoint did not answer within %d seconds", int(MintTimeout.Seconds())).
			With(fault.Cause(err), fault.Hint("Repeat the call in a moment; if it lasts, ask a person to check the token URL with `hbrestd secret show %s`.", r.Name))
	}
	now := v.now()
	v.mu.Lock()
	defer v.mu.Unlock()
	if err == nil {
		f.token = &token{got.access, now, now.Add(got.lifetime)}
		v.cache(r, f.token)
	}
	if e := refusalIn(err); e != nil {
		v.refusals[r.Name] = &refusal{r.Sealed, now, e}
	} else {
		delete(v.refusals, r.Name)
	}
	f.err = err
	delete(v.flights, key)
	close(f.done)
}

// A refusal is a token endpoint's no to a client, which the same request would
// hear again.
type refusal struct {
	sealed []byte // the values that were refused; others have a try
	at     time.Time
	err    *fault.Error
}

// refusalIn returns what in err is a refusal: neither a passing trouble nor an
// answer that is none.
func refusalIn(err error) *fault.Error {
	var f *fault.Error
	if errors.As(err, &f) && f.Code == "OAUTH_TOKEN_FAILED" && f.Status != 0 && !f.Retryable {
		return f
	}
	return nil
}

// of is the refusal as the error of a call with r, nil when it is over or was of
// other values. A nil refusal is over.
func (x *refusal) of(r *record, now time.Time) error {
	if x == nil || !bytes.Equal(x.sealed, r.Sealed) {
		return nil
	}
	if since := now.Sub(x.at); since < 0 || since >= RefusalKept { // less than nothing: the clock was set back
		return nil
	}
	e := *x.err
	e.Message = fault.Shorten(fmt.Sprintf("%s; that was at %s UTC, and it is not asked again before %s, but by `hbrestd secret test`",
		e.Message, x.at.UTC().Format(time.TimeOnly), x.at.Add(RefusalKept).UTC().Format(time.TimeOnly)), fault.MaxMessage)
	return &e
}

// AskAgain forgets that a token endpoint refused a credential: a person wants to
// know how it is now.
func (v *Vault) AskAgain(name string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.refusals, name)
}

// check refuses what cannot be sent as a token, or not be found in an answer.
func (t Token) check(name string) error {
	text := t.access.bytes()
	bad := func(what string) error {
		return fail("OAUTH_TOKEN_BAD_ANSWER", "the token endpoint answered with a token that %s", what).
			With(fault.Hint("Ask a person to check the token URL: `hbrestd secret show %s`.", name))
	}
	switch {
	case len(text) == 0:
		return bad("is empty")
	case len(text) < redact.MinSecret:
		return bad("is shorter than 8 characters")
	case len(text) > MaxValue:
		return bad("is longer than 16 KiB")
	case strings.IndexFunc(string(text), func(r rune) bool { return r <= ' ' || r > '~' }) >= 0:
		return bad("has characters which no header may carry")
	}
	return nil
}

// cached opens the token stored with the values of r, if there is one. v.mu is held.
func (v *Vault) cached(b *box, r *record) *token {
	now, err := v.load(r.Name) // r may be older than the last mint
	if err != nil || now == nil || !bytes.Equal(now.Sealed, r.Sealed) {
		return nil
	}
	for _, sealed := range [][]byte{v.unsaved[r.Name], now.Token} {
		plain, err := b.open(sealed, r.boundToken())
		if err != nil {
			continue
		}
		t, err := unpackToken(plain)
		clear(plain)
		// A token from the future is the sign of a clock that was set back.
		if err == nil && !t.minted.After(v.now().Add(Early)) && t.expires.Sub(t.minted) <= MaxLifetime {
			return t
		}
	}
	return nil
}

// cache seals t and stores it with the credential, unless that was changed
// meanwhile. v.mu is held.
func (v *Vault) cache(r *record, t *token) {
	b, err := v.held()
	if err != nil {
		return
	}
	now, err := v.load(r.Name)
	if err != nil || now == nil || !bytes.Equal(now.Sealed, r.Sealed) {
		return
	}
	plain := packToken(t)
	defer clear(plain)
	now.Token = b.seal(plain, now.boundToken())
	delete(v.unsaved, r.Name)
	if v.records.PutSealed(r.Name, now.encode()) != nil {
		v.unsaved[r.Name] = now.Token // a full disk is no reason to mint for every call
	}
}
