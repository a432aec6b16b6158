package e2e

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/e2e/stdio"
	"github.com/hyperbolic-gateway/hb-rest/internal/wrapper"
)

// TestReservedNames: the names that the daemon keeps from wrappers are those of
// the tools that hb-rest always has, and recall_memory. The two programs may not
// import each other's list.
func TestReservedNames(t *testing.T) {
	dir, err := build()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(dir, "hb-rest"))
	cmd.Env = []string{"HOME=" + t.TempDir(), "HB_WRAP_URL=http://127.0.0.1:9", "HB_MCP_LOG=0"} // no daemon
	c, err := stdio.Start(cmd, "2025-11-25")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	raw, err := c.Request("tools/list", json.RawMessage("{}"))
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		Result struct{ Tools []struct{ Name string } }
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		t.Fatal(err)
	}
	got := []string{"recall_memory"}
	for _, tool := range list.Result.Tools {
		got = append(got, tool.Name)
	}
	slices.Sort(got)
	want := wrapper.Reserved()
	slices.Sort(want)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-wrapper.Reserved +hb-rest)\n%s", d)
	}
}
