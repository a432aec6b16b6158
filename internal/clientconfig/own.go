package clientconfig

// own is how a client's own command line does the same.
type own int

const (
	ownNone own = iota
	ownClaude
	ownCode
	ownCodex
	ownGemini
)

// OwnCommand is the client's own command that adds the entry: the program's
// name and its arguments. It is nil if the client has none for this scope.
func (c Client) OwnCommand(scope Scope, e Entry) []string {
	switch c.own {
	case ownClaude:
		return []string{"claude", "mcp", "add-json", "--scope", string(scope), Name, compact(c.shape.members(e))}
	case ownCode:
		if scope == User {
			return []string{"code", "--add-mcp", compact(append([]member{{"name", Name}}, c.shape.members(e)...))}
		}
	case ownCodex:
		if scope == User {
			return append(append([]string{"codex", "mcp", "add", Name}, pairs("--env", e)...), append([]string{"--", e.Command}, e.Args...)...)
		}
	case ownGemini:
		return append(append([]string{"gemini", "mcp", "add", "--scope", string(scope)}, pairs("-e", e)...), append([]string{Name, e.Command}, e.Args...)...)
	}
	return nil
}

// KeepsOpen reports whether the client writes its file while it runs, so that
// its own command is the safer way.
func (c Client) KeepsOpen(scope Scope) bool { return c.own == ownClaude && scope == User }

func pairs(flag string, e Entry) []string {
	var args []string
	for _, name := range sortedKeys(e.Env) {
		args = append(args, flag, name+"="+e.Env[name])
	}
	return args
}

// compact is members as JSON on one line.
func compact(ms []member) string { return string(jsonStyle{}.value(ms, "")) }
