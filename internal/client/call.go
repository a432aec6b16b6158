package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/token"
)

const (
	maxAnswer  = 64 << 20              // bytes of an answer: over ten times the largest upstream body
	startPause = 50 * time.Millisecond // between two looks for a daemon that is starting
	maxUnsent  = 3                     // tries of a call that was not sent at all
)

// A kind says whether a call may be sent again when it is not known whether it
// was carried out.
type kind bool

const (
	once       kind = false
	repeatable kind = true
)

// A reply is what came back, whole.
type reply struct {
	status int
	media  string
	body   []byte
}

// get and post are generic functions, not methods, because a method cannot have
// a type parameter.
func get[T any](ctx context.Context, c *Client, path string) (*T, error) {
	r, err := c.call(ctx, http.MethodGet, path, nil, repeatable, c.timeout)
	if err != nil {
		return nil, err
	}
	return decode[T](c, r)
}

func post[T any](ctx context.Context, c *Client, path string, q any, k kind) (*T, error) {
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(q); err != nil {
		return nil, fault.New("BAD_JSON", "an argument is not JSON").With(fault.Cause(err))
	}
	if body.Len() > api.MaxBody {
		return nil, fault.New("BODY_TOO_LARGE", "the call is over %d MiB", api.MaxBody>>20)
	}
	r, err := c.call(ctx, http.MethodPost, path, body.Bytes(), k, c.timeout)
	if err != nil {
		return nil, err
	}
	return decode[T](c, r)
}

// tries is what one call has already used up.
type tries struct {
	proof, unauthorized, lost bool
	unsent                    int
}

// call sends one request and returns the daemon's answer, whatever its status.
// It ends within timeout, repetitions included.
func (c *Client) call(ctx context.Context, method, path string, body []byte, k kind, timeout time.Duration) (*reply, error) {
	if c.urlErr != nil {
		return nil, fault.New("BRIDGE_UNREACHABLE", "%v", c.urlErr).With(fault.Retryable(false),
			fault.Hint("Set HB_WRAP_URL to the address that hbrestd listens on, or leave it out for http://127.0.0.1:4111."))
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var t tries
	for {
		r, tok, file, err := c.attempt(limited, method, path, body)
		if err == nil {
			if r.status == http.StatusUnauthorized && !t.unauthorized {
				t.unauthorized = true // refused before any work, so even a write may go again
				if now, _, err := c.token(); err == nil && now != tok {
					continue
				}
			}
			return r, nil
		}
		if !c.again(limited, err, k, &t) {
			return nil, c.explain(ctx, limited, err, file, k, timeout)
		}
	}
}

// attempt reads the token and sends the request once. It names the token and
// its file as well.
func (c *Client) attempt(ctx context.Context, method, path string, body []byte) (_ *reply, tok, file string, err error) {
	tok, file, err = c.token()
	if err != nil {
		return nil, "", file, err
	}
	r, err := c.send(ctx, c.lineFor(tok), method, path, body)
	return r, tok, file, err
}

// token reads the first candidate that exists. A file that exists but is not
// safe to use is an error, not a reason to look further.
func (c *Client) token() (tok, file string, err error) {
	for _, f := range c.files {
		tok, err := token.Read(f)
		if err != nil && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		return tok, f, err
	}
	if len(c.files) == 0 {
		return "", "", fault.New("TOKEN_FILE_MISSING", "no token file is configured, and there is no home to look in")
	}
	const words = "hbrestd is not running, or keeps its token elsewhere: no token file at "
	shown := make([]string, len(c.files))
	for i, f := range c.files {
		shown[i] = tail(f, (fault.MaxMessage-len(words))/len(c.files)-len(" or "))
	}
	return "", "", fault.New("TOKEN_FILE_MISSING", "%s%s", words, strings.Join(shown, " or "))
}

// tail is a path for a message: its last n characters.
func tail(path string, n int) string {
	if r := []rune(path); len(r) > n {
		return "…" + string(r[len(r)-n+1:])
	}
	return path
}

// An unsent error: not one byte of the call left this process.
type unsent struct{ err error }

func (e *unsent) Error() string { return e.err.Error() }
func (e *unsent) Unwrap() error { return e.err }

// A lost error: the connection broke after the call was sent, in part or whole.
type lost struct{ err error }

func (e *lost) Error() string { return e.err.Error() }
func (e *lost) Unwrap() error { return e.err }

var errTooLarge = fmt.Errorf("the answer is over %d MiB", maxAnswer>>20)

func (c *Client) send(ctx context.Context, l *line, method, path string, body []byte) (*reply, error) {
	if err := ctx.Err(); err != nil { // a kept connection would take the call before its deadline is set
		return nil, &unsent{err}
	}
	conn, err := c.connection(ctx, l, method)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) }) // fails only on a closed connection
	r, header, again, err := conn.exchange(c.request(method, path, l.token, body))
	if !stop() || !again { // what has a deadline behind it is of no use to anybody
		conn.Close()
	} else {
		l.put(conn)
	}
	if err != nil {
		if !c.peek {
			l.drop() // the others may be as dead, and nobody can know
		}
		return nil, err
	}
	c.noteHeaders(header)
	return r, nil
}

// request is a call as it goes over the wire. A path may have a query; what is
// in it is encoded, a token has hexadecimal digits only.
func (c *Client) request(method, path, tok string, body []byte) []byte {
	b := make([]byte, 0, 512+len(body))
	b = fmt.Appendf(b, "%s %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nAccept: application/json\r\n", method, path, c.addr, tok)
	if c.version != "" {
		b = fmt.Appendf(b, "%s: %s\r\n", api.HeaderVersion, c.version)
	}
	if body != nil {
		b = fmt.Appendf(b, "Content-Type: application/json\r\nContent-Length: %d\r\n", len(body))
	}
	b = append(b, "\r\n"...)
	return append(b, body...)
}

// readAnswer reads a body of at most maxAnswer bytes.
func readAnswer(resp *http.Response) ([]byte, error) {
	if resp.ContentLength > maxAnswer {
		return nil, errTooLarge
	}
	if resp.ContentLength >= 0 { // the daemon says it always
		data := make([]byte, resp.ContentLength)
		if _, err := io.ReadFull(resp.Body, data); err != nil {
			return nil, &lost{err}
		}
		// The end is read too, so that the connection can be used again.
		if n, err := resp.Body.Read(make([]byte, 1)); n > 0 || !errors.Is(err, io.EOF) {
			return nil, &lost{errors.New("the answer does not end where it says")}
		}
		return data, nil
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, &lost{err}
	case len(data) > maxAnswer:
		return nil, errTooLarge
	}
	return data, nil
}

func (c *Client) noteHeaders(h http.Header) {
	if v := h.Get(api.HeaderVersion); v != "" {
		v = fault.Shorten(v, 60)
		c.server.Store(&v)
	}
	if n, err := strconv.ParseUint(h.Get(api.HeaderRevision), 10, 64); err == nil {
		c.revision.Store(n)
	}
}

// again decides whether the call may be tried once more, and waits if that is
// what it takes.
func (c *Client) again(ctx context.Context, err error, k kind, t *tries) bool {
	if ctx.Err() != nil {
		return false
	}
	var (
		who      *stranger
		notThere *dialError
		notSent  *unsent
		broken   *lost
	)
	switch {
	case errors.As(err, &who):
		// The token may have been renewed between reading and dialling.
		first := !t.proof && !who.slow
		t.proof = true
		return first
	case errors.As(err, &notThere), fault.Is(err, "TOKEN_FILE_MISSING"):
		if c.now().Sub(c.started) >= startGrace {
			return false
		}
		pause := time.NewTimer(startPause)
		defer pause.Stop()
		select {
		case <-pause.C:
			return true
		case <-ctx.Done():
			return false
		}
	case errors.As(err, &notSent):
		t.unsent++
		return t.unsent < maxUnsent
	case errors.As(err, &broken):
		first := !t.lost
		t.lost = true
		return first && k == repeatable
	}
	return false
}

// explain makes the fault of a call that did not reach an answer.
// file is the token file that was read.
func (c *Client) explain(caller, limited context.Context, err error, file string, k kind, timeout time.Duration) error {
	if errors.Is(caller.Err(), context.Canceled) {
		return fault.From(context.Canceled)
	}
	var (
		f        *fault.Error
		who      *stranger
		notThere *dialError
	)
	switch {
	case errors.As(err, &f):
		return f
	case errors.As(err, &who):
		c.log.Warn("client: the program on the bridge's port is not the daemon", "addr", c.addr.String(), "why", who.why)
		if who.wrong { // a daemon may well be there, but not the one of this token file
			const shown = 140 // of the path, so that what follows it is never cut away
			return fault.New("BRIDGE_BAD_ANSWER", "what answers on %s does not know the token in %s: the file is of another home or an earlier start, or another program holds the port", c.addr, tail(file, shown)).
				With(fault.Cause(err), fault.Hint("Give HB_WRAP_HOME or HB_WRAP_TOKEN_FILE the value that the running hbrestd goes by, or choose another port: HB_WRAP_ADDR for hbrestd, HB_WRAP_URL for hb-rest."))
		}
		return fault.New("BRIDGE_BAD_ANSWER", "another program holds %s: %s", c.addr, who.why).With(fault.Cause(err))
	case errors.As(err, &notThere):
		return fault.New("BRIDGE_UNREACHABLE", "no daemon answers at %s", c.addr).With(fault.Cause(err))
	case errors.Is(err, errTooLarge):
		return badAnswer("%v", errTooLarge)
	case limited.Err() != nil:
		hint := "Repeat the call; HB_WRAP_TIMEOUT_MS is how long hb-rest waits."
		if k == once {
			hint = "The call may have been carried out: check before you repeat it. HB_WRAP_TIMEOUT_MS is how long hb-rest waits."
		}
		return fault.New("BRIDGE_TIMEOUT", "the daemon at %s did not answer in %s", c.addr, waited(caller, timeout)).
			With(fault.Retryable(k == repeatable), fault.Hint("%s", hint), fault.Cause(err))
	}
	e := fault.New("BRIDGE_UNREACHABLE", "the daemon at %s closed the connection before it answered", c.addr).With(fault.Cause(err))
	var notSent *unsent
	if k == once && !errors.As(err, &notSent) {
		e.With(fault.Retryable(false),
			fault.Hint("The call may have been carried out: check before you repeat it. `hbrestd run` starts the daemon if it has ended."))
	}
	return e
}

// waited is the limit that ended a call, in words.
func waited(caller context.Context, timeout time.Duration) string {
	if caller.Err() != nil {
		return "the caller's time"
	}
	return timeout.String()
}

// badAnswer is for a daemon that is proven but does not talk as expected.
func badAnswer(format string, args ...any) *fault.Error {
	return fault.New("BRIDGE_BAD_ANSWER", format, args...).With(fault.Hint("Update hb-rest and hbrestd to the same version and restart both; `hbrestd version` and `hb-rest --version` print it."))
}
