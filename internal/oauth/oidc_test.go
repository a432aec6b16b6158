package oauth_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/oauth"
	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
	"github.com/hyperbolic-gateway/hb-rest/internal/secrets"
)

// oidcSecret is that of every client of testdata/oidc/server.mjs: each of its
// signs is spelled differently in a form, in a URL and in a header.
const oidcSecret = "made up: 100%+/=&? for a test"

// An authority is a running oidc-provider and the one door to it.
type authority struct {
	t     *testing.T
	base  string
	door  *outbound.Client
	mints atomic.Int32 // requests that reached the token endpoint
}

func startAuthority(t *testing.T) *authority {
	t.Helper()
	dir := os.Getenv("HB_E2E_NPM")
	switch dir {
	case "":
		t.Skip("set HB_E2E_NPM=1 after `npm install` in internal/oauth/testdata/oidc, or to another folder with oidc-provider in its node_modules: it comes from a package registry, and tests use no network")
	case "1":
		dir = filepath.Join("testdata", "oidc")
	}
	if _, err := os.Stat(filepath.Join(dir, "node_modules", "oidc-provider")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("node", filepath.Join("testdata", "oidc", "server.mjs"), dir)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = cmd.Wait()
		timer.Stop()
	})
	port, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		_ = stdin.Close()
		_ = cmd.Wait()
		t.Fatalf("%v: %s", err, stderr.String())
	}
	a := &authority{t: t, base: "http://127.0.0.1:" + strings.TrimSpace(port)}
	a.door = outbound.New(outbound.Policy{AllowPrivate: true}, outbound.Options{
		Observe: func(_ context.Context, x outbound.Exchange) {
			if x.Tag.Kind == "mint" && x.Status != 0 {
				a.mints.Add(1)
			}
		},
	})
	t.Cleanup(a.door.Close)
	return a
}

// vault has one credential, for the client with that id.
func (a *authority) vault(id string, style secrets.AuthStyle, secret string, edits ...func(*secrets.OAuthMeta)) *secrets.Vault {
	a.t.Helper()
	v := newVault(a.t, time.Now, oauth.New(a.door.Send))
	put(a.t, v, secret, append([]func(*secrets.OAuthMeta){func(o *secrets.OAuthMeta) {
		o.TokenURL, o.ClientID, o.AuthStyle = a.base+"/token", id, style
	}}, edits...)...)
	return v
}

// apply is one request of a call: what would be sent in its Authorization header.
func (a *authority) apply(g *secrets.Grant) (token string, err error) {
	err = g.Apply(a.t.Context(), func(_, value string) { token = strings.TrimPrefix(value, "Bearer ") })
	return token, err
}

// An introspection is what the provider itself says about a token (RFC 7662).
type introspection struct {
	Active   bool   `json:"active"`
	ClientID string `json:"client_id"`
	Scope    string `json:"scope"`
}

func (a *authority) introspect(token string) introspection {
	a.t.Helper()
	resp, err := http.PostForm(a.base+"/token/introspection", url.Values{"client_id": {"body-client"}, "client_secret": {oidcSecret}, "token": {token}})
	if err != nil {
		a.t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // read only
	var out introspection
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil || resp.StatusCode != 200 {
		a.t.Fatal(resp.Status, err)
	}
	return out
}

// A real authorization server takes both auth styles and knows the tokens it gave.
// It takes either style from either client, but refuses a request that shows the
// client in both.
func TestRealServer(t *testing.T) {
	a := startAuthority(t)
	scope := func(o *secrets.OAuthMeta) { o.Scope = "api:read" }
	for _, c := range []struct {
		id    string
		style secrets.AuthStyle
	}{{"body-client", secrets.StyleBody}, {"basic:client+1", secrets.StyleBasic}} {
		before := a.mints.Load()
		v := a.vault(c.id, c.style, oidcSecret, scope)
		var tokens []string
		for range 3 { // three calls share one token of ten minutes
			g, err := v.Grant("orders", "api.example.com")
			if err != nil {
				t.Fatal(err)
			}
			token, err := a.apply(g)
			if err != nil {
				t.Fatalf("%s: %v", c.style, err)
			}
			tokens = append(tokens, token)
			g.Close()
		}
		if tokens[0] != tokens[1] || tokens[1] != tokens[2] || a.mints.Load()-before != 1 {
			t.Errorf("%s: %d mints for three calls", c.style, a.mints.Load()-before)
		}
		if got, want := a.introspect(tokens[0]), (introspection{true, c.id, "api:read"}); got != want {
			t.Errorf("%s: got %+v, want %+v", c.style, got, want)
		}
	}
}

// What a real server refuses costs one request, and says why in its own code.
func TestRealServerRefuses(t *testing.T) {
	a := startAuthority(t)
	for name, c := range map[string]struct {
		id     string
		style  secrets.AuthStyle
		secret string
		scope  string
		status int
		code   string
	}{
		"wrong secret in the body":   {"body-client", secrets.StyleBody, "wrong-canary", "", 401, "invalid_client"},
		"wrong secret in the header": {"basic:client+1", secrets.StyleBasic, "wrong-canary", "", 401, "invalid_client"},
		"unknown client":             {"nobody-canary", secrets.StyleBody, oidcSecret, "", 401, "invalid_client"},
		"a scope too much":           {"body-client", secrets.StyleBody, oidcSecret, "api:read api:write", 400, "invalid_scope"},
		"not this client's grant":    {"no-grant", secrets.StyleBody, oidcSecret, "", 400, "invalid_request"},
	} {
		t.Run(name, func(t *testing.T) {
			before := a.mints.Load()
			_, err := mint(t, oauth.New(a.door.Send), c.secret, func(o *secrets.OAuthMeta) {
				o.TokenURL, o.ClientID, o.AuthStyle, o.Scope = a.base+"/token", c.id, c.style, c.scope
			})
			message := fmt.Sprintf("the token endpoint %s answered %d: %s", strings.TrimPrefix(a.base, "http://"), c.status, c.code)
			failed(t, err, problem{"OAUTH_TOKEN_FAILED", message, c.status, false, 0})
			if n := a.mints.Load() - before; n != 1 {
				t.Errorf("%d requests", n)
			}
		})
	}
	_, err := mint(t, oauth.New(a.door.Send), oidcSecret, func(o *secrets.OAuthMeta) {
		o.TokenURL, o.ClientID, o.AuthStyle = a.base+"/tokens", "body-client", secrets.StyleBody
	})
	failed(t, err, problem{"OAUTH_TOKEN_FAILED", "the token endpoint " + strings.TrimPrefix(a.base, "http://") + " answered 404", 404, false, 0})
}

// A token that ends after two seconds: one call keeps it for its pages, is given
// one more when the API refuses it, and the next call starts with a new one.
func TestRealServerExpiry(t *testing.T) {
	a := startAuthority(t)
	v := a.vault("brief", secrets.StyleBody, oidcSecret)
	g, err := v.Grant("orders", "api.example.com")
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	first, err := a.apply(g)
	if err != nil || !a.introspect(first).Active {
		t.Fatal(err, "the first token is not active")
	}
	deadline, tick := time.After(20*time.Second), time.NewTicker(100*time.Millisecond)
	defer tick.Stop()
	for a.introspect(first).Active { // the server's own clock decides
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("the token of two seconds lives on")
		}
	}
	if again, err := a.apply(g); err != nil || again != first || a.mints.Load() != 1 {
		t.Errorf("%d mints within one call before its API refused: %v", a.mints.Load(), err)
	}
	if again, err := g.Renew(t.Context()); !again || err != nil {
		t.Fatal(again, err)
	}
	second, err := a.apply(g)
	if err != nil || second == first || !a.introspect(second).Active || a.mints.Load() != 2 {
		t.Errorf("after the renewal: %d mints, the same token %v, %v", a.mints.Load(), second == first, err)
	}
	if again, err := g.Renew(t.Context()); again || err != nil {
		t.Errorf("a second renewal: %v, %v", again, err)
	}
	next, err := v.Grant("orders", "api.example.com")
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	if third, err := a.apply(next); err != nil || third == second || a.mints.Load() != 3 {
		t.Errorf("the next call: %d mints, %v", a.mints.Load(), err)
	}
}
