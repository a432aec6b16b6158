package client

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"slices"
	"sync"
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

	mu      sync.Mutex // guards the rest
	idle    []*provenConn
	sweeper *time.Timer // set while there are idle ones
	retired bool
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
	c.line = &line{token: tok}
	return c.line
}

// take returns an idle connection whose other end is still there, the one used
// last first; nil: there is none.
func (l *line) take() *provenConn {
	l.mu.Lock()
	defer l.mu.Unlock()
	for n := len(l.idle) - 1; n >= 0; n-- {
		p := l.idle[n]
		l.idle[n] = nil
		l.idle = l.idle[:n]
		// A daemon that stopped since the last call has closed its end, and on
		// loopback that is known at once; so a restart between two calls never
		// leaves a call half sent.
		if !gone(p.Conn) {
			return p
		}
		p.Close()
	}
	return nil
}

// put keeps a connection for the next call.
func (l *line) put(p *provenConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.retired || len(l.idle) >= maxIdle {
		p.Close()
		return
	}
	p.since = time.Now()
	l.idle = append(l.idle, p)
	if l.sweeper == nil {
		l.sweeper = time.AfterFunc(idleTimeout, l.sweep)
	}
}

// sweep closes what was idle for idleTimeout, and comes again for the others.
func (l *line) sweep() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.idle = slices.DeleteFunc(l.idle, func(p *provenConn) bool {
		old := time.Since(p.since) >= idleTimeout
		if old {
			p.Close()
		}
		return old
	})
	if l.sweeper = nil; len(l.idle) > 0 {
		oldest := slices.MinFunc(l.idle, func(a, b *provenConn) int { return a.since.Compare(b.since) })
		l.sweeper = time.AfterFunc(max(idleTimeout-time.Since(oldest.since), 0), l.sweep)
	}
}

// drop closes idle connections.
func (l *line) drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.idle {
		p.Close()
	}
	l.idle = nil
	if l.sweeper != nil {
		l.sweeper.Stop()
		l.sweeper = nil
	}
}

// close ends idle connections, and those in use with their calls.
func (l *line) close() {
	l.mu.Lock()
	l.retired = true
	l.mu.Unlock()
	l.drop()
}

// connection is for one call. What may be sent only once takes an idle one only
// where the system knows whether the daemon still holds the other end.
func (c *Client) connection(ctx context.Context, l *line, method string) (*provenConn, error) {
	if c.peek || method == http.MethodGet {
		if p := l.take(); p != nil {
			return p, nil
		}
	}
	conn, err := c.dial(ctx, l.token)
	if err != nil {
		return nil, err
	}
	return &provenConn{Conn: conn}, nil
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
	return conn, nil
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
// One call at a time uses it.
type provenConn struct {
	net.Conn
	limit io.LimitedReader // what may still be read of an answer
	in    *bufio.Reader    // reads limit; made at the first answer
	since time.Time        // since when it is idle; guarded by line.mu
}

// largeCall is from how many bytes on a request is written while its answer is
// awaited: the daemon may refuse it before it has read all, and reads no more.
const largeCall = 64 << 10

// exchange writes a request and reads its answer. The error is unsent or lost,
// or errTooLarge. again says whether the connection can carry another call.
func (p *provenConn) exchange(request []byte) (r *reply, h http.Header, again bool, err error) {
	if len(request) < largeCall {
		n, werr := p.Write(request)
		if werr != nil && n == 0 {
			return nil, nil, false, &unsent{werr}
		}
		return p.answer(werr)
	}
	var n int
	var werr error
	written := make(chan struct{})
	go func() {
		defer close(written)
		n, werr = p.Write(request)
	}()
	r, h, again, err = p.answer(nil)
	select {
	case <-written:
	default:
		p.Close() // which ends the write
		<-written
		again = false
	}
	switch {
	case err != nil && werr != nil && n == 0:
		err = &unsent{werr}
	case werr != nil:
		again = false
	}
	return r, h, again, err
}

// answer reads the answer to a request; werr is how writing it ended.
func (p *provenConn) answer(werr error) (r *reply, h http.Header, again bool, err error) {
	if p.in == nil {
		p.limit.R = p.Conn
		p.in = bufio.NewReader(&p.limit)
	}
	p.limit.N = maxHeader
	resp, err := http.ReadResponse(p.in, nil)
	switch {
	case err != nil && werr != nil:
		return nil, nil, false, &lost{werr}
	case err != nil:
		return nil, nil, false, &lost{err}
	case resp.StatusCode < http.StatusOK:
		return nil, nil, false, &lost{fmt.Errorf("it answered status %d", resp.StatusCode)}
	}
	defer resp.Body.Close()
	p.limit.N = math.MaxInt64 // readAnswer has its own
	data, err := readAnswer(resp)
	if err != nil {
		return nil, nil, false, err
	}
	r = &reply{status: resp.StatusCode, media: resp.Header.Get("Content-Type"), body: data}
	return r, resp.Header, werr == nil && !resp.Close && resp.ProtoAtLeast(1, 1) && p.in.Buffered() == 0, nil
}
