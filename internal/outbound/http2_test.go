package outbound_test

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
)

// HTTP/2 keeps the same rules: codes, caps, timeouts and what is retryable.
func TestHTTP2(t *testing.T) {
	w := newWorld(t)
	key, crt := w.cert("api.example.com", []string{"api.example.com"}, time.Now().Add(-time.Hour), time.Now().Add(time.Hour), false)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/reset":
			panic(http.ErrAbortHandler)
		case "/cut":
			rw.Header().Set("Content-Length", "10")
			_, _ = io.WriteString(rw, "abc")
			_ = http.NewResponseController(rw).Flush()
			panic(http.ErrAbortHandler)
		case "/header":
			rw.Header().Set("X", strings.Repeat("x", 1<<20+8192))
		case "/hang":
			<-r.Context().Done()
		case "/big":
			_, _ = rw.Write(make([]byte, outbound.DefaultMaxBytes+1))
		default:
			_, _ = io.WriteString(rw, r.Proto+" "+r.Host+" "+r.RequestURI)
		}
	}))
	s.Config.ErrorLog = discardLog
	s.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{crt.Raw}, PrivateKey: key}}}
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	w.route("api.example.com", "443", s.Listener.Addr().String())
	c := w.client(outbound.Policy{})
	if resp, err := get(t, c, origin0+"/a%2Fb/?x=%2B"); err != nil || string(resp.Body) != "HTTP/2.0 api.example.com /a%2Fb/?x=%2B" {
		t.Fatalf("%v %v", resp, err)
	}
	for path, want := range map[string]struct {
		code         string
		retry, write bool
	}{
		"/reset": {"UPSTREAM_CONNECT", true, false}, "/cut": {"RESPONSE_INCOMPLETE", true, false}, "/header": {"UPSTREAM_PROTOCOL", false, false},
		"/hang": {"UPSTREAM_TIMEOUT", true, false}, "/big": {"RESPONSE_TOO_LARGE", false, false},
	} {
		for _, method := range []string{"GET", "POST"} {
			r := outbound.NewRequest(method, mustURL(t, origin0+path), nil)
			if path == "/hang" {
				r.Timeout = 200 * time.Millisecond
			}
			_, err := c.Send(context.Background(), r)
			f := wantFault(t, err, code(err), "")
			if string(f.Code) != want.code || f.Retryable != (method == "GET" && want.retry || method == "POST" && want.write) {
				t.Errorf("%s %s: %v, retryable %v (%v)", method, path, f, f.Retryable, f.Unwrap())
			}
		}
	}
}
