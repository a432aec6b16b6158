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
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/client"
	"github.com/hyperbolic-gateway/hb-rest/internal/soak"
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

// dice are the random choices of a test: always the same in a quick run, and of a
// seed that is logged in a long one.
func dice(t *testing.T) *rand.Rand {
	t.Helper()
	seed := uint64(1)
	if soak.Long() {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, seed))
}

// killAmong lets callers call until one of their calls fails, and ends the daemon
// with kill -9 a moment after so many answers: in the midst of what they wait for.
// Each caller is given what it has to call after each answer that it got. The
// result is when the kill began.
func killAmong(t *testing.T, p *process, answers int, moment time.Duration, callers ...func(answered func())) time.Time {
	t.Helper()
	var got atomic.Int64
	enough := make(chan struct{})
	answered := func() {
		if got.Add(1) == int64(answers) {
			close(enough)
		}
	}
	var wg sync.WaitGroup
	for _, call := range callers {
		wg.Go(func() { call(answered) })
	}
	select {
	case <-enough:
		time.Sleep(moment) // spreads the kills over the course of a call
	case <-time.After(time.Minute):
		t.Errorf("only %d answers in a minute", got.Load())
	}
	killed := time.Now()
	p.kill()
	wg.Wait()
	return killed
}

// Promise 11: what was acknowledged survives kill -9. Four callers create, replace
// and delete wrappers: after each next start all of it is there, to the byte, what
// was deleted is not, and nothing is damaged.
func TestKillWhileSaving(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	acknowledged := map[string]string{} // id -> document; "" once its deletion was acknowledged
	unknown := map[string]bool{}        // ids whose last change got no answer
	var mu sync.Mutex
	rounds, random := soak.Rounds(3, 50), dice(t)
	changes, cut, bad := 0, 0, 0
	for round := range rounds {
		p := startDaemon(t, home)
		bad += checkSaved(t, p, acknowledged, unknown)
		for id := range unknown { // settled now: whichever it is, it is whole
			delete(acknowledged, id)
		}
		clear(unknown)
		caller := func(worker int) func(func()) {
			return func(answered func()) {
				for i := 0; ; i++ {
					id := fmt.Sprintf("w.%d.%d.%d", round, worker, i)
					change := func(req *api.ChangeRequest) bool {
						r, err := p.client.Change(t.Context(), req)
						mu.Lock()
						defer mu.Unlock()
						if err != nil {
							unknown[id] = true
							cut++
							return false
						}
						acknowledged[id] = string(r.Wrapper)
						changes++
						answered()
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
			}
		}
		killAmong(t, p, 3+random.IntN(20), time.Duration(random.IntN(10_000))*time.Microsecond, caller(0), caller(1), caller(2), caller(3))
	}
	p := startDaemon(t, home)
	bad += checkSaved(t, p, acknowledged, unknown)
	p.kill()
	soak.Measured(t, "%d kills among creates, updates and deletions: %d acknowledged, %d lost or damaged; %d without an answer", rounds, changes, bad, cut)
}

func document(id, name string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"schemaVersion":1,"id":%q,"name":%q,"request":{"method":"GET","url":"https://api.example.com/%s/%s"}}`,
		id, name, id, strings.Repeat("x", 300)))
}

// checkSaved compares what a daemon has with what was acknowledged, but for the
// unknown ones, and counts what is lost, changed or damaged.
func checkSaved(t *testing.T, p *process, acknowledged map[string]string, unknown map[string]bool) (bad int) {
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
			bad++
			t.Errorf("%s is damaged: %s", e.ID, e.Damaged)
		}
	}
	for id, doc := range acknowledged {
		if unknown[id] {
			continue
		}
		if there[id] != (doc != "") {
			bad++
			t.Errorf("%s: there is %v, acknowledged was %q", id, there[id], doc)
			continue
		}
		if doc == "" {
			continue
		}
		got, err := p.client.Wrapper(t.Context(), id)
		if err != nil || !bytes.Equal(got, []byte(doc)) {
			bad++
			t.Errorf("%s: %v\n got %s\nwant %s", id, err, got, doc)
		}
	}
	return bad
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
