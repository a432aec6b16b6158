package cli

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/control"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

func contains(s, part string) bool { return strings.Contains(s, part) }

func TestParseRule(t *testing.T) {
	for s, want := range map[string]control.AllowRule{
		"nas.local":        {Host: "nas.local"},
		"NAS.local.":       {Host: "NAS.local."}, // the daemon makes it canonical
		"nas.local:8443":   {Host: "nas.local", Port: "8443"},
		"nas.local:1":      {Host: "nas.local", Port: "1"},
		"nas.local:65535":  {Host: "nas.local", Port: "65535"},
		"nas.local:0080":   {Host: "nas.local", Port: "80"},
		"10.0.0.5:80":      {Host: "10.0.0.5", Port: "80"},
		"::1":              {Host: "::1"},
		"fd00::5":          {Host: "fd00::5"},
		"[fd00::5]":        {Host: "fd00::5"},
		"[fd00::5]:443":    {Host: "fd00::5", Port: "443"},
		"bücher.example:1": {Host: "bücher.example", Port: "1"},
	} {
		got, err := parseRule(s)
		if err != nil || *got != want {
			t.Errorf("%s: %+v, %v, want %+v", s, got, err, want)
		}
	}
	for _, s := range []string{
		"", ":80", "nas:", "nas:0", "nas:65536", "nas:-1", "nas:+1", "nas:http", "http://nas", "nas/path", "user@nas", "nas?x", "a b",
		"[::1", "[::1]x", "[::1]:", "[]:1",
	} {
		if got, err := parseRule(s); err == nil {
			t.Errorf("%q was taken as %+v", s, got)
		}
	}
}

func TestAllow(t *testing.T) {
	f := &fake{}
	w := newWorld(t, f)
	check(t, "empty list", w.hb("allow", "list"), said{0, "", "hbrestd: no private host is allowed\n"})
	check(t, "empty list, JSON", w.hb("allow", "list", "--json"), said{0, "{\n  \"rules\": []\n}\n", ""})
	check(t, "add", w.hb("allow", "add", "nas.local:8443"), said{0, "allowed nas.local:8443\n", ""})
	check(t, "add with http", w.hb("allow", "add", "[fd00::5]:80", "--http"), said{0, "allowed [fd00::5]:80, over plain http too\n", ""})
	check(t, "rm", w.hb("allow", "rm", "fd00::5"), said{0, "no longer allowed: [fd00::5]\n", ""})
	f.rules = []control.AllowRule{{Host: "nas.local", Port: "8443"}, {Host: "fd00::5", HTTP: true}}
	check(t, "list", w.hb("allow", "list"), said{0, "nas.local\t8443\trefused\nfd00::5\tany\tallowed\n", ""})
	w.width = 80
	check(t, "list on a terminal", w.hb("allow", "list"), said{0, "HOST       PORT  PLAIN HTTP\nnas.local  8443  refused\nfd00::5    any   allowed\n", ""})
	check(t, "add, JSON", w.hb("allow", "add", "x", "--json"), said{0, `{
  "rules": [
    {
      "host": "nas.local",
      "port": "8443"
    },
    {
      "host": "fd00::5",
      "http": true
    },
    {
      "host": "x"
    }
  ]
}
`, ""})
	check(t, "a URL", w.hb("allow", "add", "http://nas.local"), said{2, "", "hbrestd: error: \"http://nas.local\" is not HOST[:PORT]: give the name alone, without scheme and path\nhbrestd: hint: `hbrestd allow add --help` shows how it is used.\n"})
	want := []string{`allow {"host":"nas.local","port":"8443"}`, `allow {"host":"fd00::5","port":"80","http":true}`, `disallow {"host":"fd00::5"}`, `allow {"host":"x"}`}
	if diff := cmp.Diff(want, f.asked()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	f.fail = fault.New("RULE_NOT_FOUND", "no rule for x")
	check(t, "no such rule", w.hb("allow", "rm", "x"), said{5, "", "hbrestd: error: no rule for x\nhbrestd: hint: Run `hbrestd allow list` to see the rules.\n"})
}

func TestConfig(t *testing.T) {
	f := &fake{settings: []control.Setting{
		{Name: "allow-private", Value: "true", Origin: "environment", Stored: "false", Default: "false", Variable: "HB_WRAP_ALLOW_PRIVATE", Description: "private destinations are allowed"},
		{Name: "addr", Value: "127.0.0.1:4111", Origin: "default", Stored: "127.0.0.1:5000", Default: "127.0.0.1:4111", Variable: "HB_WRAP_ADDR", NeedsStart: true, Pending: true},
		{Name: "call-timeout-ms", Value: "50000", Origin: "default", Default: "50000", Variable: "HB_WRAP_CALL_TIMEOUT_MS", Description: "the longest a call may take"},
	}}
	w := newWorld(t, f)
	check(t, "list", w.hb("config", "list"), said{0, "" +
		"allow-private\ttrue\tenvironment\tHB_WRAP_ALLOW_PRIVATE wins over the stored false\n" +
		"addr\t127.0.0.1:4111\tdefault\t127.0.0.1:5000 from the next start on\n" +
		"call-timeout-ms\t50000\tdefault\t\n", ""})
	check(t, "get", w.hb("config", "get", "call-timeout-ms"), said{0, "50000\n", ""})
	check(t, "get by variable", w.hb("config", "get", "HB_WRAP_ADDR"), said{0, "127.0.0.1:4111\n", ""})
	check(t, "get, JSON", w.hb("config", "get", "call-timeout-ms", "--json"), said{0, `{
  "name": "call-timeout-ms",
  "value": "50000",
  "origin": "default",
  "default": "50000",
  "variable": "HB_WRAP_CALL_TIMEOUT_MS",
  "needsRestart": false,
  "description": "the longest a call may take"
}
`, ""})
	unknown := said{5, "", "hbrestd: error: no setting \"timeout\"\nhbrestd: hint: The settings are allow-private, addr, call-timeout-ms.\n"}
	check(t, "get unknown", w.hb("config", "get", "timeout"), unknown)
	check(t, "set unknown", w.hb("config", "set", "timeout", "1"), unknown)
	check(t, "unset unknown", w.hb("config", "unset", "timeout"), unknown)
	check(t, "explain unknown", w.hb("config", "explain", "timeout"), unknown)
	check(t, "set", w.hb("config", "set", "call-timeout-ms", "30000"), said{0, "call-timeout-ms is 30000 (stored)\n", ""})
	check(t, "set one that waits", w.hb("config", "set", "HB_WRAP_ADDR", "127.0.0.1:6000"), said{0, "addr is 127.0.0.1:4111 (default); 127.0.0.1:6000 is stored\n", "hbrestd: it takes effect when the daemon starts the next time\n"})
	check(t, "set one that loses", w.hb("config", "set", "allow-private", "0"), said{0, "allow-private is true (environment)\n", "hbrestd: warning: HB_WRAP_ALLOW_PRIVATE is set where the daemon was started, and wins\n"})
	check(t, "set nothing", w.hb("config", "set", "addr", ""), said{2, "", "hbrestd: error: the value is empty; `hbrestd config unset` forgets a stored value\nhbrestd: hint: `hbrestd config set --help` shows how it is used.\n"})
	check(t, "unset", w.hb("config", "unset", "call-timeout-ms"), said{0, "call-timeout-ms is 50000 (default)\n", ""})
	want := []string{
		`set {"name":"call-timeout-ms","value":"30000"}`, `set {"name":"addr","value":"127.0.0.1:6000"}`,
		`set {"name":"allow-private","value":"0"}`, `set {"name":"call-timeout-ms","unset":true}`,
	}
	if diff := cmp.Diff(want, f.asked()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	explained := `allow-private: private destinations are allowed
  value           true, from the variable HB_WRAP_ALLOW_PRIVATE
  stored          false
  default         false
  variable        HB_WRAP_ALLOW_PRIVATE
  a change holds  at once
  note            HB_WRAP_ALLOW_PRIVATE wins over the stored false
`
	check(t, "explain one", w.hb("config", "explain", "allow-private"), said{0, explained, ""})
	check(t, "explain all", w.hb("config", "explain"), said{0, explained + `
addr
  value           127.0.0.1:4111, from the default
  stored          127.0.0.1:5000
  default         127.0.0.1:4111
  variable        HB_WRAP_ADDR
  a change holds  at the next start of the daemon
  note            127.0.0.1:5000 from the next start on

call-timeout-ms: the longest a call may take
  value           50000, from the default
  default         50000
  variable        HB_WRAP_CALL_TIMEOUT_MS
  a change holds  at once
`, ""})
}
