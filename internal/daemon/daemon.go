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
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/approval"
	"github.com/hyperbolic-gateway/hb-rest/internal/audit"
	"github.com/hyperbolic-gateway/hb-rest/internal/bridge"
	"github.com/hyperbolic-gateway/hb-rest/internal/config"
	"github.com/hyperbolic-gateway/hb-rest/internal/control"
	"github.com/hyperbolic-gateway/hb-rest/internal/cortex"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
	"github.com/hyperbolic-gateway/hb-rest/internal/secrets"
	"github.com/hyperbolic-gateway/hb-rest/internal/store"
	"github.com/hyperbolic-gateway/hb-rest/internal/token"
)

// stopGrace is how long running calls may go on after the stop was asked for.
const stopGrace = 10 * time.Second

// Options configure a Daemon.
type Options struct {
	Config  config.Daemon
	Env     config.Env // stored settings hold where it says nothing; nil: Config is all there is
	Version string
	Log     *slog.Logger
	Now     func() time.Time  // nil: time.Now
	Key     secrets.KeySource // nil: the system's keyring
	// Passphrase asks a person for the passphrase of the encrypted file, at the
	// start, when the setting keyring names that and no systemd credential holds
	// it. The daemon takes over and wipes what it returns. nil: nobody is there.
	Passphrase func(context.Context, Passphrase) ([]byte, error)
	// Notify takes words of the sd_notify protocol for the service manager:
	// READY=1 once everything answers, STATUS=, STOPPING=1, and WATCHDOG=1 in
	// time for one that expects it every Watchdog. nil: there is none.
	Notify   func(state string)
	Watchdog time.Duration
	// ApprovalWait is how long a write waits for a person; 0: approval.DefaultWait.
	ApprovalWait time.Duration
	Outbound     outbound.Options // seams for tests; Self, UserAgent and Now are filled in here
}

// A Passphrase is a question for one.
type Passphrase struct {
	New     bool   // there is no encrypted file yet: what is entered now will open it
	Least   int    // characters
	Problem string // what was wrong with the last answer; "" at first
}

// A Daemon is a started hbrestd.
type Daemon struct {
	given     config.Daemon // as handed to Start; its paths and address hold until the end
	env       config.Env    // nil: stored settings are not looked at
	goos      string
	version   string
	log       *slog.Logger
	now       func() time.Time
	outbound  outbound.Options
	started   time.Time
	store     *store.Store
	audit     *audit.Log
	auditFile *store.AuditFile
	vault     *secrets.Vault
	cortex    *cortex.Index
	indexing  sync.WaitGroup // what goes on storing pages after its call was answered
	desk      *approval.Desk

	approvalWait time.Duration

	keySource secrets.KeySource // nil: the system's keyring
	probe     func(context.Context) error
	// askPassphrase is Options.Passphrase; passphrase is what it said, if it did.
	askPassphrase func(context.Context, Passphrase) ([]byte, error)
	passphrase    *secrets.HeldPassphrase
	state         atomic.Pointer[state]
	tidy          tidier
	settings      sync.Mutex // serialises changes of settings and rules, and refresh
	backups       sync.Mutex // held by the one backup that may be under way
	tokens        *token.Holder
	listener      net.Listener
	addr          netip.AddrPort
	server        *http.Server
	silent        *control.Newcomers
	served        chan error      // how the bridge's server ended
	ending        context.Context // done once Stop begins: those who only wait for news go first
	end           context.CancelFunc
	quit          chan struct{}
	quitOnce      sync.Once
	socket        *control.Listener // a person's commands; taken before the port, served once the token is written
	control       sync.WaitGroup    // the control socket's server
	endFace       context.CancelFunc
	cutFace       context.CancelFunc // ends what its callers still wait for
	stopping      bool
	calls         sync.WaitGroup
	mu            sync.Mutex // guards stopping, so that no call begins once Stop waits
}

// Start opens the store and the audit trail, takes the port and the control
// socket, and only then rotates the token, so that a second daemon of the same
// user changes nothing. It returns when the bridge answers.
func Start(ctx context.Context, o Options) (*Daemon, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	d := &Daemon{
		given: o.Config, env: o.Env, goos: runtime.GOOS, version: o.Version, log: o.Log, now: o.Now, outbound: o.Outbound, keySource: o.Key, askPassphrase: o.Passphrase, approvalWait: o.ApprovalWait,
		tokens: &token.Holder{}, served: make(chan error, 1), quit: make(chan struct{}), endFace: func() {}, cutFace: func() {},
	}
	d.ending, d.end = context.WithCancel(context.WithoutCancel(ctx))
	if err := d.start(ctx); err != nil {
		d.end()
		return nil, errors.Join(err, d.release())
	}
	return d, nil
}

func (d *Daemon) start(ctx context.Context) (err error) {
	if err := config.EnsureDirs(d.given); err != nil {
		return err
	}
	if done, err := FinishRestore(d.given); err != nil {
		return err
	} else if len(done) > 0 {
		d.log.Warn("a restore that was interrupted is complete now", "files", len(done))
	}
	if d.store, err = store.Open(d.given.StorePath, store.Options{Now: d.now, Log: d.log}); err != nil {
		return err
	}
	if said := d.store.Recovered(); said != "" {
		d.log.Error("the store was damaged", "detail", said)
	}
	if err := d.openAudit(d.given.AuditPath); err != nil {
		return err
	}
	if err := d.openVault(ctx); err != nil { // it may ask a person: nobody waits at the port meanwhile
		return err
	}
	// Who sees the port accept may run a command at once: its connection waits
	// here until face serves it.
	if d.socket, err = control.Listen(d.given.ControlSocket); err != nil {
		return err
	}
	if err := d.listen(ctx); err != nil {
		return err
	}
	d.cortex = cortex.Open(d.given.CortexPath, cortex.Options{MaxBytes: int64(d.given.CortexMaxMB) * 1_000_000, Now: d.now, Log: d.log})
	d.desk = d.newDesk(d.approvalWait)
	if err := d.refresh(); err != nil {
		return err
	}
	tok := token.New()
	if err := token.Write(d.given.TokenPath, tok); err != nil {
		return err
	}
	d.tokens.Set(tok)
	d.started = d.now()
	d.face(ctx) // after the token: whoever sees the status may use it
	d.server = bridge.Server(bridge.New(d, d.tokens, bridge.Options{Log: d.log, Version: d.version}))
	d.silent = control.NewNewcomers()
	d.server.ConnState = d.silent.Note
	d.server.ErrorLog = slog.NewLogLogger(d.log.Handler(), slog.LevelDebug)
	go func() { d.served <- d.server.Serve(d.listener) }()
	go func() {
		d.store.List()       // parses all documents: with ten thousand, who asks first would wait for it
		debug.FreeOSMemory() // reading the files and parsing leave more behind than is kept
	}()
	d.log.Info("listening", "addr", d.Addr(), "token", d.given.TokenPath, "wrappers", d.store.Len(), "version", d.version)
	if policy := d.state.Load().policy(); policy.AllowPrivate {
		d.log.Info("private destinations and plain http are allowed", "by", "HB_WRAP_ALLOW_PRIVATE or the setting allow-private")
	} else if policy.AllowHTTP {
		d.log.Info("plain http is allowed", "by", "HB_WRAP_ALLOW_HTTP or the setting allow-http")
	}
	return nil
}

// listen takes the bridge's address: the stored one when the environment says
// nothing else. The size of the index holds from now on too.
func (d *Daemon) listen(ctx context.Context) error {
	if d.env != nil {
		cfg, _, err := config.LoadDaemon(d.env.Over(d.store.Settings()), d.goos)
		if err != nil {
			return fmt.Errorf("reading the stored settings: %w", err)
		}
		d.given.Addr, d.given.CortexMaxMB = cfg.Addr, cfg.CortexMaxMB
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", d.given.Addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return inUse(ctx, d.given.Addr, err)
	}
	if err != nil {
		return fmt.Errorf("listening on %s: %w", d.given.Addr, err)
	}
	d.listener = l
	local := l.Addr().(*net.TCPAddr).AddrPort()
	d.addr = netip.AddrPortFrom(local.Addr().Unmap(), local.Port())
	return nil
}

// face serves the control socket.
func (d *Daemon) face(ctx context.Context) {
	ctx, d.endFace = context.WithCancel(context.WithoutCancel(ctx))
	var late context.Context
	late, d.cutFace = context.WithCancel(context.Background())
	d.control.Go(func() {
		defer d.cutFace()
		me := person{Daemon: d, stop: func() { d.quitOnce.Do(func() { close(d.quit) }) }}
		if err := control.Serve(ctx, d.socket, me, control.Options{Log: d.log, Version: d.version, Grace: stopGrace, Cut: late}); err != nil {
			d.log.Error("the control socket stopped", "cause", err)
		}
	})
}

// release closes what start has opened, newest first.
func (d *Daemon) release() error {
	d.endFace()
	d.control.Wait()
	var errs []error
	if d.socket != nil {
		errs = append(errs, d.socket.Close())
	}
	if d.listener != nil && d.server == nil {
		errs = append(errs, d.listener.Close())
	}
	if d.desk != nil {
		d.desk.Close()
	}
	if d.vault != nil {
		d.vault.Close()
	}
	d.passphrase.Wipe()
	if d.cortex != nil {
		errs = append(errs, d.cortex.Close())
		d.indexing.Wait()
	}
	if d.audit != nil {
		errs = append(errs, d.audit.Close())
	}
	if d.auditFile != nil {
		errs = append(errs, d.auditFile.Close())
	}
	if d.store != nil {
		errs = append(errs, d.store.Close())
	}
	return errors.Join(errs...)
}

// Addr is where the bridge listens, such as "127.0.0.1:4111".
func (d *Daemon) Addr() string { return d.listener.Addr().String() }

// Stop refuses new calls, gives running ones ten seconds, and closes the
// store. The token file stays: it is stale, and its absence would look like a
// missing installation.
func (d *Daemon) Stop(ctx context.Context) error {
	d.mu.Lock()
	d.stopping = true
	d.mu.Unlock()
	d.end()
	d.silent.Close()
	ctx, cancel := context.WithTimeout(ctx, stopGrace)
	defer cancel()
	// A person's calls have the same ten seconds, not ten more: their socket is
	// served until the bridge's are done.
	defer context.AfterFunc(ctx, d.cutFace)()
	err := d.server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		d.log.Error("calls that were still running have been cut off", "after", stopGrace)
		err = d.server.Close() // its connections' contexts end, and so do their calls
	}
	d.endFace()
	d.calls.Wait()
	if serr := <-d.served; serr != nil && !errors.Is(serr, http.ErrServerClosed) {
		err = errors.Join(err, serr)
	}
	d.state.Load().out.Close()
	return errors.Join(err, d.release())
}

// Run starts a daemon and stops it when ctx ends or a person asks for it.
func Run(ctx context.Context, o Options) error {
	if err := secrets.Harden(); err != nil {
		o.Log.Warn("other programs of this user may read this process", "cause", err)
	}
	d, err := Start(ctx, o)
	if err != nil {
		return err
	}
	defer d.announce(ctx, o)()
	select {
	case <-ctx.Done():
	case <-d.quit:
	case err := <-d.served:
		d.served <- err
		return errors.Join(fmt.Errorf("the bridge stopped: %w", err), d.Stop(context.WithoutCancel(ctx)))
	}
	if o.Notify != nil {
		o.Notify("STOPPING=1\nSTATUS=waiting for calls that are running, at most " + stopGrace.String())
	}
	d.log.Info("stopping", "grace", stopGrace, "hint", "a second interrupt ends it at once")
	return d.Stop(context.WithoutCancel(ctx))
}

// begin admits one use case; done must be called when it ends.
func (d *Daemon) begin(ctx context.Context) (_ context.Context, done func(), err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stopping {
		return nil, nil, fault.New("SHUTTING_DOWN", "hbrestd is stopping")
	}
	d.calls.Add(1)
	ctx, cancel := context.WithTimeout(ctx, d.state.Load().cfg.CallTimeout)
	return ctx, func() { cancel(); d.calls.Done() }, nil
}
