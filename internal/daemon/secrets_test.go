package daemon_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/control"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
	"github.com/hyperbolic-gateway/hb-rest/internal/soak"
)

// value is the credential of these tests. It has a character for which each
// encoding has a form of its own.
const value = `sk_live/9f8"Q2+wE7~rT5%yU1&iO3`

// A safe is a daemon with a keyring that counts how often it is asked, and a
// person beside it.
type safe struct {
	*world
	person *control.Client
	asked  atomic.Int64
	// hold, when it is set, is what the keyring waits for.
	hold atomic.Pointer[chan struct{}]
}

// newSafe starts a daemon that may call this machine. Names that end in .test
// lead here.
func newSafe(t *testing.T) *safe {
	t.Helper()
	s := &safe{world: newWorld(t, private, outbound.Options{
		Lookup: func(_ context.Context, host string) ([]netip.Addr, error) {
			if strings.HasSuffix(host, ".test") {
				return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
			}
			return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
		},
	})}
	s.options.Key = func(ctx context.Context, _ bool) ([]byte, error) {
		s.asked.Add(1)
		if hold := s.hold.Load(); hold != nil {
			select {
			case <-*hold:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		return bytes.Repeat([]byte{7}, 32), nil
	}
	s.restart()
	return s
}

// restart starts the daemon anew: the key is no longer held.
func (s *safe) restart() {
	s.t.Helper()
	s.stop()
	s.start()
	s.person = control.NewClient(s.cfg.ControlSocket, control.ClientOptions{})
}

// put saves a credential, which must work.
func (s *safe) put(p *control.SecretPut) {
	s.t.Helper()
	r, err := s.person.PutSecret(context.Background(), p)
	if err != nil || !r.OK {
		s.t.Fatalf("put %s: %v %+v", p.Name, err, r)
	}
}

// bearer is a static credential in the Authorization header for these hosts.
func bearer(name, value string, hosts ...string) *control.SecretPut {
	return &control.SecretPut{
		Name: name, Kind: "static", Headers: []control.SecretHeader{{Name: "Authorization", Prefix: "Bearer "}},
		AllowedHosts: hosts, Values: [][]byte{[]byte(value)},
	}
}

// minted is an OAuth2 credential with a token endpoint on the first host.
func minted(name, secret, tokenURL, style string, hosts ...string) *control.SecretPut {
	return &control.SecretPut{
		Name: name, Kind: "oauth2", AllowedHosts: hosts, Values: [][]byte{[]byte(secret)},
		OAuth:   &control.SecretOAuth{TokenURL: tokenURL, ClientID: "client-1", AuthStyle: style},
		Confirm: []string{"token-host"},
	}
}

// authed is the document of a GET wrapper that names a credential.
func authed(id, url, auth string, more ...string) string {
	return fmt.Sprintf(`{"schemaVersion":1,"id":%q,"name":%q,"request":{"method":"GET","url":%q,"auth":%q}%s}`, id, id, url, auth, strings.Join(more, ""))
}

// A party is an API that writes down what it gets.
type party struct {
	*httptest.Server
	handle http.HandlerFunc // nil: answers {"ok":true}

	mu    sync.Mutex
	hits  []*http.Request
	forms []url.Values
}

func newParty(t *testing.T, handle http.HandlerFunc) *party {
	t.Helper()
	p := &party{handle: handle}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		form, _ := url.ParseQuery(string(body))
		p.mu.Lock()
		p.hits, p.forms = append(p.hits, r), append(p.forms, form)
		p.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		if p.handle != nil {
			p.handle(w, r)
			return
		}
		_, _ = io.WriteString(w, `{"ok":true}`)
	}))
	t.Cleanup(p.Close)
	return p
}

// at is the party's address under another name.
func (p *party) at(host string) string {
	_, port, _ := strings.Cut(strings.TrimPrefix(p.URL, "http://"), ":")
	return "http://" + host + ":" + port
}

// take returns the requests since the last take.
func (p *party) take() []*http.Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	hits := p.hits
	p.hits, p.forms = nil, nil
	return hits
}

// sent is one header of each request since the last take.
func (p *party) sent(header string) []string {
	var out []string
	for _, r := range p.take() {
		out = append(out, r.Header.Get(header))
	}
	return out
}

// Every kind of credential, as it arrives.
func TestCredentialsOnTheWire(t *testing.T) {
	t.Parallel()
	s := newSafe(t)
	up := newParty(t, nil)
	mint := newParty(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"access_token":"tok-0123456789","token_type":"Bearer","expires_in":3600}`)
	})
	s.put(bearer("static", value, "a.test"))
	two := bearer("two", "", "a.test")
	two.Headers = []control.SecretHeader{{Name: "X-Api-Key"}, {Name: "X-App-Id", Prefix: "app "}}
	two.Values = [][]byte{[]byte("key-0123456789"), []byte("id-9876543210")}
	s.put(two)
	s.put(&control.SecretPut{Name: "basic", Kind: "basic", AllowedHosts: []string{"a.test"}, Values: [][]byte{[]byte("ada"), []byte("pass:word é 1")}})
	s.put(minted("body", "client-secret-1", mint.at("auth.a.test")+"/token", "body", "a.test"))
	s.put(minted("header", "client/secret 2", mint.at("auth.a.test")+"/token", "basic", "a.test"))
	for _, c := range []struct {
		auth string
		want map[string]string
	}{
		{"static", map[string]string{"Authorization": "Bearer " + value}},
		{"two", map[string]string{"X-Api-Key": "key-0123456789", "X-App-Id": "app id-9876543210", "Authorization": ""}},
		{"basic", map[string]string{"Authorization": "Basic " + base64.StdEncoding.EncodeToString([]byte("ada:pass:word é 1"))}},
		{"body", map[string]string{"Authorization": "Bearer tok-0123456789"}},
		{"header", map[string]string{"Authorization": "Bearer tok-0123456789"}},
	} {
		if a := s.once("w", authed("w", up.at("a.test")+"/", c.auth), `{}`); !a.OK {
			t.Errorf("%s: %s", c.auth, a.Raw)
		}
		hits := up.take()
		if len(hits) != 1 {
			t.Fatalf("%s: %d requests", c.auth, len(hits))
		}
		got := map[string]string{}
		for name := range c.want {
			got[name] = hits[0].Header.Get(name)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.auth, diff)
		}
	}
	if len(mint.hits) != 2 {
		t.Fatalf("%d mints, want 2", len(mint.hits))
	}
	if diff := cmp.Diff([]url.Values{
		{"grant_type": {"client_credentials"}, "client_id": {"client-1"}, "client_secret": {"client-secret-1"}},
		{"grant_type": {"client_credentials"}},
	}, mint.forms); diff != "" {
		t.Errorf("the mints (-want +got):\n%s", diff)
	}
	// RFC 6749 section 2.3.1: both halves are form-encoded before Base64.
	want := "Basic " + base64.StdEncoding.EncodeToString([]byte("client-1:client%2Fsecret+2"))
	if got := mint.hits[1].Header.Get("Authorization"); got != want {
		t.Errorf("the second mint came with %q, want %q", got, want)
	}
	if mint.hits[0].Header.Get("Authorization") != "" {
		t.Error("the first mint showed the client in both styles")
	}
	if n := s.asked.Load(); n != 1 {
		t.Errorf("the keyring was asked %d times, want 1", n)
	}
}

// D12: a redirect to another origin goes there without the credential, and
// without it back again.
func TestCredentialStaysWithItsOrigin(t *testing.T) {
	t.Parallel()
	for _, status := range []int{301, 302, 303, 307, 308} {
		s := newSafe(t)
		var a, b *party
		a = newParty(t, func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/out":
				http.Redirect(w, r, b.at("b.test")+"/back", status)
			case "/port":
				http.Redirect(w, r, b.at("a.test")+"/end", status) // the same host, another port
			case "/stay":
				http.Redirect(w, r, "/end", status)
			default:
				_, _ = io.WriteString(w, `{"ok":true}`)
			}
		})
		b = newParty(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/back" {
				http.Redirect(w, r, a.at("a.test")+"/end", status)
				return
			}
			_, _ = io.WriteString(w, `{"ok":true}`)
		})
		cred := bearer("key", "", "a.test", "b.test") // bound to both: an origin is still left
		cred.Headers = []control.SecretHeader{{Name: "X-Api-Key"}}
		cred.Values = [][]byte{[]byte(value)}
		s.put(cred)
		for _, c := range []struct {
			path        string
			first, then []string
		}{
			{"/out", []string{value, ""}, []string{""}},
			{"/port", []string{value}, []string{""}},
			{"/stay", []string{value, value}, nil},
		} {
			if x := s.once("w", authed("w", a.at("a.test")+c.path, "key"), `{}`); !x.OK {
				t.Errorf("%d %s: %s", status, c.path, x.Raw)
			}
			if diff := cmp.Diff(c.first, a.sent("X-Api-Key")); diff != "" {
				t.Errorf("%d %s, at the origin (-want +got):\n%s", status, c.path, diff)
			}
			if diff := cmp.Diff(c.then, b.sent("X-Api-Key")); diff != "" {
				t.Errorf("%d %s, elsewhere (-want +got):\n%s", status, c.path, diff)
			}
		}
	}
}

// D40, S-11: a wrapper that was moved to another host gets nothing, and the
// keyring is not even asked.
func TestMovedWrapper(t *testing.T) {
	t.Parallel()
	s := newSafe(t)
	a, b := newParty(t, nil), newParty(t, nil)
	s.put(bearer("key", value, "a.test"))
	s.restart()
	s.asked.Store(0)
	s.create(authed("w", a.at("a.test")+"/", "key"))
	for _, moved := range []string{b.at("b.test") + "/", b.at("a.test.b.test") + "/", b.at("xa.test") + "/", b.URL + "/"} {
		if x := s.change("update", authed("w", moved, "key")); !x.OK {
			t.Fatal(x.Raw)
		}
		x := s.run("w", `{}`)
		if x.OK || x.Code != "SECRET_HOST_NOT_ALLOWED" || x.Retryable || !strings.Contains(x.Hint, "hbrestd secret bind") {
			t.Errorf("%s: %s", moved, x.Raw)
		}
		if dry := s.post("/wrap/test", `{"id":"w"}`); len(dry.Refused) != 1 || dry.Refused[0].Code != "SECRET_HOST_NOT_ALLOWED" {
			t.Errorf("%s, dry: %s", moved, dry.Raw)
		}
		if live := s.post("/wrap/test", `{"id":"w","dryRun":false}`); live.Code != "SECRET_HOST_NOT_ALLOWED" {
			t.Errorf("%s, live: %s", moved, live.Raw)
		}
	}
	if n := len(b.take()); n != 0 || s.asked.Load() != 0 {
		t.Errorf("%d requests were sent, the keyring was asked %d times", n, s.asked.Load())
	}
	// The same host in another spelling is the same host.
	if x := s.change("update", authed("w", a.at("A.Test.")+"/", "key")); !x.OK {
		t.Fatal(x.Raw)
	}
	if x := s.run("w", `{}`); !x.OK {
		t.Error(x.Raw)
	}
	if diff := cmp.Diff([]string{"Bearer " + value}, a.sent("Authorization")); diff != "" {
		t.Error(diff)
	}
}

// D37: a dry run shows the name, asks no keyring and resolves no name.
func TestDryRunOpensNothing(t *testing.T) {
	t.Parallel()
	s := newSafe(t)
	s.put(bearer("key", value, "a.test"))
	s.restart()
	s.asked.Store(0)
	s.create(authed("w", "http://a.test/", "key"))
	for _, body := range []string{`{"id":"w"}`, `{"id":"w","dryRun":true}`, `{"wrapper":` + authed("v", "http://a.test/", "key") + `}`, `{"id":"w","sample":{"a":1}}`} {
		x := s.post("/wrap/test", body)
		if !x.OK || len(x.Refused) != 0 {
			t.Errorf("%s: %s", body, x.Raw)
		}
		if strings.Contains(x.Raw, "sk_live") || strings.Contains(x.Raw, "Bearer") {
			t.Errorf("%s shows the value: %s", body, x.Raw)
		}
		if x.Request != nil && !strings.Contains(x.Raw, `"secret":"key"`) {
			t.Errorf("%s does not name the credential: %s", body, x.Raw)
		}
	}
	if n := s.asked.Load(); n != 0 {
		t.Errorf("the keyring was asked %d times", n)
	}
	list := s.request(http.MethodGet, "/wrap/secrets", "")
	want := `{"secrets":[{"name":"key","headers":["Authorization"],"allowedHosts":["a.test"]}],"available":true}`
	if strings.TrimSpace(list.Raw) != want || s.asked.Load() != 0 {
		t.Errorf("%s, want %s; asked %d times", list.Raw, want, s.asked.Load())
	}
}

// request is one request with the token.
func (w *world) request(method, path, body string) *answer {
	w.t.Helper()
	req, err := http.NewRequest(method, "http://"+w.d.Addr()+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+w.tok)
	req.Header.Set("Content-Type", "application/json")
	a, err := w.do(req)
	if err != nil {
		w.t.Fatalf("%s %s: %v", method, path, err)
	}
	return a
}

// D42, O-06: an API that always says no gets the call twice with OAuth2 and
// once without; a refusal that is a rate limit (O-07) is none of the credential.
func TestRefusedCredential(t *testing.T) {
	t.Parallel()
	s := newSafe(t)
	var n atomic.Int64
	mint := newParty(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `{"access_token":"tok-%010d","token_type":"Bearer","expires_in":3600}`, n.Add(1))
	})
	var status atomic.Int64
	var limit atomic.Bool
	var good atomic.Pointer[string] // the token that is taken; nil: none
	up := newParty(t, func(w http.ResponseWriter, r *http.Request) {
		if g := good.Load(); g != nil && r.Header.Get("Authorization") == *g {
			_, _ = io.WriteString(w, `{"ok":true}`)
			return
		}
		if limit.Load() {
			w.Header().Set("X-RateLimit-Remaining", "0")
			w.Header().Set("Retry-After", "70") // no call waits that long
		}
		w.WriteHeader(int(status.Load()))
		_, _ = fmt.Fprintf(w, `{"message":"bad token %s"}`, r.Header.Get("Authorization"))
	})
	s.put(minted("oauth", "client-secret-1", mint.at("a.test")+"/token", "body", "a.test"))
	s.put(bearer("static", value, "a.test"))
	s.create(authed("o", up.at("a.test")+"/", "oauth"))
	s.create(authed("st", up.at("a.test")+"/", "static"))

	for _, st := range []int64{401, 403} {
		status.Store(st)
		before := n.Load()
		up.take()
		a := s.run("o", `{}`)
		extra := n.Load() - before
		want := int64(1)
		if st == 401 {
			want = 2 // the first token, and the one after its refusal
		}
		if a.Code != "AUTH_REQUIRED" || a.status() != int(st) || a.Retryable || !strings.Contains(a.Hint, "hbrestd secret rotate oauth") || strings.Contains(a.Raw, "tok-0") {
			t.Errorf("%d: %s", st, a.Raw)
		}
		if got := up.sent("Authorization"); len(got) != 2 || got[0] == got[1] || extra != want {
			t.Errorf("%d: sent %v, %d mints, want 2 calls and %d", st, got, extra, want)
		}
		a = s.run("st", `{}`)
		if a.Code != "AUTH_REQUIRED" || !strings.Contains(a.Hint, "hbrestd secret rotate static") || strings.Contains(a.Raw, "sk_live") {
			t.Errorf("%d: %s", st, a.Raw)
		}
		if got := up.sent("Authorization"); len(got) != 1 {
			t.Errorf("%d: a static credential was sent %d times, want once", st, len(got))
		}
	}

	// One that is taken after the second mint: the call works, by two requests.
	next := fmt.Sprintf("Bearer tok-%010d", n.Load()+1)
	good.Store(&next)
	if a := s.run("o", `{}`); !a.OK || len(up.take()) != 2 {
		t.Error(a.Raw)
	}
	if a := s.run("o", `{}`); !a.OK || len(up.take()) != 1 {
		t.Errorf("the new token was not kept: %s", a.Raw)
	}
	good.Store(nil)

	limit.Store(true)
	for _, st := range []int64{403, 429} {
		status.Store(st)
		before := n.Load()
		for _, id := range []string{"o", "st"} {
			a := s.run(id, `{}`)
			if a.Code != "UPSTREAM_RATE_LIMITED" || !a.Retryable || a.RetryAfterMs != 70000 || strings.Contains(a.Raw, "tok-0") || strings.Contains(a.Raw, "sk_live") {
				t.Errorf("%d %s: %s", st, id, a.Raw)
			}
			if got := up.sent("Authorization"); len(got) != 1 || n.Load() != before {
				t.Errorf("%d %s: %d calls, %d mints, want one and none", st, id, len(got), n.Load()-before)
			}
		}
	}
}

// O-01: whatever the endpoint says of a lifetime, a call mints once at most.
func TestTokenLifetimes(t *testing.T) {
	t.Parallel()
	s := newSafe(t)
	var expires atomic.Pointer[string]
	mint := newParty(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"access_token":"tok-0123456789","token_type":"bearer"`+*expires.Load()+`}`)
	})
	up := newParty(t, nil)
	for i, c := range []struct {
		expires string
		mints   int // of three calls, one after the other
	}{
		{`,"expires_in":3600`, 1},
		{`,"expires_in":"3600"`, 1},
		{`,"expires_in":3600.0`, 1},
		{`,"expires_in":1e400`, 1},
		{``, 1},
		{`,"expires_in":null`, 1},
		{`,"expires_in":"soon"`, 1},
		{`,"expires_in":0`, 3},
		{`,"expires_in":-5`, 3},
		{`,"expires_in":30`, 3}, // ends before the 60 s by which tokens are renewed early
		{`,"expires_in":61`, 1},
	} {
		expires.Store(&c.expires)
		name := fmt.Sprintf("o%d", i)
		s.put(minted(name, "client-secret-1", mint.at("a.test")+"/token", "body", "a.test"))
		s.create(authed(name, up.at("a.test")+"/", name))
		mint.take()
		for range 3 {
			if a := s.run(name, `{}`); !a.OK {
				t.Errorf("%s: %s", c.expires, a.Raw)
			}
		}
		if got := len(mint.take()); got != c.mints {
			t.Errorf("%q: %d mints for three calls, want %d", c.expires, got, c.mints)
		}
	}
}

// O-02, D32, D33: odd answers of a token endpoint are one request each and a
// stated outcome, without what the endpoint said.
func TestOddTokenEndpoints(t *testing.T) {
	t.Parallel()
	s := newSafe(t)
	elsewhere := newParty(t, nil)
	var answer func(w http.ResponseWriter)
	mint := newParty(t, func(w http.ResponseWriter, r *http.Request) { answer(w) })
	up := newParty(t, nil)
	s.put(minted("o", "client-secret-1", mint.at("a.test")+"/token", "body", "a.test"))
	s.create(authed("w", up.at("a.test")+"/", "o"))
	say := func(status int, kind, body string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}
	const echo = "the secret was client-secret-1"
	for _, c := range []struct {
		name   string
		answer func(http.ResponseWriter)
		code   string
	}{
		{"D32 307 to another host", func(w http.ResponseWriter) {
			w.Header().Set("Location", elsewhere.at("b.test")+"/")
			w.WriteHeader(307)
		}, "OAUTH_TOKEN_FAILED"},
		{"D33 500", say(500, "text/plain", echo), "OAUTH_TOKEN_FAILED"},
		{"400 with the secret in it", say(400, "application/json", `{"error":"invalid_client","error_description":"`+echo+`"}`), "OAUTH_TOKEN_FAILED"},
		{"200 and an error", say(200, "application/json", `{"error":"client-secret-1"}`), "OAUTH_TOKEN_FAILED"},
		{"HTML", say(200, "text/html", "<html>"+echo), "OAUTH_TOKEN_BAD_ANSWER"},
		{"huge", say(200, "application/json", `{"access_token":"`+strings.Repeat("x", 70<<10)+`"}`), "OAUTH_TOKEN_BAD_ANSWER"},
		{"nothing", say(200, "application/json", ""), "OAUTH_TOKEN_BAD_ANSWER"},
		{"a short token", say(200, "application/json", `{"access_token":"short"}`), "OAUTH_TOKEN_BAD_ANSWER"},
		{"a token with a line break", say(200, "application/json", `{"access_token":"abcdefgh\r\nEvil: 1"}`), "OAUTH_TOKEN_BAD_ANSWER"},
		{"mac", say(200, "application/json", `{"access_token":"abcdefghij","token_type":"mac"}`), "OAUTH_TOKEN_BAD_ANSWER"},
	} {
		answer = c.answer
		s.put(minted("o", "client-secret-1", mint.at("a.test")+"/token", "body", "a.test")) // a refusal is remembered until then
		a := s.run("w", `{}`)
		if a.Code != c.code || strings.Contains(a.Raw, "client-secret-1") || strings.Contains(a.Raw, "Evil") {
			t.Errorf("%s: want %s, got %s", c.name, c.code, a.Raw)
		}
		if n := len(mint.take()); n != 1 {
			t.Errorf("%s: %d requests to the endpoint, want 1", c.name, n)
		}
	}
	if n := len(up.take()) + len(elsewhere.take()); n != 0 {
		t.Errorf("%d requests went out without a token", n)
	}
	s.put(minted("o", "client-secret-1", mint.at("a.test")+"/token", "body", "a.test"))
	answer = say(200, "application/x-www-form-urlencoded", "access_token=form-0123456789&token_type=bearer&expires_in=3600")
	if a := s.run("w", `{}`); !a.OK {
		t.Errorf("O-02: %s", a.Raw)
	}
	if diff := cmp.Diff([]string{"Bearer form-0123456789"}, up.sent("Authorization")); diff != "" {
		t.Error(diff)
	}
}

// A client secret that its endpoint refuses is sent once for many calls: a provider
// may lock a client out that goes on. A person's test asks again, a new value too.
func TestRefusedSecretIsSentOnce(t *testing.T) {
	t.Parallel()
	s := newSafe(t)
	const right = "client-secret-2"
	var mint *party
	mint = newParty(t, func(w http.ResponseWriter, _ *http.Request) {
		mint.mu.Lock()
		sent := mint.forms[len(mint.forms)-1].Get("client_secret")
		mint.mu.Unlock()
		if sent != right {
			w.WriteHeader(401)
			_, _ = io.WriteString(w, `{"error":"invalid_client"}`)
			return
		}
		_, _ = io.WriteString(w, `{"access_token":"tok-0123456789","token_type":"Bearer","expires_in":3600}`)
	})
	up := newParty(t, nil)
	s.put(minted("o", "client-secret-1", mint.at("a.test")+"/token", "body", "a.test"))
	s.create(authed("w", up.at("a.test")+"/", "o"))
	for i := range 20 {
		a := s.run("w", `{}`)
		if a.Code != "OAUTH_TOKEN_FAILED" || a.status() != 401 || a.Retryable || !strings.Contains(a.Message, "invalid_client") || strings.Contains(a.Raw, "client-secret") {
			t.Fatal(a.Raw)
		}
		if i > 0 && (!strings.Contains(a.Message, " UTC, and it is not asked again before ") || !strings.Contains(a.Message, "`hbrestd secret test`")) {
			t.Fatalf("call %d does not say since when and what to do: %s", i+1, a.Raw)
		}
	}
	if n := len(mint.take()); n != 1 {
		t.Errorf("20 calls sent the secret %d times, want once", n)
	}
	if _, err := s.person.TestSecret(context.Background(), &control.SecretTest{Name: "o", Wrapper: "w"}); !fault.Is(err, "OAUTH_TOKEN_FAILED") || strings.Contains(err.Error(), "not asked again") {
		t.Error(err)
	}
	if n := len(mint.take()); n != 1 {
		t.Errorf("a person's test sent the secret %d times, want once", n)
	}
	s.put(minted("o", right, mint.at("a.test")+"/token", "body", "a.test"))
	if a := s.run("w", `{}`); !a.OK || len(mint.take()) != 1 || len(up.take()) != 1 {
		t.Errorf("the new secret: %s", a.Raw)
	}
}

// 200 calls at once make one token request, before and after a refusal of the
// token by the API: two rounds, or 30.
func TestParallelCallsMintOnce(t *testing.T) {
	t.Parallel()
	s := newSafe(t)
	var n atomic.Int64
	mint := newParty(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `{"access_token":"tok-%010d","token_type":"Bearer","expires_in":3600}`, n.Add(1))
	})
	var oldest atomic.Int64 // tokens before it are refused
	up := newParty(t, func(w http.ResponseWriter, r *http.Request) {
		var k int64
		_, _ = fmt.Sscanf(r.Header.Get("Authorization"), "Bearer tok-%d", &k)
		if k < oldest.Load() {
			w.WriteHeader(401)
		}
		_, _ = io.WriteString(w, `{"ok":true}`)
	})
	s.put(minted("o", "client-secret-1", mint.at("a.test")+"/token", "body", "a.test"))
	s.create(authed("w", up.at("a.test")+"/", "o"))
	rounds := int64(soak.Rounds(2, 30))
	for round := range rounds {
		oldest.Store(round + 1)
		var wg sync.WaitGroup
		var wrong atomic.Int64
		for range 200 {
			wg.Go(func() {
				// A machine as busy as a test's may be told to come back.
				for {
					a, err := s.send("/wrap/run", `{"id":"w","args":{}}`)
					if err == nil && a.Code == "BUSY" {
						continue
					}
					if (err != nil || !a.OK) && wrong.Add(1) <= 3 {
						t.Errorf("round %d: %v %+v", round, err, a)
					}
					return
				}
			})
		}
		wg.Wait()
		if got := n.Load(); got != round+1 {
			t.Errorf("round %d: %d mints in all, want %d", round, got, round+1)
		}
	}
	soak.Measured(t, "%d rounds of 200 calls at once whose token is refused: %d token requests", rounds, n.Load())
}

// A page on another origin is not read, so it gets no credential either; pages
// of the origin all get it.
func TestPagesAndCredentials(t *testing.T) {
	t.Parallel()
	s := newSafe(t)
	b := newParty(t, nil)
	a := newParty(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/own":
			_, _ = io.WriteString(w, `{"items":[{"n":1}],"next":"/own2"}`)
		case "/own2":
			_, _ = io.WriteString(w, `{"items":[{"n":2}],"next":null}`)
		case "/away":
			_, _ = fmt.Fprintf(w, `{"items":[{"n":1}],"next":%q}`, b.at("b.test")+"/x")
		case "/port":
			_, _ = fmt.Fprintf(w, `{"items":[{"n":1}],"next":%q}`, b.at("a.test")+"/x")
		}
	})
	s.put(bearer("key", value, "a.test", "b.test"))
	const paged = `,"response":{"schemaVersion":1,"select":"$.items","mode":"table","fields":{"N":"n"},"pagination":{"type":"link","nextUrl":"next"}}`
	for path, want := range map[string]int{"/own": 2, "/away": 1, "/port": 1} {
		x := s.once("w", authed("w", a.at("a.test")+path, "key", paged), `{}`)
		if !x.OK {
			t.Errorf("%s: %s", path, x.Raw)
		}
		got := a.sent("Authorization")
		if len(got) != want || slices.ContainsFunc(got, func(h string) bool { return h != "Bearer "+value }) {
			t.Errorf("%s: the origin got %q", path, got)
		}
		if n := len(b.take()); n != 0 {
			t.Errorf("%s: %d requests went to another origin", path, n)
		}
	}
}

// Hosts that a person takes away while a call waits for the keyring are not
// sent the credential any more.
func TestUnboundWhileWaiting(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(s *safe) error{
		"unbind": func(s *safe) error {
			_, err := s.person.BindSecret(context.Background(), &control.SecretBind{Name: "key", Add: []string{"b.test"}, Remove: []string{"a.test"}, Confirm: []string{"token-host"}})
			return err
		},
		"delete": func(s *safe) error {
			_, err := s.person.DeleteSecret(context.Background(), &control.SecretName{Name: "key"})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSafe(t)
			var n atomic.Int64
			minting, landed := make(chan struct{}), make(chan struct{})
			mint := newParty(t, func(w http.ResponseWriter, _ *http.Request) {
				if n.Add(1) == 1 {
					close(minting)
					<-landed
				}
				_, _ = io.WriteString(w, `{"access_token":"tok-0123456789","token_type":"Bearer","expires_in":3600}`)
			})
			up := newParty(t, nil)
			s.put(minted("key", "client-secret-1", mint.at("auth.test")+"/token", "body", "a.test"))
			s.create(authed("w", up.at("a.test")+"/", "key"))
			done := make(chan *answer)
			go func() {
				a, err := s.send("/wrap/run", `{"id":"w"}`)
				if err != nil {
					t.Error(err)
				}
				done <- a
			}()
			<-minting
			err := change(s)
			close(landed)
			if err != nil {
				t.Error(err)
			}
			a := <-done
			if got := up.sent("Authorization"); len(got) != 0 {
				t.Errorf("a host that is no longer allowed was sent the credential: %v %s", got, a.Raw)
			}
			if a.Code != "SECRET_HOST_NOT_ALLOWED" && a.Code != "SECRET_NOT_FOUND" {
				t.Errorf("want a refusal, got %s", a.Raw)
			}
		})
	}
}

// The same while the keyring keeps the call waiting: deleting needs no key.
func TestDeletedWhileTheKeyringWaits(t *testing.T) {
	t.Parallel()
	s := newSafe(t)
	up := newParty(t, nil)
	s.put(bearer("key", value, "a.test"))
	s.create(authed("w", up.at("a.test")+"/", "key"))
	hold := make(chan struct{})
	s.hold.Store(&hold)
	s.restart()
	s.asked.Store(0)
	done := make(chan *answer)
	go func() {
		a, err := s.send("/wrap/run", `{"id":"w"}`)
		if err != nil {
			t.Error(err)
		}
		done <- a
	}()
	for s.asked.Load() == 0 {
		time.Sleep(time.Millisecond) // the call gets there; there is no other sign of it
	}
	if _, err := s.person.DeleteSecret(context.Background(), &control.SecretName{Name: "key"}); err != nil {
		t.Error(err)
	}
	close(hold)
	if a := <-done; a.Code != "SECRET_NOT_FOUND" {
		t.Errorf("want SECRET_NOT_FOUND, got %s", a.Raw)
	}
	if got := up.sent("Authorization"); len(got) != 0 {
		t.Errorf("a deleted credential was sent: %v", got)
	}
}

// A credential is changed, rotated, deleted and made again while calls run: each
// call is sent a whole credential of one moment, to a host that it was bound to
// at that moment, or fails in words.
func TestCredentialChangesUnderCalls(t *testing.T) {
	t.Parallel()
	s := newSafe(t)
	// The value says which host it may go to.
	var wrong, sent atomic.Int64
	up := newParty(t, nil)
	up.handle = func(w http.ResponseWriter, r *http.Request) {
		host, _, _ := strings.Cut(r.Host, ":")
		sent.Add(1)
		if got := r.Header.Get("Authorization"); got != "Bearer for-"+host {
			if wrong.Add(1) <= 5 {
				t.Errorf("%s was sent %q", host, got)
			}
		}
		_, _ = io.WriteString(w, `{"ok":true}`)
	}
	put := func(host string) *control.SecretPut { return bearer("key", "for-"+host, host) }
	s.put(put("a.test"))
	s.create(authed("w", up.at("a.test")+"/", "key"))
	stop := make(chan struct{})
	var wg sync.WaitGroup
	var codes sync.Map
	for range 8 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				a, err := s.send("/wrap/run", `{"id":"w"}`)
				if err != nil {
					t.Error(err)
					return
				}
				n, _ := codes.LoadOrStore(a.Code, new(atomic.Int64))
				n.(*atomic.Int64).Add(1)
			}
		})
	}
	ctx := context.Background()
	for i := range 60 {
		host := []string{"a.test", "b.test"}[i%2]
		if i%5 == 4 {
			if _, err := s.person.DeleteSecret(ctx, &control.SecretName{Name: "key"}); err != nil {
				t.Error(err)
			}
		}
		// The wrapper first or the credential first: neither order may leak.
		if i%3 == 0 {
			s.change("update", authed("w", up.at(host)+"/", "key"))
			s.put(put(host))
		} else {
			s.put(put(host))
			s.change("update", authed("w", up.at(host)+"/", "key"))
		}
	}
	close(stop)
	wg.Wait()
	text := ""
	codes.Range(func(code, n any) bool {
		switch code {
		case "", "SECRET_HOST_NOT_ALLOWED", "SECRET_NOT_FOUND":
		default:
			t.Errorf("calls ended with %v", code)
		}
		text += fmt.Sprintf(" %q:%d", code, n.(*atomic.Int64).Load())
		return true
	})
	if wrong.Load() > 0 {
		t.Errorf("%d of %d requests came with another credential", wrong.Load(), sent.Load())
	}
	t.Logf("%d requests, answers by code:%s", sent.Load(), text)
}

// A person's test runs a saved wrapper that reads, and nothing else.
func TestSecretTest(t *testing.T) {
	t.Parallel()
	s := newSafe(t)
	up := newParty(t, nil)
	s.put(bearer("key", value, "a.test"))
	s.create(authed("read", up.at("a.test")+"/", "key"))
	s.create(strings.Replace(authed("write", up.at("a.test")+"/", "key"), `"GET"`, `"POST"`, 1))
	s.create(get("plain", up.at("a.test")+"/"))
	ctx := context.Background()
	r, err := s.person.TestSecret(ctx, &control.SecretTest{Name: "key", Wrapper: "read"})
	if err != nil || !r.OK || len(up.take()) != 1 {
		t.Error(err, r)
	}
	for wrapper, code := range map[string]fault.Code{
		"write": "SECRET_INVALID", "plain": "SECRET_INVALID", "nowhere": "WRAPPER_NOT_FOUND", up.at("a.test"): "WRAPPER_NOT_FOUND",
	} {
		if _, err := s.person.TestSecret(ctx, &control.SecretTest{Name: "key", Wrapper: wrapper}); !fault.Is(err, code) {
			t.Errorf("%s: want %s, got %v", wrapper, code, err)
		}
	}
	if n := len(up.take()); n != 0 {
		t.Errorf("%d requests", n)
	}
}

// Each change of a credential is a row of the trail, without its name or value.
func TestSecretChangesAreAudited(t *testing.T) {
	t.Parallel()
	s := newSafe(t)
	ctx := context.Background()
	piped := bearer("orders-key", value, "a.test")
	piped.Stdin = true
	s.put(bearer("orders-key", value, "a.test"))
	s.put(piped)
	if _, err := s.person.BindSecret(ctx, &control.SecretBind{Name: "orders-key", Add: []string{"b.test"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.person.DeleteSecret(ctx, &control.SecretName{Name: "orders-key"}); err != nil {
		t.Fatal(err)
	}
	var got []api.AuditRow
	for deadline := time.Now().Add(10 * time.Second); len(got) < 4 && time.Now().Before(deadline); {
		page, err := s.person.AuditFollow(ctx, 0, 100) // rows are written in groups, a moment later
		if err != nil {
			t.Fatal(err)
		}
		got = page.Rows
	}
	var actions []string
	for _, r := range got {
		actions = append(actions, r.Author+": "+r.Action)
		if text, _ := json.Marshal(r); strings.Contains(string(text), "orders-key") || strings.Contains(string(text), "sk_live") {
			t.Errorf("a row names the credential: %s", text)
		}
	}
	want := []string{"human: credential changed", "human: credential changed from standard input", "human: credential hosts changed", "human: credential deleted"}
	slices.Sort(actions) // the order of the newest is the page's
	slices.Sort(want)
	if !slices.Equal(actions, want) {
		t.Errorf("the trail has %q, want %q", actions, want)
	}
	log := s.log.String()
	if strings.Contains(log, "orders-key") || strings.Contains(log, "sk_live") {
		t.Error("the log names the credential")
	}
}
