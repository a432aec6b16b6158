package config

import (
	"fmt"
	"strconv"
	"strings"
)

// A Setting is one of the daemon's that a person can store, so that it holds
// without a variable in the environment of a service.
type Setting struct {
	Name         string // as `hbrestd config set` takes it
	Variable     string // the environment's name for it, which wins over the stored value
	Default      string
	Description  string // one line
	NeedsRestart bool   // takes effect at the daemon's next start
}

// Settings lists them in the order they are shown.
func Settings() []Setting {
	return []Setting{
		{"allow-private", "HB_WRAP_ALLOW_PRIVATE", "off", "call loopback and private addresses, and plain http; metadata addresses stay closed", false},
		{"allow-http", "HB_WRAP_ALLOW_HTTP", "off", "call public hosts over plain http", false},
		{"call-timeout-ms", "HB_WRAP_CALL_TIMEOUT_MS", strconv.FormatInt(DefaultCallTimeout.Milliseconds(), 10), "the longest a whole call may take, in milliseconds", false},
		{"approval", "HB_WRAP_APPROVAL", "off", "ask a person before a write: off, first (once for each version of a wrapper, until the daemon stops), always (each request)", false},
		{"keyring", "HB_WRAP_KEYRING", "system", "where the key of the credentials is kept: system, file (an encrypted file, with a passphrase from systemd or the terminal of `hbrestd run`), off", true},
		{"cortex-max-mb", "HB_WRAP_CORTEX_MAX_MB", strconv.Itoa(DefaultCortexMB), "size of the index of what wrappers have read, in megabytes; above it the oldest documents go", true},
		{"addr", "HB_WRAP_ADDR", DefaultAddr, "where the bridge listens", true},
	}
}

// FindSetting finds one by its name; the error names the known ones.
func FindSetting(name string) (Setting, error) {
	var known []string
	for _, s := range Settings() {
		if s.Name == name {
			return s, nil
		}
		known = append(known, s.Name)
	}
	return Setting{}, fmt.Errorf("there is no setting %q; there are %s", name, strings.Join(known, ", "))
}

// Check says whether a value is allowed for the setting; the error says what is.
func (s Setting) Check(value, goos string) error {
	v := newVars(func(name string) (string, bool) { return value, name == s.Variable })
	if strings.TrimSpace(value) == "" {
		return fmt.Errorf("%s needs a value; `hbrestd config unset %s` goes back to the default", s.Name, s.Name)
	}
	s.read(v)
	if v.err != nil { // worded for the variable
		return fmt.Errorf("%s", strings.Replace(v.err.Error(), s.Variable, s.Name, 1))
	}
	return nil
}

// read reads the setting's variable by its own rules.
func (s Setting) read(v *vars) {
	switch s.Name {
	case "addr":
		v.addr(s.Variable, s.Default)
	case "approval":
		v.oneOf(s.Variable, s.Default, "first", "always")
	case "keyring":
		v.oneOf(s.Variable, s.Default, "file", "off")
	case "cortex-max-mb":
		v.megabytes(s.Variable, DefaultCortexMB, MaxCortexMB)
	case "call-timeout-ms":
		v.milliseconds(s.Variable, DefaultCallTimeout)
	default:
		v.boolean(s.Variable, false)
	}
}

// Value is the setting's value in d, in its canonical spelling.
func (s Setting) Value(d Daemon) string {
	onOff := map[bool]string{true: "on", false: "off"}
	switch s.Name {
	case "addr":
		return d.Addr
	case "approval":
		return d.Approval
	case "keyring":
		return d.Keyring
	case "cortex-max-mb":
		return strconv.Itoa(d.CortexMaxMB)
	case "call-timeout-ms":
		return strconv.FormatInt(d.CallTimeout.Milliseconds(), 10)
	case "allow-private":
		return onOff[d.AllowPrivate]
	}
	return onOff[d.AllowHTTP]
}

// InEnvironment reports whether the environment gives the setting, so that a
// stored value has no effect.
func (s Setting) InEnvironment(env Env) bool {
	used, _ := newVars(env).lookup(s.Variable)
	return used != ""
}

// Over is the environment with stored settings (by name) under it: a variable
// that is set wins.
func (e Env) Over(stored map[string]string) Env {
	byVariable := map[string]string{}
	for _, s := range Settings() {
		if value, ok := stored[s.Name]; ok && !s.InEnvironment(e) {
			byVariable[s.Variable] = value
		}
	}
	return func(name string) (string, bool) {
		if value, ok := byVariable[name]; ok {
			return value, true
		}
		return e(name)
	}
}
