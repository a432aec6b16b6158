package shim

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// Whatever the arguments are, reading them ends with members that are bytes of
// what came, or with a refusal that is not empty.
func FuzzArguments(f *testing.F) {
	f.Add([]byte(`{"id":"a","args":{"n":9007199254740993},"max_pages":3}`))
	f.Add([]byte(`{"id":"\ud800","id":1}`))
	f.Add([]byte(`[1]`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !json.Valid(raw) {
			return // the transport has seen to that
		}
		for _, m := range metaTools() {
			a, err := parseArguments(m, raw)
			if err != nil {
				if err.Error() == "" {
					t.Fatal("an empty refusal")
				}
				continue
			}
			for name, value := range a.members {
				if !bytes.Contains(raw, value) {
					t.Fatalf("%s became %s", name, value)
				}
			}
		}
	})
}

// What is read without the SDK is what the SDK reads, and an answer is written
// as the SDK writes it.
func FuzzEnvelope(f *testing.F) {
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":9007199254740992,"method":"tools/call","params":{"name":"a","arguments":{"id":"x"}}}`,
		` { "params" : null , "method" : "x" , "id" : "a" , "jsonrpc" : "2.0" } `,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":1,"id":2,"method":"a","method":"b"}`,
		`{"jsonrpc":"2.0","\u0069d":1,"method":"a"}`,
		`{"jsonrpc":"2.0","id":-9007199254740993,"method":"a"}`,
		`{"jsonrpc":"2.0","id":-0,"method":"","params":[1]}`,
		`{"jsonrpc":"2.0","id":1,"result":{"a":"b"}}`,
		`{"jsonrpc":"2.0","id":null,"method":"a","error":{}}`,
		`{"jsonrpc":"2.0","id":"<","method":"a&b"}`,
		`{"jsonrpc":"2.0","ID":1,"Method":"a"}`,
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		line = bytes.TrimSpace(line)
		if len(line) == 0 || !json.Valid(line) {
			return // refused before
		}
		e := look(line)
		got := e.request()
		if e.deep || got == nil {
			return
		}
		m, err := jsonrpc.DecodeMessage(line)
		want, isRequest := m.(*jsonrpc.Request)
		if err != nil || !isRequest {
			t.Fatalf("%s: the SDK says %T, %v", line, m, err)
		}
		keepID(want, e.id)
		if want.Method == "notifications/cancelled" {
			want.Params = got.Params // keepID respells an id in it; such a message is left to the SDK
		}
		if got.Method != want.Method || got.ID != want.ID || !bytes.Equal(got.Params, want.Params) {
			t.Fatalf("%s: %q %v %s, the SDK reads %q %v %s", line, got.Method, got.ID, got.Params, want.Method, want.ID, want.Params)
		}
		if !got.IsCall() {
			return
		}
		resp := &jsonrpc.Response{ID: got.ID, Result: json.RawMessage(`{"a":"\u003c"}`)}
		written, err := jsonrpc.EncodeMessage(resp)
		if ours := envelop(resp); err != nil || !bytes.Equal(ours, written) {
			t.Fatalf("%s, the SDK writes %s, %v", ours, written, err)
		}
	})
}
