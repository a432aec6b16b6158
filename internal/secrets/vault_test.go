package secrets_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/secrets"
)

// memory is Records without a disk.
type memory struct {
	mu   sync.Mutex
	m    map[string][]byte
	fail error // of PutSealed
}

func (s *memory) GetSealed(name string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.m[name], nil
}

func (s *memory) PutSealed(name string, b []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		return s.fail
	}
	s.m[name] = bytes.Clone(b)
	return nil
}

func (s *memory) DeleteSealed(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.m, name)
	return nil
}

func (s *memory) ListSealed() ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for n := range s.m {
		names = append(names, n)
	}
	return names, nil
}

// keyring is a KeySource in memory that counts how often it is asked.
type keyring struct {
	mu    sync.Mutex
	key   []byte
	last  []byte // the slice handed out last
	err   error
	asked int
	made  int
}

func (k *keyring) get(_ context.Context, create bool) ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asked++
	if k.err != nil {
		return nil, k.err
	}
	if k.key == nil {
		if !create {
			return nil, secrets.ErrNoKey
		}
		k.made++
		k.key = bytes.Repeat([]byte{byte(k.made)}, secrets.KeySize)
	}
	k.last = bytes.Clone(k.key)
	return k.last, nil
}

type fixture struct {
	t     *testing.T
	store *memory
	ring  *keyring
	vault *secrets.Vault
}

func open(t *testing.T, edit ...func(*secrets.Options)) *fixture {
	t.Helper()
	f := &fixture{t: t, store: &memory{m: map[string][]byte{}}, ring: &keyring{}}
	f.reopen(edit...)
	return f
}

// reopen is a restart of the daemon.
func (f *fixture) reopen(edit ...func(*secrets.Options)) {
	f.t.Helper()
	if f.vault != nil {
		f.vault.Close()
	}
	o := secrets.Options{Records: f.store, Key: f.ring.get}
	for _, e := range edit {
		e(&o)
	}
	v, err := secrets.Open(f.t.Context(), o)
	if err != nil {
		f.t.Fatal(err)
	}
	f.vault = v
	f.t.Cleanup(v.Close)
}

func (f *fixture) put(m secrets.Meta, values ...string) {
	f.t.Helper()
	if err := f.try(m, values...); err != nil {
		f.t.Fatal(err)
	}
}

// try puts with "-" for a kept value.
func (f *fixture) try(m secrets.Meta, values ...string) error {
	var vs [][]byte
	for _, v := range values {
		if v == "-" {
			vs = append(vs, nil)
			continue
		}
		vs = append(vs, []byte(v))
	}
	return f.vault.Put(f.t.Context(), m, vs)
}

// sent is what a request to host would carry.
func (f *fixture) sent(name, host string) (map[string]string, error) {
	g, err := f.vault.Grant(name, host)
	if err != nil {
		return nil, err
	}
	defer g.Close()
	out := map[string]string{}
	err = g.Apply(f.t.Context(), func(h, v string) { out[h] = v })
	return out, err
}

func (f *fixture) want(name, host string, want map[string]string) {
	f.t.Helper()
	got, err := f.sent(name, host)
	if err != nil {
		f.t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		f.t.Error(d)
	}
}

func (f *fixture) refused(name, host string, code fault.Code) {
	f.t.Helper()
	got, err := f.sent(name, host)
	if !fault.Is(err, code) || len(got) != 0 {
		f.t.Errorf("%s for %s: %v, %v; want %s", name, host, got, err, code)
	}
}

func bearer(name string, hosts ...string) secrets.Meta {
	return secrets.Meta{Name: name, Kind: secrets.Static, Headers: []secrets.HeaderValue{{Name: "Authorization", Prefix: "Bearer "}}, AllowedHosts: hosts}
}

func TestStatic(t *testing.T) {
	f := open(t)
	m := bearer("orders-key", "API.Example.com.", "api.example.com", "bücher.example")
	m.Headers = append(m.Headers, secrets.HeaderValue{Name: "X-App-Id"})
	f.put(m, "sk_live_0123456789", "app-0123456789")
	want := map[string]string{"Authorization": "Bearer sk_live_0123456789", "X-App-Id": "app-0123456789"}
	f.want("orders-key", "api.example.com", want)
	f.want("orders-key", "API.EXAMPLE.COM", want)
	f.want("orders-key", "xn--bcher-kva.example", want)
	f.refused("orders-key", "evil.example", "SECRET_HOST_NOT_ALLOWED")
	f.refused("orders-key", "sub.api.example.com", "SECRET_HOST_NOT_ALLOWED")
	f.refused("orders-key", "api.example.com:443", "SECRET_HOST_NOT_ALLOWED")
	f.refused("orders-key", "", "SECRET_HOST_NOT_ALLOWED")
	f.refused("other", "api.example.com", "SECRET_NOT_FOUND")
	f.refused("", "api.example.com", "SECRET_NOT_FOUND")
	f.reopen()
	f.want("orders-key", "api.example.com", want)
	list, err := f.vault.List()
	if err != nil {
		t.Fatal(err)
	}
	wantMeta := m
	wantMeta.AllowedHosts = []string{"api.example.com", "xn--bcher-kva.example"}
	if d := cmp.Diff([]secrets.Meta{wantMeta}, list, cmp.FilterPath(func(p cmp.Path) bool { return p.String() == "Updated" || p.String() == "Seal" }, cmp.Ignore())); d != "" {
		t.Error(d)
	}
	for _, b := range f.store.m {
		for _, plain := range []string{"sk_live", "app-0123"} {
			if bytes.Contains(b, []byte(plain)) || bytes.Contains(b, []byte(base64.StdEncoding.EncodeToString([]byte(plain)))[:8]) {
				t.Errorf("%q is readable in the record", plain)
			}
		}
	}
	if err := f.vault.Delete("orders-key"); err != nil {
		t.Fatal(err)
	}
	if err := f.vault.Delete("orders-key"); !fault.Is(err, "SECRET_NOT_FOUND") {
		t.Error(err)
	}
	f.refused("orders-key", "api.example.com", "SECRET_NOT_FOUND")
}

func TestBasic(t *testing.T) {
	f := open(t)
	m := secrets.Meta{Name: "b", Kind: secrets.Basic, AllowedHosts: []string{"a.example"}}
	// RFC 7617 section 2: Aladdin, open sesame.
	f.put(m, "Aladdin", "open sesame")
	f.want("b", "a.example", map[string]string{"Authorization": "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="})
	// A key as the user name, as some APIs take it.
	f.put(m, "sk_test_4eC39HqLyjWDarjt", "")
	f.want("b", "a.example", map[string]string{"Authorization": "Basic c2tfdGVzdF80ZUMzOUhxTHlqV0Rhcmp0Og=="})
	f.put(m, "sk_test_4eC39HqLyjWDarjt", "X")
	for _, values := range [][]string{{"user", ""}, {"user", "short"}, {"longer-user", "short"}, {"us:er-name", "open sesame"}, {"", "open sesame"}} {
		if err := f.try(m, values...); !fault.Is(err, "SECRET_INVALID") {
			t.Errorf("%q: %v", values, err)
		}
	}
	f.put(m, "Aladdin", "open sesame")
	g, err := f.vault.Grant("b", "a.example")
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Apply(t.Context(), func(string, string) {}); err != nil {
		t.Fatal(err)
	}
	got := g.Scrub("QWxhZGRpbjpvcGVuIHNlc2FtZQ== Aladdin:open sesame open sesame Aladdin open+sesame")
	if strings.Contains(got, "sesame") || strings.Contains(got, "QWxhZGRpbjpvcGVuIHNlc2FtZ") {
		t.Error(got)
	}
	// What was on the wire, in hex in Base64: printf QWxh…ZQ== | xxd -p | base64.
	if got := g.Scrub("NTE1Nzc4Njg1YTQ3NTI3MDYyNmE3MDc2NjM0NzU2NzU0OTQ4NGU2YzYzMzI0Njc0NWE1MTNkM2Q="); strings.Contains(got, "Njg1YTQ3NTI3MDYyNmE3MDc2NjM0NzU2NzU0OTQ4NGU2YzYzMzI0Njc0NWE1") {
		t.Error(got)
	}
	g.Close()
	if got := g.Scrub("x") + string(g.ScrubBytes([]byte("y"))); got != "[redacted][redacted]" {
		t.Error(got)
	}
}

func TestKeepValues(t *testing.T) {
	f := open(t)
	two := secrets.Meta{
		Name: "k", Kind: secrets.Static, AllowedHosts: []string{"a.example"},
		Headers: []secrets.HeaderValue{{Name: "X-One"}, {Name: "X-Two"}},
	}
	f.put(two, "value-one", "value-two")
	two.AllowedHosts = []string{"b.example"}
	f.put(two) // hosts only
	f.want("k", "b.example", map[string]string{"X-One": "value-one", "X-Two": "value-two"})
	f.refused("k", "a.example", "SECRET_HOST_NOT_ALLOWED")

	two.Headers = []secrets.HeaderValue{{Name: "x-two"}, {Name: "X-One", Prefix: "p "}} // other order
	f.put(two, "-", "-")
	f.want("k", "b.example", map[string]string{"x-two": "value-two", "X-One": "p value-one"})

	two.Headers[0].Name = "X-Renamed"
	f.put(two, "-", "value-new")
	f.want("k", "b.example", map[string]string{"X-Renamed": "value-two", "X-One": "p value-new"})

	three := two
	three.Headers = append(slices.Clone(two.Headers), secrets.HeaderValue{Name: "X-Three"})
	if err := f.try(three, "-", "-", "-"); !fault.Is(err, "SECRET_INVALID") {
		t.Error("kept a value that was never there:", err)
	}
	basic := secrets.Meta{Name: "k", Kind: secrets.Basic, AllowedHosts: []string{"a.example"}}
	if err := f.try(basic, "user", "-"); !fault.Is(err, "SECRET_INVALID") {
		t.Error("kept the value of another kind:", err)
	}
	if err := f.try(bearer("new", "a.example"), "-"); !fault.Is(err, "SECRET_INVALID") {
		t.Error("kept the value of nothing:", err)
	}
	if err := f.try(bearer("K", "a.example"), "value-one"); !fault.Is(err, "SECRET_INVALID") {
		t.Error("took a name that differs in case only:", err)
	}
	f.want("k", "b.example", map[string]string{"X-Renamed": "value-two", "X-One": "p value-new"})
}

func TestRefusals(t *testing.T) {
	hosts := func(n int) (out []string) {
		for i := range n {
			out = append(out, fmt.Sprintf("h%d.example", i))
		}
		return out
	}
	oauth := func(edit func(*secrets.OAuthMeta)) func(*secrets.Meta) {
		return func(m *secrets.Meta) {
			o := secrets.OAuthMeta{TokenURL: "https://id.example/token", ClientID: "c", AuthStyle: secrets.StyleBody}
			edit(&o)
			m.Kind, m.Headers, m.OAuth = secrets.OAuth2, nil, &o
		}
	}
	none := func(*secrets.Meta) {}
	for name, c := range map[string]struct {
		edit  func(*secrets.Meta)
		value string
		field string // of the first problem; "": accepted
	}{
		"fine":                       {none, "12345678", ""},
		"7 characters":               {none, "1234567", "value[0]"},
		"line break":                 {none, "1234\n5678", "value[0]"},
		"CR at the end":              {none, "12345678\r", "value[0]"},
		"control":                    {none, "1234\x005678", "value[0]"},
		"escape":                     {none, "1234\x1b5678", "value[0]"},
		"separator":                  {none, "1234\u20285678", "value[0]"},
		"not UTF-8":                  {none, "1234\xff5678", "value[0]"},
		"not ASCII":                  {none, "passwörter", "value[0]"},
		"space at the end":           {none, "12345678 ", "value[0]"},
		"prefix given twice":         {none, "bearer 12345678", "value[0]"},
		"16 KiB":                     {none, strings.Repeat("x", 16<<10), ""},
		"16 KiB and one":             {none, strings.Repeat("x", 16<<10+1), "value[0]"},
		"name 100":                   {func(m *secrets.Meta) { m.Name = strings.Repeat("n", 100) }, "12345678", ""},
		"name 101":                   {func(m *secrets.Meta) { m.Name = strings.Repeat("n", 101) }, "12345678", "name"},
		"name with a slash":          {func(m *secrets.Meta) { m.Name = "a/b" }, "12345678", "name"},
		"no name":                    {func(m *secrets.Meta) { m.Name = "" }, "12345678", "name"},
		"no host":                    {func(m *secrets.Meta) { m.AllowedHosts = nil }, "12345678", "allowedHosts"},
		"20 hosts":                   {func(m *secrets.Meta) { m.AllowedHosts = hosts(20) }, "12345678", ""},
		"21 hosts":                   {func(m *secrets.Meta) { m.AllowedHosts = hosts(21) }, "12345678", "allowedHosts"},
		"wildcard":                   {func(m *secrets.Meta) { m.AllowedHosts = []string{"*.example.com"} }, "12345678", "allowedHosts[0]"},
		"port":                       {func(m *secrets.Meta) { m.AllowedHosts = []string{"a.example:8443"} }, "12345678", "allowedHosts[0]"},
		"URL":                        {func(m *secrets.Meta) { m.AllowedHosts = []string{"https://a.example/"} }, "12345678", "allowedHosts[0]"},
		"number":                     {func(m *secrets.Meta) { m.AllowedHosts = []string{"127.1"} }, "12345678", "allowedHosts[0]"},
		"no header":                  {func(m *secrets.Meta) { m.Headers = nil }, "", "headers"},
		"Host header":                {func(m *secrets.Meta) { m.Headers[0].Name = "hOST" }, "12345678", "headers[0]"},
		"Proxy header":               {func(m *secrets.Meta) { m.Headers[0].Name = "Proxy-Authorization" }, "12345678", "headers[0]"},
		"bad header":                 {func(m *secrets.Meta) { m.Headers[0].Name = "X Key" }, "12345678", "headers[0]"},
		"bad prefix":                 {func(m *secrets.Meta) { m.Headers[0].Prefix = "a\r\nb" }, "12345678", "headers[0]"},
		"kind":                       {func(m *secrets.Meta) { m.Kind = "magic" }, "12345678", "kind"},
		"endpoint of a static one":   {func(m *secrets.Meta) { m.OAuth = &secrets.OAuthMeta{} }, "12345678", "oauth"},
		"oauth":                      {oauth(func(*secrets.OAuthMeta) {}), "12345678", ""},
		"oauth without an endpoint":  {func(m *secrets.Meta) { m.Kind = secrets.OAuth2 }, "12345678", "oauth"},
		"oauth, 7 characters":        {oauth(func(*secrets.OAuthMeta) {}), "1234567", "value[0]"},
		"oauth, style left open":     {oauth(func(o *secrets.OAuthMeta) { o.AuthStyle = "" }), "12345678", "oauth.authStyle"},
		"oauth, no client":           {oauth(func(o *secrets.OAuthMeta) { o.ClientID = "" }), "12345678", "oauth.clientId"},
		"oauth, scope with a break":  {oauth(func(o *secrets.OAuthMeta) { o.Scope = "a\nb" }), "12345678", "oauth.scope"},
		"oauth, relative URL":        {oauth(func(o *secrets.OAuthMeta) { o.TokenURL = "/token" }), "12345678", "oauth.tokenUrl"},
		"oauth, user in the URL":     {oauth(func(o *secrets.OAuthMeta) { o.TokenURL = "https://u:p@id.example/" }), "12345678", "oauth.tokenUrl"},
		"oauth, secret in the query": {oauth(func(o *secrets.OAuthMeta) { o.TokenURL = "https://id.example/?client_secret=x" }), "12345678", "oauth.tokenUrl"},
		"oauth, fragment":            {oauth(func(o *secrets.OAuthMeta) { o.TokenURL = "https://id.example/#x" }), "12345678", "oauth.tokenUrl"},
		"oauth, file":                {oauth(func(o *secrets.OAuthMeta) { o.TokenURL = "file:///etc/passwd" }), "12345678", "oauth.tokenUrl"},
	} {
		t.Run(name, func(t *testing.T) {
			f := open(t)
			m := bearer("n", "a.example")
			c.edit(&m)
			var values []string
			if c.value != "" {
				values = []string{c.value}
			}
			err := f.try(m, values...)
			if c.field == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			var e *fault.Error
			if !errors.As(err, &e) || e.Code != "SECRET_INVALID" || e.Field != c.field || len(e.Details) == 0 || e.Hint == "" {
				t.Fatalf("%#v", err)
			}
			if len(c.value) > 3 && strings.Contains(e.Error()+e.Details[0].Message, c.value) {
				t.Error("the value is in the message:", e)
			}
			if len(f.store.m) != 0 || f.ring.asked != 0 {
				t.Error("something was stored or the keyring was asked")
			}
		})
	}
}

// Whatever is changed in the database, the value does not open for it.
func TestEditedRecord(t *testing.T) {
	meta := secrets.Meta{
		Name: "k", Kind: secrets.OAuth2, AllowedHosts: []string{"a.example"},
		OAuth: &secrets.OAuthMeta{TokenURL: "https://id.example/token", ClientID: "client", Scope: "read", Audience: "aud", AuthStyle: secrets.StyleBody},
	}
	mint := func(o *secrets.Options) {
		o.Mint = func(context.Context, secrets.MintRequest) (secrets.Token, error) {
			return secrets.NewToken("minted-token", time.Hour), nil
		}
	}
	for name, edit := range map[string]func(map[string]any){
		"hosts":      func(r map[string]any) { r["allowedHosts"] = []string{"a.example", "evil.example"} },
		"host":       func(r map[string]any) { r["allowedHosts"] = []string{"evil.example"} },
		"header":     func(r map[string]any) { r["headers"] = []any{map[string]any{"name": "X-Other", "prefix": "Bearer "}} },
		"prefix":     func(r map[string]any) { r["headers"] = []any{map[string]any{"name": "Authorization", "prefix": ""}} },
		"token URL":  func(r map[string]any) { r["oauth"].(map[string]any)["tokenUrl"] = "https://evil.example/token" },
		"client":     func(r map[string]any) { r["oauth"].(map[string]any)["clientId"] = "other" },
		"scope":      func(r map[string]any) { r["oauth"].(map[string]any)["scope"] = "admin" },
		"audience":   func(r map[string]any) { r["oauth"].(map[string]any)["audience"] = "other" },
		"style":      func(r map[string]any) { r["oauth"].(map[string]any)["authStyle"] = "basic" },
		"kind":       func(r map[string]any) { r["kind"] = "static"; delete(r, "oauth") },
		"updated":    func(r map[string]any) { r["updated"] = "2030-01-01T00:00:00Z" },
		"version 0":  func(r map[string]any) { r["version"] = 0 },
		"version 2":  func(r map[string]any) { r["version"] = 2 },
		"name":       func(r map[string]any) { r["name"] = "other" },
		"more":       func(r map[string]any) { r["more"] = 1 },
		"no sealed":  func(r map[string]any) { delete(r, "sealed") },
		"the token":  func(r map[string]any) { r["sealed"] = r["token"] },
		"other host": func(r map[string]any) { r["allowedHosts"] = []string{"A.example"} },
	} {
		t.Run(name, func(t *testing.T) {
			f := open(t, mint)
			f.put(meta, "client-secret")
			f.want("k", "a.example", map[string]string{"Authorization": "Bearer minted-token"})
			var r map[string]any
			if err := json.Unmarshal(f.store.m["k"], &r); err != nil {
				t.Fatal(err)
			}
			edit(r)
			f.store.m["k"], _ = json.Marshal(r)
			for _, restart := range []bool{false, true} {
				if restart {
					f.reopen(mint)
					f.vault.Check(t.Context(), nil) // what a listing command does first: the key is at hand
				}
				// With the key at hand a forged record is not shown as a person's,
				// so that nothing seals its hosts again.
				if m, err := f.vault.Find("k"); err == nil && m.Problem == "" {
					t.Errorf("shown as genuine: %+v", m)
				}
				for _, host := range []string{"a.example", "evil.example"} {
					got, err := f.sent("k", host)
					if !fault.Is(err, "SECRET_DAMAGED") && !fault.Is(err, "SECRET_HOST_NOT_ALLOWED") || len(got) != 0 {
						t.Errorf("%s: %v %v", host, got, err)
					}
				}
			}
		})
	}
	t.Run("key id", func(t *testing.T) {
		f := open(t, mint)
		f.put(meta, "client-secret")
		f.store.m["k"] = bytes.Replace(f.store.m["k"], []byte(`"keyId":"`), []byte(`"keyId":"0`), 1)
		f.refused("k", "a.example", "SECRET_DAMAGED")
	})
	t.Run("under another name", func(t *testing.T) {
		f := open(t, mint)
		f.put(meta, "client-secret")
		f.store.m["l"] = f.store.m["k"]
		f.refused("l", "a.example", "SECRET_DAMAGED")
		if list, err := f.vault.List(); err != nil || len(list) != 2 || list[1].Problem == "" || list[1].Name != "l" || list[0].Problem != "" {
			t.Error(list, err)
		}
		if err := f.vault.Delete("l"); err != nil {
			t.Error("a damaged record must be removable:", err)
		}
	})
}

// Every single flipped bit of a record is noticed, or changes nothing.
func TestFlippedBits(t *testing.T) {
	f := open(t)
	f.put(bearer("k", "a.example"), "sk_live_0123456789")
	good := bytes.Clone(f.store.m["k"])
	want := map[string]string{"Authorization": "Bearer sk_live_0123456789"}
	for i := range good {
		for bit := range 8 {
			b := bytes.Clone(good)
			b[i] ^= 1 << bit
			f.store.m["k"] = b
			for _, host := range []string{"a.example", "b.example"} {
				got, err := f.sent("k", host)
				if err == nil && (host != "a.example" || !cmp.Equal(got, want)) || err != nil && len(got) != 0 {
					t.Fatalf("byte %d bit %d, %s: %v %v\n%s", i, bit, host, got, err, b)
				}
			}
		}
	}
}

// No part of the package writes a value, however it is asked to.
func TestValuesDoNotPrint(t *testing.T) {
	const secret = "client-secret-value"
	f := open(t, func(o *secrets.Options) {
		o.Mint = func(_ context.Context, r secrets.MintRequest) (secrets.Token, error) {
			token := secrets.NewToken("minted-token-value", time.Hour)
			for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
				for _, x := range []any{r, &r, r.Secret, token, &token} {
					s := fmt.Sprintf(format, x)
					if strings.Contains(s, secret) || strings.Contains(s, "minted") || strings.Contains(s, fmt.Sprintf("%x", secret)) || strings.Contains(s, "99 108 105") {
						t.Errorf("%s of %T: %s", format, x, s)
					}
				}
			}
			if _, err := json.Marshal(r); err == nil {
				t.Error("a request with a secret was marshalled")
			}
			if _, err := json.Marshal(token); err == nil {
				t.Error("a token was marshalled")
			}
			if r.Secret.Reveal() != secret {
				t.Error("the minter got another secret")
			}
			return token, nil
		}
	})
	f.put(oauthMeta(), secret)
	g, err := f.vault.Grant("o", "a.example")
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Apply(t.Context(), func(string, string) {}); err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%x"} {
		for _, x := range []any{g, f.vault} {
			if s := fmt.Sprintf(format, x); strings.Contains(s, "secret-value") || strings.Contains(s, "minted") {
				t.Errorf("%s of %T: %s", format, x, s)
			}
		}
	}
}

func oauthMeta() secrets.Meta {
	return secrets.Meta{
		Name: "o", Kind: secrets.OAuth2, AllowedHosts: []string{"a.example"},
		OAuth: &secrets.OAuthMeta{TokenURL: "https://id.example/token", ClientID: "client", Scope: "read", Audience: "aud", AuthStyle: secrets.StyleBasic},
	}
}

// counter is a Minter that numbers its tokens.
type counter struct {
	n        atomic.Int64
	lifetime time.Duration
	wait     time.Duration
	err      error
	last     secrets.MintRequest
}

func (c *counter) mint(ctx context.Context, r secrets.MintRequest) (secrets.Token, error) {
	n := c.n.Add(1)
	c.last = r
	if c.wait > 0 {
		select {
		case <-time.After(c.wait):
		case <-ctx.Done():
			return secrets.Token{}, ctx.Err()
		}
	}
	if c.err != nil {
		return secrets.Token{}, c.err
	}
	return secrets.NewToken(fmt.Sprintf("token-%06d", n), c.lifetime), nil
}

func (c *counter) use(o *secrets.Options) { o.Mint = c.mint }

func TestParallelCallsMintOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &counter{lifetime: time.Hour, wait: time.Second}
		f := open(t, c.use)
		f.put(oauthMeta(), "client-secret")
		var group sync.WaitGroup
		for range 200 {
			group.Go(func() {
				f.want("o", "a.example", map[string]string{"Authorization": "Bearer token-000001"})
			})
		}
		group.Wait()
		if n := c.n.Load(); n != 1 {
			t.Errorf("%d mints", n)
		}
		// All of them are refused: one new token.
		var grants []*secrets.Grant
		for range 200 {
			g, err := f.vault.Grant("o", "a.example")
			if err != nil {
				t.Fatal(err)
			}
			if err := g.Apply(t.Context(), func(string, string) {}); err != nil {
				t.Fatal(err)
			}
			grants = append(grants, g)
		}
		for _, g := range grants {
			group.Go(func() {
				if again, err := g.Renew(t.Context()); !again || err != nil {
					t.Error(again, err)
				}
				if err := g.Apply(t.Context(), func(_, v string) {
					if v != "Bearer token-000002" {
						t.Error(v)
					}
				}); err != nil {
					t.Error(err)
				}
				if again, err := g.Renew(t.Context()); again || err != nil {
					t.Error("renewed twice", err)
				}
				if got := g.Scrub("token-000001 token-000002 client-secret"); got != "[redacted] [redacted] [redacted]" {
					t.Error(got)
				}
				g.Close()
			})
		}
		group.Wait()
		if n := c.n.Load(); n != 2 {
			t.Errorf("%d mints", n)
		}
		if f.ring.asked != 1 {
			t.Errorf("the keyring was asked %d times", f.ring.asked)
		}
	})
}

func TestTokenLife(t *testing.T) {
	for _, c := range []struct {
		lifetime time.Duration
		after    time.Duration // between the first call and the second
		mints    int64
	}{
		{time.Hour, 59*time.Minute - time.Second, 1},
		{time.Hour, 59 * time.Minute, 2}, // 60 s before its end
		{61 * time.Second, 0, 1},
		{60 * time.Second, 0, 2},
		{30 * time.Second, 0, 2},
		{0, 0, 2},
		{-5 * time.Second, 0, 2},
		{1 << 62, 24*time.Hour - 61*time.Second, 1}, // 146 years are a day
		{1 << 62, 24*time.Hour - 60*time.Second, 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := &counter{lifetime: c.lifetime}
			f := open(t, m.use)
			f.put(oauthMeta(), "client-secret")
			g, err := f.vault.Grant("o", "a.example")
			if err != nil {
				t.Fatal(err)
			}
			for range 10 { // the pages of one call
				if err := g.Apply(t.Context(), func(string, string) {}); err != nil {
					t.Fatal(err)
				}
			}
			if n := m.n.Load(); n != 1 {
				t.Errorf("lifetime %v: %d mints for one call", c.lifetime, n)
			}
			time.Sleep(c.after)
			f.reopen(m.use) // the cache survives a restart
			f.want("o", "a.example", map[string]string{"Authorization": fmt.Sprintf("Bearer token-%06d", c.mints)})
			if n := m.n.Load(); n != c.mints {
				t.Errorf("lifetime %v, after %v: %d mints, want %d", c.lifetime, c.after, n, c.mints)
			}
		})
	}
}

func TestPutDropsTheToken(t *testing.T) {
	m := &counter{lifetime: time.Hour}
	f := open(t, m.use)
	f.put(oauthMeta(), "client-secret")
	f.want("o", "a.example", map[string]string{"Authorization": "Bearer token-000001"})
	f.put(oauthMeta(), "other-secret")
	f.want("o", "a.example", map[string]string{"Authorization": "Bearer token-000002"})
	if got := m.last.Secret; fmt.Sprint(got) != "[secret]" || m.last.ClientID != "client" || m.last.AuthStyle != secrets.StyleBasic || m.last.Scope != "read" || m.last.Audience != "aud" || m.last.TokenURL != "https://id.example/token" || m.last.Name != "o" {
		t.Errorf("%v", m.last)
	}
}

// A full disk costs the cache on disk, not a mint for each call.
func TestTokenCannotBeStored(t *testing.T) {
	m := &counter{lifetime: time.Hour}
	f := open(t, m.use)
	f.put(oauthMeta(), "client-secret")
	f.store.fail = errors.New("disk full")
	for range 3 {
		f.want("o", "a.example", map[string]string{"Authorization": "Bearer token-000001"})
	}
	if err := f.try(oauthMeta(), "other-secret"); !fault.Is(err, "STORE_FAILED") {
		t.Error(err)
	}
}

func TestMintFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &counter{err: fault.New("OAUTH_TOKEN_FAILED", "invalid_client: client-secret is wrong").With(fault.Status(401))}
		f := open(t, m.use)
		f.put(oauthMeta(), "client-secret")
		_, err := f.sent("o", "a.example")
		var e *fault.Error
		if !errors.As(err, &e) || e.Code != "OAUTH_TOKEN_FAILED" || e.Status != 401 || e.Message != "invalid_client: [redacted] is wrong" {
			t.Errorf("%#v", err)
		}
		time.Sleep(secrets.RefusalKept)
		m.err = errors.New("dial: client-secret")
		if _, err := f.sent("o", "a.example"); !fault.Is(err, "OAUTH_TOKEN_FAILED") || strings.Contains(err.Error(), "client-secret") {
			t.Error(err)
		}
		m.err, m.wait = nil, time.Hour
		start := time.Now()
		if _, err := f.sent("o", "a.example"); !fault.Is(err, "OAUTH_TOKEN_UNREACHABLE") || time.Since(start) != secrets.MintTimeout {
			t.Error(err, time.Since(start))
		}
		// A call that ends does not wait for its mint.
		g, err := f.vault.Grant("o", "a.example")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := g.Apply(ctx, func(string, string) { t.Error("set") }); !fault.Is(err, "CALL_DEADLINE") {
			t.Error(err)
		}
		f.vault.Close()
	})
}

// An endpoint that refuses a client is asked once in half a minute, not at each
// call, until a person changes the credential or wants to know.
func TestRefusalIsRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // which begins at midnight UTC
		m := &counter{lifetime: time.Hour, err: fault.New("OAUTH_TOKEN_FAILED", "id.example answered 401: invalid_client").With(fault.Status(401), fault.Hint("Ask a person."))}
		f := open(t, m.use)
		mints := func(what string, want int64) {
			t.Helper()
			if n := m.n.Swap(0); n != want {
				t.Errorf("%s: %d requests to the endpoint, want %d", what, n, want)
			}
		}
		other := oauthMeta()
		other.Name = "other"
		f.put(oauthMeta(), "client-secret")
		f.put(other, "client-secret")
		f.refused("o", "a.example", "OAUTH_TOKEN_FAILED")
		time.Sleep(5 * time.Second)
		_, err := f.sent("o", "a.example")
		const says = "id.example answered 401: invalid_client; that was at 00:00:00 UTC, and it is not asked again before 00:00:30, but by `hbrestd secret test`"
		if e := fault.From(err); e.Code != "OAUTH_TOKEN_FAILED" || e.Status != 401 || e.Retryable || e.Message != says || e.Hint != "Ask a person." {
			t.Errorf("%#v", e)
		}
		var group sync.WaitGroup
		for range 50 {
			group.Go(func() { f.refused("o", "a.example", "OAUTH_TOKEN_FAILED") })
		}
		group.Wait()
		time.Sleep(25*time.Second - 1)
		f.refused("o", "a.example", "OAUTH_TOKEN_FAILED")
		mints("52 calls in 30 s", 1)
		f.refused("other", "a.example", "OAUTH_TOKEN_FAILED")
		mints("another credential", 1)
		time.Sleep(time.Nanosecond)
		f.refused("o", "a.example", "OAUTH_TOKEN_FAILED")
		mints("after 30 s", 1)

		f.vault.AskAgain("o")
		f.refused("o", "a.example", "OAUTH_TOKEN_FAILED")
		f.refused("o", "a.example", "OAUTH_TOKEN_FAILED")
		f.refused("other", "a.example", "OAUTH_TOKEN_FAILED")
		mints("a person wants to know", 1)
		f.put(oauthMeta(), "other-secret")
		f.refused("o", "a.example", "OAUTH_TOKEN_FAILED")
		mints("another secret", 1)
		if err := f.vault.Delete("o"); err != nil {
			t.Fatal(err)
		}
		f.put(oauthMeta(), "other-secret")
		refusal := m.err
		m.err = nil
		f.want("o", "a.example", map[string]string{"Authorization": "Bearer token-000001"})
		mints("deleted and made again", 1)

		// The API refuses the token, the endpoint another one: the old token is tried
		// by the next call, the endpoint not.
		m.err = refusal
		for range 3 {
			g, err := f.vault.Grant("o", "a.example")
			if err != nil {
				t.Fatal(err)
			}
			if err := g.Apply(t.Context(), func(string, string) {}); err != nil {
				t.Error(err)
			}
			if again, err := g.Renew(t.Context()); again || !fault.Is(err, "OAUTH_TOKEN_FAILED") {
				t.Error(again, err)
			}
			g.Close()
		}
		mints("three calls whose token is refused", 1)

		// What may pass by itself is asked again: each call is a new try.
		for what, err := range map[string]error{
			"unreachable":  fault.New("OAUTH_TOKEN_UNREACHABLE", "no answer"),
			"rate limited": fault.New("OAUTH_TOKEN_FAILED", "429").With(fault.Status(429), fault.Retryable(true)),
			"odd":          fault.New("OAUTH_TOKEN_BAD_ANSWER", "no token"),
			"not sent":     fault.New("POLICY_ADDRESS", "a private address"),
		} {
			f.put(oauthMeta(), "client-secret")
			m.err = err
			for range 3 {
				if _, err := f.sent("o", "a.example"); err == nil {
					t.Errorf("%s: no error", what)
				}
			}
			mints(what, 3)
		}
	})
}

// A clock that was set back does not make a refusal last for years.
func TestRefusalAndTheClock(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	m := &counter{err: fault.New("OAUTH_TOKEN_FAILED", "no").With(fault.Status(401))}
	f := open(t, m.use, func(o *secrets.Options) { o.Now = func() time.Time { return now } })
	f.put(oauthMeta(), "client-secret")
	f.refused("o", "a.example", "OAUTH_TOKEN_FAILED")
	now = now.AddDate(-4, 0, 0)
	f.refused("o", "a.example", "OAUTH_TOKEN_FAILED")
	if n := m.n.Load(); n != 2 {
		t.Errorf("%d requests to the endpoint, want 2", n)
	}
}

func TestBadTokens(t *testing.T) {
	for _, token := range []string{"", "1234567", "with space", "with\r\nbreak", "ümlaut-token", strings.Repeat("t", 16<<10+1)} {
		f := open(t, func(o *secrets.Options) {
			o.Mint = func(context.Context, secrets.MintRequest) (secrets.Token, error) {
				return secrets.NewToken(token, time.Hour), nil
			}
		})
		f.put(oauthMeta(), "client-secret")
		f.refused("o", "a.example", "OAUTH_TOKEN_BAD_ANSWER")
	}
}

// What a person changes while a call waits decides, not what the call saw.
func TestChangedMeanwhile(t *testing.T) {
	f := open(t)
	f.put(bearer("k", "a.example"), "sk_live_0123456789")
	for name, change := range map[string]func(){
		"unbound": func() { f.put(bearer("k", "b.example"), "-") },
		"widened": func() { f.put(bearer("k", "a.example", "b.example"), "-") },
		"deleted": func() { _ = f.vault.Delete("k") },
	} {
		f.put(bearer("k", "a.example"), "sk_live_0123456789")
		g, err := f.vault.Grant("k", "a.example")
		if err != nil {
			t.Fatal(err)
		}
		change()
		err = g.Apply(t.Context(), func(string, string) { t.Error("set after", name) })
		if !fault.Is(err, "SECRET_HOST_NOT_ALLOWED") && !fault.Is(err, "SECRET_NOT_FOUND") {
			t.Error(name, err)
		}
	}
	// A rotated value is used at once.
	f.put(bearer("k", "a.example"), "sk_live_0123456789")
	g, _ := f.vault.Grant("k", "a.example")
	f.put(bearer("k", "a.example"), "sk_live_9876543210")
	if err := g.Apply(t.Context(), func(_, v string) {
		if v != "Bearer sk_live_9876543210" {
			t.Error(v)
		}
	}); err != nil {
		t.Error(err)
	}
	if again, err := g.Renew(t.Context()); again || err != nil {
		t.Error("a static value cannot be renewed", err)
	}
}

// Of many that create one name at once, one wins; the others change nothing.
func TestParallelCreations(t *testing.T) {
	f := open(t)
	for round := range 20 {
		name := fmt.Sprintf("k%d", round)
		var group sync.WaitGroup
		var mu sync.Mutex
		var won []string
		for i := range 16 {
			group.Go(func() {
				value := fmt.Sprintf("sk_live_%02d_of_many", i)
				err := f.vault.PutIf(f.t.Context(), bearer(name, "a.example"), [][]byte{[]byte(value)}, secrets.Condition{New: true})
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					won = append(won, value)
				case !fault.Is(err, "SECRET_INVALID") || !strings.Contains(err.Error(), "already"):
					t.Error(err)
				}
			})
		}
		group.Wait()
		if len(won) != 1 {
			t.Fatalf("%q have created %s", won, name)
		}
		f.want(name, "a.example", map[string]string{"Authorization": "Bearer " + won[0]})
	}
}

// A change of what is not there any more, or not any more so, changes nothing.
func TestPutIfUnchanged(t *testing.T) {
	f := open(t)
	f.put(bearer("k", "a.example", "b.example"), "sk_live_0123456789")
	seen, err := f.vault.Find("k")
	if err != nil || seen.Seal == "" {
		t.Fatal(seen, err)
	}
	f.put(bearer("k", "a.example"), "-") // somebody else takes a host away
	put := func(m secrets.Meta) error {
		return f.vault.PutIf(t.Context(), m, [][]byte{[]byte("sk_live_9876543210")}, secrets.Condition{Seal: seen.Seal})
	}
	if err := put(bearer("k", "a.example", "b.example")); !fault.Is(err, "SECRET_CHANGED") {
		t.Error(err)
	}
	f.want("k", "a.example", map[string]string{"Authorization": "Bearer sk_live_0123456789"})
	f.refused("k", "b.example", "SECRET_HOST_NOT_ALLOWED")
	if seen, err = f.vault.Find("k"); err != nil {
		t.Fatal(err)
	}
	if err := put(bearer("k", "a.example")); err != nil {
		t.Error(err)
	}
	f.want("k", "a.example", map[string]string{"Authorization": "Bearer sk_live_9876543210"})
	if now, _ := f.vault.Find("k"); now.Seal == seen.Seal {
		t.Error("the seal is the same after a change")
	}
	if err := f.vault.Delete("k"); err != nil {
		t.Fatal(err)
	}
	if err := put(bearer("k", "a.example")); !fault.Is(err, "SECRET_CHANGED") {
		t.Error("a deleted one is made again:", err)
	}
}
