package control

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
)

// How long the client waits for an answer. The caller's context may end a call
// earlier, and its end reaches the daemon.
const (
	dialTimeout    = 5 * time.Second  // for a process on the same machine to take a connection
	lookTimeout    = 15 * time.Second // for reading what the daemon knows
	changeTimeout  = time.Minute      // for what ends with a disk sync, or a thousand wrappers
	keyringTimeout = 30 * time.Second // for a keyring, which the daemon gives up on after 5 s a try
	verifyTimeout  = 10 * time.Minute // for reading a whole audit trail
	waitTimeout    = 2 * time.Minute  // for a call that waits for news; the daemon answers earlier
	runTimeout     = 50 * time.Second // for a wrapper's call, when the daemon does not say
	runGrace       = 5 * time.Second  // and for the way back
)

// ClientOptions are the parts of a Client that have a default.
type ClientOptions struct {
	Version string        // of the calling program, sent with each call
	Timeout time.Duration // of every call; 0: what suits its kind
}

// A Client makes a person's calls to the running daemon. It is a [Backend] at a
// distance: the same methods, the same types, the same faults. A failed call of
// a wrapper is an *api.CallError around its fault, as the daemon made it. Each
// call has a connection of its own, whose other end is checked first, and is
// sent at most once. A Client holds nothing open and may be used by many
// goroutines.
type Client struct {
	path      string
	version   string
	timeout   time.Duration
	most      int64 // bytes of an answer; maxAnswer outside tests
	transport *http.Transport
	server    atomic.Pointer[string]
	run       atomic.Int64 // the daemon's limit of a wrapper's call, in ns; 0: not asked yet
}

var _ Backend = (*Client)(nil)

// NewClient makes a client of the daemon that listens at path. It opens
// nothing: a daemon that is not there is a BRIDGE_UNREACHABLE of each call, and
// a socket that is not safely this user's a BRIDGE_BAD_ANSWER.
func NewClient(path string, o ClientOptions) *Client {
	var p http.Protocols
	p.SetHTTP1(true)
	c := &Client{path: path, version: o.Version, timeout: o.Timeout, most: maxAnswer}
	c.transport = &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			// This context is not the call's: it ends only with dialTimeout.
			ctx, cancel := context.WithTimeout(ctx, dialTimeout)
			defer cancel()
			return dial(ctx, path)
		},
		Protocols:              &p,
		Proxy:                  nil, // whatever the environment says
		DisableCompression:     true,
		DisableKeepAlives:      true,
		MaxResponseHeaderBytes: maxHeader,
		WriteBufferSize:        64 << 10,
		ReadBufferSize:         64 << 10,
	}
	return c
}

// Path is the socket or pipe that the client calls.
func (c *Client) Path() string { return c.path }

// ServerVersion is the daemon's version; empty before the first answer.
func (c *Client) ServerVersion() string {
	if v := c.server.Load(); v != nil {
		return *v
	}
	return ""
}

// Status asks the daemon about itself.
func (c *Client) Status(ctx context.Context) (*api.Status, error) {
	return ask[api.Status](ctx, c, pathStatus, nil, lookTimeout)
}

// Manifest lists the wrappers. When after is the current revision, it waits for
// the next one, for a while.
func (c *Client) Manifest(ctx context.Context, after uint64) (*api.Manifest, error) {
	if after == 0 {
		return ask[api.Manifest](ctx, c, pathManifest, nil, lookTimeout)
	}
	return ask[api.Manifest](ctx, c, pathManifest, url.Values{"after": {number(after)}}, waitTimeout)
}

// Wrapper is one stored document, as the daemon wrote it.
func (c *Client) Wrapper(ctx context.Context, id string) (json.RawMessage, error) {
	doc, err := ask[json.RawMessage](ctx, c, pathWrapper, url.Values{"id": {id}}, lookTimeout)
	if err != nil {
		return nil, err
	}
	return *doc, nil
}

// Secrets lists what may be known of credentials.
func (c *Client) Secrets(ctx context.Context) (*api.SecretList, error) {
	return ask[api.SecretList](ctx, c, pathSecrets, nil, lookTimeout)
}

// Run calls a saved wrapper.
func (c *Client) Run(ctx context.Context, q *api.RunRequest) (*api.RunResult, error) {
	return send[api.RunResult](ctx, c, pathRun, q, c.runTime(ctx))
}

// Test plans a call, renders a sample, or calls without saving.
func (c *Client) Test(ctx context.Context, q *api.TestRequest) (*api.TestResult, error) {
	r, err := send[testAnswer](ctx, c, pathTest, q, c.runTime(ctx))
	if err != nil {
		return nil, err
	}
	return &r.TestResult, nil
}

// Derive drafts a recipe.
func (c *Client) Derive(ctx context.Context, q *api.DeriveRequest) (*api.DeriveResult, error) {
	return send[api.DeriveResult](ctx, c, pathDerive, q, c.runTime(ctx))
}

// Change creates, updates, deletes or gets a wrapper.
func (c *Client) Change(ctx context.Context, q *api.ChangeRequest) (*api.ChangeResult, error) {
	return send[api.ChangeResult](ctx, c, pathChange, q, changeTimeout)
}

// Audit is the newest rows, at most limit; 0 leaves that to the daemon.
func (c *Client) Audit(ctx context.Context, limit int) (*api.AuditPage, error) {
	return ask[api.AuditPage](ctx, c, pathAudit, limited(url.Values{}, limit), lookTimeout)
}

// Apply saves many wrappers, all or none.
func (c *Client) Apply(ctx context.Context, q *ApplyRequest) (*ApplyResult, error) {
	return send[ApplyResult](ctx, c, pathApply, q, changeTimeout)
}

// Expose turns a wrapper into a tool, or back.
func (c *Client) Expose(ctx context.Context, q *ExposeRequest) (*ExposeResult, error) {
	return send[ExposeResult](ctx, c, pathExpose, q, changeTimeout)
}

// Allowed lists the private names that may be reached.
func (c *Client) Allowed(ctx context.Context) (*AllowList, error) {
	return ask[AllowList](ctx, c, pathAllow, nil, lookTimeout)
}

// Allow adds a rule.
func (c *Client) Allow(ctx context.Context, q *AllowRule) (*AllowList, error) {
	return send[AllowList](ctx, c, pathAllow, q, changeTimeout)
}

// Disallow removes a rule.
func (c *Client) Disallow(ctx context.Context, q *AllowRule) (*AllowList, error) {
	return send[AllowList](ctx, c, pathDisallow, q, changeTimeout)
}

// Settings lists the daemon's settings.
func (c *Client) Settings(ctx context.Context) (*SettingList, error) {
	return ask[SettingList](ctx, c, pathSettings, nil, lookTimeout)
}

// SetSetting stores or forgets a value.
func (c *Client) SetSetting(ctx context.Context, q *SettingChange) (*SettingList, error) {
	return send[SettingList](ctx, c, pathSettings, q, changeTimeout)
}

// AuditFollow is the rows after a sequence number, at most limit; with none it
// waits for the next one, for a while.
func (c *Client) AuditFollow(ctx context.Context, after uint64, limit int) (*api.AuditPage, error) {
	return ask[api.AuditPage](ctx, c, pathFollow, limited(url.Values{"after": {number(after)}}, limit), waitTimeout)
}

// AuditVerify reads the whole chain.
func (c *Client) AuditVerify(ctx context.Context, q *AuditVerifyRequest) (*AuditReport, error) {
	return send[AuditReport](ctx, c, pathVerify, q, verifyTimeout)
}

// AuditHead is the end of the chain.
func (c *Client) AuditHead(ctx context.Context) (*AuditHead, error) {
	return ask[AuditHead](ctx, c, pathHead, nil, lookTimeout)
}

// SecretState is the keyring's state and every credential, without values. It
// may have to wait for a keyring.
func (c *Client) SecretState(ctx context.Context) (*SecretState, error) {
	return ask[SecretState](ctx, c, pathSecretState, nil, keyringTimeout)
}

// CheckSecret says how q would be saved, and what a person would be asked,
// before they enter a value. It saves nothing, and takes no values.
func (c *Client) CheckSecret(ctx context.Context, q *SecretPut) (*SecretResult, error) {
	return send[SecretResult](ctx, c, pathSecretCheck, q, lookTimeout)
}

// PutSecret creates a credential or replaces what it says of one. The values of
// q stay the caller's, to be wiped.
func (c *Client) PutSecret(ctx context.Context, q *SecretPut) (*SecretResult, error) {
	return send[SecretResult](ctx, c, pathSecretPut, q, changeTimeout)
}

// BindSecret adds and removes hosts of a credential.
func (c *Client) BindSecret(ctx context.Context, q *SecretBind) (*SecretResult, error) {
	return send[SecretResult](ctx, c, pathSecretBind, q, changeTimeout)
}

// DeleteSecret forgets a credential.
func (c *Client) DeleteSecret(ctx context.Context, q *SecretName) (*SecretResult, error) {
	return send[SecretResult](ctx, c, pathSecretDelete, q, changeTimeout)
}

// TestSecret calls a saved wrapper that reads and names the credential.
func (c *Client) TestSecret(ctx context.Context, q *SecretTest) (*api.RunResult, error) {
	return send[api.RunResult](ctx, c, pathSecretTest, q, c.runTime(ctx))
}

// Reload reads the store again.
func (c *Client) Reload(ctx context.Context) (*ReloadResult, error) {
	return send[ReloadResult](ctx, c, pathReload, struct{}{}, changeTimeout)
}

// Stop asks the daemon to stop. It returns when the daemon has agreed, which is
// before it has ended.
func (c *Client) Stop(ctx context.Context) error {
	_, err := send[stopped](ctx, c, pathStop, struct{}{}, lookTimeout)
	return err
}

// runTime is how long a wrapper's call may take. The daemon knows, because the
// limit is a setting of its own; it is asked once.
func (c *Client) runTime(ctx context.Context) time.Duration {
	if c.timeout > 0 {
		return c.timeout
	}
	limit := time.Duration(c.run.Load())
	if limit == 0 {
		limit = runTimeout
		if s, err := c.Status(ctx); err == nil && s.CallTimeout > 0 {
			limit = time.Duration(s.CallTimeout) * time.Millisecond
			c.run.Store(int64(limit))
		}
	}
	return limit + runGrace
}

func number(n uint64) string { return strconv.FormatUint(n, 10) }

func limited(q url.Values, limit int) url.Values {
	if limit != 0 {
		q.Set("limit", strconv.Itoa(limit))
	}
	return q
}
