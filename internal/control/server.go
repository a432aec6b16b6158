package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path"
	"runtime/debug"
	"sync"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// Options are the parts of a server that have a default.
type Options struct {
	Log     *slog.Logger  // nil: nothing is logged; never gets a body or an argument
	Version string        // of hbrestd, sent with each answer
	Grace   time.Duration // how long running calls may go on after the stop; 0: 10 s

	// Cut, when it ends, ends the grace: calls that still run are cut off at
	// once. Nil: it lasts as long as Grace says.
	Cut context.Context
}

// Limits of the server.
const (
	MaxBody      = api.MaxBody // bytes of a request body, as on the bridge
	MaxApply     = 32 << 20    // bytes of the body of an apply: 1000 wrappers of 32 KiB
	MaxDocuments = 1000        // of one apply
	MaxRows      = 1000        // of one page of the audit trail

	maxHeader     = 16 << 10         // bytes of a request's header; a real one has about 200
	headerTimeout = 5 * time.Second  // for a request's header, from a caller on the same machine
	bodyTimeout   = 30 * time.Second // for a whole request with its body
	writeTimeout  = 30 * time.Second // for taking an answer away once it is made
	idleTimeout   = time.Minute      // our own client closes after each call
	stopGrace     = 10 * time.Second // as long as the bridge's calls have
	cutGrace      = 5 * time.Second  // for a call to notice that it was cut off
)

// hostName is the one Host that is served. It is nobody's name, so a web page
// that reaches the socket through a forwarded port does not know it, and curl
// users type `curl --unix-socket PATH http://hbrestd/control/status`.
const hostName = "hbrestd"

// Serve answers on l until ctx ends, then lets running calls finish for
// Options.Grace, ends waiting ones at once, and closes l. It returns when no
// call is running any more: nil after such an end, else why it could not go on.
func Serve(ctx context.Context, l *Listener, b Backend, o Options) error {
	h := newHandler(ctx, b, o)
	hard, cut := context.WithCancel(context.WithoutCancel(ctx)) // ends running calls
	defer cut()
	silent := NewNewcomers()
	l.refused = h.refusals()
	var p http.Protocols
	p.SetHTTP1(true)
	srv := &http.Server{
		Handler:                      h,
		Protocols:                    &p,
		MaxHeaderBytes:               maxHeader,
		ReadHeaderTimeout:            headerTimeout,
		ReadTimeout:                  bodyTimeout, // lifted by the handler once the request is read
		IdleTimeout:                  idleTimeout,
		DisableGeneralOptionsHandler: true, // "OPTIONS *" is a wrong route like any other
		ErrorLog:                     slog.NewLogLogger(h.log.Handler(), slog.LevelDebug),
		BaseContext:                  func(net.Listener) context.Context { return hard },
		ConnState:                    silent.Note,
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	var failed error
	select {
	case <-ctx.Done():
	case err := <-served:
		failed = fmt.Errorf("the control socket stopped: %w", err)
		served <- http.ErrServerClosed
	}
	h.stop()
	silent.Close()
	if o.Grace <= 0 {
		o.Grace = stopGrace
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.Grace)
	defer cancel()
	if o.Cut != nil {
		defer context.AfterFunc(o.Cut, cancel)()
	}
	if err := srv.Shutdown(grace); err != nil {
		h.log.Error("control: calls were cut off at stop")
		cut()
		_ = srv.Close()
	}
	if !h.drained(cutGrace) {
		failed = errors.Join(failed, errors.New("a call on the control socket did not end"))
	}
	if err := <-served; err != nil && !errors.Is(err, http.ErrServerClosed) {
		failed = errors.Join(failed, err)
	}
	return errors.Join(failed, l.Close())
}

// Newcomers are the connections of an HTTP server that have not sent a byte
// yet. Its Shutdown would wait five seconds for each. Make one with
// NewNewcomers; the daemon uses it for the bridge too.
type Newcomers struct {
	mu      sync.Mutex
	conns   map[net.Conn]bool // guarded by mu
	stopped bool              // guarded by mu
}

// Note is the server's ConnState hook.
func (n *Newcomers) Note(c net.Conn, s http.ConnState) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if s != http.StateNew {
		delete(n.conns, c)
		return
	}
	if n.stopped {
		c.Close()
		return
	}
	n.conns[c] = true
}

// NewNewcomers makes an empty one.
func NewNewcomers() *Newcomers { return &Newcomers{conns: map[net.Conn]bool{}} }

// Close closes them, and whoever comes later.
func (n *Newcomers) Close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.stopped = true
	for c := range n.conns {
		c.Close()
	}
}

type handler struct {
	backend Backend
	log     *slog.Logger
	version string
	mux     *http.ServeMux
	allow   map[string]string // path: its methods
	ending  context.Context   // ends when the daemon stops; waiting calls end with it

	mu      sync.Mutex
	stopped bool           // guarded by mu
	running sync.WaitGroup // Add only under mu while not stopped
}

func newHandler(ctx context.Context, b Backend, o Options) *handler {
	h := &handler{backend: b, log: o.Log, version: o.Version, mux: http.NewServeMux(), allow: map[string]string{}, ending: ctx}
	if h.log == nil {
		h.log = slog.New(slog.DiscardHandler)
	}
	for _, r := range h.routes() {
		if was := h.allow[r.path]; was != "" {
			h.allow[r.path] = was + ", " + r.method
		} else {
			h.allow[r.path] = r.method
		}
		h.mux.HandleFunc(r.method+" "+r.path, h.serve(r))
	}
	h.mux.HandleFunc("/", h.astray)
	return h
}

// refusals logs the connections of other users, the first, second, fourth and
// so on: somebody who keeps trying cannot fill the log.
func (h *handler) refusals() func(error) {
	var n uint64 // Accept has one caller
	return func(why error) {
		if n++; n&(n-1) == 0 {
			h.log.Warn("control: connection refused", "why", why.Error(), "times", n)
		}
	}
}

func (h *handler) begin() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stopped {
		return false
	}
	h.running.Add(1)
	return true
}

func (h *handler) stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stopped = true
}

// drained waits for the running calls.
func (h *handler) drained(patience time.Duration) bool {
	done := make(chan struct{})
	go func() { h.running.Wait(); close(done) }()
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case <-done:
		return true
	case <-t.C:
		return false
	}
}

// ServeHTTP checks who is calling, and routes.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := &answer{ResponseWriter: w, handler: h, request: r, started: time.Now()}
	if !h.begin() {
		a.fail(shuttingDown())
		return
	}
	defer h.running.Done()
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		if v == http.ErrAbortHandler {
			panic(v)
		}
		e := fault.From(fmt.Errorf("panic: %v", v))
		h.log.Error("control: panic", "id", e.LogID, "method", r.Method, "path", r.URL.Path, "panic", v, "stack", string(debug.Stack()))
		a.fail(e)
	}()
	if err := door(r); err != nil {
		a.fail(err)
		return
	}
	h.mux.ServeHTTP(a, r)
}

func shuttingDown() *fault.Error { return fault.New("SHUTTING_DOWN", "hbrestd is stopping") }

// door refuses what comes from a web page, and paths that the mux would answer
// with a redirect.
func door(r *http.Request) error {
	for _, name := range []string{"Origin", "Referer", "Sec-Fetch-Site"} {
		if len(r.Header[name]) > 0 {
			return fault.New("FORBIDDEN_ORIGIN", "the request has a %s header: a web page is calling", name).
				With(fault.Hint("Use hbrestd's own commands, or curl without that header."))
		}
	}
	if r.URL.Host != "" {
		return fault.New("FORBIDDEN_ORIGIN", "the request line holds a whole URL: a proxy is calling").
			With(fault.Hint("Call /control/... over the socket, without a proxy."))
	}
	if r.Host != hostName {
		return fault.New("FORBIDDEN_ORIGIN", "the Host is %q, not %s", fault.Shorten(r.Host, 60), hostName).
			With(fault.Hint("Call http://%s/control/... over the socket.", hostName))
	}
	if p := r.URL.Path; !path.IsAbs(p) || p != path.Clean(p) || r.URL.RawPath != "" {
		return noRoute(p)
	}
	return nil
}

func noRoute(p string) error {
	return fault.New("ROUTE_NOT_FOUND", "no route %s", fault.Shorten(p, 100)).
		With(fault.Hint("Use the hbrestd command of the version that runs; `hbrestd status` prints it."))
}

// astray answers what no route takes.
func (h *handler) astray(w http.ResponseWriter, r *http.Request) {
	allow, ok := h.allow[r.URL.Path]
	if !ok {
		w.(*answer).fail(noRoute(r.URL.Path))
		return
	}
	w.Header().Set("Allow", allow)
	w.(*answer).fail(fault.New("METHOD_NOT_ALLOWED", "%s does not take %s, only %s", r.URL.Path, fault.Shorten(r.Method, 20), allow).
		With(fault.Hint("Send %s.", allow)))
}

// serve adapts a route: ServeHTTP hands our own writer through.
func (h *handler) serve(rt route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		a := w.(*answer)
		if r.Method != rt.method { // a GET route of the mux takes HEAD too
			h.astray(w, r)
			return
		}
		q, err := h.read(a, r, rt)
		if err != nil {
			a.fail(err)
			return
		}
		ctx := r.Context()
		if rt.waits {
			limited, cancel := context.WithCancel(ctx)
			defer cancel()
			defer context.AfterFunc(h.ending, cancel)()
			ctx = limited
		}
		v, err := rt.serve(ctx, q)
		switch {
		case err == nil:
			a.send(http.StatusOK, v)
		case rt.waits && h.ending.Err() != nil:
			a.fail(shuttingDown())
		default:
			a.fail(err)
		}
	}
}
