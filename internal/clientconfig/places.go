package clientconfig

import (
	"path"
	"regexp"
	"strings"
)

// A place gives the files that a client may have, likeliest first.
type place func(p paths) []string

// paths makes paths for one operating system, whichever this program runs on.
type paths struct{ env Env }

func (p paths) windows() bool { return p.env.OS == "windows" }

func (p paths) join(first string, more ...string) string {
	if first == "" {
		return ""
	}
	if !p.windows() {
		return path.Join(append([]string{first}, more...)...)
	}
	return strings.TrimRight(first, `\/`) + `\` + strings.Join(more, `\`)
}

func (p paths) dir(file string) string {
	if !p.windows() {
		return path.Dir(file)
	}
	if i := strings.LastIndexAny(file, `\/`); i > 0 {
		return file[:i]
	}
	return file
}

var driveOrShare = regexp.MustCompile(`^([A-Za-z]:[\\/]|\\\\[^\\/])`)

func (p paths) isAbs(s string) bool {
	if p.windows() {
		return driveOrShare.MatchString(s)
	}
	return strings.HasPrefix(s, "/")
}

// variable is an absolute path from the environment, or "".
func (p paths) variable(name string) string {
	if v, _ := p.env.Getenv(name); p.isAbs(v) {
		return v
	}
	return ""
}

func (p paths) home() string {
	if p.windows() {
		return p.variable("USERPROFILE")
	}
	return p.variable("HOME")
}

// config is where programs that follow the XDG specification keep settings.
func (p paths) config() string {
	if p.env.OS != "darwin" && !p.windows() {
		if dir := p.variable("XDG_CONFIG_HOME"); dir != "" {
			return dir
		}
	}
	return p.join(p.home(), ".config")
}

// apps is where desktop programs keep settings.
func (p paths) apps() string {
	switch p.env.OS {
	case "darwin":
		return p.join(p.home(), "Library", "Application Support")
	case "windows":
		if dir := p.variable("APPDATA"); dir != "" {
			return dir
		}
		return p.join(p.home(), "AppData", "Roaming")
	}
	return p.config()
}

func inHome(elements ...string) place {
	return func(p paths) []string { return []string{p.join(p.home(), elements...)} }
}

func inApps(elements ...string) place {
	return func(p paths) []string { return []string{p.join(p.apps(), elements...)} }
}

// inFolder is a folder that a variable can move.
func inFolder(variable, folder, name string) place {
	return func(p paths) []string {
		if dir := p.variable(variable); dir != "" {
			return []string{p.join(dir, name)}
		}
		return []string{p.join(p.home(), folder, name)}
	}
}

func claudeCode(p paths) []string {
	if dir := p.variable("CLAUDE_CONFIG_DIR"); dir != "" {
		return []string{p.join(dir, ".claude.json")}
	}
	return []string{p.join(p.home(), ".claude.json")}
}

// claudeDesktop knows that Windows gives a packaged program a folder of its own
// in the place of the usual one.
func claudeDesktop(p paths) []string {
	var files []string
	if p.windows() {
		local := p.variable("LOCALAPPDATA")
		if local == "" {
			local = p.join(p.home(), "AppData", "Local")
		}
		for _, dir := range p.env.Glob(p.join(local, "Packages", "Claude_*")) {
			files = append(files, p.join(dir, "LocalCache", "Roaming", "Claude", "claude_desktop_config.json"))
		}
	}
	return append(files, p.join(p.apps(), "Claude", "claude_desktop_config.json"))
}

func zed(p paths) []string {
	switch p.env.OS {
	case "windows":
		return []string{p.join(p.apps(), "Zed", "settings.json")}
	case "darwin":
		return []string{p.join(p.config(), "zed", "settings.json"), p.join(p.apps(), "Zed", "settings.json")}
	}
	return []string{p.join(p.config(), "zed", "settings.json")}
}

func lmStudio(p paths) []string {
	return []string{p.join(p.home(), ".lmstudio", "mcp.json"), p.join(p.home(), ".cache", "lm-studio", "mcp.json")}
}

func goose(p paths) []string {
	if p.windows() {
		return []string{p.join(p.apps(), "Block", "goose", "config", "config.yaml")}
	}
	return []string{p.join(p.config(), "goose", "config.yaml")}
}

func openCode(p paths) []string {
	return []string{p.join(p.config(), "opencode", "opencode.jsonc"), p.join(p.config(), "opencode", "opencode.json")}
}

// Path is the client's file in a scope: the first of its places where a file
// is, else the first whose folder is there, else the likeliest. It is "" if the
// client has no such scope, or if the home folder is not known.
func (c Client) Path(env Env, scope Scope) string {
	p := paths{env}
	if scope == Project {
		if c.project == nil {
			return ""
		}
		return p.join(env.Dir, c.project...)
	}
	files := c.user(p)
	for _, f := range files {
		if f != "" && env.Exists(f) {
			return f
		}
	}
	for _, f := range files {
		if f != "" && env.Exists(p.dir(f)) {
			return f
		}
	}
	return files[0]
}

// Detected reports whether the client seems to be in use: its file is there, or
// the folder that only it would have made.
func (c Client) Detected(env Env, scope Scope) bool {
	file := c.Path(env, scope)
	if file == "" {
		return false
	}
	p := paths{env}
	dir := p.dir(file)
	shared := dir == p.home() || dir == p.config() || dir == p.apps() || scope == Project
	return env.Exists(file) || !shared && env.Exists(dir)
}
