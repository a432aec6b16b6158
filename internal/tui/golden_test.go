package tui_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/control"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/golden"
)

const weather = `{"schemaVersion":1,"id":"city.weather","name":"Weather","request":{"method":"GET","url":"https://api.example.com/v1/weather?city={{city}}","auth":"weather-key","timeoutMs":9007199254740993},"inputSchema":{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer"}},"required":["city"]},"response":{"schemaVersion":1,"mode":"table","fields":{"City":"name"}}}`

// a daemon in the middle of its life.
func lively() *daemon {
	d := newDaemon()
	d.entries = []api.ManifestEntry{
		{ID: "broken", Damaged: "the checksum does not fit", Required: []string{}},
		{ID: "city.weather", Name: "Weather", Method: "GET", Host: "api.example.com", Required: []string{"city"}, Secret: "weather-key", Verified: "2026-11-29T10:00:00Z"},
		{ID: "orders.any", Name: "Orders, every one of them and more", Method: "POST", Methods: []string{"POST", "PUT"}, Host: "shop.example.com:8443", Required: []string{}, Mutating: true, ExposeAsTool: true, Tool: "wrap_orders_any", Priority: 5},
		{ID: "prices", Name: "Prices", Method: "GET", Host: "api.example.com", Required: []string{}, Secret: "weather-key", ExposeAsTool: true, Tool: "wrap_prices", Verified: "2026-10-01T10:00:00Z", Stale: true, Drift: []api.Drift{{Field: "Price", Since: "2026-09-30T08:00:00Z"}}},
		{ID: "refused", Name: "Refused", Method: "GET", Host: "api.example.com", Required: []string{}, ExposeAsTool: true, Tool: "wrap_refused", Quarantined: "a type that some clients refuse"},
		{ID: "steering", Name: "Red \x1b[31m\u202ename", Method: "GET", Host: "api.example.com", Required: []string{}},
	}
	for _, e := range d.entries {
		d.docs[e.ID] = json.RawMessage(fmt.Sprintf(`{"schemaVersion":1,"id":%q,"request":{"url":"https://api.example.com/%s"}}`, e.ID, e.ID))
	}
	d.docs["city.weather"] = json.RawMessage(weather)
	d.state = control.SecretState{State: "ready", Secrets: []control.SecretInfo{
		{Name: "crm", Kind: "oauth2", Headers: []control.SecretHeader{{Name: "Authorization", Prefix: "Bearer "}}, AllowedHosts: []string{"crm.example.com"}, Updated: "2026-11-28T09:00:00Z", OAuth: &control.SecretOAuth{TokenURL: "https://login.example.com/token", ClientID: "7f3a", AuthStyle: "body"}, Seal: "s1"},
		{Name: "weather-key", Kind: "static", Headers: []control.SecretHeader{{Name: "X-Api-Key"}}, AllowedHosts: []string{"api.example.com", "files.example.com"}, Updated: "2026-11-30T09:00:00Z", UsedBy: []string{"city.weather", "prices"}, Seal: "s2"},
	}}
	d.pending = []control.Approval{
		{
			ID: "5f2c0a9e7d1b4c3a8e6f00112233aabb", State: "pending", Policy: "always", Wrapper: "orders.any", Name: "Orders", Version: "saved", Method: "POST",
			URL: "https://shop.example.com:8443/v1/orders", Headers: []string{"Accept: application/json", "Content-Type: application/json"},
			Body: `{"customer":"cus_123","amount":9007199254740993,"note":"gift\u202efor you"}`, Credential: "shop-key", Pages: 1,
			Asked: "2026-12-01T10:00:00Z", Expires: "2026-12-01T10:10:00Z", Waiting: 1,
		},
		{ID: "0011", State: "denied", Policy: "always", Wrapper: "orders.any", Name: "Orders", Version: "other", Method: "DELETE", URL: "https://shop.example.com:8443/v1/orders/1", Pages: 1, Asked: "2026-12-01T09:58:00Z", Expires: "2026-12-01T10:08:00Z"},
	}
	d.policies = control.ApprovalPolicies{Policy: "always", Origin: "stored", Wrappers: []control.WrapperApproval{{Wrapper: "prices", Holds: "off", Trusted: true}}}
	d.rows = []api.AuditRow{
		{Seq: 1, Time: "2026-12-01T09:59:58.100Z", Kind: "run", Call: "c1", Wrapper: "city.weather", Method: "GET", Host: "api.example.com", Status: 200, Bytes: 512, DurationMs: 42},
		{Seq: 2, Time: "2026-12-01T10:00:01.000Z", Kind: "run", Call: "c2", Wrapper: "prices", Method: "GET", Host: "api.example.com", Status: 503, Bytes: 20, DurationMs: 7, Error: "UPSTREAM_UNAVAILABLE"},
		{Seq: 3, Time: "2026-12-01T10:00:02.000Z", Kind: "change", Author: "human", Action: "wrapper updated", Wrapper: "prices"},
	}
	return d
}

// worlds are the daemons that a golden case can name.
var worlds = map[string]func() *daemon{
	"lively": lively,
	"empty": func() *daemon {
		d := newDaemon()
		d.state.State = "ready"
		d.policies.Policy, d.policies.Origin = "off", "default"
		return d
	},
	"no keyring": func() *daemon {
		d := newDaemon()
		d.policies.Policy, d.policies.Origin = "off", "default"
		d.state = control.SecretState{State: "none", Reason: "no keyring answers on this machine", Fix: "Use the encrypted file: hbrestd config set keyring file, then restart the daemon."}
		return d
	},
	"away":     func() *daemon { d := lively(); d.away = true; return d },
	"confirms": func() *daemon { d := lively(); d.confirm = "the token URL is on another site than the hosts"; return d },
	"refuses": func() *daemon {
		d := lively()
		bad := fault.New("VALIDATION_FAILED", "wrapper.request.url: must be absolute").With(fault.Details([]fault.Detail{
			{Field: "wrapper.request.url", Code: "INVALID", Message: "must be absolute, as https://host/path"},
			{Field: "wrapper.id", Code: "INVALID", Message: "has a character that is not allowed: space"},
		}))
		d.fail["Change"], d.fail["Test"] = bad, bad
		return d
	},
}

// event is what happens at the daemon while the person looks.
func (p *panel) event(name string) {
	switch name {
	case "@stop":
		p.d.change(func() { p.d.away = true })
	case "@start":
		p.d.change(func() { p.d.away = false })
		p.later()
	case "@row":
		p.d.change(func() {
			p.d.rows = append(p.d.rows, api.AuditRow{Seq: 4, Time: "2026-12-01T10:00:03.000Z", Kind: "run", Call: "c9", Wrapper: "orders.any", Method: "POST", Host: "shop.example.com:8443", Outcome: "unknown"})
		})
	case "@result":
		p.d.change(func() {
			p.d.rows = append(p.d.rows, api.AuditRow{Seq: 5, Time: "2026-12-01T10:00:03.000Z", Kind: "run", Call: "c9", Wrapper: "orders.any", Method: "POST", Host: "shop.example.com:8443", Status: 201, Bytes: 9, DurationMs: 88})
		})
	case "@expire":
		p.d.change(func() { p.d.pending[0].State, p.d.pending[0].Waiting = "expired", 0 })
	case "@agent":
		p.d.change(func() {
			p.d.docs["city.weather"] = json.RawMessage(`{"schemaVersion":1,"id":"city.weather","name":"Changed"}`)
		})
	case "@novalue":
		p.value = nil
	case "@badjson":
		p.edited = `{"schemaVersion":1,`
	case "@advanced":
		p.edited = `{"schemaVersion":1,"id":"from.editor","name":"From the editor","request":{"method":"POST","url":"https://api.example.com/x","query":{"n":9007199254740993}},"exposeAsTool":true}`
	case "@small":
		p.resize(59, 15)
	case "@least":
		p.resize(60, 15)
	case "@large":
		p.resize(120, 40)
	default:
		p.t.Fatalf("no event %q", name)
	}
	p.settle()
}

// Each case says what is pressed, and what is then on a screen of each size, and
// what the daemon was asked to change.
func TestScreens(t *testing.T) {
	golden.Run(t, "testdata/golden/*.txtar", []string{"world", "keys"}, []string{"80x24", "120x40", "asked"}, func(t *testing.T, c *golden.Case) {
		world := "lively"
		if c.Has("world") {
			world = string(c.Input("world"))
		}
		for _, size := range []struct{ w, h int }{{80, 24}, {120, 40}} {
			synctest.Test(t, func(t *testing.T) {
				p := open(t, worlds[world](), size.w, size.h)
				defer p.end()
				for line := range strings.Lines(string(c.Input("keys"))) {
					for _, word := range words(strings.TrimSpace(line)) {
						if strings.HasPrefix(word, "@") {
							p.event(word)
						} else {
							p.press(word)
						}
					}
				}
				c.Want(fmt.Sprintf("%dx%d", size.w, size.h), p.screen())
				if c.Has("asked") {
					c.Want("asked", strings.Join(p.d.asked, "\n"))
				}
			})
		}
	})
}

// words splits at spaces that are not inside quotes, and keeps the quotes.
func words(s string) []string {
	var out []string
	quoted, from := false, 0
	for i, r := range s + " " {
		switch {
		case r == '"':
			quoted = !quoted
		case r == ' ' && !quoted:
			if i > from {
				out = append(out, s[from:i])
			}
			from = i + 1
		}
	}
	return out
}
