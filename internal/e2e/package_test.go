//go:build linux

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/e2e/stdio"
)

// The Debian package on this machine, in namespaces that take away what it
// changes: installed, used by a user with a systemd user manager, removed,
// installed again. The default port is free there.
func TestPackage(t *testing.T) {
	if inside := os.Getenv("HB_E2E_INSIDE"); inside != "" {
		phase, dir, _ := strings.Cut(inside, ":")
		switch phase {
		case "root":
			packageRoot(t, dir)
		case "first":
			packageFirst(&servant{t: t, home: dir, bin: "/usr/bin"})
		case "second":
			packageSecond(&servant{t: t, home: dir, bin: "/usr/bin"})
		}
		return
	}
	deb := os.Getenv("HB_E2E_DEB")
	if deb == "" {
		t.Skip("HB_E2E_DEB=path of the package runs it: it needs root, dpkg and systemd")
	}
	if !filepath.IsAbs(deb) {
		t.Fatalf("HB_E2E_DEB must be an absolute path: %q", deb)
	}
	base, err := os.MkdirTemp("/tmp", "hb-rest-e2e-package-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(base, "home")
	for _, dir := range []string{home, filepath.Join(base, "layers")} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	copyFile(t, self, filepath.Join(base, "inside.test"))
	copyFile(t, deb, filepath.Join(base, "hb-rest.deb"))
	script, err := filepath.Abs("testdata/usermanager.sh")
	if err != nil {
		t.Fatal(err)
	}
	copyFile(t, script, filepath.Join(base, "usermanager.sh"))
	for _, path := range []string{base, home} {
		if err := errors.Join(os.Chown(path, passing, passing), os.Chmod(path, 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "unshare", "--mount", "--propagation=private", "--net", "--pid", "--fork", "--kill-child", "--mount-proc",
		filepath.Join(base, "inside.test"), "-test.run=^TestPackage$", "-test.v")
	cmd.Env = append(os.Environ(), "HB_E2E_INSIDE=root:"+base)
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if i := strings.Index(line, "measured: "); i >= 0 {
			t.Log(strings.TrimSpace(line[i:]))
		}
	}
}

// packageRoot is what root does, in the namespaces.
func packageRoot(t *testing.T, base string) {
	run := func(argv ...string) string {
		t.Helper()
		out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
		if err != nil {
			t.Fatalf("%q: %v\n%s", argv, err, out)
		}
		return string(out)
	}
	// What is written to these folders goes to a layer in memory.
	layers := filepath.Join(base, "layers")
	run("mount", "-t", "tmpfs", "-o", "mode=755", "none", layers)
	for _, dir := range []string{"usr", "var", "etc"} {
		upper, work := filepath.Join(layers, dir), filepath.Join(layers, dir+"-work")
		if err := errors.Join(os.Mkdir(upper, 0o755), os.Mkdir(work, 0o755)); err != nil {
			t.Fatal(err)
		}
		run("mount", "-t", "overlay", "-o", "lowerdir=/"+dir+",upperdir="+upper+",workdir="+work, "none", "/"+dir)
	}
	run("ip", "link", "set", "lo", "up")
	home := filepath.Join(base, "home")
	user := func(phase string) {
		t.Helper()
		cmd := exec.Command("unshare", "--mount", "--propagation=private", "bash", filepath.Join(base, "usermanager.sh"), strconv.Itoa(passing), home,
			filepath.Join(base, "inside.test"), "-test.run=^TestPackage$", "-test.v")
		cmd.Env = append(os.Environ(), "HB_E2E_INSIDE="+phase+":"+home)
		out, err := cmd.CombinedOutput()
		t.Logf("%s", out)
		if err != nil {
			t.Fatal(err)
		}
	}
	deb := filepath.Join(base, "hb-rest.deb")

	at := time.Now()
	run("dpkg", "-i", deb)
	t.Logf("measured: dpkg -i: %.2f s", time.Since(at).Seconds())
	if out := run("dpkg", "--verify", "hb-rest"); out != "" {
		t.Errorf("dpkg --verify:\n%s", out)
	}
	files := strings.Fields(run("dpkg", "-L", "hb-rest"))
	for _, link := range []string{"/etc/systemd/user/default.target.wants/hbrestd.service", "/etc/systemd/user/hbrestd.service"} {
		if _, err := os.Lstat(link); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the package enables its unit for everybody: %s, %v", link, err)
		}
	}
	user("first")

	run("dpkg", "-r", "hb-rest")
	for _, path := range files {
		if info, err := os.Lstat(path); err == nil && !info.IsDir() {
			t.Errorf("left behind: %s", path)
		}
	}
	for _, path := range []string{"/usr/libexec/hbrestd", "/usr/share/doc/hb-rest"} {
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("left behind: %s", path)
		}
	}
	for _, name := range []string{"store.db", "audit.db", "token"} {
		if _, err := os.Stat(filepath.Join(home, ".local", "state", "hbrestd", "wrap", name)); err != nil {
			t.Errorf("gone with the package: %v", err)
		}
	}

	run("dpkg", "-i", deb)
	user("second")
}

// packaged is the unit that the package brings.
const packaged = "/usr/lib/systemd/user/hbrestd.service"

// packageFirst is what a newcomer does.
func packageFirst(s *servant) {
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"n":9007199254740993}`) }))
	defer up.Close()
	s.startManager()
	defer func() { s.stopManager() }()

	s.says(s.hb(3, "service", "status"), "stopped")
	at := time.Now()
	s.says(s.hb(0, "service", "install", "--now"), "enabled: "+packaged+", which came with the package", "http://127.0.0.1:4111")
	if st := s.status(); st.State != "running" || st.Unit != packaged || !st.Enabled {
		s.t.Errorf("status: %+v", st)
	}
	if own := filepath.Join(s.home, ".config", "systemd", "user", "hbrestd.service"); exists(own) {
		s.t.Errorf("a unit of the user's own was written: %s", own)
	}
	s.hb(0, "allow", "add", strings.TrimPrefix(up.URL, "http://"), "--http")
	mcp := s.shim()
	defer func() { _ = mcp.Close() }()
	if text, ok := s.call(mcp, "wrap_create", `{"wrapper":{"schemaVersion":1,"id":"n","name":"N","request":{"method":"GET","url":"`+up.URL+`/n"}}}`); !ok {
		s.t.Fatal(text)
	}
	works := func() bool {
		text, ok := s.call(mcp, "wrap_run", `{"id":"n","format":"json"}`)
		return ok && strings.Contains(text, "9007199254740993")
	}
	if !works() {
		s.t.Error("wrap_run does not work")
	}
	s.t.Logf("measured: service install --now until the first answer of wrap_run: %.2f s", time.Since(at).Seconds())

	// The helper is found in libexec: it says that there is no bus here, and hbrestd not that it is missing.
	doctor, _ := s.try(s.program("hbrestd"), "doctor")
	s.says(doctor, "keyring")
	if strings.Contains(doctor, "is not installed beside") {
		s.t.Error(doctor)
	}

	pid := s.status().PID
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		s.t.Fatal(err)
	}
	took := s.eventually("a call after kill -9", 10*time.Second, works)
	s.t.Logf("measured: kill -9 until the next call works: %.2f s", took.Seconds())
	if st := s.status(); took > 2*time.Second || st.PID == pid || st.Restarts != 1 {
		s.t.Errorf("after kill -9: %v, %+v", took, st)
	}
	for _, page := range []string{"hbrestd", "hbrestd-wrapper", "hb-rest"} {
		data, err := os.ReadFile("/usr/share/man/man1/" + page + ".1.gz")
		if err != nil || !bytes.HasPrefix(data, []byte("\x1f\x8b")) {
			s.t.Errorf("manual page: %v", err)
		}
	}
	out, code := s.try("bash", "-c", `source /usr/share/bash-completion/completions/hbrestd && complete -p hbrestd && hbrestd __complete wrapper run "" 2>/dev/null`)
	if code != 0 || !strings.Contains(out, "n\tN") {
		s.t.Errorf("completion ends with %d and says %q", code, out)
	}
}

// packageSecond comes after the package was removed and installed again: the
// service was never uninstalled, so the manager starts it as after a reboot.
func packageSecond(s *servant) {
	s.startManager()
	defer func() { s.stopManager() }()
	mcp := s.shim()
	defer func() { _ = mcp.Close() }()
	s.eventually("the service is back with the package", 10*time.Second, func() bool {
		text, ok := s.call(mcp, "wrap_get", `{"id":"n"}`)
		return ok && strings.Contains(text, "schemaVersion")
	})
	s.says(s.hb(0, "service", "uninstall"), "the package keeps "+packaged, "stay in")
	if st := s.status(); st.State != "stopped" || st.Enabled {
		s.t.Errorf("after uninstall: %+v", st)
	}
	if !exists(packaged) {
		s.t.Error("the package's unit is gone")
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// shim starts hb-rest as a client does, without settings.
func (s *servant) shim() *stdio.Client {
	s.t.Helper()
	cmd := exec.Command(s.program("hb-rest"))
	cmd.Env = []string{"HOME=" + s.home, "PATH=" + os.Getenv("PATH")}
	mcp, err := stdio.Start(cmd, "2025-11-25")
	if err != nil {
		s.t.Fatal(err)
	}
	return mcp
}

// call gives the text of an answer, and whether it is one.
func (s *servant) call(mcp *stdio.Client, tool, args string) (string, bool) {
	s.t.Helper()
	r, err := mcp.Call(tool, json.RawMessage(args))
	if err != nil {
		s.t.Fatal(err)
	}
	return r.Text() + r.RPCError, !r.IsError && r.RPCError == ""
}
