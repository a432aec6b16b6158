package config_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/config"
)

// env is an environment made of NAME=VALUE words.
func env(words ...string) config.Env {
	m := map[string]string{}
	for _, w := range words {
		name, value, _ := strings.Cut(w, "=")
		m[name] = value
	}
	return func(name string) (string, bool) {
		value, ok := m[name]
		return value, ok
	}
}

func daemon(home string, change ...func(*config.Daemon)) config.Daemon {
	d := config.Daemon{
		Home:          home,
		WrapDir:       home + "/wrap",
		StorePath:     home + "/wrap/store.db",
		AuditPath:     home + "/wrap/audit.db",
		CortexPath:    home + "/wrap/cortex.db",
		TokenPath:     home + "/wrap/token",
		ControlSocket: home + "/control.sock",
		Addr:          "127.0.0.1:4111",
		CallTimeout:   50 * time.Second,
		Approval:      "off",
		CortexMaxMB:   200,
		Keyring:       "system",
	}
	for _, c := range change {
		c(&d)
	}
	return d
}

func TestLoadDaemon(t *testing.T) {
	const h = "/home/ada/.local/state/hbrestd"
	deep := "/home/ada/" + strings.Repeat("d", 100)
	tests := []struct {
		name string
		goos string
		env  config.Env
		want config.Daemon
		warn []config.Warning
	}{
		{"linux, only HOME", "linux", env("HOME=/home/ada"), daemon(h), nil},
		{"freebsd is as linux", "freebsd", env("HOME=/home/ada"), daemon(h), nil},
		{
			"linux, XDG", "linux", env("HOME=/home/ada", "XDG_STATE_HOME=/s/", "XDG_RUNTIME_DIR=/run/user/1000"),
			daemon("/s/hbrestd", func(d *config.Daemon) { d.ControlSocket = "/run/user/1000/hbrestd/control.sock" }), nil,
		},
		{"relative XDG folders count as not set", "linux", env("HOME=/home/ada", "XDG_STATE_HOME=s", "XDG_RUNTIME_DIR=run"), daemon(h), nil},
		{
			"HB_WRAP_HOME wins and holds the socket", "linux",
			env("HOME=/home/ada", "XDG_STATE_HOME=/s", "XDG_RUNTIME_DIR=/run/user/1000", "HB_WRAP_HOME=/x//y/"), daemon("/x/y"), nil,
		},
		{"HB_WRAP_HOME is enough", "linux", env("HB_WRAP_HOME=/x"), daemon("/x"), nil},
		{"darwin", "darwin", env("HOME=/Users/ada", "XDG_STATE_HOME=/s"), daemon("/Users/ada/Library/Application Support/hbrestd"), nil},
		{"windows", "windows", env(`LOCALAPPDATA=C:\Users\ada\AppData\Local`, "HOME=/home/ada"), config.Daemon{
			Home:      `C:\Users\ada\AppData\Local\hbrestd`,
			WrapDir:   `C:\Users\ada\AppData\Local\hbrestd\wrap`,
			StorePath: `C:\Users\ada\AppData\Local\hbrestd\wrap\store.db`,
			AuditPath: `C:\Users\ada\AppData\Local\hbrestd\wrap\audit.db`,

			CortexPath: `C:\Users\ada\AppData\Local\hbrestd\wrap\cortex.db`,
			TokenPath:  `C:\Users\ada\AppData\Local\hbrestd\wrap\token`,
			// The first 8 bytes of SHA-256("c:\users\ada\appdata\local\hbrestd"), by sha256sum.
			ControlSocket: `\\.\pipe\hbrestd-b0efa7d3cb184aec`,
			Addr:          "127.0.0.1:4111", CallTimeout: 50 * time.Second, Approval: "off", CortexMaxMB: 200, Keyring: "system",
		}, nil},
		{
			"a socket path of 100 bytes stays", "linux", env("HB_WRAP_HOME=/" + strings.Repeat("d", 100-len("/")-len("/control.sock"))),
			daemon("/" + strings.Repeat("d", 86)), nil,
		},
		{
			"one of 101 bytes moves", "linux", env("HB_WRAP_HOME=/" + strings.Repeat("d", 101-len("/")-len("/control.sock"))),
			daemon("/"+strings.Repeat("d", 87), func(d *config.Daemon) { d.ControlSocket = "/tmp/hbrestd-f4e0bfc579d9ae74/control.sock" }), nil,
		},
		{
			"a short runtime folder saves a long home", "linux", env("HOME="+deep, "XDG_RUNTIME_DIR=/run/user/1000"),
			daemon(deep+"/.local/state/hbrestd", func(d *config.Daemon) { d.ControlSocket = "/run/user/1000/hbrestd/control.sock" }), nil,
		},
		{
			"every setting", "linux", env("HOME=/home/ada", "HB_WRAP_ADDR=[::1]:0", "HB_WRAP_ALLOW_HTTP=Yes", "HB_WRAP_CALL_TIMEOUT_MS=1500", "HB_WRAP_APPROVAL=Always"),
			daemon(h, func(d *config.Daemon) {
				d.Addr, d.AllowHTTP, d.CallTimeout, d.Approval = "[::1]:0", true, 1500*time.Millisecond, "always"
			}), nil,
		},
		{
			"private implies http", "linux", env("HOME=/home/ada", "HB_WRAP_ALLOW_PRIVATE=1", "HB_WRAP_ALLOW_HTTP=0"),
			daemon(h, func(d *config.Daemon) { d.AllowPrivate, d.AllowHTTP = true, true }), nil,
		},
		{"empty is not set", "linux", env("HOME=/home/ada", "HB_WRAP_HOME=", "HB_WRAP_ADDR=", "HB_WRAP_ALLOW_PRIVATE=", "HB_WRAP_CALL_TIMEOUT_MS=", "HB_WRAP_APPROVAL="), daemon(h), nil},
		{"the shim's variables are not the daemon's", "linux", env("HOME=/home/ada", "HB_WRAP_URL=nonsense", "HB_WRAP_MAX_TOOLS=nonsense"), daemon(h), nil},
		{
			"timeout at its ends", "linux", env("HOME=/home/ada", "HB_WRAP_CALL_TIMEOUT_MS=100"),
			daemon(h, func(d *config.Daemon) { d.CallTimeout = 100 * time.Millisecond }), nil,
		},
		{
			"timeout above the clients' patience", "linux", env("HOME=/home/ada", "HB_WRAP_CALL_TIMEOUT_MS=3600000"),
			daemon(h, func(d *config.Daemon) { d.CallTimeout = time.Hour }),
			[]config.Warning{"HB_WRAP_CALL_TIMEOUT_MS is 3600000; most MCP clients give up after 60000 ms, so calls that take longer than 55000 ms may be lost"},
		},
		{
			"old names", "linux", env("HOME=/home/ada", "KUANG_WRAP_ALLOW_HTTP=1", "KUANG_WRAP_HOME=/k"),
			daemon("/k", func(d *config.Daemon) { d.AllowHTTP = true }),
			[]config.Warning{
				"KUANG_WRAP_HOME is the old name of HB_WRAP_HOME; it still works, but please rename it",
				"KUANG_WRAP_ALLOW_HTTP is the old name of HB_WRAP_ALLOW_HTTP; it still works, but please rename it",
			},
		},
		{
			"the new name wins", "linux", env("HOME=/home/ada", "KUANG_WRAP_APPROVAL=first", "HB_WRAP_APPROVAL=always", "KUANG_WRAP_ADDR=127.0.0.1:1", "HB_WRAP_ADDR=127.0.0.1:1"),
			daemon(h, func(d *config.Daemon) { d.Addr, d.Approval = "127.0.0.1:1", "always" }),
			[]config.Warning{"KUANG_WRAP_APPROVAL is ignored, because HB_WRAP_APPROVAL, its new name, is set too"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, warn, err := config.LoadDaemon(tt.env, tt.goos)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("settings (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.warn, warn); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLoadDaemon_refuses(t *testing.T) {
	const (
		addr = "127.0.0.1:PORT or [::1]:PORT"
		yes  = "1, true, yes or on, or 0, false, no or off"
		ms   = "a whole number of milliseconds from 100 to 3600000"
		abs  = "an absolute path"
	)
	for _, c := range []struct{ setting, allowed string }{
		{"HB_WRAP_HOME=relative", abs},
		{"HB_WRAP_HOME=~/x", abs},
		{"HB_WRAP_HOME=./x", abs},
		{"HB_WRAP_HOME=/x\x00y", abs},
		{"HB_WRAP_ADDR=0.0.0.0:4111", addr},
		{"HB_WRAP_ADDR=localhost:4111", addr},
		{"HB_WRAP_ADDR=:4111", addr},
		{"HB_WRAP_ADDR=4111", addr},
		{"HB_WRAP_ADDR=127.0.0.1", addr},
		{"HB_WRAP_ADDR=127.0.0.2:4111", addr},
		{"HB_WRAP_ADDR=192.168.1.2:4111", addr},
		{"HB_WRAP_ADDR=127.0.0.1:65536", addr},
		{"HB_WRAP_ADDR=[::]:4111", addr},
		{"HB_WRAP_ADDR=[::ffff:127.0.0.1]:4111", addr},
		{"HB_WRAP_ADDR=[::1%lo]:4111", addr},
		{"HB_WRAP_ADDR=::1:4111", addr},
		{"HB_WRAP_ADDR=127.1:4111", addr},
		{"HB_WRAP_ALLOW_PRIVATE=2", yes},
		{"HB_WRAP_ALLOW_HTTP=maybe", yes},
		{"KUANG_WRAP_ALLOW_HTTP=maybe", yes},
		{"HB_WRAP_CALL_TIMEOUT_MS=99", ms},
		{"HB_WRAP_CALL_TIMEOUT_MS=3600001", ms},
		{"HB_WRAP_CALL_TIMEOUT_MS=50s", ms},
		{"HB_WRAP_CALL_TIMEOUT_MS=-1", ms},
		{"HB_WRAP_CALL_TIMEOUT_MS=1e3", ms},
		{"HB_WRAP_CALL_TIMEOUT_MS=9223372036854775808", ms},
		{"HB_WRAP_APPROVAL=never", "off, first or always"},
	} {
		_, _, err := config.LoadDaemon(env("HOME=/home/ada", c.setting), "linux")
		mustName(t, c.setting, c.allowed, err)
	}

	for goos, variable := range map[string]string{"linux": "HOME", "darwin": "HOME", "windows": "LOCALAPPDATA"} {
		_, _, err := config.LoadDaemon(env("HOME=relative"), goos)
		if err == nil || !strings.HasPrefix(err.Error(), variable+" is not set or not an absolute path") || !strings.Contains(err.Error(), "set HB_WRAP_HOME") {
			t.Errorf("%s without a home: %v", goos, err)
		}
	}
	for _, bad := range []string{`x`, `C:x`, `\x`, `/x`, `C:`} {
		_, _, err := config.LoadDaemon(env("HB_WRAP_HOME="+bad), "windows")
		mustName(t, "HB_WRAP_HOME="+bad, abs, err)
	}
	for _, good := range []string{`C:\x`, `d:/x`, `\\server\share\x`} {
		if d, _, err := config.LoadDaemon(env("HB_WRAP_HOME="+good), "windows"); err != nil || d.WrapDir != good+`\wrap` {
			t.Errorf("%s: %q, %v", good, d.WrapDir, err)
		}
	}
}

// mustName checks that an error names the variable, its value and what is allowed.
func mustName(t *testing.T, setting, allowed string, err error) {
	t.Helper()
	name, value, _ := strings.Cut(setting, "=")
	value = strings.ReplaceAll(strings.ReplaceAll(value, `\`, `\\`), "\x00", `\x00`)
	if err == nil || !strings.HasPrefix(err.Error(), name+` is "`+value+`"`) || !strings.Contains(err.Error(), allowed) {
		t.Errorf("%s: %v, want an error that names variable, value and %q", setting, err, allowed)
	}
}

func bridge(host string) *url.URL { return &url.URL{Scheme: "http", Host: host} }

func shim(home string, change ...func(*config.Shim)) config.Shim {
	s := config.Shim{
		TokenCandidates: []string{home + "/wrap/token"},
		URL:             bridge("127.0.0.1:4111"),
		MaxTools:        40,
		Timeout:         55 * time.Second,
		LogPath:         home + "/hb-rest.log",
	}
	for _, c := range change {
		c(&s)
	}
	return s
}

func TestLoadShim(t *testing.T) {
	const h = "/home/ada/.local/state/hbrestd"
	tests := []struct {
		name string
		goos string
		env  config.Env
		want config.Shim
		warn []config.Warning
	}{
		{"linux, only HOME", "linux", env("HOME=/home/ada", "PATH=/bin"), shim(h), nil},
		{"darwin", "darwin", env("HOME=/Users/ada"), shim("/Users/ada/Library/Application Support/hbrestd"), nil},
		{"windows", "windows", env(`LOCALAPPDATA=C:\L`), shim("", func(s *config.Shim) {
			s.TokenCandidates, s.LogPath = []string{`C:\L\hbrestd\wrap\token`}, `C:\L\hbrestd\hb-rest.log`
		}), nil},
		{"windows without LOCALAPPDATA", "windows", env(`USERPROFILE=C:\Users\ada`), shim("", func(s *config.Shim) {
			s.TokenCandidates, s.LogPath = []string{`C:\Users\ada\AppData\Local\hbrestd\wrap\token`}, `C:\Users\ada\AppData\Local\hbrestd\hb-rest.log`
		}), nil},
		{"HB_WRAP_HOME first, then the default home", "linux", env("HOME=/home/ada", "HB_WRAP_HOME=/x"), shim("/x", func(s *config.Shim) {
			s.TokenCandidates = []string{"/x/wrap/token", h + "/wrap/token"}
		}), nil},
		{"XDG where it is known", "linux", env("HOME=/home/ada", "HB_WRAP_HOME=/x", "XDG_STATE_HOME=/s"), shim("/x", func(s *config.Shim) {
			s.TokenCandidates = []string{"/x/wrap/token", "/s/hbrestd/wrap/token", h + "/wrap/token"}
		}), nil},
		{"the same place is looked at once", "linux", env("HOME=/home/ada", "XDG_STATE_HOME=/home/ada/.local/state"), shim(h), nil},
		{"HB_WRAP_TOKEN_FILE is the only place", "linux", env("HOME=/home/ada", "HB_WRAP_HOME=/x", "HB_WRAP_TOKEN_FILE=/t/token"), shim("/x", func(s *config.Shim) {
			s.TokenFile, s.TokenCandidates = "/t/token", []string{"/t/token"}
		}), nil},
		{"HB_WRAP_TOKEN_FILE is enough", "linux", env("HB_WRAP_TOKEN_FILE=/t/token"), shim("", func(s *config.Shim) {
			s.TokenFile, s.TokenCandidates, s.LogPath = "/t/token", []string{"/t/token"}, ""
		}), nil},
		{
			"every setting", "linux", env("HOME=/home/ada", "HB_WRAP_URL=http://[::1]:9/", "HB_WRAP_MAX_TOOLS=0", "HB_WRAP_TIMEOUT_MS=700", "HB_MCP_LOG=0"),
			shim(h, func(s *config.Shim) {
				s.URL, s.MaxTools, s.Timeout, s.LogPath = bridge("[::1]:9"), 0, 700*time.Millisecond, ""
			}), nil,
		},
		{"empty is not set", "linux", env("HOME=/home/ada", "HB_WRAP_TOKEN_FILE=", "HB_WRAP_URL=", "HB_WRAP_MAX_TOOLS=", "HB_WRAP_TIMEOUT_MS=", "HB_MCP_LOG=", "HB_WRAP_ALLOW_HTTP="), shim(h), nil},
		{"log on", "linux", env("HOME=/home/ada", "HB_MCP_LOG=1"), shim(h), nil},
		{"200 tools", "linux", env("HOME=/home/ada", "HB_WRAP_MAX_TOOLS=200"), shim(h, func(s *config.Shim) { s.MaxTools = 200 }), nil},
		{
			"201 tools", "linux", env("HOME=/home/ada", "HB_WRAP_MAX_TOOLS=201"), shim(h, func(s *config.Shim) { s.MaxTools = 200 }),
			[]config.Warning{"HB_WRAP_MAX_TOOLS is 201; at most 200 are possible, so 200 are used"},
		},
		{
			"more tools than a number holds", "linux", env("HOME=/home/ada", "HB_WRAP_MAX_TOOLS=99999999999999999999"), shim(h, func(s *config.Shim) { s.MaxTools = 200 }),
			[]config.Warning{"HB_WRAP_MAX_TOOLS is 99999999999999999999; at most 200 are possible, so 200 are used"},
		},
		{
			"the daemon's switches", "linux", env("HOME=/home/ada", "HB_WRAP_ALLOW_PRIVATE=1", "HB_WRAP_ADDR=nonsense", "KUANG_WRAP_ALLOW_HTTP=1"),
			shim(h, func(s *config.Shim) {
				s.Ignored = []string{"HB_WRAP_ADDR", "HB_WRAP_ALLOW_PRIVATE", "KUANG_WRAP_ALLOW_HTTP"}
			}),
			[]config.Warning{"KUANG_WRAP_ALLOW_HTTP is the old name of HB_WRAP_ALLOW_HTTP; it still works, but please rename it"},
		},
		{
			"old names", "linux", env("HOME=/home/ada", "KUANG_WRAP_TOKEN_FILE=/k", "KUANG_WRAP_URL=http://127.0.0.1:5", "KUANG_MCP_LOG=0"),
			shim(h, func(s *config.Shim) {
				s.TokenFile, s.TokenCandidates, s.URL = "/k", []string{"/k"}, bridge("127.0.0.1:5")
			}),
			[]config.Warning{
				"KUANG_WRAP_TOKEN_FILE is the old name of HB_WRAP_TOKEN_FILE; it still works, but please rename it",
				"KUANG_WRAP_URL is the old name of HB_WRAP_URL; it still works, but please rename it",
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, warn, err := config.LoadShim(tt.env, tt.goos)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("settings (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.warn, warn); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLoadShim_refuses(t *testing.T) {
	const (
		place = "http://127.0.0.1:PORT or http://[::1]:PORT"
		tools = "a whole number from 0 to 200"
		ms    = "a whole number of milliseconds"
		abs   = "an absolute path"
	)
	for _, c := range []struct{ setting, allowed string }{
		{"HB_WRAP_URL=https://127.0.0.1:4111", place},
		{"HB_WRAP_URL=127.0.0.1:4111", place},
		{"HB_WRAP_URL=http://127.0.0.1", place},
		{"HB_WRAP_URL=http://localhost:4111", place},
		{"HB_WRAP_URL=http://127.0.0.2:4111", place},
		{"HB_WRAP_URL=http://10.0.0.1:4111", place},
		{"HB_WRAP_URL=http://127.0.0.1:0", place},
		{"HB_WRAP_URL=http://127.0.0.1:65536", place},
		{"HB_WRAP_URL=http://127.0.0.1:", place},
		{"HB_WRAP_URL=http://user@127.0.0.1:4111", place},
		{"HB_WRAP_URL=http://127.0.0.1:4111/wrap", place},
		{"HB_WRAP_URL=http://127.0.0.1:4111?x", place},
		{"HB_WRAP_URL=http://127.0.0.1:4111?", place},
		{"HB_WRAP_URL=http://127.0.0.1:4111#", place},
		{"HB_WRAP_URL=http://[::ffff:7f00:1]:4111", place},
		{"HB_WRAP_URL=http://[::1%25lo]:4111", place},
		{"HB_WRAP_URL=http://2130706433:4111", place},
		{"HB_WRAP_URL=http://127.0.0.1.:4111", place},
		{"HB_WRAP_URL=http://127.0.0.1:4111@evil.example", place},
		{"HB_WRAP_URL=file:///x", place},
		{"HB_WRAP_MAX_TOOLS=-1", tools},
		{"HB_WRAP_MAX_TOOLS=many", tools},
		{"HB_WRAP_MAX_TOOLS=1.5", tools},
		{"HB_WRAP_TIMEOUT_MS=0", ms},
		{"HB_WRAP_TIMEOUT_MS=55s", ms},
		{"HB_MCP_LOG=loud", "1, true, yes or on"},
		{"HB_WRAP_TOKEN_FILE=token", abs},
		{"HB_WRAP_TOKEN_FILE=~/token", abs},
		{"HB_WRAP_HOME=x", abs},
	} {
		_, _, err := config.LoadShim(env("HOME=/home/ada", c.setting), "linux")
		mustName(t, c.setting, c.allowed, err)
	}
	_, _, err := config.LoadShim(env(), "linux")
	if err == nil || !strings.Contains(err.Error(), "HOME is not set") || !strings.Contains(err.Error(), "HB_WRAP_TOKEN_FILE") {
		t.Errorf("without a home: %v", err)
	}
}

func TestBooleans(t *testing.T) {
	for value, want := range map[string]bool{
		"1": true, "true": true, "TRUE": true, "yes": true, "On": true, " 1 ": true,
		"0": false, "false": false, "no": false, "OFF": false, "": false, " ": false,
	} {
		d, _, err := config.LoadDaemon(env("HOME=/h", "HB_WRAP_ALLOW_HTTP="+value), "linux")
		if err != nil || d.AllowHTTP != want {
			t.Errorf("%q: %t, %v, want %t", value, d.AllowHTTP, err, want)
		}
	}
}
