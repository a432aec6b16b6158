package shim

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

// A session is a client that speaks raw lines to a server, because a decoded
// client's view hides what happens to digits.
type session struct {
	t    *testing.T
	in   *io.PipeWriter
	out  *bufio.Reader
	done chan error
}

const handshake = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`

// open runs s over pipes; the session is closed with the test.
func open(t *testing.T, s *Server) *session {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	c := &session{t: t, in: inW, out: bufio.NewReaderSize(outR, 1<<20), done: make(chan error, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		c.done <- s.Run(ctx, NewStdio(inR, outW))
		_ = outW.Close()
	}()
	t.Cleanup(func() {
		cancel()
		_ = inW.Close()
		_ = outR.Close()
	})
	return c
}

// ready opens a session and shakes hands.
func ready(t *testing.T, s *Server) *session {
	t.Helper()
	c := open(t, s)
	c.send(handshake)
	c.receive()
	c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return c
}

func (c *session) send(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		c.t.Fatalf("sending: %v", err)
	}
}

// receive returns the next line without its line feed.
func (c *session) receive() string {
	c.t.Helper()
	type got struct {
		line string
		err  error
	}
	ch := make(chan got, 1)
	go func() {
		line, err := c.out.ReadString('\n')
		ch <- got{line, err}
	}()
	select {
	case g := <-ch:
		if g.err != nil {
			c.t.Fatalf("receiving: %v", g.err)
		}
		return strings.TrimSuffix(g.line, "\n")
	case <-time.After(20 * time.Second):
		c.t.Fatal("no answer in 20 s")
	}
	return ""
}

// callTool calls a tool with raw arguments and returns the answer's line.
func (c *session) callTool(name, arguments string) string {
	c.t.Helper()
	c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, name, arguments))
	return c.receive()
}

// A toolResult is a tools/call answer.
type toolResult struct {
	Content []struct{ Type, Text string }
	// StructuredContent is raw, so that digits can be compared.
	StructuredContent json.RawMessage
	IsError           bool
}

func (c *session) call(name, arguments string) toolResult {
	c.t.Helper()
	var env struct {
		Result toolResult
		Error  json.RawMessage
	}
	line := c.callTool(name, arguments)
	if err := json.Unmarshal([]byte(line), &env); err != nil || env.Error != nil {
		c.t.Fatalf("%s: %v\n%s", name, err, line)
	}
	return env.Result
}

// text calls a tool and returns its only text.
func (c *session) text(name, arguments string, isError bool) string {
	c.t.Helper()
	r := c.call(name, arguments)
	if len(r.Content) != 1 || r.IsError != isError {
		c.t.Fatalf("%s %s: %+v", name, arguments, r)
	}
	return r.Content[0].Text
}
