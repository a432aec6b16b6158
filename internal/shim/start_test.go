package shim

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// However a session begins, whoever asks for tools or calls one sees all ten,
// also fifty at once, and no client hears that they have changed.
func TestTenToolsFromTheStart(t *testing.T) {
	const initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	list := func(id int) string { return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/list"}`, id) }
	for name, begin := range map[string][]string{
		"as it should":    {handshake, initialized},
		"not initialized": {handshake},
		"list before":     {list(1), handshake, initialized},
		"ping before":     {`{"jsonrpc":"2.0","id":1,"method":"ping"}`, handshake, initialized},
		"notice before":   {initialized, handshake, initialized},
		"in one batch":    {"[" + list(1) + "," + handshake + "," + initialized + "]"},
	} {
		for _, limit := range []int{0, 40} {
			t.Run(fmt.Sprintf("%s, %d", name, limit), func(t *testing.T) {
				b := newBridge(t)
				b.answer("GET /wrap/manifest", `{"revision":1,"wrappers":[]}`)
				b.answer("GET /wrap/status", `{"ok":true,"revision":1}`)
				s := open(t, New(Options{Client: b.client(), Version: "test", MaxTools: limit}))
				var lines []string
				got := make(chan string, 200)
				go func() {
					for {
						line, err := s.out.ReadString('\n')
						if err != nil {
							close(got)
							return
						}
						got <- line
					}
				}()
				lines = append(lines, begin...)
				for i := range 25 {
					lines = append(lines, list(100+i), fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"wrap_list","arguments":{}}}`, 200+i))
				}
				s.send(strings.Join(lines, "\n"))
				lists, calls := 0, 0
				quiet := time.After(20 * time.Second)
				for {
					var line string
					select {
					case line = <-got:
					case <-quiet:
						if lists != 25 || calls != 25 {
							t.Errorf("%d lists and %d calls were answered", lists, calls)
						}
						return
					}
					var m struct {
						ID     int
						Method string
						Result *struct{ Tools []json.RawMessage }
					}
					if err := json.Unmarshal([]byte(line), &m); err != nil {
						t.Fatal(err)
					}
					switch {
					case m.Method != "":
						t.Errorf("sent on its own: %s", line)
					case m.ID < 100: // what came too early may be refused
					case m.Result == nil:
						t.Errorf("%s", line)
					case m.ID < 200:
						if lists++; len(m.Result.Tools) != 10 {
							t.Errorf("%d tools", len(m.Result.Tools))
						}
					default:
						calls++
					}
					if lists == 25 && calls == 25 {
						quiet = time.After(60 * time.Millisecond) // the SDK tells of changes after 10 ms
					}
				}
			})
		}
	}
}
