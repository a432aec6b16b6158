package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/clientconfig"
)

const (
	probeTimeout = 10 * time.Second // clients wait as long, or longer, for the first answer
	probeGrace   = 2 * time.Second  // hb-rest ends within that after its input does
	probeLine    = 16 << 20         // the longest line of MCP that clients of the SDK take
	probePages   = 50               // of tools/list
	tailBytes    = 4 << 10          // of what a program printed on stderr
)

// metaTools are the tools that hb-rest always has.
var metaTools = []string{
	"wrap_list", "wrap_get", "wrap_secret_list", "wrap_derive", "wrap_create",
	"wrap_update", "wrap_delete", "wrap_run", "wrap_test", "wrap_reload",
}

// A tail keeps the end of what is written to it.
type tail struct {
	mu  sync.Mutex
	buf []byte
	cut bool
}

// Write never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p...)
	if over := len(t.buf) - tailBytes; over > 0 {
		t.buf, t.cut = append([]byte(nil), t.buf[over:]...), true
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := strings.ToValidUTF8(string(t.buf), "?")
	if t.cut {
		return "..." + s
	}
	return s
}

// probed is what a server said of itself.
type probed struct {
	name, version, protocol string
	tools                   []string
	took                    time.Duration // from the start to the list of tools
	daemon                  string        // why the tools do not work; "": they do
	stderr                  string        // the end of it
}

// A probeError says what step of a probe failed.
type probeError struct {
	step string // "start" or "protocol"
	text string
}

func (e *probeError) Error() string { return e.text }

// probe starts a server as a client does, with these variables and no others,
// asks for its tools, calls the one that changes nothing, and ends it.
func probe(ctx context.Context, e clientconfig.Entry, env []string, timeout time.Duration) (probed, error) {
	limit, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	cmd := exec.CommandContext(limit, e.Command, e.Args...)
	stderr := &tail{}
	cmd.Env, cmd.Stderr, cmd.WaitDelay = env, stderr, probeGrace
	ownGroup(cmd)
	in, err := cmd.StdinPipe()
	if err != nil {
		return probed{}, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return probed{}, err
	}
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return probed{}, &probeError{"start", fmt.Sprintf("it cannot be started: %v", err)}
	}
	s := &session{in: in, lines: make(chan []byte), done: make(chan struct{})}
	go s.read(out)
	p, err := s.ask(limit, start)
	ended := s.end(cmd)
	p.stderr = strings.TrimSpace(stderr.String())
	switch {
	case err == nil:
		return p, nil
	case ctx.Err() != nil:
		return p, ctx.Err()
	case limit.Err() != nil:
		return p, &probeError{"protocol", fmt.Sprintf("it did not answer %s within %s", s.waiting, timeout)}
	case errors.Is(err, io.EOF):
		return p, &probeError{"start", fmt.Sprintf("it ended before it answered %s: %s", s.waiting, ended)}
	}
	return p, err
}

// A session is a conversation of JSON lines with a server.
type session struct {
	in      io.WriteCloser
	lines   chan []byte
	done    chan struct{} // closed by end: nobody reads lines any more
	tooLong bool          // set before lines is closed
	waiting string        // the method that is not answered yet
	id      int
}

func (s *session) read(out io.Reader) {
	defer close(s.lines)
	sc := bufio.NewScanner(out)
	sc.Buffer(make([]byte, 64<<10), probeLine)
	for sc.Scan() {
		line := bytes.TrimSpace(bytes.Clone(sc.Bytes()))
		if len(line) == 0 {
			continue
		}
		select {
		case s.lines <- line:
		case <-s.done:
			_, _ = io.Copy(io.Discard, out)
			return
		}
	}
	s.tooLong = errors.Is(sc.Err(), bufio.ErrTooLong)
	_, _ = io.Copy(io.Discard, out) // so that it does not block on its output
}

// end closes the server's input and waits for it, a moment; then it and what it
// started are ended. It says how the server ended.
func (s *session) end(cmd *exec.Cmd) string {
	close(s.done)
	_ = s.in.Close()
	timer := time.AfterFunc(probeGrace, func() { _ = endGroup(cmd) })
	for range s.lines { // until its output ends: Wait would cut it off
	}
	timer.Stop()
	_ = cmd.Wait()
	_ = endGroup(cmd) // its children, if it left any
	return cmd.ProcessState.String()
}

// ask has the conversation.
func (s *session) ask(ctx context.Context, start time.Time) (probed, error) {
	var p probed
	var hello struct {
		ProtocolVersion string
		ServerInfo      struct{ Name, Version string }
	}
	err := s.call(ctx, "initialize", map[string]any{
		"protocolVersion": "2025-06-18", "capabilities": map[string]any{},
		"clientInfo": map[string]any{"name": "hbrestd-doctor", "version": "1"},
	}, &hello)
	if err != nil {
		return p, err
	}
	p.name, p.version, p.protocol = hello.ServerInfo.Name, hello.ServerInfo.Version, hello.ProtocolVersion
	if p.protocol == "" {
		return p, &probeError{"protocol", "its answer to initialize names no protocol version, so it is no MCP server"}
	}
	s.waiting = "tools/list" // what is not answered if it is gone by now
	if err := s.send(map[string]any{"jsonrpc": "2.0", "method": "notifications/initialized"}); err != nil {
		return p, err
	}
	cursor := ""
	for range probePages {
		var page struct {
			Tools      []struct{ Name string }
			NextCursor string
		}
		params := map[string]any{}
		if cursor != "" {
			params["cursor"] = cursor
		}
		if err := s.call(ctx, "tools/list", params, &page); err != nil {
			return p, err
		}
		for _, t := range page.Tools {
			p.tools = append(p.tools, t.Name)
		}
		if cursor = page.NextCursor; cursor == "" {
			break
		}
	}
	p.took = time.Since(start)
	var called struct {
		IsError bool
		Content []struct{ Text string }
	}
	if err := s.call(ctx, "tools/call", map[string]any{"name": "wrap_list", "arguments": map[string]any{}}, &called); err != nil {
		p.daemon = err.Error()
		return p, nil
	}
	if called.IsError {
		p.daemon = "the call of wrap_list failed"
		if len(called.Content) > 0 {
			p.daemon, _, _ = strings.Cut(called.Content[0].Text, "\n")
		}
	}
	return p, nil
}

func (s *session) send(v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if _, err := s.in.Write(append(line, '\n')); err != nil {
		return io.EOF // it is gone; how it ended says more
	}
	return nil
}

// call sends a request and reads until its answer.
func (s *session) call(ctx context.Context, method string, params, result any) error {
	s.waiting = method
	s.id++
	if err := s.send(map[string]any{"jsonrpc": "2.0", "id": s.id, "method": method, "params": params}); err != nil {
		return err
	}
	for {
		line, err := s.next(ctx)
		if err != nil {
			return err
		}
		var m struct {
			JSONRPC string
			ID      json.RawMessage
			Method  string
			Result  json.RawMessage
			Error   *struct {
				Code    int
				Message string
			}
		}
		if err := json.Unmarshal(line, &m); err != nil || m.JSONRPC != "2.0" {
			return &probeError{"protocol", fmt.Sprintf("it does not speak MCP: it printed %q", shorten(line))}
		}
		switch {
		case m.Method != "" && len(m.ID) > 0: // it asks something
			if err := s.send(map[string]any{"jsonrpc": "2.0", "id": m.ID, "error": map[string]any{"code": -32601, "message": "not offered"}}); err != nil {
				return err
			}
		case m.Method != "" || string(m.ID) != fmt.Sprint(s.id):
		case m.Error != nil:
			return &probeError{"protocol", fmt.Sprintf("it answered %s with the error %d: %s", method, m.Error.Code, clean(m.Error.Message))}
		default:
			if err := json.Unmarshal(m.Result, result); err != nil {
				return &probeError{"protocol", fmt.Sprintf("its answer to %s is not what MCP says: %q", method, shorten(m.Result))}
			}
			return nil
		}
	}
}

func (s *session) next(ctx context.Context) ([]byte, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case line, ok := <-s.lines:
		switch {
		case ok:
			return line, nil
		case s.tooLong:
			return nil, &probeError{"protocol", fmt.Sprintf("it printed a line of over %d bytes", probeLine)}
		}
		return nil, io.EOF
	}
}

func shorten(b []byte) string {
	const most = 120
	if len(b) > most {
		return strings.ToValidUTF8(string(b[:most]), "?") + "..."
	}
	return strings.ToValidUTF8(string(b), "?")
}
