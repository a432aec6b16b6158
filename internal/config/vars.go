package config

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// vars reads variables and keeps the first error and every warning, so that
// the two Load functions read as a list of settings.
type vars struct {
	env      Env
	warned   map[string]bool
	warnings []Warning
	err      error
}

func newVars(env Env) *vars { return &vars{env: env, warned: map[string]bool{}} }

func (v *vars) fail(format string, args ...any) {
	if v.err == nil {
		v.err = fmt.Errorf(format, args...)
	}
}

func (v *vars) warn(name, format string, args ...any) {
	if !v.warned[name] {
		v.warned[name] = true
		v.warnings = append(v.warnings, Warning(fmt.Sprintf(format, args...)))
	}
}

const (
	prefix    = "HB_WRAP_"
	oldPrefix = "KUANG_WRAP_"
)

// lookup finds a variable under its name or, for HB_WRAP_ names, under the old
// one, and says which was used; used is "" if neither is set. The new name wins.
func (v *vars) lookup(name string) (used, value string) {
	value, _ = v.env(name)
	rest, hasOld := strings.CutPrefix(name, prefix)
	if !hasOld {
		if value == "" {
			return "", ""
		}
		return name, value
	}
	old := oldPrefix + rest
	oldValue, _ := v.env(old)
	switch {
	case value == "" && oldValue == "":
		return "", ""
	case oldValue == "":
		return name, value
	case value == "":
		v.warn(old, "%s is the old name of %s; it still works, but please rename it", old, name)
		return old, oldValue
	case oldValue != value:
		v.warn(old, "%s is ignored, because %s, its new name, is set too", old, name)
	}
	return name, value
}

// invalid records that a variable has a value that is not allowed.
func (v *vars) invalid(used, value, allowed string) {
	const shown = 200 // enough to recognise it in an error
	if r := []rune(value); len(r) > shown {
		value = string(r[:shown]) + "…"
	}
	v.fail("%s is %q, but it must be %s", used, value, allowed)
}

func (v *vars) boolean(name string, def bool) bool {
	used, value := v.lookup(name)
	if used == "" {
		return def
	}
	switch strings.ToLower(strings.TrimSpace(value)) {
	case "1", "true", "yes", "on":
		return true
	case "0", "false", "no", "off", "":
		return false
	}
	v.invalid(used, value, "1, true, yes or on, or 0, false, no or off")
	return def
}

func (v *vars) oneOf(name string, def string, more ...string) string {
	used, value := v.lookup(name)
	if used == "" {
		return def
	}
	allowed := append([]string{def}, more...)
	for _, a := range allowed {
		if strings.EqualFold(strings.TrimSpace(value), a) {
			return a
		}
	}
	v.invalid(used, value, strings.Join(allowed[:len(allowed)-1], ", ")+" or "+allowed[len(allowed)-1])
	return def
}

// count is a whole number from 0; above most it is cut, with a warning.
func (v *vars) count(name string, def, most int) int {
	used, value := v.lookup(name)
	if used == "" {
		return def
	}
	n, err := strconv.ParseUint(strings.TrimSpace(value), 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		v.invalid(used, value, fmt.Sprintf("a whole number from 0 to %d", most))
		return def
	}
	if n > uint64(most) { // a number out of uint64's range is its largest here
		v.warn(used+" limit", "%s is %s; at most %d are possible, so %d are used", used, strings.TrimSpace(value), most, most)
		return most
	}
	return int(n)
}

func (v *vars) megabytes(name string, def, most int) int {
	used, value := v.lookup(name)
	if used == "" {
		return def
	}
	n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 32)
	if err != nil || n < 1 || n > int64(most) {
		v.invalid(used, value, fmt.Sprintf("a whole number of megabytes from 1 to %d", most))
		return def
	}
	return int(n)
}

func (v *vars) milliseconds(name string, def time.Duration) time.Duration {
	used, value := v.lookup(name)
	if used == "" {
		return def
	}
	n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
	if err != nil || n < minTimeout.Milliseconds() || n > maxTimeout.Milliseconds() {
		v.invalid(used, value, fmt.Sprintf("a whole number of milliseconds from %d to %d", minTimeout.Milliseconds(), maxTimeout.Milliseconds()))
		return def
	}
	return time.Duration(n) * time.Millisecond
}

func (v *vars) addr(name, def string) string {
	used, value := v.lookup(name)
	if used == "" {
		return def
	}
	ap, err := netip.ParseAddrPort(strings.TrimSpace(value))
	if err != nil || !literalLoopback(ap.Addr()) {
		v.invalid(used, value, "127.0.0.1:PORT or [::1]:PORT; the bridge never listens anywhere else")
		return def
	}
	return ap.String()
}

func (v *vars) bridgeURL(name, def string) *url.URL {
	used, value := v.lookup(name)
	if used == "" {
		value = def
	}
	u, ok := parseBridgeURL(strings.TrimSpace(value))
	if !ok {
		v.invalid(used, value, "http://127.0.0.1:PORT or http://[::1]:PORT; a host name is refused, because it could lead elsewhere")
	}
	return u
}

func parseBridgeURL(s string) (*url.URL, bool) {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" || u.User != nil || u.Opaque != "" || u.RawQuery != "" || u.ForceQuery ||
		strings.Contains(s, "#") || u.Path != "" && u.Path != "/" {
		return nil, false
	}
	// ParseAddrPort wants a literal address and a port, in exactly the two
	// spellings that a URL has for them.
	ap, err := netip.ParseAddrPort(u.Host)
	if err != nil || !literalLoopback(ap.Addr()) || ap.Port() == 0 {
		return nil, false
	}
	return &url.URL{Scheme: "http", Host: ap.String()}, true
}
