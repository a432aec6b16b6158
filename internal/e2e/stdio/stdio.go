// Package stdio drives a real hb-rest process over its standard streams with
// raw JSON-RPC lines, so that tests and the demonstration see exactly what an
// MCP client sees, digits included. It is for tests only. Start with [Start].
package stdio

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"time"
)

// A Client is one running hb-rest.
type Client struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	mu     sync.Mutex // one request at a time
	lines  chan []byte
	nextID int
	Notes  chan string // methods of notifications, dropped when nobody reads
}

// Content is one block of a tool result.
type Content struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// A Result is a tools/call answer.
type Result struct {
	Raw        []byte // the whole line
	Content    []Content
	Structured json.RawMessage
	IsError    bool
	RPCError   string // JSON-RPC error, if that is what came
}

// Text joins the text blocks.
func (r *Result) Text() string {
	var s string
	for _, c := range r.Content {
		s += c.Text
	}
	return s
}

// Start runs cmd and shakes hands as an MCP client of the given protocol version.
func Start(cmd *exec.Cmd, protocol string) (*Client, error) {
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
	c := &Client{cmd: cmd, in: in, lines: make(chan []byte, 64), Notes: make(chan string, 64)}
	go c.read(out)
	init := fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"e2e","version":"1"}}`, protocol)
	if _, err := c.Request("initialize", json.RawMessage(init)); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, c.send([]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`))
}

func (c *Client) read(out io.Reader) {
	defer close(c.lines)
	r := bufio.NewReaderSize(out, 1<<20)
	for {
		line, err := r.ReadBytes('\n')
		if len(line) > 1 {
			c.lines <- line
		}
		if err != nil {
			return
		}
	}
}

func (c *Client) send(line []byte) error {
	_, err := c.in.Write(append(line, '\n'))
	return err
}

// Request sends one request and returns the raw line of its answer.
func (c *Client) Request(method string, params json.RawMessage) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nextID++
	id := c.nextID
	var line bytes.Buffer // the transport is one line a message; digits are kept
	if err := json.Compact(&line, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params)); err != nil {
		return nil, fmt.Errorf("params: %w", err)
	}
	if err := c.send(line.Bytes()); err != nil {
		return nil, err
	}
	deadline := time.After(90 * time.Second)
	for {
		select {
		case got, ok := <-c.lines:
			if !ok {
				return nil, errors.New("hb-rest closed its output")
			}
			var head struct {
				ID     *int   `json:"id"`
				Method string `json:"method"`
			}
			if err := json.Unmarshal(got, &head); err != nil {
				return nil, fmt.Errorf("not a JSON-RPC line: %q", got)
			}
			if head.ID == nil {
				select {
				case c.Notes <- head.Method:
				default:
				}
				continue
			}
			if *head.ID == id && head.Method == "" {
				return got, nil
			}
		case <-deadline:
			return nil, errors.New("no answer in 90 s")
		}
	}
}

// Call calls a tool with raw JSON arguments.
func (c *Client) Call(tool string, args json.RawMessage) (*Result, error) {
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	raw, err := c.Request("tools/call", json.RawMessage(fmt.Sprintf(`{"name":%q,"arguments":%s}`, tool, args)))
	if err != nil {
		return nil, err
	}
	var m struct {
		Result struct {
			Content           []Content       `json:"content"`
			StructuredContent json.RawMessage `json:"structuredContent"`
			IsError           bool            `json:"isError"`
		} `json:"result"`
		Error *struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, err
	}
	r := &Result{Raw: raw, Content: m.Result.Content, Structured: m.Result.StructuredContent, IsError: m.Result.IsError}
	if m.Error != nil {
		r.IsError, r.RPCError = true, m.Error.Message
	}
	return r, nil
}

// Close ends hb-rest the way clients do: it closes its input and waits.
func (c *Client) Close() error {
	_ = c.in.Close() // already closed is fine
	done := make(chan error, 1)
	go func() { done <- c.cmd.Wait() }()
	select {
	case err := <-done:
		return err
	case <-time.After(5 * time.Second):
		return errors.Join(errors.New("hb-rest did not end within 5 s of its input closing"), c.cmd.Process.Kill())
	}
}
