package config_test

import (
	"strings"
	"testing"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/config"
)

func settingsEnv(kv ...string) config.Env {
	m := map[string]string{"HOME": "/home/u"}
	for i := 0; i < len(kv); i += 2 {
		m[kv[i]] = kv[i+1]
	}
	return func(name string) (string, bool) { v, ok := m[name]; return v, ok }
}

// Precedence: environment, then stored, then default.
func TestStoredSettings(t *testing.T) {
	stored := map[string]string{"allow-private": "on", "call-timeout-ms": "1500", "addr": "127.0.0.1:5000", "unknown": "x"}
	for _, c := range []struct {
		name    string
		env     config.Env
		private bool
		timeout time.Duration
		addr    string
	}{
		{"stored", settingsEnv(), true, 1500 * time.Millisecond, "127.0.0.1:5000"},
		{"environment wins", settingsEnv("HB_WRAP_ALLOW_PRIVATE", "0", "HB_WRAP_ADDR", "127.0.0.1:6000"), false, 1500 * time.Millisecond, "127.0.0.1:6000"},
		{"the old name wins too", settingsEnv("KUANG_WRAP_CALL_TIMEOUT_MS", "2000"), true, 2 * time.Second, "127.0.0.1:5000"},
		{"an empty variable is not set", settingsEnv("HB_WRAP_ALLOW_PRIVATE", ""), true, 1500 * time.Millisecond, "127.0.0.1:5000"},
	} {
		d, _, err := config.LoadDaemon(c.env.Over(stored), "linux")
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if d.AllowPrivate != c.private || d.CallTimeout != c.timeout || d.Addr != c.addr || !c.private && d.AllowHTTP {
			t.Errorf("%s: %+v", c.name, d)
		}
	}
}

func TestSettingCheckAndValue(t *testing.T) {
	for _, c := range []struct{ name, value, wrong string }{
		{"allow-private", "on", ""},
		{"allow-private", "1", ""},
		{"allow-http", "no", ""},
		{"allow-private", "maybe", "allow-private is \"maybe\""},
		{"call-timeout-ms", "50000", ""},
		{"call-timeout-ms", "abc", "call-timeout-ms is"},
		{"call-timeout-ms", "-1", "call-timeout-ms is"},
		{"cortex-max-mb", "1", ""},
		{"cortex-max-mb", "0", "cortex-max-mb is"},
		{"cortex-max-mb", "100000", ""},
		{"cortex-max-mb", "100001", "from 1 to 100000"},
		{"addr", "127.0.0.1:0", ""},
		{"addr", "0.0.0.0:4111", "addr is"},
		{"addr", "", "config unset addr"},
	} {
		s, err := config.FindSetting(c.name)
		if err != nil {
			t.Fatal(err)
		}
		err = s.Check(c.value, "linux")
		if c.wrong == "" && err != nil || c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)) {
			t.Errorf("%s=%q: %v", c.name, c.value, err)
		}
	}
	if _, err := config.FindSetting("nope"); err == nil || !strings.Contains(err.Error(), "allow-private") {
		t.Errorf("unknown setting: %v", err)
	}
	d, _, err := config.LoadDaemon(settingsEnv(), "linux")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range config.Settings() {
		if got := s.Value(d); got != s.Default {
			t.Errorf("%s: %q is not the default %q", s.Name, got, s.Default)
		}
		if err := s.Check(s.Default, "linux"); err != nil {
			t.Errorf("%s: its default is refused: %v", s.Name, err)
		}
	}
}
