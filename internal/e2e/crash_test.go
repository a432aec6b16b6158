//go:build unix

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/client"
)

// A process is a real hbrestd outside a script.
type process struct {
	cmd    *exec.Cmd
	stderr *log
	client *client.Client
	url    string
	ended  bool
}

// startDaemon starts hbrestd in home, with more settings, and waits until it listens.
func startDaemon(t *testing.T, home string, env ...string) *process {
	t.Helper()
	dir, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return startProgram(t, filepath.Join(dir, "hbrestd"), home, env...)
}

// startProgram is startDaemon with another hbrestd than that of build.
func startProgram(t *testing.T, program, home string, env ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(program, "run"), stderr: newLog()}
	p.cmd.Env = append([]string{"HB_WRAP_HOME=" + home, "HB_WRAP_ADDR=127.0.0.1:0"}, env...)
	pipe, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go p.stderr.collect(bufio.NewScanner(pipe))
	t.Cleanup(p.kill) // whatever fails, no process stays behind
	addr, err := p.stderr.waitFor(listening)
	if err != nil {
		t.Fatal(err)
	}
	u := &url.URL{Scheme: "http", Host: addr}
	p.url = u.String()
	p.client = client.New(client.Options{URL: u, TokenFiles: []string{filepath.Join(home, "wrap", "token")}, Started: time.Unix(0, 0)})
	return p
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.wait()
}

// wait waits for the end of the process, once.
func (p *process) wait() error {
	if p.ended {
		return nil
	}
	p.ended = true
	<-p.stderr.done
	if p.client != nil {
		p.client.Close()
	}
	return p.cmd.Wait()
}

// kill -9 at any moment while four callers create, replace and delete wrappers:
// what was acknowledged is there after the next start, to the byte, what was
// deleted is not, and nothing is damaged.
func TestKillWhileSaving(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	acknowledged := map[string]string{} // id -> document; "" once its deletion was acknowledged
	unknown := map[string]bool{}        // ids whose last change got no answer
	var mu sync.Mutex
	const rounds = 5
	changes := 0
	for round := range rounds {
		p := startDaemon(t, home)
		checkSaved(t, p, acknowledged, unknown)
		for id := range unknown { // settled now: whichever it is, it is whole
			delete(acknowledged, id)
		}
		clear(unknown)
		ctx, cancel := context.WithCancel(t.Context())
		killAt := changes + 3 + rand.IntN(20) // somewhere in the stream, while others are under way
		enough := make(chan struct{})
		var wg sync.WaitGroup
		for worker := range 4 {
			wg.Go(func() {
				for i := 0; ctx.Err() == nil; i++ {
					id := fmt.Sprintf("w.%d.%d.%d", round, worker, i)
					change := func(req *api.ChangeRequest) bool {
						r, err := p.client.Change(ctx, req)
						mu.Lock()
						defer mu.Unlock()
						if err != nil {
							unknown[id] = true
							return false
						}
						acknowledged[id] = string(r.Wrapper)
						if changes++; changes == killAt {
							close(enough)
						}
						return true
					}
					ok := change(&api.ChangeRequest{Action: "create", Wrapper: document(id, "one")})
					if ok && i%3 == 1 {
						ok = change(&api.ChangeRequest{Action: "update", Wrapper: document(id, "two")})
					}
					if ok && i%5 == 4 {
						ok = change(&api.ChangeRequest{Action: "delete", ID: id})
					}
					if !ok {
						return
					}
				}
			})
		}
		select {
		case <-enough:
		case <-time.After(20 * time.Second):
			t.Errorf("only %d changes were acknowledged in 20 s", changes)
		}
		p.kill()
		cancel()
		wg.Wait()
	}
	p := startDaemon(t, home)
	checkSaved(t, p, acknowledged, unknown)
	p.kill()
	t.Logf("%d acknowledged changes, %d kills", changes, rounds)
}

func document(id, name string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"schemaVersion":1,"id":%q,"name":%q,"request":{"method":"GET","url":"https://api.example.com/%s/%s"}}`,
		id, name, id, strings.Repeat("x", 300)))
}

func checkSaved(t *testing.T, p *process, acknowledged map[string]string, unknown map[string]bool) {
	t.Helper()
	if s := p.stderr.String(); strings.Contains(s, "damaged") || strings.Contains(s, "level=ERROR") {
		t.Fatalf("after a kill:\n%s", s)
	}
	m, err := p.client.Manifest(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for _, e := range m.Wrappers {
		there[e.ID] = true
		if e.Damaged != "" {
			t.Errorf("%s is damaged: %s", e.ID, e.Damaged)
		}
	}
	for id, doc := range acknowledged {
		if unknown[id] {
			continue
		}
		if there[id] != (doc != "") {
			t.Errorf("%s: there is %v, acknowledged was %q", id, there[id], doc)
			continue
		}
		if doc == "" {
			continue
		}
		got, err := p.client.Wrapper(t.Context(), id)
		if err != nil || !bytes.Equal(got, []byte(doc)) {
			t.Errorf("%s: %v\n got %s\nwant %s", id, err, got, doc)
		}
	}
}

// SIGTERM with a call in flight: the call is answered, the exit code is 0.
func TestTermAnswersTheCallInFlight(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(arrived)
		<-release
		_, _ = io.WriteString(w, `{"n":9007199254740993}`)
	}))
	t.Cleanup(up.Close)
	p := startDaemon(t, filepath.Join(t.TempDir(), "home"), "HB_WRAP_ALLOW_PRIVATE=1")
	doc := `{"schemaVersion":1,"id":"slow","name":"S","request":{"method":"POST","url":"` + up.URL + `/"}}`
	if _, err := p.client.Change(t.Context(), &api.ChangeRequest{Action: "create", Wrapper: []byte(doc)}); err != nil {
		t.Fatal(err)
	}
	type result struct {
		r   *api.RunResult
		err error
	}
	got := make(chan result, 1)
	go func() {
		r, err := p.client.Run(t.Context(), &api.RunRequest{ID: "slow"})
		got <- result{r, err}
	}()
	<-arrived
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if _, err := p.stderr.waitFor(regexp.MustCompile(`msg=(stopping)`)); err != nil {
		t.Error(err)
	}
	close(release)
	if r := <-got; r.err != nil || string(r.r.Records) != `[{"n":9007199254740993}]` {
		t.Errorf("the call in flight: %+v", r)
	}
	if err := p.wait(); err != nil {
		t.Errorf("exit: %v\n%s", err, p.stderr)
	}
}

// ordinary is a user without rights, for tests of permissions run by root.
const ordinary = "1002"

// A home that cannot be written: a sentence that names the place, exit code 8,
// promptly. For root permissions mean nothing, so then another user runs it.
func TestReadOnlyHome(t *testing.T) {
	dir, err := build()
	if err != nil {
		t.Fatal(err)
	}
	base, err := os.MkdirTemp("/tmp", "hb-rest-e2e-home-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	argv := []string{filepath.Join(dir, "hbrestd"), "run"}
	if os.Getuid() == 0 {
		setpriv, err := exec.LookPath("setpriv")
		if err != nil {
			t.Fatalf("root needs setpriv for this test: %v", err)
		}
		argv = append([]string{setpriv, "--reuid=" + ordinary, "--regid=" + ordinary, "--clear-groups"}, argv...)
		if out, err := exec.Command("chown", "-R", ordinary+":"+ordinary, base).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	run := func(home string) (string, int) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
		cmd.Env = []string{"HB_WRAP_HOME=" + home, "HB_WRAP_ADDR=127.0.0.1:0"}
		out, err := cmd.CombinedOutput()
		if err == nil || ctx.Err() != nil {
			t.Errorf("%s: it ran: %v\n%s", home, err, out)
		}
		return string(out), cmd.ProcessState.ExitCode()
	}
	if err := os.Chmod(base, 0o500); err != nil {
		t.Fatal(err)
	}
	for _, home := range []string{filepath.Join(base, "home"), filepath.Join(base, "a", "b")} {
		out, code := run(home)
		if code != 8 || !strings.Contains(out, home[:len(base)]) || !strings.Contains(out, "permission denied") || strings.Contains(out, "goroutine") {
			t.Errorf("%s: exit code %d:\n%s", home, code, out)
		}
	}
	if out, code := run(base); code != 8 || !strings.Contains(out, "chmod 700 '"+base+"'") {
		t.Errorf("mode 0500: exit code %d:\n%s", code, out)
	}
	if got, err := os.ReadDir(base); err != nil || len(got) != 0 {
		t.Errorf("left behind: %v %v", got, err)
	}
}
