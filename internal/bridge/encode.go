package bridge

import (
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// An answer is the response to one request. It is sent once, whole.
type answer struct {
	http.ResponseWriter
	handler *handler
	request *http.Request
	started time.Time
	inside  bool // past the door, on a path that needs the token
	sent    bool
}

// Unwrap lets http.ResponseController reach the connection.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// fail sends an error. What is not a fault becomes INTERNAL, and the log gets
// its id with the cause, which the caller does not see.
func (a *answer) fail(err error) {
	e := fault.From(err)
	if e.Code == "INTERNAL" {
		a.handler.log.Error("bridge: internal fault", "id", e.LogID, "method", a.request.Method,
			"path", a.request.URL.Path, "message", e.Message, "cause", errors.Unwrap(e))
	}
	body := api.ErrorBody(e, err)
	status := e.Code.HTTPStatus()
	if e.RetryAfter > 0 {
		seconds := (e.RetryAfter + time.Second - 1) / time.Second
		a.Header().Set("Retry-After", strconv.FormatInt(int64(seconds), 10))
	}
	if status == http.StatusUnauthorized {
		a.Header().Set("WWW-Authenticate", `Bearer realm="hbrestd"`)
	}
	a.send(status, body)
}

// send writes the answer. An answer that cannot be encoded is our own fault.
func (a *answer) send(status int, v any) {
	if a.sent {
		return
	}
	body, err := encode(v)
	if err != nil {
		if e, again := v.(api.Error); again { // only the request of a call can be at fault
			e.Request = nil
			a.send(status, e)
			return
		}
		a.fail(err)
		return
	}
	a.sent = true
	h := a.Header()
	for name, values := range a.handler.always {
		h[name] = values
	}
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	if a.inside {
		h[api.HeaderRevision] = []string{strconv.FormatUint(a.handler.backend.Revision(), 10)}
	}
	// A caller that does not read cannot hold the answer for ever. Where the
	// writer has no connection (a test's recorder) there is no one to wait for.
	_ = http.NewResponseController(a.ResponseWriter).SetWriteDeadline(time.Now().Add(writeTimeout))
	a.WriteHeader(status)
	_, err = a.Write(body)
	if log := a.handler.log; log.Enabled(a.request.Context(), slog.LevelDebug) {
		log.Debug("bridge: call", "method", a.request.Method, "path", a.request.URL.Path, "status", status,
			"bytes", len(body), "ms", time.Since(a.started).Milliseconds(), "gone", err != nil)
	}
}
