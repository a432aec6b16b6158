//go:build unix

package e2e

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf16"

	"go.etcd.io/bbolt"

	"github.com/hyperbolic-gateway/hb-rest/internal/client"
	"github.com/hyperbolic-gateway/hb-rest/internal/e2e/stdio"
	"github.com/hyperbolic-gateway/hb-rest/internal/soak"
)

// keyringProgram builds the third program, in a folder of its own: the other
// tests of this package do without a keyring.
var keyringProgram = sync.OnceValues(func() (string, error) {
	dir, err := build()
	if err != nil {
		return "", err
	}
	dir = filepath.Join(dir, "three")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", err
	}
	cmd := exec.Command("go", "build", "-o", dir+string(filepath.Separator), "./cmd/hbrestd-keyring")
	cmd.Dir = "../.."
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	for _, name := range []string{"hbrestd", "hb-rest"} {
		if err := os.Link(filepath.Join(binDir, name), filepath.Join(dir, name)); err != nil {
			return "", err
		}
	}
	return dir, nil
})

// A person has all three programs, a home, and whatever environment a test says.
type person struct {
	t        *testing.T
	bin      string
	home     string
	env      []string
	daemon   *process
	said     bytes.Buffer // everything that a command has written
	commands int
}

func newPerson(t *testing.T, env ...string) *person {
	t.Helper()
	bin, err := keyringProgram()
	if err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(t.TempDir(), "home")
	return &person{t: t, bin: bin, home: home, env: append([]string{"HB_WRAP_HOME=" + home, "HB_WRAP_ADDR=127.0.0.1:0", "HB_WRAP_ALLOW_PRIVATE=1"}, env...)}
}

// start starts the daemon (again), talkative.
func (p *person) start() {
	p.t.Helper()
	d := &process{cmd: exec.Command(filepath.Join(p.bin, "hbrestd"), "run", "-v"), stderr: newLog()}
	d.cmd.Env = p.env
	pipe, err := d.cmd.StderrPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	d.cmd.Stdout = os.Stderr // it prints nothing there
	if err := d.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	go d.stderr.collect(bufio.NewScanner(pipe))
	p.t.Cleanup(d.kill)
	addr, err := d.stderr.waitFor(listening)
	if err != nil {
		p.t.Fatal(err)
	}
	d.client = client.New(client.Options{
		URL: &url.URL{Scheme: "http", Host: addr}, TokenFiles: []string{filepath.Join(p.home, "wrap", "token")}, Started: time.Unix(0, 0),
	})
	p.daemon = d
}

// stop stops the daemon in order.
func (p *person) stop() {
	p.t.Helper()
	if _, code := p.try("", "daemonless"); code == 0 { // no such command: it costs nothing and is one more place
		p.t.Error("there is a command daemonless")
	}
	if err := p.daemon.cmd.Process.Signal(os.Interrupt); err != nil {
		p.t.Fatal(err)
	}
	if err := p.daemon.wait(); err != nil {
		p.t.Errorf("the daemon ended with %v\n%s", err, p.daemon.stderr)
	}
}

// try runs a command of hbrestd with this standard input and returns what it
// wrote, and its exit code.
func (p *person) try(stdin string, args ...string) (string, int) {
	p.t.Helper()
	cmd := exec.Command(filepath.Join(p.bin, "hbrestd"), args...)
	cmd.Env, cmd.Stdin = p.env, strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	p.said.Write(out)
	p.commands++
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		p.t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// must is try for what works.
func (p *person) must(stdin string, args ...string) string {
	p.t.Helper()
	out, code := p.try(stdin, args...)
	if code != 0 {
		p.t.Fatalf("hbrestd %s: exit %d\n%s", strings.Join(args, " "), code, out)
	}
	return out
}

// save saves a wrapper document.
func (p *person) save(doc string) {
	p.t.Helper()
	p.must(doc, "wrapper", "apply", "-")
}

func authed(id, url, auth string) string {
	return fmt.Sprintf(`{"schemaVersion":1,"id":%q,"name":%q,"request":{"method":"GET","url":%q,"auth":%q}}`, id, id, url, auth)
}

// withFileKeyring is the environment of a daemon whose key is in an encrypted file.
func withFileKeyring(t *testing.T) []string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "hbrestd-passphrase"), []byte(canaryPassphrase+"\n"), 0o400); err != nil {
		t.Fatal(err)
	}
	return []string{"HB_WRAP_KEYRING=file", "CREDENTIALS_DIRECTORY=" + dir}
}

// A spelling is a form in which a value may turn up.
type spelling struct{ name, text string }

// spellings are the forms that are searched for: raw, Base64 at its three
// alignments in both alphabets, hex in both cases, percent, JSON, and each form
// in which the API of the canary test sends a value back, as it is and in JSON.
func spellings(v string) []spelling {
	out := []spelling{{"raw", v}, {"hex", hex.EncodeToString([]byte(v))}, {"HEX", strings.ToUpper(hex.EncodeToString([]byte(v)))}, {"query", url.QueryEscape(v)}, {"path", url.PathEscape(v)}}
	j, _ := json.Marshal(v)
	out = append(out, spelling{"JSON", string(j[1 : len(j)-1])})
	for shift := range 3 {
		padded := append(make([]byte, shift), v...)
		from, to := (shift*8+5)/6, len(padded)*8/6
		out = append(out, spelling{"base64+" + strconv.Itoa(shift), base64.StdEncoding.EncodeToString(padded)[from:to]},
			spelling{"base64url+" + strconv.Itoa(shift), base64.URLEncoding.EncodeToString(padded)[from:to]})
	}
	for n, echo := range echoes {
		made := echo(v)
		j, _ := json.Marshal(made)
		out = append(out, spelling{"echo " + strconv.Itoa(n), made}, spelling{"echo in JSON " + strconv.Itoa(n), string(j[1 : len(j)-1])})
	}
	return out
}

// echoes are the 16 encodings in which the API of the canary test sends back
// what it was sent.
var echoes = []func(v string) string{
	func(v string) string { return v },
	func(v string) string { return base64.StdEncoding.EncodeToString([]byte(v)) },
	func(v string) string { return base64.StdEncoding.EncodeToString([]byte("x" + v)) },
	func(v string) string { return base64.StdEncoding.EncodeToString([]byte("xx" + v)) },
	func(v string) string { return base64.RawURLEncoding.EncodeToString([]byte(v)) },
	func(v string) string { return hex.EncodeToString([]byte(v)) },
	func(v string) string { return strings.ToUpper(hex.EncodeToString([]byte(v))) },
	url.QueryEscape,
	url.PathEscape,
	func(v string) string { return url.QueryEscape(url.QueryEscape(v)) },
	func(v string) string { b, _ := json.Marshal([]string{v}); return string(b) },
	func(v string) string {
		var b strings.Builder
		for _, u := range utf16.Encode([]rune(v)) {
			fmt.Fprintf(&b, `\u%04x`, u)
		}
		return b.String()
	},
	html.EscapeString,
	func(v string) string { return strings.Join(strings.Split(v, ""), " ") }, // spread out by spaces
	func(v string) string {
		var b strings.Builder
		for _, r := range v {
			fmt.Fprintf(&b, "&#%d;", r)
		}
		return b.String()
	},
	func(v string) string { // two on top of each other
		return base64.StdEncoding.EncodeToString([]byte(hex.EncodeToString([]byte(v))))
	},
}

// An echo is an API that sends back the credential it was sent, in every place.
func newEcho(t *testing.T) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.URL.Query().Get("n"))
		_, got, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		if pair, err := base64.StdEncoding.DecodeString(got); err == nil && bytes.Contains(pair, []byte(":")) {
			got += " | " + string(pair)
		}
		text := echoes[n%len(echoes)](got)
		quoted, _ := json.Marshal(text)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Echo", url.PathEscape(text))
		switch r.URL.Path {
		case "/token":
			_, _ = io.WriteString(w, `{"access_token":"`+canaryToken+`","expires_in":3600}`)
		case "/badtoken":
			body, _ := io.ReadAll(r.Body)
			w.WriteHeader(400)
			q, _ := json.Marshal(string(body))
			fmt.Fprintf(w, `{"error":%s,"error_description":%s}`, q, q)
		case "/400", "/401", "/403", "/404", "/429", "/500":
			status, _ := strconv.Atoi(r.URL.Path[1:])
			if status == http.StatusTooManyRequests {
				w.Header().Set("Retry-After", "70") // longer than any call waits
			}
			w.WriteHeader(status)
			fmt.Fprintf(w, `{"message":%s,"errors":[{"field":%s,"message":%s}]}`, quoted, quoted, quoted)
		case "/redirect":
			http.Redirect(w, r, "/landed/"+url.PathEscape(text)+"?n="+strconv.Itoa(n)+"&e="+url.QueryEscape(text), http.StatusFound)
		case "/away":
			http.Redirect(w, r, strings.Replace("http://"+r.Host, "127.0.0.1", "localhost", 1)+"/landed?e="+url.QueryEscape(text), http.StatusFound)
		case "/html":
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprintf(w, "<html><title>%s</title>", text)
		case "/next":
			fmt.Fprintf(w, `{"items":[{"echo":%s}],"next":%s}`, quoted, strconv.Quote("/items?n="+strconv.Itoa(n)+"&e="+url.QueryEscape(text)))
		default:
			fmt.Fprintf(w, `{"items":[{"echo":%s,%s:1}]}`, quoted, quoted)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

const (
	canary           = `canary/Zx7+Qm"9\Lk2%Vw4&Tp6~Rs8`
	canaryToken      = "minted/Hj5+Nb3~Gf1-Yt0_Ce2"
	canaryUser       = "canary-user-Ow3Xv5"
	canaryPassphrase = "correct horse battery staple" // of the encrypted file
	canaryPassword   = `pass:Di7/Ua4+Eb6"Kg`
)

// The canary: known values are set and everything is exercised; then all bytes
// of everything that was written or said are searched, in 16 encodings: what
// agents and people are told, the log, the trail, every file of the home (copies
// included), standard error, what the system shows of the process. A core is not
// among them: none is ever written (TestMemoryIsOutOfReach).
func TestCanary(t *testing.T) {
	p := newPerson(t, withFileKeyring(t)...)
	up := newEcho(t)
	p.start()
	values := []string{canary, canaryToken, canaryUser, canaryPassword, canaryUser + ":" + canaryPassword, canaryPassphrase}
	if w := p.must(canary+"\n", "secret", "set", "key", "--stdin", "--host", "127.0.0.1"); !strings.Contains(w, "pipe") {
		t.Errorf("no warning about the pipe: %s", w)
	}
	p.must(canaryUser+"\n"+canaryPassword+"\n", "secret", "set", "pair", "--stdin", "--basic", "--host", "127.0.0.1", "--json")
	p.must(canary+"\n", "secret", "set", "oauth", "--stdin", "--oauth2", "--token-url", up.URL+"/token", "--client-id", "c1", "--auth-style", "body", "--host", "127.0.0.1", "--json")
	p.must(canary+"\n", "secret", "set", "broken", "--stdin", "--oauth2", "--token-url", up.URL+"/badtoken", "--client-id", "c1", "--auth-style", "basic", "--host", "127.0.0.1", "--json")
	p.try(canary+"\nand a second line\n", "secret", "set", "two-lines", "--stdin", "--host", "127.0.0.1")
	p.try(canary+"\n", "secret", "set", "bad name", "--stdin", "--host", "127.0.0.1")
	p.try(canary+"\n", "secret", "set", "wild", "--stdin", "--host", "*.example.com")
	p.try(" "+canary+"\n", "secret", "set", "space", "--stdin", "--host", "127.0.0.1")
	p.try(canary+"\n", "secret", "set", "key", "--stdin", "--header", "Host", "--host", "127.0.0.1")

	// What an agent says and hears, byte for byte.
	raw := t.TempDir()
	in, out, errs := filepath.Join(raw, "in"), filepath.Join(raw, "out"), filepath.Join(raw, "err")
	st, err := p.daemon.client.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/bin/sh", "-c", `tee "$1" | "$0" 2>"$3" | tee "$2"`, filepath.Join(p.bin, "hb-rest"), in, out, errs)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HB_WRAP_HOME=" + p.home, "HB_WRAP_URL=http://" + st.Address}
	agent, err := stdio.Start(cmd, "2025-11-25")
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	call := func(tool, args string) string {
		t.Helper()
		r, err := agent.Call(tool, json.RawMessage(args))
		if err != nil {
			t.Fatal(err)
		}
		calls++
		return r.Text()
	}
	paths := []string{"/items", "/400", "/401", "/403", "/404", "/429", "/500", "/redirect", "/away", "/html", "/next"}
	sent := 0
	for _, auth := range []string{"key", "pair", "oauth", "broken"} {
		for place, path := range paths {
			id := auth + strings.ReplaceAll(path, "/", ".")
			doc := fmt.Sprintf(`{"schemaVersion":1,"id":%q,"name":%q,"exposeAsTool":true,"request":{"method":"GET","url":%q,"query":{"n":"{{n}}"},"auth":%q},
				"inputSchema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]},
				"response":{"schemaVersion":1,"select":"$.items","mode":"table","fields":{"Echo":"echo"},"record":{"echo":"echo"},"pagination":{"type":"link","nextUrl":"next","maxPages":2},"index":"cortex"}}`,
				id, id, up.URL+path, auth)
			call("wrap_create", `{"wrapper":`+doc+`}`)
			call("wrap_test", `{"id":"`+id+`","args":{"n":0}}`)
			for n := range echoes {
				if !soak.Long() && path != "/items" && (n+place)%8 != 0 {
					continue // in a short run each place has two of the encodings
				}
				text := call("wrap_run", fmt.Sprintf(`{"id":%q,"args":{"n":%d},"format":%q}`, id, n, []string{"markdown", "json", "both"}[n%3]))
				sent++
				if n < 13 && auth != "broken" && path == "/items" && !strings.Contains(text, "redacted") {
					t.Errorf("%s echoes nothing: %s", id, text)
				}
				if auth == "broken" && !strings.HasPrefix(text, "OAUTH_TOKEN_FAILED") || auth != "broken" && path == "/401" && !strings.HasPrefix(text, "AUTH_REQUIRED") ||
					auth != "broken" && path == "/items" && strings.Contains(text, "SECRET_") {
					t.Errorf("%s: %s", id, text)
				}
			}
			call("wrap_test", `{"id":"`+id+`","args":{"n":3},"dryRun":false}`)
		}
	}
	for _, tool := range []string{"wrap_list", "wrap_secret_list", "wrap_reload"} {
		call(tool, `{}`)
	}
	call("wrap_get", `{"id":"key.items"}`)
	call("wrap_run", `{"id":"key.items"}`)
	call("wrap_derive", fmt.Sprintf(`{"url":%q}`, up.URL+"/items"))
	if found := call("recall_memory", `{"query":"redacted","limit":50}`); !strings.Contains(found, "**redacted**") {
		t.Errorf("the index has nothing that was scrubbed: %.500s", found)
	}
	call("recall_memory", `{"query":"canary minted key","limit":50,"format":"json"}`)
	if _, err := agent.Request("tools/list", json.RawMessage(`{}`)); err != nil {
		t.Error(err)
	}

	// What a person says and hears.
	for _, args := range [][]string{
		{"status"},
		{"status", "--json"},
		{"paths"},
		{"paths", "--json"},
		{"config"},
		{"config", "list", "--json"},
		{"allow", "list", "--json"},
		{"wrapper", "list"},
		{"wrapper", "list", "--json"},
		{"wrapper", "show", "key.items"},
		{"wrapper", "export"},
		{"wrapper", "test", "key.items", "--arg", "n=1"},
		{"wrapper", "test", "key.items", "--arg", "n=1", "--json"},
		{"wrapper", "run", "key.items", "--arg", "n=1"},
		{"wrapper", "run", "key.400", "--arg", "n=4", "--json"},
		{"wrapper", "run", "oauth.401", "--arg", "n=7", "--json"},
		{"wrapper", "run", "broken.items", "--arg", "n=1", "--json"},
		{"secret", "list"},
		{"secret", "list", "--json"},
		{"secret", "show", "key"},
		{"secret", "show", "oauth", "--json"},
		{"secret", "show", "nowhere"},
		{"secret", "bind", "key", "--host", "localhost", "--json"},
		{"secret", "unbind", "key", "--host", "localhost"},
		{"secret", "test", "key", "--wrapper", "key.items"},
		{"secret", "test", "key", "--wrapper", "key.items", "--json"},
		{"secret", "test", "key", "--wrapper", "pair.items"},
		{"audit", "-n", "1000"},
		{"audit", "-n", "1000", "--json"},
		{"audit", "verify"},
		{"audit", "head"},
		{"version"},
		{"cortex", "search", "redacted", "-n", "50"},
		{"cortex", "search", "canary", "--json"},
		{"cortex", "stats", "--json"},
	} {
		p.try("", args...)
	}
	p.must(canary+"2\n", "secret", "rotate", "key", "--stdin", "--json")
	p.try(canary+"\n", "secret", "rotate", "nowhere", "--stdin")
	// What is on disk while the daemon holds the key, and what the system shows of it.
	places := map[string][]byte{}
	for _, f := range []string{"cmdline", "environ", "status", "maps"} {
		if b, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", p.daemon.cmd.Process.Pid, f)); err == nil {
			places["/proc/"+f] = b
		}
	}
	for _, path := range []string{"/wrap/status", "/wrap/manifest", "/wrap/secrets", "/wrap/audit?limit=1000", "/wrap/wrapper?id=key.items", "/wrap/recall?query=redacted&limit=50"} {
		places["bridge "+path] = p.get(path)
	}
	p.walk(places, "running ")
	p.must("", "secret", "rm", "pair", "--yes")
	if err := agent.Close(); err != nil {
		t.Error(err)
	}
	p.stop()
	p.walk(places, "stopped ")
	places["daemon's stderr"] = []byte(p.daemon.stderr.String())
	places["commands' output"] = p.said.Bytes()
	for name, path := range map[string]string{"MCP in": in, "MCP out": out, "hb-rest's stderr": errs} {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Error(err)
		}
		places[name] = b
	}
	if len(places["daemon's stderr"]) < 1000 || len(places["MCP out"]) < 10000 || len(places["commands' output"]) < 10000 {
		t.Error("there is less to search than there should be")
	}
	for _, want := range []string{"store.db", "audit.db", "cortex.db", "hb-rest.log", "token"} {
		if !slices.ContainsFunc(slices.Collect(keys(places)), func(n string) bool { return strings.HasSuffix(n, want) }) {
			t.Errorf("%s was not searched", want)
		}
	}
	hits, size, cases := 0, 0, 0
	for name, b := range places {
		size += len(b)
		for _, v := range values {
			for _, sp := range spellings(v) {
				cases++
				if at := bytes.Index(b, []byte(sp.text)); at >= 0 {
					hits++
					t.Errorf("%s has %q as %s at byte %d: %q", name, v, sp.name, at, b[max(0, at-200):min(len(b), at+200)])
				}
			}
		}
	}
	// The search itself finds what is there.
	for _, v := range values {
		for _, sp := range spellings(v) {
			planted := "before " + sp.text + " after"
			if !slices.ContainsFunc(spellings(v), func(o spelling) bool { return strings.Contains(planted, o.text) }) {
				t.Errorf("the search misses %s of %q", sp.name, v)
			}
		}
	}
	soak.Measured(t, "%d runs in %d encodings, %d tool calls, %d commands; %d places of %d bytes searched for %d spellings of %d values: %d cases, %d hits",
		sent, len(echoes), calls, p.commands, len(places), size, len(spellings(canary)), len(values), cases, hits)
}

func keys(m map[string][]byte) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// get reads a route of the bridge as it is.
func (p *person) get(path string) []byte {
	p.t.Helper()
	st, err := p.daemon.client.Status(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	token, err := os.ReadFile(filepath.Join(p.home, "wrap", "token"))
	if err != nil {
		p.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, "http://"+st.Address+path, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		p.t.Errorf("GET %s: %d %v", path, resp.StatusCode, err)
	}
	return b
}

// walk reads every file below the home.
func (p *person) walk(places map[string][]byte, when string) {
	p.t.Helper()
	err := filepath.WalkDir(p.home, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		places[when+path] = b
		return err
	})
	if err != nil {
		p.t.Error(err)
	}
}

// silentBus accepts connections and never says a word.
func silentBus(t *testing.T) (path string, connections func() int) {
	t.Helper()
	dir, err := os.MkdirTemp("", "bus") // a socket's path has 108 bytes at most
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(dir, "bus"))
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var open []net.Conn
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open = append(open, c)
			mu.Unlock()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-ended
		for _, c := range open {
			_ = c.Close()
		}
		_ = os.RemoveAll(dir)
	})
	return filepath.Join(dir, "bus"), func() int { mu.Lock(); defer mu.Unlock(); return len(open) }
}

// A bus that accepts and never answers holds up nobody but those who need a
// credential, and those for as long as is said.
func TestSilentBus(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("keyrings of other systems are not on a session bus")
	}
	bus, connections := silentBus(t)
	up := newEcho(t)
	p := newPerson(t, withFileKeyring(t)...)
	p.start() // first a credential, which needs a key
	p.must("value-0123456789\n", "secret", "set", "key", "--stdin", "--host", "127.0.0.1")
	p.save(authed("w", up.URL+"/items", "key"))
	p.save(strings.Replace(authed("plain", up.URL+"/items", ""), `,"auth":""`, "", 1))
	p.stop()
	before := p.sealed()
	p.env = append(p.env[:3:3], "DBUS_SESSION_BUS_ADDRESS=unix:path="+bus, "XDG_RUNTIME_DIR="+filepath.Dir(bus), "HOME="+t.TempDir())

	// The bounds are for a machine that has time. Other tests take it away, so
	// that the best of a few tries counts; what the bus holds up is held up in
	// each of them.
	best := func(what string, limit time.Duration, try func() time.Duration) {
		t.Helper()
		took := try()
		for range 4 {
			if took <= limit {
				break
			}
			took = min(took, try())
		}
		if took > limit {
			t.Errorf("%s took %v, want at most %v", what, took, limit)
		}
		t.Logf("%s: %v", what, took.Round(time.Millisecond))
	}
	best("hbrestd version", 100*time.Millisecond, func() time.Duration {
		start := time.Now()
		p.must("", "version")
		return time.Since(start)
	})
	best("a start and /wrap/status", time.Second, func() time.Duration {
		if p.daemon.cmd.ProcessState == nil {
			p.stop()
		}
		start := time.Now()
		p.start()
		p.get("/wrap/status")
		return time.Since(start)
	})
	if n := connections(); n != 0 {
		t.Errorf("%d connections to the bus before anybody needs a credential", n)
	}
	var out string
	var slowest time.Duration
	others, tries := 0, 0
	best("a credentialed call", 5500*time.Millisecond, func() time.Duration {
		if tries++; tries > 1 { // a failure is remembered for a while
			p.stop()
			p.start()
		}
		start := time.Now()
		done := make(chan string)
		go func() {
			out, _ := p.try2("wrapper", "run", "w")
			done <- out
		}()
		for {
			at := time.Now()
			p.get("/wrap/status")
			p.get("/wrap/secrets")
			slowest = max(slowest, time.Since(at))
			others++
			select {
			case out = <-done:
				return time.Since(start)
			case <-time.After(50 * time.Millisecond):
			}
		}
	})
	if !strings.Contains(out, "credentials cannot be used now") || !strings.Contains(out, "did not answer within 5 seconds") || !strings.Contains(out, "hbrestd config set keyring file") || strings.Contains(out, "person") {
		t.Errorf("it said %s", out)
	}
	if slowest > time.Second {
		t.Errorf("meanwhile the slowest of %d other calls took %v", others, slowest)
	}
	if n := connections(); n != tries {
		t.Errorf("%d connections to the bus in %d tries", n, tries)
	}
	if out := p.must("", "wrapper", "run", "plain"); !strings.Contains(out, "plain") {
		t.Error(out)
	}
	t.Logf("%d other calls meanwhile, the slowest %v", others, slowest.Round(time.Millisecond))
	p.stop()
	if p.sealed() != before {
		t.Error("the records changed")
	}
}

// try2 is try for another goroutine.
func (p *person) try2(args ...string) (string, error) {
	cmd := exec.Command(filepath.Join(p.bin, "hbrestd"), args...)
	cmd.Env = p.env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// The daemon itself never speaks to a bus, whatever is asked of it: the program
// that does is another, and lives for one question.
func TestDaemonConnectsToNoBus(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("needs strace")
	}
	bus, connections := silentBus(t)
	up := newEcho(t)
	p := newPerson(t, withFileKeyring(t)...)
	p.start()
	p.must("value-0123456789\n", "secret", "set", "key", "--stdin", "--host", "127.0.0.1")
	p.save(authed("w", up.URL+"/items", "key"))
	p.stop()
	p.env = append(p.env[:3:3], "DBUS_SESSION_BUS_ADDRESS=unix:path="+bus)
	trace := filepath.Join(t.TempDir(), "trace")
	d := &process{cmd: exec.Command(strace, "-f", "-qq", "-e", "trace=connect,execve", "-o", trace, filepath.Join(p.bin, "hbrestd"), "run"), stderr: newLog()}
	d.cmd.Env = p.env
	pipe, err := d.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go d.stderr.collect(bufio.NewScanner(pipe))
	t.Cleanup(d.kill)
	if _, err := d.stderr.waitFor(listening); err != nil {
		if strings.Contains(d.stderr.String(), "ptrace") {
			t.Skip("this machine does not let strace trace")
		}
		t.Fatal(err)
	}
	p.must("", "status")
	p.must("", "wrapper", "list")
	if got, _ := os.ReadFile(trace); bytes.Contains(got, []byte(bus)) || connections() != 0 {
		t.Errorf("without a credential there are %d connections to the bus:\n%s", connections(), got)
	}
	p.try("", "wrapper", "run", "w") // five seconds
	if err := p.daemonStop(); err != nil {
		t.Error(err)
	}
	_ = d.wait()
	got, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	helpers := map[string]bool{} // processes that became the keyring's program, with their threads' own lines
	inHelper, outside := 0, 0
	last := ""
	for _, line := range strings.Split(string(got), "\n") {
		pid, _, _ := strings.Cut(line, " ")
		if strings.Contains(line, "execve(") && strings.Contains(line, "hbrestd-keyring") {
			helpers[pid], last = true, pid
		}
		if strings.Contains(line, "connect(") && strings.Contains(line, bus) {
			// A thread of the helper has a number of its own, above the helper's.
			a, _ := strconv.Atoi(pid)
			b, _ := strconv.Atoi(last)
			if helpers[pid] || last != "" && a > b {
				inHelper++
			} else {
				outside++
				t.Errorf("the daemon connects to the bus: %s", line)
			}
		}
	}
	if len(helpers) == 0 || inHelper == 0 {
		t.Errorf("the keyring's program was not seen at work:\n%s", got)
	}
	t.Logf("%d connects to the bus by %d runs of hbrestd-keyring, %d by hbrestd", inHelper, len(helpers), outside)
}

// daemonStop asks the daemon to stop where its process id is not known.
func (p *person) daemonStop() error {
	for _, line := range strings.Split(p.must("", "status", "--json"), "\n") {
		if _, after, found := strings.Cut(line, `"pid":`); found {
			pid, err := strconv.Atoi(strings.Trim(after, " ,}"))
			if err != nil {
				return err
			}
			proc, err := os.FindProcess(pid)
			if err != nil {
				return err
			}
			return proc.Signal(os.Interrupt)
		}
	}
	return errors.New("status names no process id")
}

// sealed is every record of a credential in a stopped store.
func (p *person) sealed() string {
	p.t.Helper()
	db, err := bbolt.Open(filepath.Join(p.home, "wrap", "store.db"), 0o600, &bbolt.Options{Timeout: time.Second})
	if err != nil {
		p.t.Fatal(err)
	}
	defer db.Close()
	var out strings.Builder
	if err := db.View(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("sealed")).ForEach(func(k, v []byte) error { fmt.Fprintf(&out, "%q %x\n", k, v); return nil })
	}); err != nil {
		p.t.Fatal(err)
	}
	return out.String()
}
