// Package config says where things are and reads the settings that come from
// the environment, into one struct for hbrestd and one for hb-rest.
//
// It is the only reader of the environment. It is imported only by the
// command line, the daemon and the shim, which hand plain values on. Start with
// [LoadDaemon] and [LoadShim]; [EnsureDirs] makes the daemon's folders.
package config

import (
	"net/netip"
	"net/url"
	"os"
	"time"
)

// Defaults and bounds of the settings.
const (
	DefaultAddr        = "127.0.0.1:4111"
	DefaultCallTimeout = 50 * time.Second // with ShimGrace below the clients' patience
	ShimGrace          = 5 * time.Second  // how long the shim waits beyond the call's own deadline
	DefaultMaxTools    = 40
	MaxTools           = 200
	DefaultCortexMB    = 200     // of cortex.db
	MaxCortexMB        = 100_000 // more than a disk is likely to have for it

	clientPatience = 60 * time.Second // after it the usual MCP clients give up

	minTimeout = 100 * time.Millisecond // under it not even a local call ends well
	maxTimeout = time.Hour
)

// Env looks up one variable, as os.LookupEnv does. A variable that is set but
// empty counts as not set everywhere in this package.
type Env func(name string) (value string, ok bool)

// Process is the environment of this process.
func Process() Env { return os.LookupEnv }

// A Warning is one sentence about a setting that works but is not as it should
// be: an old name, a value that was cut to its limit.
type Warning string

// Daemon holds the settings of hbrestd. All paths are absolute.
type Daemon struct {
	Home          string // state of this user; mode 0700
	WrapDir       string // Home/wrap
	StorePath     string // Home/wrap/store.db
	AuditPath     string // Home/wrap/audit.db
	CortexPath    string // Home/wrap/cortex.db
	TokenPath     string // Home/wrap/token
	ControlSocket string // a unix socket's path of at most 100 bytes, or a pipe's name on Windows
	Addr          string // where the bridge listens: 127.0.0.1 or [::1] with a port; port 0 lets the system choose
	AllowPrivate  bool   // private destinations are allowed; implies AllowHTTP
	AllowHTTP     bool   // plain http is allowed
	CallTimeout   time.Duration
	Approval      string // "off", "first" or "always"
	CortexMaxMB   int    // million bytes of CortexPath above which the oldest documents go

	Keyring        string // "system", "file" or "off": where the key of the credentials is
	PassphraseFile string // of the keyring "file": the systemd credential hbrestd-passphrase; "" if there is none
}

// Shim holds the settings of hb-rest.
type Shim struct {
	TokenFile       string        // HB_WRAP_TOKEN_FILE, or ""
	TokenCandidates []string      // where to look for the token, best first; only TokenFile if that is set
	URL             *url.URL      // the bridge: http, 127.0.0.1 or [::1], with a port, without a path
	MaxTools        int           // generated tools; 0 disables them
	Timeout         time.Duration // how long to wait for the bridge's answer
	LogPath         string        // "" keeps no log
	Ignored         []string      // variables that are set here but are the daemon's alone, by the name that was used
}

// LoadDaemon reads the settings of hbrestd for the operating system goos (a
// value of runtime.GOOS). The error names the variable, its value and what is
// allowed.
func LoadDaemon(env Env, goos string) (Daemon, []Warning, error) {
	v := newVars(env)
	pl := places{vars: v, goos: goos}
	var d Daemon
	d.Home = pl.daemonHome()
	d.WrapDir = pl.join(d.Home, "wrap")
	d.StorePath = pl.join(d.WrapDir, "store.db")
	d.AuditPath = pl.join(d.WrapDir, "audit.db")
	d.CortexPath = pl.join(d.WrapDir, "cortex.db")
	d.TokenPath = pl.join(d.WrapDir, "token")
	d.ControlSocket = pl.controlSocket(d.Home)
	d.Addr = v.addr("HB_WRAP_ADDR", DefaultAddr)
	d.AllowPrivate = v.boolean("HB_WRAP_ALLOW_PRIVATE", false)
	d.AllowHTTP = v.boolean("HB_WRAP_ALLOW_HTTP", false) || d.AllowPrivate
	d.CallTimeout = v.milliseconds("HB_WRAP_CALL_TIMEOUT_MS", DefaultCallTimeout)
	if d.CallTimeout > clientPatience-ShimGrace {
		v.warn("patience", "HB_WRAP_CALL_TIMEOUT_MS is %d; most MCP clients give up after %d ms, so calls that take longer than %d ms may be lost",
			d.CallTimeout.Milliseconds(), clientPatience.Milliseconds(), (clientPatience - ShimGrace).Milliseconds())
	}
	d.Approval = v.oneOf("HB_WRAP_APPROVAL", "off", "first", "always")
	d.CortexMaxMB = v.megabytes("HB_WRAP_CORTEX_MAX_MB", DefaultCortexMB, MaxCortexMB)
	d.Keyring = v.oneOf("HB_WRAP_KEYRING", "system", "file", "off")
	if _, dir := v.lookup("CREDENTIALS_DIRECTORY"); dir != "" { // set by systemd for a unit with LoadCredential=
		d.PassphraseFile = pl.join(dir, "hbrestd-passphrase")
	}
	if v.err != nil {
		return Daemon{}, nil, v.err
	}
	return d, v.warnings, nil
}

// daemonOnly are the switches that have no effect in the shim's environment.
var daemonOnly = [...]string{
	"HB_WRAP_ADDR", "HB_WRAP_ALLOW_PRIVATE", "HB_WRAP_ALLOW_HTTP", "HB_WRAP_CALL_TIMEOUT_MS", "HB_WRAP_APPROVAL", "HB_WRAP_KEYRING", "HB_WRAP_CORTEX_MAX_MB",
}

// LoadShim reads the settings of hb-rest for the operating system goos. The
// error names the variable, its value and what is allowed. A home that cannot
// be found is no error as long as HB_WRAP_TOKEN_FILE is set.
func LoadShim(env Env, goos string) (Shim, []Warning, error) {
	v := newVars(env)
	pl := places{vars: v, goos: goos}
	var s Shim
	s.TokenFile = pl.absolute("HB_WRAP_TOKEN_FILE")
	homes := pl.shimHomes()
	if s.TokenFile != "" {
		s.TokenCandidates = []string{s.TokenFile}
	} else {
		for _, home := range homes {
			s.TokenCandidates = append(s.TokenCandidates, pl.join(home, "wrap", "token"))
		}
		if len(homes) == 0 {
			v.fail("%s is not set, so the token file cannot be found: set HB_WRAP_TOKEN_FILE to the path that `hbrestd status` prints", pl.homeVariable())
		}
	}
	s.URL = v.bridgeURL("HB_WRAP_URL", "http://"+DefaultAddr)
	s.MaxTools = v.count("HB_WRAP_MAX_TOOLS", DefaultMaxTools, MaxTools)
	s.Timeout = v.milliseconds("HB_WRAP_TIMEOUT_MS", DefaultCallTimeout+ShimGrace)
	if v.boolean("HB_MCP_LOG", true) && len(homes) > 0 {
		s.LogPath = pl.join(homes[0], "hb-rest.log")
	}
	for _, name := range daemonOnly {
		if used, _ := v.lookup(name); used != "" {
			s.Ignored = append(s.Ignored, used)
		}
	}
	if v.err != nil {
		return Shim{}, nil, v.err
	}
	return s, v.warnings, nil
}

// literalLoopback reports whether a is one of the two addresses that the bridge
// may have. Other addresses of 127.0.0.0/8 are not: another user's program can
// listen there while ours has 127.0.0.1.
func literalLoopback(a netip.Addr) bool {
	return a == netip.AddrFrom4([4]byte{127, 0, 0, 1}) || a == netip.IPv6Loopback()
}
