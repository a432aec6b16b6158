package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"time"
)

// patience is how long one answer may take, however busy the machine is.
const patience = 60 * time.Second

// A client speaks MCP to a shim over its standard streams, with any number of
// requests in flight.
type client struct {
	cmd     *exec.Cmd
	mu      sync.Mutex // guards what follows
	in      io.WriteCloser
	next    int
	waiting map[int]chan reply
	ended   bool
}

// A reply is one line of the shim.
type reply struct {
	bytes int // with the end of the line
	text  string
	err   error // a fault, or the tool's own
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
	c := &client{cmd: cmd, in: in, waiting: map[int]chan reply{}}
	go c.read(out)
	if r := c.request("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}`); r.err != nil {
		return nil, errors.Join(r.err, c.close())
	}
	return c, c.send([]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"))
}

func (c *client) send(line []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err := c.in.Write(line)
	return err
}

func (c *client) read(out io.Reader) {
	lines := bufio.NewReaderSize(out, 1<<16)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			break
		}
		var m struct {
			ID     *int
			Result struct {
				Content []struct{ Text string }
				IsError bool
			}
			Error *struct{ Message string }
		}
		r := reply{bytes: len(line), err: json.Unmarshal(line, &m)}
		if m.ID == nil { // a notification
			continue
		}
		for _, part := range m.Result.Content {
			r.text += part.Text
		}
		if m.Error != nil {
			r.err = errors.New(m.Error.Message)
		} else if m.Result.IsError {
			r.err = errors.New(r.text)
		}
		c.mu.Lock()
		answer := c.waiting[*m.ID]
		delete(c.waiting, *m.ID)
		c.mu.Unlock()
		if answer != nil {
			answer <- r
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	for _, answer := range c.waiting {
		answer <- reply{err: errors.New("the shim closed its output")}
	}
	clear(c.waiting)
}

// request sends one request and waits for its answer.
func (c *client) request(method, params string) reply {
	answer := make(chan reply, 1)
	c.mu.Lock()
	if c.ended {
		c.mu.Unlock()
		return reply{err: errors.New("the shim has closed its output")}
	}
	c.next++
	id := c.next
	c.waiting[id] = answer
	_, err := fmt.Fprintf(c.in, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", id, method, params)
	c.mu.Unlock()
	if err != nil {
		return reply{err: err}
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case r := <-answer:
		return r
	case <-late.C:
		return reply{err: fmt.Errorf("%s: no answer in %s", method, patience)}
	}
}

// close ends the shim as clients do: its input ends, and it has a while to go.
func (c *client) close() error {
	c.mu.Lock()
	_ = c.in.Close() // closed before is fine
	c.mu.Unlock()
	return ends(c.cmd)
}

// ends waits for a process that was told to end; after five seconds it is killed.
func ends(cmd *exec.Cmd) error {
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case err := <-done:
		return err
	case <-time.After(5 * time.Second):
		_ = cmd.Process.Kill()
		<-done
		return fmt.Errorf("%s did not end within 5 s", cmd.Path)
	}
}
