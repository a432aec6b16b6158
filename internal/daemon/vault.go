package daemon

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/audit"
	"github.com/hyperbolic-gateway/hb-rest/internal/config"
	"github.com/hyperbolic-gateway/hb-rest/internal/control"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/hostname"
	"github.com/hyperbolic-gateway/hb-rest/internal/oauth"
	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
	"github.com/hyperbolic-gateway/hb-rest/internal/secrets"
	"github.com/hyperbolic-gateway/hb-rest/internal/wrapper"
)

// openVault makes the vault. It never asks the keyring and never fails for
// want of one: a daemon without credentials is of use too.
func (d *Daemon) openVault(ctx context.Context) (err error) {
	if d.env != nil { // a stored setting holds from the start until the end
		cfg, _, err := config.LoadDaemon(d.env.Over(d.store.Settings()), d.goos)
		if err != nil {
			return fmt.Errorf("reading the stored settings: %w", err)
		}
		d.given.Keyring, d.given.PassphraseFile = cfg.Keyring, cfg.PassphraseFile
	}
	key := d.keySource
	if key == nil {
		if key, err = d.systemKey(ctx); err != nil {
			return err
		}
	}
	d.vault, err = secrets.Open(context.WithoutCancel(ctx), secrets.Options{
		Records: d.store, Key: key, Now: d.now,
		Mint: oauth.New(func(ctx context.Context, r *outbound.Request) (*outbound.Response, error) {
			return d.state.Load().out.Send(ctx, r)
		}),
	})
	return err
}

// systemKey reads the master key with the short-lived program that links the
// keyring library. It fails only when a person ends the question for a
// passphrase.
func (d *Daemon) systemKey(ctx context.Context) (secrets.KeySource, error) {
	unavailable := func(reason, fix string) (secrets.KeySource, error) {
		if d.given.Keyring != "off" { // a server's administrator reads the log
			d.log.Warn("credentials cannot be used before the next start", "reason", reason, "hint", fix)
		}
		return func(context.Context, bool) ([]byte, error) {
			return nil, &secrets.KeyError{State: secrets.State{Status: secrets.None, Reason: reason, Fix: fix}}
		}, nil
	}
	if d.given.Keyring == "off" {
		return unavailable("credentials are switched off by the setting keyring", "Run `hbrestd config set keyring system`, then start the daemon again.")
	}
	k := &secrets.Keyring{Backend: secrets.DefaultBackend(), Item: d.keyItem(), Env: secrets.KeyringEnv(os.Environ())}
	me, err := os.Executable()
	if err == nil {
		k.Program, err = secrets.FindProgram(me)
	}
	if err != nil {
		return unavailable("the program hbrestd-keyring is not installed beside hbrestd", "Install all three programs into one folder, then start the daemon again.")
	}
	if d.given.Keyring == "file" {
		// Its folder is this home's already, and may be moved or restored elsewhere.
		k.Backend, k.Dir, k.Item = secrets.EncryptedFile, filepath.Dir(KeyFile(d.given)), fileItem
		if err := os.MkdirAll(k.Dir, 0o700); err != nil { // the program that writes there makes no folders
			return unavailable("the folder of the encrypted file cannot be made", "Check "+d.given.WrapDir+", then start the daemon again.")
		}
		switch {
		case d.given.PassphraseFile != "":
			k.Passphrase = secrets.PassphraseFile(d.given.PassphraseFile)
		case d.askPassphrase != nil:
			if err := d.enterPassphrase(ctx, k); err != nil {
				return nil, err
			}
		default:
			return unavailable("the encrypted file needs a passphrase, and there is none",
				"Give the unit LoadCredential=hbrestd-passphrase:FILE, or run `hbrestd run` on a terminal, which asks; then start the daemon again.")
		}
	}
	d.probe = k.Probe
	return func(ctx context.Context, create bool) ([]byte, error) {
		key, err := k.Key(ctx, create)
		var e *secrets.KeyError
		if errors.As(err, &e) {
			d.log.Warn("credentials cannot be used now", "keyring", e.Status, "reason", e.Reason, "detail", e.Detail)
		}
		return key, err
	}, nil
}

// enterPassphrase asks a person for the passphrase until it opens the encrypted
// file. It is held until the daemon ends, as the key is.
func (d *Daemon) enterPassphrase(ctx context.Context, k *secrets.Keyring) error {
	_, err := os.Stat(filepath.Join(k.Dir, k.Item))
	ask := Passphrase{New: errors.Is(err, fs.ErrNotExist), Least: secrets.MinPassphrase}
	for {
		text, err := d.askPassphrase(ctx, ask)
		if err != nil {
			return fmt.Errorf("asking for the passphrase of the encrypted file: %w", err)
		}
		held := secrets.HoldPassphrase(text)
		k.Passphrase = held.Get
		if d.passphrase = held; len(text) < secrets.MinPassphrase {
			ask.Problem = fmt.Sprintf("it has fewer than %d characters", secrets.MinPassphrase)
		} else {
			key, err := k.Key(ctx, false)
			clear(key)
			var e *secrets.KeyError
			if !errors.As(err, &e) || e.Status != secrets.Locked {
				return nil // any other problem is none of the passphrase, and is shown with the state
			}
			ask.Problem = e.Reason
		}
		held.Wipe()
	}
}

// fileItem is the name of the encrypted file.
const fileItem = "master"

// KeyFile is where the key of a home's credentials is when the setting keyring
// is file.
func KeyFile(cfg config.Daemon) string { return filepath.Join(cfg.WrapDir, "keyring", fileItem) }

// keyItem is the key's name in the system's keyring: one for each home, so that two
// daemons of one user do not share a key.
func (d *Daemon) keyItem() string {
	sum := sha256.Sum256([]byte(d.given.Home))
	return "master-" + hex.EncodeToString(sum[:6])
}

// Secrets lists what an agent may know of the credentials.
func (d *Daemon) Secrets(context.Context) (*api.SecretList, error) {
	metas, err := d.vault.List()
	if err != nil {
		return nil, err
	}
	st := d.vault.State()
	out := &api.SecretList{Secrets: []api.Secret{}, Available: st.Status == secrets.Ready || st.Status == secrets.NotAsked}
	if !out.Available {
		out.Reason = st.Reason
	}
	for _, m := range metas {
		s := api.Secret{Name: m.Name, Headers: []string{}, AllowedHosts: append([]string{}, m.AllowedHosts...)}
		for _, h := range m.Headers {
			s.Headers = append(s.Headers, h.Name)
		}
		if len(s.Headers) == 0 && m.Problem == "" {
			s.Headers = []string{"Authorization"}
		}
		out.Secrets = append(out.Secrets, s)
	}
	return out, nil
}

// SecretState is what a person may see of the credentials and their keyring.
func (p person) SecretState(ctx context.Context) (*control.SecretState, error) {
	st := p.vault.Check(ctx, p.probe)
	metas, err := p.vault.List()
	if err != nil {
		return nil, err
	}
	out := &control.SecretState{State: string(st.Status), Reason: st.Reason, Fix: st.Fix, Detail: st.Detail, Secrets: []control.SecretInfo{}}
	for _, m := range metas {
		out.Secrets = append(out.Secrets, p.secretInfo(m))
	}
	return out, nil
}

func (p person) secretInfo(m secrets.Meta) control.SecretInfo {
	out := control.SecretInfo{
		Name: m.Name, Kind: string(m.Kind), Headers: []control.SecretHeader{}, AllowedHosts: append([]string{}, m.AllowedHosts...), Problem: m.Problem, Seal: m.Seal,
	}
	for _, h := range m.Headers {
		out.Headers = append(out.Headers, control.SecretHeader(h))
	}
	if o := m.OAuth; o != nil {
		out.OAuth = &control.SecretOAuth{TokenURL: o.TokenURL, ClientID: o.ClientID, Scope: o.Scope, Audience: o.Audience, AuthStyle: string(o.AuthStyle)}
	}
	if !m.Updated.IsZero() {
		out.Updated = m.Updated.UTC().Format(time.RFC3339)
	}
	for _, e := range p.store.List() {
		if e.Wrapper != nil && e.Wrapper.Request.Auth == m.Name {
			out.UsedBy = append(out.UsedBy, e.ID)
		}
	}
	return out
}

// PutSecret seals a credential. Only the control socket leads here.
func (p person) PutSecret(ctx context.Context, r *control.SecretPut) (*control.SecretResult, error) {
	defer func() {
		for _, v := range r.Values {
			clear(v)
		}
	}()
	ctx, done, err := p.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	words := audit.ActionSecretChanged
	if r.Stdin {
		words = audit.ActionSecretPiped
	}
	return p.seal(ctx, metaOf(r), r.Values, secrets.Condition{New: r.Create, Seal: r.Seen}, r.Confirm, words)
}

func metaOf(r *control.SecretPut) secrets.Meta {
	m := secrets.Meta{Name: r.Name, Kind: secrets.Kind(r.Kind), AllowedHosts: r.AllowedHosts}
	for _, h := range r.Headers {
		m.Headers = append(m.Headers, secrets.HeaderValue(h))
	}
	if o := r.OAuth; o != nil {
		m.OAuth = &secrets.OAuthMeta{TokenURL: o.TokenURL, ClientID: o.ClientID, Scope: o.Scope, Audience: o.Audience, AuthStyle: secrets.AuthStyle(o.AuthStyle)}
	}
	return m
}

// CheckSecret is PutSecret up to where values are needed: a person is told what
// is wrong, asked what must be asked, and shown the hosts as they are compared,
// before they type.
func (p person) CheckSecret(ctx context.Context, r *control.SecretPut) (*control.SecretResult, error) {
	_, done, err := p.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	m, err := p.vault.Examine(metaOf(r), secrets.Condition{New: r.Create, Seal: r.Seen})
	if err != nil {
		return nil, err
	}
	out := &control.SecretResult{OK: true}
	if m.OAuth != nil {
		ask, err := p.tokenHost(m, r.Confirm)
		if err != nil {
			return nil, err
		}
		if ask != nil {
			out = ask
		}
	}
	info := p.secretInfo(m)
	out.Secret = &info
	return out, nil
}

// seal checks what the vault cannot, asks what must be asked, and saves.
func (p person) seal(ctx context.Context, m secrets.Meta, values [][]byte, c secrets.Condition, confirmed []string, words audit.Action) (*control.SecretResult, error) {
	if m.OAuth != nil {
		if _, err := p.vault.Examine(m, secrets.Condition{}); err != nil {
			return nil, err // rather than what the outbound policy thinks of such a URL
		}
		ask, err := p.tokenHost(m, confirmed)
		if err != nil || ask != nil {
			return ask, err
		}
	}
	if err := p.vault.PutIf(ctx, m, values, c); err != nil {
		return nil, err
	}
	p.changed(ctx, action{words, audit.AuthorHuman}, "")
	p.log.Info(string(words))
	saved, err := p.vault.Find(m.Name)
	if err != nil {
		return nil, err
	}
	info := p.secretInfo(saved)
	return &control.SecretResult{OK: true, Secret: &info}, nil
}

// tokenHost checks the token endpoint by the outbound policy, and asks when it
// belongs to another site than the hosts: the client secret goes there.
func (p person) tokenHost(m secrets.Meta, confirmed []string) (*control.SecretResult, error) {
	u, err := url.Parse(m.OAuth.TokenURL)
	if err != nil {
		return nil, fault.New("SECRET_INVALID", "the token URL cannot be read").With(fault.Field("oauth.tokenUrl"))
	}
	if err := p.state.Load().policy().CheckURL(u); err != nil {
		f := fault.From(err).With(fault.Field("oauth.tokenUrl"))
		f.Message = "the token URL: " + f.Message
		return nil, f
	}
	host, _, err := hostname.FromURL(u)
	if err != nil {
		return nil, fault.New("SECRET_INVALID", "the token URL: %v", err).With(fault.Field("oauth.tokenUrl"))
	}
	same := slices.ContainsFunc(m.AllowedHosts, func(h string) bool {
		c, err := hostname.Canonical(h)
		return err == nil && hostname.Site(c) == hostname.Site(host)
	})
	if same || slices.Contains(confirmed, "token-host") {
		return nil, nil
	}
	return &control.SecretResult{
		Confirm: "token-host",
		Message: "the client secret will be sent to " + host + ", which is not on the site of any allowed host",
	}, nil
}

// BindSecret changes the hosts; the values stay sealed.
func (p person) BindSecret(ctx context.Context, r *control.SecretBind) (*control.SecretResult, error) {
	ctx, done, err := p.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	for _, h := range append(slices.Clone(r.Add), r.Remove...) {
		if _, err := hostname.Canonical(h); err != nil {
			return nil, fault.New("SECRET_INVALID", "%v; write the host alone, without scheme, port or path", err).With(fault.Field("hosts"))
		}
	}
	for {
		m, err := p.vault.Find(r.Name)
		if err != nil {
			return nil, err
		}
		if m.Problem != "" {
			return nil, fault.New("SECRET_DAMAGED", "%s", m.Problem).With(fault.Field("name"))
		}
		for _, h := range r.Remove { // a slip of the pen must not read as done
			if c, _ := hostname.Canonical(h); !slices.Contains(m.AllowedHosts, c) {
				return nil, fault.New("SECRET_INVALID", "credential %q is not bound to %s; nothing was changed", r.Name, c).
					With(fault.Field("hosts"), fault.Hint("It is bound to %s.", strings.Join(m.AllowedHosts, ", ")))
			}
		}
		m.AllowedHosts = rebound(m.AllowedHosts, r.Add, r.Remove)
		if len(m.AllowedHosts) == 0 {
			return nil, fault.New("SECRET_INVALID", "credential %q would have no host left; nothing was changed", r.Name).
				With(fault.Field("hosts"), fault.Hint("Remove it with `hbrestd secret rm %s`, or bind it to another host first.", r.Name))
		}
		out, err := p.seal(ctx, m, nil, secrets.Condition{Seal: m.Seal}, r.Confirm, audit.ActionSecretBound)
		if !fault.Is(err, "SECRET_CHANGED") { // then it is read again: what was asked for still makes sense
			return out, err
		}
	}
}

// rebound is a list of hosts with some added and some taken away, all of them
// host names.
func rebound(hosts, add, remove []string) []string {
	hosts = slices.Clone(hosts)
	for _, h := range add {
		if c, _ := hostname.Canonical(h); !slices.Contains(hosts, c) {
			hosts = append(hosts, c)
		}
	}
	for _, h := range remove {
		c, _ := hostname.Canonical(h)
		hosts = slices.DeleteFunc(hosts, func(old string) bool { return old == c })
	}
	return hosts
}

// DeleteSecret removes a credential and its cached token.
func (p person) DeleteSecret(ctx context.Context, r *control.SecretName) (*control.SecretResult, error) {
	_, done, err := p.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	if err := p.vault.Delete(r.Name); err != nil {
		return nil, err
	}
	p.changed(ctx, action{audit.ActionSecretDeleted, audit.AuthorHuman}, "")
	p.log.Info("credential deleted")
	return &control.SecretResult{OK: true}, nil
}

// TestSecret runs a saved wrapper that reads with the credential. A free URL
// would be a way to send it somewhere.
func (p person) TestSecret(ctx context.Context, r *control.SecretTest) (*api.RunResult, error) {
	w, err := p.store.Get(r.Wrapper)
	if err != nil {
		return nil, err
	}
	if err := testable(w, r.Name); err != nil {
		return nil, err
	}
	p.vault.AskAgain(r.Name)
	res, err := p.live(ctx, w, nil, nil, "", "run")
	return res, p.advised(err)
}

// Run is the bridge's; a person is told what helps, not whom to ask.
func (p person) Run(ctx context.Context, r *api.RunRequest) (*api.RunResult, error) {
	res, err := p.Daemon.Run(ctx, r)
	return res, p.advised(err)
}

// Test is the bridge's, like Run.
func (p person) Test(ctx context.Context, r *api.TestRequest) (*api.TestResult, error) {
	res, err := p.Daemon.Test(ctx, r)
	return res, p.advised(err)
}

// advised puts what mends the keyring into the failure of a call that needed it.
func (p person) advised(err error) error {
	var f *fault.Error
	if errors.As(err, &f) && f.Code == "SECRET_LOCKED" {
		if fix := p.vault.State().Fix; fix != "" {
			f.With(fault.Hint("%s", fix))
		}
	}
	return err
}

func testable(w *wrapper.Wrapper, name string) error {
	switch {
	case w.Request.Auth != name:
		return fault.New("SECRET_INVALID", "wrapper %s does not use the credential %q", w.ID, name).With(fault.Field("wrapper"))
	case w.Mutating || w.Request.Method != "GET" && w.Request.Method != "HEAD":
		return fault.New("SECRET_INVALID", "wrapper %s writes; a test only reads", w.ID).With(fault.Field("wrapper"))
	}
	return nil
}
