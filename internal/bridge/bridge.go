package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
	"github.com/hyperbolic-gateway/hb-rest/internal/token"
)

// Backend is everything an agent can reach. It has no method that takes a
// credential's value. A method may be called from many goroutines at once; its
// context ends when the caller goes away. Errors are *fault.Error, or an
// *api.CallError around one; anything else is answered as INTERNAL and logged.
type Backend interface {
	// Status describes the daemon.
	Status(context.Context) (*api.Status, error)
	// Manifest lists the wrappers. When after is the current revision it waits
	// for the next one, for a while; zero never waits.
	Manifest(ctx context.Context, after uint64) (*api.Manifest, error)
	// Select is Manifest of some of the wrappers.
	Select(context.Context, *api.ManifestQuery) (*api.Manifest, error)
	// Wrapper is one stored document.
	Wrapper(ctx context.Context, id string) (json.RawMessage, error)
	// Secrets lists what an agent may know of credentials: never a value.
	Secrets(context.Context) (*api.SecretList, error)
	// Run calls a saved wrapper.
	Run(context.Context, *api.RunRequest) (*api.RunResult, error)
	// Test plans a call, renders a sample, or calls without saving.
	Test(context.Context, *api.TestRequest) (*api.TestResult, error)
	// Derive drafts a recipe.
	Derive(context.Context, *api.DeriveRequest) (*api.DeriveResult, error)
	// Change creates, updates, deletes or gets a wrapper.
	Change(context.Context, *api.ChangeRequest) (*api.ChangeResult, error)
	// Recall searches what wrappers have read before.
	Recall(context.Context, *api.RecallRequest) (*api.RecallResult, error)
	// Audit is the newest rows of the audit trail, newest last.
	Audit(ctx context.Context, limit int) (*api.AuditPage, error)
	// Revision is the store's revision now, for the header of each answer. It
	// must be cheap and must not block.
	Revision() uint64
}

// Options are the parts of a handler that have a default.
type Options struct {
	Log     *slog.Logger // nil: nothing is logged
	Version string       // of hbrestd, sent with each answer
}

// Limits of the HTTP server.
const (
	maxHeader     = 16 << 10         // bytes of a request's header; the longest real one is under 1 KiB
	headerTimeout = 5 * time.Second  // for a request's header, from a caller on the same machine
	bodyTimeout   = 30 * time.Second // for a whole request with its body
	writeTimeout  = 30 * time.Second // for taking an answer away once it is made
	idleTimeout   = 2 * time.Minute  // longer than hb-rest keeps a connection, so that hb-rest is the one to close
)

// New returns the handler. Every request passes, in this order and before
// anything is decoded, stored or sent: Host, browser headers, token; see door.
func New(b Backend, t *token.Holder, o Options) http.Handler {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	h := &handler{backend: b, door: door{t}, log: o.Log, version: o.Version, allow: map[string]string{}}
	h.always = http.Header{
		"Content-Type": {"application/json"}, "Cache-Control": {"no-store"}, "X-Content-Type-Options": {"nosniff"},
		api.HeaderVersion: {o.Version},
	}
	h.mux = chi.NewRouter()
	for _, r := range h.routes() {
		h.allow[r.path] = r.method
		h.mux.Method(r.method, r.path, h.serve(r))
	}
	h.mux.NotFound(h.notFound)
	h.mux.MethodNotAllowed(h.notAllowed)
	return h
}

// Server wraps a handler of New in an HTTP server with the bridge's limits. It
// has no address and no error log: the caller listens, and calls Serve.
func Server(h http.Handler) *http.Server {
	var p http.Protocols
	p.SetHTTP1(true)
	return &http.Server{
		Handler:           h,
		Protocols:         &p,
		MaxHeaderBytes:    maxHeader,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       bodyTimeout,
		IdleTimeout:       idleTimeout,
		// "OPTIONS *" passes the door like everything else.
		DisableGeneralOptionsHandler: true,
	}
}

type handler struct {
	backend Backend
	door    door
	log     *slog.Logger
	version string
	always  http.Header // of each answer; nobody changes it
	mux     *chi.Mux
	allow   map[string]string // path: its one method
}

// ServeHTTP guards the door; what passes is routed.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := &answer{ResponseWriter: w, handler: h, request: r, started: time.Now()}
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		if v == http.ErrAbortHandler {
			panic(v)
		}
		e := fault.From(fmt.Errorf("panic: %v", v))
		h.log.Error("bridge: panic", "id", e.LogID, "method", r.Method, "path", r.URL.Path, "panic", v, "stack", string(debug.Stack()))
		a.inside = false // the header would ask the backend, which may be what panicked
		a.fail(e)
	}()
	if err := h.door.check(r); err != nil {
		a.fail(err)
		return
	}
	a.inside = !isHello(r)
	h.mux.ServeHTTP(a, r)
}

// serve adapts a route: chi hands our own writer through.
func (h *handler) serve(rt route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		a := w.(*answer)
		v, err := rt.serve(a, r)
		if err != nil {
			a.fail(err)
			return
		}
		a.send(http.StatusOK, v)
	}
}

func (h *handler) notFound(w http.ResponseWriter, r *http.Request) {
	w.(*answer).fail(fault.New("ROUTE_NOT_FOUND", "no route %s", fault.Shorten(r.URL.Path, 100)))
}

// notAllowed also gets the methods that chi does not know, on any path.
func (h *handler) notAllowed(w http.ResponseWriter, r *http.Request) {
	allow, ok := h.allow[r.URL.Path]
	if !ok || r.URL.RawPath != "" {
		h.notFound(w, r)
		return
	}
	w.Header().Set("Allow", allow)
	e := fault.New("METHOD_NOT_ALLOWED", "%s does not take %s, only %s", r.URL.Path, fault.Shorten(r.Method, 20), allow)
	if r.URL.Path != secretsPath { // there the catalogue's hint says who writes credentials
		e.With(fault.Hint("Send %s; docs/api.md lists the routes.", allow))
	}
	w.(*answer).fail(e)
}
