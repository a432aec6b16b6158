// Package outbound is the one door to the network: it sends one request under
// the policy and returns the answer, bounded in size and time.
//
// Every name is resolved once, every address of the answer is checked, and the
// checked address itself is dialled, so that a name which changes its answer
// between check and use gains nothing. Redirects are followed by the package's
// own loop, each hop through the same checks; a credential leaves with the
// origin it was given for and never comes back.
//
// It never uses a proxy, a cookie jar or http.Client, never reads the
// environment, never sees where a credential comes from, and never maps an
// upstream status to an error: any final status is a [Response]. Start with
// [New] and [Client.Send].
package outbound

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"runtime"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// Defaults and bounds. A zero field of [Policy] or [Request] means the default.
const (
	DefaultTimeout = 15 * time.Second // of a request: queue, redirects and body included
	MaxTimeout     = 60 * time.Second // most that a request may ask for

	DefaultMaxRedirects = 5
	DefaultMaxBytes     = 5 << 20 // of a body after decompression
	DefaultPerHost      = 32      // exchanges in flight to one origin

	MaxWaiting       = 256      // requests waiting for one origin; the next is BUSY
	MaxURL           = 16 << 10 // bytes; common servers refuse more than 8 KiB
	MaxRequestBody   = 5 << 20  // bytes, the same as for answers
	MaxRequestHeader = 64 << 10 // bytes of names and values together
	maxHeader        = 1 << 20  // bytes of an answer's header

	// Of an answer that is no success the body only explains the status.
	maxMessage  = 1 << 20         // bytes of it, after decompression
	messageTime = 2 * time.Second // for its last byte, after the header

	// A redirect's short page may go by, so that the connection can be kept: the
	// next request would most often go to the same host.
	maxPage  = 2 << 10                // bytes
	pageTime = 100 * time.Millisecond // about what a new connection costs
)

// A Policy says where requests may go and how much may come back. Its zero
// value is the strict one: https only, public addresses only.
type Policy struct {
	AllowHTTP    bool          // plain http everywhere
	AllowPrivate bool          // private addresses everywhere, and plain http with them
	MaxRedirects int           // hops followed; negative means none
	MaxBytes     int64         // of a body after decompression
	MaxTimeout   time.Duration // upper bound of Request.Timeout
	PerHost      int           // exchanges in flight to one origin
	Allowed      []HostPort    // private destinations a person allowed one by one
}

// A HostPort is one private destination that a person allowed. It lifts
// "private" for that name only, never the addresses that no switch opens.
type HostPort struct {
	Host string // a name or an address literal, in any spelling
	Port string // decimal; empty for every port
	HTTP bool   // plain http too
}

// Options are the client's surroundings. The zero value works: the system's
// resolver and dialer, no audit, the system's clock and certificate roots.
type Options struct {
	// Lookup resolves a canonical name; every address of its answer must pass.
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error)
	// DialAddr connects to an address that has passed.
	DialAddr func(ctx context.Context, addr netip.AddrPort) (net.Conn, error)
	// Interfaces lists the machine's own addresses, which count as private.
	Interfaces func() []netip.Addr
	// Self lists the addresses the daemon listens on, which are never dialled.
	Self func() []netip.AddrPort
	// Intent is called before each hop of a Durable request; with an error
	// nothing is sent, and Send returns it (AUDIT_FAILED unless it is a fault).
	Intent func(ctx context.Context, x Exchange) error
	// Observe is called once after each hop, also one that the policy refused.
	Observe func(ctx context.Context, x Exchange)
	// Now is the clock for Exchange.Start and the durations.
	Now func() time.Time
	// TLS is the base of the TLS settings, for roots and test certificates.
	TLS *tls.Config
	// UserAgent is sent when a request has none; default "hb-rest".
	UserAgent string
}

// A Tag says on whose behalf a request is sent; it is passed on to Intent and
// Observe as it is.
type Tag struct {
	Kind    string // run, test, derive, mint, import
	Wrapper string // id of the wrapper, if any
	Call    string // id that the rows of one call share
}

// A Request is what to send. Header and Body are the caller's; Send changes neither.
type Request struct {
	Method string
	URL    *url.URL
	Header http.Header
	Body   []byte
	// Timeout covers everything from the queue to the last byte of the body, but
	// not the wait for Rate.
	Timeout time.Duration
	// SecretHeaders are dropped for good when a redirect changes the origin.
	SecretHeaders []string
	// HoldsSecret reports a spelling of the credential in a text; nil: there is
	// none. A redirect that would carry it to another origin, in a host name too,
	// is refused.
	HoldsSecret func(text string) bool
	// NoRedirects makes a redirect the final answer, without its body: for a
	// request that must never be repeated elsewhere, such as one to a token
	// endpoint, whose form holds a secret.
	NoRedirects bool
	// Durable makes Options.Intent a condition of sending.
	Durable bool
	// Mutating marks a request that changes something although its method is
	// GET or HEAD (a method-override header). Other methods always do.
	Mutating bool
	// Repeatable marks a write that does nothing more when it is done twice. It
	// decides whether a fault is retryable; redirects are as strict as ever.
	Repeatable bool
	// Concurrency, unless 0, makes the request wait until fewer than so many are
	// in flight to the origin, whoever sent them. Policy.PerHost holds as well.
	Concurrency int
	// Rate holds the request back until its turn. The wait for it comes before
	// Timeout begins, but for a redirect; it ends with the context.
	Rate Rate
	Tag  Tag
	// Judge says what is wrong with the final answer, "" for nothing, and that is
	// Exchange.Err: whether an answer is a failure only its reader knows. It is
	// called once, before Observe, with the answer that Send then returns, and may
	// change it; the request has left its place and its time has stopped. nil:
	// nothing is ever wrong with an answer.
	Judge func(*Response) fault.Code
}

// NewRequest makes a request, so that callers need not import net/http.
func NewRequest(method string, u *url.URL, body []byte) *Request {
	return &Request{Method: method, URL: u, Header: http.Header{}, Body: body}
}

// write reports whether sending the request twice may do something twice.
func (r *Request) write() bool {
	return r.Mutating || r.Method != http.MethodGet && r.Method != http.MethodHead
}

// repeatable reports whether sending the request twice does no harm.
func (r *Request) repeatable() bool { return r.Repeatable || !r.write() }

// A Response is the final answer, whatever its status. A 2xx is whole. Of any
// other the status has said what became of the request: of its body at most 1
// MiB are read, within two seconds, and a fault in it is none of the request.
type Response struct {
	Status   int
	Header   http.Header   // as received, without Content-Encoding
	Body     []byte        // after decompression, in the answer's own charset: see UTF8
	Partial  bool          // Body is not all of it, or could not be decoded; never with a 2xx
	URL      *url.URL      // of the last hop
	Hops     int           // redirects followed
	Duration time.Duration // of all hops
}

// An Exchange is one hop as the audit trail sees it: no path, no query, no
// header, no body.
type Exchange struct {
	Tag      Tag
	Method   string
	Host     string // canonical host, with the port if it is not the scheme's own
	Hop      int    // 0 for the request itself, 1 for the first redirect
	Durable  bool
	Start    time.Time
	Duration time.Duration
	Status   int        // 0 if there was no answer
	Bytes    int64      // of the body, after decompression, as far as read
	Err      fault.Code // empty if the hop went well, by Request.Judge as well
}

// A Client sends requests under one policy. It is safe for concurrent use. A
// changed policy needs a new Client: a kept-alive connection that one policy
// allowed must not serve another.
type Client struct {
	policy    Policy
	opt       Options
	transport *http.Transport
	fresh     *http.Transport // each request on a connection of its own
	queue     queue
	pacing    pacing
	spots     spots
	agent     []string      // the header's value; nobody changes it
	decoding  chan struct{} // as many as may decode at once
}

// New makes a client; it opens nothing before the first Send.
func New(p Policy, o Options) *Client {
	p = p.withDefaults()
	if o.Lookup == nil {
		o.Lookup = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	if o.Interfaces == nil {
		o.Interfaces = interfaces
	}
	if o.Self == nil {
		o.Self = func() []netip.AddrPort { return nil }
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.UserAgent == "" {
		o.UserAgent = "hb-rest"
	}
	c := &Client{policy: p, opt: o, queue: queue{limit: p.PerHost}, pacing: pacing{turns: queue{limit: 1}}, decoding: make(chan struct{}, runtime.GOMAXPROCS(0))}
	c.agent = []string{o.UserAgent}
	conf := &tls.Config{}
	if o.TLS != nil {
		conf = o.TLS.Clone()
	}
	conf.MinVersion = max(conf.MinVersion, tls.VersionTLS12)
	c.transport = &http.Transport{
		Proxy:                  nil, // never: a proxy would move the address check to itself
		DialContext:            c.dial,
		TLSHandshakeTimeout:    handshakeTime,
		TLSClientConfig:        conf,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true, // decoded here, counted and bounded
		MaxResponseHeaderBytes: maxHeader,
		MaxIdleConns:           4 * DefaultPerHost,
		MaxIdleConnsPerHost:    p.PerHost, // fewer would close and dial again under load
		IdleConnTimeout:        60 * time.Second,
		ExpectContinueTimeout:  time.Second,
	}
	c.fresh = c.transport.Clone()
	c.fresh.DisableKeepAlives = true
	return c
}

// Policy returns the policy the client was made with, defaults filled in.
func (c *Client) Policy() Policy { return c.policy }

// Close closes idle connections. Requests in flight go on.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

func (p Policy) withDefaults() Policy {
	if p.MaxRedirects == 0 {
		p.MaxRedirects = DefaultMaxRedirects
	}
	if p.MaxBytes <= 0 {
		p.MaxBytes = DefaultMaxBytes
	}
	if p.MaxTimeout <= 0 {
		p.MaxTimeout = MaxTimeout
	}
	if p.PerHost <= 0 {
		p.PerHost = DefaultPerHost
	}
	return p
}
