package e2e

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/hyperbolic-gateway/hb-rest/internal/soak"
)

// A shell is an agent with a shell under a person's account, who has one
// credential. Each method is an attack and returns what came of it.
type shell struct {
	*person
	t    *testing.T
	api  *httptest.Server // what the credential is bound to, under 127.0.0.1
	mu   sync.Mutex
	got  []string // what arrived at the attacker's host, which is the same server as localhost
	base []string // the environment of before
}

func newShell(t *testing.T) *shell {
	s := &shell{t: t, person: newPerson(t, withFileKeyring(t)...)}
	s.api = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		if strings.HasPrefix(r.Host, "localhost:") {
			s.mu.Lock()
			s.got = append(s.got, sent)
			s.mu.Unlock()
		}
		if r.URL.Path == "/reversed" {
			b := []byte(sent)
			slices.Reverse(b)
			sent = string(b)
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]string{"sent": sent})
	}))
	t.Cleanup(s.api.Close)
	s.base = s.env
	s.start()
	s.must(canary+"\n", "secret", "set", "key", "--stdin", "--host", "127.0.0.1")
	s.save(authed("mine", s.api.URL+"/", "key"))
	s.save(authed("reversed", s.api.URL+"/reversed", "key"))
	s.save(authed("thief", strings.Replace(s.api.URL, "127.0.0.1", "localhost", 1)+"/", "key"))
	return s
}

// stolen says whether the attacker's host is sent the credential, and takes the
// host away again.
func (s *shell) stolen() string {
	s.t.Helper()
	s.try("", "wrapper", "run", "thief")
	s.mu.Lock()
	got := s.got
	s.got = nil
	s.mu.Unlock()
	s.env = s.base
	s.try("", "secret", "unbind", "key", "--host", "localhost")
	if slices.Contains(got, canary) {
		return "works"
	}
	return "refused"
}

// speaks sends a request to the control socket, as curl can.
func (s *shell) speaks(method, path, body string) string {
	s.t.Helper()
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(s.home, "control.sock"))
	}}}
	req, err := http.NewRequestWithContext(s.t.Context(), method, "http://hbrestd"+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(b)
}

// leaked says whether the value is in text in any spelling.
func leaked(text []byte) string {
	for _, sp := range spellings(canary) {
		if bytes.Contains(text, []byte(sp.text)) {
			return "works"
		}
	}
	return "refused"
}

func (s *shell) asAnAgent() string {
	s.env = append(slices.Clone(s.base), "CLAUDECODE=1")
	for _, args := range [][]string{
		{"secret", "bind", "key", "--host", "localhost"},
		{"secret", "set", "other", "--stdin", "--host", "localhost"},
		{"secret", "rotate", "key", "--stdin"},
		{"secret", "rm", "key", "--yes"},
		{"approval", "policy", "off"},
	} {
		if out, code := s.try("value-0123456789\n", args...); code == 0 {
			s.t.Errorf("hbrestd %q works for an agent: %s", args, out)
		}
	}
	return s.stolen()
}

func (s *shell) withoutTheVariable() string {
	s.try("", "secret", "bind", "key", "--host", "localhost")
	return s.stolen()
}

func (s *shell) ownRequest() string {
	s.speaks("POST", "/control/secret/bind", `{"name":"key","add":["localhost"]}`)
	return s.stolen()
}

func (s *shell) askForTheValue() string {
	said := []byte(nil)
	for _, path := range []string{"/control/secret", "/control/secrets", "/control/secret?name=key", "/control/secret/get?name=key", "/control/settings", "/control/status"} {
		said = append(said, s.speaks("GET", path, "")...)
	}
	if !bytes.Contains(said, []byte(`"key"`)) {
		s.t.Errorf("the control socket knows no credential: %s", said)
	}
	return leaked(said)
}

func (s *shell) throughTheBridge() string {
	st, err := s.daemon.client.Status(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	token, err := os.ReadFile(filepath.Join(s.home, "wrap", "token"))
	if err != nil {
		s.t.Fatal(err)
	}
	for _, path := range []string{"/wrap/secrets", "/control/secret/bind", "/control/secret/put"} {
		req, err := http.NewRequestWithContext(s.t.Context(), "POST", "http://"+st.Address+path, strings.NewReader(`{"name":"key","add":["localhost"]}`))
		if err != nil {
			s.t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			s.t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusNotFound && resp.StatusCode != http.StatusMethodNotAllowed {
			s.t.Errorf("POST %s: %s", path, resp.Status)
		}
	}
	return s.stolen()
}

func (s *shell) readTheFiles() string {
	places := map[string][]byte{}
	s.walk(places, "")
	outcome := "refused"
	for name, b := range places {
		if leaked(b) != "refused" {
			outcome = "works"
			s.t.Logf("the value is in %s", name)
		}
	}
	if len(places) < 4 {
		s.t.Errorf("only %d files", len(places))
	}
	return outcome
}

func (s *shell) editTheHosts() string {
	s.stop()
	file := filepath.Join(s.home, "wrap", "store.db")
	whole, err := os.ReadFile(file)
	if err != nil {
		s.t.Fatal(err)
	}
	db, err := bbolt.Open(file, 0o600, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte("sealed"))
		was := b.Get([]byte("key"))
		now := bytes.Replace(was, []byte("127.0.0.1"), []byte("localhost"), 1)
		if bytes.Equal(was, now) {
			return fmt.Errorf("no host in the record: %q", was)
		}
		return b.Put([]byte("key"), now) // its checksum has no key: daemon.TestEditedBindings makes that right too
	})
	if err == nil {
		err = db.Close()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.start()
	outcome := s.stolen()
	s.stop()
	if err := os.WriteFile(file, whole, 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.start()
	return outcome
}

func (s *shell) olderStore() string {
	s.must("", "secret", "bind", "key", "--host", "localhost")
	s.stop()
	file := filepath.Join(s.home, "wrap", "store.db")
	older, err := os.ReadFile(file)
	if err != nil {
		s.t.Fatal(err)
	}
	s.start()
	s.must("", "secret", "unbind", "key", "--host", "localhost") // a person has second thoughts
	s.stop()
	if err := os.WriteFile(file, older, 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.start()
	return s.stolen()
}

func (s *shell) readTheMemory() string {
	r := newReach(s.t) // for root, with a daemon of another user's
	if in := r.into(r.daemon()); len(in) > 0 {
		s.t.Logf("it gets in by %q", in)
		return "works"
	}
	return "refused"
}

func (s *shell) printStacks() string {
	if err := s.daemon.cmd.Process.Signal(syscall.SIGQUIT); err != nil {
		s.t.Fatal(err)
	}
	_ = s.daemon.wait()
	said := s.daemon.stderr.String()
	if !strings.Contains(said, "goroutine ") {
		s.t.Errorf("no stacks: %s", said)
	}
	s.start()
	return leaked([]byte(said))
}

// key runs hbrestd-keyring as hbrestd does.
func (s *shell) key(passphrase string) string {
	s.t.Helper()
	cmd := exec.Command(filepath.Join(s.bin, "hbrestd-keyring"))
	ask, err := json.Marshal(map[string]any{"version": 1, "verb": "get", "backend": "file", "item": "master", "dir": filepath.Join(s.home, "wrap", "keyring"), "passphrase": []byte(passphrase)})
	if err != nil {
		s.t.Fatal(err)
	}
	cmd.Stdin = bytes.NewReader(ask)
	out, _ := cmd.Output()
	var a struct {
		OK    bool
		Value []byte
		Code  string
	}
	if err := json.Unmarshal(out, &a); err != nil {
		s.t.Fatalf("%v: %s", err, out)
	}
	switch {
	case a.OK && len(a.Value) == 32:
		return "works"
	case a.Code != "wrong_passphrase":
		s.t.Errorf("hbrestd-keyring: %s", out)
	}
	return "refused"
}

func (s *shell) guessThePassphrase() string { return s.key("correct horse battery stable") }

func (s *shell) readThePassphrase() string {
	for _, pair := range s.env {
		if dir, found := strings.CutPrefix(pair, "CREDENTIALS_DIRECTORY="); found {
			text, err := os.ReadFile(filepath.Join(dir, "hbrestd-passphrase"))
			if err != nil {
				return "refused"
			}
			return s.key(strings.TrimSpace(string(text)))
		}
	}
	return "refused"
}

func (s *shell) replaceAProgram() string {
	s.stop()
	dir, was := s.t.TempDir(), s.bin
	for _, name := range []string{"hbrestd", "hb-rest"} {
		if err := os.Link(filepath.Join(was, name), filepath.Join(dir, name)); err != nil {
			copyFile(s.t, filepath.Join(was, name), filepath.Join(dir, name))
		}
	}
	loot := filepath.Join(dir, "loot")
	if err := os.WriteFile(filepath.Join(dir, "hbrestd-keyring"), []byte("#!/bin/sh\n/bin/cat >'"+loot+"'\nexit 1\n"), 0o755); err != nil {
		s.t.Fatal(err)
	}
	s.bin = dir
	s.start()
	s.try("", "wrapper", "run", "mine")
	s.stop()
	s.bin = was
	s.start()
	text, _ := os.ReadFile(loot)
	if bytes.Contains(text, []byte(base64.StdEncoding.EncodeToString([]byte(canaryPassphrase)))) {
		return "works"
	}
	return "refused"
}

func (s *shell) ownProxy() string {
	s.stop()
	hits := 0
	proxy := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { hits++ }))
	defer proxy.Close()
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"} {
		s.env = append(slices.Clone(s.env), name+"="+proxy.URL)
	}
	s.start()
	s.must("", "wrapper", "run", "mine")
	s.stop()
	s.env = s.base
	s.start()
	if hits > 0 {
		return "works"
	}
	return "refused"
}

func (s *shell) echo() string {
	out := s.must("", "wrapper", "run", "mine", "--json")
	if !strings.Contains(out, "redacted") {
		s.t.Errorf("nothing was sent back: %s", out)
	}
	return leaked([]byte(out))
}

func (s *shell) reversedEcho() string {
	b := []byte(canary)
	slices.Reverse(b)
	plain := func(text string) string { return strings.ReplaceAll(text, `\u0026`, "&") } // an escape that JSON leaves free
	j, _ := json.Marshal(string(b))
	if strings.Contains(plain(s.must("", "wrapper", "run", "reversed", "--json")), plain(string(j[1:len(j)-1]))) {
		return "works"
	}
	return "refused"
}

func (s *shell) removeTheTrail() string {
	head := strings.TrimSpace(s.must("", "audit", "head"))
	s.stop()
	if err := os.Remove(filepath.Join(s.home, "wrap", "audit.db")); err != nil {
		s.t.Fatal(err)
	}
	s.start()
	if out, code := s.try("", "audit", "verify", "--head", head); code == 0 {
		s.t.Logf("a removed trail verifies: %s", out)
		return "works"
	}
	return "noticed"
}

// What an agent with a shell can do is in docs/security.md, and is so: each
// attack of the table there is made on a daemon with a credential, and ends as
// the table says.
func TestShellAttacks(t *testing.T) {
	s := newShell(t)
	attacks := []struct {
		name string
		try  func() string
	}{
		{"`hbrestd secret set`, `bind`, `rotate`, `rm` and `approval policy` with a variable of a coding agent", s.asAnAgent},
		{"The same without the variable", s.withoutTheVariable},
		{"A request of its own to the control socket that binds another host", s.ownRequest},
		{"Asking the control socket for the value", s.askForTheValue},
		{"Reading the bridge's token and changing a credential through the bridge", s.throughTheBridge},
		{"Reading every file of the home for the value", s.readTheFiles},
		{"Editing the hosts of a credential in `store.db`", s.editTheHosts},
		{"Putting an older `store.db` back, with a host that was taken away since", s.olderStore},
		{"Memory, environment, open files and core of the daemon, by 18 ways (Linux)", s.readTheMemory},
		{"SIGQUIT, for a value in the stacks that are printed", s.printStacks},
		{"Running `hbrestd-keyring` for the key of the encrypted file, with a guessed passphrase", s.guessThePassphrase},
		{"The same with the passphrase, where its file can be read", s.readThePassphrase},
		{"Another `hbrestd-keyring` in the place of ours, where programs can be replaced", s.replaceAProgram},
		{"A daemon started with a proxy in its environment", s.ownProxy},
		{"A wrapper on a bound host that sends the value back", s.echo},
		{"A wrapper on a bound host that sends it back reversed", s.reversedEcho},
		{"Removing the audit trail, with a head that was noted elsewhere", s.removeTheTrail},
	}
	page, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(page), "| With a shell | Outcome |\n| --- | --- |\n")
	if !found {
		t.Fatal("docs/security.md has no table of what an agent with a shell can do")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	rows := strings.Split(strings.TrimSpace(table), "\n")
	if len(rows) != len(attacks) {
		t.Errorf("the page has %d attacks, the test %d", len(rows), len(attacks))
	}
	count, same := map[string]int{}, 0
	for i, a := range attacks {
		outcome := a.try()
		count[outcome]++
		row := fmt.Sprintf("| %s | %s |", a.name, outcome)
		if i >= len(rows) || rows[i] != row {
			t.Errorf("what was seen is not what the page says:\n%s", row)
			continue
		}
		same++
	}
	s.stop()
	soak.Measured(t, "%d attacks with a shell: %d refused, %d noticed, %d work; %d as docs/security.md says", len(attacks), count["refused"], count["noticed"], count["works"], same)
}
