//go:build !windows

package secrets_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/secrets"
)

// program builds the real hbrestd-keyring once.
var program = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "hbrestd-keyring-test-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "hbrestd-keyring")
	cmd := exec.Command("go", "build", "-o", path, "../../cmd/hbrestd-keyring")
	cmd.Stderr = os.Stderr
	return path, cmd.Run()
})

func TestMain(m *testing.M) {
	code := m.Run()
	if path, err := program(); err == nil && code == 0 {
		_ = os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

func realProgram(t *testing.T) string {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// script is a keyring program that does what sh is told.
func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "hbrestd-keyring")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// silentBus is a socket that accepts and never answers.
func silentBus(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "bus") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "bus")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	var conns []net.Conn
	group.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns = append(conns, c)
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		group.Wait()
		for _, c := range conns {
			_ = c.Close()
		}
		_ = os.RemoveAll(dir)
	})
	return path
}

func status(err error) secrets.Status {
	var k *secrets.KeyError
	if errors.As(err, &k) && k.Reason != "" && k.Fix != "" {
		return k.Status
	}
	return ""
}

func TestFileKeyring(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	passphrase := "correct horse battery"
	k := &secrets.Keyring{
		Program: realProgram(t), Backend: secrets.EncryptedFile, Item: "master-key", Dir: dir,
		Env:        []string{"DBUS_SESSION_BUS_ADDRESS=unix:path=" + silentBus(t)}, // must not matter
		Passphrase: func(context.Context) ([]byte, error) { return []byte(passphrase), nil },
	}
	ctx := t.Context()
	if err := k.Probe(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Key(ctx, false); !errors.Is(err, secrets.ErrNoKey) {
		t.Fatal(err)
	}
	key, err := k.Key(ctx, true)
	if err != nil || len(key) != secrets.KeySize {
		t.Fatal(key, err)
	}
	for _, create := range []bool{true, false} {
		if again, err := k.Key(ctx, create); err != nil || !bytes.Equal(again, key) {
			t.Fatal(again, err)
		}
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 1 || files[0].Name() != "master-key" {
		t.Errorf("%v %v", files, err)
	}
	if info, err := files[0].Info(); err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info.Mode(), err)
	}
	passphrase = "another horse battery"
	if _, err := k.Key(ctx, true); status(err) != secrets.Locked {
		t.Error("wrong passphrase:", err)
	}
	passphrase = "elevenchars"
	if _, err := k.Key(ctx, true); status(err) != secrets.None {
		t.Error("short passphrase:", err)
	}
	passphrase = "correct horse battery"
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Key(ctx, true); status(err) != secrets.None {
		t.Error("open folder:", err)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	// What is left of a file does not read as a wrong passphrase, and is not
	// replaced; of a changed one nobody can tell.
	path := filepath.Join(dir, "master-key")
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		data   []byte
		status secrets.Status
		reason string
	}{
		"empty":                {nil, secrets.None, "the encrypted file is damaged"},
		"cut off":              {good[:len(good)/2], secrets.None, "the encrypted file is damaged"},
		"without its last":     {good[:len(good)-1], secrets.None, "the encrypted file is damaged"},
		"something else":       {[]byte("half a fi"), secrets.None, "the encrypted file is damaged"},
		"zeros":                {make([]byte, len(good)), secrets.None, "the encrypted file is damaged"},
		"one character of it":  {append([]byte{good[0] ^ 1}, good[1:]...), secrets.None, "the encrypted file is damaged"},
		"one bit of its value": {bytes.Replace(good, good[len(good)-60:len(good)-50], []byte("AAAAAAAAAA"), 1), secrets.Locked, "the passphrase does not open the encrypted file"},
	} {
		if err := os.WriteFile(path, tc.data, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := k.Key(ctx, true)
		var e *secrets.KeyError
		if !errors.As(err, &e) || e.Status != tc.status || e.Reason != tc.reason || !strings.Contains(e.Fix, path) {
			t.Errorf("%s: %+v", name, e)
		}
		if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, tc.data) {
			t.Errorf("%s: the file was changed", name)
		}
	}
	if err := os.Rename(path, path+".moved"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(path+".moved", path); err != nil {
		t.Fatal(err)
	}
	var e *secrets.KeyError
	if _, err := k.Key(ctx, true); !errors.As(err, &e) || e.Reason != "the encrypted file is damaged" || e.Detail != "it is not a regular file" {
		t.Errorf("a link: %+v", e)
	}
	for range 2 {
		if err := k.Forget(ctx); err != nil {
			t.Error(err)
		}
	}
	if _, err := k.Key(ctx, false); !errors.Is(err, secrets.ErrNoKey) {
		t.Error(err)
	}
}

// Where there is no keyring a person reads what is missing and what helps: on a
// desktop, and on a server, where the key can be in an encrypted file. What the
// keyring's library said is kept apart.
func TestKeyringWords(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the words are those of a system with a session bus")
	}
	const server = " On a server: `hbrestd config set keyring file`, and a restart with a terminal or LoadCredential=hbrestd-passphrase:FILE in the unit."
	for code, want := range map[string]secrets.State{
		"no_bus": {
			Status: secrets.None, Reason: "there is no session bus, and no keyring can be reached without one",
			Fix: "Start hbrestd in your desktop session." + server,
		},
		"no_service":    {Status: secrets.None, Reason: "there is no keyring service", Fix: "Start one in this session, such as gnome-keyring." + server},
		"no_collection": {Status: secrets.None, Reason: "the keyring service has no login keyring", Fix: "Log in once on the desktop, or make a keyring named login." + server},
		"no_backend":    {Status: secrets.None, Reason: "this hbrestd cannot use the keyring secret-service on this system", Fix: "Install the build for this system." + server},
		"failed":        {Status: secrets.None, Reason: "the keyring refused or failed", Fix: "Check that the system's keyring program works." + server},
		"locked":        {Status: secrets.Locked, Reason: "the keyring is locked", Fix: "Unlock it: log in on the desktop, or unlock the login keyring with its password."},
	} {
		want.Detail = "what the library said"
		line := `{"ok":false,"code":"` + code + `","detail":"what the library said"}`
		k := &secrets.Keyring{Program: script(t, "cat >/dev/null; echo '"+line+"'; exit 1"), Backend: secrets.SecretService, Item: "m"}
		_, err := k.Key(t.Context(), false)
		var e *secrets.KeyError
		if !errors.As(err, &e) || e.State != want || len(e.Fix) > fault.MaxHint {
			t.Errorf("%s: %+v (%d), want %+v", code, e, len(want.Fix), want)
		}
	}
}

func TestProgramAnswers(t *testing.T) {
	answer := func(line, exit string) string { return "cat >/dev/null; echo '" + line + "'; exit " + exit }
	for name, c := range map[string]struct {
		script string
		want   secrets.Status // "": ErrNoKey
	}{
		"not found":      {answer(`{"ok":false,"code":"not_found"}`, "1"), ""},
		"locked":         {answer(`{"ok":false,"code":"locked"}`, "1"), secrets.Locked},
		"no bus":         {answer(`{"ok":false,"code":"no_bus","detail":"d"}`, "1"), secrets.None},
		"no service":     {answer(`{"ok":false,"code":"no_service","detail":"d"}`, "1"), secrets.None},
		"no collection":  {answer(`{"ok":false,"code":"no_collection"}`, "1"), secrets.None},
		"no backend":     {answer(`{"ok":false,"code":"no_backend"}`, "1"), secrets.None},
		"failed":         {answer(`{"ok":false,"code":"failed"}`, "1"), secrets.None},
		"bad request":    {answer(`{"ok":false,"code":"bad_request"}`, "2"), secrets.None},
		"unknown code":   {answer(`{"ok":false,"code":"news"}`, "1"), secrets.None},
		"short key":      {answer(`{"ok":true,"value":"AAAA"}`, "0"), secrets.None},
		"ok but failed":  {answer(`{"ok":true,"value":"AAAA"}`, "1"), secrets.None},
		"failed but ok":  {answer(`{"ok":false,"code":"not_found"}`, "0"), secrets.None},
		"no answer":      {"exit 1", secrets.None},
		"killed":         {"kill -9 $$", secrets.None},
		"not JSON":       {"echo hello", secrets.None},
		"endless answer": {"cat >/dev/null; yes 0123456789 | head -c 300000", secrets.None},
	} {
		k := &secrets.Keyring{Program: script(t, c.script), Backend: secrets.SecretService, Item: "m"}
		_, err := k.Key(t.Context(), false)
		if c.want == "" && !errors.Is(err, secrets.ErrNoKey) || c.want != "" && status(err) != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
	k := &secrets.Keyring{Program: "/nonexistent/hbrestd-keyring", Backend: secrets.SecretService, Item: "m"}
	if _, err := k.Key(t.Context(), false); status(err) != secrets.None {
		t.Error(err)
	}
}

// What the program is given: the request on its standard input and a small
// environment, nothing in its arguments.
func TestProgramIsGiven(t *testing.T) {
	dir := t.TempDir()
	k := &secrets.Keyring{
		Program: script(t, `cat >"`+dir+`/in"; echo "$# $0" >"`+dir+`/args"; env >"`+dir+`/env"; echo '{"ok":true}'`),
		Backend: secrets.SecretService, Item: "m",
		Env: secrets.KeyringEnv([]string{"PATH=/bin", "HB_WRAP_HOME=/x", "HOME=/h", "DBUS_SESSION_BUS_ADDRESS=unix:path=/b", "AWS_SECRET_ACCESS_KEY=s"}),
	}
	if err := k.Forget(t.Context()); err != nil {
		t.Fatal(err)
	}
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if got, want := read("in"), `{"version":1,"verb":"delete","backend":"secret-service","item":"m"}`+"\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := read("args"); !strings.HasPrefix(got, "0 ") {
		t.Error(got)
	}
	var env []string
	for line := range strings.Lines(read("env")) {
		if name, _, _ := strings.Cut(line, "="); name != "PWD" && name != "SHLVL" && name != "_" && name != "OLDPWD" { // the shell's own
			env = append(env, strings.TrimSpace(line))
		}
	}
	slices.Sort(env)
	if want := []string{"DBUS_SESSION_BUS_ADDRESS=unix:path=/b", "GOTRACEBACK=none", "HOME=/h"}; !slices.Equal(env, want) {
		t.Errorf("%q", env)
	}
}

// A program that hangs is ended with all it started, and others wait their turn
// no longer than the limit.
func TestProgramHangs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	k := &secrets.Keyring{Program: script(t, `sleep 600 & echo $$ $! >>"`+dir+`/pids"; wait`), Backend: secrets.SecretService, Item: "m"}
	start := time.Now()
	var group sync.WaitGroup
	for range 5 {
		group.Go(func() {
			if _, err := k.Key(t.Context(), true); status(err) != secrets.None {
				t.Error(err)
			}
		})
	}
	group.Go(func() { // a caller who gives up does not wait
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		if _, err := k.Key(ctx, true); err == nil || time.Since(start) > 2*time.Second {
			t.Error(err, time.Since(start))
		}
	})
	group.Wait()
	if d := time.Since(start); d < 4900*time.Millisecond || d > 7*time.Second {
		t.Errorf("took %v", d)
	}
	b, err := os.ReadFile(filepath.Join(dir, "pids"))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range strings.Fields(string(b)) {
		pid, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		// A killed process may stay a zombie for a moment; a sleeping one would not go away.
		for deadline := time.Now().Add(3 * time.Second); alive(pid); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Errorf("process %d still runs", pid)
				break
			}
		}
	}
}

func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return !errors.Is(err, os.ErrNotExist)
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z")
}

func TestFindProgram(t *testing.T) {
	for _, place := range []string{"bin/hbrestd-keyring", "libexec/hbrestd-keyring", "libexec/hbrestd/hbrestd-keyring"} {
		dir := t.TempDir()
		path := filepath.Join(dir, place)
		for _, d := range []string{filepath.Dir(path), filepath.Join(dir, "bin"), filepath.Join(dir, "links")} {
			if err := os.MkdirAll(d, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		hbrestd := filepath.Join(dir, "bin", "hbrestd")
		if _, err := secrets.FindProgram(hbrestd); err == nil {
			t.Error("found what is not there")
		}
		for _, f := range []string{path, hbrestd} {
			if err := os.WriteFile(f, nil, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		link := filepath.Join(dir, "links", "hbrestd")
		if err := os.Symlink(hbrestd, link); err != nil {
			t.Fatal(err)
		}
		for _, from := range []string{hbrestd, link} {
			got, err := secrets.FindProgram(from)
			if err != nil {
				t.Fatal(err)
			}
			a, _ := os.Stat(got)
			b, _ := os.Stat(path)
			if !os.SameFile(a, b) {
				t.Errorf("%s from %s: %s", place, from, got)
			}
		}
	}
}

func TestPassphraseFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p")
	for in, want := range map[string]string{"a b\n": "a b", "a b": "a b", "a\r\n": "a", "a\n\n": "a\n", "": "", strings.Repeat("x", 4096): strings.Repeat("x", 4096)} {
		if err := os.WriteFile(path, []byte(in), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := secrets.PassphraseFile(path)(t.Context()); err != nil || string(got) != want {
			t.Errorf("%q: %q %v", in, got, err)
		}
	}
	if err := os.WriteFile(path, make([]byte, 4097), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := secrets.PassphraseFile(path)(t.Context()); err == nil {
		t.Error("too long")
	}
	if _, err := secrets.PassphraseFile(path + "x")(t.Context()); err == nil {
		t.Error("missing")
	}
}
