//go:build unix

package e2e

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/internal/e2e/stdio"
	"github.com/hyperbolic-gateway/hb-rest/internal/golden"
)

// sampleIssues is what the README's API answers here.
const sampleIssues = `[
	{"number": 1350, "title": "Say hello in more languages", "user": {"login": "ada"}, "created_at": "2026-11-28T09:14:07Z", "html_url": "https://github.com/octocat/Hello-World/issues/1350"},
	{"number": 1347, "title": "Link to [spoons](https://example.com) | forks", "user": {"login": "grace"}, "created_at": "2026-11-21T17:40:55Z", "html_url": "https://github.com/octocat/Hello-World/issues/1347"}
]`

var (
	// saved is a document that a reader is told to save.
	saved = regexp.MustCompile("(?s)Save this as `([^`]+)`:\n\n```json\n(.*?)```")
	shown = regexp.MustCompile("(?s)```(console|mcp)\n(.*?)```")
)

// What the README shows is what comes out: commands of a person, and calls of
// an agent, with a throw-away daemon. The API on the page is played by one on
// loopback. -update writes what came out into the page.
func TestReadme(t *testing.T) {
	dir, err := build()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	const api = "https://api.github.com"
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := sampleIssues
		if r.URL.Query().Get("per_page") == "1" {
			body = body[:strings.Index(body, ",\n\t{")] + "]"
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(body))
	}))
	defer up.Close()
	base := t.TempDir()
	home := filepath.Join(base, "home")
	p := startDaemon(t, home, "HB_WRAP_ALLOW_PRIVATE=1")
	env := []string{"PATH=" + dir + string(filepath.ListSeparator) + os.Getenv("PATH"), "HOME=" + base, "HB_WRAP_HOME=" + home, "HB_WRAP_URL=" + p.url, "HB_WRAP_ADDR=" + strings.TrimPrefix(p.url, "http://")}

	text := string(page)
	files := saved.FindAllStringSubmatch(text, -1)
	if len(files) == 0 {
		t.Error("the README has nothing to save")
	}
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(base, f[1]), []byte(strings.ReplaceAll(f[2], api, up.URL)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var mcp *stdio.Client
	defer func() {
		if mcp != nil {
			_ = mcp.Close()
		}
	}()
	blocks := 0
	got := shown.ReplaceAllStringFunc(text, func(block string) string {
		blocks++
		m := shown.FindStringSubmatch(block)
		var b strings.Builder
		b.WriteString("```" + m[1] + "\n")
		for line := range strings.Lines(m[2]) {
			line = strings.TrimSuffix(line, "\n")
			switch command, isCommand := strings.CutPrefix(line, "$ "); {
			case m[1] == "console" && isCommand:
				cmd := exec.Command("bash", "-c", command)
				cmd.Dir, cmd.Env = base, env
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Errorf("%s: %v", line, err)
				}
				b.WriteString(line + "\n" + string(out))
			case m[1] == "mcp" && strings.HasPrefix(line, "wrap_"):
				if mcp == nil { // what was saved before is a tool now
					shim := exec.Command(filepath.Join(dir, "hb-rest"))
					shim.Env = env
					if mcp, err = stdio.Start(shim, "2025-11-25"); err != nil {
						t.Fatal(err)
					}
				}
				tool, args, _ := strings.Cut(line, " ")
				r, err := mcp.Call(tool, json.RawMessage(args))
				if err != nil {
					t.Fatalf("%s: %v", line, err)
				}
				b.WriteString(line + "\n\n" + strings.TrimRight(r.Text()+r.RPCError, "\n") + "\n")
			}
		}
		b.WriteString("```")
		return strings.ReplaceAll(b.String(), up.URL, api)
	})
	if blocks < 3 {
		t.Errorf("the README has %d blocks that show something", blocks)
	}
	golden.File(t, "../../README.md", got)
}

// Each page that the README and the pages in docs lead to is there.
func TestLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^):#]+\.md)(?:#[^)]*)?\)`)
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	readme := "../../README.md"
	reached := map[string]bool{}
	for _, page := range append(pages, readme) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			to := filepath.Join(filepath.Dir(page), filepath.FromSlash(m[1]))
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s leads to %s, which is not there", page, m[1])
			}
			if page == readme {
				reached[to] = true
			}
		}
	}
	for _, page := range pages {
		if !reached[page] {
			t.Errorf("the README does not lead to %s", page)
		}
	}
}
