// Package shim is the MCP server that clients start as hb-rest: ten tools over
// standard input and output, each one request to the daemon's bridge, and a
// tool for each wrapper that wants to be one.
//
// It keeps no state but the tool list and knows no rules: documents, arguments and records pass
// through as raw JSON, and the daemon judges them. It never sees the value of a
// credential, never runs a program, and never writes anything but protocol to
// standard output. Start with [New]; [Main] is the program.
package shim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hyperbolic-gateway/hb-rest/internal/client"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// Options of a Server. Client and Version are required.
type Options struct {
	Client  *client.Client
	Version string // shown to clients
	// MaxTools is how many wrappers may be tools of their own; 0: none, and no
	// call is ever made for them.
	MaxTools int
	Log      *slog.Logger // nil: nothing is logged; never gets arguments or results
}

// A Server answers one MCP client. It works without a daemon: then each call
// says how to start it, and the next one after that succeeds.
type Server struct {
	client *client.Client
	log    *slog.Logger
	mcp    *mcp.Server
	tools  *toolSet  // the generated ones
	own    sync.Once // registers the ten

	mu   sync.Mutex // guards skew
	skew string     // what was last said about the daemon's version
}

// New makes a server with the ten tools.
func New(o Options) *Server {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{client: o.Client, log: o.Log, tools: newToolSet(max(o.MaxTools, 0))}
	s.mcp = mcp.NewServer(&mcp.Implementation{Name: "hb-rest", Title: "REST wrappers", Version: o.Version}, &mcp.ServerOptions{
		Instructions: instructions,
		Logger:       slog.New(problems{o.Log.Handler()}),
		// Explicit, because clients ask for the list only when it is announced,
		// and because the default would also announce logging.
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{ListChanged: true}},
		// The list of one person's wrappers is nobody else's to keep.
		SetCacheable: func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) { c.TTLMs, c.CacheScope = 0, "private" },
	})
	if s.tools.limit > 0 {
		s.mcp.AddReceivingMiddleware(s.following)
	}
	s.mcp.AddSendingMiddleware(s.telling)
	s.mcp.AddReceivingMiddleware(namingTools)
	s.mcp.AddReceivingMiddleware(s.equipping)
	s.mcp.AddReceivingMiddleware(s.recoverPanics) // last, so that it is around the others
	return s
}

// Run serves one session over t until the client closes its side, which is no
// error, or ctx ends. It can be called once.
func (s *Server) Run(ctx context.Context, t mcp.Transport) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop() // and with it the call that waits for changes
	if s.tools.limit > 0 {
		go s.follow(ctx)
	}
	return s.mcp.Run(ctx, t)
}

// equipping is the middleware of messages that arrive: it registers the ten tools
// before the first message that may need them. That takes the SDK longer than
// everything else before the answer to initialize, for which the client waits.
func (s *Server) equipping(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if method != "initialize" && method != "ping" {
			s.own.Do(func() {
				for _, t := range metaTools() {
					s.mcp.AddTool(t.definition(), s.handler(t))
				}
			})
		}
		return next(ctx, method, req)
	}
}

// handler makes the SDK's handler of a meta-tool.
func (s *Server) handler(t *metaTool) mcp.ToolHandler {
	return s.logged(t.name, t.known(), func(ctx context.Context, raw json.RawMessage) (*answer, error) {
		args, err := parseArguments(t, raw)
		if err != nil {
			return nil, err
		}
		return t.call(s, ctx, args)
	})
}

// logged makes the SDK's handler of a tool; known is the hint of a refused
// argument. It never returns an error: that would reach the client as a
// protocol error, which the model may never see.
func (s *Server) logged(name, known string, call func(context.Context, json.RawMessage) (*answer, error)) mcp.ToolHandler {
	return func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		start := time.Now()
		code := fault.Code("OK")
		a, err := call(ctx, req.Params.Arguments)
		if err != nil {
			e := fault.From(err)
			if e.LogID != "" {
				s.log.Error("internal fault", "id", e.LogID, "cause", e.Unwrap())
			}
			a, code = failure(inToolWords(e, known)), e.Code
			var told *client.Failure
			if errors.As(err, &told) {
				for _, w := range told.API.Warnings { // often the reason: an argument with a typing error in its name
					a.text += "\n" + warning(w)
				}
			}
		}
		if skew := s.newSkew(); skew != "" {
			a.notes = append(a.notes, "warning: "+skew)
		}
		s.noticed(err == nil)
		s.log.Info("call", "tool", name, "code", code, "ms", time.Since(start).Milliseconds())
		return a.result(), nil
	}
}

// inToolWords names an argument as the agent knows it: the bridge calls the
// members of a call body.NAME and points to the page about its routes.
func inToolWords(e *fault.Error, known string) *fault.Error {
	const body = "body."
	if !strings.HasPrefix(e.Field, body) {
		return e
	}
	named := *e // e may be shared
	named.Field = strings.TrimPrefix(e.Field, body)
	named.Message = strings.TrimPrefix(e.Message, body)
	named.Details = nil
	for _, d := range e.Details {
		d.Field = strings.TrimPrefix(d.Field, body)
		named.Details = append(named.Details, d)
	}
	if e.Code == "BAD_REQUEST" && known != "" {
		named.Hint = known
	}
	return &named
}

func failure(e *fault.Error) *answer {
	return &answer{text: presentError(e), failed: true}
}

// newSkew is the client's line about a daemon of another version, once for
// each such daemon.
func (s *Server) newSkew() string {
	skew := s.client.Skew()
	s.mu.Lock()
	defer s.mu.Unlock()
	if skew == s.skew {
		return ""
	}
	s.skew = skew
	return skew
}

// namingTools says in the answer to a call of a tool that is not there which
// tools are. It stays a protocol error, as clients expect of it.
func namingTools(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		res, err := next(ctx, method, req)
		if err == nil {
			return res, nil
		}
		p, isCall := req.GetParams().(*mcp.CallToolParamsRaw)
		if e := (*jsonrpc.Error)(nil); isCall && errors.As(err, &e) && e.Code == jsonrpc.CodeInvalidParams && strings.HasPrefix(e.Message, "unknown tool") {
			var names []string
			for _, t := range metaTools() {
				names = append(names, t.name)
			}
			return nil, &jsonrpc.Error{Code: e.Code, Message: fmt.Sprintf(
				"unknown tool %q; there are %s, and those of wrappers (tools/list); wrap_run calls every wrapper by its id",
				fault.Shorten(p.Name, 60), strings.Join(names, ", "))}
		}
		return res, err
	}
}

// recoverPanics turns a panic in the handling of one message into an answer to
// it; without it one bad call would end the session. The stack goes to the log
// under the id that the answer carries, the panic's own text does not: it may
// quote arguments.
func (s *Server) recoverPanics(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (res mcp.Result, err error) {
		defer func() {
			p := recover()
			if p == nil {
				return
			}
			e := fault.From(fmt.Errorf("panic in %s: %s", method, panicKind(p)))
			s.log.Error("panic", "id", e.LogID, "method", method, "kind", panicKind(p), "stack", string(debug.Stack()))
			if method == "tools/call" {
				res, err = failure(e).result(), nil
				return
			}
			res, err = nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: e.Error()}
		}()
		return next(ctx, method, req)
	}
}

func panicKind(p any) string {
	if e, ok := p.(error); ok {
		var re runtime.Error
		if errors.As(e, &re) {
			return re.Error()
		}
	}
	return fmt.Sprintf("%T", p)
}

// problems lets only warnings and errors through: the SDK reports every
// session's beginning and end at info.
type problems struct{ slog.Handler }

func (p problems) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && p.Handler.Enabled(ctx, l)
}
