// Package clientconfig adds, shows and removes our entry in the configuration
// of MCP clients. It changes only the bytes of that entry: comments, order,
// indentation, line ends and everything that it does not know stay as they are.
//
// It never runs a program, never writes the value of a token, and never edits a
// document by decoding and encoding it. Start with [Known], [Client.Inspect]
// and [Client.Plan]; docs/clients.md is the table for people.
package clientconfig

// Name is the name of our entry. Clients make the names of tools from it and
// count its characters, so it is the same everywhere.
const Name = "hb-rest"

// A Scope says whose configuration is meant.
type Scope string

// The two scopes. Not every client has the second.
const (
	User    Scope = "user"    // every project of this user
	Project Scope = "project" // the project in Env.Dir; people commit such files
)

// Env is the machine as this package sees it. All fields are required.
type Env struct {
	OS     string                           // a value of runtime.GOOS
	Getenv func(name string) (string, bool) // as os.LookupEnv
	Dir    string                           // the folder of the project, absolute; only for Project
	Exists func(path string) bool           // whether a file or folder is there
	Glob   func(pattern string) []string    // as filepath.Glob; asked only on Windows
}

// An Entry is what a client starts.
type Entry struct {
	Command string            `json:"command"` // an absolute path
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"` // besides what the client itself passes on
}

// Wanted is the entry that should be there.
type Wanted struct {
	Entry
	// Idle are variables of ours that the entry does not need, each with the
	// value under which it does no harm. In an entry that is there, one with
	// another value is taken out; variables that are in neither list stay.
	Idle map[string]string
}

// A Client is one MCP client.
type Client struct {
	Name     string // as commands take it: "claude-code"
	Title    string // "Claude Code"
	Editable bool   // its file is edited; of the others only the snippet is printed
	Reload   string // what a person does so that the client sees a change

	format  format
	list    string // the member of the document that holds the servers
	shape   shape
	strict  bool     // reads JSON without comments and trailing commas
	user    place    // its files, likeliest first
	project []string // elements under the project's folder; nil: there is no such scope
	own     own      // its own command for the same
}

type format int

const (
	formatJSON format = iota // with comments and trailing commas
	formatTOML
	formatYAML
)

// A shape is how a client writes an entry.
type shape struct {
	kind    [2]string // a member before the command, such as "type": "stdio"; it may be missing
	command string    // the member for the command
	oneList bool      // the command and its arguments are one list
	env     string    // the member for the variables
	named   bool      // a list of entries with names instead of a map
	extra   []member  // members that only a new entry gets
}

var usual = shape{command: "command", env: "env"}

func (s shape) ofKind(key, value string) shape {
	s.kind = [2]string{key, value}
	return s
}

// Known lists the clients, those that are edited first.
func Known() []Client {
	return []Client{
		{
			Name: "claude-desktop", Title: "Claude Desktop", Editable: true, Reload: "Quit Claude Desktop, from its tray or menu too, and start it again.",
			list: "mcpServers", shape: usual, strict: true, user: claudeDesktop,
		},
		{
			Name: "claude-code", Title: "Claude Code", Editable: true, Reload: "Start a new session; /mcp shows it.",
			list: "mcpServers", shape: usual.ofKind("type", "stdio"), strict: true, user: claudeCode, project: []string{".mcp.json"}, own: ownClaude,
		},
		{
			Name: "cursor", Title: "Cursor", Editable: true, Reload: "Refresh the list of MCP servers in Cursor's settings.",
			list: "mcpServers", shape: usual, user: inHome(".cursor", "mcp.json"), project: []string{".cursor", "mcp.json"},
		},
		{
			Name: "vscode", Title: "VS Code", Editable: true, Reload: "Run \"MCP: List Servers\" and start it there.",
			list: "servers", shape: usual.ofKind("type", "stdio"), user: inApps("Code", "User", "mcp.json"), project: []string{".vscode", "mcp.json"}, own: ownCode,
		},
		{
			Name: "codex", Title: "Codex", Editable: true, Reload: "Start a new session of Codex.",
			format: formatTOML, list: "mcp_servers", shape: usual, user: inFolder("CODEX_HOME", ".codex", "config.toml"), project: []string{".codex", "config.toml"}, own: ownCodex,
		},
		{
			Name: "gemini-cli", Title: "Gemini CLI", Editable: true, Reload: "Start a new session, or run /mcp refresh in one.",
			list: "mcpServers", shape: usual, user: inHome(".gemini", "settings.json"), project: []string{".gemini", "settings.json"}, own: ownGemini,
		},
		{
			Name: "windsurf", Title: "Windsurf", Editable: true, Reload: "Refresh the list of MCP servers in Cascade.",
			list: "mcpServers", shape: usual, user: inHome(".codeium", "windsurf", "mcp_config.json"),
		},
		{
			Name: "zed", Title: "Zed", Editable: true, Reload: "Nothing: Zed sees the change itself.",
			list: "context_servers", shape: usual.ofKind("source", "custom"), user: zed, project: []string{".zed", "settings.json"},
		},
		{
			Name: "copilot-cli", Title: "Copilot CLI", Reload: "Start a new session of Copilot.",
			list: "mcpServers", shape: shape{kind: [2]string{"type", "stdio"}, command: "command", env: "env", extra: []member{{"tools", []string{"*"}}}}, user: inHome(".copilot", "mcp-config.json"),
		},
		{
			Name: "continue", Title: "Continue", Reload: "Reload the configuration in Continue.",
			format: formatYAML, list: "mcpServers", shape: shape{command: "command", env: "env", named: true}, user: inHome(".continue", "config.yaml"),
		},
		{
			Name: "lm-studio", Title: "LM Studio", Reload: "Switch it on in LM Studio's program tab.",
			list: "mcpServers", shape: usual, user: lmStudio,
		},
		{
			Name: "goose", Title: "Goose", Reload: "Start a new session of Goose.",
			format: formatYAML, list: "extensions", user: goose,
			shape: shape{command: "cmd", env: "envs", extra: []member{{"enabled", true}, {"type", "stdio"}, {"timeout", 300}}},
		},
		{
			Name: "opencode", Title: "OpenCode", Reload: "Start OpenCode again. Kilo takes the same under the same member.",
			list: "mcp", shape: shape{kind: [2]string{"type", "local"}, command: "command", oneList: true, env: "environment", extra: []member{{"enabled", true}}}, user: openCode,
		},
		{
			Name: "cline", Title: "Cline", Reload: "Nothing: Cline sees the change itself.",
			list: "mcpServers", shape: shape{command: "command", env: "env", extra: []member{{"disabled", false}}},
			user: inApps("Code", "User", "globalStorage", "saoudrizwan.claude-dev", "settings", "cline_mcp_settings.json"),
		},
	}
}

// Find finds a client by its name, or by one that people use for it too.
func Find(name string) (Client, bool) {
	switch name {
	case "claude":
		name = "claude-code"
	case "code", "vs-code":
		name = "vscode"
	case "gemini":
		name = "gemini-cli"
	case "copilot":
		name = "copilot-cli"
	case "lmstudio":
		name = "lm-studio"
	}
	for _, c := range Known() {
		if c.Name == name {
			return c, true
		}
	}
	return Client{}, false
}
