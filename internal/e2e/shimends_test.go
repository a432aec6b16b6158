//go:build unix

package e2e

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/soak"
)

// TestShimEndsWithItsClient: the client goes away while a call is in flight, by
// closing the shim's input, by a signal, or by dying with both ends open. hb-rest
// is gone within two seconds, and the API's request is given up: nothing stays
// behind.
func TestShimEndsWithItsClient(t *testing.T) {
	arrived, gone := make(chan struct{}, 8), make(chan struct{}, 8)
	up := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		<-r.Context().Done()
		gone <- struct{}{}
	}))
	t.Cleanup(up.Close)
	home := filepath.Join(t.TempDir(), "home")
	p := startDaemon(t, home, "HB_WRAP_ALLOW_PRIVATE=1")
	doc := `{"schemaVersion":1,"id":"slow","name":"S","request":{"url":"` + up.URL + `/"}}`
	if _, err := p.client.Change(t.Context(), &api.ChangeRequest{Action: "create", Wrapper: []byte(doc)}); err != nil {
		t.Fatal(err)
	}
	dir, err := build()
	if err != nil {
		t.Fatal(err)
	}
	const (
		soon  = time.Second             // nothing is waited for
		later = 2500 * time.Millisecond // two seconds, on a busy machine
	)
	type way struct {
		name  string
		limit time.Duration
		end   func(cmd *exec.Cmd, in, out io.Closer)
	}
	ended, slowest := 0, map[time.Duration]time.Duration{}
	for _, tt := range slices.Repeat([]way{
		{"input closed", later, func(_ *exec.Cmd, in, _ io.Closer) { _ = in.Close() }},
		{"both closed", later, func(_ *exec.Cmd, in, out io.Closer) { _, _ = out.Close(), in.Close() }},
		{"SIGTERM", soon, func(cmd *exec.Cmd, _, _ io.Closer) { _ = cmd.Process.Signal(syscall.SIGTERM) }},
		{"SIGINT", soon, func(cmd *exec.Cmd, _, _ io.Closer) { _ = cmd.Process.Signal(syscall.SIGINT) }},
		{"SIGTERM while it ends", soon, func(cmd *exec.Cmd, in, _ io.Closer) { _, _ = in.Close(), cmd.Process.Signal(syscall.SIGTERM) }},
	}, soak.Rounds(1, 20)) {
		t.Run(tt.name, func(t *testing.T) {
			cmd := exec.Command(filepath.Join(dir, "hb-rest"))
			cmd.Env = []string{"HB_WRAP_HOME=" + home, "HB_WRAP_URL=" + p.url, "HB_MCP_LOG=0"}
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			over := make(chan error, 1)
			t.Cleanup(func() { _ = cmd.Process.Kill() })
			lines := bufio.NewReader(out)
			for _, line := range []string{
				`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`,
				`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
				`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wrap_run","arguments":{"id":"slow"}}}`,
			} {
				if _, err := io.WriteString(in, line+"\n"); err != nil {
					t.Fatal(err)
				}
			}
			if first, err := lines.ReadString('\n'); err != nil || !strings.Contains(first, `"id":0`) {
				t.Fatalf("%v %s", err, first)
			}
			<-arrived
			start := time.Now()
			tt.end(cmd, in, out)
			go func() {
				_, err := cmd.Process.Wait()
				over <- err
			}()
			select {
			case <-over:
				took := time.Since(start)
				if took > tt.limit {
					t.Errorf("ended after %v", took)
				}
				ended++
				slowest[tt.limit] = max(slowest[tt.limit], took)
			case <-time.After(20 * time.Second):
				t.Fatal("hb-rest is still there")
			}
			select {
			case <-gone:
			case <-time.After(10 * time.Second):
				t.Error("the API's request goes on")
			}
		})
	}
	soak.Measured(t, "%d times the client went away in five ways with a call in flight: hb-rest was gone within %v when its input closed, within %v after a signal",
		ended, slowest[later].Round(time.Millisecond), slowest[soon].Round(time.Millisecond))
}
