// Package daemon is hbrestd itself: every use case as one method, and the
// life of the process around them.
//
// It holds no wire format (internal/bridge does) and prints nothing (the
// command line does). Start with [Start], or with [Run] for a process that
// lives until its context ends.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/bridge"
	"github.com/hyperbolic-gateway/hb-rest/internal/config"
	"github.com/hyperbolic-gateway/hb-rest/internal/executor"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
	"github.com/hyperbolic-gateway/hb-rest/internal/store"
	"github.com/hyperbolic-gateway/hb-rest/internal/token"
)

// stopGrace is how long running calls may go on after the stop was asked for.
const stopGrace = 10 * time.Second

// Options configure a Daemon.
type Options struct {
	Config   config.Daemon
	Version  string
	Log      *slog.Logger
	Now      func() time.Time // nil: time.Now
	Outbound outbound.Options // seams for tests; Self, UserAgent and Now are filled in here
}

// A Daemon is a started hbrestd.
type Daemon struct {
	cfg      config.Daemon
	version  string
	log      *slog.Logger
	now      func() time.Time
	started  time.Time
	store    *store.Store
	exec     *executor.Executor
	out      *outbound.Client
	policy   outbound.Policy
	tokens   *token.Holder
	listener net.Listener
	server   *http.Server
	served   chan error
	stopping atomic.Bool
	calls    sync.WaitGroup
	mu       sync.Mutex // guards stopping against calls.Add after Wait began
}

// Start opens the store, takes the port, and only then rotates the token, so
// that a second daemon of the same user changes nothing. It returns when the
// bridge answers.
func Start(ctx context.Context, o Options) (*Daemon, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	d := &Daemon{cfg: o.Config, version: o.Version, log: o.Log, now: o.Now, tokens: &token.Holder{}, served: make(chan error, 1)}
	if err := config.EnsureDirs(o.Config); err != nil {
		return nil, err
	}
	var err error
	if d.store, err = store.Open(o.Config.StorePath, store.Options{Now: o.Now}); err != nil {
		return nil, err
	}
	if said := d.store.Recovered(); said != "" {
		d.log.Error("the store was damaged", "detail", said)
	}
	if err := d.listen(ctx); err != nil {
		return nil, errors.Join(err, d.store.Close())
	}
	d.policy = outbound.Policy{AllowHTTP: o.Config.AllowHTTP || o.Config.AllowPrivate, AllowPrivate: o.Config.AllowPrivate}
	out := o.Outbound
	out.Now, out.UserAgent = o.Now, "hb-rest/"+o.Version
	self := d.listener.Addr().(*net.TCPAddr).AddrPort()
	out.Self = func() []netip.AddrPort { return []netip.AddrPort{self} }
	d.out = outbound.New(d.policy, out)
	d.exec = executor.New(executor.Config{Send: d.out.Send, Check: d.policy.CheckURL, Now: o.Now})

	tok := token.New()
	if err := token.Write(o.Config.TokenPath, tok); err != nil {
		return nil, errors.Join(err, d.listener.Close(), d.store.Close())
	}
	d.tokens.Set(tok)
	d.started = o.Now()
	d.server = bridge.Server(bridge.New(d, d.tokens, bridge.Options{Log: d.log, Version: o.Version}))
	d.server.ErrorLog = slog.NewLogLogger(d.log.Handler(), slog.LevelDebug)
	go func() { d.served <- d.server.Serve(d.listener) }()
	d.log.Info("listening", "addr", d.listener.Addr().String(), "token", o.Config.TokenPath, "wrappers", d.store.Len(), "version", o.Version)
	if d.policy.AllowPrivate {
		d.log.Info("private destinations and plain http are allowed", "by", "HB_WRAP_ALLOW_PRIVATE")
	} else if d.policy.AllowHTTP {
		d.log.Info("plain http is allowed", "by", "HB_WRAP_ALLOW_HTTP")
	}
	return d, nil
}

func (d *Daemon) listen(ctx context.Context) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", d.cfg.Addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fault.New("STORE_FAILED", "%s is already in use by another program", d.cfg.Addr).
			With(fault.Hint("Stop that program, or choose another port with HB_WRAP_ADDR (and tell hb-rest with HB_WRAP_URL)."), fault.Cause(err))
	}
	if err != nil {
		return fmt.Errorf("listening on %s: %w", d.cfg.Addr, err)
	}
	d.listener = l
	return nil
}

// Addr is where the bridge listens, such as "127.0.0.1:4111".
func (d *Daemon) Addr() string { return d.listener.Addr().String() }

// Stop refuses new calls, gives running ones ten seconds, and closes the
// store. The token file stays: it is stale, and its absence would look like a
// missing installation.
func (d *Daemon) Stop(ctx context.Context) error {
	d.mu.Lock()
	d.stopping.Store(true)
	d.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, stopGrace)
	defer cancel()
	err := d.server.Shutdown(ctx)
	if err != nil {
		d.log.Error("calls were cut off at stop", "after", stopGrace)
		_ = d.server.Close() // its connections' contexts end, and so do their calls
	}
	d.calls.Wait()
	if serr := <-d.served; serr != nil && !errors.Is(serr, http.ErrServerClosed) {
		err = errors.Join(err, serr)
	}
	return errors.Join(err, d.store.Close())
}

// Run starts a daemon and stops it when ctx ends.
func Run(ctx context.Context, o Options) error {
	d, err := Start(ctx, o)
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		d.log.Info("stopping")
		return d.Stop(context.WithoutCancel(ctx))
	case err := <-d.served:
		d.served <- err
		return errors.Join(fmt.Errorf("the bridge stopped: %w", err), d.Stop(context.WithoutCancel(ctx)))
	}
}

// begin admits one use case; done must be called when it ends.
func (d *Daemon) begin(ctx context.Context) (_ context.Context, done func(), err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stopping.Load() {
		return nil, nil, fault.New("SHUTTING_DOWN", "hbrestd is stopping")
	}
	d.calls.Add(1)
	ctx, cancel := context.WithTimeout(ctx, d.cfg.CallTimeout)
	return ctx, func() { cancel(); d.calls.Done() }, nil
}

func pid() int { return os.Getpid() }
