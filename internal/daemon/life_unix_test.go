//go:build unix

package daemon_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mccutchen/go-httpbin/v2/httpbin"

	"github.com/hyperbolic-gateway/hb-rest/internal/daemon"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
)

// files are the bytes of everything below a folder but the audit trail, to
// which a running daemon adds in its own time.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.Walk(dir, func(p string, info os.FileInfo, err error) error {
		if err != nil || !info.Mode().IsRegular() || filepath.Base(p) == "audit.db" {
			return err
		}
		data, err := os.ReadFile(p)
		out[p] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// A second daemon of the same home ends promptly, says why and changes nothing.
func TestSecondDaemon(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, outbound.Options{})
	w.create(get("a", "https://api.example.com/"))
	before := files(t, w.cfg.Home)
	within(t, 2*time.Second, "the second daemon", func() {
		_, err := daemon.Start(context.Background(), w.options)
		if f := fault.From(err); f == nil || !strings.Contains(f.Message, "another hbrestd") || f.Hint == "" {
			t.Errorf("the second daemon: %v", err)
		}
	})
	if d := cmp.Diff(before, files(t, w.cfg.Home)); d != "" {
		t.Errorf("files changed:\n%s", d)
	}
	if a := w.post("/wrap/wrappers", `{"action":"get","id":"a"}`); !a.OK {
		t.Errorf("the first daemon: %s", a.Raw)
	}
}

// D19: a port that somebody else has: a clear word, and the token file of
// before stays.
func TestPortInUse(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, outbound.Options{})
	w.create(get("a", "https://api.example.com/"))
	w.stop()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	before := files(t, w.cfg.WrapDir)
	o := w.options
	o.Config.Addr = l.Addr().String()
	_, err = daemon.Start(context.Background(), o)
	if err == nil {
		t.Fatal("it started")
	}
	for _, says := range []string{l.Addr().String(), "in use"} {
		if !strings.Contains(err.Error(), says) {
			t.Errorf("%q does not say %q", err, says)
		}
	}
	if d := cmp.Diff(before, files(t, w.cfg.WrapDir)); d != "" {
		t.Errorf("files changed:\n%s", d)
	}
	w.start() // and the store was given up
}

// D21: a store cut to half: the daemon starts, says so, keeps the file, and
// serves what is left and what comes new.
func TestStoreCutToHalf(t *testing.T) {
	t.Parallel()
	w := newWorld(t, private, outbound.Options{})
	for i := range 200 {
		w.create(get(fmt.Sprintf("w.%03d", i), "https://api.example.com/"+strings.Repeat("x", 500)))
	}
	w.stop()
	info, err := os.Stat(w.cfg.StorePath)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(w.cfg.StorePath)
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int64{info.Size() / 2, info.Size() / 10, 4096, 100, 0} {
		if err := os.WriteFile(w.cfg.StorePath, whole, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(w.cfg.StorePath, size); err != nil {
			t.Fatal(err)
		}
		w.start()
		if !strings.Contains(w.log.String(), "the store was damaged") {
			t.Errorf("cut to %d bytes: the log does not say so:\n%s", size, w.log)
		}
		kept := 0
		for _, data := range files(t, w.cfg.WrapDir) {
			if strings.HasPrefix(string(whole), data) && int64(len(data)) == size {
				kept++
			}
		}
		if kept == 0 {
			t.Errorf("cut to %d bytes: the damaged file was not kept: %v", size, names(t, w.cfg.WrapDir))
		}
		if a := w.change("create", get("new", "https://api.example.com/")); !a.OK {
			t.Errorf("cut to %d bytes: create: %s", size, a.Raw)
		}
		if a := w.post("/wrap/wrappers", `{"action":"get","id":"new"}`); !a.OK {
			t.Errorf("cut to %d bytes: get: %s", size, a.Raw)
		}
		w.stop()
		for p := range files(t, w.cfg.WrapDir) {
			if p != w.cfg.StorePath && p != w.cfg.TokenPath {
				if err := os.Remove(p); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

func names(t *testing.T, dir string) (out []string) {
	t.Helper()
	for p, data := range files(t, dir) {
		out = append(out, fmt.Sprintf("%s (%d)", filepath.Base(p), len(data)))
	}
	return out
}

// D43: one damaged record among fifty hurts nobody else.
func TestOneDamagedRecord(t *testing.T) {
	t.Parallel()
	up := mirror(t)
	w := newWorld(t, private, outbound.Options{})
	for i := range 50 {
		w.create(strings.NewReplacer(`"mirror"`, fmt.Sprintf(`"m.%02d"`, i), `"Mirror"`, fmt.Sprintf(`"Mirror %02d"`, i)).Replace(mirrorDoc(up.URL)))
	}
	w.stop()
	data, err := os.ReadFile(w.cfg.StorePath)
	if err != nil {
		t.Fatal(err)
	}
	hurt := bytes.ReplaceAll(data, []byte(`"Mirror 17"`), []byte(`"Mirror 71"`))
	if bytes.Equal(hurt, data) {
		t.Fatal("the document is not in the file as text")
	}
	if err := os.WriteFile(w.cfg.StorePath, hurt, 0o600); err != nil {
		t.Fatal(err)
	}
	w.start()
	for i := range 50 {
		id := fmt.Sprintf("m.%02d", i)
		a := w.run(id, `{"n":5}`)
		if i == 17 {
			if a.HTTP != 422 || a.Code != "WRAPPER_UNREADABLE" || !strings.Contains(a.Message, id) || a.Hint == "" {
				t.Errorf("the damaged one: %s", a.Raw)
			}
			continue
		}
		if !a.OK || string(a.Records) != `[{"n":5}]` {
			t.Errorf("%s: %s", id, a.Raw)
		}
	}
	agent := w.agent(w.d.Addr())
	list := strings.Split(agent.must("wrap_list", `{}`), "\n")
	if len(list) != 50 || !strings.HasPrefix(list[17], "m.17 - DAMAGED") {
		t.Errorf("the list has %d lines, the 18th is %q", len(list), list[min(17, len(list)-1)])
	}
	// It is mended by saving it again, as the hint says.
	agent.must("wrap_update", `{"wrapper":`+strings.Replace(mirrorDoc(up.URL), `"mirror"`, `"m.17"`, 1)+`}`)
	if a := w.run("m.17", `{"n":6}`); !a.OK {
		t.Errorf("after the update: %s", a.Raw)
	}
}

// A home with spaces, quotes and letters of other scripts is a home.
func TestOddHomes(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"my home", "häuser/日本 語", "it's \"mine\"", "a%20b", "-dash", "x=1;y"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, map[string]string{"HB_WRAP_HOME": filepath.Join(t.TempDir(), name)}, outbound.Options{})
			w.create(get("a", "https://api.example.com/"))
			w.stop()
			w.start()
			if a := w.post("/wrap/wrappers", `{"action":"get","id":"a"}`); !a.OK {
				t.Errorf("%s", a.Raw)
			}
		})
	}
}

// A folder that others can enter is refused with the command that mends it,
// and left as it is.
func TestOpenHomeIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, outbound.Options{})
	w.stop()
	for _, dir := range []string{w.cfg.Home, w.cfg.WrapDir} {
		before := files(t, w.cfg.Home)
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		_, err := daemon.Start(context.Background(), w.options)
		if err == nil || !strings.Contains(err.Error(), "chmod 700 '"+dir+"'") || !strings.Contains(err.Error(), "0755") {
			t.Errorf("%s: %v", dir, err)
		}
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o755 {
			t.Errorf("%s was changed: %v %v", dir, info.Mode(), err)
		}
		if d := cmp.Diff(before, files(t, w.cfg.Home)); d != "" {
			t.Errorf("files changed:\n%s", d)
		}
		if err := os.Chmod(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	w.start()
}

// The token file holds a new token after each start, 0600, alone in its folder.
func TestTokenRotation(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, outbound.Options{})
	seen := map[string]bool{}
	for range 20 {
		info, err := os.Lstat(w.cfg.TokenPath)
		if err != nil || info.Mode() != 0o600 {
			t.Fatalf("%v %v", info.Mode(), err)
		}
		if seen[w.tok] {
			t.Fatal("a token came twice")
		}
		seen[w.tok] = true
		w.stop()
		if data, err := os.ReadFile(w.cfg.TokenPath); err != nil || strings.TrimSpace(string(data)) != w.tok {
			t.Error("the token file must stay at a stop")
		}
		w.start()
	}
	if got := names(t, w.cfg.WrapDir); len(got) != 2 {
		t.Errorf("left behind: %v", got)
	}
	// What lies in its place by accident is replaced, never followed.
	w.stop()
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte("precious"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(w.cfg.TokenPath); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, w.cfg.TokenPath); err != nil {
		t.Fatal(err)
	}
	w.start()
	if data, err := os.ReadFile(outside); err != nil || string(data) != "precious" {
		t.Errorf("the link was followed: %q %v", data, err)
	}
}

// The log tells what happened and repeats nothing that was in it: no argument,
// no query string, no body, no answer, no token; also when things go wrong, and
// at the most talkative level.
func TestLogKeepsSecrets(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(httpbin.New())
	t.Cleanup(srv.Close)
	w := newWorld(t, private, outbound.Options{})
	w.create(`{"schemaVersion":1,"id":"c","name":"C","request":{"method":"POST","url":"` + srv.URL + `/anything/{{p}}?fixed=canary-fixed","query":{"q":"{{q}}"},"headers":{"X-A":"{{h}}"},"body":{"b":"{{b}}"}},
	 "inputSchema":{"type":"object","properties":{"p":{"type":"string"},"q":{"type":"string"},"h":{"type":"string"},"b":{"type":"string"}}}}`)
	args := `{"p":"canary-p","q":"canary-q","h":"canary-h","b":"canary-b"}`
	if a := w.run("c", args); !a.OK || !strings.Contains(a.Raw, "canary-q") {
		t.Fatalf("%s", a.Raw)
	}
	w.post("/wrap/test", `{"id":"c","args":`+args+`}`)
	w.run("c", `{"p":"canary-p","q":17}`)
	w.run("c", `{"p":"canary-p","h":"canary-h\r\nX: 1"}`)
	w.post("/wrap/run", `{"id":"c","args":{"p":"canary-p"`)
	w.post("/wrap/run", `{"id":"canary-id","args":{}}`)
	w.post("/wrap/derive", `{"url":"`+srv.URL+`/status/500?x=canary-url"}`)
	w.post("/wrap/derive", `{"sample":{"canary-key":"canary-sample"}}`)
	w.once("x", get("x", "http://127.0.0.1:1/?y=canary-refused"), `{}`)
	agent := w.agent(w.d.Addr())
	agent.must("wrap_run", `{"id":"c","args":`+args+`}`)
	w.stop()
	w.start()
	log := w.log.String()
	for _, never := range []string{"canary", w.tok, "Bearer"} {
		if strings.Contains(log, never) {
			for _, line := range strings.Split(log, "\n") {
				if strings.Contains(line, never) {
					t.Errorf("the log has %q: %s", never, line)
				}
			}
		}
	}
	for _, want := range []string{"msg=listening", `msg="wrapper saved" id=c`} {
		if !strings.Contains(log, want) {
			t.Errorf("the log lacks %q:\n%s", want, log)
		}
	}
}
