package tui_test

import (
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/hyperbolic-gateway/hb-rest/internal/golden"
	"github.com/hyperbolic-gateway/hb-rest/internal/tui"
)

// talk is the panel line by line: what is answered, and all that it prints.
func talk(t *testing.T, d *daemon, answers string) string {
	t.Helper()
	var out strings.Builder
	synctest.Test(t, func(t *testing.T) {
		d.changed = make(chan struct{})
		err := tui.RunLines(t.Context(), tui.Options{
			Backend: d, Header: header, Input: strings.NewReader(answers), Output: &out,
			Ask: func(string) ([]byte, error) { return []byte("value-1234567890"), nil },
		})
		if err != nil {
			t.Errorf("error %v", err)
		}
	})
	return out.String()
}

// Each case says what is typed, and then all that is printed.
func TestLines(t *testing.T) {
	golden.Run(t, "testdata/lines/*.txtar", []string{"world", "typed"}, []string{"printed", "asked"}, func(t *testing.T, c *golden.Case) {
		world := "lively"
		if c.Has("world") {
			world = string(c.Input("world"))
		}
		d := worlds[world]()
		c.Want("printed", talk(t, d, string(c.Input("typed"))+"\n"))
		c.Want("asked", strings.Join(d.asked, "\n"))
	})
}

// Neither form of the panel prints a value, and what is answered to a question
// for a number is not read any further: a value may be typed next.
func TestLinesReadNoFurther(t *testing.T) {
	d := lively()
	if got := talk(t, d, "2\n2\n2\n"); strings.Contains(got, "value-1234567890") || !strings.Contains(got, "Saved weather-key.") {
		t.Errorf("printed %s", got)
	}
	if len(d.values) != 1 || string(d.values[0]) != strings.Repeat("\x00", 16) {
		t.Errorf("the values are %q, want one that was overwritten", d.values)
	}
	in := strings.NewReader("q\nrest")
	err := tui.RunLines(t.Context(), tui.Options{Backend: d, Input: in, Output: io.Discard})
	rest, _ := io.ReadAll(in)
	if diff := cmp.Diff("rest", string(rest)); diff != "" || err != nil {
		t.Errorf("left (-want +got):\n%s%v", diff, err)
	}
}

func TestLinesEndWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, w := io.Pipe()
	defer func() { _ = w.Close() }()
	if err := tui.RunLines(ctx, tui.Options{Backend: lively(), Input: r, Output: io.Discard}); err != context.Canceled {
		t.Errorf("error %v, want context.Canceled", err)
	}
}
