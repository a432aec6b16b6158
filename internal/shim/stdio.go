package shim

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Limits of the line protocol.
const (
	// maxFrame is the longest line read or written. Go clients end the session
	// at a longer one, so a longer answer is replaced by an error.
	maxFrame = 16 << 20
	// drainTime is how long calls that are still running when the client
	// closes its side may take to answer; then they are cancelled. It keeps
	// `printf '...' | hb-rest` useful and stays under the two seconds after
	// which clients start to send signals.
	drainTime = 1500 * time.Millisecond
)

// Stdio carries MCP as lines of JSON, as [mcp.IOTransport] does, but a line
// that is not a message is answered with an error and does not end the
// session, and calls in flight at end of input get a moment to finish.
type Stdio struct {
	In  io.Reader
	Out io.Writer // one Write for each line

	eof  chan struct{} // closed when In has ended
	stop chan struct{} // closed by Stop
	once sync.Once     // guards stop
}

// NewStdio carries messages from in and to out.
func NewStdio(in io.Reader, out io.Writer) *Stdio {
	return &Stdio{In: in, Out: out, eof: make(chan struct{}), stop: make(chan struct{})}
}

// Stop ends the session as if the client had closed its side, but gives running
// calls no time: the SDK waits for them when its context ends, and cancels them
// only when the input does.
func (t *Stdio) Stop() { t.once.Do(func() { close(t.stop) }) }

// EOF is closed when the client has closed its side.
func (t *Stdio) EOF() <-chan struct{} { return t.eof }

// Connect implements [mcp.Transport]. It can be called once.
func (t *Stdio) Connect(context.Context) (mcp.Connection, error) {
	c := &lineConn{t: t, incoming: make(chan []jsonrpc.Message), closed: make(chan struct{}), idle: make(chan struct{}, 1), pending: map[jsonrpc.ID]struct{}{}}
	go c.readLines()
	return c, nil
}

// lineConn is one session. Its reader goroutine ends with In or at Close,
// whichever a blocked Read of In allows.
type lineConn struct {
	t        *Stdio
	incoming chan []jsonrpc.Message // closed at the end of input
	queue    []jsonrpc.Message      // rest of a batch; Read only
	closed   chan struct{}
	once     sync.Once
	idle     chan struct{} // a token when pending falls to 0

	outMu sync.Mutex // guards Out; never held with mu, so that a slow client can still write

	mu      sync.Mutex              // guards pending
	pending map[jsonrpc.ID]struct{} // calls without an answer
}

func (c *lineConn) SessionID() string { return "" }

func (c *lineConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return nil
}

// Read returns the next message. At the end of input it first waits for the
// answers of running calls, because the SDK cancels them as soon as it sees
// the end.
func (c *lineConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	if len(c.queue) == 0 {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-c.closed:
			return nil, io.EOF
		case <-c.t.stop:
			return nil, io.EOF
		case msgs, ok := <-c.incoming:
			if !ok {
				c.drain(ctx)
				return nil, io.EOF
			}
			c.queue = msgs
		}
	}
	m := c.queue[0]
	c.queue = c.queue[1:]
	if r, ok := m.(*jsonrpc.Request); ok && r.IsCall() && r.Method != "subscriptions/listen" {
		// subscriptions/listen is answered only when it is cancelled.
		c.mu.Lock()
		c.pending[r.ID] = struct{}{}
		c.mu.Unlock()
	}
	return m, nil
}

func (c *lineConn) drain(ctx context.Context) {
	limit := time.NewTimer(drainTime)
	defer limit.Stop()
	for {
		c.mu.Lock()
		n := len(c.pending)
		c.mu.Unlock()
		if n == 0 {
			return
		}
		select {
		case <-c.idle:
		case <-limit.C:
			return
		case <-c.t.stop:
			return
		case <-c.closed:
			return
		case <-ctx.Done():
			return
		}
	}
}

// Write sends one message as one line. An answer that is too long for clients
// to read becomes an error with the same id.
func (c *lineConn) Write(_ context.Context, m jsonrpc.Message) error {
	line, err := encode(m)
	if err != nil {
		return fmt.Errorf("encoding a message: %w", err)
	}
	resp, isResponse := m.(*jsonrpc.Response)
	if len(line) >= maxFrame && isResponse {
		line, err = encode(&jsonrpc.Response{ID: resp.ID, Error: &jsonrpc.Error{
			Code: jsonrpc.CodeInternalError, Message: "the answer is over the 16 MiB that a line may have",
		}})
		if err != nil {
			return fmt.Errorf("encoding a message: %w", err)
		}
	}
	err = c.writeLine(line)
	if isResponse {
		c.answered(resp.ID)
	}
	return err
}

func (c *lineConn) writeLine(line []byte) error {
	c.outMu.Lock()
	defer c.outMu.Unlock()
	_, err := c.t.Out.Write(append(line, '\n'))
	return err
}

func (c *lineConn) answered(id jsonrpc.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pending, id)
	if len(c.pending) == 0 {
		select {
		case c.idle <- struct{}{}:
		default:
		}
	}
}

// readLines feeds incoming until In ends.
func (c *lineConn) readLines() {
	defer close(c.incoming)
	defer close(c.t.eof)
	r := bufio.NewReaderSize(c.t.In, 64<<10)
	for {
		line, err := readLine(r)
		if msgs := c.decode(line, err); len(msgs) > 0 {
			select {
			case c.incoming <- msgs:
			case <-c.closed:
				return
			}
		}
		if err != nil && !errors.Is(err, errLongLine) {
			return
		}
	}
}

var errLongLine = errors.New("line too long")

// readLine reads up to the next line feed. A line over maxFrame is read to its
// end and forgotten.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	long := false
	for {
		part, err := r.ReadSlice('\n')
		if long = long || len(line)+len(part) > maxFrame; long {
			line = nil
		} else {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case err != nil:
			return line, err
		case long:
			return nil, errLongLine
		default:
			return line, nil
		}
	}
}

// decode turns a line into messages: usually one, several for a batch of the
// protocol versions that had them. What is not a message is answered here.
func (c *lineConn) decode(line []byte, err error) []jsonrpc.Message {
	if errors.Is(err, errLongLine) {
		c.refuse(nil, jsonrpc.CodeInvalidRequest, "a message over 16 MiB was not read")
		return nil
	}
	line = bytes.TrimSpace(bytes.TrimPrefix(line, []byte("\xef\xbb\xbf")))
	if len(line) == 0 {
		return nil
	}
	parts, err := splitBatch(line)
	if err != nil {
		c.refuse(nil, jsonrpc.CodeParseError, "not JSON: "+err.Error())
		return nil
	}
	if len(parts) == 0 {
		c.refuse(nil, jsonrpc.CodeInvalidRequest, "an empty batch")
	}
	var msgs []jsonrpc.Message
	for _, p := range parts {
		e := look(p)
		if e.deep {
			c.refuse(e.id, jsonrpc.CodeInvalidRequest, fmt.Sprintf("a message nested over %d levels deep was not read", maxNesting))
			continue
		}
		m, err := jsonrpc.DecodeMessage(p)
		if err != nil {
			c.refuse(e.id, jsonrpc.CodeInvalidRequest, "not a JSON-RPC 2.0 message: "+err.Error())
			continue
		}
		if r, ok := m.(*jsonrpc.Request); ok {
			keepID(r, e.id)
		}
		msgs = append(msgs, m)
	}
	return msgs
}

func splitBatch(line []byte) ([]json.RawMessage, error) {
	if line[0] != '[' {
		// What is very deep is not JSON to Valid, and refused with its id later.
		if !look(line).deep && !json.Valid(line) {
			return nil, errors.New("syntax error")
		}
		return []json.RawMessage{line}, nil
	}
	var parts []json.RawMessage
	if err := json.Unmarshal(line, &parts); err != nil {
		return nil, errors.New("syntax error")
	}
	return parts, nil
}

// refuse answers a line that is no message; the protocol wants id null where
// there is none.
func (c *lineConn) refuse(id json.RawMessage, code int, message string) {
	line, _ := json.Marshal(struct { // cannot fail: an id is valid, the others are plain fields
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   any             `json:"error"`
	}{"2.0", id, struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}{code, message}})
	_ = c.writeLine(line) // a broken output shows at the next answer
}
