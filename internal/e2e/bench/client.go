package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// patience is how long one answer may take, however busy the machine is.
const patience = 60 * time.Second

// A client is the SDK's before one shim. Its own work is in every latency, as
// that of any client is; it is little beside what other clients do, and none of
// it is in the processor time.
type client struct {
	cmd      *exec.Cmd
	in       io.Closer
	session  *mcp.ClientSession
	received atomic.Int64 // bytes
}

// connect starts cmd and returns with its answer to initialize.
func connect(cmd *exec.Cmd) (*client, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c := &client{cmd: cmd, in: in}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c.session, err = mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, &mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{}}).
		Connect(ctx, &mcp.IOTransport{Reader: counted{out, &c.received}, Writer: in}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// counted adds up what was read.
type counted struct {
	io.ReadCloser
	n *atomic.Int64
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.n.Add(int64(n))
	return n, err
}

func (c *client) list() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, err := c.session.ListTools(ctx, nil)
	return err
}

// call returns the text of a tool's answer; an error of the tool is an error.
func (c *client) call(tool, args string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	res, err := c.session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(args)})
	if err != nil {
		return "", err
	}
	var text strings.Builder
	for _, part := range res.Content {
		if t, ok := part.(*mcp.TextContent); ok {
			text.WriteString(t.Text)
		}
	}
	if res.IsError {
		return "", errors.New(text.String())
	}
	return text.String(), nil
}

// close ends the shim as clients do: its input ends, and it has a while to go.
func (c *client) close() error {
	_ = c.in.Close() // closed before is fine
	err := ends(c.cmd)
	if c.session != nil {
		_ = c.session.Close() // it has nothing to close any more
	}
	return err
}

// ends waits for a process that was told to end; after five seconds it is killed.
func ends(cmd *exec.Cmd) error {
	var err error
	done := make(chan struct{})
	go func() {
		err = cmd.Wait()
		close(done)
	}()
	select {
	case <-done:
		return err
	case <-time.After(5 * time.Second):
		_ = cmd.Process.Kill()
		<-done
		return fmt.Errorf("%s did not end within 5 s", cmd.Path)
	}
}
