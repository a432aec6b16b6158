package client

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
)

const (
	helloTimeout = 5 * time.Second  // for the proof, from a program on the same machine
	maxHello     = 8 << 10          // bytes of its answer; a real one has about 400
	idleTimeout  = 90 * time.Second // shorter than the daemon's, so that this side closes first
	maxIdle      = 32               // connections kept: as many calls as the daemon lets through to one API at once
	maxHeader    = 64 << 10         // bytes of an answer's header
)

// A line is the connections that were proven under one token. A new token gets
// a new line, so no call travels on a connection proven for another daemon.
type line struct {
	token string
	reads *http.Transport
	// writes carries what may be sent only once. It is reads where a connection
	// can be asked whether the daemon still holds the other end, just before
	// the first byte is written; elsewhere it opens a connection for each call.
	writes *http.Transport
}

// lineFor returns the line of a token, and retires the one of an earlier token.
func (c *Client) lineFor(tok string) *line {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.line != nil && c.line.token == tok {
		return c.line
	}
	if c.line != nil {
		c.line.close()
	}
	l := &line{token: tok}
	l.reads = c.transport(tok, false)
	l.writes = l.reads
	if !c.peek {
		l.writes = c.transport(tok, true)
	}
	c.line = l
	return l
}

// close ends idle connections. Those in use end with their calls: a transport
// that was told this once keeps none that comes back.
func (l *line) close() {
	l.reads.CloseIdleConnections()
	l.writes.CloseIdleConnections()
}

func (c *Client) transport(tok string, fresh bool) *http.Transport {
	var p http.Protocols
	p.SetHTTP1(true)
	return &http.Transport{
		DialContext:            func(ctx context.Context, _, _ string) (net.Conn, error) { return c.dial(ctx, tok) },
		Protocols:              &p,
		Proxy:                  nil, // whatever the environment says
		DisableCompression:     true,
		DisableKeepAlives:      fresh,
		MaxIdleConns:           maxIdle,
		MaxIdleConnsPerHost:    maxIdle,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxHeader,
	}
}

// dial opens a connection and lets the other end prove that it holds the token.
// What is not proven is closed here and never carries a call.
func (c *Client) dial(ctx context.Context, tok string) (net.Conn, error) {
	d := net.Dialer{Timeout: c.patience}
	conn, err := d.DialContext(ctx, "tcp", c.addr.String())
	if err != nil {
		return nil, &dialError{err}
	}
	version, err := c.prove(ctx, conn, tok)
	if err != nil {
		conn.Close()
		return nil, err
	}
	c.server.Store(&version)
	return &provenConn{Conn: conn}, nil
}

// A dialError: nothing listens there.
type dialError struct{ err error }

func (e *dialError) Error() string { return e.err.Error() }
func (e *dialError) Unwrap() error { return e.err }

// A stranger: something listens, but it did not prove that it is the daemon.
type stranger struct {
	why   string
	slow  bool // it had its time; dialling again would take as long
	wrong bool // it knows how a proof looks, but not this token
}

func (e *stranger) Error() string { return e.why }

// prove sends a nonce and nothing else, and reads exactly one answer. It
// returns the daemon's version.
func (c *Client) prove(ctx context.Context, conn net.Conn, tok string) (version string, err error) {
	_ = conn.SetDeadline(time.Now().Add(c.patience)) // fails only on a closed connection, and so does the write
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer func() {
		if !stop() || ctx.Err() != nil {
			err = context.Cause(ctx)
			return
		}
		_ = conn.SetDeadline(time.Time{})
	}()

	nonce := make([]byte, api.NonceBytes)
	_, _ = rand.Read(nonce) // never fails: crypto/rand ends the program instead
	if _, err := fmt.Fprintf(conn, "GET /hello?nonce=%x HTTP/1.1\r\nHost: %s\r\n\r\n", nonce, c.addr); err != nil {
		return "", c.notProven("it closed the connection", err)
	}
	hello, err := c.readHello(conn)
	if err != nil {
		return "", err
	}
	if !api.ProofEqual(hello.Proof, api.Proof(tok, c.addr, nonce)) {
		return "", &stranger{why: "its proof is wrong", wrong: true}
	}
	return hello.Version, nil
}

// readHello reads one response and refuses to have read more: a byte left over
// would later count as the answer to a call.
func (c *Client) readHello(conn net.Conn) (*api.Hello, error) {
	r := bufio.NewReader(io.LimitReader(conn, maxHello))
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		return nil, c.notProven("it does not speak as hbrestd does", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK || resp.ContentLength <= 0 || resp.Close {
		return nil, &stranger{why: fmt.Sprintf("it answered status %d instead of a proof", resp.StatusCode)}
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, c.notProven("its answer is cut short or too long", err)
	}
	var h api.Hello
	if err := json.Unmarshal(body, &h); err != nil || h.Proof == "" {
		return nil, &stranger{why: "its answer holds no proof"}
	}
	if r.Buffered() > 0 {
		return nil, &stranger{why: "it sent more than a proof"}
	}
	return &h, nil
}

func (c *Client) notProven(why string, err error) error {
	var ne net.Error
	if errors.As(err, &ne) && ne.Timeout() {
		return &stranger{why: fmt.Sprintf("it gave no proof in %s", c.patience), slow: true}
	}
	return &stranger{why: why}
}

// A provenConn is a connection whose other end has shown that it is the daemon.
// It counts what is written, so that a call that was never sent can be told
// from one that may have been carried out.
type provenConn struct {
	net.Conn
	written atomic.Int64
	fresh   atomic.Bool // the next write is the first of a call
}

// errGone: the daemon had closed the connection before the call began.
var errGone = errors.New("the daemon has closed the connection")

// begin marks the start of a call and returns the count so far.
func (p *provenConn) begin() int64 {
	p.fresh.Store(true)
	return p.written.Load()
}

// Write asks the system whether the other end is still there before the first
// byte of a call. A daemon that stopped since the last call has closed its end,
// and on loopback that is known at once; so a restart between two calls never
// leaves a call half sent.
func (p *provenConn) Write(b []byte) (int, error) {
	if p.fresh.Swap(false) && gone(p.Conn) {
		return 0, errGone
	}
	n, err := p.Conn.Write(b)
	p.written.Add(int64(n))
	return n, err
}
