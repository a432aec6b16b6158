package secrets

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"sync"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/redact"
)

// A Grant is the right to send one credential to one host, for one call with all
// its pages and retries. It holds the value only from the first Apply to Close.
type Grant struct {
	vault      *Vault
	name, host string
	binding    []byte
	headers    []string

	mu       sync.Mutex // guards what follows; never held while waiting
	token    *token     // minted or cached, kept for the whole call
	renewed  bool
	closed   bool
	values   [][]byte // everything that must not come back
	scrubber *redact.Scrubber
}

// Headers names the headers that Apply sets, for whoever must drop them when a
// redirect leaves the host.
func (g *Grant) Headers() []string { return slices.Clone(g.headers) }

// Name is the credential's name, never its value.
func (g *Grant) Name() string { return g.name }

// String names the credential; a Grant shows nothing else to fmt.
func (g *Grant) String() string { return fmt.Sprintf("grant of %q for %s", g.name, g.host) }

// Format writes String for every verb.
func (g *Grant) Format(s fmt.State, _ rune) { _, _ = s.Write([]byte(g.String())) }

// Apply unseals the credential, mints a token when it needs one, and sets the
// headers; g.Apply(ctx, header.Set) is the usual call. The binding is checked
// again: a person may have changed it while the call waited. It may be called
// once for each request of the call.
//
// Errors: SECRET_LOCKED, SECRET_DAMAGED, SECRET_NOT_FOUND and
// SECRET_HOST_NOT_ALLOWED (changed meanwhile), OAUTH_*, POLICY_* for the token
// URL, STORE_FAILED, and those of an ended context. Then nothing was set.
func (g *Grant) Apply(ctx context.Context, set func(header, value string)) error {
	r, vs, err := g.open(ctx)
	if err != nil {
		return err
	}
	defer wipe(vs)
	switch r.Kind {
	case Static:
		for i, h := range r.Headers {
			set(h.Name, h.Prefix+string(vs[i].bytes()))
		}
	case Basic:
		pair := slices.Concat(vs[0].bytes(), []byte{':'}, vs[1].bytes())
		defer clear(pair)
		set(r.Headers[0].Name, r.Headers[0].Prefix+base64.StdEncoding.EncodeToString(pair))
	case OAuth2:
		t, err := g.mintOnce(ctx, r, vs[0])
		if err != nil {
			return err
		}
		set(r.Headers[0].Name, r.Headers[0].Prefix+string(t.access.bytes()))
	}
	return nil
}

// open reads the record, checks that nothing of the binding changed since the
// grant, opens the values and makes them known to the scrubber.
func (g *Grant) open(ctx context.Context) (*record, []value, error) {
	r, err := g.vault.load(g.name)
	if err != nil {
		return nil, nil, err
	}
	if r == nil {
		return nil, nil, notFound(g.name)
	}
	if err := r.allows(g.host); err != nil {
		return nil, nil, err
	}
	if !bytes.Equal(r.meta().binding(), g.binding) {
		return nil, nil, fail("SECRET_HOST_NOT_ALLOWED", "credential %q was changed while the call waited; nothing was sent", g.name).
			With(fault.Field("request.auth"), fault.Retryable(true), fault.Hint("Repeat the call."))
	}
	if _, err := g.vault.masterKey(ctx, false); err != nil {
		return nil, nil, err
	}
	vs, err := g.vault.unseal(r)
	if err != nil {
		return nil, nil, err
	}
	if err := g.learn(r.Kind, vs); err != nil {
		wipe(vs)
		return nil, nil, err
	}
	return r, vs, nil
}

// unseal opens the values of r with the key that is held.
func (v *Vault) unseal(r *record) ([]value, error) {
	v.mu.Lock() // Close does not wipe the key meanwhile
	defer v.mu.Unlock()
	b, err := v.held()
	if err != nil {
		return nil, err
	}
	return r.values(b)
}

// learn makes values known to the scrubber before they are used for anything.
func (g *Grant) learn(kind Kind, vs []value) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return fault.New("INTERNAL", "a grant was used after its call")
	}
	var add [][]byte
	for _, x := range vs {
		add = append(add, bytes.Clone(x.bytes()))
	}
	if kind == Basic && len(vs) == 2 {
		pair := slices.Concat(vs[0].bytes(), []byte{':'}, vs[1].bytes())
		add = append(add, pair, base64.StdEncoding.AppendEncode(nil, pair)) // the latter is what is on the wire, and comes back encoded again
	}
	known := len(g.values)
	for _, x := range add {
		if slices.ContainsFunc(g.values, func(have []byte) bool { return bytes.Equal(have, x) }) {
			clear(x)
			continue
		}
		g.values = append(g.values, x)
	}
	if len(g.values) > known {
		g.scrubber = redact.NewScrubber(g.values...) // the old one may still be in use; it is left to the collector
	}
	return nil
}

// Scrub returns s without any spelling of what this grant opened or minted
// (see [redact.Scrubber]). Before Apply there is nothing to look for; after
// Close everything is masked.
func (g *Grant) Scrub(s string) string {
	switch sc, closed := g.scrub(); {
	case sc != nil:
		return sc.String(s)
	case closed && s != "":
		return redact.Mask
	}
	return s
}

// ScrubBytes is Scrub for a body. It returns b itself when there is nothing to hide.
func (g *Grant) ScrubBytes(b []byte) []byte {
	switch sc, closed := g.scrub(); {
	case sc != nil:
		return sc.Bytes(b)
	case closed && len(b) > 0:
		return []byte(redact.Mask)
	}
	return b
}

func (g *Grant) scrub() (*redact.Scrubber, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.scrubber, g.closed
}

// Close wipes what the grant holds. Nothing of it may be in use any more.
func (g *Grant) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	for _, x := range g.values {
		clear(x)
	}
	g.values = nil
	if g.token != nil {
		g.token.access.wipe()
		g.token = nil
	}
	if g.scrubber != nil {
		g.scrubber.Wipe()
		g.scrubber = nil
	}
}
