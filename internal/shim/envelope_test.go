package shim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Ids come back as the client wrote them: one that comes back with other
// digits is the answer of another call, or of none.
func TestIDsComeBackAsWritten(t *testing.T) {
	s := ready(t, New(Options{Client: newBridge(t).client(), Version: "test"}))
	for _, id := range []string{
		"0", "-1", "9007199254740991", "9007199254740992", "9007199254740993", "-9007199254740993",
		"9223372036854775807", "9223372036854775808", "18446744073709551615", "123456789012345678901234567890",
		"1.5", "1.0", "1e3", "-0", `""`, `"1"`, `"a"`, `"é"`, `"\u00e9"`, `"<&>"`, `"\u003c"`, `"\ud800"`, `"\""`, `"?"`,
		`"9007199254740993"`, `"\u0000as written:5"`, `"\u0000as written:\u0000as written:5"`,
	} {
		s.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"ping"}`)
		if got, want := s.receive(), `{"jsonrpc":"2.0","id":`+id+`,"result":{}}`; got != want {
			t.Errorf("\n got %s\nwant %s", got, want)
		}
		s.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"nope"}`)
		if got, want := s.receive(), `{"jsonrpc":"2.0","id":`+id+`,"error":{"code":-32601,"message":"method not found: \"nope\""}}`; got != want {
			t.Errorf("\n got %s\nwant %s", got, want)
		}
	}
}

// Two calls whose ids are one number to a float are two calls, and each can be
// cancelled.
func TestCloseIDsAreTwoCalls(t *testing.T) {
	b := newBridge(t)
	b.answer("POST /wrap/run", `{"ok":true,"status":200,"durationMs":1,"wrapper":{"id":"a.b","name":"A"},"markdown":"# A","meta":{"mode":"table","selected":1,"rendered":1,"truncated":false}}`)
	held, gone, release := make(chan struct{}), make(chan struct{}), make(chan struct{})
	b.hold = func(r *http.Request) {
		held <- struct{}{}
		select {
		case <-release:
		case <-r.Context().Done():
			close(gone)
		}
	}
	s := ready(t, New(Options{Client: b.client(), Version: "test"}))
	for _, id := range []string{"9007199254740992", "9007199254740993"} {
		s.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"wrap_run","arguments":{"id":"a.b"}}}`)
		<-held
	}
	s.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9007199254740993,"reason":"x"}}`)
	<-gone
	close(release)
	if got := s.receive(); !strings.Contains(got, `"id":9007199254740992,`) || !strings.Contains(got, "# A") {
		// The cancelled one is answered too, or not; never as the other.
		if got = s.receive(); !strings.Contains(got, `"id":9007199254740992,`) || !strings.Contains(got, "# A") {
			t.Errorf("got %s", got)
		}
	}
}

// A message that is not read is answered all the same, by its id.
func TestRefusalsCarryTheID(t *testing.T) {
	nested := func(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }
	list := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	call := func(id, args string) string { // args is at level 4
		return `{"jsonrpc":"2.0","method":"tools/call","params":{"name":"wrap_get","arguments":{"id":"x","y":` + args + `}},"id":` + id + `}`
	}
	deep := "a message nested over 1000 levels deep was not read"
	tests := map[string]struct{ in, id, message string }{
		"objects":              {call("7", nested(998)), "7", deep},
		"arrays":               {call(`"seven"`, list(998)), `"seven"`, deep},
		"over what JSON reads": {call("7", list(20000)), "7", deep},
		"id first, as digits":  {`{"id":9007199254740993,"jsonrpc":"2.0","method":"x","params":` + list(1000) + "}", "9007199254740993", deep},
		"an id inside":         {`{"jsonrpc":"2.0","id":1,"method":"x","params":{"id":2,"a":` + list(999) + "}}", "1", deep},
		"an id in a string":    {`{"jsonrpc":"2.0","id":1,"method":"x","params":["\"id\":2}",` + list(999) + "]}", "1", deep},
		"in a batch":           {"[" + call("7", list(998)) + "]", "7", deep},
		"none":                 {`{"jsonrpc":"2.0","method":"x","params":` + list(1000) + "}", "null", deep},
		"an object as id":      {`{"jsonrpc":"2.0","id":{"id":5},"method":"x","params":` + list(1000) + "}", "null", deep},
		"another version":      {`{"jsonrpc":"1.0","id":3,"method":"x"}`, "3", `not a JSON-RPC 2.0 message: invalid message version tag "1.0"; expected "2.0"`},
		"not JSON":             {`{"jsonrpc":"2.0","id":3,"method":x}`, "null", "not JSON: syntax error"},
		"not JSON, no end":     {`{"jsonrpc":"2.0","id":3,"method":"x`, "null", "not JSON: syntax error"},
	}
	s := ready(t, New(Options{Client: newBridge(t).client(), Version: "test"}))
	for name, tt := range tests {
		s.send(tt.in)
		var got struct {
			ID    json.RawMessage
			Error struct{ Message string }
		}
		if err := json.Unmarshal([]byte(s.receive()), &got); err != nil {
			t.Fatal(err)
		}
		if string(got.ID) != tt.id || got.Error.Message != tt.message {
			t.Errorf("%s: id %s, %q; want %s, %q", name, got.ID, got.Error.Message, tt.id, tt.message)
		}
	}
	// At the limit the tool itself is asked.
	s.send(call("8", nested(997)))
	if got := s.receive(); !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":8,"result":`) {
		t.Errorf("1000 levels: %s", got)
	}
}

func TestLook(t *testing.T) {
	for in, want := range map[string]string{
		``: "", `[`: "", `{`: "", `}`: "", `{}}`: "", `"id":1`: "", `{"id":1}`: "1", `{"id" : "a b" ,"x":1}`: `"a b"`, `{"\u0069d":1}`: "1",
		`{"id":1,"id":2}`: "2", `{"ID":1}`: "", `{"x":{"id":1}}`: "", `[{"id":1}]`: "", `{"id":[1]}`: "", `{"id":null}`: "", `{"id":true}`: "",
		`{"id":01}`: "", `{"id":"`: "", `{"id":"\`: "", `{"x":"id","y":1}`: "", `{"id":1`: "", `{"a":"}","id":5}`: "5",
	} {
		if got := string(look([]byte(in)).id); got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
	for n, want := range map[int]bool{1000: false, 1001: true} {
		if e := look([]byte(strings.Repeat("[", n))); e.deep != want {
			t.Errorf("%d levels: %v", n, e.deep)
		}
	}
}

// Whatever a line holds, looking at it ends, and what it calls an id is one.
func FuzzLook(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"x","params":{"id":"\"}"}}`))
	f.Add([]byte(`{"id":"\`))
	f.Fuzz(func(t *testing.T, line []byte) {
		id := look(line).id
		if id == nil {
			return
		}
		var v any
		if err := json.Unmarshal(id, &v); err != nil {
			if _, tooLarge := err.(*json.UnmarshalTypeError); !tooLarge {
				t.Fatalf("%s: %v", id, err)
			}
		}
		var m map[string]json.RawMessage
		if json.Unmarshal(line, &m) == nil {
			if d := cmp.Diff(string(m["id"]), string(id)); d != "" {
				t.Fatal(d)
			}
		}
	})
}

// A tool that is not there: the answer says which are.
func TestUnknownTool(t *testing.T) {
	for _, limit := range []int{0, 40} {
		s := ready(t, New(Options{Client: newBridge(t).client(), Version: "test", MaxTools: limit}))
		want := `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"unknown tool \"wrap_nope\"; there are wrap_list, wrap_get, wrap_secret_list, ` +
			`wrap_derive, wrap_create, wrap_update, wrap_delete, wrap_run, wrap_test, wrap_reload, and those of wrappers (tools/list); wrap_run calls every wrapper by its id"}}`
		if got := s.callTool("wrap_nope", "{}"); got != want {
			t.Errorf("\n got %s\nwant %s", got, want)
		}
		long := fmt.Sprintf("%0500d", 7)
		if got := s.callTool(long, "{}"); strings.Contains(got, long) || !strings.Contains(got, "00…") {
			t.Errorf("a long name: %s", got)
		}
	}
}
