package oauth_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/oauth"
	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
	"github.com/hyperbolic-gateway/hb-rest/internal/secrets"
)

const (
	clientID     = "client-id-canary"
	clientSecret = "client secret/canary+1%"
	accessToken  = "access-token-canary"
	tokenURL     = "https://example.com/token" // the name in httptest's certificate
)

// An arrival is a request as the endpoint got it.
type arrival struct {
	Method, Target, Authorization, ContentType, Accept, Body string
}

// A world is one token endpoint, reached through a real outbound client.
type world struct {
	t       *testing.T
	handler http.HandlerFunc
	policy  outbound.Policy
	intent  error

	mu       sync.Mutex // guards the rest
	arrivals []arrival
	dials    []string
	intents  []outbound.Exchange
	results  []outbound.Exchange
	client   *outbound.Client
}

func newWorld(t *testing.T, handler http.HandlerFunc) *world { return &world{t: t, handler: handler} }

// answers is a world whose endpoint always says the same.
func answers(t *testing.T, status int, contentType, body string) *world {
	return newWorld(t, func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header()["Content-Type"] = nil // nothing is guessed
		if contentType != "" {
			rw.Header().Set("Content-Type", contentType)
		}
		rw.WriteHeader(status)
		_, _ = io.WriteString(rw, body)
	})
}

func (w *world) start() *outbound.Client {
	w.t.Helper()
	if w.client != nil {
		return w.client
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.mu.Lock()
		w.arrivals = append(w.arrivals, arrival{
			r.Method, r.URL.RequestURI(), r.Header.Get("Authorization"), r.Header.Get("Content-Type"), r.Header.Get("Accept"), string(body),
		})
		w.mu.Unlock()
		r.Body = io.NopCloser(bytes.NewReader(body))
		w.handler(rw, r)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	w.t.Cleanup(s.Close)
	roots := s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	w.client = outbound.New(w.policy, outbound.Options{
		TLS:        &tls.Config{RootCAs: roots},
		Interfaces: func() []netip.Addr { return nil },
		Lookup: func(_ context.Context, host string) ([]netip.Addr, error) {
			switch host {
			case "example.com", "wrong-name.test":
				return []netip.Addr{netip.MustParseAddr("93.184.216.1")}, nil
			case "down.example.com":
				return []netip.Addr{netip.MustParseAddr("93.184.216.2")}, nil
			case "inside.example.com":
				return []netip.Addr{netip.MustParseAddr("10.0.0.1")}, nil
			}
			return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
		},
		DialAddr: func(ctx context.Context, a netip.AddrPort) (net.Conn, error) {
			w.mu.Lock()
			w.dials = append(w.dials, a.String())
			w.mu.Unlock()
			if a.String() != "93.184.216.1:443" {
				return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
			}
			return (&net.Dialer{}).DialContext(ctx, "tcp", s.Listener.Addr().String())
		},
		Intent: func(_ context.Context, x outbound.Exchange) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			if len(w.arrivals) > len(w.intents) {
				w.t.Error("sent before the intent was recorded")
			}
			w.intents = append(w.intents, x)
			return w.intent
		},
		Observe: func(_ context.Context, x outbound.Exchange) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.results = append(w.results, x)
		},
	})
	w.t.Cleanup(w.client.Close)
	return w.client
}

func (w *world) seen() []arrival {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.arrivals)
}

// mint mints once, with the usual client or an edited one.
func (w *world) mint(edits ...func(*secrets.OAuthMeta)) (secrets.Token, error) {
	w.t.Helper()
	return mint(w.t, oauth.New(w.start().Send), clientSecret, edits...)
}

// mint hands a minter the request that a vault makes: only a vault can.
func mint(t *testing.T, m secrets.Minter, secret string, edits ...func(*secrets.OAuthMeta)) (got secrets.Token, failed error) {
	t.Helper()
	called := false
	v := newVault(t, time.Now, func(ctx context.Context, r secrets.MintRequest) (secrets.Token, error) {
		called = true
		got, failed = m(ctx, r)
		return got, failed
	})
	put(t, v, secret, edits...)
	g, err := v.Grant("orders", "api.example.com")
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	err = g.Apply(t.Context(), func(string, string) {})
	if !called {
		t.Fatal(err)
	}
	return got, failed
}

func newVault(t *testing.T, now func() time.Time, m secrets.Minter) *secrets.Vault {
	t.Helper()
	v, err := secrets.Open(t.Context(), secrets.Options{
		Records: records{}, Mint: m, Now: now,
		Key: func(context.Context, bool) ([]byte, error) { return bytes.Repeat([]byte{7}, secrets.KeySize), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Close)
	return v
}

func put(t *testing.T, v *secrets.Vault, secret string, edits ...func(*secrets.OAuthMeta)) {
	t.Helper()
	o := &secrets.OAuthMeta{TokenURL: tokenURL, ClientID: clientID, AuthStyle: secrets.StyleBody}
	for _, e := range edits {
		e(o)
	}
	m := secrets.Meta{Name: "orders", Kind: secrets.OAuth2, AllowedHosts: []string{"api.example.com"}, OAuth: o}
	if err := v.Put(t.Context(), m, [][]byte{[]byte(secret)}); err != nil {
		t.Fatal(err)
	}
}

// records is a store in memory; a vault asks it from one goroutine at a time.
type records map[string][]byte

func (r records) GetSealed(name string) ([]byte, error) { return r[name], nil }
func (r records) PutSealed(name string, b []byte) error { r[name] = bytes.Clone(b); return nil }
func (r records) DeleteSealed(name string) error        { delete(r, name); return nil }
func (r records) ListSealed() (names []string, _ error) {
	for n := range r {
		names = append(names, n)
	}
	return names, nil
}

// is checks a token and its lifetime; a Token shows neither.
func is(t *testing.T, got secrets.Token, err error, access string, lifetime time.Duration) {
	t.Helper()
	if err != nil {
		t.Errorf("got %v", err)
		return
	}
	if !reflect.DeepEqual(got, secrets.NewToken(access, lifetime)) {
		t.Errorf("not the token %.40q for %v", access, lifetime)
	}
}

// A problem is all that an error shows.
type problem struct {
	Code       fault.Code
	Message    string
	Status     int
	Retryable  bool
	RetryAfter time.Duration
}

// failed checks a whole error, that its hint is worth reading, and that nothing
// of the client or the answer is in it or in what it wraps.
func failed(t *testing.T, err error, want problem) {
	t.Helper()
	var f *fault.Error
	if !errors.As(err, &f) {
		t.Errorf("got %v, want %+v", err, want)
		return
	}
	if got := (problem{f.Code, f.Message, f.Status, f.Retryable, f.RetryAfter}); got != want {
		t.Errorf("\n got %+v\nwant %+v", got, want)
	}
	if f.Hint == "" || strings.HasSuffix(f.Hint, "…") || len(f.Details) != 0 {
		t.Errorf("hint %q, details %v", f.Hint, f.Details)
	}
	silent(t, err)
}

// silent looks for the canaries in an error and everything below it.
func silent(t *testing.T, err error) {
	t.Helper()
	for ; err != nil; err = errors.Unwrap(err) {
		text := fmt.Sprintf("%v %+v %#v", err, err, err)
		for _, canary := range []string{
			clientID, clientSecret, accessToken, url.QueryEscape(clientSecret), url.PathEscape(clientSecret), "canary",
			base64.StdEncoding.EncodeToString([]byte(clientID + ":" + clientSecret)),
			base64.StdEncoding.EncodeToString([]byte(url.QueryEscape(clientID) + ":" + url.QueryEscape(clientSecret))),
		} {
			if strings.Contains(text, canary) {
				t.Errorf("%q is in %s", canary, text)
			}
		}
	}
}

func basic(o *secrets.OAuthMeta) { o.AuthStyle = secrets.StyleBasic }

func at(u string) func(*secrets.OAuthMeta) {
	return func(o *secrets.OAuthMeta) { o.TokenURL = u }
}
