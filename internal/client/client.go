// Package client calls the bridge of hbrestd: it reads the token file before
// every call, lets the daemon prove itself on every new connection, and turns
// the answer into a value of package api or into a *fault.Error that says what
// to do.
//
// It never sends the token or an argument to a program that has not proven that
// it is the daemon, never follows a redirect or a proxy, and never sends a call
// twice that may have been carried out. Start with [New].
package client

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// DefaultTimeout is how long a call waits when Options has no Timeout: the
// daemon's own limit of a call and five seconds.
const DefaultTimeout = 55 * time.Second

// PollWait is how long the daemon holds a call that asks for news.
const PollWait = 25 * time.Second

// pollGrace is how much longer than PollWait the answer may take.
const pollGrace = 5 * time.Second

// startGrace is how long after the start of this process a daemon that is not
// there yet is waited for: both may have been started by the same login.
const startGrace = 2 * time.Second

// Options of a Client. URL and TokenFiles are required.
type Options struct {
	URL        *url.URL      // http with a literal loopback address and a port
	TokenFiles []string      // the first that exists is read; a single one is HB_WRAP_TOKEN_FILE
	Version    string        // of the calling program, sent with each call: one line of text
	Timeout    time.Duration // of a whole call; 0: DefaultTimeout
	// Started is when this process started; for two seconds from then a missing
	// daemon or token file is waited for. Zero: when New was called. A time long
	// ago: never wait.
	Started time.Time
	Now     func() time.Time // nil: time.Now
	Log     *slog.Logger     // nil: nothing is logged; never gets a token, an argument or a result
}

// A Client calls one bridge. It may be used by many goroutines.
type Client struct {
	files    []string
	version  string
	timeout  time.Duration
	started  time.Time
	now      func() time.Time
	log      *slog.Logger
	patience time.Duration // for a proof; helloTimeout outside tests
	peek     bool          // canPeek outside tests

	addr   netip.AddrPort // what is dialled
	urlErr error          // why there is nothing to dial

	revision atomic.Uint64
	server   atomic.Pointer[string]

	mu   sync.Mutex
	line *line // the connections proven under the newest token; guarded by mu
}

// New makes a client. It opens nothing: a daemon that is not there, or a URL
// that is not a loopback one, shows in the calls.
func New(o Options) *Client {
	c := &Client{files: o.TokenFiles, version: printable(o.Version), timeout: o.Timeout, started: o.Started, now: o.Now, log: o.Log, patience: helloTimeout, peek: canPeek}
	if c.timeout <= 0 {
		c.timeout = DefaultTimeout
	}
	if c.now == nil {
		c.now = time.Now
	}
	if c.started.IsZero() {
		c.started = c.now()
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	c.addr, c.urlErr = loopback(o.URL)
	return c
}

// printable is s without what ends or hides a line of a header.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return -1
		}
		return r
	}, s)
}

// Status asks the daemon about itself.
func (c *Client) Status(ctx context.Context) (*api.Status, error) {
	return get[api.Status](ctx, c, "/wrap/status")
}

// Manifest lists the wrappers. With after above 0 it waits for news: the daemon
// answers as soon as its revision is above after, or else after up to
// [PollWait] with the list as it is. Such a call may take longer than the
// client's Timeout, and one that is cut by a daemon's stop is sent again once.
func (c *Client) Manifest(ctx context.Context, after uint64) (*api.Manifest, error) {
	return c.manifest(ctx, after, url.Values{})
}

func (c *Client) manifest(ctx context.Context, after uint64, q url.Values) (*api.Manifest, error) {
	path, timeout := "/wrap/manifest", c.timeout
	if after > 0 {
		q.Set("after", strconv.FormatUint(after, 10))
		timeout = max(timeout, PollWait+pollGrace)
	}
	if len(q) > 0 {
		path += "?" + q.Encode()
	}
	r, err := c.call(ctx, http.MethodGet, path, nil, repeatable, timeout)
	if err != nil {
		return nil, err
	}
	return decode[api.Manifest](c, r)
}

// Select is Manifest of some of the wrappers. A daemon that was started before
// it could choose lists all of them: then Total and Mark are not set.
func (c *Client) Select(ctx context.Context, q *api.ManifestQuery) (*api.Manifest, error) {
	p := url.Values{}
	if q.Query != "" {
		p.Set("query", q.Query)
	}
	if q.Limit > 0 {
		p.Set("limit", strconv.Itoa(q.Limit))
	}
	if q.Tools {
		p.Set("tools", "1")
	}
	if q.Since != "" {
		p.Set("since", q.Since)
	}
	m, err := c.manifest(ctx, q.After, p)
	if fault.Is(err, "BAD_REQUEST") && strings.HasPrefix(fault.From(err).Field, "query.") {
		return c.Manifest(ctx, q.After)
	}
	return m, err
}

// Wrapper is one stored document, as the daemon wrote it.
func (c *Client) Wrapper(ctx context.Context, id string) (json.RawMessage, error) {
	doc, err := get[json.RawMessage](ctx, c, "/wrap/wrapper?id="+url.QueryEscape(id))
	if err != nil {
		return nil, err
	}
	return *doc, nil
}

// Secrets lists what may be known of credentials.
func (c *Client) Secrets(ctx context.Context) (*api.SecretList, error) {
	return get[api.SecretList](ctx, c, "/wrap/secrets")
}

// Recall searches what wrappers have read before.
func (c *Client) Recall(ctx context.Context, q *api.RecallRequest) (*api.RecallResult, error) {
	p := url.Values{"query": {q.Query}}
	if q.Wrapper != "" {
		p.Set("wrapper", q.Wrapper)
	}
	if q.Since != "" {
		p.Set("since", q.Since)
	}
	if q.Limit != 0 {
		p.Set("limit", strconv.Itoa(q.Limit))
	}
	return get[api.RecallResult](ctx, c, "/wrap/recall?"+p.Encode())
}

// Run calls a saved wrapper. It is sent at most once.
func (c *Client) Run(ctx context.Context, q *api.RunRequest) (*api.RunResult, error) {
	return post[api.RunResult](ctx, c, "/wrap/run", q, once)
}

// Test plans a call, renders a sample, or calls without saving. The last of
// these is sent at most once.
func (c *Client) Test(ctx context.Context, q *api.TestRequest) (*api.TestResult, error) {
	k := repeatable
	if sampled := len(q.Sample) > 0 && string(q.Sample) != "null"; q.DryRun != nil && !*q.DryRun && !sampled {
		k = once
	}
	r, err := post[testAnswer](ctx, c, "/wrap/test", q, k)
	if err != nil {
		return nil, err
	}
	return &r.TestResult, nil
}

// Derive drafts a recipe.
func (c *Client) Derive(ctx context.Context, q *api.DeriveRequest) (*api.DeriveResult, error) {
	return post[api.DeriveResult](ctx, c, "/wrap/derive", q, repeatable)
}

// Change creates, updates, deletes or gets a wrapper. All but the last are sent
// at most once.
func (c *Client) Change(ctx context.Context, q *api.ChangeRequest) (*api.ChangeResult, error) {
	k := once
	if q.Action == "get" {
		k = repeatable
	}
	return post[api.ChangeResult](ctx, c, "/wrap/wrappers", q, k)
}

// Revision is the store's revision that the last answer named; 0 before the
// first.
func (c *Client) Revision() uint64 { return c.revision.Load() }

// ServerVersion is the daemon's version; empty before the first answer.
func (c *Client) ServerVersion() string {
	if v := c.server.Load(); v != nil {
		return *v
	}
	return ""
}

// Skew is one line for a person when the daemon is of another version than this
// program; empty when it is not, or not known.
func (c *Client) Skew() string {
	v := c.ServerVersion()
	if v == "" || c.version == "" || v == c.version {
		return ""
	}
	return fmt.Sprintf("hb-rest is version %s, but hbrestd is %s: update both to the same version, then restart both", c.version, v)
}

// Close closes the connections that no call is using. The client can still be
// used.
func (c *Client) Close() {
	c.mu.Lock()
	l := c.line
	c.line = nil
	c.mu.Unlock()
	if l != nil {
		l.close()
	}
}

// loopback admits http://ADDRESS:PORT with a literal loopback address: a name
// could be resolved to another machine, and then the token would travel.
func loopback(u *url.URL) (netip.AddrPort, error) {
	if u == nil {
		return netip.AddrPort{}, fmt.Errorf("no bridge URL is set")
	}
	bad := fmt.Errorf("the bridge URL %s is not http://127.0.0.1:PORT or http://[::1]:PORT", u.Redacted())
	addr, err := netip.ParseAddr(u.Hostname())
	if err != nil || !addr.IsLoopback() || addr.Is4In6() || addr.Zone() != "" || u.Scheme != "http" ||
		u.User != nil || u.RawQuery != "" || u.Fragment != "" || (u.Path != "" && u.Path != "/") {
		return netip.AddrPort{}, bad
	}
	port, err := strconv.ParseUint(cmp.Or(u.Port(), "80"), 10, 16)
	if err != nil || port == 0 {
		return netip.AddrPort{}, bad
	}
	return netip.AddrPortFrom(addr, uint16(port)), nil
}
