package shim

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestMalformed: what a client with a bug sends. Each line is answered, or is
// one that gets no answer by the protocol, and the session goes on: the ping
// behind it is answered.
func TestMalformed(t *testing.T) {
	call := func(id, params string) string {
		return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":` + params + `}`
	}
	frame := func(n int) string { // a request of n bytes with its line feed
		head, tail := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wrap_reload","arguments":{"x":"`, `"}}}`
		return head + strings.Repeat("x", n-len(head)-len(tail)-1) + tail
	}
	const none = ""                               // no answer
	tests := []struct{ name, line, want string }{ // want is in the answer
		{"no JSON", `hello`, `"id":null,"error":{"code":-32700`},
		{"cut off", `{"jsonrpc":"2.0","id":1,"method":"tools/li`, `"id":null,"error":{"code":-32700`},
		{"a text", `"ping"`, `"error":{"code":-32600`},
		{"a number", `5`, `"error":{"code":-32600`},
		{"null", `null`, `"error":{"code":-32600`},
		{"a zero byte", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"pi\x00ng\"}", `"error":{"code":-32700`},
		{"empty object", `{}`, `"error":{"code":-32600`},
		{"empty batch", `[]`, `"id":null,"error":{"code":-32600,"message":"an empty batch"}`},
		{"batch of nothing good", `[1]`, `"error":{"code":-32600`},
		{"no version", `{"id":7,"method":"ping"}`, `"id":7,"error":{"code":-32600`},
		{"another version", `{"jsonrpc":"1.0","id":7,"method":"ping"}`, `"id":7,"error":{"code":-32600`},
		{"a method that is a number", `{"jsonrpc":"2.0","id":7,"method":5}`, `"id":7,"error":{"code":-32600`},
		{"an id that is an object", `{"jsonrpc":"2.0","id":{},"method":"ping"}`, `"error":{"code":-32600`},
		{"an id that is true", `{"jsonrpc":"2.0","id":true,"method":"ping"}`, `"error":{"code":-32600`},
		{"an unknown method", `{"jsonrpc":"2.0","id":7,"method":"tools/burn"}`, `"id":7,"error":{"code":-32601`},
		{"an unknown notification", `{"jsonrpc":"2.0","method":"notifications/burn"}`, none},
		{"a method as a notification", `{"jsonrpc":"2.0","method":"tools/list"}`, none},
		{"a notification with null as id", `{"jsonrpc":"2.0","id":null,"method":"notifications/initialized"}`, none},
		{"a call without an id", `{"jsonrpc":"2.0","method":"tools/call","params":{"name":"wrap_reload"}}`, none},
		{"an answer nobody waits for", `{"jsonrpc":"2.0","id":99,"result":{}}`, none},
		{"the end of a call that is not there", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"nope"}}`, none},
		{"the end of nothing", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":[]}`, none},
		{"progress of nothing", `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}`, none},
		{"no params", `{"jsonrpc":"2.0","id":7,"method":"tools/call"}`, `"id":7,"error":{"code":-3260`},
		{"params null", call("7", `null`), `"id":7,"error":{"code":-3260`},
		{"params an array", call("7", `["wrap_list"]`), `"id":7,"error":{"code":-3260`},
		{"no name", call("7", `{}`), `"id":7,"error":{"code":-32602`},
		{"a name that is a number", call("7", `{"name":5}`), `"id":7,"error":{"code":-3260`},
		{"an unknown tool", call("7", `{"name":"wrap_burn"}`), `"id":7,"error":{"code":-32602,"message":"unknown tool \"wrap_burn\"; there are wrap_list, wrap_get,`},
		{"arguments a text", call("7", `{"name":"wrap_get","arguments":"{}"}`), `BAD_REQUEST: arguments of wrap_get must be an object, not a string`},
		{"arguments an array", call("7", `{"name":"wrap_get","arguments":[]}`), `BAD_REQUEST: arguments of wrap_get must be an object, not an array`},
		{"arguments twice", call("7", `{"name":"wrap_reload","arguments":{},"arguments":{"x":1}}`), `"id":7,`},
		{"bytes that are not UTF-8", call("7", "{\"name\":\"wrap_get\",\"arguments\":{\"id\":\"\xff\xfe\"}}"), `"id":7,`},
		{"half a surrogate pair", call("7", `{"name":"wrap_get","arguments":{"id":"\ud800"}}`), `BAD_REQUEST: id: holds half of a surrogate pair`},
		{"deep", call("7", `{"name":"wrap_get","arguments":`+strings.Repeat("[", 5000)+strings.Repeat("]", 5000)+`}`), `"id":7,"error":{"code":-32600,"message":"a message nested over 1000 levels deep was not read"`},
		{"a huge id", call(strings.Repeat("9", 4000), `{"name":"wrap_reload"}`), `"id":9999`},
		{"a handshake again", strings.Replace(handshake, `"id":0`, `"id":7`, 1), `"id":7,`},
		{"the longest line", frame(maxFrame), `BAD_REQUEST: wrap_reload has no argument \"x\"`},
		{"a longer line", frame(maxFrame + 1), `"id":null,"error":{"code":-32600,"message":"a message over 16 MiB was not read"}`},
		{"a far longer line", strings.Repeat("x", maxFrame+1<<20), `"id":null,"error":{"code":-32600,"message":"a message over 16 MiB was not read"}`},
	}
	b := newBridge(t)
	b.answer("GET /wrap/manifest", `{"revision":1,"wrappers":[]}`)
	s := ready(t, New(Options{Client: b.client(), Version: "test"}))
	for i, tt := range tests {
		s.send(tt.line)
		if tt.want != none {
			if got := s.receive(); !strings.Contains(got, tt.want) {
				t.Errorf("%s: %.300s\nwant %s", tt.name, got, tt.want)
			}
		}
		ping := fmt.Sprintf(`"ping %d"`, i)
		s.send(`{"jsonrpc":"2.0","id":` + ping + `,"method":"ping"}`)
		if got, want := s.receive(), `{"jsonrpc":"2.0","id":`+ping+`,"result":{}}`; got != want {
			t.Fatalf("after %s: %.300s", tt.name, got)
		}
	}
	// A batch, whose answers come one by one.
	s.send(`[` + call("1", `{"name":"wrap_reload"}`) + `,` + call("2", `{"name":"wrap_reload"}`) + `]`)
	for range 2 {
		if got := s.receive(); !strings.Contains(got, "Revision 1: 0 wrappers.") {
			t.Errorf("batch: %s", got)
		}
	}
}

// TestOneIDTwice: two calls in flight under one id. The first is answered; the
// session goes on.
func TestOneIDTwice(t *testing.T) {
	b := newBridge(t)
	arrived, release := make(chan struct{}, 2), make(chan struct{})
	b.hold = func(*http.Request) { arrived <- struct{}{}; <-release }
	s := ready(t, New(Options{Client: b.client(), Version: "test"}))
	const call = `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"wrap_get","arguments":{"id":"a"}}}`
	s.send(call)
	<-arrived
	s.send(call)
	s.send(`{"jsonrpc":"2.0","id":6,"method":"ping"}`)
	var got []string
	for range 2 {
		if got = append(got, s.receive()); strings.Contains(got[len(got)-1], `"id":6`) {
			break
		}
	}
	close(release)
	if last := got[len(got)-1]; !strings.Contains(last, `"id":6,"result":{}`) {
		t.Errorf("the ping behind: %q", got)
	}
	if r := s.receive(); !strings.Contains(r, `"id":5,`) {
		t.Errorf("the call: %s", r)
	}
}

// TestBeforeTheHandshake: a client that does not wait for it is refused or
// answered, and can still shake hands.
func TestBeforeTheHandshake(t *testing.T) {
	b := newBridge(t)
	b.answer("GET /wrap/manifest", `{"revision":1,"wrappers":[]}`)
	s := open(t, New(Options{Client: b.client(), Version: "test"}))
	s.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	if r := s.reply(); r.Error == nil && len(r.Result.Tools) != 10 {
		t.Errorf("%+v", r)
	}
	s.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	s.send(handshake)
	if r := s.reply(); r.Result.ProtocolVersion != "2025-06-18" {
		t.Errorf("%+v", r)
	}
	if got := s.text("wrap_reload", "{}", false); got != "Revision 1: 0 wrappers." {
		t.Errorf("%q", got)
	}
}
