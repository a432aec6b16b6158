package client_test

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/bridge"
	"github.com/hyperbolic-gateway/hb-rest/internal/client"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/token"
)

// A backend counts what reaches it and echoes arguments.
type backend struct {
	calls    atomic.Int64 // all but Revision
	runs     atomic.Int64
	revision atomic.Uint64
	arrived  chan struct{} // Run sends here first, when it is not nil
	gone     chan error    // then waits for its context and says here how it ended
	fail     error         // what Run answers, when it is not nil
	document json.RawMessage
	polled   chan uint64   // Manifest sends its after here when that is above 0
	news     chan struct{} // and then waits for this
}

func (b *backend) Status(context.Context) (*api.Status, error) {
	b.calls.Add(1)
	return &api.Status{OK: true, Version: "1.0.0", PID: 1, Wrappers: 2}, nil
}

func (b *backend) Manifest(ctx context.Context, after uint64) (*api.Manifest, error) {
	b.calls.Add(1)
	if after > 0 && b.polled != nil {
		b.polled <- after
		select {
		case <-b.news:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return &api.Manifest{Revision: b.revision.Load(), Wrappers: []api.ManifestEntry{{ID: "a", Name: "A", Method: "GET", Host: "h", Required: []string{"q"}}}}, nil
}

func (b *backend) Select(ctx context.Context, q *api.ManifestQuery) (*api.Manifest, error) {
	m, err := b.Manifest(ctx, q.After)
	if m != nil {
		m.Total, m.Matched, m.Since = 3, q.Limit, q.Since+q.Query // what was asked, to be seen
	}
	return m, err
}

func (b *backend) Wrapper(_ context.Context, id string) (json.RawMessage, error) {
	b.calls.Add(1)
	if b.document != nil {
		return b.document, nil
	}
	return json.Marshal(map[string]string{"id": id})
}

func (b *backend) Secrets(context.Context) (*api.SecretList, error) {
	b.calls.Add(1)
	return &api.SecretList{Secrets: []api.Secret{}, Reason: "not built"}, nil
}

func (b *backend) Run(ctx context.Context, q *api.RunRequest) (*api.RunResult, error) {
	b.calls.Add(1)
	b.runs.Add(1)
	if b.arrived != nil {
		b.arrived <- struct{}{}
		<-ctx.Done()
		b.gone <- ctx.Err()
		return nil, ctx.Err()
	}
	if b.fail != nil {
		return nil, b.fail
	}
	status := 200
	return &api.RunResult{OK: true, Status: &status, Wrapper: api.WrapperRef{ID: q.ID, Name: "A"}, Records: json.RawMessage("[" + string(q.Args) + "]")}, nil
}

func (b *backend) Test(_ context.Context, q *api.TestRequest) (*api.TestResult, error) {
	b.calls.Add(1)
	if q.DryRun != nil && !*q.DryRun {
		md := "live"
		return &api.TestResult{Run: &api.RunResult{OK: true, Markdown: &md, Wrapper: api.WrapperRef{ID: q.ID}}}, nil
	}
	return &api.TestResult{Plan: &api.Plan{OK: true, DryRun: true, Wrapper: api.WrapperRef{ID: q.ID}, Args: q.Args, Request: api.Request{Method: "GET", URL: "https://a.example", Headers: json.RawMessage(`{}`)}}}, nil
}

func (b *backend) Derive(_ context.Context, q *api.DeriveRequest) (*api.DeriveResult, error) {
	b.calls.Add(1)
	return &api.DeriveResult{OK: true, Source: "sample", Recipe: q.Sample}, nil
}

func (b *backend) Change(_ context.Context, q *api.ChangeRequest) (*api.ChangeResult, error) {
	b.calls.Add(1)
	return &api.ChangeResult{OK: true, ID: q.ID, Wrapper: q.Wrapper, Revision: b.revision.Add(1)}, nil
}

func (b *backend) Audit(context.Context, int) (*api.AuditPage, error) {
	b.calls.Add(1)
	return &api.AuditPage{}, nil
}

func (b *backend) Recall(_ context.Context, q *api.RecallRequest) (*api.RecallResult, error) {
	b.calls.Add(1)
	return &api.RecallResult{OK: true, Note: q.Query + "|" + q.Wrapper + "|" + q.Since + "|" + strconv.Itoa(q.Limit)}, nil
}

func (b *backend) Revision() uint64 { return b.revision.Load() }

// A home has a token file, and may have a daemon.
type home struct {
	t       testing.TB
	file    string
	addr    string
	backend *backend
	holder  token.Holder
	server  *http.Server
	served  chan struct{}
	opened  atomic.Int64                   // connections the daemon has accepted
	watch   func(net.Conn, http.ConnState) // told of each change; set before start
}

func newHome(t testing.TB) *home {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "wrap")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return &home{t: t, file: filepath.Join(dir, "token"), backend: &backend{}}
}

// start does what hbrestd does: listen, renew the token, serve. The address
// stays the same from start to start.
func (h *home) start() {
	h.t.Helper()
	addr := h.addr
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		h.t.Fatal(err)
	}
	h.addr = l.Addr().String()
	h.renew()
	srv, served := bridge.Server(bridge.New(h.backend, &h.holder, bridge.Options{Version: "1.0.0"})), make(chan struct{})
	srv.ConnState = func(c net.Conn, s http.ConnState) {
		if s == http.StateNew {
			h.opened.Add(1)
		}
		if h.watch != nil {
			h.watch(c, s)
		}
	}
	h.server, h.served = srv, served
	go func() { defer close(served); _ = srv.Serve(l) }()
	h.t.Cleanup(h.stop)
}

func (h *home) renew() {
	h.t.Helper()
	tok := token.New()
	h.holder.Set(tok)
	if err := token.Write(h.file, tok); err != nil {
		h.t.Fatal(err)
	}
}

// stop is a daemon that ends at once: it closes every connection.
func (h *home) stop() {
	h.server.Close()
	<-h.served
}

// client makes one that does not wait for a daemon to start.
func (h *home) client() *client.Client {
	return h.clientWith(func(*client.Options) {})
}

func (h *home) clientWith(change func(*client.Options)) *client.Client {
	addr := h.addr
	if addr == "" {
		addr = closedAddr(h.t)
	}
	o := client.Options{
		URL: &url.URL{Scheme: "http", Host: addr}, TokenFiles: []string{h.file}, Version: "1.0.0",
		Timeout: 20 * time.Second, Started: time.Unix(1, 0),
	}
	change(&o)
	c := client.New(o)
	h.t.Cleanup(c.Close)
	return c
}

// closedAddr is a loopback address that nothing listens on.
func closedAddr(t testing.TB) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// code is the fault's code, and fails the test for any other error.
func code(t testing.TB, err error) fault.Code {
	t.Helper()
	f, ok := err.(*fault.Error)
	if !ok {
		t.Fatalf("not a *fault.Error: %v", err)
	}
	return f.Code
}
