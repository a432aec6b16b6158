package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/hyperbolic-gateway/hb-rest/internal/e2e/stdio"
	"github.com/hyperbolic-gateway/hb-rest/internal/upstream"
)

// binDir is where the programs of this run are; TestMain makes and removes it.
var binDir string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "hb-rest-e2e-")
	if err == nil {
		err = os.Chmod(dir, 0o755) // another user runs them in one test
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	binDir = dir
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// build compiles both programs once for all tests and names their folder.
var build = sync.OnceValues(func() (string, error) {
	cmd := exec.Command("go", "build", "-o", binDir+string(filepath.Separator), "./cmd/hbrestd", "./cmd/hb-rest")
	cmd.Dir = "../.."
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return binDir, nil
})

// TestScripts runs every script of testdata/script with both real programs.
func TestScripts(t *testing.T) {
	dir, err := build()
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", dir+string(filepath.ListSeparator)+env.Getenv("PATH"))
			env.Setenv("HOME", filepath.Join(env.WorkDir, "user"))
			env.Setenv("HB_WRAP_HOME", filepath.Join(env.WorkDir, "home"))
			env.Setenv("TOKEN_FILE", filepath.Join(env.WorkDir, "home", "wrap", "token"))
			env.Values[worldKey{}] = &world{dir: dir}
			env.Defer(env.Values[worldKey{}].(*world).end)
			return os.Mkdir(env.Getenv("HOME"), 0o700)
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"daemon":       cmdDaemon,
			"upstream":     cmdUpstream,
			"upstream-hit": cmdUpstreamHit,
			"httpbin":      cmdHTTPBin,
			"mcp":          cmdMCP,
			"http":         cmdHTTP,
			"freeport":     cmdFreePort,
			"fill":         cmdFill,
			"waitfor":      cmdWaitFor,
			"taken":        cmdTaken,
		},
	})
}

type worldKey struct{}

// A world is what one script has running.
type world struct {
	dir    string
	daemon *exec.Cmd
	stderr *log
	mcp    *stdio.Client
	script *upstream.Script
	server *http.Server
}

func of(ts *testscript.TestScript) *world { return ts.Value(worldKey{}).(*world) }

func (w *world) end() {
	if w.mcp != nil {
		_ = w.mcp.Close()
	}
	if w.daemon != nil {
		_ = w.daemon.Process.Kill()
		_ = w.wait()
	}
	if w.server != nil {
		_ = w.server.Close()
	}
}

// wait waits for the daemon's end, and first for the end of what it says: Wait
// closes the pipe.
func (w *world) wait() error {
	<-w.stderr.done
	err := w.daemon.Wait()
	w.daemon = nil
	return err
}

// A log collects a process's stderr and lets others wait for a line.
type log struct {
	mu   sync.Mutex
	text strings.Builder
	more chan struct{} // closed when the stream has ended
	done chan struct{}
}

func newLog() *log { return &log{more: make(chan struct{}, 1), done: make(chan struct{})} }

func (l *log) collect(r *bufio.Scanner) {
	for r.Scan() {
		l.mu.Lock()
		l.text.WriteString(r.Text() + "\n")
		l.mu.Unlock()
		select {
		case l.more <- struct{}{}:
		default:
		}
	}
	close(l.more)
	close(l.done)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// waitFor returns the first submatch of re once it has been printed.
func (l *log) waitFor(re *regexp.Regexp) (string, error) {
	deadline := time.After(20 * time.Second)
	for {
		if m := re.FindStringSubmatch(l.String()); m != nil {
			return m[1], nil
		}
		select {
		case _, open := <-l.more:
			if !open {
				if m := re.FindStringSubmatch(l.String()); m != nil {
					return m[1], nil
				}
				return "", fmt.Errorf("the program ended; stderr:\n%s", l)
			}
		case <-deadline:
			return "", fmt.Errorf("no match of %s in 20 s; stderr:\n%s", re, l)
		}
	}
}

var listening = regexp.MustCompile(`msg=listening addr=(\S+)`)

// daemon [K=V ...] starts hbrestd, sets HB_WRAP_URL and waits until it listens;
// daemon stop ends it with SIGTERM; daemon kill with SIGKILL; daemon log prints
// its stderr. The second start keeps the port of the first.
func cmdDaemon(ts *testscript.TestScript, neg bool, args []string) {
	w := of(ts)
	switch {
	case len(args) > 0 && args[0] == "log":
		fmt.Fprint(ts.Stdout(), w.stderr.String())
		return
	case len(args) > 0 && (args[0] == "stop" || args[0] == "kill"):
		sig := syscall.SIGTERM
		if args[0] == "kill" {
			sig = syscall.SIGKILL
		}
		ts.Check(w.daemon.Process.Signal(sig))
		err := w.wait()
		if args[0] == "stop" && (err != nil) != neg {
			ts.Fatalf("daemon stop: %v\n%s", err, w.stderr)
		}
		return
	}
	addr := "127.0.0.1:0"
	if u := ts.Getenv("HB_WRAP_URL"); u != "" {
		addr = strings.TrimPrefix(u, "http://")
	}
	cmd := exec.Command(filepath.Join(w.dir, "hbrestd"), "run")
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + ts.Getenv("HOME"), "HB_WRAP_HOME=" + ts.Getenv("HB_WRAP_HOME"), "HB_WRAP_ADDR=" + addr}, args...)
	pipe, err := cmd.StderrPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	w.daemon, w.stderr = cmd, newLog()
	go w.stderr.collect(bufio.NewScanner(pipe))
	got, err := w.stderr.waitFor(listening)
	if neg {
		if err == nil {
			ts.Fatalf("the daemon started")
		}
		_ = w.wait()
		fmt.Fprint(ts.Stdout(), w.stderr.String())
		return
	}
	ts.Check(err)
	ts.Setenv("HB_WRAP_URL", "http://"+got)
}

// freeport points HB_WRAP_URL at a port where nothing listens yet; freeport
// NAME sets NAME to its address.
func cmdFreePort(ts *testscript.TestScript, _ bool, args []string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	if len(args) > 0 {
		ts.Setenv(args[0], l.Addr().String())
	} else {
		ts.Setenv("HB_WRAP_URL", "http://"+l.Addr().String())
	}
	ts.Check(l.Close())
}

// fill FILE... replaces each ${NAME} in files by the variable's value.
func cmdFill(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: fill FILE...")
	}
	for _, name := range args {
		ts.Check(os.WriteFile(ts.MkAbs(name), []byte(expand(ts, ts.ReadFile(name))), 0o600))
	}
}

// waitfor REGEXP PROGRAM ARG... runs a program again and again until its
// stdout matches. It is for what is written a moment after the answer that
// caused it.
func cmdWaitFor(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: waitfor REGEXP PROGRAM ARG...")
	}
	re, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		ts.Check(ts.Exec(args[1], args[2:]...))
		if re.MatchString(ts.ReadFile("stdout")) {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("waitfor: no match for %q in 20 s", args[0])
		}
	}
}

// expand replaces ${NAME} by the value of a variable that is set; the $ of
// recipe paths stays.
func expand(ts *testscript.TestScript, text string) string {
	return os.Expand(text, func(name string) string {
		if v := ts.Getenv(name); v != "" {
			return v
		}
		return "$" + name
	})
}

// taken gives the daemon the port of the upstream, which has it already, by
// HB_WRAP_ADDR; taken url gives it to hb-rest by HB_WRAP_URL.
func cmdTaken(ts *testscript.TestScript, _ bool, args []string) {
	u := ts.Getenv("UPSTREAM")
	if len(args) > 0 {
		ts.Setenv("HB_WRAP_URL", u)
		return
	}
	ts.Setenv("HB_WRAP_ADDR", strings.TrimPrefix(u, "http://"))
}

// upstream FILE serves a script on loopback and sets UPSTREAM to its URL and
// UPSTREAM_HOST and UPSTREAM_PORT to its address.
func cmdUpstream(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: upstream FILE")
	}
	w := of(ts)
	s, err := upstream.Parse(ts.ReadFile(args[0]))
	ts.Check(err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	w.script, w.server = s, &http.Server{Handler: s.Handler()}
	go func() { _ = w.server.Serve(l) }()
	ts.Setenv("UPSTREAM", "http://"+l.Addr().String())
	ts.Setenv("UPSTREAM_HOST", l.Addr().String())
	ts.Setenv("UPSTREAM_PORT", strconv.Itoa(l.Addr().(*net.TCPAddr).Port))
}

// upstream-hit METHOD URI [BODY] says that such a request has arrived; with !,
// that none has. upstream-hit alone prints all requests.
func cmdUpstreamHit(ts *testscript.TestScript, neg bool, args []string) {
	hits := of(ts).script.Hits()
	if len(args) == 0 {
		for _, h := range hits {
			fmt.Fprintf(ts.Stdout(), "%s %s %s\n", h.Method, h.URI, h.Body)
		}
		return
	}
	found := false
	for _, h := range hits {
		found = found || h.Method == args[0] && (len(args) < 2 || h.URI == args[1]) && (len(args) < 3 || h.Body == args[2])
	}
	if found == neg {
		ts.Fatalf("upstream-hit %v: got %+v", args, hits)
	}
}

// mcp TOOL [JSON|@FILE] calls a tool through a real hb-rest, which lives until
// the script ends. ${NAME} in the arguments is replaced. stdout is the text,
// stderr the raw line; with !, the result must be an error, and ASKED is set to
// the id of the question when a person must allow the call. mcp list prints
// tools/list; mcp changed waits for the notice of a changed list; mcp restart
// starts a fresh hb-rest; mcp log ends it, because it writes its lines together a
// moment later, and prints its log file.
// The shim gets TOKEN_FILE, or HB_WRAP_HOME where a script has emptied that;
// where SHIM_ENV is set, only what that says, as K=V K=V.
func cmdMCP(ts *testscript.TestScript, neg bool, args []string) {
	w := of(ts)
	if (args[0] == "restart" || args[0] == "log") && w.mcp != nil {
		ts.Check(w.mcp.Close())
		w.mcp = nil
	}
	switch args[0] {
	case "restart":
		return
	case "log":
		fmt.Fprint(ts.Stdout(), ts.ReadFile(filepath.Join(ts.Getenv("HOME"), ".local", "state", "hbrestd", "hb-rest.log")))
		return
	}
	if w.mcp == nil {
		cmd := exec.Command(filepath.Join(w.dir, "hb-rest"))
		// What common clients pass on, and what the configuration sets.
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + ts.Getenv("HOME"), "HB_WRAP_TOKEN_FILE=" + ts.Getenv("TOKEN_FILE")}
		if ts.Getenv("TOKEN_FILE") == "" {
			cmd.Env[2] = "HB_WRAP_HOME=" + ts.Getenv("HB_WRAP_HOME")
		}
		if u := ts.Getenv("HB_WRAP_URL"); u != "" {
			cmd.Env = append(cmd.Env, "HB_WRAP_URL="+u)
		}
		if n := ts.Getenv("HB_WRAP_MAX_TOOLS"); n != "" {
			cmd.Env = append(cmd.Env, "HB_WRAP_MAX_TOOLS="+n)
		}
		if more := ts.Getenv("SHIM_ENV"); more != "" {
			cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + ts.Getenv("HOME")}, strings.Fields(more)...)
		}
		cmd.Stderr = os.Stderr
		c, err := stdio.Start(cmd, "2025-11-25")
		ts.Check(err)
		w.mcp = c
	}
	if args[0] == "changed" {
		mcpChanged(ts, w.mcp, neg)
		return
	}
	if args[0] == "list" {
		raw, err := w.mcp.Request("tools/list", json.RawMessage("{}"))
		ts.Check(err)
		fmt.Fprintf(ts.Stdout(), "%s", raw)
		return
	}
	in := "{}"
	if len(args) > 1 {
		in = args[1]
		if strings.HasPrefix(in, "@") {
			in = ts.ReadFile(in[1:])
		}
	}
	r, err := w.mcp.Call(args[0], json.RawMessage(expand(ts, in)))
	ts.Check(err)
	fmt.Fprint(ts.Stdout(), r.Text()+r.RPCError+"\n")
	fmt.Fprintf(ts.Stderr(), "%s", r.Raw)
	if m := asked.FindStringSubmatch(r.Text()); m != nil {
		ts.Setenv("ASKED", m[1])
	}
	if r.IsError != neg {
		ts.Fatalf("mcp %v: isError is %v:\n%s", args, r.IsError, r.Text()+r.RPCError)
	}
}

var asked = regexp.MustCompile("^APPROVAL_REQUIRED:(?s:.*)`hbrestd approval show ([0-9a-f]{32})`")

// mcpChanged waits until hb-rest tells of a changed tool list; with !, it has
// not told of one since the last time.
func mcpChanged(ts *testscript.TestScript, c *stdio.Client, neg bool) {
	for range 2000 {
		_, err := c.Request("ping", json.RawMessage("{}")) // what was told before its answer is noted
		ts.Check(err)
		select {
		case method := <-c.Notes:
			if neg || method != "notifications/tools/list_changed" {
				ts.Fatalf("hb-rest told %s", method)
			}
			return
		default:
		}
		if neg {
			return
		}
		time.Sleep(10 * time.Millisecond) // notices arrive at any time, and only requests read lines
	}
	ts.Fatalf("no notice of a changed tool list in 20 s")
}

// http METHOD PATH [Name:value ...] [@FILE] speaks to the bridge with the
// token; "Authorization:" alone leaves the token out, and {token} in a value is
// the token. stdout is the status and the body.
func cmdHTTP(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: http METHOD PATH [Name:value ...] [@FILE]")
	}
	body := ""
	token := strings.TrimSpace(ts.ReadFile(ts.Getenv("TOKEN_FILE")))
	header := http.Header{"Authorization": {"Bearer " + token}}
	for _, a := range args[2:] {
		if strings.HasPrefix(a, "@") {
			body = expand(ts, ts.ReadFile(a[1:]))
			header.Set("Content-Type", "application/json")
			continue
		}
		name, value, _ := strings.Cut(a, ":")
		if value == "" {
			header.Del(name)
			continue
		}
		header.Set(name, strings.ReplaceAll(value, "{token}", token))
	}
	req, err := http.NewRequest(args[0], ts.Getenv("HB_WRAP_URL")+args[1], strings.NewReader(body))
	ts.Check(err)
	req.Header = header
	if h := header.Get("Host"); h != "" {
		req.Host = h
		header.Del("Host")
	}
	resp, err := (&http.Client{Transport: &http.Transport{}}).Do(req)
	ts.Check(err)
	defer resp.Body.Close()
	var sb strings.Builder
	_, err = bufio.NewReader(resp.Body).WriteTo(&sb)
	ts.Check(err)
	fmt.Fprintf(ts.Stdout(), "%d\n%s\n", resp.StatusCode, sb.String())
}
