package daemon_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/config"
	"github.com/hyperbolic-gateway/hb-rest/internal/control"
	"github.com/hyperbolic-gateway/hb-rest/internal/daemon"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
	"github.com/hyperbolic-gateway/hb-rest/internal/secrets"
)

// Of many commands that create one name at once, one wins: the others are told,
// and change nothing.
func TestParallelCreations(t *testing.T) {
	t.Parallel()
	s := newSafe(t)
	up := newParty(t, nil)
	const rounds, many = 5, 16
	for round := range rounds {
		name := fmt.Sprintf("key%d", round)
		var group sync.WaitGroup
		var mu sync.Mutex
		var won []string
		for i := range many {
			group.Go(func() {
				v := fmt.Sprintf("value-of-command-%02d", i)
				q := bearer(name, v, "a.test")
				q.Create = true
				_, err := s.person.PutSecret(context.Background(), q)
				mu.Lock()
				defer mu.Unlock()
				var f *fault.Error
				switch {
				case err == nil:
					won = append(won, v)
				case !errors.As(err, &f) || f.Code != "SECRET_INVALID" || f.Field != "name" || !strings.Contains(f.Hint, "hbrestd secret rotate "+name):
					t.Errorf("%v", err)
				}
			})
		}
		group.Wait()
		if len(won) != 1 {
			t.Fatalf("%q have created %s", won, name)
		}
		if a := s.once("w", authed("w", up.at("a.test")+"/", name), `{}`); !a.OK {
			t.Error(a.Raw)
		}
		if got := up.sent("Authorization"); len(got) != 1 || got[0] != "Bearer "+won[0] {
			t.Errorf("%q was sent, want that of %q", got, won)
		}
	}
	page, err := s.person.Audit(context.Background(), 1000)
	if err != nil {
		t.Fatal(err)
	}
	changes := 0
	for _, r := range page.Rows {
		if r.Action == "credential changed" {
			changes++
		}
	}
	if changes != rounds {
		t.Errorf("the trail has %d creations, want %d", changes, rounds)
	}
}

// Hosts that several commands add and take away at once are all added and taken
// away.
func TestParallelBinds(t *testing.T) {
	t.Parallel()
	s := newSafe(t)
	s.put(bearer("key", value, "a.test", "b.test", "c.test"))
	var group sync.WaitGroup
	for i := range 12 {
		group.Go(func() {
			q := &control.SecretBind{Name: "key", Add: []string{fmt.Sprintf("new%d.test", i)}}
			if i < 2 {
				q.Remove = []string{[]string{"b.test", "c.test"}[i]}
			}
			if _, err := s.person.BindSecret(context.Background(), q); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	st, err := s.person.SecretState(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	hosts := strings.Join(st.Secrets[0].AllowedHosts, " ") + " "
	if len(st.Secrets[0].AllowedHosts) != 13 || strings.Contains(hosts, "b.test ") || strings.Contains(hosts, "c.test ") {
		t.Errorf("bound to %s", hosts)
	}
}

// A host that is taken away while a new value is being typed does not come back
// with it.
func TestChangedWhileAsking(t *testing.T) {
	t.Parallel()
	s := newSafe(t)
	ctx := context.Background()
	s.put(bearer("key", value, "a.test", "b.test"))
	st, err := s.person.SecretState(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.person.BindSecret(ctx, &control.SecretBind{Name: "key", Remove: []string{"b.test"}}); err != nil {
		t.Fatal(err)
	}
	q := bearer("key", "another-value-01", "a.test", "b.test")
	q.Seen = st.Secrets[0].Seal
	if _, err := s.person.PutSecret(ctx, q); !fault.Is(err, "SECRET_CHANGED") {
		t.Errorf("want SECRET_CHANGED, got %v", err)
	}
	if st, err = s.person.SecretState(ctx); err != nil || len(st.Secrets[0].AllowedHosts) != 1 {
		t.Error(err, st)
	}
	q.Seen, q.AllowedHosts = st.Secrets[0].Seal, []string{"a.test"}
	s.put(q)
}

// Who takes the last host away is told what they may have meant.
func TestUnbindLastHost(t *testing.T) {
	t.Parallel()
	s := newSafe(t)
	s.put(bearer("orders-key", value, "a.test"))
	_, err := s.person.BindSecret(context.Background(), &control.SecretBind{Name: "orders-key", Remove: []string{"A.test."}})
	var f *fault.Error
	if !errors.As(err, &f) || f.Code != "SECRET_INVALID" || !strings.Contains(f.Hint, "`hbrestd secret rm orders-key`") {
		t.Errorf("%v", err)
	}
	if r, err := s.person.BindSecret(context.Background(), &control.SecretBind{Name: "orders-key", Add: []string{"b.test"}, Remove: []string{"a.test"}}); err != nil || strings.Join(r.Secret.AllowedHosts, " ") != "b.test" {
		t.Error("in one step with another host:", err)
	}
}

// A host that was misspelt does not read as taken away.
func TestUnbindAnotherHost(t *testing.T) {
	t.Parallel()
	s := newSafe(t)
	s.put(bearer("key", value, "a.test", "b.test"))
	_, err := s.person.BindSecret(context.Background(), &control.SecretBind{Name: "key", Remove: []string{"a.test", "B.tset"}})
	var f *fault.Error
	if !errors.As(err, &f) || f.Code != "SECRET_INVALID" || f.Field != "hosts" || !strings.Contains(f.Message, "is not bound to b.tset; nothing was changed") || !strings.Contains(f.Hint, "a.test, b.test") {
		t.Errorf("%v", err)
	}
	st, err := s.person.SecretState(context.Background())
	if err != nil || len(st.Secrets[0].AllowedHosts) != 2 {
		t.Error(err, st)
	}
}

// What is wrong whatever the value is, a person learns before they type it, and
// the hosts are shown as they are compared. Nothing is saved, and no keyring asked.
func TestCheckSecret(t *testing.T) {
	t.Parallel()
	s := newSafe(t)
	s.put(bearer("Taken", value, "a.test"))
	s.restart()
	put := func(change func(*control.SecretPut)) *control.SecretPut {
		q := bearer("new", "", "a.test")
		q.Values, q.Create = nil, true
		change(q)
		return q
	}
	oauth := func(tokenURL string) *control.SecretPut {
		return put(func(q *control.SecretPut) {
			q.Kind, q.Headers, q.OAuth = "oauth2", nil, &control.SecretOAuth{TokenURL: tokenURL, ClientID: "c", AuthStyle: "body"}
		})
	}
	for name, tc := range map[string]struct {
		q           *control.SecretPut
		code        fault.Code
		field, says string
	}{
		"name":             {put(func(q *control.SecretPut) { q.Name = "a b" }), "SECRET_INVALID", "name", "a name is"},
		"taken":            {put(func(q *control.SecretPut) { q.Name = "Taken" }), "SECRET_INVALID", "name", "already"},
		"taken, but case":  {put(func(q *control.SecretPut) { q.Name = "taken" }), "SECRET_INVALID", "name", "differ in case only"},
		"changed":          {put(func(q *control.SecretPut) { q.Name, q.Create, q.Seen = "Taken", false, "0123456789abcdef" }), "SECRET_CHANGED", "name", "meanwhile"},
		"host with a port": {put(func(q *control.SecretPut) { q.AllowedHosts = []string{"a.test", "b.test:443"} }), "SECRET_INVALID", "allowedHosts[1]", "write the host alone"},
		"header":           {put(func(q *control.SecretPut) { q.Headers[0].Name = "Host" }), "SECRET_INVALID", "headers[0]", "cannot carry"},
		"token URL, user":  {oauth("https://u:p@a.test/t"), "SECRET_INVALID", "oauth.tokenUrl", "must not hold a user or password"},
		"token URL, ftp":   {oauth("ftp://a.test/t"), "SECRET_INVALID", "oauth.tokenUrl", "an absolute https address"},
		"token URL, cloud": {oauth("https://169.254.169.254/t"), "POLICY_PRIVATE_ADDRESS", "oauth.tokenUrl", "the token URL: "},
		"a value":          {bearer("new", value, "a.test"), "BAD_REQUEST", "body.values", "takes no values"},
	} {
		_, err := s.person.CheckSecret(context.Background(), tc.q)
		var f *fault.Error
		if !errors.As(err, &f) || f.Code != tc.code || !strings.Contains(f.Message, tc.says) || f.Field != tc.field && (len(f.Details) == 0 || f.Details[0].Field != tc.field) {
			t.Errorf("%s: %v %+v", name, err, f)
		}
	}
	r, err := s.person.CheckSecret(context.Background(), put(func(q *control.SecretPut) { q.AllowedHosts = []string{"A.test.", "p\u0430ypal.test"} }))
	if err != nil || !r.OK || r.Confirm != "" || strings.Join(r.Secret.AllowedHosts, " ") != "a.test xn--pypal-4ve.test" {
		t.Errorf("%v %+v", err, r)
	}
	r, err = s.person.CheckSecret(context.Background(), oauth("https://login.other.test/t"))
	if err != nil || r.OK || r.Confirm != "token-host" || r.Secret == nil || strings.Join(r.Secret.AllowedHosts, " ") != "a.test" {
		t.Errorf("%v %+v", err, r)
	}
	st, err := s.person.SecretState(context.Background())
	if err != nil || len(st.Secrets) != 1 {
		t.Error(err, st)
	}
}

// Where the keyring does not work, a person who runs a wrapper reads what mends
// it; an agent reads whom to ask.
func TestHintsByReader(t *testing.T) {
	t.Parallel()
	s := newSafe(t)
	s.put(bearer("key", value, "127.0.0.1"))
	up := newParty(t, nil)
	s.create(authed("w", up.URL+"/", "key"))
	s.options.Key = func(context.Context, bool) ([]byte, error) {
		return nil, &secrets.KeyError{State: secrets.State{Status: secrets.Locked, Reason: "the keyring is locked", Fix: "Unlock it with its password."}}
	}
	s.restart()
	ctx := context.Background()
	if a := s.run("w", `{}`); a.Code != "SECRET_LOCKED" || !strings.HasPrefix(a.Hint, "Ask a person to run `hbrestd secret list`") {
		t.Error(a.Raw)
	}
	live := false
	for what, call := range map[string]func() error{
		"run":  func() error { _, err := s.person.Run(ctx, &api.RunRequest{ID: "w"}); return err },
		"test": func() error { _, err := s.person.Test(ctx, &api.TestRequest{ID: "w", DryRun: &live}); return err },
		"secret test": func() error {
			_, err := s.person.TestSecret(ctx, &control.SecretTest{Name: "key", Wrapper: "w"})
			return err
		},
	} {
		var f *fault.Error
		if err := call(); !errors.As(err, &f) || f.Code != "SECRET_LOCKED" || f.Hint != "Unlock it with its password." || !strings.Contains(f.Message, "the keyring is locked") {
			t.Errorf("%s: %+v", what, f)
		}
	}
}

// The setting keyring, stored by a person, holds from the next start; until then
// it is shown as waiting.
func TestStoredKeyring(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	env := config.Env(func(name string) (string, bool) {
		v, ok := map[string]string{"HOME": home, "HB_WRAP_ADDR": "127.0.0.1:0"}[name]
		return v, ok
	})
	w := newWorld(t, nil, outbound.Options{})
	w.stop()
	w.options.Env = env
	w.start()
	person := control.NewClient(w.cfg.ControlSocket, control.ClientOptions{})
	ctx := context.Background()
	keyring := func() control.Setting {
		t.Helper()
		l, err := person.Settings(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range l.Settings {
			if s.Name == "keyring" {
				return s
			}
		}
		t.Fatal("no setting keyring")
		return control.Setting{}
	}
	for i, c := range []struct{ value, reason string }{
		{"off", "credentials are switched off"},
		{"system", "the program hbrestd-keyring is not installed"}, // this one has none beside it
	} {
		if _, err := person.SetSetting(ctx, &control.SettingChange{Name: "keyring", Value: c.value}); err != nil {
			t.Fatal(err)
		}
		was := []string{"system", "off"}[i]
		origin := map[string]string{"system": "default", "off": "stored"}[was]
		if s := keyring(); s.Value != was || s.Origin != origin || s.Stored != c.value || !s.Pending {
			t.Errorf("before the restart: %+v", s)
		}
		w.stop()
		w.start()
		person = control.NewClient(w.cfg.ControlSocket, control.ClientOptions{})
		if s := keyring(); s.Value != c.value || s.Pending {
			t.Errorf("after the restart: %+v", s)
		}
		st, err := person.SecretState(ctx)
		if err != nil || !strings.HasPrefix(st.Reason, c.reason) {
			t.Errorf("%s: %v %+v", c.value, err, st)
		}
	}
	for _, c := range []*control.SettingChange{{Name: "keyring", Value: "off"}, {Name: "keyring", Unset: true}} {
		if _, err := person.SetSetting(ctx, c); err != nil {
			t.Fatal(err)
		}
	}
	if s := keyring(); s.Value != "system" || s.Origin != "default" || s.Stored != "" || s.Pending {
		t.Errorf("set and unset: %+v", s)
	}
}

// Without hbrestd-keyring nobody is asked for a passphrase, which nothing could
// use.
func TestNoPassphraseForNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"HB_WRAP_KEYRING": "file"}, outbound.Options{})
	w.stop()
	w.options.Passphrase = func(context.Context, daemon.Passphrase) ([]byte, error) {
		t.Error("somebody was asked")
		return nil, errors.New("nobody")
	}
	w.start()
	if _, err := os.Stat(filepath.Join(w.cfg.WrapDir, "keyring")); !errors.Is(err, os.ErrNotExist) {
		t.Error("a folder was made for nothing:", err)
	}
}
