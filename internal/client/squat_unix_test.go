//go:build unix

package client_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/client"
	"github.com/hyperbolic-gateway/hb-rest/internal/soak"
	"github.com/hyperbolic-gateway/hb-rest/internal/token"
)

// nobody is the user as whom another process squats, where this one may choose.
const nobody = 65534

// A report is what a squatting process found out.
type report struct {
	UID      int
	Token    string // what reading the token file gave: "" when it may not
	Received []string
}

// Promise 9: 100 times another process, of another user where the test runs as
// root, holds the port in the daemon's place, answers in one of the known ways,
// and gets not one byte of the token or of the arguments: nonces are all of it.
func TestAnotherUserSquats(t *testing.T) {
	if how := os.Getenv("HB_TEST_SQUATTER"); how != "" {
		squatHere(t, how)
		return
	}
	h := newHome(t)
	h.start()
	tok, err := token.Read(h.file)
	if err != nil {
		t.Fatal(err)
	}
	rounds, uid := soak.Rounds(5, 100), os.Getuid()
	if uid == 0 {
		uid = nobody
	}
	ways := slices.Sorted(maps.Keys(behaviours("", "")))
	sent, wrong, dials := 0, 0, 0
	for i := range rounds {
		how := ways[i*5%len(ways)]
		s := startSquatter(t, how, h)
		c := h.clientWith(func(o *client.Options) { o.URL.Host = s.addr })
		c.SetPatience(250 * time.Millisecond)
		_, err := c.Run(t.Context(), &api.RunRequest{ID: "a", Args: json.RawMessage(`{"canary":"in the arguments"}`)})
		if code(t, err) != "BRIDGE_BAD_ANSWER" || !strings.Contains(err.Error(), "another program holds ") {
			t.Errorf("%s: %v", how, err)
		}
		r := s.end(t)
		if r.UID != uid || uid == nobody && r.Token != "" {
			t.Errorf("%s: the squatter is user %d and read %d bytes of the token file", how, r.UID, len(r.Token))
		}
		if len(r.Received) == 0 || len(r.Received) > 2 {
			t.Errorf("%s: dialled %d times, want once or twice", how, len(r.Received))
		}
		for _, text := range r.Received {
			dials++
			if !onlyNonce.MatchString(text) {
				wrong += len(text)
				t.Errorf("%s: the squatter received %q", how, text)
			}
			if strings.Contains(text, tok) || strings.Contains(text, "canary") {
				sent++
			}
		}
	}
	if n := h.backend.calls.Load(); n != 0 || sent != 0 {
		t.Errorf("%d calls reached the daemon, %d times the token or the arguments were sent", n, sent)
	}
	soak.Measured(t, "%d squats by a process of user %d, in %d ways: %d connections, %d bytes other than a nonce, token or arguments %d times", rounds, uid, min(rounds, len(ways)), dials, wrong, sent)
}

// A squatting is a process that squats.
type squatting struct {
	cmd   *exec.Cmd
	addr  string
	stdin io.Closer
	said  *bufio.Reader // one line with the address, one with the report
}

func startSquatter(t *testing.T, how string, h *home) *squatting {
	t.Helper()
	said, says, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = said.Close() })
	s := &squatting{cmd: exec.Command(os.Args[0], "-test.run=^TestAnotherUserSquats$"), said: bufio.NewReader(said)}
	s.cmd.Env = append(os.Environ(), "HB_TEST_SQUATTER="+how, "HB_TEST_DAEMON="+h.addr, "HB_TEST_TOKEN_FILE="+h.file)
	s.cmd.Stderr = os.Stderr
	s.cmd.ExtraFiles = []*os.File{says}
	if s.stdin, err = s.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = says.Close()
	line, err := s.said.ReadString('\n')
	if err != nil {
		t.Fatalf("the squatter did not start: %v, %v", err, s.cmd.Wait())
	}
	s.addr = strings.TrimSpace(line)
	return s
}

// end tells the process to stop, and returns its report.
func (s *squatting) end(t *testing.T) (r report) {
	t.Helper()
	_ = s.stdin.Close()
	line, err := s.said.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &r)
	}
	if wait := s.cmd.Wait(); err != nil || wait != nil {
		t.Fatalf("the squatter: %v, %v", err, wait)
	}
	return r
}

// squatHere is the other process.
func squatHere(t *testing.T, how string) {
	if os.Getuid() == 0 {
		for _, err := range []error{syscall.Setgroups(nil), syscall.Setgid(nobody), syscall.Setuid(nobody)} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	r := report{UID: os.Getuid()}
	text, err := os.ReadFile(os.Getenv("HB_TEST_TOKEN_FILE"))
	if err != nil && !errors.Is(err, fs.ErrPermission) {
		t.Fatal(err)
	}
	r.Token = string(text)
	s := squat(t, behaviours(strings.Repeat("0", 64), os.Getenv("HB_TEST_DAEMON"))[how])
	out := os.NewFile(3, "report")
	if _, err := io.WriteString(out, s.addr+"\n"); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, os.Stdin) // until the caller has its answer
	r.Received = s.all()
	if err := json.NewEncoder(out).Encode(r); err != nil {
		t.Fatal(err)
	}
}
