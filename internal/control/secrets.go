package control

import (
	"context"
	"net/url"
	"slices"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// SecretInfo is what a person may see of a credential: everything but its
// values.
type SecretInfo struct {
	Name         string         `json:"name"`
	Kind         string         `json:"kind"` // static, basic, oauth2
	Headers      []SecretHeader `json:"headers"`
	AllowedHosts []string       `json:"allowedHosts"`
	OAuth        *SecretOAuth   `json:"oauth,omitempty"`
	Updated      string         `json:"updated,omitempty"` // RFC 3339
	Seal         string         `json:"seal,omitempty"`    // another one after each change
	Problem      string         `json:"problem,omitempty"` // why the record cannot be read
	UsedBy       []string       `json:"usedBy,omitempty"`  // ids of wrappers that name it
}

// A SecretHeader is a header that carries a value, and the text before it.
type SecretHeader struct {
	Name   string `json:"name"`
	Prefix string `json:"prefix,omitempty"`
}

// SecretOAuth is a client-credentials grant without its secret.
type SecretOAuth struct {
	TokenURL  string `json:"tokenUrl"`
	ClientID  string `json:"clientId"`
	Scope     string `json:"scope,omitempty"`
	Audience  string `json:"audience,omitempty"`
	AuthStyle string `json:"authStyle"` // body or basic
}

// SecretState is the keyring's state and every credential.
type SecretState struct {
	State   string       `json:"state"` // ready, locked, none, key missing, not asked
	Reason  string       `json:"reason,omitempty"`
	Fix     string       `json:"fix,omitempty"`
	Detail  string       `json:"detail,omitempty"`
	Secrets []SecretInfo `json:"secrets"`
}

// SecretPut creates a credential, or replaces what it says of one. Values are
// one for each header in order; for basic user and password; for oauth2 the
// client secret. A null entry, or no values at all, keeps the sealed one.
type SecretPut struct {
	Name         string         `json:"name"`
	Kind         string         `json:"kind"`
	Headers      []SecretHeader `json:"headers,omitempty"`
	AllowedHosts []string       `json:"allowedHosts"`
	OAuth        *SecretOAuth   `json:"oauth,omitempty"`
	Values       [][]byte       `json:"values,omitempty"`
	Create       bool           `json:"create,omitempty"` // refuse when the name is taken
	Seen         string         `json:"seen,omitempty"`   // refuse when the credential has not this seal any more
	// Confirm lists what the person has said yes to: "token-host" for a token
	// endpoint on another site than the hosts.
	Confirm []string `json:"confirm,omitempty"`
	Stdin   bool     `json:"stdin,omitempty"` // the value came through a pipe, not from a prompt
}

// SecretBind adds and removes hosts; the values stay.
type SecretBind struct {
	Name    string   `json:"name"`
	Add     []string `json:"add,omitempty"`
	Remove  []string `json:"remove,omitempty"`
	Confirm []string `json:"confirm,omitempty"`
}

// SecretName names a credential.
type SecretName struct {
	Name string `json:"name"`
}

// SecretTest runs a saved wrapper that only reads and names the credential.
type SecretTest struct {
	Name    string `json:"name"`
	Wrapper string `json:"wrapper"` // id
}

// SecretResult is the credential after a change. With Confirm set nothing was
// changed: the person must be asked, and the request sent again with the word.
type SecretResult struct {
	OK      bool        `json:"ok"`
	Secret  *SecretInfo `json:"secret,omitempty"`
	Confirm string      `json:"confirm,omitempty"` // "token-host"
	Message string      `json:"message,omitempty"` // what to ask
}

// wiping overwrites the bytes of a request, which hold values, once it is
// answered. Buffers of net/http that they came through are out of reach.
func wiping(r route) route {
	serve := r.serve
	r.serve = func(ctx context.Context, q request) (any, error) {
		defer clear(q.body)
		return serve(ctx, q)
	}
	return r
}

func (h *handler) secretState(ctx context.Context, _ url.Values) (any, error) {
	s, err := h.backend.SecretState(ctx)
	if err != nil {
		return nil, err
	}
	c := *s
	c.Secrets = filled(slices.Clone(s.Secrets)) // the backend may share s
	for i := range c.Secrets {
		c.Secrets[i] = filledSecret(c.Secrets[i])
	}
	return &c, nil
}

func (h *handler) putSecret(ctx context.Context, q *SecretPut) (any, error) {
	defer func() {
		for _, v := range q.Values {
			clear(v)
		}
	}()
	return secretResult(h.backend.PutSecret(ctx, q))
}

func secretResult(r *SecretResult, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	c := *r
	if r.Secret != nil {
		s := filledSecret(*r.Secret)
		c.Secret = &s
	}
	return &c, nil
}

func filledSecret(s SecretInfo) SecretInfo {
	s.Headers, s.AllowedHosts = filled(s.Headers), filled(s.AllowedHosts)
	return s
}

// What a credential must be is the vault's to say. These checks are about the
// form of a call, and repeat nothing of a value.

func checkSecretPut(q *SecretPut) *fault.Error {
	switch {
	case q.Name == "":
		return bad("body.name", "say which credential")
	case q.Kind != "static" && q.Kind != "basic" && q.Kind != "oauth2":
		return bad("body.kind", "must be static, basic or oauth2")
	}
	return nil
}

// checkSecretCheck keeps values out of a call that does not need them.
func checkSecretCheck(q *SecretPut) *fault.Error {
	if len(q.Values) > 0 {
		for _, v := range q.Values {
			clear(v)
		}
		return bad("body.values", "a check takes no values")
	}
	return checkSecretPut(q)
}

func checkSecretBind(q *SecretBind) *fault.Error {
	switch {
	case q.Name == "":
		return bad("body.name", "say which credential")
	case len(q.Add) == 0 && len(q.Remove) == 0:
		return bad("body.add", "give at least one host to add or to remove")
	}
	return nil
}

func checkSecretName(q *SecretName) *fault.Error {
	if q.Name == "" {
		return bad("body.name", "say which credential")
	}
	return nil
}

func checkSecretTest(q *SecretTest) *fault.Error {
	switch {
	case q.Name == "":
		return bad("body.name", "say which credential")
	case q.Wrapper == "":
		return bad("body.wrapper", "say which wrapper to run")
	}
	return nil
}
