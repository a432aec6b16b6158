//go:build unix

package autostart

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A program that hangs is told from one that failed and from one that is not
// there.
func TestRunHangs(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if d := cmp.Diff(Output{Code: -1, Stderr: "it did not answer in time"}, run(ctx, "sleep", "60")); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(Output{Code: 3, Stdout: "out\n"}, run(t.Context(), "sh", "-c", "echo out; exit 3")); d != "" {
		t.Error(d)
	}
	if o := run(t.Context(), "/nowhere/to-be-found"); o.Code != -1 || o.Err == nil {
		t.Errorf("%+v", o)
	}
}
