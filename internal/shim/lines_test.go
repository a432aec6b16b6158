package shim

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// readBy is what a transport reads of one line.
func readBy(t *testing.T, tr mcp.Transport) (msgs []jsonrpc.Message, err error) {
	t.Helper()
	c, err := tr.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for {
		m, err := c.Read(context.Background())
		if err == io.EOF {
			return msgs, nil
		}
		if err != nil {
			return msgs, err
		}
		msgs = append(msgs, m)
	}
}

type closer struct{ io.Writer }

func (closer) Close() error { return nil }

// Whatever a line is spelled like, it is the message that the SDK's own
// transport reads of it, or, where that would end the session, it is answered.
func TestLinesAreReadAsTheSDKReadsThem(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 9))
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	space := func() string { return pick("", "", "", " ", "\t", "  ", "\r", " \r ") }
	value := func(key string) string {
		if r.IntN(6) == 0 {
			key = pick("jsonrpc", "id", "method", "params", "result", "error")
		}
		switch key {
		case "jsonrpc":
			return pick(`"2.0"`, `"2.0"`, `"2.0"`, `"2.0"`, `"2.0"`, `"2.\u0030"`, `"1.0"`, `2.0`, `null`, `""`, `" 2.0"`)
		case "id":
			return pick("1", "0", "-1", `"a"`, `""`, `"a b"`, `"\u0061"`, `"é"`, `"<"`, "1.5", "1e2", "-0", "null", "true", "[1]", `{"id":2}`, "9007199254740992",
				"9007199254740993", "-9007199254740993", "9223372036854775808", "1E400", `"1"`, `"\u0000as written:1"`, "\"\xff\"", "12345678901234567890123")
		case "method":
			return pick(`"ping"`, `"tools/list"`, `"tools/call"`, `"notifications/initialized"`, `""`, `"a\/b"`, `"a/b"`, `"é"`, `"<&>"`, `null`, `1`, `["ping"]`, `"\u0070ing"`, "\"\xff\"", `"\ud800"`)
		case "params":
			return pick(`{}`, `null`, `[]`, `[1,{"id":3}]`, `"x"`, `1`, `{"name":"wrap_get","arguments":{"id":"x","method":"y"}}`, `{ "a" : [ 1 , 2 ] }`, "{\"a\":\"\xff\"}", `{"a":1,"a":2}`, `{"a":"},\"id\":7"}`,
				`{"requestId":1}`, strings.Repeat("[", 900)+strings.Repeat("]", 900), `{"`+strings.Repeat("k", 5000)+`":"`+strings.Repeat(`\"`, 3000)+`"}`)
		case "error":
			return pick(`{"code":1,"message":"m"}`, `null`, `{}`, `"x"`, `{"code":"x"}`)
		}
		return pick(`{}`, `null`, `1`, `"x"`, `[[]]`, `{"id":5}`, `{"content":[]}`)
	}
	spell := func(key string) string {
		switch r.IntN(12) {
		case 0:
			return fmt.Sprintf(`"\u%04x%s"`, key[0], key[1:])
		case 1:
			return `"` + strings.ToUpper(key[:1]) + key[1:] + `"`
		}
		return `"` + key + `"`
	}
	object := func() string {
		keys := []string{"jsonrpc", "id", "method", "params"}
		for range r.IntN(3) {
			switch r.IntN(3) {
			case 0:
				i := r.IntN(len(keys))
				keys = append(keys[:i], keys[i+1:]...)
			case 1:
				keys = append(keys, pick("jsonrpc", "id", "method", "params", "result", "error", "x", "meta"))
			}
		}
		r.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
		var b strings.Builder
		b.WriteString("{" + space())
		for i, k := range keys {
			if i > 0 {
				b.WriteString("," + space())
			}
			b.WriteString(spell(k) + space() + ":" + space() + value(k) + space())
		}
		return b.String() + "}"
	}
	line := func() string {
		switch r.IntN(20) {
		case 0:
			return pick("[]", "null", "1", `"x"`, "{}", "[1]", "[[]]", "true", "[null]")
		case 1, 2:
			n := 1 + r.IntN(3)
			var parts []string
			for range n {
				parts = append(parts, object())
			}
			return "[" + space() + strings.Join(parts, ","+space()) + "]"
		case 3: // something is missing or too much
			o := object()
			i := r.IntN(len(o))
			return o[:i] + pick("", "}", ",", `"`, "\\", ":") + o[i+1:]
		}
		return space() + object() + space()
	}
	requests, refused, plain := 0, 0, 0
	for range 8000 {
		in := line()
		if strings.Contains(in, "\n") {
			t.Fatal(in)
		}
		want, werr := readBy(t, &mcp.IOTransport{Reader: io.NopCloser(strings.NewReader(strings.TrimSpace(in) + "\n")), Writer: closer{io.Discard}})
		var out bytes.Buffer
		tr := NewStdio(strings.NewReader(in+"\r\n"), &out)
		c := &lineConn{t: tr}
		got := c.decode(inputLine{text: []byte(in + "\r\n")})
		if werr != nil || !json.Valid([]byte(in)) || in[0] == '[' && out.Len() > 0 {
			refused++
			if strings.HasPrefix(strings.TrimSpace(in), "[") { // the SDK refuses the whole batch, or an id twice in it
				continue
			}
			if len(got) > 0 || bytes.Count(out.Bytes(), []byte("\n")) != 1 || !json.Valid(out.Bytes()) {
				t.Fatalf("%s\nthe SDK: %v\ngot %v and %s", in, werr, got, out.Bytes())
			}
			continue
		}
		if len(got) != len(want) || out.Len() > 0 {
			t.Fatalf("%s\n%d messages, the SDK reads %d; answered %s", in, len(got), len(want), out.Bytes())
		}
		for i := range want {
			w, isRequest := want[i].(*jsonrpc.Request)
			g, ok := got[i].(*jsonrpc.Request)
			if ok != isRequest {
				t.Fatalf("%s\n%T, the SDK reads %T", in, got[i], want[i])
			}
			if !ok {
				continue
			}
			requests++
			if s, _ := g.ID.Raw().(string); strings.HasPrefix(s, spelled) {
				if !strings.Contains(in, strings.TrimPrefix(s, spelled)) || !w.IsCall() {
					t.Fatalf("%s\nid %q", in, s)
				}
			} else if g.ID != w.ID {
				t.Fatalf("%s\nid %v, the SDK reads %v", in, g.ID, w.ID)
			} else {
				plain++
			}
			if g.Method != w.Method || !bytes.Equal(g.Params, w.Params) || (g.Params == nil) != (w.Params == nil) {
				t.Fatalf("%s\n%q %s, the SDK reads %q %s", in, g.Method, g.Params, w.Method, w.Params)
			}
		}
	}
	t.Logf("%d requests, %d with the SDK's id, %d lines refused", requests, plain, refused)
}
