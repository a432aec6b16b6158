package clientconfig

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// A member is a key with its value: a string, a bool, an int, []string or
// []member. Order is kept.
type member struct {
	key   string
	value any
}

// members is how a client writes a new entry.
func (s shape) members(e Entry) []member {
	var ms []member
	if s.kind[0] != "" {
		ms = append(ms, member{s.kind[0], s.kind[1]})
	}
	args := slices.Clone(e.Args)
	if args == nil {
		args = []string{}
	}
	if s.oneList {
		ms = append(ms, member{s.command, append([]string{e.Command}, args...)})
	} else {
		ms = append(ms, member{s.command, e.Command}, member{"args", args})
	}
	if len(e.Env) > 0 {
		ms = append(ms, member{s.env, variables(e.Env)})
	}
	return append(ms, s.extra...)
}

func variables(env map[string]string) []member {
	ms := []member{}
	for _, name := range sortedKeys(env) {
		ms = append(ms, member{name, env[name]})
	}
	return ms
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// read takes an entry out of a decoded document; ok is false for what is none
// that starts a program.
func (s shape) read(v any) (e Entry, ok bool) {
	m, _ := v.(map[string]any)
	switch c := m[s.command].(type) {
	case string:
		e.Command = c
	case []any:
		all := texts(c)
		if len(all) == 0 {
			return e, false
		}
		e.Command, e.Args = all[0], all[1:]
	case map[string]any: // of older versions of Zed
		e.Command, _ = c["path"].(string)
		e.Args = texts(c["args"])
		e.Env = textMap(c["env"])
	}
	if e.Command == "" {
		return e, false
	}
	if args := texts(m["args"]); len(args) > 0 {
		e.Args = args
	}
	if env := textMap(m[s.env]); len(env) > 0 {
		e.Env = env
	}
	if len(e.Args) == 0 {
		e.Args = nil
	}
	return e, true
}

func texts(v any) []string {
	list, _ := v.([]any)
	var out []string
	for _, x := range list {
		s, _ := x.(string)
		out = append(out, s)
	}
	return out
}

func textMap(v any) map[string]string {
	m, _ := v.(map[string]any)
	var out map[string]string
	for k, x := range m {
		if s, ok := x.(string); ok {
			if out == nil {
				out = map[string]string{}
			}
			out[k] = s
		}
	}
	return out
}

// off reports whether the client was told not to start the entry.
func off(v any) bool {
	m, _ := v.(map[string]any)
	return m["disabled"] == true || m["enabled"] == false
}

// base is the program's name in a command, whichever system its path is of.
func base(command string) string {
	command = strings.ReplaceAll(command, `\`, "/")
	return strings.TrimSuffix(strings.ToLower(path.Base(command)), ".exe")
}

// ours reports whether an entry starts hb-rest.
func (s shape) ours(v any) bool {
	e, ok := s.read(v)
	return ok && base(e.Command) == Name
}

// oldName is the name that the predecessor's entry has.
const oldName = "kuang-wrap"

// old reports whether an entry is the predecessor's: by its name, by the
// program, or by variables that only the predecessor had. Ours is never old.
func (s shape) old(name string, v any) bool {
	if name == Name {
		return false
	}
	if name == oldName {
		return true
	}
	e, ok := s.read(v)
	if !ok || base(e.Command) == Name {
		return false
	}
	if base(e.Command) == oldName {
		return true
	}
	for k := range e.Env {
		if strings.HasPrefix(k, "KUANG_WRAP_") {
			return true
		}
	}
	return false
}
