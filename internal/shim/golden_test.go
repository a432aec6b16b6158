package shim

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/internal/golden"
)

// TestProtocol compares raw lines: what a client sends and gets, and what the
// bridge is asked. testdata/mcp/README.md says what the sections mean.
func TestProtocol(t *testing.T) {
	golden.Run(t, "testdata/mcp/*.txtar", []string{"client", "bridge"}, []string{"server", "requests"}, func(t *testing.T, c *golden.Case) {
		b := newBridge(t)
		for _, line := range lines(c.Input("bridge")) {
			parts := strings.SplitN(line, " ", 3)
			if len(parts) != 3 {
				t.Fatalf("bridge line %q is not METHOD PATH BODY", line)
			}
			b.answer(parts[0]+" "+parts[1], parts[2])
		}
		s := open(t, New(Options{Client: b.client(), Version: "test"}))
		var got []string
		for _, line := range lines(c.Input("client")) {
			s.send(line)
			if answered(line) {
				got = append(got, s.receive())
			}
		}
		c.Want("server", strings.Join(got, "\n"))
		if reqs := b.requests(); len(reqs) > 0 || c.Has("requests") {
			c.Want("requests", strings.Join(reqs, "\n"))
		}
	})
}

func lines(section []byte) []string {
	if len(section) == 0 {
		return nil
	}
	return strings.Split(string(section), "\n")
}

// answered reports whether a client's line gets an answer: requests do, and so
// do lines that are no messages.
func answered(line string) bool {
	var m struct {
		ID     json.RawMessage
		Method string
	}
	return json.Unmarshal([]byte(line), &m) != nil || m.ID != nil || m.Method == ""
}
