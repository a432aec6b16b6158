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
	// maxCalls are the calls without an answer beyond which none is taken on: a
	// client that sends and does not read would fill the memory. The daemon
	// refuses sooner, at 288 for one origin.
	maxCalls = 1000
	// maxAhead is how many bytes of lines are read before they are handled, so
	// that the end of input is seen also while nothing is taken on.
	maxAhead = 1 << 20
	// stuckTime is how long one line may wait to be read by a client while
	// maxAhead of its own lines wait too. Then it is taken for gone, because
	// its end would not be seen behind them.
	stuckTime = 10 * time.Second
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
	c := &lineConn{
		t: t, lines: make(chan inputLine, maxAhead/lineCost+1), closed: make(chan struct{}),
		taken: make(chan struct{}, 1), answers: make(chan struct{}, 1), pending: map[jsonrpc.ID]struct{}{},
	}
	go c.readLines()
	return c, nil
}

// lineConn is one session. Its reader goroutine ends with In or at Close,
// whichever a blocked Read of In allows.
type lineConn struct {
	t       *Stdio
	lines   chan inputLine    // what was read ahead; closed at the end of input
	queue   []jsonrpc.Message // of the last line, what is not handed out; Read only
	closed  chan struct{}
	once    sync.Once
	taken   chan struct{} // a token when a line was taken
	answers chan struct{} // a token when a call was answered

	outMu sync.Mutex // guards Out; never held with mu, so that a slow client can still write

	mu      sync.Mutex              // guards the rest
	writing time.Time               // since when a line is being written; zero: none is
	ahead   int                     // what lines holds, in bytes
	pending map[jsonrpc.ID]struct{} // calls without an answer
}

// An inputLine is what was read: a line, or that it was too long.
type inputLine struct {
	text []byte
	long bool
}

// lineCost is counted for a line beside its text, and bounds their number.
const lineCost = 256

func (l inputLine) cost() int { return len(l.text) + lineCost }

func (c *lineConn) SessionID() string { return "" }

func (c *lineConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return nil
}

// Read returns the next message. A line that is none is answered here and not
// where lines are read: the client may not be reading, and its end must be seen
// all the same. At the end of input Read first waits for the answers of running
// calls, because the SDK cancels them as soon as it sees the end.
func (c *lineConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	for len(c.queue) == 0 {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-c.closed:
			return nil, io.EOF
		case <-c.t.stop:
			return nil, io.EOF
		case l, ok := <-c.lines:
			if !ok {
				c.drain(ctx)
				return nil, io.EOF
			}
			c.mu.Lock()
			c.ahead -= l.cost()
			c.mu.Unlock()
			token(c.taken)
			c.queue = c.decode(l)
		}
	}
	m := c.queue[0]
	if r, ok := m.(*jsonrpc.Request); ok && r.IsCall() && r.Method != "subscriptions/listen" {
		// subscriptions/listen is answered only when it is cancelled.
		if err := c.admit(ctx, r.ID); err != nil {
			return nil, err
		}
	}
	c.queue = c.queue[1:]
	return m, nil
}

// admit counts a call as running, and waits for an answer of another where as
// many run as may.
func (c *lineConn) admit(ctx context.Context, id jsonrpc.ID) error {
	for {
		c.mu.Lock()
		fits := len(c.pending) < maxCalls
		if fits {
			c.pending[id] = struct{}{}
		}
		c.mu.Unlock()
		if fits {
			return nil
		}
		select {
		case <-c.answers:
		case <-ctx.Done():
			return ctx.Err()
		case <-c.closed:
			return io.EOF
		case <-c.t.stop:
			return io.EOF
		}
	}
}

// token leaves a token in ch unless there is one.
func token(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
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
		case <-c.answers:
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
	c.writes(time.Now())
	defer c.writes(time.Time{})
	_, err := c.t.Out.Write(append(line, '\n'))
	return err
}

func (c *lineConn) writes(since time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writing = since
}

// stuck reports whether the client does not read.
func (c *lineConn) stuck() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.writing.IsZero() && time.Since(c.writing) >= stuckTime
}

func (c *lineConn) answered(id jsonrpc.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pending, id)
	token(c.answers)
}

// readLines feeds lines until In ends.
func (c *lineConn) readLines() {
	defer close(c.lines)
	defer close(c.t.eof)
	r := bufio.NewReaderSize(c.t.In, 64<<10)
	for {
		text, err := readLine(r)
		long := errors.Is(err, errLongLine)
		if (long || len(text) > 0) && !c.put(inputLine{text, long}) {
			return
		}
		if err != nil && !long {
			return
		}
	}
}

// put adds to lines, as soon as there is room; false: the session is closed, or
// the client neither reads nor stops sending.
func (c *lineConn) put(l inputLine) bool {
	var look <-chan time.Time
	for {
		c.mu.Lock()
		fits := c.ahead == 0 || c.ahead+l.cost() <= maxAhead
		if fits {
			c.ahead += l.cost()
		}
		c.mu.Unlock()
		if fits {
			c.lines <- l // never waits: it has room for the shortest lines
			return true
		}
		if look == nil {
			ticker := time.NewTicker(stuckTime / 10)
			defer ticker.Stop()
			look = ticker.C
		}
		select {
		case <-c.taken:
		case <-c.closed:
			return false
		case <-look:
			if c.stuck() {
				return false
			}
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
func (c *lineConn) decode(l inputLine) []jsonrpc.Message {
	if l.long {
		c.refuse(nil, jsonrpc.CodeInvalidRequest, "a message over 16 MiB was not read")
		return nil
	}
	line := bytes.TrimSpace(bytes.TrimPrefix(l.text, []byte("\xef\xbb\xbf")))
	if len(line) == 0 {
		return nil
	}
	if line[0] != '[' {
		// What is very deep is not JSON to Valid, and refused with its id.
		e := look(line)
		if !e.deep && !json.Valid(line) {
			c.refuse(nil, jsonrpc.CodeParseError, "not JSON: syntax error")
			return nil
		}
		if m := c.message(line, e); m != nil {
			return []jsonrpc.Message{m}
		}
		return nil
	}
	var parts []json.RawMessage
	if err := json.Unmarshal(line, &parts); err != nil {
		c.refuse(nil, jsonrpc.CodeParseError, "not JSON: syntax error")
		return nil
	}
	if len(parts) == 0 {
		c.refuse(nil, jsonrpc.CodeInvalidRequest, "an empty batch")
	}
	var msgs []jsonrpc.Message
	for _, p := range parts {
		if m := c.message(p, look(p)); m != nil {
			msgs = append(msgs, m)
		}
	}
	return msgs
}

// message decodes one message; nil: it is none, and that is answered.
func (c *lineConn) message(text []byte, e envelope) jsonrpc.Message {
	if e.deep {
		c.refuse(e.id, jsonrpc.CodeInvalidRequest, fmt.Sprintf("a message nested over %d levels deep was not read", maxNesting))
		return nil
	}
	if r := e.request(); r != nil && r.Method != "notifications/cancelled" {
		return r
	}
	m, err := jsonrpc.DecodeMessage(text)
	if err != nil {
		c.refuse(e.id, jsonrpc.CodeInvalidRequest, "not a JSON-RPC 2.0 message: "+err.Error())
		return nil
	}
	if r, ok := m.(*jsonrpc.Request); ok {
		keepID(r, e.id)
	}
	return m
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
