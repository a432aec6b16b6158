//go:build unix

package e2e

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	"github.com/pelletier/go-toml/v2"
)

// decoded reads a configuration file by its ending.
func decoded(t *testing.T, name string, data []byte) map[string]any {
	t.Helper()
	m := map[string]any{}
	var err error
	switch filepath.Ext(name) {
	case ".toml":
		err = toml.Unmarshal(data, &m)
	case ".yaml":
		err = yaml.Unmarshal(data, &m)
	default:
		err = json.Unmarshal(data, &m)
	}
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, data)
	}
	text, err := json.Marshal(m) // the readers differ in their types of numbers
	if err != nil {
		t.Fatal(err)
	}
	m = map[string]any{}
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// written gives the files below a folder, by their path in it.
func written(t *testing.T, dir string) map[string]map[string]any {
	t.Helper()
	files := map[string]map[string]any{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		files[name] = decoded(t, name, data)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// entryOf is the entry in the only file of files.
func entryOf(t *testing.T, files map[string]map[string]any) (name string, entry map[string]any) {
	t.Helper()
	if len(files) != 1 {
		t.Fatalf("%d files: %v", len(files), files)
	}
	for file, doc := range files {
		for _, list := range doc {
			entry, _ = list.(map[string]any)["hb-rest"].(map[string]any)
		}
		name = file
	}
	if entry == nil {
		t.Fatalf("no entry in %v", files)
	}
	return name, entry
}

// addMCP runs add-mcp from npm with a home and a project of its own.
func addMCP(t *testing.T, home, project string, args ...string) {
	t.Helper()
	script := filepath.Join(npm(t), "node_modules", "add-mcp", "dist", "index.js")
	if _, err := os.Stat(script); err != nil {
		t.Skip("that folder has no add-mcp: run npm install in it again")
	}
	cmd := exec.Command("node", append([]string{script}, args...)...)
	cmd.Dir, cmd.Env = project, []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("add-mcp: %v\n%s", err, out)
	}
}

// ourClient runs hbrestd client with the same.
func ourClient(t *testing.T, bin, home, project string, args ...string) []byte {
	t.Helper()
	cmd := exec.Command(filepath.Join(bin, "hbrestd"), append([]string{"client"}, args...)...)
	cmd.Dir, cmd.Env = project, []string{"HOME=" + home, "HB_WRAP_HOME=/srv/hb", "PATH=/usr/bin:/bin"}
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		t.Fatalf("client %q: %v\n%s", args, err, errOut.Bytes())
	}
	return out.Bytes()
}

// What an independent program that writes the files of MCP clients puts where.
// plus and minus are what we write beyond it, and what we leave out.
var addMCPClients = []struct {
	ours, theirs string
	project      bool // both know a project's file
	printed      bool // of ours only the snippet is
	plus, minus  map[string]any
}{
	{ours: "claude-desktop", theirs: "claude-desktop"},
	{ours: "claude-code", theirs: "claude-code", project: true, plus: map[string]any{"type": "stdio"}},
	{ours: "cursor", theirs: "cursor", project: true},
	{ours: "vscode", theirs: "vscode", project: true, plus: map[string]any{"type": "stdio"}},
	{ours: "codex", theirs: "codex", project: true},
	{ours: "gemini-cli", theirs: "gemini-cli", project: true},
	{ours: "windsurf", theirs: "windsurf"},
	{ours: "zed", theirs: "zed", project: true},
	{ours: "copilot-cli", theirs: "github-copilot-cli", printed: true},
	{ours: "goose", theirs: "goose", printed: true, minus: map[string]any{"description": ""}},
	{ours: "opencode", theirs: "opencode", printed: true},
	{ours: "cline", theirs: "cline", printed: true},
}

// TestAddMCP: our files are where add-mcp's are, and say the same.
func TestAddMCP(t *testing.T) {
	npm(t)
	bin, err := build()
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range addMCPClients {
		scopes := []string{"user"}
		if tc.project {
			scopes = append(scopes, "project")
		}
		for _, scope := range scopes {
			t.Run(tc.ours+" "+scope, func(t *testing.T) {
				theirHome, ourHome, theirProject, ourProject := t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()
				args := []string{filepath.Join(bin, "hb-rest"), "-y", "-a", tc.theirs, "-n", "hb-rest", "--env", "HB_WRAP_HOME=/srv/hb"}
				theirs, ours := theirProject, ourProject
				if scope == "user" {
					args, theirs, ours = append(args, "-g"), theirHome, ourHome
				}
				addMCP(t, theirHome, theirProject, args...)
				wantFile, want := entryOf(t, written(t, theirs))

				var gotFile string
				var got map[string]any
				if tc.printed {
					var s struct{ File, Snippet string }
					if err := json.Unmarshal(ourClient(t, bin, ourHome, ourProject, "print", tc.ours, "--json"), &s); err != nil {
						t.Fatal(err)
					}
					gotFile = strings.TrimPrefix(s.File, ourHome+"/")
					_, got = entryOf(t, map[string]map[string]any{gotFile: decoded(t, gotFile, []byte(s.Snippet))})
				} else {
					ourClient(t, bin, ourHome, ourProject, "install", tc.ours, "--scope", scope)
					gotFile, got = entryOf(t, written(t, ours))
				}
				if gotFile != wantFile {
					t.Errorf("the file is %s, add-mcp's is %s", gotFile, wantFile)
				}
				for k, v := range tc.plus {
					want[k] = v
				}
				for k := range tc.minus {
					delete(want, k)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("-add-mcp +ours:\n%s", diff)
				}
				// What add-mcp wrote is an entry as it should be.
				var rows struct {
					Clients []struct{ Client, State string }
				}
				if err := json.Unmarshal(ourClient(t, bin, theirHome, theirProject, "list", "--scope", scope, "--json"), &rows); err != nil {
					t.Fatal(err)
				}
				for _, r := range rows.Clients {
					if r.Client == tc.ours && r.State != "ok" {
						t.Errorf("of add-mcp's file we say %q", r.State)
					}
				}
			})
		}
	}
}
