package shim

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// environment makes a lookup of pairs; nothing else is set.
func environment(pairs ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1], true
			}
		}
		return "", false
	}
}

// runMain runs the program to its end.
func runMain(t *testing.T, stdin io.Reader, env func(string) (string, bool), args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errOut bytes.Buffer
	code = Main(context.Background(), args, env, stdin, &out, &errOut)
	return code, out.String(), errOut.String()
}

func TestFlags(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	env := environment("HB_WRAP_TOKEN_FILE", token, "HB_MCP_LOG", "0")
	code, out, errOut := runMain(t, strings.NewReader(""), env, "--version")
	if code != 0 || !strings.HasPrefix(out, "hb-rest ") || len(strings.Fields(out)) != 2 || errOut != "" {
		t.Errorf("--version: %d %q %q", code, out, errOut)
	}
	code, out, errOut = runMain(t, strings.NewReader(""), env, "--help")
	if code != 0 || errOut != "" || !strings.Contains(out, `"env": {"HB_WRAP_TOKEN_FILE": "`+token+`"}`) || !strings.Contains(out, `"command": "/`) || !strings.Contains(out, "hbrestd run") {
		t.Errorf("--help: %d %s %s", code, out, errOut)
	}
	code, out, errOut = runMain(t, strings.NewReader(""), env, "--frob")
	if code != 2 || out != "" || errOut != "hb-rest: error: unknown argument \"--frob\"\nhb-rest: hint: `hb-rest --help`\n" {
		t.Errorf("--frob: %d %q %q", code, out, errOut)
	}
	code, out, errOut = runMain(t, strings.NewReader(""), environment("HB_WRAP_TOKEN_FILE", token, "HB_MCP_LOG", "0", "HB_WRAP_URL", "http://example.com"))
	if code != 2 || out != "" || !strings.HasPrefix(errOut, "hb-rest: error: reading the settings: HB_WRAP_URL") {
		t.Errorf("bad setting: %d %q %q", code, out, errOut)
	}
}

// TestMainServes drives the whole program: protocol on stdout, nothing on
// stderr, life cycle in the log.
func TestMainServes(t *testing.T) {
	b := newBridge(t)
	b.answer("GET /wrap/manifest", `{"revision":1,"wrappers":[]}`)
	home := t.TempDir()
	in := handshake + "\n" + `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wrap_reload"}}` + "\n"
	code, out, errOut := runMain(t, strings.NewReader(in), environment("HOME", home, "HB_WRAP_HOME", home, "HB_WRAP_TOKEN_FILE", b.tokenFile, "HB_WRAP_URL", b.url.String(), "HB_WRAP_ADDR", "127.0.0.1:1"))
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	if code != 0 || errOut != "" || len(lines) != 2 || !strings.Contains(lines[1], "Revision 1: 0 wrappers.") {
		t.Fatalf("%d %q %q", code, out, errOut)
	}
	log, err := os.ReadFile(filepath.Join(home, "hb-rest.log"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"msg=start", "HB_WRAP_ADDR", "msg=call", "msg=end"} {
		if !strings.Contains(string(log), want) {
			t.Errorf("log has no %s:\n%s", want, log)
		}
	}
	if regexp.MustCompile(tokenA).Match(log) {
		t.Error("the token is in the log")
	}
}

func TestLogCanBeSilenced(t *testing.T) {
	home := t.TempDir()
	code, _, _ := runMain(t, strings.NewReader(handshake+"\n"), environment("HB_WRAP_HOME", home, "HB_MCP_LOG", "0"))
	files, err := os.ReadDir(home)
	if code != 0 || err != nil || len(files) != 0 {
		t.Errorf("%d %v %v", code, files, err)
	}
}

// stuck is an output that a client no longer reads.
type stuck struct{ block chan struct{} }

func (s stuck) Write([]byte) (int, error) { <-s.block; return 0, io.ErrClosedPipe }

// TestMainEndsWithAStuckClient: a client that closed its side but does not read
// cannot keep the program alive, whatever it has sent.
func TestMainEndsWithAStuckClient(t *testing.T) {
	var calls strings.Builder
	for i := range 2 * maxCalls {
		fmt.Fprintf(&calls, `{"jsonrpc":"2.0","id":%d,"method":"tools/list"}`+"\n", i+1)
	}
	for name, in := range map[string]string{
		"a call":   handshake + "\n",
		"no JSON":  strings.Repeat("hello\n", 2*maxCalls),
		"calls":    handshake + "\n" + calls.String(),
		"long one": strings.Repeat("x", maxFrame+1) + "\n" + handshake + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := stuck{make(chan struct{})}
			t.Cleanup(func() { close(out.block) })
			env := environment("HB_WRAP_HOME", t.TempDir(), "HB_MCP_LOG", "0")
			done := make(chan int, 1)
			start := time.Now()
			go func() {
				done <- Main(context.Background(), nil, env, strings.NewReader(in), out, io.Discard)
			}()
			select {
			case code := <-done:
				if took := time.Since(start); code != 0 || took > exitTime+time.Second {
					t.Errorf("code %d after %v", code, took)
				}
			case <-time.After(20 * time.Second):
				t.Fatal("did not end")
			}
		})
	}
}

func TestMainEndsWithItsContext(t *testing.T) {
	in, w := io.Pipe()
	t.Cleanup(func() { _ = w.Close() })
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan int, 1)
	go func() {
		done <- Main(ctx, nil, environment("HB_WRAP_HOME", t.TempDir(), "HB_MCP_LOG", "0"), in, io.Discard, io.Discard)
	}()
	if _, err := io.WriteString(w, handshake+"\n"); err != nil { // it runs once this is read
		t.Fatal(err)
	}
	cancel()
	select {
	case code := <-done:
		if code != 0 {
			t.Errorf("code %d", code)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("did not end")
	}
}

func TestIsTerminal(t *testing.T) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = null.Close() })
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = r.Close(), w.Close() })
	for name, in := range map[string]io.Reader{"null": null, "pipe": r, "text": strings.NewReader("")} {
		if isTerminal(in) {
			t.Errorf("%s is a terminal", name)
		}
	}
	if tty, err := os.Open("/dev/ptmx"); err == nil { // Linux and macOS
		t.Cleanup(func() { _ = tty.Close() })
		if !isTerminal(tty) {
			t.Error("a pseudo-terminal is none")
		}
	}
}
