package shim

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// stateless is the first version without a handshake.
const stateless = "2026-07-28"

// meta is what a request of a stateless version says of itself.
func meta(version string) string {
	return fmt.Sprintf(`"_meta":{"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`, version)
}

// A reply is an answer of any kind.
type reply struct {
	ID     json.RawMessage
	Result struct {
		ProtocolVersion   string
		SupportedVersions []string
		Capabilities      json.RawMessage
		Tools             []struct{ Name string }
		Content           []struct{ Text string }
		IsError           bool
	}
	Error *struct {
		Code    int
		Message string
		Data    json.RawMessage
	}
}

func (c *session) reply() reply {
	c.t.Helper()
	var r reply
	line := c.receive()
	if err := json.Unmarshal([]byte(line), &r); err != nil {
		c.t.Fatalf("%v: %.300s", err, line)
	}
	return r
}

// TestEveryVersion: the list and a call in each version that the SDK speaks,
// with the handshake that belongs to it.
func TestEveryVersion(t *testing.T) {
	versions := mcp.SupportedProtocolVersions()
	if d := cmp.Diff([]string{stateless, "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}, versions); d != "" {
		t.Errorf("the SDK speaks other versions; say so in docs/api.md: %s", d)
	}
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			b := newBridge(t)
			b.publish(3, exposed("a"))
			s := open(t, New(Options{Client: b.client(), Version: "test", MaxTools: 40}))
			extra, params := "", ""
			if version == stateless {
				extra, params = ","+meta(version), `,"params":{`+meta(version)+`}`
				s.send(`{"jsonrpc":"2.0","id":0,"method":"server/discover","params":{` + meta(version) + `}}`)
				if r := s.reply(); r.Error != nil || cmp.Diff(versions, r.Result.SupportedVersions) != "" {
					t.Fatalf("discover: %+v", r)
				}
			} else {
				s.send(strings.Replace(handshake, "2025-06-18", version, 1))
				r := s.reply()
				if r.Error != nil || r.Result.ProtocolVersion != version || string(r.Result.Capabilities) != `{"tools":{"listChanged":true}}` {
					t.Fatalf("initialize: %+v", r)
				}
				s.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
			}
			s.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"` + params + `}`)
			if r := s.reply(); r.Error != nil || len(r.Result.Tools) != 11 || r.Result.Tools[0].Name != "wrap_a" {
				t.Errorf("tools/list: %+v", r)
			}
			b.answer("POST /wrap/run", `{"ok":true,"status":200,"durationMs":1,"wrapper":{"id":"a","name":"A"},"markdown":"# A","meta":{"mode":"table","selected":1,"rendered":1,"truncated":false}}`)
			for _, arguments := range []string{"", `,"arguments":null`, `,"arguments":{}`} {
				for name, want := range map[string]string{"wrap_reload": "Revision 3: 1 wrapper, 1 tool.", "wrap_a": "# A"} {
					s.send(`{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"` + name + `"` + arguments + extra + `}}`)
					if r := s.reply(); r.Error != nil || r.Result.IsError || len(r.Result.Content) != 1 || r.Result.Content[0].Text != want {
						t.Errorf("%s%s: %+v", name, arguments, r)
					}
				}
			}
			for _, req := range b.requests() {
				if strings.HasPrefix(req, "POST /wrap/run") && req != `POST /wrap/run {"id":"a","args":{},"format":"markdown"}` {
					t.Errorf("asked %s", req)
				}
			}
		})
	}
}

// TestUnknownVersion: a handshake in a version that nobody speaks, or in one
// that has none, gets the newest one with a handshake; a request that names an
// unknown one is told which there are.
func TestUnknownVersion(t *testing.T) {
	for _, version := range []string{"2099-01-01", "1999-01-01", stateless, "", "v1"} {
		s := open(t, New(Options{Client: newBridge(t).client(), Version: "test"}))
		s.send(strings.Replace(handshake, "2025-06-18", version, 1))
		if r := s.reply(); r.Error != nil || r.Result.ProtocolVersion != "2025-11-25" {
			t.Errorf("initialize %q: %+v", version, r)
		}
		s.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
		if r := s.reply(); len(r.Result.Tools) != 10 {
			t.Errorf("initialize %q: then %+v", version, r)
		}
	}
	s := open(t, New(Options{Client: newBridge(t).client(), Version: "test"}))
	s.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + meta("2099-01-01") + `}}`)
	r := s.reply()
	if r.Error == nil || !strings.Contains(string(r.Error.Data), stateless) {
		t.Errorf("a request of 2099: %+v", r)
	}
	s.send(`{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{` + meta(stateless) + `}}`)
	if r := s.reply(); len(r.Result.Tools) != 10 {
		t.Errorf("after it: %+v", r)
	}
}
