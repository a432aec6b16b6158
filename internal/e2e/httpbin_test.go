package e2e

import (
	"net"
	"net/http"

	"github.com/mccutchen/go-httpbin/v2/httpbin"
	"github.com/rogpeppe/go-internal/testscript"
)

// httpbin serves an HTTP server that nobody here wrote, which tells what it was
// sent, and sets UPSTREAM to its URL. A script has one upstream.
func cmdHTTPBin(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: httpbin")
	}
	w := of(ts)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	w.server = &http.Server{Handler: httpbin.New()}
	go func() { _ = w.server.Serve(l) }()
	ts.Setenv("UPSTREAM", "http://"+l.Addr().String())
}
