//go:build unix

package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/e2e/stdio"
	"github.com/hyperbolic-gateway/hb-rest/internal/soak"
)

// packed builds the programs, and the least of all servers, as packages hold
// them, and names their folder.
var packed = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(binDir, "packed")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", dir+string(filepath.Separator), "./cmd/hbrestd", "./cmd/hb-rest", "./cmd/hbrestd-keyring", "./internal/e2e/bare")
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", &buildError{err, bytes.TrimSpace(out)}
	}
	return dir, nil
})

type buildError struct {
	err error
	out []byte
}

func (e *buildError) Error() string { return e.err.Error() + "\n" + string(e.out) }

// What a download costs. A limit is for what is linked today and a little
// more: who passes it has linked something large, and should know why.
func TestSizes(t *testing.T) {
	dir, err := packed()
	if err != nil {
		t.Fatal(err)
	}
	for name, limit := range map[string]int64{"hbrestd": 27e6, "hb-rest": 9e6, "hbrestd-keyring": 6e6} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("measured: size of %s: %.2f MB", name, float64(info.Size())/1e6)
		if info.Size() > limit {
			t.Errorf("%s has %d bytes, the limit is %d", name, info.Size(), limit)
		}
	}
}

// What lies in memory while nobody asks for anything.
func TestMemoryAtRest(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux says what a process has in memory")
	}
	dir, err := packed()
	if err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(t.TempDir(), "home")
	p := startProgram(t, filepath.Join(dir, "hbrestd"), home)
	shim := exec.Command(filepath.Join(dir, "hb-rest"))
	shim.Env = []string{"HB_WRAP_HOME=" + home, "HB_WRAP_URL=" + p.url}
	mcp, err := stdio.Start(shim, "2025-11-25")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = mcp.Close() }()
	if r, err := mcp.Call("wrap_list", []byte(`{}`)); err != nil || r.IsError {
		t.Fatalf("%v, %+v", err, r)
	}
	for name, at := range map[string]struct {
		pid   int
		limit int64
	}{"hbrestd": {p.cmd.Process.Pid, 30 << 20}, "hb-rest": {shim.Process.Pid, 12 << 20}} {
		got := resident(t, at.pid, true)
		t.Logf("measured: %s at rest: %.1f MiB", name, float64(got)/(1<<20))
		if got > at.limit {
			t.Errorf("%s has %d bytes in memory, the limit is %d", name, got, at.limit)
		}
	}
}

// How soon hb-rest answers initialize, beside the least of all servers. The two
// take turns, and the quickest time of each counts: all that a busy machine does
// is to add. The aim is 1.2; the limit leaves room for what still disturbs.
func TestStart(t *testing.T) {
	dir, err := packed()
	if err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(t.TempDir(), "home")
	p := startProgram(t, filepath.Join(dir, "hbrestd"), home)
	start := func(name string) time.Duration {
		cmd := exec.Command(filepath.Join(dir, name))
		cmd.Env = []string{"HB_WRAP_HOME=" + home, "HB_WRAP_URL=" + p.url}
		at := time.Now()
		c, err := stdio.Start(cmd, "2025-11-25") // returns with the answer to initialize
		took := time.Since(at)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		return took
	}
	var bare, ours []time.Duration
	least := 0.0
	for range 4 { // a busy machine may disturb one of the two all along: more turns until both had a quiet one
		for range 30 {
			bare, ours = append(bare, start("bare")), append(ours, start("hb-rest"))
		}
		if least = ratio(slices.Min(ours), slices.Min(bare)); least <= 1.4 {
			break
		}
	}
	soak.Measured(t, "start to the answer of initialize: %v (bare server %v), %.2f times; medians %v and %v, %.2f times",
		slices.Min(ours), slices.Min(bare), least, middle(ours), middle(bare), ratio(middle(ours), middle(bare)))
	if least > 1.4 {
		t.Errorf("hb-rest takes %.2f times as long as a bare server", least)
	}
}

func ratio(a, b time.Duration) float64 { return float64(a) / float64(b) }

func middle(list []time.Duration) time.Duration {
	slices.Sort(list)
	return list[len(list)/2]
}
