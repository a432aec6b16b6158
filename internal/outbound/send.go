package outbound

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// A hop is one exchange of a request: the request itself, or a redirect of it.
type hop struct {
	req    *Request
	n      int       // 0 for the request itself
	begin  time.Time // of the whole request
	method string
	header http.Header // what the caller gave, less what redirects took away
	body   []byte
	write  bool
	safe   bool // nothing is done twice if the whole request is repeated
	target *target
	limit  time.Duration // of the whole request, for messages
	most   time.Duration // what the policy would give it at most
	again  []time.Time   // when net/http sent it once more by itself, see way
}

// Send sends r and follows redirects, all within r.Timeout. It returns the final
// answer whatever its status, or an error: a *fault.Error with a POLICY_,
// UPSTREAM_ or RESPONSE_ code, BUSY, what Intent returned, or ctx's own error
// when ctx ended first.
func (c *Client) Send(ctx context.Context, r *Request) (*Response, error) {
	begin := c.opt.Now()
	limit := r.Timeout
	if limit <= 0 {
		limit = DefaultTimeout
	}
	limit = min(limit, c.policy.MaxTimeout)
	h, err := c.first(r)
	if err != nil {
		c.observe(ctx, refused(r, begin), err)
		return nil, err
	}
	h.begin, h.limit, h.most = begin, limit, c.policy.MaxTimeout
	turn, err := c.wait(ctx, ctx, h)
	if err != nil {
		return nil, err
	}
	until := time.Now().Add(limit) // by the system's clock, as all deadlines
	for {
		resp, next, err := c.step(ctx, until, h, turn)
		if err != nil {
			return nil, err
		}
		if next == nil {
			return resp, nil
		}
		h = next
	}
}

// step is one hop from its wait to its answer. The first has had its turn.
func (c *Client) step(caller context.Context, until time.Time, h *hop, t *turn) (resp *Response, next *hop, err error) {
	ctx, leave := context.WithDeadline(caller, until)
	defer leave()
	if h.n > 0 {
		if t, err = c.wait(caller, ctx, h); err != nil {
			return nil, nil, err
		}
	}
	return c.exchange(caller, ctx, leave, h, t)
}

// wait waits for the hop's turn at its rate. ctx is caller, with the request's
// own timeout once that runs.
func (c *Client) wait(caller, ctx context.Context, h *hop) (*turn, error) {
	if h.req.Rate.Requests <= 0 {
		return nil, nil
	}
	x := c.opened(h)
	t, err := c.pacing.wait(ctx, h.target.origin, h.req.Rate)
	if err != nil {
		err = ended(caller, h, err)
		c.observe(ctx, x, err)
	}
	return t, err
}

// opened is the record of a hop that begins now.
func (c *Client) opened(h *hop) Exchange {
	return Exchange{Tag: h.req.Tag, Method: h.method, Host: h.target.authority, Hop: h.n, Durable: h.req.Durable, Start: c.opt.Now()}
}

// first checks what needs no network and makes the first hop.
func (c *Client) first(r *Request) (*hop, error) {
	t, err := c.target(r.URL)
	if err != nil {
		return nil, err
	}
	if !isToken(r.Method) || r.Method == http.MethodConnect || r.Method == http.MethodTrace {
		return nil, fault.New("POLICY_URL", "the method %q is not sent", fault.Shorten(r.Method, 20)).With(fault.Field("wrapper.request.method"))
	}
	if len(r.Body) > MaxRequestBody {
		return nil, fault.New("POLICY_REQUEST_TOO_LARGE", "the body has %d bytes; at most %d are sent", len(r.Body), MaxRequestBody).With(fault.Field("wrapper.request.body"))
	}
	header, err := cleanHeader(r.Header)
	if err != nil {
		return nil, err
	}
	return &hop{req: r, method: r.Method, header: header, body: r.Body, write: r.write(), safe: r.repeatable(), target: t}, nil
}

// notOurs are headers that frame the message or name its receiver. The wrapper
// validator refuses them; here they are dropped should one come through.
var notOurs = []string{"Host", "Content-Length", "Transfer-Encoding", "Connection", "Keep-Alive", "Te", "Trailer", "Upgrade", "Expect", "Accept-Encoding"}

func cleanHeader(in http.Header) (http.Header, error) {
	out, size := http.Header{}, 0
	for name, values := range in {
		key := http.CanonicalHeaderKey(name)
		if slices.Contains(notOurs, key) || strings.HasPrefix(key, "Proxy-") {
			continue
		}
		if !isToken(name) {
			return nil, fault.New("POLICY_URL", "the header name %q is not valid", fault.Shorten(name, 40)).With(fault.Field("wrapper.request.headers"))
		}
		for _, v := range values {
			if strings.ContainsFunc(v, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
				return nil, fault.New("POLICY_URL", "the header %s has a control character", key).With(fault.Field("wrapper.request.headers"))
			}
			size += len(key) + len(v) + len(": \r\n")
		}
		if have, twice := out[key]; twice { // in two spellings
			values = append(have[:len(have):len(have)], values...)
		}
		out[key] = values // the caller's, which are only read
	}
	if size > MaxRequestHeader {
		return nil, fault.New("POLICY_REQUEST_TOO_LARGE", "the headers have %d bytes; at most %d are sent", size, MaxRequestHeader).With(fault.Field("wrapper.request.headers"))
	}
	return out, nil
}

// isToken is the grammar of methods and header names (RFC 9110 section 5.6.2).
func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("!#$%&'*+-.^_`|~", r))
	})
}

// exchange sends one hop and decides what follows: an answer, a next hop, or an
// error. Whatever happened is observed once. ctx is caller with the request's
// own timeout, and leave ends it. The turn is used once nothing is left to wait for, so that the
// wait for a place does not bring requests closer together.
func (c *Client) exchange(caller, ctx context.Context, leave context.CancelFunc, h *hop, t *turn) (resp *Response, next *hop, err error) {
	x := c.opened(h)
	giveBack, err := c.queue.enter(ctx, h.target.origin, h.req.Concurrency)
	if err != nil {
		t.drop()
		if err == errFull {
			err = fault.New("BUSY", "as many requests to %s as may be are in flight, and %d wait already", h.target.origin, MaxWaiting)
		}
		err = ended(caller, h, err)
		c.observe(ctx, x, err)
		return nil, nil, err
	}
	inside := true
	out := func() {
		if inside {
			inside = false
			giveBack()
		}
	}
	defer out()
	if h.req.Durable && c.opt.Intent != nil {
		if err := c.opt.Intent(ctx, x); err != nil {
			t.drop()
			return nil, nil, ended(caller, h, intentFault(err))
		}
	}
	t.start()
	resp, err = c.roundTrip(ctx, leave, h)
	out() // nobody has to wait for what becomes of the answer
	x = c.repetitions(ctx, h, x)
	if resp != nil {
		x.Status, x.Bytes = resp.Status, int64(len(resp.Body))
	}
	if err == nil && isRedirect(resp.Status) && !h.req.NoRedirects {
		next, err = c.follow(h, resp)
	}
	err = ended(caller, h, err)
	x.ended(c.opt.Now(), err)
	defer func() { c.report(ctx, x) }() // also when the judge panics
	if err == nil && next == nil {
		resp.Duration, resp.Hops = c.opt.Now().Sub(h.begin), h.n
		if h.req.Judge != nil {
			x.Err = h.req.Judge(resp)
		}
	}
	return resp, next, err
}

// repetitions reports what net/http sent before it came to an answer, because
// the API may have seen that too. It returns the record of the last one.
func (c *Client) repetitions(ctx context.Context, h *hop, x Exchange) Exchange {
	for _, at := range h.again {
		broken := x
		broken.Duration, broken.Err = at.Sub(x.Start), "UPSTREAM_CONNECT"
		c.report(ctx, broken)
		x.Start = at
	}
	return x
}

func intentFault(err error) error {
	var f *fault.Error
	if errors.As(err, &f) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fault.New("AUDIT_FAILED", "the audit trail could not record the request, so it was not sent").With(fault.Cause(err))
}

// observe reports the end of a hop that got no answer.
func (c *Client) observe(ctx context.Context, x Exchange, err error) {
	x.ended(c.opt.Now(), err)
	c.report(ctx, x)
}

func (x *Exchange) ended(at time.Time, err error) {
	x.Duration = at.Sub(x.Start)
	if err != nil {
		x.Err = fault.From(err).Code
	}
}

// report hands a hop out. The row is written even when the call is over.
func (c *Client) report(ctx context.Context, x Exchange) {
	if c.opt.Observe != nil {
		c.opt.Observe(context.WithoutCancel(ctx), x)
	}
}

// refused is the record of a request that the policy stopped before its first
// hop. The host is left out where it could not be read safely.
func refused(r *Request, at time.Time) Exchange {
	x := Exchange{Tag: r.Tag, Method: r.Method, Durable: r.Durable, Start: at}
	if r.URL != nil {
		x.Host = fault.Shorten(r.URL.Host, 100)
		if i := strings.LastIndexByte(x.Host, '@'); i >= 0 {
			x.Host = x.Host[i+1:]
		}
	}
	return x
}

// roundTrip sends one hop and reads its answer, and leaves it. With an error the
// response, if any, holds the status and what was read.
func (c *Client) roundTrip(ctx context.Context, leave context.CancelFunc, h *hop) (*Response, error) {
	defer leave()
	w, wctx := h.wire(ctx, c.opt.Now)
	got, err := c.way(h).RoundTrip(c.request(wctx, h))
	if h.again = w.repeated(); h.write { // what is repeated of a write was certainly not processed
		h.again = nil
	}
	if err != nil {
		w.fail()
		return nil, sendFault(ctx, h, w, err)
	}
	defer got.Body.Close() //nolint:errcheck // nothing left to learn from it
	shown := *h.target.url
	resp := &Response{Status: got.StatusCode, Header: got.Header, URL: &shown}
	if got.StatusCode == http.StatusSwitchingProtocols {
		return resp, fault.New("UPSTREAM_PROTOCOL", "%s wants to switch to another protocol", h.target.host).With(fault.Status(got.StatusCode))
	}
	if isRedirect(got.StatusCode) {
		if got.ContentLength <= maxPage {
			defer time.AfterFunc(pageTime, leave).Stop()
			_, _ = io.CopyN(io.Discard, got.Body, maxPage)
		}
		return resp, nil
	}
	if got.StatusCode < 200 || got.StatusCode > 299 {
		defer time.AfterFunc(messageTime, leave).Stop()
		resp.Body, err = c.message(got, h.method)
		resp.Partial = err != nil
	} else if resp.Body, err = c.read(got, h.method); err != nil {
		return resp, c.readFault(ctx, h, resp.Status, err)
	}
	resp.Header.Del("Content-Encoding")
	return resp, nil
}

// way is the transport for a hop. On a kept-alive connection that breaks, the
// library sends a GET again by itself, also one that changes something; on a
// new connection it never does.
func (c *Client) way(h *hop) *http.Transport {
	if h.write {
		switch h.method {
		case http.MethodGet, http.MethodHead, http.MethodOptions:
			return c.fresh
		}
	}
	return c.transport
}

// replayed are the headers by which net/http takes a write for one that may be
// repeated although the server perhaps did it. It looks for this spelling only.
var replayed = []string{"Idempotency-Key", "X-Idempotency-Key"}

// request is the hop as net/http wants it. The headers that belong to us are
// set here, so that neither a wrapper nor a redirect can change them. They are
// set in the hop's own header: each hop has one.
func (c *Client) request(ctx context.Context, h *hop) *http.Request {
	header := h.header
	header["Accept-Encoding"] = allEncodings
	if header.Get("Range") != "" {
		header["Accept-Encoding"] = noEncoding // a range of compressed bytes cannot be decoded
	}
	if header.Get("User-Agent") == "" {
		header["User-Agent"] = c.agent
	}
	for _, name := range replayed {
		if v, ok := header[name]; ok && h.write { // each try is one that we know of
			delete(header, name)
			header[strings.ToLower(name)] = v
		}
	}
	u := h.target.url
	hr := (&http.Request{Method: h.method, URL: u, Host: u.Host, Header: header, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}).WithContext(ctx)
	if len(h.body) == 0 {
		hr.Body = http.NoBody
		return hr
	}
	hr.ContentLength = int64(len(h.body))
	// With GetBody the transport repeats what a server certainly did not process
	// (a kept-alive connection that was closed meanwhile, a refused HTTP/2
	// stream), and otherwise no write: see way and replayed.
	hr.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(h.body)), nil }
	hr.Body, _ = hr.GetBody()
	return hr
}
