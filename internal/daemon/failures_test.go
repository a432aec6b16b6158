package daemon_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/hyperbolic-gateway/hb-rest/internal/outbound"
)

// A failed call still says which argument it did not know: a typing error in a
// name is often why the API refused it.
func TestFailedCallKeepsItsWarnings(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(400) }))
	defer s.Close()
	w := newWorld(t, private, outbound.Options{})
	w.create(strings.Replace(mirrorDoc(s.URL), `,"required":["n"]`, "", 1))
	text, failed, _ := w.agent(w.d.Addr()).call("wrap_run", `{"id":"mirror","args":{"m":5}}`)
	if !failed || !strings.Contains(text, "warning: args.m: unknown argument; accepted: n") {
		t.Errorf("%s", text)
	}
}

// A refused document is also told of the parts that would have been dropped.
func TestRefusedDocumentKeepsItsWarnings(t *testing.T) {
	w := newWorld(t, private, outbound.Options{})
	text, failed, _ := w.agent(w.d.Addr()).call("wrap_create", `{"wrapper":{"schemaVersion":1,"id":"a","name":"A","auth":"key","request":{"method":"GET","url":"ftp://x"}}}`)
	if !failed || !strings.Contains(text, "WRAPPER_INVALID") || !strings.Contains(text, "warning: wrapper.auth") {
		t.Errorf("%s", text)
	}
}
