package control

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/api"
	"github.com/hyperbolic-gateway/hb-rest/internal/fault"
)

// headerCode is on every failure, and holds its code. Some failures have status
// 200, and some answers have "ok": false without being one (a chain that does
// not verify); this tells them apart.
const headerCode = "X-HB-Code"

// An answer is the response to one request. It is sent once, whole.
type answer struct {
	http.ResponseWriter
	handler *handler
	request *http.Request
	started time.Time
	sent    bool
}

// Unwrap lets http.ResponseController reach the connection.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// fail sends an error. What is not a fault becomes INTERNAL, and the log gets
// its id with the cause, which the caller does not see.
func (a *answer) fail(err error) {
	e := fault.From(err)
	if e.Code == "INTERNAL" {
		a.handler.log.Error("control: internal fault", "id", e.LogID, "method", a.request.Method,
			"path", a.request.URL.Path, "message", e.Message, "cause", errors.Unwrap(e))
	}
	body := api.ErrorBody(e, err)
	if !a.sent {
		a.Header().Set(headerCode, string(e.Code))
	}
	a.send(e.Code.HTTPStatus(), body)
}

// send writes the answer. An answer that cannot be encoded is our own fault.
func (a *answer) send(status int, v any) {
	if a.sent {
		return
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false) // documents come back with the characters they were saved with
	if err := enc.Encode(v); err != nil {
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
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(buf.Len()))
	h.Set("Cache-Control", "no-store")
	h.Set(api.HeaderVersion, a.handler.version)
	// A caller that does not read cannot hold the answer for ever.
	_ = http.NewResponseController(a.ResponseWriter).SetWriteDeadline(time.Now().Add(writeTimeout))
	a.WriteHeader(status)
	_, err := a.Write(buf.Bytes())
	a.handler.log.Debug("control: call", "method", a.request.Method, "path", a.request.URL.Path, "status", status,
		"bytes", buf.Len(), "ms", time.Since(a.started).Milliseconds(), "gone", err != nil)
}
