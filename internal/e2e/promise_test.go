//go:build unix

package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/soak"
)

// A second daemon of the same home is harmless: the program ends within two
// seconds with an exit code other than 0, and not one byte of the token file and
// of the store is another; the first goes on. It tries the first one's port and
// another one in turn. One of the two seconds it waits for the store's lock; what
// else the machine does may take the other, so that late is three times in a row.
func TestSecondProgram(t *testing.T) {
	t.Parallel()
	dir, err := build()
	if err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(t.TempDir(), "home")
	p := startDaemon(t, home)
	if _, err := p.client.Change(t.Context(), &api.ChangeRequest{Action: "create", Wrapper: document("w", "one")}); err != nil {
		t.Fatal(err)
	}
	bytes := func() (both [2]string) {
		t.Helper()
		for i, name := range []string{"token", "store.db"} {
			b, err := os.ReadFile(filepath.Join(home, "wrap", name))
			if err != nil {
				t.Fatal(err)
			}
			both[i] = string(b)
		}
		return both
	}
	before := bytes()
	const limit = 2 * time.Second
	rounds := soak.Rounds(2, 100)
	var slowest time.Duration
	changed, wrong, late := 0, 0, 0
	for i := range rounds {
		addr := "127.0.0.1:0"
		if i%2 == 0 {
			addr = strings.TrimPrefix(p.url, "http://")
		}
		for try := range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			cmd := exec.CommandContext(ctx, filepath.Join(dir, "hbrestd"), "run")
			cmd.Env = []string{"HB_WRAP_HOME=" + home, "HB_WRAP_ADDR=" + addr}
			at := time.Now()
			out, err := cmd.CombinedOutput()
			took := time.Since(at)
			cancel()
			slowest = max(slowest, took)
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() <= 0 || !strings.Contains(string(out), "hbrestd: hint:") || took > limit && try == 2 {
				wrong++
				t.Errorf("at %s it ended after %v with %v:\n%s", addr, took, err, out)
			}
			if took <= limit {
				break
			}
			late++
		}
		if bytes() != before {
			changed++
			t.Errorf("round %d: the token file or the store has changed", i)
		}
		if got, err := p.client.Wrapper(t.Context(), "w"); err != nil || len(got) == 0 {
			t.Fatalf("round %d: the first daemon: %v", i, err)
		}
	}
	soak.Measured(t, "%d starts of a second daemon: %d wrong ends, %d changed the token file or the store; %d over %v, the slowest ended after %v", rounds, wrong, changed, late, limit, slowest.Round(time.Millisecond))
}

// An issuer is a token endpoint and an API in one. It takes the newest token
// alone, or none but the next, and writes down which it saw.
type issuer struct {
	*httptest.Server

	mu      sync.Mutex
	reached func(point string) // called on the way
	newest  int
	oldest  int   // tokens before it are refused
	seen    []int // the tokens that arrived at the API, in order
	odd     int   // requests to the endpoint that are no client credentials grant
}

// The points of a renewal, in its order.
var points = []string{"the API refuses", "the endpoint is asked", "the endpoint has answered", "the API has the new token"}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	s := &issuer{reached: func(string) {}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/token" {
			grant := r.PostFormValue("grant_type")
			s.mu.Lock()
			if grant != "client_credentials" || r.PostForm.Has("refresh_token") {
				s.odd++
			}
			s.newest++
			n := s.newest
			s.mu.Unlock()
			s.at(points[1])
			// The refresh token may be used once, says RFC 6749 of some: it is not to be used at all.
			_, _ = fmt.Fprintf(w, `{"access_token":"tok-%010d","refresh_token":"refresh-%010d","token_type":"Bearer","expires_in":3600}`, n, n)
			_ = http.NewResponseController(w).Flush()
			s.at(points[2])
			return
		}
		var n int
		_, _ = fmt.Sscanf(r.Header.Get("Authorization"), "Bearer tok-%d", &n)
		s.mu.Lock()
		s.seen = append(s.seen, n)
		good := n >= s.oldest
		s.mu.Unlock()
		if !good {
			s.at(points[0])
			w.WriteHeader(http.StatusUnauthorized)
		} else {
			s.at(points[3])
		}
		_, _ = io.WriteString(w, `{"ok":true}`)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *issuer) at(point string) {
	s.mu.Lock()
	reached := s.reached
	s.mu.Unlock()
	reached(point)
}

// kill -9 at 50 points of a renewal: an API refuses the token, and somewhere on
// the way to the next one the daemon dies. After each start the next call works,
// with one new token at most; a token that was replaced is never sent again once
// its successor was, a call sends two requests at most, and no refresh token is
// ever used. One that the API had refused and whose successor was not yet saved
// is tried once more: nothing else is known to the new process.
func TestKillDuringRenewal(t *testing.T) {
	up := newIssuer(t)
	p := newPerson(t, withFileKeyring(t)...)
	p.start()
	p.must("client-secret-1\n", "secret", "set", "key", "--stdin", "--oauth2", "--token-url", up.URL+"/token", "--client-id", "c1", "--auth-style", "body", "--host", "127.0.0.1", "--json")
	p.save(authed("w", up.URL+"/", "key"))
	run := func() error {
		_, err := p.daemon.client.Run(t.Context(), &api.RunRequest{ID: "w"})
		return err
	}
	if err := run(); err != nil {
		t.Fatal(err)
	}
	const seed = 22
	random := rand.New(rand.NewPCG(seed, seed))
	kills := soak.Rounds(4, 50)
	answered, reused, extra, failed := 0, 0, 0, 0
	var slowest time.Duration
	for i := range kills {
		point := points[i%len(points)]
		delay := time.Duration(0) // half of them just at the point
		if i/len(points)%2 == 1 {
			delay = time.Duration(random.IntN(5000)) * time.Microsecond
		}
		killed := make(chan struct{})
		var once sync.Once
		d := p.daemon
		up.mu.Lock()
		up.oldest = up.newest + 1
		up.reached = func(at string) {
			if at != point {
				return
			}
			once.Do(func() {
				kill := func() { _ = d.cmd.Process.Kill(); close(killed) }
				if delay == 0 {
					kill()
					return
				}
				go func() { time.Sleep(delay); kill() }()
			})
		}
		up.mu.Unlock()
		if err := run(); err == nil {
			answered++ // it was faster than its end
		}
		select {
		case <-killed:
		case <-time.After(20 * time.Second):
			t.Fatalf("kill %d (seed %d): %s was not reached", i+1, seed, point)
		}
		_ = d.wait()
		up.mu.Lock()
		up.reached = func(string) {}
		before, minted := len(up.seen), up.newest
		up.mu.Unlock()

		p.start()
		at := time.Now()
		if err := run(); err != nil {
			failed++
			t.Errorf("kill %d (seed %d, %s, %v later): the next call: %v", i+1, seed, point, delay, err)
		}
		slowest = max(slowest, time.Since(at))
		up.mu.Lock()
		if n := up.newest - minted; n > 1 {
			extra++
			t.Errorf("kill %d (%s): %d new tokens for the next call", i+1, point, n)
		}
		if n := len(up.seen) - before; n > 2 {
			t.Errorf("kill %d (%s): the next call sent %d requests: %v", i+1, point, n, up.seen[before:])
		}
		up.mu.Unlock()
	}
	p.stop()
	newest := 0
	for _, n := range up.seen {
		if n < newest {
			reused++
			t.Errorf("token %d arrived after token %d", n, newest)
		}
		newest = max(newest, n)
	}
	if up.odd > 0 {
		t.Errorf("%d requests to the token endpoint are no client credentials grant", up.odd)
	}
	soak.Measured(t, "%d kills in a renewal (%d calls were answered before it): %d replaced tokens sent again, %d refresh tokens used, %d mints too many, %d next calls failed; the slowest took %v",
		kills, answered, reused, up.odd, extra, failed, slowest.Round(time.Millisecond))
}
