package config

import (
	"crypto/sha256"
	"encoding/hex"
	"path"
	"regexp"
	"strings"
)

// maxSocketPath is the longest path of a unix socket that is used as it is.
// The kernels' own limits are 103 bytes (macOS) and 107 (Linux).
const maxSocketPath = 100

// places computes paths for one operating system, whichever this program runs
// on. It does not touch the disk.
type places struct {
	vars *vars
	goos string
}

// variable is a variable that is not ours: no old name, no warning.
func (p places) variable(name string) string {
	value, _ := p.vars.env(name)
	return value
}

func (p places) join(first string, more ...string) string {
	if first == "" {
		return ""
	}
	if p.goos != "windows" {
		return path.Join(append([]string{first}, more...)...)
	}
	return strings.TrimRight(first, `\/`) + `\` + strings.Join(more, `\`)
}

// driveOrShare matches the absolute paths of Windows: C:\x, C:/x, \\server\x.
var driveOrShare = regexp.MustCompile(`^([A-Za-z]:[\\/]|\\\\[^\\/])`)

func (p places) isAbs(s string) bool {
	if strings.ContainsRune(s, 0) {
		return false
	}
	if p.goos == "windows" {
		return driveOrShare.MatchString(s)
	}
	return strings.HasPrefix(s, "/")
}

// absolute reads one of our variables that holds a path. A relative one is an
// error: the folder that a service or an MCP client starts in is not known.
func (p places) absolute(name string) string {
	used, value := p.vars.lookup(name)
	if used == "" {
		return ""
	}
	if !p.isAbs(value) {
		p.vars.invalid(used, value, "an absolute path; ~ and variables inside it are not replaced")
		return ""
	}
	return p.clean(value)
}

func (p places) clean(s string) string {
	if p.goos != "windows" {
		return path.Clean(s)
	}
	if cut := strings.TrimRight(s, `\/`); len(cut) > len(`C:`) {
		return cut
	}
	return s
}

// inherited is an absolute path from a variable of the system; what is not
// absolute counts as not set, as the XDG specification asks.
func (p places) inherited(name string) string {
	if value := p.variable(name); p.isAbs(value) {
		return p.clean(value)
	}
	return ""
}

// homeVariable is the variable that the default home is computed from.
func (p places) homeVariable() string {
	if p.goos == "windows" {
		return "LOCALAPPDATA"
	}
	return "HOME"
}

// defaultHome is the home computed from the user's home folder alone, which is
// what every MCP client passes on; "" if that is not known.
func (p places) defaultHome() string {
	switch p.goos {
	case "windows":
		if local := p.inherited("LOCALAPPDATA"); local != "" {
			return p.join(local, "hbrestd")
		}
		return p.join(p.inherited("USERPROFILE"), "AppData", "Local", "hbrestd")
	case "darwin":
		return p.join(p.inherited("HOME"), "Library", "Application Support", "hbrestd")
	default:
		return p.join(p.inherited("HOME"), ".local", "state", "hbrestd")
	}
}

// xdgHome is $XDG_STATE_HOME/hbrestd where that convention holds, else "".
func (p places) xdgHome() string {
	if p.goos == "windows" || p.goos == "darwin" {
		return ""
	}
	return p.join(p.inherited("XDG_STATE_HOME"), "hbrestd")
}

func (p places) daemonHome() string {
	used, _ := p.vars.lookup("HB_WRAP_HOME")
	if used != "" {
		return p.absolute("HB_WRAP_HOME")
	}
	if home := p.xdgHome(); home != "" {
		return home
	}
	home := p.defaultHome()
	if home == "" {
		p.vars.fail("%s is not set or not an absolute path, so there is no place for the daemon's files: set HB_WRAP_HOME to an absolute path", p.homeVariable())
	}
	return home
}

// shimHomes are the homes that the daemon may have, best first. An MCP client
// seldom passes XDG_STATE_HOME on, but where it does, the daemon has it too.
func (p places) shimHomes() []string {
	var homes []string
	for _, home := range []string{p.absolute("HB_WRAP_HOME"), p.xdgHome(), p.defaultHome()} {
		if home != "" && (len(homes) == 0 || homes[len(homes)-1] != home) {
			homes = append(homes, home)
		}
	}
	return homes
}

// controlSocket is where the human's commands reach the daemon.
func (p places) controlSocket(home string) string {
	if home == "" {
		return ""
	}
	if p.goos == "windows" {
		return `\\.\pipe\hbrestd-` + digest(strings.ToLower(home))
	}
	socket := p.join(home, "control.sock")
	if used, _ := p.vars.lookup("HB_WRAP_HOME"); used == "" {
		if runtime := p.inherited("XDG_RUNTIME_DIR"); runtime != "" {
			socket = p.join(runtime, "hbrestd", "control.sock")
		}
	}
	if len(socket) > maxSocketPath {
		// Always /tmp, never TMPDIR: the daemon's environment and that of the
		// command that looks for it may differ there.
		return p.join("/tmp", "hbrestd-"+digest(socket), "control.sock")
	}
	return socket
}

// digest is a short name for a long one.
func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:8])
}
