package daemon

import (
	"context"
	"net/netip"
	"strconv"

	"github.com/hyperbolic-gateway/hb-rest/internal/config"
	"github.com/hyperbolic-gateway/hb-rest/internal/control"
	"github.com/hyperbolic-gateway/hb-rest/internal/executor"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/hostname"
	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
	"github.com/hyperbolic-gateway/hb-rest/internal/store"
)

// A state is everything that a change of a setting or of an allow rule
// replaces as a whole. Each policy has its own outbound client, because a
// connection opened under one policy must not serve another.
type state struct {
	cfg  config.Daemon
	out  *outbound.Client
	exec *executor.Executor
}

func (s *state) policy() outbound.Policy { return s.out.Policy() }

// refresh builds the state from the settings and rules as stored. It is called
// at start and after each change, under d.settings.
func (d *Daemon) refresh() error {
	cfg := d.given
	if d.env != nil {
		var err error
		if cfg, _, err = config.LoadDaemon(d.env.Over(d.store.Settings()), d.goos); err != nil {
			return err
		}
		cfg.Addr, cfg.Keyring, cfg.CortexMaxMB = d.given.Addr, d.given.Keyring, d.given.CortexMaxMB // until the next start
		cfg = d.carefully(cfg)
	}
	policy := outbound.Policy{AllowHTTP: cfg.AllowHTTP || cfg.AllowPrivate, AllowPrivate: cfg.AllowPrivate}
	for _, r := range d.store.Allowed() {
		policy.Allowed = append(policy.Allowed, outbound.HostPort{Host: r.Host, Port: r.Port, HTTP: r.HTTP})
	}
	next := &state{cfg: cfg, out: outbound.New(policy, d.surroundings())}
	next.exec = executor.New(executor.Config{Send: next.out.Send, Check: next.out.CheckURL, Now: d.now, Grant: d.vault.Grant, Allow: d.allow})
	if old := d.state.Swap(next); old != nil {
		old.out.Close()
	}
	d.desk.Reconsider()
	return nil
}

// surroundings are what every outbound client of the daemon has.
func (d *Daemon) surroundings() outbound.Options {
	self := d.addr
	o := d.outbound
	o.Now, o.UserAgent = d.now, "hb-rest/"+d.version
	o.Self = func() []netip.AddrPort { return []netip.AddrPort{self} }
	o.Intent, o.Observe = d.intent, d.observe
	return o
}

// Settings lists the settings with where each value comes from.
func (d *Daemon) Settings(context.Context) (*control.SettingList, error) {
	d.settings.Lock()
	defer d.settings.Unlock()
	return d.settingList(), nil
}

func (d *Daemon) settingList() *control.SettingList {
	stored, cfg := d.store.Settings(), d.state.Load().cfg
	out := &control.SettingList{}
	for _, s := range config.Settings() {
		row := control.Setting{
			Name: s.Name, Value: s.Value(cfg), Origin: "default", Stored: stored[s.Name], Default: s.Default,
			Variable: s.Variable, NeedsStart: s.NeedsRestart, Description: s.Description,
		}
		_, isStored := stored[s.Name]
		switch {
		case d.env == nil || s.InEnvironment(d.env):
			row.Origin = "environment"
		case isStored:
			row.Origin = "stored"
		}
		// What waits for a start is shown beside what is in effect.
		next := s.Default
		if isStored {
			next = stored[s.Name]
		}
		if row.Pending = s.NeedsRestart && row.Origin != "environment" && next != row.Value; row.Pending {
			row.Origin = "stored"
			if row.Value == s.Default {
				row.Origin = "default"
			}
		}
		out.Settings = append(out.Settings, row)
	}
	return out
}

// SetSetting stores or forgets a setting and puts it into effect.
func (d *Daemon) SetSetting(ctx context.Context, c *control.SettingChange) (*control.SettingList, error) {
	_, done, err := d.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	s, err := config.FindSetting(c.Name)
	if err != nil {
		return nil, fault.New("BAD_REQUEST", "%v", err).With(fault.Field("name"), fault.Hint("`hbrestd config list` shows the settings."))
	}
	d.settings.Lock()
	defer d.settings.Unlock()
	if c.Unset {
		err = d.store.UnsetSetting(s.Name)
	} else if bad := s.Check(c.Value, d.goos); bad != nil {
		return nil, fault.New("BAD_REQUEST", "%v", bad).With(fault.Field("value"), fault.Hint("`hbrestd config explain %s` says what it takes.", s.Name))
	} else {
		err = d.store.SetSetting(s.Name, c.Value)
	}
	if err != nil {
		return nil, err
	}
	what := settingChanged
	if s.Name == approvalSetting {
		what = approvalChanged
	}
	d.changed(ctx, what, "")
	d.log.Info("setting changed", "name", s.Name, "unset", c.Unset)
	if err := d.refresh(); err != nil {
		return nil, err
	}
	return d.settingList(), nil
}

// Allowed lists the private destinations that a person allowed one by one.
func (d *Daemon) Allowed(context.Context) (*control.AllowList, error) {
	out := &control.AllowList{Rules: []control.AllowRule{}}
	for _, r := range d.store.Allowed() {
		out.Rules = append(out.Rules, control.AllowRule(r))
	}
	return out, nil
}

// Allow adds a rule; the connections of the old policy are not used again.
func (d *Daemon) Allow(ctx context.Context, r *control.AllowRule) (*control.AllowList, error) {
	return d.changeRule(ctx, r, allowAdded, func(rule store.AllowRule) (bool, error) {
		if why := d.neverOpens(rule); why != "" {
			return false, fault.New("BAD_REQUEST", "%s is never called, whatever is allowed: %s", hostname.Join(rule.Host, rule.Port), why).
				With(fault.Field("host"), fault.Hint("Allow the host and port of the API itself."))
		}
		return d.store.Allow(rule)
	})
}

// neverOpens says why a rule would change nothing; "" when it may.
func (d *Daemon) neverOpens(r store.AllowRule) string {
	a, err := netip.ParseAddr(r.Host)
	if err != nil {
		return "" // what a name resolves to shows when it is called
	}
	if err := (outbound.Policy{AllowPrivate: true}).CheckAddr(a); err != nil {
		return fault.From(err).Message
	}
	if a.IsLoopback() && r.Port == strconv.Itoa(int(d.addr.Port())) {
		return "it is hbrestd itself"
	}
	return ""
}

// Disallow removes a rule.
func (d *Daemon) Disallow(ctx context.Context, r *control.AllowRule) (*control.AllowList, error) {
	return d.changeRule(ctx, r, allowRemoved, func(rule store.AllowRule) (bool, error) {
		removed, err := d.store.Disallow(rule)
		if err == nil && !removed {
			err = fault.New("RULE_NOT_FOUND", "there is no rule for %s", hostname.Join(rule.Host, rule.Port)).
				With(fault.Field("host"))
		}
		return removed, err
	})
}

func (d *Daemon) changeRule(ctx context.Context, r *control.AllowRule, a action, change func(store.AllowRule) (bool, error)) (*control.AllowList, error) {
	_, done, err := d.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	host, err := hostname.Canonical(r.Host)
	if err != nil {
		return nil, fault.New("BAD_REQUEST", "%v", err).With(fault.Field("host"), fault.Hint("Give a host name or an address, and a port if only that one is meant: HOST[:PORT]."))
	}
	d.settings.Lock()
	defer d.settings.Unlock()
	done2, err := change(store.AllowRule{Host: host, Port: r.Port, HTTP: r.HTTP})
	if err != nil {
		return nil, err
	}
	if done2 {
		d.changed(ctx, a, "")
		d.log.Info("allow rules changed", "action", a.words, "host", host, "port", r.Port, "http", r.HTTP)
		if err := d.refresh(); err != nil {
			return nil, err
		}
	}
	return d.Allowed(ctx)
}
